//! Whether another table of the same selector takes a table's requests before it (requirement T-12).
//!
//! Tables that one route selects are put behind each other by `spec.weight`, the lowest first. Of those with the same weight all routes are sorted
//! anew: exact paths, then regular expressions, then prefixes, and the longer before the shorter; headers count for nothing
//! (`route_table_indexer.go`, `sort_routes.go`). Between equals the order is not told, so that either may come first.

use super::path::path;
use super::{Finding, Tree, gloo};
use crate::manifest::object::{Kind, Object, ObjectRef, items};
use serde_json::Value;
use std::cmp::Ordering;
use std::collections::BTreeMap;

impl Tree {
    pub(super) fn hidden(&self, table: &Object) -> Vec<Finding> {
        let selecting = self.parents(table).into_iter().filter(|parent| parent.selects);
        let mut found = BTreeMap::new();
        for parent in selecting {
            let of_parent = |one: &&Object| {
                let mut parents = self.parents(one).into_iter();
                let same = |other: &super::Parent<'_>| std::ptr::eq(other.route, parent.route);
                one.reference() != table.reference() && parents.any(|other| same(&other))
            };
            for sibling in self.of_kind(Kind::RouteTable).filter(of_parent) {
                found.extend(hides(sibling, table).map(|why| (sibling.reference().clone(), Finding::Hidden(why))));
            }
        }
        found.into_values().collect()
    }
}

/// Why a sibling takes requests of a table's route, if it does: of the first such route.
fn hides(sibling: &Object, table: &Object) -> Option<String> {
    let weight = |object: &Object| object.int("/spec/weight").unwrap_or(0);
    let by_weight = weight(sibling).cmp(&weight(table));
    for (i, own) in gloo::routes(table).enumerate() {
        for (j, other) in gloo::routes(sibling).enumerate() {
            let pairs = matchers(own).flat_map(|own| matchers(other).map(move |other| (own, other)));
            let mut taken = pairs.filter(|(own, other)| {
                let first = by_weight.then_with(|| order(other).cmp(&order(own)));
                first != Ordering::Greater && covers(other, own)
            });
            if let Some((own, _)) = taken.next() {
                let ObjectRef { kind, namespace, name } = sibling.reference();
                let why = format!("routes[{i}] of the RouteTable ({}) comes behind routes[{j}] of the ", path(own));
                let mend = "another path, or a lower spec.weight than the other's";
                return Some(format!("{why}{kind} {namespace}/{name}, or may, which takes its requests: {mend}"));
            }
        }
    }
    None
}

/// The matchers of a route; one for all where it has none.
fn matchers(route: &Value) -> impl Iterator<Item = &Value> + Clone {
    const ALL: &[Value] = &[Value::Null];
    let own = route["matchers"].as_array().filter(|own| !own.is_empty());
    own.map_or(ALL, Vec::as_slice).iter()
}

/// By what routes of the same weight are sorted.
fn order(matcher: &Value) -> (usize, std::cmp::Reverse<usize>) {
    let kind = ["exact", "regex"].iter().position(|how| matcher.get(how).is_some()).unwrap_or(2);
    (kind, std::cmp::Reverse(path(matcher).len()))
}

/// Whether one matcher takes all that another takes. Of a regular expression it is asked whether its fixed beginning fits.
fn covers(one: &Value, other: &Value) -> bool {
    let has = |holder: &Value, key: &str, wanted: &Value| items(holder, key).any(|given| given == wanted);
    let asks = |key: &str| items(one, key).all(|asked| has(other, key, asked));
    // Methods are alternatives.
    let any = items(one, "methods").next().is_none();
    let methods =
        any || items(other, "methods").next().is_some() && items(other, "methods").all(|own| has(one, "methods", own));
    let (ours, theirs) = (path(other), path(one));
    let fits = if one.get("exact").is_some() {
        other.get("exact").is_some() && ours == theirs
    } else if one.get("regex").is_some() {
        let fixed = theirs.split(|c| ".*+?()[]{}|\\^$".contains(c)).next().unwrap_or_default();
        if other.get("regex").is_some() { ours == theirs } else { ours.starts_with(fixed) }
    } else {
        other.get("regex").is_none() && ours.starts_with(theirs)
    };
    fits && methods && ["headers", "queryParameters"].iter().all(|key| asks(key))
}
