//! Targets whose number of pods is a scaler's decision, with the layout `primary`: the copy has a scaler of its own.

use super::manifests::{CANARY, QUICK, named_with, primary, set, set_with, versioned};
use super::world::{LABEL, Pods, World};
use crate::manifest::decision::DecisionAction;
use crate::manifest::desired::Set;
use crate::manifest::object::Kind;
use serde_json::{Value, json};
use std::sync::Arc;

/// The manifests of a version without a number of pods, and with an autoscaler with these bounds.
pub(super) fn scaled(version: &str, bounds: Value) -> Arc<Set> {
    set_with(version, |all| {
        all[1]["spec"].as_object_mut().unwrap().remove("replicas");
        let mut spec = bounds;
        spec["scaleTargetRef"] = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "podinfo"});
        all.push(json!({
            "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "podinfo"}, "spec": spec,
        }));
    })
}

/// Without a number of pods, which somebody else has set.
fn uncounted(version: &str) -> Arc<Set> {
    set_with(version, |all| {
        all[1]["spec"].as_object_mut().unwrap().remove("replicas");
    })
}

pub(super) fn between(least: u32, most: u32) -> Value {
    json!({"minReplicas": least, "maxReplicas": most})
}

impl World {
    pub(super) fn size(&self, name: &str) -> Option<i64> {
        self.get(Kind::Deployment, name)?.int("/spec/replicas")
    }

    /// What an autoscaler scales, and between which bounds.
    pub(super) fn scaler(&self, name: &str) -> Option<(String, i64, i64)> {
        let scaler = self.get(Kind::HorizontalPodAutoscaler, name)?;
        let bound = |field: &str| scaler.int(&format!("/spec/{field}")).unwrap_or(1);
        Some((scaler.text("/spec/scaleTargetRef/name")?.to_owned(), bound("minReplicas"), bound("maxReplicas")))
    }

    /// Initialized with these manifests in copies.
    fn scaling(plan: &str, set: Arc<Set>) -> Self {
        let mut world = Self::new(&primary(plan), "1");
        world.want(&primary(plan), set);
        world.settle();
        assert_eq!(world.phase(), "Steady");
        world
    }
}

pub(super) fn copied(least: i64, most: i64) -> Option<(String, i64, i64)> {
    Some(("podinfo-primary".to_owned(), least, most))
}

pub(super) fn own(least: i64, most: i64) -> Option<(String, i64, i64)> {
    Some(("podinfo".to_owned(), least, most))
}

#[test]
fn c_1_the_copy_begins_with_the_pods_that_the_target_has_and_then_with_a_scaler_of_its_own() {
    let mut world = World::new(&primary(CANARY), "1");
    let set = scaled("1", between(2, 9));
    world.exists(&set);
    world.edit(Kind::Deployment, "podinfo", |target| target["spec"]["replicas"] = 6.into());
    world.want(&primary(CANARY), set);
    let mut seen = Vec::new();
    while world.tick_until(1) || world.drains() {
        let view = (world.size("podinfo"), world.size("podinfo-primary"), world.scaler("podinfo-primary").is_some());
        if seen.last() != Some(&view) {
            seen.push(view);
        }
        assert!(world.ready_behind("podinfo") >= 6, "{seen:?}");
    }
    let expected =
        [(Some(6), None, false), (Some(6), Some(6), false), (Some(6), Some(6), true), (Some(0), Some(6), true)];
    assert_eq!(seen, expected);
    world.settle();
    assert_eq!((world.scaler("podinfo"), world.scaler("podinfo-primary")), (own(2, 9), copied(2, 9)));
}

#[test]
fn how_many_pods_the_copy_has_is_its_scalers_word() {
    let mut world = World::scaling(QUICK, scaled("1", between(2, 9)));
    assert_eq!(world.size("podinfo-primary"), Some(2));
    world.scale("podinfo-primary", 7);
    world.settle();
    assert_eq!((world.size("podinfo"), world.size("podinfo-primary")), (Some(0), Some(7)));
    world.want(&primary(QUICK), scaled("2", between(2, 9)));
    world.settle();
    world.pass(61);
    world.pass(61);
    world.pass(1);
    assert_eq!((world.phase().as_str(), world.image("podinfo-primary")), ("Steady", Some("app:2")));
    assert_eq!((world.size("podinfo"), world.size("podinfo-primary")), (Some(0), Some(7)));
}

