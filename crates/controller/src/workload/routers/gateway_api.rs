//! The router `gatewayAPI`: an HTTPRoute or a GRPCRoute whose rules send a share of the requests, and those with certain headers, to
//! the candidate's copy of the Service.
//!
//! What is written is always the whole list of rules, rendered from the route of the manifests; the list is atomic in
//! server-side apply. Semantics: Gateway API v1, "HTTPRouteRule" and "GRPCRouteRule": in both the match that asks for more headers goes
//! before one that is the same but for them.

use super::http_form::HttpRouteForm;
use super::{ObservedSplit, RouteStatus, RouteView, Routing, Services};
use crate::manifest::desired::{HeaderMatch, Router};
use crate::manifest::ids::{ObjectName, Percent};
use crate::manifest::object::{Kind, Object, items, items_mut, section};
use crate::record::posture::Split;
use crate::workload::layouts::{SUFFIX, suffixed};
use serde_json::{Value, json};
use std::collections::BTreeSet;

mod leftover;
#[cfg(test)]
mod limits;
mod rules;
mod status;

pub(super) use leftover::{names_both, next, without_copies};

pub(super) use rules::weight;

#[cfg(test)]
use limits::check;
use rules::{Backend, Names, Rule, alternatives};

/// The largest weight that the API takes (HTTPBackendRef).
const MAX_WEIGHT: u64 = 1_000_000;

/// An HTTPRoute or a GRPCRoute that leads to that Service.
pub(super) struct GatewayApi<'a>(pub(super) &'a ObjectName);

impl Routing for GatewayApi<'_> {
    fn as_http_route(&self, route: &Object) -> Option<HttpRouteForm<'_>> {
        Some(HttpRouteForm { route: route.clone(), service: self.0 })
    }

    fn with_cookie(&self, split: &Object, cookie: &str) -> Object {
        if split.reference().kind == Kind::HttpRoute { with_cookie(split, self.0, cookie) } else { split.clone() }
    }

    fn status(&self, route: &Object, _view: &RouteView<'_>) -> RouteStatus {
        status::status(route)
    }

    fn is_numbered(&self, route: &Object) -> bool {
        status::is_numbered(route)
    }
}

/// The manifests' route with a split between two Services of which neither is the other's copy; whom its weight let in gets that
/// `Set-Cookie`.
#[must_use]
pub fn between(services: Services<'_>, plain: &Object, split: &Split, cookie: Option<&str>) -> Object {
    let rendered = render(plain, services, split);
    cookie.map_or_else(|| rendered.clone(), |cookie| with_cookie(&rendered, services, cookie))
}

/// The router that a live route shows which leads requests to one of these Services of candidates, beside a Service that it is no
/// copy of; and which one that is.
#[must_use]
pub fn router_between(route: &Object, candidates: &BTreeSet<ObjectName>) -> Option<(Router, ObjectName)> {
    let reference = route.reference();
    let is_ours = [Kind::HttpRoute, Kind::GrpcRoute].contains(&reference.kind);
    let [service, candidate] = beside_each_other(route, candidates).filter(|_| is_ours)?;
    let router = Router::by_route(reference.kind, &reference.name, &service)?;
    (suffixed(&service).as_ref() != Some(&candidate)).then_some((router, candidate))
}

/// The route with both roles in it, for this split.
///
/// A reference of weight W to the Service becomes two, of W × (100 − w) and W × w; other references become W × 100, so
/// that their shares stay. Headers add one rule before each such rule: its matches with each alternative's headers, the
/// candidate alone. Equal input gives equal output. `manifest::check` holds
/// routes to the limits within which it is exact.
pub(super) fn render<'a>(route: &'a Object, services: impl Into<Services<'a>>, split: &Split) -> Object {
    let names = Names::of(route, services);
    let mut rendered = Vec::new();
    for rule in items(&route.value()["spec"], "rules") {
        let sums = names.sums(rule);
        if sums.stable.is_none() {
            rendered.push(rule.clone());
            continue;
        }
        if sums.stable != Some(0) {
            rendered.extend(header_rule(&names, rule, split));
        }
        let weighted = weighted(&names, rule, split.weight);
        let copies = split.weight < Percent::ALL && !split.mirror.is_zero() && sums.stable != Some(0);
        rendered.push(if copies { mirrored(&names, weighted, split.mirror) } else { weighted });
    }
    with_rules(route, rendered)
}

