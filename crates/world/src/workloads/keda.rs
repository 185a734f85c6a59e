//! KEDA, which looks at no trigger: of each ScaledObject it makes the autoscaler that the real one would make, brings what has no
//! pods to the least that it says, which no autoscaler does, and holds what is paused.

use super::{Due, all, count, ends, owner, text};
use crate::kube_api::World;
use crate::kube_api::resource::Resource;
use serde_json::{Value, json};

/// The name under which it writes.
const KEDA: &str = "keda-operator";
/// At how many pods a ScaledObject holds what it scales.
const PAUSED: &str = "autoscaling.keda.sh/paused-replicas";

pub(super) fn run(world: &mut World, _: &mut Due) {
    let scalers = Resource::of_kind("autoscaling/v2", "HorizontalPodAutoscaler");
    let scalers = scalers.expect("found because its row is in the table");
    for scaled in all(world, "keda.sh/v1alpha1", "ScaledObject") {
        if ends(&scaled) {
            continue;
        }
        let name = format!("keda-hpa-{}", text(&scaled, "/metadata/name"));
        let there = world.get(scalers, text(&scaled, "/metadata/namespace"), &name).cloned();
        match scaled["metadata"]["annotations"][PAUSED].as_str().and_then(|pods| pods.parse::<i64>().ok()) {
            Some(pods) => {
                if let Some(there) = there {
                    drop(world.delete(&there));
                }
                hold(world, &scaled, pods);
            }
            None => {
                follow(world, &scaled, &name, there.as_deref());
                wake(world, &scaled);
            }
        }
    }
}

/// What is scaled.
fn target(scaled: &Value) -> Value {
    let target = &scaled["spec"]["scaleTargetRef"];
    let kind = target["kind"].as_str().unwrap_or("Deployment");
    json!({"apiVersion": "apps/v1", "kind": kind, "name": target["name"]})
}

/// Makes the autoscaler, or gives it the bounds of now.
fn follow(world: &mut World, scaled: &Value, name: &str, there: Option<&Value>) {
    let spec = &scaled["spec"];
    let wanted = json!({
        "scaleTargetRef": target(scaled), "minReplicas": count(&spec["minReplicaCount"], 0).max(1),
        "maxReplicas": count(&spec["maxReplicaCount"], 100),
    });
    let Some(there) = there else {
        let namespace = &scaled["metadata"]["namespace"];
        let metadata = json!({"name": name, "namespace": namespace, "ownerReferences": owner(scaled)});
        let made = json!({"metadata": metadata, "spec": wanted});
        drop(world.create("autoscaling/v2", "HorizontalPodAutoscaler", KEDA, made));
        return;
    };
    let mut next = there.clone();
    for (field, value) in wanted.as_object().into_iter().flatten() {
        next["spec"][field] = value.clone();
    }
    if next != *there {
        drop(world.update(next, "", KEDA));
    }
}

/// Brings what has no pods to the least.
fn wake(world: &mut World, scaled: &Value) {
    let least = count(&scaled["spec"]["minReplicaCount"], 0);
    if least > 0 && size(world, scaled) == Some(0) {
        scale(world, scaled, least);
    }
}

/// Holds what is scaled at so many pods.
fn hold(world: &mut World, scaled: &Value, pods: i64) {
    if size(world, scaled).is_some_and(|size| size != pods) {
        scale(world, scaled, pods);
    }
}

/// How many pods what is scaled is to have, if it is there.
fn size(world: &World, scaled: &Value) -> Option<i64> {
    let target = target(scaled);
    let resource = Resource::of_kind(text(&target, "/apiVersion"), text(&target, "/kind"))?;
    let there = world.get(resource, text(scaled, "/metadata/namespace"), text(&target, "/name"))?;
    Some(count(&there["spec"]["replicas"], 1))
}

fn scale(world: &mut World, scaled: &Value, pods: i64) {
    let target = target(scaled);
    let scale = json!({
        "apiVersion": target["apiVersion"], "kind": target["kind"],
        "metadata": {"name": target["name"], "namespace": scaled["metadata"]["namespace"]}, "spec": {"replicas": pods},
    });
    drop(world.update(scale, "scale", KEDA));
}
