//! What would become of a rollout if these files were merged: told from its files, its record and the policy, without a
//! cluster.

use super::along;
use super::checks;
use super::direct;
use super::forecast::{Forecast, Way, forecast};
use super::idle;
use super::procedure;
use super::versions;
use crate::manifest::desired::{Layout, Plan, Rollout, Set, Suspend, TargetKind};
use crate::manifest::ids::CheckName;
use crate::manifest::policy::Policy;
use crate::manifest::set;
use crate::manifest::tracked::Tracked;
use crate::record::state::{Outcome, Phase, Promoted, RolloutState, Route, Time};
use crate::record::text::{place, plain};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What would happen to one rollout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outlook {
    /// In a word.
    pub change: Effect,
    /// In a sentence.
    pub message: String,
    /// The way of its run, where there is one.
    pub forecast: Option<Forecast>,
    /// What its checks ask a Prometheus about the candidate, by their names.
    pub queries: BTreeMap<CheckName, String>,
    /// Whether its file keeps it from entering anything.
    pub suspend: Suspend,
}

/// What would happen, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Effect {
    /// Nothing.
    None,
    /// Its first version is created, or adopted.
    FirstSight,
    /// Applied without a run.
    Direct,
    /// A run starts.
    Run,
    /// This is what the open run brings.
    UnderWay,
    /// The open run goes back, and a run for this starts.
    Supersedes,
    /// The open run goes back: this is what is promoted.
    TakesBack,
    /// This revision was refused.
    Refused,
    /// Its files have errors; nothing happens to it.
    Rejected,
    /// It is no longer among the files.
    Removed,
    /// Its record cannot be used: nothing happens to it.
    Held,
}

/// What the record knows of a rollout.
#[derive(Debug, Clone, Copy)]
pub struct KnownRecord<'a> {
    /// The record.
    pub state: &'a RolloutState,
    /// The plan of its open run.
    pub plan: Option<&'a Plan>,
    /// The set that is promoted, or why it cannot be read; none if it is not at hand.
    pub promoted: Option<Result<&'a Set, &'a str>>,
    /// The set of the last run, if that went back; none if it is not at hand.
    pub tried: Option<&'a Set>,
    /// The set that the open run began with; none if it is not at hand.
    pub brought: Option<&'a Set>,
}

impl Outlook {
    fn of(change: Effect, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { change, message, forecast: None, queries: BTreeMap::new(), suspend: Suspend::No }
    }

    /// The same of what may be kept from being entered.
    fn entering(self, rollout: &Rollout) -> Self {
        Self { suspend: rollout.suspend, ..self }
    }
}

/// The rollout with what of this it tracks: where only files are at hand, what is live is taken to be as its record knew it
/// last.
#[must_use]
pub fn tracking(rollout: Rollout, mut last: Tracked) -> Rollout {
    let target = &rollout.plan.target;
    let Some(object) = rollout.set.get(target.kind.kind(), &target.name) else { return rollout };
    last.retain(|known, _| target.track.all().any(|(kind, name)| (kind, name) == (known.0, &known.1)));
    let set = Arc::new(set::tracking(&rollout.set, object, last));
    Rollout { set, ..rollout }
}

/// What would become of a rollout that is no longer among the files.
#[must_use]
pub fn removed(state: &RolloutState) -> Outlook {
    let message = match &state.run {
        Some(run) => {
            format!("Run {} is taken back first; then tidegate stops managing it, and its objects stay.", run.id)
        }
        None => "tidegate stops managing it, and its objects stay.".to_owned(),
    };
    Outlook::of(Effect::Removed, message)
}

