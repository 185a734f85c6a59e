//! Ends: a rollout that left main, a record that cannot be read, branches that ask for nothing any more.

use super::action::{Action, Class, Verb};
use super::adopt;
use super::bootstrap;
use super::context::exactly;
use super::converge::Converged;
use super::deletions;
use super::draft::{Draft, RolloutPlan};
use super::exposure;
use super::input::{Input, RequestBranch};
use super::jobs;
use super::planner;
use super::report::{Reason, Wait};
use super::unread;
use crate::gate::{BrakeWord, approval};
use crate::manifest::desired::{
    By, OnFailure, OnStableDown, Plan, Promotion, RollingUpdate, Router, Target, TargetKind, usual_max_unready,
};
use crate::manifest::duration::Span;
use crate::manifest::ids::{ObjectName, Percent, RunId};
use crate::manifest::object::{APPLIED, DOMAIN, EPOCH, Kind, OWNER, Object, RETREATED, ROLE, SEQ};
use crate::record::branches::{Asks, Head};
use crate::record::history::voids;
use crate::record::posture::{Names, Naming, Posture, Split, Versions};
use crate::record::state::{Phase, RoleName};
use crate::workload::kinds::shared;
use crate::workload::layouts::{SUFFIX, pod_labels, suffixed};
use crate::workload::live::LiveState;
use crate::workload::readiness;
use crate::workload::routers::{self, ObservedSplit, RouteView, gateway_api};
use crate::workload::selector::serves;
use crate::workload::{compare, owned};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The manifest is gone: objects stay, our marks go, then the record (design §13.10). A rollout that comes back meanwhile is
/// taken over after that, as at first sight.
pub fn terminate(draft: &mut Draft<'_>) {
    if let Some((posture, converged)) = restored(draft) {
        if converged.reached {
            draft.allow(Posture { naming: Naming::InPlace, ..posture });
            draft.note("all is as the manifests say");
            draft.wake(draft.now());
            return;
        }
        if converged.unlisted {
            draft.take_inventory();
            draft.note("inventory");
        }
        draft.waits.extend(converged.waits);
        return;
    }
    if jobs::left(draft).next().is_some() {
        draft.waits.push(Wait::new(Reason::Writing, "Jobs of its runs are being removed"));
    } else if released(draft).next().is_none() {
        draft.removed = Some("released: removed from main, its objects stay".to_owned());
    } else {
        draft.waits.push(Wait::new(Reason::Writing, "our marks are being taken off its objects"));
    }
}

/// How far live is from what the manifests say, where the record wants that: the target has its pods back and the Service
/// leads to them before the copies go (requirement C-35).
fn restored(draft: &Draft<'_>) -> Option<(Posture, Converged)> {
    let posture = draft.posture()?.clone();
    let Naming::Leaving(names) = &posture.naming else { return None };
    let target = Target::recorded(names.target.clone());
    let converged = draft.converge(&unrouted(target), &posture, bootstrap::BRINGING_UP);
    Some((posture, converged))
}

/// A rollout that left main: no run of it starts, and its route says what the manifests say.
fn unrouted(target: Target) -> Plan {
    Plan {
        target,
        traffic: None,
        phases: Vec::new(),
        promotion: Promotion::default(),
        on_failure: OnFailure::default(),
        progress_deadline: Span::ZERO,
        max_unready: usual_max_unready(),
        on_stable_down: OnStableDown::Wait,
        rolling_update: RollingUpdate::default(),
        nodes: None,
        checks: BTreeMap::new(),
        hooks: BTreeMap::new(),
        jobs: BTreeMap::new(),
    }
}

/// What a rollout that left main wants done: what the manifests say is brought back, then our marks go.
#[must_use]
pub fn due(draft: &Draft<'_>) -> Vec<Action> {
    restored(draft).map_or_else(|| strip(draft), |(_, converged)| converged.actions)
}

/// What carries our marks by our own writes, cut down to what we own of it. A mark that others own as well stays with them.
fn released<'a>(draft: &'a Draft<'_>) -> impl Iterator<Item = (&'a Object, Object)> {
    let manager = draft.input.me.instance.in_cluster();
    let owner = draft.input.me.instance.owner_of(&draft.input.id);
    let marked = draft.live.objects.owned_by(&owner);
    let owned = marked.filter_map(move |live| Some((live, owned::owned_by(live, &manager)?)));
    owned.filter(|(_, ours)| ours.annotation(OWNER).is_some())
}

