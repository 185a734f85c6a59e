//! Whether what people did to a merged pull request proves that the decision in it is one: approved, at this very content, by
//! enough people who may, and who are others than those who made it or the version. Pure; whoever asks a host brings all
//! that is judged.
//!
//! Who somebody is, is a number that the host never gives to another; texts, labels and comments count for nothing. The
//! policy names people as the host does now. What was not learned is no proof: [`Evidence::Incomplete`] proves as little as no
//! review at all. Where the installation names no host with reviews, signatures prove: [`Signed`].

use crate::manifest::files::RepoPath;
use crate::manifest::ids::{BlobId, CommitId};
use crate::manifest::proof::ApprovalRule;
use crate::manifest::raw::Trust;
use crate::manifest::team::Team;
use crate::people::review::{Review, Says};
use crate::people::user::{Account, Being, Permission, User};
use crate::record::state::{Approved, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

mod signature;

pub use signature::{Signed, Signer};

/// Who made a commit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Author {
    /// We: it is what we have asked, to the letter, so nobody else has made anything of it.
    Ourselves,
    /// A user.
    User(User),
    /// Nobody knows: no account has that address.
    Unknown(String),
}

/// A pull request that was merged, as the host and Git show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergedPull {
    /// Its number.
    pub number: u64,
    /// The branch that it led to.
    pub base: String,
    /// Its head when it was merged.
    pub head: CommitId,
    /// Who opened it.
    pub author: User,
    /// Who merged it, and when; none if the host does not tell.
    pub by: Option<(User, Time)>,
    /// Who made its commits, as authors and as committers.
    pub authors: BTreeSet<Author>,
    /// Who made the commits of the version that it is about, each with one of them.
    pub writers: BTreeMap<Author, CommitId>,
    /// What the merge changed on the base, against its first parent; none for what it took away.
    pub changes: BTreeMap<RepoPath, Option<BlobId>>,
    /// All its reviews.
    pub reviews: Vec<Review>,
    /// Those who reviewed or merged it, as they are now.
    pub accounts: BTreeMap<User, Account>,
    /// By which of the rule's teams those of them are approvers now whom it does not name.
    pub teams: BTreeMap<User, Team>,
}

/// What was learned of how a decision came to its branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProofEvidence {
    /// By a merged pull request.
    Merged(Box<MergedPull>),
    /// By a commit that may be signed; no host is asked.
    Signed(Box<Signed>),
    /// Not by one: it was pushed.
    Pushed,
    /// The host did not tell all, and why.
    Incomplete(String),
    /// A team cannot be seen, and why: that lasts until people do something about it.
    Unseen(String),
}

/// A decision whose proof is asked for: which file, and the commit that brought it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProofQuestion {
    /// Where it lies.
    pub path: RepoPath,
    /// Its content.
    pub blob: BlobId,
    /// The commit of the decisions branch with which it came.
    pub commit: CommitId,
    /// By what it will be judged: only of its teams it is asked who is in them.
    pub rule: ApprovalRule,
}

/// What was learned, and when it was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewEvidence {
    /// What.
    pub evidence: ProofEvidence,
    /// When.
    pub at: Time,
}

/// What has to be proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Required<'a> {
    /// The decisions branch.
    pub base: &'a str,
    /// The one file that the merge changed.
    pub file: (&'a RepoPath, &'a BlobId),
    /// When the run started: nothing is approved in advance.
    pub since: Time,
    /// Who may approve, and how.
    pub rule: &'a ApprovalRule,
}

