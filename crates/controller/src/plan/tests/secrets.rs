//! Secrets that a rollout tracks: looked up by name, copied when a run needs it, and known to no plan (requirement C-7).

use super::super::action::SecretCopy;
use super::super::evidence::{Answer, Evidence};
use super::manifests::{QUICK, filed, set_with};
use super::world::World;
use crate::manifest::decision::DecisionAction;
use crate::manifest::desired::Set;
use crate::manifest::ids::RunId;
use crate::manifest::object::Kind;
use crate::workload::live::WriteOutcome;
use crate::workload::lookup::Identity;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Something that nobody watches.
#[derive(Debug, Clone)]
pub(super) struct Held {
    /// What its metadata says.
    pub(super) identity: Identity,
    /// What it holds.
    data: String,
}

impl Held {
    pub(super) fn new(version: &str, data: &str) -> Self {
        let identity = Identity { version: version.to_owned(), written: None, owner: None, holders: BTreeSet::new() };
        Self { identity, data: data.to_owned() }
    }
}

fn tracking() -> String {
    QUICK.replace("layout: inPlace", "layout: primary, track: {secrets: [tls]}")
}

/// A version whose pods read a Secret.
fn version(tag: &str) -> Arc<Set> {
    filed(&set_with(tag, |all| {
        all.remove(0);
        all[0]["spec"]["template"]["spec"]["containers"][0]["envFrom"] = json!([{"secretRef": {"name": "tls"}}]);
    }))
}

impl World {
    fn with_secret(data: &str) -> Self {
        let mut world = Self::new(&tracking(), "1");
        world.want(&tracking(), version("1"));
        world.say_secret(data);
        world.settle();
        assert_eq!((world.phase().as_str(), world.told_by("podinfo-primary")), ("Steady", Some(data)));
        world
    }

    fn say_secret(&mut self, data: &str) {
        self.versions += 1;
        let held = Held::new(&format!("uid:{}", self.versions), data);
        self.secrets().insert("Secret tls".to_owned(), held);
    }

    fn secrets(&mut self) -> &mut BTreeMap<String, Held> {
        self.unwatched.as_mut().expect("Secrets may be looked up")
    }

    fn held(&self) -> &BTreeMap<String, Held> {
        self.unwatched.as_ref().expect("Secrets may be looked up")
    }

    /// Seen within half a minute.
    fn seen(&mut self) {
        self.pass(31);
    }

    /// Copies whose anchor is gone go too.
    fn collect_garbage(&mut self) {
        let uids = self.live.of_kind(Kind::ConfigMap).filter_map(|object| Some(object.uid()?.to_owned()));
        let uids: BTreeSet<String> = uids.collect();
        let stays = |held: &Held| held.identity.holders.is_empty() || !held.identity.holders.is_disjoint(&uids);
        self.secrets().retain(|_, held| stays(held));
    }

    pub(super) fn copy_secret(&mut self, copy: &SecretCopy) -> bool {
        self.evidence.looked.retain(|lookup, _| lookup.name != copy.anchor.name);
        if let Some(outcome) = self.outage.clone() {
            let key = (copy.anchor.clone(), SecretCopy::CONTENT.to_owned());
            self.evidence.writes.insert(key, Answer { outcome, at: self.now });
            return false;
        }
        let holder = self.live.get(&copy.anchor).and_then(|anchor| anchor.uid()).expect("an anchor").to_owned();
        let name = format!("Secret {}", copy.anchor.name);
        let original = self.secrets().get(&format!("Secret {}", copy.secret)).cloned();
        let original = original.filter(|held| held.identity.version == copy.version);
        let (Some(Held { data, .. }), false) = (original, self.secrets().contains_key(&name)) else {
            self.log.push(format!("stale: {name}"));
            self.evidence.looked.retain(|lookup, _| lookup.name != copy.secret);
            return false;
        };
        let (version, owner) = ("copy:1".to_owned(), Some(copy.owner.clone()));
        let identity = Identity { version, written: None, owner, holders: [holder].into() };
        self.secrets().insert(name, Held { identity, data });
        true
    }

    /// What the pods of a Deployment read.
    fn told_by(&self, deployment: &str) -> Option<&str> {
        let name = self.get(Kind::Deployment, deployment)?;
        let name = name.text("/spec/template/spec/containers/0/envFrom/0/secretRef/name")?;
        Some(self.unwatched.as_ref().ok()?.get(&format!("Secret {name}"))?.data.as_str())
    }

