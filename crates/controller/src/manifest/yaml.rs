//! YAML as a tree that knows where each node stands. The one place that touches the YAML parser.
//!
//! It never expands anything (anchors, aliases, merge keys and tags are refused), never recurses over the input, and
//! stops at limits that no real manifest reaches. Mistakes that leave the structure readable are collected, so that
//! one look shows all of them.

mod mistaken;
mod node;
mod scalar;

use super::diagnostic::{Code, Diagnostic, MOST, Mark, SourceText, quoted};
use super::files::RepoPath;
pub use node::{Content, Key, Node};
use serde_json::Value;
use serde_saphyr::granit_parser::{self, ErrorKind, Event, Marker, Parser, ScalarStyle, ScanError, Span};
use std::collections::BTreeSet;

/// The most bytes that a file may have. etcd takes objects of 1.5 MiB, and most of such an object is not written by hand.
pub const MAX_BYTES: usize = 1 << 20;
/// The deepest nesting. CustomResourceDefinitions reach about 30.
pub const MAX_DEPTH: usize = 64;
/// The most nodes of one file.
pub const MAX_NODES: usize = 100_000;

/// How scalars are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Our own files: one document, and nothing that YAML 1.1 and 1.2 read differently.
    Own,
    /// Kubernetes manifests: as kubectl reads them, any number of documents.
    Kubernetes,
}

/// A file as read.
#[derive(Debug, Clone)]
pub struct Parsed {
    /// The file.
    pub source: SourceText,
    /// Its documents that are not empty, as far as they could be read.
    pub documents: Vec<Node>,
    /// What is wrong. With any of these the documents serve to find more mistakes, never to act.
    pub diagnostics: Vec<Diagnostic>,
    /// Whether the structure was read to its end.
    pub complete: bool,
    /// How many values it has, as far as it was read.
    pub nodes: usize,
}

/// Reads a file.
#[must_use]
pub fn parse(path: &RepoPath, bytes: &[u8], dialect: Dialect) -> Parsed {
    // The source goes on with it, so that whoever knows that it holds a secret can silence what is quoted.
    let refused = |source: SourceText, diagnostic: Diagnostic| Parsed {
        source,
        documents: Vec::new(),
        diagnostics: vec![diagnostic],
        complete: false,
        nodes: 0,
    };
    if bytes.len() > MAX_BYTES {
        let found = format!("a file of {} bytes", bytes.len());
        let diagnostic = Diagnostic::of_file(path, Code::TooLarge, found, format!("at most {MAX_BYTES} bytes"));
        return refused(SourceText::new(path.clone(), String::new()), diagnostic);
    }
    let source = SourceText::new(path.clone(), String::from_utf8_lossy(bytes).into_owned());
    if let Err(error) = std::str::from_utf8(bytes) {
        let (before, after) = bytes.split_at(error.valid_up_to());
        let mark = end_of(&String::from_utf8_lossy(before));
        let found = format!("the byte 0x{:02X} is not UTF-8 here", after.first().copied().unwrap_or_default());
        let diagnostic = source.at(mark, Code::Encoding, found, "UTF-8 without a byte order mark");
        return refused(source, diagnostic.help("save the file as UTF-8"));
    }
    let parsed = match odd_character(&source, dialect) {
        Some((diagnostic, Odd::Unreadable)) => return refused(source, diagnostic),
        Some((diagnostic, Odd::Invisible)) => Builder::new(source, dialect, vec![diagnostic]).run(),
        None => Builder::new(source, dialect, Vec::new()).run(),
    };
    mistaken::told(parsed)
}

/// The place right behind a text.
fn end_of(text: &str) -> Mark {
    let last = text.rsplit('\n').next().unwrap_or_default();
    Mark { line: text.matches('\n').count() + 1, column: last.chars().count() + 1, length: 1 }
}

/// How bad a character is.
enum Odd {
    /// Readers disagree on what the file says.
    Unreadable,
    /// Readers agree, and people do not see it.
    Invisible,
}

/// The first character that has no place in a file: one that makes it unreadable, else one that cannot be seen.
fn odd_character(source: &SourceText, dialect: Dialect) -> Option<(Diagnostic, Odd)> {
    let mut unseen = None;
    let (mut mark, mut chars) = (Mark { line: 1, column: 1, length: 1 }, source.text().chars().peekable());
    while let Some(c) = chars.next() {
        let code = || format!("the invisible character U+{:04X}", u32::from(c));
        let odd = match c {
            '\u{feff}' if (mark.line, mark.column) == (1, 1) => Some(("a byte order mark".to_owned(), Odd::Unreadable)),
            '\r' if chars.peek() != Some(&'\n') => {
                Some(("a carriage return without a line feed".to_owned(), Odd::Unreadable))
            }
            '\t' | '\n' | '\r' => None,
            c if c.is_control() => Some((code(), Odd::Unreadable)),
            c if dialect == Dialect::Own && is_invisible(c) => Some((code(), Odd::Invisible)),
            _ => None,
        };
        if let Some((what, odd)) = odd {
            let expected = "visible UTF-8 text with LF or CRLF at the end of lines";
            let told = || source.at(mark, Code::Encoding, what, expected).help("remove it");
            match odd {
                Odd::Unreadable => return Some((told(), odd)),
                Odd::Invisible => drop(unseen.get_or_insert_with(|| (told(), odd))),
            }
        }
        if c == '\n' {
            mark = Mark { line: mark.line + 1, column: 1, length: 1 };
        } else {
            mark.column += 1;
        }
    }
    unseen
}

