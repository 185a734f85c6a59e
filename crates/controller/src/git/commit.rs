//! Commits made from edits: blobs, then trees from the leaves up, then the commit; no index, no worktree.

use super::keygen::Keygen;
use super::{GitError, Store, oid, pack, tree};
use crate::manifest::files::RepoPath;
use crate::manifest::ids::{BlobId, CommitId};
use crate::record::state;
use crate::sign::SigningKey;
use git2::{FileMode, ObjectType, Oid, Repository, Signature, Time, Tree};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A commit to be made.
#[derive(Debug, Clone)]
pub struct CommitDraft {
    /// The commit that it follows; none for the first one of a branch.
    pub parent: Option<CommitId>,
    /// What it changes in its parent's tree. Removals come before writes, so that a directory can be replaced.
    pub edits: BTreeMap<RepoPath, Edit>,
    /// The first line of its message.
    pub subject: String,
    /// The rest of its message, trailers included; may be empty.
    pub body: String,
    /// Author and committer.
    pub author: Person,
    /// Author's and committer's time, to the second.
    pub time: state::Time,
}

/// What signs a commit.
#[derive(Clone)]
pub(super) enum Signer {
    /// The key of an installation.
    Key(Arc<SigningKey>),
    /// A person's own program.
    Person(Keygen),
}

impl Signer {
    fn sign(&self, content: &[u8]) -> Result<String, GitError> {
        match self {
            Self::Key(key) => Ok(key.sign(content)),
            Self::Person(keygen) => keygen.sign(content),
        }
    }
}

/// Who made a commit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Person {
    /// The name.
    pub name: String,
    /// The address.
    pub email: String,
}

impl fmt::Display for Person {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} <{}>", self.name, self.email)
    }
}

/// What happens to one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// A file with this content.
    Write(Arc<[u8]>),
    /// A file with the content of a blob that is in the cache.
    Blob(BlobId),
    /// No file. It need not be there; a directory is an error.
    Remove,
    /// Nothing below this directory but what other edits put there. It need not be there.
    RemoveDir,
}

impl Store {
    /// Makes a commit in the cache. The same draft gives the same commit.
    ///
    /// # Errors
    /// `Missing` for an unknown parent or blob, `BadTree` for edits that contradict each other, `Cache` when it cannot be
    /// written.
    pub async fn commit(&self, draft: CommitDraft) -> Result<CommitId, GitError> {
        self.on_cache(move |_, repository| write(repository, &draft, None)).await
    }

    /// The same, signed.
    ///
    /// # Errors
    /// As [`Self::commit`].
    pub async fn commit_signed(&self, draft: CommitDraft, key: Arc<SigningKey>) -> Result<CommitId, GitError> {
        self.on_cache(move |_, repository| write(repository, &draft, Some(&Signer::Key(key)))).await
    }

    /// The same, signed by a person, who may be asked for it.
    ///
    /// # Errors
    /// As [`Self::commit`], and `Config` when it is not signed.
    pub async fn commit_as(&self, draft: CommitDraft, keygen: Keygen) -> Result<CommitId, GitError> {
        self.on_cache(move |_, repository| write(repository, &draft, Some(&Signer::Person(keygen)))).await
    }

    /// Makes a commit of the record: signed, if the installation has a key.
    ///
    /// # Errors
    /// As [`Self::commit`].
    pub async fn commit_record(&self, draft: CommitDraft) -> Result<CommitId, GitError> {
        match &self.inner.config.signing {
            Some(signing) => self.commit_signed(draft, Arc::clone(&signing.key)).await,
            None => self.commit(draft).await,
        }
    }
}

/// From so many edits on, the objects of a commit become one pack.
const MANY: usize = 64;

fn write(repository: &Repository, draft: &CommitDraft, signer: Option<&Signer>) -> Result<CommitId, GitError> {
    if draft.edits.len() < MANY {
        return objects(repository, draft, signer, &mut Vec::new()).map(commit_id);
    }
    let failed = |error| GitError::local("write the pack of a commit", error);
    let odb = repository.odb().map_err(failed)?;
    // What is written goes to the backend with the highest priority.
    let memory = odb.add_new_mempack_backend(i32::MAX).map_err(failed)?;
    let mut made = Vec::new();
    let id = objects(repository, draft, signer, &mut made)?;
    pack::write(repository, &made, repository).map_err(failed)?;
    memory.reset().map_err(failed)?;
    Ok(commit_id(id))
}

/// Writes the objects of a commit, notes their ids in `made`, and returns the commit's.
fn objects(
    repository: &Repository,
    draft: &CommitDraft,
    signer: Option<&Signer>,
    made: &mut Vec<Oid>,
) -> Result<Oid, GitError> {
    let CommitDraft { parent, edits, subject: _, body: _, author: _, time: _ } = draft;
    let failed = |error| GitError::local("write a commit", error);
    let (parents, base) = match parent {
        Some(id) => {
            let commit = repository.find_commit(oid(id.as_str())).map_err(|error| GitError::commit(id, error))?;
            (vec![commit], Some(tree::root(repository, id)?))
        }
        None => (Vec::new(), None),
    };
    let edits: Vec<(&str, &Edit)> = edits.iter().map(|(path, edit)| (path.as_str(), edit)).collect();
    let root = match subtree(repository, base.as_ref(), "", &edits, made)? {
        Some(id) => id,
        None => {
            let id = repository.treebuilder(None).and_then(|empty| empty.write()).map_err(failed)?;
            made.push(id);
            id
        }
    };
    let root = repository.find_tree(root).map_err(failed)?;
    let parents: Vec<&git2::Commit<'_>> = parents.iter().collect();
    let id = seal(repository, draft, &root, &parents, signer)?;
    made.push(id);
    Ok(id)
}

