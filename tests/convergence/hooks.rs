//! What hooks are told: nothing but what Git has, and the end of each run.

use std::collections::BTreeSet;
use tidegate::manifest::ids::RunId;
use tidegate::record::state::{Phase, RolloutState, Serving};

/// What there was to tell of a rollout, and what was told.
#[derive(Default)]
pub(crate) struct Hooks {
    recorded: BTreeSet<String>,
    /// Of the last run.
    told: BTreeSet<String>,
    run: Option<RunId>,
    /// The end of the last run.
    ended: Option<String>,
}

impl Hooks {
    /// Takes note of a record.
    pub(crate) fn recorded(&mut self, state: &RolloutState) {
        let line = |what: &str| format!("chat: {what} of {}", state.metadata.name);
        if let Some(run) = state.run.as_ref().filter(|run| self.run.as_ref() != Some(&run.id)) {
            self.run = Some(run.id.clone());
            self.told.clear();
        }
        if let Some(past) = state.history.last() {
            let ended = format!("{}, {:?}", line("Ended promotion"), past.outcome);
            self.recorded.insert(ended.clone());
            self.ended = Some(ended);
        }
        if let Phase::Reverting { .. } = state.phase {
            self.recorded.insert(line("WentBack revert"));
        } else if let Phase::Failed { standing: Serving::OnCandidate, .. } = state.phase {
            self.recorded.insert(line("OnCandidate promote"));
        } else if let Some(position) = state.phase.position() {
            let event = if position.step.as_str() == "prepare" { "Started" } else { "Entered" };
            self.recorded.insert(line(&format!("{event} {}", position.step)));
        }
    }

    /// Takes note of what a hook was told; whether Git has it.
    pub(crate) fn tell(&mut self, what: &str) -> bool {
        self.told.insert(what.to_owned());
        self.recorded.contains(what)
    }

    /// The end of a run that nobody was told of.
    pub(crate) fn untold(&self) -> Option<&String> {
        self.ended.as_ref().filter(|ended| !self.told.contains(*ended))
    }
}
