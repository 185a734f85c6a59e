//! Git as values: what main wants, what the record says, what people decided.
//!
//! One look-up of refs tells whether anything moved; what moved is fetched, and of that only what changed is read again.
//! What cannot be believed is never taken for "nothing": it becomes *unreadable*, from which nothing follows.

mod decisions;
mod fetch;
mod main;
mod peers;
mod pin;
mod record_signatures;
mod requests;
mod state;

pub use decisions::FiledDecisions;
pub use main::{Policies, Wanted};
pub use peers::Peers;
pub use pin::Pin;
pub use requests::Requests;
pub(super) use requests::to_undo;
pub use state::{LoadedRecord, LoadedRecords};

use super::clock::Clock;
use super::record::author;
use crate::forge::branch::{self, Head};
use crate::git::{Ancestry, Below, GitError, Person, RefName, Store};
use crate::manifest::ids::{CommitId, InstanceName, InvalidId, RolloutId};
use crate::manifest::installation::Caps;
use crate::plan::input::Git;
use crate::record::state::Time;
use crate::report::metrics::{GitOperation, GitOutcome, Metrics};
use chrono::TimeDelta;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The branches that an instance reads and writes.
#[derive(Debug, Clone)]
pub struct Branches {
    /// What people want.
    pub main: RefName,
    /// The record.
    pub state: RefName,
    /// People's decisions.
    pub decisions: RefName,
    /// Whose they are.
    instance: InstanceName,
    /// What the full names of our requests' branches begin with.
    propose: String,
    /// Who signs what the instance commits.
    author: Person,
}

impl Branches {
    /// The branches of an instance.
    ///
    /// # Errors
    /// When `main` is no name of a branch.
    pub fn new(instance: &InstanceName, main: &str) -> Result<Self, InvalidId> {
        let branches = Self {
            main: RefName::branch(main)?,
            state: RefName::branch(&branch::state_branch(instance))?,
            decisions: RefName::branch(&branch::decisions_branch(instance))?,
            instance: instance.clone(),
            propose: format!("refs/heads/{}", branch::propose_prefix(instance)),
            author: author(instance),
        };
        Ok(branches)
    }
}

/// How many branches are looked up by their names with one request.
const NAMED: usize = 500;

/// The tips of the branches that matter, as one look-up saw them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tips {
    /// Of main.
    pub main: Option<CommitId>,
    /// Of the state branch.
    pub state: Option<CommitId>,
    /// Of the decisions branch.
    pub decisions: Option<CommitId>,
    /// Of our requests, by the names of their branches as people say them.
    pub proposals: BTreeMap<String, CommitId>,
    /// Of the state branches of the fleet's other instances.
    pub peers: BTreeMap<InstanceName, CommitId>,
}

impl Tips {
    /// Those that an instance acts upon, and writes.
    fn own(&self) -> (Option<&CommitId>, Option<&CommitId>, Option<&CommitId>, &BTreeMap<String, CommitId>) {
        let Self { main, state, decisions, proposals, peers: _ } = self;
        (main.as_ref(), state.as_ref(), decisions.as_ref(), proposals)
    }

    fn of(branches: &Branches, peers: &BTreeMap<InstanceName, RefName>, found: &BTreeMap<RefName, CommitId>) -> Self {
        let proposals = found.iter().filter(|(name, _)| Head::parse(&branches.instance, name.short()).is_some());
        Self {
            main: found.get(&branches.main).cloned(),
            state: found.get(&branches.state).cloned(),
            decisions: found.get(&branches.decisions).cloned(),
            proposals: proposals.map(|(name, id)| (name.short().to_owned(), id.clone())).collect(),
            peers: peers::tips(peers, found),
        }
    }
}

