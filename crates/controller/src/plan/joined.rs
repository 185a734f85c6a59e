//! Services of other rollouts that would lead their users to this one's pods.

use super::context::Context;
use super::report::{Reason, Wait};
use crate::manifest::object::{Kind, OWNER, Object, ObjectRef};
use crate::record::state::RoleName;
use crate::workload::inplace::Rendered;
use crate::workload::layouts::pod_labels;
use crate::workload::selector;
use std::collections::BTreeMap;

/// Why stable's pods may not be as `rendered`: the users of another rollout would meet them without a phase of that one, and without
/// anybody's decision who may give it there. One that leads to the workload's pods by now is none of this change.
#[must_use]
pub fn joined(context: &Context<'_>, rendered: &BTreeMap<ObjectRef, Rendered>) -> Vec<Wait> {
    let stable = rendered.values().filter(|rendered| rendered.role == RoleName::Stable);
    let workloads = stable.map(|rendered| &rendered.object).filter(|object| makes_pods(object));
    let mut waits = Vec::new();
    for workload in workloads {
        let reference = workload.reference();
        let (pods, now) = (pod_labels(workload), context.live.get(reference).map(pod_labels));
        for service in context.live.objects.selecting(Kind::Service, &pods) {
            let selector = service.at("/spec/selector");
            let other = service.reference();
            let foreign = other.namespace == reference.namespace && !rendered.contains_key(other);
            let joins =
                selector::serves(selector, &pods) && !now.as_ref().is_some_and(|now| selector::serves(selector, now));
            let owner = service.annotation(OWNER).filter(|owner| *owner != context.owner);
            if let Some(owner) = owner.filter(|_| foreign && joins) {
                let why = format!(
                    "{other} of {owner} would lead requests to the pods of {reference}, past all that {owner} asks for"
                );
                waits.push(
                    Wait::new(Reason::SelectorOverlap, why).act(format!("give the pods of {reference} other labels")),
                );
            }
        }
    }
    waits
}

fn makes_pods(object: &Object) -> bool {
    matches!(object.reference().kind, Kind::Deployment | Kind::StatefulSet | Kind::DaemonSet)
}
