//! The record: what Git says that we are allowed to do and have done, one `RolloutState` for each rollout.
//!
//! Unknown fields survive a write by an older version; an unknown phase means hold. Requirement X-1.

use super::posture::Posture;
use super::unknown::Unknown;
use crate::manifest::files::RepoPath;
use crate::manifest::ids::{
    BlobId, ClusterName, CommitId, InstanceName, PodsDigest, Revision, RolloutId, RunId, SetId, StepName,
};
use crate::manifest::object::{Object, ObjectRef};
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::collections::BTreeMap;

/// A point in time, to the second.
pub type Time = DateTime<Utc>;

/// The record of one rollout (`rollouts/<namespace>/<name>/state.yaml` on the state branch).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutState {
    /// Always `tidegate.io/v1alpha1`.
    pub api_version: String,
    /// Always `RolloutState`.
    pub kind: String,
    /// Which rollout.
    pub metadata: RolloutId,
    /// Who wrote it, where.
    pub writer: Writer,
    /// Grows by one with each write of this record.
    pub seq: u64,
    /// What main said when it was written.
    pub source: Source,
    /// The number of the next run.
    pub next_run: u32,
    /// The version that serves when no run is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promoted: Option<Promoted>,
    /// Where it stands.
    pub phase: Phase,
    /// The open run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Run>,
    /// The id of the last run that ended, and the decisions tip when it started: late words name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run: Option<EndedRun>,
    /// What each cluster is allowed to be.
    #[serde(default)]
    pub clusters: BTreeMap<ClusterName, ClusterState>,
    /// The branch that proposes to undo the last run's change on main: proposed once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revert: Option<Pull>,
    /// The decisions that have been counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub consumed: Vec<Consumed>,
    /// Revisions that are not started again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Refused>,
    /// What people should know that is not a phase: a rejected file, drift, a held rollout.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// The last 20 runs, newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<PastRun>,
    /// What a newer version wrote; `store` reads it and writes it back.
    #[serde(skip)]
    pub unknown: Unknown,
}

/// Who wrote a record, where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Writer {
    /// The instance.
    pub instance: InstanceName,
    /// Its version.
    pub version: String,
    /// The cluster that holds its Lease.
    pub cluster: ClusterName,
    /// The uid of that cluster (of its namespace `kube-system`).
    pub cluster_uid: String,
    /// The Lease's `leaseTransitions` when it was written: the fencing token.
    pub epoch: u64,
}

/// What main said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Source {
    /// Main's tip.
    pub commit: CommitId,
    /// The rollout's file there.
    pub path: RepoPath,
}

/// A version that was promoted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Promoted {
    /// Its manifests.
    pub set: SetId,
    /// Its revision.
    pub revision: Revision,
    /// Its pods.
    pub pods: PodsDigest,
    /// The label value that its pods carry, once promoted by a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<PodsDigest>,
    /// The run that promoted it; `0` for the first sight.
    pub run: RunId,
    /// When.
    pub at: Time,
}

/// Where a rollout stands (design §5). The transitions are those of [`Phase::may_become`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "name", remote = "Self")]
pub enum Phase {
    /// First sight: stable is brought up.
    Initializing(Clock),
    /// Nothing is open.
    Steady {
        /// How it came to rest.
        how: Rest,
        /// Since when.
        since: Time,
    },
    /// A gate or evidence for the next step is missing; the posture stays.
    Waiting {
        /// The step that it stands on; none before *prepare*.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<Stop>,
        /// The step that it would enter.
        next: StepName,
        /// Since when.
        since: Time,
    },
    /// On *prepare* or a phase of the plan.
    Progressing(Stop),
    /// All phases are done, the promotion gate is closed.
    WaitingPromotion {
        /// The last step of the phases.
        at: Stop,
        /// Since when.
        since: Time,
    },
    /// *shift* or *promote*.
    Promoting(Stop),
    /// *return* or *retire*.
    Finalising(Stop),
    /// On the way back: *restore*, *split* or *retire*.
    Reverting {
        /// The step of the Back list.
        #[serde(flatten)]
        stop: Stop,
        /// Why it goes back.
        why: String,
        /// Where it ends.
        then: Then,
    },
    /// The run's revision is refused.
    Failed {
        /// What failed.
        why: String,
        /// Since when.
        since: Time,
        /// Which role serves.
        standing: Standing,
    },
    /// The manifest is gone; ends with the record's removal.
    Terminating {
        /// Since when.
        since: Time,
    },
    /// Written by a newer version, and kept as it is: hold.
    #[serde(skip)]
    Unknown(Value),
}