/// Why something is no proof.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flaw {
    /// Nobody merged a pull request.
    Pushed,
    /// The host did not tell all.
    Incomplete(String),
    /// It led to another branch.
    OtherBase(String),
    /// The merge changed this beside the decision, or something else in its place.
    OtherChange(RepoPath),
    /// Nobody knows who made a commit of it, so anybody who reviewed it may have.
    UnknownAuthor(String),
    /// Nobody knows who made a commit of the version, so anybody who approved it may have.
    UnknownWriter(String, CommitId),
    /// Approved by who opened it or made it.
    Own(User),
    /// Approved by who made this commit of the version.
    Wrote(User, CommitId),
    /// The review is of another commit than was merged.
    OtherCommit(User, CommitId, CommitId),
    /// The review is older than the run.
    Early(User),
    /// No person.
    Machine(User),
    /// The policy does not name them, and they are in none of these teams of it.
    NotListed(User, BTreeSet<Team>),
    /// They may not write now.
    NotAllowed(User),
    /// Somebody who may approve asks for changes.
    Rejected(User),
    /// Nobody on the list of allowed signers has signed it: how that is.
    Unsigned(String),
    /// Signed by one whom the policy does not name.
    Unnamed(String),
    /// Signed by who made this commit of the version.
    SignedOwn(String, CommitId),
    /// Signed by who has signed this commit of the version, too.
    SignedVersion(String, CommitId),
    /// Signed by one whom no commit could name.
    NoAddress(String),
    /// Signed before the run started.
    SignedEarly(String),
    /// The commit that was signed changed this beside the decision, or something else in its place.
    SignedMore(RepoPath),
    /// So many are there, and so many needed.
    TooFew {
        /// Are there.
        found: usize,
        /// Are needed.
        needed: u32,
    },
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pushed => write!(f, "it was pushed to the branch, not merged by a pull request"),
            Self::Incomplete(why) => write!(f, "the Git host did not tell all: {why}"),
            Self::OtherBase(base) => write!(f, "the pull request led to {base}"),
            Self::OtherChange(path) => write!(f, "the merge changed {path}"),
            Self::UnknownAuthor(who) => write!(f, "no account on the Git host has the address of {who}, who made it"),
            Self::UnknownWriter(who, commit) => {
                let commit = short(commit);
                write!(
                    f,
                    "no account on the Git host has the address of {who}, who made commit {commit} of this version"
                )
            }
            Self::Own(user) => write!(f, "{user} made the pull request: an approver must be someone else"),
            Self::Wrote(user, commit) => {
                write!(f, "{user} made commit {} of this version: an approver must be someone else", short(commit))
            }
            Self::OtherCommit(user, reviewed, merged) => {
                write!(f, "{user} reviewed {}, merged was {}", short(reviewed), short(merged))
            }
            Self::Early(user) => write!(f, "{user} reviewed it before the run started"),
            Self::Machine(user) => write!(f, "{user} is no person"),
            Self::NotListed(user, teams) => f.write_str(&user.not_listed(teams)),
            Self::NotAllowed(user) => write!(f, "{user} may not write to the repository now"),
            Self::Rejected(user) => write!(f, "{user} asks for changes"),
            Self::Unsigned(why) => f.write_str(why),
            Self::Unnamed(who) => write!(f, "{who} signed it, and is none of the policy's approvers"),
            Self::SignedOwn(who, commit) => {
                write!(f, "{who} made commit {} of this version: an approver must be someone else", short(commit))
            }
            Self::SignedVersion(who, commit) => {
                write!(f, "{who} signed commit {} of this version: an approver must be someone else", short(commit))
            }
            Self::NoAddress(who) => write!(
                f,
                "{who} signed it, and that is no address: nobody can tell whether they made a commit of this version"
            ),
            Self::SignedEarly(who) => write!(f, "{who} signed it before the run started"),
            Self::SignedMore(path) => {
                write!(f, "the commit that was signed changed {path}: it may add the one decision alone")
            }
            Self::TooFew { found, needed } => write!(f, "approved by {found}, needed are {needed}"),
        }
    }
}

/// A commit as people see it.
fn short(commit: &CommitId) -> &str {
    commit.as_str().get(..8).unwrap_or(commit.as_str())
}

