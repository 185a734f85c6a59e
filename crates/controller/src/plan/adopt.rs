//! First sight: what may be created, what may be taken over, and what is somebody else's (design §6).

use super::context::Context;
use super::converge;
use super::evidence::{Need, Question};
use super::exposure;
use super::joined::joined;
use super::report::{Reason, Wait};
use crate::manifest::canonical::canonical;
use crate::manifest::desired::Router;
use crate::manifest::object::{DOMAIN, Kind, OWNER, Object, ObjectRef, section};
use crate::record::posture::Posture;
use crate::record::state::RoleName;
use crate::workload::compare;
use crate::workload::inplace::{self, RenderError, Rendered};
use crate::workload::live::{LiveState, WriteOutcome};
use crate::workload::managers::{CLIENT_SIDE, FLAGGER};
use crate::workload::routers::{self, nginx};
use crate::workload::{layouts, owned};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Display;

/// Annotations by which other appliers claim an object, with who that is and how to hand over.
const APPLIER_ANNOTATIONS: [(&str, &str, &str); 3] = [
    (
        "meta.helm.sh/release-name",
        "Helm",
        "remove the annotations meta.helm.sh/* (and uninstall the release with --keep-history)",
    ),
    ("meta.helm.sh/release-namespace", "Helm", "remove the annotations meta.helm.sh/*"),
    (
        "argocd.argoproj.io/tracking-id",
        "Argo CD",
        "remove the object from the Application, then its tracking-id annotation",
    ),
];

/// Labels by which other appliers claim an object.
const APPLIER_LABELS: [(&str, &str, &str); 2] = [
    (
        "kustomize.toolkit.fluxcd.io/name",
        "Flux",
        "remove the object from the Kustomization with prune disabled, then its labels",
    ),
    ("helm.toolkit.fluxcd.io/name", "Flux", "remove the HelmRelease with keepHistory, then its labels"),
];

/// Field managers of other appliers.
const APPLIER_MANAGERS: [(&str, &str); 4] =
    [("helm", "Helm"), ("argocd-controller", "Argo CD"), ("kustomize-controller", "Flux"), ("helm-controller", "Flux")];

/// Why a live object may not be written: another owner, another applier.
#[must_use]
pub fn claimed_by_others(context: &Context<'_>, live: &Object) -> Option<Wait> {
    claimed(context.owner, live)
}

/// Why no run makes its copy in the place of a live object: that has its name, and neither says that it is ours nor is listed in the
/// record. The run would write over it, and delete it in the end. What Flagger has left is taken over.
#[must_use]
pub fn in_the_way(context: &Context<'_>, live: &Object) -> Option<Wait> {
    let reference = live.reference();
    let ours = context.is_ours(live) || context.lists(live);
    if ours || !context.copies(reference) || managers(live).contains(&FLAGGER) {
        return None;
    }
    Some(no_copy(reference))
}

/// That what is called like this has the name of a copy that a run would make.
#[must_use]
pub fn no_copy(called: impl Display) -> Wait {
    let why = format!("{called} is there, and is no copy that we made: it stays as it is");
    Wait::new(Reason::OwnedByOther, why).act(format!("delete or rename {called}"))
}

/// Why a canary of ours would let nobody in, whatever it says: ingress-nginx takes another one, which was there before.
fn out_of_turn(context: &Context<'_>) -> Option<Wait> {
    let Some(Router::Nginx { ingress, service }) = context.router() else { return None };
    let other = nginx::rivals(&context.view(), ingress, service).into_iter().next()?.reference();
    let why = format!(
        "{other} is a canary of what leads to the Service {service}: ingress-nginx takes the older, and leads nobody to ours"
    );
    Some(Wait::new(Reason::OwnedByOther, why).act(format!("delete {other}, as Argo Rollouts leaves one")))
}

/// Why a live object that has not our own mark is no business of ours, also on a way back.
#[must_use]
pub fn not_ours(ours: &str, live: &Object) -> Option<Wait> {
    claimed(ours, live).filter(|_| live.annotation(OWNER) != Some(ours))
}

