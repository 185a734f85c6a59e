//! The layout `primary`: stable's objects are copies, the target is the candidate.

use super::manifests::{CANARY, QUICK, primary, set, set_with};
use super::world::{Pods, World};
use crate::gate::BrakeWord;
use crate::manifest::decision::DecisionAction;
use crate::manifest::object::{Kind, OWNER};
use crate::plan::action::Class;
use crate::plan::report::Reason;
use serde_json::{Value, json};

impl World {
    pub(super) fn pods_of(&self, name: &str) -> Option<i64> {
        self.get(Kind::Deployment, name)?.int("/spec/replicas")
    }

    pub(super) fn leads_to(&self) -> Option<&str> {
        self.get(Kind::Service, "podinfo")?.text("/spec/selector/app")
    }

    fn motd(&self, name: &str) -> Option<&str> {
        self.get(Kind::ConfigMap, name)?.text("/data/motd")
    }

    /// What the target's pods, the copy's and the Service are, effect by effect: each new view once. A Service that had ready
    /// pods has some at each of these instants (requirement C-1).
    pub(super) fn watched(&mut self) -> Vec<String> {
        let (mut seen, mut served) = (Vec::new(), false);
        while self.tick_until(1) || self.drains() {
            let pods = |name: &str| self.pods_of(name).map_or("no".to_owned(), |pods| pods.to_string());
            let apex = self.leads_to().unwrap_or("nobody");
            let view = format!("{} and {} pods, {apex} serves", pods("podinfo"), pods("podinfo-primary"));
            if seen.last() != Some(&view) {
                seen.push(view);
            }
            let ready = self.ready_behind("podinfo") > 0;
            assert!(ready || !served, "C-1: {seen:#?} {:#?}", self.log);
            served = ready;
            let copy = self.get(Kind::Service, "podinfo-primary").is_some();
            assert!(copy || apex != "podinfo-primary", "C-1: the copy's Service comes first");
        }
        seen
    }

    /// Lets the time pass that requests in flight have, or gateways; says whether something waits for that.
    pub(super) fn drains(&mut self) -> bool {
        let waits = self.plan_now().waits.into_iter().filter(|wait| wait.reason == Reason::Writing);
        let until = waits.filter_map(|wait| wait.until).find(|until| *until > self.now);
        self.now = until.unwrap_or(self.now);
        until.is_some()
    }

    pub(super) fn in_copies(plan: &str) -> Self {
        let mut world = Self::new(&primary(plan), "1");
        world.settle();
        assert_eq!((world.phase().as_str(), world.pods_of("podinfo")), ("Steady", Some(0)));
        world
    }
}

#[test]
fn c_1_c_4_from_nothing_the_copy_is_ready_before_anything_leads_to_it() {
    let mut world = World::new(&primary(CANARY), "1");
    let expected = [
        "no and no pods, nobody serves",
        "no and 4 pods, nobody serves",
        "no and 4 pods, podinfo-primary serves",
        "0 and 4 pods, podinfo-primary serves",
    ];
    assert_eq!(world.watched(), expected);
    world.settle();
    assert_eq!((world.phase().as_str(), world.image("podinfo-primary")), ("Steady", Some("app:1")));
    assert_eq!((world.motd("settings"), world.motd("settings-primary")), (Some("1"), Some("1")));
    for (service, app) in [("podinfo-primary", "podinfo-primary"), ("podinfo-canary", "podinfo")] {
        let selector = world.get(Kind::Service, service).and_then(|service| service.text("/spec/selector/app"));
        assert_eq!(selector, Some(app));
    }
}

#[test]
fn c_1_what_serves_without_a_rollout_goes_on_until_the_copy_does() {
    let mut world = World::new(&primary(CANARY), "1");
    world.exists(&set("1"));
    let expected = [
        "4 and no pods, podinfo serves",
        "4 and 4 pods, podinfo serves",
        "4 and 4 pods, podinfo-primary serves",
        "0 and 4 pods, podinfo-primary serves",
    ];
    assert_eq!(world.watched(), expected);
    world.settle();
    assert_eq!(world.phase(), "Steady");
}

#[test]
fn c_1_the_services_of_both_versions_come_before_the_copy() {
    let mut world = World::new(&primary(CANARY), "1");
    world.exists(&set("1"));
    while world.get(Kind::Deployment, "podinfo-primary").is_none() {
        assert!(world.tick_until(1));
    }
    for service in ["podinfo-primary", "podinfo-canary"] {
        assert!(world.get(Kind::Service, service).is_some(), "{service}");
    }
    assert_eq!(world.leads_to(), Some("podinfo"));
}

