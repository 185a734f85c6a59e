//! What becomes of each field: nothing of the input is dropped without a word.

use super::input::{Document, Field};
use serde::Serialize;
use std::collections::BTreeMap;
use tidegate_controller::manifest::yaml::{Content, Node};
use tidegate_controller::record::text::plain;

/// What became of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Fate {
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

impl Fate {
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
pub(super) type Row = (&'static str, Fate, &'static str);

/// What became of one field of one object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Told {
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
    /// What became of it.
    pub fate: Fate,
    /// Where it went, or why it did not.
    pub text: String,
}

/// What is said of single fields, over what the table says of all of their kind.
#[derive(Debug, Clone, Default)]
pub(super) struct Notes {
    /// By the place of the field.
    said: BTreeMap<String, (Fate, String)>,
    /// Of fields that are not there.
    unsaid: BTreeMap<String, (Fate, String)>,
}

impl Notes {
    /// Says what became of a field with all below it. What was said of it before stays: it was closer to the matter.
    pub(super) fn say(&mut self, field: &Field<'_>, fate: Fate, text: impl Into<String>) {
        if field.is_there() {
            self.said.entry(field.pointer.clone()).or_insert_with(|| (fate, text.into()));
        }
    }

    /// Says what a field is taken to be that is not there, at the place where it would stand.
    pub(super) fn say_of_unsaid(&mut self, field: &Field<'_>, fate: Fate, text: impl Into<String>) {
        if !field.is_there() {
            self.unsaid.entry(field.pointer.clone()).or_insert_with(|| (fate, text.into()));
        }
    }

    /// Says that a value was not understood.
    pub(super) fn odd(&mut self, field: &Field<'_>, expected: &str) {
        self.say(field, Fate::NotUnderstood, format!("its value is left out; expected {expected}"));
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
    rows: BTreeMap<&'static str, (Fate, &'static str)>,
    notes: &'a Notes,
    told: Vec<Told>,
}

impl Walk<'_> {
    fn tell(&mut self, at: &At, fate: Fate, text: &str) {
        let mark = self.document.node.locate(&at.pointer);
        let Document { file, kind, namespace, name, .. } = self.document;
        self.told.push(Told {
            file: file.to_string(),
            line: mark.line,
            column: mark.column,
            object: plain(&format!("{kind} {namespace}/{name}")),
            path: at.path.clone(),
            fate,
            text: plain(text),
        });
    }

    fn node(&mut self, node: &Node, at: &At) {
        if let Some((fate, text)) = self.notes.said.get(&at.pointer) {
            return self.tell(at, *fate, text);
        }
        if let Some(&(fate, text)) = self.rows.get(at.pattern.as_str()) {
            // What is said of a part goes before what is said of the whole.
            let inside = format!("{}/", at.pointer);
            let parts = self.notes.said.range(inside.clone()..).take_while(|(pointer, _)| pointer.starts_with(&inside));
            let parts: Vec<(String, (Fate, String))> = parts.map(|(p, note)| (p.clone(), note.clone())).collect();
            self.tell(at, fate, text);
            for (pointer, (fate, text)) in parts {
                let path = pointer[at.pointer.len()..].split('/').skip(1).fold(at.path.clone(), |path, part| {
                    let part = plain(&part.replace("~1", "/").replace("~0", "~"));
                    if part.parse::<usize>().is_ok() { format!("{path}[{part}]") } else { format!("{path}.{part}") }
                });
                self.tell(&At { path, pattern: String::new(), pointer }, fate, &text);
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
                self.tell(at, Fate::NotUnderstood, "no field that this version knows; is it spelled right?");
            }
        }
    }
}

/// What became of every field of a document, in the order of the file.
pub(super) fn told(document: &Document, tables: &[&[Row]], notes: &Notes) -> Vec<Told> {
    let rows = tables.iter().flat_map(|table| table.iter()).map(|&(path, fate, text)| (path, (fate, text))).collect();
    let mut walk = Walk { document, rows, notes, told: Vec::new() };
    walk.node(&document.node, &At { path: String::new(), pattern: String::new(), pointer: String::new() });
    for (pointer, (fate, text)) in &notes.unsaid {
        let path = pointer.trim_start_matches('/').replace('/', ".");
        // Without a value the field itself says nothing.
        walk.told.retain(|told| told.path != path);
        walk.tell(&At { path, pattern: String::new(), pointer: pointer.clone() }, *fate, text);
    }
    walk.told
}

/// What every object has.
pub(super) const OBJECT: &[Row] = &[
    ("apiVersion", Fate::Imported, "tells what the object is"),
    ("kind", Fate::Imported, "tells what the object is"),
    ("metadata.name", Fate::Imported, "metadata.name, or the name that others refer to"),
    ("metadata.namespace", Fate::Imported, "metadata.namespace"),
    ("metadata.generateName", Fate::NotNeeded, "a rollout's file says its name"),
    (
        "metadata.labels",
        Fate::NotNeeded,
        "a rollout's file has no labels; those of workloads and Services stand in their manifests",
    ),
    (
        "metadata.annotations",
        Fate::NotNeeded,
        "a rollout's file has no annotations; those of workloads and Services stand in their manifests",
    ),
    (
        "metadata.finalizers",
        Fate::NotNeeded,
        "a rollout is a file in Git, and nothing in the cluster waits for its end",
    ),
    ("metadata.ownerReferences", Fate::NotNeeded, "a rollout is a file in Git, and nothing in the cluster owns it"),
    ("metadata.creationTimestamp", Fate::NotNeeded, SERVER),
    ("metadata.deletionGracePeriodSeconds", Fate::NotNeeded, SERVER),
    ("metadata.deletionTimestamp", Fate::NotNeeded, SERVER),
    ("metadata.generation", Fate::NotNeeded, SERVER),
    ("metadata.managedFields", Fate::NotNeeded, SERVER),
    ("metadata.resourceVersion", Fate::NotNeeded, SERVER),
    ("metadata.selfLink", Fate::NotNeeded, SERVER),
    ("metadata.uid", Fate::NotNeeded, SERVER),
    (
        "status",
        Fate::NotNeeded,
        "what is so in the cluster is read from the cluster; a rollout starts with the version that runs",
    ),
];

const SERVER: &str = "the API server fills it in";
