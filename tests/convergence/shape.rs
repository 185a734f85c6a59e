//! How a rollout is made: its phases, gates and router, and the files that say so.

use crate::dice::Dice;
use std::fmt;
use tidegate::manifest::desired::Layout;

/// The name of a phase that exposes nothing.
const PREVIEW: &str = "preview";

/// How a rollout is made.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    pub(crate) router: Router,
    pub(crate) layout: Layout,
    pub(crate) phases: Vec<Phase>,
    pub(crate) approved_promotion: bool,
    pub(crate) bake: u64,
    pub(crate) replicas: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Router {
    Route,
    Mesh,
    Ingress,
    /// The pods of a StatefulSet, from the last on.
    Set,
    Pods,
    Service,
}

#[derive(Debug, Clone)]
pub(crate) struct Phase {
    pub(crate) name: &'static str,
    /// In percent; none for testers that are told by a header, and for a preview.
    pub(crate) weight: Option<u64>,
    pub(crate) soak: u64,
    pub(crate) approval: bool,
    pub(crate) window: bool,
}

impl Shape {
    pub(crate) fn new(name: &'static str, dice: &mut Dice) -> Self {
        let router = match dice.below(100) {
            0..55 => Router::Route,
            55..65 => Router::Mesh,
            65..73 => Router::Ingress,
            73..81 => Router::Set,
            81..92 => Router::Pods,
            _ => Router::Service,
        };
        let routed = router.route(name).is_some();
        let mut phases = Vec::new();
        if routed && dice.chance(25) {
            phases.push(Phase::new("testers", None, dice));
        }
        phases.push(Phase::new("first", Some(dice.pick(&[20, 25, 40])), dice));
        if dice.chance(50) {
            phases.push(Phase::new("second", Some(dice.pick(&[50, 75])), dice));
        }
        if router == Router::Service {
            phases.truncate(1);
            phases[0].weight = Some(100);
        }
        if router == Router::Set {
            // A fifth of four pods is none.
            phases[0].weight = phases[0].weight.max(Some(25));
        }
        let replicas = if routed { dice.between(2, 3) } else { 4 };
        // Of those that begin with testers some begin with a preview instead.
        phases
            .iter_mut()
            .filter(|phase| phase.weight.is_none() && replicas == 3)
            .for_each(|phase| phase.name = PREVIEW);
        // A third of those with a route.
        let copies = router == Router::Route && phases[0].soak == 45;
        let layout = if copies { Layout::Primary } else { Layout::InPlace };
        Self { name, router, layout, phases, approved_promotion: dice.chance(25), bake: dice.pick(&[0, 20]), replicas }
    }

    /// What stable's Deployment is called.
    pub(crate) fn stable(&self) -> String {
        let suffix = if self.layout == Layout::Primary { "-primary" } else { "" };
        format!("{}{suffix}", self.name)
    }

    /// What the candidate's is called.
    pub(crate) fn candidate(&self) -> String {
        let same = self.layout == Layout::Primary || self.router == Router::Set;
        let suffix = if same { "" } else { "-canary" };
        format!("{}{suffix}", self.name)
    }

    fn kind(&self) -> &'static str {
        if self.router == Router::Set { "StatefulSet" } else { "Deployment" }
    }

    /// The rollout's file.
    pub(crate) fn rollout(&self, suspend: bool, broken: bool) -> String {
        let Self { name, router, layout, phases, approved_promotion, bake, replicas: _ } = self;
        let (candidate, layout) = (self.candidate(), if *layout == Layout::Primary { ", layout: primary" } else { "" });
        let (kind, traffic) = (self.kind(), router.traffic(name));
        let checks = if *router == Router::Set { String::new() } else { checks(&candidate) };
        let phases: String = phases.iter().map(|phase| phase.text(!checks.is_empty())).collect();
        let before = if *approved_promotion { "before: {approval: pullRequest}, " } else { "" };
        let more = match (suspend, broken) {
            (true, _) => "  suspend: true\n",
            (false, true) => "  suspended: true\n",
            (false, false) => "",
        };
        format!(
            "apiVersion: tidegate.io/v1alpha1
kind: Rollout
metadata: {{name: {name}, namespace: shop}}
spec:
  manifests: [{name}.yaml]
  target: {{kind: {kind}, name: {name}{layout}}}
{traffic}  phases:
{phases}  promotion: {{{before}bake: {bake}s}}
{checks}  onFailure: {{revert: none}}
  progressDeadline: 60s
{more}"
        )
    }

    /// Its manifests.
    pub(crate) fn manifests(&self, tag: &str, replicas: u64) -> String {
        let name = self.name;
        let (kind, route) = (self.kind(), self.router.manifest(name));
        let governing = if self.router == Router::Set { format!("\n  serviceName: {name}") } else { String::new() };
        let ready_after = if tag.ends_with("slow") { "\n      annotations: {testbed/ready-after: 5s}" } else { "" };
        format!(
            "apiVersion: apps/v1
kind: {kind}
metadata: {{name: {name}}}
spec:
  replicas: {replicas}{governing}
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata:
      labels: {{app: {name}}}{ready_after}
    spec: {{containers: [{{name: {name}, image: \"{name}:{tag}\"}}]}}
---
apiVersion: v1
kind: Service
metadata: {{name: {name}}}
spec: {{selector: {{app: {name}}}, ports: [{{port: 80, targetPort: 8080}}]}}
{route}"
        )
    }
}

fn checks(candidate: &str) -> String {
    format!(
        "  checks:
    errors:
      prometheus: {{provider: world, query: errors(shop/{candidate})}}
      max: 0.01
      interval: 10s
      minSamples: 2
"
    )
}

impl Phase {
    fn new(name: &'static str, weight: Option<u64>, dice: &mut Dice) -> Self {
        let (approval, window) = (dice.chance(20), dice.chance(15));
        Self { name, weight, soak: dice.pick(&[22, 30, 45]), approval, window }
    }

    pub(crate) fn text(&self, checked: bool) -> String {
        let Self { name, weight, soak, approval, window } = self;
        let mut before = Vec::new();
        before.extend(approval.then_some("approval: pullRequest"));
        before.extend(window.then_some("window: half"));
        let expose = match weight {
            Some(weight) => format!("weight: {weight}"),
            None if *name == PREVIEW => "preview: fullSize".to_owned(),
            None => "headers: [{x-canary: always}]".to_owned(),
        };
        let (before, checks) = (before.join(", "), if checked { ", checks: [errors]" } else { "" });
        format!("  - {{name: {name}, before: {{{before}}}, expose: {{{expose}}}, soak: {soak}s{checks}}}\n")
    }
}

impl fmt::Display for Router {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Route => "an HTTPRoute",
            Self::Mesh => "a VirtualService",
            Self::Ingress => "a canary Ingress",
            Self::Set => "the partition of a StatefulSet",
            Self::Pods => "the number of pods",
            Self::Service => "the selector of a Service",
        })
    }
}
