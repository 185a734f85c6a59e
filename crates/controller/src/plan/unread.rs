//! Kinds that cannot be read now, as where one rule is missing from a Role, or one kind's list is too long to be answered: whoever
//! needs one of them goes back where a person, a mark, the brake or a check says so, and else holds; nobody else notices.

use super::decisions;
use super::draft::Draft;
use super::input::{Desired, Input, RecordedState};
use super::report::{Reason, Wait};
use super::{back, forward};
use crate::manifest::desired::{Plan, Set};
use crate::manifest::ids::SetId;
use crate::manifest::object::Kind;
use crate::manifest::reference;
use crate::manifest::scaler;
use crate::record::posture::Naming;
use crate::record::state::{Phase, RolloutState, Serving};
use crate::rules::{Rule, holds};
use crate::workload::live::LiveState;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The kinds that a rollout's plan may ask for, whatever it comes to: those of its own objects, and what others have beside them. A
/// NetworkPolicy only informs.
#[must_use]
pub fn needs(input: &Input) -> BTreeSet<Kind> {
    &own(input) | &beside(input)
}

/// The kinds of what a rollout has, or shall have.
fn own(input: &Input) -> BTreeSet<Kind> {
    let mut kinds = BTreeSet::from([Kind::Pod, Kind::EndpointSlice]);
    let wanted = match &input.desired {
        Desired::Wanted(rollout) | Desired::Lacking(rollout, _) => Some(&rollout.plan),
        Desired::Rejected(_) | Desired::Gone | Desired::Unreadable(_) => None,
    };
    let (state, open) = match &input.recorded {
        RecordedState::State(state, plan) => (Some(state), plan.as_deref()),
        RecordedState::None | RecordedState::Unreadable(_) => (None, None),
    };
    for plan in wanted.into_iter().chain(open) {
        kinds.extend(of_plan(plan));
    }
    let wanted = match &input.desired {
        Desired::Wanted(rollout) | Desired::Lacking(rollout, _) => Some(&rollout.set.id),
        Desired::Rejected(_) | Desired::Gone | Desired::Unreadable(_) => None,
    };
    // Versions of before may have had what nobody may write any more.
    let current = state.iter().flat_map(|state| current(state)).chain(wanted).filter_map(|id| input.sets.get(id));
    kinds.extend(current.flat_map(|set| set.objects.keys()).map(|object| object.kind));
    if let Some(state) = state {
        let owned = state.clusters.values().flat_map(|cluster| &cluster.inventory);
        kinds.extend(owned.map(|owned| owned.reference.kind));
        kinds.extend(state.run.as_ref().filter(|run| !run.jobs.is_empty()).map(|_| Kind::Job));
    }
    // Layers are in no cluster: it has the nodes, what each is told, and contents.
    if kinds.remove(&Kind::NodeConfigLayer) {
        kinds.extend([Kind::Node, Kind::NodeConfig, Kind::ConfigMap]);
    }
    kinds
}

/// The versions that are in the cluster, or are to be.
fn current(state: &RolloutState) -> impl Iterator<Item = &SetId> {
    let postures = state.clusters.values().map(|cluster| &cluster.posture);
    let roles = postures.flat_map(|posture| [Some(&posture.stable), posture.candidate.as_ref()]);
    let run = state.run.iter().flat_map(|run| [&run.from, &run.to]);
    roles.flatten().map(|role| &role.set).chain(run).chain(state.promoted.iter().map(|promoted| &promoted.set))
}

/// The kinds of what others may have: what its pods name, Services and workloads that may not lead to them nor claim them, an autoscaler
/// that chooses the size of what is taken over, what keeps an old version by leading to it, and Jobs of runs that nobody knows any more.
fn beside(input: &Input) -> BTreeSet<Kind> {
    let mut kinds = BTreeSet::from([Kind::Service, Kind::Deployment]);
    for set in input.sets.values() {
        kinds.extend(set.objects.keys().map(|object| object.kind).chain(named(set)));
    }
    let state = match &input.recorded {
        RecordedState::State(state, _) => Some(state),
        RecordedState::None | RecordedState::Unreadable(_) => None,
    };
    if state.is_none_or(|state| matches!(state.phase, Phase::Initializing(_))) {
        kinds.extend(scaler::KINDS);
    }
    if state.is_some_and(|state| matches!(state.phase, Phase::Terminating { .. })) {
        kinds.insert(Kind::Job);
    }
    kinds.remove(&Kind::NodeConfigLayer);
    let mut clusters = state.iter().flat_map(|state| state.clusters.values());
    if clusters.any(|cluster| matches!(cluster.posture.naming, Naming::Versioned(_))) {
        kinds.extend(Kind::ROUTES.iter().chain(Kind::WORKLOADS));
    }
    kinds
}

