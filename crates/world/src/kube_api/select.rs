//! Which objects a list or a watch is about: selectors of labels and fields. Pure.

use super::fields::FieldRefusal;
use super::resource::{Resource, Trait};
use super::status::bad_request;
use serde_json::Value;
use tidegate_controller::manifest::object::at;

/// One demand on a label.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Demand {
    In(String, Vec<String>),
    /// Also met by what has no such label.
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
}

/// One demand on a field: where it is, and whether it must have that value.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FieldDemand {
    pointer: String,
    value: String,
    equal: bool,
}

/// All that an object must meet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Selector {
    labels: Vec<Demand>,
    fields: Vec<FieldDemand>,
}

impl Selector {
    /// Reads both selectors of a request; either may be empty.
    pub(super) fn parse(resource: &Resource, labels: &str, fields: &str) -> Result<Self, FieldRefusal> {
        let labels = split(labels).map(demand).collect::<Result<_, _>>()?;
        let fields = fields.split(',').filter(|term| !term.is_empty());
        let fields = fields.map(|term| field_demand(resource, term)).collect::<Result<_, _>>()?;
        Ok(Self { labels, fields })
    }

    /// Whether every object is meant.
    pub(super) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Whether this object is meant.
    pub(super) fn matches(&self, object: &Value) -> bool {
        let label = |key: &str| object["metadata"]["labels"].get(key).and_then(Value::as_str);
        let meets = |demand: &Demand| match demand {
            Demand::In(key, values) => label(key).is_some_and(|found| values.iter().any(|value| value == found)),
            Demand::NotIn(key, values) => label(key).is_none_or(|found| values.iter().all(|value| value != found)),
            Demand::Exists(key) => label(key).is_some(),
            Demand::Absent(key) => label(key).is_none(),
        };
        self.labels.iter().all(meets) && self.fields.iter().all(|demand| demand.meets(object))
    }
}

impl FieldDemand {
    fn meets(&self, object: &Value) -> bool {
        let found = match at(object, &self.pointer) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => String::new(),
            Some(other) => other.to_string(),
        };
        (found == self.value) == self.equal
    }
}

/// The terms of a label selector: commas inside parentheses belong to a term.
fn split(selector: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    let terms = selector.split(move |c| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    });
    terms.map(str::trim).filter(|term| !term.is_empty())
}

fn demand(term: &str) -> Result<Demand, FieldRefusal> {
    let key = |text: &str| label_key(text.trim());
    let one = |value: &str| Ok::<_, FieldRefusal>(vec![label_value(value.trim())?]);
    if let Some((left, right)) = term.split_once("!=") {
        return Ok(Demand::NotIn(key(left)?, one(right)?));
    }
    if let Some((left, right)) = term.split_once("==").or_else(|| term.split_once('=')) {
        return Ok(Demand::In(key(left)?, one(right)?));
    }
    if let Some(absent) = term.strip_prefix('!') {
        return Ok(Demand::Absent(key(absent)?));
    }
    let Some((left, list)) = term.split_once('(') else { return Ok(Demand::Exists(key(term)?)) };
    let list = list.trim().strip_suffix(')').ok_or_else(|| unparsable("''", "',' or ')'"))?;
    let values = list.split(',').map(|value| label_value(value.trim())).collect::<Result<_, _>>()?;
    match left.trim().rsplit_once(char::is_whitespace) {
        Some((left, "in")) => Ok(Demand::In(key(left)?, values)),
        Some((left, "notin")) => Ok(Demand::NotIn(key(left)?, values)),
        Some((_, other)) => Err(unparsable(&format!("'{other}'"), "in, notin, =, ==, !=, gt, lt")),
        None => Err(unparsable("'('", "in, notin, =, ==, !=, gt, lt")),
    }
}

fn unparsable(found: &str, expected: &str) -> FieldRefusal {
    bad_request(format!("unable to parse requirement: found {found}, expected: {expected}"))
}

