//! Three-way merge, file by file: what a revert request puts on main.

use super::{Edit, GitError};
use crate::manifest::files::{Entry, Files, RepoPath};
use crate::record::text::plain;
use git2::{MergeFileInput, MergeFileOptions};
use std::collections::{BTreeMap, BTreeSet};

/// The outcome of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merge {
    /// It fits: what to change in ours. Empty when ours has it all already.
    Merged(BTreeMap<RepoPath, Edit>),
    /// Both sides changed the same lines, or something that has no lines, at these paths. Nothing is changed.
    Conflict(BTreeSet<RepoPath>),
}

/// Applies to `ours` what leads from `base` to `theirs`, for all paths that any of them has.
///
/// # Errors
/// `Cache` when memory is out; no content is an error.
pub fn merge_files(base: &Files, ours: &Files, theirs: &Files) -> Result<Merge, GitError> {
    let paths: BTreeSet<&RepoPath> = base.keys().chain(ours.keys()).chain(theirs.keys()).collect();
    let mut edits = BTreeMap::new();
    let mut conflicts = BTreeSet::new();
    for path in paths {
        let (base, ours, theirs) = (base.get(path), ours.get(path), theirs.get(path));
        if ours == theirs || base == theirs {
            continue;
        }
        let merged = if base == ours { taken(theirs) } else { lines(base, ours, theirs)? };
        match merged {
            Some(edit) => drop(edits.insert(path.clone(), edit)),
            None => drop(conflicts.insert(path.clone())),
        }
    }
    Ok(if conflicts.is_empty() { Merge::Merged(edits) } else { Merge::Conflict(conflicts) })
}

/// The edit that leads to an entry; `None` if we can not write such a one.
fn taken(entry: Option<&Entry>) -> Option<Edit> {
    match entry {
        None => Some(Edit::Remove),
        Some(Entry::File { bytes, .. }) => Some(Edit::Write(bytes.clone())),
        Some(
            Entry::TooLarge { .. } | Entry::BadName { .. } | Entry::Symlink | Entry::Submodule | Entry::Unread { .. },
        ) => None,
    }
}

/// Merges three files line by line; `None` when they conflict or are not all files.
fn lines(base: Option<&Entry>, ours: Option<&Entry>, theirs: Option<&Entry>) -> Result<Option<Edit>, GitError> {
    let (
        Some(Entry::File { bytes: base, .. }),
        Some(Entry::File { bytes: ours, .. }),
        Some(Entry::File { bytes: theirs, .. }),
    ) = (base, ours, theirs)
    else {
        return Ok(None);
    };
    let input = |bytes| {
        let mut input = MergeFileInput::new();
        input.content(bytes);
        input
    };
    let result = git2::merge_file(&input(base), &input(ours), &input(theirs), Some(&mut MergeFileOptions::new()));
    let result = result.map_err(|error| GitError::Cache {
        doing: format!("merge a file: {}", plain(error.message())),
        source: Box::new(error),
    })?;
    Ok(result.is_automergeable().then(|| Edit::Write(result.content().into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(entries: &[(&str, &str)]) -> Files {
        let blob = |text: &str| git2::Oid::hash_object(git2::ObjectType::Blob, text.as_bytes()).unwrap().to_string();
        let file = |text: &str| Entry::File { blob: blob(text).parse().unwrap(), bytes: text.as_bytes().into() };
        entries.iter().map(|(path, text)| (path.parse().unwrap(), file(text))).collect()
    }

    fn merged(base: &[(&str, &str)], ours: &[(&str, &str)], theirs: &[(&str, &str)]) -> Vec<(String, String)> {
        match merge_files(&files(base), &files(ours), &files(theirs)).unwrap() {
            Merge::Merged(edits) => edits
                .into_iter()
                .map(|(path, edit)| match edit {
                    Edit::Write(bytes) => (path.to_string(), String::from_utf8(bytes.to_vec()).unwrap()),
                    other @ (Edit::Blob(_) | Edit::Remove | Edit::RemoveDir) => {
                        (path.to_string(), format!("{other:?}"))
                    }
                })
                .collect(),
            Merge::Conflict(paths) => paths.iter().map(|path| (path.to_string(), "conflict".to_owned())).collect(),
        }
    }

    fn pair(path: &str, text: &str) -> Vec<(String, String)> {
        vec![(path.to_owned(), text.to_owned())]
    }

    #[test]
    fn what_only_one_side_changed_is_taken() {
        assert_eq!(merged(&[("a", "1\n")], &[("a", "1\n")], &[("a", "2\n")]), pair("a", "2\n"));
        assert_eq!(merged(&[("a", "1\n")], &[("a", "3\n")], &[("a", "1\n")]), vec![]);
        assert_eq!(merged(&[("a", "1\n")], &[("a", "2\n")], &[("a", "2\n")]), vec![]);
        assert_eq!(merged(&[], &[], &[("a", "1\n")]), pair("a", "1\n"));
        assert_eq!(merged(&[("a", "1\n")], &[("a", "1\n")], &[]), pair("a", "Remove"));
        assert_eq!(merged(&[("a", "1\n")], &[], &[]), vec![]);
    }

    #[test]
    fn lines_apart_merge_and_the_same_line_conflicts() {
        let base = "image: v2\n\n# a\n# b\n# c\nreplicas: 2\n";
        let ours = "image: v2\n\n# a\n# b\n# c\nreplicas: 5\n";
        let theirs = "image: v1\n\n# a\n# b\n# c\nreplicas: 2\n";
        let both = "image: v1\n\n# a\n# b\n# c\nreplicas: 5\n";
        assert_eq!(merged(&[("a", base)], &[("a", ours)], &[("a", theirs)]), pair("a", both));
        assert_eq!(merged(&[("a", base)], &[("a", "image: v3\n")], &[("a", theirs)]), pair("a", "conflict"));
        assert_eq!(merged(&[("a", "1\n")], &[], &[("a", "2\n")]), pair("a", "conflict"));
        assert_eq!(merged(&[], &[("a", "1\n")], &[("a", "2\n")]), pair("a", "conflict"));
    }

    #[test]
    fn one_conflict_keeps_all_back() {
        let (base, theirs) = ([("a", "1\n"), ("b", "1\n")], [("a", "2\n"), ("b", "2\n")]);
        assert_eq!(merged(&base, &[("a", "3\n"), ("b", "1\n")], &theirs), pair("a", "conflict"));
    }

    #[test]
    fn links_are_never_written() {
        let path: RepoPath = "a".parse().unwrap();
        let link = Files::from([(path.clone(), Entry::Symlink)]);
        let conflict = Merge::Conflict([path].into());
        assert_eq!(merge_files(&files(&[("a", "1\n")]), &files(&[("a", "1\n")]), &link).unwrap(), conflict);
    }
}
