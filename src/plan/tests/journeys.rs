//! The ways that a rollout goes.

use super::world::{CANARY, Pods, QUICK, World, set};
use crate::manifest::object::Kind;

#[test]
fn c_1_c_4_first_sight_brings_stable_up_in_order() {
    let mut world = World::new(CANARY, "1");
    world.settle();
    assert_eq!(world.phase(), "Steady");
    let record = world.record.clone().expect("a record");
    assert_eq!(record.promoted.map(|p| p.revision), Some(set("1").revision.clone()));
    assert_eq!(world.image("podinfo"), Some("app:1"));
    assert_eq!(world.image("podinfo-canary"), None);
    assert!(world.get(Kind::HttpRoute, "podinfo").is_some());
}

#[test]
fn a_canary_goes_from_a_tenth_to_half_to_all() {
    let mut world = World::new(CANARY, "1");
    world.settle();
    world.want(CANARY, set("2"));
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits()), ("Waiting", vec!["Approval"]), "{:#?}", world.log);
    assert_eq!(world.image("podinfo-canary"), None);
    world.approve("tenth");
    assert_eq!((world.phase().as_str(), world.weight()), ("Progressing(tenth)", 10), "{:#?}", world.log);
    world.pass(306);
    assert_eq!((world.phase().as_str(), world.weight()), ("Progressing(half)", 50), "{:#?}", world.log);
    world.pass(306);
    assert_eq!(world.phase(), "WaitingPromotion(half)");
    world.approve("promotion");
    assert_eq!((world.phase().as_str(), world.weight()), ("Promoting(shift)", 100), "{:#?}", world.log);
    assert_eq!(world.image("podinfo"), Some("app:1"));
    world.pass(66);
    assert_eq!((world.phase().as_str(), world.weight()), ("Finalising(return)", 0), "{:#?}", world.log);
    assert_eq!(world.image("podinfo"), Some("app:2"));
    world.pass(31);
    assert_eq!(world.phase(), "Steady", "{:#?}\n{:#?}", world.log, world.plan_now().waits);
    assert_eq!(world.image("podinfo-canary"), None);
    assert_eq!(world.weights, vec![0, 10, 50, 100, 0]);
    assert!(world.proposals.is_empty(), "{:?}", world.proposals);
    insta::assert_snapshot!(world.log.join("\n"));
}

#[test]
fn c_21_a_candidate_that_never_gets_ready_goes_back() {
    let mut world = World::new(QUICK, "1");
    world.settle();
    world.behaviour.insert("app:2".to_owned(), super::world::Pods::Stuck);
    world.want(QUICK, set("2"));
    world.settle();
    assert_eq!(
        (world.phase().as_str(), world.waits()),
        ("Progressing(prepare)", vec!["CandidateNotReady"]),
        "{:#?}",
        world.log
    );
    world.pass(601);
    assert_eq!(world.phase(), "Failed", "{:#?}\n{:#?}", world.log, world.plan_now().waits);
    assert_eq!((world.image("podinfo"), world.image("podinfo-canary")), (Some("app:1"), None));
    assert!(world.marked().is_empty(), "{:?}", world.marked());
    insta::assert_snapshot!(world.log.join("\n"));
}
