//! What measurements and webhooks say of a version.
//!
//! [`judge`] is pure: it says which question a check asks now, and what the answer means; so are [`call`], [`sides`], [`proxy`] and [`reading`],
//! its questions and answers, and [`compare`]. [`provider`] is whoever answers.

pub mod call;
pub mod compare;
pub mod http;
pub mod judge;
pub mod prometheus;
pub mod provider;
pub mod proxy;
pub mod reading;
pub mod sides;
#[cfg(test)]
mod testing;
pub mod webhook;
