//! Two clusters that follow one repository, each with an instance of its own: the second begins with nothing that the first has not proven.

use std::sync::Arc;
use std::time::Duration;
use tidegate::manifest::ids::RolloutId;
use tidegate::reconcile::controller::{Once, Options};
use tidegate::record::state::{Phase, RolloutState};
use tidegate::world::kube_api::resource::Resource;
use tidegate::world::simulation::Simulation;
use tokio_util::sync::CancellationToken;

const POLICY: &str = "apiVersion: tidegate.io/v1alpha1\nkind: Policy\nspec:\n  tenants:\n    \
                      shop: {path: shop, namespaces: [shop], clusters: [home, lab]}\n";
const ROLLOUT: &str = "apiVersion: tidegate.io/v1alpha1\nkind: Rollout\nmetadata: {name: web, namespace: shop}\nspec:\n  manifests: [web.yaml]\n  \
                       target: {kind: Deployment, name: web}\n  progressDeadline: 1m\n  traffic: {replicas: {service: web}}\n  phases:\n  \
                       - {name: half, expose: {weight: 50}, soak: 1m}\n";

fn manifests(tag: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec:\n  replicas: 2\n  selector: {{matchLabels: {{app: web}}}}\n  \
         template:\n    metadata: {{labels: {{app: web}}}}\n    spec: {{containers: [{{name: app, image: \"web:{tag}\"}}]}}\n---\n\
         apiVersion: v1\nkind: Service\nmetadata: {{name: web}}\nspec: {{selector: {{app: web}}, ports: [{{port: 80}}]}}\n"
    )
}

fn id() -> RolloutId {
    "shop/web".parse().unwrap()
}

/// The first cluster and the second.
struct Clusters {
    lab: Arc<Simulation>,
    home: Arc<Simulation>,
}

impl Clusters {
    fn new(directory: &std::path::Path) -> Self {
        let home = Simulation::new(&directory.join("home"), "2026-03-02T10:00:00Z".parse().unwrap()).unwrap();
        let lab = home.beside(&directory.join("lab"), "lab", 1).unwrap();
        Self { lab: Arc::new(lab), home: Arc::new(home) }
    }

    fn start(&self) {
        for world in [&self.lab, &self.home] {
            let nature = Arc::clone(world);
            tokio::spawn(async move { nature.nature().await });
            let controller = Arc::clone(world);
            tokio::spawn(async move {
                let options = Options { once: Once::No, listen: None, identity: "one".to_owned() };
                controller.controller("one", options, &CancellationToken::new()).await.map(drop)
            });
        }
    }

    /// Lets time pass until that is so; at each moment the second cluster has nothing new that the first has not promoted.
    async fn until(&self, what: &str, met: impl Fn(&RolloutState, &RolloutState) -> bool) {
        for _ in 0..2_000 {
            let [home, lab] = [self.home.record(&id()).await.unwrap(), self.lab.record(&id()).await.unwrap()];
            if let (Some(home), Some(lab)) = (&home, &lab) {
                let begun = home.run.as_ref().filter(|_| home.phase.position().is_some());
                let proven = lab.promoted.as_ref().map(|promoted| &promoted.revision);
                assert!(begun.is_none_or(|run| Some(&run.revision) == proven), "home is ahead of lab: {what}");
                if met(home, lab) {
                    return;
                }
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        panic!("{what}: {:#?}", self.home.record(&id()).await);
    }

    /// The images of all pods that the second cluster ever had.
    fn images(&self) -> Vec<String> {
        let pods = Resource::of_kind("v1", "Pod").unwrap();
        let image = |pod: &Arc<serde_json::Value>| pod["spec"]["containers"][0]["image"].as_str().unwrap().to_owned();
        self.home.api.look(|world| world.list(pods, "shop").map(image).collect())
    }
}

fn is_steady(state: &RolloutState) -> bool {
    matches!(state.phase, Phase::Steady { .. }) && state.run.is_none()
}

#[test]
fn f_7_f_11_a_good_version_goes_on_and_a_bad_one_stops_in_the_first_cluster() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let directory = tempfile::tempdir().unwrap();
        let clusters = Clusters::new(directory.path());
        let uid = |number: u64| format!("00000000-0000-4000-8000-{:012x}", (number << 32) + 1);
        let fleet = format!(
            "apiVersion: tidegate.io/v1alpha1\nkind: Fleet\nspec:\n  clusters:\n    home: {{instance: world, uid: {}}}\n    \
             lab: {{instance: lab, uid: {}}}\n  waves:\n  - {{name: first, clusters: {{names: [lab]}}, soak: 5m}}\n  \
             - {{name: rest, clusters: {{selector: {{}}}}}}\n",
            uid(0),
            uid(1),
        );
        let first = manifests("1");
        let files =
            [("tidegate.yaml", POLICY), ("fleet.yaml", &fleet), ("shop/web.rollout.yaml", ROLLOUT), ("shop/web.yaml", &first)];
        clusters.home.push(&files, "version 1").await.unwrap();
        clusters.start();
        clusters.until("both have version 1", |home, lab| is_steady(home) && is_steady(lab)).await;

        clusters.home.push(&[("shop/web.yaml", &manifests("2"))], "version 2").await.unwrap();
        let has = |state: &RolloutState, runs: usize| is_steady(state) && state.history.len() == runs;
        clusters.until("lab has version 2", |_, lab| has(lab, 1)).await;
        clusters.until("home waits", |home, _| home.run.is_some() && home.phase.position().is_none()).await;
        clusters.until("home has version 2", |home, _| has(home, 1)).await;

        clusters.home.push(&[("shop/web.yaml", &manifests("3-crash"))], "version 3").await.unwrap();
        clusters.until("lab has failed", |_, lab| matches!(lab.phase, Phase::Failed { .. })).await;
        let failed = |state: &RolloutState| state.conditions.iter().any(|one| one.reason == "WaveFailed");
        clusters.until("home has heard of it", |home, _| failed(home)).await;
        tokio::time::sleep(Duration::from_secs(3_600)).await;
        clusters.until("home does not begin", |home, _| home.phase.position().is_none()).await;
        assert!(clusters.images().iter().all(|image| image == "web:2"), "{:?}", clusters.images());

        clusters.home.push(&[("shop/web.yaml", &manifests("4"))], "version 4").await.unwrap();
        clusters.until("both have version 4", |home, lab| has(home, 3) && has(lab, 3)).await;
        assert!(clusters.images().iter().all(|image| image == "web:4"), "{:?}", clusters.images());
    });
}
