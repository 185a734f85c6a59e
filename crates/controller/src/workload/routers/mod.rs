//! How requests are split between stable and candidate. Pure: what a split looks like in the cluster, what split the
//! cluster shows, and what takes it back.
//!
//! A new router is one new file here, which implements [`Routing`], and one line in [`routing`].

mod contour;
mod endpoints;
pub mod gateway_api;
mod gloo;
mod http_form;
mod ingress_route;
pub mod istio;
pub mod leftover;
pub mod nginx;
pub mod replicas;
mod service;
mod traefik;
mod units;

pub(super) use contour::fault as contour_fault;
pub(super) use gloo::{fault as gloo_fault, names, written as gloo_written};

use crate::manifest::desired::Router;
use crate::manifest::ids::{Namespace, ObjectName, Percent, PodsDigest};
use crate::manifest::object::{Kind, Object, ObjectRef, section};
use crate::record::posture::{Naming, Split};
use crate::record::state::{RoleName, Time};
use crate::workload::kinds::shared;
use crate::workload::layouts::LayoutError;
use crate::workload::live::LiveState;
use crate::workload::owned::owned_by;
use http_form::{HttpRouteForm, rewritten};
use serde_json::Value;
use std::collections::BTreeSet;

/// Whether the cluster does what the live objects ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RouteStatus {
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
    /// What others have written keeps the proxy from taking it: no evidence of anything. It is over by itself once they mend that.
    Blocked {
        /// What, whose, and what is said of it.
        why: String,
        /// Since when, as far as anybody tells.
        since: Option<Time>,
    },
    /// Nobody says. Holds.
    Unknown {
        /// What is missing.
        why: String,
    },
}

/// What split live objects show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObservedSplit {
    /// This; never less than what reaches the candidate.
    Split(Split),
    /// The candidate is reached in a way that we never write.
    Foreign(String),
}

/// What a route is rendered for: both roles are in it, also where the split is at stable (`100/0`), so that changing it adds no backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Form<'a> {
    /// The split.
    pub split: &'a Split,
    /// The candidate's pods.
    pub candidate: &'a PodsDigest,
    /// What the objects of both roles are called.
    pub naming: &'a Naming,
}

/// The fields of a route that a retreat lowers, each as a path.
type Fields = Vec<&'static [&'static str]>;

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
pub struct RouteView<'a> {
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

/// One way to split requests. What a router does not say itself is so for all whose route has the words of an HTTPRoute: it is split, read
/// and taken back as that is. Without such words it is that nothing is done, and nobody is led to the candidate.
trait Routing {
    /// The objects that carry the split beside the route, or without one.
    fn routes(&self, _target: &ObjectName) -> Vec<(Kind, ObjectName)> {
        Vec::new()
    }

    /// The route in the words of an HTTPRoute.
    fn as_http_route(&self, _route: &Object) -> Option<HttpRouteForm<'_>> {
        None
    }

    /// The route as these words say.
    fn with_http_route(&self, _route: &Object, words: Object) -> Object {
        words
    }

    /// What [`beside`] says.
    fn extra_route(&self, _route: &Object, _copies: Percent) -> Result<Option<Object>, LayoutError> {
        Ok(None)
    }

    /// What [`ports`] says.
    fn ports(&self, route: &Object) -> Vec<Value> {
        let words = self.as_http_route(route);
        words.map(|words| gateway_api::ports(&words.route, words.service)).unwrap_or_default()
    }

    /// What [`render`] says.
    fn render(&self, plain: &Object, form: Form<'_>) -> Object {
        rewritten(self, plain, |words| gateway_api::render(&words.route, words.service, form.split))
    }

    /// What [`with_cookie`] says.
    fn with_cookie(&self, split: &Object, _cookie: &str) -> Object {
        split.clone()
    }

    /// What split the cluster shows where this is the [`live_route`].
    fn read(&self, route: Option<&Object>, view: &RouteView<'_>) -> ObservedSplit {
        let words = route.and_then(|live| self.as_http_route(live));
        words.map_or_else(
            || ObservedSplit::Split(Split::stable()),
            |words| gateway_api::read(&words.route, words.services(view.naming)),
        )
    }

    /// What [`reachable`] says.
    fn reachable(&self, _view: &RouteView<'_>, _carrier: Option<&Object>, split: &Split) -> Split {
        split.clone()
    }

    /// A live route with everything at stable.
    fn lowered(&self, live: &Object, view: &RouteView<'_>) -> Object {
        rewritten(self, live, |words| gateway_api::retreat(&words.route, words.services(view.naming)))
    }

    /// The fields of a live route that are lowered so: where its kind has a list that is ours as a whole, that one.
    fn fields(&self, live: &Object) -> Fields {
        Some(live.reference().kind.facts().whole).filter(|path| !path.is_empty()).into_iter().collect()
    }

    /// Whether the cluster splits as the live [`live_route`] says. Where nobody tells, `settle` is for the moment that a proxy takes.
    fn status(&self, _carrier: &Object, _view: &RouteView<'_>) -> RouteStatus {
        RouteStatus::Effective
    }

    /// What [`is_numbered`] says.
    fn is_numbered(&self, _carrier: &Object) -> bool {
        false
    }

    /// What [`references`] says.
    fn references(&self, route: &Object) -> bool {
        self.as_http_route(route).is_some_and(|words| gateway_api::references(&words.route, words.service))
    }

    /// The Services that a live route splits, each with the name of the route among the manifests.
    fn split(&self, route: &Object, _candidates: &BTreeSet<ObjectName>) -> Vec<(ObjectName, ObjectName)> {
        let words = self.as_http_route(route);
        let services = words.map(|words| gateway_api::split_services(&words.route)).unwrap_or_default();
        services.into_iter().map(|service| (route.reference().name.clone(), service)).collect()
    }
}

