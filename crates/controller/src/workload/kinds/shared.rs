//! A workload that both roles share: both versions are pods of it, and there is no copy. What is true of all such kinds, and which
//! of them knows the rest.
//!
//! The mark of its role says whose pod template the live object has; the label that the template gives says whose a pod is.

use super::daemon;
use super::stateful;
use crate::manifest::ids::{Percent, PodsDigest};
use crate::manifest::object::{Kind, Object, PODS, ROLE, items, section};
use crate::record::posture::{Split, Units};
use crate::record::state::{RoleName, Time};
use crate::workload::live::LiveState;
use crate::workload::readiness::{Available, Readiness};
use chrono::TimeDelta;
use serde_json::Value;

/// The kinds of such workloads.
pub const KINDS: [Kind; 2] = [Kind::StatefulSet, Kind::DaemonSet];

/// Within what a pod's start and its first word of not being ready are written; the API counts whole seconds.
const STARTS: TimeDelta = TimeDelta::seconds(2);

/// How many of so many pods stand for a weight: never more than its share.
#[must_use]
pub fn pods_of(replicas: u32, weight: Percent) -> u32 {
    u32::try_from(u64::from(replicas) * u64::from(weight.get()) / 100).unwrap_or(u32::MAX)
}

/// How many of so many units a split lets become new: the larger of its share and its number.
#[must_use]
pub fn ceiling(all: u32, split: &Split) -> u32 {
    pods_of(all, split.weight).max(split.units.count.min(all))
}

/// How many of so many units of that workload may be new. Of those that were let in nobody goes back because others leave; those of a
/// StatefulSet that leave are the first that were new.
#[must_use]
pub fn most(set: &Object, all: u32, split: &Split) -> u32 {
    let kept = if set.reference().kind == Kind::DaemonSet { split.units.done } else { 0 };
    ceiling(all, split).max(kept)
}

/// The same split once it is in force on that workload: who is let in by it is counted.
#[must_use]
pub fn let_in(set: &Object, split: &Split) -> Split {
    let all = size(set);
    let done = if set.reference().kind == Kind::DaemonSet { most(set, all, split) } else { 0 };
    Split { units: Units { done, ..split.units.clone() }, ..split.clone() }
}

/// How many pods of a live workload are new, or may be made so by its controller.
#[must_use]
pub fn exposed(set: &Object, live: &LiveState) -> u32 {
    let new = count(controlled(set, live).filter(|member| member.role == RoleName::Candidate));
    if role(set) == RoleName::Candidate { new.max(open(set)) } else { new }
}

/// Whether a live workload has at most so many new pods as a split lets be new.
#[must_use]
pub fn is_within(set: &Object, live: &LiveState, split: &Split) -> bool {
    // While it has more pods than it asks for these serve as well.
    let all = size(set).max(count(members(set, live).iter()));
    exposed(set, live) <= most(set, all, split)
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
    crate::workload::layouts::label_pods(&mut set, pods);
    set
}

/// Whose a live object is, by its mark: of a workload that both share, whose template it has.
#[must_use]
pub fn role(live: &Object) -> RoleName {
    if live.annotation(ROLE) == Some("candidate") { RoleName::Candidate } else { RoleName::Stable }
}

/// Whether its status is of what it asks for now: an older one is no evidence of anything.
#[must_use]
pub fn is_seen(set: &Object) -> bool {
    set.int("/status/observedGeneration").unwrap_or(0) >= set.generation().unwrap_or(0)
}

/// A number of the set that is not below zero.
pub(super) fn number(set: &Object, pointer: &str) -> Option<u32> {
    set.int(pointer).and_then(|n| u32::try_from(n).ok())
}

/// So many as the API counts.
#[must_use]
pub fn count(members: impl Iterator) -> u32 {
    u32::try_from(members.count()).unwrap_or(u32::MAX)
}

/// One of its pods.
#[derive(Debug, Clone, Copy)]
pub struct Member<'a> {
    /// The pod.
    pub pod: &'a Object,
    /// Whose version it is of.
    pub role: RoleName,
}

