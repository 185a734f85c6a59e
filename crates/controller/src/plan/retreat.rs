//! Going back: the part that waits for nothing. It is rendered from live alone and leaves a mark (design §1).

use super::action::{Action, Class, Verb};
use super::adopt;
use super::context::{Context, Stable, exactly};
use super::exposure::{self, Ready};
use super::nodes;
use super::report::{Reason, Wait};
use super::unread;
use crate::manifest::desired::{By, Router};
use crate::manifest::ids::{Percent, RunId};
use crate::manifest::object::{Kind, OWNER, Object, ObjectRef, RETREATED};
use crate::manifest::scaler;
use crate::record::posture::{Directly, Posture, Role, Size, Split};
use crate::record::state::{RoleName, Route, Run};
use crate::rules::{Rule, holds};
use crate::workload::inplace::{self, RenderError, Rendered};
use crate::workload::kinds::shared;
use crate::workload::readiness::{self, Readiness};
use crate::workload::{compare, layouts};
use std::collections::BTreeMap;

/// How far back live is.
#[derive(Debug, Default)]
pub struct Retreat {
    /// What is due now.
    pub actions: Vec<Action>,
    /// What it waits on.
    pub waits: Vec<Wait>,
    /// Everything is back at stable, which is the old version and serves, and everything carries the mark: the record
    /// may be lowered.
    pub seen: bool,
}

/// The mark of a run that goes back.
#[must_use]
pub fn mark(run: &Run, why: &str) -> String {
    let why: String = why.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect();
    format!("{}/{why}", run.id)
}

/// The mark that a live object carries for this run, or for whichever run was open while nobody could read the record.
#[must_use]
pub fn marked_by<'a>(live: &'a Object, run: &Run) -> Option<&'a str> {
    let (of, why) = live.annotation(RETREATED)?.split_once('/')?;
    (of == run.id.as_str() || of == RunId::zero().as_str()).then_some(why)
}

/// An object of ours with a mark that was made while nobody could read the record: it names no run, and no run is opened
/// over it.
#[must_use]
pub fn marked_blindly<'a>(context: &Context<'a>) -> Option<&'a ObjectRef> {
    blind(context).next().map(Object::reference)
}

/// All of them. What is left of versions that were stable before belongs to no run: its mark says nothing, and nobody takes it off.
fn blind<'a>(context: &Context<'a>) -> impl Iterator<Item = &'a Object> {
    let (owner, base) = (context.owner, context.set(context.base));
    let of_base = move |object: &&Object| base.is_none_or(|base| layouts::makes(base, object.reference()));
    let marked = context.live.objects.retreated(RunId::zero().as_str());
    marked.filter(move |object| object.annotation(OWNER) == Some(owner)).filter(of_base)
}

/// Why live says that this run went back: a mark on any object that the split or stable needs.
#[must_use]
pub fn mark_seen<'a>(context: &Context<'a>, run: &Run) -> Option<&'a str> {
    let of_run = context.live.objects.retreated(run.id.as_str());
    // Without a run's id a mark says nothing of whose it is.
    of_run.chain(blind(context)).find_map(|o| marked_by(o, run))
}

/// Whether somebody who could read the record has marked this run.
#[must_use]
pub fn marked_knowingly(context: &Context<'_>, run: &Run) -> bool {
    context.live.objects.retreated(run.id.as_str()).next().is_some()
}

/// What takes traffic back to `old`. Stable is restored first where the run has overwritten it, and traffic stays where
/// enough ready endpoints are (design §5).
#[must_use]
pub fn retreat(context: &Context<'_>, run: &Run, old: &Role, why: &str) -> Retreat {
    let mark = mark(run, why);
    if nodes::is_target(context.plan) {
        return nodes::retreat(context, run, old, &mark);
    }
    of_pods(context, run, old, &mark)
}

