//! What main wants, with the live objects that it tracks: a change of one is a version like any other (requirement C-7).

use super::input::{Desired, Input, Live};
use crate::manifest::desired::{Rollout, Set, Target};
use crate::manifest::ids::{Namespace, ObjectName};
use crate::manifest::reference::Referent;
use crate::manifest::set;
use crate::manifest::tracked::{self, Tracked};
use crate::target::live::LiveState;
use crate::target::tracked::of_live;
use std::sync::Arc;

impl Input {
    /// The same, where main's version takes along what is live of the objects that it tracks.
    ///
    /// Promoted sets come with what is live by now beside what they took: a rollback brings the one with the other.
    #[must_use]
    pub fn tracking(mut self) -> Self {
        let (Desired::Wanted(rollout), Live::Seen(live)) = (&self.desired, &self.live) else { return self };
        let (rollout, live) = (Arc::clone(rollout), Arc::clone(live));
        let (target, namespace) = (&rollout.plan.target, &self.id.namespace);
        let past = self.sets.values().filter(|set| !set.tracked.is_empty());
        let past: Vec<_> = past.filter_map(|set| as_live(set, target, &live, namespace)).collect();
        self.sets.extend(past.into_iter().map(|set| (set.id.clone(), set)));
        if target.track.is_empty() {
            return self;
        }
        match taken(target.track.all(), target, &live, namespace) {
            Ok(tracked) => {
                let set = Arc::new(with(&rollout.set, target, tracked));
                self.sets.insert(set.id.clone(), Arc::clone(&set));
                self.desired = Desired::Wanted(Arc::new(Rollout { set, ..(*rollout).clone() }));
            }
            Err(missing) => {
                let all = missing.iter().map(|(kind, name)| format!("{kind} {name}")).collect::<Vec<_>>().join(", ");
                let why = format!("{all}, which target.track names, is not in the namespace {namespace}");
                self.desired = Desired::Lacking(rollout, why);
            }
        }
        self
    }
}

/// A set with what is live by now of the objects that it tracks; none if one of them is not there.
#[must_use]
pub fn as_live(set: &Arc<Set>, target: &Target, live: &LiveState, namespace: &Namespace) -> Option<Arc<Set>> {
    if set.tracked.is_empty() {
        return Some(Arc::clone(set));
    }
    let names = set.tracked.keys().map(|(kind, name)| (*kind, name));
    let taken = taken(names, target, live, namespace).ok()?;
    Some(Arc::new(with(set, target, taken)))
}

fn taken<'a>(
    names: impl Iterator<Item = (Referent, &'a ObjectName)>,
    target: &Target,
    live: &LiveState,
    namespace: &Namespace,
) -> Result<Tracked, Vec<(Referent, ObjectName)>> {
    tracked::take(names, &target.name, |kind, name| of_live(kind, name, live, namespace))
}

fn with(set: &Set, target: &Target, tracked: Tracked) -> Set {
    match set.get(target.kind.kind(), &target.name) {
        Some(target) => set::tracking(set, target, tracked),
        None => set.clone(),
    }
}
