//! Tells people what their own pull requests to main would come to. A task of its own: no tick waits for it.
//!
//! Who opens a pull request may be anybody, and what is in it anything. So it is read in a cache of its own, within limits,
//! and nothing of it is kept: what was said stands on the host, in the comment, and says which commit it is about.

use super::backoff::{Backoff, Error, WakeUp};
use super::clock::Clock;
use super::lead::Lead;
use super::source::{GitView, LoadedRecord, LoadedRecords};
use crate::forge::host::{Host, HostError, Offer, Offers};
use crate::git::{GitError, MergeResult, RefName, Sought, Store};
use crate::manifest::ids::{CommitId, InstanceName, RolloutId};
use crate::manifest::installation::{Caps, HostKind, Installation};
use crate::manifest::load::{self, Loaded};
use crate::record::state::Time;
use crate::report::feedback::{FeedbackVerdict, PullRequestFeedback, mark};
use chrono::TimeDelta;
use reading::{Beside, concerned, reading, touches};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

mod reading;

/// So many pull requests are looked at in a turn.
const AT_ONCE: usize = 3;
/// How soon the others are looked at.
const SOON: Duration = Duration::from_secs(30);
/// How soon one is looked at again because main has moved.
const AGAIN: TimeDelta = TimeDelta::minutes(10);
/// What is said within an hour, at most: hosts hold it against the whole account when it writes more.
const SAID: usize = 100;
/// Percent of what the host allows that are left to what rollouts need: anybody can open pull requests.
const SPARE: i64 = 60;

/// What the task works with.
pub struct Setting {
    host: Host,
    kind: HostKind,
    store: Store,
    lead: Lead,
    clock: Clock,
    instance: InstanceName,
    main: RefName,
    caps: Caps,
    poll: Duration,
}

impl Setting {
    /// With a host of its own, so that its lists are its own too.
    #[must_use]
    pub fn new(
        host: Host,
        kind: HostKind,
        of: &Installation,
        main: RefName,
        store: &Store,
        lead: &Lead,
        clock: &Clock,
    ) -> Self {
        Self {
            host: host.leaving(SPARE),
            kind,
            store: store.clone(),
            lead: lead.clone(),
            clock: clock.clone(),
            instance: of.instance.clone(),
            main,
            caps: of.caps.clone(),
            poll: of.repository.poll,
        }
    }
}

/// Looks at pull requests.
pub(super) struct Reader {
    setting: Setting,
    /// The cache for what people offer; made when the first one is looked at.
    aside: Option<Store>,
    offers: Offers,
    looked: BTreeMap<u64, Look>,
    /// Main as this turn has read it.
    main: Option<Arc<Loaded>>,
    /// When anything was said, for an hour.
    said: Vec<Time>,
    backoff: Backoff,
}

/// The records of all rollouts.
type All = Arc<BTreeMap<RolloutId, Arc<LoadedRecord>>>;

/// When a pull request was looked at, and beside which main; none if nothing came of it.
struct Look {
    head: CommitId,
    main: Option<CommitId>,
    at: Time,
}

/// What came of looking at one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Came {
    /// All is said that there is to say.
    Done,
    /// Not this time.
    Later,
}

impl Reader {
    /// Nothing looked at yet.
    pub(super) fn new(setting: Setting) -> Self {
        Self {
            setting,
            aside: None,
            offers: Offers::default(),
            looked: BTreeMap::new(),
            main: None,
            said: Vec::new(),
            backoff: Backoff::default(),
        }
    }

    /// Goes on until it is dropped. `seen` is what Git says, for others too; `told` tells that something has happened on the host.
    pub(super) async fn work(mut self, seen: watch::Receiver<(u64, Option<Arc<GitView>>)>, told: watch::Receiver<()>) {
        let mut wake_up = WakeUp::new(told);
        let soon = self.setting.poll.min(SOON);
        let mut pause = soon;
        loop {
            tokio::select! {
                () = wake_up.rung(), if self.backoff.is_fine() => {}
                () = sleep(pause) => {}
            }
            wake_up.heed();
            let view = seen.borrow().1.clone();
            pause = match view {
                Some(view) if self.setting.lead.held().is_some() => {
                    let turn = self.turn(&view).await;
                    // It may be large, and the next turn comes late.
                    self.main = None;
                    let (done, poll) = match turn {
                        Ok(Came::Done) => (Ok(()), self.setting.poll),
                        Ok(Came::Later) => (Ok(()), soon),
                        Err(error) => (Err(error), self.setting.poll),
                    };
                    self.backoff.after(done, poll, "people's pull requests were not looked at")
                }
                Some(_) | None => {
                    // Somebody else says it meanwhile.
                    self.looked.clear();
                    self.setting.poll
                }
            };
        }
    }

