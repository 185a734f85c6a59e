//! The routers, each with manifests that it works on and with what a hand may do to them.

use super::*;

/// One router, in one layout.
#[derive(Clone)]
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) layout: Layout,
    pub(super) router: Router,
    pub(super) target: TargetKind,
    /// Beside the target.
    pub(super) manifests: Vec<Object>,
    pub(super) tells: Tells,
    /// What a hand does to an object so that requests are sent in a way that no phase describes.
    pub(super) foreign: Vec<(ObjectRef, Hand)>,
}

/// What a hand does to an object.
type Hand = fn(&mut Value);

/// Which requests the router tells from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tells {
    /// None.
    Nobody,
    /// Those with one header, and those with one cookie.
    OneHeaderAndCookie,
    /// None; but it can send copies.
    Copies,
    /// Those with any headers.
    All,
    /// Those with any headers; and it can send copies.
    AllAndCopies,
}

pub(super) fn rows() -> Vec<Row> {
    let mut rows = vec![
        gateway_api(),
        grpc(),
        istio(),
        nginx(),
        traefik(),
        ingress_route(),
        included(),
        root(),
        gloo(),
        replicas(),
        service(),
        partition(),
    ];
    let copied = rows.iter().filter(|row| [By::Route, By::Selector].contains(&row.router.by()));
    let copies: Vec<Row> = copied.map(|row| Row { layout: Layout::Primary, ..row.clone() }).collect();
    rows.extend(copies);
    rows
}

fn web() -> ObjectName {
    name("web")
}

fn backend_service() -> Object {
    let spec = json!({"selector": {"app": "web", "tier": "front"}, "ports": [{"port": 80, "name": "http"}]});
    object(Kind::Service, "web", json!({"spec": spec}))
}

fn named(kind: Kind, of: &str) -> ObjectRef {
    ObjectRef { kind, namespace: namespace(), name: name(of) }
}

fn gateway_api() -> Row {
    let rules = json!([
        {"name": "docs", "matches": [{"path": {"type": "PathPrefix", "value": "/docs"}}], "backendRefs": [{"name": "docs", "port": 80}]},
        {"name": "main", "timeouts": {"request": "10s"}, "backendRefs": [{"name": "web", "port": 80}, {"name": "old", "port": 80, "weight": 3}]},
    ]);
    let spec = json!({"parentRefs": [{"name": "gw"}], "hostnames": ["web.example.org"], "rules": rules});
    let route = object(Kind::HttpRoute, "web", json!({"metadata": {"annotations": {"note": "ours"}}, "spec": spec}));
    Row {
        name: "gatewayAPI",
        layout: Layout::InPlace,
        router: Router::GatewayApi { http_route: web(), service: web() },
        target: TargetKind::Deployment,
        manifests: vec![backend_service(), route],
        tells: Tells::AllAndCopies,
        foreign: vec![(named(Kind::HttpRoute, "web"), |route| {
            route["spec"]["rules"].as_array_mut().unwrap().push(json!({"backendRefs": [{"name": "web-canary"}]}));
        })],
    }
}

fn grpc() -> Row {
    let by_method = json!([
        {"method": {"type": "Exact", "service": "shop.Cart", "method": "Add"}, "headers": [{"name": "x-api", "value": "2"}]},
        {"method": {"type": "RegularExpression", "service": "shop[.].*"}},
    ]);
    let rules = json!([
        {"matches": [{"method": {"service": "docs.Docs"}}], "backendRefs": [{"name": "docs", "port": 80}]},
        {"name": "cart", "matches": by_method, "backendRefs": [{"name": "web", "port": 80}]},
        {"backendRefs": [{"name": "web", "port": 80, "weight": 2}, {"name": "old", "port": 80}]},
    ]);
    let spec = json!({"parentRefs": [{"name": "gw"}, {"name": "mesh", "sectionName": "grpc"}], "rules": rules});
    Row {
        name: "gatewayAPI with a GRPCRoute",
        layout: Layout::InPlace,
        target: TargetKind::Deployment,
        router: Router::Grpc { grpc_route: web(), service: web() },
        manifests: vec![backend_service(), object(Kind::GrpcRoute, "web", json!({"spec": spec}))],
        tells: Tells::AllAndCopies,
        foreign: vec![(named(Kind::GrpcRoute, "web"), |route| {
            route["spec"]["rules"].as_array_mut().unwrap().push(json!({"backendRefs": [{"name": "web-canary"}]}));
        })],
    }
}

