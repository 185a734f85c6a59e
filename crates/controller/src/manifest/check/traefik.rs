//! The TraefikService or IngressRoute of the router `traefik`: whether it has shares to split, whether requests come by it, and whether
//! whoever sends certain headers can be led by a route of their own.

use super::route::WEIGHT;
use super::{Case, Findings, SUFFIX, pods};
use crate::manifest::desired::{HeaderMatch, HeaderValue, Router};
use crate::manifest::diagnostic::{Code, Diagnostic};
use crate::manifest::expand;
use crate::manifest::object::{Kind, items};
use crate::manifest::set::Item;
use crate::manifest::traefik::{copier_suffix, priority, priority_before};
use serde_json::Value;

pub(super) fn check(case: &Case<'_>, findings: &mut Findings) {
    let Some(router @ (Router::Traefik { .. } | Router::IngressRoute { .. })) = case.router() else { return };
    let (Some((kind, name)), Some(service)) = (router.route(), router.service()) else { return };
    let service = service.as_str();
    match case.require(&router.spelling().route, kind, name) {
        Ok(item) => {
            findings.errors.extend(leads(item, service));
            findings.errors.extend(heavy(item));
            findings.errors.extend(sticks(item));
            findings.errors.extend(copied(case, item, service));
            if kind == Kind::IngressRoute {
                findings.errors.extend(unquoted(case));
                findings.errors.extend(told_apart(case, item, service));
            }
        }
        Err(missing) => findings.errors.extend(missing),
    }
    let others = case.of_kind(Kind::IngressRoute).filter(|item| case.route().as_ref() != Some(item.object.reference()));
    findings.warnings.extend(others.flat_map(|route| past(route, service, &format!("{kind} {name}"))));
}

fn is(entry: &Value, service: &str) -> bool {
    let text = |key: &str| entry.get(key).and_then(Value::as_str);
    text("name") == Some(service) && text("kind").unwrap_or("Service") == "Service"
}

/// What requests are led to, each with its place.
fn entries(item: &Item) -> Vec<(String, &Value)> {
    let spec = &item.object.value()["spec"];
    let weighted = items(&spec["weighted"], "services").enumerate();
    let weighted = weighted.map(|(i, entry)| (format!("/spec/weighted/services/{i}"), entry));
    let routes = items(spec, "routes").enumerate().flat_map(|(i, route)| {
        items(route, "services").enumerate().map(move |(j, entry)| (format!("/spec/routes/{i}/services/{j}"), entry))
    });
    weighted.chain(routes).collect()
}

/// The entries that are the Service, each with its place.
pub(super) fn leading<'a>(item: &'a Item, service: &str) -> Vec<(String, &'a Value)> {
    entries(item).into_iter().filter(|(_, entry)| is(entry, service)).collect()
}

/// An entry for the Service, and none for the candidate's.
fn leads(item: &Item, service: &str) -> Vec<Diagnostic> {
    let entries = entries(item);
    let mut found = Vec::new();
    if !entries.iter().any(|(_, entry)| is(entry, service)) {
        let (what, expected) = if item.object.reference().kind == Kind::IngressRoute {
            ("route of this IngressRoute leads to", format!("services: [{{name: {service}, port: …}}]"))
        } else {
            let expected = format!("weighted: {{services: [{{name: {service}, port: …}}]}}");
            ("weighted service of this TraefikService is", expected)
        };
        let what = format!("no {what} the Service {service}");
        found.push(item.error("/spec", Code::TargetMissing, what, expected));
    }
    let candidate = format!("{service}{SUFFIX}");
    for (at, _) in entries.iter().filter(|(_, entry)| is(entry, &candidate)) {
        let what = "this is the Service of the candidate, which is there only during a run";
        let expected = format!("{service} alone; the phases split it");
        found.push(item.error(&format!("{at}/name"), Code::Conflict, what, expected));
    }
    found.extend(read_otherwise(item, service, &entries));
    found
}

/// What a split that is written there would not be read back from.
fn read_otherwise(item: &Item, service: &str, entries: &[(String, &Value)]) -> Vec<Diagnostic> {
    let route = item.object.reference();
    let copier = format!("{}{}", route.name, copier_suffix(route.kind));
    let copies = entries.iter().filter(|(_, entry)| entry["kind"] == "TraefikService" && entry["name"] == *copier);
    let mut found: Vec<Diagnostic> = copies
        .map(|(at, _)| {
            let what = format!("what leads to the TraefikService {copier} is read as requests that a phase copies");
            item.error(&format!("{at}/name"), Code::Conflict, what, "a TraefikService of another name")
        })
        .collect();
    let mut own = entries.iter().filter(|(_, entry)| is(entry, service)).peekable();
    let first = own.peek().map(|(at, _)| at.clone());
    if let Some(at) = first.filter(|_| own.all(|(_, entry)| entry["weight"] == 0)) {
        let what = format!("the Service {service} gets no request here, so that no share of it can be split");
        found.push(item.error(&format!("{at}/weight"), Code::RouterLimit, what, "a weight above 0"));
    }
    found
}

