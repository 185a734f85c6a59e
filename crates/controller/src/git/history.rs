//! Questions about the past: what descends from what, who brought a file to a branch, the latest commits.

use super::commit::{Person, commit_id};
use super::{GitError, Store, oid, tree};
use crate::manifest::files::RepoPath;
use crate::manifest::ids::CommitId;
use crate::record::state::Time;
use crate::record::text::plain;
use git2::{Commit, ObjectType, Oid, Repository, Signature, Tree, TreeEntry};
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
    pub time: Time,
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
        let (olds, tip) = (olds.clone(), new.clone());
        let found = self.on_cache(move |_, repository| walked(repository, &olds, &tip)).await?;
        let unknown = found.iter().filter(|(_, ancestry)| **ancestry == Ancestry::Unknown);
        let (unknown, new): (BTreeSet<_>, _) = (unknown.map(|(old, _)| old.clone()).collect(), new.clone());
        let Some(past) = self.inner.past.get().filter(|_| !unknown.is_empty()) else { return Ok(found) };
        // What cannot be told there either stays unknown.
        let told = past.on_cache(move |_, repository| walked(repository, &unknown, &new).map(|told| (unknown, told)));
        let Ok((unknown, told)) = told.await else { return Ok(found) };
        Ok(found.into_iter().filter(|(old, _)| !unknown.contains(old)).chain(told).collect())
    }

    /// Who brought each of these paths, as it is at `tip`, to the branch that ends there: on the line of first parents, the commit with
    /// which it appeared (as `git log --first-parent -m -1 -- PATH` tells, but that another mode alone is nothing new). Where a file came
    /// by a merge, that is the merge and not the commit that it merged; a fast-forward leaves no commit of its own, so there it is that
    /// commit. One walk answers for all. Nothing is told of what is not there, nor of what came before the part of the past that is in
    /// the cache, before something that cannot be read, or more commits ago than a tree may have entries.
    ///
    /// # Errors
    /// `Missing` when the tip is not in the cache; never for what somebody has pushed there.
    pub async fn brought(
        &self,
        tip: &CommitId,
        paths: BTreeSet<RepoPath>,
    ) -> Result<BTreeMap<RepoPath, Brought>, GitError> {
        let tip = tip.clone();
        self.on_cache(move |inner, repository| {
            let mut line = Line { repository, sought: BTreeMap::new(), found: BTreeMap::new() };
            let Some(root) = readable(tree::root(repository, &tip))? else { return Ok(line.found) };
            for path in paths {
                let there = readable(tree::entry(&root, &path))?.flatten();
                line.sought.extend(there.map(|_| (path.to_string(), path)));
            }
            let (cut, mut next) = (boundary(repository)?, Some(oid(tip.as_str())));
            for _ in 0..inner.config.limits.entries {
                let Some(id) = next.filter(|id| !line.sought.is_empty() && !cut.contains(id)) else { break };
                next = readable(line.pass(id))?.flatten();
            }
            Ok(line.found)
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

/// [`Store::strangers`] by what one cache has.
fn walked(
    repository: &Repository,
    olds: &BTreeSet<CommitId>,
    new: &CommitId,
) -> Result<BTreeMap<CommitId, Ancestry>, GitError> {
    let tip = repository.find_commit(oid(new.as_str())).map_err(|error| GitError::commit(new, error))?;
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
}

/// The commits whose parents were not fetched.
pub(super) fn boundary(repository: &Repository) -> Result<BTreeSet<Oid>, GitError> {
    match std::fs::read_to_string(repository.path().join("shallow")) {
        Ok(text) => Ok(text.lines().filter_map(|line| Oid::from_str(line).ok()).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(BTreeSet::new()),
        Err(error) => Err(GitError::Cache { doing: "read the shallow commits".to_owned(), source: Box::new(error) }),
    }
}

/// None for what somebody has pushed that cannot be read.
fn readable<T>(read: Result<T, GitError>) -> Result<Option<T>, GitError> {
    match read {
        Err(error) if error.is_of_content() => Ok(None),
        read => read.map(Some),
    }
}

/// The line of first parents of a branch, on which it is looked for what brought some paths.
struct Line<'r> {
    repository: &'r Repository,
    sought: BTreeMap<String, RepoPath>,
    found: BTreeMap<RepoPath, Brought>,
}

impl Line<'_> {
    /// Takes note of what a commit brought; where the line goes on.
    fn pass(&mut self, id: Oid) -> Result<Option<Oid>, GitError> {
        let failed = |error| GitError::local(&format!("read commit {id}, and the one before it"), error);
        let commit = self.repository.find_commit(id).map_err(failed)?;
        let parent = (commit.parent_count() > 0).then(|| commit.parent(0)).transpose().map_err(failed)?;
        let before = parent.as_ref().map(Commit::tree).transpose().map_err(failed)?;
        self.compare(&commit, before.as_ref(), &commit.tree().map_err(failed)?, "")?;
        Ok(parent.map(|parent| parent.id()))
    }

    /// Takes note of what a directory has that is another one `before`, or was not there. What is the same, or not sought, is not looked
    /// into: libgit2's own comparison goes through all of it. What lies in one that cannot be read is not sought any more.
    fn compare(
        &mut self,
        commit: &Commit<'_>,
        before: Option<&Tree<'_>>,
        after: &Tree<'_>,
        at: &str,
    ) -> Result<(), GitError> {
        let is_tree = |entry: &TreeEntry<'_>| entry.kind() == Some(ObjectType::Tree);
        for entry in after {
            let known = before.and_then(|tree| tree.get_name_bytes(entry.name_bytes()));
            if known.as_ref().is_some_and(|known| known.id() == entry.id()) {
                continue;
            }
            // What no path can name is not sought.
            let Some(path) = tree::below(at, &entry) else { continue };
            if let Some(path) = self.sought.remove(path.as_str()) {
                self.found.insert(path, brought(commit));
            }
            let inside = format!("{path}/");
            let below = self.sought.range(inside.clone()..).next();
            if !is_tree(&entry) || below.is_none_or(|(sought, _)| !sought.starts_with(&inside)) {
                continue;
            }
            let open = |entry: &TreeEntry<'_>| {
                let tree = self.repository.find_tree(entry.id());
                readable(tree.map_err(|error| GitError::local(&format!("read the directory {path}"), error)))
            };
            let known = known.as_ref().filter(|known| is_tree(known)).map(open).transpose()?;
            match (open(&entry)?, known) {
                (Some(tree), None) => self.compare(commit, None, &tree, path.as_str())?,
                (Some(tree), Some(Some(known))) => self.compare(commit, Some(&known), &tree, path.as_str())?,
                (None, _) | (_, Some(None)) => self.sought.retain(|sought, _| !sought.starts_with(&inside)),
            }
        }
        Ok(())
    }
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
pub(super) fn time(commit: &Commit<'_>) -> Time {
    Time::from_timestamp(commit.time().seconds(), 0).unwrap_or(Time::UNIX_EPOCH)
}
