//! The router `traefik` by a TraefikService, whose weighted services are stable's Service and, during a run, the candidate's copy of it.
//!
//! Its entries have the fields of a route's backend references, so that splitting, reading and going back are those of
//! [`gateway_api`]. Semantics: Traefik's reference of TraefikService, "Weighted Round Robin": an entry without a weight has 1, one
//! of 0 gets nothing. It looks at no request: that is for an IngressRoute ([`super::ingress_route`]).
//!
//! Copies are another sort of TraefikService, "Mirroring": one that leads to stable and sends the candidate a copy of each request. A
//! run whose phases copy has one beside the route, and it is named with a share of stable's weight. So all that the candidate gets
//! is in one object, and goes back in one write.

use super::gateway_api::weight;
use super::http_form::{HttpRouteForm, rewritten};
use super::{Form, Routing, gateway_api};
use crate::manifest::ids::{ObjectName, Percent};
use crate::manifest::object::{Kind, Object, ObjectRef, items, section};
use crate::manifest::traefik::copier_suffix;
use crate::record::posture::Split;
use crate::workload::layouts::{LayoutError, SUFFIX, copied, suffixed};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A TraefikService that leads to that Service.
pub(super) struct Traefik<'a>(pub(super) &'a ObjectName);

impl Routing for Traefik<'_> {
    /// One rule.
    fn as_http_route(&self, service: &Object) -> Option<HttpRouteForm<'_>> {
        let entries: Vec<&Value> = items(&service.value()["spec"]["weighted"], "services").collect();
        let rule = Entries::of(service, self.0).in_words(&entries);
        Some(HttpRouteForm::of(service, vec![rule], self.0))
    }

    fn with_http_route(&self, service: &Object, words: Object) -> Object {
        let mut service = service.clone();
        if service.at("/spec/weighted/services").is_some() {
            let entries = Entries::of(&service, self.0).out_of_words(&words.value()["spec"]["rules"][0]);
            section(service.value_mut(), &["spec", "weighted"]).insert("services".to_owned(), entries);
        }
        service
    }

    fn extra_route(&self, route: &Object, copies: Percent) -> Result<Option<Object>, LayoutError> {
        beside(route, self.0, copies)
    }

    fn render(&self, plain: &Object, form: Form<'_>) -> Object {
        let split = Split { headers: BTreeSet::new(), ..form.split.clone() };
        rewritten(self, plain, |words| gateway_api::render(&words.route, words.service, &split))
    }

    fn references(&self, route: &Object) -> bool {
        references(route, self.0)
    }

    fn split(&self, route: &Object, candidates: &BTreeSet<ObjectName>) -> Vec<(ObjectName, ObjectName)> {
        split_in(route, items(&route.value()["spec"]["weighted"], "services"), candidates)
    }
}

/// Whether a TraefikService or an IngressRoute sends or mirrors anything to that Service of its own namespace.
pub(super) fn references(object: &Object, of: &ObjectName) -> bool {
    names(&object.value()["spec"], object.reference().namespace.as_str(), of)
}

fn names(value: &Value, namespace: &str, of: &ObjectName) -> bool {
    match value {
        Value::Object(fields) => {
            is_service(value, namespace, of.as_str())
                || fields.iter().any(|(key, inner)| key != "middlewares" && names(inner, namespace, of))
        }
        Value::Array(all) => all.iter().any(|inner| names(inner, namespace, of)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn is_service(entry: &Value, namespace: &str, of: &str) -> bool {
    is(entry, namespace, "Service", of)
}

fn is(entry: &Value, namespace: &str, kind: &str, of: &str) -> bool {
    let text = |key: &str, default| entry.get(key).map_or(Some(default), Value::as_str);
    text("name", "") == Some(of)
        && text("kind", "Service") == Some(kind)
        && text("namespace", namespace) == Some(namespace)
}

/// The entries of a TraefikService or an IngressRoute that lead to that Service.
fn own_entries<'a>(route: &'a Object, of: &ObjectName) -> impl Iterator<Item = &'a Value> {
    let (namespace, spec) = (route.reference().namespace.as_str(), &route.value()["spec"]);
    let of_routes = items(spec, "routes").flat_map(|route| items(route, "services"));
    let all = items(&spec["weighted"], "services").chain(of_routes);
    all.filter(move |entry| is_service(entry, namespace, of.as_str()))
}

/// The Services whose candidate's copy stands among these entries of a route, with its name. It does not where it gets nothing: then the
/// copy is one of these candidates.
pub(super) fn split_in<'a>(
    route: &Object,
    entries: impl Iterator<Item = &'a Value>,
    candidates: &BTreeSet<ObjectName>,
) -> Vec<(ObjectName, ObjectName)> {
    let services = entries.filter(|entry| entry.get("kind").is_none_or(|kind| kind == "Service"));
    let split = |name: &str| match name.strip_suffix(SUFFIX) {
        Some(service) => service.parse().ok(),
        None => name.parse().ok().filter(|name| suffixed(name).is_some_and(|copy| candidates.contains(&copy))),
    };
    let services: BTreeSet<ObjectName> = services.filter_map(|entry| split(entry["name"].as_str()?)).collect();
    services.into_iter().map(|service| (route.reference().name.clone(), service)).collect()
}

