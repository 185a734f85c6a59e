//! Asking a Git host who approved a decision: each in a task of its own. What Git can tell is asked of Git.

use super::{Collector, Notary};
use crate::forge::host::{Host, HostError, Opened, Pulled, Shown};
use crate::gate::proof::{Account, Being, Evidence, Maker, Merged, Permission, Review, Says, Testimony, User};
use crate::git::{Changed, GitError, Made, RefName, Store};
use crate::manifest::ids::{CommitId, RolloutId};
use crate::manifest::raw::Trust;
use crate::manifest::team::Team;
use crate::plan::evidence::{Attest, Request, Version};
use crate::reconcile::clock::Clock;
use crate::record::state::{By, Rule, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::sleep;

/// How long a host has, after a push to a branch, to know the pull request that it merged: 1 + 2 + 4 + 8 + 15 + 30 = 60 s. By nobody merged,
/// and void, is what it does not know then.
const PAUSES: [u64; 6] = [1, 2, 4, 8, 15, 30];
/// Of how many people a version's commits may be: each costs a call.
const PEOPLE: usize = 50;
/// How many commits a version may be made by that are no merges: each costs one to three calls, and what a host has told of most of them is
/// kept.
const COMMITS: usize = 250;

/// Who tells how decisions came to their branch.
pub struct Witness {
    /// The Git host: one question at a time.
    pub host: Mutex<Host>,
    /// The repository.
    pub store: Store,
    /// What people want.
    pub main: RefName,
}

/// Why not all was told.
#[derive(Debug, thiserror::Error)]
enum Silence {
    #[error(transparent)]
    Host(#[from] HostError),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("{0}")]
    Odd(String),
}

impl Collector {
    /// The same, with somebody who can tell who approved.
    #[must_use]
    pub fn with(self, witness: Option<Witness>) -> Self {
        Self { witness: witness.map(Arc::new), ..self }
    }

    /// The same, with somebody who can tell who has signed.
    #[must_use]
    pub fn reading(self, notary: Option<Notary>) -> Self {
        Self { notary: notary.map(Arc::new), ..self }
    }

    /// Asks who approved decisions about a rollout, unless that is under way already.
    pub fn attest(&self, rollout: &RolloutId, attests: &[Attest]) {
        for attest in attests {
            let key = (rollout.clone(), attest.asked.clone());
            if !self.known().attesting.insert(key.clone()) {
                continue;
            }
            let (witness, notary) = (self.witness.clone(), self.notary.clone());
            let (clock, shared) = (self.clock.clone(), Arc::clone(&self.shared));
            let attest = attest.clone();
            self.spawn(async move {
                let told = match (attest.asked.rule.by, &witness, &notary) {
                    (By::Reviews, Some(witness), _) => match witness.pulled(&attest.asked.commit).await {
                        Ok(Some(pulled)) => witness.tell(&clock, &attest, pulled).await,
                        Ok(None) => Ok((Evidence::Pushed, clock.now())),
                        Err(silence) => Err(silence),
                    },
                    (By::Signatures, _, Some(notary)) => {
                        let at = clock.now();
                        notary.tell(&attest, at).await.map(|evidence| (evidence, at)).map_err(Silence::from)
                    }
                    (By::Reviews, None, _) => {
                        Err(Silence::Odd("this installation names no Git host with reviews".to_owned()))
                    }
                    (By::Signatures | By::Nothing, ..) => {
                        Err(Silence::Odd("this installation names no list of allowed signers".to_owned()))
                    }
                };
                let incomplete = |silence: Silence| (Evidence::Incomplete(silence.to_string()), clock.now());
                let (evidence, at) = told.unwrap_or_else(incomplete);
                tracing::debug!(rollout = %key.0, path = %key.1.path, ?evidence, "asked who approved");
                let mut known = shared.known();
                known.attesting.remove(&key);
                known.tell([key.0.clone()].into());
                known.of(&key.0).proofs.insert(key.1, Testimony { evidence, at });
                drop(known);
                shared.woken.notify_one();
            });
        }
    }
}

impl Witness {
    /// The pull request that a commit came by to its branch.
    async fn pulled(&self, commit: &CommitId) -> Result<Option<Pulled>, Silence> {
        let mut pulled = self.host.lock().await.merged_as(commit).await?;
        for pause in PAUSES {
            if pulled.is_none() {
                sleep(Duration::from_secs(pause)).await;
                pulled = self.host.lock().await.merged_as(commit).await?;
            }
        }
        Ok(pulled)
    }

    /// How a decision came to its branch by that pull request, and since when that can change: who made a commit stays who did, however
    /// long it took to ask, but reviews and rights do not.
    async fn tell(&self, clock: &Clock, attest: &Attest, pulled: Pulled) -> Result<(Evidence, Time), Silence> {
        let Changed { merged, mut files } = self.store.changed(&attest.asked.commit).await?;
        // Git may take long for that, so the host is not held.
        let made = match &attest.version {
            Some(version) => made(&self.store, &self.main, version).await?,
            None => Vec::new(),
        };
        let mut host = self.host.lock().await;
        let (number, author) = (pulled.number, pulled.author.clone());
        let author = author.ok_or_else(|| gone(number))?;
        let commits = host.commits(number).await?;
        // Of a pull request that was opened again Gitea may list no commits, once it is merged.
        let head = match (merged, tip(&commits)) {
            (Some(merged), Some(listed)) if merged != listed => return Ok((Evidence::Pushed, clock.now())),
            (Some(head), _) | (None, Some(head)) => head,
            (None, None) => return Err(Silence::Odd(format!("pull request {number} has no one head"))),
        };
        // A commit that a host takes for the merge may bring something else than what was reviewed.
        if host.blob(&head, &attest.asked.path).await?.as_ref() != Some(&attest.asked.blob) {
            files.insert(attest.asked.path.clone(), None);
        }
        let own = host.ids().await?.user;
        let ours = author.id == own && is_asked(attest, &head);
        let makers = if ours { [Maker::Ourselves].into() } else { commits.iter().flat_map(makers).collect() };
        drop(host);
        let writers = self.writers(made).await?;
        let mut host = self.host.lock().await;
        let at = clock.now();
        let (reviews, mut machines) = host.reviews(number).await?;
        let merger = pulled.by.iter().map(|(user, _)| user);
        machines.extend(merger.filter(|_| pulled.being == Being::Machine).cloned());
        let spoke = reviews.iter().filter(|review| review.says != Says::Nothing).map(|review| review.by.clone());
        let users: BTreeSet<User> = spoke.chain(pulled.by.iter().map(|(user, _)| user.clone())).collect();
        let mut accounts = host.accounts(&users, &machines).await?;
        // Nobody speaks by our own account, whatever the host takes it for, and whatever team it is in.
        accounts.iter_mut().filter(|(user, _)| user.id == own).for_each(|(_, account)| account.being = Being::Machine);
        let (base, by, changes) = (pulled.base, pulled.by, files);
        let teams = match teams(&mut host, &attest.asked.rule, &reviews, &accounts).await {
            Err(error @ HostError::Refused { status: 403..=405, .. }) => {
                return Ok((Evidence::Unseen(error.to_string()), clock.now()));
            }
            told => told?,
        };
        let merged = Merged { number, base, head, author, by, makers, writers, changes, reviews, accounts, teams };
        Ok((Evidence::Merged(Box::new(merged)), at))
    }

    /// Who made a version, each with one of its commits. Git tells the addresses, the host whose they are, and from whose commits it made
    /// one that it has squashed or rebased. Others ask the host in between.
    async fn writers(&self, made: Vec<Made>) -> Result<BTreeMap<Maker, CommitId>, Silence> {
        let alone = made.iter().filter(|made| made.parents < 2);
        let alone: Vec<CommitId> = alone.map(|made| made.commit.clone()).collect();
        let mut people: BTreeMap<_, CommitId> = BTreeMap::new();
        for Made { commit, parents: _, by } in made {
            people.entry(by).or_insert(commit);
        }
        if people.len() > PEOPLE {
            return Err(Silence::Odd(format!("more than {PEOPLE} people made commits of this version")));
        }
        if alone.len() > COMMITS {
            return Err(Silence::Odd(format!("more than {COMMITS} commits made this version")));
        }
        let mut writers = BTreeMap::new();
        for commit in people.into_values() {
            let shown = self.host.lock().await.commit(&commit).await?;
            for maker in makers(&shown) {
                writers.entry(maker).or_insert_with(|| commit.clone());
            }
        }
        let mut seen = BTreeSet::new();
        for commit in alone {
            let remade = self.host.lock().await.remade(&commit, self.main.short()).await?;
            for opened in remade {
                if seen.insert(opened.number) {
                    for maker in self.hands(opened).await? {
                        writers.entry(maker).or_insert_with(|| commit.clone());
                    }
                }
            }
        }
        Ok(writers)
    }

    /// Who opened a pull request, and who made its commits.
    async fn hands(&self, Opened { number, author }: Opened) -> Result<BTreeSet<Maker>, Silence> {
        let author = author.ok_or_else(|| gone(number))?;
        let commits = self.host.lock().await.commits(number).await?;
        if commits.is_empty() {
            return Err(Silence::Odd(format!("the Git host lists no commits of pull request {number}")));
        }
        Ok(commits.iter().flat_map(makers).chain([Maker::User(author)]).collect())
    }
}

fn gone(number: u64) -> Silence {
    Silence::Odd(format!("who opened pull request {number} is gone"))
}

/// Whether a decision is what we have asked, to the letter, and what was merged is the very head that we have asked it by: then
/// it does not matter who made its commits. What somebody else has pushed to our branch has been asked by nobody.
fn is_asked(attest: &Attest, head: &CommitId) -> bool {
    let Some(Request { letters, head: asked }) = &attest.request else { return false };
    asked.as_ref() == Some(head) && letters.contains(&(attest.asked.path.clone(), attest.asked.blob.clone()))
}

/// The commits that made a version, as Git tells.
pub(super) async fn made(store: &Store, main: &RefName, version: &Version) -> Result<Vec<Made>, GitError> {
    match store.makers(&version.commit, &version.stable).await {
        // Main is fetched without its past.
        Err(GitError::Missing(_)) => {
            store.deepen(main).await?;
            store.makers(&version.commit, &version.stable).await
        }
        made => made,
    }
}

/// By which teams of the rule people are approvers. Nothing is asked about those whose word does not count in any case.
async fn teams(
    host: &mut Host,
    rule: &Rule,
    reviews: &[Review],
    accounts: &BTreeMap<User, Account>,
) -> Result<BTreeMap<User, Team>, HostError> {
    let speaks = |user: &User| rule.trust == Trust::Merges || reviews.iter().any(|review| review.by == *user);
    let may = |account: &Account| account.being == Being::Person && account.permission >= Permission::Write;
    let people = accounts.iter().filter(|(user, account)| may(account) && speaks(user));
    let people: BTreeSet<User> = people.map(|(user, _)| user.clone()).collect();
    host.teams(rule, people).await
}

/// The commit that no other one is on top of, if it is one.
fn tip(commits: &[Shown]) -> Option<CommitId> {
    let below: BTreeSet<&CommitId> = commits.iter().flat_map(|shown| &shown.parents).collect();
    let mut tips = commits.iter().filter(|shown| !below.contains(&shown.commit));
    match (tips.next(), tips.next()) {
        (Some(tip), None) => Some(tip.commit.clone()),
        _ => None,
    }
}

fn makers(shown: &Shown) -> BTreeSet<Maker> {
    let maker = |by: &Result<User, String>| match by {
        Ok(user) => Maker::User(user.clone()),
        Err(address) => Maker::Unknown(address.clone()),
    };
    shown.by.iter().map(maker).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forge::branch::approval;
    use crate::gate::proof::Asked;
    use crate::manifest::oid;
    use crate::record::fixture;

    #[test]
    fn attack_74_what_is_asked_to_the_letter_is_asked_by_one_head_alone() {
        let letter = |through: &str| {
            let rollout = "shop/a".parse().unwrap();
            let (path, text) = approval(&rollout, &fixture::run(7), &through.parse().unwrap(), 0);
            (path, oid::blob(text.as_bytes()))
        };
        let rule = Rule { approvers: ["ana".to_owned()].into(), approvals: 1, trust: Trust::Reviews, by: By::Reviews };
        let (path, blob) = letter("promotion");
        let asked = Asked { path, blob, commit: fixture::commit(3), rule };
        let [ours, other] = [fixture::commit(1), fixture::commit(2)];
        let is_asked = |through: &str, head: Option<&CommitId>| {
            let request = Some(Request { letters: [letter(through)].into(), head: head.cloned() });
            is_asked(&Attest { asked: asked.clone(), request, version: None }, &ours)
        };
        assert!(is_asked("promotion", Some(&ours)));
        assert!(!is_asked("half", Some(&ours)), "another word");
        assert!(!is_asked("promotion", Some(&other)), "somebody has pushed it to our branch");
        assert!(!is_asked("promotion", None), "nobody was asked");
    }
}
