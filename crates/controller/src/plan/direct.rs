//! Changes that are applied without a run: a closed list (design §4).

use crate::manifest::canonical::{canonical, drop_allotted};
use crate::manifest::desired::{Plan, Set, TargetKind};
use crate::manifest::object::{Kind, Object, ObjectRef};
use crate::manifest::scaler;
use crate::record::posture::{Directly, Naming, TARGET};
use crate::workload::direct::named;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What a change of main comes to when no run is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Nothing that the cluster would see.
    None,
    /// Only what the closed list allows: applied without a run.
    Direct,
    /// The same, with these scalers of the target, whose copies follow a promotion alone (requirement C-18): the next one.
    HeldBack(Vec<ObjectRef>),
    /// A new version.
    Version,
}

/// Compares two sets. What may take pods away is a version: an autoscaler that leaves less room than it did, or works otherwise, and, where a change
/// has approvers (`approved`), a smaller number of pods of the target.
#[must_use]
pub fn change(plan: &Plan, old: &Set, new: &Set, approved: bool) -> Change {
    if old.revision == new.revision {
        return Change::None;
    }
    if !is_alike(plan, old, new) {
        return Change::Version;
    }
    let copied = matches!(Naming::of(plan), Naming::Primary(_));
    let held: Vec<ObjectRef> = names(old, new)
        .into_iter()
        .filter(|name| copied && scales_otherwise(plan, [old, new], name))
        .cloned()
        .collect();
    if !held.is_empty() {
        return Change::HeldBack(held);
    }
    let lowers = |name: &ObjectRef| {
        let target = is_target(plan, name) && approved;
        lowers([old, new].map(|set| set.objects.get(name)), name, target)
    };
    if names(old, new).into_iter().any(lowers) { Change::Version } else { Change::Direct }
}

/// Whether two sets have the same pods and routes: they differ, if at all, in what the closed list has.
#[must_use]
pub fn is_alike(plan: &Plan, old: &Set, new: &Set) -> bool {
    let same = |name: &&ObjectRef| allowed(plan, name, old.objects.get(*name), new.objects.get(*name));
    old.tracked == new.tracked && names(old, new).iter().all(same)
}

fn names<'s>(old: &'s Set, new: &'s Set) -> BTreeSet<&'s ObjectRef> {
    old.objects.keys().chain(new.objects.keys()).collect()
}

/// Whether there may be fewer pods by what an object says now than by what it said: a scaler, or, where it is asked about, the `target`.
#[must_use]
pub fn lowers(said: [Option<&Object>; 2], name: &ObjectRef, target: bool) -> bool {
    if scaler::KINDS.contains(&name.kind) {
        return match said {
            [Some(old), Some(new)] => !scaler::is_roomier(old, new),
            _ => true,
        };
    }
    let size = |object: Option<&Object>| object.and_then(|object| object.int("/spec/replicas"));
    target
        && match said.map(size) {
            [Some(old), Some(new)] => new < old,
            // As many as there are live, which nobody can tell from files.
            [old, new] => old != new,
        }
}

/// Whether an object scales the target in one of the sets, and not as in the other.
fn scales_otherwise(plan: &Plan, sets: [&Set; 2], name: &ObjectRef) -> bool {
    let [old, new] = sets.map(|set| set.objects.get(name));
    let target = (plan.target.kind.kind(), plan.target.name.clone());
    let scales = |object: &Object| scaler::scaled(object).as_ref() == Some(&target);
    [old, new].into_iter().flatten().any(scales) && old.map(canonical) != new.map(canonical)
}

/// The most that is kept of what main has changed directly.
const MOST: usize = 16 << 10;

