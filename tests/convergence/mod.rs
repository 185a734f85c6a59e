//! Random worlds, random edits, random faults, each from a seed that is printed: whatever goes wrong, what must never be
//! never is, and the end is the same as without.
//!
//! `TIDEGATE_SEED=7` runs one world and tells of it, `TIDEGATE_WORLDS=20000` runs more of them. See `docs/testing.md`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "tests take settings from the environment")]
#![expect(clippy::wildcard_enum_match_arm, reason = "one fault is looked for among all others")]

mod acts;
mod behind;
mod bites;
mod check;
mod daemon;
mod dice;
mod fault_injection;
mod faults;
mod hooks;
mod host;
mod jobs;
mod phase;
mod player;
mod routes;
mod run;
mod search;
mod seen;
mod shape;
mod spans;
mod story;
