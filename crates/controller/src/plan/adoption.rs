//! Adoption: what is live becomes the stable version, by a person's decision (design §6).
//!
//! The set that is made of it has the files of the set that main wants, so that going back to it undoes a change on main
//! file by file; what of an object the API server, or a controller, has filled in is in none of them.

use super::adopt::{self, Against, Bootstrap, is_derived};
use super::context::Context;
use super::draft::Draft;
use super::evidence::Need;
use super::input::Input;
use super::report::{Reason, Wait};
use crate::gate::decisions::Accepted;
use crate::manifest::canonical::canonical;
use crate::manifest::desired::{Rollout, Router, Set};
use crate::manifest::files::RepoPath;
use crate::manifest::ids::RunId;
use crate::manifest::object::{DOMAIN, Kind, Object, ObjectRef};
use crate::manifest::oid;
use crate::manifest::scaler;
use crate::manifest::set::{self, Item, SetFiles};
use crate::record::posture::{Directly, Naming, Posture, Role};
use crate::record::state::{Phase, Promoted, Rest};
use crate::workload::kinds::{service, stateful};
use crate::workload::routers::{self, Form};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What stands in a file of which nothing is live: it is a file all the same, as main may list it by its name.
const NOTHING: &str = "# Nothing of this file was live when the application was adopted.\n";

/// Tells people how to adopt what differs, if it can be.
pub fn offer(context: &Context<'_>, rollout: &Rollout, wait: Wait) -> Wait {
    if wait.reason != Reason::AdoptionDiffers {
        return wait;
    }
    let agree = "make main say what is live";
    match live_set(context, rollout) {
        Ok(set) => {
            let adopt = format!("tidegate adopt {} --live {}", rollout.id, set.id.short());
            Wait { live: Some(set.id), ..wait }.act(format!("{agree}, or take over what is live: {adopt}"))
        }
        Err(why) => wait.act(format!("{agree}; it cannot be adopted: {why}")),
    }
}

/// What is still in the way of an adoption: waits, and dry runs to be asked.
pub type InTheWay = (Vec<Wait>, Vec<Need>);

/// Follows a person's decision: what is live becomes the stable version, if it still is what the decision was about, and if the API
/// server says that nothing of it would change.
///
/// # Errors
/// What is in the way. The decision is not counted then.
pub fn adopt(draft: &mut Draft<'_>, rollout: &Rollout, posture: &Posture, accepted: Accepted) -> Result<(), InTheWay> {
    let differs = |why: String| (vec![Wait::new(Reason::AdoptionDiffers, why)], Vec::new());
    let set = Arc::new(live_set(&draft.context(&rollout.plan, None, None), rollout).map_err(differs)?);
    let stable = Role { set: set.id.clone(), ..posture.stable.clone() };
    let posture = Posture { stable, ..posture.clone() };
    let mut sets = draft.input.sets.clone();
    sets.insert(set.id.clone(), Arc::clone(&set));
    let input = Input { sets, ..draft.input.clone() };
    let context = Context { input: &input, ..draft.context(&rollout.plan, None, None) };
    match adopt::first_sight(&context, &posture, Against::ItsOwnLive) {
        Ok(Bootstrap::Clear) => {}
        Ok(Bootstrap::Wait(waits, needs)) => return Err((waits, needs)),
        Ok(Bootstrap::Refused(why)) => {
            return Err(differs(format!("the API server does not take what is live: {why}")));
        }
        Err(error) => return Err(differs(error.to_string())),
    }
    draft.count(accepted.consumed);
    draft.state.promoted = Some(Promoted {
        set: set.id.clone(),
        revision: set.revision.clone(),
        pods: set.pods.clone(),
        label: posture.stable.pods.clone(),
        run: RunId::zero(),
        commit: None,
        path: None,
        directly: Directly::new(),
        decided: None,
        at: draft.now(),
    });
    draft.allow(posture);
    draft.adopted = Some(set);
    draft.enter(Phase::Steady { how: Rest::Initialized, since: draft.now() }, "what is live is stable");
    Ok(())
}

