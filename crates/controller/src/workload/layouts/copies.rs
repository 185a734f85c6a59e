//! How a copy of an object differs from the object: its name, one label, and the names of what it refers to.

use super::{LayoutError, pod_labels};
use crate::manifest::canonical::drop_allotted;
use crate::manifest::desired::Set;
use crate::manifest::ids::ObjectName;
use crate::manifest::object::{Object, ObjectRef, items_mut, section};
use crate::workload::selector::{self, PodLabels};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The labels that tell workloads apart by custom, most usual first; the list of Flagger's `-selector-labels`.
const SELECTOR_LABELS: [&str; 3] = ["app", "name", "app.kubernetes.io/name"];

/// The longest Service name and label value: RFC 1123 and the Kubernetes reference "Labels and Selectors".
pub(super) const MAX_NAME: usize = 63;

/// By which external-dns makes DNS records: with its copy's it would lead users past the split.
const PUBLISHED: &str = "external-dns.";

/// The label whose value tells the pods of a copy from those that the manifests ask for.
pub(in crate::workload) struct Mark {
    pub(in crate::workload) key: String,
    /// As in the manifests.
    pub(in crate::workload) own: String,
    /// The copy's.
    pub(in crate::workload) copy: String,
}

impl Mark {
    /// Makes labels that are those of the manifests' pods those of the copy's.
    pub(super) fn move_in(&self, labels: &mut Value) {
        if labels[&self.key] == self.own.as_str() {
            labels[&self.key] = self.copy.as_str().into();
        }
    }
}

/// The name of a copy.
///
/// # Errors
/// [`LayoutError::NameTooLong`] beyond 63 characters: then a Service could not have that name.
pub(super) fn copy_name(of: &ObjectRef, suffix: &'static str) -> Result<ObjectName, LayoutError> {
    with_suffix(&of.name, suffix).ok_or_else(|| LayoutError::NameTooLong { object: of.clone(), suffix })
}

pub(in crate::workload) fn with_suffix(name: &ObjectName, suffix: &str) -> Option<ObjectName> {
    let copy = format!("{name}{suffix}");
    (copy.len() <= MAX_NAME).then(|| copy.parse().ok()).flatten()
}

/// Whether a label or annotation is the mark of another applier (Helm, Argo CD, Flux, client-side kubectl). Copies drop
/// these, or that applier would take the copy for its own and remove it.
#[must_use]
pub fn is_applier_mark(key: &str) -> bool {
    matches!(
        key,
        "meta.helm.sh/release-name"
            | "meta.helm.sh/release-namespace"
            | "argocd.argoproj.io/tracking-id"
            | "kubectl.kubernetes.io/last-applied-configuration"
    ) || key.starts_with("kustomize.toolkit.fluxcd.io/")
        || key.starts_with("helm.toolkit.fluxcd.io/")
}

/// The object under its copy's name. Of the metadata only labels and annotations are copied: the rest belongs to one
/// object alone (owner references, finalizers, what a server filled in).
pub(in crate::workload) fn copied(object: &Object, suffix: &'static str) -> Result<Object, LayoutError> {
    let name = copy_name(object.reference(), suffix)?;
    let mut metadata = Map::new();
    for part in ["labels", "annotations"] {
        if let Some(Value::Object(all)) = object.value()["metadata"].get(part) {
            let kept = all.iter().filter(|(key, _)| !is_applier_mark(key));
            metadata.insert(part.to_owned(), kept.map(|(k, v)| (k.clone(), v.clone())).collect::<Map<_, _>>().into());
        }
    }
    let mut value = object.value().clone();
    value["metadata"] = metadata.into();
    section(&mut value, &[]).shift_remove("status");
    Ok(Object::new(ObjectRef { name, ..object.reference().clone() }, value))
}

/// The one of these labels that tells workloads apart by custom, and its value (requirement C-30).
#[must_use]
pub fn telling(labels: Option<&Value>) -> Option<(&str, &str)> {
    let labels = labels.and_then(Value::as_object);
    let value = |key| Some((key, labels?.get(key)?.as_str().unwrap_or_default()));
    let least = || labels?.keys().map(String::as_str).min().and_then(value);
    SELECTOR_LABELS.into_iter().find_map(value).or_else(least)
}

/// The label that tells the target's pods from others', and its value.
pub(super) fn selector_label(deployment: &Object) -> Result<(&str, &str), LayoutError> {
    let missing = || LayoutError::NoSelectorLabel { deployment: deployment.reference().name.clone() };
    telling(deployment.at("/spec/selector/matchLabels")).ok_or_else(missing)
}

pub(in crate::workload) fn mark(deployment: &Object, suffix: &'static str) -> Result<Mark, LayoutError> {
    let (key, value) = selector_label(deployment)?;
    if value.is_empty() || value.len() + suffix.len() > MAX_NAME {
        let deployment = deployment.reference().name.clone();
        return Err(LayoutError::LabelValue { deployment, key: key.into(), value: value.into(), suffix });
    }
    Ok(Mark { key: key.to_owned(), own: value.to_owned(), copy: format!("{value}{suffix}") })
}

