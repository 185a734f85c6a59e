//! Whose series a query is about: whether it can be narrowed down to one role's, and compared with the other's.

use super::limits;
use crate::manifest::check::Case;
use crate::manifest::diagnostic::{Code, Diagnostic};
use crate::manifest::measure::{Comparison, Labels, PrometheusQuery};
use crate::manifest::promql::{Query, Selector};

/// A query, and how its values may differ from stable's. `pointer` is where the check stands.
pub(super) fn check(
    case: &Case<'_>,
    pointer: &str,
    asked: &PrometheusQuery,
    compared: Option<Comparison>,
) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    if let Some(Comparison { ratio, difference }) = compared {
        let at = format!("{pointer}/comparedWithStable");
        for (key, these) in [("ratio", ratio), ("difference", difference)] {
            found.extend(these.and_then(|these| limits(case, &format!("{at}/{key}"), key, these)));
        }
        if asked.labels.is_none() {
            let what = "nothing tells stable's series from the candidate's";
            let diagnostic = case.error(&at, Code::CheckUseless, what, "labels beside the query");
            let help = "write labels: {pod: pod} below prometheus, with the label that holds the name of the pod";
            found.push(diagnostic.help(help));
        }
    }
    if let Some(labels) = &asked.labels {
        found.extend(telling(case, &format!("{pointer}/prometheus/labels"), labels));
        found.extend(readable(case, &format!("{pointer}/prometheus/query"), &asked.query, labels));
    }
    found
}

/// Labels that tell one role from the other.
fn telling(case: &Case<'_>, pointer: &str, labels: &Labels) -> Option<Diagnostic> {
    if labels.telling().next().is_none() {
        let what = "the namespace alone does not tell the candidate from stable";
        return Some(case.error(pointer, Code::CheckUseless, what, "pod, service or workload too"));
    }
    labels.service.as_ref()?;
    let shared = case.spec.traffic.as_ref().is_none_or(|traffic| traffic.gateway_api.is_none());
    shared.then(|| {
        let what = "with this router the candidate has no Service of its own";
        case.error(&format!("{pointer}/service"), Code::RouterLimit, what, "pod or workload")
    })
}

/// A query that can be read, selects series, and leaves it to tidegate which role's.
fn readable(case: &Case<'_>, pointer: &str, query: &str, labels: &Labels) -> Option<Diagnostic> {
    let read = match Query::parse(query) {
        Ok(read) => read,
        Err(why) => return Some(case.error(pointer, Code::CheckQuery, why.to_string(), "PromQL")),
    };
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
