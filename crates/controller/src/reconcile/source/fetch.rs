//! What is fetched, and in which order: main is people's, and whatever it holds keeps nobody from the record.

use super::{Branches, LoadedRecords, Source, Tips, Wanted};
use crate::git::{GitError, RefName};
use crate::manifest::ids::CommitId;
use crate::plan::input::Git;
use crate::record::state::Time;
use crate::report::metrics::GitOperation;
use std::collections::BTreeMap;
use std::sync::Arc;

impl Source {
    /// Main at its tip, as far as that could be fetched.
    pub(super) async fn read_main(
        &mut self,
        tips: &Tips,
        git: &Git,
        records: &LoadedRecords,
        now: Time,
    ) -> Result<Arc<Wanted>, GitError> {
        let is_tip = |(tip, _): &&(CommitId, String)| Some(tip) == tips.main.as_ref();
        if let Some((_, why)) = self.unfetched.as_ref().filter(is_tip) {
            return Ok(self.main.unreadable(why.clone()));
        }
        if *git == Git::Fresh && self.main.lacks_past(&self.store, tips.main.as_ref(), records).await? {
            self.deepen().await?;
        }
        self.main.read(&self.store, tips.main.as_ref(), &self.caps, records, now).await
    }

    /// Fetches what has moved: first the record and the decisions, which nobody can keep from us by what they write to main.
    pub(super) async fn fetch(&mut self, tips: &Tips) -> Result<(), GitError> {
        let Branches { main, state, decisions, .. } = &self.branches;
        let before = self.view.as_ref().map(|view| &view.tips);
        let moved = |(name, tip, before): (&RefName, &Option<CommitId>, Option<&CommitId>)| {
            tip.clone().filter(|tip| Some(tip) != before).map(|tip| (name.clone(), tip))
        };
        let ours = [
            (state, &tips.state, before.and_then(|tips| tips.state.as_ref())),
            (decisions, &tips.decisions, before.and_then(|tips| tips.decisions.as_ref())),
        ];
        self.bring(ours.into_iter().filter_map(moved).collect()).await?;
        let Some((name, tip)) = moved((main, &tips.main, before.and_then(|tips| tips.main.as_ref()))) else {
            return Ok(());
        };
        self.unfetched = match self.bring([(name, tip.clone())].into()).await {
            Err(error) if error.is_of_content() => {
                let (mut why, branch) = (error.to_string(), main.short());
                if let GitError::Limit { .. } = error {
                    why.push_str(&format!(
                        ": take what is large out of {branch}, or keep what is rolled out in a repository of its own"
                    ));
                }
                tracing::warn!(%error, "main cannot be fetched");
                Some((tip, why))
            }
            fetched => fetched.map(|()| None)?,
        };
        Ok(())
    }

    async fn bring(&self, wants: BTreeMap<RefName, CommitId>) -> Result<(), GitError> {
        if wants.is_empty() {
            return Ok(());
        }
        let fetched = self.store.fetch(&wants).await;
        self.count(GitOperation::Fetch, fetched.as_ref().err());
        fetched
    }

    /// Fetches main's past. What cannot be had later either leaves it unknown, from which nothing follows.
    async fn deepen(&self) -> Result<(), GitError> {
        let fetched = self.store.fetch_ancestry(&self.branches.main).await;
        self.count(GitOperation::Fetch, fetched.as_ref().err());
        match fetched {
            Err(error) if !error.is_retriable() => {
                tracing::warn!(%error, "main's history cannot be fetched");
                Ok(())
            }
            fetched => fetched,
        }
    }
}