/// What is live of a rollout's objects, as a set of manifests. What leads requests is as main wants it where it is absent:
/// without it no run could send any to a candidate. All else that is absent is left to the run.
///
/// # Errors
/// Why there is no such set, for people.
pub fn live_set(context: &Context<'_>, rollout: &Rollout) -> Result<Set, String> {
    if let Naming::Primary(_) = Naming::of(&rollout.plan) {
        return Err("with the layout primary stable's objects are copies of what the manifests say".to_owned());
    }
    let target = context.object(rollout.plan.target.kind.kind(), &rollout.plan.target.name);
    let Some(live) = context.live.get(&target) else { return Err(format!("there is no live {target}")) };
    fit(live)?;
    let route = rollout.plan.traffic.as_ref().map(|traffic| &traffic.router);
    let leads = |reference: &ObjectRef| {
        let service = route.and_then(Router::service).map(|service| context.object(Kind::Service, service));
        let route = route.and_then(|router| router.route()).map(|(kind, name)| context.object(kind, name));
        [service, route].into_iter().flatten().any(|needed| needed == *reference)
    };
    let mut files = SetFiles::new();
    let mut meant: BTreeMap<ObjectRef, Value> = BTreeMap::new();
    for (path, file) in &rollout.set.files {
        let one = SetFiles::from([(path.clone(), file.clone())]);
        let mut items: Vec<Item> = set::read(&one, None, context.namespace()).0.into_values().collect();
        items.sort_by_key(|item| item.node.mark);
        let mut here = Vec::new();
        for Item { object, .. } in items {
            let reference = object.reference().clone();
            let value = match context.live.get(&reference) {
                Some(live) => stripped(context, live, &object),
                None if leads(&reference) => object.value().clone(),
                None => continue,
            };
            here.push(value.clone());
            meant.insert(reference, value);
        }
        let bytes: Arc<[u8]> = text(path, &here).into_bytes().into();
        files.insert(path.clone(), (oid::blob(&bytes), bytes));
    }
    let set = set::of_files(files, context.namespace(), &rollout.plan.target)
        .map_err(|found| found.first().map_or_else(|| "main's set has no files".to_owned(), |d| d.found.clone()))?;
    if let Some(other) = set.objects.iter().find(|(name, object)| meant.get(*name) != Some(object.value())) {
        return Err(format!("{} cannot be written as a file", other.0));
    }
    led_to(context, rollout, &set)?;
    Ok(set)
}

/// A live target that no run could start from, or go back to.
fn fit(target: &Object) -> Result<(), String> {
    let reference = target.reference();
    let on_delete = target.text("/spec/updateStrategy/type") == Some("OnDelete");
    if reference.kind == Kind::StatefulSet && (on_delete || stateful::partition(target) > 0) {
        return Err(format!("by OnDelete, or a partition, of the live {reference} people choose which pods are new"));
    }
    if reference.kind == Kind::StatefulSet && stateful::replicas(target) == 0 {
        return Err(format!("the live {reference} has no pods by which a new version could be tried"));
    }
    let selects = target.at("/spec/selector").and_then(Value::as_object).is_some_and(|labels| !labels.is_empty());
    if reference.kind == Kind::Service && !selects && !service::is_alias(target) {
        return Err(format!("the live {reference} selects no pods: whose addresses are behind it nobody knows"));
    }
    Ok(())
}

/// A live route that does not lead to the rollout's Service would be split, and nobody would reach the candidate.
fn led_to(context: &Context<'_>, rollout: &Rollout, set: &Set) -> Result<(), String> {
    let Some(router) = rollout.plan.traffic.as_ref().map(|traffic| &traffic.router) else { return Ok(()) };
    let routes = routers::routes(router, context.namespace(), &rollout.plan.target.name);
    let Some(route) = routes.first().filter(|_| router.route().is_some()).and_then(|name| set.objects.get(name)) else {
        return Ok(());
    };
    let split = crate::record::posture::Split { weight: crate::manifest::ids::Percent::ALL, ..Default::default() };
    if routers::render(router, route, Form { split: &split, candidate: &set.pods, naming: context.naming }) == *route {
        let service = router.service().map(ToString::to_string).unwrap_or_default();
        return Err(format!("the live {} does not lead to Service {service}", route.reference()));
    }
    Ok(())
}

