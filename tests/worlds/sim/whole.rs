//! The controller that is shipped, in the whole world in a process: stories over hours in less than a second each.

use crate::support::app::manifests;
use chrono::TimeDelta;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tidegate::git::{RemoteCall, RemoteFault};
use tidegate::manifest::ids::RolloutId;
use tidegate::reconcile::controller::{Once, Options};
use tidegate::record::state::{Phase, Rest, RolloutState};
use tidegate::world::kube_api::{ApiVerb, Fault, FaultVerdict, SeenRequest, What};
use tidegate::world::simulation::Simulation;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

pub(super) const POLICY: &str = "apiVersion: tidegate.io/v1alpha1
kind: Policy
spec: {tenants: {shop: {path: shop, namespaces: [shop], clusters: [home]}}}
";

const ROLLOUT: &str = "apiVersion: tidegate.io/v1alpha1
kind: Rollout
metadata: {name: web, namespace: shop}
spec:
  manifests: [web.yaml]
  target: {kind: Deployment, name: web}
  traffic: {gatewayAPI: {httpRoute: web, service: web}}
  phases:
  - {name: tenth, before: {approval: pullRequest}, expose: {weight: 10}, soak: 1h, checks: [errors]}
  - {name: half, expose: {weight: 50}, soak: 1h, checks: [errors]}
  checks:
    errors:
      prometheus: {provider: world, query: 'errors{namespace=\"shop\",deployment=\"web-canary\"}'}
      max: 0.01
      minSamples: 30
";

struct Story {
    stage: Arc<Simulation>,
    tasks: JoinSet<()>,
    stop: CancellationToken,
    directory: tempfile::TempDir,
}

impl Story {
    async fn begin(rollout: &str) -> Self {
        let filter = tracing_subscriber::EnvFilter::new("tidegate=info");
        tracing_subscriber::fmt().with_env_filter(filter).with_test_writer().try_init().ok();
        let directory = tempfile::tempdir().unwrap();
        let stage = Arc::new(Simulation::new(directory.path(), "2026-03-02T10:00:00Z".parse().unwrap()).unwrap());
        let files = [("tidegate.yaml", POLICY), ("shop/web.rollout.yaml", rollout), ("shop/web.yaml", &manifests("1"))];
        stage.push(&files, "the first version").await.unwrap();
        let mut tasks = JoinSet::new();
        let world = Arc::clone(&stage);
        tasks.spawn(async move { world.nature().await });
        Self { stage, tasks, stop: CancellationToken::new(), directory }
    }

    fn start(&mut self, identity: &'static str) -> AbortHandle {
        let (stage, stop) = (Arc::clone(&self.stage), self.stop.clone());
        self.tasks.spawn(async move {
            let options = Options { once: Once::No, listen: None, identity: identity.to_owned() };
            let ended = stage.controller(identity, options, &stop).await;
            assert!(ended.is_ok_and(|waiting| waiting.is_empty()), "the controller ends when it is told to");
        })
    }

    fn id() -> RolloutId {
        "shop/web".parse().unwrap()
    }

    /// Waits, in the world's time, until the record is so.
    async fn until(&mut self, what: &str, met: impl Fn(&RolloutState) -> bool) -> RolloutState {
        for _ in 0..1_000 {
            let record = self.stage.record(&Self::id()).await.unwrap();
            if let Some(record) = record.filter(|record| met(record)) {
                return record;
            }
            tokio::time::sleep(Duration::from_secs(60)).await;
            while let Some(ended) = self.tasks.try_join_next() {
                assert!(ended.as_ref().is_err_and(JoinError::is_cancelled), "{what}: something ended: {ended:?}");
            }
        }
        panic!("{what}: {:#?}", self.stage.record(&Self::id()).await);
    }

    async fn steady(&mut self, wanted: Rest) -> RolloutState {
        self.until("at rest", |record| matches!(record.phase, Phase::Steady { how, .. } if how == wanted)).await
    }

    async fn approve(&mut self) {
        self.until("a request", |record| record.run.as_ref().is_some_and(|run| !run.pulls.is_empty())).await;
        let requests = self.stage.requests().await.unwrap();
        assert_eq!(requests.len(), 1, "{requests:?}");
        self.stage.merge(requests.keys().next().unwrap()).await.unwrap();
    }

    fn weight(&self) -> i64 {
        let route = tidegate::world::kube_api::resource::Resource::of_kind("gateway.networking.k8s.io/v1", "HTTPRoute");
        self.stage.api.look(|world| {
            let route = world.get(route.unwrap(), "shop", "web").unwrap();
            let backends = route["spec"]["rules"][0]["backendRefs"].as_array().unwrap();
            let canary = backends.iter().find(|backend| backend["name"] == "web-canary");
            canary.map_or(0, |backend| backend["weight"].as_i64().unwrap())
        })
    }

