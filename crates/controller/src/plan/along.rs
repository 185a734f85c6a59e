//! What main changes in the middle of a run that makes no new version: the run takes it along (requirement C-6).

use super::adopt::{self, Reply};
use super::back::Superseding;
use super::direct::{self, Change};
use super::draft::Draft;
use super::entry;
use super::procedure::{self, Step};
use super::proof;
use super::report::{Reason, Wait};
use crate::manifest::desired::{By, Plan, Rollout, Set};
use crate::manifest::ids::ObjectName;
use crate::manifest::object::ObjectRef;
use crate::manifest::scaler;
use crate::record::posture::{Directly, TARGET};
use crate::record::state::{Along, RoleName, Route, Run, SetSource};
use crate::rules::{Rule, holds};
use crate::workload::direct::{applied, named};
use crate::workload::inplace::{self, Rendered};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What main has changed directly since a run by that plan `began` with a version; none if it wants another one. `approved`: whether people whom
/// the policy names approve promotions.
#[must_use]
pub fn since(plan: &Plan, began: &Set, wanted: &Rollout, approved: bool) -> Option<Directly> {
    // Pods of a set that both versions share are made new by their places: with another size others would be than those that the record lets.
    let is_shared = plan.traffic.as_ref().is_some_and(|traffic| traffic.router.by() == By::Units);
    let same = holds(Rule::Along) && wanted.plan.target == plan.target && !is_shared;
    let is_direct = same && direct::change(plan, began, &wanted.set, approved) != Change::Version;
    is_direct.then(|| direct::since(plan, began, &wanted.set)).flatten()
}

/// Whether a run brings what main wants, be it with another size or label.
#[must_use]
pub fn is_along(draft: &Draft<'_>, run: &Run, wanted: &Rollout) -> bool {
    wanted.set.id == run.to || news(draft, run, wanted).is_some()
}

fn news(draft: &Draft<'_>, run: &Run, wanted: &Rollout) -> Option<Directly> {
    let (plan, began) = (draft.plan.as_ref()?, draft.input.sets.get(run.began())?);
    let approved = proof::is_asked(draft);
    // A run is no way to what could be applied without one.
    let needs_none =
        |from: &Arc<Set>| matches!(direct::change(plan, from, &wanted.set, approved), Change::None | Change::Direct);
    if run.route == Route::Rollback || draft.input.sets.get(&run.from).is_some_and(needs_none) {
        return None;
    }
    since(plan, began, wanted, approved)
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
/// what it is called, what people have said of it and its clocks stay. From *promote* on it waits for the end of the run, and as long as the API
/// server does not take it no version is to blame.
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
    let (state, as_it_is) = (draft.state.clone(), rendered(draft, plan));
    record(draft, plan, run, wanted, changed, at);
    let waits = refused(draft, plan, &as_it_is);
    if !waits.is_empty() {
        draft.state = state;
        return TakenAlong::Barred(waits);
    }
    let is_same = rendered(draft, plan) == as_it_is;
    draft.note(if is_same { "taken along: it comes with the promotion" } else { "applied directly" });
    draft.wake(draft.now());
    TakenAlong::Recorded
}

fn record(
    draft: &mut Draft<'_>,
    plan: &Plan,
    run: &Run,
    Rollout { set, path, .. }: &Rollout,
    changed: Directly,
    at: Option<&Step>,
) {
    let Some(directly) = draft.state.promoted.as_ref().map(|promoted| promoted.directly.clone()) else { return };
    let before = run.along.as_ref().map_or(directly, |along| along.before.clone());
    let changed = without_fewer(draft, plan, run, &before, changed);
    let Some(promoted) = draft.state.promoted.as_mut() else { return };
    promoted.directly = over(&before, &changed);
    let source = SetSource { commit: draft.input.main.clone(), path: path.clone() };
    let (began, revision) = (run.began().clone(), Some(set.revision.clone()));
    let along = (began != set.id).then_some(Along { began, revision, source, before });
    draft.state.deletions.renamed(&run.to, &set.id);
    let run = Run { to: set.id.clone(), along, ..run.clone() };
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
}

