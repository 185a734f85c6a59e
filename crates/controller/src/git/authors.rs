//! Who made a version, and what a commit changed: questions about the past that proofs of approvals ask.

use super::commit::{Person, commit_id};
use super::history::{boundary, person};
use super::past::Commits;
use super::{GitError, Store, oid, tree};
use crate::manifest::files::{Had, RepoPath};
use crate::manifest::ids::{BlobId, CommitId};
use crate::record::text::coauthors;
use git2::{Commit, Delta, ErrorCode, Oid, Repository};
use std::collections::{BTreeMap, BTreeSet};

/// What one commit did to its branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The head that it merged, if it is a merge of one.
    pub merged: Option<CommitId>,
    /// What it changed against its first parent; none for what it took away.
    pub files: BTreeMap<RepoPath, Option<BlobId>>,
}

/// A commit and who made it; they are who the commit claims them to be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Authorship {
    /// The commit.
    pub commit: CommitId,
    /// How many parents it has: what a merge has merged is in Git, and what a host has squashed or rebased is not.
    pub parents: usize,
    /// Its author and its committer.
    pub by: BTreeSet<Person>,
    /// Whom its message names as having made it with them.
    pub with: BTreeSet<Person>,
}

impl Authorship {
    /// All of them.
    pub fn makers(&self) -> impl Iterator<Item = &Person> {
        self.by.iter().chain(&self.with)
    }
}

impl Store {
    /// What a commit changed against its first parent.
    ///
    /// # Errors
    /// `Missing` when it, or its parent, is not in the cache. `BadTree` for a path that is none.
    pub async fn changed(&self, id: &CommitId) -> Result<Changed, GitError> {
        let id = id.clone();
        self.on_cache(move |_, repository| {
            let failed = |error| GitError::local(&format!("compare commit {id} with its parent"), error);
            let commit = repository.find_commit(oid(id.as_str())).map_err(|error| GitError::commit(&id, error))?;
            if boundary(repository)?.contains(&commit.id()) {
                return Err(GitError::Missing(format!("the parents of commit {id} in the cache")));
            }
            let before = commit.parents().next().map(|parent| parent.tree()).transpose().map_err(failed)?;
            let after = commit.tree().map_err(failed)?;
            let diff = repository.diff_tree_to_tree(before.as_ref(), Some(&after), None).map_err(failed)?;
            let mut files = BTreeMap::new();
            for delta in diff.deltas() {
                let gone = delta.status() == Delta::Deleted;
                let side = if gone { delta.old_file() } else { delta.new_file() };
                let shown = String::from_utf8_lossy(side.path_bytes().unwrap_or_default()).into_owned();
                let path = shown.parse().map_err(|_| GitError::BadTree { path: shown, why: "it is no path" })?;
                files.insert(path, (!gone).then(|| blob_id(side.id())));
            }
            let merged = (commit.parent_count() == 2).then(|| commit.parent_id(1)).transpose().map_err(failed)?;
            Ok(Changed { merged: merged.map(commit_id), files })
        })
        .await
    }

    /// The commits behind `tip`, and it, that made what it has at the paths of each part, back to where all of that part was as
    /// `before` has it. A merge that only took over what one side had made nothing, unless that drops what another one had changed.
    ///
    /// # Errors
    /// `Missing` when the tip, or a part of the past that would tell, is not in the cache; `Limit` when it is too long.
    pub async fn authors(
        &self,
        tip: &CommitId,
        before: &[BTreeMap<RepoPath, Had>],
    ) -> Result<Vec<Authorship>, GitError> {
        let (tip, before) = (tip.clone(), before.to_vec());
        self.on_cache(move |inner, repository| {
            let commits = Commits::of(inner);
            authors(repository, commits.as_ref(), inner.config.limits.entries, &tip, &before)
        })
        .await
    }
}

/// See [`Store::authors`]; `commits` tell what lies behind others where the repository does not.
pub(super) fn authors(
    repository: &Repository,
    commits: Option<&Commits<'_>>,
    limit: usize,
    tip: &CommitId,
    before: &[BTreeMap<RepoPath, Had>],
) -> Result<Vec<Authorship>, GitError> {
    let mut made = BTreeSet::new();
    for part in before {
        made.extend(authors_of(Past::new(repository, commits, limit, part)?, tip)?);
    }
    Ok(made.into_iter().collect())
}

