//! All integration tests, in one binary.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod attacks;
mod manifest;
mod tree;
