//! The same write to the real API server and to the simulated rules of field ownership, and what differs.

use crate::support::cluster::{Bed, CALM};
use crate::support::gateway::Mode;
use chrono::TimeDelta;
use http_body_util::BodyExt as _;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::PostParams;
use kube::client::Body;
use kube::{Api, Client};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use tidegate::manifest::kinds::Schema;
use tidegate::record::state::Time;
use tidegate::world::kube_api::fields::{FieldWriter, Operation, write};
use tokio::sync::RwLockReadGuard;

/// What the API server alone writes, and what it allots from its own pools.
const ALLOTTED: [&str; 8] = [
    "/metadata/uid",
    "/metadata/resourceVersion",
    "/metadata/generation",
    "/metadata/creationTimestamp",
    "/spec/clusterIP",
    "/spec/clusterIPs",
    "/spec/ipFamilies",
    "/spec/ipFamilyPolicy",
];

/// How something is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    Apply,
    Force,
    Create,
    /// The live object with the body merged in, as a whole.
    Replace,
    /// The body, as a merge patch.
    Merge,
}

/// One write.
#[derive(Debug, Clone)]
pub(super) struct Write {
    pub(super) manager: &'static str,
    pub(super) how: How,
    pub(super) subresource: Option<&'static str>,
    /// Without apiVersion, kind, name and namespace.
    pub(super) body: Value,
}

impl Write {
    pub(super) fn new(manager: &'static str, how: How, body: Value) -> Self {
        Self { manager, how, subresource: None, body }
    }

    pub(super) fn status(manager: &'static str, how: How, body: Value) -> Self {
        Self { subresource: Some("status"), ..Self::new(manager, how, body) }
    }
}

/// One object, on both sides.
pub(super) struct Twin {
    client: Client,
    schema: &'static Schema,
    collection: String,
    namespace: String,
    name: String,
    live: Option<Value>,
    /// See [`hollow`].
    hollow: bool,
    now: Time,
}

/// A namespace on a real API server where nobody else writes.
pub(super) struct Place {
    client: Client,
    namespace: String,
    /// As long as there is one, that server forgets nothing.
    _calm: RwLockReadGuard<'static, ()>,
}

impl Place {
    pub(super) async fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let (bed, calm) = (Bed::quiet().await, CALM.read().await);
        let client = bed.client().await;
        let namespace = format!("twin-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        bed.gateway.modes.set(&namespace, Mode::Off);
        let object = serde_json::from_value(json!({"metadata": {"name": namespace}})).unwrap();
        Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &object).await.unwrap();
        Self { client, namespace, _calm: calm }
    }

    /// An object that is not there yet.
    pub(super) fn twin(&self, api_version: &str, kind: &str, plural: &str, name: &str) -> Twin {
        let root = if api_version.contains('/') { "apis" } else { "api" };
        Twin {
            client: self.client.clone(),
            schema: Schema::of(api_version, kind).unwrap(),
            collection: format!("/{root}/{api_version}/namespaces/{}/{plural}", self.namespace),
            namespace: self.namespace.clone(),
            name: name.to_owned(),
            live: None,
            hollow: false,
            now: Time::UNIX_EPOCH,
        }
    }
}

