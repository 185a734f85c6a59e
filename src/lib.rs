//! tidegate: progressive delivery for Kubernetes where Git is the only control plane.
//!
//! The program: its command line, and all that it is made of under one name.

pub mod cli;

pub use tidegate_agent as agent;
pub use tidegate_controller::{
    analysis, cluster, forge, gate, git, manifest, people, plan, reconcile, record, report, rules, sign, workload,
};
pub use tidegate_import as import;
pub use tidegate_world as world;
