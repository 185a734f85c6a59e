//! A rollout at rest: upkeep, direct changes, and the start of the next run.

use super::action::{Ask, Class, Proposal};
use super::decisions::Requested;
use super::deletions;
use super::direct::{self, Change};
use super::draft::{Draft, Manner};
use super::entry;
use super::evidence::Entangled;
use super::floor;
use super::input::Desired;
use super::procedure;
use super::proof;
use super::renamed::renamed;
use super::report::{Reason, Wait};
use super::requests::{self, Lies};
use super::retreat;
use super::rollback;
use super::troubled;
use super::versions;
use crate::manifest::desired::{Plan, Revert, Rollout, Set};
use crate::manifest::ids::{Revision, RunId};
use crate::manifest::object::ObjectRef;
use crate::manifest::set;
use crate::manifest::tracked;
use crate::record::branches::Asks;
use crate::record::history::{self, RunOf};
use crate::record::posture::{Directly, Posture, Role, Size, Split};
use crate::record::state::{Phase, Promoted, Pull, Refused, RolloutState, Route, Run};
use crate::rules::{Rule, holds};
use std::sync::Arc;

/// Steady, or failed with stable serving.
pub fn idle(draft: &mut Draft<'_>, asked: &Requested) {
    if rollback::follow(draft, asked) {
        return;
    }
    if let Some(wait) = renamed(draft) {
        draft.waits.push(wait);
        return;
    }
    match &draft.input.desired {
        Desired::Wanted(rollout) => wanted(draft, &rollout.clone()),
        Desired::Gone => draft.leave("removed from main; its objects stay"),
        Desired::Lacking(..) | Desired::Rejected(_) | Desired::Unreadable(_) => {}
    }
}

/// What keeps the objects at rest from being as they should.
pub fn upkeep(draft: &mut Draft<'_>) {
    if draft.state.run.is_some() || draft.state.promoted.is_none() || renamed(draft).is_some() {
        return;
    }
    let (Some(plan), Some(posture)) = (draft.plan_in_force(), draft.posture().cloned()) else { return };
    let converged = draft.converge(&plan, &posture, Manner::AT_REST);
    draft.note_met(&posture, &converged);
    let troubled = troubled::told(draft, &plan, &posture);
    draft.waits.extend(troubled);
    draft.going.removed = converged.removed;
    draft.waits.extend(converged.drifted);
    draft.waits.extend(converged.waits.into_iter().filter(|w| w.reason != Reason::Writing));
    if converged.unlisted {
        draft.take_inventory();
        draft.note("inventory");
    }
}

fn wanted(draft: &mut Draft<'_>, rollout: &Arc<Rollout>) {
    let Some(promoted) = draft.state.promoted.clone() else {
        super::bootstrap::again(draft, rollout);
        return;
    };
    propose_revert(draft, rollout);
    if rollout.set.id == promoted.set {
        recover(draft, &promoted);
        if !promoted.directly.is_empty() {
            apply(draft, rollout, &promoted);
        }
        return;
    }
    let Some(old) = draft.input.sets.get(&promoted.set).cloned() else {
        let why = format!("the promoted set {} is not on the state branch", promoted.set.short());
        draft.waits.push(Wait::new(Reason::RecordUnreadable, why));
        return;
    };
    match direct::change(&rollout.plan, &old, &rollout.set, proof::is_asked(draft)) {
        Change::None => repin(draft, rollout, &promoted, "same content, other files"),
        Change::Direct => apply(draft, rollout, &promoted),
        Change::HeldBack(scalers) => {
            recover(draft, &promoted);
            draft.waits.push(held_back(&rollout.plan, &scalers));
        }
        Change::Version => start_run(draft, rollout, &old),
    }
}

/// What of main stays undone until the next promotion, and how that comes.
fn held_back(plan: &Plan, scalers: &[ObjectRef]) -> Wait {
    let names = scalers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let why = format!("{names} changed on main: with the layout primary that reaches the copy with the next promotion");
    let act = format!("push the next version of Deployment {}, be it another annotation of its pods", plan.target.name);
    Wait::new(Reason::HeldBack, why).act(act)
}

/// Main is back at what is promoted: whatever failed before is over (C-8).
fn recover(draft: &mut Draft<'_>, promoted: &Promoted) {
    if let Phase::Failed { .. } = draft.state.phase {
        let how = crate::record::state::Rest::Reverted;
        let what = format!("main is back at {}", promoted.revision.short());
        draft.enter(Phase::Steady { how, since: draft.now() }, what);
    }
}

/// Main says something else than what serves, and no new version.
fn apply(draft: &mut Draft<'_>, rollout: &Rollout, promoted: &Promoted) {
    let waits = entry::barred(draft);
    if waits.is_empty() {
        repin(draft, rollout, promoted, "applied directly");
    } else {
        draft.waits.extend(waits);
    }
}

