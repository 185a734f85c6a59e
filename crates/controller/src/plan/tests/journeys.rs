//! The ways that a rollout goes when nothing goes wrong.

use super::manifests::{CANARY, HEADERS, PLAIN, PREVIEW, QUICK, REPLICAS, set, set_with};
use super::world::{Pods, World};
use crate::manifest::decision::DecisionAction;
use crate::manifest::desired::Suspend;
use crate::manifest::ids::RunId;
use crate::manifest::object::Kind;
use crate::record::state::Outcome;
use serde_json::json;

#[test]
fn c_1_c_4_first_sight_brings_stable_up_in_order() {
    let mut world = World::new(CANARY, "1");
    world.settle();
    assert_eq!(world.phase(), "Steady");
    let record = world.record();
    assert_eq!(record.promoted.map(|p| p.revision), Some(set("1").revision.clone()));
    assert_eq!(world.image("podinfo"), Some("app:1"));
    assert_eq!(world.image("podinfo-canary"), None);
    assert!(world.get(Kind::HttpRoute, "podinfo").is_some());
}

#[test]
fn c_2_a_stable_that_is_not_ready_stays_initializing_and_says_why() {
    let mut world = World::new(CANARY, "1");
    world.behave("app:1", Pods::Stuck);
    world.settle();
    world.pass(3_600);
    assert_eq!((world.phase().as_str(), world.waits()), ("Initializing", vec!["StableNotReady"]));
    assert!(world.get(Kind::Service, "podinfo").is_none(), "no Service before it has a ready pod (C-1)");
    world.behave("app:1", Pods::Ready);
    world.settle();
    assert_eq!(world.phase(), "Steady");
}

#[test]
fn a_canary_goes_from_a_tenth_to_half_to_all() {
    let mut world = World::new(CANARY, "1");
    world.settle();
    world.want(CANARY, set("2"));
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits()), ("Waiting", vec!["Approval"]));
    assert_eq!(world.image("podinfo-canary"), None, "creating candidate pods waits for the first gate");
    world.approve("tenth");
    assert_eq!((world.phase().as_str(), world.weight()), ("Progressing(tenth)", 10));
    world.pass(306);
    assert_eq!((world.phase().as_str(), world.weight()), ("Progressing(half)", 50));
    world.pass(306);
    assert_eq!(world.phase(), "WaitingPromotion(half)");
    world.approve("promotion");
    assert_eq!((world.phase().as_str(), world.weight()), ("Promoting(shift)", 100));
    assert_eq!(world.image("podinfo"), Some("app:1"));
    world.pass(66);
    assert_eq!((world.phase().as_str(), world.weight()), ("Finalising(return)", 0));
    assert_eq!(world.image("podinfo"), Some("app:2"));
    assert!(world.image("podinfo-canary").is_some(), "requests in flight drain first (C-20)");
    world.pass(31);
    assert_eq!(world.phase(), "Steady");
    assert_eq!(world.image("podinfo-canary"), None);
    assert_eq!(world.weights, vec![0, 10, 50, 100, 0]);
    assert!(world.proposals.is_empty(), "{:?}", world.proposals);
    insta::assert_snapshot!(world.log.join("\n"));
}

#[test]
fn c_20_between_traffic_back_on_stable_and_no_candidate_lies_the_drain() {
    let mut world = World::at_return();
    world.pass(29);
    assert_eq!(world.waits(), vec!["Soak"]);
    assert!(world.image("podinfo-canary").is_some());
    world.say(world.soak_is_over());
    world.settle();
    assert!(world.image("podinfo-canary").is_some(), "skip ends no drain");
    world.pass(1);
    assert!(world.image("podinfo-canary").is_none());
}

#[test]
fn c_22_the_recorded_weight_is_the_routed_weight() {
    let mut world = World::new(QUICK, "1");
    world.settle();
    world.want(QUICK, set("2"));
    for _ in 0..40 {
        world.pass(20);
        let recorded = world.record().clusters.values().next().map(|c| c.posture.split.weight.get());
        assert_eq!(recorded, Some(world.weight()), "{:?}", world.log);
    }
    assert_eq!(world.phase(), "Steady");
}

