//! An open run on its way: where it stands, whether it goes on, waits or goes back.

use super::along::{self, TakenAlong};
use super::back::{self, Superseding, Turn};
use super::checks::{self, Measured, Soak};
use super::clock::with_clock;
use super::converge::{Converged, Drift, Spare, StableFirst};
use super::draft::{Draft, Manner};
use super::entry;
use super::exposure;
use super::introduce;
use super::jobs::{self, Way};
use super::nodes;
use super::procedure::{self, Stage, Step, observed};
use super::report::{Reason, Wait};
use super::retreat;
use super::troubled;
use super::unready::{self, Unready};
use crate::manifest::desired::{By, Plan};
use crate::manifest::duration::Span;
use crate::manifest::ids::{Percent, StepName};
use crate::record::history;
use crate::record::posture::{Directly, Posture};
use crate::record::state::{
    Outcome, Phase, Position, Promoted, Rest, RoleName, Route, Run, Serving, SetSource, StepClock, Then,
};
use crate::rules::{Rule, holds};
use crate::workload::inplace;
use crate::workload::readiness::{Available, Readiness};
use std::sync::Arc;

/// Moves an open run on.
pub fn forward(draft: &mut Draft<'_>) {
    let (Some(run), Some(plan)) = (draft.state.run.clone(), draft.plan.clone()) else {
        let why = "the record names an open run, but its plan is not on the state branch";
        draft.waits.push(Wait::new(Reason::RecordUnreadable, why));
        return;
    };
    let steps = procedure::forward(&plan, run.route, &draft.roles(&run));
    let Some(position) = draft.state.phase.position().cloned() else {
        entry::start(draft, &plan, &run, &steps);
        return;
    };
    let Some(at) = steps.iter().position(|s| s.name == position.step) else {
        let why = format!("the record stands on {}, which the run's plan does not have", position.step);
        draft.waits.push(Wait::new(Reason::RecordUnreadable, why));
        return;
    };
    let steps = nodes::named(draft, &plan, &run, steps, at);
    let step = &steps[at];
    let seen = look(draft, &plan, &run, (step, steps.get(at + 1)), &position);
    if draft.unread.is_none() {
        draft.note_met(&step.posture, &seen.converged);
    }
    draft.questions.extend(seen.measured.questions.iter().cloned());
    if let Some(open) = &mut draft.state.run {
        open.away.clone_from(&seen.measured.away);
    }
    if let Some(turn) = turn_back(draft, &plan, &run, step, &position, &seen) {
        match turn {
            Judgement::Back(turn) => back::turn(draft, &run, turn),
            Judgement::BackOnceRecorded(turn) => back::record_turn(draft, turn),
            Judgement::StayOnCandidate(why) => {
                let phase = Phase::Failed { why: why.clone(), since: draft.now(), standing: Serving::OnCandidate };
                draft.enter(phase, format!("stays on the candidate: {why}"));
            }
        }
        return;
    }
    seen.measured.next.into_iter().for_each(|next| draft.wake(next));
    if draft.unread.is_some() {
        return;
    }
    let taken = along::take(draft, &plan, &run, Some(step));
    if taken == TakenAlong::Recorded {
        draft.waits.extend(seen.converged.drifted.into_iter().chain(seen.converged.waits));
        tell_gates(draft, &plan, &run, steps.get(at + 1));
        return;
    }
    if step.stage == Stage::Progressing || step.name.as_str() == "shift" {
        let troubled = troubled::told(draft, &plan, &step.posture);
        draft.waits.extend(troubled);
    }
    go_on(draft, &plan, &run, &steps, at, &position, seen);
    along::tell(draft, taken);
}

