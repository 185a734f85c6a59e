//! The router `gloo`: a RouteTable that a VirtualService of operations delegates to, whose routes send a share of the requests, and those
//! with certain headers, to the candidate's copy of the Service.
//!
//! Its routes are rewritten in the form of an HTTPRoute and back ([`super::gateway_api`]): their matchers are alternatives, as matches are,
//! and the first route that matches takes a request. Semantics: Gloo's reference of RouteTable, and its sources. A destination is a
//! Service (`kube`, or by the name of its upstream) or another thing, which is left as it is; a weight that is not there is 0. No Gloo
//! runs in the tests: what it does with these objects is taken from there, and a stub speaks for it (`GlooStatusStub`).

use super::http_form::{self, HttpRouteForm, renamed};
use super::{ObservedSplit, RouteStatus, RouteView, Routing, gateway_api};
use crate::manifest::gloo::service_of;
use crate::manifest::ids::ObjectName;
use crate::manifest::object::{Object, items, section};
use crate::record::posture::Split;
use crate::record::text::plain;
use crate::workload::layouts::SUFFIX;
use crate::workload::tree::Complaint;
use serde_json::{Map, Value, json};

/// A RouteTable that leads to that Service.
pub(super) struct RouteTable<'a>(pub(super) &'a ObjectName);

impl Routing for RouteTable<'_> {
    fn as_http_route(&self, table: &Object) -> Option<HttpRouteForm<'_>> {
        let namespace = table.reference().namespace.as_str();
        let rules = items(&table.value()["spec"], "routes").map(|route| rule(route, namespace));
        Some(HttpRouteForm::of(table, rules.collect(), self.0))
    }

    fn with_http_route(&self, table: &Object, words: Object) -> Object {
        http_form::with_rules(table, "routes", &words, |rule| [route(rule)])
    }

    fn read(&self, table: Option<&Object>, view: &RouteView<'_>) -> ObservedSplit {
        let Some(words) = table.and_then(|table| self.as_http_route(table)) else {
            return ObservedSplit::Split(Split::stable());
        };
        let unseen = by_upstream(&words.route, &self.candidate(view));
        unseen.unwrap_or_else(|| gateway_api::read(&words.route, words.services(view.naming)))
    }

    fn status(&self, table: &Object, view: &RouteView<'_>) -> RouteStatus {
        let named = [table.reference().name.as_str(), self.0.as_str(), &self.candidate(view)];
        status(table, &named)
    }
}

impl RouteTable<'_> {
    /// The name of the candidate's Service.
    fn candidate(&self, view: &RouteView<'_>) -> String {
        let named = view.naming.services().and_then(|both| both.candidate);
        named.map_or_else(|| format!("{}{SUFFIX}", self.0), ToString::to_string)
    }
}

/// What leads to the candidate by an upstream: we name its Service.
fn by_upstream(form: &Object, candidate: &str) -> Option<ObservedSplit> {
    let rules = items(&form.value()["spec"], "rules").enumerate();
    let mut all = rules.flat_map(|(index, rule)| items(rule, "backendRefs").map(move |backend| (index, backend)));
    all.find_map(|(index, backend)| {
        let name = backend.pointer("/own/destination/upstream/name")?.as_str()?;
        let why = || format!("route {index} leads to the candidate by the upstream {name}, and not by its Service");
        (backend["name"] == *candidate && backend["weight"] != 0).then(|| ObservedSplit::Foreign(why()))
    })
}

/// A route in the form of a rule. One that leads to no destinations that are listed here has none.
fn rule(route: &Value, namespace: &str) -> Value {
    let mut rule = route.clone();
    let fields = section(&mut rule, &[]);
    fields.shift_remove("matchers");
    if route.get("matchers").is_some() {
        fields.insert("matches".to_owned(), items(route, "matchers").map(one_match).collect());
    }
    let action = &route["routeAction"];
    let refs: Vec<Value> = match (action.get("single"), action.pointer("/multi/destinations")) {
        (Some(single), _) => vec![backend(&json!({"destination": single}), 1, namespace)],
        (None, Some(several)) => {
            let weight = |entry: &Value| entry["weight"].as_u64().unwrap_or(0);
            several.as_array().into_iter().flatten().map(|entry| backend(entry, weight(entry), namespace)).collect()
        }
        (None, None) => return rule,
    };
    fields.insert("backendRefs".to_owned(), refs.into());
    rule
}

