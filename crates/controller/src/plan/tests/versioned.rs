//! The layout `versioned`: each version's objects have names of their own.

use super::manifests::{CANARY, QUICK, named, named_with, versioned};
use super::world::{Pods, World};
use crate::gate::BrakeWord;
use crate::manifest::decision::DecisionAction;
use crate::manifest::object::{Kind, OWNER, RETREATED, SEQ};
use serde_json::{Value, json};
use std::sync::Arc;

impl World {
    pub(super) fn of_versions(plan: &str) -> Self {
        let mut world = Self::new(&versioned(plan, "1"), "1");
        world.bring(plan, "1");
        assert_eq!((world.phase().as_str(), world.there()), ("Steady", OLD.to_owned()));
        world
    }

    fn bring(&mut self, plan: &str, version: &str) {
        self.want(&versioned(plan, version), named(version));
        self.settle();
    }

    /// The rollout's objects.
    fn there(&self) -> String {
        let short = |name: String| name.replace("shop/", "");
        let all = self.live.objects.values().filter(|object| object.annotation(OWNER).is_some());
        all.map(|object| short(object.reference().to_string())).collect::<Vec<_>>().join(", ")
    }

    /// The Services that a route leads to, with their weights.
    fn routed(&self, route: &str) -> String {
        let route = self.get(Kind::HttpRoute, route).expect("a route");
        let refs = route.at("/spec/rules").and_then(Value::as_array).expect("rules");
        let refs = refs.iter().flat_map(|rule| rule["backendRefs"].as_array().expect("backends"));
        let one = |backend: &Value| {
            format!("{} {}", backend["weight"].as_u64().unwrap_or(1), backend["name"].as_str().unwrap())
        };
        refs.map(one).collect::<Vec<_>>().join(", ")
    }

    /// Somebody else's route to a Service.
    pub(super) fn foreign_route(&mut self, service: &str) {
        self.exists_value(json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
            "metadata": {"name": "legacy"}, "spec": {"rules": [{"backendRefs": [{"name": service, "port": 80}]}]}}));
    }
}

const OLD: &str = "ConfigMap settings-v1, Deployment podinfo-v1, Service podinfo-v1, HTTPRoute podinfo";
const NEW: &str = "ConfigMap settings-v2, Deployment podinfo-v2, Service podinfo-v2, HTTPRoute podinfo";
const BOTH: &str = "ConfigMap settings-v1, ConfigMap settings-v2, Deployment podinfo-v1, Deployment podinfo-v2, \
                    Service podinfo-v1, Service podinfo-v2, HTTPRoute podinfo";

#[test]
fn t_7_the_route_collapses_to_the_new_version_and_then_the_old_one_goes() {
    let mut world = World::of_versions(CANARY);
    world.bring(CANARY, "2");
    assert_eq!((world.phase().as_str(), world.there()), ("Waiting", OLD.to_owned()), "nothing before a word");
    world.approve("tenth");
    assert_eq!((world.phase().as_str(), world.there()), ("Progressing(tenth)", BOTH.to_owned()));
    assert_eq!(world.routed("podinfo"), "90 podinfo-v1, 10 podinfo-v2");
    world.pass(306);
    world.pass(306);
    world.approve("promotion");
    assert_eq!(world.routed("podinfo"), "0 podinfo-v1, 100 podinfo-v2");
    let pods = world.get(Kind::Deployment, "podinfo-v2").unwrap().at("/spec/template").cloned();
    world.pass(66);
    assert_eq!((world.phase().as_str(), world.there()), ("Finalising(return)", BOTH.to_owned()), "C-20: it drains");
    assert_eq!(world.routed("podinfo"), "1 podinfo-v2");
    world.pass(31);
    assert_eq!((world.phase().as_str(), world.there()), ("Steady", NEW.to_owned()));
    assert_eq!(
        world.get(Kind::Deployment, "podinfo-v2").unwrap().at("/spec/template").cloned(),
        pods,
        "no pod restarts"
    );
    // So it goes on.
    world.bring(CANARY, "3");
    world.approve("tenth");
    assert_eq!(world.routed("podinfo"), "90 podinfo-v2, 10 podinfo-v3");
}

