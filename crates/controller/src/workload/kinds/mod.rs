//! What is special about a kind of target, and about Jobs: one file for each.

pub mod daemon;
pub mod job;
pub mod nodes;
pub mod service;
pub mod shared;
pub mod stateful;
