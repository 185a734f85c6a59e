//! What people do in a world: rollouts, and what becomes of them, chapter by chapter.

use crate::dice::Dice;
use std::fmt;
use tidegate::manifest::desired::Layout;

/// The name of a phase that exposes nothing.
const PREVIEW: &str = "preview";

/// A world without faults.
#[derive(Debug, Clone)]
pub(crate) struct Story {
    /// How many controllers there are.
    pub(crate) controllers: usize,
    /// Whether the policy has freezes.
    pub(crate) freezes: bool,
    pub(crate) rollouts: Vec<Part>,
}

/// One rollout and its chapters; one without chapters is left in peace.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) shape: Shape,
    pub(crate) chapters: Vec<Chapter>,
}

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

/// What happens to a rollout at rest, and once what follows from it is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chapter {
    pub(crate) edit: Edit,
    pub(crate) during: Option<During>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edit {
    /// A version that works.
    Good,
    /// One whose requests fail.
    Errors,
    /// One that does not start.
    Crash,
    /// Another number of pods, and nothing else.
    Replicas(u64),
    /// Back to the version before.
    Rollback,
    /// The version that failed is tried again.
    Retry,
}

/// What happens while a run stands on its first phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum During {
    Suspend,
    Hold,
    /// Nobody shall approve anything of it for a while.
    Deny,
    BrakeHold,
    BrakeRevert,
    Abort,
    /// Another version that works.
    Supersede,
    /// Main goes back to what is promoted.
    MainBack,
    /// The rollout's file gets broken, and is mended.
    BrokenFile,
    /// A hand sends more requests to the candidate.
    HandRaises,
    /// A hand gives stable another pod.
    HandScales,
}

