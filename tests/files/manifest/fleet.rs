//! Rollouts that run on several clusters.

use crate::tree::{PODINFO, PODINFO_SET, SITE, Tree, WORKER, codes};
use tidegate::cli::validate::{Colour, Output, report};
use tidegate::manifest::desired::Rollout;
use tidegate::manifest::diagnostic::Code;
use tidegate::manifest::ids::ClusterName;
use tidegate::manifest::installation::Caps;
use tidegate::manifest::load::fleet::load_everywhere;
use tidegate::manifest::load::{Loaded, load};

const FLEET: &str = "apiVersion: tidegate.io/v1alpha1\nkind: Fleet\nspec:\n  clusters:\n    home: {instance: prod, uid: a}\n    lab: {instance: lab, uid: b}\n  \
                     waves:\n  - {name: first, clusters: {names: [lab]}}\n  - {name: rest, clusters: {selector: {}}}\n";

/// The example, whose first tenant runs on two clusters.
fn tree() -> Tree {
    let mut tree = Tree::example();
    tree.edit("tidegate.yaml", "[shop]\n      clusters: [home]", "[shop]\n      clusters: [home, lab]");
    tree
}

#[test]
fn f_11_several_clusters_are_those_of_the_fleet() {
    let mut tree = tree();
    assert_eq!(codes(&tree.load(), "shop/podinfo"), [Code::FleetInvalid]);
    tree.put("fleet.yaml", FLEET);
    let loaded = tree.load();
    assert!(loaded.errors().is_empty(), "{:?}", loaded.errors());
    let clusters = &loaded.rollouts[&"shop/podinfo".parse().unwrap()].as_ref().unwrap().clusters;
    assert_eq!(clusters.iter().map(|name| name.as_str()).collect::<Vec<_>>(), ["home", "lab"]);
    assert_eq!(loaded.fleet.as_ref().unwrap().as_ref().unwrap().waves.len(), 2);
    tree.edit("tidegate.yaml", "clusters: [home, lab]", "clusters: [home, moon]");
    assert_eq!(codes(&tree.load(), "shop/podinfo"), [Code::FleetInvalid]);
}

#[test]
fn f_11_a_fleet_with_errors_stops_those_that_need_it_and_is_told_once() {
    let mut tree = tree();
    tree.put("fleet.yaml", FLEET.replace("names: [lab]", "names: [lab, moon]"));
    let loaded = tree.load();
    let told = report(&loaded, Output::Text, Colour::Never).text;
    assert!(told.contains("fleet.yaml:8:") && told.contains("no cluster moon"), "{told}");
    assert_eq!(loaded.errors().len(), 1, "{told}");
    assert_eq!(codes(&loaded, "shop/podinfo"), [Code::PolicyInvalid]);
    tree.edit("tidegate.yaml", "clusters: [home, lab]", "clusters: [home]");
    assert_eq!(codes(&tree.load(), "shop/podinfo"), []);
}

/// The same with files for each cluster beside those of all.
fn differing() -> Tree {
    let mut tree = tree();
    tree.put("fleet.yaml", FLEET);
    tree.edit(PODINFO, "manifests: [podinfo.yaml]", "manifests: [podinfo.yaml, \"clusters/{cluster}\"]");
    for name in ["home", "lab"] {
        let text = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: where}}\ndata: {{cluster: {name}}}\n");
        tree.put(&format!("teams/shop/podinfo/clusters/{name}/where.yaml"), text);
    }
    tree
}

fn serving(cluster: &str) -> Caps {
    Caps::unknown().serving(cluster.parse().unwrap())
}

fn podinfo(loaded: &Loaded) -> &Rollout {
    loaded.rollouts[&"shop/podinfo".parse().unwrap()].as_ref().unwrap()
}

