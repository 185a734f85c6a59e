//! Deleting objects, and what follows from it. Pure.
//!
//! What controllers do later in a real cluster (dependents, the content of namespaces) is [`World::collect_garbage`],
//! which the caller lets happen when it wants.

use super::asked::{ApiVerb, Asked};
use super::fields::FieldRefusal;
use super::options::How;
use super::resource::{RESOURCES, Resource, Trait};
use super::select::Selector;
use super::status::{self, Cause};
use super::store::{Happened, within};
use super::world::World;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Arc;

/// Holds an object until its dependents are gone.
const FOREGROUND: &str = "foregroundDeletion";
/// Holds an object until its dependents have forgotten it.
const ORPHAN: &str = "orphan";
/// How long a Pod that runs has to end.
const GRACE: i64 = 30;

/// What came of a deletion.
#[derive(Debug)]
pub(super) enum Gone {
    /// It is gone.
    Now(Arc<Value>),
    /// It is held.
    Later(Arc<Value>),
}

impl World {
    /// Deletes an object.
    pub(super) fn deleted(&mut self, asked: &Asked, how: &How, options: &Value) -> Result<Gone, FieldRefusal> {
        let policy = policy(options)?;
        let resource = asked.resource;
        let live = self.store.get(resource, &asked.namespace, &asked.name).cloned();
        let live = live.ok_or_else(|| status::not_found(resource, &asked.name))?;
        check_preconditions(resource, &asked.name, &live, &options["preconditions"])?;
        Ok(self.doom(resource, &live, policy, options, how.dry_run))
    }

    fn doom(
        &mut self,
        resource: &'static Resource,
        live: &Arc<Value>,
        policy: Option<&str>,
        options: &Value,
        dry_run: bool,
    ) -> Gone {
        let mut object = live.as_ref().clone();
        let finalizers = finalizers(&object, policy);
        let grace = self.grace(resource, live, options);
        let holds = !finalizers.is_empty() || grace > 0 || resource.kind == "Namespace";
        set_finalizers(&mut object, finalizers);
        let begins = object["metadata"]["deletionTimestamp"].is_null();
        let sooner = object["metadata"]["deletionGracePeriodSeconds"].as_i64().is_some_and(|before| grace < before);
        if begins || sooner {
            let end = self.now + chrono::TimeDelta::seconds(grace);
            let metadata = &mut object["metadata"];
            metadata["deletionTimestamp"] = end.to_rfc3339_opts(chrono::SecondsFormat::Secs, true).into();
            if resource.kind != "Namespace" {
                metadata["deletionGracePeriodSeconds"] = grace.into();
            }
            if let Some(generation) = metadata["generation"].as_i64().filter(|_| begins) {
                metadata["generation"] = (generation + 1).into();
            }
        }
        if resource.kind == "Namespace" {
            object["status"]["phase"] = "Terminating".into();
        }
        match (holds, dry_run) {
            (true, true) => Gone::Later(Arc::new(object)),
            (true, false) if object == **live => Gone::Later(live.clone()),
            (true, false) => Gone::Later(self.store.put(resource, object)),
            (false, true) => Gone::Now(live.clone()),
            (false, false) => {
                // Only what the kubelet ends is seen marked before it goes.
                let last = if resource.kind == "Pod" { object } else { live.as_ref().clone() };
                Gone::Now(self.store.remove(resource, &last))
            }
        }
    }

