//! How a rollout is made: its target, layout and router, and the files that say so.

use crate::convergence::behind::{self, Leads};
use crate::convergence::daemon::NODES;
use crate::convergence::dice::Dice;
use crate::convergence::phase::{Expose, Phase};
use std::fmt;
use tidegate::manifest::desired::Layout;

/// How a rollout is made.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    pub(crate) router: Router,
    pub(crate) layout: Layout,
    /// How versions differ where the target is a Service; none where it is a workload.
    pub(crate) leads: Option<Leads>,
    /// Whether an autoscaler says how many pods there are.
    pub(crate) scaled: bool,
    /// Whether who got the candidate by weight keeps it.
    pub(crate) sticky: bool,
    /// Whether a ServiceMonitor stands beside it, of which only the names are known.
    pub(crate) beside: bool,
    /// Whether what is measured of the candidate is compared with stable.
    pub(crate) compared: bool,
    pub(crate) phases: Vec<Phase>,
    pub(crate) approved_promotion: bool,
    /// Whether a hook is told how runs fare.
    pub(crate) hook: bool,
    pub(crate) bake: u64,
    /// How many pods there are; the fewest, where an autoscaler has a say. None are behind a Service that is the target.
    pub(crate) replicas: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Router {
    Route,
    Grpc,
    Mesh,
    Ingress,
    /// The weighted services of a TraefikService.
    Traefik,
    /// The routes of an IngressRoute.
    IngressRoute,
    /// The routes of an HTTPProxy.
    Proxy,
    /// The routes of a RouteTable.
    Table,
    /// The pods of a StatefulSet, from the last on.
    Set,
    /// Those of a DaemonSet, node by node.
    Daemon,
    Pods,
    Service,
}

impl Router {
    fn new(dice: &mut Dice) -> Self {
        match dice.below(100) {
            0..29 => Self::Route,
            29..33 => Self::Table,
            33..37 => Self::Proxy,
            37..44 => Self::Grpc,
            44..53 => Self::Mesh,
            53..61 => Self::Ingress,
            61..67 => Self::Traefik,
            67..72 => Self::IngressRoute,
            72..79 => Self::Set,
            79..86 => Self::Daemon,
            86..94 => Self::Pods,
            _ => Self::Service,
        }
    }

    /// Whether both versions are pods of one workload, which has no copy.
    pub(crate) fn is_shared(self) -> bool {
        matches!(self, Self::Set | Self::Daemon)
    }

    fn layout(self, dice: &mut Dice) -> Layout {
        let (in_place, primary) = (Layout::InPlace, Layout::Primary);
        match self {
            Self::Route | Self::Grpc => dice.pick(&[in_place, in_place, primary, Layout::Versioned]),
            Self::Mesh | Self::Ingress | Self::Traefik | Self::IngressRoute | Self::Proxy | Self::Table => {
                dice.pick(&[in_place, in_place, primary])
            }
            Self::Set | Self::Daemon | Self::Pods | Self::Service => in_place,
        }
    }

    /// What a phase may expose beside a weight.
    fn exposes(self) -> &'static [Expose] {
        use Expose::{Cookie, Copies, Either, Header, Preview};
        match self {
            Self::Route | Self::Mesh | Self::IngressRoute | Self::Proxy => {
                &[Header, Header, Cookie, Either, Preview, Copies]
            }
            Self::Table => &[Header, Header, Cookie, Either, Preview],
            Self::Grpc => &[Header, Header, Preview, Copies],
            Self::Ingress => &[Header, Cookie, Either, Preview],
            Self::Traefik => &[Preview, Copies],
            Self::Service => &[Preview],
            Self::Set | Self::Daemon | Self::Pods => &[],
        }
    }

    /// How versions of a Service before which it stands may differ.
    fn leads(self) -> &'static [Leads] {
        match self {
            Self::Route | Self::Grpc | Self::Mesh | Self::Ingress => &[Leads::Pods, Leads::Pods, Leads::Name],
            // Traefik refuses an alias.
            Self::Traefik | Self::IngressRoute => &[Leads::Pods],
            // So does Contour, unless it is told otherwise.
            Self::Proxy | Self::Table => &[Leads::Pods],
            Self::Set | Self::Daemon | Self::Pods | Self::Service => &[],
        }
    }
}

