//! What is a pattern (<https://github.com/google/re2/wiki/Syntax>, as Go has it).
//!
//! Read by hand, after `regexp/syntax` of Go, as Rust's own reader of patterns (`regex-syntax`) has others: `a{`, `[[a]` and
//! `\Qa\E` are none there, `(?x)a` and `a{1001}` are, and `[a&&b]` and `\<` mean something else.

use std::iter::Peekable;
use std::str::Chars;

/// What is wrong with a pattern.
pub(super) fn mistake(pattern: &str) -> Option<&'static str> {
    Reader::new(pattern).read().err()
}

/// Whether a pattern as a whole fits the empty text: what it surely does.
pub(super) fn fits_nothing(pattern: &str) -> bool {
    Reader::new(pattern).read().unwrap_or(false)
}

const UNCLOSED: &str = "a ( is not closed";
const UNCLOSED_CLASS: &str = "a [ is not closed";
const NO_LOOKING: &str = "it looks ahead or back with (?…), which RE2 does not know";
const NO_GROUP: &str = "a (? begins nothing that RE2 knows";
const NO_ESCAPE: &str = "a backslash stands before a letter that means nothing then";
const NO_HEX: &str = "a \\x stands before no hexadecimal number";
const NO_BACK: &str = "it refers back to a group, which RE2 does not know";

/// The classes that are called `[:NAME:]`.
const CLASSES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "word",
    "xdigit",
];

/// What stands last, which a `*` behind it would repeat.
#[derive(Debug, Clone, Copy)]
struct Last {
    /// Whether it fits the empty text.
    empty: bool,
    /// Whether it is repeated already.
    repeated: bool,
}

/// A group that is open, or the whole.
struct Frame {
    /// Whether an alternative before this one fits the empty text.
    any: bool,
    /// Whether all of this one before the last does.
    all: bool,
    last: Option<Last>,
}

impl Frame {
    fn new() -> Self {
        Self { any: false, all: true, last: None }
    }

    fn empty(&self) -> bool {
        self.any || self.all && self.last.is_none_or(|last| last.empty)
    }

    fn push(&mut self, empty: bool) {
        self.all &= self.last.is_none_or(|last| last.empty);
        self.last = Some(Last { empty, repeated: false });
    }

    fn alternative(&mut self) {
        *self = Self { any: self.empty(), ..Self::new() };
    }

    /// What was repeated is not repeated again.
    fn repeat(&mut self, from_none: bool) -> Result<(), &'static str> {
        let last = self.last.as_mut().filter(|last| !last.repeated);
        let last = last.ok_or("a *, +, ? or {…} repeats nothing")?;
        *last = Last { empty: last.empty || from_none, repeated: true };
        Ok(())
    }
}

/// A pattern that is being read.
struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
    /// The whole, and the groups in it that are open.
    frames: Vec<Frame>,
}

impl<'a> Reader<'a> {
    fn new(pattern: &'a str) -> Self {
        Self { rest: pattern.chars().peekable(), frames: vec![Frame::new()] }
    }

    fn top(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("the whole is never closed, because it is not popped")
    }