#[test]
fn c_18_an_edited_autoscaler_reaches_the_copy_with_the_next_promotion_alone() {
    let mut world = World::scaling(QUICK, scaled("1", between(2, 9)));
    let mut edited = between(3, 20);
    edited["metrics"] = json!([{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}]);
    edited["behavior"] = json!({"scaleDown": {"stabilizationWindowSeconds": 60}});
    world.want(&primary(QUICK), scaled("1", edited.clone()));
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits()), ("Steady", vec!["HeldBack"]));
    assert_eq!((world.scaler("podinfo"), world.scaler("podinfo-primary")), (own(2, 9), copied(2, 9)));
    let told = &world.record().conditions[0];
    assert!(told.message.starts_with("HorizontalPodAutoscaler shop/podinfo changed on main"), "{told:?}");
    assert!(told.act.as_ref().is_some_and(|act| act.contains("Deployment podinfo")), "{told:?}");

    world.want(&primary(QUICK), scaled("2", edited.clone()));
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits()), ("Progressing(tenth)", vec!["Soak"]));
    assert_eq!((world.scaler("podinfo"), world.scaler("podinfo-primary")), (own(3, 20), copied(2, 9)));
    world.pass(61);
    world.pass(61);
    world.pass(1);
    assert_eq!(world.phase(), "Steady");
    assert_eq!((world.scaler("podinfo"), world.scaler("podinfo-primary")), (own(3, 20), copied(3, 20)));
    let copy = world.get(Kind::HorizontalPodAutoscaler, "podinfo-primary").unwrap();
    assert_eq!(
        (&copy.value()["spec"]["metrics"], &copy.value()["spec"]["behavior"]),
        (&edited["metrics"], &edited["behavior"])
    );
}

#[test]
fn c_18_undone_on_main_nothing_is_held_back_any_more_and_in_place_nothing_ever_is() {
    let mut world = World::scaling(QUICK, scaled("1", between(2, 9)));
    world.want(&primary(QUICK), scaled("1", between(3, 9)));
    world.settle();
    world.want(&primary(QUICK), scaled("1", between(2, 9)));
    world.settle();
    assert_eq!((world.waits(), world.record().conditions.len()), (Vec::<&str>::new(), 0));

    let mut world = World::new(QUICK, "1");
    world.want(QUICK, scaled("1", between(2, 9)));
    world.settle();
    world.want(QUICK, scaled("1", between(3, 9)));
    world.settle();
    assert_eq!((world.waits(), world.scaler("podinfo")), (Vec::<&str>::new(), own(3, 9)));
}

#[test]
fn c_17_no_minimum_and_a_minimum_of_one_are_no_change_to_the_copy() {
    let mut world = World::scaling(QUICK, scaled("1", between(1, 9)));
    let version = |world: &World| {
        let copy = world.get(Kind::HorizontalPodAutoscaler, "podinfo-primary").unwrap();
        copy.annotation(crate::manifest::object::APPLIED).map(str::to_owned)
    };
    let before = version(&world);
    world.want(&primary(QUICK), scaled("2", json!({"maxReplicas": 9})));
    world.settle();
    world.pass(61);
    world.pass(61);
    world.pass(1);
    assert_eq!((world.phase(), version(&world)), ("Steady".to_owned(), before));
}

#[test]
fn c_31_in_a_run_the_candidates_size_is_its_autoscalers_minimum() {
    let mut world = World::scaling(QUICK, scaled("1", between(2, 40)));
    world.scale("podinfo-primary", 20);
    world.settle();
    world.want(&primary(QUICK), scaled("2", between(3, 40)));
    world.settle();
    assert_eq!((world.phase().as_str(), world.size("podinfo")), ("Progressing(tenth)", Some(3)));
    assert_eq!((world.scaler("podinfo"), world.scaler("podinfo-primary")), (own(3, 40), copied(20, 40)));
    // More than the least is the autoscaler's word too.
    world.scale("podinfo", 5);
    world.settle();
    assert_eq!(world.size("podinfo"), Some(5));
    world.pass(61);
    assert_eq!((world.phase().as_str(), world.size("podinfo")), ("Progressing(half)", Some(10)));
    assert_eq!(world.scaler("podinfo"), own(10, 40));
    world.pass(61);
    world.pass(1);
    assert_eq!((world.phase().as_str(), world.size("podinfo")), ("Steady", Some(0)));
    assert_eq!((world.scaler("podinfo"), world.scaler("podinfo-primary")), (own(3, 40), copied(3, 40)));
}

