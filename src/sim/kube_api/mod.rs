//! The Kubernetes API of the world in a process.

pub mod defaults;
pub mod fields;
pub mod validation;
