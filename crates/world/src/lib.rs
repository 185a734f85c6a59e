//! A world in a process: a cluster that needs no network, for `tidegate demo` and for tests that repeat exactly.

pub mod kube_api;
pub mod metrics;
pub mod simulation;
pub mod webhook;
pub mod workloads;
