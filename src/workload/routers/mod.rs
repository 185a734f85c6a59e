//! How requests are split between stable and candidate. Pure: what a split looks like in the cluster, what split the
//! cluster shows, and what takes it back.
//!
//! A new router is one new file here and one arm in each `match` below.

mod endpoints;
pub mod gateway_api;
pub mod ingress_route;
pub mod istio;
pub mod left;
pub mod nginx;
pub mod partition;
pub mod replicas;
pub mod service;
pub mod traefik;

use crate::manifest::desired::Router;
use crate::manifest::ids::{Namespace, ObjectName, Percent, PodsDigest};
use crate::manifest::object::{Kind, Object, ObjectRef, section};
use crate::manifest::traefik::copier_suffix;
use crate::record::posture::{Naming, Split};
use crate::record::state::RoleName;
use crate::workload::kinds::{shared, stateful};
use crate::workload::layouts::{LayoutError, SUFFIX, suffixed};
use crate::workload::live::LiveState;
use crate::workload::owned::owned_by;
use serde_json::Value;
use std::collections::BTreeSet;

/// Whether the cluster does what the live objects ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// What carries it out has not caught up, or cannot yet.
    NotYet {
        /// On what it waits.
        why: String,
    },
    /// In force, as of the objects' present generation.
    Effective,
    /// What carries it out says that it will not: evidence against the content.
    Refused {
        /// Its words.
        why: String,
    },
    /// What carries it out does not take it for reasons of its own, whatever it sends where: no evidence against the content, unless that is
    /// another about where it belongs.
    Barred {
        /// Its words.
        why: String,
    },
    /// Nobody says. Holds.
    Unknown {
        /// What is missing.
        why: String,
    },
}

/// What split live objects show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// This; never less than what reaches the candidate.
    Split(Split),
    /// The candidate is reached in a way that we never write.
    Foreign(String),
}

/// How the object that carries the split is rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form<'a> {
    /// As in the manifests: at rest, and before the candidate is there.
    Plain,
    /// With both roles in it, also where the split is at stable (`100/0`), so that changing it adds no backend.
    Split {
        /// The split.
        split: &'a Split,
        /// The candidate's pods.
        candidate: &'a PodsDigest,
        /// What the objects of both roles are called.
        naming: &'a Naming,
    },
}

/// The fields of a carrier that a retreat lowers, each as a path.
type Fields = &'static [&'static [&'static str]];

/// The Services of both roles, where the candidate's may be no copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Services<'a> {
    /// Stable's.
    pub stable: &'a ObjectName,
    /// The candidate's; without a name of its own that of the copy.
    pub candidate: Option<&'a ObjectName>,
}

impl<'a> From<&'a ObjectName> for Services<'a> {
    fn from(stable: &'a ObjectName) -> Self {
        Self { stable, candidate: None }
    }
}

/// Where to look in a cluster.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// What was observed.
    pub live: &'a LiveState,
    /// The rollout's namespace.
    pub namespace: &'a Namespace,
    /// The target's name.
    pub target: &'a ObjectName,
    /// The pods that stable keeps in the run: what it had at the first step, or has since when more of the traffic leaves it.
    pub baseline: u32,
    /// What the objects of both roles are called.
    pub naming: &'a Naming,
}

/// The objects that carry the split, the one that [`render`] makes first. All of them take the retreat's mark.
///
/// For `replicas` the candidate's Deployment is the second: its size is the weight. For `nginx` the first is there during a run only,
/// and the other one is the Ingress that it stands beside.
#[must_use]
pub fn carriers(router: &Router, namespace: &Namespace, target: &ObjectName) -> Vec<ObjectRef> {
    let named = |kind, name: &ObjectName| ObjectRef { kind, namespace: namespace.clone(), name: name.clone() };
    match router {
        Router::GatewayApi { .. }
        | Router::Grpc { .. }
        | Router::Istio { .. }
        | Router::Traefik { .. }
        | Router::IngressRoute { .. } => router.route().map(|(kind, name)| named(kind, name)).into_iter().collect(),
        Router::Nginx { ingress, .. } => {
            suffixed(ingress).as_ref().into_iter().chain([ingress]).map(|name| named(Kind::Ingress, name)).collect()
        }
        Router::Replicas { service } => {
            let candidate = suffixed(target).map(|name| named(Kind::Deployment, &name));
            std::iter::once(named(Kind::Service, service)).chain(candidate).collect()
        }
        Router::Service { service } => vec![named(Kind::Service, service)],
        Router::Partition => vec![named(Kind::StatefulSet, target)],
        Router::OnDelete => vec![named(Kind::DaemonSet, target)],
    }
}

