//! What the API server refuses as invalid: of its many rules those that a rollout meets, in its words.
//!
//! Sources: `ValidateDeployment*`, `ValidatePodTemplateSpec*` and `ValidateService*` in
//! `pkg/apis/{apps,core}/validation` of Kubernetes 1.36.

use super::fields::FieldRefusal;
use super::status::{self, Cause};
use serde_json::{Value, json};
use tidegate_controller::manifest::kinds::Schema;
use tidegate_controller::manifest::object::{at, items};

const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or \
    'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

/// Refuses an object that is not valid, or that changes what may never change.
///
/// # Errors
/// 422 `Invalid` with every fault that is known here.
pub fn check(schema: &Schema, live: Option<&Value>, object: &Value) -> Result<(), FieldRefusal> {
    let faults = faults(schema, live, object);
    if faults.is_empty() {
        return Ok(());
    }
    let group = schema.api_version().split_once('/').map_or("", |(group, _)| group);
    let name = at(object, "/metadata/name").and_then(Value::as_str).unwrap_or_default();
    Err(status::invalid_as(group, schema.kind(), name, &faults))
}

/// Everything that is wrong with an object that is to replace `live`.
pub(super) fn faults(schema: &Schema, live: Option<&Value>, object: &Value) -> Vec<Cause> {
    let mut faults = Vec::new();
    match schema.kind() {
        "Deployment" | "ReplicaSet" | "DaemonSet" => workload(live, object, &mut faults),
        "StatefulSet" => {
            workload(None, object, &mut faults);
            faults.extend(live.and_then(|live| moved(live, object)));
        }
        "Job" => pod(&object["spec"]["template"]["spec"], "spec.template.spec", &mut faults),
        "Service" => service(live, object, &mut faults),
        "ConfigMap" => config_map(live, object, &mut faults),
        "Lease" => lease(object, &mut faults),
        "HTTPRoute" | "GRPCRoute" => route(object, &mut faults),
        _ => {}
    }
    faults
}

fn workload(live: Option<&Value>, object: &Value, faults: &mut Vec<Cause>) {
    let spec = &object["spec"];
    if let Some(replicas) = spec["replicas"].as_i64().filter(|replicas| *replicas < 0) {
        let why = "must be greater than or equal to 0";
        faults.push(Cause::invalid("spec.replicas", &replicas.into(), why));
    }
    let selector = spec.get("selector");
    if selector.is_none() {
        faults.push(Cause::required("spec.selector", ""));
    }
    let labels = at(spec, "/template/metadata/labels").cloned().unwrap_or_default();
    let wanted = selector.and_then(|selector| selector["matchLabels"].as_object());
    let fits = wanted.is_some_and(|wanted| wanted.iter().all(|(key, value)| labels.get(key) == Some(value)));
    let expressions = selector.is_some_and(|selector| selector.get("matchExpressions").is_some());
    if !fits && !expressions {
        let why = "`selector` does not match template `labels`";
        faults.push(Cause::invalid("spec.template.metadata.labels", &labels, why));
    }
    pod(&spec["template"]["spec"], "spec.template.spec", faults);
    if live.is_some_and(|live| at(live, "/spec/selector") != selector) {
        let selector = selector.cloned().unwrap_or_default();
        faults.push(Cause::invalid("spec.selector", &selector, "field is immutable"));
    }
}

/// What of a StatefulSet may change is a list.
fn moved(live: &Value, object: &Value) -> Option<Cause> {
    const MAY: [&str; 7] = [
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    ];
    let rest = |object: &Value| {
        let mut spec = object["spec"].as_object().cloned().unwrap_or_default();
        spec.retain(|field, _| !MAY.contains(&field.as_str()));
        spec
    };
    let named: Vec<String> = MAY.iter().map(|field| format!("'{field}'")).collect();
    let (last, others) = named.split_last()?;
    let why =
        format!("updates to statefulset spec for fields other than {} and {last} are forbidden", others.join(", "));
    (rest(live) != rest(object)).then(|| Cause::forbidden("spec", &why))
}

/// A pod needs a container; things in it that are told apart by a name need one.
fn pod(spec: &Value, path: &str, faults: &mut Vec<Cause>) {
    names(spec, "volumes", "name", path, faults);
    if items(spec, "containers").next().is_none() {
        faults.push(Cause::required(&format!("{path}.containers"), ""));
    }
    for list in ["containers", "initContainers"] {
        for (place, container) in items(spec, list).enumerate() {
            let path = format!("{path}.{list}[{place}]");
            let text = |key: &str| container.get(key).and_then(Value::as_str).unwrap_or_default();
            for key in ["name", "image"] {
                if text(key).is_empty() {
                    faults.push(Cause::required(&format!("{path}.{key}"), ""));
                }
            }
            names(container, "ports", "containerPort", &path, faults);
            names(container, "env", "name", &path, faults);
        }
    }
}

