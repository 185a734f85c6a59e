//! A part of a Git tree as a value: what `git` reads and everything else works on.

use super::ids::{BlobId, CommitId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The longest path that is read, in bytes.
pub const MAX_PATH: usize = 1_000;
/// The deepest one, in parts.
pub const MAX_PARTS: usize = 32;

/// What a path had once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Had {
    /// Nothing.
    Nothing,
    /// This.
    Blob(BlobId),
    /// What a commit has there.
    AsIn(CommitId),
}

/// A path inside a repository: relative, `/` between parts, no empty part, no `.` or `..`, no backslash, no control
/// character, at most 1,000 bytes and 32 parts. It never leaves the repository.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", extend("format" = "repository-path"))]
pub struct RepoPath(String);

/// A text that is not a path inside a repository.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a path inside the repository: relative, parts joined by '/', none of them '.' or '..'")]
pub struct InvalidPath(String);

impl FromStr for RepoPath {
    type Err = InvalidPath;

    fn from_str(text: &str) -> Result<Self, InvalidPath> {
        let part = |p: &str| {
            !p.is_empty()
                && p != "."
                && p != ".."
                && !p.starts_with('~')
                && !p.chars().any(|c| c.is_control() || matches!(c, '\\' | ':' | '%'))
        };
        if text.len() <= MAX_PATH && text.split('/').count() <= MAX_PARTS && text.split('/').all(part) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidPath(text.chars().take(80).collect()))
        }
    }
}

impl TryFrom<String> for RepoPath {
    type Error = InvalidPath;

    fn try_from(text: String) -> Result<Self, InvalidPath> {
        text.parse()
    }
}

impl From<RepoPath> for String {
    fn from(path: RepoPath) -> String {
        path.0
    }
}

impl fmt::Display for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl RepoPath {
    /// The text of it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last part.
    #[must_use]
    pub fn file_name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }

    /// The directory that it lies in; `None` at the root.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        self.0.rsplit_once('/').map(|(dir, _)| Self(dir.to_owned()))
    }

    /// `relative` as seen from this path's directory.
    ///
    /// # Errors
    /// When the result would leave the repository.
    pub fn beside(&self, relative: &str) -> Result<Self, InvalidPath> {
        match self.parent() {
            Some(dir) => format!("{dir}/{relative}").parse(),
            None => relative.parse(),
        }
    }

    /// Whether it is `dir` or lies below it.
    #[must_use]
    pub fn is_within(&self, dir: &Self) -> bool {
        self.0.strip_prefix(&dir.0).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// The part below `dir`, if it lies there.
    #[must_use]
    pub fn below(&self, dir: Option<&Self>) -> Option<Self> {
        match dir {
            None => Some(self.clone()),
            Some(dir) => self.0.strip_prefix(&dir.0)?.strip_prefix('/').map(|rest| Self(rest.to_owned())),
        }
    }
}

/// One entry of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A regular file (mode 100644 or 100755), with its bytes.
    File {
        /// The id of its content.
        blob: BlobId,
        /// Its content.
        bytes: Arc<[u8]>,
    },
    /// A regular file above the installation's limit. Its bytes were not read.
    TooLarge {
        /// Its size in bytes.
        size: u64,
    },
    /// A file or directory whose name no [`RepoPath`] can hold (`50%.md`, `~draft`). It stands under a path with `_` in
    /// place of what is wrong, and nothing below it is read.
    BadName {
        /// Its true name, escaped.
        name: String,
    },
    /// A symbolic link (mode 120000). Its target is never looked at.
    Symlink,
    /// A submodule (mode 160000). It is never followed.
    Submodule,
    /// A file that is no manifest by its name, or a tenant's directory as a whole: nothing of it was read.
    Unread {
        /// Why not.
        why: Cow<'static, str>,
    },
}

impl Entry {
    /// What [`is_manifest`] says no to.
    #[must_use]
    pub fn other() -> Self {
        Self::Unread { why: Cow::Borrowed("only files that end in .yaml, .yml or .json are read") }
    }
}

/// Whether a file may be read as a manifest, by its name, in whatever case it is written.
#[must_use]
pub fn is_manifest(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [".yaml", ".yml", ".json"].iter().any(|extension| name.ends_with(extension))
}

/// All entries of a tree, by path.
pub type Files = BTreeMap<RepoPath, Entry>;
