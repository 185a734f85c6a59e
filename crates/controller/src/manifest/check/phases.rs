//! Phases: named once, each exposing more than the one before, and nothing that the router cannot do.

use super::Case;
use crate::manifest::desired::{By, HeaderMatch, Router, TargetKind};
use crate::manifest::diagnostic::{Code, Diagnostic, quoted};
use crate::manifest::duration::Span;
use crate::manifest::ids::{Percent, StepName};
use crate::manifest::layer::{self, NodeSelector};
use crate::manifest::{expand, raw};
use std::collections::BTreeSet;

/// The most phases that a plan has.
const MOST: usize = 50;
const EITHER: &str = "exactly one of contour, gatewayAPI, gloo, istio, nginx, replicas, service and traefik";

pub(super) fn check(case: &Case<'_>) -> Vec<Diagnostic> {
    let mut found = names(case);
    found.extend(number(case));
    found.extend(router(case));
    found.extend(case.spec.phases.iter().enumerate().flat_map(|(i, phase)| one_way(case, i, &phase.expose)));
    found.extend(order(case));
    found.extend(paced(case));
    found.extend(counted(case));
    found
}

/// Numbers of units where it is no unit of the target that is exposed.
fn counted(case: &Case<'_>) -> Vec<Diagnostic> {
    if case.spec.target.kind.own_router().is_some() {
        return Vec::new();
    }
    let kind = case.spec.target.kind.kind();
    let phases = case.spec.phases.iter().enumerate().filter(|(_, phase)| phase.expose.units.is_some());
    let error = |(i, _)| {
        let what = format!("of a {kind} no pods are moved one after the other that could be counted");
        let found = case.error(&format!("/spec/phases/{i}/expose/units"), Code::RouterLimit, what, "a weight");
        found.help("of a StatefulSet or a DaemonSet it says how many of its pods are new")
    };
    phases.map(error).collect()
}

/// A pace where nothing is moved unit by unit.
fn paced(case: &Case<'_>) -> Option<Diagnostic> {
    let rolling = case.spec.rolling_update.as_ref()?;
    let kind = case.spec.target.kind.kind();
    if case.spec.target.kind == TargetKind::NodeConfig {
        if rolling.pickup() < Span::from_secs(10) {
            let what = "each node would be late as soon as it is told";
            return Some(case.error("/spec/rollingUpdate/pickupDeadline", Code::Schema, what, "at least 10s"));
        }
        let i = rolling.order.iter().position(|selector| NodeSelector::of(selector).is_err())?;
        let (what, expected) = layer::UNSELECTIVE;
        return Some(case.error(&format!("/spec/rollingUpdate/order/{i}"), Code::Schema, what, expected));
    }
    if case.spec.target.kind.own_router().is_some() {
        let field = rolling.of_nodes_alone()?;
        let what = format!("{field} is about nodes, and the target is a {kind}");
        let found = case.error(&format!("/spec/rollingUpdate/{field}"), Code::Conflict, what, "maxUnavailable alone");
        return Some(found.help(format!("with the target NodeConfig there is {field}")));
    }
    let what = format!("of a {kind} no pods are moved one after the other by a rollout");
    let found =
        case.error("/spec/rollingUpdate", Code::Conflict, what, format!("no rollingUpdate with the target {kind}"));
    Some(found.help("of a StatefulSet or a DaemonSet it says how many pods may be away at a time"))
}

/// The name of each phase, and those that ramps make of theirs.
fn names(case: &Case<'_>) -> Vec<Diagnostic> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for (i, phase) in case.spec.phases.iter().enumerate() {
        let mut error = |what: String, expected: String| {
            found.push(case.error(&format!("/spec/phases/{i}/name"), Code::PhaseName, what, expected));
        };
        if StepName::RESERVED.contains(&phase.name.as_str()) {
            let what = format!("{} is what every run calls a step or a request of its own", phase.name);
            error(what, format!("a name other than {}", StepName::RESERVED.join(", ")));
            continue;
        }
        let made = if expand::is_ramp(&phase.expose) { expand::parts(phase) } else { Vec::new() };
        let made: BTreeSet<String> = made.into_iter().map(|part| part.name).collect();
        if let Some(long) = made.iter().find(|name| name.parse::<StepName>().is_err()) {
            let room = long.len() - phase.name.as_str().len();
            let what = format!("this ramp makes a phase called {long}, {} characters", long.len());
            error(what, format!("a name of at most {} characters", StepName::LONGEST - room));
        }
        let mut twice = made.into_iter().chain([phase.name.to_string()]).filter(|name| !seen.insert(name.clone()));
        if let Some(name) = twice.next() {
            error(format!("there are two phases called {name}"), "each name once".to_owned());
        }
    }
    found
}

