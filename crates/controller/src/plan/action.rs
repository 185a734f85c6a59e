//! What a plan wants done, by class (design §6). Actions are absolute, idempotent, and carry what they expect to find.

use crate::manifest::ids::{ClusterName, ObjectName, RolloutId, RunId, StepName};
use crate::manifest::object::{Object, ObjectRef};
use crate::record::posture::PostureDigest;
use crate::workload::live::Expects;
use std::collections::BTreeSet;

/// What an action may wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// The new version reaches less, stable loses no capacity. Waits for nothing, least of all for Git.
    Retreat,
    /// Same exposure and capacity, undoable. Needs a verified tip.
    Upkeep,
    /// All else. Needs the record to say so first.
    Advance,
}

/// One thing to do in one cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    /// What it may wait for.
    pub class: Class,
    /// For which rollout.
    pub rollout: RolloutId,
    /// In which cluster.
    pub cluster: ClusterName,
    /// The uid of that cluster when it was observed.
    pub cluster_uid: String,
    /// The posture that it was rendered from; none for retreats, which are rendered from live alone.
    pub posture: Option<PostureDigest>,
    /// What to do.
    pub verb: Verb,
    /// In words, for logs and `plan`: "weight 0 → 10".
    pub why: String,
}

/// What to do with an object.
#[derive(Debug, Clone, PartialEq)]
pub enum Verb {
    /// Server-side apply, without force.
    Apply {
        /// What we want to own, marks included; no uid, no resourceVersion.
        object: Box<Object>,
        /// What must be there.
        expects: Expects,
    },
    /// Rewrites the field managers of client-side apply to ours, and changes nothing else.
    Migrate {
        /// The object.
        target: ObjectRef,
        /// What must be there.
        expects: Expects,
    },
    /// Deletes it (background propagation).
    Delete {
        /// The object.
        target: ObjectRef,
        /// What must be there.
        expects: Expects,
        /// What lets it go.
        by: GoesBy,
    },
    /// Makes the copy of a Secret, of what that holds by then: no plan knows it.
    CopySecret(Box<SecretCopy>),
}

/// What lets an object go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GoesBy {
    /// The policy: it is ours to take away, or no more go with it than may at once.
    Policy,
    /// A person, in the record.
    Word,
}

/// The copy of a Secret that a version takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretCopy {
    /// The object that it goes with, and whose name it has.
    pub anchor: ObjectRef,
    /// What must be there of the anchor: its uid.
    pub expects: Expects,
    /// The Secret.
    pub secret: ObjectName,
    /// Which version of it: its uid and resourceVersion.
    pub version: String,
    /// Our owner mark.
    pub owner: String,
}

impl SecretCopy {
    /// What stands for the content where outcomes of writes are kept.
    pub const CONTENT: &'static str = "copy";
}

/// A branch that asks for a person's decision or proposes to undo a change on main.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// For which rollout.
    pub rollout: RolloutId,
    /// Of which run.
    pub run: RunId,
    /// What is asked.
    pub ask: Ask,
}

/// What a proposal asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// To let the run enter this step: a decision file on top of the decisions branch.
    Advance {
        /// The step.
        through: StepName,
    },
    /// To undo the run's change on main, three-way.
    Revert {
        /// Why the run went back.
        why: String,
    },
    /// To let objects go that are more than the policy lets go at once: a decision file on top of the decisions branch.
    Delete {
        /// All of them.
        objects: BTreeSet<ObjectRef>,
    },
}

impl Verb {
    /// The object that it is about.
    #[must_use]
    pub fn target(&self) -> &ObjectRef {
        match self {
            Self::Apply { object, .. } => object.reference(),
            Self::Migrate { target, .. } | Self::Delete { target, .. } => target,
            Self::CopySecret(copy) => &copy.anchor,
        }
    }

    /// What it expects to find.
    #[must_use]
    pub fn expects(&self) -> &Expects {
        match self {
            Self::Apply { expects, .. } | Self::Migrate { expects, .. } | Self::Delete { expects, .. } => expects,
            Self::CopySecret(copy) => &copy.expects,
        }
    }
}
