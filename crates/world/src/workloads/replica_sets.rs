//! The controller of ReplicaSets: as many Pods as are asked for.

use super::{Controlled, Due, MANAGER, all, condition, count, ends, owner, text, time, write_status};
use crate::kube_api::World;
use chrono::TimeDelta;
use serde_json::{Value, json};
use std::sync::Arc;

pub(super) fn run(world: &mut World, due: &mut Due) {
    let pods = Controlled::all(world, "v1", "Pod");
    for set in all(world, "apps/v1", "ReplicaSet") {
        let ours: Vec<_> = pods.by(&set).iter().filter(|pod| is_active(pod)).cloned().collect();
        if !ends(&set) {
            size(world, &set, &ours);
        }
        let ending = pods.by(&set).iter().filter(|pod| ends(pod)).count();
        let status = status(world, &set, &ours, ending, due);
        write_status(world, &set, status, MANAGER);
    }
}

/// Whether a Pod counts: it does not end, and has not ended.
fn is_active(pod: &Value) -> bool {
    !ends(pod) && !matches!(text(pod, "/status/phase"), "Succeeded" | "Failed")
}

pub(super) fn is_ready(pod: &Value) -> bool {
    condition(pod, "Ready").is_some_and(|ready| ready["status"] == "True")
}

fn size(world: &mut World, set: &Value, ours: &[Arc<Value>]) {
    let wanted = usize::try_from(count(&set["spec"]["replicas"], 1)).unwrap_or(0);
    let template = &set["spec"]["template"];
    for _ in ours.len()..wanted {
        let mut metadata = template["metadata"].clone();
        metadata["generateName"] = format!("{}-", text(set, "/metadata/name")).into();
        metadata["namespace"] = set["metadata"]["namespace"].clone();
        metadata["ownerReferences"] = owner(set);
        // What the API refuses is tried again with the next round that something else brings about.
        if world.create("v1", "Pod", MANAGER, json!({"metadata": metadata, "spec": template["spec"]})).is_err() {
            return;
        }
    }
    // Those that serve least go first: not placed, not ready, the youngest.
    let mut ranked = ours.to_vec();
    ranked.sort_by_key(|pod| {
        let placed = !text(pod, "/spec/nodeName").is_empty();
        (placed, is_ready(pod), std::cmp::Reverse(pod["metadata"]["uid"].as_str().map(str::to_owned)))
    });
    for pod in ranked.iter().take(ours.len().saturating_sub(wanted)) {
        drop(world.terminate(pod));
    }
}

fn status(world: &World, set: &Value, ours: &[Arc<Value>], ending: usize, due: &mut Due) -> Value {
    let wait = TimeDelta::seconds(count(&set["spec"]["minReadySeconds"], 0));
    let ready: Vec<_> = ours.iter().filter(|pod| is_ready(pod)).collect();
    let mut available = 0;
    for pod in &ready {
        let since = condition(pod, "Ready").and_then(|ready| time(&ready["lastTransitionTime"]));
        match since.map(|since| since + wait).filter(|from| *from > world.now()) {
            Some(from) => due.at(from),
            None => available += 1,
        }
    }
    let labels = set["spec"]["template"]["metadata"]["labels"].as_object();
    let labeled = |pod: &&Arc<Value>| {
        labels.into_iter().flatten().all(|(key, value)| pod["metadata"]["labels"].get(key) == Some(value))
    };
    let generation = &set["metadata"]["generation"];
    let mut status = json!({"replicas": ours.len(), "observedGeneration": generation, "terminatingReplicas": ending});
    let counts = [
        ("fullyLabeledReplicas", ours.iter().filter(labeled).count()),
        ("readyReplicas", ready.len()),
        ("availableReplicas", available),
    ];
    for (key, number) in counts.into_iter().filter(|(_, number)| *number > 0) {
        status[key] = number.into();
    }
    status
}
