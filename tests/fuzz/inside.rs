//! Changes inside of values that are no text any more.

use crate::fuzz::change::Piece;
use arbitrary::Arbitrary;
use serde_json::{Map, Value, json};

/// A change somewhere inside a value.
#[derive(Debug, Clone, Arbitrary)]
pub(crate) struct Inside {
    at: u16,
    how: How,
}

#[derive(Debug, Clone, Arbitrary)]
enum How {
    /// By something of its own kind that stands elsewhere.
    Like(u16),
    /// A number or a time at the end of what there is.
    Far(u8),
    Piece(Piece),
    Number(i64),
    Odd(Odd),
    Remove,
    Rename(Piece),
    Add(Piece, Piece),
    Nest(u8),
    Repeat(u16),
    /// By what stands elsewhere.
    Copy(u16),
}

#[derive(Debug, Clone, Copy, Arbitrary)]
enum Odd {
    Null,
    True,
    Zero,
    Largest,
    Smallest,
    Huge,
    Fraction,
    NoMap,
    NoList,
}

impl Odd {
    fn value(self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::True => true.into(),
            Self::Zero => 0.into(),
            Self::Largest => u64::MAX.into(),
            Self::Smallest => i64::MIN.into(),
            Self::Huge => json!(1e300),
            Self::Fraction => json!(0.5),
            Self::NoMap => json!({}),
            Self::NoList => json!([]),
        }
    }
}

const TIMES: [&str; 4] =
    ["+262142-12-31T23:59:59Z", "-262143-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "2026-03-02T11:00:00.000000001Z"];

/// Which kind of value it is: of times, which may take the place of each other, and others.
fn kind(value: &Value) -> (std::mem::Discriminant<Value>, bool) {
    (std::mem::discriminant(value), is_time(value))
}

fn is_time(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.ends_with('Z') && text.contains("T") && text.contains(':'))
}

fn far(here: &mut Value, n: usize) {
    match here {
        Value::Number(_) => *here = [0, 1, u64::MAX, i64::MAX.cast_unsigned(), 1 << 53, u32::MAX.into()][n % 6].into(),
        Value::String(_) if is_time(here) => *here = TIMES[n % TIMES.len()].into(),
        Value::String(text) => *text = text.chars().rev().collect(),
        Value::Array(items) => items.reverse(),
        Value::Bool(set) => *set = !*set,
        Value::Object(_) | Value::Null => {}
    }
}

/// The pointers of all that a value holds, itself first.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                places(value, &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), found);
            }
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(n, item)| places(item, &format!("{at}/{n}"), found));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

impl Inside {
    /// A number or a time at the end of what there is.
    pub(crate) fn far(at: u16, n: u8) -> Self {
        Self { at, how: How::Far(n) }
    }

    /// Makes the change.
    pub(crate) fn apply(&self, value: &mut Value) {
        let mut all = Vec::new();
        places(value, "", &mut all);
        let place = |at: u16| &all[usize::from(at) % all.len()];
        let at = place(self.at);
        let copied = match self.how {
            How::Copy(from) => value.pointer(place(from)).cloned(),
            How::Like(from) => value.pointer(at).and_then(|here| {
                let like = |place: &String| value.pointer(place).filter(|other| kind(other) == kind(here));
                let (before, after) = all.split_at(usize::from(from) % all.len());
                after.iter().chain(before).find_map(like).cloned()
            }),
            How::Piece(_)
            | How::Number(_)
            | How::Odd(_)
            | How::Far(_)
            | How::Remove
            | How::Rename(_)
            | How::Add(..)
            | How::Nest(_)
            | How::Repeat(_) => None,
        };
        match &self.how {
            How::Remove => drop(take(value, at)),
            How::Rename(piece) => {
                if let Some(taken) = take(value, at) {
                    let (parent, _) = at.rsplit_once('/').unwrap_or_default();
                    add(value, parent, piece, taken);
                }
            }
            How::Add(key, piece) => add(value, at, key, piece.0.as_str().into()),
            How::Piece(_)
            | How::Number(_)
            | How::Odd(_)
            | How::Far(_)
            | How::Nest(_)
            | How::Repeat(_)
            | How::Copy(_)
            | How::Like(_) => {
                if let Some(here) = value.pointer_mut(at) {
                    self.replace(here, copied);
                }
            }
        }
    }

    fn replace(&self, here: &mut Value, copied: Option<Value>) {
        match &self.how {
            How::Piece(piece) => *here = piece.0.as_str().into(),
            How::Number(number) => *here = (*number).into(),
            How::Odd(odd) => *here = odd.value(),
            How::Nest(depth) => {
                for _ in 0..*depth % 100 {
                    *here = json!([here.take()]);
                }
            }
            How::Repeat(times) => match here {
                Value::Array(items) => {
                    let Some(first) = items.first().cloned() else { return };
                    items.extend(std::iter::repeat_n(first, usize::from(*times % 300)));
                }
                Value::String(text) => *text = text.repeat(usize::from(*times % 300)),
                Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
            },
            How::Far(n) => far(here, usize::from(*n)),
            How::Copy(_) | How::Like(_) => {
                if let Some(copied) = copied.filter(|copied| copied.to_string().len() < 4_000) {
                    *here = copied;
                }
            }
            How::Remove | How::Rename(_) | How::Add(..) => {}
        }
    }
}

fn take(value: &mut Value, at: &str) -> Option<Value> {
    let (parent, key) = at.rsplit_once('/')?;
    match value.pointer_mut(parent)? {
        Value::Object(map) => map.remove(&key.replace("~1", "/").replace("~0", "~")),
        Value::Array(items) => key.parse().ok().filter(|n| *n < items.len()).map(|n: usize| items.remove(n)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn add(value: &mut Value, at: &str, key: &Piece, new: Value) {
    match value.pointer_mut(at) {
        Some(Value::Object(map)) => drop(map.insert(key.0.clone(), new)),
        Some(Value::Array(items)) => items.push(new),
        Some(other) => *other = Value::Object(Map::from_iter([(key.0.clone(), new)])),
        None => {}
    }
}