/// Weights are multiplied as those of a route of the Gateway API, up to the same limit.
fn heavy(item: &Item) -> Vec<Diagnostic> {
    let weights = entries(item).into_iter().filter_map(|(at, entry)| Some((at, entry.get("weight")?.as_i64()?)));
    weights
        .filter(|(_, weight)| *weight > WEIGHT)
        .map(|(at, weight)| {
            let what = format!("the weight {weight} cannot be split exactly");
            item.error(&format!("{at}/weight"), Code::RouterLimit, what, format!("at most {WEIGHT}"))
        })
        .collect()
}

/// A cookie that leads to the candidate's Service does so in the next run too, and one that leads to stable's is stronger than weights.
fn sticks(item: &Item) -> Option<Diagnostic> {
    item.object.at("/spec/weighted/sticky").map(|_| {
        let what = "with a sticky cookie here users stay where they were, whatever the weights of phases are";
        let expected = "no sticky beside weighted services; at a service of its own it keeps users at a pod";
        item.error("/spec/weighted/sticky", Code::RouterLimit, what, expected)
    })
}

/// One TraefikService makes the copies of all requests, so that all of them have to be led to the Service in the same way.
fn copied(case: &Case<'_>, item: &Item, service: &str) -> Vec<Diagnostic> {
    if case.spec.phases.iter().all(|phase| phase.expose.mirror.is_none()) {
        return Vec::new();
    }
    let but_weight = |entry: &Value| {
        let mut fields = entry.as_object().cloned().unwrap_or_default();
        fields.remove("weight");
        fields
    };
    let entries = entries(item);
    let own: Vec<_> = entries.iter().filter(|(_, entry)| is(entry, service)).collect();
    let first = own.first().map(|(_, entry)| but_weight(entry));
    let other = own.iter().find(|(_, entry)| Some(but_weight(entry)) != first);
    let other = other.map(|(at, _)| {
        let what = format!("a phase copies requests, and this leads them to {service} otherwise than the first does");
        item.error(at, Code::RouterLimit, what, "the same but for the weight")
    });
    let suffix = copier_suffix(item.object.reference().kind);
    other.into_iter().chain(pods::name_beside(case, item, Kind::TraefikService, suffix)).collect()
}

/// Names and values of headers stand between backticks in rules.
fn unquoted(case: &Case<'_>) -> Vec<Diagnostic> {
    let ticked = |headers: &HeaderMatch| {
        headers.iter().any(|(name, value)| match value {
            HeaderValue::Exact(text) | HeaderValue::Regex { regex: text } => name.contains('`') || text.contains('`'),
        })
    };
    let phases = case.spec.phases.iter().enumerate();
    let all = phases.flat_map(|(i, phase)| expand::alternatives(&phase.expose).map(move |(at, it)| (i, at, it)));
    all.filter(|(_, _, headers)| headers.as_ref().is_ok_and(ticked))
        .map(|(i, at, _)| {
            let what = "a backtick ends a text in Traefik's rules";
            case.error(&format!("/spec/phases/{i}/{at}"), Code::RouterLimit, what, "names and values without backticks")
        })
        .collect()
}

/// The route for those who send a header has the priority after that of the route that they would come by.
fn told_apart(case: &Case<'_>, item: &Item, service: &str) -> Vec<Diagnostic> {
    if case.spec.phases.iter().all(|phase| expand::alternatives(&phase.expose).next().is_none()) {
        return Vec::new();
    }
    let routes: Vec<&Value> = items(&item.object.value()["spec"], "routes").collect();
    let mut found = Vec::new();
    let leading =
        routes.iter().enumerate().filter(|(_, route)| items(route, "services").any(|entry| is(entry, service)));
    for (i, route) in leading {
        if route["syntax"] == "v2" {
            let what = "the rules of Traefik 2 ask for headers in other words than those that a phase is written in";
            let pointer = format!("/spec/routes/{i}/syntax");
            found.push(item.error(&pointer, Code::RouterLimit, what, "a rule of Traefik 3, and no syntax"));
        }
        let next = priority_before(route);
        if routes.iter().any(|other| priority(other) == next) {
            let what = format!(
                "the route for those who send the headers of a phase goes before this one by the priority {next}, which another has too"
            );
            let expected = "a priority after which the next number is free; without one it is the length of the rule";
            found.push(item.error(&format!("/spec/routes/{i}"), Code::RouterLimit, what, expected));
        }
    }
    found
}

/// Routes that lead to the Service past what is split.
fn past(route: &Item, service: &str, split: &str) -> Vec<Diagnostic> {
    let straight = entries(route).into_iter().filter(|(_, entry)| is(entry, service));
    straight
        .map(|(at, _)| {
            let what = format!("requests of this route go to the Service {service} past the {split}");
            let expected = "what is split in its place";
            route.error(&at, Code::RouterLimit, what, expected)
        })
        .collect()
}