    fn anchors(&self) -> Vec<String> {
        self.live.of_kind(Kind::ConfigMap).map(|object| object.reference().name.to_string()).collect()
    }

    fn finish(&mut self) {
        for _ in 0..6 {
            self.pass(61);
        }
        assert_eq!(self.phase(), "Steady", "{:#?}", self.log);
        self.collect_garbage();
    }
}

#[test]
fn c_7_c_17_a_changed_secret_is_tried_out_by_a_copy_and_promoted_with_it() {
    let mut world = World::with_secret("hello");
    let first = world.anchors();
    assert_eq!(first.len(), 1);
    world.say_secret("good day");
    world.settle();
    assert_eq!(world.phase(), "Steady", "it is looked at again only after a while");
    world.now += chrono::TimeDelta::seconds(31);
    for _ in 0..60 {
        if !world.tick() {
            break;
        }
        assert_eq!(world.told_by("podinfo-primary"), Some("hello"), "{:#?}", world.log);
        let pods = world.get(Kind::Deployment, "podinfo").and_then(|target| target.int("/spec/replicas"));
        assert!(pods == Some(0) || world.told_by("podinfo") == Some("good day"), "no pod before its Secret");
    }
    assert_eq!((world.phase().as_str(), world.weight()), ("Progressing(tenth)", 10));
    assert!(world.log.iter().any(|line| line.contains("Secret tls")), "{:#?}", world.log);
    world.finish();
    assert_eq!(world.told_by("podinfo-primary"), Some("good day"));
    assert!(world.anchors().len() == 1 && world.anchors() != first, "the old copy is gone");
    assert_eq!(world.held().len(), 2, "and with its anchor what it held");
    assert_eq!(world.weights, vec![0, 10, 50, 100, 0]);
    let pinned: String = world
        .sets
        .values()
        .flat_map(|set| set.files.values())
        .map(|(_, bytes)| String::from_utf8_lossy(bytes))
        .collect();
    let told = format!("{pinned} {} {:?}", serde_json::to_string(&world.record()).unwrap(), world.log);
    assert!(pinned.contains("Secret tls uid:") && !told.contains("good day"), "{told}");
}

#[test]
fn c_7_a_secret_that_is_not_there_holds_the_rollout() {
    let mut world = World::new(&tracking(), "1");
    world.want(&tracking(), version("1"));
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits(), world.owned()), ("Initializing", vec!["ReferenceMissing"], 0));
    world.say_secret("hello");
    world.pass(11);
    assert_eq!((world.phase().as_str(), world.waits()), ("Steady", vec![]));
    world.secrets().remove("Secret tls");
    world.seen();
    assert_eq!((world.phase().as_str(), world.waits()), ("Steady", vec!["ReferenceMissing"]));
    assert_eq!(world.told_by("podinfo-primary"), Some("hello"), "what serves goes on");
    let seq = world.record().seq;
    world.pass(300);
    assert_eq!(world.record().seq, seq, "looking again is no news");
}

#[test]
fn c_7_who_may_not_look_or_copy_says_so_and_nothing_is_made() {
    let mut world = World::new(&tracking(), "1");
    world.want(&tracking(), version("1"));
    world.unwatched = Err("secrets \"tls\" is forbidden".to_owned());
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits(), world.owned()), ("Initializing", vec!["Forbidden"], 0));
    world.unwatched = Ok([].into());
    world.say_secret("hello");
    world.now += chrono::TimeDelta::seconds(11);
    while world.anchors().is_empty() {
        assert!(world.tick(), "{:#?}", world.log);
    }
    world.outage = Some(WriteOutcome::Forbidden("rbac.copySecrets".to_owned()));
    world.settle();
    assert_eq!((world.waits(), world.get(Kind::Deployment, "podinfo-primary").is_none()), (vec!["Forbidden"], true));
    assert_eq!(world.plan_now().waits[0].message, "rbac.copySecrets");
    world.outage = None;
    world.pass(31);
    assert_eq!((world.phase().as_str(), world.waits()), ("Steady", vec![]));
    assert_eq!(world.told_by("podinfo-primary"), Some("hello"));
}

