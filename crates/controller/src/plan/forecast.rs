//! When a run would let whom in, if nothing goes wrong: foreseen from its plan, the policy and the clock alone.
//!
//! It promises nothing: pods take their time, checks may object, and people answer when they answer. What it says is the
//! earliest that the gates allow.

use super::entry;
use super::procedure::{self, Roles, Stage, Step};
use crate::gate::approval;
use crate::gate::schedule::{FreezeSpan, Window, WindowState};
use crate::manifest::desired::{Gates, Plan, Rollout};
use crate::manifest::duration::Span;
use crate::manifest::ids::{ScheduleName, SetId, StepName};
use crate::manifest::policy::{self, Policy, Schedule};
use crate::record::posture::{Directly, Naming, Role, Size, Units};
use crate::record::state::{Position, Route, Time};
use crate::record::text::exposure;
use chrono_tz::Tz;
use std::collections::BTreeSet;

mod text;

/// The way that is foreseen.
#[derive(Debug, Clone, Copy)]
pub struct Way<'a> {
    /// Whose.
    pub rollout: &'a Rollout,
    /// How it goes: of an open run the plan that it started with.
    pub plan: &'a Plan,
    /// Which steps it has.
    pub route: Route,
    /// The version that serves before it.
    pub from: &'a SetId,
    /// The step that was entered last; none before the first.
    pub entered: Option<&'a Position>,
    /// How far people have let it go already.
    pub approved: &'a [StepName],
}

/// What is foreseen of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forecast {
    /// The steps to come.
    pub steps: Vec<Foreseen>,
    /// When that was.
    now: Time,
    /// On whose clocks it is told.
    zone: Tz,
}

/// A step to come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreseen {
    /// Its name.
    pub name: StepName,
    /// What reaches the new version, in words; none: nothing.
    pub exposes: Option<String>,
    /// What must be open to enter it.
    pub before: Gates,
    /// The name under which a decision for it is asked.
    through: StepName,
    /// Whether that decision was given already.
    given: Given,
    /// How long it lasts at least.
    pub lasts: Span,
    /// When it can be entered at the earliest, if pods were ready and people agreed at once; none: its window never opens.
    pub earliest: Option<Time>,
    /// What it waits for until then, where that is a window or a freeze.
    shut: Option<Shut>,
    /// Which phase of the table it belongs to.
    stage: Stage,
}

/// Whether people have let a run enter a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Given {
    Yes,
    No,
}

/// What keeps a step from being entered for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Shut {
    /// Its window is closed.
    Window,
    /// This freeze holds.
    Freeze(ScheduleName),
}

impl Foreseen {
    /// What must be open to enter it, in words.
    #[must_use]
    pub fn gates(&self) -> Vec<String> {
        let Gates { approval, window, webhook, job } = &self.before;
        let approval = approval.map(|_| format!("approval of {}", self.through));
        let window = window.as_ref().map(|window| format!("window {window}"));
        let webhook = webhook.as_ref().map(|webhook| format!("webhook {}", webhook.provider));
        let job = job.as_ref().map(|job| format!("Job {job}"));
        [approval, window, webhook, job].into_iter().flatten().collect()
    }
}

/// The steps after the one that was entered (all without one), with the earliest time of each.
#[must_use]
pub fn forecast(way: &Way<'_>, policy: Option<&Policy>, now: Time) -> Forecast {
    let Way { rollout, plan, route, from, entered, approved } = *way;
    let role = |set: &SetId| Role { set: set.clone(), size: Size::Declared, pods: None, directly: Directly::new() };
    let roles = Roles {
        old: role(from),
        new: role(&rollout.set.id),
        baseline: 0,
        naming: Naming::of(plan),
        units: Units::default(),
        run: None,
    };
    let steps = procedure::forward(plan, route, &roles);
    let current =
        entered.and_then(|position| Some((position, steps.iter().position(|step| step.name == position.step)?)));
    let (done, mut earliest) = match current {
        Some((position, at)) => {
            let away =
                position.clock.lost.map_or_else(Default::default, |lost| now - lost) + position.clock.away.delta();
            let soaked = position.clock.exposed.unwrap_or(now) + lasts(plan, &steps[at]).delta() + away;
            (at + 1, Some(soaked.max(now)))
        }
        None => (0, Some(now)),
    };
    let calendar = Calendar::of(rollout, policy);
    let mut foreseen = Vec::new();
    for step in &steps[done..] {
        let (opens, shut) = earliest.map_or((None, None), |at| calendar.opens(step, at));
        let lasts = lasts(plan, step);
        let through = entry::through(plan, &step.name);
        foreseen.push(Foreseen {
            name: step.name.clone(),
            exposes: exposure(&step.posture.split),
            before: step.before.clone(),
            given: if approval::covers(plan, approved, &through) { Given::Yes } else { Given::No },
            through,
            lasts,
            earliest: opens,
            shut,
            stage: step.stage,
        });
        earliest = opens.map(|at| at + lasts.delta());
    }
    let zone = calendar.zone(&foreseen);
    Forecast { steps: foreseen, now, zone }
}

