//! Whether a step may be entered now, and everything that it waits for if not.
//!
//! Judged on entry only, and only for steps that have gates or that freezes and suspension bar (*prepare*, a phase,
//! *shift*, a direct change): who plans *promote*, *return*, *retire* or a way back does not ask (C-15). A rollback asks
//! with empty [`Gates`] and no freezes.

use super::BrakeWord;
use super::schedule::{Freeze, Window, WindowState};
use crate::manifest::desired::{Gates, Suspend};
use crate::manifest::ids::{ScheduleName, StepName, TenantName};
use crate::record::state::Time;
use crate::record::text::plain;
use std::collections::{BTreeMap, BTreeSet};

/// What people have said of the step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer<'a> {
    /// Nothing yet.
    None {
        /// The open request, if there is one.
        asked: Option<&'a Asked>,
    },
    /// Somebody who may has approved it.
    Approved,
    /// Somebody who may has said no: it stays closed until `resume`, whatever its gates (C-16).
    Denied {
        /// When it was counted.
        since: Time,
    },
}

/// An open request for approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Since when it is open.
    pub since: Time,
    /// Where a person answers it: an address or a branch.
    pub link: String,
}

/// Evidence that is not there yet: a dry run, a verified tip, a healthy proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// What is missing, in words; foreign text is welcome.
    pub message: String,
    /// Who can change it.
    pub owner: String,
    /// Since when it is missed.
    pub since: Option<Time>,
}

/// All that a gate can ask about.
#[derive(Debug, Clone, Copy)]
pub struct GateContext<'a> {
    /// The time of this tick.
    pub now: Time,
    /// Since when the rollout waits to enter the step.
    pub since: Option<Time>,
    /// What people said.
    pub answer: Answer<'a>,
    /// Who may approve; whoever can merge if empty.
    pub approvers: &'a BTreeSet<String>,
    /// The windows of the policy.
    pub windows: &'a BTreeMap<ScheduleName, Window>,
    /// The freezes of the policy.
    pub freezes: &'a BTreeMap<ScheduleName, Freeze>,
    /// The tenant that the rollout belongs to.
    pub tenant: Option<&'a TenantName>,
    /// `suspend` in the manifest, at main's tip.
    pub suspend: Suspend,
    /// The brake in the cluster.
    pub brake: Option<BrakeWord>,
    /// A person's `hold`, since when.
    pub held: Option<Time>,
    /// What evidence is missing.
    pub missing: &'a [Missing],
}

/// Whether a step may be entered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Now.
    Open,
    /// Not now: all of these stand against it, never none.
    Closed(Vec<Unmet>),
}

/// Why a step may not be entered: a closed list, documented for people and used in metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// A person pulled the brake in the cluster.
    Brake,
    /// A person said `hold`.
    Held,
    /// A person said no.
    Denied,
    /// The manifest says `suspend: true`.
    Suspended,
    /// A freeze of the policy.
    Freeze,
    /// The window is closed, or the policy has none of that name.
    Window,
    /// Nobody has approved yet.
    Approval,
    /// Evidence is not there yet.
    Evidence,
}

/// One condition that is not met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmet {
    /// Which kind.
    pub reason: Reason,
    /// What is found, in words, foreign text made harmless.
    pub message: String,
    /// Who can change it.
    pub owner: String,
    /// Since when it stands, if that is known.
    pub since: Option<Time>,
    /// When time alone will open it; never if none.
    pub opens: Option<Time>,
    /// Where a person can change it.
    pub link: Option<String>,
}

impl Unmet {
    fn new(reason: Reason, message: impl Into<String>, owner: impl Into<String>) -> Self {
        Self { reason, message: message.into(), owner: owner.into(), since: None, opens: None, link: None }
    }

    fn since(self, since: Option<Time>) -> Self {
        Self { since, ..self }
    }

    fn opens(self, opens: Option<Time>) -> Self {
        Self { opens, ..self }
    }
}

const OPERATIONS: &str = "the owners of the policy";

