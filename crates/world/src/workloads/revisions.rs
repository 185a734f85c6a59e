//! The revisions of a workload that keeps them, and what its controller asks of its Pods.

use super::replica_sets::is_ready;
use super::{Due, MANAGER, condition, count, digest, ends, owner, text, time};
use crate::kube_api::World;
use chrono::TimeDelta;
use serde_json::{Value, json};
use std::sync::Arc;

/// The label of Pods that says of which revision they are.
pub(super) const HASH: &str = "controller-revision-hash";

/// The revision of the template, whose hash it carries as that label: a known one becomes the newest again.
pub(super) fn newest(world: &mut World, set: &Value, label: &str, known: &[Arc<Value>]) -> Option<Arc<Value>> {
    let template = &set["spec"]["template"];
    let next = known.last().map_or(1, |last| count(&last["revision"], 0) + 1);
    let equal = known.iter().rev().find(|one| one["data"]["spec"]["template"] == *template);
    match equal {
        Some(equal) if count(&equal["revision"], 0) + 1 == next => Some(Arc::clone(equal)),
        Some(equal) => {
            let mut again = equal.as_ref().clone();
            again["revision"] = next.into();
            world.update(again, "", MANAGER).ok()
        }
        None => {
            let hash = digest(template);
            let mut labels = template["metadata"]["labels"].clone();
            labels[label] = hash.as_str().into();
            let metadata = json!({
                "name": format!("{}-{hash}", text(set, "/metadata/name")), "namespace": set["metadata"]["namespace"],
                "labels": labels, "ownerReferences": owner(set),
            });
            let revision = json!({"metadata": metadata, "data": {"spec": {"template": template}}, "revision": next});
            world.create("apps/v1", "ControllerRevision", MANAGER, revision).ok()
        }
    }
}

/// The revision of a Pod.
pub(super) fn revision(pod: &Value) -> &str {
    pod["metadata"]["labels"][HASH].as_str().unwrap_or_default()
}

/// Whether a Pod of that workload has been ready for as long as it asks for.
pub(super) fn is_available(world: &World, set: &Value, pod: &Value, due: &mut Due) -> bool {
    let wait = TimeDelta::seconds(count(&set["spec"]["minReadySeconds"], 0));
    let since = condition(pod, "Ready").filter(|_| is_ready(pod) && !ends(pod));
    let Some(from) = since.and_then(|ready| time(&ready["lastTransitionTime"])).map(|since| since + wait) else {
        return false;
    };
    if from > world.now() {
        due.at(from);
    }
    from <= world.now()
}
