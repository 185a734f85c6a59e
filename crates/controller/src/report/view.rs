//! What a record says, for everybody who shows it; as `-o json` prints it: names and meanings of these fields are stable.
//!
//! Everything here follows from the record, the plan of its open run and the time; nothing is asked of a cluster.

use super::projection;
use crate::manifest::desired::Plan;
use crate::manifest::ids::{InstanceName, RolloutId};
use crate::manifest::load::Rejected;
use crate::manifest::object::Kind;
use crate::plan::procedure::{self, Roles, Stage, Step};
use crate::plan::report::Reason;
use crate::plan::unready;
use crate::record::posture::Naming;
use crate::record::state::{Phase, Position, Pull, RolloutState, Run, Serving, Time};
use crate::record::text::{exposure, plain, since};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// The record of one rollout, with the plan of its open run.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// The record.
    pub state: RolloutState,
    /// The plan of its open run.
    pub plan: Option<Plan>,
}

/// All records, by rollout; those that cannot be read with the reason.
pub type Records = BTreeMap<RolloutId, Result<Record, String>>;

/// All rollouts of an instance.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusView {
    /// The instance.
    pub instance: InstanceName,
    /// The tip of its state branch, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tip: Option<String>,
    /// Why main cannot be read, so that nothing new of it is followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub main_unreadable: Option<String>,
    /// The rollouts: first those that went wrong, then those under way, then those at rest; by name.
    pub rollouts: Vec<RolloutView>,
}

/// Where a rollout stands.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RolloutView {
    /// `namespace/name`.
    #[serde(serialize_with = "as_text")]
    pub rollout: RolloutId,
    /// The phase; `Unreadable` when the record is.
    pub phase: String,
    /// The step that it stands on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The step that it would enter next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// The steps of the open run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<String>,
    /// How many of `steps` were entered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entered: Option<usize>,
    /// The most that the new version may be reached by, per cluster, in words; empty: not at all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exposure: Vec<Exposure>,
    /// The open run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// What the open run brings, else what is promoted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// What is promoted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promoted: Option<String>,
    /// Since when it stands there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// Whether what main wants is promoted, as a condition of Kubernetes; none without a record.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<projection::ProjectedCondition>,
    /// All that it waits on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<WaitView>,
    /// How much it needs a person.
    #[serde(skip)]
    pub urgency: Urgency,
}

fn as_text<S: Serializer>(id: &RolloutId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(id)
}

/// What the record lets one cluster expose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Exposure {
    /// The cluster.
    pub cluster: String,
    /// The share of requests, in percent.
    pub weight: u8,
    /// Weight and headers, in words.
    pub words: String,
}

/// One thing that a rollout waits on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitView {
    /// One word.
    pub reason: String,
    /// What it means here.
    pub message: String,
    /// Who can change it.
    pub owner: String,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// The earliest moment at which it ends by itself, which is also when it is looked at next. Without one it is looked
    /// at with each push, each change in the cluster and each poll.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    /// What a person can do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub act: Option<String>,
}

/// How much a rollout needs a person: what went wrong first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// It went wrong, or cannot be read.
    Wrong,
    /// It is on its way back.
    Back,
    /// A person or a window is awaited.
    Waiting,
    /// It goes on by itself.
    Moving,
    /// It is at rest.
    Rest,
}

impl RolloutView {
    /// Whether a run is open, as far as anybody can tell.
    #[must_use]
    pub fn may_be_open(&self) -> bool {
        self.run.is_some() || matches!(self.phase.as_str(), "Unknown" | "Unreadable")
    }
}

