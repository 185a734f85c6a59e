//! Whether what people did to a merged pull request proves that the decision in it is one: reviewed, at this very content, by
//! enough people who may, and who are others than those who made it. Pure; whoever asks a host brings all that is judged.
//!
//! Who somebody is, is a number that the host never gives to another; names, texts, labels and comments count for nothing.
//! What was not learned is no proof: [`Evidence::Incomplete`] proves as little as no review at all.

use crate::manifest::files::RepoPath;
use crate::manifest::ids::{BlobId, CommitId};
use crate::record::state::Time;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A user's number on the Git host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct User(pub u64);

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "user {}", self.0)
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

/// Who made a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Maker {
    /// We: it is the commit that our record names, so nobody else can have made it.
    Ourselves,
    /// A user.
    User(User),
    /// Nobody knows: no account has that address.
    Unknown,
}

/// What a review says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Says {
    /// Yes.
    Approved,
    /// No.
    ChangesRequested,
    /// Neither, or nothing any more: a comment, a draft, a review that was dismissed.
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

/// A pull request that was merged, as the host and Git show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// The branch that it led to.
    pub base: String,
    /// Its head when it was merged.
    pub head: CommitId,
    /// Who opened it.
    pub author: User,
    /// Who pushed to its branch last, if the host tells.
    pub pusher: Option<User>,
    /// Who made its commits, as authors and as committers.
    pub makers: BTreeSet<Maker>,
    /// What the merge changed on the base, against its first parent; none for what it took away.
    pub changes: BTreeMap<RepoPath, Option<BlobId>>,
    /// All its reviews.
    pub reviews: Vec<Review>,
    /// Those who reviewed it, as they are now.
    pub accounts: BTreeMap<User, Account>,
}

/// What is known of how a decision came to the decisions branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Evidence {
    /// By a merged pull request.
    Merged(Box<Merged>),
    /// Not by one: it was pushed.
    Pushed,
    /// The host did not tell all, and why.
    Incomplete(String),
}

/// What has to be proven.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The decisions branch.
    pub base: String,
    /// The head of the request that the record names.
    pub head: CommitId,
    /// The one file that it adds.
    pub file: (RepoPath, BlobId),
    /// When the run started: nothing is approved in advance.
    pub since: Time,
    /// Who may approve, by the policy of the base; empty for everybody who may write.
    pub approvers: BTreeSet<User>,
    /// How many of them are needed, one at least.
    pub needed: usize,
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
    /// What was merged is not what was asked.
    OtherHead(CommitId),
    /// The merge changed this beside the decision, or something else in its place.
    OtherChange(RepoPath),
    /// Nobody knows who made a commit of it, so anybody who reviewed it may have.
    UnknownMaker,
    /// Reviewed by who opened it, made it or pushed it.
    Own(User),
    /// The review is of another commit.
    OtherCommit(User),
    /// The review is older than the run.
    Early(User),
    /// No person.
    Machine(User),
    /// The policy does not name them.
    NotListed(User),
    /// They may not write now.
    NotAllowed(User),
    /// Somebody who may approve asks for changes.
    Rejected(User),
    /// So many are there, and so many needed.
    TooFew {
        /// Are there.
        found: usize,
        /// Are needed.
        needed: usize,
    },
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pushed => write!(f, "it was pushed to the branch, not merged by a pull request"),
            Self::Incomplete(why) => write!(f, "the Git host did not tell all: {why}"),
            Self::OtherBase(base) => write!(f, "the pull request led to {base}"),
            Self::OtherHead(head) => write!(f, "commit {head} was merged, which is not what was asked"),
            Self::OtherChange(path) => write!(f, "the merge changed {path}"),
            Self::UnknownMaker => write!(f, "the Git host knows no account for who made a commit"),
            Self::Own(user) => write!(f, "{user} had a hand in the pull request"),
            Self::OtherCommit(user) => write!(f, "{user} reviewed another commit"),
            Self::Early(user) => write!(f, "{user} reviewed it before the run started"),
            Self::Machine(user) => write!(f, "{user} is no person"),
            Self::NotListed(user) => write!(f, "{user} is none of the policy's approvers"),
            Self::NotAllowed(user) => write!(f, "{user} may not write to the repository now"),
            Self::Rejected(user) => write!(f, "{user} asks for changes"),
            Self::TooFew { found, needed } => write!(f, "approved by {found}, needed are {needed}"),
        }
    }
}

