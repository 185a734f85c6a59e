//! What of the world's objects leads requests to a candidate, for each router.

use crate::convergence::shape::Router;
use serde_json::{Value, json};

const WEIGHT: &str = "nginx.ingress.kubernetes.io/canary-weight";
const HEADER: &str = "nginx.ingress.kubernetes.io/canary-by-header";
const COOKIE: &str = "nginx.ingress.kubernetes.io/canary-by-cookie";

/// A Service that requests are led to.
pub(crate) struct Backend {
    /// Whether only those with some header are.
    pub(crate) alone: bool,
    pub(crate) to: String,
    pub(crate) weight: u64,
}

impl Router {
    /// The object that splits the requests of a rollout; none where pods or a Service do.
    pub(crate) fn route(self, name: &str) -> Option<(&'static str, String)> {
        match self {
            Self::Route => Some(("httproutes", name.to_owned())),
            Self::Grpc => Some(("grpcroutes", name.to_owned())),
            Self::Mesh => Some(("virtualservices", name.to_owned())),
            Self::Ingress => Some(("ingresses", format!("{name}-canary"))),
            Self::Traefik => Some(("traefikservices", name.to_owned())),
            Self::IngressRoute => Some(("ingressroutes", name.to_owned())),
            Self::Proxy => Some(("httpproxies", name.to_owned())),
            Self::Table => Some(("routetables", name.to_owned())),
            Self::Pods | Self::Service | Self::Set | Self::Daemon => None,
        }
    }

    /// Where that object leads.
    pub(crate) fn backends(self, name: &str, route: &Value) -> Vec<Backend> {
        match self {
            Self::Route | Self::Grpc => items(&route["spec"]["rules"]).flat_map(rule).collect(),
            Self::Mesh => items(&route["spec"]["http"]).flat_map(http).collect(),
            Self::Ingress => ingress(name, &route["metadata"]["annotations"]),
            Self::Traefik => weighted(name, false, &route["spec"]["weighted"]["services"]).collect(),
            Self::Table => items(&route["spec"]["routes"]).flat_map(tabled).collect(),
            Self::Proxy => items(&route["spec"]["routes"]).flat_map(proxied).collect(),
            Self::IngressRoute => items(&route["spec"]["routes"])
                .flat_map(|one| {
                    let alone = one["match"].as_str().is_some_and(|rule| rule.contains("Header"));
                    weighted(name, alone, &one["services"])
                })
                .collect(),
            Self::Pods | Self::Service | Self::Set | Self::Daemon => Vec::new(),
        }
    }

    /// All requests are led past stable's Service, by a hand.
    pub(crate) fn raise(self, service: &str, route: &mut Value) {
        let weight = |to: &Value| Value::from(if *to == *service { 0 } else { 100 });
        match self {
            Self::Route | Self::Grpc => {
                for to in route["spec"]["rules"][0]["backendRefs"].as_array_mut().into_iter().flatten() {
                    to["weight"] = weight(&to["name"]);
                }
            }
            Self::Mesh => {
                let all = route["spec"]["http"].as_array_mut().and_then(|all| all.last_mut());
                for to in all.and_then(|http| http["route"].as_array_mut()).into_iter().flatten() {
                    to["weight"] = weight(&to["destination"]["host"]);
                }
            }
            Self::Ingress => route["metadata"]["annotations"][WEIGHT] = json!("100"),
            Self::Proxy => {
                let all = route["spec"]["routes"].as_array_mut().and_then(|all| all.last_mut());
                for to in all.and_then(|one| one["services"].as_array_mut()).into_iter().flatten() {
                    if to["mirror"].is_null() {
                        to["weight"] = weight(&to["name"]);
                    }
                }
            }
            Self::Table => {
                let all = route["spec"]["routes"].as_array_mut().and_then(|all| all.last_mut());
                let several = all.and_then(|one| one["routeAction"]["multi"]["destinations"].as_array_mut());
                for to in several.into_iter().flatten() {
                    to["weight"] = weight(&to["destination"]["kube"]["ref"]["name"]);
                }
            }
            // What gets nothing is not named there.
            Self::Traefik => route["spec"]["weighted"]["services"] = raised(service),
            Self::IngressRoute => {
                if let Some(last) = route["spec"]["routes"].as_array_mut().and_then(|all| all.last_mut()) {
                    last["services"] = raised(service);
                }
            }
            Self::Pods | Self::Service | Self::Set | Self::Daemon => {}
        }
    }

