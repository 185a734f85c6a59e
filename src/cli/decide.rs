//! The verbs that decide: `approve`, `deny`, `skip`, `hold`, `resume`, `abort`, `retry`, `rollback`, `adopt`, `delete`.
//!
//! Each reads the record, checks that the decision makes sense now, and adds one file to the decisions branch: on top of its
//! tip, compare-and-swap, as the person whose clone it is, signed by them where it may have to be. Nothing is ever forced.

mod args;
mod check;
mod delete;
mod own;
mod skip;

pub(super) use args::{
    AbortArgs, AdoptArgs, ApproveArgs, Asked, DecisionArgs, RetryArgs, RollbackArgs, SkipArgs, Verb, person,
};
pub(super) use check::{Intent, intent};
pub(super) use delete::DeleteArgs;

use self::args::Ask;
use super::Exit;
use super::decisions;
use super::failure::Failure;
use super::repository::{Access, Repository};
use super::screen::{Screen, now};
use crate::gate::decisions::{loosens, through};
use crate::git::{CommitDraft, Edit, Keygen, Person, Pushed};
use crate::manifest::decision::{self, Decision, DecisionAction, Through};
use crate::manifest::files::{Entry, Files, RepoPath};
use crate::manifest::ids::{BlobId, CommitId};
use crate::manifest::oid;
use crate::manifest::proof::{ApprovalRule, By};
use crate::record::state::{Consumed, RolloutState, Time};
use crate::record::text::{count, plain};
use std::collections::{BTreeMap, BTreeSet};

/// How often a decision is put on top of a branch that moved meanwhile.
const ATTEMPTS: usize = 3;

/// Writes a decision, or shows it.
pub(super) async fn command(asked: Asked, screen: &Screen) -> Result<Exit, Failure> {
    let Asked { verb, args, ask } = asked;
    if ask == Ask::Yes && !args.dry_run {
        screen.can_ask()?;
    }
    let length = args.reason.as_deref().map_or(0, |reason| reason.chars().count());
    if length > decision::MAX_REASON {
        let most = decision::MAX_REASON;
        return Err(Failure::usage(format!("the text of --reason has {length} characters; at most {most} are kept")));
    }
    let access = if args.dry_run { Access::Read } else { Access::Write };
    let mut repository = Repository::open(&args.repository, access).await?;
    let author = args.author.clone().or_else(|| repository.person());
    for _ in 0..ATTEMPTS {
        // Read anew each time: what moved the branch may have changed what makes sense.
        let (id, record) = repository.record(&args.rollout).await?;
        let now = now();
        let mut intent = intent(&verb, &record, args.reason.as_deref(), now).map_err(Failure::failed)?;
        let own = own::warning(&repository, &record, &intent.decision.action, author.as_ref()).await?;
        intent.next.push_str(own.as_deref().unwrap_or_default());
        let place = Place::find(&repository, &intent.decision, &record.state).await?;
        if args.dry_run {
            screen.print(&place.preview(&intent))?;
            return Ok(Exit::Done);
        }
        if let Some(why) = unproven(&record.state, &intent.decision.action) {
            return Err(Failure::failed(why));
        }
        let keygen = keygen(&repository, &record.state, &intent.decision.action)?;
        let author = author.clone().ok_or_else(nobody)?;
        if ask == Ask::Yes {
            let question = format!("{}\n{} {id}?", intent.next, intent.decision.action.word());
            if !screen.agreed(&question)? {
                return Err(Failure::failed("nothing was decided"));
            }
        }
        match place.push(&repository, &intent.decision, author, keygen, now).await? {
            Some(commit) => {
                screen.print(&place.done(&commit, &intent))?;
                return Ok(Exit::Done);
            }
            None => repository.refresh().await?,
        }
    }
    let branch = repository.decisions_branch()?;
    Err(Failure::failed(format!(
        "{} moved {ATTEMPTS} times while this was written; nothing was decided. Try again.",
        branch.short()
    )))
}

