//! Decisions whose proof comes late, and what was said meanwhile.

use super::{Reviewed, asked, said, words};
use crate::gate::guard::Guard;
use crate::manifest::decision::DecisionAction;

#[test]
fn x_2_a_resume_that_is_proven_late_lifts_no_later_no() {
    for (no, holds) in [(DecisionAction::Hold, "Held"), (DecisionAction::Deny, "Denied")] {
        let mut world = asked();
        world.say(no.clone());
        world.settle();
        world.host = Reviewed { by: vec!["ana"], away: Some("status 502"), ..Reviewed::default() };
        world.say(DecisionAction::Resume);
        world.settle();
        assert!(world.waits().contains(&"ProofUnavailable"), "{:?}", world.waits());
        world.say(no);
        world.settle();
        world.host.away = None;
        world.pass(60);
        assert!(world.waits().contains(&holds), "{:?}: {:?}", world.waits(), world.log);
        let void: Vec<_> = words(&world).iter().filter_map(|word| word.void.as_ref()).collect();
        assert!(void.len() == 1 && void[0].why.contains("before it could count"), "{void:?}");
        world.say(DecisionAction::Resume);
        world.settle();
        assert!(!world.waits().contains(&holds), "{:?}", world.waits());
    }
}

#[test]
fn x_2_x_4_a_no_stands_above_what_is_approved_before_it_or_after_it() {
    let mut world = asked();
    world.host.by = vec!["ana"];
    world.say(DecisionAction::Approve { through: "promotion".parse().unwrap() });
    world.say(DecisionAction::Deny);
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits()), ("Waiting", vec!["Denied"]));
    assert!(world.proposals.is_empty(), "it asks for nothing: {:?}", world.log);
    world.say(DecisionAction::Approve { through: "tenth".parse().unwrap() });
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits()), ("Waiting", vec!["Denied"]));
    assert_eq!(said(&world, "Denied"), "a person said no to tenth");
    world.say(DecisionAction::Resume);
    world.settle();
    assert_eq!(world.phase(), "Progressing(tenth)", "{:?}", world.log);
}

#[test]
fn c_3_a_skip_that_is_proven_late_ends_no_other_soak() {
    let mut world = asked();
    world.host.by = vec!["ana"];
    world.say(DecisionAction::Approve { through: "promotion".parse().unwrap() });
    world.settle();
    assert_eq!(world.phase(), "Progressing(tenth)");
    let skip = world.soak_is_over();
    world.host.away = Some("status 502");
    world.say(skip);
    world.settle();
    world.pass(600);
    assert_eq!(world.phase(), "Progressing(half)", "its soak is over: {:?}", world.log);
    world.host.away = None;
    world.pass(20);
    assert_eq!(world.phase(), "Progressing(half)");
    assert_eq!(world.record().run.unwrap().skipped, None, "{:?}", world.log);
}

#[test]
fn x_4_a_resume_that_is_proven_late_lifts_no_request_that_was_closed_since() {
    let mut world = asked();
    world.say(DecisionAction::Hold);
    world.settle();
    world.host = Reviewed { by: vec!["ana"], away: Some("status 502"), ..Reviewed::default() };
    world.say(DecisionAction::Resume);
    world.settle();
    world.policy.guard = Guard::Unasked;
    world.proposals.clear();
    world.settle();
    assert!(world.record().run.unwrap().denied, "{:?}", world.log);
    world.host.away = None;
    world.pass(60);
    let run = world.record().run.unwrap();
    assert!(run.denied && run.held, "{:?}", world.log);
}
