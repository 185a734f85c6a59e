//! The rules that the promise rests on. A test build (feature `faults`) can break each of them on purpose, so that the searches
//! for faults show that they would notice; in what is shipped all of them hold, and nothing of this is built in.

#[cfg(feature = "faults")]
mod broken;

/// A rule, named by what it demands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// A retreat leaves its mark on what carries the split.
    Mark,
    /// It leaves it also where there is nothing to lower.
    MarkAlways,
    /// A write expects the `resourceVersion` that was planned on.
    Expect,
    /// Live is read before the record that it is compared with.
    LiveFirst,
    /// The record is lowered only after live was seen lowered.
    LowerLast,
    /// What the record allows is done only after the record was pushed.
    RecordFirst,
    /// A push expects the tip that was planned on.
    Swap,
    /// A record that is older than what live was written under is not acted upon.
    Fence,
    /// A candidate is exposed only once it has enough ready endpoints.
    Ready,
    /// Time in which nobody observed is not counted as soak.
    Gaps,
    /// A revision that failed is not started again by itself.
    Refused,
    /// Who does not hold the Lease writes nothing.
    Lease,
    /// No step is entered while one of its gates is closed.
    Gates,
    /// The candidate goes only once no traffic is led to it.
    RetireLast,
    /// Stable is overwritten only once all traffic is led past it.
    ShiftFirst,
    /// A check that fails takes the run back.
    Checks,
    /// No decision that lowers waits for an exposure to rise first.
    LowerAtOnce,
    /// Nothing is concluded from a kind that cannot be read.
    Unread,
    /// What main changes directly takes no run back.
    Along,
    /// A soak is time in which the version was good.
    GoodTime,
    /// By pods the share is counted with the pods that answer.
    Share,
    /// No gap ends later than now.
    SetBack,
    /// The record is lowered only once a proxy that keeps what it had serves the way back.
    InForceLast,
}

/// Whether a rule holds.
#[cfg(not(feature = "faults"))]
#[must_use]
pub const fn holds(_: Rule) -> bool {
    true
}

#[cfg(feature = "faults")]
pub use broken::{Broken, holds};