/// What would become of a rollout that these files want; without a record it is new.
#[must_use]
pub fn wanted(
    rollout: &Rollout,
    record: Option<Result<KnownRecord<'_>, &str>>,
    policy: Option<&Policy>,
    now: Time,
) -> Outlook {
    let of = |change, message: String| Outlook::of(change, message);
    let known = match record {
        None => return of(Effect::FirstSight, first_sight(rollout)),
        Some(Err(why)) => return of(Effect::Held, format!("Its record cannot be read: {}", plain(why))),
        Some(Ok(known)) => known,
    };
    let KnownRecord { state, plan, promoted, tried, brought } = known;
    if let Phase::Unknown(_) = state.phase {
        return of(Effect::Held, format!("Its record was written by a newer tidegate ({}).", state.writer.version));
    }
    if state.run.is_some() {
        return against_run(rollout, state, plan, brought, policy, now);
    }
    let Some(current) = &state.promoted else { return of(Effect::FirstSight, first_sight(rollout)) };
    if current.set == rollout.set.id {
        return of(Effect::None, format!("It is what is promoted; {}.", place(&state.phase)));
    }
    let old = match promoted {
        Some(Ok(old)) => old,
        Some(Err(why)) => return of(Effect::Held, format!("What is promoted cannot be read: {}", plain(why))),
        None => return of(Effect::Held, "What is promoted is not on the state branch.".to_owned()),
    };
    match direct::change(&rollout.plan, old, &rollout.set, is_approved(rollout, state, policy)) {
        direct::Change::None => of(Effect::None, "Same content in other files.".to_owned()),
        direct::Change::Direct => {
            let message = "Only sizes, labels or budgets differ: no run, no phases.".to_owned();
            of(Effect::Direct, message).entering(rollout)
        }
        direct::Change::HeldBack(_) => {
            let why = "Its autoscaler differs: with the layout primary that reaches the copy with the next promotion.";
            of(Effect::Held, why.to_owned())
        }
        direct::Change::Version => match idle::refusal_of(state, tried, Some(old), rollout) {
            Some(refused) => {
                let (why, run) = (plain(&idle::met_its_end(refused, rollout)), &refused.run);
                of(
                    Effect::Refused,
                    format!("No run starts: {why}. To try it again: tidegate retry {} --run {run}", rollout.id),
                )
            }
            None => new_run(rollout, state, current, old, policy, now),
        },
    }
}

/// Whether people whom the policy names approve its promotions.
fn is_approved(rollout: &Rollout, state: &RolloutState, policy: Option<&Policy>) -> bool {
    let rule = policy.and_then(|policy| policy.tenant_of(&rollout.path)).and_then(|(_, tenant)| tenant.rule());
    state.rule(rule.as_ref()).is_some()
}

fn first_sight(rollout: &Rollout) -> String {
    format!(
        "Revision {}: its {} objects are created where they are absent, and adopted where live ones are equal. If one \
         differs, nothing is written.",
        rollout.set.revision.short(),
        rollout.set.objects.len()
    )
}

fn new_run(
    rollout: &Rollout,
    state: &RolloutState,
    current: &Promoted,
    old: &Set,
    policy: Option<&Policy>,
    now: Time,
) -> Outlook {
    let revision = &rollout.set.revision;
    let misfit = state.clusters.values().find_map(|cluster| versions::misfit(&cluster.posture.naming, rollout, old));
    if let Some(why) = misfit {
        return Outlook::of(Effect::Held, format!("No run starts, and nothing is written: {why}."));
    }
    if let Some(why) = versions::variant_changes(rollout, old) {
        return Outlook::of(Effect::Held, format!("No run starts, and nothing is written: {why}."));
    }
    let (route, plan) = procedure::route(rollout, old);
    let how = match route {
        Route::Plain if rollout.plan.target.kind == TargetKind::Service => {
            "the Service leads where it led, so no candidate is made"
        }
        Route::Plain if rollout.plan.target.kind == TargetKind::None => {
            "it has other objects alone, so they are applied at once"
        }
        Route::Plain if rollout.plan.traffic.is_some() => "its pods are equal, so no candidate is made",
        Route::Plain => "nothing splits its traffic, so it is promoted at once",
        Route::Phases | Route::Rollback => "through all phases",
    };
    let mut message =
        format!("Run {} brings {} over {}: {how}.", state.next_run, revision.short(), current.revision.short());
    let asked = too_much(rollout, old, policy);
    message.extend(asked.iter().map(|told| format!(" {told}")));
    // Nobody can tell when a run begins that waits for people.
    let waits = asked.is_some() && rollout.plan.target.layout == Layout::Versioned;
    let way = Way { rollout, plan: &plan, route, from: &current.set, entered: None, approved: &[] };
    Outlook {
        forecast: (!waits).then(|| forecast(&way, policy, now)),
        queries: checks::queries(&rollout.plan, &rollout.set.pods, &rollout.id.namespace),
        ..Outlook::of(Effect::Run, message).entering(rollout)
    }
}

