//! What people are told of their own pull requests: a commit status, or a check with each finding at its line (`check`), and one
//! comment with all findings or the timeline.
//!
//! Everything here may be hostile but the numbers: what comes from files is escaped, cut and counted, so that it is one line
//! of text that names nobody and ends nothing. No line of a file is quoted.

use crate::forge::host::{HostMark, Status};
use crate::forge::pull::escaped;
use crate::manifest::desired::Suspend;
use crate::manifest::diagnostic::Diagnostic;
use crate::manifest::duration::Span;
use crate::manifest::files::RepoPath;
use crate::manifest::ids::{CommitId, InstanceName, RolloutId};
use crate::manifest::oid;
use crate::plan::forecast::{Forecast, Foreseen};
use crate::plan::outlook::{Effect, Outlook};
use crate::record::state::Time;
use crate::record::text::{count, plain};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

mod check;

/// So many bytes of one list are shown: hosts take 65,536 characters in all.
const LIST: usize = 20_000;
/// So many entries of one list are shown: nobody mends more at a time.
pub const ENTRIES: usize = 50;

/// What is said of a pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequestFeedback {
    /// The commit that it offers.
    pub head: CommitId,
    /// What that comes to.
    pub verdict: FeedbackVerdict,
}

/// What a pull request comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FeedbackVerdict {
    /// It changes nothing that tidegate reads.
    Elsewhere,
    /// The branch that it leads to has changed the same places meanwhile.
    Conflict(BTreeSet<String>),
    /// It cannot be read, for this reason.
    Unreadable(String),
    /// It was read.
    Read(FeedbackReading),
}

/// What was read in a pull request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FeedbackReading {
    /// What is wrong with it.
    pub errors: Vec<Diagnostic>,
    /// What is accepted, and probably not meant.
    pub warnings: Vec<Diagnostic>,
    /// The files that are the same in the commit that is offered, each with its page there, if it has one: a finding in one is at
    /// that line there too.
    pub same: BTreeMap<RepoPath, Option<String>>,
    /// What would become of the rollouts that it changes.
    pub outlooks: BTreeMap<RolloutId, Outlook>,
    /// How many more it changes.
    pub more: usize,
}

/// What our comment begins with, whatever it says.
#[must_use]
pub fn mark(instance: &InstanceName) -> String {
    format!("<!-- tidegate {instance} ")
}

impl PullRequestFeedback {
    /// The first line of the comment, which nobody sees: whose it is, which commit it is about, and what of it does not change
    /// with the time alone. While this is the same there is nothing to say.
    #[must_use]
    pub fn first_line(&self, instance: &InstanceName) -> String {
        format!("{}{} {} -->", mark(instance), self.head, self.digest())
    }

    fn digest(&self) -> String {
        let substance = match &self.verdict {
            FeedbackVerdict::Elsewhere => "elsewhere".to_owned(),
            FeedbackVerdict::Conflict(paths) => format!("{paths:?}"),
            FeedbackVerdict::Unreadable(why) => why.clone(),
            FeedbackVerdict::Read(reading) => reading.substance(),
        };
        short(&substance)
    }

    /// The commit status.
    #[must_use]
    pub fn status(&self) -> Status {
        match &self.verdict {
            FeedbackVerdict::Elsewhere => Status::new(HostMark::Success, "changes no manifests"),
            FeedbackVerdict::Conflict(_) => Status::new(HostMark::Pending, "not checked: it cannot be merged as it is"),
            FeedbackVerdict::Unreadable(why) => {
                Status::new(HostMark::Failure, &format!("cannot be read: {}", plain(why)))
            }
            FeedbackVerdict::Read(FeedbackReading { errors, warnings: _, same: _, outlooks, more }) => {
                match errors.first() {
                    Some(first) => {
                        let Diagnostic { path, line, column, found, .. } = first;
                        let text = format!("{}: {path}:{line}:{column}: {found}", count(errors.len(), "finding"));
                        Status::new(HostMark::Failure, &plain(&text))
                    }
                    None if outlooks.is_empty() => Status::new(HostMark::Success, "no findings; no rollout changes"),
                    None => {
                        let text = format!("no findings; {} changed", count(outlooks.len() + more, "rollout"));
                        Status::new(HostMark::Success, &text)
                    }
                }
            }
        }
    }

    /// The comment, in Markdown.
    #[must_use]
    pub fn comment(&self, instance: &InstanceName, now: Time) -> String {
        let body = self.body(now);
        format!("{}\n{body}\n---\ntidegate `{instance}`, commit {}\n", self.first_line(instance), self.head)
    }

    fn body(&self, now: Time) -> String {
        match &self.verdict {
            FeedbackVerdict::Elsewhere => "This pull request changes no manifests any more.\n".to_owned(),
            FeedbackVerdict::Conflict(paths) => {
                let intro = "**This cannot be merged as it is**, so it was not checked. Both sides have changed:\n\n";
                list(intro, paths.iter().map(|path| format!("- {}\n", escaped(path))), 0, "more")
            }
            FeedbackVerdict::Unreadable(why) => format!("**This cannot be read**: {}.\n", escaped(why)),
            FeedbackVerdict::Read(reading) => reading.text(now),
        }
    }
}

