//! A run, from its start to its place in the history, and what people have decided about runs.

use super::{Proven, SetOrigin, SetSource, Time, Void};
use crate::manifest::files::RepoPath;
use crate::manifest::ids::{BlobId, CheckName, ClusterName, CommitId, PodsDigest, Revision, RunId, SetId, StepName};
use crate::manifest::proof::ApprovalRule;
use crate::record::posture::{Directly, Names};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
    /// What `from` calls its objects, where each version has names of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<Names>,
    /// The set that it brings.
    pub to: SetId,
    /// The revision of `to`.
    pub revision: Revision,
    /// The pods of `to`.
    pub pods: PodsDigest,
    /// The decisions tip when it started: only later decisions count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decisions_at: Option<CommitId>,
    /// When it started.
    pub started: Time,
    /// Main's tip when it started.
    pub source: CommitId,
    /// The rollout's file there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<RepoPath>,
    /// Where main had `from`; none of what was live.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stable: Option<SetOrigin>,
    /// The pods that stable keeps, per cluster: what it had at the first step, or has since when more of the traffic leaves it.
    #[serde(default)]
    pub baseline: BTreeMap<ClusterName, u32>,
    /// The step whose soak and checks a person skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<StepName>,
    /// A person skipped the soak and the checks of all steps, the promotion's too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hurried: bool,
    /// Approval holds up to and with this step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approved: Vec<StepName>,
    /// A person bars entry to the next step, or the run before this one brought the same and went back unmeasured.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
    /// A person said no: nothing is asked again before `resume`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub denied: bool,
    /// The decisions branch was seen without protection, and not with one since: who approved meanwhile could be anybody.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unkept: bool,
    /// What proved people's decisions by the policy when it started: a policy that loosens this is for later runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<ApprovalRule>,
    /// Its requests for approval, by step.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pulls: BTreeMap<StepName, Pull>,
    /// Its Jobs, by the steps that they stand before: each is made once.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub jobs: BTreeMap<StepName, Trial>,
    /// Since when it holds for providers that are away, by the checks that say for how long it does.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub away: BTreeMap<CheckName, Time>,
    /// Since when all clusters that are before this one have what the run brings, by this one's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preceded: Option<Time>,
    /// What main has changed directly since; none where `to` is what it began with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub along: Option<Along>,
}

/// How what a run brings came to differ from what it began with: it took along what makes no new version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Along {
    /// The set that it began with: its revision is the run's.
    pub began: SetId,
    /// The revision of `to`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<Revision>,
    /// Where main has `to`.
    pub source: SetSource,
    /// What main had changed directly of what serves before the run took anything along.
    #[serde(default, skip_serializing_if = "Directly::is_empty")]
    pub before: Directly,
}

impl Run {
    /// The set that it began with.
    #[must_use]
    pub fn began(&self) -> &SetId {
        self.along.as_ref().map_or(&self.to, |along| &along.began)
    }
}

/// A Job of a run that was seen in the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// Its uid.
    pub uid: String,
    /// When it was seen to have succeeded: from then on nothing asks for it any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed: Option<Time>,
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

/// A request for a person's decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pull {
    /// Its branch.
    pub branch: String,
    /// The head that was seen there.
    pub head: CommitId,
    /// What the checks of the step before had said by then. It stays as it is, so that no measurement changes what people read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Checked>,
}

/// What a check has said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Checked {
    /// Which check.
    pub check: CheckName,
    /// Its last decision, for people.
    pub says: String,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
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
    /// Nothing speaks against it, and nothing for it: a provider was away for too long, something else took its pods away, or a
    /// gateway did not let its route in.
    Unmeasured,
    /// A person went back from it after its promotion.
    RolledBack,
}

/// A run in the history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PastRun {
    /// Its id.
    pub run: RunId,
    /// From which set.
    pub from: SetId,
    /// What that calls its objects, where each version has names of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<Names>,
    /// Where main had `from`; none of what was live.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stable: Option<SetOrigin>,
    /// To which set.
    pub to: SetId,
    /// The set that it began with, if it took something along since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began: Option<SetId>,
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
    /// How it was proved: `none` where the Git host alone vouches, `review`, `merge` or `signature` where approvers are asked for.
    pub proof: String,
    /// Who brought it to the decisions branch, as Git says; where Git does not say it, that.
    pub by: String,
    /// When it was counted.
    pub at: Time,
    /// What proved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proven: Option<Proven>,
    /// Why it does not count: it was looked at, and had no proof.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub void: Option<Void>,
}
