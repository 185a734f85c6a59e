//! What the pods of a version refer to: what nobody has holds a run before anything is made (requirement C-7).

use super::super::evidence::Found;
use super::manifests::{PLAIN, QUICK, object, set, set_with};
use super::secrets::Held;
use super::world::{Pods, World};
use crate::manifest::desired::Set;
use crate::manifest::object::Kind;
use crate::workload::lookup::{Lookup, Presence};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

impl World {
    /// What the API server says of something that is not watched.
    pub(super) fn look(&mut self, lookup: &Lookup) {
        let name = format!("{} {}", lookup.to, lookup.name);
        let presence = match &self.unwatched {
            Ok(there) => there.get(&name).map_or(Presence::Absent, |held| Presence::There(held.identity.clone())),
            Err(why) => Presence::Forbidden(why.clone()),
        };
        self.evidence.looked.insert(lookup.clone(), Found { presence, at: self.now });
    }

    /// Steady at version 1; main wants another.
    fn wanting(plan: &str, set: Arc<Set>) -> Self {
        let mut world = Self::new(plan, "1");
        world.settle();
        world.want(plan, set);
        world.settle();
        world
    }

    fn told(&self) -> String {
        let record = self.record();
        let told: Vec<_> = record.conditions.iter().map(|c| format!("{}: {}", c.reason, c.message)).collect();
        told.join("; ")
    }
}

fn there(name: &str) -> Result<BTreeMap<String, Held>, String> {
    Ok([(name.to_owned(), Held::new("u:1", ""))].into())
}

/// Version 2, whose pods also read from that.
fn reading(from: &Value) -> Arc<Set> {
    let from = from.clone();
    set_with("2", |all| {
        let sources = &mut all[1]["spec"]["template"]["spec"]["containers"][0]["envFrom"];
        sources.as_array_mut().unwrap().push(from);
    })
}

fn mounting(volume: &Value) -> Arc<Set> {
    let volume = volume.clone();
    set_with("2", |all| all[1]["spec"]["template"]["spec"]["volumes"] = json!([volume]))
}

#[test]
fn c_7_a_config_map_that_nobody_has_holds_the_run_until_it_is_there() {
    let mut world = World::wanting(QUICK, reading(&json!({"configMapRef": {"name": "extra"}})));
    assert_eq!((world.phase().as_str(), world.waits()), ("Waiting", vec!["ReferenceMissing"]));
    let expected =
        "ReferenceMissing: ConfigMap extra, which the pods need, is neither among the manifests nor in the cluster";
    assert_eq!(world.told(), expected);
    assert!(world.get(Kind::Deployment, "podinfo-canary").is_none() && world.owned() == 4, "nothing is made");
    world.pass(3_600);
    assert_eq!(world.waits(), ["ReferenceMissing"], "no deadline judges it");
    world.exists_value(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "extra"}}));
    world.settle();
    assert_eq!((world.phase().as_str(), world.weight(), world.told().as_str()), ("Progressing(tenth)", 10, ""));
}

#[test]
fn c_7_what_is_optional_or_among_the_manifests_holds_nothing() {
    let optional = json!({"configMapRef": {"name": "extra", "optional": true}});
    assert_eq!(World::wanting(QUICK, reading(&optional)).phase(), "Progressing(tenth)");
    let secret = json!({"secretRef": {"name": "extra", "optional": true}});
    assert_eq!(World::wanting(QUICK, reading(&secret)).phase(), "Progressing(tenth)");
    let brought = set_with("2", |all| {
        all[1]["spec"]["template"]["spec"]["containers"][0]["envFrom"][0]["configMapRef"]["name"] = "extra".into();
        all.push(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "extra"}, "data": {"a": "b"}}));
    });
    assert_eq!(World::wanting(QUICK, brought).phase(), "Progressing(tenth)");
}

#[test]
fn c_7_a_config_map_that_leaves_the_manifests_while_pods_need_it_is_missing() {
    let mut world = World::wanting(QUICK, set_with("2", |all| drop(all.remove(0))));
    assert_eq!((world.phase().as_str(), world.waits()), ("Waiting", vec!["ReferenceMissing"]));
    assert!(
        world.told().ends_with("is no longer among the manifests: the promotion would remove it"),
        "{}",
        world.told()
    );
    world.want(QUICK, set("2"));
    world.settle();
    assert_eq!(world.phase(), "Progressing(tenth)");
}

