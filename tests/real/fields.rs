//! Every field of a Kubernetes object is known as the real API server knows it.

use crate::support::cluster::Bed;
use crate::tree::{PODINFO_SET, POLICY, Tree, told};
use futures::{StreamExt as _, stream};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use tidegate::manifest::diagnostic::Code;
use tidegate::manifest::object::Kind;

/// What is put to both.
struct Case {
    what: String,
    object: Value,
    fits: bool,
}

/// All fields of a kind, by the documents of the API server: each with a value that fits, with others, and beside one
/// that is not there.
struct Cases<'a> {
    documents: &'a BTreeMap<String, Value>,
    seen: BTreeSet<(String, String)>,
    all: Vec<Case>,
}

/// An object around a value.
type Around<'a> = &'a dyn Fn(Value) -> Value;

/// What tidegate itself writes or refuses: another rule than that of the field's sort.
const OTHER_RULES: [&str; 16] = [
    "apiVersion",
    "kind",
    "status",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "metadata.resourceVersion",
    "metadata.generation",
    "metadata.managedFields",
    "metadata.generateName",
    "metadata.ownerReferences",
    "secrets.namespace",
    "spec.http.delegate.namespace",
    "spec.rules.backendRefs.namespace",
    "spec.routes.services.namespace",
    "spec.weighted.services.namespace",
];

impl Cases<'_> {
    fn resolved<'b>(&'b self, schema: &'b Value) -> (&'b str, &'b Value) {
        let reference = schema.get("$ref").or_else(|| schema["allOf"].as_array()?.first()?.get("$ref"));
        match reference.and_then(Value::as_str) {
            Some(reference) => {
                let name = reference.rsplit('/').next().unwrap();
                (name, &self.documents[name])
            }
            None => ("", schema),
        }
    }

    /// A value of that sort, and some of other sorts.
    fn samples(&self, schema: &Value) -> (Value, Vec<Value>) {
        let (name, schema) = self.resolved(schema);
        let map = json!({"a": "b"});
        match (schema["type"].as_str(), schema["format"].as_str()) {
            _ if name.ends_with(".resource.Quantity") => (json!("1"), vec![]),
            (Some("string"), None) => (json!("eA=="), vec![json!(1), json!(true), map]),
            (Some("string"), Some("byte")) => (json!("eA=="), vec![json!(1), map]),
            (Some("string"), Some(_)) => (json!("2020-01-01T00:00:00Z"), vec![map]),
            (Some("integer" | "number"), _) => (json!(1), vec![json!("1"), json!([1])]),
            (Some("boolean"), _) => (json!(true), vec![json!("true"), json!(1)]),
            (Some("array"), _) => (json!([self.item(&schema["items"], schema)]), vec![map, json!("x")]),
            (Some("object"), _) => (json!({}), vec![json!("x"), json!([1])]),
            _ => (json!(1), vec![]),
        }
    }

    /// An item of a list, with the fields that tell it apart.
    fn item(&self, items: &Value, list: &Value) -> Value {
        let (_, of) = self.resolved(items);
        let Some(fields) = of.get("properties") else { return self.samples(items).0 };
        let keys = list["x-kubernetes-list-map-keys"].as_array().cloned().unwrap_or_default();
        let keys = keys.into_iter().chain(list.get("x-kubernetes-patch-merge-key").cloned());
        let key = |key: Value| {
            let key = key.as_str().unwrap().to_owned();
            let sample = self.samples(&fields[&key]).0;
            (key, sample)
        };
        Value::Object(keys.map(key).collect())
    }

    fn add(&mut self, what: String, object: Value, fits: bool) {
        self.all.push(Case { what, object, fits });
    }

    fn visit(&mut self, schema: &Value, path: &str, around: Around<'_>) {
        let (name, schema) = self.resolved(schema);
        let name = if name.is_empty() { path.to_owned() } else { name.to_owned() };
        let schema = schema.clone();
        if !self.seen.insert((name.clone(), String::new())) {
            return;
        }
        if schema["x-kubernetes-preserve-unknown-fields"] != true {
            self.add(format!("{path}.zz"), around(json!({"zz": 1})), false);
        }
        for (field, inner) in schema["properties"].as_object().unwrap() {
            let path = if path.is_empty() { field.clone() } else { format!("{path}.{field}") };
            if OTHER_RULES.contains(&path.as_str()) {
                continue;
            }
            let put = |value: Value| around(json!({field: value}));
            let (right, wrong) = self.samples(inner);
            self.add(path.clone(), put(right), true);
            for value in wrong {
                self.add(format!("{path}: {value}"), put(value), false);
            }
            let (_, of) = self.resolved(inner);
            let of = of.clone();
            if of["type"] == "array" && self.resolved(&of["items"]).1.get("properties").is_some() {
                let bare = self.item(&of["items"], &of);
                self.visit(&of["items"], &path, &|value| put(json!([merged(&bare, &value)])));
            } else if of.get("properties").is_some() {
                self.visit(inner, &path, &put);
            } else if of["type"] == "object" && of["additionalProperties"]["type"] == "string" {
                self.add(format!("{path}.k: 1"), put(json!({"k": 1})), false);
            }
        }
    }
}

