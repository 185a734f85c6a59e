//! The state branch: records, the plans of open runs, pinned sets. Only what changed is read again.

use super::decisions::FiledDecisions;
use super::main::Wanted;
use crate::git::{GitError, Store};
use crate::manifest::desired::{Plan, Set, Target};
use crate::manifest::files::{Entry, Files, RepoPath};
use crate::manifest::ids::{CommitId, RolloutId, SetId};
use crate::manifest::set;
use crate::record::history;
use crate::record::state::RolloutState;
use crate::record::store::{self, Paths};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The directory that holds all records.
pub(super) const ROLLOUTS: &str = "rollouts";

/// What the state branch says.
#[derive(Debug, Clone)]
pub enum LoadedRecords {
    /// Of each rollout; empty if the branch does not exist yet.
    Read(Arc<BTreeMap<RolloutId, Arc<LoadedRecord>>>),
    /// It cannot be believed: every rollout holds.
    Unreadable(String),
}

/// What it says of one rollout.
#[derive(Debug, Clone)]
pub struct LoadedRecord {
    /// The tree that it was read from; none for one that we have just written.
    tree: Option<String>,
    /// The record, or why it cannot be used.
    pub state: Result<RolloutState, String>,
    /// The plan of its open run.
    pub plan: Option<Arc<Plan>>,
    /// The pinned sets that planning may need.
    pub sets: BTreeMap<SetId, Arc<Set>>,
    /// Those of versions that may have had what people are asked to let go.
    pub past: BTreeMap<SetId, Arc<Set>>,
}

impl LoadedRecord {
    /// A record as we have pushed it.
    #[must_use]
    pub fn written(state: RolloutState, plan: Option<Arc<Plan>>, sets: &BTreeMap<SetId, Arc<Set>>) -> Self {
        let needed = needed(&state);
        let sets = sets.iter().filter(|(id, _)| needed.contains(id)).map(|(id, set)| (id.clone(), Arc::clone(set)));
        Self { tree: None, sets: sets.collect(), past: BTreeMap::new(), state: Ok(state), plan }
    }
}

impl LoadedRecords {
    /// The record of a rollout.
    #[must_use]
    pub fn get(&self, id: &RolloutId) -> Option<&Arc<LoadedRecord>> {
        match self {
            Self::Read(records) => records.get(id),
            Self::Unreadable(_) => None,
        }
    }

    /// All records that can be used.
    pub fn states(&self) -> impl Iterator<Item = &RolloutState> {
        let records = match self {
            Self::Read(records) => Some(records),
            Self::Unreadable(_) => None,
        };
        records.into_iter().flat_map(|records| records.values()).filter_map(|record| record.state.as_ref().ok())
    }
}

/// What a set is read for.
#[derive(Clone, Copy)]
enum Use {
    /// It is what the record is about.
    Now,
    /// It was, before.
    Past,
}

/// The sets that planning reads.
fn needed(state: &RolloutState) -> BTreeSet<&SetId> {
    let postures = state.clusters.values().flat_map(|cluster| {
        let candidate = cluster.posture.candidate.as_ref().map(|role| &role.set);
        [Some(&cluster.posture.stable.set), candidate].into_iter().flatten()
    });
    let run = state.run.iter().flat_map(|run| [&run.from, &run.to, run.began()]);
    // What a run brought that went back: a request to undo its change on main starts from it.
    let undone = history::taken_back(state).into_iter().flat_map(|past| past.began.iter().chain([&past.to]));
    postures.chain(run).chain(state.promoted.iter().map(|promoted| &promoted.set)).chain(undone).collect()
}

/// The sets that tell who took away what people are asked to let go: those of versions that may have had it.
fn asked_about(state: &RolloutState) -> BTreeSet<&SetId> {
    let is_asked = state.deletions.asked.as_ref().is_some_and(|asked| asked.successor.is_none());
    let pinned = history::pinned(state);
    state.history.iter().map(|past| &past.from).filter(|set| is_asked && pinned.contains(set)).collect()
}

/// The sets that people's decisions go back to.
fn gone_back_to<'a>(state: &'a RolloutState, decisions: &FiledDecisions, id: &RolloutId) -> BTreeSet<&'a SetId> {
    decisions
        .rollbacks(id)
        .chain(state.rollback.as_ref().map(|pending| &pending.to))
        .filter_map(|run| history::replaced(state, run))
        .map(|past| past.set)
        .collect()
}