/// Who has approved, if that is proven; else all that is wrong.
///
/// # Errors
/// Every flaw.
pub fn prove(wanted: &Wanted, evidence: &Evidence) -> Result<BTreeSet<User>, BTreeSet<Flaw>> {
    let merged = match evidence {
        Evidence::Merged(merged) => merged,
        Evidence::Pushed => return Err([Flaw::Pushed].into()),
        Evidence::Incomplete(why) => return Err([Flaw::Incomplete(why.clone())].into()),
    };
    let mut flaws = content(wanted, merged);
    let mut approved = BTreeSet::new();
    let mut doubts = BTreeSet::new();
    for review in latest(&merged.reviews) {
        let doubt = doubt(wanted, merged, review);
        match (review.says, doubt) {
            (Says::Nothing, _) => {}
            (Says::Approved, None) => drop(approved.insert(review.by)),
            (Says::Approved, Some(doubt)) => drop(doubts.insert(doubt)),
            // A no of another commit is still a no: its author has not taken it back.
            (Says::ChangesRequested, None | Some(Flaw::OtherCommit(_) | Flaw::Early(_))) => {
                flaws.insert(Flaw::Rejected(review.by));
            }
            (Says::ChangesRequested, Some(_)) => {}
        }
    }
    let needed = wanted.needed.max(1);
    if approved.len() < needed {
        flaws.insert(Flaw::TooFew { found: approved.len(), needed });
        flaws.extend(doubts);
    }
    if flaws.is_empty() { Ok(approved) } else { Err(flaws) }
}

/// What is wrong with what was merged, whoever approved it. Trees are compared, not messages: however the host merges, the
/// base gets exactly the one file.
fn content(wanted: &Wanted, merged: &Merged) -> BTreeSet<Flaw> {
    let mut flaws = BTreeSet::new();
    if merged.base != wanted.base {
        flaws.insert(Flaw::OtherBase(merged.base.clone()));
    }
    if merged.head != wanted.head {
        flaws.insert(Flaw::OtherHead(merged.head.clone()));
    }
    if merged.makers.is_empty() || merged.makers.contains(&Maker::Unknown) {
        flaws.insert(Flaw::UnknownMaker);
    }
    let (path, blob) = &wanted.file;
    let other = |(changed, to): &(&RepoPath, &Option<BlobId>)| *changed != path || to.as_ref() != Some(blob);
    flaws.extend(merged.changes.iter().filter(other).map(|(changed, _)| Flaw::OtherChange(changed.clone())));
    if !merged.changes.contains_key(path) {
        flaws.insert(Flaw::OtherChange(path.clone()));
    }
    flaws
}

/// What each reviewer said last. A comment does not take back what was said, a dismissal does: hosts then change the review.
fn latest(reviews: &[Review]) -> impl Iterator<Item = &Review> {
    let mut last: BTreeMap<User, &Review> = BTreeMap::new();
    for review in reviews.iter().filter(|review| review.says != Says::Nothing) {
        let known = last.entry(review.by).or_insert(review);
        if known.id < review.id {
            *known = review;
        }
    }
    last.into_values()
}

