//! What of a live object is ours: the fields that our manager owns there by server-side apply.
//!
//! A retreat is rendered from live alone (design §1), and an apply that leaves out a field it owned before removes it
//! (Kubernetes, "Server-Side Apply"). So a retreat applies what this module finds, with the split changed.
//!
//! The format of `fieldsV1` is that of structured-merge-diff: `f:<name>` a field, `k:<keys>` an item of a list by its
//! keys, `v:<value>` an item of a set, `i:<n>` an item by its place, `.` the thing itself.

use crate::manifest::object::{Object, at};
use serde_json::{Map, Value};

/// Maps of which many managers own a part each: owning an empty one owns none of the entries.
const SHARED_MAPS: [&str; 2] = ["labels", "annotations"];

/// Keys that have a default: `ports` of containers and of Services are lists by `port` and `protocol`.
const DEFAULTED_KEYS: [(&str, &str); 1] = [("protocol", "TCP")];

/// The part of `object` that `manager` owns by apply, as an object to be applied again; `None` if it owns nothing.
///
/// Items of a list by keys carry their keys: without them the API server could not tell which item is meant. Only a
/// key that the API server fills in itself stays out unless it is owned, so that applying the result changes nothing.
/// What is owned but not there any more is left out. An owned field that has no owned parts (a scalar, an atomic list
/// or map) is taken as a whole.
#[must_use]
pub fn owned_by(object: &Object, manager: &str) -> Option<Object> {
    owned(object, |name, operation| name == manager && operation == "Apply")
}

/// The part of `object` that one of `managers` owns by an update, in the same form.
#[must_use]
pub fn updated_by(object: &Object, managers: &[&str]) -> Option<Object> {
    owned(object, |name, operation| managers.contains(&name) && operation == "Update")
}

/// The managers that own an annotation, whatever they wrote it with.
#[must_use]
pub fn annotators<'a>(object: &'a Object, key: &str) -> Vec<&'a str> {
    let path = format!("f:{key}");
    let owns = |entry: &&Value| {
        let annotations = at(entry, "/fieldsV1/f:metadata/f:annotations");
        annotations.is_some_and(|annotations| annotations.get(&path).is_some())
    };
    let entries = object.at("/metadata/managedFields").and_then(Value::as_array);
    entries.into_iter().flatten().filter(owns).filter_map(|entry| entry.get("manager")?.as_str()).collect()
}

fn owned(object: &Object, by: impl Fn(&str, &str) -> bool) -> Option<Object> {
    let mut owned: Option<Value> = None;
    for entry in object.at("/metadata/managedFields")?.as_array()? {
        let text = |key| entry.get(key).and_then(Value::as_str).unwrap_or_default();
        if !text("subresource").is_empty() || !by(text("manager"), text("operation")) {
            continue;
        }
        if let Some(fields) = entry.get("fieldsV1") {
            owned = Some(match owned.take() {
                // Of several managers, or versions of the same API, the fields of all count.
                Some(others) => union(&others, fields),
                None => fields.clone(),
            });
        }
    }
    let fields = owned?;
    let fields = fields.as_object().filter(|fields| !fields.is_empty())?;
    let value = part(object.value(), fields)?;
    Some(Object::new(object.reference().clone(), value))
}

/// The union of two trees of fields.
#[must_use]
pub fn union(left: &Value, right: &Value) -> Value {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => {
            let mut all = left.clone();
            for (key, value) in right {
                let merged = all.get(key).map_or_else(|| value.clone(), |known| union(known, value));
                all.insert(key.clone(), merged);
            }
            Value::Object(all)
        }
        (left, _) => left.clone(),
    }
}

/// The part of `value` that `fields` name.
fn part(value: &Value, fields: &Map<String, Value>) -> Option<Value> {
    if fields.is_empty() {
        return Some(value.clone());
    }
    match value {
        Value::Object(map) => Some(Value::Object(part_of_map(map, fields))),
        Value::Array(items) => Some(Value::Array(part_of_list(items, fields))),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            fields.contains_key(".").then(|| value.clone())
        }
    }
}

fn part_of_map(map: &Map<String, Value>, fields: &Map<String, Value>) -> Map<String, Value> {
    let mut owned = Map::new();
    for (path, below) in fields {
        let (Some(name), Some(below)) = (path.strip_prefix("f:"), below.as_object()) else { continue };
        let Some(value) = map.get(name) else { continue };
        let taken = if below.is_empty() && SHARED_MAPS.contains(&name) && value.is_object() {
            Some(Value::Object(Map::new()))
        } else {
            part(value, below)
        };
        if let Some(taken) = taken {
            owned.insert(name.to_owned(), taken);
        }
    }
    owned
}

