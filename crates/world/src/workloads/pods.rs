//! The scheduler and the kubelets: Pods are placed, start, become ready, fail and end.
//!
//! Annotations choose a Pod's fate, as they do in the test bed; durations are written as `5s` or `2m`:
//!
//! | annotation | fate |
//! |---|---|
//! | `testbed/ready-after: 5s` | runs, and is ready, after that time; else at once |
//! | `testbed/fail-after: 20s` | is not ready any more that long after it became so, for good |
//! | `testbed/behaviour: stuck` | runs, and never becomes ready |
//! | `testbed/behaviour: crash` | crashes again and again |
//! | `testbed/behaviour: image` | its image cannot be pulled |
//! | `testbed/ends-after: 20s` | ends that long after it was told to, in the time that it has for it; else at once |
//!
//! Of a Node that is `Ready: Unknown` nobody hears any more: what runs there is said to be not ready, and does not go.
//!
//! An image whose tag ends in `-stuck`, `-crash` or `-image` does the same without an annotation.

use super::{Due, MANAGER, all, condition, count, ends, stamp, text, time, write_status};
use crate::kube_api::World;
use chrono::TimeDelta;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tidegate_controller::manifest::duration::Span;
use tidegate_controller::record::state::Time;

const SCHEDULER: &str = "kube-scheduler";
const KUBELET: &str = "kubelet";
/// How many nodes there seem to be.
pub(super) const NODES: u64 = 3;

/// What becomes of a Pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Ready,
    Stuck,
    Crash,
    Image,
}

pub(super) fn run(world: &mut World, due: &mut Due) {
    let lost = lost(world);
    for pod in all(world, "v1", "Pod") {
        if lost.contains(node(&pod)) {
            if let Some(status) = told(world, &pod, "False") {
                write_status(world, &pod, status, MANAGER);
            }
        } else if ends(&pod) {
            if has_ended(world, &pod, due) {
                drop(world.delete(&pod));
            }
        } else if text(&pod, "/spec/nodeName").is_empty() {
            place(world, &pod);
        } else if let Some(status) = status(world, &pod, due) {
            write_status(world, &pod, status, KUBELET);
        }
    }
}

/// The Nodes of which nobody hears any more.
fn lost(world: &World) -> BTreeSet<String> {
    let nodes = all(world, "v1", "Node");
    let lost = nodes.iter().filter(|node| condition(node, "Ready").is_some_and(|ready| ready["status"] == "Unknown"));
    lost.map(|node| text(node, "/metadata/name").to_owned()).collect()
}

/// The status of a Pod whose containers are ready, where it says something else of the Pod: as `MarkPodsNotReady` in
/// `pkg/controller/util/node` changes it when a node is lost, and a kubelet when it is heard of again.
fn told(world: &World, pod: &Value, ready: &str) -> Option<Value> {
    condition(pod, "ContainersReady").filter(|containers| containers["status"] == "True")?;
    let mut status = pod["status"].clone();
    let mut conditions = status["conditions"].as_array_mut()?.iter_mut();
    let other = conditions.find(|condition| condition["type"] == "Ready" && condition["status"] != ready)?;
    (other["status"], other["lastTransitionTime"]) = (ready.into(), stamp(world));
    Some(status)
}

/// Whether a Pod that was told to end has. A kubelet that has nothing to run has nothing to wait for.
fn has_ended(world: &World, pod: &Value, due: &mut Due) -> bool {
    let metadata = &pod["metadata"];
    let grace = TimeDelta::seconds(count(&metadata["deletionGracePeriodSeconds"], 0));
    let takes = span(pod, "testbed/ends-after").unwrap_or_default().min(grace);
    time(&metadata["deletionTimestamp"]).is_none_or(|end| is_due(world, end - grace + takes, due))
}

/// A number that no other Pod has.
fn number(pod: &Value) -> u64 {
    text(pod, "/metadata/uid").rsplit('-').next().and_then(|hex| u64::from_str_radix(hex, 16).ok()).unwrap_or(0)
}

/// The node that a Pod is on, or was made for.
pub(super) fn node(pod: &Value) -> &str {
    const MADE_FOR: &str = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0\
                            /matchFields/0/values/0";
    Some(text(pod, "/spec/nodeName")).filter(|node| !node.is_empty()).unwrap_or_else(|| text(pod, MADE_FOR))
}

fn place(world: &mut World, pod: &Value) {
    let mut placed = pod.clone();
    placed["spec"]["nodeName"] = Some(node(pod))
        .filter(|node| !node.is_empty())
        .map_or_else(|| format!("node-{}", number(pod) % NODES), str::to_owned)
        .into();
    let Ok(placed) = world.update(placed, "", SCHEDULER) else { return };
    let mut status = placed["status"].clone();
    status["conditions"] =
        json!([{"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": stamp(world)}]);
    write_status(world, &placed, status, SCHEDULER);
}

