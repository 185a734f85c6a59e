//! Who says how many pods there are. The autoscaling controller is the real one; since nothing measures pods here, what it would
//! do on a measurement is done by hand, by the same `scale` subresource. What its bounds say it does by itself.

use super::app::App;
use super::hosted::twice_gated;
use super::keda::{Keda, autoscaler_of};
use super::world::World;
use crate::support::audit::Mark;
use crate::support::cluster::eventually;
use serde_json::{Value, json};
use tidegate::record::state::Rest;

/// Each step after a person's word, with time for an autoscaler to look again, which it does every 15 s.
pub(super) fn each_step_gated() -> String {
    twice_gated() + "  promotion: {before: {approval: pullRequest}}\n"
}

/// The manifests of a version whose number of pods is a scaler's word.
fn scaled(version: u8, scaler: &str) -> String {
    App { more: scaler, ..App::new("web", version) }.text().replace("  replicas: 2\n", "")
}

fn autoscaler(least: u32, most: u32) -> String {
    format!(
        "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {{name: web}}\nspec:\n  \
         scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: web}}\n  minReplicas: {least}\n  maxReplicas: {most}"
    )
}

fn by_keda(least: u32, most: u32) -> String {
    format!(
        "apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {{name: web}}\nspec:\n  scaleTargetRef: {{name: web}}\n  \
         minReplicaCount: {least}\n  maxReplicaCount: {most}\n  \
         triggers: [{{type: cron, metadata: {{timezone: UTC, start: 0 6 * * *, end: 0 20 * * *, desiredReplicas: \"4\"}}}}]"
    )
}

