//! The router `contour`: an HTTPProxy, a root or one that another includes, whose routes send a share of the requests, and those with
//! certain headers, to the candidate's copy of the Service.
//!
//! Its routes are rewritten in the form of an HTTPRoute and back ([`super::gateway_api`]). Semantics: Contour's reference of HTTPProxy and
//! its sources (1.33.8): all conditions of a route have to be met (`internal/dag/conditions.go`); their order in the object means nothing,
//! of two routes for one path that with more conditions on headers goes first (`internal/sorter`). Services without any weight get even
//! shares (`weightedClusters` of `internal/envoy/v3/route.go`), and a mirror of weight 0 is one of everything
//! (`internal/dag/httpproxy_processor.go`), so that none is ever written.

use super::http_form::{self, HttpRouteForm, renamed};
use super::{RouteStatus, RouteView, Routing};
use crate::manifest::ids::ObjectName;
use crate::manifest::object::{Object, items, section};
use crate::record::text::plain;
use crate::workload::tree::Complaint;
use serde_json::{Map, Value, json};

/// An HTTPProxy that leads to that Service.
pub(super) struct HttpProxy<'a>(pub(super) &'a ObjectName);

impl Routing for HttpProxy<'_> {
    fn as_http_route(&self, proxy: &Object) -> Option<HttpRouteForm<'_>> {
        let mut rules: Vec<Value> = Vec::new();
        for rule in items(&proxy.value()["spec"], "routes").map(rule) {
            match rules.last_mut().filter(|last| self.is_alternative(last, &rule)) {
                Some(last) => {
                    let matches: Vec<Value> = items(last, "matches").chain(items(&rule, "matches")).cloned().collect();
                    last["matches"] = matches.into();
                }
                None => rules.push(rule),
            }
        }
        Some(HttpRouteForm::of(proxy, rules, self.0))
    }

    fn with_http_route(&self, proxy: &Object, words: Object) -> Object {
        http_form::with_rules(proxy, "routes", &words, routes)
    }

    fn status(&self, proxy: &Object, _view: &RouteView<'_>) -> RouteStatus {
        status(proxy)
    }

    fn is_numbered(&self, _proxy: &Object) -> bool {
        true
    }
}

impl HttpProxy<'_> {
    /// Whether two routes that follow each other are the candidate's for several sorts of requests: a route has no alternatives.
    fn is_alternative(&self, last: &Value, next: &Value) -> bool {
        let but_for_matches = |rule: &Value| {
            let mut rule = rule.clone();
            section(&mut rule, &[]).shift_remove("matches");
            rule
        };
        let copy = format!("{}{}", self.0, crate::workload::layouts::SUFFIX);
        let mut named = items(next, "backendRefs").peekable();
        named.peek().is_some()
            && named.all(|backend| backend["name"] == *copy)
            && but_for_matches(last) == but_for_matches(next)
    }
}

/// A route in the form of a rule.
fn rule(route: &Value) -> Value {
    let mut rule = route.clone();
    let fields = section(&mut rule, &[]);
    fields.retain(|key, _| key != "conditions" && key != "services");
    fields.insert("matches".to_owned(), json!([one_match(route)]));
    let (copied, led): (Vec<&Value>, Vec<&Value>) =
        items(route, "services").partition(|service| service["mirror"] == true);
    let weight = |service: &Value| service["weight"].as_u64().unwrap_or(0);
    let even = led.iter().all(|service| weight(service) == 0);
    let refs = led.iter().map(|service| backend(service, if even { 1 } else { weight(service) }));
    fields.insert("backendRefs".to_owned(), refs.collect());
    if !copied.is_empty() {
        fields.insert("filters".to_owned(), copied.iter().map(|service| filter(service, weight(service))).collect());
    }
    rule
}

fn backend(service: &Value, weight: u64) -> Value {
    http_form::backend(service, json!({"name": service["name"], "port": service["port"]}), weight)
}

fn filter(service: &Value, weight: u64) -> Value {
    let percent = if weight == 0 { 100 } else { weight.min(100) };
    json!({"type": "RequestMirror", "requestMirror": {"backendRef": backend(service, 1), "percent": percent}})
}