fn claimed(ours: &str, live: &Object) -> Option<Wait> {
    let reference = live.reference();
    if let Some(owner) = live.annotation(OWNER)
        && owner != ours
    {
        let why = format!("{reference} belongs to {owner}; release it there, or rename one of the two");
        return Some(Wait::new(Reason::OwnedByOther, why));
    }
    let (applier, advice) = foreign_applier(live)?;
    Some(Wait::new(Reason::ForeignApplier, format!("{reference} is applied by {applier}; to hand it over, {advice}")))
}

fn foreign_applier(live: &Object) -> Option<(&'static str, &'static str)> {
    let annotated = APPLIER_ANNOTATIONS.iter().find(|(key, _, _)| live.annotation(key).is_some());
    let labelled = APPLIER_LABELS.iter().find(|(key, _, _)| live.label(key).is_some());
    if let Some((_, applier, advice)) = annotated.or(labelled) {
        return Some((applier, advice));
    }
    let owners = live.at("/metadata/ownerReferences").and_then(Value::as_array).into_iter().flatten();
    let mut kinds = owners.filter_map(|owner| owner.get("apiVersion")?.as_str());
    if kinds.any(|api| api.starts_with("flagger.app/")) {
        return Some(("Flagger", "kubectl delete canary NAME --cascade=orphan"));
    }
    let managers = managers(live);
    let known = APPLIER_MANAGERS.iter().find(|(name, _)| managers.contains(name));
    known.map(|(_, applier)| (*applier, "stop applying it there, then remove its entry from metadata.managedFields"))
}

fn managers(live: &Object) -> Vec<&str> {
    let entries = live.at("/metadata/managedFields").and_then(Value::as_array);
    entries.into_iter().flatten().filter_map(|e| e.get("manager").and_then(Value::as_str)).collect()
}

/// What first sight came to.
#[derive(Debug)]
pub enum Bootstrap {
    /// Everything is absent, or equal but for our marks.
    Clear,
    /// Nothing may be written, or not yet.
    Wait(Vec<Wait>, Vec<Need>),
    /// The API server refuses the manifests.
    Refused(String),
}

/// What the objects of a posture are held against live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Against {
    /// As main's manifests: what a person's tool has set beside them is a difference.
    Live,
    /// As what was made of live itself: only what writing it would change is one.
    ItsOwnLive,
}

/// Looks at every object that the first posture would write: absent, equal, or different (design §6).
///
/// # Errors
/// When the posture cannot be rendered.
pub fn first_sight(context: &Context<'_>, posture: &Posture, against: Against) -> Result<Bootstrap, RenderError> {
    let (mut waits, mut needs, mut differing) = (Vec::new(), Vec::new(), Vec::new());
    let all = inplace::render(posture, &context.facts())?;
    for (reference, rendered) in &all {
        if context.live.missing.contains(&reference.kind) {
            waits.push(Wait::new(Reason::CrdMissing, LiveState::unserved(reference.kind)));
            continue;
        }
        let live = context.live.get(reference);
        if let Some(live) = live {
            if context.is_ours(live) {
                continue;
            }
            if let Some(wait) = claimed_by_others(context, live) {
                waits.push(wait);
                continue;
            }
        }
        let wanted = nearer(rendered, live);
        match (ask(context, wanted, rendered.role), live) {
            (Reply::Asked(need), _) => needs.push(need),
            (Reply::Wait(wait), _) => waits.push(wait),
            (Reply::Refused(why), _) => return Ok(Bootstrap::Refused(why)),
            (Reply::Allowed(result), Some(live)) => {
                differing.extend(taken_over(context, posture, &result, live));
                if against == Against::Live {
                    differing.extend(surplus(wanted, live));
                }
            }
            (Reply::Allowed(_), None) => {}
        }
    }
    differing.extend(led_past(context, &all));
    waits.extend(out_of_turn(context));
    waits.extend(joined(context, &all));
    let candidate = all.into_iter().filter(|(_, rendered)| rendered.role == RoleName::Candidate);
    let candidate = candidate.map(|(reference, rendered)| (reference, rendered.object)).collect();
    waits.extend(converge::overlapping(context, &candidate).barring);
    // Only once all is known: what is shown would change with each answer.
    let asked = !needs.is_empty() || waits.iter().any(|wait| wait.reason == Reason::Evidence);
    if !differing.is_empty() && !asked {
        let shown = differing.iter().take(20).cloned().collect::<Vec<_>>().join("; ");
        waits.push(Wait::new(Reason::AdoptionDiffers, shown));
    }
    if !needs.is_empty() {
        waits.push(Wait::new(Reason::Evidence, format!("{} server-side dry runs are on their way", needs.len())));
    }
    Ok(if waits.is_empty() { Bootstrap::Clear } else { Bootstrap::Wait(waits, needs) })
}

