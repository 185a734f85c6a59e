//! Pods that others take away, and where pods may be: budgets, evictions and the scheduler are the real ones.

use super::app::{App, hasty};
use super::scaling::each_step_gated;
use super::served::Served;
use super::world::World;
use crate::support::cluster::eventually;
use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::Api;
use kube::api::ListParams;
use kube::runtime::watcher::{self, Event, watcher};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use tidegate::plan::report::Reason;
use tidegate::record::state::{Phase, Rest};
use tokio::task::JoinHandle;

/// How many pods the budget `web` lets go, at every instant, until dropped.
struct Allowed {
    counts: Arc<Mutex<Vec<i32>>>,
    task: JoinHandle<()>,
}

impl Allowed {
    fn watch(world: &World) -> Self {
        let budgets: Api<PodDisruptionBudget> = world.space.api();
        let counts = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&counts);
        let task = tokio::spawn(async move {
            let mut events = watcher(budgets, watcher::Config::default()).boxed();
            while let Some(event) = events.next().await {
                let (Event::InitApply(budget) | Event::Apply(budget)) = event.unwrap() else { continue };
                seen.lock().unwrap().extend(budget.status.map(|status| status.disruptions_allowed.unwrap_or(0)));
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
fn guarded(version: u8, pods: &str, budget: &str) -> String {
    let budget =
        format!("apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {{name: web}}\nspec: {{{budget}}}");
    let text = App { replicas: 3, pods, more: &budget, ..App::new("web", version) }.text();
    text.replace("labels: {app: web}, annotations", "labels: {app: web, part: shop}, annotations")
}

/// A budget of the pods that the manifests ask for.
fn of_stable(least: u32) -> String {
    format!("minAvailable: {least}, selector: {{matchLabels: {{app: web}}}}")
}

/// A budget of all pods, whichever version's.
const OF_BOTH: &str = "maxUnavailable: 1, selector: {matchLabels: {part: shop}}";

impl World {
    /// Waits until the budget is about so many pods and lets so many go.
    async fn budget(&self, pods: u64, allowed: u64) {
        eventually(&format!("a budget of {pods} pods that lets {allowed} go"), async || {
            let budget = self.get("PodDisruptionBudget", "web").await?;
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

    async fn may_not_evict(&self, app: &str) {
        let why = self.evict(app).await.unwrap_err();
        assert!(why.contains("it would violate the pod's disruption budget"), "{why}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_budget_of_stable_is_not_spent_by_a_run_and_a_pod_that_is_evicted_comes_back() {
    let mut world = World::new("budget", &each_step_gated()).await;
    world.commit(&[("it/web.yaml", &guarded(1, "", &of_stable(2)))]);
    world.start();
    world.until_steady(Rest::Initialized).await;
    let served = Served::watch(&world, "web");
    world.budget(3, 1).await;
    let allowed = Allowed::watch(&world);
    // Its pods take a while to become ready.
    world.commit(&[("it/web.yaml", &guarded(2, "testbed/ready-after: 3s", &of_stable(2)))]);
    world.approve("tenth").await;
    world.request("half").await;
    world.budget(3, 1).await;
    assert_eq!(allowed.fewest(), 1, "the candidate's pods are none of those");
    let before = world.pods("web").await;
    assert_eq!(world.evict("web").await, Ok(()));
    eventually("another pod", async || (world.pods("web").await != before).then_some(())).await;
    world.budget(3, 1).await;
    assert!(served.fewest() >= 2, "{}", served.fewest());
    for step in ["half", "promotion"] {
        world.approve(step).await;
    }
    world.until_steady(Rest::Succeeded).await;
    // A change of the budget alone starts no run.
    world.commit(&[("it/web.yaml", &guarded(2, "testbed/ready-after: 3s", &of_stable(3)))]);
    world.budget(3, 0).await;
    world.may_not_evict("web").await;
    world.settled(&[]).await;
    assert_eq!(world.record().unwrap().next_run, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_budget_of_both_versions_counts_the_candidates_pods_too() {
    let mut world = World::new("budget-of-both", &hasty(&each_step_gated(), 30)).await;
    world.commit(&[("it/web.yaml", &guarded(1, "", OF_BOTH))]);
    world.start();
    world.until_steady(Rest::Initialized).await;
    world.budget(3, 1).await;
    world.commit(&[("it/web.yaml", &guarded(2, "", OF_BOTH))]);
    world.approve("tenth").await;
    world.request("half").await;
    world.budget(6, 1).await;
    let before = world.pods("web-canary").await;
    assert_eq!(world.evict("web-canary").await, Ok(()));
    eventually("another pod", async || (world.pods("web-canary").await != before).then_some(())).await;
    world.budget(6, 1).await;
    for step in ["half", "promotion"] {
        world.approve(step).await;
    }
    world.until_steady(Rest::Succeeded).await;
    world.budget(3, 1).await;

    // Pods that never become ready are away, whosever they are: until they go no other may.
    world.commit(&[("it/web.yaml", &guarded(3, "testbed/behaviour: crash", OF_BOTH))]);
    world.approve("tenth").await;
    world.budget(6, 0).await;
    world.may_not_evict("web").await;
    world.until("the failure", |record| matches!(record.phase, Phase::Failed { .. })).await;
    world.budget(3, 1).await;
    world.settled(&[Reason::Refused]).await;
}

/// Two pods of an app are never on one node, as far as the scheduler is told by their label.
fn placed(version: u8) -> String {
    let own = "labelSelector: {matchLabels: {app: web}}";
    let rules = format!(
        "topologySpreadConstraints: [{{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, \
         {own}, matchLabelKeys: [pod-template-hash]}}], affinity: {{podAntiAffinity: \
         {{requiredDuringSchedulingIgnoredDuringExecution: [{{topologyKey: kubernetes.io/hostname, {own}}}]}}}}"
    );
    App::new("web", version).text().replace("spec: {containers:", &format!("spec: {{{rules}, containers:"))
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
async fn each_version_is_spread(name: &str, layout: &str, [stable, candidate]: [&str; 2]) {
    let mut world = World::new(name, &format!("{layout}{}", each_step_gated())).await;
    world.commit(&[("it/web.yaml", &placed(1))]);
    world.start();
    world.until_steady(Rest::Initialized).await;
    world.commit(&[("it/web.yaml", &placed(2))]);
    world.approve("tenth").await;
    world.request("half").await;
    for app in [stable, candidate] {
        assert_eq!(told_by(&world, app).await, [json!({"app": app}), json!({"app": app})]);
        let pods = world.pods_of(app).await;
        let nodes: BTreeSet<_> = pods.iter().filter_map(|pod| pod.spec.clone()?.node_name).collect();
        assert_eq!((pods.len(), nodes.len()), (2, 2), "{app}");
    }
    for step in ["half", "promotion"] {
        world.approve(step).await;
    }
    world.until_steady(Rest::Succeeded).await;
    world.settled(&[]).await;
    assert_eq!(told_by(&world, stable).await, [json!({"app": stable}), json!({"app": stable})]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_30_pods_are_spread_among_those_of_their_own_version() {
    each_version_is_spread("spread", "", ["web", "web-canary"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_30_so_they_are_in_copies() {
    each_version_is_spread("spread-copies", "    layout: primary\n", ["web-primary", "web"]).await;
}
