//! What is said of a pull request that was read: what is wrong with it and not with main, and what would become of the rollouts
//! that it changes. Pure.

use crate::manifest::desired::Rollout;
use crate::manifest::diagnostic::Diagnostic;
use crate::manifest::files::{Files, RepoPath};
use crate::manifest::fleet;
use crate::manifest::ids::RolloutId;
use crate::manifest::load::{self, Loaded};
use crate::manifest::policy;
use crate::plan::outlook::{self, KnownRecord, Outlook};
use crate::reconcile::source::LoadedRecord;
use crate::record::history;
use crate::record::state::Time;
use crate::report::feedback::{ENTRIES, FeedbackReading};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What is known beside the pull request itself.
pub(super) struct Beside {
    /// Main as it is.
    pub(super) main: Arc<Loaded>,
    /// The paths that the pull request changes.
    pub(super) changed: BTreeSet<RepoPath>,
    /// The records.
    pub(super) records: Arc<BTreeMap<RolloutId, Arc<LoadedRecord>>>,
    /// The time.
    pub(super) now: Time,
}

/// Whether a change is about anything that tidegate reads: the policy, a tenant's directory, a rollout's file wherever it lies,
/// or what lies beside one.
pub(super) fn touches(main: &Loaded, changed: &BTreeSet<RepoPath>) -> bool {
    let tenants = main.policy.iter().flat_map(|policy| policy.tenants.values()).map(|tenant| tenant.path.clone());
    let rollouts = main.rollouts.values().flatten().filter_map(|rollout| rollout.path.parent());
    let read: BTreeSet<RepoPath> = tenants.chain(rollouts).collect();
    changed.iter().any(|path| {
        let mut above = std::iter::successors(path.parent(), RepoPath::parent);
        [policy::FILE, fleet::FILE].contains(&path.as_str())
            || load::is_rollout_file(path)
            || above.any(|dir| read.contains(&dir))
    })
}

/// What `offered`, main with the pull request, comes to.
pub(super) fn reading(offered: &Loaded, beside: &Beside) -> FeedbackReading {
    let known: BTreeSet<&Diagnostic> = beside.main.errors().into_iter().chain(&beside.main.warnings).collect();
    let is_new = |found: &&Diagnostic| beside.changed.contains(&found.path) || !known.contains(*found);
    let changed = changed(&beside.main, offered);
    let outlooks = changed.iter().take(ENTRIES).filter_map(|id| Some(((*id).clone(), outlook(offered, beside, id)?)));
    FeedbackReading {
        errors: offered.errors().into_iter().filter(is_new).cloned().collect(),
        warnings: offered.warnings.iter().filter(is_new).cloned().collect(),
        same: BTreeMap::new(),
        outlooks: outlooks.collect(),
        more: changed.len().saturating_sub(ENTRIES),
    }
}

/// The files with findings.
pub(super) fn concerned(reading: &FeedbackReading, files: &Files) -> Files {
    let paths = reading.errors.iter().chain(&reading.warnings).map(|finding| &finding.path);
    let found = paths.filter_map(|path| files.get_key_value(path));
    found.map(|(path, entry)| (path.clone(), entry.clone())).collect()
}

/// The rollouts that are not the same as on main, or gone; but for those with errors.
fn changed<'a>(main: &'a Loaded, offered: &'a Loaded) -> BTreeSet<&'a RolloutId> {
    let is_other = |id: &&RolloutId| fine(offered, id).is_some_and(|new| fine(main, id) != Some(new));
    // A file too broken to tell its name is no removal, nor is a directory that is not read.
    let is_broken = |rollout: &Rollout| offered.unnamed.iter().any(|found| rollout.path.is_within(&found.path));
    let is_gone = |id: &&RolloutId| {
        !offered.rollouts.contains_key(*id) && fine(main, id).is_some_and(|rollout| !is_broken(rollout))
    };
    offered.rollouts.keys().filter(is_other).chain(main.rollouts.keys().filter(is_gone)).collect()
}

fn fine<'a>(loaded: &'a Loaded, id: &RolloutId) -> Option<&'a Rollout> {
    loaded.rollouts.get(id)?.as_ref().ok()
}

/// What would become of one of them; nothing is known of one that is gone without a record.
fn outlook(offered: &Loaded, beside: &Beside, id: &RolloutId) -> Option<Outlook> {
    let record = beside.records.get(id).map(|record| &**record);
    let Some(rollout) = fine(offered, id) else {
        return Some(outlook::removed(record?.state.as_ref().ok()?));
    };
    let rollout = record.map_or_else(|| rollout.clone(), |record| as_recorded(record, rollout));
    Some(outlook::wanted(&rollout, record.map(known), offered.policy.as_ref().ok(), beside.now))
}

fn known(record: &LoadedRecord) -> Result<KnownRecord<'_>, &str> {
    let state = record.state.as_ref().map_err(String::as_str)?;
    let promoted = state.promoted.as_ref().and_then(|promoted| record.sets.get(&promoted.set));
    let tried = history::taken_back(state).and_then(|past| record.sets.get(&past.to));
    Ok(KnownRecord {
        state,
        plan: record.plan.as_deref(),
        promoted: promoted.map(|set| Ok(&**set)),
        tried: tried.map(|set| &**set),
        brought: state.run.as_ref().and_then(|run| record.sets.get(run.began())).map(|set| &**set),
    })
}

/// With what it tracks as its open run, else what is promoted, has it.
fn as_recorded(record: &LoadedRecord, rollout: &Rollout) -> Rollout {
    let state = record.state.as_ref().ok().filter(|_| !rollout.plan.target.track.is_empty());
    let run = state.and_then(|state| state.run.as_ref()).map(|run| &run.to);
    let last = run.or_else(|| state?.promoted.as_ref().map(|promoted| &promoted.set));
    match last.and_then(|last| record.sets.get(last)) {
        Some(last) => outlook::tracking(rollout.clone(), last.tracked.clone()),
        None => rollout.clone(),
    }
}