/// A direct change re-pins the stable set in the commit that records it.
fn repin(draft: &mut Draft<'_>, rollout: &Rollout, promoted: &Promoted, what: &str) {
    let stable = Role {
        set: rollout.set.id.clone(),
        size: Size::Declared,
        pods: promoted.label.clone(),
        directly: Directly::new(),
    };
    draft.allow(Posture { stable, candidate: None, split: Split::stable(), naming: draft.naming.clone() });
    draft.state.promoted = Some(Promoted {
        set: rollout.set.id.clone(),
        revision: rollout.set.revision.clone(),
        pods: rollout.set.pods.clone(),
        commit: Some(draft.input.main.clone()),
        path: Some(rollout.path.clone()),
        // Nobody was asked about the rollout's file: who changed it with this is still to be asked for.
        decided: draft.state.origin_of_stable().and_then(|origin| origin.decided),
        directly: Directly::new(),
        ..promoted.clone()
    });
    draft.note(what.to_owned());
    draft.wake(draft.now());
}

fn start_run(draft: &mut Draft<'_>, rollout: &Arc<Rollout>, old: &Set) {
    let blocked = refused(draft, rollout).or_else(|| versions::unfit(draft, rollout, old));
    let blocked = blocked.or_else(|| floor::below(draft, &rollout.plan));
    let blocked = blocked.or_else(|| braked(draft, rollout)).or_else(|| unmarked(draft, rollout));
    if let Some(wait) = blocked {
        if wait.reason == Reason::TooManyDeletions {
            draft.going.replaced = versions::going(&draft.naming, rollout, old);
        }
        draft.waits.push(wait);
        return;
    }
    let (route, plan) = procedure::route(rollout, old);
    open(draft, &plan, &rollout.set, route);
    let changed = tracked::changes(&old.tracked, &rollout.set.tracked);
    if !changed.is_empty() {
        draft.note(changed.join(", "));
    }
}

/// A mark of the brake that no run answers for is taken off first: the next run has nothing to do with it.
#[must_use]
pub fn braked(draft: &Draft<'_>, rollout: &Rollout) -> Option<Wait> {
    let context = draft.context(&rollout.plan, None, None);
    let marked = retreat::marked_blindly(&context)?;
    Some(Wait::new(Reason::Writing, format!("the brake's mark is being taken off {marked}")))
}

/// What was adopted gets its marks before a run changes anything.
#[must_use]
pub fn unmarked(draft: &Draft<'_>, rollout: &Rollout) -> Option<Wait> {
    let adopted = draft.state.promoted.as_ref().is_some_and(|promoted| promoted.run == RunId::zero());
    let posture = draft.posture().filter(|_| adopted)?;
    let due = draft.converge(&rollout.plan, posture, Manner::AT_REST).actions;
    let first = due.iter().find(|action| action.class == Class::Advance)?;
    Some(Wait::new(Reason::Writing, format!("what is live is being taken over: {}", first.why)))
}

/// Why what main wants is not tried again.
#[must_use]
pub fn refused(draft: &Draft<'_>, rollout: &Rollout) -> Option<Wait> {
    let refused @ Refused { run, at, .. } = refusal(draft, rollout).filter(|_| holds(Rule::Refused))?;
    let act = format!("tidegate retry {} --run {run}", draft.input.id);
    Some(Wait::new(Reason::Refused, met_its_end(refused, rollout)).since(*at).act(act))
}

/// What refuses the version that main wants.
#[must_use]
pub fn refusal<'s>(draft: &'s Draft<'_>, rollout: &Rollout) -> Option<&'s Refused> {
    let tried = history::taken_back(&draft.state).and_then(|past| draft.input.sets.get(&past.to));
    let serving = draft.state.promoted.as_ref().and_then(|promoted| draft.input.sets.get(&promoted.set));
    refusal_of(&draft.state, tried.map(|set| &**set), serving.map(|set| &**set), rollout)
}

/// What refuses a version: the end that it met, or that of one whose pods and routes it has, which the last run has `tried`. To try that
/// one again takes a decision, not another size (requirements C-6, N-4). Where it had those of what was `serving`, a size was what it brought.
#[must_use]
pub fn refusal_of<'s>(
    state: &'s RolloutState,
    tried: Option<&Set>,
    serving: Option<&Set>,
    rollout: &Rollout,
) -> Option<&'s Refused> {
    let of = |revision: &Revision| state.refused.iter().find(|refused| refused.revision == *revision);
    of(&rollout.set.revision).or_else(|| {
        let (last, tried) = history::taken_back(state).zip(tried)?;
        let is_alike = |one: &Set, other: &Set| direct::is_alike(&rollout.plan, one, other);
        let brought_pods = !serving.is_some_and(|serving| is_alike(serving, tried));
        of(&last.revision).filter(|_| brought_pods && is_alike(tried, &rollout.set))
    })
}

/// Why a version is refused, for people.
#[must_use]
pub fn met_its_end(Refused { revision, run, outcome, why, .. }: &Refused, rollout: &Rollout) -> String {
    let same = if *revision == rollout.set.revision { "" } else { ", which has the same pods and routes," };
    format!("revision {}{same} met its end in run {run} ({outcome:?}): {why}", revision.short())
}

