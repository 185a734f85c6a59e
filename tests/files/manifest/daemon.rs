//! The target DaemonSet: what it goes together with, and what it does not.

use crate::tree::{Tree, WORKER, WORKER_SET, codes};
use tidegate::cli::validate::{Colour, Output, report};
use tidegate::manifest::desired::{By, TargetKind};
use tidegate::manifest::diagnostic::Code;

/// The example's worker as a DaemonSet.
fn daemon() -> Tree {
    let mut tree = Tree::example();
    tree.edit(WORKER, "{kind: Deployment, name: worker}", "{kind: DaemonSet, name: worker}").edit(
        WORKER,
        "  traffic:\n    replicas: {service: worker}\n    settle: 2s\n    drain: 5s\n",
        "",
    );
    tree.edit(WORKER_SET, "kind: Deployment", "kind: DaemonSet").edit(WORKER_SET, "  replicas: 4\n", "");
    tree
}

fn scaler(kind: &str) -> String {
    format!(
        "\n---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {{name: worker}}\nspec:\n  \
         scaleTargetRef: {{apiVersion: apps/v1, kind: {kind}, name: worker}}\n  minReplicas: 3\n  maxReplicas: 9\n"
    )
}

#[test]
fn a_daemon_set_is_exposed_by_its_own_pods() {
    let loaded = daemon().load();
    let rollout = loaded.rollouts[&"shop/worker".parse().unwrap()].as_ref().unwrap();
    assert_eq!(rollout.plan.target.kind, TargetKind::DaemonSet);
    assert_eq!(rollout.plan.traffic.as_ref().map(|traffic| traffic.router.by()), Some(By::Units));
    assert_eq!(loaded.warnings, []);
}

#[test]
fn what_it_cannot_do_is_refused() {
    let weight = "expose: {weight: 25}";
    let table = [
        (weight, "expose: {weight: 25, headers: [{x-canary: always}]}", Code::RouterLimit),
        (weight, "expose: {weight: 25, cookies: [{canary: always}]}", Code::RouterLimit),
        (weight, "expose: {weight: 25, mirror: 10}", Code::RouterLimit),
        (weight, "expose: {preview: fullSize}", Code::RouterLimit),
        ("  phases:", "  traffic: {service: worker}\n  phases:", Code::RouterLimit),
        ("kind: DaemonSet, name: worker", "kind: DaemonSet, name: worker, layout: primary", Code::LayoutLimit),
    ];
    for (from, to, code) in table {
        assert!(codes(&daemon().edit(WORKER, from, to).load(), "shop/worker").contains(&code), "{to}");
    }
    let scaled = |kind: &str| codes(&daemon().append(WORKER_SET, &scaler(kind)).load(), "shop/worker");
    assert_eq!(scaled("DaemonSet"), [Code::Conflict]);
    assert_eq!(scaled("Deployment"), []);
    // How many nodes there are is known by the cluster alone.
    assert_eq!(codes(&daemon().edit(WORKER, weight, "expose: {weight: 1}").load(), "shop/worker"), []);
}

#[test]
fn at_rest_kubernetes_may_replace_pods_as_it_likes() {
    for words in ["{type: OnDelete}", "{rollingUpdate: {maxUnavailable: 10%}}", "{type: RollingUpdate}"] {
        let mut tree = daemon();
        tree.edit(WORKER_SET, "spec:\n  selector", &format!("spec:\n  updateStrategy: {words}\n  selector"));
        assert_eq!(codes(&tree.load(), "shop/worker"), [], "{words}");
    }
}

#[test]
fn each_mistake_tells_its_line_and_how_to_mend_it() {
    let mut tree = daemon();
    tree.edit(WORKER, "  phases:", "  traffic: {replicas: {service: worker}}\n  phases:");
    tree.edit(WORKER, "expose: {weight: 25}", "expose: {weight: 10, mirror: 10}");
    tree.append(WORKER_SET, &scaler("DaemonSet"));
    insta::assert_snapshot!(report(&tree.load(), Output::Text, Colour::Never).text);
}

#[test]
fn n_29_what_only_nodes_have_is_refused_of_pods() {
    for field in [
        "maxStalled: 1",
        "topology: {key: rack, maxUnavailable: 1}",
        "order: [{matchLabels: {a: b}}]",
        "pickupDeadline: 1m",
    ] {
        let mut tree = daemon();
        tree.edit(WORKER, "  phases:", &format!("  rollingUpdate: {{{field}}}\n  phases:"));
        assert_eq!(codes(&tree.load(), "shop/worker"), [Code::Conflict], "{field}");
    }
}

/// Each value of `rollingUpdate.maxUnavailable` or of `units`, and what is told of it.
#[test]
fn a_pace_that_is_none_tells_its_line_and_what_is_allowed() {
    let mut told = String::new();
    let paced = |value: &str| {
        let mut tree = daemon();
        tree.edit(WORKER, "  phases:", &format!("  rollingUpdate: {{maxUnavailable: {value}}}\n  phases:"));
        tree
    };
    for value in ["0", "-1", "\"0%\"", "150%", "\"2\"", "1.5", "200000", "25 %", "[1]"] {
        told += &report(&paced(value).load(), Output::Text, Colour::Never).text;
    }
    for value in ["1", "7", "25%", "100%"] {
        assert_eq!(codes(&paced(value).load(), "shop/worker"), [], "{value}");
    }
    for value in ["units: 0", "units: 2, preview: fullSize"] {
        let tree = daemon().edit(WORKER, "expose: {weight: 25}", &format!("expose: {{{value}}}")).load();
        told += &report(&tree, Output::Text, Colour::Never).text;
    }
    let down = "expose: {units: 1}";
    let down = format!("expose: {{units: 3}}\n    - name: fewer\n      {down}");
    told += &report(&daemon().edit(WORKER, "expose: {weight: 25}", &down).load(), Output::Text, Colour::Never).text;
    insta::assert_snapshot!(told);
}

#[test]
fn a_deployment_has_no_units() {
    let mut tree = Tree::example();
    tree.edit(WORKER, "  phases:", "  rollingUpdate: {maxUnavailable: 2}\n  phases:");
    assert_eq!(codes(&tree.load(), "shop/worker"), [Code::Conflict]);
    let mut tree = Tree::example();
    tree.edit(WORKER, "expose: {weight: 25}", "expose: {weight: 25, units: 1}");
    assert_eq!(codes(&tree.load(), "shop/worker"), [Code::RouterLimit]);
}

#[test]
fn one_pod_is_exposed_however_many_there_are() {
    for expose in ["{units: 1}", "{units: 1, weight: 25}"] {
        assert_eq!(codes(&daemon().edit(WORKER, "{weight: 25}", expose).load(), "shop/worker"), [], "{expose}");
    }
}
