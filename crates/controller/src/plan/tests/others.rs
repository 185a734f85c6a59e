//! Objects of other rollouts and other tools that are called as one of ours would be: nothing is written there.

use super::led::ingress;
use super::manifests::{QUICK, set_with};
use super::world::World;
use crate::gate::BrakeWord;
use crate::manifest::decision::DecisionAction;
use crate::manifest::desired::Set;
use crate::manifest::object::{Kind, OWNER, Object, RETREATED};
use serde_json::{Value, json};
use std::sync::Arc;

fn plan() -> String {
    QUICK.replace("gatewayApi: {httpRoute: podinfo, service: podinfo}", "nginx: {ingress: podinfo, service: podinfo}")
}

fn version(version: &str) -> Arc<Set> {
    changed(version, |_| {})
}

fn changed(version: &str, change: impl FnOnce(&mut Vec<Value>)) -> Arc<Set> {
    set_with(version, |all| {
        change(all);
        let mut main = ingress("podinfo", "podinfo", json!({}));
        main["metadata"].as_object_mut().unwrap().remove("creationTimestamp");
        *all.last_mut().unwrap() = main;
    })
}

/// Whoever says that an object is theirs.
fn claims() -> [Value; 2] {
    [json!({OWNER: "prod/shop/shopfront"}), json!({"meta.helm.sh/release-name": "shopfront"})]
}

/// What others serve their users by, under the name of our canary.
fn theirs(claim: &Value) -> Value {
    ingress("podinfo-canary", "shopfront", claim.clone())
}

fn steady() -> World {
    let mut world = World::new(&plan(), "1");
    world.want(&plan(), version("1"));
    world.settle();
    assert_eq!(world.phase(), "Steady");
    world
}

fn at_tenth() -> World {
    let mut world = steady();
    world.want(&plan(), version("2"));
    world.settle();
    assert_eq!((world.phase().as_str(), world.weight()), ("Progressing(tenth)", 10));
    world
}

fn named<'a>(world: &'a World, name: &str) -> &'a Object {
    world.get(Kind::Ingress, name).expect("an Ingress")
}

#[test]
fn a_run_waits_before_it_makes_anything_where_others_have_the_name_of_a_copy() {
    for (claim, reason) in claims().iter().zip(["OwnedByOther", "ForeignApplier"]) {
        let mut world = steady();
        world.exists_value(theirs(claim));
        let before = named(&world, "podinfo-canary").clone();
        world.want(&plan(), version("2"));
        world.settle();
        assert_eq!((world.phase().as_str(), world.waits()), ("Waiting", vec![reason]));
        assert!(world.get(Kind::Deployment, "podinfo-canary").is_none(), "nothing was made");
        world.say(DecisionAction::Abort);
        world.settle();
        assert_eq!(*named(&world, "podinfo-canary"), before);
        assert_eq!(world.phase(), "Steady");
    }
}

#[test]
fn what_nobody_claims_is_not_written_over_where_it_has_the_name_of_a_copy() {
    let deployment = || {
        let set = set_with("7", |_| {});
        let mut left =
            set.objects.values().find(|object| object.reference().kind == Kind::Deployment).unwrap().value().clone();
        left["metadata"]["name"] = "podinfo-canary".into();
        left
    };
    let spec = |world: &World, kind| world.get(kind, "podinfo-canary").unwrap().at("/spec").cloned();
    for (kind, left) in [(Kind::Ingress, theirs(&json!({}))), (Kind::Deployment, deployment())] {
        let mut world = steady();
        world.exists_value(left);
        let before = spec(&world, kind);
        world.want(&plan(), version("2"));
        world.settle();
        assert_eq!((world.phase().as_str(), world.waits()), ("Waiting", vec!["OwnedByOther"]));
        assert_eq!(spec(&world, kind), before);
        world.remove(kind, "podinfo-canary");
        world.settle();
        assert_eq!((world.phase().as_str(), world.weight()), ("Progressing(tenth)", 10));
    }
}

/// A canary as Argo Rollouts leaves it: at weight 0, and under a name that is none of ours.
fn left_by_argo() -> Value {
    let of = "nginx.ingress.kubernetes.io/canary";
    ingress("podinfo-podinfo-canary", "podinfo-preview", json!({of: "true", format!("{of}-weight"): "0"}))
}

#[test]
fn a_run_waits_before_it_makes_anything_where_ingress_nginx_would_take_the_canary_of_others() {
    let mut world = steady();
    world.exists_value(left_by_argo());
    let before = named(&world, "podinfo-podinfo-canary").clone();
    world.want(&plan(), version("2"));
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits()), ("Waiting", vec!["OwnedByOther"]));
    let told = world.plan_now().waits.remove(0);
    assert!(told.message.contains("Ingress shop/podinfo-podinfo-canary"), "{told:?}");
    assert!(told.act.is_some_and(|act| act.starts_with("delete Ingress shop/podinfo-podinfo-canary")));
    assert!(world.get(Kind::Deployment, "podinfo-canary").is_none(), "nothing was made");
    assert_eq!(*named(&world, "podinfo-podinfo-canary"), before);
    world.remove(Kind::Ingress, "podinfo-podinfo-canary");
    world.settle();
    assert_eq!((world.phase().as_str(), world.weight()), ("Progressing(tenth)", 10));
}

