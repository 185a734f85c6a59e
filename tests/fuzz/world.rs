//! The documents that are changed: those of a real run that stands at a tenth, made by the controller in the world in a
//! process.

use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tidegate::git::{RefName, RemoteConfig, RemoteUrl, Store};
use tidegate::manifest::files::{Entry, Files};
use tidegate::manifest::ids::{CommitId, Namespace, RolloutId};
use tidegate::manifest::installation::Caps;
use tidegate::manifest::object::{Kind, Object, ObjectRef};
use tidegate::manifest::{load, oid};
use tidegate::plan::input::{Decisions, Desired, Git, Input, Live, PolicyView, RecordedState};
use tidegate::reconcile::controller::{Once, Options};
use tidegate::record::state::{RolloutState, Writer};
use tidegate::record::store;
use tidegate::workload::live::LiveState;
use tidegate::world::kube_api::resource::Resource;
use tidegate::world::simulation::Simulation;
use tokio_util::sync::CancellationToken;

pub(crate) const POLICY: &str = "apiVersion: tidegate.io/v1alpha1
kind: Policy
spec:
  tenants:
    shop: {path: shop, namespaces: [shop], clusters: [home], approvers: [ana]}
  windows:
    office-hours: {cron: \"0 9 * * 1-5\", duration: 8h, zone: Europe/Berlin}
  freezes:
    xmas: {cron: \"0 0 20 12 *\", duration: 336h, zone: UTC, tenants: [shop]}
  limits: {maxDeletions: 5, maxConcurrentRuns: 10}
";

pub(crate) const ROLLOUT: &str = "# One tenth, then half.
apiVersion: tidegate.io/v1alpha1
kind: Rollout
metadata:
  name: web
  namespace: shop
spec:
  manifests: [web.yaml]
  target: {kind: Deployment, name: web}
  traffic:
    gatewayAPI: {httpRoute: web, service: web}
    settle: 1s
    drain: 1s
  phases:
  - name: tenth
    expose: {headers: [{x-canary: always}], weight: 10}
    soak: 1h
    checks: [errors, smoke]
  - name: half
    before: {approval: pullRequest, window: office-hours, webhook: {provider: tester}}
    expose: {weight: 50}
    soak: 1h
  promotion: {bake: 1m, before: {approval: pullRequest}}
  rollback: {window: 24h}
  checks:
    errors:
      prometheus: {provider: world, query: 'errors{namespace=\"shop\",deployment=\"web-canary\"}'}
      max: 0.01
      minSamples: 3
    smoke: {webhook: {provider: tester, metadata: {suite: smoke}}, interval: 5m}
  onFailure: {revert: pullRequest}
  progressDeadline: 10m
";

pub(crate) fn manifests(tag: &str) -> String {
    format!(
        "apiVersion: v1
kind: ConfigMap
metadata:
  name: web
data:
  greeting: hello
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {{app: web}}
spec:
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata:
      labels: {{app: web}}
    spec:
      containers:
      - name: web
        image: \"web:{tag}\"
        ports:
        - {{name: http, containerPort: 8080}}
        envFrom:
        - configMapRef: {{name: web}}
        resources: {{requests: {{cpu: 10m, memory: 16Mi}}}}
---
apiVersion: v1
kind: Service
metadata: {{name: web}}
spec:
  selector: {{app: web}}
  ports:
  - {{name: http, port: 80, targetPort: http}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: web}}
spec:
  parentRefs: [{{name: public}}]
  hostnames: [web.example.test]
  rules:
  - matches:
    - path: {{type: PathPrefix, value: /}}
    backendRefs:
    - {{name: web, port: 80, weight: 1}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {{name: web}}
spec:
  minReplicas: 3
  maxReplicas: 5
  scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: web}}
  metrics:
  - {{type: Resource, resource: {{name: cpu, target: {{type: Utilization, averageUtilization: 80}}}}}}
"
    )
}

/// A run at a tenth.
pub(crate) struct Run {
    /// Main's tree.
    pub(crate) main: Files,
    /// The record.
    pub(crate) state: RolloutState,
    /// The files of the state branch, as text.
    pub(crate) texts: BTreeMap<String, String>,
    /// All that is live in the namespace.
    pub(crate) live: Vec<Value>,
    /// The Lease.
    pub(crate) lease: Value,
    input: Input,
}

/// The run, made once.
pub(crate) static RUN: LazyLock<Run> = LazyLock::new(|| {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    // A task that polls this already is on a runtime of its own.
    let made = std::thread::spawn(move || runtime.expect("a runtime").block_on(make()));
    made.join().expect("the world comes to be")
});

pub(crate) fn id() -> RolloutId {
    "shop/web".parse().expect("an id")
}

/// A file of a tree.
pub(crate) fn file(bytes: &[u8]) -> Entry {
    Entry::File { blob: oid::blob(bytes), bytes: bytes.into() }
}

async fn make() -> Run {
    let directory = tempfile::tempdir().expect("a directory");
    let stage =
        Arc::new(Simulation::new(directory.path(), "2026-03-02T10:00:00Z".parse().expect("a time")).expect("a world"));
    let first = manifests("1");
    let files = [("tidegate.yaml", POLICY), ("shop/web.rollout.yaml", ROLLOUT), ("shop/web.yaml", first.as_str())];
    stage.push(&files, "version 1").await.expect("main is there");
    let world = Arc::clone(&stage);
    let nature = tokio::spawn(async move { world.nature().await });
    let (world, stop) = (Arc::clone(&stage), CancellationToken::new());
    let controller = tokio::spawn(async move {
        let options = Options { once: Once::No, listen: None, identity: "one".to_owned() };
        world.controller("one", options, &stop).await.map(drop)
    });
    until(&stage, |state| state.promoted.is_some() && state.run.is_none()).await;
    let main = stage.push(&[("shop/web.yaml", &manifests("2"))], "version 2").await.expect("version 2 is there");
    let exposed = |state: &RolloutState| state.phase.position().is_some_and(|stop| stop.clock.exposed.is_some());
    let state =
        until(&stage, |state| exposed(state) && state.phase.position().is_some_and(|s| s.step.as_str() == "tenth"))
            .await;
    controller.abort();
    nature.abort();
    let run = read(&stage, directory.path(), &main, state).await;
    drop((controller.await, nature.await));
    run
}

