//! What becomes of each field: nothing of the input is dropped without a word. What holds of all fields of a kind stands in `fields.txt`.

use super::Tool;
use super::draft::{go_duration, rounded};
use super::input::{Document, Field};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;
use tidegate_controller::manifest::yaml::{Content, Node};
use tidegate_controller::record::text::plain;

/// What became of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FieldOutcome {
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

impl FieldOutcome {
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

/// A field with all below it, what becomes of it, and where it goes or why it does not.
pub(super) type Row = (&'static str, FieldOutcome, &'static str);

/// The fields of some kinds of objects.
pub(super) struct Table {
    /// Whose they are; `both` is said of either tool's.
    pub tool: &'static str,
    /// The kinds.
    pub kinds: Vec<&'static str>,
    /// Their fields.
    pub rows: Vec<Row>,
}

/// All that is known of the fields of both tools.
pub(super) static TABLES: LazyLock<Vec<Table>> = LazyLock::new(|| tables(include_str!("fields.txt")));

fn tables(text: &'static str) -> Vec<Table> {
    let (mut words, mut tables, mut fields) = (BTreeMap::new(), Vec::<Table>::new(), Vec::new());
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some((name, text)) = line.strip_prefix('@').and_then(|line| line.split_once(' ')) {
            words.insert(name, text);
        } else if let Some((tool, kinds)) = line.strip_prefix("= ").and_then(|line| line.split_once(": ")) {
            tables.push(Table { tool, kinds: kinds.split(", ").collect(), rows: Vec::new() });
        } else if let Some((outcome, text)) = line.strip_prefix("  ").and_then(|line| line.split_once(": ")) {
            let outcome = serde_json::from_value(outcome.into()).expect("an outcome, because the file is ours");
            let text = text.strip_prefix('@').map_or(text, |name| words[name]);
            let rows = fields.drain(..).map(|field| (field, outcome, text));
            tables.last_mut().expect("a kind, because the file is ours").rows.extend(rows);
        } else {
            fields.push(line);
        }
    }
    tables
}

/// The fields of a kind of a tool's objects, but for those that every object has; none if it has no such kind.
pub(super) fn rows(tool: Tool, kind: &str) -> Option<&'static [Row]> {
    let mut all = TABLES.iter().filter(|table| table.tool == tool.name());
    all.find(|table| table.kinds.contains(&kind)).map(|table| table.rows.as_slice())
}

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
    pub outcome: FieldOutcome,
    /// Where it went, or why it did not.
    pub text: String,
}

/// What is said of single fields, over what the table says of all of their kind.
#[derive(Debug, Clone, Default)]
pub(super) struct Notes(BTreeMap<String, (FieldOutcome, String)>);

impl Notes {
    /// Says what became of a field with all below it. What was said of it before stays: it was closer to the matter.
    pub(super) fn say(&mut self, field: &Field<'_>, outcome: FieldOutcome, text: impl Into<String>) {
        if field.is_there() {
            self.say_anyway(field, outcome, text);
        }
    }

    /// Says what a field is taken to be, whether it is there or not.
    pub(super) fn say_anyway(&mut self, field: &Field<'_>, outcome: FieldOutcome, text: impl Into<String>) {
        self.0.entry(field.pointer.clone()).or_insert_with(|| (outcome, text.into()));
    }

    /// Says what became of a field of which nothing is made.
    pub(super) fn refuse<T>(&mut self, field: &Field<'_>, outcome: FieldOutcome, text: impl Into<String>) -> Option<T> {
        self.say(field, outcome, text);
        None
    }

    /// Says that a value was not understood.
    pub(super) fn odd(&mut self, field: &Field<'_>, expected: &str) {
        self.say(field, FieldOutcome::NotUnderstood, format!("its value is left out; expected {expected}"));
    }

    /// What was found in a value; if that is nothing, it was not understood.
    pub(super) fn wanted<T>(&mut self, field: &Field<'_>, found: Option<T>, expected: &str) -> Option<T> {
        if found.is_none() {
            self.odd(field, expected);
        }
        found
    }

    /// The number of seconds that a field says.
    pub(super) fn seconds(&mut self, field: &Field<'_>) -> Option<u64> {
        self.wanted(field, field.count().map(u64::from), "a number of seconds")
    }

