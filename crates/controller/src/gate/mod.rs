//! What must be open before a step is entered: windows, freezes, people's decisions. Pure.
//!
//! Evidence comes in as values and `now` as an argument; nothing here waits, and nothing here is asked again once a
//! step is entered (C-15): a gate that closes never stops a step that was entered.

pub mod approval;
pub mod brake;
pub mod decisions;
pub mod floor;
pub mod guard;
pub mod proof;
pub mod schedule;
pub mod wave;

pub use brake::BrakeWord;
