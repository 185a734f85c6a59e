//! The files of the state branch: where they lie, how they read and how they are written.
//!
//! ```text
//! README.md                                       the dashboard
//! rollouts/<namespace>/<name>/state.yaml          the record
//! rollouts/<namespace>/<name>/runs/<id>.yaml      the plan of the open run
//! rollouts/<namespace>/<name>/sets/<12 hex>/…     the exact files of each pinned set
//! ```
//! Nothing here touches Git: texts go in and out as values, and a change is a map of edits.

use super::history::pinned;
use super::schema::KIND;
use super::state::RolloutState;
use super::unknown::Unknown;
use crate::manifest::desired::{Plan, Set};
use crate::manifest::files::{InvalidPath, RepoPath};
use crate::manifest::ids::{BlobId, RolloutId, RunId, SetId};
use crate::manifest::tracked;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The version of the files that this version writes.
pub const API_VERSION: &str = "tidegate.io/v1alpha1";
/// The largest file that is read, in bytes: a record with all its lists full has some 100 KiB.
const MAX_BYTES: usize = 1 << 20;

/// No record comes to so many changes: one each nanosecond would take three centuries.
const MAX_SEQ: u64 = i64::MAX.unsigned_abs();

/// An id of a run has nine digits for its number.
const MAX_RUN: u32 = 999_999_999;

/// A file of the state branch that cannot be read, or a record that cannot be written. The rollout holds.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Too large to be one of ours.
    #[error("the file has {0} bytes; at most {MAX_BYTES} are expected")]
    TooLarge(usize),
    /// Not YAML, or with a key twice.
    #[error("the file is not YAML: {0}")]
    Yaml(#[from] serde_yaml::Error),
    /// Written for another reader.
    #[error("the file is {found:?}; expected {expected:?}. A file of another version is read by that version only")]
    Version {
        /// apiVersion and kind.
        found: String,
        /// apiVersion and kind that this version reads.
        expected: String,
    },
    /// A record that lies where another belongs.
    #[error("the file speaks of {found}, but lies where the record of {expected} belongs")]
    Identity {
        /// What it says.
        found: RolloutId,
        /// What its path says.
        expected: RolloutId,
    },
    /// A sequence number that no record comes to, and that none could follow.
    #[error("seq is {0}; at most {MAX_SEQ} is expected")]
    Seq(u64),
    /// A number of a run that no record comes to, and that none could follow.
    #[error("nextRun is {0}; at most {MAX_RUN} is expected")]
    NextRun(u32),
    /// A field that is missing or makes no sense.
    #[error("a field is wrong: {0}")]
    Fields(#[from] serde_json::Error),
    /// A plan with a field that this version does not know: it could be a gate.
    #[error("unknown field {0:?}: a plan cannot be followed in parts, so its run waits for the version that wrote it")]
    UnknownField(String),
    /// A record that names a set which is neither pinned nor at hand.
    #[error("set {0} is named by the record, but its files are not at hand")]
    MissingSet(SetId),
    /// A record that opens a run without its plan.
    #[error("run {0} is opened without a plan")]
    MissingPlan(RunId),
    /// Two sets whose directories would be one.
    #[error("sets {0} and {1} begin with the same 12 digits")]
    Collision(SetId, SetId),
    /// A file of a set whose path is too long on the state branch.
    #[error(transparent)]
    Path(#[from] InvalidPath),
}

/// Where the files of one rollout lie on the state branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// Its directory.
    pub root: RepoPath,
    /// Its record.
    pub state: RepoPath,
}

/// The place of the dashboard.
#[must_use]
pub fn readme() -> RepoPath {
    inside("README.md")
}

/// Where the files of a rollout lie.
#[must_use]
pub fn paths(id: &RolloutId) -> Paths {
    let root = format!("rollouts/{}/{}", id.namespace, id.name);
    Paths { state: inside(&format!("{root}/state.yaml")), root: inside(&root) }
}

fn inside(path: &str) -> RepoPath {
    path.parse().expect("a short path of names, because names and ids are DNS labels and digits")
}

impl Paths {
    /// The plan of a run.
    #[must_use]
    pub fn plan(&self, run: &RunId) -> RepoPath {
        inside(&format!("{}/runs/{run}.yaml", self.root))
    }

    /// The directory of a set.
    #[must_use]
    pub fn set(&self, set: &SetId) -> RepoPath {
        inside(&format!("{}/sets/{}", self.root, set.short()))
    }

    /// A file of a set, whose path there is `file`.
    ///
    /// # Errors
    /// When the whole path is longer than a [`RepoPath`] may be.
    pub fn set_file(&self, set: &SetId, file: &RepoPath) -> Result<RepoPath, InvalidPath> {
        format!("{}/{file}", self.set(set)).parse()
    }
}

/// Reads bytes as a document of that kind and of our apiVersion.
fn document(bytes: &[u8], kind: &str) -> Result<Value, RecordError> {
    if bytes.len() > MAX_BYTES {
        return Err(RecordError::TooLarge(bytes.len()));
    }
    // Through a YAML value, which refuses a key that stands twice; a JSON value would take the last.
    let yaml: serde_yaml::Value = serde_yaml::from_slice(bytes)?;
    let value = serde_json::to_value(yaml)?;
    let found = [&value["apiVersion"], &value["kind"]].map(|field| field.as_str().unwrap_or("(none)"));
    if found == [API_VERSION, kind] {
        Ok(value)
    } else {
        Err(RecordError::Version { found: found.join(" "), expected: format!("{API_VERSION} {kind}") })
    }
}

fn to_json(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).expect("plain JSON, because all our keys are text")
}

