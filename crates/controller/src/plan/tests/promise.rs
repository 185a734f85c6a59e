//! Ways in which live could get ahead of Git, or users could be left without pods.

use super::manifests::{CANARY, QUICK, REPLICAS, set, set_with};
use super::world::{Gateway, Pods, World};
use crate::manifest::decision::DecisionAction;
use crate::manifest::object::{Kind, items};
use crate::plan::action::{Action, Class, Verb};
use crate::plan::draft::RolloutPlan;
use chrono::TimeDelta;
use serde_json::json;

fn promoted_twice() -> World {
    let mut world = World::new(QUICK, "1");
    world.settle();
    world.want(QUICK, set("2"));
    for _ in 0..4 {
        world.pass(61);
    }
    assert_eq!((world.phase().as_str(), world.image("podinfo")), ("Steady", Some("app:2")));
    world
}

#[test]
fn x_12_a_paused_leaders_upkeep_is_stale_after_a_rollback() {
    let mut world = promoted_twice();
    world.edit(Kind::Deployment, "podinfo", |d| d["spec"]["minReadySeconds"] = 3.into());
    world.edit(Kind::Deployment, "podinfo", |d| {
        d["spec"]["template"]["spec"]["containers"][0]["image"] = json!("app:0");
    });
    let late: Vec<Action> = world.plan_now().actions;
    assert!(!late.is_empty(), "drift is put back");
    world.settle();
    world.say_of(DecisionAction::Rollback, "0".parse().unwrap());
    world.settle();
    world.pass(1);
    assert_eq!((world.phase().as_str(), world.image("podinfo")), ("Steady", Some("app:1")), "{:#?}", world.log);
    for action in &late {
        world.try_late(action);
    }
    assert_eq!(world.image("podinfo"), Some("app:1"), "the version that was left does not come back");
}

#[test]
fn x_12_a_route_that_a_paused_leader_makes_late_exposes_nothing() {
    let mut world = World::at_shift();
    world.remove(Kind::HttpRoute, "podinfo");
    let late: Vec<Action> = world.plan_now().actions;
    assert!(late.iter().any(|action| action.verb.target().kind == Kind::HttpRoute), "it is made again");
    world.say(DecisionAction::Abort);
    world.settle();
    world.pass(31);
    assert_eq!((world.phase().as_str(), world.weight()), ("Steady", 0));
    for action in &late {
        world.try_late(action);
    }
    assert_eq!(world.weight(), 0);
}

#[test]
fn a_route_that_was_deleted_comes_back_and_the_run_goes_on() {
    let mut world = World::at_shift();
    world.remove(Kind::HttpRoute, "podinfo");
    world.settle();
    assert_eq!((world.phase().as_str(), world.weight()), ("Promoting(shift)", 100));
}

#[test]
fn x_16_a_service_that_was_deleted_comes_back_whatever_is_not_ready() {
    let mut world = World::at_tenth();
    world.lost = 1;
    world.settle();
    assert_eq!(world.waits(), vec!["CandidateNotReady"]);
    world.remove(Kind::Service, "podinfo");
    world.settle();
    assert!(world.get(Kind::Service, "podinfo").is_some(), "{:#?}", world.plan_now());
}

