//! Live objects that a rollout tracks.

use super::app::{App, GATED};
use super::world::World;
use crate::support::cluster::eventually;
use serde_json::{Value, json};
use tidegate::plan::report::Reason;
use tidegate::record::state::Rest;

/// What the pods of a Deployment read.
async fn greeting(world: &World, deployment: &str) -> Option<Value> {
    let deployment = world.get("Deployment", deployment).await?;
    let source = &deployment["spec"]["template"]["spec"]["containers"][0]["envFrom"][0];
    let copy = world.get("ConfigMap", source["configMapRef"]["name"].as_str()?).await?;
    Some(copy["data"]["greeting"].clone())
}

/// The copies that there are.
async fn copies(world: &World) -> Vec<String> {
    let names = world.kubectl(&["get", "configmaps", "-o", "name"], "").await;
    names.lines().filter_map(|name| name.strip_prefix("configmap/web-primary-")).map(str::to_owned).collect()
}

async fn say(world: &World, greeting: &str) {
    let patch = json!({"data": {"greeting": greeting}}).to_string();
    world.kubectl(&["patch", "configmap", "web", "--type=merge", "-p", &patch], "").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_7_c_17_c_35_a_live_config_map_is_a_part_of_the_version() {
    let target = format!("    layout: primary\n    track: {{configMaps: [web]}}\n{GATED}");
    let mut world = World::new("tracked", &target).await;
    // Another stays: a main without any rollout would be a mistake, and not followed.
    world.add("  progressDeadline: 10s\n", &App::worker("api", 1));
    let app = App { config: Some("hello"), ..App::new("web", 1) };
    let (before, rest) = app
        .text()
        .split_once("---\napiVersion: v1\nkind: ConfigMap")
        .map(|(b, r)| (b.to_owned(), r.to_owned()))
        .unwrap();
    let manifests = before + rest.split_once("---\n").map(|(_, rest)| format!("---\n{rest}")).unwrap().as_str();
    world.commit(&[("it/web.yaml", &manifests)]);
    world.start();
    let told = world.until_condition(Reason::ReferenceMissing).await;
    assert!(told.contains("ConfigMap web"), "{told}");
    world.kubectl(&["create", "configmap", "web", "--from-literal=greeting=hello"], "").await;
    world.until_steady(Rest::Initialized).await;
    assert_eq!(greeting(&world, "web-primary").await, Some(json!("hello")));

    say(&world, "good day").await;
    world.approve("tenth").await;
    world.until_on("tenth").await;
    let both = [greeting(&world, "web").await, greeting(&world, "web-primary").await];
    assert_eq!(both, [Some(json!("good day")), Some(json!("hello"))]);
    assert_eq!(copies(&world).await.len(), 2);
    world.until_steady(Rest::Succeeded).await;
    assert_eq!(greeting(&world, "web-primary").await, Some(json!("good day")));
    eventually("the end of the old copy", async || (copies(&world).await.len() == 1).then_some(())).await;
    let name = format!("web-primary-{}", copies(&world).await[0]);
    let copy = world.get("ConfigMap", &name).await.unwrap();
    assert_eq!(copy["immutable"], json!(true));
    let original = world.get("ConfigMap", "web").await.unwrap();
    assert_eq!(original["metadata"]["annotations"], Value::Null, "what people have made stays theirs");
    world.settled(&[]).await;

    world.remove(&["it/web.rollout.yaml"]);
    world.once().await;
    assert!(world.record().is_none());
    assert_eq!(greeting(&world, "web").await, Some(json!("good day")));
    eventually("the end of the copies", async || copies(&world).await.is_empty().then_some(())).await;
}
