//! A request whose branch is gone, where the policy names who may say no and a host can tell who closed it.

use super::super::evidence::Denial;
use super::manifests::{CANARY, set};
use super::world::World;
use crate::gate::guard::Guard;
use crate::manifest::ids::CommitId;
use crate::manifest::proof::{ApprovalRule, By};
use crate::manifest::raw::Trust;

/// A run that waits before `tenth` for a decision of Ana, whose branch somebody has deleted; which one that was.
fn deleted(guard: Guard) -> (World, (String, CommitId)) {
    let mut world = World::new(CANARY, "1");
    let approvers = ["ana".to_owned()].into();
    world.policy.proof = Some(ApprovalRule { approvers, approvals: 1, trust: Trust::Reviews, by: By::Reviews });
    world.policy.guard = guard;
    world.settle();
    world.want(CANARY, set("2"));
    world.settle();
    let request = world.proposals.pop_first().expect("a request");
    world.settle();
    (world, request)
}

fn is_denied(world: &World) -> bool {
    world.record().run.expect("a run").denied
}

#[test]
fn x_4_nothing_is_denied_while_a_word_may_lie_there_that_nobody_can_hear() {
    let (mut world, _) = deleted(Guard::Unasked);
    assert!(is_denied(&world), "nobody else is to be asked");
    for by in [By::Nothing, By::Signatures] {
        let (mut deaf, request) = deleted(Guard::Kept);
        deaf.policy.proof.as_mut().unwrap().by = by;
        deaf.evidence.denials.insert(request, Denial::No);
        deaf.settle();
        assert_eq!(is_denied(&deaf), by != By::Nothing, "{by:?}");
    }
    world = deleted(Guard::Kept).0;
    world.policy.unread = true;
    world.policy.guard = Guard::Unasked;
    world.settle();
    assert!(!is_denied(&world), "the policy was not read");
    world = deleted(Guard::Kept).0;
    world.muted = Some("the tree is refused".to_owned());
    world.policy.guard = Guard::Unasked;
    world.settle();
    assert!(!is_denied(&world), "the decisions were not read");
    assert_eq!(world.waits(), ["DecisionsUnreadable", "Approval"]);
}

#[test]
fn x_4_nothing_is_denied_before_the_host_has_told_who_closed_it() {
    let (mut world, request) = deleted(Guard::Kept);
    assert!(!is_denied(&world) && world.proposals.is_empty());
    assert_eq!(world.waits(), ["Approval", "Evidence"]);
    world.evidence.denials.insert(request.clone(), Denial::Unknown("the host is away".to_owned()));
    world.settle();
    assert_eq!((is_denied(&world), world.waits()), (false, vec!["Approval", "ProofUnavailable"]));
    world.evidence.denials.insert(request, Denial::No);
    world.settle();
    assert_eq!((is_denied(&world), world.waits()), (true, vec!["Denied"]));
}

#[test]
fn x_4_what_somebody_deleted_who_may_not_say_no_is_asked_for_anew() {
    let (mut world, request) = deleted(Guard::Kept);
    let why = "eve is none of the policy's approvers".to_owned();
    world.evidence.denials.insert(request.clone(), Denial::NotAuthorized(why.clone()));
    world.settle();
    assert_eq!((is_denied(&world), world.waits()), (false, vec!["Approval"]));
    assert_eq!(world.proposals.keys().collect::<Vec<_>>(), [&request.0]);
    assert!(world.log.iter().any(|line| line.contains(&why)), "{:?}", world.log);
}

#[test]
fn x_4_without_a_host_to_ask_whoever_deletes_the_branch_says_no() {
    let (world, _) = deleted(Guard::Unasked);
    assert!(is_denied(&world) && world.waits() == ["Denied"], "{:?}", world.waits());
}
