//! Many rollouts, as files of main and as records at rest.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use tidegate::manifest::desired::Rollout;
use tidegate::plan::draft::RecordChange;
use tidegate::reconcile::source::GitView;
use tidegate::record::posture::{Naming, Posture, Role, Size, Split};
use tidegate::record::state::{ClusterState, Deletions, Phase, Promoted, Rest, RolloutState, SetSource, Time, Writer};
use tidegate::record::store::API_VERSION;
use tidegate::record::unknown::Unknown;

/// So many rollouts in so many namespaces. Most are of a Deployment alone; the first few have a Service and an HTTPRoute too, and
/// their runs are measured every ten seconds.
#[derive(Debug, Clone)]
pub(crate) struct Fleet {
    pub(crate) namespaces: Vec<String>,
    pub(crate) count: usize,
    /// How many have a route.
    pub(crate) routed: usize,
    /// Who measures those, each by a check of the same name.
    pub(crate) providers: &'static [&'static str],
    /// The phases of those, in YAML.
    pub(crate) phases: fn(usize) -> String,
    /// The pods of those that have none.
    pub(crate) replicas: u32,
}

/// A tenth, for longer than any bench.
fn a_tenth(_: usize) -> String {
    "  - {name: tenth, expose: {weight: 10}, soak: 100h, checks: [CHECKS]}\n".to_owned()
}

const ROUTED: &str = "  traffic:
    gatewayAPI: {httpRoute: NAME, service: NAME}
    settle: 0s
    drain: 0s
  phases:
PHASES  checks:
";

const CHECK: &str = "    CHECK:
      prometheus: {provider: CHECK, query: NAME}
      max: 0.01
      minSamples: 1
      interval: 10s
";

impl Fleet {
    /// Rollouts of one pod without a route, in namespaces that begin like that.
    pub(crate) fn new(prefix: &str, namespaces: usize, count: usize) -> Self {
        let namespaces = (0..namespaces).map(|n| format!("{prefix}-{n}")).collect();
        Self { namespaces, count, routed: 0, providers: &["bench"], phases: a_tenth, replicas: 1 }
    }

    /// The name and the namespace of one of them.
    pub(crate) fn place(&self, n: usize) -> (String, &str) {
        (format!("r{n:05}"), &self.namespaces[n % self.namespaces.len()])
    }

    /// The policy that permits them.
    pub(crate) fn policy(&self) -> String {
        format!(
            "apiVersion: tidegate.io/v1alpha1\nkind: Policy\nspec:\n  tenants:\n    \
             fleet: {{path: fleet, namespaces: [{}], clusters: [home]}}\n  limits: {{maxConcurrentRuns: 100000}}\n",
            self.namespaces.join(", ")
        )
    }

    /// Where the manifests of one of them lie.
    pub(crate) fn manifests_path(&self, n: usize) -> String {
        let (name, namespace) = self.place(n);
        format!("fleet/{namespace}/{name}.yaml")
    }