/// Takes our marks off everything that is ours.
fn strip(draft: &Draft<'_>) -> Vec<Action> {
    let one = |(live, mut object): (&Object, Object)| {
        unmark(&mut object);
        Action {
            class: Class::Advance,
            rollout: draft.input.id.clone(),
            cluster: draft.input.me.cluster.clone(),
            cluster_uid: draft.live.cluster_uid.clone(),
            posture: draft.posture().map(Posture::digest),
            verb: Verb::Apply { object: Box::new(object), expects: exactly(Some(live)) },
            why: format!("{}: marks removed", live.reference()),
        }
    };
    released(draft).map(one).collect()
}

fn unmark(object: &mut Object) {
    if let Some(annotations) = object.value_mut().pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        for key in [OWNER, APPLIED, SEQ, EPOCH, RETREATED, ROLE] {
            annotations.remove(key);
        }
        annotations.retain(|key, _| !key.starts_with(&format!("{DOMAIN}/")));
    }
}

/// Without a record that is believed only marks and the brake act (design §1): what is ours goes back to stable, from live alone,
/// where stable has somebody to serve. `waits` say why nothing else is done.
#[must_use]
pub fn blind(input: &Input, live: &LiveState, waits: Vec<Wait>) -> RolloutPlan {
    let mut plan = planner::hold(waits);
    for Way { router, target, naming } in splits(input, live) {
        let view = RouteView { live, namespace: &input.id.namespace, target: &target, baseline: 0, naming: &naming };
        let marks = stable_marks(input, &router, &view);
        let (lowered, wait) = lowered(input, &router, &view);
        // As where the run is known: traffic goes first, but where all of it is led past stable, which a paused leader may be
        // about to overwrite.
        if reads_all(&router, &view) {
            plan.retreats.extend(marks.into_iter().chain(lowered));
        } else {
            plan.retreats.extend(lowered.into_iter().chain(marks));
        }
        plan.waits.extend(wait);
        plan.retreats.extend(displaced(input, &router, &view));
    }
    plan
}

/// The candidate's pods that come back as stable's where they are deleted: of a workload that goes back, and has the mark of it.
fn displaced(input: &Input, router: &Router, view: &RouteView<'_>) -> Vec<Action> {
    let set = routers::live_route(router, view).filter(|set| router.by() == By::Units && is_marked(set));
    let Some(set) = set else { return Vec::new() };
    let one = |pod: &Object| Action {
        class: Class::Retreat,
        rollout: input.id.clone(),
        cluster: input.me.cluster.clone(),
        cluster_uid: view.live.cluster_uid.clone(),
        posture: None,
        verb: exposure::taken_away(pod),
        why: shared::made_anew(set, pod, "stable's"),
    };
    // How many may be away at a time nobody can tell without a plan.
    let pods = shared::due(set, view.live, RoleName::Stable, &Split::stable(), 1);
    pods.into_iter().map(one).collect()
}

/// Whether live leads all requests to the candidate, or in a way that nobody can tell.
fn reads_all(router: &Router, view: &RouteView<'_>) -> bool {
    match routers::read(router, view) {
        ObservedSplit::Split(split) => split.weight == Percent::ALL,
        ObservedSplit::Foreign(_) => true,
    }
}

/// The routes with the split at stable and the mark, as far as they are not; or on what that waits.
fn lowered(input: &Input, router: &Router, view: &RouteView<'_>) -> (Vec<Action>, Option<Wait>) {
    let (owner, mut actions) = (input.me.instance.owner_of(&input.id), Vec::new());
    for object in routers::retreat(router, view, &input.me.instance.in_cluster()) {
        let route = view.live.get(object.reference());
        let Some(route) = route.filter(|live| adopt::not_ours(&owner, live).is_none()) else { continue };
        let Some(mark) = mark_of(input, route) else { continue };
        let lowers = !compare::differs(&object, route).is_empty();
        if !lowers && is_marked(route) {
            continue;
        }
        if lowers && !stable_serves(router, view) {
            let why = "traffic stays on the candidate: stable has no ready endpoint";
            return (actions, Some(Wait::new(Reason::StableNotReady, why)));
        }
        actions.push(marked(
            input,
            view.live,
            route,
            object,
            &mark,
            if lowers { "all traffic to stable" } else { "mark" },
        ));
        if lowers && route.reference().kind == Kind::Service {
            // The candidate keeps its pods until the Service was read back.
            break;
        }
    }
    (actions, None)
}

