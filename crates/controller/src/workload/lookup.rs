//! What is asked of the API server by its name, beside what is watched, and what it says: that something is there, and which it is.

use crate::manifest::ids::{Namespace, ObjectName};
use crate::manifest::reference::Referent;
use crate::record::state::Time;
use std::collections::BTreeSet;

/// A question to the API server: "is there something of that name?"
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lookup {
    /// What.
    pub to: Referent,
    /// Where.
    pub namespace: Namespace,
    /// Its name.
    pub name: ObjectName,
}

/// What a [`Lookup`] came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Presence {
    /// It is there, and is this one.
    There(Identity),
    /// It is not.
    Absent,
    /// We have no right to know.
    Forbidden(String),
    /// No answer.
    Unknown(String),
}

/// Which object something is. Of what it holds nothing is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Its uid, and which content it has, as far as its metadata tells: another one once it is another object, or has another content.
    pub version: String,
    /// When that content was written last, to the second; none if the API server does not say.
    pub written: Option<Time>,
    /// Our owner mark, if it has one.
    pub owner: Option<String>,
    /// The uids of the objects that it goes with.
    pub holders: BTreeSet<String>,
}
