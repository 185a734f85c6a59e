//! Layers: what people write of the configuration of nodes. They live in Git alone. What a node gets is the union of those that select it by its labels
//! (requirement N-16), so that a layer says nothing of the nodes that there are, and a node that is relabelled is somewhere else from then on.

use super::content::ContentDigest;
use super::diagnostic::{Code, Diagnostic, quoted};
use super::ids::ObjectName;
use super::object::Kind;
use super::raw::{self, LabelOperator};
use super::set::Item;
use super::yaml::{Content as Yaml, Node};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most bytes that a node's files have together, names included: what one ConfigMap holds.
pub const MOST_BYTES: usize = 1_048_576;
/// The most layers of a set.
pub const MOST_LAYERS: usize = 1_000;
/// An expression whose values do not go with its operator, and what would.
pub(super) const UNSELECTIVE: (&str, &str) =
    ("the values do not go with the operator", "values with In and NotIn, and none with Exists and DoesNotExist");
/// The longest name of a file: that of a key of a ConfigMap.
const LONGEST_NAME: usize = 253;

impl Kind {
    /// The kinds of rollouts that configure nodes: watched where there is one, and nowhere else.
    pub const OF_NODES: &'static [Self] = &[Self::Node, Self::NodeConfig, Self::NodeConfigLayer];
}

/// The labels of a node.
pub type NodeLabels = BTreeMap<String, String>;

/// A layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// Its name.
    pub name: ObjectName,
    /// The nodes that it is for.
    pub nodes: NodeSelector,
    /// What it gives them, by file name.
    pub files: BTreeMap<String, Arc<[u8]>>,
}

/// Which nodes: all of whose labels all of these ask for. Without any it selects all nodes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NodeSelector(Vec<Asked>);

/// What one label has to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Asked {
    /// One of these values.
    In(String, Vec<String>),
    /// None of these values, or not there.
    NotIn(String, Vec<String>),
    /// There.
    Exists(String),
    /// Not there.
    DoesNotExist(String),
}

impl NodeSelector {
    /// Whether it selects a node with these labels.
    #[must_use]
    pub fn selects(&self, labels: &NodeLabels) -> bool {
        let Self(asked) = self;
        asked.iter().all(|asked| match asked {
            Asked::In(key, values) => labels.get(key).is_some_and(|value| values.contains(value)),
            Asked::NotIn(key, values) => labels.get(key).is_none_or(|value| !values.contains(value)),
            Asked::Exists(key) => labels.contains_key(key),
            Asked::DoesNotExist(key) => !labels.contains_key(key),
        })
    }

    /// Whether it selects all nodes, whatever labels they have.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.0.is_empty()
    }

    /// The nodes that this and another one select.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self(self.0.iter().chain(&other.0).cloned().collect())
    }

    /// The same as files have it.
    ///
    /// # Errors
    /// The number of the first expression whose values do not go with its operator.
    pub fn of(raw: &raw::NodeSelector) -> Result<Self, usize> {
        let labels = raw.match_labels.iter().map(|(key, value)| Ok(Asked::In(key.clone(), vec![value.clone()])));
        let expressions =
            raw.match_expressions.iter().enumerate().map(|(i, raw::LabelRequirement { key, operator, values })| {
                let (key, values) = (key.clone(), values.clone());
                match (operator, values.is_empty()) {
                    (LabelOperator::In, false) => Ok(Asked::In(key, values)),
                    (LabelOperator::NotIn, false) => Ok(Asked::NotIn(key, values)),
                    (LabelOperator::Exists, true) => Ok(Asked::Exists(key)),
                    (LabelOperator::DoesNotExist, true) => Ok(Asked::DoesNotExist(key)),
                    (
                        LabelOperator::In | LabelOperator::NotIn | LabelOperator::Exists | LabelOperator::DoesNotExist,
                        _,
                    ) => Err(i),
                }
            });
        labels.chain(expressions).collect::<Result<_, _>>().map(Self)
    }

    /// The label of which no value is in both, so that no node is: none where there may be nodes that both select.
    #[must_use]
    pub fn parted_by<'a>(&'a self, other: &Self) -> Option<&'a str> {
        self.0.iter().find_map(|asked| {
            let Asked::In(key, values) = asked else { return None };
            let apart = other.0.iter().any(|asked| match asked {
                Asked::In(same, others) => same == key && values.iter().all(|value| !others.contains(value)),
                Asked::DoesNotExist(same) => same == key,
                Asked::NotIn(same, others) => same == key && values.iter().all(|value| others.contains(value)),
                Asked::Exists(_) => false,
            });
            apart.then_some(key.as_str())
        })
    }
}

