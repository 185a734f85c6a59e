//! Pods that others take away, and where pods may be: budgets, evictions and the scheduler are the real ones.

use super::app::{App, of};
use super::scaling::each_step_gated;
use super::served::Served;
use super::world::{Held, World};
use crate::support::cluster::{Bed, eventually};
use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::Api;
use kube::api::ListParams;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use tidegate::plan::report::Reason;
use tidegate::record::state::{Phase, Rest};
use tokio::task::JoinHandle;

/// How many pods a budget lets go, at every instant, until dropped.
struct Allowed {
    counts: Arc<Mutex<Vec<i32>>>,
    task: JoinHandle<()>,
}

impl Allowed {
    fn watch(world: &World, name: &str) -> Self {
        let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
        let budgets: Api<PodDisruptionBudget> = world.space.api();
        let counts = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&counts);
        let task = tokio::spawn(async move {
            let mut listed = false;
            // A watch that breaks is opened again where it was. One that has to list anew did not see what lay between.
            let mut events = watcher(budgets, config).default_backoff().boxed();
            while let Some(event) = events.next().await {
                match event {
                    Ok(Event::Init) => assert!(!listed, "the budget was listed anew"),
                    Ok(Event::InitDone) => listed = true,
                    Ok(Event::InitApply(budget) | Event::Apply(budget)) => {
                        let allowed = budget.status.map(|status| status.disruptions_allowed.unwrap_or(0));
                        seen.lock().unwrap().extend(allowed);
                    }
                    Ok(Event::Delete(_)) | Err(_) => {}
                }
            }
        });
        Self { counts, task }
    }

    /// The fewest there were.
    fn fewest(&self) -> i32 {
        assert!(!self.task.is_finished(), "the watch has ended");
        self.counts.lock().unwrap().iter().copied().min().expect("the budget was seen")
    }
}

impl Drop for Allowed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A version of three pods with a budget.
fn guarded(name: &str, version: u8, pods: &str, budget: &str) -> String {
    let budget =
        format!("apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {{name: {name}}}\nspec: {{{budget}}}");
    let text = App { replicas: 3, pods, more: &budget, ..App::new(name, version) }.text();
    let labels = format!("labels: {{app: {name}, part: {name}}}, annotations");
    text.replace(&format!("labels: {{app: {name}}}, annotations"), &labels)
}

/// A budget of the pods that the manifests ask for.
fn of_stable(name: &str, least: u32) -> String {
    format!("minAvailable: {least}, selector: {{matchLabels: {{app: {name}}}}}")
}

/// A budget of all pods, whichever version's.
fn of_both(name: &str) -> String {
    format!("maxUnavailable: 1, selector: {{matchLabels: {{part: {name}}}}}")
}

impl World {
    /// Waits until a budget is about so many pods and lets so many go.
    async fn budget(&self, name: &str, pods: u64, allowed: u64) {
        eventually(&format!("a budget {name} of {pods} pods that lets {allowed} go"), async || {
            let budget = self.get("PodDisruptionBudget", name).await?;
            let status = &budget["status"];
            let seen = status["observedGeneration"] == budget["metadata"]["generation"];
            let count = |field: &str| status[field].as_u64().unwrap_or(0);
            (seen && (count("expectedPods"), count("disruptionsAllowed")) == (pods, allowed)).then_some(())
        })
        .await;
    }

    async fn pods_of(&self, app: &str) -> Vec<Pod> {
        let pods: Api<Pod> = self.space.api();
        pods.list(&ListParams::default().labels(&format!("app={app}"))).await.unwrap().items
    }

