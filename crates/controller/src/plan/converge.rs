//! From a recorded posture to what is due now, in the order of design §5: lower the split → copies and Services → sizes
//! up → (enough ready endpoints) raise the split → deletes, referrers first. So the record may be ahead of live, never
//! behind.

use super::action::{Action, Class, GoesBy, Verb};
use super::context::Context;
use super::deletions::{Removed, Sorted};
use super::draft::Manner;
use super::exposure;
use super::introduce;
use super::nodes;
use super::report::{Reason, Wait};
use super::versions;
use crate::manifest::desired::By;
use crate::manifest::object::{DOMAIN, Kind, Object, ObjectRef};
use crate::manifest::scaler;
use crate::record::posture::{Naming, Posture};
use crate::record::state::RoleName;
use crate::rules::{Rule, holds};
use crate::workload::inplace::{self, RenderError, Rendered};
use crate::workload::kinds::nodes::{self as nodes_of, Nodes};
use crate::workload::kinds::{shared, stateful};
use crate::workload::live::{Expects, LiveState};
use crate::workload::overlap::{self, Overlap};
use crate::workload::readiness::Readiness;
use crate::workload::{compare, tracked};
use std::collections::{BTreeMap, BTreeSet};

mod drain;
mod ready;
mod route;
mod secrets;
mod write;

pub use route::not_in_force;
pub use write::failure;

/// How a hand's changes to fields that are ours are met (requirement X-16).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drift {
    /// Put back: no run is open.
    Restore,
    /// Shown.
    Report,
}

/// Whether stable has to be ready before what people meet is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StableFirst {
    /// Its pods change, or its share rises.
    Yes,
    /// It stays as it is.
    No,
}

/// What becomes of what is ours and the posture has no place for, once its routes are in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spare {
    /// It goes.
    Goes,
    /// It stays for those whose requests it answers still.
    Stays,
}

/// How far live is from the posture.
#[derive(Debug, Default)]
pub struct Converged {
    /// What is due now.
    pub actions: Vec<Action>,
    /// What it waits on.
    pub waits: Vec<Wait>,
    /// What a hand changed, which is put back when no run is open, and what else people should know: shown, nothing waits for it.
    pub drifted: Vec<Wait>,
    /// Whether live is all that the posture asks for.
    pub reached: bool,
    /// Evidence against the revision: a write or the route was refused.
    pub refused: Option<String>,
    /// What keeps the route from being in force and says nothing of the revision.
    pub barred: Option<String>,
    /// Which workload is not ready, if one has to be.
    pub not_ready: Option<(RoleName, Readiness)>,
    /// Objects to delete that the record does not list yet: it has to be written first.
    pub unlisted: bool,
    /// What is to go of what people wrote, at rest.
    pub removed: Removed,
}

/// What is due on the way to `posture`.
///
/// # Errors
/// When the posture cannot be rendered.
pub fn converge(context: &Context<'_>, posture: &Posture, how: Manner<'_>) -> Result<Converged, RenderError> {
    // The other two are the context's.
    let Manner { drift, stable_first, spare, mark: _, fence: _ } = how;
    let rendered = inplace::render(posture, &context.facts())?;
    let nodes = nodes::of_posture(context, posture);
    let mut pass = Pass { context, posture, drift, rendered: &rendered, nodes, found: None, out: Converged::default() };
    if drift == Drift::Restore {
        let found = pass.surplus();
        pass.out.removed =
            Removed { left: Some(of_people(context, &found.all)), free: of_people(context, &found.free) };
        pass.found = Some(found);
    }
    if !holds(Rule::RetireLast) && (pass.rest() || pass.delete()) {
        return Ok(pass.out);
    }
    pass.lost();
    if pass.lower() || pass.blocked() || pass.copy_secrets() || pass.build() || pass.replace() {
        return Ok(pass.out);
    }
    if pass.await_ready(stable_first) || pass.front() {
        return Ok(pass.out);
    }
    if pass.await_route() || spare == Spare::Stays || pass.rest() || pass.delete() {
        return Ok(pass.out);
    }
    pass.out.reached = true;
    Ok(pass.out)
}

