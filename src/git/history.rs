//! Questions about the past: what descends from what, who brought a file to a branch, the latest commits.

use super::commit::{Person, commit_id};
use super::{GitError, Store, oid, tree};
use crate::manifest::files::RepoPath;
use crate::manifest::ids::CommitId;
use crate::record::text::plain;
use chrono::{DateTime, Utc};
use git2::{Commit, Oid, Repository, Signature};
use std::collections::{BTreeMap, BTreeSet};

/// How an older commit stands to a newer one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ancestry {
    /// They are the same.
    Same,
    /// The newer one descends from the older one.
    Ancestor,
    /// It does not.
    Not,
    /// The part of the past that is in the cache does not tell.
    Unknown,
}

/// How a file came to a branch. The people are who the commit claims them to be; nothing of it is proven.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Brought {
    /// The commit of the branch's own line that brought it.
    pub commit: CommitId,
    /// The head that it merged, if it is a merge of one.
    pub merged: Option<CommitId>,
    /// Its author: of a merge made on a Git host, the person who merged.
    pub author: Person,
    /// Its committer: of a merge made on a Git host, often the host itself.
    pub committer: Person,
}

/// One commit of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logged {
    /// Its id.
    pub commit: CommitId,
    /// The first line of its message, escaped.
    pub subject: String,
    /// When it was committed.
    pub time: DateTime<Utc>,
}

impl Store {
    /// Whether `new` descends from `old`. `old` need not be in the cache.
    ///
    /// # Errors
    /// `Missing` when `new` is not in the cache.
    pub async fn is_ancestor(&self, old: &CommitId, new: &CommitId) -> Result<Ancestry, GitError> {
        if old == new {
            return Ok(Ancestry::Same);
        }
        Ok(self.strangers(&[old.clone()].into(), new).await?.remove(old).unwrap_or(Ancestry::Ancestor))
    }

    /// Those of `olds` that `new` is not and does not descend from, `Not` or `Unknown`. One walk answers for all.
    ///
    /// # Errors
    /// `Missing` when `new` is not in the cache.
    pub async fn strangers(
        &self,
        olds: &BTreeSet<CommitId>,
        new: &CommitId,
    ) -> Result<BTreeMap<CommitId, Ancestry>, GitError> {
        let (olds, new) = (olds.clone(), new.clone());
        self.on_cache(move |_, repository| {
            let tip = repository.find_commit(oid(new.as_str())).map_err(|error| GitError::commit(&new, error))?;
            let failed = |error| GitError::local(&format!("walk from {new}"), error);
            let cut = boundary(repository)?;
            let mut sought: BTreeSet<Oid> = olds.iter().map(|old| oid(old.as_str())).collect();
            let mut met = Vec::new();
            let mut walk = repository.revwalk().map_err(failed)?;
            walk.push(tip.id()).map_err(failed)?;
            for id in walk {
                if sought.is_empty() {
                    break;
                }
                let id = id.map_err(failed)?;
                sought.remove(&id);
                met.extend(cut.contains(&id).then_some(id));
            }
            let judged = sought.into_iter().map(|old| Ok((commit_id(old), judge(repository, old, tip.id(), &met)?)));
            judged.collect::<Result<_, git2::Error>>().map_err(failed)
        })
        .await
    }

    /// Who brought `path`, as it is at `tip`, to the branch that ends there: on the line of first parents, the commit with
    /// which it appeared (as `git log --first-parent -m -1 -- PATH` tells). Where the file came by a merge, that is the
    /// merge and not the commit that it merged; a fast-forward leaves no commit of its own, so there it is that commit.
    /// `None` when there is no such file.
    ///
    /// # Errors
    /// `Missing` when the tip, or the past that would tell, is not in the cache.
    pub async fn brought(&self, tip: &CommitId, path: &RepoPath) -> Result<Option<Brought>, GitError> {
        let (tip, path) = (tip.clone(), path.clone());
        self.on_cache(move |inner, repository| {
            let mut commit =
                repository.find_commit(oid(tip.as_str())).map_err(|error| GitError::commit(&tip, error))?;
            let Some(content) = at(repository, &commit, &path)? else { return Ok(None) };
            let cut = boundary(repository)?;
            for _ in 0..inner.config.limits.entries {
                if cut.contains(&commit.id()) {
                    return Err(GitError::Missing(format!("the past of {path} before {} in the cache", commit.id())));
                }
                match commit.parents().next() {
                    Some(parent) if at(repository, &parent, &path)? == Some(content) => commit = parent,
                    Some(_) | None => return Ok(Some(brought(&commit))),
                }
            }
            let what = format!("the number of commits since {path} came");
            Err(GitError::Limit { what, limit: inner.config.limits.entries.to_string() })
        })
        .await
    }

