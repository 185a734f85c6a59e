//! What splits requests in the place of other tools' routers, how a rollout's file says so, and who counts them.

use super::Tool::{self, Argo, Flagger};
use Counts::{Application, Proxy, Templates, Unknown};
use Router::{Gateway, Istio, Nginx, Service, Traefik};
use serde_json::{Value, json};
use tidegate_controller::manifest::object::Kind;

/// What splits requests here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Router {
    Gateway,
    Istio,
    Nginx,
    Traefik,
    Service,
    Replicas,
    /// Nothing: the target's own pods are moved.
    Pods,
}

/// A kind of route: how a rollout's file calls the router and the route; and as JSON pointers where its rules stand, or what is the only
/// one, in each of them its backends, and in each of those the name of a Service.
type Route = (Kind, &'static str, &'static str, &'static str, &'static str, &'static str);

/// All of them.
pub(super) const ROUTES: [Route; 5] = [
    (Kind::HttpRoute, "gatewayAPI", "httpRoute", "/spec/rules", "/backendRefs", "/name"),
    (Kind::GrpcRoute, "gatewayAPI", "grpcRoute", "/spec/rules", "/backendRefs", "/name"),
    (Kind::VirtualService, "istio", "virtualService", "/spec/http", "/route", "/destination/host"),
    (Kind::Ingress, "nginx", "ingress", "/spec/rules", "/http/paths", "/backend/service/name"),
    (Kind::TraefikService, "traefik", "traefikService", "/spec/weighted", "/services", "/name"),
];

impl Router {
    /// The kind of the route that it splits, and what that is for.
    pub(super) fn route(self) -> Option<(Kind, &'static str)> {
        match self {
            Self::Gateway => Some((Kind::HttpRoute, "the route whose requests are split")),
            Self::Istio => Some((Kind::VirtualService, "the VirtualService whose requests are split")),
            Self::Nginx => Some((Kind::Ingress, "the Ingress whose requests are split")),
            Self::Traefik => Some((Kind::TraefikService, "the TraefikService whose requests are split")),
            Self::Service | Self::Replicas | Self::Pods => None,
        }
    }

    /// How a rollout's file calls it, and its route if it has one.
    fn names(self) -> (&'static str, &'static str) {
        let routed = ROUTES.iter().find(|(kind, ..)| self.route().is_some_and(|(own, _)| own == *kind));
        let alone = if self == Self::Replicas { "replicas" } else { "service" };
        routed.map_or((alone, ""), |&(_, router, route, ..)| (router, route))
    }

    /// How a rollout's file says it, with the names of its route and its Service.
    pub(super) fn traffic(self, route: &str, service: &str) -> Value {
        match (self, self.names()) {
            (Self::Pods, _) => Value::Null,
            (Self::Service, (router, _)) => json!({router: service}),
            (Self::Replicas, (router, _)) => json!({router: {"service": service}}),
            (_, (router, key)) => json!({router: {key: route, "service": service}}),
        }
    }

    /// Whether it can send a request twice.
    pub(super) fn copies(self) -> bool {
        matches!(self, Self::Gateway | Self::Istio | Self::Traefik)
    }

    /// Whether it tells requests apart by any headers.
    pub(super) fn knows_requests(self) -> bool {
        matches!(self, Self::Gateway | Self::Istio)
    }
}

/// Whose numbers a tool's own metrics are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counts {
    /// Those of a proxy that tidegate knows.
    Proxy(&'static str),
    /// The application's own.
    Application,
    /// Nobody's that is known here.
    Unknown,
    /// There are none: all metrics are those of templates.
    Templates,
}

/// One router of a tool: its name there, up to the colon; what splits requests in its place; who counts them; why it is another router, where
/// it is one, in words behind [`INSTEAD`]; and what the tool makes to lead users, where the other router does not take it over.
pub(super) type Provider = (Tool, &'static str, Router, Counts, &'static str, &'static str);

/// What every reason begins with.
pub(super) const INSTEAD: &str = "imported as gatewayAPI";

/// All that the tools have. A router that is built is one row changed.
pub(super) const PROVIDERS: &[Provider] = &[
    (Flagger, "gatewayapi", Gateway, Application, "", ""),
    (Flagger, "istio", Istio, Proxy("istio"), "", ""),
    (Flagger, "nginx", Nginx, Proxy("nginx"), "", ""),
    (Flagger, "traefik", Traefik, Proxy("traefik"), "", ""),
    (Flagger, "contour", Gateway, Proxy("contour"), ", which Contour serves beside its HTTPProxies", "HTTPProxy"),
    (Flagger, "linkerd", Gateway, Proxy("linkerd"), ", which Linkerd reads in place of TrafficSplits", SPLIT),
    (Flagger, "gloo", Gateway, Unknown, ", which Gloo serves beside its RouteTables", "RouteTable"),
    (Flagger, "kuma", Gateway, Unknown, ", which Kuma serves beside its TrafficRoutes", "TrafficRoute"),
    (Flagger, "apisix", Gateway, Unknown, ", which APISIX serves beside its ApisixRoutes", "ApisixRoute"),
    (Flagger, "skipper", Gateway, Unknown, "; a route of Skipper is not built", "Ingress"),
    (Flagger, "osm", Gateway, Unknown, "; TrafficSplits are not built", SPLIT),
    (Flagger, "smi", Gateway, Unknown, "; TrafficSplits are not built", SPLIT),
    (Flagger, "appmesh", Gateway, Unknown, "; App Mesh is not built", "VirtualService of App Mesh"),
    (Flagger, "knative", Gateway, Unknown, "; services of Knative are not built", ""),
    // With it nothing is split.
    (Flagger, "kubernetes", Service, Application, "", ""),
    (Argo, "plugins", Gateway, Templates, "", ""),
    (Argo, "istio", Istio, Templates, "", ""),
    (Argo, "nginx", Nginx, Templates, "", ""),
    (Argo, "traefik", Traefik, Templates, "", ""),
    (Argo, "ambassador", Gateway, Templates, "; Mappings of Ambassador are not built", ""),
    (Argo, "apisix", Gateway, Templates, ", which APISIX serves beside its ApisixRoutes", ""),
    (Argo, "alb", Gateway, Templates, "; Ingresses of AWS are not built", ""),
    (Argo, "appMesh", Gateway, Templates, "; App Mesh is not built", ""),
    (Argo, "smi", Gateway, Templates, "; TrafficSplits are not built", ""),
];

/// What SMI calls it.
const SPLIT: &str = "TrafficSplit";

/// Each router of a tool, what it becomes here, and what its metrics become, for the documents.
#[must_use]
pub fn lines(tool: Tool) -> Vec<[String; 3]> {
    let one = |(of, name, router, counts, instead, _): &Provider| {
        let alone = if *router == Service { ", a blue/green as with Flagger" } else { "" };
        let layout = if *of == Flagger { "; layout `primary`" } else { "" };
        let counts = match counts {
            Proxy(proxy) => format!("`successRate` and `latency` of the proxy `{proxy}`"),
            Application => "Flagger's query of the application's `http_request_duration_seconds`".to_owned(),
            Unknown => "not imported: write a query".to_owned(),
            Templates => "those of its templates".to_owned(),
        };
        [format!("`{name}`"), format!("`{}`{alone}{instead}{layout}", router.names().0), counts]
    };
    PROVIDERS.iter().filter(|(of, ..)| *of == tool).map(one).collect()
}
