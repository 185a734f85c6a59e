//! What tidegate writes back: the record of each rollout. Pure.

pub mod branches;
pub mod history;
pub mod message;
pub mod posture;
pub mod schema;
pub mod state;
pub mod store;
pub mod text;
pub mod unknown;

pub use history::{RunOf, run_id};

#[cfg(test)]
pub(crate) mod fixture;
