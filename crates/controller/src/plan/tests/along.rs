//! Changes of main in the middle of a run that make no new version.

use super::super::input::Desired;
use super::super::outlook::{self, Effect, KnownRecord};
use super::manifests::{CANARY, QUICK, REPLICAS, primary, set, set_with};
use super::scaled::{between, copied, own, scaled};
use super::world::{LABEL, Pods, World};
use crate::manifest::decision::DecisionAction;
use crate::manifest::desired::{Set, Suspend};
use crate::manifest::object::Kind;
use crate::record::state::{Outcome, Phase, RolloutState};
use crate::rules::{Broken, Rule};
use serde_json::{Value, json};
use std::sync::Arc;

/// The manifests of a version with so many pods.
fn sized(version: &str, pods: u32) -> Arc<Set> {
    set_with(version, |all| all[1]["spec"]["replicas"] = pods.into())
}

/// The same with a label of the target and one of the ConfigMap.
fn labelled(version: &str, pods: u32) -> Arc<Set> {
    set_with(version, |all| {
        all[1]["spec"]["replicas"] = pods.into();
        all[1]["metadata"]["labels"] = json!({LABEL: "shop"});
        all[0]["metadata"]["labels"] = json!({"team": "shop"});
    })
}

impl World {
    fn sizes(&self) -> [Option<i64>; 2] {
        ["podinfo", "podinfo-canary"].map(|name| self.size(name))
    }

    /// What a record says of where its run stands, and of what people have said about it.
    fn stand(&self) -> (Phase, impl Clone + PartialEq + std::fmt::Debug + use<>) {
        let RolloutState { phase, run, .. } = self.record();
        let run = run.expect("an open run");
        (phase, (run.id, run.approved, run.revision, run.pods, run.started, run.baseline))
    }

    fn directly(&self) -> usize {
        let record = self.record();
        let recorded = record.promoted.map_or(0, |promoted| promoted.directly.len());
        let postures = record.clusters.values().map(|cluster| cluster.posture.stable.directly.len());
        assert!(postures.clone().all(|directly| directly == recorded || directly == 0));
        postures.sum()
    }

    fn has_labels(&self) -> [bool; 2] {
        let has = |kind, name: &str, label: &str| self.get(kind, name).is_some_and(|o| o.label(label) == Some("shop"));
        [has(Kind::Deployment, "podinfo", LABEL), has(Kind::ConfigMap, "settings", "team")]
    }
}

#[test]
fn c_6_another_size_goes_out_in_the_middle_of_a_run_which_stays_where_it_is() {
    let mut world = World::at_tenth();
    world.pass(100);
    let stands = world.stand();
    world.want(CANARY, sized("2", 6));
    world.settle();
    assert_eq!((world.stand(), world.sizes(), world.weight()), (stands, [Some(6); 2], 10), "{:#?}", world.log);
    let record = world.record();
    let text = serde_json::to_value(&record).expect("a record");
    assert_eq!(serde_json::from_value::<RolloutState>(text).expect("the same"), record);
    world.pass(204);
    assert_eq!(world.phase(), "Progressing(tenth)");
    world.pass(1);
    assert_eq!((world.phase().as_str(), world.sizes()), ("Progressing(half)", [Some(6); 2]), "its soak is over");
    world.pass(306);
    world.approve("promotion");
    world.pass(66);
    world.pass(31);
    let promoted = world.record().promoted.expect("a version");
    assert_eq!((world.phase().as_str(), world.size("podinfo"), world.directly()), ("Steady", Some(6), 0));
    assert_eq!((promoted.set, promoted.revision), (sized("2", 6).id.clone(), sized("2", 6).revision.clone()));
}

#[test]
fn c_6_a_build_without_that_rule_is_noticed() {
    let _broken = Broken::new(Rule::Along);
    let mut world = World::at_tenth();
    world.want(CANARY, sized("2", 6));
    world.settle();
    assert_eq!((world.phase().as_str(), world.weight()), ("Reverting(return)", 0));
}

