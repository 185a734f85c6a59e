//! The layout `primary` without a route: the Service of the manifests leads to the copy's pods, or to the target's.

use super::crashes::crash_everywhere;
use super::manifests::{PREVIEW, primary, set};
use super::world::{Pods, World};
use crate::gate::BrakeWord;
use crate::manifest::decision::DecisionAction;
use crate::manifest::desired::By;
use crate::manifest::ids::Percent;
use crate::manifest::object::Kind;
use crate::record::posture::Posture;

impl World {
    /// Whether the record lets the Service of the manifests lead to the candidate.
    pub(super) fn switches(&self, posture: &Posture) -> bool {
        let traffic = self.plan.as_ref().and_then(|plan| plan.traffic.as_ref());
        traffic.is_some_and(|traffic| traffic.router.by() == By::Selector) && posture.split.weight == Percent::ALL
    }
}

fn switched() -> String {
    primary(PREVIEW).replace("gatewayApi: {httpRoute: podinfo, service: podinfo}", "service: {service: podinfo}")
}

/// All requests are on the target.
fn at_shift() -> World {
    let mut world = World::in_copies(&switched());
    world.want(&switched(), set("2"));
    world.watched();
    world.pass(61);
    world.approve("promotion");
    assert_eq!((world.phase().as_str(), world.weight()), ("Promoting(shift)", 100));
    world
}

#[test]
fn c_1_c_2_the_service_is_switched_to_a_copy_that_is_ready() {
    let mut world = World::new(&switched(), "1");
    world.exists(&set("1"));
    world.only_stable_stuck = true;
    world.settle();
    world.pass(3_600);
    assert_eq!((world.phase().as_str(), world.weight(), world.leads_to()), ("Initializing", 0, Some("podinfo")));
    world.only_stable_stuck = false;
    world.controllers();
    let expected = ["4 and 4 pods, podinfo-primary serves", "0 and 4 pods, podinfo-primary serves"];
    assert_eq!(world.watched(), expected);
}

#[test]
fn c_1_c_17_all_requests_go_to_the_target_and_back_to_the_copy() {
    let mut world = at_shift();
    assert_eq!((world.image("podinfo"), world.image("podinfo-primary")), (Some("app:2"), Some("app:1")));
    assert_eq!(world.leads_to(), Some("podinfo"));
    world.now += chrono::TimeDelta::seconds(61);
    let expected = [
        "4 and 4 pods, podinfo serves",
        "4 and 4 pods, podinfo-primary serves",
        "0 and 4 pods, podinfo-primary serves",
    ];
    assert_eq!(world.watched(), expected);
    world.settle();
    assert_eq!((world.phase().as_str(), world.image("podinfo-primary")), ("Steady", Some("app:2")));
}

#[test]
fn c_19_a_copy_that_is_not_ready_at_promotion_leaves_the_service_at_the_target() {
    let mut world = at_shift();
    world.only_stable_stuck = true;
    world.pass(61);
    world.pass(601);
    assert_eq!((world.phase().as_str(), world.leads_to()), ("Failed", Some("podinfo")));
    world.only_stable_stuck = false;
    world.say(DecisionAction::Abort);
    world.watched();
    world.settle();
    assert_eq!((world.leads_to(), world.image("podinfo-primary")), (Some("podinfo-primary"), Some("app:1")));
}

#[test]
fn c_21_going_back_switches_the_service_first() {
    let mut world = at_shift();
    world.say(DecisionAction::Abort);
    world.watched();
    world.settle();
    assert_eq!((world.phase().as_str(), world.leads_to()), ("Steady", Some("podinfo-primary")));
    assert_eq!((world.pods_of("podinfo"), world.image("podinfo")), (Some(0), Some("app:1")));
}

#[test]
fn the_brake_switches_the_service_without_a_record() {
    let mut world = at_shift();
    world.unreadable = true;
    world.brake = Ok(Some(BrakeWord::Revert));
    world.settle();
    assert_eq!((world.weight(), world.leads_to()), (0, Some("podinfo-primary")));
    assert_eq!(world.pods_of("podinfo"), Some(4), "requests are in flight");
}

/// The target is not the candidate's yet, and the copy not ready: nobody takes the Service back to that.
#[test]
fn c_1_the_brake_leaves_first_sight_as_it_is() {
    let mut world = World::new(&switched(), "1");
    world.exists(&set("1"));
    world.only_stable_stuck = true;
    world.settle();
    world.brake = Ok(Some(BrakeWord::Revert));
    for unreadable in [false, true] {
        world.unreadable = unreadable;
        world.settle();
        assert_eq!((world.leads_to(), world.pods_of("podinfo")), (Some("podinfo"), Some(4)));
    }
}

#[test]
fn c_35_removed_while_the_target_serves() {
    let mut world = at_shift();
    world.gone();
    world.watched();
    assert!(world.record.is_none());
    assert_eq!(
        (world.image("podinfo"), world.pods_of("podinfo"), world.leads_to()),
        (Some("app:1"), Some(4), Some("podinfo"))
    );
    assert!(world.get(Kind::Deployment, "podinfo-primary").is_none());
}

#[test]
fn a_target_that_is_deleted_while_it_serves_takes_the_run_back() {
    let mut world = at_shift();
    let target = world.get(Kind::Deployment, "podinfo").unwrap().reference().clone();
    world.live.objects.remove(&target);
    world.settle();
    assert_eq!(world.leads_to(), Some("podinfo-primary"));
}

#[test]
fn x_11_a_crash_between_any_two_effects_with_a_switched_service_changes_nothing() {
    let mut world = World::in_copies(&switched());
    world.slow = true;
    world.want(&switched(), set("2"));
    crash_everywhere(&world);
    world.behave("app:2", Pods::Stuck);
    crash_everywhere(&world);
    let mut world = at_shift();
    world.slow = true;
    world.say(DecisionAction::Abort);
    crash_everywhere(&world);
}
