//! Pull requests, as values: what one says on the page of a Git host, and what is to be done about those that are there.
//!
//! A pull request only shows a branch of ours that asks people something: whoever merges it merges that branch, and
//! whoever closes it unmerged denies as if the branch were deleted. So all of it can be lost and is made again.

use super::branch::{Advance, Asks, Deletion, RevertRequest, decisions_branch, exposed_at};
use crate::manifest::decision::listed;
use crate::manifest::desired::Plan;
use crate::manifest::ids::{CommitId, InstanceName, Revision, StepName};
use crate::manifest::proof::ApprovalRule;
use crate::record::state::Checked;
use crate::record::text::{exposure, unlinked};
use std::fmt::Write as _;

/// The most characters of a title: GitHub takes 256, Gitea and GitLab 255.
const TITLE: usize = 250;
/// The most checks that a body tells of, and the most characters that it has of each, and of why something went wrong: with all of
/// them it is far from the 65,536 that GitHub takes, the least of all.
const CHECKS: usize = 20;
const SAID: usize = 500;
const WHY: usize = 5_000;
/// The most characters of a list of objects.
const LIST: usize = 50_000;
/// What the body of a request begins with that asks for nothing any more.
const OVER: &str = "> **Closed:** ";
/// What the body of a request begins with that nobody can merge. GitHub alone has drafts that are not such by their title, and its REST
/// API, which is all that is asked, cannot take that back.
const DRAFT: &str =
    "> **This is a draft, so nobody can merge it.** Mark it as *Ready for review*, or close it to say no.\n\n";

/// What a pull request says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// One line.
    pub title: String,
    /// Markdown.
    pub body: String,
}

/// A pull request that there has to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullBody {
    /// The branch that it leads to.
    pub base: String,
    /// The head of its own branch.
    pub head: CommitId,
    /// What it says.
    pub text: Text,
    /// Whose no counts; none: whoever may close it.
    pub rule: Option<ApprovalRule>,
}

impl PullBody {
    /// What it says on the page of that one: somebody who has made it a draft has to take that back.
    #[must_use]
    pub fn on(&self, found: &PullRequest) -> Text {
        let Text { title, body } = &self.text;
        // One that is a draft by its title becomes none with the right one.
        let stuck = found.draft && found.text.title.trim() == title;
        Text { title: title.clone(), body: if stuck { format!("{DRAFT}{body}") } else { body.clone() } }
    }
}

/// The labels of a pull request that asks that, by which people filter: the one of all of ours, and the one of its kind.
#[must_use]
pub fn labels(asks: &Asks) -> [&'static str; 2] {
    let kind = match asks {
        Asks::Advance(_) => "tidegate/advance",
        Asks::Revert => "tidegate/revert",
        Asks::Delete => "tidegate/delete",
    };
    ["tidegate", kind]
}

/// How a pull request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PullState {
    /// To be decided.
    Open,
    /// Merged.
    Merged,
    /// Closed unmerged.
    Closed,
}

/// A pull request as the host has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequest {
    /// Its number in the repository.
    pub number: u64,
    /// How it stands.
    pub state: PullState,
    /// The id of the repository that its branch is in; none if that is gone.
    pub repository: Option<u64>,
    /// The id of the user who opened it.
    pub author: Option<u64>,
    /// Its branch.
    pub branch: String,
    /// The branch that it leads to.
    pub base: String,
    /// Whether somebody has marked it as unfinished, so that nobody can merge it.
    pub draft: bool,
    /// What it says.
    pub text: Text,
}

/// Who we are on a host, by numbers: names can be given to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ids {
    /// Of our user.
    pub user: u64,
    /// Of the repository.
    pub repository: u64,
}

impl PullRequest {
    /// Whether we opened it, from a branch of this repository. Anybody can open one that looks like ours.
    #[must_use]
    pub fn is_ours(&self, ids: Ids) -> bool {
        self.author == Some(ids.user) && self.repository == Some(ids.repository)
    }

    /// Whether it is the pull request of that branch, as it is now: a branch may have been made again under its name. One that leads
    /// elsewhere by now is it too, unless it was merged there.
    #[must_use]
    pub fn is_of(&self, branch: &str, request: &PullBody) -> bool {
        let Self { state: standing, text, base, .. } = self;
        let names = text.body.contains(request.head.as_str());
        self.branch == branch
            && match standing {
                PullState::Open => true,
                PullState::Closed => names,
                PullState::Merged => names && *base == request.base,
            }
    }

    /// Whether people see what they should see. Hosts may write line ends in their own way.
    #[must_use]
    pub fn says(&self, text: &Text) -> bool {
        let plain = |text: &str| text.replace('\r', "").trim().to_owned();
        self.text.title.trim() == text.title && plain(&self.text.body) == plain(&text.body)
    }

