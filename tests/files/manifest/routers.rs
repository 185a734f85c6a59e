//! Routes other than an HTTPRoute: what is taken, and what is refused with its line and a hint.

use crate::tree::{PODINFO, PODINFO_SET, Tree, codes};
use tidegate::cli::validate::{Colour, Output, report};
use tidegate::manifest::diagnostic::Code;

pub(super) const INGRESS: &str = "
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

const VIRTUAL_SERVICE: &str = "
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: podinfo}
spec:
  hosts: [podinfo.example.org]
  http:
    - route: [{destination: {host: podinfo.shop.svc.cluster.local}}]
";

const GRPC_ROUTE: &str = "
---
apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata: {name: podinfo}
spec:
  parentRefs: [{name: public}]
  rules:
    - matches: [{method: {service: podinfo.Info}}, {method: {type: Exact, service: podinfo.Echo, method: Say}}]
      backendRefs: [{name: podinfo, port: 80}]
";

pub(super) const TRAEFIK: &str = "
---
apiVersion: traefik.io/v1alpha1
kind: TraefikService
metadata: {name: podinfo}
spec:
  weighted:
    services: [{name: podinfo, port: 80}]
---
apiVersion: traefik.io/v1alpha1
kind: IngressRoute
metadata: {name: podinfo}
spec:
  entryPoints: [websecure]
  routes: [{match: Host(`podinfo.example.org`), kind: Rule, services: [{name: podinfo, kind: TraefikService}]}]
";

pub(super) const INGRESS_ROUTE: &str = "
---
apiVersion: traefik.io/v1alpha1
kind: IngressRoute
metadata: {name: podinfo}
spec:
  routes:
    - {match: Host(`podinfo.example.org`), kind: Rule, services: [{name: podinfo, port: 80}]}
    - {match: PathPrefix(`/old`), kind: Rule, priority: 100, services: [{name: podinfo, port: 80, weight: 2}]}
";

pub(super) const HTTP_PROXY: &str = "
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: podinfo}
spec:
  routes:
    - conditions: [{prefix: /docs}]
      services: [{name: docs, port: 80}]
    - conditions: [{prefix: /}]
      services: [{name: podinfo, port: 80}]
";

pub(super) const ROUTE_TABLE: &str = "
---
apiVersion: gateway.solo.io/v1
kind: RouteTable
metadata: {name: podinfo}
spec:
  routes:
    - matchers: [{prefix: /docs}]
      routeAction: {single: {upstream: {name: docs, namespace: gloo-system}}}
    - matchers: [{prefix: /}]
      routeAction: {single: {kube: {ref: {name: podinfo, namespace: shop}, port: 80}}}
";

/// The example behind another route.
pub(super) fn behind(route: &str) -> Tree {
    let mut tree = Tree::example();
    let router = match route {
        INGRESS => "nginx: {ingress",
        GRPC_ROUTE => "gatewayAPI: {grpcRoute",
        TRAEFIK => "traefik: {traefikService",
        INGRESS_ROUTE => "traefik: {ingressRoute",
        HTTP_PROXY => "contour: {httpProxy",
        ROUTE_TABLE => "gloo: {routeTable",
        _ => "istio: {virtualService",
    };
    tree.edit(PODINFO, "gatewayAPI: {httpRoute", router).append(PODINFO_SET, route);
    if route == TRAEFIK {
        tree.edit(PODINFO, "        headers: [{x-canary: always}]\n", "");
    }
    tree
}

fn found(tree: &Tree) -> Vec<Code> {
    codes(&tree.load(), "shop/podinfo")
}

#[test]
fn an_ingress_and_a_virtual_service_are_taken_as_they_are() {
    for route in [GRPC_ROUTE, HTTP_PROXY, INGRESS, INGRESS_ROUTE, ROUTE_TABLE, TRAEFIK, VIRTUAL_SERVICE] {
        assert_eq!(found(&behind(route)), [], "{route}");
    }
    let both = "gatewayAPI: {httpRoute: podinfo, service: podinfo}\n    nginx: {ingress: podinfo";
    assert_eq!(found(behind(INGRESS).edit(PODINFO, "nginx: {ingress: podinfo", both)), [Code::Schema]);
}

