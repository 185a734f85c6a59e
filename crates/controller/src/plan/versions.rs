//! Versions whose objects have names of their own (the layout `versioned`): what keeps one from being brought beside the other,
//! and what keeps the old one from going.

use super::context::Context;
use super::deletions::Sorted;
use super::draft::Draft;
use super::report::{Reason, Wait};
use crate::manifest::desired::{Layout, Plan, Rollout, Set};
use crate::manifest::object::{Kind, Object, ObjectRef};
use crate::manifest::variant::Told;
use crate::record::posture::{Names, Naming, Versions};
use crate::workload::layouts::versioned;
use crate::workload::layouts::{LayoutError, pod_labels};
use crate::workload::live::LiveState;
use crate::workload::routers;
use std::collections::BTreeSet;

/// What the stable version calls its objects.
#[must_use]
pub fn stable(naming: &Naming) -> Option<&Names> {
    versions(naming).map(|versions| &versions.stable)
}

fn versions(naming: &Naming) -> Option<&Versions> {
    match naming {
        Naming::Versioned(versions) => Some(versions),
        Naming::InPlace | Naming::Primary(_) | Naming::Leaving(_) | Naming::Shared => None,
    }
}

/// Why what main wants cannot stand beside what is promoted, where that is `recorded` to be called so.
#[must_use]
pub fn misfit(recorded: &Naming, rollout: &Rollout, old: &Set) -> Option<LayoutError> {
    let stable = stable(recorded)?.clone();
    let candidate = Names::of(&rollout.plan)?;
    if candidate == stable && rollout.set.pods == old.pods {
        // Its pods stay as they are.
        return None;
    }
    let both = Versions { stable, candidate: Some(candidate) };
    versioned::candidate(old, &rollout.set, &rollout.plan, &both, &rollout.set.pods).err()
}

/// Why pods of what main wants do not get along with those that there are, and would be side by side with them (requirement V-2). They would not
/// where each version has its own objects, nor where all old pods go before the first new one is made.
#[must_use]
pub fn variant_changes(rollout: &Rollout, old: &Set) -> Option<String> {
    let Plan { target, traffic, .. } = &rollout.plan;
    let variant = target.variant.as_ref().filter(|_| target.layout != Layout::Versioned)?;
    let reference =
        ObjectRef { kind: target.kind.kind(), namespace: rollout.id.namespace.clone(), name: target.name.clone() };
    let [was, is] = [old, &*rollout.set].map(|set| set.objects.get(&reference));
    let recreated = is.and_then(|is| is.text("/spec/strategy/type")) == Some("Recreate") && traffic.is_none();
    match [was, is].map(|object| object.map(|object| variant.of(object))) {
        _ if recreated => None,
        [None, _] | [_, None] => None,
        [Some(Told::Is(was)), Some(Told::Is(is))] if variant.gets_along(&was, &is) => None,
        [Some(Told::Is(was)), Some(Told::Is(is))] => Some(format!(
            "{} of the container {} changes from {was} to {is}, and pods of the two do not get along",
            variant.env, variant.container
        )),
        [Some(_), Some(_)] => Some(format!(
            "nobody can tell which variant the promoted pods are, by {} of the container {}",
            variant.env, variant.container
        )),
    }
}

/// The same as what the rollout waits on: no run is opened, and nothing is written.
#[must_use]
pub fn unfit(draft: &Draft<'_>, rollout: &Rollout, old: &Set) -> Option<Wait> {
    // Said now, since a run that cannot end lets no other one start.
    let (going, said) = (going(&draft.naming, rollout, old), &draft.state.deletions);
    let wait = Sorted::of(draft.input, said, Some(&rollout.set.id), going).wait("with the old version ");
    if wait.is_some() {
        return wait;
    }
    if let Some(why) = variant_changes(rollout, old) {
        return Some(Wait::new(Reason::VariantChange, why));
    }
    let why = misfit(&draft.naming, rollout, old)?;
    let reason =
        if matches!(why, LayoutError::SelectsOther { .. }) { Reason::SelectorOverlap } else { Reason::Rejected };
    Some(
        Wait::new(reason, why.to_string())
            .act("push manifests that do what the message says; nothing is written until then"),
    )
}

/// The objects of the old version that go when the new one has taken its place.
#[must_use]
pub fn going(naming: &Naming, rollout: &Rollout, old: &Set) -> BTreeSet<ObjectRef> {
    let goes = |object: &&ObjectRef| !rollout.set.objects.contains_key(*object);
    let is_versioned = versions(naming).is_some();
    old.objects.keys().filter(|_| is_versioned).filter(goes).cloned().collect()
}

