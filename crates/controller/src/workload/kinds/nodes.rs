//! Nodes as units: which files each shall have of either version, which it has, and what it says of them.
//!
//! A node is told by its NodeConfig, which has its name: what it shall have, and what to go back to. Contents are ConfigMaps that are
//! named by their digests, so that nodes with the same files share one. What a node says counts only where it is about exactly what
//! it is told now (requirement N-2).

use super::shared::{ceiling, count};
use crate::manifest::desired::{Plan, Set};
use crate::manifest::duration::Span;
use crate::manifest::ids::{Namespace, ObjectName};
use crate::manifest::layer::NodeLabels;
use crate::manifest::object::{Kind, Object, ObjectRef, items};
use crate::record::posture::Split;
use crate::record::state::{RoleName, Time};
use crate::workload::live::LiveState;
use crate::workload::pace::{PacedUnits, Standing, Zone};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use contents::Contents;
pub use contents::{NodeFiles, in_use, may_be_content};
pub use order::ZONE;

mod contents;
mod order;

/// A node on its way between two versions.
#[derive(Debug, Clone)]
pub struct Unit<'a> {
    /// The Node.
    pub node: &'a Object,
    /// What it is told, if it was told anything.
    pub config: Option<&'a Object>,
    /// What it has of stable's version.
    old: Rc<NodeFiles>,
    /// What it has of the candidate's.
    new: Rc<NodeFiles>,
    /// Whether it carries the candidate's version.
    is_new: bool,
    /// What it has not done in time, if there is something.
    late: Option<Late>,
    /// How long it has still to do what it is to do next.
    left: Option<Span>,
    /// Its zone, where zones have limits.
    zone: Option<Zone>,
}

/// What a node has not done in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Late {
    /// Its agent has not begun: that says nothing of what it was told (requirement N-10).
    Pickup,
    /// Its agent has begun, and has come to no end (requirement N-9).
    End,
}

/// What is live, and how old it is.
#[derive(Clone, Copy)]
pub struct Sight<'a, 'c> {
    /// What is there.
    pub live: &'a LiveState,
    /// Where the rollout is.
    pub namespace: &'a Namespace,
    /// Our field manager.
    pub manager: &'a str,
    /// How long ago something was, as far as anybody observed since (requirement N-11).
    pub age: &'c dyn Fn(Time) -> Span,
}

/// The nodes of a rollout, in the order in which they become new.
#[derive(Debug, Clone)]
pub struct Nodes<'a> {
    units: Vec<Unit<'a>>,
    /// Nodes whose layers contradict each other, and why: they keep what they have.
    pub conflicts: Vec<String>,
    attempt: u64,
    slots: u32,
    stalled: u32,
    proven: bool,
}

/// The two versions that nodes are between: the same where no run is open.
#[derive(Debug, Clone, Copy)]
pub struct NodeVersions<'a> {
    /// The one that serves when in doubt.
    pub stable: &'a Set,
    /// The one that a run brings.
    pub candidate: &'a Set,
    /// Which try it is.
    pub attempt: u64,
    /// Whether stable's version was ever seen to work: what it is the first of any may kill nodes too.
    pub proven: bool,
}

impl<'a> Nodes<'a> {
    /// The nodes that any layer of either version is for, and those that have been told something before: who is for no layer any more has no
    /// files.
    #[must_use]
    pub fn read(plan: &Plan, sight: Sight<'a, '_>, versions: NodeVersions<'a>) -> Self {
        let Sight { live, namespace, .. } = sight;
        let NodeVersions { stable, candidate, attempt, proven } = versions;
        let (mut old, mut new) = (Contents::of(plan, stable), Contents::of(plan, candidate));
        let (mut units, mut conflicts) = (Vec::new(), Vec::new());
        for node in live.of_kind(Kind::Node).filter(|node| node.reference().namespace == *namespace) {
            let labels = labels(node);
            if plan.nodes.as_ref().is_none_or(|allowed| !allowed.selects(&labels)) {
                continue;
            }
            let config = live.find(Kind::NodeConfig, namespace, &node.reference().name);
            if config.is_none() && !old.is_for(&labels) && !new.is_for(&labels) {
                continue;
            }
            match old.content(&labels).and_then(|old| Ok((old, new.content(&labels)?))) {
                Ok((old, new)) => {
                    let is_new = config.is_some_and(|config| carries(config, &old, &new, candidate.revision.as_str()));
                    let mut unit = Unit { node, config, old, new, is_new, late: None, left: None, zone: None };
                    if let Some((late, left)) = unit.deadline(sight, plan) {
                        unit.late = Some(late).filter(|_| left.is_zero());
                        unit.left = Some(left).filter(|left| !left.is_zero());
                    }
                    units.push(unit);
                }
                Err(why) => conflicts.push(format!("{}: {why}", node.reference().name)),
            }
        }
        let rolling = &plan.rolling_update;
        order::in_order(&mut units, rolling);
        order::in_zones(&mut units, rolling);
        let all = count(units.iter());
        Self { units, conflicts, attempt, slots: rolling.slots(all), stalled: rolling.stalled(all), proven }
    }