#[test]
fn the_layout_primary_goes_together_with_each_route() {
    let in_copies = |route: &str| {
        let mut tree = behind(route);
        tree.edit(PODINFO, "{kind: Deployment, name: podinfo}", "{kind: Deployment, name: podinfo, layout: primary}");
        tree
    };
    for route in [GRPC_ROUTE, HTTP_PROXY, INGRESS, INGRESS_ROUTE, ROUTE_TABLE, TRAEFIK, VIRTUAL_SERVICE] {
        assert_eq!(found(&in_copies(route)), [], "{route}");
    }
    let rule = |labels: &str| {
        format!(
            "\n---\napiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {{name: podinfo}}\n\
             spec: {{host: podinfo.shop, subsets: [{{name: a, labels: {{{labels}}}}}]}}\n"
        )
    };
    assert_eq!(found(in_copies(VIRTUAL_SERVICE).append(PODINFO_SET, &rule("tier: front"))), []);
    assert_eq!(found(in_copies(VIRTUAL_SERVICE).append(PODINFO_SET, &rule("app: podinfo"))), [Code::LayoutLimit]);
    assert_eq!(found(behind(VIRTUAL_SERVICE).append(PODINFO_SET, &rule("app: podinfo"))), []);
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

#[rustfmt::skip]
const OF_A_GRPC_ROUTE: &[(&str, &str, &str, &[Code])] = &[
    (PODINFO, "{grpcRoute: podinfo", "{grpcRoute: other", &[Code::TargetMissing]),
    (PODINFO, "{grpcRoute: podinfo", "{grpcRoute: podinfo, httpRoute: podinfo", &[Code::Schema]),
    (PODINFO, "{grpcRoute: podinfo, ", "{", &[Code::Schema]),
    (PODINFO_SET, "{name: podinfo, port: 80}]\n", "{name: other, port: 80}]\n", &[Code::TargetMissing]),
    (PODINFO_SET, "{name: podinfo, port: 80}]\n", "{name: podinfo, port: 80, weight: 10001}]\n", &[Code::RouteLimit]),
    (PODINFO_SET, "{name: podinfo, port: 80}]\n", "{name: podinfo, port: 80}, {name: podinfo-canary, port: 80}]\n", &[Code::Conflict]),
    (PODINFO_SET, "matches: [{method: {service: podinfo.Info}}", "sessionPersistence: {sessionName: stay}\n      matches: [{method: {service: podinfo.Info}}", &[Code::RouterLimit]),
    (PODINFO_SET, "{name: podinfo, port: 80}]\n", "{name: podinfo, port: 80, filters: [{type: RequestMirror, requestMirror: {backendRef: {name: podinfo-canary, port: 80}}}]}]\n", &[Code::Conflict]),
    (PODINFO_SET, "{service: podinfo.Info}", "{service: podinfo.Info}, headers: [{name: a, value: b}, {name: A, value: c}]", &[Code::RouteLimit]),
    (PODINFO, "headers: [{x-canary: always}]", "mirror: 10", &[]),
];

#[rustfmt::skip]
const OF_TRAEFIK: &[(&str, &str, &str, &[Code])] = &[
    (PODINFO, "{traefikService: podinfo", "{traefikService: other", &[Code::TargetMissing]),
    (PODINFO_SET, "[{name: podinfo, port: 80}]", "[{name: other, port: 80}]", &[Code::TargetMissing]),
    (PODINFO_SET, "[{name: podinfo, port: 80}]", "[{name: podinfo, kind: TraefikService}]", &[Code::TargetMissing]),
    (PODINFO_SET, "[{name: podinfo, port: 80}]", "[{name: podinfo, port: 80}, {name: podinfo-canary, port: 80}]", &[Code::Conflict]),
    (PODINFO_SET, "[{name: podinfo, port: 80}]", "[{name: podinfo, port: 80}]\n    sticky: {cookie: {name: stay}}", &[Code::RouterLimit]),
    (PODINFO_SET, "[{name: podinfo, port: 80}]", "[{name: podinfo, port: 80, weight: 0}]", &[Code::RouterLimit]),
    (PODINFO_SET, "[{name: podinfo, port: 80}]", "[{name: podinfo, port: 80}, {name: podinfo-canary, kind: TraefikService}]", &[Code::Conflict]),
    (PODINFO_SET, "[{name: podinfo, port: 80}]", "[{name: podinfo, namespace: other, port: 80}]", &[Code::CrossNamespace]),
    (PODINFO_SET, "services: [{name: podinfo, kind: TraefikService}]", "services: [{name: podinfo, port: 80}]", &[]),
    (PODINFO, "        weight: 10", "        weight: 10\n        headers: [{x-canary: always}]", &[Code::RouterLimit]),
    (PODINFO, "        weight: 10", "        weight: 10\n        cookies: [{canary: always}]", &[Code::RouterLimit]),
    (PODINFO, "        weight: 10", "        weight: 10\n        mirror: 10", &[]),
    (PODINFO, "{traefikService: podinfo, ", "{", &[Code::Schema]),
    (PODINFO, "{traefikService: podinfo, ", "{traefikService: podinfo, ingressRoute: podinfo, ", &[Code::Schema]),
];

#[rustfmt::skip]
const OF_AN_INGRESS_ROUTE: &[(&str, &str, &str, &[Code])] = &[
    (PODINFO, "{ingressRoute: podinfo", "{ingressRoute: other", &[Code::TargetMissing]),
    (PODINFO_SET, "[{name: podinfo, port: 80}]}", "[{name: podinfo, port: 80}, {name: podinfo-canary, port: 80}]}", &[Code::Conflict]),
    (PODINFO_SET, "priority: 100", "priority: 28", &[Code::RouterLimit]),
    (PODINFO_SET, "priority: 100", "syntax: v2", &[Code::RouterLimit]),
    (PODINFO_SET, "weight: 2", "weight: 10001", &[Code::RouterLimit]),
    (PODINFO_SET, "port: 80, weight: 2}]", "port: 80}, {name: podinfo-copies, kind: TraefikService}]", &[Code::Conflict]),
    (PODINFO_SET, "match: PathPrefix(`/old`)", "match: '(Host(`podinfo.example.org`)) && Header(`x-api`, `2`)'", &[]),
    (PODINFO, "{x-canary: always}", "{x-canary: 'a`b'}", &[Code::RouterLimit]),
    (PODINFO, "{x-canary: always}", "{'x`y': always}", &[Code::RouterLimit]),
    (PODINFO, "{x-canary: always}", "{x-canary: {regex: '^a(b|c)$'}}, {x-a: b, x-c: d}", &[]),
    (PODINFO, "headers: [{x-canary: always}]", "cookies: [{canary: always}]", &[]),
    (PODINFO, "headers: [{x-canary: always}]", "mirror: 10", &[]),
];

#[test]
fn an_ingress_route_tells_headers_apart_and_copies() {
    for (path, from, to, wanted) in OF_AN_INGRESS_ROUTE {
        let mut tree = behind(INGRESS_ROUTE);
        tree.edit(path, from, to);
        assert_eq!(found(&tree), **wanted, "{to}\n{:#?}", tree.load().errors());
    }
    let mut tree = behind(INGRESS_ROUTE);
    tree.edit(PODINFO, "headers: [{x-canary: always}]", "mirror: 10");
    let mut taken = tree.clone();
    tree.edit(PODINFO_SET, "port: 80, weight: 2", "port: 8080, weight: 2");
    assert_eq!(found(&tree), [Code::RouterLimit]);
    let copier =
        "---\napiVersion: traefik.io/v1alpha1\nkind: TraefikService\nmetadata: {name: podinfo-copies}\nspec: {}\n";
    taken.append(PODINFO_SET, copier);
    assert_eq!(found(&taken), [Code::Conflict], "the name of what copies");
}

#[rustfmt::skip]
const OF_AN_HTTP_PROXY: &[(&str, &str, &str, &[Code])] = &[
    (PODINFO, "{httpProxy: podinfo", "{httpProxy: other", &[Code::TargetMissing]),
    (PODINFO_SET, "[{name: podinfo, port: 80}]\n", "[{name: other, port: 80}]\n", &[Code::TargetMissing]),
    (PODINFO_SET, "[{name: podinfo, port: 80}]\n", "[{name: podinfo, port: 8080}]\n", &[Code::TargetMissing]),
    (PODINFO_SET, "[{name: podinfo, port: 80}]\n", "[{name: podinfo, port: 80}, {name: podinfo-canary, port: 80}]\n", &[Code::Conflict]),
    (PODINFO_SET, "[{name: podinfo, port: 80}]\n", "[{name: podinfo, port: 80, weight: -1}]\n", &[Code::RouteLimit]),
    (PODINFO_SET, "[{name: podinfo, port: 80}]\n", "[{name: podinfo, port: 80, weight: 33.3}]\n", &[Code::RouteLimit]),
    (PODINFO_SET, "[{name: podinfo, port: 80}]\n", "[{name: podinfo, port: 80, weight: 10001}]\n", &[Code::RouteLimit]),
    (PODINFO_SET, "[{name: podinfo, port: 80}]\n", "[{name: podinfo, port: 80, weight: 0}, {name: old, port: 80, weight: 1}]\n", &[Code::RouterLimit]),
    // Without any weight the shares are even.
    (PODINFO_SET, "[{name: podinfo, port: 80}]\n", "[{name: podinfo, port: 80, weight: 0}]\n", &[]),
    (PODINFO_SET, "  routes:\n", "  tcpproxy: {services: [{name: podinfo, port: 80}]}\n  routes:\n", &[Code::RouterLimit]),
    (PODINFO_SET, "  routes:\n", "  includes: [{name: docs, namespace: other}]\n  routes:\n", &[Code::CrossNamespace]),
    // Nobody has given the tenant a host.
    (PODINFO_SET, "  routes:\n", "  virtualhost: {fqdn: podinfo.example.org}\n  routes:\n", &[Code::HostNotAllowed]),
    (PODINFO_SET, "[{prefix: /}]", "[{prefix: /}, {header: {name: X-Canary, contains: a}}]", &[Code::RouteLimit]),
    (PODINFO_SET, "[{prefix: /}]", "[{prefix: /}, {header: {name: x-canary, exact: never}}]", &[Code::RouterLimit]),
    (PODINFO_SET, "[{prefix: /}]", "[{prefix: /}, {header: {name: x-canary, exact: always}}]", &[Code::RouteLimit]),
    (PODINFO, "{x-canary: always}", "{x-canary: {regex: '^a(b|c)$'}}, {x-a: b, x-c: d}", &[]),
    (PODINFO_SET, "[{prefix: /docs}]", "[{prefix: /}, {header: {name: x-api, present: true}}]", &[Code::RouteLimit]),
    (PODINFO_SET, "[{prefix: /docs}]", "[{prefix: /}, {header: {name: x-canary, exact: never}}]", &[]),
    (PODINFO_SET, "[{prefix: /docs}]", "[{prefix: /}, {header: {name: x-a, present: true}}, {header: {name: x-b, present: true}}]", &[]),
    (PODINFO, "headers: [{x-canary: always}]", "cookies: [{canary: always}]", &[]),
    (PODINFO, "headers: [{x-canary: always}]", "mirror: 10", &[]),
    (PODINFO_SET, "[{name: podinfo, port: 80}]\n", "[{name: podinfo, port: 80}, {name: audit, port: 80, mirror: true}]\n", &[]),
];

/// The destination of the example's RouteTable.
const KUBE: &str = "{single: {kube: {ref: {name: podinfo, namespace: shop}, port: 80}}}";

#[rustfmt::skip]
const OF_A_ROUTE_TABLE: &[(&str, &str, &str, &[Code])] = &[
    (PODINFO, "{routeTable: podinfo", "{routeTable: other", &[Code::TargetMissing]),
    (PODINFO_SET, "{name: podinfo, namespace: shop}", "{name: other, namespace: shop}", &[Code::TargetMissing]),
    (PODINFO_SET, "{name: podinfo, namespace: shop}, port: 80", "{name: podinfo, namespace: shop}, port: 8080", &[Code::TargetMissing]),
    (PODINFO_SET, "{name: podinfo, namespace: shop}", "{name: podinfo-canary, namespace: shop}", &[Code::TargetMissing, Code::Conflict]),
    (PODINFO_SET, "{name: podinfo, namespace: shop}", "{name: podinfo, namespace: blog}", &[Code::CrossNamespace]),
    (PODINFO_SET, "{name: podinfo, namespace: shop}", "{name: podinfo}", &[Code::CrossNamespace]),
    (PODINFO_SET, "routeAction: {single: {upstream: {name: docs, namespace: gloo-system}}}", "delegateAction: {ref: {name: site, namespace: blog}}", &[Code::CrossNamespace]),
    (PODINFO_SET, "routeAction: {single: {upstream: {name: docs, namespace: gloo-system}}}", "delegateAction: {name: site, namespace: blog}", &[Code::CrossNamespace]),
    (PODINFO_SET, "routeAction: {single: {upstream: {name: docs, namespace: gloo-system}}}", "delegateAction: {name: site}", &[Code::CrossNamespace]),
    (PODINFO_SET, "routeAction: {single: {upstream: {name: docs, namespace: gloo-system}}}", "delegateAction: {name: docs, namespace: shop}", &[]),
    (PODINFO_SET, "routeAction: {single: {upstream: {name: docs, namespace: gloo-system}}}", "delegateAction: {selector: {namespaces: [shop, blog]}}", &[Code::CrossNamespace]),
    (PODINFO_SET, "routeAction: {single: {upstream: {name: docs, namespace: gloo-system}}}", "delegateAction: {selector: {namespaces: ['*']}}", &[Code::CrossNamespace]),
    (PODINFO_SET, "routeAction: {single: {upstream: {name: docs, namespace: gloo-system}}}", "delegateAction: {selector: {namespaces: [shop], labels: {a: b}}}", &[]),
    (PODINFO_SET, "{upstream: {name: docs, namespace: gloo-system}}", "{upstream: {name: 'kube-svc:blog-site-80', namespace: blog}}", &[Code::CrossNamespace]),
    (PODINFO_SET, "{upstream: {name: docs, namespace: gloo-system}}", "{upstream: {name: 'kube-svc:shop-docs-80', namespace: shop}}", &[]),
    (PODINFO_SET, "{upstream: {name: docs, namespace: gloo-system}}", "{upstream: {name: 'kube-svc:shop-podinfo-80', namespace: shop}}", &[Code::RouteLimit]),
    (PODINFO_SET, "{upstream: {name: docs, namespace: gloo-system}}", "{upstream: {name: shop-podinfo-80, namespace: gloo-system}}", &[Code::RouteLimit]),
    (PODINFO_SET, "{upstream: {name: docs, namespace: gloo-system}}", "{upstream: {name: shop-podinfo-canary-80, namespace: gloo-system}}", &[Code::RouteLimit]),
    (PODINFO_SET, "{upstream: {name: docs, namespace: gloo-system}}", "{upstream: {name: shop-podinfo-old-80, namespace: gloo-system}}", &[]),
    (PODINFO_SET, KUBE, "{multi: {destinations: [{destination: {kube: {ref: {name: podinfo, namespace: shop}, port: 80}}, weight: 3}, {destination: {upstream: {name: 'kube-svc:shop-podinfo-canary-80', namespace: shop}}, weight: 1}]}}", &[Code::RouteLimit]),
    (PODINFO_SET, KUBE, "{multi: {destinations: [{destination: {kube: {ref: {name: podinfo, namespace: shop}, port: 80}}, weight: -1}]}}", &[Code::RouteLimit]),
    (PODINFO_SET, KUBE, "{multi: {destinations: [{destination: {kube: {ref: {name: podinfo, namespace: shop}, port: 80}}}]}}", &[Code::RouteLimit]),
    (PODINFO_SET, KUBE, "{multi: {destinations: [{destination: {kube: {ref: {name: podinfo, namespace: shop}, port: 80}}}, {destination: {upstream: {name: old}}, weight: 1}]}}", &[Code::RouterLimit]),
    (PODINFO_SET, KUBE, "{multi: {destinations: [{destination: {kube: {ref: {name: podinfo, namespace: shop}, port: 80}}, weight: 3}, {destination: {upstream: {name: old}}}]}}", &[]),
    (PODINFO_SET, "[{prefix: /}]", "[{headers: [{name: a, value: b}]}, {prefix: /}]", &[Code::RouteLimit]),
    (PODINFO_SET, "[{prefix: /}]", "[{prefix: /a, headers: [{name: a, value: b}]}, {prefix: /}]", &[]),
    (PODINFO_SET, "[{prefix: /}]", "[{prefix: /, headers: [{name: X-Canary, value: a, regex: true}]}]", &[Code::RouteLimit]),
    (PODINFO_SET, "[{prefix: /}]", "[{prefix: /, headers: [{name: x-canary, value: never}]}]", &[Code::RouterLimit]),
    (PODINFO_SET, "[{prefix: /docs}]", "[{prefix: /, headers: [{name: x-api}]}]", &[]),
    (PODINFO, "{x-canary: always}", "{x-canary: {regex: '^a(b|c)$'}}, {x-a: b, x-c: d}", &[]),
    (PODINFO, "headers: [{x-canary: always}]", "cookies: [{canary: always}]", &[]),
    (PODINFO, "headers: [{x-canary: always}]", "mirror: 10", &[Code::RouterLimit]),
    (PODINFO_SET, "kind: RouteTable", "kind: VirtualService", &[Code::KindNotAllowed]),
];

#[rustfmt::skip]
const OF_A_VIRTUAL_SERVICE: &[(&str, &str, &str, &[Code])] = &[
    (PODINFO, "{virtualService: podinfo", "{virtualService: other", &[Code::TargetMissing]),
    (PODINFO_SET, "host: podinfo.shop.svc", "host: podinfo.other.svc", &[Code::TargetMissing, Code::CrossNamespace]),
    (PODINFO_SET, "host: podinfo.shop.svc.cluster.local", "host: podinfo-canary", &[Code::TargetMissing, Code::Conflict]),
    // A delegate: who names it has hosts and gateways.
    (PODINFO_SET, "  hosts: [podinfo.example.org]\n", "", &[]),
    (PODINFO_SET, "  http:\n    - route", "  tcp: [{route: [{destination: {host: podinfo}}]}]\n  http:\n    - route", &[Code::RouterLimit]),
    (PODINFO_SET, "cluster.local}}]", "cluster.local}}]\n      mirror: {host: audit}", &[]),
    (PODINFO_SET, "cluster.local}}]", "cluster.local}}]\n      mirror: {host: podinfo-canary}", &[Code::Conflict]),
    (PODINFO_SET, "cluster.local}}]", "cluster.local}}]\n      mirrors: [{destination: {host: audit}}, {destination: {host: podinfo-canary.shop}}]", &[Code::Conflict]),
    (PODINFO_SET, "cluster.local}}]", "cluster.local}, weight: 10000}, {destination: {host: other}, weight: 10000}]", &[]),
    (PODINFO_SET, "cluster.local}}]", "cluster.local}, weight: 1}, {destination: {host: other}, weight: 10001}]", &[Code::RouteLimit]),
    (PODINFO_SET, "cluster.local}}]", "cluster.local}, weight: 20000}]", &[]),
    (PODINFO, "headers: [{x-canary: always}]", "mirror: 10", &[]),
    (PODINFO_SET, "networking.istio.io/v1", "networking.istio.io/v1beta1", &[Code::KindNotAllowed]),
];

/// Of the example's own route.
#[rustfmt::skip]
const OF_AN_HTTP_ROUTE: &[(&str, &str, &[Code])] = &[
    ("      backendRefs:\n", "      sessionPersistence: {sessionName: stay, type: Cookie}\n      backendRefs:\n", &[Code::RouterLimit]),
    ("      backendRefs:\n", "      sessionPersistence: null\n      backendRefs:\n", &[]),
    ("    - matches:\n", "    - {sessionPersistence: {sessionName: stay}, backendRefs: [{name: other, port: 80}]}\n    - matches:\n", &[]),
    ("      backendRefs:\n", "      filters: [{type: RequestMirror, requestMirror: {backendRef: {name: podinfo-canary, port: 80}}}]\n      backendRefs:\n", &[Code::Conflict]),
    ("    - matches:\n", "    - {filters: [{type: RequestMirror, requestMirror: {backendRef: {name: podinfo-canary, port: 80}}}], backendRefs: [{name: other, port: 80}]}\n    - matches:\n", &[Code::Conflict]),
    ("    - matches:\n", "    - {backendRefs: [{name: podinfo-canary, port: 80}]}\n    - matches:\n", &[Code::Conflict]),
    ("      backendRefs:\n", "      filters: [{type: RequestMirror, requestMirror: {backendRef: {name: audit, port: 80}}}]\n      backendRefs:\n", &[]),
    ("- {name: podinfo, port: 80}", "- {name: podinfo, port: 81}", &[Code::TargetMissing]),
];

/// What stands below `traffic` of the example, and the affinity after it.
const KEEPS: &str = "service: podinfo}\n    sessionAffinity: {cookie: stay, maxAge: 12h}";

#[rustfmt::skip]
const OF_AFFINITY: &[(&str, &str, &str, &[Code])] = &[
    (PODINFO, ", maxAge: 12h", "", &[]),
    (PODINFO, "12h", "0s", &[Code::Schema]),
    (PODINFO, "cookie: stay", "cookie: 'a b'", &[Code::Schema]),
    (PODINFO, "headers: [{x-canary: always}]", "cookies: [{canary: always}]", &[]),
    (PODINFO, "headers: [{x-canary: always}]", "cookies: [{canary: always}, {stay: always}]", &[Code::Conflict]),
    (PODINFO_SET, "value: /}\n", "value: /}\n          headers: [{name: Cookie, value: a=b}]\n", &[Code::RouteLimit]),
    (PODINFO_SET, "      backendRefs:\n", "      filters: [{type: ResponseHeaderModifier, responseHeaderModifier: {remove: [set-cookie]}}]\n      backendRefs:\n", &[Code::Conflict]),
    (PODINFO_SET, "      backendRefs:\n", "      filters: [{type: ResponseHeaderModifier, responseHeaderModifier: {add: [{name: Set-Cookie, value: a=b}]}}]\n      backendRefs:\n", &[]),
    (PODINFO_SET, "{name: podinfo, port: 80}\n", "{name: podinfo, port: 80, filters: [{type: ResponseHeaderModifier, responseHeaderModifier: {add: [{name: Set-Cookie, value: a=b}]}}]}\n", &[Code::Conflict]),
];

/// The same, and who got the candidate by weight keeps it.
fn keeping(mut tree: Tree) -> Tree {
    tree.edit(PODINFO, "service: podinfo}", KEEPS);
    tree
}

#[test]
fn session_affinity_is_there_where_a_route_tells_cookies_apart() {
    for (path, from, to, wanted) in OF_AFFINITY {
        let mut tree = keeping(Tree::example());
        tree.edit(path, from, to);
        assert_eq!(found(&tree), **wanted, "{to}\n{:#?}", tree.load().errors());
    }
    let mut by_mesh = keeping(behind(VIRTUAL_SERVICE));
    assert_eq!(found(&by_mesh), []);
    by_mesh.edit(PODINFO_SET, "cluster.local}}]", "cluster.local}, headers: {response: {set: {set-cookie: a=b}}}}]");
    assert_eq!(found(&by_mesh), [Code::Conflict]);
}

#[test]
fn where_a_router_lacks_session_affinity_it_says_why() {
    let mut by_pods = keeping(Tree::example());
    by_pods.edit(PODINFO, "gatewayAPI: {httpRoute: podinfo, ", "replicas: {");
    by_pods.edit(PODINFO, "        headers: [{x-canary: always}]\n", "").edit(PODINFO, "weight: 10\n", "weight: 34\n");
    let mut switched = keeping(Tree::example());
    switched.edit(PODINFO, "gatewayAPI: {httpRoute: podinfo, service: podinfo}", "service: podinfo");
    switched.edit(PODINFO, "        headers: [{x-canary: always}]\n        weight: 10", "        preview: fullSize");
    switched.edit(PODINFO, "{weight: 50}", "{preview: fullSize}");
    for (tree, why) in [
        (keeping(behind(GRPC_ROUTE)), "gRPC clients keep no cookies"),
        (keeping(behind(HTTP_PROXY)), "one more setting of each service, which is not built"),
        (keeping(behind(ROUTE_TABLE)), "one more setting of each destination, which is not built"),
        (keeping(behind(INGRESS)), "also at weight 100, and at the candidate of the next run"),
        (keeping(behind(TRAEFIK)), "keeps users at stable too, and at the candidate of the next run"),
        (by_pods, "this router looks at no request"),
        (switched, "this router looks at no request"),
    ] {
        assert_eq!(found(&tree), [Code::RouterLimit], "{:#?}", tree.load().errors());
        let text = report(&tree.load(), Output::Text, Colour::Never).text;
        assert!(text.contains(why) && text.contains("sessionAffinity: {cookie: stay, maxAge: 12h}"), "{text}");
    }
}

#[test]
fn what_a_router_cannot_do_has_its_name() {
    for (route, mistakes) in [
        (GRPC_ROUTE, OF_A_GRPC_ROUTE),
        (HTTP_PROXY, OF_AN_HTTP_PROXY),
        (INGRESS, OF_AN_INGRESS),
        (ROUTE_TABLE, OF_A_ROUTE_TABLE),
        (TRAEFIK, OF_TRAEFIK),
        (VIRTUAL_SERVICE, OF_A_VIRTUAL_SERVICE),
    ] {
        for (path, from, to, wanted) in mistakes {
            let mut tree = behind(route);
            tree.edit(path, from, to);
            assert_eq!(found(&tree), **wanted, "{to}\n{:#?}", tree.load().errors());
        }
    }
    for (from, to, wanted) in OF_AN_HTTP_ROUTE {
        let mut tree = Tree::example();
        tree.edit(PODINFO_SET, from, to);
        assert_eq!(found(&tree), **wanted, "{to}\n{:#?}", tree.load().errors());
    }
    let mut twice = behind(VIRTUAL_SERVICE);
    twice.edit(PODINFO_SET, "cluster.local}}]", "cluster.local}}]\n      mirror: {host: audit}");
    twice.edit(PODINFO, "headers: [{x-canary: always}]", "mirror: 10");
    assert_eq!(found(&twice), [Code::RouterLimit]);
}

#[test]
fn an_http_proxy_has_one_mirror_for_each_route() {
    let mut twice = behind(HTTP_PROXY);
    twice.edit(
        PODINFO_SET,
        "[{name: podinfo, port: 80}]\n",
        "[{name: podinfo, port: 80}, {name: audit, port: 80, mirror: true}]\n",
    );
    twice.edit(PODINFO, "headers: [{x-canary: always}]", "mirror: 10");
    assert_eq!(found(&twice), [Code::RouterLimit]);
}

#[test]
fn where_session_persistence_would_keep_users_it_says_what_to_write_in_its_place() {
    let mut by_http = Tree::example();
    by_http.edit(
        PODINFO_SET,
        "      backendRefs:\n",
        "      sessionPersistence: {sessionName: stay}\n      backendRefs:\n",
    );
    let mut by_grpc = behind(GRPC_ROUTE);
    by_grpc.edit(PODINFO_SET, "matches: [{method", "sessionPersistence: {sessionName: stay}\n      matches: [{method");
    for (tree, help) in [(by_http, "traffic.sessionAffinity"), (by_grpc, "expose: {headers:")] {
        let text = report(&tree.load(), Output::Text, Colour::Never).text;
        assert!(text.contains("sessionPersistence: {sessionName: stay}\n") && text.contains(help), "{text}");
    }
}

#[test]
fn a_route_without_a_parent_is_warned_of() {
    let mut tree = Tree::example();
    tree.edit(PODINFO_SET, "  parentRefs:\n    - {name: public, namespace: gateway}\n", "");
    let loaded = tree.load();
    assert_eq!(codes(&loaded, "shop/podinfo"), []);
    assert_eq!(loaded.warnings.iter().map(|warning| warning.code).collect::<Vec<_>>(), [Code::RouterLimit]);
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
        text(HTTP_PROXY, PODINFO_SET, "[{name: podinfo, port: 80}]\n", "[{name: podinfo, port: 8080, weight: -1}]\n"),
        text(HTTP_PROXY, PODINFO_SET, "[{prefix: /docs}]", "[{prefix: /}, {header: {name: x-api, present: true}}]"),
        text(HTTP_PROXY, PODINFO_SET, "  routes:\n", "  virtualhost: {fqdn: podinfo.example.org}\n  routes:\n"),
        text(ROUTE_TABLE, PODINFO_SET, "kind: RouteTable", "kind: VirtualService"),
        text(ROUTE_TABLE, PODINFO_SET, "[{prefix: /}]", "[{headers: [{name: a, value: b}]}, {prefix: /}]"),
        text(
            ROUTE_TABLE,
            PODINFO_SET,
            "name: docs, namespace: gloo-system",
            "name: shop-podinfo-canary-80, namespace: gloo-system",
        ),
        text(GRPC_ROUTE, PODINFO, "{grpcRoute: podinfo", "{grpcRoute: podinfo, httpRoute: podinfo"),
        text(VIRTUAL_SERVICE, PODINFO_SET, "  http:\n    - route", "  tcp: [{route: []}]\n  http:\n    - route"),
    ];
    insta::assert_snapshot!(texts.join("\n"));
}