/// What Git says, at one moment.
#[derive(Debug, Clone)]
pub struct GitView {
    /// The tips that it was read from.
    pub tips: Tips,
    /// Whether the server could be asked.
    pub git: Git,
    /// Main.
    pub main: Arc<Wanted>,
    /// The record.
    pub records: LoadedRecords,
    /// People's decisions.
    pub decisions: Arc<FiledDecisions>,
    /// What the branches of our requests would bring.
    pub requests: Arc<Requests>,
    /// What other clusters have.
    pub peers: Arc<Peers>,
}

/// What a look-up came to.
#[derive(Debug)]
pub enum Poll {
    /// Everything is where the last view saw it: that view holds at this moment.
    Unchanged,
    /// Something moved; it was read.
    Changed(Arc<GitView>),
    /// The server gave no usable answer.
    Unreachable(String),
    /// Another repository lies there by now; nothing of it was read.
    WrongRepository(String),
}

/// Git, as one process sees it.
pub struct Source {
    store: Store,
    branches: Branches,
    caps: Caps,
    metrics: Metrics,
    /// Which keys count now is judged by it.
    clock: Clock,
    /// Which repository it has to be; any that lies there, if none.
    pin: Option<Pin>,
    view: Option<Arc<GitView>>,
    /// Whether the last look-up found all that could be requests.
    below: Below,
    unfetched: fetch::Unfetched,
    /// When that may be tried again.
    again_at: Option<Time>,
    /// Whether the cache may lack what the last view was read from.
    lost: bool,
    /// The remote was looked at by this process at least once.
    seen_remote: bool,
    record_signatures: record_signatures::RecordSignatures,
    main: main::Cache,
    state: state::Cache,
    decisions: decisions::Cache,
    requests: requests::Cache,
    peers: peers::Cache,
}

impl Source {
    /// Nothing read yet.
    #[must_use]
    pub fn new(store: Store, branches: Branches, caps: Caps, metrics: Metrics, clock: Clock) -> Self {
        Self {
            store,
            branches,
            caps,
            metrics,
            clock,
            pin: None,
            view: None,
            below: Below::All,
            unfetched: fetch::Unfetched::default(),
            again_at: None,
            lost: false,
            seen_remote: false,
            record_signatures: record_signatures::RecordSignatures::default(),
            main: main::Cache::default(),
            state: state::Cache::default(),
            decisions: decisions::Cache::default(),
            requests: requests::Cache::default(),
            peers: peers::Cache::default(),
        }
    }

    /// The same, of the one repository that is meant.
    #[must_use]
    pub fn pinned(self, pin: Option<Pin>) -> Self {
        Self { pin, ..self }
    }

    /// The branches.
    #[must_use]
    pub fn branches(&self) -> &Branches {
        &self.branches
    }

    /// The repository.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Forgets the last view, as a new term of leadership has to: what it was trusted for may have changed.
    pub fn forget(&mut self) {
        self.view = None;
        self.main.forget();
    }

    /// Tries again at once what could not be read.
    pub fn retry(&mut self) {
        self.requests.retry();
    }

    /// Looks at the remote's tips once, and reads what moved, or could not be read before. `anchor` is the newest state tip that any
    /// leader knew.
    ///
    /// *Guarantees*: after `Same` the last view, and after `Moved` the new one, is what the remote said after this call
    /// began.
    pub async fn look_up(&mut self, anchor: Option<&CommitId>) -> Poll {
        let (before, unfetched) = (self.view.clone(), self.unfetched.clone());
        let may_come = unfetched.may_come() || self.peers.may_come();
        let again = may_come && self.again_at.is_none_or(|at| self.clock.now() >= at);
        let looked = self.look(anchor, again).await;
        match (looked, before) {
            // What could not be fetched did not come this time either.
            (Poll::Changed(new), Some(old))
                if again
                    && unfetched == self.unfetched
                    && (&old.git, &old.tips, &old.peers) == (&new.git, &new.tips, &new.peers)
                    && old.main.is_as(&new.main) =>
            {
                self.view = Some(old);
                self.read_requests().await
            }
            (looked, _) => looked,
        }
    }

