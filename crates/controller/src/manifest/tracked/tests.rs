use super::*;
use crate::manifest::desired::{Layout, Set, Target, TargetKind};
use crate::manifest::object::{Kind, ObjectRef};
use crate::manifest::oid;
use crate::manifest::set::{self, SetFiles};
use serde_json::json;
use std::sync::Arc;

fn name(text: &str) -> ObjectName {
    text.parse().unwrap()
}

fn track(names: &[&str]) -> Track {
    Track { config_maps: names.iter().map(|text| name(text)).collect(), ..Track::default() }
}

fn taken(names: &[&str], target: &str) -> Tracked {
    take(track(names).all(), &name(target), |_, name| Some(format!("sha256:{name}"))).unwrap()
}

fn config_map(data: Value) -> Object {
    let mut value = json!({"metadata": {"labels": {"a": "b"}}});
    value["data"] = data;
    let reference = ObjectRef { kind: Kind::ConfigMap, namespace: "shop".parse().unwrap(), name: name("settings") };
    Object::new(reference, value)
}

const MANIFESTS: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      volumes:
      - {name: a, configMap: {name: settings}}
      - {name: b, projected: {sources: [{configMap: {name: settings, optional: true}}, {secret: {name: settings}}]}}
      containers:
      - {name: a, image: \"a:1\", envFrom: [{configMapRef: {name: settings}}, {configMapRef: {name: more}}]}
";

fn target() -> Target {
    Target {
        kind: TargetKind::Deployment,
        name: name("web"),
        layout: Layout::Primary,
        track: Track::default(),
        variant: None,
    }
}

fn read(files: SetFiles) -> Set {
    set::of_files(files, &"shop".parse().unwrap(), &target()).unwrap()
}

fn web() -> Set {
    let bytes: Arc<[u8]> = MANIFESTS.as_bytes().into();
    read(SetFiles::from([("web.yaml".parse().unwrap(), (oid::blob(&bytes), bytes))]))
}

fn with(set: &Set, tracked: Tracked) -> Set {
    set::tracking(set, set.get(Kind::Deployment, &name("web")).unwrap(), tracked)
}

#[test]
fn c_7_content_is_data_alone() {
    let one = config_map(json!({"a": "1", "b": "2"}));
    let mut same = config_map(json!({"b": "2", "a": "1"}));
    same.annotate("touched", "yes");
    assert_eq!(content(&one), content(&same));
    assert_ne!(content(&one), content(&config_map(json!({"a": "1", "b": "3"}))));
    let mut binary = config_map(json!({"a": "1", "b": "2"}));
    binary.value_mut()["binaryData"] = json!({"c": "AA=="});
    assert_ne!(content(&one), content(&binary));
}

#[test]
fn what_is_not_there_is_named_and_nothing_is_taken() {
    let one = |_: Referent, of: &ObjectName| (of.as_str() == "more").then(|| "sha256:1".to_owned());
    assert_eq!(
        take(track(&["more", "settings"]).all(), &name("web"), one),
        Err(vec![(Referent::ConfigMap, name("settings"))])
    );
}

#[test]
fn c_7_the_pods_refer_to_copies_of_a_name_that_says_which_content_and_whose() {
    let tracked = taken(&["settings"], "web");
    let copy = tracked.values().next().unwrap().copy.as_str();
    assert!(copy.starts_with("settings-primary-") && copy.len() == "settings-primary-".len() + 10, "{copy}");
    assert_ne!(taken(&["settings"], "api"), tracked, "two rollouts have one each");
    let moved = moved(web().get(Kind::Deployment, &name("web")).unwrap(), &tracked);
    let names: Vec<_> = reference::references(moved.at("/spec/template").unwrap())
        .into_iter()
        .map(|found| format!("{} {}", found.to, found.name.replace(copy, "COPY")))
        .collect();
    assert_eq!(names, ["ConfigMap COPY", "ConfigMap COPY", "Secret settings", "ConfigMap COPY", "ConfigMap more"]);
    // The longest name that is allowed has a copy, and a longer one none.
    for (length, there) in [(longest(), true), (longest() + 1, false)] {
        let long: String = (0..length).map(|i| if i % 60 == 30 { '.' } else { 'n' }).collect();
        assert_eq!(copy_of(&name(&long), &name("web"), "sha256:1").is_some(), there);
    }
}

#[test]
fn c_5_c_7_what_tracks_nothing_is_the_version_that_it_always_was() {
    let plain = web();
    assert_eq!(with(&plain, Tracked::new()), plain);
    assert_eq!(with(&with(&plain, taken(&["settings"], "web")), Tracked::new()), plain);
}

#[test]
fn c_7_another_content_is_another_version_of_the_same_manifests() {
    let plain = web();
    let one = with(&plain, taken(&["settings", "more"], "web"));
    assert_eq!(with(&plain, taken(&["more", "settings"], "web")), one, "in whatever order they are named");
    let mut other = one.tracked.clone();
    other.values_mut().next().unwrap().copy = name("other");
    let other = with(&plain, other);
    for (a, b) in [(&plain, &one), (&one, &other)] {
        assert!(a.id != b.id && a.revision != b.revision && a.pods != b.pods);
        assert_eq!((set::of_main(a), &a.objects), (plain.id.clone(), &b.objects));
    }
    assert_eq!(changes(&plain.tracked, &one.tracked), ["ConfigMap more", "ConfigMap settings"]);
    assert_eq!(changes(&one.tracked, &other.tracked), ["ConfigMap more"]);
}

#[test]
fn a_pinned_version_is_read_as_it_was_written() {
    let one = with(&web(), taken(&["settings"], "web"));
    assert_eq!(read(one.files.clone()), one);
    let mut broken = one.files;
    for nonsense in ["Pod a b c\n", "ConfigMap settings sha256:1\n", "ConfigMap settings sha256:1 -copy\n", "\u{fffd}"]
    {
        let bytes: Arc<[u8]> = nonsense.as_bytes().into();
        broken.insert(FILE.parse().unwrap(), (oid::blob(&bytes), bytes));
        let found = set::of_files(broken.clone(), &"shop".parse().unwrap(), &target()).unwrap_err();
        assert!(found[0].to_string().contains(FILE), "{nonsense}: {found:?}");
    }
}
