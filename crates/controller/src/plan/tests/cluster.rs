//! The small world's cluster: an API server with server-side apply, and controllers that answer at once.

use super::super::action::{Action, Verb};
use super::super::evidence::Answer;
use super::manifests::{id, object};
use super::world::{Gateway, LABEL, MANAGER, Pods, World};
use crate::manifest::object::{Kind, Object, ObjectRef, items};
use crate::record::state::{RoleName, Time};
use crate::workload::layouts::pod_labels;
use crate::workload::live::{Expects, WriteOutcome};
use crate::workload::owned::owned_by;
use crate::workload::selector::serves;
use serde_json::{Value, json};
use std::sync::Arc;

impl World {
    /// A hand changes a live object.
    pub(super) fn edit(&mut self, kind: Kind, name: &str, change: impl FnOnce(&mut Value)) {
        let reference = ObjectRef { kind, namespace: id().namespace, name: name.parse().expect("a name") };
        let mut object = (**self.live.objects.get(&reference).expect("there")).clone();
        change(object.value_mut());
        self.put(object);
    }

    /// A hand sets an annotation under a field manager of its own, and owns it from then on.
    pub(super) fn annotate(&mut self, kind: Kind, name: &str, key: &str, to: &str) {
        self.edit(kind, name, |object| {
            object["metadata"]["annotations"][key] = to.into();
            let managed = object["metadata"]["managedFields"].as_array_mut().expect("managed fields");
            let field = format!("f:{key}");
            for entry in managed.iter_mut() {
                if let Some(owned) = entry.pointer_mut("/fieldsV1/f:metadata/f:annotations") {
                    owned.as_object_mut().expect("a map").remove(&field);
                }
            }
            let fields = json!({"f:metadata": {"f:annotations": {field: {}}}});
            managed.push(json!({"manager": "hand", "operation": "Update", "fieldsV1": fields}));
        });
    }

    /// A hand deletes a live object.
    pub(super) fn remove(&mut self, kind: Kind, name: &str) {
        let reference = ObjectRef { kind, namespace: id().namespace, name: name.parse().expect("a name") };
        self.live.objects.remove(&reference).expect("there");
    }

    pub(super) fn put(&mut self, mut object: Object) {
        self.versions += 1;
        let reference = object.reference().clone();
        let old = self.live.get(&reference);
        let generation = match old {
            Some(old) if old.value()["spec"] == object.value()["spec"] => old.generation().unwrap_or(1),
            Some(old) => old.generation().unwrap_or(1) + 1,
            None => 1,
        };
        let uid = old.and_then(Object::uid).map_or_else(|| format!("uid-{}", self.versions), str::to_owned);
        let metadata = &mut object.value_mut()["metadata"];
        metadata["generation"] = generation.into();
        metadata["uid"] = uid.into();
        metadata["resourceVersion"] = self.versions.to_string().into();
        self.live.objects.insert(reference, Arc::new(object));
    }

    pub(super) fn dry_run(&self, object: &Object) -> WriteOutcome {
        if let Some(outcome) = &self.outage {
            return outcome.clone();
        }
        let image = object.text("/spec/template/spec/containers/0/image").unwrap_or_default();
        if self.refused_images.contains(image) {
            return WriteOutcome::Refused(format!("admission webhook denied the request: {image}"));
        }
        if let Some(label) = object.label(LABEL).filter(|label| self.refused_labels.contains(*label)) {
            return WriteOutcome::Refused(format!("admission webhook denied the request: {LABEL}={label}"));
        }
        WriteOutcome::Done(Some(Box::new(self.merged(object))))
    }

    fn merged(&self, object: &Object) -> Object {
        let Some(live) = self.live.get(object.reference()) else {
            return with_fields(object.clone(), object, self.now);
        };
        let mut merged = live.value().clone();
        if let Some(owned) = owned_by(live, MANAGER) {
            remove(&mut merged, owned.value(), object.value());
        }
        merge(&mut merged, object.value());
        with_fields(Object::new(object.reference().clone(), merged), object, self.now)
    }

