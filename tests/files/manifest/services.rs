//! A Service as the target: what it goes together with, and what it does not.

use crate::tree::{PODINFO, PODINFO_SET, Tree, codes};
use tidegate::cli::validate::{Colour, Output, report};
use tidegate::manifest::diagnostic::Code;

/// The example's Service, which leads to pods that are not among the manifests.
fn service() -> Tree {
    let mut tree = Tree::example();
    tree.edit(PODINFO, "{kind: Deployment, name: podinfo}", "{kind: Service, name: podinfo}");
    tree.edit(PODINFO_SET, "selector: {app: podinfo}\n  ports", "selector: {app: blue}\n  ports");
    tree
}

const ALIAS: &str = "type: ExternalName\n  externalName: lb.blue.example.net\n  ports";
const ROUTER: &str = "gatewayAPI: {httpRoute: podinfo, service: podinfo}";
const TRAFFIC: &str =
    "  traffic:\n    gatewayAPI: {httpRoute: podinfo, service: podinfo}\n    settle: 2s\n    drain: 5s\n";
const TAKEN: &str = "kind: Service\nmetadata:\n  name: podinfo-canary\nspec:\n  ports: [{port: 1}]";
const CHECK: &str = "  checks:\n    errors: {CRITERION, max: 1, interval: 1s}\n  onFailure";

#[rustfmt::skip]
const TABLE: &[(&str, &str, &str, &[Code])] = &[
    (PODINFO, "settle: 2s", "settle: 3s", &[]),
    (PODINFO_SET, "selector: {app: blue}\n  ports", ALIAS, &[]),
    (PODINFO_SET, "selector: {app: blue}\n  ports", "selector: {app: blue}\n  clusterIP: None\n  ports", &[]),
    (PODINFO_SET, "selector: {app: blue}\n  ports", "selector: {app: blue}\n  type: LoadBalancer\n  ports", &[]),
    (PODINFO_SET, "selector: {app: blue}\n  ports", "type: ExternalName\n  ports", &[Code::TargetMissing]),
    (PODINFO_SET, "selector: {app: blue}\n  ports", "selector: {}\n  ports", &[Code::TargetMissing]),
    (PODINFO_SET, "selector: {app: blue}\n  ports", "ports", &[Code::TargetMissing]),
    // It would lead to pods that change with the promotion, past all phases.
    (PODINFO_SET, "selector: {app: blue}\n  ports", "selector: {app: podinfo}\n  ports", &[Code::Conflict]),
    (PODINFO, "{kind: Service, name: podinfo}", "{kind: Service, name: other}", &[Code::TargetMissing]),
    (PODINFO, "{kind: Service, name: podinfo}", "{kind: Service, name: podinfo, layout: primary}", &[Code::LayoutLimit]),
    (PODINFO, "service: podinfo}", "service: other}", &[Code::TargetMissing, Code::TargetMissing]),
    (PODINFO, TRAFFIC, "", &[Code::TrafficMissing, Code::TrafficMissing]),
    (PODINFO, "headers: [{x-canary: always}]\n        weight: 10", "mirror: 10", &[Code::RouterLimit]),
    (PODINFO, "headers: [{x-canary: always}]\n        weight: 10", "preview: fullSize", &[]),
    (PODINFO_SET, "kind: ConfigMap\nmetadata:\n  name: podinfo\ndata:\n  message: Welcome to the shop", TAKEN, &[Code::Conflict]),
];

#[test]
fn c_25_a_service_that_leads_somewhere_is_taken_and_all_else_is_refused() {
    for (path, from, to, expected) in TABLE {
        let mut tree = service();
        tree.edit(path, from, to);
        assert_eq!(codes(&tree.load(), "shop/podinfo"), *expected, "{to}");
    }
}

