//! The state branch: what its tip may hold, by number. Records are written and read as the texts that they are in Git.

use crate::exhaustive::manifests::{id, look, start, versions};
use crate::exhaustive::numbers::Numbers;
use std::collections::BTreeMap;
use std::sync::Arc;
use tidegate::manifest::desired::{Plan, Rollout, Set};
use tidegate::manifest::files::RepoPath;
use tidegate::manifest::ids::{RunId, SetId};
use tidegate::plan::draft::RecordChange;
use tidegate::plan::input::{Git, RecordedState as Read};
use tidegate::reconcile::record::Recorded;
use tidegate::reconcile::source::{GitView, LoadedRecord, LoadedRecords, Tips, Wanted};
use tidegate::record::history::pinned;
use tidegate::record::state::{Phase, RolloutState, Serving};
use tidegate::record::store::{self, FileEdit, RecordError};

/// A tip.
pub(crate) struct Tip {
    files: BTreeMap<RepoPath, Vec<u8>>,
    /// The record, as it is read; or why it cannot be used.
    pub(crate) state: Result<Option<RolloutState>, String>,
    plan: Option<Arc<Plan>>,
    /// The sets that lie beside it.
    pub(crate) sets: BTreeMap<SetId, Arc<Set>>,
    /// The most that people may reach of each version, in percent.
    pub(crate) allowed: Vec<u8>,
    /// The open run, and the version that it brings.
    pub(crate) run: Option<(RunId, usize)>,
    view: GitView,
}

/// All tips that were met.
pub(crate) struct Branch {
    met: Numbers<Tip>,
    all: BTreeMap<SetId, (usize, Arc<Set>)>,
}

impl Branch {
    /// Number 0: there is no branch.
    pub(crate) fn new(rollouts: &BTreeMap<u8, Arc<Rollout>>) -> Self {
        let all = rollouts.values().enumerate().map(|(n, rollout)| (rollout.set.id.clone(), (n, rollout.set.clone())));
        let mut branch = Self { met: Numbers::default(), all: all.collect() };
        branch.meet(BTreeMap::new());
        branch
    }

    pub(crate) fn get(&self, number: u32) -> &Tip {
        self.met.get(number)
    }

    pub(crate) fn count(&self) -> usize {
        self.met.len()
    }

    /// The tip after a push onto `tip` of what was planned from `known`.
    pub(crate) fn pushed(&mut self, tip: u32, known: u32, change: &RecordChange) -> u32 {
        let (after, plan) = match change {
            RecordChange::Keep => return tip,
            RecordChange::Write { state, plan, .. } => (Some(&**state), plan.as_deref()),
            RecordChange::Remove { .. } => (None, None),
        };
        let sets = self.all.iter().map(|(id, (_, set))| (id.clone(), set.clone())).collect();
        let edits = store::edits(self.get(known).state.as_ref().unwrap().as_ref(), after, &sets, plan).unwrap();
        let mut files = self.get(tip).files.clone();
        for (path, edit) in edits {
            match edit {
                FileEdit::Write(bytes) => drop(files.insert(path, bytes)),
                FileEdit::Blob(blob) => drop(files.insert(path, blob.as_str().as_bytes().to_vec())),
                FileEdit::Remove => drop(files.remove(&path)),
                FileEdit::RemoveDir => files.retain(|file, _| !file.is_within(&path)),
            }
        }
        self.meet(files)
    }

    /// Whatever was written a moment ago was written a while before the next look.
    fn meet(&mut self, mut files: BTreeMap<RepoPath, Vec<u8>>) -> u32 {
        for bytes in files.values_mut() {
            let text = String::from_utf8(std::mem::take(bytes)).unwrap();
            *bytes = text.replace(&stamp(look()), &stamp(start())).into_bytes();
        }
        let key: String =
            files.iter().map(|(path, bytes)| format!("{path}\n{}\n", String::from_utf8_lossy(bytes))).collect();
        let all = &self.all;
        self.met.number(&key, || read(files, all))
    }
}

fn stamp(time: tidegate::record::state::Time) -> String {
    time.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true)
}