#[test]
fn c_20_at_first_sight_requests_in_flight_drain_before_the_targets_pods_go() {
    let mut world = World::new(&primary(CANARY), "1");
    world.exists(&set("1"));
    world.settle();
    for passed in [0, 29] {
        world.pass(passed);
        assert_eq!((world.phase().as_str(), world.waits()), ("Initializing", vec!["Writing"]));
        assert_eq!((world.leads_to(), world.pods_of("podinfo")), (Some("podinfo-primary"), Some(4)));
    }
    world.pass(1);
    assert_eq!((world.phase().as_str(), world.pods_of("podinfo")), ("Steady", Some(0)));
}

#[test]
fn c_2_while_the_copy_is_not_ready_the_target_keeps_its_pods() {
    let mut world = World::new(&primary(CANARY), "1");
    world.exists(&set("1"));
    world.only_stable_stuck = true;
    world.settle();
    world.pass(3_600);
    assert_eq!((world.phase().as_str(), world.waits()), ("Initializing", vec!["StableNotReady"]));
    assert_eq!((world.pods_of("podinfo"), world.leads_to()), (Some(4), Some("podinfo")));
    world.only_stable_stuck = false;
    world.settle();
    world.pass(30);
    assert_eq!((world.phase().as_str(), world.pods_of("podinfo")), ("Steady", Some(0)));
}

#[test]
fn what_differs_from_the_manifests_or_selects_the_target_too_is_not_taken_over() {
    for (change, reason) in [("image", "AdoptionDiffers"), ("service", "SelectorOverlap")] {
        let mut world = World::new(&primary(CANARY), "1");
        world.exists(&set(if change == "image" { "0" } else { "1" }));
        if change == "service" {
            let metadata = json!({"name": "metrics"});
            let spec = json!({"selector": {"app": "podinfo"}, "ports": [{"port": 9}]});
            world.exists_value(json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}));
        }
        world.settle();
        assert_eq!((world.waits(), world.owned()), (vec![reason], 0), "{:#?}", world.log);
    }
}

#[test]
fn what_flagger_left_behind_is_taken_over_as_it_is() {
    let mut left = World::in_copies(CANARY);
    let objects: Vec<Value> = left.live.objects.values().map(|object| object.value().clone()).collect();
    let mut world = World::new(&primary(CANARY), "1");
    for mut object in objects.into_iter().filter(|object| object["kind"] != "EndpointSlice") {
        object["metadata"]["annotations"] = json!({"kustomize.toolkit.fluxcd.io/reconcile": "disabled"});
        if object["kind"] == "HTTPRoute" {
            let [primary, canary] = [("podinfo-primary", 100), ("podinfo-canary", 0)]
                .map(|(name, weight)| json!({"name": name, "port": 80, "weight": weight}));
            object["spec"]["rules"][0]["backendRefs"] = json!([primary, canary]);
        }
        object["metadata"]["managedFields"] = json!([{"manager": "flagger", "operation": "Update"}]);
        world.exists_value(object);
    }
    world.controllers();
    assert_eq!(world.watched(), ["0 and 4 pods, podinfo-primary serves"]);
    world.settle();
    left.settle();
    assert_eq!((world.phase(), world.owned()), (left.phase(), left.owned()));
}

#[test]
fn what_a_canary_of_flagger_owns_is_left_to_it() {
    let mut world = World::new(&primary(CANARY), "1");
    world.exists(&set("1"));
    world.edit(Kind::Service, "podinfo", |service| {
        let owner = json!({"apiVersion": "flagger.app/v1beta1", "kind": "Canary", "name": "podinfo", "uid": "u"});
        service["metadata"]["ownerReferences"] = json!([owner]);
    });
    world.settle();
    assert_eq!((world.waits(), world.owned()), (vec!["ForeignApplier"], 0), "{:#?}", world.log);
    world.edit(Kind::Service, "podinfo", |service| {
        service["metadata"].as_object_mut().unwrap().remove("ownerReferences");
    });
    world.settle();
    world.pass(30);
    assert_eq!(world.phase(), "Steady");
}

