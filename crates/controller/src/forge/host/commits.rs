//! Who made commits, as the host has their addresses' accounts, and the pull requests that it made commits of.

use super::reviews::{RawBase, RawUser};
use super::{CallPurpose, Host, HostError};
use crate::manifest::ids::CommitId;
use crate::manifest::installation::{HostKind, PullHost};
use crate::people::user::User;
use crate::record::text::{coauthors, plain};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// A commit of a pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// Its id.
    pub commit: CommitId,
    /// Those before it.
    pub parents: BTreeSet<CommitId>,
    /// The accounts of its author and its committer; of an address without one, that. Of those whom its message names as having made it with
    /// them, the accounts alone: an address that nobody has is nobody's there, or who names a tool had no proof for ever.
    pub by: BTreeSet<Result<User, String>>,
}

/// A pull request, and who opened it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// Its number.
    pub number: u64,
    /// Who opened it; none if that account is gone.
    pub author: Option<User>,
}

/// Of so many commits it is kept who made them, and by which pull requests they came.
const KEPT: usize = 10_000;

/// What a host has told of commits, and stays so. In memory alone: where the repository has moved to another host a number means
/// somebody else.
#[derive(Default)]
pub(super) struct Told {
    /// Of which pull requests they were made.
    remade: BTreeMap<CommitId, Vec<Opened>>,
    /// Who made them, where all of them have accounts: an address may get one later.
    made: BTreeMap<CommitId, Shown>,
    /// Those of merged pull requests.
    had: BTreeMap<u64, Vec<CommitId>>,
}

impl Told {
    fn made(&mut self, shown: &Shown) {
        if self.made.len() >= KEPT {
            self.made.clear();
            self.had.clear();
        }
        if shown.by.iter().all(Result::is_ok) {
            self.made.insert(shown.commit.clone(), shown.clone());
        }
    }
}

/// So many commits of a pull request GitHub lists at most, without a word about the others.
const MOST_COMMITS: usize = 250;

/// That a list of commits is none that may have been cut.
pub(super) fn few(commits: usize, number: u64) -> Result<(), HostError> {
    if commits < MOST_COMMITS {
        return Ok(());
    }
    let why = format!("it has {MOST_COMMITS} commits or more, and a host may leave out the others");
    Err(HostError::Unusable { doing: format!("list the commits of pull request {number}"), why })
}

#[derive(Deserialize)]
struct RawCommit {
    sha: CommitId,
    commit: RawPeople,
    author: Option<RawUser>,
    committer: Option<RawUser>,
    parents: Vec<RawSha>,
}

#[derive(Deserialize)]
struct RawSha {
    sha: CommitId,
}

#[derive(Deserialize)]
struct RawPeople {
    author: Option<RawPerson>,
    committer: Option<RawPerson>,
    message: Option<String>,
}

#[derive(Deserialize)]
struct RawPerson {
    email: Option<String>,
}

impl RawCommit {
    fn read(self, site: &PullHost) -> Shown {
        let RawPeople { author, committer, message } = self.commit;
        let who = |user: Option<RawUser>, person: Option<RawPerson>| {
            let address = || person.and_then(|person| person.email).unwrap_or_else(|| "nobody".to_owned());
            user.and_then(|user| user.read()).ok_or_else(|| plain(&address()))
        };
        let mut by = BTreeSet::from([who(self.author, author), who(self.committer, committer)]);
        let message = message.unwrap_or_default();
        by.extend(coauthors(&message).filter_map(|(_, address)| site.owner_of(&address)).map(Ok));
        Shown { commit: self.sha, parents: self.parents.into_iter().map(|parent| parent.sha).collect(), by }
    }
}

impl Host {
    /// The merged pull requests that the host made this commit of, on whatever branch: of all their commits, squashed, or of one of them,
    /// rebased. Those that brought it as it was are none of them, but for what was squashed to `main`: that is not told apart, and counts.
    /// Of several rebased commits Gitea and Forgejo tell it of the last one alone.
    ///
    /// # Errors
    /// As [`HostError`] says.
    pub async fn remade(&mut self, commit: &CommitId, main: &str) -> Result<Vec<Opened>, HostError> {
        if let Some(known) = self.told.remade.get(commit) {
            return Ok(known.clone());
        }
        let told = match self.site.kind {
            HostKind::Gitea | HostKind::Github => self.pulls_remade(commit, main).await?,
            HostKind::Gitlab => self.requests_squashed(commit).await?,
        };
        // A host may learn of a merge some seconds after it: where it tells of none it is asked again.
        let Some(found) = told else { return Ok(Vec::new()) };
        if self.told.remade.len() >= KEPT {
            self.told.remade.clear();
        }
        self.told.remade.insert(commit.clone(), found.clone());
        Ok(found)
    }