impl Twin {
    /// Writes on both sides; what differs, as text. Both sides go on from what the real one is then.
    pub(super) async fn write(&mut self, one: &Write) -> Result<(), String> {
        let body = self.body(one);
        let (code, real) = self.really(one, &body).await;
        if let Some(now) = latest(&real) {
            self.now = self.now.max(now);
        }
        let operation = match one.how {
            How::Apply => Operation::Apply { force: false },
            How::Force => Operation::Apply { force: true },
            How::Create | How::Replace | How::Merge => Operation::Update,
        };
        let sent = match (one.how, &self.live) {
            (How::Merge, Some(live)) => merged(live, &body),
            _ => body,
        };
        let writer = FieldWriter { manager: one.manager, operation, subresource: one.subresource, now: self.now };
        let outcome = write(self.schema, self.live.as_ref(), &sent, &writer);
        let mut differences = String::new();
        self.hollow |= self.schema.is_custom() && hollow(&sent);
        if code < 300 {
            match &outcome {
                Ok(written) => {
                    let mut mine = written.object.clone();
                    for pointer in ALLOTTED {
                        put(&mut mine, pointer, real.pointer(pointer).cloned());
                    }
                    read_twice(&mut mine, &real, self.now);
                    diff(&mine, &real, "", &mut differences);
                    let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
                    let changed = self.live.as_ref().is_none_or(|live| version(live) != version(&real));
                    if changed != written.changed && !self.hollow {
                        writeln!(
                            differences,
                            "changed: sim {}, real {changed}\nlive {}\nreal {real}",
                            written.changed,
                            self.live.clone().unwrap_or_default()
                        )
                        .unwrap();
                    }
                }
                Err(refusal) => writeln!(differences, "sim refuses: {}\nreal does not", refusal.status()).unwrap(),
            }
            self.live = Some(real);
        } else {
            match &outcome {
                Ok(_) if code == 422 && not_validated(&real) => {}
                Ok(_) => writeln!(differences, "real refuses: {real}\nsim does not").unwrap(),
                Err(_) if code == 422 && not_validated(&real) => {}
                Err(refusal) => diff(&sorted(refusal.status()), &sorted(real), "", &mut differences),
            }
        }
        if differences.is_empty() { Ok(()) } else { Err(differences) }
    }

    /// Runs a story to its end; every step that differs, with what was written.
    pub(super) async fn run(&mut self, story: &[Write]) -> Vec<String> {
        let mut all = Vec::new();
        for (step, one) in story.iter().enumerate() {
            if let Err(why) = self.write(one).await {
                all.push(format!("{} {} step {step}: {one:?}\n{why}", self.schema.kind(), self.name));
            }
        }
        all
    }

    /// What is sent.
    fn body(&self, one: &Write) -> Value {
        let mut body = match (one.how, &self.live) {
            (How::Replace, Some(live)) => merged(live, &one.body),
            _ => one.body.clone(),
        };
        if one.how != How::Merge {
            let metadata = json!({"name": self.name, "namespace": self.namespace});
            let object =
                json!({"apiVersion": self.schema.api_version(), "kind": self.schema.kind(), "metadata": metadata});
            body = merged(&object, &body);
        }
        body
    }

    async fn really(&self, one: &Write, body: &Value) -> (u16, Value) {
        let part = one.subresource.map(|part| format!("/{part}")).unwrap_or_default();
        let object = format!("{}/{}{part}", self.collection, self.name);
        let (method, path, kind) = match one.how {
            How::Create => ("POST", self.collection.clone(), "application/json"),
            How::Replace => ("PUT", object, "application/json"),
            How::Merge => ("PATCH", object, "application/merge-patch+json"),
            How::Apply | How::Force => ("PATCH", object, "application/apply-patch+yaml"),
        };
        let force = if one.how == How::Force { "&force=true" } else { "" };
        let request = http::Request::builder()
            .method(method)
            .uri(format!("{path}?fieldManager={}{force}", one.manager))
            .header("content-type", kind)
            .body(Body::from(body.to_string().into_bytes()))
            .unwrap();
        let response = self.client.send(request).await.unwrap();
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (code, serde_json::from_slice(&bytes).unwrap())
    }
}

/// A known difference: the API server stores a custom resource with the empty maps and lists of its metadata, but never
/// shows them, so that the next write always changes what is stored.
fn hollow(sent: &Value) -> bool {
    let metadata = sent["metadata"].as_object().unwrap();
    let empty = |value: &Value| *value == json!({}) || *value == json!([]);
    metadata.iter().any(|(key, value)| key != "managedFields" && empty(value))
}

