//! Decisions, sets and objects that nobody reckons with.

use super::manifests::{QUICK, REPLICAS, set};
use super::world::{Gateway, Pods, World};
use crate::manifest::object::Kind;
use crate::record::state::{Phase, StepClock};
use chrono::TimeDelta;
use serde_json::json;

fn promote(world: &mut World) {
    for _ in 0..4 {
        world.pass(61);
    }
    assert_eq!(world.phase(), "Steady");
}

#[test]
fn c_20_on_the_way_back_too_the_drain_counts_from_when_the_route_is_in_force() {
    let mut world = World::at_tenth();
    world.gateway = Gateway::Off;
    world.behave("app:2", Pods::Stuck);
    world.settle();
    assert_eq!((world.phase().as_str(), world.weight()), ("Reverting(return)", 0));
    // The gateway takes its time: requests still reach the candidate.
    world.pass(3_600);
    assert!(world.image("podinfo-canary").is_some());
    world.gateway = Gateway::On;
    world.pass(29);
    assert!(world.image("podinfo-canary").is_some(), "requests in flight drain first");
    world.pass(31);
    assert_eq!((world.phase().as_str(), world.image("podinfo-canary")), ("Failed", None));
}

#[test]
fn attack_50_what_somebody_copied_with_our_marks_is_never_deleted() {
    let mut world = World::new(QUICK, "1");
    world.settle();
    let mut copy = world.get(Kind::ConfigMap, "settings").unwrap().value().clone();
    for (key, value) in [("apiVersion", json!("v1")), ("kind", json!("ConfigMap"))] {
        copy[key] = value;
    }
    copy["metadata"]["name"] = json!("settings-debug");
    world.exists_value(copy);
    world.settle();
    world.want(QUICK, set("2"));
    world.settle();
    promote(&mut world);
    assert!(world.get(Kind::ConfigMap, "settings-debug").is_some(), "{:#?}", world.log);
    assert_eq!(world.image("podinfo-canary"), None);
}

#[test]
fn c_20_by_pods_endpoints_that_lag_cost_no_soak() {
    let mut world = World::new(REPLICAS, "1");
    world.settle();
    world.want(REPLICAS, set("2"));
    world.settle();
    let exposed = |world: &World| world.record().phase.position().map(|position| position.clock);
    let before = exposed(&world);
    assert!(before.is_some_and(|clock| clock.exposed.is_some()), "{}", world.phase());
    // One pod is another one now, and the Service has not taken it up.
    world.lagging = true;
    world.pass(10);
    assert_eq!((world.waits(), exposed(&world)), (vec!["RouteNotEffective"], before));
    world.lagging = false;
    world.settle();
    assert_eq!((world.waits(), exposed(&world)), (vec!["Soak"], before));
}

#[test]
fn c_20_what_is_left_of_a_soak_ends_to_the_millisecond_however_often_it_is_looked_at() {
    let mut world = World::at_tenth();
    let ends = world.plan_now().wake_at;
    assert!(ends.is_some());
    for millis in [1, 400, 999] {
        world.now += TimeDelta::milliseconds(millis);
        assert_eq!(world.plan_now().wake_at, ends);
    }
    world.now = ends.unwrap() - TimeDelta::milliseconds(1);
    assert_eq!((world.plan_now().wake_at, world.waits()), (ends, vec!["Soak"]));
    world.now = ends.unwrap();
    assert!(!world.waits().contains(&"Soak"));
}

#[test]
fn x_14_a_step_that_a_clock_has_entered_which_ran_ahead_soaks_from_now_on() {
    let mut world = World::at_tenth();
    let ahead = world.now + TimeDelta::days(365);
    let Some(record) = &mut world.record else { panic!("a record") };
    if let Phase::Progressing(stop) = &mut record.phase {
        stop.clock = StepClock { entered: ahead, exposed: Some(ahead), ..stop.clock };
    }
    record.run.as_mut().unwrap().started = ahead;
    let seq = record.seq;
    world.settle();
    assert_eq!((world.record().seq, world.record().run.unwrap().started), (seq + 1, world.now), "in one commit");
    world.pass(304);
    assert_eq!(world.phase(), "Progressing(tenth)");
    world.pass(2);
    assert_ne!(world.phase(), "Progressing(tenth)", "{:?}", world.waits());
}
