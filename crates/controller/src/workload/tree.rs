//! The tree of routes behind a proxy that several teams share: who delegates to whom, and what keeps the proxy from taking what is written.
//!
//! It is read in the gateway's namespace and in all that are served, and nothing of it is ever written: a rollout writes its own route alone
//! (requirement T-20). What Gloo and Contour make of these objects is taken from their documents and sources.

mod contour;
mod fault;
mod gloo;
mod path;
mod sibling;

pub(super) use fault::Complaint;
pub use fault::SharedRoute;

use super::live::LiveState;
use crate::manifest::desired::Router;
use crate::manifest::ids::{Namespace, ObjectName};
use crate::manifest::object::{Kind, Object, ObjectRef};
use crate::manifest::other::Other;
use crate::manifest::raw::Gateways;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A kind of proxy that teams share by routes that are delegated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SharedProxy {
    /// Gloo Edge: RouteTables below VirtualServices.
    Gloo,
    /// Contour: HTTPProxies that include each other.
    Contour,
}

impl SharedProxy {
    /// The one that a router writes for.
    #[must_use]
    pub fn of(router: &Router) -> Option<Self> {
        match router {
            Router::Gloo { .. } => Some(Self::Gloo),
            Router::Contour { .. } => Some(Self::Contour),
            Router::GatewayApi { .. }
            | Router::Grpc { .. }
            | Router::Nginx { .. }
            | Router::Istio { .. }
            | Router::Traefik { .. }
            | Router::IngressRoute { .. }
            | Router::Replicas { .. }
            | Router::Service { .. }
            | Router::Units(_) => None,
        }
    }

    /// The kinds that the tree is made of.
    #[must_use]
    pub fn kinds(self) -> BTreeSet<Kind> {
        match self {
            Self::Gloo => {
                let named = [gloo::ROOT, gloo::OPTIONS, gloo::UPSTREAM, gloo::GROUP, gloo::SETTINGS];
                named.into_iter().map(named_alone).chain([Kind::RouteTable]).collect()
            }
            Self::Contour => BTreeSet::from([Kind::HttpProxy]),
        }
    }
}

/// A kind that is known by its names alone.
fn named_alone((api_version, kind): (&str, &str)) -> Kind {
    Kind::Other(Other::named(api_version, kind).unwrap_or(Other::NOTHING))
}

/// The trees of an installation; none of a proxy whose namespace it does not name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trees {
    gloo: Option<Tree>,
    contour: Option<Tree>,
}

impl Trees {
    /// What the gateways' namespaces and those that are served show. `look` says what is known of one, or why nothing is.
    pub fn of(
        gateways: &Gateways,
        served: &BTreeSet<Namespace>,
        look: impl Fn(&Namespace) -> Result<Arc<LiveState>, String>,
    ) -> Self {
        let tree = |proxy, home: Option<&Namespace>| home.map(|home| Tree::of(proxy, home, served, &look));
        Self {
            gloo: tree(SharedProxy::Gloo, gateways.gloo.as_ref().map(|gateway| &gateway.namespace)),
            contour: tree(SharedProxy::Contour, gateways.contour.as_ref().map(|gateway| &gateway.namespace)),
        }
    }

    /// That of the proxy that a router writes for.
    #[must_use]
    pub fn behind(&self, router: &Router) -> Option<&Tree> {
        match SharedProxy::of(router)? {
            SharedProxy::Gloo => self.gloo.as_ref(),
            SharedProxy::Contour => self.contour.as_ref(),
        }
    }
}

/// All that is known behind one proxy.
#[derive(Debug, Clone, PartialEq)]
pub struct Tree {
    proxy: SharedProxy,
    home: Namespace,
    seen: BTreeSet<Namespace>,
    objects: BTreeMap<ObjectRef, Arc<Object>>,
    /// Why nobody knows what stands in the gateway's namespace.
    unread: Option<String>,
}

/// What delegates to a route.
#[derive(Debug, Clone, Copy)]
pub struct Parent<'a> {
    /// The object.
    object: &'a Object,
    /// Which of its routes, or includes, by number.
    number: usize,
    /// The part of it that delegates.
    route: &'a serde_json::Value,
    /// Whether by what labels it asks for.
    selects: bool,
}