    /// The same; what could not be fetched before is tried again.
    async fn look(&mut self, anchor: Option<&CommitId>, again: bool) -> Poll {
        let tips = self.tips().await;
        self.count(GitOperation::LookUp, tips.as_ref().err());
        let tips = match tips {
            Ok(tips) => tips,
            Err(error) => return Poll::Unreachable(error.to_string()),
        };
        let is_same = |view: &Arc<GitView>| {
            view.git == Git::Fresh && view.tips == self.requests.thinned(tips.clone(), &self.branches, &view.records)
        };
        let same = self.view.as_ref().is_some_and(is_same);
        let main = tips.main.clone();
        if same && !again && !self.main.is_judged_anew(&self.store, main.as_ref(), self.clock.now()).await {
            return self.read_requests().await;
        }
        // Asked after the look-up: who has taken the name since then shows tips that nobody fetches.
        if !same && let Some(doubt) = self.doubt().await {
            return doubt;
        }
        let started = self.clock.now();
        let read = self.read(tips, Git::Fresh, anchor).await;
        let now = self.clock.now();
        // What is slow keeps all waiting for a third of the time at most.
        self.again_at = Some(now - started).filter(|took| *took > TimeDelta::seconds(1)).map(|took| now + took * 2);
        match read {
            Ok(view) => {
                self.seen_remote = true;
                Poll::Changed(view)
            }
            Err(error) => {
                self.lost |= !error.is_retriable();
                Poll::Unreachable(error.to_string())
            }
        }
    }

    /// Looks the tips up of the branches that matter. Where there are too many that could be requests, only those that people can be asked by.
    async fn tips(&mut self) -> Result<Tips, GitError> {
        let Branches { main, state, decisions, propose, .. } = &self.branches;
        let mut names = vec![main.as_str(), state.as_str(), decisions.as_str()];
        names.extend(self.peers.asked().values().map(RefName::as_str));
        let looked_up = self.store.look_up(&names, propose).await?;
        self.below = looked_up.below;
        let mut tips = Tips::of(&self.branches, self.peers.asked(), &looked_up.found);
        if let (Below::TooMany, Some(view)) = (self.below, &self.view) {
            tips.proposals = self.by_name(&view.records).await?;
        }
        Ok(tips)
    }

    /// The tips of the requests that people can be asked by, looked up by their names. One that is missing here is taken for deleted, which
    /// is a person's no: what cannot be looked up is an error.
    async fn by_name(&self, records: &LoadedRecords) -> Result<BTreeMap<String, CommitId>, GitError> {
        let names = requests::names(&self.branches.instance, records);
        let names: Vec<String> = names.iter().map(|name| format!("refs/heads/{name}")).collect();
        let mut found = BTreeMap::new();
        for some in names.chunks(NAMED) {
            found.extend(self.store.ls_refs(&some.iter().map(String::as_str).collect::<Vec<_>>()).await?);
        }
        Ok(Tips::of(&self.branches, self.peers.asked(), &found).proposals)
    }

    /// The same before anything is written there, be it to a repository that shows what it has always shown.
    pub async fn look_up_to_write(&mut self, anchor: Option<&CommitId>) -> Poll {
        let before = self.view.clone();
        // What was read of requests alone makes no plan void, nor what other clusters have come to since: none follows from what was not read.
        let is_same = |new: &GitView| {
            before.as_ref().is_some_and(|old| {
                old.git == Git::Fresh && old.tips.own() == new.tips.own() && old.main.is_as(&new.main)
            })
        };
        match self.look(anchor, false).await {
            Poll::Unchanged => self.doubt().await.unwrap_or(Poll::Unchanged),
            Poll::Changed(view) if is_same(&view) => self.doubt().await.unwrap_or(Poll::Unchanged),
            looked @ (Poll::Changed(_) | Poll::Unreachable(_) | Poll::WrongRepository(_)) => looked,
        }
    }

