//! Holds what we want against what the API server has, and writes our marks.
//!
//! Only what is rendered is compared: defaults that the server filled in, and fields of other managers, are not ours.

use super::quantity;
use crate::manifest::hex::hex;
use crate::manifest::object::{APPLIED, EPOCH, Kind, OWNER, Object, RETREATED, SEQ};
use serde::Serialize;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt;

/// One field that is not as rendered.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// Where, as a JSON pointer into the rendered object.
    pub pointer: String,
    /// What was rendered; `null` where a list should end, and where a field should not be.
    pub wanted: Value,
    /// What the live object has there; none if nothing.
    pub found: Option<Value>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = |value: &Value| value.to_string().chars().take(120).collect::<String>();
        let found = self.found.as_ref().map_or_else(|| "nothing".to_owned(), short);
        write!(f, "{} is {found}, not {}", self.pointer, short(&self.wanted))
    }
}

/// Metadata that the server alone writes; a manifest that carries it asks for nothing.
const SERVER_METADATA: [&str; 6] =
    ["creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"];

/// Lists that Kubernetes merges by key ("listType=map" of the OpenAPI description).
const KEYED: [(&str, &[&str]); 12] = [
    ("containers", &["name"]),
    ("initContainers", &["name"]),
    ("ephemeralContainers", &["name"]),
    ("volumes", &["name"]),
    ("env", &["name"]),
    ("imagePullSecrets", &["name"]),
    ("secrets", &["name"]),
    ("volumeMounts", &["mountPath"]),
    ("volumeDevices", &["devicePath"]),
    ("hostAliases", &["ip"]),
    ("topologySpreadConstraints", &["topologyKey", "whenUnsatisfiable"]),
    ("ownerReferences", &["uid"]),
];

/// Maps whose entries people choose: there an empty value is a value.
const FREE_MAPS: [&str; 8] =
    ["annotations", "binaryData", "data", "labels", "matchLabels", "nodeSelector", "limits", "requests"];

/// Optional fields in which `false`, `0` or `{}` says something else than leaving them out.
const ZERO_COUNTS: [&str; 18] = [
    "allowPrivilegeEscalation",
    "automountServiceAccountToken",
    "emptyDir",
    "enableServiceLinks",
    "fsGroup",
    "hostUsers",
    "labelSelector",
    "maxSurge",
    "maxUnavailable",
    "minAvailable",
    "namespaceSelector",
    "podSelector",
    "replicas",
    "runAsGroup",
    "runAsUser",
    "selector",
    "stabilizationWindowSeconds",
    "terminationGracePeriodSeconds",
];

/// Fields that the server chooses when they are given as `""` or `0`.
const ALLOCATED: [&str; 3] = ["clusterIP", "healthCheckNodePort", "nodePort"];

/// Every rendered field that the live object does not have with an equal value. Empty: nothing to write.
///
/// `null` in `rendered` asks for nothing. Quantities compare by value. Lists that Kubernetes merges by key are matched
/// by key, whatever else live has in them; other lists must agree in length and order. The rules of a route, and the
/// selector of a Service, are ours as a whole: there a field that was not rendered is a difference too.
#[must_use]
pub fn differs(rendered: &Object, live: &Object) -> Vec<Difference> {
    let mut walk = Walk { kind: rendered.reference().kind, path: Vec::new(), found: Vec::new() };
    walk.value(rendered.value(), Some(live.value()));
    walk.found
}

/// The digest of what an object says, our own marks left out: 16 hex digits.
#[must_use]
pub fn applied_digest(object: &Object) -> String {
    let text = serde_jcs::to_vec(&unmarked(object.value()))
        .expect("canonical JSON, because every JSON value has text keys and finite numbers");
    hex(&Sha256::digest(text)[..8])
}

/// A value, or what is left of one, by reference: it is digested at each look at an object.
#[derive(Serialize)]
#[serde(untagged)]
enum Part<'a> {
    Whole(&'a Value),
    Rest(BTreeMap<&'a str, Part<'a>>),
}

/// The parts of a value that `of` lets be; all of a value that has none.
fn parts<'a>(value: &'a Value, of: impl Fn(&'a str, &'a Value) -> Option<Part<'a>>) -> Part<'a> {
    let Some(object) = value.as_object() else { return Part::Whole(value) };
    Part::Rest(object.iter().filter_map(|(key, value)| Some((key.as_str(), of(key, value)?))).collect())
}

