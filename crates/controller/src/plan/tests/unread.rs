//! Kinds that cannot be read: who needs them holds, goes back where that is asked for, and nobody else notices.

use super::behaviour::Metric;
use super::checks::MEASURED;
use super::manifests::{CANARY, QUICK, object, set};
use super::world::World;
use crate::gate::BrakeWord;
use crate::manifest::decision::DecisionAction;
use crate::manifest::object::Kind;
use crate::plan::draft::RecordChange;
use serde_json::json;
use std::sync::Arc;

impl World {
    fn close(&mut self, kind: Kind) {
        self.live.closed.insert(kind, "forbidden".to_owned());
    }
}

#[test]
fn attack_101_a_kind_that_nobody_needs_stops_nobody() {
    let mut world = World::at_tenth();
    for kind in [Kind::Ingress, Kind::StatefulSet, Kind::ScaledObject, Kind::NetworkPolicy, Kind::VirtualService] {
        world.close(kind);
    }
    assert_eq!(world.waits(), ["Soak"]);
    world.pass(306);
    assert_eq!((world.phase().as_str(), world.weight()), ("Progressing(half)", 50));
}

#[test]
fn attack_101_who_needs_the_kind_holds_and_nothing_is_concluded() {
    for kind in [Kind::Pod, Kind::EndpointSlice, Kind::Deployment, Kind::Service, Kind::HttpRoute] {
        let mut world = World::at_tenth();
        let before = world.record();
        world.hidden.insert(kind);
        for _ in 0..20 {
            world.now += chrono::TimeDelta::seconds(60);
            let plan = world.plan_now();
            assert_eq!((plan.record, plan.actions, plan.retreats), (RecordChange::Keep, vec![], vec![]), "{kind}");
            assert_eq!(plan.waits.iter().map(|wait| wait.reason.as_str()).collect::<Vec<_>>(), ["ClusterAway"]);
        }
        assert_eq!(world.plan_now().waits[0].message, format!("cannot be read in shop: {kind}: forbidden"));
        world.gaps.push((before.phase.position().unwrap().clock.entered, world.now));
        world.hidden.clear();
        world.settle();
        assert_eq!((world.phase().as_str(), world.record().refused.len()), ("Progressing(tenth)", 0));
        world.pass(306);
        assert_eq!(world.phase(), "Progressing(half)");
    }
}

#[test]
fn attack_101_what_goes_back_goes_back_while_other_kinds_cannot_be_read() {
    for kind in [Kind::Pod, Kind::EndpointSlice, Kind::Deployment] {
        let mut aborted = World::at_tenth();
        aborted.hidden.insert(kind);
        aborted.say(DecisionAction::Abort);
        aborted.settle();
        let mut braked = World::at_tenth();
        braked.hidden.insert(kind);
        braked.brake = Ok(Some(BrakeWord::Revert));
        braked.settle();
        let mut moved = World::at_tenth();
        moved.hidden.insert(kind);
        moved.want(CANARY, set("3"));
        moved.settle();
        let mut unrecorded = World::at_tenth();
        (unrecorded.record, unrecorded.plan) = (None, None);
        unrecorded.hidden.insert(kind);
        unrecorded.brake = Ok(Some(BrakeWord::Revert));
        unrecorded.settle();
        for world in [aborted, braked, moved, unrecorded] {
            assert_eq!(world.weight(), 0, "{kind}: {:#?}", world.log);
        }
    }
    let mut measured = World::new(MEASURED, "1");
    measured.settle();
    measured.want(MEASURED, set("2"));
    measured.settle();
    measured.hidden.insert(Kind::Pod);
    measured.metric = Metric::Value(0.25);
    measured.pass(66);
    assert_eq!((measured.phase().as_str(), measured.weight()), ("Reverting(return)", 0));
}

#[test]
fn the_record_is_lowered_once_all_that_goes_back_was_read() {
    let mut world = World::at_tenth();
    world.hidden.insert(Kind::Deployment);
    world.say(DecisionAction::Abort);
    world.settle();
    assert_eq!((world.phase().as_str(), world.weight()), ("Reverting(split)", 0));
    assert_eq!(world.record().clusters.values().next().unwrap().posture.split.weight.get(), 10);
    world.hidden.clear();
    world.settle();
    world.pass(31);
    assert_eq!((world.phase().as_str(), world.marked()), ("Steady", vec![]));
}

#[test]
fn a_route_that_cannot_be_read_is_told_to_keep_the_way_back() {
    let mut world = World::at_tenth();
    world.close(Kind::HttpRoute);
    world.say(DecisionAction::Abort);
    world.settle();
    // What was read last is lowered.
    assert_eq!((world.phase().as_str(), world.weight()), ("Reverting(split)", 0));
    assert!(world.waits().contains(&"RetreatBlocked"), "{:?}", world.waits());
}