#[test]
fn t_8_going_back_takes_the_new_versions_objects_away() {
    let mut world = World::of_versions(QUICK);
    world.bring(QUICK, "2");
    assert_eq!(world.routed("podinfo"), "90 podinfo-v1, 10 podinfo-v2");
    world.say(DecisionAction::Abort);
    let retreats = world.plan_now().retreats;
    assert_eq!(retreats[0].verb.target().kind, Kind::HttpRoute, "C-21: {retreats:?}");
    world.settle();
    assert_eq!((world.phase().as_str(), world.there()), ("Steady", OLD.to_owned()));
    assert_eq!((world.routed("podinfo"), world.marked()), ("1 podinfo-v1".to_owned(), vec![]));

    world.behave("app:3", Pods::Stuck);
    world.bring(QUICK, "3");
    world.pass(601);
    assert_eq!((world.phase().as_str(), world.there()), ("Failed", OLD.to_owned()));
}

#[test]
fn t_7_t_19_the_old_version_stays_as_long_as_a_route_of_others_names_it() {
    let mut world = World::of_versions(QUICK);
    world.foreign_route("podinfo-v1");
    world.bring(QUICK, "2");
    for _ in 0..4 {
        world.pass(61);
    }
    assert_eq!((world.phase().as_str(), world.there()), ("Steady", BOTH.to_owned()));
    let wait = world.plan_now().waits.remove(0);
    assert_eq!(wait.reason.as_str(), "StillReferenced");
    assert!(
        wait.message.contains("Service shop/podinfo-v1") && wait.message.contains("HTTPRoute shop/legacy"),
        "{wait:?}"
    );
    assert_eq!(world.record().conditions[0].reason, "StillReferenced");
    // The next version does not wait for it.
    world.bring(QUICK, "3");
    assert_eq!((world.phase().as_str(), world.waits()), ("Progressing(tenth)", vec!["Soak", "StillReferenced"]));
    world.foreign_route("podinfo-v2");
    for _ in 0..4 {
        world.pass(61);
    }
    assert!(!world.there().contains("podinfo-v1") && world.there().contains("podinfo-v2"), "{}", world.there());
    world.remove(Kind::HttpRoute, "legacy");
    world.settle();
    assert_eq!((world.there(), world.waits()), (NEW.replace("v2", "v3"), vec![]));
}

#[test]
fn t_7_a_version_under_the_promoted_ones_names_is_refused_before_anything_is_written() {
    let selecting = |by: usize, value: &'static str| {
        move |all: &mut Vec<Value>| {
            let pointer = if by == 1 { "/spec/selector/matchLabels" } else { "/spec/selector" };
            *all[by].pointer_mut(pointer).unwrap() = json!({"tier": value});
        }
    };
    let tier = |all: &mut Vec<Value>| all[1]["spec"]["template"]["metadata"]["labels"]["tier"] = "front".into();
    let kept = "is the promoted version's as well";
    let cases = [
        ("1", named_with("1", |all| all[1]["spec"]["template"]["spec"]["priority"] = 1.into()), "Rejected", kept),
        (
            "2",
            named_with("2", |all| {
                tier(all);
                selecting(1, "front")(all);
            }),
            "SelectorOverlap",
            "Deployment shop/podinfo-v2 selects the pods of the other version's",
        ),
        (
            "2",
            named_with("2", |all| {
                tier(all);
                selecting(2, "front")(all);
            }),
            "SelectorOverlap",
            "Service shop/podinfo-v2 selects the pods of the other version's",
        ),
        (
            "2",
            named_with("2", |all| {
                all[0]["metadata"]["name"] = "shared".into();
                all[1]["spec"]["template"]["spec"]["containers"][0]["envFrom"][0]["configMapRef"]["name"] =
                    "shared".into();
            }),
            "Rejected",
            "ConfigMap shared has other content",
        ),
    ];
    for (version, set, reason, why) in cases {
        let mut world = World::new(&versioned(QUICK, "1"), "1");
        world.want(&versioned(QUICK, "1"), named_with("1", |all| {
            tier(all);
            let shared = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shared"}, "data": {"motd": "0"}});
            all.push(shared);
        }));
        world.settle();
        let live = world.live.clone();
        world.want(&versioned(QUICK, version), set);
        world.settle();
        let wait = world.plan_now().waits.remove(0);
        assert_eq!(wait.reason.as_str(), reason, "{wait:?}");
        assert!(wait.message.contains(why), "{}", wait.message);
        assert_eq!((world.phase().as_str(), world.record().run), ("Steady", None));
        assert_eq!(world.live, live, "zero writes");
    }
}

