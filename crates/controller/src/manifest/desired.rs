//! What people want, validated: after this no code sees raw text, and nothing in it can contradict itself.

pub use super::affinity::SessionAffinity;
pub use super::criterion::{Away, Bounds, Check, Criterion, OnAway, OnNoData, WebhookCall};
use super::duration::Span;
use super::files::RepoPath;
use super::hook::Hook;
use super::ids::{
    BlobId, CheckName, ClusterName, ObjectName, Percent, PodsDigest, Revision, RolloutId, ScheduleName, SetId, StepName,
};
use super::layer::{Layer, NodeSelector};
pub use super::measure::Bound;
use super::object::{Kind, Object, ObjectRef};
use super::other::Other;
pub use super::rolling::RollingUpdate;
pub use super::router::{By, Router, Spelling, Traffic, UnitKind};
pub use super::tracked::Track;
use super::tracked::Tracked;
use super::variant::Variant;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A rollout as main's tip wants it.
#[derive(Debug, Clone, PartialEq)]
pub struct Rollout {
    /// Its identity.
    pub id: RolloutId,
    /// The file that declares it.
    pub path: RepoPath,
    /// The content of that file.
    pub blob: BlobId,
    /// The clusters that it runs on. Several are in the fleet.
    pub clusters: BTreeSet<ClusterName>,
    /// What it is in each of the others, where files of their own make it another version there; none where it cannot be read.
    pub elsewhere: BTreeMap<ClusterName, Option<Revision>>,
    /// How a run of it goes.
    pub plan: Plan,
    /// For how long after its promotion a set can be gone back to without phases.
    pub rollback_window: Span,
    /// Bars entry to new steps.
    pub suspend: Suspend,
    /// The exact manifests.
    pub set: Arc<Set>,
}

/// Whether a rollout bars entry to new steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suspend {
    /// Steps are entered as gates allow.
    No,
    /// No step is entered; retreats and upkeep go on.
    Yes,
}

/// How a run goes: everything that a run keeps from its start to its end, whatever main says meanwhile.
///
/// Stored beside the record as `runs/<id>.yaml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// What is rolled out.
    pub target: Target,
    /// How requests are split; without it there are no phases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<Traffic>,
    /// The steps between *prepare* and *shift*.
    #[serde(default)]
    pub phases: Vec<PhasePlan>,
    /// The way from the last phase to the new stable version.
    #[serde(default)]
    pub promotion: Promotion,
    /// What happens on main after a failure.
    #[serde(default)]
    pub on_failure: OnFailure,
    /// How long a workload may take to become ready.
    pub progress_deadline: Span,
    /// How much of a soak pods that have served may not be ready, again and again, in percent.
    #[serde(default = "usual_max_unready", skip_serializing_if = "is_usual_max_unready")]
    pub max_unready: Percent,
    /// What becomes of a run while stable serves nobody.
    #[serde(default, skip_serializing_if = "OnStableDown::is_wait")]
    pub on_stable_down: OnStableDown,
    /// At what pace the target's own units are moved.
    #[serde(default, skip_serializing_if = "RollingUpdate::is_usual")]
    pub rolling_update: RollingUpdate,
    /// The nodes that it may configure, with the target NodeConfig: as operations allowed when the plan was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<NodeSelector>,
    /// What has to hold, by the names that steps use.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub checks: BTreeMap<CheckName, Check>,
    /// Who is told how a run fares.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hooks: BTreeMap<CheckName, Hook>,
    /// The Jobs that stand before steps, as their files beside the rollout's hold them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub jobs: BTreeMap<RepoPath, Value>,
}

/// How much of a soak pods may usually be without being ready.
#[must_use]
pub fn usual_max_unready() -> Percent {
    Percent::FIFTH
}

fn is_usual_max_unready(percent: &Percent) -> bool {
    *percent == usual_max_unready()
}

/// What becomes of a run while stable has no ready pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OnStableDown {
    /// Its steps take as long as ever; people are told, and with which word they can hurry it.
    #[default]
    Wait,
    /// It goes on without its soaks: each step is left once what it exposes is ready and its checks are good. Gates hold.
    Promote,
}

impl OnStableDown {
    fn is_wait(&self) -> bool {
        *self == Self::Wait
    }
}

/// What is rolled out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// Its kind.
    pub kind: TargetKind,
    /// Its name, in the set and in the cluster.
    pub name: ObjectName,
    /// How the candidate's objects are named.
    pub layout: Layout,
    /// What its pods read that no manifest holds, and whose changes are versions all the same.
    #[serde(default, skip_serializing_if = "Track::is_empty")]
    pub track: Track,
    /// What tells the variant of its pods, where those of two do not get along.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<Variant>,
}

/// The kinds of object that can be a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum TargetKind {
    /// `apps/v1` Deployment.
    #[default]
    Deployment,
    /// `v1` Service: it leads to something else, be it other pods or another name; what it leads to is not touched.
    Service,
    /// `apps/v1` StatefulSet: its own pods are moved to the new version, a share of them in each phase.
    StatefulSet,
    /// `apps/v1` DaemonSet: its own pods are moved to the new version, node by node, a share of them in each phase.
    DaemonSet,
    /// The configuration of nodes, of layers among the manifests: nodes are brought to the new version a few at a time. The installation says which (caps.nodes).
    NodeConfig,
    /// Nothing: other objects alone, which are applied once the promotion's gates are open. Files say `target: none`.
    #[schemars(skip)]
    None,
}

impl TargetKind {
    /// The kind of object. Of nothing it is one of which there are no objects.
    #[must_use]
    pub fn kind(self) -> Kind {
        match self {
            Self::None => Kind::Other(Other::NOTHING),
            Self::Deployment => Kind::Deployment,
            Self::Service => Kind::Service,
            Self::StatefulSet => Kind::StatefulSet,
            Self::DaemonSet => Kind::DaemonSet,
            // A name for all of them: no object of the cluster stands for it.
            Self::NodeConfig => Kind::NodeConfigLayer,
        }
    }

