//! The same as a check of the commit that is offered: with each finding at its line, where a host can show that.

use super::{FeedbackReading, FeedbackVerdict, PullRequestFeedback, short};
use crate::forge::host::{Annotation, AnnotationLevel, CheckRun};
use crate::manifest::diagnostic::Diagnostic;
use crate::record::state::Time;
use crate::record::text::{plain, unlinked};
use std::fmt::Write as _;

/// So many findings are shown at their lines.
const SHOWN: usize = 200;

impl PullRequestFeedback {
    /// The check of the commit.
    #[must_use]
    pub fn check(&self, now: Time) -> CheckRun {
        let annotations = match &self.verdict {
            FeedbackVerdict::Elsewhere | FeedbackVerdict::Conflict(_) | FeedbackVerdict::Unreadable(_) => Vec::new(),
            FeedbackVerdict::Read(reading) => reading.annotations(),
        };
        let mut summary = self.body(now);
        if let FeedbackVerdict::Read(FeedbackReading { errors, warnings, .. }) = &self.verdict
            && let hidden @ 1.. = errors.len() + warnings.len() - annotations.len()
        {
            let are = if hidden == 1 { "is" } else { "are" };
            // An error in writing to a String is none.
            let _ = writeln!(
                summary,
                "\n{hidden} of these {are} not shown at a line: {SHOWN} are at most, and none in a file that this commit does not have \
                 like this, because both sides have changed it."
            );
        }
        // Which findings are at a line, main decides too, and the comment does not tell.
        let id = short(&format!("{} {annotations:?}", self.digest()));
        CheckRun { status: self.status(), id, summary, annotations }
    }
}

impl FeedbackReading {
    /// What is wrong first.
    fn annotations(&self) -> Vec<Annotation> {
        let errors = self.errors.iter().map(|finding| (finding, AnnotationLevel::Failure));
        let all = errors.chain(self.warnings.iter().map(|finding| (finding, AnnotationLevel::Warning)));
        // A path that hides something is not shown to anybody as it is.
        let is_there = |finding: &Diagnostic| {
            self.same.contains_key(&finding.path) && plain(finding.path.as_str()) == finding.path.as_str()
        };
        all.filter(|(finding, _)| is_there(finding))
            .take(SHOWN)
            .map(|(finding, level)| annotation(finding, level))
            .collect()
    }
}

fn annotation(finding: &Diagnostic, level: AnnotationLevel) -> Annotation {
    let Diagnostic { path, line, column, length, code, found, expected, help, source: _ } = finding;
    let help = help.as_ref().map(|help| format!(" ({})", unlinked(help))).unwrap_or_default();
    Annotation {
        path: path.clone(),
        line: *line,
        // One without a length is about the file as a whole.
        columns: (*length > 0).then(|| (*column, column + length - 1)),
        level,
        title: code.to_string(),
        message: format!("{}; expected {}{help}", unlinked(found), unlinked(expected)),
    }
}

#[cfg(test)]
mod tests;