#[test]
fn what_cannot_be_read_stays_in_the_inventory() {
    let mut world = World::at_tenth();
    let listed = |world: &World| world.record().clusters.values().next().unwrap().inventory.clone();
    let before = listed(&world);
    world.hidden.insert(Kind::Service);
    world.say(DecisionAction::Hold);
    world.settle();
    assert!(world.record().run.unwrap().held, "a decision was recorded");
    assert_eq!(listed(&world), before);
}

#[test]
fn a_rollout_without_a_record_is_not_taken_for_new() {
    let mut world = World::new(CANARY, "1");
    world.settle();
    (world.record, world.plan) = (None, None);
    world.hidden.insert(Kind::Deployment);
    world.settle();
    assert_eq!((world.record.is_none(), world.waits()), (true, vec!["ClusterAway"]));
}

#[test]
fn at_rest_a_decision_waits_for_what_follows_it() {
    let mut world = World::new(QUICK, "1");
    world.settle();
    world.want(QUICK, set("2"));
    for _ in 0..4 {
        world.pass(61);
    }
    let kept = world.record();
    world.close(Kind::Pod);
    world.say_of(DecisionAction::Rollback, "0".parse().unwrap());
    world.settle();
    assert_eq!(world.record(), kept);
    world.live.closed.clear();
    world.settle();
    world.pass(1);
    assert_eq!((world.phase().as_str(), world.image("podinfo")), ("Steady", Some("app:1")));
}

#[test]
fn pods_that_cannot_be_listed_take_no_good_candidate_back() {
    let mut world = World::new(CANARY, "1");
    world.settle();
    world.want(CANARY, set("2"));
    world.hidden.insert(Kind::Pod);
    world.settle();
    world.hidden.clear();
    world.settle();
    world.approve("tenth");
    assert_eq!((world.phase().as_str(), world.weight()), ("Progressing(tenth)", 10));
}

#[test]
fn a_kind_that_the_installation_may_not_write_matters_to_who_has_it() {
    let mut world = World::new(CANARY, "1");
    world.live.unwatched.extend([Kind::HorizontalPodAutoscaler, Kind::ScaledObject, Kind::StatefulSet, Kind::Ingress]);
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits()), ("Steady", vec![]));
    world.live.unwatched.insert(Kind::HttpRoute);
    world.want(CANARY, set("2"));
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits()), ("Steady", vec!["ClusterAway"]));
}

#[test]
fn traffic_stays_where_it_is_served_until_all_that_was_overwritten_can_be_seen() {
    let mut world = World::at_shift();
    while world.phase() != "Promoting(promote)" {
        world.now += chrono::TimeDelta::seconds(10);
        world.tick_until(1);
    }
    world.hidden.insert(Kind::Service);
    world.say(DecisionAction::Abort);
    world.settle();
    assert_eq!((world.phase().as_str(), world.weight()), ("Reverting(split)", 100));
    world.hidden.clear();
    world.settle();
    assert_eq!(world.weight(), 0);
}

#[test]
fn c_19_nobody_is_led_onto_a_stable_of_which_nobody_knows_whether_it_is_ready() {
    let mut world = World::at_shift();
    world.only_stable_stuck = true;
    world.pass(66);
    let mut unrecorded = world.clone();
    unrecorded.unreadable = true;
    unrecorded.hidden.insert(Kind::EndpointSlice);
    unrecorded.brake = Ok(Some(BrakeWord::Revert));
    unrecorded.settle();
    assert_eq!(unrecorded.weight(), 100);
    world.pass(601);
    assert_eq!(world.phase(), "Failed");
    world.hidden.insert(Kind::EndpointSlice);
    world.say(DecisionAction::Abort);
    world.settle();
    assert_eq!((world.image("podinfo"), world.weight()), (Some("app:1"), 100), "restored, but not rolled out");
    for mut world in [world, unrecorded] {
        world.only_stable_stuck = false;
        world.settle();
        assert_eq!(world.weight(), 0);
    }
}

#[test]
fn a_kind_that_versions_of_before_had_is_not_needed() {
    let mut world = World::new(CANARY, "1");
    world.settle();
    let mut past = (*set("7")).clone();
    let old = object(json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "old"}}));
    past.objects.insert(old.reference().clone(), old);
    world.sets.insert(past.id.clone(), Arc::new(past));
    world.live.unwatched.insert(Kind::Ingress);
    assert_eq!(world.waits(), Vec::<&str>::new());
}