impl Shape {
    pub(crate) fn new(name: &'static str, dice: &mut Dice) -> Self {
        let router = Router::new(dice);
        let layout = router.layout(dice);
        let may_lead = layout == Layout::InPlace && !router.leads().is_empty();
        let leads = (may_lead && dice.chance(20)).then(|| dice.pick(router.leads()));
        let may_scale = layout != Layout::Versioned && leads.is_none() && router != Router::Pods;
        let scaled = may_scale && !router.is_shared() && dice.chance(25);
        let sticky = matches!(router, Router::Route | Router::Mesh) && dice.chance(15);
        let routed = router.route(name).is_some();
        let mut phases = phases(router, leads, dice);
        // Without a Service of its own there is nothing to try out before the first phase.
        let apart = routed || router == Router::Service;
        phases.iter_mut().for_each(|phase| phase.job = (apart || phase.name != "first") && dice.chance(15));
        let replicas = match leads {
            Some(_) => 0,
            None if routed => dice.between(2, 3),
            None => NODES,
        };
        let compared = dice.chance(25);
        Self {
            name,
            router,
            layout,
            leads,
            scaled,
            sticky,
            beside: false,
            compared,
            phases,
            approved_promotion: dice.chance(25),
            hook: dice.chance(20),
            bake: dice.pick(&[0, 20]),
            replicas,
        }
    }

