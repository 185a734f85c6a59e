//! What lies in each directory of a branch that holds one for each rollout. Names, ids and sizes alone are looked at, and each directory by
//! itself: what somebody has pushed into one says nothing of the others.

use crate::git::tree::{self, limit};
use crate::git::{GitError, RemoteLimits, Store};
use crate::manifest::files::RepoPath;
use crate::manifest::ids::{BlobId, CommitId};
use git2::{FileMode, Odb, Oid, Repository, Tree};
use std::collections::BTreeMap;

/// How many levels below the root they lie: `<namespace>/<name>`.
const DEPTH: usize = 2;
/// One directory may have a fourth of all entries, and of all bytes.
const SHARE: usize = 4;
/// What Git calls an error too.
const TWICE: &str = "the name comes twice";

/// What lies at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaf {
    /// Its id: of a file the id of its content.
    pub id: BlobId,
    /// What it is, if that is no file that can be read.
    pub odd: Option<&'static str>,
}

/// What lies directly in a directory.
pub type DirectoryIndex = BTreeMap<RepoPath, Leaf>;

impl Store {
    /// What lies directly in each directory two levels below the root. Of one that cannot be read, or of one above them (the name of
    /// the root is empty), why.
    ///
    /// # Errors
    /// `Missing` when the commit is not there; never for what somebody has pushed there.
    pub async fn shelves(
        &self,
        commit: &CommitId,
    ) -> Result<BTreeMap<String, Result<DirectoryIndex, GitError>>, GitError> {
        let commit = commit.clone();
        self.on_cache(move |inner, repository| {
            let mut walk = Walk::new(repository, &inner.config.limits)?;
            walk.open(tree::root(repository, &commit), "", DEPTH)?;
            Ok(walk.found)
        })
        .await
    }

    /// The same of one directory; `None` if there is none.
    ///
    /// # Errors
    /// As [`Self::shelves`]; also why it cannot be read.
    pub async fn directory_index(&self, commit: &CommitId, dir: &RepoPath) -> Result<Option<DirectoryIndex>, GitError> {
        let (commit, dir) = (commit.clone(), dir.clone());
        self.on_cache(move |inner, repository| {
            let root = tree::root(repository, &commit)?;
            let Some(found) = tree::directory(repository, &root, &dir)? else { return Ok(None) };
            Walk::new(repository, &inner.config.limits)?.directory_index(&found, dir.as_str()).map(Some)
        })
        .await
    }
}

struct Walk<'r> {
    repository: &'r Repository,
    odb: Odb<'r>,
    limits: &'r RemoteLimits,
    /// What is left of them for all directories.
    entries: usize,
    bytes: u64,
    found: BTreeMap<String, Result<DirectoryIndex, GitError>>,
}

impl<'r> Walk<'r> {
    fn new(repository: &'r Repository, limits: &'r RemoteLimits) -> Result<Self, GitError> {
        let odb = repository.odb().map_err(|error| GitError::local("open the cache", error))?;
        let (entries, bytes) = (limits.entries, limits.fetch_bytes);
        Ok(Self { repository, odb, limits, entries, bytes, found: BTreeMap::new() })
    }

    /// Looks at a directory and those below it, so many levels down.
    fn open(&mut self, tree: Result<Tree<'_>, GitError>, at: &str, depth: usize) -> Result<(), GitError> {
        let read = match tree {
            Ok(tree) if depth > 0 => self.descend(&tree, at, depth),
            Ok(tree) => self
                .directory_index(&tree, at)
                .map(|directory_index| drop(self.found.insert(at.to_owned(), Ok(directory_index)))),
            Err(error) => Err(error),
        };
        match read {
            Err(error) if error.is_of_content() => {
                self.found.insert(at.to_owned(), Err(error));
                Ok(())
            }
            read => read,
        }
    }

    fn descend(&mut self, tree: &Tree<'_>, at: &str, depth: usize) -> Result<(), GitError> {
        self.take(tree.len(), 0)?;
        let mut below: BTreeMap<RepoPath, Option<Oid>> = BTreeMap::new();
        for entry in tree.iter().filter(|entry| entry.filemode() == i32::from(FileMode::Tree)) {
            let Some(path) = tree::below(at, &entry) else { continue };
            below.entry(path).and_modify(|known| *known = None).or_insert(Some(entry.id()));
        }
        for (path, id) in below {
            let failed = |error| GitError::local(&format!("read the directory {path}"), error);
            let tree = match id {
                Some(id) => self.repository.find_tree(id).map_err(failed),
                None => Err(GitError::BadTree { path: path.to_string(), why: TWICE }),
            };
            self.open(tree, path.as_str(), depth - 1)?;
        }
        Ok(())
    }

    fn directory_index(&mut self, tree: &Tree<'_>, at: &str) -> Result<DirectoryIndex, GitError> {
        let RemoteLimits { entries, fetch_bytes, blob_bytes, .. } = *self.limits;
        let most = entries / SHARE;
        if tree.len() > most {
            return Err(limit(&format!("the number of entries in {at}"), most));
        }
        let (mut directory_index, mut bytes) = (DirectoryIndex::new(), 0);
        for entry in tree.iter() {
            // What no path can name is none of ours.
            let Some(path) = tree::below(at, &entry) else { continue };
            let is = |mode: FileMode| entry.filemode() == i32::from(mode);
            let odd = if is(FileMode::Blob) || is(FileMode::BlobExecutable) {
                let failed = |error| GitError::local(&format!("read the file {path}"), error);
                let size = self.odb.read_header(entry.id()).map_err(failed)?.0 as u64;
                bytes += if size > blob_bytes { 0 } else { size };
                (size > blob_bytes).then_some("too large a file")
            } else if is(FileMode::Tree) {
                Some("a directory")
            } else if is(FileMode::Link) {
                Some("a symbolic link")
            } else {
                Some("a submodule")
            };
            let id = entry.id().to_string().parse().expect("40 hex digits, because libgit2 was built for SHA-1");
            if directory_index.insert(path.clone(), Leaf { id, odd }).is_some() {
                return Err(GitError::BadTree { path: path.into(), why: TWICE });
            }
        }
        let most = fetch_bytes / SHARE as u64;
        if bytes > most {
            return Err(limit(&format!("the size of all files in {at} in bytes"), most));
        }
        self.take(tree.len(), bytes).map(|()| directory_index)
    }

    fn take(&mut self, entries: usize, bytes: u64) -> Result<(), GitError> {
        let RemoteLimits { entries: all, fetch_bytes, .. } = self.limits;
        let entries =
            self.entries.checked_sub(entries).ok_or_else(|| limit("the number of entries in the tree", all))?;
        let bytes = self.bytes.checked_sub(bytes);
        self.bytes = bytes.ok_or_else(|| limit("the size of all files in bytes", fetch_bytes))?;
        self.entries = entries;
        Ok(())
    }
}