/// Items keep their live order, since the order of a list is its content.
fn part_of_list(items: &[Value], fields: &Map<String, Value>) -> Vec<Value> {
    let selectors: Vec<_> =
        fields.iter().filter_map(|(path, below)| Some((Selector::parse(path)?, below.as_object()?))).collect();
    let pick = |(place, item): (usize, &Value)| {
        let (selector, below) = selectors.iter().find(|(selector, _)| selector.names(place, item))?;
        let mut taken = part(item, below)?;
        if let (Selector::Keys(keys), Some(taken)) = (selector, taken.as_object_mut()) {
            let defaulted = |(name, value): &(&String, &Value)| {
                DEFAULTED_KEYS.iter().any(|(key, default)| name == key && *value == default)
            };
            for (name, value) in keys.iter().filter(|key| !defaulted(key)) {
                taken.insert(name.clone(), value.clone());
            }
        }
        Some(taken)
    };
    items.iter().enumerate().filter_map(pick).collect()
}

/// Names one item of a list.
enum Selector {
    Keys(Map<String, Value>),
    Value(Value),
    Place(usize),
}

impl Selector {
    fn parse(path: &str) -> Option<Self> {
        if let Some(keys) = path.strip_prefix("k:") {
            serde_json::from_str(keys).ok().map(Self::Keys)
        } else if let Some(value) = path.strip_prefix("v:") {
            serde_json::from_str(value).ok().map(Self::Value)
        } else {
            path.strip_prefix("i:")?.parse().ok().map(Self::Place)
        }
    }