#[test]
fn t_7_what_both_versions_name_alike_is_stables_until_promotion_and_what_serves_at_once_waits() {
    let with = |version: &'static str| {
        let extra = move |all: &mut Vec<Value>| {
            let scaler = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": format!("podinfo-v{version}")},
                "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": format!("podinfo-v{version}")}, "minReplicas": 4, "maxReplicas": 9}});
            let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": format!("podinfo-v{version}")},
                "spec": {"selector": {"matchLabels": {"app": format!("podinfo-v{version}")}}}});
            let shared = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shared"}, "data": {"of": version}});
            let worker = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": format!("worker-v{version}")}, "spec": {
                "selector": {"matchLabels": {"app": format!("worker-v{version}")}},
                "template": {"metadata": {"labels": {"app": format!("worker-v{version}")}}, "spec": {"containers": []}}}});
            let route = json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": format!("direct-v{version}")},
                "spec": {"rules": [{"backendRefs": [{"name": format!("podinfo-v{version}"), "port": 80}]}]}});
            let second = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": format!("metrics-v{version}")},
                "spec": {"selector": {"app": format!("podinfo-v{version}")}, "ports": [{"port": 9797}]}});
            all.extend([scaler, budget, shared, worker, route, second]);
        };
        named_with(version, extra)
    };
    let mut world = World::new(&versioned(QUICK, "1"), "1");
    world.want(&versioned(QUICK, "1"), with("1"));
    world.settle();
    world.want(&versioned(QUICK, "2"), with("2"));
    world.settle();
    // A run that could not end does not begin.
    assert_eq!((world.phase(), world.waits()), ("Steady".to_owned(), vec!["TooManyDeletions"]));
    let told = world.plan_now().waits[0].message.clone();
    assert!(told.contains(": ") && told.contains("Deployment shop/podinfo-v1"), "what would go is named: {told}");
    world.policy.max_deletions = 9;
    world.settle();
    assert_eq!(world.phase(), "Progressing(tenth)");
    let there = |world: &World, kind, name: &str| world.get(kind, name).is_some();
    assert!(
        there(&world, Kind::HorizontalPodAutoscaler, "podinfo-v2")
            && there(&world, Kind::PodDisruptionBudget, "podinfo-v2")
    );
    assert!(
        !there(&world, Kind::Deployment, "worker-v2") && !there(&world, Kind::HttpRoute, "direct-v2"),
        "{}",
        world.there()
    );
    assert_eq!(world.get(Kind::ConfigMap, "shared").unwrap().text("/data/of"), Some("1"));
    for _ in 0..4 {
        world.pass(61);
    }
    assert_eq!(world.phase(), "Steady");
    assert_eq!(world.get(Kind::ConfigMap, "shared").unwrap().text("/data/of"), Some("2"));
    assert!(there(&world, Kind::Deployment, "worker-v2") && there(&world, Kind::HttpRoute, "direct-v2"));
    assert!(!world.there().contains("-v1"), "{}", world.there());
}

#[test]
fn t_7_a_rollback_prepares_the_old_version_again_under_its_names() {
    let mut world = World::of_versions(QUICK);
    for version in ["2", "3"] {
        world.bring(QUICK, version);
        for _ in 0..4 {
            world.pass(61);
        }
    }
    assert_eq!((world.phase().as_str(), world.there()), ("Steady", NEW.replace("v2", "v3")));
    world.say_of(DecisionAction::Rollback, "0".parse().unwrap());
    world.settle();
    world.pass(1);
    assert_eq!((world.phase().as_str(), world.there()), ("Steady", OLD.to_owned()), "{:#?}", world.log);
    assert_eq!((world.routed("podinfo"), world.waits()), ("1 podinfo-v1".to_owned(), vec!["Refused"]));
}