#[test]
fn c_6_what_serves_keeps_it_where_the_run_goes_back() {
    let failed = || {
        let mut world = World::at_tenth();
        world.want(CANARY, labelled("2", 6));
        world.settle();
        assert_eq!((world.sizes(), world.has_labels()), ([Some(6); 2], [true; 2]));
        world.behave("app:2", Pods::Stuck);
        world.settle();
        world.pass(31);
        assert!(world.phase() == "Failed" && world.waits().contains(&"Refused"), "{:?}", world.waits());
        assert_eq!((world.size("podinfo"), world.has_labels(), world.directly()), (Some(6), [true; 2], 2));
        let past = world.record().history.last().cloned().expect("a run");
        assert_eq!((past.began, past.to), (Some(set("2").id.clone()), labelled("2", 6).id.clone()));
        world
    };
    // The version is undone, and the size stays.
    let mut world = failed();
    world.want(CANARY, sized("1", 6));
    world.settle();
    assert_eq!((world.phase().as_str(), world.size("podinfo"), world.directly()), ("Steady", Some(6), 0));
    assert_eq!(world.has_labels(), [false; 2]);
    // All of it is undone.
    let mut world = failed();
    world.want(CANARY, set("1"));
    world.settle();
    assert_eq!((world.phase().as_str(), world.size("podinfo"), world.directly()), ("Steady", Some(4), 0));
    // Another version comes: until it is promoted what serves has it.
    let mut world = failed();
    world.want(CANARY, set("3"));
    world.settle();
    assert_eq!((world.phase().as_str(), world.size("podinfo"), world.directly()), ("Waiting", Some(6), 2));
    world.approve("tenth");
    assert_eq!(world.sizes(), [Some(6), Some(4)]);
}

#[test]
fn c_6_what_main_takes_back_in_a_run_goes_back() {
    let mut world = World::at_tenth();
    let stands = world.stand();
    for (wanted, pods, labels) in
        [(labelled("2", 6), 6, [true; 2]), (sized("2", 6), 6, [false; 2]), (set("2"), 4, [false; 2])]
    {
        world.want(CANARY, wanted);
        world.settle();
        assert_eq!((world.stand(), world.size("podinfo"), world.has_labels()), (stands.clone(), Some(pods), labels));
    }
    assert_eq!((world.record().run.and_then(|run| run.along), world.directly()), (None, 0));
    assert_eq!(world.size("podinfo-canary"), Some(6), "pods that may serve users are kept");
    // At what is promoted the run is over, be it another size.
    world.want(CANARY, sized("2", 6));
    world.settle();
    world.want(CANARY, set("1"));
    world.settle();
    world.pass(31);
    assert_eq!((world.phase().as_str(), world.size("podinfo")), ("Steady", Some(4)));
    assert_eq!(world.record().history.last().map(|past| past.outcome), Some(Outcome::Reverted));
}

#[test]
fn c_6_a_label_does_not_give_stable_the_size_of_the_new_version() {
    let mut world = World::new(CANARY, "1");
    world.settle();
    world.want(CANARY, sized("1", 6));
    world.settle();
    world.want(CANARY, set("2"));
    world.settle();
    world.approve("tenth");
    assert_eq!(world.size("podinfo"), Some(6));
    world.want(CANARY, labelled("2", 4));
    world.settle();
    assert_eq!((world.phase().as_str(), world.size("podinfo")), ("Progressing(tenth)", Some(6)));
    assert_eq!(world.has_labels(), [true; 2]);
}

#[test]
fn c_6_what_is_suspended_waits_and_so_does_what_comes_after_the_promotion_began() {
    let mut world = World::at_tenth();
    let stands = world.stand();
    world.want(CANARY, sized("2", 6));
    world.suspend(Suspend::Yes);
    world.settle();
    assert_eq!((world.waits(), world.sizes()), (vec!["Soak", "Suspended"], [Some(4); 2]));
    world.suspend(Suspend::No);
    world.settle();
    assert_eq!((world.stand(), world.sizes()), (stands, [Some(6); 2]));
    let mut world = World::at_return();
    world.want(CANARY, sized("2", 6));
    world.settle();
    assert_eq!((world.phase().as_str(), world.size("podinfo")), ("Finalising(return)", Some(4)));
    world.pass(31);
    assert_eq!((world.phase().as_str(), world.size("podinfo"), world.directly()), ("Steady", Some(6), 0));
}