#[test]
fn c_3_skip_ends_a_soak_but_no_gate() {
    let mut world = World::at_tenth();
    world.say(world.soak_is_over());
    world.settle();
    assert_eq!(world.phase(), "Progressing(half)");
    world.say(world.soak_is_over());
    world.settle();
    assert_eq!(world.phase(), "WaitingPromotion(half)");
}

#[test]
fn c_31_the_candidate_is_created_empty_and_sized_as_declared() {
    let mut world = World::new(QUICK, "1");
    world.settle();
    world.want(QUICK, set("2"));
    let mut sizes = Vec::new();
    while world.tick() {
        let size = world.get(Kind::Deployment, "podinfo-canary").and_then(|d| d.int("/spec/replicas"));
        sizes.extend(size.filter(|size| sizes.last() != Some(size)));
    }
    assert_eq!(sizes, vec![0, 4]);
}

#[test]
fn the_candidate_is_as_large_as_its_share_of_a_scaled_stable() {
    let scaled = |version: &str| {
        set_with(version, |all| {
            all[1]["spec"].as_object_mut().unwrap().remove("replicas");
            all.push(json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "podinfo"},
                "spec": {"minReplicas": 2, "maxReplicas": 40, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "podinfo"}}}));
        })
    };
    let mut world = World::new(QUICK, "1");
    world.want(QUICK, scaled("1"));
    world.settle();
    world.edit(Kind::Deployment, "podinfo", |d| d["spec"]["replicas"] = 20.into());
    world.settle();
    world.want(QUICK, scaled("2"));
    world.settle();
    let candidate = |w: &World| w.get(Kind::Deployment, "podinfo-canary").and_then(|d| d.int("/spec/replicas"));
    assert_eq!((world.phase().as_str(), candidate(&world)), ("Progressing(tenth)", Some(2)));
    assert_eq!(world.get(Kind::HorizontalPodAutoscaler, "podinfo").and_then(|h| h.int("/spec/minReplicas")), Some(20));
    world.pass(61);
    assert_eq!(candidate(&world), Some(10));
    world.pass(61);
    world.pass(1);
    assert_eq!(world.phase(), "Steady");
    assert_eq!(world.get(Kind::Deployment, "podinfo").and_then(|d| d.int("/spec/replicas")), Some(20));
    assert_eq!(world.get(Kind::HorizontalPodAutoscaler, "podinfo").and_then(|h| h.int("/spec/minReplicas")), Some(2));
}

#[test]
fn c_6_a_change_of_size_alone_is_applied_without_a_run() {
    let mut world = World::new(CANARY, "1");
    world.settle();
    world.want(CANARY, set_with("1", |all| all[1]["spec"]["replicas"] = 6.into()));
    world.settle();
    assert_eq!(world.phase(), "Steady");
    assert_eq!(world.get(Kind::Deployment, "podinfo").and_then(|d| d.int("/spec/replicas")), Some(6));
    assert_eq!(world.record().next_run, 1);
    world.want(CANARY, set_with("1", |all| all[1]["spec"]["template"]["metadata"]["annotations"] = json!({"a": "b"})));
    world.settle();
    assert_eq!((world.phase().as_str(), world.record().next_run), ("Waiting", 2), "a template annotation is a version");
}

#[test]
fn a_direct_change_waits_for_suspend_and_freeze_only() {
    let mut world = World::new(CANARY, "1");
    world.settle();
    world.want(CANARY, set_with("1", |all| all[1]["spec"]["replicas"] = 6.into()));
    world.suspend(Suspend::Yes);
    world.settle();
    assert_eq!(world.waits(), vec!["Suspended"]);
    assert_eq!(world.get(Kind::Deployment, "podinfo").and_then(|d| d.int("/spec/replicas")), Some(4));
    world.suspend(Suspend::No);
    world.settle();
    assert_eq!(world.get(Kind::Deployment, "podinfo").and_then(|d| d.int("/spec/replicas")), Some(6));
}

