//! A StatefulSet whose pods are moved to a new version by its partition, from the highest number down. It has no copy.
//!
//! While a run exposes, the live object has the candidate's pod template and the mark of that role; pods below the partition
//! are of the revision before. Kubernetes makes a pod of that revision again where it is deleted (`newVersionedStatefulSetPod` in
//! `pkg/controller/statefulset`), until all pods are new and ready: then there is one revision, and the template has to
//! be put back for the old one. With `OrderedReady` a pod that never becomes ready keeps its controller from everything
//! else ("Forced rollback" in the documentation of StatefulSets): it has to be deleted on the way back.

use super::live::LiveState;
use super::workload::{Available, Readiness};
use crate::manifest::ids::{Percent, PodsDigest};
use crate::manifest::object::{Kind, Object, PODS, ROLE, items, section};
use crate::record::state::{RoleName, Time};
use serde_json::Value;

/// A partition that lets no pod be new, however many are added: the highest that the API takes.
const NOBODY: u32 = 2_147_483_647;

/// How many of so many pods stand for a weight: never more than its share.
#[must_use]
pub fn pods_of(replicas: u32, weight: Percent) -> u32 {
    u32::try_from(u64::from(replicas) * u64::from(weight.get()) / 100).unwrap_or(u32::MAX)
}

/// The share of `new` pods among all, rounded up.
#[must_use]
pub fn weight_of(new: u32, all: u32) -> Percent {
    let share = if all == 0 { 0 } else { (u64::from(new) * 100).div_ceil(u64::from(all)) };
    u8::try_from(share).ok().and_then(|share| Percent::try_from(share).ok()).unwrap_or(Percent::ALL)
}

/// The set with the pods of a new version; all else stays until promotion.
#[must_use]
pub fn with_template(stable: &Object, new: &Object, pods: &PodsDigest) -> Object {
    let mut set = stable.clone();
    let template = new.at("/spec/template").cloned().unwrap_or_default();
    section(set.value_mut(), &["spec"]).insert("template".to_owned(), template);
    super::layout::label_pods(&mut set, pods);
    set
}

/// The same with so many pods new as stand for the weight. Where the live size is about to change, neither size may make them more.
#[must_use]
pub fn exposing(set: Object, live: Option<&Object>, weight: Percent) -> Object {
    let declared = set.int("/spec/replicas").map(|_| replicas(&set));
    let sizes = declared.into_iter().chain(live.map(replicas));
    let partition = |size| match pods_of(size, weight) {
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

fn number(set: &Object, pointer: &str) -> Option<u32> {
    set.int(pointer).and_then(|n| u32::try_from(n).ok())
}

/// Whose pods it makes from its partition on, by its mark.
#[must_use]
pub fn role(live: &Object) -> RoleName {
    if live.annotation(ROLE) == Some("candidate") { RoleName::Candidate } else { RoleName::Stable }
}

/// One of its pods.
#[derive(Debug, Clone, Copy)]
pub struct Member<'a> {
    /// The pod.
    pub pod: &'a Object,
    /// Whose version it is of.
    pub role: RoleName,
    /// Its place, from 0, whatever number the first pod has.
    index: u32,
}

impl Member<'_> {
    /// Whether it serves, or did when it was asked last.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        !self.is_ending() && self.condition().is_some_and(|ready| ready["status"] == "True")
    }

    fn is_ending(&self) -> bool {
        self.pod.at("/metadata/deletionTimestamp").is_some()
    }

    fn condition(&self) -> Option<&Value> {
        items(self.pod.at("/status")?, "conditions").find(|condition| condition["type"] == "Ready")
    }

    /// Since when it has not been ready.
    fn unready_since(&self) -> Option<Time> {
        let lost = self.condition().map(|ready| &ready["lastTransitionTime"]);
        lost.or_else(|| self.pod.at("/metadata/creationTimestamp"))?.as_str()?.parse().ok()
    }

    /// Whether the controller would make it of another revision than it is.
    fn is_displaced(&self, set: &Object) -> bool {
        let wanted = if self.index < partition(set) { "/status/currentRevision" } else { "/status/updateRevision" };
        let wanted = set.text(wanted);
        wanted.is_some() && self.pod.label("controller-revision-hash") != wanted
    }
}