#[test]
fn routers_that_split_pods_are_refused_with_their_line() {
    for (router, name) in [("replicas: {service: podinfo}", "replicas"), ("service: podinfo", "service")] {
        let mut tree = service();
        tree.edit(PODINFO, ROUTER, router);
        tree.edit(PODINFO, "        headers: [{x-canary: always}]\n        weight: 10", "        preview: fullSize");
        let text = report(&tree.load(), Output::Text, Colour::Never).text;
        assert!(text.contains(&format!("the router {name} splits the pods behind one Service")), "{text}");
    }
    let mut tree = service();
    tree.edit(PODINFO, ROUTER, "service: podinfo");
    tree.edit(PODINFO, "        headers: [{x-canary: always}]\n        weight: 10", "        mirror: 10");
    tree.edit(PODINFO_SET, "selector: {app: blue}\n  ports", "type: ExternalName\n  ports");
    insta::assert_snapshot!(report(&tree.load(), Output::Text, Colour::Never).text);
}

#[test]
fn c_34_what_counts_by_pods_or_workloads_says_nothing_of_a_service() {
    let criteria = [
        ("latency: {provider: main, proxy: contour}", &[][..]),
        ("latency: {provider: main, proxy: traefik}", &[]),
        ("latency: {provider: main, proxy: istio}", &[Code::RouterLimit]),
        ("latency: {provider: main, proxy: linkerd}", &[Code::RouterLimit]),
        ("prometheus: {provider: main, query: 'rate(a[1m])', labels: {service: svc}}", &[]),
        ("prometheus: {provider: main, query: 'rate(a[1m])', labels: {service: svc, pod: pod}}", &[Code::CheckUseless]),
        ("prometheus: {provider: main, query: 'rate(a[1m])', labels: {workload: app}}", &[Code::CheckUseless]),
    ];
    for (criterion, expected) in criteria {
        let mut tree = service();
        tree.edit(PODINFO, "  onFailure", &CHECK.replace("CRITERION", criterion));
        tree.edit(PODINFO, "expose: {weight: 50}", "checks: [errors]\n      expose: {weight: 50}");
        assert_eq!(codes(&tree.load(), "shop/podinfo"), *expected, "{criterion}");
    }
}

#[test]
fn c_27_an_alias_behind_a_gateway_is_a_warning() {
    let mut tree = service();
    let warnings = |tree: &Tree| tree.load().warnings.iter().map(|warning| warning.code).collect::<Vec<_>>();
    assert_eq!(warnings(&tree), []);
    tree.edit(PODINFO_SET, "selector: {app: blue}\n  ports", ALIAS);
    assert_eq!(warnings(&tree), [Code::RouterLimit]);
}

#[test]
fn an_alias_leads_into_no_other_namespace() {
    let names = [
        ("lb.blue.example.net", true),
        ("svc.example.net", true),
        ("api.shop.svc", true),
        ("api.shop.svc.cluster.local", true),
        ("a.api.shop.svc.cluster.local.", true),
        ("api.other.svc", false),
        ("API.Other.SVC.cluster.local.", false),
        ("10-0-0-1.other.pod.cluster.local", false),
        ("shop.svc.api.cluster.local", false),
        ("svc", false),
        ("localhost", false),
        ("a.localhost", false),
    ];
    for (name, taken) in names {
        let mut tree = service();
        tree.edit(PODINFO_SET, "selector: {app: blue}\n  ports", &ALIAS.replace("lb.blue.example.net", name));
        let expected: &[Code] = if taken { &[] } else { &[Code::CrossNamespace] };
        assert_eq!(codes(&tree.load(), "shop/podinfo"), expected, "{name}");
    }
}

#[test]
fn c_32_two_rollouts_of_one_service_are_both_refused() {
    let mut tree = service();
    let (rollout, set) = (tree.text(PODINFO), tree.text(PODINFO_SET));
    tree.put("teams/shop/again/rollout.yaml", rollout.replace("metadata: {name: podinfo,", "metadata: {name: again,"));
    tree.put("teams/shop/again/podinfo.yaml", set);
    let loaded = tree.load();
    for id in ["shop/podinfo", "shop/again"] {
        assert_eq!(codes(&loaded, id), [Code::Conflict], "{id}");
    }
}
