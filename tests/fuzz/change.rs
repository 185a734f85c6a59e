//! Inputs: real documents with changes in them, pieces in a row, plain bytes.

use arbitrary::{Arbitrary, Result, Unstructured};
use serde_json::{Map, Value, json};

/// What breaks readers, by experience.
const PIECES: &[&str] = &[
    "",
    " ",
    "~",
    "null",
    "true",
    "no",
    "on",
    "0",
    "-1",
    "007",
    "0x1F",
    "0o7",
    "1e999",
    "1_000",
    "1:30",
    ".inf",
    ".nan",
    "18446744073709551615",
    "18446744073709551616",
    "9223372036854775807",
    "-9223372036854775808",
    "4294967296",
    "101",
    "\"\\u0000\"",
    "\"\\ud800\"",
    "&a x",
    "*a",
    "<<: *a",
    "<<",
    "!!str",
    "!!binary AA==",
    "---\n",
    "...\n",
    "%YAML 1.1\n",
    "# x",
    "|",
    "|2-",
    ">+",
    "? ",
    "- ",
    ": ",
    "{",
    "}",
    "[",
    "]",
    ",",
    "'",
    "\"",
    "\t",
    "\r",
    "\n",
    "\u{feff}",
    "\u{202e}",
    "\u{0}",
    "\u{85}",
    "\u{2028}",
    "\u{7f}",
    "é",
    "\u{1f600}",
    "../..",
    ".",
    "..",
    "/",
    "a//b",
    ".git",
    "~/x",
    "C:\\x",
    "a%2fb",
    "%",
    "87600h",
    "87601h",
    "999999999999h",
    "0s",
    "1h1h",
    "+262142-12-31T23:59:59Z",
    "-262143-01-01T00:00:00Z",
    "1970-01-01T00:00:00Z",
    "2026-03-02T10:00:00Z",
    "2026-02-30T10:00:00Z",
    "* * * * *",
    "0 0 30 2 *",
    "*/7 1-23/3 * 2 1",
    "0 0 29 2 1",
    "Europe/Berlin",
    "Mars/Phobos",
    "kube-system",
    "shop",
    "shop/web",
    "7-07070707",
    "0",
    "-",
    "a-",
    "x.y",
    "0123456789abcdef0123456789abcdef01234567",
    "tidegate.io/v1alpha1",
    "tidegate.io/v2",
    "v1",
    "Rollout",
    "Secret",
    "Policy",
    "Deployment",
    "HTTPRoute",
    "web",
    "web-canary",
    "promotion",
    "revert",
    "hold",
    "approve",
    "rollback",
    "retry",
    "100",
    "50",
    "Progressing",
    "Steady",
    "Failed",
    "Reverting",
    "None",
    "7-07070707/failed: x",
    "/",
    "world/shop/web",
    "1Ki",
    "-5m",
    "1e3",
];

/// A piece of text.
#[derive(Debug, Clone)]
pub(crate) struct Piece(pub(crate) String);

impl<'a> Arbitrary<'a> for Piece {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(Self(match u.int_in_range(0..=9)? {
            0 => String::arbitrary(u)?,
            1 => u.choose(PIECES)?.repeat(u.int_in_range(1..=200)?),
            2 => char::arbitrary(u)?.to_string().repeat(u.int_in_range(1..=2_000)?),
            _ => (*u.choose(PIECES)?).to_owned(),
        }))
    }
}

/// A few of something.
#[derive(Debug, Clone)]
pub(crate) struct Few<T>(pub(crate) Vec<T>);

impl<'a, T: Arbitrary<'a>> Arbitrary<'a> for Few<T> {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        // Mostly one: what is broken in many places is refused for the first.
        let count = *u.choose(&[1, 1, 1, 1, 2, 2, 3, 5])?;
        Ok(Self((0..count).map(|_| T::arbitrary(u)).collect::<Result<_>>()?))
    }
}

/// A change of a text. Numbers are taken modulo what is there.
#[derive(Debug, Clone, Arbitrary)]
pub(crate) enum Edit {
    Byte {
        at: u16,
        to: u8,
    },
    Insert {
        at: u16,
        piece: Piece,
    },
    Cut {
        at: u16,
        length: u8,
    },
    DropLine {
        line: u8,
    },
    SwapLines {
        one: u8,
        other: u8,
    },
    RepeatLine {
        line: u8,
        times: u16,
    },
    Indent {
        line: u8,
        by: u8,
    },
    Value {
        line: u8,
        piece: Piece,
    },
    Key {
        line: u8,
        piece: Piece,
    },
    Nest {
        line: u8,
        depth: u8,
        list: bool,
    },
    /// A part of another document.
    Splice {
        line: u8,
        from: u8,
        first: u8,
        count: u8,
    },
}

/// The longest text that is made.
const LONGEST: usize = 64 << 10;

