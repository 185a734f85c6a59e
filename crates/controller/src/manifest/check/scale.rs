//! How many pods: numbers that Kubernetes takes, one autoscaler for a target, and nothing that keeps it from moving.
//!
//! What the API server would take and no controller could ever fulfil is found here, not after a deadline in the cluster.

use super::{Case, Findings};
use crate::manifest::diagnostic::{Code, Diagnostic, quoted};
use crate::manifest::duration::Span;
use crate::manifest::ids::ObjectName;
use crate::manifest::object::{Kind, ObjectRef};
use crate::manifest::scaler;
use crate::manifest::set::Item;
use serde_json::Value;

/// The most pods that the API takes: the field is an int32.
const MOST_PODS: i64 = 2_147_483_647;

/// The autoscalers of the set that scale the target.
pub(super) fn autoscalers<'a>(case: &'a Case<'_>, target: &'a Item) -> impl Iterator<Item = &'a Item> {
    let target = target.object.reference();
    let scales = |(kind, name): (Kind, ObjectName)| (kind, &name) == (target.kind, &target.name);
    case.items.values().filter(move |item| scaler::scaled(&item.object).is_some_and(scales))
}

/// The pods that stable has: as declared, else the autoscaler's minimum, else 1 (design §13.5).
pub(super) fn baseline(case: &Case<'_>, target: &Item) -> u64 {
    let declared = target.object.int("/spec/replicas").and_then(|n| u64::try_from(n).ok());
    let least = |item: &Item| scaler::least(&item.object).map(|least| u64::from(least.max(1)));
    declared.or_else(|| autoscalers(case, target).find_map(least)).unwrap_or(1)
}

/// So many pods of stable in words, where they are as few as an autoscaler allows also what says so, and what would make them more.
pub(super) fn counted(case: &Case<'_>, target: &Item, pods: u64) -> (String, String, String) {
    let count = format!("{pods} pod{}", if pods == 1 { "" } else { "s" });
    let scaler = autoscalers(case, target).next().filter(|_| target.object.int("/spec/replicas").is_none());
    let bounds = scaler.and_then(|item| Some((item.object.reference(), scaler::bounds(item.object.reference().kind)?)));
    match bounds {
        Some((ObjectRef { kind, name, .. }, [least, _])) => {
            let least = least.trim_start_matches("/spec/");
            (count, format!(" (the {least} of the {kind} {name})"), format!("a larger {least}"))
        }
        None => (count, String::new(), "more replicas".to_owned()),
    }
}

pub(super) fn check(case: &Case<'_>, target: &Item, findings: &mut Findings) {
    findings.warnings.extend(astray(case));
    let workloads = [Kind::Deployment, Kind::StatefulSet].into_iter().flat_map(|kind| case.of_kind(kind));
    findings.errors.extend(workloads.flat_map(|item| number(item, "/spec/replicas")));
    findings.errors.extend(scaler::KINDS.into_iter().flat_map(|kind| case.of_kind(kind)).flat_map(bounds));
    findings.errors.extend(autoscalers(case, target).filter_map(held));
    findings.errors.extend(contested(case, target));
    findings.errors.extend(paused(target));
    findings.errors.extend(autoscalers(case, target).skip(1).map(|item| {
        let found = format!("a second autoscaler of {}", target.object.reference().name);
        let expected = format!("one autoscaler for a {}", target.object.reference().kind);
        item.error("/spec/scaleTargetRef", Code::Conflict, found, expected)
            .help("Kubernetes scales by neither while there are two; put all metrics into one")
    }));
    if case.spec.progress_deadline == Span::ZERO {
        let expected = "at least 1s, such as 10m";
        let found = "with no time to become ready, every run fails";
        findings.errors.push(case.error("/spec/progressDeadline", Code::Schema, found, expected));
    }
}

