//! How routes are named in a rollout's file that operations delegate to a team.

use crate::manifest::ids::ObjectName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An HTTPProxy of Contour, a root or one that another includes, and the Service that it leads to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Contour {
    /// The HTTPProxy among the manifests. One HTTPProxy belongs to one rollout.
    pub http_proxy: ObjectName,
    /// The Service among the manifests that its routes lead to.
    pub service: ObjectName,
}

/// A RouteTable of Gloo, which a VirtualService of operations delegates to, and the Service that it leads to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Gloo {
    /// The RouteTable among the manifests. One RouteTable belongs to one rollout.
    pub route_table: ObjectName,
    /// The Service among the manifests that its routes lead to.
    pub service: ObjectName,
}
