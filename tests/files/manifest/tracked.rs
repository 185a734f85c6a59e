//! `target.track`: what can be tracked, and what is told of the rest.

use crate::tree::{PODINFO, PODINFO_SET, Tree, codes};
use tidegate::cli::validate::{Colour, Output, report};
use tidegate::manifest::diagnostic::Code;

const TARGET: &str = "{kind: Deployment, name: podinfo}";
const READS: &str = "- configMapRef: {name: podinfo}\n            - configMapRef: {name: settings, optional: true}";

/// The example, whose pods also read a ConfigMap that no manifest holds.
fn tracking(layout: &str, names: &str) -> Tree {
    let mut tree = Tree::example();
    let target = format!("{{kind: Deployment, name: podinfo, layout: {layout}, track: {{configMaps: [{names}]}}}}");
    tree.edit(PODINFO, TARGET, &target);
    tree.edit(PODINFO_SET, "- configMapRef: {name: podinfo}", READS);
    tree
}

#[test]
fn c_7_what_the_pods_read_and_no_manifest_holds_can_be_tracked() {
    assert_eq!(codes(&tracking("primary", "settings").load(), "shop/podinfo"), []);
    for (layout, names) in [("inPlace", "settings"), ("primary", "podinfo"), ("primary", "others")] {
        let found = codes(&tracking(layout, names).load(), "shop/podinfo");
        assert_eq!(found, [Code::LayoutLimit], "{layout}, {names}");
    }
    assert_eq!(codes(&tracking("primary", "settings, settings").load(), "shop/podinfo"), [Code::Schema]);
}

#[test]
fn what_cannot_be_tracked_is_told_with_its_line() {
    let text = |layout, names| report(&tracking(layout, names).load(), Output::Text, Colour::Never).text;
    insta::assert_snapshot!([text("inPlace", "settings"), text("primary", "settings, podinfo, others")].join("\n"));
}

/// The same, whose pods also read Secrets.
fn with_secrets(layout: &str, names: &str) -> Tree {
    let mut tree = Tree::example();
    let target = format!("{{kind: Deployment, name: podinfo, layout: {layout}, track: {{secrets: [{names}]}}}}");
    tree.edit(PODINFO, TARGET, &target);
    let reads =
        "- configMapRef: {name: podinfo}\n            - secretRef: {name: tls}\n            - secretRef: {name: token}";
    tree.edit(PODINFO_SET, "- configMapRef: {name: podinfo}", reads);
    tree
}

#[test]
fn c_7_secrets_that_the_pods_read_can_be_tracked() {
    assert_eq!(codes(&with_secrets("primary", "tls, token").load(), "shop/podinfo"), []);
    for (layout, names, told) in [
        ("inPlace", "tls", ["rollout.yaml:7:62", "expected layout: primary", "a digest of the data"]),
        ("primary", "tls, others", ["rollout.yaml:7:85", "do not read Secret others", "expected one of tls, token"]),
        ("primary", "podinfo", ["rollout.yaml:7:80", "do not read Secret podinfo", "expected one of tls, token"]),
    ] {
        let loaded = with_secrets(layout, names).load();
        assert_eq!(codes(&loaded, "shop/podinfo"), [Code::LayoutLimit], "{layout}, {names}");
        let text = report(&loaded, Output::Text, Colour::Never).text;
        assert!(told.iter().all(|part| text.contains(part)), "{text}");
    }
    assert_eq!(codes(&with_secrets("primary", "tls, tls").load(), "shop/podinfo"), [Code::Schema]);
}

#[test]
fn the_name_under_which_a_version_keeps_what_it_tracks_is_taken() {
    let mut tree = Tree::example();
    tree.edit(PODINFO, "[podinfo.yaml]", "[podinfo.yaml, tidegate.tracked]");
    tree.put("teams/shop/podinfo/tidegate.tracked", "ConfigMap a sha256:1 b\n");
    assert_eq!(codes(&tree.load(), "shop/podinfo"), [Code::Conflict]);
}
