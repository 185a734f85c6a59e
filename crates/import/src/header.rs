//! Headers by which requests are told apart, as the tools and a rollout's file say them.

use super::input::Field;
use serde_json::{Value, json};

/// A StringMatch of Istio as the value of a header.
pub(super) fn matched(value: &Field<'_>) -> Option<Value> {
    let entries = value.entries();
    let [(how, value)] = entries.as_slice() else { return None };
    let text = value.text()?;
    match *how {
        "exact" => Some(json!(text)),
        "prefix" => Some(json!({"regex": format!("^{}.*$", literal(text))})),
        "suffix" => Some(json!({"regex": format!("^.*{}$", literal(text))})),
        "regex" => Some(json!({"regex": text})),
        _ => None,
    }
}

/// A pattern for exactly this text.
fn literal(text: &str) -> String {
    let special = |c: char| r"\.+*?()|[]{}^$".contains(c);
    text.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
}

/// Whether it is a header that a rollout's file may name.
pub(super) fn is_header(name: &str, value: &Value) -> bool {
    let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+.^_`|~-".contains(c);
    let text = value.as_str().or_else(|| value["regex"].as_str()).unwrap_or_default();
    let seen = |c: char| ('!'..='~').contains(&c);
    let is_name = (1..=256).contains(&name.len()) && name.chars().all(token);
    let is_text = text.len() <= 4096 && text.chars().all(|c| seen(c) || c == ' ');
    is_name && is_text && text.starts_with(seen) && text.ends_with(seen)
}