/// What main has changed directly between two sets, of the fields that have a size or a label; none if it is too much to be kept.
#[must_use]
pub fn since(plan: &Plan, old: &Set, new: &Set) -> Option<Directly> {
    let copied = matches!(Naming::of(plan), Naming::Primary(_));
    let mut all = Directly::new();
    for (reference, now) in &new.objects {
        let Some(before) = old.objects.get(reference).filter(|before| *before != now) else { continue };
        let is_target = is_target(plan, reference);
        // Copies of these follow a promotion alone (requirement C-18).
        if copied && scales_otherwise(plan, [old, new], reference) {
            continue;
        }
        let own: Vec<&str> = match (is_target, scaler::bounds(reference.kind)) {
            (true, _) => vec!["/spec/replicas"],
            (false, Some(bounds)) => bounds.into(),
            (false, None) if reference.kind == Kind::PodDisruptionBudget => {
                vec!["/spec/minAvailable", "/spec/maxUnavailable"]
            }
            (false, None) if reference.kind == Kind::ConfigMap => Vec::new(),
            (false, None) => continue,
        };
        let has_changed = |pointer: &String| before.at(pointer) != now.at(pointer);
        // Two bounds, of which one says what the other may be, go together.
        let own: Vec<String> = own.into_iter().map(str::to_owned).collect();
        let own = if own.iter().any(has_changed) { own } else { Vec::new() };
        let differs = own.into_iter().chain([before, now].into_iter().flat_map(marks).filter(has_changed));
        let fields: BTreeMap<String, Value> = differs
            .map(|pointer| {
                let value = now.at(&pointer).cloned().unwrap_or_default();
                (pointer, value)
            })
            .collect();
        if !fields.is_empty() {
            all.insert(if is_target { TARGET.to_owned() } else { named(reference) }, fields);
        }
    }
    (serde_json::to_string(&all).map_or(0, |text| text.len()) <= MOST).then_some(all)
}

/// The JSON pointers of an object's labels and annotations.
fn marks(object: &Object) -> impl Iterator<Item = String> {
    ["/metadata/labels", "/metadata/annotations"].into_iter().flat_map(|place| {
        let keys = object.at(place).and_then(Value::as_object).into_iter().flat_map(|all| all.keys());
        keys.map(move |key| format!("{place}/{}", key.replace('~', "~0").replace('/', "~1")))
    })
}

fn is_target(plan: &Plan, name: &ObjectRef) -> bool {
    name.kind == plan.target.kind.kind() && name.name == plan.target.name
}

fn allowed(plan: &Plan, name: &ObjectRef, old: Option<&Object>, new: Option<&Object>) -> bool {
    if scaler::KINDS.contains(&name.kind) || name.kind == Kind::PodDisruptionBudget {
        return true;
    }
    let (Some(old), Some(new)) = (old, new) else { return false };
    if old == new {
        return true;
    }
    if is_target(plan, name) {
        return match plan.target.kind {
            TargetKind::Deployment | TargetKind::StatefulSet | TargetKind::DaemonSet => {
                let scaled_to_zero = new.int("/spec/replicas") == Some(0) || old.int("/spec/replicas") == Some(0);
                !scaled_to_zero && without(old, true) == without(new, true)
            }
            TargetKind::Service => asked(old) == asked(new),
            TargetKind::NodeConfig | TargetKind::None => false,
        };
    }
    name.kind == Kind::ConfigMap && without(old, false) == without(new, false)
}

/// A Service without its own labels and annotations, and without what the API server allots (requirement C-26).
fn asked(service: &Object) -> Value {
    let mut value = without(service, false);
    drop_allotted(&mut value["spec"]);
    value
}

/// An object without its own labels and annotations, and without its size if that is free to change.
fn without(object: &Object, size: bool) -> Value {
    let mut value = object.value().clone();
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("labels");
        metadata.remove("annotations");
    }
    if let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut).filter(|_| size) {
        spec.remove("replicas");
    }
    value
}

#[cfg(test)]
mod tests {
    use super::{Change, change};
    use crate::manifest::desired::TargetKind;
    use crate::manifest::object::Kind;
    use crate::workload::fixtures::{gateway, object, plan, set};
    use serde_json::{Value, json};