/// The list of all routers.
fn routing(router: &Router) -> Box<dyn Routing + '_> {
    match router {
        Router::GatewayApi { service, .. } | Router::Grpc { service, .. } => Box::new(gateway_api::GatewayApi(service)),
        Router::Nginx { ingress, service } => Box::new(nginx::Nginx { ingress, service }),
        Router::Istio { service, .. } => Box::new(istio::Istio(service)),
        Router::Traefik { service, .. } => Box::new(traefik::Traefik(service)),
        Router::IngressRoute { service, .. } => Box::new(ingress_route::IngressRoute(service)),
        Router::Contour { service, .. } => Box::new(contour::HttpProxy(service)),
        Router::Gloo { service, .. } => Box::new(gloo::RouteTable(service)),
        Router::Replicas { service } => Box::new(replicas::Replicas(service)),
        Router::Service { service } => Box::new(service::Selector(service)),
        Router::Units(of) => Box::new(units::Shared(*of)),
    }
}

/// The objects that carry the split, the one that [`render`] makes first. All of them take the retreat's mark.
///
/// For `replicas` the candidate's Deployment is the second: its size is the weight. For `nginx` the first is there during a run only,
/// and the other one is the Ingress that it stands beside.
#[must_use]
pub fn routes(router: &Router, namespace: &Namespace, target: &ObjectName) -> Vec<ObjectRef> {
    let route = router.route().map(|(kind, name)| (kind, name.clone()));
    let all = routing(router).routes(target).into_iter().chain(route);
    all.map(|(kind, name)| ObjectRef { kind, namespace: namespace.clone(), name }).collect()
}

/// The route that is there without a run too.
fn lasting_route(router: &Router, view: &RouteView<'_>) -> Option<ObjectRef> {
    let mut all = routes(router, view.namespace, view.target).into_iter();
    all.find(|route| router.route().is_none_or(|(_, name)| route.name == *name))
}

/// The route that is there without a run too, as it is live.
#[must_use]
pub fn live_route<'a>(router: &Router, view: &RouteView<'a>) -> Option<&'a Object> {
    view.live.get(&lasting_route(router, view)?)
}

/// What a router needs in the candidate's time beside the manifests' `route`, as it exposes nothing, where phases send at most a share
/// of `copies` twice.
///
/// # Errors
/// [`LayoutError`]: it has no name for that.
pub fn extra_route(router: &Router, copies: Percent, route: &Object) -> Result<Option<Object>, LayoutError> {
    routing(router).extra_route(route, copies)
}

/// The ports of the Service that the manifests' route sends to.
#[must_use]
pub fn ports(router: &Router, route: &Object) -> Vec<Value> {
    routing(router).ports(route)
}

/// The first route in that form, from `plain`: the manifests' object (the route, the Service), or what is made [`beside`] it.
///
/// What a workload is that both versions share is rendered where it is known how many pods there are.
#[must_use]
pub fn render(router: &Router, plain: &Object, form: Form<'_>) -> Object {
    routing(router).render(plain, form)
}