impl Member<'_> {
    /// Whether it serves, or did when it was asked last.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        !self.is_ending() && self.says("Ready", "True")
    }

    pub(super) fn is_ending(&self) -> bool {
        self.pod.at("/metadata/deletionTimestamp").is_some()
    }

    /// Whether nobody need wait for it: its node is lost, or it was not ready when its end was asked for.
    #[must_use]
    pub fn was_lost(&self) -> bool {
        let before =
            |asked: Time| !self.says("Ready", "True") && self.unready_since().is_some_and(|since| since < asked);
        self.is_cut_off() || self.end_asked().is_some_and(before)
    }

    /// Whether something else than its version took it away: somebody deleted it, or its node is drained, shuts down or is lost. One that
    /// did not serve when its end was asked for had failed before.
    #[must_use]
    pub fn was_taken(&self) -> bool {
        let asked = self.disrupted().into_iter().chain(self.end_asked()).min();
        let served =
            |asked: Time| self.says("Ready", "True") || self.unready_since().is_some_and(|since| since >= asked);
        self.is_cut_off() || asked.is_some_and(served)
    }

    /// Whether it was made after that.
    #[must_use]
    pub fn is_younger(&self, than: Time) -> bool {
        crate::workload::readiness::made(self.pod).is_some_and(|made| made > than)
    }

    /// Whether it has failed by itself: it is not ready any more, or was restarted, and nobody asked for its end.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        let started: Option<Time> = self.pod.text("/status/startTime").and_then(|at| at.parse().ok());
        // It is not ready from its start on until it is for the first time; the two are not written at one moment.
        let lost = self.unready_since().zip(started).is_some_and(|(since, started)| since - started > STARTS);
        let restarted = || {
            let restarts = |container: &Value| container["restartCount"].as_u64().unwrap_or(0) > 0;
            self.pod.at("/status").is_some_and(|status| items(status, "containerStatuses").any(restarts))
        };
        !self.is_ready() && !self.is_ending() && !self.is_left() && !self.was_taken() && (lost || restarted())
    }

    /// Whether it has long been replaced: Kubernetes leaves a pod that was evicted, or whose node was shut down, to be looked at.
    fn is_left(&self) -> bool {
        matches!(self.pod.text("/status/phase"), Some("Failed" | "Succeeded"))
    }

    /// When Kubernetes said that it takes it away for others, or with its node. A kubelet that is short of something says so too: what it
    /// evicts then may have taken too much.
    fn disrupted(&self) -> Option<Time> {
        let evicted = self.pod.text("/status/reason") == Some("Evicted");
        let target = self.condition("DisruptionTarget").filter(|target| target["status"] == "True" && !evicted)?;
        target["lastTransitionTime"].as_str()?.parse().ok()
    }

    /// Whether its node is lost. Such a pod is said to be not ready, and nothing else: its containers stay as they were heard of last, and
    /// no reason is given (`MarkPodsNotReady` in `pkg/controller/util/node`).
    fn is_cut_off(&self) -> bool {
        let silent = |ready: &Value| ready["reason"].as_str().is_none_or(str::is_empty);
        self.says("Ready", "False")
            && self.says("ContainersReady", "True")
            && self.condition("Ready").is_some_and(silent)
    }

    /// When its end was asked for: the time that it is given is added to that.
    fn end_asked(&self) -> Option<Time> {
        let end: Time = self.pod.text("/metadata/deletionTimestamp")?.parse().ok()?;
        let grace = self.pod.int("/metadata/deletionGracePeriodSeconds").unwrap_or(0);
        Some(end - TimeDelta::try_seconds(grace)?)
    }

    fn says(&self, condition: &str, status: &str) -> bool {
        self.condition(condition).is_some_and(|condition| condition["status"] == status)
    }

    fn condition(&self, kind: &str) -> Option<&Value> {
        items(self.pod.at("/status")?, "conditions").find(|condition| condition["type"] == kind)
    }

    /// Since when it has not been ready, or is on its way out.
    fn unready_since(&self) -> Option<Time> {
        if self.is_ending() && self.says("Ready", "True") {
            return self.end_asked();
        }
        let lost = self.condition("Ready").map(|ready| &ready["lastTransitionTime"]);
        lost.or_else(|| self.pod.at("/metadata/creationTimestamp"))?.as_str()?.parse().ok()
    }
}

