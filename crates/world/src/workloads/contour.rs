//! Contour, as far as it speaks of HTTPProxies: each is valid once its Services are there, unless the annotation `testbed/gateway: refuse` of
//! the namespace says that it takes none, or no root includes what is in that namespace: it has the label `testbed/no-routes`. Of several roots
//! with one host none is valid, and what those alone include is orphaned.

use super::gateway::{BARRED, WORD};
use super::{Due, all, stamp, text, write_status};
use crate::kube_api::World;
use crate::kube_api::resource::Resource;
use serde_json::{Value, json};
use std::sync::Arc;

/// What it serves.
pub(super) const PROXY: (&str, &str) = ("projectcontour.io/v1", "HTTPProxy");
/// The name under which it writes.
const CONTOUR: &str = "contour";

pub(super) fn run(world: &mut World, _: &mut Due) {
    let [namespaces, services] = ["Namespace", "Service"]
        .map(|kind| Resource::of_kind("v1", kind).expect("found because its row is in the table"));
    let everything = all(world, PROXY.0, PROXY.1);
    for proxy in everything.clone() {
        let namespace = text(&proxy, "/metadata/namespace");
        let around = world.get(namespaces, "", namespace).map(|around| around["metadata"].clone()).unwrap_or_default();
        let routes = proxy["spec"]["routes"].as_array().into_iter().flatten();
        let named = routes.filter_map(|route| route["services"].as_array()).flatten();
        let mut names = named.filter_map(|service| service["name"].as_str());
        let error = if around["annotations"][WORD] == "refuse" {
            Some(("SpecError", "Refused", "it takes no HTTPProxy of this namespace".to_owned()))
        } else if let Some(host) = taken(&proxy, &everything) {
            let why = format!("fqdn \"{host}\" is used in multiple HTTPProxies");
            Some(("VirtualHostError", "DuplicateVhost", why))
        } else if !around["labels"][BARRED].is_null() || is_orphaned(&proxy, &everything) {
            let why = "this HTTPProxy is not part of a delegation chain from a root HTTPProxy";
            Some(("Orphaned", "Orphaned", why.to_owned()))
        } else {
            let missing = names.find(|name| world.get(services, namespace, name).is_none());
            missing.map(|name| {
                let why = format!("Spec.Routes unresolved service reference: service \"{namespace}/{name}\" not found");
                ("ServiceError", "ServiceUnresolvedReference", why)
            })
        };
        let status = status(world, &proxy, error);
        write_status(world, &proxy, status, CONTOUR);
    }
}

/// The host of a root that another one has too.
fn taken<'a>(proxy: &'a Value, all: &[Arc<Value>]) -> Option<&'a str> {
    let host = proxy["spec"]["virtualhost"]["fqdn"].as_str()?;
    let other = |one: &&Arc<Value>| one["metadata"]["uid"] != proxy["metadata"]["uid"];
    all.iter().filter(other).any(|one| one["spec"]["virtualhost"]["fqdn"] == host).then_some(host)
}

/// Whether somebody includes it, and nobody of those is valid.
fn is_orphaned(proxy: &Value, all: &[Arc<Value>]) -> bool {
    let own = |key: &str| &proxy["metadata"][key];
    let names = |one: &&Arc<Value>| {
        let mut includes = one["spec"]["includes"].as_array().into_iter().flatten();
        includes.any(|include| include["name"] == *own("name") && include["namespace"] == *own("namespace"))
    };
    let mut parents = all.iter().filter(names).peekable();
    parents.peek().is_some() && parents.all(|parent| taken(parent, all).is_some())
}

/// What it says of an HTTPProxy, with what is wrong.
fn status(world: &World, proxy: &Value, error: Option<(&str, &str, String)>) -> Value {
    let valid = if error.is_none() { "True" } else { "False" };
    let before = proxy["status"]["conditions"].as_array().into_iter().flatten().find(|c| c["type"] == "Valid");
    let since = before.filter(|last| last["status"] == *valid).map(|last| last["lastTransitionTime"].clone());
    let mut condition = json!({
        "type": "Valid", "status": valid, "reason": "Valid", "message": "Valid HTTPProxy",
        "observedGeneration": proxy["metadata"]["generation"],
        "lastTransitionTime": since.unwrap_or_else(|| stamp(world)),
    });
    let mut current = "valid";
    if let Some((kind, reason, message)) = error {
        current = if kind == "Orphaned" { "orphaned" } else { "invalid" };
        condition["reason"] = "ErrorPresent".into();
        condition["message"] = "At least one error present, see Errors for details".into();
        condition["errors"] = json!([{"type": kind, "reason": reason, "status": "True", "message": message}]);
    }
    json!({"currentStatus": current, "description": condition["message"], "conditions": [condition]})
}
