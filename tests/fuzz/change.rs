//! Inputs: real documents with changes in them, pieces in a row, plain bytes.

use arbitrary::{Arbitrary, Result, Unstructured};

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
