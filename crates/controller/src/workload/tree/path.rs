//! Whether a route fits what its parents lead to it (requirement T-11).
//!
//! Gloo: each path of a delegated table begins, as text, with the prefix of whoever delegates, or the route takes that over
//! (`inheritablePathMatchers`; `converter.go`). Contour puts prefixes in front of each other, so that no path is outside; but a header is asked
//! for by one exact value at most on the way (`headerMatchConditionsValid` of `conditions.go`).

use super::{Finding, Parent, SharedProxy, Tree, gloo};
use crate::manifest::object::{Object, items};
use serde_json::Value;
use std::collections::BTreeMap;

/// How deep includes are followed.
const DEPTH: usize = 16;

impl Tree {
    pub(super) fn outside(&self, route: &Object) -> Vec<Finding> {
        let parents = self.parents(route);
        match self.proxy {
            SharedProxy::Gloo => parents.iter().flat_map(|parent| outside_of(parent, route)).collect(),
            SharedProxy::Contour => parents.iter().flat_map(|parent| self.asked_twice(parent, route)).collect(),
        }
    }

    /// Headers that an HTTPProxy asks for and somebody who includes it too.
    fn asked_twice(&self, parent: &Parent<'_>, proxy: &Object) -> Vec<Finding> {
        let mut asked: BTreeMap<String, String> = BTreeMap::new();
        let mut next = Some(*parent);
        for _ in 0..DEPTH {
            let Some(parent) = next else { break };
            for name in headers(parent.route) {
                asked.entry(name).or_insert_with(|| parent.to_string());
            }
            next = self.parents(parent.object).first().copied();
        }
        let routes = items(&proxy.value()["spec"], "routes").enumerate();
        let twice = |(i, route): (usize, &Value)| {
            let own = headers(route).find_map(|name| Some((asked.get(&name)?.clone(), name)));
            own.map(|(by, name)| {
                let why = format!("routes[{i}] of the HTTPProxy asks for the header {name}, and so does {by}");
                Finding::Outside(format!("{why}: Contour takes one exact value of it; take it out of one of the two"))
            })
        };
        routes.filter_map(twice).collect()
    }
}

/// The headers of which an exact value is asked for.
fn headers(route: &Value) -> impl Iterator<Item = String> {
    let exact = items(route, "conditions").filter_map(|one| one.get("header")).filter(|one| one.get("exact").is_some());
    exact.filter_map(|header| Some(header["name"].as_str()?.to_ascii_lowercase()))
}

/// The path that a matcher asks for; all where it asks for none.
pub(super) fn path(matcher: &Value) -> &str {
    ["prefix", "exact", "regex"].iter().find_map(|how| matcher.get(how)?.as_str()).unwrap_or("/")
}

/// The prefix that a route of Gloo's delegates.
pub(super) fn prefix(route: &Value) -> &str {
    items(route, "matchers").next().and_then(|one| one["prefix"].as_str()).unwrap_or("/")
}

fn outside_of(parent: &Parent<'_>, table: &Object) -> Vec<Finding> {
    let prefix = prefix(parent.route);
    let mut found = Vec::new();
    for (i, route) in gloo::routes(table).enumerate() {
        if route["inheritablePathMatchers"] == Value::Bool(true) {
            continue;
        }
        let asked: Vec<&str> = items(route, "matchers").map(path).collect();
        let asked = if asked.is_empty() { vec!["/"] } else { asked };
        found.extend(asked.into_iter().enumerate().filter(|(_, path)| !path.starts_with(prefix)).map(|(j, path)| {
            let at = format!("routes[{i}].matchers[{j}] of the RouteTable");
            let why = format!("{at} asks for {path}, which does not begin with {prefix}, the prefix of {parent}");
            Finding::Outside(format!("{why}: write a path below it, or inheritablePathMatchers: true"))
        }));
    }
    found
}
