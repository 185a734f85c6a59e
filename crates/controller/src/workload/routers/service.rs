//! The router `service`: one Service whose selector names the pods of one role, so that all requests reach stable or all
//! the candidate: blue/green, without a gateway.
//!
//! The candidate's pods have their own value of the label that tells them apart. The Service leads to them as soon as its
//! selector asks for that value, and to nobody else. With the layout `primary` it is stable's pods that have a value of their own: a
//! Service that asks for the target's leads to the candidate as long as the target is the candidate's, and that its mark says. The
//! mark and the version are written together, so whose pods these are is known at each instant: at first sight, and when the rollout has
//! left main, they are stable's.

use super::{Form, ObservedSplit, RouteStatus, RouteView, Routing, endpoints};
use crate::manifest::ids::{ObjectName, Percent};
use crate::manifest::object::{Kind, Object, section};
use crate::record::posture::{Naming, Split};
use crate::record::state::RoleName;
use crate::workload::kinds::shared;
use crate::workload::layouts::primary;
use crate::workload::layouts::{SUFFIX, pod_labels, telling};
use crate::workload::selector::serves;
use serde_json::Value;

/// The Service that selects the pods of one role.
pub(super) struct Selector<'a>(pub(super) &'a ObjectName);

impl Routing for Selector<'_> {
    fn routes(&self, _target: &ObjectName) -> Vec<(Kind, ObjectName)> {
        vec![(Kind::Service, self.0.clone())]
    }

    /// At 100 its selector asks for the candidate's pods.
    fn render(&self, service: &Object, Form { split, naming, candidate: _ }: Form<'_>) -> Object {
        let told = told_by(service).filter(|_| split.weight == Percent::ALL);
        let Some((key, value)) = told else { return service.clone() };
        let candidate = match naming {
            Naming::Primary(_) => value.strip_suffix(primary::SUFFIX).unwrap_or(&value).to_owned(),
            Naming::InPlace | Naming::Leaving(_) | Naming::Shared | Naming::Versioned(_) => format!("{value}{SUFFIX}"),
        };
        asking(service, &key, candidate)
    }

    fn read(&self, service: Option<&Object>, view: &RouteView<'_>) -> ObservedSplit {
        let Some(live) = service else { return ObservedSplit::Split(Split::stable()) };
        let candidate = super::candidate(view).map(pod_labels);
        if away(live, view).is_some() {
            ObservedSplit::Split(Split { weight: Percent::ALL, ..Split::stable() })
        } else if candidate.is_some_and(|pods| serves(live.at("/spec/selector"), &pods)) {
            ObservedSplit::Foreign(format!("the selector of Service {} leads to pods of both versions", self.0))
        } else {
            ObservedSplit::Split(Split::stable())
        }
    }

    fn lowered(&self, live: &Object, view: &RouteView<'_>) -> Object {
        away(live, view).map_or_else(|| live.clone(), |(key, value)| asking(live, &key, value))
    }

    fn status(&self, service: &Object, view: &RouteView<'_>) -> RouteStatus {
        endpoints::status(service, view)
    }
}

/// Whether the Service leads to the candidate alone.
pub(super) fn leads_to_candidate(live: &Object, view: &RouteView<'_>) -> bool {
    away(live, view).is_some()
}

/// The label by which the Service asks for the candidate's pods, with the value that stable's pods have. A version may
/// itself be called `…-canary`: what stable's pods are called counts, where they are there.
fn away(live: &Object, view: &RouteView<'_>) -> Option<(String, String)> {
    let (key, value) = told_by(live)?;
    let has =
        |deployment: &Object, value: &str| pod_labels(deployment).get(&key).and_then(Value::as_str) == Some(value);
    let stable = super::stable(view);
    let own = match view.naming {
        Naming::Primary(_) => {
            let target = view.live.find(Kind::Deployment, view.namespace, view.target);
            let lent = target.is_some_and(|target| shared::role(target) == RoleName::Stable || !has(target, &value));
            if lent || target.or(stable).is_none() {
                return None;
            }
            format!("{value}{}", primary::SUFFIX)
        }
        Naming::InPlace | Naming::Leaving(_) | Naming::Shared | Naming::Versioned(_) => {
            value.strip_suffix(SUFFIX)?.to_owned()
        }
    };
    stable.is_none_or(|stable| has(stable, &own)).then_some((key, own))
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
