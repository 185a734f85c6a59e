//! The plans of one tick: who is planned and in which order, and what goes back, which waits for no other plan.

use super::caught;
use super::execute::{Lists, Ran};
use super::observe::{Scene, Snapshot};
use super::record::RecordEntry;
use super::source::GitView;
use super::tick::{Requeue, Term};
use crate::analysis::judge;
use crate::manifest::ids::RolloutId;
use crate::plan::action::Action;
use crate::plan::draft::{RecordChange, RolloutPlan};
use crate::plan::evidence::Evidence;
use crate::plan::input::{Input, Live, MayStart};
use crate::plan::report::Wait;
use crate::plan::{tracked, unread};
use crate::record::history::is_under_way;
use crate::record::state::{Phase, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How many rollouts are planned before what goes back of them is done.
pub(super) const BATCH: usize = 16;

/// A rollout and its plan.
pub(super) struct Planned {
    pub(super) input: Input,
    pub(super) plan: RolloutPlan,
}

pub(super) type Plans = BTreeMap<RolloutId, Planned>;

impl Term<'_> {
    /// The rollouts that may be awake.
    fn restless(&mut self, scene: &Scene<'_>, view: &Arc<GitView>) -> BTreeSet<RolloutId> {
        self.table.guarded(scene.guard);
        let restless = self.table.restless(view, scene.snapshot);
        self.table.looked(view, scene.snapshot);
        restless.unwrap_or_else(|| {
            let all = scene.rollouts();
            for gone in self.table.keep(&all) {
                self.shell.evidence.gone(&gone);
            }
            all
        })
    }

    /// Plans every rollout that is awake, does what goes back, and asks what they want to know. Returns the plans that want Git, and
    /// still hold: not those of rollouts whose world had moved.
    pub(super) async fn plan(&mut self, view: &Arc<GitView>, snapshot: &Snapshot) -> (Plans, Requeue) {
        let me = self.shell.writer(&self.held);
        let guard = self.shell.guard.borrow().clone();
        let scene = Scene { me: &me, view, snapshot, by: self.shell.by, guard: &guard };
        let ids = self.restless(&scene, view);
        let (mut plans, mut next) = (Plans::new(), Requeue::Idle);
        if ids.is_empty() {
            return (plans, next);
        }
        let alarmed = |id: &RolloutId| is_alarmed(view, id, &self.shell.evidence.of(id));
        let (first, others): (BTreeSet<_>, BTreeSet<_>) = ids.into_iter().partition(alarmed);
        let phase = |id: &RolloutId| view.records.get(id)?.state.as_ref().ok().map(|state| &state.phase);
        let (first, others) = (Vec::from_iter(first), in_turn(others, phase));
        let mut open = view.records.states().filter(|state| is_under_way(state)).count();
        // What goes back waits for no plan of another.
        for batch in first.chunks(BATCH).chain(others.chunks(BATCH)) {
            let mut made = Plans::new();
            for id in batch {
                let planned = self.plan_one(&scene, id, &mut open);
                made.extend(planned.map(|planned| (id.clone(), planned)));
                next = next.min(self.heed(view, snapshot.now).await);
            }
            let (void, then) = self.retreat(&made, snapshot.now).await;
            made.retain(|id, _| !void.contains(id));
            next = next.min(then).min(self.heed(view, snapshot.now).await);
            // With each batch: after the last of many, bad news of the first would wait until all are asked for and let go.
            self.inquire(&made);
            made.retain(|id, planned| self.wants_git(planned) && !self.table.rests(id, snapshot.now));
            plans.extend(made);
        }
        self.show(view);
        (plans, next)
    }

    /// Plans it if it is awake; `open` is how many runs are under way.
    fn plan_one(&mut self, scene: &Scene<'_>, id: &RolloutId, open: &mut usize) -> Option<Planned> {
        let (view, snapshot) = (scene.view, scene.snapshot);
        let limit = view.main.max_concurrent_runs();
        let may_start = if *open < limit { MayStart::Yes } else { MayStart::No { limit } };
        let fingerprint = scene.fingerprint(id, may_start);
        if self.table.sleeps(id, &fingerprint, snapshot) {
            return None;
        }
        self.shell.evidence.examined(id);
        let (input, plan) = caught::plan(scene, id, self.shell.evidence.of(id), may_start)?;
        self.shell.watches.want(&id.namespace, &unread::needs(&input));
        tracing::debug!(rollout = %id, "planned");
        for wait in &plan.waits {
            let until = wait.until.map(tracing::field::display);
            tracing::debug!(rollout = %id, reason = wait.reason.as_str(), wait.message, until, "waits");
        }
        if let RecordChange::Write { state, .. } = &plan.record {
            let before = view.records.get(id).and_then(|record| record.state.as_ref().ok());
            *open += usize::from(is_under_way(state) && !before.is_some_and(is_under_way));
        }
        self.table.planned(&input, fingerprint, &plan);
        let asks = !plan.waits.is_empty() || !plan.needs.is_empty() || !plan.questions.is_empty();
        // A record that Git does not take is planned again, from the same answers.
        if !asks && plan.record == RecordChange::Keep {
            self.shell.evidence.settled(id, &tracked::watched(&input));
        }
        Some(Planned { input, plan })
    }

    /// Does what goes back of rollouts that bad news has come of: it waits for no other plan.
    async fn heed(&mut self, view: &GitView, now: Time) -> Requeue {
        let done = self.shell.retreat_alarmed(&self.meanwhile(view)).await;
        done.iter().for_each(|first| self.announcer.retreated(first, now));
        if done.is_empty() { Requeue::Idle } else { Requeue::Now }
    }

    /// Asks what these plans want to know. Nobody waits for the answers.
    fn inquire(&self, plans: &Plans) {
        let evidence = &self.shell.evidence;
        for (id, Planned { input, plan }) in plans {
            evidence.measure(id, &plan.questions);
            evidence.look(id, &plan.lookups);
            evidence.fetch_reviews(id, &plan.review_queries);
            if let Live::Seen(live) = &input.live {
                evidence.ask(id, &plan.needs, live);
            }
        }
    }

    /// Whether there is anything to do that needs Git, or its leave.
    fn wants_git(&self, planned: &Planned) -> bool {
        let plan = &planned.plan;
        let first = planned.advances().next();
        plan.record != RecordChange::Keep
            || first.is_some_and(|action| !self.shell.evidence.rests(action, planned.input.now))
            || !plan.proposals.is_empty()
            || !plan.void.is_empty()
    }

    /// Does what goes back; returns the rollouts whose plans are void, because the world had moved.
    async fn retreat(&mut self, plans: &Plans, now: Time) -> (BTreeSet<RolloutId>, Requeue) {
        let mut lists = Lists::new();
        for (id, planned) in plans {
            let due: Vec<&Action> = planned.retreats().collect();
            if !due.is_empty() {
                lists.insert(id, due);
            }
        }
        let (mut void, mut next) = (BTreeSet::new(), Requeue::Idle);
        if lists.is_empty() {
            return (void, next);
        }
        for (id, ran) in self.shell.executor(now).retreats(&self.held, &lists).await {
            match ran {
                Ran::All(_) => {
                    next = Requeue::Now;
                    if let Some(first) = lists.get(&id).and_then(|list| list.first()) {
                        self.announcer.retreated(first, now);
                    }
                }
                ran @ (Ran::Stopped(_) | Ran::Lost | Ran::NotRecorded | Ran::Rests) => {
                    next = next.min(Requeue::Soon);
                    if ran.voids() {
                        void.insert(id);
                    }
                }
            }
        }
        (void, next)
    }

    fn show(&self, view: &GitView) {
        self.shell.metrics.rollouts(view.records.states(), self.table.reasons());
        let state = |id: &RolloutId| view.records.get(id)?.state.as_ref().ok();
        let reasons = |waits: &[Wait]| waits.iter().map(|wait| wait.reason).collect();
        self.shell.metrics.inform(self.table.waits().map(|(id, waits)| (id, state(id), reasons(waits))));
        self.shell.metrics.rejected(self.table.rejections());
    }
}

