//! A remote that is a repository on this machine: no server answers, and no hooks run.

use super::commit::commit_id;
use super::fault_injection::{self, RemoteCall, RemoteFault};
use super::push::{Pushed, Swap};
use super::refs::Tips;
use super::remote::RemoteLimits;
use super::repo::Inner;
use super::{GitError, RefName, oid, pack};
use crate::manifest::ids::CommitId;
use crate::rules::{Rule, holds};
use git2::{ErrorClass, ErrorCode, FileMode, ObjectType, Odb, OdbLookupFlags, Oid, Repository};
use std::collections::{BTreeMap, HashSet};
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
    pub(super) fn look_up(
        &self,
        prefixes: &[&str],
        limits: &RemoteLimits,
    ) -> Result<BTreeMap<RefName, CommitId>, GitError> {
        self.tips(&self.open()?, prefixes, limits)
    }

    fn tips(
        &self,
        repository: &Repository,
        prefixes: &[&str],
        limits: &RemoteLimits,
    ) -> Result<BTreeMap<RefName, CommitId>, GitError> {
        let doing = format!("look up the refs of {}", self.0.display());
        let failed = |error| GitError::local(&doing, error);
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
        if swap.fate == RemoteFault::Rejected {
            return Ok(Pushed::Rejected { why: "not allowed, on purpose".to_owned() });
        }
        let remote = self.open()?;
        let mut tips = self.tips(&remote, &["refs/heads/"], &inner.config.limits)?;
        if let Some(refused) = swap.refuse(&mut tips) {
            return Ok(refused);
        }
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
            Ok(()) if swap.fate == RemoteFault::Lost => {
                Err(fault_injection::away(&RemoteCall::Push(swap.branch.clone())))
            }
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

/// Copies a commit and all that it needs: many objects as one pack, a few each by itself, the parts of each before it. What is
/// there is there with all that it needs.
fn copy(from: &Repository, to: &Repository, commit: Oid) -> Result<(), git2::Error> {
    let mut copying = Copying { from, to: &to.odb()?, missing: Vec::new(), known: HashSet::new() };
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
            copying.object(id);
        }
        ahead.pop();
    }
    let missing = copying.missing;
    if missing.len() > FEW {
        return pack::write(from, &missing, to);
    }
    let (there, here) = (from.odb()?, to.odb()?);
    for id in missing {
        if link(from, to, id).is_err() {
            let object = there.read(id)?;
            here.write(object.kind(), object.data())?;
        }
    }
    Ok(())
}

/// Up to so many objects are copied one by one.
const FEW: usize = 1_000;

/// From one repository on this machine to another.
struct Copying<'a> {
    from: &'a Repository,
    to: &'a Odb<'a>,
    /// What has to be copied, in this order, and the same as a set.
    missing: Vec<Oid>,
    known: HashSet<Oid>,
}

impl Copying<'_> {
    fn tree(&mut self, id: Oid) -> Result<(), git2::Error> {
        if self.is_there(id) {
            return Ok(());
        }
        for entry in self.from.find_tree(id)?.iter() {
            match entry.kind() {
                Some(ObjectType::Tree) => self.tree(entry.id())?,
                // The commit of a submodule lies elsewhere.
                _ if entry.filemode() == i32::from(FileMode::Commit) => {}
                _ => self.object(entry.id()),
            }
        }
        self.object(id);
        Ok(())
    }

    fn object(&mut self, id: Oid) {
        if !self.is_there(id) {
            self.known.insert(id);
            self.missing.push(id);
        }
    }

    /// Whether an object is there or will be, as far as the handle knows: if it came a moment ago it is only copied once more.
    fn is_there(&self, id: Oid) -> bool {
        self.known.contains(&id) || self.to.exists_ext(id, OdbLookupFlags::NO_REFRESH)
    }
}

/// A file of its own can be shared, as `git clone --local` does, if both are on one file system: it never changes.
fn link(from: &Repository, to: &Repository, id: Oid) -> std::io::Result<()> {
    let hex = id.to_string();
    let (directory, file) = hex.split_at(2);
    let [from, to] = [from, to].map(|at| at.commondir().join("objects").join(directory));
    let link = || std::fs::hard_link(from.join(file), to.join(file));
    link().or_else(|_| std::fs::create_dir_all(&to).and_then(|()| link()))
}