/// The pods that a live set controls, in no order. Those of the candidate are told by the label that its template gives them.
pub(super) fn controlled<'a>(set: &'a Object, live: &'a LiveState) -> impl Iterator<Item = Member<'a>> {
    let own = set.at("/spec/template/metadata/labels").and_then(|labels| labels.get(PODS)?.as_str());
    let (same, other) = match role(set) {
        RoleName::Candidate => (RoleName::Candidate, RoleName::Stable),
        RoleName::Stable => (RoleName::Stable, RoleName::Candidate),
    };
    let ours = |owner: &Value| owner["uid"].as_str() == set.uid() && owner["controller"] == true;
    let member = move |pod: &'a Object| {
        let role = if pod.label(PODS) == own { same } else { other };
        items(pod.at("/metadata")?, "ownerReferences").any(ours).then_some(Member { pod, role })
    };
    let same_namespace = |pod: &&Object| pod.reference().namespace == set.reference().namespace;
    live.of_kind(Kind::Pod).filter(same_namespace).filter_map(member)
}

/// What a live set says of its being available: since when the first of these pods has not been ready.
pub(super) fn available<'a>(set: &Object, of: impl Iterator<Item = Member<'a>>) -> Available {
    if !is_seen(set) {
        return Available::Unseen;
    }
    let lost = of.filter(|member| !member.is_ready()).filter_map(|member| member.unready_since());
    lost.min().map_or_else(|| Available::Perhaps(crate::workload::readiness::made(set)), Available::NotSince)
}

/// The pods of a live set, those first that are first to be taken away from the candidate.
#[must_use]
pub fn members<'a>(set: &'a Object, live: &'a LiveState) -> Vec<Member<'a>> {
    if set.reference().kind == Kind::DaemonSet { daemon::members(set, live) } else { stateful::members(set, live) }
}

/// How many pods it has to have.
#[must_use]
pub fn size(set: &Object) -> u32 {
    if set.reference().kind == Kind::DaemonSet { daemon::nodes(set) } else { stateful::replicas(set) }
}

/// How many pods its controller may make of its own template by itself.
#[must_use]
pub fn open(set: &Object) -> u32 {
    if set.reference().kind == Kind::DaemonSet { daemon::open(set) } else { stateful::open(set) }
}

/// Whether a live set has pods of a candidate, or may get them.
#[must_use]
pub fn exposes(set: &Object, live: &LiveState) -> bool {
    role(set) == RoleName::Candidate || members(set, live).iter().any(|member| member.role == RoleName::Candidate)
}

/// The set so that all its pods shall be of its own template.
#[must_use]
pub fn whole(set: Object) -> Object {
    let is = |kind| set.reference().kind == kind;
    if is(Kind::StatefulSet) {
        stateful::whole(set)
    } else if is(Kind::DaemonSet) {
        daemon::on_delete(set)
    } else {
        set
    }
}

/// Whether to write `rendered` over a live set can only lower what is exposed: it may have another template yet, or fewer pods than it may.
#[must_use]
pub fn lowers(rendered: &Object, of: RoleName, live: &Object) -> bool {
    let is = |kind| live.reference().kind == kind;
    if is(Kind::StatefulSet) {
        role(live) == of && stateful::partition(rendered) > stateful::partition(live)
    } else if is(Kind::DaemonSet) {
        of == RoleName::Stable || role(live) == of && daemon::open(live) > daemon::open(rendered)
    } else {
        true
    }
}

/// The pods that go now on the way to the version of that role, where so much may be exposed, and so many may be away at a time. Their
/// controller makes each anew of that version, and replaces none of them by itself.
#[must_use]
pub fn due<'a>(set: &'a Object, live: &'a LiveState, toward: RoleName, split: &Split, slots: u32) -> Vec<&'a Object> {
    if set.reference().kind == Kind::DaemonSet {
        daemon::fleet(set, live, toward).due(daemon::quota(set, live, toward, split), slots)
    } else {
        // Its partition says which.
        stateful::fleet(set, live, toward, slots).due(u32::MAX, slots)
    }
}

/// What becomes of one of its pods, for people: of a DaemonSet the node says more than the pod's name.
#[must_use]
pub fn made_anew(set: &Object, pod: &Object, of: &str) -> String {
    match (set.reference().kind, pod.text("/spec/nodeName")) {
        (Kind::DaemonSet, Some(node)) => format!("{}: the pod on {node} made anew of {of} version", set.reference()),
        _ => format!("{}: made anew of {of} version", pod.reference()),
    }
}

