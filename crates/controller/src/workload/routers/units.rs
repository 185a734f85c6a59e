//! By the pods of a workload that both versions share, of a StatefulSet or of a DaemonSet: which of them are new. Requests reach them as
//! the Services select them, new or not.
//!
//! The share is that of the pods that may be new or are, ready or not: pods that fail only lower it.

use super::{Fields, ObservedSplit, RouteStatus, RouteView, Routing};
use crate::manifest::desired::UnitKind;
use crate::manifest::ids::{ObjectName, Percent};
use crate::manifest::object::{Kind, Object};
use crate::record::posture::Split;
use crate::record::state::RoleName;
use crate::workload::kinds::shared::{
    ceiling, count, exposed, is_seen, is_within, members, open, role, size, weight_of,
};
use crate::workload::kinds::stateful;

/// A workload of that kind.
pub(super) struct Shared(pub(super) UnitKind);

impl Routing for Shared {
    fn routes(&self, target: &ObjectName) -> Vec<(Kind, ObjectName)> {
        let kind = match self.0 {
            UnitKind::StatefulSet => Kind::StatefulSet,
            UnitKind::DaemonSet => Kind::DaemonSet,
            UnitKind::Node => return Vec::new(),
        };
        vec![(kind, target.clone())]
    }

    fn read(&self, set: Option<&Object>, view: &RouteView<'_>) -> ObservedSplit {
        let Some(set) = set else { return ObservedSplit::Split(Split::stable()) };
        let allowed = if role(set) == RoleName::Candidate { weight_of(open(set), size(set)) } else { Percent::ZERO };
        let all = members(set, view.live);
        let new = count(all.iter().filter(|member| member.role == RoleName::Candidate));
        // While it has more pods than it asks for these serve as well.
        let new = weight_of(new, count(all.iter()).max(size(set)));
        ObservedSplit::Split(Split { weight: allowed.max(new), ..Split::stable() })
    }

    /// As many as are new by now, if these are enough and may stay.
    fn reachable(&self, view: &RouteView<'_>, set: Option<&Object>, split: &Split) -> Split {
        let Some(set) = set else { return reachable(0, split) };
        let enough = exposed(set, view.live) >= ceiling(size(set), split) && is_within(set, view.live, split);
        match self.read(Some(set), view) {
            ObservedSplit::Split(shown) if enough => shown,
            ObservedSplit::Split(_) | ObservedSplit::Foreign(_) => reachable(size(set), split),
        }
    }

    /// The old template of a DaemonSet is in no object that is known here.
    fn lowered(&self, live: &Object, _view: &RouteView<'_>) -> Object {
        match self.0 {
            UnitKind::StatefulSet => stateful::closed(live),
            UnitKind::DaemonSet | UnitKind::Node => live.clone(),
        }
    }

    /// Of a StatefulSet: where it is stable's the partition is nobody's. Without the type a partition says nothing.
    fn fields(&self, live: &Object) -> Fields {
        match role(live) {
            RoleName::Candidate if self.0 == UnitKind::StatefulSet => {
                vec![&["spec", "updateStrategy", "type"], &["spec", "updateStrategy", "rollingUpdate", "partition"]]
            }
            RoleName::Candidate | RoleName::Stable => Vec::new(),
        }
    }

    /// Effective once its controller has seen what it asks for: the pods are judged as the workload that they are.
    fn status(&self, set: &Object, _view: &RouteView<'_>) -> RouteStatus {
        if is_seen(set) {
            return RouteStatus::Effective;
        }
        RouteStatus::NotYet { why: format!("the status of {} is older than its spec", set.reference()) }
    }
}

/// What is read once `split` is in force on so many pods.
pub(super) fn reachable(replicas: u32, split: &Split) -> Split {
    Split { weight: weight_of(ceiling(replicas, split), replicas), ..Split::stable() }
}
