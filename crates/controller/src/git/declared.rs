//! What of a repository is read as what people want: the policy, and the manifests in the directories that it gives to tenants.
//! What lies beside them may be of any size.

use super::remote::RemoteLimits;
use super::{GitError, Store, tree};
use crate::manifest::files::{Entry, Files, RepoPath};
use crate::manifest::gathered::{Gathered, Most};
use crate::manifest::ids::CommitId;
use crate::manifest::load::is_rollout_file;
use crate::manifest::policy;
use git2::{Repository, Tree, TreeEntry};
use std::collections::BTreeSet;

/// How many times as many names are looked at for a file that was moved out of the tenants' directories.
const NAMES: usize = 20;

/// What a commit declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// The policy and the manifests. A tenant's directory that cannot be read, or is too much, is one entry.
    pub files: Files,
    /// Equal ids mean equal files.
    pub id: String,
}

impl Store {
    /// What a commit declares, and the files `also`, wherever they lie; where one of those is gone, also the files of rollouts that lie in
    /// no tenant's directory, among which it may be. `None` if it has the id that is `known`.
    ///
    /// # Errors
    /// `Missing` when the commit is not there; what is wrong with the root, or the policy, if it is of content
    /// ([`GitError::is_of_content`]).
    pub async fn declared(
        &self,
        commit: &CommitId,
        also: &BTreeSet<RepoPath>,
        known: Option<&str>,
    ) -> Result<Option<Declared>, GitError> {
        let (commit, also, known) = (commit.clone(), also.clone(), known.map(str::to_owned));
        self.on_cache(move |inner, repository| {
            let root = tree::root(repository, &commit)?;
            read(repository, &root, &also, known.as_deref(), &inner.config.limits)
        })
        .await
    }
}

/// The same of a tree.
pub(super) fn read(
    repository: &Repository,
    root: &Tree<'_>,
    also: &BTreeSet<RepoPath>,
    known: Option<&str>,
    limits: &RemoteLimits,
) -> Result<Option<Declared>, GitError> {
    let (policy, directories) = policy_of(repository, root, limits)?;
    let is_outside = |path: &RepoPath| !directories.iter().any(|directory| path.is_within(directory));
    let mut lost = false;
    let mut beside = Vec::new();
    for path in also {
        match tree::entry(root, path)? {
            None => lost = true,
            Some(found) if is_outside(path) => beside.push((path.clone(), found)),
            Some(_) => {}
        }
    }
    let places: Vec<_> = directories.iter().map(|path| (path.clone(), place(repository, root, path))).collect();
    let policy_file = tree::entry(root, &policy_path())?;
    // Without directories nobody knows where rollouts may lie.
    lost |= directories.is_empty();
    let is_told = |found: Option<&TreeEntry<'_>>| found.map(|found| (found.id(), found.filemode_raw()));
    let told = places.iter().map(|(path, found)| (path, found.as_ref().map(|found| is_told(found.as_ref())).ok()));
    let told = told.chain(beside.iter().map(|(path, found)| (path, Some(is_told(Some(found))))));
    let mut id = format!("{:?}", is_told(policy_file.as_ref()));
    for (path, at) in told {
        // What is not one thing there is told apart by the whole.
        lost |= at.is_none();
        id.push_str(&format!(" {path} {at:?}"));
    }
    if lost {
        id.push_str(&format!(" {}", root.id()));
    }
    if known == Some(id.as_str()) {
        return Ok(None);
    }
    let most = Most { entries: limits.entries, tenant_bytes: limits.tenant_bytes, bytes: limits.fetch_bytes };
    let mut gathered = Gathered::new(most);
    for (path, found) in places {
        match found.and_then(|found| found.map(|found| directory(repository, &found, &path, limits)).transpose()) {
            Ok(None) => {}
            Ok(Some((files, bytes))) => gathered.add(path, files, bytes),
            Err(error) if error.is_of_content() => gathered.refuse(path, error.to_string()),
            Err(error) => return Err(error),
        }
    }
    if lost {
        beside.extend(strays(repository, root, &directories, limits)?);
    }
    let mut files = gathered.finish();
    files.extend(policy.map(|policy| (policy_path(), policy)));
    let mut left = limits.tenant_bytes;
    for (path, found) in beside {
        let entry = match tree::read_one(repository, &found, &path, &RemoteLimits { fetch_bytes: left, ..*limits }) {
            Err(error) if error.is_of_content() => Some(Entry::Unread { why: error.to_string().into() }),
            read => read?,
        };
        if let Some(Entry::File { bytes, .. }) = &entry {
            left = left.saturating_sub(bytes.len() as u64);
        }
        files.extend(entry.map(|entry| (path, entry)));
    }
    Ok(Some(Declared { files, id }))
}

