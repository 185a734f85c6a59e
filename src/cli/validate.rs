//! `tidegate validate DIR`: everything that is wrong with a working copy, without a cluster and without a network.
//!
//! Exit codes: 0 nothing is wrong, 1 there are errors (with `--strict` warnings too), 2 the directory cannot be read.

mod floors;

use super::Exit;
use super::failure::Failure;
use super::screen::Screen;
use super::ui::Ink;
use crate::git::RemoteLimits;
use crate::manifest::diagnostic::{Code, Diagnostic};
use crate::manifest::files::{Entry, Files, RepoPath, is_manifest};
use crate::manifest::gathered::{Extent, Most, left_out};
use crate::manifest::installation::Caps;
use crate::manifest::load::{self, Loaded};
use crate::manifest::{fleet, oid, policy, yaml};
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Check all files of a repository
#[derive(Debug, Clone, clap::Args)]
#[command(
    long_about = "Checks all files of a repository, without a cluster and without a network: each error with its line, what was \
                  expected and how to mend it. What is wrong with the shape of a rollout's file (a field that does not \
                  exist, a text for a number) is told first; what its content would lead to, once its shape is right. A field of a Kubernetes object that \
                  this version does not know is a warning, because the cluster may be newer.",
    after_help = "Examples:
  tidegate validate
  tidegate validate --strict    # for CI: a mistyped field fails too
  tidegate validate . -o json   # for programs
"
)]
pub struct ValidateArgs {
    /// The directory to check: a working copy, or a directory in it
    #[arg(value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// End with 1 when there are warnings, as for errors
    #[arg(long)]
    strict: bool,
}

/// How findings are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// For people, with the source lines; in colour on a terminal.
    Text,
    /// For programs.
    Json,
}

/// What is printed and how the program ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The text, with its last line break.
    pub text: String,
    /// 0, 1 or 2.
    pub code: u8,
}

/// Whether the text is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// Plain text.
    Never,
    /// ANSI styles.
    Always,
}

/// Validates and prints.
///
/// # Errors
/// When the directory cannot be read.
pub(super) fn command(args: &ValidateArgs, screen: &Screen) -> Result<Exit, Failure> {
    let dir = root(&args.dir)?.unwrap_or_else(|| args.dir.clone());
    let loaded = loaded(&dir)?;
    let errors = loaded.errors();
    let colour = match screen.ink {
        Ink::Colour => Colour::Always,
        Ink::Plain => Colour::Never,
    };
    screen.show(&as_json(&loaded, &errors), |_, _| report(&loaded, Output::Text, colour).text)?;
    let fine = errors.is_empty() && (loaded.warnings.is_empty() || !args.strict);
    Ok(if fine { Exit::Done } else { Exit::Findings })
}

/// Validates the directory.
#[must_use]
pub fn validate(dir: &Path, output: Output, colour: Colour) -> Report {
    match loaded(dir) {
        Ok(loaded) => report(&loaded, output, colour),
        Err(error) => Report { text: format!("error: {:#}\n", anyhow::Error::new(error)), code: 2 },
    }
}

/// A file or a directory that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}", path.display())]
pub struct Unreadable {
    path: PathBuf,
    #[source]
    source: io::Error,
}

/// Names the path in what the system says.
fn unreadable(path: &Path) -> impl FnOnce(io::Error) -> Unreadable {
    move |source| Unreadable { path: path.to_owned(), source }
}

/// The root of the repository that a directory lies in: the nearest one with a policy, from there up to the root of the
/// Git clone.
///
/// # Errors
/// When the directory is not there.
pub(super) fn root(dir: &Path) -> Result<Option<PathBuf>, Unreadable> {
    let whole = dir.canonicalize().map_err(unreadable(dir))?;
    let has = |dir: &Path, name: &str| dir.join(name).symlink_metadata().is_ok();
    for above in whole.ancestors() {
        if has(above, policy::FILE) {
            // As it was named, if it was.
            return Ok(Some(if above == whole { dir } else { above }.to_owned()));
        }
        if has(above, ".git") {
            break;
        }
    }
    Ok(None)
}

