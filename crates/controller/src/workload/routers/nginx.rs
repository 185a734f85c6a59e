//! The router `nginx`: an Ingress of ingress-nginx, and during a run a second one beside it, marked as its canary, that leads to
//! the candidate's copy of the Service. The first one stays as the manifests say; the share is in annotations of the second.
//!
//! What ingress-nginx does with them (its documents, "Annotations", "Canary"): the header goes before the cookie, the cookie
//! before the weight; a cookie counts by the values `always` and `never` alone; all other annotations are the first Ingress's. A
//! canary without its first Ingress leads nowhere. An annotation that is empty counts as absent: all are written, so that one that
//! a hand adds is seen.

use super::{Fields, Form, ObservedSplit, RouteStatus, RouteView, Routing};
use crate::manifest::cookie;
use crate::manifest::desired::{HeaderMatch, HeaderValue};
use crate::manifest::ids::{ObjectName, Percent};
use crate::manifest::object::{Kind, Object, items, items_mut, section};
use crate::record::posture::Split;
use crate::record::state::Time;
use crate::workload::layouts::{LayoutError, SUFFIX, copied, suffixed};
use serde_json::Value;
use std::collections::BTreeSet;

/// What ingress-nginx reads is called so.
const PREFIX: &str = "nginx.ingress.kubernetes.io/";
/// Other annotations that it needs: which controller an Ingress is for.
const CLASS: &str = "kubernetes.io/ingress.class";

macro_rules! canary {
    ($($name:ident $text:literal;)*) => {
        $(const $name: &str = concat!("nginx.ingress.kubernetes.io/", $text);)*
        /// Where the split stands in the canary Ingress.
        const FIELDS: &[&[&str]] = &[$(&["metadata", "annotations", $name]),*];
    };
}

canary! {
    CANARY "canary";
    WEIGHT "canary-weight";
    TOTAL "canary-weight-total";
    HEADER "canary-by-header";
    VALUE "canary-by-header-value";
    PATTERN "canary-by-header-pattern";
    COOKIE "canary-by-cookie";
}

/// An Ingress that leads to a Service.
pub(super) struct Nginx<'a> {
    /// That of the manifests.
    pub(super) ingress: &'a ObjectName,
    /// Stable's.
    pub(super) service: &'a ObjectName,
}

impl Routing for Nginx<'_> {
    fn routes(&self, _target: &ObjectName) -> Vec<(Kind, ObjectName)> {
        suffixed(self.ingress).map(|canary| (Kind::Ingress, canary)).into_iter().collect()
    }

    fn extra_route(&self, route: &Object, _copies: Percent) -> Result<Option<Object>, LayoutError> {
        Ok(Some(canary(&copied(route, SUFFIX)?, self.service)))
    }

    /// Those that it leads to, by number or by name.
    fn ports(&self, ingress: &Object) -> Vec<Value> {
        let own = backends(ingress.value()).filter(|backend| leads_to(backend, self.service.as_str()));
        let port = |backend: &Value| {
            backend.pointer("/service/port/number").or(backend.pointer("/service/port/name")).cloned()
        };
        own.filter_map(port).collect()
    }

    fn render(&self, canary: &Object, form: Form<'_>) -> Object {
        render(canary, form.split)
    }

    fn read(&self, main: Option<&Object>, view: &RouteView<'_>) -> ObservedSplit {
        let candidate = format!("{}{SUFFIX}", self.service);
        if main.is_some_and(|main| names(main, &candidate)) {
            return ObservedSplit::Split(Split { weight: Percent::ALL, ..Split::stable() });
        }
        let canary = self.canary(view).filter(|canary| names(canary, &candidate));
        let hidden = |canary: &Object| !is_canary(canary) && main.is_some_and(|main| hides(main, canary));
        canary.filter(|canary| !hidden(canary)).map_or_else(|| ObservedSplit::Split(Split::stable()), shown)
    }

    /// The canary's annotations say so, and the other one's paths lead there.
    fn lowered(&self, live: &Object, _view: &RouteView<'_>) -> Object {
        if live.reference().name != *self.ingress {
            return render(live, &Split::stable());
        }
        let mut main = live.clone();
        rename(&mut main, &format!("{}{SUFFIX}", self.service), self.service.as_str());
        main
    }

    fn fields(&self, live: &Object) -> Fields {
        let main = live.reference().name == *self.ingress;
        if main { vec![&["spec", "rules"], &["spec", "defaultBackend"]] } else { FIELDS.to_vec() }
    }

    /// Nothing in an Ingress says whether it is in force: ingress-nginx takes up a change of a canary within about a second, for which
    /// there is `settle`. What it cannot take up its admission webhook refuses. That it takes another canary is seen in that one.
    fn status(&self, _main: &Object, view: &RouteView<'_>) -> RouteStatus {
        let other = self.canary(view).and_then(|canary| instead(view, self.ingress, canary));
        other.map_or(RouteStatus::Effective, |other| {
            let other = other.reference();
            let why = format!(
                "{other} is an older canary of what leads to the Service, and ingress-nginx takes that: delete it"
            );
            RouteStatus::NotYet { why }
        })
    }

    fn references(&self, ingress: &Object) -> bool {
        names(ingress, self.service.as_str())
    }

    fn split(&self, canary: &Object, _candidates: &BTreeSet<ObjectName>) -> Vec<(ObjectName, ObjectName)> {
        beside(canary)
    }
}

