//! What is kept of an object that was read: enough to plan with, bounded, and nothing that is not ours to show. Pure.

use crate::manifest::object::{Kind, Object};
use serde_json::{Map, Value};

/// Holds a copy of the whole object, of Secrets' bytes too where somebody applied them: never kept.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// An annotation beyond this is dropped: the API server itself takes at most 256 KiB of all of them together.
const ANNOTATION_LIMIT: usize = 64 << 10;
/// What another manager owns is not kept beyond this; its name is.
const FOREIGN_FIELDS_LIMIT: usize = 64 << 10;

/// Strips an object of what no plan needs: managed fields of kinds that are never written, large foreign ones and
/// those of a status, `last-applied-configuration`, absurd annotations, and of Pods and Jobs all but what tells how they fare.
///
/// Managed fields of kinds that are written stay: what we own is found there (see [`crate::workload::owned`]).
pub(super) fn trim(object: &mut Object, manager: &str) {
    let kind = object.reference().kind;
    let value = object.value_mut();
    if let Some(annotations) = value.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations
            .retain(|key, value| key != LAST_APPLIED && value.as_str().is_some_and(|v| v.len() <= ANNOTATION_LIMIT));
    }
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        if kind.is_of_sets() || kind == Kind::NodeConfig {
            trim_managed_fields(metadata, manager);
        } else {
            metadata.remove("managedFields");
        }
    }
    if kind == Kind::Pod {
        trim_pod(value);
    }
    if kind == Kind::Node {
        trim_node(value);
    }
    // Most Jobs of a namespace stand before no step.
    if let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut).filter(|_| kind == Kind::Job) {
        spec.retain(|key, _| key == "activeDeadlineSeconds");
    }
}

fn trim_managed_fields(metadata: &mut Map<String, Value>, manager: &str) {
    let Some(entries) = metadata.get_mut("managedFields").and_then(Value::as_array_mut) else { return };
    for entry in entries.iter_mut().filter_map(Value::as_object_mut) {
        let is = |key, wanted| entry.get(key).and_then(Value::as_str) == Some(wanted);
        let large = || entry.get("fieldsV1").is_some_and(|fields| fields.to_string().len() > FOREIGN_FIELDS_LIMIT);
        if is("subresource", "status") || (!is("manager", manager) && large()) {
            entry.remove("fieldsV1");
        }
    }
}

/// Keeps who a Node is and whether it is ready, so that its signs of life change nothing.
fn trim_node(value: &mut Value) {
    let Some(node) = value.as_object_mut() else { return };
    node.remove("spec");
    if let Some(metadata) = node.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|key, _| matches!(key.as_str(), "name" | "uid" | "labels" | "creationTimestamp"));
    }
    let Some(status) = node.get_mut("status").and_then(Value::as_object_mut) else { return };
    status.retain(|key, _| key == "conditions");
    let Some(conditions) = status.get_mut("conditions").and_then(Value::as_array_mut) else { return };
    conditions.retain(|condition| condition["type"] == "Ready");
    for ready in conditions.iter_mut().filter_map(Value::as_object_mut) {
        ready.retain(|key, _| matches!(key.as_str(), "type" | "status" | "lastTransitionTime"));
    }
}

