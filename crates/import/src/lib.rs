//! `tidegate import`: manifests of Flagger or Argo Rollouts as rollouts, with all that becomes of their fields.
//!
//! Pure: files in, files and notes out ([`converted`]). Each tool has one table of its fields; what no table and no conversion names is told
//! as not understood, so nothing is dropped without a word.

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

use draft::Draft;
pub use draft::{Expected, Imported, Made, Refused};
pub use fields::{Note, Outcome};
pub use input::MOST_FILES;
use input::{Document, Input};
pub use live::commands as from_cluster;
use std::collections::BTreeMap;
use tidegate_controller::manifest::diagnostic::{Code, Diagnostic};
use tidegate_controller::manifest::files::RepoPath;
use tidegate_controller::manifest::object::Kind;
pub use yaml::written;

/// Whose manifests are imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// Flagger: flagger.app/v1beta1
    Flagger,
    /// Argo Rollouts: argoproj.io/v1alpha1
    Argo,
    /// None: an application without one
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
pub type Line = (&'static str, &'static str, Outcome, &'static str);

/// All that is known of a tool's fields, for the documents; [`Note`] may say something else of a single one.
#[must_use]
pub fn lines(tool: Tool) -> Vec<Line> {
    let tables = match tool {
        Tool::Flagger => flagger::TABLES,
        Tool::Argo => argo::TABLES,
        Tool::Bare => &[],
    };
    let every = [("every object", fields::OBJECT)];
    let all = every.iter().chain(tables);
    all.flat_map(|(kind, rows)| rows.iter().map(|&(path, outcome, text)| (*kind, path, outcome, text))).collect()
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

/// Puts drafts and the manifests that belong to them together: all objects but those of a tool's group.
fn merge(
    input: &Input,
    group: Option<&str>,
    mut drafts: Vec<Draft>,
    providers: draft::Providers,
    mut fields: Vec<Note>,
) -> Imported {
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    tell_apart(&mut drafts);
    drafts.iter().for_each(|draft| tell_names(draft, &mut fields));
    for document in input.documents.iter().filter(|document| Some(document.group()) != group) {
        let (outcome, text) = match owner(document, &drafts) {
            Ok(draft) => {
                let beside::Beside { text, outcome, note } = beside::manifest(document, draft, input);
                texts.entry(draft.manifests()).or_default().extend(text);
                (outcome, note)
            }
            Err(note) => note,
        };
        fields.extend(whole(document, outcome, text));
    }
    for document in &input.made {
        let (maker, Document { kind, name, .. }) = (live::maker(document, group).unwrap_or_default(), document);
        fields.extend(whole(document, Outcome::NotNeeded, format!("{kind} {name}: {maker}, and it is no manifest")));
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
            object: tidegate_controller::record::text::plain(&format!("{kind} {name}")),
            why: (*why).to_owned(),
        }));
    }
    fields.sort_by(|a, b| (&a.file, a.line, a.column).cmp(&(&b.file, b.line, b.column)));
    imported.fields = fields;
    imported
}

/// What is said of a rollout that has no check: a version that fails only its users would be promoted.
fn unmeasured(document: &Document, draft: &Draft) -> Vec<Note> {
    let checked = draft.phases.iter().map(|phase| &phase.checks).chain([&draft.promotion.checks]);
    if checked.into_iter().any(|checks| !checks.is_empty()) {
        return Vec::new();
    }
    let text =
        "no check is imported: nothing but its pods' readiness takes the new version back, until you write spec.checks";
    whole(document, Outcome::Differs, text.to_owned())
}

/// What becomes of an object as a whole.
fn whole(document: &Document, outcome: Outcome, text: String) -> Vec<Note> {
    let mut notes = fields::Notes::default();
    notes.say(&document.root(), outcome, text);
    fields::note(document, &[], &notes)
}

/// What becomes of an object of the tool that is no rollout itself, with what the rollouts that refer to it said of it.
fn notes_of_other(document: &Document, tables: &[(&str, &[fields::Row])], notes: Option<fields::Notes>) -> Vec<Note> {
    let rows = tables.iter().find(|(kind, _)| *kind == document.kind).map(|(_, rows)| *rows);
    let is_used = notes.is_some();
    let mut notes = notes.unwrap_or_default();
    match rows {
        None => notes.say(
            &document.root(),
            Outcome::DoneOtherwise,
            "objects of this kind are not imported: leave it where it is",
        ),
        Some(_) if document.kind.ends_with("Template") && !is_used => {
            notes.say(&document.at("/spec"), Outcome::NotNeeded, "no check that was imported refers to it");
        }
        Some(_) => {}
    }
    fields::note(document, &[fields::OBJECT, rows.unwrap_or_default()], &notes)
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
fn tell_names(draft: &Draft, fields: &mut [Note]) {
    let draft::Origin { file, line, namespace, name } = &draft.origin;
    for (path, was, is) in [("metadata.name", name, &draft.name), ("metadata.namespace", namespace, &draft.namespace)] {
        let mut here = fields.iter_mut().filter(|note| note.file == *file && note.line >= *line);
        if let Some(note) = here.find(|note| note.path == path).filter(|_| was != is) {
            note.outcome = Outcome::Differs;
            note.text =
                format!("{path}: {is}, as a rollout's is of lower-case letters, digits and dashes, and no other's");
        }
    }
}

/// The rollout that a manifest belongs to: the one that refers to it, else the only one of its namespace.
fn owner<'a>(document: &Document, drafts: &'a [Draft]) -> Result<&'a Draft, (Outcome, String)> {
    let Some(kind) = document.manifest() else {
        let text = "objects of this kind cannot stand beside a rollout: leave it where it is";
        return Err((Outcome::DoneOtherwise, text.to_owned()));
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
            Err((Outcome::DoneOtherwise, "no rollout is imported in its namespace: leave it where it is".to_owned()))
        }
        (None, _) => Err((
            Outcome::DoneOtherwise,
            "no rollout refers to it: put it beside the one that it belongs to".to_owned(),
        )),
    }
}

/// All files as one stream, each with its path.
#[must_use]
pub fn manifests(files: &[Made]) -> String {
    files.iter().map(|Made { path, text }| format!("---\n# {path}\n{text}")).collect()
}

#[cfg(test)]
mod tests;
