//! Values as YAML that every reader reads alike: block style, in the order of the value, quoted where in doubt.

use serde_json::Value;
use std::fmt::Write;

/// The value as one document.
#[must_use]
pub fn written(value: &Value) -> String {
    let mut out = String::new();
    if nested(value) {
        block(&mut out, value, 0);
    } else {
        let _ = writeln!(out, "{}", inline(value));
    }
    out
}

fn block(out: &mut String, value: &Value, depth: usize) {
    let indent = "  ".repeat(depth);
    for (key, value) in value.as_object().into_iter().flatten() {
        let _ = write!(out, "{indent}{}:", scalar(key));
        below(out, value, depth);
    }
    for value in value.as_array().into_iter().flatten() {
        if nested(value) {
            let mut item = String::new();
            block(&mut item, value, depth + 1);
            // The first line of the item stands behind its dash.
            let _ = write!(out, "{indent}- {}", item.get(indent.len() + 2..).unwrap_or_default());
        } else {
            let _ = write!(out, "{indent}-");
            below(out, value, depth);
        }
    }
}

fn nested(value: &Value) -> bool {
    value.as_object().is_some_and(|map| !map.is_empty()) || value.as_array().is_some_and(|list| !list.is_empty())
}

/// What stands behind a key or a dash.
fn below(out: &mut String, value: &Value, depth: usize) {
    if nested(value) {
        out.push('\n');
        block(out, value, depth + 1);
        return;
    }
    let Some(text) = value.as_str().filter(|text| is_literal(text)) else {
        let _ = writeln!(out, " {}", inline(value));
        return;
    };
    out.push_str(if text.ends_with('\n') { " |\n" } else { " |-\n" });
    for line in text.lines() {
        let _ = writeln!(out, "{}{line}", if line.is_empty() { String::new() } else { "  ".repeat(depth + 1) });
    }
}

fn inline(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), scalar)
}

/// Whether a text reads well as a block of lines, and reads back the same.
fn is_literal(text: &str) -> bool {
    let body = text.strip_suffix('\n').unwrap_or(text);
    let seen = |c: char| c == '\n' || (' '..='~').contains(&c);
    body.contains('\n')
        && body.chars().all(seen)
        && !body.starts_with([' ', '\n'])
        && !body.ends_with('\n')
        && body.lines().all(|line| !line.ends_with(' '))
}

/// A text on one line: as it is where no reader could take it for anything else, else in quotes.
fn scalar(text: &str) -> String {
    const WORDS: [&str; 9] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];
    let safe = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let first = |c: char| c.is_ascii_alphabetic() || c == '_' || c == '/';
    let plain =
        text.starts_with(first) && text.chars().all(safe) && !WORDS.contains(&text.to_ascii_lowercase().as_str());
    // A span such as 10m is no number to anybody.
    let span = text.ends_with(['h', 'm', 's']) && text.parse::<tidegate_controller::manifest::duration::Span>().is_ok();
    if plain || span { text.to_owned() } else { quoted(text) }
}

/// In double quotes, which JSON's texts are to YAML too, but for what YAML does not take as it is.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            ' '..='~' => out.push(c),
            c if c.is_alphanumeric() => out.push(c),
            c => {
                let _ = write!(out, "\\U{:08X}", u32::from(c));
            }
        }
    }
    out + "\""
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tidegate_controller::manifest::yaml::{Dialect, Node, parse};

    #[test]
    fn what_is_written_reads_the_same() {
        let value = json!({
            "apiVersion": "tidegate.io/v1alpha1", "on": "yes", "a b": [], "n": null, "f": 0.5, "i": -3, "b": true,
            "spec": {"list": [1, [2, [3, {}]], {"a": {"b": "c"}, "d": "10m"}, "x: y", "- z", "#"], "empty": {}},
            "query": "sum(\n  rate(x{a=\"b\"}[1m])\n)", "with end": "a\nb\n", "odd": " a\nb ", "unseen": "a\u{202e}\u{7}é",
            "texts": ["1e3", "0x1f", "1_000", "12:30", "~", "", "null", "NO", "2001-01-01", "{a: 1}", "a#b", "1.5h", ".inf"],
        });
        let text = written(&value);
        for dialect in [Dialect::Own, Dialect::Kubernetes] {
            let parsed = parse(&"a.yaml".parse().unwrap(), text.as_bytes(), dialect);
            assert_eq!(parsed.diagnostics, [], "{text}");
            assert_eq!(
                parsed.documents.iter().map(Node::value).collect::<Vec<_>>(),
                std::slice::from_ref(&value),
                "{text}"
            );
        }
        insta::assert_snapshot!(text);
    }
}
