//! Merge patches (RFC 7386) and JSON patches (RFC 6902), as the API server does them. Pure.

use serde_json::{Map, Value};

/// Merges `patch` into `target`.
pub(super) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(fields) = target else { return };
    for (key, value) in patch {
        if value.is_null() {
            fields.remove(key);
        } else {
            merge(fields.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

/// An operation that cannot be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Impossible;

/// Does all operations of a JSON patch; leaves a half-changed target where one is impossible.
pub(super) fn apply(target: &mut Value, operations: &[Value]) -> Result<(), Impossible> {
    for operation in operations {
        one(target, operation)?;
    }
    Ok(())
}

fn one(target: &mut Value, operation: &Value) -> Result<(), Impossible> {
    let text = |key: &str| operation.get(key).and_then(Value::as_str).ok_or(Impossible);
    let path = text("path")?;
    let value = || operation.get("value").cloned().unwrap_or(Value::Null);
    match text("op")? {
        "add" => add(target, path, value()),
        "remove" => remove(target, path).map(drop),
        "replace" => {
            // The API server's library also "replaces" a member that is absent.
            if let Some(place) = target.pointer_mut(path) {
                *place = value();
                return Ok(());
            }
            match parent(target, path)? {
                (Value::Object(fields), key) => {
                    fields.insert(key, value());
                    Ok(())
                }
                _ => Err(Impossible),
            }
        }
        "move" => {
            let moved = remove(target, text("from")?)?;
            add(target, path, moved)
        }
        "copy" => {
            let copied = target.pointer(text("from")?).cloned().ok_or(Impossible)?;
            add(target, path, copied)
        }
        "test" => match (target.pointer(path), value()) {
            (None, Value::Null) => Ok(()),
            (Some(found), wanted) if *found == wanted => Ok(()),
            _ => Err(Impossible),
        },
        _ => Err(Impossible),
    }
}

/// What holds the last member of a path, and that member's name.
fn parent<'a>(target: &'a mut Value, path: &str) -> Result<(&'a mut Value, String), Impossible> {
    let (above, last) = path.rsplit_once('/').ok_or(Impossible)?;
    let holder = target.pointer_mut(above).ok_or(Impossible)?;
    Ok((holder, last.replace("~1", "/").replace("~0", "~")))
}

fn add(target: &mut Value, path: &str, value: Value) -> Result<(), Impossible> {
    if path.is_empty() {
        *target = value;
        return Ok(());
    }
    match parent(target, path)? {
        (Value::Object(fields), key) => {
            fields.insert(key, value);
            Ok(())
        }
        (Value::Array(items), key) => {
            let place = if key == "-" { items.len() } else { key.parse().map_err(|_| Impossible)? };
            if place > items.len() {
                return Err(Impossible);
            }
            items.insert(place, value);
            Ok(())
        }
        _ => Err(Impossible),
    }
}

fn remove(target: &mut Value, path: &str) -> Result<Value, Impossible> {
    match parent(target, path)? {
        (Value::Object(fields), key) => fields.shift_remove(&key).ok_or(Impossible),
        (Value::Array(items), key) => {
            let place = key.parse().map_err(|_| Impossible)?;
            if place < items.len() { Ok(items.remove(place)) } else { Err(Impossible) }
        }
        _ => Err(Impossible),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_merge_patch_sets_and_removes() {
        let mut target = json!({"a": {"b": 1, "c": 2}, "d": [1]});
        merge(&mut target, &json!({"a": {"b": null, "e": {"x": null, "f": 3}}, "d": [2], "g": 4}));
        assert_eq!(target, json!({"a": {"c": 2, "e": {"f": 3}}, "d": [2], "g": 4}));
    }

    #[test]
    fn a_json_patch_does_each_operation_or_nothing_works() {
        let target = json!({"a": {"b/c": 1}, "l": [1, 2]});
        let rows = [
            (json!([{"op": "add", "path": "/l/1", "value": 9}]), Some(json!({"a": {"b/c": 1}, "l": [1, 9, 2]}))),
            (json!([{"op": "add", "path": "/l/-", "value": 9}]), Some(json!({"a": {"b/c": 1}, "l": [1, 2, 9]}))),
            (json!([{"op": "add", "path": "/l/7", "value": 9}]), None),
            (json!([{"op": "remove", "path": "/a/b~1c"}]), Some(json!({"a": {}, "l": [1, 2]}))),
            (json!([{"op": "remove", "path": "/l/0"}]), Some(json!({"a": {"b/c": 1}, "l": [2]}))),
            (json!([{"op": "remove", "path": "/x"}]), None),
            (json!([{"op": "replace", "path": "/l/0", "value": 7}]), Some(json!({"a": {"b/c": 1}, "l": [7, 2]}))),
            (json!([{"op": "move", "from": "/l", "path": "/a/l"}]), Some(json!({"a": {"b/c": 1, "l": [1, 2]}}))),
            (json!([{"op": "copy", "from": "/l/0", "path": "/a/b~1c"}]), Some(target.clone())),
            (json!([{"op": "test", "path": "/l/0", "value": 2}]), None),
            (json!([{"op": "fly", "path": "/l/0"}]), None),
        ];
        for (patch, expected) in rows {
            let mut patched = target.clone();
            let done = apply(&mut patched, patch.as_array().unwrap());
            assert_eq!(done.ok().map(|()| patched), expected, "{patch}");
        }
    }
}
