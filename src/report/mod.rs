//! How people see it: metrics, health, the words of Events. It can never change a plan.

pub mod metrics;
pub mod server;
pub mod words;
