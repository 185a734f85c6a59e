//! The HTTPRoute or GRPCRoute: whether it still keeps the limits of the Gateway API once it is split.
//!
//! Limits: `HTTPRouteSpec`, `HTTPRouteRule`, `HTTPRouteMatch` and `BackendRef` of gateway.networking.k8s.io/v1, and the same
//! of GRPCRoute, whose rules take 64 matches since Gateway API 1.3. Nothing is rendered here, only counted: every rule that names the service gets each such backend twice, and with header
//! phases a rule before it that has its matches times the alternatives.

use super::{Case, Findings, SUFFIX, affinity};
use crate::manifest::desired::{HeaderMatch, HeaderValue, Router};
use crate::manifest::diagnostic::{Code, Diagnostic};
use crate::manifest::expand;
use crate::manifest::ids::ObjectName;
use crate::manifest::object::{Kind, Object, items};
use crate::manifest::set::Item;
use serde_json::Value;
use std::collections::BTreeSet;

const RULES: usize = 16;
const MATCHES_OF_RULE: usize = 64;
const MATCHES: usize = 128;
const BACKENDS: usize = 16;
const HEADERS: usize = 16;
/// A weight is multiplied by up to 100, and the Gateway API takes at most 1,000,000.
pub(super) const WEIGHT: i64 = 1_000_000 / 100;

pub(super) fn check(case: &Case<'_>, findings: &mut Findings) {
    let Some(router @ (Router::GatewayApi { .. } | Router::Grpc { .. })) = case.router() else { return };
    let (Some((kind, name)), Some(service)) = (router.route(), router.service()) else { return };
    match case.require(&router.spelling().route, kind, name) {
        Ok(route) => {
            findings.errors.extend(limits(case, route, service));
            findings.errors.extend(leads(case, route, service));
            findings.warnings.extend(unheard(route));
        }
        Err(missing) => findings.errors.extend(missing),
    }
}

fn limits(case: &Case<'_>, route: &Item, service: &ObjectName) -> Vec<Diagnostic> {
    let alternatives = case.spec.phases.iter().flat_map(|phase| expand::alternatives(&phase.expose));
    let alternatives = alternatives.filter_map(|(_, headers)| headers.ok()).chain(affinity::holders(case));
    let alternatives: BTreeSet<HeaderMatch> = alternatives.collect();
    let rules = array(route.object.at("/spec/rules"));
    let (mut found, mut split, mut matches) = (names(route, rules), 0, 0);
    for (i, rule) in rules.iter().enumerate() {
        let own = array(rule.get("matches"));
        matches += own.len().max(1);
        if !array(rule.get("backendRefs")).iter().any(|backend| names_service(backend, service.as_str())) {
            continue;
        }
        split += 1;
        found.extend(backends(route, i, rule, service.as_str()));
        let (count, errors) = joined(route, i, own, &alternatives);
        found.extend(errors);
        matches += count;
        if count > MATCHES_OF_RULE {
            let what = format!("with the headers of the phases this rule needs {count} matches");
            found.push(limit(route, &format!("/spec/rules/{i}/matches"), what, MATCHES_OF_RULE));
        }
    }
    let all = rules.len() + if alternatives.is_empty() { 0 } else { split };
    if split == 0 {
        let what = format!("no rule of this route names the Service {service}");
        found.push(route.error("/spec/rules", Code::TargetMissing, what, "a backendRef with its name"));
    }
    if all > RULES {
        found.push(limit(route, "/spec/rules", format!("once split this route needs {all} rules"), RULES));
    }
    if matches > MATCHES {
        found.push(limit(route, "/spec/rules", format!("once split this route needs {matches} matches"), MATCHES));
    }
    found
}