/// Whether stable has somebody to serve, or nobody has. Where nobody knows, and all requests are led past a stable that may be overwritten,
/// it has once it is rolled out.
fn stable_serves(router: &Router, view: &RouteView<'_>) -> bool {
    let is_unread = unread::why(view.live, exposure::counted_by(Some(router), view)).is_some();
    if is_unread && reads_all(router, view) {
        let name = view.naming.workload(RoleName::Stable, view.target);
        let stable = view.live.find(Kind::Deployment, view.namespace, &name);
        return stable.is_some_and(|stable| readiness::readiness(stable, view.live).is_ready());
    }
    let ready = exposure::ready_behind(Some(router), view);
    ready.stable > 0 || ready.candidate == 0
}

/// Marks what a paused leader's *promote* would overwrite. No record says which objects of stable that are: all.
fn stable_marks(input: &Input, router: &Router, view: &RouteView<'_>) -> Vec<Action> {
    let routes = routers::routes(router, view.namespace, view.target);
    let Some(mark) = routes.iter().find_map(|route| mark_of(input, view.live.get(route)?)) else {
        return Vec::new();
    };
    let (owner, manager) = (input.me.instance.owner_of(&input.id), input.me.instance.in_cluster());
    let stable = view.live.objects.owned_by(&owner);
    let stable = stable.filter(|live| live.annotation(ROLE) == Some("stable") && !routes.contains(live.reference()));
    let unmarked = stable.filter(|live| !is_marked(live));
    unmarked
        .filter_map(|live| Some(marked(input, view.live, live, owned::owned_by(live, &manager)?, &mark, "mark")))
        .collect()
}

fn is_marked(live: &Object) -> bool {
    live.annotation(RETREATED).is_some_and(|mark| !mark.is_empty())
}

/// The mark that goes with the way back of this route: its own, or that of the brake.
fn mark_of(input: &Input, route: &Object) -> Option<String> {
    let own = route.annotation(RETREATED).filter(|mark| !mark.is_empty()).map(str::to_owned);
    let brake = (input.brake == Ok(Some(BrakeWord::Revert)))
        .then(|| format!("{}/aborted: the brake in the cluster says revert", RunId::zero()));
    own.or(brake)
}

/// Writes `object` over `live` with that mark.
fn marked(input: &Input, live: &LiveState, over: &Object, mut object: Object, mark: &str, why: &str) -> Action {
    object.annotate(RETREATED, mark);
    let digest = compare::applied_digest(&object);
    object.annotate(APPLIED, &digest);
    Action {
        class: Class::Retreat,
        rollout: input.id.clone(),
        cluster: input.me.cluster.clone(),
        cluster_uid: live.cluster_uid.clone(),
        posture: None,
        verb: Verb::Apply { object: Box::new(object), expects: exactly(Some(over)) },
        why: format!("{}: {why}", over.reference()),
    }
}

/// What splits requests to our objects, and between which.
struct Way {
    router: Router,
    target: ObjectName,
    naming: Naming,
}

impl From<(Router, ObjectName)> for Way {
    fn from((router, target): (Router, ObjectName)) -> Self {
        Self { router, target, naming: Naming::InPlace }
    }
}

