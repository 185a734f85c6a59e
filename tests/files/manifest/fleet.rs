//! Rollouts that run on several clusters.

use crate::tree::{Tree, codes};
use tidegate::cli::validate::{Colour, Output, report};
use tidegate::manifest::diagnostic::Code;

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
