//! How Traefik is named in a rollout's file.

use crate::manifest::ids::ObjectName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An object of Traefik's and the Service that it leads to: exactly one of `traefikService` and `ingressRoute`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Traefik {
    /// The TraefikService among the manifests of whose weighted services the Service is one. One TraefikService belongs to one rollout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ObjectName")]
    pub traefik_service: Option<ObjectName>,
    /// The IngressRoute among the manifests whose routes lead to the Service. One IngressRoute belongs to one rollout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ObjectName")]
    pub ingress_route: Option<ObjectName>,
    /// The Service among the manifests that it names.
    pub service: ObjectName,
}
