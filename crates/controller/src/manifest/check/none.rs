//! A rollout without a target: other objects alone. Nothing of it is tried out, so nothing may be that would have to be.

use super::Case;
use crate::manifest::diagnostic::{Code, Diagnostic};
use crate::manifest::object::Kind;

const WHY: &str = "without a target nothing is exposed: its objects are applied once the promotion's gates are open";

pub(super) fn check(case: &Case<'_>) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    if !case.spec.phases.is_empty() {
        let expected = "no phases, and gates below promotion.before; or a target";
        found.push(case.error("/spec/phases", Code::TargetMissing, WHY, expected));
    }
    if case.spec.traffic.is_some() {
        found.push(case.error("/spec/traffic", Code::TargetMissing, WHY, "no traffic, or a target"));
    }
    // What is gone from a set goes from the cluster, and all of it at once is more likely a mistake (requirement X-8).
    if case.whole && case.items.is_empty() {
        let found_there = "the manifests hold no object";
        let expected = "at least one; take the rollout's file off main to let go of all of them";
        found.push(case.error("/spec/manifests", Code::TargetMissing, found_there, expected));
    }
    // Who leads requests anywhere would lead all of them at once.
    let leads = [Kind::Service, Kind::DestinationRule];
    let leads = |kind: &Kind| leads.contains(kind) || Kind::ROUTES.contains(kind);
    for item in case.items.values().filter(|item| leads(&item.object.reference().kind)) {
        let what = format!("{} leads requests, and nobody would try out where", item.object.reference());
        found.push(item.error("/kind", Code::TargetMissing, what, "a rollout whose target it leads to, or is"));
    }
    for item in case.items.values().filter(|item| Kind::WORKLOADS.contains(&item.object.reference().kind)) {
        let what = format!("{} makes pods, and nobody would try them out", item.object.reference());
        found.push(item.error("/kind", Code::TargetMissing, what, "a rollout of its own, whose target it is"));
    }
    found
}