/// What was made with a Secret is seen to fail also by whoever may not look at that Secret any more.
#[test]
fn c_7_a_look_that_is_forbidden_keeps_no_run_from_going_back() {
    let mut world = World::with_secret("hello");
    world.lost = 9;
    world.say_secret("bad");
    world.seen();
    assert_eq!((world.phase().as_str(), world.waits()), ("Progressing(prepare)", vec!["CandidateNotReady"]));
    let copy = world.get(Kind::Deployment, "podinfo").unwrap();
    let copy = copy.text("/spec/template/spec/containers/0/envFrom/0/secretRef/name").unwrap().to_owned();
    world.unwatched = Err("secrets is forbidden".to_owned());
    world.pass(31);
    let waits = world.plan_now().waits;
    let told = waits.iter().find(|wait| wait.message.contains(&copy)).map(|wait| wait.reason.as_str());
    assert_eq!((world.phase().as_str(), told), ("Progressing(prepare)", Some("Forbidden")), "{waits:#?}");
    world.pass(601);
    assert_eq!((world.phase().as_str(), world.weight()), ("Failed", 0), "{:#?}", world.log);
}

#[test]
fn x_2_c_7_a_crash_between_any_two_writes_costs_nothing() {
    let mut steady = World::with_secret("hello");
    steady.say_secret("good day");
    steady.now += chrono::TimeDelta::seconds(31);
    for ticks in 0..14 {
        for effects in 0..3 {
            let mut world = steady.clone();
            for _ in 0..ticks {
                world.tick();
            }
            world.tick_until(effects);
            world.evidence = Evidence::default();
            world.settle();
            assert_eq!((world.phase().as_str(), world.weight()), ("Progressing(tenth)", 10), "{ticks} {effects}");
            assert_eq!((world.told_by("podinfo"), world.told_by("podinfo-primary")), (Some("good day"), Some("hello")));
            assert_eq!((world.anchors().len(), world.held().len()), (2, 3));
        }
    }
}

#[test]
fn c_7_c_10_a_change_in_the_middle_of_a_run_reaches_nobody_and_starts_another() {
    let mut world = World::with_secret("hello");
    world.say_secret("second");
    world.seen();
    let run = world.record().run.unwrap().id;
    world.say_secret("third");
    assert_eq!(world.told_by("podinfo"), Some("second"));
    world.seen();
    assert_ne!(world.record().run.unwrap().id, run);
    assert_eq!((world.phase().as_str(), world.told_by("podinfo")), ("Progressing(tenth)", Some("third")));
    assert_eq!(world.told_by("podinfo-primary"), Some("hello"));
}

#[test]
fn c_7_what_changes_before_it_is_copied_is_never_copied() {
    let mut world = World::with_secret("hello");
    world.say_secret("second");
    world.now += chrono::TimeDelta::seconds(31);
    while world.anchors().len() < 2 {
        assert!(world.tick(), "{:#?}", world.log);
    }
    world.say_secret("third");
    world.settle();
    assert!(world.held().values().all(|held| held.data != "second"), "{:#?}", world.log);
    world.pass(31);
    assert_eq!(world.told_by("podinfo"), Some("third"), "{:#?}", world.log);
}

/// Two writes within a second leave the same trace.
#[test]
fn c_7_what_was_written_a_moment_ago_is_copied_once_another_write_would_show() {
    let mut world = World::with_secret("hello");
    world.say_secret("second");
    let seen = world.now + chrono::TimeDelta::seconds(31);
    let identity = &mut world.secrets().get_mut("Secret tls").unwrap().identity;
    identity.written = Some(seen - chrono::TimeDelta::seconds(1));
    world.pass(31);
    assert_eq!((world.phase().as_str(), world.waits()), ("Progressing(prepare)", vec!["Evidence"]));
    assert_eq!((world.anchors().len(), world.held().len()), (2, 2), "no copy yet");
    assert_eq!(world.plan_now().wake_at, Some(seen + chrono::TimeDelta::seconds(4)));
    // The second write, of the same second.
    world.secrets().get_mut("Secret tls").unwrap().data = "third".to_owned();
    world.pass(4);
    assert_eq!((world.phase().as_str(), world.told_by("podinfo")), ("Progressing(tenth)", Some("third")));
}