    /// What of the rollout's file says how requests to that Service are split; nothing where a workload does by itself.
    pub(crate) fn traffic(self, name: &str, service: &str, sticky: bool) -> String {
        let by = match self {
            Self::Route => format!("gatewayAPI: {{httpRoute: {name}, service: {service}}}"),
            Self::Grpc => format!("gatewayAPI: {{grpcRoute: {name}, service: {service}}}"),
            Self::Mesh => format!("istio: {{virtualService: {name}, service: {name}}}"),
            Self::Ingress => format!("nginx: {{ingress: {name}, service: {name}}}"),
            Self::Traefik => format!("traefik: {{traefikService: {name}, service: {name}}}"),
            Self::IngressRoute => format!("traefik: {{ingressRoute: {name}, service: {name}}}"),
            Self::Proxy => format!("contour: {{httpProxy: {name}, service: {name}}}"),
            Self::Table => format!("gloo: {{routeTable: {name}, service: {name}}}"),
            Self::Pods => format!("replicas: {{service: {name}}}"),
            Self::Service => format!("service: {name}"),
            Self::Set | Self::Daemon => return String::new(),
        };
        let stay = if sticky { ", sessionAffinity: {cookie: stay, maxAge: 1h}" } else { "" };
        format!("  traffic: {{{by}, settle: 2s, drain: 4s{stay}}}\n")
    }

    /// The manifest that leads requests to the Service.
    pub(crate) fn manifest(self, name: &str, service: &str) -> String {
        match self {
            Self::Route | Self::Grpc => format!(
                "---
apiVersion: gateway.networking.k8s.io/v1
kind: {}
metadata: {{name: {name}}}
spec: {{parentRefs: [{{name: public}}], rules: [{{backendRefs: [{{name: {service}, port: 80}}]}}]}}
",
                if self == Self::Grpc { "GRPCRoute" } else { "HTTPRoute" }
            ),
            Self::Mesh => format!(
                "---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {{name: {name}}}
spec: {{hosts: [{name}.example.org], gateways: [public], http: [{{route: [{{destination: {{host: {name}}}}}]}}]}}
"
            ),
            Self::Ingress => format!(
                "---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {{name: {name}}}
spec:
  ingressClassName: nginx
  rules: [{{http: {{paths: [{{path: /, pathType: Prefix, backend: {{service: {{name: {name}, port: {{number: 80}}}}}}}}]}}}}]
"
            ),
            Self::Traefik => {
                let service = format!(
                    "---
apiVersion: traefik.io/v1alpha1
kind: TraefikService
metadata: {{name: {name}}}
spec: {{weighted: {{services: [{{name: {name}, port: 80}}]}}}}
"
                );
                // It stays as it is.
                service + &ingress_route(name, "kind: TraefikService")
            }
            Self::IngressRoute => ingress_route(name, "port: 80"),
            // Operations' VirtualService delegates to it.
            Self::Table => format!(
                "---
apiVersion: gateway.solo.io/v1
kind: RouteTable
metadata: {{name: {name}}}
spec: {{routes: [{{matchers: [{{prefix: /}}], routeAction: {{single: {{kube: {{ref: {{name: {name}, namespace: shop}}, port: 80}}}}}}}}]}}
"
            ),
            // Operations' root includes it.
            Self::Proxy => format!(
                "---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {{name: {name}}}
spec: {{routes: [{{conditions: [{{prefix: /}}], services: [{{name: {name}, port: 80}}]}}]}}
"
            ),
            Self::Pods | Self::Service | Self::Set | Self::Daemon => String::new(),
        }
    }
}

fn ingress_route(name: &str, to: &str) -> String {
    format!(
        "---
apiVersion: traefik.io/v1alpha1
kind: IngressRoute
metadata: {{name: {name}}}
spec:
  entryPoints: [websecure]
  routes: [{{match: Host(`{name}.example.org`), kind: Rule, services: [{{name: {name}, {to}}}]}}]
"
    )
}