fn array(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn limit(route: &Item, pointer: &str, found: String, most: usize) -> Diagnostic {
    route.error(pointer, Code::RouteLimit, found, format!("at most {most}, the limit of the Gateway API"))
}

/// Whether a backend is that Service of this namespace. Other namespaces are reported elsewhere.
fn names_service(backend: &Value, service: &str) -> bool {
    let text = |field: &str| backend.get(field).and_then(Value::as_str);
    text("name") == Some(service)
        && text("kind").unwrap_or("Service") == "Service"
        && text("group").unwrap_or_default().is_empty()
}

fn names(route: &Item, rules: &[Value]) -> Vec<Diagnostic> {
    let mut seen = BTreeSet::new();
    let named = rules.iter().enumerate().filter_map(|(i, rule)| Some((i, rule.get("name")?.as_str()?)));
    named
        .filter(|(_, name)| !seen.insert(*name))
        .map(|(i, name)| {
            let pointer = format!("/spec/rules/{i}/name");
            route.error(&pointer, Code::RouteLimit, format!("two rules are called {name:?}"), "each name once")
        })
        .collect()
}

fn backends(route: &Item, i: usize, rule: &Value, service: &str) -> Vec<Diagnostic> {
    let refs = array(rule.get("backendRefs"));
    let count = refs.len() + refs.iter().filter(|backend| names_service(backend, service)).count();
    let mut found = Vec::new();
    if count > BACKENDS {
        let what = format!("once split this rule needs {count} backends");
        found.push(limit(route, &format!("/spec/rules/{i}/backendRefs"), what, BACKENDS));
    }
    for (j, backend) in refs.iter().enumerate() {
        if let Some(weight) = backend.get("weight").and_then(Value::as_i64).filter(|w| *w > WEIGHT) {
            let what = format!("once split the weight {weight} is beyond the limit of the Gateway API");
            let pointer = format!("/spec/rules/{i}/backendRefs/{j}/weight");
            found.push(route.error(&pointer, Code::RouteLimit, what, format!("at most {WEIGHT}")));
        }
    }
    found
}

/// What a rule leads to: nothing to the candidate already, what leads to the Service to a port that it has, and nobody for longer than
/// its weight says.
fn leads(case: &Case<'_>, route: &Item, service: &ObjectName) -> Vec<Diagnostic> {
    let (candidate, mut found) = (format!("{service}{SUFFIX}"), Vec::new());
    let ports = case.item(Kind::Service, service).map(|item| ports(&item.object)).unwrap_or_default();
    for (i, rule) in items(&route.object.value()["spec"], "rules").enumerate() {
        let at = format!("/spec/rules/{i}");
        let named = backends_of(&at, rule);
        for (at, _) in named.iter().filter(|(_, backend)| names_service(backend, &candidate)) {
            let what = "this is the Service of the candidate, which is there only during a run";
            let expected = format!("{service} alone; the phases split it");
            found.push(route.error(&format!("{at}/name"), Code::Conflict, what, expected));
        }
        let own = named.iter().filter(|(_, backend)| names_service(backend, service.as_str()));
        for (at, port) in own.filter_map(|(at, backend)| Some((at, backend.get("port")?.as_i64()?))) {
            if !ports.is_empty() && !ports.contains(&port) {
                let all: Vec<String> = ports.iter().map(ToString::to_string).collect();
                let what = format!("the Service {service} has no port {port}");
                found.push(route.error(&format!("{at}/port"), Code::TargetMissing, what, all.join(" or ")));
            }
        }
        if items(rule, "backendRefs").any(|backend| names_service(backend, service.as_str())) {
            found.extend(sticks(route, &at, rule));
        }
    }
    found
}

/// All that a rule sends requests or copies to, each with its place.
fn backends_of<'a>(at: &str, rule: &'a Value) -> Vec<(String, &'a Value)> {
    let refs = items(rule, "backendRefs").enumerate().map(|(j, backend)| (format!("{at}/backendRefs/{j}"), backend));
    let refs: Vec<(String, &Value)> = refs.collect();
    let holders = refs.iter().cloned().chain([(at.to_owned(), rule)]);
    let mirrors = holders.flat_map(|(at, holder)| {
        let filters = items(holder, "filters").enumerate();
        filters.filter_map(move |(k, filter)| {
            let to = filter.pointer("/requestMirror/backendRef")?;
            Some((format!("{at}/filters/{k}/requestMirror/backendRef"), to))
        })
    });
    let mirrors: Vec<_> = mirrors.collect();
    refs.into_iter().chain(mirrors).collect()
}

