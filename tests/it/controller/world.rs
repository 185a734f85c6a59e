//! One rollout in a namespace of its own, a Git server, and the controller in this process.

use crate::support::cluster::{Bed, PATIENCE, Space, eventually};
use crate::support::gateway::http_route;
use crate::support::git_server::GitServer;
use crate::support::origin::Origin;
use crate::support::promise::{Checked, StateBranch, Watched};
use kube::Api;
use kube::api::DynamicObject;
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;
use tidegate::manifest::installation;
use tidegate::reconcile::controller::{self, Once, Options, Waiting};
use tidegate::record::state::RolloutState;
use tokio::task::JoinHandle;

/// The branches of the instance `it`.
pub(super) const STATE: &str = "tidegate/it/state";
pub(super) const DECISIONS: &str = "tidegate/it/decisions";

pub(super) struct World {
    pub(super) bed: &'static Bed,
    pub(super) space: Space,
    pub(super) git: GitServer,
    pub(super) origin: Origin,
    dir: tempfile::TempDir,
    running: Option<JoinHandle<()>>,
}

impl World {
    /// A repository with a policy and the rollout `web` at version 1, and nothing in the cluster.
    pub(super) async fn new(name: &str, phases: &str) -> Self {
        let bed = Bed::shared().await;
        let space = bed.space(name).await;
        let git = GitServer::start().await;
        let origin = git.init("it");
        let dir = tempfile::tempdir().unwrap();
        let world = Self { bed, space, git, origin, dir, running: None };
        let namespace = &world.space.name;
        let policy = format!(
            "apiVersion: tidegate.io/v1alpha1\nkind: Policy\nspec:\n  tenants:\n    it: {{path: it, namespaces: [{namespace}], clusters: [home]}}\n"
        );
        let rollout = format!(
            "apiVersion: tidegate.io/v1alpha1\nkind: Rollout\nmetadata: {{name: web, namespace: {namespace}}}\nspec:\n  \
             manifests: [web.yaml]\n  target: {{kind: Deployment, name: web}}\n{phases}"
        );
        world.commit(&[("tidegate.yaml", &policy), ("it/rollout.yaml", &rollout), ("it/web.yaml", &manifests(1, ""))]);
        world
    }

    /// Commits files to main; the new tip.
    pub(super) fn commit(&self, files: &[(&str, &str)]) -> String {
        let files: Vec<(&str, Option<&[u8]>)> =
            files.iter().map(|(path, text)| (*path, Some(text.as_bytes()))).collect();
        self.origin.commit("main", &files, "change")
    }

    /// Version `n` of the manifests.
    pub(super) fn release(&self, n: u8) -> String {
        self.commit(&[("it/web.yaml", &manifests(n, ""))])
    }

    /// Starts the controller.
    pub(super) fn start(&mut self) {
        let filter = tracing_subscriber::EnvFilter::new("tidegate=info");
        tracing_subscriber::fmt().with_env_filter(filter).with_test_writer().try_init().ok();
        let (installation, options) = (self.installation(), self.options(Once::No));
        self.running = Some(tokio::spawn(async move {
            let ended = controller::run(installation, options).await;
            panic!("the controller ended: {ended:?}");
        }));
    }

    /// Ends it without a chance to say good-bye.
    pub(super) async fn kill(&mut self) {
        if let Some(running) = self.running.take() {
            running.abort();
            running.await.expect_err("it only ends by being aborted");
        }
    }

    /// Runs it until nothing is left to do.
    pub(super) async fn once(&self, timeout: Duration) -> Waiting {
        controller::run(self.installation(), self.options(Once::Yes { timeout })).await.unwrap()
    }

    fn options(&self, once: Once) -> Options {
        let identity = format!("it-{}", std::process::id());
        Options { once, cache: self.dir.path().join("cache"), listen: None, identity }
    }

    fn installation(&self) -> installation::Installation {
        let text = self.installation_text();
        installation::parse(&"installation.yaml".parse().unwrap(), text.as_bytes()).unwrap()
    }

    fn installation_text(&self) -> String {
        format!(
            "apiVersion: tidegate.io/v1alpha1\nkind: Installation\nspec:\n  instance: it\n  \
             repository: {{url: \"{}\", poll: 1s}}\n  clusters: {{home: {{kubeconfigFile: {}}}}}\n  caps: {{namespaces: [{}]}}\n",
            self.git.url("it"),
            self.kubeconfig().display(),
            self.space.name,
        )
    }

    /// The controller's kubeconfig, at home in the test's namespace.
    fn kubeconfig(&self) -> PathBuf {
        let path = self.dir.path().join("kubeconfig");
        let text = std::fs::read_to_string(&self.space.kubeconfig).unwrap();
        let mut config: Value = serde_yaml::from_str(&text).unwrap();
        config["contexts"][0]["context"]["namespace"] = self.space.name.as_str().into();
        std::fs::write(&path, serde_yaml::to_string(&config).unwrap()).unwrap();
        path
    }