fn authors_of(mut past: Past<'_>, tip: &CommitId) -> Result<BTreeSet<Authorship>, GitError> {
    let (mut left, mut seen) = (vec![oid(tip.as_str())], BTreeSet::new());
    while let Some(id) = left.pop() {
        if seen.insert(id) {
            left.extend(past.visit(id)?);
        }
    }
    Ok(past.made)
}

/// What a commit has at the paths of a part, in their order.
type State = Vec<Option<Oid>>;

/// The past of one part of a version, and what was found there.
struct Past<'r> {
    repository: &'r Repository,
    /// The commits whose parents were not fetched.
    cut: BTreeSet<Oid>,
    commits: Option<&'r Commits<'r>>,
    paths: Vec<&'r RepoPath>,
    /// What the part was before the version.
    end: State,
    /// How many commits are looked at, at most, and how many were.
    limit: usize,
    steps: usize,
    made: BTreeSet<Authorship>,
}

impl<'r> Past<'r> {
    fn new(
        repository: &'r Repository,
        commits: Option<&'r Commits<'r>>,
        limit: usize,
        before: &'r BTreeMap<RepoPath, Had>,
    ) -> Result<Self, GitError> {
        let then = |(path, had): (&RepoPath, &Had)| match had {
            Had::Nothing => Ok(None),
            Had::Blob(blob) => Ok(Some(oid(blob.as_str()))),
            Had::AsIn(commit) => match find(repository, oid(commit.as_str())) {
                Ok(commit) => at(repository, &commit, path),
                // It is not fetched yet, which the walk says where the past ends, or main was rewritten: then all count who ever touched it.
                Err(GitError::Missing(_)) => Ok(None),
                Err(error) => Err(error),
            },
        };
        let end = before.iter().map(then).collect::<Result<State, GitError>>()?;
        let (cut, paths) = (boundary(repository)?, before.keys().collect());
        Ok(Self { repository, cut, commits, paths, end, limit, steps: 0, made: BTreeSet::new() })
    }

    /// Takes note of who made a commit, and of who changed the part on the sides of a merge that it was not taken from; whence it has the
    /// part.
    fn visit(&mut self, id: Oid) -> Result<Vec<Oid>, GitError> {
        let Some((commit, now)) = self.open(id)? else { return Ok(Vec::new()) };
        let parents: Vec<Oid> = commit.parent_ids().collect();
        let Some(taken) = self.judge(&commit, &now)? else { return Ok(parents) };
        for other in parents.into_iter().filter(|parent| *parent != taken) {
            self.side(other, taken)?;
        }
        Ok(vec![taken])
    }

    /// Takes note of who changed anything of the part on one side of a merge. Whoever takes back there what the other side lacks has a hand
    /// in what the merge comes to, though it looks as if that side had changed nothing.
    fn side(&mut self, from: Oid, taken: Oid) -> Result<(), GitError> {
        if self.state(from)? == self.end {
            return Ok(());
        }
        let own = self.own(from, taken)?;
        let (mut left, mut seen) = (vec![from], BTreeSet::new());
        while let Some(id) = left.pop() {
            if !own.contains(&id) || !seen.insert(id) {
                continue;
            }
            if let Some((commit, now)) = self.open(id)? {
                self.judge(&commit, &now)?;
                left.extend(commit.parent_ids());
            }
        }
        Ok(())
    }

    /// A commit, and what it has of the part; none where the walk ends, as the part is what it was before the version, or there was
    /// nothing yet.
    fn open(&mut self, id: Oid) -> Result<Option<(Commit<'r>, State)>, GitError> {
        self.steps += 1;
        if self.steps > self.limit {
            let what = "the number of commits since the version was another".to_owned();
            return Err(GitError::Limit { what, limit: self.limit.to_string() });
        }
        let (commit, now) = (find(self.repository, id)?, self.state(id)?);
        if now == self.end {
            return Ok(None);
        }
        // A commit whose parents were not fetched looks like the first one of all.
        if self.cut.contains(&id) {
            return Err(GitError::Missing(format!("the past before {id} in the cache")));
        }
        let nothing = commit.parent_count() == 0 && now.iter().all(Option::is_none);
        Ok((!nothing).then_some((commit, now)))
    }

