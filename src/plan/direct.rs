//! Changes that are applied without a run: a closed list (design §4).

use crate::manifest::desired::{Plan, Set};
use crate::manifest::object::{Kind, Object, ObjectRef};
use serde_json::Value;

/// What a change of main comes to when no run is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Nothing that the cluster would see.
    None,
    /// Only what the closed list allows: applied without a run.
    Direct,
    /// A new version.
    Version,
}

/// Compares two sets.
#[must_use]
pub fn change(plan: &Plan, old: &Set, new: &Set) -> Change {
    if old.revision == new.revision {
        return Change::None;
    }
    let names = old.objects.keys().chain(new.objects.keys());
    let direct = names.into_iter().all(|name| allowed(plan, name, old.objects.get(name), new.objects.get(name)));
    if direct { Change::Direct } else { Change::Version }
}

fn allowed(plan: &Plan, name: &ObjectRef, old: Option<&Object>, new: Option<&Object>) -> bool {
    if matches!(name.kind, Kind::HorizontalPodAutoscaler | Kind::PodDisruptionBudget) {
        return true;
    }
    let (Some(old), Some(new)) = (old, new) else { return false };
    if old == new {
        return true;
    }
    if name.kind == plan.target.kind.kind() && name.name == plan.target.name {
        let scaled_to_zero = new.int("/spec/replicas") == Some(0) || old.int("/spec/replicas") == Some(0);
        return !scaled_to_zero && without(old, true) == without(new, true);
    }
    name.kind == Kind::ConfigMap && without(old, false) == without(new, false)
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
