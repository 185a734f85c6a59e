//! What of a world people meet, and that it is never ahead of the record.

use super::super::input::Desired;
use super::behaviour::Pods;
use super::manifests::id;
use super::world::World;
use crate::manifest::ids::{Percent, SetId};
use crate::manifest::object::Kind;
use crate::record::posture::{Naming, Split};
use crate::record::state::RoleName;
use crate::workload::kinds::service;
use crate::workload::routers::{self, ObservedSplit, RouteView};
use std::sync::Arc;

impl World {
    pub(super) fn weight(&self) -> u8 {
        self.split().weight.get()
    }

    /// What of the users' requests reaches the candidate.
    pub(super) fn split(&self) -> Split {
        let wanted = || match &self.desired {
            Desired::Wanted(r) => Some(Arc::new(r.plan.clone())),
            Desired::Lacking(..) | Desired::Rejected(_) | Desired::Gone | Desired::Unreadable(_) => None,
        };
        let Some(plan) = self.plan.clone().or_else(wanted) else { return Split::stable() };
        let Some(traffic) = &plan.traffic else { return Split::stable() };
        let naming = self.naming();
        let baseline =
            self.record.as_ref().and_then(|r| r.run.as_ref()).and_then(|r| r.baseline.values().next().copied());
        let view = RouteView {
            live: &self.live,
            namespace: &id().namespace,
            target: &plan.target.name,
            baseline: baseline.unwrap_or(4),
            naming: &naming,
        };
        match routers::read(&traffic.router, &view) {
            ObservedSplit::Split(split) => split,
            // The new version's own route names nobody else.
            ObservedSplit::Foreign(_) if naming.services().is_some() => {
                Split { weight: Percent::ALL, ..Split::stable() }
            }
            ObservedSplit::Foreign(why) => panic!("{why}: {:?}", self.log),
        }
    }

    pub(super) fn image_of(&self, set: &SetId) -> Option<&str> {
        let mut objects = self.sets.get(set)?.objects.values();
        objects
            .find(|object| object.reference().kind == Kind::Deployment)?
            .text("/spec/template/spec/containers/0/image")
    }

    /// What the Deployment of a role is called.
    pub(super) fn workload(&self, role: RoleName) -> String {
        self.naming().workload(role, &"podinfo".parse().expect("a name")).to_string()
    }

    pub(super) fn naming(&self) -> Naming {
        let recorded = self.record.as_ref().and_then(|r| r.clusters.values().next()).map(|c| c.posture.naming.clone());
        let wanted = || match &self.desired {
            Desired::Wanted(rollout) => Naming::of(&rollout.plan),
            Desired::Lacking(..) | Desired::Rejected(_) | Desired::Gone | Desired::Unreadable(_) => Naming::InPlace,
        };
        recorded.unwrap_or_else(wanted)
    }

    /// Live is never ahead of the record, and users are served.
    pub(super) fn check_promise(&mut self) {
        let split = self.split();
        if self.weights.last() != Some(&split.weight.get()) {
            self.weights.push(split.weight.get());
        }
        let posture = self.record.as_ref().and_then(|r| r.clusters.values().next()).map(|c| c.posture.clone());
        let promoted = self.record.as_ref().is_some_and(|r| r.promoted.is_some());
        if let Some(posture) = &posture {
            // From *promote* on the candidate is of the version that may be stable.
            let candidate = self.image(&self.workload(RoleName::Candidate));
            let same = match &posture.candidate {
                Some(role) if candidate.is_none() => role.set == posture.stable.set,
                _ => candidate == self.image_of(&posture.stable.set),
            };
            assert!(same || split.within(&posture.split), "live {split:?} above {:?}: {:#?}", posture.split, self.log);
            // What is stable may be behind the record, never ahead.
            let run = self.record.as_ref().and_then(|r| r.run.as_ref()).map(|r| &r.from);
            let allowed: Vec<_> =
                [Some(&posture.stable.set), run].into_iter().flatten().map(|s| self.image_of(s)).collect();
            let behind =
                self.behind("podinfo").filter(|_| posture.naming != Naming::InPlace && !self.switches(posture));
            let behind = behind.map(|d| d.text("/spec/template/spec/containers/0/image"));
            for stable in behind.chain([self.image(&self.workload(RoleName::Stable))]) {
                assert!(
                    stable.is_none() || !promoted || allowed.contains(&stable),
                    "stable is {stable:?}, not of {allowed:?}: {:#?}",
                    self.log
                );
            }
        }
        if promoted && !self.only_stable_stuck && self.behaviour.values().all(|pods| *pods == Pods::Ready) {
            // Pods of a real Deployment roll; here they turn all at once.
            let alias = self.get(Kind::Service, "podinfo").is_some_and(service::is_alias);
            let naming = self.naming();
            let service = naming.services().map_or("podinfo", |services| services.stable.as_str());
            assert!(split.weight.get() == 100 || alias || self.ready_behind(service) > 0, "C-1: {:#?}", self.log);
        }
    }
}