    /// All of them.
    #[must_use]
    pub fn units(&self) -> &[Unit<'a>] {
        &self.units
    }

    /// How many have other files in the candidate's version: those that a share is one of.
    #[must_use]
    pub fn size(&self) -> u32 {
        count(self.units.iter().filter(|unit| unit.changes()))
    }

    /// Those that carry the candidate's version, proven or not.
    pub fn carriers(&self) -> impl Iterator<Item = &Unit<'a>> {
        self.units.iter().filter(|unit| unit.is_new)
    }

    /// How many may carry it: those of a split's share and number, and those that were let in before others left.
    #[must_use]
    pub fn most(&self, split: &Split) -> u32 {
        ceiling(self.size(), split).max(split.units.done)
    }

    /// How many carry it and have said so.
    #[must_use]
    pub fn proven(&self) -> u32 {
        count(self.carriers().filter(|unit| unit.is_confirmed()))
    }

    /// The next names for the record: those that may be told about the candidate's version once it says so (requirement N-25). None where
    /// enough of those that it names are left, or all are named that a split lets in.
    #[must_use]
    pub fn next_batch(&self, split: &Split) -> Option<BTreeSet<ObjectName>> {
        const LARGEST: usize = 100;
        let named = &split.units.batch;
        let has_slot = self.has_slot();
        let waits = |unit: &&Unit<'_>| unit.changes() && !unit.is_new && unit.is_ready() && has_slot(unit);
        let left: Vec<&ObjectName> = self.units.iter().filter(waits).map(Unit::name).collect();
        let open = left.iter().filter(|name| named.contains(**name)).count();
        let quota =
            usize::try_from(ceiling(self.size(), split).saturating_sub(count(self.carriers()))).unwrap_or(usize::MAX);
        let slots = usize::try_from(self.slots).unwrap_or(usize::MAX);
        if open >= quota.min(slots) {
            return None;
        }
        let size = self.units.len().div_ceil(50).max(slots).min(LARGEST).min(quota);
        let next = left.into_iter().filter(|name| !named.contains(*name)).take(size - open.min(size)).cloned();
        let next: Vec<ObjectName> = next.collect();
        // Who is on its way keeps its name there until it has said that it has come.
        let kept =
            self.units.iter().filter(|unit| named.contains(unit.name()) && !(unit.is_new && unit.is_confirmed()));
        (!next.is_empty()).then(|| kept.map(|unit| unit.name().clone()).chain(next).collect())
    }

    /// Who is told something now, and of which version, where so much may be exposed of the candidate's: first who has what neither version
    /// says, then those that the record names. Nobody while too many have fallen silent under the candidate's version.
    #[must_use]
    pub fn due(&self, split: &Split) -> Vec<(&Unit<'a>, RoleName)> {
        if self.is_held() {
            return Vec::new();
        }
        let quota = ceiling(self.size(), split).saturating_sub(count(self.carriers()));
        let repairs = self.units.iter().filter(|unit| unit.is_astray() && unit.is_ready());
        let named = |unit: &&Unit<'_>| unit.changes() && !unit.is_astray() && split.units.batch.contains(unit.name());
        let fresh = |unit: &&Unit<'_>| !unit.is_new || unit.is_of_another_try(self.attempt);
        let has_slot = self.has_slot();
        let fresh = self.units.iter().filter(|unit| named(unit) && fresh(unit) && unit.is_ready() && !unit.is_moving());
        let fresh = fresh.filter(|unit| has_slot(unit)).take(usize::try_from(quota).unwrap_or(usize::MAX));
        let go = repairs.map(|unit| (unit, RoleName::Stable)).chain(fresh.map(|unit| (unit, RoleName::Candidate)));
        let moving = self.units.iter().filter(|unit| unit.is_moving() && !unit.is_astray());
        let moving = moving.map(|unit| ((unit, RoleName::Stable), Standing::Moving));
        self.paced(go.map(|go| (go, Standing::Fresh)).chain(moving), &self.lost_in_zones())
    }

    /// Who goes back now: at once who has not come yet, is not ready, or has failed; of the others as many as have a slot, the last first.
    #[must_use]
    pub fn due_back(&self) -> Vec<(&Unit<'a>, RoleName)> {
        let standing = |unit: &Unit<'_>| match (unit.is_new, unit.is_confirmed() && unit.is_ready()) {
            (true, true) => Standing::Fresh,
            (true, false) => Standing::Failed,
            (false, _) if unit.is_moving() => Standing::Moving,
            (false, _) => Standing::Confirmed,
        };
        // What is silent has failed, and takes its slot as such.
        self.paced(self.units.iter().rev().map(|unit| ((unit, RoleName::Stable), standing(unit))), &[])
    }

    fn paced<'u>(
        &'u self,
        units: impl Iterator<Item = ((&'u Unit<'a>, RoleName), Standing)>,
        away: &[usize],
    ) -> Vec<(&'u Unit<'a>, RoleName)> {
        let units = PacedUnits { units: units.collect(), between: 0 };
        units.due_by_zone(u32::MAX, self.slots, away, |(unit, _)| unit.zone)
    }

    /// Whether it carries the candidate's version, or the first there is, and is silent.
    fn is_lost(&self, unit: &Unit<'_>) -> bool {
        let carries = unit.is_new || !self.proven && unit.config.is_some() && !unit.is_confirmed();
        carries && (!unit.is_ready() || unit.late == Some(Late::Pickup))
    }

    /// How many carry the candidate's version, or the first there is, and are silent: they hold up nobody, and no more of them may be made than
    /// the pace lets be away.
    #[must_use]
    pub fn lost(&self) -> u32 {
        count(self.units.iter().filter(|unit| self.is_lost(unit)))
    }

    /// Whether everybody that may be told has been, and has said that it has it; who is not ready comes later. Where nobody is ready, or nobody
    /// may be told, nothing is shown.
    #[must_use]
    pub fn is_settled(&self, split: &Split) -> bool {
        let waits = |unit: &Unit<'_>| unit.changes() && !unit.is_new && unit.is_ready();
        let waiting = count(self.units.iter().filter(|unit| waits(unit)));
        let most = ceiling(self.size(), split);
        let open = most.saturating_sub(count(self.carriers())).min(waiting);
        let shown = if self.proven {
            self.size() == 0 || split.is_stable() || most > 0 && self.proven() > 0
        } else {
            self.units.is_empty() || self.units.iter().any(Unit::is_confirmed)
        };
        let astray = self.units.iter().any(|unit| unit.is_ready() && unit.is_astray());
        shown && open == 0 && !astray && !self.is_held() && !self.units.iter().any(Unit::is_moving)
    }

    /// How long until the first of them is late, if nothing is heard of it.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Span> {
        self.units.iter().filter_map(|unit| unit.left).min()
    }

    /// Whether nobody is told anything, as too many have fallen silent.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.lost() > self.stalled
    }

    /// What to wait for, in words.
    #[must_use]
    pub fn waits(&self, split: &Split) -> String {
        let moving: Vec<&str> =
            self.units.iter().filter(|unit| unit.is_moving()).map(|unit| unit.name().as_str()).collect();
        let (new, most) = (count(self.carriers()), ceiling(self.size(), split));
        let lost = self.lost();
        if let Some(silent) = self.silent_zone() {
            return format!("node {silent} fell silent with the new version, and of its zone no more may be away");
        }
        if self.is_held() {
            return format!("{lost} nodes fell silent with the new version, and {} may", self.stalled);
        }
        let first = moving.iter().take(3).copied().collect::<Vec<_>>().join(", ");
        let more = if moving.len() > 3 { format!(" and {} more", moving.len() - 3) } else { String::new() };
        if most == 0 && self.proven && self.size() > 0 {
            format!("{} percent of {} nodes is less than one node", split.weight, self.size())
        } else if moving.is_empty() {
            format!("{new} of {most} nodes have the new version, and no other is ready")
        } else {
            format!("{new} of {most} nodes have the new version; {first}{more} has still to say so")
        }
    }

    /// The first that says that it could not take the candidate's version, and what it says.
    #[must_use]
    pub fn failed(&self) -> Option<String> {
        let failed = |unit: &&Unit<'_>| unit.is_failed() && !unit.is_of_another_try(self.attempt);
        self.carriers().find(failed).map(Unit::said)
    }

    /// The first that says that it could not take the only version there is.
    #[must_use]
    pub fn failed_at_first(&self) -> Option<String> {
        self.units.iter().find(|unit| unit.is_failed() && unit.has(&unit.old)).map(Unit::said)
    }

    /// The NodeConfig that tells a node about the content of that role.
    #[must_use]
    pub fn assigned(&self, unit: &Unit<'_>, role: RoleName, (stable, candidate): (&str, &str)) -> Object {
        let (content, revision) = match role {
            RoleName::Stable => (&unit.old, stable),
            RoleName::Candidate => (&unit.new, candidate),
        };
        let told = |pointer: &str| Some(unit.config?.text(pointer)?.to_owned());
        let (name, digest) = if unit.is_confirmed() {
            (told("/spec/content"), told("/spec/digest"))
        } else {
            (told("/spec/previous/content"), told("/spec/previous/digest"))
        };
        let attempt = if role == RoleName::Candidate { self.attempt } else { unit.attempt() };
        let mut spec = json!({
            "content": content.name, "digest": content.digest, "revision": revision, "attempt": attempt,
        });
        if let Some((name, digest)) = name.zip(digest).filter(|(_, digest)| *digest != content.digest) {
            spec["previous"] = json!({"content": name, "digest": digest});
        }
        let owner = json!({
            "apiVersion": "v1", "kind": "Node", "name": unit.name(), "uid": unit.node.uid().unwrap_or_default(),
        });
        let reference = ObjectRef { kind: Kind::NodeConfig, ..unit.node.reference().clone() };
        let metadata = json!({
            "name": reference.name, "namespace": reference.namespace, "ownerReferences": [owner],
        });
        let kind = Kind::NodeConfig;
        Object::new(
            reference,
            json!({"apiVersion": kind.api_version(), "kind": kind.as_str(), "metadata": metadata, "spec": spec}),
        )
    }

    /// Whether all have said that they have what they are told: until then no content goes (requirement N-26).
    #[must_use]
    pub fn are_all_confirmed(&self) -> bool {
        self.units.iter().all(|unit| unit.config.is_none() || unit.is_confirmed())
    }

    /// All contents that nodes have of the two versions, each once, as stable's where it is.
    #[must_use]
    pub fn contents(&self, namespace: &Namespace) -> BTreeMap<ObjectRef, (Object, RoleName)> {
        let mut all = BTreeMap::new();
        for role in [RoleName::Candidate, RoleName::Stable] {
            for unit in &self.units {
                let content = if role == RoleName::Stable { &unit.old } else { &unit.new };
                let object = content.object(namespace);
                all.insert(object.reference().clone(), (object, role));
            }
        }
        all
    }
}

