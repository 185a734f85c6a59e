//! By the pods of a workload that both versions share, of a StatefulSet or of a DaemonSet: which of them are new. Requests reach them as
//! the Services select them, new or not.
//!
//! The share is that of the pods that may be new or are, ready or not: pods that fail only lower it.

use super::{Fields, Seen, Standing, View, carriers};
use crate::manifest::desired::Router;
use crate::manifest::ids::Percent;
use crate::manifest::object::Object;
use crate::record::posture::Split;
use crate::record::state::RoleName;
use crate::workload::kinds::shared::{count, is_seen, members, open, pods_of, role, size, weight_of};

/// What a retreat lowers of a StatefulSet: where it is stable's the partition is nobody's. Without the type a partition says nothing.
pub(super) fn fields(live: &Object) -> Fields {
    match role(live) {
        RoleName::Candidate => {
            &[&["spec", "updateStrategy", "type"], &["spec", "updateStrategy", "rollingUpdate", "partition"]]
        }
        RoleName::Stable => &[],
    }
}

/// What [`read`] shows once `split` is in force on so many pods: at most its weight.
#[must_use]
pub fn reachable(replicas: u32, split: &Split) -> Split {
    Split { weight: weight_of(pods_of(replicas, split.weight), replicas), ..Split::stable() }
}

/// The live workload.
#[must_use]
pub fn carrier<'a>(router: &Router, view: &View<'a>) -> Option<&'a Object> {
    carriers(router, view.namespace, view.target).first().and_then(|carrier| view.live.get(carrier))
}

/// What split the workload and its pods show.
#[must_use]
pub fn read(router: &Router, view: &View<'_>) -> Seen {
    let Some(set) = carrier(router, view) else { return Seen::Split(Split::stable()) };
    let allowed = if role(set) == RoleName::Candidate { weight_of(open(set), size(set)) } else { Percent::ZERO };
    let all = members(set, view.live);
    let new = count(all.iter().filter(|member| member.role == RoleName::Candidate));
    // While it has more pods than it asks for these serve as well.
    let new = weight_of(new, count(all.iter()).max(size(set)));
    Seen::Split(Split { weight: allowed.max(new), ..Split::stable() })
}

/// Effective once its controller has seen what it asks for: the pods are judged as the workload that they are.
pub(super) fn standing(router: &Router, view: &View<'_>) -> Standing {
    match carrier(router, view) {
        None => {
            let missing = carriers(router, view.namespace, view.target);
            let kind = missing.first().map(|carrier| carrier.kind.as_str()).unwrap_or_default();
            Standing::NotYet { why: format!("{kind} {} is not there", view.target) }
        }
        Some(set) if is_seen(set) => Standing::Effective,
        Some(set) => Standing::NotYet { why: format!("the status of {} is older than its spec", set.reference()) },
    }
}
