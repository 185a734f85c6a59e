//! What is done while a file, the policy or the record cannot be read, and what is left of it afterwards.

use super::manifests::{CANARY, QUICK, REPLICAS, set};
use super::world::World;
use crate::gate::BrakeWord;
use crate::manifest::decision::DecisionAction;
use crate::manifest::desired::Suspend;
use crate::manifest::object::Kind;
use crate::plan::input::Desired;
use crate::record::state::Phase;
use chrono::TimeDelta;
use serde_json::json;

#[test]
fn a_suspended_run_stays_suspended_when_its_file_or_the_policy_breaks() {
    for broken in [Desired::Rejected("bad".to_owned()), Desired::Unreadable("tidegate.yaml is broken".to_owned())] {
        let mut world = World::at_tenth();
        world.suspend(Suspend::Yes);
        world.pass(306);
        assert_eq!(world.weight(), 10);
        world.desired = broken;
        world.pass(3_600);
        assert_eq!(world.weight(), 10);
    }
}

#[test]
fn a_rollback_that_cannot_be_followed_is_not_followed_later() {
    let mut world = World::new(QUICK, "1");
    world.settle();
    world.want(QUICK, set("2"));
    for _ in 0..4 {
        world.pass(61);
    }
    let good = world.desired.clone();
    world.desired = Desired::Rejected("bad".to_owned());
    world.say_of(DecisionAction::Rollback, "0".parse().unwrap());
    world.settle();
    let last = world.log.last().unwrap().clone();
    assert!(last.contains("which was not done"), "{last}");
    world.desired = good;
    world.pass(60);
    assert_eq!((world.phase().as_str(), world.image("podinfo")), ("Steady", Some("app:2")));
}

#[test]
fn a_brake_that_was_pulled_while_nobody_could_read_the_record_is_not_forgotten() {
    let mut world = World::at_tenth();
    world.unreadable = true;
    world.brake = Ok(Some(BrakeWord::Revert));
    world.settle();
    assert_eq!(world.weight(), 0);
    (world.unreadable, world.brake) = (false, Ok(None));
    world.settle();
    world.pass(31);
    assert_eq!((world.phase().as_str(), world.weight()), ("Steady", 0));
    assert_eq!(world.record().refused.len(), 1);
    // The next run has nothing to do with it.
    world.want(CANARY, set("3"));
    world.settle();
    world.approve("tenth");
    assert_eq!((world.phase().as_str(), world.weight()), ("Progressing(tenth)", 10));
}

#[test]
fn the_brake_works_while_the_record_is_lost() {
    let mut world = World::at_tenth();
    let (record, plan) = (world.record.take(), world.plan.take());
    world.brake = Ok(Some(BrakeWord::Revert));
    world.settle();
    assert_eq!((world.weight(), world.record.is_none()), (0, true), "no new record hides the lost one");
    (world.record, world.plan) = (record, plan);
    world.settle();
    world.pass(31);
    assert_eq!((world.phase().as_str(), world.record().refused.len()), ("Steady", 1));
}

#[test]
fn the_brake_works_while_the_record_is_lost_and_the_file_is_broken() {
    for broken in [Desired::Rejected("bad".to_owned()), Desired::Unreadable("tidegate.yaml is broken".to_owned())] {
        for (brake, left) in [(None, 10), (Some(BrakeWord::Revert), 0)] {
            let mut world = World::at_tenth();
            (world.record, world.plan) = (None, None);
            let good = std::mem::replace(&mut world.desired, broken.clone());
            world.brake = Ok(brake);
            world.settle();
            world.desired = good;
            assert_eq!((world.weight(), world.record.is_none()), (left, true), "{brake:?}");
        }
    }
}

#[test]
fn what_bars_a_step_does_not_hide_a_lost_record() {
    let mut world = World::at_tenth();
    (world.record, world.plan) = (None, None);
    world.brake = Ok(Some(BrakeWord::Hold));
    world.settle();
    assert!(world.record.is_none());
    assert!(world.waits().contains(&"StateLost"), "{:?}", world.waits());
}

#[test]
fn a_brake_that_met_no_run_does_not_end_the_next_one() {
    let mut world = World::new(QUICK, "1");
    world.settle();
    world.unreadable = true;
    world.brake = Ok(Some(BrakeWord::Revert));
    world.settle();
    (world.unreadable, world.brake) = (false, Ok(None));
    world.want(QUICK, set("2"));
    for _ in 0..4 {
        world.pass(61);
    }
    assert_eq!((world.phase().as_str(), world.image("podinfo")), ("Steady", Some("app:2")), "{:#?}", world.log);
}

#[test]
fn without_a_record_the_brake_works_by_pods_too() {
    let mut world = World::new(REPLICAS, "1");
    world.settle();
    world.want(REPLICAS, set("2"));
    world.settle();
    let pods = |world: &World| world.get(Kind::Deployment, "podinfo-canary").and_then(|d| d.int("/spec/replicas"));
    assert!(pods(&world) > Some(0), "{:?}", world.phase());
    world.unreadable = true;
    world.settle();
    assert!(pods(&world) > Some(0), "without a word nothing moves");
    world.brake = Ok(Some(BrakeWord::Revert));
    world.settle();
    assert_eq!(pods(&world), Some(0));
}

#[test]
fn without_a_record_the_brake_leaves_traffic_where_pods_are() {
    let mut world = World::at_shift();
    world.only_stable_stuck = true;
    world.pass(66);
    assert_eq!((world.phase().as_str(), world.weight()), ("Promoting(promote)", 100));
    world.unreadable = true;
    world.brake = Ok(Some(BrakeWord::Revert));
    world.settle();
    assert_eq!(world.weight(), 100);
    assert!(world.waits().contains(&"StableNotReady"), "{:?}", world.waits());
}

/// What a record does not say that is believed, marks and the brake say: a run at a tenth, behind a record that is not.
fn blindly(distrusted: impl Fn(&mut World), reason: &str) {
    let mut world = World::at_tenth();
    distrusted(&mut world);
    let plan = world.plan_now();
    assert_eq!((plan.retreats, plan.actions, world.waits()), (vec![], vec![], vec![reason]), "nothing moves by itself");
    world.brake = Ok(Some(BrakeWord::Revert));
    world.settle();
    assert_eq!((world.weight(), world.waits().contains(&reason)), (0, true), "{:?}", world.waits());
}

#[test]
fn the_brake_works_while_the_record_is_of_a_newer_version() {
    blindly(|world| world.record.as_mut().unwrap().phase = Phase::Unknown(json!({"name": "Sailing"})), "UnknownPhase");
}

#[test]
fn the_brake_works_while_the_record_is_of_another_instance_or_cluster() {
    blindly(|world| world.record.as_mut().unwrap().writer.instance = "other".parse().unwrap(), "ForeignState");
    blindly(|world| world.live.cluster_uid = "cluster-2".to_owned(), "ForeignState");
}

#[test]
fn the_brake_works_once_a_record_stays_behind_for_a_minute() {
    let mut world = World::at_tenth();
    world.record.as_mut().unwrap().seq -= 3;
    world.brake = Ok(Some(BrakeWord::Revert));
    let written = world.now;
    world.now += TimeDelta::seconds(59);
    let plan = world.plan_now();
    assert_eq!((plan.retreats, plan.wake_at), (vec![], Some(written + TimeDelta::seconds(60))));
    assert_eq!((world.waits(), world.weight()), (vec!["StaleRead"], 10), "it may be on its way");
    world.pass(1);
    assert_eq!((world.waits().contains(&"StaleRead"), world.weight()), (true, 0));
}
