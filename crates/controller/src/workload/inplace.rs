//! From a posture to the objects that shall be there (design §7).

use super::direct;
use super::kinds::daemon;
use super::kinds::nodes::{NodeVersions, Nodes, Sight};
use super::kinds::stateful;
use super::layouts::{self, Arranged, LayoutError};
use super::live::LiveState;
use super::tracked;
use crate::manifest::desired::{By, Plan, Set, TargetKind};
use crate::manifest::duration::Span;
use crate::manifest::ids::{Namespace, ObjectName, Percent, SetId};
use crate::manifest::object::{Kind, Object, ObjectRef, at};
use crate::manifest::scaler;
use crate::record::posture::{Directly, Naming, Posture, Role, Size};
use crate::record::state::RoleName;
use crate::workload::routers::{self, Form, gateway_api, replicas};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a rendering needs beside the posture.
#[derive(Debug, Clone, Copy)]
pub struct InPlaceFacts<'a> {
    /// How the run goes.
    pub plan: &'a Plan,
    /// The set that was stable when the run started: the candidate's copies are those that differ from it.
    pub base: &'a SetId,
    /// What main has changed directly of that set since.
    pub directly: &'a Directly,
    /// The sets that the posture names.
    pub sets: &'a BTreeMap<SetId, Arc<Set>>,
    /// What is there.
    pub live: &'a LiveState,
    /// The pods that stable keeps in the run: what it had at the first step, or has since when more of the traffic leaves it.
    pub baseline: u32,
    /// Where the objects live.
    pub namespace: &'a Namespace,
    /// Our field manager.
    pub manager: &'a str,
}

/// An object that shall be there, our marks left out.
#[derive(Debug, Clone, PartialEq)]
pub struct Rendered {
    /// The object.
    pub object: Object,
    /// Whose copy it is.
    pub role: RoleName,
    /// How the manifests have it, where it may be live so at first sight.
    pub plain: Option<Object>,
}

/// Why a posture could not be rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// A pinned set is not at hand.
    #[error("the set {0} is not on the state branch")]
    MissingSet(SetId),
    /// The candidate's objects cannot be named.
    #[error(transparent)]
    Layout(#[from] LayoutError),
}

/// All objects of a posture.
///
/// # Errors
/// When a set is missing or the candidate cannot be laid out.
pub fn render(posture: &Posture, facts: &InPlaceFacts<'_>) -> Result<BTreeMap<ObjectRef, Rendered>, RenderError> {
    let set = |role: &Role| facts.sets.get(&role.set).ok_or_else(|| RenderError::MissingSet(role.set.clone()));
    if facts.plan.target.kind == TargetKind::NodeConfig {
        let candidate = set(posture.candidate.as_ref().unwrap_or(&posture.stable))?;
        let versions = NodeVersions { stable: set(&posture.stable)?, candidate, attempt: 0, proven: true };
        // What contents there are does not depend on time.
        let age = |_| Span::ZERO;
        let sight = Sight { live: facts.live, namespace: facts.namespace, manager: facts.manager, age: &age };
        let nodes = Nodes::read(facts.plan, sight, versions);
        let contents = nodes.contents(facts.namespace).into_iter();
        return Ok(contents.map(|(name, (object, role))| (name, Rendered { object, role, plain: None })).collect());
    }
    let target = own_target(&posture.naming, facts);
    let stable = &*direct::applied(set(&posture.stable)?, &target, &posture.stable.directly);
    let mut all = BTreeMap::new();
    let stays = if hands_over(posture) { RoleName::Candidate } else { RoleName::Stable };
    let arranged = layouts::at_rest(stable, facts.plan, &posture.naming.after(stays), posture.stable.pods.as_ref())?;
    let workload = posture.naming.workload(RoleName::Stable, &facts.plan.target.name);
    let scaler =
        scaler::of(arranged.values().map(|arranged| &arranged.object), facts.plan.target.kind.kind(), &workload);
    let scaler = scaler.map(Object::reference).cloned();
    for (reference, Arranged { object, role, plain }) in arranged {
        if comes_last(&reference, posture, facts) {
            continue;
        }
        let object = match role {
            RoleName::Stable => {
                let sized = sized_stable(&object, posture, scaler.as_ref(), (stable, facts));
                split_apex(&sized, posture, facts)
            }
            RoleName::Candidate => object,
        };
        all.insert(reference, Rendered { object, role, plain });
    }
    if let Some(candidate) = posture.candidate.as_ref().filter(|candidate| has_objects(candidate, posture)) {
        let new = set(candidate)?;
        let base = facts.sets.get(facts.base).ok_or_else(|| RenderError::MissingSet(facts.base.clone()))?;
        let base = &direct::applied(base, &target, facts.directly);
        let pods = candidate.pods.as_ref().unwrap_or(&new.pods);
        for (reference, object) in layouts::of_candidate(base, new, facts.plan, &posture.naming, pods)? {
            let split = &posture.split;
            let (object, role) = match (reference.kind, all.get(&reference)) {
                (Kind::StatefulSet, _) => {
                    let sized = sized_stable(&object, posture, scaler.as_ref(), (stable, facts));
                    (stateful::exposing(sized, facts.live.get(&reference), split), RoleName::Candidate)
                }
                (Kind::DaemonSet, Some(stable)) => daemon::exposing(&stable.object, object, facts.live, split),
                (Kind::Deployment, _) => (object, RoleName::Candidate),
                _ => (split_apex(&object, posture, facts), RoleName::Candidate),
            };
            all.insert(reference, Rendered { object, role, plain: None });
        }
        size_candidate(&mut all, candidate_size(candidate, new, &posture.naming, facts), &posture.naming, facts);
    }
    add_tracked(&mut all, posture, facts);
    Ok(all)
}

