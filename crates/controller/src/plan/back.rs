//! The way back: why a run takes it, and its steps.

use super::action::Verb;
use super::along;
use super::clock::with_clock;
use super::converge::{self, Drift, Spare, StableFirst};
use super::draft::{Draft, Manner};
use super::exposure;
use super::forward::outcome_of;
use super::input::Desired;
use super::introduce;
use super::procedure::{self, Step};
use super::report::{Reason, Wait};
use super::retreat;
use super::troubled;
use crate::gate::BrakeWord;
use crate::manifest::desired::Plan;
use crate::manifest::duration::Span;
use crate::manifest::ids::StepName;
use crate::manifest::object::APPLIED;
use crate::record::history;
use crate::record::state::{Phase, Position, Rest, Run, Serving, StepClock, Then};
use crate::rules::{Rule, holds};
use crate::workload::live::WriteOutcome;
use crate::workload::routers::RouteStatus;

/// Why a run goes back, and where that ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// Why.
    pub why: String,
    /// Where it ends.
    pub then: Then,
}

const MARK_WORDS: [(Then, &str); 6] = [
    (Then::Failed, "failed"),
    (Then::Aborted, "aborted"),
    (Then::Reverted, "reverted"),
    (Then::Unmeasured, "unmeasured"),
    (Then::NextRun, "superseded"),
    (Then::Terminating, "removed"),
];

impl Turn {
    /// Evidence is against the revision.
    #[must_use]
    pub fn failed(why: String) -> Self {
        Self { why, then: Then::Failed }
    }

    /// Nothing speaks against the revision, and nothing for it.
    #[must_use]
    pub fn unmeasured(why: String) -> Self {
        Self { why, then: Then::Unmeasured }
    }

    /// What a mark says: `<word>: <why>`. A mark that cannot be read means that evidence was against the revision.
    #[must_use]
    pub fn from_mark(mark: &str) -> Self {
        let known = MARK_WORDS.iter().find_map(|(then, word)| {
            let why = mark.strip_prefix(word)?.strip_prefix(": ")?;
            Some(Self { why: why.to_owned(), then: *then })
        });
        known.unwrap_or_else(|| Self::failed(mark.to_owned()))
    }

    fn as_mark(&self) -> String {
        let word = MARK_WORDS.iter().find(|(then, _)| *then == self.then).map_or("failed", |(_, word)| *word);
        format!("{word}: {}", self.why)
    }
}

/// Whether what main says now may interrupt a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Superseding {
    /// It does.
    Interrupts,
    /// From *promote* on it waits until the run has ended.
    Waits,
}

impl Superseding {
    /// What holds at a step.
    #[must_use]
    pub fn at(step: &Step) -> Self {
        match step.name.as_str() {
            "promote" | "return" | "retire" => Self::Waits,
            _ => Self::Interrupts,
        }
    }
}

/// What people, the brake or main ask for: the first of them that takes this run back.
#[must_use]
pub fn asked_for(draft: &Draft<'_>, run: &Run, superseding: Superseding) -> Option<Turn> {
    if let Some(why) = &draft.aborted {
        return Some(Turn { why: why.clone(), then: Then::Aborted });
    }
    if draft.input.brake == Ok(Some(BrakeWord::Revert)) {
        return Some(Turn { why: "the brake in the cluster says revert".to_owned(), then: Then::Aborted });
    }
    if superseding == Superseding::Waits || run.route == crate::record::state::Route::Rollback {
        return None;
    }
    match &draft.input.desired {
        Desired::Wanted(rollout) if rollout.set.revision == run.revision => None,
        Desired::Wanted(rollout) => {
            let promoted = draft.state.promoted.as_ref().map(|p| &p.revision);
            if promoted != Some(&rollout.set.revision) && along::is_along(draft, run, rollout) {
                return None;
            }
            let brought = draft.input.sets.get(&run.to);
            let tracked =
                brought.is_some_and(|set| set.tracked != rollout.set.tracked && set.objects == rollout.set.objects);
            let what = if tracked { "what is tracked" } else { "main" };
            if promoted == Some(&rollout.set.revision) {
                Some(Turn { why: format!("{what} is back at the promoted version"), then: Then::Reverted })
            } else {
                let why = format!("{what} moved on to {}", rollout.set.revision.short());
                Some(Turn { why, then: Then::NextRun })
            }
        }
        Desired::Gone => Some(Turn { why: "the rollout was removed from main".to_owned(), then: Then::Terminating }),
        Desired::Lacking(..) | Desired::Rejected(_) | Desired::Unreadable(_) => None,
    }
}