    /// Looks at some of those that are due, and says whether that was all of them.
    async fn turn(&mut self, view: &GitView) -> Result<Came, Error> {
        self.main = None;
        // Where nobody knows what runs, nobody knows what would come of a change.
        let (Some(main), LoadedRecords::Read(records)) = (&view.tips.main, &view.records) else {
            return Ok(Came::Done);
        };
        let ours = self.setting.host.ids().await?.user;
        let mut offers = self.setting.host.offers(self.setting.main.short(), &mut self.offers).await?;
        self.looked.retain(|number, _| offers.iter().any(|offer| offer.number == *number));
        offers.retain(|offer| offer.author != Some(ours) && self.is_due(offer, main));
        // Those that nobody has looked at yet come first, then who was looked at longest ago.
        let last =
            |offer: &Offer| self.looked.get(&offer.number).filter(|look| look.head == offer.head).map(|look| look.at);
        offers.sort_by_key(last);
        let (mut left, mut away) = (offers.len(), None);
        for offer in offers.iter().take(AT_ONCE) {
            let came = self.look(records, main, offer).await;
            let (head, at) = (offer.head.clone(), self.setting.clock.now());
            match came {
                Ok(Came::Done) => {
                    self.looked.insert(offer.number, Look { head, main: Some(main.clone()), at });
                    left -= 1;
                }
                Ok(Came::Later) => {}
                // It cannot be fetched now: the others come first the next time.
                Err(Error::Git(error)) => {
                    self.looked.insert(offer.number, Look { head, main: None, at });
                    away = Some(error);
                }
                Err(error @ Error::Host(_)) => return Err(error),
            }
        }
        match away.filter(|_| left == offers.len()) {
            Some(error) => Err(error.into()),
            None if left == 0 => Ok(Came::Done),
            None => Ok(Came::Later),
        }
    }

    fn is_due(&self, offer: &Offer, main: &CommitId) -> bool {
        self.looked.get(&offer.number).is_none_or(|look| {
            look.head != offer.head
                || look.main.is_none()
                || (look.main.as_ref() != Some(main) && (self.setting.clock.now() - look.at).abs() >= AGAIN)
        })
    }

    async fn look(&mut self, records: &All, main: &CommitId, offer: &Offer) -> Result<Came, Error> {
        let verdict = match self.judge(records, main, offer).await {
            Ok(Some(verdict)) => verdict,
            Ok(None) => return Ok(Came::Later),
            Err(error) if error.is_of_content() => FeedbackVerdict::Unreadable(error.to_string()),
            Err(error) if error.is_retriable() => return Err(error.into()),
            Err(error) => {
                // What is wrong with one says nothing of the others.
                tracing::warn!(number = offer.number, %error, "a pull request cannot be looked at");
                return Ok(Came::Done);
            }
        };
        match self.say(offer, PullRequestFeedback { head: offer.head.clone(), verdict }).await {
            Err(error @ (HostError::Refused { .. } | HostError::Unusable { .. })) => {
                tracing::warn!(number = offer.number, %error, "what a pull request comes to cannot be said there");
                Ok(Came::Done)
            }
            came => Ok(came?),
        }
    }

