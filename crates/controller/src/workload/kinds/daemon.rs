//! A DaemonSet whose pods are moved to a new version by deleting them, one after the other, in the order of their nodes. It has no copy.
//!
//! While a run is open its strategy is `OnDelete`: its controller replaces no pod by itself. But it makes each pod that is missing from
//! the template that there is, on whatever node (`podsShouldBeOnNode` in `pkg/controller/daemon`), and nothing in the object says on
//! how many. So the template is the candidate's only as long as pods have to be moved, or all of them may be: at other times a pod that
//! dies, and the pod of a node that joins, are stable's.

use super::shared::{Member, available, ceiling, controlled, count, is_seen, most, number, role};
use crate::manifest::ids::Percent;
use crate::manifest::object::{Object, section};
use crate::record::posture::Split;
use crate::record::state::RoleName;
use crate::workload::live::LiveState;
use crate::workload::pace::{PacedUnits, Standing};
use crate::workload::readiness::{Available, Readiness};
use serde_json::json;

/// How many nodes shall have a pod of it. Only its controller knows them.
#[must_use]
pub fn nodes(set: &Object) -> u32 {
    number(set, "/status/desiredNumberScheduled").unwrap_or(0)
}

/// The set with no pod replaced by its controller.
#[must_use]
pub fn on_delete(mut set: Object) -> Object {
    section(set.value_mut(), &["spec"]).insert("updateStrategy".to_owned(), json!({"type": "OnDelete"}));
    set
}

/// How many pods its controller may make of the candidate's template by itself: all, if not told to leave them alone.
#[must_use]
pub fn open(set: &Object) -> u32 {
    if set.text("/spec/updateStrategy/type") == Some("OnDelete") { 0 } else { nodes(set) }
}

/// The set on its way to the pods that stand for the split, and whose template it has: the candidate's as long as pods of it are
/// missing, or none may be anything else.
#[must_use]
pub fn exposing(stable: &Object, new: Object, live: &LiveState, split: &Split) -> (Object, RoleName) {
    let set = live.get(stable.reference());
    if split.weight == Percent::ALL || set.is_some_and(|set| missing(set, live, split) > 0) {
        (on_delete(new), RoleName::Candidate)
    } else {
        (on_delete(stable.clone()), RoleName::Stable)
    }
}

/// How many pods have still to become new.
#[must_use]
pub fn missing(set: &Object, live: &LiveState, split: &Split) -> u32 {
    ceiling(nodes(set), split).saturating_sub(new(set, live))
}

/// How many pods are new. One that is ending is none any more.
fn new(set: &Object, live: &LiveState) -> u32 {
    count(controlled(set, live).filter(|member| member.role == RoleName::Candidate && !member.is_ending()))
}

/// How many pods have still to go on the way to the version of that role. Those that are gone, or will be, come back of it.
#[must_use]
pub fn quota(set: &Object, live: &LiveState, toward: RoleName, split: &Split) -> u32 {
    match toward {
        RoleName::Candidate => {
            let stay = count(controlled(set, live).filter(|member| !member.is_ending()));
            missing(set, live, split).saturating_sub(nodes(set).saturating_sub(stay))
        }
        RoleName::Stable => new(set, live).saturating_sub(most(set, nodes(set), split)),
    }
}

/// The pods of a live set, in the order of their nodes, the last first.
#[must_use]
pub fn members<'a>(set: &'a Object, live: &'a LiveState) -> Vec<Member<'a>> {
    let mut members: Vec<Member<'_>> = controlled(set, live).collect();
    members.sort_by_key(|member| std::cmp::Reverse((node(member.pod), &member.pod.reference().name)));
    members
}

fn node(pod: &Object) -> &str {
    pod.text("/spec/nodeName").unwrap_or_default()
}