/// The files of a node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeContent(BTreeMap<String, Arc<[u8]>>);

/// Why a node has no content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NodeContentError {
    /// Two layers give the same node one file with other bytes.
    #[error("the layers {one} and {other} both have the file {file}, with other content")]
    Conflict {
        /// The file.
        file: String,
        /// The first of the layers, by name.
        one: ObjectName,
        /// The other one.
        other: ObjectName,
    },
    /// They are too much together.
    #[error("the files of its layers have {bytes} bytes together, and at most {MOST_BYTES} fit")]
    TooLarge {
        /// So much.
        bytes: usize,
    },
}

impl NodeContent {
    /// The union of the layers that select a node with these labels, in whatever order they come.
    ///
    /// # Errors
    /// Two layers contradict each other there, or they are too large together.
    pub fn of<'a>(layers: impl IntoIterator<Item = &'a Layer>, labels: &NodeLabels) -> Result<Self, NodeContentError> {
        let mut selected: Vec<&Layer> = layers.into_iter().filter(|layer| layer.nodes.selects(labels)).collect();
        selected.sort_by_key(|layer| &layer.name);
        let mut all: BTreeMap<&String, (&Layer, &Arc<[u8]>)> = BTreeMap::new();
        for layer in selected {
            for (file, bytes) in &layer.files {
                let (first, known) = *all.entry(file).or_insert((layer, bytes));
                if known != bytes {
                    let (one, other) = (first.name.clone(), layer.name.clone());
                    return Err(NodeContentError::Conflict { file: file.clone(), one, other });
                }
            }
        }
        let bytes = all.iter().map(|(name, (_, bytes))| name.len() + bytes.len()).sum();
        if bytes > MOST_BYTES {
            return Err(NodeContentError::TooLarge { bytes });
        }
        Ok(Self(all.into_iter().map(|(name, (_, bytes))| (name.clone(), Arc::clone(bytes))).collect()))
    }

    /// The files, by name.
    #[must_use]
    pub fn files(&self) -> &BTreeMap<String, Arc<[u8]>> {
        &self.0
    }

    /// Its digest.
    #[must_use]
    pub fn digest(&self) -> ContentDigest {
        ContentDigest::of(&self.0)
    }
}

/// Reads one layer.
///
/// # Errors
/// All that is wrong with it, each with its place.
pub fn read(item: &Item) -> Result<Layer, Vec<Diagnostic>> {
    let mut found = unknown_fields(item, "/spec", &["nodeSelector", "files"]);
    let asked = selector(item, &mut found);
    let files = files(item, &mut found);
    if found.is_empty() {
        Ok(Layer { name: item.object.reference().name.clone(), nodes: NodeSelector(asked), files })
    } else {
        Err(found)
    }
}

fn unknown_fields(item: &Item, pointer: &str, known: &[&str]) -> Vec<Diagnostic> {
    let fields = item.node.at(pointer).map(Node::entries).unwrap_or_default();
    let unknown = fields.iter().filter(|(key, _)| !known.contains(&key.text.as_str()));
    unknown
        .map(|(key, _)| {
            let what = format!("there is no field {} in {}", quoted(&key.text), pointer.trim_start_matches('/'));
            item.source.at(key.mark, Code::UnknownField, what, format!("one of {}", known.join(", ")))
        })
        .collect()
}

fn files(item: &Item, found: &mut Vec<Diagnostic>) -> BTreeMap<String, Arc<[u8]>> {
    let entries = item.node.at("/spec/files").map(Node::entries).unwrap_or_default();
    if entries.is_empty() {
        let expected = "files: a mapping from file names to texts";
        found.push(item.error("/spec/files", Code::Schema, "this layer has no files", expected));
    }
    let mut files = BTreeMap::new();
    for (key, value) in entries {
        if let Some(why) = misnamed(&key.text) {
            let expected = "letters, digits, '-', '_' and '.', at most 253 of them, and neither . nor ..";
            let what = format!("{} is no name of a file: {why}", quoted(&key.text));
            found.push(item.source.at(key.mark, Code::PathEscape, what, expected));
            continue;
        }
        let Yaml::Scalar(Value::String(text)) = &value.content else {
            let what = format!("the content of {} is no text", quoted(&key.text));
            found.push(item.source.at(value.mark, Code::Schema, what, "a text").help("write it as a block: |"));
            continue;
        };
        files.insert(key.text.clone(), Arc::from(text.as_bytes()));
    }
    files
}

