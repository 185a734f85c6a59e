//! What a field manager owns of a live object: the part that a later server-side apply must repeat, since what is left
//! out of an apply is removed.

use crate::manifest::object::{Object, items};
use serde_json::{Map, Value};

/// The fields of `live` that `manager` applied, with their live values: what is applied again to change one of them and
/// keep the others (design §1.3: a retreat is rendered from live alone). None if it applied nothing there.
///
/// Reads `metadata.managedFields` in the format "FieldsV1" of the Kubernetes API reference.
#[must_use]
pub fn owned(live: &Object, manager: &str) -> Option<Object> {
    let ours = |entry: &&Value| {
        entry["manager"] == manager && entry["operation"] == "Apply" && entry.get("subresource").is_none()
    };
    let kept = items(&live.value()["metadata"], "managedFields")
        .filter(ours)
        .map(|entry| keep(live.value(), &entry["fieldsV1"]))
        .reduce(merge)?;
    Some(Object::new(live.reference().clone(), kept))
}

/// The part of `value` that `fields` names. A field without further ones is owned as a whole.
fn keep(value: &Value, fields: &Value) -> Value {
    let Some(fields) = fields.as_object().filter(|f| f.keys().any(|key| key != ".")) else { return value.clone() };
    match value {
        Value::Object(map) => {
            let owned = |name: &String| fields.get(&format!("f:{name}"));
            map.iter()
                .filter_map(|(name, value)| Some((name.clone(), keep_field(value, owned(name)?))))
                .collect::<Map<_, _>>()
                .into()
        }
        Value::Array(list) => {
            list.iter().enumerate().filter_map(|(index, item)| keep_item(index, item, fields)).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// A field of which only its being there is owned (`{".": {}}`) is kept empty.
fn keep_field(value: &Value, fields: &Value) -> Value {
    let only_itself = fields.as_object().is_some_and(|f| f.len() == 1 && f.contains_key("."));
    match value {
        Value::Object(_) if only_itself => Value::Object(Map::new()),
        Value::Array(_) if only_itself => Value::Array(Vec::new()),
        Value::Object(_) | Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            keep(value, fields)
        }
    }
}

/// An item of a list, if `fields` names it by its keys (`k:`), its value (`v:`) or its place (`i:`). Its keys are kept
/// even if the server filled them in: without them it would be another item.
fn keep_item(index: usize, item: &Value, fields: &Map<String, Value>) -> Option<Value> {
    fields.iter().find_map(|(path, inner)| {
        let (how, text) = path.split_once(':')?;
        let named: Value = serde_json::from_str(text).ok()?;
        match how {
            "k" => {
                let keys = named.as_object().filter(|keys| keys.iter().all(|(k, v)| item.get(k) == Some(v)))?;
                let keys = Value::Object(keys.clone());
                Some(merge(keys, keep_field(item, inner)))
            }
            "v" => (named == *item).then(|| item.clone()),
            "i" => (named == index).then(|| keep(item, inner)),
            _ => None,
        }
    })
}

/// Both parts of one object; lists of the second that the first has too are left as they are, since their items are
/// owned under one API version alone.
fn merge(first: Value, second: Value) -> Value {
    match (first, second) {
        (Value::Object(mut first), Value::Object(second)) => {
            for (key, value) in second {
                let merged = match first.shift_remove(&key) {
                    Some(before) => merge(before, value),
                    None => value,
                };
                first.insert(key, merged);
            }
            first.into()
        }
        (first, _) => first,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::object::{Kind, ObjectRef};
    use serde_json::json;

    fn live() -> Object {
        let reference =
            ObjectRef { kind: Kind::Deployment, namespace: "shop".parse().unwrap(), name: "web".parse().unwrap() };
        let value = json!({
            "metadata": {
                "uid": "u", "resourceVersion": "7",
                "annotations": {"tidegate.io/seq": "3", "other": "x"},
                "labels": {"app": "web"},
                "finalizers": ["a/b", "c/d"],
                "managedFields": [
                    {"manager": "tidegate", "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {}}},
                    {"manager": "tidegate", "operation": "Apply", "fieldsV1": {
                        "f:metadata": {
                            "f:annotations": {"f:tidegate.io/seq": {}},
                            "f:labels": {".": {}},
                            "f:finalizers": {"v:\"c/d\"": {}},
                        },
                        "f:spec": {
                            "f:selector": {},
                            "f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {
                                ".": {}, "f:image": {}, "f:name": {},
                                "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}},
                            }}}},
                        },
                    }},
                    {"manager": "kubectl", "operation": "Apply", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
                ],
            },
            "spec": {
                "replicas": 3,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {"spec": {"restartPolicy": "Always", "containers": [
                    {"name": "sidecar", "image": "proxy"},
                    {"name": "web", "image": "web:1", "imagePullPolicy": "Always",
                     "ports": [{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 81, "protocol": "TCP"}]},
                ]}},
            },
            "status": {"replicas": 3},
        });
        Object::new(reference, value)
    }

    #[test]
    fn only_what_the_manager_applied_is_repeated() {
        let expected = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {
                "name": "web", "namespace": "shop",
                "annotations": {"tidegate.io/seq": "3"}, "labels": {}, "finalizers": ["c/d"],
            },
            "spec": {
                "selector": {"matchLabels": {"app": "web"}},
                "template": {"spec": {"containers": [
                    {"name": "web", "image": "web:1", "ports": [{"containerPort": 80, "protocol": "TCP"}]},
                ]}},
            },
        });
        assert_eq!(owned(&live(), "tidegate").map(|o| o.value().clone()), Some(expected));
    }

    #[test]
    fn a_manager_that_applied_nothing_owns_nothing() {
        assert_eq!(owned(&live(), "flagger"), None);
        let bare = Object::new(live().reference().clone(), json!({}));
        assert_eq!(owned(&bare, "tidegate"), None);
    }
}
