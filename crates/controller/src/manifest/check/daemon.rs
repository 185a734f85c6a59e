//! A DaemonSet as the target: its own pods are moved, node by node, and it has as many as there are nodes.

use super::{Case, stateful};
use crate::manifest::diagnostic::{Code, Diagnostic};
use crate::manifest::object::Kind;
use crate::manifest::scaler;
use crate::manifest::set::Item;

/// Its update strategy may be any: while a run is open it is `OnDelete`, else what the manifest says.
pub(super) fn check(case: &Case<'_>) -> Vec<Diagnostic> {
    let mut found = stateful::own_pods(case);
    found.extend(scaler::KINDS.into_iter().flat_map(|kind| case.of_kind(kind)).filter_map(|item| scaled(case, item)));
    found
}

/// The API server takes such a scaler, and it never does anything.
fn scaled(case: &Case<'_>, scaler: &Item) -> Option<Diagnostic> {
    let scaled = |field: &str| scaler.object.text(&format!("/spec/scaleTargetRef/{field}"));
    let target = &case.spec.target.name;
    let is = scaled("kind") == Some(Kind::DaemonSet.as_str()) && scaled("name") == Some(target.as_str());
    is.then(|| {
        let what = format!("DaemonSet {target} has a pod for each node, and nothing scales it");
        let found = scaler.error("/spec/scaleTargetRef", Code::Conflict, what, "no autoscaler of a DaemonSet");
        found.help("take it away; which nodes have a pod is said by nodeSelector and tolerations of the pod template")
    })
}
