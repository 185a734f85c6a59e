//! The integration tests: against a real API server, real Git servers and the real binary.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod architecture;
mod attacks;
mod chart;
mod cli;
mod cluster;
mod code;
mod contract;
mod controller;
mod demo;
mod docs;
mod git;
#[path = "../support/leader.rs"]
mod leader;
mod manifest;
mod siege;
mod sim;
mod support;
mod testbed;
mod tree;
