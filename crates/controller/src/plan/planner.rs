//! The planner: a pure function of what was observed (design §1). It reads as a list of steps.

use super::action::{Action, Class};
use super::back;
use super::bootstrap;
use super::clock;
use super::context::seq_of;
use super::converge::Drift;
use super::decisions;
use super::deletions;
use super::draft::{Draft, Manner, RecordChange, RolloutPlan};
use super::floor;
use super::forward;
use super::hooks;
use super::idle;
use super::input::{Desired, Input, Live, RecordedState};
use super::introduce;
use super::jobs;
use super::procedure;
use super::renamed::renamed;
use super::report::{Reason, Wait};
use super::terminate;
use super::tracked;
use super::unread;
use super::versions;
use crate::record::state::{Phase, RolloutState, Serving, Time};
use crate::rules::{Rule, holds};
use crate::workload::live::LiveState;
use chrono::TimeDelta;

/// What one rollout shall do next, and what it waits on.
#[must_use]
pub fn plan(input: &Input) -> RolloutPlan {
    let live = match &input.live {
        Live::Seen(live) => live,
        Live::Away { why } => return hold(vec![Wait::new(Reason::ClusterAway, why.clone())]),
    };
    match &input.recorded {
        RecordedState::Unreadable(why) => {
            terminate::blind(input, live, vec![Wait::new(Reason::RecordUnreadable, why.clone())])
        }
        RecordedState::None => match unread::unread(input, live) {
            // What marks it as known may be hidden.
            Some(wait) => blindly(input, vec![wait]),
            None => unrecorded(input, live),
        },
        RecordedState::State(state, plan) => match distrust(input, live, state) {
            Some(Distrust { wait, blind_from: Some(from) }) if from <= input.now => {
                terminate::blind(input, live, vec![wait])
            }
            Some(Distrust { wait, blind_from }) => RolloutPlan { wake_at: blind_from, ..hold(vec![wait]) },
            None => {
                let told = hooks::due(input, state, plan.as_deref());
                let rectified = clock::rectified((**state).clone(), input.now);
                let mut draft = Draft::new(input, live, Some((**state).clone()), rectified, plan.clone());
                if draft.state != **state {
                    draft.note("the clock was set back");
                }
                tracked::look(&mut draft);
                let mut plan = recorded(draft);
                plan.questions.extend(told);
                plan
            }
        },
    }
}

/// What marks and the brake want without a record that is believed, or a plan that could be made from it.
#[must_use]
pub fn blindly(input: &Input, waits: Vec<Wait>) -> RolloutPlan {
    match &input.live {
        Live::Seen(live) => terminate::blind(input, live, waits),
        Live::Away { .. } => hold(waits),
    }
}

/// Nothing is done: why.
#[must_use]
pub fn hold(waits: Vec<Wait>) -> RolloutPlan {
    RolloutPlan {
        retreats: Vec::new(),
        record: RecordChange::Keep,
        actions: Vec::new(),
        proposals: Vec::new(),
        void: Vec::new(),
        waits,
        needs: Vec::new(),
        lookups: Vec::new(),
        questions: Vec::new(),
        review_queries: Vec::new(),
        wake_at: None,
    }
}

/// Between two looks of one process a record lags for seconds; only one that stays behind is as good as none.
const LAG: TimeDelta = TimeDelta::seconds(60);

/// Why a record must not be acted on.
struct Distrust {
    wait: Wait,
    /// From when on marks and the brake act all the same, as where no record can be read.
    blind_from: Option<Time>,
}

/// It is somebody else's, from the future, or older than what live was written under.
fn distrust(input: &Input, live: &LiveState, state: &RolloutState) -> Option<Distrust> {
    let at_once = |reason, why: String| Some(Distrust { wait: Wait::new(reason, why), blind_from: Some(input.now) });
    if let Phase::Unknown(_) = state.phase {
        return at_once(Reason::UnknownPhase, format!("written by tidegate {}", state.writer.version));
    }
    if state.writer.instance != input.me.instance {
        let why = format!("the record was written by the instance {}", state.writer.instance);
        return at_once(Reason::ForeignState, why);
    }
    let cluster = state.clusters.get(&input.me.cluster);
    if let Some(cluster) = cluster.filter(|c| c.uid != live.cluster_uid) {
        let why =
            format!("the record is about the cluster with uid {}, this one has {}", cluster.uid, live.cluster_uid);
        return at_once(Reason::ForeignState, why);
    }
    let owner = input.me.instance.owner_of(&input.id);
    let manager = input.me.instance.in_cluster();
    let ours = live.objects.owned_by(&owner);
    let newest = ours.max_by_key(|o| (seq_of(o, &manager), o.reference()))?;
    let seq = seq_of(newest, &manager);
    if seq <= state.seq || !holds(Rule::Fence) {
        return None;
    }
    let why = format!("{} was written under record {seq}, the one read is {}", newest.reference(), state.seq);
    let blind_from = introduce::written(newest, &manager).map(|at| at + LAG);
    Some(Distrust { wait: Wait::new(Reason::StaleRead, why), blind_from })
}

