//! Worlds in a process, with the controller, the Kubernetes client and Git that are shipped: stories in prose and commands
//! (`scenarios`), random worlds (`convergence`), every interleaving of a small one (`exhaustive`), hostile input (`fuzz`), and what
//! must be so in any world (`sim`). Only the cluster and the clock are not the real ones.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../convergence/mod.rs"]
mod convergence;
#[path = "../exhaustive/mod.rs"]
mod exhaustive;
#[path = "../fuzz/mod.rs"]
mod fuzz;
#[path = "../support/heap.rs"]
mod heap;
#[path = "../support/leader.rs"]
mod leader;
#[path = "../support/promise/mod.rs"]
#[allow(dead_code, reason = "shared with the tests on a real API server, which ask for more of it")]
mod promise;
#[path = "../scenarios/mod.rs"]
mod scenarios;
mod sim;
mod support;