/// The documents of a file.
fn text(path: &RepoPath, objects: &[Value]) -> String {
    if objects.is_empty() {
        return NOTHING.to_owned();
    }
    if path.as_str().ends_with(".json")
        && let [one] = objects
    {
        return format!("{one:#}\n");
    }
    let document = |object: &Value| serde_yaml::to_string(object).unwrap_or_default();
    objects.iter().map(document).collect::<Vec<_>>().join("---\n")
}

/// A live object as people would have written it.
fn stripped(context: &Context<'_>, live: &Object, wanted: &Object) -> Value {
    let mut object = Object::new(live.reference().clone(), canonical(&adopt::comparable(live)));
    let mut derived = Vec::new();
    find_derived(&object, object.value(), &mut String::new(), &mut derived);
    for pointer in derived {
        take(object.value_mut(), &pointer);
    }
    let namespaced = wanted.at("/metadata/namespace").is_some();
    if !namespaced {
        take(object.value_mut(), "/metadata/namespace");
    }
    for place in ["/metadata", "/spec/template/metadata"] {
        for map in ["labels", "annotations"] {
            let pointer = format!("{place}/{map}");
            let Some(entries) = object.value_mut().pointer_mut(&pointer).and_then(Value::as_object_mut) else {
                continue;
            };
            entries.retain(|key, _| !key.starts_with(DOMAIN));
            if entries.is_empty() {
                take(object.value_mut(), &pointer);
            }
        }
    }
    let kind = live.reference().kind;
    if kind == Kind::Service {
        allotted(object.value_mut());
    } else if is_scaled(context, live) {
        take(object.value_mut(), "/spec/replicas");
    }
    sorted(object.value())
}

/// Takes from a Service what the API server has given to it.
pub fn allotted(service: &mut Value) {
    let headless = service.pointer("/spec/clusterIP").is_some_and(|ip| ip == "None");
    for field in ["clusterIP", "clusterIPs", "ipFamilies", "healthCheckNodePort"] {
        if !(headless && field == "clusterIP") {
            take(service, &format!("/spec/{field}"));
        }
    }
    if service.pointer("/spec/ipFamilyPolicy").is_some_and(|policy| policy == "SingleStack") {
        take(service, "/spec/ipFamilyPolicy");
    }
    for port in service.pointer_mut("/spec/ports").and_then(Value::as_array_mut).into_iter().flatten() {
        take(port, "/nodePort");
    }
}

/// Whether a live autoscaler chooses the size of an object.
fn is_scaled(context: &Context<'_>, live: &Object) -> bool {
    let reference = live.reference();
    let scalers = scaler::KINDS.into_iter().flat_map(|kind| context.live.of_kind(kind));
    let near = scalers.filter(|scaler| scaler.reference().namespace == reference.namespace);
    scaler::of(near, reference.kind, &reference.name).is_some()
}

/// The places of fields that follow from their neighbours, below `at`.
fn find_derived(object: &Object, value: &Value, at: &mut String, found: &mut Vec<String>) {
    let entries: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(key, v)| (key.replace('~', "~0").replace('/', "~1"), v)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(i, v)| (i.to_string(), v)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return,
    };
    for (key, inner) in entries {
        let length = at.len();
        at.push('/');
        at.push_str(&key);
        if is_derived(object, at, inner) {
            found.push(at.clone());
        } else {
            find_derived(object, inner, at, found);
        }
        at.truncate(length);
    }
}

/// Removes the field at a pointer.
fn take(value: &mut Value, pointer: &str) {
    let Some((parent, field)) = pointer.rsplit_once('/') else { return };
    if let Some(fields) = value.pointer_mut(parent).and_then(Value::as_object_mut) {
        fields.shift_remove(&field.replace("~1", "/").replace("~0", "~"));
    }
}

/// The same with all fields in order, so that equal objects make equal files.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields: BTreeMap<&String, &Value> = fields.iter().collect();
            Value::Object(fields.into_iter().map(|(key, inner)| (key.clone(), sorted(inner))).collect())
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}
