//! Sets of field paths, and how `fieldsV1` writes them.

use serde_json::{Map, Value};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    /// A field of an object, an entry of a map.
    Field(String),
    /// The item of a list that has these fields, by name.
    Keys(Vec<(String, Literal)>),
    /// The item of a list that is this value.
    Value(Literal),
    /// The item of a list at this place.
    Place(u64),
}

impl Step {
    /// A field.
    pub(super) fn field(name: &str) -> Self {
        Self::Field(name.to_owned())
    }

    /// The step as a key of `fieldsV1`.
    fn write(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Keys(keys) => {
                let keys: Map<String, Value> =
                    keys.iter().map(|(name, value)| (name.clone(), value.0.clone())).collect();
                format!("k:{}", escaped(&Value::Object(keys)))
            }
            Self::Value(value) => format!("v:{}", escaped(&value.0)),
            Self::Place(place) => format!("i:{place}"),
        }
    }

    /// Reads a key of `fieldsV1`; none for a kind of step that nobody knows, which is left out.
    fn read(key: &str) -> Result<Option<Self>, Malformed> {
        let json = |text: &str| serde_json::from_str::<Value>(text).map_err(|_| Malformed);
        Ok(Some(match key.split_at_checked(2).ok_or(Malformed)? {
            ("f:", name) => Self::field(name),
            ("k:", keys) => {
                let Value::Object(keys) = json(keys)? else { return Err(Malformed) };
                let mut keys: Vec<_> = keys.into_iter().map(|(name, value)| (name, Literal(value))).collect();
                keys.sort();
                Self::Keys(keys)
            }
            ("v:", value) => Self::Value(Literal(json(value)?)),
            ("i:", place) => Self::Place(place.parse().map_err(|_| Malformed)?),
            (kind, _) if kind.ends_with(':') => return Ok(None),
            _ => return Err(Malformed),
        }))
    }
}

/// JSON as Go writes it: with `<`, `>` and `&` escaped.
fn escaped(value: &Value) -> String {
    value.to_string().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// As conflicts name fields: `.spec.containers[name="app"].image`.
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Keys(keys) => {
                let keys: Vec<String> = keys.iter().map(|(name, value)| format!("{name}={}", value.0)).collect();
                write!(f, "[{}]", keys.join(","))
            }
            Self::Value(value) => write!(f, "[={}]", value.0),
            Self::Place(place) => write!(f, "[{place}]"),
        }
    }
}

/// A path as people read it.
pub(super) fn display(path: &[Step]) -> String {
    path.iter().map(ToString::to_string).collect()
}

/// A plain value, ordered as the API server orders it: numbers, texts, truth values, all else.
#[derive(Debug, Clone)]
pub(super) struct Literal(pub(super) Value);

impl Ord for Literal {
    fn cmp(&self, other: &Self) -> Ordering {
        let rank = |value: &Value| match value {
            Value::Number(_) => 0,
            Value::String(_) => 1,
            Value::Bool(_) => 2,
            Value::Array(_) => 3,
            Value::Object(_) => 4,
            Value::Null => 5,
        };
        match (&self.0, &other.0) {
            (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
                (Some(left), Some(right)) => left.cmp(&right),
                _ => left.as_f64().partial_cmp(&right.as_f64()).unwrap_or(Ordering::Equal),
            },
            (Value::String(left), Value::String(right)) => left.cmp(right),
            (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
            (left, right) => rank(left).cmp(&rank(right)).then_with(|| left.to_string().cmp(&right.to_string())),
        }
    }
}

impl PartialOrd for Literal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Literal {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Literal {}

/// `fieldsV1` that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed;

/// A set of paths, as a tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FieldSet(BTreeMap<Step, Node>);

/// What a set holds of one step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Node {
    /// The path that ends here is in the set.
    member: bool,
    /// The paths that go on.
    below: FieldSet,
}

impl Node {
    fn is_empty(&self) -> bool {
        !self.member && self.below.is_empty()
    }
}

/// A subset of a set, and the step that led to it.
pub(super) type Below<'a> = (&'a Step, bool, &'a FieldSet);

impl FieldSet {
    /// The set of these paths of fields.
    pub(super) fn of(paths: &[&[&str]]) -> Self {
        let mut set = Self::default();
        for path in paths {
            set.insert(&path.iter().map(|name| Step::field(name)).collect::<Vec<_>>());
        }
        set
    }

    /// Adds a path. The empty one, the whole object, is nobody's.
    pub(super) fn insert(&mut self, path: &[Step]) {
        if let Some((first, rest)) = path.split_first() {
            let node = self.0.entry(first.clone()).or_default();
            if rest.is_empty() {
                node.member = true;
            } else {
                node.below.insert(rest);
            }
        }
    }