/// The route with a split, whose candidate answers those whom its weight let in with that `Set-Cookie`.
#[must_use]
pub fn with_cookie(router: &Router, split: &Object, cookie: &str) -> Object {
    routing(router).with_cookie(split, cookie)
}

/// What split the cluster shows. A route that is not there sends nobody to the candidate.
#[must_use]
pub fn read(router: &Router, view: &RouteView<'_>) -> ObservedSplit {
    routing(router).read(live_route(router, view), view)
}

/// What [`read`] shows once `split` is in force: by pods a weight is only met from below. Compare with [`Split::same`].
#[must_use]
pub fn reachable(router: &Router, view: &RouteView<'_>, split: &Split) -> Split {
    routing(router).reachable(view, live_route(router, view), split)
}

/// The live routes with the split at stable, cut down to what `manager` owns there: ready to be applied, whatever
/// they are in now, also when nothing is left to lower. Needs no record and no set; applying it twice changes nothing.
#[must_use]
pub fn retreat(router: &Router, view: &RouteView<'_>, manager: &str) -> Vec<Object> {
    let routing = routing(router);
    let all = routes(router, view.namespace, view.target);
    all.iter()
        .filter_map(|route| view.live.get(route))
        .map(|live| {
            let lowered = routing.lowered(live, view);
            let nothing = || Object::new(live.reference().clone(), Value::Null);
            let mut ours = owned_by(live, manager).unwrap_or_else(nothing);
            for (field, parents) in routing.fields(live).iter().filter_map(|path| path.split_last()) {
                let holder = parents.iter().try_fold(lowered.value(), |value, key| value.get(key));
                if let Some(value) = holder.and_then(|holder| holder.get(field)) {
                    section(ours.value_mut(), parents).insert((*field).to_owned(), value.clone());
                }
            }
            ours
        })
        .collect()
}

/// Whether the cluster splits as the live route says.
#[must_use]
pub fn status(router: &Router, view: &RouteView<'_>) -> RouteStatus {
    match live_route(router, view) {
        Some(live) => routing(router).status(live, view),
        None => {
            let missing = lasting_route(router, view).map(|ObjectRef { kind, name, .. }| format!("{kind} {name}"));
            RouteStatus::NotYet { why: format!("{} is not there", missing.unwrap_or_default()) }
        }
    }
}

/// Whether that status says of which generation of the live route it is. Where it does not, one that was there before is no answer to what
/// was written last.
#[must_use]
pub fn is_numbered(router: &Router, view: &RouteView<'_>) -> bool {
    live_route(router, view).is_some_and(|live| routing(router).is_numbered(live))
}

/// What of a route decides who takes it, beside what its gateways let in. No split changes it.
#[must_use]
pub fn place(route: &Object) -> [Option<&Value>; 4] {
    ["/spec/parentRefs", "/spec/hostnames", "/spec/virtualhost", "/spec/includes"].map(|field| route.at(field))
}

/// Whether an object sends requests to that Service of its own namespace. Such an object is deleted before the Service.
#[must_use]
pub fn references(object: &Object, service: &ObjectName) -> bool {
    let ObjectRef { kind, name, .. } = object.reference();
    Router::by_route(*kind, name, service).is_some_and(|router| routing(&router).references(object))
}

/// The routers that a live object shows which leads requests: it names Services beside their candidate's copies, or could do so
/// with one of these, where a copy that gets nothing is not named.
#[must_use]
pub fn routers(route: &Object, candidates: &BTreeSet<ObjectName>) -> Vec<Router> {
    let ObjectRef { kind, name, .. } = route.reference();
    // Which Services it leads to is what is asked.
    let any = Router::by_route(*kind, name, name);
    let split = any.map(|router| routing(&router).split(route, candidates)).unwrap_or_default();
    split.iter().filter_map(|(name, service)| Router::by_route(*kind, name, service)).collect()
}

/// Stable's live Deployment.
fn stable<'a>(view: &RouteView<'a>) -> Option<&'a Object> {
    view.live.find(Kind::Deployment, view.namespace, &view.naming.workload(RoleName::Stable, view.target))
}

/// The candidate's live Deployment.
fn candidate<'a>(view: &RouteView<'a>) -> Option<&'a Object> {
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