/// The conditions of a route, all of which have to be met. Of several about one header all but the first stay as they are, as do
/// those about the query: what is not the same there is another match.
fn one_match(route: &Value) -> Value {
    let mut one = json!({});
    let (mut headers, mut others): (Vec<Value>, Vec<Value>) = (Vec::new(), Vec::new());
    for condition in items(route, "conditions") {
        let path = PATHS.iter().find_map(|(own, how)| Some(json!({"type": how, "value": condition.get(own)?})));
        let header = condition.get("header").map(header);
        let named = |header: &Value| headers.iter().any(|known| same_name(known, header));
        match (path, header) {
            (Some(path), None) if one.get("path").is_none() => one["path"] = path,
            (None, Some(header)) if !named(&header) => headers.push(header),
            _ => others.push(condition.clone()),
        }
    }
    if !headers.is_empty() {
        one["headers"] = headers.into();
    }
    if !others.is_empty() {
        one["others"] = others.into();
    }
    if let Some(conditions) = route.get("conditions") {
        one["own"] = conditions.clone();
    }
    one
}

fn same_name(one: &Value, other: &Value) -> bool {
    let name = |header: &Value| header["name"].as_str().unwrap_or_default().to_ascii_lowercase();
    name(one) == name(other)
}

/// How a path is compared, in Contour's word and in the Gateway API's.
const PATHS: [(&str, &str); 3] = [("prefix", "PathPrefix"), ("exact", "Exact"), ("regex", "RegularExpression")];
/// How a header is compared, where nothing else is said of it.
const HEADERS: [(&str, &str); 2] = [("exact", "Exact"), ("regex", "RegularExpression")];

/// A condition about a header. What an HTTPRoute has no word for is a type of its own.
fn header(given: &Value) -> Value {
    let said: Map<String, Value> = given
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(key, _)| *key != "name")
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    let plain = HEADERS.iter().find_map(|(own, how)| Some((*how, said.get(*own)?.as_str()?)));
    match plain.filter(|_| said.len() == 1) {
        Some((how, value)) => json!({"name": given["name"], "type": how, "value": value, "own": true}),
        None => json!({"name": given["name"], "type": Value::from(said).to_string(), "value": "", "own": true}),
    }
}

/// A rule in the form of routes, one for each of its matches.
fn routes(rule: &Value) -> Vec<Value> {
    let mut route = rule.clone();
    let fields = section(&mut route, &[]);
    fields.retain(|key, _| !["matches", "backendRefs", "filters"].contains(&key.as_str()));
    let services = services(rule);
    if !services.is_empty() {
        fields.insert("services".to_owned(), services.into());
    }
    let with_conditions = |one: &Value| {
        let mut route = route.clone();
        let asked = items(one, "headers").filter(|header| header.get("own").is_none()).map(condition);
        let conditions: Vec<Value> = items(one, "own").cloned().chain(asked).collect();
        if one.get("own").is_some() || !conditions.is_empty() {
            section(&mut route, &[]).shift_insert(0, "conditions".to_owned(), conditions.into());
        }
        route
    };
    items(rule, "matches").map(with_conditions).collect()
}

fn condition(header: &Value) -> Value {
    let own = HEADERS.iter().find(|(_, how)| header["type"] == *how).map_or("exact", |(own, _)| *own);
    json!({"header": {"name": header["name"], own: header["value"]}})
}

/// The services of a rule, mirrors last. Where nothing was changed they stay as they were, with weights that are not there too.
fn services(rule: &Value) -> Vec<Value> {
    let backends: Vec<&Value> = items(rule, "backendRefs").collect();
    let changed = http_form::changed(&backends);
    let entry = |backend: &&Value| {
        let mut entry = named(backend);
        if changed {
            section(&mut entry, &[]).insert("weight".to_owned(), backend["weight"].clone());
        }
        entry
    };
    let mirrors = items(rule, "filters").filter_map(|filter| filter.get("requestMirror")).map(|mirror| {
        let mut entry = named(&mirror["backendRef"]);
        // One of its own says so already.
        if entry["mirror"] != true || renamed(&mirror["backendRef"]).is_some() {
            section(&mut entry, &[]).extend([
                ("mirror".to_owned(), true.into()),
                ("weight".to_owned(), mirror.get("percent").cloned().unwrap_or_else(|| 100.into())),
            ]);
        }
        entry
    });
    backends.iter().map(entry).chain(mirrors).collect()
}

