//! Shows our requests to people as pull requests, and takes their no from there; says how main's tip stands. A task of its
//! own: no tick waits for it, and all that it knows can be lost.
//!
//! What is asked stands in the record; the pull requests only show it. A yes needs nothing from here, as merging one moves
//! the decisions branch. A no is made to be what it is on any Git host: the request's branch is deleted.

mod body;
mod commit_status;
mod conflicting;
mod gone;
mod guard;
mod request_backoff;
mod tidy;
mod unsaid;

use super::backoff::{Backoff, Error, WakeUp, changed};
use super::clock::Clock;
use super::evidence::Inbox;
use super::feedback::{self, Reader};
use super::lead::Lead;
use super::source::GitView;
use crate::forge::branch::{Asks, Head, propose_prefix, state_branch};
use crate::forge::host::{Host, HostError, Status};
use crate::forge::pull::{self, Ids, PullBody, PullRequest, PullVerdict, Text, verdict};
use crate::gate::guard::Guard;
use crate::git::{Pushed, RefName, Store};
use crate::manifest::ids::{CommitId, InstanceName, RolloutId};
use crate::manifest::proof::ApprovalRule;
use crate::plan::input::Git;
use body::Asker;
use futures::future::OptionFuture;
use gone::Gone;
use request_backoff::RequestBackoff;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use unsaid::Unsaid;

/// What Git said last, with a number that grows.
type Seen = (u64, Option<Arc<GitView>>);

/// The loop's end of the task.
pub struct PullRequests {
    views: watch::Sender<Seen>,
    done: watch::Receiver<u64>,
}

/// What a pull_requests works with.
pub struct Setting {
    /// The Git host.
    pub host: Host,
    /// The repository.
    pub store: Store,
    /// Who leads.
    pub lead: Lead,
    /// Who asks.
    pub instance: InstanceName,
    /// The name of main, as people say it.
    pub main: String,
    /// The time.
    pub clock: Clock,
    /// How often the host is looked at while anything is asked.
    pub poll: Duration,
    /// What the host says of the decisions branch.
    pub guard: watch::Sender<Guard>,
    /// Tells whoever looks, at the host or at Git, that something has happened there: of the host's webhooks, and of what we have done
    /// for a person.
    pub told: watch::Sender<()>,
    /// Told of news about that.
    pub woken: Arc<Notify>,
    /// Told whose the no to a request is, whose branch is gone.
    pub inbox: Inbox,
    /// What tells people of their own pull requests; none if nobody shall.
    pub feedback: Option<feedback::Setting>,
}

impl PullRequests {
    /// The loop's end, and the task, which ends with `stop`.
    pub fn open(mut setting: Setting, stop: CancellationToken) -> (Self, impl Future<Output = ()> + Send + use<>) {
        let (views, seen) = watch::channel((0, None));
        let told = setting.told.subscribe();
        let reader = setting.feedback.take().map(|feedback| Reader::new(feedback).work(seen.clone(), told));
        let (looked, done) = watch::channel(0);
        (Self { views, done }, async move {
            let both = async { tokio::join!(Worker::new(setting).work(seen, looked), OptionFuture::from(reader)) };
            stop.run_until_cancelled(both).await;
        })
    }

    /// Takes note of what Git says.
    pub fn see(&self, view: Option<Arc<GitView>>) {
        // In a repository of somebody else nobody is asked or told anything.
        let stranger = view.as_ref().is_some_and(|view| matches!(view.git, Git::Replaced(_)));
        let view = view.filter(|_| !stranger);
        self.views.send_if_modified(|(number, seen)| {
            let same = match (&view, &*seen) {
                (Some(new), Some(old)) => Arc::ptr_eq(new, old),
                (Some(_), None) => false,
                (None, seen) => !stranger || seen.is_none(),
            };
            if !same {
                (*number, *seen) = (*number + 1, view);
            }
            !same
        });
    }

    /// Whether the host was looked at, or tried to, since the last news.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        *self.done.borrow() == self.views.borrow().0
    }

    /// Waits until the host was looked at, or tried to, once more; for ever where nobody looks any more.
    pub async fn looked(&mut self) {
        changed(&mut self.done).await;
    }
}

/// What people shall find on the host.
#[derive(Default, PartialEq, Eq)]
struct Wanted {
    /// Pull requests, by their branches.
    requests: BTreeMap<String, PullBody>,
    /// How main's tip stands.
    status: Option<(CommitId, Status)>,
    /// Whether anything waits for a decision that only those may say who may decide.
    gated: bool,
    /// What was asked from branches that are gone, by these.
    gone: BTreeMap<String, Gone>,
}

