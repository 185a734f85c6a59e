//! Fields of Kubernetes objects: what is told of those that do not exist or hold the wrong sort of value, and that the
//! real API server says the same of every field.

use crate::support::cluster::Bed;
use crate::tree::{PODINFO_SET, Tree, source_dir};
use futures::{StreamExt as _, stream};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use tidegate::cli::validate::{Colour, Output, report};
use tidegate::manifest::diagnostic::{Code, Diagnostic, MOST};
use tidegate::manifest::kinds;
use tidegate::manifest::load::Loaded;
use tidegate::manifest::object::Kind;

/// What is told of the podinfo's objects: warnings of unknown fields, and all errors.
fn told(loaded: &Loaded) -> (Vec<&Diagnostic>, Vec<&Diagnostic>) {
    let warnings = loaded.warnings.iter().filter(|warning| warning.code == Code::UnknownField);
    (warnings.collect(), loaded.errors())
}

#[test]
fn mistyped_fields_are_shown_with_their_lines() {
    let mut tree = Tree::example();
    for (from, to) in [
        ("  replicas: 2", "  replica: 2"),
        ("{name: http, containerPort: 9898}", "{name: http, containerport: 9898}"),
        ("periodSeconds: 2", "periodSeconds: \"2\""),
        ("          envFrom:\n", "          env: {name: PORT, value: 8080}\n          envFrom:\n"),
        (
            "      containers:\n",
            "      resources: {limits: {memory: 64Mi}}\n      securityContexts: {}\n      containers:\n",
        ),
        ("    - {name: http, port: 80, targetPort: http}", "    - {name: http, port: 80, targetport: http}"),
        ("  hostnames: [shop", "  hostname: [shop"),
    ] {
        tree.edit(PODINFO_SET, from, to);
    }
    insta::assert_snapshot!(report(&tree.load(), Output::Text, Colour::Never).text);
}

#[test]
fn a_field_that_stands_elsewhere_is_told_where() {
    let helps = |from: &str, to: &str| -> Vec<String> {
        let mut tree = Tree::example();
        let loaded = tree.edit(PODINFO_SET, from, to).load();
        told(&loaded).0.iter().map(|warning| warning.help.clone().unwrap_or_default()).collect()
    };
    // One level too far out, one too far in, misspelt, and nothing like any field.
    let inside = helps("      containers:\n", "      readinessProbe: {}\n      containers:\n");
    assert_eq!(inside, ["readinessProbe is a field of containers: look at the indentation"]);
    let outside = helps("    spec:\n", "    spec:\n      replicas: 3\n");
    assert_eq!(outside, ["replicas is a field of spec: look at the indentation"]);
    assert_eq!(helps("  replicas: 2", "  Replicas: 2"), ["did you mean replicas?"]);
    assert_eq!(helps("  replicas: 2", "  zz: 2\n  \"a\\eb\": 1"), ["", ""]);
    let top = helps("\ndata:\n", "\ndataa: {}\ndata:\n");
    assert_eq!(top, ["did you mean data?"]);
}

#[test]
fn an_unknown_field_stops_nothing() {
    let mut tree = Tree::example();
    let loaded = tree.edit(PODINFO_SET, "  replicas: 2", "  replicas: 2\n  fromTheFuture: {a: [1]}").load();
    let (warnings, errors) = told(&loaded);
    assert!(errors.is_empty() && warnings.len() == 1, "{errors:?}");
    assert!(loaded.rollouts.values().all(Result::is_ok));
    let report = report(&loaded, Output::Json, Colour::Never);
    let report = (serde_json::from_str::<Value>(&report.text).unwrap(), report.code);
    assert_eq!((report.0["warnings"][0]["code"].as_str(), report.1), (Some("UnknownField"), 0));
    assert_eq!(report.0["errors"], json!([]));
}

#[test]
fn what_the_api_server_takes_in_several_forms_is_fine() {
    let mut tree = Tree::example();
    for (from, to) in [
        ("targetPort: http", "targetPort: 9898"),
        ("port: http}", "port: 9898}"),
        ("cpu: 10m", "cpu: 1"),
        ("limits: {memory: 64Mi}", "limits: {memory: 64000000, cpu: 0.5, example.test/gpu: 1}"),
        (
            "  replicas: 2\n",
            "  replicas: 2\n  paused:\n  strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 25%}}\n",
        ),
        ("  name: podinfo\n  labels", "  name: podinfo\n  creationTimestamp: null\n  labels"),
        (
            "          envFrom:",
            "          command: null\n          env: [{name: A, value: \"8\"}, {name: B, value:}]\n          envFrom:",
        ),
    ] {
        tree.edit(PODINFO_SET, from, to);
    }
    // kubectl's dry run leaves a status behind.
    tree.edit(
        PODINFO_SET,
        "---\napiVersion: v1\nkind: Service",
        "status: {replicas: x, y: z}\n---\napiVersion: v1\nkind: Service",
    );
    let loaded = tree.load();
    assert_eq!(told(&loaded), (vec![], vec![]));
}

#[test]
fn what_is_told_already_is_told_once() {
    let mut tree = Tree::example();
    let loaded = tree.edit(PODINFO_SET, "replicas: 2", "replicas: \"2\"").load();
    let codes: Vec<Code> = told(&loaded).1.iter().map(|error| error.code).collect();
    assert_eq!(codes, [Code::Replicas]);
}

#[test]
fn a_hostile_file_has_no_endless_list_of_fields() {
    let mut tree = Tree::example();
    let many = |value: &str| (0..5_000).map(|n| format!("      - {{x{n}: 1, name: {value}}}\n")).collect::<String>();
    let text = format!("    spec:\n      imagePullSecrets:\n{}", many("1"));
    let loaded = tree.edit(PODINFO_SET, "    spec:\n", &text).load();
    let (warnings, errors) = told(&loaded);
    assert_eq!((warnings.len(), errors.len()), (MOST, MOST));
}

#[test]
fn the_documents_name_the_version_whose_fields_are_known() {
    let text = std::fs::read_to_string(source_dir().join("docs/files.md")).unwrap();
    assert!(text.contains(&format!("those that Kubernetes {} and the Gateway API have", kinds::version())));
}

#[test]
fn no_value_is_quoted() {
    let mut tree = Tree::example();
    tree.edit(PODINFO_SET, "  message: Welcome to the shop", "  password: 271828\n  kind-of: Secret");
    tree.edit(PODINFO_SET, "periodSeconds: 2", "periodSeconds: hunter2");
    let report = report(&tree.load(), Output::Text, Colour::Never).text;
    assert!(report.contains("password is a number") && report.contains("periodSeconds is a text"), "{report}");
    assert!(!report.contains("271828") && !report.contains("hunter2"), "{report}");
}

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
fn faults(object: &Value) -> Vec<String> {
    let mut tree = Tree::example();
    let loaded = tree.append(PODINFO_SET, &format!("\n---\n{object}\n")).load();
    let (warnings, errors) = told(&loaded);
    let errors = errors.into_iter().filter(|error| matches!(error.code, Code::Schema | Code::Replicas));
    warnings.into_iter().chain(errors).map(ToString::to_string).collect()
}

#[tokio::test]
async fn every_field_is_known_as_the_api_server_knows_it() {
    let client = Bed::shared().await.client().await;
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
                let (theirs, ours) = (reads(&client, kind, &case.object).await, faults(&case.object));
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