fn of_pods(context: &Context<'_>, run: &Run, old: &Role, mark: &str) -> Retreat {
    let mut out = Retreat::default();
    let (at_rest, known) = match objects_at_rest(context, old) {
        Ok(at_rest) => (at_rest, true),
        Err(error) => {
            out.waits.push(Wait::new(Reason::RecordUnreadable, error.to_string()));
            (BTreeMap::new(), false)
        }
    };
    let (stable, kept): (BTreeMap<_, _>, BTreeMap<_, _>) =
        at_rest.into_iter().partition(|(_, rendered)| rendered.role == RoleName::Stable);
    let routes = routes(context, &stable);
    let before = before_promote(context, old, run);
    let to_mark = overwritten(context, &stable, &routes, run);
    // Where the old version is not known, or part of it cannot be seen, what the run has overwritten cannot be put back.
    let known = known && !stable.keys().any(|reference| is_hidden(context, reference));
    let restored =
        restore(context, &stable, &to_mark, mark, &mut out) && (known || context.stable == Stable::Untouched);
    let workload = context.live.get(&context.workload(RoleName::Stable));
    // A person may have said not to wait for stable.
    let insisted = run.skipped.as_ref().is_some_and(|step| step.as_str() == "split");
    let serves = restored && (insisted || stable_serves(context, workload, exposure::ready(context)));
    let marks = out.actions.len();
    let lowered = lower(context, (&routes, &before), run, mark, serves, &mut out);
    // The pods are the evidence: that they go has to be marked first.
    let displaced = exposure::due(context, RoleName::Stable, &Split::stable()).into_iter();
    let displaced = displaced.filter(|_| is_marked(context, &context.workload(RoleName::Stable), run));
    out.actions.extend(displaced.map(|pod| exposure::replaced(context, pod)));
    let promote_may_follow = exposure::live_split(context).map_or(true, |split| split.weight == Percent::ALL);
    if restored && context.stable == Stable::Untouched && !promote_may_follow {
        // Traffic goes first (C-21): a mark on stable may not be taken, and what follows it is left then. Once all requests
        // are sent past stable the mark comes first: a paused leader may be about to overwrite what traffic goes back to.
        out.actions.rotate_left(marks);
    }
    out.actions.extend(kept.keys().filter_map(|reference| mark_kept(context, reference, run, mark)));
    let unread = |reference: &ObjectRef| unread::why(context.live, reference.kind);
    // Of a workload that both roles share it is the split whose pods are whose.
    let pods = exposure::shared_set(context).map(|_| Kind::Pod);
    let kinds = stable.keys().chain(kept.keys()).chain(&routes).map(|reference| reference.kind).chain(pods);
    let is_unread = kinds.into_iter().any(|kind| unread::why(context.live, kind).is_some());
    out.waits.extend(routes.iter().filter_map(|route| {
        let why = format!("{route} cannot be read: {}", unread(route)?);
        Some(Wait::new(Reason::RetreatBlocked, why))
    }));
    out.seen = !is_unread
        && lowered
        && restored
        && known
        && to_mark.iter().chain(kept.keys()).all(|r| is_marked(context, r, run));
    if out.actions.is_empty() && !out.seen && !is_unread && out.waits.is_empty() {
        let stable = workload.map(|stable| readiness::readiness(stable, context.live));
        let missing = match stable {
            Some(Readiness::NotReady { why, .. }) => format!(": {why}"),
            Some(Readiness::Ready) | None => String::new(),
        };
        let why = match context.router().map(Router::by) {
            Some(By::Units) => format!("the candidate's pods are being replaced by stable's{missing}"),
            Some(By::Route | By::Pods | By::Selector) | None => {
                format!("requests stay where they are until stable is back and ready{missing}")
            }
        };
        out.waits.push(Wait::new(Reason::StableNotReady, why));
    }
    out
}

/// The objects that carry the split, but for stable's workload: where that carries it, it is put back as a whole.
fn routes(context: &Context<'_>, stable: &BTreeMap<ObjectRef, Rendered>) -> Vec<ObjectRef> {
    let workload = context.workload(RoleName::Stable);
    let mut routes = exposure::routes(context);
    routes.retain(|route| *route != workload || !stable.contains_key(route));
    routes
}

