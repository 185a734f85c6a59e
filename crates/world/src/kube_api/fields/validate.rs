//! Whether an object is what its schema says, in the words of the API server.

use super::set::Step;
use super::typed::step_of;
use serde_json::Value;
use std::collections::BTreeSet;
use tidegate_controller::manifest::kinds::{By, List, Map, Scalar, Shape, Type};

/// What is wrong with an object that somebody applies; all of it, as one text.
pub(super) fn check(of: &Type, value: &Value) -> Result<(), String> {
    let mut errors = Vec::new();
    walk(of, value, "", &mut errors);
    match &errors[..] {
        [] => Ok(()),
        [one] => Err(one.clone()),
        all => Err(all.iter().fold("errors:".to_owned(), |text, error| format!("{text}\n  {error}"))),
    }
}

fn walk(of: &Type, value: &Value, path: &str, errors: &mut Vec<String>) {
    let shape = of.shape(Some(value));
    match (shape, value) {
        (_, Value::Null) => {}
        (Shape::Scalar(scalar), _) => errors.extend(scalar_error(scalar, value).map(|error| at(path, &error))),
        (Shape::List(list), Value::Array(items)) => walk_items(list, items, path, errors),
        (Shape::List(_), _) => errors.push(at(path, &format!("expected list, got &{{{}}}", go(value)))),
        (Shape::Map(map), Value::Object(_)) => walk_fields(map, value, path, errors),
        (Shape::Map(_), _) => errors.push(at(path, &format!("expected map, got &{{{}}}", go(value)))),
    }
}

fn at(path: &str, error: &str) -> String {
    if path.is_empty() { error.to_owned() } else { format!("{path}: {error}") }
}

fn walk_fields(map: &Map, value: &Value, path: &str, errors: &mut Vec<String>) {
    for (name, value) in value.as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        match map.at(name) {
            Some(of) => walk(of, value, &path, errors),
            None => {
                // The API server looks at no further field, in an order of its own.
                errors.push(at(&path, "field not declared in schema"));
                return;
            }
        }
    }
}

fn walk_items(list: &List, items: &[Value], path: &str, errors: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for (place, item) in (0..).zip(items) {
        let step = match list.by {
            By::Place => Ok(Step::Place(place)),
            By::Value | By::Keys(_) => step_of(list, item),
        };
        let step = match step {
            Ok(step) => step,
            Err(why) => {
                errors.push(at(path, &format!("element {place}: {why}")));
                return;
            }
        };
        if !seen.insert(step.clone()) {
            errors.push(at(path, &format!("duplicate entries for key {step}")));
        }
        walk(list.item.get(), item, &format!("{path}{step}"), errors);
    }
}

fn scalar_error(scalar: Scalar, value: &Value) -> Option<String> {
    match (scalar, value) {
        (_, Value::Null) | (Scalar::Text, Value::String(_)) | (Scalar::Number, Value::Number(_)) => None,
        (Scalar::Truth, Value::Bool(_)) => None,
        (Scalar::Any | Scalar::Quantity, Value::Bool(_) | Value::Number(_) | Value::String(_)) => None,
        (Scalar::Number, _) => Some(format!("expected numeric (int or float), got {}", go_type(value))),
        (Scalar::Text, _) => {
            Some(format!("expected string, got &value.valueUnstructured{{Value:{}}}", go_source(value)))
        }
        (Scalar::Truth, _) => Some(format!("expected boolean, got &{{{}}}", go(value))),
        (Scalar::Any | Scalar::Quantity, _) => Some(format!("expected any scalar, got &{{{}}}", go(value))),
    }
}

/// A value as Go prints it with `%v`.
fn go(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(items) => format!("[{}]", items.iter().map(go).collect::<Vec<_>>().join(" ")),
        Value::Object(fields) => {
            let mut fields: Vec<String> = fields.iter().map(|(name, value)| format!("{name}:{}", go(value))).collect();
            fields.sort();
            format!("map[{}]", fields.join(" "))
        }
    }
}

/// A value as Go prints it with `%#v`.
fn go_source(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_source).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(fields) => {
            let mut fields: Vec<String> =
                fields.iter().map(|(name, value)| format!("{name:?}:{}", go_source(value))).collect();
            fields.sort();
            format!("map[string]interface {{}}{{{}}}", fields.join(", "))
        }
    }
}

/// The name of a value's type in Go.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}
