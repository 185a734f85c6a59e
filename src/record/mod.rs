//! What tidegate writes back: the record of each rollout. Pure.

pub mod posture;
pub mod state;
