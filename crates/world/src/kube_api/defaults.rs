//! What the API server makes of an object before it stores it: what it leaves out, and what it fills in.
//!
//! Sources: `SetDefaults_*` in `pkg/apis/{core,apps,autoscaling,networking,discovery}` of Kubernetes, through the table
//! in [`tidegate_controller::manifest::canonical`] where that has them; for custom resources, the defaults of their schema. What is
//! allotted (`clusterIP`, IP families) or comes from admission (a pod's tolerations, its token's volume) is not here.

use serde_json::{Map as Object, Value, json};
use tidegate_controller::manifest::canonical::{Where, defaults};
use tidegate_controller::manifest::kinds::{Empty, Map, Scalar, Schema, Shape, Type};
use tidegate_controller::manifest::object::{Kind, at, items_mut};
use tidegate_controller::workload::quantity;

/// Makes of an object what the API server would store: fields that it does not know go, and so do empty ones that it
/// leaves out; defaults come. Filling twice changes nothing.
pub fn fill(schema: &Schema, object: &mut Value) {
    tidy(schema.root(), object);
    match schema.kind() {
        "Deployment" => deployment(object),
        "StatefulSet" => stateful_set(object),
        "DaemonSet" => daemon_set(object),
        "ReplicaSet" => {
            set(object, &["spec", "replicas"], &json!(1));
            pod_template(object);
        }
        "Pod" => {
            if let Some(spec) = object.get_mut("spec") {
                set(spec, &["enableServiceLinks"], &json!(true));
                pod_spec(spec);
            }
        }
        "Job" => job(object),
        "Service" => service(object),
        "HorizontalPodAutoscaler" => autoscaler(object),
        "NetworkPolicy" => network_policy(object),
        "EndpointSlice" => {
            for port in items_mut(object, "ports") {
                set(port, &["name"], &json!(""));
                set(port, &["protocol"], &json!("TCP"));
            }
        }
        "Namespace" => namespace(object),
        "Secret" => set(object, &["type"], &json!("Opaque")),
        _ => {}
    }
}

/// The object that is compared with when something is created: what an empty one of that kind looks like.
pub(super) fn blank(schema: &Schema) -> Value {
    let mut object = json!({});
    if !schema.is_custom() {
        tidy(schema.root(), &mut object);
    }
    object
}

/// Leaves out what the type does not know or writes only when it is set, and puts the defaults of the type.
fn tidy(of: &Type, value: &mut Value) {
    match (of.shape(Some(value)), value) {
        (Shape::Scalar(Scalar::Quantity), value) => {
            if let Some(canonical) = quantity::canonical(value) {
                *value = canonical.into();
            }
        }
        (Shape::List(list), Value::Array(items)) => items.iter_mut().for_each(|item| tidy(list.item.get(), item)),
        (Shape::Map(map), Value::Object(fields)) => tidy_fields(map, of.is_struct(), fields),
        _ => {}
    }
}

