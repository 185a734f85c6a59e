//! Versions whose objects have names of their own (the layout `versioned`): what keeps one from being brought beside the other,
//! and what keeps the old one from going.

use super::context::Context;
use super::deletions::Sorted;
use super::draft::Draft;
use super::report::{Reason, Wait};
use crate::manifest::desired::{Rollout, Set};
use crate::manifest::object::{Kind, Object, ObjectRef};
use crate::record::posture::{Names, Naming, Versions};
use crate::target::layout::{LayoutError, pod_labels};
use crate::target::live::LiveState;
use crate::target::versioned;
use crate::traffic;
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

/// The same as what the rollout waits on: no run is opened, and nothing is written.
#[must_use]
pub fn unfit(draft: &Draft<'_>, rollout: &Rollout, old: &Set) -> Option<Wait> {
    // Said now, since a run that cannot end lets no other one start.
    let (going, said) = (going(&draft.naming, rollout, old), &draft.state.deletions);
    let wait = Sorted::of(draft.input, said, Some(&rollout.set.id), going).wait("with the old version ");
    if wait.is_some() {
        return wait;
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

/// What of the objects that are to be deleted has to stay, since something that stays leads requests to it (requirements T-7
/// and T-19): such Services, the Deployments behind them and what those need.
#[must_use]
pub fn in_use(context: &Context<'_>, surplus: &[&Object]) -> BTreeSet<ObjectRef> {
    let mut kept = BTreeSet::new();
    if versions(context.naming).is_none() {
        return kept;
    }
    let of_kind = |kind| surplus.iter().filter(move |object| object.reference().kind == kind);
    for service in of_kind(Kind::Service).filter(|service| !names_of(context.live, service, surplus).is_empty()) {
        kept.insert(service.reference().clone());
        for deployment in of_kind(Kind::Deployment).filter(|other| versioned::selects(service, &pod_labels(other))) {
            kept.insert(deployment.reference().clone());
            let needed = surplus.iter().filter(|object| versioned::belongs(object, deployment));
            kept.extend(needed.map(|object| object.reference().clone()));
        }
    }
    kept
}

/// The routes of its namespace that lead to a Service, but for those that go with it.
fn names_of(live: &LiveState, service: &Object, surplus: &[&Object]) -> Vec<String> {
    let ObjectRef { kind: _, namespace, name } = service.reference();
    let routes = Kind::ROUTES.iter().flat_map(|kind| live.of_kind(*kind));
    let routes = routes.filter(|route| route.reference().namespace == *namespace && traffic::references(route, name));
    let staying = routes.filter(|route| surplus.iter().all(|gone| gone.reference() != route.reference()));
    staying.map(|route| route.reference().to_string()).collect()
}

/// What is left of versions that neither are stable nor on their way, and who keeps it: told as long as it is so, whatever
/// the rollout does meanwhile.
#[must_use]
pub fn left(draft: &Draft<'_>) -> Vec<Wait> {
    if versions(&draft.naming).is_none() {
        return Vec::new();
    }
    let posture = draft.posture().into_iter().flat_map(|posture| [Some(&posture.stable), posture.candidate.as_ref()]);
    let run = draft.state.run.iter().flat_map(|run| [&run.from, &run.to]);
    let current = posture.flatten().map(|role| &role.set).chain(run).filter_map(|set| draft.input.sets.get(set));
    let current: Vec<_> = current.collect();
    let owner = draft.input.me.instance.owner_of(&draft.input.id);
    let ours = draft.live.objects.owned_by(&owner);
    let old: Vec<&Object> =
        ours.filter(|object| current.iter().all(|set| !set.objects.contains_key(object.reference()))).collect();
    let services = old.iter().filter(|object| object.reference().kind == Kind::Service);
    let told = services.filter_map(|service| {
        let by = names_of(draft.live, service, &old);
        let why =
            format!("{} is still named by {}: it stays, and all that it leads to", service.reference(), by.join(", "));
        (!by.is_empty()).then(|| Wait::new(Reason::StillReferenced, why))
    });
    told.collect()
}
