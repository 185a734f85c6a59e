//! Whose series a query is about: whether it can be narrowed down to one role's, and compared with the other's.

use super::limits;
use crate::manifest::check::Case;
use crate::manifest::desired::{Router, TargetKind};
use crate::manifest::diagnostic::{Code, Diagnostic};
use crate::manifest::measure::{Comparison, LabelName, Labels, PrometheusQuery, Proxy};
use crate::manifest::promql::{Query, Selector};
use crate::manifest::raw;

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
        Some(labels) => telling(case, &at("labels"), labels).or_else(|| adopted(case, &at("labels"), labels, compared)),
    };
    let read = Query::parse(&asked.query);
    let wrong = match &read {
        Err(why) => Some(case.error(&at("query"), Code::CheckQuery, why.to_string(), "PromQL")),
        Ok(read) => {
            let chosen = asked.labels.as_ref().and_then(|labels| own(case, &at("query"), read, labels));
            chosen.or_else(|| several(case, &at("query"), read, asked.labels.as_ref()))
        }
    };
    told.into_iter().chain(wrong).collect()
}

fn unlabelled(case: &Case<'_>, pointer: &str) -> Diagnostic {
    let what = "nothing tells stable's series from the candidate's";
    let at = format!("{pointer}/comparedWithStable");
    let help = match case.spec.target.kind {
        TargetKind::Deployment | TargetKind::Service => {
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
        case.error(pointer, Code::CheckUseless, what, "pod, service or workload too")
    })
}

/// A share in percent.
pub(super) fn success_rate(case: &Case<'_>, pointer: &str, check: &raw::Check, proxy: Proxy) -> Vec<Diagnostic> {
    let share = check.min.filter(|min| min.get() > 0.0 && min.get() <= 1.0).map(|min| {
        let what = format!("{min} % of the requests are enough, so almost all may fail");
        case.error(&format!("{pointer}/min"), Code::CheckUseless, what, "percent, such as 99")
    });
    let pointer = format!("{pointer}/successRate");
    share.into_iter().chain(counted(case, &pointer, proxy)).chain(of_calls(case, &pointer, proxy)).collect()
}

/// gRPC tells an error in `grpc-status`, beside HTTP 200.
fn of_calls(case: &Case<'_>, pointer: &str, proxy: Proxy) -> Option<Diagnostic> {
    let blind = match proxy {
        Proxy::Contour | Proxy::Istio | Proxy::Traefik => matches!(case.router(), Some(Router::Grpc { .. })),
        Proxy::Linkerd => false,
    };
    blind.then(|| {
        let what = "gRPC says that a call failed beside HTTP 200, and what this proxy counts are HTTP's codes";
        let found = case.error(&format!("{pointer}/proxy"), Code::RouterLimit, what, "proxy: linkerd");
        found.help("or count by grpc_code: prometheus with a query of your own and labels: {pod: pod}")
    })
}

/// What proxies count, where one stands before both versions and tells them apart.
pub(super) fn counted(case: &Case<'_>, pointer: &str, proxy: Proxy) -> Vec<Diagnostic> {
    let own = match case.spec.target.kind {
        TargetKind::Deployment => {
            "else measure in the application: prometheus with a query of your own and labels: {pod: pod}"
        }
        TargetKind::StatefulSet | TargetKind::DaemonSet => {
            "else measure in the application: prometheus with a query of your own and \
             labels: {pod: pod, version: tidegate_io_pods}"
        }
        TargetKind::Service => "else prometheus with a query of your own about the Service of the new version",
    };
    let refused = |at: &str, what: &str, expected: &str| {
        vec![case.error(&format!("{pointer}{at}"), Code::RouterLimit, what, expected).help(own)]
    };
    if case.spec.target.kind == TargetKind::Service && matches!(proxy, Proxy::Istio | Proxy::Linkerd) {
        let what = "this proxy counts by workloads, and the target is a Service, which has none of its own";
        return refused("/proxy", what, "proxy: contour or traefik");
    }
    if let Some(Router::Traefik { .. } | Router::IngressRoute { .. }) = case.router() {
        let what = "what Traefik counts of kinds of its own is not known here";
        return refused("", what, "traffic.gatewayAPI or traffic.istio");
    }
    match case.spec.traffic.as_ref().map(|traffic| (&traffic.gateway_api, &traffic.istio, &traffic.nginx)) {
        Some((Some(_), _, _)) => Vec::new(),
        Some((_, Some(_), _)) if proxy == Proxy::Istio => Vec::new(),
        Some((_, Some(_), _)) => refused("/proxy", "with the router istio it is Istio that counts", "proxy: istio"),
        Some((_, _, Some(_))) => {
            refused("", "what ingress-nginx counts is not known here", "traffic.gatewayAPI or traffic.istio")
        }
        Some((None, None, None)) | None => {
            let what = "no proxy splits the requests here, so none counts those to the candidate";
            refused("", what, "traffic.gatewayAPI or traffic.istio")
        }
    }
}

/// Labels that tell one role from the other.
fn telling(case: &Case<'_>, pointer: &str, labels: &Labels) -> Option<Diagnostic> {
    if labels.telling().next().is_none() {
        let what = "the namespace alone does not tell the candidate from stable";
        return Some(case.error(pointer, Code::CheckUseless, what, "pod, service, workload or version too"));
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

/// A query of which each value is of several series.
fn several(case: &Case<'_>, pointer: &str, read: &Query, labels: Option<&Labels>) -> Option<Diagnostic> {
    let pod = labels.and_then(|labels| labels.pod.as_ref()).map(LabelName::as_str);
    // Of a version there can be several pods, as of a pattern.
    let told = labels.into_iter().flat_map(|labels| [&labels.service, &labels.workload]).flatten();
    let told: Vec<&str> = told.map(LabelName::as_str).collect();
    let each = read.of_each(pod, &told)?;
    let what = format!("the query yields a series for each {each}, and a check has one value");
    Some(case.error(pointer, Code::CheckQuery, what, format!("one series, such as sum(…) without {each}")))
}

/// A query that is narrowed down selects series, and leaves it to tidegate which role's.
fn own(case: &Case<'_>, pointer: &str, read: &Query, labels: &Labels) -> Option<Diagnostic> {
    if read.selectors().next().is_none() {
        let what = "the query selects no series, so its values are nobody's";
        return Some(case.error(pointer, Code::CheckQuery, what, "a metric"));
    }
    let chosen = |label: &str| read.selectors().flat_map(Selector::labels).any(|other| other == label);
    let (key, label) = labels.telling().find(|(_, label)| chosen(label.as_str()))?;
    let what = format!("the query chooses {} itself", label.as_str());
    let expected = format!("a query without {}: labels.{key} adds the candidate's, or stable's", label.as_str());
    Some(case.error(pointer, Code::CheckQuery, what, expected))
}
