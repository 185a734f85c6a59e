//! Puts together what one rollout's plan is made from: everything observed, as values, with one `now`.

use super::clock::Clock;
use super::source::{GitView, LoadedRecord, LoadedRecords, Policies};
use super::unobserved::{ClockStep, NamespaceGaps, UnobservedSpans};
use crate::cluster::brake::BrakeSight;
use crate::cluster::store::Observed;
use crate::cluster::watch::Watches;
use crate::gate::brake::BrakeWord;
use crate::gate::decisions::DecisionFile;
use crate::gate::guard::Guard;
use crate::gate::wave::Waves;
use crate::manifest::desired::Rollout;
use crate::manifest::files::RepoPath;
use crate::manifest::ids::{CommitId, InstanceName, Namespace, RolloutId};
use crate::manifest::object::{Kind, OWNER};
use crate::manifest::proof::{ApprovalRule, By};
use crate::plan::evidence::Evidence;
use crate::plan::input::{Decisions, Desired, Input, Live, MayStart, PolicyView, RecordedState, RequestBranch};
use crate::plan::report::Reason;
use crate::plan::unread;
use crate::record::state::{RolloutState, Time, Writer};
use crate::workload::tree::Trees;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The cluster, as it was read at one moment.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// When.
    pub now: Time,
    /// How the clock went since the look before.
    pub step: ClockStep,
    spaces: BTreeMap<Namespace, Space>,
    trees: Arc<Trees>,
    brake: BrakeSight,
}

/// One namespace.
#[derive(Debug, Clone)]
struct Space {
    live: Live,
    /// When nobody observed it.
    gaps: NamespaceGaps,
}

impl Space {
    fn is(&self, other: &Self) -> bool {
        let same = match (&self.live, &other.live) {
            (Live::Seen(live), Live::Seen(other)) => Arc::ptr_eq(live, other),
            (Live::Away { why }, Live::Away { why: other }) => why == other,
            (Live::Seen(_), Live::Away { .. }) | (Live::Away { .. }, Live::Seen(_)) => false,
        };
        same && self.gaps == other.gaps
    }
}

impl Snapshot {
    /// Reads what the watches know, and notes in `gaps` what cannot be read, and when nobody looked.
    #[must_use]
    pub fn take(
        watches: &Watches,
        namespaces: &BTreeSet<Namespace>,
        gaps: &mut UnobservedSpans,
        clock: &Clock,
    ) -> Self {
        let now = clock.now();
        let step = gaps.look(now, clock.instant());
        let mut spaces = BTreeMap::new();
        for namespace in namespaces {
            let live = match watches.snapshot(namespace) {
                Observed::Ready(live) | Observed::Partly(live) => Live::Seen(live),
                Observed::NotYet { why } | Observed::Lost { why, .. } => Live::Away { why },
            };
            let closed = match &live {
                Live::Seen(live) => Some(&live.closed),
                Live::Away { .. } => None,
            };
            gaps.see(namespace, closed, now);
            spaces.insert(namespace.clone(), Space { live, gaps: gaps.of(namespace) });
        }
        Self { now, step, spaces, trees: Arc::new(watches.trees()), brake: watches.brake() }
    }

    /// Of no namespace.
    #[cfg(test)]
    pub(super) fn empty(now: Time) -> Self {
        Self {
            now,
            step: ClockStep::On,
            spaces: BTreeMap::new(),
            trees: Arc::default(),
            brake: BrakeSight::Unknown { why: "nobody looked".to_owned() },
        }
    }

    /// What a namespace looked like.
    #[must_use]
    pub fn live(&self, namespace: &Namespace) -> Live {
        self.spaces.get(namespace).map(|space| space.live.clone()).unwrap_or_else(|| Live::Away {
            why: format!("the namespace {namespace} is not among those of this installation"),
        })
    }

    /// In how many namespaces a kind cannot be read.
    #[must_use]
    pub fn unread(&self) -> BTreeMap<Kind, i64> {
        let mut unread = BTreeMap::new();
        for space in self.spaces.values() {
            if let Live::Seen(live) = &space.live {
                live.closed.keys().for_each(|kind| *unread.entry(*kind).or_default() += 1);
            }
        }
        unread
    }

    /// When nobody observed a namespace.
    fn gaps(&self, namespace: &Namespace) -> NamespaceGaps {
        self.spaces.get(namespace).map(|space| space.gaps.clone()).unwrap_or_default()
    }

    /// The namespaces that are not as they were then; `None` if the brake is not, or a proxy that they share: all may be concerned.
    #[must_use]
    pub fn moved_since(&self, then: &Self) -> Option<BTreeSet<&Namespace>> {
        let moved = self.spaces.iter().filter(|(name, space)| then.spaces.get(*name).is_none_or(|old| !space.is(old)));
        (self.brake == then.brake && self.trees == then.trees).then(|| moved.map(|(name, _)| name).collect())
    }

