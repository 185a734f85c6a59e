//! What main wants, with the live objects that it tracks: a change of one is a version like any other (requirement C-7).
//!
//! ConfigMaps are watched. Secrets are looked up by name, for their metadata alone, every now and then.

use super::draft::Draft;
use super::evidence::{Evidence, Found};
use super::input::{Desired, Input, Live, RecordedState};
use super::missing::AGAIN;
use super::report::{Reason, Wait};
use super::unread;
use crate::manifest::desired::{Rollout, Set, Target};
use crate::manifest::ids::{Namespace, ObjectName};
use crate::manifest::object::ObjectRef;
use crate::manifest::reference::Referent;
use crate::manifest::set;
use crate::manifest::tracked::{self, Tracked};
use crate::record::state::Time;
use crate::record::text::plain;
use crate::workload::live::LiveState;
use crate::workload::lookup::{Identity, Lookup, Presence};
use crate::workload::tracked::{KEPT, of_live, secrets};
use chrono::TimeDelta;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How often what is there is looked up again.
const EVERY: TimeDelta = TimeDelta::seconds(30);

/// For how long after a write another one may look the same: times of writes are whole seconds, and clocks differ a little.
const SETTLES: TimeDelta = TimeDelta::seconds(5);
/// Clocks that are further apart say nothing of moments.
const APART: TimeDelta = TimeDelta::minutes(1);

/// Where tracked objects are seen.
#[derive(Debug, Clone, Copy)]
pub struct TrackedView<'a> {
    live: &'a LiveState,
    evidence: &'a Evidence,
    namespace: &'a Namespace,
}

impl<'a> TrackedView<'a> {
    /// What is seen of the rollout's namespace.
    #[must_use]
    pub fn of(input: &'a Input, live: &'a LiveState) -> Self {
        Self { live, evidence: &input.evidence, namespace: &input.id.namespace }
    }

    /// What looking up a Secret came to; none if nobody has.
    #[must_use]
    pub fn secret(self, name: &ObjectName) -> Option<&'a Presence> {
        Some(&self.evidence.looked.get(&lookup(self.namespace, name))?.presence)
    }

    /// Which content a tracked object has.
    #[must_use]
    pub fn content(self, kind: Referent, name: &ObjectName) -> Option<String> {
        if kind != Referent::Secret {
            return of_live(kind, name, self.live, self.namespace);
        }
        match self.secret(name)? {
            Presence::There(Identity { version, .. }) => Some(version.clone()),
            Presence::Absent | Presence::Forbidden(_) | Presence::Unknown(_) => None,
        }
    }

    /// Until when a Secret could get another content that its metadata does not tell from this one, if it still could: a copy that is made
    /// before might not be of what is there in the end.
    #[must_use]
    pub fn unsettled(self, name: &ObjectName, now: Time) -> Option<Time> {
        let Presence::There(Identity { written, .. }) = self.secret(name)? else { return None };
        let settled = (*written)? + SETTLES;
        (now < settled && settled <= now + SETTLES + APART).then_some(settled)
    }

    /// Why the content of a tracked object is not known.
    #[must_use]
    pub fn unseen(self, kind: Referent, name: &ObjectName) -> (Reason, String) {
        let looked = if kind == Referent::Secret { self.secret(name) } else { Some(&Presence::Absent) };
        let why = |why: &str| format!("{kind} {name} could not be looked up: {}", plain(why));
        if let Some(text) = kind.kind().and_then(|kind| unread::why(self.live, kind)) {
            return (Reason::ClusterAway, why(text));
        }
        match looked {
            None | Some(Presence::There(_)) => (Reason::Evidence, format!("{kind} {name} is being looked up")),
            Some(Presence::Absent) => (Reason::ReferenceMissing, format!("{kind} {name}")),
            Some(Presence::Forbidden(text)) => (Reason::Forbidden, why(text)),
            Some(Presence::Unknown(text)) => (Reason::Retrying, why(text)),
        }
    }

    /// What to tell of tracked objects whose content is not known. As long as an answer is awaited nothing else: it would change
    /// with each.
    fn lacking(self, missing: &[(Referent, ObjectName)]) -> Wait {
        let mut told: BTreeMap<Reason, Vec<String>> = BTreeMap::new();
        for (kind, name) in missing {
            let (reason, text) = self.unseen(*kind, name);
            told.entry(reason).or_default().push(text);
        }
        let first =
            [Reason::Evidence, Reason::ClusterAway, Reason::ReferenceMissing, Reason::Forbidden, Reason::Retrying];
        let reason = first.into_iter().find(|reason| told.contains_key(reason)).unwrap_or(Reason::Evidence);
        let all = told.remove(&reason).unwrap_or_default().join(", ");
        if reason == Reason::ReferenceMissing {
            let why = format!("{all}, which target.track names, is not in the namespace {}", self.namespace);
            return Wait::new(reason, why).act("create it again, or take it out of target.track");
        }
        Wait::new(reason, all)
    }
}

