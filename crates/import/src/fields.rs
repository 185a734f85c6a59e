//! What becomes of each field: nothing of the input is dropped without a word.

use super::input::{Document, Field};
use serde::Serialize;
use std::collections::BTreeMap;
use tidegate_controller::manifest::yaml::{Content, Node};
use tidegate_controller::record::text::plain;

/// What became of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// It is in what was made, and means the same.
    Imported,
    /// It is in what was made, and does not mean quite the same.
    Differs,
    /// No field says it here: it is so without one, or said elsewhere.
    DoneOtherwise,
    /// It has no purpose here.
    NotNeeded,
    /// There is nothing of the kind here yet.
    NotBuilt,
    /// It is no field that this version knows, or no value that it understands.
    NotUnderstood,
}

impl Outcome {
    /// In words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Imported => "imported",
            Self::Differs => "differs",
            Self::DoneOtherwise => "done otherwise",
            Self::NotNeeded => "not needed",
            Self::NotBuilt => "not built",
            Self::NotUnderstood => "not understood",
        }
    }
}

/// One line of a table: a field with all below it, what becomes of it, and where it goes or why it does not.
pub(super) type Row = (&'static str, Outcome, &'static str);

/// What became of one field of one object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// Its kind and name: `Canary shop/podinfo`.
    pub object: String,
    /// Its path: `spec.analysis.metrics[0].name`.
    pub path: String,
    /// What became of it. Its name in what is printed is older.
    #[serde(rename = "fate")]
    pub outcome: Outcome,
    /// Where it went, or why it did not.
    pub text: String,
}

/// What is said of single fields, over what the table says of all of their kind.
#[derive(Debug, Clone, Default)]
pub(super) struct Notes {
    /// By the place of the field.
    said: BTreeMap<String, (Outcome, String)>,
    /// Of fields that are not there.
    unsaid: BTreeMap<String, (Outcome, String)>,
}

impl Notes {
    /// Says what became of a field with all below it. What was said of it before stays: it was closer to the matter.
    pub(super) fn say(&mut self, field: &Field<'_>, outcome: Outcome, text: impl Into<String>) {
        if field.is_there() {
            self.said.entry(field.pointer.clone()).or_insert_with(|| (outcome, text.into()));
        }
    }

    /// Says what a field is taken to be that is not there, at the place where it would stand.
    pub(super) fn say_of_unsaid(&mut self, field: &Field<'_>, outcome: Outcome, text: impl Into<String>) {
        if !field.is_there() {
            self.unsaid.entry(field.pointer.clone()).or_insert_with(|| (outcome, text.into()));
        }
    }

    /// Says that a value was not understood.
    pub(super) fn odd(&mut self, field: &Field<'_>, expected: &str) {
        self.say(field, Outcome::NotUnderstood, format!("its value is left out; expected {expected}"));
    }
}

/// Where a walk stands.
struct At {
    /// `spec.analysis.metrics[0]`
    path: String,
    /// `spec.analysis.metrics[]`
    pattern: String,
    /// `/spec/analysis/metrics/0`
    pointer: String,
}

impl At {
    fn key(&self, key: &str) -> Self {
        let dot = if self.path.is_empty() { "" } else { "." };
        Self {
            path: format!("{}{dot}{}", self.path, plain(key)),
            pattern: format!("{}{dot}{key}", self.pattern),
            pointer: format!("{}/{}", self.pointer, key.replace('~', "~0").replace('/', "~1")),
        }
    }

    fn item(&self, n: usize) -> Self {
        Self {
            path: format!("{}[{n}]", self.path),
            pattern: format!("{}[]", self.pattern),
            pointer: format!("{}/{n}", self.pointer),
        }
    }
}

struct Walk<'a> {
    document: &'a Document,
    rows: BTreeMap<&'static str, (Outcome, &'static str)>,
    notes: &'a Notes,
    note: Vec<Note>,
}

