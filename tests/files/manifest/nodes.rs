//! The target NodeConfig: layers, and which nodes they may be for.

use crate::tree::{Tree, codes};
use std::collections::BTreeSet;
use tidegate::cli::validate::{Colour, Output, report};
use tidegate::manifest::desired::TargetKind;
use tidegate::manifest::diagnostic::Code;
use tidegate::manifest::files::Files;
use tidegate::manifest::installation::{self, Caps};
use tidegate::manifest::load::{Loaded, load};

const ROLLOUT: &str = "net/fabric.rollout.yaml";
const LAYERS: &str = "net/layers.yaml";
const RULES: &str = "tidegate.yaml";

/// A rollout of nodes, and a tenant that may have it.
fn tree() -> Tree {
    let mut tree = Tree(Files::new());
    tree.put(
        RULES,
        "apiVersion: tidegate.io/v1alpha1\nkind: Policy\nspec:\n  tenants:\n    net:\n      path: net\n      namespaces: [network]\n      \
         clusters: [home]\n      nodes: {matchLabels: {role: worker}}\n",
    );
    tree.put(
        ROLLOUT,
        "apiVersion: tidegate.io/v1alpha1\nkind: Rollout\nmetadata: {name: fabric, namespace: network}\nspec:\n  manifests: [layers.yaml]\n  \
         target: {kind: NodeConfig, name: fabric}\n  rollingUpdate: {maxUnavailable: 2}\n  phases:\n  - {name: one, expose: {units: 1}, soak: 1m}\n  \
         - {name: half, expose: {weight: 50}, soak: 1m}\n",
    );
    tree.put(
        LAYERS,
        "apiVersion: tidegate.io/v1alpha1\nkind: NodeConfigLayer\nmetadata: {name: base}\nspec:\n  nodeSelector: {}\n  files: {mtu.conf: \"9000\"}\n",
    );
    tree
}

/// What operations says at most.
fn caps(nodes: &str) -> Caps {
    let text = format!(
        "apiVersion: tidegate.io/v1alpha1\nkind: Installation\nspec:\n  instance: prod\n  repository: {{url: \"https://git.example.test/net.git\"}}\n  \
         clusters: {{home: {{inCluster: {{}}}}}}\n  caps: {{namespaces: [network]{nodes}}}\n"
    );
    installation::parse(&"installation.yaml".parse().unwrap(), text.as_bytes()).unwrap().caps
}

fn found(tree: &Tree, caps: &Caps) -> Vec<Code> {
    codes(&load(&tree.0, caps), "network/fabric")
}

fn text(loaded: &Loaded) -> String {
    report(loaded, Output::Text, Colour::Never).text
}

#[test]
fn n_29_nodes_are_a_rollout_where_operations_has_said_so_twice() {
    let tree = tree();
    let loaded = load(&tree.0, &caps(", nodes: {}"));
    let rollout = loaded.rollouts[&"network/fabric".parse().unwrap()].as_ref().unwrap();
    assert_eq!(rollout.plan.target.kind, TargetKind::NodeConfig);
    let labels = |role: &str| [("role".to_owned(), role.to_owned())].into();
    let nodes = rollout.plan.nodes.as_ref().unwrap();
    assert!(nodes.selects(&labels("worker")) && !nodes.selects(&labels("gateway")));
    assert_eq!(loaded.warnings, []);
    // Both have to say so; of an installation that is not at hand the policy is believed.
    assert_eq!(found(&tree, &caps("")), [Code::NodeNotAllowed]);
    assert_eq!(found(&tree, &Caps::unknown()), []);
    let mut other = tree.clone();
    other.edit(RULES, "      nodes: {matchLabels: {role: worker}}\n", "");
    assert_eq!(found(&other, &caps(", nodes: {}")), [Code::NodeNotAllowed]);
    let told = text(&load(&other.0, &caps(", nodes: {}")));
    assert!(told.contains("net/fabric.rollout.yaml:6:18") && told.contains("nodes"), "{told}");
    // A layer for nobody that both allow.
    let mut gateways = tree.clone();
    gateways.edit(LAYERS, "nodeSelector: {}", "nodeSelector: {matchLabels: {role: gateway}}");
    assert_eq!(found(&gateways, &caps(", nodes: {}")), [Code::NodeNotAllowed]);
    let zone = ", nodes: {matchExpressions: [{key: zone, operator: NotIn, values: [lab]}]}";
    let mut lab = tree.clone();
    lab.edit(LAYERS, "nodeSelector: {}", "nodeSelector: {matchLabels: {zone: lab}}");
    assert_eq!((found(&lab, &caps(zone)), found(&tree, &caps(zone))), (vec![Code::NodeNotAllowed], vec![]));
}