// With `remote = "Self"` the derived code is inherent; these wrap it for the one phase that has no fixed shape.
impl Serialize for Phase {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Self::Unknown(raw) = self { raw.serialize(serializer) } else { Self::serialize(self, serializer) }
    }
}

impl<'de> Deserialize<'de> for Phase {
    /// A phase of an unknown name is [`Phase::Unknown`]; a known name with other fields is an error.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Value::deserialize(deserializer)?;
        match raw.get("name").and_then(Value::as_str) {
            Some(name) if !Self::NAMES.contains(&name) => Ok(Self::Unknown(raw)),
            Some(_) | None => Self::deserialize(raw).map_err(serde::de::Error::custom),
        }
    }
}

/// A step that was entered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stop {
    /// Its name.
    pub step: StepName,
    /// The sequence number of the record that entered it: what a fence asks of live objects.
    pub seq: u64,
    /// Its clock.
    #[serde(flatten)]
    pub clock: Clock,
}

/// When a step was entered and since when it is exposed (design §13.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Clock {
    /// When the step was recorded.
    pub entered: Time,
    /// The first tick that saw it reached: soak counts from here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exposed: Option<Time>,
    /// Seconds since `entered` in which nobody observed; they count for nothing.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub paused: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl Clock {
    /// A step entered now.
    #[must_use]
    pub fn entered(now: Time) -> Self {
        Self { entered: now, exposed: None, paused: 0 }
    }
}

/// How a rollout came to rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Rest {
    /// At first sight.
    Initialized,
    /// Its last run was promoted.
    Succeeded,
    /// Its last run was taken back by a person's word, or by main.
    Reverted,
}

/// Where a way back ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Then {
    /// Steady(Reverted).
    Reverted,
    /// Steady(Reverted), and the revision is refused by a person's word.
    Aborted,
    /// Failed: evidence refused the revision.
    Failed,
    /// The next run, for what main says now.
    NextRun,
    /// Terminating.
    Terminating,
}

/// Which role serves after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Standing {
    /// Stable, as promoted.
    Stable,
    /// The healthy candidate: stable was not ready at *promote* by the deadline (C-19).
    OnCandidate,
}

/// A run under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// How it goes.
    pub route: Route,
    /// The set that was stable when it started.
    pub from: SetId,
    /// The set that it brings.
    pub to: SetId,
    /// The revision of `to`.
    pub revision: Revision,
    /// The pods of `to`.
    pub pods: PodsDigest,
    /// The decisions tip when it started: only later words count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decisions_at: Option<CommitId>,
    /// When it started.
    pub started: Time,
    /// Main's tip when it started.
    pub source: CommitId,
    /// Stable's pods per cluster when it entered *prepare*.
    #[serde(default)]
    pub baseline: BTreeMap<ClusterName, u32>,
    /// The step whose soak and checks a person skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<StepName>,
    /// Approval holds up to and with this step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approved: Vec<StepName>,
    /// A person bars entry to the next step.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
    /// A person said no: nothing is asked again before `resume`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub denied: bool,
    /// Its requests for approval, by step.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pulls: BTreeMap<StepName, Pull>,
}