/// Judges the gates before `step`, with everything else that bars its entry. All that is unmet is listed, in the order of
/// [`Reason`].
#[must_use]
pub fn judge(gates: &Gates, step: &StepName, context: &GateContext<'_>) -> Verdict {
    let mut unmet: Vec<Unmet> = barred(step, context);
    unmet.extend(frozen(context));
    unmet.extend(gates.window.as_ref().and_then(|name| outside(name, context)));
    if gates.approval.is_some() {
        unmet.extend(unapproved(step, context));
    }
    unmet.extend(context.missing.iter().map(|missing| {
        Unmet::new(Reason::Evidence, plain(&missing.message), plain(&missing.owner)).since(missing.since)
    }));
    if unmet.is_empty() { Verdict::Open } else { Verdict::Closed(unmet) }
}

/// What bars every entry.
fn barred(step: &StepName, context: &GateContext<'_>) -> Vec<Unmet> {
    let mut unmet = Vec::new();
    if let Some(word) = context.brake {
        let word = match word {
            BrakeWord::Hold => "hold",
            BrakeWord::Revert => "revert",
        };
        let message = format!("the brake in the cluster says {word} (ConfigMap tidegate-brake)");
        unmet.push(Unmet::new(Reason::Brake, message, "whoever may edit that ConfigMap"));
    }
    if context.held.is_some() {
        let message = "held by a person's decision; a decision with the action resume lifts it";
        unmet.push(Unmet::new(Reason::Held, message, approvers(context)).since(context.held));
    }
    if let Answer::Denied { since } = context.answer {
        let message = format!("{step} was denied; it is not asked again before a decision with the action resume");
        unmet.push(Unmet::new(Reason::Denied, message, approvers(context)).since(Some(since)));
    }
    match context.suspend {
        Suspend::Yes => {
            let message = "the manifest says suspend: true";
            unmet.push(Unmet::new(Reason::Suspended, message, "the owners of the manifest"));
        }
        Suspend::No => {}
    }
    unmet
}

fn frozen(context: &GateContext<'_>) -> Vec<Unmet> {
    let holds = context.freezes.iter().filter_map(|(name, freeze)| {
        let until = freeze.holds(context.tenant, context.now)?;
        Some(Unmet::new(Reason::Freeze, format!("freeze {name} holds"), OPERATIONS).opens(Some(until)))
    });
    holds.collect()
}

fn outside(name: &ScheduleName, context: &GateContext<'_>) -> Option<Unmet> {
    let closed = |message: String, opens| Some(Unmet::new(Reason::Window, message, OPERATIONS).opens(opens));
    match context.windows.get(name).map(|window| window.is_open(context.now)) {
        Some(WindowState::Open { until: _ }) => None,
        Some(WindowState::Closed { opens }) => closed(format!("window {name} is closed"), opens),
        None => closed(format!("the policy has no window {name}; expected one under spec.windows"), None),
    }
}

fn unapproved(step: &StepName, context: &GateContext<'_>) -> Option<Unmet> {
    let (since, link) = match context.answer {
        Answer::None { asked: Some(asked) } => (Some(asked.since), Some(asked.link.clone())),
        Answer::None { asked: None } => (context.since, None),
        // Denied is listed on its own: there is nothing that somebody could approve.
        Answer::Approved | Answer::Denied { .. } => return None,
    };
    let unmet = Unmet::new(Reason::Approval, format!("{step} waits for approval"), approvers(context)).since(since);
    Some(Unmet { link, ..unmet })
}

