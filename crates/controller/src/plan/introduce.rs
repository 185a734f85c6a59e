//! A route that leads to a copy of the Service, as another tool has left it, on its way to the Service itself: a backend is named with a
//! share of nothing before anything is led there, and named so still when nothing is led there any more.
//!
//! A gateway that learns at once of a route and of what it leads to, or loses both at once, may answer 503 for a moment: so does Envoy, to
//! which routes and what they lead to come by streams of their own.

use super::context::Context;
use super::exposure;
use super::report::{Reason, Wait};
use crate::manifest::desired::By;
use crate::manifest::object::Object;
use crate::record::state::Time;
use crate::workload::routers::{self, RouteStatus, leftover};
use chrono::TimeDelta;
use serde_json::Value;

/// What is written over a live object on the way to `wanted`.
#[must_use]
pub fn toward(context: &Context<'_>, wanted: &Object, live: &Object) -> Object {
    let serves = || matches!(exposure::status(context), RouteStatus::Effective);
    let named = context.naming.stable_service().zip(context.router());
    let next = named.and_then(|(copy, router)| leftover::next(router, wanted, live, &copy));
    next.filter(|_| serves()).unwrap_or_else(|| wanted.clone())
}

/// What has to be over before the next step: gateways follow the last one.
#[must_use]
pub fn pending(context: &Context<'_>) -> Option<Wait> {
    let (copy, router) = context.naming.stable_service().zip(context.router())?;
    let mut routes = exposure::routes(context).into_iter().filter_map(|route| context.live.get(&route));
    let live = routes.find(|live| leftover::names_both(router, live, &copy))?;
    if let RouteStatus::NotYet { why } | RouteStatus::Blocked { why, .. } = exposure::status(context) {
        return Some(Wait::new(Reason::Writing, why));
    }
    settling(context, live)
}

/// Until when a route on its way back is not taken to be in force whose status does not say of which generation it is: proxies follow what
/// was written last.
#[must_use]
pub fn following(context: &Context<'_>) -> Option<Wait> {
    let router = context.router().filter(|router| router.by() == By::Route)?;
    if routers::is_numbered(router, &context.view()) {
        return None;
    }
    let routes = exposure::routes(context).into_iter().filter_map(|route| context.live.get(&route));
    routes.filter_map(|live| settling(context, live)).max_by_key(|wait| wait.until)
}

fn settling(context: &Context<'_>, live: &Object) -> Option<Wait> {
    let settle = context.plan.traffic.as_ref().map_or(0, |traffic| traffic.settle.as_secs());
    let at = written(live, context.manager)? + TimeDelta::seconds(i64::try_from(settle).unwrap_or(i64::MAX / 1000));
    let why = format!("{}: gateways have {settle} s to follow", live.reference());
    (context.input.now < at).then(|| Wait::new(Reason::Writing, why).until(at))
}

/// When we wrote an object last.
pub(super) fn written(live: &Object, manager: &str) -> Option<Time> {
    let entries = live.at("/metadata/managedFields").and_then(Value::as_array)?;
    let own = entries.iter().filter(|entry| entry["manager"] == manager && entry["operation"] == "Apply");
    own.filter_map(|entry| entry["time"].as_str()?.parse().ok()).max()
}
