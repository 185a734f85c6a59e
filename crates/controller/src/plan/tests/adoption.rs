//! Adoption: what is live becomes the stable version, by a person's decision about just that.

use super::manifests::{CANARY, filed, primary, set, set_with};
use super::service::{SERVICE, alias, pods, to, version};
use super::world::World;
use crate::manifest::decision::DecisionAction;
use crate::manifest::desired::Set;
use crate::manifest::ids::{RunId, SetId};
use crate::manifest::object::Kind;
use crate::record::state::RolloutState;
use serde_json::{Value, json};
use std::sync::Arc;

/// Version 0 with six pods is live, main wants version 1 with four.
fn differs() -> World {
    let mut world = World::new(CANARY, "1");
    world.want(CANARY, filed(&set("1")));
    world.exists(&set_with("0", |all| {
        all[1]["spec"]["replicas"] = json!(6);
        all[1]["metadata"]["annotations"] = json!({"deployment.kubernetes.io/revision": "7", "team": "shop"});
        all[1]["spec"]["template"]["spec"]["dnsPolicy"] = json!("ClusterFirst");
        all[2]["spec"]["clusterIP"] = json!("10.0.0.9");
        all[2]["spec"]["clusterIPs"] = json!(["10.0.0.9"]);
    }));
    world.settle();
    assert_eq!((world.phase().as_str(), world.waits(), world.owned()), ("Initializing", vec!["AdoptionDiffers"], 0));
    world
}

impl World {
    fn live(&self) -> SetId {
        self.record().live_at_first_sight().expect("what is live").clone()
    }

    fn adopt(&mut self, live: SetId) {
        self.say_of(DecisionAction::Adopt { live }, RunId::zero());
        self.settle();
    }
}

fn counted(record: &RolloutState) -> Vec<&str> {
    record.consumed.iter().map(|word| word.action.as_str()).collect()
}

#[test]
fn what_is_live_is_adopted_and_a_run_leads_to_what_main_wants() {
    let mut world = differs();
    let act = world.record().conditions[0].act.clone().unwrap();
    assert!(act.ends_with(&format!("tidegate adopt shop/podinfo --live {}", world.live().short())), "{act}");
    let template = |world: &World| world.get(Kind::Deployment, "podinfo").unwrap().at("/spec/template").cloned();
    let before = template(&world);
    world.adopt(world.live());
    assert_eq!((world.phase().as_str(), world.waits(), world.owned()), ("Waiting", vec!["Approval"], 4));
    assert_eq!(template(&world), before, "adoption restarts nothing");
    let record = world.record();
    assert_eq!(counted(&record), ["adopt"]);
    assert_eq!(world.image_of(&record.promoted.unwrap().set), Some("app:0"));
    world.approve("tenth");
    assert_eq!(
        (world.phase().as_str(), world.weight(), world.image("podinfo")),
        ("Progressing(tenth)", 10, Some("app:0"))
    );
    world.pass(306);
    world.pass(306);
    world.approve("promotion");
    world.pass(66);
    world.pass(31);
    assert_eq!((world.phase().as_str(), world.image("podinfo")), ("Steady", Some("app:1")));
}

#[test]
fn the_adopted_set_says_what_people_may_have_written() {
    let mut world = differs();
    let live = world.live();
    world.adopt(live.clone());
    let set = &world.sets[&live];
    let text =
        |(path, (_, bytes)): (&_, &(_, std::sync::Arc<[u8]>))| format!("{path}\n{}", String::from_utf8_lossy(bytes));
    insta::assert_snapshot!(set.files.iter().map(text).collect::<String>());
}

#[test]
fn a_word_about_what_was_live_before_does_not_count() {
    let mut world = differs();
    let before = world.live();
    world.edit(Kind::Deployment, "podinfo", |d| d["spec"]["replicas"] = json!(7));
    world.adopt(before.clone());
    assert_eq!((world.phase().as_str(), world.waits(), world.owned()), ("Initializing", vec!["AdoptionDiffers"], 0));
    assert_eq!(counted(&world.record()), [""; 0]);
    assert_ne!(world.live(), before);
    world.adopt(world.live());
    assert_eq!((world.phase().as_str(), world.owned()), ("Waiting", 4));
    assert_eq!(counted(&world.record()), ["adopt"]);
}

