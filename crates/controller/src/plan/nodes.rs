//! Runs over nodes: which version each of them is told about, by what the record names. Requests reach no node, so that what is taken back is
//! not a split but what nodes are told, each by itself.

use super::action::{Action, Class, Verb};
use super::adopt;
use super::context::{Context, exactly};
use super::draft::Draft;
use super::exposure;
use super::procedure::{self, Step};
use super::report::{Reason, Wait};
use super::retreat::{self, Retreat};
use crate::manifest::desired::{Plan, Router, UnitKind};
use crate::manifest::ids::{ObjectName, RunId};
use crate::manifest::object::{Kind, Object};
use crate::record::posture::{Posture, Split, Units};
use crate::record::state::{RoleName, Run};
use crate::rules::{Rule, holds};
use crate::workload::kinds::nodes::{NodeVersions, Nodes, Sight, Unit};
use crate::workload::live::LiveState;

/// The most names of a batch that a commit tells.
const TOLD: usize = 5;

/// Whether nodes are what is rolled out.
#[must_use]
pub fn is_target(plan: &Plan) -> bool {
    plan.traffic.as_ref().is_some_and(|traffic| traffic.router == Router::Units(UnitKind::Node))
}

/// The nodes between the two versions of a posture; of one that has no candidate there is one version. None where something else is rolled
/// out, or a version is not at hand.
#[must_use]
pub fn of_posture<'a>(context: &Context<'a>, posture: &Posture) -> Option<Nodes<'a>> {
    let candidate = posture.candidate.as_ref().unwrap_or(&posture.stable);
    between(context, [context.set(&posture.stable.set)?, context.set(&candidate.set)?])
}

/// The nodes between the versions that a run leads from and to, whatever the record lets them have by now.
fn of_run<'a>(context: &Context<'a>, run: &Run) -> Option<Nodes<'a>> {
    between(context, [context.set(&run.from)?, context.set(&run.to)?])
}

fn between<'a>(
    context: &Context<'a>,
    [stable, candidate]: [&'a crate::manifest::desired::Set; 2],
) -> Option<Nodes<'a>> {
    is_target(context.plan).then(|| {
        let versions = NodeVersions {
            stable,
            candidate,
            attempt: context.run.map_or(0, number),
            proven: context.version.is_some(),
        };
        let age = |from| procedure::observed(from, context.input.now, &context.input.gaps);
        let (live, namespace) = (context.live, context.namespace());
        Nodes::read(context.plan, Sight { live, namespace, manager: context.manager, age: &age }, versions)
    })
}

