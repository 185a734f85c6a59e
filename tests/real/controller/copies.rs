//! The layout `primary`: what runs without a rollout is taken over, a version goes through the target, and the target is what is
//! left when the rollout is gone.

use super::app::{App, PROMOTION_GATE, ungated};
use super::hands::applied_by_hand;
use super::hosted::twice_gated;
use super::served::Served;
use super::world::{World, is_steady};
use crate::support::cluster::eventually;
use serde_json::{Value, json};
use tidegate::plan::report::Reason;
use tidegate::record::state::Rest;

/// Image and pods of a Deployment, as its spec says.
async fn runs(world: &World, name: &str) -> Option<(String, Value)> {
    let deployment = world.get("Deployment", name).await?;
    let image = deployment["spec"]["template"]["spec"]["containers"][0]["image"].as_str()?;
    let tag = image.rsplit(':').next()?.to_owned();
    Some((tag, deployment["spec"]["replicas"].clone()))
}

async fn selector(world: &World, service: &str) -> Value {
    world.get("Service", service).await.unwrap()["spec"]["selector"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_1_c_7_c_17_c_26_c_30_c_35_stable_is_a_copy_as_long_as_the_rollout_exists() {
    let mut world = World::new("copies", &format!("    layout: primary\n{}", twice_gated())).await;
    // Another stays: a main without any rollout would be a mistake, and not followed.
    world.add("  progressDeadline: 90s\n", &App::worker("api", 1));
    let app = App { config: Some("hello"), ..App::new("web", 1) };
    world.release(&app);
    applied_by_hand(&world, &app).await;
    let served = Served::watch(&world, "web");
    world.start();
    world.until_steady(Rest::Initialized).await;
    world.until_of("api", "first sight", |record| is_steady(record, Rest::Initialized)).await;
    assert_eq!(runs(&world, "web-primary").await, Some(("1".to_owned(), json!(2))));
    assert_eq!(runs(&world, "web").await, Some(("1".to_owned(), json!(0))));
    let primary = world.get("Deployment", "web-primary").await.unwrap();
    assert_eq!(primary["metadata"]["labels"], json!({"app": "web-primary"}));
    for (service, app) in [("web", "web-primary"), ("web-primary", "web-primary"), ("web-canary", "web")] {
        assert_eq!(selector(&world, service).await, json!({"app": app}), "{service}");
    }
    // What others say of the copy stays.
    let owner = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "web", "uid": config_uid(&world).await}]);
    let patch = json!({"metadata": {"ownerReferences": owner}}).to_string();
    world.kubectl(&["patch", "deployment", "web-primary", "--type=merge", "-p", &patch], "").await;

    world.release(&App { version: 2, config: Some("good day"), ..app });
    world.approve("tenth").await;
    world.until_on("tenth").await;
    let greeting = async |name: &str| world.get("ConfigMap", name).await.unwrap()["data"]["greeting"].clone();
    assert_eq!((greeting("web").await, greeting("web-primary").await), (json!("good day"), json!("hello")));
    assert_eq!(runs(&world, "web").await.map(|(tag, _)| tag).as_deref(), Some("2"));
    world.approve("half").await;
    world.until_steady(Rest::Succeeded).await;
    assert_eq!(runs(&world, "web-primary").await, Some(("2".to_owned(), json!(2))));
    assert_eq!(runs(&world, "web").await, Some(("2".to_owned(), json!(0))));
    assert_eq!(greeting("web-primary").await, json!("good day"));
    let primary = world.get("Deployment", "web-primary").await.unwrap();
    assert_eq!(primary["metadata"]["ownerReferences"][0]["name"], "web");
    let checked = world.settled(&[]).await;
    assert_eq!(checked.most_pods, 2);

    world.remove(&["it/web.rollout.yaml"]);
    world.once().await;
    assert!(world.record().is_none());
    assert_eq!(runs(&world, "web").await, Some(("2".to_owned(), json!(2))));
    assert_eq!(selector(&world, "web").await, json!({"app": "web"}));
    for (kind, name) in [("Deployment", "web-primary"), ("Service", "web-canary"), ("ConfigMap", "web-primary")] {
        eventually("the end of the copies", async || world.get(kind, name).await.is_none().then_some(())).await;
    }
    assert!(served.fewest() >= 1, "the Service always had ready pods");
}

async fn config_uid(world: &World) -> Value {
    world.get("ConfigMap", "web").await.unwrap()["metadata"]["uid"].clone()
}

/// The manifests of a version whose number of pods is an autoscaler's word.
fn scaled(version: u8, least: u32) -> String {
    let app = App::new("web", version).text().replace("  replicas: 2\n", "");
    format!(
        "{app}---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {{name: web}}\nspec:\n  \
         scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: web}}\n  minReplicas: {least}\n  maxReplicas: 6\n"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_17_c_18_c_31_the_copy_has_an_autoscaler_of_its_own_that_follows_a_promotion_alone() {
    let mut world = World::new("scaled", &format!("    layout: primary\n{}{PROMOTION_GATE}", ungated())).await;
    world.commit(&[("it/web.yaml", &scaled(1, 2))]);
    world.start();
    world.until_steady(Rest::Initialized).await;
    let scaler = async |name: &str| {
        let spec = world.get("HorizontalPodAutoscaler", name).await.unwrap()["spec"].clone();
        (spec["scaleTargetRef"]["name"].clone(), spec["minReplicas"].clone())
    };
    let pods = async |name: &str| runs(&world, name).await.unwrap().1;
    assert_eq!(scaler("web-primary").await, (json!("web-primary"), json!(2)));
    assert_eq!(pods("web-primary").await, json!(2));
    eventually("the target without pods", async || (runs(&world, "web").await?.1 == json!(0)).then_some(())).await;

    world.commit(&[("it/web.yaml", &scaled(1, 3))]);
    let told = world.until_condition(Reason::HeldBack).await;
    assert!(told.contains("HorizontalPodAutoscaler") && told.contains("next promotion"), "{told}");
    assert_eq!((scaler("web").await.1, scaler("web-primary").await.1), (json!(2), json!(2)));

    world.commit(&[("it/web.yaml", &scaled(2, 3))]);
    world.until_on("half").await;
    assert_eq!((scaler("web").await.1, scaler("web-primary").await.1), (json!(3), json!(2)));
    assert_eq!(pods("web").await, json!(3));
    world.approve("promotion").await;
    world.until_steady(Rest::Succeeded).await;
    assert_eq!(scaler("web-primary").await, (json!("web-primary"), json!(3)));
    eventually("its end", async || (runs(&world, "web").await? == ("2".to_owned(), json!(0))).then_some(())).await;
    // The number is the autoscaler's from then on, and stays so.
    eventually("the autoscaler's pods", async || (pods("web-primary").await == json!(3)).then_some(())).await;
    world.settled(&[]).await;
    assert_eq!(runs(&world, "web-primary").await, Some(("2".to_owned(), json!(3))));
}
