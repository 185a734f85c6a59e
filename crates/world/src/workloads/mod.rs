//! What plays kube-controller-manager, the scheduler, kubelets, KEDA and a gateway in the world in a process. Pure.
//!
//! Controllers do nothing by themselves: [`Controllers::settle`] lets them do all that is due now, [`Controllers::pass`] lets
//! time pass with them.
//! They write as the real ones do, through the API, so that ownership, versions and events are as in a real cluster.
//!
//! A Pod's annotations, or the tag of its image, choose its fate; see [`pods`].

pub mod agents;
mod contour;
mod daemon_sets;
mod deployments;
mod endpoints;
mod gateway;
mod gloo_status_stub;
mod jobs;
mod keda;
mod pods;
mod replica_sets;
mod revisions;
mod scalers;
mod stateful_sets;

#[cfg(test)]
mod tests;

use super::kube_api::World;
use super::kube_api::resource::Resource;
use chrono::{SecondsFormat, TimeDelta};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use tidegate_controller::manifest::object::at;
use tidegate_controller::record::state::Time;

/// The name under which controllers write.
const MANAGER: &str = "kube-controller-manager";
/// More rounds than any chain of controllers takes: beyond that two of them undo each other's work.
const ROUNDS: usize = 1_000;

/// When something is due next.
#[derive(Debug, Default, Clone, Copy)]
struct Due(Option<Time>);

impl Due {
    /// Something is due at that time.
    fn at(&mut self, time: Time) {
        self.0 = Some(self.0.map_or(time, |before| before.min(time)));
    }
}

/// Who runs a controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    /// kube-controller-manager.
    Manager,
    /// Somebody else: the scheduler and kubelets, KEDA, a gateway.
    Other,
}