impl Tree {
    /// A tree of these namespaces. One that is served and cannot be read hides its own objects, and holds its own rollouts alone.
    fn of(
        proxy: SharedProxy,
        home: &Namespace,
        served: &BTreeSet<Namespace>,
        look: &impl Fn(&Namespace) -> Result<Arc<LiveState>, String>,
    ) -> Self {
        let (mut seen, mut objects, mut unread) = (BTreeSet::new(), BTreeMap::new(), None);
        for namespace in served.iter().chain([home]) {
            let live = look(namespace);
            let closed = |live: &LiveState| {
                let mut closed = live.closed.iter().filter(|(kind, _)| proxy.kinds().contains(kind));
                closed.next().map(|(kind, why)| format!("{kind}: {why}"))
            };
            let trouble = live.as_ref().map_or_else(|why| Some(why.clone()), |live| closed(live));
            if namespace == home {
                unread = trouble.map(|why| format!("the gateway's namespace {home} cannot be read: {why}"));
            }
            let Ok(live) = live else { continue };
            seen.insert(namespace.clone());
            let all = proxy.kinds().into_iter().flat_map(|kind| live.objects.of_kind(kind)).map(Object::reference);
            objects.extend(all.filter_map(|name| Some((name.clone(), Arc::clone(live.objects.get(name)?)))));
        }
        Self { proxy, home: home.clone(), seen, objects, unread }
    }

    /// Why nothing follows from it, if nothing does.
    #[must_use]
    pub fn unread(&self) -> Option<&str> {
        self.unread.as_deref()
    }

    fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Object> {
        self.objects.values().map(AsRef::as_ref).filter(move |object| object.reference().kind == kind)
    }

    fn find(&self, kind: Kind, namespace: &str, name: &str) -> Option<&Object> {
        let (namespace, name): (Namespace, ObjectName) = (namespace.parse().ok()?, name.parse().ok()?);
        self.objects.get(&ObjectRef { kind, namespace, name }).map(AsRef::as_ref)
    }

    /// Whether something is there, where its namespace is looked at.
    fn has(&self, kind: Kind, namespace: &str, name: &str) -> Option<bool> {
        let is_seen = self.seen.iter().any(|seen| seen.as_str() == namespace);
        is_seen.then(|| self.find(kind, namespace, name).is_some())
    }

    /// What delegates to a route, or would once it is there: by its name, or by labels that it has.
    fn parents(&self, route: &Object) -> Vec<Parent<'_>> {
        match self.proxy {
            SharedProxy::Gloo => self.gloo_parents(route),
            SharedProxy::Contour => self.contour_parents(route),
        }
    }

    /// What is wrong with a route as it is to be written; nothing is written before that is mended. `made` says whether the same plan
    /// makes something, or it is live in the rollout's own namespace, where that can be told.
    #[must_use]
    pub fn findings(&self, route: &Object, made: impl Fn(Kind, &str) -> Option<bool>) -> Vec<Finding> {
        let mut found = match self.proxy {
            SharedProxy::Gloo => self.gloo_missing(route, &made),
            SharedProxy::Contour => self.contour_missing(route, &made),
        };
        found.extend(self.outside(route));
        found.extend(self.hidden(route));
        found
    }

    /// What people should know of whoever delegates to a route: nobody, or several (requirement T-20).
    #[must_use]
    pub fn told(&self, route: &Object) -> Option<String> {
        let ObjectRef { kind, name, .. } = route.reference();
        match &*self.parents(route) {
            [] if self.is_root(route) => None,
            [] => Some(format!("nothing delegates to the {kind} {name}, so that it gets no request")),
            [_] => None,
            several => {
                let all: Vec<String> = several.iter().map(ToString::to_string).collect();
                Some(format!("several delegate to the {kind} {name}: {}", all.join(" and ")))
            }
        }
    }

    /// Whether a route has hosts of its own.
    fn is_root(&self, route: &Object) -> bool {
        self.proxy == SharedProxy::Contour && route.at("/spec/virtualhost").is_some()
    }
}

impl std::fmt::Display for Parent<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ObjectRef { kind, namespace, name } = self.object.reference();
        let list = if *kind == Kind::HttpProxy { "includes" } else { "routes" };
        write!(f, "{kind} {namespace}/{name} ({list}[{}])", self.number)
    }
}

/// What keeps a route from being written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// It names what is not there, and nobody makes (requirement T-10).
    Missing(String),
    /// What its parents lead to it and what it asks for do not fit (requirement T-11).
    Outside(String),
    /// Another table takes its requests before it (requirement T-12).
    Hidden(String),
}

#[cfg(test)]
mod tests;
