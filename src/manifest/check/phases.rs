//! Phases: named once, each exposing more than the one before, and nothing that the router cannot do.

use super::Case;
use crate::manifest::diagnostic::{Code, Diagnostic, quoted};
use crate::manifest::ids::{Percent, StepName};
use crate::manifest::raw;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn check(case: &Case<'_>) -> Vec<Diagnostic> {
    let mut found = names(case);
    found.extend(router(case));
    found.extend(order(case));
    found
}

fn names(case: &Case<'_>) -> Vec<Diagnostic> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for (i, phase) in case.spec.phases.iter().enumerate() {
        let pointer = format!("/spec/phases/{i}/name");
        if StepName::RESERVED.contains(&phase.name.as_str()) {
            let what = format!("every run has a step called {} already", phase.name);
            let expected = format!("a name other than {}", StepName::RESERVED.join(", "));
            found.push(case.error(&pointer, Code::PhaseName, what, expected));
        } else if !seen.insert(&phase.name) {
            let what = format!("there are two phases called {}", phase.name);
            found.push(case.error(&pointer, Code::PhaseName, what, "each name once"));
        }
    }
    found
}

fn router(case: &Case<'_>) -> Vec<Diagnostic> {
    let either = "exactly one of gatewayAPI, replicas and service";
    let Some(traffic) = &case.spec.traffic else {
        if case.spec.phases.is_empty() {
            return Vec::new();
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
    match (&traffic.gateway_api, &traffic.replicas, &traffic.service) {
        (None, None, None) => vec![case.error("/spec/traffic", Code::Schema, "no router is named", either)],
        (Some(_), None, None) => Vec::new(),
        (None, Some(_), None) => headers(case, "replicas"),
        (None, None, Some(_)) => headers(case, "service").into_iter().chain(shares(case)).collect(),
        _ => vec![case.error("/spec/traffic", Code::Schema, "more than one router", either)],
    }
}

/// Headers of phases, for a router that looks at none.
fn headers(case: &Case<'_>, router: &str) -> Vec<Diagnostic> {
    let with_headers = (0..case.spec.phases.len()).filter(|i| !case.spec.phases[*i].expose.headers.is_empty());
    let told = with_headers.map(|i| {
        let pointer = format!("/spec/phases/{i}/expose/headers");
        let what = format!("the router {router} cannot tell requests apart by their headers");
        case.error(&pointer, Code::RouterLimit, what, "a weight, or the router gatewayAPI")
    });
    told.collect()
}

/// Weights of phases that are neither nothing nor all, for a Service that leads to one version at a time.
fn shares(case: &Case<'_>) -> Vec<Diagnostic> {
    let weights = case.spec.phases.iter().enumerate().filter_map(|(i, phase)| Some((i, phase.expose.weight?)));
    let parts = weights.filter(|(_, weight)| !matches!(*weight, Percent::ZERO | Percent::ALL));
    let told = parts.map(|(i, weight)| {
        let what = format!("the router service sends all requests or none, not {weight} %");
        let expected = "weight: 100, or the router replicas or gatewayAPI";
        case.error(&format!("/spec/phases/{i}/expose/weight"), Code::RouterLimit, what, expected)
    });
    told.collect()
}

fn order(case: &Case<'_>) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let (mut weight, mut known) = (Percent::ZERO, BTreeSet::new());
    for (i, phase) in case.spec.phases.iter().enumerate() {
        let mut grows = false;
        for (j, headers) in phase.expose.headers.iter().enumerate() {
            let pointer = format!("/spec/phases/{i}/expose/headers/{j}");
            match folded(headers) {
                // Whoever meets all of these headers meets a part of them.
                Ok(headers) => {
                    let narrower = known.iter().any(|wider: &BTreeMap<_, _>| {
                        wider.iter().all(|(name, value)| headers.get(name) == Some(value))
                    });
                    grows |= !narrower;
                    known.insert(headers);
                }
                Err(name) => {
                    let what = format!("the header {} stands here twice", quoted(&name));
                    found.push(case.error(&pointer, Code::DuplicateKey, what, "each header once, whatever its case"));
                }
            }
        }
        let pointer = format!("/spec/phases/{i}/expose/weight");
        if let Some(next) = phase.expose.weight {
            if next < weight {
                let what = format!("the weight goes down from {weight} to {next}");
                let expected = format!("a weight of more than {weight}");
                found.push(case.error(&pointer, Code::PhasesGoDown, what, expected));
                continue;
            }
            grows |= next > weight;
            weight = next;
        }
        if !grows {
            let what = format!("phase {} exposes nothing that was not exposed before", phase.name);
            let expected = format!("a weight of more than {weight}, or headers that let others in");
            found.push(case.error(&format!("/spec/phases/{i}/expose"), Code::PhasesGoDown, what, expected));
        }
    }
    found
}

/// Header names in lower case, as they are compared; the name that stands twice if one does.
pub(in crate::manifest) fn folded(raw::Headers(headers): &raw::Headers) -> Result<BTreeMap<String, String>, String> {
    let mut all = BTreeMap::new();
    for (name, value) in headers {
        if all.insert(name.to_ascii_lowercase(), value.clone()).is_some() {
            return Err(name.clone());
        }
    }
    Ok(all)
}
