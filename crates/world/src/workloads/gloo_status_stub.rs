//! GlooStatusStub: speaks of RouteTables as Gloo does, by its documents and sources; it is no Gloo and leads no request anywhere.
//!
//! - A table is `Accepted`, or has a `Warning` about a Service that is not there (`converter.go`: a missing destination is one).
//! - A table that names an Upstream that is not there has a `Warning` too.
//! - A table whose destinations all have the weight 0 is `Rejected`, as is each one of a namespace with `testbed/gateway: refuse`.
//! - The kind has no status subresource (`install/helm/gloo/crds`): a status is written with the object, and raises its version.
//! - What would be said again is not written again.

use super::gateway::WORD;
use super::{Due, all, text};
use crate::kube_api::World;
use crate::kube_api::resource::Resource;
use serde_json::{Value, json};

/// What it speaks of.
pub(super) const TABLE: (&str, &str) = ("gateway.solo.io/v1", "RouteTable");
/// What tables may lead to.
pub(super) const UPSTREAM: (&str, &str) = ("gloo.solo.io/v1", "Upstream");
/// The name under which it writes.
const GLOO: &str = "gloo";
/// The namespace in which it stands.
const HOME: &str = "gloo-system";

pub(super) fn run(world: &mut World, _: &mut Due) {
    let [namespaces, services] = ["Namespace", "Service"]
        .map(|kind| Resource::of_kind("v1", kind).expect("found because its row is in the table"));
    let upstreams = Resource::of_kind(UPSTREAM.0, UPSTREAM.1).expect("found because its row is in the table");
    for table in all(world, TABLE.0, TABLE.1) {
        let around = world.get(namespaces, "", text(&table, "/metadata/namespace"));
        let refused = around.is_some_and(|around| around["metadata"]["annotations"][WORD] == "refuse");
        let missing = |namespace: &str, name: &str| world.get(services, namespace, name).is_none();
        let unknown = |namespace: &str, name: &str| world.get(upstreams, namespace, name).is_none();
        let (state, reason) = if refused {
            ("Rejected", "it takes no table of this namespace".to_owned())
        } else {
            said(&table, missing, unknown)
        };
        let status = json!({"statuses": {HOME: {"state": state, "reason": reason, "reportedBy": GLOO}}});
        if table["status"] != status {
            let mut next = Value::clone(&table);
            next["status"] = status;
            drop(world.update(next, "", GLOO));
        }
    }
}

/// State and reason.
fn said(
    table: &Value,
    missing: impl Fn(&str, &str) -> bool,
    unknown: impl Fn(&str, &str) -> bool,
) -> (&'static str, String) {
    let routes = || table["spec"]["routes"].as_array().into_iter().flatten();
    let several = |route: &Value| route["routeAction"]["multi"]["destinations"].as_array().cloned().unwrap_or_default();
    let nothing = |route: &Value| {
        let all = several(route);
        !all.is_empty() && all.iter().all(|entry| entry["weight"].as_u64().unwrap_or(0) == 0)
    };
    if routes().any(nothing) {
        return ("Rejected", "the sum of the weights of all destinations is 0".to_owned());
    }
    let single = routes().map(|route| route["routeAction"]["single"].clone());
    let all: Vec<Value> = single.chain(routes().flat_map(several).map(|entry| entry["destination"].clone())).collect();
    let upstream = |to: &Value| {
        let [namespace, name] = ["namespace", "name"].map(|key| to["upstream"][key].as_str());
        Some((namespace?.to_owned(), name?.to_owned())).filter(|(_, name)| !name.starts_with("kube-svc:"))
    };
    if let Some((namespace, name)) = all.iter().filter_map(upstream).find(|(namespace, name)| unknown(namespace, name))
    {
        return ("Warning", format!("*v1.Upstream {{ {namespace}.{name} }} not found"));
    }
    let mut named = all.into_iter().filter_map(|to| {
        let (to, port) = (&to["kube"]["ref"], &to["kube"]["port"]);
        Some((to["namespace"].as_str()?.to_owned(), to["name"].as_str()?.to_owned(), port.clone()))
    });
    match named.find(|(namespace, name, _)| missing(namespace, name)) {
        Some((namespace, name, port)) => {
            ("Warning", format!("*v1.Upstream {{ {namespace}.kube-svc:{namespace}-{name}-{port} }} not found"))
        }
        None => ("Accepted", String::new()),
    }
}
