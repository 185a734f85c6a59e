//! Other routers on the real API server, with the rights of the chart. What Istio and ingress-nginx would do with the objects is not
//! tried: neither is there.

use super::app::{App, of};
use super::world::{Held, World, is_on, rollout_of};
use super::{copies, versions};
use crate::support::cluster::Bed;
use serde_json::Value;
use tidegate::record::state::{Phase, Rest, RolloutState};

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

const MESH: Case = Case {
    name: "mesh",
    traffic: "{istio: {virtualService: web, service: web}, settle: 0s, drain: 2s}",
    phases: SPLIT,
    route: "{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: web}, \
            spec: {hosts: [web.example.test], http: [{route: [{destination: {host: web}}]}]}}",
    weight: 50,
};

const EDGE: Case = Case {
    name: "edge",
    traffic: "{nginx: {ingress: web, service: web}, settle: 0s, drain: 2s}",
    phases: SPLIT,
    route: "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: web}, spec: {ingressClassName: nginx, rules: \
            [{host: web.example.test, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]}}",
    weight: 50,
};

const FLIP: Case = Case {
    name: "flip",
    traffic: "{service: web, settle: 0s, drain: 2s}",
    phases: "  - {name: look, expose: {preview: fullSize}, soak: 1s}\n",
    route: "",
    weight: 0,
};

impl Case {
    fn spec(&self, deadline: &str) -> String {
        let Self { traffic, phases, .. } = self;
        let promotion = "  promotion: {before: {approval: pullRequest}, bake: 1s}\n";
        let spec = format!("  traffic: {traffic}\n  phases:\n{phases}{promotion}  progressDeadline: {deadline}\n");
        of(self.name, &spec)
    }

    fn last(&self) -> &'static str {
        if self.weight == 0 { "look" } else { "half" }
    }

    /// Begins with version 1.
    fn begins(&self, world: &mut World) {
        let route = of(self.name, self.route);
        world.add(&self.spec("10m"), &App { host: None, more: &route, ..App::new(self.name, 1) });
    }

    fn release(&self, world: &World, version: u8) {
        self.release_within(world, version, "10m");
    }

    /// Its pods have that time to become ready.
    fn release_within(&self, world: &World, version: u8, deadline: &str) {
        let Self { name, route, .. } = self;
        let (rollout, route) = (rollout_of(&world.space.name, name, &self.spec(deadline)), of(name, route));
        let app = App { host: None, more: &route, ..App::new(name, version) };
        world.commit(&[(&format!("it/{name}.rollout.yaml"), &rollout), (&format!("it/{name}.yaml"), &app.text())]);
    }

    /// Brings a version to its last phase, whose pods fail there. Where nobody is led to them, only the deadline tells, which is short:
    /// a machine on which the pods of a good version take longer gets another version, and more time.
    async fn fails(&self, world: &World) {
        let Self { name, weight, .. } = *self;
        let deadlines: &[&str] = if weight == 0 { &["30s", "5m"] } else { &["10m"] };
        for (version, deadline) in (3..).zip(deadlines) {
            let runs = world.record_of(name).unwrap().next_run;
            self.release_within(world, version, deadline);
            let ended = |record: &RolloutState| record.next_run > runs && matches!(record.phase, Phase::Failed { .. });
            let stands = |record: &RolloutState| is_on(record, self.last()) || ended(record);
            let record = world.until_of(name, self.last(), stands).await;
            if is_on(&record, self.last()) {
                world.break_pods(&format!("{name}-canary")).await;
                world.until_of(name, "the failure", ended).await;
                return;
            }
            let Phase::Failed { why, .. } = record.phase else { panic!("it has failed") };
            assert!(why.contains(&format!("not ready after {deadline}")), "{why}");
        }
        panic!("{name}: no version was ready within {deadlines:?}");
    }

    /// One version is promoted, and the next one fails.
    async fn plays(&self, world: &World) {
        let Self { name, .. } = *self;
        world.until_steady_of(name, Rest::Initialized).await;
        let at_rest = world.routes(name).await;

        self.release(world, 2);
        world.approve_of(name, "promotion").await;
        world.until_steady_of(name, Rest::Succeeded).await;
        assert_eq!(world.routes(name).await, at_rest, "{name}: as before the run");

        self.fails(world).await;
        assert_eq!(world.routes(name).await, at_rest, "{name}: all is back");
        let traces = world.traces().await;
        assert!(!traces.iter().any(|trace| trace.contains(&format!("/{name}"))), "{traces:?}");

        self.release(world, 2);
        world.until_steady_of(name, Rest::Reverted).await;
    }
}

impl World {
    /// What leads requests to an app, without what the API server writes.
    async fn routes(&self, app: &str) -> Vec<(String, Value)> {
        let kinds = "service,ingress,virtualservices.networking.istio.io";
        let list: Value = serde_json::from_str(&self.kubectl(&["get", kinds, "--output", "json"], "").await).unwrap();
        let routes = list["items"].as_array().unwrap().iter();
        let routes =
            routes.map(|route| (route["metadata"]["name"].as_str().unwrap().to_owned(), route["spec"].clone()));
        let routes: Vec<_> = routes.filter(|(name, _)| name.starts_with(app)).collect();
        assert_ne!(routes.len(), 0, "nothing leads to {app}");
        routes
    }
}

/// Applications at once, each with a router of its own, and the other layouts beside them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_21_c_22_virtual_services_ingresses_and_selectors_follow_the_record() {
    let mut world = World::empty(Held::Shared(Bed::shared().await), "routers").await;
    for case in [MESH, EDGE, FLIP] {
        case.begins(&mut world);
    }
    versions::begins(&mut world);
    copies::begins(&mut world);
    world.start();
    tokio::join!(
        c_21_c_22_istio_routes_follow_the_record(&world),
        c_21_c_22_ingresses_follow_the_record(&world),
        c_21_c_22_selectors_follow_the_record(&world),
        versions::t_7_t_19_a_version_of_its_own_name_replaces_the_old_one_once_nobody_names_that(&world),
        copies::c_17_c_18_c_31_the_copy_has_an_autoscaler_of_its_own_that_follows_a_promotion_alone(&world),
    );
    world.settled(&[]).await;
    copies::c_31_it_keeps_its_word(&world).await;
    let kept = world.kept();
    let highest: Vec<_> = kept.iter().map(|(name, checked)| (name.as_str(), checked.highest_weight.get())).collect();
    assert_eq!(highest, [("edge", 100), ("flip", 100), ("mesh", 100), ("scaled", 100), ("web", 100)]);
    for name in [EDGE, FLIP, MESH].map(|case| case.name) {
        assert_eq!(kept[name].stable_pods.len(), 2, "{name}");
    }
}

async fn c_21_c_22_istio_routes_follow_the_record(world: &World) {
    MESH.plays(world).await;
}

async fn c_21_c_22_ingresses_follow_the_record(world: &World) {
    EDGE.plays(world).await;
}

async fn c_21_c_22_selectors_follow_the_record(world: &World) {
    FLIP.plays(world).await;
}
