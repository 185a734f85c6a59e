//! What the checks of a step say: evidence against the version at any time, and at the end of the soak enough for it.

use super::draft::Draft;
use super::procedure::{self, Roles, Step};
use super::report::{Reason, Wait};
use crate::analysis::judge::{self, CheckState, Inquiry, Subject, Verdict};
use crate::analysis::proxy;
use crate::analysis::sides::{Side, Sides};
use crate::manifest::desired::{Away, By, Check, Criterion, OnAway, OnNoData, Plan};
use crate::manifest::duration::Span;
use crate::manifest::ids::{CheckName, Namespace, ObjectName, PodsDigest};
use crate::record::posture::Naming;
use crate::record::state::{Checked, Position, RoleName, Run, Time};
use crate::record::text::plain;
use crate::workload::layouts::suffixed;
use crate::workload::routers::Services;
use std::collections::BTreeMap;

/// What is known of a step's checks.
#[derive(Debug, Default)]
pub struct Measured {
    /// Why the version is bad.
    pub bad: Option<String>,
    /// What keeps the step from being done, once its soak is over.
    pub waits: Vec<Wait>,
    /// The questions whose answers are not there yet.
    pub questions: Vec<Inquiry>,
    /// When the next question is due, or a provider has been away for too long.
    pub next: Option<Time>,
    /// Since when providers are away for which the run holds, by the checks that say for how long it does.
    pub away: BTreeMap<CheckName, Time>,
    /// Why the run goes back though nothing speaks against the version.
    pub unanswered: Option<String>,
}

/// Whether a step has been in force for as long as it has to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Soak {
    /// Not yet.
    Running,
    /// Since then: what is missing now holds the run.
    Over(Time),
}

/// Looks at the checks of a step that has been in force `since` then. A step that was skipped, and one that is not in force
/// yet, has none.
#[must_use]
pub fn measure(draft: &Draft<'_>, plan: &Plan, run: &Run, step: &Step, position: &Position, soak: Soak) -> Measured {
    let mut measured = Measured::default();
    let Some(exposed) = position.clock.exposed else { return measured };
    if procedure::is_skipped(run, step) {
        return measured;
    }
    let since = settled(exposed, plan, step);
    let (about, sides) = (draft.about(run, &step.name), run_sides(draft, plan, run));
    let over = match soak {
        Soak::Running => None,
        Soak::Over(at) => Some(at),
    };
    let subject = Subject { about: &about, sides: &sides, since, over };
    for name in &step.checks {
        // A plan that was pinned by a version that knew other checks: nothing says that the version is good.
        let Some(check) = plan.checks.get(name) else {
            measured
                .waits
                .push(Wait::new(Reason::Inconclusive, format!("{}: nobody wrote the check {name}", step.name)));
            continue;
        };
        one(draft, &mut measured, subject, name, check, soak);
    }
    measured
}

fn one(draft: &Draft<'_>, measured: &mut Measured, subject: Subject<'_>, name: &CheckName, check: &Check, soak: Soak) {
    let (step, now) = (&subject.about.step, draft.now());
    let next = judge::next(check, subject.since, now);
    measured.next = Some(measured.next.map_or(next, |other| other.min(next)));
    let verdict = match judge::look(check, name, subject, now, &draft.input.evidence.readings) {
        CheckState::Says(verdict) => verdict,
        CheckState::Said(verdict, questions) => {
            measured.questions.extend(questions);
            verdict
        }
        CheckState::Lacks(questions) => {
            // Until somebody answers, nothing is known to have changed.
            measured.away.extend(since_away(draft, name).map(|since| (name.clone(), since)));
            measured.questions.extend(questions);
            measured.waits.push(Wait::new(Reason::Evidence, format!("{step}: {name} is being asked for")));
            return;
        }
    };
    let mut until = None;
    let why = match (verdict, check.on_no_data, soak) {
        (Verdict::Good, _, _) | (Verdict::Undecided(_), OnNoData::Pass, _) => return,
        (Verdict::Bad(why), _, _) => {
            measured.bad.get_or_insert(format!("{step}: {name}: {}", plain(&why)));
            return;
        }
        (Verdict::Undecided(why), OnNoData::Fail, Soak::Over(_)) => {
            measured.bad.get_or_insert(format!("{step}: {name} {why} at the end of the soak"));
            return;
        }
        (Verdict::Undecided(why), OnNoData::Hold | OnNoData::Fail, _) => format!("{step}: {name} {why}"),
        (Verdict::Unknown(why), _, _) => {
            let why = format!("{step}: {name} has no result: {}", plain(&why));
            match (check.on_away, soak) {
                (Some(policy), Soak::Over(_)) => {
                    until = patience(draft, measured, name, policy, &why);
                    format!("{why}; after {} of that the run goes back", policy.after)
                }
                (Some(_), Soak::Running) | (None, _) => why,
            }
        }
    };
    let act = format!("tidegate skip {0}, or tidegate abort {0}", draft.input.id);
    measured.waits.push(Wait { until, ..Wait::new(Reason::Inconclusive, why).act(act) });
}

