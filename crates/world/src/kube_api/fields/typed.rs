//! Objects read by their schema: what they consist of, how two differ, one laid over another, a part cut out.

use super::set::{FieldSet, Literal, Step};
use serde_json::{Map as Object, Value};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tidegate_controller::manifest::kinds::{By, List, Map, Shape, Type};

/// How an item of a list is told apart; `Err` says why it cannot be.
pub(super) fn step_of(list: &List, item: &Value) -> Result<Step, String> {
    match &list.by {
        By::Place => Err("invalid indexing of non-associative list".to_owned()),
        By::Value => match item {
            Value::Object(_) => Err("associative list without keys has an element that's a map type".to_owned()),
            Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
            Value::Null => Err("associative list without keys has an element that's an explicit null".to_owned()),
            Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(Step::Value(Literal(item.clone()))),
        },
        By::Keys(keys) => {
            let fields = match item {
                Value::Null => return Err("associative list with keys may not have a null element".to_owned()),
                Value::Object(fields) => fields,
                Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                    return Err("associative list with keys may not have non-map elements".to_owned());
                }
            };
            let value = |key: &&'static str| {
                let value = fields.get(*key).or_else(|| list.key_default(key))?;
                Some(((*key).to_owned(), Literal(value.clone())))
            };
            let mut found: Vec<_> = keys.iter().filter_map(value).collect();
            if found.is_empty() {
                let keys: Vec<String> = keys.iter().map(|key| format!("{key:?}")).collect();
                return Err(format!(
                    "associative list with keys has an element that omits all key fields [{}] \
                     (and doesn't have default values for any key fields)",
                    keys.join(" ")
                ));
            }
            found.sort();
            Ok(Step::Keys(found))
        }
    }
}

/// The items of a list with their steps. Lists were validated, so that an item without a step does not come.
fn steps<'a>(list: &List, items: &'a [Value]) -> Vec<(Step, &'a Value)> {
    items.iter().filter_map(|item| Some((step_of(list, item).ok()?, item))).collect()
}

/// The items of what is a list.
fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The fields of what is an object.
fn fields(value: Option<&Value>) -> Option<&Object<String, Value>> {
    value.and_then(Value::as_object).filter(|fields| !fields.is_empty())
}

/// Every path of a value, as its applier owns them.
pub(super) fn field_set(of: &Type, value: &Value) -> FieldSet {
    let mut set = FieldSet::default();
    collect(of, value, &mut Vec::new(), &mut set);
    set
}

fn collect(of: &Type, value: &Value, path: &mut Vec<Step>, set: &mut FieldSet) {
    match of.shape(Some(value)) {
        Shape::Scalar(_) => set.insert(path),
        Shape::List(list) if list.by == By::Place => set.insert(path),
        Shape::Map(map) if map.atomic => set.insert(path),
        Shape::List(list) => collect_items(list, items(Some(value)), path, set),
        Shape::Map(map) => {
            for (name, value) in value.as_object().into_iter().flatten() {
                path.push(Step::field(name));
                if let Some(of) = map.at(name) {
                    collect(of, value, path, set);
                }
                let empty = value.is_null() || value.as_object().is_some_and(Object::is_empty);
                if empty || !map.fields.contains_key(name.as_str()) {
                    set.insert(path);
                }
                path.pop();
            }
        }
    }
}

/// Items that are there more than once are owned as one thing.
fn collect_items(list: &List, items: &[Value], path: &mut Vec<Step>, set: &mut FieldSet) {
    let items = steps(list, items);
    let mut count: BTreeMap<&Step, usize> = BTreeMap::new();
    items.iter().for_each(|(step, _)| *count.entry(step).or_default() += 1);
    for (step, item) in &items {
        path.push(step.clone());
        if count[step] == 1 {
            collect(list.item.get(), item, path, set);
        }
        set.insert(path);
        path.pop();
    }
}

/// The same set with every known field in it that has something below it.
pub(super) fn with_named(of: &Type, set: &FieldSet) -> FieldSet {
    set.map(|(step, member, below)| {
        let inner = match step {
            Step::Field(name) => of.map.as_ref().and_then(|map| map.at(name)),
            Step::Keys(_) => of.list.as_ref().map(|list| list.item.get()),
            Step::Value(_) | Step::Place(_) => None,
        };
        let known = match (step, &of.map) {
            (Step::Field(name), Some(map)) => map.fields.contains_key(name.as_str()),
            _ => false,
        };
        let below_named = inner.map_or_else(|| below.clone(), |inner| with_named(inner, below));
        (member || known && !below.is_empty(), below_named)
    })
}

