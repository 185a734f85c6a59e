//! How requests are split between stable and candidate, and by what.

use super::affinity::SessionAffinity;
use super::duration::Span;
use super::ids::ObjectName;
use super::object::Kind;
use serde::{Deserialize, Serialize};

/// How requests are split between stable and candidate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Traffic {
    /// What splits them.
    pub router: Router,
    /// After the route is in force, before clocks run.
    pub settle: Span,
    /// For requests in flight, before a backend goes.
    pub drain: Span,
    /// Who got the candidate by weight keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_affinity: Option<SessionAffinity>,
}

impl Traffic {
    /// For requests in flight, where nobody says how long.
    pub const DRAIN: Span = Span::from_secs(30);
}

/// What splits requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Router {
    /// A Gateway API HTTPRoute: weights and headers.
    #[serde(rename_all = "camelCase")]
    GatewayApi {
        /// The HTTPRoute, in the set.
        http_route: ObjectName,
        /// The Service that it names, in the set.
        service: ObjectName,
    },
    /// A Gateway API GRPCRoute: weights and headers.
    #[serde(rename_all = "camelCase")]
    Grpc {
        /// The GRPCRoute, in the set.
        grpc_route: ObjectName,
        /// The Service that it names, in the set.
        service: ObjectName,
    },
    /// An Ingress of ingress-nginx, with a canary Ingress beside it.
    Nginx {
        /// The Ingress, in the set.
        ingress: ObjectName,
        /// The Service that it leads to, in the set.
        service: ObjectName,
    },
    /// An Istio VirtualService: weights, headers and copies.
    #[serde(rename_all = "camelCase")]
    Istio {
        /// The VirtualService, in the set.
        virtual_service: ObjectName,
        /// The Service whose host it sends to, in the set.
        service: ObjectName,
    },
    /// A TraefikService: weights and copies.
    #[serde(rename_all = "camelCase")]
    Traefik {
        /// The TraefikService, in the set.
        traefik_service: ObjectName,
        /// The Service among its weighted services, in the set.
        service: ObjectName,
    },
    /// An IngressRoute of Traefik: weights, headers and copies.
    #[serde(rename_all = "camelCase")]
    IngressRoute {
        /// The IngressRoute, in the set.
        ingress_route: ObjectName,
        /// The Service that its routes lead to, in the set.
        service: ObjectName,
    },
    /// An HTTPProxy of Contour: weights, headers and copies.
    #[serde(rename_all = "camelCase")]
    Contour {
        /// The HTTPProxy, in the set.
        http_proxy: ObjectName,
        /// The Service that its routes lead to, in the set.
        service: ObjectName,
    },
    /// A RouteTable of Gloo: weights and headers.
    #[serde(rename_all = "camelCase")]
    Gloo {
        /// The RouteTable, in the set.
        route_table: ObjectName,
        /// The Service that its routes lead to, in the set.
        service: ObjectName,
    },
    /// The number of candidate pods behind one Service.
    Replicas {
        /// The Service, in the set.
        service: ObjectName,
    },
    /// The selector of one Service: all requests or none.
    Service {
        /// The Service, in the set.
        service: ObjectName,
    },
    /// Which of the target's own units are of the new version. The target asks for it, no file names it.
    #[serde(untagged)]
    Units(UnitKind),
}

/// Whose units are moved to the new version. Plans of runs call them by how that is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum UnitKind {
    /// The pods of a StatefulSet, from the highest number down.
    #[serde(rename = "partition")]
    StatefulSet,
    /// The pods of a DaemonSet, in the order of their nodes: those that are deleted come back new.
    #[serde(rename = "onDelete")]
    DaemonSet,
    /// Nodes, in an order of their own: each is told which files it has, and says whether it has them.
    #[serde(rename = "nodes")]
    Node,
}

/// What a rollout's file calls a router.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spelling {
    /// Its name.
    pub name: &'static str,
    /// Where its route is named, as a JSON pointer.
    pub route: String,
    /// Where its Service is named.
    pub service: String,
}

/// Where the share of the candidate is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// In an object that leads requests to Services: the candidate has one of its own.
    Route,
    /// In the number of its pods.
    Pods,
    /// In the selector of the one Service that users meet; the candidate has one of its own too.
    Selector,
    /// In which of stable's own units are of the new version: there is no second workload.
    Units,
}

impl Router {
    /// The router by an object that leads requests to that Service; none where it is of another kind.
    #[must_use]
    pub fn by_route(kind: Kind, name: &ObjectName, service: &ObjectName) -> Option<Self> {
        let all = [
            Self::GatewayApi { http_route: name.clone(), service: service.clone() },
            Self::Grpc { grpc_route: name.clone(), service: service.clone() },
            Self::Nginx { ingress: name.clone(), service: service.clone() },
            Self::Istio { virtual_service: name.clone(), service: service.clone() },
            Self::Traefik { traefik_service: name.clone(), service: service.clone() },
            Self::IngressRoute { ingress_route: name.clone(), service: service.clone() },
            Self::Contour { http_proxy: name.clone(), service: service.clone() },
            Self::Gloo { route_table: name.clone(), service: service.clone() },
        ];
        all.into_iter().find(|router| router.route().is_some_and(|(own, _)| own == kind))
    }

