//! What the record keeps of the checks of the step before when somebody is asked.

use super::manifests::set;
use super::world::{Metric, World};

/// A tenth that is measured every minute; the promotion waits for a person.
const MEASURED: &str = "
target: {kind: Deployment, name: podinfo, layout: inPlace}
traffic: {router: {gatewayApi: {httpRoute: podinfo, service: podinfo}}, settle: 5s, drain: 30s}
phases:
- {name: tenth, before: {approval: pullRequest}, expose: {weight: 10}, soak: 5m, checks: [errors]}
promotion: {before: {approval: pullRequest}, bake: 2m, checks: [errors]}
progressDeadline: 10m
checks:
  errors:
    prometheus: {provider: main, query: errors}
    max: 0.01
    interval: 1m
    minSamples: 2
    onNoData: hold
";

/// What the request for a step says of the checks before it.
fn said(world: &World, step: &str) -> Vec<(String, String)> {
    let run = world.record().run.expect("a run");
    let pull = run.pulls.get(&step.parse().expect("a step")).expect("a request");
    pull.checks.iter().map(|checked| (checked.check.to_string(), checked.says.clone())).collect()
}

#[test]
fn what_checks_said_is_kept_as_it_was_when_somebody_was_asked() {
    let mut world = World::new(MEASURED, "1");
    world.settle();
    world.want(MEASURED, set("2"));
    world.settle();
    assert!(said(&world, "tenth").is_empty(), "nothing was measured before the first step");
    world.approve("tenth");
    world.metric = Metric::Value(0.002);
    world.pass(306);
    let asked = said(&world, "promotion");
    let [(check, says)] = asked.as_slice() else { panic!("{asked:?}") };
    assert!(
        check == "errors" && says.starts_with("0.002 at 10:0") && says.ends_with(", at most 0.01 is good"),
        "{says}"
    );
    let seq = world.record().seq;
    world.metric = Metric::Value(0.005);
    world.pass(600);
    assert_eq!((said(&world, "promotion"), world.record().seq), (asked, seq), "no measurement is a commit");
    world.approve("promotion");
    world.pass(126);
    world.pass(31);
    let record = world.record();
    assert_eq!((record.run, record.promoted.expect("a version").commit), (None, Some(record.source.commit)));
}
