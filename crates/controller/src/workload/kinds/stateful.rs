//! A StatefulSet whose pods are moved to a new version by its partition, from the highest number down. It has no copy.
//!
//! While a run exposes, the live object has the candidate's pod template and the mark of that role; pods below the partition
//! are of the revision before. Kubernetes makes a pod of that revision again where it is deleted (`newVersionedStatefulSetPod` in
//! `pkg/controller/statefulset`), until all pods are new and ready: then there is one revision, and the template has to
//! be put back for the old one. With `OrderedReady` a pod that never becomes ready keeps its controller from everything
//! else ("Forced rollback" in the documentation of StatefulSets): it has to be deleted on the way back.

use super::shared::{Member, available, ceiling, controlled, count, is_seen, number, role};
use crate::manifest::object::{Object, section};
use crate::record::posture::Split;
use crate::record::state::RoleName;
use crate::workload::live::LiveState;
use crate::workload::pace::{PacedUnits, Standing};
use crate::workload::readiness::Readiness;

/// A partition that lets no pod be new, however many are added: the highest that the API takes.
const NOBODY: u32 = 2_147_483_647;

/// The same with so many pods new as stand for the split. Where the live size is about to change, neither size may make them more.
#[must_use]
pub fn exposing(set: Object, live: Option<&Object>, split: &Split) -> Object {
    let declared = set.int("/spec/replicas").map(|_| replicas(&set));
    let sizes = declared.into_iter().chain(live.map(replicas));
    let partition = |size| match ceiling(size, split) {
        0 => NOBODY,
        new => size - new,
    };
    let partition = sizes.map(partition).max().unwrap_or(NOBODY);
    with_partition(set, partition)
}

/// The set with all its pods of its own template, whatever partition anybody has set.
#[must_use]
pub fn whole(set: Object) -> Object {
    with_partition(set, 0)
}

/// The live set with no more pods of the candidate; unchanged where it is stable's.
#[must_use]
pub fn closed(live: &Object) -> Object {
    if role(live) == RoleName::Stable { live.clone() } else { with_partition(live.clone(), NOBODY) }
}

fn with_partition(mut set: Object, partition: u32) -> Object {
    let strategy = section(set.value_mut(), &["spec", "updateStrategy"]);
    strategy.insert("type".to_owned(), "RollingUpdate".into());
    section(set.value_mut(), &["spec", "updateStrategy", "rollingUpdate"])
        .insert("partition".to_owned(), partition.into());
    set
}

/// The pods from this number on are of the set's own template. Nothing else is read as "all".
#[must_use]
pub fn partition(set: &Object) -> u32 {
    number(set, "/spec/updateStrategy/rollingUpdate/partition").unwrap_or(0)
}

/// How many pods it asks for; the API server's default is 1.
#[must_use]
pub fn replicas(set: &Object) -> u32 {
    number(set, "/spec/replicas").unwrap_or(1)
}

/// How many pods may be of its own template.
#[must_use]
pub fn open(set: &Object) -> u32 {
    replicas(set).saturating_sub(partition(set))
}

/// The place of a pod, from 0, whatever number the first has.
fn place(set: &Object, pod: &Object) -> Option<u32> {
    let first = number(set, "/spec/ordinals/start").unwrap_or(0);
    let ordinal = pod.reference().name.as_str().strip_prefix(set.reference().name.as_str())?.strip_prefix('-')?;
    ordinal.parse::<u32>().ok()?.checked_sub(first)
}

/// Whether the controller would make a pod of another revision than it is.
fn is_displaced(set: &Object, pod: &Object) -> bool {
    let below = place(set, pod) < Some(partition(set));
    let wanted = set.text(if below { "/status/currentRevision" } else { "/status/updateRevision" });
    wanted.is_some() && pod.label("controller-revision-hash") != wanted
}

/// The pods of a live set, the highest first.
#[must_use]
pub fn members<'a>(set: &'a Object, live: &'a LiveState) -> Vec<Member<'a>> {
    let mut members: Vec<Member<'_>> =
        controlled(set, live).filter(|member| place(set, member.pod).is_some()).collect();
    members.sort_by_key(|member| std::cmp::Reverse(place(set, member.pod)));
    members
}

/// Why its pods may not be led by the partition yet: it would make pods of two revisions already, the older of which nobody asked for.
#[must_use]
pub fn between_revisions(set: &Object) -> Option<String> {
    let [current, update] = ["/status/currentRevision", "/status/updateRevision"].map(|revision| set.text(revision));
    if is_seen(set) && current.is_some() && current == update {
        return None;
    }
    Some(format!("{}: its last update is not complete: all its pods have to be ready first", set.reference()))
}

/// The pods on the way to the version of that role, the highest first, as far as its controller does not replace them by itself. It does
/// so one after the other, in that order too: beyond that only where it makes those that are away at the same time. Back go besides
/// those of the candidate that it would make of the other revision: below the partition it leaves them, and one that is not ready may
/// keep it from everything.
#[must_use]
pub fn fleet<'a>(set: &'a Object, live: &'a LiveState, toward: RoleName, slots: u32) -> PacedUnits<&'a Object> {
    let several = slots > 1 && at_once(set);
    if !is_seen(set) || toward == RoleName::Candidate && !several {
        return PacedUnits::at_rest();
    }
    let all = members(set, live);
    let between = replicas(set).saturating_sub(count(all.iter()));
    let standing = |member: &Member<'_>| {
        let displaced = member.role != toward && is_displaced(set, member.pod);
        let left = several || place(set, member.pod) < Some(partition(set));
        match (toward, member.is_ready()) {
            _ if member.is_ending() => Standing::Moving,
            (RoleName::Stable, false) if displaced => Standing::Failed,
            (RoleName::Candidate, _) | (RoleName::Stable, true) if displaced && left => Standing::Fresh,
            (RoleName::Candidate, false) if member.role == RoleName::Stable => Standing::Confirmed,
            (_, false) => Standing::Moving,
            (_, true) => Standing::Confirmed,
        }
    };
    PacedUnits { units: all.iter().map(|member| (member.pod, standing(member))).collect(), between }
}

/// Whether its controller makes the pods that are away at the same time. It makes one after the other where nothing is said.
fn at_once(set: &Object) -> bool {
    set.text("/spec/podManagementPolicy") == Some("Parallel")
}

/// Judges a live set: those of its pods that may be of its template are, and all are available. With all of them there is one
/// revision left.
#[must_use]
pub fn readiness(set: &Object, live: &LiveState) -> Readiness {
    let status = |field: &str| number(set, &format!("/status/{field}")).unwrap_or(0);
    let own = || members(set, live).into_iter().filter(|member| member.role == role(set));
    let not = |why: String| Readiness::NotReady { why, available: available(set, own()) };
    if !is_seen(set) {
        return not("its controller has not seen it yet".to_owned());
    }
    let (open, wanted) = (open(set), replicas(set));
    let ready = count(own().filter(Member::is_ready));
    if status("updatedReplicas") < open {
        not(format!("{} of {open} pods are of the new template", status("updatedReplicas")))
    } else if status("replicas") > wanted {
        not(format!("{} pods too many are still there", status("replicas") - wanted))
    } else if status("availableReplicas") < wanted {
        not(format!("{} of {wanted} pods are ready", status("availableReplicas")))
    } else if ready < open {
        // The set and its pods are watched apart: what the one says the other may not show yet.
        not(format!("{ready} of {open} pods of the template are seen ready"))
    } else if open == wanted && between_revisions(set).is_some() {
        not("its update is not complete".to_owned())
    } else {
        Readiness::Ready
    }
}

#[cfg(test)]
mod tests;
