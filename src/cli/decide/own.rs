//! Whether who approves has made the version: then their signature proves nothing.

use super::rule;
use crate::cli::failure::Failure;
use crate::cli::repository::Repository;
use crate::gate::decisions::through;
use crate::git::Person;
use crate::manifest::decision::DecisionAction;
use crate::manifest::proof::By;
use crate::plan::proof;
use crate::report::view::Record;

/// What to say of it, if it is so as far as the clone tells; nothing where no signature is asked for.
pub(super) async fn warning(
    repository: &Repository,
    record: &Record,
    action: &DecisionAction,
    person: Option<&Person>,
) -> Result<Option<String>, Failure> {
    let state = &record.state;
    let asks = rule(state).is_some_and(|rule| rule.by == By::Signatures) && through(action).is_some();
    let open = state.run.as_ref().filter(|_| asks).zip(record.plan.as_ref());
    let Some(((run, plan), person)) = open.zip(person) else { return Ok(None) };
    let from = repository.pinned_files(&state.metadata, &run.from).await?;
    let to = repository.pinned_files(&state.metadata, run.began()).await?;
    // What cannot be read is told by whoever reads it to use it.
    let (Ok(from), Ok(to)) = (from, to) else { return Ok(None) };
    let Some(version) = proof::of_run(state, run, [&from, &to], &plan.jobs) else { return Ok(None) };
    let made = repository.authors(&version.commit, &version.stable);
    let theirs = made.iter().find(|made| made.makers().any(|by| by.email.eq_ignore_ascii_case(&person.email)));
    Ok(theirs.map(|made| {
        let commit = made.commit.as_str().get(..8).unwrap_or_default();
        format!(
            "\nBut {} made commit {commit} of this version, and who made a version cannot approve it: this will not count. \
             Another approver has to say it.",
            person.email
        )
    }))
}