#[test]
fn x_11_a_mark_in_return_takes_even_the_collapsed_route_back() {
    let mut world = World::of_versions(CANARY);
    world.bring(CANARY, "2");
    world.approve("tenth");
    world.pass(306);
    world.pass(306);
    world.approve("promotion");
    world.pass(66);
    assert_eq!((world.phase().as_str(), world.routed("podinfo")), ("Finalising(return)", "1 podinfo-v2".to_owned()));
    let run = world.record().run.unwrap().id;
    world.annotate(Kind::Deployment, "podinfo-v1", RETREATED, &format!("{run}/aborted: a person said abort"));
    world.settle();
    assert_eq!(world.routed("podinfo"), "100 podinfo-v1, 0 podinfo-v2");
    world.pass(31);
    assert_eq!((world.phase().as_str(), world.there()), ("Steady", OLD.to_owned()));
}

/// Until there.
fn up_to(world: &mut World, phase: &str) {
    for _ in 0..400 {
        if world.phase() == phase {
            return;
        }
        if !world.tick_until(1) {
            world.now += chrono::TimeDelta::seconds(30);
        }
    }
    panic!("{phase} is not reached: {:#?}", world.log);
}

#[test]
fn a_route_that_the_new_version_alone_has_is_made_when_its_run_cannot_go_back() {
    let with_route = named_with("2", |all| {
        all.push(
            json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": "direct"},
            "spec": {"rules": [{"backendRefs": [{"name": "podinfo-v2", "port": 80}]}]}}),
        );
    });
    let drained = QUICK.replace("drain: 0s", "drain: 30s");
    let mut world = World::of_versions(&drained);
    world.want(&versioned(&drained, "2"), with_route);
    up_to(&mut world, "Finalising(return)");
    world.settle();
    assert_eq!((world.phase().as_str(), world.there()), ("Finalising(return)", BOTH.to_owned()));
    let mut back = world.clone();
    let run = back.record().run.unwrap().id;
    back.annotate(Kind::Deployment, "podinfo-v1", RETREATED, &format!("{run}/aborted: a person said abort"));
    while back.phase() != "Steady" {
        assert!(back.get(Kind::HttpRoute, "direct").is_none(), "{}", back.phase());
        if !back.tick_until(1) {
            back.now += chrono::TimeDelta::seconds(30);
        }
    }
    assert_eq!(back.there(), OLD);
    world.pass(31);
    assert_eq!((world.phase().as_str(), world.routed("direct")), ("Steady", "1 podinfo-v2".to_owned()));
}

#[test]
fn a_route_of_the_new_version_that_is_there_already_stays_there() {
    let with_route = named_with("2", |all| {
        all.push(
            json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": "direct"},
            "spec": {"rules": [{"backendRefs": [{"name": "podinfo-v2", "port": 80}]}]}}),
        );
    });
    let drained = QUICK.replace("drain: 0s", "drain: 30s");
    let mut world = World::of_versions(&drained);
    world.want(&versioned(&drained, "2"), with_route);
    up_to(&mut world, "Finalising(return)");
    let mut later = world.clone();
    up_to(&mut later, "Steady");
    let mut direct = later.get(Kind::HttpRoute, "direct").unwrap().clone();
    direct.annotate(SEQ, &world.record().seq.to_string());
    world.live.objects.insert(direct.reference().clone(), Arc::new(direct));
    while world.phase() != "Steady" {
        if !world.tick_until(1) {
            world.now += chrono::TimeDelta::seconds(30);
        }
        assert!(world.get(Kind::HttpRoute, "direct").is_some(), "{}: {:#?}", world.phase(), world.log);
    }
}

#[test]
fn a_way_back_from_return_leads_to_the_ports_of_the_old_version() {
    let moved = named_with("2", |all| {
        all[2]["spec"]["ports"] = json!([{"name": "http", "port": 80}, {"name": "new", "port": 8080}]);
        all[3]["spec"]["rules"][0]["backendRefs"][0]["port"] = 8080.into();
    });
    let drained = QUICK.replace("drain: 0s", "drain: 30s");
    let mut world = World::of_versions(&drained);
    world.want(&versioned(&drained, "2"), moved);
    up_to(&mut world, "Finalising(return)");
    world.settle();
    let port = |world: &World| world.get(Kind::HttpRoute, "podinfo").unwrap().int("/spec/rules/0/backendRefs/0/port");
    assert_eq!((world.routed("podinfo"), port(&world)), ("1 podinfo-v2".to_owned(), Some(8080)));
    let run = world.record().run.unwrap().id;
    world.annotate(Kind::Deployment, "podinfo-v1", RETREATED, &format!("{run}/aborted: a person said abort"));
    world.settle();
    assert_eq!((world.phase().as_str(), port(&world)), ("Reverting(return)", Some(80)));
    assert_eq!(world.routed("podinfo"), "100 podinfo-v1, 0 podinfo-v2");
}

