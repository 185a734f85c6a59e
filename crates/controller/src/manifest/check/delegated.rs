//! The HTTPProxy of the router `contour`: whether all that it sends to the Service can be split, and whether whoever sends certain headers
//! can be led by a route of their own.

use super::route::WEIGHT;
use super::{Case, SUFFIX};
use crate::manifest::desired::{HeaderMatch, HeaderValue, Router};
use crate::manifest::diagnostic::{Code, Diagnostic, quoted};
use crate::manifest::expand;
use crate::manifest::ids::ObjectName;
use crate::manifest::object::{Kind, items};
use crate::manifest::set::Item;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A destination that a route names.
struct Led<'a> {
    /// Of which route.
    route: usize,
    /// Where it is named, and its Service.
    at: String,
    service: &'a str,
    weight_at: String,
    weight: Option<&'a Value>,
    port_at: String,
    port: Option<i64>,
    /// Whether it gets copies.
    mirror: bool,
}

pub(super) fn check(case: &Case<'_>) -> Vec<Diagnostic> {
    let Some(router @ Router::Contour { .. }) = case.router() else { return Vec::new() };
    let (Some((kind, name)), Some(service)) = (router.route(), router.service()) else { return Vec::new() };
    let item = match case.require(&router.spelling().route, kind, name) {
        Ok(item) => item,
        Err(missing) => return missing,
    };
    let all = led(item);
    let mut found = leads(case, item, service, &all);
    found.extend(all.iter().filter_map(|one| weighs(item, one)));
    found.extend(mirrored(case, item, service, &all));
    found.extend(told_apart(case, item, service, &all));
    found.extend(item.object.at("/spec/tcpproxy").map(|_| {
        let what = "what comes by tcpproxy are connections, and no phase splits these";
        item.error("/spec/tcpproxy", Code::RouterLimit, what, "routes alone, or the router replicas or service")
    }));
    found
}

/// All that requests are led to.
fn led(item: &Item) -> Vec<Led<'_>> {
    let routes = items(&item.object.value()["spec"], "routes").enumerate();
    let all = routes.flat_map(|(route, one)| {
        items(one, "services").enumerate().map(move |(j, entry)| {
            let at = format!("/spec/routes/{route}/services/{j}");
            Led {
                route,
                service: entry["name"].as_str().unwrap_or_default(),
                weight: entry.get("weight"),
                port: entry["port"].as_i64(),
                mirror: entry["mirror"] == true,
                weight_at: format!("{at}/weight"),
                port_at: format!("{at}/port"),
                at: format!("{at}/name"),
            }
        })
    });
    all.collect()
}

/// Routes that lead to the Service with some share, by a port that it has, and none that leads to the candidate already.
fn leads(case: &Case<'_>, item: &Item, service: &ObjectName, all: &[Led<'_>]) -> Vec<Diagnostic> {
    let kind = item.object.reference().kind;
    let own = || all.iter().filter(|one| one.service == service.as_str() && !one.mirror);
    let mut found = Vec::new();
    let zero = |one: &Led<'_>| one.weight.is_some_and(|weight| *weight == 0);
    let alone = |one: &Led<'_>| !all.iter().any(|other| other.route == one.route && !zero(other) && !other.mirror);
    if own().next().is_none() {
        let what = format!("no route of this {kind} leads to the Service {service}");
        let expected = format!("services: [{{name: {service}, port: …}}]");
        found.push(item.error("/spec/routes", Code::TargetMissing, what, expected));
    } else if let Some(first) = own().next().filter(|_| own().all(|one| zero(one) && !alone(one))) {
        let what = format!("the Service {service} gets no request here, so that no share of it can be split");
        found.push(item.error(&first.weight_at, Code::RouterLimit, what, "a weight above 0"));
    }
    for one in all.iter().filter(|one| one.service == format!("{service}{SUFFIX}")) {
        let what = "this is the Service of the candidate, which is there only during a run";
        found.push(item.error(&one.at, Code::Conflict, what, format!("{service} alone; the phases split it")));
    }
    for (one, port) in all.iter().filter_map(|one| Some((one, one.port?))) {
        found.extend(one.service.parse().ok().and_then(|name| portless(case, item, one, &name, port)));
    }
    found
}

/// A port that a Service of the set lacks.
fn portless(case: &Case<'_>, item: &Item, one: &Led<'_>, service: &ObjectName, port: i64) -> Option<Diagnostic> {
    let to = case.item(Kind::Service, service)?;
    let ports: Vec<i64> =
        items(&to.object.value()["spec"], "ports").filter_map(|port| port.get("port")?.as_i64()).collect();
    (!ports.is_empty() && !ports.contains(&port)).then(|| {
        let known: Vec<String> = ports.iter().map(ToString::to_string).collect();
        let what = format!("the Service {service} has no port {port}");
        let place = format!("{}:{}", to.source.path(), to.node.locate("/spec/ports").line);
        let error = item.error(&one.port_at, Code::TargetMissing, what, known.join(" or "));
        error.help(format!("its ports stand in {place}"))
    })
}

/// Weights are multiplied as those of a route of the Gateway API, up to the same limit.
fn weighs(item: &Item, one: &Led<'_>) -> Option<Diagnostic> {
    let weight = one.weight?;
    let error = |what: String, expected: String| Some(item.error(&one.weight_at, Code::RouteLimit, what, expected));
    match weight.as_i64() {
        Some(0..=WEIGHT) => None,
        Some(more) if more > WEIGHT => {
            error(format!("the weight {more} cannot be split exactly"), format!("at most {WEIGHT}"))
        }
        Some(_) | None => {
            error(format!("the weight {weight} is no share"), format!("a whole number from 0 to {WEIGHT}"))
        }
    }
}