/// Requests of which one may come in the place of another: those of a rollout that have the same labels.
type Line = (RolloutId, [&'static str; 2]);

struct Worker {
    setting: Setting,
    /// What was wanted last.
    wanted: Wanted,
    /// How main's tip was said to stand.
    told: Option<(CommitId, Status)>,
    /// Our pull requests that were open, by number with their branches; none while the host was not looked at.
    open: Option<BTreeMap<u64, String>>,
    /// What was said to a host that showed something else: the same is not said twice.
    said: BTreeMap<u64, (Text, PullRequest)>,
    /// The last pull request of each rollout and kind that ended without what it asked for, until the next one is there.
    ended: BTreeMap<Line, u64>,
    /// How often, and since when, pull requests of these heads were found open though their branches are gone.
    looks: BTreeMap<CommitId, (u32, Instant)>,
    /// Heads that were merged.
    merged: BTreeSet<CommitId>,
    /// Pull requests that were opened again: that is said once.
    reopened: BTreeSet<u64>,
    /// Pull requests at whose end it was said why: that is said once, however often it is tried to close them.
    parted: BTreeSet<u64>,
    /// Somebody else's that were in the way of ours: that is said once, and what is opened again after it is left alone for a while.
    moved: BTreeSet<u64>,
    /// Pull requests that were made, with what they ask, and have no labels yet.
    bare: Vec<(u64, Asks)>,
    /// Comments that the host has not taken yet.
    unsaid: Unsaid,
    /// Whether it was told that the host takes no labels.
    unlabelled: bool,
    /// Requests that the host refuses.
    request_backoff: RequestBackoff,
    /// How it went so far.
    backoff: Backoff,
    /// What was told of single requests.
    each: Backoff,
}

impl Worker {
    /// Nothing known yet.
    fn new(setting: Setting) -> Self {
        Self {
            setting,
            wanted: Wanted::default(),
            told: None,
            open: None,
            said: BTreeMap::new(),
            ended: BTreeMap::new(),
            looks: BTreeMap::new(),
            merged: BTreeSet::new(),
            reopened: BTreeSet::new(),
            parted: BTreeSet::new(),
            moved: BTreeSet::new(),
            bare: Vec::new(),
            unsaid: Unsaid::default(),
            unlabelled: false,
            request_backoff: RequestBackoff::default(),
            backoff: Backoff::default(),
            each: Backoff::default(),
        }
    }

    async fn work(mut self, mut seen: watch::Receiver<Seen>, looked: watch::Sender<u64>) {
        let mut wake_up = WakeUp::new(self.setting.told.subscribe());
        loop {
            wake_up.heed();
            let (number, view) = seen.borrow_and_update().clone();
            let pause = match &view {
                Some(view) => self.turn(view).await,
                None => self.setting.poll,
            };
            looked.send_replace(number);
            let news = async {
                while seen.changed().await.is_ok() {
                    let (number, view) = seen.borrow_and_update().clone();
                    if view.is_some_and(|view| self.backoff.is_fine() && self.wants(&view) != self.wanted) {
                        seen.mark_changed();
                        return;
                    }
                    looked.send_replace(number);
                }
                std::future::pending::<()>().await;
            };
            tokio::select! {
                () = news => {}
                () = wake_up.rung(), if self.backoff.is_fine() => {}
                () = sleep(pause) => {}
            }
        }
    }

    /// Looks at the host once, if there is a reason to; how long to wait until the next time.
    async fn turn(&mut self, view: &GitView) -> Duration {
        let wanted = self.wants(view);
        let asked = !wanted.requests.is_empty()
            || !wanted.gone.is_empty()
            || self.open.as_ref().is_none_or(|open| !open.is_empty());
        if wanted.gone.is_empty() {
            self.looks.clear();
        }
        let idle = !asked && !wanted.gated && !self.unsaid.is_due() && wanted.status == self.told;
        if self.setting.lead.held().is_none() || !wanted.gated {
            // What was said before may not be so any more when the next run asks.
            self.say(Guard::Unknown);
        }
        if self.setting.lead.held().is_none() || idle {
            self.wanted = wanted;
            return self.setting.poll;
        }
        let mut done = if wanted.gated { self.guard().await } else { Ok(()) };
        if done.is_ok() {
            done = self.tell(wanted.status.as_ref()).await;
        }
        let done = match self.examine_gone(&wanted.gone, done).await {
            Ok(aside) => {
                self.backoff.aside(aside.as_ref(), "nobody knows who said no to a request whose branch is gone");
                if asked {
                    self.round(view, &wanted.requests).await
                } else {
                    self.remark().await;
                    Ok(None)
                }
            }
            Err(error) => Err(error),
        };
        self.wanted = wanted;
        let done = match done {
            Ok(aside) => {
                self.each.aside(aside.as_ref(), "a pull request is not as it should be");
                Ok(())
            }
            Err(error) => Err(Error::from(error)),
        };
        self.backoff.after(done, self.setting.poll, "pull requests are not as they should be")
    }

    /// Says how main's tip stands, if that is news.
    async fn tell(&mut self, status: Option<&(CommitId, Status)>) -> Result<(), HostError> {
        let Some((commit, said)) = status.filter(|status| self.told.as_ref() != Some(status)) else { return Ok(()) };
        let name = format!("tidegate/{}", self.setting.instance);
        match self.setting.host.tell(commit, &name, said).await {
            // Pull requests go on without, where a token may do no more.
            Err(HostError::Refused { status, why, .. }) => {
                tracing::warn!(status, why, "main's commit status is not taken");
            }
            done => done?,
        }
        self.told = Some((commit.clone(), said.clone()));
        Ok(())
    }

    /// Looks at all requests. What is wrong with one of them says nothing of the others: that is what comes back if nothing worse is.
    async fn round(
        &mut self,
        view: &GitView,
        wanted: &BTreeMap<String, PullBody>,
    ) -> Result<Option<HostError>, HostError> {
        let ids = self.setting.host.ids().await?;
        let prefix = propose_prefix(&self.setting.instance);
        let mut open = self.setting.host.open().await?;
        open.retain(|found| found.is_ours(ids) && found.branch.starts_with(&prefix));
        let mut aside = None;
        for (branch, request) in wanted {
            if let Some(error) = self.request_backoff.of(branch, request) {
                aside = Some(error);
                continue;
            }
            match self.show(ids, branch, request, &open).await {
                Err(error @ (HostError::Refused { .. } | HostError::Unusable { .. })) => {
                    self.request_backoff.begin(branch, request, &error, self.setting.poll);
                    aside = Some(error);
                }
                done => {
                    done?;
                    self.request_backoff.end(branch);
                }
            }
        }
        let tidied = self.tidy(view, wanted, &open).await;
        // Last, so that nothing waits for them.
        self.remark().await;
        self.label().await;
        Ok(tidied?.or(aside))
    }

    /// Labels the pull requests that were made, until the host has said yes or no to each. That it takes no labels is told once. One that
    /// fails for a moment ends it for this look, and is the last at the next one.
    async fn label(&mut self) {
        while let Some((number, asks)) = self.bare.first().filter(|_| self.setting.lead.held().is_some()) {
            let (number, labels) = (*number, pull::labels(asks));
            if let Err(error) = self.setting.host.label(number, &labels).await {
                let lasts = matches!(error, HostError::Refused { .. } | HostError::Unusable { .. });
                let labels = labels.join(", ");
                if lasts && !std::mem::replace(&mut self.unlabelled, true) {
                    let act = "make them in the repository, or let the controller's account do so (docs/hosts.md)";
                    tracing::warn!(number, labels, %error, act, "the host takes no labels, so pull requests go without");
                } else {
                    tracing::debug!(number, labels, %error, "a pull request is without its labels");
                }
                if !lasts {
                    return self.bare.rotate_left(1);
                }
            }
            self.bare.remove(0);
        }
    }

    /// Makes the pull request of a branch as it should be, or takes a no.
    async fn show(
        &mut self,
        ids: Ids,
        branch: &str,
        request: &PullBody,
        open: &[PullRequest],
    ) -> Result<(), HostError> {
        let closed;
        let mut found = verdict(ids, branch, request, open);
        if found == PullVerdict::Missing && !self.merged.contains(&request.head) {
            let is_it = |found: &PullRequest| found.is_ours(ids) && found.is_of(branch, request);
            closed = self.setting.host.closed(branch, is_it).await?;
            found = verdict(ids, branch, request, &closed);
        } else if found == PullVerdict::Missing {
            found = PullVerdict::Merged;
        }
        if self.setting.lead.held().is_none() {
            return Ok(());
        }
        match found {
            PullVerdict::Fine => {}
            PullVerdict::Merged => drop(self.merged.insert(request.head.clone())),
            PullVerdict::Differs(found) => {
                let (text, base) = (request.on(found), (found.base != request.base).then_some(request.base.as_str()));
                let said = (text.clone(), found.clone());
                if self.said.get(&found.number) != Some(&said) {
                    if let Err(error) = self.setting.host.update(found.number, &text, base).await {
                        return self.make_way(error, branch, &request.base).await;
                    }
                    self.said.insert(found.number, said);
                }
            }
            PullVerdict::Missing => {
                let number = match self.setting.host.create(branch, &request.base, &request.text).await {
                    Ok(number) => number,
                    Err(error) => return self.make_way(error, branch, &request.base).await,
                };
                let known = self.open.get_or_insert_default();
                let before = known.iter().rfind(|(_, other)| *other == branch).map(|(before, _)| *before);
                known.insert(number, branch.to_owned());
                self.bare.extend(Head::parse(&self.setting.instance, branch).map(|head| (number, head.asks)));
                tracing::info!(branch, number, "asks people by a pull request");
                self.point(before, branch, number);
            }
            PullVerdict::Denied(found) => return self.closed(ids, branch, request, found).await,
        }
        Ok(())
    }

    /// A pull request was closed unmerged: a no, if who did it may say so; else it is opened again.
    async fn closed(
        &mut self,
        ids: Ids,
        branch: &str,
        request: &PullBody,
        found: &PullRequest,
    ) -> Result<(), HostError> {
        let number = found.number;
        if !self.still_asks(branch, request).await {
            return Ok(());
        }
        // Once: whoever closes it again by our account means it.
        let asks_nobody = request.rule.is_none() && !self.reopened.contains(&number);
        let objection = if asks_nobody && self.setting.host.closes_late(number, ids.user).await? {
            Some("the Git host closed it with the branch of the one before".to_owned())
        } else {
            self.objection(request.rule.as_ref(), number).await?
        };
        let Some(why) = objection else {
            self.deny(branch, request, number).await;
            return Ok(());
        };
        if self.setting.lead.held().is_none() {
            return Ok(());
        }
        if let Err(error) = self.setting.host.reopen(number).await {
            return self.make_way(error, branch, &found.base).await;
        }
        self.open.get_or_insert_default().insert(number, branch.to_owned());
        tracing::info!(branch, number, why, "was closed by somebody who may not say no, and is opened again");
        // After that: what cannot be opened again would be told each time.
        if self.reopened.insert(number) {
            self.unsaid.add(number, unsaid::not_authorized(&why));
        }
        Ok(())
    }

    /// Whether the branch of a closed request is still what that was for. If it is gone, or asks for something else, it was closed with it,
    /// and by nobody; the view, which is older than the list, does not know that yet.
    async fn still_asks(&self, branch: &str, request: &PullBody) -> bool {
        let there = self.setting.store.ls_refs(&[&format!("refs/heads/{branch}")]).await;
        there.is_ok_and(|there| there.values().any(|head| *head == request.head))
    }

    /// Why the no of whoever closed a pull request does not count.
    async fn objection(&mut self, rule: Option<&ApprovalRule>, number: u64) -> Result<Option<String>, HostError> {
        let Some(rule) = rule else { return Ok(None) };
        let host = &mut self.setting.host;
        let Some(user) = host.closer(number).await? else {
            return Ok(Some("nobody knows who closed this".to_owned()));
        };
        host.objection(rule, &user).await
    }

    /// A pull request was closed unmerged: its branch goes, which is what the next plan sees.
    async fn deny(&self, branch: &str, request: &PullBody, number: u64) {
        let Ok(name) = RefName::branch(branch) else { return };
        match self.setting.store.delete_branch(&name, &request.head).await {
            Ok(Pushed::Done { .. }) => {
                tracing::info!(branch, number, "a person closed the pull request: no");
                self.setting.told.send_replace(());
            }
            Ok(Pushed::Rejected { why }) => {
                tracing::warn!(branch, number, why, "a pull request was closed, but its branch cannot be deleted");
            }
            // Somebody else was faster, or Git is away: the next look tells.
            Ok(Pushed::Raced { .. } | Pushed::SourceMoved { .. }) => {}
            Err(error) => tracing::warn!(branch, number, %error, "a closed pull request's branch was not deleted"),
        }
    }

    fn forget(&mut self, wanted: &BTreeMap<String, PullBody>) {
        self.merged.retain(|head| wanted.values().any(|request| request.head == *head));
        let open = self.open.clone().unwrap_or_default();
        self.said.retain(|number, _| open.contains_key(number));
        self.reopened.retain(|number| open.contains_key(number));
        self.parted.retain(|number| open.contains_key(number));
        self.request_backoff.keep(wanted);
    }

    /// The pull requests that there have to be: those of branches that the record names, so that nothing is asked on a page
    /// whose answer would not be heard.
    fn wants(&self, view: &GitView) -> Wanted {
        let Setting { instance, main, host, clock, .. } = &self.setting;
        let asker = Asker {
            instance,
            main,
            now: clock.now(),
            compare: &|from, to| host.compare(from, to),
            record: &|path| host.page_on(&state_branch(instance), path),
        };
        let all = view.tips.proposals.iter();
        let requests =
            all.filter_map(|(branch, head)| Some((branch.clone(), body::request(view, &asker, (branch, head))?)));
        let requests = requests.collect();
        Wanted { requests, status: commit_status::status(view), gated: guard::gated(view), gone: gone::gone(view) }
    }
}

#[cfg(test)]
mod calls;
#[cfg(test)]
mod tests;