/// Autoscalers of what is not in the set: Kubernetes would scale nothing, without a word.
fn astray(case: &Case<'_>) -> Vec<Diagnostic> {
    let scalers = scaler::KINDS.into_iter().flat_map(|kind| case.of_kind(kind)).filter(|_| case.whole);
    let scaled = scalers.filter_map(|item| Some((item, scaler::scaled(&item.object)?)));
    let astray = scaled.filter(|(_, (kind, name))| case.item(*kind, name).is_none());
    let found = astray.map(|(item, (kind, name))| {
        let there: Vec<&str> = case.of_kind(kind).map(|item| item.object.reference().name.as_str()).collect();
        let what = format!("there is no {kind} {name} in the set, so this scales nothing of it");
        let expected = format!("the name of a {kind} among the manifests: {}", there.join(", "));
        let expected = if there.is_empty() { format!("a {kind} of that name") } else { expected };
        item.error("/spec/scaleTargetRef/name", Code::TargetMissing, what, expected)
    });
    found.collect()
}

/// What is wrong with a number of pods, where there is one.
pub(super) fn number(item: &Item, pointer: &str) -> Option<Diagnostic> {
    let value = item.object.at(pointer).filter(|value| !value.is_null())?;
    let whole = value.as_i64().or_else(|| value.as_u64().map(|_| i64::MAX));
    let field = pointer.rsplit('/').next().unwrap_or(pointer);
    let (found, help) = match (whole, value) {
        (Some(pods), _) if (0..=MOST_PODS).contains(&pods) => return None,
        (_, Value::String(text)) => (
            format!("{field} is the text {}", quoted(text)),
            text.parse::<u32>().is_ok().then_some("take the quotes away"),
        ),
        (_, Value::Number(number)) => (format!("there cannot be {number} pods"), None),
        _ => (format!("{field} is no number"), None),
    };
    let found = item.error(pointer, Code::Replicas, found, format!("a whole number from 0 to {MOST_PODS}"));
    Some(match help {
        Some(help) => found.help(help),
        None => found,
    })
}

fn bounds(item: &Item) -> Vec<Diagnostic> {
    let Some(places) = scaler::bounds(item.object.reference().kind) else { return Vec::new() };
    let mut found: Vec<Diagnostic> = places.iter().filter_map(|pointer| number(item, pointer)).collect();
    let least = scaler::least(&item.object).map_or(0, i64::from);
    if let Some(most) = scaler::most(&item.object).filter(|most| found.is_empty() && *most < least) {
        let [fewest, highest] = places.map(|pointer| pointer.trim_start_matches("/spec/"));
        let what = format!("at most {most} pods and at least {least}");
        let expected = format!("a {highest} of at least {least}, or a smaller {fewest}");
        found.push(item.error(places[1], Code::Replicas, what, expected));
    }
    found
}

/// A number of pods that an autoscaler says too: each sync would take back what it has done.
fn contested(case: &Case<'_>, target: &Item) -> Option<Diagnostic> {
    target.object.at("/spec/replicas").filter(|value| !value.is_null())?;
    let scaler = autoscalers(case, target).next()?.object.reference();
    let found = format!("the {} {} says how many pods there are, and so does this", scaler.kind, scaler.name);
    let expected = "no replicas beside an autoscaler";
    let error = target.error("/spec/replicas", Code::Conflict, found, expected);
    Some(error.help(
        "take the line out: a run begins with as many pods as the autoscaler has made, and with its minimum at least",
    ))
}

/// What holds the target at a number of pods that no run could change.
fn held(item: &Item) -> Option<Diagnostic> {
    let key = scaler::paused(&item.object)?;
    let pointer = format!("/metadata/annotations/{}", key.replace('/', "~1"));
    let found = format!("{key} keeps this scaler from giving a run the pods that it needs");
    let expected = "no such annotation on what scales the target";
    Some(
        item.error(&pointer, Code::Paused, found, expected)
            .help("to keep the number of pods as it is, let both bounds be that number"),
    )
}

/// A paused Deployment never rolls its pods, so that no promotion ends.
fn paused(target: &Item) -> Option<Diagnostic> {
    (target.object.at("/spec/paused") == Some(&Value::Bool(true))).then(|| {
        let found = "the Deployment is paused: its pods would never follow what is promoted";
        target
            .error("/spec/paused", Code::Paused, found, "no paused, or paused: false")
            .help("to keep new steps from being entered, write suspend: true in the rollout, or: tidegate hold")
    })
}