/// Characters that change how text looks without being seen: bidirectional controls, zero-width characters, marks
/// that separate lines (Unicode Technical Standard 39, and CVE-2021-42574).
#[must_use]
pub fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

enum Frame {
    List { mark: Mark, items: Vec<Node> },
    Map { mark: Mark, entries: Vec<(Key, Node)>, keys: BTreeSet<String>, key: Option<Option<Key>> },
}

struct Builder {
    source: SourceText,
    dialect: Dialect,
    stack: Vec<Frame>,
    nodes: usize,
    started: usize,
    documents: Vec<Node>,
    diagnostics: Vec<Diagnostic>,
    /// Whether the last report was kept.
    told: bool,
}

/// Reading cannot go on; the reason is among the diagnostics.
struct Stopped;

impl Builder {
    fn new(source: SourceText, dialect: Dialect, diagnostics: Vec<Diagnostic>) -> Self {
        Self { source, dialect, stack: vec![], nodes: 0, started: 0, documents: vec![], diagnostics, told: false }
    }

    fn run(mut self) -> Parsed {
        let text = self.source.text().to_owned();
        let options = granit_parser::options! {
            disallow_directives: true,
            emit_unresolved_aliases: true,
            emit_comments: false,
        };
        let mut complete = true;
        for event in Parser::new_from_str_with_options(&text, options) {
            let step = match event {
                Ok((event, span)) => self.event(event, &span),
                Err(error) => {
                    self.broken(&error);
                    Err(Stopped)
                }
            };
            if step.is_err() {
                complete = false;
                break;
            }
        }
        while !self.stack.is_empty() {
            self.close();
        }
        self.documents.retain(|node| node.content != Content::Scalar(Value::Null));
        if complete && self.dialect == Dialect::Own && self.documents.is_empty() {
            let diagnostic = Diagnostic::of_file(self.source.path(), Code::Schema, "the file is empty", "one document");
            self.diagnostics.push(diagnostic);
        }
        let Self { source, documents, diagnostics, nodes, .. } = self;
        Parsed { source, documents, diagnostics, complete, nodes }
    }

    fn broken(&mut self, error: &ScanError) {
        let mark = Mark { length: 1, ..place(*error.marker()) };
        if *error.kind() == ErrorKind::RecursionLimitExceeded {
            self.report(mark, Code::TooDeep, "nested too deep", format!("at most {MAX_DEPTH} levels"));
        } else {
            self.report(mark, Code::Syntax, format!("this is not YAML: {}", error.info()), "YAML");
            let line = self.source.text().split('\n').nth(mark.line.saturating_sub(1)).unwrap_or_default();
            if line.chars().nth(mark.column.saturating_sub(1)) == Some('@') {
                self.advise("put what begins with @ into quotes: \"@acme/shop\"");
            } else if ["block mapping", "block collection", "block sequence", "mapping values"]
                .iter()
                .any(|of| error.info().contains(of))
            {
                let line = mark.line;
                self.advise(&format!(
                    "what belongs together begins in the same column: look at the indentation of line {line} and of those \
                     before it, and quote a text with a colon in it"
                ));
            }
        }
    }

    fn report(&mut self, mark: Mark, code: Code, found: impl Into<String>, expected: impl Into<String>) {
        // Reading goes on, so that the end of the file is checked too; the last place is kept for what ends it.
        self.told = self.diagnostics.len() < MOST || matches!(code, Code::Syntax | Code::TooDeep | Code::TooLarge);
        if self.told {
            let diagnostic = self.source.at(mark, code, found, expected);
            self.diagnostics.push(diagnostic);
        }
    }