    #[test]
    fn c_26_a_service_that_is_given_other_allotments_or_labels_starts_no_run() {
        let mut plan = plan(Some(gateway()));
        plan.target.kind = TargetKind::Service;
        let mut number = 0;
        let mut version = |metadata: Value, spec: Value| {
            number += 1;
            let service = object(Kind::Service, "web", json!({"metadata": metadata, "spec": spec}));
            let mut set = set([service]);
            set.revision = format!("v1:sha256:{number:064}").parse().unwrap();
            set
        };
        let ports = json!([{"port": 80, "nodePort": 30_080}]);
        let blue = json!({"selector": {"app": "blue"}, "ports": [{"port": 80}]});
        let old = version(json!({}), blue.clone());
        let labelled = version(json!({"labels": {"a": "b"}, "annotations": {"c": "d"}}), blue);
        let allotted =
            version(json!({}), json!({"selector": {"app": "blue"}, "ports": ports, "clusterIP": "10.0.0.9"}));
        let green = version(json!({}), json!({"selector": {"app": "green"}, "ports": [{"port": 80}]}));
        let typed =
            version(json!({}), json!({"selector": {"app": "blue"}, "ports": [{"port": 80}], "type": "NodePort"}));
        let direct = [&labelled, &allotted, &green, &typed].map(|new| change(&plan, &old, new, true));
        assert_eq!(direct, [Change::Direct, Change::Direct, Change::Version, Change::Version]);
        // Of another Service of the set every change is a version.
        plan.target.name = "api".parse().unwrap();
        assert_eq!(change(&plan, &old, &allotted, false), Change::Version);
    }

    type Said = (Value, Option<(Kind, Value)>);

    fn hpa(least: Value, most: u32) -> Said {
        let spec = json!({"spec": {"minReplicas": least, "maxReplicas": most}});
        (Value::Null, Some((Kind::HorizontalPodAutoscaler, spec)))
    }

    /// From two pods to six by the CPU, but for these.
    fn keda(edit: impl FnOnce(&mut Value)) -> Said {
        let mut object = json!({"spec": {"minReplicaCount": 2, "maxReplicaCount": 6, "triggers": [{"type": "cpu"}]}, "metadata": {}});
        edit(&mut object);
        (Value::Null, Some((Kind::ScaledObject, object)))
    }

    fn pods(number: u32) -> Said {
        (number.into(), None)
    }

    #[test]
    fn attack_111_an_autoscaler_takes_no_pods_past_the_gates() {
        let plan = plan(Some(gateway()));
        let mut number = 0;
        let mut version = |(replicas, scaler): Said| {
            number += 1;
            let target = object(Kind::Deployment, "web", json!({"spec": {"replicas": replicas}}));
            let scaler = scaler.map(|(kind, value)| object(kind, "web", value));
            let mut set = set([target].into_iter().chain(scaler));
            set.revision = format!("v1:sha256:{number:064}").parse().unwrap();
            set
        };
        let paused = json!({"autoscaling.keda.sh/paused-replicas": "0"});
        for (what, old, new, expected) in [
            ("more at least", hpa(2.into(), 6), hpa(3.into(), 6), Change::Direct),
            ("more at most", hpa(2.into(), 6), hpa(2.into(), 8), Change::Direct),
            ("fewer at least", hpa(3.into(), 6), hpa(2.into(), 6), Change::Version),
            ("the default", hpa(2.into(), 6), hpa(Value::Null, 6), Change::Version),
            ("fewer at most", hpa(2.into(), 8), hpa(2.into(), 6), Change::Version),
            ("none", keda(|_| ()), keda(|o| o["spec"]["minReplicaCount"] = 0.into()), Change::Version),
            (
                "another trigger",
                keda(|_| ()),
                keda(|o| o["spec"]["triggers"][0]["type"] = "cron".into()),
                Change::Version,
            ),
            ("none while idle", keda(|_| ()), keda(|o| o["spec"]["idleReplicaCount"] = 0.into()), Change::Version),
            ("paused", keda(|_| ()), keda(|o| o["metadata"]["annotations"] = paused), Change::Version),
            ("labels", keda(|_| ()), keda(|o| o["metadata"]["labels"] = json!({"team": "shop"})), Change::Direct),
            ("a new one", pods(4), keda(|_| ()), Change::Version),
            ("none any more", hpa(2.into(), 6), pods(4), Change::Version),
            ("more pods", pods(4), pods(5), Change::Direct),
        ] {
            let (old, new) = (version(old), version(new));
            let both = [true, false].map(|approved| change(&plan, &old, &new, approved));
            assert_eq!(both, [expected.clone(), expected], "{what}");
        }
        for new in [pods(3), (Value::Null, None)] {
            let (old, new) = (version(pods(4)), version(new));
            let both = [true, false].map(|approved| change(&plan, &old, &new, approved));
            assert_eq!(both, [Change::Version, Change::Direct], "as many as people approve, where they do");
        }
    }
}
