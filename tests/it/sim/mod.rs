//! The world in a process beside the real thing.

mod apply;
mod calls;
mod incremental;
mod meanwhile;
mod once;
mod pages;
mod rooms;
mod schema;
mod stories;
mod twin;
pub(crate) mod whole;
mod workloads;
