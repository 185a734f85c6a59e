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
use std::sync::OnceLock;

/// The repository. Its objects are not fetched but shared with the cache, as by `git clone --shared`.
pub(super) struct Local {
    path: PathBuf,
    /// Where its objects lie, once it was there.
    objects: OnceLock<PathBuf>,
}

impl Local {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, objects: OnceLock::new() }
    }

    /// Opens it.
    ///
    /// # Errors
    /// `Missing` when there is none, `Cache` or `Corrupt` when it cannot be read.
    fn open(&self) -> Result<Repository, GitError> {
        let repository = Repository::open(&self.path).map_err(|error| {
            if error.code() == ErrorCode::NotFound {
                GitError::Missing(format!("the repository {}", self.path.display()))
            } else {
                GitError::local(&format!("open {}", self.path.display()), error)
            }
        })?;
        self.objects.get_or_init(|| repository.commondir().join("objects"));
        Ok(repository)
    }

    /// Lets the cache see its objects, as soon as it was looked at.
    pub(super) fn share(&self, cache: &Repository) -> Result<(), git2::Error> {
        if self.objects.get().is_none() && self.open().is_err() {
            // It may be there later; whoever looks it up is told.
            return Ok(());
        }
        match self.objects.get().and_then(|objects| objects.to_str()) {
            Some(objects) => cache.odb()?.add_disk_alternate(objects),
            None => Ok(()),
        }
    }

    /// Looks the tips up.
    ///
    /// # Errors
    /// As [`Self::open`]; `Limit` when there are too many.
    pub(super) fn look_up(&self, prefixes: &[&str], limits: &Limits) -> Result<BTreeMap<RefName, CommitId>, GitError> {
        let doing = format!("look up the refs of {}", self.path.display());
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
        let doing = format!("push {} to {}", swap.branch, self.path.display());
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
    let odbs = (&from.odb()?, &to.odb()?);
    let mut ahead = vec![commit];
    while let Some(id) = ahead.last().copied() {
        let reached = ahead.len();
        if !has(odbs.1, id) {
            let commit = from.find_commit(id)?;
            ahead.extend(commit.parent_ids().filter(|parent| !has(odbs.1, *parent)));
            if ahead.len() > reached {
                continue;
            }
            copy_tree(from, odbs, commit.tree_id())?;
            copy_object(odbs, id)?;
        }
        ahead.pop();
    }
    Ok(())
}

fn copy_tree(from: &Repository, odbs: (&Odb<'_>, &Odb<'_>), tree: Oid) -> Result<(), git2::Error> {
    if has(odbs.1, tree) {
        return Ok(());
    }
    for entry in from.find_tree(tree)?.iter() {
        match entry.kind() {
            Some(ObjectType::Tree) => copy_tree(from, odbs, entry.id())?,
            // The commit of a submodule lies elsewhere.
            _ if entry.filemode() == i32::from(FileMode::Commit) => {}
            _ => copy_object(odbs, entry.id())?,
        }
    }
    copy_object(odbs, tree)
}

fn copy_object((from, to): (&Odb<'_>, &Odb<'_>), id: Oid) -> Result<(), git2::Error> {
    if has(to, id) {
        return Ok(());
    }
    let object = from.read(id)?;
    to.write(object.kind(), object.data()).map(drop)
}

/// Whether an object is there, as far as the handle knows: if it came a moment ago it is only copied once more.
fn has(odb: &Odb<'_>, id: Oid) -> bool {
    odb.exists_ext(id, OdbLookupFlags::NO_REFRESH)
}