#[test]
fn a_hand_that_exposes_in_a_way_of_its_own_is_brought_down_to_the_record() {
    let mut world = World::new(QUICK, "1");
    world.settle();
    world.gateway = Gateway::Off;
    world.want(QUICK, set("2"));
    world.settle();
    assert_eq!((world.phase().as_str(), world.weight()), ("Progressing(prepare)", 0));
    world.edit(Kind::HttpRoute, "podinfo", |route| {
        let mirror =
            json!({"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "podinfo-canary", "port": 80}}});
        route["spec"]["rules"][0]["filters"] = json!([mirror]);
    });
    world.settle();
    assert_eq!(world.get(Kind::HttpRoute, "podinfo").and_then(|r| r.at("/spec/rules/0/filters")), None);
}

/// What its retreats write to the candidate's references.
fn led_to_candidate(world: &World) -> Vec<u64> {
    let RolloutPlan { retreats, actions, .. } = world.plan_now();
    let lowering = retreats.iter().chain(&actions).filter(|action| action.class == Class::Retreat);
    let routes = lowering.filter_map(|action| match &action.verb {
        Verb::Apply { object, .. } if object.reference().kind == Kind::HttpRoute => Some(object),
        Verb::Apply { .. } | Verb::Migrate { .. } | Verb::Delete { .. } | Verb::CopySecret(_) => None,
    });
    let weights = routes.map(|route| {
        let refs = items(&route.value()["spec"], "rules").flat_map(|rule| items(rule, "backendRefs"));
        refs.filter(|one| one["name"] == "podinfo-canary").filter_map(|one| one["weight"].as_u64()).sum()
    });
    weights.collect()
}

fn expose_unreadably(world: &mut World) {
    world.edit(Kind::HttpRoute, "podinfo", |route| {
        let alone = json!({"matches": [{"path": {"value": "/new"}}], "backendRefs": [{"name": "podinfo-canary", "port": 80, "weight": 1}]});
        route["spec"]["rules"].as_array_mut().unwrap().push(alone);
    });
}

#[test]
fn c_21_over_what_nobody_can_read_no_share_is_written_before_the_record() {
    let mut at_step = World::at_tenth();
    at_step.now += TimeDelta::seconds(306);
    // The record is a step ahead of what live shows.
    let mut recorded = World::at_tenth();
    while recorded.record().clusters.values().next().unwrap().posture.split.weight.get() == 10 {
        recorded.now += TimeDelta::seconds(60);
        recorded.tick_until(1);
    }
    assert_eq!(recorded.weight(), 10);
    for mut world in [at_step, recorded] {
        expose_unreadably(&mut world);
        assert_eq!(led_to_candidate(&world), [0]);
        let mut away = world.clone();
        away.without_git();
        away.settle();
        assert_eq!(away.weight(), 0);
        world.settle();
        assert_eq!(world.weight(), 50, "{:#?}", world.log);
        assert!(world.marked().is_empty(), "this is not going back");
    }
}

#[test]
fn a_hand_that_raises_is_brought_down_although_something_else_is_in_the_way_or_git_is_away() {
    let mut blocked = World::at_tenth();
    blocked.exists_value(json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "all"},
        "spec": {"selector": {"app": "podinfo-canary"}}}));
    let mut away = World::at_tenth();
    away.without_git();
    for mut world in [blocked, away] {
        world.edit(Kind::HttpRoute, "podinfo", |route| {
            route["spec"]["rules"][0]["backendRefs"][0]["weight"] = 50.into();
            route["spec"]["rules"][0]["backendRefs"][1]["weight"] = 50.into();
        });
        world.settle();
        assert_eq!((world.phase().as_str(), world.weight()), ("Progressing(tenth)", 10));
    }
}

#[test]
fn a_way_back_restores_a_stable_that_somebody_deleted() {
    let mut world = World::at_shift();
    world.remove(Kind::Deployment, "podinfo");
    world.remove(Kind::ConfigMap, "settings");
    world.behave("app:2", Pods::Ready);
    world.say(DecisionAction::Abort);
    world.settle();
    world.pass(31);
    assert_eq!((world.phase().as_str(), world.image("podinfo"), world.weight()), ("Steady", Some("app:1"), 0));
    assert!(world.get(Kind::ConfigMap, "settings").is_some());
}

#[test]
fn a_way_back_from_promote_leads_to_the_ports_of_the_old_version() {
    let moved = set_with("2", |all| {
        all[2]["spec"]["ports"] = json!([{"name": "http", "port": 80}, {"name": "new", "port": 8080}]);
        all[3]["spec"]["rules"][0]["backendRefs"][0]["port"] = 8080.into();
    });
    let mut world = World::new(CANARY, "1");
    world.settle();
    world.want(CANARY, moved);
    world.settle();
    world.approve("promotion");
    world.pass(306);
    world.pass(306);
    world.only_stable_stuck = true;
    world.pass(66);
    let port = |world: &World| world.get(Kind::HttpRoute, "podinfo").unwrap().int("/spec/rules/0/backendRefs/0/port");
    assert_eq!((world.phase().as_str(), world.weight(), port(&world)), ("Promoting(promote)", 100, Some(80)));
    world.only_stable_stuck = false;
    while port(&world) != Some(8080) {
        assert!(world.tick_until(1), "{:#?}", world.log);
    }
    world.say(DecisionAction::Abort);
    world.settle();
    assert_eq!((world.phase().as_str(), world.weight(), port(&world)), ("Reverting(return)", 0, Some(80)));
}

