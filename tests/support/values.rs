//! The values that the chart takes, as its schema has them.

use super::root::root;
use serde_json::Value;
use std::collections::BTreeMap;

/// A file of the chart.
pub(crate) fn file(name: &str) -> String {
    std::fs::read_to_string(root().join("charts/tidegate").join(name)).unwrap()
}

/// The schema of its values.
pub(crate) fn schema() -> Value {
    serde_json::from_str(&file("values.schema.json")).unwrap()
}

/// Every value that has no parts of its own, by its path, with its part of the schema.
pub(crate) fn all_leaves() -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    leaves(&schema(), "", &mut found);
    found
}

fn leaves(schema: &Value, path: &str, found: &mut BTreeMap<String, Value>) {
    let parts = schema.get("properties").and_then(Value::as_object);
    for (name, part) in parts.into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        match part.get("properties") {
            Some(_) => leaves(part, &path, found),
            // It is not ours: Helm hands it to every chart that is part of another.
            None if path == "global" => {}
            None => drop(found.insert(path, part.clone())),
        }
    }
}

/// The value at a path.
pub(crate) fn at<'a>(values: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(values, |value, name| value.get(name))
}