/// The pods on the way to the version of that role, one whose template the set has: each in the order of its node, and back in the
/// opposite one. One that is not ready becomes new last: its node may be down.
#[must_use]
pub fn fleet<'a>(set: &'a Object, live: &'a LiveState, toward: RoleName) -> PacedUnits<&'a Object> {
    if role(set) != toward || !is_seen(set) {
        return PacedUnits::at_rest();
    }
    let mut all = members(set, live);
    let between = nodes(set).saturating_sub(count(all.iter()));
    let new: Vec<Member<'_>> = all.iter().copied().filter(|member| member.role == RoleName::Candidate).collect();
    if toward == RoleName::Candidate {
        all.reverse();
        all.sort_by_key(|member| member.role == RoleName::Stable && !member.is_ready());
    }
    let standing = |member: &Member<'_>| match (toward, member.role) {
        (RoleName::Candidate, _) if member.is_ending() => Standing::Moving,
        (RoleName::Candidate, RoleName::Stable) => Standing::Fresh,
        (RoleName::Candidate, RoleName::Candidate) if !member.is_ready() => Standing::Moving,
        // Nobody waits for a node that is down.
        (RoleName::Stable, _) if is_on_its_way(member, &new) => Standing::Moving,
        (RoleName::Stable, RoleName::Candidate) if member.is_ready() => Standing::Fresh,
        (RoleName::Stable, RoleName::Candidate) if !member.is_ending() => Standing::Failed,
        _ => Standing::Confirmed,
    };
    PacedUnits { units: all.iter().map(|member| (member.pod, standing(member))).collect(), between }
}

/// Whether a pod is being replaced, or has been and is not ready yet. A pod of stable's that is older than the candidate's was not ready
/// for reasons of its own, and holds nobody up on the way back; nor does one that was lost.
fn is_on_its_way(member: &Member<'_>, new: &[Member<'_>]) -> bool {
    let made = |member: &Member<'_>| crate::workload::readiness::made(member.pod);
    let youngest = new.iter().filter_map(made).max();
    let replaced = member.role == RoleName::Stable && !member.is_ready() && made(member) >= youngest;
    !member.was_lost() && (member.is_ending() || replaced)
}

/// Judges a live set: every node has its pod, and those that a run is about are ready; without a run all are, and of its template.
#[must_use]
pub fn readiness(set: &Object, live: &LiveState) -> Readiness {
    let not = |why: String, available: Available| Readiness::NotReady { why, available };
    if !is_seen(set) {
        return not("its controller has not seen it yet".to_owned(), Available::Unseen);
    }
    let all = members(set, live);
    let of = |role: RoleName| all.iter().copied().filter(move |member| member.role == role);
    let (new, wanted) = (count(of(RoleName::Candidate)), nodes(set));
    let exposes = role(set) == RoleName::Candidate || new > 0;
    let judged = || available(set, of(if exposes { RoleName::Candidate } else { RoleName::Stable }));
    let ready = count(of(RoleName::Candidate).filter(Member::is_ready));
    let status = |field: &str| number(set, &format!("/status/{field}")).unwrap_or(0);
    // Of pods that a run has not touched the nodes may be down for as long as they like.
    let broken = if exposes { count(of(RoleName::Stable).filter(|member| !member.is_ready())) } else { 0 };
    if let Some(member) = all.iter().find(|member| member.is_ending()) {
        // It says nothing of a version how long a node takes.
        not(format!("the pod on {} is on its way out", node(member.pod)), Available::Unseen)
    } else if ready < new {
        not(format!("{ready} of {new} new pods are ready"), judged())
    } else if count(all.iter()) < wanted {
        not(format!("{} of {wanted} nodes have their pod", all.len()), judged())
    } else if !exposes && status("updatedNumberScheduled") < wanted {
        let updated = status("updatedNumberScheduled");
        not(format!("{updated} of {wanted} pods are of its template; with OnDelete delete the others"), judged())
    } else if status("numberAvailable") + broken < wanted {
        not(format!("{} of {wanted} pods are ready", status("numberAvailable")), judged())
    } else {
        Readiness::Ready
    }
}

#[cfg(test)]
mod tests;
