//! How decisions of people were proven, and which were not: what the record keeps of reviews on a Git host, and of signatures.

use super::Time;
use crate::manifest::ids::{CommitId, StepName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What proved a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Proven {
    /// The pull request; none where a signature did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull: Option<u64>,
    /// Its head when it was merged, which was approved; else the commit that was signed.
    pub head: CommitId,
    /// The commit that it became on the decisions branch.
    pub commit: CommitId,
    /// Of an approval: how far it reaches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<StepName>,
    /// Who approved.
    pub by: Vec<Approved>,
}

/// One person's approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Approved {
    /// Their number on the host; none for who has signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<u64>,
    /// Their name there, or on the list of allowed signers, then.
    pub login: String,
    /// The number of their review; none for who merged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<u64>,
    /// The team of the policy by which they counted; none for whom it names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<String>,
    /// The fingerprint of the key with which they have signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// When.
    pub at: Time,
}

/// Why a decision does not count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Void {
    /// All that is wrong with it, in words.
    pub why: String,
    /// Of an approval: how far it would have reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<StepName>,
    /// The head of our request that it answered, or took the place of; it asks for nothing any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<CommitId>,
}
