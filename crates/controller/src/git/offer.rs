//! What somebody offers for a branch, be it anybody on the host: read as hostile, in a cache of its own, and never merged
//! anywhere but in memory.

use super::authors::Changed;
use super::commit::commit_id;
use super::history::boundary;
use super::repo::Remote;
use super::{GitError, RefName, RemoteConfig, RemoteLimits, Sought, Store, declared, oid, tree};
use crate::manifest::files::{Files, RepoPath};
use crate::manifest::fleet;
use crate::manifest::ids::{BlobId, CommitId};
use crate::manifest::policy;
use git2::build::TreeUpdateBuilder;
use git2::{Commit, Delta, ErrorCode, FileMode, MergeOptions, Oid, Repository, Tree, TreeEntry};
use std::collections::{BTreeMap, BTreeSet};

/// How much of an offer is fetched beyond what the branch has, in bytes.
const FETCHED: u64 = 32 << 20;
/// How large a file may be that both have changed, in bytes: merging takes memory for each line.
const MERGED: u64 = 256 << 10;
/// How many offers may lie in the cache before they are forgotten.
const PACKS: usize = 4;
/// How much of what it changes is read, in bytes.
const CHANGED: u64 = 16 << 20;

/// What an offer would make of the branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergeResult {
    /// This tree.
    Tree(Files),
    /// Both have changed these.
    Conflict(BTreeSet<String>),
}

/// What the head of a branch changes, and on what it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposed {
    /// The commits that it follows.
    pub parents: Vec<CommitId>,
    /// What it changed against the first of them; none for what it took away.
    pub files: BTreeMap<RepoPath, Option<BlobId>>,
}

