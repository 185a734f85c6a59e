//! The integration tests: against a real API server.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cluster;