impl FeedbackReading {
    fn substance(&self) -> String {
        let Self { errors, warnings, same: _, outlooks, more } = self;
        let mut text = format!("{more}\n");
        for diagnostic in errors.iter().chain(warnings) {
            text.push_str(&diagnostic.to_string());
            text.push('\n');
        }
        for (id, Outlook { change, message, forecast, queries: _, suspend }) in outlooks {
            // An error in writing to a String is none.
            let _ = writeln!(text, "{id} {change:?} {message} {suspend:?}");
            for step in forecast.iter().flat_map(|forecast| &forecast.steps) {
                let Foreseen { name, exposes, lasts, .. } = step;
                let _ = writeln!(text, "{name} {exposes:?} {:?} {lasts}", step.gates());
            }
        }
        text
    }

    fn text(&self, now: Time) -> String {
        let Self { errors, warnings, same, outlooks, more } = self;
        let mut text = String::new();
        let lines = |all: &[Diagnostic]| -> Vec<String> {
            all.iter().map(|d| format!("- {}\n", finding(d, same.get(&d.path)))).collect()
        };
        if !errors.is_empty() {
            let intro = format!(
                "**{}.** Merged like this, what they are about is not rolled out; what runs goes on running.\n\n",
                count(errors.len(), "finding")
            );
            text.push_str(&list(&intro, lines(errors).into_iter(), 0, "more: `tidegate validate` shows them all"));
        }
        if !warnings.is_empty() {
            let intro = format!("\n{}, accepted and probably not meant:\n\n", count(warnings.len(), "warning"));
            text.push_str(&list(&intro, lines(warnings).into_iter(), 0, "more: `tidegate validate` shows them all"));
        }
        // Whoever has to mend something first asks for no timeline.
        if !errors.is_empty() {
            return text;
        }
        if outlooks.is_empty() {
            text.push_str("\nNo rollout changes.\n");
            return text;
        }
        let clock = outlooks.values().find_map(|outlook| outlook.forecast.as_ref()).map(|forecast| forecast.clock(now));
        let clock = clock.unwrap_or_else(|| now.format("%A %-d %B %Y %H:%M UTC").to_string());
        let intro = format!("\n**Merged on {clock}**, this would come of it:\n\n");
        text.push_str(&list(&intro, outlooks.iter().map(outlook), *more, "more: `tidegate plan` shows them all"));
        if outlooks.values().any(|outlook| outlook.forecast.is_some()) {
            text.push_str("\nForeseen: it takes longer where pods are not ready at once, or people take their time.\n");
        }
        text
    }
}

/// One finding on one line: `path:line:column: what; what was expected (how to mend it)`. Its place leads to the page of the file.
fn finding(diagnostic: &Diagnostic, page: Option<&Option<String>>) -> String {
    let Diagnostic { path, line, column, length: _, code, found, expected, help, source: _ } = diagnostic;
    let place = format!("{}:{line}:{column}", escaped(path.as_str()));
    // The hosts agree on what a line of a page is called.
    let place =
        page.and_then(Option::as_ref).map_or_else(|| place.clone(), |page| format!("[{place}](<{page}#L{line}>)"));
    let help = help.as_ref().map(|help| format!(" ({})", escaped(help))).unwrap_or_default();
    format!("**{place}** `{code}`: {}; expected {}{help}", escaped(found), escaped(expected))
}

/// What would become of a rollout.
fn outlook((id, outlook): (&RolloutId, &Outlook)) -> String {
    let Outlook { change, message, forecast, queries: _, suspend } = outlook;
    let mut text = format!("- **{id}**: {}", escaped(message));
    match (forecast.as_ref().and_then(Forecast::sentence), suspend) {
        (_, Suspend::Yes) => text.push_str(" `suspend: true` keeps it from entering anything."),
        (Some(sentence), Suspend::No) => {
            let _ = write!(text, "\n  **{}**", escaped(&sentence));
        }
        (None, Suspend::No) => {}
    }
    text.push('\n');
    let steps = forecast.iter().flat_map(|forecast| &forecast.steps).filter(|_| *change == Effect::Run);
    let rows: String = steps.filter(|step| step.exposes.is_some() || !step.before.is_empty()).map(row).collect();
    if !rows.is_empty() {
        let _ = write!(text, "\n  | step | who gets it | waits for | stays |\n  |---|---|---|---|\n{rows}\n");
    }
    text
}

fn row(step: &Foreseen) -> String {
    let or_dash = |text: String| if text.is_empty() { "–".to_owned() } else { escaped(&text) };
    let exposes = step.exposes.clone().unwrap_or_else(|| "nobody".to_owned());
    let lasts = if step.lasts == Span::ZERO { String::new() } else { step.lasts.to_string() };
    format!("  | {} | {} | {} | {} |\n", step.name, escaped(&exposes), or_dash(step.gates().join(", ")), or_dash(lasts))
}

/// A list behind its introduction, cut where it gets too long for anybody; `beyond` are not even among the entries.
fn list(intro: &str, entries: impl ExactSizeIterator<Item = String>, beyond: usize, more: &str) -> String {
    let (mut text, all, mut shown) = (intro.to_owned(), entries.len() + beyond, 0);
    for entry in entries.take(ENTRIES) {
        if text.len() + entry.len() > LIST {
            break;
        }
        text.push_str(&entry);
        shown += 1;
    }
    if shown < all {
        let _ = writeln!(text, "\nand {} {more}", all - shown);
    }
    text
}

/// So that nothing else comes to the same by chance.
fn short(substance: &str) -> String {
    oid::blob(substance.as_bytes()).as_str().chars().take(16).collect()
}

#[cfg(test)]
mod tests;