impl Store {
    /// Another cache of the same repository, beside ours: nothing that comes into it can be found in ours.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn aside(&self, name: &str) -> Result<Self, GitError> {
        let directory = self.inner.directory.with_file_name(name);
        let limits = RemoteLimits { packs: PACKS, ..self.inner.config.limits };
        Self::open(&directory, RemoteConfig { shallow: None, limits, ..self.inner.config.clone() })
    }

    /// Brings the commit that a ref of the host leads to into the cache. It is not remembered.
    ///
    /// # Errors
    /// As [`Store::fetch`]; `Limit` also when it is more than an offer may bring; `Missing` when the ref has moved.
    pub async fn fetch_offer(&self, reference: &str, head: &CommitId) -> Result<(), GitError> {
        let (reference, head) = (reference.to_owned(), head.clone());
        self.on_cache(move |inner, repository| {
            if repository.find_commit(oid(head.as_str())).is_ok() {
                return Ok(());
            }
            match &inner.remote {
                Remote::Server(line) => {
                    let limits = RemoteLimits {
                        fetch_bytes: FETCHED.min(inner.config.limits.fetch_bytes),
                        ..inner.config.limits
                    };
                    let spec = format!("+{reference}:refs/tidegate/offer");
                    inner.download_specs(line, repository, &[spec], 0, &limits)?;
                }
                Remote::Local(local) => local.fetch(repository, std::iter::once(&head))?,
            }
            commit(repository, &head).map(drop)
        })
        .await
    }

    /// Brings the head of a branch that anybody may write to into the cache, with the commits that it follows and without
    /// their past. It is not remembered.
    ///
    /// # Errors
    /// As [`Store::fetch`]; `Missing` when the branch has moved.
    pub async fn fetch_proposed(&self, branch: &RefName, head: &CommitId) -> Result<(), GitError> {
        // What was looked at before is tidied up by that, when it has become too much.
        self.fetch(&BTreeMap::new()).await?;
        let (branch, head) = (branch.clone(), head.clone());
        self.on_cache(move |inner, repository| {
            let known = repository.find_commit(oid(head.as_str())).is_ok();
            if known && !boundary(repository)?.contains(&oid(head.as_str())) {
                return Ok(());
            }
            match &inner.remote {
                Remote::Server(line) => {
                    let spec = format!("+{branch}:refs/tidegate/proposed");
                    inner.download_specs(line, repository, &[spec], 2, &inner.config.limits)?;
                }
                Remote::Local(local) => local.fetch(repository, std::iter::once(&head))?,
            }
            commit(repository, &head).map(drop)
        })
        .await
    }

    /// What a commit changes that anybody may have made.
    ///
    /// # Errors
    /// `BadTree` for a tree that Git would not check out, `Limit` for one that is too large; `Missing` when it, or a commit
    /// that it follows, is not in the cache.
    pub async fn proposed(&self, head: &CommitId) -> Result<Proposed, GitError> {
        let id = head.clone();
        let parents = self
            .on_cache(move |inner, repository| {
                let head = commit(repository, &id)?;
                let names = RemoteLimits { blob_bytes: 0, ..inner.config.limits };
                // Names alone, before anything else is done with trees that no Git would check out.
                let tree = head.tree().map_err(failed)?;
                match head.parents().next() {
                    None => drop(tree::read(repository, &tree, "", &names)?),
                    Some(parent) => {
                        let before = parent.tree().map_err(failed)?;
                        let mut left = names.entries;
                        unlike(repository, [&tree, &before], "", &names, &mut left)?;
                        unlike(repository, [&before, &tree], "", &names, &mut left)?;
                    }
                }
                Ok(head.parent_ids().map(commit_id).collect())
            })
            .await?;
        let Changed { merged: _, files } = self.changed(head).await?;
        Ok(Proposed { parents, files })
    }

    /// The paths that an offer changes against where it left the branch; none if it has no past in common with it.
    ///
    /// # Errors
    /// `BadTree` for a tree that Git would not check out, `Limit` for one that is too large, or changes too much; `Missing`
    /// when a commit is not in the cache.
    pub async fn offered(&self, branch: &CommitId, head: &CommitId) -> Result<Option<BTreeSet<RepoPath>>, GitError> {
        let (branch, head) = (branch.clone(), head.clone());
        self.on_cache(move |inner, repository| {
            let theirs = commit(repository, &head)?.tree().map_err(failed)?;
            let Some(base) = base(repository, &branch, &head)? else { return Ok(None) };
            let base = base.tree().map_err(failed)?;
            // Names alone: nothing else is done with a tree that no Git would check out.
            let names = RemoteLimits { blob_bytes: 0, ..inner.config.limits };
            let mut left = names.entries;
            unlike(repository, [&theirs, &base], "", &names, &mut left)?;
            let odb = repository.odb().map_err(failed)?;
            let diff = repository.diff_tree_to_tree(Some(&base), Some(&theirs), None).map_err(failed)?;
            let (mut paths, mut bytes) = (BTreeSet::new(), 0);
            for delta in diff.deltas() {
                let side = if delta.status() == Delta::Deleted { delta.old_file() } else { delta.new_file() };
                // What is larger is not read at all.
                let size = odb.read_header(side.id()).map_or(0, |(size, _)| size as u64);
                bytes += if size > inner.config.limits.blob_bytes { 0 } else { size };
                let path = String::from_utf8_lossy(side.path_bytes().unwrap_or_default()).parse();
                // A name that no path of ours can have is no manifest's.
                paths.extend(path.ok());
            }
            if bytes > CHANGED {
                let what = "what it changes, in bytes".to_owned();
                return Err(GitError::Limit { what, limit: CHANGED.to_string() });
            }
            Ok(Some(paths))
        })
        .await
    }

    /// What the branch would declare with an offer ([`Store::declared`]); what else they have is not merged. Renamed files are not
    /// followed. To be asked of what [`Store::offered`] has looked at.
    ///
    /// # Errors
    /// As [`Store::offered`].
    pub async fn merged(&self, branch: &CommitId, head: &CommitId, sought: &Sought) -> Result<MergeResult, GitError> {
        let (branch, head, sought) = (branch.clone(), head.clone(), sought.clone());
        self.on_cache(move |inner, repository| {
            let [ours, theirs] = [&branch, &head].map(|id| tree::root(repository, id));
            let base = base(repository, &branch, &head)?.map(|base| base.tree()).transpose().map_err(failed)?;
            let base = base.ok_or_else(|| GitError::Missing(format!("a commit that {head} shares with {branch}")))?;
            let [base, ours, theirs] = narrowed(repository, [base, ours?, theirs?], &sought, &inner.config.limits)?;
            let large = too_large(repository, &base, [&ours, &theirs])?;
            if !large.is_empty() {
                return Ok(MergeResult::Conflict(large));
            }
            let mut options = MergeOptions::new();
            options.find_renames(false);
            let mut index = repository.merge_trees(&base, &ours, &theirs, Some(&options)).map_err(failed)?;
            if index.has_conflicts() {
                let mut paths = BTreeSet::new();
                for conflict in index.conflicts().map_err(failed)? {
                    let conflict = conflict.map_err(failed)?;
                    let entry = conflict.our.or(conflict.their).or(conflict.ancestor);
                    paths.extend(entry.map(|entry| String::from_utf8_lossy(&entry.path).into_owned()));
                }
                return Ok(MergeResult::Conflict(paths));
            }
            let id = index.write_tree_to(repository).map_err(failed)?;
            let merged = repository.find_tree(id).map_err(failed)?;
            let declared = declared::read(repository, &merged, &sought, None, &inner.config.limits)?;
            Ok(MergeResult::Tree(declared.map(|declared| declared.files).unwrap_or_default()))
        })
        .await
    }
}

