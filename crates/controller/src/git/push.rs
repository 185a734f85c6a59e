//! Compare-and-swap pushes: a branch moves only from the tip that the caller planned from.

use super::commit::commit_id;
use super::fault_injection::{RemoteCall, RemoteFault};
use super::ref_list::Asked;
use super::repo::{Remote, known, remember};
use super::transport::Operation;
use super::{GitError, RefName, Store, oid};
use crate::manifest::ids::CommitId;
use crate::record::text::plain;
use crate::rules::{Rule, holds};
use git2::{Direction, ErrorCode, Oid, PushOptions, RemoteCallbacks, Repository};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// What became of a push that the server answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pushed {
    /// The branch is where it was sent to.
    Done {
        /// The tips of other branches that the cache has, as the same connection saw them just before.
        others: BTreeMap<RefName, CommitId>,
    },
    /// The branch was not where it was expected. Nothing changed; observe again.
    Raced {
        /// Where it was; `None` if it did not exist, or if only the server's refusal tells of the race.
        found: Option<CommitId>,
    },
    /// The branch that the caller made its plan from has moved. Nothing was sent; observe again.
    SourceMoved {
        /// Where it is now; `None` if it is gone.
        found: Option<CommitId>,
    },
    /// The server does not allow it: a hook, a protected branch. Nothing changed.
    Rejected {
        /// In the server's words, escaped.
        why: String,
    },
}

/// One branch from one tip to another.
pub(super) struct Swap {
    pub(super) branch: RefName,
    pub(super) expected: Option<CommitId>,
    pub(super) new: Option<CommitId>,
    unless_moved: Option<(RefName, CommitId)>,
    pub(super) fate: RemoteFault,
}

impl Store {
    /// Moves `branch` from `expected` (`None`: it must not exist) to `new`, if the advertisement of this very connection
    /// shows it there, and `unless_moved` where the caller says. Never forces: `new` must descend from `expected`.
    ///
    /// # Errors
    /// When the outcome is not known or nothing was sent: `Away` (also if the connection is lost after the server accepted),
    /// `Denied`, `Missing`, `Protocol`, `Limit`. Observe again, it may have happened.
    pub async fn push(
        &self,
        branch: &RefName,
        expected: Option<&CommitId>,
        new: &CommitId,
        unless_moved: Option<(&RefName, &CommitId)>,
    ) -> Result<Pushed, GitError> {
        self.swap(Swap {
            branch: branch.clone(),
            expected: expected.cloned(),
            new: Some(new.clone()),
            unless_moved: unless_moved.map(|(name, id)| (name.clone(), id.clone())),
            fate: self.fate(RemoteCall::Push(branch.clone())).await?,
        })
        .await
    }

    /// Deletes `branch` if it is at `expected`.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub async fn delete_branch(&self, branch: &RefName, expected: &CommitId) -> Result<Pushed, GitError> {
        let (branch, expected) = (branch.clone(), Some(expected.clone()));
        let fate = self.fate(RemoteCall::Push(branch.clone())).await?;
        self.swap(Swap { branch, expected, new: None, unless_moved: None, fate }).await
    }

    async fn swap(&self, swap: Swap) -> Result<Pushed, GitError> {
        self.on_cache(move |inner, repository| {
            if let Some(new) = &swap.new {
                repository.find_commit(oid(new.as_str())).map_err(|error| GitError::commit(new, error))?;
            }
            let pushed = match &inner.remote {
                Remote::Server(line) => {
                    let doing = format!("push {} to {}", swap.branch, inner.config.url);
                    let bytes = inner.config.limits.advertisement_bytes;
                    // What the cache has of the server's need not be sent.
                    let known = known(repository)?.into_keys();
                    let source = swap.unless_moved.iter().map(|(name, _)| name.clone());
                    let refs = known.chain(source).chain([swap.branch.clone()]).map(|name| name.to_string()).collect();
                    let asked = Asked { refs, commits_only: false };
                    Operation::run(line, asked, [bytes, bytes], &doing, |url, _| to_server(repository, url, &swap))?
                }
                Remote::Local(local) => local.push(inner, repository, &swap)?,
            };
            if matches!(pushed, Pushed::Done { .. }) {
                remember(repository, &swap.branch, swap.new.as_ref().map(|id| oid(id.as_str())))?;
            }
            Ok(pushed)
        })
        .await
    }
}