/// What signs the decision, where signatures prove it.
fn keygen(repository: &Repository, state: &RolloutState, action: &DecisionAction) -> Result<Option<Keygen>, Failure> {
    let rule = rule(state).filter(|rule| rule.by == By::Signatures && loosens(action));
    let Some(ApprovalRule { approvers, .. }) = rule else { return Ok(None) };
    let keygen = repository.keygen()?;
    keygen.map(Some).ok_or_else(|| {
        Failure::failed(format!(
            "{} takes this word from {} alone, and signed. Set what signs, and say it again:\n  \
             git config gpg.format ssh\n  git config user.signingKey FILE   # a key of the installation's list of allowed signers",
            state.metadata,
            listed(&approvers)
        ))
    })
}

/// Whose decision lets the rollout go further, and what proves it, as far as the record tells.
pub(super) fn rule(state: &RolloutState) -> Option<ApprovalRule> {
    state.rule(state.policy.as_ref().and_then(|policy| policy.said.rule.as_ref()))
}

fn listed(names: &BTreeSet<String>) -> String {
    names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// Why a decision that is pushed would not count, where the open run asks for reviews, or for what nothing can prove.
fn unproven(state: &RolloutState, action: &DecisionAction) -> Option<String> {
    let deletes = matches!(action, DecisionAction::Delete { .. });
    // At rest nobody knows who waits for a decision; a deletion alone is asked for then.
    let run = state.run.as_ref().map(|run| &run.id).filter(|_| loosens(action));
    let who = if deletes { state.metadata.to_string() } else { format!("run {}", run?) };
    let ApprovalRule { approvers, approvals, trust: _, by } = rule(state)?;
    let names = listed(&approvers);
    match by {
        By::Reviews => {}
        By::Signatures => return None,
        By::Nothing => {
            return Some(format!(
                "{who} takes this word from {names} alone, and the installation names neither a Git host with reviews nor a \
                 list of allowed signers, so that nothing can prove it"
            ));
        }
    }
    let how = if deletes || through(action).is_some() {
        "Approve and merge the pull request that tidegate has opened"
    } else {
        "Bring the file of --dry-run to the decisions branch by a pull request"
    };
    Some(format!(
        "{who} takes this word from a pull request alone that {approvals} of {names} approved; what is pushed does not \
         count. {how}."
    ))
}

/// It is not known who commits.
pub(super) fn nobody() -> Failure {
    Failure::usage(
        "it is not known who decides: set user.name and user.email with `git config`, or use --author \"Name <mail>\"",
    )
}

/// Where a decision goes: its file, on top of which tip.
#[derive(Debug)]
struct Place {
    tip: Option<CommitId>,
    branch: String,
    path: RepoPath,
    text: String,
}

impl Place {
    async fn find(repository: &Repository, decision: &Decision, state: &RolloutState) -> Result<Self, Failure> {
        let branch = repository.decisions_branch()?;
        let tip = repository.tip(&branch).cloned();
        let files = match &tip {
            Some(tip) => repository.files(&branch, tip, &decisions::directory(&decision.rollout)?).await?,
            None => Files::new(),
        };
        let (path, text) = file(decision, &files, &state.consumed).map_err(Failure::failed)?;
        Ok(Self { tip, branch: branch.short().to_owned(), path, text })
    }

    /// Makes the commit and pushes it; `None` when the branch moved meanwhile.
    async fn push(
        &self,
        repository: &Repository,
        decision: &Decision,
        author: Person,
        keygen: Option<Keygen>,
        now: Time,
    ) -> Result<Option<CommitId>, Failure> {
        let draft = CommitDraft {
            parent: self.tip.clone(),
            edits: BTreeMap::from([(self.path.clone(), Edit::Write(self.text.as_bytes().into()))]),
            subject: subject(decision),
            body: body(decision),
            author,
            time: now,
        };
        let commit = match keygen {
            Some(keygen) => repository.store.commit_as(draft, keygen).await?,
            None => repository.store.commit(draft).await?,
        };
        let branch = repository.decisions_branch()?;
        match repository.store.push(&branch, self.tip.as_ref(), &commit, None).await? {
            Pushed::Done { .. } => Ok(Some(commit)),
            Pushed::Raced { .. } | Pushed::SourceMoved { .. } => Ok(None),
            Pushed::Rejected { why } => Err(Failure::failed(format!(
                "{} takes no push from you: {why}\n\
                 Add the file by a pull request into {} instead; --dry-run prints it.",
                self.branch, self.branch
            ))),
        }
    }

    fn preview(&self, intent: &Intent) -> String {
        format!("# {} on {}\n{}\n# {}\n", self.path, self.branch, self.text, intent.next.replace('\n', "\n# "))
    }

    fn done(&self, commit: &CommitId, intent: &Intent) -> String {
        let short: String = commit.as_str().chars().take(8).collect();
        format!("{} on {} ({short})\n{}\n", self.path, self.branch, intent.next)
    }
}

/// The file of a decision: the first free number, if it was said before. An approval counts once; one that was void is said
/// again in its place, in other words.
fn file(decision: &Decision, files: &Files, consumed: &[Consumed]) -> Result<(RepoPath, String), String> {
    let numbers = std::iter::once(None).chain((2..).map(Some));
    for number in numbers {
        let (path, text) = decision::print(decision, number);
        let is_approval = matches!(decision.action, DecisionAction::Approve { .. });
        let letter = oid::blob(text.as_bytes());
        let was_counted = consumed.iter().any(|decision| decision.path == path && decision.blob == letter);
        let is_there = matches!(files.get(&path), Some(Entry::File { blob, .. }) if *blob == letter);
        if !is_approval && is_there && !was_counted {
            return Err(format!("{path} is on the decisions branch already; tidegate counts it at its next look"));
        }
        let Some(there) = files.get(&path) else {
            if !is_approval && was_counted {
                continue;
            }
            return Ok((path, text));
        };
        if is_approval {
            let known =
                |blob: &BlobId| consumed.iter().find(|decision| decision.path == path && decision.blob == *blob);
            let is_void = |blob: &BlobId| known(blob).is_some_and(|decision| decision.void.is_some());
            if let Entry::File { blob, .. } = there
                && is_void(blob)
            {
                return Ok(again(decision, |text| known(text).is_some()));
            }
            return Err(format!("{path} is on the decisions branch already; tidegate counts it at its next look"));
        }
    }
    unreachable!("the numbers never end")
}

/// The same decision in words that were not looked at yet.
fn again(decision: &Decision, is_known: impl Fn(&BlobId) -> bool) -> (RepoPath, String) {
    let said = decision.reason.clone();
    let numbered = (1..).map(|n| match &said {
        Some(reason) => format!("again ({n}): {reason}"),
        None => format!("said again ({n})"),
    });
    let all = std::iter::once(said.clone()).chain(numbered.map(Some));
    let mut texts = all.map(|reason| decision::print(&Decision { reason, ..decision.clone() }, None));
    texts.find(|(_, text)| !is_known(&oid::blob(text.as_bytes()))).expect("one, because the numbers never end")
}

/// `shop/podinfo: approve through tenth`.
fn subject(decision: &Decision) -> String {
    let Decision { rollout, run, action, reason: _ } = decision;
    match action {
        DecisionAction::Approve { through } => format!("{rollout}: approve run {run} through {through}"),
        DecisionAction::Rollback => format!("{rollout}: rollback to run {run}"),
        DecisionAction::Adopt { live } => format!("{rollout}: adopt what is live ({})", live.short()),
        DecisionAction::Delete { objects, successor: _ } => {
            format!("{rollout}: delete {}", count(objects.len(), "object"))
        }
        DecisionAction::Skip { step, through: Through::Step } => format!("{rollout}: skip {step} of run {run}"),
        DecisionAction::Skip { step: _, through: Through::Promotion } => {
            format!("{rollout}: skip all soaks of run {run}")
        }
        DecisionAction::Deny
        | DecisionAction::Hold
        | DecisionAction::Resume
        | DecisionAction::Abort
        | DecisionAction::Retry => format!("{rollout}: {} run {run}", action.word()),
    }
}

fn body(decision: &Decision) -> String {
    let reason = decision.reason.as_deref().map(plain).filter(|reason| !reason.is_empty());
    let reason = reason.map_or(String::new(), |reason| format!("{reason}\n\n"));
    format!("{reason}Tidegate-Rollout: {}\nTidegate-Run: {}", decision.rollout, decision.run)
}

#[cfg(test)]
mod tests;
