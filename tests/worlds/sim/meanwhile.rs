//! What happens while a tick plans many rollouts: more than it plans at once.

use super::incremental::{INSTALLATION, manifests, play, world};
use crate::leader::Leader;
use futures::future::{BoxFuture, ready};
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tidegate::analysis::judge::Range;
use tidegate::analysis::provider::{Measures, ProviderClient};
use tidegate::analysis::reading::{Reading, Samples};
use tidegate::manifest::installation;
use tidegate::reconcile::tick::Term;
use tidegate::record::state::{Phase, RolloutState};
use tidegate::world::kube_api::{ApiVerb, FaultVerdict, SeenRequest, What};
use tidegate::world::simulation::Simulation;

/// Sixteen are planned at once, in the order of their names.
const ROLLOUTS: usize = 18;
/// Its measurements are bad from a moment on.
const FIRST: &str = "r00";
/// People take it back.
const LAST: &str = "r17";

const POLICY: &str = "apiVersion: tidegate.io/v1alpha1
kind: Policy
spec:
  tenants: {shop: {path: shop, namespaces: [shop], clusters: [home]}}
  limits: {maxConcurrentRuns: 100}
";

const ROLLOUT: &str = "apiVersion: tidegate.io/v1alpha1
kind: Rollout
metadata: {name: NAME, namespace: shop}
spec:
  manifests: [NAME.yaml]
  target: {kind: Deployment, name: NAME}
  traffic: {gatewayAPI: {httpRoute: NAME, service: NAME}, settle: 0s, drain: 0s}
  phases:
  - {name: tenth, expose: {weight: 10}, soak: 100h, checks: [errors]}
  checks:
    errors: {prometheus: {provider: main, query: NAME}, max: 0.01, minSamples: 1, interval: 10s}
";

/// What happened, in order.
type Log = Arc<Mutex<Vec<String>>>;

/// Nothing is wrong until somebody listens.
#[derive(Default)]
struct Meter(Mutex<Option<Log>>);

impl Measures for Meter {
    fn read<'a>(&'a self, range: &'a Range) -> BoxFuture<'a, Reading<Samples>> {
        let log = self.0.lock().unwrap().clone().filter(|_| range.query == FIRST);
        let value = if log.is_some() { 1.0 } else { 0.0 };
        log.iter().for_each(|log| log.lock().unwrap().push(format!("{FIRST} is measured")));
        Box::pin(ready(Reading::Said([(range.until, value)].into())))
    }
}

fn names() -> impl Iterator<Item = String> {
    (0..ROLLOUTS).map(|n| format!("r{n:02}"))
}

async fn push(stage: &Simulation, version: u8) {
    let files: Vec<_> = names().map(|name| (format!("shop/{name}.yaml"), manifests(&name, version))).collect();
    let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    stage.push(&files, "a version").await.unwrap();
}

/// Ticks until all records are so.
async fn until(stage: &Simulation, term: &mut Term<'_>, are: impl Fn(&RolloutState) -> bool) {
    for _ in 0..100 {
        play(stage).await;
        term.look_up().await;
        term.tick().await;
        let there = term.source.view().map_or(0, |view| view.records.states().filter(|state| are(state)).count());
        if there == ROLLOUTS {
            return;
        }
    }
    panic!("they do not get there");
}

/// Takes note of whose routes are written.
fn note_routes(stage: &Simulation, log: &Log) {
    let log = Arc::clone(log);
    stage.api.judge(move |asked: &SeenRequest<'_>| {
        let patch = matches!(asked.what, What::Request { verb: ApiVerb::Patch, dry_run: false });
        if patch && asked.resource.plural == "httproutes" && asked.subresource.is_empty() {
            log.lock().unwrap().push(format!("{} goes back", asked.name));
        }
        FaultVerdict::Pass
    });
}

#[tokio::test(start_paused = true)]
async fn what_some_want_to_know_is_asked_before_others_are_planned() {
    let directory = tempfile::tempdir().unwrap();
    let stage = Simulation::new(directory.path(), "2026-03-02T10:00:00Z".parse().unwrap()).unwrap();
    let rollouts: Vec<_> =
        names().map(|name| (format!("shop/{name}.rollout.yaml"), ROLLOUT.replace("NAME", &name))).collect();
    let rollouts = rollouts.iter().map(|(path, text)| (path.as_str(), text.as_str()));
    let files: Vec<_> = rollouts.chain([("tidegate.yaml", POLICY)]).collect();
    stage.push(&files, "the plans").await.unwrap();
    push(&stage, 1).await;
    let installation = installation::parse(&"installation.yaml".parse().unwrap(), INSTALLATION.as_bytes()).unwrap();
    let meter = Arc::new(Meter::default());
    let mut world = world(&stage, directory.path(), &installation).await;
    world.providers.insert("main".parse().unwrap(), ProviderClient::Prometheus(meter.clone()));
    let mut leader = Leader::start(world, &installation, "one").await;
    let mut term = leader.term();
    until(&stage, &mut term, |state| matches!(state.phase, Phase::Steady { .. })).await;
    push(&stage, 2).await;
    until(&stage, &mut term, |state| state.phase.position().is_some_and(|stop| stop.clock.exposed.is_some())).await;
    // Measured once, and all is well.
    tokio::time::sleep(Duration::from_secs(12)).await;
    for _ in 0..3 {
        play(&stage).await;
        term.tick().await;
    }

    let log = Log::default();
    *meter.0.lock().unwrap() = Some(Arc::clone(&log));
    note_routes(&stage, &log);
    let brake = json!({"apiVersion": "v1", "kind": "ConfigMap",
                       "metadata": {"name": "tidegate-brake", "namespace": "tidegate"},
                       "data": {format!("shop.{LAST}"): "revert"}});
    stage.api.change(|world| drop(world.create("v1", "ConfigMap", "hand", brake).unwrap()));
    // All are due again.
    tokio::time::sleep(Duration::from_secs(10)).await;
    term.tick().await;
    let mut happened = log.lock().unwrap().clone();
    happened.truncate(3);
    assert_eq!(happened, [format!("{FIRST} is measured"), format!("{LAST} goes back"), format!("{FIRST} goes back")]);
    drop(term);
    leader.end().await;
}
