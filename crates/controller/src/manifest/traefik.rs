//! What has to be known of Traefik's rules.

use super::object::Kind;
use serde_json::Value;

/// What the name of the TraefikService ends in that copies requests beside a route of that kind. That of an IngressRoute is none that
/// a TraefikService of the same name would have beside it, which may be another rollout's.
#[must_use]
pub fn copier_suffix(route: Kind) -> &'static str {
    if route == Kind::IngressRoute { "-copies" } else { "-canary" }
}

/// The priority of an IngressRoute's route: what it says, else the length of its rule; 0 says nothing (Traefik's reference, "Rules and
/// Priority").
#[must_use]
pub fn priority(route: &Value) -> i64 {
    let said = route["priority"].as_i64().filter(|priority| *priority != 0);
    said.unwrap_or_else(|| i64::try_from(route["match"].as_str().unwrap_or_default().len()).unwrap_or(i64::MAX))
}

/// The priority of what goes before that route and before no other: the next number that says something.
#[must_use]
pub fn priority_before(route: &Value) -> i64 {
    match priority(route).saturating_add(1) {
        0 => 1,
        next => next,
    }
}
