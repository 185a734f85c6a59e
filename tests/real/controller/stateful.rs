//! StatefulSets: their own pods become new, and are made anew on the way back, by the real controllers.

use super::world::{Held, World};
use crate::support::audit::{Mark, Request};
use crate::support::cluster::Bed;
use serde_json::Value;
use std::collections::BTreeMap;
use tidegate::manifest::desired::{Router, UnitKind};
use tidegate::plan::report::Reason;
use tidegate::record::state::{Phase, Rest, RolloutState};

/// What the test bed is told of the pods of a version, and the time that they have to become ready.
#[derive(Clone, Copy)]
pub(super) struct Pods {
    pub(super) behave: &'static str,
    pub(super) within: &'static str,
}

/// They become ready, however slow the machine is.
pub(super) const GOOD: Pods = Pods { behave: "", within: "10m" };

/// Brings versions from 2 on to main whose first new pod crashes, until the deadline of one was not over before that was seen: it is
/// short, and long on a machine that needs more. How many were tried, and where the audit log was when the last one was released.
pub(super) async fn crashes(world: &World, name: &str, release: impl Fn(u8, Pods)) -> (usize, Mark) {
    let mut said = Vec::new();
    for (version, within) in (2..).zip(["10s", "1m", "5m"]) {
        let (mark, runs) = (world.bed.mark().await, world.record_of(name).unwrap().next_run);
        release(version, Pods { behave: "testbed/behaviour: crash", within });
        let failed = |record: &RolloutState| record.next_run > runs && matches!(record.phase, Phase::Failed { .. });
        let record = world.until_of(name, "the failure", failed).await;
        let Phase::Failed { why, .. } = record.phase else { panic!("it has failed") };
        assert!(why.contains(&format!("quarter: not ready after {within}")), "{why}");
        if why.contains("CrashLoopBackOff") {
            return (said.len() + 1, mark);
        }
        said.push(why);
    }
    panic!("nobody has seen a pod that crashes: {said:#?}");
}

/// Brings a version of a StatefulSet of four pods to main.
pub(super) fn release(world: &World, name: &str, version: u8, Pods { behave, within }: Pods) {
    let namespace = &world.space.name;
    let rollout = format!(
        "apiVersion: tidegate.io/v1alpha1\nkind: Rollout\nmetadata: {{name: {name}, namespace: {namespace}}}\nspec:\n  \
         manifests: [{name}.yaml]\n  target: {{kind: StatefulSet, name: {name}}}\n  phases:\n  \
         - {{name: quarter, expose: {{weight: 25}}, soak: 1s}}\n  - {{name: half, expose: {{weight: 50}}, soak: 1s}}\n  \
         progressDeadline: {within}\n"
    );
    let set = format!(
        "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {{name: {name}}}\nspec:\n  replicas: 4\n  serviceName: {name}\n  \
         selector: {{matchLabels: {{app: {name}}}}}\n  template:\n    \
         metadata: {{labels: {{app: {name}}}, annotations: {{{behave}}}}}\n    \
         spec: {{containers: [{{name: main, image: \"example.test/{name}:{version}\"}}]}}\n---\n\
         apiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\n\
         spec: {{clusterIP: None, selector: {{app: {name}}}, ports: [{{name: http, port: 80}}]}}\n"
    );
    world.commit(&[(&format!("it/{name}.rollout.yaml"), &rollout), (&format!("it/{name}.yaml"), &set)]);
}

/// The image of each pod of `web`, by its number, and whether all of them are ready.
async fn images(world: &World) -> (Vec<String>, bool) {
    let mut pods = BTreeMap::new();
    for n in 0..4 {
        let Some(pod) = world.get("Pod", &format!("web-{n}")).await else { continue };
        let image = pod["spec"]["containers"][0]["image"].as_str().unwrap_or_default().to_owned();
        let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
        pods.insert(n, (image, conditions.iter().any(|c| c["type"] == "Ready" && c["status"] == "True")));
    }
    let ready = pods.len() == 4 && pods.values().all(|(_, ready)| *ready);
    let tags = pods.into_values().map(|(image, _)| image.rsplit(':').next().unwrap_or_default().to_owned());
    (tags.collect(), ready)
}

/// The set is exactly what its manifest says: one version, nothing held back.
async fn at_rest(world: &World, image: &str) {
    let set = world.get("StatefulSet", "web").await.unwrap();
    assert_eq!(set["spec"]["template"]["spec"]["containers"][0]["image"], image);
    assert_eq!(set["spec"]["updateStrategy"]["rollingUpdate"]["partition"], 0);
    let ours: Vec<&Value> = set["metadata"]["managedFields"].as_array().unwrap().iter().collect();
    let ours = ours.into_iter().filter(|entry| entry["operation"] == "Apply");
    assert!(
        ours.clone().count() == 1
            && ours.into_iter().all(|entry| entry["fieldsV1"]["f:spec"].get("f:updateStrategy").is_none())
    );
    assert_eq!(set["metadata"]["annotations"].get("tidegate.io/retreated"), None);
    assert_eq!(set["status"]["currentRevision"], set["status"]["updateRevision"]);
}

fn deleted_pods(requests: &[Request]) -> usize {
    requests.iter().filter(|request| request.resource == "pods" && request.verb == "delete").count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_become_new_as_the_record_says_and_one_that_does_not_start_is_taken_away() {
    let mut world = World::empty(Held::Shared(Bed::shared().await), "stateful").await;
    release(&world, "web", 1, GOOD);
    let id = format!("{}/web", world.space.name);
    world.watch(&id, Some(Router::Units(UnitKind::StatefulSet)));
    world.start();
    world.until_steady(Rest::Initialized).await;
    a_pod_that_does_not_start_is_taken_away_when_its_version_goes_back(&mut world).await;
    pods_of_a_stateful_set_become_new_as_the_record_says(&mut world).await;
}

async fn a_pod_that_does_not_start_is_taken_away_when_its_version_goes_back(world: &mut World) {
    let (tried, mark) = crashes(world, "web", |version, pods| release(world, "web", version, pods)).await;
    let checked = world.settled(&[Reason::Refused]).await;
    assert_eq!(checked.highest_weight.get(), 25);
    assert_eq!(images(world).await, (vec!["1".to_owned(); 4], true));
    at_rest(world, "example.test/web:1").await;
    let requests = world.requests_since(mark).await;
    assert_eq!(deleted_pods(&requests), 1, "the broken one");
    let requests = world.requests_since(Mark::START).await;
    assert!(deleted_pods(&requests) <= tried, "of each version that was tried, and none at first sight");
}

async fn pods_of_a_stateful_set_become_new_as_the_record_says(world: &mut World) {
    let mark = world.bed.mark().await;
    world.start();
    release(world, "web", 9, GOOD);
    world.until_steady(Rest::Succeeded).await;
    assert_eq!(images(world).await, (vec!["9".to_owned(); 4], true));
    let checked = world.settled(&[]).await;
    assert_eq!(checked.highest_weight.get(), 100);
    at_rest(world, "example.test/web:9").await;
    let requests = world.requests_since(mark).await;
    assert_eq!(deleted_pods(&requests), 0, "its controller replaces them");
}
