//! Field managers of others whose fields become ours: those of a person's client-side tools, and what Flagger has left.

use crate::manifest::object::Object;
use serde_json::Value;

/// Field managers that stand for a person's client-side tool: taking an object over makes their fields ours. Controllers
/// are never taken over.
pub const CLIENT_SIDE: [&str; 6] = [
    "kubectl-client-side-apply",
    "kubectl-create",
    "kubectl-edit",
    "kubectl-replace",
    "kubectl",
    // What the API server calls everything that was there before managed fields were.
    "before-first-apply",
];

/// The field manager of Flagger. What is its Canary's is not taken over (`plan::adopt`); what it has left behind is,
/// field by field as we write it, and what it wrote beside that stays.
pub const FLAGGER: &str = "flagger";

/// Whether client-side apply still owns fields of an object.
#[must_use]
pub fn client_side_managed(live: &Object) -> bool {
    let entries = live.at("/metadata/managedFields").and_then(Value::as_array);
    entries.into_iter().flatten().any(is_client_side)
}

/// Whether an entry of an object's managed fields is taken over: what a person's tool wrote to the object itself. What it applied at the
/// server it gives up by itself, and what it wrote to the scale, as `kubectl scale` does, is whoever's that scales next.
#[must_use]
pub fn is_client_side(entry: &Value) -> bool {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
    CLIENT_SIDE.contains(&text("manager")) && text("operation") == "Update" && text("subresource").is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::object::Kind;
    use crate::workload::fixtures::object;
    use serde_json::json;

    #[test]
    fn c_17_only_what_a_tool_wrote_to_the_object_itself_is_taken_over() {
        let entry = |manager: &str, operation: &str| json!({"manager": manager, "operation": operation});
        let mut scale = entry("kubectl", "Update");
        scale["subresource"] = "scale".into();
        let left = [scale, entry("kubectl", "Apply"), entry("kube-controller-manager", "Update"), json!("nonsense")];
        let live = |entries: &[Value]| object(Kind::ConfigMap, "web", json!({"metadata": {"managedFields": entries}}));
        assert!(
            !client_side_managed(&live(&left)),
            "a plan would ask for it again and again, and nothing would come of it"
        );
        assert!(client_side_managed(&live(&[&left[..], &[entry(CLIENT_SIDE[0], "Update")]].concat())));
    }
}