    /// Whether it leads where it should, and people see what they should see.
    #[must_use]
    pub fn is_as(&self, request: &PullBody) -> bool {
        self.base == request.base && self.says(&request.on(self))
    }

    /// The text with the reason why it asks for nothing any more; none if it was given before.
    #[must_use]
    pub fn over(&self, why: &str) -> Option<Text> {
        let Text { title, body } = &self.text;
        let over = || Text { title: title.clone(), body: format!("{OVER}{why}\n\n{body}") };
        (!body.starts_with(OVER)).then(over)
    }
}

/// What is known of the pull request of a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PullVerdict<'a> {
    /// It is there and says what it should.
    Fine,
    /// It is there, and says something else or leads elsewhere.
    Differs(&'a PullRequest),
    /// A person closed it: no.
    Denied(&'a PullRequest),
    /// It was merged: what came of it will be seen in Git.
    Merged,
    /// There is none.
    Missing,
}

/// Judges the pull request of `branch` by those that were found, newest first. An open one counts more than any other.
#[must_use]
pub fn verdict<'a>(ids: Ids, branch: &str, request: &PullBody, found: &'a [PullRequest]) -> PullVerdict<'a> {
    let ours = || found.iter().filter(|found| found.is_ours(ids) && found.is_of(branch, request));
    let open = || ours().filter(|found| found.state == PullState::Open);
    let open = open().find(|found| found.base == request.base).or_else(|| open().next());
    match open.or_else(|| ours().next()) {
        None => PullVerdict::Missing,
        Some(found) => match found.state {
            PullState::Open if found.is_as(request) => PullVerdict::Fine,
            PullState::Open => PullVerdict::Differs(found),
            PullState::Merged => PullVerdict::Merged,
            PullState::Closed => PullVerdict::Denied(found),
        },
    }
}

/// The version that serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServingVersion<'a> {
    /// Which.
    pub revision: &'a Revision,
    /// The page that shows what the new one changes; none if no commit of this one is known.
    pub compare: Option<String>,
}

/// What is known beside a request for a step.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Beside<'a> {
    /// The version that serves, if there is one.
    pub serving: Option<ServingVersion<'a>>,
    /// The page of the rollout's record.
    pub record: Option<String>,
    /// How the run goes on from there, in a sentence. It follows the calendar, as no commit of the branch could.
    pub foreseen: Option<String>,
}

/// What the pull request for a step says.
#[must_use]
pub fn advance(request: &Advance<'_>, beside: &Beside<'_>, head: &CommitId) -> Text {
    let Advance { instance, rollout, run, plan, through, void: _ } = *request;
    let to = request.exposes();
    let title = match &to {
        Some(to) => format!("{rollout}: go on to {through} ({})", unlinked(to)),
        None => format!("{rollout}: go on to {through}"),
    };
    let again = request.unproven().map(|why| format!("**{}**\n\n", escaped(&why))).unwrap_or_default();
    let Beside { serving, record, foreseen } = beside;
    let next = foreseen.as_deref().map(next).unwrap_or_default();
    let mut body = format!(
        "{again}The new version of **{rollout}** waits for a word before `{through}`. Once let in, it {}.\n\n{next}| | |\n|---|---|\n",
        request.then(),
    );
    if let Some(to) = &to {
        let from = before(plan, through).and_then(|step| exposure(&exposed_at(plan, step)));
        let from = from.map_or_else(|| "nothing".to_owned(), |words| escaped(&words));
        write!(body, "| it gets now | {from} |\n| it gets then | {} |\n", escaped(to)).expect("a String takes all");
    }
    writeln!(body, "| new version | `{}` |", run.revision.short()).expect("a String takes all");
    if let Some(ServingVersion { revision, compare }) = serving {
        writeln!(body, "| in place of | `{}` |", revision.short()).expect("a String takes all");
        if let Some(page) = compare {
            writeln!(body, "| what changes | [on main since then]({page}) |").expect("a String takes all");
        }
    }
    write!(
        body,
        "| commit | {} |\n| run | `{}`, since {} |\n\n{}\
         **Merge** it to go on. That opens every approval gate of this run up to and with `{through}`; windows, freezes and \
         checks hold as before. It counts for this run alone.\n\n\
         **Close** it unmerged to say no: traffic stays where it is, and nothing is asked again before \
         `tidegate resume {rollout}`.\n\n\
         **To take it back** at any time: `tidegate abort {rollout}`. What it waits on: `tidegate why {rollout}`.\n\n{}",
        run.source,
        run.id,
        run.started.format("%Y-%m-%d %H:%M UTC"),
        checks(request, record.as_deref()),
        footer(instance, head),
    )
    .expect("a String takes all");
    Text { title: short(title), body }
}