/// What a router needs in the candidate's time beside the manifests' `route`, as it exposes nothing, where phases send at most a share
/// of `copies` twice; `copied` is the layout's way to make a copy
/// whose name ends so.
///
/// # Errors
/// What `copied` says.
pub fn beside(
    router: &Router,
    copies: Percent,
    route: &Object,
    copied: impl Fn(&Object, &'static str) -> Result<Object, LayoutError>,
) -> Result<Option<Object>, LayoutError> {
    match router {
        Router::Nginx { service, .. } => Ok(Some(nginx::canary(&copied(route, SUFFIX)?, service))),
        Router::Traefik { service, .. } | Router::IngressRoute { service, .. } if !copies.is_zero() => {
            let copy = copied(route, copier_suffix(route.reference().kind))?;
            Ok(traefik::copier(&copy, route, service))
        }
        Router::GatewayApi { .. }
        | Router::Grpc { .. }
        | Router::Istio { .. }
        | Router::Replicas { .. }
        | Router::Service { .. }
        | Router::Traefik { .. }
        | Router::IngressRoute { .. }
        | Router::Partition
        | Router::OnDelete => Ok(None),
    }
}

/// The ports of the Service that the manifests' route sends to.
#[must_use]
pub fn ports<'a>(router: &'a Router, route: &'a Object) -> Vec<&'a Value> {
    match router {
        Router::GatewayApi { service, .. } | Router::Grpc { service, .. } => {
            gateway_api::ports(route, service).collect()
        }
        Router::Istio { service, .. } => istio::ports(route, service),
        Router::Nginx { service, .. } => nginx::ports(route, service.as_str()).collect(),
        Router::Traefik { service, .. } | Router::IngressRoute { service, .. } => {
            traefik::ports(route, service).collect()
        }
        Router::Replicas { .. } | Router::Service { .. } | Router::Partition | Router::OnDelete => Vec::new(),
    }
}

/// The first carrier in that form, from `plain`: the manifests' object (the route, the Service), or what is made [`beside`] it.
#[must_use]
pub fn render(router: &Router, plain: &Object, form: Form<'_>) -> Object {
    match (form, router) {
        // How many pods there are decides on what it is, which is rendered where that is known.
        (Form::Plain, _) | (Form::Split { .. }, Router::Partition | Router::OnDelete) => plain.clone(),
        (Form::Split { split, .. }, Router::GatewayApi { service, .. } | Router::Grpc { service, .. }) => {
            gateway_api::render(plain, service, split)
        }
        (Form::Split { split, .. }, Router::Istio { service, .. }) => istio::render(plain, service, split),
        (Form::Split { split, .. }, Router::Traefik { service, .. }) => traefik::render(plain, service, split),
        (Form::Split { split, .. }, Router::IngressRoute { service, .. }) => {
            ingress_route::render(plain, service, split)
        }
        (Form::Split { split, .. }, Router::Nginx { .. }) => nginx::render(plain, split),
        (Form::Split { split, candidate, .. }, Router::Replicas { .. }) => replicas::render(plain, split, candidate),
        (Form::Split { split, naming, .. }, Router::Service { .. }) => service::render(plain, split, naming),
    }
}

/// The manifests' route with a split between two Services of which neither is the other's copy; whom its weight let in gets that
/// `Set-Cookie`.
#[must_use]
pub fn between(services: Services<'_>, plain: &Object, split: &Split, cookie: Option<&str>) -> Object {
    let rendered = gateway_api::render(plain, services, split);
    cookie.map_or_else(|| rendered.clone(), |cookie| gateway_api::with_cookie(&rendered, services, cookie))
}

/// The carrier with a split, whose candidate answers those whom its weight let in with that `Set-Cookie`.
#[must_use]
pub fn with_cookie(router: &Router, split: &Object, cookie: &str) -> Object {
    match router {
        Router::GatewayApi { service, .. } => gateway_api::with_cookie(split, service, cookie),
        Router::Istio { service, .. } => istio::with_cookie(split, service, cookie),
        Router::Grpc { .. }
        | Router::Nginx { .. }
        | Router::Replicas { .. }
        | Router::Partition
        | Router::OnDelete
        | Router::Service { .. }
        | Router::Traefik { .. }
        | Router::IngressRoute { .. } => split.clone(),
    }
}

/// What split the cluster shows. A carrier that is not there sends nobody to the candidate.
#[must_use]
pub fn read(router: &Router, view: &View<'_>) -> Seen {
    let nobody = || Seen::Split(Split::stable());
    match router {
        Router::GatewayApi { service, .. } | Router::Grpc { service, .. } => {
            let services = view.naming.services().unwrap_or(service.into());
            live_route(router, view).map_or_else(nobody, |route| gateway_api::read(route, services))
        }
        Router::Istio { service, .. } => {
            live_route(router, view).map_or_else(nobody, |route| istio::read(route, service))
        }
        Router::Traefik { service, .. } => {
            live_route(router, view).map_or_else(nobody, |route| traefik::read(route, service))
        }
        Router::IngressRoute { service, .. } => {
            live_route(router, view).map_or_else(nobody, |route| ingress_route::read(route, service))
        }
        Router::Nginx { ingress, service } => nginx::read(view, ingress, service),
        Router::Replicas { service } => replicas::read(view, service),
        Router::Service { service } => service::read(view, service),
        Router::Partition | Router::OnDelete => partition::read(router, view),
    }
}

/// What [`read`] shows once `split` is in force on the manifests' object `plain`: by pods a weight is only met from
/// below. Compare with [`Split::same`].
#[must_use]
pub fn reachable(router: &Router, plain: &Object, baseline: u32, split: &Split) -> Seen {
    match router {
        Router::GatewayApi { service, .. } | Router::Grpc { service, .. } => {
            gateway_api::read(&gateway_api::render(plain, service, split), service)
        }
        Router::Replicas { .. } => Seen::Split(replicas::reachable(baseline, split)),
        Router::Istio { service, .. } => istio::read(&istio::render(plain, service, split), service),
        Router::Traefik { service, .. } => traefik::read(&traefik::render(plain, service, split), service),
        Router::IngressRoute { service, .. } => {
            ingress_route::read(&ingress_route::render(plain, service, split), service)
        }
        Router::Nginx { .. } | Router::Service { .. } => Seen::Split(split.clone()),
        Router::Partition | Router::OnDelete => Seen::Split(partition::reachable(shared::size(plain), split)),
    }
}

/// The live carriers with the split at stable, cut down to what `manager` owns there: ready to be applied, whatever
/// they are in now, also when nothing is left to lower. Needs no record and no set; applying it twice changes nothing.
#[must_use]
pub fn retreat(router: &Router, view: &View<'_>, manager: &str) -> Vec<Object> {
    let lowered = |live: &Object| -> (Object, Fields) {
        match (router, live.reference().kind) {
            (Router::GatewayApi { service, .. } | Router::Grpc { service, .. }, _) => {
                (gateway_api::retreat(live, view.naming.services().unwrap_or(service.into())), &[&["spec", "rules"]])
            }
            (Router::Istio { service, .. }, _) => (istio::retreat(live, service), &[&["spec", "http"]]),
            (Router::Traefik { service, .. }, _) => {
                (traefik::retreat(live, service), &[&["spec", "weighted", "services"]])
            }
            (Router::IngressRoute { service, .. }, _) => {
                (ingress_route::retreat(live, service), &[&["spec", "routes"]])
            }
            (Router::Nginx { ingress, service }, _) if live.reference().name == *ingress => {
                (nginx::retreat(live, ingress, service), &[&["spec", "rules"], &["spec", "defaultBackend"]])
            }
            (Router::Nginx { ingress, service }, _) => (nginx::retreat(live, ingress, service), nginx::FIELDS),
            (Router::Replicas { .. }, Kind::Service) => (replicas::without_pods(live), &[&["spec", "selector"]]),
            (Router::Replicas { .. }, _) => (replicas::emptied(live), &[&["spec", "replicas"]]),
            (Router::Service { .. }, _) => (service::retreat(live, view), &[&["spec", "selector"]]),
            (Router::Partition, _) => (stateful::closed(live), partition::fields(live)),
            // The old template is in no object that is known here.
            (Router::OnDelete, _) => (live.clone(), &[]),
        }
    };
    carriers(router, view.namespace, view.target)
        .iter()
        .filter_map(|carrier| view.live.get(carrier))
        .map(|live| {
            let (lowered, fields) = lowered(live);
            let nothing = || Object::new(live.reference().clone(), Value::Null);
            let mut ours = owned_by(live, manager).unwrap_or_else(nothing);
            for (field, parents) in fields.iter().filter_map(|path| path.split_last()) {
                let holder = parents.iter().try_fold(lowered.value(), |value, key| value.get(key));
                if let Some(value) = holder.and_then(|holder| holder.get(field)) {
                    section(ours.value_mut(), parents).insert((*field).to_owned(), value.clone());
                }
            }
            ours
        })
        .collect()
}

/// Whether the cluster splits as the live carrier says.
#[must_use]
pub fn standing(router: &Router, view: &View<'_>) -> Standing {
    let absent = || {
        let route = router.route().map(|(kind, name)| format!("{kind} {name}")).unwrap_or_default();
        Standing::NotYet { why: format!("{route} is not there") }
    };
    match router {
        Router::GatewayApi { .. } | Router::Grpc { .. } => {
            live_route(router, view).map_or_else(absent, gateway_api::standing)
        }
        Router::Istio { .. } => live_route(router, view).map_or_else(absent, istio::standing),
        // Traefik says nothing of its own kinds: `settle` is for the moment that it takes.
        Router::Traefik { .. } | Router::IngressRoute { .. } => {
            live_route(router, view).map_or_else(absent, |_| Standing::Effective)
        }
        Router::Nginx { ingress, .. } => nginx::standing(view, ingress),
        Router::Replicas { service } | Router::Service { service } => endpoints::standing(view, service),
        Router::Partition | Router::OnDelete => partition::standing(router, view),
    }
}

/// What of a route decides who takes it, beside what its gateways let in. No split changes it.
#[must_use]
pub fn place(route: &Object) -> [Option<&Value>; 2] {
    ["/spec/parentRefs", "/spec/hostnames"].map(|field| route.at(field))
}

/// Whether an object sends requests to that Service of its own namespace. Such an object is deleted before the Service.
#[must_use]
pub fn references(object: &Object, service: &ObjectName) -> bool {
    let is = |kind| object.reference().kind == kind;
    is(Kind::VirtualService) && istio::references(object, service)
        || (is(Kind::HttpRoute) || is(Kind::GrpcRoute)) && gateway_api::references(object, service)
        || (is(Kind::TraefikService) || is(Kind::IngressRoute)) && traefik::references(object, service)
        || is(Kind::Ingress) && nginx::names(object, service.as_str())
}

/// The routers that a live object shows which leads requests: it names Services beside their candidate's copies, or could do so
/// with one of these, where a copy that gets nothing is not named.
#[must_use]
pub fn routers(route: &Object, candidates: &BTreeSet<ObjectName>) -> Vec<Router> {
    let name = &route.reference().name;
    if route.reference().kind == Kind::Ingress {
        let beside = nginx::beside(route).into_iter();
        return beside.map(|(ingress, service)| Router::Nginx { ingress, service }).collect();
    }
    if route.reference().kind == Kind::VirtualService {
        let services = gateway_api::split_services(&istio::in_words(route)).into_iter();
        return services.map(|service| Router::Istio { virtual_service: name.clone(), service }).collect();
    }
    if route.reference().kind == Kind::TraefikService {
        let services = traefik::split_services(route, candidates).into_iter();
        return services.map(|service| Router::Traefik { traefik_service: name.clone(), service }).collect();
    }
    if route.reference().kind == Kind::IngressRoute {
        let services = ingress_route::split_services(route, candidates).into_iter();
        return services.map(|service| Router::IngressRoute { ingress_route: name.clone(), service }).collect();
    }
    let services = gateway_api::split_services(route).into_iter();
    if route.reference().kind == Kind::GrpcRoute {
        return services.map(|service| Router::Grpc { grpc_route: name.clone(), service }).collect();
    }
    services.map(|service| Router::GatewayApi { http_route: name.clone(), service }).collect()
}

/// The router that a live route shows which leads requests to one of these Services of candidates, beside a Service that it is no
/// copy of; and which one that is.
#[must_use]
pub fn router_between(route: &Object, candidates: &BTreeSet<ObjectName>) -> Option<(Router, ObjectName)> {
    let name = route.reference().name.clone();
    let [service, candidate] = gateway_api::beside_each_other(route, candidates)?;
    let is = |kind| route.reference().kind == kind;
    let router = if is(Kind::HttpRoute) {
        Router::GatewayApi { http_route: name, service: service.clone() }
    } else {
        Router::Grpc { grpc_route: name, service: service.clone() }
    };
    let routes = is(Kind::HttpRoute) || is(Kind::GrpcRoute);
    (routes && suffixed(&service).as_ref() != Some(&candidate)).then_some((router, candidate))
}

/// The object among the manifests that leads requests, as it is live.
fn live_route<'a>(router: &Router, view: &View<'a>) -> Option<&'a Object> {
    let (kind, name) = router.route()?;
    view.live.find(kind, view.namespace, name)
}

/// Stable's live Deployment.
fn stable<'a>(view: &View<'a>) -> Option<&'a Object> {
    view.live.find(Kind::Deployment, view.namespace, &view.naming.workload(RoleName::Stable, view.target))
}

/// The candidate's live Deployment.
fn candidate<'a>(view: &View<'a>) -> Option<&'a Object> {
    let [name, stable] = [RoleName::Candidate, RoleName::Stable].map(|role| view.naming.workload(role, view.target));
    let live = view.live.find(Kind::Deployment, view.namespace, &name);
    // At first sight the target of the layout `primary` is stable's, as it will be in the end: its mark says whose it is.
    let own = |live: &&Object| !matches!(view.naming, Naming::Primary(_)) || shared::role(live) == RoleName::Candidate;
    // A name that is too long for a copy has none.
    live.filter(|_| name != stable).filter(own)
}

#[cfg(test)]
mod conformance;
#[cfg(test)]
mod tests;