fn with_rules(route: &Object, rules: Vec<Value>) -> Object {
    let mut route = route.clone();
    if route.at("/spec/rules").is_some() {
        section(route.value_mut(), &["spec"]).insert("rules".to_owned(), rules.into());
    }
    route
}

fn weighted(names: &Names<'_>, rule: &Value, weight: Percent) -> Value {
    let share = u64::from(weight.get());
    let mut refs = Vec::new();
    for backend in items(rule, "backendRefs") {
        let own = rules::weight(backend);
        if names.backend(backend) == Backend::Stable {
            refs.push(with_weight(backend, own * (100 - share)));
            refs.push(with_weight(&names.candidate_ref(backend), own * share));
        } else {
            refs.push(with_weight(backend, own * 100));
        }
    }
    with_field(rule, "backendRefs", fitted(names, refs))
}

/// Weights that the API takes, in the same ratio: without what they have in common, and where that is not enough rounded, the
/// candidate's down.
fn fitted(names: &Names<'_>, refs: Vec<Value>) -> Vec<Value> {
    let largest = refs.iter().map(rules::weight).max().unwrap_or(0);
    if largest <= MAX_WEIGHT {
        return refs;
    }
    let common = refs.iter().map(rules::weight).fold(0, common_divisor).max(1);
    let beyond = (largest / common).div_ceil(MAX_WEIGHT);
    let fit = |backend: &Value| {
        let weight = rules::weight(backend) / common;
        let down = names.backend(backend) == Backend::Candidate;
        with_weight(backend, if down { weight / beyond } else { weight.div_ceil(beyond) })
    };
    refs.iter().map(fit).collect()
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

/// The rule with a filter that copies its requests to the candidate.
fn mirrored(names: &Names<'_>, mut rule: Value, share: Percent) -> Value {
    let stable = items(&rule, "backendRefs").find(|b| names.backend(b) == Backend::Stable);
    let mut candidate = stable.map(|b| names.candidate_ref(b)).unwrap_or_default();
    let fields = section(&mut candidate, &[]);
    fields.retain(|field, _| field != "weight" && field != "filters");
    let mut mirror = json!({"backendRef": candidate});
    // All is what a mirror without a share means, also to a gateway that knows no shares.
    if share < Percent::ALL {
        mirror["percent"] = share.get().into();
    }
    let mut filters: Vec<Value> = items(&rule, "filters").cloned().collect();
    filters.push(json!({"type": "RequestMirror", "requestMirror": mirror}));
    section(&mut rule, &[]).insert("filters".to_owned(), filters.into());
    rule
}

/// The rule for those who send the headers; none if no request could match it.
fn header_rule(names: &Names<'_>, rule: &Value, split: &Split) -> Option<Value> {
    let mut matches: Vec<Value> = Vec::new();
    for base in names.matches(rule) {
        for joined in split.headers.iter().filter_map(|alternative| join(&base, alternative)) {
            if !matches.contains(&joined) {
                matches.push(joined);
            }
        }
    }
    if matches.is_empty() {
        return None;
    }
    let stable = items(rule, "backendRefs").filter(|b| names.backend(b) == Backend::Stable);
    let refs = stable.map(|b| with_weight(&names.candidate_ref(b), rules::weight(b))).collect();
    let mut special = with_field(&with_field(rule, "matches", matches), "backendRefs", refs);
    section(&mut special, &[]).shift_remove("name");
    Some(special)
}

/// The match that asks for the alternative's headers too. None if it asks for another value of one of them already, or
/// if the alternative is empty: that would be everybody.
fn join(base: &Value, alternative: &HeaderMatch) -> Option<Value> {
    if alternative.is_empty() {
        return None;
    }
    let mut headers: Vec<Value> = items(base, "headers").cloned().collect();
    for (name, value) in alternative {
        let named = |h: &&Value| h["name"].as_str().is_some_and(|n| n.eq_ignore_ascii_case(name));
        match headers.iter().find(named) {
            Some(found) if rules::condition(found) == rules::asked(value) => {}
            Some(_) => return None,
            None => {
                let (how, value) = rules::asked(value);
                headers.push(json!({"type": how, "name": name, "value": value}));
            }
        }
    }
    Some(with_field(base, "headers", headers))
}

fn with_field(value: &Value, field: &str, list: Vec<Value>) -> Value {
    let mut value = value.clone();
    section(&mut value, &[]).insert(field.to_owned(), list.into());
    value
}

fn with_weight(backend: &Value, weight: u64) -> Value {
    let mut backend = backend.clone();
    section(&mut backend, &[]).insert("weight".to_owned(), weight.into());
    backend
}

/// The route with a split, in which the candidate answers those whom its weight let in with that `Set-Cookie`. [`render`] leaves
/// the filter out and [`retreat`] takes it away: it stands only where the candidate's reference differs from stable's.
pub(super) fn with_cookie<'a>(split: &'a Object, services: impl Into<Services<'a>>, cookie: &str) -> Object {
    let names = Names::of(split, services);
    let mut route = split.clone();
    for rule in items_mut(&mut route.value_mut()["spec"], "rules") {
        let weighted = matches!(names.rule(rule), Rule::Split { .. });
        let refs = items_mut(rule, "backendRefs").filter(|b| weighted && names.backend(b) == Backend::Candidate);
        refs.for_each(|backend| set_cookie(backend, cookie));
    }
    route
}

