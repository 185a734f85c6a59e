//! What a rollout has beside its set, at rest or during a run, as far as other rollouts can be in its way.

use super::pods::{self, Labels};
use super::{Case, SUFFIX, virtual_service};
use crate::manifest::desired::{Router, TargetKind};
use crate::manifest::object::{Kind, Object, ObjectRef};
use std::collections::BTreeMap;

/// The copies of a rollout.
#[derive(Default)]
pub(in crate::manifest) struct Copies {
    /// Their names, each with what it is a copy of.
    pub(in crate::manifest) names: BTreeMap<ObjectRef, ObjectRef>,
    /// The labels of the candidate's pods.
    pods: Option<Labels>,
}

impl Copies {
    /// Whether requests to that Service would reach the candidate's pods.
    pub(in crate::manifest) fn reached_by(&self, service: &Object) -> bool {
        self.pods.as_ref().is_some_and(|pods| pods::matches_plain(service.at("/spec/selector"), pods))
    }
}

/// All of them, as far as the set could be read.
pub(in crate::manifest) fn copies(case: &Case<'_>) -> Copies {
    let service = case.service().and_then(|(_, name)| case.item(Kind::Service, &name));
    let (Some(target), Some(service)) = (case.target(), service) else { return Copies::default() };
    let (mut copied, pods) = match case.spec.target.kind {
        TargetKind::Deployment => (pods::copied(case, target, service), pods::of_candidate(case, target)),
        TargetKind::Service => {
            (std::iter::once(target).chain(pods::ingress(case)).map(|item| (item, SUFFIX)).collect(), None)
        }
        TargetKind::StatefulSet | TargetKind::DaemonSet | TargetKind::NodeConfig | TargetKind::None => {
            return Copies::default();
        }
    };
    if let Some(Router::Istio { service, .. }) = case.router() {
        let about = case.of_kind(Kind::DestinationRule);
        let about =
            about.filter(|rule| virtual_service::is(case, &rule.object.value()["spec"]["host"], service.as_str()));
        copied.extend(about.map(|rule| (rule, SUFFIX)));
    }
    let named = copied.into_iter().filter_map(|(item, suffix)| {
        let of = item.object.reference();
        Some((ObjectRef { name: format!("{}{suffix}", of.name).parse().ok()?, ..of.clone() }, of.clone()))
    });
    Copies { names: named.collect(), pods }
}
