//! Routes other than an HTTPRoute: what is taken, and what is refused with its line and a hint.

use crate::tree::{PODINFO, PODINFO_SET, Tree, codes};
use tidegate::cli::validate::{Colour, Output, report};
use tidegate::manifest::diagnostic::Code;

const INGRESS: &str = "
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: podinfo
  annotations: {nginx.ingress.kubernetes.io/proxy-body-size: 8m}
spec:
  ingressClassName: nginx
  rules:
    - host: podinfo.example.org
      http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: podinfo, port: {number: 80}}}}]}
";

/// The example behind an Ingress.
fn behind(route: &str) -> Tree {
    let mut tree = Tree::example();
    tree.edit(PODINFO, "gatewayAPI: {httpRoute", "nginx: {ingress").append(PODINFO_SET, route);
    tree
}

fn found(tree: &Tree) -> Vec<Code> {
    codes(&tree.load(), "shop/podinfo")
}

#[test]
fn an_ingress_is_taken_as_it_is() {
    assert_eq!(found(&behind(INGRESS)), []);
    let both = "gatewayAPI: {httpRoute: podinfo, service: podinfo}\n    nginx: {ingress: podinfo";
    assert_eq!(found(behind(INGRESS).edit(PODINFO, "nginx: {ingress: podinfo", both)), [Code::Schema]);
}

#[rustfmt::skip]
const OF_AN_INGRESS: &[(&str, &str, &str, &[Code])] = &[
    (PODINFO, "{ingress: podinfo", "{ingress: other", &[Code::TargetMissing]),
    (PODINFO_SET, "backend: {service: {name: podinfo,", "backend: {service: {name: other,", &[Code::TargetMissing]),
    (PODINFO_SET, "backend: {service: {name: podinfo,", "backend: {service: {name: podinfo-canary,", &[Code::TargetMissing, Code::Conflict]),
    (PODINFO_SET, "proxy-body-size: 8m", "affinity: cookie", &[Code::RouterLimit]),
    (PODINFO_SET, "proxy-body-size: 8m", "affinity: cookie, nginx.ingress.kubernetes.io/affinity-canary-behavior: legacy", &[]),
    (PODINFO_SET, "proxy-body-size: 8m", "ssl-passthrough: 'true'", &[Code::RouterLimit]),
    (PODINFO_SET, "proxy-body-size: 8m", "canary-weight: '1'", &[Code::Conflict]),
    (PODINFO, "{x-canary: always}", "{x-canary: always, x-team: shop}", &[Code::RouterLimit]),
    (PODINFO, "{x-canary: always}", "{x-canary: always}, {x-canary: other}", &[Code::RouterLimit]),
    (PODINFO, "{x-canary: always}", "{x-canary: 'a b;c'}", &[Code::RouterLimit]),
    (PODINFO, "{x-canary: always}", "{x-canary: {regex: '^a(b|c)$'}}", &[]),
    (PODINFO, "{x-canary: always}", "{x-canary: {regex: '^a; b$'}}", &[Code::RouterLimit]),
    (PODINFO, "headers: [{x-canary: always}]", "cookies: [{canary: always}]", &[]),
    (PODINFO, "headers: [{x-canary: always}]", "cookies: [{canary: yes-please}]", &[Code::RouterLimit]),
    (PODINFO, "headers: [{x-canary: always}]", "cookies: [{canary: always}, {other: always}]", &[Code::RouterLimit]),
    (PODINFO, "headers: [{x-canary: always}]", "mirror: 10", &[Code::RouterLimit]),
];

#[test]
fn what_a_router_cannot_do_has_its_name() {
    for (route, mistakes) in [(INGRESS, OF_AN_INGRESS)] {
        for (path, from, to, wanted) in mistakes {
            let mut tree = behind(route);
            tree.edit(path, from, to);
            assert_eq!(found(&tree), **wanted, "{to}\n{:#?}", tree.load().errors());
        }
    }
}

#[test]
fn what_a_router_cannot_do_is_shown_with_its_line() {
    let text = |route, path, from, to| {
        let mut tree = behind(route);
        report(&tree.edit(path, from, to).load(), Output::Text, Colour::Never).text
    };
    let texts = [
        text(INGRESS, PODINFO_SET, "proxy-body-size: 8m", "affinity: cookie"),
        text(INGRESS, PODINFO_SET, "proxy-body-size: 8m", "canary: 'true'"),
        text(INGRESS, PODINFO, "headers: [{x-canary: always}]", "cookies: [{canary: yes-please}]"),
        text(INGRESS, PODINFO, "{x-canary: always}", "{x-canary: always}, {x-team: shop}"),
    ];
    insta::assert_snapshot!(texts.join("\n"));
}
