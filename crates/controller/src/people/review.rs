//! Reviews of pull requests.

use super::user::User;
use crate::manifest::ids::CommitId;
use crate::record::state::Time;

/// What a review says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Says {
    /// Yes.
    Approved,
    /// No.
    ChangesRequested,
    /// What it said does not count any more: it was dismissed. What its author said before does not come back by that.
    Withdrawn,
    /// Neither: a comment, a draft.
    Nothing,
}

/// One review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Review {
    /// Its number: later ones have greater ones.
    pub id: u64,
    /// Who.
    pub by: User,
    /// What.
    pub says: Says,
    /// Of which commit.
    pub commit: CommitId,
    /// When.
    pub at: Time,
}