/// In this world a list is written as a whole, so that a default in it goes when it is not written.
#[test]
fn what_writing_would_change_is_not_adopted_and_told() {
    let mut world = differs();
    world.edit(Kind::Deployment, "podinfo", |d| {
        d["spec"]["template"]["spec"]["containers"][0]["terminationMessagePolicy"] = json!("File");
    });
    world.settle();
    world.adopt(world.live());
    assert_eq!((world.phase().as_str(), world.waits(), world.owned()), ("Initializing", vec!["AdoptionDiffers"], 0));
    let act = world.record().conditions[0].act.clone().unwrap();
    assert!(act.contains("; it could not be adopted: Deployment shop/podinfo: /spec/template"), "{act}");
    assert_eq!(counted(&world.record()), [""; 0]);
}

#[test]
fn a_size_alone_is_set_without_a_run() {
    let mut world = World::new(CANARY, "1");
    world.want(CANARY, filed(&set("1")));
    world.exists(&set_with("1", |all| all[1]["spec"]["replicas"] = json!(6)));
    world.settle();
    world.adopt(world.live());
    assert_eq!((world.phase().as_str(), world.owned()), ("Steady", 4));
    assert_eq!(world.get(Kind::Deployment, "podinfo").unwrap().int("/spec/replicas"), Some(4));
    assert_eq!(world.record().history, []);
}

#[test]
fn what_is_absent_is_left_to_the_run_but_for_what_leads_requests() {
    let mut world = World::new(CANARY, "1");
    world.want(CANARY, filed(&set("1")));
    world.exists(&set("0"));
    world.remove(Kind::ConfigMap, "settings");
    world.remove(Kind::HttpRoute, "podinfo");
    world.settle();
    world.adopt(world.live());
    assert_eq!((world.phase().as_str(), world.waits()), ("Waiting", vec!["Approval"]));
    let there = |kind, name: &str| world.get(kind, name).is_some();
    assert!(there(Kind::HttpRoute, "podinfo") && !there(Kind::ConfigMap, "settings"));
}

/// A workload whose own pods are moved, in the place of the Deployment.
fn shared(kind: &'static str, version: &str, change: impl FnOnce(&mut Value)) -> Arc<Set> {
    set_with(version, |all| {
        all.retain(|object| object["kind"] != "HTTPRoute" && object["kind"] != "ConfigMap");
        let [workload, _] = &mut all[..] else { panic!("a workload and its Service") };
        workload["kind"] = kind.into();
        let spec = &mut workload["spec"];
        spec["template"]["spec"]["containers"][0].as_object_mut().unwrap().remove("envFrom");
        if kind == "DaemonSet" {
            spec.as_object_mut().unwrap().remove("replicas");
        }
        change(spec);
    })
}

fn sharing(kind: &str) -> String {
    let router = if kind == "StatefulSet" { "partition" } else { "onDelete" };
    format!(
        "\ntarget: {{kind: {kind}, name: podinfo, layout: inPlace}}\nprogressDeadline: 10m\n\
         traffic: {{router: {router}, settle: 0s, drain: 0s}}\nphases:\n\
         - {{name: quarter, before: {{approval: pullRequest}}, expose: {{weight: 25}}, soak: 1m}}\n"
    )
}