/// What the manifests of the old version call the target.
fn own_target(naming: &Naming, facts: &InPlaceFacts<'_>) -> ObjectRef {
    let target = &facts.plan.target;
    let name = match naming {
        Naming::Versioned(versions) => &versions.stable.target,
        Naming::InPlace | Naming::Primary(_) | Naming::Leaving(_) | Naming::Shared => &target.name,
    };
    ObjectRef { kind: target.kind.kind(), namespace: facts.namespace.clone(), name: name.clone() }
}

/// The copies of tracked objects: stable's, the candidate's, and as long as a run may go back those of the version that it left.
fn add_tracked(all: &mut BTreeMap<ObjectRef, Rendered>, posture: &Posture, facts: &InPlaceFacts<'_>) {
    let Naming::Primary(_) = posture.naming else { return };
    let candidate = posture.candidate.as_ref().map(|candidate| &candidate.set);
    let of_run = candidate.into_iter().flat_map(|set| [(facts.base, RoleName::Stable), (set, RoleName::Candidate)]);
    for (set, role) in [(&posture.stable.set, RoleName::Stable)].into_iter().chain(of_run) {
        let copies = facts.sets.get(set).into_iter().flat_map(|set| tracked::copies(set, facts.live, facts.namespace));
        for object in copies {
            all.entry(object.reference().clone()).or_insert(Rendered { object, role, plain: None });
        }
    }
}

/// Where both versions are pods of one workload, it has one role once both are the same version.
fn has_objects(candidate: &Role, posture: &Posture) -> bool {
    posture.naming != Naming::Shared || candidate.set != posture.stable.set
}

/// Whether both roles are of one version: the new one has become stable, or is becoming it.
fn hands_over(posture: &Posture) -> bool {
    posture.candidate.as_ref().is_some_and(|candidate| candidate.set == posture.stable.set)
}

/// Whether an object is a route that the new version alone has, where each version has names of its own: whoever comes in by it stays on
/// that version, so it is made when its run does not go back any more. One that is there stays: somebody uses it.
fn comes_last(reference: &ObjectRef, posture: &Posture, facts: &InPlaceFacts<'_>) -> bool {
    let own_names = hands_over(posture) && posture.naming.services().is_some();
    let is_new = || facts.sets.get(facts.base).is_some_and(|base| !base.objects.contains_key(reference));
    own_names && Kind::ROUTES.contains(&reference.kind) && is_new() && facts.live.get(reference).is_none()
}

/// The candidate at its size. A scaler has its say above that, and none as long as there are no pods.
fn size_candidate(all: &mut BTreeMap<ObjectRef, Rendered>, pods: u32, naming: &Naming, facts: &InPlaceFacts<'_>) {
    let name = naming.workload(RoleName::Candidate, &facts.plan.target.name);
    let own = all.values().filter(|rendered| rendered.role == RoleName::Candidate).map(|rendered| &rendered.object);
    let scaler = scaler::of(own, Kind::Deployment, &name).map(|scaler| scaler::with_least(scaler.clone(), pods));
    let workload = ObjectRef { kind: Kind::Deployment, namespace: facts.namespace.clone(), name };
    let pods = match scaler.as_ref().and_then(scaler::least) {
        Some(least) => handed_over(&workload, Some(least), facts),
        None => Some(pods.max(kept(&workload.name, facts))),
    };
    if let Some(rendered) = all.get_mut(&workload) {
        rendered.object = layouts::with_replicas(rendered.object.clone(), pods);
    }
    if let Some((rendered, scaler)) = scaler.and_then(|s| Some((all.get_mut(s.reference())?, s))) {
        rendered.object = scaler;
    }
}