fn tidy_fields(map: &Map, is_struct: bool, fields: &mut Object<String, Value>) {
    fields.retain(|name, value| {
        let Some(of) = map.at(name) else { return false };
        if is_struct && value.is_null() {
            return false;
        }
        tidy(of, value);
        match map.fields.get(name.as_str()).filter(|_| is_zero(value)).map(|field| &field.empty) {
            Some(Empty::Absent) => return false,
            Some(Empty::Null) => *value = Value::Null,
            Some(Empty::Stays | Empty::Default(_)) | None => {}
        }
        true
    });
    for (name, field) in &map.fields {
        let default = match &field.empty {
            Empty::Stays | Empty::Absent => continue,
            Empty::Null => &Value::Null,
            Empty::Default(default) => default,
        };
        if !fields.contains_key(*name) {
            let mut default = default.clone();
            tidy(field.of.get(), &mut default);
            fields.insert((*name).to_owned(), default);
        }
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(truth) => !truth,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

/// Puts a default where the way to it exists and nothing stands.
fn set(value: &mut Value, path: &[&str], default: &Value) {
    match (path, value) {
        ([last], Value::Object(fields)) if fields.get(*last).is_none_or(Value::is_null) => {
            fields.insert((*last).to_owned(), default.clone());
        }
        (["*", rest @ ..], Value::Array(items)) => items.iter_mut().for_each(|item| set(item, rest, default)),
        ([first, rest @ ..], Value::Object(fields)) => {
            if let Some(inner) = fields.get_mut(*first) {
                set(inner, rest, default);
            }
        }
        _ => {}
    }
}

/// Puts the defaults of a place, outer ones first, except where `unless` says so.
fn set_all(value: &mut Value, place: Where, unless: impl Fn(&[&str]) -> bool) {
    for (path, default) in defaults(place).rev().filter(|(path, _)| !unless(path)) {
        set(value, path, default);
    }
}

fn deployment(object: &mut Value) {
    let rolling = at(object, "/spec/strategy/type").is_none_or(|kind| kind == "RollingUpdate");
    set_all(object, Where::In(Kind::Deployment), |path| !rolling && path.contains(&"rollingUpdate"));
    pod_template(object);
}

fn stateful_set(object: &mut Value) {
    // A strategy that is named may do without its details.
    let named = at(object, "/spec/updateStrategy/type").is_some();
    for path in [&["spec", "updateStrategy"][..], &["spec", "persistentVolumeClaimRetentionPolicy"]] {
        set(object, path, &json!({}));
    }
    set_all(object, Where::In(Kind::StatefulSet), |path| named && path == ["spec", "updateStrategy", "rollingUpdate"]);
    for claim in object.get_mut("spec").into_iter().flat_map(|spec| items_mut(spec, "volumeClaimTemplates")) {
        set(claim, &["apiVersion"], &json!("v1"));
        set(claim, &["kind"], &json!("PersistentVolumeClaim"));
        set(claim, &["status"], &json!({}));
        set(claim, &["status", "phase"], &json!("Pending"));
    }
    pod_template(object);
}

fn daemon_set(object: &mut Value) {
    let rolling = at(object, "/spec/updateStrategy/type").is_none_or(|kind| kind == "RollingUpdate");
    set_all(object, Where::In(Kind::DaemonSet), |path| !rolling && path.contains(&"rollingUpdate"));
    pod_template(object);
}

/// Its selector, and the labels that go with it, are allotted.
fn job(object: &mut Value) {
    let Some(spec) = object.get_mut("spec") else { return };
    for (field, default) in [
        ("parallelism", json!(1)),
        ("completions", json!(1)),
        ("backoffLimit", json!(6)),
        ("completionMode", json!("NonIndexed")),
        ("suspend", json!(false)),
        ("podReplacementPolicy", json!("TerminatingOrFailed")),
    ] {
        set(spec, &[field], &default);
    }
    pod_template(object);
}

fn pod_template(object: &mut Value) {
    if let Some(spec) = object.pointer_mut("/spec/template/spec") {
        pod_spec(spec);
    }
}

fn pod_spec(spec: &mut Value) {
    // The older name of the field says the same, and counts only where the newer one says nothing.
    let named = |field: &str| spec.get(field).filter(|name| !is_zero(name)).cloned();
    if let Some(account) = named("serviceAccountName").or_else(|| named("serviceAccount")) {
        spec["serviceAccountName"] = account.clone();
        spec["serviceAccount"] = account;
    }
    // A pod of its own has this default, a template has not.
    set_all(spec, Where::Pod, |path| path == ["enableServiceLinks"]);
    for volume in items_mut(spec, "volumes") {
        if volume.as_object().is_some_and(|volume| volume.keys().all(|key| key == "name")) {
            volume["emptyDir"] = json!({});
        }
        let source = ["projected", "sources", "*"];
        let token = ["serviceAccountToken", "expirationSeconds"];
        set(volume, &[&source[..], &token].concat(), &json!(3600));
        let field = ["downwardAPI", "items", "*", "fieldRef", "apiVersion"];
        set(volume, &[&source[..], &field].concat(), &json!("v1"));
    }
    for list in ["containers", "initContainers"] {
        items_mut(spec, list).for_each(container);
    }
}

fn container(container: &mut Value) {
    set_all(container, Where::Container, |_| false);
    for hook in ["postStart", "preStop"] {
        set(container, &["lifecycle", hook, "httpGet", "path"], &json!("/"));
        set(container, &["lifecycle", hook, "httpGet", "scheme"], &json!("HTTP"));
    }
    let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
    // Without a tag or digest it is `latest`; a colon before the last slash belongs to a registry's port.
    let name = image.rsplit('/').next().unwrap_or_default();
    let latest = !name.contains('@') && name.split_once(':').is_none_or(|(_, tag)| tag == "latest");
    set(container, &["imagePullPolicy"], &json!(if latest { "Always" } else { "IfNotPresent" }));
}

fn service(object: &mut Value) {
    let kind = at(object, "/spec/type").and_then(Value::as_str).unwrap_or("ClusterIP").to_owned();
    set_all(object, Where::In(Kind::Service), |path| {
        kind == "ExternalName" && path == ["spec", "internalTrafficPolicy"]
    });
    let Some(spec) = object.get_mut("spec") else { return };
    for port in items_mut(spec, "ports") {
        let number = port.get("port").cloned().unwrap_or_default();
        if port.get("targetPort").is_none_or(is_zero) {
            port["targetPort"] = number;
        }
    }
    if from_outside(spec) {
        set(spec, &["externalTrafficPolicy"], &json!("Cluster"));
    }
    if kind == "LoadBalancer" {
        set(spec, &["allocateLoadBalancerNodePorts"], &json!(true));
    }
    if spec["sessionAffinity"] == "ClientIP" {
        for path in [&["sessionAffinityConfig"][..], &["sessionAffinityConfig", "clientIP"]] {
            set(spec, path, &json!({}));
        }
        set(spec, &["sessionAffinityConfig", "clientIP", "timeoutSeconds"], &json!(10_800));
    } else if let Some(spec) = spec.as_object_mut() {
        spec.shift_remove("sessionAffinityConfig");
    }
}

/// Whether a Service can be reached from outside of the cluster.
fn from_outside(spec: &Value) -> bool {
    match spec.get("type").and_then(Value::as_str) {
        Some("NodePort" | "LoadBalancer") => true,
        Some("ClusterIP") | None => spec.get("externalIPs").is_some(),
        Some(_) => false,
    }
}

/// Takes out what has lost its meaning by a change of something else; whoever wrote that does not own this.
pub(super) fn settle(schema: &Schema, object: &mut Value) {
    if schema.kind() == "Service"
        && let Some(spec) = object.get_mut("spec")
        && !from_outside(spec)
        && let Some(spec) = spec.as_object_mut()
    {
        spec.shift_remove("externalTrafficPolicy");
    }
}

fn autoscaler(object: &mut Value) {
    set_all(object, Where::In(Kind::HorizontalPodAutoscaler), |_| false);
    let Some(spec) = object.get_mut("spec") else { return };
    let target = json!({"type": "Utilization", "averageUtilization": 80});
    set(spec, &["metrics"], &json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]));
    let policy = |kind: &str, value: i32| json!({"type": kind, "value": value, "periodSeconds": 15});
    for (side, policies) in [
        ("scaleUp", json!([policy("Pods", 4), policy("Percent", 100)])),
        ("scaleDown", json!([policy("Percent", 100)])),
    ] {
        set(spec, &["behavior", side], &json!({}));
        set(spec, &["behavior", side, "policies"], &policies);
        set(spec, &["behavior", side, "selectPolicy"], &json!("Max"));
    }
    set(spec, &["behavior", "scaleUp", "stabilizationWindowSeconds"], &json!(0));
}

fn network_policy(object: &mut Value) {
    for side in ["ingress", "egress"] {
        set(object, &["spec", side, "*", "ports", "*", "protocol"], &json!("TCP"));
    }
    let egress = at(object, "/spec/egress").is_some();
    let types = if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
    set(object, &["spec", "policyTypes"], &types);
}

fn namespace(object: &mut Value) {
    let Some(name) = at(object, "/metadata/name").cloned() else { return };
    set(object, &["metadata", "labels"], &json!({}));
    object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
}

#[cfg(test)]
mod tests;