/// What is made before stable and the candidate are ready, after kinds that are known by their names alone: pods may read what those make.
const BUILT: [Kind; 8] = [
    Kind::ConfigMap,
    Kind::ServiceAccount,
    Kind::NetworkPolicy,
    Kind::Service,
    Kind::DestinationRule,
    Kind::Deployment,
    Kind::StatefulSet,
    Kind::DaemonSet,
];

/// What people meet of stable, beside routes.
const FRONT: [Kind; 2] = [Kind::Service, Kind::DestinationRule];

/// One pass over the stages; each says whether the next has to wait.
struct Pass<'a> {
    context: &'a Context<'a>,
    posture: &'a Posture,
    drift: Drift,
    rendered: &'a BTreeMap<ObjectRef, Rendered>,
    /// The nodes between the posture's versions, where they are what is rolled out.
    nodes: Option<Nodes<'a>>,
    /// What is surplus, where it was looked for.
    found: Option<Surplus<'a>>,
    out: Converged,
}

/// What has our marks and is no longer rendered.
struct Surplus<'a> {
    /// All of it that is ours.
    all: Vec<&'a Object>,
    /// What of that nothing leads to any more.
    free: Vec<&'a Object>,
    /// What we did not make.
    copied: Vec<&'a Object>,
}

impl<'a> Pass<'a> {
    /// Objects that are somebody else's, and kinds that the cluster lacks: nothing is written.
    fn blocked(&mut self) -> bool {
        for reference in self.rendered.keys() {
            if self.context.live.missing.contains(&reference.kind) {
                let why = LiveState::unserved(reference.kind);
                self.out.waits.push(Wait::new(Reason::CrdMissing, why));
            }
            if let Some(live) = self.context.live.get(reference) {
                self.out.waits.extend(super::adopt::claimed_by_others(self.context, live));
            }
        }
        self.out.waits.extend(self.rendered.iter().filter_map(|(reference, rendered)| {
            let live = self.context.live.get(reference)?;
            let begins = reference.kind == Kind::StatefulSet && shared::role(live) != rendered.role;
            let begins = begins && rendered.role == RoleName::Candidate;
            Some(Wait::new(Reason::StableNotReady, stateful::between_revisions(live).filter(|_| begins)?))
        }));
        // From *promote* on both roles are the new version, where it has names of its own.
        let of_one_version = self.hands_back() && versions::stable(&self.posture.naming).is_some();
        if self.posture.candidate.is_some() && !of_one_version {
            let objects = self.rendered.iter().filter(|(_, r)| r.role == RoleName::Candidate);
            let objects = objects.map(|(k, r)| (k.clone(), r.object.clone())).collect();
            let Overlapping { barring, told } = overlapping(self.context, &objects);
            self.out.waits.extend(barring);
            self.out.drifted.extend(told);
        }
        self.await_tree();
        !self.out.waits.is_empty()
    }

    /// Copies of tracked objects that nobody can make again.
    fn lost(&mut self) {
        let Naming::Primary(_) = self.posture.naming else { return };
        let roles = std::iter::once(&self.posture.stable).chain(&self.posture.candidate);
        let sets: BTreeSet<_> = roles.map(|role| &role.set).collect();
        for set in sets.into_iter().filter_map(|id| self.context.set(id)) {
            let lost = tracked::lost(set, self.context.live, self.context.namespace());
            self.out.drifted.extend(lost.into_iter().map(|what| {
                let why = format!(
                    "{what}, is gone, and that has changed since: pods that refer to the copy cannot start anew"
                );
                Wait::new(Reason::ReferenceMissing, why)
                    .act("put the data back where it was changed, or push the next version")
            }));
        }
    }

