//! What the policy asks of every plan of a tenant: floors that no rollout goes below.

use super::approval;
use crate::manifest::desired::{PhasePlan, Plan};
use crate::manifest::ids::{CheckName, Percent};
use crate::manifest::raw::Floors;

/// What of a plan is below the floors, each in words; empty if nothing is.
#[must_use]
pub fn below(plan: &Plan, floors: &Floors) -> Vec<String> {
    let Floors { approved_steps, first_exposure, checks, soak } = floors;
    let mut found = Vec::new();
    let gated = approval::steps(plan);
    if gated < *approved_steps as usize {
        found.push(format!(
            "{gated} of its steps wait for an approval, and the policy asks for {approved_steps}: add \
             before: {{approval: pullRequest}} to phases or to promotion"
        ));
    }
    if let Some(most) = first_exposure {
        let first = plan.phases.iter().find_map(|phase| Some((phase.name.as_str(), phase.expose.weight?)));
        let (name, weight) = first.unwrap_or(("promotion", Percent::ALL));
        if weight > *most {
            found.push(format!("{name} is the first to get a share of all requests, {weight} %, and the policy allows {most} % at first"));
        }
    }
    let reached: Vec<&PhasePlan> = plan.phases.iter().filter(|phase| reaches_users(phase)).collect();
    if reached.is_empty() && !(checks.is_empty() && soak.is_none()) {
        found.push("it has no phase that users reach, in which the policy's checks and soak could be kept".to_owned());
    }
    for phase in reached {
        let missing: Vec<&str> =
            checks.iter().filter(|name| !phase.checks.contains(name)).map(CheckName::as_str).collect();
        if !missing.is_empty() {
            found.push(format!(
                "phase {} lacks the checks {}, for which the policy asks",
                phase.name,
                missing.join(", ")
            ));
        }
        if let Some(least) = soak.filter(|least| phase.soak < *least) {
            found.push(format!("phase {} soaks {}, and the policy asks for {least}", phase.name, phase.soak));
        }
    }
    found
}

/// Whether the answers of the new version reach anybody.
fn reaches_users(phase: &PhasePlan) -> bool {
    !phase.expose.headers.is_empty() || phase.expose.weight.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fixture::plan;

    fn floors() -> Floors {
        let asked = serde_json::json!({"approvedSteps": 3, "firstExposure": 5, "checks": ["error-rate"], "soak": "1h"});
        serde_json::from_value(asked).unwrap()
    }

    #[test]
    fn nothing_is_below_no_floors() {
        assert_eq!(below(&plan(), &Floors::default()), Vec::<String>::new());
        assert_eq!(below(&Plan { phases: Vec::new(), ..plan() }, &Floors::default()), Vec::<String>::new());
    }

    #[test]
    fn all_that_is_below_is_told_at_once_with_what_was_found_and_expected() {
        insta::assert_snapshot!(below(&plan(), &floors()).join("\n"));
        let without = Plan { phases: Vec::new(), ..plan() };
        insta::assert_snapshot!("without_phases", below(&without, &floors()).join("\n"));
    }
}
