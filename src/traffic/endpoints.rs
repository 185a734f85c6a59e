//! Whether a Service's endpoints have followed its selector and the pods behind it.

use super::{Standing, View, candidate, replicas, service as selector, stable};
use crate::manifest::ids::ObjectName;
use crate::manifest::object::{Kind, Object, items};
use crate::target::layout::pod_labels;
use crate::target::selector::serves;
use serde_json::Value;
use std::collections::BTreeSet;

/// Effective once the Service has the endpoints of the ready pods that it asks for, as of statuses that have seen the
/// present generation (requirements C-33, X-15): where it asks for the candidate's alone, exactly these.
pub(super) fn standing(view: &View<'_>, service: &ObjectName) -> Standing {
    let not_yet = |why: String| Standing::NotYet { why };
    let Some(live) = view.live.find(Kind::Service, view.namespace, service) else {
        return not_yet(format!("Service {service} is not there"));
    };
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
        expected += deployment.int(count).and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
    }
    let found = endpoints(view, service);
    let only_candidate = replicas::asked_pods(live).is_some() || selector::leads_to_candidate(live, view);
    let followed = if only_candidate { found == expected } else { found >= expected };
    if expected == 0 {
        not_yet(format!("Service {service} has no ready pods"))
    } else if followed {
        Standing::Effective
    } else {
        not_yet(format!("Service {service} has {found} endpoints, while {expected} pods are ready for it"))
    }
}

/// How many pods the Service leads to. A pod has an endpoint in a slice for each of its address families.
fn endpoints(view: &View<'_>, service: &ObjectName) -> usize {
    let slices = view.live.objects.slices_of(service.as_str());
    let slices = slices.filter(|slice| slice.reference().namespace == *view.namespace);
    let endpoints = slices.flat_map(|slice| items(slice.value(), "endpoints"));
    let ready = endpoints.filter(|endpoint| endpoint["conditions"]["ready"] != false);
    let names = ready.map(|e| e.pointer("/targetRef/name").or_else(|| e.pointer("/addresses/0")).map(Value::to_string));
    names.collect::<BTreeSet<_>>().len()
}