/// Keeps where a Pod runs and how it is.
fn trim_pod(value: &mut Value) {
    let Some(pod) = value.as_object_mut() else { return };
    if let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) {
        spec.retain(|key, _| key == "nodeName");
    }
    let Some(status) = pod.get_mut("status").and_then(Value::as_object_mut) else { return };
    status.retain(|key, _| {
        matches!(
            key.as_str(),
            "phase" | "reason" | "message" | "podIP" | "startTime" | "conditions" | "containerStatuses"
        )
    });
    if let Some(containers) = status.get_mut("containerStatuses").and_then(Value::as_array_mut) {
        for container in containers.iter_mut().filter_map(Value::as_object_mut) {
            container
                .retain(|key, _| matches!(key.as_str(), "name" | "ready" | "restartCount" | "state" | "lastState"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::object;
    use super::*;
    use serde_json::json;

    fn trimmed(kind: Kind, value: Value) -> Object {
        let mut object = object(kind, value);
        trim(&mut object, "tidegate-a");
        object
    }

    #[test]
    fn attack_51_managed_fields_stay_where_we_write_and_only_as_far_as_they_help() {
        let huge: Map<String, Value> = (0..10_000).map(|n| (format!("f:{n}"), json!({}))).collect();
        let managed = json!([
            {"manager": "tidegate-a", "operation": "Apply", "fieldsV1": huge},
            {"manager": "mad", "operation": "Update", "fieldsV1": huge},
            {"manager": "hand", "operation": "Update", "fieldsV1": {"f:spec": {}}},
            {"manager": "kubelet", "subresource": "status", "fieldsV1": {"f:status": {}}},
            "nonsense",
        ]);
        let metadata = json!({"metadata": {"managedFields": managed}});
        let kept = trimmed(Kind::Deployment, metadata.clone());
        let has = |place: usize| kept.at(&format!("/metadata/managedFields/{place}/fieldsV1")).is_some();
        assert_eq!([has(0), has(1), has(2), has(3)], [true, false, true, false]);
        assert_eq!(kept.text("/metadata/managedFields/1/manager"), Some("mad"));
        assert_eq!(trimmed(Kind::Pod, metadata).at("/metadata/managedFields"), None);
    }

    #[test]
    fn attack_51_57_copies_and_absurd_annotations_go() {
        let absurd = "x".repeat(1 << 20);
        let kept = trimmed(
            Kind::ConfigMap,
            json!({"metadata": {"annotations": {"a": "1", "absurd": absurd, "wrong": 7, LAST_APPLIED: "{}"}}}),
        );
        assert_eq!(kept.at("/metadata/annotations"), Some(&json!({"a": "1"})));
    }

    #[test]
    fn jobs_keep_how_they_fare() {
        let conditions = json!([{"type": "Complete", "status": "True"}]);
        let spec = json!({"activeDeadlineSeconds": 60, "template": {"spec": {}}});
        let kept = trimmed(Kind::Job, json!({"spec": spec, "status": {"conditions": conditions}}));
        assert_eq!(kept.at("/spec"), Some(&json!({"activeDeadlineSeconds": 60})));
        assert_eq!(kept.at("/status/conditions"), Some(&conditions));
    }

    #[test]
    fn pods_keep_what_tells_their_health() {
        let kept = trimmed(
            Kind::Pod,
            json!({
                "metadata": {"uid": "u",
                             "labels": {"app": "a"}, "deletionTimestamp": "t"},
                "spec": {"nodeName": "n", "containers": [{"env": [{"name": "TOKEN", "value": "x"}]}]},
                "status": {
                    "phase": "Running", "qosClass": "Burstable", "hostIP": "h",
                    "conditions": [{"type": "Ready", "status": "False"}],
                    "containerStatuses": [{"name": "c", "ready": false, "imageID": "i", "restartCount": 3,
                                           "state": {"waiting": {"reason": "CrashLoopBackOff"}}}],
                },
            }),
        );
        assert_eq!(
            kept.value(),
            &json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": "podinfo", "namespace": "shop", "uid": "u",
                             "labels": {"app": "a"}, "deletionTimestamp": "t"},
                "spec": {"nodeName": "n"},
                "status": {
                    "phase": "Running", "conditions": [{"type": "Ready", "status": "False"}],
                    "containerStatuses": [{"name": "c", "ready": false, "restartCount": 3,
                                           "state": {"waiting": {"reason": "CrashLoopBackOff"}}}],
                },
            })
        );
    }

    #[test]
    fn attack_52_nonsense_is_data() {
        for value in
            [json!({"metadata": {"annotations": "x", "managedFields": {}}, "spec": 1, "status": []}), json!({})]
        {
            trimmed(Kind::Pod, value.clone());
            trimmed(Kind::Service, value);
        }
    }
}
