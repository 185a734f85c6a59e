//! Whether gateways have taken a route over.

use crate::manifest::object::{Object, items};
use crate::workload::routers::RouteStatus;
use serde_json::Value;

/// Reasons of a negative condition that pass by themselves: the gateway has not looked yet, or its cache has not seen
/// the candidate's Service, which is made just before the route names it.
const PASSING: [&str; 2] = ["Pending", "BackendNotFound"];

/// Reasons for which gateways do not accept a route that have to do with their own listeners, and with where the route belongs.
const OWN: [&str; 3] = ["NotAllowedByListeners", "NoMatchingListenerHostname", "NoMatchingParent"];

/// Whose conditions never say of which generation they are; from its `policy-controller`, where every condition of a route is
/// made without. Of it the time that a route has to settle stands for that.
const UNNUMBERED: &str = "linkerd.io/policy-controller";

/// Whether every parent of the route has it in force: Accepted and ResolvedRefs for the present generation, from one of
/// the controllers that speak for that parent. An older status says nothing (requirement X-15).
pub(super) fn status(live: &Object) -> RouteStatus {
    let Some(generation) = live.generation() else {
        return RouteStatus::Unknown { why: "the route has no generation".to_owned() };
    };
    let mut parents = items(&live.value()["spec"], "parentRefs").peekable();
    if parents.peek().is_none() {
        return RouteStatus::Unknown {
            why: "the route names no parent (spec.parentRefs), so no gateway speaks for it".into(),
        };
    }
    let namespace = live.reference().namespace.as_str();
    let verdicts = parents.map(|parent| {
        let key = identity(parent, namespace);
        let status = live.value().get("status").unwrap_or(&Value::Null);
        let entries = items(status, "parents").filter(|entry| identity(&entry["parentRef"], namespace) == key);
        let best = entries.map(|entry| judge(entry, generation)).min_by_key(best_first);
        best.unwrap_or_else(|| RouteStatus::NotYet {
            why: format!("no gateway controller speaks for parent {}", key[3]),
        })
    });
    verdicts.max_by_key(worst_last).expect("a verdict, because there is at least one parent")
}

/// Whether all that speak for the route say of which generation.
pub(super) fn is_numbered(live: &Object) -> bool {
    let status = live.at("/status").unwrap_or(&Value::Null);
    items(status, "parents").all(|entry| entry["controllerName"] != UNNUMBERED)
}

/// Group, kind, namespace, name, section and port of a parent, with the API's defaults. A Service is of the group without a name,
/// which Linkerd's status calls `core`.
fn identity(parent: &Value, namespace: &str) -> [String; 6] {
    let text = |key: &str, default: &str| parent[key].as_str().unwrap_or(default).to_owned();
    let group = text("group", "gateway.networking.k8s.io");
    [
        if group == "core" { String::new() } else { group },
        text("kind", "Gateway"),
        text("namespace", namespace),
        text("name", ""),
        text("sectionName", ""),
        parent["port"].to_string(),
    ]
}

fn best_first(standing: &RouteStatus) -> u8 {
    match standing {
        RouteStatus::Effective => 0,
        RouteStatus::Refused { .. } => 1,
        RouteStatus::Barred { .. } => 2,
        RouteStatus::NotYet { .. } | RouteStatus::Blocked { .. } => 3,
        RouteStatus::Unknown { .. } => 4,
    }
}

fn worst_last(standing: &RouteStatus) -> u8 {
    match standing {
        RouteStatus::Effective => 0,
        RouteStatus::NotYet { .. } | RouteStatus::Blocked { .. } => 1,
        RouteStatus::Unknown { .. } => 2,
        RouteStatus::Barred { .. } => 3,
        RouteStatus::Refused { .. } => 4,
    }
}

/// What one controller says for one parent.
fn judge(entry: &Value, generation: i64) -> RouteStatus {
    let condition = |name: &str| items(entry, "conditions").find(|c| c["type"] == name);
    let by = entry["controllerName"].as_str().unwrap_or("a gateway controller");
    let (mut waits, mut barred) = (None, None);
    for (name, wanted) in [("Accepted", "True"), ("ResolvedRefs", "True"), ("PartiallyInvalid", "False")] {
        let Some(found) = condition(name) else {
            if wanted == "True" {
                waits = waits.or(Some(format!("{by} has not set {name}")));
            }
            continue;
        };
        let seen = found["observedGeneration"].as_i64();
        if seen != Some(generation) && (seen.is_some() || by != UNNUMBERED) {
            waits = waits.or(Some(format!("{by}: {name} is about another generation of the route")));
            continue;
        }
        let status = found["status"].as_str().unwrap_or("Unknown");
        let reason = found["reason"].as_str().unwrap_or_default();
        let why = format!("{by}: {name}={status} ({reason}): {}", found["message"].as_str().unwrap_or_default());
        if status == wanted {
            continue;
        }
        if status == "Unknown" || PASSING.contains(&reason) {
            waits = waits.or(Some(why));
        } else if name == "Accepted" && OWN.contains(&reason) {
            barred = Some(why);
        } else {
            return RouteStatus::Refused { why };
        }
    }
    match (barred, waits) {
        (Some(why), _) => RouteStatus::Barred { why },
        (None, Some(why)) => RouteStatus::NotYet { why },
        (None, None) => RouteStatus::Effective,
    }
}
