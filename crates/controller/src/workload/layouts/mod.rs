//! What the objects of both roles look like in the cluster, without sizes and without the split, and the layout `inPlace`.
//!
//! There stable keeps its names and is exactly what the manifests say. The candidate's objects exist only during a run; they
//! get another name, and one label that tells their pods from stable's. The other layouts are [`primary`] and
//! [`versioned`]. Never looks at the cluster; called by the planner.

mod configs;
mod copies;
mod extra_route;
mod ports;
pub mod primary;
pub mod versioned;

pub(super) use configs::new_configs;
pub(super) use copies::{Mark, copied, free, inside, mark, move_configs, relabel, service_copy, with_suffix};
pub use copies::{is_applier_mark, telling};
pub(super) use extra_route::{led_to_copy, offers_ports};
pub(super) use ports::keeps_ports;

use self::configs::changed_config;
use self::copies::{MAX_NAME, mark_back, selector_label};
use super::kinds::{nodes, service};
use super::selector::{self, PodLabels};
use super::tracked;
use crate::manifest::desired::{By, Plan, Set, TargetKind};
use crate::manifest::ids::{ObjectName, PodsDigest};
use crate::manifest::object::{Kind, Object, ObjectRef, PODS, section};
use crate::manifest::scaler;
use crate::manifest::traefik::copier_suffix;
use crate::record::posture::Naming;
use crate::record::state::RoleName;
use serde_json::Value;
use std::collections::BTreeMap;

/// What the names of the candidate's objects, and the label value of its pods, end in.
pub const SUFFIX: &str = "-canary";

