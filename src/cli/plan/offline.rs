//! What would happen as far as files and the record tell: pure, but for reading the record.

use super::{Change, PlanView, PlannedView, StepView, general_errors};
use crate::cli::failure::Failure;
use crate::cli::repository::{Record, Records, Repository};
use crate::cli::tracked::as_recorded;
use crate::gate::schedule::{Freeze, Window, WindowState};
use crate::manifest::desired::{Plan, Rollout, Set, Suspend, TargetKind};
use crate::manifest::duration::Span;
use crate::manifest::files::RepoPath;
use crate::manifest::ids::RolloutId;
use crate::manifest::load::{Loaded, Rejected};
use crate::manifest::policy::{Policy, Schedule};
use crate::plan::checks;
use crate::plan::direct;
use crate::plan::entry;
use crate::plan::procedure::{self, Roles, Stage, Step};
use crate::plan::versions;
use crate::record::posture::{Naming, Role, Size};
use crate::record::state::{Outcome, Phase, Promoted, RolloutState, Route, Stop, Time};
use crate::record::text::{exposure, place, plain};
use std::collections::BTreeMap;

/// The sets that are promoted, by rollout: what new ones are compared with.
pub(super) type Promotions = BTreeMap<RolloutId, Result<Set, String>>;

/// What would happen, from the files and the record.
pub(super) async fn plan(loaded: &Loaded, repository: &Repository, now: Time) -> Result<PlanView, Failure> {
    let records = repository.records().await?;
    let (mut promotions, mut loaded) = (Promotions::new(), loaded.clone());
    for (id, record) in &records {
        let (Ok(record), Some(Ok(rollout))) = (record, loaded.rollouts.get_mut(id)) else { continue };
        *rollout = as_recorded(repository, record, rollout.clone()).await?;
        let Some(promoted) = record.state.promoted.as_ref().filter(|promoted| promoted.set != rollout.set.id) else {
            continue;
        };
        let set = repository.pinned(id, &promoted.set, &rollout.plan.target, &record.state).await?;
        promotions.insert(id.clone(), set);
    }
    let tip: String = repository.state_tip()?.as_str().chars().take(8).collect();
    let compared = format!("the record of {} at {tip}", repository.instance);
    Ok(planned(&loaded, &records, &promotions, &compared, now))
}

/// The same from values.
#[must_use]
pub(super) fn planned(
    loaded: &Loaded,
    records: &Records,
    promotions: &Promotions,
    compared: &str,
    now: Time,
) -> PlanView {
    let policy = loaded.policy.as_ref().ok();
    let mut rollouts: Vec<PlannedView> = loaded
        .rollouts
        .iter()
        .map(|(id, rollout)| match rollout {
            Ok(rollout) => wanted(rollout, records.get(id), promotions.get(id), policy, now),
            Err(rejected) => refuse(id, rejected),
        })
        .collect();
    let gone = records.iter().filter(|(id, _)| !loaded.rollouts.contains_key(*id));
    rollouts.extend(gone.filter_map(|(id, record)| removed(id, record.as_ref().ok()?, loaded)));
    rollouts.sort_by(|a, b| a.rollout.cmp(&b.rollout));
    let warnings = loaded.warnings.iter().map(ToString::to_string).collect();
    PlanView { compared: compared.to_owned(), rollouts, errors: general_errors(loaded), warnings }
}

fn view(id: &RolloutId, path: &RepoPath, change: Change, message: impl Into<String>) -> PlannedView {
    PlannedView {
        rollout: id.to_string(),
        path: path.to_string(),
        change,
        message: message.into(),
        steps: Vec::new(),
        queries: BTreeMap::new(),
        actions: Vec::new(),
        waits: Vec::new(),
    }
}

fn refuse(id: &RolloutId, rejected: &Rejected) -> PlannedView {
    let paths: Vec<&str> = rejected.paths.iter().map(RepoPath::as_str).collect();
    PlannedView {
        rollout: id.to_string(),
        path: paths.join(", "),
        change: Change::Rejected,
        message: "Its last good state stays until these are mended.".to_owned(),
        steps: Vec::new(),
        queries: BTreeMap::new(),
        actions: Vec::new(),
        waits: rejected.diagnostics.iter().map(ToString::to_string).collect(),
    }
}

fn removed(id: &RolloutId, record: &Record, loaded: &Loaded) -> Option<PlannedView> {
    let path = &record.state.source.path;
    // A file that is too broken to tell its name is listed among the errors, and is no removal.
    if loaded.unnamed.iter().any(|diagnostic| diagnostic.path == *path) {
        return None;
    }
    let message = match &record.state.run {
        Some(run) => {
            format!("Run {} is taken back first; then tidegate stops managing it, and its objects stay.", run.id)
        }
        None => "tidegate stops managing it, and its objects stay.".to_owned(),
    };
    Some(view(id, path, Change::Removed, message))
}

