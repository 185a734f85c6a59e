//! The YAML that pages show, played: each rollout comes to rest on its first version, and the next one goes through all of its
//! steps. What a block leaves out is filled in from what stands around it.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tidegate::analysis::judge::Range;
use tidegate::analysis::provider::{Measures, ProviderClient};
use tidegate::analysis::reading::{Reading, Samples};
use tidegate::manifest::ids::RolloutId;
use tidegate::reconcile::controller::{Once, Options};
use tidegate::reconcile::evidence::Providers;
use tidegate::record::state::{Phase, Rest};
use tidegate::world::simulation::Simulation;
use tidegate::world::webhook::SimulatedWebhook;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

const PAGES: [&str; 5] = ["checks", "layouts", "migrating", "routers", "strategies"];

const POLICY: &str = "apiVersion: tidegate.io/v1alpha1
kind: Policy
spec:
  tenants: {shop: {path: shop, namespaces: [shop], clusters: [home]}}
  windows: {office-hours: {cron: \"0 9 * * 1-5\", duration: 8h, zone: Europe/Berlin}}
";

/// Measures what is good: all requests succeed, and each takes a tenth of a second.
struct Good;

impl Measures for Good {
    fn read<'a>(&'a self, range: &'a Range) -> futures::future::BoxFuture<'a, Reading<Samples>> {
        let is_good = range.query.contains("100 *") || range.query.contains("histogram_quantile");
        let (mut at, mut samples) = (range.from, Samples::new());
        while at <= range.until {
            samples.insert(at, if is_good { 100.0 } else { 0.0 });
            at += range.interval.delta();
        }
        Box::pin(futures::future::ready(Reading::Said(samples)))
    }
}

/// What one block of a page is.
#[derive(Debug)]
enum Block {
    /// The spec of a rollout, or a part of one.
    Rollout(Value),
    /// An object of the manifests of the rollout that comes next.
    Beside(Value),
    /// What of a Service such an object is.
    Service(Value),
    /// A Job, by the file that the block names.
    Job(Value),
    /// No matter of a rollout: played or read elsewhere.
    Other,
}

const PARTS: [&str; 7] = ["target", "traffic", "phases", "promotion", "checks", "hooks", "manifests"];

fn block(text: &str) -> Vec<Block> {
    let documents = text.split("\n---\n").map(|text| serde_yaml::from_str::<Value>(text).expect(text));
    documents.map(|document| one(&document)).collect()
}

fn one(document: &Value) -> Block {
    let spec = &document["spec"];
    match document["kind"].as_str() {
        Some("Rollout") => Block::Rollout(spec.clone()),
        Some("Job") => Block::Job(document.clone()),
        Some("HTTPProxy" | "IngressRoute" | "RouteTable" | "TraefikService") => Block::Beside(document.clone()),
        // The input of the import, whose test reads it.
        Some("Canary") => Block::Other,
        None if spec["externalName"].is_string() => Block::Service(spec.clone()),
        None if PARTS.iter().any(|part| !spec[part].is_null()) => Block::Rollout(spec.clone()),
        None if PARTS.iter().any(|part| !document[part].is_null()) => Block::Rollout(document.clone()),
        // Of the installation, not of a rollout.
        None if document["providers"].is_object() => Block::Other,
        // Of a Prometheus.
        None if document["relabel_configs"].is_array() || document[0]["record"].is_string() => Block::Other,
        _ => panic!("what is this on a page of rollouts? {document}"),
    }
}

/// A rollout of a page with all that belongs to it.
struct Example {
    /// Where it stands.
    place: String,
    spec: Value,
    beside: Vec<Value>,
    service: Option<Value>,
    jobs: BTreeMap<String, Value>,
}

fn examples(page: &str) -> Vec<Example> {
    let path = format!("{}/docs/{page}.md", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let (_, text) = text.split_once("```yaml\n").expect("the page shows YAML");
    let blocks = text.split("```yaml\n").filter_map(|rest| rest.split_once("```")).map(|(yaml, _)| block(yaml));
    let blocks: Vec<Block> = blocks.flatten().collect();
    let job = blocks.iter().find_map(|block| if let Block::Job(job) = block { Some(job.clone()) } else { None });
    let (mut found, mut beside, mut service) = (Vec::new(), Vec::new(), None);
    for block in blocks {
        match block {
            Block::Rollout(part) => {
                let place = format!("{page}, rollout {}", found.len() + 1);
                let beside = std::mem::take(&mut beside);
                found.push(Example::new(place, part, beside, service.take(), job.as_ref()));
            }
            Block::Beside(object) => beside.push(object),
            Block::Service(spec) => service = Some(spec),
            Block::Job(_) | Block::Other => {}
        }
    }
    assert!(beside.is_empty() && service.is_none(), "{page}: the last blocks belong to no rollout");
    found
}

impl Example {
    fn new(place: String, part: Value, beside: Vec<Value>, service: Option<Value>, job: Option<&Value>) -> Self {
        let mut spec = json!({
            "manifests": ["podinfo.yaml"],
            "target": {"kind": "Deployment", "name": "podinfo"},
            "traffic": {"gatewayAPI": {"httpRoute": "podinfo", "service": "podinfo"}},
            "phases": [{"name": "tenth", "expose": {"weight": 10}, "soak": "10m"}],
        });
        let is_shared = ["StatefulSet", "DaemonSet"].iter().any(|kind| part["target"]["kind"] == *kind);
        if is_shared {
            spec.as_object_mut().unwrap().remove("traffic");
        }
        let whole = part.as_object().unwrap().clone();
        spec.as_object_mut().unwrap().extend(whole);
        let mut example = Self { place, spec, beside, service, jobs: BTreeMap::new() };
        example.complete();
        for file in example.named("job") {
            let mut job = job.expect("the page shows a Job").clone();
            job["metadata"]["name"] = file.trim_end_matches(".yaml").into();
            example.jobs.insert(file, job);
        }
        example
    }

    /// A page shows checks without phases, and phases without checks.
    fn complete(&mut self) {
        let defined: Vec<String> =
            self.spec["checks"].as_object().into_iter().flat_map(|checks| checks.keys().cloned()).collect();
        let phases = self.spec["phases"].as_array_mut().unwrap();
        let used: Vec<Value> =
            phases.iter().filter_map(|phase| phase["checks"].as_array()).flatten().cloned().collect();
        if let Some(first) = phases.first_mut().filter(|_| used.is_empty() && !defined.is_empty()) {
            first["checks"] = defined.clone().into();
        }
        for check in used.iter().filter_map(Value::as_str).filter(|name| !defined.iter().any(|known| known == name)) {
            self.spec["checks"][check] = json!({"webhook": {"provider": "tester"}});
        }
    }

    /// All values of that field, wherever it stands.
    fn named(&self, field: &str) -> Vec<String> {
        fn walk(value: &Value, field: &str, found: &mut Vec<String>) {
            let fields = value.as_object().into_iter().flatten();
            for (name, inner) in fields {
                found.extend(inner.as_str().filter(|_| name == field).map(str::to_owned));
                walk(inner, field, found);
            }
            value.as_array().into_iter().flatten().for_each(|inner| walk(inner, field, found));
        }
        let mut found = Vec::new();
        walk(&self.spec, field, &mut found);
        found
    }

    fn name(&self) -> &str {
        self.spec["manifests"][0].as_str().unwrap().trim_end_matches(".yaml")
    }

    /// The objects of a version.
    fn objects(&self, version: u32) -> Vec<Value> {
        let target = &self.spec["target"];
        let name = target["name"].as_str().unwrap();
        let labels = json!({"app": name});
        let tracked = target["track"]["configMaps"].as_array().into_iter().flatten();
        let read: Vec<Value> = tracked.map(|name| json!({"configMapRef": {"name": name}})).collect();
        let containers = json!([{"name": "main", "image": format!("{name}:{version}"), "envFrom": read}]);
        let template = json!({"metadata": {"labels": labels}, "spec": {"containers": containers}});
        let object = |group: &str, kind: &str, spec: Value| json!({"apiVersion": group, "kind": kind, "metadata": {"name": name}, "spec": spec});
        let workload = |spec: Value| {
            let mut spec = spec;
            spec["selector"] = json!({"matchLabels": labels});
            spec["template"] = template.clone();
            object("apps/v1", target["kind"].as_str().unwrap(), spec)
        };
        let mut all = match target["kind"].as_str().unwrap() {
            "StatefulSet" => return vec![workload(json!({"replicas": 5, "serviceName": name}))],
            "DaemonSet" => return vec![workload(json!({}))],
            "Service" => {
                let mut spec = self.service.clone().unwrap_or_else(
                    || json!({"type": "ExternalName", "externalName": "lb.blue.example.net", "ports": [{"port": 80}]}),
                );
                if version > 1 {
                    spec["externalName"] = format!("lb.version-{version}.example.net").into();
                }
                vec![object("v1", "Service", spec)]
            }
            _ => {
                let ports = json!([{"name": "http", "port": 80}]);
                let service = object("v1", "Service", json!({"selector": labels, "ports": ports}));
                vec![workload(json!({"replicas": 2})), service]
            }
        };
        all.extend(route(&self.spec["traffic"], name));
        all.extend(self.beside.iter().cloned());
        all
    }

    /// The files of a version, as main has them.
    fn files(&self, version: u32) -> Vec<(String, String)> {
        let name = self.name();
        let rollout = json!({
            "apiVersion": "tidegate.io/v1alpha1", "kind": "Rollout",
            "metadata": {"name": name, "namespace": "shop"}, "spec": self.spec,
        });
        let text = |value: &Value| serde_yaml::to_string(value).unwrap();
        let objects: Vec<String> = self.objects(version).iter().map(text).collect();
        let mut files = vec![
            (format!("shop/{name}.rollout.yaml"), text(&rollout)),
            (format!("shop/{name}.yaml"), objects.join("---\n")),
        ];
        files.extend(self.jobs.iter().map(|(file, job)| (format!("shop/{file}"), text(job))));
        if self.spec["target"]["layout"] == "versioned" {
            // Each version's objects have names of their own.
            files.iter_mut().for_each(|(_, text)| *text = text.replace("podinfo-v2", &format!("podinfo-v{version}")));
        }
        files
    }
}

/// The object that leads requests, but for those that pages show.
fn route(traffic: &Value, service: &str) -> Option<Value> {
    let to = json!([{"name": service, "port": 80}]);
    let object = |group: &str, kind: &str, spec: Value| {
        Some(json!({"apiVersion": group, "kind": kind, "metadata": {"name": "podinfo"}, "spec": spec}))
    };
    let gateway = |kind| {
        let spec = json!({"parentRefs": [{"name": "public"}], "rules": [{"backendRefs": to}]});
        object("gateway.networking.k8s.io/v1", kind, spec)
    };
    match traffic.as_object()?.keys().find(|key| ["gatewayAPI", "istio", "nginx", "traefik"].contains(&key.as_str()))? {
        key if key == "gatewayAPI" && traffic[key]["grpcRoute"].is_string() => gateway("GRPCRoute"),
        key if key == "gatewayAPI" => gateway("HTTPRoute"),
        key if key == "istio" => {
            let spec = json!({"hosts": ["a.example"], "http": [{"route": [{"destination": {"host": service}}]}]});
            object("networking.istio.io/v1", "VirtualService", spec)
        }
        key if key == "nginx" => {
            let backend = json!({"service": {"name": service, "port": {"number": 80}}});
            let paths = json!([{"path": "/", "pathType": "Prefix", "backend": backend}]);
            let spec = json!({"ingressClassName": "nginx", "rules": [{"host": "a.example", "http": {"paths": paths}}]});
            object("networking.k8s.io/v1", "Ingress", spec)
        }
        _ => None,
    }
}

/// A world with one example in it.
struct Played {
    stage: Arc<Simulation>,
    id: RolloutId,
    tasks: JoinSet<()>,
    _directory: tempfile::TempDir,
}

impl Played {
    async fn begin(example: &Example) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let stage = Simulation::new(directory.path(), "2026-03-02T10:00:00Z".parse().unwrap()).unwrap();
        let gate: Arc<SimulatedWebhook> = Arc::default();
        let others: Providers = [
            ("main".parse().unwrap(), ProviderClient::Prometheus(Arc::new(Good))),
            ("may-promote".parse().unwrap(), ProviderClient::Webhook(gate)),
        ]
        .into();
        let stage = Arc::new(stage.answered(others).polled(Duration::from_secs(120)));
        stage.api.change(|world| {
            let mut make = |group, kind, object| drop(world.create(group, kind, "people", object).unwrap());
            for n in 0..20 {
                make(
                    "v1",
                    "Node",
                    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("node-{n}")}}),
                );
            }
            let metadata = json!({"name": "settings", "namespace": "shop"});
            make("v1", "ConfigMap", json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}));
        });
        stage.push(&[("tidegate.yaml", POLICY)], "the policy").await.unwrap();
        let mut tasks = JoinSet::new();
        let nature = Arc::clone(&stage);
        tasks.spawn(async move { nature.nature().await });
        let id = format!("shop/{}", example.name()).parse().unwrap();
        Self { stage, id, tasks, _directory: directory }
    }

    async fn push(&self, files: &[(String, String)]) {
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        self.stage.push(&files, "a version").await.unwrap();
    }

    /// Lets time pass, and merges what is asked, until it is at rest like that: within so many minutes.
    async fn until(&mut self, place: &str, wanted: Rest, minutes: usize) {
        for _ in 0..minutes {
            tokio::time::sleep(Duration::from_secs(60)).await;
            while let Some(ended) = self.tasks.try_join_next() {
                assert!(ended.as_ref().is_err_and(JoinError::is_cancelled), "{place}: something ended: {ended:?}");
            }
            let record = self.stage.record(&self.id).await.unwrap();
            match record.map(|record| record.phase) {
                Some(Phase::Steady { how, .. }) if how == wanted => return,
                Some(Phase::Waiting { .. } | Phase::WaitingPromotion { .. }) => {
                    for request in self.stage.requests().await.unwrap().keys() {
                        self.stage.merge(request).await.unwrap();
                    }
                }
                Some(failed @ Phase::Failed { .. }) => panic!("{place}: {failed:#?}"),
                _ => {}
            }
        }
        let record = self.stage.record(&self.id).await.unwrap();
        let seen = record.map(|record| (record.phase, record.conditions));
        panic!("{place}: it does not come to rest: {seen:#?}");
    }
}

