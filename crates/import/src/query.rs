//! Queries with names in double braces.

use std::collections::BTreeMap;

/// The most characters of a query.
pub(super) const LONGEST: usize = 4_096;

/// What is said of a metric that is no query of a Prometheus.
pub(super) const OTHER_PROVIDER: &str =
    "providers other than Prometheus are not built; ask them by a webhook (docs/checks.md)";

/// The query with each `{{ name }}` replaced, trimmed on all sides.
///
/// # Errors
/// What in it is not known, in words.
pub(super) fn rendered(query: &str, known: &BTreeMap<String, String>) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = query;
    while let Some((before, after)) = rest.split_once("{{") {
        out.push_str(before);
        let (name, tail) = after.split_once("}}").ok_or("it has {{ without }}")?;
        let name = name.trim_matches(|c: char| c == '-' || c.is_whitespace());
        let value = value(name, known).ok_or_else(|| {
            let name: String = name.chars().take(80).collect();
            format!("{{{{ {name} }}}} is not known")
        })?;
        out.push_str(value);
        rest = tail;
        if out.len() > 4 * LONGEST {
            break;
        }
    }
    out.push_str(rest);
    let lines: Vec<&str> = out.lines().map(str::trim_end).collect();
    let out = undented(&lines);
    match out.chars().count() {
        0 => Err("it is empty".to_owned()),
        n if n > LONGEST => Err(format!("it has {n} characters")),
        _ => Ok(out),
    }
}

/// A name, or Go's way to take one out of a map: `index variables "name"`.
fn value<'a>(name: &str, known: &'a BTreeMap<String, String>) -> Option<&'a String> {
    let indexed = name.strip_prefix("index ").and_then(|rest| {
        let (map, key) = rest.trim().split_once(char::is_whitespace)?;
        Some(format!("{map}.{}", key.trim().strip_prefix('"')?.strip_suffix('"')?))
    });
    known.get(indexed.as_deref().unwrap_or(name))
}

/// The lines without the blank ones at both ends and the indentation that all share.
fn undented(lines: &[&str]) -> String {
    let first = lines.iter().position(|line| !line.is_empty()).unwrap_or(0);
    let last = lines.iter().rposition(|line| !line.is_empty()).map_or(0, |n| n + 1);
    let lines = &lines[first.min(last)..last];
    let blank = |line: &&str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let shared = lines.iter().filter(|line| !line.is_empty()).map(blank).min().unwrap_or(0);
    let lines: Vec<String> =
        lines.iter().map(|line| line.get(shared..).unwrap_or_default().replace('\t', "  ")).collect();
    lines.join("\n").trim_start().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_braces_are_replaced() {
        let known = [("target", "web-canary"), ("interval", "1m"), ("variables.code", "5.."), ("args.a-b", "x")];
        let known = known.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let query = "\n    sum(\n      rate(a{pod=~\"{{ target }}-.+\", code=~\"{{index variables \"code\"}}\"}[{{interval}}])\n    ) {{- args.a-b }}\n";
        assert_eq!(rendered(query, &known).unwrap(), "sum(\n  rate(a{pod=~\"web-canary-.+\", code=~\"5..\"}[1m])\n) x");
        assert_eq!(rendered("a{{ nobody }}", &known).unwrap_err(), "{{ nobody }} is not known");
        assert_eq!(rendered("a{{ ", &known).unwrap_err(), "it has {{ without }}");
        assert_eq!(rendered(" \n", &known).unwrap_err(), "it is empty");
        assert_eq!(rendered(&"a".repeat(5_000), &known).unwrap_err(), "it has 5000 characters");
    }
}