/// The number of a run: what tells one try from the next.
fn number(run: &RunId) -> u64 {
    run.as_str().split('-').next().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

/// Why nobody is told anything: what nodes are told is somebody else's, or nowhere.
#[must_use]
pub fn barred(context: &Context<'_>, nodes: &Nodes<'_>) -> Vec<Wait> {
    if context.live.missing.contains(&Kind::NodeConfig) {
        return vec![Wait::new(Reason::CrdMissing, LiveState::unserved(Kind::NodeConfig))];
    }
    let configs = nodes.units().iter().filter_map(|unit| unit.config);
    configs.filter_map(|config| adopt::claimed_by_others(context, config)).take(1).collect()
}

/// Whether what a node is told is this rollout's to say.
#[must_use]
pub fn is_ours(context: &Context<'_>, unit: &Unit<'_>) -> bool {
    unit.config.is_none_or(|config| adopt::claimed_by_others(context, config).is_none())
}

/// Tells a node about the version of that role: exactly over what was read, so that who has moved meanwhile stays as it is.
#[must_use]
pub fn told(
    context: &Context<'_>,
    nodes: &Nodes<'_>,
    (unit, role): (&Unit<'_>, RoleName),
    (class, posture): (Class, &Posture),
) -> Action {
    let revision = |role: &crate::record::posture::Role| {
        context.set(&role.set).map(|set| set.revision.as_str()).unwrap_or_default().to_owned()
    };
    let candidate = posture.candidate.as_ref().unwrap_or(&posture.stable);
    let (stable, candidate) = (revision(&posture.stable), revision(candidate));
    let object = nodes.assigned(unit, role, (&stable, &candidate));
    let which = if role == RoleName::Candidate { "the candidate's" } else { "stable's" };
    let why = format!("node {}: {which} files", unit.name());
    let verb = Verb::Apply { object: Box::new(context.marked(&object, role)), expects: exactly(unit.config) };
    let of = (class != Class::Retreat).then(|| posture.digest());
    context.action(class, of, verb, why)
}

/// What a run that goes back wants of nodes: at once what those are told that have not said that they have the new version, at the pace all
/// others. Who is named and was not told yet gets the mark: a paused leader's word to it is stale then.
#[must_use]
pub fn retreat(context: &Context<'_>, run: &Run, old: &crate::record::posture::Role, mark: &str) -> Retreat {
    let mut out = Retreat::default();
    let Some(nodes) = of_run(context, run) else {
        let why = "the versions between which the run goes are not on the state branch";
        out.waits.push(Wait::new(Reason::RecordUnreadable, why));
        return out;
    };
    let marking = Context { mark: Some(mark).filter(|_| holds(Rule::Mark)), seq: context.read, ..*context };
    let posture =
        Posture { stable: old.clone(), candidate: None, split: Split::stable(), naming: context.naming.clone() };
    for (object, role) in nodes.contents(context.namespace()).into_values() {
        if role == RoleName::Stable && context.live.get(object.reference()).is_none() {
            let verb = Verb::Apply { object: Box::new(marking.marked(&object, role)), expects: exactly(None) };
            out.actions.push(context.action(Class::Retreat, None, verb, format!("{}: made again", object.reference())));
        }
    }
    let back = nodes.due_back().into_iter().filter(|(unit, _)| is_ours(context, unit));
    out.actions.extend(back.map(|going| told(&marking, &nodes, going, (Class::Retreat, &posture))));
    let named = |unit: &&Unit<'_>| context.units.batch.contains(unit.name());
    let untouched = nodes.units().iter().filter(|unit| !unit.is_new() && is_ours(context, unit)).filter(named);
    let untouched = untouched.filter_map(|unit| unit.config);
    let unmarked: Vec<&Object> =
        untouched.filter(|config| holds(Rule::Mark) && retreat::marked_by(config, run).is_none()).collect();
    out.actions.extend(unmarked.iter().map(|config| {
        let object = Box::new(exposure::retreated(context, config, mark));
        let verb = Verb::Apply { object, expects: exactly(Some(config)) };
        context.action(Class::Retreat, None, verb, format!("{}: mark", config.reference()))
    }));
    let left = nodes.carriers().count();
    let on_their_way = nodes.units().iter().filter(|unit| unit.is_moving()).count();
    out.seen = left == 0 && on_their_way == 0 && unmarked.is_empty();
    if !out.seen {
        let why = format!("{left} nodes have the new version still, and {on_their_way} have to say that they are back");
        out.waits.push(Wait::new(Reason::StableNotReady, why));
    }
    out
}

/// The units that the record lets in: as a step is entered, those of its share and number that are next.
#[must_use]
pub fn let_in(context: &Context<'_>, posture: &Posture) -> Option<Units> {
    let nodes = of_posture(context, posture)?;
    let mut split = posture.split.clone();
    split.units.done = nodes.most(&posture.split);
    if nodes.failed().is_none()
        && let Some(batch) = nodes.next_batch(&split)
    {
        split.units.batch = batch;
    }
    Some(split.units)
}

/// The steps of a run after the next nodes were named in the record, before any of them is told, early enough that the pace waits for no commit
/// (requirement N-25); and it is looked again when the first node is late.
pub fn named(draft: &mut Draft<'_>, plan: &Plan, run: &Run, steps: Vec<Step>, at: usize) -> Vec<Step> {
    if !is_target(plan) {
        return steps;
    }
    wake(draft, plan, &steps[at].posture);
    if name_next(draft, plan, &steps[at]) {
        return procedure::forward(plan, run.route, &draft.roles(run));
    }
    steps
}

fn name_next(draft: &mut Draft<'_>, plan: &Plan, step: &Step) -> bool {
    if draft.unread.is_some() || step.posture.split.is_stable() || draft.posture() != Some(&step.posture) {
        return false;
    }
    let context = draft.context(plan, None, None);
    let Some(nodes) = of_posture(&context, &step.posture).filter(|nodes| nodes.failed().is_none()) else {
        return false;
    };
    let Some(batch) = nodes.next_batch(&step.posture.split) else { return false };
    let before = &step.posture.split.units.batch;
    let new: Vec<&ObjectName> = batch.iter().filter(|name| !before.contains(*name)).collect();
    let more = if new.len() > TOLD { format!(" and {} more", new.len() - TOLD) } else { String::new() };
    let names = new.iter().take(TOLD).map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
    let note = format!("next {names}{more}");
    let mut posture = step.posture.clone();
    posture.split.units.batch = batch;
    draft.allow(posture);
    draft.note(note);
    true
}

/// Why nodes speak against the version of a run: one says that it could not take it.
#[must_use]
pub fn failed(context: &Context<'_>, step: &Step) -> Option<String> {
    of_posture(context, &step.posture)?.failed()
}

/// Looks again when the first node is late.
pub fn wake(draft: &mut Draft<'_>, plan: &Plan, posture: &Posture) {
    let left = of_posture(&draft.context(plan, None, None), posture).and_then(|nodes| nodes.next_deadline());
    left.into_iter().for_each(|left| draft.wake(draft.now() + left.delta()));
}
