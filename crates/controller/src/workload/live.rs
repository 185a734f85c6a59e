//! Live state as a value: what the API server said, at one moment, of everything that a rollout may touch or must see.

use super::objects::Objects;
use crate::manifest::ids::{Namespace, ObjectName};
use crate::manifest::object::{Kind, Object, ObjectRef};
use std::collections::{BTreeMap, BTreeSet};

/// One namespace of one cluster, as observed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LiveState {
    /// The uid of the cluster's `kube-system` namespace: which cluster this is.
    pub cluster_uid: String,
    /// All objects of the kinds that tidegate watches.
    pub objects: Objects,
    /// Kinds that this cluster does not serve (a missing CRD): they block who needs them, and nothing else.
    pub missing: BTreeSet<Kind>,
    /// Kinds that cannot be read now, and why: what is known of them may be out of date, or nothing.
    pub closed: BTreeMap<Kind, String>,
    /// Kinds that this installation may not write, and does not watch.
    pub unwatched: BTreeSet<Kind>,
    /// Of the kinds that are known by their names alone those that are watched: they are once a rollout has, or shall have, objects of them.
    pub others: BTreeSet<Kind>,
}

impl LiveState {
    /// Why nothing is done with objects of one of the kinds that are missing.
    #[must_use]
    pub fn unserved(kind: Kind) -> String {
        let version = if kind.is_other() { format!(" ({})", kind.api_version()) } else { String::new() };
        format!("the cluster does not serve {kind}{version}")
    }

    /// The object of that name.
    #[must_use]
    pub fn get(&self, reference: &ObjectRef) -> Option<&Object> {
        self.objects.get(reference).map(AsRef::as_ref)
    }

    /// The object of that kind and name.
    #[must_use]
    pub fn find(&self, kind: Kind, namespace: &Namespace, name: &ObjectName) -> Option<&Object> {
        self.get(&ObjectRef { kind, namespace: namespace.clone(), name: name.clone() })
    }

    /// The same, remembering from now on what it is asked ([`Objects::footprint`]).
    #[must_use]
    pub fn attentive(&self) -> Self {
        Self { objects: self.objects.attentive(), ..self.clone() }
    }

    /// All objects of a kind.
    pub fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Object> {
        self.objects.of_kind(kind)
    }
}

/// What a write expects to find; anything else makes it stale.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expects {
    /// Nothing there.
    Absent,
    /// This object, whatever was written to it meanwhile (a delete, a change of field managers).
    Uid(String),
    /// This object, exactly as it was read (every apply).
    Version {
        /// Its uid.
        uid: String,
        /// Its resourceVersion.
        resource_version: String,
    },
}

/// What an API request came to, sorted by what follows from it (requirement X-13). Expected results are not errors.
#[derive(Debug, Clone, PartialEq)]
pub enum WriteOutcome {
    /// Done; the object as the API server has it now (`None` after a delete).
    Done(Option<Box<Object>>),
    /// The world has moved (409, wrong uid, gone): observe again. Never a refusal.
    Stale(String),
    /// Another manager owns fields with other values.
    Conflict {
        /// The other manager.
        manager: String,
        /// The fields, as the API server names them.
        fields: Vec<String>,
    },
    /// The API server or an admission webhook refuses the content (4xx): evidence against the revision.
    Refused(String),
    /// The kind is not served here (404 on the resource).
    MissingKind(Kind),
    /// We have no right to do this (403): no evidence against the revision.
    Forbidden(String),
    /// Time-out, 5xx, 429, connection refused: no evidence of anything; try again.
    Retriable(String),
}
