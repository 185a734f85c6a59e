//! The controller of EndpointSlices: which Pods a Service leads to.

use super::replica_sets::is_ready;
use super::{Controlled, Due, MANAGER, all, ends, owner, text};
use crate::sim::kube_api::World;
use crate::target::selector::serves;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;

/// How many endpoints a slice holds.
const SLICE: usize = 100;

pub(super) fn run(world: &mut World, _: &mut Due) {
    let mut pods: HashMap<String, Vec<Arc<Value>>> = HashMap::new();
    for pod in all(world, "v1", "Pod") {
        pods.entry(text(&pod, "/metadata/namespace").to_owned()).or_default().push(pod);
    }
    let slices = Controlled::all(world, "discovery.k8s.io/v1", "EndpointSlice");
    for service in all(world, "v1", "Service") {
        if ends(&service) || !service["spec"]["selector"].is_object() {
            continue;
        }
        let near = pods.get(text(&service, "/metadata/namespace")).into_iter().flatten();
        let selected: Vec<_> = near.filter(|pod| is_selected(&service, pod)).cloned().collect();
        write(world, &service, &selected, slices.by(&service));
    }
}

/// Whether a Service leads to a Pod of its namespace: one that has an address.
fn is_selected(service: &Value, pod: &Value) -> bool {
    let labels = pod["metadata"]["labels"].as_object();
    !text(pod, "/status/podIP").is_empty()
        && labels.is_some_and(|labels| serves(service["spec"].get("selector"), labels))
}

fn write(world: &mut World, service: &Value, pods: &[Arc<Value>], have: &[Arc<Value>]) {
    let mut chunks: Vec<_> = pods.chunks(SLICE).collect();
    if chunks.is_empty() {
        chunks.push(&[]);
    }
    for (place, pods) in chunks.iter().enumerate() {
        let ports = ports(service, pods.first());
        let endpoints: Vec<_> = pods.iter().map(|pod| endpoint(pod)).collect();
        match have.get(place) {
            Some(slice) if slice["endpoints"] == json!(endpoints) && slice["ports"] == json!(ports) => {}
            Some(slice) => {
                let mut next = slice.as_ref().clone();
                next["endpoints"] = endpoints.into();
                next["ports"] = ports.into();
                drop(world.update(&next, "", MANAGER));
            }
            None => {
                let name = text(service, "/metadata/name");
                let labels = json!({
                    "kubernetes.io/service-name": name,
                    "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
                });
                let metadata = json!({
                    "generateName": format!("{name}-"), "namespace": service["metadata"]["namespace"],
                    "labels": labels, "ownerReferences": owner(service),
                });
                let slice =
                    json!({"metadata": metadata, "addressType": "IPv4", "endpoints": endpoints, "ports": ports});
                drop(world.create("discovery.k8s.io/v1", "EndpointSlice", MANAGER, slice));
            }
        }
    }
    for slice in have.iter().skip(chunks.len()) {
        drop(world.terminate(slice));
    }
}

fn endpoint(pod: &Value) -> Value {
    let (ready, ending) = (is_ready(pod), ends(pod));
    json!({
        "addresses": [pod["status"]["podIP"]],
        "conditions": {"ready": ready && !ending, "serving": ready, "terminating": ending},
        "nodeName": pod["spec"]["nodeName"],
        "targetRef": {
            "kind": "Pod", "namespace": pod["metadata"]["namespace"], "name": pod["metadata"]["name"],
            "uid": pod["metadata"]["uid"],
        },
    })
}

/// The ports of a slice; those that have a name are looked up in a Pod.
fn ports(service: &Value, pod: Option<&Arc<Value>>) -> Vec<Value> {
    let containers = pod.and_then(|pod| pod["spec"]["containers"].as_array()).into_iter().flatten();
    let declared: Vec<_> = containers.filter_map(|container| container["ports"].as_array()).flatten().collect();
    let number = |target: &Value, port: &Value| match target.as_str() {
        Some(name) => declared.iter().find(|found| found["name"] == name).map(|found| found["containerPort"].clone()),
        None if target.is_number() => Some(target.clone()),
        None => Some(port.clone()),
    };
    let ports = service["spec"]["ports"].as_array().into_iter().flatten();
    let port = |port: &Value| {
        let name = port["name"].as_str().unwrap_or_default();
        Some(json!({"name": name, "port": number(&port["targetPort"], &port["port"])?, "protocol": port["protocol"]}))
    };
    ports.filter_map(port).collect()
}
