//! The words of Events and logs about what was recorded.

use crate::record::state::{Phase, RolloutState};
use crate::record::text::place;

/// A transition that people are told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    /// One word: the phase that was entered.
    pub reason: &'static str,
    /// Whether somebody should look.
    pub warning: bool,
    /// What happened, in a sentence.
    pub message: String,
}

/// What to tell of a change of the record, if it is one of the phase or of the step.
#[must_use]
pub fn transition(before: Option<&RolloutState>, after: &RolloutState, what: &str) -> Option<Transition> {
    let (then, now) = (before.map(|state| place(&state.phase)), place(&after.phase));
    if then.as_ref() == Some(&now) {
        return None;
    }
    let warning = matches!(after.phase, Phase::Reverting { .. } | Phase::Failed { .. });
    let run = after.run.as_ref().map(|run| format!(" (run {})", run.id)).unwrap_or_default();
    let from = then.map(|then| format!("{then} → ")).unwrap_or_default();
    Some(Transition { reason: after.phase.name(), warning, message: format!("{from}{now}{run}: {what}") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fixture::{open, position, steady};

    #[test]
    fn x_17_a_transition_is_told_with_its_run_and_reason_and_nothing_else_is() {
        let (before, mut after) = (open(), open());
        assert_eq!(transition(Some(&before), &after, "a wobble"), None);
        after.phase = Phase::Progressing(position("half"));
        let message = "tenth → half (run 7-07070707): weight 50".to_owned();
        let wanted = Transition { reason: "Progressing", warning: false, message };
        assert_eq!(transition(Some(&before), &after, "weight 50"), Some(wanted));
        let first = transition(None, &steady(), "initialized").unwrap();
        assert_eq!((first.reason, first.message.as_str()), ("Steady", "steady (succeeded): initialized"));
        let then = crate::record::state::Then::Failed;
        after.phase = Phase::Reverting { position: position("split"), why: "not ready".to_owned(), then };
        assert!(transition(Some(&before), &after, "goes back").is_some_and(|told| told.warning));
    }
}
