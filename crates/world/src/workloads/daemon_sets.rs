//! The controller of DaemonSets: a Pod on each node, of the template that there is when the node has none.
//!
//! As `podsShouldBeOnNode` and `rollingUpdate` in `pkg/controller/daemon` of Kubernetes 1.36 do it, without a surge. Which nodes is
//! said by `nodeSelector` alone.

use super::replica_sets::is_ready;
use super::revisions::{HASH, is_available, newest, revision};
use super::{Controlled, Due, MANAGER, all, count, ends, owner, pods, text, write_status};
use crate::kube_api::World;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A DaemonSet with what it controls.
struct Update<'a> {
    set: &'a Value,
    /// The Pods of each node that shall have one.
    nodes: BTreeMap<String, Vec<Arc<Value>>>,
    /// Pods elsewhere.
    elsewhere: Vec<Arc<Value>>,
    /// The hash of the template's revision.
    hash: String,
}

pub(super) fn run(world: &mut World, due: &mut Due) {
    let pods = Controlled::all(world, "v1", "Pod");
    let revisions = Controlled::all(world, "apps/v1", "ControllerRevision");
    for set in all(world, "apps/v1", "DaemonSet") {
        if ends(&set) {
            continue;
        }
        let mut known = revisions.by(&set).to_vec();
        known.sort_by_key(|revision| count(&revision["revision"], 0));
        let Some(update) = newest(world, &set, HASH, &known) else { continue };
        let wanted = nodes(world, &set["spec"]["template"]["spec"]["nodeSelector"]);
        let mut nodes: BTreeMap<String, Vec<_>> = wanted.into_iter().map(|node| (node, Vec::new())).collect();
        let mut elsewhere = Vec::new();
        for pod in pods.by(&set) {
            nodes.get_mut(pods::node(pod)).unwrap_or(&mut elsewhere).push(Arc::clone(pod));
        }
        let look = Update { set: &set, nodes, elsewhere, hash: revision(&update).to_owned() };
        look.reconcile(world, due);
        look.report(world, due);
    }
}

/// The nodes with these labels. A world that names no nodes has a few all the same.
fn nodes(world: &World, selector: &Value) -> Vec<String> {
    let all = all(world, "v1", "Node");
    if all.is_empty() {
        return (0..pods::NODES).map(|number| format!("node-{number}")).collect();
    }
    let asked = |node: &Value| {
        let mut asked = selector.as_object().into_iter().flatten();
        asked.all(|(key, value)| node["metadata"]["labels"][key] == *value)
    };
    all.iter().filter(|node| asked(node)).map(|node| text(node, "/metadata/name").to_owned()).collect()
}

impl Update<'_> {
    fn reconcile(&self, world: &mut World, due: &mut Due) {
        for pod in self.elsewhere.iter().filter(|pod| !ends(pod)) {
            drop(world.terminate(pod));
        }
        let without: Vec<&String> =
            self.nodes.iter().filter(|(_, pods)| pods.is_empty()).map(|(node, _)| node).collect();
        for node in &without {
            self.make(world, node);
        }
        if without.is_empty() && self.set["spec"]["updateStrategy"]["type"] != "OnDelete" {
            self.roll(world, due);
        }
    }

    fn make(&self, world: &mut World, node: &str) {
        let template = &self.set["spec"]["template"];
        let mut metadata = template["metadata"].clone();
        metadata["generateName"] = format!("{}-", text(self.set, "/metadata/name")).into();
        metadata["namespace"] = self.set["metadata"]["namespace"].clone();
        metadata["ownerReferences"] = owner(self.set);
        metadata["labels"][HASH] = self.hash.as_str().into();
        let mut spec = template["spec"].clone();
        spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = json!({"nodeSelectorTerms": [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]});
        // What the API refuses is tried again with the next round that something else brings about.
        drop(world.create("v1", "Pod", MANAGER, json!({"metadata": metadata, "spec": spec})));
    }

    fn is_updated(&self, pod: &Value) -> bool {
        revision(pod) == self.hash
    }

    /// Those of another revision go: what is not available at once, of the others as many as may be missing.
    fn roll(&self, world: &mut World, due: &mut Due) {
        let all: Vec<&Arc<Value>> = self.nodes.values().flatten().collect();
        let available = |pod: &Value, due: &mut Due| is_available(world, self.set, pod, due);
        let missing = all.iter().filter(|pod| !available(pod, due)).count();
        let old = all.into_iter().filter(|pod| !self.is_updated(pod) && !ends(pod));
        let (works, broken): (Vec<_>, Vec<_>) = old.partition(|pod| available(pod, due));
        let going = broken.into_iter().chain(works.into_iter().take(self.may_miss().saturating_sub(missing)));
        for pod in going.collect::<Vec<_>>() {
            drop(world.terminate(pod));
        }
    }

    fn may_miss(&self) -> usize {
        let most = &self.set["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"];
        let percent = most.as_str().and_then(|text| text.strip_suffix('%')?.parse::<usize>().ok());
        let part = percent.map(|percent| (self.nodes.len() * percent).div_ceil(100));
        part.unwrap_or_else(|| usize::try_from(count(most, 1)).unwrap_or(1))
    }

    fn report(&self, world: &mut World, due: &mut Due) {
        let pods: Vec<&Arc<Value>> = self.nodes.values().filter_map(|pods| pods.first()).collect();
        let available = pods.iter().filter(|pod| is_available(world, self.set, pod, due)).count();
        let mut status = json!({
            "observedGeneration": self.set["metadata"]["generation"], "desiredNumberScheduled": self.nodes.len(),
            "currentNumberScheduled": pods.len(), "numberMisscheduled": self.elsewhere.len(),
            "numberReady": pods.iter().filter(|pod| is_ready(pod)).count(),
        });
        let counts = [
            ("updatedNumberScheduled", pods.iter().filter(|pod| self.is_updated(pod)).count()),
            ("numberAvailable", available),
            ("numberUnavailable", self.nodes.len() - available),
        ];
        for (key, number) in counts.into_iter().filter(|(_, number)| *number > 0) {
            status[key] = number.into();
        }
        write_status(world, self.set, status, MANAGER);
    }
}