    /// A hand raised the exposure: it is lowered to the record. Not in *return*, where the share goes to the same version.
    fn lower(&mut self) -> bool {
        if let Some(nodes) = &self.nodes {
            let over = nodes.carriers().count().saturating_sub(wide(nodes.most(&self.posture.split)));
            let back = nodes.due_back().into_iter().filter(|(unit, _)| nodes::is_ours(self.context, unit)).take(over);
            let how = (Class::Retreat, self.posture);
            self.out.actions.extend(back.map(|going| nodes::told(self.context, nodes, going, how)));
            return !self.out.actions.is_empty();
        }
        let handing_back = self.hands_back();
        let within = exposure::is_within(self.context, &self.posture.split);
        if handing_back || within || self.drift == Drift::Restore {
            return false;
        }
        // The posture may be that of a step which no record allows yet, and this waits for none: it is written only where it exposes
        // no more than live does. Of what cannot be read nobody knows how much that is.
        let lowers = exposure::lowers(self.context, &self.posture.split);
        for route in exposure::routes(self.context) {
            let Some(rendered) = self.rendered.get(&route) else { continue };
            if let Some(live) = self.context.live.get(&route) {
                let claimed = super::adopt::claimed_by_others(self.context, live).is_some();
                if claimed
                    || compare::differs(&rendered.object, live).is_empty()
                    || !shared::lowers(&rendered.object, rendered.role, live)
                {
                    continue;
                }
                if lowers {
                    self.apply(&route, Class::Retreat, "exposure back to the record");
                } else {
                    self.bring_down(live);
                }
            }
        }
        let displaced = exposure::due(self.context, RoleName::Stable, &self.posture.split);
        self.out.actions.extend(displaced.into_iter().map(|pod| exposure::replaced(self.context, pod)));
        !self.out.actions.is_empty()
    }

    /// Whether both roles are the new version.
    fn hands_back(&self) -> bool {
        self.posture.candidate.as_ref().is_some_and(|candidate| candidate.set == self.posture.stable.set)
    }

    /// Copies, Services of the candidate, workloads at their sizes.
    fn build(&mut self) -> bool {
        let (posture, stable) = (self.posture, self.context.workload(RoleName::Stable));
        let governing = self.governing();
        // The copy of people's Service comes before anything leads there (requirement C-1).
        let copy = self.context.naming.stable_service().map(|copy| self.context.object(Kind::Service, &copy));
        let copy = copy.filter(|copy| self.context.live.get(copy).is_none());
        let lost = self.lost_service();
        let others: BTreeSet<Kind> =
            self.rendered.keys().map(|name| name.kind).filter(|kind| kind.is_other()).collect();
        for kind in others.into_iter().chain(BUILT) {
            // The target itself is what has to become ready, a Service too: nobody is led there by then.
            let first = |reference: &ObjectRef| {
                *reference == stable
                    || governing.contains(reference)
                    || [&copy, &lost].into_iter().flatten().any(|service| service == reference)
            };
            self.write_kind(kind, |rendered| match rendered.role {
                RoleName::Candidate => !rests(posture, rendered),
                RoleName::Stable => !FRONT.contains(&kind) || first(rendered.object.reference()),
            });
        }
        for kind in scaler::KINDS {
            self.write_kind(kind, |rendered| !rests(posture, rendered));
        }
        self.write_kind(Kind::PodDisruptionBudget, |_| true);
        self.busy()
    }

    /// The Service that a route splits, where somebody deleted it in the middle of a run: a proxy may give its share to the candidate.
    fn lost_service(&self) -> Option<ObjectRef> {
        let router = self.context.router().filter(|router| router.by() == By::Route)?;
        let services = self.posture.naming.services().map(|services| services.stable);
        let service = self.context.object(Kind::Service, services.or(router.service())?);
        (self.posture.candidate.is_some() && self.context.live.get(&service).is_none()).then_some(service)
    }

    /// The next nodes are told about the version that they shall have.
    fn tell_nodes(&mut self) -> bool {
        let Some(nodes) = &self.nodes else { return self.busy() };
        let context = self.context;
        self.out.waits.extend(nodes::barred(context, nodes));
        let conflicts = nodes.conflicts.iter().take(3);
        self.out.drifted.extend(conflicts.map(|why| Wait::new(Reason::LayerConflict, why.clone())));
        let stuck = nodes.units().iter().filter(|unit| unit.is_failed() && !unit.is_new()).take(3);
        self.out.drifted.extend(stuck.map(|unit| Wait::new(Reason::NodeQuarantined, unit.said())));
        let brings_up = self.posture.candidate.is_none() && context.run.is_none() && self.drift == Drift::Report;
        self.out.refused = nodes.failed_at_first().filter(|_| brings_up);
        if self.out.waits.is_empty() && self.out.refused.is_none() {
            let class = if self.drift == Drift::Restore { Class::Upkeep } else { Class::Advance };
            let due = nodes.due(&self.posture.split).into_iter();
            self.out.actions.extend(due.map(|going| nodes::told(context, nodes, going, (class, self.posture))));
        }
        let awaits = brings_up || self.posture.candidate.is_some();
        if awaits
            && self.drift == Drift::Report
            && self.out.actions.is_empty()
            && !nodes.is_settled(&self.posture.split)
        {
            let is_held = nodes.is_held() || nodes.silent_zone().is_some();
            let reason = if is_held { Reason::TooManyStalled } else { Reason::CandidateNotReady };
            self.out.waits.push(Wait::new(reason, nodes.waits(&self.posture.split)));
        }
        self.busy()
    }

