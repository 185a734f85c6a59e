//! The same of versions that take each other's place; and what is told before anything is pushed.

use super::super::super::input::Desired;
use super::super::super::outlook::{self, KnownRecord};
use super::super::manifests::{QUICK, named, named_with, versioned};
use super::super::world::World;
use super::many;
use crate::manifest::decision::DecisionAction;
use crate::manifest::desired::Set;
use crate::manifest::ids::RunId;
use crate::manifest::object::{Kind, Object};
use crate::manifest::policy;
use serde_json::{Value, json};
use std::sync::Arc;

#[test]
fn who_is_about_to_push_that_is_told_that_people_will_be_asked() {
    let tells = |new: &str, [before, after]: [Arc<Set>; 2], most: u32| {
        let mut world = World::new(QUICK, "1");
        world.want(new, before);
        world.settle();
        let record = world.record();
        world.want(&new.replace("podinfo-v1", "podinfo-v2"), after);
        let Desired::Wanted(rollout) = &world.desired else { panic!("it is wanted") };
        let promoted = &*world.sets[&record.promoted.as_ref().unwrap().set];
        let text = format!(
            "apiVersion: tidegate.io/v1alpha1\nkind: Policy\nspec: {{limits: {{maxDeletions: {most}}}, tenants: {{}}}}\n"
        );
        let policy = policy::parse(&"tidegate.yaml".parse().unwrap(), text.as_bytes()).unwrap();
        let known =
            KnownRecord { state: &record, plan: None, promoted: Some(Ok(promoted)), tried: None, brought: None };
        outlook::wanted(rollout, Some(Ok(known)), Some(&policy), world.now).message
    };
    let asked = tells(QUICK, [many("1", 9), many("2", 1)], 7);
    assert!(
        asked.ends_with(
            ": through all phases. 8 objects are gone from it, and the policy lets 7 go at once: people are asked before they go."
        ),
        "{asked}"
    );
    assert!(tells(QUICK, [many("1", 9), many("2", 1)], 8).ends_with(": through all phases."));
    let named = tells(&versioned(QUICK, "1"), [named("1"), named("2")], 2);
    assert!(named.ends_with("people are asked before the run begins, with whose end they go."), "{named}");
}

impl World {
    fn want_version(&mut self, version: &'static str) {
        self.want(&versioned(QUICK, version), with(version));
    }

    /// The version that is on its way takes the other's place, and what that had is gone.
    fn takes_the_place(&mut self) {
        for _ in 0..4 {
            self.pass(61);
        }
        assert_eq!((self.phase().as_str(), self.waits()), ("Steady", vec![]), "{:#?}", self.log);
        assert!(self.record().deletions.is_none());
        let is_old = |object: &&Arc<Object>| object.reference().name.as_str().ends_with("-v1");
        assert_eq!(self.live.objects.values().find(is_old).map(|object| object.reference().to_string()), None);
    }
}

/// A version whose end takes nine objects away.
fn with(version: &'static str) -> Arc<Set> {
    named_with(version, move |all: &mut Vec<Value>| {
        for n in 0..6 {
            let name = format!("extra-{n}-v{version}");
            all.push(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {}}));
        }
    })
}

/// The second version waits for the decision.
fn asked() -> World {
    let mut world = World::new(&versioned(QUICK, "1"), "1");
    world.want_version("1");
    world.settle();
    world.want_version("2");
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits()), ("Steady", vec!["TooManyDeletions"]));
    world
}

/// The second version has come to its first step by the decision.
fn begun() -> World {
    let mut world = asked();
    world.merge_the_request();
    assert_eq!((world.phase().as_str(), world.proposals.len()), ("Progressing(tenth)", 0), "{:#?}", world.log);
    assert_eq!(world.said(), [(9, true)]);
    world
}

#[test]
fn t_7_a_version_whose_end_would_take_too_much_waits_for_the_word_and_keeps_it_until_then() {
    let world = asked();
    assert!(world.record().run.is_none() && world.asks() == 1, "a run that could not end does not begin");
    assert_eq!(world.question().unwrap().successor.as_ref(), Some(&with("2").id));
    assert!(world.proposals.keys().all(|name| name.ends_with("/0-delete")), "{:?}", world.proposals);
    let mut world = begun();
    world.takes_the_place();
    // To go back to the old one would take as much away: there the policy's limit holds.
    world.say_of(DecisionAction::Rollback, RunId::zero());
    world.settle();
    let last = world.log.last().unwrap();
    assert!(last.contains("which was not done: with the old version 9 objects would be deleted"), "{last}");
}

