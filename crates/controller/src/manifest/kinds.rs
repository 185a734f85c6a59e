//! What the objects of a kind of Kubernetes are made of, and which of their lists and maps have many owners.
//!
//! The facts stand in `kinds.txt`, which a test makes from what the real API server publishes.

use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

/// One kind.
#[derive(Debug)]
pub struct Schema {
    api_version: &'static str,
    kind: &'static str,
    root: Of,
    custom: bool,
}

/// What the table says.
struct Table {
    version: &'static str,
    kinds: Vec<Schema>,
}

/// The table, read once.
static TABLE: LazyLock<Table> = LazyLock::new(|| read(include_str!("kinds.txt")));

/// The version of Kubernetes that these are the kinds of, such as `1.36`.
#[must_use]
pub fn version() -> &'static str {
    TABLE.version
}

impl Schema {
    /// The schema of a kind; `None` if the table has none.
    #[must_use]
    pub fn of(api_version: &str, kind: &str) -> Option<&'static Self> {
        TABLE.kinds.iter().find(|schema| schema.api_version == api_version && schema.kind == kind)
    }

    /// A kind of which nothing is known but that its objects have metadata.
    #[must_use]
    pub fn open(api_version: &'static str, kind: &'static str, custom: bool) -> Self {
        let like = Self::of("v1", "ConfigMap").and_then(|schema| schema.root().map.clone()).unwrap_or_default();
        let common = ["apiVersion", "kind", "metadata"];
        let fields = like.fields.into_iter().filter(|(name, _)| common.contains(name)).collect();
        let map = Map { fields, item: Some(Of::Any), atomic: false };
        let root = Of::Type(Arc::new(Type { map: Some(map), ..Type::default() }));
        Self { api_version, kind, root, custom }
    }

    /// Group and version, as manifests spell them.
    #[must_use]
    pub fn api_version(&self) -> &'static str {
        self.api_version
    }

    /// The kind, as manifests spell it.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// Whether it is defined by a CustomResourceDefinition.
    #[must_use]
    pub fn is_custom(&self) -> bool {
        self.custom
    }

    /// Whether its objects have a `status`, which is then a subresource.
    #[must_use]
    pub fn has_status(&self) -> bool {
        self.root().map.as_ref().is_some_and(|map| map.fields.contains_key("status"))
    }

    /// The type of the whole object.
    pub fn root(&self) -> &Type {
        self.root.get()
    }
}

/// What a value may be. More than one only where anything may stand.
#[derive(Debug, Clone, Default)]
pub struct Type {
    /// As a value without parts.
    pub scalar: Option<Scalar>,
    /// As a list.
    pub list: Option<List>,
    /// As a map or an object.
    pub map: Option<Map>,
}

/// A type, shared by all that are made of it.
#[derive(Debug, Clone)]
pub enum Of {
    /// Whatever comes.
    Any,
    /// This.
    Type(Arc<Type>),
}

impl Of {
    /// The type itself.
    pub fn get(&self) -> &Type {
        match self {
            Self::Any => &ANY,
            Self::Type(shared) => shared,
        }
    }
}

/// A value without parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scalar {
    /// A string.
    Text,
    /// A number, whole or not.
    Number,
    /// A boolean.
    Truth,
    /// Any of them.
    Any,
    /// Any, which is stored in one spelling of many.
    Quantity,
}

/// A list.
#[derive(Debug, Clone)]
pub struct List {
    /// What its items are.
    pub item: Of,
    /// What tells them apart.
    pub by: By,
}

/// What tells the items of a list apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum By {
    /// Their place: the list has one owner.
    Place,
    /// Their value.
    Value,
    /// These fields.
    Keys(Vec<&'static str>),
}

/// A map, or an object with known fields.
#[derive(Debug, Clone, Default)]
pub struct Map {
    /// The fields that are known.
    pub fields: BTreeMap<&'static str, Field>,
    /// What any other key holds; none may be there if this is none.
    pub item: Option<Of>,
    /// It has one owner.
    pub atomic: bool,
}

/// A known field.
#[derive(Debug, Clone)]
pub struct Field {
    /// What it holds.
    pub of: Of,
    /// What becomes of it where it is absent or empty.
    pub empty: Empty,
}

/// What becomes of a field that is absent or empty.
#[derive(Debug, Clone, PartialEq)]
pub enum Empty {
    /// Nothing.
    Stays,
    /// Empty and zero are absent.
    Absent,
    /// Absent and empty are null.
    Null,
    /// Absent is this value.
    Default(Value),
}

/// The part of a type that fits a value.
#[derive(Debug, Clone, Copy)]
pub enum Shape<'a> {
    /// It is a value without parts.
    Scalar(Scalar),
    /// It is a list.
    List(&'a List),
    /// It is a map or an object.
    Map(&'a Map),
}

impl Shape<'_> {
    /// Whether both are parts of the same sort.
    pub fn is_like(self, other: Self) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}

