//! Whether a Service's endpoints have followed its selector and the pods behind it.

use super::{RouteStatus, RouteView, candidate, replicas, service as selector, stable};
use crate::manifest::object::Object;
use crate::workload::layouts::pod_labels;
use crate::workload::readiness;
use crate::workload::selector::serves;
use serde_json::Value;

/// Effective once the Service has the endpoints of the ready pods that it asks for, as of statuses that have seen the
/// present generation (requirements C-33, X-15): where it asks for the candidate's alone, exactly these.
pub(super) fn status(live: &Object, view: &RouteView<'_>) -> RouteStatus {
    let not_yet = |why: String| RouteStatus::NotYet { why };
    let service = &live.reference().name;
    // From *promote* on stable's pods may be of the candidate's version, and be asked for too.
    let served = |deployment: &&Object| serves(live.at("/spec/selector"), &pod_labels(deployment));
    let mut expected = 0;
    for deployment in stable(view).into_iter().chain(candidate(view)).filter(served) {
        let seen = deployment.int("/status/observedGeneration");
        if seen.is_none() || seen != deployment.generation() {
            return not_yet(format!("the status of {} is older than its spec", deployment.reference()));
        }
        let unready_too = live.at("/spec/publishNotReadyAddresses") == Some(&Value::Bool(true));
        let count = if unready_too { "/status/replicas" } else { "/status/readyReplicas" };
        expected += deployment.int(count).and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
    }
    let found = readiness::ready_endpoints(view.live, view.namespace, service);
    let only_candidate = replicas::asked_pods(live).is_some() || selector::leads_to_candidate(live, view);
    let followed = if only_candidate { found == expected } else { found >= expected };
    if expected == 0 {
        not_yet(format!("Service {service} has no ready pods"))
    } else if followed {
        RouteStatus::Effective
    } else {
        not_yet(format!("Service {service} has {found} endpoints, while {expected} pods are ready for it"))
    }
}
