//! What worlds stand on beside the library.
#![allow(dead_code, reason = "each program asks for some of it")]
#![expect(clippy::disallowed_methods, reason = "tests start programs; the rules keep the library itself free of that")]

#[path = "../support/app.rs"]
pub(crate) mod app;
#[path = "../support/listen.rs"]
pub(crate) mod listen;
#[path = "../support/origin.rs"]
pub(crate) mod origin;
