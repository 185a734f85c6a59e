//! What is remembered of each rollout between two ticks: whether it has to be looked at again, and what it waits on.
//!
//! Nothing in it decides what is done; losing it costs one tick that looks at everything.

use super::observe::{InputFingerprint, Snapshot};
use super::source::{GitView, LoadedRecords};
use crate::gate::guard::Guard;
use crate::manifest::ids::RolloutId;
use crate::plan::draft::{RecordChange, RolloutPlan};
use crate::plan::input::{Input, Live};
use crate::plan::report::{Reason, Wait};
use crate::record::state::Time;
use crate::workload::objects::Footprint;
use chrono::TimeDelta;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// One rollout, as it was last planned.
#[derive(Debug)]
struct Track {
    seen: InputFingerprint,
    /// What the plan asked of the live objects.
    asked: Footprint,
    settled: Settled,
    waits: Vec<Wait>,
    wake_at: Option<Time>,
}

/// Whether a plan was for nothing to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Settled {
    No,
    Yes,
}

/// All rollouts.
#[derive(Debug, Default)]
pub struct Table {
    /// What all were looked at with last.
    last: Option<(Arc<GitView>, Snapshot)>,
    /// What the Git host said of the decisions branch then.
    guard: Guard,
    tracks: BTreeMap<RolloutId, Track>,
    /// Rollouts that Git or people's requests do not take now: not before then, after so many tries.
    resting: BTreeMap<RolloutId, (Time, u32)>,
    /// Rollouts whose next record the Git server does not take, and its decisions.
    rejected: BTreeMap<RolloutId, String>,
}

impl Table {
    /// The rollouts that may not sleep: those that want something or are due, and where something has moved since the last call.
    /// `None` if it may be any, or new ones. Costs little while nothing moves.
    #[must_use]
    pub fn restless(&self, view: &Arc<GitView>, snapshot: &Snapshot) -> Option<BTreeSet<RolloutId>> {
        // Where the record cannot be read, live objects may name more rollouts.
        let readable = matches!(view.records, LoadedRecords::Read(_));
        let (_, then) = self.last.as_ref().filter(|(then, _)| readable && Arc::ptr_eq(then, view))?;
        let moved = snapshot.moved_since(then)?;
        let restless = self.tracks.iter().filter(|(id, track)| {
            let due = track.wake_at.is_some_and(|wake| wake <= snapshot.now);
            // A place may be free again though nothing that is recorded has moved.
            let barred = track.waits.iter().any(|wait| wait.reason == Reason::Concurrency);
            track.settled == Settled::No || due || barred || moved.contains(&id.namespace)
        });
        Some(restless.map(|(id, _)| id.clone()).collect())
    }

    /// What all rollouts were looked at with last.
    #[must_use]
    pub fn looked_at(&self) -> Option<&Snapshot> {
        self.last.as_ref().map(|(_, snapshot)| snapshot)
    }

    /// Takes note of what the Git host says of the decisions branch: news concern all rollouts.
    pub fn guarded(&mut self, guard: &Guard) {
        if self.guard != *guard {
            self.guard = guard.clone();
            self.last = None;
        }
    }

    /// Takes note of what all rollouts are looked at with.
    pub fn looked(&mut self, view: &Arc<GitView>, snapshot: &Snapshot) {
        self.last = Some((Arc::clone(view), snapshot.clone()));
    }

    /// Whether nothing has changed for a rollout since its plan was for nothing to be done, and no time has come.
    #[must_use]
    pub fn sleeps(&self, id: &RolloutId, now: &InputFingerprint, snapshot: &Snapshot) -> bool {
        let Some(track) = self.tracks.get(id).filter(|track| track.settled == Settled::Yes) else { return false };
        let same = || match snapshot.live(&id.namespace) {
            Live::Seen(live) => track.asked.is_in(&live.objects),
            // The fingerprint says so, and the plan asked nothing.
            Live::Away { .. } => true,
        };
        track.seen == *now && track.wake_at.is_none_or(|wake| wake > snapshot.now) && same()
    }

    /// Takes note of a plan that was just made from `input`.
    pub fn planned(&mut self, input: &Input, seen: InputFingerprint, plan: &RolloutPlan) {
        let (id, now) = (&input.id, input.now);
        let asked = match &input.live {
            Live::Seen(live) => live.objects.footprint(),
            Live::Away { .. } => Footprint::default(),
        };
        let RolloutPlan {
            retreats,
            record,
            actions,
            proposals,
            void,
            waits,
            needs,
            lookups,
            questions,
            review_queries,
            wake_at,
        } = plan;
        let nothing = retreats.is_empty()
            && *record == RecordChange::Keep
            && actions.is_empty()
            && proposals.is_empty()
            && void.is_empty()
            && needs.is_empty()
            && lookups.is_empty()
            && questions.is_empty()
            && review_queries.is_empty();
        if *record == RecordChange::Keep {
            self.rejected.remove(id);
        }
        let settled = if nothing { Settled::Yes } else { Settled::No };
        // Whatever ends by itself is looked at when it does.
        let ends = waits.iter().filter_map(|wait| wait.until).filter(|until| *until > now).min();
        let wake_at = [*wake_at, ends].into_iter().flatten().min();
        self.tracks.insert(id.clone(), Track { seen, asked, settled, waits: waits.clone(), wake_at });
    }

