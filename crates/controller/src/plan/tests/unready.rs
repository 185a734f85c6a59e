//! Soaks in which a pod of the candidate that has served is not ready.

use super::manifests::{CANARY, object, set};
use super::world::World;
use crate::manifest::duration::Span;
use crate::manifest::object::Kind;
use crate::record::state::{Phase, StepClock, Time};
use crate::rules::{Broken, Rule};
use chrono::TimeDelta;
use serde_json::json;

impl World {
    /// A pod of the candidate's is ready, or not: any more if it has served.
    fn pod_is(&mut self, ready: bool, served: bool) {
        self.put_pod("podinfo-canary-y", true, true);
        self.put_pod("podinfo-canary-x", ready, served);
        self.lost = i64::from(!ready);
        self.settle();
    }

    fn put_pod(&mut self, name: &str, ready: bool, served: bool) {
        let labels =
            self.get(Kind::Deployment, "podinfo-canary").and_then(|d| d.at("/spec/selector/matchLabels").cloned());
        let now = self.now.to_rfc3339();
        let started = if served { (self.now - TimeDelta::hours(1)).to_rfc3339() } else { now.clone() };
        let word = if ready { "True" } else { "False" };
        self.put(object(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "labels": labels.expect("a candidate"), "creationTimestamp": started},
            "status": {
                "startTime": started,
                "conditions": [
                    {"type": "Ready", "status": word, "lastTransitionTime": now},
                    {"type": "ContainersReady", "status": word, "lastTransitionTime": now},
                ],
            },
        })));
    }

    /// It has served, and is not ready for so long by now.
    fn fails_for(&mut self, seconds: i64) {
        self.pod_is(false, true);
        self.pass(seconds);
    }

    fn recovers(&mut self) {
        self.pod_is(true, true);
    }

    fn clock(&self) -> StepClock {
        self.record().phase.position().expect("a step").clock
    }

    fn wakes(&self) -> Option<Time> {
        self.plan_now().wake_at
    }

    fn goes_back_as(&self) -> String {
        let Phase::Reverting { why, .. } = self.record().phase else { panic!("{}", self.phase()) };
        why
    }
}

fn seconds(seconds: u64) -> Span {
    Span::from_secs(seconds)
}

/// At a tenth, by a plan that says more.
fn at_tenth(more: &str) -> World {
    let (mut world, plan) = (World::new(CANARY, "1"), format!("{CANARY}{more}"));
    world.settle();
    world.want(&plan, set("2"));
    world.settle();
    world.approve("tenth");
    assert_eq!((world.phase().as_str(), world.weight()), ("Progressing(tenth)", 10));
    world
}

#[test]
fn c_36_time_in_which_a_pod_that_has_served_is_not_ready_is_no_part_of_a_soak() {
    let mut world = World::at_tenth();
    world.pass(100);
    let since = world.now;
    world.fails_for(2);
    assert_eq!((world.clock().lost, world.clock().failing), (Some(since), true));
    let told = world.plan_now().waits.remove(0);
    assert!(told.message.ends_with("; that time is no part of the soak") && told.since == Some(since), "{told:?}");
    world.pass(198);
    world.recovers();
    let over = world.clock();
    assert_eq!((over.lost, over.failing), (None, false));
    assert_eq!([over.away, over.unready, over.longest], [seconds(201); 3], "a part of a second counts");
    let message = world.plan_now().waits.remove(0).message;
    assert_eq!(message, "tenth: it stays exposed, 1m39s of 5m5s, without 3m21s in which it was not ready");
    world.pass(205);
    assert_eq!(world.phase(), "Progressing(tenth)");
    world.pass(1);
    assert_eq!(world.phase(), "Progressing(half)");
    // The bake likewise.
    let mut world = World::at_shift();
    world.fails_for(30);
    world.recovers();
    world.pass(65);
    assert_eq!(world.phase(), "Promoting(shift)");
    world.pass(1);
    assert_ne!(world.phase(), "Promoting(shift)");
}

#[test]
fn c_36_a_build_without_that_rule_is_noticed() {
    let _broken = Broken::new(Rule::GoodTime);
    let mut world = World::at_tenth();
    world.fails_for(300);
    world.recovers();
    world.pass(5);
    assert_eq!(world.phase(), "Progressing(half)", "a soak in which a pod was not ready all the time");
}

#[test]
fn x_14_time_that_nobody_observed_is_no_time_of_not_being_ready() {
    let mut world = World::at_tenth();
    world.fails_for(10);
    world.gaps.push((world.now, world.now + TimeDelta::seconds(100)));
    world.pass(140);
    world.recovers();
    assert_eq!(world.clock().unready, seconds(51));
}