fn read(files: BTreeMap<RepoPath, Vec<u8>>, all: &BTreeMap<SetId, (usize, Arc<Set>)>) -> Tip {
    let (state, plan, sets) = match usable(&files, all) {
        Ok((state, plan, sets)) => (Ok(state), plan, sets),
        Err(why) => (Err(why), None, BTreeMap::new()),
    };
    let recorded = state.as_ref().ok().and_then(Option::as_ref);
    let record = recorded.map(|state| (id(), Arc::new(LoadedRecord::written(state.clone(), plan.clone(), &sets))));
    let view = GitView {
        tips: Tips::default(),
        git: Git::Fresh,
        main: Arc::new(Wanted::unreadable(String::new())),
        records: LoadedRecords::Read(Arc::new(record.into_iter().collect())),
        decisions: Arc::default(),
        peers: Arc::default(),
        requests: Arc::default(),
    };
    let run = recorded.and_then(|state| state.run.as_ref()).map(|run| (run.id.clone(), all[&run.to].0));
    Tip { allowed: allowed(recorded, all), files, state, plan, sets, run, view }
}

type Usable = (Option<RolloutState>, Option<Arc<Plan>>, BTreeMap<SetId, Arc<Set>>);

/// The record with all that it names.
fn usable(files: &BTreeMap<RepoPath, Vec<u8>>, all: &BTreeMap<SetId, (usize, Arc<Set>)>) -> Result<Usable, String> {
    let paths = store::paths(&id());
    let text = |error: RecordError| error.to_string();
    let state = files.get(&paths.state).map(|bytes| store::parse_state(&id(), bytes)).transpose().map_err(text)?;
    let run = state.as_ref().and_then(|state| state.run.as_ref());
    let plan = match run.map(|run| files.get(&paths.plan(&run.id)).ok_or("the run's plan is missing")).transpose()? {
        Some(bytes) => Some(Arc::new(store::parse_plan(bytes).map_err(text)?)),
        None => None,
    };
    let mut sets = BTreeMap::new();
    for id in state.iter().flat_map(pinned) {
        let (_, set) = &all[id];
        let mut lie = set.files.iter().map(|(path, (blob, _))| (paths.set_file(id, path), blob));
        if lie.all(|(path, blob)| files.get(&path.unwrap()).map(Vec::as_slice) == Some(blob.as_str().as_bytes())) {
            sets.insert(id.clone(), set.clone());
        }
    }
    Ok((state, plan, sets))
}

/// What a record allows: all of what was stable when its run began, the new version as far as its posture goes.
fn allowed(state: Option<&RolloutState>, all: &BTreeMap<SetId, (usize, Arc<Set>)>) -> Vec<u8> {
    let Some(state) = state.filter(|state| state.promoted.is_some()) else { return vec![100; versions()] };
    let mut allowed = vec![0; versions()];
    let posture = &state.clusters.values().next().expect("there is one cluster").posture;
    if let Some(candidate) = &posture.candidate {
        allowed[all[&candidate.set].0] = posture.split.weight.get();
    }
    allowed[all[&posture.stable.set].0] = 100;
    if let Some(run) = &state.run {
        allowed[all[&run.from].0] = 100;
    }
    allowed
}

impl Tip {
    /// What it proves to be allowed.
    pub(crate) fn proof(&self) -> Recorded<'_> {
        Recorded::verified(&self.view).unwrap()
    }

    /// As a plan reads it.
    pub(crate) fn recorded(&self) -> Read {
        match &self.state {
            Ok(None) => Read::None,
            Ok(Some(state)) => Read::State(Box::new(state.clone()), self.plan.clone()),
            Err(why) => Read::Unreadable(why.clone()),
        }
    }

    /// The number of the record.
    pub(crate) fn seq(&self) -> u64 {
        self.state.as_ref().ok().and_then(Option::as_ref).map_or(0, |state| state.seq)
    }

    /// Whether nothing is open.
    pub(crate) fn at_rest(&self) -> bool {
        let state = self.state.as_ref().ok().and_then(Option::as_ref);
        let phase = state.map(|state| (&state.phase, &state.run));
        matches!(phase, Some((Phase::Steady { .. } | Phase::Failed { standing: Serving::Stable, .. }, None)))
    }

    /// Whether the open run waits on a step, for a person's word as all else is given.
    pub(crate) fn waits(&self) -> bool {
        let state = self.state.as_ref().ok().and_then(Option::as_ref);
        matches!(state.map(|state| &state.phase), Some(Phase::Waiting { at: Some(_), .. }))
    }

    /// In a few words.
    pub(crate) fn told(&self) -> String {
        let state = match &self.state {
            Err(why) => return format!("record unusable: {why}"),
            Ok(None) => return "no record".to_owned(),
            Ok(Some(state)) => state,
        };
        let position = state.phase.position().map(|position| format!(" {}", position.step)).unwrap_or_default();
        let split = state.clusters.values().next().map_or(0, |cluster| cluster.posture.split.weight.get());
        format!("record {}: {}{position}, {split} %", state.seq, state.phase.name())
    }
}
