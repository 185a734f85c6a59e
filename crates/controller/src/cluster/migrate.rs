//! Takes over objects that were made by client-side apply, as `kubectl apply --server-side` does
//! (client-go, `util/csaupgrade`): what the old manager owned by update, ours owns by apply. Pure.
//!
//! Without this a field that Git stops declaring would stay for ever, since its old owner never gives it up.

use crate::workload::managers::is_client_side;
use crate::workload::owned::union;
use serde_json::{Value, json};

/// The managed fields of an object once `manager` has taken over; `None` if there is nothing to take.
pub(super) fn migrated(managed: &[Value], manager: &str) -> Option<Vec<Value>> {
    let ours = |entry: &Value| text(entry, "manager") == manager && text(entry, "operation") == "Apply" && whole(entry);
    let first = managed.iter().find(|entry| is_client_side(entry))?;
    let mut target = managed.iter().find(|entry| ours(entry)).unwrap_or(first).clone();
    target["manager"] = manager.into();
    target["operation"] = "Apply".into();
    // Fields of another version of the API could not be read with this one's schema; they are left without an owner.
    let api_version = target["apiVersion"].clone();
    for entry in managed.iter().filter(|entry| is_client_side(entry) && entry["apiVersion"] == api_version) {
        target["fieldsV1"] = union(&target["fieldsV1"], &entry["fieldsV1"]);
    }
    let others = managed.iter().filter(|entry| !is_client_side(entry) && !ours(entry)).cloned();
    Some(std::iter::once(target).chain(others).collect())
}

/// The patch that writes them. Replacing the resourceVersion by the one that was read makes the API server answer 409
/// if the object has moved on.
pub(super) fn patch(managed: &[Value], resource_version: &str) -> Value {
    json!([
        {"op": "replace", "path": "/metadata/managedFields", "value": managed},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": resource_version},
    ])
}

fn text<'a>(entry: &'a Value, key: &str) -> &'a str {
    entry.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Whether it is about the object itself, not about its status or scale.
fn whole(entry: &Value) -> bool {
    text(entry, "subresource").is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(manager: &str, operation: &str, api: &str, fields: &Value) -> Value {
        json!({"manager": manager, "operation": operation, "apiVersion": api, "fieldsV1": fields})
    }

    #[test]
    fn client_side_managers_become_ours_and_others_stay() {
        let mut status = entry("kubectl", "Update", "apps/v1", &json!({"f:status": {}}));
        status["subresource"] = "status".into();
        let controller = entry("kube-controller-manager", "Update", "apps/v1", &json!({"f:spec": {"f:paused": {}}}));
        let managed = [
            entry("kubectl-client-side-apply", "Update", "apps/v1", &json!({"f:spec": {"f:replicas": {}}})),
            controller.clone(),
            entry("kubectl-edit", "Update", "apps/v1", &json!({"f:spec": {"f:replicas": {}, "f:paused": {}}})),
            entry("kubectl-create", "Update", "apps/v1beta1", &json!({"f:spec": {"f:old": {}}})),
            status.clone(),
        ];
        let ours = entry("tidegate-a", "Apply", "apps/v1", &json!({"f:spec": {"f:replicas": {}, "f:paused": {}}}));
        assert_eq!(migrated(&managed, "tidegate-a"), Some(vec![ours, controller, status]));
    }

    #[test]
    fn what_is_ours_already_is_kept_and_joined() {
        let managed = [
            entry("kubectl", "Update", "v1", &json!({"f:data": {"f:b": {}}})),
            entry("tidegate-a", "Apply", "v1", &json!({"f:data": {"f:a": {}}})),
        ];
        let ours = entry("tidegate-a", "Apply", "v1", &json!({"f:data": {"f:a": {}, "f:b": {}}}));
        assert_eq!(migrated(&managed, "tidegate-a"), Some(vec![ours.clone()]));
        assert_eq!(migrated(&[ours], "tidegate-a"), None);
    }

    #[test]
    fn nothing_is_taken_from_controllers_or_from_an_apply_or_a_scale() {
        let mut scale = entry("kubectl", "Update", "apps/v1", &json!({"f:spec": {"f:replicas": {}}}));
        scale["subresource"] = "scale".into();
        let managed = [
            scale,
            entry("kubectl", "Apply", "v1", &json!({"f:data": {}})),
            entry("helm", "Update", "v1", &json!({"f:data": {}})),
            json!("nonsense"),
        ];
        assert_eq!(migrated(&managed, "tidegate-a"), None);
    }
}