impl World {
    async fn of_scaled(name: &str, layout: &str, scaler: &str) -> Self {
        let world = Self::new(name, &format!("{layout}{}", each_step_gated())).await;
        world.commit(&[("it/web.yaml", &scaled(1, scaler))]);
        world
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_6_c_31_what_an_autoscaler_does_in_a_run_is_reckoned_with_and_never_undone() {
    let mut world = World::of_scaled("autoscaled", "", &autoscaler(2, 6)).await;
    world.start();
    world.until_steady(Rest::Initialized).await;
    world.has_pods("web", 2).await;
    world.scale("web", 4).await;
    world.has_pods("web", 4).await;
    world.commit(&[("it/web.yaml", &scaled(2, &autoscaler(2, 6)))]);
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
    let checked = world.settled(&[]).await;
    assert_eq!(checked.highest_weight.get(), 100);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_17_c_18_c_31_in_copies_each_role_has_an_autoscaler_that_nobody_fights() {
    let mut world = World::of_scaled("autoscaled-copies", "    layout: primary\n", &autoscaler(2, 6)).await;
    world.start();
    world.until_steady(Rest::Initialized).await;
    world.has_pods("web-primary", 2).await;
    eventually("the target without pods", async || (world.size("web").await == 0).then_some(())).await;
    world.scale("web-primary", 4).await;
    world.has_pods("web-primary", 4).await;
    let start = world.bed.mark().await;
    world.commit(&[("it/web.yaml", &scaled(2, &autoscaler(2, 7)))]);
    world.approve("tenth").await;
    world.request("half").await;
    assert_eq!(world.size("web").await, 2);
    assert_eq!((world.bounds("web").await, world.bounds("web-primary").await), (Some((2, 7)), Some((4, 6))));

    world.scale("web", 4).await;
    world.scale("web-primary", 5).await;
    world.has_pods("web", 4).await;
    world.has_pods("web-primary", 5).await;
    let scaled_by_hand = world.bed.mark().await;
    world.approve("half").await;
    world.request("promotion").await;
    assert_eq!(world.size("web").await, 4, "more than the least is the autoscaler's word");
    assert_eq!((world.bounds("web").await, world.bounds("web-primary").await), (Some((3, 7)), Some((5, 6))));
    world.approve("promotion").await;
    world.until_steady(Rest::Succeeded).await;
    assert_eq!((world.size("web").await, world.size("web-primary").await), (json!(0), json!(5)));
    assert_eq!((world.bounds("web").await, world.bounds("web-primary").await), (Some((2, 7)), Some((2, 7))));
    assert_eq!(world.sizes_sent("web-primary", start).await, [Value::Null; 0]);
    let sent = world.sizes_sent("web", scaled_by_hand).await;
    assert!(!sent.is_empty() && sent.iter().all(|pods| *pods == 0), "none, once all is over: {sent:?}");

    // What is the same is not written, but for the mark of the record that the way ahead relies on.
    world.scale("web-primary", 2).await;
    world.has_pods("web-primary", 2).await;
    let (start, before) = (world.bed.mark().await, world.spec_of_autoscaler("web-primary").await);
    world.commit(&[("it/web.yaml", &scaled(3, &autoscaler(2, 7)))]);
    for step in ["tenth", "half", "promotion"] {
        world.approve(step).await;
    }
    world.until("the third", |record| record.history.len() == 2 && record.run.is_none()).await;
    assert!(world.writes_of("horizontalpodautoscalers", "web-primary", start).await <= 1);
    assert_eq!(world.spec_of_autoscaler("web-primary").await, before);
    world.settled(&[]).await;
    assert!(!world.owns_size("web-primary").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_31_what_keda_makes_of_a_scaled_object_has_the_bounds_of_the_run() {
    let mut world = World::of_scaled("keda", "", &by_keda(2, 6)).await;
    let _keda = Keda::play(&world);
    let autoscaler = autoscaler_of("web");
    world.start();
    world.until_steady(Rest::Initialized).await;
    world.has_pods("web", 2).await;
    world.scale("web", 4).await;
    world.has_pods("web", 4).await;
    world.commit(&[("it/web.yaml", &scaled(2, &by_keda(2, 6)))]);
    world.approve("tenth").await;
    world.request("half").await;
    let bounds = async |least: u64| {
        eventually("the bounds", async || (world.bounds(&autoscaler).await? == (least, 6)).then_some(())).await;
    };
    bounds(4).await;
    assert_eq!(world.size("web-canary").await, 2);
    world.scale("web", 2).await;
    world.has_pods("web", 4).await;
    for step in ["half", "promotion"] {
        world.approve(step).await;
    }
    world.until_steady(Rest::Succeeded).await;
    bounds(2).await;
    assert_eq!(world.size("web").await, 4);
    let owner = world.get("HorizontalPodAutoscaler", &autoscaler).await.unwrap()["metadata"]["ownerReferences"].clone();
    assert_eq!((&owner[0]["kind"], &owner[0]["name"]), (&json!("ScaledObject"), &json!("web")));
    assert_eq!(world.sizes_sent("web", Mark::START).await, [Value::Null; 0]);
    assert_eq!(world.writes_of("horizontalpodautoscalers", &autoscaler, Mark::START).await, 0, "that is KEDA's");
    world.settled(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_18_in_copies_keda_makes_pods_of_the_target_in_a_run_alone() {
    let mut world = World::of_scaled("keda-copies", "    layout: primary\n", &by_keda(2, 6)).await;
    let _keda = Keda::play(&world);
    let [of_target, of_copy] = ["web", "web-primary"].map(autoscaler_of);
    world.start();
    world.until_steady(Rest::Initialized).await;
    world.has_pods("web-primary", 2).await;
    let at_rest = async || {
        eventually("the target without pods and without an autoscaler", async || {
            (world.size("web").await == 0 && world.bounds(&of_target).await.is_none()).then_some(())
        })
        .await;
    };
    at_rest().await;
    world.scale("web-primary", 4).await;
    world.has_pods("web-primary", 4).await;
    let start = world.bed.mark().await;
    world.commit(&[("it/web.yaml", &scaled(2, &by_keda(2, 6)))]);
    world.approve("tenth").await;
    world.request("half").await;
    eventually("both at work", async || {
        let bounds = (world.bounds(&of_target).await?, world.bounds(&of_copy).await?);
        (bounds == ((2, 6), (4, 6))).then_some(())
    })
    .await;
    for step in ["half", "promotion"] {
        world.approve(step).await;
    }
    world.until_steady(Rest::Succeeded).await;
    at_rest().await;
    assert_eq!(world.size("web-primary").await, 4);
    assert_eq!(world.sizes_sent("web-primary", start).await, [Value::Null; 0]);
    world.settled(&[]).await;
}