fn istio() -> Row {
    let to = |host: &str| json!({"destination": {"host": host, "port": {"number": 80}, "subset": "v1"}});
    let old = json!({"destination": {"host": "old.other.svc.cluster.local"}, "weight": 25, "headers": {"request": {}}});
    let mut most = to("web.shop.svc.cluster.local");
    most["weight"] = 75.into();
    let http = json!([
        {"name": "docs", "match": [{"uri": {"prefix": "/docs"}}], "route": [to("docs")], "timeout": "5s"},
        {"match": [{"uri": {"exact": "/x"}, "headers": {"x-api": {"prefix": "2"}}}], "route": [to("web")], "retries": {"attempts": 3}},
        {"match": [{"uri": {"prefix": "/old"}}], "redirect": {"uri": "/"}},
        {"name": "main", "route": [most, old]},
    ]);
    let spec = json!({"hosts": ["web.example.org"], "gateways": ["istio-system/public"], "http": http});
    let rule = json!({"host": "web", "subsets": [{"name": "v1", "labels": {"app": "web"}}], "trafficPolicy": {"tls": {"mode": "DISABLE"}}});
    Row {
        name: "istio",
        layout: Layout::InPlace,
        router: Router::Istio { virtual_service: web(), service: web() },
        target: TargetKind::Deployment,
        manifests: vec![
            backend_service(),
            object(Kind::VirtualService, "web", json!({"spec": spec})),
            object(Kind::DestinationRule, "web", json!({"spec": rule})),
        ],
        tells: Tells::AllAndCopies,
        foreign: vec![
            (named(Kind::VirtualService, "web"), |route| {
                route["spec"]["http"]
                    .as_array_mut()
                    .unwrap()
                    .push(json!({"route": [{"destination": {"host": "web-canary.shop"}}]}));
            }),
            (named(Kind::VirtualService, "web"), |route| {
                route["spec"]["http"][0]["mirror"] = json!({"host": "web-canary"});
            }),
        ],
    }
}

fn nginx() -> Row {
    let path = |path: &str, service: &str| {
        let backend = json!({"service": {"name": service, "port": {"number": 80}}});
        json!({"path": path, "pathType": "Prefix", "backend": backend})
    };
    let rules = json!([
        {"host": "web.example.org", "http": {"paths": [path("/docs", "docs"), path("/", "web")]}},
        {"host": "docs.example.org", "http": {"paths": [path("/", "docs")]}},
    ]);
    let annotations = json!({"nginx.ingress.kubernetes.io/proxy-body-size": "8m", "cert-manager.io/issuer": "ca"});
    let spec = json!({"ingressClassName": "nginx", "tls": [{"hosts": ["web.example.org"], "secretName": "web"}], "rules": rules});
    let ingress = object(Kind::Ingress, "web", json!({"metadata": {"annotations": annotations}, "spec": spec}));
    let canary = || named(Kind::Ingress, "web-canary");
    Row {
        name: "nginx",
        layout: Layout::InPlace,
        router: Router::Nginx { ingress: web(), service: web() },
        target: TargetKind::Deployment,
        manifests: vec![backend_service(), ingress],
        tells: Tells::OneHeaderAndCookie,
        foreign: vec![
            (named(Kind::Ingress, "web"), |main| {
                main["spec"]["rules"][0]["http"]["paths"][1]["backend"]["service"]["name"] = "web-canary".into();
            }),
            (canary(), |canary| {
                canary["metadata"]["annotations"]["nginx.ingress.kubernetes.io/canary"] = "false".into();
            }),
            (canary(), |canary| {
                canary["metadata"]["annotations"]["nginx.ingress.kubernetes.io/canary-weight"] = "many".into();
            }),
            (canary(), |canary| {
                canary["metadata"]["annotations"]["nginx.ingress.kubernetes.io/canary-by-cookie"] = "me".into();
            }),
        ],
    }
}

