//! A real Prometheus that reads a page of this process five times a second.

use super::cluster::eventually;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use tokio::process::{Child, Command};

/// A Prometheus; it ends with this value.
pub(crate) struct Prometheus {
    dir: tempfile::TempDir,
    pub(crate) address: SocketAddr,
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
            "global: {{scrape_interval: 200ms, scrape_timeout: 200ms}}\nscrape_configs:\n- job_name: app\n  \
             static_configs: [{{targets: [\"{read}\"]}}]\n{others}"
        );
        std::fs::write(dir.path().join("prometheus.yml"), config).unwrap();
        let (address, child) = start(dir.path(), "127.0.0.1:0".parse().unwrap()).await;
        Self { dir, address, child }
    }

    /// Ends it; what it has stored stays.
    pub(crate) async fn stop(&mut self) {
        self.child.kill().await.unwrap();
    }

    /// Starts it again where it was.
    pub(crate) async fn go_on(&mut self) {
        (self.address, self.child) = start(self.dir.path(), self.address).await;
    }
}

/// Starts one that keeps everything below `dir`; where it listens.
async fn start(dir: &Path, address: SocketAddr) -> (SocketAddr, Child) {
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
    let address = eventually("a Prometheus that listens", async || {
        let said = std::fs::read_to_string(&log).unwrap();
        let (_, listens) = said.split_once("\"Listening on\" address=")?;
        said.contains("Server is ready").then(|| listens.split_whitespace().next().unwrap().parse().unwrap())
    })
    .await;
    (address, child)
}