/// The [`copier`] of a run whose phases copy.
pub(super) fn beside(route: &Object, of: &ObjectName, copies: Percent) -> Result<Option<Object>, LayoutError> {
    if copies.is_zero() {
        return Ok(None);
    }
    Ok(copier(&copied(route, copier_suffix(route.reference().kind))?, route, of))
}

/// The TraefikService that sends stable each request that comes by it, and the candidate a copy; nobody is led to it. `copy` is the route
/// under its own name.
fn copier(copy: &Object, route: &Object, of: &ObjectName) -> Option<Object> {
    let mut stable = own_entries(route, of).next()?.clone();
    section(&mut stable, &[]).shift_remove("weight");
    let mut mirror = stable.clone();
    section(&mut mirror, &[])
        .extend([("name".to_owned(), format!("{of}{SUFFIX}").into()), ("percent".to_owned(), 100.into())]);
    section(&mut stable, &[]).insert("mirrors".to_owned(), json!([mirror]));
    let value = json!({"metadata": copy.value()["metadata"], "spec": {"mirroring": stable}});
    Some(Object::new(ObjectRef { kind: Kind::TraefikService, ..copy.reference().clone() }, value))
}

/// Weighted services in the words of a rule and back.
pub(super) struct Entries<'a> {
    namespace: &'a str,
    service: &'a str,
    /// The TraefikService that copies.
    copier: String,
}

/// Percents of a share: what a weight is made of where a part of it is copied.
const PERCENTS: u64 = 100;

impl<'a> Entries<'a> {
    pub(super) fn of(route: &'a Object, service: &'a ObjectName) -> Self {
        let ObjectRef { namespace, name, kind } = route.reference();
        let copier = format!("{name}{}", copier_suffix(*kind));
        Self { namespace: namespace.as_str(), service: service.as_str(), copier }
    }

    pub(super) fn is_candidate(&self, entry: &Value) -> bool {
        is_service(entry, self.namespace, &format!("{}{SUFFIX}", self.service))
    }

    /// References and, where some of stable's requests come by the copier, the filter that says which share of them is copied, rounded
    /// up.
    pub(super) fn in_words(&self, entries: &[&Value]) -> Value {
        let is_stable = |entry: &Value| is_service(entry, self.namespace, self.service);
        let (mut refs, mut copied) = (Vec::<Value>::new(), None::<u64>);
        for entry in entries {
            if !is(entry, self.namespace, "TraefikService", &self.copier) {
                refs.push((*entry).clone());
                continue;
            }
            // It stands behind the entry of which it takes a part.
            let at = refs.iter().rposition(is_stable).unwrap_or_else(|| {
                refs.push(json!({"name": self.service, "weight": 0}));
                refs.len() - 1
            });
            refs[at] = weighing(&refs[at], weight(&refs[at]) + weight(entry));
            copied = Some(copied.unwrap_or_default() + weight(entry));
        }
        let Some(copied) = copied else { return json!({"backendRefs": refs}) };
        let all: u64 = refs.iter().filter(|entry| is_stable(entry)).map(weight).sum();
        let in_percents = refs.iter().all(|entry| weight(entry).is_multiple_of(PERCENTS));
        let unit = if in_percents { PERCENTS } else { 1 };
        let refs: Vec<Value> = refs.iter().map(|entry| weighing(entry, weight(entry) / unit)).collect();
        let candidate = json!({"name": format!("{}{SUFFIX}", self.service)});
        let mirror = json!({"backendRef": candidate, "percent": (copied * PERCENTS).div_ceil(all.max(1))});
        json!({"backendRefs": refs, "filters": [{"type": "RequestMirror", "requestMirror": mirror}]})
    }

    /// The references with their shares; those of stable's requests that are copied come by the copier.
    ///
    /// What gets nothing for the candidate is left out: without a ready pod behind one of its services Traefik drops the whole route, and
    /// who is led to stable would find nobody.
    pub(super) fn out_of_words(&self, rule: &Value) -> Value {
        let for_candidate =
            |entry: &Value| self.is_candidate(entry) || is(entry, self.namespace, "TraefikService", &self.copier);
        self.weighed(rule).into_iter().filter(|entry| weight(entry) > 0 || !for_candidate(entry)).collect()
    }

    fn weighed(&self, rule: &Value) -> Vec<Value> {
        let mirror = items(rule, "filters").find_map(|filter| filter.get("requestMirror"));
        let refs = items(rule, "backendRefs");
        let Some(mirror) = mirror else { return refs.cloned().collect() };
        let share = mirror["percent"].as_u64().map_or(PERCENTS, |percent| percent.min(PERCENTS));
        let parts = refs.flat_map(|entry| {
            let own = weight(entry);
            if !is_service(entry, self.namespace, self.service) {
                return vec![weighing(entry, own * PERCENTS)];
            }
            let copier = json!({"name": self.copier, "kind": "TraefikService", "weight": own * share});
            vec![weighing(entry, own * (PERCENTS - share)), copier]
        });
        parts.collect()
    }
}

fn weighing(entry: &Value, weight: u64) -> Value {
    let mut entry = entry.clone();
    section(&mut entry, &[]).insert("weight".to_owned(), weight.into());
    entry
}

#[cfg(test)]
mod tests;