/// The same trees with nothing in them but what any of them declares: a merge looks at each entry.
fn narrowed<'r>(
    repository: &'r Repository,
    trees: [Tree<'r>; 3],
    sought: &Sought,
    limits: &RemoteLimits,
) -> Result<[Tree<'r>; 3], GitError> {
    let mut paths = sought.files.clone();
    for name in [policy::FILE, fleet::FILE] {
        paths.insert(name.parse().expect("the name of a file of operations is a path"));
    }
    for tree in &trees {
        paths.extend(declared::policy_of(repository, tree, limits)?.1);
    }
    let names = RemoteLimits { blob_bytes: 0, ..*limits };
    let narrow = |tree: Tree<'r>| {
        let mut update = TreeUpdateBuilder::new();
        let mut last: Option<&RepoPath> = None;
        for path in &paths {
            // What lies in another one comes with it.
            if last.is_some_and(|last| path.is_within(last)) {
                continue;
            }
            if let Some((found, mode)) = tree::entry(&tree, path)?.and_then(|found| Some((found.id(), mode(&found)?))) {
                update.upsert(path.as_str(), found, mode);
                last = Some(path);
            }
        }
        let empty = repository.treebuilder(None).and_then(|empty| repository.find_tree(empty.write()?));
        let made = empty.and_then(|empty| repository.find_tree(update.create_updated(repository, &empty)?));
        let made = made.map_err(failed)?;
        tree::read(repository, &made, "", &names)?;
        Ok(made)
    };
    let [base, ours, theirs] = trees.map(narrow);
    Ok([base?, ours?, theirs?])
}

fn mode(entry: &TreeEntry<'_>) -> Option<FileMode> {
    match entry.filemode() {
        0o040_000 => Some(FileMode::Tree),
        0o100_644 => Some(FileMode::Blob),
        0o100_755 => Some(FileMode::BlobExecutable),
        0o120_000 => Some(FileMode::Link),
        _ => None,
    }
}

/// Reads the names of what one tree has and the other does not: what both have is nobody's doing here.
fn unlike(
    repository: &Repository,
    [one, other]: [&Tree<'_>; 2],
    at: &str,
    limits: &RemoteLimits,
    left: &mut usize,
) -> Result<(), GitError> {
    if at.split('/').count() > limits.depth {
        return Err(tree::limit("the depth of what it changes", limits.depth));
    }
    *left =
        left.checked_sub(one.len()).ok_or_else(|| tree::limit("the number of entries in the tree", limits.entries))?;
    tree::check_names(one, at)?;
    let find = |id| repository.find_tree(id).map_err(failed);
    let is_tree = |entry: &TreeEntry<'_>| entry.filemode() == i32::from(FileMode::Tree);
    for entry in one.iter().filter(is_tree) {
        let there = entry.name().ok().and_then(|name| other.get_name(name)).filter(is_tree);
        let below = format!("{at}{}/", String::from_utf8_lossy(entry.name_bytes()));
        match there {
            Some(there) if there.id() == entry.id() => {}
            Some(there) => unlike(repository, [&find(entry.id())?, &find(there.id())?], &below, limits, left)?,
            None => drop(tree::read(repository, &find(entry.id())?, &below, limits)?),
        }
    }
    Ok(())
}

fn failed(error: git2::Error) -> GitError {
    GitError::local("look at what is offered", error)
}

/// The files that both have changed and that are too large to be merged.
fn too_large(
    repository: &Repository,
    base: &Tree<'_>,
    [ours, theirs]: [&Tree<'_>; 2],
) -> Result<BTreeSet<String>, GitError> {
    let odb = repository.odb().map_err(failed)?;
    let diff = repository.diff_tree_to_tree(Some(base), Some(theirs), None).map_err(failed)?;
    let is_large = |id: &Oid| odb.read_header(*id).is_ok_and(|(size, _)| size as u64 > MERGED);
    let both = diff.deltas().filter_map(|delta| {
        let path = delta.new_file().path().or(delta.old_file().path())?;
        let [old, new] = [base, ours].map(|tree| tree.get_path(path).ok().map(|entry| entry.id()));
        let sizes = [Some(delta.new_file().id()), old, new];
        let large = old != new && sizes.iter().flatten().any(is_large);
        large.then(|| path.display().to_string())
    });
    Ok(both.collect())
}

fn commit<'r>(repository: &'r Repository, id: &CommitId) -> Result<Commit<'r>, GitError> {
    repository.find_commit(oid(id.as_str())).map_err(|error| GitError::commit(id, error))
}

/// Where an offer left the branch.
fn base<'r>(repository: &'r Repository, branch: &CommitId, head: &CommitId) -> Result<Option<Commit<'r>>, GitError> {
    match repository.merge_base(oid(branch.as_str()), oid(head.as_str())) {
        Ok(base) => commit(repository, &commit_id(base)).map(Some),
        Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
        Err(error) => Err(failed(error)),
    }
}