/// All that the files of a directory say.
///
/// # Errors
/// When a directory or a file cannot be read.
pub(super) fn loaded(dir: &Path) -> Result<Loaded, Unreadable> {
    loaded_with(dir, &Caps::unknown())
}

/// The same where that much is known of the installation.
///
/// # Errors
/// As [`loaded`].
pub(super) fn loaded_with(dir: &Path, caps: &Caps) -> Result<Loaded, Unreadable> {
    let files = read(dir)?;
    let mut loaded = match caps.cluster() {
        Some(_) => load::load(&files, caps),
        None => load::fleet::load_everywhere(&files, caps),
    };
    let below = floors::below(&files, &loaded);
    loaded.warnings.extend(below);
    let links = linked(dir, &files, &loaded);
    loaded.warnings.extend(links);
    for missing in loaded.policy.as_mut().err().into_iter().flatten() {
        if missing.code == Code::PolicyMissing {
            // Only here it is known which directory was taken for the root.
            let whole = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
            missing.found = format!("there is no policy in {}", whole.display());
        }
    }
    Ok(loaded)
}

/// Links to directories among the tenants' files: whoever keeps manifests behind one would wonder where they are. Nothing is opened.
fn linked(dir: &Path, files: &Files, loaded: &Loaded) -> Vec<Diagnostic> {
    let tenants = loaded.policy.as_ref().map(|policy| policy.tenants.values().map(|tenant| &tenant.path).collect());
    let tenants: Vec<&RepoPath> = tenants.unwrap_or_default();
    let links = files.iter().filter(|(_, entry)| matches!(entry, Entry::Symlink)).map(|(path, _)| path);
    let of_tenant = links.filter(|path| tenants.iter().any(|tenant| path.is_within(tenant)));
    let to_directory = of_tenant.filter(|path| dir.join(path.as_str()).is_dir());
    let warn = |path: &RepoPath| {
        let found = format!("{path} is a link to a directory: nothing below it is read");
        Diagnostic::of_file(path, Code::SymlinkIgnored, found, "the directory itself; links are never followed")
    };
    to_directory.map(warn).collect()
}

/// Reads a directory as the controller would the commit of it: the policy, and the manifests of its tenants within the same limits; besides, the
/// files of rollouts that lie elsewhere. Without a policy that names tenants, all that lies there. `.git` is left out, links are noted and
/// never followed.
///
/// # Errors
/// When a directory or a file cannot be read.
pub fn read(dir: &Path) -> Result<Files, Unreadable> {
    let at = dir.join(policy::FILE);
    let policy = at.symlink_metadata().is_ok_and(|found| found.is_file()).then(|| file(&at)).transpose()?;
    let tenants = match &policy {
        Some(Entry::File { bytes, .. }) => policy::directories(bytes),
        _ => BTreeSet::new(),
    };
    let files = walk(dir, &tenants)?;
    if tenants.is_empty() {
        return Ok(files);
    }
    let RemoteLimits { entries, fetch_bytes, tenant_bytes, .. } = RemoteLimits::default();
    let most = Most { entries, tenant_bytes, bytes: fetch_bytes };
    let (mut rest, mut parts) = (Files::new(), BTreeMap::<RepoPath, Files>::new());
    for (path, entry) in files {
        match tenants.iter().find(|tenant| path.is_within(tenant)) {
            None => drop(rest.insert(path, entry)),
            Some(tenant) if path == *tenant => drop(rest.insert(path, unread("it is no directory".to_owned()))),
            Some(tenant) => drop(parts.entry(tenant.clone()).or_default().insert(path, entry)),
        }
    }
    let sizes = parts.iter().map(|(tenant, files)| (tenant.clone(), Extent::of(files))).collect();
    for (tenant, why) in left_out(most, sizes, &BTreeMap::new()) {
        parts.insert(tenant.clone(), [(tenant, unread(why))].into());
    }
    rest.extend(parts.into_values().flatten());
    Ok(rest)
}

fn unread(why: String) -> Entry {
    Entry::Unread { why: why.into() }
}

