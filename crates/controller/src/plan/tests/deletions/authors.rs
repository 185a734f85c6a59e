//! Who took away what people are asked to let go: they do not let it go alone.

use super::*;
use crate::plan::evidence::Version;
use crate::plan::proof;
use crate::record::fixture;
use crate::record::state::{RolloutState, Run};

/// What main made of the version that some run of the past replaced, up to what is promoted.
fn since(record: &RolloutState, past: usize, [from, to]: [&Arc<Set>; 2]) -> Option<Version> {
    let (was, now) = (record.history[past].stable.clone().unwrap(), record.origin_of_stable().unwrap().source);
    let run = Run { source: now.commit, path: Some(now.path), stable: Some(was), ..fixture::open().run.unwrap() };
    proof::of_run(record, &run, [&from.files, &to.files], &BTreeMap::new())
}

#[test]
fn x_3_whoever_took_one_of_them_away_is_asked_for_as_far_back_as_that() {
    let mut world = asked_by(Some(rule()));
    world.want(QUICK, many("3", 0));
    world.pass_a_run();
    assert_eq!(world.asked_to_delete().len(), 9);
    world.say(world.word_to_delete());
    let tells =
        |world: &World| world.plan_now().review_queries.first().and_then(|review_query| review_query.version.clone());
    let record = world.record();
    let sets = [&record.history[0].from, &record.promoted.as_ref().unwrap().set].map(|set| &world.sets[set]);
    assert_eq!(tells(&world), since(&record, 0, sets), "since before the first of them went");
    // Where the record cannot tell any more, nobody can.
    let mut world = world.clone();
    world.record.as_mut().unwrap().history.remove(0);
    let plan = world.plan_now();
    assert!(plan.review_queries.is_empty() && plan.waits.iter().any(|wait| wait.reason.as_str() == "ProofUnavailable"));
}

#[test]
fn x_3_whoever_took_them_away_does_not_let_them_go_alone() {
    let mut world = asked_by(Some(rule()));
    world.say(world.word_to_delete());
    let version = world.plan_now().review_queries.remove(0).version.unwrap();
    let record = world.record();
    assert_eq!(Some(&version.commit), record.promoted.as_ref().unwrap().commit.as_ref());
    let [before, after] = [&record.history.last().unwrap().from, &record.promoted.as_ref().unwrap().set];
    let [before, after] = [&world.sets[before], &world.sets[after]];
    assert!(before.objects.contains_key(&extra(8)) && !after.objects.contains_key(&extra(8)));
    assert_eq!(Some(version), since(&record, record.history.len() - 1, [before, after]));
}
