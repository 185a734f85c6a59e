//! Planning only what has changed equals planning everything: whenever the table says that a rollout sleeps, a full plan of it
//! is for nothing to be done, and waits on what the table says. In made-up stories of three rollouts, after each tick.

use crate::leader::{Leader, is_settled};
use chrono::TimeDelta;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::json;
use std::path::Path;
use std::time::Duration;
use tidegate::cluster::client::Cluster;
use tidegate::gate::guard::Guard;
use tidegate::git::{RemoteConfig, RemoteUrl, Store};
use tidegate::manifest::installation::{self, Installation};
use tidegate::manifest::proof::By;
use tidegate::plan::draft::{RecordChange, RolloutPlan};
use tidegate::plan::input::MayStart;
use tidegate::plan::planner;
use tidegate::plan::report::Wait;
use tidegate::reconcile::evidence::Providers;
use tidegate::reconcile::observe::{Scene, Snapshot};
use tidegate::reconcile::tick::Term;
use tidegate::reconcile::world::Backends;
use tidegate::record::state::Phase;
use tidegate::world::kube_api::resource::Resource;
use tidegate::world::simulation::Simulation;
use tidegate::world::workloads;

pub(super) const INSTALLATION: &str = "apiVersion: tidegate.io/v1alpha1
kind: Installation
spec:
  instance: world
  repository: {url: \"https://world.invalid/fleet.git\", poll: 2s}
  clusters: {home: {inCluster: {}}}
  caps: {namespaces: [shop]}
";

/// Something that happens.
#[derive(Debug, Clone)]
enum Event {
    /// A version of one of them, or a broken one.
    Push(usize, u8),
    /// A field of its rollout's file is changed.
    Spec(usize, u8),
    Policy(u8),
    /// A request is merged, if there is one.
    Approve,
    /// Somebody changes a live object.
    Hand(usize, u8),
    Brake(usize, u8),
    /// Nothing happens for so many seconds.
    Pass(u32),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => (0..3_usize, 1..5_u8).prop_map(|(n, version)| Event::Push(n, version)),
        1 => (0..3_usize, any::<u8>()).prop_map(|(n, how)| Event::Spec(n, how)),
        1 => any::<u8>().prop_map(Event::Policy),
        3 => Just(Event::Approve),
        2 => (0..3_usize, any::<u8>()).prop_map(|(n, how)| Event::Hand(n, how)),
        1 => (0..4_usize, any::<u8>()).prop_map(|(n, word)| Event::Brake(n, word)),
        4 => prop_oneof![0..5_u32, 30..100_u32, 600..4_000_u32].prop_map(Event::Pass),
    ]
}

const NAMES: [&str; 3] = ["web", "api", "job"];

fn policy(how: u8) -> String {
    let runs = 1 + how % 3;
    let freeze = if how.is_multiple_of(4) {
        "  freezes: {now: {cron: \"0 10-14 * * *\", duration: 30m, zone: UTC}}\n"
    } else {
        ""
    };
    format!(
        "apiVersion: tidegate.io/v1alpha1\nkind: Policy\nspec:\n  tenants: {{shop: {{path: shop, namespaces: [shop], clusters: [home]}}}}\n  \
         windows: {{day: {{cron: \"0 11 * * *\", duration: 2h, zone: UTC}}}}\n{freeze}  limits: {{maxConcurrentRuns: {runs}}}\n"
    )
}

fn rollout(name: &str, how: u8) -> String {
    let suspend = if how % 3 == 1 { "  suspend: true\n" } else { "" };
    let gate = ["before: {approval: pullRequest}, ", "before: {window: day}, ", ""][usize::from(how % 3)];
    let traffic = if name == "job" {
        String::new()
    } else {
        format!(
            "  traffic: {{gatewayAPI: {{httpRoute: {name}, service: {name}}}, settle: 1s, drain: 1s}}\n  phases:\n  \
             - {{name: tenth, {gate}expose: {{weight: 10}}, soak: 1m}}\n  - {{name: half, expose: {{weight: 50}}, soak: 10m}}\n"
        )
    };
    format!(
        "apiVersion: tidegate.io/v1alpha1\nkind: Rollout\nmetadata: {{name: {name}, namespace: shop}}\nspec:\n  \
         manifests: [{name}.yaml]\n  target: {{kind: Deployment, name: {name}}}\n{traffic}{suspend}"
    )
}

