//! The router that a rollout's file names.

use crate::manifest::desired::Router;
use crate::manifest::raw;

/// The router that the file names; `None` where it is not exactly one.
pub(in crate::manifest) fn router(traffic: &raw::Traffic) -> Option<Router> {
    let raw::Traffic {
        contour,
        gateway_api,
        gloo,
        istio,
        nginx,
        replicas,
        service,
        traefik,
        settle: _,
        drain: _,
        session_affinity: _,
    } = traffic;
    let by_contour = contour.as_ref().map(|raw::Contour { http_proxy, service }| Router::Contour {
        http_proxy: http_proxy.clone(),
        service: service.clone(),
    });
    let by_gateway = gateway_api.as_ref().map(by_gateway);
    let by_gloo = gloo.as_ref().map(|raw::Gloo { route_table, service }| Router::Gloo {
        route_table: route_table.clone(),
        service: service.clone(),
    });
    let by_istio = istio.as_ref().map(|raw::Istio { virtual_service, service }| Router::Istio {
        virtual_service: virtual_service.clone(),
        service: service.clone(),
    });
    let by_nginx = nginx
        .as_ref()
        .map(|raw::Nginx { ingress, service }| Router::Nginx { ingress: ingress.clone(), service: service.clone() });
    let by_pods = replicas.as_ref().map(|raw::Replicas { service }| Router::Replicas { service: service.clone() });
    let by_service = service.as_ref().map(|service| Router::Service { service: service.clone() });
    let by_traefik = traefik.as_ref().map(by_traefik);
    let others = [by_contour, by_gloo, by_istio, by_nginx, by_pods, by_service].into_iter().flatten();
    let mut named = by_gateway.into_iter().chain(by_traefik).chain(others.map(Some));
    named.next().flatten().filter(|_| named.next().is_none())
}

/// The router of an object of Traefik's, where exactly one is named.
fn by_traefik(raw::Traefik { traefik_service, ingress_route, service }: &raw::Traefik) -> Option<Router> {
    match (traefik_service.clone(), ingress_route.clone()) {
        (Some(traefik_service), None) => Some(Router::Traefik { traefik_service, service: service.clone() }),
        (None, Some(ingress_route)) => Some(Router::IngressRoute { ingress_route, service: service.clone() }),
        (Some(_), Some(_)) | (None, None) => None,
    }
}

/// The router of a route of the Gateway API, where exactly one is named.
fn by_gateway(raw::GatewayApi { http_route, grpc_route, service }: &raw::GatewayApi) -> Option<Router> {
    match (http_route.clone(), grpc_route.clone()) {
        (Some(http_route), None) => Some(Router::GatewayApi { http_route, service: service.clone() }),
        (None, Some(grpc_route)) => Some(Router::Grpc { grpc_route, service: service.clone() }),
        (Some(_), Some(_)) | (None, None) => None,
    }
}
