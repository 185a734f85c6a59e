//! Kubernetes: what is live, as a value, and the writes that a plan asks for.
//!
//! `kube::Client` stays in here. This room decides nothing: it says what it saw and what came of a request. It never
//! tries again by itself what a plan asked for (the next tick does), and at rest it asks for nothing but Lease
//! renewals and re-opened watches.

pub mod apply;
pub mod brake;
pub mod chance;
pub mod checkup;
pub mod client;
pub mod connection;
mod discovery;
pub mod election;
pub mod events;
pub mod failure;
pub mod lease;
mod list;
mod look;
mod migrate;
pub mod projection;
mod request;
pub mod rights;
mod secret;
pub mod store;
mod total;
mod trim;
pub mod unobserved;
pub mod watch;

#[cfg(test)]
mod hostile;
#[cfg(test)]
mod testing;
