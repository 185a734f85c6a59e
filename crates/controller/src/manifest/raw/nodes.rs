//! Which nodes operations lets rollouts configure.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Nodes, by their labels: those that all of this selects, as in Kubernetes; `{}` selects all.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeSelector {
    /// Labels that they have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("minProperties" = 1))]
    pub match_labels: BTreeMap<String, String>,
    /// What else is asked of their labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("minItems" = 1))]
    pub match_expressions: Vec<LabelRequirement>,
}

/// What is asked of one label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LabelRequirement {
    /// The name of the label.
    #[schemars(extend("minLength" = 1))]
    pub key: String,
    /// How it is looked at.
    pub operator: LabelOperator,
    /// The values, with `In` and `NotIn`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

/// How a label is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum LabelOperator {
    /// It has one of the values.
    In,
    /// It has none of them, or is not there.
    NotIn,
    /// It is there.
    Exists,
    /// It is not there.
    DoesNotExist,
}
