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

/// Compares two sets.
#[must_use]
pub fn change(plan: &Plan, old: &Set, new: &Set) -> Change {
    if old.revision == new.revision {
        return Change::None;
    }
    if old.tracked != new.tracked {
        return Change::Version;
    }
    let names: BTreeSet<&ObjectRef> = old.objects.keys().chain(new.objects.keys()).collect();
    if !names.iter().all(|name| allowed(plan, name, old.objects.get(name), new.objects.get(name))) {
        return Change::Version;
    }
    let copied = matches!(Naming::of(plan), Naming::Primary(_));
    let held = names.into_iter().filter(|name| copied && scales_otherwise(plan, [old, new], name));
    let held: Vec<ObjectRef> = held.cloned().collect();
    if held.is_empty() { Change::Direct } else { Change::HeldBack(held) }
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
        let direct = [&labelled, &allotted, &green, &typed].map(|new| change(&plan, &old, new));
        assert_eq!(direct, [Change::Direct, Change::Direct, Change::Version, Change::Version]);
        // Of another Service of the set every change is a version.
        plan.target.name = "api".parse().unwrap();
        assert_eq!(change(&plan, &old, &allotted), Change::Version);
    }
}