fn of_plan(plan: &Plan) -> BTreeSet<Kind> {
    let mut kinds = BTreeSet::from([plan.target.kind.kind()]);
    if let Some(traffic) = &plan.traffic {
        kinds.extend(traffic.router.service().map(|_| Kind::Service));
        kinds.extend(traffic.router.route().map(|(kind, _)| kind));
    }
    if !plan.jobs.is_empty() {
        kinds.insert(Kind::Job);
    }
    if !plan.target.track.is_empty() {
        kinds.insert(Kind::ConfigMap);
    }
    kinds
}

fn named(set: &Set) -> BTreeSet<Kind> {
    let mut kinds = BTreeSet::new();
    for workload in set.objects.values().filter(|object| Kind::WORKLOADS.contains(&object.reference().kind)) {
        let named = reference::references(workload.at("/spec/template").unwrap_or(&Value::Null));
        kinds.extend(named.iter().filter_map(|reference| reference.to.kind()));
    }
    if !set.tracked.is_empty() {
        kinds.insert(Kind::ConfigMap);
    }
    kinds
}

/// What of the kinds that a rollout needs cannot be read. What others have of kinds that this installation may not write is not looked at.
#[must_use]
pub fn unread(input: &Input, live: &LiveState) -> Option<Wait> {
    let own = own(input);
    let asked_for = |kind: &Kind| kind.is_other() || Kind::OF_NODES.contains(kind);
    if live.closed.is_empty() && live.unwatched.is_empty() && !own.iter().any(asked_for) {
        return None;
    }
    let own = own.into_iter().filter_map(|kind| Some((kind, why(live, kind)?)));
    let beside = beside(input).into_iter().filter(|kind| !live.unwatched.contains(kind));
    let unread: BTreeMap<Kind, &str> = beside.filter_map(|kind| Some((kind, why(live, kind)?))).chain(own).collect();
    let told: Vec<String> = unread.iter().map(|(kind, why)| format!("{kind}: {why}")).collect();
    let why = || format!("cannot be read in {}: {}", input.id.namespace, told.join("; "));
    (!told.is_empty()).then(|| Wait::new(Reason::ClusterAway, why()))
}

/// Why a kind cannot be read, if it cannot.
#[must_use]
pub fn why(live: &LiveState, kind: Kind) -> Option<&str> {
    let unwatched =
        || live.unwatched.contains(&kind).then_some("not among the kinds of this installation (caps.kinds)");
    let asked_for = kind.is_other() || Kind::OF_NODES.contains(&kind);
    let unasked = || (asked_for && !live.others.contains(&kind)).then_some("not looked at yet");
    live.closed.get(&kind).map(String::as_str).or_else(unwatched).or_else(unasked).filter(|_| holds(Rule::Unread))
}

/// What is done nevertheless: what lowers. At rest no decision is counted, since what follows it could not be done now.
pub fn hold(draft: &mut Draft<'_>) {
    if draft.state.run.is_none() {
        return;
    }
    let phase_before = draft.state.phase.clone();
    decisions::apply(draft);
    if draft.state.phase != phase_before && draft.aborted.is_none() {
        return;
    }
    match draft.state.phase.clone() {
        Phase::Waiting { .. }
        | Phase::Progressing(_)
        | Phase::WaitingPromotion { .. }
        | Phase::Promoting(_)
        | Phase::Finalising(_) => forward::forward(draft),
        Phase::Failed { standing: Serving::OnCandidate, why, .. } => forward::on_candidate(draft, &why),
        Phase::Reverting { position, why, then } => back::reverting(draft, &position, &why, then),
        Phase::Initializing(_)
        | Phase::Steady { .. }
        | Phase::Failed { standing: Serving::Stable, .. }
        | Phase::Terminating { .. }
        | Phase::Unknown(_) => {}
    }
}