fn wanted(
    rollout: &Rollout,
    record: Option<&Result<Record, String>>,
    promoted: Option<&Result<Set, String>>,
    policy: Option<&Policy>,
    now: Time,
) -> PlannedView {
    let of = |change, message: String| view(&rollout.id, &rollout.path, change, message);
    let Record { state, plan } = match record {
        None => return of(Change::FirstSight, first_sight(rollout)),
        Some(Err(why)) => return of(Change::Held, format!("Its record cannot be read: {}", plain(why))),
        Some(Ok(record)) => record,
    };
    if let Phase::Unknown(_) = state.phase {
        return of(Change::Held, format!("Its record was written by a newer tidegate ({}).", state.writer.version));
    }
    if state.run.is_some() {
        return against_run(rollout, state, plan.as_ref(), policy, now);
    }
    let Some(current) = &state.promoted else { return of(Change::FirstSight, first_sight(rollout)) };
    if current.set == rollout.set.id {
        return of(Change::None, format!("It is what is promoted; {}.", place(&state.phase)));
    }
    let old = match promoted {
        Some(Ok(old)) => old,
        Some(Err(why)) => return of(Change::Held, format!("What is promoted cannot be read: {}", plain(why))),
        None => return of(Change::Held, "What is promoted is not on the state branch.".to_owned()),
    };
    match direct::change(&rollout.plan, old, &rollout.set) {
        direct::Change::None => of(Change::None, "Same content in other files.".to_owned()),
        direct::Change::Direct => {
            let waits = suspended(rollout);
            PlannedView {
                waits,
                ..of(Change::Direct, "Only sizes, labels or budgets differ: no run, no phases.".to_owned())
            }
        }
        direct::Change::HeldBack(_) => {
            let why = "Its autoscaler differs: with the layout primary that reaches the copy with the next promotion.";
            of(Change::Held, why.to_owned())
        }
        direct::Change::Version => new_run(rollout, state, current, old, policy, now),
    }
}

fn first_sight(rollout: &Rollout) -> String {
    format!(
        "Revision {}: its {} objects are created where they are absent, and adopted where live ones are equal. If one \
         differs, nothing is written.",
        rollout.set.revision.short(),
        rollout.set.objects.len()
    )
}

fn suspended(rollout: &Rollout) -> Vec<String> {
    match rollout.suspend {
        Suspend::Yes => vec!["suspend: true keeps it from entering anything".to_owned()],
        Suspend::No => Vec::new(),
    }
}

fn new_run(
    rollout: &Rollout,
    state: &RolloutState,
    current: &Promoted,
    old: &Set,
    policy: Option<&Policy>,
    now: Time,
) -> PlannedView {
    let revision = &rollout.set.revision;
    if let Some(refused) = state.refused.iter().find(|refused| refused.revision == *revision) {
        let message = format!(
            "Revision {} met its end in run {} ({:?}: {}). To start it again: tidegate retry {} --run {}",
            revision.short(),
            refused.run,
            refused.outcome,
            plain(&refused.why),
            rollout.id,
            refused.run
        );
        return view(&rollout.id, &rollout.path, Change::Refused, message);
    }
    let misfit = state.clusters.values().find_map(|cluster| versions::misfit(&cluster.posture.naming, rollout, old));
    if let Some(why) = misfit {
        return view(
            &rollout.id,
            &rollout.path,
            Change::Held,
            format!("No run starts, and nothing is written: {why}."),
        );
    }
    let plain = rollout.plan.traffic.is_none() || rollout.set.pods == old.pods;
    let route = if plain { Route::Plain } else { Route::Phases };
    let how = match route {
        Route::Plain if rollout.plan.target.kind == TargetKind::Service => {
            "the Service leads where it led, so no candidate is made"
        }
        Route::Plain if rollout.plan.traffic.is_some() => "its pods are equal, so no candidate is made",
        Route::Plain => "nothing splits its traffic, so it is promoted at once",
        Route::Phases | Route::Rollback => "through all phases",
    };
    let message =
        format!("Run {} brings {} over {}: {how}.", state.next_run, revision.short(), current.revision.short());
    let steps = timeline(rollout, &rollout.plan, route, None, &current.set, policy, now);
    let queries = checks::queries(&rollout.plan, &rollout.id.namespace);
    PlannedView { steps, queries, waits: suspended(rollout), ..view(&rollout.id, &rollout.path, Change::Run, message) }
}

