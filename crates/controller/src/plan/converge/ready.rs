//! What has to be ready before anybody is led to it.

use super::{Pass, StableFirst};
use crate::manifest::desired::TargetKind;
use crate::manifest::object::{Kind, Object, ObjectRef};
use crate::plan::exposure;
use crate::plan::report::{Reason, Wait};
use crate::record::posture::Naming;
use crate::record::state::RoleName;
use crate::rules::{Rule, holds};
use crate::workload::inplace;
use crate::workload::kinds::{daemon, shared};
use crate::workload::readiness::{self, Available, Readiness};

impl Pass<'_> {
    /// Each role that is to be met has its size in ready endpoints. In *return* stable serves the same version: a candidate
    /// that fails there must not keep the traffic, nor the run from its end.
    pub(super) fn await_ready(&mut self, stable_first: StableFirst) -> bool {
        if !holds(Rule::Ready) {
            return false;
        }
        if stable_first == StableFirst::Yes {
            let stable = self.context.workload(RoleName::Stable);
            self.require_ready(&stable, RoleName::Stable);
        }
        // Of a DaemonSet no pod is the candidate's yet, and stable's may be on nodes that are down.
        let daemon = self.context.plan.target.kind == TargetKind::DaemonSet;
        let given_back = self.posture.split.is_stable() && (self.hands_back() || daemon);
        if self.posture.candidate.is_some() && !given_back {
            let candidate = self.context.workload(RoleName::Candidate);
            self.require_ready(&candidate, RoleName::Candidate);
            self.require_endpoints(&candidate);
        }
        self.out.not_ready.is_some() || !self.out.waits.is_empty()
    }

    fn require_ready(&mut self, reference: &ObjectRef, role: RoleName) {
        let Some(live) = self.context.live.get(reference) else { return };
        let readiness = readiness::readiness(live, self.context.live);
        if let Readiness::NotReady { why, available } = &readiness {
            let reason = if role == RoleName::Stable { Reason::StableNotReady } else { Reason::CandidateNotReady };
            let wait = Wait::new(reason, format!("{}: {why}", reference.name));
            let since = if let Available::NotSince(since) = available { Some(*since) } else { None };
            self.out.waits.push(Wait { since, ..wait });
            self.out.not_ready.get_or_insert((role, readiness));
        }
    }

    fn require_endpoints(&mut self, candidate: &ObjectRef) {
        if self.nodes.is_some() {
            return;
        }
        if self.posture.naming == Naming::Shared {
            let (live, split) = (self.context.live.get(candidate), &self.posture.split);
            let pods = live.map_or(0, shared::size);
            let moved = |set: &&Object| set.reference().kind == Kind::DaemonSet && !self.hands_back();
            let missing = live.filter(moved).map_or(0, |set| daemon::missing(set, self.context.live, split));
            if !split.is_stable() && shared::ceiling(pods, split) == 0 {
                let why = format!("{} percent of {pods} pods is less than one pod", split.weight);
                self.out.waits.push(Wait::new(Reason::CandidateNotReady, why));
            } else if missing > 0 && self.out.waits.is_empty() {
                let why = format!("{missing} pods have still to become new");
                self.out.waits.push(Wait::new(Reason::CandidateNotReady, why));
            }
            return;
        }
        let weight = self.posture.split.weight;
        if exposure::is_starved(self.context, weight) {
            let few = self.context.baseline;
            let why = format!("{weight} percent beside {few} ready pods of stable is less than one pod");
            self.out.waits.push(Wait::new(Reason::CandidateNotReady, why));
            return;
        }
        let wanted = inplace::wanted_pods(self.rendered, candidate);
        let ready = i64::from(exposure::ready(self.context).candidate);
        if self.out.not_ready.is_none() && ready < wanted {
            let why = format!("{ready} of {wanted} endpoints of the candidate are ready");
            self.out.waits.push(Wait::new(Reason::CandidateNotReady, why.clone()));
            let available = self.context.live.get(candidate).map_or(Available::Perhaps(None), readiness::available);
            let readiness = Readiness::NotReady { why, available };
            self.out.not_ready = Some((RoleName::Candidate, readiness));
        }
    }
}