/// An object without our own marks, and without annotations if there are no others.
fn unmarked(object: &Value) -> Part<'_> {
    const MARKS: [&str; 5] = [OWNER, APPLIED, SEQ, EPOCH, RETREATED];
    let of_others = |key, value| (!MARKS.contains(&key)).then_some(Part::Whole(value));
    let of_metadata = |key, value| match key {
        "annotations" => match parts(value, of_others) {
            Part::Rest(annotations) if !annotations.is_empty() => Some(Part::Rest(annotations)),
            Part::Rest(_) | Part::Whole(_) => None,
        },
        _ => Some(Part::Whole(value)),
    };
    parts(object, |key, value| Some(if key == "metadata" { parts(value, of_metadata) } else { Part::Whole(value) }))
}

/// The object with the marks of this write: who owns it, what it said, and the record and leader that the write relies
/// on. Marks that it has already are replaced; a retreat's mark is left as it is.
#[must_use]
pub fn marked(mut object: Object, owner: &str, seq: u64, epoch: u64) -> Object {
    let applied = applied_digest(&object);
    object.annotate(OWNER, owner);
    object.annotate(APPLIED, &applied);
    object.annotate(SEQ, &seq.to_string());
    object.annotate(EPOCH, &epoch.to_string());
    object
}

struct Walk {
    kind: Kind,
    path: Vec<String>,
    found: Vec<Difference>,
}

impl Walk {
    fn value(&mut self, wanted: &Value, found: Option<&Value>) {
        if wanted.is_null() || self.is_server_owned() {
            return;
        }
        match (wanted, found) {
            (Value::Object(wanted), Some(Value::Object(found))) => {
                for (key, value) in wanted {
                    self.inside(key.clone(), value, found.get(key));
                }
                for (key, extra) in found {
                    if self.is_added(wanted, key, extra) {
                        self.path.push(key.clone());
                        self.report(Value::Null, Some(extra));
                        self.path.pop();
                    }
                }
            }
            (Value::Array(wanted), Some(Value::Array(found))) => self.list(wanted, found),
            (_, found) => {
                if !self.equal(wanted, found) {
                    self.report(wanted.clone(), found);
                }
            }
        }
    }

    /// Whether a hand added a field to what is ours as a whole: the rules of a route are one atomic list, and the selector of a
    /// Service is one map. What the API server fills in there is none (Gateway API v1: defaults of `matches`, `path`, and of a backend reference).
    fn is_added(&self, wanted: &Map<String, Value>, key: &str, found: &Value) -> bool {
        let everything = || json!({"type": "PathPrefix", "value": "/"});
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        let whole = self.kind.facts().whole;
        let Some(inside) = path.strip_prefix(whole).filter(|_| !whole.is_empty()) else { return false };
        let default = match inside {
            _ if self.kind == Kind::HttpProxy => contours(inside.last().copied().unwrap_or_default(), key),
            _ if ![Kind::HttpRoute, Kind::GrpcRoute].contains(&self.kind) => Value::Null,
            [_] if key == "matches" && self.kind == Kind::HttpRoute => json!([{"path": everything()}]),
            [_, "matches", _] if key == "path" => everything(),
            [_, "backendRefs", _] if key == "group" => json!(""),
            [_, "backendRefs", _] if key == "kind" => json!("Service"),
            [_, "backendRefs", _] if key == "weight" => json!(1),
            [_] | [_, "matches" | "backendRefs", _] => Value::Null,
            _ => return false,
        };
        !wanted.contains_key(key) && *found != default
    }

    fn inside(&mut self, key: String, wanted: &Value, found: Option<&Value>) {
        self.path.push(key);
        self.value(wanted, found);
        self.path.pop();
    }