/// The first sign that cannot stand there is what the API server's scanner stops at.
fn label_key(text: &str) -> Result<String, FieldRefusal> {
    match text.chars().find(|c| "=!<>()".contains(*c)) {
        Some(odd) => Err(unparsable(&format!("'{odd}'"), "identifier")),
        None if text.is_empty() => Err(unparsable("''", "identifier")),
        None => Ok(text.to_owned()),
    }
}

fn label_value(text: &str) -> Result<String, FieldRefusal> {
    match text.chars().find(|c| "=!<>()".contains(*c)) {
        Some(odd) => Err(unparsable(&format!("'{odd}'"), "identifier")),
        None => Ok(text.to_owned()),
    }
}

fn field_demand(resource: &Resource, term: &str) -> Result<FieldDemand, FieldRefusal> {
    let parts = term.split_once("!=").map(|(field, value)| (field, value, false));
    let parts = parts.or_else(|| term.split_once("==").map(|(field, value)| (field, value, true)));
    let parts = parts.or_else(|| term.split_once('=').map(|(field, value)| (field, value, true)));
    let (field, value, equal) =
        parts.ok_or_else(|| bad_request(format!("invalid selector: '{term}'; can't understand '{term}'")))?;
    if !selectable(resource).contains(&field) {
        return Err(bad_request(unknown_field(resource, field)));
    }
    Ok(FieldDemand { pointer: format!("/{}", field.replace('.', "/")), value: value.to_owned(), equal })
}

/// The fields that a selector may name.
fn selectable(resource: &Resource) -> &'static [&'static str] {
    match resource.kind {
        "Namespace" => &["metadata.name", "status.phase"],
        "Node" => &["metadata.name", "spec.unschedulable"],
        "Service" => &["metadata.name", "metadata.namespace", "spec.clusterIP", "spec.type"],
        "ReplicaSet" => &["metadata.name", "metadata.namespace", "status.replicas"],
        "Pod" => &[
            "metadata.name",
            "metadata.namespace",
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ],
        _ => &["metadata.name", "metadata.namespace"],
    }
}

fn unknown_field(resource: &Resource, field: &str) -> String {
    // Kinds that select by more than the name word it otherwise.
    if resource.is(Trait::Custom) || selectable(resource) != ["metadata.name", "metadata.namespace"] {
        format!("field label not supported: {field}")
    } else {
        format!("\"{field}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn selector(labels: &str, fields: &str) -> Result<Selector, FieldRefusal> {
        Selector::parse(Resource::at("v1", "pods").unwrap(), labels, fields)
    }

    #[test]
    fn selectors_meet_what_they_say() {
        let pod = json!({"metadata": {"name": "a", "labels": {"app": "x", "tier": "web"}}, "spec": {"nodeName": "n"}});
        let rows = [
            ("app=x", "", true),
            ("app==y", "", false),
            ("app!=y", "", true),
            ("other!=y", "", true),
            ("app in (y, x),tier", "", true),
            ("app notin (x)", "", false),
            ("!app", "", false),
            ("!other,tier=web", "", true),
            ("", "metadata.name=a,spec.nodeName!=m", true),
            ("", "status.phase=Running", false),
            ("", "status.phase!=Running", true),
            ("", "", true),
        ];
        for (labels, fields, expected) in rows {
            assert_eq!(selector(labels, fields).unwrap().matches(&pod), expected, "{labels} {fields}");
        }
    }

    #[test]
    fn nonsense_is_refused_in_the_servers_words() {
        let rows = [
            ("a===b", "", "unable to parse requirement: found '=', expected: identifier"),
            ("!!x", "", "unable to parse requirement: found '!', expected: identifier"),
            ("", "metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"),
            ("", "data.k=c1", "field label not supported: data.k"),
        ];
        for (labels, fields, expected) in rows {
            assert_eq!(selector(labels, fields).unwrap_err().message, expected);
        }
    }
}