#[test]
fn a_mark_that_was_made_blindly_on_what_is_kept_bars_no_run() {
    let mut world = World::of_versions(QUICK);
    world.foreign_route("podinfo-v1");
    world.bring(QUICK, "2");
    for _ in 0..4 {
        world.pass(61);
    }
    assert_eq!((world.phase().as_str(), world.there()), ("Steady", BOTH.to_owned()));
    world.bring(QUICK, "3");
    assert_eq!(world.phase(), "Progressing(tenth)");
    world.unreadable = true;
    world.brake = Ok(Some(BrakeWord::Revert));
    world.settle();
    assert!(world.marked().iter().any(|name| name == "Deployment shop/podinfo-v1"), "{:?}", world.marked());
    (world.unreadable, world.brake) = (false, Ok(None));
    world.settle();
    assert_eq!((world.phase().as_str(), world.there()), ("Steady", BOTH.to_owned()));
    world.bring(QUICK, "4");
    assert_eq!(world.phase(), "Progressing(tenth)", "{:?}", world.waits());
}

#[test]
fn x_12_a_route_that_a_paused_leader_makes_late_exposes_nobody() {
    let mut world = World::of_versions(QUICK);
    world.bring(QUICK, "2");
    while world.phase() != "Promoting(promote)" {
        if !world.tick_until(1) {
            world.now += chrono::TimeDelta::seconds(61);
        }
    }
    world.remove(Kind::HttpRoute, "podinfo");
    let late = world.plan_now().actions;
    assert!(late.iter().any(|action| action.verb.target().kind == Kind::HttpRoute), "{late:?}");
    let mut other = world.clone();
    late.iter().for_each(|action| other.try_late(action));
    assert_eq!(other.routed("podinfo"), "100 podinfo-v1, 0 podinfo-v2", "the record goes first");
    other.settle();
    assert_eq!(other.phase(), "Steady");
    assert_eq!(other.routed("podinfo"), "1 podinfo-v2");
}

#[test]
fn the_brake_takes_a_version_with_its_own_names_back_without_a_record() {
    let mut world = World::of_versions(QUICK);
    world.bring(QUICK, "2");
    world.unreadable = true;
    world.brake = Ok(Some(BrakeWord::Revert));
    world.settle();
    assert_eq!((world.routed("podinfo"), world.there()), ("100 podinfo-v1, 0 podinfo-v2".to_owned(), BOTH.to_owned()));
    let marked = world.marked();
    assert!(marked.iter().any(|name| name == "Deployment shop/podinfo-v1"), "{marked:?}");
    (world.unreadable, world.brake) = (false, Ok(None));
    world.settle();
    assert_eq!((world.phase().as_str(), world.there()), ("Steady", OLD.to_owned()));
}

#[test]
fn a_rollout_that_leaves_main_keeps_what_is_stable() {
    let mut world = World::of_versions(QUICK);
    world.bring(QUICK, "2");
    world.gone();
    world.settle();
    assert!(world.record.is_none());
    let deployments: Vec<String> =
        world.live.of_kind(Kind::Deployment).map(|object| object.reference().name.to_string()).collect();
    assert_eq!((deployments, world.routed("podinfo")), (vec!["podinfo-v1".to_owned()], "1 podinfo-v1".to_owned()));
}

#[test]
fn the_layout_stays_and_the_names_go_on() {
    let mut world = World::of_versions(QUICK);
    world.want(&versioned(QUICK, "2").replace("versioned", "inPlace"), named("2"));
    world.settle();
    let told = world.plan_now().waits.remove(0).message;
    assert_eq!(told, "target.layout is versioned as long as the rollout exists");
    // Sizes are no new version, and keep their names.
    world.want(&versioned(QUICK, "1"), named_with("1", |all| all[1]["spec"]["replicas"] = 6.into()));
    world.settle();
    assert_eq!(
        (world.record().history.len(), world.get(Kind::Deployment, "podinfo-v1").unwrap().int("/spec/replicas")),
        (0, Some(6))
    );
}
