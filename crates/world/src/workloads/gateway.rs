//! A gateway that takes every HTTPRoute and GRPCRoute at once, if its Services are there and speak a protocol that it knows, if the
//! annotation `testbed/gateway: refuse` of the namespace does not say that it takes none, and if its listeners let in routes of that
//! namespace: those with the label `testbed/no-routes` they do not.

use super::{Due, all, stamp, text, write_status};
use crate::kube_api::World;
use crate::kube_api::resource::Resource;
use serde_json::{Value, json};
use std::sync::Arc;

/// The name under which it speaks of a route.
const CONTROLLER: &str = "tidegate.io/world-gateway";
/// What a namespace has to say to it.
pub(super) const WORD: &str = "testbed/gateway";
const GATEWAY_API: &str = "gateway.networking.k8s.io/v1";
/// The label of a Namespace whose routes no listener lets in.
pub(super) const BARRED: &str = "testbed/no-routes";
/// The kinds that it serves.
pub(super) const ROUTES: [(&str, &str); 2] = [(GATEWAY_API, "HTTPRoute"), (GATEWAY_API, "GRPCRoute")];
/// The protocols that it speaks to backends, by `appProtocol`; a gateway need not know more than it likes (GEP-1911).
const PROTOCOLS: [&str; 2] = ["http", "kubernetes.io/h2c"];

pub(super) fn run(world: &mut World, _: &mut Due) {
    let [namespaces, services] = ["Namespace", "Service"]
        .map(|kind| Resource::of_kind("v1", kind).expect("found because its row is in the table"));
    for route in ROUTES.into_iter().flat_map(|(api, kind)| all(world, api, kind)).collect::<Vec<_>>() {
        let namespace = text(&route, "/metadata/namespace");
        let rules = route["spec"]["rules"].as_array().into_iter().flatten();
        let named = rules.filter_map(|rule| rule["backendRefs"].as_array()).flatten();
        let mut names = named.filter_map(|backend| backend["name"].as_str());
        let broken = names.find_map(|name| refused(name, world.get(services, namespace, name)));
        let around = world.get(namespaces, "", namespace);
        let parents = parents(world, &route, around.and_then(|around| shut(around)), broken);
        if !parents.is_empty() || !route["status"].is_null() {
            write_status(world, &route, json!({"parents": parents}), CONTROLLER);
        }
    }
}

/// Why a backend cannot be reached, as reason and message.
fn refused(name: &str, service: Option<&Arc<Value>>) -> Option<(&'static str, String)> {
    let Some(service) = service else { return Some(("BackendNotFound", format!("service {name} not found"))) };
    let ports = service["spec"]["ports"].as_array().into_iter().flatten();
    let unknown = ports.filter_map(|port| port["appProtocol"].as_str()).find(|known| !PROTOCOLS.contains(known))?;
    Some(("UnsupportedProtocol", format!("service {name} speaks {unknown}")))
}

/// Why a gateway takes no route of a namespace, in the word of its condition and in others.
fn shut(namespace: &Value) -> Option<(&'static str, &'static str)> {
    let metadata = &namespace["metadata"];
    if !metadata["labels"][BARRED].is_null() {
        return Some(("NotAllowedByListeners", "no listener takes routes of the namespace"));
    }
    (metadata["annotations"][WORD] == "refuse").then_some(("NotAllowed", "it takes no route of this namespace"))
}

/// What is said of the route by everybody; what others say stays.
fn parents(
    world: &World,
    route: &Value,
    shut: Option<(&'static str, &str)>,
    broken: Option<(&'static str, String)>,
) -> Vec<Value> {
    let accepted = if let Some((reason, why)) = shut {
        ("Accepted", "False", reason, why.to_owned())
    } else {
        ("Accepted", "True", "Accepted", String::new())
    };
    let resolved = match broken {
        Some((reason, message)) => ("ResolvedRefs", "False", reason, message),
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
