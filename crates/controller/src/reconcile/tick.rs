//! One tick: observe → plan → retreat → record → advance → announce.

use super::announce::Announcer;
use super::execute::{Lists, Ran};
use super::faults;
use super::observe::Snapshot;
use super::plans::{Planned, Plans};
use super::propose::{Came, Proposer};
use super::record::{RecordEntry, RecordWritten, Recorded, Recorder};
use super::shell::{Meanwhile, Shell};
use super::source::{GitView, LoadedRecords, Poll, Source};
use super::table::Table;
use super::unobserved::{ClockStep, UnobservedSpans};
use crate::cluster::lease::LeaseHeld;
use crate::manifest::ids::{CommitId, RolloutId};
use crate::plan::draft::RecordChange;
use crate::plan::input::Git;
use crate::record::state::Time;
use crate::rules::{Rule, holds};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tracing::Instrument as _;

/// What a term of leadership has.
pub struct Term<'a> {
    /// The process.
    pub shell: &'a Shell,
    /// The proof that we lead.
    pub held: LeaseHeld,
    /// Git.
    pub source: &'a mut Source,
    /// When nobody observed.
    pub gaps: &'a mut UnobservedSpans,
    /// Tells people.
    pub announcer: &'a mut Announcer,
    /// The newest state tip that any leader knew.
    pub anchor: &'a mut Option<CommitId>,
    /// What is remembered of each rollout.
    pub table: Table,
}

/// When to tick again; what comes first is sooner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Requeue {
    /// At once: something was done, or has moved.
    Now,
    /// In a moment: something did not succeed.
    Soon,
    /// When Git is back.
    WaitForGit,
    /// When something wakes us, or at the time that the table names.
    Idle,
}