/// Judges a live set.
#[must_use]
pub fn readiness(set: &Object, live: &LiveState) -> Readiness {
    if set.reference().kind == Kind::DaemonSet { daemon::readiness(set, live) } else { stateful::readiness(set, live) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::fixtures::{object, pods};
    use serde_json::json;

    #[test]
    fn a_weight_is_so_many_pods_and_never_more() {
        for replicas in 0..40 {
            for weight in 0..=100_u8 {
                let weight = Percent::try_from(weight).unwrap();
                let new = pods_of(replicas, weight);
                assert!(weight_of(new, replicas) <= weight, "{replicas} {weight}");
                assert!(
                    new == replicas || weight_of(new + 1, replicas) > weight,
                    "{replicas} {weight}: one more would fit"
                );
            }
        }
        assert_eq!(pods_of(3, Percent::try_from(33).unwrap()), 0);
        assert_eq!(pods_of(3, Percent::try_from(34).unwrap()), 1);
    }

    #[test]
    fn a_pod_that_others_take_away_is_told_from_one_that_fails() {
        let at = |time: &str| format!("2026-03-02T10:{time}Z");
        let ready = |word: &str, since: &str| json!({"type": "Ready", "status": word, "lastTransitionTime": at(since)});
        let lost =
            |since: &str| json!({"type": "Ready", "status": "False", "reason": "x", "lastTransitionTime": at(since)});
        let target = json!({"type": "DisruptionTarget", "status": "True", "lastTransitionTime": at("06:00")});
        let containers = json!({"type": "ContainersReady", "status": "True"});
        // It was told to end at 10:06, and has half a minute.
        let ends = json!({"deletionTimestamp": at("06:30"), "deletionGracePeriodSeconds": 30});
        let (stays, fine) = (json!({}), json!({}));
        let table = [
            ("serves", &stays, json!([ready("True", "00:10")]), &fine, [false, false]),
            ("never was ready", &stays, json!([lost("00:00")]), &fine, [false, false]),
            ("failed", &stays, json!([lost("05:00")]), &fine, [false, true]),
            (
                "crashed at its start",
                &stays,
                json!([lost("00:00")]),
                &json!({"containerStatuses": [{"restartCount": 1}]}),
                [false, true],
            ),
            ("told to end", &ends, json!([ready("True", "00:10")]), &fine, [true, false]),
            ("told to end, and has", &ends, json!([lost("06:10")]), &fine, [true, false]),
            ("failed, and told to end", &ends, json!([lost("05:00")]), &fine, [false, false]),
            ("to be evicted", &stays, json!([lost("06:00"), target]), &fine, [true, false]),
            ("failed, and to be evicted", &stays, json!([lost("05:00"), target]), &fine, [false, true]),
            (
                "its node shuts down",
                &stays,
                json!([lost("06:01"), target]),
                &json!({"reason": "Terminated"}),
                [true, false],
            ),
            ("its node is short", &stays, json!([lost("06:01"), target]), &json!({"reason": "Evicted"}), [false, true]),
            ("its node is lost", &stays, json!([ready("False", "06:00"), containers]), &fine, [true, false]),
        ];
        for (what, metadata, conditions, status, expected) in table {
            let mut value = json!({"metadata": metadata, "status": status});
            value["metadata"]["creationTimestamp"] = at("00:00").into();
            value["status"]["startTime"] = at("00:00").into();
            value["status"]["conditions"] = conditions;
            let pod = object(Kind::Pod, "web-x", value);
            let member = Member { pod: &pod, role: RoleName::Candidate };
            assert_eq!([member.was_taken(), member.has_failed()], expected, "{what}");
        }
    }

    #[test]
    fn only_the_template_is_the_candidates() {
        let stable = object(
            Kind::StatefulSet,
            "db",
            json!({"spec": {"replicas": 3, "minReadySeconds": 1, "template": {"a": 1}}}),
        );
        let new = object(
            Kind::StatefulSet,
            "db",
            json!({"spec": {"replicas": 9, "minReadySeconds": 2, "template": {"b": 2}}}),
        );
        let made = with_template(&stable, &new, &pods());
        let labels = json!({PODS: pods().as_str()});
        assert_eq!(made.at("/spec/template"), Some(&json!({"b": 2, "metadata": {"labels": labels}})));
        assert_eq!((size(&made), made.int("/spec/minReadySeconds")), (3, Some(1)));
    }
}