/// Opens a run: recorded before anything is asked or made.
pub fn open(draft: &mut Draft<'_>, plan: &Plan, set: &Set, route: Route) {
    let Some(promoted) = draft.state.promoted.clone() else { return };
    let number = draft.state.next_run;
    let id = history::run_id(
        number,
        &RunOf {
            instance: &draft.input.me.instance,
            rollout: &draft.input.id,
            from: &promoted.set,
            to: &set.id,
            revision: &set.revision,
            plan,
        },
    );
    deletions::begin(draft, set);
    draft.state.next_run = number + 1;
    draft.state.revert = None;
    draft.state.run = Some(Run {
        preceded: None,
        id: id.clone(),
        route,
        stable: draft.state.origin_of_stable(),
        from: promoted.set,
        names: versions::stable(&draft.naming).cloned(),
        to: set.id.clone(),
        revision: set.revision.clone(),
        pods: set.pods.clone(),
        decisions_at: draft.input.decisions.tip.clone(),
        started: draft.now(),
        source: draft.input.main.clone(),
        path: Some(draft.wanted().map_or(&draft.state.source.path, |wanted| &wanted.path).clone()),
        baseline: std::collections::BTreeMap::new(),
        skipped: None,
        hurried: false,
        approved: Vec::new(),
        held: route != Route::Rollback && history::unmeasured(&draft.state, (&set.id, &set.revision)).is_some(),
        denied: false,
        unkept: false,
        rule: proof::rule(draft),
        pulls: std::collections::BTreeMap::new(),
        jobs: std::collections::BTreeMap::new(),
        away: std::collections::BTreeMap::new(),
        along: None,
    });
    draft.plan = Some(Arc::new(plan.clone()));
    let next = match route {
        Route::Plain => "promote",
        Route::Phases | Route::Rollback => "prepare",
    };
    let next = crate::manifest::ids::StepName::fixed(next);
    let phase = Phase::Waiting { at: None, next, since: draft.now() };
    draft.enter(phase, format!("run {id} brings {}", set.revision.short()));
}

/// After a run that went back: a branch that undoes its change on main, once (requirement X-5).
fn propose_revert(draft: &mut Draft<'_>, rollout: &Rollout) {
    let Some(last) = draft.state.last_run.clone() else { return };
    let name = requests::name(draft, &last.id, Asks::Revert);
    let refused = refusal(draft, rollout).cloned();
    match (refused, requests::revert(draft, &last.id)) {
        (Some(_), Lies::Ours(head)) => {
            if draft.state.revert.as_ref().map(|p| &p.head) != Some(&head) {
                draft.state.revert = Some(Pull { branch: name, head, checks: Vec::new() });
                draft.note("proposes to undo the change on main");
            }
        }
        (Some(_), Lies::Unread(head, why)) => {
            if draft.state.revert.as_ref().map(|p| &p.head) != Some(&head) {
                draft.waits.push(requests::unread(&name, &why));
            }
        }
        // It goes before people are asked anew.
        (Some(_), Lies::Void(head, why)) => {
            if draft.state.revert.take().is_some() {
                draft.note(format!("the request to undo the change is void: {}", why.unwrap_or_default()));
            }
            draft.void.push((name, head));
        }
        (Some(refused), Lies::Nothing)
            if draft.state.revert.is_none()
                && rollout.plan.on_failure.revert == Revert::PullRequest
                && changed_main(draft, rollout) =>
        {
            match entangled(draft, rollout, &last.id) {
                Some(wait) => draft.waits.push(wait),
                None => {
                    let ask = Ask::Revert { why: refused.why };
                    draft.proposals.push(Proposal { rollout: draft.input.id.clone(), run: last.id, ask });
                }
            }
        }
        (_, Lies::Nothing) => {}
        (None, Lies::Ours(head) | Lies::Unread(head, _) | Lies::Void(head, _)) => draft.void.push((name, head)),
    }
}

/// Whether main says something else than what is promoted: what is tracked is changed elsewhere.
fn changed_main(draft: &Draft<'_>, rollout: &Rollout) -> bool {
    let promoted = draft.state.promoted.as_ref().and_then(|promoted| draft.input.sets.get(&promoted.set));
    let elsewhere = |old: &Set| old.tracked != rollout.set.tracked && set::of_main(old) == set::of_main(&rollout.set);
    promoted.is_none_or(|promoted| !elsewhere(promoted))
}

/// Why a run's change on main is not undone by a branch: that was tried with what main has now.
fn entangled(draft: &Draft<'_>, rollout: &Rollout, undone: &RunId) -> Option<Wait> {
    let Entangled { run, wanted, files } = draft.input.evidence.entangled.as_ref()?;
    if run != undone || *wanted != set::of_main(&rollout.set) {
        return None;
    }
    let files = files.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let message = format!("main has other changes in the lines that run {run} changed: {files}");
    Some(Wait::new(Reason::RevertConflict, message).act("undo the run's change in these files by hand"))
}