/// What *promote* has written, with all requests at stable and as the old version has it: a live route of the new version may lead to
/// ports that the old Service does not have.
fn before_promote(context: &Context<'_>, old: &Role, run: &Run) -> BTreeMap<ObjectRef, Rendered> {
    if context.stable == Stable::Untouched {
        return BTreeMap::new();
    }
    let new =
        Role { set: run.to.clone(), size: Size::Declared, pods: Some(run.pods.clone()), directly: Directly::new() };
    let candidate = Some(new).filter(|_| run.route != Route::Plain);
    let posture = Posture { stable: old.clone(), candidate, split: Split::stable(), naming: context.naming.clone() };
    let mut before = inplace::render(&posture, &context.facts()).unwrap_or_default();
    before.retain(|_, rendered| rendered.role == RoleName::Stable);
    before
}

/// All objects at rest, as the old version has them.
fn objects_at_rest(context: &Context<'_>, old: &Role) -> Result<BTreeMap<ObjectRef, Rendered>, RenderError> {
    let naming = context.naming.clone();
    let posture = Posture { stable: old.clone(), candidate: None, split: Split::stable(), naming };
    inplace::render(&posture, &context.facts())
}

/// What the candidate keeps when its run is over stays as it is while traffic may be there, and takes the mark: where it was never
/// written, a paused leader's write to it would still be taken when the run has ended.
fn mark_kept(context: &Context<'_>, reference: &ObjectRef, run: &Run, mark: &str) -> Option<Action> {
    let live = context.live.get(reference).filter(|_| !is_marked(context, reference, run))?;
    let object = Box::new(exposure::retreated(context, live, mark));
    let verb = Verb::Apply { object, expects: exactly(Some(live)) };
    Some(context.action(Class::Retreat, None, verb, format!("{reference}: mark")))
}

/// The stable objects that the run's promote would overwrite, or has; and those that somebody deleted meanwhile.
fn overwritten(
    context: &Context<'_>,
    stable: &BTreeMap<ObjectRef, Rendered>,
    routes: &[ObjectRef],
    run: &Run,
) -> Vec<ObjectRef> {
    let new =
        Role { set: run.to.clone(), size: Size::Declared, pods: Some(run.pods.clone()), directly: Directly::new() };
    let new = objects_at_rest(context, &new).unwrap_or_default();
    let workload = context.workload(RoleName::Stable);
    stable
        .iter()
        .filter(|(reference, _)| !routes.contains(reference) && !context.live.missing.contains(&reference.kind))
        .filter(|(reference, _)| !is_hidden(context, reference))
        .filter(|(reference, old)| {
            let differs = new.get(reference).is_none_or(|new| new.object != old.object);
            differs || **reference == workload || context.live.get(reference).is_none()
        })
        .map(|(reference, _)| reference.clone())
        .collect()
}

/// Puts back and marks each object of stable that promote overwrites; says whether all are back already.
fn restore(
    context: &Context<'_>,
    stable: &BTreeMap<ObjectRef, Rendered>,
    to_mark: &[ObjectRef],
    mark: &str,
    out: &mut Retreat,
) -> bool {
    let marking = marking(context, mark);
    let mut back = true;
    for reference in to_mark {
        let Some(old) = stable.get(reference) else { continue };
        let Some(live) = context.live.get(reference) else {
            back = false;
            let verb = Verb::Apply { object: Box::new(marking.marked(&old.object, old.role)), expects: exactly(None) };
            out.actions.push(context.action(Class::Retreat, None, verb, format!("{reference}: made again")));
            continue;
        };
        // A hand's change to a stable that the run never touched is drift, and waits until the run has ended.
        // A workload that both share has the candidate's pods from the first step on.
        let other = shared::role(live) != old.role;
        let wanted = put_back(&old.object, live);
        // Pods of a set that is not the target are its controller's to replace.
        let is_target = *reference == context.workload(RoleName::Stable);
        let wanted = if is_target { shared::whole(wanted) } else { wanted };
        let differs = other || context.stable == Stable::Overwritten && !differs_beyond_size(&wanted, live).is_empty();
        let unmarked =
            marks_always() && live.annotation(RETREATED).is_none_or(|m| m.split('/').next() != mark.split('/').next());
        if !differs && !unmarked {
            continue;
        }
        let object = if differs {
            back = false;
            let wait = format!("{reference}: the old version is being restored");
            out.waits.push(Wait::new(Reason::StableNotReady, wait));
            marking.marked(&wanted, old.role)
        } else {
            exposure::retreated(context, live, mark)
        };
        let verb = Verb::Apply { object: Box::new(object), expects: exactly(Some(live)) };
        let why = if differs { format!("{reference}: back to the old version") } else { format!("{reference}: mark") };
        out.actions.push(context.action(Class::Retreat, None, verb, why));
    }
    back
}