impl Term<'_> {
    /// One tick. What is logged in it says in which, of which rollout, and for which action.
    pub async fn tick(&mut self) -> Requeue {
        let n = self.shell.metrics.ticked();
        self.look_and_act().instrument(tracing::info_span!("tick", n)).await
    }

    async fn look_and_act(&mut self) -> Requeue {
        let shell = self.shell;
        // Live first: what is looked up at the remote from here on is younger than what was read of the cluster.
        let snapshot = Snapshot::take(&shell.watches, &shell.namespaces, self.gaps, &shell.clock);
        let now = snapshot.now;
        if snapshot.step == ClockStep::Back {
            tracing::warn!("the clock was set back: what is remembered is asked anew");
            self.table.clear();
            shell.evidence.forget();
            self.source.retry();
        }
        shell.metrics.unread(&snapshot.unread());
        shell.evidence.age(now);
        self.table.wake(&shell.evidence.news());
        let Some(view) = self.source.view() else { return self.look_up().await };
        let (plans, next) = self.plan(&view, &snapshot).await;
        if plans.is_empty() {
            return next;
        }
        if view.git != Git::Fresh {
            return next.min(Requeue::WaitForGit);
        }
        let moved = if holds(Rule::LiveFirst) { self.look_up_same().await } else { None };
        let next = match moved {
            Some(moved) => next.min(moved),
            None => next.min(self.commit(&view, &plans, now).await),
        };
        // What was read of requests meanwhile is planned with next.
        let has_read = self.source.view().is_some_and(|now| now.requests != view.requests || now.peers != view.peers);
        if has_read { next.min(Requeue::Now) } else { next }
    }

    /// Whether Git could be asked last.
    #[must_use]
    pub fn git(&self) -> Git {
        self.source.view().map_or_else(|| Git::Away("not asked yet".to_owned()), |view| view.git.clone())
    }

    /// When something has to be looked at, if nothing happens before.
    #[must_use]
    pub fn wake_at(&self, now: Time) -> Option<Time> {
        [self.table.wake_at(now), self.shell.evidence.due()].into_iter().flatten().min()
    }

    /// Asks the remote whether the view that was planned from still holds; `None` if it does.
    async fn look_up_same(&mut self) -> Option<Requeue> {
        let shell = self.shell;
        let view = self.source.view()?;
        let anchor = self.anchor.clone();
        let meanwhile = Meanwhile { held: &self.held, view: &view, gaps: self.gaps, table: &self.table };
        let looked = shell.during(meanwhile, self.source.look_up_to_write(anchor.as_ref())).await;
        self.looked(looked).await
    }

    pub(super) fn meanwhile<'a>(&'a self, view: &'a GitView) -> Meanwhile<'a> {
        Meanwhile { held: &self.held, view, gaps: self.gaps, table: &self.table }
    }

    /// Looks at the remote.
    pub async fn look_up(&mut self) -> Requeue {
        let anchor = self.anchor.clone();
        let looked = match self.source.view() {
            Some(view) => {
                let meanwhile = Meanwhile { held: &self.held, view: &view, gaps: self.gaps, table: &self.table };
                self.shell.during(meanwhile, self.source.look_up(anchor.as_ref())).await
            }
            None => self.source.look_up(anchor.as_ref()).await,
        };
        self.looked(looked).await.unwrap_or(Requeue::Idle)
    }

    async fn looked(&mut self, looked: Poll) -> Option<Requeue> {
        match looked {
            Poll::Unchanged => None,
            Poll::Changed(view) => {
                if let LoadedRecords::Read(_) = view.records {
                    self.anchor.clone_from(&view.tips.state);
                }
                if let Some(why) = view.main.why_unreadable() {
                    tracing::warn!(why, "main cannot be read; its last good state stays");
                }
                if let LoadedRecords::Unreadable(why) = &view.records {
                    tracing::error!(why, "the record cannot be read: every rollout holds");
                }
                Some(Requeue::Now)
            }
            Poll::Unreachable(why) => Some(self.without(Git::Away(why)).await),
            Poll::WrongRepository(why) => Some(self.without(Git::Replaced(why)).await),
        }
    }

    /// Goes on with what was fetched last.
    async fn without(&mut self, git: Git) -> Requeue {
        let before = self.git();
        let reason = |git: &Git| git.trouble().map(|wait| wait.reason);
        let known = self.source.view().is_some() && reason(&before) == reason(&git);
        // A Secret that was mended and is wrong now is other news than one that is missing.
        if !known || before != git {
            match &git {
                Git::Fresh => {}
                Git::Away(why) => tracing::warn!(why, "Git is away: only retreats run"),
                Git::Replaced(why) => tracing::error!(why, "another repository lies there: only retreats run"),
            }
        }
        let anchor = self.anchor.clone();
        self.source.offline(git, anchor.as_ref()).await;
        // What goes back needs no Git, and is looked at at once; after that there is nothing to do but wait.
        if known { Requeue::WaitForGit } else { Requeue::Now }
    }

    /// Records what changed, then does what the record allows, then asks people.
    async fn commit(&mut self, view: &Arc<GitView>, plans: &Plans, now: Time) -> Requeue {
        if faults::record_last() || !holds(Rule::RecordFirst) {
            self.act_first(view, plans, now).await;
        }
        let entries: BTreeMap<RolloutId, RecordEntry<'_>> = plans
            .iter()
            .filter(|(_, planned)| planned.plan.record != RecordChange::Keep)
            .map(|(id, planned)| (id.clone(), planned.entry(view)))
            .collect();
        let mut recorded: BTreeSet<&RolloutId> = plans.keys().filter(|id| !entries.contains_key(id)).collect();
        let mut next = Requeue::Idle;
        let proof = if entries.is_empty() {
            Recorded::verified(view)
        } else {
            match self.record(view, plans, &entries, now).await {
                Ok(done) => {
                    recorded.extend(entries.keys().filter(|id| done.written.contains(*id)));
                    next = Requeue::Now;
                    Some(done.proof)
                }
                Err(next) => return next,
            }
        };
        let Some(proof) = proof else { return Requeue::WaitForGit };
        let view = self.source.view().unwrap_or_else(|| Arc::clone(view));
        let lists: Lists<'_> = recorded
            .iter()
            .filter_map(|id| Some((*id, plans.get(*id)?.advances().collect::<Vec<_>>())))
            .filter(|(_, list)| !list.is_empty())
            .collect();
        let executor = self.shell.executor(now);
        let ran = self.shell.during(self.meanwhile(&view), executor.advance(&self.held, &proof, &lists)).await;
        for ran in ran.values() {
            next = next.min(match ran {
                Ran::All(_) => Requeue::Now,
                Ran::Stopped(_) => Requeue::Soon,
                Ran::NotRecorded | Ran::Rests | Ran::Lost => Requeue::Idle,
            });
        }
        if self.ask(&proof, plans, &recorded, now).await {
            next = Requeue::Now;
        }
        next
    }

    /// Breaks the promise on purpose, for the test that shows that it would be noticed.
    #[cfg(feature = "faults")]
    async fn act_first(&self, view: &GitView, plans: &Plans, now: Time) {
        let entries = plans.iter().map(|(id, planned)| (id.clone(), planned.entry(view))).collect();
        let proof = Recorded::forged(view, &entries);
        let lists: Lists<'_> = plans.iter().map(|(id, planned)| (id, planned.advances().collect())).collect();
        self.shell.executor(now).advance(&self.held, &proof, &lists).await;
    }

    #[cfg(not(feature = "faults"))]
    async fn act_first(&self, _: &GitView, _: &Plans, _: Time) {}

    /// Pushes one commit for all that changed.
    async fn record<'a>(
        &mut self,
        view: &'a Arc<GitView>,
        plans: &Plans,
        entries: &'a BTreeMap<RolloutId, RecordEntry<'a>>,
        now: Time,
    ) -> Result<Done<'a>, Requeue> {
        if !self.shell.lead.still(&self.held) {
            return Err(Requeue::Idle);
        }
        let waiting = self.waiting(view, plans);
        let recorder = Recorder {
            store: self.source.store(),
            branches: self.source.branches(),
            instance: &self.shell.instance,
            metrics: &self.shell.metrics,
            waiting: &waiting,
            now,
        };
        let written = self.shell.during(self.meanwhile(view), recorder.record(view, entries)).await;
        match written {
            RecordWritten::Done { proof, tip, changes, left_out } => {
                self.leave_out(view, &left_out, now);
                let why = plans.iter().map(|(id, planned)| (id.clone(), planned.what())).collect();
                let before = |id: &RolloutId| view.records.get(id).and_then(|record| record.state.as_ref().ok());
                self.announcer.recorded(&changes, before, &why, now);
                let written: BTreeSet<RolloutId> = changes.keys().cloned().collect();
                written.iter().for_each(|id| self.table.recorded(id));
                *self.anchor = Some(tip.clone());
                self.source.pushed(tip, changes);
                Ok(Done { proof, written })
            }
            RecordWritten::Moved => Err(Requeue::Now),
            RecordWritten::Refused(left_out) => {
                self.leave_out(view, &left_out, now);
                Err(Requeue::Idle)
            }
            RecordWritten::Away(why) => {
                tracing::warn!(why, "it is not known whether the record was pushed; observes again");
                Err(self.without(Git::Away(why)).await)
            }
        }
    }

    /// Leaves rollouts alone for a while whose records the Git server does not take. The record cannot tell people of it.
    fn leave_out(&mut self, view: &GitView, left_out: &BTreeMap<RolloutId, String>, now: Time) {
        for (id, why) in left_out {
            self.table.rest(id, now);
            if self.table.rejected(id, why) {
                tracing::warn!(rollout = %id, why, "the record is not taken; the others go on");
                let record = view.records.get(id).and_then(|record| record.state.as_ref().ok());
                self.announcer.rejected(record, why, now);
            }
        }
        self.shell.metrics.rejected(self.table.rejections());
    }

    /// Makes and withdraws requests; says whether anything came of it that the next plan has to see.
    async fn ask(&mut self, proof: &Recorded<'_>, plans: &Plans, recorded: &BTreeSet<&RolloutId>, now: Time) -> bool {
        let mut made = false;
        let shell = self.shell;
        let Shell { instance, main, metrics, host, by, .. } = shell;
        let proposer = Proposer { instance, main, metrics, host: *host, by: *by, now };
        for (id, Planned { plan, .. }) in plans.iter().filter(|(id, _)| recorded.contains(id)) {
            if (plan.proposals.is_empty() && plan.void.is_empty()) || !shell.lead.still(&self.held) {
                continue;
            }
            let Some(view) = self.source.view() else { continue };
            let meanwhile = Meanwhile { held: &self.held, view: &view, gaps: self.gaps, table: &self.table };
            let asking = proposer.all(self.source, proof, id, &plan.proposals, &plan.void);
            match shell.during(meanwhile, asking).await {
                Came::Done => {
                    made = true;
                    self.table.rested(id);
                }
                Came::Later => self.table.rest(id, now),
                Came::Entangled(entangled) => {
                    made = true;
                    shell.evidence.entangled(id, entangled);
                }
            }
        }
        made
    }

    /// What each rollout waits on, in words, beyond the conditions that its record holds.
    fn waiting(&self, view: &GitView, plans: &Plans) -> BTreeMap<RolloutId, Vec<String>> {
        let mut waiting = BTreeMap::new();
        for (id, waits) in self.table.waits() {
            let before = view.records.get(id).and_then(|record| record.state.as_ref().ok());
            let after = match plans.get(id).map(|planned| &planned.plan.record) {
                Some(RecordChange::Write { state, .. }) => Some(&**state),
                Some(RecordChange::Keep | RecordChange::Remove { .. }) | None => before,
            };
            let told = |reason: &str| after.is_some_and(|state| state.conditions.iter().any(|c| c.reason == reason));
            let lines = waits.iter().filter(|wait| !told(wait.reason.as_str()));
            let lines: Vec<String> = lines.map(|wait| format!("{}: {}", wait.reason.as_str(), wait.message)).collect();
            waiting.insert(id.clone(), lines);
        }
        waiting
    }
}

/// What a push made possible.
struct Done<'a> {
    proof: Recorded<'a>,
    written: BTreeSet<RolloutId>,
}
