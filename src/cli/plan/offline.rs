//! What would happen as far as files and the record tell: pure, but for reading the record.

use super::{Effect, PlanView, PlannedView, StepView, general_errors};
use crate::cli::failure::Failure;
use crate::cli::repository::Repository;
use crate::cli::tracked::as_recorded;
use crate::manifest::desired::{Set, Suspend};
use crate::manifest::duration::Span;
use crate::manifest::files::RepoPath;
use crate::manifest::ids::RolloutId;
use crate::manifest::load::{Loaded, Rejected};
use crate::plan::forecast::{Forecast, Foreseen};
use crate::plan::outlook::{self, KnownRecord, Outlook};
use crate::record::history;
use crate::record::state::Time;
use crate::report::view::{Record, Records};
use std::collections::BTreeMap;

/// The sets that new ones are compared with, by rollout.
pub(super) type Pinned = BTreeMap<RolloutId, PinnedSets>;

/// Those of one rollout.
#[derive(Debug, Default)]
pub(super) struct PinnedSets {
    /// What is promoted, or why it cannot be read; none if main wants just that.
    pub(super) promoted: Option<Result<Set, String>>,
    /// What the last run tried, if it went back.
    pub(super) tried: Option<Set>,
    /// What the open run began with.
    pub(super) brought: Option<Set>,
}

/// What would happen, from the files and the record.
pub(super) async fn plan(loaded: &Loaded, repository: &Repository, now: Time) -> Result<PlanView, Failure> {
    let records = repository.records().await?;
    let (mut pinned, mut loaded) = (Pinned::new(), loaded.clone());
    for (id, record) in &records {
        let (Ok(record), Some(Ok(rollout))) = (record, loaded.rollouts.get_mut(id)) else { continue };
        *rollout = as_recorded(repository, record, rollout.clone()).await?;
        let sets: &mut PinnedSets = pinned.entry(id.clone()).or_default();
        let (target, state) = (&rollout.plan.target, &record.state);
        if let Some(promoted) = state.promoted.as_ref().filter(|promoted| promoted.set != rollout.set.id) {
            sets.promoted = Some(repository.pinned(id, &promoted.set, target, state).await?);
        }
        if let Some(past) = history::taken_back(state) {
            sets.tried = repository.pinned(id, &past.to, target, state).await?.ok();
        }
        if let Some(run) = &state.run {
            sets.brought = repository.pinned(id, run.began(), target, state).await?.ok();
        }
    }
    let tip: String = repository.state_tip()?.as_str().chars().take(8).collect();
    let compared = format!("the record of {} at {tip}", repository.instance);
    Ok(planned(&loaded, &records, &pinned, &compared, now))
}

/// The same from values.
#[must_use]
pub(super) fn planned(loaded: &Loaded, records: &Records, pinned: &Pinned, compared: &str, now: Time) -> PlanView {
    let policy = loaded.policy.as_ref().ok();
    let mut rollouts: Vec<PlannedView> = loaded
        .rollouts
        .iter()
        .map(|(id, rollout)| match rollout {
            Ok(rollout) => {
                let known = known(records.get(id), pinned.get(id));
                view(id, &rollout.path, outlook::wanted(rollout, known, policy, now))
            }
            Err(rejected) => refuse(id, rejected),
        })
        .collect();
    let gone = records.iter().filter(|(id, _)| !loaded.rollouts.contains_key(*id));
    rollouts.extend(gone.filter_map(|(id, record)| removed(id, record.as_ref().ok()?, loaded)));
    rollouts.sort_by(|a, b| a.rollout.cmp(&b.rollout));
    let warnings = loaded.warnings.iter().map(ToString::to_string).collect();
    PlanView { compared: compared.to_owned(), rollouts, errors: general_errors(loaded), warnings }
}

fn known<'a>(
    record: Option<&'a Result<Record, String>>,
    pinned: Option<&'a PinnedSets>,
) -> Option<Result<KnownRecord<'a>, &'a str>> {
    let promoted = pinned.and_then(|sets| sets.promoted.as_ref());
    let promoted = promoted.map(|promoted| promoted.as_ref().map_err(String::as_str));
    let tried = pinned.and_then(|sets| sets.tried.as_ref());
    let brought = pinned.and_then(|sets| sets.brought.as_ref());
    Some(match record? {
        Ok(Record { state, plan }) => Ok(KnownRecord { state, plan: plan.as_ref(), promoted, tried, brought }),
        Err(why) => Err(why),
    })
}

fn view(id: &RolloutId, path: &RepoPath, outlook: Outlook) -> PlannedView {
    let Outlook { change, message, forecast, queries, suspend } = outlook;
    let waits = match suspend {
        Suspend::Yes => vec!["suspend: true keeps it from entering anything".to_owned()],
        Suspend::No => Vec::new(),
    };
    PlannedView {
        rollout: id.to_string(),
        path: path.to_string(),
        change,
        message,
        timeline: forecast.as_ref().and_then(Forecast::sentence),
        steps: forecast.iter().flat_map(|forecast| &forecast.steps).map(step).collect(),
        queries,
        actions: Vec::new(),
        waits,
    }
}

fn step(step: &Foreseen) -> StepView {
    StepView {
        step: step.name.to_string(),
        exposes: step.exposes.clone().unwrap_or_default(),
        gates: step.gates(),
        lasts: if step.lasts == Span::ZERO { String::new() } else { step.lasts.to_string() },
        earliest: step.earliest,
    }
}

fn refuse(id: &RolloutId, rejected: &Rejected) -> PlannedView {
    let paths: Vec<&str> = rejected.paths.iter().map(RepoPath::as_str).collect();
    PlannedView {
        rollout: id.to_string(),
        path: paths.join(", "),
        change: Effect::Rejected,
        message: "Its last good state stays until these are mended.".to_owned(),
        timeline: None,
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
    Some(view(id, path, outlook::removed(&record.state)))
}