/// Whether an object is the old version's while a run is under way: it stays as it is until the run has ended.
#[must_use]
pub fn is_kept(context: &Context<'_>, reference: &ObjectRef) -> bool {
    let in_run = versions(context.naming).is_some_and(|versions| versions.candidate.is_some());
    in_run && context.set(context.base).is_some_and(|set| set.objects.contains_key(reference))
}

/// What of the objects that are to be deleted has to stay, since something that stays uses it (requirements T-7 and T-19): that, the
/// workloads behind such Services, and what their pods need.
#[must_use]
pub fn in_use(context: &Context<'_>, surplus: &[&Object]) -> BTreeSet<ObjectRef> {
    if versions(context.naming).is_none() {
        return BTreeSet::new();
    }
    let used = surplus.iter().filter(|object| !users(context.live, object, surplus).is_empty());
    let mut kept: BTreeSet<ObjectRef> = used.map(|object| object.reference().clone()).collect();
    let services = surplus.iter().filter(|object| object.reference().kind == Kind::Service);
    let services: Vec<_> = services.filter(|service| kept.contains(service.reference())).collect();
    let led_to = |pods| services.iter().any(|service| versioned::selects(service, &pods));
    for workload in surplus.iter().filter(|object| Kind::WORKLOADS.contains(&object.reference().kind)) {
        if kept.contains(workload.reference()) || led_to(pod_labels(workload)) {
            kept.insert(workload.reference().clone());
            let needed = surplus.iter().filter(|object| versioned::belongs(object, workload));
            kept.extend(needed.map(|object| object.reference().clone()));
        }
    }
    kept
}

/// What stays in its namespace and uses an object that would go: routes that lead to a Service, Services that have no pods but those of
/// a workload, workloads whose pods need a ConfigMap or a ServiceAccount.
fn users<'a>(live: &'a LiveState, object: &Object, surplus: &[&Object]) -> Vec<&'a Object> {
    let reference = object.reference();
    let stays = |other: &&Object| {
        other.reference().namespace == reference.namespace
            && surplus.iter().all(|gone| gone.reference() != other.reference())
    };
    let staying = |kinds: &'static [Kind]| kinds.iter().flat_map(move |kind| live.of_kind(*kind)).filter(stays);
    if reference.kind == Kind::Service {
        return staying(Kind::ROUTES).filter(|route| routers::references(route, &reference.name)).collect();
    }
    if !Kind::WORKLOADS.contains(&reference.kind) {
        return staying(Kind::WORKLOADS).filter(|workload| versioned::needs(workload, reference)).collect();
    }
    let has_pods = |workload: &&Object| workload.int("/spec/replicas") != Some(0);
    let others: Vec<_> = staying(Kind::WORKLOADS).filter(has_pods).map(pod_labels).collect();
    let pods = pod_labels(object);
    let alone = |service: &&Object| {
        versioned::selects(service, &pods) && !others.iter().any(|pods| versioned::selects(service, pods))
    };
    staying(&[Kind::Service]).filter(alone).collect()
}

/// What is left of versions that neither are stable nor on their way, and who keeps it: told as long as it is so, whatever
/// the rollout does meanwhile.
#[must_use]
pub fn left(draft: &Draft<'_>) -> Option<Wait> {
    versions(&draft.naming)?;
    let posture = draft.posture().into_iter().flat_map(|posture| [Some(&posture.stable), posture.candidate.as_ref()]);
    let run = draft.state.run.iter().flat_map(|run| [&run.from, &run.to]);
    let current = posture.flatten().map(|role| &role.set).chain(run).filter_map(|set| draft.input.sets.get(set));
    let current: Vec<_> = current.collect();
    let owner = draft.input.me.instance.owner_of(&draft.input.id);
    let ours = draft.live.objects.owned_by(&owner);
    let old: Vec<&Object> =
        ours.filter(|object| current.iter().all(|set| !set.objects.contains_key(object.reference()))).collect();
    let told = old.iter().filter_map(|object| {
        let users = users(draft.live, object, &old);
        let by: Vec<String> = users.iter().map(|user| user.reference().to_string()).collect();
        (!by.is_empty()).then(|| format!("{} is used by {}", object.reference(), by.join(", ")))
    });
    let told: Vec<String> = told.collect();
    let why = || format!("{}: that stays, with all that it needs", told.join("; "));
    (!told.is_empty()).then(|| Wait::new(Reason::StillReferenced, why()))
}
