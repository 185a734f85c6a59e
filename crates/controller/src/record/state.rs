//! The record: what Git says that we are allowed to do and have done, one `RolloutState` for each rollout.
//!
//! Unknown fields survive a write by an older version; an unknown phase means hold. Requirement X-1.

mod deletions;
mod governed;
mod phase;
mod proof;
mod run;

pub use deletions::{Consent, DeletionAnswer, DeletionQuestion, DeletionVerdict, Deletions};
pub use governed::{Governed, Terms};
pub use phase::{Phase, Position, Rest, Serving, StepClock, Then};
pub use proof::{Approved, Proven, Void};
pub use run::{Along, Checked, Consumed, EndedRun, Outcome, PastRun, Pull, Refused, Route, Run, Trial};

pub use crate::manifest::time::Time;

use super::posture::{Directly, Posture};
use super::unknown::Unknown;
use crate::manifest::files::RepoPath;
use crate::manifest::ids::{ClusterName, CommitId, InstanceName, PodsDigest, Revision, RolloutId, RunId, SetId};
use crate::manifest::object::{Object, ObjectRef};
use crate::manifest::proof::ApprovalRule;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A rollback that waits for the end of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PendingRollback {
    /// The promoted run to go back to.
    pub to: RunId,
    /// The run that was open. Once another has ended it says nothing any more.
    pub after: RunId,
}

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
    pub source: SetSource,
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
    /// The id of the last run that ended, and the decisions tip when it started: late decisions name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run: Option<EndedRun>,
    /// What a person said to go back to while a run was open: it is gone back to once that has ended, before all else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback: Option<PendingRollback>,
    /// What each cluster is allowed to be.
    #[serde(default)]
    pub clusters: BTreeMap<ClusterName, ClusterState>,
    /// The branch that proposes to undo the last run's change on main: proposed once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revert: Option<Pull>,
    /// Objects that are more than the policy lets go with one change: what people are asked, and have said.
    #[serde(default, skip_serializing_if = "Deletions::is_none")]
    pub deletions: Deletions,
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
    /// What the policy asks of what main wants: kept, so that one that loosens lets in no version that came with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Governed>,
    /// What a newer version wrote; `store` reads it and writes it back.
    #[serde(skip)]
    pub unknown: Unknown,
}

impl RolloutState {
    /// The decisions tip when the open (else the last) run started: only later decisions are about it.
    #[must_use]
    pub fn decisions_at(&self) -> Option<&CommitId> {
        match (&self.run, &self.last_run) {
            (Some(run), _) => run.decisions_at.as_ref(),
            (None, last) => last.as_ref()?.decisions_at.as_ref(),
        }
    }

    /// Where main had what is promoted; of what a rollback brought back, where main had it before. None of what was live.
    #[must_use]
    pub fn origin_of_stable(&self) -> Option<SetOrigin> {
        let Promoted { set, commit, path, decided, .. } = self.promoted.as_ref()?;
        let now = commit.clone().zip(path.clone());
        let now = now.map(|(commit, path)| SetOrigin { source: SetSource { commit, path }, decided: decided.clone() });
        let before = || self.history.iter().rev().filter(|past| past.from == *set).find_map(|past| past.stable.clone());
        now.or_else(before)
    }

    /// What main has changed directly of a set, while it wanted another version.
    #[must_use]
    pub fn directly(&self, set: &SetId) -> &Directly {
        static NOTHING: Directly = BTreeMap::new();
        self.promoted.as_ref().filter(|promoted| promoted.set == *set).map_or(&NOTHING, |promoted| &promoted.directly)
    }

    /// The run that people's decisions are about: the open one, else the last, else `0`.
    #[must_use]
    pub fn current(&self) -> RunId {
        let open = self.run.as_ref().map(|run| &run.id);
        open.or(self.last_run.as_ref().map(|run| &run.id)).cloned().unwrap_or_else(RunId::zero)
    }

    /// What proves people's decisions where the policy names these: the stricter of that and of what the open run started with, at rest of what
    /// held for what main wants, so that a policy which came with that lets nothing of it through.
    #[must_use]
    pub fn rule(&self, policy: Option<&ApprovalRule>) -> Option<ApprovalRule> {
        let known = match &self.run {
            Some(run) => run.rule.as_ref(),
            None => self.policy.as_ref().and_then(|known| known.terms().rule.as_ref()),
        };
        ApprovalRule::stricter(known, policy)
    }

    /// What was live at first sight and can be adopted, as people were told last.
    #[must_use]
    pub fn live_at_first_sight(&self) -> Option<&SetId> {
        self.conditions.iter().find_map(|condition| condition.live.as_ref())
    }
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
pub struct SetSource {
    /// Main's tip.
    pub commit: CommitId,
    /// The rollout's file there.
    pub path: RepoPath,
}

/// Where main had a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SetOrigin {
    /// A tip with its manifests.
    #[serde(flatten)]
    pub source: SetSource,
    /// Where the rollout's file was as the last run went by it; none where no run did. Who has changed it since made the next
    /// version, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided: Option<SetSource>,
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
    /// A tip of main with its manifests; none of what was live, and of what a rollback brought back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitId>,
    /// The rollout's file in that commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<RepoPath>,
    /// That file as the run went by it; a change without a run leaves it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided: Option<SetSource>,
    /// What main has changed directly since, while it wanted another version.
    #[serde(default, skip_serializing_if = "Directly::is_empty")]
    pub directly: Directly,
    /// When.
    pub at: Time,
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

/// What people should know that is not a phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Condition {
    /// One decision, of the documented list.
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
    /// What is live, as the set that `adopt` would make stable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<SetId>,
}

impl Owned {
    /// Whether it is that live object, and not a later one of the same name.
    #[must_use]
    pub fn is(&self, live: &Object) -> bool {
        self.reference == *live.reference() && Some(self.uid.as_str()) == live.uid()
    }
}
