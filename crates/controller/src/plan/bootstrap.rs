//! First sight: from nothing to Steady(Initialized).

use super::adopt::{self, Against, Bootstrap};
use super::adoption;
use super::converge::{Drift, Spare, StableFirst};
use super::decisions::Requested;
use super::draft::{Draft, Manner};
use super::evidence::Need;
use super::floor;
use super::input::{Desired, Input};
use super::missing;
use super::nodes;
use super::report::{Reason, Wait};
use crate::manifest::decision::DecisionAction;
use crate::manifest::desired::Rollout;
use crate::manifest::ids::RunId;
use crate::manifest::object::PODS;
use crate::record::history;
use crate::record::posture::{Directly, Naming, Posture, Role, Size, Split};
use crate::record::schema::KIND;
use crate::record::state::{
    Deletions, Governed, Outcome, Phase, Promoted, Rest, RoleName, RolloutState, Serving, SetSource, StepClock,
};
use crate::record::unknown::Unknown;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How stable is brought up.
pub const BRINGING_UP: Manner<'static> =
    Manner { drift: Drift::Report, stable_first: StableFirst::Yes, spare: Spare::Goes, mark: None, fence: None };

/// The record of a rollout that has none.
#[must_use]
pub fn blank(input: &Input, rollout: &Rollout) -> RolloutState {
    RolloutState {
        api_version: "tidegate.io/v1alpha1".to_owned(),
        kind: KIND.to_owned(),
        metadata: input.id.clone(),
        writer: input.me.clone(),
        seq: 0,
        source: SetSource { commit: input.main.clone(), path: rollout.path.clone() },
        next_run: 1,
        promoted: None,
        phase: Phase::Initializing(StepClock::entered(input.now)),
        run: None,
        last_run: None,
        rollback: None,
        clusters: BTreeMap::new(),
        revert: None,
        deletions: Deletions::default(),
        consumed: Vec::new(),
        refused: Vec::new(),
        conditions: Vec::new(),
        history: Vec::new(),
        policy: Governed::next(None, &rollout.set.id, &input.policy.terms()),
        unknown: Unknown::default(),
    }
}

/// Stable as main wants it. Pods that carry the label of an earlier promotion keep it: adoption restarts none.
fn posture_of(draft: &Draft<'_>, rollout: &Rollout) -> Posture {
    let naming = Naming::of(&rollout.plan);
    let workload = naming.workload(RoleName::Stable, &rollout.plan.target.name);
    let workload = draft.live.find(rollout.plan.target.kind.kind(), &draft.input.id.namespace, &workload);
    let label =
        workload.and_then(|workload| workload.at("/spec/template/metadata/labels")?.get(PODS)?.as_str()?.parse().ok());
    let stable = Role { set: rollout.set.id.clone(), size: Size::Declared, pods: label, directly: Directly::new() };
    Posture { stable, candidate: None, split: Split::stable(), naming }
}

/// Brings stable up; no gates but freeze, suspend and brake.
pub fn initialize(draft: &mut Draft<'_>, asked: &Requested) {
    let Desired::Wanted(rollout) = &draft.input.desired else {
        if let Desired::Gone = draft.input.desired {
            draft.leave("removed from main");
        }
        return;
    };
    let posture = posture_of(draft, rollout);
    match draft.posture() {
        Some(recorded) if *recorded == posture => bring_up(draft, rollout, &posture),
        // Main moved on before the first version was up: nothing of it has to be gone back to.
        Some(_) => look(draft, rollout, posture, Ours::Known, asked),
        None => look(draft, rollout, posture, Ours::Lost, asked),
    }
}

/// What objects with our marks mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ours {
    /// The record knows of them.
    Known,
    /// There is no record of them.
    Lost,
}

fn look(draft: &mut Draft<'_>, rollout: &Arc<Rollout>, posture: Posture, ours: Ours, asked: &Requested) {
    draft.naming = posture.naming.clone();
    let mut waits = super::entry::barred(draft);
    waits.extend(floor::first(draft, rollout));
    if ours == Ours::Lost {
        // Nothing else may hide that the record is lost: neither what bars a step nor what the API server says.
        let ours = adopt::ours(&draft.context(&rollout.plan, None, None)).into_iter();
        waits.extend(ours.filter(|name| rollout.set.objects.contains_key(*name)).map(adopt::lost));
    }
    if !waits.is_empty() {
        draft.waits.extend(waits);
        return;
    }
    let lacks = lacking(draft, rollout);
    let complete = lacks.is_empty();
    draft.waits.extend(lacks);
    let sight = adopt::first_sight(&draft.context(&rollout.plan, None, None), &posture, Against::Live);
    match sight {
        Err(error) => draft.waits.push(Wait::new(Reason::Rejected, error.to_string())),
        Ok(Bootstrap::Wait(waits, needs)) => differ(draft, rollout, &posture, asked, waits, needs),
        Ok(Bootstrap::Refused(why)) => refuse(draft, rollout, why),
        Ok(Bootstrap::Clear) if !complete => {}
        Ok(Bootstrap::Clear) => {
            draft.allow(posture);
            draft.state.phase = Phase::Initializing(StepClock::entered(draft.now()));
            draft.note("nothing is in the way");
            draft.wake(draft.now());
        }
    }
}

