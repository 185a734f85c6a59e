//! What the chart grants is what the program needs, and releases do not share a name.

use super::{RELEASE, Release, all, few, find, with};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tidegate::cluster::rbac;
use tidegate::manifest::ids::Namespace;

const RBAC: [&str; 4] = ["Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"];

/// Roles and bindings without what differs by intent: their names, which a binding refers to all the same, and labels.
fn nameless(objects: impl Iterator<Item = Value>) -> BTreeSet<String> {
    let rbac = objects.filter(|object| RBAC.iter().any(|kind| object["kind"] == *kind));
    rbac.map(|mut object| {
        let name = object["metadata"]["name"].take();
        let reference = object.get_mut("roleRef").map(|reference| reference["name"].take());
        assert!(reference.is_none_or(|reference| reference == name), "a binding has the name of its role");
        object["metadata"].as_object_mut().unwrap().remove("labels");
        object.sort_all_objects();
        object.to_string()
    })
    .collect()
}

fn documents(yaml: &str) -> impl Iterator<Item = Value> {
    serde_yaml::Deserializer::from_str(yaml).map(|one| Value::deserialize(one).unwrap())
}

#[test]
fn x_18_the_chart_grants_what_the_program_needs_and_no_more() {
    let objects = RELEASE.objects(&few());
    let namespaces: [Namespace; 2] = ["shop".parse().unwrap(), "blog".parse().unwrap()];
    let subject = json!({"kind": "ServiceAccount", "name": "tide--prod", "namespace": "delivery"});
    let home = "delivery".parse().unwrap();
    let needed = rbac::manifests(&"prod".parse().unwrap(), &home, &namespaces, &subject);
    let (needed, granted) = (nameless(documents(&needed)), nameless(objects.clone().into_iter()));
    assert_eq!(granted.difference(&needed).collect::<Vec<_>>(), Vec::<&String>::new(), "granted, not needed");
    assert_eq!(needed.difference(&granted).collect::<Vec<_>>(), Vec::<&String>::new(), "needed, not granted");
    let deployment = find(&objects, "Deployment", "tide--prod");
    assert_eq!(deployment["spec"]["template"]["spec"]["serviceAccountName"], "tide--prod");
    assert_eq!(find(&objects, "ServiceAccount", "tide--prod")["automountServiceAccountToken"], false);
}

#[test]
fn x_18_nothing_in_the_cluster_as_a_whole_can_be_written() {
    let objects = RELEASE.objects(&all());
    let roles: Vec<_> = objects.iter().filter(|object| object["kind"] == "ClusterRole").collect();
    assert_eq!(roles.len(), 1);
    for rule in roles.iter().flat_map(|role| role["rules"].as_array().unwrap()) {
        assert_eq!(rule["verbs"], json!(["get"]), "{rule}");
        assert_eq!(rule["resourceNames"], json!(["kube-system"]), "{rule}");
    }
    for binding in objects.iter().filter(|object| object["kind"] == "RoleBinding") {
        assert_eq!(binding["roleRef"]["kind"], "Role", "{binding}");
    }
}

#[test]
fn x_18_there_is_no_crd_no_webhook_and_no_secret() {
    let known = [
        "ClusterRole",
        "ClusterRoleBinding",
        "ConfigMap",
        "Deployment",
        "Job",
        "NetworkPolicy",
        "Pod",
        "PodDisruptionBudget",
        "PrometheusRule",
        "Role",
        "RoleBinding",
        "Service",
        "ServiceAccount",
        "ServiceMonitor",
    ];
    let objects = RELEASE.objects(&all());
    let kinds: BTreeSet<_> = objects.iter().map(|object| object["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), known);
}

#[test]
fn rights_are_left_out_where_somebody_else_grants_them() {
    let kinds = |over: Value| -> BTreeSet<String> {
        let objects = RELEASE.objects(&with(&few(), &over));
        objects.iter().map(|object| object["kind"].as_str().unwrap().to_owned()).collect()
    };
    let has = |kinds: &BTreeSet<String>| RBAC.map(|kind| kinds.contains(kind));
    assert_eq!(has(&kinds(json!({}))), [true; 4]);
    assert_eq!(has(&kinds(json!({"rbac": {"create": false}}))), [false, false, true, true]);
    assert_eq!(has(&kinds(json!({"rbac": {"clusterIdentity": false}}))), [true, true, false, false]);
    assert_eq!(has(&kinds(json!({"cluster": {"kubeconfig": {"secretName": "other"}}}))), [false; 4]);
    let mine = json!({"serviceAccount": {"create": false, "name": "mine"}});
    assert!(!kinds(mine.clone()).contains("ServiceAccount"));
    for binding in RELEASE.objects(&with(&few(), &mine)).iter().filter(|o| o["subjects"].is_array()) {
        assert_eq!(binding["subjects"][0]["name"], "mine");
    }
}

/// What no two objects of a cluster have in common.
fn names(release: &Release<'_>, instance: &str) -> BTreeSet<String> {
    let objects = release.objects(&with(&all(), &json!({"instance": instance})));
    let names: Vec<String> = objects
        .iter()
        .map(|object| {
            let metadata = &object["metadata"];
            format!("{} {} {}", object["kind"], metadata["namespace"], metadata["name"])
        })
        .collect();
    let distinct: BTreeSet<String> = names.iter().cloned().collect();
    assert_eq!(distinct.len(), names.len(), "{names:?}");
    distinct
}

#[test]
fn f_16_no_two_releases_share_a_name() {
    let releases = [
        ("tide", "delivery", "prod"),
        ("tide", "delivery-2", "prod"),
        ("tide", "delivery-2", "test"),
        ("a", "delivery", "b-c"),
        ("a-b", "delivery", "c"),
        ("a-b-c", "delivery", "dashboard"),
        ("a-b", "delivery", "c-dashboard"),
        ("prod", "delivery", "tide"),
    ];
    let all: Vec<_> =
        releases.iter().map(|&(name, namespace, instance)| names(&Release { name, namespace }, instance)).collect();
    for (at, one) in all.iter().enumerate() {
        for (other, name) in all[..at].iter().enumerate() {
            let shared: Vec<_> = one.intersection(name).collect();
            // One release is replaced by another of its name; two of one name and namespace are never there at once.
            let same = releases[at].0 == releases[other].0 && releases[at].1 == releases[other].1;
            assert!(shared.is_empty() || same, "{:?} and {:?} share {shared:?}", releases[at], releases[other]);
        }
    }
}

#[test]
fn all_names_carry_release_and_instance() {
    for object in RELEASE.objects(&all()) {
        let name = object["metadata"]["name"].as_str().unwrap();
        assert!(name.contains("tide") && name.contains("prod"), "{name}");
        let namespaced = !object["kind"].as_str().unwrap().starts_with("Cluster");
        assert_eq!(object["metadata"]["namespace"].is_string(), namespaced, "{name}");
    }
}