/// A reference takes one filter of that type.
fn set_cookie(backend: &mut Value, cookie: &str) {
    const MODIFIER: &str = "responseHeaderModifier";
    let header = json!({"name": "Set-Cookie", "value": cookie});
    let mut filters: Vec<Value> = items(backend, "filters").cloned().collect();
    match filters.iter_mut().find_map(|filter| filter.get_mut(MODIFIER)) {
        Some(own) => {
            let headers: Vec<Value> = items(own, "add").cloned().chain([header]).collect();
            section(own, &[]).insert("add".to_owned(), headers.into());
        }
        None => filters.push(json!({"type": "ResponseHeaderModifier", MODIFIER: {"add": [header]}})),
    }
    section(backend, &[]).insert("filters".to_owned(), filters.into());
}

/// What split a live route shows: the highest weight and mirror of its rules, rounded up, and the header alternatives, those left
/// out that another implies. It is never less than what reaches the candidate through this route.
///
/// After [`render`] of a route within its limits it is the [`Split::same`].
pub(super) fn read<'a>(live: &'a Object, services: impl Into<Services<'a>>) -> ObservedSplit {
    let services @ Services { stable: service, .. } = services.into();
    let names = Names::of(live, services);
    let mut groups = Vec::new();
    let (mut weight, mut mirror) = (Percent::ZERO, Percent::ZERO);
    let mut special: Option<(usize, Vec<rules::Match>)> = None;
    for (index, rule) in items(&live.value()["spec"], "rules").enumerate() {
        let (kind, copies) = (names.rule(rule), names.copies(rule));
        if !copies.is_zero() && !matches!(kind, Rule::Split { .. }) {
            return ObservedSplit::Foreign(format!(
                "rule {index} mirrors requests to the candidate, but does not send any to {service}"
            ));
        }
        mirror = mirror.max(copies);
        match kind {
            Rule::Elsewhere if special.is_none() => {}
            Rule::Alone if special.is_none() => special = Some((index, rules::parsed(rule))),
            Rule::Split { share, serves } => {
                weight = weight.max(share);
                let special = special.take().map(|(_, matches)| matches).unwrap_or_default();
                groups.push(rules::Group { bases: rules::parsed(rule), special, serves });
            }
            Rule::Mixed => {
                return ObservedSplit::Foreign(format!(
                    "rule {index} sends to the candidate and others, but not to {service}"
                ));
            }
            Rule::Elsewhere | Rule::Alone => break,
        }
    }
    if let Some((index, _)) = special {
        return ObservedSplit::Foreign(format!(
            "rule {index} sends to the candidate alone, and the rule after it not to {service}"
        ));
    }
    match alternatives(&groups) {
        Ok(Some(headers)) => ObservedSplit::Split(Split { headers, weight, mirror, ..Split::stable() }),
        Ok(None) => ObservedSplit::Split(Split { weight: Percent::ALL, ..Split::stable() }),
        Err(why) => ObservedSplit::Foreign(why),
    }
}

