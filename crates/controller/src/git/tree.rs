//! A commit's tree as a value: path → bytes. Nothing is checked out, links and submodules are never followed.

use super::remote::RemoteLimits;
use super::{GitError, Store, oid};
use crate::manifest::files::{Entry, Files, MAX_PARTS, MAX_PATH, RepoPath, is_manifest};
use crate::manifest::gathered::Extent;
use crate::manifest::ids::{BlobId, CommitId};
use crate::record::text::plain;
use git2::{Odb, Repository, Tree, TreeEntry};
use std::collections::BTreeSet;
use std::path::Path;

impl Store {
    /// All entries of a commit's tree, or of one of its directories, by their paths from the root.
    ///
    /// # Errors
    /// `Missing` when the commit or the directory is not there: never an empty result. `BadTree` for a tree that Git would
    /// not check out (a name that is empty, `.`, `..`, `.git` in any disguise, has a slash, or comes twice). `Limit` for
    /// too many entries, too deep a path, too many bytes in all.
    pub async fn files(&self, commit: &CommitId, dir: Option<&RepoPath>) -> Result<Files, GitError> {
        let (commit, dir) = (commit.clone(), dir.cloned());
        self.on_cache(move |inner, repository| {
            let root = root(repository, &commit)?;
            let limits = &inner.config.limits;
            match &dir {
                None => read(repository, &root, "", limits),
                Some(dir) => {
                    let tree = directory(repository, &root, dir)?
                        .ok_or_else(|| GitError::Missing(format!("the directory {dir} in commit {commit}")))?;
                    read(repository, &tree, &format!("{dir}/"), limits)
                }
            }
        })
        .await
    }

    /// The id of the tree of a directory, or of the root: equal ids mean equal content. `None` if there is no such
    /// directory.
    ///
    /// # Errors
    /// `Missing` when the commit is not there.
    pub async fn tree_id(&self, commit: &CommitId, dir: Option<&RepoPath>) -> Result<Option<String>, GitError> {
        let (commit, dir) = (commit.clone(), dir.cloned());
        self.on_cache(move |_, repository| {
            let root = root(repository, &commit)?;
            let tree = match &dir {
                None => Some(root),
                Some(dir) => directory(repository, &root, dir)?,
            };
            Ok(tree.map(|tree| tree.id().to_string()))
        })
        .await
    }

    /// Where a commit has the same as these entries, by ids, modes and sizes: no content is read.
    ///
    /// # Errors
    /// `Missing` when the commit is not there.
    pub async fn shared(&self, commit: &CommitId, entries: Files) -> Result<BTreeSet<RepoPath>, GitError> {
        let commit = commit.clone();
        self.on_cache(move |_, repository| {
            let root = root(repository, &commit)?;
            let odb = repository.odb().map_err(|error| GitError::local("open the cache", error))?;
            let mut shared = BTreeSet::new();
            for (path, known) in entries {
                let Some(found) = entry(&root, &path)? else { continue };
                let (id, mode) = (found.id(), found.filemode_raw());
                let same = match known {
                    Entry::File { blob, .. } => is_file(mode) && id == oid(blob.as_str()),
                    Entry::TooLarge { size } => {
                        is_file(mode) && odb.read_header(id).is_ok_and(|(found, _)| found as u64 == size)
                    }
                    Entry::Symlink => mode == SYMLINK,
                    Entry::Submodule => mode == SUBMODULE,
                    // The path is not its own.
                    Entry::BadName { .. } | Entry::Unread { .. } => false,
                };
                shared.extend(same.then_some(path));
            }
            Ok(shared)
        })
        .await
    }
}

/// All entries of a tree; `at` is where it lies, empty or with a slash at the end.
pub(super) fn read(
    repository: &Repository,
    tree: &Tree<'_>,
    at: &str,
    limits: &RemoteLimits,
) -> Result<Files, GitError> {
    let mut walk = Walk::new(repository, limits)?;
    walk.visit(tree, at)?;
    Ok(walk.finish())
}

/// The same of what may be a manifest: other files are named alone.
pub(super) fn read_manifests(
    repository: &Repository,
    tree: &Tree<'_>,
    at: &str,
    limits: &RemoteLimits,
) -> Result<Files, GitError> {
    let mut walk = Walk { only: Only::Manifests, ..Walk::new(repository, limits)? };
    walk.visit(tree, at)?;
    Ok(walk.finish())
}

/// How large that is.
pub(super) fn measure(
    repository: &Repository,
    tree: &Tree<'_>,
    at: &str,
    limits: &RemoteLimits,
) -> Result<Extent, GitError> {
    let mut walk = Walk { only: Only::Sizes, ..Walk::new(repository, limits)? };
    walk.visit(tree, at)?;
    Ok(walk.size)
}

