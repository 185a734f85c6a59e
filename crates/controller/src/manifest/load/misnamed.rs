//! What was meant as a rollout and is not read as one, since its name does not count: told, never read.

use super::is_rollout_file;
use crate::manifest::diagnostic::{Code, Diagnostic, Mark, SourceText};
use crate::manifest::files::{Entry, Files, RepoPath};
use std::collections::BTreeSet;

const NAMES: &str = "a file called rollout.yaml or NAME.rollout.yaml, in lower case";

/// A warning for each file that says it is a rollout under a name that does not count, and for each directory that has
/// the name of such a file.
pub(super) fn find(files: &Files) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = directories(files).iter().map(directory).collect();
    for (path, entry) in files.iter().filter(|(path, _)| is_yaml(path) && !is_rollout_file(path)) {
        if let Entry::File { blob: _, bytes } = entry {
            found.extend(file(path, bytes));
        }
    }
    found
}

fn is_yaml(path: &RepoPath) -> bool {
    let name = path.file_name().to_ascii_lowercase();
    [".yaml", ".yml"].iter().any(|ending| name.ends_with(ending))
}

fn directories(files: &Files) -> BTreeSet<RepoPath> {
    let mut found = BTreeSet::new();
    for path in files.keys() {
        let above = std::iter::successors(path.parent(), RepoPath::parent);
        found.extend(above.filter(is_rollout_file));
    }
    found
}

fn directory(path: &RepoPath) -> Diagnostic {
    Diagnostic::of_file(path, Code::Misnamed, format!("{path} is a directory, so it declares no rollout"), NAMES)
}

/// Whether its lines say so is enough: a file that is not read need not be right, and nothing but a warning follows.
fn file(path: &RepoPath, bytes: &[u8]) -> Option<Diagnostic> {
    let text = std::str::from_utf8(bytes).ok()?;
    let says = |line: &str, key: &str, right: &dyn Fn(&str) -> bool| {
        let value = line.strip_prefix(key).and_then(|rest| rest.split('#').next());
        value.is_some_and(|value| right(value.trim().trim_matches(['"', '\''])))
    };
    text.lines().find(|line| says(line, "apiVersion:", &|value| value.starts_with("tidegate.io/")))?;
    let (at, line) = text.lines().enumerate().find(|(_, line)| says(line, "kind:", &|value| value == "Rollout"))?;
    let mark = Mark { line: at + 1, column: 1, length: line.trim_end().chars().count() };
    let found = "this rollout is not read: the name of its file does not count";
    let diagnostic = SourceText::new(path.clone(), text.to_owned()).at(mark, Code::Misnamed, found, NAMES);
    Some(diagnostic.help(format!("git mv {} {}", path.file_name(), renamed(path.file_name()))))
}

/// The name that was meant.
fn renamed(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    let stem = lower.trim_end_matches(".yml").trim_end_matches(".yaml");
    let stem = stem.strip_suffix("rollout").unwrap_or(stem).trim_end_matches(['.', '-', '_']);
    if stem.is_empty() { "rollout.yaml".to_owned() } else { format!("{stem}.rollout.yaml") }
}
