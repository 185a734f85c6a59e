//! Corners: what comes at the wrong moment, and what lasts longer than anybody thought.

use super::super::input::MayStart;
use super::manifests::{QUICK, set, set_with};
use super::world::World;
use crate::gate::schedule::{FreezeSpan, Window};
use crate::manifest::decision::DecisionAction;
use crate::manifest::duration::Span;
use crate::manifest::object::{APPLIED, EPOCH, Kind, RETREATED, SEQ};
use serde_json::json;

#[test]
fn a_pod_that_is_moved_late_in_a_step_fails_no_version() {
    let mut world = World::at_tenth();
    world.pass(3_600);
    assert_eq!(world.phase(), "Progressing(half)");
    world.pass(1_000);
    assert_eq!(world.phase(), "WaitingPromotion(half)", "waits for a word, longer than the deadline");
    // One of four pods is evicted: the Deployment stays available.
    world.lost = 1;
    world.settle();
    assert_eq!((world.phase().as_str(), world.weight()), ("WaitingPromotion(half)", 50), "{:#?}", world.log);
    assert_eq!(world.waits(), vec!["CandidateNotReady", "Approval"]);
    world.lost = 0;
    world.approve("promotion");
    assert_eq!(world.phase(), "Promoting(shift)");
}

#[test]
fn a_candidate_that_stays_unavailable_fails_after_the_deadline_at_any_step() {
    let mut world = World::at_tenth();
    world.lost = 3;
    world.settle();
    let since = world.now;
    world.edit(Kind::Deployment, "podinfo-canary", |d| {
        d["status"]["conditions"] =
            json!([{"type": "Available", "status": "False", "lastTransitionTime": since.to_rfc3339()}]);
    });
    world.pass(599);
    assert_eq!(world.phase(), "Progressing(tenth)");
    assert_eq!(world.plan_now().wake_at, Some(since + chrono::TimeDelta::seconds(600)));
    world.pass(1);
    world.pass(31);
    assert_eq!(world.phase(), "Failed");
}

#[test]
fn n_5_retry_asks_the_api_server_again() {
    let mut world = World::new(QUICK, "1");
    world.settle();
    world.refused_images.insert("app:2".to_owned());
    world.want(QUICK, set("2"));
    world.settle();
    assert_eq!(world.phase(), "Failed");
    world.refused_images.clear();
    world.now += chrono::TimeDelta::seconds(60);
    world.say(DecisionAction::Retry);
    world.settle();
    assert_eq!(world.phase(), "Progressing(tenth)", "an answer to another run counts for nothing: {:#?}", world.log);
}

#[test]
fn a_run_that_a_clock_ahead_has_begun_hears_what_its_writes_came_to() {
    let mut world = World::new(QUICK, "1");
    world.settle();
    let right = world.now;
    world.want(QUICK, set("2"));
    world.now += chrono::TimeDelta::seconds(3_600);
    while world.phase() != "Progressing(prepare)" {
        assert!(world.tick(), "{:#?}", world.log);
    }
    // Another leads now, whose clock is right: the run begins in an hour.
    world.now = right + chrono::TimeDelta::seconds(60);
    world.refused_images.insert("app:2".to_owned());
    world.settle();
    assert_eq!((world.phase().as_str(), world.image("podinfo-canary")), ("Failed", None), "{:#?}", world.log);
}

#[test]
fn n_5_retry_writes_again_what_was_refused_before() {
    let mut world = World::new(QUICK, "1");
    world.settle();
    world.want(QUICK, set("2"));
    let mut before = world.clone();
    while world.phase() != "Progressing(prepare)" {
        before = world.clone();
        world.tick();
    }
    // The webhook did not mind the dry run.
    let mut world = before;
    world.refused_images.insert("app:2".to_owned());
    world.settle();
    assert_eq!((world.phase().as_str(), world.image("podinfo-canary")), ("Failed", None), "{:#?}", world.log);
    world.refused_images.clear();
    world.now += chrono::TimeDelta::seconds(60);
    world.say(DecisionAction::Retry);
    world.settle();
    assert_eq!(world.phase(), "Progressing(tenth)", "{:#?}", world.log);
}

#[test]
fn a_first_sight_that_was_refused_half_way_is_tried_again_with_other_content() {
    let mut world = World::new(QUICK, "1");
    let mut before = world.clone();
    while world.record.is_none() {
        before = world.clone();
        world.tick();
    }
    // The webhook did not mind the dry run; other objects are written by then.
    let mut world = before;
    world.refused_images.insert("app:1".to_owned());
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits()), ("Failed", vec!["Refused"]), "{:#?}", world.log);
    assert!(world.owned() > 0);
    world.pass(3_600);
    assert_eq!(world.phase(), "Failed", "not by itself");
    world.want(QUICK, set("2"));
    world.settle();
    assert_eq!((world.phase().as_str(), world.image("podinfo")), ("Steady", Some("app:2")), "{:#?}", world.log);
}

