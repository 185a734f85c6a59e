//! What is in the cluster, as a person sees it.

use super::world::World;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams};
use serde_json::Value;
use std::collections::BTreeSet;

impl World {
    /// An object as it is.
    pub(super) async fn get(&self, kind: &str, name: &str) -> Option<Value> {
        let found = self.objects(kind).get_opt(name).await.unwrap();
        found.map(|object| serde_json::to_value(object).unwrap())
    }

    /// The API of a kind.
    pub(super) fn objects(&self, kind: &str) -> Api<DynamicObject> {
        let (group, version) = match kind {
            "Deployment" | "StatefulSet" | "DaemonSet" => ("apps", "v1"),
            "HTTPRoute" => ("gateway.networking.k8s.io", "v1"),
            "HorizontalPodAutoscaler" => ("autoscaling", "v2"),
            "ScaledObject" => ("keda.sh", "v1alpha1"),
            "PodDisruptionBudget" => ("policy", "v1"),
            _ => ("", "v1"),
        };
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::namespaced_with(self.space.client.clone(), &self.space.name, &resource)
    }

    /// The share of requests that the route of `web` sends to the new version, in percent.
    pub(super) async fn weight(&self) -> i64 {
        let route = self.get("HTTPRoute", "web").await.unwrap();
        let rule = route["spec"]["rules"].as_array().unwrap().last().unwrap().clone();
        let refs = rule["backendRefs"].as_array().cloned().unwrap_or_default();
        let weight =
            |name: &str| refs.iter().find(|r| r["name"] == name).map_or(0, |r| r["weight"].as_i64().unwrap_or(1));
        let (stable, candidate) = (weight("web"), weight("web-canary"));
        candidate * 100 / (stable + candidate).max(1)
    }

    /// Whether the gateway does what the route of `web` says now.
    pub(super) async fn in_force(&self) -> bool {
        let route = self.get("HTTPRoute", "web").await.unwrap();
        let conditions = route["status"]["parents"][0]["conditions"].as_array().cloned().unwrap_or_default();
        let is_new = |condition: &Value| condition["observedGeneration"] == route["metadata"]["generation"];
        !conditions.is_empty() && conditions.iter().all(is_new)
    }

    /// The names of all objects of these kinds that are the new version's, or carry a mark of a run.
    pub(super) async fn traces(&self) -> Vec<String> {
        let mut traces = Vec::new();
        for kind in ["Deployment", "Service", "ConfigMap", "HTTPRoute"] {
            for object in self.objects(kind).list(&ListParams::default()).await.unwrap() {
                let marked = object.annotations().contains_key("tidegate.io/retreated");
                if marked || object.name_any().ends_with("-canary") {
                    traces.push(format!("{kind}/{}", object.name_any()));
                }
            }
        }
        traces
    }

    /// The uids of the pods of an app.
    pub(super) async fn pods(&self, app: &str) -> BTreeSet<String> {
        let pods: Api<Pod> = self.space.api();
        let pods = pods.list(&ListParams::default().labels(&format!("app={app}"))).await.unwrap();
        pods.into_iter().filter_map(|pod| pod.metadata.uid).collect()
    }
}
