//! The router `istio`: a VirtualService whose HTTP routes send a share of the requests, and those with certain headers, to the
//! candidate's copy of the Service.
//!
//! Its routes are rewritten in the words of an HTTPRoute and back, so that there is one way to split rules: [`gateway_api`]. What has no
//! words there stays as it is, at the place where it stood. Semantics: Istio's reference of VirtualService, "HTTPRoute": the
//! first route that matches takes a request, weights are relative, and a destination that is alone gets all.

use super::http_form::{HttpRouteForm, backend, changed, renamed, rewritten, with_rules};
use super::{RouteStatus, RouteView, Routing, gateway_api};
use crate::manifest::ids::ObjectName;
use crate::manifest::object::{Object, items, items_mut, section};
use crate::workload::layouts::SUFFIX;
use serde_json::{Map, Value, json};

/// A VirtualService that leads to that Service.
pub(super) struct Istio<'a>(pub(super) &'a ObjectName);

impl Routing for Istio<'_> {
    fn as_http_route(&self, service: &Object) -> Option<HttpRouteForm<'_>> {
        let rules: Vec<Value> = items(&service.value()["spec"], "http").map(rule).collect();
        Some(HttpRouteForm::of(service, rules, self.0))
    }

    fn with_http_route(&self, service: &Object, words: Object) -> Object {
        with_rules(service, "http", &words, |rule| [route(rule)])
    }

    fn with_cookie(&self, split: &Object, cookie: &str) -> Object {
        rewritten(self, split, |words| gateway_api::with_cookie(&words.route, words.service, cookie))
    }

    fn status(&self, service: &Object, _view: &RouteView<'_>) -> RouteStatus {
        status(service)
    }

    fn is_numbered(&self, service: &Object) -> bool {
        service.at("/status/observedGeneration").is_some()
    }
}

/// Whether a DestinationRule is about that Service of its own namespace.
#[must_use]
pub fn is_about(rule: &Object, of: &ObjectName) -> bool {
    let host = rule.text("/spec/host").and_then(|host| in_namespace(host, rule.reference().namespace.as_str()));
    host.is_some_and(|(name, _)| name == of.as_str())
}

/// A copy of a DestinationRule made one for the candidate's Service; `relabel` changes the labels of a subset as those of the
/// candidate's pods are.
#[must_use]
pub fn destination_rule(copy: &Object, of: &ObjectName, relabel: impl Fn(&mut Value)) -> Object {
    let mut copy = copy.clone();
    let namespace =
        copy.text("/spec/host").and_then(|host| Some(host[host.find('.')?..].to_owned())).unwrap_or_default();
    section(copy.value_mut(), &["spec"]).insert("host".to_owned(), format!("{of}{SUFFIX}{namespace}").into());
    items_mut(&mut copy.value_mut()["spec"], "subsets").filter_map(|s| s.get_mut("labels")).for_each(relabel);
    copy
}

/// Whether the mesh has it, as far as it tells. Istio writes a status only where it is told to (`Reconciled`, messages of its
/// analysis): without one the VirtualService counts as in force, and `settle` is for the time that it takes to reach the proxies.
fn status(live: &Object) -> RouteStatus {
    let Some(generation) = live.generation() else {
        return RouteStatus::Unknown { why: "the VirtualService has no generation".to_owned() };
    };
    let Some(status) = live.at("/status") else { return RouteStatus::Effective };
    let is_now = |value: &Value| number(&value["observedGeneration"]) == Some(generation);
    let older = |value: &Value| number(&value["observedGeneration"]).is_some_and(|seen| seen < generation);
    if older(status) {
        return RouteStatus::NotYet {
            why: "Istio's status is about an older generation of the VirtualService".to_owned(),
        };
    }
    let mut errors =
        items(status, "validationMessages").filter(|message| message["level"] == "ERROR" && is_now(status));
    if let Some(message) = errors.next() {
        let name = message.pointer("/type/name").and_then(Value::as_str).unwrap_or("an error");
        let code = message.pointer("/type/code").and_then(Value::as_str).unwrap_or_default();
        let why = format!("istio: {name} ({code})");
        // The candidate's Service is made just before the route names it.
        let passes = name == "ReferencedResourceNotFound";
        return if passes { RouteStatus::NotYet { why } } else { RouteStatus::Refused { why } };
    }
    let unsettled = items(status, "conditions").find(|c| c["type"] == "Reconciled" && c["status"] != "True");
    match unsettled.filter(|condition| !older(condition)) {
        Some(condition) => {
            let message = condition["message"].as_str().unwrap_or_default();
            RouteStatus::NotYet {
                why: format!("istio: Reconciled={}: {message}", condition["status"].as_str().unwrap_or("Unknown")),
            }
        }
        None => RouteStatus::Effective,
    }
}

