//! `tidegate import`: manifests of Flagger or Argo Rollouts as rollouts, with all that becomes of their fields.
//!
//! Pure: files in, files and notes out ([`converted`]). One table has the fields of both tools (`fields.txt`); what neither that nor a conversion
//! names is told as not understood, so nothing is dropped without a word.

mod argo;
mod bare;
mod beside;
mod draft;
mod fields;
mod flagger;
mod header;
mod input;
mod live;
mod query;
mod router;
mod undone;
mod yaml;

use draft::{Draft, Providers};
pub use draft::{Expected, Imported, Made, RefusedCheck};
use fields::Notes;
pub use fields::{FieldOutcome, Note};
pub use input::MOST_FILES;
use input::{Document, Input};
pub use live::commands as from_cluster;
pub use router::lines as routers;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use tidegate_controller::manifest::diagnostic::{Code, Diagnostic};
use tidegate_controller::manifest::files::RepoPath;
use tidegate_controller::manifest::object::Kind;
use tidegate_controller::record::text::plain;
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
    /// What the command line and the table of fields call it.
    fn name(self) -> &'static str {
        match self {
            Self::Flagger => "flagger",
            Self::Argo => "argo",
            Self::Bare => "bare",
        }
    }

    /// Group and version, and kind, of what becomes a rollout.
    fn objects(self) -> (&'static str, &'static str) {
        match self {
            Self::Flagger => ("flagger.app/v1beta1", "Canary"),
            Self::Argo => ("argoproj.io/v1alpha1", "Rollout"),
            Self::Bare => ("apps/v1", "Deployment"),
        }
    }

    /// Whether objects of this group and version are a tool's.
    fn owns(self, api_version: &str) -> bool {
        let group = |api_version: &str| api_version.rsplit_once('/').map(|(group, _)| group.to_owned());
        self != Self::Bare && group(api_version) == group(self.objects().0)
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
    let input = live::parted(input::read(files, namespace)?.documents, tool);
    let imported = match tool {
        Tool::Flagger => flagger::import(&input, provider),
        Tool::Argo => argo::import(&input),
        Tool::Bare => bare::import(&input),
    };
    let Some((path, _)) = files.first().filter(|_| imported.files.is_empty()) else { return Ok(imported) };
    let (api_version, kind) = tool.objects();
    let kind = format!("a {kind} of {api_version}");
    Err(vec![Diagnostic::of_file(path, Code::Schema, "there is nothing to import in these files", kind)])
}

