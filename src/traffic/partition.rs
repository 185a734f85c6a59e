//! By the partition of a StatefulSet: which of its own pods are new. Requests reach them as the Services select them, new or not.
//!
//! The share is that of the pods that may be new or are, ready or not: pods that fail only lower it.

use super::{Fields, Seen, Standing, View};
use crate::manifest::ids::Percent;
use crate::manifest::object::{Kind, Object};
use crate::record::posture::Split;
use crate::record::state::RoleName;
use crate::target::stateful::{is_seen, members, open, pods_of, replicas, role, weight_of};

/// What a retreat lowers: where it is stable's the partition is nobody's. Without the type a partition says nothing.
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

/// The live StatefulSet.
#[must_use]
pub fn carrier<'a>(view: &View<'a>) -> Option<&'a Object> {
    view.live.find(Kind::StatefulSet, view.namespace, view.target)
}

/// What split the StatefulSet and its pods show.
#[must_use]
pub fn read(view: &View<'_>) -> Seen {
    let Some(set) = carrier(view) else { return Seen::Split(Split::stable()) };
    let allowed = if role(set) == RoleName::Candidate { weight_of(open(set), replicas(set)) } else { Percent::ZERO };
    let all = members(set, view.live);
    let count = |members: usize| u32::try_from(members).unwrap_or(u32::MAX);
    let new = count(all.iter().filter(|member| member.role == RoleName::Candidate).count());
    // While it has more pods than it asks for these serve as well.
    let new = weight_of(new, count(all.len()).max(replicas(set)));
    Seen::Split(Split { weight: allowed.max(new), ..Split::stable() })
}

/// Effective once its controller has seen what it asks for: the pods are judged as the workload that they are.
pub(super) fn standing(view: &View<'_>) -> Standing {
    match carrier(view) {
        None => Standing::NotYet { why: format!("StatefulSet {} is not there", view.target) },
        Some(set) if is_seen(set) => Standing::Effective,
        Some(set) => Standing::NotYet { why: format!("the status of {} is older than its spec", set.reference()) },
    }
}
