//! The controller of StatefulSets: numbered Pods, of two revisions while an update is held by its partition.
//!
//! As `updateStatefulSet` in `pkg/controller/statefulset` of Kubernetes 1.36 does it, one write for each look. A revision is kept
//! whole where the real one keeps a patch. Claims of volumes are nobody's here: Pods need none.

use super::replica_sets::is_ready;
use super::revisions::{HASH, is_available, newest, revision};
use super::{Controlled, Due, MANAGER, all, count, ends, owner, text, write_status};
use crate::kube_api::World;
use serde_json::{Value, json};
use std::sync::Arc;

/// A StatefulSet with what it controls.
struct Update<'a> {
    set: &'a Value,
    /// Its Pods by their place; those beyond its size, the highest first.
    replicas: Vec<Option<Arc<Value>>>,
    condemned: Vec<Arc<Value>>,
    /// The revision of the Pods below the partition, and that of its template.
    current: Arc<Value>,
    update: Arc<Value>,
}

pub(super) fn run(world: &mut World, due: &mut Due) {
    let pods = Controlled::all(world, "v1", "Pod");
    let revisions = Controlled::all(world, "apps/v1", "ControllerRevision");
    for set in all(world, "apps/v1", "StatefulSet") {
        let mut known = revisions.by(&set).to_vec();
        known.sort_by_key(|revision| count(&revision["revision"], 0));
        let Some(update) = newest(world, &set, "controller.kubernetes.io/hash", &known) else { continue };
        let current =
            known.into_iter().find(|one| text(one, "/metadata/name") == text(&set, "/status/currentRevision"));
        let current = current.unwrap_or_else(|| Arc::clone(&update));
        let (replicas, condemned) = placed(&set, pods.by(&set));
        let look = Update { set: &set, replicas, condemned, current, update };
        if !ends(&set) {
            look.reconcile(world, due);
        }
        look.report(world, due);
    }
}

fn first(set: &Value) -> i64 {
    count(&set["spec"]["ordinals"]["start"], 0)
}

fn size(set: &Value) -> i64 {
    count(&set["spec"]["replicas"], 1)
}

fn placed(set: &Value, pods: &[Arc<Value>]) -> (Vec<Option<Arc<Value>>>, Vec<Arc<Value>>) {
    let mut replicas = vec![None; usize::try_from(size(set)).unwrap_or(0)];
    let mut condemned = Vec::new();
    for pod in pods {
        let Some(ordinal) = ordinal(set, pod) else { continue };
        match usize::try_from(ordinal - first(set)).ok().and_then(|place| replicas.get_mut(place)) {
            Some(place) => *place = Some(Arc::clone(pod)),
            None => condemned.push(Arc::clone(pod)),
        }
    }
    condemned.sort_by_key(|pod| std::cmp::Reverse(ordinal(set, pod)));
    (replicas, condemned)
}

fn ordinal(set: &Value, pod: &Value) -> Option<i64> {
    text(pod, "/metadata/name").strip_prefix(&format!("{}-", text(set, "/metadata/name")))?.parse().ok()
}

impl Update<'_> {
    fn name(revision: &Value) -> &str {
        text(revision, "/metadata/name")
    }

    fn partition(&self) -> i64 {
        count(&self.set["spec"]["updateStrategy"]["rollingUpdate"]["partition"], 0)
    }

    fn reconcile(&self, world: &mut World, due: &mut Due) {
        let ordered = self.set["spec"]["podManagementPolicy"] != "Parallel";
        let mut waits = false;
        for (place, pod) in self.replicas.iter().enumerate() {
            match pod {
                None => {
                    self.make(world, i64::try_from(place).unwrap_or(0));
                    waits = true;
                }
                Some(pod) if !is_available(world, self.set, pod, due) && ordered => waits = true,
                Some(_) => {}
            }
            if waits && ordered {
                return;
            }
        }
        if waits {
            return;
        }
        for pod in &self.condemned {
            if !ends(pod) {
                drop(world.terminate(pod));
            }
            if ordered {
                return;
            }
        }
        self.roll(world, due);
    }

    fn make(&self, world: &mut World, place: i64) {
        let rolls = self.set["spec"]["updateStrategy"]["type"] != "OnDelete";
        let ordinal = first(self.set) + place;
        let detailed = !self.set["spec"]["updateStrategy"]["rollingUpdate"].is_null();
        let kept = if detailed { self.partition() } else { count(&self.set["status"]["currentReplicas"], 0) };
        let of = if rolls && place < kept { &self.current } else { &self.update };
        let template = &of["data"]["spec"]["template"];
        let name = format!("{}-{ordinal}", text(self.set, "/metadata/name"));
        let mut metadata = template["metadata"].clone();
        metadata["name"] = name.as_str().into();
        metadata["namespace"] = self.set["metadata"]["namespace"].clone();
        metadata["ownerReferences"] = owner(self.set);
        metadata["labels"][HASH] = Self::name(of).into();
        metadata["labels"]["statefulset.kubernetes.io/pod-name"] = name.as_str().into();
        metadata["labels"]["apps.kubernetes.io/pod-index"] = ordinal.to_string().into();
        let mut spec = template["spec"].clone();
        spec["hostname"] = name.into();
        spec["subdomain"] = self.set["spec"]["serviceName"].clone();
        // What the API refuses is tried again with the next round that something else brings about.
        drop(world.create("v1", "Pod", MANAGER, json!({"metadata": metadata, "spec": spec})));
    }

    /// The highest Pod that is not of the template's revision goes, once those above it are available.
    fn roll(&self, world: &mut World, due: &mut Due) {
        if self.set["spec"]["updateStrategy"]["type"] == "OnDelete" {
            return;
        }
        let from = usize::try_from(self.partition()).unwrap_or(usize::MAX);
        for pod in self.replicas.iter().skip(from).rev().flatten() {
            if revision(pod) != Self::name(&self.update) && !ends(pod) {
                drop(world.terminate(pod));
                return;
            }
            if !is_available(world, self.set, pod, due) {
                return;
            }
        }
    }

    fn report(&self, world: &mut World, due: &mut Due) {
        let pods: Vec<&Value> = self.replicas.iter().flatten().chain(&self.condemned).map(AsRef::as_ref).collect();
        let of = |revision_of: &Value| {
            pods.iter().filter(|pod| !ends(pod) && revision(pod) == Self::name(revision_of)).count()
        };
        let (ready, updated) = (pods.iter().filter(|pod| is_ready(pod)).count(), of(&self.update));
        let available = pods.iter().filter(|pod| is_available(world, self.set, pod, due)).count();
        let wanted = usize::try_from(size(self.set)).unwrap_or(0);
        let rolls = self.set["spec"]["updateStrategy"]["type"] != "OnDelete";
        let complete = rolls && [updated, ready, pods.len()] == [wanted; 3];
        let current = if complete { &self.update } else { &self.current };
        let mut status = json!({
            "observedGeneration": self.set["metadata"]["generation"], "replicas": pods.len(),
            "availableReplicas": available, "collisionCount": 0,
            "currentRevision": Self::name(current), "updateRevision": Self::name(&self.update),
        });
        let counts = [("readyReplicas", ready), ("updatedReplicas", updated), ("currentReplicas", of(current))];
        for (key, number) in counts.into_iter().filter(|(_, number)| *number > 0) {
            status[key] = number.into();
        }
        write_status(world, self.set, status, MANAGER);
    }
}