#[test]
fn first_sight_waits_where_ingress_nginx_would_take_the_canary_of_others() {
    let mut world = World::new(&plan(), "1");
    world.want(&plan(), version("1"));
    world.exists(&version("1"));
    world.exists_value(left_by_argo());
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits(), world.owned()), ("Initializing", vec!["OwnedByOther"], 0));
    world.remove(Kind::Ingress, "podinfo-podinfo-canary");
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits()), ("Steady", vec![]));
}

#[test]
fn a_canary_of_others_for_another_host_keeps_nobody_waiting() {
    let mut world = steady();
    let mut elsewhere = left_by_argo();
    elsewhere["spec"]["rules"][0]["host"] = "other.example.org".into();
    world.exists_value(elsewhere);
    world.want(&plan(), version("2"));
    world.settle();
    assert_eq!((world.phase().as_str(), world.weight()), ("Progressing(tenth)", 10));
}

/// As where a run was open when the program learned to look for it.
#[test]
fn c_22_no_step_goes_on_while_ingress_nginx_takes_an_older_canary_of_others() {
    let mut world = at_tenth();
    world.edit(Kind::Ingress, "podinfo-canary", |ours| {
        ours["metadata"]["creationTimestamp"] = "2026-02-01T00:00:00Z".into();
    });
    world.exists_value(left_by_argo());
    world.pass(61);
    assert_eq!(world.phase(), "Progressing(tenth)");
    assert!(world.waits().contains(&"RouteNotEffective"), "{:?}", world.waits());
    let mut back = world.clone();
    back.say(DecisionAction::Abort);
    back.settle();
    assert_eq!((back.phase().as_str(), back.image("podinfo")), ("Steady", Some("app:1")));
    world.remove(Kind::Ingress, "podinfo-podinfo-canary");
    world.settle();
    world.pass(61);
    assert_ne!(world.phase(), "Progressing(tenth)");
}

/// As what an uninstallation of another instance takes off all objects of a namespace (docs/install.md).
#[test]
fn nobody_is_told_to_delete_what_serves_users_though_its_mark_is_gone() {
    let plan = QUICK.replace("layout: inPlace", "layout: primary");
    let mut world = World::new(&plan, "1");
    world.settle();
    assert_eq!(world.phase(), "Steady");
    world.want(&plan, set_with("2", |_| {}));
    world.edit(Kind::Deployment, "podinfo-primary", |live| {
        live["metadata"]["annotations"].as_object_mut().unwrap().remove(OWNER);
    });
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits()), ("Progressing(tenth)", vec!["Soak"]));
}

#[test]
fn going_back_writes_nothing_to_what_others_have_in_the_place_of_a_copy() {
    for claim in claims() {
        let mut world = at_tenth();
        world.remove(Kind::Ingress, "podinfo-canary");
        world.exists_value(theirs(&claim));
        let before = named(&world, "podinfo-canary").clone();
        world.say(DecisionAction::Abort);
        world.settle();
        world.pass(31);
        assert_eq!((world.phase().as_str(), world.image("podinfo")), ("Steady", Some("app:1")), "{:?}", world.waits());
        assert_eq!(*named(&world, "podinfo-canary"), before);
    }
}

#[test]
fn the_brake_without_a_record_writes_nothing_to_what_others_have() {
    for claim in claims() {
        let mut world = at_tenth();
        world.edit(Kind::Ingress, "podinfo", |main| main["metadata"]["annotations"] = claim);
        let before = named(&world, "podinfo").clone();
        world.unreadable = true;
        world.brake = Ok(Some(BrakeWord::Revert));
        world.settle();
        assert_eq!(world.weight(), 0, "our own canary is lowered");
        assert!(named(&world, "podinfo-canary").annotation(RETREATED).is_some());
        assert_eq!(*named(&world, "podinfo"), before);
    }
}

/// A Service of another rollout, or of nobody, that selects pods with these labels.
fn window(claim: Value, selector: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "window", "namespace": "shop", "annotations": claim},
        "spec": {"selector": selector, "ports": [{"port": 80}]}})
}

#[test]
fn attack_74_nobody_joins_the_service_of_another_rollout_with_a_first_version() {
    let mut world = World::new(&plan(), "1");
    world.want(&plan(), version("1"));
    world.exists_value(window(json!({OWNER: "prod/shop/window"}), json!({"app": "podinfo"})));
    world.settle();
    assert_eq!(world.waits(), ["SelectorOverlap"]);
    assert!(world.get(Kind::Deployment, "podinfo").is_none());
    // Of nobody's it is people's own affair.
    world.exists_value(window(json!({}), json!({"app": "podinfo"})));
    world.settle();
    assert_eq!(world.phase(), "Steady");
}

#[test]
fn attack_74_nobody_joins_the_service_of_another_rollout_with_other_labels() {
    let mut world = steady();
    let front = |all: &mut Vec<Value>| all[1]["spec"]["template"]["metadata"]["labels"]["tier"] = "front".into();
    world.exists_value(window(json!({OWNER: "prod/shop/window"}), json!({"tier": "front"})));
    world.want(&plan(), changed("2", front));
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits()), ("Waiting", vec!["SelectorOverlap"]));
}