/// That people are asked before all goes that these files have no longer.
fn too_much(rollout: &Rollout, old: &Set, policy: Option<&Policy>) -> Option<String> {
    let limit = usize::try_from(policy?.limits.max_deletions).ok()?;
    let gone = old.objects.keys().filter(|object| !rollout.set.objects.contains_key(*object)).count();
    let when = match rollout.plan.target.layout {
        Layout::Versioned => "before the run begins, with whose end they go",
        Layout::InPlace | Layout::Primary => "before they go",
    };
    let told =
        format!("{gone} objects are gone from it, and the policy lets {limit} go at once: people are asked {when}.");
    (gone > limit).then_some(told)
}

/// What these files mean while a run is open.
fn against_run(
    rollout: &Rollout,
    state: &RolloutState,
    plan: Option<&Plan>,
    brought: Option<&Set>,
    policy: Option<&Policy>,
    now: Time,
) -> Outlook {
    let of = |change, message: String| Outlook::of(change, message);
    let (Some(run), Some(plan)) = (&state.run, plan) else {
        return of(Effect::Held, "The plan of its open run is not on the state branch.".to_owned());
    };
    let back = matches!(state.phase, Phase::Reverting { .. });
    if run.revision == rollout.set.revision || run.to == rollout.set.id {
        if back {
            return of(Effect::Refused, format!("Run {} brought it and is on its way back.", run.id));
        }
        let message = format!("Run {} brings it: {}.", run.id, place(&state.phase));
        let entered = state.phase.position();
        let way = Way { rollout, plan, route: run.route, from: &run.from, entered, approved: &run.approved };
        return Outlook {
            forecast: Some(forecast(&way, policy, now)),
            queries: checks::queries(plan, &run.pods, &rollout.id.namespace),
            ..of(Effect::UnderWay, message).entering(rollout)
        };
    }
    // From *promote* on a run ends as it is.
    let late = ["promote", "return", "retire"];
    let late = state.phase.position().is_some_and(|position| !back && late.contains(&position.step.as_str()));
    let promoted = state.promoted.as_ref();
    let to_promoted = promoted.is_some_and(|promoted| promoted.revision == rollout.set.revision);
    let revision = rollout.set.revision.short();
    let along = brought.filter(|_| run.route != Route::Rollback && !late && !back && !to_promoted);
    if along.is_some_and(|began| along::since(plan, began, rollout, is_approved(rollout, state, policy)).is_some()) {
        let message = format!(
            "Run {} takes it along: sizes, labels or budgets change at once for both versions; its step, approvals and soak stay.",
            run.id
        );
        return of(Effect::Direct, message).entering(rollout);
    }
    match (late, to_promoted) {
        (true, _) => of(
            Effect::Supersedes,
            format!("Run {} ends first ({}); then a run for {revision} starts.", run.id, place(&state.phase)),
        ),
        (false, true) => {
            of(Effect::TakesBack, format!("Run {} goes back: main is again at what is promoted ({revision}).", run.id))
        }
        (false, false) => of(
            Effect::Supersedes,
            format!(
                "Traffic returns to the stable version, run {} ends {:?}, then a run for {revision} starts.",
                run.id,
                Outcome::Superseded
            ),
        ),
    }
}
