//! The words of Events and logs about what was recorded.

use crate::record::state::{Phase, RolloutState};
use crate::record::text::place;

/// A transition that people are told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// One word: the phase that was entered.
    pub reason: &'static str,
    /// Whether somebody should look.
    pub warning: bool,
    /// What happened, in a sentence.
    pub message: String,
}

/// What to tell of a change of the record, if it is one of the phase or of the step.
#[must_use]
pub fn told(before: Option<&RolloutState>, after: &RolloutState, what: &str) -> Option<Told> {
    let (then, now) = (before.map(|state| place(&state.phase)), place(&after.phase));
    if then.as_ref() == Some(&now) {
        return None;
    }
    let warning = matches!(after.phase, Phase::Reverting { .. } | Phase::Failed { .. });
    let run = after.run.as_ref().map(|run| format!(" (run {})", run.id)).unwrap_or_default();
    let from = then.map(|then| format!("{then} → ")).unwrap_or_default();
    Some(Told { reason: after.phase.name(), warning, message: format!("{from}{now}{run}: {what}") })
}