    /// The manifests of one of them.
    pub(crate) fn manifests(&self, n: usize, version: u32) -> String {
        let (name, _) = self.place(n);
        let replicas = if n < self.routed { 1 } else { self.replicas };
        let mut text = format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}, labels: {{app: {name}}}}}\nspec:\n  \
             replicas: {replicas}\n  selector: {{matchLabels: {{app: {name}}}}}\n  template:\n    \
             metadata: {{labels: {{app: {name}}}}}\n    \
             spec: {{containers: [{{name: main, image: \"example.test/{name}:{version}\"}}]}}\n"
        );
        if n < self.routed {
            write!(
                text,
                "---\napiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\n\
                 spec: {{selector: {{app: {name}}}, ports: [{{name: http, port: 80}}]}}\n\
                 ---\napiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {{name: {name}}}\n\
                 spec: {{parentRefs: [{{name: public}}], rules: [{{backendRefs: [{{name: {name}, port: 80}}]}}]}}\n"
            )
            .unwrap();
        }
        text
    }

    fn rollout(&self, n: usize) -> String {
        let (name, namespace) = self.place(n);
        let routed = || {
            let text = ROUTED.replace("PHASES", &(self.phases)(n)).replace("CHECKS", &self.providers.join(", "));
            let checks: String = self.providers.iter().map(|name| CHECK.replace("CHECK", name)).collect();
            (text + &checks).replace("NAME", &name)
        };
        let more = if n < self.routed { routed() } else { String::new() };
        format!(
            "apiVersion: tidegate.io/v1alpha1\nkind: Rollout\nmetadata: {{name: {name}, namespace: {namespace}}}\nspec:\n  \
             manifests: [{name}.yaml]\n  target: {{kind: Deployment, name: {name}}}\n{more}"
        )
    }

    /// All files of main, with version 1 of each.
    pub(crate) fn files(&self) -> Vec<(String, String)> {
        let each = (0..self.count).flat_map(|n| {
            let (name, namespace) = self.place(n);
            [
                (format!("fleet/{namespace}/{name}.rollout.yaml"), self.rollout(n)),
                (self.manifests_path(n), self.manifests(n, 1)),
            ]
        });
        std::iter::once(("tidegate.yaml".to_owned(), self.policy())).chain(each).collect()
    }

    /// The controller's own file; nobody asks the address.
    pub(crate) fn installation(&self, url: &str, cluster: &str) -> String {
        format!(
            "apiVersion: tidegate.io/v1alpha1\nkind: Installation\nspec:\n  instance: it\n  \
             repository: {{url: \"{url}\", poll: 1h}}\n  clusters: {{home: {cluster}}}\n  caps: {{namespaces: [{}]}}\n",
            self.namespaces.join(", ")
        )
    }
}

/// Who writes the records of these benches.
pub(crate) fn writer() -> Writer {
    Writer {
        instance: "it".parse().unwrap(),
        version: "0.1.0".to_owned(),
        cluster: "home".parse().unwrap(),
        cluster_uid: "5f0c1f0a-2b7e-4b7e-9d3e-1f0a2b7e4b7e".to_owned(),
        epoch: 1,
    }
}

pub(crate) fn now() -> Time {
    "2026-03-02T10:00:00Z".parse().unwrap()
}

/// The record of a rollout at rest on what main wants.
pub(crate) fn steady(view: &GitView, rollout: &Rollout, seq: u64) -> RolloutState {
    let Rollout { id, path, set, .. } = rollout;
    let role = Role { set: set.id.clone(), size: Size::Declared, pods: None, directly: BTreeMap::new() };
    let posture = Posture { stable: role, candidate: None, split: Split::stable(), naming: Naming::default() };
    let writer = writer();
    let cluster = ClusterState { uid: writer.cluster_uid.clone(), posture, inventory: Vec::new() };
    let (run, at) = (tidegate::manifest::ids::RunId::zero(), now());
    let (revision, pods) = (set.revision.clone(), set.pods.clone());
    RolloutState {
        api_version: API_VERSION.to_owned(),
        kind: "RolloutState".to_owned(),
        metadata: id.clone(),
        clusters: BTreeMap::from([(writer.cluster.clone(), cluster)]),
        writer,
        seq,
        source: SetSource { commit: view.tips.main.clone().unwrap(), path: path.clone() },
        next_run: 1,
        promoted: Some(Promoted {
            set: set.id.clone(),
            revision,
            pods,
            label: None,
            commit: None,
            path: None,
            decided: None,
            directly: BTreeMap::new(),
            run,
            at,
        }),
        phase: Phase::Steady { how: Rest::Initialized, since: at },
        run: None,
        last_run: None,
        rollback: None,
        revert: None,
        deletions: Deletions::default(),
        consumed: Vec::new(),
        refused: Vec::new(),
        conditions: Vec::new(),
        history: Vec::new(),
        policy: None,
        unknown: Unknown::default(),
    }
}

/// All rollouts that main wants, with what their records shall be.
pub(crate) fn records(view: &GitView, seq: u64, count: usize) -> Vec<(Arc<Rollout>, RecordChange)> {
    let wanted = view.main.rollouts().take(count).map(|id| Arc::clone(view.main.rollout(id).expect("it is fine")));
    let change = |rollout: Arc<Rollout>| {
        let state = Box::new(steady(view, &rollout, seq));
        (rollout, RecordChange::Write { state, plan: None, adopted: None, what: "bench".to_owned() })
    };
    wanted.map(change).collect()
}
