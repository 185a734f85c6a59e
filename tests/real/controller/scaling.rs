//! Who says how many pods there are. The autoscaling controller is the real one; since nothing measures pods here, what it would
//! do on a measurement is done by hand, by the same `scale` subresource. What its bounds say it does by itself.

use super::app::{App, of};
use super::hosted::twice_gated;
use super::world::{Held, World};
use crate::support::audit::Mark;
use crate::support::cluster::{Bed, eventually};
use serde_json::{Value, json};
use tidegate::record::state::Rest;

/// Each step after a person's word, with time for an autoscaler to look again.
pub(super) fn each_step_gated() -> String {
    twice_gated() + "  promotion: {before: {approval: pullRequest}}\n"
}

/// The manifests of a version whose number of pods is an autoscaler's word, within these bounds.
fn scaled(name: &str, version: u8, least: u32, most: u32) -> String {
    let scaler = format!(
        "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {{name: {name}}}\nspec:\n  \
         scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: {name}}}\n  minReplicas: {least}\n  maxReplicas: {most}"
    );
    App { more: &scaler, ..App::new(name, version) }.text().replace("  replicas: 2\n", "")
}

impl World {
    /// Commits a version of an application with an autoscaler.
    fn scales(&self, name: &str, version: u8, least: u32, most: u32) {
        self.commit(&[(&format!("it/{name}.yaml"), &scaled(name, version, least, most))]);
    }

    /// How many pods a Deployment is to have.
    async fn size(&self, name: &str) -> Value {
        self.get("Deployment", name).await.map_or(Value::Null, |deployment| deployment["spec"]["replicas"].clone())
    }

    /// Waits until a Deployment is to have so many pods, and has them.
    async fn has_pods(&self, name: &str, pods: u32) {
        eventually(&format!("{pods} pods of {name}"), async || {
            let deployment = self.get("Deployment", name).await?;
            let available = deployment["status"]["availableReplicas"].as_u64().unwrap_or(0);
            (deployment["spec"]["replicas"] == pods && available == u64::from(pods)).then_some(())
        })
        .await;
    }

    /// Scales as an autoscaler does.
    async fn scale(&self, name: &str, pods: u32) {
        self.kubectl(&["scale", "deployment", name, &format!("--replicas={pods}")], "").await;
    }

    async fn spec_of_autoscaler(&self, name: &str) -> Option<Value> {
        Some(self.get("HorizontalPodAutoscaler", name).await?["spec"].clone())
    }

    /// Least and most of an autoscaler.
    async fn bounds(&self, name: &str) -> Option<(u64, u64)> {
        let spec = self.spec_of_autoscaler(name).await?;
        Some((spec["minReplicas"].as_u64()?, spec["maxReplicas"].as_u64()?))
    }

    /// The numbers of pods that the controller has asked for since then, in the order of its writes.
    async fn sizes_sent(&self, name: &str, start: Mark) -> Vec<Value> {
        let requests = self.requests_since(start).await;
        let writes = requests.iter().filter(|r| r.is_write() && r.resource == "deployments" && r.name == name);
        let sent = writes.map(|write| write.sent.as_ref().expect("the audit log has what was sent"));
        sent.map(|sent| sent["spec"]["replicas"].clone()).filter(|pods| !pods.is_null()).collect()
    }

    /// Whether the controller owns the number of pods of a Deployment. Nobody else has to: writes to the scale leave no trace in the fields
    /// where nobody owned the number before.
    async fn owns_size(&self, name: &str) -> bool {
        let deployment = self.get("Deployment", name).await.unwrap();
        let entries = deployment["metadata"]["managedFields"].as_array().unwrap().clone();
        let mut owners = entries.iter().filter(|entry| entry["fieldsV1"]["f:spec"].get("f:replicas").is_some());
        owners.any(|entry| entry["manager"] == "tidegate-it")
    }

    /// How often the controller has written an object since then.
    async fn writes_of(&self, resource: &str, name: &str, start: Mark) -> usize {
        let requests = self.requests_since(start).await;
        requests.iter().filter(|r| r.is_write() && r.resource == resource && r.name == name).count()
    }
}

/// Two rollouts of one controller, at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_says_how_many_pods_there_are() {
    let mut world = World::empty(Held::Shared(Bed::shared().await), "autoscaled").await;
    world.add(&each_step_gated(), &App::new("web", 1));
    world.add(&format!("    layout: primary\n{}", of("copies", &each_step_gated())), &App::new("copies", 1));
    world.scales("web", 1, 2, 6);
    world.scales("copies", 1, 2, 6);
    world.start();
    tokio::join!(
        c_6_c_31_what_an_autoscaler_does_in_a_run_is_reckoned_with_and_never_undone(&world),
        c_17_c_18_c_31_in_copies_each_role_has_an_autoscaler_that_nobody_fights(&world, ["copies", "copies-primary"]),
    );
    let checked = world.settled(&[]).await;
    assert_eq!(checked.highest_weight.get(), 100);
    assert!(!world.owns_size("web").await && !world.owns_size("copies-primary").await);
}

