//! What these tests stand on beside the library.
#![allow(dead_code, reason = "each program asks for some of it")]
#![expect(
    clippy::disallowed_methods,
    reason = "tests start programs and read the clock; the rules keep the library itself free of that"
)]

#[path = "../support/command.rs"]
pub(crate) mod command;
#[path = "../support/git_server.rs"]
pub(crate) mod git_server;
#[path = "../support/http_backend.rs"]
pub(crate) mod http_backend;
#[path = "../support/origin.rs"]
pub(crate) mod origin;
#[path = "../support/pages.rs"]
pub(crate) mod pages;
#[path = "../support/root.rs"]
pub(crate) mod root;
#[path = "../support/store.rs"]
pub(crate) mod store;
#[path = "../support/values.rs"]
pub(crate) mod values;