    /// The latest commits of the branch that ends at `tip`, newest first, `limit` at most.
    ///
    /// # Errors
    /// `Missing` when the tip is not in the cache.
    pub async fn history(&self, tip: &CommitId, limit: usize) -> Result<Vec<Logged>, GitError> {
        let tip = tip.clone();
        self.on_cache(move |_, repository| {
            let failed = |error| GitError::local(&format!("walk from {tip}"), error);
            let newest = repository.find_commit(oid(tip.as_str())).map_err(|error| GitError::commit(&tip, error))?;
            let mut walk = repository.revwalk().map_err(failed)?;
            walk.set_sorting(git2::Sort::TOPOLOGICAL | git2::Sort::TIME).map_err(failed)?;
            walk.push(newest.id()).map_err(failed)?;
            let log = |id: Result<Oid, git2::Error>| {
                let commit = id.and_then(|id| repository.find_commit(id)).map_err(failed)?;
                Ok(Logged { commit: commit_id(commit.id()), subject: subject(&commit), time: time(&commit) })
            };
            walk.take(limit).map(log).collect()
        })
        .await
    }
}

/// How `old`, which a walk from `new` did not come across, stands to it. `met` are the commits at which the walk ended
/// because their parents were not fetched.
///
/// No commit lies behind its own descendant: whatever is behind `new`, or behind a commit that is `old` or an ancestor of it,
/// is not `old`.
fn judge(repository: &Repository, old: Oid, new: Oid, met: &[Oid]) -> Result<Ancestry, git2::Error> {
    let known = repository.find_commit(old).is_ok();
    let is_behind = |other: Oid| -> Result<bool, git2::Error> {
        Ok(known && (other == old || repository.graph_descendant_of(old, other)?))
    };
    if is_behind(new)? {
        return Ok(Ancestry::Not);
    }
    for end in met {
        if !is_behind(*end)? {
            return Ok(Ancestry::Unknown);
        }
    }
    Ok(Ancestry::Not)
}

/// The commits whose parents were not fetched.
pub(super) fn boundary(repository: &Repository) -> Result<BTreeSet<Oid>, GitError> {
    match std::fs::read_to_string(repository.path().join("shallow")) {
        Ok(text) => Ok(text.lines().filter_map(|line| Oid::from_str(line).ok()).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(BTreeSet::new()),
        Err(error) => Err(GitError::Cache { doing: "read the shallow commits".to_owned(), source: Box::new(error) }),
    }
}

/// The id of what a commit has at a path.
pub(super) fn at(repository: &Repository, commit: &Commit<'_>, path: &RepoPath) -> Result<Option<Oid>, GitError> {
    let root = tree::root(repository, &commit_id(commit.id()))?;
    Ok(tree::entry(&root, path)?.map(|entry| entry.id()))
}

fn brought(commit: &Commit<'_>) -> Brought {
    let merged = (commit.parent_count() == 2).then(|| commit.parent_id(1).ok()).flatten().map(commit_id);
    let (author, committer) = (person(&commit.author()), person(&commit.committer()));
    Brought { commit: commit_id(commit.id()), merged, author, committer }
}

/// The first line of a commit's message, escaped.
pub(super) fn subject(commit: &Commit<'_>) -> String {
    let message = String::from_utf8_lossy(commit.message_bytes());
    plain(message.lines().next().unwrap_or_default())
}

pub(super) fn person(who: &Signature<'_>) -> Person {
    let text = |bytes: &[u8]| plain(&String::from_utf8_lossy(bytes));
    Person { name: text(who.name_bytes()), email: text(who.email_bytes()) }
}

/// When a commit was committed; a time that no calendar has counts as 1970.
pub(super) fn time(commit: &Commit<'_>) -> DateTime<Utc> {
    DateTime::from_timestamp(commit.time().seconds(), 0).unwrap_or_default()
}