/// Why a set has no candidate's objects. Each is the content's fault, known before anything is written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// An object that the rollout names is not in the set.
    #[error("the manifests hold no {kind} {name}, which the rollout names; list its file in spec.manifests")]
    Missing {
        /// Its kind.
        kind: Kind,
        /// Its name.
        name: ObjectName,
    },
    /// The copy's name would be too long.
    #[error("{object}: the name of its copy, {object_name}{suffix}, has more than 63 characters; shorten it to at most {most}",
        object_name = object.name, most = MAX_NAME - suffix.len())]
    NameTooLong {
        /// The object.
        object: ObjectRef,
        /// What the copy's name ends in.
        suffix: &'static str,
    },
    /// The set itself holds an object of the copy's name.
    #[error("{object} is in the manifests, but that name belongs to a copy that the rollout makes; rename it")]
    NameTaken {
        /// The object that is in the way.
        object: ObjectRef,
    },
    /// There is no label to tell the pods apart by.
    #[error(
        "Deployment {deployment}: spec.selector.matchLabels is empty; a label there, such as app, tells the candidate's \
         pods from stable's"
    )]
    NoSelectorLabel {
        /// The target.
        deployment: ObjectName,
    },
    /// The label's value cannot take the suffix.
    #[error(
        "Deployment {deployment}: the label {key}={value} cannot become {value}{suffix}, since a label value starts with \
         a letter or a digit and has at most 63 characters"
    )]
    LabelValue {
        /// The target.
        deployment: ObjectName,
        /// The label.
        key: String,
        /// Its value.
        value: String,
        /// What the copy's value ends in.
        suffix: &'static str,
    },
    /// The Deployment would not select its own pods.
    #[error(
        "Deployment {deployment}: spec.selector does not select the labels of its own pod template; the API server \
         refuses such a Deployment"
    )]
    SelectsNoPods {
        /// The target.
        deployment: ObjectName,
    },
    /// The Service that is split does not lead to the target.
    #[error(
        "Service {service} does not select the pods of Deployment {deployment}, so there is nothing to split: its selector \
         must be labels of the pod template"
    )]
    ServiceMissesPods {
        /// The Service.
        service: ObjectName,
        /// The target.
        deployment: ObjectName,
    },
    /// The Service that is switched does not ask for the label that the roles differ in.
    #[error(
        "Service {service} does not select by the label {key}, which tells the candidate's pods from stable's; add it to \
         spec.selector, in a commit of its own first"
    )]
    TellsNobodyApart {
        /// The Service.
        service: ObjectName,
        /// The label.
        key: String,
    },
    /// An alias has no pods of its own.
    #[error("Service {service} is of type ExternalName: a DNS alias, which has no pods to split requests between")]
    ExternalName {
        /// The Service.
        service: ObjectName,
    },
    /// The route in force sends to a port that the new Service does not have.
    #[error(
        "the stable {route} sends to port {port} of Service {service}, which the new version of that Service no longer \
         has; keep the port until a version whose route does without it is promoted"
    )]
    PortMissing {
        /// The kind of the route.
        route: Kind,
        /// The Service.
        service: ObjectName,
        /// The port.
        port: String,
    },
    /// Stable's Service would lead to a port that the new version's pods do not have.
    #[error(
        "Service {service} leads to the pods of both versions until promotion, and its port {port} leads to {old} as promoted, \
         and to {new} in this version; let targetPort be the name of a port that the pods of both versions have, in a commit of its \
         own first: then its number may change"
    )]
    PortMoves {
        /// The Service.
        service: ObjectName,
        /// Its port.
        port: String,
        /// The port of the pods that it leads to.
        old: String,
        /// That of the new version.
        new: String,
    },
    /// There is nothing in force that could be split.
    #[error(
        "{route} {name} is new in this version, and it is the promoted version's route that splits requests until \
         promotion; add it in a commit of its own first"
    )]
    NewRoute {
        /// Its kind.
        route: Kind,
        /// Its name.
        name: ObjectName,
    },
    /// What the candidate brings would be read by others.
    #[error(
        "ConfigMap {config} is the target's, and the layout primary brings the candidate's version of it under its own name: \
         {by} must not refer to it as well; give each a ConfigMap of its own"
    )]
    SharedConfig {
        /// The ConfigMap.
        config: ObjectName,
        /// Which workload else refers to it.
        by: ObjectRef,
    },
    /// Pods of both versions would read it.
    #[error(
        "ConfigMap {config} has other content in this version, and the pods of {kind} {target} that are still of the \
         promoted version read it under this name as well; give the new content a new name, such as {config}-2, and refer to that"
    )]
    ConfigInUse {
        /// The ConfigMap.
        config: ObjectName,
        /// The kind of the target.
        kind: Kind,
        /// The target.
        target: ObjectName,
    },
    /// With the layout `versioned` each version has names of its own.
    #[error(
        "{object} is the promoted version's as well, and with the layout versioned the new version's Deployment and Service \
         have names of their own; give both new names, such as {name}-2, in the manifests and in the rollout's file",
        name = object.name
    )]
    NameKept {
        /// The object that both have.
        object: ObjectRef,
    },
    /// With the layout `versioned` the candidate's pods would start with stable's content.
    #[error(
        "ConfigMap {config} has other content in this version, under the name by which the promoted version is read; Deployment \
         {deployment} would start with the old content: give the new content a new name, such as {config}-2, and refer to that"
    )]
    ConfigKept {
        /// The ConfigMap.
        config: ObjectName,
        /// The target of the new version.
        deployment: ObjectName,
    },
    /// With the layout `versioned` the two versions' pods must be told apart by their selectors.
    #[error(
        "{by} selects the pods of the other version's Deployment {deployment} too; give each version a label value of its own, \
         in the pod template and in the selectors of its Deployment and Service"
    )]
    SelectsOther {
        /// Whose selector.
        by: ObjectRef,
        /// Whose pods.
        deployment: ObjectName,
    },
    /// The candidate's pods could not start.
    #[error(
        "ServiceAccount {name} is new in this version, and the candidate's pods need it before anything of this version \
         is promoted; add it in a commit of its own first"
    )]
    NewServiceAccount {
        /// The ServiceAccount.
        name: ObjectName,
    },
}

