//! Words, sets and objects that nobody reckons with.

use super::manifests::{QUICK, set};
use super::world::World;
use crate::manifest::object::Kind;
use serde_json::json;

fn promote(world: &mut World) {
    for _ in 0..4 {
        world.pass(61);
    }
    assert_eq!(world.phase(), "Steady");
}

#[test]
fn what_somebody_copied_with_our_marks_is_never_deleted() {
    let mut world = World::new(QUICK, "1");
    world.settle();
    let mut copy = world.get(Kind::ConfigMap, "settings").unwrap().value().clone();
    for (key, value) in [("apiVersion", json!("v1")), ("kind", json!("ConfigMap"))] {
        copy[key] = value;
    }
    copy["metadata"]["name"] = json!("settings-debug");
    world.exists_value(copy);
    world.settle();
    world.want(QUICK, set("2"));
    world.settle();
    promote(&mut world);
    assert!(world.get(Kind::ConfigMap, "settings-debug").is_some(), "{:#?}", world.log);
    assert_eq!(world.image("podinfo-canary"), None);
}
