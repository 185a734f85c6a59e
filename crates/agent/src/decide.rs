//! What the agent does next. Pure: what the disk knows and what this process has seen become one [`AgentStep`]; what came of it is learnt.
//!
//! *Guarantees*, whatever happens between two steps:
//! - nothing is tried that the disk does not know, and nothing before the API server has taken the stamp at the version that was read;
//! - whoever finds an open change on the disk that is not its own goes back before anything else;
//! - what failed goes back first, and is told afterwards, until it is heard (N-19);
//! - what was found bad is not touched again for the same content and attempt (N-21);
//! - only what has passed its probes becomes last-good (N-20).

mod learn;
#[cfg(test)]
mod tests;

use crate::content::ContentDigest;
use crate::report::{NodeAsk, NodeReport, NodeSeen, Progress};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use tidegate_controller::manifest::time::Time;

/// The digest of what the driver's `read` printed: what is in force, as something that can be compared.
pub type InForce = String;

/// What is known beyond this process: one file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeDisk {
    /// The change that is open, if any: it may be in force, in whole or in part.
    pub doing: Option<Doing>,
    /// What was interrupted once, and may be tried once more.
    pub interrupted: Option<NodeAsk>,
    /// What was found bad, the newest last.
    pub bad: Vec<NodeVerdict>,
    /// What passed its probes last.
    pub good: Option<Good>,
}

/// An open change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Doing {
    /// What was asked.
    pub ask: NodeAsk,
    /// What was in force before.
    pub before: InForce,
    /// The probes that passed before: only these can condemn it.
    pub passed: BTreeSet<String>,
    /// Whether it was interrupted once already.
    pub again: bool,
}

/// The last content that passed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Good {
    /// Which.
    pub digest: ContentDigest,
    /// What is in force with it.
    pub shown: InForce,
}

/// What was found bad.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeVerdict {
    /// What was asked.
    pub ask: NodeAsk,
    /// `Failed`, or `RestoreFailed`.
    pub state: Progress,
    /// Why.
    pub message: String,
}

/// How many verdicts are remembered. Who asks for the same again after so many others is answered by what the status says.
const VERDICTS: usize = 32;

impl NodeDisk {
    fn verdict(&self, ask: &NodeAsk) -> Option<&NodeVerdict> {
        self.bad.iter().find(|verdict| verdict.ask == *ask)
    }

    /// Takes note that something is bad.
    fn condemn(&mut self, verdict: NodeVerdict) {
        self.bad.retain(|other| other.ask != verdict.ask);
        self.bad.push(verdict);
        let surplus = self.bad.len().saturating_sub(VERDICTS);
        self.bad.drain(..surplus);
        self.interrupted = None;
    }
}

/// What is done next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentStep {
    /// Put last-good into force again, or what was there before there was one; then say what is in force, which has to be one of `accept`.
    Restore {
        /// Last-good.
        good: Option<ContentDigest>,
        /// What may be in force afterwards.
        accept: BTreeSet<InForce>,
    },
    /// Probe: all once, or these until they pass or their time is over.
    Probe(Option<BTreeSet<String>>),
    /// Have this content on the disk.
    Fetch {
        /// The ConfigMap.
        content: String,
        /// Its digest.
        digest: ContentDigest,
    },
    /// Ask the driver whether it would do, and what is in force now.
    Check(ContentDigest),
    /// Tell the API server, at the version that was read, that it starts.
    Stamp(NodeReport),
    /// Write this to the disk.
    Keep(NodeDisk),
    /// Put it into force, so that it is gone after a reboot where the driver can do that; then say what is in force.
    Try(ContentDigest),
    /// Let it stay; then say what is in force.
    Commit(ContentDigest),
    /// Say what is in force.
    Read,
    /// Tell the API server how it went.
    Report(NodeReport),
    /// Nothing, until something changes.
    Rest,
}

