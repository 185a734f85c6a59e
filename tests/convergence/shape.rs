//! How a rollout is made: its phases, gates and router, and the files that say so.

use crate::daemon::NODES;
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
    /// Whether what is measured of the candidate is compared with stable.
    pub(crate) compared: bool,
    pub(crate) phases: Vec<Phase>,
    pub(crate) approved_promotion: bool,
    /// Whether a hook is told how runs fare.
    pub(crate) hook: bool,
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
    /// Those of a DaemonSet, node by node.
    Daemon,
    Pods,
    Service,
}

impl Router {
    /// The kind of workload that is rolled out, and its plural in the API.
    pub(crate) fn workload(self) -> (&'static str, &'static str) {
        match self {
            Self::Set => ("StatefulSet", "statefulsets"),
            Self::Daemon => ("DaemonSet", "daemonsets"),
            Self::Route | Self::Mesh | Self::Ingress | Self::Pods | Self::Service => ("Deployment", "deployments"),
        }
    }

    /// Whether both versions are pods of one workload, which has no copy.
    pub(crate) fn is_shared(self) -> bool {
        matches!(self, Self::Set | Self::Daemon)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Phase {
    pub(crate) name: &'static str,
    /// In percent; none for testers that are told by a header, and for a preview.
    pub(crate) weight: Option<u64>,
    pub(crate) soak: u64,
    pub(crate) approval: bool,
    pub(crate) window: bool,
    /// Whether a webhook has a say.
    pub(crate) webhook: bool,
    /// Whether a Job tries out the candidate first.
    pub(crate) job: bool,
}

impl Shape {
    pub(crate) fn new(name: &'static str, dice: &mut Dice) -> Self {
        let router = match dice.below(100) {
            0..50 => Router::Route,
            50..59 => Router::Mesh,
            59..67 => Router::Ingress,
            67..75 => Router::Set,
            75..84 => Router::Daemon,
            84..93 => Router::Pods,
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
        if router.is_shared() {
            // A fifth of four pods is none.
            phases[0].weight = phases[0].weight.max(Some(25));
        }
        let replicas = if routed { dice.between(2, 3) } else { NODES };
        // Of those that begin with testers some begin with a preview instead.
        phases
            .iter_mut()
            .filter(|phase| phase.weight.is_none() && replicas == 3)
            .for_each(|phase| phase.name = PREVIEW);
        // Without a Service of its own there is nothing to try out before the first phase.
        let apart = routed || router == Router::Service;
        phases.iter_mut().for_each(|phase| phase.job = (apart || phase.name != "first") && dice.chance(15));
        let layout = match router {
            Router::Route => dice.pick(&[Layout::InPlace, Layout::InPlace, Layout::Primary, Layout::Versioned]),
            Router::Mesh | Router::Ingress => dice.pick(&[Layout::InPlace, Layout::InPlace, Layout::Primary]),
            Router::Set | Router::Daemon | Router::Pods | Router::Service => Layout::InPlace,
        };
        let compared = dice.chance(25);
        Self {
            name,
            router,
            layout,
            compared,
            phases,
            approved_promotion: dice.chance(25),
            hook: dice.chance(20),
            bake: dice.pick(&[0, 20]),
            replicas,
        }
    }

    /// What the manifests of a version call its workload and its Service.
    pub(crate) fn own(&self, tag: &str) -> String {
        let number = tag.split('-').next().unwrap_or_default();
        if self.layout == Layout::Versioned { format!("{}-v{number}", self.name) } else { self.name.to_owned() }
    }

    /// What the workload is called while that version is stable.
    pub(crate) fn stable(&self, tag: &str) -> String {
        if self.layout == Layout::Primary { format!("{}-primary", self.name) } else { self.own(tag) }
    }

    /// What it is called while that version is the candidate.
    pub(crate) fn candidate(&self, tag: &str) -> String {
        let copied = self.layout == Layout::InPlace && !self.router.is_shared();
        if copied { format!("{}-canary", self.name) } else { self.own(tag) }
    }

    /// The rollout's file, as it is beside a version.
    pub(crate) fn rollout(&self, tag: &str, suspend: bool, broken: bool) -> String {
        let Self { name, router, layout, compared: _, phases, approved_promotion, hook, bake, replicas: _ } = self;
        let own = self.own(tag);
        let layout = match layout {
            Layout::InPlace => "",
            Layout::Primary => ", layout: primary",
            Layout::Versioned => ", layout: versioned",
        };
        let ((kind, _), traffic) = (router.workload(), router.traffic(name, &own));
        let checks = self.checks(tag);
        let phases: String = phases.iter().map(|phase| phase.text(name)).collect();
        let before = if *approved_promotion { "before: {approval: pullRequest}, " } else { "" };
        let hooks = if *hook { "  hooks: {chat: {webhook: {provider: tester}}}\n" } else { "" };
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
  target: {{kind: {kind}, name: {own}{layout}}}
{traffic}  phases:
{phases}  promotion: {{{before}bake: {bake}s}}
{checks}{hooks}  onFailure: {{revert: none}}
  progressDeadline: 60s
{more}"
        )
    }

    /// A check of the candidate's errors, alone or beside stable's.
    fn checks(&self, tag: &str) -> String {
        let shared = self.router.is_shared();
        let labels = if shared { "{workload: workload, version: tidegate_io_pods}" } else { "{workload: deployment}" };
        let query = if shared || self.is_compared() {
            format!("errors, labels: {labels}")
        } else {
            format!("'errors{{namespace=\"shop\",deployment=\"{}\"}}'", self.candidate(tag))
        };
        let bound = if self.is_compared() { "comparedWithStable: {difference: {max: 0.01}}" } else { "max: 0.01" };
        let measured = format!("prometheus: {{provider: world, query: {query}}}\n      {bound}");
        format!("  checks:\n    errors:\n      {measured}\n      interval: 10s\n      minSamples: 2\n")
    }

    /// The Job that tries out a version.
    pub(crate) fn job(&self, tag: &str) -> String {
        let fate = if tag.ends_with("-untested") { "-crash" } else { "" };
        format!(
            "apiVersion: batch/v1
kind: Job
metadata: {{name: {}-job}}
spec:
  backoffLimit: 0
  template:
    metadata: {{annotations: {{testbed/ends-after: 8s}}}}
    spec: {{restartPolicy: Never, containers: [{{name: test, image: \"tester:1{fate}\"}}]}}
",
            self.name
        )
    }

    /// Whether a webhook has a say before some phase.
    pub(crate) fn is_asked_about(&self) -> bool {
        self.phases.iter().any(|phase| phase.webhook)
    }

    /// Whether the candidate is compared with stable: with all requests at the candidate stable serves nobody.
    pub(crate) fn is_compared(&self) -> bool {
        self.compared && self.router != Router::Service
    }

    /// Whether some phase has a Job before it.
    pub(crate) fn is_tried_out(&self) -> bool {
        self.phases.iter().any(|phase| phase.job)
    }

    /// Its manifests.
    pub(crate) fn manifests(&self, tag: &str, replicas: u64) -> String {
        let name = self.name;
        let own = self.own(tag);
        let ((kind, _), route) = (self.router.workload(), self.router.manifest(name, &own));
        let (size, slow) = match self.router {
            // On each node one; where a pod takes its time, more can happen meanwhile.
            Router::Daemon => (String::new(), "\n      annotations: {testbed/ready-after: 2s, testbed/ends-after: 1s}"),
            Router::Set => (format!("\n  replicas: {replicas}\n  serviceName: {name}"), ""),
            Router::Route | Router::Mesh | Router::Ingress | Router::Pods | Router::Service => {
                (format!("\n  replicas: {replicas}"), "")
            }
        };
        format!(
            "apiVersion: apps/v1
kind: {kind}
metadata: {{name: {own}}}
spec:{size}
  selector: {{matchLabels: {{app: {own}}}}}
  template:
    metadata:
      labels: {{app: {own}}}{slow}
    spec: {{containers: [{{name: {name}, image: \"{name}:{tag}\"}}]}}
---
apiVersion: v1
kind: Service
metadata: {{name: {own}}}
spec: {{selector: {{app: {own}}}, ports: [{{port: 80, targetPort: 8080}}]}}
{route}"
        )
    }
}

impl Phase {
    fn new(name: &'static str, weight: Option<u64>, dice: &mut Dice) -> Self {
        let (approval, window, webhook) = (dice.chance(20), dice.chance(15), dice.chance(15));
        Self { name, weight, soak: dice.pick(&[22, 30, 45]), approval, window, webhook, job: false }
    }

    pub(crate) fn text(&self, rollout: &str) -> String {
        let Self { name, weight, soak, approval, window, webhook, job } = self;
        let mut before = Vec::new();
        before.extend(approval.then(|| "approval: pullRequest".to_owned()));
        before.extend(window.then(|| "window: half".to_owned()));
        before.extend(webhook.then(|| "webhook: {provider: tester}".to_owned()));
        before.extend(job.then(|| format!("job: {rollout}-job.yaml")));
        let expose = match weight {
            Some(weight) => format!("weight: {weight}"),
            None if *name == PREVIEW => "preview: fullSize".to_owned(),
            None => "headers: [{x-canary: always}]".to_owned(),
        };
        let before = before.join(", ");
        format!("  - {{name: {name}, before: {{{before}}}, expose: {{{expose}}}, soak: {soak}s, checks: [errors]}}\n")
    }
}

impl fmt::Display for Router {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Route => "an HTTPRoute",
            Self::Mesh => "a VirtualService",
            Self::Ingress => "a canary Ingress",
            Self::Set => "the partition of a StatefulSet",
            Self::Daemon => "the nodes of a DaemonSet",
            Self::Pods => "the number of pods",
            Self::Service => "the selector of a Service",
        })
    }
}
