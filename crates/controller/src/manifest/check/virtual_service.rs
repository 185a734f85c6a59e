//! The VirtualService of the router `istio`: whether all that it sends to the Service can be split.

use super::route::WEIGHT;
use super::{Case, SUFFIX};
use crate::manifest::desired::Router;
use crate::manifest::diagnostic::{Code, Diagnostic};
use crate::manifest::ids::ObjectName;
use crate::manifest::object::{Kind, items};
use crate::manifest::set::Item;
use serde_json::Value;

pub(super) fn check(case: &Case<'_>) -> Vec<Diagnostic> {
    let Some(Router::Istio { virtual_service, service }) = case.router() else { return Vec::new() };
    let route = match case.require("/spec/traffic/istio/virtualService", Kind::VirtualService, &virtual_service) {
        Ok(route) => route,
        Err(missing) => return missing,
    };
    let mut found = protocols(route);
    found.extend(leads(case, route, &service));
    found.extend(heavy(case, route, &service));
    if case.spec.phases.iter().any(|phase| phase.expose.mirror.is_some()) {
        found.extend(mirrors(case, route, &service));
    }
    found
}

/// Connections have no headers, and their routes are no part of a split.
fn protocols(route: &Item) -> Vec<Diagnostic> {
    let spec = &route.object.value()["spec"];
    let sections = ["tcp", "tls"].into_iter().filter(|section| items(spec, section).next().is_some());
    let error = |section: &str| {
        let what = format!("the routes under {section} are for connections, and no phase splits these");
        route.error(
            &format!("/spec/{section}"),
            Code::RouterLimit,
            what,
            "routes under http alone, or the router replicas or service",
        )
    };
    sections.map(error).collect()
}

/// Routes that send to the Service, and none that sends to the candidate already.
fn leads(case: &Case<'_>, route: &Item, service: &ObjectName) -> Vec<Diagnostic> {
    let routes = items(&route.object.value()["spec"], "http").enumerate();
    let hosts: Vec<(String, &Value)> = routes
        .flat_map(|(i, one)| {
            let entries = items(one, "route").enumerate();
            entries.map(move |(j, entry)| {
                (format!("/spec/http/{i}/route/{j}/destination/host"), &entry["destination"]["host"])
            })
        })
        .collect();
    let mut found = Vec::new();
    if !hosts.iter().any(|(_, host)| is(case, host, service.as_str())) {
        let what = format!("no route of this VirtualService sends to the Service {service}");
        let expected = format!("the destination host {service}");
        found.push(route.error("/spec/http", Code::TargetMissing, what, expected));
    }
    let copied = mirrored(route);
    for (at, _) in hosts.iter().chain(&copied).filter(|(_, host)| is(case, host, &format!("{service}{SUFFIX}"))) {
        let what = "this is the Service of the candidate, which is there only during a run";
        found.push(route.error(at, Code::Conflict, what, format!("{service} alone; the phases split it")));
    }
    found
}

/// What requests are copied to, each with its place.
fn mirrored(route: &Item) -> Vec<(String, &Value)> {
    let routes = items(&route.object.value()["spec"], "http").enumerate();
    let all = routes.flat_map(|(i, one)| {
        let several = items(one, "mirrors").enumerate();
        let several = several
            .map(move |(j, one)| (format!("/spec/http/{i}/mirrors/{j}/destination/host"), &one["destination"]["host"]));
        several.chain([(format!("/spec/http/{i}/mirror/host"), &one["mirror"]["host"])])
    });
    all.collect()
}

/// Weights are multiplied as those of a route of the Gateway API, up to the same limit. One that stands alone is none.
fn heavy(case: &Case<'_>, route: &Item, service: &ObjectName) -> Vec<Diagnostic> {
    let routes = items(&route.object.value()["spec"], "http").enumerate();
    let splits =
        |one: &Value| items(one, "route").any(|entry| is(case, &entry["destination"]["host"], service.as_str()));
    let weights = routes.filter(|(_, one)| splits(one) && items(one, "route").count() > 1).flat_map(|(i, one)| {
        let entries = items(one, "route").enumerate();
        entries
            .filter_map(move |(j, entry)| Some((format!("/spec/http/{i}/route/{j}/weight"), entry["weight"].as_i64()?)))
    });
    weights
        .filter(|(_, weight)| *weight > WEIGHT)
        .map(|(at, weight)| {
            let what = format!("the weight {weight} cannot be split exactly");
            route.error(&at, Code::RouteLimit, what, format!("at most {WEIGHT}"))
        })
        .collect()
}

/// A route takes `mirror` or `mirrors`, not both, and the phases' copies are one more.
fn mirrors(case: &Case<'_>, route: &Item, service: &ObjectName) -> Vec<Diagnostic> {
    let routes = items(&route.object.value()["spec"], "http").enumerate();
    let splits =
        |one: &Value| items(one, "route").any(|entry| is(case, &entry["destination"]["host"], service.as_str()));
    let own = routes.filter(|(_, one)| one.get("mirror").is_some() && splits(one));
    own.map(|(i, _)| {
        let what = "this route mirrors requests already, and a phase mirrors them to the candidate";
        route.error(&format!("/spec/http/{i}/mirror"), Code::RouterLimit, what, "the list mirrors, which takes several")
    })
    .collect()
}

/// Whether a host is that of a Service of the rollout's namespace: a short name, or one that names the namespace too.
pub(super) fn is(case: &Case<'_>, host: &Value, service: &str) -> bool {
    let long = format!("{service}.{}", case.namespace);
    host.as_str().is_some_and(|host| {
        [service, &long, &format!("{long}.svc"), &format!("{long}.svc.cluster.local")].contains(&host)
    })
}
