//! Other hands: what was there before, what people change meanwhile, and who else writes.

use super::app::{App, GATED, ungated};
use super::world::{World, is_exposed, is_steady};
use crate::support::cluster::eventually;
use serde_json::{Value, json};
use tidegate::plan::report::Reason;
use tidegate::record::state::{Phase, Rest};

/// A tenth for a day.
fn long() -> String {
    ungated().replace("weight: 10}, soak: 1s", "weight: 10}, soak: 24h")
}

fn image(deployment: &Value) -> &str {
    deployment["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap()
}

fn managers(object: &Value) -> Vec<String> {
    let entries = object["metadata"]["managedFields"].as_array().unwrap();
    entries.iter().filter(|e| e["subresource"].is_null()).map(|e| e["manager"].as_str().unwrap().to_owned()).collect()
}

/// Makes version 1 of `web` as people did before there was tidegate, and waits for its pods.
pub(super) async fn applied_by_hand(world: &World, app: &App<'_>) {
    world.kubectl(&["apply", "-f", "-"], &app.text()).await;
    eventually("its pods", async || {
        let deployment = world.get("Deployment", app.name).await?;
        (deployment["status"]["availableReplicas"] == app.replicas).then_some(())
    })
    .await;
}

/// What the controller wrote so far, but for its Lease and Events.
async fn writes(world: &World) -> Vec<String> {
    let requests = world.requests_since(crate::support::audit::Mark::START).await;
    let writes = requests.iter().filter(|r| r.is_write() && !matches!(r.resource.as_str(), "leases" | "events"));
    writes.map(|r| format!("{} {}/{}", r.verb, r.resource, r.name)).collect()
}

/// Somebody else sends that share of the requests to the candidate.
async fn set_weight(world: &World, weight: i64) {
    let path = "/spec/rules/0/backendRefs";
    let route = world.get("HTTPRoute", "web").await.unwrap();
    let mut refs = route.pointer(path).unwrap().clone();
    for backend in refs.as_array_mut().unwrap() {
        let canary = backend["name"] == "web-canary";
        backend["weight"] = if canary { weight } else { 100 - weight }.into();
    }
    let patch = json!([{"op": "replace", "path": path, "value": refs}]).to_string();
    world.kubectl(&["patch", "httproute", "web", "--type=json", "-p", &patch], "").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_applied_by_hand_and_is_equal_is_taken_over_without_a_restart() {
    let mut world = World::new("equal", GATED).await;
    applied_by_hand(&world, &App::new("web", 1)).await;
    let before = world.pods("web").await;
    world.start();
    world.until_steady(Rest::Initialized).await;
    world.settled(&[]).await;
    assert_eq!(world.pods("web").await, before);
    for kind in ["Deployment", "Service", "HTTPRoute"] {
        let object = world.get(kind, "web").await.unwrap();
        assert!(managers(&object).contains(&"tidegate-it".to_owned()), "{kind}: {:?}", managers(&object));
        let left = managers(&object).into_iter().find(|manager| manager.starts_with("kubectl"));
        assert_eq!(left, None, "{kind}: who applied it before owns nothing any more");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_differs_at_first_sight_is_shown_and_left_alone_until_git_agrees() {
    let mut world = World::new("differs", GATED).await;
    let there = App { replicas: 3, ..App::new("web", 7) };
    applied_by_hand(&world, &there).await;
    let before = world.pods("web").await;
    world.start();
    let shown = world.until_condition(Reason::AdoptionDiffers).await;
    assert!(shown.contains("example.test/web:7") && shown.contains("/spec/replicas"), "{shown}");
    world.settled(&[Reason::AdoptionDiffers]).await;
    assert_eq!(writes(&world).await, [""; 0]);
    world.start();
    world.release(&there);
    world.until_steady(Rest::Initialized).await;
    assert_eq!(world.pods("web").await, before);
    world.settled(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_live_is_adopted_without_a_restart_and_a_run_leads_on() {
    let mut world = World::new("adopted", GATED).await;
    let there = App { replicas: 3, ..App::new("web", 7) };
    let more = there.text().replace("name: main,", "name: main, env: [{name: LEVEL, value: debug}],");
    let more = more.replace("ports: [{name: http, port: 80}]", "type: NodePort, ports: [{name: http, port: 80}]");
    world.kubectl(&["apply", "-f", "-"], &more).await;
    eventually("its pods", async || {
        (world.get("Deployment", "web").await?["status"]["availableReplicas"] == 3).then_some(())
    })
    .await;
    let before = (world.pods("web").await, world.get("Service", "web").await.unwrap()["spec"].clone());
    world.start();
    world.until_condition(Reason::AdoptionDiffers).await;
    let live = world.record().unwrap().live_at_first_sight().unwrap().clone();
    world.decide_with("0", "adopt", &format!(", live: \"{live}\""));
    world.until("the run's first gate", |record| record.conditions.iter().any(|c| c.reason == "Approval")).await;
    world.settled(&[Reason::Approval]).await;
    let after = (world.pods("web").await, world.get("Service", "web").await.unwrap()["spec"].clone());
    assert_eq!(after, before, "the pods are the same, and the Service keeps what it was given");
    world.start();
    world.approve("tenth").await;
    world.until_steady(Rest::Succeeded).await;
    world.settled(&[]).await;
    let container = world.get("Deployment", "web").await.unwrap()["spec"]["template"]["spec"]["containers"][0].clone();
    assert_eq!((container["image"].as_str(), &container["env"]), (Some("example.test/web:1"), &Value::Null));
    assert_eq!(world.get("Service", "web").await.unwrap()["spec"]["type"], "ClusterIP");
    // A status that is written meanwhile can put this off until the run has ended.
    for kind in ["Deployment", "Service", "HTTPRoute"] {
        let left = managers(&world.get(kind, "web").await.unwrap());
        assert!(!left.iter().any(|manager| manager.starts_with("kubectl")), "{kind}: {left:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_persons_tool_set_and_git_does_not_have_is_a_difference_too() {
    let mut world = World::new("surplus", GATED).await;
    let more = App::new("web", 1).text().replace("name: main,", "name: main, env: [{name: LEVEL, value: debug}],");
    world.kubectl(&["apply", "-f", "-"], &more).await;
    world.start();
    let shown = world.until_condition(Reason::AdoptionDiffers).await;
    assert!(shown.contains("/env") && shown.contains("debug"), "{shown}");
    world.settled(&[Reason::AdoptionDiffers]).await;
    assert_eq!(writes(&world).await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_helm_applies_is_left_to_helm_until_it_is_handed_over() {
    let mut world = World::new("helm", GATED).await;
    applied_by_hand(&world, &App::new("web", 1)).await;
    world.kubectl(&["annotate", "service", "web", "meta.helm.sh/release-name=web"], "").await;
    world.start();
    let shown = world.until_condition(Reason::ForeignApplier).await;
    assert!(shown.contains("Helm") && shown.contains("Service"), "{shown}");
    world.settled(&[Reason::ForeignApplier]).await;
    assert_eq!(writes(&world).await, [""; 0]);
    world.start();
    world.kubectl(&["annotate", "service", "web", "meta.helm.sh/release-name-"], "").await;
    world.until_steady(Rest::Initialized).await;
    world.settled(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_22_a_hand_that_raises_the_exposure_is_put_back_to_the_record() {
    let mut world = World::new("raised", &long()).await;
    world.start();
    world.until_steady(Rest::Initialized).await;
    world.release(&App::new("web", 2));
    world.until("a tenth", is_exposed).await;
    set_weight(&world, 60).await;
    // A soak that stands still while the gateway follows is recorded.
    eventually("a tenth again", async || (world.weight().await == 10 && world.in_force().await).then_some(())).await;
    // A hand's raise is no evidence against the version.
    world.settled(&[Reason::Soak]).await;
    assert!(is_exposed(&world.record().unwrap()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hand_that_lowers_the_exposure_holds_the_run_until_it_is_back() {
    let mut world = World::new("lowered", &ungated().replace("weight: 10}, soak: 1s", "weight: 10}, soak: 1h")).await;
    world.start();
    world.until_steady(Rest::Initialized).await;
    world.release(&App::new("web", 2));
    world.until("a tenth", is_exposed).await;
    set_weight(&world, 0).await;
    let shown = world.until_condition(Reason::LoweredByHand).await;
    assert!(shown.contains("HTTPRoute"), "{shown}");
    world.settled(&[Reason::LoweredByHand]).await;
    assert_eq!(world.weight().await, 0);
    world.start();
    set_weight(&world, 10).await;
    let record = world.until("a tenth again", |record| record.conditions.is_empty() && is_exposed(record)).await;
    world.decide_with(record.run.unwrap().id.as_str(), "skip", ", step: tenth");
    let record = world.until_steady(Rest::Succeeded).await;
    assert!(record.conditions.is_empty());
    world.settled(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_16_drift_at_rest_is_put_back() {
    let mut world = World::new("drift", GATED).await;
    world.start();
    world.until_steady(Rest::Initialized).await;
    world.kubectl(&["scale", "deployment", "web", "--replicas=5"], "").await;
    eventually("two replicas again", async || {
        let deployment = world.get("Deployment", "web").await?;
        (deployment["spec"]["replicas"] == 2).then_some(())
    })
    .await;
    world.kubectl(&["delete", "service", "web"], "").await;
    eventually("the Service again", async || world.get("Service", "web").await).await;
    // As an editor does: read, changed, written as a whole.
    let mut edited = world.get("Deployment", "web").await.unwrap();
    edited["spec"]["template"]["spec"]["containers"][0]["image"] = "example.test/web:9".into();
    // Controllers write its status meanwhile.
    edited["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    world.kubectl(&["replace", "-f", "-"], &edited.to_string()).await;
    eventually("the image again", async || {
        let deployment = world.get("Deployment", "web").await?;
        (image(&deployment) == "example.test/web:1").then_some(())
    })
    .await;
    world.settled(&[]).await;
    let record = world.record().unwrap();
    assert!(is_steady(&record, Rest::Initialized) && record.history.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attack_54_a_field_that_another_manager_owns_is_named_and_not_fought_over() {
    let mut world = World::new("owned", GATED).await;
    world.start();
    world.until_steady(Rest::Initialized).await;
    world.kubectl(&["set", "image", "deployment/web", "main=example.test/web:9"], "").await;
    let shown = world.until_condition(Reason::FieldConflict).await;
    assert!(shown.contains("kubectl-set") && shown.contains("image"), "{shown}");
    world.settled(&[Reason::FieldConflict]).await;
    let deployment = world.get("Deployment", "web").await.unwrap();
    assert_eq!(image(&deployment), "example.test/web:9");
    world.start();
    world.kubectl(&["set", "image", "deployment/web", "main=example.test/web:1"], "").await;
    world.until("no conflict", |record| record.conditions.is_empty()).await;
    world.settled(&[]).await;
}

/// Somebody else writes annotations, under a field manager of their own.
async fn annotate(world: &World, kind: &str, annotations: &[&str]) {
    let args = [&["annotate", kind, "web", "--overwrite", "--field-manager=hand"], annotations].concat();
    world.kubectl(&args, "").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_a_hand_writes_bars_the_way_back() {
    let mut world = World::new("marks", &long()).await;
    world.start();
    world.until_steady(Rest::Initialized).await;
    world.release(&App::new("web", 2));
    let run = world.until("a tenth", is_exposed).await.run.unwrap().id;
    let marks = ["tidegate.io/seq=999", "tidegate.io/epoch=x", "tidegate.io/applied=x", "tidegate.io/retreated=9-9/x"];
    for kind in ["httproute", "deployment", "service"] {
        annotate(&world, kind, &marks).await;
    }
    eventually("a mark that is no run's is lifted", async || {
        let route = world.get("HTTPRoute", "web").await?;
        route["metadata"]["annotations"].get("tidegate.io/retreated").is_none().then_some(())
    })
    .await;
    assert!(is_exposed(&world.record().unwrap()));
    world.decide(run.as_str(), "abort");
    world.until("the way back", |record| matches!(record.phase, Phase::Reverting { .. })).await;
    annotate(&world, "httproute", &marks).await;
    world.until_steady(Rest::Reverted).await;
    world.settled(&[Reason::Refused]).await;
    assert_eq!((world.weight().await, world.traces().await), (0, vec![]));
}
