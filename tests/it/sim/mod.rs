//! The world in a process beside the real thing.

mod schema;
