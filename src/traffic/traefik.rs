//! The router `traefik`: a TraefikService whose weighted services are stable's Service and, during a run, the candidate's copy of it.
//!
//! Its entries have the fields of a route's backend references, so that splitting, reading and going back are those of
//! [`gateway_api`]. Semantics: Traefik's reference of TraefikService, "Weighted Round Robin": an entry without a weight has 1, one
//! of 0 gets nothing. It looks at no request: no header is told from another here.

use super::{Seen, gateway_api};
use crate::manifest::ids::ObjectName;
use crate::manifest::object::{Kind, Object, ObjectRef, items, section};
use crate::record::posture::Split;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The TraefikService with both roles in it.
#[must_use]
pub fn render(service: &Object, of: &ObjectName, split: &Split) -> Object {
    let weight = Split { weight: split.weight, ..Split::stable() };
    rewritten(service, |route| gateway_api::render(route, of, &weight))
}

/// What split a live TraefikService shows.
#[must_use]
pub fn read(live: &Object, of: &ObjectName) -> Seen {
    gateway_api::read(&in_words(live), of)
}

/// The live TraefikService with everything at stable, from itself alone.
#[must_use]
pub fn retreat(live: &Object, of: &ObjectName) -> Object {
    rewritten(live, |route| gateway_api::retreat(route, of))
}

/// Whether a TraefikService or an IngressRoute sends or mirrors anything to that Service of its own namespace.
#[must_use]
pub fn references(object: &Object, of: &ObjectName) -> bool {
    names(&object.value()["spec"], object.reference().namespace.as_str(), of)
}

fn names(value: &Value, namespace: &str, of: &ObjectName) -> bool {
    match value {
        Value::Object(fields) => {
            leads_to(value, namespace, of)
                || fields.iter().any(|(key, inner)| key != "middlewares" && names(inner, namespace, of))
        }
        Value::Array(all) => all.iter().any(|inner| names(inner, namespace, of)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn leads_to(entry: &Value, namespace: &str, of: &ObjectName) -> bool {
    let text = |key: &str, default| entry.get(key).map_or(Some(default), Value::as_str);
    text("name", "") == Some(of.as_str())
        && text("kind", "Service") == Some("Service")
        && text("namespace", namespace) == Some(namespace)
}

/// The ports of that Service that it names, by number or by name.
pub fn ports<'a>(service: &'a Object, of: &'a ObjectName) -> impl Iterator<Item = &'a Value> {
    let (namespace, entries) = (service.reference().namespace.as_str(), &service.value()["spec"]["weighted"]);
    let own = items(entries, "services").filter(move |entry| leads_to(entry, namespace, of));
    own.filter_map(|entry| entry.get("port"))
}

/// The Services that it splits.
#[must_use]
pub fn split_services(service: &Object) -> BTreeSet<ObjectName> {
    gateway_api::split_services(&in_words(service))
}

/// The same in the words of an HTTPRoute with one rule.
pub(super) fn in_words(service: &Object) -> Object {
    let entries: Vec<&Value> = items(&service.value()["spec"]["weighted"], "services").collect();
    let reference = ObjectRef { kind: Kind::HttpRoute, ..service.reference().clone() };
    Object::new(reference, json!({"spec": {"rules": [{"backendRefs": entries}]}}))
}

/// The TraefikService with its weighted services changed in these words.
pub(super) fn rewritten(service: &Object, change: impl FnOnce(&Object) -> Object) -> Object {
    let mut service = service.clone();
    if service.at("/spec/weighted/services").is_some() {
        let changed = change(&in_words(&service));
        let entries = changed.at("/spec/rules/0/backendRefs").cloned().unwrap_or_default();
        section(service.value_mut(), &["spec", "weighted"]).insert("services".to_owned(), entries);
    }
    service
}

#[cfg(test)]
mod tests;