#[test]
fn a_change_of_the_route_alone_restarts_no_pod() {
    let mut world = World::new(CANARY, "1");
    world.settle();
    let before = world.get(Kind::Deployment, "podinfo").and_then(|d| d.generation());
    world.want(CANARY, set_with("1", |all| all[3]["spec"]["hostnames"] = json!(["shop.example.org"])));
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits()), ("Waiting", vec!["Approval"]));
    world.approve("promotion");
    assert_eq!(world.phase(), "Steady");
    assert_eq!(world.get(Kind::Deployment, "podinfo").and_then(|d| d.generation()), before);
    assert!(world.get(Kind::HttpRoute, "podinfo").and_then(|r| r.at("/spec/hostnames")).is_some());
    assert_eq!(world.weights, vec![0]);
}

#[test]
fn without_a_router_a_run_is_promotion_gate_then_promote() {
    let mut world = World::new(PLAIN, "1");
    world.settle();
    world.want(PLAIN, set("2"));
    world.settle();
    assert_eq!((world.phase().as_str(), world.image("podinfo")), ("Waiting", Some("app:1")));
    world.approve("promotion");
    assert_eq!((world.phase().as_str(), world.image("podinfo")), ("Steady", Some("app:2")));
}

#[test]
fn header_phases_expose_to_testers_first() {
    let mut world = World::new(HEADERS, "1");
    world.settle();
    world.want(HEADERS, set("2"));
    world.settle();
    assert_eq!((world.phase().as_str(), world.weight()), ("Progressing(testers)", 0));
    let rules = |w: &World| {
        w.get(Kind::HttpRoute, "podinfo").and_then(|r| r.at("/spec/rules")).map_or(0, |r| r.as_array().unwrap().len())
    };
    assert_eq!(rules(&world), 2);
    world.pass(61);
    assert_eq!((world.phase().as_str(), world.weight(), rules(&world)), ("Progressing(tenth)", 10, 2));
    world.pass(61);
    world.pass(1);
    assert_eq!((world.phase().as_str(), rules(&world)), ("Steady", 1));
}

#[test]
fn a_preview_is_ready_and_no_user_is_led_to_it() {
    let mut world = World::new(PREVIEW, "1");
    world.settle();
    world.want(PREVIEW, set("2"));
    world.settle();
    let candidate = |w: &World| w.get(Kind::Deployment, "podinfo-canary").and_then(|d| d.int("/spec/replicas"));
    assert_eq!((world.phase().as_str(), world.waits()), ("Progressing(preview)", vec!["Soak"]));
    assert_eq!((world.image("podinfo-canary"), candidate(&world), world.weight()), (Some("app:2"), Some(4), 0));
    assert!(world.get(Kind::Service, "podinfo-canary").is_some());
    world.pass(61);
    assert_eq!((world.phase().as_str(), world.waits()), ("WaitingPromotion(preview)", vec!["Approval"]));
    world.approve("promotion");
    assert_eq!(
        (world.phase().as_str(), world.weight(), world.image("podinfo")),
        ("Promoting(shift)", 100, Some("app:1"))
    );
    world.pass(61);
    assert_eq!((world.phase().as_str(), world.image("podinfo")), ("Steady", Some("app:2")));
    assert_eq!(world.weights, vec![0, 100, 0]);
}

#[test]
fn a_preview_whose_pods_fail_waits_for_them_since_no_user_is_led_there() {
    let mut world = World::new(PREVIEW, "1");
    world.settle();
    world.want(PREVIEW, set("2"));
    world.settle();
    world.behave("app:2", Pods::Stuck);
    world.settle();
    world.pass(61);
    assert_eq!((world.phase().as_str(), world.waits()), ("Progressing(preview)", vec!["CandidateNotReady"]));
    world.behave("app:2", Pods::Ready);
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits()), ("WaitingPromotion(preview)", vec!["Approval"]));
}