fn ports(service: &Object) -> Vec<i64> {
    items(&service.value()["spec"], "ports").filter_map(|port| port.get("port")?.as_i64()).collect()
}

/// A gateway keeps whoever has a session where it began, also at weight 0 (GEP-1619).
fn sticks(route: &Item, at: &str, rule: &Value) -> Option<Diagnostic> {
    rule.get("sessionPersistence").filter(|persistence| !persistence.is_null())?;
    let what = "with session persistence users stay at the candidate after its weight was lowered";
    let pointer = format!("{at}/sessionPersistence");
    let diagnostic = route.error(&pointer, Code::RouterLimit, what, "no sessionPersistence");
    Some(diagnostic.help(if route.object.reference().kind == Kind::GrpcRoute {
        "let chosen clients in by headers that they send themselves: expose: {headers: [{x-user-group: beta}]}"
    } else {
        "traffic.sessionAffinity keeps users at the candidate only as long as a run exposes it"
    }))
}

/// A route that names no parent is one that no gateway takes up.
fn unheard(route: &Item) -> Option<Diagnostic> {
    array(route.object.at("/spec/parentRefs")).is_empty().then(|| {
        let what = "no gateway takes up a route without a parent, and a run would wait for that (RouteUnknown)";
        route.error("/spec", Code::RouterLimit, what, "parentRefs: [{name: …}]")
    })
}

/// How many matches the header rule before this rule has: each base match with each alternative, unless the two
/// contradict each other.
fn joined(route: &Item, i: usize, own: &[Value], alternatives: &BTreeSet<HeaderMatch>) -> (usize, Vec<Diagnostic>) {
    let any = [Value::Null];
    let (mut count, mut found) = (0, Vec::new());
    for (j, base) in if own.is_empty() { &any[..] } else { own }.iter().enumerate() {
        let pointer = format!("/spec/rules/{i}/matches/{j}/headers");
        let mut asked = HeaderMatch::new();
        for header in array(base.get("headers")) {
            let text = |field: &str| header.get(field).and_then(Value::as_str).unwrap_or_default();
            let name = text("name").to_ascii_lowercase();
            let value = text("value").to_owned();
            let pattern = text("type") == "RegularExpression";
            let value = if pattern { HeaderValue::Regex { regex: value } } else { HeaderValue::Exact(value) };
            if asked.insert(name.clone(), value).is_some() {
                let what = format!("the header {name:?} stands twice in this match");
                found.push(route.error(&pointer, Code::RouteLimit, what, "each header once"));
            }
        }
        for alternative in alternatives {
            // Where one of the two is a pattern nobody knows which requests would be left to both.
            let is_pattern = |value: &HeaderValue| matches!(value, HeaderValue::Regex { .. });
            let unclear = alternative
                .iter()
                .find(|(name, value)| asked.get(*name).is_some_and(|own| is_pattern(own) || is_pattern(value)));
            if let Some((name, _)) = unclear {
                let what =
                    format!("this match asks for the header {name:?} that a phase uses, and one of them by a pattern");
                found.push(route.error(&pointer, Code::RouteLimit, what, "another header for the phase"));
                continue;
            }
            if alternative.iter().any(|(name, value)| asked.get(name).is_some_and(|own| own != value)) {
                continue;
            }
            count += 1;
            let together = asked.keys().chain(alternative.keys()).collect::<BTreeSet<_>>().len();
            if together > HEADERS {
                let what = format!("with the headers of the phases this match needs {together} headers");
                found.push(limit(route, &pointer, what, HEADERS));
            }
        }
    }
    found.sort();
    found.dedup();
    (count, found)
}
