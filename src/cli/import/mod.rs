//! `tidegate import TOOL FILE…`: manifests of Flagger or Argo Rollouts as rollouts, with all that becomes of their fields.
//!
//! What is read is converted by pure functions ([`converted`]); files are read and written at the rim alone. Each tool has one table of
//! its fields; what no table and no conversion names is told as not understood, so nothing is dropped without a word.

mod argo;
mod bare;
mod beside;
mod draft;
mod fields;
mod flagger;
mod input;
mod live;
mod query;
mod undone;
mod yaml;

use super::Exit;
use super::failure::Failure;
use super::screen::Screen;
use super::ui::{Ink, count};
use super::validate::{self, Colour};
use crate::manifest::diagnostic::{Code, Diagnostic};
use crate::manifest::files::RepoPath;
use crate::manifest::ids::Namespace;
use crate::manifest::object::Kind;
use crate::manifest::yaml::MAX_BYTES;
use annotate_snippets::Level;
use anyhow::Context;
use clap::{Args, ValueEnum};
use draft::Draft;
pub use draft::{Expected, Imported, Made, Refused};
pub use fields::{Fate, Told};
use input::{Document, Input};
pub use live::commands as from_cluster;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};

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
    tool: Tool,
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

/// What the help ends with.
fn examples() -> String {
    let live = [Tool::Flagger, Tool::Argo].into_iter().flat_map(|tool| live::commands(tool, "", ""));
    let live: String = live.map(|line| format!("  {line}\n")).collect();
    format!(
        "Examples:
  tidegate import flagger canary.yaml podinfo.yaml
  tidegate import flagger *.yaml --write teams/   # teams/shop/podinfo/rollout.yaml and podinfo.yaml
{live}  tidegate import flagger canary.yaml -o json     # every field with what became of it

kubectl refuses all of it for a kind that the cluster does not have: leave that kind out."
    )
}

/// Whose manifests are imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Tool {
    /// Flagger: flagger.app/v1beta1
    Flagger,
    /// Argo Rollouts: argoproj.io/v1alpha1
    Argo,
    /// None: an application without one
    #[value(skip)]
    Bare,
}

impl Tool {
    /// The group of its objects.
    fn group(self) -> Option<&'static str> {
        match self {
            Self::Flagger => Some(flagger::GROUP),
            Self::Argo => Some(argo::GROUP),
            Self::Bare => None,
        }
    }
}