/// `over` laid over `under`.
fn merged(under: &Value, over: &Value) -> Value {
    match (under, over) {
        (Value::Object(under), Value::Object(over)) => {
            let mut all: Map<String, Value> = under.clone();
            for (key, value) in over {
                let value = under.get(key).map_or_else(|| value.clone(), |under| merged(under, value));
                all.insert(key.clone(), value);
            }
            Value::Object(all)
        }
        _ => over.clone(),
    }
}

async fn documents(client: &Client, api_version: &str) -> BTreeMap<String, Value> {
    let root = if api_version.contains('/') { "apis" } else { "api" };
    let request = http::Request::get(format!("/openapi/v3/{root}/{api_version}")).body(Vec::new()).unwrap();
    let document: Value = client.request(request).await.unwrap();
    document["components"]["schemas"].as_object().unwrap().clone().into_iter().collect()
}

/// Whether the API server can read an object that is applied; whether it makes sense is another matter.
async fn reads(client: &Client, kind: Kind, object: &Value) -> Result<(), String> {
    let root = if kind.api_version().contains('/') { "apis" } else { "api" };
    let path = format!("/{root}/{}/namespaces/default/{}/odd", kind.api_version(), kind.plural());
    let request = http::Request::patch(format!("{path}?fieldManager=hand&dryRun=All"))
        .header("content-type", "application/apply-patch+yaml")
        .body(Body::from(object.to_string().into_bytes()))
        .unwrap();
    let response = client.send(request).await.unwrap();
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    if code < 300 || code == 422 { Ok(()) } else { Err(String::from_utf8_lossy(&bytes).into_owned()) }
}

/// What validate says against the fields of an object.
fn faults(podinfo: &Tree, object: &Value) -> Vec<String> {
    let mut tree = podinfo.clone();
    let loaded = tree.append(PODINFO_SET, &format!("\n---\n{object}\n")).load();
    let (warnings, errors) = told(&loaded);
    let errors = errors.into_iter().filter(|error| matches!(error.code, Code::Schema | Code::Replicas));
    warnings.into_iter().chain(errors).map(ToString::to_string).collect()
}

#[tokio::test]
async fn every_field_is_known_as_the_api_server_knows_it() {
    let client = Bed::shared().await.client().await;
    let mut podinfo = Tree::example();
    podinfo
        .0
        .retain(|path, _| !["teams/blog/", "teams/shop/worker/"].iter().any(|other| path.as_str().starts_with(other)));
    // What fields may reach is judged apart, and where that is an error nothing else is told.
    let policy = podinfo.text(POLICY).replace("      allow: []\n", "");
    podinfo.put(POLICY, policy);
    let podinfo = &podinfo;
    for kind in Kind::MANIFEST.iter().copied() {
        let documents = documents(&client, kind.api_version()).await;
        let root = documents.values().find(|schema| {
            let names = schema["x-kubernetes-group-version-kind"].as_array();
            names.is_some_and(|names| names.len() == 1 && names[0]["kind"] == kind.as_str())
        });
        // What is asked for in another place.
        let parts = match kind.as_str() {
            "Deployment" | "StatefulSet" | "DaemonSet" => {
                json!({"spec": {"selector": {}, "template": {"metadata": {}, "spec": {}}}})
            }
            "ConfigMap" | "ServiceAccount" => json!({}),
            _ => json!({"spec": {}}),
        };
        let head = json!({"apiVersion": kind.api_version(), "kind": kind.as_str(), "metadata": {"name": "odd"}});
        let bare = merged(&head, &parts);
        let mut cases = Cases { documents: &documents, seen: BTreeSet::new(), all: Vec::new() };
        cases.visit(root.unwrap(), "", &|value| merged(&bare, &value));
        let look = |case: Case| {
            let client = client.clone();
            async move {
                let (theirs, ours) = (reads(&client, kind, &case.object).await, faults(podinfo, &case.object));
                let agree = theirs.is_ok() == case.fits && ours.is_empty() == case.fits;
                (!agree).then(|| format!("{kind} {}: server {theirs:?}, ours {ours:?}", case.what))
            }
        };
        assert!(cases.all.len() > 30, "{kind}: {}", cases.all.len());
        let odd: Vec<String> =
            stream::iter(cases.all).map(look).buffer_unordered(8).filter_map(async |odd| odd).collect().await;
        assert!(odd.is_empty(), "{} differ:\n{}", odd.len(), odd.join("\n"));
    }
}