fn raised(service: &str) -> Value {
    json!([{"name": format!("{service}-canary"), "port": 80}])
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// Whether all that is asked for has a header.
fn asks_for_headers(asked: &Value, is_header: impl Fn(&Value) -> bool) -> bool {
    let asked = asked.as_array().map_or(&[][..], Vec::as_slice);
    !asked.is_empty() && asked.iter().all(|found| is_header(&found["headers"]))
}

fn rule(rule: &Value) -> impl Iterator<Item = Backend> {
    let alone = asks_for_headers(&rule["matches"], Value::is_array);
    items(&rule["backendRefs"]).map(move |to| backend(alone, &to["name"], &to["weight"]))
}

fn http(http: &Value) -> impl Iterator<Item = Backend> {
    let alone = asks_for_headers(&http["match"], Value::is_object);
    let several = items(&http["route"]).count() > 1;
    items(&http["route"]).map(move |to| {
        let default = if several { Value::from(0) } else { Value::from(100) };
        let weight = if to["weight"].is_null() { &default } else { &to["weight"] };
        backend(alone, &to["destination"]["host"], weight)
    })
}

/// Services of Contour: without any weight all get the same.
fn proxied(route: &Value) -> impl Iterator<Item = Backend> {
    let alone = items(&route["conditions"]).any(|condition| condition["header"].is_object());
    let led = move || items(&route["services"]).filter(|to| to["mirror"] != true);
    let even = led().all(|to| to["weight"].as_u64().unwrap_or(0) == 0);
    led().map(move |to| {
        let weight = if even { Value::from(1) } else { Value::from(to["weight"].as_u64().unwrap_or(0)) };
        backend(alone, &to["name"], &weight)
    })
}

/// Destinations of Gloo.
fn tabled(route: &Value) -> Vec<Backend> {
    let alone = asks_for_headers(&route["matchers"], Value::is_array);
    let action = &route["routeAction"];
    let to = |to: &Value| to["kube"]["ref"]["name"].clone();
    let single = action.get("single").map(|single| backend(alone, &to(single), &Value::from(1)));
    let several = items(&action["multi"]["destinations"]);
    let several = several.map(|entry| {
        let weight = Value::from(entry["weight"].as_u64().unwrap_or(0));
        backend(alone, &to(&entry["destination"]), &weight)
    });
    single.into_iter().chain(several).collect()
}

fn backend(alone: bool, to: &Value, weight: &Value) -> Backend {
    Backend { alone, to: to.as_str().unwrap_or_default().to_owned(), weight: weight.as_u64().unwrap_or(1) }
}

/// Whether a TraefikService of that name is named.
pub(crate) fn comes_by(spec: &Value, name: &str) -> bool {
    match spec {
        Value::Object(fields) => {
            fields.get("kind").is_some_and(|kind| kind == "TraefikService") && spec["name"] == name
                || fields.values().any(|field| comes_by(field, name))
        }
        Value::Array(all) => all.iter().any(|one| comes_by(one, name)),
        _ => false,
    }
}

/// Services of Traefik. What comes by one that copies is stable's.
fn weighted(name: &str, alone: bool, services: &Value) -> impl Iterator<Item = Backend> {
    items(services).map(move |to| {
        let copies = to["kind"] == "TraefikService";
        let name = if copies { Value::from(name) } else { to["name"].clone() };
        backend(alone, &name, &to["weight"])
    })
}

/// A canary Ingress takes its share from the other one.
fn ingress(name: &str, annotations: &Value) -> Vec<Backend> {
    let canary = format!("{name}-canary");
    let weight = annotations[WEIGHT].as_str().and_then(|weight| weight.parse().ok()).unwrap_or(0).min(100);
    let mut all = vec![
        Backend { alone: false, to: name.to_owned(), weight: 100 - weight },
        Backend { alone: false, to: canary.clone(), weight },
    ];
    for told in [HEADER, COOKIE] {
        if annotations[told].as_str().is_some_and(|name| !name.is_empty()) {
            all.push(Backend { alone: true, to: canary.clone(), weight: 100 });
        }
    }
    all
}
