//! Objects that were read from a cluster: what people keep of them, as they would have written it.

use super::input::{Document, Field, Input};
use super::{Tool, yaml};
use serde_json::Value;
use tidegate_controller::manifest::object::Kind;
use tidegate_controller::plan::adoption;

/// What an application has beside the tool's own objects.
const BESIDE: &str = "services,hpa,scaledobjects,ingresses,destinationrules";

/// How what a tool manages is taken out of a cluster, line by line, with these options of kubectl and those of the import. The kinds stand
/// alone: a line that a screen breaks could not be copied.
#[must_use]
pub fn commands(tool: Tool, kubectl: &str, import: &str) -> Vec<String> {
    let (own, others) = match tool {
        Tool::Flagger => ("canaries,metrictemplates,deployments,daemonsets,configmaps", ""),
        Tool::Argo => (
            "rollouts.argoproj.io,analysistemplates,clusteranalysistemplates",
            ",httproutes,virtualservices,traefikservices",
        ),
        Tool::Bare => return Vec::new(),
    };
    let (name, kinds) = (tool.name(), format!("{own},{BESIDE}{others}"));
    vec![format!("{name}={kinds}"), format!("kubectl {kubectl}get ${name} -o yaml | tidegate import {name} -{import}")]
}

/// What the API server fills in of the metadata.
const FILLED: [&str; 8] = [
    "creationTimestamp",
    "generateName",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];
/// Annotations that tools keep for themselves.
const KEPT: [&str; 2] = ["deployment.kubernetes.io/revision", "kubectl.kubernetes.io/last-applied-configuration"];
/// What other such annotations begin with.
const PREFIXES: [&str; 2] = ["rollout.argoproj.io/", "argo-rollouts.argoproj.io/"];
/// ConfigMaps that something makes in every namespace.
const EVERYWHERE: [&str; 3] = ["kube-root-ca.crt", "istio-ca-root-cert", "openshift-service-ca.crt"];

/// Parts what people keep from what is made of it in the cluster, by a tool whose group that is or in every namespace.
pub(super) fn parted(documents: Vec<Document>, tool: Tool) -> Input {
    let (made, documents): (Vec<Document>, Vec<Document>) =
        documents.into_iter().partition(|document| maker(document, tool).is_some());
    Input { documents: documents.into_iter().map(cleaned).collect(), made }
}

/// Who makes an object in the cluster, in words: an object of a tool's group, or whoever does so in every namespace.
pub(super) fn maker(document: &Document, tool: Tool) -> Option<String> {
    if document.manifest() == Some(Kind::ConfigMap) && EVERYWHERE.contains(&document.name.as_str()) {
        return Some("every namespace is given one".to_owned());
    }
    let owners = document.at("/metadata/ownerReferences").items();
    let words = |owner: &Field<'_>, key: &str| owner.get(key).text().unwrap_or_default().to_owned();
    let is_tool = |owner: &&Field<'_>| tool.owns(&words(owner, "apiVersion"));
    let owner = owners.iter().filter(|_| !tool.owns(&document.api_version)).find(is_tool)?;
    Some(format!("the {} {} has it made in the cluster", words(owner, "kind"), words(owner, "name")))
}

/// Whether it was read from a cluster.
pub(super) fn is_live(document: &Document) -> bool {
    ["/status", "/metadata/uid", "/metadata/managedFields"].iter().any(|at| document.at(at).is_there())
}

/// Leaves out of its text what the API server has filled in, if it was read from one.
fn cleaned(document: Document) -> Document {
    if !is_live(&document) {
        return document;
    }
    Document { text: yaml::written(&value(&document)), ..document }
}

/// Its value without what the API server has filled in, if it was read from one.
pub(super) fn value(document: &Document) -> Value {
    let mut value = document.node.value();
    if !is_live(document) {
        return value;
    }
    let fields = |value: &mut Value, pointer: &str, is_kept: &dyn Fn(&str, &Value) -> bool| {
        let map = value.pointer_mut(pointer).and_then(Value::as_object_mut);
        map.into_iter().for_each(|map| map.retain(|key, value| is_kept(key, value)));
    };
    fields(&mut value, "", &|key, _| key != "status");
    fields(&mut value, "/metadata/annotations", &|key, _| {
        !KEPT.contains(&key) && !PREFIXES.iter().any(|prefix| key.starts_with(prefix))
    });
    fields(&mut value, "/metadata", &|key, value| {
        !FILLED.contains(&key) && (key != "annotations" || value.as_object().is_none_or(|map| !map.is_empty()))
    });
    fields(&mut value, "/spec/template/metadata", &|_, value| !value.is_null());
    if document.manifest() == Some(Kind::Service) {
        adoption::allotted(&mut value);
    }
    value
}