/// Turns a run back: traffic at once, the record afterwards. The old posture stays as ceiling until live was read lower.
pub fn turn(draft: &mut Draft<'_>, run: &Run, turn: Turn) {
    go_back(draft, run, &turn);
    if let Some(plan) = draft.plan.clone().filter(|_| !holds(Rule::LowerLast)) {
        let [back, _] = procedure::back(&plan, run.route, &draft.roles(run));
        draft.allow(back.posture);
    }
    record_turn(draft, turn);
}

/// Says that a run goes back. It does once that is recorded.
pub fn record_turn(draft: &mut Draft<'_>, turn: Turn) {
    let position =
        Position { step: StepName::fixed("split"), seq: draft.state.seq + 1, clock: StepClock::entered(draft.now()) };
    // What was skipped on the way forward is nothing that a person has said of the way back.
    if let Some(run) = &mut draft.state.run {
        run.skipped = None;
    }
    let what = format!("goes back: {}", turn.why);
    draft.enter(Phase::Reverting { position, why: turn.why, then: turn.then }, what);
}

/// Plans the retreat; says whether live was read back, marked and serving.
fn go_back(draft: &mut Draft<'_>, run: &Run, turn: &Turn) -> bool {
    let Some(plan) = draft.plan.clone() else { return false };
    let roles = draft.roles(run);
    let retreat = {
        let context = draft.context(&plan, None, None);
        retreat::retreat(&context, run, &roles.old, &turn.as_mark())
    };
    let blocked: Vec<Wait> = retreat.actions.iter().filter_map(|action| failed_before(draft, &action.verb)).collect();
    draft.retreats = retreat.actions;
    draft.waits.extend(blocked);
    draft.waits.extend(retreat.waits);
    retreat.seen
}

/// What the cluster said against a retreat that is due still. It is tried again at each look.
fn failed_before(draft: &Draft<'_>, verb: &Verb) -> Option<Wait> {
    let Verb::Apply { object, .. } = verb else { return None };
    let digest = object.annotation(APPLIED)?.to_owned();
    let answer = draft.input.evidence.writes.get(&(object.reference().clone(), digest))?;
    let why = match &answer.outcome {
        WriteOutcome::Done(_) | WriteOutcome::Stale(_) => return None,
        WriteOutcome::Conflict { manager, fields } => format!("{manager} owns {}", fields.join(", ")),
        WriteOutcome::MissingKind(kind) => format!("the cluster does not serve {kind}"),
        WriteOutcome::Refused(why) | WriteOutcome::Forbidden(why) | WriteOutcome::Retriable(why) => why.clone(),
    };
    Some(Wait::new(Reason::RetreatBlocked, format!("{}: {why}", object.reference())).since(answer.at))
}