#[test]
fn c_6_it_goes_out_before_the_first_step_too() {
    let mut world = World::new(CANARY, "1");
    world.settle();
    world.want(CANARY, set("2"));
    world.settle();
    let stands = world.stand();
    world.want(CANARY, sized("2", 6));
    world.settle();
    assert_eq!((world.stand(), world.sizes()), (stands, [Some(6), None]));
    world.approve("tenth");
    assert_eq!((world.phase().as_str(), world.sizes()), ("Progressing(tenth)", [Some(6); 2]));
}

#[test]
fn c_6_with_a_new_version_it_is_one() {
    let mut world = World::at_tenth();
    world.want(CANARY, sized("3", 6));
    world.settle();
    world.pass(31);
    assert_eq!(world.record().history.last().map(|past| past.outcome), Some(Outcome::Superseded));
    // None is none as well.
    let mut world = World::at_tenth();
    world.want(CANARY, sized("2", 0));
    world.settle();
    assert!(matches!(world.record().phase, Phase::Reverting { .. }), "{}", world.phase());
}

#[test]
fn c_6_by_pods_no_more_requests_reach_the_candidate() {
    let mut world = World::new(REPLICAS, "1");
    world.settle();
    world.want(REPLICAS, set("2"));
    world.settle();
    let (stands, [_, candidate]) = (world.stand(), world.sizes());
    world.want(REPLICAS, sized("2", 6));
    world.settle();
    assert_eq!((world.stand(), world.sizes()), (stands, [Some(6), candidate]));
}

#[test]
fn c_18_an_edited_autoscaler_waits_for_the_promotion_and_takes_no_run_back() {
    let mut world = World::new(&primary(QUICK), "1");
    world.want(&primary(QUICK), scaled("1", between(2, 9)));
    world.settle();
    world.want(&primary(QUICK), scaled("2", between(2, 9)));
    world.settle();
    let stands = world.stand();
    world.want(&primary(QUICK), scaled("2", between(3, 20)));
    world.settle();
    assert_eq!((world.stand(), world.scaler("podinfo-primary")), (stands, copied(2, 9)));
    assert_eq!(world.scaler("podinfo"), own(3, 20));
    world.pass(61);
    world.pass(61);
    world.pass(1);
    assert_eq!((world.phase().as_str(), world.scaler("podinfo-primary")), ("Steady", copied(3, 20)));
}

#[test]
fn c_6_it_is_foretold() {
    let mut world = World::at_tenth();
    let foretold = |world: &World, wanted: Arc<Set>| {
        let (mut later, record) = (World::at_tenth(), world.record());
        later.want(CANARY, wanted);
        let input = later.input();
        let Desired::Wanted(rollout) = &input.desired else { panic!("what main wants") };
        let began = set("2");
        let known = KnownRecord {
            state: &record,
            plan: world.plan.as_deref(),
            promoted: None,
            tried: None,
            brought: Some(&began),
        };
        outlook::wanted(rollout, Some(Ok(known)), None, world.now).change
    };
    assert_eq!(foretold(&world, sized("2", 6)), Effect::Direct);
    assert_eq!(foretold(&world, sized("3", 6)), Effect::Supersedes);
    assert_eq!(foretold(&world, set("1")), Effect::TakesBack);
    world.want(CANARY, sized("2", 6));
    world.settle();
    assert_eq!(foretold(&world, sized("2", 6)), Effect::UnderWay);
}

#[test]
fn c_6_what_the_api_server_refuses_is_held_against_no_version() {
    let mut world = World::at_tenth();
    let stands = world.stand();
    world.refused_labels.insert("shop".to_owned());
    world.want(CANARY, labelled("2", 6));
    world.settle();
    assert_eq!((world.stand(), world.sizes(), world.weight()), (stands.clone(), [Some(4); 2], 10));
    assert_eq!((world.waits(), world.directly()), (vec!["Soak", "HeldBack"], 0));
    // The run goes on as it is.
    world.pass(306);
    assert_eq!(world.phase(), "Progressing(half)");
    world.want(CANARY, sized("2", 6));
    world.settle();
    assert_eq!((world.phase().as_str(), world.sizes()), ("Progressing(half)", [Some(6); 2]));
}