    /// The rollouts of an instance that live objects name as their owners: all that is known without Git.
    #[must_use]
    pub fn owners(&self, instance: &InstanceName) -> BTreeSet<RolloutId> {
        let seen = self.spaces.values().filter_map(|space| match &space.live {
            Live::Seen(live) => Some(live),
            Live::Away { .. } => None,
        });
        let owners = seen.flat_map(|live| live.objects.values()).filter_map(|object| object.annotation(OWNER));
        owners.filter_map(|owner| owner.strip_prefix(instance.as_str())?.strip_prefix('/')?.parse().ok()).collect()
    }
}

/// What all rollouts of a tick have in common.
#[derive(Debug, Clone, Copy)]
pub struct Scene<'a> {
    /// Who plans.
    pub me: &'a Writer,
    /// What Git says.
    pub view: &'a GitView,
    /// What the cluster looked like, before.
    pub snapshot: &'a Snapshot,
    /// What can prove approvals.
    pub by: By,
    /// What the Git host says of the decisions branch.
    pub guard: &'a Guard,
}

impl Scene<'_> {
    /// Every rollout that there is something to plan for.
    #[must_use]
    pub fn rollouts(&self) -> BTreeSet<RolloutId> {
        let mut ids: BTreeSet<RolloutId> = self.view.rollouts().into_iter().collect();
        if matches!(self.view.records, LoadedRecords::Unreadable(_)) {
            ids.extend(self.snapshot.owners(&self.me.instance));
        }
        ids
    }

    /// Whose turn it is, where there is a fleet.
    fn waves(&self, id: &RolloutId) -> Option<Waves> {
        let fleet = Arc::clone(self.view.main.policies()?.fleet()?);
        let rollout = self.view.main.rollout(id);
        let clusters = rollout.map(|rollout| rollout.clusters.clone()).unwrap_or_default();
        let wants = rollout.map(|rollout| rollout.elsewhere.clone()).unwrap_or_default();
        let others = clusters.iter().filter(|cluster| **cluster != self.me.cluster);
        let peers = others.map(|cluster| (cluster.clone(), self.view.peers.of(cluster, id))).collect();
        Some(Waves { fleet, clusters, wants, peers })
    }

    /// Everything that this rollout's next move depends on.
    #[must_use]
    pub fn input(&self, id: &RolloutId, evidence: Arc<Evidence>, may_start: MayStart) -> Input {
        let record = self.view.records.get(id);
        let desired = self.desired(id);
        let mut sets = record.map(|record| record.sets.clone()).unwrap_or_default();
        if let Desired::Wanted(rollout) = &desired {
            sets.insert(rollout.set.id.clone(), Arc::clone(&rollout.set));
        }
        let mut policy = match (&desired, record.and_then(|record| record.state.as_ref().ok())) {
            (Desired::Wanted(rollout), _) => self.view.main.policy(&rollout.path, may_start),
            (_, Some(state)) => self.view.main.policy(&state.source.path, may_start),
            // Neither wanted nor recorded: there is nothing that a policy could allow.
            (_, None) => PolicyView { may_start, ..PolicyView::default() },
        };
        policy.waves = self.waves(id);
        policy.proof = policy.proof.map(|rule| ApprovalRule { by: self.by, ..rule });
        if policy.guard != Guard::Unasked {
            policy.guard = self.guard.clone();
        }
        let mut input = Input {
            now: self.snapshot.now,
            id: id.clone(),
            me: self.me.clone(),
            desired,
            main: self.main(record.and_then(|record| record.state.as_ref().ok())),
            recorded: self.recorded(id),
            sets,
            past: record.map(|record| record.past.clone()).unwrap_or_default(),
            decisions: self.decisions(id),
            proposals: self.proposals(id),
            policy,
            brake: self.snapshot.brake.of(id),
            live: match self.snapshot.live(&id.namespace) {
                // What the plan asks of it is what the next one depends on.
                Live::Seen(live) => Live::Seen(Arc::new(live.attentive())),
                away @ Live::Away { .. } => away,
            },
            trees: Arc::clone(&self.snapshot.trees),
            evidence,
            gaps: Vec::new(),
            git: self.view.git.clone(),
        }
        .tracking();
        input.gaps = self.snapshot.gaps(&id.namespace).counted(&unread::needs(&input), input.now);
        input
    }

    /// The tip of main that is acted upon. While a new process believes none, that stays the one that the record names, so that
    /// the next tip has something to descend from.
    fn main(&self, recorded: Option<&RolloutState>) -> CommitId {
        let recorded = || recorded.map(|state| &state.source.commit);
        self.view.main.commit.as_ref().or_else(recorded).cloned().unwrap_or_else(CommitId::none)
    }

    fn desired(&self, id: &RolloutId) -> Desired {
        let record = self.view.records.get(id).and_then(|record| record.state.as_ref().ok());
        match self.view.main.desired(id, record) {
            Desired::Wanted(rollout) if !rollout.clusters.contains(&self.me.cluster) => {
                let clusters = rollout.clusters.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                let (their, ours) = (format!("its tenant runs on the cluster {clusters}"), &self.me.cluster);
                Desired::Rejected(format!("{their}, but this controller serves {ours}"))
            }
            desired @ (Desired::Wanted(_)
            | Desired::Lacking(..)
            | Desired::Rejected(_)
            | Desired::Gone
            | Desired::Unreadable(_)) => desired,
        }
    }

    fn recorded(&self, id: &RolloutId) -> RecordedState {
        match (&self.view.records, self.view.records.get(id)) {
            (LoadedRecords::Unreadable(why), _) => RecordedState::Unreadable(why.clone()),
            (LoadedRecords::Read(_), None) => RecordedState::None,
            (LoadedRecords::Read(_), Some(record)) => match &record.state {
                Ok(state) => RecordedState::State(Box::new(state.clone()), record.plan.clone()),
                Err(why) => RecordedState::Unreadable(why.clone()),
            },
        }
    }

    fn decisions(&self, id: &RolloutId) -> Decisions {
        Decisions { requests: self.requests(id), ..self.view.decisions.about(id) }
    }

    /// By which requests decisions about a rollout came.
    fn requests(&self, id: &RolloutId) -> BTreeMap<RepoPath, BTreeSet<String>> {
        let GitView { requests, tips, records, decisions: words, .. } = self.view;
        requests.brought(&self.me.instance, tips, records, words.later(id))
    }

    fn proposals(&self, id: &RolloutId) -> BTreeMap<String, RequestBranch> {
        self.view.requests.about(&self.me.instance, &self.view.tips, id)
    }

    /// What a plan for this rollout depends on besides live objects, cheap to keep and to compare.
    #[must_use]
    pub fn fingerprint(&self, id: &RolloutId, may_start: MayStart) -> InputFingerprint {
        let (wanted, unwanted) = match self.desired(id) {
            Desired::Wanted(rollout) => (Some(rollout), String::new()),
            // What is live is asked for by each plan.
            Desired::Lacking(rollout, _) => (Some(rollout), String::new()),
            Desired::Rejected(why) => (None, format!("rejected: {why}")),
            Desired::Gone => (None, "gone".to_owned()),
            Desired::Unreadable(why) => (None, format!("unreadable: {why}")),
        };
        let (missing, others, closed, away) = match self.snapshot.live(&id.namespace) {
            Live::Seen(live) => (live.missing.clone(), live.others.clone(), live.closed.clone(), String::new()),
            Live::Away { why } => (BTreeSet::new(), BTreeSet::new(), BTreeMap::new(), why),
        };
        InputFingerprint {
            policies: self.view.main.policies().map(Same),
            wanted: wanted.map(Same),
            unwanted,
            record: self.view.records.get(id).map(|record| Same(Arc::clone(record))),
            missing,
            others,
            closed,
            away,
            words: self.view.decisions.filed(id).map(Same),
            dated: self.view.decisions.is_dated(id),
            unreadable: self.view.decisions.unreadable(id).map(str::to_owned),
            requests: self.requests(id),
            proposals: self.proposals(id),
            guard: self.guard.clone(),
            waves: self.waves(id),
            trees: Arc::clone(&self.snapshot.trees),
            brake: self.snapshot.brake.of(id),
            may_start,
            gaps: self.snapshot.gaps(&id.namespace),
            trouble: self.view.git.trouble().map(|wait| wait.reason),
            trusted: matches!(self.view.records, LoadedRecords::Read(_)),
        }
    }
}

/// What a plan depended on besides the objects that it asked for ([`crate::workload::objects::Footprint`]). While both stay the
/// same and no time has come, the plan would be the same too.
#[derive(Debug, PartialEq)]
pub struct InputFingerprint {
    policies: Option<Same<Policies>>,
    wanted: Option<Same<Rollout>>,
    unwanted: String,
    record: Option<Same<LoadedRecord>>,
    missing: BTreeSet<Kind>,
    others: BTreeSet<Kind>,
    closed: BTreeMap<Kind, String>,
    away: String,
    words: Option<Same<Vec<DecisionFile>>>,
    dated: bool,
    unreadable: Option<String>,
    requests: BTreeMap<RepoPath, BTreeSet<String>>,
    proposals: BTreeMap<String, RequestBranch>,
    guard: Guard,
    waves: Option<Waves>,
    trees: Arc<Trees>,
    brake: Result<Option<BrakeWord>, String>,
    may_start: MayStart,
    gaps: NamespaceGaps,
    trouble: Option<Reason>,
    trusted: bool,
}

/// Equal if it is the very same value: holding it keeps its address from being used again.
#[derive(Debug)]
struct Same<T>(Arc<T>);

impl<T> PartialEq for Same<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