#[test]
fn c_21_after_a_run_that_went_back_both_scalers_are_as_they_were() {
    let mut world = World::scaling(QUICK, scaled("1", between(2, 9)));
    world.want(&primary(QUICK), scaled("2", between(4, 8)));
    world.settle();
    assert_eq!((world.phase().as_str(), world.scaler("podinfo")), ("Progressing(tenth)", own(4, 8)));
    world.say(DecisionAction::Abort);
    world.settle();
    assert_eq!((world.phase().as_str(), world.size("podinfo")), ("Steady", Some(0)));
    assert_eq!((world.scaler("podinfo"), world.scaler("podinfo-primary")), (own(2, 9), copied(2, 9)));
    assert!(world.marked().is_empty());
}

#[test]
fn a_version_brings_an_autoscaler_or_takes_it_away() {
    let mut world = World::scaling(QUICK, set("1"));
    world.want(&primary(QUICK), scaled("2", between(2, 9)));
    world.settle();
    assert_eq!((world.size("podinfo"), world.scaler("podinfo-primary")), (Some(2), None));
    world.pass(61);
    world.pass(61);
    world.pass(1);
    assert_eq!((world.phase().as_str(), world.scaler("podinfo-primary")), ("Steady", copied(2, 9)));
    world.want(&primary(QUICK), set("3"));
    world.settle();
    world.pass(61);
    world.pass(61);
    world.pass(1);
    assert_eq!(
        (world.phase().as_str(), world.size("podinfo"), world.size("podinfo-primary")),
        ("Steady", Some(0), Some(4))
    );
    assert_eq!((world.scaler("podinfo"), world.scaler("podinfo-primary")), (None, None));
}

#[test]
fn c_35_when_the_rollout_is_gone_the_target_has_the_pods_of_the_copy_and_its_autoscaler() {
    let mut world = World::scaling(CANARY, scaled("1", between(2, 9)));
    world.scale("podinfo-primary", 7);
    world.settle();
    world.gone();
    while world.tick_until(1) || world.drains() {
        assert!(world.ready_behind("podinfo") >= 7, "{:#?}", world.log);
    }
    assert!(world.record.is_none());
    assert_eq!((world.size("podinfo"), world.size("podinfo-primary")), (Some(7), None));
    assert_eq!((world.scaler("podinfo"), world.scaler("podinfo-primary")), (own(2, 9), None));
}

#[test]
fn c_18_keda_makes_no_pods_where_there_are_to_be_none_and_has_a_copy_too() {
    let by_keda = |version: &str, least: u32| {
        set_with(version, |all| {
            all[1]["spec"].as_object_mut().unwrap().remove("replicas");
            let spec = json!({"scaleTargetRef": {"name": "podinfo"}, "minReplicaCount": least, "triggers": [{"type": "cron", "metadata": {}}]});
            all.push(json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "podinfo"}, "spec": spec}));
        })
    };
    let seen = |world: &World, name: &str| {
        let scaler = world.get(Kind::ScaledObject, name)?;
        let paused = scaler.annotation("autoscaling.keda.sh/paused-replicas").map(str::to_owned);
        Some((scaler.text("/spec/scaleTargetRef/name")?.to_owned(), scaler.int("/spec/minReplicaCount")?, paused))
    };
    let of = |name: &str, least: i64, paused: Option<&str>| Some((name.to_owned(), least, paused.map(str::to_owned)));
    let mut world = World::scaling(QUICK, by_keda("1", 2));
    assert_eq!(seen(&world, "podinfo"), of("podinfo", 2, Some("0")));
    assert_eq!(seen(&world, "podinfo-primary"), of("podinfo-primary", 2, None));
    world.want(&primary(QUICK), by_keda("1", 3));
    world.settle();
    assert_eq!(world.waits(), ["HeldBack"]);
    world.want(&primary(QUICK), by_keda("2", 3));
    world.settle();
    assert_eq!((world.phase().as_str(), world.size("podinfo")), ("Progressing(tenth)", Some(3)));
    assert_eq!(seen(&world, "podinfo"), of("podinfo", 3, None));
    world.pass(61);
    world.pass(61);
    world.pass(1);
    assert_eq!((world.phase().as_str(), world.size("podinfo")), ("Steady", Some(0)));
    assert_eq!(seen(&world, "podinfo"), of("podinfo", 3, Some("0")));
    assert_eq!(seen(&world, "podinfo-primary"), of("podinfo-primary", 3, None));
}