    /// Whether it fits the empty text.
    fn read(mut self) -> Result<bool, &'static str> {
        while let Some(c) = self.rest.next() {
            match c {
                '\\' => self.escaped()?,
                '[' => {
                    self.class()?;
                    self.top().push(false);
                }
                '(' => self.group()?,
                ')' => {
                    let inner = self.frames.pop().filter(|_| !self.frames.is_empty()).ok_or("a ) closes nothing")?;
                    self.top().push(inner.empty());
                }
                '|' => self.top().alternative(),
                '*' | '+' | '?' => {
                    self.rest.next_if_eq(&'?');
                    self.top().repeat(c != '+')?;
                }
                '{' => match self.counted()? {
                    Some(least) => {
                        self.rest.next_if_eq(&'?');
                        self.top().repeat(least == 0)?;
                    }
                    None => self.top().push(false),
                },
                c => self.top().push(matches!(c, '^' | '$')),
            }
        }
        if self.frames.len() > 1 { Err(UNCLOSED) } else { Ok(self.top().empty()) }
    }

    /// Takes `n}`, `n,}` or `n,m}`, if that stands there, and says the least; elsewhere a brace is a character.
    fn counted(&mut self) -> Result<Option<u32>, &'static str> {
        let inner: String = self.rest.clone().take_while(|c| *c != '}').collect();
        let is_number = |text: &str| {
            let zero = text.len() > 1 && text.starts_with('0');
            !text.is_empty() && !zero && text.chars().all(|c| c.is_ascii_digit())
        };
        let closed = self.rest.clone().nth(inner.chars().count()) == Some('}');
        let (least, most) = inner.split_once(',').unwrap_or((&inner, &inner));
        if !(closed && is_number(least) && (most.is_empty() || is_number(most))) {
            return Ok(None);
        }
        self.rest.nth(inner.len());
        let least: u32 = least.parse().unwrap_or(u32::MAX);
        let most: u32 = if most.is_empty() { least } else { most.parse().unwrap_or(u32::MAX) };
        if least > most {
            Err("it repeats {n,m} with n above m")
        } else if most > 1000 {
            Err("it repeats more than 1000 times")
        } else {
            Ok(Some(least))
        }
    }

    /// What a backslash outside of a class begins.
    fn escaped(&mut self) -> Result<(), &'static str> {
        match self.rest.peek() {
            Some('A' | 'B' | 'b' | 'z') => {
                let empty = self.rest.next() != Some('b');
                self.top().push(empty);
            }
            // All up to \E is text, each of it a character.
            Some('Q') => {
                self.rest.next();
                while let Some(c) = self.rest.next() {
                    if c == '\\' && self.rest.next_if_eq(&'E').is_some() {
                        break;
                    }
                    self.top().push(false);
                }
            }
            _ => {
                self.one()?;
                self.top().push(false);
            }
        }
        Ok(())
    }

    /// Behind a backslash: a character, or nothing if it is a class of them.
    fn one(&mut self) -> Result<Option<char>, &'static str> {
        let octal = |c: &char| matches!(c, '0'..='7');
        let c = self.rest.next().ok_or("it ends with a backslash")?;
        match c {
            'd' | 'D' | 's' | 'S' | 'w' | 'W' => Ok(None),
            'p' | 'P' => match self.rest.next().ok_or(NO_ESCAPE)? {
                '{' => self.rest.find(|c| *c == '}').map(|_| None).ok_or(NO_ESCAPE),
                c => {
                    if "CLMNPSZ".contains(c) {
                        Ok(None)
                    } else {
                        Err(NO_ESCAPE)
                    }
                }
            },
            '1'..='7' if !self.rest.peek().is_some_and(octal) => Err(NO_BACK),
            '8' | '9' => Err(NO_BACK),
            '0'..='7' => {
                let mut digits = c.to_string();
                while digits.len() < 3 {
                    let Some(digit) = self.rest.next_if(octal) else { break };
                    digits.push(digit);
                }
                Ok(u32::from_str_radix(&digits, 8).ok().and_then(char::from_u32))
            }
            'x' => self.hex().map(Some),
            'a' => Ok(Some('\u{7}')),
            'f' => Ok(Some('\u{c}')),
            'n' => Ok(Some('\n')),
            'r' => Ok(Some('\r')),
            't' => Ok(Some('\t')),
            'v' => Ok(Some('\u{b}')),
            c if c.is_ascii() && !c.is_ascii_alphanumeric() => Ok(Some(c)),
            _ => Err(NO_ESCAPE),
        }
    }

    /// `\x7f` or `\x{7f}`.
    fn hex(&mut self) -> Result<char, &'static str> {
        let rest = self.rest.clone().collect::<String>();
        let (digits, taken) = match rest.strip_prefix('{') {
            Some(inner) => inner.split_once('}').map(|(digits, _)| (digits, digits.len() + 2)),
            None => rest.get(..2).map(|digits| (digits, 2)),
        }
        .filter(|(digits, _)| !digits.is_empty() && digits.chars().all(|c| c.is_ascii_hexdigit()))
        .ok_or(NO_HEX)?;
        self.rest.nth(taken - 1);
        u32::from_str_radix(digits, 16).ok().and_then(char::from_u32).ok_or(NO_HEX)
    }

    /// Up to the bracket that closes it; one that stands first is a character.
    fn class(&mut self) -> Result<(), &'static str> {
        self.rest.next_if_eq(&'^');
        let mut first = true;
        loop {
            let c = self.rest.next().ok_or(UNCLOSED_CLASS)?;
            if c == ']' && !first {
                return Ok(());
            }
            first = false;
            if c == '[' && self.rest.peek() == Some(&':') && self.named()? {
                continue;
            }
            let Some(low) = self.in_class(c)? else { continue };
            let mut ahead = self.rest.clone();
            if ahead.next() == Some('-') && ahead.next().is_some_and(|c| c != ']') {
                self.rest.next();
                let c = self.rest.next().ok_or(UNCLOSED_CLASS)?;
                let high = self.in_class(c)?.ok_or("a range in […] ends with more than a character")?;
                if high < low {
                    return Err("a range in […] goes down");
                }
            }
        }
    }

    /// A character of a class; nothing if it is several.
    fn in_class(&mut self, c: char) -> Result<Option<char>, &'static str> {
        if c == '\\' { self.one() } else { Ok(Some(c)) }
    }

    /// Takes `:NAME:]`, if that stands there.
    fn named(&mut self) -> Result<bool, &'static str> {
        let mut inner = self.rest.clone();
        inner.next();
        let inner: String = inner.take_while(|c| *c != ']').collect();
        let Some(name) = inner.strip_suffix(':') else { return Ok(false) };
        if !CLASSES.contains(&name.strip_prefix('^').unwrap_or(name)) {
            return Err("there is no class of this name in [:…:]");
        }
        self.rest.find(|c| *c == ']');
        Ok(true)
    }

    /// Behind a parenthesis: what it opens.
    fn group(&mut self) -> Result<(), &'static str> {
        if self.rest.next_if_eq(&'?').is_none() {
            self.frames.push(Frame::new());
            return Ok(());
        }
        let of_name = self.rest.next_if_eq(&'P').is_some();
        match self.rest.peek().copied() {
            Some('<') => {
                self.rest.next();
                if !of_name && matches!(self.rest.peek(), Some('=' | '!')) {
                    return Err(NO_LOOKING);
                }
                let rest = self.rest.clone().collect::<String>();
                let (name, _) = rest.split_once('>').ok_or(UNCLOSED)?;
                self.rest.find(|c| *c == '>');
                if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
                    return Err("the name of a group has other characters than letters, digits and _");
                }
                self.frames.push(Frame::new());
                Ok(())
            }
            Some('=' | '!' | '>') => Err(NO_LOOKING),
            _ if of_name => Err(NO_GROUP),
            _ => self.flags(),
        }
    }

    /// Flags, for a group or for what follows.
    fn flags(&mut self) -> Result<(), &'static str> {
        let (mut without, mut any) = (false, false);
        loop {
            match self.rest.next().ok_or(UNCLOSED)? {
                'i' | 'm' | 's' | 'U' => any = true,
                '-' if !without => (without, any) = (true, false),
                ':' if any || !without => {
                    self.frames.push(Frame::new());
                    return Ok(());
                }
                ')' if any || !without => {
                    // They stand between, so that what was repeated before can be repeated again.
                    if let Some(last) = &mut self.top().last {
                        last.repeated = false;
                    }
                    return Ok(());
                }
                _ => return Err(NO_GROUP),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{fits_nothing, mistake};

    #[test]
    fn patterns_that_no_prometheus_takes_are_known() {
        for (pattern, wrong) in [
            ("(", "a ( is not closed"),
            ("a(b|c", "a ( is not closed"),
            ("(?:a", "a ( is not closed"),
            ("(?i", "a ( is not closed"),
            ("a)", "a ) closes nothing"),
            ("(?i)a)", "a ) closes nothing"),
            ("[a-z", "a [ is not closed"),
            ("[]", "a [ is not closed"),
            ("[^]", "a [ is not closed"),
            ("[[:alpha:]", "a [ is not closed"),
            ("*", "a *, +, ? or {…} repeats nothing"),
            ("a|+", "a *, +, ? or {…} repeats nothing"),
            ("(*)", "a *, +, ? or {…} repeats nothing"),
            ("a**", "a *, +, ? or {…} repeats nothing"),
            ("{2}", "a *, +, ? or {…} repeats nothing"),
            ("a\\", "it ends with a backslash"),
            ("(a)\\1", "it refers back to a group, which RE2 does not know"),
            ("\\y", "a backslash stands before a letter that means nothing then"),
            ("(?=a)", "it looks ahead or back with (?…), which RE2 does not know"),
            ("(?!a)", "it looks ahead or back with (?…), which RE2 does not know"),
            ("(?<!a)b", "it looks ahead or back with (?…), which RE2 does not know"),
            ("(?#a)", "a (? begins nothing that RE2 knows"),
            ("(?x)a", "a (? begins nothing that RE2 knows"),
            ("(?i-)a", "a (? begins nothing that RE2 knows"),
            ("(?i)*", "a *, +, ? or {…} repeats nothing"),
            ("\\1", "it refers back to a group, which RE2 does not know"),
            ("\\18", "it refers back to a group, which RE2 does not know"),
            ("[\\1]", "it refers back to a group, which RE2 does not know"),
            ("\\C", "a backslash stands before a letter that means nothing then"),
            ("\\Z", "a backslash stands before a letter that means nothing then"),
            ("\\E", "a backslash stands before a letter that means nothing then"),
            ("\\<a\\Z", "a backslash stands before a letter that means nothing then"),
            ("\\xg0", "a \\x stands before no hexadecimal number"),
            ("a{1001}", "it repeats more than 1000 times"),
            ("a{2,1}", "it repeats {n,m} with n above m"),
            ("[z-a]", "a range in […] goes down"),
            ("[a-\\d]", "a range in […] ends with more than a character"),
            ("[[:foo:]]", "there is no class of this name in [:…:]"),
            ("(?P<n-m>a)", "the name of a group has other characters than letters, digits and _"),
        ] {
            assert_eq!(mistake(pattern), Some(wrong), "{pattern}");
        }
    }

    /// Nothing is refused that a Prometheus would take.
    #[test]
    fn all_others_are_left_to_the_prometheus() {
        for pattern in [
            "",
            "5..",
            "web-.+",
            "web-[0-9a-z]{1,15}",
            "a|b|",
            "|",
            "(|a)",
            "()",
            "(a|b)*?",
            "a{2}",
            "a{2,}?",
            "a{",
            "a{,3}",
            "a{id}",
            "/users/{id}/",
            "{id}",
            "[]a]",
            "[^]a]",
            "[a-]",
            "[\\]]",
            "[[:alpha:]_]+",
            "[[:^digit:]]",
            "[[a]",
            "[(*]",
            "\\.",
            "\\-\\/",
            "\\d+\\s*",
            "\\pL\\p{Greek}\\x{10FFFF}",
            "\\Qa(b\\E+",
            "\\Qa(b",
            "(?i)a",
            "(?i:a)",
            "(?P<n>a)",
            "(?<n>a)",
            "(?s-m:a)",
            "^*$",
            "]",
            "}",
            "ä+",
            "a\\b",
            "\\101\\12\\0",
            "[\\101-\\132]",
            "a(?i)*",
            "a*(?i)*",
            "(?i-s)a",
            "(?)",
            "[[:word:]]",
            "[a&&b]",
            "[a-z-9]",
            "[-a]",
            "\\z",
            "a{1000}",
            "a{01}",
            "\\<a\\>",
        ] {
            assert_eq!(mistake(pattern), None, "{pattern}");
        }
    }

    #[test]
    fn what_fits_the_empty_text_is_known() {
        for pattern in ["", ".*", "(.*)", "a*|b", "a|", "(a|b?)c*", "^$", "(?i)a?", "a{0,3}", "()", "(?:a*b*)+"] {
            assert!(fits_nothing(pattern), "{pattern}");
        }
        for pattern in [".+", "a", "a|b", "(a|b)c*", "[a]", "a{1,3}", "a{", "\\.*x", "(?:a)", "\\Q\\Ea", "("] {
            assert!(!fits_nothing(pattern), "{pattern}");
        }
    }
}