#[test]
fn c_17_a_good_version_is_tried_out_in_the_target_and_copied() {
    let mut world = World::in_copies(CANARY);
    world.edit(Kind::Deployment, "podinfo-primary", |primary| {
        primary["metadata"]["ownerReferences"] = json!([{"uid": "theirs"}]);
    });
    world.settle();
    let new = set_with("2", |all| all[1]["spec"]["minReadySeconds"] = 7.into());
    world.want(&primary(CANARY), new);
    world.settle();
    assert_eq!((world.phase().as_str(), world.pods_of("podinfo")), ("Waiting", Some(0)), "nothing before a word");
    assert_eq!(world.image("podinfo"), Some("app:1"));
    world.approve("tenth");
    assert_eq!((world.phase().as_str(), world.weight()), ("Progressing(tenth)", 10));
    assert_eq!((world.image("podinfo"), world.image("podinfo-primary")), (Some("app:2"), Some("app:1")));
    assert_eq!((world.motd("settings"), world.motd("settings-primary")), (Some("2"), Some("1")));
    assert_eq!(world.pods_of("podinfo"), Some(4));
    world.pass(306);
    world.pass(306);
    world.approve("promotion");
    world.pass(66);
    assert_eq!((world.phase().as_str(), world.weight()), ("Finalising(return)", 0));
    assert_eq!(world.pods_of("podinfo"), Some(4), "requests in flight drain first (C-20)");
    world.pass(31);
    assert_eq!((world.phase().as_str(), world.pods_of("podinfo")), ("Steady", Some(0)));
    assert_eq!((world.image("podinfo"), world.image("podinfo-primary")), (Some("app:2"), Some("app:2")));
    assert_eq!(world.motd("settings-primary"), Some("2"));
    let stable = world.get(Kind::Deployment, "podinfo-primary").unwrap();
    assert_eq!(stable.int("/spec/minReadySeconds"), Some(7));
    assert_eq!(stable.text("/metadata/ownerReferences/0/uid"), Some("theirs"));
    assert_eq!(world.weights, vec![0, 10, 50, 100, 0]);
}

#[test]
fn c_9_c_21_going_back_takes_traffic_first_and_leaves_the_target_without_pods() {
    let mut world = World::in_copies(QUICK);
    world.want(&primary(QUICK), set("2"));
    world.settle();
    assert_eq!((world.phase().as_str(), world.weight()), ("Progressing(tenth)", 10));
    world.say(DecisionAction::Abort);
    let retreats = world.plan_now().retreats;
    assert!(retreats.iter().all(|action| action.class == Class::Retreat), "{retreats:?}");
    assert_eq!(retreats[0].verb.target().kind, Kind::HttpRoute);
    let name = |name: &str| retreats.iter().any(|action| action.verb.target().name.as_str() == name);
    assert!(name("podinfo-primary") && name("settings-primary"), "what promote overwrites is marked: {retreats:?}");
    assert!(name("podinfo"), "what a paused leader may write is marked: {retreats:?}");
    for action in &retreats {
        world.try_late(action);
    }
    assert_eq!((world.image("podinfo"), world.pods_of("podinfo")), (Some("app:2"), Some(4)), "requests are in flight");
    world.settle();
    assert_eq!((world.phase().as_str(), world.weight(), world.pods_of("podinfo")), ("Steady", 0, Some(0)));
    assert_eq!((world.image("podinfo"), world.motd("settings")), (Some("app:1"), Some("1")));
    assert!(world.marked().is_empty());
}

#[test]
fn x_12_a_paused_leaders_pods_do_not_come_after_the_run_has_ended() {
    let mut world = World::in_copies(QUICK);
    world.want(&primary(QUICK), set("2"));
    while world.phase() != "Progressing(prepare)" {
        world.tick_until(1);
    }
    let late = world.plan_now().actions;
    assert!(late.iter().any(|action| action.verb.target().kind == Kind::Deployment), "{late:?}");
    world.say(DecisionAction::Abort);
    world.settle();
    for action in &late {
        world.try_late(action);
    }
    assert_eq!((world.image("podinfo"), world.pods_of("podinfo")), (Some("app:1"), Some(0)));
}

#[test]
fn a_version_that_is_never_ready_fails_in_the_target() {
    let mut world = World::in_copies(QUICK);
    world.behave("app:2", Pods::Stuck);
    world.want(&primary(QUICK), set("2"));
    world.settle();
    world.pass(601);
    assert_eq!((world.phase().as_str(), world.pods_of("podinfo")), ("Failed", Some(0)));
    assert_eq!(world.image("podinfo-primary"), Some("app:1"));
}

#[test]
fn c_19_a_copy_that_is_not_ready_at_promotion_leaves_traffic_on_the_target() {
    let mut world = World::in_copies(QUICK);
    world.want(&primary(QUICK), set("2"));
    world.settle();
    world.pass(61);
    world.only_stable_stuck = true;
    world.pass(61);
    world.pass(601);
    assert_eq!((world.phase().as_str(), world.weight(), world.waits()), ("Failed", 100, vec!["OnCandidate"]));
    assert_eq!((world.image("podinfo"), world.pods_of("podinfo")), (Some("app:2"), Some(4)));
    world.say(DecisionAction::Abort);
    world.tick();
    world.tick();
    assert_eq!((world.image("podinfo-primary"), world.weight()), (Some("app:1"), 100), "restored, but not ready yet");
    world.only_stable_stuck = false;
    world.settle();
    assert_eq!((world.phase().as_str(), world.weight(), world.pods_of("podinfo")), ("Steady", 0, Some(0)));
}

