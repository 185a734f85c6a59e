//! A real Prometheus that reads a page of this process twice a second.

use super::cluster::eventually;
use super::port::Port;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use tokio::process::{Child, Command};
use url::Url;

/// A Prometheus; it ends with this value.
pub(crate) struct Prometheus {
    dir: tempfile::TempDir,
    port: Port,
    child: Child,
}

impl Prometheus {
    /// Reads what `page` says whenever it is asked.
    pub(crate) async fn reading(page: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self::reading_beside(page, "").await
    }

    /// The same, and what these further scrape configurations say.
    pub(crate) async fn reading_beside(page: impl Fn() -> String + Send + Sync + 'static, others: &str) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (read, page) = (listener.local_addr().unwrap(), Arc::new(page));
        let app = axum::Router::new().fallback(move || std::future::ready(page()));
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        let dir = tempfile::tempdir().unwrap();
        let config = format!(
            "global: {{scrape_interval: 500ms, scrape_timeout: 500ms}}\nscrape_configs:\n- job_name: app\n  \
             static_configs: [{{targets: [\"{read}\"]}}]\n{others}"
        );
        std::fs::write(dir.path().join("prometheus.yml"), config).unwrap();
        let port = Port::held();
        let child = start(dir.path(), port.address).await;
        Self { dir, port, child }
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.port.address
    }

    /// What it answers to a query of its API.
    pub(crate) async fn answer(&self, path: &str, query: &str) -> serde_json::Value {
        let url = format!("http://{}/api/v1/{path}", self.address());
        let url = Url::parse_with_params(&url, [("query", query)]).unwrap();
        serde_json::from_slice(&reqwest::get(url).await.unwrap().bytes().await.unwrap()).unwrap()
    }

    /// Ends it; what it has stored stays.
    pub(crate) async fn stop(&mut self) {
        self.child.kill().await.unwrap();
    }

    /// Starts it again where it was.
    pub(crate) async fn go_on(&mut self) {
        self.child = start(self.dir.path(), self.address()).await;
    }
}

/// Starts one that keeps everything below `dir`, and listens there.
async fn start(dir: &Path, address: SocketAddr) -> Child {
    let script = crate::support::root::root().join("tests/testbed/prometheus");
    let found = Command::new(script).stderr(Stdio::inherit()).output().await.unwrap();
    assert!(found.status.success(), "there is no Prometheus; the reason is said above");
    let (program, log) = (String::from_utf8(found.stdout).unwrap(), dir.join("log"));
    let written = std::fs::File::create(&log).unwrap();
    let arguments = [
        format!("--config.file={}", dir.join("prometheus.yml").display()),
        format!("--storage.tsdb.path={}", dir.join("data").display()),
        format!("--web.listen-address={address}"),
    ];
    let mut command = Command::new(program.trim());
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(written).kill_on_drop(true);
    let child = command.spawn().unwrap();
    let ready = async || std::fs::read_to_string(&log).unwrap().contains("Server is ready").then_some(());
    eventually("a Prometheus that listens", ready).await;
    child
}