/// What was changed before, and then that.
fn over(before: &Directly, changed: &Directly) -> Directly {
    let mut all = before.clone();
    for (object, fields) in changed {
        all.entry(object.clone()).or_default().extend(fields.clone());
    }
    all
}

/// Without the sizes by which what serves would have fewer pods than it has: what takes pods away is a version, and the candidate has them
/// from its own set.
fn without_fewer(draft: &Draft<'_>, plan: &Plan, run: &Run, before: &Directly, mut changed: Directly) -> Directly {
    let Some(serving) = draft.input.sets.get(&run.from) else { return Directly::new() };
    let object = |name: &ObjectName| {
        let namespace = draft.input.id.namespace.clone();
        ObjectRef { kind: plan.target.kind.kind(), namespace, name: name.clone() }
    };
    let own = object(&plan.target.name);
    let renamed = || object(&draft.naming.workload(RoleName::Stable, &plan.target.name));
    let target = if serving.objects.contains_key(&own) { own } else { renamed() };
    let after = over(before, &changed);
    let [was, is] = [before, &after].map(|directly| applied(serving, &target, directly));
    for (name, old) in &was.objects {
        let is_target = *name == target;
        if !direct::lowers([Some(old), is.objects.get(name)], name, is_target) {
            continue;
        }
        let key = if is_target { TARGET.to_owned() } else { named(name) };
        let sizes = if is_target { Some(["/spec/replicas"; 2]) } else { scaler::bounds(name.kind) };
        if let Some(fields) = changed.get_mut(&key) {
            fields.retain(|pointer, _| !sizes.is_some_and(|sizes| sizes.contains(&pointer.as_str())));
        }
    }
    changed.retain(|_, fields| !fields.is_empty());
    changed
}

/// What the record lets there be; nothing where that cannot be told.
fn rendered(draft: &Draft<'_>, plan: &Plan) -> BTreeMap<ObjectRef, Rendered> {
    let context = draft.context(plan, None, None);
    draft.posture().and_then(|posture| inplace::render(posture, &context.facts()).ok()).unwrap_or_default()
}

/// Asks the API server what it says to that, as it is asked before the first step of a run: what it refuses would be held against the version,
/// and could not be taken back either.
fn refused(draft: &mut Draft<'_>, plan: &Plan, before: &BTreeMap<ObjectRef, Rendered>) -> Vec<Wait> {
    let (mut waits, mut needs, mut refusals) = (Vec::new(), Vec::new(), Vec::new());
    let context = draft.context(plan, None, None);
    let all = rendered(draft, plan);
    let changed = all.iter().filter(|(name, now)| before.get(*name).is_none_or(|before| before.object != now.object));
    for (_, Rendered { object, role, .. }) in changed {
        match adopt::ask(&context, object, *role) {
            Reply::Allowed(_) => {}
            Reply::Asked(need) => needs.push(need),
            Reply::Wait(wait) => waits.push(wait),
            Reply::Refused(why) => refusals.push(why),
        }
    }
    if !refusals.is_empty() {
        let why = format!("what main changed in the middle of the run is refused: {}", refusals.join("; "));
        waits.push(Wait::new(Reason::HeldBack, why).act("mend on main what the message names"));
    }
    if !needs.is_empty() {
        waits.push(Wait::new(Reason::Evidence, format!("{} server-side dry runs are on their way", needs.len())));
    }
    draft.needs.extend(needs);
    waits
}

/// Tells why nothing is taken along, as far as nobody has told it.
pub fn tell(draft: &mut Draft<'_>, taken: TakenAlong) {
    if let TakenAlong::Barred(waits) = taken {
        let untold: Vec<Wait> = waits.into_iter().filter(|wait| !draft.waits.contains(wait)).collect();
        draft.waits.extend(untold);
    }
}
