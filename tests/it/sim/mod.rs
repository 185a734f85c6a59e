//! The world in a process beside the real thing.

mod apply;
mod schema;
mod stories;
mod twin;
