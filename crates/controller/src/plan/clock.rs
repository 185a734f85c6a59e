//! A clock that ran ahead: what it has written of a time to come would count for nothing until the calendar has passed it.

use crate::record::state::{Phase, RolloutState, StepClock, Time};
use chrono::TimeDelta;

/// By how much the clocks of two leaders may differ: within it a time to come heals itself.
const SKEW: TimeDelta = TimeDelta::seconds(60);

/// The same record, as if what a clock that ran ahead has written of the open step and run were written now. To be recorded: reckoned with as
/// now at each look, a soak would never begin.
#[must_use]
pub fn rectified(mut state: RolloutState, now: Time) -> RolloutState {
    let mend = |time: &mut Time| {
        if *time > now + SKEW {
            *time = now;
        }
    };
    if let Some(StepClock { entered, exposed, lost, away: _, failing: _, unready: _, longest: _ }) =
        clock(&mut state.phase)
    {
        mend(entered);
        exposed.iter_mut().chain(lost).for_each(mend);
    }
    if let Phase::Waiting { since, .. } | Phase::WaitingPromotion { since, .. } = &mut state.phase {
        mend(since);
    }
    if let Some(run) = &mut state.run {
        mend(&mut run.started);
        run.preceded.iter_mut().for_each(mend);
        run.away.values_mut().for_each(mend);
    }
    state
}

/// The same phase with another clock, where it has one.
#[must_use]
pub fn with_clock(phase: &Phase, set: StepClock) -> Phase {
    let mut phase = phase.clone();
    if let Some(own) = clock(&mut phase) {
        *own = set;
    }
    phase
}

fn clock(phase: &mut Phase) -> Option<&mut StepClock> {
    match phase {
        Phase::Initializing(clock) => Some(clock),
        Phase::Progressing(position) | Phase::Promoting(position) | Phase::Finalising(position) => {
            Some(&mut position.clock)
        }
        Phase::Waiting { at, .. } => at.as_mut().map(|position| &mut position.clock),
        Phase::WaitingPromotion { at: position, .. } | Phase::Reverting { position, .. } => Some(&mut position.clock),
        Phase::Steady { .. } | Phase::Failed { .. } | Phase::Terminating { .. } | Phase::Unknown(_) => None,
    }
}
