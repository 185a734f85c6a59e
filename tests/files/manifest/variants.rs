//! Variants that must not mix: what tells them has to be among the manifests.

use crate::tree::{PODINFO, PODINFO_SET, Tree, codes};
use tidegate::cli::validate::{Colour, Output, report};
use tidegate::manifest::diagnostic::Code;

/// The example's podinfo, told apart by a variable of its pods.
fn tree(variant: &str, env: &str) -> Tree {
    let mut tree = Tree::example();
    tree.edit(PODINFO, "name: podinfo}", &format!("name: podinfo, variant: {variant}}}"));
    tree.edit(
        PODINFO_SET,
        "      containers:\n        - name: podinfo\n",
        &format!("      containers:\n        - name: podinfo\n{env}"),
    );
    tree
}

fn told(tree: &Tree) -> String {
    report(&tree.load(), Output::Text, Colour::Never).text
}

#[test]
fn v_2_v_12_what_tells_the_variant_has_to_be_there() {
    let set = "          env: [{name: FLAVOR, value: traditional}]\n";
    let from = "          env: [{name: FLAVOR, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]\n";
    let fine = "{env: FLAVOR, container: podinfo}";
    for (variant, env) in [(fine, set), ("{env: FLAVOR, container: podinfo, default: a, compatible: [[a, b]]}", "")] {
        let tree = tree(variant, env);
        assert_eq!(codes(&tree.load(), "shop/podinfo"), [], "{}", told(&tree));
    }
    for (variant, env, code, words) in [
        ("{env: FLAVOR, container: proxy}", set, Code::TargetMissing, "no container proxy"),
        (fine, from, Code::Conflict, "comes from elsewhere"),
        (fine, "", Code::Schema, "FLAVOR is not set"),
        ("{env: FLAVOR}", set, Code::Schema, "container"),
        ("{container: podinfo}", set, Code::Schema, "env"),
    ] {
        let tree = tree(variant, env);
        let (found, told) = (codes(&tree.load(), "shop/podinfo"), told(&tree));
        assert!(found.contains(&code) && told.contains(words), "{variant}: {told}");
    }
}
