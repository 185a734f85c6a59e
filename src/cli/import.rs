//! `tidegate import TOOL FILE…`: reads files, has them converted by `tidegate_import`, and writes what comes of it.

use super::Exit;
use super::failure::Failure;
use super::screen::Screen;
use super::ui::Ink;
use super::validate::{self, Colour};
use crate::manifest::diagnostic::Diagnostic;
use crate::manifest::files::RepoPath;
use crate::manifest::ids::Namespace;
use crate::manifest::yaml::MAX_BYTES;
use crate::record::text::count;
use annotate_snippets::Level;
use anyhow::Context;
use clap::{Args, ValueEnum};
use std::fmt::Write;
use std::fs;
use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};
use tidegate_import::{
    self as import, Expected, FieldOutcome, Imported, MOST_FILES, Made, Note, RefusedCheck, Tool, converted, manifests,
    written,
};

/// Make rollouts of what Flagger or Argo Rollouts read
#[derive(Debug, Clone, Args)]
#[command(
    long_about = "Makes rollouts of the manifests of Flagger (Canary, MetricTemplate, AlertProvider) or Argo Rollouts (Rollout, \
                  AnalysisTemplate, ClusterAnalysisTemplate). Deployments, Services and the like that are among the files are put \
                  beside their rollout; a Canary's Service and HTTPRoute and a Rollout's Deployment are made if they are not. Objects of a \
                  cluster are taken as kubectl prints them, without what the API server, Flagger or Argo Rollouts has put into them.\n\n\
                  Prints the files, and on standard error what becomes of each field that is not imported as it is, with its place. \
                  With --write, or as JSON or YAML, all of it goes to standard output. Nothing in a cluster is read or changed.",
    after_help = examples()
)]
pub struct ImportArgs {
    /// Whose manifests they are
    tool: Of,
    /// The files; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Writes the files below this directory, as NAMESPACE/NAME/…; none that is there is overwritten
    #[arg(short, long, value_name = "DIR")]
    write: Option<PathBuf>,
    /// The namespace of objects that name none
    #[arg(short, long, value_name = "NAME", default_value = "default")]
    namespace: Namespace,
    /// Flagger's provider (its flag -mesh-provider) where a Canary names none, such as gatewayapi:v1 or kubernetes
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
}

/// Whose manifests are imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Of {
    /// Flagger: flagger.app/v1beta1
    Flagger,
    /// Argo Rollouts: argoproj.io/v1alpha1
    Argo,
}

impl From<Of> for Tool {
    fn from(of: Of) -> Self {
        match of {
            Of::Flagger => Self::Flagger,
            Of::Argo => Self::Argo,
        }
    }
}

/// What the help ends with.
fn examples() -> String {
    let live = [Tool::Flagger, Tool::Argo].into_iter().flat_map(|tool| import::from_cluster(tool, "", ""));
    let live: String = live.map(|line| format!("  {line}\n")).collect();
    format!(
        "Examples:
  tidegate import flagger canary.yaml podinfo.yaml
  tidegate import flagger *.yaml --write teams/   # teams/shop/podinfo/rollout.yaml and podinfo.yaml
{live}  tidegate import flagger canary.yaml -o json     # every field with what became of it

kubectl refuses all of it for a kind that the cluster does not have: leave that kind out."
    )
}

/// Reads, converts, and prints or writes.
pub(super) fn command(args: &ImportArgs, screen: &Screen) -> Result<Exit, Failure> {
    let provider = args.provider.as_deref();
    match read(args.tool.into(), &args.files, args.namespace.as_str(), provider, screen)? {
        Some(imported) => deliver(&imported, args.write.as_deref(), &report(&imported, screen.ink), screen),
        None => Ok(Exit::Findings),
    }
}

/// Reads files and converts them; what is wrong with them is shown, and then there is nothing.
pub(super) fn read(
    tool: Tool,
    files: &[PathBuf],
    namespace: &str,
    provider: Option<&str>,
    screen: &Screen,
) -> Result<Option<Imported>, Failure> {
    if files.len() > MOST_FILES {
        return Err(Failure::usage(format!("{} files; expected at most {}", files.len(), MOST_FILES)));
    }
    let files: Vec<(RepoPath, Vec<u8>)> = files.iter().map(|path| content(path)).collect::<Result<_, _>>()?;
    match converted(tool, &files, namespace, provider) {
        Ok(imported) => Ok(Some(imported)),
        Err(wrong) => {
            screen.show(&serde_json::json!({"errors": wrong}), |_, ink| mistakes(&wrong, ink))?;
            Ok(None)
        }
    }
}