    /// The next pods become new where the controller of a workload that both roles share replaces none by itself.
    fn replace(&mut self) -> bool {
        if self.nodes.is_some() {
            return self.tell_nodes();
        }
        let shared = self.posture.naming == Naming::Shared && self.posture.candidate.is_some();
        let Some(set) = exposure::shared_set(self.context).filter(|_| shared) else { return self.busy() };
        for pod in exposure::due(self.context, RoleName::Candidate, &self.posture.split) {
            let why = shared::made_anew(set, pod, "the candidate's");
            let (posture, verb) = (Some(self.posture.digest()), exposure::taken_away(pod));
            self.out.actions.push(self.context.action(Class::Advance, posture, verb, why));
        }
        self.busy()
    }

    /// The Services by which the pods of StatefulSets find each other: they may need that to become ready.
    fn governing(&self) -> BTreeSet<ObjectRef> {
        let sets = self.rendered.values().filter(|rendered| rendered.object.reference().kind == Kind::StatefulSet);
        let names = sets.filter_map(|set| set.object.text("/spec/serviceName")?.parse().ok());
        names.map(|name| self.context.object(Kind::Service, &name)).collect()
    }

    /// What people meet: stable's Services and how a mesh leads to them, then routes.
    fn front(&mut self) -> bool {
        for kind in FRONT {
            self.write_kind(kind, |rendered| rendered.role == RoleName::Stable);
        }
        self.out.waits.extend(introduce::pending(self.context));
        if self.busy() {
            return true;
        }
        for &kind in Kind::ROUTES {
            self.write_kind(kind, |_| true);
        }
        self.busy()
    }

    /// What the candidate keeps without a run loses its pods, and with them what they read; so may a copy that goes for good.
    fn rest(&mut self) -> bool {
        let (context, posture) = (self.context, self.posture);
        let pods = |workload: &Object| workload.int("/spec/replicas") != Some(0);
        let left = context.live.get(&context.workload(RoleName::Candidate)).is_some_and(pods);
        if posture.candidate.is_none()
            && left
            && let Some(wait) = drain::pending(context)
        {
            self.out.waits.push(wait);
            return true;
        }
        for kind in scaler::KINDS.into_iter().chain([Kind::Deployment, Kind::ConfigMap]) {
            self.write_kind(kind, |rendered| rests(posture, rendered));
            if self.busy() {
                return true;
            }
        }
        false
    }

