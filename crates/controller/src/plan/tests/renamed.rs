//! Main wants something else rolled out than what is there, and people want back what cannot be brought.

use super::manifests::{PLAIN, QUICK, set, set_with};
use super::world::World;
use crate::manifest::decision::DecisionAction;
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

#[test]
fn a_rollback_that_does_not_fit_refuses_nothing_and_says_why() {
    let ports = |version: &str, service: serde_json::Value, route: u16| {
        set_with(version, |all| {
            all[2]["spec"]["ports"] = service;
            all[3]["spec"]["rules"][0]["backendRefs"][0]["port"] = route.into();
        })
    };
    let both = json!([{"name": "http", "port": 80}, {"name": "new", "port": 8080}]);
    let mut world = World::new(QUICK, "1");
    world.settle();
    for (version, route) in [("2", 80), ("3", 8080)] {
        world.want(QUICK, ports(version, both.clone(), route));
        for _ in 0..4 {
            world.pass(61);
        }
        assert_eq!((world.phase().as_str(), world.image("podinfo")), ("Steady", Some(&*format!("app:{version}"))));
    }
    world.say_of(DecisionAction::Rollback, "0".parse().unwrap());
    let last = world.not_done();
    assert!(last.contains("the stable HTTPRoute sends to port 8080 of Service podinfo"), "{last}");
}

impl World {
    /// What the record says of the last decision, which was not followed.
    #[track_caller]
    fn not_done(&mut self) -> String {
        let (image, words) = (self.image("podinfo").map(str::to_owned), self.record().consumed.len());
        self.pass(1);
        let record = self.record();
        assert_eq!((self.phase().as_str(), self.image("podinfo")), ("Steady", image.as_deref()), "{:#?}", self.log);
        assert_eq!((record.refused, record.run, record.consumed.len()), (vec![], None, words + 1));
        let last = self.log.last().unwrap();
        assert!(last.contains("which was not done: "), "{last}");
        last.clone()
    }
}

#[test]
fn a_rollback_to_what_is_lost_or_called_otherwise_says_so() {
    let back = |change: fn(&mut World)| {
        let mut world = promoted();
        change(&mut world);
        world.say_of(DecisionAction::Rollback, "0".parse().unwrap());
        world.not_done()
    };
    let lost = back(|world| {
        let old = world.record().history[0].from.clone();
        world.sets.remove(&old);
    });
    assert!(lost.ends_with("is not on the state branch"), "{lost}");
    let renamed = back(|world| {
        let plan = QUICK.replace("name: podinfo,", "name: web,");
        world.want(&plan, set_with("3", |all| all[1]["metadata"]["name"] = "web".into()));
        world.settle();
    });
    assert!(renamed.contains("the target is Deployment podinfo as long as"), "{renamed}");
}
