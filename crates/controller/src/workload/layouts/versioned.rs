//! The layout `versioned`: what belongs to one version has a name of its own in the manifests, such as `podinfo-v2`, and
//! nothing is copied.
//!
//! What both versions name alike is shared: it is stable's until *promote*, and the new version's from then on. The old
//! version's own objects go last.

use super::LayoutError;
use crate::manifest::desired::{Plan, Set};
use crate::manifest::ids::PodsDigest;
use crate::manifest::object::{Kind, Object, ObjectRef};
use crate::manifest::reference::{self, Reference};
use crate::manifest::scaler;
use crate::record::posture::{Names, Versions};
use crate::workload::layouts;
use crate::workload::selector::{self, PodLabels};
use serde_json::Value;
use std::collections::BTreeMap;

/// The candidate's objects during a run: the target without `spec.replicas`, its Service, and of what only the new version
/// names what its pods need and what is about them. Other workloads that are new wait for *promote*, as they would serve at once, and
/// routes for *retire*: the way back ends nobody's way in. At rest there are none.
///
/// # Errors
/// [`LayoutError`]: the set cannot be the candidate beside this stable set.
pub fn candidate(
    stable: &Set,
    new: &Set,
    plan: &Plan,
    versions: &Versions,
    pods: &PodsDigest,
) -> Result<BTreeMap<ObjectRef, Object>, LayoutError> {
    let Versions { stable: old, candidate: Some(own) } = versions else { return Ok(BTreeMap::new()) };
    let source = layouts::required(new, Kind::Deployment, &own.target)?;
    let apex = layouts::serving(new, &own.service, &layouts::pod_labels(source), &own.target)?;
    let is_new = |object: &&Object| !stable.objects.contains_key(object.reference());
    if let Some(kept) = [source, apex].into_iter().find(|object| !is_new(object)) {
        return Err(LayoutError::NameKept { object: kept.reference().clone() });
    }
    if let Some(traffic) = &plan.traffic {
        layouts::offers_ports(apex, stable, &traffic.router.to(&old.service))?;
    }
    // What both versions read under one name is stable's until *promote*: the candidate's pods would start with that.
    let kept = |config| LayoutError::ConfigKept { config, deployment: own.target.clone() };
    layouts::new_configs(source, stable, new).map_err(kept)?;
    apart(stable, old, [source, apex])?;
    let mut target = layouts::with_replicas(source.clone(), None);
    layouts::label_pods(&mut target, pods);
    layouts::selects_own(&target)?;
    let about = new.objects.values().filter(is_new).filter(|object| belongs(object, source)).cloned();
    let all = about.chain([apex.clone(), target]);
    Ok(all.map(|object| (object.reference().clone(), object)).collect())
}

/// Whether an object is one without which a workload's pods are not as they should be: what they need, and what is about them
/// alone.
#[must_use]
pub fn belongs(object: &Object, workload: &Object) -> bool {
    let ObjectRef { kind, namespace: _, name } = workload.reference();
    needs(workload, object.reference())
        || object.reference().kind == Kind::PodDisruptionBudget
            && selector::matches(object.at("/spec/selector").unwrap_or(&Value::Null), &layouts::pod_labels(workload))
        || scaler::scaled(object) == Some((*kind, name.clone()))
}

/// Whether a workload's pods refer to an object.
#[must_use]
pub fn needs(workload: &Object, object: &ObjectRef) -> bool {
    let is = |one: Reference| one.to.kind() == Some(object.kind) && one.name == object.name.as_str();
    reference::references(workload.at("/spec/template").unwrap_or(&Value::Null)).into_iter().any(is)
}

/// Neither version's Deployment or Service may select the other's pods: it would take them over, or lead past the split.
fn apart(stable: &Set, old: &Names, new: [&Object; 2]) -> Result<(), LayoutError> {
    let old = [
        layouts::required(stable, Kind::Deployment, &old.target)?,
        layouts::required(stable, Kind::Service, &old.service)?,
    ];
    for ([deployment, _], selecting) in [(old, new), (new, old)] {
        let pods = layouts::pod_labels(deployment);
        if let Some(by) = selecting.into_iter().find(|by| selects(by, &pods)) {
            let (by, deployment) = (by.reference().clone(), deployment.reference().name.clone());
            return Err(LayoutError::SelectsOther { by, deployment });
        }
    }
    Ok(())
}

/// Whether a Deployment or a Service selects pods with these labels.
#[must_use]
pub fn selects(by: &Object, pods: &PodLabels) -> bool {
    let selector = by.at("/spec/selector");
    if by.reference().kind == Kind::Service {
        selector::serves(selector, pods)
    } else {
        selector::matches(selector.unwrap_or(&Value::Null), pods)
    }
}

#[cfg(test)]
mod tests;
