//! The world in a process beside the real thing.

mod apply;
mod calls;
mod rooms;
mod schema;
mod stories;
mod twin;
mod workloads;
