//! Users of the Git host, as it knows them now.

use crate::manifest::team::{Team, either};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt;

/// A user of the Git host: their number says who they are, their name is for people.
#[derive(Debug, Clone)]
pub struct User {
    /// Their number.
    pub id: u64,
    /// What they are called now.
    pub login: String,
}

impl User {
    /// That a policy does not name them, and that they are in none of these teams of it, in words.
    #[must_use]
    pub fn not_listed(&self, teams: &BTreeSet<Team>) -> String {
        let outside = if teams.is_empty() { String::new() } else { format!(", and not in {}", either(teams)) };
        format!("{self} is none of the policy's approvers{outside}")
    }
}

impl PartialEq for User {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for User {}

impl PartialOrd for User {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for User {
    fn cmp(&self, other: &Self) -> Ordering {
        self.id.cmp(&other.id)
    }
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.login)
    }
}

/// What a user may do in the repository now; more is greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Permission {
    /// Nothing.
    None,
    /// Read.
    Read,
    /// Write.
    Write,
    /// Everything.
    Admin,
}

/// What a user is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Being {
    /// A person.
    Person,
    /// An app, a bot, a workflow.
    Machine,
}

/// A user as the host knows them now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Account {
    /// What they are.
    pub being: Being,
    /// What they may do.
    pub permission: Permission,
}
