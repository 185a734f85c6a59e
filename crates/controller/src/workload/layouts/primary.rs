//! The layout `primary`, which is Flagger's: what the objects of both roles look like, without sizes and without the split.
//!
//! The target is the candidate, and keeps its name and labels. Stable's pods are those of a copy, `<target>-primary`, with
//! copies of the ConfigMaps that they refer to and of the autoscaler; the Service of the manifests leads to them, so does its
//! copy `-primary`, and its copy `-canary` leads to the target. While no run is open all of it stays, and the target has no pods.

use super::{Arranged, LayoutError, Mark};
use crate::manifest::canonical::referenced_config_maps;
use crate::manifest::desired::{By, Plan, Set};
use crate::manifest::ids::{ObjectName, PodsDigest};
use crate::manifest::object::{Kind, Object, ObjectRef, section};
use crate::manifest::scaler;
use crate::manifest::tracked::moved;
use crate::record::posture::Names;
use crate::record::state::RoleName;
use crate::workload::layouts;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// What the names of stable's copies, and the label value of their pods, end in.
pub const SUFFIX: &str = "-primary";

/// The objects of a set while it is stable: the copies, what nobody makes a copy of, and the candidate's at rest.
///
/// # Errors
/// [`LayoutError`]: the set cannot be laid out so.
pub fn at_rest(
    set: &Set,
    names: &Names,
    pods: Option<&PodsDigest>,
) -> Result<BTreeMap<ObjectRef, Arranged>, LayoutError> {
    let wanted = layouts::required(set, Kind::Deployment, &names.target)?;
    let source = &moved(wanted, &set.tracked);
    let apex = layouts::serving(set, &names.service, &layouts::pod_labels(source), &names.target)?;
    let mark = layouts::mark(source, SUFFIX)?;
    let mut primary = layouts::copied(source, SUFFIX)?;
    layouts::relabel(&mut primary, &mark);
    only_label(&mut primary, &mark);
    let scaler = scaler::of(set.objects.values(), Kind::Deployment, &names.target);
    let mut target = layouts::with_replicas(source.clone(), Some(0));
    // How many pods it has without a rollout is its scaler's word.
    let plain = scaler.map_or_else(|| wanted.clone(), |_| layouts::with_replicas(wanted.clone(), None));
    for deployment in [&mut primary, &mut target] {
        pods.into_iter().for_each(|pods| layouts::label_pods(deployment, pods));
    }
    let mut copies = layouts::move_configs(&mut primary, SUFFIX, |name| set.get(Kind::ConfigMap, name))?;
    if let Some(scaler) = scaler {
        let copy = layouts::copied(scaler, SUFFIX)?;
        copies.push(scaler::moved(copy, &primary.reference().name));
    }
    copies.push(primary);
    copies.push(layouts::service_copy(apex, SUFFIX, &mark.key, &mark.copy)?);
    layouts::free(&copies, [set])?;
    let mut all: BTreeMap<ObjectRef, Arranged> = BTreeMap::new();
    let mut put = |object: Object, role, plain: Option<&Object>| {
        all.insert(object.reference().clone(), Arranged { object, role, plain: plain.cloned() });
    };
    let tracked = tracked(source, set);
    for (reference, object) in &set.objects {
        if let Some(scaler) = scaler.filter(|scaler| scaler.reference() == reference) {
            put(scaler::at_zero(scaler.clone()), RoleName::Candidate, Some(scaler));
            continue;
        }
        let read = tracked.contains(&reference.name) && reference.kind == Kind::ConfigMap;
        let role = if read { RoleName::Candidate } else { RoleName::Stable };
        put(object.clone(), role, None);
    }
    copies.into_iter().for_each(|copy| put(copy, RoleName::Stable, None));
    put(leading_to(apex, &mark), RoleName::Stable, Some(apex));
    put(canary_service(apex, &mark)?, RoleName::Candidate, None);
    put(target, RoleName::Candidate, Some(&plain));
    Ok(all)
}

