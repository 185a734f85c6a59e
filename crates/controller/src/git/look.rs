//! Small looks into a commit's tree: one file, or which directories there are. What they cost does not grow with the rest.

use super::remote::RemoteLimits;
use super::{GitError, Store, tree};
use crate::manifest::files::RepoPath;
use crate::manifest::ids::CommitId;
use git2::{FileMode, Repository, Tree};
use std::collections::BTreeMap;
use std::sync::Arc;

mod directory_index;

pub use directory_index::{DirectoryIndex, Leaf};

impl Store {
    /// The content of one regular file; `None` if there is no such file.
    ///
    /// # Errors
    /// `Missing` when the commit is not there, `Limit` when the file is larger than a blob may be.
    pub async fn file(&self, commit: &CommitId, path: &RepoPath) -> Result<Option<Arc<[u8]>>, GitError> {
        let (commit, path) = (commit.clone(), path.clone());
        self.on_cache(move |inner, repository| {
            let root = tree::root(repository, &commit)?;
            let plain = [FileMode::Blob, FileMode::BlobExecutable].map(i32::from);
            let Some(entry) = tree::entry(&root, &path)?.filter(|entry| plain.contains(&entry.filemode())) else {
                return Ok(None);
            };
            let failed = |error| GitError::local(&format!("read {path}"), error);
            let odb = repository.odb().map_err(failed)?;
            let (size, _) = odb.read_header(entry.id()).map_err(failed)?;
            let limit = inner.config.limits.blob_bytes;
            if u64::try_from(size).unwrap_or(u64::MAX) > limit {
                return Err(GitError::Limit { what: format!("the size of {path}"), limit: format!("{limit} bytes") });
            }
            let object = odb.read(entry.id()).map_err(failed)?;
            Ok(Some(object.data().into()))
        })
        .await
    }

    /// The directories that lie `depth` levels below `dir`, with the ids of their trees: equal ids mean equal content.
    /// Empty if there is no such directory.
    ///
    /// # Errors
    /// `Missing` when the commit is not there.
    pub async fn directories(
        &self,
        commit: &CommitId,
        dir: &RepoPath,
        depth: usize,
    ) -> Result<BTreeMap<RepoPath, String>, GitError> {
        self.directories_within(commit, dir, depth, |_| usize::MAX).await
    }

    /// The same of a branch of others, who may write there what they like.
    ///
    /// # Errors
    /// `Missing` when the commit is not there, `Limit` when there are more names than are looked at.
    pub async fn directories_of_others(
        &self,
        commit: &CommitId,
        dir: &RepoPath,
        depth: usize,
    ) -> Result<BTreeMap<RepoPath, String>, GitError> {
        self.directories_within(commit, dir, depth, |limits| limits.entries).await
    }

    async fn directories_within(
        &self,
        commit: &CommitId,
        dir: &RepoPath,
        depth: usize,
        names: fn(&RemoteLimits) -> usize,
    ) -> Result<BTreeMap<RepoPath, String>, GitError> {
        let (commit, dir) = (commit.clone(), dir.clone());
        self.on_cache(move |inner, repository| {
            let root = tree::root(repository, &commit)?;
            let mut found = BTreeMap::new();
            let mut names = Names { seen: 0, most: names(&inner.config.limits) };
            if let Some(top) = tree::directory(repository, &root, &dir)? {
                descend(repository, &top, (&dir, depth), &mut names, &mut found)?;
            }
            Ok(found)
        })
        .await
    }
}

/// How many names were seen, and may be.
struct Names {
    seen: usize,
    most: usize,
}

fn descend(
    repository: &Repository,
    tree: &Tree<'_>,
    (at, depth): (&RepoPath, usize),
    names: &mut Names,
    found: &mut BTreeMap<RepoPath, String>,
) -> Result<(), GitError> {
    names.seen = names.seen.saturating_add(tree.len());
    if names.seen > names.most {
        return Err(tree::limit(&format!("the number of names below {at}"), names.most));
    }
    for entry in tree.iter().filter(|entry| entry.filemode() == i32::from(FileMode::Tree)) {
        // What no path can name is none of ours.
        let Some(path) = entry.name().ok().and_then(|name| format!("{at}/{name}").parse::<RepoPath>().ok()) else {
            continue;
        };
        if depth <= 1 {
            found.insert(path, entry.id().to_string());
        } else {
            let below = repository.find_tree(entry.id());
            let below = below.map_err(|error| GitError::local(&format!("read the directory {path}"), error))?;
            descend(repository, &below, (&path, depth - 1), names, found)?;
        }
    }
    Ok(())
}