#[test]
fn by_pods_the_weight_is_a_share_of_pods() {
    let mut world = World::new(REPLICAS, "1");
    world.settle();
    world.want(REPLICAS, set("2"));
    world.settle();
    let candidate = |w: &World| w.get(Kind::Deployment, "podinfo-canary").and_then(|d| d.int("/spec/replicas"));
    assert_eq!((world.phase().as_str(), candidate(&world)), ("Progressing(fifth)", Some(1)));
    world.pass(61);
    assert_eq!((world.phase().as_str(), candidate(&world)), ("Progressing(half)", Some(4)));
    world.pass(61);
    world.pass(1);
    world.pass(31);
    assert_eq!(world.phase(), "Steady");
    assert_eq!((world.image("podinfo"), candidate(&world)), (Some("app:2"), None));
    assert!(world.get(Kind::Service, "podinfo").is_some_and(|s| s.at("/spec/selector/tidegate.io~1pods").is_none()));
}

#[test]
fn a_second_run_starts_from_the_first_ones_version() {
    let mut world = World::new(QUICK, "1");
    world.settle();
    for version in ["2", "3"] {
        world.want(QUICK, set(version));
        world.settle();
        world.pass(61);
        world.pass(61);
        world.pass(1);
        assert_eq!(world.phase(), "Steady");
    }
    assert_eq!(world.image("podinfo"), Some("app:3"));
    let outcomes: Vec<_> = world.record().history.iter().map(|run| run.outcome).collect();
    assert_eq!(outcomes, vec![Outcome::Promoted, Outcome::Promoted]);
}

#[test]
fn a_rollback_after_promotion_takes_no_phases_and_asks_nobody() {
    let mut world = World::new(QUICK, "1");
    world.settle();
    world.want(QUICK, set("2"));
    world.settle();
    world.pass(61);
    world.pass(61);
    world.pass(1);
    assert_eq!(world.image("podinfo"), Some("app:2"));
    world.say_of(DecisionAction::Rollback, "0".parse().unwrap());
    world.settle();
    world.pass(1);
    assert_eq!((world.phase().as_str(), world.image("podinfo")), ("Steady", Some("app:1")), "{:#?}", world.log);
    assert_eq!(world.waits(), vec!["Refused"], "the revision left is refused");
    assert_eq!(world.proposals.len(), 1, "main is proposed to go back too");
    world.want(QUICK, set("1"));
    world.settle();
    assert!(world.waits().is_empty());
    assert!(world.proposals.is_empty());
}

#[test]
fn c_8_a_rollback_in_a_run_takes_it_back_at_once() {
    for names_the_open_run in [false, true] {
        let mut world = World::new(QUICK, "1");
        world.settle();
        world.want(QUICK, set("2"));
        world.settle();
        assert_eq!(world.weight(), 10);
        let open = world.record().run.as_ref().unwrap().id.clone();
        world.say_of(DecisionAction::Rollback, if names_the_open_run { open } else { RunId::zero() });
        world.settle();
        world.pass(1);
        assert_eq!((world.phase().as_str(), world.image("podinfo")), ("Steady", Some("app:1")), "{:#?}", world.log);
        let record = world.record();
        assert_eq!((record.history.last().unwrap().outcome, record.rollback.as_ref()), (Outcome::Aborted, None));
        assert_eq!((record.refused.len(), record.consumed.last().unwrap().action.as_str()), (1, "rollback"));
    }
}

