//! The Jobs that stand before steps: each in a file of its own beside the rollout's, which no set lists. A run keeps them with
//! its plan.

use super::diagnostic::{Code, Diagnostic, SourceText};
use super::files::{Entry, Files, RepoPath};
use super::ids::Namespace;
use super::object::Kind;
use super::raw;
use super::set::refused::Unallowed;
use super::set::{self, Item, SetFiles};
use super::yaml::Node;
use serde_json::Value;
use std::collections::BTreeMap;

/// The Jobs that a rollout's file names.
#[derive(Default)]
pub(super) struct Jobs {
    /// Each by its file, as far as it could be read.
    pub(super) items: BTreeMap<RepoPath, Item>,
    /// What is wrong with the others.
    pub(super) wrong: Vec<Diagnostic>,
}

impl Jobs {
    /// As a plan keeps them.
    pub(super) fn values(&self) -> BTreeMap<RepoPath, Value> {
        self.items.iter().map(|(file, item)| (file.clone(), item.object.value().clone())).collect()
    }
}

/// Where a rollout's file names Jobs, and which.
fn named(spec: &raw::RolloutSpec) -> impl Iterator<Item = (String, &RepoPath)> {
    let phases = spec.phases.iter().enumerate();
    let phases = phases.map(|(i, phase)| (format!("/spec/phases/{i}/before/job"), &phase.before));
    let promotion = ("/spec/promotion/before/job".to_owned(), &spec.promotion.before);
    phases.chain([promotion]).filter_map(|(pointer, gates)| Some((pointer, gates.job.as_ref()?)))
}

/// Reads the Jobs that the rollout's file names; `source` and `root` are that file.
pub(super) fn read(
    files: &Files,
    rollout_file: &RepoPath,
    source: &SourceText,
    root: &Node,
    spec: &raw::RolloutSpec,
    namespace: &Namespace,
    room: &mut usize,
) -> Jobs {
    let mut jobs = Jobs::default();
    for (pointer, file) in named(spec) {
        if jobs.items.contains_key(file) {
            continue;
        }
        match one(files, rollout_file, file, namespace, room) {
            Ok(item) => drop(jobs.items.insert(file.clone(), item)),
            Err(Wrong::Place(code, found, expected)) => {
                jobs.wrong.push(source.at(root.locate(&pointer), code, found, expected));
            }
            Err(Wrong::Content(found)) => jobs.wrong.extend(found),
        }
    }
    jobs
}

/// Why there is no Job.
enum Wrong {
    /// Where its file should be.
    Place(Code, String, String),
    /// In its file.
    Content(Vec<Diagnostic>),
}

fn one(
    files: &Files,
    rollout_file: &RepoPath,
    file: &RepoPath,
    namespace: &Namespace,
    room: &mut usize,
) -> Result<Item, Wrong> {
    let missing = |path: &str| {
        let expected = "a file beside this one that holds a Job".to_owned();
        Wrong::Place(Code::FileMissing, format!("{path} is not in the repository"), expected)
    };
    let path = rollout_file.beside(file.as_str()).map_err(|_| missing(file.as_str()))?;
    let (blob, bytes) = match files.get(&path) {
        Some(Entry::File { blob, bytes }) => (blob.clone(), bytes.clone()),
        Some(entry) => {
            let (code, found, expected) = set::unreadable(&path, entry);
            return Err(Wrong::Place(code, found, expected));
        }
        None => return Err(missing(path.as_str())),
    };
    let only = SetFiles::from([(file.clone(), (blob, bytes))]);
    let others = &|_: &_| Err(Unallowed { found: None, help: "what stands before a step is a Job".to_owned() });
    let kinds = set::Kinds { known: &[Kind::Job], others };
    let (items, found) = set::read_kinds(&only, rollout_file.parent().as_ref(), namespace, &kinds, Some(room));
    if !found.is_empty() {
        return Err(Wrong::Content(found));
    }
    let number = items.len();
    let mut items = items.into_values();
    match (items.next(), items.next()) {
        (Some(item), None) => Ok(item),
        (_, _) => {
            let found = format!("{number} Jobs");
            Err(Wrong::Content(vec![Diagnostic::of_file(&path, Code::SeveralDocuments, found, "exactly one")]))
        }
    }
}