async fn c_6_c_31_what_an_autoscaler_does_in_a_run_is_reckoned_with_and_never_undone(world: &World) {
    world.until_steady(Rest::Initialized).await;
    world.has_pods("web", 2).await;
    world.scale("web", 4).await;
    world.has_pods("web", 4).await;
    world.scales("web", 2, 2, 6);
    world.approve("tenth").await;
    world.request("half").await;
    assert_eq!(world.record().unwrap().next_run, 2, "other pods were no other version");
    assert_eq!(world.size("web-canary").await, 2, "its autoscaler's least");
    assert_eq!(world.bounds("web").await, Some((4, 6)), "stable keeps at least what it had");

    world.scale("web", 6).await;
    world.has_pods("web", 6).await;
    world.approve("half").await;
    world.request("promotion").await;
    assert_eq!(world.size("web-canary").await, 3, "a half of what stable has by now");
    // To fewer than it had when more of the traffic left it the real one brings it back.
    assert_eq!(world.bounds("web").await, Some((6, 6)));
    world.scale("web", 2).await;
    world.has_pods("web", 6).await;
    world.approve("promotion").await;
    world.until_steady(Rest::Succeeded).await;
    assert_eq!((world.size("web").await, world.bounds("web").await), (json!(6), Some((2, 6))));
    assert!(!world.owns_size("web").await);
    assert_eq!(world.sizes_sent("web", Mark::START).await, [Value::Null; 0]);
}

async fn c_17_c_18_c_31_in_copies_each_role_has_an_autoscaler_that_nobody_fights(
    world: &World,
    [target, copy]: [&str; 2],
) {
    world.until_steady_of(target, Rest::Initialized).await;
    world.has_pods(copy, 2).await;
    eventually("the target without pods", async || (world.size(target).await == 0).then_some(())).await;
    world.scale(copy, 4).await;
    world.has_pods(copy, 4).await;
    let start = world.bed.mark().await;
    world.scales(target, 2, 2, 7);
    world.approve_of(target, "tenth").await;
    world.request_of(target, "half").await;
    assert_eq!(world.size(target).await, 2);
    assert_eq!((world.bounds(target).await, world.bounds(copy).await), (Some((2, 7)), Some((4, 6))));

    world.scale(target, 4).await;
    world.scale(copy, 5).await;
    world.has_pods(target, 4).await;
    world.has_pods(copy, 5).await;
    let scaled_by_hand = world.bed.mark().await;
    world.approve_of(target, "half").await;
    world.request_of(target, "promotion").await;
    assert_eq!(world.size(target).await, 4, "more than the least is the autoscaler's word");
    assert_eq!((world.bounds(target).await, world.bounds(copy).await), (Some((3, 7)), Some((5, 6))));
    world.approve_of(target, "promotion").await;
    world.until_steady_of(target, Rest::Succeeded).await;
    assert_eq!((world.size(target).await, world.size(copy).await), (json!(0), json!(5)));
    assert_eq!((world.bounds(target).await, world.bounds(copy).await), (Some((2, 7)), Some((2, 7))));
    assert_eq!(world.sizes_sent(copy, start).await, [Value::Null; 0]);
    let sent = world.sizes_sent(target, scaled_by_hand).await;
    assert!(!sent.is_empty() && sent.iter().all(|pods| *pods == 0), "none, once all is over: {sent:?}");
    what_is_the_same_is_not_written(world, [target, copy]).await;
}

/// But for the mark of the record that the way ahead relies on.
async fn what_is_the_same_is_not_written(world: &World, [target, copy]: [&str; 2]) {
    world.scale(copy, 2).await;
    world.has_pods(copy, 2).await;
    let (start, before) = (world.bed.mark().await, world.spec_of_autoscaler(copy).await);
    world.scales(target, 3, 2, 7);
    for step in ["tenth", "half", "promotion"] {
        world.approve_of(target, step).await;
    }
    world.until_of(target, "the third", |record| record.history.len() == 2 && record.run.is_none()).await;
    assert!(world.writes_of("horizontalpodautoscalers", copy, start).await <= 1);
    assert_eq!(world.spec_of_autoscaler(copy).await, before);
}