/// What came of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepOutcome {
    /// It is done.
    Done,
    /// It is done, and this is in force.
    Shown(InForce),
    /// It would do: what is in force before it, and what will be, if the driver says so.
    Checked(InForce, Option<InForce>),
    /// Each probe, with why it failed if it did.
    Probed(BTreeMap<String, Option<String>>),
    /// The API server has taken it.
    Heard(NodeSeen),
    /// The object was changed by somebody else meanwhile, or is gone: told by the code of the answer (N-23).
    Stale,
    /// The API server was not reached, or does not take it now.
    Away,
    /// It did not work, and that speaks against the content.
    Failed(String),
    /// It did not work, and that speaks against nobody: nothing was begun.
    Refused(String),
}

/// A change on its way, with what only this process knows of it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Change {
    doing: Doing,
    /// What will be in force, if the driver has said so.
    expected: Option<InForce>,
}

/// Where this process is. Whatever it is, the disk knows of a change from [`Stage::Known`] on.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Stage {
    Rest,
    Probed(BTreeSet<String>),
    Fetched(BTreeSet<String>),
    Checked(Change),
    Stamped(Change),
    Known(Change),
    Tried(Change, InForce),
    Passed(Change, InForce),
    Committed(Change, InForce),
    /// It has to be taken back: why, and how often that was tried. `None`: it was interrupted.
    Failing(Doing, Option<String>, u8),
    /// It was taken back.
    Back(Doing, Option<String>),
}

/// What is not tried again before a pause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Vain {
    disk: bool,
    api: bool,
    begin: bool,
}

/// What the agent knows, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentState {
    /// What the disk knows, or will know as soon as it can be written.
    disk: NodeDisk,
    saved: bool,
    node: Option<NodeSeen>,
    stage: Stage,
    /// The last content, as seen to be in force by this process.
    in_force: Option<ContentDigest>,
    /// Last-good is not what is in force: a hand has changed something.
    drifted: bool,
    /// Going back was given up by this process.
    gave_up: bool,
    refused: Option<(NodeAsk, String)>,
    vain: Vain,
    /// What people should know of the start.
    note: String,
}

impl AgentState {
    /// A process that has just started, and what its disk knows. `note` is told with what is applied next.
    #[must_use]
    pub fn new(disk: NodeDisk, note: String) -> Self {
        let (stage, vain) = (Stage::Rest, Vain::default());
        let (saved, drifted, gave_up) = (true, false, false);
        Self { disk, saved, node: None, stage, in_force: None, drifted, gave_up, refused: None, vain, note }
    }

    /// What the disk knows.
    #[must_use]
    pub fn disk(&self) -> &NodeDisk {
        &self.disk
    }