/// Known differences: what validation refuses there and is not simulated. The object stays as it is on both sides.
const NOT_VALIDATED: [(&str, &str); 6] = [
    ("may not specify more than 1 ", "what excludes what in a pod is not looked at"),
    (".volumeMounts[0].name: Not found", "references inside of a pod are not followed"),
    (".port: Invalid value: 0", "ports of probes are not looked at"),
    ("HorizontalPodAutoscaler.autoscaling ", "no rule of scalers is simulated"),
    ("EndpointSlice.discovery.k8s.io ", "no rule of endpoint slices is simulated"),
    ("HTTPRoute.gateway.networking.k8s.io ", "required fields, enums and rules in CEL of a CRD are not looked at"),
];

fn not_validated(status: &Value) -> bool {
    let message = status["message"].as_str().unwrap_or_default();
    NOT_VALIDATED.iter().any(|(sign, _why)| message.contains(sign))
}

/// A merge patch (RFC 7386).
pub(super) fn merged(target: &Value, patch: &Value) -> Value {
    let Value::Object(patch) = patch else { return patch.clone() };
    let mut result = target.as_object().cloned().unwrap_or_default();
    for (key, value) in patch {
        if value.is_null() {
            result.shift_remove(key);
        } else {
            let inner = merged(result.get(key).unwrap_or(&Value::Null), value);
            result.insert(key.clone(), inner);
        }
    }
    Value::Object(result)
}

/// The latest time in an object's entries.
fn latest(object: &Value) -> Option<Time> {
    let entries = object.pointer("/metadata/managedFields")?.as_array()?;
    let times = entries.iter().filter_map(|entry| entry["time"].as_str()?.parse().ok());
    times.max()
}

/// The API server reads its clock twice in a first apply: what was there before gets its entry first. A second may end between.
fn read_twice(mine: &mut Value, real: &Value, now: Time) {
    let before = |object: &Value| {
        let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array);
        entries.and_then(|entries| entries.iter().position(|entry| entry["manager"] == "before-first-apply"))
    };
    let (Some(at), Some(there)) = (before(mine), before(real)) else { return };
    let first = &real["metadata"]["managedFields"][there]["time"];
    let time = |value: &Value| value.as_str().and_then(|text| text.parse::<Time>().ok());
    let entry = &mut mine["metadata"]["managedFields"][at];
    if time(&entry["time"]) == Some(now) && time(first) == Some(now - TimeDelta::seconds(1)) {
        entry["time"] = first.clone();
    }
}

/// Causes come in no order when there are several managers.
fn sorted(mut status: Value) -> Value {
    if let Some(causes) = status.pointer_mut("/details/causes").and_then(Value::as_array_mut) {
        causes.sort_by_key(ToString::to_string);
    }
    status
}

fn put(object: &mut Value, pointer: &str, value: Option<Value>) {
    let (parent, last) = pointer.rsplit_once('/').unwrap();
    let Some(Value::Object(parent)) = object.pointer_mut(parent) else { return };
    match value {
        Some(value) => drop(parent.insert(last.to_owned(), value)),
        None => drop(parent.shift_remove(last)),
    }
}

/// Every difference of two values; entries of managers are told by their name.
fn diff(mine: &Value, real: &Value, path: &str, out: &mut String) {
    match (mine, real) {
        (Value::Object(left), Value::Object(right)) => {
            for key in left.keys().chain(right.keys().filter(|key| !left.contains_key(*key))) {
                let none = json!("<absent>");
                let (left, right) = (left.get(key).unwrap_or(&none), right.get(key).unwrap_or(&none));
                diff(left, right, &format!("{path}/{key}"), out);
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (place, (left, right)) in left.iter().zip(right).enumerate() {
                diff(left, right, &format!("{path}/{place}"), out);
            }
        }
        _ if mine == real => {}
        _ => writeln!(out, "{path}:\n  sim  {mine}\n  real {real}").unwrap(),
    }
}
