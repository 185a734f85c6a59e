//! How many pods: numbers that Kubernetes takes, one autoscaler for a target, and nothing that keeps it from moving.
//!
//! What the API server would take and no controller could ever fulfil is found here, not after a deadline in the cluster.

use super::{Case, Findings};
use crate::manifest::desired::TargetKind;
use crate::manifest::diagnostic::{Code, Diagnostic, quoted};
use crate::manifest::duration::Span;
use crate::manifest::ids::ObjectName;
use crate::manifest::object::{Kind, Object};
use crate::manifest::set::Item;
use serde_json::Value;

/// The most pods that the API takes: the field is an int32.
const MOST_PODS: i64 = 2_147_483_647;

/// What an autoscaler scales, if that is something that a rollout can be about.
pub(in crate::manifest) fn scaled(object: &Object) -> Option<(Kind, ObjectName)> {
    let object = Some(object).filter(|object| object.reference().kind == Kind::HorizontalPodAutoscaler)?;
    let named = object.text("/spec/scaleTargetRef/kind")?;
    let kind = TargetKind::ALL.into_iter().map(TargetKind::kind).find(|kind| kind.as_str() == named)?;
    Some((kind, object.text("/spec/scaleTargetRef/name")?.parse().ok()?))
}

/// The autoscalers of the set that scale the target.
pub(super) fn autoscalers<'a>(case: &'a Case<'_>, target: &'a Item) -> impl Iterator<Item = &'a Item> {
    let target = target.object.reference();
    let scales = |(kind, name): (Kind, ObjectName)| (kind, &name) == (target.kind, &target.name);
    case.of_kind(Kind::HorizontalPodAutoscaler).filter(move |item| scaled(&item.object).is_some_and(scales))
}

/// The pods that stable has: as declared, else the autoscaler's minimum, else 1 (design §13.5).
pub(super) fn baseline(case: &Case<'_>, target: &Item) -> u64 {
    let number = |object: &Object, pointer: &str| object.int(pointer).and_then(|n| u64::try_from(n).ok());
    number(&target.object, "/spec/replicas")
        .or_else(|| autoscalers(case, target).find_map(|item| number(&item.object, "/spec/minReplicas")))
        .unwrap_or(1)
}

pub(super) fn check(case: &Case<'_>, target: &Item, findings: &mut Findings) {
    let workloads = TargetKind::ALL.into_iter().flat_map(|kind| case.of_kind(kind.kind()));
    findings.errors.extend(workloads.flat_map(|item| number(item, "/spec/replicas")));
    findings.errors.extend(case.of_kind(Kind::HorizontalPodAutoscaler).flat_map(bounds));
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
    let mut found: Vec<Diagnostic> =
        ["/spec/minReplicas", "/spec/maxReplicas"].iter().filter_map(|pointer| number(item, pointer)).collect();
    // Without one, the API takes 1 for the minimum.
    let least = item.object.int("/spec/minReplicas").unwrap_or(1);
    if let Some(most) = item.object.int("/spec/maxReplicas").filter(|most| found.is_empty() && *most < least) {
        let what = format!("at most {most} pods and at least {least}");
        let expected = format!("a maxReplicas of at least {least}, or a smaller minReplicas");
        found.push(item.error("/spec/maxReplicas", Code::Replicas, what, expected));
    }
    found
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