/// A destination with its weight. What is no Service, by an upstream neither, is none of either role's.
fn backend(entry: &Value, weight: u64, namespace: &str) -> Value {
    let service = &entry["destination"]["kube"];
    let upstream = entry.pointer("/destination/upstream/name").and_then(Value::as_str);
    let mut to = match upstream.and_then(|name| service_of(name, namespace)) {
        _ if service.is_object() => json!({"name": service["ref"]["name"], "port": service["port"]}),
        Some((name, port)) => json!({"name": name, "namespace": namespace, "port": port}),
        None => json!({"name": "", "kind": "Destination"}),
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
            if section(&mut entry, &["destination"]).shift_remove("upstream").is_some() {
                let to = json!({"ref": {"namespace": backend["namespace"]}, "port": backend["port"]});
                section(&mut entry, &["destination"]).insert("kube".to_owned(), to);
            }
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
/// last change says nothing. The flat shape is what Gloo wrote before it had one by namespace, and stays where it was.
fn status(live: &Object, named: &[&str]) -> RouteStatus {
    let verdicts = verdicts(live, None).into_iter().map(|said| judge(live, said, named));
    let worst = verdicts.max_by_key(|one| match one {
        RouteStatus::Effective => 0,
        RouteStatus::NotYet { .. } | RouteStatus::Unknown { .. } | RouteStatus::Blocked { .. } => 1,
        RouteStatus::Barred { .. } => 2,
        RouteStatus::Refused { .. } => 3,
    });
    worst.unwrap_or_else(|| RouteStatus::NotYet { why: "Gloo has not looked at the RouteTable".to_owned() })
}

/// What is said of an object: by the Gloo of that namespace, or by all.
fn verdicts<'a>(live: &'a Object, home: Option<&str>) -> Vec<&'a Value> {
    let status = live.at("/status").unwrap_or(&Value::Null);
    let by_namespace = || status["statuses"].as_object().into_iter().flatten();
    let flat = status.get("state").filter(|_| by_namespace().next().is_none()).map(|_| status);
    let said = by_namespace().filter(|(by, _)| home.is_none_or(|home| *by == home)).map(|(_, said)| said);
    said.chain(flat).collect()
}

/// Its states, by number.
const STATES: [&str; 4] = ["Pending", "Accepted", "Rejected", "Warning"];

fn state(said: &Value) -> &str {
    let by_number = said["state"].as_u64().and_then(|number| STATES.get(usize::try_from(number).ok()?));
    said["state"].as_str().or(by_number.copied()).unwrap_or_default()
}

fn judge(live: &Object, verdict: &Value, named: &[&str]) -> RouteStatus {
    let (state, reason) = (state(verdict), verdict["reason"].as_str().unwrap_or_default());
    let why = format!("Gloo: {state}: {}", plain(reason));
    match state {
        "Accepted" => RouteStatus::Effective,
        "Rejected" | "Warning" if is_older(live) => RouteStatus::NotYet {
            why: format!("Gloo's {state} is from before the last change of the RouteTable: {}", plain(reason)),
        },
        "Rejected" => RouteStatus::Refused { why },
        // The candidate's Service is made just before the table names it.
        "Warning" if names(reason, named, live.reference().namespace.as_str()) => RouteStatus::NotYet { why },
        "Warning" => RouteStatus::Barred { why },
        _ => RouteStatus::NotYet { why: "Gloo has not looked at the RouteTable".to_owned() },
    }
}

/// What the Gloo of that namespace does not take of an object, and since when.
pub(in crate::workload) fn fault(live: &Object, home: &str) -> Option<Complaint> {
    let reason = |said: &Value| said["reason"].as_str().unwrap_or_default().to_owned();
    // Older ones warn whoever selects several tables of one weight (`RouteTablesWithSameWeightErr`), and take them all the same.
    let harmless = |said: &Value| state(said) == "Warning" && reason(said).contains("have the same weight");
    let mut wrong = verdicts(live, Some(home)).into_iter().filter(|said| matches!(state(said), "Rejected" | "Warning"));
    let wrong = wrong.find(|said| !harmless(said))?;
    Some(Complaint {
        words: format!("Gloo: {}: {}", state(wrong), reason(wrong)),
        since: written(live, true).and_then(|time| time.parse().ok()),
        is_rejected: state(wrong) == "Rejected",
    })
}

/// Whether a text has one of these names of that namespace as a whole word, `NAMESPACE.NAME` or `NAMESPACE/NAME`, or as the upstream that
/// such a Service is to Gloo.
pub(in crate::workload) fn names(text: &str, named: &[&str], namespace: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-./".contains(c);
    let mut words = text.split(|c| !is_part(c)).map(|word| word.trim_matches(['.', '/']));
    words.any(|word| {
        let own = word.strip_prefix(namespace).and_then(|rest| rest.strip_prefix(['.', '/'])).unwrap_or(word);
        let service = service_of(word, namespace).map(|(name, _)| name);
        named.iter().any(|name| own == *name || service == Some(*name))
    })
}

/// Whether its status was written before what it asks for, as far as the API server's whole seconds tell. A tie is about what it asks for:
/// Gloo answers within a second, and does not say again what it has said.
fn is_older(live: &Object) -> bool {
    // Both are of one form, in UTC.
    written(live, true).is_some_and(|status| written(live, false).is_some_and(|spec| status < spec))
}

/// When the status of an object was written last, or what it asks for.
pub(in crate::workload) fn written(live: &Object, of_status: bool) -> Option<&str> {
    let entries = live.at("/metadata/managedFields").and_then(Value::as_array).into_iter().flatten();
    let owns = |entry: &&Value, field: &str| entry["fieldsV1"].get(field).is_some();
    let about = entries.filter(move |entry| {
        if of_status { owns(entry, "f:status") } else { owns(entry, "f:spec") && !owns(entry, "f:status") }
    });
    about.filter_map(|entry| entry["time"].as_str()).max()
}

#[cfg(test)]
mod tests;
