//! What is rolled out, and the live state that it is judged by. Pure.

pub mod compare;
pub mod daemon;
#[cfg(test)]
pub(crate) mod fixtures;
pub mod inplace;
pub mod job;
pub mod layout;
pub mod live;
mod naming;
pub mod objects;
pub mod overlap;
pub mod owned;
pub mod primary;
pub(crate) mod quantity;
pub mod selector;
pub mod service;
pub mod shared;
pub mod stateful;
pub mod tracked;
pub mod versioned;
pub mod workload;