    /// Server-side apply and deletes, with their preconditions; says whether it was done.
    pub(super) fn write(&mut self, action: &Action) -> bool {
        let live = self.live.get(action.verb.target());
        let found = (live.and_then(Object::uid), live.and_then(Object::resource_version));
        let stale = match action.verb.expects() {
            Expects::Absent => live.is_some(),
            Expects::Uid(uid) => found.0 != Some(uid),
            Expects::Version { uid, resource_version } => found != (Some(uid), Some(resource_version)),
        };
        if stale {
            self.log.push(format!("stale: {}", action.why));
            return false;
        }
        match &action.verb {
            Verb::Apply { object, .. } => match self.dry_run(object) {
                WriteOutcome::Done(Some(merged)) => self.put(*merged),
                outcome @ (WriteOutcome::Done(None)
                | WriteOutcome::Stale(_)
                | WriteOutcome::Conflict { .. }
                | WriteOutcome::Refused(_)
                | WriteOutcome::MissingKind(_)
                | WriteOutcome::Forbidden(_)
                | WriteOutcome::Retriable(_)) => {
                    let digest = object.annotation(crate::manifest::object::APPLIED).unwrap_or_default().to_owned();
                    let key = (object.reference().clone(), digest);
                    self.evidence.writes.insert(key, Answer { outcome, at: self.now });
                    return false;
                }
            },
            Verb::Migrate { .. } => {}
            Verb::CopySecret(copy) => {
                if !self.copy_secret(copy) {
                    return false;
                }
            }
            Verb::Delete { target, .. } => {
                self.live.objects.remove(target);
            }
        }
        self.evidence.writes.retain(|(object, _), _| object != action.verb.target());
        true
    }

    /// A Deployment's number of pods is changed through its subresource `scale`, and belongs to whoever does that from then on.
    pub(super) fn scale(&mut self, name: &str, pods: u32) {
        self.edit(Kind::Deployment, name, |deployment| {
            deployment["spec"]["replicas"] = pods.into();
            let managed = &mut deployment["metadata"]["managedFields"];
            for entry in managed.as_array_mut().into_iter().flatten() {
                if let Some(spec) = entry.pointer_mut("/fieldsV1/f:spec").and_then(Value::as_object_mut) {
                    spec.remove("f:replicas");
                }
            }
            let fields = json!({"f:spec": {"f:replicas": {}}});
            let entry = json!({"manager": "scaler", "operation": "Update", "subresource": "scale", "fieldsV1": fields});
            managed.as_array_mut().expect("managed fields").push(entry);
        });
    }

    /// Autoscalers keep what has pods between their bounds.
    fn scalers(&mut self) {
        let scalers: Vec<Object> = self.live.of_kind(Kind::HorizontalPodAutoscaler).cloned().collect();
        for scaler in scalers {
            let name = scaler.text("/spec/scaleTargetRef/name").expect("a name").to_owned();
            let Some(pods) = self.get(Kind::Deployment, &name).map(|d| d.int("/spec/replicas").unwrap_or(1)) else {
                continue;
            };
            let bound = |field: &str| scaler.int(&format!("/spec/{field}")).unwrap_or(1);
            let wanted = pods.clamp(bound("minReplicas"), bound("maxReplicas"));
            if pods != 0 && pods != wanted {
                self.scale(&name, u32::try_from(wanted).expect("a count"));
            }
        }
    }

