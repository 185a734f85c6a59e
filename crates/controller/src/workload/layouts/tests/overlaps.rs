//! What else in the namespace would lead to the candidate's pods.

use super::*;
use crate::workload::fixtures::live;
use crate::workload::overlap::{Overlap, overlap};

#[test]
fn other_selectors_that_match_the_candidates_pods_are_overlaps() {
    let labels = json!({"app": "web", "tier": "front"});
    let new = set([deployment(&labels), plain_service(), route()]);
    let objects = made(&new, &new, Some(gateway())).unwrap();
    let named = |kind, name: &str, spec: Value| object(kind, name, json!({"spec": spec}));
    let by_tier = json!({"matchLabels": {"tier": "front"}});
    let by_app = json!({"matchLabels": {"app": "web"}});
    let world = [
        deployment(&labels),
        plain_service(),
        objects[&reference(Kind::Service, "web-canary")].clone(),
        objects[&reference(Kind::Deployment, "web-canary")].clone(),
        named(Kind::Service, "tier", json!({"selector": {"tier": "front"}})),
        named(Kind::Service, "empty", json!({})),
        named(Kind::Deployment, "greedy", json!({"selector": by_tier})),
        named(Kind::NetworkPolicy, "by-app", json!({"podSelector": by_app})),
        named(Kind::NetworkPolicy, "all", json!({"podSelector": {}})),
        named(Kind::PodDisruptionBudget, "by-app", json!({"selector": by_app})),
        named(Kind::PodDisruptionBudget, "by-tier", json!({"selector": by_tier})),
    ];
    let found = overlap(&live(world), &objects, &plan(Some(gateway())), &Naming::InPlace, &namespace());
    let expected = vec![
        Overlap::Selects(reference(Kind::Deployment, "greedy")),
        Overlap::Selects(reference(Kind::Service, "tier")),
        Overlap::Uncovered(reference(Kind::NetworkPolicy, "by-app")),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_service_that_does_not_ask_for_the_label_overlaps() {
    let labels = json!({"app": "web", "tier": "front"});
    let wide = service(json!({"selector": {"tier": "front"}, "ports": [{"port": 80}]}));
    let new = set([deployment(&labels), wide.clone(), route()]);
    let objects = made(&new, &new, Some(gateway())).unwrap();
    let found =
        overlap(&live([wide, deployment(&labels)]), &objects, &plan(Some(gateway())), &Naming::InPlace, &namespace());
    assert_eq!(found, [Overlap::Selects(reference(Kind::Service, "web"))]);
}

#[test]
fn by_pods_the_service_and_the_target_are_no_overlap() {
    let objects = made(&old(), &new(), Some(by_pods())).unwrap();
    let other = object(Kind::Service, "other", json!({"spec": {"selector": {"app": "web"}}}));
    let world = live([deployment(&app()), plain_service(), other]);
    let found = overlap(&world, &objects, &plan(Some(by_pods())), &Naming::InPlace, &namespace());
    assert_eq!(found, [Overlap::Selects(reference(Kind::Service, "other"))]);
}