fn number(case: &Case<'_>) -> Option<Diagnostic> {
    let phases = case.spec.phases.iter().map(|phase| expand::parts(phase).len()).sum::<usize>();
    (phases > MOST).then(|| {
        let what = format!("with one for each weight of their ramps these are {phases} phases");
        case.error("/spec/phases", Code::Schema, what, format!("at most {MOST}"))
    })
}

/// A phase says in one way what it exposes, and a ramp goes up.
fn one_way(case: &Case<'_>, i: usize, expose: &raw::Expose) -> Option<Diagnostic> {
    let raw::Expose { headers, cookies, weight, weights, ramp, mirror, units, preview } = expose;
    let given = [("weight", weight.is_some()), ("weights", !weights.is_empty()), ("ramp", ramp.is_some())];
    let given: Vec<&str> = given.iter().filter(|(_, given)| *given).map(|(name, _)| *name).collect();
    let alone = given.is_empty() && headers.is_empty() && cookies.is_empty() && mirror.is_none() && units.is_none();
    if preview.is_some() && !alone {
        let what = "a preview is for nobody, and this phase lets requests in";
        let pointer = format!("/spec/phases/{i}/expose/preview");
        let diagnostic = case.error(&pointer, Code::Conflict, what, "preview alone");
        return Some(diagnostic.help("make the preview a phase of its own, before this one"));
    }
    if given.len() > 1 {
        let what = format!("{} at once", given.join(" and "));
        let pointer = format!("/spec/phases/{i}/expose");
        return Some(case.error(&pointer, Code::Conflict, what, "one of weight, weights and ramp"));
    }
    let raw::Ramp { step, max } = ramp.filter(|ramp| ramp.max < ramp.step)?;
    let what = format!("the ramp ends at {max}, before its first step of {step}");
    let pointer = format!("/spec/phases/{i}/expose/ramp/max");
    let diagnostic = case.error(&pointer, Code::PhasesGoDown, what, format!("at least {step}"));
    Some(diagnostic.help(format!("for a single share write weight: {max}")))
}

fn router(case: &Case<'_>) -> Vec<Diagnostic> {
    if case.spec.target.kind.own_router().is_some() || case.spec.target.kind == TargetKind::None {
        // It has none, which is told with it.
        return Vec::new();
    }
    let Some(traffic) = &case.spec.traffic else {
        if case.spec.phases.is_empty() {
            return at_once(case);
        }
        let diagnostic = case.error(
            "/spec/phases",
            Code::TrafficMissing,
            "nothing splits requests for these phases",
            "spec.traffic",
        );
        return vec![
            diagnostic.help("add traffic: {replicas: {service: …}}, or gatewayAPI for headers and fine weights"),
        ];
    };
    let Some(router) = case.router() else { return vec![unnamed(case, traffic)] };
    let phases = || case.spec.phases.iter().enumerate();
    match (router.by(), router) {
        (By::Route, Router::Traefik { .. }) => {
            let expected = "a weight, or an ingressRoute in place of the traefikService";
            phases().flat_map(|(i, phase)| untold(case, i, phase, "traefik by a TraefikService", expected)).collect()
        }
        (By::Route, Router::Gloo { .. }) => phases().filter_map(|(i, phase)| uncopied(case, i, phase)).collect(),
        // What a route cannot do is told with it, and no file names a partition.
        (By::Route | By::Units, _) => Vec::new(),
        (By::Pods, _) => phases().flat_map(|(i, phase)| by_pods(case, i, phase)).collect(),
        (By::Selector, _) => phases().flat_map(|(i, phase)| by_service(case, i, phase)).collect(),
    }
}

