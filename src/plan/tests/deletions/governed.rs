//! The same where the policy was loosened with the version that takes objects away.

use super::super::manifests::{QUICK, set};
use super::super::world::{Pods, World};
use super::{many, rule};
use crate::manifest::decision::DecisionAction;
use crate::record::state::Rule;

fn friend() -> Rule {
    Rule { approvers: ["friend".to_owned()].into(), ..rule() }
}

impl World {
    /// Somebody says that they may go, and this person has approved it.
    fn let_go_by(&mut self, who: &'static str) {
        self.host.by = vec![who];
        self.say(self.word_to_delete());
        self.settle();
    }
}

/// One change of main takes eight objects away and names other approvers than Ana.
fn loosened(by: Option<Rule>) -> World {
    let mut world = World::new(QUICK, "1");
    world.policy.proof = Some(rule());
    world.want(QUICK, many("1", 9));
    world.settle();
    world.policy.proof = by;
    world.want(QUICK, many("2", 1));
    world.pass_a_run();
    assert_eq!((world.phase().as_str(), world.extras()), ("Steady", 9), "{:#?}", world.log);
    world
}

#[test]
fn attack_81_a_policy_that_comes_with_deletions_does_not_let_them_go() {
    for by in [None, Some(friend())] {
        let mut world = loosened(by.clone());
        world.let_go_by("friend");
        assert_eq!((world.extras(), world.said()), (9, vec![]), "{by:?}: {:#?}", world.log);
        let void = world.void_words().concat();
        assert!(void.contains("friend is none of the policy's approvers"), "{void}");
    }
    let mut world = loosened(None);
    world.let_go_by("ana");
    assert_eq!((world.waits(), world.extras()), (vec![], 1), "{:#?}", world.log);
    // Changed by itself it counts at once, as no run is open.
    let mut world = loosened(None);
    world.policy.proof = Some(friend());
    world.settle();
    world.let_go_by("friend");
    assert_eq!((world.waits(), world.extras()), (vec![], 1), "{:#?}", world.log);
}

#[test]
fn attack_81_a_policy_that_came_with_a_version_that_failed_does_not_try_it_again() {
    let mut world = World::failed();
    world.policy.proof = Some(rule());
    world.settle();
    world.behave("app:3", Pods::Stuck);
    world.policy.proof = None;
    world.want(QUICK, set("3"));
    world.settle();
    world.pass(601);
    assert_eq!((world.phase().as_str(), world.waits()), ("Failed", vec!["Refused"]), "{:#?}", world.log);
    world.say(DecisionAction::Retry);
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits()), ("Failed", vec!["Refused"]), "{:#?}", world.log);
    world.host.by = vec!["ana"];
    world.say(DecisionAction::Retry);
    world.settle();
    assert!(world.record().run.is_some(), "{:#?}", world.log);
}