    /// The seconds between two values that a field says: a minute if it does not, and at least so many.
    pub(super) fn interval(&mut self, field: &Field<'_>, least: u64) -> u64 {
        let said = field.text().and_then(go_duration);
        self.wanted(field, said, "a length of time such as 1m; it is a minute");
        if let Some(text) = said.filter(|seconds| *seconds > least).and_then(|_| rounded(field.text()?)) {
            self.say(field, FieldOutcome::Differs, text);
        }
        said.unwrap_or(60).max(least).max(1)
    }
}

/// Where a walk stands.
#[derive(Default)]
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
    rows: BTreeMap<&'static str, (FieldOutcome, &'static str)>,
    notes: &'a Notes,
    found: Vec<Note>,
}

impl Walk<'_> {
    fn note(&mut self, at: &At, outcome: FieldOutcome, text: &str) {
        self.found.push(note(self.document, &at.path, &at.pointer, outcome, text));
    }

    /// Where a field of that name stands that is known, if there is one such place.
    fn belongs(&self, at: &At) -> Option<String> {
        let name = at.pattern.rsplit('.').next()?.trim_end_matches("[]");
        let places = self.rows.keys().filter_map(|row| {
            let parts: Vec<&str> = row.split('.').collect();
            let place = parts.iter().position(|part| part.trim_end_matches("[]") == name)?;
            Some(parts[..=place].join(".").trim_end_matches("[]").to_owned())
        });
        let places: BTreeSet<String> = places.collect();
        places.first().filter(|place| places.len() == 1 && **place != at.pattern).cloned()
    }

    /// `inside` of what a row speaks of only what is said of a part is noted: that goes before what is said of the whole.
    fn node(&mut self, node: &Node, at: &At, inside: bool) {
        let row = self.rows.get(at.pattern.as_str()).filter(|_| !inside).copied();
        if let Some((outcome, text)) = self.notes.0.get(&at.pointer) {
            self.note(at, *outcome, text);
            if !inside {
                return;
            }
        } else if let Some((outcome, text)) = row {
            self.note(at, outcome, text);
        }
        let inside = inside || row.is_some();
        let known = |next: &str| {
            let below = format!("{}{next}", at.pattern);
            self.rows.range(below.as_str()..).next().is_some_and(|(row, _)| row.starts_with(&below))
        };
        match &node.content {
            Content::Map(entries) if inside || at.pattern.is_empty() || known(".") => {
                entries.iter().for_each(|(key, node)| self.node(node, &at.key(&key.text), inside));
            }
            Content::List(items) if inside || known("[]") => {
                items.iter().enumerate().for_each(|(n, node)| self.node(node, &at.item(n), inside));
            }
            Content::Scalar(serde_json::Value::Null) if known(".") || known("[]") => {}
            Content::Map(_) | Content::List(_) | Content::Scalar(_) if inside => {}
            Content::Map(_) | Content::List(_) | Content::Scalar(_) => {
                let text = self.belongs(at).map_or_else(
                    || "no field that this version knows; is it spelled right?".to_owned(),
                    |place| format!("nothing reads it here; it belongs at {place}"),
                );
                self.note(at, FieldOutcome::NotUnderstood, &text);
            }
        }
    }
}

fn note(document: &Document, path: &str, pointer: &str, outcome: FieldOutcome, text: &str) -> Note {
    let Document { file, kind, namespace, name, node, .. } = document;
    let (mark, object) = (node.locate(pointer), plain(&format!("{kind} {namespace}/{name}")));
    let (file, path, text) = (file.to_string(), path.to_owned(), plain(text));
    Note { file, line: mark.line, column: mark.column, object, path, outcome, text }
}

/// What became of an object as a whole.
pub(super) fn whole(document: &Document, outcome: FieldOutcome, text: &str) -> Note {
    note(document, "", "", outcome, text)
}

/// What became of every field of a tool's object, in the order of the file.
pub(super) fn each(document: &Document, tool: Tool, notes: &Notes) -> Vec<Note> {
    let rows = TABLES[0].rows.iter().chain(rows(tool, &document.kind).unwrap_or_default());
    let rows = rows.map(|&(path, outcome, text)| (path, (outcome, text))).collect();
    let mut walk = Walk { document, rows, notes, found: Vec::new() };
    walk.node(&document.node, &At::default(), false);
    for (pointer, (outcome, text)) in notes.0.iter().filter(|(pointer, _)| document.node.at(pointer).is_none()) {
        let path = pointer.trim_start_matches('/').replace('/', ".");
        walk.found.push(note(document, &path, pointer, *outcome, text));
    }
    walk.found
}
