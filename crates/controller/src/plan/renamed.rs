//! What is rolled out stays what it was: main may want another target, or another layout, for a rollout that exists, and nobody can do
//! that to what is there. Then nothing is written by what main says; what goes back does all the same.

use super::draft::Draft;
use super::report::{Reason, Wait};
use crate::manifest::desired::{Set, Target, TargetKind};
use crate::manifest::object::{Kind, Object, ObjectRef, PODS};
use crate::record::posture::{Names, Naming};

/// Why what main wants cannot be done to what is there: everything would have to be called otherwise. A run has a plan of its own.
#[must_use]
pub fn renamed(draft: &Draft<'_>) -> Option<Wait> {
    let rollout = draft.wanted().filter(|_| draft.state.run.is_none() && draft.state.promoted.is_some())?;
    let wanted = Naming::of(&rollout.plan);
    let why = match &draft.naming {
        recorded if *recorded == wanted => other_target(draft, &rollout.plan.target)?,
        Naming::Versioned(_) if matches!(wanted, Naming::Versioned(_)) => return None,
        Naming::Versioned(_) => "target.layout is versioned as long as the rollout exists".to_owned(),
        Naming::Primary(Names { target, service }) => {
            format!(
                "target.layout is primary, for the target {target} and the Service {service}, as long as the rollout exists"
            )
        }
        Naming::Shared => {
            "target.kind is StatefulSet or DaemonSet, as it was, as long as the rollout exists".to_owned()
        }
        Naming::InPlace | Naming::Leaving(_) => "target.layout is inPlace as long as the rollout exists".to_owned(),
    };
    let act = "undo that change; or take the rollout's file off main, wait until it is gone, and add it again";
    Some(Wait::new(Reason::Rejected, why).act(act))
}

/// Why what main calls the target is not what was promoted.
fn other_target(draft: &Draft<'_>, target: &Target) -> Option<String> {
    let wanted =
        ObjectRef { kind: target.kind.kind(), namespace: draft.input.id.namespace.clone(), name: target.name.clone() };
    let promoted = draft.input.sets.get(&draft.state.promoted.as_ref()?.set);
    if let Some(other) = promoted.and_then(|set| labelled(draft, set)).filter(|other| **other != wanted) {
        return Some(format!("the target is {} {} as long as the rollout exists", other.kind, other.name));
    }
    let there = match promoted {
        Some(set) if target.kind == TargetKind::NodeConfig => !set.layers.is_empty(),
        Some(set) if target.kind == TargetKind::None => {
            set.objects.keys().all(|object| !Kind::WORKLOADS.contains(&object.kind))
        }
        Some(set) => set.objects.contains_key(&wanted),
        // Main's target tells what a set is read for.
        None => draft.state.clusters.values().all(|cluster| {
            !target.kind.is_object()
                || cluster.inventory.is_empty()
                || cluster.inventory.iter().any(|owned| owned.reference == wanted)
        }),
    };
    let what = if target.kind == TargetKind::None {
        "the promoted manifests have what makes pods".to_owned()
    } else {
        format!("{} {} is not among the promoted manifests", wanted.kind, wanted.name)
    };
    (!there).then(|| format!("{what}, and the target stays what it was as long as the rollout exists"))
}

/// What of the promoted set has the pods of a version: the target, from the first promotion on.
fn labelled<'s>(draft: &Draft<'_>, set: &'s Set) -> Option<&'s ObjectRef> {
    let pods = draft.posture()?.stable.pods.as_ref()?.as_str();
    let label = |object: &Object| {
        let labels = object.at("/spec/template/metadata/labels");
        labels.and_then(|labels| labels.get(PODS)?.as_str()) == Some(pods)
    };
    set.objects.keys().find(|reference| draft.live.get(reference).is_some_and(label))
}
