//! A gateway in 60 lines: which rule takes a request, and who gets it (Gateway API v1, "HTTPRouteRule.matches").

use super::super::rules::{Condition, asked, condition, weight};
use crate::manifest::desired::HeaderMatch;
use crate::manifest::object::{Object, items};
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) path: String,
    pub(super) headers: BTreeMap<String, String>,
}

impl Request {
    pub(super) fn carries(&self, alternative: &HeaderMatch) -> bool {
        alternative.iter().all(|(name, value)| self.headers.get(name).is_some_and(|found| takes(&asked(value), found)))
    }
}

/// Whether a value meets a condition. The patterns of the tests are values with bars between them.
fn takes((how, wanted): &Condition, found: &str) -> bool {
    if how == "RegularExpression" { wanted.split('|').any(|one| one == found) } else { wanted == found }
}

/// Two paths, and the headers a, b and c absent or with one of two values.
pub(super) fn requests() -> Vec<Request> {
    let values = [None, Some("1"), Some("2")];
    let mut all = Vec::new();
    for path in ["/", "/x"] {
        for a in values {
            for b in values {
                for c in values {
                    let named = [("a", a), ("b", b), ("c", c)];
                    let headers = named.into_iter().filter_map(|(n, v)| Some((n.to_owned(), v?.to_owned()))).collect();
                    all.push(Request { path: path.to_owned(), headers });
                }
            }
        }
    }
    all
}

/// The rule that takes the request: longest path, then most headers, then first.
pub(super) fn rule_for<'a>(route: &'a Object, request: &Request) -> Option<&'a Value> {
    let mut best: Option<((usize, usize), &Value)> = None;
    for rule in items(&route.value()["spec"], "rules") {
        let everything = [json!({})];
        let given: Vec<&Value> = items(rule, "matches").collect();
        let given = if given.is_empty() { everything.iter().collect() } else { given };
        for rank in given.into_iter().filter_map(|one| rank(one, request)) {
            if best.is_none_or(|(top, _)| rank > top) {
                best = Some((rank, rule));
            }
        }
    }
    best.map(|(_, rule)| rule)
}

fn rank(one: &Value, request: &Request) -> Option<(usize, usize)> {
    let path = one.pointer("/path/value").and_then(Value::as_str).unwrap_or("/");
    let holds = |h: &Value| {
        let name = h["name"].as_str().unwrap_or_default().to_ascii_lowercase();
        request.headers.get(&name).is_some_and(|found| takes(&condition(h), found))
    };
    (request.path.starts_with(path) && items(one, "headers").all(holds))
        .then(|| (path.len(), items(one, "headers").count()))
}

/// The share in percent that `name` gets of the requests like this one that go to one of `among`.
pub(super) fn share(route: &Object, request: &Request, name: &str, among: &[&str]) -> f64 {
    let sum = |names: &[&str]| -> u64 {
        let refs = rule_for(route, request).into_iter().flat_map(|rule| items(rule, "backendRefs"));
        refs.filter(|b| names.iter().any(|name| b["name"] == *name)).map(weight).sum()
    };
    let all = u32::try_from(sum(among)).unwrap();
    let own = u32::try_from(sum(&[name])).unwrap();
    if all == 0 { 0.0 } else { 100.0 * f64::from(own) / f64::from(all) }
}

/// The share of all requests like this one that reaches the candidate.
pub(super) fn candidate_share(route: &Object, request: &Request) -> f64 {
    share(route, request, "web-canary", &["web", "web-canary", "old"])
}
