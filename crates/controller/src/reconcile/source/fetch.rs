//! What is fetched, and in which order: main and the decisions are people's, and whatever they hold keeps nobody from the record.

use super::{Branches, FiledDecisions, LoadedRecords, Source, Tips, Wanted};
use crate::git::{GitError, RefName};
use crate::manifest::ids::CommitId;
use crate::plan::input::Git;
use crate::record::state::Time;
use crate::report::metrics::GitOperation;
use std::sync::Arc;

/// What could not be fetched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Unfetched {
    main: Option<Unbrought>,
    decisions: Option<Unbrought>,
    /// Main's past, which may come later.
    past: bool,
}

/// How often in a row a tip has to stay away until that is its own trouble. Until then it is Git's: nothing is said of main, and no step is
/// entered that a word which has just been pushed may stop.
const TRIES: u8 = 4;

/// A tip that could not be fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Unbrought {
    tip: CommitId,
    why: String,
    /// How often it was tried where it may come later, with nothing changed; none where it cannot.
    tries: Option<u8>,
}

impl Unfetched {
    /// Whether some of it may come later, though nothing moves.
    pub(super) fn may_come(&self) -> bool {
        self.past || [&self.main, &self.decisions].into_iter().flatten().any(|it| it.tries.is_some())
    }
}

impl Unbrought {
    fn why<'a>(of: Option<&'a Self>, tip: Option<&CommitId>) -> Option<&'a str> {
        of.filter(|it| Some(&it.tip) == tip).map(|it| it.why.as_str())
    }
}

impl Source {
    /// Main at its tip, as far as that could be fetched.
    pub(super) async fn read_main(
        &mut self,
        tips: &Tips,
        git: &Git,
        records: &LoadedRecords,
        now: Time,
    ) -> Result<Arc<Wanted>, GitError> {
        if let Some(why) = Unbrought::why(self.unfetched.main.as_ref(), tips.main.as_ref()) {
            return Ok(self.main.unreadable(why.to_owned()));
        }
        if *git == Git::Fresh {
            self.unfetched.past = false;
            if self.main.lacks_past(&self.store, tips.main.as_ref(), records).await? {
                self.deepen().await;
            }
        }
        self.main.read(&self.store, tips.main.as_ref(), &self.caps, records, now).await
    }

    /// What people decided, as far as that could be fetched.
    pub(super) async fn read_decisions(
        &mut self,
        tips: &Tips,
        records: &LoadedRecords,
    ) -> Result<FiledDecisions, GitError> {
        let tip = tips.decisions.as_ref();
        match Unbrought::why(self.unfetched.decisions.as_ref(), tip) {
            Some(why) => Ok(FiledDecisions::unread(tip.cloned(), why.to_owned())),
            None => self.decisions.read(&self.store, tip, records, &self.branches.author).await,
        }
    }

    /// Fetches what has moved: first the record, which nobody can keep from us by what they write to the other branches.
    pub(super) async fn fetch(&mut self, tips: &Tips) -> Result<(), GitError> {
        let Branches { main, state, decisions, .. } = self.branches.clone();
        let before = self.view.as_ref().filter(|_| !self.lost).map(|view| view.tips.clone()).unwrap_or_default();
        let moved =
            |tip: &Option<CommitId>, before: Option<CommitId>| tip.clone().filter(|tip| Some(tip) != before.as_ref());
        if let Some(tip) = moved(&tips.state, before.state) {
            self.bring(&state, &tip).await?;
        }
        let (known, mut away) = (std::mem::take(&mut self.unfetched), None);
        let decided = moved(&tips.decisions, before.decisions);
        self.unfetched.decisions =
            self.try_bring(&decisions, &tips.decisions, decided.is_some(), known.decisions, &mut away).await;
        let has_moved = moved(&tips.main, before.main).is_some();
        self.unfetched.main = self.try_bring(&main, &tips.main, has_moved, known.main, &mut away).await;
        if has_moved && self.unfetched.main.is_none() && self.unfetched.decisions.is_some() {
            // It may have begun where main is, most of whose content is there now.
            self.unfetched.decisions = self.try_bring(&decisions, &tips.decisions, true, None, &mut away).await;
        }
        if let Some(error) = away {
            return Err(error);
        }
        self.lost = false;
        Ok(())
    }

    /// Fetches a tip that has moved, or could not be fetched before and may come now; why it does not come. At first it may be that Git is
    /// `away`.
    async fn try_bring(
        &self,
        name: &RefName,
        tip: &Option<CommitId>,
        has_moved: bool,
        known: Option<Unbrought>,
        away: &mut Option<GitError>,
    ) -> Option<Unbrought> {
        let tip = tip.clone()?;
        let known = known.filter(|known| known.tip == tip);
        if known.as_ref().map_or(!has_moved, |known| known.tries.is_none()) {
            return known;
        }
        let error = self.bring(name, &tip).await.err()?;
        tracing::warn!(%error, "{} cannot be fetched", name.short());
        let mut why = error.to_string();
        let before = known.as_ref().and_then(|known| known.tries).unwrap_or(0);
        let tries = (!error.is_of_content()).then(|| TRIES.min(before + 1));
        if let GitError::Limit { .. } = error {
            why.push_str(&format!(": take what is large out of {}", name.short()));
            if *name == self.branches.main {
                why.push_str(", or keep what is rolled out in a repository of its own");
            }
        }
        if tries.is_some_and(|tries| tries < TRIES) {
            *away = Some(error);
        }
        // The same trouble is told in the same words, so that nothing is planned anew for it.
        let why = known.filter(|_| tries.is_some()).map_or(why, |known| known.why);
        Some(Unbrought { tip, why, tries })
    }

    async fn bring(&self, name: &RefName, tip: &CommitId) -> Result<(), GitError> {
        let fetched = self.store.fetch(&[(name.clone(), tip.clone())].into()).await;
        self.count(GitOperation::Fetch, fetched.as_ref().err());
        fetched
    }

    /// Fetches main's past. What cannot be had leaves it unknown, from which nothing follows.
    async fn deepen(&mut self) {
        let fetched = self.store.fetch_ancestry(&self.branches.main).await;
        self.count(GitOperation::Fetch, fetched.as_ref().err());
        if let Err(error) = fetched {
            tracing::warn!(%error, "main's history cannot be fetched");
            self.unfetched.past = error.is_retriable();
        }
    }
}