/// An object in its layout.
#[derive(Debug, Clone, PartialEq)]
pub struct Arranged {
    /// The object.
    pub object: Object,
    /// Whose it is.
    pub role: RoleName,
    /// How the manifests have it, where the layout makes something else of it: it may be live so at first sight.
    pub plain: Option<Object>,
}

/// The objects while this set is stable, those of a candidate at rest among them; the target's pods carry `pods` if given
/// (design §13.4). In place they are exactly what the manifests say.
///
/// # Errors
/// [`LayoutError`]: the set cannot be laid out so.
pub fn at_rest(
    set: &Set,
    plan: &Plan,
    naming: &Naming,
    pods: Option<&PodsDigest>,
) -> Result<BTreeMap<ObjectRef, Arranged>, LayoutError> {
    if let Naming::Primary(names) = naming {
        return primary::at_rest(set, names, pods);
    }
    let target = naming.workload(RoleName::Stable, &plan.target.name);
    let mut objects = set.objects.clone();
    let kind = plan.target.kind.kind();
    let is_target = |o: &&mut Object| o.reference().kind == kind && o.reference().name == target;
    let pods = pods.filter(|_| plan.target.kind != TargetKind::Service);
    if let (Some(target), Some(pods)) = (objects.values_mut().find(is_target), pods) {
        label_pods(target, pods);
    }
    let arranged = |object| Arranged { object, role: RoleName::Stable, plain: None };
    Ok(objects.into_iter().map(|(reference, object)| (reference, arranged(object))).collect())
}

/// The candidate's objects during a run.
///
/// # Errors
/// [`LayoutError`]: the set cannot have a candidate beside this stable set.
pub fn of_candidate(
    stable: &Set,
    new: &Set,
    plan: &Plan,
    naming: &Naming,
    pods: &PodsDigest,
) -> Result<BTreeMap<ObjectRef, Object>, LayoutError> {
    match naming {
        Naming::InPlace | Naming::Leaving(_) => candidate(stable, new, plan, pods),
        Naming::Primary(names) => primary::candidate(stable, new, plan, names, pods),
        // What nodes have of it, nodes decide.
        Naming::Shared if plan.target.kind == TargetKind::NodeConfig => Ok(BTreeMap::new()),
        Naming::Shared => shared(stable, new, plan, pods),
        Naming::Versioned(versions) => versioned::candidate(stable, new, plan, versions, pods),
    }
}

/// The candidate's objects in place: the target without `spec.replicas` (see [`with_replicas`]), the Service's copy
/// for a router that needs one, and the ConfigMaps of the target that differ from stable's (requirements C-25, C-30).
/// Without a router there is no candidate, and nothing is returned.
///
/// # Errors
/// [`LayoutError`]: the set cannot have a candidate beside this stable set.
pub fn candidate(
    stable: &Set,
    candidate: &Set,
    plan: &Plan,
    pods: &PodsDigest,
) -> Result<BTreeMap<ObjectRef, Object>, LayoutError> {
    let Some(traffic) = &plan.traffic else { return Ok(BTreeMap::new()) };
    if plan.target.kind == TargetKind::Service {
        return service::candidate(stable, candidate, plan);
    }
    let source = required(candidate, Kind::Deployment, &plan.target.name)?;
    let mut deployment = copied(source, SUFFIX)?;
    section(deployment.value_mut(), &["spec"]).shift_remove("replicas");
    label_pods(&mut deployment, pods);
    let mut copies = move_configs(&mut deployment, SUFFIX, |name| changed_config(name, stable, candidate))?;
    new_account(source, stable, candidate)?;
    match (traffic.router.by(), traffic.router.service()) {
        (By::Route, Some(service)) => {
            let mark = mark(source, SUFFIX)?;
            relabel(&mut deployment, &mark);
            let source = serving(candidate, service, &mark_back(&deployment, &mark), &plan.target.name)?;
            copies.extend(led_to_copy(source, [stable, candidate], plan, |labels| mark.move_in(labels))?);
            copies.push(service_copy(source, SUFFIX, &mark.key, &mark.copy)?);
        }
        (By::Selector, Some(service)) => {
            let mark = mark(source, SUFFIX)?;
            relabel(&mut deployment, &mark);
            let apex = serving(candidate, service, &mark_back(&deployment, &mark), &plan.target.name)?;
            [stable, candidate].into_iter().try_for_each(|set| tells_apart(set, service, &mark))?;
            keeps_ports([stable, candidate], service, source)?;
            copies.push(service_copy(apex, SUFFIX, &mark.key, &mark.copy)?);
        }
        (By::Pods, Some(service)) => {
            selector_label(source)?;
            for set in [stable, candidate] {
                serving(set, service, &pod_labels(&deployment), &plan.target.name)?;
            }
            keeps_ports([stable, candidate], service, source)?;
            section(deployment.value_mut(), &["spec", "selector", "matchLabels"])
                .insert(PODS.to_owned(), pods.as_str().into());
        }
        // It has no copy: `shared` makes what it needs.
        (By::Units, _) | (_, None) => return Ok(BTreeMap::new()),
    }
    selects_own(&deployment).map_err(|_| LayoutError::SelectsNoPods { deployment: plan.target.name.clone() })?;
    copies.push(deployment);
    free(&copies, [stable, candidate])?;
    Ok(copies.into_iter().map(|copy| (copy.reference().clone(), copy)).collect())
}

