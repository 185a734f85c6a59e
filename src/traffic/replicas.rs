//! The router `replicas`: one Service selects the pods of both roles, and the weight is how many of them are the
//! candidate's. At 100 the Service's selector asks for the candidate's pods alone.
//!
//! The share is that of `spec.replicas`, not of ready pods: candidate pods that fail only lower it.

use super::{Seen, Standing, View, candidate_of};
use crate::manifest::ids::{ObjectName, Percent, PodsDigest};
use crate::manifest::object::{Kind, Object, PODS, items, section};
use crate::record::posture::Split;
use crate::target::layout::{pod_labels, with_replicas};
use serde_json::Value;
use std::collections::BTreeSet;

/// How many candidate pods stand for `weight` beside `baseline` stable ones: ⌊baseline × w / (100 − w)⌋, so that their
/// share never exceeds the weight; as many as stable at 100.
#[must_use]
pub fn candidate_replicas(baseline: u32, weight: Percent) -> u32 {
    let weight = u64::from(weight.get());
    let pods = (u64::from(baseline) * weight).checked_div(100 - weight);
    pods.map_or(baseline, |pods| u32::try_from(pods).unwrap_or(u32::MAX))
}

/// The share of `candidate` pods among all, rounded up.
#[must_use]
pub fn weight_of(baseline: u32, candidate: u32) -> Percent {
    let all = u64::from(baseline) + u64::from(candidate);
    if candidate == 0 { Percent::ZERO } else { percent((u64::from(candidate) * 100).div_ceil(all)) }
}

/// What [`read`] shows once `split` is in force: the same at 0 and 100, else at most its weight.
#[must_use]
pub fn reachable(baseline: u32, split: &Split) -> Split {
    let weight = match split.weight {
        Percent::ALL => Percent::ALL,
        weight => weight_of(baseline, candidate_replicas(baseline, weight)),
    };
    Split { weight, ..Split::stable() }
}

/// The Service of the manifests; at 100 its selector also asks for the candidate's pods.
#[must_use]
pub fn render(service: &Object, split: &Split, candidate: &PodsDigest) -> Object {
    let mut service = service.clone();
    if split.weight == Percent::ALL {
        section(service.value_mut(), &["spec", "selector"]).insert(PODS.to_owned(), candidate.as_str().into());
    }
    service
}

/// What split the Service and the candidate's size show.
#[must_use]
pub fn read(view: &View<'_>, service: &ObjectName) -> Seen {
    let candidate = candidate(view);
    let asked = view.live.find(Kind::Service, view.namespace, service).and_then(asked_pods);
    let pods = candidate.and_then(|c| c.at("/spec/template/metadata/labels")?.get(PODS)?.as_str());
    match (asked, pods) {
        (Some(asked), Some(pods)) if asked == pods => Seen::Split(Split { weight: Percent::ALL, ..Split::stable() }),
        (Some(asked), _) => Seen::Foreign(format!(
            "Service {service} asks for pods with {PODS}={asked}, and the candidate's Deployment has none of these"
        )),
        (None, _) => {
            let weight = weight_of(view.baseline, candidate.map_or(0, size));
            Seen::Split(Split { weight, ..Split::stable() })
        }
    }
}

/// The live Service, for pods of both roles.
#[must_use]
pub fn without_pods(service: &Object) -> Object {
    let mut service = service.clone();
    if let Some(selector) = service.value_mut().pointer_mut("/spec/selector").and_then(Value::as_object_mut) {
        selector.shift_remove(PODS);
    }
    service
}

/// The candidate's live Deployment without pods.
#[must_use]
pub fn emptied(candidate: &Object) -> Object {
    with_replicas(candidate.clone(), Some(0))
}

/// Effective once the Service's endpoints have followed: at 100 exactly the candidate's ready pods, else those of both
/// Deployments, as of statuses that have seen the present generation (requirements C-33, X-15).
#[must_use]
pub fn standing(view: &View<'_>, service: &ObjectName) -> Standing {
    let not_yet = |why: String| Standing::NotYet { why };
    let Some(live) = view.live.find(Kind::Service, view.namespace, service) else {
        return not_yet(format!("Service {service} is not there"));
    };
    let asked = asked_pods(live);
    let only_candidate = asked.is_some();
    // From *promote* on stable's pods are of the candidate's version, and carry its label too.
    let served = |d: &&Object| asked.is_none_or(|asked| pod_labels(d).get(PODS).and_then(Value::as_str) == Some(asked));
    let stable = view.live.find(Kind::Deployment, view.namespace, view.target).filter(served);
    let mut expected = 0;
    for deployment in stable.into_iter().chain(candidate(view)) {
        let seen = deployment.int("/status/observedGeneration");
        if seen.is_none() || seen != deployment.generation() {
            return not_yet(format!("the status of {} is older than its spec", deployment.reference()));
        }
        let unready_too = live.at("/spec/publishNotReadyAddresses") == Some(&Value::Bool(true));
        let count = if unready_too { "/status/replicas" } else { "/status/readyReplicas" };
        expected += deployment.int(count).and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
    }
    let found = endpoints(view, service);
    let followed = if only_candidate { found == expected } else { found >= expected };
    if expected == 0 {
        not_yet(format!("Service {service} has no ready pods"))
    } else if followed {
        Standing::Effective
    } else {
        not_yet(format!("Service {service} has {found} endpoints, while {expected} pods are ready for it"))
    }
}

/// How many pods the Service leads to. A pod has an endpoint in a slice for each of its address families.
fn endpoints(view: &View<'_>, service: &ObjectName) -> usize {
    let slices = view.live.objects.slices_of(service.as_str());
    let slices = slices.filter(|slice| slice.reference().namespace == *view.namespace);
    let endpoints = slices.flat_map(|slice| items(slice.value(), "endpoints"));
    let ready = endpoints.filter(|endpoint| endpoint["conditions"]["ready"] != false);
    let names = ready.map(|e| e.pointer("/targetRef/name").or_else(|| e.pointer("/addresses/0")).map(Value::to_string));
    names.collect::<BTreeSet<_>>().len()
}

fn candidate<'a>(view: &View<'a>) -> Option<&'a Object> {
    view.live.find(Kind::Deployment, view.namespace, &candidate_of(view.target)?)
}

fn asked_pods(service: &Object) -> Option<&str> {
    service.at("/spec/selector")?.get(PODS)?.as_str()
}

/// The pods that a live Deployment asks for; the API server's default is 1.
fn size(deployment: &Object) -> u32 {
    deployment.int("/spec/replicas").map_or(1, |n| u32::try_from(n).unwrap_or(u32::MAX))
}

fn percent(value: u64) -> Percent {
    u8::try_from(value).ok().and_then(|value| Percent::try_from(value).ok()).unwrap_or(Percent::ALL)
}

#[cfg(test)]
mod tests;
