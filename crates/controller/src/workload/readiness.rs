//! Whether what is rolled out is ready: fresh status only (requirements C-33, X-15).

use crate::manifest::ids::{Namespace, ObjectName};
use crate::manifest::object::{Kind, Object, at, items};
use crate::record::state::Time;
use crate::workload::kinds::{service, shared};
use crate::workload::live::LiveState;
use crate::workload::selector::serves;
use serde_json::Value;
use std::collections::BTreeSet;

/// Whether a workload has its size in ready pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// All pods are of the current template and available.
    Ready,
    /// Not yet, or not any more.
    NotReady {
        /// What is missing, with what a pod says about it if one does.
        why: String,
        /// Whether it is available at least.
        available: Available,
    },
}

/// What a workload says of its being available, which it may be before it is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Available {
    /// Not since then.
    NotSince(Time),
    /// That it is, or nothing; it was made, or written last, then.
    Perhaps(Option<Time>),
    /// What it says is of an older spec: its controller has not seen the new one yet, which is no evidence of anything.
    Unseen,
}

impl Readiness {
    /// Whether it is ready.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        *self == Self::Ready
    }
}

/// Judges a live target.
#[must_use]
pub fn readiness(target: &Object, live: &LiveState) -> Readiness {
    let kind = target.reference().kind;
    if kind == Kind::Service {
        return service::readiness(target, live);
    }
    let judged = if shared::KINDS.contains(&kind) { shared::readiness(target, live) } else { rolled(target) };
    let Readiness::NotReady { why, available } = judged else { return judged };
    let hint = pod_trouble(target, live).filter(|_| available != Available::Unseen);
    let hint = hint.map(|trouble| format!("; {trouble}")).unwrap_or_default();
    Readiness::NotReady { why: format!("{why}{hint}"), available }
}

fn rolled(deployment: &Object) -> Readiness {
    let status = |field: &str| deployment.int(&format!("/status/{field}")).unwrap_or(0);
    let wanted = deployment.int("/spec/replicas").unwrap_or(1);
    let available = available(deployment);
    if available == Available::Unseen {
        return Readiness::NotReady { why: "its controller has not seen it yet".to_owned(), available };
    }
    let why = if status("updatedReplicas") < wanted {
        format!("{} of {wanted} pods are of the new template", status("updatedReplicas"))
    } else if status("replicas") > status("updatedReplicas") {
        format!("{} old pods are still there", status("replicas") - status("updatedReplicas"))
    } else if status("availableReplicas") < wanted {
        format!("{} of {wanted} pods are ready", status("availableReplicas"))
    } else {
        return Readiness::Ready;
    };
    Readiness::NotReady { why, available }
}

/// What a live Deployment says of its being available.
#[must_use]
pub fn available(deployment: &Object) -> Available {
    if deployment.int("/status/observedGeneration").unwrap_or(0) < deployment.generation().unwrap_or(0) {
        return Available::Unseen;
    }
    let conditions = deployment.at("/status/conditions").and_then(Value::as_array);
    let condition = conditions.into_iter().flatten().find(|c| c["type"] == "Available");
    let lost =
        condition.filter(|c| c["status"] == "False").and_then(|c| c["lastTransitionTime"].as_str()?.parse().ok());
    lost.map_or_else(|| Available::Perhaps(written(deployment)), Available::NotSince)
}

/// When a Deployment or a Service was written last, other than through a subresource; when it was made, where nothing else is told.
/// It is made without pods, and promoted once that is recorded: both may take as long as Git is late, and that is no time that it had
/// to become ready in.
pub(super) fn written(object: &Object) -> Option<Time> {
    let entries = object.at("/metadata/managedFields").and_then(Value::as_array).into_iter().flatten();
    let whole = entries.filter(|entry| entry["subresource"].is_null());
    let times = whole.filter_map(|entry| entry["time"].as_str()?.parse().ok());
    times.chain(made(object)).max()
}

/// When an object was made.
pub(super) fn made(object: &Object) -> Option<Time> {
    object.at("/metadata/creationTimestamp").and_then(|time| time.as_str()?.parse().ok())
}

/// The pods that a workload selects, its namespace's.
pub fn pods<'a>(workload: &'a Object, live: &'a LiveState) -> impl Iterator<Item = &'a Object> {
    let labels = workload.at("/spec/selector/matchLabels").and_then(Value::as_object);
    let matches = move |pod: &&Object| {
        labels.is_some_and(|labels| labels.iter().all(|(key, value)| pod.label(key) == value.as_str()))
    };
    let same_namespace = |pod: &&Object| pod.reference().namespace == workload.reference().namespace;
    live.of_kind(Kind::Pod).filter(same_namespace).filter(matches)
}

/// What keeps a pod of the workload from starting, in its own words.
#[must_use]
pub fn pod_trouble(deployment: &Object, live: &LiveState) -> Option<String> {
    pods(deployment, live).find_map(|pod| {
        let statuses = ["/status/initContainerStatuses", "/status/containerStatuses"];
        statuses.iter().filter_map(|p| pod.at(p)?.as_array()).flatten().find_map(|container| {
            let waiting = at(container, "/state/waiting")?;
            let text = |field: &str| waiting.get(field).and_then(Value::as_str).unwrap_or_default();
            let reason = text("reason");
            if matches!(reason, "" | "ContainerCreating" | "PodInitializing") {
                return None;
            }
            let message = text("message").chars().take(200).collect::<String>();
            Some(format!("pod {}: {reason} {message}", pod.reference().name).trim_end().to_owned())
        })
    })
}

/// A pod that a Service still leads to although its selector does not ask for it any more: the endpoints follow a moment
/// later. Pods that are not known count for nothing.
#[must_use]
pub fn lagging(live: &LiveState, namespace: &Namespace, service: &ObjectName) -> Option<ObjectName> {
    let selector = live.find(Kind::Service, namespace, service)?.at("/spec/selector");
    let ready = ready(live, namespace, service);
    let mut pods = ready.filter_map(|endpoint| at(endpoint, "/targetRef/name")?.as_str()?.parse::<ObjectName>().ok());
    pods.find(|pod| {
        let labels = live.find(Kind::Pod, namespace, pod).and_then(|pod| pod.at("/metadata/labels")?.as_object());
        labels.is_some_and(|labels| !serves(selector, labels))
    })
}

/// How many pods, or else addresses, a Service leads to that are ready. A pod has an endpoint in a slice for each of its address
/// families. An alias counts as one: nobody in the cluster knows what is behind a name.
#[must_use]
pub fn ready_endpoints(live: &LiveState, namespace: &Namespace, service: &ObjectName) -> u32 {
    if live.find(Kind::Service, namespace, service).is_some_and(service::is_alias) {
        return 1;
    }
    let names = ready(live, namespace, service)
        .filter_map(|endpoint| at(endpoint, "/targetRef/name").or_else(|| at(endpoint, "/addresses/0"))?.as_str());
    shared::count(names.collect::<BTreeSet<_>>().into_iter())
}

/// The endpoints of a Service that are ready.
fn ready<'a>(live: &'a LiveState, namespace: &Namespace, service: &ObjectName) -> impl Iterator<Item = &'a Value> {
    let slices = live.objects.slices_of(service.as_str()).filter(|slice| slice.reference().namespace == *namespace);
    let endpoints = slices.flat_map(|slice| items(slice.value(), "endpoints"));
    endpoints.filter(|endpoint| endpoint["conditions"]["ready"] != false)
}
