//! `kind: List`, lines that may hold a secret, and files that are rendered elsewhere.

use crate::tree::{PODINFO, PODINFO_SET, Tree, codes};
use tidegate::cli::validate::{Colour, Output, report};
use tidegate::manifest::diagnostic::Code;

/// Two objects as other tools print them.
const LIST: &str = "
---
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: a}
  data: {k: v}
- apiVersion: v1
  kind: Service
  metadata: {name: b}
  spec: {selector: {app: podinfo}, ports: [{port: 80, targetPort: http}]}
";

fn text(tree: &Tree) -> String {
    report(&tree.load(), Output::Text, Colour::Never).text
}

fn with(more: &str) -> Tree {
    let mut tree = Tree::example();
    tree.append(PODINFO_SET, more);
    tree
}

/// The line of the example that reads so, once `more` stands behind it.
fn line_of(tree: &Tree, line: &str) -> usize {
    tree.text(PODINFO_SET).lines().position(|read| read.contains(line)).unwrap() + 1
}

#[test]
fn a_list_is_taken_as_the_objects_that_it_holds() {
    let tree = with(LIST);
    let loaded = tree.load();
    let rollout = loaded.rollouts[&"shop/podinfo".parse().unwrap()].as_ref().unwrap();
    let names = rollout.set.objects.keys().map(ToString::to_string);
    let found: Vec<String> =
        names.filter(|name| ["ConfigMap shop/a", "Service shop/b"].contains(&name.as_str())).collect();
    assert_eq!(found, ["ConfigMap shop/a", "Service shop/b"]);
    let apart = with(&LIST.replace("apiVersion: v1\nkind: List\nitems:\n", "").replace("\n- ", "\n---\n  "));
    let apart = apart.load();
    let apart = apart.rollouts[&"shop/podinfo".parse().unwrap()].as_ref().unwrap();
    assert_eq!(rollout.set.revision, apart.set.revision, "the form of a file makes no version");
}

#[test]
fn a_mistake_inside_of_a_list_is_told_with_its_own_line() {
    let tree = with(&LIST.replace("data: {k: v}", "data: {k: v}\n  spec: {}\n  metadata: {name: A}"));
    assert_eq!(codes(&tree.load(), "shop/podinfo"), [Code::DuplicateKey]);
    let tree = with(&LIST.replace("{name: b}", "{name: b, namespace: blog}"));
    assert_eq!(codes(&tree.load(), "shop/podinfo"), [Code::CrossNamespace]);
    let place = format!("{PODINFO_SET}:{}:34\n", line_of(&tree, "name: b, namespace"));
    assert!(text(&tree).contains(&place), "{}", text(&tree));
    let tree = with(
        &LIST
            .replace("- apiVersion: v1\n  kind: Service", "- apiVersion: v1\n  kind: ConfigMap")
            .replace("{name: b}", "{name: a}"),
    );
    assert_eq!(codes(&tree.load(), "shop/podinfo"), [Code::Conflict]);
}

#[test]
fn a_list_stands_at_the_top_and_may_be_empty() {
    for empty in ["items: []", "items:", "metadata: {}"] {
        assert_eq!(codes(&with(&format!("\n---\napiVersion: v1\nkind: List\n{empty}\n")).load(), "shop/podinfo"), []);
    }
    for (odd, help) in [
        ("apiVersion: v1\nkind: List\nitems: {a: b}", "a List stands at the top of a document, and holds objects"),
        ("apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: List, items: []}]", "a List stands at the top"),
        ("apiVersion: example.test/v1\nkind: List\nitems: []", "a List stands at the top"),
        ("apiVersion: v1\nkind: ConfigMapList\nitems: []", "what may stand here: kinds that may stand in a set"),
    ] {
        let tree = with(&format!("\n---\n{odd}\n"));
        assert_eq!(codes(&tree.load(), "shop/podinfo"), [Code::KindNotAllowed], "{odd}");
        assert!(text(&tree).contains(help), "{}", text(&tree));
    }
}

/// What is wrong, and the line beneath it: an object of another kind beside one that names secrets.
#[test]
fn a_line_is_hidden_only_where_a_secret_can_be() {
    let monitor = "apiVersion: monitoring.coreos.com/v1\nkind: Prometheus\nmetadata: {name: m}\n";
    let reference = "apiVersion: external-secrets.io/v1\nkind: SecretStore\nmetadata: {name: s}\n\
                     spec: {secretStoreRef: {kind: ClusterSecretStore, name: store}, target: {name: Secret}}\n";
    let shown = text(&with(&format!("\n---\n{monitor}---\n{reference}")));
    assert!(shown.contains("| kind: Prometheus\n") && shown.contains("| kind: SecretStore\n"), "{shown}");
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: hunter2, a: &hunter2 b}\n";
    let shown = text(&with(&format!("\n---\n{monitor}---\n{secret}---\n{monitor}")));
    assert_eq!((shown.matches("| kind: Prometheus\n").count(), shown.contains("hunter2")), (2, false), "{shown}");
}

#[test]
fn attack_49_a_secret_is_hidden_in_whatever_form_it_stands() {
    let json = r#"{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": &x "hunter2"}}"#;
    let other = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}"#;
    let listed = |items: &str| format!("\n---\n{{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [{items}]}}\n");
    let nested = format!("{{apiVersion: v1, kind: List, items: [{json}]}}");
    for hidden in [
        format!("\n---\n{json}\n"),
        listed(json),
        listed(&format!("{json}, {other}")),
        listed(&format!("{other}, {json}")),
        listed(&format!("{json},\n{other}")),
        listed(&nested),
        "\n---\napiVersion: v1\nkind: SecretList\nitems: [{data: {a: &x hunter2}}]\n".to_owned(),
        "\n---\ndata: {a: &x hunter2}\n".to_owned(),
        format!("\n---\n{json}\n---\na: [hunter2\n"),
        "\n---\nkind: Secret\nstringData: {a: hunter2\n".to_owned(),
    ] {
        let tree = with(&hidden);
        assert!(!codes(&tree.load(), "shop/podinfo").is_empty(), "{hidden}");
        assert!(!text(&tree).contains("hunter2"), "{}", text(&tree));
    }
}

#[test]
fn files_that_are_rendered_elsewhere_are_told_with_what_to_do() {
    for (name, content, help) in [
        ("kustomization.yaml", "resources: [podinfo.yaml]\n", "render it in CI (kustomize build)"),
        (
            "kustomization.yml",
            "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: []\n",
            "render it in CI (kustomize build)",
        ),
        ("Chart.yaml", "apiVersion: v2\nname: podinfo\nversion: 1.0.0\n", "render the chart in CI (helm template)"),
        ("values.yaml", "replicaCount: 1\n", "render the chart in CI (helm template)"),
        ("values-prod.yaml", "replicaCount: 1\n", "render the chart in CI (helm template)"),
    ] {
        let mut tree = Tree::example();
        tree.edit(PODINFO, "[podinfo.yaml]", &format!("[podinfo.yaml, {name}]"));
        tree.put(&format!("teams/shop/podinfo/{name}"), content);
        assert_eq!(codes(&tree.load(), "shop/podinfo").len(), 1, "{name}");
        assert!(text(&tree).contains(&format!("{help} and commit the plain objects")), "{}", text(&tree));
    }
}
