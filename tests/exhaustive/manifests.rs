//! What main may say: one rollout in three versions, with two phases and a promotion.

use std::collections::BTreeMap;
use std::sync::Arc;
use tidegate::manifest::desired::Rollout;
use tidegate::manifest::files::{Entry, Files};
use tidegate::manifest::ids::{InstanceName, RolloutId};
use tidegate::manifest::installation::Caps;
use tidegate::manifest::object::{Kind, ObjectRef};
use tidegate::manifest::{load, oid};
use tidegate::record::state::Time;

/// The namespace of the rollout.
pub(crate) const NAMESPACE: &str = "shop";
/// The name of its objects.
pub(crate) const NAME: &str = "podinfo";
/// The phase that waits for a person's word.
pub(crate) const GATED: &str = "half";
/// The most that may be exposed without that word.
pub(crate) const UNGATED: u8 = 10;

const POLICY: &str = "apiVersion: tidegate.io/v1alpha1
kind: Policy
spec:
  tenants: {shop: {path: shop, namespaces: [shop], clusters: [home], approvers: [ana]}}
";

const ROLLOUT: &str = "apiVersion: tidegate.io/v1alpha1
kind: Rollout
metadata: {name: podinfo, namespace: shop}
spec:
  manifests: [podinfo.yaml]
  target: {kind: Deployment, name: podinfo, layout: inPlace}
  traffic:
    gatewayAPI: {httpRoute: podinfo, service: podinfo}
    settle: 0s
    drain: 0s
  phases:
  - {name: tenth, expose: {weight: 10}, soak: 1m, checks: [errors]}
  - {name: half, before: {approval: pullRequest}, expose: {weight: 50}, soak: 0s}
  checks:
    errors: {prometheus: {provider: main, query: errors}, interval: 1m, max: 0.01, minSamples: 1, onNoData: hold}
  onFailure: {revert: none}
  progressDeadline: 10m
";

const MANIFESTS: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: podinfo}
spec:
  replicas: 1
  selector: {matchLabels: {app: podinfo}}
  template:
    metadata: {labels: {app: podinfo}}
    spec: {containers: [{name: app, image: \"app:VERSION\"}]}
---
apiVersion: v1
kind: Service
metadata: {name: podinfo}
spec:
  selector: {app: podinfo}
  ports: [{name: http, port: 80, targetPort: 8080}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: podinfo}
spec:
  parentRefs: [{name: public}]
  rules: [{backendRefs: [{name: podinfo, port: 80}]}]
";

/// How many versions main may name, counted from 1.
pub(crate) fn versions() -> usize {
    3
}

/// The rollout as main wants it at that version.
pub(crate) fn rollout(version: u8) -> Arc<Rollout> {
    let manifests = MANIFESTS.replace("VERSION", &version.to_string());
    let texts = [("tidegate.yaml", POLICY), ("shop/rollout.yaml", ROLLOUT), ("shop/podinfo.yaml", manifests.as_str())];
    let entry = |text: &str| Entry::File { blob: oid::blob(text.as_bytes()), bytes: text.as_bytes().into() };
    let files: Files = texts.iter().map(|(path, text)| (path.parse().unwrap(), entry(text))).collect();
    let caps = Caps::new([NAMESPACE.parse().unwrap()].into(), [].into());
    let mut loaded = load::load(&files, &caps);
    assert!(loaded.errors().is_empty(), "{:?}", loaded.errors());
    Arc::new(loaded.rollouts.remove(&id()).unwrap().unwrap())
}

/// All of them.
pub(crate) fn rollouts() -> BTreeMap<u8, Arc<Rollout>> {
    (1..=u8::try_from(versions()).unwrap()).map(|version| (version, rollout(version))).collect()
}

/// The rollout.
pub(crate) fn id() -> RolloutId {
    format!("{NAMESPACE}/{NAME}").parse().unwrap()
}

/// The object that carries its split.
pub(crate) fn route() -> ObjectRef {
    ObjectRef { kind: Kind::HttpRoute, namespace: NAMESPACE.parse().unwrap(), name: NAME.parse().unwrap() }
}

/// Who controls it.
pub(crate) fn instance() -> InstanceName {
    "prod".parse().unwrap()
}

/// When everything that was written before the next look was written.
pub(crate) fn start() -> Time {
    "2026-03-02T10:00:00Z".parse().unwrap()
}

/// When a controller looks: every soak and drain is over by then, and no deadline.
pub(crate) fn look() -> Time {
    "2026-03-02T10:02:00Z".parse().unwrap()
}