impl Type {
    /// What `value` is to be read as. What fits no part, null too, is read as the first of map, scalar and list.
    pub fn shape(&self, value: Option<&Value>) -> Shape<'_> {
        let scalar = self.scalar.map(Shape::Scalar);
        let list = self.list.as_ref().map(Shape::List);
        let map = self.map.as_ref().map(Shape::Map);
        let fit = match value {
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_)) => scalar,
            Some(Value::Array(_)) => list,
            Some(Value::Object(_)) => map,
            Some(Value::Null) | None => None,
        };
        fit.or(map).or(scalar).or(list).unwrap_or(Shape::Scalar(Scalar::Any))
    }

    /// Whether it is an object with known fields.
    pub fn is_struct(&self) -> bool {
        self.map.as_ref().is_some_and(|map| !map.fields.is_empty())
    }
}

impl Map {
    /// The type of what stands at `key`.
    pub fn at(&self, key: &str) -> Option<&Type> {
        self.fields.get(key).map(|field| &field.of).or(self.item.as_ref()).map(Of::get)
    }
}

impl List {
    /// The default of a key field of the items.
    pub fn key_default(&self, key: &str) -> Option<&Value> {
        match &self.item.get().map.as_ref()?.fields.get(key)?.empty {
            Empty::Default(default) => Some(default),
            Empty::Stays | Empty::Absent | Empty::Null => None,
        }
    }
}

/// Types by name.
type Types = BTreeMap<&'static str, Arc<Type>>;

/// Reads the table; it says at its head how it is written.
fn read(table: &'static str) -> Table {
    let mut types = Types::new();
    let (mut version, mut kinds) = ("", Vec::new());
    let mut lines = table.lines().filter(|line| !line.starts_with('#')).peekable();
    while let Some(line) = lines.next() {
        let mut words = line.split(' ');
        let mut word = || words.next().unwrap_or_default();
        match word() {
            "type" => {
                let name = word();
                let mut map = Map { atomic: word() == "!", ..Map::default() };
                while let Some(field) = lines.next_if(|line| line.starts_with("  ")) {
                    read_field(field.trim_start(), &types, &mut map);
                }
                types.insert(name, Arc::new(Type { map: Some(map), ..Type::default() }));
            }
            "kubernetes" => version = word(),
            _ => {
                let (api_version, kind, root) = (word(), word(), expression(word(), &types));
                kinds.push(Schema { api_version, kind, root, custom: word() == "custom" });
            }
        }
    }
    Table { version, kinds }
}

fn read_field(line: &'static str, types: &Types, map: &mut Map) {
    let mut words = line.splitn(3, ' ');
    let mut word = || words.next().unwrap_or_default();
    let (name, of, empty) = (word(), expression(word(), types), word());
    if name == "*" {
        map.item = Some(of);
        return;
    }
    let empty = match empty {
        "" => Empty::Stays,
        "-" => Empty::Absent,
        "+" => Empty::Null,
        default => Empty::Default(
            serde_json::from_str(default.trim_start_matches('=')).expect("JSON, because a test made the table"),
        ),
    };
    map.fields.insert(name, Field { of, empty });
}

/// The type that a table's expression names.
fn expression(text: &'static str, types: &Types) -> Of {
    let scalar = |scalar| Type { scalar: Some(scalar), ..Type::default() };
    let list = |item, by| Some(List { item, by });
    let map = |item, atomic| Some(Map { item: Some(item), atomic, ..Map::default() });
    let made = match text {
        "string" => scalar(Scalar::Text),
        "number" => scalar(Scalar::Number),
        "bool" => scalar(Scalar::Truth),
        "scalar" => scalar(Scalar::Any),
        "quantity" => scalar(Scalar::Quantity),
        "any" => return Of::Any,
        _ if text.starts_with('[') => {
            let (item, by) = text[1..].rsplit_once(']').expect("closed, because a test made the table");
            let by = match by {
                "" => By::Place,
                "set" => By::Value,
                keys => By::Keys(keys.trim_start_matches("by:").split(',').collect()),
            };
            Type { list: list(expression(item, types), by), ..Type::default() }
        }
        _ if text.starts_with('{') => {
            let (item, atomic) = text[1..].rsplit_once('}').expect("closed, because a test made the table");
            Type { map: map(expression(item, types), atomic == "!"), ..Type::default() }
        }
        _ => {
            let name = text.trim_end_matches('!');
            let named = types.get(name).expect("above, because a test made the table");
            if name == text {
                return Of::Type(Arc::clone(named));
            }
            let mut atomic = Type::clone(named);
            atomic.map.iter_mut().for_each(|map| map.atomic = true);
            atomic
        }
    };
    Of::Type(Arc::new(made))
}

/// Anything: an object's fields have owners of their own, a list has one.
static ANY: LazyLock<Type> = LazyLock::new(|| Type {
    scalar: Some(Scalar::Any),
    list: Some(List { item: Of::Any, by: By::Place }),
    map: Some(Map { item: Some(Of::Any), ..Map::default() }),
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::object::Kind;

    #[test]
    fn every_kind_of_a_rollout_is_in_the_table() {
        // Layers are in Git alone.
        for kind in Kind::ALL.iter().filter(|kind| **kind != Kind::NodeConfigLayer) {
            let schema = Schema::of(kind.api_version(), kind.as_str()).unwrap();
            assert!(schema.root().is_struct(), "{kind}");
            assert_eq!(schema.is_custom(), kind.is_custom());
        }
    }
}
