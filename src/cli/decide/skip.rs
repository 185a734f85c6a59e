//! What `skip` is about: the soak that a run stands in, or on the way back the wait for stable.

use super::check::{Asks, Found};
use crate::manifest::decision::{DecisionAction, Through};
use crate::plan::procedure::Stage;
use crate::plan::report::Reason;
use crate::record::state::Phase;

impl Asks<'_> {
    pub(super) fn skip(&self, through: Through) -> Found {
        let run = self.open("there is nothing to skip")?;
        let is_down = self.state.conditions.iter().any(|condition| condition.reason == Reason::StableDown.as_str());
        if let Phase::Reverting { position, .. } = &self.state.phase
            && is_down
            && position.step.as_str() == "split"
        {
            let next =
                "All requests are led to stable at once, ready or not; then what is on main can follow.".to_owned();
            let action = DecisionAction::Skip { step: position.step.clone(), through: Through::Step };
            return Ok((run.id.clone(), action, next));
        }
        let plan = self.plan(run)?;
        let steps = crate::report::view::steps(self.state, Some(plan));
        let (Phase::Progressing(position) | Phase::Promoting(position)) = &self.state.phase else {
            return Err(format!("there is nothing to skip: {}", self.stands()));
        };
        let step = steps.iter().find(|step| step.name == position.step && step.stage != Stage::Finalising);
        let soak = step.map_or(0, |step| step.soak.as_secs());
        if soak == 0 && through == Through::Step {
            return Err(format!("there is nothing to skip: {} has no soak", position.step));
        }
        if run.hurried {
            return Err(format!("all soaks of run {} are skipped already", run.id));
        }
        if through == Through::Promotion {
            let next = "All its soaks, its bake and its checks end at once; readiness and gates still hold.".to_owned();
            return Ok((run.id.clone(), DecisionAction::Skip { step: position.step.clone(), through }, next));
        }
        if run.skipped.as_ref() == Some(&position.step) {
            return Err(format!("the soak of {} is skipped already", position.step));
        }
        let next =
            format!("The soak of {} ends at once; readiness and the gates of the next step still hold.", position.step);
        Ok((run.id.clone(), DecisionAction::Skip { step: position.step.clone(), through }, next))
    }
}