/// All that is wrong, in words.
#[must_use]
pub fn said(flaws: &BTreeSet<Flaw>) -> String {
    flaws.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Who has approved, if that is proven; else all that is wrong.
///
/// # Errors
/// Every flaw.
pub fn prove(wanted: &Required<'_>, evidence: &ProofEvidence) -> Result<Vec<Approved>, BTreeSet<Flaw>> {
    let merged = match evidence {
        ProofEvidence::Merged(merged) => merged,
        ProofEvidence::Signed(signed) => return signature::prove(wanted, signed),
        ProofEvidence::Pushed => return Err([Flaw::Pushed].into()),
        ProofEvidence::Incomplete(why) | ProofEvidence::Unseen(why) => {
            return Err([Flaw::Incomplete(why.clone())].into());
        }
    };
    let mut flaws = content(wanted, merged);
    let mut approved: BTreeMap<&User, Approved> = BTreeMap::new();
    let mut doubts = BTreeSet::new();
    for review in latest(&merged.reviews) {
        let Review { id, by, says, commit, at } = review;
        let doubt = doubt(wanted, merged, by, Some(commit), *at);
        match (says, doubt) {
            (Says::Nothing | Says::Withdrawn, _) => {}
            (Says::Approved, None) => {
                approved.insert(by, counted(wanted, merged, by, Some(*id), *at));
            }
            (Says::Approved, Some(doubt)) => drop(doubts.insert(doubt)),
            // A no of another commit is still a no: its author has not taken it back.
            (Says::ChangesRequested, None | Some(Flaw::OtherCommit(..) | Flaw::Early(_))) => {
                flaws.insert(Flaw::Rejected(by.clone()));
            }
            (Says::ChangesRequested, Some(_)) => {}
        }
    }
    if let (Some((by, at)), Trust::Merges) = (&merged.by, wanted.rule.trust) {
        match doubt(wanted, merged, by, None, *at) {
            None => {
                approved.entry(by).or_insert_with(|| counted(wanted, merged, by, None, *at));
            }
            Some(doubt) => drop(doubts.insert(doubt)),
        }
    }
    let needed = wanted.rule.approvals.max(1);
    if approved.len() < needed as usize {
        flaws.insert(Flaw::TooFew { found: approved.len(), needed });
        flaws.extend(doubts);
    }
    if flaws.is_empty() { Ok(approved.into_values().collect()) } else { Err(flaws) }
}

/// What is wrong with what was merged, whoever approved it. Trees are compared, not messages: however the host merges, the
/// base gets exactly the one file.
fn content(wanted: &Required<'_>, merged: &MergedPull) -> BTreeSet<Flaw> {
    let mut flaws = BTreeSet::new();
    if merged.base != wanted.base {
        flaws.insert(Flaw::OtherBase(merged.base.clone()));
    }
    if merged.authors.is_empty() {
        flaws.insert(Flaw::UnknownAuthor("nobody".to_owned()));
    }
    for author in &merged.authors {
        if let Author::Unknown(who) = author {
            flaws.insert(Flaw::UnknownAuthor(who.clone()));
        }
    }
    for (author, commit) in &merged.writers {
        if let Author::Unknown(who) = author {
            flaws.insert(Flaw::UnknownWriter(who.clone(), commit.clone()));
        }
    }
    flaws.extend(others(wanted, &merged.changes).map(Flaw::OtherChange));
    flaws
}

/// What was changed beside the one decision, or in its place.
fn others(wanted: &Required<'_>, changes: &BTreeMap<RepoPath, Option<BlobId>>) -> impl Iterator<Item = RepoPath> {
    let (path, blob) = wanted.file;
    let other = move |(changed, to): &(&RepoPath, &Option<BlobId>)| {
        let is_it = *changed == path && to.as_ref() == Some(blob);
        !is_it && (to.is_some() || !makes_way(path, changed))
    };
    let absent = (!changes.contains_key(path)).then(|| path.clone());
    changes.iter().filter(other).map(|(changed, _)| changed.clone()).chain(absent)
}

/// Whether what lies at a path is gone wherever that file is: it lay in a directory of its name.
#[must_use]
pub fn makes_way(file: &RepoPath, path: &RepoPath) -> bool {
    path != file && path.is_within(file)
}

/// What each reviewer said last. A comment does not take back what was said, a dismissal does: hosts then change the review.
fn latest(reviews: &[Review]) -> impl Iterator<Item = &Review> {
    let mut last: BTreeMap<&User, &Review> = BTreeMap::new();
    for review in reviews.iter().filter(|review| review.says != Says::Nothing) {
        let known = last.entry(&review.by).or_insert(review);
        if known.id < review.id {
            *known = review;
        }
    }
    last.into_values()
}

/// Why somebody's approval does not count; the first reason that there is. Who merged has seen what was merged.
fn doubt(wanted: &Required<'_>, merged: &MergedPull, by: &User, of: Option<&CommitId>, at: Time) -> Option<Flaw> {
    let Some(account) = merged.accounts.get(by) else { return Some(Flaw::NotAllowed(by.clone())) };
    let author = Author::User(by.clone());
    if account.being == Being::Machine {
        Some(Flaw::Machine(by.clone()))
    } else if *by == merged.author || merged.authors.contains(&author) {
        Some(Flaw::Own(by.clone()))
    } else if let Some(commit) = merged.writers.get(&author) {
        Some(Flaw::Wrote(by.clone(), commit.clone()))
    } else if account.permission < Permission::Write {
        Some(Flaw::NotAllowed(by.clone()))
    } else if !wanted.rule.means(by.id, &by.login) && team(wanted, merged, by).is_none() {
        Some(Flaw::NotListed(by.clone(), wanted.rule.teams()))
    } else if let Some(of) = of.filter(|of| **of != merged.head) {
        Some(Flaw::OtherCommit(by.clone(), of.clone(), merged.head.clone()))
    } else if at < wanted.since {
        Some(Flaw::Early(by.clone()))
    } else {
        None
    }
}

/// By which team of the rule somebody is an approver.
fn team<'a>(wanted: &Required<'_>, merged: &'a MergedPull, by: &User) -> Option<&'a Team> {
    merged.teams.get(by).filter(|team| wanted.rule.teams().contains(*team))
}

/// An approval that counts: whoever is in several teams is one person.
fn counted(wanted: &Required<'_>, merged: &MergedPull, by: &User, review: Option<u64>, at: Time) -> Approved {
    let team = team(wanted, merged, by).filter(|_| !wanted.rule.means(by.id, &by.login));
    let (user, login) = (Some(by.id), by.login.clone());
    Approved { user, login, review, team: team.map(Team::to_string), key: None, at }
}

#[cfg(test)]
mod tests;