    /// Autoscaler, Deployment, endpoint and gateway controllers catch up.
    pub(super) fn controllers(&mut self) {
        self.scalers();
        let deployments: Vec<Object> = self.live.of_kind(Kind::Deployment).cloned().collect();
        let workload = self.workload(RoleName::Stable);
        for mut deployment in deployments {
            let image = deployment.text("/spec/template/spec/containers/0/image").unwrap_or_default().to_owned();
            let stable = deployment.reference().name.as_str() == workload;
            let stuck = self.behaviour.get(&image) == Some(&Pods::Stuck) || (stable && self.only_stable_stuck);
            let replicas = deployment.int("/spec/replicas").unwrap_or(1);
            let seen = deployment.int("/status/observedGeneration") == deployment.generation();
            let (updated, ready) = match (stuck, self.slow && !seen) {
                (true, _) => (replicas, 0),
                (false, true) => (0, replicas.min(deployment.int("/status/readyReplicas").unwrap_or(0))),
                (false, false) => (replicas, replicas),
            };
            let ready = (ready - if stable { self.lost_stable } else { self.lost }).max(0);
            let mut status = json!({
                "observedGeneration": deployment.generation(), "replicas": replicas, "updatedReplicas": updated,
                "readyReplicas": ready, "availableReplicas": ready,
            });
            if let Some(conditions) = deployment.at("/status/conditions") {
                status["conditions"] = conditions.clone();
            }
            if deployment.at("/status") != Some(&status) {
                deployment.value_mut()["status"] = status;
                self.put(deployment);
            }
        }
        let services: Vec<Object> = self.live.of_kind(Kind::Service).cloned().collect();
        self.live.objects.remove_kind(Kind::EndpointSlice);
        for service in services {
            let name = service.reference().name.clone();
            let address = |i| json!({"addresses": [format!("10.0.0.{i}")], "conditions": {"ready": true}});
            let endpoints: Vec<Value> =
                (usize::from(self.lagging)..self.ready_behind(name.as_str())).map(address).collect();
            let slice = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
                "metadata": {"name": format!("{name}-x"), "labels": {"kubernetes.io/service-name": name.as_str()}},
                "endpoints": endpoints});
            let slice = object(slice);
            self.live.objects.insert(slice.reference().clone(), Arc::new(slice));
        }
        self.gateway();
    }

    /// The ready pods that a Service selects.
    pub(super) fn ready_behind(&self, service: &str) -> usize {
        if self.lost_to.as_deref() == Some(service) {
            return 0;
        }
        let ready = |d: &Object| usize::try_from(d.int("/status/readyReplicas").unwrap_or(0)).expect("a count");
        self.behind(service).map(ready).sum()
    }

    /// The Deployments whose pods a Service selects.
    pub(super) fn behind(&self, service: &str) -> impl Iterator<Item = &Object> {
        let selector = self.get(Kind::Service, service).map(|service| service.at("/spec/selector").cloned());
        self.live
            .of_kind(Kind::Deployment)
            .filter(move |d| selector.as_ref().is_some_and(|selector| serves(selector.as_ref(), &pod_labels(d))))
    }

    fn gateway(&mut self) {
        let routes: Vec<Object> = self.live.of_kind(Kind::HttpRoute).cloned().collect();
        for mut route in routes {
            let host = route.text("/spec/hostnames/0");
            let refused = match self.gateway {
                Gateway::Off => continue,
                Gateway::Refuse => Some("UnsupportedValue"),
                Gateway::Bar(None) => Some("NotAllowedByListeners"),
                Gateway::Bar(Some(own)) if host.is_some_and(|host| host != own) => Some("NoMatchingListenerHostname"),
                Gateway::Resolves if !self.resolves(&route) => Some("BackendNotFound"),
                Gateway::On | Gateway::Resolves | Gateway::Bar(Some(_)) => None,
            };
            let condition = |kind: &str| {
                let refused = refused.filter(|why| match *why {
                    "UnsupportedValue" => true,
                    why => (kind == "ResolvedRefs") == (why == "BackendNotFound"),
                });
                json!({"type": kind, "status": if refused.is_none() { "True" } else { "False" }, "reason": refused.unwrap_or(kind),
                "message": "", "observedGeneration": route.generation()})
            };
            let status = json!({"parents": [{"parentRef": {"name": "public"}, "controllerName": "test",
                "conditions": [condition("Accepted"), condition("ResolvedRefs")]}]});
            if route.at("/status") != Some(&status) {
                route.value_mut()["status"] = status;
                self.put(route);
            }
        }
        self.tables();
    }

    /// Whether all Services are there that a route leads to.
    fn resolves(&self, route: &Object) -> bool {
        let mut refs = items(&route.value()["spec"], "rules").flat_map(|rule| items(rule, "backendRefs"));
        refs.all(|one| one["name"].as_str().is_some_and(|name| self.get(Kind::Service, name).is_some()))
    }

    /// What Gloo says of tables.
    fn tables(&mut self) {
        let said = match self.gateway {
            Gateway::Off => return,
            Gateway::Refuse | Gateway::Bar(_) => json!({"state": "Rejected", "reason": "no such thing"}),
            Gateway::On | Gateway::Resolves => json!({"state": "Accepted", "reason": ""}),
        };
        let status = json!({"statuses": {"gloo-system": said}});
        let tables: Vec<Object> = self.live.of_kind(Kind::RouteTable).cloned().collect();
        for mut table in tables.into_iter().filter(|table| table.at("/status") != Some(&status)) {
            table.value_mut()["status"] = status.clone();
            self.put(table);
        }
    }
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

fn remove(from: &mut Value, owned: &Value, wanted: &Value) {
    let (Some(from), Some(owned)) = (from.as_object_mut(), owned.as_object()) else { return };
    for (key, value) in owned {
        match wanted.get(key) {
            None => {
                from.remove(key);
            }
            Some(wanted) => {
                if let Some(inner) = from.get_mut(key) {
                    remove(inner, value, wanted);
                }
            }
        }
    }
}

/// Records the fields of an apply as ours: maps by key, lists as a whole.
fn with_fields(mut merged: Object, applied: &Object, at: Time) -> Object {
    let mut fields = fields_of(applied.value());
    for key in ["f:apiVersion", "f:kind"] {
        fields.as_object_mut().expect("a map").remove(key);
    }
    if let Some(metadata) = fields.get_mut("f:metadata").and_then(Value::as_object_mut) {
        for key in ["f:name", "f:namespace"] {
            metadata.remove(key);
        }
    }
    merged.value_mut()["metadata"]["managedFields"] = json!([{"manager": MANAGER, "operation": "Apply",
        "time": at.to_rfc3339(), "apiVersion": applied.reference().kind.api_version(), "fieldsType": "FieldsV1", "fieldsV1": fields}]);
    merged
}

fn fields_of(value: &Value) -> Value {
    match value.as_object() {
        Some(map) => {
            map.iter().map(|(k, v)| (format!("f:{k}"), fields_of(v))).collect::<serde_json::Map<_, _>>().into()
        }
        None => json!({}),
    }
}