    /// Whether a pause is due, after which [`Self::retry`] lets what was in vain be tried again.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.vain != Vain::default()
    }

    /// Whether the process may end without leaving a change open.
    #[must_use]
    pub fn may_end(&self) -> bool {
        self.stage == Stage::Rest && (self.disk.doing.is_none() || self.gave_up)
    }

    /// Whether what is asked is in force, and the controller knows.
    #[must_use]
    pub fn is_applied(&self) -> bool {
        let said = self.node.as_ref().and_then(|node| node.said.as_ref().filter(|said| said.is_of(node)));
        said.is_some_and(|said| said.state == Progress::Applied)
    }

    /// The version of the NodeConfig that was read last.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        self.node.as_ref().map(|node| node.version.as_str())
    }

    /// A pause is over.
    pub fn retry(&mut self) {
        self.vain = Vain::default();
    }

    /// The NodeConfig is now so, or there is none.
    pub fn look(&mut self, node: Option<NodeSeen>) {
        let of = |node: &Option<NodeSeen>| node.as_ref().map(|node| (node.ask.clone(), node.generation));
        if of(&node) != of(&self.node) {
            (self.refused, self.vain.begin) = (None, false);
            // What the disk knows of is brought to its end; what it does not, is begun anew.
            if let Stage::Probed(_) | Stage::Fetched(_) | Stage::Checked(_) = self.stage {
                self.stage = Stage::Rest;
            }
        }
        self.node = node;
    }

    /// What is done next.
    #[must_use]
    pub fn decide(&self, now: Time) -> AgentStep {
        match &self.stage {
            Stage::Rest => self.at_rest(now),
            Stage::Failing(doing, ..) => self.restore(doing),
            Stage::Back(doing, _) => AgentStep::Probe(Some(doing.passed.clone())),
            Stage::Probed(_) => {
                self.of_node(|node| AgentStep::Fetch { content: node.content.clone(), digest: node.ask.digest.clone() })
            }
            Stage::Fetched(_) => self.of_node(|node| AgentStep::Check(node.ask.digest.clone())),
            Stage::Checked(_) => self.of_node(|node| AgentStep::Stamp(node.report(Progress::Started, "", now))),
            Stage::Stamped(change) => AgentStep::Keep(self.begun(change)),
            Stage::Known(change) => AgentStep::Try(change.doing.ask.digest.clone()),
            Stage::Tried(change, _) => AgentStep::Probe(Some(change.doing.passed.clone())),
            Stage::Passed(change, _) => AgentStep::Commit(change.doing.ask.digest.clone()),
            Stage::Committed(change, shown) => AgentStep::Keep(self.kept(change, shown)),
        }
    }

    fn of_node(&self, step: impl FnOnce(&NodeSeen) -> AgentStep) -> AgentStep {
        self.node.as_ref().map_or(AgentStep::Rest, step)
    }

    fn at_rest(&self, now: Time) -> AgentStep {
        if let Some(doing) = self.disk.doing.as_ref().filter(|_| !self.gave_up) {
            return self.restore(doing);
        }
        if !self.saved && !self.vain.disk {
            return AgentStep::Keep(self.disk.clone());
        }
        let Some(node) = self.node.as_ref().filter(|_| !self.vain.api) else { return AgentStep::Rest };
        if let Some(report) = self.answer(node, now) {
            let is_known = node.said.as_ref().is_some_and(|said| said.says_as(&report));
            return if is_known { AgentStep::Rest } else { AgentStep::Report(report) };
        }
        if self.is_good(&node.ask) && !self.drifted {
            return AgentStep::Read;
        }
        // While the disk lacks something of what is known, nothing is begun.
        if self.saved { AgentStep::Probe(None) } else { AgentStep::Rest }
    }

    /// What there is to say of what is asked; nothing if it is to be done first.
    fn answer(&self, node: &NodeSeen, now: Time) -> Option<NodeReport> {
        if let Some(verdict) = self.disk.verdict(&node.ask) {
            return Some(node.report(verdict.state, &verdict.message, now));
        }
        if let Some(said) = node.said.as_ref().filter(|said| said.is_of(node)) {
            match said.state {
                // The disk may have been lost since.
                Progress::Failed | Progress::RestoreFailed => return Some(said.clone()),
                Progress::Applied if self.is_good(&node.ask) => return Some(said.clone()),
                Progress::Applied | Progress::Started | Progress::Refused => {}
            }
        }
        if self.is_good(&node.ask) && self.in_force.as_ref() == Some(&node.ask.digest) {
            return Some(node.report(Progress::Applied, &self.note, now));
        }
        let (ask, why) = self.refused.as_ref().filter(|_| self.vain.begin)?;
        (*ask == node.ask).then(|| node.report(Progress::Refused, why, now))
    }

    fn is_good(&self, ask: &NodeAsk) -> bool {
        self.disk.good.as_ref().is_some_and(|good| good.digest == ask.digest)
    }

    fn restore(&self, doing: &Doing) -> AgentStep {
        let accept =
            BTreeSet::from_iter(self.disk.good.iter().map(|good| good.shown.clone()).chain([doing.before.clone()]));
        AgentStep::Restore { good: self.disk.good.as_ref().map(|good| good.digest.clone()), accept }
    }

    fn begun(&self, change: &Change) -> NodeDisk {
        NodeDisk { doing: Some(change.doing.clone()), ..self.disk.clone() }
    }

    fn kept(&self, change: &Change, shown: &InForce) -> NodeDisk {
        let Doing { ask, .. } = &change.doing;
        let bad = self.disk.bad.iter().filter(|verdict| verdict.ask != *ask).cloned().collect();
        let good = Some(Good { digest: ask.digest.clone(), shown: shown.clone() });
        NodeDisk { doing: None, interrupted: None, bad, good }
    }
}
