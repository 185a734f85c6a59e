//! A person's decision that goes back to a version that was promoted before. It counts once, so it is followed now, or people are told why not.

use super::decisions::{DAY, Requested};
use super::draft::Draft;
use super::idle;
use super::input::Desired;
use super::renamed::renamed;
use super::tracked::{self, TrackedView, as_live};
use super::versions;
use crate::gate::decisions::can_go_back_to;
use crate::manifest::desired::{Plan, Rollout, Set};
use crate::manifest::ids::{RunId, SetId};
use crate::manifest::set;
use crate::record::history;
use crate::record::state::{Outcome, PendingRollback, Phase, Promoted, Route, Run};
use crate::rules::{Rule, holds};
use crate::workload::layouts;
use std::sync::Arc;

/// What is gone back to, and how.
struct Past {
    set: Arc<Set>,
    plan: Plan,
    /// What is left.
    left: Promoted,
}

/// A rollback while a run is open is what people say to have that gone: it goes back at once, like one that is aborted, whatever is named. One
/// that is promoted but for its last steps ends first, and one that goes back itself is not turned round by a word that is said twice. Where that
/// does not lead to the version that is named, the record remembers it until the run has ended.
pub fn in_run(draft: &mut Draft<'_>, named: &RunId, why: String) {
    let Some(open) = draft.state.run.clone() else { return };
    let served = history::served(&draft.state);
    let is_late = matches!(draft.state.phase, Phase::Finalising(_));
    let goes_back = open.route == Route::Rollback;
    if !is_late && (!goes_back || *named == open.id) && holds(Rule::LowerAtOnce) {
        draft.aborted = Some(why);
    }
    let leads_there = *named == open.id || *named == served && !goes_back;
    if !is_late && leads_there || is_brought(draft, &open, named) {
        return;
    }
    let to = if is_late && *named == open.id { served } else { named.clone() };
    let window = draft.wanted().map_or(DAY, |rollout| rollout.rollback_window);
    match can_go_back_to(&draft.state, &to, window, draft.now()) {
        // It is replaced once the open run has ended.
        Err(why) if !(is_late && to == history::served(&draft.state)) => {
            draft.note(format!("which goes no further back: {why}"));
        }
        Ok(()) | Err(_) => draft.state.rollback = Some(PendingRollback { to, after: open.id }),
    }
}

/// Whether the open run brings just that version.
fn is_brought(draft: &Draft<'_>, open: &Run, named: &RunId) -> bool {
    let brought = draft.input.sets.get(&open.to).map(|set| set::of_main(set));
    let past = history::replaced(&draft.state, named).and_then(|past| draft.input.sets.get(past.set));
    open.route == Route::Rollback && brought.is_some() && brought == past.map(|set| set::of_main(set))
}

/// Goes back to what a person has named, at rest: now, or while a run was open. Says whether nothing else is to start: a run was opened, or
/// something has to be known first, what that version took of Secrets, or main.
pub fn follow(draft: &mut Draft<'_>, requested: &Requested) -> bool {
    let ended = draft.state.last_run.as_ref().map(|run| run.id.clone());
    if draft.state.rollback.as_ref().is_some_and(|pending| Some(&pending.after) != ended.as_ref()) {
        draft.state.rollback = None;
    }
    let unread = matches!(draft.input.desired, Desired::Lacking(..) | Desired::Rejected(_) | Desired::Unreadable(_));
    let is_pending = draft.state.rollback.is_some();
    if requested.postponed || is_pending && (unread || tracked::is_unread(draft.input, &[])) {
        return true;
    }
    let remembered = draft.state.rollback.take().map(|pending| pending.to);
    requested.rollback.clone().or(remembered).is_some_and(|named| roll_back(draft, &named))
}

/// Back to a promoted set, within the window; says whether a run was opened.
fn roll_back(draft: &mut Draft<'_>, named: &RunId) -> bool {
    match past(draft, named) {
        Ok(Past { set, plan, left }) => {
            let why = format!("rolled back to run {named}");
            history::refuse(&mut draft.state, left.revision, left.run, Outcome::RolledBack, &why, draft.input.now);
            idle::open(draft, &plan, &set, Route::Rollback);
            true
        }
        Err(why) => {
            draft.note(format!("which was not done: {why}"));
            false
        }
    }
}

/// The version that is meant, or why it cannot be brought now. Nothing is refused before that is known.
fn past(draft: &Draft<'_>, named: &RunId) -> Result<Past, String> {
    let rollout = draft.wanted().ok_or("the rollout's file on main cannot be read")?;
    if let Some(wait) = renamed(draft) {
        return Err(wait.message);
    }
    let unknown = || format!("run {named} is none that was promoted and replaced");
    let past = history::replaced(&draft.state, named).ok_or_else(unknown)?;
    let lost = |set: &SetId| {
        draft.input.sets.get(set).ok_or_else(|| format!("the set {} is not on the state branch", set.short()))
    };
    let left = draft.state.promoted.clone().ok_or("nothing is promoted")?;
    let (old, set) = (lost(&left.set)?, lost(past.set)?);
    // What it took of tracked objects is kept nowhere: it comes with what is live.
    let missing = || format!("what run {named} tracked is not in the namespace any more");
    let set = as_live(set, &rollout.plan.target, TrackedView::of(draft.input, draft.live)).ok_or_else(missing)?;
    if left.set == *past.set {
        return Err(format!("run {named} is what serves"));
    }
    if past.names.is_some() && past.names == versions::stable(&draft.naming) {
        return Err("both versions' objects have the same names; push the old one on main".to_owned());
    }
    if left.set == set.id {
        return Err(format!("but for tracked data that is kept nowhere, run {named} is what serves"));
    }
    let plan = past.names.map_or_else(|| rollout.plan.clone(), |names| names.within(&rollout.plan));
    let brought = Rollout { set, plan, ..(**rollout).clone() };
    fits(draft, &brought, old)?;
    let Rollout { set, plan, .. } = brought;
    Ok(Past { set, plan, left })
}

/// Whether an old version can be brought beside the one that is left.
fn fits(draft: &Draft<'_>, brought: &Rollout, old: &Set) -> Result<(), String> {
    let Rollout { set, plan, .. } = brought;
    if plan.target.kind.is_object() && set.get(plan.target.kind.kind(), &plan.target.name).is_none() {
        return Err(format!("that version has no {} {}", plan.target.kind.kind(), plan.target.name));
    }
    let naming = draft.naming.in_run(plan);
    layouts::of_candidate(old, set, plan, &naming, &set.pods).map_err(|error| error.to_string())?;
    let blocked = versions::unfit(draft, brought, old).or_else(|| idle::braked(draft, brought));
    blocked.or_else(|| idle::unmarked(draft, brought)).map_or(Ok(()), |wait| Err(wait.message))
}
