//! Who made a version: from where on commits are looked for.

use super::super::manifests::set_with;
use super::*;
use crate::manifest::desired::Rollout;
use crate::manifest::files::{Had, RepoPath};
use std::collections::BTreeMap;
use std::sync::Arc;

#[test]
fn attack_74_a_move_of_the_rollout_in_the_middle_of_a_run_hides_nobody_who_made_it() {
    let mut world = asked();
    let [old, new] = ["teams/shop/podinfo", "teams/shop/moved"];
    let Desired::Wanted(wanted) = &mut world.desired else { panic!("main wants it") };
    let moved = format!("{new}/rollout.yaml").parse().unwrap();
    *wanted = Arc::new(Rollout { path: moved, ..(**wanted).clone() });
    world.main += 1;
    world.say(DecisionAction::Hold);
    world.settle();
    assert_eq!(world.record().source.path.as_str(), format!("{new}/rollout.yaml"), "the record follows main");
    world.say(DecisionAction::Approve { through: "tenth".parse().unwrap() });
    let (run, promoted) = (world.record().run.unwrap(), world.record().promoted.unwrap());
    let version = world.plan_now().review_queries.remove(0).version.unwrap();
    assert_eq!(version.commit, run.source);
    let paths: Vec<_> = version.stable.iter().flat_map(BTreeMap::keys).map(RepoPath::as_str).collect();
    assert_eq!(paths, [format!("{old}/rollout.yaml")]);
    // Who changed what the rollout's file says belongs to those who made the version.
    let file = format!("{old}/rollout.yaml").parse().unwrap();
    assert_eq!(version.stable[1][&file], Had::AsIn(promoted.commit.unwrap()));
}

#[test]
fn attack_74_who_made_a_version_is_known_in_the_place_of_one_that_a_rollback_brought_back() {
    let file: RepoPath = "teams/shop/podinfo/rollout.yaml".parse().unwrap();
    let before = |world: &mut World| {
        world.policy.proof = Some(rule());
        world.want(CANARY, set("3"));
        world.settle();
        world.say(DecisionAction::Approve { through: "tenth".parse().unwrap() });
        world.plan_now().review_queries.remove(0).version.unwrap().stable[1][&file].clone()
    };
    let mut world = World::new(QUICK, "1");
    world.settle();
    let first = world.record().promoted.unwrap().commit.unwrap();
    world.want(QUICK, set("2"));
    world.settle();
    for seconds in [61, 61, 1] {
        world.pass(seconds);
    }
    world.say_of(DecisionAction::Rollback, "0".parse().unwrap());
    world.settle();
    world.pass(1);
    let promoted = world.record().promoted.unwrap();
    assert_eq!((world.image("podinfo"), promoted.commit), (Some("app:1"), None));
    assert_eq!(before(&mut world.clone()), Had::AsIn(first));
    // Of a version that main never had, all who ever changed the rollout's file have made the next one.
    world.record.as_mut().unwrap().history.clear();
    assert_eq!(before(&mut world), Had::Nothing);
}

#[test]
fn attack_74_who_loosens_the_rollouts_file_with_a_change_that_needs_no_run_made_the_next_version() {
    let mut world = World::new(QUICK, "1");
    world.settle();
    let first = world.record().promoted.unwrap().commit.unwrap();
    world.policy.proof = Some(rule());
    let sized = |version, size: u64| set_with(version, |objects| objects[1]["spec"]["replicas"] = size.into());
    world.want(CANARY, sized("1", 6));
    world.settle();
    let promoted = world.record().promoted.unwrap();
    assert!(world.record().run.is_none() && promoted.set == sized("1", 6).id, "it was applied directly");
    assert_ne!(promoted.commit.as_ref(), Some(&first));
    world.want(CANARY, sized("2", 6));
    world.settle();
    world.say(DecisionAction::Approve { through: "tenth".parse().unwrap() });
    let version = world.plan_now().review_queries.remove(0).version.unwrap();
    let file: RepoPath = "teams/shop/podinfo/rollout.yaml".parse().unwrap();
    assert_eq!(version.stable[1][&file], Had::AsIn(first));
}

#[test]
fn attack_74_who_changes_the_job_before_a_step_made_the_version_that_it_tries_out() {
    let tried = CANARY.replace("pullRequest}, expose", "pullRequest, job: smoke.yaml}, expose");
    let tried = format!(
        "{tried}jobs:\n  smoke.yaml: {{metadata: {{name: smoke}}, spec: {{template: {{spec: {{containers: [{{name: a, image: 'smoke:1'}}]}}}}}}}}\n"
    );
    let mut world = World::new(&tried, "1");
    world.policy.proof = Some(rule());
    world.settle();
    let first = world.record().promoted.unwrap().commit.unwrap();
    let had = |world: &mut World, directory: &str| {
        world.settle();
        world.say(DecisionAction::Approve { through: "tenth".parse().unwrap() });
        let version = world.plan_now().review_queries.remove(0).version.unwrap();
        version.stable[1].get(&format!("{directory}/smoke.yaml").parse::<RepoPath>().unwrap()).cloned()
    };
    let [old, new] = ["teams/shop/podinfo", "teams/shop/moved"];
    world.want(&tried, set("2"));
    assert_eq!(had(&mut world.clone(), old), Some(Had::AsIn(first.clone())));
    // Where the rollout lies elsewhere by now, so does the Job.
    let Desired::Wanted(wanted) = &mut world.desired else { panic!("main wants it") };
    let moved = format!("{new}/rollout.yaml").parse().unwrap();
    *wanted = Arc::new(Rollout { path: moved, ..(**wanted).clone() });
    assert_eq!(had(&mut world.clone(), old), Some(Had::AsIn(first)));
    assert_eq!(had(&mut world, new), Some(Had::Nothing));
}

#[test]
fn x_2_a_word_to_try_again_counts_only_while_main_has_the_version() {
    let mut world = World::failed();
    world.policy.proof = Some(rule());
    world.host.by = vec!["ana"];
    let (refused, wanted) = (world.record().refused[0].clone(), world.desired.clone());
    world.want(QUICK, set("1"));
    world.settle();
    world.say_of(DecisionAction::Retry, refused.run);
    world.settle();
    assert_eq!((world.waits(), world.record().refused.len()), (vec!["ProofUnavailable"], 1));
    world.desired = wanted;
    world.main += 1;
    world.settle();
    assert_eq!(world.record().refused, [], "{:?}", world.waits());
}
