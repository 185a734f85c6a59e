//! Live objects that a rollout tracks: their changes are versions, and a version takes them as they were when its run began
//! (requirement C-7).

use super::manifests::{QUICK, filed, set_with};
use super::world::World;
use crate::manifest::decision::DecisionAction;
use crate::manifest::desired::Set;
use crate::manifest::ids::RunId;
use crate::manifest::object::{Kind, OWNER, Object};
use serde_json::json;
use std::sync::Arc;

const TRACKING: &str = "layout: primary, track: {configMaps: [settings]}";

fn tracking() -> String {
    QUICK.replace("layout: inPlace", TRACKING)
}

/// A version whose ConfigMap is no manifest.
fn version(tag: &str) -> Arc<Set> {
    filed(&set_with(tag, |all| drop(all.remove(0))))
}

impl World {
    fn tracking() -> Self {
        let mut world = Self::new(&tracking(), "1");
        world.want(&tracking(), version("1"));
        world
    }

    fn with_settings(motd: &str) -> Self {
        let mut world = Self::tracking();
        world.say_settings(motd);
        world.settle();
        assert_eq!((world.phase().as_str(), world.read_by("podinfo-primary")), ("Steady", Some(motd)));
        world
    }

    fn say_settings(&mut self, motd: &str) {
        let metadata = json!({"name": "settings"});
        if self.get(Kind::ConfigMap, "settings").is_some() {
            self.edit(Kind::ConfigMap, "settings", |settings| settings["data"]["motd"] = motd.into());
        } else {
            let data = json!({"motd": motd});
            self.exists_value(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}));
        }
    }

    /// What the pods of a Deployment read.
    fn read_by(&self, deployment: &str) -> Option<&str> {
        let name = self.get(Kind::Deployment, deployment)?;
        let name = name.text("/spec/template/spec/containers/0/envFrom/0/configMapRef/name")?;
        self.get(Kind::ConfigMap, name)?.text("/data/motd")
    }

    fn copies(&self) -> Vec<&Object> {
        let all = self.live.of_kind(Kind::ConfigMap);
        all.filter(|object| object.reference().name.as_str() != "settings").collect()
    }

    fn promote(&mut self) {
        for _ in 0..6 {
            self.pass(61);
        }
        assert_eq!(self.phase(), "Steady", "{:#?}", self.log);
    }
}

#[test]
fn c_7_c_17_a_change_is_tried_out_by_a_copy_and_promoted_with_it() {
    let mut world = World::with_settings("hello");
    let original = world.get(Kind::ConfigMap, "settings").unwrap();
    assert_eq!(original.annotation(OWNER), None, "what people have made is not ours");
    let copy = world.copies()[0];
    assert_eq!((world.copies().len(), copy.at("/immutable")), (1, Some(&true.into())));
    let first = copy.reference().name.to_string();

    world.say_settings("good day");
    world.settle();
    assert_eq!((world.phase().as_str(), world.weight()), ("Progressing(tenth)", 10));
    assert_eq!((world.read_by("podinfo"), world.read_by("podinfo-primary")), (Some("good day"), Some("hello")));
    let told = world.log.iter().any(|line| line.contains("ConfigMap settings"));
    assert!(told, "people are told what changed: {:#?}", world.log);
    world.promote();
    assert_eq!((world.read_by("podinfo"), world.read_by("podinfo-primary")), (Some("good day"), Some("good day")));
    assert!(world.copies().len() == 1 && world.get(Kind::ConfigMap, &first).is_none(), "the old copy is gone");
    assert_eq!(world.weights, vec![0, 10, 50, 100, 0]);
    assert!(world.proposals.is_empty(), "{:?}", world.proposals);
    // What is live stays there: Git and the words of plans have digests alone.
    let pinned = world.sets.values().flat_map(|set| set.files.values());
    let pinned: String = pinned.map(|(_, bytes)| String::from_utf8_lossy(bytes)).collect();
    let told = format!("{pinned} {} {:?}", serde_json::to_string(&world.record()).unwrap(), world.log);
    assert!(pinned.contains("ConfigMap settings sha256:") && !told.contains("good day"), "{told}");
}

#[test]
fn c_7_what_went_back_is_not_tried_again_until_it_is_something_else() {
    let mut world = World::with_settings("hello");
    world.say_settings("bad");
    world.settle();
    world.say(DecisionAction::Abort);
    world.settle();
    assert_eq!((world.phase().as_str(), world.weight(), world.waits()), ("Steady", 0, vec!["Refused"]));
    assert_eq!((world.read_by("podinfo-primary"), world.copies().len()), (Some("hello"), 1));
    world.pass(3_600);
    assert_eq!((world.phase().as_str(), world.waits()), ("Steady", vec!["Refused"]));
    assert!(world.proposals.is_empty(), "there is nothing to undo on main: {:?}", world.proposals);

    world.say_settings("good day");
    world.settle();
    assert_eq!((world.phase().as_str(), world.read_by("podinfo")), ("Progressing(tenth)", Some("good day")));
    world.say_settings("hello");
    world.settle();
    assert_eq!(
        (world.phase().as_str(), world.waits()),
        ("Steady", vec![]),
        "what serves is wanted again: {:#?}",
        world.log
    );
    assert_eq!((world.read_by("podinfo-primary"), world.copies().len()), (Some("hello"), 1));
}

