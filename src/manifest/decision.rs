//! A human's word on a rollout, as a file in Git.

use super::ids::{RolloutId, RunId, StepName};

/// What a person decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// About which rollout.
    pub rollout: RolloutId,
    /// About which run: the open one, else the last, else `0`; for `retry` the ended run, for `rollback` the promoted
    /// run to go back to.
    pub run: RunId,
    /// What shall be done.
    pub action: DecisionAction,
    /// Why, in the person's words.
    pub reason: Option<String>,
}

/// What a decision does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecisionAction {
    /// Opens approval gates up to and with a step.
    Approve {
        /// That step: a phase, or `promotion`.
        through: StepName,
    },
    /// The posture stays, and nothing is asked again before `resume`.
    Deny,
    /// Ends this step's soak and checks; never readiness, gates or floors.
    Skip,
    /// Bars entry to the next step.
    Hold,
    /// Lifts hold and deny.
    Resume,
    /// Back; the revision is refused.
    Abort,
    /// Lifts the refusal of an ended run's revision.
    Retry,
    /// Back to a promoted run.
    Rollback,
}