    /// Why what lies there is not believed to be the repository that is meant.
    async fn doubt(&mut self) -> Option<Poll> {
        match &mut self.pin {
            Some(pin) => pin.hold().await.err(),
            None => None,
        }
    }

    /// What was fetched last, for as long as `git` says that nothing can be. A state tip that is older than the anchor is no
    /// record.
    pub async fn offline(&mut self, git: Git, anchor: Option<&CommitId>) -> Arc<GitView> {
        let why = git.trouble().map(|wait| wait.message).unwrap_or_default();
        let tips = match &self.view {
            Some(view) => view.tips.clone(),
            None => match self.store.cached_tips().await {
                Ok(found) => Tips::of(&self.branches, self.peers.asked(), &found),
                Err(error) => {
                    tracing::warn!(%error, "the cached tips cannot be read");
                    Tips::default()
                }
            },
        };
        let view = match self.read(tips.clone(), git.clone(), anchor).await {
            // An empty cache shows no record, and that means nothing.
            Ok(view) if tips.state.is_some() || (anchor.is_none() && self.seen_remote) => return view,
            Ok(view) => GitView { records: LoadedRecords::Unreadable(unknown_record(&why)), ..(*view).clone() },
            Err(error) => GitView {
                tips,
                git,
                main: Arc::new(Wanted::unreadable(error.to_string())),
                records: LoadedRecords::Unreadable(unknown_record(&why)),
                decisions: Arc::default(),
                requests: Arc::default(),
                peers: self.peers.last(),
            },
        };
        let view = Arc::new(view);
        self.view = Some(Arc::clone(&view));
        view
    }

    async fn read(&mut self, tips: Tips, git: Git, anchor: Option<&CommitId>) -> Result<Arc<GitView>, GitError> {
        if git == Git::Fresh {
            self.fetch(&tips).await?;
        }
        let distrusted = match self.distrust(tips.state.as_ref(), anchor).await? {
            None => {
                self.record_signatures.foreign(&self.store, &self.branches.state, tips.state.as_ref(), anchor).await?
            }
            distrusted => distrusted,
        };
        let records = match distrusted {
            None => self.state.read(&self.store, tips.state.as_ref()).await?,
            Some(why) => LoadedRecords::Unreadable(why),
        };
        let mut tips = tips;
        if self.below == Below::TooMany && git == Git::Fresh {
            // The records may name others than those that were known when the tips were looked up.
            tips.proposals = self.by_name(&records).await?;
        }
        let mut tips = self.requests.thinned(tips, &self.branches, &records);
        let now = self.clock.now();
        let main = self.read_main(&tips, &git, &records, now).await?;
        let decisions = self.read_decisions(&tips, &records).await?;
        let records = self.state.with_sets(&self.store, records, &main, &decisions).await?;
        let peers = self.read_peers(&mut tips, &git, &main).await?;
        let beside = requests::Beside {
            store: &self.store,
            branches: &self.branches,
            tips: &tips,
            main: &main,
            records: &records,
            now,
        };
        let requests = match git {
            Git::Fresh => self.requests.read(&beside).await,
            // What goes back must not wait for an answer.
            Git::Away(_) | Git::Replaced(_) => self.requests.known(),
        };
        let view = Arc::new(GitView { tips, git, main, records, decisions: Arc::new(decisions), requests, peers });
        self.view = Some(Arc::clone(&view));
        Ok(view)
    }

    /// Where nothing has moved there may be branches that the record has not asked by before, or that could not be read.
    async fn read_requests(&mut self) -> Poll {
        let Some(view) = self.view.clone() else { return Poll::Unchanged };
        let GitView { tips, main, records, .. } = &*view;
        let (store, branches, now) = (&self.store, &self.branches, self.clock.now());
        let beside = requests::Beside { store, branches, tips, main, records, now };
        if !self.requests.is_due(&beside) {
            return Poll::Unchanged;
        }
        let requests = self.requests.read(&beside).await;
        if requests == view.requests {
            return Poll::Unchanged;
        }
        let view = Arc::new(GitView { requests, ..(*view).clone() });
        self.view = Some(Arc::clone(&view));
        Poll::Changed(view)
    }

