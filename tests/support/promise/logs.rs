//! The two logs as events: the API server's audit log and the moves of the state branch.

use super::promise::live::Write;
use super::promise::{Checked, Event, Nanos, Violation, Watched, What};
use crate::support::audit::{self, Request};
use serde_json::Value;
use std::path::Path;
use tidegate::manifest::ids::RolloutId;
use tidegate::record::state::RolloutState;

/// Where the state branch's past can be read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StateBranch<'a> {
    /// The bare repository of the Git server.
    pub(crate) repository: &'a Path,
    /// What its `reference-transaction` hook wrote: `<unix seconds>.<nanoseconds> <old> <new> <ref>` for each move.
    pub(crate) moves: &'a Path,
    /// The branch, in full: `refs/heads/tidegate/<instance>/state`.
    pub(crate) reference: &'a str,
}

impl Watched {
    /// Merges the two logs and checks every instant.
    ///
    /// # Panics
    /// With the violation, in words; and if a log cannot be read.
    #[track_caller]
    pub(crate) fn assert_kept(&self, audit_log: &Path, branch: StateBranch<'_>) -> Checked {
        self.check_logs(audit_log, branch)
            .unwrap_or_else(|violation| panic!("the promise is broken, {}: {violation}", self.rollout))
    }

    pub(crate) fn check_logs(&self, audit_log: &Path, branch: StateBranch<'_>) -> Result<Checked, Box<Violation>> {
        let mut events = writes(audit_log, self.rollout.namespace.as_str());
        events.extend(moves(branch, &self.rollout));
        self.check(events)
    }
}

/// All writes to a namespace that decide what users reach, in the order in which they took effect.
pub(super) fn writes(audit_log: &Path, namespace: &str) -> Vec<Event> {
    let text = std::fs::read_to_string(audit_log).unwrap();
    // The last line may be half written.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    // Most lines are of other tests: parsing them all would take longer than the tests.
    let named = format!("\"namespace\":\"{namespace}\"");
    let lines = whole.lines().filter(|line| line.contains(&named));
    let requests = lines.filter_map(audit::parse).filter(|r| r.namespace == namespace && r.is_write());
    in_effect_order(requests.filter_map(Effect::of).collect())
}

/// One write that took effect at some moment between its request and its answer.
pub(super) struct Effect {
    received: Nanos,
    answered: Nanos,
    /// Its place in the API server's order of all writes; a delete does not tell it.
    version: Option<u64>,
    by: String,
    objects: Vec<Write>,
}

impl Effect {
    pub(super) fn of(request: Request) -> Option<Self> {
        let nanos = |t: chrono::DateTime<chrono::Utc>| Nanos(t.timestamp_nanos_opt().expect("a date of this century"));
        let Request { received, answered, user, verb, resource, subresource, name, answer, .. } = request;
        let answer = answer?;
        let version = answer["metadata"]["resourceVersion"].as_str().and_then(|v| v.parse().ok());
        let named = |object: &Value| object["metadata"]["name"].as_str().unwrap_or(&name).to_owned();
        let gone = |name| Write::Gone { resource: resource.clone(), name };
        let objects = match (verb.as_str(), subresource.as_str()) {
            ("deletecollection", "") => answer["items"].as_array()?.iter().map(|o| gone(named(o))).collect(),
            // Until its finalizers are done, a deleted object still serves.
            ("delete", "") if answer["metadata"]["finalizers"].is_array() => return None,
            ("delete", "") => vec![gone(name)],
            // The garbage collector asks for metadata alone, and is told nothing of the rest.
            (_, "") if answer["kind"] == "PartialObjectMetadata" => return None,
            (_, "scale") => vec![Write::Scaled { name, replicas: answer["spec"]["replicas"].clone() }],
            (_, "") => vec![Write::Is { name: named(&answer), resource: resource.clone(), object: answer }],
            _ => return None,
        };
        let version = if verb.starts_with("delete") { None } else { version };
        Some(Self { received: nanos(received), answered: nanos(answered), version, by: user, objects })
    }
}

/// Sorts writes by the API server's own order, and gives each the earliest time at which it can have taken effect.
pub(super) fn in_effect_order(mut effects: Vec<Effect>) -> Vec<Event> {
    effects.sort_by_key(|e| e.received);
    // A delete comes after every write that was answered before it was asked for.
    let known: Vec<(Nanos, u64)> = effects.iter().filter_map(|e| Some((e.answered, e.version?))).collect();
    let place = |e: &Effect| {
        let before = known.iter().filter(|(answered, _)| *answered <= e.received).map(|(_, version)| *version);
        e.version.unwrap_or_else(|| before.max().unwrap_or(0))
    };
    effects.sort_by_cached_key(|e| (place(e), e.version.is_none()));
    let mut earliest = Nanos(i64::MIN);
    let mut events = Vec::new();
    for Effect { received, by, objects, .. } in effects {
        earliest = earliest.max(received);
        let event = |object| Event { at: earliest, what: What::Wrote { by: by.clone(), object } };
        events.extend(objects.into_iter().map(event));
    }
    events
}

/// All moves of the state branch, with the record of one rollout as it was then.
pub(super) fn moves(branch: StateBranch<'_>, rollout: &RolloutId) -> Vec<Event> {
    let repository = git2::Repository::open_bare(branch.repository).unwrap();
    let path = format!("rollouts/{}/{}/state.yaml", rollout.namespace, rollout.name);
    let log = std::fs::read_to_string(branch.moves).unwrap_or_default();
    let moved = log.lines().filter_map(|line| {
        let [at, _old, new, reference] = line.split(' ').collect::<Vec<_>>().try_into().ok()?;
        (reference == branch.reference).then(|| (instant(at), new))
    });
    let event = |(at, commit): (Nanos, &str)| {
        let state = read(&repository, commit, &path);
        Event { at, what: What::Moved { commit: commit.to_owned(), state } }
    };
    moved.map(event).collect()
}

/// `<unix seconds>.<nanoseconds>`, nine digits as `date +%s.%N` prints them.
pub(super) fn instant(text: &str) -> Nanos {
    let (seconds, nanos) = text.split_once('.').unwrap_or_else(|| panic!("not <seconds>.<nanoseconds>: {text}"));
    assert_eq!(nanos.len(), 9, "not nine digits of nanoseconds: {text}");
    Nanos(seconds.parse::<i64>().unwrap() * 1_000_000_000 + nanos.parse::<i64>().unwrap())
}

/// The record in a commit; none where there is no such file, or where the branch was deleted.
fn read(repository: &git2::Repository, commit: &str, path: &str) -> Option<Box<RolloutState>> {
    let id = git2::Oid::from_str(commit).unwrap();
    if id.is_zero() {
        return None;
    }
    let tree = repository.find_commit(id).unwrap().tree().unwrap();
    let file = tree.get_path(Path::new(path)).ok()?.to_object(repository).unwrap();
    let json = serde_yaml::from_slice::<Value>(file.as_blob().unwrap().content());
    let state = json.map_err(|e| e.to_string()).and_then(|v| serde_json::from_value(v).map_err(|e| e.to_string()));
    Some(Box::new(state.unwrap_or_else(|e| panic!("{path} in {commit} is not readable: {e}"))))
}