/// A route takes one mirror, and the phases' copies are one.
fn mirrored(case: &Case<'_>, item: &Item, service: &ObjectName, all: &[Led<'_>]) -> Vec<Diagnostic> {
    if !case.spec.phases.iter().any(|phase| phase.expose.mirror.is_some()) {
        return Vec::new();
    }
    let split: BTreeSet<usize> = leading(service, all).collect();
    let own = all.iter().filter(|one| one.mirror && split.contains(&one.route));
    own.map(|one| {
        let what = "this route mirrors requests already, and a phase mirrors them to the candidate";
        item.error(&one.at, Code::RouterLimit, what, "no mirror here, or none in the phases: Contour takes one")
    })
    .collect()
}

/// The routes that lead to the Service.
fn leading<'a>(service: &'a ObjectName, all: &'a [Led<'_>]) -> impl Iterator<Item = usize> + 'a {
    all.iter().filter(|one| one.service == service.as_str() && !one.mirror).map(|one| one.route)
}

/// What a route asks for.
struct Asked<'a> {
    path: Option<(&'a str, &'a Value)>,
    /// By lower-case name.
    headers: BTreeMap<String, Vec<&'a Value>>,
}

impl<'a> Asked<'a> {
    fn of(route: &'a Value) -> Self {
        let mut asked = Self { path: None, headers: BTreeMap::new() };
        for condition in items(route, "conditions") {
            let path = ["prefix", "exact", "regex"].into_iter().find_map(|how| Some((how, condition.get(how)?)));
            asked.path = asked.path.or(path);
            if let Some(header) = condition.get("header") {
                let name = header["name"].as_str().unwrap_or_default().to_ascii_lowercase();
                asked.headers.entry(name).or_default().push(header);
            }
        }
        asked
    }

    fn path(&self) -> (&str, &str) {
        self.path.map_or(("prefix", "/"), |(how, path)| (how, path.as_str().unwrap_or_default()))
    }

    /// The only value that a header may have, if it is said so.
    fn exact(&self, name: &str) -> Option<&str> {
        match self.headers.get(name)?.as_slice() {
            [one] if one.as_object().is_some_and(|fields| fields.len() == 2) => one["exact"].as_str(),
            _ => None,
        }
    }

    /// Whether nobody sends these headers and comes by it.
    fn excludes(&self, alternative: &HeaderMatch) -> bool {
        alternative.iter().any(|(name, value)| match (self.exact(name), value) {
            (Some(own), HeaderValue::Exact(value)) => own != value,
            (Some(_) | None, _) => false,
        })
    }

    /// A header of these of which nobody knows whether both can be met.
    fn unclear<'b>(&self, alternative: &'b HeaderMatch) -> Option<&'b String> {
        let shared = alternative.iter().filter(|(name, _)| self.headers.contains_key(*name));
        let mut unclear =
            shared.filter(|(name, value)| self.exact(name).is_none() || matches!(value, HeaderValue::Regex { .. }));
        unclear.next().map(|(name, _)| name)
    }

    /// How many conditions about headers there are, with those of phases.
    fn count(&self, more: &HeaderMatch) -> usize {
        let own: usize = self.headers.values().map(Vec::len).sum();
        own + more.keys().filter(|name| !self.headers.contains_key(*name)).count()
    }
}

/// Whether requests with the headers of the phases come by the routes that phases make for them.
fn told_apart(case: &Case<'_>, item: &Item, service: &ObjectName, all: &[Led<'_>]) -> Vec<Diagnostic> {
    let routes: Vec<Asked<'_>> = items(&item.object.value()["spec"], "routes").map(Asked::of).collect();
    let own: BTreeSet<usize> = leading(service, all).collect();
    let phases = case.spec.phases.iter().flat_map(|phase| expand::alternatives(&phase.expose));
    let alternatives: BTreeSet<HeaderMatch> = phases.filter_map(|(_, headers)| headers.ok()).collect();
    let mut found = Vec::new();
    for alternative in &alternatives {
        let mut left = own.is_empty();
        for (route, asked) in own.iter().filter_map(|i| Some((*i, routes.get(*i)?))) {
            if let Some(name) = asked.unclear(alternative) {
                let what = format!(
                    "this route asks for the header {} that a phase uses, and one of them by a pattern",
                    quoted(name)
                );
                let at = format!("/spec/routes/{route}/conditions");
                found.push(item.error(&at, Code::RouteLimit, what, "another header for the phase"));
                left = true;
            } else if !asked.excludes(alternative) {
                left = true;
                let others = routes.iter().enumerate().filter(|(i, _)| !own.contains(i));
                let tied = others.filter(|(_, other)| {
                    let alike =
                        other.path() == asked.path() && other.count(&HeaderMatch::new()) == asked.count(alternative);
                    alike && !other.excludes(alternative)
                });
                found.extend(tied.map(|(i, _)| undecided(item, i, alternative)));
            }
        }
        if !left {
            let what =
                format!("no route is left for those who send {}, as each asks for another value", names(alternative));
            found.push(item.error("/spec/routes", Code::RouterLimit, what, "another header for the phase"));
        }
    }
    found.sort();
    found.dedup();
    found
}

/// Of two routes for one path with as many headers each, names decide which Contour takes.
fn undecided(item: &Item, route: usize, alternative: &HeaderMatch) -> Diagnostic {
    let what = format!(
        "Contour would sort this by the names of headers before or after the route of those who send {}",
        names(alternative)
    );
    item.error(
        &format!("/spec/routes/{route}/conditions"),
        Code::RouteLimit,
        what,
        "another path, or another number of headers",
    )
}

fn names(alternative: &HeaderMatch) -> String {
    alternative.keys().map(|name| quoted(name)).collect::<Vec<_>>().join(" and ")
}