impl Story {
    pub(crate) fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed ^ 0x57_0f);
        let count = usize::try_from(dice.pick(&[1, 1, 1, 1, 1, 1, 1, 2, 2, 3])).unwrap();
        let mut rollouts: Vec<Part> =
            ["web", "api", "ads"].into_iter().take(count).map(|n| Part::new(n, &mut dice)).collect();
        if dice.chance(15) {
            let shape = Shape::new("old", &mut dice);
            rollouts.push(Part { shape, chapters: Vec::new() });
        }
        let (controllers, freezes) = (if dice.chance(50) { 2 } else { 1 }, dice.chance(15));
        Self { controllers, freezes, rollouts }
    }

    /// The policy: each ten minutes a window is open for the first four; a freeze, if there is one, is on in the seventh and
    /// the eighth.
    pub(crate) fn policy(&self) -> String {
        let freezes = "  freezes: {now-and-then: {cron: \"6-59/10 * * * *\", duration: 2m, zone: UTC}}\n";
        format!(
            "apiVersion: tidegate.io/v1alpha1
kind: Policy
spec:
  tenants: {{shop: {{path: shop, namespaces: [shop], clusters: [home]}}}}
  windows: {{half: {{cron: \"*/10 * * * *\", duration: 4m, zone: UTC}}}}
{}",
            if self.freezes { freezes } else { "" }
        )
    }
}

impl Part {
    fn new(name: &'static str, dice: &mut Dice) -> Self {
        let shape = Shape::new(name, dice);
        let count = dice.pick(&[1, 1, 1, 2]);
        // What main wants is what runs; a version before that; the version that failed last is what main wants.
        let (mut even, mut promoted, mut failed) = (true, 1, false);
        let mut chapters = Vec::new();
        for _ in 0..count {
            let mut choices = vec![Edit::Good, Edit::Good, Edit::Good, Edit::Errors, Edit::Errors, Edit::Crash];
            if even {
                choices.push(Edit::Replicas(shape.replicas + 1));
                if promoted > 1 {
                    choices.push(Edit::Rollback);
                }
            }
            if failed {
                choices.push(Edit::Retry);
            }
            let edit = match dice.pick(&choices) {
                // What is measured of pods that are no copies says nothing of one version: there are no checks.
                Edit::Errors if shape.router == Router::Set => Edit::Crash,
                edit => edit,
            };
            let during = (edit == Edit::Good && dice.chance(50)).then(|| During::new(dice, &shape));
            let ends_badly = matches!(during, Some(During::Abort | During::BrakeRevert));
            even = match (edit, during) {
                (Edit::Good, _) => !ends_badly,
                (Edit::Replicas(_), _) => true,
                (Edit::Errors | Edit::Crash | Edit::Rollback | Edit::Retry, _) => false,
            };
            failed = matches!(edit, Edit::Errors | Edit::Crash | Edit::Retry);
            promoted += u32::from(edit == Edit::Good && !ends_badly && during != Some(During::MainBack));
            chapters.push(Chapter { edit, during });
        }
        Self { shape, chapters }
    }
}

impl During {
    fn new(dice: &mut Dice, shape: &Shape) -> Self {
        let mut choices = vec![
            Self::Suspend,
            Self::Hold,
            Self::Deny,
            Self::BrakeHold,
            Self::BrakeRevert,
            Self::Abort,
            Self::Supersede,
            Self::MainBack,
            Self::BrokenFile,
            Self::HandScales,
        ];
        if shape.router.route(shape.name).is_some() {
            choices.extend([Self::HandRaises, Self::HandRaises]);
        }
        dice.pick(&choices)
    }

    /// For how long it is so, where it is taken back.
    pub(crate) fn lasts(self) -> Option<i64> {
        match self {
            Self::Suspend | Self::Hold | Self::Deny | Self::BrakeHold | Self::BrokenFile => Some(60),
            // The run has gone back by then.
            Self::BrakeRevert => Some(240),
            Self::Abort | Self::Supersede | Self::MainBack | Self::HandRaises | Self::HandScales => None,
        }
    }
}

impl Shape {
    fn new(name: &'static str, dice: &mut Dice) -> Self {
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

    fn text(&self, checked: bool) -> String {
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

impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} in a cluster with", if self.controllers == 1 { "One controller" } else { "Two controllers" })?;
        if self.freezes {
            writeln!(f, "frozen in the seventh and the eighth of each ten minutes, with")?;
        }
        for Part { shape, chapters } in &self.rollouts {
            writeln!(f, "\n{} pods of {}, split by {}:", shape.replicas, shape.stable(), shape.router)?;
            for phase in &shape.phases {
                write!(f, "{}", phase.text(shape.router != Router::Set))?;
            }
            let asked = if shape.approved_promotion { ", after an approval" } else { "" };
            writeln!(f, "  promoted after {} s with all requests{asked}", shape.bake)?;
            if chapters.is_empty() {
                writeln!(f, "Nobody touches it.")?;
            }
            for Chapter { edit, during } in chapters {
                writeln!(f, "> {edit}")?;
                if let Some(during) = during {
                    writeln!(f, "> on {}: {during}", shape.phases[0].name)?;
                }
            }
        }
        Ok(())
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

impl fmt::Display for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Good => f.write_str("push a version that works"),
            Self::Errors => f.write_str("push a version whose requests fail"),
            Self::Crash => f.write_str("push a version that does not start"),
            Self::Replicas(n) => write!(f, "push replicas: {n}"),
            Self::Rollback => f.write_str("rollback to the version before"),
            Self::Retry => f.write_str("retry the version that failed"),
        }
    }
}

impl fmt::Display for During {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Suspend => "push suspend: true, for 60 s",
            Self::Hold => "hold, and resume after 60 s",
            Self::Deny => "deny, and resume after 60 s",
            Self::BrakeHold => "brake: hold, for 60 s",
            Self::BrakeRevert => "brake: revert, for 240 s",
            Self::Abort => "abort",
            Self::Supersede => "push another version that works",
            Self::MainBack => "push the version before",
            Self::BrokenFile => "push a broken file, mended after 60 s",
            Self::HandRaises => "a hand sends all requests to the candidate",
            Self::HandScales => "a hand gives stable one more pod",
        })
    }
}
