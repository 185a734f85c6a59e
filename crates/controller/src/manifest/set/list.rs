//! Which files are a set's: what the list of manifests names.

use super::{SetFiles, tracks};
use crate::manifest::diagnostic::{Code, quoted};
use crate::manifest::files::{Entry, Files, RepoPath};
use crate::manifest::yaml;
use std::collections::BTreeMap;

/// The most files of one set.
pub const MAX_FILES: usize = 500;

/// An entry of `manifests` that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misplaced {
    /// Its index in the list.
    pub index: usize,
    /// What kind of mistake.
    pub code: Code,
    /// What was found.
    pub found: String,
    /// What was expected.
    pub expected: String,
}

/// What the list of manifests comes to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Listed {
    /// The files.
    pub files: SetFiles,
    /// What stands in the way.
    pub misplaced: Vec<Misplaced>,
    /// Links and submodules in listed directories, which are passed over.
    pub ignored: Vec<RepoPath>,
}

/// Finds the files that the entries of `manifests` name, all below the directory of the rollout's file.
#[must_use]
pub fn list(files: &Files, rollout_file: &RepoPath, manifests: &[String]) -> Listed {
    let mut listed = Listed::default();
    let base = rollout_file.parent();
    for (index, entry) in manifests.iter().enumerate() {
        if let Err((code, found, expected)) = add(files, rollout_file, base.as_ref(), entry, &mut listed) {
            listed.misplaced.push(Misplaced { index, code, found, expected });
        }
    }
    let mut folded: BTreeMap<String, &RepoPath> = BTreeMap::new();
    let mut clashes = Vec::new();
    for path in listed.files.keys() {
        if let Some(other) = folded.insert(path.as_str().to_lowercase(), path) {
            clashes.push(format!("{other} and {path} differ in case only"));
        }
    }
    let clash = |found| Misplaced {
        index: 0,
        code: Code::AmbiguousPath,
        found,
        expected: "paths that stay apart on every file system".to_owned(),
    };
    listed.misplaced.extend(clashes.into_iter().map(clash));
    if listed.files.len() > MAX_FILES {
        let found = format!("{} files", listed.files.len());
        let expected = format!("at most {MAX_FILES} files in one set");
        listed.misplaced.push(Misplaced { index: 0, code: Code::TooLarge, found, expected });
    }
    listed
}

fn add(
    files: &Files,
    rollout_file: &RepoPath,
    base: Option<&RepoPath>,
    entry: &str,
    listed: &mut Listed,
) -> Result<(), (Code, String, String)> {
    let path = rollout_file.beside(entry).map_err(|_| {
        let expected = "a file or a directory beside this file, such as podinfo.yaml or manifests";
        (Code::PathEscape, format!("{} leads elsewhere", quoted(entry)), expected.to_owned())
    })?;
    let below = |path: &RepoPath| path.below(base).expect("the path was made beside the rollout's file");
    if below(&path) == tracks() {
        let expected = "another name: under this one tidegate keeps what a version tracks";
        return Err((Code::Conflict, format!("{} is taken", quoted(entry)), expected.to_owned()));
    }
    match files.get(&path) {
        Some(Entry::File { blob, bytes }) => {
            listed.files.insert(below(&path), (blob.clone(), bytes.clone()));
            return Ok(());
        }
        Some(_) => {
            return Err(unreadable(&path, &files[&path]));
        }
        None => {}
    }
    let prefix = format!("{path}/");
    // Paths sort by bytes: all that start like the directory's path follow it in one stretch.
    let inside = files
        .range(path.clone()..)
        .take_while(|(p, _)| p.as_str().starts_with(path.as_str()))
        .filter(|(p, _)| p.as_str().starts_with(&prefix));
    let mut any = false;
    for (path, entry) in inside {
        match entry {
            Entry::File { blob, bytes } if is_manifest(path) => {
                any = true;
                listed.files.insert(below(path), (blob.clone(), bytes.clone()));
            }
            Entry::Symlink | Entry::Submodule => listed.ignored.push(path.clone()),
            // It may hold a manifest, or be a directory of them: what is left out would be deleted.
            Entry::BadName { .. } => return Err(unreadable(path, entry)),
            Entry::TooLarge { .. } if is_manifest(path) => return Err(unreadable(path, entry)),
            Entry::File { .. } | Entry::TooLarge { .. } | Entry::Unread { .. } => {}
        }
    }
    if any {
        Ok(())
    } else {
        let expected = "a file, or a directory with .yaml, .yml or .json files".to_owned();
        Err((Code::FileMissing, format!("{path} is not in the repository"), expected))
    }
}

/// Why an entry that is no plain file is not read: code, what was found, what was expected.
pub(in crate::manifest) fn unreadable(path: &RepoPath, entry: &Entry) -> (Code, String, String) {
    match entry {
        Entry::File { .. } => (Code::FileMissing, format!("{path} is not where a file may be"), REGULAR.to_owned()),
        Entry::TooLarge { size } => {
            (Code::TooLarge, format!("{path} is a file of {size} bytes"), format!("at most {} bytes", yaml::MAX_BYTES))
        }
        Entry::BadName { name } => {
            let expected = "a name without backslash, colon, percent sign, leading tilde and control characters";
            (Code::PathEscape, format!("an entry is called {}", quoted(name)), expected.to_owned())
        }
        Entry::Symlink => (Code::SymlinkIgnored, format!("{path} is a symbolic link"), REGULAR.to_owned()),
        Entry::Submodule => (Code::SymlinkIgnored, format!("{path} is a submodule"), REGULAR.to_owned()),
        Entry::Unread { why } => {
            let expected = "what is read: .yaml, .yml and .json files in a tenant's directory, within limits";
            (Code::FileMissing, format!("{path} is not read: {why}"), expected.to_owned())
        }
    }
}

const REGULAR: &str = "a regular file; links and submodules are never followed";

/// Which files of a listed directory are read: the extension decides, exactly as written.
fn is_manifest(path: &RepoPath) -> bool {
    [".yaml", ".yml", ".json"].iter().any(|extension| path.file_name().ends_with(extension))
}