    /// Asks once for one pod of an app to go that is not going yet, as `kubectl drain` does; why not, if it may not.
    async fn evict(&self, app: &str) -> Result<(), String> {
        let there = self.pods_of(app).await.into_iter().find(|pod| pod.metadata.deletion_timestamp.is_none());
        let (name, namespace) = (there.unwrap().metadata.name.unwrap(), &self.space.name);
        let metadata = json!({"name": name, "namespace": namespace});
        let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata});
        let path = format!("/api/v1/namespaces/{namespace}/pods/{name}/eviction");
        self.bed.try_kubectl(&["create", "--raw", &path, "-f", "-"], &eviction.to_string()).await.map(drop)
    }

    /// Evicts one pod of an app, and waits until another has come in its place.
    async fn evicts(&self, app: &str) {
        let before = self.pods(app).await;
        assert_eq!(self.evict(app).await, Ok(()));
        eventually("another pod", async || (self.pods(app).await != before).then_some(())).await;
    }

    async fn may_not_evict(&self, app: &str) {
        let why = self.evict(app).await.unwrap_err();
        assert!(why.contains("it would violate the pod's disruption budget"), "{why}");
    }
}

/// Several rollouts of one controller, at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_that_others_take_away_and_where_pods_may_be() {
    let mut world = World::empty(Held::Shared(Bed::shared().await), "disrupted").await;
    for name in ["stable", "both", "spread", "late"] {
        world.add(&of(name, &each_step_gated()), &App::new(name, 1));
    }
    world.add(&format!("    layout: primary\n{}", of("copies", &each_step_gated())), &App::new("copies", 1));
    world.commit(&[
        ("it/stable.yaml", &guarded("stable", 1, "", &of_stable("stable", 2))),
        ("it/both.yaml", &guarded("both", 1, "", &of_both("both"))),
        ("it/spread.yaml", &placed("spread", 1)),
        ("it/copies.yaml", &placed("copies", 1)),
    ]);
    world.refuse_pods("late", 1).await;
    world.listens();
    world.start();
    tokio::join!(
        a_budget_of_stable_is_not_spent_by_a_run_and_a_pod_that_is_evicted_comes_back(&world, "stable"),
        a_budget_of_both_versions_counts_the_candidates_pods_too(&world, "both"),
        c_30_pods_are_spread_among_those_of_their_own_version(&world, "spread"),
        c_30_so_they_are_in_copies(&world, "copies"),
        c_2_nothing_is_put_in_front_of_a_stable_that_is_not_ready(&world, "late"),
    );
    world.settled(&[]).await;
}

async fn a_budget_of_stable_is_not_spent_by_a_run_and_a_pod_that_is_evicted_comes_back(world: &World, name: &str) {
    let release = |version, pods, least| {
        let path = format!("it/{name}.yaml");
        world.commit(&[(&path, &guarded(name, version, pods, &of_stable(name, least)))])
    };
    world.until_steady_of(name, Rest::Initialized).await;
    let served = Served::watch(world, name);
    world.budget(name, 3, 1).await;
    let allowed = Allowed::watch(world, name);
    // Its pods take a while to become ready.
    let slow = "testbed/ready-after: 1s";
    release(2, slow, 2);
    world.approve_of(name, "tenth").await;
    world.request_of(name, "half").await;
    world.budget(name, 3, 1).await;
    assert_eq!(allowed.fewest(), 1, "the candidate's pods are none of those");
    world.evicts(name).await;
    world.budget(name, 3, 1).await;
    assert!(served.fewest() >= 2, "{}", served.fewest());
    promoted(world, name).await;
    // A change of the budget alone starts no run.
    release(2, slow, 3);
    world.budget(name, 3, 0).await;
    world.may_not_evict(name).await;
    assert_eq!(world.record_of(name).unwrap().next_run, 2);
}

/// Says yes to all steps from `half` on.
async fn promoted(world: &World, name: &str) {
    for step in ["half", "promotion"] {
        world.approve_of(name, step).await;
    }
    world.until_steady_of(name, Rest::Succeeded).await;
}