/// How one object differs from another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Difference {
    /// Paths that only the old one has.
    pub(super) removed: FieldSet,
    /// Paths of both whose values differ.
    pub(super) modified: FieldSet,
    /// Paths that only the new one has.
    pub(super) added: FieldSet,
}

/// How `new` differs from `old`.
pub(super) fn compare(of: &Type, old: &Value, new: &Value) -> Difference {
    let mut difference = Difference::default();
    difference.walk(of, Some(old), Some(new), &mut Vec::new());
    difference
}

impl Difference {
    fn walk(&mut self, of: &Type, old: Option<&Value>, new: Option<&Value>, path: &mut Vec<Step>) {
        let (was, is) = (of.shape(old), of.shape(new));
        if old.is_some() && new.is_some() && !was.is_like(is) {
            self.step_into(was, old, new, path);
        }
        self.step_into(if new.is_some() { is } else { was }, old, new, path);
        if old.is_none() {
            self.added.insert(path);
        } else if new.is_none() {
            self.removed.insert(path);
        }
    }

    fn step_into(&mut self, shape: Shape<'_>, old: Option<&Value>, new: Option<&Value>, path: &mut Vec<Step>) {
        match shape {
            Shape::Map(map) if !map.atomic && (fields(old).is_some() || fields(new).is_some()) => {
                let empty = Object::new();
                let (old, new) = (fields(old).unwrap_or(&empty), fields(new).unwrap_or(&empty));
                // Most of an object stays as it is.
                let names = old.keys().chain(new.keys()).filter(|name| old.get(*name) != new.get(*name));
                let names: BTreeSet<&String> = names.collect();
                for name in names {
                    let Some(of) = map.at(name) else { continue };
                    path.push(Step::field(name));
                    self.walk(of, old.get(name), new.get(name), path);
                    path.pop();
                }
            }
            Shape::List(list) if list.by != By::Place && !(items(old).is_empty() && items(new).is_empty()) => {
                self.walk_items(list, items(old), items(new), path);
            }
            Shape::Scalar(_) | Shape::List(_) | Shape::Map(_) => self.leaf(old, new, path),
        }
    }

    fn leaf(&mut self, old: Option<&Value>, new: Option<&Value>, path: &[Step]) {
        match (old, new) {
            (None, _) => self.added.insert(path),
            (_, None) => self.removed.insert(path),
            (Some(old), Some(new)) if !same(old, new) => self.modified.insert(path),
            _ => {}
        }
    }

    fn walk_items(&mut self, list: &List, old: &[Value], new: &[Value], path: &mut Vec<Step>) {
        let mut all: BTreeMap<Step, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
        for (step, item) in steps(list, old) {
            all.entry(step).or_default().0.push(item);
        }
        for (step, item) in steps(list, new) {
            all.entry(step).or_default().1.push(item);
        }
        for (step, (old, new)) in all {
            path.push(step);
            let of = list.item.get();
            match (old.len(), new.len()) {
                (0 | 1, 0 | 1) => self.walk(of, old.first().copied(), new.first().copied(), path),
                (0 | 1, _) => {
                    if let [old] = old[..] {
                        self.walk(of, Some(old), None, path);
                    }
                    self.added.insert(path);
                }
                (_, 0 | 1) => {
                    if let [new] = new[..] {
                        self.walk(of, None, Some(new), path);
                    }
                    self.removed.insert(path);
                }
                _ => {
                    let equal = old.len() == new.len() && old.iter().zip(&new).all(|(old, new)| same(old, new));
                    if !equal {
                        self.modified.insert(path);
                    }
                }
            }
            path.pop();
        }
    }

    /// Without the paths of `hidden` and what is below them.
    pub(super) fn outside(self, hidden: &FieldSet) -> Self {
        Self {
            removed: self.removed.outside(hidden),
            modified: self.modified.outside(hidden),
            added: self.added.outside(hidden),
        }
    }
}

/// Whether two values are equal; 1 and 1.0 are.
pub(super) fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left == right || left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(name, value)| right.get(name).is_some_and(|other| same(value, other)))
        }
        _ => left == right,
    }
}