/// What a run brings about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Route {
    /// All phases, with a candidate.
    Phases,
    /// The pods are equal, or there is no router: promotion gate → promote.
    Plain,
    /// Back to a promoted set: prepare, shift, promote, return, retire.
    Rollback,
}

/// A run that ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndedRun {
    /// Its id.
    pub id: RunId,
    /// The decisions tip when it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decisions_at: Option<CommitId>,
}

/// A request for a person's word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pull {
    /// Its branch.
    pub branch: String,
    /// The head that was seen there.
    pub head: CommitId,
}

/// What one cluster is allowed to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterState {
    /// The uid of the cluster.
    pub uid: String,
    /// The most that it may expose.
    pub posture: Posture,
    /// The objects that are ours there.
    #[serde(default)]
    pub inventory: Vec<Owned>,
}

/// An object that is ours.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Owned {
    /// Which.
    #[serde(flatten)]
    pub reference: ObjectRef,
    /// Its uid.
    pub uid: String,
    /// Whose copy it is.
    pub role: RoleName,
}

/// The two roles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RoleName {
    /// Serves when in doubt.
    Stable,
    /// The new version.
    Candidate,
}

/// A decision that was counted: by path and content, once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Consumed {
    /// Its file on the decisions branch.
    pub path: RepoPath,
    /// Its content.
    pub blob: BlobId,
    /// What it said.
    pub action: String,
    /// The run that it spoke of.
    pub run: RunId,
    /// How it was proved: `none` where the Git host alone vouches.
    pub proof: String,
    /// Who brought it to the decisions branch, as Git says; where Git does not say it, that.
    pub by: String,
    /// When it was counted.
    pub at: Time,
}

/// A revision that is not started again until `retry` or other content (N-4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Refused {
    /// The revision.
    pub revision: Revision,
    /// The run that met it.
    pub run: RunId,
    /// How that run ended.
    pub outcome: Outcome,
    /// Why.
    pub why: String,
    /// When.
    pub at: Time,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Outcome {
    /// It is the stable version now.
    Promoted,
    /// Main went back to the promoted version.
    Reverted,
    /// Main moved on to a third version.
    Superseded,
    /// Evidence was against it.
    Failed,
    /// A person stopped it.
    Aborted,
    /// A person went back from it after its promotion.
    RolledBack,
}

/// What people should know that is not a phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Condition {
    /// One word, of the documented list.
    pub reason: String,
    /// What it means here.
    pub message: String,
    /// Since when.
    pub since: Time,
    /// When it ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    /// What a person can do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub act: Option<String>,
}

/// A run in the history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PastRun {
    /// Its id.
    pub run: RunId,
    /// From which set.
    pub from: SetId,
    /// To which set.
    pub to: SetId,
    /// The revision of `to`.
    pub revision: Revision,
    /// How it ended.
    pub outcome: Outcome,
    /// Why.
    pub why: String,
    /// When it started.
    pub started: Time,
    /// When it ended.
    pub ended: Time,
}

impl Phase {
    /// The labels of all phases that this version knows.
    pub const NAMES: [&'static str; 10] = [
        "Initializing",
        "Steady",
        "Waiting",
        "Progressing",
        "WaitingPromotion",
        "Promoting",
        "Finalising",
        "Reverting",
        "Failed",
        "Terminating",
    ];