    fn advise(&mut self, help: &str) {
        if self.told
            && let Some(last) = self.diagnostics.pop()
        {
            self.diagnostics.push(last.help(help));
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the list is the library's; the others carry no value")]
    fn event(&mut self, event: Event<'_>, span: &Span) -> Result<(), Stopped> {
        match event {
            Event::DocumentStart(..) => {
                self.started += 1;
                if self.dialect == Dialect::Own && self.started == 2 {
                    let mark = Mark { length: 3, ..place(span.start) };
                    self.report(mark, Code::SeveralDocuments, "a second document starts here", "one document");
                    self.advise("put it into a file of its own");
                }
                Ok(())
            }
            Event::Alias(_) | Event::UnresolvedAlias(_) => {
                self.report(cover(span), Code::Alias, "an alias", "the value itself");
                self.advise("anchors and aliases are not read; write the value out");
                self.push(Node { mark: cover(span), content: Content::Scalar(Value::Null) })
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.properties(span, anchor, tag.is_some());
                let node = self.scalar(&text, style, cover(span));
                self.push(node)
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.properties(span, anchor, tag.is_some());
                self.open(Frame::List { mark: cover(span), items: Vec::new() })
            }
            Event::MappingStart(_, anchor, tag) => {
                self.properties(span, anchor, tag.is_some());
                let (entries, keys) = (Vec::new(), BTreeSet::new());
                self.open(Frame::Map { mark: cover(span), entries, keys, key: None })
            }
            Event::SequenceEnd | Event::MappingEnd => {
                self.close();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn properties(&mut self, span: &Span, anchor: usize, tagged: bool) {
        if anchor != 0 {
            self.report(cover(span), Code::Alias, "an anchor", "the value alone");
            self.advise("anchors and aliases are not read; write the value out");
        }
        if tagged {
            let mark = span.tag_span().map_or_else(|| cover(span), |tag| cover(&tag));
            self.report(mark, Code::Tag, "a tag", "the value alone");
            self.advise("tags are not read; quote the value to make it a text");
        }
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, mark: Mark) -> Node {
        let value = if style == ScalarStyle::Plain {
            match scalar::resolve(text, self.dialect) {
                scalar::Plain::Value(value) => value,
                scalar::Plain::Ambiguous(why, help) => {
                    let found = format!("{} is {why}", quoted(text));
                    self.report(mark, Code::AmbiguousScalar, found, "something that every YAML reader reads alike");
                    self.advise(help);
                    text.into()
                }
                scalar::Plain::NoNumber => {
                    let found = format!("{} is a number that JSON has no room for", quoted(text));
                    self.report(mark, Code::NumberRange, found, "a finite number of 64 bits");
                    text.into()
                }
            }
        } else {
            text.into()
        };
        Node { mark, content: Content::Scalar(value) }
    }

    fn open(&mut self, frame: Frame) -> Result<(), Stopped> {
        let (Frame::List { mark, .. } | Frame::Map { mark, .. }) = &frame;
        let mark = *mark;
        self.count(mark)?;
        if self.stack.len() >= MAX_DEPTH {
            self.report(mark, Code::TooDeep, "nested too deep", format!("at most {MAX_DEPTH} levels"));
            return Err(Stopped);
        }
        self.stack.push(frame);
        Ok(())
    }

    fn close(&mut self) {
        let Some(frame) = self.stack.pop() else { return };
        let node = match frame {
            Frame::List { mark, items } => Node { mark, content: Content::List(items) },
            Frame::Map { mark, entries, .. } => {
                let mark = entries.first().map_or(mark, |(key, _)| key.mark);
                Node { mark, content: Content::Map(entries) }
            }
        };
        // The budget was counted on the way in, so that closing cannot fail.
        self.attach(node);
    }

    fn push(&mut self, node: Node) -> Result<(), Stopped> {
        self.count(node.mark)?;
        self.attach(node);
        Ok(())
    }

    fn count(&mut self, mark: Mark) -> Result<(), Stopped> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            self.report(mark, Code::TooLarge, "too many values", format!("at most {MAX_NODES} in one file"));
            return Err(Stopped);
        }
        Ok(())
    }

    fn attach(&mut self, node: Node) {
        let Some(mut frame) = self.stack.pop() else {
            self.documents.push(node);
            return;
        };
        match &mut frame {
            Frame::List { items, .. } => items.push(node),
            Frame::Map { entries, keys, key, .. } => match key.take() {
                Some(Some(key)) => entries.push((key, node)),
                Some(None) => {}
                None => *key = Some(self.key(&node, keys)),
            },
        }
        self.stack.push(frame);
    }

    /// The node as a key; `None` if its entry is left out, for a reason that is reported.
    fn key(&mut self, node: &Node, keys: &mut BTreeSet<String>) -> Option<Key> {
        let text = match &node.content {
            Content::Scalar(Value::String(text)) => text.clone(),
            // kubectl's conversion to JSON makes texts of these.
            Content::Scalar(value @ (Value::Bool(_) | Value::Number(_))) if self.dialect == Dialect::Kubernetes => {
                value.to_string()
            }
            Content::Scalar(_) | Content::List(_) | Content::Map(_) => {
                self.report(node.mark, Code::Schema, "a key that is not a text", "a text");
                self.advise("quote the key");
                return None;
            }
        };
        if text == "<<" {
            self.report(node.mark, Code::MergeKey, "a merge key", "the fields themselves");
            self.advise("merge keys are not read; write the fields out");
            return None;
        }
        if !keys.insert(text.clone()) {
            let found = format!("the key {} stands twice in this mapping", quoted(&text));
            self.report(node.mark, Code::DuplicateKey, found, "each key once");
            self.advise("remove one of the two");
            return None;
        }
        Some(Key { mark: node.mark, text })
    }
}

fn place(marker: Marker) -> Mark {
    Mark { line: marker.line(), column: marker.col() + 1, length: 0 }
}

/// The part of a span that lies on its first line.
fn cover(span: &Span) -> Mark {
    let length = match span.end.line() == span.start.line() {
        true => span.end.col().saturating_sub(span.start.col()),
        false => 1,
    };
    Mark { length, ..place(span.start) }
}

#[cfg(test)]
mod tests;
