//! Objects that were read from a cluster, as people would have written them.

use super::input::Document;
use super::yaml;
use crate::manifest::object::Kind;
use crate::plan::takeover;
use serde_json::Value;

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
/// Leaves out what the API server has filled in, of an object that was read from one.
pub(super) fn cleaned(document: Document) -> Document {
    let live = ["/status", "/metadata/uid", "/metadata/managedFields"].iter().any(|at| document.at(at).is_there());
    if !live {
        return document;
    }
    let mut value = document.node.value();
    value.as_object_mut().into_iter().for_each(|object| drop(object.remove("status")));
    if let Some(metadata) = value["metadata"].as_object_mut() {
        metadata.retain(|key, _| !FILLED.contains(&key.as_str()));
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.retain(|key, _| !KEPT.contains(&key.as_str()));
            if annotations.is_empty() {
                metadata.remove("annotations");
            }
        }
    }
    if let Some(template) = value.pointer_mut("/spec/template/metadata").and_then(Value::as_object_mut) {
        template.retain(|_, value| !value.is_null());
    }
    if document.manifest() == Some(Kind::Service) {
        takeover::allotted(&mut value);
    }
    Document { text: yaml::written(&value), ..document }
}