#[test]
fn c_7_secrets_and_claims_are_looked_up_by_name_until_they_are_there() {
    let secret = reading(&json!({"secretRef": {"name": "tls"}}));
    let claim = mounting(&json!({"name": "data", "persistentVolumeClaim": {"claimName": "data"}}));
    for (set, name) in [(secret, "Secret tls"), (claim, "PersistentVolumeClaim data")] {
        for plan in [QUICK, PLAIN] {
            let mut world = World::wanting(plan, set.clone());
            let waits = world.waits();
            assert!(world.phase() == "Waiting" && waits.contains(&"ReferenceMissing"), "{waits:?}");
            assert!(world.told().contains(&format!("{name}, which the pods need, is neither")), "{}", world.told());
            let seq = world.record().seq;
            for _ in 0..5 {
                world.pass(11);
            }
            assert_eq!(world.record().seq, seq, "looking again is no news");
            world.unwatched = there(name);
            world.settle();
            assert!(world.waits().contains(&"ReferenceMissing"), "it is looked at again only after a while");
            world.pass(11);
            assert!(!world.waits().contains(&"ReferenceMissing"), "{}", world.told());
        }
    }
}

#[test]
fn c_7_what_may_not_be_looked_up_is_not_waited_for() {
    let mut world = World::new(QUICK, "1");
    world.settle();
    world.unwatched = Err("secrets \"tls\" is forbidden".to_owned());
    world.want(QUICK, reading(&json!({"secretRef": {"name": "tls"}})));
    world.settle();
    assert_eq!(world.phase(), "Progressing(tenth)", "{}", world.told());
}

#[test]
fn c_7_an_answer_from_before_the_run_is_none() {
    let mut world = World::new(QUICK, "1");
    world.settle();
    let tls = reading(&json!({"secretRef": {"name": "tls"}}));
    world.unwatched = there("Secret tls");
    world.look(&Lookup {
        to: crate::manifest::reference::Referent::Secret,
        namespace: object(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}))
            .reference()
            .namespace
            .clone(),
        name: "tls".parse().unwrap(),
    });
    world.unwatched = Ok(BTreeMap::new());
    world.now += chrono::TimeDelta::seconds(60);
    world.want(QUICK, tls);
    world.settle();
    assert_eq!(world.waits(), ["ReferenceMissing"]);
}

#[test]
fn c_7_first_sight_makes_nothing_that_could_not_start() {
    let secret = json!({"secretRef": {"name": "tls"}});
    for (from, name) in [(json!({"configMapRef": {"name": "extra"}}), "ConfigMap extra"), (secret, "Secret tls")] {
        let mut world = World::new(QUICK, "1");
        world.want(QUICK, reading(&from));
        world.settle();
        assert_eq!(
            (world.phase().as_str(), world.waits(), world.owned()),
            ("Initializing", vec!["ReferenceMissing"], 0)
        );
        assert!(world.told().contains(&format!("{name}, which the pods need, is neither")), "{}", world.told());
        let seq = world.record().seq;
        for _ in 0..5 {
            world.pass(11);
        }
        assert_eq!((world.record().seq, world.owned()), (seq, 0), "looking again is no news");
        world.exists_value(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "extra"}}));
        world.unwatched = there(name);
        world.pass(11);
        assert_eq!((world.phase().as_str(), world.told().as_str(), world.owned()), ("Steady", "", 4));
    }
}

#[test]
fn c_7_a_later_version_is_held_too_before_the_first_one_is_up() {
    let mut world = World::new(QUICK, "1");
    world.behave("app:1", Pods::Stuck);
    world.settle();
    assert_eq!((world.waits(), world.image("podinfo")), (vec!["StableNotReady"], Some("app:1")));
    world.want(QUICK, reading(&json!({"secretRef": {"name": "tls"}})));
    world.settle();
    assert_eq!((world.waits(), world.image("podinfo")), (vec!["ReferenceMissing"], Some("app:1")));
    world.unwatched = there("Secret tls");
    world.pass(11);
    assert_eq!((world.phase().as_str(), world.image("podinfo")), ("Steady", Some("app:2")));
}

#[test]
fn c_7_pods_that_others_have_brought_up_are_taken_over_whatever_they_lack() {
    let tls = reading(&json!({"secretRef": {"name": "tls"}}));
    let mut world = World::new(QUICK, "1");
    world.want(QUICK, tls.clone());
    world.exists(&tls);
    world.settle();
    assert_eq!((world.phase().as_str(), world.owned()), ("Steady", 4), "{:?}", world.waits());
}