pub(super) fn manifests(name: &str, version: u8) -> String {
    if version == 4 {
        return "kind: Nothing\n".to_owned();
    }
    let mut text = format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}}}\nspec:\n  replicas: 2\n  \
         selector: {{matchLabels: {{app: {name}}}}}\n  template:\n    metadata: {{labels: {{app: {name}}}}}\n    \
         spec: {{containers: [{{name: main, image: \"{name}:{version}\"}}]}}\n"
    );
    if name != "job" {
        text += &format!(
            "---\napiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\n\
             spec: {{selector: {{app: {name}}}, ports: [{{port: 80, targetPort: 8080}}]}}\n---\n\
             apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {{name: {name}}}\n\
             spec: {{parentRefs: [{{name: public}}], rules: [{{backendRefs: [{{name: {name}, port: 80}}]}}]}}\n"
        );
    }
    text
}

async fn happens(stage: &Simulation, event: &Event) {
    match event {
        Event::Push(n, version) => {
            let (path, text) = (format!("shop/{}.yaml", NAMES[*n]), manifests(NAMES[*n], *version));
            stage.push(&[(&path, &text)], "a version").await.unwrap();
        }
        Event::Spec(n, how) => {
            let (path, text) = (format!("shop/{}.rollout.yaml", NAMES[*n]), rollout(NAMES[*n], *how));
            stage.push(&[(&path, &text)], "a plan").await.unwrap();
        }
        Event::Policy(how) => drop(stage.push(&[("tidegate.yaml", &policy(*how))], "the policy").await.unwrap()),
        Event::Approve => {
            if let Some(request) = stage.requests().await.unwrap().keys().next() {
                drop(stage.merge(request).await.unwrap());
            }
        }
        Event::Hand(n, how) => hand(stage, NAMES[*n], *how),
        Event::Brake(n, word) => {
            let key = NAMES.get(*n).map_or("all".to_owned(), |name| format!("shop.{name}"));
            let data = match word % 3 {
                0 => json!({}),
                1 => json!({key: "hold"}),
                _ => json!({key: "revert"}),
            };
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap",
                                "metadata": {"name": "tidegate-brake", "namespace": "tidegate"}, "data": data});
            stage.api.change(|world| {
                if world.update(object.clone(), "", "hand").is_err() {
                    drop(world.create("v1", "ConfigMap", "hand", object));
                }
            });
        }
        Event::Pass(seconds) => tokio::time::sleep(Duration::from_secs(u64::from(*seconds))).await,
    }
}

fn hand(stage: &Simulation, name: &str, how: u8) {
    let of = |api: &str, kind: &str| Resource::of_kind(api, kind).expect("it is served");
    let (resource, name) = match how % 4 {
        0 => (of("apps/v1", "Deployment"), name.to_owned()),
        1 => (of("apps/v1", "Deployment"), format!("{name}-canary")),
        2 => (of("v1", "Service"), name.to_owned()),
        _ => (of("gateway.networking.k8s.io/v1", "HTTPRoute"), name.to_owned()),
    };
    stage.api.change(|world| {
        let Some(found) = world.get(resource, "shop", &name) else { return };
        let mut object = (**found).clone();
        if how.is_multiple_of(5) {
            return drop(world.delete(&object));
        }
        if let Some(refs) = object.pointer_mut("/spec/rules/0/backendRefs").and_then(serde_json::Value::as_array_mut) {
            refs.iter_mut().for_each(|backend| backend["weight"] = json!(how % 7));
        } else {
            object["metadata"]["labels"] = json!({"by-hand": how.to_string()});
        }
        drop(world.update(object, "", "hand"));
    });
}

fn is_for_nothing(plan: &RolloutPlan) -> bool {
    let RolloutPlan {
        retreats,
        record,
        actions,
        proposals,
        void,
        waits: _,
        needs,
        lookups,
        questions,
        review_queries,
        wake_at: _,
    } = plan;
    retreats.is_empty()
        && *record == RecordChange::Keep
        && actions.is_empty()
        && proposals.is_empty()
        && void.is_empty()
        && needs.is_empty()
        && lookups.is_empty()
        && questions.is_empty()
        && review_queries.is_empty()
}

/// Whether two plans wait on the same. What is counted in whole seconds ends a part of a second sooner or later, and tells how far
/// it has come.
fn is_same(kept: &Wait, new: &Wait) -> bool {
    let Wait { reason, message, owner, since, until, act, live } = kept;
    let ends = match (until, new.until) {
        (Some(until), Some(new)) => (new - *until).abs() < TimeDelta::seconds(1),
        (None, None) => *message == new.message,
        (Some(_), None) | (None, Some(_)) => false,
    };
    (reason, owner, since, act, live) == (&new.reason, &new.owner, &new.since, &new.act, &new.live) && ends
}

/// Plans everything, and compares; how many rollouts slept.
fn compare(term: &Term<'_>, tale: &str) -> usize {
    let Some(view) = term.source.view() else { return 0 };
    let shell = term.shell;
    let mut gaps = term.gaps.clone();
    let snapshot = Snapshot::take(&shell.watches, &shell.namespaces, &mut gaps, &shell.clock);
    let me = shell.writer(&term.held);
    let scene = Scene { me: &me, view: &view, snapshot: &snapshot, by: By::Nothing, guard: &Guard::Unasked };
    let limit = view.main.max_concurrent_runs();
    let open = view.records.states().filter(|s| s.run.is_some() && !matches!(s.phase, Phase::Waiting { at: None, .. }));
    let may_start = if open.count() < limit { MayStart::Yes } else { MayStart::No { limit } };
    let restless = term.table.restless(&view, &snapshot);
    let mut slept = 0;
    for id in scene.rollouts() {
        let fingerprint = scene.fingerprint(&id, may_start);
        if !term.table.sleeps(&id, &fingerprint, &snapshot) {
            let found = restless.as_ref().is_none_or(|restless| restless.contains(&id));
            assert!(found, "{id} does not sleep, and would not be looked at\nafter {tale}");
            continue;
        }
        let plan = planner::plan(&scene.input(&id, shell.evidence.of(&id), may_start));
        assert!(is_for_nothing(&plan), "{id} sleeps, and would do this: {plan:#?}\nafter {tale}");
        let kept = term.table.waits().find(|(known, _)| **known == id).map(|(_, waits)| waits.to_vec());
        let kept = kept.unwrap_or_default();
        let same = kept.len() == plan.waits.len() && kept.iter().zip(&plan.waits).all(|(kept, new)| is_same(kept, new));
        assert!(same, "{id} sleeps and waits on {kept:#?}, a new plan on {:#?}\nafter {tale}", plan.waits);
        slept += 1;
    }
    slept
}

/// Lets the cluster's controllers do what is due.
pub(super) async fn play(stage: &Simulation) {
    stage.api.change(|world| {
        let now = stage.clock.now();
        workloads::pass(world, (now - world.now()).max(chrono::TimeDelta::zero()));
        workloads::settle(world);
    });
    // What was written reaches the watches, and what was asked comes back.
    tokio::time::sleep(Duration::from_millis(20)).await;
}

/// Ticks until nothing is left to do at once, in a cluster whose controllers answer.
async fn tick(stage: &Simulation, term: &mut Term<'_>, tale: &str) -> usize {
    let mut slept = 0;
    for _ in 0..60 {
        play(stage).await;
        slept += compare(term, tale);
        let next = term.look_up().await.min(term.tick().await);
        slept += compare(term, tale);
        if is_settled(term, next) {
            break;
        }
    }
    slept
}

async fn story(events: &[Event]) -> usize {
    let directory = tempfile::tempdir().unwrap();
    let stage = Simulation::new(directory.path(), "2026-03-02T10:00:00Z".parse().unwrap()).unwrap();
    let mut files = vec![("tidegate.yaml".to_owned(), policy(1))];
    for name in NAMES {
        files.push((format!("shop/{name}.rollout.yaml"), rollout(name, 0)));
        files.push((format!("shop/{name}.yaml"), manifests(name, 1)));
    }
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    stage.push(&files, "the first versions").await.unwrap();
    let installation = installation::parse(&"installation.yaml".parse().unwrap(), INSTALLATION.as_bytes()).unwrap();
    let mut leader = Leader::start(world(&stage, directory.path(), &installation).await, &installation, "one").await;
    let mut term = leader.term();
    let mut slept = tick(&stage, &mut term, "nothing").await;
    for (n, event) in events.iter().enumerate() {
        happens(&stage, event).await;
        let Some(held) = term.shell.lead.held() else { break };
        term.held = held;
        slept += tick(&stage, &mut term, &format!("{:?}", &events[..=n])).await;
    }
    leader.end().await;
    slept
}

pub(super) async fn world(stage: &Simulation, directory: &Path, installation: &Installation) -> Backends {
    let cache = directory.join("one");
    let remote = RemoteConfig::new(RemoteUrl::Local(stage.repository()));
    let home = "tidegate".parse().unwrap();
    Backends {
        cluster: Cluster::over(stage.api.caller("one"), home, &installation.instance).await.unwrap(),
        store: Store::open(&cache, remote).unwrap(),
        providers: Providers::new(),
        clock: stage.clock.clone(),
        pass: None,
        transport: None,
    }
}

#[tokio::test(start_paused = true)]
async fn who_sleeps_has_nothing_to_do() {
    // `TIDEGATE_SEEDS=<n>` tries more than every test run can afford.
    let seeds = option_env!("TIDEGATE_SEEDS").and_then(|n| n.parse().ok()).unwrap_or(5_u64);
    let mut slept = 0;
    for seed in 0..seeds {
        println!("seed {seed}");
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let mut runner = TestRunner::new_with_rng(Config::default(), TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
        let events = proptest::collection::vec(event(), 12).new_tree(&mut runner).unwrap().current();
        slept += story(&events).await;
    }
    assert!(slept > 100, "{slept} times somebody slept: nothing was compared");
}
