//! A gateway that takes every HTTPRoute at once, if its Services are there.

use super::{Due, all, stamp, text, write_status};
use crate::sim::kube_api::World;
use serde_json::{Value, json};

/// The name under which it speaks of a route.
const CONTROLLER: &str = "tidegate.io/world-gateway";
pub(super) const GATEWAY_API: &str = "gateway.networking.k8s.io/v1";

pub(super) fn run(world: &mut World, _: &mut Due) {
    let services = all(world, "v1", "Service");
    let is_there = |namespace: &str, name: &str| {
        services.iter().any(|s| text(s, "/metadata/namespace") == namespace && text(s, "/metadata/name") == name)
    };
    for route in all(world, GATEWAY_API, "HTTPRoute") {
        let namespace = text(&route, "/metadata/namespace");
        let rules = route["spec"]["rules"].as_array().into_iter().flatten();
        let named = rules.filter_map(|rule| rule["backendRefs"].as_array()).flatten();
        let missing = named.filter_map(|backend| backend["name"].as_str()).find(|name| !is_there(namespace, name));
        let parents = parents(world, &route, missing);
        if !parents.is_empty() || !route["status"].is_null() {
            write_status(world, &route, json!({"parents": parents}), CONTROLLER);
        }
    }
}

/// What is said of the route by everybody; what others say stays.
fn parents(world: &World, route: &Value, missing: Option<&str>) -> Vec<Value> {
    let accepted = ("Accepted", "True", "Accepted", String::new());
    let resolved = match missing {
        Some(name) => ("ResolvedRefs", "False", "BackendNotFound", format!("service {name} not found")),
        None => ("ResolvedRefs", "True", "ResolvedRefs", String::new()),
    };
    let before = route["status"]["parents"].as_array().cloned().unwrap_or_default();
    let (ours, mut parents): (Vec<_>, Vec<_>) =
        before.into_iter().partition(|parent| parent["controllerName"] == CONTROLLER);
    for parent in route["spec"]["parentRefs"].as_array().into_iter().flatten() {
        let last = ours.iter().find(|ours| ours["parentRef"] == *parent);
        let conditions = [&accepted, &resolved].map(|(kind, status, reason, message)| {
            let last = last.and_then(|last| last["conditions"].as_array()?.iter().find(|c| c["type"] == *kind));
            let since = last.filter(|last| last["status"] == *status).map(|last| last["lastTransitionTime"].clone());
            json!({
                "type": kind, "status": status, "reason": reason, "message": message,
                "observedGeneration": route["metadata"]["generation"],
                "lastTransitionTime": since.unwrap_or_else(|| stamp(world)),
            })
        });
        parents.push(json!({"parentRef": parent, "controllerName": CONTROLLER, "conditions": conditions}));
    }
    parents
}
