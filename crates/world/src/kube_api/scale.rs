//! The size of a workload as a `Scale`. Pure.

use serde_json::{Value, json};
use std::sync::Arc;

/// Takes the time off what was written through the `Scale`, and puts it before what has one: the API server forgets it.
pub(super) fn undate(workload: &mut Value) {
    let Some(entries) = workload["metadata"]["managedFields"].as_array_mut() else { return };
    for entry in entries.iter_mut().filter(|entry| entry["subresource"] == "scale") {
        entry.as_object_mut().map(|entry| entry.remove("time"));
    }
    entries.sort_by_key(|entry| (entry["operation"] != "Apply", entry.get("time").is_some()));
}

/// The `Scale` of a Deployment or ReplicaSet.
pub(super) fn of(workload: &Value) -> Arc<Value> {
    let mut metadata = json!({});
    for key in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = workload["metadata"].get(key) {
            metadata[key] = value.clone();
        }
    }
    let labels = workload["spec"]["selector"]["matchLabels"].as_object();
    let mut terms: Vec<_> = labels
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    terms.sort();
    let mut spec = json!({});
    if let Some(replicas) = workload["spec"]["replicas"].as_i64().filter(|replicas| *replicas != 0) {
        spec["replicas"] = replicas.into();
    }
    let replicas = workload["status"]["replicas"].as_i64().unwrap_or(0);
    Arc::new(json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec,
        "status": {"replicas": replicas, "selector": terms.join(",")},
    }))
}