    /// See [`Self::remade`]; none if the host tells of no merged pull request at all.
    async fn pulls_remade(&mut self, commit: &CommitId, main: &str) -> Result<Option<Vec<Opened>>, HostError> {
        let repository = self.ids().await?.repository;
        let mut merged = self.pulls_of(commit).await?;
        // A fork may be told of those of the repository that it comes from: their numbers are others.
        let is_here = |base: &RawBase| base.repo.as_ref().is_none_or(|repo| repo.id == repository);
        merged.retain(|pull| pull.merged_at.is_some() && is_here(&pull.base));
        let mut remade = Vec::new();
        for pull in &merged {
            let is_it = match &pull.merge_commit_sha {
                Some(became) if became == commit => true,
                None => false,
                Some(_) if pull.base.name != main && self.brought(pull.number, commit).await? => false,
                // What became a merge brought its commits as they were.
                Some(became) => self.commit(became).await?.parents.len() < 2,
            };
            if is_it {
                remade.push(Opened { number: pull.number, author: pull.user.as_ref().and_then(RawUser::read) });
            }
        }
        Ok((!merged.is_empty()).then_some(remade))
    }

    /// Whether a merged pull request had that commit itself. What is not in a list that may have been cut counts as in it: GitHub rebases
    /// no more than 100 commits, so that all of those were squashed to one.
    async fn brought(&mut self, number: u64, commit: &CommitId) -> Result<bool, HostError> {
        let all: Vec<RawCommit> = self.all(&format!("pulls/{number}/commits")).await?;
        Ok(all.len() >= MOST_COMMITS || all.iter().any(|one| one.sha == *commit))
    }

    /// All commits of a pull request.
    ///
    /// # Errors
    /// As [`HostError`] says.
    pub async fn commits(&mut self, number: u64) -> Result<Vec<Shown>, HostError> {
        if self.site.kind == HostKind::Gitlab {
            return self.shown(number).await;
        }
        let raw: Vec<RawCommit> = self.all(&format!("pulls/{number}/commits")).await?;
        few(raw.len(), number)?;
        Ok(raw.into_iter().map(|commit| commit.read(&self.site)).collect())
    }

    /// All commits of a merged pull request, which gets no more. Where all who made them have accounts it is asked once.
    ///
    /// # Errors
    /// As [`HostError`] says.
    pub async fn had(&mut self, number: u64) -> Result<Vec<Shown>, HostError> {
        let Told { remade: _, made, had } = &self.told;
        let known = had.get(&number).and_then(|all| all.iter().map(|commit| made.get(commit).cloned()).collect());
        if let Some(known) = known {
            return Ok(known);
        }
        let commits = self.commits(number).await?;
        commits.iter().for_each(|shown| self.told.made(shown));
        let is_known = |shown: &Shown| self.told.made.contains_key(&shown.commit);
        if !commits.is_empty() && commits.iter().all(is_known) {
            self.told.had.insert(number, commits.iter().map(|shown| shown.commit.clone()).collect());
        }
        Ok(commits)
    }

    /// One commit: asked once, where all who made it have accounts.
    ///
    /// # Errors
    /// As [`HostError`] says.
    pub async fn commit(&mut self, commit: &CommitId) -> Result<Shown, HostError> {
        if let Some(known) = self.told.made.get(commit) {
            return Ok(known.clone());
        }
        let shown = self.told_of(commit).await?;
        self.told.made(&shown);
        Ok(shown)
    }

    async fn told_of(&mut self, commit: &CommitId) -> Result<Shown, HostError> {
        let path = match self.site.kind {
            HostKind::Gitea => format!("git/commits/{commit}?stat=false&verification=false&files=false"),
            HostKind::Github => format!("commits/{commit}"),
            HostKind::Gitlab => return self.showing(commit).await,
        };
        let commit: RawCommit = self.get(CallPurpose::Review, self.in_repository(&path)).await?;
        Ok(commit.read(&self.site))
    }
}
