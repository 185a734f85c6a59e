//! The router `replicas`: one Service selects the pods of both roles, and the weight is how many of them are the
//! candidate's. At 100 the Service's selector asks for the candidate's pods alone.
//!
//! The share is that of `spec.replicas`, not of ready pods: candidate pods that fail only lower it.

use super::{Fields, Form, ObservedSplit, RouteStatus, RouteView, Routing, candidate, endpoints};
use crate::manifest::ids::{ObjectName, Percent};
use crate::manifest::object::{Kind, Object, PODS, section};
use crate::record::posture::Split;
use crate::workload::layouts::{suffixed, with_replicas};
use serde_json::Value;

/// The Service that selects the pods of both roles.
pub(super) struct Replicas<'a>(pub(super) &'a ObjectName);

impl Routing for Replicas<'_> {
    fn routes(&self, target: &ObjectName) -> Vec<(Kind, ObjectName)> {
        let candidate = suffixed(target).map(|name| (Kind::Deployment, name));
        std::iter::once((Kind::Service, self.0.clone())).chain(candidate).collect()
    }

    /// At 100 its selector also asks for the candidate's pods.
    fn render(&self, service: &Object, form: Form<'_>) -> Object {
        let mut service = service.clone();
        if form.split.weight == Percent::ALL {
            section(service.value_mut(), &["spec", "selector"]).insert(PODS.to_owned(), form.candidate.as_str().into());
        }
        service
    }

    fn read(&self, service: Option<&Object>, view: &RouteView<'_>) -> ObservedSplit {
        let candidate = candidate(view);
        let pods = candidate.and_then(|c| c.at("/spec/template/metadata/labels")?.get(PODS)?.as_str());
        let weight = match service.and_then(asked_pods) {
            Some(asked) if pods == Some(asked) => Percent::ALL,
            Some(asked) => {
                return ObservedSplit::Foreign(format!(
                    "Service {} asks for pods with {PODS}={asked}, and the candidate's Deployment has none of these",
                    self.0
                ));
            }
            None => weight_of(view.baseline, candidate.map_or(0, size)),
        };
        ObservedSplit::Split(Split { weight, ..Split::stable() })
    }

    fn reachable(&self, view: &RouteView<'_>, _service: Option<&Object>, split: &Split) -> Split {
        reachable(view.baseline, split)
    }

    /// The Service is for pods of both roles, and the candidate's Deployment has none.
    fn lowered(&self, live: &Object, _view: &RouteView<'_>) -> Object {
        if live.reference().kind != Kind::Service {
            return with_replicas(live.clone(), Some(0));
        }
        let mut service = live.clone();
        if let Some(selector) = service.value_mut().pointer_mut("/spec/selector").and_then(Value::as_object_mut) {
            selector.shift_remove(PODS);
        }
        service
    }

    fn fields(&self, live: &Object) -> Fields {
        if live.reference().kind == Kind::Service { vec![&["spec", "selector"]] } else { vec![&["spec", "replicas"]] }
    }

    fn status(&self, service: &Object, view: &RouteView<'_>) -> RouteStatus {
        endpoints::status(service, view)
    }
}

/// How many candidate pods stand for `weight` beside `baseline` stable ones: ⌊baseline × w / (100 − w)⌋, so that their
/// share never exceeds the weight; as many as stable at 100.
#[must_use]
pub fn candidate_replicas(baseline: u32, weight: Percent) -> u32 {
    let weight = u64::from(weight.get());
    let pods = (u64::from(baseline) * weight).checked_div(100 - weight);
    pods.map_or(baseline, |pods| u32::try_from(pods).unwrap_or(u32::MAX))
}

/// The share of `candidate` pods among all, rounded up.
fn weight_of(baseline: u32, candidate: u32) -> Percent {
    let all = u64::from(baseline) + u64::from(candidate);
    if candidate == 0 { Percent::ZERO } else { percent((u64::from(candidate) * 100).div_ceil(all)) }
}

/// What is read once `split` is in force: the same at 0 and 100, else at most its weight.
pub(super) fn reachable(baseline: u32, split: &Split) -> Split {
    let weight = match split.weight {
        Percent::ALL => Percent::ALL,
        weight => weight_of(baseline, candidate_replicas(baseline, weight)),
    };
    Split { weight, ..Split::stable() }
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
