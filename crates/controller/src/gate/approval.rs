//! Which gates stand before which step, and how far an approval reaches.

use crate::manifest::desired::{Gates, Plan};
use crate::manifest::files::RepoPath;
use crate::manifest::ids::StepName;

/// The gates of a step without any.
static NONE: Gates = Gates { approval: None, window: None, webhook: None, job: None };

/// A step's place among those that have gates: the phases in their order, then the promotion. *prepare* stands with the
/// first of them, *shift* with the promotion.
fn place(plan: &Plan, step: &StepName) -> Option<usize> {
    match step.as_str() {
        "prepare" => Some(0),
        "promotion" | "shift" => Some(plan.phases.len()),
        _ => plan.phases.iter().position(|phase| phase.name == *step),
    }
}

/// The name under which an approval for entering `step` is asked: *prepare* is the way to the first phase, *shift* to
/// the promotion. None for a step that no plan puts gates before.
#[must_use]
pub fn asked_as(plan: &Plan, step: &StepName) -> Option<StepName> {
    let place = place(plan, step)?;
    Some(plan.phases.get(place).map_or_else(|| StepName::fixed("promotion"), |phase| phase.name.clone()))
}

/// The gates that are judged on entry to `step`.
///
/// *prepare* takes over the gates of the first phase (of the promotion if there is no phase), since creating candidate
/// pods is an advance already; so the first phase itself has none left. Steps of a procedure have none.
#[must_use]
pub fn gates<'a>(plan: &'a Plan, step: &StepName) -> &'a Gates {
    match place(plan, step) {
        Some(0) if step.as_str() != "prepare" && !plan.phases.is_empty() => &NONE,
        Some(place) => plan.phases.get(place).map_or(&plan.promotion.before, |phase| &phase.before),
        None => &NONE,
    }
}

/// The Job that stands before `step`.
///
/// It tries out what *prepare* makes, so that it stands before the first phase itself.
#[must_use]
pub fn job<'a>(plan: &'a Plan, step: &StepName) -> Option<&'a RepoPath> {
    let place = place(plan, step).filter(|_| step.as_str() != "prepare")?;
    plan.phases.get(place).map_or(&plan.promotion.before, |phase| &phase.before).job.as_ref()
}

/// The plan of a run that tries nothing out, as its pods are those of before: users meet it with the promotion, so that what any step waits
/// for stands before that. A Job tries out a candidate, and there is none.
#[must_use]
pub fn at_once(plan: &Plan) -> Plan {
    let mut at_once = Plan { phases: Vec::new(), ..plan.clone() };
    let before = &mut at_once.promotion.before;
    for Gates { approval, window, webhook, job: _ } in plan.phases.iter().map(|phase| &phase.before) {
        before.approval = before.approval.or(*approval);
        before.window = before.window.take().or_else(|| window.clone());
        before.webhook = before.webhook.take().or_else(|| webhook.clone());
    }
    at_once
}

/// Whether any gate of the plan waits for an approval.
#[must_use]
pub fn is_asked(plan: &Plan) -> bool {
    steps(plan) > 0
}

/// How many steps, the promotion among them, wait for an approval.
#[must_use]
pub fn steps(plan: &Plan) -> usize {
    let gates = plan.phases.iter().map(|phase| &phase.before).chain([&plan.promotion.before]);
    gates.filter(|gates| gates.approval.is_some()).count()
}

/// The gates that wait for an approval and are not behind a run that stands on this step; none before its first.
#[must_use]
pub fn ahead(plan: &Plan, at: Option<&StepName>) -> Vec<StepName> {
    // From *promote* on, which has no gates, all are behind it.
    let here = at.map(|step| place(plan, step).unwrap_or(plan.phases.len()));
    let phases = plan.phases.iter().map(|phase| (phase.name.clone(), &phase.before));
    let gates = phases.chain([(StepName::fixed("promotion"), &plan.promotion.before)]).enumerate();
    let open = gates.filter(|(place, (_, before))| before.approval.is_some() && here.is_none_or(|here| *place > here));
    open.map(|(_, (name, _))| name).collect()
}