/// `over` laid over `under`: what it says holds, all else stays.
pub(super) fn merge(of: &Type, under: Option<&Value>, over: Option<&Value>) -> Option<Value> {
    let shape = of.shape(over.or(under));
    match shape {
        Shape::Map(map) if !map.atomic && (fields(under).is_some() || fields(over).is_some()) => {
            let merged = merge_fields(map, fields(under), fields(over));
            (!merged.is_empty()).then_some(Value::Object(merged))
        }
        Shape::List(list) if list.by != By::Place && !(items(under).is_empty() && items(over).is_empty()) => {
            let merged = merge_items(list, items(under), items(over));
            (!merged.is_empty()).then_some(Value::Array(merged))
        }
        Shape::Scalar(_) | Shape::List(_) | Shape::Map(_) => over.or(under).cloned(),
    }
}

fn merge_fields(
    map: &Map,
    under: Option<&Object<String, Value>>,
    over: Option<&Object<String, Value>>,
) -> Object<String, Value> {
    let empty = Object::new();
    let (under, over) = (under.unwrap_or(&empty), over.unwrap_or(&empty));
    let new = over.keys().filter(|name| !under.contains_key(*name));
    let merged = under.keys().chain(new).filter_map(|name| {
        let of = map.at(name)?;
        Some((name.clone(), merge(of, under.get(name), over.get(name))?))
    });
    merged.collect()
}

/// The items of `over` keep their order, and so do those of `under` that it does not name; these stay as far in front
/// as the items that both have allow.
fn merge_items(list: &List, under: &[Value], over: &[Value]) -> Vec<Value> {
    let of = list.item.get();
    let (under, over) = (steps(list, under), steps(list, over));
    let named: BTreeSet<&Step> = over.iter().map(|(step, _)| step).collect();
    let mut known: BTreeMap<&Step, Option<&Value>> = BTreeMap::new();
    for (step, item) in &under {
        // What is there more than once is replaced, not merged.
        known.entry(step).and_modify(|item| *item = None).or_insert(Some(item));
    }
    let mut shared: VecDeque<&Step> =
        over.iter().map(|(step, _)| step).filter(|step| known.contains_key(step)).collect();
    let mut rest = under.iter().peekable();
    let mut merged = Vec::new();
    for (step, item) in &over {
        // Items of `under` go first up to the next one that both have, in the order of `over`.
        while let Some((kept, value)) = rest.peek() {
            if !named.contains(kept) {
                merged.extend(merge(of, Some(value), None));
            } else if kept != step && shared.front() == Some(&kept) {
                break;
            }
            rest.next();
            if kept == step || named.contains(kept) && shared.is_empty() {
                break;
            }
        }
        if shared.front() == Some(&step) {
            shared.pop_front();
        }
        merged.extend(merge(of, known.get(step).copied().flatten(), Some(item)));
    }
    let left = rest.filter(|(step, _)| !named.contains(step));
    merged.extend(left.filter_map(|(_, value)| merge(of, Some(value), None)));
    merged
}

/// `value` without the paths of `set`. What has become empty by that is null.
pub(super) fn without(of: &Type, value: &Value, set: &FieldSet) -> Value {
    match (of.shape(Some(value)), value) {
        (Shape::List(list), Value::Array(all)) if list.by != By::Place => {
            let keep = |(step, item): (Step, &Value)| {
                (!set.has(&step)).then(|| match set.below(&step) {
                    Some(below) => without(list.item.get(), item, below),
                    None => item.clone(),
                })
            };
            let kept: Vec<Value> = steps(list, all).into_iter().filter_map(keep).collect();
            if kept.is_empty() { Value::Null } else { Value::Array(kept) }
        }
        (Shape::Map(map), Value::Object(all)) if !map.atomic => {
            let keep = |(name, value): (&String, &Value)| {
                let step = Step::field(name);
                let value = match (set.below(&step), map.at(name)) {
                    _ if set.has(&step) => return None,
                    (Some(below), Some(of)) => without(of, value, below),
                    _ => value.clone(),
                };
                Some((name.clone(), value))
            };
            let kept: Object<String, Value> = all.iter().filter_map(keep).collect();
            if kept.is_empty() { Value::Null } else { Value::Object(kept) }
        }
        (Shape::Scalar(_), _) => value.clone(),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests;
