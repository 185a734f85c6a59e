//! The integration tests: against a real API server, real Git servers and the real binary.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod attacks;
mod cli;
mod cluster;
mod controller;
mod git;
mod manifest;
mod support;
mod testbed;
mod tree;
