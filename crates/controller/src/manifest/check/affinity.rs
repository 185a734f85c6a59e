//! Session affinity: whether the router has it, and whether its cookie is nobody else's.

use super::Case;
use crate::manifest::desired::{HeaderMatch, Router, SessionAffinity};
use crate::manifest::diagnostic::{Code, Diagnostic};
use crate::manifest::ids::RunId;
use crate::manifest::object::items;
use crate::manifest::set::Item;
use crate::manifest::{cookie, expand};
use serde_json::Value;

const AT: &str = "/spec/traffic/sessionAffinity";
const COOKIE: &str = "set-cookie";

pub(super) fn check(case: &Case<'_>) -> Vec<Diagnostic> {
    let Some(affinity) = affinity(case) else { return Vec::new() };
    let mut found = Vec::new();
    if let Some((what, help)) = case.router().as_ref().and_then(lacks) {
        let expected = "no sessionAffinity, or traffic.gatewayAPI with an httpRoute, or traffic.istio";
        found.push(case.error(AT, Code::RouterLimit, what, expected).help(help));
    }
    if affinity.max_age.is_zero() {
        let what = "a cookie that lasts no time keeps nobody";
        found.push(case.error(&format!("{AT}/maxAge"), Code::Schema, what, "a duration such as 24h"));
    }
    for (i, phase) in case.spec.phases.iter().enumerate() {
        let asked = expand::alternatives(&phase.expose).filter_map(|(at, headers)| Some((at, headers.ok()?)));
        let same = |headers: &HeaderMatch| cookie::named(headers).is_some_and(|(name, _)| name == affinity.cookie);
        found.extend(asked.filter(|(_, headers)| same(headers)).map(|(at, _)| {
            let what = format!("the cookie {} tells who got the candidate by weight", affinity.cookie);
            let pointer = format!("/spec/phases/{i}/{at}");
            case.error(&pointer, Code::Conflict, what, "a cookie of another name, here or in sessionAffinity")
        }));
    }
    found.extend(routes(case));
    found
}

/// Those who will have a run's cookie, as far as limits of routes count them.
pub(super) fn holders(case: &Case<'_>) -> Option<HeaderMatch> {
    affinity(case).map(|affinity| affinity.holders(&RunId::zero()))
}

fn affinity<'a>(case: &Case<'a>) -> Option<&'a SessionAffinity> {
    case.spec.traffic.as_ref()?.session_affinity.as_ref()
}

/// Why a router does not have it, and what people can do.
fn lacks(router: &Router) -> Option<(&'static str, &'static str)> {
    match router {
        Router::GatewayApi { .. } | Router::Istio { .. } => None,
        Router::Grpc { .. } => Some((
            "gRPC clients keep no cookies",
            "let chosen clients in by headers that they send themselves: expose: {headers: [{x-user-group: beta}]}",
        )),
        Router::Nginx { .. } => Some((
            "with ingress-nginx a cookie keeps users at stable too, also at weight 100, and at the candidate of the next run",
            "let chosen users in by a cookie that the application sets: expose: {cookies: [{canary: always}]}",
        )),
        Router::Traefik { .. } | Router::IngressRoute { .. } => Some((
            "with Traefik a cookie keeps users at stable too, and at the candidate of the next run",
            "with Traefik as a gateway of the Gateway API there is traffic.gatewayAPI",
        )),
        Router::Contour { .. } => Some((
            "with Contour a cookie of a weight would be one more setting of each service, which is not built",
            "let chosen users in by a cookie that the application sets: expose: {cookies: [{canary: always}]}",
        )),
        Router::Gloo { .. } => Some((
            "with Gloo a cookie of a weight would be one more setting of each destination, which is not built",
            "let chosen users in by a cookie that the application sets: expose: {cookies: [{canary: always}]}",
        )),
        Router::Replicas { .. } | Router::Service { .. } | Router::Units(_) => Some((
            "this router looks at no request, so it cannot tell who was at the candidate before",
            "a Service's sessionAffinity: ClientIP keeps an address at one pod, whatever its version",
        )),
    }
}

/// Where the route itself says what becomes of the header by which the cookie is set.
fn routes(case: &Case<'_>) -> Vec<Diagnostic> {
    let Some(route) = case.route().and_then(|route| case.item(route.kind, &route.name)) else { return Vec::new() };
    let spec = &route.object.value()["spec"];
    let (rules, backends) = if spec.get("http").is_some() { ("http", "route") } else { ("rules", "backendRefs") };
    let mut found = Vec::new();
    for (i, rule) in items(spec, rules).enumerate() {
        let at = format!("/spec/{rules}/{i}");
        found.extend(sets(route, &at, rule, &["set", "remove"]));
        for (j, backend) in items(rule, backends).enumerate() {
            found.extend(sets(route, &format!("{at}/{backends}/{j}"), backend, &["add", "set", "remove"]));
        }
    }
    found
}

/// What a rule or a backend does to the header, by these verbs.
fn sets(route: &Item, at: &str, of: &Value, verbs: &[&str]) -> Option<Diagnostic> {
    let filters = items(of, "filters").filter_map(|filter| filter.get("responseHeaderModifier"));
    let named = |list: &Value| match list {
        // Istio has a mapping, or a list of names; the Gateway API lists with names, or of names.
        Value::Object(headers) => headers.keys().any(|name| name.eq_ignore_ascii_case(COOKIE)),
        Value::Array(headers) => headers.iter().any(|header| {
            let name = header.get("name").unwrap_or(header).as_str();
            name.is_some_and(|name| name.eq_ignore_ascii_case(COOKIE))
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    };
    let mut modifiers = filters.chain(of.pointer("/headers/response"));
    let taken = modifiers.any(|modifier| verbs.iter().filter_map(|verb| modifier.get(verb)).any(named));
    taken.then(|| {
        let what = "the cookie of sessionAffinity is set by Set-Cookie, which is changed here";
        route.error(at, Code::Conflict, what, "no Set-Cookie here, or no sessionAffinity")
    })
}
