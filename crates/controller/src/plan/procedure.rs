//! A run as a list of steps. The target supplies these lists, and nothing else decides order (design §5).

use super::report::{Reason, Wait};
use crate::gate::approval;
use crate::manifest::desired::{By, Expose, Gates, HeaderMatch, Plan, Preview, Rollout, Set, TargetKind};
use crate::manifest::duration::Span;
use crate::manifest::ids::{CheckName, Percent, RunId, StepName};
use crate::record::posture::{Directly, Naming, Posture, Role, Size, Split, Units};
use crate::record::state::{Phase, Position, Promoted, RoleName, Route, Run, StepClock, Time};
use crate::rules::{Rule, holds};
use chrono::TimeDelta;

/// One stop on the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Its name.
    pub name: StepName,
    /// What the world shall be.
    pub posture: Posture,
    /// What must be open to enter it.
    pub before: Gates,
    /// How long it has to stay reached.
    pub soak: Span,
    /// What has to hold meanwhile.
    pub checks: Vec<CheckName>,
    /// Which phase it belongs to.
    pub stage: Stage,
}

/// Which phase of the table a step belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// *prepare* and the phases of the plan.
    Progressing,
    /// *shift* and *promote*.
    Promoting,
    /// *return* and *retire*.
    Finalising,
}

impl Stage {
    /// The phase of a record that stands on this step.
    #[must_use]
    pub fn phase(self, position: Position) -> Phase {
        match self {
            Self::Progressing => Phase::Progressing(position),
            Self::Promoting => Phase::Promoting(position),
            Self::Finalising => Phase::Finalising(position),
        }
    }
}

/// The roles of a run: what was stable when it started, what it brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roles {
    /// The old version.
    pub old: Role,
    /// The new version.
    pub new: Role,
    /// The pods that stable keeps in the run: what it had at the first step, or has since when more of the traffic leaves it.
    pub baseline: u32,
    /// What their objects are called.
    pub naming: Naming,
    /// The units of a workload that both share that were let in by now.
    pub units: Units,
    /// The run, where there is one yet.
    pub run: Option<RunId>,
}

impl Roles {
    /// Both roles of an open run, as its postures name them. `promoted` is what the record calls promoted: the old version,
    /// and from *retire* on the new one.
    #[must_use]
    pub fn of(run: &Run, promoted: Option<&Promoted>, baseline: u32, naming: Naming) -> Self {
        let served = promoted.filter(|p| p.set == run.from);
        let (old, directly) = served.map(|p| (p.label.clone(), p.directly.clone())).unwrap_or_default();
        // Equal pods keep the label that they have, so that no pod restarts.
        let same = promoted.filter(|p| run.route == Route::Plain && p.pods == run.pods);
        let new = same.map_or_else(|| Some(run.pods.clone()), |p| p.label.clone());
        Self {
            old: Role { set: run.from.clone(), size: Size::Declared, pods: old, directly },
            new: Role { set: run.to.clone(), size: Size::Declared, pods: new, directly: Directly::new() },
            baseline,
            naming,
            units: Units::default(),
            run: Some(run.id.clone()),
        }
    }

    /// Those who keep the candidate that they got by weight.
    fn holders(&self, plan: &Plan, split: &Split) -> Option<HeaderMatch> {
        let affinity = plan.traffic.as_ref()?.session_affinity.as_ref()?;
        self.run.as_ref().filter(|_| !split.weight.is_zero()).map(|run| affinity.holders(run))
    }

    fn posture(&self, stable: Role, candidate: Option<Role>, split: Split) -> Posture {
        Posture { stable, candidate, split, naming: self.naming.clone() }
    }

    /// The run is over, and the version of that role goes on.
    fn at_rest(&self, stable: Role, stays: RoleName) -> Posture {
        Posture { stable, candidate: None, split: Split::stable(), naming: self.naming.after(stays) }
    }

    fn stable(&self, role: &Role) -> Role {
        Role { size: Size::AtLeast(self.baseline), ..role.clone() }
    }

    fn candidate(&self, share: Percent) -> Option<Role> {
        Some(Role { size: Size::Share(share), ..self.new.clone() })
    }
}

/// How a run brings what main wants in the place of `old`, and by which plan.
#[must_use]
pub fn route(rollout: &Rollout, old: &Set) -> (Route, Plan) {
    if rollout.plan.traffic.is_none() || rollout.set.pods == old.pods {
        (Route::Plain, approval::at_once(&rollout.plan))
    } else {
        (Route::Phases, rollout.plan.clone())
    }
}

