//! What an HTTPRoute must be like so that a split of it can be written, and read back as written: what the tests hold rendering to.

use super::rules::{self, Names};
use super::{MAX_WEIGHT, read, render};
use crate::manifest::desired::HeaderMatch;
use crate::manifest::ids::ObjectName;
use crate::manifest::object::{Object, items};
use crate::record::posture::Split;
use crate::workload::routers::ObservedSplit;
use serde_json::Value;
use std::collections::BTreeSet;

/// Why a split of a route cannot be written. The limits are those of the Gateway API's HTTPRoute v1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum RouteError {
    /// Nothing to split.
    #[error("HTTPRoute {route}: no rule sends to Service {service}; name it in the backendRefs of at least one rule")]
    NotNamed {
        /// The route.
        route: ObjectName,
        /// The Service.
        service: ObjectName,
    },
    /// The manifests speak of the candidate, which is ours to do.
    #[error("HTTPRoute {route}: rule {rule} names the candidate's Service; leave that to the rollout's phases")]
    NamesCandidate {
        /// The route.
        route: ObjectName,
        /// Which rule, from 0.
        rule: usize,
    },
    /// Too many of something, with what the split adds.
    #[error("HTTPRoute {route}: {found} {what} with the split in it, and the Gateway API takes at most {limit}")]
    TooMany {
        /// The route.
        route: ObjectName,
        /// Of what.
        what: &'static str,
        /// How many there would be.
        found: u64,
        /// How many may be.
        limit: u64,
    },
    /// A header, or a rule's name, stands twice.
    #[error("HTTPRoute {route}: {what} {name:?} stands twice; the Gateway API takes each once")]
    Twice {
        /// The route.
        route: ObjectName,
        /// What.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// The headers do not come out as written.
    #[error(
        "HTTPRoute {route}: the header alternatives {wanted:?} would let through {shown:?}, since its rules ask for some \
         of these headers themselves; use a header that no rule asks for"
    )]
    NotExact {
        /// The route.
        route: ObjectName,
        /// As the phases say.
        wanted: BTreeSet<HeaderMatch>,
        /// As the route would show.
        shown: String,
    },
}

/// Whether the split can be written on this route of the manifests, and is then read as the same.
///
/// # Errors
/// Everything that is in the way.
pub(super) fn check(route: &Object, service: &ObjectName, split: &Split) -> Result<(), Vec<RouteError>> {
    let names = Names::of(route, service);
    let name = &route.reference().name;
    let own: Vec<&Value> = items(&route.value()["spec"], "rules").collect();
    let mut errors = Vec::new();
    if !own.iter().any(|rule| names.sums(rule).stable.is_some()) {
        errors.push(RouteError::NotNamed { route: name.clone(), service: service.clone() });
    }
    for (rule, value) in own.iter().enumerate() {
        if names.sums(value).candidate.is_some() || names.mirrors_candidate(value) {
            errors.push(RouteError::NamesCandidate { route: name.clone(), rule });
        }
    }
    let largest = own.iter().flat_map(|rule| items(rule, "backendRefs")).map(rules::weight).max().unwrap_or(0);
    let too_many =
        |what, found, limit| (found > limit).then(|| RouteError::TooMany { route: name.clone(), what, found, limit });
    errors.extend(too_many("as the weight of a backendRef", largest * 100, MAX_WEIGHT));
    let rendered = render(route, service, split);
    errors.extend(counts(&rendered).into_iter().filter_map(|(what, found, limit)| too_many(what, found, limit)));
    errors.extend(doubles(&rendered).map(|(what, twice)| RouteError::Twice { route: name.clone(), what, name: twice }));
    if errors.is_empty() {
        let seen = read(&rendered, service);
        if !matches!(&seen, ObservedSplit::Split(shown) if shown.same(split)) {
            let shown = match seen {
                ObservedSplit::Split(shown) => format!("{:?}", shown.headers),
                ObservedSplit::Foreign(why) => why,
            };
            errors.push(RouteError::NotExact { route: name.clone(), wanted: split.headers.clone(), shown });
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

fn counts(route: &Object) -> Vec<(&'static str, u64, u64)> {
    let rules: Vec<&Value> = items(&route.value()["spec"], "rules").collect();
    let len = |value: &Value, key: &str| u64::try_from(items(value, key).count()).unwrap_or(u64::MAX);
    let matches = || rules.iter().flat_map(|rule| items(rule, "matches"));
    vec![
        ("rules", u64::try_from(rules.len()).unwrap_or(u64::MAX), 16),
        ("matches in all rules", rules.iter().map(|rule| len(rule, "matches")).sum(), 128),
        ("matches in one rule", rules.iter().map(|rule| len(rule, "matches")).max().unwrap_or(0), 64),
        ("backendRefs in one rule", rules.iter().map(|rule| len(rule, "backendRefs")).max().unwrap_or(0), 16),
        ("filters in one rule", rules.iter().map(|rule| len(rule, "filters")).max().unwrap_or(0), 16),
        ("headers in one match", matches().map(|m| len(m, "headers")).max().unwrap_or(0), 16),
    ]
}

fn doubles(route: &Object) -> impl Iterator<Item = (&'static str, String)> {
    let rules: Vec<&Value> = items(&route.value()["spec"], "rules").collect();
    let text = |value: &Value| value["name"].as_str().map(str::to_ascii_lowercase);
    let names = twice(rules.iter().filter_map(|rule| text(rule)));
    let headers = rules.iter().flat_map(|rule| items(rule, "matches"));
    let headers: BTreeSet<String> = headers.flat_map(|one| twice(items(one, "headers").filter_map(text))).collect();
    let names = names.into_iter().map(|name| ("rule name", name));
    names.chain(headers.into_iter().map(|name| ("header", name)))
}

fn twice(names: impl Iterator<Item = String>) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    names.filter(|name| !seen.insert(name.clone())).collect()
}
