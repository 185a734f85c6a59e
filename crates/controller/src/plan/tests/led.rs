//! The layout `primary` behind each router that splits a route: what leads users to both versions' Services.

use super::manifests::{QUICK, primary, set_with};
use super::world::World;
use crate::manifest::decision::DecisionAction;
use crate::manifest::desired::Set;
use crate::manifest::object::{Kind, OWNER};
use crate::plan::action::Class;
use crate::plan::evidence::Answer;
use serde_json::{Value, json};
use std::sync::Arc;

/// One router: how a plan names it, the routes among the manifests, and what Flagger makes of these.
struct Led {
    router: &'static str,
    routes: fn() -> Vec<Value>,
    left: fn() -> Vec<Value>,
    /// What carries the split.
    route: (Kind, &'static str),
}

const ALL: [Led; 4] = [
    Led {
        router: "istio: {virtualService: podinfo, service: podinfo}",
        routes: mesh,
        left: left_in_mesh,
        route: (Kind::VirtualService, "podinfo"),
    },
    Led {
        router: "nginx: {ingress: podinfo, service: podinfo}",
        routes: || vec![ingress("podinfo", "podinfo", json!({}))],
        left: left_of_ingress,
        route: (Kind::Ingress, "podinfo-canary"),
    },
    Led {
        router: "traefik: {traefikService: podinfo, service: podinfo}",
        routes: || vec![weighted(json!([{"name": "podinfo", "port": 80}]))],
        left: || vec![weighted(json!([{"name": "podinfo-primary", "namespace": "shop", "port": 80, "weight": 100}]))],
        route: (Kind::TraefikService, "podinfo"),
    },
    Led {
        router: "ingressRoute: {ingressRoute: podinfo, service: podinfo}",
        routes: || vec![ingress_route("podinfo")],
        left: || vec![ingress_route("podinfo-primary")],
        route: (Kind::IngressRoute, "podinfo"),
    },
];

const ISTIO: &str = "networking.istio.io/v1";

fn virtual_service(route: Value) -> Value {
    let spec = json!({"hosts": ["podinfo"], "gateways": ["mesh"], "http": [{"timeout": "15s", "route": route}]});
    json!({"apiVersion": ISTIO, "kind": "VirtualService", "metadata": {"name": "podinfo"}, "spec": spec})
}

fn destination_rule(name: &str) -> Value {
    let spec = json!({"host": name, "trafficPolicy": {"tls": {"mode": "ISTIO_MUTUAL"}}});
    json!({"apiVersion": ISTIO, "kind": "DestinationRule", "metadata": {"name": name}, "spec": spec})
}

fn mesh() -> Vec<Value> {
    vec![destination_rule("podinfo"), virtual_service(json!([{"destination": {"host": "podinfo"}}]))]
}

fn left_in_mesh() -> Vec<Value> {
    let to = |host: &str, weight: u32| json!({"destination": {"host": host}, "weight": weight});
    let route = virtual_service(json!([to("podinfo-primary", 100), to("podinfo-canary", 0)]));
    vec![route, destination_rule("podinfo-primary"), destination_rule("podinfo-canary")]
}

pub(super) fn ingress(name: &str, service: &str, annotations: Value) -> Value {
    let path =
        json!({"path": "/", "pathType": "Prefix", "backend": {"service": {"name": service, "port": {"number": 80}}}});
    let spec =
        json!({"ingressClassName": "nginx", "rules": [{"host": "podinfo.example.org", "http": {"paths": [path]}}]});
    let metadata = json!({"name": name, "annotations": annotations, "creationTimestamp": "2026-01-01T00:00:00Z"});
    json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": metadata, "spec": spec})
}

fn left_of_ingress() -> Vec<Value> {
    let of = "nginx.ingress.kubernetes.io/canary";
    let annotations = json!({of: "false", format!("{of}-weight"): "0"});
    let mut canary = ingress("podinfo-canary", "podinfo-canary", annotations);
    canary["metadata"]["creationTimestamp"] = "2026-01-02T00:00:00Z".into();
    vec![ingress("podinfo", "podinfo", json!({})), canary]
}

fn weighted(services: Value) -> Value {
    let spec = json!({"weighted": {"services": services}});
    json!({"apiVersion": "traefik.io/v1alpha1", "kind": "TraefikService", "metadata": {"name": "podinfo"}, "spec": spec})
}

fn ingress_route(service: &str) -> Value {
    let services = json!([{"name": service, "port": 80}]);
    let spec = json!({"routes": [{"match": "Host(`podinfo.example.org`)", "kind": "Rule", "services": services}]});
    json!({"apiVersion": "traefik.io/v1alpha1", "kind": "IngressRoute", "metadata": {"name": "podinfo"}, "spec": spec})
}

impl Led {
    fn plan(&self) -> String {
        let route = "gatewayApi: {httpRoute: podinfo, service: podinfo}";
        primary(QUICK).replace(route, self.router)
    }