/// Why what another has left, and only a run renders, leads requests to a candidate by now: so a canary Ingress may.
fn led_past(context: &Context<'_>, all: &BTreeMap<ObjectRef, Rendered>) -> Option<String> {
    let only_a_runs = |name: &ObjectRef| Kind::ROUTES.contains(&name.kind) && !all.contains_key(name);
    let left = exposure::routes(context).into_iter().find(only_a_runs)?;
    context.live.get(&left)?;
    match exposure::live_split(context) {
        Ok(split) if split.is_stable() => None,
        Ok(_) => Some(format!("{left}: it leads requests to a candidate; wait until it does not, or delete it")),
        Err(why) => Some(format!("{left}: {why}")),
    }
}

/// What a live object is held against. Where the layout makes something else of what the manifests say, both are equal to it: what
/// was there without a rollout, and what another has left behind.
fn nearer<'r>(rendered: &'r Rendered, live: Option<&Object>) -> &'r Object {
    let far = |object: &Object| live.map_or(0, |live| compare::differs(object, live).len());
    rendered.plain.as_ref().filter(|plain| far(plain) < far(&rendered.object)).unwrap_or(&rendered.object)
}

/// What an answer to a dry run means for a plan.
#[derive(Debug)]
pub enum Reply {
    /// Not answered yet.
    Asked(Need),
    /// Answered by something that says nothing about the content.
    Wait(Wait),
    /// The API server refuses the content.
    Refused(String),
    /// It would do this.
    Allowed(Box<Object>),
}

/// Asks what applying an object would come to, or looks the answer up.
#[must_use]
pub fn ask(context: &Context<'_>, object: &Object, role: RoleName) -> Reply {
    // The API server would take it, and the run would say of each step that it exposes what it does not.
    if exposure::routes(context).first() == Some(object.reference())
        && let Some(wait) = out_of_turn(context)
    {
        return Reply::Wait(wait);
    }
    let live = context.live.get(object.reference());
    let question = Question {
        cluster: context.cluster.clone(),
        target: object.reference().clone(),
        content: compare::applied_digest(object),
        over: live.and_then(Object::resource_version).map(str::to_owned),
    };
    let answer = context.input.evidence.dry_runs.get(&question);
    let Some(answer) = answer.filter(|answer| answer.at >= context.since) else {
        return Reply::Asked(Need { question, object: Box::new(context.marked(object, role)) });
    };
    let reference = object.reference();
    match &answer.outcome {
        WriteOutcome::Done(Some(result)) => Reply::Allowed(result.clone()),
        WriteOutcome::Done(None) => Reply::Allowed(Box::new(object.clone())),
        WriteOutcome::Refused(why) => Reply::Refused(format!("{reference}: {why}")),
        WriteOutcome::Conflict { manager, fields } => Reply::Wait(Wait::new(
            Reason::FieldConflict,
            format!("{reference}: {manager} owns {} with other values", fields.join(", ")),
        )),
        WriteOutcome::Forbidden(why) => Reply::Wait(Wait::new(Reason::Forbidden, format!("{reference}: {why}"))),
        WriteOutcome::MissingKind(kind) => {
            Reply::Wait(Wait::new(Reason::CrdMissing, format!("the cluster does not serve {kind}")))
        }
        WriteOutcome::Stale(_) | WriteOutcome::Retriable(_) => {
            let why = format!("{reference}: the dry run is asked again");
            Reply::Wait(Wait::new(Reason::Evidence, why))
        }
    }
}