/// A run on its way back.
pub fn reverting(draft: &mut Draft<'_>, position: &Position, why: &str, then: Then) {
    let (Some(run), Some(plan)) = (draft.state.run.clone(), draft.plan.clone()) else {
        let why = "the record names a run that goes back, but its plan is not on the state branch";
        draft.waits.push(Wait::new(Reason::RecordUnreadable, why));
        return;
    };
    let turn = Turn { why: why.to_owned(), then };
    let roles = draft.roles(&run);
    let [drain, retire] = procedure::back(&plan, run.route, &roles);
    match position.step.as_str() {
        "retire" if draft.unread.is_some() => {}
        "retire" => retiring(draft, &plan, &run, [&drain, &retire], &turn),
        "return" => {
            if go_back(draft, &run, &turn) {
                leave_return(draft, &plan, &run, [&drain, &retire], &turn);
            }
        }
        _ => {
            if go_back(draft, &run, &turn) && is_served(draft, &plan, position) {
                next(draft, &drain, &turn);
            } else if let Some(down) = draft.posture().cloned().and_then(|live| troubled::told(draft, &plan, &live)) {
                draft.waits.retain(|wait| wait.reason != Reason::StableNotReady);
                draft.waits.push(down);
            }
        }
    }
}

/// Whether the lowered split is served, as far as a proxy that teams share tells: one that keeps what it had serves the old split, and the old
/// posture stays as ceiling until then. Of a proxy that is not looked at nobody knows.
fn is_served(draft: &mut Draft<'_>, plan: &Plan, position: &Position) -> bool {
    let (looks, following) = {
        let context = draft.context(plan, None, None);
        (context.tree().is_some() && holds(Rule::InForceLast), introduce::following(&context))
    };
    if !looks {
        return true;
    }
    let wait = match (following, back_in_force(draft, plan, position)) {
        (_, Standing::Awaited(wait)) | (Some(wait), Standing::InForce) => wait,
        (None, Standing::InForce) | (_, Standing::Unsaid) => return true,
    };
    draft.waits.push(wait);
    false
}

fn next(draft: &mut Draft<'_>, step: &Step, turn: &Turn) {
    draft.allow(step.posture.clone());
    let position =
        Position { step: step.name.clone(), seq: draft.state.seq + 1, clock: StepClock::entered(draft.now()) };
    let what = match step.name.as_str() {
        "return" => "all traffic on stable",
        _ => "the candidate retires",
    };
    draft.enter(Phase::Reverting { position, why: turn.why.clone(), then: turn.then }, what);
}

/// Requests in flight on the candidate have had their time, counted from when the route is in force: until then more come. Where it may
/// never be as it is, *retire* takes the candidate's name out, and lets them drain.
fn leave_return(draft: &mut Draft<'_>, plan: &Plan, run: &Run, [step, retire]: [&Step; 2], turn: &Turn) {
    let Some(position) = draft.state.phase.position().cloned() else { return };
    let is_new = position.clock.exposed.is_none() && step.posture.candidate.is_some();
    let following = introduce::following(&draft.context(plan, None, None)).filter(|_| is_new);
    if let Some(wait) = following {
        draft.waits.push(wait);
    } else if step.soak == Span::ZERO {
        next(draft, retire, turn);
    } else if position.clock.exposed.is_none() {
        match back_in_force(draft, plan, &position) {
            Standing::InForce => see_in_force(draft, &position),
            Standing::Unsaid => {
                next(draft, retire, turn);
                let unsaid = StepClock { lost: Some(draft.now()), ..StepClock::entered(draft.now()) };
                draft.state.phase = with_clock(&draft.state.phase, unsaid);
            }
            Standing::Awaited(wait) => draft.waits.push(wait),
        }
    } else if draft.unread.is_none() && drained(draft, plan, run, step, &position) {
        next(draft, retire, turn);
    }
}

fn see_in_force(draft: &mut Draft<'_>, position: &Position) {
    let clock = StepClock { exposed: Some(draft.now()), lost: None, ..position.clock };
    draft.state.phase = with_clock(&draft.state.phase, clock);
    draft.note("the route back is in force");
    draft.wake(draft.now());
}

fn drained(draft: &mut Draft<'_>, plan: &Plan, run: &Run, step: &Step, position: &Position) -> bool {
    let wait = procedure::soaking(plan, run, step, &position.clock, draft.now(), &draft.input.gaps).ok();
    let over = wait.is_none();
    draft.waits.extend(wait);
    over
}