impl Walk<'_> {
    fn tell(&mut self, at: &At, outcome: Outcome, text: &str) {
        let mark = self.document.node.locate(&at.pointer);
        let Document { file, kind, namespace, name, .. } = self.document;
        self.note.push(Note {
            file: file.to_string(),
            line: mark.line,
            column: mark.column,
            object: plain(&format!("{kind} {namespace}/{name}")),
            path: at.path.clone(),
            outcome,
            text: plain(text),
        });
    }

    fn node(&mut self, node: &Node, at: &At) {
        if let Some((outcome, text)) = self.notes.said.get(&at.pointer) {
            return self.tell(at, *outcome, text);
        }
        if let Some(&(outcome, text)) = self.rows.get(at.pattern.as_str()) {
            // What is said of a part goes before what is said of the whole.
            let inside = format!("{}/", at.pointer);
            let parts = self.notes.said.range(inside.clone()..).take_while(|(pointer, _)| pointer.starts_with(&inside));
            let parts: Vec<(String, (Outcome, String))> = parts.map(|(p, note)| (p.clone(), note.clone())).collect();
            self.tell(at, outcome, text);
            for (pointer, (outcome, text)) in parts {
                let path = pointer[at.pointer.len()..].split('/').skip(1).fold(at.path.clone(), |path, part| {
                    let part = plain(&part.replace("~1", "/").replace("~0", "~"));
                    if part.parse::<usize>().is_ok() { format!("{path}[{part}]") } else { format!("{path}.{part}") }
                });
                self.tell(&At { path, pattern: String::new(), pointer }, outcome, &text);
            }
            return;
        }
        let known = |pattern: &str, next: &str| {
            let inside = format!("{pattern}{next}");
            self.rows.range(inside.as_str()..).next().is_some_and(|(row, _)| row.starts_with(&inside))
        };
        match &node.content {
            Content::Map(entries) if at.pattern.is_empty() || known(&at.pattern, ".") => {
                for (key, node) in entries {
                    self.node(node, &at.key(&key.text));
                }
            }
            Content::List(items) if known(&at.pattern, "[]") => {
                for (n, node) in items.iter().enumerate() {
                    self.node(node, &at.item(n));
                }
            }
            Content::Scalar(serde_json::Value::Null) if known(&at.pattern, ".") || known(&at.pattern, "[]") => {}
            Content::Map(_) | Content::List(_) | Content::Scalar(_) => {
                self.tell(at, Outcome::NotUnderstood, "no field that this version knows; is it spelled right?");
            }
        }
    }
}

/// What became of every field of a document, in the order of the file.
pub(super) fn note(document: &Document, tables: &[&[Row]], notes: &Notes) -> Vec<Note> {
    let rows =
        tables.iter().flat_map(|table| table.iter()).map(|&(path, outcome, text)| (path, (outcome, text))).collect();
    let mut walk = Walk { document, rows, notes, note: Vec::new() };
    walk.node(&document.node, &At { path: String::new(), pattern: String::new(), pointer: String::new() });
    for (pointer, (outcome, text)) in &notes.unsaid {
        let path = pointer.trim_start_matches('/').replace('/', ".");
        // Without a value the field itself says nothing.
        walk.note.retain(|note| note.path != path);
        walk.tell(&At { path, pattern: String::new(), pointer: pointer.clone() }, *outcome, text);
    }
    walk.note
}

/// What every object has.
pub(super) const OBJECT: &[Row] = &[
    ("apiVersion", Outcome::Imported, "tells what the object is"),
    ("kind", Outcome::Imported, "tells what the object is"),
    ("metadata.name", Outcome::Imported, "metadata.name, or the name that others refer to"),
    ("metadata.namespace", Outcome::Imported, "metadata.namespace"),
    ("metadata.generateName", Outcome::NotNeeded, "a rollout's file says its name"),
    (
        "metadata.labels",
        Outcome::NotNeeded,
        "a rollout's file has no labels; those of workloads and Services stand in their manifests",
    ),
    (
        "metadata.annotations",
        Outcome::NotNeeded,
        "a rollout's file has no annotations; those of workloads and Services stand in their manifests",
    ),
    (
        "metadata.finalizers",
        Outcome::NotNeeded,
        "a rollout is a file in Git, and nothing in the cluster waits for its end",
    ),
    ("metadata.ownerReferences", Outcome::NotNeeded, "a rollout is a file in Git, and nothing in the cluster owns it"),
    ("metadata.creationTimestamp", Outcome::NotNeeded, SERVER),
    ("metadata.deletionGracePeriodSeconds", Outcome::NotNeeded, SERVER),
    ("metadata.deletionTimestamp", Outcome::NotNeeded, SERVER),
    ("metadata.generation", Outcome::NotNeeded, SERVER),
    ("metadata.managedFields", Outcome::NotNeeded, SERVER),
    ("metadata.resourceVersion", Outcome::NotNeeded, SERVER),
    ("metadata.selfLink", Outcome::NotNeeded, SERVER),
    ("metadata.uid", Outcome::NotNeeded, SERVER),
    (
        "status",
        Outcome::NotNeeded,
        "what is so in the cluster is read from the cluster; a rollout starts with the version that runs",
    ),
];

const SERVER: &str = "the API server fills it in";
