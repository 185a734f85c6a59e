//! What lies, or comes, beside what was asked.

use super::*;

#[test]
fn a_directory_that_lay_at_the_path_of_a_request_goes_with_it() {
    let (mut world, mut change) = asked();
    let below = format!("{}/x", change.files.keys().next().unwrap()).parse().unwrap();
    change.files.insert(below, None);
    let (head, name) = world.pushed("a", HeadContent::Read(change));
    world.settle();
    assert_eq!((world.spoiled().len(), world.proposals.get(&name)), (0, Some(&head)), "{:?}", world.log);
}

/// Who has put a second file into a head cannot be told from who says something else in the same moment.
#[test]
fn attack_74_what_comes_beside_what_was_asked_is_void_and_that_counts() {
    for action in [DecisionAction::Resume, approve("promotion")] {
        let (mut world, honest) = asked();
        world.hold();
        let name = world.proposals.keys().next().cloned().unwrap();
        world.proposals.remove(&name);
        let run = world.record().run.unwrap().id;
        let decision = Decision { rollout: "shop/podinfo".parse().unwrap(), run, action, reason: None };
        world.files.push(DecisionFile {
            path: path("shop/podinfo/beside.yaml"),
            blob: "7".repeat(40).parse().unwrap(),
            by: "ana <ana@example.org>".to_owned(),
            brought: Some(commit("e")),
            merged: None,
            decision: Ok(decision),
        });
        merged(&mut world, &honest, approve("tenth"), None);
        let run = world.record().run.unwrap();
        assert_eq!(run.approved, ["tenth".parse().unwrap()], "{:?}", world.log);
        assert!(world.spoiled().is_empty() && run.held, "nobody has written to what was merged: {:?}", world.log);
    }
}
