//! What the policy asks of every plan: one that goes below starts no run, and one whose run is open enters no further step. A
//! policy that loosens is for versions that come after it.

use super::along;
use super::draft::Draft;
use super::report::{Reason, Wait};
use crate::gate::floor;
use crate::manifest::desired::{Plan, Rollout, Set};
use crate::manifest::raw::Floors;
use crate::record::state::{Governed, Route};

/// Takes note of what the policy asks of what main wants now.
pub fn take_note(draft: &mut Draft<'_>) {
    let Some(rollout) = draft.wanted().filter(|_| !draft.input.policy.unread) else { return };
    // What an open run takes along is no version that comes after it.
    let known = draft.state.policy.as_ref();
    let along = draft.state.run.as_ref().is_some_and(|run| along::is_along(draft, run, rollout));
    let wanted = known.filter(|_| along).map_or(&rollout.set.id, |known| &known.wanted);
    let next = Governed::next(known, wanted, &draft.input.policy.terms());
    if next != draft.state.policy {
        draft.state.policy = next;
        draft.note("the policy");
    }
}

/// Why this plan may not go on, if it is below the floors.
#[must_use]
pub fn below(draft: &Draft<'_>, plan: &Plan) -> Option<Wait> {
    let now = &draft.input.policy.floors;
    let set = coming(draft);
    let found = floor::below(plan, set, &of_route(draft, plan, now));
    if !found.is_empty() {
        let wait = Wait::new(Reason::PolicyFloor, found.join("; "));
        return Some(match &draft.state.run {
            // It goes by the plan that it began with.
            Some(run) => wait.act(format!(
                "mend the rollout's file; run {0} keeps its plan: tidegate abort {1}, then tidegate retry {1} --run {0}",
                run.id, draft.input.id
            )),
            None => wait,
        });
    }
    let known = draft.state.policy.as_ref()?;
    let found = floor::below(plan, set, &of_route(draft, plan, &known.terms().floors.stricter(now)));
    let why = || {
        format!(
            "{}; the policy was loosened together with this version, and a change of the policy is for what comes after it",
            found.join("; ")
        )
    };
    let act = "push the next version, be it another annotation of its pods: for that the policy is as it is now";
    (!found.is_empty()).then(|| Wait::new(Reason::PolicyFloor, why()).act(act))
}

/// What the floors ask of the way that is gone: of one with a route that tries nothing out, as its pods are those of before, a decision.
fn of_route(draft: &Draft<'_>, plan: &Plan, floors: &Floors) -> Floors {
    let tries = draft.state.run.as_ref().is_none_or(|run| run.route != Route::Plain);
    if tries || plan.traffic.is_none() {
        return floors.clone();
    }
    Floors { approved_steps: floors.approved_steps.min(1), images: floors.images, ..Floors::default() }
}

/// Why the first version may not be made: its phases are for those that come after it, its images are not.
#[must_use]
pub fn first(draft: &Draft<'_>, rollout: &Rollout) -> Option<Wait> {
    let known = draft.state.policy.as_ref().map(|known| known.terms().floors.stricter(&draft.input.policy.floors));
    let asked = known.as_ref().unwrap_or(&draft.input.policy.floors).images;
    floor::tagged(&rollout.plan, Some(&rollout.set), asked).map(|found| Wait::new(Reason::PolicyFloor, found))
}

/// The version that is on its way: the open run's, else the one that main wants.
fn coming<'a>(draft: &Draft<'a>) -> Option<&'a Set> {
    let set = match &draft.state.run {
        Some(run) => draft.input.sets.get(&run.to),
        None => draft.wanted().map(|rollout| &rollout.set),
    };
    set.map(|set| &**set)
}