fn to_yaml(value: &Value) -> String {
    serde_yaml::to_string(value).expect("plain YAML, because it came from JSON")
}

/// The text of a record, with what a newer version wrote into it.
#[must_use]
pub fn print_state(state: &RolloutState) -> String {
    let mut value = to_json(state);
    state.unknown.restore(&mut value);
    to_yaml(&value)
}

/// Reads the record of a rollout. Fields that this version does not know are kept for [`print_state`], a phase that it
/// does not know is [`super::state::Phase::Unknown`] (X-10).
///
/// # Errors
/// When the file is not a record of this rollout and version, or a field of it makes no sense.
pub fn parse_state(id: &RolloutId, bytes: &[u8]) -> Result<RolloutState, RecordError> {
    let value = document(bytes, KIND)?;
    let mut state = RolloutState::deserialize(&value)?;
    if state.metadata != *id {
        return Err(RecordError::Identity { found: state.metadata, expected: id.clone() });
    }
    countable(&state)?;
    state.unknown = Unknown::between(&value, &to_json(&state));
    Ok(state)
}

/// Whether its numbers are some that a record can have: one that none could follow is neither read nor written.
fn countable(state: &RolloutState) -> Result<(), RecordError> {
    if state.seq > MAX_SEQ {
        return Err(RecordError::Seq(state.seq));
    }
    if state.next_run > MAX_RUN { Err(RecordError::NextRun(state.next_run)) } else { Ok(()) }
}

/// The text of a run's plan.
#[must_use]
pub fn print_plan(plan: &Plan) -> String {
    to_yaml(&json!({"apiVersion": API_VERSION, "kind": "RunPlan", "spec": plan}))
}

/// Reads a run's plan. Unlike a record it must be understood as a whole.
///
/// # Errors
/// When the file is not a plan of this version, or has a field that is wrong or unknown.
pub fn parse_plan(bytes: &[u8]) -> Result<Plan, RecordError> {
    let value = document(bytes, "RunPlan")?;
    let plan = Plan::deserialize(&value["spec"])?;
    let known = json!({"apiVersion": API_VERSION, "kind": "RunPlan", "spec": plan});
    match Unknown::between(&value, &known).first() {
        Some(field) => Err(RecordError::UnknownField(field)),
        None => Ok(plan),
    }
}

/// What becomes of one path of the state branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileEdit {
    /// The file has this content.
    Write(Vec<u8>),
    /// The file has the content of this blob, which the repository holds already.
    Blob(BlobId),
    /// The file is gone.
    Remove,
    /// The directory is gone, with all that is in it.
    RemoveDir,
}