    /// The Service whose requests are split; none where requests are led as they are without a rollout.
    #[must_use]
    pub fn service(&self) -> Option<&ObjectName> {
        match self {
            Self::GatewayApi { service, .. }
            | Self::Grpc { service, .. }
            | Self::Nginx { service, .. }
            | Self::Istio { service, .. }
            | Self::Traefik { service, .. }
            | Self::IngressRoute { service, .. }
            | Self::Contour { service, .. }
            | Self::Gloo { service, .. }
            | Self::Replicas { service }
            | Self::Service { service } => Some(service),
            Self::Units(_) => None,
        }
    }

    /// The same for another Service, where an object leads requests to it.
    #[must_use]
    pub fn to(&self, other: &ObjectName) -> Self {
        let mut router = self.clone();
        match &mut router {
            Self::GatewayApi { service, .. }
            | Self::Grpc { service, .. }
            | Self::Nginx { service, .. }
            | Self::Istio { service, .. }
            | Self::Traefik { service, .. }
            | Self::IngressRoute { service, .. }
            | Self::Contour { service, .. }
            | Self::Gloo { service, .. }
            | Self::Replicas { service }
            | Self::Service { service } => service.clone_from(other),
            Self::Units(_) => {}
        }
        router
    }

    /// The object among the manifests that leads requests to that Service, where one does.
    #[must_use]
    pub fn route(&self) -> Option<(Kind, &ObjectName)> {
        match self {
            Self::GatewayApi { http_route, .. } => Some((Kind::HttpRoute, http_route)),
            Self::Grpc { grpc_route, .. } => Some((Kind::GrpcRoute, grpc_route)),
            Self::Nginx { ingress, .. } => Some((Kind::Ingress, ingress)),
            Self::Istio { virtual_service, .. } => Some((Kind::VirtualService, virtual_service)),
            Self::Traefik { traefik_service, .. } => Some((Kind::TraefikService, traefik_service)),
            Self::IngressRoute { ingress_route, .. } => Some((Kind::IngressRoute, ingress_route)),
            Self::Contour { http_proxy, .. } => Some((Kind::HttpProxy, http_proxy)),
            Self::Gloo { route_table, .. } => Some((Kind::RouteTable, route_table)),
            Self::Replicas { .. } | Self::Service { .. } | Self::Units(_) => None,
        }
    }

    /// What a rollout's file calls it, and where there it names the route and the Service.
    #[must_use]
    pub fn spelling(&self) -> Spelling {
        let routed =
            |name, route| (name, format!("/spec/traffic/{name}/{route}"), format!("/spec/traffic/{name}/service"));
        let alone = |name, place: &str| (name, place.to_owned(), place.to_owned());
        let (name, route, service) = match self {
            Self::GatewayApi { .. } => routed("gatewayAPI", "httpRoute"),
            Self::Grpc { .. } => routed("gatewayAPI", "grpcRoute"),
            Self::Nginx { .. } => routed("nginx", "ingress"),
            Self::Istio { .. } => routed("istio", "virtualService"),
            Self::Traefik { .. } => routed("traefik", "traefikService"),
            Self::IngressRoute { .. } => routed("traefik", "ingressRoute"),
            Self::Contour { .. } => routed("contour", "httpProxy"),
            Self::Gloo { .. } => routed("gloo", "routeTable"),
            Self::Replicas { .. } => {
                ("replicas", "/spec/traffic/replicas".to_owned(), "/spec/traffic/replicas/service".to_owned())
            }
            Self::Service { .. } => alone("service", "/spec/traffic/service"),
            Self::Units(UnitKind::StatefulSet) => alone("partition", "/spec/target"),
            Self::Units(UnitKind::DaemonSet) => alone("onDelete", "/spec/target"),
            Self::Units(UnitKind::Node) => alone("nodes", "/spec/target"),
        };
        Spelling { name, route, service }
    }

    /// Where the share of the candidate is.
    #[must_use]
    pub fn by(&self) -> By {
        match self {
            Self::GatewayApi { .. }
            | Self::Grpc { .. }
            | Self::Nginx { .. }
            | Self::Istio { .. }
            | Self::Traefik { .. }
            | Self::IngressRoute { .. }
            | Self::Contour { .. }
            | Self::Gloo { .. } => By::Route,
            Self::Replicas { .. } => By::Pods,
            Self::Service { .. } => By::Selector,
            Self::Units(_) => By::Units,
        }
    }
}
