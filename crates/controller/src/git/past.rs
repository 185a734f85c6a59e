//! The past of a branch that was fetched without it: needed to tell what its tip descends from and who made it, and for nothing else.
//!
//! A server that can leave out of a pack what is in commits is asked for commits alone, into a cache of their own: whoever fetched files
//! into a cache without those of the past would be taken by the server for one that has them.

use super::ref_list::Asked;
use super::repo::{Inner, Remote, tip};
use super::transport::{Line, Operation};
use super::{GitError, RefName, Store, compact};
use git2::{AutotagOption, Direction, FetchOptions, Oid, RemoteCallbacks, Repository};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use tokio::time::Instant;

/// The depth that brings what is missing of a past (libgit2's `GIT_FETCH_DEPTH_UNSHALLOW`).
const UNSHALLOW: i32 = i32::MAX;
/// What keeps the commits in their cache.
const KEPT: &str = "refs/tidegate/past";
/// How many packs of commits there may be: they cannot be packed again without what is in them.
const PACKS: usize = 50;

/// The commits alone of what lies behind a branch.
pub(super) struct Commits<'i> {
    repository: Repository,
    damaged: &'i AtomicBool,
}

impl<'i> Commits<'i> {
    /// Those that were fetched.
    pub(super) fn of(inner: &'i Inner) -> Option<Self> {
        let past = &inner.past.get()?.inner;
        Some(Self { repository: past.repository().ok()?, damaged: &past.damaged })
    }

    /// Asks about two of them; `None` where that cannot be told.
    pub(super) fn ask<T>(&self, of: [Oid; 2], ask: impl FnOnce(&Repository) -> Result<T, git2::Error>) -> Option<T> {
        if of.iter().any(|id| self.repository.find_commit(*id).is_err()) {
            return None;
        }
        let told = ask(&self.repository);
        told.inspect_err(|_| self.damaged.store(true, Ordering::Relaxed)).ok()
    }
}

impl Store {
    /// Brings the past of a branch into the cache that was fetched without it; does nothing if it is there. What was more than may be
    /// fetched is not asked for again: what follows it has as much behind it.
    ///
    /// # Errors
    /// As [`Self::fetch`].
    pub async fn deepen(&self, name: &RefName) -> Result<(), GitError> {
        let (inner, name) = (Arc::clone(&self.inner), name.clone());
        self.inner.remote.blocking(move || inner.deepen(&name)).await
    }

    /// Brings what tells what the tip of such a branch descends from ([`Self::strangers`]): commits alone, if the server offers to leave
    /// out what is in them; else all of its past.
    ///
    /// # Errors
    /// As [`Self::fetch`].
    pub async fn fetch_ancestry(&self, name: &RefName) -> Result<(), GitError> {
        if matches!(self.inner.remote, Remote::Local(_)) {
            return Ok(());
        }
        let past = match self.inner.past.get() {
            Some(past) => past.clone(),
            None => {
                let new = self.aside("past")?;
                self.inner.past.get_or_init(|| new).clone()
            }
        };
        let (inner, name) = (Arc::clone(&self.inner), name.clone());
        self.inner
            .remote
            .blocking(move || {
                let Remote::Server(line) = &inner.remote else { return Ok(()) };
                let repository = inner.repository()?;
                if !repository.is_shallow() {
                    return Ok(());
                }
                let bring = || past.inner.unless_beyond(&repository, &name, || past.inner.commits(line, &name));
                let brought = match bring() {
                    // They are made anew.
                    Err(_) if past.inner.damaged.load(Ordering::Relaxed) => bring(),
                    brought => brought,
                };
                // Some servers offer to leave out something, and not this.
                match brought {
                    Ok(true) => Ok(()),
                    Err(error) if error.is_retriable() => Err(error),
                    Ok(false) | Err(_) => inner.deepen(&name),
                }
            })
            .await
    }
}

impl Inner {
    fn deepen(&self, name: &RefName) -> Result<(), GitError> {
        let _shared = self.cache.read().unwrap_or_else(PoisonError::into_inner);
        let repository = self.repository()?;
        match &self.remote {
            Remote::Server(line) => self.unless_beyond(&repository, name, || {
                // Somebody else may have asked meanwhile.
                if !repository.is_shallow() {
                    return Ok(());
                }
                self.download(line, &repository, &[name], UNSHALLOW)
            }),
            Remote::Local(_) => Ok(()),
        }
    }

    /// Lets one at a time bring what lies behind a tip, unless that, or what lies behind one that it follows, was more than may be fetched.
    fn unless_beyond<T>(
        &self,
        known: &Repository,
        name: &RefName,
        bring: impl FnOnce() -> Result<T, GitError>,
    ) -> Result<T, GitError> {
        let mut beyond = self.beyond.lock().unwrap_or_else(PoisonError::into_inner);
        let tip = known.refname_to_id(&tip(name)).ok();
        let follows =
            |old: Oid| tip.is_some_and(|tip| tip == old || known.graph_descendant_of(tip, old).is_ok_and(|it| it));
        if beyond.is_some_and(follows) {
            let what = format!("what lies behind {}", name.short());
            return Err(GitError::Limit { what, limit: format!("{} bytes", self.config.limits.fetch_bytes) });
        }
        let brought = bring();
        if matches!(brought, Err(GitError::Limit { .. })) {
            *beyond = tip;
        }
        brought
    }

    /// Brings the commits of a branch, if the server offers them alone, into a cache that is made anew if it is damaged.
    fn commits(&self, line: &Line, name: &RefName) -> Result<bool, GitError> {
        if self.damaged.swap(false, Ordering::Relaxed) || compact::is_due(&self.directory, PACKS) {
            let _alone = self.cache.write().unwrap_or_else(PoisonError::into_inner);
            self.create()?;
        }
        let _shared = self.cache.read().unwrap_or_else(PoisonError::into_inner);
        let brought = self.repository().and_then(|repository| self.commits_into(&repository, line, name));
        if let Err(GitError::Corrupt { .. } | GitError::Malformed { .. } | GitError::Cache { .. }) = brought {
            self.damaged.store(true, Ordering::Relaxed);
        }
        brought
    }

    fn commits_into(&self, repository: &Repository, line: &Line, name: &RefName) -> Result<bool, GitError> {
        let limits = &self.config.limits;
        let download = |url: &str, deadline: Instant| {
            let mut remote = repository.remote_anonymous(url)?;
            remote.connect(Direction::Fetch)?;
            let tip = remote.list()?.iter().find(|head| head.name() == name.as_str()).map(git2::RemoteHead::oid);
            let (Some(tip), true) = (tip, Operation::offers_filter()) else {
                remote.disconnect()?;
                return Ok(false);
            };
            let mut callbacks = RemoteCallbacks::new();
            callbacks.transfer_progress(|_| Instant::now() < deadline);
            let mut options = FetchOptions::new();
            options.download_tags(AutotagOption::None).remote_callbacks(callbacks);
            remote.download(&[format!("+{name}:{KEPT}")], Some(&mut options))?;
            remote.disconnect()?;
            // What is taken for there is not asked for.
            repository.find_commit(tip)?;
            repository.reference(KEPT, tip, true, "fetched").map(|_| true)
        };
        let asked = Asked { refs: vec![name.to_string()], commits_only: true };
        let doing = format!("fetch the past of {} from {}", name.short(), self.config.url);
        Operation::run(line, asked, [limits.advertisement_bytes, limits.fetch_bytes], &doing, download)
    }
}