/// What these files mean while a run is open.
fn against_run(
    rollout: &Rollout,
    state: &RolloutState,
    plan: Option<&Plan>,
    policy: Option<&Policy>,
    now: Time,
) -> PlannedView {
    let of = |change, message: String| view(&rollout.id, &rollout.path, change, message);
    let (Some(run), Some(plan)) = (&state.run, plan) else {
        return of(Change::Held, "The plan of its open run is not on the state branch.".to_owned());
    };
    let back = matches!(state.phase, Phase::Reverting { .. });
    if run.revision == rollout.set.revision {
        if back {
            return of(Change::Refused, format!("Run {} brought it and is on its way back.", run.id));
        }
        let message = format!("Run {} brings it: {}.", run.id, place(&state.phase));
        let stop = state.phase.stop();
        let steps = timeline(rollout, plan, run.route, stop, &run.from, policy, now);
        let waits = suspended(rollout);
        let queries = checks::queries(plan, &rollout.id.namespace);
        return PlannedView { steps, queries, waits, ..of(Change::UnderWay, message) };
    }
    // From *promote* on a run ends as it is.
    let late = ["promote", "return", "retire"];
    let late = state.phase.stop().is_some_and(|stop| !back && late.contains(&stop.step.as_str()));
    let promoted = state.promoted.as_ref();
    let to_promoted = promoted.is_some_and(|promoted| promoted.revision == rollout.set.revision);
    let revision = rollout.set.revision.short();
    match (late, to_promoted) {
        (true, _) => of(
            Change::Supersedes,
            format!("Run {} ends first ({}); then a run for {revision} starts.", run.id, place(&state.phase)),
        ),
        (false, true) => {
            of(Change::TakesBack, format!("Run {} goes back: main is again at what is promoted ({revision}).", run.id))
        }
        (false, false) => of(
            Change::Supersedes,
            format!(
                "Traffic returns to the stable version, run {} ends {:?}, then a run for {revision} starts.",
                run.id,
                Outcome::Superseded
            ),
        ),
    }
}

/// The steps after the one that was entered (all without one), with the earliest time of each.
fn timeline(
    rollout: &Rollout,
    plan: &Plan,
    route: Route,
    entered: Option<&Stop>,
    from: &crate::manifest::ids::SetId,
    policy: Option<&Policy>,
    now: Time,
) -> Vec<StepView> {
    let role = |set: &crate::manifest::ids::SetId| Role { set: set.clone(), size: Size::Declared, pods: None };
    let roles = Roles { old: role(from), new: role(&rollout.set.id), baseline: 0, naming: Naming::of(plan), run: None };
    let steps = procedure::forward(plan, route, &roles);
    let current = entered.and_then(|stop| Some((stop, steps.iter().position(|step| step.name == stop.step)?)));
    let lasts = |step: &Step| Span::from_secs(step.soak.as_secs() + procedure::settle(plan, step));
    let (done, mut earliest) = match current {
        Some((stop, at)) => {
            let away = stop.clock.lost.map_or_else(Default::default, |lost| now - lost) + stop.clock.away.delta();
            let soaked = stop.clock.exposed.unwrap_or(now) + lasts(&steps[at]).delta() + away;
            (at + 1, Some(soaked.max(now)))
        }
        None => (0, Some(now)),
    };
    let mut views = Vec::new();
    for step in &steps[done..] {
        earliest = earliest.and_then(|at| opens(rollout, step, policy, at));
        let lasts = lasts(step);
        views.push(StepView {
            step: step.name.to_string(),
            exposes: exposure(&step.posture.split).unwrap_or_default(),
            gates: gates(plan, step),
            lasts: if lasts == Span::ZERO { String::new() } else { lasts.to_string() },
            earliest,
        });
        earliest = earliest.map(|at| at + lasts.delta());
    }
    views
}

fn gates(plan: &Plan, step: &Step) -> Vec<String> {
    let name = entry::through(plan, &step.name);
    let approval = step.before.approval.map(|_| format!("approval of {name}"));
    let window = step.before.window.as_ref().map(|window| format!("window {window}"));
    let webhook = step.before.webhook.as_ref().map(|webhook| format!("webhook {}", webhook.provider));
    let job = step.before.job.as_ref().map(|job| format!("Job {job}"));
    [approval, window, webhook, job].into_iter().flatten().collect()
}

/// When a step can be entered at the earliest, from `at` on: its window, and the freezes. None: never.
fn opens(rollout: &Rollout, step: &Step, policy: Option<&Policy>, at: Time) -> Option<Time> {
    let (Some(policy), true) =
        (policy, step.stage == Stage::Progressing || !step.before.is_empty() || step.name.as_str() == "shift")
    else {
        return Some(at);
    };
    let tenant = policy.tenant_of(&rollout.path).map(|(name, _)| name);
    let window = step.before.window.as_ref().and_then(|name| policy.windows.get(name)).and_then(of_schedule);
    let freezes: Vec<Freeze> = policy
        .freezes
        .values()
        .filter_map(|freeze| Some(Freeze { window: of_schedule(&freeze.schedule)?, tenants: freeze.tenants.clone() }))
        .collect();
    let mut at = at;
    // Each turn goes past one closed window or one freeze; a year of both is long enough.
    for _ in 0..400 {
        let before = at;
        if let Some(WindowState::Closed { opens }) = window.as_ref().map(|window| window.is_open(at)) {
            at = opens?;
        }
        if let Some(until) = freezes.iter().filter_map(|freeze| freeze.holds(tenant, at)).max() {
            at = until;
        }
        if at == before {
            return Some(at);
        }
    }
    None
}

fn of_schedule(schedule: &Schedule) -> Option<Window> {
    Window::new(&schedule.cron, schedule.duration, schedule.zone).ok()
}