#[test]
fn the_brake_works_without_a_record() {
    let mut world = World::in_copies(CANARY);
    world.want(&primary(CANARY), set("2"));
    world.settle();
    world.approve("tenth");
    world.unreadable = true;
    world.brake = Ok(Some(BrakeWord::Revert));
    world.settle();
    assert_eq!((world.weight(), world.pods_of("podinfo")), (0, Some(4)));
    let marked = world.marked();
    assert!(marked.iter().any(|name| name == "Deployment shop/podinfo-primary"), "{marked:?}");
    (world.unreadable, world.brake) = (false, Ok(None));
    world.settle();
    world.pass(31);
    assert_eq!((world.phase().as_str(), world.pods_of("podinfo")), ("Steady", Some(0)));
}

#[test]
fn c_35_a_rollout_that_leaves_main_gives_the_target_its_pods_back_before_the_copies_go() {
    let mut world = World::in_copies(CANARY);
    world.gone();
    let expected =
        ["4 and 4 pods, podinfo-primary serves", "4 and 4 pods, podinfo serves", "4 and no pods, podinfo serves"];
    let mut seen = world.watched();
    seen.retain(|view| view != "0 and 4 pods, podinfo-primary serves");
    assert_eq!(seen, expected);
    assert!(world.record.is_none());
    let names: Vec<String> = world.live.objects.values().map(|object| object.reference().to_string()).collect();
    let kept = ["ConfigMap shop/settings", "Deployment shop/podinfo", "Service shop/podinfo", "HTTPRoute shop/podinfo"];
    assert_eq!(names.iter().filter(|name| !name.starts_with("EndpointSlice")).collect::<Vec<_>>(), kept);
    assert!(world.live.objects.values().all(|object| object.annotation(OWNER).is_none()));
}

/// How long is told by nobody any more.
#[test]
fn c_20_c_35_requests_in_flight_drain_before_the_copies_go() {
    for plan in [CANARY, QUICK] {
        let mut world = World::in_copies(plan);
        world.gone();
        world.settle();
        for passed in [0, 29] {
            world.pass(passed);
            assert_eq!((world.leads_to(), world.pods_of("podinfo-primary")), (Some("podinfo"), Some(4)));
        }
        world.pass(1);
        assert_eq!((world.record.is_none(), world.pods_of("podinfo-primary")), (true, None));
    }
}

#[test]
fn c_35_removed_in_the_middle_of_a_run_or_of_first_sight() {
    let mut world = World::in_copies(QUICK);
    world.want(&primary(QUICK), set("2"));
    world.settle();
    world.gone();
    world.watched();
    assert!(world.record.is_none());
    assert_eq!((world.image("podinfo"), world.pods_of("podinfo")), (Some("app:1"), Some(4)));
    assert_eq!((world.leads_to(), world.image("podinfo-primary")), (Some("podinfo"), None));

    let mut world = World::new(&primary(QUICK), "1");
    world.exists(&set("1"));
    world.only_stable_stuck = true;
    world.settle();
    world.gone();
    world.only_stable_stuck = false;
    world.watched();
    assert!(world.record.is_none());
    assert_eq!((world.pods_of("podinfo"), world.image("podinfo-primary")), (Some(4), None));
}

#[test]
fn the_layout_stays_as_long_as_the_rollout_exists() {
    for (before, after) in [(primary(QUICK), QUICK.to_owned()), (QUICK.to_owned(), primary(QUICK))] {
        let mut world = World::new(&before, "1");
        world.settle();
        let (live, record) = (world.live.clone(), world.record());
        world.want(&after, set("2"));
        world.settle();
        assert_eq!(world.waits(), ["Rejected"]);
        assert_eq!(world.live, live);
        assert_eq!(world.record().phase, record.phase);
        world.want(&before, set("2"));
        world.settle();
        assert_eq!(world.phase(), "Progressing(tenth)");
    }
}

#[test]
fn c_6_replicas_alone_reach_the_copy_and_not_the_target() {
    let mut world = World::in_copies(QUICK);
    world.want(&primary(QUICK), set_with("1", |all| all[1]["spec"]["replicas"] = 6.into()));
    world.settle();
    assert_eq!((world.phase().as_str(), world.record().history.len()), ("Steady", 0));
    assert_eq!((world.pods_of("podinfo"), world.pods_of("podinfo-primary")), (Some(0), Some(6)));
}

#[test]
fn pods_that_a_hand_gives_the_target_at_rest_are_taken_back() {
    let mut world = World::in_copies(QUICK);
    world.edit(Kind::Deployment, "podinfo", |target| target["spec"]["replicas"] = 2.into());
    world.settle();
    assert_eq!(world.pods_of("podinfo"), Some(0));
}
