//! What main changes in the middle of a run that makes no new version: the run takes it along (requirement C-6).

use super::back::Superseding;
use super::direct::{self, Change};
use super::draft::Draft;
use super::entry;
use super::procedure::{self, Step};
use super::report::Wait;
use crate::manifest::desired::{By, Plan, Rollout, Set};
use crate::record::posture::Directly;
use crate::record::state::{Along, Route, Run, SetSource};
use crate::rules::{Rule, holds};

/// What main has changed directly since a run by that plan `began` with a version; none if it wants another one.
#[must_use]
pub fn since(plan: &Plan, began: &Set, wanted: &Rollout) -> Option<Directly> {
    // Pods of a set that both versions share are made new by their places: with another size others would be than those that the record lets.
    let is_shared = plan.traffic.as_ref().is_some_and(|traffic| traffic.router.by() == By::Partition);
    let same = holds(Rule::Along) && wanted.plan.target == plan.target && !is_shared;
    let is_direct = same && direct::change(plan, began, &wanted.set) != Change::Version;
    is_direct.then(|| direct::since(plan, began, &wanted.set)).flatten()
}

/// Whether a run brings what main wants, be it with another size or label.
#[must_use]
pub fn is_along(draft: &Draft<'_>, run: &Run, wanted: &Rollout) -> bool {
    wanted.set.id == run.to || news(draft, run, wanted).is_some()
}

fn news(draft: &Draft<'_>, run: &Run, wanted: &Rollout) -> Option<Directly> {
    let (plan, began) = (draft.plan.as_ref()?, draft.input.sets.get(run.began())?);
    if run.route == Route::Rollback { None } else { since(plan, began, wanted) }
}

/// What came of taking along what main wants now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TakenAlong {
    /// There is nothing to take.
    Nothing,
    /// This plan records it, and looks again at once.
    Recorded,
    /// It has to wait, as what is entered and what is changed without a run has to.
    Barred(Vec<Wait>),
}

/// Takes it along at the step that the run stands on, if it stands on one: both roles have it as far as it is theirs. Where the run stands,
/// what it is called, what people have said of it and its clocks stay. From *promote* on it waits for the end of the run.
pub fn take(draft: &mut Draft<'_>, plan: &Plan, run: &Run, at: Option<&Step>) -> TakenAlong {
    if at.is_some_and(|step| Superseding::at(step) == Superseding::Waits) {
        return TakenAlong::Nothing;
    }
    let Some(wanted) = draft.wanted().filter(|wanted| wanted.set.id != run.to) else { return TakenAlong::Nothing };
    let Some(changed) = news(draft, run, wanted) else { return TakenAlong::Nothing };
    let waits = entry::barred(draft);
    if !waits.is_empty() {
        return TakenAlong::Barred(waits);
    }
    let Some(promoted) = draft.state.promoted.as_mut() else { return TakenAlong::Nothing };
    let before = run.along.as_ref().map_or_else(|| promoted.directly.clone(), |along| along.before.clone());
    promoted.directly.clone_from(&before);
    for (object, fields) in changed {
        promoted.directly.entry(object).or_default().extend(fields);
    }
    let source = SetSource { commit: draft.input.main.clone(), path: wanted.path.clone() };
    let began = run.began().clone();
    let along = (began != wanted.set.id).then_some(Along { began, source, before });
    draft.state.deletions.renamed(&run.to, &wanted.set.id);
    let run = Run { to: wanted.set.id.clone(), along, ..run.clone() };
    draft.state.run = Some(run.clone());
    let roles = draft.roles(&run);
    let step =
        at.and_then(|at| procedure::forward(plan, run.route, &roles).into_iter().find(|step| step.name == at.name));
    match (step, draft.posture().cloned()) {
        (Some(step), _) => draft.allow(step.posture),
        // Nothing is entered yet: what serves has it all the same.
        (None, Some(mut posture)) => {
            posture.stable.directly = roles.old.directly;
            draft.allow(posture);
        }
        (None, None) => {}
    }
    draft.note("applied directly");
    draft.wake(draft.now());
    TakenAlong::Recorded
}