/// What is kept between two looks at the state branch.
#[derive(Default)]
pub(super) struct Cache {
    records: Arc<BTreeMap<RolloutId, Arc<LoadedRecord>>>,
    tip: Option<CommitId>,
}

impl Cache {
    /// Reads the records at `tip`, without sets.
    pub(super) async fn read(&mut self, store: &Store, tip: Option<&CommitId>) -> Result<LoadedRecords, GitError> {
        if self.tip.as_ref() == tip {
            return Ok(LoadedRecords::Read(Arc::clone(&self.records)));
        }
        let mut records = BTreeMap::new();
        if let Some(tip) = tip {
            let root: RepoPath = ROLLOUTS.parse().expect("valid because the constant is one word");
            for (path, tree) in store.directories(tip, &root, 2).await? {
                let Some(id) = path.below(Some(&root)).and_then(|path| path.as_str().parse::<RolloutId>().ok()) else {
                    tracing::warn!(%path, "not a rollout's directory; left alone");
                    continue;
                };
                let known = self.records.get(&id).filter(|record| record.tree.as_ref() == Some(&tree));
                let record = match known {
                    Some(record) => Arc::clone(record),
                    None => Arc::new(read_one(store, tip, &id, tree).await?),
                };
                records.insert(id, record);
            }
        }
        self.records = Arc::new(records);
        self.tip = tip.cloned();
        Ok(LoadedRecords::Read(Arc::clone(&self.records)))
    }

    /// Takes over what we have pushed ourselves. Nothing is read for it: what people are asked about stays at hand, for no tip may move
    /// until it is known who has answered, and so does what their decisions go back to, as they may still wait.
    pub(super) fn pushed(
        &mut self,
        tip: CommitId,
        changes: BTreeMap<RolloutId, Option<LoadedRecord>>,
        decisions: &FiledDecisions,
    ) -> LoadedRecords {
        let records = Arc::make_mut(&mut self.records);
        for (id, record) in changes {
            let known = records.remove(&id);
            if let Some(mut record) = record {
                let about = record.state.as_ref().map(asked_about).unwrap_or_default();
                let past = known.iter().flat_map(|known| &known.past).filter(|(set, _)| about.contains(set));
                record.past = past.map(|(set, read)| (set.clone(), Arc::clone(read))).collect();
                let named = record.state.as_ref().map(|state| gone_back_to(state, decisions, &id)).unwrap_or_default();
                let kept = known.iter().flat_map(|known| &known.sets).filter(|(set, _)| named.contains(set));
                let kept: Vec<_> = kept.map(|(set, read)| (set.clone(), Arc::clone(read))).collect();
                record.sets.extend(kept);
                records.insert(id, Arc::new(record));
            }
        }
        self.tip = Some(tip);
        LoadedRecords::Read(Arc::clone(&self.records))
    }

    /// Adds the sets that the records and people's decisions name.
    pub(super) async fn with_sets(
        &mut self,
        store: &Store,
        records: LoadedRecords,
        main: &Wanted,
        decisions: &FiledDecisions,
    ) -> Result<LoadedRecords, GitError> {
        let (LoadedRecords::Read(read), Some(tip)) = (&records, &self.tip) else { return Ok(records) };
        let mut completed = BTreeMap::new();
        for (id, record) in read.iter() {
            let Ok(state) = &record.state else { continue };
            let mut wanted = needed(state);
            wanted.extend(gone_back_to(state, decisions, id));
            wanted.retain(|set| !record.sets.contains_key(set));
            let mut past = asked_about(state);
            past.retain(|set| !record.past.contains_key(set));
            if wanted.is_empty() && past.is_empty() {
                continue;
            }
            let desired = main.rollout(id);
            let (mut sets, mut had) = (record.sets.clone(), record.past.clone());
            let past = past.into_iter().map(|set| (set, Use::Past));
            for (set, of) in wanted.into_iter().map(|set| (set, Use::Now)).chain(past) {
                let at_hand = desired.map(|rollout| &rollout.set).filter(|of_main| of_main.id == *set);
                let read = match at_hand {
                    Some(set) => Ok(Arc::clone(set)),
                    None => {
                        let plans = [record.plan.as_deref(), desired.map(|rollout| &rollout.plan)];
                        let named = history::targets(state).cloned().map(Target::recorded);
                        let targets: Vec<_> =
                            plans.into_iter().flatten().map(|plan| plan.target.clone()).chain(named).collect();
                        read_set(store, tip, id, set, &targets).await?
                    }
                };
                match read {
                    Ok(set) => match of {
                        Use::Now => drop(sets.insert(set.id.clone(), set)),
                        Use::Past => drop(had.insert(set.id.clone(), set)),
                    },
                    Err(why) => tracing::warn!(rollout = %id, %set, why, "a pinned set cannot be read"),
                }
            }
            completed.insert(id.clone(), Arc::new(LoadedRecord { sets, past: had, ..(**record).clone() }));
        }
        if !completed.is_empty() {
            Arc::make_mut(&mut self.records).extend(completed);
        }
        Ok(LoadedRecords::Read(Arc::clone(&self.records)))
    }
}