/// Until when the run holds for a provider that is away, if that is not over: counted while somebody observed, and from what
/// is recorded, so that no restart begins anew.
fn patience(
    draft: &Draft<'_>,
    measured: &mut Measured,
    name: &CheckName,
    OnAway { after, then: Away::Revert }: OnAway,
    why: &str,
) -> Option<Time> {
    let since = since_away(draft, name).unwrap_or(draft.now());
    let waited = procedure::observed(since, draft.now(), &draft.input.gaps);
    measured.away.insert(name.clone(), since);
    if waited >= after {
        measured.unanswered.get_or_insert(format!("{why}, for {after}"));
        return None;
    }
    let ends = draft.now() + Span::from_secs(after.as_secs() - waited.as_secs()).delta();
    measured.next = Some(measured.next.map_or(ends, |other| other.min(ends)));
    Some(ends)
}

/// Since when the record says that the provider of a check is away.
fn since_away(draft: &Draft<'_>, name: &CheckName) -> Option<Time> {
    draft.state.run.as_ref()?.away.get(name).copied()
}

/// What the checks of the step that a run stands on have said last, for people.
#[must_use]
pub fn last_verdicts(draft: &Draft<'_>, plan: &Plan, run: &Run) -> Vec<Checked> {
    let steps = procedure::forward(plan, run.route, &draft.roles(run));
    let position = draft.state.phase.position();
    let Some((step, since)) = position.and_then(|position| {
        let step = steps.iter().find(|step| step.name == position.step)?;
        Some((step, settled(position.clock.exposed?, plan, step)))
    }) else {
        return Vec::new();
    };
    let (about, sides) = (draft.about(run, &step.name), run_sides(draft, plan, run));
    let subject = Subject { about: &about, sides: &sides, since, over: None };
    let said = |name: &CheckName| {
        let says = judge::last_verdict(plan.checks.get(name)?, name, subject, &draft.input.evidence.readings);
        Some(Checked { check: name.clone(), says: plain(&says) })
    };
    step.checks.iter().filter_map(said).collect()
}

/// What the checks of a plan ask a Prometheus about the candidate with these pods, by their names.
#[must_use]
pub fn queries(plan: &Plan, pods: &PodsDigest, namespace: &Namespace) -> BTreeMap<CheckName, String> {
    let sides = sides(plan, &Naming::of(plan), namespace, [None, Some(pods.clone())]);
    let asked = plan.checks.iter().filter_map(|(name, check)| match &check.criterion {
        Criterion::Prometheus(bounds) => {
            let query = proxy::query(&bounds.measure, check.interval, namespace, &sides.candidate);
            Some((name.clone(), query.unwrap_or_else(|why| why)))
        }
        Criterion::Webhook(_) => None,
    });
    asked.collect()
}

/// From when on what is measured at a step counts.
fn settled(exposed: Time, plan: &Plan, step: &Step) -> Time {
    exposed + Span::from_secs(procedure::settle(plan, step)).delta()
}

fn run_sides(draft: &Draft<'_>, plan: &Plan, run: &Run) -> Sides {
    let Roles { old, new, .. } = draft.roles(run);
    sides(plan, &draft.naming, &draft.input.id.namespace, [old.pods, new.pods])
}

/// How the objects of both roles are called, stable's first, and what tells their pods.
fn sides(plan: &Plan, naming: &Naming, namespace: &Namespace, pods: [Option<PodsDigest>; 2]) -> Sides {
    let service = plan.traffic.as_ref().and_then(|traffic| match traffic.router.by() {
        By::Route => traffic.router.service(),
        // Requests reach both through the same Service.
        By::Pods | By::Selector | By::Units => None,
    });
    let side = |role, service: Option<ObjectName>, pods| {
        let workload = naming.workload(role, &plan.target.name);
        Side { role, kind: plan.target.kind, workload, service, pods }
    };
    let [old, new] = pods;
    let [stable, candidate] = match naming.services() {
        // Without a run there is one version alone.
        Some(Services { stable, candidate }) => [stable, candidate.unwrap_or(stable)].map(|name| Some(name.clone())),
        None => [service.cloned(), service.and_then(suffixed)],
    };
    Sides {
        namespace: namespace.clone(),
        candidate: side(RoleName::Candidate, candidate, new),
        stable: side(RoleName::Stable, stable, old),
    }
}
