//! What the two versions of a rollout call their objects, and what happened while they did: the promise is checked of that.
//!
//! With names of their own each run has other ones, and an act of its own. All others have one act.

use crate::convergence::check::TIDEGATE;
use crate::convergence::shape::{Router, Shape};
use crate::promise::live::Write;
use crate::promise::{Event, Nanos, Violation, Watched, What};
use serde_json::Value;
use std::sync::Arc;
use tidegate::manifest::desired::{self, Layout, UnitKind};
use tidegate::record::posture::{Naming, Versions};
use tidegate::record::state::RolloutState;

/// The names of both versions' workload and Service. Where no candidate has any they are names that nothing has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Names {
    pub(crate) stable: String,
    pub(crate) candidate: String,
    /// Stable's Service.
    pub(crate) service: String,
    /// The candidate's.
    pub(crate) canary: String,
}

impl Names {
    pub(crate) fn first(shape: &Shape) -> Self {
        let canary = format!("{}-canary", shape.name);
        let candidate = if shape.layout == Layout::Versioned { canary.clone() } else { shape.candidate("1") };
        Self { stable: shape.stable("1"), candidate, service: shape.own("1"), canary }
    }

    /// As a record says, if it says so: else they stay.
    pub(crate) fn recorded(shape: &Shape, state: &RolloutState) -> Option<Self> {
        let Naming::Versioned(Versions { stable, candidate }) = &state.clusters.values().next()?.posture.naming else {
            return None;
        };
        let mut names = Self::first(shape);
        (names.stable, names.service) = (stable.target.to_string(), stable.service.to_string());
        if let Some(own) = candidate {
            (names.candidate, names.canary) = (own.target.to_string(), own.service.to_string());
        }
        Some(names)
    }
}

/// What happened while the objects were called so.
pub(crate) struct Act {
    pub(crate) names: Names,
    watched: Watched,
    events: Vec<Event>,
}

impl Act {
    pub(crate) fn new(shape: &Shape, names: Names) -> Self {
        let name = shape.name;
        let service = names.service.parse().unwrap();
        let router = match shape.router {
            Router::Route => desired::Router::GatewayApi { http_route: name.parse().unwrap(), service },
            Router::Grpc => desired::Router::Grpc { grpc_route: name.parse().unwrap(), service },
            Router::Traefik => desired::Router::Traefik { traefik_service: name.parse().unwrap(), service },
            Router::IngressRoute => desired::Router::IngressRoute { ingress_route: name.parse().unwrap(), service },
            Router::Proxy => desired::Router::Contour { http_proxy: name.parse().unwrap(), service },
            Router::Table => desired::Router::Gloo { route_table: name.parse().unwrap(), service },
            Router::Mesh => desired::Router::Istio { virtual_service: name.parse().unwrap(), service },
            Router::Ingress => desired::Router::Nginx { ingress: name.parse().unwrap(), service },
            Router::Set => desired::Router::Units(UnitKind::StatefulSet),
            Router::Daemon => desired::Router::Units(UnitKind::DaemonSet),
            Router::Pods => desired::Router::Replicas { service },
            Router::Service => desired::Router::Service { service },
        };
        let of_its_own = shape.layout == Layout::Versioned;
        let watched = Watched {
            rollout: format!("shop/{name}").parse().unwrap(),
            cluster: "home".parse().unwrap(),
            stable: names.stable.parse().unwrap(),
            candidate: names.candidate.parse().unwrap(),
            router: Some(router),
            service: of_its_own.then(|| names.canary.parse().unwrap()),
            user: TIDEGATE.to_owned(),
        };
        Self { names, watched, events: Vec::new() }
    }

    /// Takes note of a record.
    pub(crate) fn recorded(&mut self, at: Nanos, commit: String, state: Option<&RolloutState>) {
        let state = state.cloned().map(Box::new);
        self.events.push(Event { at, what: What::Moved { commit, state } });
    }

    /// Takes note of what an object has become; none if it is gone.
    pub(crate) fn wrote(&mut self, at: Nanos, by: &str, (plural, name): (&str, &str), object: Option<&Arc<Value>>) {
        let (resource, name) = (plural.to_owned(), name.to_owned());
        let object = match object {
            Some(object) => Write::Is { resource, name, object: Value::clone(object) },
            None => Write::Gone { resource, name },
        };
        self.events.push(Event { at, what: What::Wrote { by: by.to_owned(), object } });
    }

    /// Where live was ahead of the record.
    pub(crate) fn broken(&self) -> Option<Violation> {
        self.watched.check(self.events.clone()).err().map(|violation| *violation)
    }
}