#[test]
fn c_7_c_10_a_change_in_the_middle_of_a_run_reaches_nobody_and_starts_another() {
    let mut world = World::with_settings("hello");
    world.say_settings("second");
    world.settle();
    let run = world.record().run.unwrap().id;
    world.say_settings("third");
    assert_eq!(world.read_by("podinfo"), Some("second"), "the pods of the run read what it took");
    world.settle();
    assert_ne!(world.record().run.unwrap().id, run);
    assert_eq!((world.phase().as_str(), world.read_by("podinfo")), ("Progressing(tenth)", Some("third")));
    assert_eq!((world.read_by("podinfo-primary"), world.copies().len()), (Some("hello"), 2));
}

#[test]
fn c_7_going_back_from_promote_brings_the_data_too() {
    let mut world = World::with_settings("hello");
    world.say_settings("bad");
    world.settle();
    world.only_stable_stuck = true;
    for _ in 0..3 {
        world.pass(61);
    }
    assert_eq!((world.phase().as_str(), world.read_by("podinfo-primary")), ("Promoting(promote)", Some("bad")));
    world.say_settings("worse");
    world.settle();
    world.only_stable_stuck = false;
    world.say(DecisionAction::Abort);
    for _ in 0..60 {
        if !world.tick() || world.record().run.is_none() {
            break;
        }
    }
    assert_eq!((world.record().run, world.read_by("podinfo-primary")), (None, Some("hello")), "{:#?}", world.log);
}

#[test]
fn c_7_what_is_tracked_and_not_there_holds_the_rollout() {
    let mut world = World::tracking();
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits(), world.owned()), ("Initializing", vec!["ReferenceMissing"], 0));
    world.say_settings("hello");
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits()), ("Steady", vec![]));
    world.live.objects.remove(&world.get(Kind::ConfigMap, "settings").unwrap().reference().clone());
    world.settle();
    world.pass(60);
    assert_eq!((world.phase().as_str(), world.waits()), ("Steady", vec!["ReferenceMissing"]));
    assert_eq!(world.read_by("podinfo-primary"), Some("hello"), "what serves goes on");
    world.want(&tracking(), version("2"));
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits()), ("Steady", vec!["ReferenceMissing"]));
    world.say_settings("hello");
    world.settle();
    assert_eq!((world.phase().as_str(), world.image("podinfo")), ("Progressing(tenth)", Some("app:2")));
}

#[test]
fn x_16_a_copy_that_a_hand_deletes_comes_back_as_long_as_there_is_something_to_make_it_of() {
    let mut world = World::with_settings("hello");
    let copy = |world: &World| world.copies().first().map(|copy| copy.reference().clone());
    let name = copy(&world).unwrap();
    world.live.objects.remove(&name);
    world.settle();
    assert_eq!(copy(&world), Some(name.clone()));
    world.say_settings("good day");
    world.settle();
    world.live.objects.remove(&name);
    world.settle();
    assert!(world.waits().contains(&"ReferenceMissing"), "{:?}", world.waits());
    world.promote();
    assert_eq!((world.read_by("podinfo-primary"), world.waits()), (Some("good day"), vec![]));
}

#[test]
fn c_7_a_rollback_brings_the_old_manifests_with_what_is_live() {
    let mut world = World::with_settings("hello");
    world.want(&tracking(), version("2"));
    world.settle();
    world.promote();
    world.say_settings("good day");
    world.settle();
    world.promote();
    let before = world.record().promoted.unwrap();
    // But for the data, which nobody has, the last run changed nothing.
    let runs: Vec<RunId> = world.record().history.iter().map(|past| past.run.clone()).collect();
    world.say_of(DecisionAction::Rollback, runs[0].clone());
    world.settle();
    assert_eq!((world.record().promoted, world.phase().as_str()), (Some(before), "Steady"));
    world.say_of(DecisionAction::Rollback, RunId::zero());
    world.settle();
    world.promote();
    assert_eq!((world.image("podinfo-primary"), world.read_by("podinfo-primary")), (Some("app:1"), Some("good day")));
}

#[test]
fn c_35_what_is_left_reads_the_originals() {
    let mut world = World::with_settings("hello");
    world.gone();
    world.settle();
    world.pass(30);
    let name = world.get(Kind::Deployment, "podinfo").unwrap();
    let name = name.text("/spec/template/spec/containers/0/envFrom/0/configMapRef/name");
    assert_eq!((name, world.copies().len()), (Some("settings"), 0));
    assert!(world.record.is_none() && world.get(Kind::Deployment, "podinfo-primary").is_none());
}

#[test]
fn what_is_tracked_no_more_is_read_where_it_is() {
    let mut world = World::with_settings("hello");
    world.want(&tracking().replace(TRACKING, "layout: primary"), version("1"));
    world.settle();
    world.promote();
    assert_eq!((world.read_by("podinfo-primary"), world.copies().len()), (Some("hello"), 0));
    world.say_settings("good day");
    world.settle();
    assert_eq!(world.phase(), "Steady");
}