async fn play(example: &Example) {
    let place = &example.place;
    let mut played = Played::begin(example).await;
    played.push(&example.files(1)).await;
    let stage = Arc::clone(&played.stage);
    let leader = played.tasks.spawn(async move {
        let options = Options { once: Once::No, listen: None, identity: "one".to_owned() };
        let ended = stage.controller("one", options, &CancellationToken::new()).await;
        panic!("the controller ended: {ended:?}");
    });
    played.until(place, Rest::Initialized, 60).await;
    played.push(&example.files(2)).await;
    played.until(place, Rest::Succeeded, 3_000).await;
    leader.abort();
    // A process that knows nothing finds nothing to do.
    let before = played.stage.commits(None).await.unwrap();
    let once = Once::Yes { timeout: Duration::from_secs(600) };
    let fresh = Options { once, listen: None, identity: "fresh".to_owned() };
    let waiting = played.stage.controller("fresh", fresh, &CancellationToken::new()).await.unwrap();
    assert!(waiting.is_empty(), "{place}: {waiting:?}");
    let after = played.stage.commits(before.last().map(|logged| &logged.commit)).await.unwrap();
    assert!(after.is_empty(), "{place}: not settled: {after:?}");
}

#[tokio::test(start_paused = true)]
async fn what_pages_show_is_read_played_and_settled() {
    let filter = tracing_subscriber::EnvFilter::new("tidegate=warn");
    tracing_subscriber::fmt().with_env_filter(filter).with_test_writer().try_init().ok();
    let all: Vec<Example> = PAGES.iter().flat_map(|page| examples(page)).collect();
    let mut of = BTreeMap::<&str, usize>::new();
    all.iter().for_each(|example| *of.entry(example.place.split(',').next().unwrap()).or_default() += 1);
    assert_eq!(of.keys().copied().collect::<Vec<_>>(), PAGES, "each page shows a rollout");
    for example in &all {
        println!("{}", example.place);
        play(example).await;
    }
}