impl Planned {
    pub(super) fn retreats(&self) -> impl Iterator<Item = &Action> {
        self.plan.going_back()
    }

    pub(super) fn advances(&self) -> impl Iterator<Item = &Action> {
        self.plan.going_forward()
    }

    pub(super) fn entry<'a>(&'a self, view: &'a GitView) -> RecordEntry<'a> {
        let before = view.records.get(&self.input.id).and_then(|record| record.state.as_ref().ok());
        RecordEntry { before, change: &self.plan.record, sets: &self.input.sets }
    }

    pub(super) fn what(&self) -> String {
        match &self.plan.record {
            RecordChange::Keep => String::new(),
            RecordChange::Write { what, .. } | RecordChange::Remove { what } => what.clone(),
        }
    }
}

/// Whether an answer that is there speaks against the version of an open run.
pub(super) fn is_alarmed(view: &GitView, id: &RolloutId, evidence: &Evidence) -> bool {
    let plan = view.records.get(id).and_then(|record| record.plan.as_ref());
    plan.is_some_and(|plan| judge::is_alarming(plan.checks.values(), &evidence.readings))
}

/// The order in which places for runs are handed out: who has waited longest to start comes first, then all others by name.
fn in_turn<'a>(ids: BTreeSet<RolloutId>, phase: impl Fn(&RolloutId) -> Option<&'a Phase>) -> Vec<RolloutId> {
    let since = |id: &RolloutId| match phase(id) {
        Some(Phase::Waiting { at: None, since, .. }) => *since,
        Some(_) | None => Time::MAX,
    };
    let mut ids: Vec<RolloutId> = ids.into_iter().collect();
    ids.sort_by_cached_key(since);
    ids
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fixture::{position, time};

    #[test]
    fn who_has_waited_longest_starts_first() {
        let next = || "prepare".parse().unwrap();
        let phases: BTreeMap<RolloutId, Phase> = [
            ("shop/a", Phase::Waiting { at: None, next: next(), since: time("12:00:00") }),
            ("shop/b", Phase::Progressing(position("tenth"))),
            ("shop/c", Phase::Waiting { at: None, next: next(), since: time("08:00:00") }),
            ("shop/d", Phase::Waiting { at: Some(position("tenth")), next: next(), since: time("07:00:00") }),
            ("shop/e", Phase::Waiting { at: None, next: next(), since: time("12:00:00") }),
        ]
        .map(|(id, phase)| (id.parse().unwrap(), phase))
        .into();
        let ids = phases.keys().cloned().chain(["shop/aa".parse().unwrap()]).collect();
        let order = in_turn(ids, |id| phases.get(id)).iter().map(|id| id.name.to_string()).collect::<Vec<_>>();
        assert_eq!(order, ["c", "a", "e", "aa", "b", "d"]);
    }
}
