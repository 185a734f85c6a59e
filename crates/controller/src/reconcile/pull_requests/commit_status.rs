//! How main's tip stands, in a word and a line: what its commit status says on the host. Pure.

use crate::forge::host::{HostMark, Status};
use crate::manifest::desired::Rollout;
use crate::manifest::ids::CommitId;
use crate::manifest::set;
use crate::plan::report::Reason;
use crate::reconcile::source::{GitView, LoadedRecord, LoadedRecords};
use crate::record::state::{Phase, RolloutState};
use crate::record::text::{place, plain};

/// The status of main's tip; none while main or the record is not at hand.
pub(super) fn status(view: &GitView) -> Option<(CommitId, Status)> {
    let commit = view.tips.main.clone()?;
    if let Some(why) = view.main.why_unreadable() {
        return Some((commit, Status::new(HostMark::Failure, &format!("cannot be used: {}", plain(why)))));
    }
    let LoadedRecords::Read(records) = &view.records else { return None };
    let (mut bad, mut under_way) = (Vec::new(), Vec::new());
    for id in view.main.rollouts() {
        let Some(rollout) = view.main.rollout(id) else {
            bad.push(format!("{id} is rejected"));
            continue;
        };
        match records.get(id).and_then(|record| Some((record, record.state.as_ref().ok()?))) {
            Some((_, state)) if state.run.is_none() && refused(state, rollout) => bad.push(format!("{id} is refused")),
            Some((record, state)) => {
                if !(promoted(record, state, rollout)
                    && state.run.is_none()
                    && matches!(state.phase, Phase::Steady { .. }))
                {
                    under_way.push(format!("{id}: {}", place(&state.phase)));
                }
            }
            None => under_way.push(format!("{id}: first sight")),
        }
    }
    bad.extend(view.main.nameless().map(|path| format!("{path} cannot be read")));
    let status = if !bad.is_empty() {
        Status::new(HostMark::Failure, &bad.join(", "))
    } else if under_way.is_empty() {
        Status::new(HostMark::Success, "all is as wanted")
    } else {
        Status::new(HostMark::Pending, &format!("seen; {}", under_way.join(", ")))
    };
    Some((commit, status))
}

/// Whether what main says is promoted. What is tracked is no part of it.
pub(super) fn promoted(record: &LoadedRecord, state: &RolloutState, rollout: &Rollout) -> bool {
    let Some(promoted) = &state.promoted else { return false };
    let set = record.sets.get(&promoted.set).filter(|set| !set.tracked.is_empty());
    set.map_or(promoted.revision == rollout.set.revision, |set| set::of_main(set) == set::of_main(&rollout.set))
}

/// Whether what main wants is not tried again. With what it tracks that is known to the plan alone, which says so.
fn refused(state: &RolloutState, rollout: &Rollout) -> bool {
    if rollout.plan.target.track.is_empty() {
        return state.refused.iter().any(|refused| refused.revision == rollout.set.revision);
    }
    state.conditions.iter().any(|condition| condition.reason == Reason::Refused.as_str())
}
