//! Two rollouts of one namespace: where what one makes would be in the other's way.

use super::routers::{INGRESS, behind};
use crate::tree::{PODINFO, PODINFO_SET, Tree, WORKER_SET, codes};
use tidegate::cli::validate::{Colour, Output, report};
use tidegate::manifest::diagnostic::Code;

/// The same, whose worker has one more object.
fn beside(mut tree: Tree, kind: &str, name: &str) -> Tree {
    let mut object = format!("\n---\napiVersion: v1\nkind: {kind}\nmetadata: {{name: {name}}}\n");
    object += match kind {
        "Ingress" => "spec: {defaultBackend: {service: {name: worker, port: {number: 80}}}}\n",
        "Service" => "spec: {selector: {app: elsewhere}, ports: [{port: 81}]}\n",
        _ => "data: {motd: hello}\n",
    };
    let object = if kind == "Ingress" { object.replace(": v1\n", ": networking.k8s.io/v1\n") } else { object };
    tree.append(WORKER_SET, &object);
    tree
}

#[test]
fn c_32_a_copy_with_the_name_of_anothers_object_is_refused() {
    let mut primary = Tree::example();
    primary.edit(PODINFO, "{kind: Deployment, name: podinfo}", "{kind: Deployment, name: podinfo, layout: primary}");
    let ours = |tree: &Tree| (codes(&tree.load(), "shop/podinfo"), codes(&tree.load(), "shop/worker"));
    for (tree, kind, name, taken) in [
        (Tree::example(), "Service", "podinfo-canary", true),
        (Tree::example(), "ConfigMap", "podinfo-canary", true),
        (Tree::example(), "Service", "podinfo-primary", false),
        (Tree::example(), "Ingress", "podinfo-canary", false),
        (primary.clone(), "Service", "podinfo-primary", true),
        (primary.clone(), "Service", "podinfo-canary", true),
        (primary, "ConfigMap", "podinfo-canary", false),
        (behind(INGRESS), "Ingress", "podinfo-canary", true),
    ] {
        let expected = if taken { vec![Code::Conflict] } else { vec![] };
        assert_eq!(ours(&beside(tree, kind, name)), (expected, vec![]), "{kind} {name}");
    }
    let text = report(&beside(behind(INGRESS), "Ingress", "podinfo-canary").load(), Output::Text, Colour::Never).text;
    let found = "its copy would be called podinfo-canary, as Ingress podinfo-canary of the rollout shop/worker is";
    assert!(text.contains(found) && text.contains("teams/shop/worker/rollout.yaml"), "{text}");
}

#[test]
fn a_service_that_selects_the_candidate_of_another_rollout_is_warned_of() {
    let warned = |label: &str| {
        let mut tree = beside(Tree::example(), "Service", "internal");
        tree.edit(PODINFO_SET, "      labels: {app: podinfo}\n", "      labels: {app: podinfo, tier: web}\n");
        tree.edit(WORKER_SET, "{app: elsewhere}, ports: [{port: 81}]", &format!("{{{label}}}, ports: [{{port: 81}}]"));
        let loaded = tree.load();
        assert_eq!((codes(&loaded, "shop/podinfo"), codes(&loaded, "shop/worker")), (vec![], vec![]));
        let warnings = loaded.warnings.iter().map(|warning| (warning.code, warning.path.to_string()));
        warnings.collect::<Vec<_>>()
    };
    assert_eq!(warned("tier: web"), [(Code::SelectorOverlap, WORKER_SET.to_owned())]);
    assert_eq!(warned("app: podinfo"), [], "the copy has another value");
    assert_eq!(warned("tier: web, app: other"), []);
}
