//! Plays KEDA: of each ScaledObject it makes the autoscaler that the real one would make, which the real autoscaling controller
//! then follows. No trigger is ever looked at.

use super::world::World;
use futures::StreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt};
use serde_json::json;
use tokio::task::JoinHandle;

/// At how many pods a ScaledObject holds its Deployment.
const PAUSED: &str = "autoscaling.keda.sh/paused-replicas";

/// In one namespace, until dropped.
pub(super) struct Keda(JoinHandle<()>);

impl Keda {
    pub(super) fn play(world: &World) -> Self {
        let (client, scaled) = (world.space.client.clone(), world.objects("ScaledObject"));
        Self(tokio::spawn(async move {
            let mut events = watcher(scaled, watcher::Config::default()).boxed();
            while let Some(event) = events.next().await {
                match event.unwrap() {
                    // What it made goes with its owner.
                    Event::Init | Event::InitDone | Event::Delete(_) => {}
                    Event::InitApply(object) | Event::Apply(object) => follow(&client, &object).await,
                }
            }
        }))
    }
}

impl Drop for Keda {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What the autoscaler of a ScaledObject is called, unless that says otherwise.
pub(super) fn autoscaler_of(name: &str) -> String {
    format!("keda-hpa-{name}")
}

async fn follow(client: &Client, object: &DynamicObject) {
    let namespace = object.namespace().unwrap();
    let autoscalers: Api<HorizontalPodAutoscaler> = Api::namespaced(client.clone(), &namespace);
    let (name, spec) = (autoscaler_of(&object.name_any()), &object.data["spec"]);
    let target = spec["scaleTargetRef"]["name"].as_str().unwrap();
    if let Some(pods) = object.annotations().get(PAUSED) {
        if autoscalers.get_opt(&name).await.unwrap().is_some() {
            autoscalers.delete(&name, &DeleteParams::default()).await.unwrap();
        }
        hold(&Api::namespaced(client.clone(), &namespace), target, pods.parse().unwrap()).await;
        return;
    }
    let owner = json!({
        "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": object.name_any(), "uid": object.uid().unwrap(),
        "controller": true, "blockOwnerDeletion": true,
    });
    let autoscaler = json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": name, "ownerReferences": [owner]},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target},
            "minReplicas": spec["minReplicaCount"].as_i64().unwrap_or(0).max(1),
            "maxReplicas": spec["maxReplicaCount"].as_i64().unwrap_or(100),
        },
    });
    let params = PatchParams::apply("keda-operator").force();
    autoscalers.patch(&name, &params, &Patch::Apply(&autoscaler)).await.unwrap();
}

async fn hold(deployments: &Api<Deployment>, name: &str, pods: i32) {
    let live = deployments.get_opt(name).await.unwrap();
    if live.is_some_and(|live| live.spec.replicas != Some(pods)) {
        let size = Patch::Merge(json!({"spec": {"replicas": pods}}));
        deployments.patch_scale(name, &PatchParams::default(), &size).await.unwrap();
    }
}
