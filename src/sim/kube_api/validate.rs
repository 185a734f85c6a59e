//! What the API server refuses in an object's content: its name and marks, and the rules of single kinds that a
//! rollout can run into. Pure.

use super::resource::{Resource, Trait};
use super::status::Cause;
use super::validation;
use serde_json::{Value, json};

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and \
    must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start \
    and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
    must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
    validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const QUALIFIED_NAME: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with \
    an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or \
    'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
/// The most that all annotations of an object may hold together.
const ANNOTATIONS: usize = 256 << 10;

/// What is wrong with an object; `live` is what it replaces.
pub(super) fn check(resource: &Resource, object: &Value, live: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    if live.is_none() {
        check_name(resource, object, &mut causes);
    }
    check_metadata(object, live, &mut causes);
    if let Some(schema) = resource.schema() {
        causes.extend(validation::faults(schema, live, object).into_iter().map(Cause::of));
    }
    match resource.kind {
        "ConfigMap" => check_config_map(object, live, &mut causes),
        "Service" => check_service(object, live, &mut causes),
        "Lease" => check_lease(object, &mut causes),
        "HTTPRoute" => check_route(object, &mut causes),
        _ => {}
    }
    causes
}

fn is_alphanumeric(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit()
}

fn is_label(text: &str) -> bool {
    text.starts_with(is_alphanumeric)
        && text.ends_with(is_alphanumeric)
        && text.chars().all(|c| is_alphanumeric(c) || c == '-')
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

/// Whether it is what labels may hold, and the last part of their keys.
fn is_word(text: &str) -> bool {
    let ends = |c: char| c.is_ascii_alphanumeric();
    text.starts_with(ends) && text.ends_with(ends) && text.chars().all(|c| ends(c) || "-_.".contains(c))
}

fn check_name(resource: &Resource, object: &Value, causes: &mut Vec<Cause>) {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    if name.is_empty() {
        causes.push(Cause::required("metadata.name", "name or generateName is required"));
        return;
    }
    let (rule, most, fits) = if resource.is(Trait::LabelNames) {
        (if name.contains('.') { "must not contain dots" } else { LABEL }, 63, is_label(name))
    } else {
        (SUBDOMAIN, 253, is_subdomain(name))
    };
    if name.len() > most {
        causes.push(Cause::invalid("metadata.name", &json!(name), &format!("must be no more than {most} bytes")));
    }
    if !fits {
        causes.push(Cause::invalid("metadata.name", &json!(name), rule));
    }
}

fn check_metadata(object: &Value, live: Option<&Value>, causes: &mut Vec<Cause>) {
    let metadata = &object["metadata"];
    for (key, value) in metadata["labels"].as_object().into_iter().flatten() {
        check_key(key, "metadata.labels", causes);
        let text = value.as_str().unwrap_or_default();
        if text.len() > 63 {
            causes.push(Cause::invalid("metadata.labels", value, "must be no more than 63 bytes"));
        } else if !text.is_empty() && !is_word(text) {
            causes.push(Cause::invalid("metadata.labels", value, LABEL_VALUE));
        }
    }
    let mut size = 0;
    for (key, value) in metadata["annotations"].as_object().into_iter().flatten() {
        check_key(&key.to_ascii_lowercase(), "metadata.annotations", causes);
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > ANNOTATIONS {
        causes.push(Cause::too_long("metadata.annotations", ANNOTATIONS));
    }
    let finalizers = metadata["finalizers"].as_array().map_or(&[][..], Vec::as_slice);
    for (place, finalizer) in finalizers.iter().enumerate() {
        let name = finalizer.as_str().unwrap_or_default();
        if !name.contains('/') && !matches!(name, "foregroundDeletion" | "orphan" | "kubernetes") {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            causes.push(Cause::invalid(&format!("metadata.finalizers[{place}]"), finalizer, why));
        }
    }
    check_owners(metadata, causes);
    if let Some(live) = live {
        check_kept(metadata, &live["metadata"], causes);
    }
}

fn check_key(key: &str, field: &str, causes: &mut Vec<Cause>) {
    let (prefix, name) = key.rsplit_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    if name.len() > 63 {
        causes.push(Cause::invalid(field, &json!(key), "name part must be no more than 63 bytes"));
    }
    if !is_word(name) {
        causes.push(Cause::invalid(field, &json!(key), QUALIFIED_NAME));
    }
    if prefix.is_some_and(|prefix| !is_subdomain(prefix)) {
        causes.push(Cause::invalid(field, &json!(key), &format!("prefix part {SUBDOMAIN}")));
    }
}

fn check_owners(metadata: &Value, causes: &mut Vec<Cause>) {
    for owner in metadata["ownerReferences"].as_array().into_iter().flatten() {
        for key in ["apiVersion", "kind", "name", "uid"] {
            if owner[key].as_str().unwrap_or_default().is_empty() {
                let why = if key == "apiVersion" { "version must not be empty" } else { "must not be empty" };
                let field = format!("metadata.ownerReferences.{key}");
                causes.push(Cause::invalid(&field, &json!(""), why));
            }
        }
    }
}

/// What an update may not change. Each is checked for all kinds and again for the kind, so it is told twice.
fn check_kept(metadata: &Value, live: &Value, causes: &mut Vec<Cause>) {
    let uid = &metadata["uid"];
    if !uid.is_null() && *uid != live["uid"] {
        causes.extend([(); 2].map(|()| Cause::invalid("metadata.uid", uid, "field is immutable")));
    }
    if live["deletionTimestamp"].is_null() {
        return;
    }
    let before = live["finalizers"].as_array().map_or(&[][..], Vec::as_slice);
    let added = metadata["finalizers"].as_array().into_iter().flatten().filter(|one| !before.contains(one));
    let added: Vec<_> = added.map(Value::to_string).collect();
    if !added.is_empty() {
        let list = added.join(", ");
        let why = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{list}}}"
        );
        causes.extend([(); 2].map(|()| Cause::forbidden("metadata.finalizers", &why)));
    }
}

