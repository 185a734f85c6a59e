//! `tidegate state`: who has written the record, and a person's word about it. Only where an installation signs its record.

use super::Exit;
use super::args::RepositoryArgs;
use super::decide::person;
use super::failure::Failure;
use super::repository::{Access, Repository, named};
use super::screen::{Screen, now};
use super::ui::{Ink, Paint, Table};
use crate::forge::branch;
use crate::git::{CommitDraft, Keys, Person, Pushed, Sealed, SignatureVerdict};
use crate::manifest::ids::CommitId;
use crate::sign::{PublicKey, SigningKey};
use clap::{Args, Subcommand};
use secrecy::zeroize::Zeroizing;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Check, accept or bring back a signed record
#[derive(Debug, Args)]
#[command(
    long_about = "Checks who has signed the record, accepts it as it stands, or brings an earlier one back. A controller whose \
                  Installation has a key (spec.signing) acts upon no record that holds a commit of anybody else.",
    after_help = "Examples:
  tidegate state verify --trusted tidegate.pub
  tidegate state adopt --key tidegate
  tidegate state restore 5f3c0a9d1b7e4c2a8d6f0b1e3a5c7d9f2b4e6a80 --key tidegate",
    disable_help_subcommand = true
)]
pub(super) struct StateArgs {
    #[command(subcommand)]
    act: Act,
}

#[derive(Debug, Subcommand)]
enum Act {
    Verify(VerifyArgs),
    Adopt(AdoptArgs),
    Restore(RestoreArgs),
}

/// Tell each commit of the record that no trusted key has signed
#[derive(Debug, Args)]
#[command(
    long_about = "Looks at every commit of the state branch, back to where it begins or to one with which a person accepted all \
                  before it, and tells those that no trusted key has signed. Ends with 1 if there is one.",
    after_help = "Examples:
  tidegate state verify --trusted tidegate.pub
  tidegate state verify --trusted keys.pub --all -o json"
)]
struct VerifyArgs {
    /// A file with public keys, one a line as in *.pub; may be given several times
    #[arg(long, value_name = "FILE", required = true, env = "TIDEGATE_TRUSTED")]
    trusted: Vec<PathBuf>,
    /// Lists the commits that are well signed too
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    repository: RepositoryArgs,
}

/// Accept the record as it stands
#[derive(Debug, Args)]
#[command(
    long_about = "Writes a signed commit on top of the state branch that changes no file: whoever has the key says with it that \
                  the record is right as it stands, whoever wrote it. This is how signing begins where a record is there \
                  already. Look at it first: `tidegate state verify`, `tidegate status`. Asks first; without a terminal --yes \
                  has to be given.",
    after_help = "Example:
  tidegate state adopt --key tidegate --reason \"signing begins\""
)]
struct AdoptArgs {
    #[command(flatten)]
    vouch: VouchArgs,
}

/// Bring the record of an earlier commit back
#[derive(Debug, Args)]
#[command(
    long_about = "Writes a signed commit on top of the state branch with all files as an earlier commit had them. Nothing is \
                  forced, and what came in between stays in the history. Take the newest commit that `tidegate state verify --all` \
                  shows as trusted: a record that is older than what the cluster has been brought to is not acted upon \
                  (StaleRead). Asks first; without a terminal --yes has to be given.",
    after_help = "Example:
  tidegate state restore 5f3c0a9d1b7e4c2a8d6f0b1e3a5c7d9f2b4e6a80 --key tidegate --reason \"somebody else pushed\""
)]
struct RestoreArgs {
    /// The commit whose record is right: 40 hex digits
    #[arg(value_name = "COMMIT")]
    commit: CommitId,
    #[command(flatten)]
    vouch: VouchArgs,
}

/// What it takes to vouch for a record.
#[derive(Debug, Args)]
struct VouchArgs {
    /// The private key: the installation's own, or another whose public key is in spec.signing.trusted
    #[arg(long, value_name = "FILE", env = "TIDEGATE_SIGNING_KEY")]
    key: PathBuf,
    /// Why, for those who read the history
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Who decides, as "Name <mail>". Default: user.name and user.email of the clone
    #[arg(long, value_name = "PERSON", env = "TIDEGATE_AUTHOR", value_parser = person)]
    author: Option<Person>,
    /// Does not ask first
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    repository: RepositoryArgs,
}

/// Checks, accepts or brings back.
pub(super) async fn command(args: StateArgs, screen: &Screen) -> Result<Exit, Failure> {
    match args.act {
        Act::Verify(args) => verify(&args, screen).await,
        Act::Adopt(AdoptArgs { vouch }) => vouched(&vouch, None, screen).await,
        Act::Restore(RestoreArgs { commit, vouch }) => vouched(&vouch, Some(&commit), screen).await,
    }
}

/// What `verify` found.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SealsView {
    branch: String,
    tip: CommitId,
    trusted: usize,
    /// The commit with which a person accepted all before it.
    accepted_by: Option<CommitId>,
    commits: Vec<SealView>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SealView {
    commit: CommitId,
    time: String,
    verdict: &'static str,
    /// The fingerprint of the key that has signed it.
    key: Option<String>,
    subject: String,
    #[serde(skip)]
    told: String,
}

impl From<&Sealed> for SealView {
    fn from(sealed: &Sealed) -> Self {
        let (verdict, key) = match &sealed.verdict {
            SignatureVerdict::Trusted(key) => ("trusted", Some(key)),
            SignatureVerdict::Foreign(key) => ("foreign", Some(key)),
            SignatureVerdict::Unsigned => ("unsigned", None),
            SignatureVerdict::Void(_) => ("void", None),
        };
        Self {
            commit: sealed.commit.clone(),
            time: sealed.time.format("%Y-%m-%dT%H:%M:%SZ").to_string(),
            verdict,
            key: key.map(PublicKey::fingerprint),
            subject: sealed.subject.clone(),
            told: sealed.verdict.to_string(),
        }
    }
}

