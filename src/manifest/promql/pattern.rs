//! Texts in quotes, and what of them are patterns (<https://github.com/google/re2/wiki/Syntax>, as Go has it).

use std::iter::Peekable;
use std::str::Chars;

/// The text that a text in quotes stands for.
///
/// # Errors
/// The escape that there is none of.
pub(super) fn unquoted(quoted: &str) -> Result<String, String> {
    let quote = quoted.chars().next().unwrap_or('`');
    let inner = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default();
    if quote == '`' {
        return Ok(inner.to_owned());
    }
    let (mut out, mut rest) = (String::new(), inner.chars());
    while let Some(c) = rest.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let Some(escape) = rest.next() else { return Err("\\".to_owned()) };
        let digits = match escape {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            '0'..='7' => 2,
            _ => 0,
        };
        let number: String = rest.by_ref().take(digits).collect();
        out.push(match escape {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'a' | 'b' | 'f' | 'v' => ' ',
            '\\' => '\\',
            c if c == quote => c,
            // Which character it is decides no pattern.
            'x' | 'u' | 'U' if number.len() == digits && number.chars().all(|c| c.is_ascii_hexdigit()) => 'x',
            '0'..='7' if number.len() == digits && number.chars().all(|c| matches!(c, '0'..='7')) => 'x',
            _ => return Err(format!("\\{escape}")),
        });
    }
    Ok(out)
}

/// What is wrong with a pattern.
pub(super) fn mistake(pattern: &str) -> Option<&'static str> {
    read(&mut pattern.chars().peekable()).err()
}

const UNCLOSED: &str = "a ( is not closed";
const NO_LOOKING: &str = "it looks ahead or back with (?…), which RE2 does not know";

fn read(rest: &mut Peekable<Chars<'_>>) -> Result<(), &'static str> {
    // Whether there is something to repeat.
    let (mut depth, mut one) = (0_usize, false);
    while let Some(c) = rest.next() {
        one = match c {
            '\\' => escape(rest)?,
            '[' => class(rest)?,
            '(' => {
                depth += usize::from(group(rest)?);
                false
            }
            ')' => {
                depth = depth.checked_sub(1).ok_or("a ) closes nothing")?;
                true
            }
            '|' => false,
            '*' | '+' | '?' => repeated(one, rest)?,
            '{' if counted(rest) => repeated(one, rest)?,
            _ => true,
        };
    }
    if depth == 0 { Ok(()) } else { Err(UNCLOSED) }
}

/// What was repeated is not repeated again, but for the ? that takes as little as possible.
fn repeated(one: bool, rest: &mut Peekable<Chars<'_>>) -> Result<bool, &'static str> {
    rest.next_if_eq(&'?');
    if one { Ok(false) } else { Err("a *, +, ? or {…} repeats nothing") }
}

/// Takes `n}`, `n,}` or `n,m}`, if that stands there; elsewhere a brace is a character.
fn counted(rest: &mut Peekable<Chars<'_>>) -> bool {
    let inner: String = rest.clone().take_while(|c| *c != '}').collect();
    let is_number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    let closed = rest.clone().nth(inner.chars().count()) == Some('}');
    let is = match inner.split_once(',') {
        Some((least, most)) => is_number(least) && (most.is_empty() || is_number(most)),
        None => is_number(&inner),
    };
    if closed && is {
        rest.nth(inner.len());
    }
    closed && is
}

fn escape(rest: &mut Peekable<Chars<'_>>) -> Result<bool, &'static str> {
    match rest.next() {
        None => Err("it ends with a backslash"),
        Some('1'..='9') => Err("it refers back to a group, which RE2 does not know"),
        // All up to \E is text.
        Some('Q') => {
            let mut before = ' ';
            for c in rest.by_ref() {
                if before == '\\' && c == 'E' {
                    break;
                }
                before = c;
            }
            Ok(true)
        }
        Some(c) if c.is_ascii_alphabetic() && !"AbBafnrtvdDsSwWpPxzCE".contains(c) => {
            Err("a backslash stands before a letter that means nothing then")
        }
        Some(_) => Ok(true),
    }
}

/// Up to the bracket that closes it; one that stands first is a character.
fn class(rest: &mut Peekable<Chars<'_>>) -> Result<bool, &'static str> {
    rest.next_if_eq(&'^');
    rest.next_if_eq(&']');
    while let Some(c) = rest.next() {
        match c {
            ']' => return Ok(true),
            '\\' => {
                rest.next();
            }
            // A class of a name.
            '[' if rest.peek() == Some(&':') => {
                let name = rest.clone().enumerate().take_while(|(_, c)| *c != ']').last();
                let named = name.is_some_and(|(i, c)| i > 0 && c == ':');
                if named {
                    rest.find(|c| *c == ']');
                }
            }
            _ => {}
        }
    }
    Err("a [ is not closed")
}

/// Behind a parenthesis: whether it opens a group that another one closes.
fn group(rest: &mut Peekable<Chars<'_>>) -> Result<bool, &'static str> {
    if rest.next_if_eq(&'?').is_none() {
        return Ok(true);
    }
    let name = rest.next_if_eq(&'P').is_some();
    match rest.next() {
        Some('<') if matches!(rest.peek(), Some('=' | '!')) => Err(NO_LOOKING),
        Some('<') => rest.find(|c| *c == '>').map(|_| true).ok_or(UNCLOSED),
        Some('=' | '!' | '>') => Err(NO_LOOKING),
        Some(':') if !name => Ok(true),
        // Flags, for a group or for what follows.
        Some(c) if !name && "imsU-".contains(c) => match rest.find(|c| matches!(c, ':' | ')')) {
            Some(':') => Ok(true),
            Some(_) => Ok(false),
            None => Err(UNCLOSED),
        },
        _ => Err("a (? begins nothing that RE2 knows"),
    }
}

#[cfg(test)]
mod tests {
    use super::{mistake, unquoted};

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
        ] {
            assert_eq!(mistake(pattern), None, "{pattern}");
        }
    }

    #[test]
    fn texts_are_read_as_prometheus_reads_them() {
        for (quoted, text) in [
            ("\"a\\\\.b\"", "a\\.b"),
            ("'a\\'b\"'", "a'b\""),
            ("`a\\.b`", "a\\.b"),
            ("\"\\n\\x41\\u00e4\\101\"", "\nxxx"),
            ("\"ä\"", "ä"),
        ] {
            assert_eq!(unquoted(quoted).as_deref(), Ok(text), "{quoted}");
        }
        for (quoted, escape) in [("\"a\\.b\"", "\\."), ("\"\\d\"", "\\d"), ("\"\\'\"", "\\'"), ("\"\\x4\"", "\\x")] {
            assert_eq!(unquoted(quoted), Err(escape.to_owned()), "{quoted}");
        }
    }
}
