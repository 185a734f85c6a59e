//! What was asked of GitHub's stand-in in the stories, and what it answered: one pair of each shape is kept in a list, which
//! `tests/it/contract.rs` holds against what GitHub has published. A shape that is not on it is not known to be right.

use crate::scenarios::hosts::Exchange;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Mutex;

/// Fields of which GitHub says which words they can have.
const WORDS: [&str; 7] = ["state", "status", "conclusion", "annotation_level", "type", "role", "permission"];

/// Many stories are told at once.
static LIST: Mutex<()> = Mutex::new(());

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/support/hosts/github.json")
}

/// Panics if something was asked or answered in another shape than on the list, or writes it down if `UPDATE_SCENARIOS` is set.
pub(crate) fn is_on_the_list(exchanges: &[Exchange]) {
    let _one = LIST.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let text = std::fs::read_to_string(file()).unwrap_or_else(|_| "[]".to_owned());
    let mut list: Vec<Value> = serde_json::from_str(&text).unwrap();
    let known: BTreeSet<String> = list.iter().map(shape).collect();
    let new: BTreeMap<String, Value> = exchanges.iter().map(wire).map(|pair| (shape(&pair), pair)).collect();
    let new: Vec<(String, Value)> = new.into_iter().filter(|(shape, _)| !known.contains(shape)).collect();
    if new.is_empty() {
        return;
    }
    let shapes: Vec<&str> = new.iter().map(|(shape, _)| shape.as_str()).collect();
    assert!(
        std::env::var_os("UPDATE_SCENARIOS").is_some(),
        "nobody has held this against what GitHub has published. UPDATE_SCENARIOS=1 puts it on the list:\n{}",
        shapes.join("\n")
    );
    list.extend(new.into_iter().map(|(_, pair)| pair));
    list.sort_by_key(shape);
    let lines: Vec<String> = list.iter().map(Value::to_string).collect();
    std::fs::write(file(), format!("[\n{}\n]\n", lines.join(",\n"))).unwrap();
}

fn wire(Exchange { method, path, sent, status, answer }: &Exchange) -> Value {
    let read = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
    serde_json::json!({"method": method, "path": path, "sent": read(sent), "status": status, "answer": read(answer)})
}

/// What of a pair is the same for all of its kind.
fn shape(pair: &Value) -> String {
    let path = pair["path"].as_str().unwrap();
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let query: BTreeSet<String> =
        url::form_urlencoded::parse(query.as_bytes()).map(|(name, _)| name.into_owned()).collect();
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match parts.last() {
            // How deep a file is matters to the description, its name does not.
            _ if parts.contains(&"contents") => parts.push("*"),
            Some(&("branches" | "collaborators" | "memberships" | "users" | "teams")) => parts.push("*"),
            _ if part.bytes().all(|b| b.is_ascii_digit()) => parts.push("0"),
            _ if part.len() == 40 => parts.push("*"),
            _ => parts.push(part),
        }
    }
    let query = query.into_iter().collect::<Vec<_>>().join("&");
    let [sent, answer] = ["sent", "answer"].map(|field| bones("", &pair[field]));
    format!("{} {}?{query} {sent} {} {answer}", pair["method"].as_str().unwrap(), parts.join("/"), pair["status"])
}

/// A value without what it says.
fn bones(name: &str, value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let sorted: BTreeMap<&String, &Value> = fields.iter().collect();
            sorted.into_iter().map(|(name, value)| (name.clone(), bones(name, value))).collect::<Map<_, _>>().into()
        }
        Value::Array(all) => {
            let kinds: BTreeMap<String, Value> =
                all.iter().map(|one| bones(name, one)).map(|one| (one.to_string(), one)).collect();
            kinds.into_values().collect()
        }
        Value::String(word) if WORDS.contains(&name) => word.as_str().into(),
        Value::String(_) => "s".into(),
        Value::Number(_) => 0.into(),
        Value::Bool(_) | Value::Null => value.clone(),
    }
}