    fn names(&self, place: usize, item: &Value) -> bool {
        match self {
            Self::Keys(keys) => keys.iter().all(|(name, value)| item.get(name) == Some(value)),
            Self::Value(value) => item == value,
            Self::Place(wanted) => place == *wanted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::object::{Kind, ObjectRef};
    use serde_json::json;

    fn object(kind: Kind, mut value: Value, managed: &Value) -> Object {
        value["metadata"]["managedFields"] = managed.clone();
        let reference = ObjectRef { kind, namespace: "shop".parse().unwrap(), name: "podinfo".parse().unwrap() };
        Object::new(reference, value)
    }

    fn ours(fields: &Value) -> Value {
        json!([{ "manager": "tidegate-a", "operation": "Apply", "apiVersion": "apps/v1", "fieldsV1": fields }])
    }

    /// What is owned of `live`, without what names the object.
    fn check(kind: Kind, live: Value, fields: &Value) -> Value {
        let owned = owned_by(&object(kind, live, &ours(fields)), "tidegate-a").unwrap();
        let mut value = owned.value().clone();
        for key in ["apiVersion", "kind"] {
            value.as_object_mut().unwrap().remove(key);
        }
        for key in ["name", "namespace"] {
            value["metadata"].as_object_mut().unwrap().remove(key);
        }
        value
    }

    #[test]
    fn lists_by_key_give_the_items_and_parts_that_are_ours() {
        let live = json!({
            "metadata": {
                "uid": "u", "resourceVersion": "7", "generation": 3,
                "labels": {"app": "podinfo", "team": "other"},
                "annotations": {"tidegate.io/seq": "4", "deployment.kubernetes.io/revision": "2"},
            },
            "spec": {
                "replicas": 3,
                "revisionHistoryLimit": 10,
                "template": {"spec": {"restartPolicy": "Always", "containers": [
                    {"name": "injected", "image": "mesh"},
                    {"name": "app", "image": "podinfo:1", "imagePullPolicy": "Always", "resources": {},
                     "command": ["a", "b"],
                     "env": [{"name": "A", "value": "1"}, {"name": "HAND", "value": "x"}],
                     "ports": [{"containerPort": 8080, "protocol": "TCP"}, {"containerPort": 8080, "protocol": "UDP"}]},
                ]}},
            },
            "status": {"replicas": 3},
        });
        let fields = json!({
            "f:metadata": {
                "f:labels": {"f:app": {}},
                "f:annotations": {"f:tidegate.io/seq": {}},
            },
            "f:spec": {
                "f:replicas": {},
                "f:template": {"f:spec": {"f:containers": {
                    "k:{\"name\":\"app\"}": {
                        ".": {}, "f:image": {}, "f:name": {}, "f:command": {},
                        "f:env": {"k:{\"name\":\"A\"}": {".": {}, "f:name": {}, "f:value": {}}},
                        "f:ports": {
                            "k:{\"containerPort\":8080,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}},
                            "k:{\"containerPort\":8080,\"protocol\":\"UDP\"}": {".": {}, "f:containerPort": {}},
                        },
                    },
                    "k:{\"name\":\"removed-by-hand\"}": {".": {}, "f:image": {}},
                }}},
            },
        });
        assert_eq!(
            check(Kind::Deployment, live, &fields),
            json!({
                "metadata": {"labels": {"app": "podinfo"}, "annotations": {"tidegate.io/seq": "4"}},
                "spec": {
                    "replicas": 3,
                    "template": {"spec": {"containers": [{
                        "name": "app", "image": "podinfo:1", "command": ["a", "b"],
                        "env": [{"name": "A", "value": "1"}],
                        "ports": [{"containerPort": 8080}, {"containerPort": 8080, "protocol": "UDP"}],
                    }]}},
                },
            })
        );
    }

    #[test]
    fn atomic_lists_and_maps_are_taken_whole() {
        let rules = json!([{"backendRefs": [{"name": "a", "weight": 90}, {"name": "b", "weight": 10}]}]);
        let live = json!({"metadata": {}, "spec": {"rules": rules, "hostnames": ["x"], "selector": {"app": "a"}}});
        let fields = json!({"f:spec": {"f:rules": {}, "f:selector": {}}});
        assert_eq!(
            check(Kind::HttpRoute, live, &fields),
            json!({"metadata": {}, "spec": {"rules": rules, "selector": {"app": "a"}}})
        );
    }

    #[test]
    fn sets_and_places_give_their_items_in_live_order() {
        let live = json!({"metadata": {"finalizers": ["b", "hand", "a"]}, "spec": {"list": ["x", "y", "z"]}});
        let fields = json!({
            "f:metadata": {"f:finalizers": {".": {}, "v:\"a\"": {}, "v:\"b\"": {}, "v:\"gone\"": {}}},
            "f:spec": {"f:list": {"i:2": {}, "i:9": {}}},
        });
        assert_eq!(
            check(Kind::Service, live, &fields),
            json!({"metadata": {"finalizers": ["b", "a"]}, "spec": {"list": ["z"]}})
        );
    }

    #[test]
    fn an_owned_empty_thing_stays_empty_and_an_absent_one_is_left_out() {
        let live = json!({
            "metadata": {"labels": {"hand": "1"}},
            "spec": {"template": {"volumes": [{"name": "v", "emptyDir": {}}]}, "map": {"hand": 1}, "list": [1]},
        });
        let fields = json!({
            "f:metadata": {"f:labels": {}},
            "f:spec": {
                "f:replicas": {},
                "f:map": {".": {}},
                "f:list": {".": {}},
                "f:template": {"f:volumes": {"k:{\"name\":\"v\"}": {".": {}, "f:emptyDir": {}, "f:name": {}}}},
            },
        });
        assert_eq!(
            check(Kind::Deployment, live, &fields),
            json!({
                "metadata": {"labels": {}},
                "spec": {"map": {}, "list": [], "template": {"volumes": [{"name": "v", "emptyDir": {}}]}},
            })
        );
    }

    #[test]
    fn only_our_applies_count() {
        let live = json!({"metadata": {}, "data": {"a": "1", "b": "2", "c": "3", "d": "4"}});
        let entry = |manager: &str, operation: &str, subresource: &str, field: &str| {
            json!({"manager": manager, "operation": operation, "subresource": subresource,
                   "fieldsV1": {"f:data": {field: {}}}})
        };
        let managed = json!([
            entry("tidegate-a", "Update", "", "f:a"),
            entry("tidegate-b", "Apply", "", "f:b"),
            entry("tidegate-a", "Apply", "status", "f:c"),
        ]);
        assert_eq!(owned_by(&object(Kind::ConfigMap, live.clone(), &managed), "tidegate-a"), None);
        let managed = json!([
            entry("tidegate-a", "Apply", "", "f:a"),
            {"manager": "tidegate-a", "operation": "Apply", "apiVersion": "old", "fieldsV1": {"f:data": {"f:d": {}}}},
        ]);
        let owned = owned_by(&object(Kind::ConfigMap, live, &managed), "tidegate-a").unwrap();
        assert_eq!(owned.at("/data"), Some(&json!({"a": "1", "d": "4"})));
        assert_eq!(owned.at("/metadata/managedFields"), None);
    }

    #[test]
    fn nonsense_is_data() {
        let unowned = [json!("x"), json!([]), json!({})].map(|fields| ours(&fields));
        for managed in [json!(null), json!("x"), json!([1, "x", {}])].into_iter().chain(unowned) {
            assert_eq!(owned_by(&object(Kind::ConfigMap, json!({"metadata": {}}), &managed), "tidegate-a"), None);
        }
        let fields = json!({"f:data": {"k:{": {}, "v:": {}, "i:x": {}, "q:1": {}, "f:a": 7}, "f:x": {"f:y": {}}});
        let live = json!({"metadata": {}, "data": ["a"], "x": "scalar"});
        assert_eq!(check(Kind::ConfigMap, live, &fields), json!({"metadata": {}, "data": []}));
    }
}