/// What a controller does when it looks at the world, by whom, and the kinds that it looks at.
type Controller = (By, fn(&mut World, &mut Due), &'static [(&'static str, &'static str)]);

const DEPLOYMENT: (&str, &str) = ("apps/v1", "Deployment");
const REPLICA_SET: (&str, &str) = ("apps/v1", "ReplicaSet");
const POD: (&str, &str) = ("v1", "Pod");
const SERVICE: (&str, &str) = ("v1", "Service");
const SLICE: (&str, &str) = ("discovery.k8s.io/v1", "EndpointSlice");
const STATEFUL_SET: (&str, &str) = ("apps/v1", "StatefulSet");
const DAEMON_SET: (&str, &str) = ("apps/v1", "DaemonSet");
const NAMESPACE: (&str, &str) = ("v1", "Namespace");
const NODE: (&str, &str) = ("v1", "Node");
const REVISION: (&str, &str) = ("apps/v1", "ControllerRevision");
const SCALER: (&str, &str) = ("autoscaling/v2", "HorizontalPodAutoscaler");
const JOB: (&str, &str) = ("batch/v1", "Job");
const SCALED: (&str, &str) = ("keda.sh/v1alpha1", "ScaledObject");

const CONFIG: (&str, &str) = ("tidegate.io/v1alpha1", "NodeConfig");
const CONFIG_MAP: (&str, &str) = ("v1", "ConfigMap");

const CONTROLLERS: [Controller; 13] = [
    (By::Other, keda::run, &[SCALED, SCALER, DEPLOYMENT]),
    (By::Manager, scalers::run, &[SCALER, DEPLOYMENT, REPLICA_SET, STATEFUL_SET]),
    (By::Manager, deployments::run, &[DEPLOYMENT, REPLICA_SET]),
    (By::Manager, replica_sets::run, &[REPLICA_SET, POD]),
    (By::Manager, stateful_sets::run, &[STATEFUL_SET, REVISION, POD]),
    (By::Manager, daemon_sets::run, &[DAEMON_SET, REVISION, POD, NODE]),
    (By::Other, pods::run, &[POD, NODE]),
    (By::Other, agents::run, &[CONFIG, CONFIG_MAP, NODE]),
    (By::Manager, jobs::run, &[JOB]),
    (By::Manager, endpoints::run, &[SERVICE, POD, SLICE]),
    (By::Other, gateway::run, &[gateway::ROUTES[0], gateway::ROUTES[1], SERVICE, NAMESPACE]),
    (By::Other, contour::run, &[contour::PROXY, SERVICE, NAMESPACE]),
    (By::Other, gloo_status_stub::run, &[gloo_status_stub::TABLE, gloo_status_stub::UPSTREAM, SERVICE, NAMESPACE]),
];

/// All controllers. Each looks again once something changed that it looks at, or is due.
#[derive(Debug, Default)]
pub struct Controllers {
    /// The version at which each looked last, and what is due for it since.
    looked: [Option<(u64, Due)>; CONTROLLERS.len()],
    /// Whether kube-controller-manager stands still.
    pub away: bool,
}

impl Controllers {
    /// Lets them do what is due, until nothing is left to do; returns when something is due next.
    ///
    /// # Panics
    /// When they come to no end, which is an error in one of them.
    pub fn settle(&mut self, world: &mut World) -> Option<Time> {
        for _ in 0..ROUNDS {
            let before = world.version();
            for ((by, run, kinds), looked) in CONTROLLERS.iter().zip(&mut self.looked) {
                if self.away && *by == By::Manager {
                    continue;
                }
                let idle = looked.is_some_and(|(version, due)| {
                    due.0.is_none_or(|due| due > world.now()) && kinds.iter().all(|kind| is_still(world, kind, version))
                });
                if !idle {
                    let (version, mut due) = (world.version(), Due::default());
                    run(world, &mut due);
                    *looked = Some((version, due));
                }
            }
            if !self.away {
                world.collect_garbage();
            }
            if world.version() == before {
                // What is due for who stands still is not waited for.
                let present = CONTROLLERS.iter().zip(&self.looked);
                let present = present.filter(|((by, ..), _)| !self.away || *by == By::Other);
                return present.filter_map(|(_, looked)| looked.as_ref()?.1.0).min();
            }
        }
        panic!("controllers of the world undo each other's work since {}", world.now());
    }

    /// Lets time pass, with all that they do meanwhile, each thing at its time; returns when something is due next.
    pub fn pass(&mut self, world: &mut World, time: TimeDelta) -> Option<Time> {
        let end = world.now() + time;
        loop {
            let due = self.settle(world);
            match due.filter(|due| *due <= end) {
                Some(due) => world.pass((due - world.now()).max(TimeDelta::milliseconds(1))),
                None => {
                    // Nothing is due on the way there.
                    world.pass(end - world.now());
                    return due;
                }
            }
        }
    }
}

fn is_still(world: &World, (api_version, kind): &(&str, &str), version: u64) -> bool {
    Resource::of_kind(api_version, kind).is_none_or(|found| world.is_still(found, version))
}

/// [`Controllers::settle`] of controllers that have not looked yet.
pub fn settle(world: &mut World) -> Option<Time> {
    Controllers::default().settle(world)
}

/// [`Controllers::pass`] of controllers that have not looked yet.
pub fn pass(world: &mut World, time: TimeDelta) -> Option<Time> {
    Controllers::default().pass(world, time)
}

/// All objects of a kind, as they are now.
fn all(world: &World, api_version: &str, kind: &str) -> Vec<Arc<Value>> {
    Resource::of_kind(api_version, kind).map_or_else(Vec::new, |found| world.list(found, "").cloned().collect())
}

/// Objects, by what controls them.
struct Controlled(HashMap<String, Vec<Arc<Value>>>);

impl Controlled {
    /// All of a kind, as they are now.
    fn all(world: &World, api_version: &str, kind: &str) -> Self {
        let mut by_owner: HashMap<String, Vec<_>> = HashMap::new();
        for object in all(world, api_version, kind) {
            let owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
            let uid = owners.filter(|owner| owner["controller"] == true).find_map(|owner| owner["uid"].as_str());
            if let Some(uid) = uid.map(str::to_owned) {
                by_owner.entry(uid).or_default().push(object);
            }
        }
        Self(by_owner)
    }

    /// Those that this one controls.
    fn by(&self, owner: &Value) -> &[Arc<Value>] {
        self.0.get(text(owner, "/metadata/uid")).map_or(&[], Vec::as_slice)
    }
}

/// The reference by which a controller owns what it makes.
fn owner(object: &Value) -> Value {
    json!([{
        "apiVersion": object["apiVersion"], "kind": object["kind"], "name": object["metadata"]["name"],
        "uid": object["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
    }])
}

fn ends(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

fn count(value: &Value, or: i64) -> i64 {
    value.as_i64().unwrap_or(or)
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    at(object, pointer).and_then(Value::as_str).unwrap_or_default()
}

fn time(value: &Value) -> Option<Time> {
    value.as_str()?.parse().ok()
}

fn stamp(world: &World) -> Value {
    world.now().to_rfc3339_opts(SecondsFormat::Secs, true).into()
}

/// A condition of an object's status.
fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}

/// Writes the status of an object, if it differs. What others changed meanwhile comes with the next round.
fn write_status(world: &mut World, object: &Value, status: Value, manager: &str) {
    if object["status"] == status {
        return;
    }
    let mut next = object.clone();
    next["status"] = status;
    drop(world.update(next, "status", manager));
}

/// A short text that differs where the value does, of signs that may stand in names.
fn digest(value: &Value) -> String {
    const SIGNS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    // FNV-1a over the text: it only has to tell templates apart, and to stay the same.
    let hash = value
        .to_string()
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let place = |n: u32| usize::try_from(hash / 27_u64.pow(n) % 27).unwrap_or_default();
    (0..9).map(|n| char::from(SIGNS[place(n)])).collect()
}
