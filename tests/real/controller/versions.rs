//! The layout `versioned`: version 2 comes under names of its own, and version 1 goes once nothing names it any more.

use super::app::App;
use super::hosted::twice_gated;
use super::world::{World, is_exposed};
use crate::support::cluster::eventually;
use serde_json::{Value, json};
use tidegate::manifest::desired::Router;
use tidegate::plan::report::Reason;
use tidegate::record::state::Rest;

/// The rollout's file and the manifests of a version.
fn files(namespace: &str, version: u8) -> [(&'static str, String); 2] {
    let name = format!("web-v{version}");
    let traffic = twice_gated().replace("service: web", &format!("service: {name}"));
    let rollout = format!(
        "apiVersion: tidegate.io/v1alpha1\nkind: Rollout\nmetadata: {{name: web, namespace: {namespace}}}\nspec:\n  \
         manifests: [web.yaml]\n  target: {{kind: Deployment, name: {name}, layout: versioned}}\n{traffic}"
    );
    let app = App { config: Some("hello"), ..App::new(&name, version) };
    let route = |name: &str| format!("kind: HTTPRoute\nmetadata: {{name: {name}}}");
    [("it/web.rollout.yaml", rollout), ("it/web.yaml", app.text().replace(&route(&name), &route("web")))]
}

impl World {
    fn version(&self, version: u8) {
        let files = files(&self.space.name, version);
        self.commit(&files.each_ref().map(|(path, text)| (*path, text.as_str())));
    }

    /// The Services that the route leads to, with their weights.
    async fn led_to(&self) -> Vec<(String, u64)> {
        let route = self.get("HTTPRoute", "web").await.unwrap();
        let rules = route["spec"]["rules"].as_array().unwrap().clone();
        let refs = rules.iter().flat_map(|rule| rule["backendRefs"].as_array().unwrap());
        let one =
            |backend: &Value| (backend["name"].as_str().unwrap().to_owned(), backend["weight"].as_u64().unwrap_or(1));
        refs.map(one).collect()
    }

    /// Whether all, or none, of a version's objects are there.
    async fn has(&self, version: u8) -> bool {
        let name = format!("web-v{version}");
        let mut there = Vec::new();
        for kind in ["Deployment", "Service", "ConfigMap"] {
            there.push(self.get(kind, &name).await.is_some());
        }
        assert!(there.iter().all(|one| *one == there[0]), "{name}: {there:?}");
        there[0]
    }

    async fn gone(&self, version: u8) {
        let name = format!("web-v{version}");
        for kind in ["Service", "Deployment", "ConfigMap"] {
            eventually(&format!("the end of {kind} {name}"), async || {
                self.get(kind, &name).await.is_none().then_some(())
            })
            .await;
        }
    }
}

/// Version 1 of `web`.
pub(super) fn begins(world: &mut World) {
    let id = format!("{}/web", world.space.name);
    let [web, old, new] = ["web", "web-v1", "web-v2"].map(|name| name.parse().unwrap());
    world.watch_versions(&id, Router::GatewayApi { http_route: web, service: old }, &new);
    world.version(1);
}

/// Somebody else's route leads to the old version.
pub(super) async fn t_7_t_19_a_version_of_its_own_name_replaces_the_old_one_once_nobody_names_that(world: &World) {
    world.until_steady(Rest::Initialized).await;
    assert_eq!(world.led_to().await, [("web-v1".to_owned(), 1)]);
    let legacy = json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": "legacy"}, "spec": {
        "parentRefs": [{"name": "public"}], "hostnames": ["legacy.example.test"], "rules": [{"backendRefs": [{"name": "web-v1", "port": 80}]}]}});
    world.kubectl(&["apply", "-f", "-"], &legacy.to_string()).await;
    world.version(2);
    world.approve("tenth").await;
    world.until("tenth", is_exposed).await;
    assert_eq!(world.led_to().await, [("web-v1".to_owned(), 90), ("web-v2".to_owned(), 10)]);
    assert!(world.has(1).await && world.has(2).await);
    world.approve("half").await;
    world.until_steady(Rest::Succeeded).await;
    let told = world.until_condition(Reason::StillReferenced).await;
    assert!(told.contains("web-v1") && told.contains("HTTPRoute") && told.contains("legacy"), "{told}");
    assert_eq!(world.led_to().await, [("web-v2".to_owned(), 1)]);
    assert!(world.has(1).await && world.has(2).await);
    world.kubectl(&["delete", "httproute", "legacy"], "").await;
    world.gone(1).await;
    assert!(world.has(2).await);
}