/// Gives the copy's pods, its selector and the template's own rules about its pods the copy's label value.
pub(in crate::workload) fn relabel(deployment: &mut Object, mark: &Mark) {
    let own = |selector: &mut Value| selector::replace(selector, &mark.key, &mark.own, &mark.copy);
    let spec = &mut deployment.value_mut()["spec"];
    own(&mut spec["selector"]);
    section(spec, &["template", "metadata", "labels"]).insert(mark.key.clone(), mark.copy.as_str().into());
    let pod = &mut spec["template"]["spec"];
    let spread = items_mut(pod, "topologySpreadConstraints").filter_map(|c| c.get_mut("labelSelector"));
    spread.for_each(own);
    for affinity in ["podAffinity", "podAntiAffinity"] {
        let Some(rules) = pod.get_mut("affinity").and_then(|a| a.get_mut(affinity)) else { continue };
        let required = items_mut(rules, "requiredDuringSchedulingIgnoredDuringExecution");
        required.filter_map(|term| term.get_mut("labelSelector")).for_each(own);
        let preferred = items_mut(rules, "preferredDuringSchedulingIgnoredDuringExecution");
        preferred.filter_map(|p| p.get_mut("podAffinityTerm")?.get_mut("labelSelector")).for_each(own);
    }
}

/// The pod labels before [`relabel`]: those that the manifests' Service must select.
pub(super) fn mark_back(deployment: &Object, mark: &Mark) -> PodLabels {
    let mut labels = pod_labels(deployment);
    labels.insert(mark.key.clone(), mark.own.as_str().into());
    labels
}

/// The Service's copy, for the pods with that label ([`inside`]).
pub(in crate::workload) fn service_copy(
    service: &Object,
    suffix: &'static str,
    key: &str,
    value: &str,
) -> Result<Object, LayoutError> {
    let mut copy = inside(service, suffix)?;
    section(copy.value_mut(), &["spec", "selector"]).insert(key.to_owned(), value.into());
    Ok(copy)
}

/// A copy of a Service that is reachable inside the cluster alone, whatever stable's type is: without what the API server or
/// a load balancer allocated for stable (requirement C-25), and without what would have a name published for it.
pub(in crate::workload) fn inside(service: &Object, suffix: &'static str) -> Result<Object, LayoutError> {
    let mut copy = copied(service, suffix)?;
    if let Some(Value::Object(annotations)) = copy.value_mut().pointer_mut("/metadata/annotations") {
        annotations.retain(|key, _| !key.starts_with(PUBLISHED));
    }
    let spec = &mut copy.value_mut()["spec"];
    drop_allotted(spec);
    let spec = section(spec, &[]);
    spec.retain(|field, _| {
        let outside = ["externalIPs", "externalName", "externalTrafficPolicy", "allocateLoadBalancerNodePorts"];
        !field.starts_with("loadBalancer") && !outside.contains(&field.as_str())
    });
    spec.insert("type".to_owned(), "ClusterIP".into());
    Ok(copy)
}

/// Copies of the ConfigMaps that the Deployment's pods refer to and `moved` gives; the references in `deployment` are
/// changed to them.
pub(in crate::workload) fn move_configs<'a>(
    deployment: &mut Object,
    suffix: &'static str,
    moved: impl Fn(&ObjectName) -> Option<&'a Object>,
) -> Result<Vec<Object>, LayoutError> {
    let pod = section(deployment.value_mut(), &["spec", "template"]).entry("spec").or_insert(Value::Null);
    let mut copies = BTreeMap::new();
    each_config_name(pod, &mut |name| {
        if let Some(config) = name.as_str().and_then(|n| n.parse().ok()).and_then(|n| moved(&n)) {
            *name = format!("{}{suffix}", config.reference().name).into();
            copies.insert(config.reference(), config);
        }
    });
    let copy = |config: &&Object| {
        let mut copy = copied(config, suffix)?;
        // A copy that a crash left behind must be able to take the next candidate's content.
        section(copy.value_mut(), &[]).shift_remove("immutable");
        Ok(copy)
    };
    copies.values().map(copy).collect()
}

/// Visits every name by which a pod refers to a ConfigMap.
fn each_config_name(pod: &mut Value, visit: &mut impl FnMut(&mut Value)) {
    let mut at = |holder: &mut Value, pointer: &str| {
        if let Some(name) = holder.pointer_mut(pointer) {
            visit(name);
        }
    };
    for volume in items_mut(pod, "volumes") {
        at(volume, "/configMap/name");
        if let Some(projected) = volume.get_mut("projected") {
            items_mut(projected, "sources").for_each(|source| at(source, "/configMap/name"));
        }
    }
    for containers in ["initContainers", "containers", "ephemeralContainers"] {
        for container in items_mut(pod, containers) {
            items_mut(container, "env").for_each(|env| at(env, "/valueFrom/configMapKeyRef/name"));
            items_mut(container, "envFrom").for_each(|from| at(from, "/configMapRef/name"));
        }
    }
}

/// Nobody may have the name of a copy in these sets.
pub(in crate::workload) fn free<'a>(
    copies: impl IntoIterator<Item = &'a Object>,
    sets: impl IntoIterator<Item = &'a Set> + Clone,
) -> Result<(), LayoutError> {
    let taken = |copy: &&Object| sets.clone().into_iter().any(|set| set.objects.contains_key(copy.reference()));
    match copies.into_iter().find(taken) {
        Some(copy) => Err(LayoutError::NameTaken { object: copy.reference().clone() }),
        None => Ok(()),
    }
}