    /// Whether it has no path.
    pub(super) fn is_empty(&self) -> bool {
        self.0.values().all(Node::is_empty)
    }

    /// Whether the path of this one step is in the set.
    pub(super) fn has(&self, step: &Step) -> bool {
        self.0.get(step).is_some_and(|node| node.member)
    }

    /// The paths that begin with `step`, without it; none if there is no such path.
    pub(super) fn below(&self, step: &Step) -> Option<&Self> {
        self.0.get(step).map(|node| &node.below).filter(|below| !below.is_empty())
    }

    /// What is in either.
    pub(super) fn union(&self, other: &Self) -> Self {
        let mut all = self.clone();
        all.add(other);
        all
    }

    /// Adds what is in `other`.
    pub(super) fn add(&mut self, other: &Self) {
        for (step, node) in &other.0 {
            match self.0.get_mut(step) {
                Some(into) => {
                    into.member |= node.member;
                    into.below.add(&node.below);
                }
                None => drop(self.0.insert(step.clone(), node.clone())),
            }
        }
    }

    /// What is in both.
    pub(super) fn intersection(&self, other: &Self) -> Self {
        self.join(|step, node| {
            let theirs = other.0.get(step)?;
            Some(Node { member: node.member && theirs.member, below: node.below.intersection(&theirs.below) })
        })
    }

    /// What is not in `other`. What stands below a path of `other` stays.
    pub(super) fn difference(&self, other: &Self) -> Self {
        let mut left = self.clone();
        left.subtract(other);
        left
    }

    /// Takes out what is in `other`. What stands below a path of `other` stays.
    pub(super) fn subtract(&mut self, other: &Self) {
        for (step, theirs) in &other.0 {
            let Some(node) = self.0.get_mut(step) else { continue };
            node.member &= !theirs.member;
            node.below.subtract(&theirs.below);
            if node.is_empty() {
                self.0.remove(step);
            }
        }
    }

    /// What is neither in `other` nor below one of its paths.
    pub(super) fn outside(&self, other: &Self) -> Self {
        self.join(|step, node| match other.0.get(step) {
            Some(theirs) if theirs.member => None,
            Some(theirs) => Some(Node { member: node.member, below: node.below.outside(&theirs.below) }),
            None => Some(node.clone()),
        })
    }

    fn join(&self, keep: impl Fn(&Step, &Node) -> Option<Node>) -> Self {
        let kept = self.0.iter().filter_map(|(step, node)| Some((step.clone(), keep(step, node)?)));
        Self(kept.filter(|(_, node)| !node.is_empty()).collect())
    }

    /// The same set with each step mapped: whether it is a member, and what is below it.
    pub(super) fn map(&self, each: impl Fn(Below<'_>) -> (bool, Self)) -> Self {
        let node = |(step, node): (&Step, &Node)| {
            let (member, below) = each((step, node.member, &node.below));
            (step.clone(), Node { member, below })
        };
        Self(self.0.iter().map(node).collect())
    }

    /// All paths: those of one length before those that go on from there.
    pub(super) fn paths(&self) -> Vec<Vec<Step>> {
        let mut paths = Vec::new();
        self.collect(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect(&self, path: &mut Vec<Step>, paths: &mut Vec<Vec<Step>>) {
        for (step, _) in self.0.iter().filter(|(_, node)| node.member) {
            paths.push(path.iter().chain([step]).cloned().collect());
        }
        for (step, node) in &self.0 {
            path.push(step.clone());
            node.below.collect(path, paths);
            path.pop();
        }
    }

    /// The set as `fieldsV1`.
    pub(super) fn write(&self) -> Map<String, Value> {
        let nodes = self.0.iter().filter(|(_, node)| !node.is_empty());
        nodes.map(|(step, node)| (step.write(), Value::Object(node.write()))).collect()
    }

    /// Reads `fieldsV1`.
    pub(super) fn read(fields: &Value) -> Result<Self, Malformed> {
        let mut set = Self::default();
        for (key, below) in fields.as_object().ok_or(Malformed)? {
            if key == "." {
                continue;
            }
            let Some(step) = Step::read(key)? else { continue };
            let inner = Self::read(below)?;
            let member = inner.is_empty() || below.get(".").is_some();
            set.0.insert(step, Node { member, below: inner });
        }
        Ok(set)
    }
}

impl Node {
    fn write(&self) -> Map<String, Value> {
        let itself = (self.member && !self.below.is_empty()).then(|| (".".to_owned(), Value::Object(Map::new())));
        itself.into_iter().chain(self.below.write()).collect()
    }
}

#[cfg(test)]
mod tests;
