//! What live users reach of the new version, and how to take it back from live alone (design §1).

use super::action::{Action, Class, GoesBy, Verb};
use super::context::Context;
use super::nodes;
use crate::manifest::desired::{By, Plan, Router};
use crate::manifest::ids::{ObjectName, Percent};
use crate::manifest::object::{APPLIED, Kind, Object, ObjectRef, RETREATED};
use crate::record::posture::{Posture, Split};
use crate::record::state::{RoleName, Time};
use crate::rules::{Rule, holds};
use crate::workload::kinds::shared;
use crate::workload::kinds::shared::Member;
use crate::workload::live::Expects;
use crate::workload::routers::replicas::candidate_replicas;
use crate::workload::routers::{self, ObservedSplit, RouteStatus, RouteView, Services};
use crate::workload::tree::SharedRoute;
use crate::workload::{compare, layouts, owned, readiness};

/// The objects that carry the split, those that people's requests meet first.
#[must_use]
pub fn routes(context: &Context<'_>) -> Vec<ObjectRef> {
    let target = &context.plan.target.name;
    context.router().map(|router| routers::routes(router, context.namespace(), target)).unwrap_or_default()
}

/// How live splits requests now. Shapes that we never write are `Err` with what was found.
///
/// # Errors
/// When the route's rules cannot be read as a split.
pub fn live_split(context: &Context<'_>) -> Result<Split, String> {
    match context.router().map(|router| routers::read(router, &context.view())) {
        None => Ok(Split::stable()),
        Some(ObservedSplit::Split(split)) => Ok(split),
        Some(ObservedSplit::Foreign(why)) => Err(why),
    }
}

/// Whether live exposes no more than that. What we never write is more, whatever it is.
#[must_use]
pub fn is_within(context: &Context<'_>, split: &Split) -> bool {
    match shared_set(context) {
        Some(set) => shared::is_within(set, context.live, split),
        None => live_split(context).is_ok_and(|live| live.within(split)),
    }
}

/// Whether live would expose no more than it does if that was in force.
#[must_use]
pub fn lowers(context: &Context<'_>, split: &Split) -> bool {
    match shared_set(context) {
        Some(set) => shared::ceiling(shared::size(set), split) <= shared::exposed(set, context.live),
        None => split.is_stable() || live_split(context).is_ok_and(|live| split.within(&live)),
    }
}

/// Whether the route is in force, as far as it says so itself, and as what others have written lets it be.
#[must_use]
pub fn status(context: &Context<'_>) -> RouteStatus {
    let Some(router) = context.router().filter(|_| !nodes::is_target(context.plan)) else {
        return RouteStatus::Effective;
    };
    let own = routers::status(router, &context.view());
    let Some((tree, route)) = context.tree().zip(routers::live_route(router, &context.view())) else { return own };
    let service = router.service().map(ObjectName::as_str).unwrap_or_default();
    let named = context.naming.services();
    let candidate = named.and_then(|both| both.candidate).cloned().or_else(|| layouts::suffixed(router.service()?));
    let candidate = candidate.as_ref().map_or(service, ObjectName::as_str);
    let stable = named.map_or(service, |both| both.stable.as_str());
    let named = [route.reference().name.as_str(), stable, service, candidate];
    tree.judged(own, &SharedRoute { route, named: &named, teams: &context.input.policy.teams })
}

/// What keeps the proxy at what it had, whatever is written, and since when.
#[must_use]
pub fn frozen(context: &Context<'_>) -> Option<(String, Option<Time>)> {
    if let RouteStatus::Blocked { why, since } = status(context) {
        return Some((why, since));
    }
    context.tree()?.frozen(&context.input.policy.teams)
}

/// The ready endpoints of the two roles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ready {
    /// Those that serve stable's share.
    pub stable: u32,
    /// Those that serve the candidate's share.
    pub candidate: u32,
}

/// Counts the ready endpoints of both roles.
#[must_use]
pub fn ready(context: &Context<'_>) -> Ready {
    ready_behind(context.router(), &context.view())
}

