//! Does what plans ask for, in the cluster: retreats at once, everything else only with the proof that Git says so.

use super::evidence::Collector;
use super::faults;
use super::lead::Lead;
use super::record::Recorded;
use crate::cluster::client::Cluster;
use crate::cluster::lease::LeaseHeld;
use crate::cluster::watch::Watches;
use crate::manifest::ids::RolloutId;
use crate::plan::action::{Action, Class, Verb};
use crate::record::state::Time;
use crate::report::metrics::{Metrics, outcome_label};
use crate::workload::live::{Expects, WriteOutcome};
use futures::{FutureExt, StreamExt};
use std::collections::BTreeMap;
use tracing::Instrument as _;

/// How many rollouts are written to at once.
const AT_ONCE: usize = 16;

/// What came of one rollout's actions.
#[derive(Debug, Clone, PartialEq)]
pub enum Ran {
    /// All were done; so many.
    All(usize),
    /// One was not, and the rest was left: the outcome.
    Stopped(WriteOutcome),
    /// The record does not allow one of them: the plan is not what was recorded.
    NotRecorded,
    /// A write like it failed a moment ago.
    Rests,
    /// We do not lead any more.
    Lost,
}

impl Ran {
    /// Whether what was planned with these retreats is void: the world had moved, or they may not be done. Where a retreat
    /// failed otherwise the record goes on without it: it keeps the old posture as ceiling until live was read lower.
    #[must_use]
    pub fn voids(&self) -> bool {
        match self {
            Self::Stopped(WriteOutcome::Stale(_)) | Self::Lost | Self::NotRecorded | Self::Rests => true,
            Self::All(_) | Self::Stopped(_) => false,
        }
    }
}

/// Writes to the cluster.
pub struct Executor<'a> {
    /// Where to.
    pub cluster: &'a Cluster,
    /// Told of each write, so that the next plan sees it.
    pub watches: &'a Watches,
    /// Told of each failure.
    pub evidence: &'a Collector,
    /// Asked before each write.
    pub lead: &'a Lead,
    /// Counts.
    pub metrics: &'a Metrics,
    /// The time of this tick.
    pub now: Time,
}

/// Actions by rollout, each list in its order.
pub type Lists<'a> = BTreeMap<&'a RolloutId, Vec<&'a Action>>;

/// By whose leave something is done.
#[derive(Clone, Copy)]
enum Leave<'a> {
    /// It only lowers what the new version reaches.
    Retreat,
    /// Git says so.
    Recorded(&'a Recorded<'a>),
}

impl Leave<'_> {
    fn covers(self, action: &Action) -> bool {
        match self {
            Self::Retreat => action.class == Class::Retreat,
            Self::Recorded(proof) => proof.allows(action),
        }
    }
}

impl Executor<'_> {
    /// Does what only lowers what the new version reaches. Needs nothing but to lead.
    pub async fn retreats(&self, held: &LeaseHeld, lists: &Lists<'_>) -> BTreeMap<RolloutId, Ran> {
        self.all(held, lists, Leave::Retreat).await
    }

    /// Does what the record allows.
    pub async fn advance(&self, held: &LeaseHeld, proof: &Recorded<'_>, lists: &Lists<'_>) -> BTreeMap<RolloutId, Ran> {
        self.all(held, lists, Leave::Recorded(proof)).await
    }

    /// Rollouts side by side, the actions of one in their order up to the first that is not done.
    async fn all(&self, held: &LeaseHeld, lists: &Lists<'_>, leave: Leave<'_>) -> BTreeMap<RolloutId, Ran> {
        let mut runs = Vec::with_capacity(lists.len());
        for (rollout, actions) in lists {
            let rollout: &RolloutId = rollout;
            runs.push(async move { (rollout.clone(), self.one(held, actions, leave).await) }.boxed());
        }
        futures::stream::iter(runs).buffer_unordered(AT_ONCE).collect().await
    }

    async fn one(&self, held: &LeaseHeld, actions: &[&Action], leave: Leave<'_>) -> Ran {
        for action in actions {
            if !leave.covers(action) {
                tracing::debug!(rollout = %action.rollout, why = action.why, "the record does not say so");
                return Ran::NotRecorded;
            }
            if self.evidence.rests(action, self.now) {
                return Ran::Rests;
            }
            if !self.lead.still(held) {
                return Ran::Lost;
            }
            let span = tracing::info_span!("action", rollout = %action.rollout, object = %action.verb.target());
            let outcome = faults::effect(&action.why, self.cluster.perform(action)).instrument(span.clone()).await;
            span.in_scope(|| self.note(action, &outcome));
            if !matches!(outcome, WriteOutcome::Done(_)) {
                return Ran::Stopped(outcome);
            }
        }
        Ran::All(actions.len())
    }

    fn note(&self, action: &Action, outcome: &WriteOutcome) {
        self.metrics.acted(action.class, outcome);
        self.evidence.wrote(action, outcome);
        let object = action.verb.target();
        match outcome {
            WriteOutcome::Done(written) => {
                tracing::info!(rollout = %action.rollout, %object, class = ?action.class, why = action.why, "done");
                match (written, &action.verb) {
                    (Some(written), verb) => self.watches.absorb((**written).clone(), verb.expects()),
                    (None, Verb::Delete { expects, .. }) => match expects {
                        Expects::Uid(uid) | Expects::Version { uid, .. } => self.watches.absorb_delete(object, uid),
                        Expects::Absent => {}
                    },
                    (None, Verb::Apply { .. } | Verb::Migrate { .. } | Verb::CopySecret(_)) => {}
                }
            }
            WriteOutcome::Stale(why) => {
                tracing::debug!(rollout = %action.rollout, %object, why, "the world has moved; observes again");
            }
            WriteOutcome::Conflict { manager, fields } => {
                let fields = fields.join(", ");
                tracing::warn!(rollout = %action.rollout, %object, manager, fields, "another manager owns fields");
            }
            WriteOutcome::Refused(why) | WriteOutcome::Forbidden(why) | WriteOutcome::Retriable(why) => {
                let outcome = outcome_label(outcome);
                tracing::warn!(rollout = %action.rollout, %object, class = ?action.class, outcome, why, "not done");
            }
            WriteOutcome::MissingKind(kind) => {
                tracing::warn!(rollout = %action.rollout, %object, %kind, "the cluster does not serve this kind");
            }
        }
    }
}
