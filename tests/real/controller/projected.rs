//! Rollouts as objects of Kubernetes: what people see with kubectl, and that nothing hangs on it.

use super::app::{App, GATED};
use super::world::{STATE, World};
use crate::support::cluster::{PATIENCE, eventually};
use crate::support::rights::Right;
use serde_json::{Value, json};
use tidegate::record::state::{Phase, Rest};
use tidegate::report::projection::DEFINITION;

/// Lets the controller write such objects, as the chart does with `projection.enabled=true`.
async fn grant(world: &mut World) {
    const VERBS: [&str; 4] = ["create", "delete", "list", "patch"];
    let (namespace, metadata) = (world.space.name.clone(), json!({"name": "projection"}));
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata,
        "rules": [{"apiGroups": ["tidegate.io"], "resources": ["rollouts"], "verbs": VERBS}],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "projection"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": world.space.user}],
    });
    world.kubectl(&["apply", "-f", "-"], &format!("{role}\n---\n{binding}")).await;
    world.space.rights.extend(VERBS.map(|verb| Right {
        namespace: namespace.clone(),
        group: "tidegate.io".to_owned(),
        resource: "rollouts".to_owned(),
        name: String::new(),
        verb: verb.to_owned(),
    }));
}

async fn shown(world: &World) -> Value {
    let text = world.kubectl(&["get", "rollout", "web", "--ignore-not-found", "-o", "json"], "").await;
    serde_json::from_str(&text).unwrap_or_default()
}

/// What a poll asks of Git is counted where hours take no time; what a real API server was asked stands in its audit log.
async fn at_rest_the_cluster_is_asked_for_nothing_but_the_lease(world: &World) {
    world.polls(3).await;
    let (start, tip) = (world.bed.mark().await, world.origin.tip(STATE));
    let asked = eventually("the Lease is renewed", async || {
        let asked = world.requests_since(start).await;
        let renewed = asked.iter().filter(|request| request.resource == "leases" && request.is_write()).count();
        (renewed >= 3).then_some(asked)
    })
    .await;
    let others: Vec<_> = asked.iter().filter(|r| r.resource != "leases" && r.verb != "watch").collect();
    assert!(others.is_empty(), "{others:#?}");
    assert_eq!(world.origin.tip(STATE), tip);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_13_kubectl_waits_for_a_promotion_and_a_missing_definition_holds_nothing() {
    let mut world = World::new("projected", GATED).await;
    grant(&mut world).await;
    world.providers = "  projection: true\n".to_owned();
    world.start();
    world.until_steady(Rest::Initialized).await;
    world.kill().await;

    world.kubectl(&["apply", "--server-side", "-f", "-"], DEFINITION).await;
    let patience = format!("--timeout={}s", PATIENCE.as_secs());
    world.kubectl(&["wait", "--for=condition=Established", &patience, "crd/rollouts.tidegate.io"], "").await;
    // Who finds a kind that is not served yet tries again a minute later.
    let get = ["--namespace", &world.space.name, "get", "rollouts"];
    eventually("the kind is served", async || world.bed.try_kubectl(&get, "").await.ok()).await;
    world.start();
    let wait = ["wait", "--for=create", &patience, "rollout/web"];
    world.kubectl(&wait, "").await;
    let wait = ["wait", "--for=condition=Promoted", &patience, "rollout/web"];
    world.kubectl(&wait, "").await;
    world.release(&App::new("web", 2));
    eventually("the run is shown", async || {
        let status = shown(&world).await["status"].take();
        let waits = status["message"].as_str()?.starts_with("Approval: ");
        (waits && status["phase"] == "Waiting" && status["conditions"][0]["status"] == "Unknown").then_some(())
    })
    .await;
    world.approve("tenth").await;
    world.until_steady(Rest::Succeeded).await;
    world.kubectl(&wait, "").await;
    let table = world.kubectl(&["get", "rollouts"], "").await;
    assert!(table.contains("PHASE") && table.contains("Steady"), "{table}");
    let seen = shown(&world).await;
    assert_eq!(seen["status"]["conditions"][0]["reason"], "Succeeded");
    at_rest_the_cluster_is_asked_for_nothing_but_the_lease(&world).await;

    // Nothing is written at rest, also not by a new process; what a hand writes there is not read.
    world.settled(&[]).await;
    assert_eq!(shown(&world).await["metadata"]["resourceVersion"], seen["metadata"]["resourceVersion"]);
    let hand = json!({"status": {"phase": "Failed"}}).to_string();
    world.kubectl(&["patch", "rollout", "web", "--type=merge", "-p", &hand], "").await;
    world.start();
    world.polls(2).await;
    assert!(matches!(world.record().unwrap().phase, Phase::Steady { .. }));
    // A main without any rollout would not be believed.
    world.add("  progressDeadline: 10m\n", &App::worker("api", 1));
    world.remove(&["it/web.rollout.yaml", "it/web.yaml"]);
    eventually("it goes with its rollout", async || shown(&world).await.is_null().then_some(())).await;
}
