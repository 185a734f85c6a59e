//! The router `service`: one Service whose selector names the pods of one role, so that all requests reach stable or all
//! the candidate: blue/green, without a gateway.
//!
//! The candidate's pods have their own value of the label that tells them apart. The Service leads to them as soon as its
//! selector asks for that value, and to nobody else.

use super::{Seen, View};
use crate::manifest::ids::{ObjectName, Percent};
use crate::manifest::object::{Kind, Object, section};
use crate::record::posture::Split;
use crate::target::layout::{SUFFIX, pod_labels, telling};
use crate::target::selector::serves;
use serde_json::Value;

/// The Service of the manifests; at 100 its selector asks for the candidate's pods.
#[must_use]
pub fn render(service: &Object, split: &Split) -> Object {
    match told_by(service).filter(|_| split.weight == Percent::ALL) {
        Some((key, value)) => asking(service, &key, format!("{value}{SUFFIX}")),
        None => service.clone(),
    }
}

/// What split the Service's selector shows.
#[must_use]
pub fn read(view: &View<'_>, service: &ObjectName) -> Seen {
    let Some(live) = view.live.find(Kind::Service, view.namespace, service) else {
        return Seen::Split(Split::stable());
    };
    let candidate = super::candidate(view).map(pod_labels);
    if away(live, view).is_some() {
        Seen::Split(Split { weight: Percent::ALL, ..Split::stable() })
    } else if candidate.is_some_and(|pods| serves(live.at("/spec/selector"), &pods)) {
        Seen::Foreign(format!("the selector of Service {service} leads to pods of both versions"))
    } else {
        Seen::Split(Split::stable())
    }
}

/// The live Service, for stable's pods.
#[must_use]
pub fn retreat(live: &Object, view: &View<'_>) -> Object {
    match away(live, view) {
        Some((key, value)) => asking(live, &key, value),
        None => live.clone(),
    }
}

/// Whether the Service leads to the candidate alone.
#[must_use]
pub fn leads_to_candidate(live: &Object, view: &View<'_>) -> bool {
    away(live, view).is_some()
}

/// The label by which the Service asks for the candidate's pods, with the value that stable's pods have. A version may
/// itself be called `…-canary`: what stable's pods are called counts, where they are there.
fn away(live: &Object, view: &View<'_>) -> Option<(String, String)> {
    let (key, value) = told_by(live)?;
    let own = value.strip_suffix(SUFFIX)?.to_owned();
    let stable = super::stable(view).map(pod_labels);
    stable.is_none_or(|pods| pods.get(&key).and_then(Value::as_str) == Some(&own)).then_some((key, own))
}

fn told_by(service: &Object) -> Option<(String, String)> {
    let (key, value) = telling(service.at("/spec/selector"))?;
    Some((key.to_owned(), value.to_owned()))
}

fn asking(service: &Object, key: &str, value: String) -> Object {
    let mut service = service.clone();
    section(service.value_mut(), &["spec", "selector"]).insert(key.to_owned(), value.into());
    service
}

#[cfg(test)]
mod tests;
