//! The files as people write them: the mirror of what serde reads and of the JSON Schemas.
//!
//! Nothing here is checked beyond its shape; `load`, `policy`, `decision` and `installation` make validated values of
//! it. The doc comments are the descriptions in the schemas.

mod decision;
mod delegated;
mod fleet;
mod installation;
mod nodes;
mod none;
mod policy;
mod traefik;

use super::desired::{
    Approval, Bound, HeaderValue, Layout, OnAway, OnNoData, OnStableDown, Preview, Revert, RollingUpdate,
    SessionAffinity, TargetKind, Track, WebhookCall, usual_max_unready,
};
use super::duration::Span;
use super::files::RepoPath;
use super::hook::Hook;
use super::ids::{CheckName, Namespace, ObjectName, Percent, RolloutName, ScheduleName, StepName};
use super::measure::{Comparison, Latency, PrometheusQuery, SuccessRate};
use super::variant::Variant;
pub use decision::{Action, DecisionSpec, Named};
pub use delegated::{Contour, Gloo};
pub use fleet::{FleetCluster, FleetSpec, Wave, WaveClusters};
pub use installation::{
    App, Caps, Cluster, Feedback, Forge, ForgeKind, Gateways, InCluster, InstallationSpec, Projection, Prometheus,
    Provider, Repository, Signing, Ssh, Webhook,
};
pub use nodes::{LabelOperator, LabelRequirement, NodeSelector};
pub(super) use none::check as check_target;
pub use policy::{Floors, Freeze, ImageName, Limits, Permission, PolicySpec, Schedule, Tenant, Trust};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
pub use traefik::Traefik;

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
    Rollout, RolloutKind, RolloutSpec, Metadata
);
file!(
    /// What operations allows: tenants, windows, freezes, limits. The file `tidegate.yaml` at the root.
    Policy, PolicyKind, PolicySpec,
);
file!(
    /// Clusters that follow this repository, and in which order versions reach them. The file `fleet.yaml` at the root.
    Fleet, FleetKind, FleetSpec,
);
file!(
    /// One person's word about one run. A file of its own on the decisions branch.
    Decision, DecisionKind, DecisionSpec, Metadata
);
file!(
    /// One controller: its repository, its clusters, its caps. A file beside the controller, never in the repository.
    Installation, InstallationKind, InstallationSpec,
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
    #[schemars(extend("minItems" = 1, "maxItems" = 100))]
    pub manifests: Vec<String>,
    /// The workload.
    pub target: Target,
    /// How requests are split between the old and the new version. Phases need it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Traffic")]
    pub traffic: Option<Traffic>,
    /// At what pace the target's own units become new, or old again: with a StatefulSet or a DaemonSet, whose pods are moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "RollingUpdate")]
    pub rolling_update: Option<RollingUpdate>,
    /// The phases of a run, in order; each exposes more than the one before.
    #[serde(default)]
    #[schemars(extend("maxItems" = 50))]
    pub phases: Vec<Phase>,
    /// The way from the last phase to the new stable version.
    #[serde(default)]
    pub promotion: Promotion,
    /// What has to hold, by names that phases and the promotion use.
    #[serde(default)]
    #[schemars(extend("maxProperties" = 50))]
    pub checks: BTreeMap<CheckName, Check>,
    /// Who is told how a run fares, by names that you choose.
    #[serde(default)]
    #[schemars(extend("maxProperties" = 10))]
    pub hooks: BTreeMap<CheckName, Hook>,
    /// Going back to a version that was promoted before.
    #[serde(default)]
    pub rollback: Rollback,
    /// What happens on main after a failure. Traffic goes back at once in any case.
    #[serde(default)]
    pub on_failure: OnFailure,
    /// How long a workload may take to become ready.
    #[serde(default = "default_progress_deadline")]
    pub progress_deadline: Span,
    /// How much of a soak pods that have served may not be ready, again and again, in percent. The longest of these times is left
    /// out; it may last for `progressDeadline`. None of them counts as soak.
    #[serde(default = "usual_max_unready")]
    pub max_unready: Percent,
    /// What becomes of a run while no pod of stable is ready.
    #[serde(default)]
    pub on_stable_down: OnStableDown,
    /// Bars entry to new steps. Retreats and upkeep go on.
    #[serde(default)]
    pub suspend: bool,
}

fn default_progress_deadline() -> Span {
    Span::from_secs(600)
}

