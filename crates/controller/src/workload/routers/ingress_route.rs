//! The router `traefik` by an IngressRoute, whose routes lead to stable's Service and, during a run, to the candidate's copy of it.
//!
//! Each route is rewritten in the words of an HTTPRoute's rule and back ([`super::gateway_api`]); its services are as those of a
//! TraefikService ([`traefik`]). Who sends certain headers is led by a route of its own, whose rule is that of the route that they
//! would come by, and the headers. Semantics: Traefik's reference of IngressRoute and "Rules and Priority": the matching route of the
//! highest priority takes a request, and a route that says none has the length of its rule as its priority.

use super::http_form::{self, HttpRouteForm};
use super::{Routing, traefik};
use crate::manifest::ids::{ObjectName, Percent};
use crate::manifest::object::{Object, items, section};
use crate::manifest::traefik::priority_before;
use crate::workload::layouts::LayoutError;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use traefik::Entries;

/// An IngressRoute that leads to that Service.
pub(super) struct IngressRoute<'a>(pub(super) &'a ObjectName);

impl Routing for IngressRoute<'_> {
    fn as_http_route(&self, route: &Object) -> Option<HttpRouteForm<'_>> {
        let entries = Entries::of(route, self.0);
        let routes: Vec<&Value> = items(&route.value()["spec"], "routes").collect();
        let words = routes.iter().enumerate().map(|(i, one)| {
            let services: Vec<&Value> = items(one, "services").collect();
            let mut words = entries.in_words(&services);
            // A route of the user's may have such a rule too, and asks for its headers itself.
            let ours = !services.is_empty() && services.iter().all(|entry| entries.is_candidate(entry));
            let next = routes.get(i + 1).filter(|_| ours).and_then(|next| with_headers(rule(one), rule(next)));
            words["matches"] = next.unwrap_or_else(|| vec![json!({"rule": rule(one)})]).into();
            words["own"] = (*one).clone();
            words
        });
        Some(HttpRouteForm::of(route, words.collect(), self.0))
    }

    fn with_http_route(&self, route: &Object, words: Object) -> Object {
        let entries = Entries::of(route, self.0);
        http_form::with_rules(route, "routes", &words, |words| [one(words, &entries)])
    }

    fn extra_route(&self, route: &Object, copies: Percent) -> Result<Option<Object>, LayoutError> {
        traefik::beside(route, self.0, copies)
    }

    fn references(&self, route: &Object) -> bool {
        traefik::references(route, self.0)
    }

    fn split(&self, route: &Object, candidates: &BTreeSet<ObjectName>) -> Vec<(ObjectName, ObjectName)> {
        let entries = items(&route.value()["spec"], "routes").flat_map(|one| items(one, "services"));
        traefik::split_in(route, entries, candidates)
    }
}

fn rule(route: &Value) -> &str {
    route["match"].as_str().unwrap_or_default()
}

/// A rule in the words of a route. The one for headers goes before that of whose requests it takes some, and before no other.
fn one(words: &Value, entries: &Entries<'_>) -> Value {
    let mut route = words["own"].clone();
    let before = priority_before(&route);
    let fields = section(&mut route, &[]);
    if fields.contains_key("services") {
        fields.insert("services".to_owned(), entries.out_of_words(words));
    }
    let asked = items(words, "matches").filter_map(asked).collect::<Vec<_>>().join(OR);
    // One that asks for them already has its priority.
    if !asked.is_empty() && fields.get("match").and_then(Value::as_str) != Some(asked.as_str()) {
        fields.insert("match".to_owned(), asked.into());
        fields.insert("priority".to_owned(), before.into());
    }
    route
}

const OR: &str = " || ";
const AND: &str = " && Header";
/// How a header is compared, in the Gateway API's words and in Traefik's.
const HOW: [(&str, &str); 2] = [("RegularExpression", "Regexp(`"), ("Exact", "(`")];

/// The rule of a match that asks for headers: that of all, and each header.
fn asked(one: &Value) -> Option<String> {
    let headers: Vec<String> = items(one, "headers").filter_map(header).collect();
    let rule = one["rule"].as_str()?;
    (!headers.is_empty()).then(|| format!("({rule}){}", headers.concat()))
}

fn header(one: &Value) -> Option<String> {
    let (_, how) = HOW.iter().find(|(known, _)| one["type"] == *known)?;
    Some(format!("{AND}{how}{}`, `{}`)", one["name"].as_str()?, one["value"].as_str()?))
}

/// The matches of a route for the candidate alone that is the next one's for certain headers: as [`asked`] writes them. None of any
/// other rule.
fn with_headers(rule: &str, next: &str) -> Option<Vec<Value>> {
    let mut rest = rule;
    let mut all = Vec::new();
    loop {
        rest = rest.strip_prefix('(')?.strip_prefix(next)?.strip_prefix(')')?;
        let mut headers = Vec::new();
        while let Some(more) = rest.strip_prefix(AND) {
            let (how, more) = HOW.iter().find_map(|(known, how)| Some((*known, more.strip_prefix(how)?)))?;
            let (name, more) = more.split_once("`, `")?;
            let (value, more) = more.split_once("`)")?;
            headers.push(json!({"type": how, "name": name, "value": value}));
            rest = more;
        }
        if headers.is_empty() {
            return None;
        }
        all.push(json!({"rule": next, "headers": headers}));
        if rest.is_empty() {
            return Some(all);
        }
        rest = rest.strip_prefix(OR)?;
    }
}

#[cfg(test)]
mod tests;