/// Looks at the step that a run stands on, and at the Job before the next.
fn look(draft: &Draft<'_>, plan: &Plan, run: &Run, (step, next): (&Step, Option<&Step>), position: &Position) -> Seen {
    let soaking = procedure::soaking(plan, run, step, &position.clock, draft.now(), &draft.input.gaps);
    let soak = soaking.as_ref().map_or_else(|over| Soak::Over(*over), |_| Soak::Running);
    let converged = draft.converge(plan, &step.posture, manner(step, position));
    let left = (&converged, soaking.as_ref().ok());
    let hurries = step.stage != Stage::Finalising && troubled::hurries(draft, plan);
    Seen {
        measured: checks::measure(draft, plan, run, step, position, soak),
        tried: jobs::failed(draft, plan, run, next),
        unready: unready::look(&draft.context(plan, None, None), run, step, position, left),
        soaking: soaking.ok().filter(|_| !hurries || position.clock.exposed.is_none()),
        converged,
    }
}

/// How a step's posture is met.
#[must_use]
pub fn manner(step: &Step, position: &Position) -> Manner<'static> {
    let changes_stable = step.stage != Stage::Progressing && step.name.as_str() != "shift";
    // Where each version has objects of its own, the one that takes over is the candidate until *retire*.
    let changes_stable =
        changes_stable && !(step.posture.candidate.is_some() && step.posture.naming.services().is_some());
    Manner {
        drift: Drift::Report,
        stable_first: if changes_stable { StableFirst::Yes } else { StableFirst::No },
        spare: Spare::Goes,
        mark: None,
        fence: if step.name.as_str() == "return" { Some(position.seq) } else { None },
    }
}

/// What is known of the step that a run stands on.
struct Seen {
    converged: Converged,
    measured: Measured,
    /// Why the Job before the next step speaks against the version.
    tried: Option<String>,
    soaking: Option<Wait>,
    unready: Unready,
}

/// What evidence against going on comes to.
enum Judgement {
    Back(Turn),
    /// Not before the record says so.
    BackOnceRecorded(Turn),
    StayOnCandidate(String),
}

/// Everything that turns a run back (design §5). In *return* only a mark does; in *retire* nothing does any more.
fn turn_back(
    draft: &Draft<'_>,
    plan: &Plan,
    run: &Run,
    step: &Step,
    position: &Position,
    Seen { converged, measured, tried, soaking: _, unready }: &Seen,
) -> Option<Judgement> {
    let context = draft.context(plan, None, None);
    if step.name.as_str() == "retire" {
        return None;
    }
    if let Some(mark) = retreat::mark_seen(&context, run) {
        let turn = Turn::from_mark(mark);
        // Whoever cannot read the record may leave a mark after the run went on to *retire*, of which a controller that has
        // not asked Git since knows nothing: it would take back what is promoted. The push tells.
        let blindly = step.name.as_str() == "return" && !retreat::marked_knowingly(&context, run);
        return Some(if blindly { Judgement::BackOnceRecorded(turn) } else { Judgement::Back(turn) });
    }
    if step.name.as_str() == "return" {
        return None;
    }
    let asked = back::asked_for(draft, run, Superseding::at(step));
    if let Some(turn) = asked.filter(|turn| turn.then != Then::NextRun || !troubled::is_stranded(draft, plan)) {
        return Some(Judgement::Back(turn));
    }
    if draft.unread.is_some() {
        let bad = measured.bad.clone().filter(|_| holds(Rule::Checks));
        return bad.map(|why| Judgement::Back(Turn::failed(why)));
    }
    if let Some(why) = converged.refused.clone().or_else(|| nodes::failed(&context, step)) {
        return Some(Judgement::Back(Turn::failed(why)));
    }
    let gone = unready::left_alone(&context, step, position);
    if let Some(turn) = gone.clone().filter(|turn| turn.then == Then::Failed) {
        return Some(Judgement::Back(turn));
    }
    if let Some(why) = measured.bad.as_ref().filter(|_| holds(Rule::Checks)).or(tried.as_ref()) {
        return Some(Judgement::Back(Turn::failed(why.clone())));
    }
    let unheard = converged.barred.as_ref().or(measured.unanswered.as_ref());
    if let Some(turn) = gone.or_else(|| unheard.cloned().map(Turn::unmeasured)).or_else(|| unready.turn.clone()) {
        return Some(Judgement::Back(turn));
    }
    let ready = exposure::ready(&context);
    let (role, why) = overdue(draft, plan, position, converged)?;
    // Never all traffic onto an unready stable: the healthy candidate keeps it (C-19).
    if role == RoleName::Stable && step.posture.split.weight == Percent::ALL && ready.candidate > 0 {
        return Some(Judgement::StayOnCandidate(why));
    }
    Some(Judgement::Back(Turn::failed(why)))
}