#[test]
fn n_29_what_goes_with_no_node_is_refused() {
    let one = "expose: {units: 1}";
    let table = [
        (ROLLOUT, one, "expose: {units: 0}", Code::Schema),
        (ROLLOUT, one, "expose: {weight: 60}", Code::PhasesGoDown),
        (ROLLOUT, one, "expose: {units: 1, headers: [{x-canary: always}]}", Code::RouterLimit),
        (ROLLOUT, one, "expose: {preview: fullSize}", Code::RouterLimit),
        (ROLLOUT, "  phases:", "  traffic: {service: fabric}\n  phases:", Code::RouterLimit),
        (ROLLOUT, "maxUnavailable: 2", "maxUnavailable: 0", Code::Schema),
        (ROLLOUT, "maxUnavailable: 2", "maxUnavailable: 0%", Code::Schema),
        (ROLLOUT, "maxUnavailable: 2", "maxUnavailable: 150%", Code::Schema),
        (ROLLOUT, "maxUnavailable: 2", "maxUnavailable: -1", Code::Schema),
        (ROLLOUT, "maxUnavailable: 2", "maxUnavailable: \"2\"", Code::Schema),
        (ROLLOUT, "maxUnavailable: 2", "maxStalled: 0", Code::Schema),
        (ROLLOUT, "maxUnavailable: 2", "pickupDeadline: soon", Code::Schema),
        (ROLLOUT, "maxUnavailable: 2", "pickupDeadline: 0s", Code::Schema),
        (ROLLOUT, "maxUnavailable: 2", "topology: {maxUnavailable: 1}", Code::Schema),
        (ROLLOUT, "maxUnavailable: 2", "topology: {key: rack, maxUnavailable: 0%}", Code::Schema),
        (ROLLOUT, "maxUnavailable: 2", "order: []", Code::Schema),
        (ROLLOUT, "maxUnavailable: 2", "order: [{matchLabels: {}}]", Code::Schema),
        (ROLLOUT, "maxUnavailable: 2", "order: [{matchExpressions: [{key: rack, operator: Near}]}]", Code::Schema),
        (ROLLOUT, "maxUnavailable: 2", "order: [{matchExpressions: [{key: rack, operator: In}]}]", Code::Schema),
        (LAYERS, "mtu.conf", "../mtu.conf", Code::PathEscape),
        (LAYERS, "nodeSelector: {}", "nodeSelector: {matchLabels: {}}", Code::Schema),
        (LAYERS, "NodeConfigLayer", "ConfigMap", Code::KindNotAllowed),
    ];
    let mut missed = Vec::new();
    for (path, from, to, code) in table {
        let found = found(tree().edit(path, from, to), &caps(", nodes: {}"));
        if !found.contains(&code) {
            missed.push(format!("{to}: {found:?} instead of {code:?}"));
        }
    }
    assert_eq!(missed, [""; 0]);
}

#[test]
fn n_29_one_rollout_of_nodes_is_in_a_namespace_and_layers_are_in_no_other() {
    let mut two = tree();
    let second = two.text(ROLLOUT).replace("name: fabric", "name: second");
    two.put("net/second.rollout.yaml", second);
    let loaded = load(&two.0, &caps(", nodes: {}"));
    let all: BTreeSet<Code> = ["network/fabric", "network/second"].iter().flat_map(|id| codes(&loaded, id)).collect();
    assert_eq!(all, [Code::Conflict].into());
    // What nodes are told is written by nobody else.
    let mut example = Tree::example();
    example.append(
        crate::tree::PODINFO_SET,
        "\n---\napiVersion: tidegate.io/v1alpha1\nkind: NodeConfig\nmetadata: {name: node-1}\nspec: {content: mine}\n",
    );
    assert_eq!(codes(&example.load(), "shop/podinfo"), [Code::KindNotAllowed]);
}

#[test]
fn n_29_what_operations_says_of_nodes_is_read_with_its_places() {
    let wrong = |nodes: &str| {
        let mut tree = tree();
        tree.edit(RULES, "{matchLabels: {role: worker}}", nodes);
        text(&load(&tree.0, &Caps::unknown()))
    };
    for (nodes, what) in [
        ("{matchLabels: {}}", "matchLabels"),
        ("{matchLabel: {role: worker}}", "matchLabel"),
        ("{matchExpressions: [{key: role, operator: Near}]}", "Near"),
        ("{matchExpressions: [{key: role, operator: In}]}", "the values do not go with the operator"),
        ("{matchExpressions: [{key: role, operator: Exists, values: [a]}]}", "the values do not go with the operator"),
        ("everything", "nodes"),
    ] {
        let told = wrong(nodes);
        assert!(told.contains("tidegate.yaml:9:") && told.contains(what), "{nodes}: {told}");
    }
}
