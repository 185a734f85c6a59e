//! Live objects that a rollout tracks.

use super::app::{App, PROMOTION_GATE, ungated};
use super::hosted::twice_gated;
use super::world::World;
use crate::support::audit;
use crate::support::cluster::eventually;
use crate::support::rights::Right;
use serde_json::{Value, json};
use std::collections::BTreeSet;
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
    let target = format!("    layout: primary\n    track: {{configMaps: [web]}}\n{}", twice_gated());
    let mut world = World::new("tracked", &target).await;
    // Another stays: a main without any rollout would be a mistake, and not followed.
    world.add("  progressDeadline: 90s\n", &App::worker("api", 1));
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
    world.approve("half").await;
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

/// Stands in the Secret alone, and in copies of it.
const CANARY: [&str; 2] = ["canary-4f2a9c", "canary-81be07"];

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

/// What the pods of a Deployment read from a Secret.
async fn secret(world: &World, deployment: &str) -> Option<String> {
    let deployment = world.get("Deployment", deployment).await?;
    let source = &deployment["spec"]["template"]["spec"]["containers"][0]["envFrom"][0];
    let copy = world.get("Secret", source["secretRef"]["name"].as_str()?).await?;
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
    world.add("  progressDeadline: 90s\n", &App::worker("api", 1));
    let image = "image: \"example.test/web:1\"";
    let reads = format!("{image}, envFrom: [{{secretRef: {{name: web}}}}]");
    world.commit(&[("it/web.yaml", &App::new("web", 1).text().replace(image, &reads))]);
    world.start();
    let told = world.until_condition(Reason::ReferenceMissing).await;
    assert!(told.contains("Secret web"), "{told}");
    world.kubectl(&["create", "secret", "generic", "web", &format!("--from-literal=token={}", CANARY[0])], "").await;
    let told = world.until_condition(Reason::Forbidden).await;
    assert!(told.contains("rbac.copySecrets"), "{told}");
    assert!(world.get("Deployment", "web-primary").await.is_none(), "no pods without it");
    grant(&mut world).await;
    world.until_steady(Rest::Initialized).await;
    assert_eq!(secret(&world, "web-primary").await.as_deref(), Some(CANARY[0]));

    let patch = json!({"stringData": {"token": CANARY[1]}}).to_string();
    world.kubectl(&["patch", "secret", "web", "--type=merge", "-p", &patch], "").await;
    world.until_on("half").await;
    assert_eq!(secret(&world, "web").await.as_deref(), Some(CANARY[1]));
    world.approve("promotion").await;
    world.until_steady(Rest::Succeeded).await;
    assert_eq!(secret(&world, "web-primary").await.as_deref(), Some(CANARY[1]));
    eventually("the end of the old copy", async || (secrets(&world).await == 2).then_some(())).await;
    world.settled(&[]).await;
    nobody_was_told(&world).await;

    world.remove(&["it/web.rollout.yaml"]);
    world.once().await;
    assert!(world.record().is_none());
    eventually("the end of the copies", async || (secrets(&world).await == 1).then_some(())).await;
}

/// What the Secret holds is in Secrets, and nowhere else: not in Git, nor in what the controller wrote or asked.
async fn nobody_was_told(world: &World) {
    let history = world.origin.git(&["log", "-p", "--all"]);
    let kinds =
        "configmaps,events,deployments.apps,replicasets.apps,pods,services,httproutes.gateway.networking.k8s.io";
    let live = world.kubectl(&["get", kinds, "-o", "json"], "").await;
    for canary in CANARY.map(|canary| [canary.to_owned(), encoded(canary)]).concat() {
        assert!(!history.contains(&canary) && !live.contains(&canary), "{canary}");
    }
    let requests = world.requests_since(audit::Mark::START).await;
    let of_secrets = requests.iter().filter(|request| request.resource == "secrets");
    let verbs: BTreeSet<&str> = of_secrets.map(|request| request.verb.as_str()).collect();
    assert_eq!(verbs, BTreeSet::from(["create", "get"]));
}
