//! What every part of the planner looks at: one rollout in one cluster, at one moment.

use super::action::{Action, Class, Verb};
use super::input::Input;
use crate::manifest::desired::{Plan, Router, Set};
use crate::manifest::ids::{ClusterName, Namespace, ObjectName, RunId, SetId};
use crate::manifest::object::{Kind, OWNER, Object, ObjectRef, RETREATED, ROLE, SEQ};
use crate::record::posture::{Directly, Naming, Posture, PostureDigest, Split, Units};
use crate::record::state::{Deletions, Owned, RoleName, Time};
use crate::workload::compare;
use crate::workload::inplace::InPlaceFacts;
use crate::workload::layouts;
use crate::workload::live::{Expects, LiveState};
use crate::workload::owned;
use crate::workload::routers::{self, RouteView};
use crate::workload::tree::Tree;
use std::sync::Arc;

/// One rollout in one cluster, with the plan that is in force.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// Everything observed.
    pub input: &'a Input,
    /// How the run (or, at rest, main) wants it to go.
    pub plan: &'a Plan,
    /// What is there.
    pub live: &'a LiveState,
    /// Which cluster.
    pub cluster: &'a ClusterName,
    /// What the objects of both roles are called.
    pub naming: &'a Naming,
    /// The open run.
    pub run: Option<&'a RunId>,
    /// The set that was stable when the run started.
    pub base: &'a SetId,
    /// What main has changed directly of that set since.
    pub directly: &'a Directly,
    /// The pods that stable keeps in the run: what it had at the first step, or has since when more of the traffic leaves it.
    pub baseline: u32,
    /// Whether the run's promote may have overwritten stable.
    pub stable: Stable,
    /// Our field manager.
    pub manager: &'a str,
    /// Our owner mark.
    pub owner: &'a str,
    /// The sequence number of the record that writes rely on.
    pub seq: u64,
    /// The sequence number of the record that was read: retreats rely on it alone, as they do not wait for the next one.
    pub read: u64,
    /// The mark that this run's objects carry while it goes back.
    pub mark: Option<&'a str>,
    /// Objects have to be written under a record at least this new.
    pub fence: Option<u64>,
    /// Evidence from before then is about something else: when the run, or first sight, began.
    pub since: Time,
    /// What the record says is ours.
    pub inventory: &'a [Owned],
    /// Which units of a workload that both roles share it lets in.
    pub units: &'a Units,
    /// What it says of deletions that are more than the policy lets go at once.
    pub deletions: &'a Deletions,
    /// The version that is to become stable, else the one that is.
    pub version: Option<&'a SetId>,
}

/// What a run has done to the stable objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stable {
    /// Nothing: they are as they were when it started.
    Untouched,
    /// Its promote is recorded: they may be of the new version.
    Overwritten,
}

impl<'a> Context<'a> {
    /// What splits requests.
    #[must_use]
    pub fn router(&self) -> Option<&'a Router> {
        self.plan.traffic.as_ref().map(|traffic| &traffic.router)
    }

    /// What is known of the proxy that it shares with others, where that is looked at.
    #[must_use]
    pub fn tree(&self) -> Option<&'a Tree> {
        self.router().and_then(|router| self.input.trees.behind(router))
    }

    /// Where the objects live.
    #[must_use]
    pub fn namespace(&self) -> &'a Namespace {
        &self.input.id.namespace
    }

    /// Names an object of the rollout's namespace.
    #[must_use]
    pub fn object(&self, kind: Kind, name: &ObjectName) -> ObjectRef {
        ObjectRef { kind, namespace: self.namespace().clone(), name: name.clone() }
    }

    /// The target of a role.
    #[must_use]
    pub fn workload(&self, role: RoleName) -> ObjectRef {
        self.object(self.plan.target.kind.kind(), &self.naming.workload(role, &self.plan.target.name))
    }

    /// Where the traffic room looks.
    #[must_use]
    pub fn view(&self) -> RouteView<'a> {
        RouteView {
            live: self.live,
            namespace: self.namespace(),
            target: &self.plan.target.name,
            baseline: self.baseline,
            naming: self.naming,
        }
    }

    /// The pinned set of that id.
    #[must_use]
    pub fn set(&self, id: &SetId) -> Option<&'a Arc<Set>> {
        self.input.sets.get(id)
    }

    /// Whether a live split is all that a posture asks for: by pods a weight is only met from below.
    #[must_use]
    pub fn reached(&self, live: &Split, posture: &Posture) -> bool {
        let split = &posture.split;
        let wanted = self.router().map(|router| routers::reachable(router, &self.view(), split));
        live.same(wanted.as_ref().unwrap_or(split))
    }

    /// What a rendering needs.
    #[must_use]
    pub fn facts(&self) -> InPlaceFacts<'a> {
        InPlaceFacts {
            plan: self.plan,
            base: self.base,
            directly: self.directly,
            sets: &self.input.sets,
            live: self.live,
            baseline: self.baseline,
            namespace: self.namespace(),
            manager: self.manager,
        }
    }

    /// Whether a live object is this rollout's.
    #[must_use]
    pub fn is_ours(&self, live: &Object) -> bool {
        live.annotation(OWNER) == Some(self.owner)
    }

    /// Whether the record lists that live object as ours.
    #[must_use]
    pub fn lists(&self, live: &Object) -> bool {
        self.inventory.iter().any(|owned| owned.is(live))
    }

    /// Whether an object of that name is a copy that we make, and none that people wrote.
    #[must_use]
    pub fn copies(&self, reference: &ObjectRef) -> bool {
        let mut sets = self.input.sets.values();
        sets.clone().any(|set| layouts::copies(set, reference)) && !sets.any(|set| set.objects.contains_key(reference))
    }

    /// Whether one of the pinned sets gives something that name.
    #[must_use]
    pub fn makes(&self, reference: &ObjectRef) -> bool {
        self.input.sets.values().any(|set| layouts::makes(set, reference))
    }

    /// A rendered object with all our marks.
    #[must_use]
    pub fn marked(&self, object: &Object, role: RoleName) -> Object {
        let mut object = compare::marked(object.clone(), self.owner, self.seq, self.input.me.epoch);
        object.annotate(ROLE, if role == RoleName::Stable { "stable" } else { "candidate" });
        if let Some(mark) = self.mark {
            object.annotate(RETREATED, mark);
        }
        object
    }

    /// An action on this rollout in this cluster.
    #[must_use]
    pub fn action(&self, class: Class, posture: Option<PostureDigest>, verb: Verb, why: impl Into<String>) -> Action {
        Action {
            class,
            rollout: self.input.id.clone(),
            cluster: self.cluster.clone(),
            cluster_uid: self.live.cluster_uid.clone(),
            posture,
            verb,
            why: why.into(),
        }
    }
}

/// What a write expects to find where `live` was read. Upkeep too writes whole objects, and with them a version: a paused
/// leader's must not undo what was written since.
#[must_use]
pub fn exactly(live: Option<&Object>) -> Expects {
    let Some(live) = live else { return Expects::Absent };
    let text = |value: Option<&str>| value.unwrap_or_default().to_owned();
    Expects::Version { uid: text(live.uid()), resource_version: text(live.resource_version()) }
}

/// The sequence number that our last write of a live object relied on; 0 where somebody else has written that mark since.
#[must_use]
pub fn seq_of(live: &Object, manager: &str) -> u64 {
    let ours = owned::annotators(live, SEQ).contains(&manager);
    live.annotation(SEQ).filter(|_| ours).and_then(|text| text.parse().ok()).unwrap_or(0)
}
