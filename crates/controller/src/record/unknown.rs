//! What a newer version wrote into a record, so that an older one that writes the record loses none of it.
//!
//! Found by difference: what a document says and what this version makes of it. A field that this version does not know
//! is put back where it stood, as long as the thing that it stood in is still the same one: a field of run 7 does not
//! move to run 8.

use serde_json::{Map, Value};

/// What of a document this version does not know.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unknown(Option<Lost>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Lost {
    /// A field with all that it holds.
    Whole(Value),
    /// Fields in an object that is known.
    Within { identity: Map<String, Value>, fields: Vec<(String, Lost)> },
    /// Objects of a list that is known; each is found again by its identity.
    Items(Vec<Lost>),
}

/// The fields by which two objects at the same place of a record are the same thing.
const IDENTITY: [&str; 9] = ["id", "run", "name", "step", "set", "uid", "path", "blob", "reason"];

fn identity(object: &Map<String, Value>) -> Map<String, Value> {
    let known = object.iter().filter(|(key, _)| IDENTITY.contains(&key.as_str()));
    // A nested run or step is no name of the thing that holds it.
    known.filter(|(_, value)| !value.is_object()).map(|(key, value)| (key.clone(), value.clone())).collect()
}

impl Unknown {
    /// What stands in `document` and not in `known`, which was made from it.
    #[must_use]
    pub fn between(document: &Value, known: &Value) -> Self {
        Self(lost(document, known))
    }

    /// Puts it back into a later `known`.
    pub fn restore(&self, known: &mut Value) {
        if let Some(lost) = &self.0 {
            restore(lost, known);
        }
    }

    /// The path of one unknown field, for messages: `spec.phases.before.quorum`.
    #[must_use]
    pub fn first(&self) -> Option<String> {
        let mut path = Vec::new();
        let mut next = self.0.as_ref();
        while let Some(lost) = next {
            next = match lost {
                Lost::Whole(_) => None,
                Lost::Within { identity: _, fields } => fields.first().map(|(key, lost)| {
                    path.push(key.as_str());
                    lost
                }),
                Lost::Items(items) => items.first(),
            };
        }
        self.0.is_some().then(|| path.join("."))
    }
}

fn lost(document: &Value, known: &Value) -> Option<Lost> {
    match (document, known) {
        (Value::Object(document), Value::Object(known)) => {
            let fields = document.iter().filter_map(|(key, value)| {
                let lost = match known.get(key) {
                    None => Some(Lost::Whole(value.clone())),
                    Some(known) => lost(value, known),
                };
                lost.map(|lost| (key.clone(), lost))
            });
            let fields: Vec<_> = fields.collect();
            (!fields.is_empty()).then(|| Lost::Within { identity: identity(known), fields })
        }
        (Value::Array(document), Value::Array(known)) => {
            let items: Vec<_> = document.iter().zip(known).filter_map(|(d, k)| lost(d, k)).collect();
            (!items.is_empty()).then_some(Lost::Items(items))
        }
        _ => None,
    }
}

fn restore(lost: &Lost, known: &mut Value) {
    match (lost, known) {
        (Lost::Within { identity: then, fields }, Value::Object(known)) if *then == identity(known) => {
            for (key, lost) in fields {
                match (lost, known.get_mut(key)) {
                    (Lost::Whole(value), None) => {
                        known.insert(key.clone(), value.clone());
                    }
                    (Lost::Within { .. } | Lost::Items(_), Some(known)) => restore(lost, known),
                    (Lost::Whole(_), Some(_)) | (Lost::Within { .. } | Lost::Items(_), None) => {}
                }
            }
        }
        (Lost::Items(items), Value::Array(known)) => {
            for lost in items {
                known.iter_mut().for_each(|item| restore(lost, item));
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_come_back_where_they_stood_while_that_is_the_same_thing() {
        let document = json!({
            "seq": 1,
            "future": {"a": [1, 2]},
            "run": {"id": "7-0", "held": true, "canaryOf": "x"},
            "history": [{"run": "5-0", "why": "", "cost": 3}, {"run": "6-0", "why": "", "cost": 4}],
        });
        let known = json!({
            "seq": 1,
            "run": {"id": "7-0", "held": true},
            "history": [{"run": "5-0", "why": ""}, {"run": "6-0", "why": ""}],
        });
        let unknown = Unknown::between(&document, &known);
        let mut same = known.clone();
        unknown.restore(&mut same);
        assert_eq!(same, document);
        let mut later = json!({
            "seq": 2,
            "run": {"id": "8-0", "held": true},
            "history": [{"run": "6-0", "why": ""}, {"run": "7-0", "why": ""}],
        });
        unknown.restore(&mut later);
        assert_eq!(
            later,
            json!({
                "seq": 2,
                "run": {"id": "8-0", "held": true},
                "history": [{"run": "6-0", "why": "", "cost": 4}, {"run": "7-0", "why": ""}],
                "future": {"a": [1, 2]},
            })
        );
    }

    #[test]
    fn nothing_unknown_changes_nothing() {
        let value = json!({"a": [{"b": null}, 1], "c": {}});
        let unknown = Unknown::between(&value, &value);
        assert_eq!((unknown.clone(), unknown.first()), (Unknown::default(), None));
        let unknown = Unknown::between(&json!({"a": [{"b": {"c": 1}}]}), &json!({"a": [{"b": {}}]}));
        assert_eq!(unknown.first().as_deref(), Some("a.b.c"));
    }
}