/// The same, for what is known without a plan.
#[must_use]
pub fn ready_behind(router: Option<&Router>, view: &RouteView<'_>) -> Ready {
    let endpoints = |name: &ObjectName| readiness::ready_endpoints(view.live, view.namespace, name);
    let pods = |name: &ObjectName| {
        let deployment = view.live.find(Kind::Deployment, view.namespace, name);
        let ready = deployment.and_then(|d| d.int("/status/readyReplicas")).unwrap_or(0);
        u32::try_from(ready).unwrap_or(0)
    };
    if let Some(Services { stable, candidate }) = view.naming.services() {
        return Ready { stable: endpoints(stable), candidate: candidate.map_or(0, endpoints) };
    }
    match router.map(|router| (router.by(), router.service())) {
        Some((By::Route, Some(service))) => Ready {
            stable: endpoints(service),
            candidate: layouts::suffixed(service).map_or(0, |copy| endpoints(&copy)),
        },
        Some((By::Units, _)) => ready_members(router, view),
        Some((By::Route | By::Pods | By::Selector, _)) | None => {
            let of = |role| pods(&view.naming.workload(role, view.target));
            Ready { stable: of(RoleName::Stable), candidate: of(RoleName::Candidate) }
        }
    }
}

/// The pods of stable's that a share by pods is counted with: those that a run began with, and no more than are ready, so that the share of those
/// that answer is never larger than the record lets it be (requirement C-22). Where none is, nobody is sent away from pods that are ready (C-19).
#[must_use]
pub fn counted(plan: &Plan, stable: Option<&Object>, weight: Percent, began: u32) -> u32 {
    let by_pods = plan.traffic.as_ref().is_some_and(|traffic| traffic.router.by() == By::Pods);
    let splits = !weight.is_zero() && weight != Percent::ALL;
    let ready =
        stable.and_then(|stable| stable.int("/status/readyReplicas")).and_then(|ready| u32::try_from(ready).ok());
    let ready = ready.filter(|ready| *ready > 0 && by_pods && splits && holds(Rule::Share));
    ready.map_or(began, |ready| ready.min(began))
}

/// Whether so few pods of stable's are ready that not even one of the candidate's may be beside them.
#[must_use]
pub fn is_starved(context: &Context<'_>, weight: Percent) -> bool {
    let by_pods = context.router().is_some_and(|router| router.by() == By::Pods);
    by_pods && context.baseline > 0 && !weight.is_zero() && candidate_replicas(context.baseline, weight) == 0
}

/// The kind that readiness is counted by.
#[must_use]
pub fn counted_by(router: Option<&Router>, view: &RouteView<'_>) -> Kind {
    match router.map(|router| (router.by(), router.service())) {
        Some((By::Units, _)) => Kind::Pod,
        Some((By::Route, Some(_))) => Kind::EndpointSlice,
        _ if view.naming.services().is_some() => Kind::EndpointSlice,
        Some((By::Route | By::Pods | By::Selector, _)) | None => Kind::Deployment,
    }
}

/// The ready pods of a workload that both roles share.
fn ready_members(router: Option<&Router>, view: &RouteView<'_>) -> Ready {
    let set = router.and_then(|router| routers::live_route(router, view));
    let members = set.map(|set| shared::members(set, view.live)).unwrap_or_default();
    let ready = |role| shared::count(members.iter().filter(|member| member.role == role && member.is_ready()));
    Ready { stable: ready(RoleName::Stable), candidate: ready(RoleName::Candidate) }
}

/// The candidate's pods, as far as they are known.
fn candidates<'a>(context: &Context<'a>) -> Vec<Member<'a>> {
    let role = RoleName::Candidate;
    if let Some(set) = shared_set(context) {
        return shared::members(set, context.live).into_iter().filter(|member| member.role == role).collect();
    }
    let workload = context.live.get(&context.workload(role));
    let pods = workload.into_iter().flat_map(|workload| readiness::pods(workload, context.live));
    pods.map(|pod| Member { pod, role }).collect()
}

/// Whether a pod of the candidate's has failed by itself.
#[must_use]
pub fn has_failed(context: &Context<'_>) -> bool {
    candidates(context).iter().any(Member::has_failed)
}