impl Unit<'_> {
    /// The name of the Node, and of what tells it.
    #[must_use]
    pub fn name(&self) -> &ObjectName {
        &self.node.reference().name
    }

    /// Whether the candidate's version has other files for it.
    #[must_use]
    pub fn changes(&self) -> bool {
        self.old != self.new
    }

    /// Whether the kubelet says that it is ready.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        is_ready(self.node)
    }

    fn state(&self) -> Option<&str> {
        answered(self.config?)
    }

    /// Whether it says that it has what it is told.
    #[must_use]
    pub fn is_confirmed(&self) -> bool {
        self.state() == Some("Applied")
    }

    /// Whether it says that it could not have it, or comes to no end.
    #[must_use]
    pub fn is_failed(&self) -> bool {
        self.late == Some(Late::End) || matches!(self.state(), Some("Failed" | "RestoreFailed"))
    }

    /// Whether it says that it could not go back to what it had: nobody but a person, or other content, gets it out of that.
    #[must_use]
    pub fn is_quarantined(&self) -> bool {
        self.state() == Some("RestoreFailed")
    }

    /// Whether it carries the candidate's version.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// Whether it is told something that it has not answered, and could.
    #[must_use]
    pub fn is_moving(&self) -> bool {
        let failed = self.is_failed() && !self.is_new;
        let answered = self.is_confirmed() || failed || self.late == Some(Late::Pickup);
        self.config.is_some() && self.is_ready() && !answered
    }

    /// Whether it was told nothing yet, or what neither version says.
    fn is_astray(&self) -> bool {
        let has_none = self.config.is_none() && self.old.is_empty();
        !(self.is_new || self.has(&self.old) || has_none)
    }

    fn has(&self, content: &NodeFiles) -> bool {
        self.config.and_then(|config| config.text("/spec/digest")) == Some(content.digest.as_str())
    }

    fn attempt(&self) -> u64 {
        let attempt = self.config.and_then(|config| config.int("/spec/attempt")).unwrap_or(0);
        u64::try_from(attempt).unwrap_or(0)
    }

    /// Whether it was told in a run before, and has not taken it.
    fn is_of_another_try(&self, attempt: u64) -> bool {
        self.attempt() != attempt && !self.is_confirmed()
    }

    /// What a node that is ready is to do next, and how long it has still: from when the API server took what it is told, and what its agent said first, so that no other
    /// clock counts.
    fn deadline(&self, Sight { manager, age, .. }: Sight<'_, '_>, plan: &Plan) -> Option<(Late, Span)> {
        let config = self.config.filter(|_| self.is_ready())?;
        let (since, most, late) = match self.state() {
            Some("Started") => (last_written(config, true)?, plan.progress_deadline, Late::End),
            Some("Applied" | "Failed" | "RestoreFailed") => return None,
            // Anything else is of something else, or of nothing that is known, or `Refused`: nothing was begun, and its agent tries again.
            Some(_) | None => {
                let since = written(config, &|entry| entry["manager"] == manager && !is_status(entry))?;
                (since, plan.rolling_update.pickup(), Late::Pickup)
            }
        };
        Some((late, Span::from_secs(most.as_secs().saturating_sub(age(since).as_secs()))))
    }

    /// What it says, for people: bounded, and without anything that is no text.
    #[must_use]
    pub fn said(&self) -> String {
        let message = self.config.and_then(|config| config.text("/status/message")).unwrap_or("without a word");
        let message: String = message.chars().map(|c| if c.is_control() { ' ' } else { c }).take(300).collect();
        match self.late {
            Some(Late::End) => format!("node {}: it has begun, and has come to no end in time", self.name()),
            Some(Late::Pickup) | None => {
                format!("node {}: {}: {message}", self.name(), self.state().unwrap_or_default())
            }
        }
    }
}