/// What the pull request to undo a run's change says.
#[must_use]
pub fn revert(request: &RevertRequest<'_>, head: &CommitId) -> Text {
    let RevertRequest { instance, main, rollout, run, revision, stable, why } = *request;
    let why: String = why.chars().take(WHY).collect();
    let body = format!(
        "The new version of **{rollout}** went back: {}\n\n\
         All traffic is on the stable version already; nothing waits for this.\n\n\
         | | |\n|---|---|\n| refused | `{}` |\n| serves | `{}` |\n| run | `{run}` |\n\n\
         **Merge** it to undo on `{main}` what the run changed in the manifests, file by file; what others changed since stays.\n\n\
         **Close** it to leave `{main}` as it is. The version stays refused until `{main}` changes, or until \
         `tidegate retry {rollout}`.\n\n{}",
        escaped(&why),
        revision.short(),
        stable.short(),
        footer(instance, head),
    );
    Text { title: short(format!("{rollout}: revert run {run}")), body }
}

/// What the pull request to let objects go says.
#[must_use]
pub fn delete(request: &Deletion<'_>, head: &CommitId) -> Text {
    let Deletion { instance, rollout, run, question, .. } = *request;
    let (count, why, then) = (request.count(), request.why(), request.then());
    let mut list = String::new();
    let all = listed(&question.objects);
    for (n, object) in all.iter().enumerate() {
        let line = format!("- `{} {}`\n", object.kind, object.name);
        if list.len() + line.len() > LIST {
            writeln!(list, "- and {} more, which the file of this request names", all.len() - n)
                .expect("a String takes all");
            break;
        }
        list.push_str(&line);
    }
    let body = format!(
        "**{count}** of **{rollout}** would be deleted: {why}. The policy lets {} go with one change of a rollout \
         (`limits.maxDeletions` in `tidegate.yaml`), so nothing of it goes without a word.\n\n{list}\n\
         **Merge** it to let them go: {then}. It counts for this list. If main changes so that something else would go, that is \
         asked anew.\n\n\
         **Close** it unmerged to say no: {}. Nothing is asked about them again before `tidegate resume {rollout}`.\n\n\
         **To keep them for good**, put them back on main. What it waits on: `tidegate why {rollout}`, run `{run}`.\n\n{}",
        question.limit,
        request.unless(),
        footer(instance, head),
    );
    Text { title: short(format!("{rollout}: delete {count}")), body }
}

/// How it goes on, as far as anybody can tell.
fn next(foreseen: &str) -> String {
    let foreseen: String = foreseen.chars().take(WHY).collect();
    format!("**What comes next**, if nothing goes wrong: {}.\n\n", escaped(&foreseen))
}

/// What the checks of the step before have said, and where the rest is.
fn checks(request: &Advance<'_>, record: Option<&str>) -> String {
    let Advance { run, plan, through, .. } = *request;
    let said = run.pulls.get(through).map(|pull| pull.checks.as_slice()).unwrap_or_default();
    let record = record.map(|page| format!(" ([the record]({page}))")).unwrap_or_default();
    let Some(step) = before(plan, through).filter(|_| !said.is_empty()) else {
        return format!("**No check** has said anything so far{record}.\n\n");
    };
    let mut text = format!("**The checks** of `{step}`, when this was asked{record}:\n\n");
    for Checked { check, says } in said.iter().take(CHECKS) {
        let says: String = says.chars().take(SAID).collect();
        writeln!(text, "- `{check}`: {}", escaped(&says)).expect("a String takes all");
    }
    if said.len() > CHECKS {
        writeln!(text, "- and {} more", said.len() - CHECKS).expect("a String takes all");
    }
    text + "\n"
}

/// Names the commit, so that a closed pull request tells which one it was about.
fn footer(instance: &InstanceName, head: &CommitId) -> String {
    format!("---\ntidegate `{instance}`, decisions on `{}`, head {head}", decisions_branch(instance))
}

/// The step before: a phase; none before the first.
fn before<'a>(plan: &'a Plan, step: &StepName) -> Option<&'a StepName> {
    let at = plan.phases.iter().position(|phase| phase.name == *step).unwrap_or(plan.phases.len());
    plan.phases[..at].last().map(|phase| &phase.name)
}

/// Foreign text for Markdown: on one line, without links, markup, HTML or columns.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in unlinked(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            c if c.is_ascii_punctuation()
                && !matches!(c, '.' | ',' | ';' | ':' | '/' | '%' | '=' | '-' | '\'' | '"') =>
            {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

/// Cut to what hosts take.
fn short(title: String) -> String {
    if title.chars().count() <= TITLE {
        return title;
    }
    title.chars().take(TITLE - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests;
