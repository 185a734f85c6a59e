//! Secrets that people keep: what pods cannot start without is waited for, what a rollout tracks is a part of the version, and what
//! stands in them is told to nobody.

use super::app::{App, PROMOTION_GATE, ungated};
use super::world::World;
use crate::support::audit;
use crate::support::cluster::eventually;
use crate::support::rights::Right;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tidegate::plan::report::Reason;
use tidegate::record::state::{Rest, RolloutState};

/// Stands in the Secret alone, and in copies of it.
const CANARY: [&str; 2] = ["canary-4f2a9c", "canary-81be07"];
/// Stands in a Secret that the pods need, and that is not tracked.
const TOKEN: &str = "hush-hush-59d1";

/// Lets the controller copy Secrets, as the chart does with `rbac.copySecrets=true`.
async fn grant(world: &mut World) {
    let (namespace, metadata) = (world.space.name.clone(), json!({"name": "secrets"}));
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata,
        "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]}],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "secrets"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": world.space.user}],
    });
    world.kubectl(&["apply", "-f", "-"], &format!("{role}\n---\n{binding}")).await;
    let (group, resource, name, verb) = (String::new(), "secrets".to_owned(), String::new(), "create".to_owned());
    world.space.rights.insert(Right { namespace, group, resource, name, verb });
}

/// The copy of the Secret that the pods of a Deployment read.
async fn copy(world: &World, deployment: &str) -> Option<Value> {
    let deployment = world.get("Deployment", deployment).await?;
    let source = &deployment["spec"]["template"]["spec"]["containers"][0]["envFrom"][0];
    world.get("Secret", source["secretRef"]["name"].as_str()?).await
}

/// What the pods of a Deployment read from it.
async fn secret(world: &World, deployment: &str) -> Option<String> {
    let copy = copy(world, deployment).await?;
    let text = copy["data"]["token"].as_str()?;
    CANARY.into_iter().find(|canary| text == encoded(canary)).map(str::to_owned)
}

fn encoded(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

async fn secrets(world: &World) -> usize {
    world.kubectl(&["get", "secrets", "-o", "name"], "").await.lines().count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attack_57_c_7_c_17_c_35_a_live_secret_is_a_part_of_the_version_and_told_to_nobody() {
    let target = format!("    layout: primary\n    track: {{secrets: [web]}}\n{}{PROMOTION_GATE}", ungated());
    let mut world = World::new("secrets", &target).await;
    world.add("  progressDeadline: 10m\n", &App::worker("api", 1));
    let image = "image: \"example.test/web:1\"";
    let reads = format!("{image}, envFrom: [{{secretRef: {{name: web}}}}, {{secretRef: {{name: token}}}}]");
    world.commit(&[("it/web.yaml", &App::new("web", 1).text().replace(image, &reads))]);
    world.start();
    let told = world.until_condition(Reason::ReferenceMissing).await;
    assert!(told.contains("Secret web"), "{told}");
    world.kubectl(&["create", "secret", "generic", "web", &format!("--from-literal=token={}", CANARY[0])], "").await;
    c_7_a_missing_secret_holds_the_run_until_it_is_there_and_nobody_reads_it(&world).await;
    let told = world.until_condition(Reason::Forbidden).await;
    assert!(told.contains("rbac.copySecrets"), "{told}");
    assert!(world.get("Deployment", "web-primary").await.is_none(), "no pods without it");
    grant(&mut world).await;
    world.until_steady(Rest::Initialized).await;
    assert_eq!(secret(&world, "web-primary").await.as_deref(), Some(CANARY[0]));
    assert_eq!(copy(&world, "web-primary").await.unwrap()["immutable"], json!(true));

    let patch = json!({"stringData": {"token": CANARY[1]}}).to_string();
    world.kubectl(&["patch", "secret", "web", "--type=merge", "-p", &patch], "").await;
    world.until_on("half").await;
    assert_eq!(secret(&world, "web").await.as_deref(), Some(CANARY[1]));
    world.approve("promotion").await;
    world.until_steady(Rest::Succeeded).await;
    assert_eq!(secret(&world, "web-primary").await.as_deref(), Some(CANARY[1]));
    eventually("the end of the old copy", async || (secrets(&world).await == 3).then_some(())).await;
    world.settled(&[]).await;
    nobody_was_told(&world).await;

    world.remove(&["it/web.rollout.yaml"]);
    world.once().await;
    assert!(world.record().is_none());
    eventually("the end of the copies", async || (secrets(&world).await == 2).then_some(())).await;
}

async fn c_7_a_missing_secret_holds_the_run_until_it_is_there_and_nobody_reads_it(world: &World) {
    let missing =
        "Secret token, which the pods need (it/web.yaml:9), is neither among the manifests nor in the cluster";
    let told = |record: &RolloutState| record.conditions.iter().any(|condition| condition.message == missing);
    world.until("a Secret that is missing", told).await;
    assert!(world.get("Deployment", "web-primary").await.is_none(), "nothing is made");
    world.kubectl(&["create", "secret", "generic", "token", &format!("--from-literal=key={TOKEN}")], "").await;
}

/// What the Secret holds is in Secrets, and nowhere else: not in Git, nor in what the controller wrote or asked.
async fn nobody_was_told(world: &World) {
    let history = world.origin.git(&["log", "-p", "--all"]);
    let kinds =
        "configmaps,events,deployments.apps,replicasets.apps,pods,services,httproutes.gateway.networking.k8s.io";
    let live = world.kubectl(&["get", kinds, "-o", "json"], "").await;
    for canary in [CANARY[0], CANARY[1], TOKEN].map(|canary| [canary.to_owned(), encoded(canary)]).concat() {
        assert!(!history.contains(&canary) && !live.contains(&canary), "{canary}");
    }
    let requests = world.requests_since(audit::Mark::START).await;
    let of_secrets = requests.iter().filter(|request| request.resource == "secrets");
    let verbs: BTreeSet<&str> = of_secrets.map(|request| request.verb.as_str()).collect();
    assert_eq!(verbs, BTreeSet::from(["create", "get"]));
}