    /// The kind of what is rolled out, and its plural in the API.
    pub(crate) fn target(&self) -> (&'static str, &'static str) {
        match self.router {
            _ if self.leads.is_some() => ("Service", "services"),
            Router::Set => ("StatefulSet", "statefulsets"),
            Router::Daemon => ("DaemonSet", "daemonsets"),
            Router::Route
            | Router::Grpc
            | Router::Mesh
            | Router::Ingress
            | Router::Traefik
            | Router::IngressRoute
            | Router::Proxy
            | Router::Table
            | Router::Pods
            | Router::Service => ("Deployment", "deployments"),
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
        let Self { name, layout, phases, approved_promotion, hook, bake, .. } = self;
        let own = self.own(tag);
        let layout = match layout {
            Layout::InPlace => "",
            Layout::Primary => ", layout: primary",
            Layout::Versioned => ", layout: versioned",
        };
        let ((kind, _), traffic) = (self.target(), self.router.traffic(name, &own, self.sticky));
        let checks = self.checks(tag);
        let phases: String = phases.iter().map(|phase| phase.text(name)).collect();
        let before = if *approved_promotion { "before: {approval: pullRequest}, " } else { "" };
        let pace = match self.pace() {
            1 => String::new(),
            pace => format!("  rollingUpdate: {{maxUnavailable: {pace}}}\n"),
        };
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
{traffic}{pace}  phases:
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
            let behind = self.leads.map(|_| behind::workload(self.name, tag));
            let deployment = behind.unwrap_or_else(|| self.candidate(tag));
            format!("'errors{{namespace=\"shop\",deployment=\"{deployment}\"}}'")
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

    /// Whether main says how many pods there are, and a change of that alone is applied at once.
    pub(crate) fn has_number(&self) -> bool {
        let held_back = self.scaled && self.layout == Layout::Primary;
        self.router != Router::Daemon && self.leads.is_none() && !held_back
    }

    /// How many pods of a workload that both versions share may be away at a time.
    pub(crate) fn pace(&self) -> usize {
        if self.router.is_shared() && self.compared { 2 } else { 1 }
    }

    /// Whether a webhook has a say before some phase.
    pub(crate) fn is_asked_about(&self) -> bool {
        self.phases.iter().any(|phase| phase.webhook)
    }

    /// Whether the candidate is compared with stable: with all requests at the candidate stable serves nobody, and of what is
    /// behind a Service nobody knows which version it is.
    pub(crate) fn is_compared(&self) -> bool {
        self.compared && self.router != Router::Service && self.leads.is_none()
    }

    /// Whether some phase has a Job before it.
    pub(crate) fn is_tried_out(&self) -> bool {
        self.phases.iter().any(|phase| phase.job)
    }

    /// Its manifests.
    pub(crate) fn manifests(&self, tag: &str, replicas: u64) -> String {
        let own = self.own(tag);
        let workload = if self.leads.is_some() { String::new() } else { self.workload(tag, replicas) };
        let leads = self.leads.map_or_else(|| format!("selector: {{app: {own}}}"), |leads| leads.spec(self.name, tag));
        let route = self.router.manifest(self.name, &own);
        format!(
            "{workload}apiVersion: v1
kind: Service
metadata: {{name: {own}}}
spec: {{{leads}, ports: [{{port: 80, targetPort: 8080}}]}}
{route}{}",
            if self.beside { self.monitor(tag) } else { String::new() }
        )
    }

    /// What measures a version, otherwise than the one before.
    fn monitor(&self, tag: &str) -> String {
        let (name, own) = (self.name, self.own(tag));
        format!(
            "---
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata: {{name: {name}}}
spec: {{selector: {{matchLabels: {{app: {own}}}}}, jobLabel: \"{tag}\", endpoints: [{{targetPort: 8080}}]}}
"
        )
    }

    /// The workload of a version, and what scales it.
    fn workload(&self, tag: &str, replicas: u64) -> String {
        let (name, own, (kind, _)) = (self.name, self.own(tag), self.target());
        let (size, slow) = match self.router {
            // On each node one; where a pod takes its time, more can happen meanwhile.
            Router::Daemon => (String::new(), "\n      annotations: {testbed/ready-after: 2s, testbed/ends-after: 1s}"),
            Router::Set => {
                let together = if self.pace() > 1 { "\n  podManagementPolicy: Parallel" } else { "" };
                (format!("\n  replicas: {replicas}\n  serviceName: {name}{together}"), "")
            }
            _ if self.scaled => (String::new(), ""),
            _ => (format!("\n  replicas: {replicas}"), ""),
        };
        let scaler = if self.scaled { scaler(&own, replicas) } else { String::new() };
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
{scaler}"
        )
    }
}

/// The phases of a rollout: some people first, then more and more requests.
fn phases(router: Router, leads: Option<Leads>, dice: &mut Dice) -> Vec<Phase> {
    let mut phases = Vec::new();
    // Nobody knows what a copied request does behind a Service.
    let exposes = router.exposes().iter().copied().filter(|expose| leads.is_none() || *expose != Expose::Copies);
    let exposes: Vec<Expose> = exposes.collect();
    if !exposes.is_empty() && dice.chance(30) {
        let expose = dice.pick(&exposes);
        phases.push(Phase::new(expose.name(), expose, dice));
    }
    if router == Router::Service {
        phases.push(Phase::new("first", Expose::Weight(100), dice));
        return phases;
    }
    // A fifth of four pods is none.
    let first = dice.pick(&[20, 25, 40]).max(if router.is_shared() { 25 } else { 0 });
    phases.push(Phase::new("first", Expose::Weight(first), dice));
    if dice.chance(50) {
        phases.push(Phase::new("second", Expose::Weight(dice.pick(&[50, 75])), dice));
    }
    phases
}

fn scaler(of: &str, least: u64) -> String {
    format!(
        "apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {{name: {of}}}
spec:
  scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: {of}}}
  minReplicas: {least}
  maxReplicas: {}
---
",
        least + 3
    )
}

impl fmt::Display for Router {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Route => "an HTTPRoute",
            Self::Grpc => "a GRPCRoute",
            Self::Mesh => "a VirtualService",
            Self::Ingress => "a canary Ingress",
            Self::Traefik => "a TraefikService",
            Self::IngressRoute => "an IngressRoute",
            Self::Proxy => "an HTTPProxy",
            Self::Table => "a RouteTable",
            Self::Set => "the partition of a StatefulSet",
            Self::Daemon => "the nodes of a DaemonSet",
            Self::Pods => "the number of pods",
            Self::Service => "the selector of a Service",
        })
    }
}