/// Writes the commit itself, of a tree that is there.
pub(super) fn seal(
    repository: &Repository,
    draft: &CommitDraft,
    root: &Tree<'_>,
    parents: &[&git2::Commit<'_>],
    signer: Option<&Signer>,
) -> Result<Oid, GitError> {
    let CommitDraft { parent: _, edits: _, subject, body, author, time } = draft;
    let failed = |error| GitError::local("write a commit", error);
    let author = Signature::new(&author.name, &author.email, &Time::new(time.timestamp(), 0)).map_err(failed)?;
    let subject = subject.split(char::is_control).collect::<Vec<_>>().join(" ");
    let message = if body.is_empty() { format!("{subject}\n") } else { format!("{subject}\n\n{}\n", body.trim_end()) };
    let Some(signer) = signer else {
        return repository.commit(None, &author, &author, &message, root, parents).map_err(failed);
    };
    let content = repository.commit_create_buffer(&author, &author, &message, root, parents).map_err(failed)?;
    let content = content.as_str().map_err(|_| failed(git2::Error::from_str("the commit is not UTF-8")))?;
    repository.commit_signed(content, &signer.sign(content.as_bytes())?, None).map_err(failed)
}

/// The id of a commit that libgit2 found.
pub(super) fn commit_id(id: Oid) -> CommitId {
    id.to_string().parse().expect("40 hex digits, because libgit2 was built for SHA-1")
}

/// Writes the tree that `edits` make of `base`; their paths are relative to it, `at` is where it lies. `None` when
/// nothing is left, as Git keeps no empty directories. The ids of what is written are noted in `made`.
fn subtree(
    repository: &Repository,
    base: Option<&Tree<'_>>,
    at: &str,
    edits: &[(&str, &Edit)],
    made: &mut Vec<Oid>,
) -> Result<Option<Oid>, GitError> {
    let failed = |error| GitError::local(&format!("write the directory {at:?}"), error);
    let mut builder = repository.treebuilder(base).map_err(failed)?;
    let mut below: BTreeMap<&str, Vec<(&str, &Edit)>> = BTreeMap::new();
    let mut here: BTreeMap<&str, &Edit> = BTreeMap::new();
    for &(path, edit) in edits {
        match path.split_once('/') {
            Some((name, rest)) => below.entry(name).or_default().push((rest, edit)),
            None => drop(here.insert(path, edit)),
        }
    }
    for (&name, &edit) in &here {
        let path = format!("{at}{name}");
        let kind = builder.get(name).map_err(failed)?.map(|old| (old.kind(), old.filemode()));
        match content(repository, edit, &path, made)? {
            Some(_) if below.contains_key(name) => {
                return Err(GitError::BadTree { path, why: "the edits make it a file and a directory" });
            }
            Some(id) => {
                let executable = kind.is_some_and(|(_, mode)| mode == i32::from(FileMode::BlobExecutable));
                let mode = if executable { FileMode::BlobExecutable } else { FileMode::Blob };
                drop(builder.insert(name, id, mode.into()).map_err(failed)?);
            }
            None if *edit == Edit::Remove && matches!(kind, Some((Some(ObjectType::Tree), _))) => {
                return Err(GitError::BadTree { path, why: "the edits remove a file, but it is a directory" });
            }
            None if kind.is_some() => builder.remove(name).map_err(failed)?,
            None => {}
        }
    }
    for (name, edits) in below {
        let old =
            builder.get(name).map_err(failed)?.filter(|old| old.kind() == Some(ObjectType::Tree)).map(|old| old.id());
        let old = old.map(|id| repository.find_tree(id)).transpose().map_err(failed)?;
        match subtree(repository, old.as_ref(), &format!("{at}{name}/"), &edits, made)? {
            Some(id) => drop(builder.insert(name, id, FileMode::Tree.into()).map_err(failed)?),
            None if old.is_some() => builder.remove(name).map_err(failed)?,
            None => {}
        }
    }
    if builder.is_empty() {
        return Ok(None);
    }
    let id = builder.write().map_err(failed)?;
    made.push(id);
    Ok(Some(id))
}

/// The blob that an edit puts at its path; `None` for a removal.
fn content(repository: &Repository, edit: &Edit, path: &str, made: &mut Vec<Oid>) -> Result<Option<Oid>, GitError> {
    let failed = |error| GitError::local(&format!("write the file {path}"), error);
    match edit {
        Edit::Write(bytes) => {
            let id = repository.blob(bytes).map_err(failed)?;
            made.push(id);
            Ok(Some(id))
        }
        Edit::Blob(id) => match repository.find_blob(oid(id.as_str())) {
            Ok(blob) => Ok(Some(blob.id())),
            Err(error) if error.code() == git2::ErrorCode::NotFound => {
                Err(GitError::Missing(format!("blob {id} for {path} in the cache")))
            }
            Err(error) => Err(failed(error)),
        },
        Edit::Remove | Edit::RemoveDir => Ok(None),
    }
}
