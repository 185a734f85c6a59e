//! Time of a soak in which a pod of the candidate that has served is not ready: it shows nothing of a good version, so it is no part of
//! the soak, and there is a limit to it. Pods that are only being made count for nothing: they serve nobody yet.

use super::back::Turn;
use super::clock::with_clock;
use super::context::Context;
use super::converge::Converged;
use super::draft::Draft;
use super::exposure;
use super::procedure::{self, Stage, Step, observed};
use super::report::{Reason, Wait};
use crate::manifest::desired::{By, Router};
use crate::manifest::duration::Span;
use crate::manifest::ids::Percent;
use crate::record::state::{Position, RoleName, Run, StepClock, Time};
use crate::rules::{Rule, holds};
use crate::workload::readiness;

/// What comes of it at a step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unready {
    /// What the clock is to say, and why.
    pub clock: Option<(StepClock, &'static str)>,
    /// Why the run goes back.
    pub turn: Option<Turn>,
    /// When that has to be looked at again.
    pub wake: Option<Time>,
}

/// Looks at the candidate's pods while a step soaks: how its posture is met, and what is left of the soak.
#[must_use]
pub fn look(
    context: &Context<'_>,
    run: &Run,
    step: &Step,
    Position { clock, .. }: &Position,
    (converged, soaking): (&Converged, Option<&Wait>),
) -> Unready {
    let mut found = Unready::default();
    if !holds(Rule::GoodTime) || step.stage == Stage::Finalising || clock.exposed.is_none() {
        return found;
    }
    let now = context.input.now;
    // As many as the size rule asks for are all that it takes.
    let lacks = matches!(converged.not_ready, Some((RoleName::Candidate, _)));
    let failed = soaking.is_some() && !converged.reached && lacks && exposure::has_failed(context);
    let Some(lost) = clock.lost.filter(|_| clock.failing) else {
        // Where people are led to pods of which none serves any more, traffic goes back once their endpoints follow, and waits for no record.
        let goes_on = step.posture.split.is_stable() || exposure::serves(context);
        if failed && clock.lost.is_none() && goes_on {
            found.clock = Some((StepClock { lost: Some(now), failing: true, ..*clock }, "not ready any more"));
            found.wake = Some(now);
        }
        return found;
    };
    let open = observed(lost, now, &context.input.gaps);
    let soak = procedure::soak(context.plan, run, step);
    if failed {
        found.turn = too_much(context, step, clock, open, soak);
        found.wake = ends(context, clock, open, soak).map(|left| now + left.delta());
        return found;
    }
    // So that a pod which comes and goes writes few records.
    let least = Span::from_secs((soak.as_secs() / 50).clamp(1, 10));
    if soaking.is_some() && open < least {
        found.wake = Some(now + (least.delta() - open.delta()));
        return found;
    }
    // A part of a second counts as lost.
    let lasted = Span::from_secs(open.as_secs() + 1);
    let with = |sum: Span| Span::from_secs(sum.as_secs() + lasted.as_secs());
    let over = StepClock {
        lost: None,
        failing: false,
        away: with(clock.away),
        unready: with(clock.unready),
        longest: clock.longest.max(lasted),
        ..*clock
    };
    found.clock = Some((over, "ready again"));
    found.wake = Some(now);
    found
}

/// How much of a soak such times may be, the longest of them left out.
fn limit(context: &Context<'_>, soak: Span) -> u64 {
    soak.as_secs() * u64::from(context.plan.max_unready.get()) / 100
}

/// Why that is too much, in one go or all together.
fn too_much(context: &Context<'_>, step: &Step, clock: &StepClock, open: Span, soak: Span) -> Option<Turn> {
    let deadline = context.plan.progress_deadline;
    if open >= deadline {
        let workload = context.live.get(&context.workload(RoleName::Candidate));
        let trouble = workload.and_then(|workload| readiness::pod_trouble(workload, context.live));
        let trouble = trouble.map_or_else(String::new, |trouble| format!(": {trouble}"));
        let why = format!("{}: a pod that has served was not ready for {deadline}{trouble}", step.name);
        return Some(Turn::failed(why));
    }
    let longest = clock.longest.max(open);
    let beside = (clock.unready.as_secs() + open.as_secs()).saturating_sub(longest.as_secs());
    (beside > limit(context, soak)).then(|| {
        let (beside, most) = (Span::from_secs(beside), Span::from_secs(limit(context, soak)));
        let what = format!("not ready again and again, for {beside} beside the {longest} that it lasted longest");
        Turn::failed(format!("{}: {what}; maxUnready lets a soak of {soak} have {most}", step.name))
    })
}