/// Why a review does not count; the first reason that there is.
fn doubt(wanted: &Wanted, merged: &Merged, review: &Review) -> Option<Flaw> {
    let by = review.by;
    let had_a_hand = by == merged.author || merged.pusher == Some(by) || merged.makers.contains(&Maker::User(by));
    let Some(account) = merged.accounts.get(&by) else { return Some(Flaw::NotAllowed(by)) };
    if account.being == Being::Machine {
        Some(Flaw::Machine(by))
    } else if had_a_hand {
        Some(Flaw::Own(by))
    } else if account.permission < Permission::Write {
        Some(Flaw::NotAllowed(by))
    } else if !wanted.approvers.is_empty() && !wanted.approvers.contains(&by) {
        Some(Flaw::NotListed(by))
    } else if review.commit != wanted.head {
        Some(Flaw::OtherCommit(by))
    } else if review.at < wanted.since {
        Some(Flaw::Early(by))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fixture::{commit, time};

    const ANA: User = User(1);
    const BEN: User = User(2);
    const BOT: User = User(42);
    const PATH: &str = "shop/podinfo/7-07070707-tenth.yaml";

    fn blob(digit: u8) -> BlobId {
        format!("{digit:02x}").repeat(20).parse().unwrap()
    }

    fn path(text: &str) -> RepoPath {
        text.parse().unwrap()
    }

    fn wanted() -> Wanted {
        Wanted {
            base: "tidegate/prod/decisions".to_owned(),
            head: commit(0x78),
            file: (path(PATH), blob(1)),
            since: time("09:00:00"),
            approvers: [ANA, BEN].into(),
            needed: 1,
        }
    }

    fn review(id: u64, by: User, says: Says) -> Review {
        Review { id, by, says, commit: commit(0x78), at: time("09:30:00") }
    }

    fn person(permission: Permission) -> Account {
        Account { being: Being::Person, permission }
    }

    /// A request of ours that Ana has approved.
    fn merged() -> Merged {
        Merged {
            base: wanted().base,
            head: commit(0x78),
            author: BOT,
            pusher: Some(BOT),
            makers: [Maker::Ourselves].into(),
            changes: [(path(PATH), Some(blob(1)))].into(),
            reviews: vec![review(1, ANA, Says::Approved)],
            accounts: [(ANA, person(Permission::Write)), (BEN, person(Permission::Admin))].into(),
        }
    }

    fn proven(merged: Merged) -> Result<BTreeSet<User>, BTreeSet<Flaw>> {
        prove(&wanted(), &Evidence::Merged(Box::new(merged)))
    }

    /// All that is wrong with a merge, of which a lack of approvals is not said again.
    #[track_caller]
    fn flaws(change: impl FnOnce(&mut Merged)) -> Vec<Flaw> {
        let mut merged = merged();
        change(&mut merged);
        let few = Flaw::TooFew { found: 0, needed: 1 };
        proven(merged).unwrap_err().into_iter().filter(|flaw| *flaw != few).collect()
    }

    #[test]
    fn a_request_of_ours_that_another_has_approved_is_proven() {
        assert_eq!(proven(merged()), Ok([ANA].into()));
        let anybody = Wanted { approvers: BTreeSet::new(), ..wanted() };
        assert_eq!(prove(&anybody, &Evidence::Merged(Box::new(merged()))), Ok([ANA].into()));
        let mut nobody = merged();
        nobody.reviews.clear();
        assert_eq!(proven(nobody), Err([Flaw::TooFew { found: 0, needed: 1 }].into()));
        let none = Wanted { needed: 0, ..wanted() };
        let mut merged = merged();
        merged.reviews.clear();
        assert!(prove(&none, &Evidence::Merged(Box::new(merged))).is_err(), "one at least");
    }

    #[test]
    fn attack_74_nobody_approves_what_they_had_a_hand_in() {
        assert_eq!(flaws(|m| m.author = ANA), [Flaw::Own(ANA)]);
        assert_eq!(flaws(|m| m.pusher = Some(ANA)), [Flaw::Own(ANA)]);
        assert_eq!(
            flaws(|m| {
                m.makers.insert(Maker::User(ANA));
            }),
            [Flaw::Own(ANA)]
        );
        // Whose commit it is may be hidden behind an address that no account has.
        assert_eq!(
            flaws(|m| {
                m.makers.insert(Maker::Unknown);
            }),
            [Flaw::UnknownMaker]
        );
        assert_eq!(flaws(|m| m.makers.clear()), [Flaw::UnknownMaker]);
    }

    #[test]
    fn attack_75_a_review_counts_for_the_commit_that_it_is_of() {
        assert_eq!(flaws(|m| m.reviews[0].commit = commit(0x79)), [Flaw::OtherCommit(ANA)]);
    }

    #[test]
    fn attack_76_what_is_merged_is_what_was_asked() {
        assert_eq!(flaws(|m| m.head = commit(0x79)), [Flaw::OtherHead(commit(0x79))]);
        // Approved at that head, too.
        let both = flaws(|m| (m.head, m.reviews[0].commit) = (commit(0x79), commit(0x79)));
        assert_eq!(both, [Flaw::OtherHead(commit(0x79)), Flaw::OtherCommit(ANA)]);
    }

    #[test]
    fn attack_77_81_83_the_base_gets_exactly_the_one_file() {
        let other = path("shop/podinfo/7-07070707-half.yaml");
        for change in [Some(blob(1)), None] {
            let added = flaws(|m| {
                m.changes.insert(other.clone(), change);
            });
            assert_eq!(added, [Flaw::OtherChange(other.clone())]);
        }
        let policy = path("tidegate.yaml");
        assert_eq!(
            flaws(|m| {
                m.changes.insert(policy.clone(), Some(blob(3)));
            }),
            [Flaw::OtherChange(policy)]
        );
        for change in [Some(blob(2)), None] {
            assert_eq!(
                flaws(|m| {
                    m.changes.insert(path(PATH), change);
                }),
                [Flaw::OtherChange(path(PATH))]
            );
        }
        assert_eq!(flaws(|m| m.changes.clear()), [Flaw::OtherChange(path(PATH))]);
        assert_eq!(flaws(|m| m.base = "main".to_owned()), [Flaw::OtherBase("main".to_owned())]);
    }

    #[test]
    fn attack_78_no_machine_approves() {
        let machine = Account { being: Being::Machine, permission: Permission::Admin };
        assert_eq!(
            flaws(|m| {
                m.accounts.insert(ANA, machine);
            }),
            [Flaw::Machine(ANA)]
        );
    }

    #[test]
    fn attack_79_80_who_may_not_write_now_does_not_approve() {
        for permission in [Permission::None, Permission::Read] {
            assert_eq!(
                flaws(|m| {
                    m.accounts.insert(ANA, person(permission));
                }),
                [Flaw::NotAllowed(ANA)]
            );
        }
        assert_eq!(flaws(|m| m.accounts.clear()), [Flaw::NotAllowed(ANA)]);
        let stranger = User(3);
        let unlisted = flaws(|m| {
            m.accounts.insert(stranger, person(Permission::Admin));
            m.reviews[0].by = stranger;
        });
        assert_eq!(unlisted, [Flaw::NotListed(stranger)]);
    }

    #[test]
    fn attack_82_85_what_was_pushed_or_is_not_known_is_no_proof() {
        assert_eq!(prove(&wanted(), &Evidence::Pushed), Err([Flaw::Pushed].into()));
        let why = "page 2 of the reviews: status 500".to_owned();
        assert_eq!(prove(&wanted(), &Evidence::Incomplete(why.clone())), Err([Flaw::Incomplete(why)].into()));
    }

    #[test]
    fn attack_84_only_what_a_review_says_counts_and_the_last_one_of_each() {
        let many = |reviews: Vec<Review>| proven(Merged { reviews, ..merged() });
        let few = || Flaw::TooFew { found: 0, needed: 1 };
        assert_eq!(many(vec![review(1, ANA, Says::Nothing)]), Err([few()].into()));
        let (yes, no) = (review(1, ANA, Says::Approved), review(2, ANA, Says::ChangesRequested));
        let rejected = || Err([Flaw::Rejected(ANA), few()].into());
        assert_eq!(many(vec![yes.clone(), no.clone()]), rejected());
        assert_eq!(many(vec![no, yes.clone()]), rejected(), "in whatever order they come");
        let comment = review(3, ANA, Says::Nothing);
        assert_eq!(many(vec![yes.clone(), comment]), Ok([ANA].into()));
        let twice = Evidence::Merged(Box::new(Merged {
            reviews: vec![yes.clone(), review(4, ANA, Says::Approved)],
            ..merged()
        }));
        let two = Wanted { needed: 2, ..wanted() };
        assert_eq!(prove(&two, &twice), Err([Flaw::TooFew { found: 1, needed: 2 }].into()), "one person is one");
        let ben = review(2, BEN, Says::ChangesRequested);
        assert_eq!(many(vec![yes.clone(), ben.clone()]), Err([Flaw::Rejected(BEN)].into()));
        let before = Review { commit: commit(0x79), ..ben.clone() };
        assert_eq!(many(vec![yes.clone(), before]), Err([Flaw::Rejected(BEN)].into()));
        // Who may not approve does not stop it either.
        assert_eq!(many(vec![yes, Review { by: User(3), ..ben }]), Ok([ANA].into()));
    }

    #[test]
    fn attack_86_nothing_is_approved_in_advance() {
        assert_eq!(flaws(|m| m.reviews[0].at = time("08:59:59")), [Flaw::Early(ANA)]);
    }
}