/// How long a step stays at least. Its checks have enough samples by then, as files whose soak is too short are refused.
fn lasts(plan: &Plan, step: &Step) -> Span {
    Span::from_secs(step.soak.as_secs() + procedure::settle(plan, step))
}

/// The windows and freezes that a rollout meets.
struct Calendar<'a> {
    policy: Option<&'a Policy>,
    freezes: Vec<(&'a ScheduleName, FreezeSpan)>,
}

impl<'a> Calendar<'a> {
    fn of(rollout: &Rollout, policy: Option<&'a Policy>) -> Self {
        let tenant = policy.and_then(|policy| policy.tenant_of(&rollout.path)).map(|(name, _)| name);
        let all = policy.iter().flat_map(|policy| &policy.freezes);
        let meant = all.filter(|(_, freeze)| {
            freeze.tenants.is_empty() || tenant.is_some_and(|tenant| freeze.tenants.contains(tenant))
        });
        let freeze = |(name, freeze): (&'a ScheduleName, &'a policy::Freeze)| {
            Some((name, FreezeSpan { window: window(&freeze.schedule)?, tenants: BTreeSet::new() }))
        };
        Self { policy, freezes: meant.filter_map(freeze).collect() }
    }

    /// The window that a step asks for.
    fn asked(&self, before: &Gates) -> Option<&'a Schedule> {
        self.policy?.windows.get(before.window.as_ref()?)
    }

    /// When a step can be entered at the earliest, from `at` on, and what it waits for until then; at no time: never.
    fn opens(&self, step: &Step, mut at: Time) -> (Option<Time>, Option<Shut>) {
        let mut shut = None;
        if step.stage != Stage::Progressing && step.before.is_empty() && step.name.as_str() != "shift" {
            return (Some(at), shut);
        }
        let window = self.asked(&step.before).and_then(window);
        // Each turn goes past one closed window or one freeze. Who has to pass more has no end in sight, and whoever wrote that
        // shall not keep us busy.
        for _ in 0..60 {
            let before = at;
            if let Some(WindowState::Closed { opens }) = window.as_ref().map(|window| window.is_open(at)) {
                shut = Some(Shut::Window);
                let Some(opens) = opens else { return (None, shut) };
                at = opens;
            }
            let holding = self.freezes.iter().filter_map(|(name, freeze)| Some((freeze.holds(None, at)?, *name)));
            if let Some((until, name)) = holding.max() {
                (at, shut) = (until, Some(Shut::Freeze(name.clone())));
            }
            if at == before {
                return (Some(at), shut);
            }
        }
        (None, shut)
    }

    /// The clocks that people of this rollout look at: those of its first window, else of the first freeze that it meets.
    fn zone(&self, steps: &[Foreseen]) -> Tz {
        let window = steps.iter().find_map(|step| self.asked(&step.before)).map(|schedule| schedule.zone);
        let freeze = steps.iter().find_map(|step| match &step.shut {
            Some(Shut::Freeze(name)) => self.policy?.freezes.get(name).map(|freeze| freeze.schedule.zone),
            Some(Shut::Window) | None => None,
        });
        window.or(freeze).unwrap_or(Tz::UTC)
    }
}

fn window(schedule: &Schedule) -> Option<Window> {
    Window::new(&schedule.cron, schedule.duration, schedule.zone).ok()
}

#[cfg(test)]
mod tests;