    /// What a pull request comes to; none if it moves right now.
    async fn judge(
        &mut self,
        records: &All,
        main: &CommitId,
        offer: &Offer,
    ) -> Result<Option<FeedbackVerdict>, GitError> {
        let store = self.aside()?;
        store.fetch(&BTreeMap::from([(self.setting.main.clone(), main.clone())])).await.map_err(of_main)?;
        match store.fetch_offer(&self.setting.kind.offer_ref(offer.number), &offer.head).await {
            Err(GitError::Missing(_)) => return Ok(None),
            done => done?,
        }
        let Some(changed) = store.offered(main, &offer.head).await? else {
            return Ok(Some(FeedbackVerdict::Unreadable(
                "it has no commit in common with the branch it leads to".to_owned(),
            )));
        };
        let mut sought: Sought = records.values().filter_map(|record| record.state.as_ref().ok()).collect();
        sought.files.extend(changed.iter().filter(|path| load::is_rollout_file(path)).cloned());
        let base = match self.main.take() {
            Some(known) => known,
            None => {
                let declared = store.declared(main, &sought, None).await.map_err(of_main)?;
                let (files, caps) = (declared.map(|declared| declared.files), self.setting.caps.clone());
                Arc::new(aloof(move || load::load(&files.unwrap_or_default(), &caps).here(caps.cluster())).await?)
            }
        };
        self.main = Some(Arc::clone(&base));
        if !touches(&base, &changed) {
            return Ok(Some(FeedbackVerdict::Elsewhere));
        }
        let files = match store.merged(main, &offer.head, &sought).await? {
            MergeResult::Tree(files) => files,
            MergeResult::Conflict(paths) => return Ok(Some(FeedbackVerdict::Conflict(paths))),
        };
        let beside = Beside { main: base, changed, records: Arc::clone(records), now: self.setting.clock.now() };
        let caps = self.setting.caps.clone();
        let (mut read, files) =
            aloof(move || (reading(&load::load(&files, &caps).here(caps.cluster()), &beside), files)).await?;
        // Where main has changed a file too, its lines are others in the commit that is offered.
        let same = store.shared(&offer.head, concerned(&read, &files)).await?.into_iter();
        read.same = same.map(|path| (path.clone(), self.setting.host.page_of(&offer.head, &path))).collect();
        Ok(Some(FeedbackVerdict::Read(read)))
    }

    fn aside(&mut self) -> Result<Store, GitError> {
        if let Some(store) = &self.aside {
            return Ok(store.clone());
        }
        let store = self.setting.store.aside("offers")?;
        Ok(self.aside.insert(store).clone())
    }

    /// Says it, unless it was said already.
    async fn say(&mut self, offer: &Offer, feedback: PullRequestFeedback) -> Result<Came, HostError> {
        let Setting { host, lead, clock, instance, .. } = &mut self.setting;
        let said = host.said(offer.number, &mark(instance)).await?;
        let first = feedback.first_line(instance);
        let is_said = said.as_ref().and_then(|said| said.body.lines().next()).is_some_and(|line| line.trim() == first);
        if is_said || (said.is_none() && feedback.verdict == FeedbackVerdict::Elsewhere) {
            return Ok(Came::Done);
        }
        if lead.held().is_none() {
            return Ok(Came::Later);
        }
        let now = clock.now();
        self.said.retain(|at| (now - *at).abs() < TimeDelta::hours(1));
        if self.said.len() >= SAID {
            return Ok(Came::Later);
        }
        let check = feedback.check(now);
        self.said.extend(std::iter::repeat_n(now, check.writes()));
        // The comment comes last: where it stands all is said.
        match host.show(&feedback.head, &format!("tidegate/{instance}/manifests"), &check).await {
            Err(HostError::Refused { status, why, .. }) => {
                tracing::warn!(number = offer.number, status, why, "the commit status of a pull request is not taken");
            }
            done => done?,
        }
        let text = feedback.comment(instance, now);
        match said {
            Some(said) => host.rephrase(offer.number, said.id, &text).await?,
            None => host.comment(offer.number, &text).await?,
        }
        tracing::info!(number = offer.number, head = %feedback.head, "told people what their pull request comes to");
        Ok(Came::Done)
    }
}

/// Does what takes long where it keeps nobody waiting.
async fn aloof<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, GitError> {
    let done = spawn_blocking(work).await;
    done.map_err(|error| GitError::Away { doing: "read what is offered".to_owned(), why: error.to_string() })
}

/// What is wrong with main is nobody's pull request.
fn of_main(error: GitError) -> GitError {
    GitError::Away { doing: "read what pull requests lead to".to_owned(), why: error.to_string() }
}

#[cfg(test)]
mod tests;
