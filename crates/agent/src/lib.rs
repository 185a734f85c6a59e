//! The agent: the configuration of one node, put into force from its NodeConfig, and taken back where it does harm.
//!
//! ```text
//! probes → fetch → check → stamp → try → probes → commit → last-good → report
//! ```
//!
//! [`decide`] is pure: what the disk knows and what was seen become one step. [`run`] does the steps one by one. It never begins what its disk
//! does not know, so that whoever is started again goes back before anything else, and it needs nobody for that: no API server, no network.

pub mod content;
pub mod decide;
pub mod driver;
pub mod edge;
pub mod files;
pub mod guard;
pub mod probes;
pub mod report;
pub mod run;
pub mod store;