/// Prints what was made, or writes it below a directory, and says what `words` say about it.
pub(super) fn deliver(imported: &Imported, dir: Option<&Path>, words: &str, screen: &Screen) -> Result<Exit, Failure> {
    if let Some(dir) = dir {
        write(dir, &imported.files)?;
    }
    if screen.format != super::args::Format::Table {
        screen.show(imported, |_, _| String::new())?;
        return Ok(Exit::Done);
    }
    match dir {
        Some(dir) => {
            let wrote = |made: &Made| format!("wrote {}\n", dir.join(&made.path).display());
            screen.print(&format!("{words}{}", imported.files.iter().map(wrote).collect::<String>()))?;
        }
        None => {
            screen.print(&manifests(&imported.files))?;
            // There is nowhere left to say that standard error is closed.
            anstream::stderr().lock().write_all(words.as_bytes()).ok();
        }
    }
    Ok(Exit::Done)
}

/// The path as it is shown, and the content: a byte more than a file may have at the most.
fn content(path: &Path) -> Result<(RepoPath, Vec<u8>), Failure> {
    let most = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX) + 1;
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        std::io::stdin().lock().take(most).read_to_end(&mut bytes)?;
        return Ok((shown("stdin"), bytes));
    }
    let unreadable = || format!("cannot read {}", path.display());
    let file = fs::File::open(path).with_context(unreadable)?;
    file.take(most).read_to_end(&mut bytes).with_context(unreadable)?;
    Ok((shown(&path.to_string_lossy()), bytes))
}

/// A path of a command line as diagnostics name it; of one that leaves the working copy, what is below.
fn shown(path: &str) -> RepoPath {
    let parts = path.split('/').filter(|part| !matches!(*part, "" | "." | ".."));
    let clean = |part: &str| part.replace(|c: char| c.is_control() || "\\:%~".contains(c), "_");
    let path = parts.map(clean).collect::<Vec<_>>().join("/");
    path.parse().or_else(|_| "input".parse()).expect("a plain word is a path")
}

/// Writes files that are not there yet.
fn write(dir: &Path, files: &[Made]) -> Result<(), Failure> {
    if let Some(there) = files.iter().map(|made| dir.join(&made.path)).find(|path| path.symlink_metadata().is_ok()) {
        return Err(Failure::failed(format!("{} is there already; nothing was written", there.display())));
    }
    for made in files {
        let path = dir.join(&made.path);
        let unwritable = || format!("cannot write {}", path.display());
        path.parent().map_or(Ok(()), fs::create_dir_all).with_context(unwritable)?;
        fs::File::create_new(&path)
            .and_then(|mut file| file.write_all(made.text.as_bytes()))
            .with_context(unwritable)?;
    }
    Ok(())
}

fn mistakes(wrong: &[Diagnostic], ink: Ink) -> String {
    let colour = match ink {
        Ink::Colour => Colour::Always,
        Ink::Plain => Colour::Never,
    };
    let all: String = wrong.iter().map(|diagnostic| validate::rendered(diagnostic, Level::ERROR, colour)).collect();
    format!("{all}nothing was imported, {}\n", count(wrong.len(), "error"))
}

/// The same, and how many fields there were.
fn report(imported: &Imported, ink: Ink) -> String {
    let fields = &imported.fields;
    let whole = fields.iter().filter(|note| note.outcome == FieldOutcome::Imported).count();
    let fields = count(fields.len(), "field");
    format!("{}\n{whole} of {fields} imported as they are, all others are named above\n", differences(imported, ink))
}

/// What is not imported as it is, and what has to be added.
pub(super) fn differences(imported: &Imported, ink: Ink) -> String {
    let Imported { files: _, expected, refused, providers, fields } = imported;
    let mut out = String::new();
    for Note { file, line, column, object: _, path, outcome, text } in
        fields.iter().filter(|note| note.outcome != FieldOutcome::Imported)
    {
        let words = match outcome {
            FieldOutcome::Imported | FieldOutcome::NotNeeded | FieldOutcome::DoneOtherwise => ink.dim(outcome.words()),
            FieldOutcome::Differs | FieldOutcome::NotBuilt => ink.warn(outcome.words()),
            FieldOutcome::NotUnderstood => ink.bad(outcome.words()),
        };
        let path = if path.is_empty() { "the whole object" } else { path };
        let _ = writeln!(out, "{file}:{line}:{column}: {path}: {words}: {text}");
    }
    if !expected.is_empty() {
        let _ = writeln!(out, "\n{}", ink.bold("To be put beside it:"));
    }
    for Expected { file, object, why } in expected {
        let _ = writeln!(out, "  {file}: {object}, {why}");
    }
    if !refused.is_empty() {
        let _ = writeln!(out, "\n{}", ink.bold("To be written anew, as tidegate validate refuses these queries:"));
    }
    for RefusedCheck { file, check, why } in refused {
        let _ = writeln!(out, "  {file}: {check}: {why}");
    }
    if !providers.is_empty() {
        let _ =
            writeln!(out, "\n{}", ink.bold("To be put into the Installation, with credentials if they ask for any:"));
        let spec = serde_json::json!({"spec": {"providers": providers}});
        for line in written(&spec).lines() {
            let _ = writeln!(out, "  {line}");
        }
    }
    out
}

#[cfg(test)]
mod tests;