    /// Why the state tip is not, and does not descend from, the newest one that any leader knew.
    async fn distrust(&self, tip: Option<&CommitId>, anchor: Option<&CommitId>) -> Result<Option<String>, GitError> {
        let Some(anchor) = anchor else { return Ok(None) };
        let name = self.branches.state.short();
        let Some(tip) = tip else {
            return Ok(Some(format!(
                "HistoryRewritten: the branch {name} is gone; its newest tip was {anchor}. Push that commit there again"
            )));
        };
        if matches!(self.store.is_ancestor(anchor, tip).await?, Ancestry::Same | Ancestry::Ancestor) {
            return Ok(None);
        }
        match self.store.is_ancestor(tip, anchor).await {
            Ok(Ancestry::Ancestor) => Ok(Some(format!(
                "StaleRead: {name} is at {tip}, which is older than {anchor}, the newest tip that was seen: a server that \
                 lags behind, or a branch that was put back"
            ))),
            Ok(Ancestry::Same | Ancestry::Not | Ancestry::Unknown) | Err(GitError::Missing(_)) => Ok(Some(format!(
                "HistoryRewritten: {name} is at {tip}, which does not descend from {anchor}, the newest tip that was seen. \
                 Put the branch back to where it was"
            ))),
            Err(error) => Err(error),
        }
    }

    /// Takes note of what we have pushed to the state branch: `None` for a record that ended. Everything else is as the
    /// last view says.
    pub fn pushed(
        &mut self,
        tip: CommitId,
        changes: BTreeMap<RolloutId, Option<LoadedRecord>>,
    ) -> Option<Arc<GitView>> {
        let decisions = self.view.as_ref().map(|view| Arc::clone(&view.decisions)).unwrap_or_default();
        let records = self.state.pushed(tip.clone(), changes, &decisions);
        self.record_signatures.believe(tip.clone());
        let view = self.view.as_mut().map(Arc::make_mut)?;
        view.tips.state = Some(tip);
        view.records = records;
        self.view.clone()
    }

    /// Takes note of a request's branch that was found, or that we have deleted.
    pub fn proposed(&mut self, branch: &str, head: Option<CommitId>) {
        let Some(view) = self.view.as_mut().map(Arc::make_mut) else { return };
        match head {
            Some(head) => drop(view.tips.proposals.insert(branch.to_owned(), head)),
            None => drop(view.tips.proposals.remove(branch)),
        }
    }

    /// Takes note of a request's branch that we have made: it need not be read.
    pub async fn made(&mut self, branch: &str, head: CommitId) {
        let requests = self.requests.made(&self.store, branch, &head).await;
        self.proposed(branch, Some(head));
        if let Some(view) = self.view.as_mut().map(Arc::make_mut) {
            view.requests = requests;
        }
    }

    /// The last view.
    #[must_use]
    pub fn view(&self) -> Option<Arc<GitView>> {
        self.view.clone()
    }

    fn count(&self, operation: GitOperation, error: Option<&GitError>) {
        self.metrics.asked_git(operation, error.map_or(GitOutcome::Done, GitOutcome::of));
    }
}

fn unknown_record(why: &str) -> String {
    format!("Git is away ({why}), and what was fetched last is older than the newest record")
}

impl GitView {
    /// Every rollout that main or the record knows.
    #[must_use]
    pub fn rollouts(&self) -> Vec<RolloutId> {
        let mut ids: Vec<RolloutId> = self.main.rollouts().cloned().collect();
        if let LoadedRecords::Read(records) = &self.records {
            ids.extend(records.keys().cloned());
        }
        ids.sort();
        ids.dedup();
        ids
    }
}

#[cfg(test)]
mod tests;