#[test]
fn n_5_a_first_sight_that_was_refused_is_tried_again_by_retry() {
    let mut world = World::new(QUICK, "1");
    world.refused_images.insert("app:1".to_owned());
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits()), ("Failed", vec!["Refused"]));
    // A commit that changes nothing of it is no reason.
    world.main += 1;
    world.refused_images.clear();
    world.pass(60);
    assert_eq!(world.phase(), "Failed");
    world.say_of(DecisionAction::Retry, "0".parse().unwrap());
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits()), ("Steady", vec![]), "{:#?}", world.log);
}

#[test]
fn a_rollout_that_comes_back_before_it_was_gone_is_released_and_taken_over() {
    let mut world = World::new(QUICK, "1");
    world.settle();
    world.gone();
    while world.phase() != "Terminating" {
        world.tick();
    }
    world.want(QUICK, set("1"));
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits(), world.owned()), ("Steady", vec![], 4), "{:#?}", world.log);
}

#[test]
fn a_rollback_waits_for_no_freeze_and_for_no_other_runs() {
    let mut world = World::new(QUICK, "1");
    world.settle();
    world.want(QUICK, set("2"));
    for _ in 0..4 {
        world.pass(61);
    }
    let all = Window::new("* * * * *", Span::from_secs(3_600), chrono_tz::UTC).unwrap();
    world.policy.freezes.insert("now".parse().unwrap(), FreezeSpan { window: all, tenants: [].into() });
    world.policy.may_start = MayStart::No { limit: 1 };
    world.say_of(DecisionAction::Rollback, "0".parse().unwrap());
    world.settle();
    assert_eq!((world.phase().as_str(), world.image("podinfo")), ("Steady", Some("app:1")), "{:#?}", world.log);
}

#[test]
fn a_direct_change_wakes_when_its_freeze_ends() {
    let mut world = World::new(QUICK, "1");
    world.settle();
    let night = Window::new("0 9 * * *", Span::from_secs(7_200), chrono_tz::UTC).unwrap();
    world.policy.freezes.insert("night".parse().unwrap(), FreezeSpan { window: night, tenants: [].into() });
    world.want(QUICK, set_with("1", |all| all[1]["spec"]["replicas"] = 6.into()));
    world.settle();
    assert_eq!(world.waits(), vec!["Freeze"]);
    assert_eq!(world.plan_now().wake_at, Some("2026-03-02T11:00:00Z".parse().unwrap()));
    world.pass(3_600);
    assert!(world.waits().is_empty());
}

#[test]
fn conditions_do_not_flap() {
    // A freeze that goes on and on ends at another time each minute.
    let mut frozen = World::new(QUICK, "1");
    frozen.settle();
    let all = Window::new("0 * * * *", Span::from_secs(3_601), chrono_tz::UTC).unwrap();
    frozen.policy.freezes.insert("now".parse().unwrap(), FreezeSpan { window: all, tenants: [].into() });
    frozen.want(QUICK, set("2"));
    // What differs at first sight is not looked at for a moment each time when a status changes.
    let mut differing = World::new(QUICK, "1");
    differing.exists(&set("0"));
    // A hand that is a scaler.
    let mut drifting = World::at_tenth();
    drifting.edit(Kind::Deployment, "podinfo", |d| d["spec"]["replicas"] = 5.into());
    for mut world in [frozen, differing, drifting] {
        world.settle();
        let (commits, waits) = (world.log.len(), world.waits());
        for n in 0..5 {
            world.edit(Kind::Deployment, "podinfo", |d| {
                d["status"]["restarts"] = n.into();
                if d["spec"]["replicas"] != 4 {
                    d["spec"]["replicas"] = (6 + n).into();
                }
            });
            world.pass(20);
        }
        assert_eq!(world.waits(), waits);
        assert_eq!(world.log[commits..], [] as [String; 0], "nothing new was said to Git");
    }
}

#[test]
fn a_deadline_wakes_also_without_git() {
    let mut world = World::at_tenth();
    world.without_git();
    world.settle();
    assert!(world.plan_now().wake_at.is_some_and(|at| at > world.now), "the soak ends some time");
    world.pass(3_600);
    assert_eq!(world.plan_now().wake_at, None, "nothing but Git is waited for");
}

#[test]
fn attack_52_marks_that_a_hand_has_written_are_in_nobodys_way() {
    for (key, value) in [
        (SEQ, "999"),
        (SEQ, "nonsense"),
        (EPOCH, "999"),
        (APPLIED, "0000000000000000"),
        (RETREATED, ""),
        (RETREATED, "nonsense"),
        (RETREATED, "9-99999999/failed: not this run"),
    ] {
        let mut world = World::at_tenth();
        for (kind, name) in
            [(Kind::HttpRoute, "podinfo"), (Kind::Deployment, "podinfo"), (Kind::Deployment, "podinfo-canary")]
        {
            world.annotate(kind, name, key, value);
        }
        world.settle();
        assert_eq!((world.phase().as_str(), world.weight()), ("Progressing(tenth)", 10), "{key}: {value}");
        world.say(DecisionAction::Abort);
        world.settle();
        world.annotate(Kind::HttpRoute, "podinfo", key, value);
        world.pass(31);
        assert_eq!((world.phase().as_str(), world.weight()), ("Steady", 0), "{key}: {value}: {:#?}", world.log);
        assert_eq!(world.image("podinfo-canary"), None);
        assert!(world.marked().is_empty(), "{key}: {value}: {:?}", world.marked());
    }
}