    /// The record, if there is one.
    pub(super) fn record(&self) -> Option<RolloutState> {
        self.record_of("web")
    }

    /// The record of a rollout, if there is one.
    pub(super) fn record_of(&self, name: &str) -> Option<RolloutState> {
        let tip = self.origin.tip(STATE)?;
        let path = format!("rollouts/{}/{name}/state.yaml", self.space.name);
        let bytes = self.origin.files(&tip).remove(&path)?;
        let id = format!("{}/{name}", self.space.name).parse().unwrap();
        Some(tidegate::record::store::parse_state(&id, &bytes).unwrap())
    }

    /// Waits until the record is like that.
    pub(super) async fn until(&self, what: &str, like: impl Fn(&RolloutState) -> bool) -> RolloutState {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let record = self.record();
            if let Some(found) = record.clone().filter(|record| like(record)) {
                return found;
            }
            assert!(tokio::time::Instant::now() < deadline, "{what}: the record is {record:#?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// The branch of a request.
    pub(super) fn request(&self, step: &str) -> Option<String> {
        let refs = self.origin.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads/tidegate/it/propose"]);
        refs.lines().find(|name| name.ends_with(&format!("-{step}"))).map(str::to_owned)
    }

    /// Adds the rollout `api` beside `web`; its name.
    pub(super) fn second_rollout(&self) -> String {
        let namespace = &self.space.name;
        let rollout = format!(
            "apiVersion: tidegate.io/v1alpha1\nkind: Rollout\nmetadata: {{name: api, namespace: {namespace}}}\nspec:\n  \
             manifests: [api.yaml]\n  target: {{kind: Deployment, name: api}}\n"
        );
        let deployment = manifests(1, "").split("---\n").next().unwrap().replace("web", "api");
        self.commit(&[("it/api/rollout.yaml", &rollout), ("it/api/api.yaml", &deployment)]);
        "api".to_owned()
    }

    /// Waits until the Git server was asked so many times more.
    pub(super) async fn polls(&self, times: usize) {
        let asked = || self.git.requests().into_values().sum::<usize>();
        let before = asked();
        eventually("polls", async || (asked() >= before + times).then_some(())).await;
    }

    /// The share of requests that the route sends to the candidate.
    pub(super) async fn weight(&self) -> i64 {
        let routes = Api::<DynamicObject>::namespaced_with(self.space.client.clone(), &self.space.name, &http_route());
        let route = routes.get("web").await.unwrap();
        let refs = route.data["spec"]["rules"][0]["backendRefs"].as_array().cloned().unwrap_or_default();
        let weight =
            |name: &str| refs.iter().find(|r| r["name"] == name).map_or(0, |r| r["weight"].as_i64().unwrap_or(1));
        let (stable, candidate) = (weight("web"), weight("web-canary"));
        candidate * 100 / (stable + candidate).max(1)
    }

    /// Waits for the request to enter a step, and merges it.
    pub(super) async fn approve(&self, step: &str) {
        let branch = eventually(&format!("a request for {step}"), async || self.request(step)).await;
        let head = self.origin.tip(&branch).unwrap();
        self.origin.git(&["update-ref", &format!("refs/heads/{DECISIONS}"), &head]);
    }

    /// Checks every instant so far.
    pub(super) fn assert_kept(&self) -> Checked {
        let watched = Watched {
            rollout: format!("{}/web", self.space.name).parse().unwrap(),
            cluster: "home".parse().unwrap(),
            target: "web".parse().unwrap(),
            router: Some(tidegate::manifest::desired::Router::GatewayApi {
                http_route: "web".parse().unwrap(),
                service: "web".parse().unwrap(),
            }),
            user: self.space.user.clone(),
        };
        let moves = self.origin.path().join("stamps");
        let reference = format!("refs/heads/{STATE}");
        let branch = StateBranch { repository: self.origin.path(), moves: &moves, reference: &reference };
        watched.assert_kept(&self.bed.audit_log(), branch)
    }
}

/// Deployment, Service and HTTPRoute; `annotations` of the pods tell the test bed what they do.
pub(super) fn manifests(version: u8, annotations: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web, labels: {{app: web}}}}\nspec:\n  replicas: 2\n  \
         selector: {{matchLabels: {{app: web}}}}\n  template:\n    metadata: {{labels: {{app: web}}, annotations: {{{annotations}}}}}\n    \
         spec: {{containers: [{{name: web, image: \"example.test/web:{version}\"}}]}}\n---\n\
         apiVersion: v1\nkind: Service\nmetadata: {{name: web}}\nspec:\n  selector: {{app: web}}\n  ports: [{{name: http, port: 80}}]\n---\n\
         apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {{name: web}}\nspec:\n  \
         parentRefs: [{{name: public}}]\n  rules:\n  - backendRefs: [{{name: web, port: 80}}]\n"
    )
}