/// A workload that is not ready by the deadline.
fn overdue(draft: &Draft<'_>, plan: &Plan, position: &Position, converged: &Converged) -> Option<(RoleName, String)> {
    let (role, readiness) = converged.not_ready.as_ref()?;
    let (why, left) = until_deadline(draft, plan, position, readiness)?;
    (left == Span::ZERO)
        .then(|| (*role, format!("{}: not ready after {}: {why}", position.step, plan.progress_deadline)))
}

/// What is missing, and how long it may still be (design §13.1): counted from the later of the step's entry and the moment
/// the workload was made, was written or stopped being available, while somebody observed: a record may take its time to Git. What its
/// controller has not seen yet has no deadline, as nothing is known of it. Once the step was reached only what is not
/// available counts: a pod that is moved to another node leaves the workload available.
fn until_deadline<'r>(
    draft: &Draft<'_>,
    plan: &Plan,
    position: &Position,
    readiness: &'r Readiness,
) -> Option<(&'r str, Span)> {
    let Readiness::NotReady { why, available } = readiness else { return None };
    let waiting = matches!(draft.state.phase, Phase::Waiting { .. } | Phase::WaitingPromotion { .. });
    let from = match available {
        Available::NotSince(since) => (*since).max(position.clock.entered),
        // Of a workload that both versions share no new pod may be there at all, and none be made.
        Available::Perhaps(_) if is_shared(plan) && position.clock.lost.is_some() => position.clock.lost?,
        _ if waiting || position.clock.exposed.is_some() => return None,
        Available::Perhaps(made) => made.map_or(position.clock.entered, |made| made.max(position.clock.entered)),
        Available::Unseen => return None,
    };
    let waited = observed(from, draft.now(), &draft.input.gaps);
    Some((why, Span::from_secs(plan.progress_deadline.as_secs().saturating_sub(waited.as_secs()))))
}

/// Sets `exposed`, lets the soak run, enters the next step.
fn go_on(
    draft: &mut Draft<'_>,
    plan: &Arc<Plan>,
    run: &Run,
    steps: &[Step],
    at: usize,
    position: &Position,
    Seen { mut converged, measured, tried: _, soaking, unready }: Seen,
) {
    let (step, next) = (&steps[at], steps.get(at + 1));
    let position = &unready::noted(draft, position, &unready);
    draft.waits.extend(converged.drifted.clone());
    converged.waits = unready::told(position, converged.waits);
    if !converged.reached {
        wake_at_deadline(draft, plan, position, &converged);
        if let Some(why) = gone(draft, plan, step, &converged)
            .filter(|_| position.clock.exposed.is_some() && position.clock.lost.is_none())
        {
            draft.note(format!("not in force any more: {}", why.as_str()));
            let clock = StepClock { lost: Some(draft.now()), ..position.clock };
            draft.state.phase = with_clock(&draft.state.phase, clock);
        }
        draft.waits.extend(converged.waits);
        if converged.unlisted {
            draft.take_inventory();
            draft.note("inventory");
        }
        tell_gates(draft, plan, run, next);
        return;
    }
    let returns = step.name.as_str() == "return" && position.clock.exposed.is_none();
    if let Some(wait) = introduce::following(&draft.context(plan, None, None)).filter(|_| returns) {
        draft.waits.push(wait);
        return;
    }
    let reached = procedure::reached(plan, step, &position.clock, draft.now(), &draft.input.gaps);
    if let Some(clock) = reached.filter(|_| procedure::soak(plan, run, step) > Span::ZERO) {
        draft.state.phase = with_clock(&draft.state.phase, clock);
        draft.note(if position.clock.lost.is_some() { "in force again" } else { "reached" });
        draft.wake(draft.now());
        return;
    }
    if soaking.is_some() {
        draft.waits.extend(if position.clock.failing { converged.waits } else { soaking.into_iter().collect() });
        tell_gates(draft, plan, run, next);
        return;
    }
    if !measured.waits.is_empty() {
        draft.waits.extend(measured.waits);
        tell_gates(draft, plan, run, next);
        return;
    }
    match next {
        None => finish(draft, run),
        Some(next) => entry::advance(draft, plan, run, next, position),
    }
}

