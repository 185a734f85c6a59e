//! Jobs before steps: they can end, and nobody is led to their pods.

use super::pods::{Labels, labels, matches, matches_plain};
use super::{Case, PRIMARY, SUFFIX};
use crate::manifest::diagnostic::{Code, Diagnostic};
use crate::manifest::object::Kind;
use crate::manifest::set::Item;
use serde_json::Value;

pub(super) fn check(case: &Case<'_>) -> Vec<Diagnostic> {
    case.jobs.values().flat_map(|job| ends(job).into_iter().chain(selected(case, job))).collect()
}

/// What keeps a Job from running, or its pods from coming to an end.
fn ends(job: &Item) -> Option<Diagnostic> {
    if job.object.at("/spec/suspend") == Some(&Value::Bool(true)) {
        return Some(job.error("/spec/suspend", Code::Schema, "this Job would never run", "no suspend"));
    }
    let pointer = "/spec/template/spec/restartPolicy";
    let found = match job.object.text(pointer) {
        Some("Never" | "OnFailure") => return None,
        Some(policy) => format!("the restartPolicy of these pods is {policy}"),
        None => "these pods have no restartPolicy".to_owned(),
    };
    Some(job.error(pointer, Code::Schema, found, "restartPolicy: Never, or OnFailure"))
}

/// Pods that a Service selects are sent what live users ask. What it, or a copy of it, selects has this label, or that of the copy.
fn selected(case: &Case<'_>, job: &Item) -> Vec<Diagnostic> {
    let pods = labels(job.object.at("/spec/template/metadata/labels"));
    let without = |suffix: &str| -> Labels {
        pods.iter().map(|(key, value)| (key.clone(), value.strip_suffix(suffix).unwrap_or(value).to_owned())).collect()
    };
    let pods = ["", SUFFIX, PRIMARY].map(without);
    let by = |selects: fn(Option<&Value>, &Labels) -> bool| {
        let pods = &pods;
        move |item: &&Item| pods.iter().any(|pods| selects(item.object.at("/spec/selector"), pods))
    };
    let by_service = case.of_kind(Kind::Service).filter(by(matches_plain));
    let by_workload = Kind::WORKLOADS.iter().flat_map(|kind| case.of_kind(*kind)).filter(by(matches));
    let error = |by: &Item| {
        let found = format!("{} selects the pods of this Job", by.object.reference());
        job.error("/spec/template/metadata/labels", Code::SelectorOverlap, found, "labels of its own")
    };
    by_service.chain(by_workload).map(error).collect()
}