impl Input {
    /// The same, where main's version takes along what is live of the objects that it tracks.
    ///
    /// Promoted sets come with what is live by now beside what they took: a rollback brings the one with the other.
    #[must_use]
    pub fn tracking(mut self) -> Self {
        let (Desired::Wanted(rollout) | Desired::Lacking(rollout, _), Live::Seen(live)) = (&self.desired, &self.live)
        else {
            return self;
        };
        let (rollout, live, evidence) = (Arc::clone(rollout), Arc::clone(live), Arc::clone(&self.evidence));
        let target = &rollout.plan.target;
        let sight = TrackedView { live: &live, evidence: &evidence, namespace: &self.id.namespace };
        let past = self.sets.values().filter(|set| !set.tracked.is_empty());
        let past: Vec<_> = past.filter_map(|set| as_live(set, target, sight)).collect();
        self.sets.extend(past.into_iter().map(|set| (set.id.clone(), set)));
        if target.track.is_empty() {
            return self;
        }
        match taken(target.track.all(), target, sight) {
            Ok(tracked) => {
                let set = Arc::new(with(&rollout.set, target, tracked));
                self.sets.insert(set.id.clone(), Arc::clone(&set));
                self.desired = Desired::Wanted(Arc::new(Rollout { set, ..(*rollout).clone() }));
            }
            Err(missing) => {
                let wait = sight.lacking(&missing);
                self.desired = Desired::Lacking(rollout, wait);
            }
        }
        self
    }
}

/// A set with what is live by now of the objects that it tracks; none if one of them is not there.
#[must_use]
pub fn as_live(set: &Arc<Set>, target: &Target, sight: TrackedView<'_>) -> Option<Arc<Set>> {
    if set.tracked.is_empty() {
        return Some(Arc::clone(set));
    }
    let names = set.tracked.keys().map(|(kind, name)| (*kind, name));
    let taken = taken(names, target, sight).ok()?;
    Some(Arc::new(with(set, target, taken)))
}

fn taken<'a>(
    names: impl Iterator<Item = (Referent, &'a ObjectName)>,
    target: &Target,
    sight: TrackedView<'_>,
) -> Result<Tracked, Vec<(Referent, ObjectName)>> {
    tracked::take(names, &target.name, |kind, name| sight.content(kind, name))
}

fn with(set: &Set, target: &Target, tracked: Tracked) -> Set {
    match set.get(target.kind.kind(), &target.name) {
        Some(target) => set::tracking(set, target, tracked),
        None => set.clone(),
    }
}

fn lookup(namespace: &Namespace, name: &ObjectName) -> Lookup {
    Lookup { to: Referent::Secret, namespace: namespace.clone(), name: name.clone() }
}

/// What is looked up again and again: Secrets that main tracks, those that versions in use, or that people name, have taken, and their
/// copies.
#[must_use]
pub fn watched(input: &Input) -> BTreeSet<Lookup> {
    let namespace = &input.id.namespace;
    let wanted = match &input.desired {
        Desired::Wanted(rollout) | Desired::Lacking(rollout, _) => Some(&rollout.plan.target.track),
        Desired::Rejected(_) | Desired::Gone | Desired::Unreadable(_) => None,
    };
    let mut names: BTreeSet<&ObjectName> = wanted.into_iter().flat_map(|track| &track.secrets).collect();
    let (RecordedState::State(..), Live::Seen(live)) = (&input.recorded, &input.live) else {
        return names.into_iter().map(|name| lookup(namespace, name)).collect();
    };
    let taken = secrets(input.sets.values().map(AsRef::as_ref));
    for (copy, (secret, _)) in taken {
        names.insert(secret);
        // Without an anchor there is no copy.
        let anchor = ObjectRef { kind: KEPT, namespace: namespace.clone(), name: copy.clone() };
        names.extend(live.get(&anchor).map(|_| copy));
    }
    names.into_iter().map(|name| lookup(namespace, name)).collect()
}

/// Whether part of what is live was not read yet.
#[must_use]
pub fn is_unread(input: &Input, waits: &[Wait]) -> bool {
    waits.iter().any(|wait| wait.reason == Reason::ClusterAway)
        || watched(input).iter().any(|lookup| !input.evidence.looked.contains_key(lookup))
}

/// Asks for what is not known of it, or may be otherwise by now.
pub fn look(draft: &mut Draft<'_>) {
    for lookup in watched(draft.input) {
        let found = draft.input.evidence.looked.get(&lookup);
        let again = found
            .map(|Found { presence, at }| *at + if matches!(presence, Presence::There(_)) { EVERY } else { AGAIN });
        match again {
            Some(again) if again > draft.now() => draft.wake(again),
            Some(_) | None => draft.lookups.push(lookup),
        }
    }
}
