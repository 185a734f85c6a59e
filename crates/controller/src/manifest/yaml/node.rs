//! The tree that a file is read into.

use crate::manifest::diagnostic::Mark;
use serde_json::{Map, Value};

/// A node of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Where it stands.
    pub mark: Mark,
    /// What it is.
    pub content: Content,
}

/// What a node is.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Null, a truth value, a number or a text.
    Scalar(Value),
    /// A sequence.
    List(Vec<Node>),
    /// A mapping, in the order of the file, without doubles.
    Map(Vec<(Key, Node)>),
}

/// A key of a mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Where it stands.
    pub mark: Mark,
    /// Its text.
    pub text: String,
}

impl Node {
    /// Its value.
    #[must_use]
    pub fn value(&self) -> Value {
        match &self.content {
            Content::Scalar(value) => value.clone(),
            Content::List(items) => items.iter().map(Self::value).collect(),
            Content::Map(entries) => {
                Value::Object(entries.iter().map(|(k, v)| (k.text.clone(), v.value())).collect::<Map<_, _>>())
            }
        }
    }

    /// The node under that key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.entry(key).map(|(_, node)| node)
    }

    fn entry(&self, key: &str) -> Option<(&Key, &Self)> {
        match &self.content {
            Content::Map(entries) => entries.iter().find(|(k, _)| k.text == key).map(|(k, v)| (k, v)),
            Content::Scalar(_) | Content::List(_) => None,
        }
    }

    /// The node at a JSON pointer (RFC 6901).
    #[must_use]
    pub fn at(&self, pointer: &str) -> Option<&Self> {
        segments(pointer).try_fold(self, |node, segment| node.child(&segment))
    }

    fn child(&self, segment: &str) -> Option<&Self> {
        match &self.content {
            Content::Map(_) => self.get(segment),
            Content::List(items) => items.get(segment.parse::<usize>().ok()?),
            Content::Scalar(_) => None,
        }
    }

    /// Its items; none if it is no list.
    #[must_use]
    pub fn items(&self) -> &[Self] {
        match &self.content {
            Content::List(items) => items,
            Content::Scalar(_) | Content::Map(_) => &[],
        }
    }

    /// Its entries; none if it is no mapping.
    #[must_use]
    pub fn entries(&self) -> &[(Key, Self)] {
        match &self.content {
            Content::Map(entries) => entries,
            Content::Scalar(_) | Content::List(_) => &[],
        }
    }

    /// Its text, if it is one.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar(value) => value.as_str(),
            Content::List(_) | Content::Map(_) => None,
        }
    }

    /// The text at a JSON pointer.
    #[must_use]
    pub fn text_at(&self, pointer: &str) -> Option<&str> {
        self.at(pointer)?.text()
    }

    /// The best place to show for a JSON pointer: a scalar itself, else the key that holds the collection, else the
    /// nearest ancestor that is there.
    #[must_use]
    pub fn locate(&self, pointer: &str) -> Mark {
        let (mut node, mut mark) = (self, self.mark);
        for segment in segments(pointer) {
            let Some(child) = node.child(&segment) else { break };
            mark = match (&child.content, node.entry(&segment)) {
                (Content::List(_) | Content::Map(_), Some((key, _))) => key.mark,
                (Content::Scalar(_), Some((key, _))) if child.mark.length == 0 => key.mark,
                _ => child.mark,
            };
            node = child;
        }
        mark
    }

    /// The place of a key of the mapping at a JSON pointer.
    #[must_use]
    pub fn locate_key(&self, pointer: &str, key: &str) -> Mark {
        self.at(pointer).and_then(|node| node.entry(key)).map_or_else(|| self.locate(pointer), |(key, _)| key.mark)
    }
}

fn segments(pointer: &str) -> impl Iterator<Item = String> + '_ {
    pointer.split('/').skip(1).map(|segment| segment.replace("~1", "/").replace("~0", "~"))
}