/// Why live users do not reach any more what the step gives them. Where pods split the requests, endpoints lag behind every
/// change of pods: that alone is no reason. Of a workload that both versions share, no new pod being ready is one.
fn gone(draft: &Draft<'_>, plan: &Plan, step: &Step, converged: &Converged) -> Option<Reason> {
    let by = plan.traffic.as_ref().map(|traffic| traffic.router.by());
    let exposes = is_shared(plan) && !nodes::is_target(plan) && !step.posture.split.is_stable();
    let context = draft.context(plan, None, None);
    if exposes && exposure::ready(&context).candidate == 0 || exposure::is_starved(&context, step.posture.split.weight)
    {
        return Some(Reason::CandidateNotReady);
    }
    let by_route = by.is_none_or(|by| by == By::Route);
    // Whoever loses a kind that tidegate only applies still meets what the step gives them.
    let known = draft.live.missing.iter().any(|kind| !kind.is_other());
    let lost = |why: &Reason| {
        *why == Reason::LoweredByHand
            || *why == Reason::CrdMissing && known
            || matches!(*why, Reason::RouteNotEffective | Reason::BlockedByPeer) && by_route
    };
    converged.waits.iter().map(|wait| wait.reason).find(lost)
}

/// Whether both versions are pods of one workload.
fn is_shared(plan: &Plan) -> bool {
    plan.traffic.as_ref().is_some_and(|traffic| traffic.router.by() == By::Units)
}

/// A run that stands before a gate tells of it at each look, also while something else is missing: else what it waits on
/// would leave the record with each measurement, and come back.
fn tell_gates(draft: &mut Draft<'_>, plan: &Arc<Plan>, run: &Run, next: Option<&Step>) {
    let Some(next) = next else { return };
    if let Phase::Waiting { .. } | Phase::WaitingPromotion { .. } = draft.state.phase {
        let unmet = entry::unmet(draft, plan, run, next);
        draft.waits.extend(unmet);
        let job = jobs::before(draft, plan, run, next, Way::Barred);
        draft.waits.extend(job);
    }
}

fn wake_at_deadline(draft: &mut Draft<'_>, plan: &Plan, position: &Position, converged: &Converged) {
    let readiness = converged.not_ready.as_ref().map(|(_, readiness)| readiness);
    if let Some((_, left)) = readiness.and_then(|readiness| until_deadline(draft, plan, position, readiness)) {
        draft.wake(draft.now() + left.delta());
    }
}

/// Enters a step: its posture becomes what the record allows.
pub fn enter(draft: &mut Draft<'_>, run: &Run, step: &Step, what: String) {
    let posture = with_baseline(draft, run, step).unwrap_or_else(|| step.posture.clone());
    let posture = draft
        .plan
        .as_ref()
        .map_or_else(|| posture.clone(), |plan| exposure::let_in(&draft.context(plan, None, None), posture.clone()));
    draft.allow(posture);
    if step.name.as_str() == "retire" {
        promote(draft, run);
    }
    if let Some(open) = &mut draft.state.run {
        open.skipped = None;
    }
    let position =
        Position { step: step.name.clone(), seq: draft.state.seq + 1, clock: StepClock::entered(draft.now()) };
    draft.enter(step.stage.phase(position), what);
}