    /// The label that people see.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Initializing(_) => "Initializing",
            Self::Steady { .. } => "Steady",
            Self::Waiting { .. } => "Waiting",
            Self::Progressing(_) => "Progressing",
            Self::WaitingPromotion { .. } => "WaitingPromotion",
            Self::Promoting(_) => "Promoting",
            Self::Finalising(_) => "Finalising",
            Self::Reverting { .. } => "Reverting",
            Self::Failed { .. } => "Failed",
            Self::Terminating { .. } => "Terminating",
            Self::Unknown(_) => "Unknown",
        }
    }

    /// The step that is entered, if one is.
    #[must_use]
    pub fn stop(&self) -> Option<&Stop> {
        match self {
            Self::Progressing(stop) | Self::Promoting(stop) | Self::Finalising(stop) => Some(stop),
            Self::Waiting { at, .. } => at.as_ref(),
            Self::WaitingPromotion { at, .. } => Some(at),
            Self::Reverting { stop, .. } => Some(stop),
            Self::Initializing(_)
            | Self::Steady { .. }
            | Self::Failed { .. }
            | Self::Terminating { .. }
            | Self::Unknown(_) => None,
        }
    }

    /// Whether the table of design §5 lets one phase follow the other (C-12). Staying is always allowed.
    #[must_use]
    pub fn may_become(&self, next: &Self) -> bool {
        let allowed: &[&str] = match self {
            Self::Initializing(_) => &["Steady", "Failed", "Terminating"],
            Self::Steady { .. } => &["Waiting", "Progressing", "Promoting", "Terminating"],
            Self::Waiting { .. } => &["Progressing", "Promoting", "Reverting", "Failed", "Steady", "Terminating"],
            Self::Progressing(_) => &["Waiting", "WaitingPromotion", "Promoting", "Reverting"],
            Self::WaitingPromotion { .. } => &["Promoting", "Reverting"],
            Self::Promoting(_) => &["Finalising", "Reverting", "Failed"],
            Self::Finalising(_) => &["Reverting", "Steady"],
            Self::Reverting { .. } => &["Steady", "Failed", "Waiting", "Terminating"],
            Self::Failed { .. } => {
                &["Initializing", "Waiting", "Progressing", "Promoting", "Reverting", "Steady", "Terminating"]
            }
            Self::Terminating { .. } | Self::Unknown(_) => &[],
        };
        self.name() == next.name() || allowed.contains(&next.name())
    }
}

impl Owned {
    /// Whether it is that live object, and not a later one of the same name.
    #[must_use]
    pub fn is(&self, live: &Object) -> bool {
        self.reference == *live.reference() && Some(self.uid.as_str()) == live.uid()
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{stop, time};
    use super::*;

    fn phases() -> Vec<Phase> {
        let (since, why) = (time("10:00:00"), String::new());
        let stop = stop("tenth");
        vec![
            Phase::Initializing(Clock::entered(since)),
            Phase::Steady { how: Rest::Succeeded, since },
            Phase::Waiting { at: None, next: stop.step.clone(), since },
            Phase::Progressing(stop.clone()),
            Phase::WaitingPromotion { at: stop.clone(), since },
            Phase::Promoting(stop.clone()),
            Phase::Finalising(stop.clone()),
            Phase::Reverting { stop, why: why.clone(), then: Then::Failed },
            Phase::Failed { why, since, standing: Standing::Stable },
            Phase::Terminating { since },
        ]
    }

    #[test]
    fn c_12_phases_follow_each_other_as_one_table_says() {
        // One row for each phase, one column for what it may become, both in the order of `Phase::NAMES`.
        let table = [
            "x x . . . . . . x x",
            ". x x x . x . . . x",
            ". x x x . x . x x x",
            ". . x x x x . x . .",
            ". . . . x x . x . .",
            ". . . . . x x x x .",
            ". x . . . . x x . .",
            ". x x . . . . x x x",
            "x x x x . x . x x x",
            ". . . . . . . . . x",
        ];
        assert_eq!(phases().iter().map(Phase::name).collect::<Vec<_>>(), Phase::NAMES);
        for (from, row) in phases().iter().zip(table) {
            let found: Vec<&str> = phases().iter().map(|to| if from.may_become(to) { "x" } else { "." }).collect();
            assert_eq!(found.join(" "), row, "{}", from.name());
        }
        let unknown = Phase::Unknown(Value::Null);
        assert!(phases().iter().all(|phase| !unknown.may_become(phase) && !phase.may_become(&unknown)));
    }
}