fn check_config_map(object: &Value, live: Option<&Value>, causes: &mut Vec<Cause>) {
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

/// Ports are ports, and an address is given once.
fn check_service(object: &Value, live: Option<&Value>, causes: &mut Vec<Cause>) {
    for (place, port) in object["spec"]["ports"].as_array().into_iter().flatten().enumerate() {
        for key in ["port", "targetPort"] {
            if port[key].as_i64().is_some_and(|number| !(1..=65_535).contains(&number)) {
                let field = format!("spec.ports[{place}].{key}");
                causes.push(Cause::invalid(&field, &port[key], "must be between 1 and 65535, inclusive"));
            }
        }
    }
    let ip = |object: &Value| object["spec"]["clusterIP"].as_str().unwrap_or_default().to_owned();
    let moved = |live: &Value| !ip(live).is_empty() && ip(live) != ip(object);
    let external = |object: &Value| object["spec"]["type"] == "ExternalName";
    if live.is_some_and(|live| moved(live) && !external(live) && !external(object)) {
        causes.push(Cause::invalid("spec.clusterIPs[0]", &json!([ip(object)]), "may not change once set"));
    }
}

fn check_lease(object: &Value, causes: &mut Vec<Cause>) {
    let spec = &object["spec"];
    for (field, least) in [("leaseDurationSeconds", 1), ("leaseTransitions", 0)] {
        if spec[field].as_i64().is_some_and(|number| number < least) {
            let why = if least == 0 { "must be greater than or equal to 0" } else { "must be greater than 0" };
            causes.push(Cause::invalid(&format!("spec.{field}"), &spec[field], why));
        }
    }
}

/// What the schema of the Gateway API demands, as far as a rollout writes it.
fn check_route(object: &Value, causes: &mut Vec<Cause>) {
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
