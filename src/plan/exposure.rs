//! What live users reach of the new version, and how to take it back from live alone (design §1).

use super::context::Context;
use crate::manifest::desired::Router;
use crate::manifest::ids::ObjectName;
use crate::manifest::object::{APPLIED, Kind, Object, ObjectRef, RETREATED};
use crate::record::posture::Split;
use crate::target::{compare, layout, owned, workload};
use crate::traffic::{Seen, Standing, gateway_api, replicas};

/// The objects that carry the split, those that people's requests meet first.
#[must_use]
pub fn carriers(context: &Context<'_>) -> Vec<ObjectRef> {
    match context.router() {
        Some(Router::GatewayApi { http_route, .. }) => vec![context.object(Kind::HttpRoute, http_route)],
        Some(Router::Replicas { service }) => {
            vec![context.object(Kind::Service, service), context.candidate_deployment()]
        }
        None => Vec::new(),
    }
}

/// How live splits requests now. Shapes that we did not write are `Err` with what was found.
///
/// # Errors
/// When the carrier's rules cannot be read as a split.
pub fn live_split(context: &Context<'_>) -> Result<Split, String> {
    match context.router() {
        None => Ok(Split::stable()),
        Some(Router::GatewayApi { http_route, service }) => {
            let route = context.live.get(&context.object(Kind::HttpRoute, http_route));
            match route.map(|route| gateway_api::read(route, service)) {
                None => Ok(Split::stable()),
                Some(Seen::Split(split)) => Ok(split),
                Some(Seen::Foreign(why)) => Err(why),
            }
        }
        Some(Router::Replicas { service }) => {
            let service = context.object(Kind::Service, service);
            Ok(replicas::read(context.live, &service, &context.candidate_deployment(), context.baseline))
        }
    }
}

/// Whether the route is in force.
#[must_use]
pub fn standing(context: &Context<'_>) -> Standing {
    match context.router() {
        None | Some(Router::Replicas { .. }) => Standing::Effective,
        Some(Router::GatewayApi { http_route, .. }) => {
            let route = context.live.get(&context.object(Kind::HttpRoute, http_route));
            route.map_or_else(|| Standing::NotYet("the route is not there yet".to_owned()), gateway_api::standing)
        }
    }
}

/// The ready endpoints of the two roles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ready {
    /// Those that serve stable's share.
    pub stable: u32,
    /// Those that serve the candidate's share.
    pub candidate: u32,
}

/// Counts the ready endpoints of both roles.
#[must_use]
pub fn ready(context: &Context<'_>) -> Ready {
    let of_deployment = |reference: &ObjectRef| {
        let available = context.live.get(reference).and_then(|d| d.int("/status/readyReplicas")).unwrap_or(0);
        u32::try_from(available).unwrap_or(0)
    };
    match context.router() {
        Some(Router::GatewayApi { service, .. }) => {
            let count = |name: &ObjectName| workload::ready_endpoints(context.live, context.namespace(), name);
            Ready { stable: count(service), candidate: layout::canary_name(service).map_or(0, |name| count(&name)) }
        }
        Some(Router::Replicas { .. }) | None => Ready {
            stable: of_deployment(&context.target()),
            candidate: of_deployment(&context.candidate_deployment()),
        },
    }
}

/// A carrier with everything back at stable and the run's mark, rendered from what we own of it live.
#[must_use]
pub fn retreated(context: &Context<'_>, live: &Object, mark: &str) -> Object {
    let reference = live.reference().clone();
    let mut object = owned::owned_by(live, context.manager)
        .unwrap_or_else(|| Object::new(reference.clone(), serde_json::Value::Null));
    match context.router() {
        Some(Router::GatewayApi { service, http_route }) if reference.name == *http_route => {
            if object.at("/spec/rules").is_some() || !is_stable(gateway_api::read(live, service)) {
                let rules = gateway_api::retreat(live, service);
                object.value_mut()["spec"]["rules"] = rules;
            }
        }
        Some(Router::Replicas { .. }) if reference == context.candidate_deployment() => {
            object = layout::with_replicas(&object, Some(0));
        }
        Some(Router::Replicas { service }) if reference.kind == Kind::Service && reference.name == *service => {
            object = replicas::select_all(&object);
        }
        Some(Router::GatewayApi { .. } | Router::Replicas { .. }) | None => {}
    }
    object.annotate(RETREATED, mark);
    let digest = compare::applied_digest(&object);
    object.annotate(APPLIED, &digest);
    object
}

fn is_stable(seen: Seen) -> bool {
    match seen {
        Seen::Split(split) => split.is_stable(),
        Seen::Foreign(_) => false,
    }
}