/// The candidate's objects during a run: the target without `spec.replicas`, the Service that leads to it, the ConfigMaps that its
/// pods refer to, and its autoscaler, all under the names that the manifests give them.
///
/// # Errors
/// [`LayoutError`]: the set cannot be the candidate beside this stable set.
pub fn candidate(
    stable: &Set,
    candidate: &Set,
    plan: &Plan,
    names: &Names,
    pods: &PodsDigest,
) -> Result<BTreeMap<ObjectRef, Object>, LayoutError> {
    let source = &moved(layouts::required(candidate, Kind::Deployment, &names.target)?, &candidate.tracked);
    let apex = layouts::serving(candidate, &names.service, &layouts::pod_labels(source), &names.target)?;
    layouts::new_account(source, stable, candidate)?;
    alone(source, [stable, candidate])?;
    let mut target = layouts::with_replicas(source.clone(), None);
    layouts::label_pods(&mut target, pods);
    layouts::selects_own(&target)?;
    let mut all: Vec<Object> = Vec::new();
    for name in tracked(source, candidate) {
        all.extend(candidate.get(Kind::ConfigMap, &name).cloned());
    }
    // Two would scale nothing: another one comes when the old one goes.
    let [old, new] = [stable, candidate].map(|set| scaler::of(set.objects.values(), Kind::Deployment, &names.target));
    let stays = |new: &&Object| old.is_none_or(|old| old.reference() == new.reference());
    all.extend(new.filter(stays).cloned());
    let mark = layouts::mark(source, SUFFIX)?;
    if plan.traffic.as_ref().is_some_and(|traffic| traffic.router.by() == By::Selector) {
        [stable, candidate].into_iter().try_for_each(|set| layouts::tells_apart(set, &names.service, &mark))?;
        layouts::keeps_ports([stable, candidate], &names.service, source)?;
    }
    let mut copies = vec![canary_service(apex, &mark)?];
    // Its pods are the target's own, so what tells them by labels stays as it is.
    copies.extend(layouts::led_to_copy(apex, [stable, candidate], plan, |_| {})?);
    layouts::free(&copies, [stable, candidate])?;
    all.push(target);
    all.extend(copies);
    Ok(all.into_iter().map(|object| (object.reference().clone(), object)).collect())
}

/// Of the target's own labels the copy has the one that tells its pods apart, and no other (requirement C-30): what people
/// or tools find the target by must not find the copy. Its selector asks for that label alone.
fn only_label(primary: &mut Object, mark: &Mark) {
    let label = json!({ mark.key.as_str(): mark.copy });
    section(primary.value_mut(), &["metadata"]).insert("labels".to_owned(), label.clone());
    section(primary.value_mut(), &["spec"]).insert("selector".to_owned(), json!({ "matchLabels": label }));
}

/// The Service of the manifests, for stable's pods.
fn leading_to(apex: &Object, mark: &Mark) -> Object {
    let mut apex = apex.clone();
    section(apex.value_mut(), &["spec", "selector"]).insert(mark.key.clone(), mark.copy.as_str().into());
    apex
}

/// The Service that leads to the target's pods.
fn canary_service(apex: &Object, mark: &Mark) -> Result<Object, LayoutError> {
    layouts::service_copy(apex, layouts::SUFFIX, &mark.key, &mark.own)
}

/// The names of the set's ConfigMaps that the pods of a workload refer to.
fn tracked(workload: &Object, set: &Set) -> BTreeSet<ObjectName> {
    let template = workload.at("/spec/template").unwrap_or(&Value::Null);
    let names = referenced_config_maps(template).into_iter().filter_map(|name| name.parse().ok());
    names.filter(|name| set.get(Kind::ConfigMap, name).is_some()).collect()
}

/// What the candidate brings before its promotion nobody else may read.
fn alone(target: &Object, sets: [&Set; 2]) -> Result<(), LayoutError> {
    let [_, candidate] = sets;
    let own = tracked(target, candidate);
    let others = sets.into_iter().flat_map(|set| set.objects.values().map(move |object| (set, object)));
    for (set, other) in others {
        let reference = other.reference();
        if !Kind::WORKLOADS.contains(&reference.kind) || reference == target.reference() {
            continue;
        }
        if let Some(config) = tracked(other, set).intersection(&own).next() {
            return Err(LayoutError::SharedConfig { config: config.clone(), by: reference.clone() });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
