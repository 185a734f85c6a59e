//! The files as people write them: the mirror of what serde reads and of the JSON Schemas.
//!
//! Nothing here is checked beyond its shape; `load`, `policy`, `decision` and `installation` make validated values of
//! it. The doc comments are the descriptions in the schemas.

use super::desired::{Approval, Layout, Revert, TargetKind};
use super::duration::Span;
use super::files::RepoPath;
use super::ids::{
    ClusterName, InstanceName, Namespace, ObjectName, Percent, RolloutName, RunId, ScheduleName, StepName, TenantName,
};
use super::object::Kind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The version of all files of this release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ApiVersion {
    /// The first.
    #[serde(rename = "tidegate.io/v1alpha1")]
    V1Alpha1,
}

impl ApiVersion {
    /// As files spell it.
    pub const TEXT: &'static str = "tidegate.io/v1alpha1";
}

macro_rules! file {
    ($(#[$doc:meta])* $name:ident, $tag:ident, $spec:ident, $(#[$extra:meta])* $($metadata:ident)?) => {
        #[doc = concat!("Always `", stringify!($name), "`.")]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        pub enum $tag {
            #[doc = concat!("`", stringify!($name), "`")]
            $name,
        }

        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        pub struct $name {
            /// The version of this format.
            pub api_version: ApiVersion,
            /// What this file is.
            pub kind: $tag,
            $(
            /// Which rollout it is about.
            pub metadata: $metadata,
            )?
            /// What it says.
            pub spec: $spec,
        }
    };
}

file!(
    /// A rollout: what is rolled out, how requests are split, and in which phases.
    ///
    /// A file named `rollout.yaml` or `*.rollout.yaml`.
    Rollout, RolloutTag, RolloutSpec, Metadata
);
file!(
    /// What operations allows: tenants, windows, freezes, limits. The file `tidegate.yaml` at the root.
    Policy, PolicyTag, PolicySpec,
);
file!(
    /// One person's word about one run. A file of its own on the decisions branch.
    Decision, DecisionTag, DecisionSpec, Metadata
);
file!(
    /// One controller: its repository, its clusters, its caps. A file beside the controller, never in the repository.
    Installation, InstallationTag, InstallationSpec,
);

/// Names a rollout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Metadata {
    /// The name of the rollout, unique in its namespace.
    pub name: RolloutName,
    /// The namespace that all its objects live in.
    pub namespace: Namespace,
}

/// How one workload is rolled out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RolloutSpec {
    /// Files or directories beside this file that hold plain Kubernetes objects. Of a directory, all `.yaml`, `.yml`
    /// and `.json` files are read, recursively.
    #[schemars(extend("minItems" = 1))]
    pub manifests: Vec<String>,
    /// The workload.
    pub target: Target,
    /// How requests are split between the old and the new version. Phases need it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Traffic")]
    pub traffic: Option<Traffic>,
    /// The phases of a run, in order; each exposes more than the one before.
    #[serde(default)]
    pub phases: Vec<Phase>,
    /// The way from the last phase to the new stable version.
    #[serde(default)]
    pub promotion: Promotion,
    /// Going back to a version that was promoted before.
    #[serde(default)]
    pub rollback: Rollback,
    /// What happens on main after a failure. Traffic goes back at once in any case.
    #[serde(default)]
    pub on_failure: OnFailure,
    /// How long a workload may take to become ready.
    #[serde(default = "default_progress_deadline")]
    pub progress_deadline: Span,
    /// Bars entry to new steps. Retreats and upkeep go on.
    #[serde(default)]
    pub suspend: bool,
}

fn default_progress_deadline() -> Span {
    Span::from_secs(600)
}

/// The workload that is rolled out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Its kind.
    pub kind: TargetKind,
    /// Its name among the manifests.
    pub name: ObjectName,
    /// How the candidate's objects are named.
    #[serde(default)]
    pub layout: Layout,
}

/// How requests are split: by exactly one of `gatewayAPI` and `replicas`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Traffic {
    /// By a Gateway API HTTPRoute: weights and headers.
    #[serde(rename = "gatewayAPI", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "GatewayApi")]
    pub gateway_api: Option<GatewayApi>,
    /// By the number of candidate pods behind one Service: weights only, no mesh needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Replicas")]
    pub replicas: Option<Replicas>,
    /// How long to wait after a route is in force, before clocks run.
    #[serde(default = "default_settle")]
    pub settle: Span,
    /// How long to wait for requests in flight, before a backend goes.
    #[serde(default = "default_drain")]
    pub drain: Span,
}