/// All of that, as far as live tells it.
fn splits(input: &Input, live: &LiveState) -> Vec<Way> {
    let owner = input.me.instance.owner_of(&input.id);
    let ours = |kind| live.objects.owned_by(&owner).filter(move |o| o.reference().kind == kind);
    let routes = || Kind::ROUTES.iter().flat_map(|kind| ours(*kind));
    let brought = ours(Kind::Service).filter(|service| service.annotation(ROLE) == Some("candidate"));
    let brought: BTreeSet<ObjectName> = brought.map(|service| service.reference().name.clone()).collect();
    let between = routes().filter_map(|route| gateway_api::router_between(route, &brought));
    let between: Vec<Way> = between
        .filter_map(|(router, candidate)| {
            let stable = router.service()?.clone();
            // Nothing else names the workloads; the route is asked for its Services alone.
            let [stable, new] = [stable, candidate].map(|service| Names { target: service.clone(), service });
            let target = new.target.clone();
            Some(Way { router, target, naming: Naming::Versioned(Versions { stable, candidate: Some(new) }) })
        })
        .collect();
    let by_route: Vec<_> = routes()
        .flat_map(|route| routers::routers(route, &brought))
        .filter_map(|router| {
            let named = router.route().map(|(_, route)| route).or_else(|| router.service()).cloned()?;
            Some((router, named))
        })
        .collect();
    let targets = [TargetKind::StatefulSet, TargetKind::DaemonSet].into_iter();
    let by_partition =
        targets.filter_map(|target| Some((target.own_router()?, target.kind()))).flat_map(|(router, kind)| {
            // Of pods that nobody can see some may be the candidate's.
            let is_unread = unread::why(live, Kind::Pod).is_some();
            let moved = ours(kind).filter(|set| is_unread || shared::exposes(set, live));
            moved.map(|set| (router.clone(), set.reference().name.clone())).collect::<Vec<_>>()
        });
    let by_partition: Vec<_> = by_partition.collect();
    if !(by_route.is_empty() && by_partition.is_empty() && between.is_empty()) {
        return by_route.into_iter().chain(by_partition).map(Way::from).chain(between).collect();
    }
    let candidates = ours(Kind::Deployment).filter_map(|d| Some((d, target_of(d)?)));
    let service = |name: &ObjectName| ours(Kind::Service).any(|service| service.reference().name == *name);
    let by_service = candidates.flat_map(|(candidate, target)| {
        let behind = ours(Kind::Service).filter(|service| serves(service.at("/spec/selector"), &pod_labels(candidate)));
        let routers = behind.filter_map(|behind| {
            let name = &behind.reference().name;
            // Where the candidate has a Service of its own, the other one is switched to it; else both share one.
            let switched = name.as_str().strip_suffix(SUFFIX).and_then(|name| name.parse().ok()).filter(service);
            let copied = suffixed(name).is_some_and(|copy| service(&copy));
            let shared = (!copied).then(|| Router::Replicas { service: name.clone() });
            switched.map(|service| Router::Service { service }).or(shared)
        });
        let itself = candidate.reference().name == target;
        routers
            .map(move |router| {
                // Where the target is the candidate, stable's is its copy.
                let names = |service: &ObjectName| Names { target: target.clone(), service: service.clone() };
                let switched = router.service().filter(|_| itself && router.by() == By::Selector).map(names);
                Way { naming: switched.map_or(Naming::InPlace, Naming::Primary), ..Way::from((router, target.clone())) }
            })
            .collect::<Vec<_>>()
    });
    by_service.collect()
}

/// The target of the rollout whose candidate a live Deployment is: one that was made for a run, or that has pods for one.
fn target_of(candidate: &Object) -> Option<ObjectName> {
    let name = &candidate.reference().name;
    let itself = candidate.annotation(ROLE) == Some("candidate") && candidate.int("/spec/replicas") != Some(0);
    match name.as_str().strip_suffix(SUFFIX) {
        Some(target) => target.parse().ok(),
        None => itself.then(|| name.clone()),
    }
}

/// Advance requests of other runs, of steps that are approved, or of a run that a person has denied, ask for nothing any more
/// (requirement X-2); nor does one for objects to go that nobody is asked about now, nor any request about a rollout that left main.
pub fn void_proposals(draft: &mut Draft<'_>) {
    for (name, RequestBranch { head, content: _ }) in &draft.input.proposals {
        let Some(asked) = Head::parse(&draft.input.me.instance, name) else { continue };
        let step = match &asked.asks {
            Asks::Advance(step) => step,
            Asks::Delete if deletions::is_asked(draft, &asked.run) => continue,
            Asks::Revert if !matches!(draft.state.phase, Phase::Terminating { .. }) => continue,
            Asks::Delete | Asks::Revert => {
                draft.void.push((name.clone(), head.clone()));
                continue;
            }
        };
        let wanted = draft.state.run.as_ref().is_some_and(|run| {
            let plan = draft.plan.as_deref();
            let open = plan.is_some_and(|plan| !approval::covers(plan, &run.approved, step));
            let void = voids(&draft.state, &run.id, step).any(|void| void.head.as_ref() == Some(head));
            asked.run == run.id && open && !void && !run.denied
        });
        if !wanted {
            draft.void.push((name.clone(), head.clone()));
        }
    }
}
