//! Other routers on the real API server, with the rights of the chart. What Istio and ingress-nginx would do with the objects is not
//! tried: neither is there.

use super::app::App;
use super::world::{Held, World, is_on, is_steady};
use crate::support::cluster::Bed;
use serde_json::Value;
use tidegate::record::state::{Phase, Rest};

/// Stays at half of the requests until a person has spoken; and what is live then.
struct Case {
    name: &'static str,
    traffic: &'static str,
    phases: &'static str,
    route: &'static str,
    /// The largest share that may be seen at the last phase.
    weight: u8,
}

const SPLIT: &str = "  - {name: testers, expose: {headers: [{x-canary: always}]}, soak: 1s}\n  \
    - {name: half, expose: {weight: 50}, soak: 1s}\n";

const ISTIO: Case = Case {
    name: "istio",
    traffic: "{istio: {virtualService: web, service: web}, settle: 0s, drain: 2s}",
    phases: SPLIT,
    route: "{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: web}, \
            spec: {hosts: [web.example.test], http: [{route: [{destination: {host: web}}]}]}}",
    weight: 50,
};

const NGINX: Case = Case {
    name: "nginx",
    traffic: "{nginx: {ingress: web, service: web}, settle: 0s, drain: 2s}",
    phases: SPLIT,
    route: "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: web}, spec: {ingressClassName: nginx, rules: \
            [{host: web.example.test, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]}}",
    weight: 50,
};

const SERVICE: Case = Case {
    name: "service",
    traffic: "{service: web, settle: 0s, drain: 2s}",
    phases: "  - {name: look, expose: {preview: fullSize}, soak: 1s}\n",
    route: "",
    weight: 0,
};

impl Case {
    fn spec(&self) -> String {
        let Self { traffic, phases, .. } = self;
        let promotion = "  promotion: {before: {approval: pullRequest}, bake: 1s}\n  progressDeadline: 30s\n";
        format!("  traffic: {traffic}\n  phases:\n{phases}{promotion}")
    }

    fn app(&self, version: u8) -> App<'static> {
        App { host: None, more: self.route, ..App::new("web", version) }
    }

    fn last(&self) -> &'static str {
        if self.weight == 0 { "look" } else { "half" }
    }

    /// One version is promoted, and the next one fails.
    async fn plays(&self) {
        let mut world = World::empty(Held::Shared(Bed::shared().await), self.name).await;
        world.add(&self.spec(), &self.app(1));
        world.start();
        world.until_steady(Rest::Initialized).await;
        let at_rest = world.routes().await;

        world.release(&self.app(2));
        world.approve("promotion").await;
        world.until_steady(Rest::Succeeded).await;
        assert_eq!(world.routes().await, at_rest, "{}: as before the run", self.name);

        world.release(&self.app(3));
        world.until(self.last(), |record| is_on(record, self.last())).await;
        world.break_pods("web-canary").await;
        world.until("the failure", |record| matches!(record.phase, Phase::Failed { .. })).await;
        assert_eq!(world.routes().await, at_rest, "{}: all is back", self.name);
        assert_eq!(world.traces().await, [""; 0]);

        world.release(&self.app(2));
        world.until("main is back", |record| is_steady(record, Rest::Reverted)).await;
        let checked = world.settled(&[]).await;
        assert_eq!((checked.highest_weight.get(), checked.stable_pods.len()), (100, 2), "{}", self.name);
    }
}

impl World {
    /// What leads requests, without what the API server writes.
    async fn routes(&self) -> Vec<(String, Value)> {
        let kinds = "service,ingress,virtualservices.networking.istio.io";
        let list: Value = serde_json::from_str(&self.kubectl(&["get", kinds, "--output", "json"], "").await).unwrap();
        let spec = |object: &Value| (object["metadata"]["name"].to_string(), object["spec"].clone());
        list["items"].as_array().unwrap().iter().map(spec).collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_21_c_22_istio_routes_follow_the_record() {
    ISTIO.plays().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_21_c_22_ingresses_follow_the_record() {
    NGINX.plays().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_21_c_22_selectors_follow_the_record() {
    SERVICE.plays().await;
}