/// The way from stable to the new version.
#[must_use]
pub fn forward(plan: &Plan, route: Route, roles: &Roles) -> Vec<Step> {
    let mut steps = Vec::new();
    if route != Route::Plain {
        steps.extend(exposing(plan, route, roles));
    }
    let candidate = |share| if route == Route::Plain { None } else { roles.candidate(share) };
    let shifted = steps.last().map_or_else(Split::stable, |s| s.posture.split.clone());
    steps.push(Step {
        name: StepName::fixed("promote"),
        posture: roles.posture(roles.stable(&roles.new), candidate(Percent::ALL), shifted),
        before: if route == Route::Plain { plan.promotion.before.clone() } else { Gates::default() },
        soak: Span::ZERO,
        checks: Vec::new(),
        stage: Stage::Promoting,
    });
    let back_on_stable = Step {
        name: StepName::fixed("return"),
        posture: roles.posture(roles.stable(&roles.new), candidate(Percent::ALL), Split::stable()),
        before: Gates::default(),
        soak: drain(plan, route),
        checks: Vec::new(),
        stage: Stage::Finalising,
    };
    steps.extend(Some(back_on_stable).filter(|_| holds(Rule::RetireLast)));
    steps.push(Step {
        name: StepName::fixed("retire"),
        posture: roles.at_rest(roles.new.clone(), RoleName::Candidate),
        before: Gates::default(),
        soak: Span::ZERO,
        checks: Vec::new(),
        stage: Stage::Finalising,
    });
    steps.into_iter().map(|step| sized(plan, step)).collect()
}

/// A Service has no pods of its own, other objects have none, and a DaemonSet one for each node, so nothing about their number is recorded.
fn sized(plan: &Plan, mut step: Step) -> Step {
    match plan.target.kind {
        TargetKind::Deployment | TargetKind::StatefulSet => {}
        TargetKind::Service | TargetKind::DaemonSet | TargetKind::NodeConfig | TargetKind::None => {
            let Posture { stable, candidate, split: _, naming: _ } = &mut step.posture;
            [Some(stable), candidate.as_mut()].into_iter().flatten().for_each(|role| role.size = Size::Declared);
        }
    }
    step
}

/// *prepare*, the phases, *shift*.
fn exposing(plan: &Plan, route: Route, roles: &Roles) -> Vec<Step> {
    let phases = if route == Route::Rollback { &[][..] } else { &plan.phases[..] };
    let step = |name, share: Percent, split: &Split, before: Gates, stay: (Span, &[CheckName]), stage| Step {
        name,
        posture: roles.posture(roles.stable(&roles.old), roles.candidate(share), split.clone()),
        before,
        soak: stay.0,
        checks: stay.1.to_vec(),
        stage,
    };
    let mut split = Split::stable();
    // What is tried out at full size keeps it: no step takes pods away that have been ready for users.
    let previewed = phases.iter().any(|phase| phase.expose.preview == Some(Preview::FullSize));
    let size = |weight: Percent| if previewed { Percent::ALL } else { weight };
    let load = |expose: &Expose| expose.weight.max(expose.mirror).unwrap_or(Percent::ZERO);
    // The size of a replicas router is its exposure: *prepare* has none.
    let first = match plan.traffic.as_ref().map(|t| t.router.by()) {
        Some(By::Pods | By::Units) | None => Percent::ZERO,
        Some(By::Route | By::Selector) => size(phases.first().map_or(Percent::ZERO, |first| load(&first.expose))),
    };
    let gates = |name: &StepName| match route {
        Route::Rollback => Gates::default(),
        Route::Phases | Route::Plain => {
            Gates { job: approval::job(plan, name).cloned(), ..approval::gates(plan, name).clone() }
        }
    };
    let prepare = StepName::fixed("prepare");
    let before = gates(&prepare);
    let mut steps = vec![step(prepare, first, &split, before, (Span::ZERO, &[]), Stage::Progressing)];
    for phase in phases {
        split.open(&phase.expose);
        split.units = Units { count: split.units.count, ..roles.units.clone() };
        split.headers.extend(roles.holders(plan, &split));
        let before = gates(&phase.name);
        steps.push(step(
            phase.name.clone(),
            size(split.weight.max(split.mirror)),
            &split,
            before,
            (phase.soak, &phase.checks),
            Stage::Progressing,
        ));
    }
    let shift = StepName::fixed("shift");
    let before = gates(&shift);
    let promotion = &plan.promotion;
    let bake: (Span, &[CheckName]) =
        if route == Route::Rollback { (Span::ZERO, &[]) } else { (promotion.bake, &promotion.checks) };
    split.weight = Percent::ALL;
    split.units = Units { count: split.units.count, ..roles.units.clone() };
    let shift = step(shift, Percent::ALL, &split, before, bake, Stage::Promoting);
    steps.extend(Some(shift).filter(|_| holds(Rule::ShiftFirst)));
    steps
}

/// Back, after the split was seen at stable: drain, then remove the candidate.
#[must_use]
pub fn back(plan: &Plan, route: Route, roles: &Roles) -> [Step; 2] {
    let candidate = if route == Route::Plain { None } else { roles.candidate(Percent::ZERO) };
    [
        Step {
            name: StepName::fixed("return"),
            posture: roles.posture(roles.stable(&roles.old), candidate, Split::stable()),
            before: Gates::default(),
            soak: drain(plan, route),
            checks: Vec::new(),
            stage: Stage::Finalising,
        },
        Step {
            name: StepName::fixed("retire"),
            posture: roles.at_rest(roles.old.clone(), RoleName::Stable),
            before: Gates::default(),
            soak: Span::ZERO,
            checks: Vec::new(),
            stage: Stage::Finalising,
        },
    ]
    .map(|step| sized(plan, step))
}