impl Urgency {
    /// Of a rollout in that phase, which waits on something or on nothing.
    pub(crate) fn of(phase: &Phase, waits: bool) -> Self {
        match phase {
            Phase::Failed { .. } | Phase::Unknown(_) => Self::Wrong,
            Phase::Reverting { .. } => Self::Back,
            Phase::Waiting { .. } | Phase::WaitingPromotion { .. } => Self::Waiting,
            // At rest and yet in want of something: a rejected file, drift.
            Phase::Steady { .. } if waits => Self::Waiting,
            Phase::Steady { .. } => Self::Rest,
            Phase::Initializing(_)
            | Phase::Progressing(_)
            | Phase::Promoting(_)
            | Phase::Finalising(_)
            | Phase::Terminating { .. } => Self::Moving,
        }
    }
}

/// All records as views, what needs a person first.
#[must_use]
pub fn rollouts(records: &Records, now: Time) -> Vec<RolloutView> {
    let mut views: Vec<RolloutView> = records
        .iter()
        .map(|(id, record)| match record {
            Ok(record) => rollout(record, now),
            Err(why) => unreadable(id, why),
        })
        .collect();
    sort(&mut views);
    views
}

/// What needs a person first; by name.
pub fn sort(views: &mut [RolloutView]) {
    views.sort_by(|a, b| (a.urgency, &a.rollout).cmp(&(b.urgency, &b.rollout)));
}

/// A rollout whose record cannot be read.
#[must_use]
pub fn unreadable(id: &RolloutId, why: &str) -> RolloutView {
    without_record(id, "Unreadable", wait(id, Reason::RecordUnreadable, why, None))
}

/// How many errors of a rejected rollout are told: `validate` tells them all.
const ERRORS: usize = 3;

/// A rollout that main declares with errors and that has no record: no controller has ever acted on it.
#[must_use]
pub fn rejected(id: &RolloutId, Rejected { paths: _, diagnostics }: &Rejected) -> RolloutView {
    let mut errors: Vec<String> = diagnostics.iter().take(ERRORS).map(ToString::to_string).collect();
    if let Some(more) = diagnostics.len().checked_sub(ERRORS).filter(|more| *more > 0) {
        errors.push(format!("and {more} more"));
    }
    without_record(id, "Rejected", wait(id, Reason::Rejected, &errors.join("; "), None))
}

fn without_record(id: &RolloutId, phase: &str, wait: WaitView) -> RolloutView {
    RolloutView {
        rollout: id.clone(),
        phase: phase.to_owned(),
        step: None,
        next: None,
        steps: Vec::new(),
        entered: None,
        exposure: Vec::new(),
        run: None,
        revision: None,
        promoted: None,
        since: None,
        conditions: Vec::new(),
        waits: vec![wait],
        urgency: Urgency::Wrong,
    }
}

/// A record as a view.
#[must_use]
pub fn rollout(record: &Record, now: Time) -> RolloutView {
    let Record { state, plan } = record;
    let steps = steps(state, plan.as_ref());
    let names: Vec<String> = steps.iter().map(|step| step.name.to_string()).collect();
    // A promotion that failed is where a run on its candidate stands.
    let failed = matches!(state.phase, Phase::Failed { standing: Serving::OnCandidate, .. });
    let step =
        state.phase.position().map(|position| position.step.to_string()).or(failed.then(|| "promote".to_owned()));
    let at = step.as_ref().and_then(|step| names.iter().position(|name| name == step));
    let entered = (!names.is_empty()).then(|| at.map_or(0, |at| at + 1));
    let next = if let Phase::Waiting { next, .. } = &state.phase {
        Some(next.to_string())
    } else {
        at.and_then(|at| names.get(at + 1).cloned())
    };
    let promoted = state.promoted.as_ref().map(|promoted| promoted.revision.to_string());
    let brought = state.run.as_ref().map(|run| run.revision.to_string());
    let waits = waits(record, &steps, now);
    RolloutView {
        rollout: state.metadata.clone(),
        phase: state.phase.name().to_owned(),
        step,
        next,
        steps: names,
        entered,
        exposure: exposures(state),
        run: state.run.as_ref().map(|run| run.id.to_string()),
        revision: brought.or_else(|| promoted.clone()),
        promoted,
        since: since(&state.phase),
        conditions: vec![projection::promoted(state)],
        urgency: Urgency::of(&state.phase, !waits.is_empty()),
        waits,
    }
}

