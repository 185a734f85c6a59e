//! How objects are written into answers: whole, or their metadata alone. Pure.

use super::resource::{Resource, Trait};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Value, json};
use std::sync::Arc;

/// What of an object is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Whole,
    /// `PartialObjectMetadata`.
    Metadata,
}

impl Form {
    /// The form that an `Accept` header asks for.
    pub(super) fn of(accept: &str) -> Self {
        let first = accept.split(',').next().unwrap_or_default();
        if first.contains("as=PartialObjectMetadata") { Self::Metadata } else { Self::Whole }
    }

    /// An object in this form.
    pub(super) fn object(self, object: &Arc<Value>) -> Arc<Value> {
        match self {
            Self::Whole => object.clone(),
            Self::Metadata => Arc::new(json!({
                "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"],
            })),
        }
    }

    /// An object as the item of a list: those that are built in do not repeat their kind there.
    pub(super) fn item(self, resource: &Resource, object: &Arc<Value>) -> Vec<u8> {
        let bytes = match self {
            Self::Metadata => serde_json::to_vec(self.object(object).as_ref()),
            Self::Whole if resource.is(Trait::Custom) => serde_json::to_vec(object.as_ref()),
            Self::Whole => serde_json::to_vec(&WithoutKind(object)),
        };
        bytes.expect("a JSON value can be written because its keys are texts")
    }

    /// Kind and version of a list.
    pub(super) fn list(self, resource: &Resource) -> (String, &'static str) {
        match self {
            Self::Whole => (format!("{}List", resource.kind), resource.api_version),
            Self::Metadata => ("PartialObjectMetadataList".to_owned(), "meta.k8s.io/v1"),
        }
    }
}

struct WithoutKind<'a>(&'a Value);

impl Serialize for WithoutKind<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in self.0.as_object().into_iter().flatten() {
            if key != "kind" && key != "apiVersion" {
                map.serialize_entry(key, value)?;
            }
        }
        map.end()
    }
}