async fn read_one(store: &Store, tip: &CommitId, id: &RolloutId, tree: String) -> Result<LoadedRecord, GitError> {
    let paths = store::paths(id);
    let none = BTreeMap::new;
    let unusable = |why: String| LoadedRecord {
        tree: Some(tree.clone()),
        state: Err(why),
        plan: None,
        sets: none(),
        past: none(),
    };
    let bytes = match read_file(store, tip, &paths.state).await? {
        Ok(bytes) => bytes,
        Err(why) => return Ok(unusable(why)),
    };
    let state = match store::parse_state(id, &bytes) {
        Ok(state) => state,
        Err(error) => return Ok(unusable(format!("{}: {error}", paths.state))),
    };
    let plan = match &state.run {
        None => None,
        Some(run) => match read_plan(store, tip, &paths.plan(&run.id)).await? {
            Ok(plan) => Some(Arc::new(plan)),
            Err(why) => return Ok(unusable(why)),
        },
    };
    Ok(LoadedRecord { tree: Some(tree), state: Ok(state), plan, sets: none(), past: none() })
}

async fn read_plan(store: &Store, tip: &CommitId, path: &RepoPath) -> Result<Result<Plan, String>, GitError> {
    let bytes = read_file(store, tip, path).await?;
    Ok(bytes.and_then(|bytes| store::parse_plan(&bytes).map_err(|error| format!("{path}: {error}"))))
}

/// What is wrong with a file is its own rollout's trouble alone.
async fn read_file(store: &Store, tip: &CommitId, path: &RepoPath) -> Result<Result<Arc<[u8]>, String>, GitError> {
    match store.file(tip, path).await {
        Ok(bytes) => Ok(bytes.ok_or_else(|| format!("{path} is missing on the state branch"))),
        Err(error) if error.is_of_content() => Ok(Err(error.to_string())),
        Err(error) => Err(error),
    }
}

/// Reads a pinned set and checks that it is what its name says: the id is the digest of the content.
async fn read_set(
    store: &Store,
    tip: &CommitId,
    id: &RolloutId,
    set: &SetId,
    targets: &[Target],
) -> Result<Result<Arc<Set>, String>, GitError> {
    let paths: Paths = store::paths(id);
    let dir = paths.set(set);
    let files: Files = match store.files(tip, Some(&dir)).await {
        Ok(files) => files,
        Err(GitError::Missing(what)) => return Ok(Err(format!("{what} does not exist"))),
        Err(error) if error.is_of_content() => return Ok(Err(error.to_string())),
        Err(error) => return Err(error),
    };
    let mut plain = set::SetFiles::new();
    for (path, entry) in files {
        match (path.below(Some(&dir)), entry) {
            (Some(path), Entry::File { blob, bytes }) => drop(plain.insert(path, (blob, bytes))),
            (
                _,
                Entry::File { .. }
                | Entry::TooLarge { .. }
                | Entry::BadName { .. }
                | Entry::Symlink
                | Entry::Submodule
                | Entry::Unread { .. },
            ) => {
                return Ok(Err(format!("{path} is not a plain file")));
            }
        }
    }
    let mut why = "no plan at hand names its target".to_owned();
    for target in targets {
        match set::of_files(plain.clone(), &id.namespace, target) {
            Ok(read) if read.id == *set => return Ok(Ok(Arc::new(read))),
            Ok(read) => return Ok(Err(format!("{dir} holds the set {}", read.id))),
            Err(found) => why = found.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
        }
    }
    Ok(Err(why))
}