/// Whether a node says that it is ready.
#[must_use]
pub fn is_ready(node: &Object) -> bool {
    let ready = |one: &Value| one["type"] == "Ready" && one["status"] == "True";
    node.at("/status").is_some_and(|status| items(status, "conditions").any(ready))
}

/// What an agent says, where that is about exactly what its node is told (requirement N-2): anything else is of something else, good or bad.
#[must_use]
pub fn answered(config: &Object) -> Option<&str> {
    let same = |of: &str, spec: &str| config.at(of).is_some_and(|said| config.at(spec) == Some(said));
    let about = same("/status/digest", "/spec/digest")
        && same("/status/attempt", "/spec/attempt")
        && same("/status/observedGeneration", "/metadata/generation");
    config.text("/status/state").filter(|_| about)
}

/// When the API server took what a node is told, or what its agent says of it, last.
#[must_use]
pub fn last_written(config: &Object, status: bool) -> Option<Time> {
    written(config, &|entry| is_status(entry) == status)
}

fn is_status(entry: &Value) -> bool {
    entry["subresource"] == "status"
}

fn written(config: &Object, of: &dyn Fn(&Value) -> bool) -> Option<Time> {
    let entries = items(config.at("/metadata")?, "managedFields").filter(|entry| of(entry));
    entries.filter_map(|entry| entry["time"].as_str()?.parse::<Time>().ok()).max()
}

/// Whether what a node is told is the candidate's version: its content, or any other under its name, as the content that a relabelled node
/// had of it.
fn carries(config: &Object, old: &NodeFiles, new: &NodeFiles, revision: &str) -> bool {
    let digest = config.text("/spec/digest");
    let is = |content: &NodeFiles| digest == Some(content.digest.as_str());
    old.digest != new.digest && !is(old) && (is(new) || config.text("/spec/revision") == Some(revision))
}

fn labels(node: &Object) -> NodeLabels {
    let all = node.at("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
    all.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

#[cfg(test)]
mod tests;