fn drain(plan: &Plan, route: Route) -> Span {
    match (route, &plan.traffic) {
        (Route::Phases | Route::Rollback, Some(traffic)) => traffic.drain,
        (Route::Plain, _) | (_, None) => Span::ZERO,
    }
}

/// How long a step has to stay reached: its soak, after the route has settled (design §13.1). `skip` ends both, but never
/// a drain.
#[must_use]
pub fn soak(plan: &Plan, run: &Run, step: &Step) -> Span {
    if is_skipped(run, step) { Span::ZERO } else { Span::from_secs(step.soak.as_secs() + settle(plan, step)) }
}

/// Whether a person's decision ends the soak and the checks of a step.
#[must_use]
pub fn is_skipped(run: &Run, step: &Step) -> bool {
    (run.hurried || run.skipped.as_ref() == Some(&step.name)) && step.stage != Stage::Finalising
}

/// What is left of a step's soak, as far as anybody observed; none once it is over. A step that is not in force yet has all
/// of it before it.
///
/// # Errors
/// When it was over, as far as anybody observed since.
pub fn soaking(
    plan: &Plan,
    run: &Run,
    step: &Step,
    clock: &StepClock,
    now: Time,
    gaps: &[(Time, Time)],
) -> Result<Wait, Time> {
    let need = soak(plan, run, step);
    let exposed = clock.exposed.unwrap_or(now);
    let counted = watched(exposed, clock.lost.unwrap_or(now), gaps) - clock.away.delta();
    let left = need.delta() - counted.max(TimeDelta::zero());
    if left <= TimeDelta::zero() {
        return Err(now + left);
    }
    let what = match step.stage {
        Stage::Finalising => "requests in flight drain",
        Stage::Progressing | Stage::Promoting if step.posture.split.is_stable() => {
            "it stays ready, and exposed to nobody"
        }
        Stage::Progressing | Stage::Promoting => "it stays exposed",
    };
    let message = format!("{}: {what}, {} of {need}{}", step.name, whole(counted), not_counted(clock));
    Ok(Wait::new(Reason::Soak, message).since(exposed).until(now + left))
}

/// The time that is no part of a soak, as pods that have served were not ready.
fn not_counted(StepClock { unready, .. }: &StepClock) -> String {
    if unready.is_zero() { String::new() } else { format!(", without {unready} in which it was not ready") }
}

/// The clock of a step that is seen reached, if that is news: in force for the first time, or again. The time in between is
/// no part of the soak, nor is the one in which the route settles again. What of it is a pod's that is not ready ends by itself.
#[must_use]
pub fn reached(plan: &Plan, step: &Step, clock: &StepClock, now: Time, gaps: &[(Time, Time)]) -> Option<StepClock> {
    let Some(lost) = clock.lost else {
        return clock.exposed.is_none().then_some(StepClock { exposed: Some(now), ..*clock });
    };
    if clock.failing {
        return None;
    }
    // A part of a second counts as lost.
    let away = observed(lost, now, gaps).as_secs() + 1 + settle(plan, step);
    Some(StepClock { lost: None, away: Span::from_secs(clock.away.as_secs() + away), ..*clock })
}

/// The seconds that a route has to be in force before a step's clocks run.
#[must_use]
pub fn settle(plan: &Plan, step: &Step) -> u64 {
    match &plan.traffic {
        Some(traffic) if step.stage != Stage::Finalising && !matches!(step.name.as_str(), "prepare" | "promote") => {
            traffic.settle.as_secs()
        }
        Some(_) | None => 0,
    }
}

/// The whole seconds since `from` in which somebody observed: gaps do not count (requirement X-14).
#[must_use]
pub fn observed(from: Time, now: Time, gaps: &[(Time, Time)]) -> Span {
    whole(watched(from, now, gaps))
}

/// The time since `from` in which somebody observed, to the millisecond.
fn watched(from: Time, now: Time, gaps: &[(Time, Time)]) -> TimeDelta {
    let gaps = if holds(Rule::Gaps) { gaps } else { &[] };
    let lost: TimeDelta =
        gaps.iter().map(|(start, end)| (*end.min(&now) - *start.max(&from)).max(TimeDelta::zero())).sum();
    now - from - lost
}

/// A time's whole seconds, none of one that is negative.
fn whole(time: TimeDelta) -> Span {
    Span::from_secs(u64::try_from(time.num_seconds()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::observed;
    use crate::manifest::duration::Span;
    use crate::record::state::Time;

    #[test]
    fn c_20_a_part_of_a_second_is_no_second() {
        let at = |millis| Time::from_timestamp_millis(millis).unwrap();
        assert_eq!(observed(at(900), at(2_800), &[]), Span::from_secs(1));
        assert_eq!(observed(at(900), at(2_900), &[]), Span::from_secs(2));
        assert_eq!(observed(at(900), at(3_900), &[(at(1_000), at(1_001))]), Span::from_secs(2));
        assert_eq!(observed(at(900), at(100), &[]), Span::ZERO);
    }
}