fn approvers(context: &GateContext<'_>) -> String {
    if context.approvers.is_empty() {
        "whoever can merge to the decisions branch".to_owned()
    } else {
        plain(&context.approvers.iter().map(String::as_str).collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fixture::{plan, step};
    use chrono_tz::Tz;

    fn time(text: &str) -> Time {
        text.parse().expect(text)
    }

    fn schedule(name: &str) -> ScheduleName {
        name.parse().expect(name)
    }

    fn window(cron: &str, duration: &str) -> Window {
        Window::new(cron, duration.parse().unwrap(), Tz::UTC).unwrap()
    }

    struct World {
        windows: BTreeMap<ScheduleName, Window>,
        freezes: BTreeMap<ScheduleName, Freeze>,
        approvers: BTreeSet<String>,
        tenant: TenantName,
    }

    fn world() -> World {
        let freeze = Freeze { window: window("0 0 20 12 *", "336h"), tenants: BTreeSet::new() };
        World {
            windows: BTreeMap::from([(schedule("office-hours"), window("0 9 * * 1-5", "8h"))]),
            freezes: BTreeMap::from([(schedule("xmas"), freeze)]),
            approvers: BTreeSet::from(["ana".to_owned(), "bo".to_owned()]),
            tenant: "shop".parse().unwrap(),
        }
    }

    impl World {
        /// A Wednesday morning on which nothing stands in the way.
        fn context(&self) -> GateContext<'_> {
            GateContext {
                now: time("2026-11-25T10:00:00Z"),
                since: Some(time("2026-11-25T08:00:00Z")),
                answer: Answer::Approved,
                approvers: &self.approvers,
                windows: &self.windows,
                freezes: &self.freezes,
                tenant: Some(&self.tenant),
                suspend: Suspend::No,
                brake: None,
                held: None,
                missing: &[],
            }
        }
    }

    fn reasons(verdict: &Verdict) -> Vec<Reason> {
        match verdict {
            Verdict::Open => Vec::new(),
            Verdict::Closed(unmet) => unmet.iter().map(|u| u.reason).collect(),
        }
    }

    fn text(verdict: Verdict) -> String {
        let Verdict::Closed(unmet) = verdict else { return "open".to_owned() };
        let line = |u: Unmet| {
            let times = [u.since, u.opens].map(|t| t.map_or("-".to_owned(), |t| t.to_rfc3339()));
            let link = u.link.as_deref().unwrap_or("-");
            format!("{:?} | {} | {} | since {} | opens {} | {link}", u.reason, u.message, u.owner, times[0], times[1])
        };
        unmet.into_iter().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn c_14_a_gate_is_open_when_all_that_it_asks_for_is_there() {
        let world = world();
        let (plan, context) = (plan(), world.context());
        assert_eq!(judge(&plan.phases[1].before, &step("half"), &context), Verdict::Open);
        let night = GateContext { now: time("2026-11-25T22:00:00Z"), ..context };
        assert_eq!(reasons(&judge(&plan.phases[1].before, &step("half"), &night)), [Reason::Window]);
        assert_eq!(judge(&plan.promotion.before, &step("promotion"), &night), Verdict::Open);
        let asked = GateContext { answer: Answer::None { asked: None }, ..context };
        assert_eq!(judge(&plan.phases[1].before, &step("half"), &asked), Verdict::Open);
        assert_eq!(reasons(&judge(&plan.promotion.before, &step("promotion"), &asked)), [Reason::Approval]);
    }

    #[test]
    fn all_that_is_unmet_is_listed_with_owner_and_times() {
        let world = world();
        let asked = Asked { since: time("2026-12-25T09:00:00Z"), link: "branch tidegate/prod/propose/x".to_owned() };
        let missing =
            [Missing { message: "dry run:\nnot\u{202e} done".to_owned(), owner: "tidegate".to_owned(), since: None }];
        let context = GateContext {
            now: time("2026-12-26T10:00:00Z"),
            answer: Answer::None { asked: Some(&asked) },
            suspend: Suspend::Yes,
            brake: Some(BrakeWord::Revert),
            held: Some(time("2026-12-24T10:00:00Z")),
            missing: &missing,
            ..world.context()
        };
        let gates = Gates { approval: plan().promotion.before.approval, window: Some(schedule("office-hours")) };
        insta::assert_snapshot!(text(judge(&gates, &step("half"), &context)));
    }

    #[test]
    fn c_16_denied_closes_every_step_and_asks_nobody() {
        let world = world();
        let denied = Answer::Denied { since: time("2026-11-25T09:30:00Z") };
        let context = GateContext { answer: denied, ..world.context() };
        let plan = plan();
        for (gates, name) in [(&plan.promotion.before, "promotion"), (&Gates::default(), "testers")] {
            assert_eq!(reasons(&judge(gates, &step(name), &context)), [Reason::Denied]);
        }
        insta::assert_snapshot!(text(judge(&plan.promotion.before, &step("promotion"), &context)), @"Denied | promotion was denied; it is not asked again before a decision with the action resume | ana, bo | since 2026-11-25T09:30:00+00:00 | opens - | -");
    }

    #[test]
    fn a_window_that_the_policy_lacks_stays_closed() {
        let world = world();
        let gates = Gates { approval: None, window: Some(schedule("weekend")) };
        insta::assert_snapshot!(text(judge(&gates, &step("half"), &world.context())), @"Window | the policy has no window weekend; expected one under spec.windows | the owners of the policy | since - | opens - | -");
    }
}