#[test]
fn without_the_stable_set_nothing_is_said_to_be_back() {
    let mut world = World::at_shift();
    world.only_stable_stuck = true;
    world.pass(66);
    assert_eq!((world.phase().as_str(), world.image("podinfo")), ("Promoting(promote)", Some("app:2")));
    let old = world.record().run.unwrap().from;
    let kept = world.sets.remove(&old).unwrap();
    world.say(DecisionAction::Abort);
    world.settle();
    assert_eq!((world.phase().as_str(), world.weight()), ("Reverting(split)", 100), "{:#?}", world.log);
    assert!(world.waits().contains(&"RecordUnreadable"), "{:?}", world.waits());
    world.sets.insert(old, kept);
    world.only_stable_stuck = false;
    world.settle();
    world.pass(31);
    assert_eq!((world.phase().as_str(), world.image("podinfo")), ("Steady", Some("app:1")));
}

#[test]
fn a_candidate_that_dies_while_it_alone_serves_is_left() {
    let mut world = World::at_shift();
    world.only_stable_stuck = true;
    world.pass(66);
    world.pass(601);
    assert_eq!((world.phase().as_str(), world.weight()), ("Failed", 100));
    world.only_stable_stuck = false;
    world.behave("app:2", Pods::Stuck);
    world.settle();
    world.pass(31);
    assert_eq!((world.phase().as_str(), world.image("podinfo"), world.weight()), ("Failed", Some("app:1"), 0));
    assert!(world.record().run.is_none());
}

#[test]
fn by_pods_a_hand_that_adds_pods_is_brought_down() {
    let mut world = World::new(REPLICAS, "1");
    world.settle();
    world.want(REPLICAS, set("2"));
    world.settle();
    assert_eq!(world.phase(), "Progressing(fifth)");
    world.edit(Kind::Deployment, "podinfo-canary", |d| d["spec"]["replicas"] = 4.into());
    world.settle();
    assert_eq!((world.phase().as_str(), world.weight()), ("Progressing(fifth)", 20));
}

#[test]
fn c_22_by_pods_the_share_is_that_of_the_pods_that_answer() {
    let mut world = World::new(REPLICAS, "1");
    world.settle();
    world.want(REPLICAS, set("2"));
    world.settle();
    let seen = |world: &World| (world.phase(), world.size("podinfo-canary"), world.waits());
    assert_eq!(seen(&world), ("Progressing(fifth)".to_owned(), Some(1), vec!["Soak"]));
    world.lost_stable = 1;
    world.settle();
    assert_eq!(seen(&world), ("Progressing(fifth)".to_owned(), Some(0), vec!["CandidateNotReady"]), "{:?}", world.log);
    // That says nothing of the version, however long it lasts, and is no part of its soak.
    world.pass(3_600);
    assert_eq!(seen(&world), ("Progressing(fifth)".to_owned(), Some(0), vec!["CandidateNotReady"]), "{:?}", world.log);
    world.lost_stable = 0;
    world.slow = true;
    world.settle();
    assert_eq!(seen(&world), ("Progressing(fifth)".to_owned(), Some(1), vec!["Soak"]), "{:?}", world.log);
    world.pass(66);
    assert_eq!(seen(&world), ("Progressing(half)".to_owned(), Some(4), vec!["Soak"]), "{:?}", world.log);
    world.lost_stable = 3;
    world.settle();
    assert_eq!(seen(&world).1, Some(1), "{:?}", world.log);
    // Nobody is sent away from pods that are ready.
    world.lost_stable = 9;
    world.settle();
    assert_eq!(seen(&world).1, Some(4), "{:?}", world.log);
    world.lost_stable = 0;
    world.pass(66);
    assert_eq!(world.phase(), "Promoting(shift)", "{:?}", world.log);
    world.lost_stable = 2;
    world.settle();
    assert_eq!(seen(&world).1, Some(4), "the candidate serves all: {:?}", world.log);
}