fn exposures(state: &RolloutState) -> Vec<Exposure> {
    let one = |(cluster, state): (&crate::manifest::ids::ClusterName, &crate::record::state::ClusterState)| {
        let split = &state.posture.split;
        let words = exposure(split)?;
        Some(Exposure { cluster: cluster.to_string(), weight: split.weight.get(), words })
    };
    state.clusters.iter().filter_map(one).collect()
}

/// The steps of the open run; none if no run is open, it is on its way back, or its plan is not there.
#[must_use]
pub fn steps(state: &RolloutState, plan: Option<&Plan>) -> Vec<Step> {
    let (Some(run), Some(plan)) = (&state.run, plan) else { return Vec::new() };
    if let Phase::Reverting { .. } = state.phase {
        return Vec::new();
    }
    // Labels and sizes differ from the controller's; names, gates and soaks do not depend on them.
    procedure::forward(plan, run.route, &Roles::of(run, None, 0, Naming::of(plan)))
}

/// All that a rollout waits on, as far as the repository tells.
fn waits(record: &Record, steps: &[Step], now: Time) -> Vec<WaitView> {
    let Record { state, plan } = record;
    let mut waits = Vec::new();
    waits.extend(of_phase(state, plan.as_ref()));
    if let (Some(run), Some(position)) = (&state.run, state.phase.position()) {
        waits.extend(steps.iter().find(|step| step.name == position.step).and_then(|step| {
            let plan = plan.as_ref()?;
            of_step(state, plan, run, step, position, now)
        }));
    }
    // A run that failed says why itself, and what to do.
    let failed = matches!(state.phase, Phase::Failed { standing: Serving::Stable, .. });
    for condition in state.conditions.iter().filter(|c| !failed || c.reason != Reason::Refused.as_str()) {
        let known = Reason::ALL.iter().find(|known| known.as_str() == condition.reason);
        let revert = state.revert.as_ref().filter(|_| known == Some(&Reason::Refused));
        let own = condition.act.as_deref().map(plain);
        let act = own.or_else(|| known.and_then(|known| hint(&state.metadata, *known)));
        waits.push(WaitView {
            reason: plain(&condition.reason),
            message: plain(&condition.message),
            owner: known.map_or("unknown", |known| known.owner()).to_owned(),
            since: Some(condition.since),
            until: condition.until,
            act: act.map(|act| or_revert(revert, &act)),
        });
    }
    waits
}

/// What people can do about a reason that does not say so itself.
fn hint(id: &RolloutId, reason: Reason) -> Option<String> {
    reason.hint().map(|hint| hint.replace("ROLLOUT", &id.to_string()))
}

/// What people can do; first of all to merge the branch that undoes the change on main, if there is one.
fn or_revert(revert: Option<&Pull>, act: &str) -> String {
    match revert {
        Some(Pull { branch, .. }) => {
            format!("merge {} into main, which undoes the change; or {act}", plain(branch))
        }
        None => act.to_owned(),
    }
}

fn wait(id: &RolloutId, reason: Reason, message: &str, since: Option<Time>) -> WaitView {
    WaitView {
        reason: reason.as_str().to_owned(),
        message: plain(message),
        owner: reason.owner().to_owned(),
        since,
        until: None,
        act: hint(id, reason),
    }
}

