//! Routes to copies of the Service, as another tool has left them where the layout is `primary`.

use super::gateway_api;
use crate::manifest::desired::Router;
use crate::manifest::ids::ObjectName;
use crate::manifest::object::Object;

/// A carrier that leads to the Service's copy, as if it led to the Service itself, which leads to the same pods.
#[must_use]
pub fn without_copies(router: &Router, live: &Object, copy: &ObjectName) -> Object {
    service_of(router, live).map_or_else(|| live.clone(), |service| gateway_api::without_copies(live, service, copy))
}

/// What is written over a live carrier that leads to the copy, before `wanted` is.
#[must_use]
pub fn next(router: &Router, wanted: &Object, live: &Object, copy: &ObjectName) -> Option<Object> {
    gateway_api::next(wanted, live, service_of(router, live)?, copy)
}

/// Whether a live carrier names both the Service and its copy.
#[must_use]
pub fn names_both(router: &Router, live: &Object, copy: &ObjectName) -> bool {
    service_of(router, live).is_some_and(|service| gateway_api::names_both(live, service, copy))
}

/// The Service, if the object is the route of a router that has the layout `primary`.
fn service_of<'a>(router: &'a Router, live: &Object) -> Option<&'a ObjectName> {
    let reference = live.reference();
    let is_route = router.route() == Some((reference.kind, &reference.name));
    match router {
        Router::GatewayApi { service, .. } | Router::Grpc { service, .. } => is_route.then_some(service),
        Router::Istio { .. }
        | Router::Nginx { .. }
        | Router::Partition
        | Router::OnDelete
        | Router::Replicas { .. }
        | Router::Service { .. }
        | Router::Traefik { .. } => None,
    }
}