/// Whether the route that leads all to stable is in force.
enum Standing {
    InForce,
    /// It is refused, or nobody has said so for too long: as it names what cannot be served, or as what would be said was said before.
    Unsaid,
    Awaited(Wait),
}

fn back_in_force(draft: &mut Draft<'_>, plan: &Plan, position: &Position) -> Standing {
    let context = draft.context(plan, None, None);
    // A route that somebody deleted sends nobody anywhere; *retire* makes it again.
    let there = exposure::routes(&context).first().is_some_and(|route| context.live.get(route).is_some());
    if let Some((why, since)) = exposure::frozen(&context).filter(|_| there) {
        // However long that takes.
        let wait = Wait::new(Reason::RetreatBlocked, format!("the way back is written, and not served: {why}"));
        let act = "have whoever the message names mend it, or take the old split out of the proxy by hand";
        return Standing::Awaited(Wait { since, ..wait }.act(act));
    }
    let Some(wait) = converge::not_in_force(&context).filter(|_| there) else { return Standing::InForce };
    let refused = matches!(exposure::status(&context), RouteStatus::Refused { .. } | RouteStatus::Barred { .. });
    let waited = procedure::observed(position.clock.entered, draft.now(), &draft.input.gaps);
    let left = plan.progress_deadline.as_secs().saturating_sub(waited.as_secs());
    if refused || left == 0 {
        return Standing::Unsaid;
    }
    draft.wake(draft.now() + Span::from_secs(left).delta());
    Standing::Awaited(wait)
}

/// How *retire* is met on the way back: marks are lifted. The candidate goes at once, unless requests in flight have still to drain.
#[must_use]
pub fn retiring_manner(position: &Position) -> Manner<'static> {
    let drains = position.clock.lost.or(position.clock.exposed).is_some();
    Manner {
        drift: Drift::Report,
        stable_first: StableFirst::No,
        spare: if drains { Spare::Stays } else { Spare::Goes },
        mark: None,
        fence: None,
    }
}

fn retiring(draft: &mut Draft<'_>, plan: &Plan, run: &Run, [drain, step]: [&Step; 2], turn: &Turn) {
    let Some(position) = draft.state.phase.position().cloned() else { return };
    let converged = draft.converge(plan, &step.posture, retiring_manner(&position));
    if converged.unlisted {
        draft.take_inventory();
        draft.note("inventory");
    }
    if converged.reached {
        end(draft, run, turn);
        return;
    }
    let is_written = converged.waits.is_empty() && converged.actions.is_empty();
    draft.waits.extend(converged.waits);
    if !is_written {
        return;
    }
    if position.clock.lost.is_some() {
        match introduce::following(&draft.context(plan, None, None)) {
            Some(wait) => draft.waits.push(wait),
            None => see_in_force(draft, &position),
        }
    } else if drained(draft, plan, run, &Step { soak: drain.soak, ..step.clone() }, &position) {
        draft.state.phase = with_clock(&draft.state.phase, StepClock { exposed: None, ..position.clock });
        draft.note("requests in flight have drained");
        draft.wake(draft.now());
    }
}

/// The run is over: nothing of it is left in the cluster.
pub fn end(draft: &mut Draft<'_>, run: &Run, turn: &Turn) {
    let now = draft.now();
    history::end_run(&mut draft.state, outcome_of(turn.then), &turn.why, now);
    draft.plan = None;
    let what = format!("run {} ended: {:?}: {}", run.id, outcome_of(turn.then), turn.why);
    match turn.then {
        Then::Failed => {
            draft.enter(Phase::Failed { why: turn.why.clone(), since: now, standing: Serving::Stable }, what);
        }
        Then::Reverted | Then::Aborted | Then::Unmeasured | Then::NextRun => {
            draft.enter(Phase::Steady { how: Rest::Reverted, since: now }, what);
        }
        Then::Terminating => draft.leave(&what),
    }
}