#[test]
fn x_2_the_word_is_over_where_its_run_is_taken_back() {
    let world = begun();
    let mut back = world.clone();
    back.say(DecisionAction::Abort);
    back.settle();
    assert_eq!((back.waits(), back.said()), (vec!["Refused"], vec![]));
    back.say(DecisionAction::Retry);
    back.settle();
    assert_eq!((back.phase().as_str(), back.waits()), ("Steady", vec!["TooManyDeletions"]), "{:#?}", back.log);
    back.merge_the_request();
    // Main goes back: nothing is to go any more.
    let mut undone = back.clone();
    undone.want_version("1");
    undone.pass_a_run();
    assert_eq!((undone.phase().as_str(), undone.said()), ("Steady", vec![]), "{:#?}", undone.log);
    back.takes_the_place();
    // Also where both are said at once.
    let mut at_once = world;
    at_once.say(DecisionAction::Abort);
    let run = at_once.record().run.unwrap().id;
    while at_once.record().run.is_some() {
        assert!(at_once.tick(), "{:#?}", at_once.log);
        if at_once.record().refused.iter().any(|refused| refused.run == run) {
            at_once.say_of(DecisionAction::Retry, run.clone());
        }
    }
    at_once.settle();
    assert_eq!((at_once.phase().as_str(), at_once.said()), ("Steady", vec![]), "{:#?}", at_once.log);
}

#[test]
fn x_2_the_word_is_for_one_version_alone() {
    let world = asked();
    // A decision for it is none for another version that would take the same away, nor does its request ask for that.
    let (mut moved, word) = (world.clone(), world.word_to_delete());
    moved.say_of(word, RunId::zero());
    moved.want_version("3");
    moved.settle();
    assert_eq!((moved.waits(), moved.said(), moved.asks()), (vec!["TooManyDeletions"], vec![], 2), "{:#?}", moved.log);
    assert_ne!(moved.proposals, world.proposals);
    assert_eq!(moved.void_words(), ["it is for another version than people are asked about"]);
    // Nor is it where its run was begun.
    let mut other = begun();
    other.want_version("3");
    other.settle();
    assert_eq!((other.waits(), other.said()), (vec!["TooManyDeletions"], vec![]), "{:#?}", other.log);
}

#[test]
fn x_4_a_no_is_for_one_version_alone() {
    let mut denied = asked();
    denied.proposals.clear();
    denied.settle();
    assert_eq!((denied.waits(), denied.said(), denied.asks()), (vec!["TooManyDeletions"], vec![(9, false)], 1));
    // Lifted, it is asked about again, and that is for that version as well.
    let mut lifted = denied.clone();
    lifted.say_of(DecisionAction::Resume, RunId::zero());
    lifted.settle();
    assert_eq!((lifted.waits(), lifted.asks()), (vec!["TooManyDeletions"], 2), "{:#?}", lifted.log);
    lifted.policy.max_deletions = 20;
    lifted.settle();
    assert_eq!(lifted.waits(), ["TooManyDeletions"], "whatever the limit");
    lifted.want_version("3");
    lifted.settle();
    assert_eq!(lifted.phase(), "Progressing(tenth)", "{:#?}", lifted.log);
    denied.want_version("3");
    denied.settle();
    assert_eq!((denied.waits(), denied.said(), denied.asks()), (vec!["TooManyDeletions"], vec![], 2));
}

/// What is let go and still in use stays let go until nothing uses it.
#[test]
fn f_6_t_7_t_19_what_may_go_and_is_still_named_goes_later_by_the_same_word() {
    let mut world = World::of_versions(QUICK);
    world.policy.max_deletions = 1;
    world.foreign_route("podinfo-v1");
    world.want(&versioned(QUICK, "2"), named("2"));
    world.settle();
    assert_eq!(world.waits(), ["TooManyDeletions"]);
    world.merge_the_request();
    for _ in 0..4 {
        world.pass(61);
    }
    assert_eq!((world.phase().as_str(), world.waits()), ("Steady", vec!["StillReferenced"]), "{:#?}", world.log);
    assert_eq!(world.said().len(), 1);
    world.remove(Kind::HttpRoute, "legacy");
    world.settle();
    let asks = world.log.iter().filter(|line| line.starts_with("proposes") && line.ends_with("-delete")).count();
    assert_eq!((world.waits(), asks), (vec![], 1), "{:#?}", world.log);
    assert!(world.get(Kind::Service, "podinfo-v1").is_none() && world.record().deletions.is_none());
}
