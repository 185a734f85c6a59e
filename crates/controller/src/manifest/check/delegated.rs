//! The routes of the routers `contour` and `gloo`, an HTTPProxy and a RouteTable: whether all that they send to the Service can be split,
//! and whether whoever sends certain headers can be led by a route of their own.

use super::route::WEIGHT;
use super::{Case, SUFFIX};
use crate::manifest::desired::{HeaderMatch, HeaderValue, Router};
use crate::manifest::diagnostic::{Code, Diagnostic, quoted};
use crate::manifest::expand;
use crate::manifest::gloo::{IN_MEMORY, service_of};
use crate::manifest::ids::ObjectName;
use crate::manifest::object::{Kind, items};
use crate::manifest::set::Item;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A destination that a route names.
struct Led<'a> {
    /// Of which route.
    route: usize,
    /// Where it is named, and its Service; empty where it is something else.
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
    let Some(router @ (Router::Contour { .. } | Router::Gloo { .. })) = case.router() else { return Vec::new() };
    let (Some((kind, name)), Some(service)) = (router.route(), router.service()) else { return Vec::new() };
    let item = match case.require(&router.spelling().route, kind, name) {
        Ok(item) => item,
        Err(missing) => return missing,
    };
    let all = led(item);
    let mut found = leads(case, item, service, &all);
    found.extend(all.iter().filter_map(|one| weighs(item, one)));
    found.extend(told_apart(case, item, service, &all));
    if kind == Kind::RouteTable {
        found.extend(unweighed(item, &all));
        found.extend(elsewhere(case, item));
        found.extend(by_upstream(case, item, service));
        found.extend(alternatives(item));
    } else {
        found.extend(mirrored(case, item, service, &all));
        found.extend(item.object.at("/spec/tcpproxy").map(|_| {
            let what = "what comes by tcpproxy are connections, and no phase splits these";
            item.error("/spec/tcpproxy", Code::RouterLimit, what, "routes alone, or the router replicas or service")
        }));
    }
    found
}

/// All that requests are led to.
fn led(item: &Item) -> Vec<Led<'_>> {
    let routes = items(&item.object.value()["spec"], "routes").enumerate();
    routes.flat_map(|(i, one)| services(i, one).chain(destinations(i, one)).collect::<Vec<_>>()).collect()
}

/// Those of a route of an HTTPProxy.
fn services(route: usize, one: &Value) -> impl Iterator<Item = Led<'_>> {
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
}

/// Those of a route of a RouteTable.
fn destinations(route: usize, one: &Value) -> impl Iterator<Item = Led<'_>> {
    targets(route, one).map(move |(at, to, entry)| Led {
        route,
        service: to.pointer("/kube/ref/name").and_then(Value::as_str).unwrap_or_default(),
        weight: entry.and_then(|entry| entry.get("weight")),
        port: to.pointer("/kube/port").and_then(Value::as_i64),
        mirror: false,
        weight_at: at.strip_suffix("/destination").map_or_else(|| at.clone(), |entry| format!("{entry}/weight")),
        port_at: format!("{at}/kube/port"),
        at: format!("{at}/kube/ref/name"),
    })
}

/// Where a route of a RouteTable leads to, with the entry of one of several.
fn targets(route: usize, one: &Value) -> impl Iterator<Item = (String, &Value, Option<&Value>)> {
    let action = &one["routeAction"];
    let at = format!("/spec/routes/{route}/routeAction");
    let single = action.get("single").map(|to| (format!("{at}/single"), to, None));
    let several = items(&action["multi"], "destinations").enumerate();
    let several = several.map(move |(j, entry)| {
        (format!("{at}/multi/destinations/{j}/destination"), &entry["destination"], Some(entry))
    });
    single.into_iter().chain(several)
}

