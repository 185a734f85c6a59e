//! The layout `versioned`: what stays of an old version, as something that stays uses it.

use super::manifests::{QUICK, named_with, versioned};
use super::world::World;
use crate::manifest::object::Kind;
use serde_json::{Value, json};

/// The manifests of a version with a label that all versions have, and an account of its own.
fn manifests(version: &str, more: impl FnOnce(&mut Vec<Value>)) -> std::sync::Arc<crate::manifest::desired::Set> {
    named_with(version, |all| {
        let account = format!("runner-v{version}");
        let template = &mut all[1]["spec"]["template"];
        template["metadata"]["labels"]["tier"] = "front".into();
        template["spec"]["serviceAccountName"] = account.clone().into();
        all.push(json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account}}));
        more(all);
    })
}

fn service(selector: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "legacy"},
        "spec": {"selector": selector, "ports": [{"port": 80}]}})
}

/// A workload with that in its pods.
fn workload(kind: &str, spec: &Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "reader"}, "spec": {
        "selector": {"matchLabels": {"app": "reader"}},
        "template": {"metadata": {"labels": {"app": "reader"}}, "spec": spec}}})
}

impl World {
    /// What is there of version 1 once version 2 has taken its place, beside `foreign`.
    fn beside(foreign: Value) -> (Self, Vec<String>) {
        let mut world = Self::new(&versioned(QUICK, "1"), "1");
        world.want(&versioned(QUICK, "1"), manifests("1", |_| {}));
        world.settle();
        world.exists_value(foreign);
        world.want(&versioned(QUICK, "2"), manifests("2", |_| {}));
        world.promoted();
        let old = world.old();
        (world, old)
    }

    fn promoted(&mut self) {
        self.settle();
        for _ in 0..4 {
            self.pass(61);
        }
        assert_eq!(self.phase(), "Steady", "{:#?}", self.log);
        assert!(self.get(Kind::Deployment, "podinfo-v2").is_some(), "{:#?}", self.log);
    }

    fn old(&self) -> Vec<String> {
        let all = self.live.objects.values().map(|object| object.reference().to_string().replace("shop/", ""));
        all.filter(|name| name.ends_with("-v1")).collect()
    }

    fn kept(&self) -> String {
        let wait = self.plan_now().waits.remove(0);
        assert_eq!(wait.reason.as_str(), "StillReferenced");
        wait.message.replace("shop/", "")
    }
}

#[test]
fn t_7_t_19_a_service_of_others_that_has_no_other_pods_keeps_them() {
    let (mut world, old) = World::beside(service(&json!({"app": "podinfo-v1"})));
    assert_eq!(old, ["ConfigMap settings-v1", "ServiceAccount runner-v1", "Deployment podinfo-v1"]);
    assert_eq!(world.kept(), "Deployment podinfo-v1 is used by Service legacy: that stays, with all that it needs");
    // It has other pods by now.
    world.edit(Kind::Service, "legacy", |service| service["spec"]["selector"] = json!({"tier": "front"}));
    world.settle();
    assert_eq!((world.old(), world.waits()), (vec![], vec![]));
}

#[test]
fn t_7_t_19_what_pods_of_others_need_stays_as_long_as_they_do() {
    let settings = json!({"volumes": [{"name": "a", "configMap": {"name": "settings-v1", "optional": true}}]});
    for kind in ["Deployment", "StatefulSet", "DaemonSet"] {
        let (mut world, old) = World::beside(workload(kind, &settings));
        assert_eq!(old, ["ConfigMap settings-v1"]);
        assert!(
            world.kept().starts_with(&format!("ConfigMap settings-v1 is used by {kind} reader: ")),
            "{}",
            world.kept()
        );
        world.remove(Kind::find("apps/v1", kind).unwrap(), "reader");
        world.settle();
        assert_eq!((world.old(), world.waits()), (vec![], vec![]));
    }
    let (_, old) = World::beside(workload("Deployment", &json!({"serviceAccountName": "runner-v1"})));
    assert_eq!(old, ["ServiceAccount runner-v1"]);
}

#[test]
fn t_7_t_19_what_another_object_of_the_new_version_still_uses_stays() {
    let reader = |version: &'static str| {
        move |all: &mut Vec<Value>| {
            let from = json!([{"configMapRef": {"name": format!("settings-v{version}")}}]);
            all.push(workload(
                "Deployment",
                &json!({"containers": [{"name": "a", "image": "reader:1", "envFrom": from}]}),
            ));
        }
    };
    let mut world = World::new(&versioned(QUICK, "1"), "1");
    for (version, of) in [("1", "1"), ("2", "1")] {
        world.want(&versioned(QUICK, version), manifests(version, reader(of)));
        world.settle();
    }
    world.promoted();
    assert_eq!(world.old(), ["ConfigMap settings-v1"]);
    world.want(&versioned(QUICK, "3"), manifests("3", reader("3")));
    world.settle();
    for _ in 0..4 {
        world.pass(61);
    }
    assert_eq!((world.phase().as_str(), world.old(), world.waits()), ("Steady", vec![], vec![]), "{:#?}", world.log);
}
