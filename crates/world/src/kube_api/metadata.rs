//! What the API server refuses in the content of an object: names, labels and other marks here, the rules of single kinds
//! in [`validation`]. Pure.

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
        causes.extend(validation::faults(schema, live, object));
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