pub(super) fn fate(pod: &Value) -> Fate {
    let behaviour = pod["metadata"]["annotations"]["testbed/behaviour"].as_str();
    let images = pod["spec"]["containers"].as_array().into_iter().flatten();
    let tag = images.filter_map(|c| c["image"].as_str()?.rsplit_once('-')).map(|(_, word)| word);
    let named = |word: &str| match word {
        "stuck" => Some(Fate::Stuck),
        "crash" => Some(Fate::Crash),
        "image" => Some(Fate::Image),
        _ => None,
    };
    behaviour.into_iter().chain(tag).find_map(named).unwrap_or(Fate::Ready)
}

pub(super) fn span(pod: &Value, annotation: &str) -> Option<TimeDelta> {
    Some(pod["metadata"]["annotations"][annotation].as_str()?.parse::<Span>().ok()?.delta())
}

/// The status that a Pod has by now; none while it stays as it is.
fn status(world: &World, pod: &Value, due: &mut Due) -> Option<Value> {
    let fate = fate(pod);
    if text(pod, "/status/phase") == "Pending" {
        if fate == Fate::Image {
            let waits = pod["status"]["containerStatuses"].is_null();
            return waits.then(|| started(world, pod, fate));
        }
        let placed = condition(pod, "PodScheduled").and_then(|c| time(&c["lastTransitionTime"]))?;
        let ready = placed + span(pod, "testbed/ready-after").unwrap_or_default();
        return is_due(world, ready, due).then(|| started(world, pod, fate));
    }
    if let Some(status) = told(world, pod, "True") {
        return Some(status);
    }
    let ready = condition(pod, "Ready").filter(|ready| ready["status"] == "True")?;
    let fails = time(&ready["lastTransitionTime"])? + span(pod, "testbed/fail-after")?;
    is_due(world, fails, due).then(|| failed(world, pod))
}

pub(super) fn is_due(world: &World, time: Time, due: &mut Due) -> bool {
    if world.now() < time {
        due.at(time);
    }
    world.now() >= time
}

fn started(world: &World, pod: &Value, fate: Fate) -> Value {
    let now = stamp(world);
    let ready = fate == Fate::Ready;
    let number = number(pod) % 65_000;
    let container = |container: &Value| {
        let state = match fate {
            Fate::Ready | Fate::Stuck => json!({"running": {"startedAt": now}}),
            Fate::Crash => {
                json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off restarting failed container"}})
            }
            Fate::Image => json!({"waiting": {"reason": "ImagePullBackOff", "message": "back-off pulling image"}}),
        };
        json!({
            "name": container["name"], "image": container["image"],
            "imageID": if fate == Fate::Image { "".into() } else { container["image"].clone() },
            "ready": ready, "started": ready, "restartCount": if fate == Fate::Crash { 5 } else { 0 }, "state": state,
        })
    };
    let containers: Vec<_> = pod["spec"]["containers"].as_array().into_iter().flatten().map(container).collect();
    let mut status = pod["status"].clone();
    status["phase"] = if fate == Fate::Image { "Pending" } else { "Running" }.into();
    status["startTime"] = now.clone();
    status["hostIP"] = "10.254.0.1".into();
    if fate != Fate::Image {
        let address = format!("10.0.{}.{}", number / 256, number % 256);
        status["podIPs"] = json!([{"ip": address}]);
        status["podIP"] = address.into();
    }
    let mut conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    let word = if ready { "True" } else { "False" };
    for (kind, word) in [("Initialized", "True"), ("ContainersReady", word), ("Ready", word)] {
        conditions.push(with_reason(kind, word, &now));
    }
    status["conditions"] = conditions.into();
    status["containerStatuses"] = containers.into();
    status
}

fn failed(world: &World, pod: &Value) -> Value {
    let mut status = pod["status"].clone();
    let now = stamp(world);
    for condition in status["conditions"].as_array_mut().into_iter().flatten() {
        if let kind @ ("Ready" | "ContainersReady") = condition["type"].as_str().unwrap_or_default() {
            *condition = with_reason(kind, "False", &now);
        }
    }
    for container in status["containerStatuses"].as_array_mut().into_iter().flatten() {
        container["ready"] = false.into();
    }
    status
}

fn with_reason(kind: &str, status: &str, now: &Value) -> Value {
    let mut condition = json!({"type": kind, "status": status, "lastProbeTime": null, "lastTransitionTime": now});
    if status == "False" {
        condition["reason"] = "ContainersNotReady".into();
    }
    condition
}
