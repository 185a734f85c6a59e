//! Session affinity: who got the candidate by weight keeps it, as long as this run exposes it.

use super::manifests::{CANARY, set};
use super::world::{Pods, World};
use crate::manifest::object::{Kind, items};
use serde_json::Value;

fn sticky() -> String {
    CANARY.replace("drain: 30s", "drain: 30s, sessionAffinity: {cookie: stay, maxAge: 1h}")
}

/// Whom the live route leads to the candidate by cookie, and what the candidate's answers set.
fn cookies(world: &World) -> (Vec<String>, Vec<String>) {
    let route = world.get(Kind::HttpRoute, "podinfo").unwrap();
    let rules: Vec<&Value> = items(&route.value()["spec"], "rules").collect();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let headers = rules.iter().flat_map(|rule| items(rule, "matches")).flat_map(|one| items(one, "headers"));
    let filters =
        rules.iter().flat_map(|rule| items(rule, "backendRefs")).flat_map(|backend| items(backend, "filters"));
    let set = filters.map(|filter| text(&filter["responseHeaderModifier"]["add"][0]["value"]));
    (headers.map(|header| text(&header["value"])).collect(), set.collect())
}

#[test]
fn who_got_it_by_weight_keeps_it_until_the_run_goes_back() {
    let plan = sticky();
    let mut world = World::new(&plan, "1");
    world.settle();
    let mut runs = Vec::new();
    for version in ["2", "3"] {
        world.want(&plan, set(version));
        world.settle();
        assert_eq!(cookies(&world), (vec![], vec![]), "nobody before the first weight is recorded");
        world.approve("tenth");
        let run = world.record().run.unwrap().id.to_string();
        let expected = (
            vec![format!("^(.*; *)?stay={run}( *;.*)?$")],
            vec![format!("stay={run}; Max-Age=3600; Path=/; HttpOnly")],
        );
        assert_eq!(cookies(&world), expected);
        world.pass(306);
        assert_eq!((world.phase().as_str(), world.weight()), ("Progressing(half)", 50));
        assert_eq!(cookies(&world), expected, "the same cookie in each step of a run");
        world.behave(&format!("app:{version}"), Pods::Stuck);
        world.settle();
        assert_eq!(cookies(&world), (vec![], vec![]), "all are on stable again");
        world.pass(60);
        assert_eq!(world.phase(), "Failed");
        runs.push(run);
    }
    assert_ne!(runs[0], runs[1]);
}

#[test]
fn once_all_are_there_nobody_has_to_be_kept() {
    let plan = sticky();
    let mut world = World::new(&plan, "1");
    world.settle();
    world.want(&plan, set("2"));
    world.settle();
    world.approve("promotion");
    world.pass(306);
    world.pass(306);
    assert_eq!((world.phase().as_str(), world.weight()), ("Promoting(shift)", 100));
    assert_eq!(cookies(&world).1, Vec::<String>::new());
    world.pass(66);
    world.pass(31);
    assert_eq!((world.phase().as_str(), cookies(&world)), ("Steady", (vec![], vec![])));
}
