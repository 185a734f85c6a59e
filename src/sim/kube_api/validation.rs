//! What the API server refuses as invalid: of its many rules those that a rollout meets, in its words.
//!
//! Sources: `ValidateDeployment*`, `ValidatePodTemplateSpec*` and `ValidateService*` in
//! `pkg/apis/{apps,core}/validation` of Kubernetes 1.36.

use super::fields::Refusal;
use super::fields::schema::Schema;
use crate::manifest::object::items;
use serde_json::{Map, Value, json};

/// One thing that is wrong.
pub(super) struct Fault {
    pub(super) field: String,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

impl Fault {
    fn required(field: String) -> Self {
        Self { field, reason: "FieldValueRequired", message: "Required value".to_owned() }
    }

    fn invalid(field: &str, value: &Value, why: &str) -> Self {
        let message = format!("Invalid value: {}: {why}", sorted(value));
        Self { field: field.to_owned(), reason: "FieldValueInvalid", message }
    }
}

/// Refuses an object that is not valid, or that changes what may never change.
///
/// # Errors
/// 422 `Invalid` with every fault that is known here.
pub fn check(schema: &Schema, live: Option<&Value>, object: &Value) -> Result<(), Refusal> {
    let faults = faults(schema, live, object);
    if faults.is_empty() { Ok(()) } else { Err(refusal(schema, object, &faults)) }
}

/// Everything that is wrong with an object that is to replace `live`.
pub(super) fn faults(schema: &Schema, live: Option<&Value>, object: &Value) -> Vec<Fault> {
    let mut faults = Vec::new();
    match schema.kind() {
        "Deployment" | "ReplicaSet" => workload(live, object, &mut faults),
        "Service" => service(object, &mut faults),
        _ => {}
    }
    faults
}

fn refusal(schema: &Schema, object: &Value, faults: &[Fault]) -> Refusal {
    let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let group = schema.api_version().split_once('/').map(|(group, _)| group);
    let qualified = group.map_or_else(|| schema.kind().to_owned(), |group| format!("{}.{group}", schema.kind()));
    let lines: Vec<String> = faults.iter().map(|fault| format!("{}: {}", fault.field, fault.message)).collect();
    let what = if let [one] = &lines[..] { one.clone() } else { format!("[{}]", lines.join(", ")) };
    let causes = faults
        .iter()
        .map(|fault| json!({"reason": fault.reason, "message": fault.message, "field": fault.field}))
        .collect::<Vec<_>>();
    let mut details = Map::from_iter([("name".to_owned(), json!(name))]);
    details.extend(group.map(|group| ("group".to_owned(), json!(group))));
    details.extend([("kind".to_owned(), json!(schema.kind())), ("causes".to_owned(), json!(causes))]);
    Refusal {
        code: 422,
        reason: "Invalid",
        message: format!("{qualified} {name:?} is invalid: {what}"),
        details: Some(Value::Object(details)),
    }
}

fn workload(live: Option<&Value>, object: &Value, faults: &mut Vec<Fault>) {
    let spec = &object["spec"];
    if let Some(replicas) = spec["replicas"].as_i64().filter(|replicas| *replicas < 0) {
        let why = "must be greater than or equal to 0";
        faults.push(Fault::invalid("spec.replicas", &replicas.into(), why));
    }
    let selector = spec.get("selector");
    if selector.is_none() {
        faults.push(Fault::required("spec.selector".to_owned()));
    }
    let labels = spec.pointer("/template/metadata/labels").cloned().unwrap_or_default();
    let wanted = selector.and_then(|selector| selector["matchLabels"].as_object());
    let fits = wanted.is_some_and(|wanted| wanted.iter().all(|(key, value)| labels.get(key) == Some(value)));
    let expressions = selector.is_some_and(|selector| selector.get("matchExpressions").is_some());
    if !fits && !expressions {
        let why = "`selector` does not match template `labels`";
        faults.push(Fault::invalid("spec.template.metadata.labels", &labels, why));
    }
    pod(&spec["template"]["spec"], "spec.template.spec", faults);
    if live.is_some_and(|live| live.pointer("/spec/selector") != selector) {
        let selector = selector.cloned().unwrap_or_default();
        faults.push(Fault::invalid("spec.selector", &selector, "field is immutable"));
    }
}

/// A pod needs a container; things in it that are told apart by a name need one.
fn pod(spec: &Value, path: &str, faults: &mut Vec<Fault>) {
    names(spec, "volumes", "name", path, faults);
    if items(spec, "containers").next().is_none() {
        faults.push(Fault::required(format!("{path}.containers")));
    }
    for list in ["containers", "initContainers"] {
        for (place, container) in items(spec, list).enumerate() {
            let path = format!("{path}.{list}[{place}]");
            let text = |key: &str| container.get(key).and_then(Value::as_str).unwrap_or_default();
            for key in ["name", "image"] {
                if text(key).is_empty() {
                    faults.push(Fault::required(format!("{path}.{key}")));
                }
            }
            names(container, "ports", "containerPort", &path, faults);
            names(container, "env", "name", &path, faults);
        }
    }
}

fn service(object: &Value, faults: &mut Vec<Fault>) {
    let spec = &object["spec"];
    let headless = spec["clusterIP"] == "None" || spec["type"] == "ExternalName";
    let ports = items(spec, "ports").count();
    if ports == 0 && !headless {
        faults.push(Fault::required("spec.ports".to_owned()));
    }
    for (place, port) in items(spec, "ports").enumerate() {
        if ports > 1 && port.get("name").is_none() {
            faults.push(Fault::required(format!("spec.ports[{place}].name")));
        }
    }
}

/// Every item of `list` needs `key`.
fn names(object: &Value, list: &str, key: &str, path: &str, faults: &mut Vec<Fault>) {
    for (place, item) in items(object, list).enumerate() {
        if item.get(key).is_none_or(|value| value == "" || value == 0) {
            faults.push(Fault::required(format!("{path}.{list}[{place}].{key}")));
        }
    }
}

/// The same value with the keys of its maps in order, as Go prints them.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().map(|(key, value)| (key.clone(), sorted(value))).collect();
            fields.sort_by(|left, right| left.0.cmp(&right.0));
            Value::Object(fields.into_iter().collect())
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}