impl Nginx<'_> {
    /// The live canary.
    fn canary<'a>(&self, view: &RouteView<'a>) -> Option<&'a Object> {
        view.live.find(Kind::Ingress, view.namespace, &suffixed(self.ingress)?)
    }
}

/// The canary Ingress, which leads nobody to the candidate: `copy` is one of the manifests' Ingress under its own name. Only the
/// paths that lead to the Service are in it, and nothing that other controllers act upon.
fn canary(copy: &Object, service: &ObjectName) -> Object {
    let mut canary = copy.clone();
    section(canary.value_mut(), &["metadata", "annotations"])
        .retain(|key, _| key.starts_with(PREFIX) && !key.starts_with(CANARY) || key == CLASS);
    let spec = section(canary.value_mut(), &["spec"]);
    spec.shift_remove("tls");
    if spec.get("defaultBackend").is_some_and(|backend| !leads_to(backend, service.as_str())) {
        spec.shift_remove("defaultBackend");
    }
    let leads = |path: &Value| leads_to(&path["backend"], service.as_str());
    if let Some(rules) = spec.get_mut("rules").and_then(Value::as_array_mut) {
        for paths in rules.iter_mut().filter_map(|rule| rule.pointer_mut("/http/paths")?.as_array_mut()) {
            paths.retain(leads);
        }
        rules.retain(|rule| items(&rule["http"], "paths").next().is_some());
    }
    rename(&mut canary, service.as_str(), &format!("{service}{SUFFIX}"));
    render(&canary, &Split::stable())
}

/// The canary Ingress with that split.
fn render(canary: &Object, split: &Split) -> Object {
    let mut canary = canary.clone();
    for (key, value) in settings(split) {
        canary.annotate(key, &value);
    }
    canary
}

