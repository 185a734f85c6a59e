//! What measurements say of a version.
//!
//! [`judge`] is pure: it says which question a check asks now, and what the answer means. [`provider`] is whoever answers.

pub mod judge;
pub mod prometheus;
pub mod provider;