fn traefik() -> Row {
    let entries = json!([{"name": "web", "port": 80, "passHostHeader": true}, {"name": "old", "kind": "TraefikService", "weight": 3}]);
    let leads = json!([{"match": "Host(`web.example.org`)", "kind": "Rule", "services": [{"name": "web", "kind": "TraefikService"}]}]);
    Row {
        name: "traefik",
        layout: Layout::InPlace,
        target: TargetKind::Deployment,
        router: Router::Traefik { traefik_service: web(), service: web() },
        manifests: vec![
            backend_service(),
            object(Kind::TraefikService, "web", json!({"spec": {"weighted": {"services": entries}}})),
            object(Kind::IngressRoute, "web", json!({"spec": {"entryPoints": ["websecure"], "routes": leads}})),
        ],
        tells: Tells::Copies,
        foreign: vec![(named(Kind::TraefikService, "web"), |service| {
            service["spec"]["weighted"]["services"] = json!([{"name": "web-canary", "port": 80}]);
        })],
    }
}

fn ingress_route() -> Row {
    let routes = json!([
        {"match": "Host(`web.example.org`) && PathPrefix(`/docs`)", "kind": "Rule", "services": [{"name": "docs", "port": 80}]},
        {"match": "Host(`web.example.org`)", "kind": "Rule", "middlewares": [{"name": "auth"}],
         "services": [{"name": "web", "port": 80}, {"name": "old", "port": 80, "weight": 3}]},
        {"match": "Host(`a.example.org`) || Host(`b.example.org`)", "priority": 7, "services": [{"name": "web", "port": 80}]},
    ]);
    let spec = json!({"entryPoints": ["websecure"], "routes": routes, "tls": {}});
    Row {
        name: "traefik by an IngressRoute",
        layout: Layout::InPlace,
        target: TargetKind::Deployment,
        router: Router::IngressRoute { ingress_route: web(), service: web() },
        manifests: vec![backend_service(), object(Kind::IngressRoute, "web", json!({"spec": spec}))],
        tells: Tells::AllAndCopies,
        foreign: vec![(named(Kind::IngressRoute, "web"), |route| {
            let all =
                json!({"match": "PathPrefix(`/`)", "priority": 1000, "services": [{"name": "web-canary", "port": 80}]});
            route["spec"]["routes"].as_array_mut().unwrap().push(all);
        })],
    }
}

/// An HTTPProxy that another includes.
fn included() -> Row {
    let to = |name: &str| json!({"name": name, "port": 80});
    let routes = json!([
        {"conditions": [{"prefix": "/docs"}], "services": [to("docs")]},
        {"conditions": [{"exact": "/x"}, {"header": {"name": "X-Api", "contains": "2"}}, {"queryParameter": {"name": "a", "present": true}}],
         "services": [to("web")], "retryPolicy": {"count": 3}},
        {"conditions": [{"prefix": "/old"}], "requestRedirectPolicy": {"path": "/"}},
        {"conditions": [{"prefix": "/"}], "timeoutPolicy": {"response": "10s"},
         "services": [{"name": "web", "port": 80, "protocol": "h2c"}, {"name": "old", "port": 80}]},
    ]);
    Row {
        name: "contour",
        layout: Layout::InPlace,
        target: TargetKind::Deployment,
        router: Router::Contour { http_proxy: web(), service: web() },
        manifests: vec![backend_service(), object(Kind::HttpProxy, "web", json!({"spec": {"routes": routes}}))],
        tells: Tells::AllAndCopies,
        foreign: vec![(named(Kind::HttpProxy, "web"), |proxy| {
            let all = json!({"services": [{"name": "web-canary", "port": 80}]});
            proxy["spec"]["routes"].as_array_mut().unwrap().push(all);
        })],
    }
}

/// One that has a host of its own.
fn root() -> Row {
    let routes = json!([{"services": [{"name": "web", "port": 80, "weight": 7}]}]);
    let spec = json!({"virtualhost": {"fqdn": "web.example.org"}, "includes": [{"name": "docs"}], "routes": routes});
    Row {
        name: "contour by a root",
        manifests: vec![backend_service(), object(Kind::HttpProxy, "web", json!({"spec": spec}))],
        ..included()
    }
}

