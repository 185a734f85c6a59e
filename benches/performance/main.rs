//! How fast tidegate is, as ratios to what does the same on the same machine in the same run (design: speed).
//!
//! `cargo bench` measures all and prints the table of `docs/performance.md`; `UPDATE_DOCS=1 cargo bench` writes it; a word
//! after `--` measures, and writes, only what has it in its name. Nothing fails for being slow: what a goal is missed by is told.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "benches start programs, read clocks and environment, and print, as tests do"
)]

mod cluster;
mod fleet;
mod git;
mod host;
mod measure;
mod report;
mod rest;
mod retreat;
mod steps;
mod words;

#[path = "../../tests/support/heap.rs"]
mod heap;
#[path = "../../tests/support/leader.rs"]
mod leader;
/// What the integration tests stand on, as far as it is of use here.
#[allow(dead_code, reason = "a test bed offers more than benches ask of it")]
#[path = "../../tests/real/support"]
mod support {
    pub(crate) mod audit;
    pub(crate) mod cluster;
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
    #[path = "../../support/origin.rs"]
    pub(crate) mod origin;
    pub(crate) mod prism;
    pub(crate) mod rights;
    #[path = "../../support/root.rs"]
    pub(crate) mod root;
    pub(crate) mod site;
    #[path = "../../support/wait.rs"]
    pub(crate) mod wait;
    pub(crate) mod ways;
}

/// What all threads hold together is one of the figures.
const HELD_IS_ASKED: bool = true;

use measure::Finding;
use report::Anew;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|word| name.contains(word.as_str()));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let mut findings: Vec<Finding> = Vec::new();
    let mut take = |name: &str, measured: &dyn Fn() -> Vec<Finding>| {
        if is_wanted(name) {
            println!("… {name}");
            let found = measured();
            found.iter().for_each(|finding| println!("{finding}"));
            findings.extend(found);
        }
    };
    take("git", &|| runtime.block_on(git::measure()));
    take("monorepo", &|| runtime.block_on(git::monorepo()));
    take("words", &|| runtime.block_on(words::measure()));
    take("rest", &|| runtime.block_on(rest::measure()));
    take("retreat", &|| runtime.block_on(retreat::measure()));
    take("steps", &|| runtime.block_on(steps::measure()));
    take("host", &|| runtime.block_on(host::measure()));
    take("retreat-cluster", &|| runtime.block_on(retreat::measure_on_a_cluster()));
    take("cluster", &|| runtime.block_on(cluster::measure()));
    if std::env::var("UPDATE_DOCS").is_ok() {
        report::write(&findings, if wanted.is_empty() { Anew::All } else { Anew::Rows });
    }
}