/// A bake that would never be kept: without a router there is no old version that stays meanwhile.
fn at_once(case: &Case<'_>) -> Vec<Diagnostic> {
    let raw::Promotion { before: _, bake, checks } = &case.spec.promotion;
    let given = [("bake", !bake.is_zero()), ("checks", !checks.is_empty())];
    let given = given.into_iter().filter(|(_, given)| *given);
    let error = |(field, _): (&str, bool)| {
        let what = "without traffic all pods are replaced at once, and nothing bakes";
        let pointer = format!("/spec/promotion/{field}");
        case.error(&pointer, Code::TrafficMissing, what, format!("spec.traffic, or no {field}"))
    };
    given.map(error).collect()
}

/// No router, more than one, or one without a route or with two.
fn unnamed(case: &Case<'_>, traffic: &raw::Traffic) -> Diagnostic {
    let raw::Traffic {
        contour,
        gateway_api,
        gloo,
        istio,
        nginx,
        replicas,
        service,
        traefik,
        settle: _,
        drain: _,
        session_affinity: _,
    } = traffic;
    let routes = |field: &str, some: bool, one: &str| {
        let what = if some { "two routes at once" } else { "no route is named" };
        case.error(&format!("/spec/traffic/{field}"), Code::Schema, what, format!("exactly one of {one}"))
    };
    let others = contour.is_some()
        || gloo.is_some()
        || istio.is_some()
        || nginx.is_some()
        || replicas.is_some()
        || service.is_some();
    match (gateway_api, traefik) {
        (Some(gateway), None) if !others => {
            let found = routes("gatewayAPI", gateway.http_route.is_some(), "httpRoute and grpcRoute");
            found.help("where both come in by one host, an HTTPRoute takes calls of gRPC too")
        }
        (None, Some(traefik)) if !others => {
            routes("traefik", traefik.ingress_route.is_some(), "traefikService and ingressRoute")
        }
        (gateway, traefik) => {
            let some = gateway.is_some() || traefik.is_some() || others;
            let what = if some { "more than one router" } else { "no router is named" };
            case.error("/spec/traffic", Code::Schema, what, EITHER)
        }
    }
}

/// What the router `replicas` cannot do.
fn by_pods(case: &Case<'_>, i: usize, phase: &raw::Phase) -> Vec<Diagnostic> {
    let preview = phase.expose.preview.map(|_| {
        let what = "with the router replicas the candidate's pods serve users from their first second";
        let pointer = format!("/spec/phases/{i}/expose/preview");
        let found = case.error(&pointer, Code::RouterLimit, what, "a weight, or the router service or gatewayAPI");
        found.help("by pods there is one Service for both versions, so that nobody could try out the new one alone")
    });
    unrouted(case, i, phase, "replicas").into_iter().chain(preview).collect()
}

/// What the router `service` cannot do.
fn by_service(case: &Case<'_>, i: usize, phase: &raw::Phase) -> Vec<Diagnostic> {
    let parts = expand::parts(phase);
    let part =
        parts.iter().find_map(|part| part.weight.filter(|w| !w.is_zero() && *w != Percent::ALL).map(|w| (part, w)));
    let part = part.map(|(part, weight)| {
        let what = format!("the router service sends all requests or none, not {weight} percent");
        let expected = "weight: 100, or the router replicas or gatewayAPI";
        case.error(&format!("/spec/phases/{i}/{}", part.at), Code::RouterLimit, what, expected)
    });
    unrouted(case, i, phase, "service").into_iter().chain(part).collect()
}

/// What the router `gloo` cannot do.
fn uncopied(case: &Case<'_>, i: usize, phase: &raw::Phase) -> Option<Diagnostic> {
    phase.expose.mirror.map(|_| {
        let what = "copies are not built for the router gloo";
        let pointer = format!("/spec/phases/{i}/expose/mirror");
        case.error(&pointer, Code::RouterLimit, what, "a weight, or the router contour, gatewayAPI, istio or traefik")
    })
}

/// What takes a route: a Service looks at no request.
fn unrouted(case: &Case<'_>, i: usize, phase: &raw::Phase, router: &str) -> Vec<Diagnostic> {
    let expected = "a weight, or the router gatewayAPI";
    let mirror = phase.expose.mirror.map(|_| {
        let what = format!("the router {router} cannot send a request twice");
        case.error(&format!("/spec/phases/{i}/expose/mirror"), Code::RouterLimit, what, expected)
    });
    untold(case, i, phase, router, expected).into_iter().chain(mirror).collect()
}