/// Why a run goes back at once whose candidate serves nobody.
#[must_use]
pub fn no_endpoint(context: &Context<'_>) -> String {
    let workload = context.workload(RoleName::Candidate);
    if context.live.get(&workload).is_none() {
        return format!("the candidate's {} was deleted", workload.kind);
    }
    match context.router().map(Router::by) {
        Some(By::Units) => "the candidate has no ready pod left".to_owned(),
        Some(By::Route | By::Pods | By::Selector) | None => "the candidate has no ready endpoint left".to_owned(),
    }
}

/// Whether a pod of the candidate's serves, or would if somebody was led to it.
#[must_use]
pub fn serves(context: &Context<'_>) -> bool {
    candidates(context).iter().any(Member::is_ready)
}

/// Whether something else than its version took the candidate's pods away since then, and none has failed by itself. Where all are younger,
/// those before them were taken away.
#[must_use]
pub fn was_taken(context: &Context<'_>, since: Time) -> bool {
    let pods = candidates(context);
    let replaced = !pods.is_empty() && pods.iter().all(|pod| pod.is_younger(since));
    (replaced || pods.iter().any(Member::was_taken)) && !pods.iter().any(Member::has_failed)
}

/// The live workload that both roles share, where they do.
#[must_use]
pub fn shared_set<'a>(context: &Context<'a>) -> Option<&'a Object> {
    let router = context.router().filter(|router| router.by() == By::Units)?;
    routers::live_route(router, &context.view())
}

/// The same posture with the units that it lets in, for the record: as many stay if others leave.
#[must_use]
pub fn let_in(context: &Context<'_>, posture: Posture) -> Posture {
    if posture.split.is_stable() {
        return posture;
    }
    let shared = || shared_set(context).map(|set| shared::let_in(set, &posture.split).units);
    let units = nodes::let_in(context, &posture).or_else(shared).unwrap_or_else(|| posture.split.units.clone());
    Posture { split: Split { units, ..posture.split }, ..posture }
}

/// The pods of a workload that both roles share that are made anew now, on the way to the version of that role, where so much may be
/// exposed.
#[must_use]
pub fn due<'a>(context: &Context<'a>, toward: RoleName, split: &Split) -> Vec<&'a Object> {
    let slots = |set: &Object| context.plan.rolling_update.slots(shared::size(set));
    shared_set(context).map(|set| shared::due(set, context.live, toward, split, slots(set))).unwrap_or_default()
}

/// What takes such a pod away: it comes back at the version that it shall be of.
#[must_use]
pub fn replaced(context: &Context<'_>, pod: &Object) -> Action {
    let why = shared_set(context).map(|set| shared::made_anew(set, pod, "stable's")).unwrap_or_default();
    context.action(Class::Retreat, None, taken_away(pod), why)
}

/// The deletion of exactly that pod.
#[must_use]
pub fn taken_away(pod: &Object) -> Verb {
    let expects = Expects::Uid(pod.uid().unwrap_or_default().to_owned());
    Verb::Delete { target: pod.reference().clone(), expects, by: GoesBy::Policy }
}

/// A live object with this run's mark and, where it carries the split, with everything back at stable: rendered from
/// what we own of it.
#[must_use]
pub fn retreated(context: &Context<'_>, live: &Object, mark: &str) -> Object {
    let mut object = at_stable(context, live);
    if holds(Rule::Mark) {
        object.annotate(RETREATED, mark);
    }
    object
}

/// The same with the marks that it has: no run goes back.
#[must_use]
pub fn at_stable(context: &Context<'_>, live: &Object) -> Object {
    let lowered = context.router().map(|router| routers::retreat(router, &context.view(), context.manager));
    let lowered = lowered.into_iter().flatten().find(|object| object.reference() == live.reference());
    let kept = || owned::owned_by(live, context.manager);
    let nothing = || Object::new(live.reference().clone(), serde_json::Value::Null);
    let mut object = lowered.or_else(kept).unwrap_or_else(nothing);
    let digest = compare::applied_digest(&object);
    object.annotate(APPLIED, &digest);
    object
}
