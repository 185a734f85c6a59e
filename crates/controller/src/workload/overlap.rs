//! Selectors that other objects in the namespace have, held against the candidate's pods (`SelectorOverlap`).

use super::layouts::pod_labels;
use super::live::LiveState;
use super::selector::{self, PodLabels};
use crate::manifest::desired::{By, Plan};
use crate::manifest::ids::Namespace;
use crate::manifest::object::{Kind, Object, ObjectRef};
use crate::record::posture::Naming;
use crate::record::state::RoleName;
use serde_json::Value;
use std::collections::BTreeMap;

/// Another object's selector that does what nobody wants with the candidate's pods.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Overlap {
    /// It selects the candidate's pods: requests would reach them past the split, or two workloads would claim them.
    /// No candidate may be made.
    Selects(ObjectRef),
    /// A NetworkPolicy covers stable's pods and not the candidate's, which may reach, and be reached by, others then: people should
    /// know. A budget that does so only keeps the candidate's troubles from stable, see `docs/layouts.md`.
    Uncovered(ObjectRef),
}

/// All overlaps of the candidate's `objects` (as `layouts::candidate` makes them) with what lives in `namespace`, sorted.
///
/// The candidate's own objects do not count; nor, with the router `replicas`, do the Service and the target, since there
/// the Service shall select both; nor the Service that the router `service` or the layout `primary` switches.
#[must_use]
pub fn overlap(
    live: &LiveState,
    objects: &BTreeMap<ObjectRef, Object>,
    plan: &Plan,
    naming: &Naming,
    namespace: &Namespace,
) -> Vec<Overlap> {
    let Some(candidate) = objects.values().find(|o| o.reference().kind == Kind::Deployment) else { return Vec::new() };
    let pods = pod_labels(candidate);
    let workload = naming.workload(RoleName::Stable, &plan.target.name);
    let stable = live.find(Kind::Deployment, namespace, &workload).map(pod_labels);
    let switched = |reference: &ObjectRef| {
        reference.kind == Kind::Service && naming.switched().is_some_and(|service| *service == reference.name)
    };
    let shared = |reference: &ObjectRef| {
        let Some(router) = plan.traffic.as_ref().map(|traffic| &traffic.router) else { return false };
        let service = reference.kind == Kind::Service && Some(&reference.name) == router.service();
        let target = reference.kind == Kind::Deployment && reference.name == plan.target.name;
        match router.by() {
            By::Pods => service || target,
            By::Selector => service,
            By::Route | By::Units => false,
        }
    };
    let covering = stable.iter().flat_map(|stable| live.objects.selecting(Kind::NetworkPolicy, stable));
    let mut found: Vec<_> = [Kind::Service, Kind::Deployment]
        .into_iter()
        .flat_map(|kind| live.objects.selecting(kind, &pods))
        .chain(covering)
        .filter(|other| {
            let reference = other.reference();
            reference.namespace == *namespace
                && !objects.contains_key(reference)
                && !shared(reference)
                && !switched(reference)
        })
        .filter_map(|other| judge(other, &pods, stable.as_ref()))
        .collect();
    found.sort();
    found
}

fn judge(other: &Object, pods: &PodLabels, stable: Option<&PodLabels>) -> Option<Overlap> {
    let reference = other.reference().clone();
    let at = |pointer: &str, labels: &PodLabels| selector::matches(other.at(pointer).unwrap_or(&Value::Null), labels);
    let uncovered = |pointer: &str| stable.is_some_and(|stable| at(pointer, stable)) && !at(pointer, pods);
    let is = |kind| reference.kind == kind;
    let selects = is(Kind::Service) && selector::serves(other.at("/spec/selector"), pods)
        || is(Kind::Deployment) && at("/spec/selector", pods);
    let misses = is(Kind::NetworkPolicy) && uncovered("/spec/podSelector");
    let selected = selects.then(|| Overlap::Selects(reference.clone()));
    selected.or_else(|| misses.then(|| Overlap::Uncovered(reference.clone())))
}
