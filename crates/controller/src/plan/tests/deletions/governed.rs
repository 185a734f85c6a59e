//! The same where the policy was loosened with the version that takes objects away, or nothing keeps others from answering.

use super::super::manifests::{QUICK, set};
use super::super::world::{Pods, World};
use super::{asked, many, rule};
use crate::gate::guard::Guard;
use crate::manifest::decision::DecisionAction;
use crate::manifest::object::Kind;
use crate::manifest::proof::{ApprovalRule, By};

fn friend() -> ApprovalRule {
    ApprovalRule { approvers: ["friend".to_owned()].into(), ..rule() }
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
fn loosened(by: Option<ApprovalRule>) -> World {
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

fn open() -> Guard {
    Guard::Open { why: "no rule protects it".to_owned(), act: "set a rule".to_owned() }
}

/// Eight objects are to go, and this is known of the decisions branch.
fn guarded(guard: Guard) -> World {
    let mut world = asked();
    world.policy.guard = guard;
    world.settle();
    world
}

const UNPROTECTED: [&str; 2] = ["TooManyDeletions", "ApprovalUnprotected"];

#[test]
fn x_2_a_word_on_a_branch_that_nobody_protects_lets_nothing_go() {
    for guard in [open(), Guard::Hidden { act: "make a ruleset".to_owned() }] {
        let mut world = guarded(guard);
        assert_eq!(world.waits(), UNPROTECTED);
        world.merge_the_request();
        assert_eq!((world.waits(), world.extras(), world.asks()), (UNPROTECTED.into(), 9, 2), "{:#?}", world.log);
        assert_eq!(world.void_words(), ["it was given while the decisions branch was not protected"]);
        world.policy.guard = Guard::Kept;
        world.settle();
        assert_eq!((world.waits(), world.extras()), (vec!["TooManyDeletions"], 9), "what was said before is void");
        world.merge_the_request();
        assert_eq!((world.waits(), world.extras()), (vec![], 1), "{:#?}", world.log);
    }
    // Where reviews prove the decision it does not matter what the host hides.
    let mut world = guarded(Guard::Hidden { act: "make a ruleset".to_owned() });
    world.policy.proof = Some(rule());
    world.settle();
    world.let_go_by("ana");
    assert_eq!((world.waits(), world.extras()), (vec![], 1), "{:#?}", world.log);
}

#[test]
fn x_2_a_word_from_before_a_protection_was_seen_lets_nothing_go_once_there_is_one() {
    let void = |world: &World| (world.void_words().len(), world.extras(), world.waits());
    // It came between the last look at the unprotected branch and the first one at the protected.
    let mut world = guarded(open());
    world.policy.guard = Guard::Kept;
    world.merge_the_request();
    assert_eq!(void(&world), (1, 9, vec!["TooManyDeletions"]), "{:#?}", world.log);
    // Also where another process does not know yet what the host says, and where meanwhile something else is to go.
    let mut world = guarded(open());
    world.policy.guard = Guard::Unknown;
    world.merge_the_request();
    assert_eq!(world.record().consumed, []);
    world.remove(Kind::ConfigMap, "extra-8");
    world.settle();
    world.policy.guard = Guard::Kept;
    world.settle();
    assert_eq!(void(&world), (1, 8, vec!["TooManyDeletions"]), "{:#?}", world.log);
    world.merge_the_request();
    assert_eq!(void(&world), (1, 1, vec![]), "{:#?}", world.log);
    // By now the policy trusts whoever may write.
    let mut world = guarded(open());
    world.policy.guard = Guard::Unasked;
    world.merge_the_request();
    assert_eq!(void(&world), (0, 1, vec![]), "{:#?}", world.log);
}

#[test]
fn x_4_until_the_host_was_heard_a_word_waits_and_that_its_request_is_gone_is_no_no() {
    for (guard, waits) in [(Guard::Unknown, "Evidence"), (Guard::Untold("away".to_owned()), "ApprovalUnprotected")] {
        let mut world = guarded(guard);
        world.merge_the_request();
        world.proposals.clear();
        world.settle();
        assert_eq!((world.waits(), world.extras()), (vec!["TooManyDeletions", waits], 9), "{:#?}", world.log);
        assert_eq!((world.said(), world.record().consumed), (vec![], vec![]));
        world.policy.guard = Guard::Kept;
        world.settle();
        assert_eq!((world.waits(), world.extras()), (vec![], 1), "{:#?}", world.log);
    }
    // A no counts from everybody who may write.
    let mut world = guarded(open());
    world.proposals.clear();
    world.settle();
    assert_eq!(world.said(), [(8, false)], "{:#?}", world.log);
}

#[test]
fn x_2_where_nothing_can_prove_a_word_people_are_told_so_and_not_to_give_one() {
    let mut world = asked();
    world.policy.proof = Some(ApprovalRule { by: By::Nothing, ..rule() });
    world.settle();
    assert!(world.waits().contains(&"ProofUnavailable"), "{:?}", world.waits());
    assert!(world.act().starts_with("set repository.allowedSignersFile or repository.forge"), "{}", world.act());
}