fn unrecorded(input: &Input, live: &LiveState) -> RolloutPlan {
    match &input.desired {
        Desired::Wanted(rollout) => {
            let mut draft = Draft::new(input, live, None, bootstrap::blank(input, rollout), None);
            tracked::look(&mut draft);
            bootstrap::initialize(&mut draft, &decisions::Requested::default());
            // What is not known yet is no news for Git, and a new record must not hide a lost one.
            let lost = draft.waits.iter().any(|w| w.reason == Reason::StateLost);
            let passing = |wait: &Wait| matches!(wait.reason, Reason::Evidence | Reason::ClusterAway);
            let asking = !draft.waits.is_empty() && draft.waits.iter().all(passing);
            if lost || asking {
                let wake_at = draft.wake_at();
                let Draft { waits, needs, lookups, .. } = draft;
                // The brake needs no record.
                let plan = if lost { terminate::blind(input, live, waits) } else { hold(waits) };
                return RolloutPlan { needs, lookups, wake_at, ..plan };
            }
            draft.finish(due)
        }
        Desired::Lacking(rollout, wait) => {
            let mut draft = Draft::new(input, live, None, bootstrap::blank(input, rollout), None);
            tracked::look(&mut draft);
            if wait.reason == Reason::Evidence {
                return RolloutPlan { lookups: draft.lookups, ..hold(vec![wait.clone()]) };
            }
            draft.waits.extend(input.desired.unread());
            draft.finish(due)
        }
        Desired::Rejected(_) | Desired::Unreadable(_) | Desired::Gone => {
            // The brake needs no file either.
            terminate::blind(input, live, input.desired.unread().into_iter().collect())
        }
    }
}

fn recorded(mut draft: Draft<'_>) -> RolloutPlan {
    let phase_before = draft.state.phase.clone();
    floor::take_note(&mut draft);
    if let Some(wait) = draft.unread.clone() {
        draft.waits.push(wait);
        unread::hold(&mut draft);
    } else {
        let asked = decisions::apply(&mut draft);
        // A decision may have entered a step (`retry`): one that lowers is followed all the same.
        if draft.state.phase == phase_before || draft.aborted.is_some() {
            let phase = draft.state.phase.clone();
            judge(&mut draft, &phase, asked);
        }
        let left = versions::left(&draft);
        draft.waits.extend(left);
    }
    // Also where nothing is to be entered, people have to know.
    let untold = draft.input.desired.unread();
    draft.waits.extend(untold.filter(|untold| draft.waits.iter().all(|wait| wait.reason != untold.reason)));
    if let Some(away) = draft.input.git.trouble() {
        // Nothing is queued: one later commit says what live and marks show.
        let lowered: Vec<Action> = due(&draft).into_iter().filter(|action| action.class == Class::Retreat).collect();
        // What would be recorded is not: that is no reason to look again at once.
        let wake_at = draft.wake_at().filter(|at| *at > draft.now());
        let Draft { retreats, waits, .. } = draft;
        let retreats = [retreats, lowered].concat();
        let waits = [vec![away], waits].concat();
        return RolloutPlan { retreats, wake_at, ..hold(waits) };
    }
    terminate::void_proposals(&mut draft);
    draft.finish(due)
}

/// One step of the phase machine.
fn judge(draft: &mut Draft<'_>, phase: &Phase, asked: decisions::Requested) {
    match phase {
        Phase::Initializing(_) => bootstrap::initialize(draft, &asked),
        Phase::Steady { .. } | Phase::Failed { standing: Serving::Stable, .. } => {
            deletions::renew(draft);
            idle::idle(draft, &asked);
            idle::upkeep(draft);
            deletions::settle(draft, asked.delete);
        }
        Phase::Failed { standing: Serving::OnCandidate, why, .. } => forward::on_candidate(draft, why),
        Phase::Waiting { .. }
        | Phase::Progressing(_)
        | Phase::WaitingPromotion { .. }
        | Phase::Promoting(_)
        | Phase::Finalising(_) => forward::forward(draft),
        Phase::Reverting { position, why, then } => back::reverting(draft, position, why, *then),
        Phase::Terminating { .. } => terminate::terminate(draft),
        Phase::Unknown(_) => {}
    }
}

/// What the record, once it says so, wants done in the cluster now.
fn due(draft: &Draft<'_>) -> Vec<Action> {
    let mut due = [toward_posture(draft), jobs::due(draft)].concat();
    if draft.unread.is_some() {
        due.retain(|action| action.class == Class::Retreat);
    }
    due
}

fn toward_posture(draft: &Draft<'_>) -> Vec<Action> {
    if let Phase::Terminating { .. } = draft.state.phase {
        return terminate::due(draft);
    }
    if renamed(draft).is_some() {
        return Vec::new();
    }
    let (Some(plan), Some(posture)) = (draft.plan_in_force(), draft.posture().cloned()) else { return Vec::new() };
    if draft.is_met(&posture) {
        return Vec::new();
    }
    let how = match &draft.state.phase {
        Phase::Initializing(_) => bootstrap::BRINGING_UP,
        // Refused at first sight: nothing of it is stable.
        Phase::Failed { .. } if draft.state.promoted.is_none() => return Vec::new(),
        Phase::Steady { .. } | Phase::Failed { standing: Serving::Stable, .. } => Manner::AT_REST,
        Phase::Failed { standing: Serving::OnCandidate, .. } => Manner { drift: Drift::Report, ..Manner::AT_REST },
        Phase::Reverting { position, .. } if position.step.as_str() == "retire" => back::retiring_manner(position),
        Phase::Reverting { .. } | Phase::Terminating { .. } | Phase::Unknown(_) => return Vec::new(),
        // Nothing of the run is there yet: what serves is kept as at rest.
        Phase::Waiting { at: None, .. } => Manner::AT_REST,
        Phase::Waiting { at: Some(position), .. }
        | Phase::Progressing(position)
        | Phase::WaitingPromotion { at: position, .. }
        | Phase::Promoting(position)
        | Phase::Finalising(position) => {
            let Some(run) = &draft.state.run else { return Vec::new() };
            let steps = procedure::forward(&plan, run.route, &draft.roles(run));
            let Some(step) = steps.iter().find(|s| s.name == position.step) else { return Vec::new() };
            forward::manner(step, position)
        }
    };
    draft.converge(&plan, &posture, how).actions
}
