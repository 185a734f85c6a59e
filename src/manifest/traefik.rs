//! What has to be known of Traefik's rules.

use serde_json::Value;

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