fn default_settle() -> Span {
    Span::from_secs(5)
}

fn default_drain() -> Span {
    Span::from_secs(30)
}

/// A Gateway API HTTPRoute and the Service whose backend references are split.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GatewayApi {
    /// The HTTPRoute among the manifests. One route belongs to one rollout.
    pub http_route: ObjectName,
    /// The Service among the manifests that it names.
    pub service: ObjectName,
}

/// The Service whose endpoints are split by number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Replicas {
    /// The Service among the manifests.
    pub service: ObjectName,
}

/// One phase of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    /// Its name, unique in this rollout.
    pub name: StepName,
    /// What must be open to enter it.
    #[serde(default)]
    pub before: Gates,
    /// What it adds to what is exposed already.
    pub expose: Expose,
    /// Stay at least this long, counted while observed.
    #[serde(default)]
    pub soak: Span,
}

/// What must be open to enter a step; all of it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gates {
    /// A person's word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Approval")]
    pub approval: Option<Approval>,
    /// The name of a window of the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ScheduleName")]
    pub window: Option<ScheduleName>,
}

/// What a phase exposes to the new version.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("minProperties" = 1))]
pub struct Expose {
    /// Requests with these headers: alternatives; within one, all must be there. They stay until promotion.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("minItems" = 1))]
    pub headers: Vec<Headers>,
    /// The share of all other requests, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Percent")]
    pub weight: Option<Percent>,
}

/// Headers that a request must all carry: name to exact value. Names are compared without regard to case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend(
    "minProperties" = 1, "maxProperties" = 16,
    "propertyNames" = {"pattern": "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$", "maxLength": 256},
    "additionalProperties" = {"type": "string", "pattern": "^[!-~]([ -~]*[!-~])?$", "maxLength": 4096}
))]
pub struct Headers(pub BTreeMap<String, String>);

/// What happens on main after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OnFailure {
    /// How main is brought back.
    #[serde(default)]
    pub revert: Revert,
}

/// The way from the last phase to the new stable version.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Promotion {
    /// What must be open to enter it.
    #[serde(default)]
    pub before: Gates,
    /// All traffic on the candidate, the old set still at full size, for this long.
    #[serde(default)]
    pub bake: Span,
}

/// Going back to a version that was promoted before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rollback {
    /// For how long after its promotion a version can be gone back to without phases.
    #[serde(default = "default_rollback_window")]
    pub window: Span,
}

fn default_rollback_window() -> Span {
    Span::from_secs(86_400)
}

impl Default for Rollback {
    fn default() -> Self {
        Self { window: default_rollback_window() }
    }
}

/// What operations allows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PolicySpec {
    /// Who may roll out what, from which directory.
    pub tenants: BTreeMap<TenantName, Tenant>,
    /// When steps may be entered, for those that ask for the window by name.
    #[serde(default)]
    pub windows: BTreeMap<ScheduleName, Schedule>,
    /// When no step may be entered.
    #[serde(default)]
    pub freezes: BTreeMap<ScheduleName, Freeze>,
    /// How much may happen at a time.
    #[serde(default)]
    pub limits: Limits,
}

/// One tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tenant {
    /// The directory that its rollouts lie in. Directories of tenants do not overlap.
    pub path: RepoPath,
    /// The namespaces that its rollouts may use.
    #[schemars(extend("minItems" = 1))]
    pub namespaces: BTreeSet<Namespace>,
    /// The cluster that its rollouts run on: one, by its name in the installation.
    #[schemars(extend("minItems" = 1, "maxItems" = 1))]
    pub clusters: Vec<ClusterName>,
    /// The people who may decide, by their names on the Git host. Empty: whoever can merge there.
    #[serde(default)]
    pub approvers: BTreeSet<Login>,
}

/// A name on the Git host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("pattern" = "^[A-Za-z0-9][A-Za-z0-9._@-]*$", "maxLength" = 100))]
pub struct Login(pub String);

/// A recurring span of time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// When it starts: the five fields of POSIX cron (minute, hour, day of month, month, day of week).
    #[schemars(extend("format" = "cron"))]
    pub cron: String,
    /// How long it lasts.
    pub duration: Span,
    /// The IANA time zone that the cron expression is read in.
    #[schemars(extend("format" = "time-zone"))]
    pub zone: String,
}