/// Whether one of the recorded approvals reaches `step`: each holds up to and with the step that it names.
#[must_use]
pub fn covers(plan: &Plan, approved: &[StepName], step: &StepName) -> bool {
    let Some(wanted) = place(plan, step) else { return false };
    approved.iter().filter_map(|through| place(plan, through)).any(|reach| wanted <= reach)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fixture::{plan, step};

    #[test]
    fn prepare_takes_over_the_gates_of_the_first_phase() {
        let plan = plan();
        assert_eq!(gates(&plan, &step("prepare")), &plan.phases[0].before);
        assert!(!plan.phases[0].before.is_empty());
        assert!(gates(&plan, &step("testers")).is_empty());
        assert_eq!(gates(&plan, &step("half")), &plan.phases[1].before);
        assert_eq!(gates(&plan, &step("promotion")), &plan.promotion.before);
    }

    #[test]
    fn c_15_nothing_is_asked_once_the_promotion_has_begun() {
        for free in ["promote", "return", "retire", "split", "nothing"] {
            assert!(gates(&plan(), &step(free)).is_empty(), "{free}");
        }
    }

    #[test]
    fn a_plan_without_phases_has_the_promotion_gate_first() {
        let plan = Plan { phases: Vec::new(), ..plan() };
        assert_eq!(gates(&plan, &step("prepare")), &plan.promotion.before);
        assert_eq!(gates(&plan, &step("promotion")), &plan.promotion.before);
        assert_eq!(asked_as(&plan, &step("prepare")), Some(step("promotion")));
    }

    #[test]
    fn what_tries_nothing_out_waits_for_what_any_step_waits_for() {
        let mut plan = plan();
        plan.promotion.before = Gates::default();
        let at_once = at_once(&plan);
        let Gates { approval, window, webhook, job } = &at_once.promotion.before;
        assert_eq!(
            (approval, window.as_ref()),
            (&plan.phases[0].before.approval, plan.phases[1].before.window.as_ref())
        );
        assert!(
            approval.is_some() && window.is_some() && webhook.is_none() && job.is_none() && at_once.phases.is_empty()
        );
        assert_eq!(asked_as(&at_once, &step("shift")), Some(step("promotion")));
    }

    #[test]
    fn a_job_stands_before_the_first_phase_itself() {
        let mut plan = plan();
        plan.phases[0].before.job = Some("a.yaml".parse().unwrap());
        plan.promotion.before.job = Some("b.yaml".parse().unwrap());
        let named = |plan: &Plan, name: &str| job(plan, &step(name)).map(ToString::to_string);
        for (name, file) in [("prepare", None), ("testers", Some("a.yaml")), ("half", None), ("shift", Some("b.yaml"))]
        {
            assert_eq!(named(&plan, name).as_deref(), file, "{name}");
        }
        assert_eq!(named(&plan, "retire"), None);
        plan.phases.clear();
        assert_eq!((named(&plan, "prepare"), named(&plan, "shift").as_deref()), (None, Some("b.yaml")));
    }

    #[test]
    fn an_approval_reaches_up_to_and_with_its_step() {
        let plan = plan();
        let half = [step("half")];
        for (name, reached) in
            [("prepare", true), ("testers", true), ("half", true), ("promotion", false), ("shift", false)]
        {
            assert_eq!(covers(&plan, &half, &step(name)), reached, "{name}");
        }
        assert!(covers(&plan, &[step("promotion")], &step("shift")));
        assert!(!covers(&plan, &[step("gone")], &step("testers")) && !covers(&plan, &[], &step("testers")));
        assert_eq!(asked_as(&plan, &step("prepare")), Some(step("testers")));
        assert_eq!(asked_as(&plan, &step("shift")), Some(step("promotion")));
        assert_eq!(asked_as(&plan, &step("retire")), None);
    }
}