async fn a_budget_of_both_versions_counts_the_candidates_pods_too(world: &World, name: &str) {
    let release = |version, pods| {
        let path = format!("it/{name}.yaml");
        world.commit(&[(&path, &guarded(name, version, pods, &of_both(name)))])
    };
    world.until_steady_of(name, Rest::Initialized).await;
    world.budget(name, 3, 1).await;
    release(2, "");
    world.approve_of(name, "tenth").await;
    world.request_of(name, "half").await;
    world.budget(name, 6, 1).await;
    world.evicts(&format!("{name}-canary")).await;
    world.budget(name, 6, 1).await;
    promoted(world, name).await;
    world.budget(name, 3, 1).await;

    // Pods that never become ready are away, whosever they are: until they go no other may.
    release(3, "testbed/behaviour: crash");
    world.approve_of(name, "tenth").await;
    world.budget(name, 6, 0).await;
    world.may_not_evict(name).await;
    release(2, "");
    world.until_steady_of(name, Rest::Reverted).await;
    world.budget(name, 3, 1).await;
}

/// Two pods of an app are never on one node, as far as the scheduler is told by their label.
fn placed(name: &str, version: u8) -> String {
    let own = format!("labelSelector: {{matchLabels: {{app: {name}}}}}");
    let rules = format!(
        "topologySpreadConstraints: [{{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, \
         {own}, matchLabelKeys: [pod-template-hash]}}], affinity: {{podAntiAffinity: \
         {{requiredDuringSchedulingIgnoredDuringExecution: [{{topologyKey: kubernetes.io/hostname, {own}}}]}}}}"
    );
    App::new(name, version).text().replace("spec: {containers:", &format!("spec: {{{rules}, containers:"))
}

/// By which label the pods of a Deployment are told apart by the scheduler.
async fn told_by(world: &World, deployment: &str) -> [Value; 2] {
    let deployment = world.get("Deployment", deployment).await.unwrap();
    let pod = &deployment["spec"]["template"]["spec"];
    let spread = &pod["topologySpreadConstraints"][0];
    assert_eq!(spread["matchLabelKeys"], json!(["pod-template-hash"]));
    let apart = &pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0];
    [spread, apart].map(|rule| rule["labelSelector"]["matchLabels"].clone())
}

/// Three nodes take two pods of each version, since a copy's rules are about its own pods.
async fn each_version_is_spread(world: &World, name: &str, [stable, candidate]: [&str; 2]) {
    world.until_steady_of(name, Rest::Initialized).await;
    world.commit(&[(&format!("it/{name}.yaml"), &placed(name, 2))]);
    world.approve_of(name, "tenth").await;
    world.request_of(name, "half").await;
    for app in [stable, candidate] {
        assert_eq!(told_by(world, app).await, [json!({"app": app}), json!({"app": app})]);
        let pods = world.pods_of(app).await;
        let nodes: BTreeSet<_> = pods.iter().filter_map(|pod| pod.spec.clone()?.node_name).collect();
        assert_eq!((pods.len(), nodes.len()), (2, 2), "{app}");
    }
    promoted(world, name).await;
    assert_eq!(told_by(world, stable).await, [json!({"app": stable}), json!({"app": stable})]);
}

async fn c_30_pods_are_spread_among_those_of_their_own_version(world: &World, name: &str) {
    each_version_is_spread(world, name, [name, &format!("{name}-canary")]).await;
}

async fn c_30_so_they_are_in_copies(world: &World, name: &str) {
    each_version_is_spread(world, name, [&format!("{name}-primary"), name]).await;
}

/// Of an application whose pods are refused from the start.
async fn c_2_nothing_is_put_in_front_of_a_stable_that_is_not_ready(world: &World, name: &str) {
    // Others may wait for theirs, too, but not for long.
    world.waits_for(Reason::StableNotReady).await;
    eventually("why there are no pods", async || {
        let deployment = world.get("Deployment", name).await?;
        let conditions = deployment["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|one| one["type"] == "ReplicaFailure" && one["status"] == "True").then_some(())
    })
    .await;
    assert!(matches!(world.record_of(name).unwrap().phase, Phase::Initializing(_)));
    for kind in ["Service", "HTTPRoute"] {
        assert_eq!(world.get(kind, name).await, None, "{kind}");
    }
    world.accept_pods(name, 1).await;
    world.until_steady_of(name, Rest::Initialized).await;
    assert_eq!(world.get("Service", name).await.unwrap()["spec"]["selector"]["app"], name);
}
