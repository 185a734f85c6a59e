//! Makes and withdraws the branches by which people are asked. Whether there is a reason to ask is for the caller to know.
//!
//! A request's branch is made only if it is absent, and deleted only from the head that was seen; nothing here ever moves
//! a branch that people work on.

use super::branch::{Advance, Deletion, RevertRequest, decisions_branch};
use crate::git::{CommitDraft, Edit, GitError, Merge, Person, Pushed, RefName, Store, merge_files};
use crate::manifest::desired::Set;
use crate::manifest::files::{Entry, Files, InvalidPath, RepoPath};
use crate::manifest::ids::{BlobId, CommitId, InstanceName, InvalidId};
use crate::manifest::tracked;
use crate::record::state::Time;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What came of asking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestOutcome {
    /// The branch was made, with this head.
    Open(CommitId),
    /// There is a branch of that name already, with this head. Whether it asks the same has to be read.
    There(CommitId),
    /// There is nothing to ask: main has it all already.
    Nothing,
    /// Undoing the change meets other changes in these files; nothing was pushed.
    Conflict(BTreeSet<RepoPath>),
    /// The server does not allow the branch.
    Rejected(String),
    /// The branch is being made or deleted by somebody else: look again.
    Raced,
}

/// Why a request could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// Git.
    #[error(transparent)]
    Git(#[from] GitError),
    /// Its branch would have no valid name.
    #[error(transparent)]
    Branch(#[from] InvalidId),
    /// A file of the set would lie outside of the repository.
    #[error(transparent)]
    Path(#[from] InvalidPath),
}

/// Who signs a request, and when.
#[derive(Debug, Clone)]
pub struct Signature {
    /// Who.
    pub person: Person,
    /// When.
    pub time: Time,
}

/// What people find on the decisions branch when it is new.
const ABOUT: &str = "# Decisions\n\n\
    People's words about rollouts, one file for each. They come here by merging the requests of tidegate, or by\n\
    `tidegate approve` and the like. Protect this branch: whoever may write to it may decide.\n";

/// Begins the decisions branch with a commit that says nothing about any rollout: a pull request needs a branch to lead to.
/// Never done once there is one.
///
/// # Errors
/// As [`advance`].
pub async fn begin(
    store: &Store,
    instance: &InstanceName,
    signature: Signature,
) -> Result<RequestOutcome, RequestError> {
    let readme = "README.md".parse()?;
    let edits = BTreeMap::from([(readme, Edit::Write(ABOUT.as_bytes().into()))]);
    open(store, &decisions_branch(instance), None, edits, "Begin with no decisions", signature).await
}

/// Asks to let a run go on: one commit on top of `decisions` (the first one of that branch if it does not exist yet) that
/// adds exactly one file.
///
/// # Errors
/// When Git fails; it is not known then whether the branch was made.
pub async fn advance(
    store: &Store,
    decisions: Option<&CommitId>,
    request: &Advance<'_>,
    signature: Signature,
) -> Result<RequestOutcome, RequestError> {
    let (path, text) = request.file();
    let edits = BTreeMap::from([(path, Edit::Write(text.into_bytes().into()))]);
    let name = request.head().branch(request.instance);
    open(store, &name, decisions, edits, &request.message(), signature).await
}

/// Asks to let objects go: one commit on top of `decisions`, as [`advance`] makes it.
///
/// # Errors
/// As [`advance`].
pub async fn delete(
    store: &Store,
    decisions: Option<&CommitId>,
    request: &Deletion<'_>,
    signature: Signature,
) -> Result<RequestOutcome, RequestError> {
    let (path, text) = request.file();
    let edits = BTreeMap::from([(path, Edit::Write(text.into_bytes().into()))]);
    let name = request.head().branch(request.instance);
    open(store, &name, decisions, edits, &request.message(), signature).await
}

/// Asks to undo a run's change on main, where `base` is the set that the run brought, `theirs` the one that serves and
/// `file` the rollout's file: one commit on top of `main`.
///
/// # Errors
/// As [`advance`].
pub async fn revert(
    store: &Store,
    main: &CommitId,
    file: &RepoPath,
    [base, theirs]: [&Set; 2],
    request: &RevertRequest<'_>,
    signature: Signature,
) -> Result<RequestOutcome, RequestError> {
    match undoing(store, main, file, [base, theirs]).await? {
        Merge::Conflict(paths) => Ok(RequestOutcome::Conflict(paths)),
        Merge::Merged(edits) if edits.is_empty() => Ok(RequestOutcome::Nothing),
        Merge::Merged(edits) => {
            let name = request.head().branch(request.instance);
            open(store, &name, Some(main), edits, &request.message(), signature).await
        }
    }
}

/// What undoing that change comes to on top of a commit of main: all that a request for it may change there.
///
/// # Errors
/// As [`advance`].
pub async fn undoing(
    store: &Store,
    main: &CommitId,
    file: &RepoPath,
    [base, theirs]: [&Set; 2],
) -> Result<Merge, RequestError> {
    let (base, theirs) = (on_main(file, base)?, on_main(file, theirs)?);
    let mut ours = store.files(main, file.parent().as_ref()).await?;
    ours.retain(|path, _| base.contains_key(path) || theirs.contains_key(path));
    let mut merge = merge_files(&base, &ours, &theirs)?;
    if let Merge::Merged(edits) = &mut merge {
        // What others have undone already.
        edits.retain(|path, edit| match (ours.get(path), edit) {
            (Some(Entry::File { bytes, .. }), Edit::Write(new)) => bytes != new,
            _ => true,
        });
    }
    Ok(merge)
}

/// Deletes a request's branch, if its head is the one that was seen.
///
/// # Errors
/// As [`advance`].
pub async fn withdraw(store: &Store, name: &str, head: &CommitId) -> Result<Pushed, RequestError> {
    Ok(store.delete_branch(&RefName::branch(name)?, head).await?)
}

/// The files of a set where they lie on main.
fn on_main(file: &RepoPath, set: &Set) -> Result<Files, InvalidPath> {
    let entry = |(path, (blob, bytes)): (&RepoPath, &(BlobId, Arc<[u8]>))| {
        Ok((file.beside(path.as_str())?, Entry::File { blob: blob.clone(), bytes: bytes.clone() }))
    };
    set.files.iter().filter(|(path, _)| path.as_str() != tracked::FILE).map(entry).collect()
}

async fn open(
    store: &Store,
    name: &str,
    parent: Option<&CommitId>,
    edits: BTreeMap<RepoPath, Edit>,
    message: &str,
    Signature { person, time }: Signature,
) -> Result<RequestOutcome, RequestError> {
    let name = RefName::branch(name)?;
    let (subject, body) = message.split_once("\n\n").unwrap_or((message, ""));
    let (subject, body) = (subject.to_owned(), body.to_owned());
    let head =
        store.commit(CommitDraft { parent: parent.cloned(), edits, subject, body, author: person, time }).await?;
    Ok(match store.push(&name, None, &head, None).await? {
        Pushed::Done { .. } => RequestOutcome::Open(head),
        Pushed::Raced { found: Some(found) } => RequestOutcome::There(found),
        Pushed::Raced { found: None } | Pushed::SourceMoved { .. } => RequestOutcome::Raced,
        Pushed::Rejected { why } => RequestOutcome::Rejected(why),
    })
}
