//! The router `gloo`: a RouteTable that a VirtualService of operations delegates to, whose routes send a share of the requests, and those
//! with certain headers, to the candidate's copy of the Service.
//!
//! Its routes are rewritten in the form of an HTTPRoute and back ([`super::gateway_api`]): their matchers are alternatives, as matches are,
//! and the first route that matches takes a request. Semantics: Gloo's reference of RouteTable, and its sources. A destination is a
//! Service (`kube`) or another thing, which is left as it is; a weight that is not there is 0. No Gloo runs in the tests: what it
//! does with these objects is taken from there, and a stub speaks for it (`GlooStatusStub`).

use super::http_form::{self, HttpRouteForm, renamed};
use super::{RouteStatus, RouteView, Routing};
use crate::manifest::ids::ObjectName;
use crate::manifest::object::{Kind, Object, ObjectRef, items, section};
use crate::workload::layouts::SUFFIX;
use serde_json::{Map, Value, json};

/// A RouteTable that leads to that Service.
pub(super) struct RouteTable<'a>(pub(super) &'a ObjectName);

impl Routing for RouteTable<'_> {
    fn as_http_route(&self, table: &Object) -> Option<HttpRouteForm<'_>> {
        let rules: Vec<Value> = items(&table.value()["spec"], "routes").map(rule).collect();
        let reference = ObjectRef { kind: Kind::HttpRoute, ..table.reference().clone() };
        Some(HttpRouteForm { route: Object::new(reference, json!({"spec": {"rules": rules}})), service: self.0 })
    }

    fn with_http_route(&self, table: &Object, words: Object) -> Object {
        let mut table = table.clone();
        if table.at("/spec/routes").is_some() {
            let routes: Vec<Value> = items(&words.value()["spec"], "rules").map(route).collect();
            section(table.value_mut(), &["spec"]).insert("routes".to_owned(), routes.into());
        }
        table
    }

    fn status(&self, table: &Object, view: &RouteView<'_>) -> RouteStatus {
        let services = view.naming.services();
        let candidate = services.and_then(|both| both.candidate).map(ToString::to_string);
        status(table, &candidate.unwrap_or_else(|| format!("{}{SUFFIX}", self.0)))
    }
}

/// A route in the form of a rule. One that leads to no destinations that are listed here has none.
fn rule(route: &Value) -> Value {
    let mut rule = route.clone();
    let fields = section(&mut rule, &[]);
    fields.shift_remove("matchers");
    if route.get("matchers").is_some() {
        fields.insert("matches".to_owned(), items(route, "matchers").map(one_match).collect());
    }
    let action = &route["routeAction"];
    let refs: Vec<Value> = match (action.get("single"), action.pointer("/multi/destinations")) {
        (Some(single), _) => vec![backend(&json!({"destination": single}), 1)],
        (None, Some(several)) => {
            let weight = |entry: &Value| entry["weight"].as_u64().unwrap_or(0);
            several.as_array().into_iter().flatten().map(|entry| backend(entry, weight(entry))).collect()
        }
        (None, None) => return rule,
    };
    fields.insert("backendRefs".to_owned(), refs.into());
    rule
}

/// A destination with its weight. What is no Service is none of either role's.
fn backend(entry: &Value, weight: u64) -> Value {
    let service = &entry["destination"]["kube"];
    let mut to = if service.is_object() {
        json!({"name": service["ref"]["name"], "port": service["port"]})
    } else {
        json!({"name": "", "kind": "Destination"})
    };
    if let Some(namespace) = service.pointer("/ref/namespace") {
        to["namespace"] = namespace.clone();
    }
    http_form::backend(entry, to, weight)
}

/// How a path is compared, in Gloo's word and in the Gateway API's.
const PATHS: [(&str, &str); 3] = [("prefix", "PathPrefix"), ("exact", "Exact"), ("regex", "RegularExpression")];

/// A matcher in the form of a match. What else it asks for stays.
fn one_match(matcher: &Value) -> Value {
    let mut one = matcher.clone();
    let path = PATHS.iter().find_map(|(own, how)| Some((*own, json!({"type": how, "value": matcher.get(own)?}))));
    if let Some((own, path)) = path {
        section(&mut one, &[]).shift_remove(own);
        one["path"] = path;
    }
    if matcher.get("headers").is_some() {
        one["headers"] = items(matcher, "headers").map(header).collect();
    }
    one
}

/// A header that is asked for. What an HTTPRoute has no word for is a type of its own.
fn header(given: &Value) -> Value {
    let value = given["value"].as_str().unwrap_or_default();
    let how = match (given["invertMatch"] == true, given["regex"] == true) {
        (false, false) if value.is_empty() => "Present",
        (false, false) => "Exact",
        (false, true) => "RegularExpression",
        (true, false) if value.is_empty() => "NotPresent",
        (true, false) => "NotExact",
        (true, true) => "NotRegularExpression",
    };
    json!({"name": given["name"], "type": how, "value": value, "own": given})
}