/// The same, where objects get the mark: what is written on the way back relies on the record that was read.
fn marking<'a>(context: &Context<'a>, mark: &'a str) -> Context<'a> {
    Context { mark: Some(mark).filter(|_| holds(Rule::Mark)), seq: context.read, ..*context }
}

/// Stable keeps the pods that it has: a way back lowers no capacity.
fn put_back(old: &Object, live: &Object) -> Object {
    let mut object = old.clone();
    if let (Some(declared), Some(now)) = (old.int("/spec/replicas"), live.int("/spec/replicas")) {
        object.value_mut()["spec"]["replicas"] = declared.max(now).into();
    }
    object
}

fn differs_beyond_size(old: &Object, live: &Object) -> Vec<compare::Difference> {
    let mut all = compare::differs(old, live);
    all.retain(|d| !scaler::is_size(&d.pointer));
    all
}

/// Whether stable can take the traffic: it is ready, or the candidate has nothing ready either.
fn stable_serves(context: &Context<'_>, target: Option<&Object>, ready: Ready) -> bool {
    let rolled_out = target.is_some_and(|t| readiness::readiness(t, context.live).is_ready());
    if unread::why(context.live, exposure::counted_by(context.router(), &context.view())).is_some() {
        // Nobody knows how many are ready: what was never touched serves as it did, and what was overwritten once it is rolled out.
        return context.stable == Stable::Untouched || rolled_out;
    }
    if ready.candidate == 0 {
        return true;
    }
    // A stable that was never touched serves as it did before the run, whatever one of its pods does now.
    ready.stable > 0 && (rolled_out || context.stable == Stable::Untouched)
}

/// Lowers and marks the routes; says whether all are back and marked already.
fn lower(
    context: &Context<'_>,
    (routes, before): (&[ObjectRef], &BTreeMap<ObjectRef, Rendered>),
    run: &Run,
    mark: &str,
    serves: bool,
    out: &mut Retreat,
) -> bool {
    let back = exposure::live_split(context).is_ok_and(|split| split.is_stable());
    let mut done = back;
    for route in routes {
        let Some(live) = context.live.get(route) else { continue };
        if let Some(theirs) = adopt::not_ours(context.owner, live) {
            // It has the name of one of ours. What leads nobody to the candidate is nothing to wait for.
            out.waits.extend(Some(theirs).filter(|_| !back));
            continue;
        }
        let object = match before.get(route) {
            Some(old) => marking(context, mark).marked(&old.object, old.role),
            None => exposure::retreated(context, live, mark),
        };
        let marked = marked_by(live, run).is_some() || back && !marks_always();
        if marked && compare::differs(&object, live).is_empty() {
            continue;
        }
        done = false;
        if !back && !serves {
            continue;
        }
        let object = Box::new(object);
        let verb = Verb::Apply { object, expects: exactly(Some(live)) };
        let why = format!("{route}: {}", if back { "mark" } else { "all traffic to stable" });
        out.actions.push(context.action(Class::Retreat, None, verb, why));
        if !back && route.kind == Kind::Service {
            // The candidate keeps its pods until the Service was read back: it alone may serve until then.
            return false;
        }
    }
    done
}

/// Whether nobody knows if an object is there, as its kind cannot be read.
fn is_hidden(context: &Context<'_>, reference: &ObjectRef) -> bool {
    unread::why(context.live, reference.kind).is_some() && context.live.get(reference).is_none()
}

fn is_marked(context: &Context<'_>, reference: &ObjectRef, run: &Run) -> bool {
    !marks_always() || context.live.get(reference).is_none_or(|live| marked_by(live, run).is_some())
}

/// Whether a retreat leaves its mark, also where there is nothing to lower.
fn marks_always() -> bool {
    holds(Rule::Mark) && holds(Rule::MarkAlways)
}
