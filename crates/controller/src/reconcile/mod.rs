//! The shell: looks, lets the planner decide, writes Git, then does. The only module that knows all others.
//!
//! ```text
//! observe → plan → retreat → record → advance → announce
//! ```
//! Live is read before the record, and the record is pushed before anything but a retreat is done: an advance takes the
//! proof [`record::Recorded`], which only a push or a look-up at the remote makes. A tick starts from nothing but what it
//! observes; timers, watches and answers only mean *wake up*. While Git is slow or away, retreats go on.

pub mod announce;
mod backoff;
pub mod caught;
pub mod clock;
pub mod controller;
pub mod evidence;
pub mod execute;
pub mod faults;
pub mod feedback;
mod front;
mod hosted;
pub mod lead;
pub mod observe;
mod pace;
mod plans;
mod project;
pub mod propose;
pub mod pull_requests;
pub mod record;
mod run_error;
pub mod shell;
pub mod source;
pub mod table;
pub mod tick;
pub mod unobserved;
pub mod world;

#[cfg(test)]
mod testing;
