//! The clusters of a repository as people write them, and in which order versions reach them.

use super::NodeSelector;
use crate::manifest::duration::Span;
use crate::manifest::ids::{ClusterName, InstanceName, WaveName};
use crate::manifest::rolling::Amount;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Many clusters that follow one repository, and in which order versions reach them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FleetSpec {
    /// The clusters, by the names that the policy calls them by, and the installation of each its own.
    #[schemars(extend("minProperties" = 1, "maxProperties" = 2_000))]
    pub clusters: BTreeMap<ClusterName, FleetCluster>,
    /// In which order a version reaches them: those of the first wave, then those of the second, and so on. Each cluster is in one wave.
    #[schemars(extend("minItems" = 1, "maxItems" = 50))]
    pub waves: Vec<Wave>,
}

/// One cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FleetCluster {
    /// The instance of tidegate that serves it, whose state branch says what it has.
    pub instance: InstanceName,
    /// The uid of its namespace `kube-system`: what tells it from any other that is called so.
    #[schemars(extend("minLength" = 1, "maxLength" = 64))]
    pub uid: String,
    /// By what waves select it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// Clusters that a version reaches together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Wave {
    /// Its name.
    pub name: WaveName,
    /// Which clusters.
    pub clusters: WaveClusters,
    /// How many of them may be under way at a time: a number, or a share such as `25%`, rounded down, and one at least. They go in the order of
    /// their names.
    #[serde(default)]
    pub max_updating: Amount,
    /// How long all of them have to have had a version until the next wave begins.
    #[serde(default)]
    pub soak: Span,
    /// How many of them may have failed, or not have it, when the next wave begins.
    #[serde(default)]
    #[schemars(extend("maximum" = 2_000))]
    pub tolerate: u32,
}

/// The clusters of a wave: by their names, or by their labels. One of both.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WaveClusters {
    /// These.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BTreeSet<ClusterName>", extend("minItems" = 1))]
    pub names: Option<BTreeSet<ClusterName>>,
    /// Those with such labels; `{}` for all that no wave before has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "NodeSelector")]
    pub selector: Option<NodeSelector>,
}