impl Swap {
    /// Compares what a server shows with what the caller expects; takes our own branch out of `tips`.
    pub(super) fn refuse(&self, tips: &mut BTreeMap<RefName, CommitId>) -> Option<Pushed> {
        if let Some((source, expected)) = &self.unless_moved {
            let found = tips.get(source);
            if found != Some(expected) {
                return Some(Pushed::SourceMoved { found: found.cloned() });
            }
        }
        let found = tips.remove(&self.branch);
        (found != self.expected && holds(Rule::Swap)).then_some(Pushed::Raced { found })
    }
}

/// What the server says while it takes a push.
#[derive(Default)]
struct Report {
    /// For our branch; the text is why not.
    status: Option<Option<String>>,
    remarks: String,
    /// The old id that libgit2 was about to send, when it is not the one expected.
    unexpected: Option<Oid>,
}

fn to_server(repository: &Repository, url: &str, swap: &Swap) -> Result<Pushed, git2::Error> {
    let mut remote = repository.remote_anonymous(url)?;
    remote.connect(Direction::Push)?;
    let mut tips = BTreeMap::new();
    for head in remote.list()? {
        tips.extend(head.name().parse().ok().map(|name: RefName| (name, commit_id(head.oid()))));
    }
    if let Some(refused) = swap.refuse(&mut tips) {
        remote.disconnect()?;
        return Ok(refused);
    }
    let report = RefCell::new(Report::default());
    let expected = swap.expected.as_ref().map_or(Oid::ZERO_SHA1, |id| oid(id.as_str()));
    let mut callbacks = RemoteCallbacks::new();
    // libgit2 sends the advertised id as the old one: here, and only here, it is certain what the server will compare with.
    callbacks.push_negotiation(|updates| match updates.iter().find(|update| update.src() != expected) {
        None => Ok(()),
        Some(update) => {
            report.borrow_mut().unexpected = Some(update.src());
            Err(git2::Error::from_str("the branch is not where it was expected"))
        }
    });
    callbacks.push_update_reference(|_, why| {
        report.borrow_mut().status = Some(why.map(str::to_owned));
        Ok(())
    });
    callbacks.sideband_progress(|text| {
        let remarks = &mut report.borrow_mut().remarks;
        if remarks.len() < 4_096 {
            remarks.push_str(&String::from_utf8_lossy(text));
        }
        true
    });
    let mut options = PushOptions::new();
    options.remote_callbacks(callbacks);
    let spec = format!("{}:{}", swap.new.as_ref().map_or("", CommitId::as_str), swap.branch);
    let result = remote.push(&[spec], Some(&mut options));
    drop((options, remote));
    outcome(result, report.into_inner(), tips)
}

fn outcome(
    result: Result<(), git2::Error>,
    report: Report,
    others: BTreeMap<RefName, CommitId>,
) -> Result<Pushed, git2::Error> {
    let Report { status, remarks, unexpected } = report;
    if let Some(found) = unexpected {
        return Ok(Pushed::Raced { found: (!found.is_zero()).then(|| commit_id(found)) });
    }
    match (status, result) {
        (Some(Some(why)), _) => Ok(refusal(&why, &remarks)),
        (_, Err(error)) if error.code() == ErrorCode::NotFastForward => {
            Ok(Pushed::Rejected { why: "the new commit does not descend from the old one".to_owned() })
        }
        (_, Err(error)) if error.message().starts_with("unpacking the sent packfile failed") => {
            Ok(Pushed::Rejected { why: plain(&format!("the server could not unpack: {remarks}")) })
        }
        (_, Err(error)) => Err(error),
        (Some(None), Ok(())) => Ok(Pushed::Done { others }),
        (None, Ok(())) => Err(git2::Error::from_str("the server did not say what became of the branch")),
    }
}

/// Tells a lost race from a refusal by the server's words: those of Git (`receive-pack`, `refs/files-backend`) and of the
/// hosts that speak like it.
fn refusal(why: &str, remarks: &str) -> Pushed {
    const RACES: [&str; 9] = [
        "non-fast-forward",
        "fetch first",
        "failed to lock",
        "cannot lock ref",
        "incorrect old value",
        "reference already exists",
        "unable to resolve reference",
        "but expected",
        "stale info",
    ];
    let raced = |text: &str| RACES.iter().any(|race| text.contains(race));
    let declined = ["hook", "declined", "protected"].iter().any(|word| why.contains(word));
    if !declined && (raced(why) || raced(remarks)) {
        return Pushed::Raced { found: None };
    }
    Pushed::Rejected { why: plain(&format!("{why}: {}", remarks.trim())) }
}
