//! The world in a process beside the real thing.

mod apply;
mod calls;
mod schema;
mod stories;
mod twin;