/// A header, or a cookie of the value `always`, can be told; at 100 nobody has to be, and a cookie `never` would keep its users.
fn settings(split: &Split) -> [(&'static str, String); 7] {
    let (mut header, mut value, mut pattern, mut cookie) = Default::default();
    for alternative in split.headers.iter().filter(|_| split.weight < Percent::ALL) {
        match (cookie::named(alternative), alternative.iter().next()) {
            (Some((name, _)), _) => cookie = name,
            (None, Some((name, HeaderValue::Exact(exact)))) => (header, value) = (name.clone(), exact.clone()),
            (None, Some((name, HeaderValue::Regex { regex }))) => (header, pattern) = (name.clone(), regex.clone()),
            (None, None) => {}
        }
    }
    [
        (CANARY, "true".to_owned()),
        (WEIGHT, split.weight.to_string()),
        (TOTAL, "100".to_owned()),
        (HEADER, header),
        (VALUE, value),
        (PATTERN, pattern),
        (COOKIE, cookie),
    ]
}

/// Whether an Ingress takes all requests that another one of no mark would lead anywhere, as it is older, of the same class, and has the same paths ("How it
/// works": of several rules for a path the oldest wins). So Flagger leaves its canary.
fn hides(main: &Object, other: &Object) -> bool {
    let (own, others) = (paths(main, |_| true), paths(other, |_| true));
    let older = made(main).zip(made(other)).is_some_and(|(main, other)| main < other);
    older && class(main) == class(other) && other.at("/spec/defaultBackend").is_none() && others.is_subset(&own)
}

/// The canaries of others that ingress-nginx may take in place of ours. It has one for all that leads to a port of a Service: the oldest
/// that has a host and a path of what leads there, whatever its weight is (its source, `mergeAlternativeBackends`, and
/// `route_to_alternative_balancer` for "the first alone"). So Argo Rollouts leaves its own, which has another name than ours.
#[must_use]
pub fn rivals<'a>(view: &RouteView<'a>, ingress: &ObjectName, service: &ObjectName) -> Vec<&'a Object> {
    let copy = suffixed(ingress);
    let ours = |name: &ObjectName| name == ingress || Some(name) == copy.as_ref();
    let near = view.live.of_kind(Kind::Ingress).filter(|other| other.reference().namespace == *view.namespace);
    let (canaries, others): (Vec<&'a Object>, Vec<&'a Object>) = near.partition(|other| is_canary(other));
    let takes = |canary: &Object| others.iter().any(|main| shares(main, canary, service.as_str()));
    canaries.into_iter().filter(|canary| !ours(&canary.reference().name) && takes(canary)).collect()
}

/// Whether a canary is one for what an Ingress leads to the Service: both are of one class, and have a host and a path in common. One
/// without rules is one for every path without a host.
fn shares(main: &Object, canary: &Object, service: &str) -> bool {
    let led = |backend: &Value| leads_to(backend, service);
    let own = paths(main, led);
    let rest = || main.at("/spec/defaultBackend").is_some_and(led) || own.iter().any(|[host, ..]| host.is_empty());
    let common = || !own.is_disjoint(&paths(canary, |_| true));
    class(main) == class(canary) && (common() || canary.at("/spec/defaultBackend").is_some() && rest())
}

/// The older canary of others that ingress-nginx takes where ours would let somebody in.
fn instead<'a>(view: &RouteView<'a>, ingress: &ObjectName, canary: &Object) -> Option<&'a Object> {
    if shown(canary) == ObservedSplit::Split(Split::stable()) {
        return None;
    }
    let older = |other: &Object| made(other).zip(made(canary)).is_some_and(|(other, own)| other <= own);
    let mut all = beside(canary).into_iter().flat_map(|(_, service)| rivals(view, ingress, &service));
    all.find(|other| older(other))
}

/// When it was made.
fn made(ingress: &Object) -> Option<Time> {
    ingress.text("/metadata/creationTimestamp")?.parse().ok()
}

/// Which controller serves it.
fn class(ingress: &Object) -> Option<&str> {
    ingress.text("/spec/ingressClassName").or_else(|| ingress.annotation(CLASS))
}

/// What an Ingress takes and leads to a backend that counts: host, path and how that is compared.
fn paths(ingress: &Object, counts: impl Fn(&Value) -> bool) -> BTreeSet<[String; 3]> {
    let rules = items(&ingress.value()["spec"], "rules");
    let all = rules.flat_map(|rule| items(&rule["http"], "paths").map(move |path| (&rule["host"], path)));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let counted = all.filter(|(_, path)| counts(&path["backend"]));
    counted.map(|(host, path)| [host, &path["path"], &path["pathType"]].map(text)).collect()
}