/// The entry of a backend, by the name that it has now.
fn named(backend: &Value) -> Value {
    let mut entry = backend["own"].clone();
    if let Some(name) = renamed(backend) {
        section(&mut entry, &[]).insert("name".to_owned(), name.into());
    }
    entry
}

/// What Contour says of the HTTPProxy's present generation: its condition `Valid`, with all that is wrong.
fn status(live: &Object) -> RouteStatus {
    let Some(generation) = live.generation() else {
        return RouteStatus::Unknown { why: "the HTTPProxy has no generation".to_owned() };
    };
    let status = live.at("/status").unwrap_or(&Value::Null);
    let valid = items(status, "conditions").find(|condition| condition["type"] == "Valid");
    let Some(valid) = valid.filter(|condition| condition["observedGeneration"].as_i64() == Some(generation)) else {
        return RouteStatus::NotYet { why: "Contour has not looked at this generation of the HTTPProxy".to_owned() };
    };
    if valid["status"] == "True" {
        return RouteStatus::Effective;
    }
    let judged: Vec<RouteStatus> = items(valid, "errors").map(judge).collect();
    let worst = judged.into_iter().max_by_key(|one| match one {
        RouteStatus::Refused { .. } => 2,
        RouteStatus::Barred { .. } => 1,
        RouteStatus::Effective
        | RouteStatus::NotYet { .. }
        | RouteStatus::Unknown { .. }
        | RouteStatus::Blocked { .. } => 0,
    });
    worst.unwrap_or_else(|| RouteStatus::NotYet {
        why: format!("Contour: Valid={}: {}", text(valid, "status"), plain(text(valid, "message"))),
    })
}

/// Errors by their type and reason that others cause: by what they say of the host, by not including this one any more, or by what they
/// include in it; or by Secrets, authorities and delegations that are theirs.
const OF_OTHERS: [(&str, &str); 9] = [
    ("VirtualHostError", "DuplicateVhost"),
    ("Orphaned", ""),
    ("RootNamespaceError", ""),
    ("ListenerError", ""),
    ("IncludeError", ""),
    ("TLSError", ""),
    ("AuthError", "ExtensionServiceNotFound"),
    ("ServiceError", "TLSUpstreamValidation"),
    ("ServiceError", "ServiceUnresolvedReference"),
];

fn judge(error: &Value) -> RouteStatus {
    let [kind, reason, message] = ["type", "reason", "message"].map(|field| text(error, field));
    let why = format!("Contour: {kind}/{reason}: {}", plain(message));
    let is = |(of, why): &&(&str, &str)| *of == kind && (why.is_empty() || *why == reason);
    match OF_OTHERS.iter().find(is) {
        // The candidate's Service is made just before the route names it.
        Some((_, "ServiceUnresolvedReference")) => RouteStatus::NotYet { why },
        Some(_) => RouteStatus::Barred { why },
        None => RouteStatus::Refused { why },
    }
}

/// What Contour does not take of an HTTPProxy as it is, and since when.
pub(in crate::workload) fn fault(live: &Object) -> Option<Complaint> {
    let conditions = items(live.at("/status")?, "conditions");
    let mut valid = conditions.filter(|one| one["type"] == "Valid" && one["status"] == "False");
    let valid = valid.find(|one| one["observedGeneration"].as_i64() == live.generation())?;
    let first = items(valid, "errors").next().unwrap_or(valid);
    Some(Complaint {
        words: format!("Contour: {}: {}", text(first, "reason"), text(first, "message")),
        since: text(valid, "lastTransitionTime").parse().ok(),
        is_rejected: true,
    })
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests;