/// The candidate's objects where both versions are pods of one workload: that, and the ConfigMaps that only its pods need.
///
/// # Errors
/// [`LayoutError`]: its pods would need what stable's pods read in another version.
fn shared(stable: &Set, new: &Set, plan: &Plan, pods: &PodsDigest) -> Result<BTreeMap<ObjectRef, Object>, LayoutError> {
    let [old, source] = [stable, new].map(|set| required(set, plan.target.kind.kind(), &plan.target.name));
    let (old, source) = (old?, source?);
    new_account(source, stable, new)?;
    ports::kept_by_all([stable, new], source)?;
    let (kind, target) = (plan.target.kind.kind(), plan.target.name.clone());
    let added = new_configs(source, stable, new);
    let added = added.map_err(|config| LayoutError::ConfigInUse { config, kind, target })?;
    let all = added.into_iter().cloned().chain([super::kinds::shared::with_template(old, source, pods)]);
    Ok(all.map(|object| (object.reference().clone(), object)).collect())
}

/// The name of the candidate's copy of something of that name; none if it would be too long.
#[must_use]
pub fn suffixed(name: &ObjectName) -> Option<ObjectName> {
    with_suffix(name, SUFFIX)
}

/// The same object with `spec.replicas` as given, or without it, so that a scaler keeps its say.
#[must_use]
pub fn with_replicas(mut object: Object, replicas: Option<u32>) -> Object {
    let spec = section(object.value_mut(), &["spec"]);
    match replicas {
        Some(replicas) => spec.insert("replicas".to_owned(), replicas.into()),
        None => spec.shift_remove("replicas"),
    };
    object
}

/// How many pods the set asks for: declared if above 0, else the autoscaler's minimum, else 1 (requirement C-31).
#[must_use]
pub fn declared_replicas(set: &Set, plan: &Plan) -> u32 {
    let above_zero = |n: i64| u32::try_from(n).ok().filter(|n| *n > 0);
    let declared = set.get(plan.target.kind.kind(), &plan.target.name).and_then(|d| d.int("/spec/replicas"));
    let minimum =
        || scaler::of(set.objects.values(), plan.target.kind.kind(), &plan.target.name).and_then(scaler::least);
    declared.and_then(above_zero).or_else(minimum).unwrap_or(1).max(1)
}

/// Whether an object of that name is one that a rollout of this set makes: one of the set's own, or a copy of one.
#[must_use]
pub fn makes(set: &Set, reference: &ObjectRef) -> bool {
    set.objects.contains_key(reference) || copies(set, reference)
}

