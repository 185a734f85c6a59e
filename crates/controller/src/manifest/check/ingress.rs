//! The Ingress of the router `nginx`: what ingress-nginx can do with a canary beside it (its documents, "Annotations").

use super::{Case, SUFFIX};
use crate::manifest::cookie;
use crate::manifest::desired::{HeaderMatch, HeaderValue, Router};
use crate::manifest::diagnostic::{Code, Diagnostic};
use crate::manifest::ids::ObjectName;
use crate::manifest::object::{Kind, items};
use crate::manifest::set::Item;
use crate::manifest::{expand, raw};
use serde_json::Value;
use std::collections::BTreeMap;

const PREFIX: &str = "nginx.ingress.kubernetes.io/";
/// What ingress-nginx lets into these annotations, beside letters and digits.
const PLAIN: &str = "-._~/:";
const PATTERN: &str = "-._~/:^$[](){}*+?|&=\\";

pub(super) fn check(case: &Case<'_>) -> Vec<Diagnostic> {
    let Some(Router::Nginx { ingress, service }) = case.router() else { return Vec::new() };
    let mut found = phases(case);
    match case.require("/spec/traffic/nginx/ingress", Kind::Ingress, &ingress) {
        Ok(main) => {
            found.extend(leads(main, &service));
            found.extend(sticks(main));
        }
        Err(missing) => found.extend(missing),
    }
    found.extend(case.of_kind(Kind::Ingress).filter_map(canary));
    found
}

/// What requests are led to, each with its place.
fn backends(main: &Item) -> impl Iterator<Item = (String, &Value)> {
    let spec = &main.object.value()["spec"];
    let rules = items(spec, "rules").enumerate().flat_map(|(i, rule)| {
        let paths = items(&rule["http"], "paths").enumerate();
        paths.map(move |(j, path)| (format!("/spec/rules/{i}/http/paths/{j}/backend"), &path["backend"]))
    });
    rules.chain(spec.get("defaultBackend").map(|it| ("/spec/defaultBackend".to_owned(), it)))
}

/// The backends that are the Service, each with its place.
pub(super) fn leading<'a>(main: &'a Item, service: &str) -> Vec<(String, &'a Value)> {
    backends(main).filter(|(_, backend)| backend["service"]["name"] == service).collect()
}

/// Whether what it passes on is gRPC.
pub(super) fn passes_calls(main: &Item) -> bool {
    let protocol = main.object.annotation(&format!("{PREFIX}backend-protocol")).unwrap_or_default();
    ["GRPC", "GRPCS"].iter().any(|known| protocol.trim().eq_ignore_ascii_case(known))
}

/// Paths that lead to the Service, and none that leads to the candidate's already.
fn leads(main: &Item, service: &ObjectName) -> Vec<Diagnostic> {
    let name = |(at, backend): (String, &Value)| {
        Some((format!("{at}/service/name"), backend["service"]["name"].as_str()?.to_owned()))
    };
    let named: Vec<(String, String)> = backends(main).filter_map(name).collect();
    let mut found = Vec::new();
    if !named.iter().any(|(_, name)| name == service.as_str()) {
        let what = format!("no path of this Ingress leads to the Service {service}");
        found.push(main.error("/spec/rules", Code::TargetMissing, what, "a backend with its name"));
    }
    let candidate = format!("{service}{SUFFIX}");
    for (at, _) in named.iter().filter(|(_, name)| *name == candidate) {
        let what = "this is the Service of the candidate, which is there only during a run";
        found.push(main.error(at, Code::Conflict, what, format!("{service} alone; the phases split it")));
    }
    found
}

