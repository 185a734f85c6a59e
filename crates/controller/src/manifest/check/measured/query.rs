//! Whose series a query is about: whether it can be narrowed down to one role's, and compared with the other's.

use super::limits;
use crate::manifest::check::Case;
use crate::manifest::desired::TargetKind;
use crate::manifest::diagnostic::{Code, Diagnostic};
use crate::manifest::measure::{BadQuery, Comparison, LabelName, Labels, PrometheusQuery};
use crate::manifest::promql::Query;

/// How values may differ from stable's. `pointer` is where the check stands.
pub(super) fn compared(case: &Case<'_>, pointer: &str, compared: Option<Comparison>) -> Vec<Diagnostic> {
    let Some(Comparison { ratio, difference }) = compared else { return Vec::new() };
    let each = [("ratio", ratio), ("difference", difference)].into_iter();
    each.filter_map(|(key, these)| limits(case, &format!("{pointer}/comparedWithStable/{key}"), key, these?)).collect()
}

/// A query of the file's own.
pub(super) fn check(
    case: &Case<'_>,
    pointer: &str,
    asked: &PrometheusQuery,
    compared: Option<Comparison>,
) -> Vec<Diagnostic> {
    let at = |key| format!("{pointer}/prometheus/{key}");
    let told = match &asked.labels {
        None => compared.map(|_| unlabelled(case, pointer)),
        Some(labels) => telling(case, &at("labels"), labels)
            .or_else(|| twice(case, &at("labels"), labels))
            .or_else(|| adopted(case, &at("labels"), labels, compared)),
    };
    let wrong = asked.mistake().map(|why| refused(case, &at("query"), &asked.query, &why));
    told.into_iter().chain(wrong).collect()
}

/// A function that is not known: a Prometheus of another make may know it.
pub(super) fn unfamiliar(case: &Case<'_>, pointer: &str, asked: &PrometheusQuery) -> Option<Diagnostic> {
    let read = Query::parse(&asked.query).ok()?;
    let why = BadQuery::from(read.unfamiliar()?);
    let found = refused(case, &format!("{pointer}/prometheus/query"), &asked.query, &why);
    Some(found.help("if your Prometheus does not know it either, nothing is measured and the run holds"))
}

/// What is wrong with a query, at its place in the file where the file has it as it is.
fn refused(case: &Case<'_>, pointer: &str, query: &str, BadQuery { found, wanted, place }: &BadQuery) -> Diagnostic {
    let whole = case.root.locate(pointer);
    // The end of a query is no place that could be shown.
    let mark = place.clone().filter(|place| !place.is_empty()).map(|place| case.source.within(whole, query, place));
    let told = case.source.at(mark.flatten().unwrap_or(whole), Code::CheckQuery, found, wanted);
    if mark == Some(None) { told.help(REWRITTEN) } else { told }
}

/// Why a mistake is shown at the beginning of its query.
const REWRITTEN: &str =
    "the query begins here; the file has it folded or with escapes, so count its characters as they are read";

/// No series has two values of one label.
fn twice(case: &Case<'_>, pointer: &str, labels: &Labels) -> Option<Diagnostic> {
    let all: Vec<(&str, &LabelName)> = [("namespace", &labels.namespace)].into_iter().chain(labels.telling()).collect();
    let known = |i: usize| all[..i].iter().find(|(_, label)| *label == all[i].1);
    let (i, (other, label)) = (1..all.len()).find_map(|i| Some((i, known(i)?)))?;
    let (key, name) = (all[i].0, label.as_str());
    let what = format!("{name} is the label of the {other} too, and has one value in a series");
    let found = case.error(&format!("{pointer}/{key}"), Code::CheckUseless, what, format!("another label than {name}"));
    Some(found.help(match *other {
        "namespace" => "labels.namespace is the label that holds the namespace: `namespace` if it is left out",
        _ => "the name of the pod, of the Service, of the workload and the version have a label each",
    }))
}

fn unlabelled(case: &Case<'_>, pointer: &str) -> Diagnostic {
    let what = "nothing tells stable's series from the candidate's";
    let at = format!("{pointer}/comparedWithStable");
    let help = match case.spec.target.kind {
        TargetKind::Deployment | TargetKind::Service | TargetKind::NodeConfig | TargetKind::None => {
            "write labels: {pod: pod} below prometheus, with the label that holds the name of the pod"
        }
        TargetKind::StatefulSet | TargetKind::DaemonSet => SHARED,
    };
    case.error(&at, Code::CheckUseless, what, "labels beside the query").help(help)
}

/// What tells versions that are pods of one workload.
const SHARED: &str = "write labels: {pod: pod, version: tidegate_io_pods} below prometheus, with the labels that hold the name of \
                      the pod and the value of its label tidegate.io/pods (docs/checks.md, \"By version\")";

/// Until a run has promoted something stable's pods have no such label, as those of all others in the namespace.
fn adopted(case: &Case<'_>, pointer: &str, labels: &Labels, compared: Option<Comparison>) -> Option<Diagnostic> {
    compared?;
    labels.telling().all(|(key, _)| key == "version").then(|| {
        let what = "before its first promotion stable's pods have no label tidegate.io/pods, as those of others";
        let expected = if case.route().is_some() { "pod, service or workload too" } else { "pod or workload too" };
        case.error(pointer, Code::CheckUseless, what, expected)
    })
}

/// Labels that tell one role from the other.
fn telling(case: &Case<'_>, pointer: &str, labels: &Labels) -> Option<Diagnostic> {
    if labels.telling().next().is_none() {
        let what = "the namespace alone does not tell the candidate from stable";
        let (expected, help) = match case.spec.target.kind {
            TargetKind::Service | TargetKind::NodeConfig | TargetKind::None => ("service too", None),
            TargetKind::StatefulSet | TargetKind::DaemonSet => ("version too", Some(SHARED)),
            TargetKind::Deployment if case.route().is_some() => ("pod, service, workload or version too", None),
            TargetKind::Deployment => ("pod, workload or version too", None),
        };
        let found = case.error(pointer, Code::CheckUseless, what, expected);
        return Some(if let Some(help) = help { found.help(help) } else { found });
    }
    let of_pods = [("pod", &labels.pod), ("workload", &labels.workload), ("version", &labels.version)];
    let of_pods =
        of_pods.into_iter().find(|(_, label)| label.is_some() && case.spec.target.kind == TargetKind::Service);
    if let Some((key, _)) = of_pods {
        let what = "the target is a Service, and nobody knows what the pods behind it are called";
        return Some(case.error(&format!("{pointer}/{key}"), Code::CheckUseless, what, "service alone"));
    }
    if labels.service.is_some() && case.route().is_none() {
        let what = "with this router the candidate has no Service of its own";
        return Some(case.error(&format!("{pointer}/service"), Code::RouterLimit, what, "pod or workload"));
    }
    let kind = case.spec.target.kind;
    (kind.own_router().is_some() && labels.version.is_none()).then(|| {
        let what = format!("the pods of both versions are those of one {}, and these labels are the same", kind.kind());
        case.error(pointer, Code::CheckUseless, what, "version too").help(SHARED)
    })
}
