//! What the ticks of a story do.

use super::super::action::{Action, Proposal};
use super::super::draft::RecordChange;
use super::super::evidence::{Need, ReviewQuery};
use crate::analysis::judge::Inquiry;
use crate::workload::lookup::Lookup;

/// One thing that a tick does to the outside.
#[derive(Debug, Clone)]
pub(super) enum Effect {
    /// Evidence is collected.
    Ask(Box<Need>),
    Look(Lookup),
    Measure(Inquiry),
    ReviewQuery(ReviewQuery),
    /// A commit is pushed, if the record is still the one planned from.
    Record {
        base: Option<u64>,
        change: Box<RecordChange>,
    },
    Act(Box<Action>),
    Propose(Proposal),
    Withdraw(String),
}
