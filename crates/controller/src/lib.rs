//! tidegate's controller: progressive delivery for Kubernetes where Git is the only control plane.
//!
//! ```text
//! observe → plan → retreat → record → advance → announce
//! ```
//!
//! The cluster is never ahead of Git: what live users reach of a new version is at most what the record in Git says.
//! `ARCHITECTURE.md` tells how the rooms of this crate keep that promise.

pub mod analysis;
pub mod cluster;
pub mod forge;
pub mod gate;
pub mod git;
pub mod manifest;
pub mod people;
pub mod plan;
pub mod reconcile;
pub mod record;
pub mod report;
pub mod rules;
pub mod sign;
pub mod workload;
