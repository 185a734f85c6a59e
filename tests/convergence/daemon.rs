//! The pods of a DaemonSet: how many of them are new, and whether they become new in the order of their nodes.

use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use tidegate::manifest::object::{PODS, ROLE};
use tidegate::record::state::RolloutState;
use tidegate::world::kube_api::World;
use tidegate::world::kube_api::resource::Resource;

/// How many nodes a world with a DaemonSet has.
pub(crate) const NODES: u64 = 4;

/// Those that were seen, by name.
#[derive(Default)]
pub(crate) struct Pods(BTreeMap<String, Arc<Value>>);

/// A pod whose end was asked for, and what is wrong with that.
pub(crate) struct Asked {
    pub(crate) name: String,
    pub(crate) wrong: Option<String>,
}

impl Pods {
    /// Looks at them once more: those whose end was asked for meanwhile, while their set was so.
    pub(crate) fn look(&mut self, world: &World, app: &str, set: Option<&Arc<Value>>, pace: usize) -> Vec<Asked> {
        let all = world.list(Resource::of_kind("v1", "Pod").unwrap(), "shop");
        let own = all.filter(|pod| pod["metadata"]["labels"]["app"] == *app);
        let now = own.map(|pod| (text(&pod["metadata"]["name"]).to_owned(), Arc::clone(pod))).collect();
        let before = std::mem::replace(&mut self.0, now);
        let asked = before.into_iter().filter(|(name, pod)| !ends(pod) && self.0.get(name).is_none_or(|pod| ends(pod)));
        let asked: Vec<_> = asked.collect();
        asked.into_iter().map(|(name, pod)| Asked { wrong: self.out_of_order(&pod, set, pace), name }).collect()
    }

    /// Forward the first node comes first, and back the last one; those that go at the same time in any order. Of pods that are not ready
    /// the nodes may be down.
    fn out_of_order(&self, pod: &Value, set: Option<&Arc<Value>>, pace: usize) -> Option<String> {
        let set = set?;
        let of_the_template = |pod: &Value| label(pod) == label(&set["spec"]["template"]);
        let others = self.0.values().filter(|pod| !ends(pod) && is_ready(pod));
        let forward = set["metadata"]["annotations"][ROLE] == "candidate";
        if of_the_template(pod) {
            return None;
        }
        let mut skipped = others.filter(|other| !of_the_template(other)).filter(|other| {
            let (other, own) = (node(other), node(pod));
            if forward { other < own } else { other > own }
        });
        let skipped = skipped.nth(pace - 1)?;
        Some(format!("the pod on {} is made anew before that on {}", node(pod), node(skipped)))
    }

    /// How many are of no version that is recorded as stable.
    pub(crate) fn count_new(&self, record: &RolloutState) -> usize {
        self.0.values().filter(|pod| !is_known(record, pod)).count()
    }

    /// More of them are new than the record says, or will be where those that are ending come back of the set's template.
    pub(crate) fn exposed(&self, record: &RolloutState, set: &Value) -> Option<String> {
        let split = &record.clusters.values().next()?.posture.split;
        let opened = !is_known(record, &set["spec"]["template"]);
        let coming = self.0.values().filter(|pod| opened && ends(pod) && is_known(record, pod)).count();
        let counted = usize::try_from(split.units.count.max(split.units.done)).unwrap();
        let (new, most) = (self.count_new(record) + coming, pods_of(split.weight.get().into()).max(counted));
        (new > most).then(|| format!("{new} pods are new, weight {} and {:?} are {most}", split.weight, split.units))
    }
}

/// Whether pods with these labels are of a version that is recorded as stable.
fn is_known(record: &RolloutState, of: &Value) -> bool {
    let posture = record.clusters.values().next().map(|cluster| &cluster.posture);
    let stable = posture.and_then(|posture| posture.stable.pods.as_ref());
    let promoted = record.promoted.as_ref().and_then(|promoted| promoted.label.as_ref());
    [stable, promoted].map(|pods| pods.map(|pods| pods.as_str())).contains(&label(of))
}

/// How many pods stand for a weight.
pub(crate) fn pods_of(weight: u64) -> usize {
    usize::try_from(NODES * weight / 100).unwrap()
}

/// Whether all its pods are of its template and ready, and its controller looks after them.
pub(crate) fn rests(set: &Value) -> bool {
    let (spec, status) = (&set["spec"], &set["status"]);
    let all = ["updatedNumberScheduled", "numberReady"].iter().all(|count| status[count] == NODES);
    all && spec["updateStrategy"]["type"] != "OnDelete" && status["observedGeneration"] == set["metadata"]["generation"]
}

fn label(of: &Value) -> Option<&str> {
    of["metadata"]["labels"][PODS].as_str()
}

fn ends(pod: &Value) -> bool {
    pod["metadata"]["deletionTimestamp"].is_string()
}

fn is_ready(pod: &Value) -> bool {
    let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

fn node(pod: &Value) -> &str {
    text(&pod["spec"]["nodeName"])
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
