//! Main wants something else rolled out than what is there.

use super::manifests::{PLAIN, QUICK, set, set_with};
use super::world::World;
use crate::manifest::object::{Kind, PODS};
use crate::plan::report::Wait;
use serde_json::json;

/// The second version has been promoted, so that the target's pods have its label.
fn promoted() -> World {
    let mut world = World::new(QUICK, "1");
    world.settle();
    world.promoted_to("2");
    let label = world.get(Kind::Deployment, "podinfo").unwrap().at("/spec/template/metadata/labels").unwrap();
    assert!(label.get(PODS).is_some(), "{label}");
    world
}

impl World {
    fn promoted_to(&mut self, version: &str) {
        self.want(QUICK, set(version));
        for _ in 0..4 {
            self.pass(61);
        }
        assert_eq!((self.phase().as_str(), self.image("podinfo")), ("Steady", Some(&*format!("app:{version}"))));
    }

    /// The one thing that it waits on, while nothing is written.
    #[track_caller]
    fn unmoved(&mut self) -> Wait {
        let live = self.live.clone();
        self.settle();
        self.pass(3_600);
        assert_eq!((self.live == live, self.phase().as_str()), (true, "Steady"), "zero writes: {:#?}", self.log);
        self.plan_now().waits.remove(0)
    }
}

#[test]
fn another_target_for_a_rollout_that_exists_writes_nothing() {
    let renamed = QUICK.replace("name: podinfo,", "name: web,");
    let of_another_kind = PLAIN.replace("kind: Deployment", "kind: StatefulSet");
    let copied = QUICK.replace("layout: inPlace", "layout: primary");
    let beside = |all: &mut Vec<serde_json::Value>| {
        let mut web = all[1].clone();
        web["metadata"]["name"] = "web".into();
        all.push(web);
    };
    let cases = [
        (
            &renamed,
            set_with("3", |all| all[1]["metadata"]["name"] = "web".into()),
            "the target is Deployment podinfo as long as",
        ),
        (&renamed, set_with("3", beside), "the target is Deployment podinfo as long as"),
        (&of_another_kind, set_with("3", |all| all[1]["kind"] = "StatefulSet".into()), "target.layout is inPlace"),
        (&copied, set("2"), "target.layout is inPlace"),
    ];
    for (plan, set, why) in cases {
        let mut world = promoted();
        world.want(plan, set);
        let wait = world.unmoved();
        assert_eq!(wait.reason.as_str(), "Rejected");
        assert!(wait.message.starts_with(why), "{wait:?}");
        // Undone, all goes on.
        world.promoted_to("4");
    }
}

#[test]
fn what_was_promoted_stays_the_target_though_the_manifests_hold_both() {
    let both = |version: &str| {
        set_with(version, |all| {
            let mut web = all[1].clone();
            web["metadata"]["name"] = "web".into();
            web["spec"]["selector"]["matchLabels"] = json!({"app": "web"});
            web["spec"]["template"]["metadata"]["labels"] = json!({"app": "web"});
            all.push(web);
        })
    };
    let mut world = World::new(QUICK, "1");
    world.want(QUICK, both("1"));
    world.settle();
    world.want(QUICK, both("2"));
    for _ in 0..4 {
        world.pass(61);
    }
    assert_eq!(world.phase(), "Steady");
    world.want(&QUICK.replace("name: podinfo,", "name: web,"), both("2"));
    assert!(world.unmoved().message.starts_with("the target is Deployment podinfo as long as"));
}
