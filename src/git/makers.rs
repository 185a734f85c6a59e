//! Who made a version, and what a commit changed: questions about the past that proofs of approvals ask.

use super::commit::{Person, commit_id};
use super::history::{at, boundary, person};
use super::{GitError, Store, oid};
use crate::manifest::files::RepoPath;
use crate::manifest::ids::{BlobId, CommitId};
use git2::{Commit, Delta, Oid, Repository};
use std::collections::{BTreeMap, BTreeSet};

/// What one commit did to its branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The head that it merged, if it is a merge of one.
    pub merged: Option<CommitId>,
    /// What it changed against its first parent; none for what it took away.
    pub files: BTreeMap<RepoPath, Option<BlobId>>,
}

/// A commit and who made it; they are who the commit claims them to be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Made {
    /// The commit.
    pub commit: CommitId,
    /// Its author and its committer.
    pub by: BTreeSet<Person>,
}

impl Store {
    /// What a commit changed against its first parent.
    ///
    /// # Errors
    /// `Missing` when it, or its parent, is not in the cache. `BadTree` for a path that is none.
    pub async fn changed(&self, id: &CommitId) -> Result<Changed, GitError> {
        let id = id.clone();
        self.on_cache(move |_, repository| {
            let failed = |error| GitError::local(&format!("compare commit {id} with its parent"), error);
            let commit = repository.find_commit(oid(id.as_str())).map_err(|error| GitError::commit(&id, error))?;
            if boundary(repository)?.contains(&commit.id()) {
                return Err(GitError::Missing(format!("the parents of commit {id} in the cache")));
            }
            let before = commit.parents().next().map(|parent| parent.tree()).transpose().map_err(failed)?;
            let after = commit.tree().map_err(failed)?;
            let diff = repository.diff_tree_to_tree(before.as_ref(), Some(&after), None).map_err(failed)?;
            let mut files = BTreeMap::new();
            for delta in diff.deltas() {
                let gone = delta.status() == Delta::Deleted;
                let side = if gone { delta.old_file() } else { delta.new_file() };
                let shown = String::from_utf8_lossy(side.path_bytes().unwrap_or_default()).into_owned();
                let path = shown.parse().map_err(|_| GitError::BadTree { path: shown, why: "it is no path" })?;
                files.insert(path, (!gone).then(|| blob_id(side.id())));
            }
            let merged = (commit.parent_count() == 2).then(|| commit.parent_id(1)).transpose().map_err(failed)?;
            Ok(Changed { merged: merged.map(commit_id), files })
        })
        .await
    }

    /// The commits behind `tip`, and it, that made what it has at these paths, back to where all of them were as `before` has
    /// it (none: nothing). A merge that only took over what one side had made nothing.
    ///
    /// # Errors
    /// `Missing` when the tip, or a part of the past that would tell, is not in the cache; `Limit` when it is too long.
    pub async fn makers(
        &self,
        tip: &CommitId,
        before: &BTreeMap<RepoPath, Option<BlobId>>,
    ) -> Result<Vec<Made>, GitError> {
        let (tip, before) = (tip.clone(), before.clone());
        self.on_cache(move |inner, repository| makers(repository, inner.config.limits.entries, &tip, &before)).await
    }
}

/// See [`Store::makers`].
pub(super) fn makers(
    repository: &Repository,
    limit: usize,
    tip: &CommitId,
    before: &BTreeMap<RepoPath, Option<BlobId>>,
) -> Result<Vec<Made>, GitError> {
    let cut = boundary(repository)?;
    let end: Vec<Option<Oid>> = before.values().map(|blob| blob.as_ref().map(|blob| oid(blob.as_str()))).collect();
    let state = |commit: &Commit<'_>| -> Result<Vec<Option<Oid>>, GitError> {
        before.keys().map(|path| at(repository, commit, path)).collect()
    };
    let (mut made, mut seen) = (Vec::new(), BTreeSet::new());
    let mut left = vec![find(repository, oid(tip.as_str()))?];
    while let Some(commit) = left.pop() {
        if !seen.insert(commit.id()) {
            continue;
        }
        if seen.len() > limit {
            let what = "the number of commits since the version was another".to_owned();
            return Err(GitError::Limit { what, limit: limit.to_string() });
        }
        let now = state(&commit)?;
        let nothing = commit.parent_count() == 0 && now.iter().all(Option::is_none);
        if now == end || nothing {
            continue;
        }
        if cut.contains(&commit.id()) {
            return Err(GitError::Missing(format!("the past before {} in the cache", commit.id())));
        }
        let parents: Vec<Commit<'_>> = commit.parent_ids().map(|id| find(repository, id)).collect::<Result<_, _>>()?;
        let mut same = None;
        for (n, parent) in parents.iter().enumerate() {
            if same.is_none() && state(parent)? == now {
                same = Some(n);
            }
        }
        match same {
            Some(n) => left.extend(parents.into_iter().nth(n)),
            None => {
                let by = [person(&commit.author()), person(&commit.committer())].into();
                made.push(Made { commit: commit_id(commit.id()), by });
                left.extend(parents);
            }
        }
    }
    made.sort();
    Ok(made)
}

fn find(repository: &Repository, id: Oid) -> Result<Commit<'_>, GitError> {
    repository.find_commit(id).map_err(|error| GitError::commit(&commit_id(id), error))
}

fn blob_id(id: Oid) -> BlobId {
    id.to_string().parse().expect("40 hex digits, because libgit2 was built for SHA-1")
}
