//! What came of a step, and what follows from it. Pure.

use super::{AgentState, AgentStep, Change, Doing, InForce, NodeDisk, NodeVerdict, Stage, StepOutcome};
use crate::report::{NodeReport, Progress};
use std::collections::{BTreeMap, BTreeSet};

/// How often going back is tried before it is given up (N-31).
const TRIES: u8 = 3;

impl AgentState {
    /// Takes note of what came of a step. Outcomes that no such step has are taken for nothing.
    pub fn learn(&mut self, step: &AgentStep, outcome: StepOutcome) {
        match (step, outcome) {
            (AgentStep::Keep(disk), outcome) => self.kept_or_not(disk.clone(), outcome),
            (AgentStep::Restore { accept, .. }, outcome) => self.restored(accept, outcome),
            (AgentStep::Stamp(report) | AgentStep::Report(report), outcome) => self.told(report, outcome),
            (AgentStep::Read, outcome) => self.seen(outcome),
            (_, StepOutcome::Away) => {
                self.vain.api = true;
                self.stage = Stage::Rest;
            }
            (_, StepOutcome::Refused(why)) => self.refuse(why),
            (_, outcome) => self.went_on(outcome),
        }
    }

    /// The steps of a change, in their order.
    fn went_on(&mut self, outcome: StepOutcome) {
        let stage = std::mem::replace(&mut self.stage, Stage::Rest);
        self.stage = match (stage, outcome) {
            (Stage::Rest, StepOutcome::Probed(all)) => Stage::Probed(passing(&all)),
            (Stage::Probed(passed), StepOutcome::Done) => Stage::Fetched(passed),
            (Stage::Fetched(passed), StepOutcome::Checked(before, expected)) => self.checked(passed, before, expected),
            // Nothing was begun that would have to be taken back.
            (Stage::Fetched(_), StepOutcome::Failed(why)) => self.condemned_unbegun(&why),
            (Stage::Known(change), StepOutcome::Shown(shown)) => self.tried(change, shown),
            (Stage::Tried(change, shown), StepOutcome::Probed(all)) => match failing(&all) {
                None => Stage::Passed(change, shown),
                Some(why) => Stage::Failing(change.doing, Some(format!("since the change {why}")), 0),
            },
            (Stage::Passed(change, tried), StepOutcome::Shown(shown)) if tried == shown => {
                Stage::Committed(change, shown)
            }
            (Stage::Passed(change, _), StepOutcome::Shown(_)) => {
                Stage::Failing(change.doing, Some("commit has changed what is in force".to_owned()), 0)
            }
            (Stage::Known(change) | Stage::Passed(change, _), StepOutcome::Failed(why)) => {
                Stage::Failing(change.doing, Some(why), 0)
            }
            (Stage::Back(doing, cause), StepOutcome::Probed(all)) => {
                let after = failing(&all).map(|why| format!("; gone back, and still {why}")).unwrap_or_default();
                let cause = cause.unwrap_or_else(|| "it was interrupted twice".to_owned());
                self.judge(doing, Progress::Failed, cause + &after)
            }
            (other, _) => other,
        };
    }

    fn checked(&self, passed: BTreeSet<String>, before: InForce, expected: Option<InForce>) -> Stage {
        let Some(node) = &self.node else { return Stage::Rest };
        let again = self.disk.interrupted.as_ref() == Some(&node.ask);
        Stage::Checked(Change { doing: Doing { ask: node.ask.clone(), before, passed, again }, expected })
    }

    /// What the driver did is judged by what is in force, not by how it ended.
    fn tried(&self, change: Change, shown: InForce) -> Stage {
        let was_good =
            self.disk.good.as_ref().is_some_and(|good| good.digest == change.doing.ask.digest && good.shown == shown);
        let why = match &change.expected {
            Some(expected) if *expected == shown => None,
            Some(_) => Some("try ended well, and what is in force is not what check has said"),
            None if was_good || shown != change.doing.before => None,
            None => Some("try ended well, and has changed nothing that is in force"),
        };
        match why {
            None => Stage::Tried(change, shown),
            Some(why) => Stage::Failing(change.doing, Some(why.to_owned()), 0),
        }
    }

    fn condemned_unbegun(&mut self, why: &str) -> Stage {
        if let Some(node) = &self.node {
            self.disk.condemn(NodeVerdict { ask: node.ask.clone(), state: Progress::Failed, message: why.to_owned() });
            self.saved = false;
        }
        Stage::Rest
    }

    fn refuse(&mut self, why: String) {
        self.refused = self.node.as_ref().map(|node| (node.ask.clone(), why));
        self.vain.begin = true;
        self.stage = Stage::Rest;
    }

