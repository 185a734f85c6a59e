//! What a commit comes to, with each finding at its line. GitHub alone can show that, by check runs, and lets Apps alone write
//! them: elsewhere the commit gets a status, as ever.
//!
//! GitHub only ever adds annotations to a run. So one that shows others than are wanted now is not changed: a new run of the same
//! name takes its place.

use super::{CallPurpose, Host, HostError, HostMark, Id, Method, Pass, Status};
use crate::forge::settings::escaped;
use crate::git::Refusal;
use crate::manifest::files::RepoPath;
use crate::manifest::ids::CommitId;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The most annotations that GitHub takes at once.
const BATCH: usize = 50;

/// What a commit comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckRun {
    /// In a line.
    pub status: Status,
    /// What of it does not change with the time alone, as a digest: nothing is written over a run that has the same.
    pub id: String,
    /// In Markdown, of at most 65,535 characters.
    pub summary: String,
    /// What is said of single lines.
    pub annotations: Vec<Annotation>,
}

impl CheckRun {
    /// How many writes it may take.
    #[must_use]
    pub fn writes(&self) -> usize {
        self.annotations.len().div_ceil(BATCH).max(1)
    }
}

/// What is said of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotation {
    /// The file, as the commit has it.
    pub path: RepoPath,
    /// The line, from 1.
    pub line: usize,
    /// The first and the last column that it is about; none if it is about all of it.
    pub columns: Option<(usize, usize)>,
    /// How bad it is.
    pub level: AnnotationLevel,
    /// In a word.
    pub title: String,
    /// In plain text.
    pub message: String,
}

/// How bad something is, in the words that GitHub knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AnnotationLevel {
    /// It has to be mended.
    Failure,
    /// It is probably not meant.
    Warning,
}

impl Annotation {
    fn wire(&self) -> Value {
        let Self { path, line, columns, level, title, message } = self;
        let mut wire = json!({
            "path": path, "start_line": line, "end_line": line, "annotation_level": level, "title": title,
            "message": message,
        });
        if let Some((first, last)) = columns {
            (wire["start_column"], wire["end_column"]) = (json!(first), json!(last));
        }
        wire
    }
}

#[derive(Deserialize)]
struct RawRuns {
    check_runs: Vec<RawRun>,
}

#[derive(Deserialize)]
struct RawRun {
    id: u64,
    name: String,
    external_id: Option<String>,
    status: String,
    output: RawOutput,
    /// None if it is gone.
    app: Option<Id>,
}

#[derive(Deserialize)]
struct RawOutput {
    annotations_count: usize,
}

impl RawRun {
    /// How many of a check's annotations it has, if the others can be added to it; none if it shows what is not so any more, or has
    /// ended and cannot be under way again.
    fn has(&self, check: &CheckRun) -> Option<usize> {
        let is_open = self.status != "completed" || check.status.mark != HostMark::Pending;
        match self.output.annotations_count {
            shown if self.external_id.as_deref() == Some(check.id.as_str()) => Some(shown),
            0 if is_open => Some(0),
            _ => None,
        }
    }

    /// Whether nothing is left to be said.
    fn is(&self, check: &CheckRun) -> bool {
        self.external_id.as_deref() == Some(check.id.as_str())
            && self.output.annotations_count >= check.annotations.len()
    }
}

impl Host {
    /// Where people see a file as a commit has it, if that can be told.
    #[must_use]
    pub fn page_of(&self, commit: &CommitId, path: &RepoPath) -> Option<String> {
        self.site.page(commit, path)
    }

    /// Says what a commit comes to, under a name: by a check where we are an App that may write some, else by a status.
    ///
    /// # Errors
    /// As [`HostError`] says.
    pub async fn show(&mut self, commit: &CommitId, name: &str, check: &CheckRun) -> Result<(), HostError> {
        if let Some(app) = self.checker().await? {
            match self.check(app, commit, name, check).await {
                // How it stands may be taken all the same.
                Err(HostError::Refused { status, why, .. }) => {
                    tracing::warn!(status, why, "the check of a commit is not taken");
                }
                done => return done,
            }
        }
        self.tell(commit, name, &check.status).await
    }

    /// The number of the App that we are, if it may write checks.
    async fn checker(&self) -> Result<Option<u64>, HostError> {
        let Pass::App(app) = &self.pass else { return Ok(None) };
        let granted = app.granted().await?;
        if granted.get("checks").is_none_or(|level| level != "write") {
            // Granted meanwhile, the next token has it.
            app.refused(&app.token().await?, Refusal::Lacking).await;
            return Ok(None);
        }
        app.number().await.map(Some)
    }

    /// Says what a commit comes to by a check of the App with that number: the one that it has under that name, or a new one.
    ///
    /// # Errors
    /// As [`HostError`] says. What was said until then stands, and the next call adds what is missing.
    pub async fn check(&mut self, app: u64, commit: &CommitId, name: &str, check: &CheckRun) -> Result<(), HostError> {
        let known = self.checked(app, commit, name).await?;
        if known.as_ref().is_some_and(|run| run.is(check)) {
            return Ok(());
        }
        let known = known.and_then(|run| Some((run.id, run.has(check)?)));
        let left = check.annotations.get(known.map_or(0, |(_, shown)| shown)..).unwrap_or_default();
        let mut batches = left.chunks(BATCH);
        let mut first = body(name, check, batches.next().unwrap_or_default());
        let run = if let Some((run, _)) = known {
            self.add(run, &first).await?;
            run
        } else {
            first["head_sha"] = json!(commit);
            let path = self.in_repository("check-runs");
            let answer = self.ask(CallPurpose::Check, Method::POST, &path, Some(&first), None).await?;
            answer.read::<Id>()?.id
        };
        for batch in batches {
            self.add(run, &body(name, check, batch)).await?;
        }
        Ok(())
    }

    async fn add(&mut self, run: u64, body: &Value) -> Result<(), HostError> {
        let path = self.in_repository(&format!("check-runs/{run}"));
        self.ask(CallPurpose::Check, Method::PATCH, &path, Some(body), None).await.map(drop)
    }

    /// The last run of that name which that App has made for a commit: others may use the name too.
    async fn checked(&mut self, app: u64, commit: &CommitId, name: &str) -> Result<Option<RawRun>, HostError> {
        let query = format!("check_name={}&app_id={app}&filter=latest&{}", escaped(name), self.site.kind.page(1));
        let path = self.in_repository(&format!("commits/{commit}/check-runs?{query}"));
        let RawRuns { check_runs } = self.get(CallPurpose::Check, path).await?;
        let is_ours = |run: &RawRun| run.name == name && run.app.as_ref().is_some_and(|of| of.id == app);
        Ok(check_runs.into_iter().filter(is_ours).max_by_key(|run| run.id))
    }
}

/// A run that shows these annotations, or gets them besides those that it has.
fn body(name: &str, CheckRun { status, id, summary, annotations: _ }: &CheckRun, batch: &[Annotation]) -> Value {
    let annotations: Vec<Value> = batch.iter().map(Annotation::wire).collect();
    let output = json!({"title": status.text, "summary": summary, "annotations": annotations});
    let mut body = json!({"name": name, "external_id": id, "status": "completed", "output": output});
    match status.mark {
        // It ends with a later one: what was not checked must not count as passed.
        HostMark::Pending => body["status"] = json!("in_progress"),
        HostMark::Success | HostMark::Failure => body["conclusion"] = json!(status.mark),
    }
    body
}

#[cfg(test)]
mod tests;
