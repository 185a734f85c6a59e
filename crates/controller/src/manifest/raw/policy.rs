//! The policy as people write it.

use super::NodeSelector;
use crate::manifest::duration::Span;
use crate::manifest::files::RepoPath;
use crate::manifest::ids::{CheckName, ClusterName, Hostname, Namespace, Percent, ScheduleName, TenantName};
use crate::manifest::other::GroupKind;
use crate::manifest::team::Approver;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

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
    /// The clusters that its rollouts run on, by their names in the installations. Several are reached in the order that `fleet.yaml` says.
    #[schemars(extend("minItems" = 1, "maxItems" = 2_000))]
    pub clusters: BTreeSet<ClusterName>,
    /// The hosts that its rollouts may answer for, by an HTTPProxy that is a root, and as soon as any tenant has some by any route. A host belongs
    /// to one tenant.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub hosts: BTreeSet<Hostname>,
    /// The kinds of objects that its sets may hold, of those that the installation allows: some by their names limit those that tidegate has
    /// a role for, some as GROUP/KIND all others.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub kinds: BTreeSet<GroupKind>,
    /// The nodes that its rollouts may configure, of those that the installation lets rollouts have; `{}` for all. Left out: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "NodeSelector")]
    pub nodes: Option<NodeSelector>,
    /// Who may decide: accounts by their names on the Git host, or by their numbers there as in `id:7`, and teams such as `"@acme/shop"`;
    /// where no host with an API is named, people on the installation's list of allowed signers by their addresses. Empty: whoever can
    /// merge there.
    #[serde(default)]
    pub approvers: BTreeSet<Approver>,
    /// How many of them have to approve a step.
    #[serde(default = "default_approvals")]
    #[schemars(extend("minimum" = 1, "maximum" = 10))]
    pub approvals: u32,
    /// What counts as an approval.
    #[serde(default)]
    pub trust: Trust,
    /// What each of its rollouts has to keep to: one that goes below starts no run.
    #[serde(default)]
    pub floors: Floors,
    /// What its content may reach beyond its own namespaces, of all that is refused otherwise; `[]` for nothing. Left out, it is warned of
    /// what would be refused, until the next release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BTreeSet<Permission>")]
    pub allow: Option<BTreeSet<Permission>>,
}

/// What content may reach only where the policy says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Permission {
    /// Directories of the node, mounted by pods.
    HostPath,
    /// What else pods mount by themselves, beyond the restricted profile of the Pod Security Standards: file servers and disks.
    Volumes,
    /// Configuration for the proxy of all, and addresses that it asks, by annotations of an Ingress, or by an HTTPProxy.
    Snippets,
    /// Addresses that the cluster takes for a Service.
    #[serde(rename = "externalIPs")]
    ExternalIps,
    /// A role at the cloud's provider, by annotations of a ServiceAccount or of pods, or by what their volumes hold.
    CloudIdentity,
    /// Pods beyond the baseline of the Pod Security Standards, but for directories of the node.
    Privileged,
    /// Triggers of a ScaledObject that ask at an address.
    Triggers,
    /// Labels, records and addresses by which whoever measures takes one for another.
    Metrics,
}

impl Permission {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::HostPath,
        Self::Volumes,
        Self::Snippets,
        Self::ExternalIps,
        Self::CloudIdentity,
        Self::Privileged,
        Self::Triggers,
        Self::Metrics,
    ];

    /// As the policy has it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::HostPath => "hostPath",
            Self::Volumes => "volumes",
            Self::Snippets => "snippets",
            Self::ExternalIps => "externalIPs",
            Self::CloudIdentity => "cloudIdentity",
            Self::Privileged => "privileged",
            Self::Triggers => "triggers",
            Self::Metrics => "metrics",
        }
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What no rollout of a tenant goes below.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Floors {
    /// How many of its steps, the promotion among them, wait for an approval at least.
    #[serde(default, skip_serializing_if = "none")]
    #[schemars(extend("maximum" = 20))]
    pub approved_steps: u32,
    /// The largest share of all requests that the first phase with one may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 1))]
    pub first_exposure: Option<Percent>,
    /// The checks that each phase has which users reach.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub checks: BTreeSet<CheckName>,
    /// The shortest soak of each phase which users reach.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soak: Option<Span>,
    /// What the images of its pods, and of its Jobs, have to be named by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ImageName")]
    pub images: Option<ImageName>,
}

/// What an image is named by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ImageName {
    /// Its digest, which is of this one content; where a tag points to may change.
    Digest,
}

impl Floors {
    /// Whether nothing is asked.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// The stricter of two in each respect.
    #[must_use]
    pub fn stricter(&self, other: &Self) -> Self {
        let both = self.first_exposure.zip(other.first_exposure);
        Self {
            approved_steps: self.approved_steps.max(other.approved_steps),
            first_exposure: both
                .map_or(self.first_exposure.or(other.first_exposure), |(one, other)| Some(one.min(other))),
            checks: self.checks.union(&other.checks).cloned().collect(),
            soak: self.soak.max(other.soak),
            images: self.images.or(other.images),
        }
    }
}

/// What counts as an approval, on a Git host with reviews.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Trust {
    /// An approving review of an approver.
    #[default]
    Reviews,
    /// That, or that an approver merged it.
    Merges,
    /// Whoever may write to the decisions branch decides: nobody is asked for a proof.
    Writers,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn none(count: &u32) -> bool {
    *count == 0
}

fn default_approvals() -> u32 {
    1
}

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
    /// The most runs that are under way at a time, of all teams; one that waits for its first step is not.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_are_told_as_they_are_written() {
        for permission in Permission::ALL {
            assert_eq!(serde_json::to_value(permission).unwrap(), permission.to_string());
        }
    }

    /// With the release after 0.1 a tenant without `allow` may reach nothing: `check::reach::judge` refuses then what it warns of, and
    /// this test goes.
    #[test]
    fn what_warns_is_refused_from_0_2_on() {
        assert!(env!("CARGO_PKG_VERSION").starts_with("0.1."), "a tenant without allow is one with allow: [] now");
    }
}
