//! Ends: a rollout that left main, a record that cannot be read, branches that ask for nothing any more.

use super::action::{Action, Class, Verb};
use super::context::exactly;
use super::draft::{Draft, RolloutPlan};
use super::input::Input;
use super::planner;
use super::report::{Reason, Wait};
use crate::gate::{BrakeWord, approval};
use crate::manifest::ids::ObjectName;
use crate::manifest::object::{APPLIED, DOMAIN, EPOCH, Kind, OWNER, Object, RETREATED, ROLE, SEQ};
use crate::record::branches::{Asks, Head};
use crate::record::posture::Posture;
use crate::target::layout::SUFFIX;
use crate::target::live::LiveState;
use crate::target::{compare, owned};
use crate::traffic::gateway_api;
use serde_json::Value;
use std::collections::BTreeSet;

/// The manifest is gone: objects stay, our marks go, then the record (design §13.10). A rollout that comes back meanwhile is
/// taken over after that, as at first sight.
pub fn terminate(draft: &mut Draft<'_>) {
    if released(draft).next().is_none() {
        draft.removed = Some("released: removed from main, its objects stay".to_owned());
    } else {
        draft.waits.push(Wait::new(Reason::Writing, "our marks are being taken off its objects"));
    }
}

/// What carries our marks by our own writes, cut down to what we own of it. A mark that others own as well stays with them.
fn released<'a>(draft: &'a Draft<'_>) -> impl Iterator<Item = (&'a Object, Object)> {
    let manager = draft.input.me.instance.in_cluster();
    let owner = draft.input.me.instance.owner_of(&draft.input.id);
    let marked = draft.live.objects.values().filter(move |o| o.annotation(OWNER) == Some(owner.as_str()));
    let owned = marked.filter_map(move |live| Some((&**live, owned::owned_by(live, &manager)?)));
    owned.filter(|(_, ours)| ours.annotation(OWNER).is_some())
}

/// Takes our marks off everything that is ours.
#[must_use]
pub fn strip(draft: &Draft<'_>) -> Vec<Action> {
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

/// Without a readable record only marks and the brake act (design §1): routes of ours go back to stable, from live alone.
#[must_use]
pub fn blind(input: &Input, live: &LiveState, wait: Wait) -> RolloutPlan {
    let mut plan = planner::hold(wait);
    let owner = input.me.instance.owner_of(&input.id);
    let manager = input.me.instance.in_cluster();
    let routes = live.of_kind(Kind::HttpRoute).filter(|o| o.annotation(OWNER) == Some(owner.as_str()));
    for route in routes {
        let marked = route.annotation(RETREATED).is_some();
        if input.brake != Some(BrakeWord::Revert) && !marked {
            continue;
        }
        for service in split_services(route) {
            let mut object =
                owned::owned_by(route, &manager).unwrap_or_else(|| Object::new(route.reference().clone(), Value::Null));
            let lowered = gateway_api::retreat(route, &service);
            let rules = lowered.at("/spec/rules").cloned().unwrap_or_default();
            if route.at("/spec/rules") == Some(&rules) && marked {
                continue;
            }
            object.value_mut()["spec"]["rules"] = rules;
            let mark =
                route.annotation(RETREATED).unwrap_or("0/aborted: the brake in the cluster says revert").to_owned();
            object.annotate(RETREATED, &mark);
            let digest = compare::applied_digest(&object);
            object.annotate(APPLIED, &digest);
            plan.retreats.push(Action {
                class: Class::Retreat,
                rollout: input.id.clone(),
                cluster: input.me.cluster.clone(),
                cluster_uid: live.cluster_uid.clone(),
                posture: None,
                verb: Verb::Apply { object: Box::new(object), expects: exactly(Some(route)) },
                why: format!("{}: all traffic to stable", route.reference()),
            });
        }
    }
    plan
}

/// Advance requests of other runs, or of steps that are approved, ask for nothing any more (requirement X-2).
pub fn void_proposals(draft: &mut Draft<'_>) {
    for (name, head) in &draft.input.proposals {
        let Some(asked) = Head::parse(&draft.input.me.instance, name) else { continue };
        let Asks::Advance(step) = &asked.asks else { continue };
        let wanted = draft.state.run.as_ref().is_some_and(|run| {
            let plan = draft.plan.as_deref();
            asked.run == run.id && plan.is_some_and(|plan| !approval::covers(plan, &run.approved, step))
        });
        if !wanted {
            draft.void.push((name.clone(), head.clone()));
        }
    }
}

/// The Services that a route splits: those that stand in it beside their candidate's copy.
fn split_services(route: &Object) -> BTreeSet<ObjectName> {
    let rules = route.at("/spec/rules").and_then(Value::as_array);
    let refs = rules.into_iter().flatten().filter_map(|rule| rule.get("backendRefs")?.as_array()).flatten();
    refs.filter_map(|backend| backend.get("name")?.as_str()?.strip_suffix(SUFFIX)?.parse().ok()).collect()
}