/// Reads what lies in the directories of tenants, or all if there are none.
fn walk(dir: &Path, tenants: &BTreeSet<RepoPath>) -> Result<Files, Unreadable> {
    let is_read = |path: &RepoPath| {
        let is_tenants = tenants.is_empty() || tenants.iter().any(|tenant| path.is_within(tenant));
        is_tenants || [policy::FILE, fleet::FILE].contains(&path.as_str()) || load::is_rollout_file(path)
    };
    let (mut files, mut open) = (Files::new(), vec![(dir.to_owned(), None::<RepoPath>)]);
    while let Some((dir, base)) = open.pop() {
        for entry in fs::read_dir(&dir).map_err(unreadable(&dir))? {
            let entry = entry.map_err(unreadable(&dir))?;
            if entry.file_name() == ".git" {
                continue;
            }
            let kind = entry.file_type().map_err(unreadable(&entry.path()))?;
            let Some(path) = repo_path(base.as_ref(), &entry.file_name().to_string_lossy()) else {
                let name = entry.file_name().to_string_lossy().into_owned();
                let safe = name.replace(|c: char| c.is_control() || "\\:%~\u{fffd}".contains(c), "_");
                let shown = repo_path(base.as_ref(), &safe).filter(|path| !files.contains_key(path));
                files.extend(shown.filter(is_read).map(|path| (path, Entry::BadName { name })));
                continue;
            };
            if kind.is_dir() {
                open.push((entry.path(), Some(path)));
            } else if kind.is_symlink() && is_read(&path) {
                files.insert(path, Entry::Symlink);
            } else if !kind.is_file() || !is_read(&path) {
                continue;
            } else if !tenants.is_empty() && !is_manifest(path.file_name()) {
                files.insert(path, Entry::other());
            } else {
                files.insert(path, file(&entry.path())?);
            }
        }
    }
    Ok(files)
}

fn repo_path(base: Option<&RepoPath>, name: &str) -> Option<RepoPath> {
    match base {
        Some(base) => format!("{base}/{name}").parse().ok(),
        None => name.parse().ok(),
    }
}

/// The file with its content; without, if that is more than any file of ours may have.
fn file(path: &Path) -> Result<Entry, Unreadable> {
    let most = u64::try_from(yaml::MAX_BYTES).unwrap_or(u64::MAX);
    let file = fs::File::open(path).map_err(unreadable(path))?;
    let size = file.metadata().map_err(unreadable(path))?.len();
    let mut bytes = Vec::new();
    if size <= most {
        file.take(most + 1).read_to_end(&mut bytes).map_err(unreadable(path))?;
    }
    // It may have grown meanwhile.
    let size = size.max(bytes.len() as u64);
    let bytes: Arc<[u8]> = bytes.into();
    Ok(if size > most { Entry::TooLarge { size } } else { Entry::File { blob: oid::blob(&bytes), bytes } })
}

/// The findings as text or JSON.
#[must_use]
pub fn report(loaded: &Loaded, output: Output, colour: Colour) -> Report {
    let errors = loaded.errors();
    let code = u8::from(!errors.is_empty());
    let text = match output {
        Output::Json => {
            let mut text = serde_json::to_string_pretty(&as_json(loaded, &errors)).unwrap_or_default();
            text.push('\n');
            text
        }
        Output::Text => {
            let mut text = String::new();
            for diagnostic in &errors {
                text.push_str(&rendered(diagnostic, Level::ERROR, colour));
            }
            for diagnostic in &loaded.warnings {
                text.push_str(&rendered(diagnostic, Level::WARNING, colour));
            }
            text.push_str(&summary(loaded, errors.len()));
            text
        }
    };
    Report { text, code }
}

fn as_json(loaded: &Loaded, errors: &[&Diagnostic]) -> Value {
    let rollouts: Vec<Value> = loaded
        .rollouts
        .iter()
        .map(|(id, outcome)| match outcome {
            Ok(rollout) => json!({
                "rollout": id.to_string(),
                "path": rollout.path.as_str(),
                "valid": true,
                "set": rollout.set.id.as_str(),
                "revision": rollout.set.revision.as_str(),
            }),
            Err(rejected) => json!({
                "rollout": id.to_string(),
                "path": rejected.paths.first().map(RepoPath::as_str),
                "valid": false,
            }),
        })
        .collect();
    json!({"errors": errors, "warnings": loaded.warnings, "rollouts": rollouts})
}