/// The candidate's pods that are never taken away while the run goes on: they may be what serves users, and a scaler that takes pods from
/// stable because those do says nothing of them. Where the number of pods is the exposure, it is the posture's alone.
fn kept(candidate: &ObjectName, facts: &InPlaceFacts<'_>) -> u32 {
    match facts.plan.traffic.as_ref().map(|traffic| traffic.router.by()) {
        Some(By::Route | By::Selector) => pods_of(candidate, facts),
        Some(By::Pods | By::Units) | None => 0,
    }
}

/// How many pods a workload of the posture has to have: as its scaler leaves at least, where one has a say.
#[must_use]
pub fn wanted_pods(all: &BTreeMap<ObjectRef, Rendered>, workload: &ObjectRef) -> i64 {
    let asked = all.get(workload).and_then(|rendered| rendered.object.int("/spec/replicas")).unwrap_or(0);
    let scaler = scaler::of(all.values().map(|rendered| &rendered.object), workload.kind, &workload.name);
    asked.max(scaler.and_then(scaler::least).map_or(0, i64::from))
}

/// Stable's Deployment and its scaler at their size.
fn sized_stable(
    object: &Object,
    posture: &Posture,
    scaler: Option<&ObjectRef>,
    (set, facts): (&Set, &InPlaceFacts<'_>),
) -> Object {
    if let TargetKind::Service | TargetKind::NodeConfig | TargetKind::None = facts.plan.target.kind {
        return object.clone();
    }
    let reference = object.reference();
    let workload = posture.naming.workload(RoleName::Stable, &facts.plan.target.name);
    let target = reference.kind == facts.plan.target.kind.kind() && reference.name == workload;
    let declared = object.int("/spec/replicas").map(|declared| u32::try_from(declared).unwrap_or(u32::MAX));
    match posture.stable.size {
        _ if target && (scaler.is_some() || declared.is_none()) => {
            // A scaler brings none back where there is none; traffic will.
            let least = match posture.stable.size {
                Size::AtLeast(least) => Some(least).filter(|least| *least > 0),
                Size::Declared | Size::Share(_) => None,
            };
            let begin = beginning(&posture.naming, set, facts).or(least);
            layouts::with_replicas(object.clone(), handed_over(reference, begin, facts))
        }
        Size::AtLeast(least) if target => layouts::with_replicas(object.clone(), declared.max(Some(least))),
        Size::AtLeast(least) if Some(reference) == scaler => scaler::with_least(object.clone(), least),
        Size::AtLeast(_) | Size::Declared | Size::Share(_) => object.clone(),
    }
}

/// With how many pods stable's workload begins where the other role's has served until then, which no scaler knows of: the copy of
/// the layout `primary`, and the target that takes over from it. In place there is no other.
fn beginning(naming: &Naming, set: &Set, facts: &InPlaceFacts<'_>) -> Option<u32> {
    let own = naming.workload(RoleName::Stable, &facts.plan.target.name);
    if matches!(naming, Naming::Primary(_)) && facts.live.find(Kind::Deployment, facts.namespace, &own).is_some() {
        // What it has by now is its scaler's word, be it none.
        return None;
    }
    let other = naming.workload(RoleName::Candidate, naming.target()?);
    Some(layouts::declared_replicas(set, facts.plan).max(pods_of(&other, facts)))
}

/// A scaler, or a hand where the manifests say no number, owns `replicas`, once there are pods: a scaler does nothing where there are none, so
/// that they `begin` by our word. But a field that only we own would fall to its default when we stop sending it, so the live value is sent
/// until somebody else owns it.
fn handed_over(reference: &ObjectRef, begin: Option<u32>, facts: &InPlaceFacts<'_>) -> Option<u32> {
    let Some(live) = facts.live.get(reference).filter(|live| begin.is_none() || live.int("/spec/replicas") != Some(0))
    else {
        return begin;
    };
    let owns = |entry: &Value| at(entry, "/fieldsV1/f:spec/f:replicas").is_some();
    let entries = live.at("/metadata/managedFields")?.as_array()?;
    let ours = |entry: &&Value| entry.get("manager").and_then(Value::as_str) == Some(facts.manager);
    let only_ours = entries.iter().filter(ours).any(owns) && !entries.iter().filter(|e| !ours(e)).any(owns);
    if only_ours { live.int("/spec/replicas").and_then(|n| u32::try_from(n).ok()) } else { None }
}

/// The object that carries the split, with the posture's split.
fn split_apex(object: &Object, posture: &Posture, facts: &InPlaceFacts<'_>) -> Object {
    let (Some(traffic), Some(candidate)) = (&facts.plan.traffic, &posture.candidate) else { return object.clone() };
    let apex = routers::routes(&traffic.router, facts.namespace, &facts.plan.target.name);
    match candidate.pods.as_ref().filter(|_| apex.first() == Some(object.reference())) {
        Some(pods) => {
            let split = &posture.split;
            let keeps = traffic.session_affinity.as_ref();
            let cookie = keeps.and_then(|affinity| affinity.set_cookie(&split.headers, split.weight));
            if let Some(services) = posture.naming.services() {
                return led_between(object, posture, facts, |route| {
                    gateway_api::between(services, route, split, cookie.as_deref())
                });
            }
            let rendered =
                routers::render(&traffic.router, object, Form { split, candidate: pods, naming: &posture.naming });
            match cookie {
                Some(cookie) => routers::with_cookie(&traffic.router, &rendered, &cookie),
                None => rendered,
            }
        }
        None => object.clone(),
    }
}

/// The route where each version has a Service of its own: the old version's with a `split`, until the new one's takes over as it
/// stands, in *return*. That one's ports need not be the old Service's.
fn led_between(
    object: &Object,
    posture: &Posture,
    facts: &InPlaceFacts<'_>,
    split: impl Fn(&Object) -> Object,
) -> Object {
    if hands_over(posture) && posture.split.is_stable() {
        return object.clone();
    }
    let old = facts.sets.get(facts.base).and_then(|set| set.objects.get(object.reference()));
    split(old.unwrap_or(object))
}

/// How many pods the candidate shall have (design §7, §13.5; requirement C-31).
fn candidate_size(role: &Role, set: &Set, naming: &Naming, facts: &InPlaceFacts<'_>) -> u32 {
    let declared = layouts::declared_replicas(set, facts.plan);
    match (role.size, facts.plan.traffic.as_ref().map(|t| t.router.by())) {
        // Where it serves everybody, what was said for load counts, too.
        (Size::Share(Percent::ALL), Some(By::Pods)) => declared.max(facts.baseline),
        (Size::Share(share), Some(By::Pods)) => replicas::candidate_replicas(facts.baseline, share),
        // Nothing is sized so where the candidate has no workload of its own.
        (Size::Share(share), Some(By::Route | By::Selector | By::Units) | None) => {
            declared.max((live_stable(naming, facts).max(facts.baseline) * u32::from(share.get())).div_ceil(100)).max(1)
        }
        (Size::AtLeast(least), _) => declared.max(least),
        (Size::Declared, _) => declared,
    }
}

/// The pods that stable has to keep: those that it has, and one at least where a scaler may have taken all away, as nobody would bring one
/// back before traffic is led to it.
#[must_use]
pub fn least_stable(set: &Set, naming: &Naming, facts: &InPlaceFacts<'_>) -> u32 {
    let target = &facts.plan.target;
    let names = [target.name.clone(), naming.workload(RoleName::Stable, &target.name)];
    let scaled = names.iter().any(|name| scaler::of(set.objects.values(), target.kind.kind(), name).is_some());
    live_stable(naming, facts).max(u32::from(scaled))
}

/// The pods that stable has now, as the live workload asks for them; those of a Service are other people's, and of a DaemonSet nodes
/// decide.
fn live_stable(naming: &Naming, facts: &InPlaceFacts<'_>) -> u32 {
    use TargetKind::{DaemonSet, NodeConfig, None, Service};
    if let Service | DaemonSet | NodeConfig | None = facts.plan.target.kind {
        return 0;
    }
    pods_of(&naming.workload(RoleName::Stable, &facts.plan.target.name), facts)
}

fn pods_of(name: &ObjectName, facts: &InPlaceFacts<'_>) -> u32 {
    let live = facts.live.find(facts.plan.target.kind.kind(), facts.namespace, name);
    live.map_or(0, |d| u32::try_from(d.int("/spec/replicas").unwrap_or(1)).unwrap_or(0))
}
