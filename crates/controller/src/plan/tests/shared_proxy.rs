//! Behind a proxy that teams share: what others have written holds a run, and its way back, and is held against nothing.

use super::way_back::table_at_tenth;
use super::world::World;
use crate::manifest::decision::DecisionAction;
use crate::manifest::ids::{Namespace, Percent};
use crate::manifest::object::{Kind, Object, ObjectRef};
use crate::manifest::other::Other;
use crate::record::state::Outcome;
use crate::rules::{Broken, Rule};
use crate::workload::live::LiveState;
use crate::workload::tree::Trees;
use serde_json::{Value, json};
use std::sync::Arc;

/// What is seen of a Gloo that replaces no routes, where another team's table stands so, or cannot be read.
fn gloo(peer: Result<&str, &str>) -> Arc<Trees> {
    let object = |kind: Kind, namespace: &str, name: &str, value: Value| {
        let reference = ObjectRef { kind, namespace: namespace.parse().unwrap(), name: name.parse().unwrap() };
        Arc::new(Object::new(reference, value))
    };
    let all = json!([{"matchers": [{"prefix": "/"}], "delegateAction": {"selector": {"namespaces": ["*"]}}}]);
    let kind = Kind::Other(Other::named("gateway.solo.io/v1", "VirtualService").unwrap());
    let root = object(kind, "gloo-system", "app", json!({"spec": {"virtualHost": {"routes": all}}}));
    let said = json!({"statuses": {"gloo-system": {"state": peer.unwrap_or_default(), "reason": "no such upstream"}}});
    let table = object(
        Kind::RouteTable,
        "echo",
        "routes",
        json!({"spec": {"routes": [{"matchers": [{"prefix": "/echo"}]}]}, "status": said}),
    );
    let look = |namespace: &Namespace| {
        peer?;
        let here = [&root, &table].into_iter().filter(|one| one.reference().namespace == *namespace);
        let objects = here.map(|one| (one.reference().clone(), Arc::clone(one))).collect();
        Ok(Arc::new(LiveState { objects, ..LiveState::default() }))
    };
    let gateways = serde_json::from_value(json!({"gloo": {"namespace": "gloo-system"}})).unwrap();
    let served = ["shop", "echo"].map(|name| name.parse().unwrap()).into();
    Arc::new(Trees::of(&gateways, &served, |namespace| look(namespace).map_err(|why: &str| why.to_owned())))
}

/// What the record lets users meet of the new version.
fn recorded(world: &World) -> Percent {
    world.record().clusters.values().next().expect("a cluster").posture.split.weight
}

fn at_tenth(drain: &str, peer: Result<&str, &str>) -> World {
    let mut world = table_at_tenth(drain);
    world.trees = gloo(peer);
    world.settle();
    world
}

#[test]
fn t_15_t_17_blocked_is_no_evidence_and_the_soak_goes_on_once_it_is_over() {
    for state in ["Warning", "Rejected"] {
        let mut world = at_tenth("drain: 30s", Ok(state));
        assert_eq!((world.phase().as_str(), world.waits()), ("Progressing(tenth)", vec!["BlockedByPeer"]), "{state}");
        // Longer than any soak and any deadline.
        world.pass(86_400);
        assert_eq!((world.phase().as_str(), world.waits()), ("Progressing(tenth)", vec!["BlockedByPeer"]), "{state}");
        assert_eq!((world.weight(), world.record().refused.len()), (10, 0), "{state}");
        world.trees = gloo(Ok("Accepted"));
        world.pass(1);
        assert_eq!((world.phase().as_str(), world.waits()), ("Progressing(tenth)", vec!["Soak"]), "{state}");
    }
}

#[test]
fn t_17_the_old_posture_stays_as_ceiling_until_a_frozen_proxy_serves_the_way_back() {
    let mut world = at_tenth("drain: 0s", Ok("Warning"));
    let size = |world: &World| world.get(Kind::Deployment, "podinfo-canary").and_then(|one| one.int("/spec/replicas"));
    let full = size(&world);
    world.say(DecisionAction::Abort);
    world.settle();
    let blocked = |world: &World| {
        assert_eq!((world.phase().as_str(), world.weight()), ("Reverting(split)", 0), "traffic is lowered at once");
        assert_eq!((world.waits(), recorded(world)), (vec!["RetreatBlocked"], Percent::try_from(10).unwrap()));
        assert_eq!((world.image("podinfo-canary"), size(world)), (Some("app:2"), full));
    };
    blocked(&world);
    world.pass(86_400);
    blocked(&world);
    world.trees = gloo(Ok("Accepted"));
    world.pass(5);
    world.pass(5);
    assert_eq!((world.phase().as_str(), world.image("podinfo-canary")), ("Steady", None));
    assert_eq!(world.record().history.last().map(|run| run.outcome), Some(Outcome::Aborted));
}

#[test]
fn t_17_without_that_rule_the_record_is_lower_than_what_the_proxy_serves() {
    let mut world = at_tenth("drain: 0s", Ok("Warning"));
    let _broken = Broken::new(Rule::InForceLast);
    world.say(DecisionAction::Abort);
    world.settle();
    assert_eq!((world.phase().as_str(), recorded(&world)), ("Reverting(return)", Percent::ZERO));
}

#[test]
fn t_11_what_cannot_be_read_of_a_gateway_holds_and_keeps_nobody_from_going_back() {
    let mut world = at_tenth("drain: 30s", Err("forbidden"));
    assert_eq!((world.phase().as_str(), world.waits()), ("Progressing(tenth)", vec!["RouteUnknown"]));
    world.pass(3_600);
    assert_eq!((world.phase().as_str(), world.weight()), ("Progressing(tenth)", 10));
    world.say(DecisionAction::Abort);
    world.settle();
    assert_eq!(world.weight(), 0);
    // What it serves nobody knows: the pods stay.
    world.pass(86_400);
    assert_eq!((world.waits(), world.image("podinfo-canary")), (vec!["RouteUnknown"], Some("app:2")));
    world.trees = gloo(Ok("Accepted"));
    world.pass(30);
    world.pass(30);
    assert_eq!((world.phase().as_str(), world.image("podinfo-canary")), ("Steady", None));
}