/// The live route with everything at stable, from itself alone, whoever wrote it: rules for headers go, and what the
/// candidate was sent otherwise is sent to stable. [`read`] shows the stable split of it; a second time changes nothing.
pub(super) fn retreat<'a>(live: &'a Object, services: impl Into<Services<'a>>) -> Object {
    let names = Names::of(live, services);
    let rules: Vec<&Value> = items(&live.value()["spec"], "rules").collect();
    let mut kept = Vec::new();
    for (index, rule) in rules.iter().enumerate() {
        let falls_through = rules
            .get(index + 1)
            .is_some_and(|next| matches!(names.rule(next), Rule::Split { .. }) && rules::narrows(rule, next));
        match names.rule(rule) {
            Rule::Alone if falls_through => {}
            Rule::Alone | Rule::Mixed => kept.push(names.unmirrored(&renamed(&names, rule))),
            Rule::Split { .. } => kept.push(names.unmirrored(&lowered(&names, rule))),
            Rule::Elsewhere => kept.push(names.unmirrored(rule)),
        }
    }
    with_rules(live, kept)
}

/// References to the candidate made references to stable: dropping the rule would leave its requests unanswered.
fn renamed(names: &Names<'_>, rule: &Value) -> Value {
    let refs = items(rule, "backendRefs").map(|backend| match names.backend(backend) {
        Backend::Candidate => names.stable_ref(backend),
        Backend::Stable | Backend::Other => backend.clone(),
    });
    with_field(rule, "backendRefs", refs.collect())
}

/// Each candidate's weight added to the reference to stable before it (else the first), and set to 0; but for its name it is as that one.
fn lowered(names: &Names<'_>, rule: &Value) -> Value {
    let mut refs: Vec<Value> = items(rule, "backendRefs").cloned().collect();
    let is = |backend: &Value, role| names.backend(backend) == role;
    for at in 0..refs.len() {
        if !is(&refs[at], Backend::Candidate) {
            continue;
        }
        let before = refs[..at].iter().rposition(|b| is(b, Backend::Stable));
        if let Some(to) = before.or_else(|| refs.iter().position(|b| is(b, Backend::Stable))) {
            refs[to] = with_weight(&refs[to], rules::weight(&refs[to]) + rules::weight(&refs[at]));
            refs[at] = with_weight(&names.candidate_ref(&refs[to]), 0);
        }
    }
    with_field(rule, "backendRefs", fitted(names, refs))
}

/// The ports by which the route leads to that Service.
pub(super) fn ports(route: &Object, service: &ObjectName) -> Vec<Value> {
    let names = Names::of(route, service);
    let refs = items(&route.value()["spec"], "rules").flat_map(|rule| items(rule, "backendRefs"));
    let own = refs.filter(|backend| names.backend(backend) == Backend::Stable);
    own.filter_map(|backend| backend.get("port").cloned()).collect()
}

/// Whether the route sends or mirrors anything to that Service of its own namespace.
pub(super) fn references(route: &Object, service: &ObjectName) -> bool {
    let names = Names::of(route, service);
    items(&route.value()["spec"], "rules").any(|rule| names.names_stable(rule))
}

/// The Services that a route splits: those whose candidate's copy stands in it.
pub(super) fn split_services(route: &Object) -> BTreeSet<ObjectName> {
    let refs = items(&route.value()["spec"], "rules").flat_map(|rule| items(rule, "backendRefs"));
    refs.filter_map(|backend| backend.get("name")?.as_str()?.strip_suffix(SUFFIX)?.parse().ok()).collect()
}

/// Two Services that a rule leads to one beside the other, of which the second is one of these.
fn beside_each_other(route: &Object, candidates: &BTreeSet<ObjectName>) -> Option<[ObjectName; 2]> {
    items(&route.value()["spec"], "rules").find_map(|rule| {
        let named = items(rule, "backendRefs").filter_map(|backend| backend.get("name")?.as_str()?.parse().ok());
        let named: Vec<ObjectName> = named.collect();
        let at = named.iter().position(|name| candidates.contains(name))?;
        // It is rendered right behind the one that it takes its share from.
        let others = named[..at].iter().rev().chain(&named[at + 1..]);
        let old = others.into_iter().find(|name| !candidates.contains(*name))?;
        Some([old.clone(), named[at].clone()])
    })
}

/// The name of the candidate's Service, as routes name it.
fn candidate_name(services: Services<'_>) -> String {
    services.candidate.map_or_else(|| format!("{}{SUFFIX}", services.stable), ToString::to_string)
}

#[cfg(test)]
mod tests;