fn service(live: Option<&Value>, object: &Value, faults: &mut Vec<Cause>) {
    let spec = &object["spec"];
    let headless = spec["clusterIP"] == "None" || spec["type"] == "ExternalName";
    let ports = items(spec, "ports").count();
    if ports == 0 && !headless {
        faults.push(Cause::required("spec.ports", ""));
    }
    for (place, port) in items(spec, "ports").enumerate() {
        if ports > 1 && port.get("name").is_none() {
            faults.push(Cause::required(&format!("spec.ports[{place}].name"), ""));
        }
    }
    for (place, port) in object["spec"]["ports"].as_array().into_iter().flatten().enumerate() {
        for key in ["port", "targetPort"] {
            if port[key].as_i64().is_some_and(|number| !(1..=65_535).contains(&number)) {
                let field = format!("spec.ports[{place}].{key}");
                faults.push(Cause::invalid(&field, &port[key], "must be between 1 and 65535, inclusive"));
            }
        }
    }
    // A world has addresses of one family.
    let selects = spec["selector"].as_object().is_some_and(|selector| !selector.is_empty());
    if live.is_some() && selects && spec["ipFamilyPolicy"] == "RequireDualStack" {
        let why = "this cluster is not configured for dual-stack services";
        faults.push(Cause::invalid("spec.ipFamilyPolicy", &spec["ipFamilyPolicy"], why));
        faults.push(Cause::invalid("spec.ipFamilies[1]", &spec["ipFamilies"][1], "not configured on this cluster"));
    }
    let ip = |object: &Value| object["spec"]["clusterIP"].as_str().unwrap_or_default().to_owned();
    // An address that is left out is kept.
    let moved = |live: &Value| !ip(live).is_empty() && !ip(object).is_empty() && ip(live) != ip(object);
    let external = |object: &Value| object["spec"]["type"] == "ExternalName";
    if live.is_some_and(|live| moved(live) && !external(live) && !external(object)) {
        faults.push(Cause::invalid("spec.clusterIPs[0]", &json!([ip(object)]), "may not change once set"));
    }
}

/// Every item of `list` needs `key`.
fn names(object: &Value, list: &str, key: &str, path: &str, faults: &mut Vec<Cause>) {
    for (place, item) in items(object, list).enumerate() {
        if item.get(key).is_none_or(|value| value == "" || value == 0) {
            faults.push(Cause::required(&format!("{path}.{list}[{place}].{key}"), ""));
        }
    }
}

fn config_map(live: Option<&Value>, object: &Value, causes: &mut Vec<Cause>) {
    for key in object["data"].as_object().into_iter().flatten().map(|(key, _)| key) {
        if !key.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) || key.is_empty() {
            causes.push(Cause::invalid(&format!("data[{key}]"), &json!(key), CONFIG_KEY));
        }
    }
    if let Some(live) = live.filter(|live| live["immutable"] == true) {
        let why = "field is immutable when `immutable` is set";
        if object["immutable"] != true {
            causes.push(Cause::forbidden("immutable", why));
        }
        for field in ["data", "binaryData"] {
            if object[field] != live[field] {
                causes.push(Cause::forbidden(field, why));
            }
        }
    }
}

fn lease(object: &Value, causes: &mut Vec<Cause>) {
    let spec = &object["spec"];
    for (field, least) in [("leaseDurationSeconds", 1), ("leaseTransitions", 0)] {
        if spec[field].as_i64().is_some_and(|number| number < least) {
            let why = if least == 0 { "must be greater than or equal to 0" } else { "must be greater than 0" };
            causes.push(Cause::invalid(&format!("spec.{field}"), &spec[field], why));
        }
    }
}

/// What the schema of the Gateway API demands, as far as a rollout writes it.
fn route(object: &Value, causes: &mut Vec<Cause>) {
    let Some(spec) = object.get("spec").filter(|spec| !spec.is_null()) else {
        causes.push(Cause::required("spec", ""));
        return causes.push(unchecked());
    };
    let before = causes.len();
    let list = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
    let mut named = |items: &[Value], field: &str| {
        for place in (0..items.len()).filter(|place| items[*place]["name"].is_null()) {
            causes.push(Cause::required(&format!("{field}[{place}].name"), ""));
        }
    };
    named(&list(spec, "parentRefs"), "spec.parentRefs");
    for (place, rule) in list(spec, "rules").iter().enumerate() {
        named(&list(rule, "backendRefs"), &format!("spec.rules[{place}].backendRefs"));
    }
    if causes.len() > before {
        causes.push(unchecked());
    }
}

/// What the API server adds where it gave up on further rules.
fn unchecked() -> Cause {
    let why = "some validation rules were not checked because the object was invalid; correct the existing errors to \
        complete validation";
    Cause::invalid("<nil>", &Value::Null, why)
}