fn policy_path() -> RepoPath {
    policy::FILE.parse().expect("the name of the policy's file is a path")
}

/// The policy of a tree, and the directories that it gives to tenants.
pub(super) fn policy_of(
    repository: &Repository,
    root: &Tree<'_>,
    limits: &RemoteLimits,
) -> Result<(Option<Entry>, BTreeSet<RepoPath>), GitError> {
    let path = policy_path();
    let found = place(repository, root, &path)?;
    let policy = found.map(|found| tree::read_one(repository, &found, &path, limits)).transpose()?.flatten();
    let directories = match &policy {
        Some(Entry::File { bytes, .. }) => policy::directories(bytes),
        _ => BTreeSet::new(),
    };
    Ok((policy, directories))
}

/// What lies at a path, if each name on the way there is one that comes once.
fn place(repository: &Repository, root: &Tree<'_>, path: &RepoPath) -> Result<Option<TreeEntry<'static>>, GitError> {
    let (mut tree, mut at) = (root.clone(), String::new());
    let mut parts = path.as_str().split('/').peekable();
    while let Some(part) = parts.next() {
        let mut named = tree.iter().filter(|entry| entry.name_bytes() == part.as_bytes());
        let Some(found) = named.next().map(|entry| entry.to_owned()) else { return Ok(None) };
        at.push_str(part);
        if named.next().is_some() {
            return Err(GitError::BadTree { path: at, why: "the name comes twice" });
        }
        drop(named);
        if parts.peek().is_none() {
            return Ok(Some(found));
        }
        if found.filemode() != i32::from(git2::FileMode::Tree) {
            return Ok(None);
        }
        let below = repository.find_tree(found.id());
        tree = below.map_err(|error| GitError::local(&format!("read the directory {at}"), error))?;
        at.push('/');
    }
    Ok(None)
}

/// The manifests of a tenant's directory, and how many bytes they have.
fn directory(
    repository: &Repository,
    found: &TreeEntry<'_>,
    path: &RepoPath,
    limits: &RemoteLimits,
) -> Result<(Files, u64), GitError> {
    if found.filemode() != i32::from(git2::FileMode::Tree) {
        return Err(GitError::BadTree { path: path.to_string(), why: "it is no directory" });
    }
    let tree = repository.find_tree(found.id());
    let tree = tree.map_err(|error| GitError::local(&format!("read the directory {path}"), error))?;
    let limits = RemoteLimits { fetch_bytes: limits.tenant_bytes, ..*limits };
    tree::read_manifests(repository, &tree, &format!("{path}/"), &limits)
}

/// The files of rollouts that lie in no tenant's directory, found by their names alone. Beyond so many names nothing more is found: a
/// repository may be larger than that, and what is not found is taken for gone.
fn strays(
    repository: &Repository,
    root: &Tree<'_>,
    directories: &BTreeSet<RepoPath>,
    limits: &RemoteLimits,
) -> Result<Vec<(RepoPath, TreeEntry<'static>)>, GitError> {
    let (mut found, mut left) = (Vec::new(), limits.entries.saturating_mul(NAMES));
    let mut open = vec![(root.clone(), None::<RepoPath>)];
    while let Some((tree, at)) = open.pop() {
        let Some(less) = left.checked_sub(tree.len()) else { break };
        left = less;
        for entry in tree.iter() {
            let at = at.as_ref().map_or("", RepoPath::as_str);
            let Some(path) = tree::below(at, &entry).filter(|path| !directories.contains(path)) else { continue };
            if entry.filemode() == i32::from(git2::FileMode::Tree) {
                let tree = repository.find_tree(entry.id());
                let tree = tree.map_err(|error| GitError::local(&format!("read the directory {path}"), error))?;
                open.push((tree, Some(path)));
            } else if is_rollout_file(&path) {
                found.push((path, entry.to_owned()));
            }
        }
    }
    Ok(found)
}