/// What taking a live object over would change beside our marks. What Flagger made is like what the layout `primary` makes, but
/// for two things that lead nobody elsewhere: its routes lead to copies of the Service, and copies have labels of their own.
fn taken_over(context: &Context<'_>, posture: &Posture, result: &Object, live: &Object) -> Vec<String> {
    let Some((copy, router)) = posture.naming.stable_service().zip(context.router()) else {
        return changes(result, live);
    };
    let set = context.facts().sets.get(&posture.stable.set);
    let is_copy = set.is_some_and(|set| layouts::copies(set, live.reference()));
    let compared = |object: &Object| {
        let mut object = routers::leftover::without_copies(router, object, &copy);
        if is_copy {
            section(object.value_mut(), &["metadata"]).retain(|part, _| part != "labels" && part != "annotations");
        }
        object
    };
    changes(&compared(result), &compared(live))
}

/// What a dry run would change of a live object beside our marks.
fn changes(result: &Object, live: &Object) -> Vec<String> {
    let reference = live.reference();
    let (result, live) = (comparable(result), comparable(live));
    let mut all: Vec<String> = compare::differs(&result, &live).iter().map(|d| format!("{reference}: {d}")).collect();
    all.extend(
        compare::differs(&live, &result).iter().filter(|d| d.found.is_none()).map(|d| format!("{reference}: {d}")),
    );
    all
}

/// What a person's tool has set of a live object and the manifests do not name: taking it over would remove it.
fn surplus(rendered: &Object, live: &Object) -> Vec<String> {
    let Some(theirs) = owned::updated_by(live, &CLIENT_SIDE) else { return Vec::new() };
    let theirs = Object::new(live.reference().clone(), canonical(&comparable(&theirs)));
    compare::differs(&theirs, rendered)
        .iter()
        .filter(|difference| {
            difference.found.is_none() && !is_derived(&theirs, &difference.pointer, &difference.wanted)
        })
        .map(|d| format!("{}: {} is {}, and the manifests do not have it", live.reference(), d.pointer, d.wanted))
        .collect()
}

/// Whether a field has the default that follows from its neighbours, so that no table has it: a tool's update owns it
/// although nobody set it (`SetDefaults_Container`, `SetDefaults_Service` and `SetDefaults_PersistentVolumeClaim` in
/// `pkg/apis/core/v1`, `SetDefaults_HorizontalPodAutoscaler` in `pkg/apis/autoscaling/v2`,
/// `Convert_apps_StatefulSetSpec_To_v1_StatefulSetSpec` in `pkg/apis/apps/v1`).
#[must_use]
pub fn is_derived(object: &Object, pointer: &str, wanted: &Value) -> bool {
    let Some((parent, field)) = pointer.rsplit_once('/') else { return false };
    let neighbour = |name| object.at(parent).and_then(|parent| parent.get(name));
    let is_claim = parent.strip_prefix("/spec/volumeClaimTemplates/").is_some_and(|item| !item.contains('/'));
    match field {
        "apiVersion" if is_claim => wanted == "v1",
        "kind" if is_claim => wanted == "PersistentVolumeClaim",
        "status" if is_claim => *wanted == json!({"phase": "Pending"}),
        "metrics" if object.reference().kind == Kind::HorizontalPodAutoscaler => {
            let target = json!({"type": "Utilization", "averageUtilization": 80});
            *wanted == json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}])
        }
        "targetPort" => neighbour("port") == Some(wanted),
        "serviceAccount" => neighbour("serviceAccountName") == Some(wanted),
        "imagePullPolicy" => {
            let image = neighbour("image").and_then(Value::as_str).unwrap_or_default();
            let name = image.rsplit('/').next().unwrap_or_default();
            let moving = !name.contains('@') && name.split_once(':').is_none_or(|(_, tag)| tag == "latest");
            wanted == if moving { "Always" } else { "IfNotPresent" }
        }
        _ => false,
    }
}