/// A rule in the form of a route.
fn route(rule: &Value) -> Value {
    let mut route = rule.clone();
    let fields = section(&mut route, &[]);
    fields.retain(|key, _| key != "matches" && key != "backendRefs");
    if rule.get("matches").is_some() {
        fields.shift_insert(0, "matchers".to_owned(), items(rule, "matches").map(matcher).collect());
    }
    let backends: Vec<&Value> = items(rule, "backendRefs").collect();
    if http_form::changed(&backends) {
        fields.insert("routeAction".to_owned(), action(&backends));
    }
    route
}

/// Where nothing else is said of a destination that is alone it is a single one; else all weights are written, 0 too.
fn action(backends: &[&Value]) -> Value {
    let named = |backend: &Value| {
        let mut entry = backend["own"].clone();
        if let Some(name) = renamed(backend) {
            section(&mut entry, &["destination", "kube", "ref"]).insert("name".to_owned(), name.into());
        }
        entry
    };
    match backends {
        [one] if one["own"].get("options").is_none() => json!({"single": named(one)["destination"]}),
        several => {
            let weighed = several.iter().map(|backend| {
                let mut entry = named(backend);
                section(&mut entry, &[]).insert("weight".to_owned(), backend["weight"].clone());
                entry
            });
            json!({"multi": {"destinations": weighed.collect::<Vec<_>>()}})
        }
    }
}

fn matcher(one: &Value) -> Value {
    let mut matcher = Map::new();
    if let Some(path) = one.get("path") {
        let own = PATHS.iter().find(|(_, how)| path["type"] == *how).map_or("prefix", |(own, _)| *own);
        matcher.insert(own.to_owned(), path["value"].clone());
    }
    if one.get("headers").is_some() {
        matcher.insert("headers".to_owned(), items(one, "headers").map(asked).collect());
    }
    let rest = one.as_object().into_iter().flatten().filter(|(key, _)| *key != "path" && *key != "headers");
    matcher.extend(rest.map(|(key, value)| (key.clone(), value.clone())));
    matcher.into()
}

fn asked(header: &Value) -> Value {
    let new = || {
        let plain = json!({"name": header["name"], "value": header["value"]});
        let pattern = json!({"name": header["name"], "value": header["value"], "regex": true});
        if header["type"] == "RegularExpression" { pattern } else { plain }
    };
    header.get("own").cloned().unwrap_or_else(new)
}

/// What Gloo says of the table. Its kinds have no status subresource, its states no number of what they are about, and one that stays
/// the same is not written again: an older `Accepted` stands, `settle` is for the time until it would be another. What else is older than the
/// last change says nothing.
fn status(live: &Object, candidate: &str) -> RouteStatus {
    let status = live.at("/status").unwrap_or(&Value::Null);
    let by_namespace = status["statuses"].as_object().into_iter().flat_map(Map::values);
    let flat = status.get("state").map(|_| status);
    let verdicts = by_namespace.chain(flat).map(|said| judge(live, said, candidate));
    let worst = verdicts.max_by_key(|one| match one {
        RouteStatus::Effective => 0,
        RouteStatus::NotYet { .. } | RouteStatus::Unknown { .. } => 1,
        RouteStatus::Barred { .. } => 2,
        RouteStatus::Refused { .. } => 3,
    });
    worst.unwrap_or_else(|| RouteStatus::NotYet { why: "Gloo has not looked at the RouteTable".to_owned() })
}

/// Its states, by number.
const STATES: [&str; 4] = ["Pending", "Accepted", "Rejected", "Warning"];

fn judge(live: &Object, said: &Value, candidate: &str) -> RouteStatus {
    let by_number = said["state"].as_u64().and_then(|number| STATES.get(usize::try_from(number).ok()?));
    let state = said["state"].as_str().or(by_number.copied()).unwrap_or_default();
    let reason = said["reason"].as_str().unwrap_or_default();
    let why = format!("Gloo: {state}: {reason}");
    match state {
        "Accepted" => RouteStatus::Effective,
        "Rejected" | "Warning" if is_older(live) => RouteStatus::NotYet {
            why: format!("Gloo's {state} is from before the last change of the RouteTable: {reason}"),
        },
        "Rejected" => RouteStatus::Refused { why },
        // It is made just before the table names it.
        "Warning" if reason.contains(candidate) => RouteStatus::NotYet { why },
        "Warning" => RouteStatus::Barred { why },
        _ => RouteStatus::NotYet { why: "Gloo has not looked at the RouteTable".to_owned() },
    }
}

/// Whether its status was written before what it asks for, as far as the API server's whole seconds tell: a tie counts as older.
fn is_older(live: &Object) -> bool {
    let written = |of_status: bool| {
        let entries = live.at("/metadata/managedFields").and_then(Value::as_array).into_iter().flatten();
        let owns = |entry: &&Value, field: &str| entry["fieldsV1"].get(field).is_some();
        let about = entries.filter(move |entry| {
            if of_status { owns(entry, "f:status") } else { owns(entry, "f:spec") && !owns(entry, "f:status") }
        });
        about.filter_map(|entry| entry["time"].as_str()).max()
    };
    // Both are of one form, in UTC.
    written(true).is_some_and(|status| written(false).is_some_and(|spec| status <= spec))
}

#[cfg(test)]
mod tests;
