//! What must be so in any world.

mod fleet;
mod heard;
mod incremental;
mod many;
mod meanwhile;
mod once;
mod pages;
mod whole;
