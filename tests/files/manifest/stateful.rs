//! The target StatefulSet: what it goes together with, and what it does not.

use crate::tree::{Tree, WORKER, WORKER_SET, codes};
use tidegate::cli::validate::{Colour, Output, report};
use tidegate::manifest::desired::{By, TargetKind};
use tidegate::manifest::diagnostic::Code;

const TRAFFIC: &str = "  traffic:\n    replicas: {service: worker}\n    settle: 2s\n    drain: 5s\n";

/// The example's worker as a StatefulSet.
fn stateful() -> Tree {
    let mut tree = Tree::example();
    tree.edit(WORKER, "{kind: Deployment, name: worker}", "{kind: StatefulSet, name: worker}")
        .edit(WORKER, TRAFFIC, "");
    tree.edit(WORKER_SET, "kind: Deployment", "kind: StatefulSet").edit(
        WORKER_SET,
        "replicas: 4",
        "replicas: 4\n  serviceName: worker",
    );
    tree
}

#[test]
fn a_stateful_set_is_exposed_by_its_own_pods() {
    let loaded = stateful().load();
    let rollout = loaded.rollouts[&"shop/worker".parse().unwrap()].as_ref().unwrap();
    assert_eq!(rollout.plan.target.kind, TargetKind::StatefulSet);
    assert_eq!(rollout.plan.traffic.as_ref().map(|traffic| traffic.router.by()), Some(By::Units));
    assert_eq!(loaded.warnings, []);
}

#[test]
fn what_it_cannot_do_is_refused() {
    let weight = "expose: {weight: 25}";
    let table = [
        (WORKER, weight, "expose: {weight: 24}", Code::WeightTooFine),
        (WORKER, weight, "expose: {ramp: {step: 10, max: 40}}", Code::WeightTooFine),
        (WORKER, weight, "expose: {weight: 25, headers: [{x-canary: always}]}", Code::RouterLimit),
        (WORKER, weight, "expose: {weight: 25, cookies: [{canary: always}]}", Code::RouterLimit),
        (WORKER, weight, "expose: {weight: 25, mirror: 10}", Code::RouterLimit),
        (WORKER, weight, "expose: {preview: fullSize}", Code::RouterLimit),
        (WORKER, "  phases:", "  traffic: {service: worker}\n  phases:", Code::RouterLimit),
        (WORKER, "name: worker}\n  phases", "name: worker, layout: primary}\n  phases", Code::LayoutLimit),
        (WORKER_SET, "replicas: 4", "replicas: 0", Code::ScaleToZero),
        (WORKER_SET, "replicas: 4", "replicas: 4\n  updateStrategy: {type: OnDelete}", Code::RouterLimit),
        (
            WORKER_SET,
            "replicas: 4",
            "replicas: 4\n  updateStrategy: {rollingUpdate: {partition: 2}}",
            Code::RouterLimit,
        ),
        (WORKER_SET, "kind: StatefulSet", "kind: Deployment", Code::TargetMissing),
    ];
    let several = "  rollingUpdate: {maxUnavailable: 50%}\n  phases:";
    let ordered = codes(&stateful().edit(WORKER, "  phases:", several).load(), "shop/worker");
    assert_eq!(ordered, [Code::Conflict], "Kubernetes makes one after the other");
    let mut parallel = stateful();
    parallel.edit(WORKER, "  phases:", several);
    parallel.edit(WORKER_SET, "replicas: 4", "replicas: 4\n  podManagementPolicy: Parallel");
    assert_eq!(codes(&parallel.load(), "shop/worker"), []);
    for (path, from, to, code) in table {
        let found = codes(&stateful().edit(path, from, to).load(), "shop/worker");
        assert!(found.contains(&code), "{to}: {found:?}");
    }
    let fine = [
        (WORKER_SET, "replicas: 4", "replicas: 4\n  updateStrategy: {rollingUpdate: {partition: 0}}"),
        (
            WORKER_SET,
            "replicas: 4",
            "replicas: 4\n  podManagementPolicy: Parallel\n  ordinals: {start: 3}\n  minReadySeconds: 5",
        ),
        (WORKER, weight, "expose: {weights: [25, 30]}"),
        (WORKER, weight, "expose: {units: 1}"),
        (WORKER, "  phases:", "  rollingUpdate: {maxUnavailable: 25%}\n  phases:"),
    ];
    for (path, from, to) in fine {
        assert_eq!(codes(&stateful().edit(path, from, to).load(), "shop/worker"), [], "{to}");
    }
}

#[test]
fn each_mistake_tells_its_line_and_how_to_mend_it() {
    let mut tree = stateful();
    tree.edit(WORKER, "  phases:", "  traffic: {replicas: {service: worker}}\n  phases:");
    tree.edit(WORKER, "expose: {weight: 25}", "expose: {weight: 10, mirror: 10}");
    tree.edit(WORKER_SET, "replicas: 4", "replicas: 4\n  updateStrategy: {rollingUpdate: {partition: 2}}");
    insta::assert_snapshot!(report(&tree.load(), Output::Text, Colour::Never).text);
}

#[test]
fn an_autoscaler_may_say_how_many_pods_there_are() {
    let scaler = |kind: &str| {
        format!(
            "\n---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {{name: worker}}\nspec:\n  \
             scaleTargetRef: {{apiVersion: apps/v1, kind: {kind}, name: worker}}\n  minReplicas: 3\n  maxReplicas: 9\n"
        )
    };
    let with = |kind: &str| {
        let mut tree = stateful();
        tree.edit(WORKER_SET, "  replicas: 4\n", "").append(WORKER_SET, &scaler(kind));
        codes(&tree.load(), "shop/worker")
    };
    let beside = codes(&stateful().append(WORKER_SET, &scaler("StatefulSet")).load(), "shop/worker");
    assert_eq!(beside, [Code::Conflict], "both say how many");
    assert_eq!(with("StatefulSet"), [Code::WeightTooFine], "25 percent of 3 pods");
    assert_eq!(with("Deployment"), [Code::WeightTooFine, Code::WeightTooFine], "of one pod");
}