fn gloo() -> Row {
    let to = |name: &str| json!({"kube": {"ref": {"name": name, "namespace": "shop"}, "port": 80}});
    let old = json!({"upstream": {"name": "old", "namespace": "gloo-system"}});
    let several = json!([{"destination": to("web"), "weight": 3, "options": {"headerManipulation": {}}}, {"destination": old, "weight": 1}]);
    let routes = json!([
        {"name": "docs", "matchers": [{"prefix": "/docs"}], "routeAction": {"single": to("docs")}},
        {"matchers": [{"exact": "/x", "methods": ["GET"], "headers": [{"name": "X-Api", "invertMatch": true}]}, {"prefix": "/y"}],
         "routeAction": {"single": to("web")}, "optionsConfigRefs": {"delegateOptions": [{"name": "a", "namespace": "shop"}]}},
        {"matchers": [{"prefix": "/old"}], "redirectAction": {"pathRedirect": "/"}},
        {"name": "main", "inheritablePathMatchers": true, "options": {"timeout": "10s"}, "routeAction": {"multi": {"destinations": several}}},
    ]);
    Row {
        name: "gloo",
        layout: Layout::InPlace,
        target: TargetKind::Deployment,
        router: Router::Gloo { route_table: web(), service: web() },
        manifests: vec![
            backend_service(),
            object(Kind::RouteTable, "web", json!({"spec": {"weight": 10, "routes": routes}})),
        ],
        tells: Tells::All,
        foreign: vec![(named(Kind::RouteTable, "web"), |table| {
            let to = json!({"kube": {"ref": {"name": "web-canary", "namespace": "shop"}, "port": 80}});
            table["spec"]["routes"].as_array_mut().unwrap().push(json!({"routeAction": {"single": to}}));
        })],
    }
}

fn replicas() -> Row {
    Row {
        name: "replicas",
        layout: Layout::InPlace,
        router: Router::Replicas { service: web() },
        target: TargetKind::Deployment,
        manifests: vec![backend_service()],
        tells: Tells::Nobody,
        foreign: vec![(named(Kind::Service, "web"), |service| {
            service["spec"]["selector"][crate::manifest::object::PODS] = "fedcba9876543210".into();
        })],
    }
}

fn service() -> Row {
    Row {
        name: "service",
        layout: Layout::InPlace,
        router: Router::Service { service: web() },
        target: TargetKind::Deployment,
        manifests: vec![backend_service()],
        tells: Tells::Nobody,
        foreign: Vec::new(),
    }
}

fn partition() -> Row {
    Row {
        name: "partition",
        layout: Layout::InPlace,
        router: Router::Units(UnitKind::StatefulSet),
        target: TargetKind::StatefulSet,
        manifests: vec![backend_service()],
        tells: Tells::Nobody,
        foreign: Vec::new(),
    }
}

/// The router after that one; without one, the first. A new router has no place among them before it is named here, and needs a row then,
/// or a reason for having none.
pub(super) fn following(router: Option<&Router>) -> Option<Router> {
    Some(match router {
        None => Router::GatewayApi { http_route: web(), service: web() },
        Some(Router::GatewayApi { .. }) => Router::Grpc { grpc_route: web(), service: web() },
        Some(Router::Grpc { .. }) => Router::Nginx { ingress: web(), service: web() },
        Some(Router::Nginx { .. }) => Router::Istio { virtual_service: web(), service: web() },
        Some(Router::Istio { .. }) => Router::Traefik { traefik_service: web(), service: web() },
        Some(Router::Traefik { .. }) => Router::IngressRoute { ingress_route: web(), service: web() },
        Some(Router::IngressRoute { .. }) => Router::Contour { http_proxy: web(), service: web() },
        Some(Router::Contour { .. }) => Router::Gloo { route_table: web(), service: web() },
        Some(Router::Gloo { .. }) => Router::Replicas { service: web() },
        Some(Router::Replicas { .. }) => Router::Service { service: web() },
        Some(Router::Service { .. }) => Router::Units(UnitKind::StatefulSet),
        Some(Router::Units(UnitKind::StatefulSet)) => Router::Units(UnitKind::DaemonSet),
        Some(Router::Units(UnitKind::DaemonSet)) => Router::Units(UnitKind::Node),
        Some(Router::Units(UnitKind::Node)) => return None,
    })
}

/// The routers without a row, and where the same is held of them.
pub(super) const WITHOUT: [(Router, &str); 2] = [
    (
        Router::Units(UnitKind::DaemonSet),
        "no object says its split: it is which pods were deleted since, and what is rendered depends on them. \
         workload/kinds/daemon/tests.rs has a world of pods for it",
    ),
    (
        Router::Units(UnitKind::Node),
        "no object says its split: it is which nodes are told what, each by itself. workload/kinds/nodes/tests.rs has a fleet for it",
    ),
];