/// What a commit changes for one rollout: its record, the plan of its open run, and its pinned sets.
///
/// Sets are written when a record begins to name them and removed when it no longer does, so `before` must be the record
/// that the branch holds. `sets` and `plan` are needed for what is new only. Equal records change nothing.
///
/// # Errors
/// When a new set or a new run's plan is not at hand, two sets cannot be told apart, or a number or a file would be too large or a path too
/// long to be read: better no record than one whose sets are not there.
pub fn edits(
    before: Option<&RolloutState>,
    after: Option<&RolloutState>,
    sets: &BTreeMap<SetId, Arc<Set>>,
    plan: Option<&Plan>,
) -> Result<BTreeMap<RepoPath, FileEdit>, RecordError> {
    let mut edits = BTreeMap::new();
    let Some(after) = after else {
        edits.extend(before.map(|before| (paths(&before.metadata).root, FileEdit::RemoveDir)));
        return Ok(edits);
    };
    if before == Some(after) {
        return Ok(edits);
    }
    countable(after)?;
    let paths = paths(&after.metadata);
    edits.insert(paths.state.clone(), FileEdit::Write(print_state(after).into_bytes()));
    let run = |state: Option<&RolloutState>| state.and_then(|s| s.run.as_ref()).map(|run| run.id.clone());
    let (old, new) = (run(before), run(Some(after)));
    if old != new {
        edits.extend(old.map(|run| (paths.plan(&run), FileEdit::Remove)));
        if let Some(run) = new {
            let plan = plan.ok_or_else(|| RecordError::MissingPlan(run.clone()))?;
            edits.insert(paths.plan(&run), FileEdit::Write(print_plan(plan).into_bytes()));
        }
    }
    edits.extend(set_edits(&paths, &before.map(pinned).unwrap_or_default(), &pinned(after), sets)?);
    readable(edits)
}

/// These, unless one is too large: it could be written, and never be read again.
fn readable(edits: BTreeMap<RepoPath, FileEdit>) -> Result<BTreeMap<RepoPath, FileEdit>, RecordError> {
    let sizes = edits.values().filter_map(|edit| match edit {
        FileEdit::Write(bytes) => Some(bytes.len()),
        FileEdit::Blob(_) | FileEdit::Remove | FileEdit::RemoveDir => None,
    });
    match sizes.max().filter(|size| *size > MAX_BYTES) {
        Some(size) => Err(RecordError::TooLarge(size)),
        None => Ok(edits),
    }
}

fn set_edits(
    paths: &Paths,
    before: &BTreeSet<&SetId>,
    after: &BTreeSet<&SetId>,
    sets: &BTreeMap<SetId, Arc<Set>>,
) -> Result<BTreeMap<RepoPath, FileEdit>, RecordError> {
    // Sorted, so that ids with a common beginning are neighbours. A set that leaves shares no directory with one that
    // comes either, because its removal would take both.
    let all: Vec<&SetId> = before.union(after).copied().collect();
    if let Some(pair) = all.windows(2).find(|pair| pair[0].short() == pair[1].short()) {
        return Err(RecordError::Collision(pair[0].clone(), pair[1].clone()));
    }
    let mut edits = BTreeMap::new();
    for id in before.difference(after) {
        edits.insert(paths.set(id), FileEdit::RemoveDir);
    }
    for id in after.difference(before) {
        let set = sets.get(*id).ok_or_else(|| RecordError::MissingSet((*id).clone()))?;
        for (file, (blob, bytes)) in &set.files {
            // No branch holds what is tracked.
            let made = file.as_str() == tracked::FILE;
            let edit = if made { FileEdit::Write(bytes.to_vec()) } else { FileEdit::Blob(blob.clone()) };
            edits.insert(paths.set_file(id, file)?, edit);
        }
    }
    Ok(edits)
}

/// The files of a set that the repository does not hold yet.
///
/// # Errors
/// When a path on the state branch would be too long, or a file too large.
pub fn set_as_written(id: &RolloutId, set: &Set) -> Result<BTreeMap<RepoPath, FileEdit>, RecordError> {
    let paths = paths(id);
    let write = |(file, (_, bytes)): (&RepoPath, &(BlobId, Arc<[u8]>))| {
        Ok((paths.set_file(&set.id, file)?, FileEdit::Write(bytes.to_vec())))
    };
    readable(set.files.iter().map(write).collect::<Result<_, RecordError>>()?)
}

#[cfg(test)]
mod tests;