/// Who reaches what a canary Ingress leads to.
fn shown(canary: &Object) -> ObservedSplit {
    let name = &canary.reference().name;
    let text = |key| canary.annotation(key).map(str::trim).unwrap_or_default();
    if !is_canary(canary) {
        return ObservedSplit::Foreign(format!("Ingress {name} leads to the candidate, but is not marked as a canary"));
    }
    let number = |key, default| if text(key).is_empty() { Some(default) } else { text(key).parse::<u64>().ok() };
    let (Some(weight), Some(total)) = (number(WEIGHT, 0), number(TOTAL, 100)) else {
        return ObservedSplit::Foreign(format!("the weight of Ingress {name} is no number"));
    };
    let share = weight.saturating_mul(100).div_ceil(total.max(1));
    let weight = u8::try_from(share).ok().and_then(|share| Percent::try_from(share).ok()).unwrap_or(Percent::ALL);
    let mut headers = BTreeSet::new();
    if !text(HEADER).is_empty() {
        let value = match (text(VALUE), text(PATTERN)) {
            ("", "") => HeaderValue::Exact("always".to_owned()),
            ("", regex) => HeaderValue::Regex { regex: regex.to_owned() },
            (value, _) => HeaderValue::Exact(value.to_owned()),
        };
        headers.insert(HeaderMatch::from([(text(HEADER).to_ascii_lowercase(), value)]));
    }
    if !text(COOKIE).is_empty() {
        headers.insert(cookie::matching(text(COOKIE), "always"));
    }
    ObservedSplit::Split(Split { headers, weight, ..Split::stable() })
}

/// Whether an Ingress leads to that Service.
fn names(ingress: &Object, service: &str) -> bool {
    backends(ingress.value()).any(|backend| leads_to(backend, service))
}

/// Which Ingress and Services a live canary Ingress is beside, as far as it tells.
fn beside(canary: &Object) -> Vec<(ObjectName, ObjectName)> {
    let stripped = |name: &str| -> Option<ObjectName> { name.strip_suffix(SUFFIX)?.parse().ok() };
    let main = stripped(canary.reference().name.as_str()).filter(|_| is_canary(canary));
    let Some(main) = main else { return Vec::new() };
    let services = backends(canary.value()).filter_map(|backend| stripped(backend.pointer("/service/name")?.as_str()?));
    let services: BTreeSet<ObjectName> = services.collect();
    services.into_iter().map(|service| (main.clone(), service)).collect()
}

/// As Go reads a truth value.
fn is_canary(ingress: &Object) -> bool {
    matches!(ingress.annotation(CANARY), Some("true" | "True" | "TRUE" | "t" | "T" | "1"))
}

fn backends(ingress: &Value) -> impl Iterator<Item = &Value> {
    let spec = &ingress["spec"];
    let paths = items(spec, "rules").flat_map(|rule| items(&rule["http"], "paths"));
    paths.filter_map(|path| path.get("backend")).chain(spec.get("defaultBackend"))
}

fn leads_to(backend: &Value, service: &str) -> bool {
    backend.pointer("/service/name").and_then(Value::as_str) == Some(service)
}

fn rename(ingress: &mut Object, from: &str, to: &str) {
    let mut rename = |backend: &mut Value| {
        if leads_to(backend, from) {
            section(backend, &["service"]).insert("name".to_owned(), to.into());
        }
    };
    let spec = &mut ingress.value_mut()["spec"];
    for http in items_mut(spec, "rules").filter_map(|rule| rule.get_mut("http")) {
        items_mut(http, "paths").filter_map(|path| path.get_mut("backend")).for_each(&mut rename);
    }
    if let Some(backend) = spec.get_mut("defaultBackend") {
        rename(backend);
    }
}

#[cfg(test)]
mod tests;
