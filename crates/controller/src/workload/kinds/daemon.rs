//! A DaemonSet whose pods are moved to a new version by deleting them, one after the other, in the order of their nodes. It has no copy.
//!
//! While a run is open its strategy is `OnDelete`: its controller replaces no pod by itself. But it makes each pod that is missing from
//! the template that there is, on whatever node (`podsShouldBeOnNode` in `pkg/controller/daemon`), and nothing in the object says on
//! how many. So the template is the candidate's only as long as pods have to be moved, or all of them may be: at other times a pod that
//! dies, and the pod of a node that joins, are stable's.

use super::shared::{Member, available, controlled, count, is_seen, number, pods_of, role};
use crate::manifest::ids::Percent;
use crate::manifest::object::{Object, section};
use crate::record::state::RoleName;
use crate::workload::live::LiveState;
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

/// The set on its way to the pods that stand for the weight, and whose template it has: the candidate's as long as pods of it are
/// missing, or none may be anything else.
#[must_use]
pub fn exposing(stable: &Object, new: Object, live: &LiveState, weight: Percent) -> (Object, RoleName) {
    let set = live.get(stable.reference());
    if weight == Percent::ALL || set.is_some_and(|set| missing(set, live, weight) > 0) {
        (on_delete(new), RoleName::Candidate)
    } else {
        (on_delete(stable.clone()), RoleName::Stable)
    }
}

/// How many pods have still to become new. One that is ending is none any more.
#[must_use]
pub fn missing(set: &Object, live: &LiveState, weight: Percent) -> u32 {
    let new = controlled(set, live).filter(|member| member.role == RoleName::Candidate && !member.is_ending());
    pods_of(nodes(set), weight).saturating_sub(count(new))
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

/// The pod that is to become new next, once all that are new are ready, and each node has its pod. One that is not ready comes last: its
/// node may be down.
#[must_use]
pub fn next<'a>(set: &'a Object, live: &'a LiveState, weight: Percent) -> Option<&'a Object> {
    let all = members(set, live);
    let moves = role(set) == RoleName::Candidate && is_seen(set) && missing(set, live, weight) > 0;
    let settled = |member: &Member<'_>| !member.is_ending() && (member.role == RoleName::Stable || member.is_ready());
    if !moves || count(all.iter()) < nodes(set) || !all.iter().all(settled) {
        return None;
    }
    let old = all.iter().rev().filter(|member| member.role == RoleName::Stable);
    old.min_by_key(|member| !member.is_ready()).map(|member| member.pod)
}

/// The candidate's pods beyond those that stand for the weight, where they come back as stable's: those that are not ready at once, of
/// the others the last, once nothing is on its way. Nobody waits for a node that is down.
#[must_use]
pub fn displaced<'a>(set: &'a Object, live: &'a LiveState, weight: Percent) -> Vec<&'a Object> {
    if role(set) == RoleName::Candidate || !is_seen(set) {
        return Vec::new();
    }
    let all = members(set, live);
    let new: Vec<&Member<'_>> = all.iter().filter(|member| member.role == RoleName::Candidate).collect();
    let staying = usize::try_from(pods_of(nodes(set), weight)).unwrap_or(usize::MAX);
    let going = &new[..new.len().saturating_sub(staying)];
    let broken = going.iter().filter(|member| !member.is_ready() && !member.is_ending());
    let broken: Vec<&Object> = broken.map(|member| member.pod).collect();
    if !broken.is_empty() || count(all.iter()) < nodes(set) || all.iter().any(|member| is_on_its_way(member, &new)) {
        return broken;
    }
    going.iter().find(|member| !member.is_ending()).map(|member| member.pod).into_iter().collect()
}

/// Whether a pod is being replaced, or has been and is not ready yet. A pod of stable's that is older than the candidate's was not ready
/// for reasons of its own, and holds nobody up on the way back; nor does one that was lost.
fn is_on_its_way(member: &Member<'_>, new: &[&Member<'_>]) -> bool {
    let made = |member: &Member<'_>| crate::workload::readiness::made(member.pod);
    let youngest = new.iter().filter_map(|member| made(member)).max();
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