async fn until(stage: &Simulation, met: impl Fn(&RolloutState) -> bool) -> RolloutState {
    for _ in 0..1_000 {
        let state = stage.record(&id()).await.expect("Git answers");
        if let Some(state) = state.filter(|state| met(state)) {
            return state;
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    panic!("{:#?}", stage.record(&id()).await);
}

async fn read(stage: &Simulation, directory: &std::path::Path, main: &CommitId, state: RolloutState) -> Run {
    let remote = RemoteConfig::new(RemoteUrl::Local(stage.repository()));
    let git = Store::open(&directory.join("reader"), remote).expect("a cache");
    let tips = git.ls_refs(&["refs/heads/"]).await.expect("Git answers");
    git.fetch(&tips).await.expect("all branches");
    let branch = RefName::branch("tidegate/world/state").expect("a name");
    let ours = git.files(&tips[&branch], None).await.expect("the state branch");
    let text = |entry: &Entry| match entry {
        Entry::File { bytes, .. } => String::from_utf8_lossy(bytes).into_owned(),
        other @ (Entry::TooLarge { .. }
        | Entry::BadName { .. }
        | Entry::Symlink
        | Entry::Submodule
        | Entry::Unread { .. }) => {
            panic!("{other:?}")
        }
    };
    let texts: BTreeMap<String, String> = ours.iter().map(|(path, entry)| (path.to_string(), text(entry))).collect();
    let main = git.files(main, None).await.expect("main");
    // Layers are in Git alone.
    let live = Kind::ALL.iter().filter(|kind| **kind != Kind::NodeConfigLayer).flat_map(|kind| {
        let resource = Resource::of_kind(kind.api_version(), kind.as_str()).expect("it is served");
        stage.api.look(|world| world.list(resource, "shop").map(|object| (**object).clone()).collect::<Vec<_>>())
    });
    let live: Vec<Value> = live.collect();
    let lease = Resource::of_kind("coordination.k8s.io/v1", "Lease").expect("it is served");
    let lease = stage.api.look(|world| world.list(lease, "tidegate").next().map(|lease| (**lease).clone()));
    let input = input(&main, &state, &texts, &live, stage.clock.now());
    Run { main, state, texts, live, lease: lease.expect("a Lease"), input }
}

/// The objects of a namespace.
pub(crate) fn live(values: &[Value]) -> Vec<Object> {
    let namespace: Namespace = "shop".parse().expect("a name");
    let object = |value: &Value| {
        let text = |at| value.pointer(at).and_then(Value::as_str);
        let kind = Kind::find(text("/apiVersion")?, text("/kind")?)?;
        let name = text("/metadata/name")?.parse().ok()?;
        Some(Object::new(ObjectRef { kind, namespace: namespace.clone(), name }, value.clone()))
    };
    values.iter().filter_map(object).collect()
}

/// What the plan that is followed is called on the state branch.
pub(crate) fn plan_text(texts: &BTreeMap<String, String>) -> &str {
    texts.iter().find(|(path, _)| path.contains("/runs/")).map(|(_, text)| text).expect("the plan of the run")
}

fn input(
    main: &Files,
    state: &RolloutState,
    texts: &BTreeMap<String, String>,
    values: &[Value],
    now: tidegate::record::state::Time,
) -> Input {
    let before: Files = main.iter().map(|(path, entry)| (path.clone(), entry.clone())).collect();
    let mut first = before.clone();
    first.insert("shop/web.yaml".parse().expect("a path"), file(manifests("1").as_bytes()));
    let rollout = |files: &Files| {
        let mut loaded = load::load(files, &Caps::default());
        Arc::new(loaded.rollouts.remove(&id()).expect("it is there").expect("it is fine"))
    };
    let (old, new) = (rollout(&first), rollout(&before));
    let plan = store::parse_plan(plan_text(texts).as_bytes()).expect("the plan");
    Input {
        now,
        id: id(),
        me: Writer { epoch: state.writer.epoch, ..state.writer.clone() },
        past: BTreeMap::new(),
        sets: [old, Arc::clone(&new)].iter().map(|r| (r.set.id.clone(), Arc::clone(&r.set))).collect(),
        desired: Desired::Wanted(new),
        main: state.source.commit.clone(),
        recorded: RecordedState::State(Box::new(state.clone()), Some(Arc::new(plan))),
        decisions: Decisions::default(),
        proposals: BTreeMap::new(),
        policy: PolicyView { max_deletions: 5, ..PolicyView::default() },
        brake: Ok(None),
        live: seen(state, live(values)),
        trees: Arc::default(),
        evidence: Arc::default(),
        gaps: Vec::new(),
        git: Git::Fresh,
    }
}

/// These objects, as the world that a plan sees.
pub(crate) fn seen(state: &RolloutState, objects: Vec<Object>) -> Live {
    Live::Seen(Arc::new(LiveState {
        cluster_uid: state.writer.cluster_uid.clone(),
        objects: objects.into_iter().map(|object| (object.reference().clone(), Arc::new(object))).collect(),
        ..LiveState::default()
    }))
}

impl Run {
    /// What the next plan of the run is made from.
    pub(crate) fn input(&self) -> Input {
        self.input.clone()
    }
}
