//! The TraefikService of the router `traefik`: whether it has shares to split, and whether requests come by it.

use super::{Case, Findings, SUFFIX};
use crate::manifest::desired::Router;
use crate::manifest::diagnostic::{Code, Diagnostic};
use crate::manifest::object::{Kind, items};
use crate::manifest::set::Item;
use serde_json::Value;

pub(super) fn check(case: &Case<'_>, findings: &mut Findings) {
    let Some(router @ Router::Traefik { .. }) = case.router() else { return };
    let (Some((kind, name)), Some(service)) = (router.route(), router.service()) else { return };
    let service = service.as_str();
    match case.require(router.spelling().route, kind, name) {
        Ok(item) => {
            findings.errors.extend(leads(item, service));
            findings.errors.extend(sticks(item));
        }
        Err(missing) => findings.errors.extend(missing),
    }
    findings.warnings.extend(case.of_kind(Kind::IngressRoute).flat_map(|route| past(route, service, name.as_str())));
}

fn is(entry: &Value, service: &str) -> bool {
    let text = |key: &str| entry.get(key).and_then(Value::as_str);
    text("name") == Some(service) && text("kind").unwrap_or("Service") == "Service"
}

/// A weighted entry for the Service, and none for the candidate's.
fn leads(item: &Item, service: &str) -> Vec<Diagnostic> {
    let entries: Vec<&Value> = items(&item.object.value()["spec"]["weighted"], "services").collect();
    let mut found = Vec::new();
    if !entries.iter().any(|entry| is(entry, service)) {
        let what = format!("no weighted service of this TraefikService is the Service {service}");
        let expected = format!("weighted: {{services: [{{name: {service}, port: …}}]}}");
        found.push(item.error("/spec", Code::TargetMissing, what, expected));
    }
    let candidate = format!("{service}{SUFFIX}");
    for (i, _) in entries.iter().enumerate().filter(|(_, entry)| is(entry, &candidate)) {
        let what = "this is the Service of the candidate, which is there only during a run";
        let pointer = format!("/spec/weighted/services/{i}/name");
        found.push(item.error(&pointer, Code::Conflict, what, format!("{service} alone; the phases split it")));
    }
    found
}

/// A cookie that leads to the candidate's Service does so in the next run too, and one that leads to stable's is stronger than weights.
fn sticks(item: &Item) -> Option<Diagnostic> {
    item.object.at("/spec/weighted/sticky").map(|_| {
        let what = "with a sticky cookie here users stay where they were, whatever the weights of phases are";
        let expected = "no sticky beside weighted services; at a service of its own it keeps users at a pod";
        item.error("/spec/weighted/sticky", Code::RouterLimit, what, expected)
    })
}

/// Routes that lead to the Service past what is split.
fn past(route: &Item, service: &str, split: &str) -> Vec<Diagnostic> {
    let routes = items(&route.object.value()["spec"], "routes").enumerate();
    let entries = routes.flat_map(|(i, one)| items(one, "services").enumerate().map(move |(j, entry)| (i, j, entry)));
    let straight = entries.filter(|(_, _, entry)| is(entry, service));
    straight
        .map(|(i, j, _)| {
            let what = format!("requests of this route go to the Service {service} past the TraefikService {split}");
            let expected = format!("{{name: {split}, kind: TraefikService}}");
            route.error(&format!("/spec/routes/{i}/services/{j}"), Code::RouterLimit, what, expected)
        })
        .collect()
}