    /// Forgets all rollouts but these; returns those that it forgot.
    pub fn keep(&mut self, ids: &BTreeSet<RolloutId>) -> Vec<RolloutId> {
        let gone: Vec<RolloutId> = self.tracks.keys().filter(|id| !ids.contains(id)).cloned().collect();
        self.tracks.retain(|id, _| ids.contains(id));
        self.resting.retain(|id, _| ids.contains(id));
        self.rejected.retain(|id, _| ids.contains(id));
        gone
    }

    /// Forgets everything: the next tick looks at every rollout.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Looks at these rollouts again at the next tick.
    pub fn wake(&mut self, ids: &BTreeSet<RolloutId>) {
        for id in ids {
            if let Some(track) = self.tracks.get_mut(id) {
                track.settled = Settled::No;
            }
        }
    }

    /// Leaves a rollout alone for a while, longer each time: something does not take what it wants.
    pub fn rest(&mut self, id: &RolloutId, now: Time) {
        let tries = self.resting.get(id).map_or(0, |(_, tries)| *tries);
        let pause = (5_i64 << tries.min(6)).min(300);
        self.resting.insert(id.clone(), (now + TimeDelta::seconds(pause), tries + 1));
    }

    /// The Git server does not take a rollout's record; says whether that, or why, is news.
    pub fn rejected(&mut self, id: &RolloutId, why: &str) -> bool {
        self.rejected.insert(id.clone(), why.to_owned()).as_deref() != Some(why)
    }

    /// The record of a rollout was taken.
    pub fn recorded(&mut self, id: &RolloutId) {
        self.rested(id);
        self.rejected.remove(id);
    }

    /// How many rollouts have a record that the Git server does not take.
    #[must_use]
    pub fn rejections(&self) -> usize {
        self.rejected.len()
    }

    /// A rollout got what it wanted.
    pub fn rested(&mut self, id: &RolloutId) {
        self.resting.remove(id);
    }

    /// Whether a rollout is left alone now.
    #[must_use]
    pub fn rests(&self, id: &RolloutId, now: Time) -> bool {
        self.resting.get(id).is_some_and(|(until, _)| now < *until)
    }

    /// What each rollout waits on.
    pub fn waits(&self) -> impl Iterator<Item = (&RolloutId, &[Wait])> {
        self.tracks.iter().map(|(id, track)| (id, track.waits.as_slice()))
    }

    /// All reasons, each counted once for a rollout.
    pub fn reasons(&self) -> impl Iterator<Item = Reason> {
        self.tracks.values().flat_map(|track| track.waits.iter().map(|wait| wait.reason).collect::<BTreeSet<_>>())
    }

    /// When the next rollout wants to be looked at. What rests does not count before its rest is over.
    #[must_use]
    pub fn wake_at(&self, now: Time) -> Option<Time> {
        let wakes = self.tracks.iter().filter_map(|(id, track)| {
            let wake = track.wake_at?;
            let rest = self.resting.get(id).map(|(until, _)| *until).filter(|until| *until > now);
            Some(rest.map_or(wake, |until| wake.max(until)))
        });
        wakes.chain(self.resting.values().map(|(until, _)| *until).filter(|until| *until > now)).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> RolloutId {
        format!("shop/{name}").parse().unwrap()
    }

    fn at(second: i64) -> Time {
        Time::from_timestamp(second, 0).unwrap()
    }

    #[test]
    fn who_is_refused_rests_longer_each_time_and_at_most_five_minutes() {
        let mut table = Table::default();
        let mut rests = Vec::new();
        for _ in 0..9 {
            table.rest(&id("a"), at(0));
            rests.push((table.wake_at(at(0)).unwrap() - at(0)).num_seconds());
        }
        assert_eq!(rests, [5, 10, 20, 40, 80, 160, 300, 300, 300]);
        assert!(table.rests(&id("a"), at(299)) && !table.rests(&id("a"), at(300)) && !table.rests(&id("b"), at(0)));
        table.rested(&id("a"));
        assert!(!table.rests(&id("a"), at(0)) && table.wake_at(at(0)).is_none());
    }
    #[test]
    fn a_record_that_is_rejected_is_news_once_for_each_reason() {
        let mut table = Table::default();
        let mut told = |name: &str, why: &str| table.rejected(&id(name), why);
        assert!(told("a", "protected branch") && !told("a", "protected branch") && told("b", "protected branch"));
        assert!(told("a", "pre-receive hook declined") && !told("a", "pre-receive hook declined"));
        assert_eq!(table.rejections(), 2);
        table.recorded(&id("a"));
        assert_eq!(table.rejections(), 1);
        assert!(table.rejected(&id("a"), "pre-receive hook declined"));
        table.keep(&[id("a")].into());
        assert_eq!(table.rejections(), 1);
    }
}