    /// How long the object may take: only Pods that run somewhere take time.
    fn grace(&self, resource: &Resource, live: &Value, options: &Value) -> i64 {
        let runs = !live["spec"]["nodeName"].as_str().unwrap_or_default().is_empty()
            && !matches!(live["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
        if resource.kind != "Pod" || !runs {
            return 0;
        }
        let asked = options["gracePeriodSeconds"].as_i64();
        asked.or_else(|| live["spec"]["terminationGracePeriodSeconds"].as_i64()).unwrap_or(GRACE).max(0)
    }

    /// Deletes what is selected; returns it.
    pub(super) fn delete_all(
        &mut self,
        asked: &Asked,
        how: &How,
        options: &Value,
        selector: &Selector,
    ) -> Result<Vec<Arc<Value>>, FieldRefusal> {
        let policy = policy(options)?;
        let found = self.list(asked.resource, &asked.namespace).filter(|object| selector.matches(object));
        let found: Vec<_> = found.cloned().collect();
        for object in &found {
            self.doom(asked.resource, object, policy, options, how.dry_run);
        }
        Ok(found)
    }

    /// Does what the garbage collector and the namespace controller would do by now, until nothing is left to do:
    /// dependents of what is gone go; owners that wait for them go; namespaces are emptied and go.
    pub fn collect_garbage(&mut self) {
        if !self.has_garbage() {
            self.collected = self.version();
            return;
        }
        while self.collect_dependents() || self.release_owners() || self.empty_namespaces() {}
        // Who waits for something that others do is looked at until it is done.
        if !self.everything().any(|(_, object)| waits(object)) {
            self.collected = self.version();
        }
    }

    /// Whether something may have to be collected since that was done last: somebody waits for it, or is new without an
    /// owner, or has lost one.
    fn has_garbage(&self) -> bool {
        let mut gone = HashSet::new();
        for resource in RESOURCES {
            let Some(collection) = self.store.collection(resource) else { continue };
            let Some(changes) = collection.since(self.collected) else { return true };
            for change in changes {
                let object = &change.object;
                if change.happened == Happened::Deleted {
                    gone.insert(uid(object));
                } else if waits(object) || self.is_orphan(object) {
                    return true;
                }
            }
        }
        !gone.is_empty() && self.everything().any(|(_, object)| owners(object).any(|owner| gone.contains(owner)))
    }

    /// Whether an object has owners, and none of them where it says.
    fn is_orphan(&self, object: &Value) -> bool {
        let owners = object["metadata"]["ownerReferences"].as_array().map_or(&[][..], Vec::as_slice);
        let is_there = |owner: &Value| {
            let text = |key: &str| owner[key].as_str().unwrap_or_default();
            let resource = Resource::of_kind(text("apiVersion"), text("kind"))?;
            let near = if resource.is(Trait::ClusterWide) { None } else { object["metadata"]["namespace"].as_str() };
            self.store.get(resource, near.unwrap_or_default(), text("name")).filter(|found| uid(found) == text("uid"))
        };
        !owners.is_empty() && !owners.iter().any(|owner| is_there(owner).is_some())
    }

    /// Deletes objects whose owners are all gone or wait for them. Returns whether there were any.
    fn collect_dependents(&mut self) -> bool {
        // Who stays: those that are gone, or wait for their dependents, are not among them.
        let (mut staying, mut waiting) = (HashSet::new(), HashSet::new());
        for (_, object) in self.everything() {
            if holds(object, FOREGROUND) {
                waiting.insert(uid(object))
            } else {
                staying.insert(uid(object))
            };
        }
        let doomed = |object: &Value| {
            let mut owners = owners(object).peekable();
            owners.peek().is_some()
                && object["metadata"]["deletionTimestamp"].is_null()
                && owners.all(|owner| !staying.contains(owner))
        };
        let policy = |object: &Value| {
            let awaited = owners(object).any(|owner| waiting.contains(owner));
            if awaited { "Foreground" } else { "Background" }
        };
        let doomed = self.everything().filter(|(_, object)| doomed(object));
        let doomed: Vec<_> = doomed.map(|(r, object)| (r, object.clone(), policy(object))).collect();
        for (resource, object, policy) in &doomed {
            self.doom(resource, object, Some(policy), &json!({}), false);
        }
        !doomed.is_empty()
    }

    /// Lets go of owners whose dependents are gone, or shall be left alone. Returns whether there were any.
    fn release_owners(&mut self) -> bool {
        let held = |object: &Value| holds(object, FOREGROUND) || holds(object, ORPHAN);
        let held: Vec<_> =
            self.everything().filter(|(_, object)| held(object)).map(|(r, object)| (r, object.clone())).collect();
        let mut any = false;
        for (resource, owner) in held {
            let id = uid(&owner).to_owned();
            let dependents: Vec<_> = self
                .everything()
                .filter(|(_, object)| owners(object).any(|owner| owner == id))
                .map(|(r, object)| (r, object.clone()))
                .collect();
            if holds(&owner, ORPHAN) {
                for (resource, dependent) in &dependents {
                    self.store.put(resource, without_owner(dependent, &id));
                }
            } else if dependents.iter().any(|(_, dependent)| blocks(dependent, &id)) {
                continue;
            }
            let mut object = owner.as_ref().clone();
            let kept = list(&object, "finalizers").into_iter().filter(|f| *f != FOREGROUND && *f != ORPHAN).collect();
            set_finalizers(&mut object, kept);
            if list(&object, "finalizers").is_empty() {
                self.store.remove(resource, &object);
            } else {
                self.store.put(resource, object);
            }
            any = true;
        }
        any
    }

    /// Empties namespaces that are being deleted, and removes those that are empty. Returns whether there were any.
    fn empty_namespaces(&mut self) -> bool {
        let namespaces = Resource::at("v1", "namespaces").expect("listed because its row is in the table");
        let going = |object: &&Arc<Value>| !object["metadata"]["deletionTimestamp"].is_null();
        let going: Vec<_> = self.list(namespaces, "").filter(going).cloned().collect();
        let mut any = false;
        for namespace in going {
            let name = namespace["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let mut left = false;
            for resource in RESOURCES.iter().filter(|resource| !resource.is(Trait::ClusterWide)) {
                let objects: Vec<_> = self.list(resource, &name).cloned().collect();
                for object in objects {
                    let before = self.store.version();
                    // Nothing is left to run in, so nothing is waited for.
                    self.doom(resource, &object, Some("Background"), &json!({"gracePeriodSeconds": 0}), false);
                    any |= self.store.version() != before;
                }
                left |= self.list(resource, &name).next().is_some();
            }
            if !left {
                self.store.remove(namespaces, &namespace);
                any = true;
            }
        }
        any
    }

    fn everything(&self) -> impl Iterator<Item = (&'static Resource, &Arc<Value>)> {
        RESOURCES.iter().flat_map(|resource| {
            let objects = self.store.collection(resource).map(|collection| within(collection.objects(), ""));
            objects.into_iter().flatten().map(move |(_, object)| (resource, object))
        })
    }
}

fn policy(options: &Value) -> Result<Option<&str>, FieldRefusal> {
    let refused = |cause| Err(status::invalid_options("DeleteOptions", cause));
    let policy = options["propagationPolicy"].as_str();
    let Some(policy) = policy else {
        // The older way to say it.
        return Ok(options["orphanDependents"].as_bool().map(|orphan| if orphan { "Orphan" } else { "Background" }));
    };
    if !options["orphanDependents"].is_null() {
        let why = "orphanDependents and deletionPropagation cannot be both set";
        return refused(Cause::invalid("propagationPolicy", &json!(policy), why));
    }
    if !matches!(policy, "Foreground" | "Background" | "Orphan") {
        let known = ["Foreground", "Background", "Orphan", "nil"];
        return refused(Cause::unsupported("propagationPolicy", &json!(policy), &known));
    }
    Ok(Some(policy))
}

fn check_preconditions(resource: &Resource, name: &str, live: &Value, wanted: &Value) -> Result<(), FieldRefusal> {
    let [id, version] = ["uid", "resourceVersion"].map(|key| wanted[key].as_str());
    let found = |key: &str| live["metadata"][key].as_str().unwrap_or_default();
    if let Some(id) = id.filter(|id| *id != found("uid")) {
        let why = format!(
            "the UID in the precondition ({id}) does not match the UID in record ({}). The object might have been \
             deleted and then recreated",
            found("uid")
        );
        return Err(status::delete_conflict(resource, name, &why));
    }
    if let Some(version) = version.filter(|version| *version != found("resourceVersion")) {
        let why = format!(
            "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record ({}). The \
             object might have been modified",
            found("resourceVersion")
        );
        return Err(status::delete_conflict(resource, name, &why));
    }
    Ok(())
}

/// The finalizers of an object once its deletion was asked for in that way.
fn finalizers(object: &Value, policy: Option<&str>) -> Vec<String> {
    let mut finalizers = list(object, "finalizers");
    let Some(policy) = policy else { return finalizers };
    finalizers.retain(|finalizer| finalizer != FOREGROUND && finalizer != ORPHAN);
    match policy {
        "Foreground" => finalizers.push(FOREGROUND.to_owned()),
        "Orphan" => finalizers.push(ORPHAN.to_owned()),
        _ => {}
    }
    finalizers
}

fn set_finalizers(object: &mut Value, finalizers: Vec<String>) {
    if !finalizers.is_empty() {
        object["metadata"]["finalizers"] = json!(finalizers);
    } else if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("finalizers");
    }
}

fn list(object: &Value, key: &str) -> Vec<String> {
    let items = object["metadata"][key].as_array().into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Whether an object that is being deleted is held by that finalizer.
fn holds(object: &Value, finalizer: &str) -> bool {
    let metadata = &object["metadata"];
    !metadata["deletionTimestamp"].is_null()
        && metadata["finalizers"].as_array().is_some_and(|finalizers| finalizers.iter().any(|f| f == finalizer))
}

/// Whether an object that is being deleted waits for others to go.
fn waits(object: &Value) -> bool {
    let going = !object["metadata"]["deletionTimestamp"].is_null();
    going && (object["kind"] == "Namespace" || holds(object, FOREGROUND) || holds(object, ORPHAN))
}

fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}

fn owners(object: &Value) -> impl Iterator<Item = &str> {
    let owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    owners.filter_map(|owner| owner["uid"].as_str())
}

/// Whether a dependent keeps its owner from going.
fn blocks(dependent: &Value, owner: &str) -> bool {
    let owners = dependent["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    owners.into_iter().any(|reference| reference["uid"] == owner && reference["blockOwnerDeletion"] == true)
}

fn without_owner(dependent: &Value, owner: &str) -> Value {
    let mut object = dependent.clone();
    if let Some(owners) = object["metadata"]["ownerReferences"].as_array_mut() {
        owners.retain(|reference| reference["uid"] != owner);
        if owners.is_empty() {
            object["metadata"].as_object_mut().map(|metadata| metadata.remove("ownerReferences"));
        }
    }
    object
}

/// The answer to a deletion.
pub(super) fn answer(asked: &Asked, gone: &Gone) -> Arc<Value> {
    let object = match gone {
        Gone::Later(object) => return object.clone(),
        Gone::Now(object) if asked.resource.is(Trait::ShowsDeleted) => return object.clone(),
        Gone::Now(object) => object,
    };
    debug_assert_eq!(asked.verb, ApiVerb::Delete);
    let mut details = status::about(asked.resource, &asked.name);
    details["uid"] = object["metadata"]["uid"].clone();
    let mut answer = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"});
    answer["details"] = details;
    Arc::new(answer)
}
