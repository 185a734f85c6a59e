//! Other hands: what was there before, what people change meanwhile, and who else writes.

use super::app::{App, GATED, ungated};
use super::world::{World, is_exposed, is_steady};
use crate::support::cluster::eventually;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tidegate::plan::report::Reason;
use tidegate::record::state::{Rest, RolloutState};

fn image(deployment: &Value) -> &str {
    deployment["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap()
}

fn managers(object: &Value) -> Vec<String> {
    let entries = object["metadata"]["managedFields"].as_array().unwrap();
    entries.iter().filter(|e| e["subresource"].is_null()).map(|e| e["manager"].as_str().unwrap().to_owned()).collect()
}

/// Makes an app as people did before there was tidegate, and waits for its pods.
pub(super) async fn applied_by_hand(world: &World, app: &App<'_>) {
    world.kubectl(&["apply", "-f", "-"], &app.text()).await;
    available(world, app).await;
}

async fn available(world: &World, app: &App<'_>) {
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
async fn what_kubectl_and_helm_had_is_adopted_without_a_restart() {
    let mut world = World::new("adopted", GATED).await;
    let there = App { replicas: 3, ..App::new("web", 7) };
    let more = there.text().replace("name: main,", "name: main, env: [{name: LEVEL, value: debug}],");
    let more = more.replace("ports: [{name: http, port: 80}]", "type: NodePort, ports: [{name: http, port: 80}]");
    world.kubectl(&["apply", "-f", "-"], &more).await;
    available(&world, &there).await;
    let before = seen(&world).await;
    what_helm_applies_is_left_to_helm_until_it_is_handed_over(&mut world).await;
    what_differs_at_first_sight_is_shown_and_left_alone(&mut world).await;
    assert_eq!(seen(&world).await, before);
    what_is_live_is_adopted_without_a_restart_and_a_run_leads_on(&mut world, &before).await;
}

/// The pods, and the Service as people see it.
async fn seen(world: &World) -> (BTreeSet<String>, Value) {
    (world.pods("web").await, world.get("Service", "web").await.unwrap()["spec"].clone())
}

async fn what_helm_applies_is_left_to_helm_until_it_is_handed_over(world: &mut World) {
    world.kubectl(&["annotate", "service", "web", "meta.helm.sh/release-name=web"], "").await;
    world.start();
    let shown = world.until_condition(Reason::ForeignApplier).await;
    assert!(shown.contains("Helm") && shown.contains("Service"), "{shown}");
    world.settled(&[Reason::ForeignApplier, Reason::AdoptionDiffers]).await;
    assert_eq!(writes(world).await, [""; 0]);
    world.start();
    world.kubectl(&["annotate", "service", "web", "meta.helm.sh/release-name-"], "").await;
    let handed_over = |record: &RolloutState| record.conditions.iter().all(|c| c.reason != "ForeignApplier");
    world.until("it is handed over", handed_over).await;
}

/// Also what a person's tool set, and Git does not have.
async fn what_differs_at_first_sight_is_shown_and_left_alone(world: &mut World) {
    let shown = world.until_condition(Reason::AdoptionDiffers).await;
    for difference in ["example.test/web:7", "/spec/replicas", "/env", "debug"] {
        assert!(shown.contains(difference), "{difference}: {shown}");
    }
    world.settled(&[Reason::AdoptionDiffers]).await;
    assert_eq!(writes(world).await, [""; 0]);
}

async fn what_is_live_is_adopted_without_a_restart_and_a_run_leads_on(
    world: &mut World,
    before: &(BTreeSet<String>, Value),
) {
    world.start();
    let live = world.record().unwrap().live_at_first_sight().unwrap().clone();
    world.decide_with("0", "adopt", &format!(", live: \"{live}\""));
    world.until("the run's first gate", |record| record.conditions.iter().any(|c| c.reason == "Approval")).await;
    world.settled(&[Reason::Approval]).await;
    assert_eq!(&seen(world).await, before, "the pods are the same, and the Service keeps what it was given");
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
        assert!(left.contains(&"tidegate-it".to_owned()), "{kind}: {left:?}");
        assert!(!left.iter().any(|manager| manager.starts_with("kubectl")), "{kind}: who applied it before: {left:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_22_x_16_attack_54_hands_are_met_at_a_tenth_and_at_rest() {
    let mut world = World::new("hands", &ungated().replace("weight: 10}, soak: 1s", "weight: 10}, soak: 24h")).await;
    world.start();
    world.until_steady(Rest::Initialized).await;
    world.release(&App::new("web", 2));
    world.until("a tenth", is_exposed).await;
    c_22_a_hand_that_raises_the_exposure_is_put_back_to_the_record(&mut world).await;
    a_hand_that_lowers_the_exposure_holds_the_run_until_it_is_back(&mut world).await;
    x_16_drift_at_rest_is_put_back(&world).await;
    attack_54_a_field_that_another_manager_owns_is_named_and_not_fought_over(&mut world).await;
    world.settled(&[]).await;
    let record = world.record().unwrap();
    assert!(is_steady(&record, Rest::Succeeded) && record.history.len() == 1, "{record:#?}");
}

async fn c_22_a_hand_that_raises_the_exposure_is_put_back_to_the_record(world: &mut World) {
    set_weight(world, 60).await;
    // A soak that stands still while the gateway follows is recorded.
    eventually("a tenth again", async || (world.weight().await == 10 && world.in_force().await).then_some(())).await;
    // A hand's raise is no evidence against the version.
    world.settled(&[Reason::Soak]).await;
    assert!(is_exposed(&world.record().unwrap()));
}

async fn a_hand_that_lowers_the_exposure_holds_the_run_until_it_is_back(world: &mut World) {
    world.start();
    set_weight(world, 0).await;
    let shown = world.until_condition(Reason::LoweredByHand).await;
    assert!(shown.contains("HTTPRoute"), "{shown}");
    world.settled(&[Reason::LoweredByHand]).await;
    assert_eq!(world.weight().await, 0);
    world.start();
    set_weight(world, 10).await;
    let record = world.until("a tenth again", |record| record.conditions.is_empty() && is_exposed(record)).await;
    world.decide_with(record.run.unwrap().id.as_str(), "skip", ", step: tenth");
    let record = world.until_steady(Rest::Succeeded).await;
    assert!(record.conditions.is_empty());
}

async fn x_16_drift_at_rest_is_put_back(world: &World) {
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
        (image(&deployment) == "example.test/web:2").then_some(())
    })
    .await;
    let record = world.record().unwrap();
    assert!(is_steady(&record, Rest::Succeeded) && record.history.len() == 1, "{record:#?}");
}

/// The last of these: what `kubectl set` once owned stays its own as well.
async fn attack_54_a_field_that_another_manager_owns_is_named_and_not_fought_over(world: &mut World) {
    world.kubectl(&["set", "image", "deployment/web", "main=example.test/web:9"], "").await;
    let shown = world.until_condition(Reason::FieldConflict).await;
    assert!(shown.contains("kubectl-set") && shown.contains("image"), "{shown}");
    world.settled(&[Reason::FieldConflict]).await;
    let deployment = world.get("Deployment", "web").await.unwrap();
    assert_eq!(image(&deployment), "example.test/web:9");
    world.start();
    world.kubectl(&["set", "image", "deployment/web", "main=example.test/web:2"], "").await;
    world.until("no conflict", |record| record.conditions.is_empty()).await;
}
