//! The past of a branch that was fetched without it: needed to tell what its tip descends from, and for nothing else.
//!
//! A server that can leave out of a pack what is in commits is asked for commits alone, into a cache of their own: whoever fetched files
//! into a cache without those of the past would be taken by the server for one that has them.

use super::ref_list::Asked;
use super::repo::{Inner, Remote};
use super::transport::{Line, Operation};
use super::{GitError, RefName, Store};
use git2::{AutotagOption, Direction, FetchOptions, RemoteCallbacks};
use std::sync::{Arc, PoisonError};
use tokio::time::Instant;

/// The depth that brings what is missing of a past (libgit2's `GIT_FETCH_DEPTH_UNSHALLOW`).
const UNSHALLOW: i32 = i32::MAX;
/// What keeps the commits in their cache.
const KEPT: &str = "refs/tidegate/past";

impl Store {
    /// Brings the past of a branch into the cache that was fetched without it; does nothing if it is there.
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
                let is_whole = !inner.repository()?.is_shallow();
                // Some servers offer to leave out something, and not this.
                match if is_whole { Ok(true) } else { past.inner.commits(line, &name) } {
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
            Remote::Server(line) if repository.is_shallow() => self.download(line, &repository, &[name], UNSHALLOW),
            Remote::Server(_) | Remote::Local(_) => Ok(()),
        }
    }

    /// Brings the commits of a branch, if the server offers them alone.
    fn commits(&self, line: &Line, name: &RefName) -> Result<bool, GitError> {
        let repository = self.repository()?;
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
            repository.reference(KEPT, tip, true, "fetched").map(|_| true)
        };
        let asked = Asked { refs: vec![name.to_string()], commits_only: true };
        let doing = format!("fetch the past of {} from {}", name.short(), self.config.url);
        Operation::run(line, asked, [limits.advertisement_bytes, limits.fetch_bytes], &doing, download)
    }
}