/// What the pods that first sight makes cannot do without. Those of others run already, and taking them over restarts none.
fn lacking(draft: &mut Draft<'_>, rollout: &Rollout) -> Vec<Wait> {
    let context = draft.context(&rollout.plan, None, None);
    let (since, live) = (context.since, draft.live.get(&context.workload(RoleName::Stable)));
    if live.is_some_and(|live| !context.is_ours(live)) {
        return Vec::new();
    }
    missing::missing(draft, &rollout.plan, &rollout.set, since)
}

/// Nothing is written, or what is live is adopted.
fn differ(
    draft: &mut Draft<'_>,
    rollout: &Rollout,
    posture: &Posture,
    asked: &Requested,
    waits: Vec<Wait>,
    needs: Vec<Need>,
) {
    let context = draft.context(&rollout.plan, None, None);
    let mut waits: Vec<Wait> = waits.into_iter().map(|wait| adoption::offer(&context, rollout, wait)).collect();
    let live = waits.iter().find_map(|wait| wait.live.as_ref());
    let meant = asked.adopt.clone().filter(
        |accepted| matches!(&accepted.decision.action, DecisionAction::Adopt { live: meant } if Some(meant) == live),
    );
    if let Some(accepted) = meant {
        match adoption::adopt(draft, rollout, posture, accepted) {
            Ok(()) => return,
            Err((others, needs)) => {
                // The record has to go on saying what the decision is about.
                let (same, others): (Vec<_>, Vec<_>) =
                    others.into_iter().partition(|wait| wait.reason == Reason::AdoptionDiffers);
                for wait in waits.iter_mut().filter(|wait| wait.live.is_some()) {
                    let told = wait.act.take().into_iter().chain(same.iter().map(|wait| wait.message.clone()));
                    wait.act = Some(told.collect::<Vec<_>>().join("; it could not be adopted: "));
                }
                draft.waits.extend(others);
                draft.needs.extend(needs);
            }
        }
    }
    draft.waits.extend(waits);
    draft.needs.extend(needs);
}

fn bring_up(draft: &mut Draft<'_>, rollout: &Arc<Rollout>, posture: &Posture) {
    nodes::wake(draft, &rollout.plan, posture);
    let converged = draft.converge(&rollout.plan, posture, BRINGING_UP);
    if let Some(why) = converged.refused {
        refuse(draft, rollout, why);
        return;
    }
    // Nobody may run a gateway for the route yet: that keeps no version from being stable.
    let route_only = converged.actions.is_empty()
        && !converged.waits.is_empty()
        && converged.waits.iter().all(|w| matches!(w.reason, Reason::RouteNotEffective | Reason::RouteUnknown));
    if !(converged.reached || route_only) {
        draft.waits.extend(converged.waits);
        return;
    }
    draft.state.promoted = Some(Promoted {
        set: rollout.set.id.clone(),
        revision: rollout.set.revision.clone(),
        pods: rollout.set.pods.clone(),
        label: posture.stable.pods.clone(),
        run: RunId::zero(),
        commit: Some(draft.input.main.clone()),
        path: Some(rollout.path.clone()),
        decided: Some(SetSource { commit: draft.input.main.clone(), path: rollout.path.clone() }),
        directly: Directly::new(),
        at: draft.now(),
    });
    draft.enter(Phase::Steady { how: Rest::Initialized, since: draft.now() }, "initialized");
}

/// The API server refuses what main wants: nothing is written any more until main says something else, or `retry 0`.
fn refuse(draft: &mut Draft<'_>, rollout: &Rollout, why: String) {
    let (revision, now) = (rollout.set.revision.clone(), draft.now());
    history::refuse(&mut draft.state, revision, RunId::zero(), Outcome::Failed, &why, now);
    let what = format!("refused at first sight: {why}");
    draft.enter(Phase::Failed { why, since: now, standing: Serving::Stable }, what);
}

/// Failed at first sight.
pub fn again(draft: &mut Draft<'_>, rollout: &Rollout) {
    if let Some(wait) = super::idle::refused(draft, rollout) {
        draft.waits.push(wait);
        return;
    }
    draft.enter(Phase::Initializing(StepClock::entered(draft.now())), "first sight again");
}
