//! What the integration tests stand on: the cluster, the gateway, the Git host, and the checker of the promise.
#![allow(dead_code, reason = "a test bed offers more than each test asks of it")]
#![expect(
    clippy::disallowed_methods,
    reason = "tests start programs and read the clock; the rules keep the library itself free of that"
)]

pub(crate) mod audit;
pub(crate) mod cluster;
pub(crate) mod gateway;
pub(crate) mod git_host;
pub(crate) mod git_server;
pub(crate) mod github;
#[path = "../../support/github_app.rs"]
pub(crate) mod github_app;
#[path = "../../support/github_checks.rs"]
pub(crate) mod github_checks;
pub(crate) mod gitlab;
pub(crate) mod helm;
pub(crate) mod http_backend;
pub(crate) mod kubeconfig;
#[path = "promise/logs.rs"]
pub(crate) mod logs;
pub(crate) mod origin;
pub(crate) mod prism;
pub(crate) mod prometheus;
pub(crate) mod promise;
#[path = "promise/tests.rs"]
mod promise_tests;
pub(crate) mod rights;
pub(crate) mod site;
pub(crate) mod sshd;
pub(crate) mod ways;