/// What takes a look at requests.
fn untold(case: &Case<'_>, i: usize, phase: &raw::Phase, router: &str, expected: &str) -> Vec<Diagnostic> {
    let raw::Expose { headers, cookies, weight: _, weights: _, ramp: _, mirror: _, units: _, preview: _ } =
        &phase.expose;
    let given = [("headers", headers.is_empty()), ("cookies", cookies.is_empty())];
    let given = given.iter().filter(|(_, empty)| !*empty);
    given
        .map(|(field, _)| {
            let what = format!("the router {router} cannot tell requests apart by their {field}");
            case.error(&format!("/spec/phases/{i}/expose/{field}"), Code::RouterLimit, what, expected)
        })
        .collect()
}

fn order(case: &Case<'_>) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let (mut weight, mut mirror, mut units, mut known) = (Percent::ZERO, Percent::ZERO, 0, BTreeSet::new());
    for (i, phase) in case.spec.phases.iter().enumerate() {
        if phase.expose.preview.is_some() {
            if weight.max(mirror) > Percent::ZERO || !known.is_empty() {
                let what = format!("phase {} exposes nothing, and the phases before it let users in", phase.name);
                let pointer = format!("/spec/phases/{i}/expose/preview");
                found.push(case.error(&pointer, Code::PhasesGoDown, what, "previews before all other phases"));
            }
            continue;
        }
        let copies = phase.expose.mirror.unwrap_or(mirror);
        if copies < mirror {
            let what = format!("the mirror goes down from {mirror} to {copies}");
            let pointer = format!("/spec/phases/{i}/expose/mirror");
            found.push(case.error(&pointer, Code::PhasesGoDown, what, format!("a mirror of more than {mirror}")));
        }
        let mut grows = copies != mirror;
        mirror = copies.max(mirror);
        let count = phase.expose.units.unwrap_or(units);
        if count < units {
            let what = format!("the number of units goes down from {units} to {count}");
            let pointer = format!("/spec/phases/{i}/expose/units");
            found.push(case.error(&pointer, Code::PhasesGoDown, what, format!("more than {units} units")));
        }
        grows |= count != units;
        units = count.max(units);
        for (at, alternative) in expand::alternatives(&phase.expose) {
            match alternative {
                // Whoever meets all of these headers meets a part of them.
                Ok(headers) => {
                    let narrower = known
                        .iter()
                        .any(|wider: &HeaderMatch| wider.iter().all(|(name, value)| headers.get(name) == Some(value)));
                    grows |= !narrower;
                    known.insert(headers);
                }
                Err(name) => {
                    let what = format!("the header {} stands here twice", quoted(&name));
                    let pointer = format!("/spec/phases/{i}/{at}");
                    found.push(case.error(&pointer, Code::DuplicateKey, what, "each header once, whatever its case"));
                }
            }
        }
        for part in expand::parts(phase) {
            let next = part.weight.unwrap_or(weight);
            if next < weight {
                let what = format!("the weight goes down from {weight} to {next}");
                let expected = format!("a weight of more than {weight}");
                let pointer = format!("/spec/phases/{i}/{}", part.at);
                found.push(case.error(&pointer, Code::PhasesGoDown, what, expected));
                break;
            }
            // Once all requests are let in, headers let in nobody else, and there is nothing left to copy.
            if next == weight && (!grows || weight == Percent::ALL) {
                found.push(nothing_new(case, i, &part.name, weight));
                break;
            }
            (weight, grows) = (next, false);
        }
    }
    found
}

fn nothing_new(case: &Case<'_>, i: usize, name: &str, weight: Percent) -> Diagnostic {
    let what = format!("phase {name} exposes nothing that was not exposed before");
    let expected = if weight == Percent::ALL {
        "no phase after the one that lets all requests in".to_owned()
    } else {
        format!("a weight of more than {weight}, or headers that let others in")
    };
    case.error(&format!("/spec/phases/{i}/expose"), Code::PhasesGoDown, what, expected)
}
