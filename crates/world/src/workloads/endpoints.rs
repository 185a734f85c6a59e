//! The controller of EndpointSlices: which Pods a Service leads to.

use super::replica_sets::is_ready;
use super::{Controlled, Due, MANAGER, all, ends, owner, text};
use crate::kube_api::World;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use tidegate_controller::workload::selector::serves;

/// How many endpoints a slice holds.
const SLICE: usize = 100;

pub(super) fn run(world: &mut World, _: &mut Due) {
    let pods = all(world, "v1", "Pod");
    let labeled = by_label(&pods);
    let slices = Controlled::all(world, "discovery.k8s.io/v1", "EndpointSlice");
    for service in all(world, "v1", "Service") {
        let Some(selector) = service["spec"]["selector"].as_object().filter(|_| !ends(&service)) else { continue };
        // Who is selected has each of its labels.
        let near = selector.iter().filter_map(|(key, value)| {
            let label = (text(&service, "/metadata/namespace"), key.as_str(), value.as_str()?);
            Some(labeled.get(&label).map_or(&[][..], Vec::as_slice))
        });
        let near = near.min_by_key(|pods| pods.len()).unwrap_or_default();
        let selects = |pod: &&Value| {
            let labels = pod["metadata"]["labels"].as_object();
            labels.is_some_and(|labels| serves(service["spec"].get("selector"), labels))
        };
        let selected: Vec<_> = near.iter().copied().filter(selects).collect();
        write(world, &service, &selected, slices.by(&service));
    }
}

/// The Pods that have an address, by namespace, and the name and value of each of their labels.
fn by_label(pods: &[Arc<Value>]) -> HashMap<(&str, &str, &str), Vec<&Value>> {
    let mut labeled: HashMap<_, Vec<&Value>> = HashMap::new();
    for pod in pods.iter().filter(|pod| !text(pod, "/status/podIP").is_empty()) {
        let namespace = text(pod, "/metadata/namespace");
        for (key, value) in pod["metadata"]["labels"].as_object().into_iter().flatten() {
            labeled.entry((namespace, key.as_str(), value.as_str().unwrap_or_default())).or_default().push(pod);
        }
    }
    labeled
}

fn write(world: &mut World, service: &Value, pods: &[&Value], have: &[Arc<Value>]) {
    let mut chunks: Vec<_> = pods.chunks(SLICE).collect();
    if chunks.is_empty() {
        chunks.push(&[]);
    }
    for (place, pods) in chunks.iter().enumerate() {
        let ports = ports(service, pods.first().copied());
        let endpoints: Vec<_> = pods.iter().map(|pod| endpoint(pod)).collect();
        match have.get(place) {
            Some(slice) if slice["endpoints"] == json!(endpoints) && slice["ports"] == json!(ports) => {}
            Some(slice) => {
                let mut next = slice.as_ref().clone();
                next["endpoints"] = endpoints.into();
                next["ports"] = ports.into();
                drop(world.update(next, "", MANAGER));
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
fn ports(service: &Value, pod: Option<&Value>) -> Vec<Value> {
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
