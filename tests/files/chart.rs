//! The chart's values, their schema and their documentation agree.

use crate::support::pages::generated;
use crate::support::values::{all_leaves, at, file, schema};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use tidegate::manifest::object::Kind;

fn defaults() -> Value {
    serde_yaml::from_str(&file("values.yaml")).unwrap()
}

/// What is wrong with a schema: objects that take anything, parts that nobody describes or types.
fn loose(schema: &Value, path: &str, found: &mut Vec<String>) {
    let Some(parts) = schema.as_object() else { return };
    let typed = ["type", "enum", "$ref", "allOf"].iter().any(|key| parts.contains_key(*key));
    if !typed {
        found.push(format!("{path} has no type"));
    }
    if parts.get("type") == Some(&json!("object")) && !parts.contains_key("additionalProperties") {
        found.push(format!("{path} takes anything"));
    }
    for (name, part) in parts.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let path = format!("{path}/{name}");
        if part["description"].as_str().is_none_or(|text| !text.ends_with('.')) {
            found.push(format!("{path} is not described"));
        }
        loose(part, &path, found);
    }
    if let Some(items) = parts.get("items") {
        loose(items, &format!("{path}/items"), found);
    }
}

#[test]
fn every_value_is_typed_and_described() {
    let mut found = Vec::new();
    let mut schema = schema();
    let global = schema["properties"].as_object_mut().unwrap().remove("global");
    assert!(global.is_some(), "a chart that is part of another gets this value");
    loose(&schema, "", &mut found);
    for (name, definition) in schema["definitions"].as_object().unwrap() {
        loose(definition, name, &mut found);
    }
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn defaults_are_all_values_and_keep_the_schema() {
    let (defaults, leaves) = (defaults(), all_leaves());
    for path in leaves.keys() {
        assert!(at(&defaults, path).is_some(), "values.yaml does not tell {path}");
    }
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let wrong: Vec<_> = validator.iter_errors(&defaults).map(|error| error.to_string()).collect();
    assert_eq!(wrong, Vec::<String>::new());
}

/// The comment above each key of values.yaml, in one line.
fn comments() -> BTreeMap<String, String> {
    let (mut found, mut parents, mut comment) = (BTreeMap::new(), Vec::<(usize, String)>::new(), Vec::new());
    for line in file("values.yaml").lines() {
        let text = line.trim_start();
        let depth = line.len() - text.len();
        if let Some(words) = text.strip_prefix("# ") {
            comment.push(words.to_owned());
            continue;
        }
        if let Some((key, _)) = text.split_once(':').filter(|(key, _)| key.bytes().all(|c| c.is_ascii_alphabetic())) {
            parents.retain(|(at, _)| *at < depth);
            parents.push((depth, key.to_owned()));
            let path: Vec<&str> = parents.iter().map(|(_, key)| key.as_str()).collect();
            found.insert(path.join("."), comment.join(" "));
        }
        comment.clear();
    }
    found
}

fn descriptions(schema: &Value, path: &str, found: &mut BTreeMap<String, String>) {
    for (name, part) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        found.insert(path.clone(), part["description"].as_str().unwrap_or_default().to_owned());
        descriptions(part, &path, found);
    }
}

#[test]
fn values_and_schema_say_the_same() {
    let mut described = BTreeMap::new();
    descriptions(&schema(), "", &mut described);
    described.remove("global");
    assert_eq!(comments(), described);
}

/// A type in a word or two.
fn type_of(schema: &Value) -> String {
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().map(|value| format!("`{}`", value.as_str().unwrap())).collect::<Vec<_>>().join(", ");
    }
    if let Some(types) = schema["type"].as_array() {
        return types.iter().map(|one| one.as_str().unwrap()).collect::<Vec<_>>().join(" or ");
    }
    match schema["type"].as_str().unwrap() {
        "array" => schema["items"]["type"].as_str().map_or("list".to_owned(), |item| format!("list of {item}s")),
        "object" => match schema["additionalProperties"]["type"].as_str() {
            Some(value) => format!("map of {value}s"),
            None => "map".to_owned(),
        },
        other => other.to_owned(),
    }
}

#[test]
fn the_table_of_values_is_that_of_the_chart() {
    let (defaults, mut described) = (defaults(), BTreeMap::new());
    let schema = schema();
    descriptions(&schema, "", &mut described);
    let leaves = all_leaves();
    let mut table = "| value | type | default | meaning |\n|---|---|---|---|\n".to_owned();
    // As values.yaml has them.
    let mut paths: Vec<&String> = described.keys().filter(|path| *path != "global").collect();
    let text = file("values.yaml");
    let mut order = Vec::new();
    order_of(&serde_yaml::from_str(&text).unwrap(), "", &mut order);
    paths.sort_by_key(|path| order.iter().position(|known| known == *path));
    for path in paths {
        let (kind, default) = match leaves.get(path) {
            Some(leaf) => (type_of(leaf), format!("`{}`", at(&defaults, path).unwrap())),
            None => (String::new(), String::new()),
        };
        let meaning = described[path].replace('|', "\\|");
        let _ = writeln!(table, "| `{path}` | {kind} | {default} | {meaning} |");
    }
    generated("charts/tidegate/README.md", "values", &table);
}

fn order_of(values: &Value, path: &str, order: &mut Vec<String>) {
    for (name, value) in values.as_object().into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        order.push(path.clone());
        order_of(value, &path, order);
    }
}

#[test]
fn the_chart_has_the_version_of_the_program() {
    let chart: Value = serde_yaml::from_str(&file("Chart.yaml")).unwrap();
    assert_eq!((&chart["version"], &chart["appVersion"]), (&json!(env!("CARGO_PKG_VERSION")), &chart["version"]));
}

#[test]
fn kinds_are_those_that_a_set_may_hold_and_job() {
    let kinds: Vec<_> = Kind::MANIFEST.iter().chain([&Kind::Job]).map(|kind| kind.as_str()).collect();
    assert_eq!(schema()["properties"]["kinds"]["items"]["enum"], json!(kinds));
}