    fn set(&self, version: &str) -> Arc<Set> {
        set_with(version, |all| {
            all.pop();
            all.extend((self.routes)().into_iter().map(|mut route| {
                route["metadata"].as_object_mut().unwrap().remove("creationTimestamp");
                route
            }));
        })
    }

    fn world(&self) -> World {
        let mut world = World::new(&self.plan(), "1");
        world.want(&self.plan(), self.set("1"));
        world
    }

    /// Version 1 is steady, and version 2 wanted.
    fn in_run(&self) -> World {
        let mut world = self.world();
        world.settle();
        world.want(&self.plan(), self.set("2"));
        world.settle();
        assert_eq!((world.phase().as_str(), world.weight()), ("Progressing(tenth)", 10), "{}", self.router);
        world
    }
}

#[test]
fn c_1_c_4_from_nothing_and_from_what_serves_the_copy_is_ready_before_anything_leads_to_it() {
    for led in ALL {
        let expected = [
            "no and no pods, nobody serves",
            "no and 4 pods, nobody serves",
            "no and 4 pods, podinfo-primary serves",
            "0 and 4 pods, podinfo-primary serves",
        ];
        let mut world = led.world();
        assert_eq!(world.watched(), expected, "{}", led.router);
        world.settle();
        assert_eq!(world.phase(), "Steady", "{}", led.router);

        let mut world = led.world();
        world.exists(&led.set("1"));
        let expected = [
            "4 and no pods, podinfo serves",
            "4 and 4 pods, podinfo serves",
            "4 and 4 pods, podinfo-primary serves",
            "0 and 4 pods, podinfo-primary serves",
        ];
        assert_eq!(world.watched(), expected, "{}", led.router);
        world.settle();
        assert_eq!(world.phase(), "Steady", "{}", led.router);
    }
}

/// What is there as Flagger leaves it once its Canary was deleted without what that owns.
fn left_by_flagger(led: &Led, routes: Vec<Value>) -> World {
    let mut steady = led.world();
    steady.settle();
    let mut world = led.world();
    let objects = steady.live.objects.values().map(|object| object.value().clone());
    let others = objects.filter(|object| {
        object["kind"] != "EndpointSlice" && !Kind::ROUTES.iter().any(|kind| object["kind"] == kind.as_str())
    });
    // Flagger has none for the Service itself.
    let others = others.filter(|object| object["kind"] != "DestinationRule");
    for mut object in others.chain(routes) {
        object["metadata"]["annotations"]["kustomize.toolkit.fluxcd.io/reconcile"] = "disabled".into();
        let annotations = object["metadata"]["annotations"].as_object_mut().unwrap();
        annotations.retain(|key, _| !key.starts_with("tidegate.io/"));
        object["metadata"]["managedFields"] = json!([{"manager": "flagger", "operation": "Update"}]);
        world.exists_value(object);
    }
    world.controllers();
    world
}

#[test]
fn what_flagger_left_behind_is_taken_over_and_goes_through_a_run() {
    for led in ALL {
        let mut world = left_by_flagger(&led, (led.left)());
        assert_eq!(world.watched(), ["0 and 4 pods, podinfo-primary serves"], "{}", led.router);
        world.settle();
        assert_eq!((world.phase().as_str(), world.waits()), ("Steady", vec![]), "{}: {:#?}", led.router, world.log);
        for route in (led.routes)() {
            let kind = Kind::find(route["apiVersion"].as_str().unwrap(), route["kind"].as_str().unwrap()).unwrap();
            assert_eq!(world.get(kind, "podinfo").unwrap().at("/spec"), Some(&route["spec"]), "{}", led.router);
        }
        world.want(&led.plan(), led.set("2"));
        world.settle();
        world.pass(61);
        world.pass(61);
        world.pass(61);
        assert_eq!(
            (world.phase().as_str(), world.image("podinfo-primary")),
            ("Steady", Some("app:2")),
            "{}",
            led.router
        );
        assert_eq!(world.weights, [0, 10, 50, 100, 0], "{}", led.router);
    }
}

#[test]
fn what_flagger_leads_to_its_canary_by_now_is_not_taken_over() {
    let analysing: [fn() -> Vec<Value>; 3] = [
        || {
            let to = |host: &str, weight: u32| json!({"destination": {"host": host}, "weight": weight});
            vec![virtual_service(json!([to("podinfo-primary", 90), to("podinfo-canary", 10)]))]
        },
        || {
            let of = "nginx.ingress.kubernetes.io/canary";
            let annotations = json!({of: "true", format!("{of}-weight"): "10"});
            vec![ingress("podinfo", "podinfo", json!({})), ingress("podinfo-canary", "podinfo-canary", annotations)]
        },
        || {
            let to = |name: &str, weight: u32| json!({"name": name, "namespace": "shop", "port": 80, "weight": weight});
            vec![weighted(json!([to("podinfo-primary", 90), to("podinfo-canary", 10)]))]
        },
    ];
    for (led, routes) in ALL.iter().zip(analysing) {
        let mut world = left_by_flagger(led, routes());
        let live = world.live.clone();
        for need in world.plan_now().needs {
            let answer = Answer { outcome: world.dry_run(&need.object), at: world.now };
            world.evidence.dry_runs.insert(need.question, answer);
        }
        assert_eq!(world.waits(), ["AdoptionDiffers"], "{}: {:#?}", led.router, world.plan_now().waits);
        assert_eq!(world.live, live, "{}", led.router);
    }
}

#[test]
fn c_21_going_back_takes_traffic_first_and_leaves_nothing_of_the_run() {
    for led in ALL {
        let mut world = led.in_run();
        world.say(DecisionAction::Abort);
        let retreats = world.plan_now().retreats;
        let (kind, name) = led.route;
        let first = retreats[0].verb.target();
        assert_eq!((first.kind, first.name.as_str()), (kind, name), "{}", led.router);
        assert!(retreats.iter().all(|action| action.class == Class::Retreat), "{retreats:?}");
        world.settle();
        assert_eq!((world.phase().as_str(), world.image("podinfo")), ("Steady", Some("app:1")), "{}", led.router);
        assert!(world.marked().is_empty(), "{}: {:?}", led.router, world.marked());
        let names: Vec<String> = world.live.objects.values().map(|object| object.reference().to_string()).collect();
        let of_run = |name: &&String| name.ends_with("-canary") && !name.starts_with("Service");
        assert_eq!(names.iter().find(of_run), None, "{}", led.router);
    }
}

#[test]
fn the_brake_works_without_a_record_behind_each_router() {
    for led in ALL {
        let mut world = led.in_run();
        world.unreadable = true;
        world.brake = Ok(Some(crate::gate::BrakeWord::Revert));
        world.settle();
        assert_eq!((world.weight(), world.image("podinfo")), (0, Some("app:2")), "{}", led.router);
        (world.unreadable, world.brake) = (false, Ok(None));
        world.settle();
        assert_eq!((world.phase().as_str(), world.image("podinfo")), ("Steady", Some("app:1")), "{}", led.router);
    }
}

#[test]
fn c_35_a_rollout_that_leaves_main_in_a_run_leaves_what_the_manifests_say() {
    for led in ALL {
        let mut world = led.in_run();
        world.gone();
        world.watched();
        assert!(world.record.is_none(), "{}", led.router);
        let mut names: Vec<String> = world.live.objects.values().map(|o| o.reference().to_string()).collect();
        names.retain(|name| !name.starts_with("EndpointSlice"));
        let wanted: Vec<String> = led.set("1").objects.keys().map(ToString::to_string).collect();
        assert_eq!(names, wanted, "{}", led.router);
        assert!(world.live.objects.values().all(|object| object.annotation(OWNER).is_none()), "{}", led.router);
        let service = world.get(Kind::Service, "podinfo").unwrap();
        assert_eq!(service.text("/spec/selector/app"), Some("podinfo"), "{}", led.router);
    }
}
