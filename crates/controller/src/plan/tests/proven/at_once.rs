//! Runs that try nothing out, as the pods are those of before: what any step waits for stands before the promotion.

use super::super::manifests::set_with;
use super::*;
use crate::manifest::desired::Suspend;
use crate::manifest::object::Kind;
use crate::record::state::Route;

/// A run of which people are asked: the Service has another port.
fn waiting() -> World {
    let mut world = World::new(CANARY, "1");
    world.policy.proof = Some(rule());
    world.settle();
    world.want(CANARY, set_with("1", |all| all[2]["spec"]["ports"][0]["port"] = 81.into()));
    world.settle();
    assert_eq!(world.record().run.unwrap().route, Route::Plain);
    assert_eq!((world.phase().as_str(), world.waits()), ("Waiting", vec!["Approval"]));
    world
}

#[test]
fn x_2_a_version_with_the_same_pods_goes_past_nobody_who_has_to_approve() {
    let mut world = waiting();
    world.host.by = vec!["ana"];
    world.approve("promotion");
    assert_eq!(world.phase(), "Steady");
    assert_eq!(world.get(Kind::Service, "podinfo").unwrap().int("/spec/ports/0/port"), Some(81));
}

#[test]
fn x_2_the_floors_ask_for_a_word_where_nothing_is_tried_out() {
    let mut world = waiting();
    let asked = serde_json::json!({"approvedSteps": 2, "firstExposure": 10, "soak": "1m"});
    world.policy.floors = serde_json::from_value(asked).unwrap();
    world.settle();
    assert_eq!(world.waits(), ["Approval"], "{:#?}", world.plan_now().waits);
}

#[test]
fn attack_80_what_was_approved_is_looked_at_again_where_nothing_is_tried_out() {
    let mut world = waiting();
    world.suspend(Suspend::Yes);
    world.host.by = vec!["ana"];
    world.approve("promotion");
    assert_eq!((world.phase().as_str(), world.waits()), ("Waiting", vec!["Suspended"]));
    world.host.permission = Permission::Read;
    world.suspend(Suspend::No);
    world.pass(330);
    assert_eq!(world.phase(), "Waiting");
    assert!(world.waits().contains(&"ApprovalUnproven"), "{:#?}", world.plan_now().waits);
}