/// What the phase itself says.
fn of_phase(state: &RolloutState, plan: Option<&Plan>) -> Option<WaitView> {
    let id = &state.metadata;
    let own = |reason: &str, message: &str, owner: &str, since: Time, act: String| WaitView {
        reason: reason.to_owned(),
        message: plain(message),
        owner: owner.to_owned(),
        since: Some(since),
        until: None,
        act: Some(act).filter(|act| !act.is_empty()),
    };
    match &state.phase {
        Phase::Failed { why, since, standing: Serving::Stable } => {
            let act = or_revert(state.revert.as_ref(), &format!("change the manifests, or: tidegate retry {id}"));
            Some(own("Failed", why, "the team", *since, act))
        }
        Phase::Failed { why, since, standing: Serving::OnCandidate } => {
            let act = format!("tidegate retry {id}, or: tidegate abort {id}");
            Some(own(Reason::OnCandidate.as_str(), why, Reason::OnCandidate.owner(), *since, act))
        }
        Phase::Reverting { position, why, .. } => {
            Some(own("GoingBack", why, "tidegate", position.clock.entered, String::new()))
        }
        Phase::Unknown(_) => {
            let why = format!("written by tidegate {}: this version cannot tell what it means", state.writer.version);
            Some(wait(id, Reason::UnknownPhase, &why, None))
        }
        Phase::Initializing(_)
        | Phase::Steady { .. }
        | Phase::Waiting { .. }
        | Phase::Progressing(_)
        | Phase::WaitingPromotion { .. }
        | Phase::Promoting(_)
        | Phase::Finalising(_)
        | Phase::Terminating { .. } => {
            let run = state.run.as_ref().filter(|_| plan.is_none())?;
            let why = format!("the plan of run {} is not on the state branch", run.id);
            Some(wait(id, Reason::RecordUnreadable, &why, None))
        }
    }
}

/// What the step that is entered still needs: to be reached, then to soak.
fn of_step(
    state: &RolloutState,
    plan: &Plan,
    run: &Run,
    step: &Step,
    position: &Position,
    now: Time,
) -> Option<WaitView> {
    if matches!(state.phase, Phase::Waiting { .. } | Phase::WaitingPromotion { .. } | Phase::Reverting { .. }) {
        return None;
    }
    let Some(exposed) = position.clock.exposed else {
        let limit = plan.progress_deadline;
        let message = format!(
            "{}: not reached yet: pods become ready, the route comes into force; pods may take {limit}",
            step.name
        );
        // A route that no gateway takes up has no deadline: nobody is exposed to anything by it. Elsewhere the kind may be unknown.
        let route = plan.traffic.as_ref().and_then(|traffic| traffic.router.route());
        let kind = route.map_or(Kind::Service, |(kind, _)| kind).plural();
        let look = format!("kubectl --namespace {} describe deployments,{kind}", state.metadata.namespace);
        return Some(WaitView {
            reason: "NotReached".to_owned(),
            message,
            owner: "the team".to_owned(),
            since: Some(position.clock.entered),
            until: None,
            act: Some(format!("if it stays so, see what is missing: {look}")),
        });
    };
    if position.clock.failing {
        return Some(wait(
            &state.metadata,
            Reason::CandidateNotReady,
            &unready::message(position),
            position.clock.lost,
        ));
    }
    let Ok(soaking) = procedure::soaking(plan, run, step, &position.clock, now, &[]) else {
        return due(state, step, exposed + procedure::soak(plan, run, step).delta());
    };
    let mut wait = wait(&state.metadata, Reason::Soak, &soaking.message, soaking.since);
    wait.until = soaking.until;
    wait.act = (step.stage != Stage::Finalising).then(|| format!("tidegate skip {}", state.metadata));
    Some(wait)
}

/// A step that has nothing left to wait for: a controller that acts enters the next one at its next look. Checks without
/// a result keep it there, and say so.
fn due(state: &RolloutState, step: &Step, since: Time) -> Option<WaitView> {
    if state.conditions.iter().any(|condition| condition.reason == Reason::Inconclusive.as_str()) {
        return None;
    }
    let act = "if this stays, no controller acts: look at the Lease in its namespace (who holds it, renewed when) and at \
               its log";
    Some(WaitView {
        reason: "Due".to_owned(),
        message: format!("{}: its time is over, and what comes next is due", step.name),
        owner: "tidegate".to_owned(),
        since: Some(since),
        until: None,
        act: Some(act.to_owned()),
    })
}