/// How long it may still last.
fn ends(context: &Context<'_>, clock: &StepClock, open: Span, soak: Span) -> Option<Span> {
    let deadline = context.plan.progress_deadline.as_secs();
    let again = (limit(context, soak) + 1 + clock.longest.as_secs()).saturating_sub(clock.unready.as_secs());
    // Once it lasts longer than any before, only the deadline ends it.
    let again = Some(again).filter(|again| *again <= clock.longest.as_secs()).unwrap_or(deadline);
    again.min(deadline).checked_sub(open.as_secs()).filter(|left| *left > 0).map(Span::from_secs)
}

/// Takes it to the record; the position that comes of it.
#[must_use]
pub fn noted(draft: &mut Draft<'_>, position: &Position, unready: &Unready) -> Position {
    unready.wake.into_iter().for_each(|at| draft.wake(at));
    let Some((clock, what)) = unready.clock else { return position.clone() };
    draft.state.phase = with_clock(&draft.state.phase, clock);
    draft.note(what);
    Position { clock, ..position.clone() }
}

/// What is told meanwhile: the same waits, of which the candidate's not being ready is no part of the soak.
#[must_use]
pub fn told(position: &Position, mut waits: Vec<Wait>) -> Vec<Wait> {
    let Some(since) = position.clock.lost.filter(|_| position.clock.failing) else { return waits };
    let is_own = |wait: &Wait| wait.reason == Reason::CandidateNotReady;
    if !waits.iter().any(is_own) {
        waits.push(Wait::new(Reason::CandidateNotReady, format!("{}: {NOT_READY}", position.step)));
    }
    for wait in waits.iter_mut().filter(|wait| is_own(wait)) {
        wait.message.push_str(NO_PART);
        wait.since = Some(since);
    }
    waits
}

const NOT_READY: &str = "a pod that has served is not ready";
const NO_PART: &str = "; that time is no part of the soak";

/// What is told of a step meanwhile.
#[must_use]
pub fn message(position: &Position) -> String {
    format!("{}: {NOT_READY}{NO_PART}", position.step)
}

/// Requests are sent to a candidate without a ready pod. Where something else took its pods away, that says nothing of the version.
pub fn left_alone(context: &Context<'_>, step: &Step, position: &Position) -> Option<Turn> {
    let ready = exposure::ready(context).candidate;
    if ready > 0 || step.posture.candidate.is_none() || !relies_on_candidate(context, position) {
        return None;
    }
    let why = format!("{}: {}", position.step, exposure::no_endpoint(context));
    let taken = exposure::was_taken(context, position.clock.exposed.unwrap_or(position.clock.entered));
    Some(if taken { Turn::unmeasured(format!("{why}: its pods were taken away")) } else { Turn::failed(why) })
}

/// Whether requests are sent to the candidate. By pods they are sent to ready ones only, so that new pods may take their
/// time; but once the step was reached, or the Service asks for nobody else, some have to be there. Of a workload that both versions
/// share the few new pods may all be away where a node is drained, and stable's answer meanwhile: the progress deadline says how long. One
/// that has failed by itself speaks against its version.
fn relies_on_candidate(context: &Context<'_>, position: &Position) -> bool {
    let Ok(split) = exposure::live_split(context) else { return false };
    let by_pods = match context.router().map(Router::by) {
        Some(By::Pods) => split.weight != Percent::ALL,
        Some(By::Units) if split.weight != Percent::ALL && !exposure::has_failed(context) => return false,
        Some(By::Units) => true,
        Some(By::Route | By::Selector) | None => false,
    };
    !split.is_stable() && (!by_pods || position.clock.exposed.is_some() && position.clock.lost.is_none())
}