/// One entry that was found at a path; none if it is a directory.
pub(super) fn read_one(
    repository: &Repository,
    found: &TreeEntry<'_>,
    path: &RepoPath,
    limits: &RemoteLimits,
) -> Result<Option<Entry>, GitError> {
    match found.filemode_raw() {
        mode if is_file(mode) => Walk::new(repository, limits)?.file(found, path).map(Some),
        SYMLINK => Ok(Some(Entry::Symlink)),
        SUBMODULE => Ok(Some(Entry::Submodule)),
        _ => Ok(None),
    }
}

/// Refuses names that no Git would check out.
pub(super) fn check_names(tree: &Tree<'_>, at: &str) -> Result<(), GitError> {
    let mut names = BTreeSet::new();
    for entry in tree.iter() {
        let name = entry.name_bytes();
        if let Some(why) = forbidden(name).or((!names.insert(name.to_vec())).then_some("the name comes twice")) {
            return Err(GitError::BadTree { path: format!("{at}{}", name.escape_ascii()), why });
        }
    }
    Ok(())
}

/// The tree of a commit.
pub(super) fn root<'r>(repository: &'r Repository, id: &CommitId) -> Result<Tree<'r>, GitError> {
    let commit = repository.find_commit(oid(id.as_str())).map_err(|error| GitError::commit(id, error))?;
    commit.tree().map_err(|error| GitError::local(&format!("read the tree of commit {id}"), error))
}

/// The entry at a path.
pub(super) fn entry(root: &Tree<'_>, path: &RepoPath) -> Result<Option<TreeEntry<'static>>, GitError> {
    match root.get_path(Path::new(path.as_str())) {
        Ok(entry) => Ok(Some(entry)),
        Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(None),
        Err(error) => Err(GitError::local(&format!("read {path}"), error)),
    }
}

/// Where an entry of the directory `at`, or of the root, lies, if a path can name it.
pub(super) fn below(at: &str, entry: &TreeEntry<'_>) -> Option<RepoPath> {
    let name = std::str::from_utf8(entry.name_bytes()).ok().filter(|name| !name.contains('/'))?;
    if at.is_empty() { name.parse().ok() } else { format!("{at}/{name}").parse().ok() }
}

pub(super) fn directory<'r>(
    repository: &'r Repository,
    root: &Tree<'_>,
    dir: &RepoPath,
) -> Result<Option<Tree<'r>>, GitError> {
    match entry(root, dir)? {
        Some(entry) if entry.filemode() == i32::from(git2::FileMode::Tree) => {
            let tree = repository.find_tree(entry.id());
            Ok(Some(tree.map_err(|error| GitError::local(&format!("read the directory {dir}"), error))?))
        }
        _ => Ok(None),
    }
}

struct Walk<'r> {
    repository: &'r Repository,
    odb: Odb<'r>,
    limits: &'r RemoteLimits,
    files: Files,
    /// Entries whose names a path cannot hold: the path to show them at, the name.
    odd: Vec<(String, String)>,
    size: Extent,
    only: Only,
}

/// What is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Only {
    All,
    /// The content of what may be a manifest by its name.
    Manifests,
    /// The sizes of those.
    Sizes,
}

impl<'r> Walk<'r> {
    fn new(repository: &'r Repository, limits: &'r RemoteLimits) -> Result<Self, GitError> {
        let odb = repository.odb().map_err(|error| GitError::local("open the cache", error))?;
        let (files, odd) = (Files::new(), Vec::new());
        Ok(Self { repository, odb, limits, files, odd, size: Extent::default(), only: Only::All })
    }

    /// Reads a tree; `at` is empty or ends with a slash.
    fn visit(&mut self, tree: &Tree<'_>, at: &str) -> Result<(), GitError> {
        self.size.entries += tree.len();
        if self.size.entries > self.limits.entries {
            return Err(limit("the number of entries in the tree", self.limits.entries));
        }
        check_names(tree, at)?;
        tree.iter().try_for_each(|entry| self.take(&entry, entry.name_bytes(), at))
    }