/// What is rolled out; `none` for a rollout of other objects alone, which are applied once the promotion's gates are open.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("type" = ["object", "string"], "format" = "target"))]
pub struct Target {
    /// Its kind.
    pub kind: TargetKind,
    /// Its name among the manifests.
    pub name: ObjectName,
    /// How the candidate's objects are named.
    #[serde(default)]
    pub layout: Layout,
    /// Live objects that the target's pods read and no manifest holds: a change of one is a version, and goes through the phases.
    #[serde(default)]
    pub track: Track,
    /// A setting of the target's pods by which those of one do not get along with those of another: a change of it is not rolled out pod by pod.
    #[serde(default)]
    #[schemars(with = "Variant")]
    pub variant: Option<Variant>,
}

/// How requests are split: by exactly one of `contour`, `gatewayAPI`, `gloo`, `istio`, `nginx`, `replicas`, `service` and `traefik`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Traffic {
    /// By an HTTPProxy of Contour: weights, headers and copies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Contour")]
    pub contour: Option<Contour>,
    /// By a route of the Gateway API, an HTTPRoute or a GRPCRoute: weights and headers.
    #[serde(rename = "gatewayAPI", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "GatewayApi")]
    pub gateway_api: Option<GatewayApi>,
    /// By a RouteTable of Gloo: weights and headers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Gloo")]
    pub gloo: Option<Gloo>,
    /// By an Istio VirtualService: weights, headers and copies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Istio")]
    pub istio: Option<Istio>,
    /// By an Ingress of ingress-nginx: weights, one header and one cookie.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Nginx")]
    pub nginx: Option<Nginx>,
    /// By the number of candidate pods behind one Service: weights only, no mesh needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Replicas")]
    pub replicas: Option<Replicas>,
    /// By the selector of this Service among the manifests: all requests reach the old version or all the new one
    /// (blue/green), no mesh needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ObjectName")]
    pub service: Option<ObjectName>,
    /// By a TraefikService: weights and copies; or by an IngressRoute: headers too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Traefik")]
    pub traefik: Option<Traefik>,
    /// How long to wait after a route is in force, before clocks run.
    #[serde(default = "default_settle")]
    pub settle: Span,
    /// How long to wait for requests in flight, before a backend goes.
    #[serde(default = "default_drain")]
    pub drain: Span,
    /// Whether users who got the new version by weight keep it, by a cookie. With an HTTPRoute or `istio` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "SessionAffinity")]
    pub session_affinity: Option<SessionAffinity>,
}

fn default_settle() -> Span {
    Span::from_secs(5)
}

fn default_drain() -> Span {
    super::router::Traffic::DRAIN
}

/// A route of the Gateway API and the Service whose backend references are split: exactly one of `httpRoute` and `grpcRoute`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GatewayApi {
    /// The HTTPRoute among the manifests. One route belongs to one rollout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ObjectName")]
    pub http_route: Option<ObjectName>,
    /// The GRPCRoute among the manifests. One route belongs to one rollout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ObjectName")]
    pub grpc_route: Option<ObjectName>,
    /// The Service among the manifests that it names.
    pub service: ObjectName,
}

/// An Istio VirtualService and the Service whose host it sends to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Istio {
    /// The VirtualService among the manifests. One VirtualService belongs to one rollout.
    pub virtual_service: ObjectName,
    /// The Service among the manifests that it names.
    pub service: ObjectName,
}

/// An Ingress of ingress-nginx and the Service that it leads to. During a run there is a canary Ingress beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nginx {
    /// The Ingress among the manifests. One Ingress belongs to one rollout.
    pub ingress: ObjectName,
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
    /// Names of checks that have to hold while it stays. One that fails takes the run back.
    #[serde(default)]
    #[schemars(extend("maxItems" = 20))]
    pub checks: Vec<CheckName>,
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
    /// The word of a webhook, asked while the step is waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "WebhookCall")]
    pub webhook: Option<WebhookCall>,
    /// A file beside this one that holds a Job. It is made once in each run, as soon as all else is open; its success opens the
    /// step, its failure takes the run back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "RepoPath")]
    pub job: Option<RepoPath>,
}

/// What a phase exposes to the new version.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("minProperties" = 1))]
pub struct Expose {
    /// Requests with these headers: alternatives; within one, all must be there. They stay until promotion.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("minItems" = 1, "maxItems" = 16))]
    pub headers: Vec<Headers>,
    /// Requests with these cookies: alternatives too, one cookie in each. A cookie is a pattern for the header `Cookie`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("minItems" = 1, "maxItems" = 16))]
    pub cookies: Vec<Cookie>,
    /// The share of all other requests, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Percent")]
    pub weight: Option<Percent>,
    /// Several shares, one after the other: each is a phase of its own, with this phase's soak and checks. `[10, 50]` in the
    /// phase `ramp` makes `ramp-10` and `ramp-50`; what must be open before `ramp` must be open before the first of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("minItems" = 1, "maxItems" = 50))]
    pub weights: Vec<Percent>,
    /// The same at equal distances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Ramp")]
    pub ramp: Option<Ramp>,
    /// Copies of so many of the stable version's requests, in percent: the candidate gets them too, and its answers are thrown
    /// away. They stay until promotion. Not with every router.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u8", range(min = 1, max = 100))]
    pub mirror: Option<Percent>,
    /// So many units of the target, however small a share that is; with `weight` too the larger of both. With a StatefulSet or a
    /// DaemonSet, whose pods are moved. It stays until promotion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32", range(min = 1, max = 100_000))]
    pub units: Option<u32>,
    /// Nothing to users: the candidate is ready behind its own Service, `<service>-canary`, for soak, checks and people. Before
    /// all phases that expose anything; not with the router `replicas`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Preview")]
    pub preview: Option<Preview>,
}