#[test]
fn c_36_a_pod_that_stays_unready_takes_the_run_back_after_the_deadline() {
    let mut world = World::at_tenth();
    let ends = world.now + TimeDelta::seconds(600);
    world.fails_for(599);
    assert_eq!((world.phase().as_str(), world.wakes()), ("Progressing(tenth)", Some(ends)));
    world.pass(1);
    assert_eq!(world.goes_back_as(), "tenth: a pod that has served was not ready for 10m");
    assert_eq!(world.weight(), 0);
}

#[test]
fn c_36_a_version_that_is_not_ready_again_and_again_goes_back() {
    let mut world = at_tenth("");
    for unready in [31, 62] {
        world.fails_for(30);
        world.recovers();
        assert_eq!((world.clock().unready, world.clock().longest), (seconds(unready), seconds(31)));
        world.pass(10);
    }
    let ends = world.now + TimeDelta::seconds(31);
    world.fails_for(30);
    assert_eq!((world.phase().as_str(), world.wakes()), ("Progressing(tenth)", Some(ends)), "a fifth of 305 s is 61 s");
    world.pass(1);
    let why = "tenth: not ready again and again, for 1m2s beside the 31s that it lasted longest; maxUnready lets a soak of 5m5s have 1m1s";
    assert_eq!(world.goes_back_as(), why);
    // Without a limit it takes its time; with none left the second goes back.
    for (more, second) in [("maxUnready: 100\n", "Progressing"), ("maxUnready: 0\n", "Reverting")] {
        let mut world = at_tenth(more);
        world.fails_for(100);
        world.recovers();
        world.fails_for(90);
        assert_eq!(world.record().phase.name(), second, "{more}");
    }
}

#[test]
fn c_36_a_pod_that_comes_and_goes_writes_few_records() {
    let mut world = World::at_tenth();
    world.fails_for(2);
    let seq = world.record().seq;
    world.recovers();
    assert_eq!((world.record().seq, world.waits()), (seq, vec!["CandidateNotReady"]));
    assert_eq!(world.wakes(), Some(world.now + TimeDelta::seconds(4)));
    world.fails_for(1);
    world.recovers();
    assert_eq!(world.record().seq, seq);
    world.pass(3);
    assert_eq!((world.record().seq, world.clock().unready), (seq + 1, seconds(7)));
}

#[test]
fn c_36_what_serves_nobody_yet_and_what_is_over_count_for_nothing() {
    let mut world = World::at_tenth();
    let seq = world.record().seq;
    world.pod_is(false, false);
    world.pass(100);
    assert_eq!((world.record().seq, world.waits()), (seq, vec!["CandidateNotReady"]), "a pod that is being made");
    world.fails_for(10);
    assert!(world.clock().failing);
    world.say(world.soak_is_over());
    world.settle();
    assert!(!world.clock().failing, "a soak that a person has skipped");
    world.recovers();
    assert_eq!(world.phase(), "Progressing(half)");
    world.pass(3_600);
    assert_eq!(world.phase(), "WaitingPromotion(half)");
    let seq = world.record().seq;
    world.fails_for(3_600);
    assert_eq!((world.record().seq, world.phase().as_str()), (seq, "WaitingPromotion(half)"), "behind the soak");
}

#[test]
fn c_36_where_no_pod_serves_any_more_nothing_is_recorded_before_traffic_goes_back() {
    let mut world = World::at_tenth();
    world.put_pod("podinfo-canary-x", false, true);
    world.lost = 1;
    world.settle();
    assert!(!world.clock().failing, "endpoints lag behind");
    world.lost = 4;
    world.settle();
    assert_eq!((world.goes_back_as().as_str(), world.weight()), ("tenth: the candidate has no ready endpoint left", 0));
}

#[test]
fn c_36_more_pods_than_are_needed_are_no_concern() {
    let mut world = World::at_tenth();
    let seq = world.record().seq;
    world.put_pod("podinfo-canary-y", true, true);
    world.put_pod("podinfo-canary-x", false, true);
    world.pass(100);
    assert_eq!((world.record().seq, world.waits()), (seq, vec!["Soak"]), "as many are ready as the size asks for");
}

#[test]
fn x_14_a_clock_that_ran_ahead_ends_no_soak_and_begins_none() {
    let mut world = World::at_tenth();
    world.fails_for(10);
    let ahead = world.now + TimeDelta::days(365);
    let Some(Phase::Progressing(stop)) = world.record.as_mut().map(|record| &mut record.phase) else {
        panic!("a step")
    };
    stop.clock.lost = Some(ahead);
    world.settle();
    assert_eq!((world.clock().lost, world.clock().failing), (Some(world.now), true));
}