    fn told(&mut self, report: &NodeReport, outcome: StepOutcome) {
        let stage = std::mem::replace(&mut self.stage, Stage::Rest);
        match outcome {
            StepOutcome::Heard(node) => {
                // Where something is made of it on the way, it was not heard; it is not said all the time.
                let is_said = node.said.as_ref().is_some_and(|said| said.says_as(report));
                self.vain.api = !is_said;
                if let Stage::Checked(change) = stage
                    && change.doing.ask == node.ask
                    && is_said
                {
                    self.stage = Stage::Stamped(change);
                }
                self.node = Some(node);
            }
            // It is looked at again, and begun anew.
            StepOutcome::Stale => self.node = None,
            StepOutcome::Done
            | StepOutcome::Shown(_)
            | StepOutcome::Checked(..)
            | StepOutcome::Probed(_)
            | StepOutcome::Away
            | StepOutcome::Failed(_)
            | StepOutcome::Refused(_) => self.vain.api = true,
        }
    }

    /// Last-good was looked at: it is in force, or something else is.
    fn seen(&mut self, outcome: StepOutcome) {
        let Some(good) = &self.disk.good else { return };
        if outcome != StepOutcome::Shown(good.shown.clone()) {
            self.drifted = true;
            return;
        }
        self.in_force = Some(good.digest.clone());
        // A person has mended what could not be taken back.
        if self.disk.doing.take().is_some() {
            (self.gave_up, self.saved) = (false, false);
        }
    }

    fn kept_or_not(&mut self, disk: NodeDisk, outcome: StepOutcome) {
        let is_done = outcome == StepOutcome::Done;
        let why = if let StepOutcome::Failed(why) | StepOutcome::Refused(why) = outcome { why } else { String::new() };
        match (std::mem::replace(&mut self.stage, Stage::Rest), is_done) {
            (Stage::Stamped(change), true) => {
                (self.disk, self.gave_up, self.in_force, self.refused) = (disk, false, None, None);
                self.stage = Stage::Known(change);
            }
            (Stage::Stamped(_), false) => self.refuse(format!("DiskUnwritable: {why}")),
            (Stage::Committed(..), true) => {
                self.in_force = disk.good.as_ref().map(|good| good.digest.clone());
                (self.disk, self.drifted) = (disk, false);
            }
            (Stage::Committed(change, _), false) => {
                self.stage = Stage::Failing(change.doing, Some(format!("last-good cannot be kept: {why}")), 0);
            }
            (other, _) => {
                self.stage = other;
                (self.saved, self.vain.disk) = (is_done, !is_done);
            }
        }
    }

    fn restored(&mut self, accept: &BTreeSet<InForce>, outcome: StepOutcome) {
        let stage = std::mem::replace(&mut self.stage, Stage::Rest);
        let (doing, cause, tries) = if let Stage::Failing(doing, cause, tries) = stage {
            (doing, cause, tries)
        } else if let Some(doing) = self.disk.doing.clone() {
            // Whoever is started again tries once more to go back from what was given up.
            let cause = self.disk.verdict(&doing.ask).map(|given_up| given_up.message.clone());
            (doing, cause, 0)
        } else {
            return;
        };
        let why = match outcome {
            StepOutcome::Shown(shown) if accept.contains(&shown) => return self.went_back(doing, cause, &shown),
            StepOutcome::Failed(why) => why,
            StepOutcome::Shown(_)
            | StepOutcome::Done
            | StepOutcome::Checked(..)
            | StepOutcome::Probed(_)
            | StepOutcome::Heard(_)
            | StepOutcome::Stale
            | StepOutcome::Away
            | StepOutcome::Refused(_) => "restore ended well, and what was in force before is not".to_owned(),
        };
        self.stage = if tries + 1 < TRIES {
            Stage::Failing(doing, cause, tries + 1)
        } else {
            self.gave_up = true;
            let message = match cause {
                // Given up before: nothing is new.
                Some(before) if self.disk.verdict(&doing.ask).is_some() => before,
                Some(cause) => format!("{why}; it had to go back because {cause}"),
                None => format!("{why}; it had to go back because it was interrupted"),
            };
            self.judge(doing, Progress::RestoreFailed, message)
        };
    }

    fn went_back(&mut self, doing: Doing, cause: Option<String>, shown: &InForce) {
        let good = self.disk.good.as_ref().filter(|good| good.shown == *shown);
        self.in_force = good.map(|good| good.digest.clone());
        if cause.is_some() || doing.again {
            self.stage = Stage::Back(doing, cause);
            return;
        }
        // Its probes are judged when it is tried once more.
        (self.disk.interrupted, self.disk.doing, self.saved) = (Some(doing.ask), None, false);
    }

    fn judge(&mut self, doing: Doing, state: Progress, message: String) -> Stage {
        self.disk.condemn(NodeVerdict { ask: doing.ask.clone(), state, message });
        // What could not be taken back stays open: the next start tries again.
        self.disk.doing = (state == Progress::RestoreFailed).then_some(doing);
        self.saved = false;
        Stage::Rest
    }
}

fn passing(all: &BTreeMap<String, Option<String>>) -> BTreeSet<String> {
    all.iter().filter(|(_, why)| why.is_none()).map(|(name, _)| name.clone()).collect()
}

fn failing(all: &BTreeMap<String, Option<String>>) -> Option<String> {
    let failed = all.iter().filter_map(|(name, why)| Some(format!("{name} fails: {}", why.as_ref()?)));
    let failed: Vec<String> = failed.collect();
    (!failed.is_empty()).then(|| failed.join(", "))
}