/// Records the pods that stable has to keep, and renders the step with them: at the run's first step; and again before more of the
/// traffic leaves it, as what it has until then is what the way back needs, and what a scaler takes away after that. Where the number of
/// pods is the exposure, that is reckoned from those of the first step.
fn with_baseline(draft: &mut Draft<'_>, run: &Run, step: &Step) -> Option<Posture> {
    let plan = draft.plan.clone()?;
    let first = match run.route {
        Route::Plain => step.name.as_str() == "promote",
        Route::Phases | Route::Rollback => step.name.as_str() == "prepare",
    };
    let leaves = step.stage == Stage::Progressing || step.name.as_str() == "shift";
    let by_route = plan.traffic.as_ref().is_some_and(|traffic| matches!(traffic.router.by(), By::Route | By::Selector));
    if !(first || leaves && by_route) {
        return None;
    }
    let stable = draft.input.sets.get(&run.from)?;
    let now = inplace::least_stable(stable, &draft.naming, &draft.context(&plan, None, None).facts());
    let baseline = draft.state.run.as_mut()?.baseline.entry(draft.input.me.cluster.clone()).or_default();
    *baseline = now.max(*baseline);
    let run = draft.state.run.clone()?;
    let steps = procedure::forward(&plan, run.route, &draft.roles(&run));
    steps.into_iter().find(|other| other.name == step.name).map(|step| step.posture)
}

/// `promoted` changes in the commit that enters *retire*.
fn promote(draft: &mut Draft<'_>, run: &Run) {
    let label = draft.roles(run).new.pods;
    // A rollback brings back what main had before, and the record knows where.
    let source = (run.route != Route::Rollback).then(|| run.source.clone());
    let source = source.zip(run.path.clone()).map(|(commit, path)| SetSource { commit, path });
    let set = draft.input.sets.get(&run.to);
    let served =
        run.along.as_ref().map(|along| along.source.clone()).filter(|_| source.is_some()).or_else(|| source.clone());
    draft.state.promoted = Some(Promoted {
        set: run.to.clone(),
        revision: set.map_or(&run.revision, |set| &set.revision).clone(),
        pods: run.pods.clone(),
        label,
        run: run.id.clone(),
        commit: served.as_ref().map(|source| source.commit.clone()),
        path: served.map(|source| source.path),
        decided: source,
        directly: Directly::new(),
        at: draft.now(),
    });
}

/// The run has retired: nothing is open any more.
fn finish(draft: &mut Draft<'_>, run: &Run) {
    let now = draft.now();
    history::end_run(&mut draft.state, Outcome::Promoted, "all steps done", now);
    draft.plan = None;
    draft.enter(Phase::Steady { how: Rest::Succeeded, since: now }, format!("run {} succeeded", run.id));
}

/// `Failed(OnCandidate)`: a person retries or aborts, or main moves on.
pub fn on_candidate(draft: &mut Draft<'_>, why: &str) {
    let (Some(run), Some(plan)) = (draft.state.run.clone(), draft.plan.clone()) else { return };
    let context = draft.context(&plan, None, None);
    let marked = retreat::mark_seen(&context, &run).map(Turn::from_mark);
    let dead = || {
        (draft.unread.is_none() && exposure::ready(&context).candidate == 0)
            .then(|| Turn::failed(format!("{why}; {}", exposure::no_endpoint(&context))))
    };
    if let Some(turn) = marked.or_else(|| back::asked_for(draft, &run, Superseding::Interrupts)).or_else(dead) {
        back::turn(draft, &run, turn);
        return;
    }
    let act = format!("tidegate retry {} or tidegate abort {}", draft.input.id, draft.input.id);
    draft.waits.push(Wait::new(Reason::OnCandidate, why.to_owned()).act(act));
}

/// A person tries *promote* again.
pub fn retry_promotion(draft: &mut Draft<'_>) {
    let position =
        Position { step: StepName::fixed("promote"), seq: draft.state.seq + 1, clock: StepClock::entered(draft.now()) };
    draft.enter(Phase::Promoting(position), "promotion is tried again");
}

/// Where a way back that a person or main asked for ends.
#[must_use]
pub fn outcome_of(then: Then) -> Outcome {
    match then {
        Then::Reverted => Outcome::Reverted,
        Then::Aborted => Outcome::Aborted,
        Then::Failed => Outcome::Failed,
        Then::Unmeasured => Outcome::Unmeasured,
        Then::NextRun | Then::Terminating => Outcome::Superseded,
    }
}