/// Protocol buffers spell a number of 64 bits as a text.
fn number(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}

/// Fields of a route that an HTTPRoute has other words for.
const SPLIT: [&str; 3] = ["match", "route", "mirrors"];
const MIRROR: [&str; 4] = ["mirror", "mirrorPercentage", "mirrorPercent", "mirror_percent"];

/// A route in the words of a rule.
fn rule(route: &Value) -> Value {
    let mut rule = route.clone();
    let fields = section(&mut rule, &[]);
    fields.retain(|key, _| !SPLIT.contains(&key.as_str()) && !MIRROR.contains(&key.as_str()));
    if route.get("match").is_some() {
        fields.insert("matches".to_owned(), items(route, "match").map(one_match).collect());
    }
    let alone = items(route, "route").count() == 1;
    if route.get("route").is_some() {
        fields.insert("backendRefs".to_owned(), items(route, "route").map(|entry| led_to(entry, alone)).collect());
    }
    let filters: Vec<Value> = mirrors(route).collect();
    if !filters.is_empty() {
        fields.insert("filters".to_owned(), filters.into());
    }
    rule
}

/// The mirrors of a route as filters; each keeps its own words.
fn mirrors(route: &Value) -> impl Iterator<Item = Value> {
    let filter = |to: &Value, percent: Option<f64>, own: Value| {
        let mut mirror = json!({"backendRef": destination(to)});
        if let Some(percent) = percent {
            // Rounded up, so that it is never less than what is sent.
            mirror["percent"] = (0..=100_u64)
                .find(|whole| f64::from(u8::try_from(*whole).unwrap_or(100)) >= percent)
                .unwrap_or(100)
                .into();
        }
        json!({"type": "RequestMirror", "requestMirror": mirror, "own": own})
    };
    let single = route.get("mirror").map(|to| {
        let own: Map<String, Value> =
            MIRROR.iter().filter_map(|key| Some(((*key).to_owned(), route.get(*key)?.clone()))).collect();
        let percent =
            route.pointer("/mirrorPercentage/value").or(route.get("mirrorPercent")).or(route.get("mirror_percent"));
        filter(to, percent.and_then(Value::as_f64), own.into())
    });
    let several = items(route, "mirrors").map(move |one| {
        filter(&one["destination"], one.pointer("/percentage/value").and_then(Value::as_f64), one.clone())
    });
    single.into_iter().chain(several)
}

/// Headers as a list. What else is asked for stays.
fn one_match(given: &Value) -> Value {
    let mut one = given.clone();
    if let Some(headers) = given.get("headers").and_then(Value::as_object) {
        let condition = |(name, value): (&String, &Value)| {
            let (how, text) =
                HOW.iter().find_map(|(own, how)| Some((*how, value.get(own)?.as_str()?))).unwrap_or(("Present", ""));
            json!({"name": name, "type": how, "value": text})
        };
        one["headers"] = headers.iter().map(condition).collect();
    }
    one
}

/// How a header is compared, in Istio's word and in the Gateway API's.
const HOW: [(&str, &str); 3] = [("exact", "Exact"), ("regex", "RegularExpression"), ("prefix", "Prefix")];

/// An entry of a route as a backend. Alone it gets everything, whatever its weight.
fn led_to(entry: &Value, alone: bool) -> Value {
    let mut to = destination(&entry["destination"]);
    // A Service with one port needs none.
    if let Some(port) = entry.pointer("/destination/port/number") {
        to["port"] = port.clone();
    }
    backend(entry, to, if alone { 1 } else { entry["weight"].as_u64().unwrap_or(0) })
}

/// A destination by its name, if it is a Service of some namespace.
fn destination(to: &Value) -> Value {
    let host = to["host"].as_str().unwrap_or_default();
    match in_namespace(host, "") {
        Some((name, "")) => json!({"name": name, "to": to}),
        Some((name, namespace)) => json!({"name": name, "namespace": namespace, "to": to}),
        None => json!({"name": host, "kind": "Host", "to": to}),
    }
}

