//! Changes that are applied without a run: a closed list (design §4).

use crate::manifest::canonical::canonical;
use crate::manifest::desired::{Plan, Set};
use crate::manifest::object::{Kind, Object, ObjectRef};
use crate::manifest::scaler;
use crate::record::posture::Naming;
use serde_json::Value;
use std::collections::BTreeSet;

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
    let scales = |object: &Object| scaler::scaled(object).as_ref() == Some(&plan.target.name);
    [old, new].into_iter().flatten().any(scales) && old.map(canonical) != new.map(canonical)
}

fn allowed(plan: &Plan, name: &ObjectRef, old: Option<&Object>, new: Option<&Object>) -> bool {
    if scaler::KINDS.contains(&name.kind) || name.kind == Kind::PodDisruptionBudget {
        return true;
    }
    let (Some(old), Some(new)) = (old, new) else { return false };
    if old == new {
        return true;
    }
    if name.kind == Kind::Deployment && name.name == plan.target.name {
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
