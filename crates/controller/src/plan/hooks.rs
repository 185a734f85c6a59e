//! Who is told of what the record says: a question like those of checks, whose answer decides nothing.
//!
//! Only the record that Git has is told of, never what is about to be written. The question is asked until it is answered, so
//! what stands is told at least once; a process that starts asks again, with the same key.

use super::input::{Desired, Input};
use crate::analysis::call::{About, Call, CallKind, Notification};
use crate::analysis::judge::Inquiry;
use crate::manifest::desired::Plan;
use crate::manifest::hook::Event;
use crate::manifest::ids::{Revision, RunId, StepName};
use crate::record::state::{Outcome, Phase, RolloutState, Serving, Time};
use chrono::TimeDelta;

/// For how long the end of a run is news.
const NEWS: TimeDelta = TimeDelta::hours(1);

/// What is still to be told of a record; `open` is the plan of its open run.
#[must_use]
pub fn due(input: &Input, state: &RolloutState, open: Option<&Plan>) -> Vec<Inquiry> {
    let plan = match (&state.run, &input.desired) {
        (Some(_), _) => open,
        (None, Desired::Wanted(rollout)) => Some(&rollout.plan),
        (None, Desired::Lacking(..) | Desired::Rejected(_) | Desired::Gone | Desired::Unreadable(_)) => None,
    };
    let Some(plan) = plan.filter(|plan| !plan.hooks.is_empty()) else { return Vec::new() };
    let Some(moment) = moment(state, plan, input.now) else { return Vec::new() };
    let Moment { event, outcome, run, revision, step, since } = moment;
    let heard = plan.hooks.iter().filter(|(_, hook)| hook.hears(event));
    let calls = heard.map(|(name, hook)| Call {
        webhook: hook.webhook.clone(),
        about: About { rollout: input.id.clone(), run: run.clone(), step: step.clone(), revision: revision.clone() },
        asks: CallKind::Event(Notification { hook: name.clone(), event, outcome }),
        since,
        at: since,
    });
    calls.filter(|call| !input.evidence.readings.verdicts.contains_key(call)).map(Inquiry::Call).collect()
}

/// Where a run stands, as far as anybody is told of it. It is the same for as long as it stands there.
struct Moment<'a> {
    event: Event,
    outcome: Option<Outcome>,
    run: &'a RunId,
    revision: &'a Revision,
    step: StepName,
    since: Time,
}

fn moment<'a>(state: &'a RolloutState, plan: &Plan, now: Time) -> Option<Moment<'a>> {
    let Some(run) = &state.run else {
        let past = state.history.last().filter(|past| now - past.ended < NEWS)?;
        let (event, outcome, step) = (Event::Ended, Some(past.outcome), StepName::fixed("promotion"));
        return Some(Moment { event, outcome, run: &past.run, revision: &past.revision, step, since: past.ended });
    };
    let (event, step, since) = if let Phase::Reverting { .. } = state.phase {
        (Event::WentBack, StepName::fixed("revert"), run.started)
    } else if let Phase::Failed { standing: Serving::OnCandidate, since, why: _ } = state.phase {
        (Event::OnCandidate, StepName::fixed("promote"), since)
    } else {
        let position = state.phase.position()?;
        let exposes = position.step.as_str() == "shift" || plan.phases.iter().any(|phase| phase.name == position.step);
        let event = match position.step.as_str() {
            "prepare" => Event::Started,
            _ if exposes => Event::Entered,
            _ => return None,
        };
        (event, position.step.clone(), position.clock.entered)
    };
    Some(Moment { event, outcome: None, run: &run.id, revision: &run.revision, step, since })
}
