//! The decisions about one rollout, as the controller would hear them.

use super::failure::Failure;
use super::repository::Repository;
use crate::gate::decisions::{DecisionFile, EvaluationInput, Ignored, evaluate};
use crate::manifest::decision;
use crate::manifest::diagnostic::Diagnostic;
use crate::manifest::duration::Span;
use crate::manifest::files::{Entry, Files, RepoPath};
use crate::manifest::ids::RolloutId;
use crate::plan::input::Decisions;
use crate::record::state::Time;
use crate::report::view::Record;
use std::sync::Arc;

/// The directory of a rollout on the decisions branch.
pub(super) fn directory(id: &RolloutId) -> Result<RepoPath, Failure> {
    Ok(id.to_string().parse().map_err(anyhow::Error::new)?)
}

/// The decisions about a rollout that do not count now, and why.
pub(super) async fn ignored(repository: &Repository, record: &Record, now: Time) -> Result<Vec<Ignored>, Failure> {
    Ok(judge(record, &about(repository, record).await?, now))
}

/// The decisions about a rollout.
pub(super) async fn about(repository: &Repository, record: &Record) -> Result<Decisions, Failure> {
    let branch = repository.decisions_branch()?;
    let Some(tip) = repository.tip(&branch).cloned() else { return Ok(Decisions::default()) };
    let dir = directory(&record.state.metadata)?;
    let files = repository.files(&branch, &tip, &dir).await?;
    let at_start = match record.state.decisions_at() {
        Some(start) if *start == tip => Some(files.clone()),
        // A start that is not there any more was rewritten away: nobody can tell what is new.
        Some(start) => repository.files_at(start, &dir).await.ok(),
        None => Some(Files::new()),
    };
    let keys = |files: Files| filed(&files).into_iter().map(|file| (file.path, file.blob)).collect();
    let at_start = at_start.map(|files| Arc::new(keys(files)));
    Ok(Decisions { tip: Some(tip), filed: Arc::new(filed(&files)), at_start, ..Decisions::default() })
}

/// What the controller would not count of these.
#[must_use]
pub(super) fn judge(record: &Record, decisions: &Decisions, now: Time) -> Vec<Ignored> {
    let input = EvaluationInput {
        record: &record.state,
        plan: record.plan.as_ref(),
        files: &decisions.filed,
        at_start: decisions.at_start.as_deref(),
        // The window stands on main, which is not read here: what is too old for it is not told.
        rollback_window: Span::from_secs(u64::MAX),
        // What the host proves is judged by the controller alone, and stands in the record.
        verifier: None,
        now,
    };
    evaluate(&input).ignored
}

/// Decision files as values.
#[must_use]
pub(super) fn filed(files: &Files) -> Vec<DecisionFile> {
    let read = |(path, entry): (&RepoPath, &Entry)| {
        let Entry::File { blob, bytes } = entry else { return None };
        let words = |found: Vec<Diagnostic>| found.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        let decision = decision::parse(path, bytes).map_err(words);
        let (path, blob) = (path.clone(), blob.clone());
        Some(DecisionFile { path, blob, by: String::new(), brought: None, merged: None, decision })
    };
    files.iter().filter_map(read).collect()
}
