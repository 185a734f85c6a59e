//! Against the real thing: an API server with its controllers and scheduler, Helm, Gitea, sshd, Prometheus, Contour and Envoy, and
//! GitHub's own description of its API. What they need is built and installed by `tests/testbed/build`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod attacks;
mod chart;
mod cli;
mod cluster;
mod contract;
mod controller;
mod fields;
#[path = "../support/heap.rs"]
mod heap;
mod sim;
mod ssh;
mod support;
mod testbed;
#[path = "../support/tree.rs"]
mod tree;

/// Nobody asks what all threads hold together.
const HELD_IS_ASKED: bool = false;