/// The Service, or the candidate's, by the name that Gloo gives it as an upstream: no phase splits that.
fn by_upstream(case: &Case<'_>, item: &Item, service: &ObjectName) -> Vec<Diagnostic> {
    let routes = items(&item.object.value()["spec"], "routes").enumerate();
    let error = |(at, to, _): (String, &Value, _)| {
        let name = to.pointer("/upstream/name")?.as_str()?;
        let (named, _) = service_of(name, case.namespace.as_str())?;
        let ours = named == service.as_str() || named.strip_suffix(SUFFIX) == Some(service.as_str());
        let what = format!("this upstream is the Service {named}, and no phase splits an upstream");
        let expected = format!("kube: {{ref: {{name: {service}, namespace: {}}}, port: …}}", case.namespace);
        ours.then(|| item.error(&format!("{at}/upstream/name"), Code::RouteLimit, what, expected))
    };
    routes.flat_map(|(i, one)| targets(i, one).filter_map(error).collect::<Vec<_>>()).collect()
}

/// Routes that lead to the Service with some share, by a port that it has, and none that leads to the candidate already.
fn leads(case: &Case<'_>, item: &Item, service: &ObjectName, all: &[Led<'_>]) -> Vec<Diagnostic> {
    let kind = item.object.reference().kind;
    let own = || all.iter().filter(|one| one.service == service.as_str() && !one.mirror);
    let mut found = Vec::new();
    let zero = |one: &Led<'_>| one.weight.is_none_or(|weight| *weight == 0);
    let alone = |one: &Led<'_>| !all.iter().any(|other| other.route == one.route && !zero(other) && !other.mirror);
    if own().next().is_none() {
        let what = format!("no route of this {kind} leads to the Service {service}");
        let expected = if kind == Kind::RouteTable {
            format!(
                "routeAction: {{single: {{kube: {{ref: {{name: {service}, namespace: {}}}, port: …}}}}}}",
                case.namespace
            )
        } else {
            format!("services: [{{name: {service}, port: …}}]")
        };
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

/// Destinations of Gloo of which none has a weight.
fn unweighed(item: &Item, all: &[Led<'_>]) -> Vec<Diagnostic> {
    let routes = items(&item.object.value()["spec"], "routes").enumerate();
    let several = routes.filter(|(_, one)| items(&one["routeAction"]["multi"], "destinations").next().is_some());
    let none = several.filter(|(i, _)| {
        let mut own = all.iter().filter(|one| one.route == *i);
        own.all(|one| one.weight.is_none_or(|weight| *weight == 0))
    });
    let error = |(i, _)| {
        let at = format!("/spec/routes/{i}/routeAction/multi/destinations");
        item.error(&at, Code::RouteLimit, "all weights are 0, and Gloo drops the listener", "one weight above 0")
    };
    none.map(error).collect()
}

/// Services and other tables that a RouteTable names without a namespace, and upstreams that are Services of another one. What it names in
/// another namespace by a field of its own is in `reach.txt`.
fn elsewhere(case: &Case<'_>, item: &Item) -> Vec<Diagnostic> {
    let own = case.namespace.as_str();
    let error = |at: &str, what| item.error(at, Code::CrossNamespace, what, format!("namespace: {own}"));
    let mut found = Vec::new();
    for (i, one) in items(&item.object.value()["spec"], "routes").enumerate() {
        let (at, action) = (format!("/spec/routes/{i}/delegateAction"), &one["delegateAction"]);
        let table = action.get("ref").map(|to| (format!("{at}/ref"), to));
        // The older spelling.
        let older = action.get("name").map(|_| (at, action));
        let services =
            targets(i, one).filter_map(|(at, to, _)| Some((format!("{at}/kube/ref"), to.pointer("/kube/ref")?)));
        let all = services.chain(table).chain(older);
        let lacking = all.filter(|(_, to)| to.get("namespace").is_none());
        found.extend(lacking.map(|(at, _)| error(&at, "a reference without a namespace, which Gloo finds nowhere")));
        found.extend(targets(i, one).filter_map(|(at, to, _)| {
            let upstream = to.get("upstream")?;
            let is_foreign = upstream["name"].as_str()?.starts_with(IN_MEMORY) && upstream["namespace"] != *own;
            is_foreign.then(|| error(&format!("{at}/upstream"), "a reference to another namespace"))
        }));
    }
    found
}

/// Matchers of one route of which one asks for headers alone and another one for a path alone.
fn alternatives(item: &Item) -> Vec<Diagnostic> {
    let routes = items(&item.object.value()["spec"], "routes").enumerate();
    let error = |(i, one): (usize, &Value)| {
        let path = |matcher: &Value| ["prefix", "exact", "regex"].iter().any(|how| matcher.get(*how).is_some());
        let headers = |matcher: &Value| items(matcher, "headers").next().is_some();
        let mut all = items(one, "matchers").enumerate();
        let apart = items(one, "matchers").any(|matcher| headers(matcher) && !path(matcher));
        let (j, _) = all.find(|(_, matcher)| apart && path(matcher) && !headers(matcher))?;
        let what = "matchers are alternatives: this one lets everybody in";
        Some(item.error(
            &format!("/spec/routes/{i}/matchers/{j}"),
            Code::RouteLimit,
            what,
            "header and path in one matcher",
        ))
    };
    routes.filter_map(error).collect()
}

/// A route of an HTTPProxy takes one mirror, and the phases' copies are one.
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

/// The path of a route that names none.
const ALL: (&str, &str) = ("prefix", "/");

/// What a route asks for, in one of its ways.
#[derive(Default)]
struct Asked<'a> {
    route: usize,
    at: String,
    path: Option<(&'a str, &'a str)>,
    /// By lower-case name: the only value that it may have; none where it is said in another way.
    headers: BTreeMap<String, Vec<Option<&'a str>>>,
}

impl<'a> Asked<'a> {
    fn path_of(holder: &'a Value) -> Option<(&'a str, &'a str)> {
        ["prefix", "exact", "regex"].into_iter().find_map(|how| Some((how, holder.get(how)?.as_str()?)))
    }

    fn ask(&mut self, header: &'a Value, exact: Option<&'a str>) {
        let name = header["name"].as_str().unwrap_or_default().to_ascii_lowercase();
        self.headers.entry(name).or_default().push(exact);
    }

    /// All conditions of a route of an HTTPProxy.
    fn conditions(route: usize, one: &'a Value) -> Self {
        let mut asked = Self { route, at: format!("/spec/routes/{route}/conditions"), ..Self::default() };
        for condition in items(one, "conditions") {
            asked.path = asked.path.or(Self::path_of(condition));
            if let Some(header) = condition.get("header") {
                let plain = header.as_object().is_some_and(|fields| fields.len() == 2);
                asked.ask(header, header["exact"].as_str().filter(|_| plain));
            }
        }
        asked
    }

    /// One matcher of a route of a RouteTable.
    fn matcher(route: usize, at: String, one: &'a Value) -> Self {
        let mut asked = Self { route, at, path: Self::path_of(one), ..Self::default() };
        for header in items(one, "headers") {
            let plain = header["regex"] != true && header["invertMatch"] != true;
            asked.ask(header, header["value"].as_str().filter(|value| plain && !value.is_empty()));
        }
        asked
    }

    /// Each way in which a route is asked for.
    fn all(item: &'a Item) -> Vec<Self> {
        let by_conditions = item.object.reference().kind == Kind::HttpProxy;
        let routes = items(&item.object.value()["spec"], "routes").enumerate();
        let ways = routes.flat_map(|(route, one)| {
            if by_conditions {
                return vec![Self::conditions(route, one)];
            }
            let at = format!("/spec/routes/{route}");
            let matchers = items(one, "matchers").enumerate();
            let mut all: Vec<Self> =
                matchers.map(|(j, matcher)| Self::matcher(route, format!("{at}/matchers/{j}"), matcher)).collect();
            if all.is_empty() {
                all.push(Self { route, at, ..Self::default() });
            }
            all
        });
        ways.collect()
    }

    fn exact(&self, name: &str) -> Option<&str> {
        match self.headers.get(name)?.as_slice() {
            [one] => *one,
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

    /// Whether this asks for just what a phase makes of a route of its own: it is for one path, with the same headers.
    fn is_made(&self, own: &Asked<'_>, alternative: &HeaderMatch) -> bool {
        let mut headers: BTreeMap<String, Vec<Option<&str>>> = own.headers.clone();
        for (name, value) in alternative {
            let HeaderValue::Exact(value) = value else { return false };
            headers.entry(name.clone()).or_insert_with(|| vec![Some(value.as_str())]);
        }
        self.path.unwrap_or(ALL) == own.path.unwrap_or(ALL) && self.headers == headers
    }

    /// Whether names of headers decide which of two routes of Contour takes a request: they are for one path, with as many headers.
    fn ties(&self, own: &Asked<'_>, alternative: &HeaderMatch) -> bool {
        self.path.unwrap_or(ALL) == own.path.unwrap_or(ALL)
            && self.count(&HeaderMatch::new()) == own.count(alternative)
            && !self.excludes(alternative)
    }
}

/// Whether requests with the headers of the phases come by the routes that phases make for them.
fn told_apart(case: &Case<'_>, item: &Item, service: &ObjectName, all: &[Led<'_>]) -> Vec<Diagnostic> {
    let ways = Asked::all(item);
    let sorted = item.object.reference().kind == Kind::HttpProxy;
    let own: BTreeSet<usize> = leading(service, all).collect();
    let phases = case.spec.phases.iter().flat_map(|phase| expand::alternatives(&phase.expose));
    let alternatives: BTreeSet<HeaderMatch> = phases.filter_map(|(_, headers)| headers.ok()).collect();
    let mut found = Vec::new();
    for alternative in &alternatives {
        let mut left = own.is_empty();
        for asked in ways.iter().filter(|asked| own.contains(&asked.route)) {
            if let Some(name) = asked.unclear(alternative) {
                let name = quoted(name);
                let what =
                    format!("this route asks for the header {name} that a phase uses, and one of them by a pattern");
                found.push(item.error(&asked.at, Code::RouteLimit, what, "another header for the phase"));
                left = true;
            } else if !asked.excludes(alternative) {
                left = true;
                let others = ways.iter().filter(|other| sorted && !own.contains(&other.route));
                let tied = others.filter(|other| other.ties(asked, alternative));
                found.extend(tied.map(|other| undecided(item, other, alternative)));
                let same = ways.iter().filter(|other| sorted && other.is_made(asked, alternative));
                found.extend(same.map(|other| doubled(item, other, alternative)));
            }
        }
        if !left {
            let names = names(alternative);
            let what = format!("no route is left for those who send {names}, as each asks for another value");
            found.push(item.error("/spec/routes", Code::RouterLimit, what, "another header for the phase"));
        }
    }
    found.sort();
    found.dedup();
    found
}

/// Of two routes with the same conditions Contour takes the last, and says nothing of the other.
fn doubled(item: &Item, same: &Asked<'_>, alternative: &HeaderMatch) -> Diagnostic {
    let what = format!(
        "this route is for those who send {} already, and Contour knows one route for them",
        names(alternative)
    );
    item.error(&same.at, Code::RouteLimit, what, "another header for the phase")
}

fn undecided(item: &Item, other: &Asked<'_>, alternative: &HeaderMatch) -> Diagnostic {
    let what = format!(
        "Contour would sort this by the names of headers before or after the route of those who send {}",
        names(alternative)
    );
    item.error(&other.at, Code::RouteLimit, what, "another path, or another number of headers")
}

fn names(alternative: &HeaderMatch) -> String {
    alternative.keys().map(|name| quoted(name)).collect::<Vec<_>>().join(" and ")
}