async fn verify(args: &VerifyArgs, screen: &Screen) -> Result<Exit, Failure> {
    let keys = trusted(&args.trusted)?;
    let repository = Repository::open(&args.repository, Access::Read).await?;
    let tip = repository.fetch_state().await?;
    let sealed = repository.store.sealed(&tip, &keys).await?;
    let view = view(branch::state_branch(&repository.instance), tip, &sealed, args.all);
    screen.show(&view, text)?;
    Ok(if sealed.iter().all(Sealed::is_trusted) { Exit::Done } else { Exit::Findings })
}

/// What is shown of the commits that were looked at, newest first.
pub(super) fn view(branch: String, tip: CommitId, sealed: &[Sealed], all: bool) -> SealsView {
    let good = sealed.iter().filter(|one| one.is_trusted());
    let accepted_by = good.clone().find(|one| one.adopts).map(|one| one.commit.clone());
    let shown = sealed.iter().filter(|one| all || !one.is_trusted());
    SealsView { branch, tip, trusted: good.count(), accepted_by, commits: shown.map(SealView::from).collect() }
}

/// The same for people.
pub(super) fn text(view: &SealsView, ink: Ink) -> String {
    let mut out = String::new();
    if !view.commits.is_empty() {
        let mut table = Table::new(&["COMMIT", "TIME", "VERDICT", "SUBJECT"]);
        for one in &view.commits {
            let paint: Paint = if one.verdict == "trusted" { Ink::good } else { Ink::bad };
            let commit = (one.commit.to_string(), None);
            table.row(vec![
                commit,
                (one.time.clone(), None),
                (one.told.clone(), Some(paint)),
                (one.subject.clone(), None),
            ]);
        }
        out.push_str(&table.print(ink));
        out.push('\n');
    }
    let wrong = view.commits.iter().filter(|one| one.verdict != "trusted").count();
    let SealsView { branch, tip, trusted, accepted_by, commits: _ } = view;
    let counted = match wrong {
        0 => format!("{branch} at {tip}: all {trusted} commits are signed by trusted keys"),
        _ => format!("{branch} at {tip}: {wrong} of {} commits are not signed by a trusted key", wrong + trusted),
    };
    out.push_str(&counted);
    if let Some(commit) = accepted_by {
        out.push_str(&format!("; what lies before {commit} was accepted with it"));
    }
    out.push('\n');
    if wrong > 0 {
        out.push_str(
            "A controller with spec.signing holds every rollout. Bring the newest trusted record back with `tidegate state \
             restore COMMIT`, or accept this one with `tidegate state adopt`.\n",
        );
    }
    out
}

/// The public keys of these files.
fn trusted(files: &[PathBuf]) -> Result<Keys, Failure> {
    let mut keys = BTreeSet::new();
    for file in files {
        let text = std::fs::read_to_string(file).map_err(|error| unreadable(file, &error))?;
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
        for (n, line) in lines {
            let key = line.parse::<PublicKey>();
            keys.insert(key.map_err(|error| Failure::usage(format!("{}:{}: {error}", file.display(), n + 1)))?);
        }
    }
    Ok(Arc::new(keys))
}

fn unreadable(file: &Path, why: &dyn std::fmt::Display) -> Failure {
    Failure::usage(format!("cannot use the key in {}: {why}", file.display()))
}

/// Writes a commit that vouches for the record: as it stands, or as `of` had it.
async fn vouched(args: &VouchArgs, of: Option<&CommitId>, screen: &Screen) -> Result<Exit, Failure> {
    if !args.yes {
        screen.can_ask()?;
    }
    let bytes = std::fs::read(&args.key).map(Zeroizing::new).map_err(|error| unreadable(&args.key, &error))?;
    let key = Arc::new(SigningKey::parse(&bytes).map_err(|error| unreadable(&args.key, &error))?);
    let repository = Repository::open(&args.repository, Access::Write).await?;
    let author = args.author.clone().or_else(|| repository.person()).ok_or_else(super::decide::nobody)?;
    let tip = repository.fetch_state().await?;
    let branch = named(&branch::state_branch(&repository.instance))?;
    let subject = match of {
        Some(of) => format!("the record is again as in {of}"),
        None => format!("the record is accepted as it stands at {tip}"),
    };
    if !args.yes && !screen.agreed(&format!("{} is at {tip}. Sign: {subject}?", branch.short()))? {
        return Err(Failure::failed("nothing was written"));
    }
    let body = args.reason.clone().map_or(String::new(), |reason| format!("{}\n", crate::record::text::plain(&reason)));
    let draft =
        CommitDraft { parent: None, edits: BTreeMap::new(), subject: subject.clone(), body, author, time: now() };
    let commit = repository.store.vouch(draft, &tip, of, Arc::clone(&key)).await?;
    match repository.store.push(&branch, Some(&tip), &commit, None).await? {
        Pushed::Done { .. } => {
            let key = key.public().fingerprint();
            screen.print(&format!("{} is at {commit}, signed by {key}: {subject}\n", branch.short()))?;
            Ok(Exit::Done)
        }
        Pushed::Raced { .. } | Pushed::SourceMoved { .. } => Err(Failure::failed(format!(
            "{} moved while this was written; nothing was done. Look at it again.",
            branch.short()
        ))),
        Pushed::Rejected { why } => Err(Failure::failed(format!(
            "{} takes no push from you: {why}\nPush as the account of the controller (--credentials-file).",
            branch.short()
        ))),
    }
}

#[cfg(test)]
mod tests;