    fn image(&self) -> String {
        let deployments = tidegate::world::kube_api::resource::Resource::of_kind("apps/v1", "Deployment").unwrap();
        self.stage.api.look(|world| {
            let web = world.get(deployments, "shop", "web").unwrap();
            web["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap().to_owned()
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_good_version_is_promoted_and_a_bad_one_goes_back_by_what_is_measured() {
    let mut story = Story::begin(ROLLOUT).await;
    story.start("one");
    story.steady(Rest::Initialized).await;

    let began = story.stage.clock.now();
    story.stage.push(&[("shop/web.yaml", &manifests("2"))], "version 2").await.unwrap();
    story.approve().await;
    story.until("half", |record| record.phase.position().is_some_and(|stop| stop.step.as_str() == "half")).await;
    let record = story.steady(Rest::Succeeded).await;
    assert!(story.stage.clock.now() - began > TimeDelta::hours(2), "two soaks of an hour");
    assert_eq!((record.refused.len(), story.image().as_str(), story.weight()), (0, "web:2", 0));

    story.stage.push(&[("shop/web.yaml", &manifests("3-errors"))], "version 3").await.unwrap();
    story.approve().await;
    let record = story.until("failed", |record| matches!(record.phase, Phase::Failed { .. })).await;
    let why = &record.refused[0].why;
    assert!(why.starts_with("tenth: errors: 0.25 at ") && why.ends_with("is above 0.01"), "{why}");
    assert_eq!((story.image().as_str(), story.weight()), ("web:2", 0));
}

#[tokio::test(start_paused = true)]
async fn x_14_a_pause_of_the_process_is_no_part_of_a_soak() {
    let slow = ROLLOUT.replace("before: {approval: pullRequest}, ", "").replace("1h", "10m").replace("30", "1");
    let mut story = Story::begin(&slow).await;
    story.start("one");
    story.steady(Rest::Initialized).await;
    story.stage.push(&[("shop/web.yaml", &manifests("2"))], "version 2").await.unwrap();
    let exposed = |record: &RolloutState| record.phase.position().is_some_and(|stop| stop.clock.exposed.is_some());
    story.until("a tenth", exposed).await;
    // Nobody else takes the Lease meanwhile, so that the epoch stays.
    tokio::time::advance(Duration::from_secs(3_600)).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let record = story.stage.record(&Story::id()).await.unwrap().unwrap();
    assert_eq!(record.phase.position().map(|stop| stop.step.as_str()), Some("tenth"));
    story.steady(Rest::Succeeded).await;
}

#[tokio::test(start_paused = true)]
async fn c_24_what_was_asked_for_a_record_that_git_refuses_is_not_asked_again() {
    let quick = ROLLOUT.replace("before: {approval: pullRequest}, ", "").replace("1h", "1m").replace("30", "1");
    let mut story = Story::begin(&quick).await;
    story.start("one");
    story.steady(Rest::Initialized).await;
    let (asked, pushed, refuses) = (AtomicU64::new(0), AtomicU64::new(0), Arc::new(AtomicBool::new(true)));
    story.stage.api.judge(move |seen| {
        if let What::Request { dry_run: true, .. } = seen.what {
            assert!(asked.fetch_add(1, Ordering::Relaxed) < 50, "dry runs are asked again without a pause");
        }
        FaultVerdict::Pass
    });
    let refused = Arc::clone(&refuses);
    // The run is opened; that it enters its first step is not taken.
    story.stage.judge_git(move |_, errand| match errand {
        RemoteCall::Push(_) if pushed.fetch_add(1, Ordering::Relaxed) > 0 && refused.load(Ordering::Relaxed) => {
            RemoteFault::Rejected
        }
        RemoteCall::Push(_) | RemoteCall::LookUp | RemoteCall::Fetch => RemoteFault::Pass,
    });
    story.stage.push(&[("shop/web.yaml", &manifests("2"))], "version 2").await.unwrap();
    tokio::time::sleep(Duration::from_secs(600)).await;
    refuses.store(false, Ordering::Relaxed);
    story.steady(Rest::Succeeded).await;
}

#[tokio::test(start_paused = true)]
async fn x_11_who_loses_the_lease_and_has_it_again_at_once_goes_on() {
    let mut story =
        Story::begin(&ROLLOUT.replace("before: {approval: pullRequest}, ", "").replace("1h", "1m").replace("30", "1"))
            .await;
    story.start("one");
    story.steady(Rest::Initialized).await;
    let leases = tidegate::world::kube_api::resource::Resource::of_kind("coordination.k8s.io/v1", "Lease").unwrap();
    story.stage.api.change(|world| {
        let lease = world.get(leases, "tidegate", "tidegate-world").unwrap().clone();
        world.delete(&lease).unwrap();
    });
    tokio::time::sleep(Duration::from_secs(60)).await;
    story.stage.push(&[("shop/web.yaml", &manifests("2"))], "version 2").await.unwrap();
    let record = story.steady(Rest::Succeeded).await;
    assert!(record.writer.epoch > 1, "the Lease was made anew");
}

#[tokio::test(start_paused = true)]
async fn x_12_who_loses_the_lease_to_another_while_nothing_happens_stands_by() {
    let mut story = Story::begin(ROLLOUT).await;
    story.start("one");
    story.steady(Rest::Initialized).await;
    let told = story.directory.path().join("log");
    let log = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(Arc::new(std::fs::File::create(&told).unwrap()))
        .finish();
    let _guard = crate::support::listen::listen(log);
    let leases = tidegate::world::kube_api::resource::Resource::of_kind("coordination.k8s.io/v1", "Lease").unwrap();
    story.stage.api.change(|world| {
        let mut lease = (**world.get(leases, "tidegate", "tidegate-world").unwrap()).clone();
        lease["spec"]["holderIdentity"] = "two".into();
        world.update(lease, "", "two").unwrap();
    });
    tokio::time::sleep(Duration::from_secs(9)).await;
    let told = std::fs::read_to_string(told).unwrap();
    assert!(told.contains("stands by holder=\"two\""), "{told}");
}

/// Whether a request changes something that others see: what the Lease says is between controllers.
fn writes(seen: &SeenRequest<'_>) -> bool {
    let changes = match seen.what {
        What::Request { verb, dry_run: false } => {
            matches!(verb, ApiVerb::Create | ApiVerb::Update | ApiVerb::Patch | ApiVerb::Delete)
        }
        What::Request { .. } | What::Event(_) => false,
    };
    changes && !matches!(seen.resource.plural, "leases" | "events")
}

/// A run without people, whose controller is killed at its `n`th write, before or after that took effect. Says whether it
/// wrote as often.
async fn killed_at(n: u64, fate: FaultVerdict) -> bool {
    let quick = ROLLOUT.replace("before: {approval: pullRequest}, ", "").replace("1h", "1m").replace("30", "1");
    let mut story = Story::begin(&quick).await;
    let first = story.start("one");
    story.steady(Rest::Initialized).await;
    let (killed, count) = (Arc::new(Notify::new()), AtomicU64::new(0));
    let told = Arc::clone(&killed);
    story.stage.api.judge(move |seen| {
        if seen.caller != "one" || !writes(seen) {
            // Who is dead does not hear.
            let dead = seen.caller == "one" && count.load(Ordering::Relaxed) >= n;
            return if dead { FaultVerdict::Before(Fault::Silence) } else { FaultVerdict::Pass };
        }
        match (count.fetch_add(1, Ordering::Relaxed) + 1).cmp(&n) {
            std::cmp::Ordering::Less => FaultVerdict::Pass,
            std::cmp::Ordering::Equal => {
                told.notify_one();
                fate
            }
            std::cmp::Ordering::Greater => FaultVerdict::Before(Fault::Silence),
        }
    });
    story.stage.push(&[("shop/web.yaml", &manifests("2"))], "version 2").await.unwrap();
    let reached = tokio::select! {
        _ = story.steady(Rest::Succeeded) => false,
        () = killed.notified() => true,
    };
    if reached {
        first.abort();
        story.start("two");
        let record = story.steady(Rest::Succeeded).await;
        assert_eq!(record.next_run, 2, "it is the same run");
        assert!(record.writer.epoch > 1, "each process has an epoch of its own");
    }
    assert_eq!((story.image().as_str(), story.weight()), ("web:2", 0), "killed at write {n}, {fate:?}");
    let deployments = tidegate::world::kube_api::resource::Resource::of_kind("apps/v1", "Deployment").unwrap();
    let left = story.stage.api.look(|world| world.list(deployments, "shop").count());
    assert_eq!(left, 1, "killed at write {n}, {fate:?}: the candidate is gone");
    reached
}

#[tokio::test(start_paused = true)]
async fn x_11_killed_before_any_write_a_run_ends_in_the_same_world() {
    let mut n = 1;
    while killed_at(n, FaultVerdict::Before(Fault::Silence)).await {
        n += 1;
    }
    assert!(n > 10, "a run writes more often than {n} times");
}

#[tokio::test(start_paused = true)]
async fn x_11_killed_after_any_write_a_run_ends_in_the_same_world() {
    let mut n = 1;
    while killed_at(n, FaultVerdict::After(Fault::Silence)).await {
        n += 1;
    }
    assert!(n > 10, "a run writes more often than {n} times");
}

/// The same, killed at its `n`th push: before Git has it, or after. Says whether it pushed as often.
async fn killed_at_push(n: u64, after: bool) -> bool {
    let quick = ROLLOUT.replace("before: {approval: pullRequest}, ", "").replace("1h", "1m").replace("30", "1");
    let mut story = Story::begin(&quick).await;
    let first = story.start("one");
    story.steady(Rest::Initialized).await;
    let (killed, count, dead) = (Arc::new(Notify::new()), AtomicU64::new(0), Arc::new(AtomicBool::new(false)));
    let (told, dies) = (Arc::clone(&killed), Arc::clone(&dead));
    // Who is dead says nothing more, neither here nor there.
    story.stage.api.judge(move |seen| {
        let silent = seen.caller == "one" && dead.load(Ordering::Relaxed);
        if silent { FaultVerdict::Before(Fault::Silence) } else { FaultVerdict::Pass }
    });
    let never = RemoteFault::Late(Duration::from_secs(86_400));
    story.stage.judge_git(move |identity, errand| match errand {
        _ if identity != "one" => RemoteFault::Pass,
        _ if dies.load(Ordering::Relaxed) => never.clone(),
        RemoteCall::Push(_) if count.fetch_add(1, Ordering::Relaxed) + 1 == n => {
            dies.store(true, Ordering::Relaxed);
            told.notify_one();
            if after { RemoteFault::Lost } else { never.clone() }
        }
        RemoteCall::Push(_) | RemoteCall::LookUp | RemoteCall::Fetch => RemoteFault::Pass,
    });
    story.stage.push(&[("shop/web.yaml", &manifests("2"))], "version 2").await.unwrap();
    let reached = tokio::select! {
        _ = story.steady(Rest::Succeeded) => false,
        () = killed.notified() => true,
    };
    if reached {
        // What was sent before the end arrives.
        tokio::time::sleep(Duration::from_millis(1)).await;
        first.abort();
        story.start("two");
        let record = story.steady(Rest::Succeeded).await;
        assert_eq!(record.next_run, 2, "killed at push {n}: it is the same run");
    }
    assert_eq!((story.image().as_str(), story.weight()), ("web:2", 0), "killed at push {n}, after it: {after}");
    reached
}

#[tokio::test(start_paused = true)]
async fn x_11_killed_before_or_after_any_push_a_run_ends_in_the_same_world() {
    for after in [false, true] {
        let mut n = 1;
        while killed_at_push(n, after).await {
            n += 1;
        }
        assert!(n > 5, "a run pushes more often than {n} times");
    }
}

#[tokio::test(start_paused = true)]
async fn at_rest_a_poll_is_one_look_up_and_the_cluster_is_asked_for_nothing_but_the_lease() {
    let mut story = Story::begin(ROLLOUT).await;
    story.start("one");
    story.steady(Rest::Initialized).await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    let tip = story.stage.commits(None).await.unwrap().last().map(|commit| commit.commit.clone());
    let (looks, more, leases) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (looked, others, renewed) = (Arc::clone(&looks), Arc::clone(&more), Arc::clone(&leases));
    story.stage.judge_git(move |_, errand| {
        let which = if matches!(errand, RemoteCall::LookUp) { &looked } else { &others };
        which.fetch_add(1, Ordering::Relaxed);
        RemoteFault::Pass
    });
    let asked = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&asked);
    story.stage.api.judge(move |seen| {
        let What::Request { verb, .. } = seen.what else { return FaultVerdict::Pass };
        if seen.resource.plural == "leases" {
            renewed.fetch_add(1, Ordering::Relaxed);
        } else if !seen.caller.is_empty() && verb != ApiVerb::Watch {
            told.lock().unwrap().push(format!("{verb} {} {}", seen.resource.plural, seen.name));
        }
        FaultVerdict::Pass
    });
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert_eq!(*asked.lock().unwrap(), [""; 0]);
    // A poll is two seconds.
    let looks = looks.load(Ordering::Relaxed);
    assert!((1_790..=1_805).contains(&looks), "{looks} look-ups");
    assert_eq!(more.load(Ordering::Relaxed), 0, "of Git nothing is fetched and nothing pushed");
    assert!(leases.load(Ordering::Relaxed) > 100, "the Lease is renewed");
    assert_eq!(story.stage.commits(tip.as_ref()).await.unwrap().len(), 0);
}