/// What of a live object people, or their tools, may have written.
#[must_use]
pub fn comparable(object: &Object) -> Object {
    let mut object = object.clone();
    if let Some(top) = object.value_mut().as_object_mut() {
        top.remove("status");
    }
    if let Some(metadata) = object.value_mut()["metadata"].as_object_mut() {
        metadata.retain(|key, _| matches!(key.as_str(), "name" | "namespace" | "labels" | "annotations"));
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.retain(|key, _| !key.starts_with(DOMAIN) && !volatile(key));
        }
        if metadata.get("annotations").and_then(Value::as_object).is_some_and(serde_json::Map::is_empty) {
            metadata.remove("annotations");
        }
    }
    object
}

/// Annotations that controllers and clients keep for themselves.
fn volatile(key: &str) -> bool {
    matches!(
        key,
        "kubectl.kubernetes.io/last-applied-configuration"
            | "deployment.kubernetes.io/revision"
            | "deprecated.daemonset.template.generation"
    )
}

/// That an object is ours, and Git does not know of it.
#[must_use]
pub fn lost(reference: &ObjectRef) -> Wait {
    let why = format!("{reference} carries our marks, but the state branch has no record of this rollout");
    Wait::new(Reason::StateLost, why)
}

/// The live objects that say that they are ours.
#[must_use]
pub fn ours<'a>(context: &Context<'a>) -> Vec<&'a ObjectRef> {
    let owned = context.live.objects.owned_by(context.owner);
    owned.map(|o| o.reference()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::fixtures::object;

    #[test]
    fn what_an_api_server_fills_in_for_claims_is_nobodys_wish() {
        let claims = |of_each: Value| {
            let mut claim = json!({"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}});
            claim.as_object_mut().unwrap().extend(of_each.as_object().unwrap().clone());
            json!({"spec": {"serviceName": "web", "volumeClaimTemplates": [claim]}})
        };
        let live = |of_each: Value| {
            let mut live = claims(of_each);
            live["metadata"] = json!({"managedFields": [{
                "manager": CLIENT_SIDE[0], "operation": "Update", "apiVersion": "apps/v1",
                "fieldsV1": {"f:spec": {"f:serviceName": {}, "f:volumeClaimTemplates": {}}},
            }]});
            object(Kind::StatefulSet, "web", live)
        };
        let rendered = object(Kind::StatefulSet, "web", claims(json!({})));
        let filled =
            |phase: &str| json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "status": {"phase": phase}});
        assert_eq!(surplus(&rendered, &live(filled("Pending"))), Vec::<String>::new());
        let found = surplus(&rendered, &live(filled("Bound")));
        assert!(found.len() == 1 && found[0].contains("/spec/volumeClaimTemplates/0/status is "), "{found:?}");
    }

    #[test]
    fn what_an_api_server_fills_in_for_an_autoscaler_is_nobodys_wish() {
        let wanted = json!({"spec": {"maxReplicas": 5, "scaleTargetRef": {"kind": "Deployment", "name": "web"}}});
        let live = |usage: u32| {
            let mut live = wanted.clone();
            let target = json!({"type": "Utilization", "averageUtilization": usage});
            live["spec"]["metrics"] = json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]);
            live["metadata"] = json!({"managedFields": [{
                "manager": CLIENT_SIDE[0], "operation": "Update", "apiVersion": "autoscaling/v2",
                "fieldsV1": {"f:spec": {"f:maxReplicas": {}, "f:metrics": {}, "f:scaleTargetRef": {}}},
            }]});
            object(Kind::HorizontalPodAutoscaler, "web", live)
        };
        let rendered = object(Kind::HorizontalPodAutoscaler, "web", wanted.clone());
        assert_eq!(surplus(&rendered, &live(80)), Vec::<String>::new());
        let found = surplus(&rendered, &live(60));
        assert!(found.len() == 1 && found[0].contains("/spec/metrics is "), "{found:?}");
    }
}