/// Reads, converts, and prints or writes.
pub(super) fn command(args: &ImportArgs, screen: &Screen) -> Result<Exit, Failure> {
    let provider = args.provider.as_deref();
    match read(args.tool, &args.files, args.namespace.as_str(), provider, screen)? {
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
    if files.len() > input::MOST_FILES {
        return Err(Failure::usage(format!("{} files; expected at most {}", files.len(), input::MOST_FILES)));
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

/// Converts what files hold: pure.
///
/// # Errors
/// What is wrong with the files; nothing is imported then.
pub fn converted(
    tool: Tool,
    files: &[(RepoPath, Vec<u8>)],
    namespace: &str,
    provider: Option<&str>,
) -> Result<Imported, Vec<Diagnostic>> {
    let read = input::read(files, namespace)?;
    let input = live::parted(read.documents, tool.group());
    let imported = match tool {
        Tool::Flagger => flagger::import(&input, provider),
        Tool::Argo => argo::import(&input),
        Tool::Bare => bare::import(&input),
    };
    let Some((path, _)) = files.first().filter(|_| imported.files.is_empty()) else { return Ok(imported) };
    let kind = match tool {
        Tool::Flagger => "a Canary of flagger.app/v1beta1",
        Tool::Argo => "a Rollout of argoproj.io/v1alpha1",
        Tool::Bare => "a Deployment of apps/v1",
    };
    Err(vec![Diagnostic::of_file(path, Code::Schema, "there is nothing to import in these files", kind)])
}

/// One line of a tool's tables: the kind of object, the field with all below it, what becomes of it, and where it goes or why not.
pub type Line = (&'static str, &'static str, Fate, &'static str);

/// All that is known of a tool's fields, for the documents; [`Told`] may say something else of a single one.
#[must_use]
pub fn lines(tool: Tool) -> Vec<Line> {
    let tables = match tool {
        Tool::Flagger => flagger::TABLES,
        Tool::Argo => argo::TABLES,
        Tool::Bare => &[],
    };
    let every = [("every object", fields::OBJECT)];
    let all = every.iter().chain(tables);
    all.flat_map(|(kind, rows)| rows.iter().map(|&(path, fate, text)| (*kind, path, fate, text))).collect()
}

/// Each router of a tool, what it becomes here, and what its metrics become, for the documents.
#[must_use]
pub fn routers(tool: Tool) -> Vec<[String; 3]> {
    match tool {
        Tool::Flagger => flagger::providers(),
        Tool::Argo => argo::routers(),
        Tool::Bare => Vec::new(),
    }
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

/// Puts drafts and the manifests that belong to them together: all objects but those of a tool's group.
fn merge(
    input: &Input,
    group: Option<&str>,
    mut drafts: Vec<Draft>,
    providers: draft::Providers,
    mut fields: Vec<Told>,
) -> Imported {
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    tell_apart(&mut drafts);
    drafts.iter().for_each(|draft| tell_names(draft, &mut fields));
    for document in input.documents.iter().filter(|document| Some(document.group()) != group) {
        let (fate, text) = match owner(document, &drafts) {
            Ok(draft) => {
                let beside::Beside { text, fate, told } = beside::manifest(document, draft, input);
                texts.entry(draft.manifests()).or_default().extend(text);
                (fate, told)
            }
            Err(told) => told,
        };
        fields.extend(told_whole(document, fate, text));
    }
    for document in &input.made {
        let (maker, Document { kind, name, .. }) = (live::maker(document, group).unwrap_or_default(), document);
        fields.extend(told_whole(document, Fate::NotNeeded, format!("{kind} {name}: {maker}, and it is no manifest")));
    }
    let mut imported = Imported { providers: providers.all(), ..Imported::default() };
    for draft in &drafts {
        let path = draft.manifests();
        let mut all: Vec<String> = draft.objects.iter().map(yaml::written).collect();
        all.extend(texts.remove(&path).unwrap_or_default());
        imported.files.push(draft.file());
        imported.refused.extend(draft.refused());
        if !all.is_empty() {
            imported.files.push(Made { path: path.clone(), text: all.join("---\n") });
        }
        let there = |kind: Kind, name: &str| {
            let is_it = |d: &&Document| d.manifest() == Some(kind) && d.name == name && d.namespace == draft.namespace;
            let made =
                |object: &serde_json::Value| object["kind"] == kind.as_str() && object["metadata"]["name"] == name;
            input.documents.iter().any(|d| is_it(&d)) || draft.objects.iter().any(made)
        };
        let missing = draft.refers.iter().filter(|(kind, name, _)| !there(*kind, name));
        imported.expected.extend(missing.map(|(kind, name, why)| Expected {
            file: path.clone(),
            object: crate::record::text::plain(&format!("{kind} {name}")),
            why: (*why).to_owned(),
        }));
    }
    fields.sort_by(|a, b| (&a.file, a.line, a.column).cmp(&(&b.file, b.line, b.column)));
    imported.fields = fields;
    imported
}

/// What is said of a rollout that has no check: a version that fails only its users would be promoted.
fn unmeasured(document: &Document, draft: &Draft) -> Vec<Told> {
    let checked = draft.phases.iter().map(|phase| &phase.checks).chain([&draft.promotion.checks]);
    if checked.into_iter().any(|checks| !checks.is_empty()) {
        return Vec::new();
    }
    let text =
        "no check is imported: nothing but its pods' readiness takes the new version back, until you write spec.checks";
    told_whole(document, Fate::Differs, text.to_owned())
}

/// What becomes of an object as a whole.
fn told_whole(document: &Document, fate: Fate, text: String) -> Vec<Told> {
    let mut notes = fields::Notes::default();
    notes.say(&document.root(), fate, text);
    fields::told(document, &[], &notes)
}

/// What becomes of an object of the tool that is no rollout itself, with what the rollouts that refer to it said of it.
fn told_of_other(document: &Document, tables: &[(&str, &[fields::Row])], notes: Option<fields::Notes>) -> Vec<Told> {
    let rows = tables.iter().find(|(kind, _)| *kind == document.kind).map(|(_, rows)| *rows);
    let is_used = notes.is_some();
    let mut notes = notes.unwrap_or_default();
    match rows {
        None => notes.say(
            &document.root(),
            Fate::DoneOtherwise,
            "objects of this kind are not imported: leave it where it is",
        ),
        Some(_) if document.kind.ends_with("Template") && !is_used => {
            notes.say(&document.at("/spec"), Fate::NotNeeded, "no check that was imported refers to it");
        }
        Some(_) => {}
    }
    fields::told(document, &[fields::OBJECT, rows.unwrap_or_default()], &notes)
}

/// Two rollouts never share a file: of two objects with one name the later one gets another.
fn tell_apart(drafts: &mut [Draft]) {
    let mut seen = std::collections::BTreeSet::new();
    for draft in drafts {
        let taken = |name: &str| seen.contains(&(draft.namespace.clone(), name.to_owned()));
        draft.name = draft::name_of(&draft.name, 52, taken);
        seen.insert((draft.namespace.clone(), draft.name.clone()));
    }
}

/// Says of a name or a namespace that it is another one here.
fn tell_names(draft: &Draft, fields: &mut [Told]) {
    let draft::Origin { file, line, namespace, name } = &draft.origin;
    for (path, was, is) in [("metadata.name", name, &draft.name), ("metadata.namespace", namespace, &draft.namespace)] {
        let mut here = fields.iter_mut().filter(|told| told.file == *file && told.line >= *line);
        if let Some(told) = here.find(|told| told.path == path).filter(|_| was != is) {
            told.fate = Fate::Differs;
            told.text =
                format!("{path}: {is}, as a rollout's is of lower-case letters, digits and dashes, and no other's");
        }
    }
}

/// The rollout that a manifest belongs to: the one that refers to it, else the only one of its namespace.
fn owner<'a>(document: &Document, drafts: &'a [Draft]) -> Result<&'a Draft, (Fate, String)> {
    let Some(kind) = document.manifest() else {
        let text = "objects of this kind cannot stand beside a rollout: leave it where it is";
        return Err((Fate::DoneOtherwise, text.to_owned()));
    };
    let near: Vec<&Draft> = drafts.iter().filter(|draft| draft.namespace == document.namespace).collect();
    let scaled = document.at("/spec/scaleTargetRef/name");
    let refers = |draft: &&&Draft| {
        let named = draft.refers.iter().any(|(wanted, name, _)| *wanted == kind && *name == document.name);
        named || scaled.text().is_some_and(|name| name == draft.target)
    };
    match (near.iter().find(refers), near.as_slice()) {
        (Some(draft), _) => Ok(draft),
        (None, [one]) => Ok(one),
        (None, []) => {
            Err((Fate::DoneOtherwise, "no rollout is imported in its namespace: leave it where it is".to_owned()))
        }
        (None, _) => {
            Err((Fate::DoneOtherwise, "no rollout refers to it: put it beside the one that it belongs to".to_owned()))
        }
    }
}

fn mistakes(wrong: &[Diagnostic], ink: Ink) -> String {
    let colour = match ink {
        Ink::Colour => Colour::Always,
        Ink::Plain => Colour::Never,
    };
    let all: String = wrong.iter().map(|diagnostic| validate::rendered(diagnostic, Level::ERROR, colour)).collect();
    format!("{all}nothing was imported, {}\n", count(wrong.len(), "error"))
}

/// All files as one stream, each with its path.
fn manifests(files: &[Made]) -> String {
    files.iter().map(|Made { path, text }| format!("---\n# {path}\n{text}")).collect()
}

/// The same, and how many fields there were.
fn report(imported: &Imported, ink: Ink) -> String {
    let fields = &imported.fields;
    let whole = fields.iter().filter(|told| told.fate == Fate::Imported).count();
    let fields = count(fields.len(), "field");
    format!("{}\n{whole} of {fields} imported as they are, all others are named above\n", differences(imported, ink))
}

/// What is not imported as it is, and what has to be added.
pub(super) fn differences(imported: &Imported, ink: Ink) -> String {
    let Imported { files: _, expected, refused, providers, fields } = imported;
    let mut out = String::new();
    for Told { file, line, column, object: _, path, fate, text } in
        fields.iter().filter(|told| told.fate != Fate::Imported)
    {
        let words = match fate {
            Fate::Imported | Fate::NotNeeded | Fate::DoneOtherwise => ink.dim(fate.words()),
            Fate::Differs | Fate::NotBuilt => ink.warn(fate.words()),
            Fate::NotUnderstood => ink.bad(fate.words()),
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
    for Refused { file, check, why } in refused {
        let _ = writeln!(out, "  {file}: {check}: {why}");
    }
    if !providers.is_empty() {
        let _ =
            writeln!(out, "\n{}", ink.bold("To be put into the Installation, with credentials if they ask for any:"));
        let spec = serde_json::json!({"spec": {"providers": providers}});
        for line in yaml::written(&spec).lines() {
            let _ = writeln!(out, "  {line}");
        }
    }
    out
}

#[cfg(test)]
mod tests;
