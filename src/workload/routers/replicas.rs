//! The router `replicas`: one Service selects the pods of both roles, and the weight is how many of them are the
//! candidate's. At 100 the Service's selector asks for the candidate's pods alone.
//!
//! The share is that of `spec.replicas`, not of ready pods: candidate pods that fail only lower it.

use super::{Seen, View, candidate};
use crate::manifest::ids::{ObjectName, Percent, PodsDigest};
use crate::manifest::object::{Kind, Object, PODS, section};
use crate::record::posture::Split;
use crate::workload::layouts::with_replicas;
use serde_json::Value;

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

/// The pods that a live Service asks for besides what the manifests say.
pub(super) fn asked_pods(service: &Object) -> Option<&str> {
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
