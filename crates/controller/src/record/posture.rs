//! Postures: what a step wants of one cluster, so that a digest can stand for it.
//!
//! Nothing in a posture is read from live; what a size rule yields from live is upkeep.

use crate::manifest::desired::{Expose, HeaderMatch};
use crate::manifest::hex::hex;
use crate::manifest::ids::{ObjectName, Percent, PodsDigest, SetId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// What the world of one cluster shall be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Posture {
    /// The role that serves when in doubt.
    pub stable: Role,
    /// The new version, while a run is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<Role>,
    /// How requests are split between the two.
    #[serde(default, skip_serializing_if = "Split::is_stable")]
    pub split: Split,
    /// What the objects of both are called.
    #[serde(default, skip_serializing_if = "Naming::is_in_place")]
    pub naming: Naming,
}

/// What the objects of the two roles are called. Recorded, as main may say something else by now and a rollout that left
/// main says nothing any more.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Naming {
    /// Stable's as in the manifests; the candidate's are copies, `<name>-canary`, and exist only during a run.
    #[default]
    InPlace,
    /// Stable's are copies, `<name>-primary`; the target is the candidate, and has no pods at rest.
    Primary(Names),
    /// On the way from `primary` to what the manifests say, for good: the copies are taken away in the end.
    Leaving(Names),
    /// As in the manifests: both versions are pods of one workload.
    Shared,
    /// As in the manifests of each version, which gives its objects names of their own.
    Versioned(Versions),
}

/// What two versions call their objects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Versions {
    /// The stable version; from *promote* to *return* the one that goes.
    pub stable: Names,
    /// The version that a run brings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<Names>,
}

/// The two names that the others follow from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Names {
    /// The workload that the rollout names.
    pub target: ObjectName,
    /// The Service that people's requests come in by.
    pub service: ObjectName,
}

impl Naming {
    fn is_in_place(&self) -> bool {
        *self == Self::InPlace
    }
}

/// One of the two roles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Role {
    /// Its manifests.
    pub set: SetId,
    /// How many pods it has.
    pub size: Size,
    /// The value of the label `tidegate.io/pods` on its pods. Stable has none before its first promotion, so that
    /// adopting a workload restarts nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<PodsDigest>,
    /// What main has changed directly since, while it wanted another version.
    #[serde(default, skip_serializing_if = "Directly::is_empty")]
    pub directly: Directly,
}

/// What main has changed directly of objects: by [`TARGET`] or `KIND/NAME`, and by JSON pointer; null where it took a field away.
pub type Directly = BTreeMap<String, BTreeMap<String, Value>>;

/// What stands for the target there, which each version may call by another name.
pub const TARGET: &str = "target";

/// A rule that says how many pods a role has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Size {
    /// As its manifests declare.
    Declared,
    /// Enough for this share of the requests: ⌈live stable × share / 100⌉, at least 1, full at 100.
    /// With the router `replicas`: ⌊baseline × share / (100 − share)⌋; of a workload that both share ⌊pods × share / 100⌋ are it.
    Share(Percent),
    /// As declared, but never fewer than this.
    AtLeast(u32),
}

/// What of the users' requests reaches the candidate. Ordered componentwise (design §13.2): see [`Split::within`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Split {
    /// Requests that match one of these all reach it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub headers: BTreeSet<HeaderMatch>,
    /// The share of all others.
    #[serde(default)]
    pub weight: Percent,
    /// The share of those of which it gets a copy, while stable answers them.
    #[serde(default, skip_serializing_if = "Percent::is_zero")]
    pub mirror: Percent,
    /// Units of a workload that both roles share, beside that share of them.
    #[serde(default, skip_serializing_if = "Units::are_none")]
    pub units: Units,
}

/// How many units of a workload that both roles share may be of the new version, where the share alone does not say it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Units {
    /// So many, if that is more than the share.
    #[serde(default)]
    pub count: u32,
    /// So many were let in by now: as many stay if others leave, of which they are a larger share then (requirement N-12).
    #[serde(default)]
    pub done: u32,
    /// The nodes that may be told about the new version, where nodes are the units: none that is not named here is (requirement N-25).
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub batch: BTreeSet<ObjectName>,
}

impl Units {
    fn are_none(&self) -> bool {
        *self == Self::default()
    }
}

impl Split {
    /// Everything to stable.
    #[must_use]
    pub fn stable() -> Self {
        Self::default()
    }

    /// Whether everything goes to stable.
    #[must_use]
    pub fn is_stable(&self) -> bool {
        self.weight == Percent::ZERO && self.mirror == Percent::ZERO && self.headers.is_empty() && self.units.count == 0
    }

    /// Whether it exposes no more than `limit`: at most its weight, its copies and its number of units, and each of its header alternatives
    /// asks for all that some alternative of `limit` asks for. At weight 100 everything is within.
    #[must_use]
    pub fn within(&self, limit: &Self) -> bool {
        let covered = |alternative: &HeaderMatch| {
            limit.headers.iter().any(|l| l.iter().all(|(name, value)| alternative.get(name) == Some(value)))
        };
        let less = self.weight <= limit.weight && self.mirror <= limit.mirror && self.units.count <= limit.units.count;
        limit.weight == Percent::ALL || (less && self.headers.iter().all(covered))
    }

    /// Adds what a phase exposes.
    pub fn open(&mut self, Expose { headers, weight, mirror, units, preview: _ }: &Expose) {
        self.headers.extend(headers.iter().cloned());
        self.weight = weight.unwrap_or(self.weight);
        self.mirror = mirror.unwrap_or(self.mirror);
        self.units.count = units.unwrap_or(self.units.count);
    }

    /// Whether both let the same requests through, however they say it: an alternative that a shorter one implies
    /// adds nothing, nor do headers beside weight 100. What is read from live is compared with this, not with `==`.
    #[must_use]
    pub fn same(&self, other: &Self) -> bool {
        self.within(other) && other.within(self)
    }
}

/// The digest of a posture: what a recorded step allows, and what an action was rendered from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PostureDigest(String);

impl Posture {
    /// Its digest.
    #[must_use]
    pub fn digest(&self) -> PostureDigest {
        let text = serde_json::to_string(self).unwrap_or_default();
        PostureDigest(hex(&Sha256::digest(text.as_bytes())[..8]))
    }
}