    fn surplus(&self) -> Surplus<'a> {
        let context = self.context;
        let ours = context.live.objects.owned_by(context.owner);
        let marked = ours.filter(|o| o.reference().kind.is_of_sets());
        let marked = marked.filter(|o| !self.rendered.contains_key(o.reference()));
        let marked = marked.filter(|o| !versions::is_kept(context, o.reference()));
        // What nodes have, or go back to, stays (requirement N-26).
        let told = self.nodes.as_ref().map(|_| nodes_of::in_use(context.live, context.namespace())).unwrap_or_default();
        let stay =
            self.nodes.as_ref().is_some_and(|nodes| self.posture.candidate.is_some() || !nodes.are_all_confirmed());
        let is_told = |o: &Object| stay || told.contains(o.reference().name.as_str());
        let marked = marked.filter(|o| o.reference().kind != Kind::ConfigMap || !is_told(o));
        let (all, copied): (Vec<&'a Object>, Vec<&'a Object>) =
            marked.partition(|live| context.lists(live) || context.makes(live.reference()));
        let in_use = versions::in_use(context, &all);
        let free = all.iter().copied().filter(|object| !in_use.contains(object.reference())).collect();
        Surplus { all, free, copied }
    }

    /// Removes what is ours and no longer rendered: referrers before referents.
    fn delete(&mut self) -> bool {
        let context = self.context;
        let Surplus { all: _, free: mut surplus, copied } = self.found.take().unwrap_or_else(|| self.surplus());
        for live in copied {
            let why = format!(
                "{} carries our marks, but we did not make it; remove its annotations {DOMAIN}/*",
                live.reference()
            );
            self.out.drifted.push(Wait::new(Reason::Drifted, why));
        }
        let sorted = Sorted::of(context.input, context.deletions, context.version, of_people(context, &surplus));
        self.out.waits.extend(sorted.wait(""));
        surplus.retain(|object| !sorted.stays(object.reference()));
        if surplus.is_empty() {
            return false;
        }
        // What leads nobody anywhere holds nothing up while a finalizer keeps it.
        let is_ending = |object: &Object| object.at("/metadata/deletionTimestamp").is_some();
        let in_order = surplus.iter().map(|object| (object.reference().kind, is_ending(object)));
        let last = in_order.filter(|(kind, ending)| !(kind.is_other() && *ending)).map(|(kind, _)| kind);
        let last = last.max_by_key(|kind| order_of(*kind));
        for live in surplus.into_iter().filter(|o| Some(o.reference().kind) == last && !is_ending(o)) {
            if !context.lists(live) {
                self.out.unlisted = true;
                continue;
            }
            let expects = Expects::Uid(live.uid().unwrap_or_default().to_owned());
            let by = if sorted.goes_by_word(live.reference()) { GoesBy::Word } else { GoesBy::Policy };
            let verb = Verb::Delete { target: live.reference().clone(), expects, by };
            let posture = Some(self.posture.digest());
            self.out.actions.push(context.action(
                Class::Advance,
                posture,
                verb,
                format!("delete {}", live.reference()),
            ));
        }
        self.out.waits.push(Wait::new(Reason::Writing, "objects of the candidate are being removed"));
        true
    }

    fn busy(&mut self) -> bool {
        if self.out.actions.is_empty() && self.out.waits.is_empty() {
            return false;
        }
        if self.out.waits.is_empty() {
            self.out.waits.push(Wait::new(Reason::Writing, "objects are being written"));
        }
        true
    }
}

/// What a run has made is its own to take away.
fn is_own(context: &Context<'_>, live: &Object) -> bool {
    context.copies(live.reference()) || context.naming.services().is_some() && shared::role(live) == RoleName::Candidate
}

/// What of these objects people wrote.
fn of_people(context: &Context<'_>, surplus: &[&Object]) -> BTreeSet<ObjectRef> {
    surplus.iter().filter(|live| !is_own(context, live)).map(|live| live.reference().clone()).collect()
}

/// Whether an object is one that the candidate keeps while no run is open. Its Service exposes nothing, and comes first.
fn rests(posture: &Posture, rendered: &Rendered) -> bool {
    let lasting = rendered.object.reference().kind != Kind::Service;
    rendered.role == RoleName::Candidate && posture.candidate.is_none() && lasting
}

/// What other selectors in the namespace mean for the candidate's pods.
pub struct Overlapping {
    /// No candidate may be made beside them.
    pub barring: Vec<Wait>,
    /// People should know of them.
    pub told: Vec<Wait>,
}

/// What else in the namespace selects the pods of these objects of the candidate, or selects stable's and not these.
pub fn overlapping(context: &Context<'_>, objects: &BTreeMap<ObjectRef, Object>) -> Overlapping {
    let Context { live, plan, naming, .. } = *context;
    let (mut barring, mut told) = (Vec::new(), Vec::new());
    for found in overlap::overlap(live, objects, plan, naming, context.namespace()) {
        match found {
            Overlap::Selects(by) => {
                let why = format!("{by} also selects the candidate's pods; make its selector narrower");
                barring.push(Wait::new(Reason::SelectorOverlap, why));
            }
            Overlap::Uncovered(by) => {
                let why = format!("{by} covers stable's pods and not the candidate's, which have other labels");
                told.push(Wait::new(Reason::NotCovered, why));
            }
        }
    }
    Overlapping { barring, told }
}

fn wide(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

fn order_of(kind: Kind) -> usize {
    Kind::MANIFEST.iter().position(|k| *k == kind).unwrap_or(0)
}
