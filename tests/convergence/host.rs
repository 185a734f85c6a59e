//! The Git host of a world, and hands that work on it directly: without a clone, so that it costs little.

use git2::build::TreeUpdateBuilder;
use git2::{FileMode, Oid, Repository, Signature};
use std::path::{Path, PathBuf};
use tidegate::record::state::Time;

pub(crate) const MAIN: &str = "refs/heads/main";
pub(crate) const STATE: &str = "refs/heads/tidegate/world/state";
pub(crate) const DECISIONS: &str = "refs/heads/tidegate/world/decisions";

/// The bare repository.
pub(crate) struct Host {
    repository: Repository,
    path: PathBuf,
}

impl Host {
    pub(crate) fn open(path: &Path) -> Self {
        Self { repository: Repository::open(path).unwrap(), path: path.to_owned() }
    }

    pub(crate) fn tip(&self, branch: &str) -> Option<Oid> {
        let loose = std::fs::read_to_string(self.path.join(branch)).ok();
        loose.and_then(|text| Oid::from_str(text.trim()).ok()).or_else(|| self.repository.refname_to_id(branch).ok())
    }

    /// Whether a file is on a branch.
    pub(crate) fn has(&self, branch: &str, path: &str) -> bool {
        self.tip(branch).is_some_and(|tip| self.file(tip, path).is_some())
    }

    pub(crate) fn file(&self, commit: Oid, path: &str) -> Option<Vec<u8>> {
        let tree = self.repository.find_commit(commit).ok()?.tree().ok()?;
        let object = tree.get_path(Path::new(path)).ok()?.to_object(&self.repository).ok()?;
        object.as_blob().map(|blob| blob.content().to_vec())
    }

    /// The id of what is at a path.
    pub(crate) fn entry(&self, commit: Oid, path: &str) -> Option<Oid> {
        let tree = self.repository.find_commit(commit).ok()?.tree().ok()?;
        tree.get_path(Path::new(path)).ok().map(|entry| entry.id())
    }

    /// The commits from `known` (left out) to `tip`, oldest first; none if `tip` does not descend from it.
    pub(crate) fn since(&self, known: Option<Oid>, tip: Oid) -> Option<Vec<Oid>> {
        let (mut commits, mut at) = (Vec::new(), Some(tip));
        while at != known {
            let commit = at?;
            commits.push(commit);
            at = self.repository.find_commit(commit).unwrap().parent_id(0).ok();
        }
        commits.reverse();
        Some(commits)
    }

    /// Commits files to a branch.
    pub(crate) fn commit(&self, branch: &str, files: &[(String, String)], subject: &str, at: Time) {
        let parent = self.tip(branch).map(|tip| self.repository.find_commit(tip).unwrap());
        let mut update = TreeUpdateBuilder::new();
        for (path, text) in files {
            update.upsert(path.as_str(), self.repository.blob(text.as_bytes()).unwrap(), FileMode::Blob);
        }
        let base = match &parent {
            Some(parent) => parent.tree().unwrap(),
            None => {
                let empty = self.repository.treebuilder(None).unwrap().write().unwrap();
                self.repository.find_tree(empty).unwrap()
            }
        };
        let tree = update.create_updated(&self.repository, &base).unwrap();
        let tree = self.repository.find_tree(tree).unwrap();
        let ana = Signature::new("Ana", "ana@example.org", &git2::Time::new(at.timestamp(), 0)).unwrap();
        let parents: Vec<_> = parent.iter().collect();
        let new = self.repository.commit(None, &ana, &ana, subject, &tree, &parents).unwrap();
        self.put(branch, new);
    }

    /// Puts a branch somewhere.
    pub(crate) fn put(&self, branch: &str, tip: Oid) {
        self.repository.reference(branch, tip, true, "by hand").unwrap();
    }

    /// Whether a commit is, or follows on, another.
    pub(crate) fn leads_to(&self, commit: Oid, other: Oid) -> bool {
        commit == other || self.repository.graph_descendant_of(commit, other).unwrap_or(false)
    }

    pub(crate) fn parent(&self, commit: Oid) -> Option<Oid> {
        self.repository.find_commit(commit).ok()?.parent_id(0).ok()
    }
}
