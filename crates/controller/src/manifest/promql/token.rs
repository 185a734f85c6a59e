//! The words of PromQL.

use super::InvalidQuery;
use crate::manifest::diagnostic::quoted;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// A name or a keyword.
    Word,
    /// A number or a duration.
    Number,
    /// A text in quotes, with them.
    Text,
    Symbol,
    End,
}

/// A token, and where it stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token<'a> {
    pub(super) what: What,
    pub(super) text: &'a str,
    /// Its first byte.
    pub(super) start: usize,
    /// Its first character, from 1.
    at: usize,
}

impl Token<'_> {
    /// The byte behind it.
    pub(super) fn end(&self) -> usize {
        self.start + self.text.len()
    }

    pub(super) fn wrong(&self, wanted: &'static str) -> InvalidQuery {
        let found = if self.what == What::End { "its end".to_owned() } else { quoted(self.text) };
        self.doubted(format!("the query cannot be read from {found} on"), wanted)
    }

    /// What is wrong here, in a query that can be read.
    pub(super) fn doubted(&self, found: String, wanted: impl Into<String>) -> InvalidQuery {
        InvalidQuery { found, at: self.at, place: self.start..self.end(), wanted: wanted.into() }
    }
}

/// The tokens of a query that are still to be taken; the last one is its end.
pub(super) struct Tokens<'a> {
    all: Vec<Token<'a>>,
    next: usize,
}

impl<'a> Tokens<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let (mut all, mut start, mut brackets) = (Vec::new(), 0, false);
        loop {
            let rest = &text[start..];
            // No other character is a blank to Prometheus.
            let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
            if blank > 0 {
                start += blank;
                continue;
            }
            if rest.starts_with('#') {
                start += rest.find('\n').unwrap_or(rest.len());
                continue;
            }
            let (what, length) = first(rest, brackets);
            let token = Token { what, text: &rest[..length], start, at: text[..start].chars().count() + 1 };
            // Between brackets a colon stands between two durations; elsewhere it is a part of names.
            brackets = token.text == "[" || brackets && token.text != "]";
            all.push(token);
            if what == What::End {
                return Self { all, next: 0 };
            }
            start += length;
        }
    }

    pub(super) fn peek(&self) -> Token<'a> {
        self.all[self.next]
    }

    pub(super) fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        self.next = (self.next + 1).min(self.all.len() - 1);
        token
    }

    pub(super) fn is(&self, symbol: &str) -> bool {
        let token = self.peek();
        token.what == What::Symbol && token.text == symbol
    }

    pub(super) fn take(&mut self, symbol: &str) -> bool {
        let is = self.is(symbol);
        if is {
            self.next();
        }
        is
    }

    pub(super) fn is_word(&self, words: &[&str]) -> bool {
        let token = self.peek();
        token.what == What::Word && words.iter().any(|word| word.eq_ignore_ascii_case(token.text))
    }

    pub(super) fn take_word(&mut self, words: &[&str]) -> Option<Token<'a>> {
        self.is_word(words).then(|| self.next())
    }

    /// Whether a parenthesis stands behind the next token.
    pub(super) fn is_called(&self) -> bool {
        self.all.get(self.next + 1).is_some_and(|token| token.what == What::Symbol && token.text == "(")
    }

    pub(super) fn expect(&mut self, symbol: &str, wanted: &'static str) -> Result<(), InvalidQuery> {
        if self.take(symbol) { Ok(()) } else { Err(self.wrong(wanted)) }
    }

    pub(super) fn expect_end(&self) -> Result<(), InvalidQuery> {
        if self.peek().what == What::End { Ok(()) } else { Err(self.wrong("an operator or the end")) }
    }

    pub(super) fn wrong(&self, wanted: &'static str) -> InvalidQuery {
        self.peek().wrong(wanted)
    }
}

/// What a text begins with, and how many bytes that has.
fn first(rest: &str, brackets: bool) -> (What, usize) {
    let run = |is: &dyn Fn(char) -> bool| rest.find(|c| !is(c)).unwrap_or(rest.len());
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':' && !brackets;
    let mut chars = rest.chars();
    match (chars.next(), chars.next()) {
        (None, _) => (What::End, 0),
        // A quote that nothing closes is a symbol that stands nowhere.
        (Some('"' | '\'' | '`'), _) => text(rest).map_or((What::Symbol, 1), |length| (What::Text, length)),
        (Some('0'..='9'), _) | (Some('.'), Some('0'..='9')) => (What::Number, number(rest)),
        (Some(c), _) if word(c) => (What::Word, run(&word)),
        (Some('=' | '!' | '<' | '>'), Some('=')) | (Some('=' | '!'), Some('~')) => (What::Symbol, 2),
        (Some('<' | '>'), Some('/')) => (What::Symbol, 2),
        (Some(c), _) => (What::Symbol, c.len_utf8()),
    }
}

/// Digits, letters and points, with the sign of an exponent.
fn number(rest: &str) -> usize {
    let signed = !rest.starts_with("0x") && !rest.starts_with("0X");
    let mut before = ' ';
    for (i, c) in rest.char_indices() {
        let sign = signed && matches!(before, 'e' | 'E') && matches!(c, '+' | '-');
        if !(sign || c.is_ascii_alphanumeric() || c == '.' || c == '_') {
            return i;
        }
        before = c;
    }
    rest.len()
}

/// As far as the quote that closes it, if one does.
fn text(rest: &str) -> Option<usize> {
    let quote = rest.chars().next();
    let mut escaped = false;
    for (i, c) in rest.char_indices().skip(1) {
        if !escaped && Some(c) == quote {
            return Some(i + 1);
        }
        if c == '\n' && quote != Some('`') {
            return None;
        }
        escaped = !escaped && c == '\\' && quote != Some('`');
    }
    None
}