    fn list(&mut self, wanted: &[Value], found: &[Value]) {
        if let Some(keys) = self.keys(wanted) {
            for (index, item) in wanted.iter().enumerate() {
                let other = found.iter().find(|other| keys.iter().all(|k| key_of(item, k) == key_of(other, k)));
                self.inside(index.to_string(), item, other);
            }
        } else if self.last() == "finalizers" {
            for (index, item) in wanted.iter().enumerate() {
                self.inside(index.to_string(), item, found.iter().find(|other| *other == item));
            }
        } else {
            for (index, item) in wanted.iter().enumerate() {
                self.inside(index.to_string(), item, found.get(index));
            }
            for (index, extra) in found.iter().enumerate().skip(wanted.len()) {
                self.path.push(index.to_string());
                self.report(Value::Null, Some(extra));
                self.path.pop();
            }
        }
    }

    fn report(&mut self, wanted: Value, found: Option<&Value>) {
        let pointer = self.path.iter().fold(String::new(), |pointer, key| pointer + "/" + &escape(key));
        self.found.push(Difference { pointer, wanted, found: found.cloned() });
    }

    /// The keys of the list at this place, if it has any and they tell its items apart.
    fn keys(&self, list: &[Value]) -> Option<&'static [&'static str]> {
        let keys: &'static [&'static str] = match self.last() {
            "ports" if self.kind == Kind::Service => &["port", "protocol"],
            "ports" => &["containerPort", "protocol"],
            name => KEYED.iter().find(|(list, _)| *list == name)?.1,
        };
        let full = |item: &Value| keys.iter().all(|key| !key_of(item, key).is_null());
        let twice = |(index, item): (usize, &Value)| {
            list[..index].iter().any(|other| keys.iter().all(|k| key_of(item, k) == key_of(other, k)))
        };
        (!self.kind.is_custom() && list.iter().all(full) && !list.iter().enumerate().any(twice)).then_some(keys)
    }

    fn equal(&self, wanted: &Value, found: Option<&Value>) -> bool {
        match found {
            None | Some(Value::Null) => is_zero(wanted) && !self.zero_counts(),
            Some(found) => {
                wanted == found
                    || matches!((wanted.as_f64(), found.as_f64()), (Some(a), Some(b)) if a == b)
                    || (self.is_quantity() && quantity::same(wanted, found))
                    || (is_zero(wanted) && ALLOCATED.contains(&self.last()))
            }
        }
    }

    /// The API server leaves zero values out of built-in kinds ("omitempty"), but never out of custom resources.
    fn zero_counts(&self) -> bool {
        let parent = self.path.len().checked_sub(2).map_or("", |at| self.path[at].as_str());
        self.kind.is_custom()
            || FREE_MAPS.contains(&parent)
            || (self.kind == Kind::Service && parent == "selector")
            || ZERO_COUNTS.contains(&self.last())
            || self.is_list_item()
    }

    fn is_quantity(&self) -> bool {
        let under = |name: &str| self.path.iter().any(|key| key == name);
        let in_metric = under("metrics") && matches!(self.last(), "averageValue" | "value");
        (under("resources") && (under("limits") || under("requests")))
            || matches!(self.last(), "sizeLimit" | "divisor")
            || (self.kind == Kind::HorizontalPodAutoscaler && in_metric)
    }

    fn is_server_owned(&self) -> bool {
        match self.path.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["status"] => true,
            ["metadata", field] => SERVER_METADATA.contains(&field),
            _ => false,
        }
    }

    fn is_list_item(&self) -> bool {
        self.last().parse::<usize>().is_ok()
    }

    fn last(&self) -> &str {
        self.path.last().map_or("", String::as_str)
    }
}

/// The value of a key field of a list item; `protocol` has a default.
fn key_of(item: &Value, key: &str) -> Value {
    match item.get(key) {
        Some(value) => value.clone(),
        None if key == "protocol" => "TCP".into(),
        None => Value::Null,
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.values().all(|value| value.is_null()),
    }
}

fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// What the CustomResourceDefinition of Contour's HTTPProxy (1.33.8, `apis/projectcontour/v1`) fills in where it is left out.
fn contours(parent: &str, key: &str) -> Value {
    match (parent, key) {
        ("retryPolicy", "count") => json!(1),
        ("requestRedirectPolicy", "statusCode") => json!(302),
        ("internalRedirectPolicy", "allowCrossSchemeRedirect") => json!("Never"),
        ("slowStartPolicy", "aggression") => json!("1.0"),
        ("slowStartPolicy", "minWeightPercent") => json!(10),
        ("requestHeaderValueMatch", "expectMatch") => json!(true),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests;
