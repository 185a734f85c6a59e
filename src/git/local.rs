//! A remote that is a repository on this machine: no server answers, and no hooks run.

use super::commit::commit_id;
use super::push::{Pushed, Swap};
use super::refs::Tips;
use super::remote::Limits;
use super::repo::Inner;
use super::weather::{self, Errand, Fate};
use super::{GitError, RefName, oid};
use crate::manifest::ids::CommitId;
use crate::rules::{Rule, holds};
use git2::{ErrorClass, ErrorCode, FileMode, ObjectType, Odb, OdbLookupFlags, Oid, Repository};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The repository.
pub(super) struct Local(PathBuf);

impl Local {
    pub(super) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Opens it.
    ///
    /// # Errors
    /// `Missing` when there is none, `Cache` or `Corrupt` when it cannot be read.
    fn open(&self) -> Result<Repository, GitError> {
        Repository::open(&self.0).map_err(|error| {
            if error.code() == ErrorCode::NotFound {
                GitError::Missing(format!("the repository {}", self.0.display()))
            } else {
                GitError::local(&format!("open {}", self.0.display()), error)
            }
        })
    }

    /// Brings commits into the cache. One that is not there, as it is gone again, is left out.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(super) fn fetch<'a>(
        &self,
        cache: &Repository,
        wants: impl Iterator<Item = &'a CommitId>,
    ) -> Result<(), GitError> {
        let remote = self.open()?;
        let there = wants.map(|id| oid(id.as_str())).filter(|want| remote.find_commit(*want).is_ok());
        for want in there {
            copy(&remote, cache, want)
                .map_err(|error| GitError::local(&format!("fetch from {}", self.0.display()), error))?;
        }
        Ok(())
    }

    /// Looks the tips up.
    ///
    /// # Errors
    /// As [`Self::open`]; `Limit` when there are too many.
    pub(super) fn look_up(&self, prefixes: &[&str], limits: &Limits) -> Result<BTreeMap<RefName, CommitId>, GitError> {
        let doing = format!("look up the refs of {}", self.0.display());
        let failed = |error| GitError::local(&doing, error);
        let repository = self.open()?;
        let mut tips = Tips::new(prefixes, limits);
        for reference in repository.references().map_err(failed)? {
            let reference = reference.map_err(failed)?;
            if let (Ok(name), Some(id)) = (reference.name(), reference.target()) {
                tips.add(&doing, name, &id.to_string())?;
            }
        }
        Ok(tips.found)
    }

    /// libgit2's own push to a local path moves the branch whatever it finds there. Here the objects are handed over, and the
    /// branch is moved under its lock only if it still is where it was expected. No hooks run, as there is no server.
    pub(super) fn push(&self, inner: &Inner, repository: &Repository, swap: &Swap) -> Result<Pushed, GitError> {
        let doing = format!("push {} to {}", swap.branch, self.0.display());
        let failed = |error| GitError::local(&doing, error);
        if swap.fate == Fate::Rejected {
            return Ok(Pushed::Rejected { why: "not allowed, on purpose".to_owned() });
        }
        let mut tips = self.look_up(&["refs/heads/"], &inner.config.limits)?;
        if let Some(refused) = swap.refuse(&mut tips) {
            return Ok(refused);
        }
        let remote = self.open()?;
        let name = swap.branch.as_str();
        let expected = swap.expected.as_ref().map(|id| oid(id.as_str()));
        let expected = if holds(Rule::Swap) { expected } else { remote.refname_to_id(name).ok() };
        let moved = match (&swap.new, expected) {
            (Some(new), expected) => {
                let new = oid(new.as_str());
                let grows = |old| repository.graph_descendant_of(new, old);
                if holds(Rule::Swap) && expected.is_some_and(|old| old != new && !grows(old).unwrap_or(false)) {
                    return Ok(Pushed::Rejected { why: "the new commit does not descend from the old one".to_owned() });
                }
                copy(repository, &remote, new).map_err(failed)?;
                remote.reference_matching(name, new, true, expected.unwrap_or(Oid::ZERO_SHA1), "push").map(drop)
            }
            (None, Some(_)) => remote.find_reference(name).and_then(|mut reference| {
                if reference.target() == expected {
                    reference.delete()
                } else {
                    Err(git2::Error::new(ErrorCode::Modified, ErrorClass::Reference, "the branch moved"))
                }
            }),
            (None, None) => Ok(()),
        };
        match moved {
            Ok(()) if swap.fate == Fate::Lost => Err(weather::away(&Errand::Push(swap.branch.clone()))),
            Ok(()) => Ok(Pushed::Done { others: tips }),
            Err(error)
                if matches!(
                    error.code(),
                    ErrorCode::Modified | ErrorCode::NotFound | ErrorCode::Exists | ErrorCode::Locked
                ) =>
            {
                let found = remote.refname_to_id(name).ok().map(commit_id);
                Ok(Pushed::Raced { found })
            }
            Err(error) => Err(failed(error)),
        }
    }
}

/// Copies a commit and all that it needs, the parts of each object before it: what is there is there with all that it needs.
fn copy(from: &Repository, to: &Repository, commit: Oid) -> Result<(), git2::Error> {
    let copying = Copying { from, to: &to.odb()?, files: [from, to].map(|at| at.commondir().join("objects")) };
    let mut ahead = vec![commit];
    while let Some(id) = ahead.last().copied() {
        let reached = ahead.len();
        if !copying.is_there(id) {
            let commit = from.find_commit(id)?;
            ahead.extend(commit.parent_ids().filter(|parent| !copying.is_there(*parent)));
            if ahead.len() > reached {
                continue;
            }
            copying.tree(commit.tree_id())?;
            copying.object(id)?;
        }
        ahead.pop();
    }
    Ok(())
}

/// From one repository on this machine to another.
struct Copying<'a> {
    from: &'a Repository,
    to: &'a Odb<'a>,
    /// Where the objects of both lie.
    files: [PathBuf; 2],
}

impl Copying<'_> {
    fn tree(&self, id: Oid) -> Result<(), git2::Error> {
        if self.is_there(id) {
            return Ok(());
        }
        for entry in self.from.find_tree(id)?.iter() {
            match entry.kind() {
                Some(ObjectType::Tree) => self.tree(entry.id())?,
                // The commit of a submodule lies elsewhere.
                _ if entry.filemode() == i32::from(FileMode::Commit) => {}
                _ => self.object(entry.id())?,
            }
        }
        self.object(id)
    }

    fn object(&self, id: Oid) -> Result<(), git2::Error> {
        if self.is_there(id) || self.link(id).is_ok() {
            return Ok(());
        }
        let odb = self.from.odb()?;
        let object = odb.read(id)?;
        self.to.write(object.kind(), object.data()).map(drop)
    }

    /// A file of its own can be shared, as `git clone --local` does, if both are on one file system: it never changes.
    fn link(&self, id: Oid) -> std::io::Result<()> {
        let hex = id.to_string();
        let (directory, file) = hex.split_at(2);
        let [from, to] = self.files.each_ref().map(|files| files.join(directory));
        std::fs::create_dir_all(&to)?;
        std::fs::hard_link(from.join(file), to.join(file))
    }

    /// Whether an object is there, as far as the handle knows: if it came a moment ago it is only copied once more.
    fn is_there(&self, id: Oid) -> bool {
        self.to.exists_ext(id, OdbLookupFlags::NO_REFRESH)
    }
}
