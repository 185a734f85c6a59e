//! What people write and read, Git over HTTP and on disk, the commands, and the code itself: nothing but Rust, git and a C compiler.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod agent;
mod architecture;
mod attacks;
mod chart;
mod cli;
mod clock;
#[path = "../support/code.rs"]
mod code;
mod demo;
mod docs;
mod git;
#[path = "../support/heap.rs"]
mod heap;
mod manifest;
mod support;
#[path = "../support/tree.rs"]
mod tree;

/// Nobody asks what all threads hold together.
const HELD_IS_ASKED: bool = false;