/// A recurring span of time in which no step is entered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Freeze {
    /// When it starts: the five fields of POSIX cron (minute, hour, day of month, month, day of week).
    #[schemars(extend("format" = "cron"))]
    pub cron: String,
    /// How long it lasts.
    pub duration: Span,
    /// The IANA time zone that the cron expression is read in.
    #[schemars(extend("format" = "time-zone"))]
    pub zone: String,
    /// The tenants that it holds for. Empty: all.
    #[serde(default)]
    pub tenants: BTreeSet<TenantName>,
}

/// How much may happen at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Limits {
    /// The most objects that are deleted for one rollout without a pull request that lists them.
    #[serde(default = "default_max_deletions")]
    pub max_deletions: u32,
    /// The most runs that are open at a time.
    #[serde(default = "default_max_concurrent_runs")]
    #[schemars(extend("minimum" = 1))]
    pub max_concurrent_runs: u32,
}

fn default_max_deletions() -> u32 {
    5
}

fn default_max_concurrent_runs() -> u32 {
    10
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_deletions: default_max_deletions(), max_concurrent_runs: default_max_concurrent_runs() }
    }
}

/// What a person decides about a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DecisionSpec {
    /// The run: the open one, else the last, else `0`.
    pub run: RunId,
    /// What is decided.
    pub action: Action,
    /// With `approve`: opens approval gates up to and with this step, a phase or `promotion`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "StepName")]
    pub through: Option<StepName>,
    /// Why, in the person's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("maxLength" = 1024))]
    pub reason: Option<String>,
}

/// What a person can decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// Opens approval gates up to and with the step `through`.
    Approve,
    /// Says no: the posture stays, nothing is asked again before `resume`.
    Deny,
    /// Ends this step's soak and checks; never readiness, gates or floors.
    Skip,
    /// Bars entry to the next step.
    Hold,
    /// Lifts hold and deny.
    Resume,
    /// Goes back; the revision is refused.
    Abort,
    /// Lifts the refusal of the ended run that it names.
    Retry,
    /// Goes back to the promoted run that it names.
    Rollback,
}

/// One controller. Secrets stand in files; this file only names them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InstallationSpec {
    /// The name of the installation: part of branch names, of the Lease and of the owner mark.
    pub instance: InstanceName,
    /// Where desired state and the record are.
    pub repository: Repository,
    /// The clusters, by the name that the policy uses.
    #[schemars(extend("minProperties" = 1))]
    pub clusters: BTreeMap<ClusterName, Cluster>,
    /// The most that any policy may allow. Left out: whatever the policy allows.
    #[serde(default)]
    pub caps: Caps,
}

/// Where desired state and the record are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Repository {
    /// `https://…`, `http://…` or `ssh://…`, without a password.
    #[schemars(extend("format" = "git-url"))]
    pub url: String,
    /// The branch that people write desired state to.
    #[serde(default = "default_branch")]
    #[schemars(extend("format" = "branch"))]
    pub branch: String,
    /// How often the repository is looked at.
    #[serde(default = "default_poll")]
    pub poll: Span,
    /// The file with the credentials: `user:password` or a token for http(s), a private key for ssh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("format" = "file-path"))]
    pub credentials_file: Option<String>,
    /// The file with the host keys that ssh accepts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("format" = "file-path"))]
    pub known_hosts_file: Option<String>,
    /// The Git host.
    #[serde(default)]
    pub forge: Forge,
}

fn default_branch() -> String {
    "main".to_owned()
}

fn default_poll() -> Span {
    Span::from_secs(30)
}

/// The Git host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Forge {
    /// What it can do.
    #[serde(default)]
    pub kind: ForgeKind,
}

/// What a Git host can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ForgeKind {
    /// Branches and nothing more: merging a proposed branch approves, deleting it unmerged denies.
    #[default]
    Branch,
}

/// How a cluster is reached: by exactly one of `inCluster` and `kubeconfigFile`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Cluster {
    /// The cluster that the controller runs in, with its service account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "InCluster")]
    pub in_cluster: Option<InCluster>,
    /// A kubeconfig file, its current context. Plugins that start programs are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("format" = "file-path"))]
    pub kubeconfig_file: Option<String>,
}

/// Nothing to say about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InCluster {}

/// The most that any policy may allow.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Caps {
    /// The namespaces. Empty: those of the policy.
    #[serde(default)]
    pub namespaces: BTreeSet<Namespace>,
    /// The kinds of objects that a set may hold. Empty: all that tidegate manages.
    #[serde(default)]
    pub kinds: BTreeSet<Kind>,
}