/// What would keep users at the candidate whatever its weight is, or go past the canary.
fn sticks(main: &Item) -> Vec<Diagnostic> {
    let is = |key: &str, value: &str| main.object.annotation(&format!("{PREFIX}{key}")) == Some(value);
    let error = |key: &str, what: &str, expected: &str| {
        let pointer = format!("/metadata/annotations/{}", format!("{PREFIX}{key}").replace('/', "~1"));
        main.error(&pointer, Code::RouterLimit, what, expected)
    };
    let mut found = Vec::new();
    if is("affinity", "cookie") && !is("affinity-canary-behavior", "legacy") {
        let what = "with session affinity users stay at the candidate after its weight was lowered";
        let expected = "no affinity, or beside it nginx.ingress.kubernetes.io/affinity-canary-behavior: legacy";
        found.push(error("affinity", what, expected));
    }
    if is("ssl-passthrough", "true") {
        let what = "with ssl-passthrough nothing that ingress-nginx passes on goes through a canary";
        found.push(error("ssl-passthrough", what, "no such annotation, or the router service or replicas"));
    }
    found
}

/// There is one canary for each Ingress, and it is the run's.
fn canary(ingress: &Item) -> Option<Diagnostic> {
    let annotations = ingress.object.at("/metadata/annotations").and_then(Value::as_object)?;
    let key = annotations.keys().find(|key| key.strip_prefix(PREFIX).is_some_and(|key| key.starts_with("canary")))?;
    let what = "ingress-nginx takes one canary for an Ingress, and a run makes it itself";
    let pointer = format!("/metadata/annotations/{}", key.replace('/', "~1"));
    Some(ingress.error(&pointer, Code::Conflict, what, "no canary among the manifests; the phases say what it lets in"))
}

/// What of all phases together fits into the annotations of one canary: one header, one cookie, no copies.
fn phases(case: &Case<'_>) -> Vec<Diagnostic> {
    let (mut found, mut first) = (Vec::new(), BTreeMap::<&str, HeaderMatch>::new());
    for (i, phase) in case.spec.phases.iter().enumerate() {
        let mut error = |at: &str, what: String, expected: &str| {
            found.push(case.error(&format!("/spec/phases/{i}/{at}"), Code::RouterLimit, what, expected));
        };
        if phase.expose.mirror.is_some() {
            let what = "the router nginx cannot send a request twice".to_owned();
            error("expose/mirror", what, "a weight, or the router gatewayAPI");
        }
        for (at, alternative) in alternatives(&phase.expose) {
            if let Some((what, expected)) = cannot(&alternative) {
                error(&at, what, expected);
                continue;
            }
            let sort = if cookie::named(&alternative).is_some() { "cookie" } else { "header" };
            let known = first.entry(sort).or_insert_with(|| alternative.clone());
            if *known != alternative {
                error(
                    &at,
                    format!("the router nginx can tell one {sort}, and this is another one"),
                    "the same in all phases",
                );
            }
        }
    }
    found
}

/// The alternatives of a phase; one that names a header twice is told elsewhere.
fn alternatives(expose: &raw::Expose) -> impl Iterator<Item = (String, HeaderMatch)> {
    expand::alternatives(expose).filter_map(|(at, headers)| Some((at, headers.ok()?)))
}

/// What of one alternative no canary can ask for, and what it can.
fn cannot(alternative: &HeaderMatch) -> Option<(String, &'static str)> {
    let made_of = |text: &str, others: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || others.contains(c));
    if let Some((name, value)) = cookie::named(alternative) {
        let plain = made_of(&name, PLAIN);
        let what = format!("ingress-nginx knows a cookie by the value always alone, and this is {name}={value}");
        return (value != "always" || !plain)
            .then_some((what, "a cookie of the value always, such as {canary: always}, or a header"));
    }
    if alternative.len() > 1 {
        return Some(("the router nginx cannot ask for several headers at once".to_owned(), "one header"));
    }
    let (name, value) = alternative.iter().next()?;
    let (fits, expected) = match value {
        HeaderValue::Exact(text) => (made_of(text, PLAIN), "letters, digits and -._~/: alone, or a pattern"),
        HeaderValue::Regex { regex } => {
            (made_of(regex, PATTERN), "a pattern of letters, digits and -._~/:^$[](){}*+?|&=\\ alone")
        }
    };
    let what =
        || format!("ingress-nginx does not take every character, and refuses what is asked of the header {name}");
    (!fits || !made_of(name, PLAIN)).then(|| (what(), expected))
}
