//! DaemonSets: their own pods become new node by node, and are made anew on the way back, by the real controller.

use super::stateful::{GOOD, Pods, crashes};
use super::world::{Held, World};
use crate::support::cluster::{Bed, eventually};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, DeleteParams, ObjectMeta, PostParams};
use serde_json::Value;
use std::collections::BTreeMap;
use tidegate::manifest::desired::{Router, UnitKind};
use tidegate::plan::report::Reason;
use tidegate::record::state::Rest;

/// Nodes of one story alone: pods of others do not tolerate their taint.
struct Nodes {
    api: Api<Node>,
    space: String,
}

impl Nodes {
    fn name(&self, number: u8) -> String {
        format!("{}-{number}", self.space)
    }

    async fn join(&self, number: u8) {
        let labels = BTreeMap::from([("daemons".to_owned(), self.space.clone())]);
        let metadata = ObjectMeta { name: Some(self.name(number)), labels: Some(labels), ..ObjectMeta::default() };
        let mut node = Node { metadata, ..Node::default() };
        let taint = serde_json::from_value(serde_json::json!({"key": "daemons", "effect": "NoSchedule"})).unwrap();
        node.spec.get_or_insert_default().taints = Some(vec![taint]);
        self.api.create(&PostParams::default(), &node).await.unwrap();
    }

    /// Other stories shall not meet them.
    async fn leave(&self, numbers: impl IntoIterator<Item = u8>) {
        for number in numbers {
            self.api.delete(&self.name(number), &DeleteParams::default()).await.unwrap();
        }
    }
}

/// Brings a version of a DaemonSet to main.
fn release(world: &World, version: u8, Pods { behave, within }: Pods) {
    let namespace = &world.space.name;
    let rollout = format!(
        "apiVersion: tidegate.io/v1alpha1\nkind: Rollout\nmetadata: {{name: web, namespace: {namespace}}}\nspec:\n  \
         manifests: [web.yaml]\n  target: {{kind: DaemonSet, name: web}}\n  phases:\n  \
         - {{name: quarter, expose: {{weight: 25}}, soak: 1s}}\n  - {{name: half, expose: {{weight: 50}}, soak: 1s}}\n  \
         promotion: {{before: {{approval: pullRequest}}}}\n  \
         progressDeadline: {within}\n"
    );
    let set = format!(
        "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {{name: web}}\nspec:\n  \
         selector: {{matchLabels: {{app: web}}}}\n  template:\n    \
         metadata: {{labels: {{app: web}}, annotations: {{{behave}}}}}\n    spec:\n      \
         nodeSelector: {{daemons: {namespace}}}\n      tolerations: [{{key: daemons, operator: Exists}}]\n      \
         containers: [{{name: main, image: \"example.test/web:{version}\"}}]\n"
    );
    world.commit(&[("it/web.rollout.yaml", &rollout), ("it/web.yaml", &set)]);
}

/// The versions of the pods, in the order of their nodes; `!` where one is not ready.
async fn versions(world: &World) -> String {
    let pods = world.space.api::<k8s_openapi::api::core::v1::Pod>().list(&Default::default()).await.unwrap();
    let mut found = BTreeMap::new();
    for pod in pods {
        let spec = pod.spec.unwrap();
        let image = spec.containers[0].image.clone().unwrap_or_default();
        let conditions = pod.status.and_then(|status| status.conditions).unwrap_or_default();
        let ready = conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True");
        let version = image.rsplit(':').next().unwrap_or_default().to_owned();
        found.insert(spec.node_name.unwrap_or_default(), version + if ready { "" } else { "!" });
    }
    found.into_values().collect::<Vec<_>>().join(" ")
}

/// The set is exactly what its manifest says, and what Kubernetes makes of that.
async fn at_rest(world: &World, image: &str) {
    let set = world.get("DaemonSet", "web").await.unwrap();
    assert_eq!(set["spec"]["template"]["spec"]["containers"][0]["image"], image);
    assert_eq!(set["spec"]["updateStrategy"]["type"], "RollingUpdate");
    let ours: Vec<&Value> = set["metadata"]["managedFields"].as_array().unwrap().iter().collect();
    let ours = ours.into_iter().filter(|entry| entry["operation"] == "Apply");
    assert!(
        ours.clone().count() == 1
            && ours.into_iter().all(|entry| entry["fieldsV1"]["f:spec"].get("f:updateStrategy").is_none())
    );
    assert_eq!(set["metadata"]["annotations"].get("tidegate.io/retreated"), None);
    assert_eq!(set["status"]["updatedNumberScheduled"], set["status"]["desiredNumberScheduled"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_become_new_node_by_node_and_one_that_does_not_start_comes_back_as_it_was() {
    let mut world = World::empty(Held::Shared(Bed::shared().await), "daemon").await;
    let nodes = Nodes { api: Api::all(world.space.client.clone()), space: world.space.name.clone() };
    for number in 0..4 {
        nodes.join(number).await;
    }
    release(&world, 1, GOOD);
    let id = format!("{}/web", world.space.name);
    world.watch(&id, Some(Router::Units(UnitKind::DaemonSet)));
    world.start();
    world.until_steady(Rest::Initialized).await;
    a_pod_that_does_not_start_comes_back_as_it_was(&mut world).await;
    pods_of_a_daemon_set_become_new_node_by_node_as_the_record_says(&mut world, &nodes).await;
    nodes.leave(0..5).await;
}

async fn a_pod_that_does_not_start_comes_back_as_it_was(world: &mut World) {
    crashes(world, "web", |version, pods| release(world, version, pods)).await;
    let checked = world.settled(&[Reason::Refused]).await;
    assert_eq!(checked.highest_weight.get(), 25);
    assert_eq!(versions(world).await, "1 1 1 1");
    at_rest(world, "example.test/web:1").await;
}

async fn pods_of_a_daemon_set_become_new_node_by_node_as_the_record_says(world: &mut World, nodes: &Nodes) {
    world.start();
    release(world, 9, GOOD);
    world.until_on("half").await;
    let template = "/spec/template/spec/containers/0/image";
    let moved = async || {
        let set = world.get("DaemonSet", "web").await.unwrap();
        let closed = set.pointer(template).is_some_and(|image| image == "example.test/web:1");
        (closed && versions(world).await == "9 9 1 1").then_some(())
    };
    eventually("a half of them, and nothing is being moved", moved).await;
    nodes.join(4).await;
    let joined = async || (versions(world).await == "9 9 1 1 1").then_some(());
    eventually("who joins is of the promoted version", joined).await;
    world.approve("promotion").await;
    world.until_steady(Rest::Succeeded).await;
    assert_eq!(versions(world).await, "9 9 9 9 9");
    let checked = world.settled(&[]).await;
    assert_eq!(checked.highest_weight.get(), 100);
    at_rest(world, "example.test/web:9").await;
}