#[test]
fn a_workload_whose_own_pods_are_moved_is_adopted_likewise() {
    for kind in ["StatefulSet", "DaemonSet"] {
        let plan = sharing(kind);
        let mut world = World::new(&plan, "1");
        world.want(&plan, filed(&shared(kind, "1", |_| {})));
        world.exists(&shared(kind, "0", |spec| spec["updateStrategy"] = json!({"type": "RollingUpdate"})));
        // In this world only Deployments have pods.
        let mut serving = pods("theirs", "podinfo");
        serving["spec"]["template"]["spec"]["containers"] = json!([]);
        world.exists_value(serving);
        world.settle();
        assert_eq!((world.waits(), world.owned()), (vec!["AdoptionDiffers"], 0));
        let of = |world: &World| {
            world.get(Kind::find("apps/v1", kind).unwrap(), "podinfo").unwrap().at("/spec/template").cloned()
        };
        let before = of(&world);
        world.adopt(world.live());
        assert_eq!((world.phase().as_str(), world.waits(), world.owned()), ("Waiting", vec!["Approval"], 2));
        assert_eq!(of(&world), before, "adoption restarts nothing");
        let stable = world.sets[&world.record().promoted.unwrap().set].clone();
        let adopted = stable.get(Kind::find("apps/v1", kind).unwrap(), &"podinfo".parse().unwrap()).unwrap();
        assert_eq!(adopted.text("/spec/template/spec/containers/0/image"), Some("app:0"));
        assert_eq!(adopted.at("/spec/updateStrategy"), None, "{adopted:?}");
    }
}

#[test]
fn where_a_service_leads_is_adopted_and_led_elsewhere_by_a_run() {
    for live in [to("blue"), alias("blue")] {
        let mut world = World::new(SERVICE, "1");
        world.want(SERVICE, filed(&version("1", to("green"))));
        world.exists(&version("0", live));
        for app in ["blue", "green"] {
            world.exists_value(pods(app, app));
        }
        world.settle();
        assert_eq!((world.waits(), world.owned()), (vec!["AdoptionDiffers"], 0));
        let before = world.leads("podinfo");
        world.adopt(world.live());
        assert_eq!((world.phase().as_str(), world.weight()), ("Progressing(tenth)", 10), "{:?}", world.waits());
        assert_eq!((world.leads("podinfo"), world.leads("podinfo-canary")), (before, "green".to_owned()));
        for _ in 0..4 {
            world.pass(61);
        }
        assert_eq!((world.phase().as_str(), world.leads("podinfo").as_str()), ("Steady", "green"));
        assert_eq!(counted(&world.record()), ["adopt"]);
    }
}

#[test]
fn what_no_run_could_start_from_is_not_adopted() {
    let differs = |yaml: &str, wanted: &Set, live: &Set| {
        let mut world = World::new(yaml, "1");
        world.want(yaml, filed(wanted));
        world.exists(live);
        world.settle();
        assert_eq!((world.waits(), world.record().live_at_first_sight()), (vec!["AdoptionDiffers"], None));
        world.record().conditions[0].act.clone().unwrap()
    };
    let refused =
        |yaml: &str, change: &dyn Fn(&mut Vec<Value>)| differs(yaml, &set("1"), &set_with("0", |all| change(all)));
    let act = refused(&primary(CANARY), &|_| {});
    assert!(act.contains("layout primary"), "{act}");
    let act = refused(CANARY, &|all| {
        all.remove(1);
    });
    assert!(act.contains("no live Deployment"), "{act}");
    let elsewhere = json!([{"name": "other", "port": 80}]);
    let act = refused(CANARY, &|all| all[3]["spec"]["rules"][0]["backendRefs"] = elsewhere.clone());
    assert!(act.contains("does not lead to Service podinfo"), "{act}");

    let wanted = shared("StatefulSet", "1", |_| {});
    let moved = |change: &dyn Fn(&mut Value)| {
        differs(&sharing("StatefulSet"), &wanted, &shared("StatefulSet", "0", |spec| change(spec)))
    };
    for strategy in [json!({"type": "OnDelete"}), json!({"rollingUpdate": {"partition": 2}})] {
        let act = moved(&|spec| spec["updateStrategy"] = strategy.clone());
        assert!(act.contains("people choose which pods are new"), "{act}");
    }
    let act = moved(&|spec| spec["replicas"] = 0.into());
    assert!(act.contains("has no pods"), "{act}");
    let ports = json!({"ports": [{"name": "http", "port": 80}]});
    let act = differs(SERVICE, &version("1", to("podinfo")), &version("0", ports));
    assert!(act.contains("selects no pods"), "{act}");
}
