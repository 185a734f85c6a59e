//! What the API server itself fills in on objects of single kinds, beyond what is said in their fields. Pure.

use serde_json::{Value, json};

/// Completes an object that is about to be created; `number` tells it from all others of the world.
pub(super) fn complete(kind: &str, object: &mut Value, number: u64) {
    match kind {
        "Namespace" => {
            let name = object["metadata"]["name"].clone();
            object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
            object["spec"] = json!({"finalizers": ["kubernetes"]});
            object["status"] = json!({"phase": "Active"});
        }
        "Pod" => object["status"] = json!({"phase": "Pending", "qosClass": "BestEffort"}),
        "Service" => complete_service(object, number),
        _ => {}
    }
}

/// Gives a Service its address, as the allocator does: from 10.96.0.0/16, in order.
fn complete_service(object: &mut Value, number: u64) {
    let spec = &mut object["spec"];
    if spec["type"] == "ExternalName" {
        return;
    }
    if spec["clusterIP"].as_str().unwrap_or_default().is_empty() {
        // The first addresses of the range are kept for those that are asked for by name.
        let place = 256 + number % 65_000;
        spec["clusterIP"] = format!("10.96.{}.{}", place / 256, place % 256).into();
    }
    spec["clusterIPs"] = json!([spec["clusterIP"]]);
    // Whose endpoints somebody writes may have addresses of both families, whatever the cluster has.
    let anybodys = spec["clusterIP"] == "None" && spec["selector"].as_object().is_none_or(serde_json::Map::is_empty);
    let (families, policy) =
        if anybodys { (json!(["IPv4", "IPv6"]), "RequireDualStack") } else { (json!(["IPv4"]), "SingleStack") };
    for (field, value) in [("ipFamilies", families), ("ipFamilyPolicy", json!(policy))] {
        if spec[field].is_null() {
            spec[field] = value;
        }
    }
}

/// What only a Service with an address has.
const ADDRESS: [&str; 5] = ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"];

/// Keeps what was allocated where an update leaves it out; a Service that becomes an alias loses its address, and one that is none
/// any more gets one.
pub(super) fn keep(kind: &str, object: &mut Value, live: &Value, number: u64) {
    match kind {
        "Service" => {
            if object["spec"]["type"] == "ExternalName" {
                if let Some(spec) = object["spec"].as_object_mut() {
                    spec.retain(|field, _| !ADDRESS.contains(&field.as_str()));
                }
                return;
            }
            if live["spec"]["type"] == "ExternalName" {
                complete_service(object, number);
                return;
            }
            let (spec, live) = (&mut object["spec"], &live["spec"]);
            if spec["clusterIP"].as_str().unwrap_or_default().is_empty() {
                spec["clusterIP"] = live["clusterIP"].clone();
            }
            for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                if spec[field].is_null() && !live[field].is_null() {
                    spec[field] = live[field].clone();
                }
            }
        }
        "Namespace" => object["spec"] = live["spec"].clone(),
        _ => {}
    }
}

/// Whether a change of the object is one of what it asks for, which its generation counts.
pub(super) fn asks_for_more(kind: &str, object: &Value, live: &Value) -> bool {
    match kind {
        "Deployment" => {
            object["spec"] != live["spec"] || object["metadata"]["annotations"] != live["metadata"]["annotations"]
        }
        // Its own labels and annotations steer traffic as its endpoints do.
        "EndpointSlice" => {
            let marks = |object: &Value| ["labels", "annotations"].map(|key| object["metadata"][key].clone());
            ["endpoints", "ports", "addressType"].iter().any(|key| object[key] != live[key])
                || marks(object) != marks(live)
        }
        _ => {
            let rest = |object: &Value| {
                let mut rest = object.as_object().cloned().unwrap_or_default();
                for key in ["apiVersion", "kind", "metadata", "status"] {
                    rest.remove(key);
                }
                rest
            };
            rest(object) != rest(live)
        }
    }
}