/// Name and namespace of the Service that a host names: `web`, `web.shop`, `web.shop.svc` or `web.shop.svc.cluster.local`. A short name is
/// read in the namespace of the object that it stands in.
fn in_namespace<'a>(host: &'a str, own: &'a str) -> Option<(&'a str, &'a str)> {
    match host.split('.').collect::<Vec<_>>()[..] {
        [name] if name != "*" && !name.is_empty() => Some((name, own)),
        [name, namespace] | [name, namespace, "svc"] | [name, namespace, "svc", "cluster", "local"] => {
            (own.is_empty() || own == namespace).then_some((name, namespace))
        }
        _ => None,
    }
}

/// A rule in the words of a route.
fn route(rule: &Value) -> Value {
    let mut route = rule.clone();
    let fields = section(&mut route, &[]);
    fields.retain(|key, _| !["matches", "backendRefs", "filters"].contains(&key.as_str()));
    if rule.get("matches").is_some() {
        fields.insert("match".to_owned(), items(rule, "matches").map(given_match).collect());
    }
    if rule.get("backendRefs").is_some() {
        fields.insert("route".to_owned(), entries(rule));
    }
    let mut several = Vec::new();
    let filters: Vec<&Value> = items(rule, "filters").collect();
    for filter in &filters {
        let single = filters.len() == 1;
        match filter.get("own") {
            Some(own) if own.get("destination").is_none() => {
                fields.extend(own.as_object().cloned().unwrap_or_default());
            }
            Some(own) => several.push(own.clone()),
            None if single => fields.extend(mirror(&filter["requestMirror"])),
            None => several.push(mirror_beside(&filter["requestMirror"])),
        }
    }
    if !several.is_empty() {
        fields.insert("mirrors".to_owned(), several.into());
    }
    route
}

fn mirror(mirror: &Value) -> Map<String, Value> {
    let mut fields = Map::from_iter([("mirror".to_owned(), named(&mirror["backendRef"]))]);
    if let Some(percent) = mirror.get("percent") {
        fields.insert("mirrorPercentage".to_owned(), json!({"value": percent}));
    }
    fields
}

fn mirror_beside(mirror: &Value) -> Value {
    let mut one = json!({"destination": named(&mirror["backendRef"])});
    if let Some(percent) = mirror.get("percent") {
        one["percentage"] = json!({"value": percent});
    }
    one
}

/// The destination of a backend, by the name that it has now.
fn named(backend: &Value) -> Value {
    let mut to = backend["to"].clone();
    if let Some(name) = renamed(backend) {
        let host = to["host"].as_str().unwrap_or_default();
        let suffix = if backend.get("kind").is_some() { "" } else { host.find('.').map_or("", |at| &host[at..]) };
        let host = format!("{name}{suffix}");
        section(&mut to, &[]).insert("host".to_owned(), host.into());
    }
    to
}

/// The destinations of a rule. Where nothing was changed they stay as they were, with weights that are not there too.
fn entries(rule: &Value) -> Value {
    let backends: Vec<&Value> = items(rule, "backendRefs").collect();
    let changed = changed(&backends);
    let entry = |backend: &&Value| {
        let mut entry = backend["own"].clone();
        let fields = section(&mut entry, &[]);
        if changed {
            fields.insert("destination".to_owned(), named(backend));
        }
        if changed && backends.len() > 1 {
            fields.insert("weight".to_owned(), backend["weight"].clone());
        }
        for header in items(backend, "filters").flat_map(|filter| items(&filter["responseHeaderModifier"], "add")) {
            let name = header["name"].as_str().unwrap_or_default().to_owned();
            section(&mut entry, &["headers", "response", "add"]).insert(name, header["value"].clone());
        }
        entry
    };
    backends.iter().map(entry).collect()
}

fn given_match(one: &Value) -> Value {
    let mut given = one.clone();
    let fields = section(&mut given, &[]);
    // All paths: that is what an HTTPRoute says without one.
    fields.shift_remove("path");
    if let Some(headers) = one.get("headers").and_then(Value::as_array) {
        let condition = |header: &Value| {
            let own = HOW.iter().find(|(_, how)| header["type"] == *how).map(|(own, _)| *own);
            let value = own.map_or_else(|| json!({}), |own| json!({own: header["value"]}));
            Some((header["name"].as_str()?.to_owned(), value))
        };
        fields.insert("headers".to_owned(), headers.iter().filter_map(condition).collect::<Map<_, _>>().into());
    }
    given
}

#[cfg(test)]
mod tests;