/// One line of the table of fields: the kind of object, the field with all below it, what becomes of it, and where it goes or why not.
pub type Line = (&'static str, &'static str, FieldOutcome, &'static str);

/// All that is known of a tool's fields, for the documents; [`Note`] may say something else of a single one.
#[must_use]
pub fn lines(tool: Tool) -> Vec<Line> {
    let tables = fields::TABLES.iter().filter(|table| ["both", tool.name()].contains(&table.tool));
    let one =
        |table: &'static fields::Table| table.rows.iter().map(|&(path, of, text)| (table.kinds[0], path, of, text));
    tables.flat_map(one).collect()
}

/// What is shared by all that is converted at a time.
#[derive(Default)]
struct Shared {
    /// Whom checks ask.
    providers: Providers,
    /// What is said of templates that checks refer to, by kind, namespace and name.
    used: BTreeMap<(String, String, String), Notes>,
}

/// Imports a tool's objects. `convert` makes a draft of the object of that number, and says what becomes of its fields.
fn import(
    tool: Tool,
    input: &Input,
    own: &[Document],
    mut convert: impl FnMut(usize, &Document, &mut Shared) -> (Draft, Notes),
) -> Imported {
    let (mut shared, mut drafts, mut fields) = (Shared::default(), Vec::new(), Vec::new());
    let (rollouts, others): (Vec<_>, Vec<_>) = own.iter().partition(|document| document.kind == tool.objects().1);
    let mut seen = BTreeSet::new();
    for (n, document) in rollouts.into_iter().enumerate() {
        let (mut draft, mut notes) = convert(n, document, &mut shared);
        draft.tell_apart(&mut seen);
        tell_names(document, &draft, &mut notes);
        fields.extend(fields::each(document, tool, &notes));
        fields.extend(unmeasured(document, &draft));
        drafts.push(draft);
    }
    for document in others {
        fields.extend(of_other(document, tool, shared.used.remove(&document.key())));
    }
    merge(input, tool, &drafts, shared.providers, fields)
}

/// Puts drafts and the manifests that belong to them together: all objects but those of a tool's group.
fn merge(input: &Input, tool: Tool, drafts: &[Draft], providers: Providers, mut fields: Vec<Note>) -> Imported {
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for document in input.documents.iter().filter(|document| !tool.owns(&document.api_version)) {
        let (outcome, text) = match owner(document, drafts) {
            Ok(draft) => {
                let beside::Beside { text, outcome, note } = beside::manifest(document, draft, input);
                texts.entry(draft.manifests()).or_default().extend(text);
                (outcome, note)
            }
            Err(why) => (FieldOutcome::DoneOtherwise, why.to_owned()),
        };
        fields.push(fields::whole(document, outcome, &text));
    }
    for document in &input.made {
        let (maker, Document { kind, name, .. }) = (live::maker(document, tool).unwrap_or_default(), document);
        let text = format!("{kind} {name}: {maker}, and it is no manifest");
        fields.push(fields::whole(document, FieldOutcome::NotNeeded, &text));
    }
    fields.sort_by(|a, b| (&a.file, a.line, a.column).cmp(&(&b.file, b.line, b.column)));
    let mut imported = Imported { providers: providers.0, fields, ..Imported::default() };
    for draft in drafts {
        let path = draft.manifests();
        let mut all: Vec<String> = draft.objects.iter().map(yaml::written).collect();
        all.extend(texts.remove(&path).unwrap_or_default());
        imported.files.push(draft.file());
        imported.refused.extend(draft.refused());
        if !all.is_empty() {
            imported.files.push(Made { path: path.clone(), text: all.join("---\n") });
        }
        let there = |kind: Kind, name: &str| {
            let made = |object: &Value| object["kind"] == kind.as_str() && object["metadata"]["name"] == name;
            input.find(kind, &draft.namespace, name).is_some() || draft.objects.iter().any(made)
        };
        let missing = draft.refers.iter().filter(|(kind, name, _)| !there(*kind, name));
        imported.expected.extend(missing.map(|(kind, name, why)| Expected {
            file: path.clone(),
            object: plain(&format!("{kind} {name}")),
            why: (*why).to_owned(),
        }));
    }
    imported
}

/// What is said of a rollout that has no check: a version that fails only its users would be promoted.
fn unmeasured(document: &Document, draft: &Draft) -> Option<Note> {
    let mut checked = draft.phases.iter().map(|phase| &phase.checks).chain([&draft.promotion.checks]);
    let text =
        "no check is imported: nothing but its pods' readiness takes the new version back, until you write spec.checks";
    checked.all(Vec::is_empty).then(|| fields::whole(document, FieldOutcome::Differs, text))
}

/// What becomes of an object of the tool that is no rollout itself, with what the rollouts that refer to it said of it.
fn of_other(document: &Document, tool: Tool, notes: Option<Notes>) -> Vec<Note> {
    if fields::rows(tool, &document.kind).is_none() {
        let text = "objects of this kind are not imported: leave it where it is";
        return vec![fields::whole(document, FieldOutcome::DoneOtherwise, text)];
    }
    let is_used = notes.is_some() || !document.kind.ends_with("Template");
    let mut notes = notes.unwrap_or_default();
    if !is_used {
        notes.say(&document.at("/spec"), FieldOutcome::NotNeeded, "no check that was imported refers to it");
    }
    fields::each(document, tool, &notes)
}

/// Says of a name or a namespace that it is another one here.
fn tell_names(document: &Document, draft: &Draft, notes: &mut Notes) {
    let both = [("name", &document.name, &draft.name), ("namespace", &document.namespace, &draft.namespace)];
    for (field, _, is) in both.into_iter().filter(|(_, was, is)| was != is) {
        let text = format!(
            "metadata.{field}: {is}, as a rollout's is of lower-case letters, digits and dashes, and no other's"
        );
        notes.say(&document.at(&format!("/metadata/{field}")), FieldOutcome::Differs, text);
    }
}

/// The rollout that a manifest belongs to: the one that refers to it, else the only one of its namespace.
fn owner<'a>(document: &Document, drafts: &'a [Draft]) -> Result<&'a Draft, &'static str> {
    let kind = document.manifest();
    let kind = kind.ok_or("objects of this kind cannot stand beside a rollout: leave it where it is")?;
    let near: Vec<&Draft> = drafts.iter().filter(|draft| draft.namespace == document.namespace).collect();
    let scaled = document.at("/spec/scaleTargetRef/name");
    let refers = |draft: &&&Draft| {
        let named = draft.refers.iter().any(|(wanted, name, _)| *wanted == kind && *name == document.name);
        named || scaled.text().is_some_and(|name| name == draft.target)
    };
    match (near.iter().find(refers), near.as_slice()) {
        (Some(draft), _) => Ok(draft),
        (None, [one]) => Ok(one),
        (None, []) => Err("no rollout is imported in its namespace: leave it where it is"),
        (None, _) => Err("no rollout refers to it: put it beside the one that it belongs to"),
    }
}

/// All files as one stream, each with its path.
#[must_use]
pub fn manifests(files: &[Made]) -> String {
    files.iter().map(|Made { path, text }| format!("---\n# {path}\n{text}")).collect()
}

#[cfg(test)]
mod tests;