/// Whether an object of that name is a copy that a rollout of this set makes.
#[must_use]
pub fn copies(set: &Set, reference: &ObjectRef) -> bool {
    if tracked::makes(set, reference) || nodes::may_be_content(set, reference) {
        return true;
    }
    let name = reference.name.as_str();
    let mut originals =
        [SUFFIX, primary::SUFFIX].into_iter().filter_map(|suffix| name.strip_suffix(suffix)?.parse().ok());
    let copied = |kind, name: &ObjectName| set.get(kind, name).is_some();
    // Beside an IngressRoute there may be a TraefikService.
    let copier = name.strip_suffix(copier_suffix(Kind::IngressRoute)).and_then(|name| name.parse().ok());
    let beside = reference.kind == Kind::TraefikService && copier.is_some_and(|of| copied(Kind::IngressRoute, &of));
    !set.objects.contains_key(reference) && (beside || originals.any(|name| copied(reference.kind, &name)))
}

/// The labels of a Deployment's pods.
#[must_use]
pub fn pod_labels(deployment: &Object) -> PodLabels {
    deployment.at("/spec/template/metadata/labels").and_then(Value::as_object).cloned().unwrap_or_default()
}

/// A Deployment selects the pods of its own template, or the API server refuses it.
pub(super) fn selects_own(deployment: &Object) -> Result<(), LayoutError> {
    let own = selector::matches(deployment.at("/spec/selector").unwrap_or(&Value::Null), &pod_labels(deployment));
    let deployment = deployment.reference().name.clone();
    own.then_some(()).ok_or(LayoutError::SelectsNoPods { deployment })
}

pub(super) fn required<'a>(set: &'a Set, kind: Kind, name: &ObjectName) -> Result<&'a Object, LayoutError> {
    set.get(kind, name).ok_or_else(|| LayoutError::Missing { kind, name: name.clone() })
}

pub(super) fn label_pods(deployment: &mut Object, pods: &PodsDigest) {
    section(deployment.value_mut(), &["spec", "template", "metadata", "labels"])
        .insert(PODS.to_owned(), pods.as_str().into());
}

/// The set's Service, if requests to it reach pods with these labels.
pub(super) fn serving<'a>(
    set: &'a Set,
    name: &ObjectName,
    pods: &PodLabels,
    target: &ObjectName,
) -> Result<&'a Object, LayoutError> {
    let service = required(set, Kind::Service, name)?;
    if service.text("/spec/type") == Some("ExternalName") {
        return Err(LayoutError::ExternalName { service: name.clone() });
    }
    if !selector::serves(service.at("/spec/selector"), pods) {
        return Err(LayoutError::ServiceMissesPods { service: name.clone(), deployment: target.clone() });
    }
    Ok(service)
}

/// A Service that is switched from one role to the other has to ask for the label that tells them apart.
pub(super) fn tells_apart(set: &Set, service: &ObjectName, mark: &Mark) -> Result<(), LayoutError> {
    let asked = telling(required(set, Kind::Service, service)?.at("/spec/selector"));
    let told = asked.is_some_and(|(key, _)| key == mark.key);
    let missing = || LayoutError::TellsNobodyApart { service: service.clone(), key: mark.key.clone() };
    told.then_some(()).ok_or_else(missing)
}

/// A ServiceAccount has no copy, since role bindings name it; a new one would reach the cluster only at promotion.
pub(super) fn new_account(deployment: &Object, stable: &Set, candidate: &Set) -> Result<(), LayoutError> {
    let name = deployment.text("/spec/template/spec/serviceAccountName").and_then(|name| name.parse().ok());
    match name {
        Some(name)
            if candidate.get(Kind::ServiceAccount, &name).is_some()
                && stable.get(Kind::ServiceAccount, &name).is_none() =>
        {
            Err(LayoutError::NewServiceAccount { name })
        }
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