impl Edit {
    fn apply(&self, text: &mut Vec<u8>, seeds: &[String]) {
        match self {
            Self::Byte { at, to } => {
                if let Some(byte) = usize::from(*at).checked_rem(text.len()).and_then(|at| text.get_mut(at)) {
                    *byte = *to;
                }
            }
            Self::Insert { at, piece } => {
                let at = usize::from(*at) % (text.len() + 1);
                text.splice(at..at, piece.0.bytes());
            }
            Self::Cut { at, length } => {
                let at = usize::from(*at) % (text.len() + 1);
                text.drain(at..text.len().min(at + usize::from(*length)));
            }
            Self::DropLine { .. }
            | Self::SwapLines { .. }
            | Self::RepeatLine { .. }
            | Self::Indent { .. }
            | Self::Value { .. }
            | Self::Key { .. }
            | Self::Nest { .. }
            | Self::Splice { .. } => {
                let mut lines: Vec<Vec<u8>> = text.split(|&c| c == b'\n').map(<[u8]>::to_vec).collect();
                self.change_lines(&mut lines, seeds);
                *text = lines.join(&b'\n');
            }
        }
        text.truncate(LONGEST);
    }

    fn change_lines(&self, lines: &mut Vec<Vec<u8>>, seeds: &[String]) {
        let count = lines.len().max(1);
        let place = |line: u8| usize::from(line) % count;
        let parts = |line: &[u8]| {
            let colon = line.windows(2).position(|pair| pair == b": ").unwrap_or(line.len());
            let start = line[..colon].iter().position(|c| !b" -{".contains(c)).unwrap_or(colon);
            (start, colon)
        };
        match self {
            Self::DropLine { line } => drop(lines.remove(place(*line))),
            Self::SwapLines { one, other } => lines.swap(place(*one), place(*other)),
            Self::RepeatLine { line, times } => {
                let times = usize::from(*times % 4_000);
                let copies = vec![lines[place(*line)].clone(); times];
                lines.splice(place(*line)..place(*line), copies);
            }
            Self::Indent { line, by } => {
                lines[place(*line)].splice(0..0, std::iter::repeat_n(b' ', usize::from(*by % 8)));
            }
            Self::Value { line, piece } => {
                let line = &mut lines[place(*line)];
                let (_, colon) = parts(line);
                line.truncate(colon);
                line.extend(b": ");
                line.extend(piece.0.bytes());
            }
            Self::Key { line, piece } => {
                let line = &mut lines[place(*line)];
                let (start, colon) = parts(line);
                line.splice(start..colon, piece.0.bytes());
            }
            Self::Nest { line, depth, list } => {
                let line = &mut lines[place(*line)];
                let (_, colon) = parts(line);
                let (open, close) = if *list { ("[", "]") } else { ("{a: ", "}") };
                let depth = usize::from(*depth);
                let value = line.split_off(colon.min(line.len()));
                line.extend(format!(": {}", open.repeat(depth)).bytes());
                line.extend(value.into_iter().skip(2));
                line.extend(close.repeat(depth).bytes());
            }
            Self::Splice { line, from, first, count } => {
                let Some(seed) = seeds.get(usize::from(*from) % seeds.len().max(1)) else { return };
                let part = seed.lines().cycle().skip(usize::from(*first)).take(usize::from(*count % 20));
                let at = place(*line);
                lines.splice(at..at, part.map(|line| line.as_bytes().to_vec()).collect::<Vec<_>>());
            }
            Self::Byte { .. } | Self::Insert { .. } | Self::Cut { .. } => {}
        }
    }
}

/// A text that somebody could have written.
#[derive(Debug, Clone)]
pub(crate) enum Text {
    /// Anything.
    Raw(Vec<u8>),
    /// Pieces in a row.
    Soup(Vec<Piece>),
    /// One of the documents, changed.
    Changed(u8, Few<Edit>),
}

impl<'a> Arbitrary<'a> for Text {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        match u.int_in_range(0..=9)? {
            0 => Ok(Self::Raw(u.bytes(u.len().min(200))?.to_vec())),
            1 => Ok(Self::Soup((0..u.int_in_range(1..=60)?).map(|_| Piece::arbitrary(u)).collect::<Result<_>>()?)),
            _ => Ok(Self::Changed(u.arbitrary()?, u.arbitrary()?)),
        }
    }
}

impl Text {
    /// Its bytes, made of these documents.
    pub(crate) fn bytes(&self, seeds: &[String]) -> Vec<u8> {
        match self {
            Self::Raw(bytes) => bytes.clone(),
            Self::Soup(pieces) => {
                let mut text: Vec<u8> = pieces.iter().flat_map(|piece| piece.0.bytes()).collect();
                text.truncate(LONGEST);
                text
            }
            Self::Changed(seed, edits) => {
                let mut text = seeds[usize::from(*seed) % seeds.len()].clone().into_bytes();
                edits.0.iter().for_each(|edit| edit.apply(&mut text, seeds));
                text
            }
        }
    }
}

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
                all.iter().cycle().skip(usize::from(from) % all.len()).find_map(like).cloned()
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