    /// What splits requests where no file names it: both versions are units of the target itself.
    #[must_use]
    pub fn own_router(self) -> Option<Router> {
        match self {
            Self::Deployment | Self::Service | Self::None => None,
            Self::StatefulSet => Some(Router::Units(UnitKind::StatefulSet)),
            Self::DaemonSet => Some(Router::Units(UnitKind::DaemonSet)),
            Self::NodeConfig => Some(Router::Units(UnitKind::Node)),
        }
    }

    /// Whether one object of the set, and of the cluster, is it.
    #[must_use]
    pub fn is_object(self) -> bool {
        !matches!(self, Self::None | Self::NodeConfig)
    }

    /// The kinds that tidegate knows of which a set for it may hold objects.
    #[must_use]
    pub fn kinds(self) -> &'static [Kind] {
        if self == Self::NodeConfig { &[Kind::NodeConfigLayer] } else { Kind::MANIFEST }
    }
}

/// How the candidate's objects are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Layout {
    /// Stable keeps its names; the candidate's objects get `-canary` and exist only during a run.
    #[default]
    InPlace,
    /// As Flagger does it: stable's objects are copies, `<name>-primary`; the target is the candidate, and has no pods
    /// while no run is open. With the routers that split a route.
    Primary,
    /// Each version's objects have names of their own in the manifests, such as `podinfo-v2`; nothing is copied. With
    /// `gatewayAPI` only.
    Versioned,
}

/// One phase of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhasePlan {
    /// Its name.
    pub name: StepName,
    /// What must be open to enter it.
    #[serde(default, skip_serializing_if = "Gates::is_empty")]
    pub before: Gates,
    /// What it adds to what is exposed already.
    pub expose: Expose,
    /// Stay at least this long, counted while observed.
    #[serde(default)]
    pub soak: Span,
    /// What has to hold while it stays.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<CheckName>,
}

/// What a phase exposes; it adds to the phases before it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Expose {
    /// Alternatives; within one, all headers must be there.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub headers: BTreeSet<HeaderMatch>,
    /// Share of all requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<Percent>,
    /// Share of all requests of which the candidate gets a copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mirror: Option<Percent>,
    /// So many of the target's own units, however small a share that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub units: Option<u32>,
    /// Nothing to users: the candidate stands beside stable, behind a Service of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<Preview>,
}

/// How many pods a candidate has that users are not led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Preview {
    /// As many as stable has, and it keeps them to the end of the run: what was tried out is what takes over.
    FullSize,
}

/// Headers (lower-case name → what its value must be) that a request must all carry.
pub type HeaderMatch = BTreeMap<String, HeaderValue>;

/// What the value of a header must be. Two are the same condition only if they are written alike: which of two patterns lets
/// more in is for nobody to tell.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum HeaderValue {
    /// Exactly this.
    Exact(String),
    /// What this pattern matches, as the gateway understands it.
    Regex {
        /// A regular expression.
        regex: String,
    },
}

#[cfg(test)]
impl From<&str> for HeaderValue {
    fn from(value: &str) -> Self {
        Self::Exact(value.to_owned())
    }
}

/// What must be open to enter a step.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Gates {
    /// A person's word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// A window of the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<ScheduleName>,
    /// The word of a webhook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<WebhookCall>,
    /// The success of a Job, by its file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<RepoPath>,
}

impl Gates {
    /// Whether nothing has to be open.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self { approval, window, webhook, job } = self;
        approval.is_none() && window.is_none() && webhook.is_none() && job.is_none()
    }
}

/// How a person's word is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Approval {
    /// A branch (and, on hosts that have them, a pull request) that adds the decision; merging it approves.
    PullRequest,
}

/// The way from the last phase to the new stable version.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Promotion {
    /// What must be open to enter it.
    #[serde(default, skip_serializing_if = "Gates::is_empty")]
    pub before: Gates,
    /// All traffic on the candidate, the old set still at full size, for this long.
    #[serde(default)]
    pub bake: Span,
    /// What has to hold meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<CheckName>,
}

/// What happens on main after a failure. Traffic goes back at once in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Revert {
    /// A branch (a pull request) that undoes the run's change on main.
    #[default]
    PullRequest,
    /// Nothing: the revision is refused until main changes.
    None,
}

/// What happens on main after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct OnFailure {
    /// How main is brought back.
    #[serde(default)]
    pub revert: Revert,
}

/// The exact manifests of one version. Its objects are keyed by what names them; all are in the rollout's namespace.
#[derive(Debug, Clone, PartialEq)]
pub struct Set {
    /// By content: the id of the Git tree of its files.
    pub id: SetId,
    /// The files, by their path relative to the rollout's file.
    pub files: BTreeMap<RepoPath, (BlobId, Arc<[u8]>)>,
    /// What they declare.
    pub objects: BTreeMap<ObjectRef, Object>,
    /// What of the version is live alone, as it takes it.
    pub tracked: Tracked,
    /// The layers among them, by their names.
    pub layers: Vec<Layer>,
    /// The digest of the whole, canonical (requirement C-5).
    pub revision: Revision,
    /// The digest of the target's pod template and all that it references; of a Service, of what it asks for.
    pub pods: PodsDigest,
}

impl Set {
    /// The object of that kind and name.
    #[must_use]
    pub fn get(&self, kind: Kind, name: &ObjectName) -> Option<&Object> {
        self.objects.iter().find(|(r, _)| r.kind == kind && r.name == *name).map(|(_, o)| o)
    }
}