#[test]
fn c_8_a_rollback_in_a_run_to_an_older_version_takes_that_back_first_and_passes_no_gate() {
    let mut world = World::new(QUICK, "1");
    world.settle();
    for version in ["2", "3"] {
        world.want(QUICK, set(version));
        world.settle();
        if version == "2" {
            [61, 61, 1].into_iter().for_each(|seconds| world.pass(seconds));
        }
    }
    assert_eq!((world.weight(), world.image("podinfo")), (10, Some("app:2")));
    world.say_of(DecisionAction::Rollback, RunId::zero());
    world.settle();
    assert_eq!(world.weight(), 0, "what is lowered waits for nothing that rises");
    world.pass(1);
    world.pass(1);
    let outcomes: Vec<_> = world.record().history.iter().map(|run| run.outcome).collect();
    assert_eq!(outcomes, [Outcome::Promoted, Outcome::Aborted, Outcome::Promoted], "{:#?}", world.log);
    assert_eq!((world.image("podinfo"), world.record().refused.len()), (Some("app:1"), 2));
}

#[test]
fn c_8_a_rollback_that_is_said_twice_turns_nothing_round() {
    let mut world = World::new(QUICK, "1");
    world.settle();
    world.want(QUICK, set("2"));
    world.settle();
    [61, 61, 1].into_iter().for_each(|seconds| world.pass(seconds));
    assert_eq!(world.image("podinfo"), Some("app:2"));
    world.say_of(DecisionAction::Rollback, RunId::zero());
    world.tick();
    world.say_of(DecisionAction::Rollback, RunId::zero());
    world.settle();
    world.pass(1);
    let outcomes: Vec<_> = world.record().history.iter().map(|run| run.outcome).collect();
    assert_eq!(outcomes, [Outcome::Promoted, Outcome::Promoted], "{:#?}", world.log);
    assert_eq!((world.image("podinfo"), world.record().rollback.as_ref()), (Some("app:1"), None));
}

#[test]
fn c_8_a_rollback_to_what_nobody_can_go_back_to_takes_the_open_run_back_all_the_same() {
    let mut world = World::new(QUICK, "1");
    world.settle();
    world.want(QUICK, set("2"));
    world.settle();
    assert_eq!(world.weight(), 10);
    world.say_of(DecisionAction::Rollback, "4-04040404".parse().unwrap());
    world.settle();
    world.pass(1);
    assert_eq!((world.image("podinfo"), world.weight()), (Some("app:1"), 0));
    assert_eq!((world.record().refused.len(), world.record().rollback.as_ref()), (1, None));
}

#[test]
fn a_rollout_that_leaves_main_leaves_its_objects_without_our_marks() {
    let mut world = World::new(QUICK, "1");
    world.settle();
    world.gone();
    world.settle();
    assert!(world.record.is_none());
    assert_eq!((world.owned(), world.image("podinfo")), (0, Some("app:1")));
    world.want(QUICK, set("1"));
    world.settle();
    assert_eq!(world.phase(), "Steady", "taken over again: live is equal");
}

#[test]
fn a_promoted_rollout_that_comes_back_keeps_its_pods() {
    let mut world = World::new(QUICK, "1");
    world.settle();
    world.want(QUICK, set("2"));
    world.settle();
    world.pass(61);
    world.pass(61);
    world.pass(1);
    let generation = |w: &World| w.get(Kind::Deployment, "podinfo").and_then(|d| d.generation());
    let before = generation(&world);
    world.gone();
    world.tick();
    world.tick();
    world.want(QUICK, set("2"));
    world.settle();
    assert_eq!((world.phase().as_str(), generation(&world)), ("Steady", before), "{:#?}", world.log);
    world.want(QUICK, set("3"));
    world.settle();
    assert_eq!(world.phase(), "Progressing(tenth)");
}

#[test]
fn a_rollout_that_leaves_main_mid_run_goes_back_first() {
    let mut world = World::at_tenth();
    world.gone();
    world.settle();
    world.pass(31);
    assert!(world.record.is_none(), "{:#?}", world.log);
    assert_eq!((world.image("podinfo"), world.image("podinfo-canary"), world.weight()), (Some("app:1"), None, 0));
}
