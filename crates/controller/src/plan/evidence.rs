//! Evidence: what collectors brought, kept with the exact question, so that an old answer is never taken for a new one.

use crate::analysis::reading::Readings;
use crate::gate::proof::{ProofQuestion, ReviewEvidence};
use crate::manifest::files::{Had, RepoPath};
use crate::manifest::ids::{BlobId, ClusterName, CommitId, RunId, SetId, TenantName};
use crate::manifest::object::{Object, ObjectRef};
use crate::record::state::Time;
use crate::workload::live::WriteOutcome;
use crate::workload::lookup::{Lookup, Presence};
use std::collections::{BTreeMap, BTreeSet};

/// A question to the API server: "what would this apply come to?"
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Question {
    /// Where it is asked.
    pub cluster: ClusterName,
    /// About which object.
    pub target: ObjectRef,
    /// The digest of what would be applied.
    pub content: String,
    /// The resourceVersion that it would be applied to; none for an absent object.
    pub over: Option<String>,
}

/// An answer to a [`Question`].
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// What it came to.
    pub outcome: WriteOutcome,
    /// When it was given.
    pub at: Time,
}

/// A question that a plan wants answered before it goes on.
#[derive(Debug, Clone, PartialEq)]
pub struct Need {
    /// The question.
    pub question: Question,
    /// What would be applied.
    pub object: Box<Object>,
}

/// An answer to a [`Lookup`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// What it came to.
    pub presence: Presence,
    /// When.
    pub at: Time,
}

/// A question to the Git host: "who has approved this decision, and may they?"
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReviewQuery {
    /// Whose question it is: each tenant waits for their own alone.
    pub tenant: Option<TenantName>,
    /// Which decision.
    pub asked: ProofQuestion,
    /// Of what we ask for ourselves: how we would have asked.
    pub request: Option<Request>,
    /// The version that it lets go further: who made it cannot approve it.
    pub version: Option<Version>,
}

/// A request of ours for a decision.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Request {
    /// The decision to the letter, and as it was asked for before: the file and its content.
    pub letters: BTreeSet<(RepoPath, BlobId)>,
    /// The head of its branch, which was read and found to be what was asked; none where nothing is asked.
    pub head: Option<CommitId>,
}

/// A version on main, in place of another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Main's tip that brings it.
    pub commit: CommitId,
    /// What main had of both at the version in whose place it comes: their manifests, and apart from them the rollout's file and the
    /// Jobs of the plan. There need be no commit that had all of it.
    pub stable: [BTreeMap<RepoPath, Had>; 2],
}

/// A run's change on main that could not be undone: others have changed the same lines since.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entangled {
    /// The run.
    pub run: RunId,
    /// What main wanted when it was tried.
    pub wanted: SetId,
    /// The files, as main has them.
    pub files: BTreeSet<RepoPath>,
}

/// Whether the branch of a request went with a no that counts, where the policy names who may say it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Denial {
    /// Yes.
    No,
    /// Somebody did it whose no does not count, or nobody can tell who: why.
    NotAuthorized(String),
    /// The host does not tell.
    Unknown(String),
}

/// What is known.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Evidence {
    /// Dry runs.
    pub dry_runs: BTreeMap<Question, Answer>,
    /// The last outcome of each write that did not succeed, by object and digest of what was to be applied.
    pub writes: BTreeMap<(ObjectRef, String), Answer>,
    /// The request to undo a run's change on main that could not be made.
    pub entangled: Option<Entangled>,
    /// What was looked up by its name.
    pub looked: BTreeMap<Lookup, Found>,
    /// What was said to the questions of checks.
    pub readings: Readings,
    /// What the Git host has told of decisions.
    pub proofs: BTreeMap<ProofQuestion, ReviewEvidence>,
    /// What it has told of requests whose branches are gone, by branch and head.
    pub denials: BTreeMap<(String, CommitId), Denial>,
}
