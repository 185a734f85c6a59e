//! What the tests against real parts stand on: the cluster, the gateway, the Git host, and the checker of the promise.
#![allow(dead_code, reason = "a test bed offers more than each test asks of it")]
#![expect(
    clippy::disallowed_methods,
    reason = "tests start programs and read the clock; the rules keep the library itself free of that"
)]

#[path = "../../support/app.rs"]
pub(crate) mod app;
pub(crate) mod audit;
pub(crate) mod cluster;
#[path = "../../support/command.rs"]
pub(crate) mod command;
#[path = "../../support/gateway.rs"]
pub(crate) mod gateway;
pub(crate) mod git_host;
#[path = "../../support/git_server.rs"]
pub(crate) mod git_server;
pub(crate) mod github;
#[path = "../../support/github_app.rs"]
pub(crate) mod github_app;
#[path = "../../support/github_checks.rs"]
pub(crate) mod github_checks;
pub(crate) mod gitlab;
pub(crate) mod helm;
#[path = "../../support/http_backend.rs"]
pub(crate) mod http_backend;
#[path = "../../support/kubeconfig.rs"]
pub(crate) mod kubeconfig;
#[path = "../../support/promise/logs.rs"]
pub(crate) mod logs;
#[path = "../../support/origin.rs"]
pub(crate) mod origin;
#[path = "../../support/pages.rs"]
pub(crate) mod pages;
pub(crate) mod port;
pub(crate) mod prism;
pub(crate) mod prometheus;
#[path = "../../support/promise/mod.rs"]
pub(crate) mod promise;
#[path = "../../support/promise/tests.rs"]
pub(crate) mod promise_tests;
pub(crate) mod rights;
#[path = "../../support/root.rs"]
pub(crate) mod root;
pub(crate) mod site;
pub(crate) mod sshd;
#[path = "../../support/store.rs"]
pub(crate) mod store;
#[path = "../../support/values.rs"]
pub(crate) mod values;
#[path = "../../support/wait.rs"]
pub(crate) mod wait;
pub(crate) mod ways;

/// The program, of the library as it is tested.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_tidegate-tested");