/// Shares at equal distances: `step: 20` and `max: 50` are the weights 20, 40 and 50.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ramp {
    /// The first share, and how much each next one adds.
    #[schemars(with = "u8", range(min = 1, max = 100))]
    pub step: Percent,
    /// The last share; the last distance is shorter where the steps do not meet it.
    #[schemars(with = "u8", range(min = 1, max = 100))]
    pub max: Percent,
}

/// Headers that a request must all carry: name to exact value, or to `{regex: …}`. Names are compared without regard to case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend(
    "minProperties" = 1, "maxProperties" = 16,
    "propertyNames" = {"pattern": "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$", "maxLength": 256},
    // One schema for both: of alternatives nobody could tell which one a mistake belongs to.
    "additionalProperties" = {
        "type": ["string", "object"], "pattern": "^[!-~]([ -~]*[!-~])?$", "maxLength": 4096,
        "properties": {"regex": {
            "description": "A regular expression in the dialect of the gateway. Some look for it anywhere in the value: write ^ and $.",
            "type": "string", "pattern": "^[!-~]([ -~]*[!-~])?$", "maxLength": 4096
        }},
        "required": ["regex"], "additionalProperties": false
    }
))]
pub struct Headers(#[schemars(with = "BTreeMap<String, String>")] pub BTreeMap<String, HeaderValue>);

/// A cookie that a request must carry: name to exact value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend(
    "minProperties" = 1, "maxProperties" = 1,
    "propertyNames" = {"pattern": "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$", "maxLength": 256},
    "additionalProperties" = {"type": "string", "pattern": "^[!#-+\\--:<-\\[\\]-~]*$", "maxLength": 1024}
))]
pub struct Cookie(pub BTreeMap<String, String>);

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
    /// Names of checks that have to hold meanwhile. One that fails takes the run back.
    #[serde(default)]
    #[schemars(extend("maxItems" = 20))]
    pub checks: Vec<CheckName>,
}

/// What tells whether a version is good: exactly one of `webhook` and, with at least one of `max`, `min` and
/// `comparedWithStable`, `prometheus`, `successRate` and `latency`.
///
/// It is asked over the whole time that the step has been in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Check {
    /// A query to a Prometheus.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "PrometheusQuery")]
    pub prometheus: Option<PrometheusQuery>,
    /// The share of requests that the server did not fail, in percent. With the router `gatewayAPI`, or `istio`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "SuccessRate")]
    pub success_rate: Option<SuccessRate>,
    /// How long requests take, in milliseconds. With the router `gatewayAPI`, or `istio`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Latency")]
    pub latency: Option<Latency>,
    /// A question to a webhook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "WebhookCall")]
    pub webhook: Option<WebhookCall>,
    /// The largest value that is good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "f64")]
    pub max: Option<Bound>,
    /// The smallest value that is good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "f64")]
    pub min: Option<Bound>,
    /// The same is asked of stable's series, which for `prometheus` its `labels` tell apart, and the values are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Comparison")]
    pub compared_with_stable: Option<Comparison>,
    /// The time between two samples, or two questions; the first is due that long after the step is in force.
    #[serde(default = "default_interval")]
    pub interval: Span,
    /// Of what is measured: how many samples there must be before the version counts as good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32", range(min = 1, max = 1000), extend("default" = 1))]
    pub min_samples: Option<u32>,
    /// Of what is measured: how many samples may be out of bounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32", range(max = 999), extend("default" = 0))]
    pub failure_limit: Option<u32>,
    /// What it means that nothing can be told at the end of the soak: too few samples, or a webhook that says `hold`.
    #[serde(default)]
    pub on_no_data: OnNoData,
    /// What it means that the provider is away for long while the step holds for it. Without this the step goes on holding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "OnAway")]
    pub on_away: Option<OnAway>,
}

fn default_interval() -> Span {
    Span::from_secs(60)
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