fn summary(loaded: &Loaded, errors: usize) -> String {
    let valid = loaded.rollouts.values().filter(|outcome| outcome.is_ok()).count();
    let count = |n: usize, what: &str| if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") };
    let unnamed: BTreeSet<&RepoPath> = loaded.unnamed.iter().map(|diagnostic| &diagnostic.path).collect();
    let all = count(loaded.rollouts.len() + unnamed.len(), "rollout");
    let mut parts = vec![format!("{valid} of {all} valid")];
    parts.push(count(errors, "error"));
    if !loaded.warnings.is_empty() {
        parts.push(count(loaded.warnings.len(), "warning"));
    }
    parts.join(", ") + "\n"
}

/// Stands for a line that may hold a secret.
const HIDDEN: &str = "(not shown: this line may hold a secret)";

/// One finding: what is wrong, the place as `path:line:column`, the source line with the spot underlined, advice.
#[must_use]
pub fn rendered(diagnostic: &Diagnostic, level: Level<'_>, colour: Colour) -> String {
    let Diagnostic { path, line, column, length, code, found, expected, help, source } = diagnostic;
    let title = level.primary_title(found.as_str()).id(code.as_str());
    let expected = format!("expected {expected}");
    let place = path.to_string();
    // A line that must not be shown keeps its place.
    let source = if source.is_empty() && *line > 1 { HIDDEN } else { source.as_str() };
    let column = if source == HIDDEN { &1 } else { column };
    let length = if source == HIDDEN { &HIDDEN.len() } else { length };
    let mut group: Group<'_> = if source.is_empty() {
        title
            .element(annotate_snippets::Origin::path(format!("{path}:{line}:{column}")))
            .element(Level::NOTE.message(expected))
    } else {
        let start: usize = source.chars().take(column - 1).map(char::len_utf8).sum();
        let rest = source.get(start..).unwrap_or_default();
        let width: usize = rest.chars().take((*length).max(1)).map(char::len_utf8).sum();
        let spot = AnnotationKind::Primary.span(start..start + width).label(expected);
        title.element(Snippet::source(source).line_start(*line).path(place).annotation(spot))
    };
    if let Some(help) = help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    let renderer = match colour {
        Colour::Never => Renderer::plain(),
        Colour::Always => Renderer::styled(),
    };
    format!("{}\n\n", renderer.render(&[group]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_link_to_a_directory_among_the_files_of_a_tenant_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let policy = "apiVersion: tidegate.io/v1alpha1\nkind: Policy\nspec:\n  \
                      tenants: {shop: {path: shop, namespaces: [shop], clusters: [home]}}\n";
        fs::write(dir.path().join("tidegate.yaml"), policy).unwrap();
        fs::create_dir_all(dir.path().join("shop/web")).unwrap();
        for link in ["shop/linked", "beside"] {
            std::os::unix::fs::symlink(dir.path().join("shop/web"), dir.path().join(link)).unwrap();
        }
        let warnings = loaded(dir.path()).unwrap().warnings;
        let told: Vec<(&str, Code)> = warnings.iter().map(|told| (told.path.as_str(), told.code)).collect();
        assert_eq!(told, [("shop/linked", Code::SymlinkIgnored)], "{warnings:?}");
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let gone = dir.path().join("gone");
        // A directory can be opened like a file, and then not be read.
        let texts = [read(&gone).unwrap_err(), root(&gone).unwrap_err(), file(dir.path()).unwrap_err()];
        let texts = texts.map(|error| format!("{:#}", anyhow::Error::new(error)));
        let wanted = [&gone, &gone, dir.path()].map(|path: &Path| format!("cannot read {}: ", path.display()));
        for (text, wanted) in texts.iter().zip(wanted) {
            assert!(text.starts_with(&wanted) && text.matches("os error").count() == 1, "{text}");
        }
    }
}