/// Why a name is none of a key of a ConfigMap, or would lead elsewhere once it is a file.
fn misnamed(name: &str) -> Option<&'static str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() {
        Some("it is empty")
    } else if name.contains('/') {
        Some("it leads into a directory")
    } else if name == "." || name.starts_with("..") {
        Some("it leads elsewhere")
    } else if name.len() > LONGEST_NAME {
        Some("it is too long")
    } else if !name.chars().all(plain) {
        Some("it has characters that do not belong there")
    } else {
        None
    }
}

/// What the selector asks for, as far as it can be read. One that asks for nothing has to say so: `nodeSelector: {}`.
fn selector(item: &Item, found: &mut Vec<Diagnostic>) -> Vec<Asked> {
    let at = "/spec/nodeSelector";
    let Some(Yaml::Map(_)) = item.node.at(at).map(|node| &node.content) else {
        let expected = "nodeSelector: {matchLabels: …}, or nodeSelector: {} for all nodes";
        found.push(item.error(at, Code::Schema, "this layer does not say which nodes it is for", expected));
        return Vec::new();
    };
    found.extend(unknown_fields(item, at, &["matchLabels", "matchExpressions"]));
    let mut asked = Vec::new();
    if let Some(labels) = item.node.at(&format!("{at}/matchLabels")) {
        if labels.entries().is_empty() {
            let expected = "at least one label, or nodeSelector: {} for all nodes";
            let what = "matchLabels is empty, and would select all nodes";
            found.push(item.error(&format!("{at}/matchLabels"), Code::Schema, what, expected));
        }
        for (key, value) in labels.entries() {
            match value.text() {
                Some(text) => asked.push(Asked::In(key.text.clone(), vec![text.to_owned()])),
                None => {
                    let what = format!("the value of {} is no text", quoted(&key.text));
                    found.push(item.source.at(value.mark, Code::Schema, what, "a text").help("quote it"));
                }
            }
        }
    }
    let expressions = item.node.at(&format!("{at}/matchExpressions")).map(Node::items).unwrap_or_default();
    for (i, expression) in expressions.iter().enumerate() {
        match expressed(expression) {
            Ok(one) => asked.push(one),
            Err((field, what, expected)) => {
                let pointer = format!("{at}/matchExpressions/{i}{field}");
                found.push(item.error(&pointer, Code::Schema, what, expected));
            }
        }
    }
    asked
}

/// One expression; else below it where, what is wrong, and what was expected.
fn expressed(expression: &Node) -> Result<Asked, (&'static str, String, &'static str)> {
    let key = expression.text_at("/key").filter(|key| !key.is_empty());
    let key = key.ok_or_else(|| ("", "this expression names no label".to_owned(), "key: the name of a label"))?;
    let listed = expression.at("/values").map(Node::items).unwrap_or_default();
    let values: Option<Vec<String>> = listed.iter().map(|value| value.text().map(str::to_owned)).collect();
    let values = values.ok_or_else(|| ("/values", "a value is no text".to_owned(), "a list of texts"))?;
    let operator = expression.text_at("/operator").unwrap_or_default();
    let some = |values: Vec<String>| match values.is_empty() {
        true => Err(("/values", format!("{operator} has no values"), "at least one value")),
        false => Ok(values),
    };
    let none = || match values.is_empty() {
        true => Ok(key.to_owned()),
        false => Err(("/values", format!("{operator} looks at no value"), "no values")),
    };
    match operator {
        "In" => Ok(Asked::In(key.to_owned(), some(values)?)),
        "NotIn" => Ok(Asked::NotIn(key.to_owned(), some(values)?)),
        "Exists" => Ok(Asked::Exists(none()?)),
        "DoesNotExist" => Ok(Asked::DoesNotExist(none()?)),
        other => {
            let what = format!("{} is no operator", quoted(other));
            Err(("/operator", what, "In, NotIn, Exists or DoesNotExist"))
        }
    }
}

#[cfg(test)]
mod tests;