#[test]
fn c_1_without_a_number_in_the_manifests_the_copy_has_the_pods_of_the_target() {
    let mut world = World::new(&primary(QUICK), "1");
    world.exists(&uncounted("1"));
    world.scale("podinfo", 10);
    world.want(&primary(QUICK), uncounted("1"));
    while world.tick_until(1) || world.drains() {
        assert!(world.ready_behind("podinfo") >= 10, "{:#?}", world.log);
    }
    world.settle();
    assert_eq!((world.phase().as_str(), world.size("podinfo")), ("Steady", Some(0)));
    assert_eq!(world.size("podinfo-primary"), Some(10));
    world.want(&primary(QUICK), uncounted("2"));
    world.settle();
    world.pass(61);
    world.pass(61);
    world.pass(1);
    assert_eq!((world.phase().as_str(), world.image("podinfo-primary")), ("Steady", Some("app:2")));
    assert_eq!((world.size("podinfo"), world.size("podinfo-primary")), (Some(0), Some(10)));
    world.scale("podinfo-primary", 7);
    world.settle();
    assert_eq!(world.size("podinfo-primary"), Some(7), "from then on it is somebody else's word");
}

#[test]
fn c_35_without_a_number_in_the_manifests_the_target_has_the_pods_of_the_copy() {
    let mut world = World::scaling(QUICK, uncounted("1"));
    world.scale("podinfo-primary", 10);
    world.settle();
    world.gone();
    while world.tick_until(1) || world.drains() {
        assert!(world.ready_behind("podinfo") >= 10, "{:#?}", world.log);
    }
    assert!(world.record.is_none());
    assert_eq!((world.size("podinfo"), world.size("podinfo-primary")), (Some(10), None));
}

#[test]
fn t_7_without_a_number_in_the_manifests_the_new_version_keeps_the_pods_that_its_run_gave_it() {
    let of = |version: &str| {
        named_with(version, |all| {
            all[1]["spec"].as_object_mut().unwrap().remove("replicas");
        })
    };
    let mut world = World::new(&versioned(QUICK, "1"), "1");
    world.want(&versioned(QUICK, "1"), of("1"));
    world.settle();
    world.scale("podinfo-v1", 10);
    world.want(&versioned(QUICK, "2"), of("2"));
    world.settle();
    world.pass(61);
    world.pass(61);
    world.pass(1);
    assert_eq!((world.phase().as_str(), world.size("podinfo-v1")), ("Steady", None));
    assert_eq!(world.size("podinfo-v2"), Some(10));
}

#[test]
fn c_6_a_number_that_leaves_the_manifests_stays_until_somebody_sets_another() {
    let mut world = World::new(QUICK, "1");
    world.settle();
    world.want(QUICK, uncounted("1"));
    world.settle();
    assert_eq!((world.phase().as_str(), world.size("podinfo")), ("Steady", Some(4)));
    world.scale("podinfo", 7);
    world.settle();
    assert_eq!(world.size("podinfo"), Some(7));
}

#[test]
fn c_6_n_4_another_size_of_a_refused_version_is_refused_with_it() {
    let mut world = World::failed();
    world.want(QUICK, set_with("2", |all| all[1]["spec"]["replicas"] = 6.into()));
    world.pass(86_400);
    assert_eq!((world.waits(), world.record().next_run), (vec!["Refused"], 2), "{:?}", world.log);
    world.behave("app:2", Pods::Ready);
    world.say(DecisionAction::Retry);
    world.settle();
    assert_eq!(world.phase(), "Progressing(tenth)", "{:?}", world.log);
}

#[test]
fn c_6_n_4_what_mends_a_refused_autoscaler_is_tried() {
    let with = |label: &str| {
        set_with("1", |all| {
            all[1]["spec"].as_object_mut().unwrap().remove("replicas");
            let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "podinfo"});
            all.push(json!({
                "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
                "metadata": {"name": "podinfo", "labels": {LABEL: label}},
                "spec": {"minReplicas": 4, "maxReplicas": 8, "scaleTargetRef": target},
            }));
        })
    };
    let mut world = World::new(QUICK, "1");
    world.settle();
    world.refused_labels.insert("bad".to_owned());
    world.want(QUICK, with("bad"));
    world.pass(60);
    assert_eq!((world.waits(), world.scaler("podinfo")), (vec!["Refused"], None), "{:?}", world.log);
    world.want(QUICK, with("good"));
    world.settle();
    assert_eq!((world.record().next_run, world.waits()), (3, vec!["Soak"]), "{:?}", world.log);
}