    /// Takes note of who made a commit that has of the part what none of its parents has, or that drops what one of them had changed of
    /// it; else the first parent that has the same.
    fn judge(&mut self, commit: &Commit<'_>, now: &[Option<Oid>]) -> Result<Option<Oid>, GitError> {
        let mut taken = None;
        for parent in commit.parent_ids() {
            if taken.is_none() && self.state(parent)?.as_slice() == now {
                taken = Some(parent);
            }
        }
        let mut makes = taken.is_none();
        if let Some(taken) = taken {
            for other in commit.parent_ids().filter(|parent| *parent != taken) {
                makes |= self.drops(now, taken, other)?;
            }
        }
        if makes {
            let by = [person(&commit.author()), person(&commit.committer())].into();
            let message = String::from_utf8_lossy(commit.message_bytes()).into_owned();
            let with = coauthors(&message).map(|(name, email)| Person { name, email }).collect();
            self.made.insert(Authorship { commit: commit_id(commit.id()), parents: commit.parent_count(), by, with });
        }
        Ok(taken)
    }

    /// Whether a merge that has the part as `taken` has it drops what `other` had changed of it since the two parted. Where they have no
    /// past in common all is changed.
    fn drops(&self, now: &[Option<Oid>], taken: Oid, other: Oid) -> Result<bool, GitError> {
        let theirs = self.state(other)?;
        if theirs.as_slice() == now {
            return Ok(false);
        }
        let base = self.asked([taken, other], |commits| match commits.merge_base(taken, other) {
            Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
            base => base.map(Some),
        })?;
        let base = base.map(|base| self.state(base)).transpose()?;
        let changed = |n: usize| base.as_ref().is_none_or(|base| theirs[n] != base[n]);
        Ok((0..now.len()).any(|n| theirs[n] != now[n] && changed(n)))
    }

    /// The commits behind one, and it, that are not behind another one.
    fn own(&self, of: Oid, but: Oid) -> Result<BTreeSet<Oid>, GitError> {
        self.asked([of, but], |commits| {
            let mut walk = commits.revwalk()?;
            walk.push(of)?;
            walk.hide(but)?;
            walk.collect()
        })
    }

    /// Asks about two commits where all is known that lies behind them: here, or where there are commits alone.
    fn asked<T>(
        &self,
        [one, other]: [Oid; 2],
        ask: impl FnOnce(&Repository) -> Result<T, git2::Error>,
    ) -> Result<T, GitError> {
        if self.cut.is_empty() {
            let failed = |error| GitError::local(&format!("compare what lies behind {one} and {other}"), error);
            return ask(self.repository).map_err(failed);
        }
        let told = self.commits.and_then(|commits| commits.ask([one, other], ask));
        told.ok_or_else(|| GitError::Missing(format!("what lies behind {one} and {other} in the cache")))
    }

    fn state(&self, id: Oid) -> Result<State, GitError> {
        let root = tree::root(self.repository, &commit_id(id))?;
        let at = |path: &&RepoPath| Ok(tree::entry(&root, path)?.map(|entry| entry.id()));
        self.paths.iter().map(at).collect()
    }
}

fn find(repository: &Repository, id: Oid) -> Result<Commit<'_>, GitError> {
    repository.find_commit(id).map_err(|error| GitError::commit(&commit_id(id), error))
}

fn blob_id(id: Oid) -> BlobId {
    id.to_string().parse().expect("40 hex digits, because libgit2 was built for SHA-1")
}

/// The id of what a commit has at a path.
fn at(repository: &Repository, commit: &Commit<'_>, path: &RepoPath) -> Result<Option<Oid>, GitError> {
    let root = tree::root(repository, &commit_id(commit.id()))?;
    Ok(tree::entry(&root, path)?.map(|entry| entry.id()))
}
