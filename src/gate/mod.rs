//! What must be open before a step is entered: windows, freezes, people's words. Pure.
//!
//! Evidence comes in as values and `now` as an argument; nothing here waits, and nothing here is asked again once a
//! step is entered (C-15): a gate that closes never stops a step that was entered.

pub mod approval;
pub mod cron;
pub mod decisions;
pub mod open;
pub mod schedule;

/// What the brake in the cluster asks for. It can only hold or retreat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BrakeWord {
    /// No step is entered.
    Hold,
    /// No step is entered, and what is open goes back.
    Revert,
}
