//! What people do in a world: rollouts, and what becomes of them, chapter by chapter.

use crate::convergence::behind::Leads;
use crate::convergence::dice::Dice;
use crate::convergence::shape::{Router, Shape};
use std::fmt;

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
    /// One whose Job fails.
    Untested,
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
    /// A hand leads the Service that is the target where the new version leads.
    HandLeads,
    /// The autoscaler gives stable another pod for a while.
    Busy,
    /// The webhook before steps says no.
    WebhookHolds,
    /// Another number of pods, and nothing else.
    Resize,
    /// A pod of the candidate's stops being ready for a while.
    Falters,
    /// Half of stable's pods do.
    Starves,
}

impl Story {
    /// How many things happen in all rollouts, at least one.
    pub(crate) fn chapters(&self) -> u64 {
        let chapters: usize = self.rollouts.iter().map(|part| part.chapters.len()).sum();
        u64::try_from(chapters).unwrap().max(1)
    }

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
        // By dice of its own: all else stays as it is.
        let mut dice = Dice::new(seed ^ 0x26);
        for Part { shape, chapters } in &mut rollouts {
            let plain = chapters.iter_mut().filter(|chapter| chapter.edit == Edit::Good && chapter.during.is_none());
            plain.for_each(|chapter| chapter.during = During::of_pods(&mut dice, shape));
        }
        let mut dice = Dice::new(seed ^ 0x00_be51de);
        rollouts.iter_mut().for_each(|part| part.shape.beside = dice.chance(20));
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
            if shape.is_tried_out() {
                choices.extend([Edit::Untested, Edit::Untested]);
            }
            let edit = match dice.pick(&choices) {
                Edit::Replicas(_) if !shape.has_number() => Edit::Good,
                // What is behind a name nobody in the cluster knows.
                Edit::Crash if shape.leads == Some(Leads::Name) => Edit::Errors,
                edit => edit,
            };
            let during = (edit == Edit::Good && dice.chance(50)).then(|| During::new(dice, &shape));
            let ends_badly = matches!(during, Some(During::Abort | During::BrakeRevert));
            even = match (edit, during) {
                (Edit::Good, _) => !ends_badly,
                (Edit::Replicas(_), _) => true,
                (Edit::Errors | Edit::Crash | Edit::Untested | Edit::Rollback | Edit::Retry, _) => false,
            };
            failed = matches!(edit, Edit::Errors | Edit::Crash | Edit::Untested | Edit::Retry);
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
            match shape.router {
                _ if shape.scaled => Self::Busy,
                Router::Daemon => Self::Abort,
                _ if shape.leads.is_some() => Self::HandLeads,
                _ => Self::HandScales,
            },
        ];
        if shape.is_asked_about() {
            choices.extend([Self::WebhookHolds, Self::WebhookHolds]);
        }
        if shape.router.route(shape.name).is_some() {
            choices.extend([Self::HandRaises, Self::HandRaises]);
        }
        dice.pick(&choices)
    }

    /// What becomes of the pods meanwhile, if anything does.
    fn of_pods(dice: &mut Dice, shape: &Shape) -> Option<Self> {
        let copied = shape.leads.is_none() && !shape.router.is_shared();
        let choices = [
            (shape.has_number(), Self::Resize),
            (copied && shape.router.route(shape.name).is_some(), Self::Falters),
            (shape.router == Router::Pods, Self::Starves),
        ];
        let (can, during) = dice.pick(&choices);
        (dice.chance(60) && can).then_some(during)
    }

    /// For how long it is so, where it is taken back.
    pub(crate) fn lasts(self) -> Option<i64> {
        match self {
            Self::Suspend
            | Self::Hold
            | Self::Deny
            | Self::BrakeHold
            | Self::BrokenFile
            | Self::Busy
            | Self::Starves => Some(60),
            // Shorter than what is too much in one go.
            Self::Falters => Some(30),
            // Longer than any soak.
            Self::WebhookHolds => Some(150),
            // The run has gone back by then.
            Self::BrakeRevert => Some(240),
            Self::Abort
            | Self::Supersede
            | Self::MainBack
            | Self::HandRaises
            | Self::HandScales
            | Self::HandLeads
            | Self::Resize => None,
        }
    }
}

impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} in a cluster with", if self.controllers == 1 { "One controller" } else { "Two controllers" })?;
        if self.freezes {
            writeln!(f, "frozen in the seventh and the eighth of each ten minutes, with")?;
        }
        for Part { shape, chapters } in &self.rollouts {
            match shape.leads {
                None => write!(f, "\n{} pods of {}", shape.replicas, shape.stable("1"))?,
                Some(Leads::Pods) => write!(f, "\nWhere the Service {} leads", shape.name)?,
                Some(Leads::Name) => write!(f, "\nThe name that {} stands for", shape.name)?,
            }
            writeln!(f, ", split by {}:", shape.router)?;
            if shape.scaled {
                writeln!(f, "  an autoscaler says how many, and no fewer")?;
            }
            if shape.sticky {
                writeln!(f, "  who got the candidate by weight keeps it")?;
            }
            if shape.is_compared() {
                writeln!(f, "  compared with stable")?;
            }
            if shape.hook {
                writeln!(f, "  a hook is told")?;
            }
            for phase in &shape.phases {
                write!(f, "{}", phase.text(shape.name))?;
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

impl fmt::Display for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Good => f.write_str("push a version that works"),
            Self::Errors => f.write_str("push a version whose requests fail"),
            Self::Crash => f.write_str("push a version that does not start"),
            Self::Untested => f.write_str("push a version whose Job fails"),
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
            Self::HandLeads => "a hand leads the Service where the new version leads",
            Self::Busy => "the autoscaler gives stable one more pod, for 60 s",
            Self::WebhookHolds => "the webhook holds, for 150 s",
            Self::Resize => "push one pod more",
            Self::Falters => "a pod of the candidate's is not ready, for 30 s",
            Self::Starves => "half of stable's pods are not ready, for 60 s",
        })
    }
}