    fn take(&mut self, entry: &TreeEntry<'_>, name: &[u8], at: &str) -> Result<(), GitError> {
        let shown = format!("{at}{}", String::from_utf8_lossy(name));
        if shown.split('/').count() > self.limits.depth.min(MAX_PARTS) || shown.len() > MAX_PATH {
            return Err(limit(&format!("the depth or length of the path {:?}", plain(&shown)), self.limits.depth));
        }
        let named = std::str::from_utf8(name).ok().and_then(|name| name.parse::<RepoPath>().ok());
        let Some(path) = named.and_then(|name| format!("{at}{name}").parse::<RepoPath>().ok()) else {
            let safe = |c: char| if c.is_control() || "\\:%~\u{fffd}".contains(c) { '_' } else { c };
            self.odd.push((shown.chars().map(safe).collect(), name.escape_ascii().to_string()));
            return Ok(());
        };
        let found = match entry.filemode_raw() {
            0o040_000 => {
                let tree = self.repository.find_tree(entry.id());
                let tree = tree.map_err(|error| GitError::local(&format!("read the directory {path}"), error))?;
                return self.visit(&tree, &format!("{path}/"));
            }
            mode if is_file(mode) && self.only != Only::All && !is_manifest(path.file_name()) => Entry::other(),
            mode if is_file(mode) => self.file(entry, &path)?,
            SYMLINK => Entry::Symlink,
            SUBMODULE => Entry::Submodule,
            _ => return Err(GitError::BadTree { path: path.into(), why: "its mode is none that Git knows" }),
        };
        if self.only != Only::Sizes {
            self.files.insert(path, found);
        }
        Ok(())
    }

    fn file(&mut self, entry: &TreeEntry<'_>, path: &RepoPath) -> Result<Entry, GitError> {
        let failed = |error| GitError::local(&format!("read the file {path}"), error);
        let (size, _) = self.odb.read_header(entry.id()).map_err(failed)?;
        let size = size as u64;
        if size > self.limits.blob_bytes {
            return Ok(Entry::TooLarge { size });
        }
        self.size.manifests += 1;
        self.size.bytes += size;
        if self.size.bytes > self.limits.fetch_bytes {
            return Err(limit("the size of all files in bytes", self.limits.fetch_bytes));
        }
        if self.only == Only::Sizes {
            return Ok(Entry::other());
        }
        let blob: BlobId = entry.id().to_string().parse().expect("40 hex digits, because libgit2 was built for SHA-1");
        let object = self.repository.find_blob(entry.id()).map_err(failed)?;
        Ok(Entry::File { blob, bytes: object.content().into() })
    }

    /// Adds what has an odd name, below names that are free.
    fn finish(mut self) -> Files {
        for (mut shown, name) in self.odd {
            while shown.parse().is_ok_and(|path| self.files.contains_key(&path)) {
                shown.push('_');
            }
            if let Ok(path) = shown.parse() {
                self.files.insert(path, Entry::BadName { name });
            }
        }
        self.files
    }
}

const SYMLINK: i32 = 0o120_000;
const SUBMODULE: i32 = 0o160_000;

/// 100664 is what Git wrote in its first weeks.
fn is_file(mode: i32) -> bool {
    matches!(mode, 0o100_644 | 0o100_664 | 0o100_755)
}

pub(super) fn limit(what: &str, limit: impl ToString) -> GitError {
    GitError::Limit { what: what.to_owned(), limit: limit.to_string() }
}

/// What `git fsck` calls an error in a name (hasDot, hasDotdot, hasDotgit, fullPathname, emptyName).
fn forbidden(name: &[u8]) -> Option<&'static str> {
    match name {
        b"" => Some("the name is empty"),
        b"." | b".." => Some("the name means a directory"),
        _ if name.contains(&b'/') => Some("the name contains a slash"),
        _ if is_git_directory(name) => Some("the name means Git's own directory on some file systems"),
        _ => None,
    }
}

/// Whether a file system might take a name for `.git`: HFS+ ignores some characters, NTFS trailing dots and spaces, what
/// follows a colon, and has short names; both ignore case (CVE-2014-9390, CVE-2024-35186).
fn is_git_directory(name: &[u8]) -> bool {
    let ignored = |c: &char| matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
    let text: String = String::from_utf8_lossy(name).chars().filter(|c| !ignored(c)).collect();
    let text = text.split([':', '\\']).next().unwrap_or_default().trim_end_matches(['.', ' ']).to_ascii_lowercase();
    text == ".git" || text == "git~1"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disguises_of_git() {
        for bad in [
            ".git",
            ".GIT",
            ".Git ",
            ".git...",
            "git~1",
            "GIT~1",
            ".g\u{200c}it",
            ".git::$INDEX_ALLOCATION",
            "\u{feff}.git",
        ] {
            assert!(is_git_directory(bad.as_bytes()), "{bad:?}");
        }
        for good in [".gitignore", ".github", "git", "git~2", ".gitmodules", "a.git"] {
            assert!(!is_git_directory(good.as_bytes()), "{good:?}");
        }
    }
}