#[test]
fn c_6_two_bounds_of_a_budget_go_together() {
    let budget = |version: &str, spec: Value| {
        set_with(version, |all| {
            all.push(json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "podinfo"}, "spec": spec}));
        })
    };
    let mut world = World::new(CANARY, "1");
    world.want(CANARY, budget("1", json!({"minAvailable": 1})));
    world.settle();
    world.want(CANARY, budget("2", json!({"maxUnavailable": 1})));
    world.settle();
    world.approve("tenth");
    world.want(CANARY, budget("2", json!({"maxUnavailable": 2})));
    world.settle();
    assert_eq!(world.phase(), "Progressing(tenth)");
    let spec = world.get(Kind::PodDisruptionBudget, "podinfo").and_then(|budget| budget.at("/spec")).cloned();
    assert_eq!(spec, Some(json!({"maxUnavailable": 2})));
}

#[test]
fn c_6_by_pods_everybody_is_led_to_as_many_as_load_asks_for() {
    let mut world = World::new(REPLICAS, "1");
    world.settle();
    world.want(REPLICAS, set("2"));
    world.settle();
    world.want(REPLICAS, sized("2", 6));
    while world.phase() != "Promoting(promote)" {
        world.now += chrono::TimeDelta::seconds(5);
        world.tick_until(1);
    }
    assert_eq!(world.sizes()[1], Some(6));
    for _ in 0..3 {
        world.pass(61);
    }
    assert_eq!((world.phase().as_str(), world.sizes()[0]), ("Steady", Some(6)), "{:#?}", world.log);
}

#[test]
fn n_4_what_failed_with_another_size_is_refused_whatever_came_between() {
    let mut world = World::at_tenth();
    world.want(CANARY, sized("2", 6));
    world.settle();
    world.say(DecisionAction::Abort);
    world.settle();
    world.pass(31);
    for version in ["3", "2"] {
        world.want(CANARY, sized(version, 6));
        world.settle();
    }
    world.pass(31);
    assert_eq!((world.phase().as_str(), world.waits()), ("Steady", vec!["Refused"]), "{:#?}", world.log);
    world.want(CANARY, set("2"));
    world.settle();
    assert_eq!(world.waits(), ["Refused"]);
}

#[test]
fn c_6_before_the_first_step_what_main_takes_back_goes_back() {
    let mut world = World::new(CANARY, "1");
    world.settle();
    for (wanted, pods) in [(set("2"), 4), (sized("2", 6), 6), (set("2"), 4)] {
        world.want(CANARY, wanted);
        world.settle();
        assert_eq!(
            (world.phase().as_str(), world.size("podinfo"), world.directly() > 0),
            ("Waiting", Some(pods), pods == 6)
        );
    }
}

#[test]
fn c_6_a_lower_maximum_takes_no_pods_of_a_run() {
    let mut world = World::new(CANARY, "1");
    world.want(CANARY, scaled("1", between(2, 9)));
    world.settle();
    world.want(CANARY, scaled("2", between(2, 9)));
    world.settle();
    world.approve("tenth");
    world.want(CANARY, scaled("2", between(2, 12)));
    world.settle();
    assert_eq!((world.phase().as_str(), world.scaler("podinfo").map(|of| of.2)), ("Progressing(tenth)", Some(12)));
    world.want(CANARY, scaled("2", between(2, 3)));
    world.settle();
    world.pass(31);
    assert_eq!(world.record().history.last().map(|past| past.outcome), Some(Outcome::Superseded));
}

#[test]
fn attack_111_more_than_a_run_brings_takes_no_pods_of_what_serves() {
    // Version 1 serves with four pods, and version 2 is to have two, then three.
    let mut world = World::new(CANARY, "1");
    world.settle();
    world.want(CANARY, sized("2", 2));
    world.settle();
    world.want(CANARY, sized("2", 3));
    world.settle();
    assert_eq!((world.phase().as_str(), world.size("podinfo")), ("Waiting", Some(4)), "{:?}", world.log);
    world.approve("tenth");
    world.say(DecisionAction::Abort);
    for _ in 0..3 {
        world.pass(60);
    }
    assert_eq!((world.phase().as_str(), world.size("podinfo")), ("Steady", Some(4)), "{:?}", world.log);

    let mut world = World::new(CANARY, "1");
    world.want(CANARY, scaled("1", between(5, 20)));
    world.settle();
    world.want(CANARY, scaled("2", between(3, 20)));
    world.settle();
    world.want(CANARY, scaled("2", between(3, 25)));
    world.settle();
    assert_eq!((world.phase().as_str(), world.scaler("podinfo")), ("Waiting", own(5, 20)), "{:?}", world.log);
}