/// A new process has looked up nothing: it does not take the word for one that cannot be followed.
#[test]
fn c_7_a_rollback_waits_until_the_secrets_of_that_version_are_looked_up() {
    let mut world = World::with_secret("hello");
    world.want(&tracking(), version("2"));
    world.settle();
    world.finish();
    assert_eq!(world.image("podinfo-primary"), Some("app:2"));
    world.evidence = Evidence::default();
    world.say_of(DecisionAction::Rollback, RunId::zero());
    world.settle();
    world.finish();
    assert_eq!((world.image("podinfo-primary"), world.told_by("podinfo-primary")), (Some("app:1"), Some("hello")));
}

#[test]
fn c_7_going_back_from_promote_brings_the_secret_too() {
    let mut world = World::with_secret("hello");
    world.say_secret("bad");
    world.seen();
    world.only_stable_stuck = true;
    for _ in 0..3 {
        world.pass(61);
    }
    assert_eq!((world.phase().as_str(), world.told_by("podinfo-primary")), ("Promoting(promote)", Some("bad")));
    world.only_stable_stuck = false;
    world.say(DecisionAction::Abort);
    for _ in 0..60 {
        if !world.tick() || world.record().run.is_none() {
            break;
        }
    }
    assert_eq!((world.record().run, world.told_by("podinfo-primary")), (None, Some("hello")), "{:#?}", world.log);
}

#[test]
fn x_16_a_secret_of_that_name_that_is_not_ours_is_left_alone() {
    let mut world = World::with_secret("hello");
    world.say_secret("good day");
    let mut other = world.clone();
    other.seen();
    let name = other.anchors().into_iter().find(|name| !world.anchors().contains(name)).unwrap();
    let name = format!("Secret {name}");
    world.secrets().insert(name.clone(), Held::new("theirs:1", "theirs"));
    world.seen();
    assert_eq!((world.phase().as_str(), world.waits()), ("Progressing(prepare)", vec!["OwnedByOther"]));
    assert_eq!((world.told_by("podinfo-primary"), world.held()[&name].data.as_str()), (Some("hello"), "theirs"));
    world.secrets().remove(&name);
    world.pass(31);
    assert_eq!((world.phase().as_str(), world.told_by("podinfo")), ("Progressing(tenth)", Some("good day")));
}

#[test]
fn c_7_a_copy_that_an_earlier_run_left_goes_before_the_next_is_made() {
    let mut world = World::with_secret("hello");
    world.say_secret("good day");
    world.seen();
    let run = world.record().run.unwrap().id;
    world.say(DecisionAction::Abort);
    world.settle();
    assert_eq!((world.anchors().len(), world.held().len()), (1, 3), "the garbage collector takes its time");
    let seq = world.record().seq;
    world.evidence = Evidence::default();
    world.settle();
    assert_eq!((world.waits(), world.record().seq), (vec!["Refused"], seq), "a new process has no news");
    world.say_of(DecisionAction::Retry, run);
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits()), ("Progressing(prepare)", vec!["Writing"]));
    world.collect_garbage();
    world.pass(31);
    assert_eq!((world.phase().as_str(), world.told_by("podinfo")), ("Progressing(tenth)", Some("good day")));
}

#[test]
fn x_16_a_copy_that_a_hand_deletes_comes_back_as_long_as_there_is_something_to_make_it_of() {
    let mut world = World::with_secret("hello");
    let name = format!("Secret {}", world.anchors()[0]);
    world.secrets().remove(&name);
    world.seen();
    assert_eq!(world.told_by("podinfo-primary"), Some("hello"));
    world.say_secret("good day");
    world.secrets().remove(&name);
    world.seen();
    assert!(world.waits().contains(&"ReferenceMissing"), "{:?}", world.waits());
    world.finish();
    assert_eq!((world.told_by("podinfo-primary"), world.waits()), (Some("good day"), vec![]));
}

#[test]
fn c_35_what_is_left_reads_the_original() {
    let mut world = World::with_secret("hello");
    world.gone();
    world.settle();
    world.pass(30);
    world.collect_garbage();
    let name = world.get(Kind::Deployment, "podinfo").unwrap();
    let name = name.text("/spec/template/spec/containers/0/envFrom/0/secretRef/name");
    assert_eq!((name, world.anchors().len(), world.held().len()), (Some("tls"), 0, 1));
    assert!(world.record.is_none() && world.get(Kind::Deployment, "podinfo-primary").is_none());
}
