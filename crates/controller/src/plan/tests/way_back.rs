//! How long *return* and *retire* stand on the way back: until the route is known to be in force, and requests in flight have drained.

use super::manifests::{CANARY, set_with};
use super::world::{Gateway, World};
use crate::manifest::decision::DecisionAction;
use crate::manifest::desired::Set;
use crate::manifest::object::Kind;
use crate::record::state::Outcome;
use chrono::TimeDelta;
use serde_json::json;
use std::sync::Arc;

/// A run at a tenth that a person aborts.
fn aborted(mut world: World) -> World {
    world.say(DecisionAction::Abort);
    world.settle();
    assert_eq!((world.phase().as_str(), world.weight()), ("Reverting(return)", 0));
    world
}

fn named(world: &World, kind: Kind) -> bool {
    world.get(kind, "podinfo").expect("a route").value().to_string().contains("podinfo-canary")
}

#[test]
fn c_20_a_way_back_that_nobody_says_is_in_force_goes_on_by_the_deadline_and_drains_once_somebody_does() {
    let mut world = World::at_tenth();
    world.gateway = Gateway::Off;
    let mut world = aborted(world);
    let deadline = world.now + TimeDelta::minutes(10);
    assert_eq!((world.waits(), world.plan_now().wake_at), (vec!["RouteNotEffective"], Some(deadline)));
    world.pass(599);
    assert_eq!((world.phase().as_str(), named(&world, Kind::HttpRoute)), ("Reverting(return)", true));
    world.pass(1);
    assert_eq!((world.phase().as_str(), named(&world, Kind::HttpRoute)), ("Reverting(retire)", false));
    // It may still do what it took last.
    world.pass(86_400);
    assert_eq!((world.waits(), world.image("podinfo-canary")), (vec!["RouteNotEffective"], Some("app:2")));
    world.gateway = Gateway::On;
    world.pass(1);
    assert_eq!((world.phase().as_str(), world.waits()), ("Reverting(retire)", vec!["Soak"]));
    world.pass(29);
    assert_eq!(world.image("podinfo-canary"), Some("app:2"), "requests in flight drain");
    world.pass(1);
    assert_eq!((world.phase().as_str(), world.image("podinfo-canary")), ("Steady", None));
}

#[test]
fn c_20_a_time_in_which_nobody_looked_is_no_part_of_that_deadline() {
    let mut world = World::at_tenth();
    world.gateway = Gateway::Off;
    let mut world = aborted(world);
    let start = world.now;
    world.now += TimeDelta::seconds(3_600);
    world.gaps.push((start, world.now));
    world.pass(599);
    assert_eq!(world.phase(), "Reverting(return)");
    world.pass(1);
    assert_eq!(world.phase(), "Reverting(retire)");
}

#[test]
fn t_8_a_way_back_ends_whose_route_names_a_service_of_the_candidate_that_is_gone() {
    let mut world = World::at_tenth();
    world.gateway = Gateway::Resolves;
    world.say(DecisionAction::Abort);
    world.tick();
    world.remove(Kind::Service, "podinfo-canary");
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits()), ("Reverting(return)", vec!["RouteNotEffective"]));
    world.pass(600);
    assert_eq!((world.phase().as_str(), world.waits()), ("Reverting(retire)", vec!["Soak"]));
    world.pass(30);
    assert_eq!((world.phase().as_str(), world.image("podinfo-canary")), ("Steady", None));
}

/// Split by a RouteTable of Gloo, which says nothing of generations.
fn by_table(version: &str) -> Arc<Set> {
    set_with(version, |all| {
        let kube = json!({"kube": {"ref": {"name": "podinfo", "namespace": "shop"}, "port": 80}});
        all[3] = json!({"apiVersion": "gateway.solo.io/v1", "kind": "RouteTable", "metadata": {"name": "podinfo"}, "spec": {
            "routes": [{"matchers": [{"prefix": "/"}], "routeAction": {"single": kube}}],
        }});
    })
}

pub(super) fn table_at_tenth(drain: &str) -> World {
    let plan = CANARY.replace("gatewayApi: {httpRoute:", "gloo: {routeTable:").replace("drain: 30s", drain);
    let mut world = World::new(&plan, "1");
    world.want(&plan, by_table("1"));
    world.settle();
    world.want(&plan, by_table("2"));
    world.settle();
    world.approve("tenth");
    assert_eq!((world.phase().as_str(), world.weight()), ("Progressing(tenth)", 10));
    world
}

#[test]
fn c_20_where_no_generation_is_told_proxies_have_their_time_before_requests_in_flight_drain() {
    let mut world = aborted(table_at_tenth("drain: 30s"));
    // What Gloo says is what it said before.
    let exposed = |world: &World| world.record().phase.position().and_then(|position| position.clock.exposed);
    let followed = world.now + TimeDelta::seconds(5);
    assert_eq!((world.waits(), world.plan_now().wake_at, exposed(&world)), (vec!["Writing"], Some(followed), None));
    world.pass(4);
    assert_eq!(exposed(&world), None);
    world.pass(1);
    assert_eq!(exposed(&world), Some(followed));
    world.pass(29);
    assert_eq!(world.image("podinfo-canary"), Some("app:2"));
    world.pass(1);
    assert_eq!((world.phase().as_str(), world.image("podinfo-canary")), ("Steady", None));
    // A number tells that it is the new route.
    let numbered = aborted(World::at_tenth());
    assert_eq!(exposed(&numbered), Some(numbered.now));
}

#[test]
fn t_14_a_table_that_is_rejected_takes_the_run_back_with_gloos_words() {
    let mut world = table_at_tenth("drain: 30s");
    world.gateway = Gateway::Refuse;
    world.settle();
    assert!(world.weight() == 0 && world.phase().starts_with("Reverting"), "{}", world.phase());
    world.pass(3_600);
    assert_eq!((world.phase().as_str(), named(&world, Kind::RouteTable)), ("Reverting(retire)", false));
    world.gateway = Gateway::On;
    world.pass(5);
    world.pass(30);
    let record = world.record();
    let last = record.history.last().expect("a run that has ended");
    assert_eq!(
        (last.outcome, last.why.as_str()),
        (Outcome::Failed, "the route was refused: Gloo: Rejected: no such thing")
    );
    assert_eq!((world.phase().as_str(), record.refused.len()), ("Failed", 1));
}

#[test]
fn c_20_a_plan_without_a_drain_waits_for_proxies_all_the_same() {
    let mut world = aborted(table_at_tenth("drain: 0s"));
    assert_eq!(world.image("podinfo-canary"), Some("app:2"));
    world.pass(5);
    assert_eq!((world.phase().as_str(), world.image("podinfo-canary")), ("Steady", None));
}