#[test]
fn f_11_each_cluster_may_have_files_of_its_own_and_knows_what_the_others_are_to_have() {
    let tree = differing();
    let [home, lab] = ["home", "lab"].map(|name| load(&tree.0, &serving(name)));
    let files = |loaded: &Loaded| {
        let files: Vec<String> = podinfo(loaded).set.files.keys().map(ToString::to_string).collect();
        files
    };
    assert_eq!(files(&home), ["clusters/home/where.yaml", "podinfo.yaml"]);
    assert_eq!(files(&lab), ["clusters/lab/where.yaml", "podinfo.yaml"]);
    let named = |name: &str| name.parse::<ClusterName>().unwrap();
    assert_eq!(podinfo(&home).elsewhere, [(named("lab"), Some(podinfo(&lab).set.revision.clone()))].into());
    assert_ne!(podinfo(&home).set.revision, podinfo(&lab).set.revision);
    // Where no cluster is known all are looked at.
    assert!(load_everywhere(&tree.0, &Caps::unknown()).errors().is_empty());
    let mut missing = tree.clone();
    missing.remove("teams/shop/podinfo/clusters/lab/where.yaml");
    assert_eq!(codes(&load_everywhere(&missing.0, &Caps::unknown()), "shop/podinfo"), [Code::FileMissing]);
    assert_eq!(podinfo(&load(&missing.0, &serving("home"))).elsewhere, [(named("lab"), None)].into());
}

#[test]
fn f_11_what_is_wrong_in_one_cluster_says_in_which_and_what_is_wrong_in_all_is_told_once() {
    let mut tree = differing();
    tree.edit("teams/shop/podinfo/clusters/lab/where.yaml", "data: {cluster: lab}", "data: [lab]");
    tree.edit(PODINFO_SET, "kind: Deployment", "kind: Deployment\nmetadta: {}");
    let told = report(&load_everywhere(&tree.0, &Caps::unknown()), Output::Text, Colour::Never).text;
    insta::assert_snapshot!(told);
    assert!(load(&tree.0, &serving("home")).rollouts[&"shop/podinfo".parse().unwrap()].is_ok());
}

#[test]
fn f_11_what_is_tracked_is_no_version_of_several_clusters() {
    let mut tree = tree();
    tree.put("fleet.yaml", FLEET);
    tree.edit(PODINFO, "name: podinfo}", "name: podinfo, layout: primary, track: {configMaps: [settings]}}");
    assert!(codes(&tree.load(), "shop/podinfo").contains(&Code::Conflict));
}

/// What two rollouts share is a mistake where both are, and nowhere else.
#[test]
fn f_9_an_object_is_one_rollout_s_in_each_cluster_by_itself() {
    let mut tree = differing();
    let shared = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: where}\ndata: {a: b}\n";
    tree.put("teams/shop/worker/where.yaml", shared).edit(WORKER, "[worker.yaml]", "[worker.yaml, where.yaml]");
    let told = report(&load_everywhere(&tree.0, &Caps::unknown()), Output::Text, Colour::Never).text;
    assert!(told.contains("error[Conflict]") && told.contains("1 of 3 rollouts valid"), "{told}");
    // In the one cluster that has no such file both are fine, in the other both are told.
    tree.edit("teams/shop/podinfo/clusters/home/where.yaml", "name: where", "name: here");
    let rejected = |cluster: &str| codes(&load(&tree.0, &serving(cluster)), "shop/worker");
    assert_eq!((rejected("home"), rejected("lab")), (vec![], vec![Code::Conflict]));
    let told = report(&load_everywhere(&tree.0, &Caps::unknown()), Output::Text, Colour::Never).text;
    assert!(told.contains("in the cluster lab"), "{told}");
}

/// An object that one rollout has in one cluster alone, and another one in another cluster alone, is nobody's mistake.
#[test]
fn f_9_what_is_never_in_one_cluster_together_is_fine() {
    let mut tree = differing();
    tree.edit("teams/shop/podinfo/clusters/lab/where.yaml", "name: where", "name: there");
    tree.edit(
        "tidegate.yaml",
        "path: teams/blog\n      namespaces: [blog]\n      clusters: [home]",
        "path: teams/blog\n      namespaces: [blog, shop]\n      clusters: [lab]",
    );
    let rollout =
        tree.text(SITE).replace("namespace: blog", "namespace: shop").replace("[manifests]", "[manifests, where.yaml]");
    tree.put(SITE, rollout);
    tree.put("teams/blog/site/where.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: where}\ndata: {a: b}\n");
    let told = report(&load_everywhere(&tree.0, &Caps::unknown()), Output::Text, Colour::Never).text;
    assert!(!told.contains("ConfigMap shop/where") && !told.contains("error[Conflict]"), "{told}");
}