/// The pods of a live set, the highest first. Those of the candidate are told by the label that its template gives them.
#[must_use]
pub fn members<'a>(set: &'a Object, live: &'a LiveState) -> Vec<Member<'a>> {
    let own = set.at("/spec/template/metadata/labels").and_then(|labels| labels.get(PODS)?.as_str());
    let (same, other) = match role(set) {
        RoleName::Candidate => (RoleName::Candidate, RoleName::Stable),
        RoleName::Stable => (RoleName::Stable, RoleName::Candidate),
    };
    let first = number(set, "/spec/ordinals/start").unwrap_or(0);
    let prefix = format!("{}-", set.reference().name);
    let member = |pod: &'a Object| {
        let ours = |owner: &Value| owner["uid"].as_str() == set.uid() && owner["controller"] == true;
        let index = pod.reference().name.as_str().strip_prefix(&prefix)?.parse::<u32>().ok()?.checked_sub(first)?;
        let role = if pod.label(PODS) == own { same } else { other };
        items(pod.at("/metadata")?, "ownerReferences").any(ours).then_some(Member { pod, role, index })
    };
    let same_namespace = |pod: &&Object| pod.reference().namespace == set.reference().namespace;
    let mut members: Vec<Member<'_>> = live.of_kind(Kind::Pod).filter(same_namespace).filter_map(member).collect();
    members.sort_by_key(|member| std::cmp::Reverse(member.index));
    members
}

/// Whether its status is of what it asks for now: an older one is no evidence of anything.
#[must_use]
pub fn is_seen(set: &Object) -> bool {
    set.int("/status/observedGeneration").unwrap_or(0) >= set.generation().unwrap_or(0)
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

/// The candidate's pods that the controller would make of the other revision, and does not: those that are not ready, which may keep
/// it from everything, and below the partition the highest, once all pods are ready.
#[must_use]
pub fn displaced<'a>(set: &'a Object, live: &'a LiveState) -> Vec<&'a Object> {
    if !is_seen(set) {
        return Vec::new();
    }
    let all = members(set, live);
    let displaced = |m: &&Member<'a>| m.role == RoleName::Candidate && !m.is_ending() && m.is_displaced(set);
    let broken: Vec<&Object> = all.iter().filter(displaced).filter(|m| !m.is_ready()).map(|m| m.pod).collect();
    let ready = all.iter().filter(|m| m.is_ready()).count();
    let whole = ready == all.len() && u32::try_from(ready).is_ok_and(|ready| ready >= replicas(set));
    if !broken.is_empty() || !whole {
        return broken;
    }
    let left = |m: &&Member<'a>| m.index < partition(set);
    all.iter().filter(displaced).find(left).map(|m| m.pod).into_iter().collect()
}

/// Judges a live set: those of its pods that may be of its template are, and all are available. With all of them there is one
/// revision left.
#[must_use]
pub fn readiness(set: &Object, live: &LiveState) -> Readiness {
    let status = |field: &str| number(set, &format!("/status/{field}")).unwrap_or(0);
    let not = |why: String| Readiness::NotReady { why, available: available(set, live) };
    if !is_seen(set) {
        return not("its controller has not seen it yet".to_owned());
    }
    let (open, wanted) = (open(set), replicas(set));
    if status("updatedReplicas") < open {
        not(format!("{} of {open} pods are of the new template", status("updatedReplicas")))
    } else if status("replicas") > wanted {
        not(format!("{} pods too many are still there", status("replicas") - wanted))
    } else if status("availableReplicas") < wanted {
        not(format!("{} of {wanted} pods are ready", status("availableReplicas")))
    } else if open == wanted && between_revisions(set).is_some() {
        not("its update is not complete".to_owned())
    } else {
        Readiness::Ready
    }
}

/// What its pods say of its being available: of those of its template, since when the first has not been ready.
#[must_use]
pub fn available(set: &Object, live: &LiveState) -> Available {
    if !is_seen(set) {
        return Available::Unseen;
    }
    let own = members(set, live).into_iter().filter(|member| member.role == role(set) && !member.is_ready());
    let made = || set.at("/metadata/creationTimestamp").and_then(|time| time.as_str()?.parse().ok());
    own.filter_map(|member| member.unready_since())
        .min()
        .map_or_else(|| Available::Perhaps(made()), Available::NotSince)
}

#[cfg(test)]
mod tests;
