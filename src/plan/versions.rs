//! Versions whose objects have names of their own (the layout `versioned`): what keeps one from being brought beside the other,
//! and what keeps the old one from going.

use super::context::Context;
use super::draft::Draft;
use super::report::{Reason, Wait};
use crate::manifest::desired::{Rollout, Set};
use crate::manifest::object::{Kind, Object, ObjectRef};
use crate::record::posture::{Names, Naming, Versions};
use crate::target::layout::{LayoutError, pod_labels};
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
    let why = misfit(&draft.naming, rollout, old)?;
    let reason =
        if matches!(why, LayoutError::SelectsOther { .. }) { Reason::SelectorOverlap } else { Reason::Rejected };
    Some(
        Wait::new(reason, why.to_string())
            .act("push manifests that do what the message says; nothing is written until then"),
    )
}

/// Whether an object is the old version's while a run is under way: it stays as it is until the run has ended.
#[must_use]
pub fn is_kept(context: &Context<'_>, reference: &ObjectRef) -> bool {
    let in_run = versions(context.naming).is_some_and(|versions| versions.candidate.is_some());
    in_run && context.set(context.base).is_some_and(|set| set.objects.contains_key(reference))
}

/// What of the objects that are to be deleted has to stay, since something that stays leads requests to it (requirements T-7
/// and T-19): such Services, the Deployments behind them and what those need. Why, for people.
#[must_use]
pub fn in_use(context: &Context<'_>, surplus: &[&Object]) -> (BTreeSet<ObjectRef>, Vec<Wait>) {
    let (mut kept, mut waits) = (BTreeSet::new(), Vec::new());
    if versions(context.naming).is_none() {
        return (kept, waits);
    }
    let of_kind = |kind| surplus.iter().filter(move |object| object.reference().kind == kind);
    for service in of_kind(Kind::Service) {
        let name = &service.reference().name;
        let routes = Kind::ROUTES.iter().flat_map(|kind| context.live.of_kind(*kind));
        let routes = routes.filter(|route| route.reference().namespace == *context.namespace());
        let staying = routes.filter(|route| surplus.iter().all(|gone| gone.reference() != route.reference()));
        let by: Vec<String> = staying
            .filter(|route| traffic::references(route, name))
            .map(|route| route.reference().to_string())
            .collect();
        if by.is_empty() {
            continue;
        }
        let why =
            format!("{} is still named by {}: it stays, and all that it leads to", service.reference(), by.join(", "));
        waits.push(Wait::new(Reason::StillReferenced, why));
        kept.insert(service.reference().clone());
        for deployment in of_kind(Kind::Deployment).filter(|other| versioned::selects(service, &pod_labels(other))) {
            kept.insert(deployment.reference().clone());
            let needed = surplus.iter().filter(|object| versioned::belongs(object, deployment));
            kept.extend(needed.map(|object| object.reference().clone()));
        }
    }
    (kept, waits)
}
