//! What a process shows of itself while it runs: numbers and health.

use super::controller::RunError;
use crate::report::metrics::Metrics;
use crate::report::server::{self, Readiness};
use std::net::SocketAddr;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// Numbers and health, and the task that serves them, if any; it ends with this value.
#[derive(Default)]
pub(super) struct Front {
    pub(super) metrics: Metrics,
    pub(super) readiness: Readiness,
    serving: JoinSet<String>,
}

impl Front {
    /// Serves them at an address, if there is one.
    ///
    /// # Errors
    /// When nobody can listen there.
    pub(super) async fn open(listen: Option<SocketAddr>) -> Result<Self, RunError> {
        let mut front = Self::default();
        if let Some(address) = listen {
            let listening = TcpListener::bind(address).await;
            let listener = listening.map_err(|source| RunError::Listen { address, source })?;
            // Asked for port 0, the system has chosen one.
            let at = listener.local_addr().unwrap_or(address);
            tracing::info!("metrics and health: http://{at}/metrics");
            let (metrics, readiness) = (front.metrics.clone(), front.readiness.clone());
            front.serving.spawn(async move {
                let why = server::serve(listener, metrics, readiness).await.err().map(|error| error.to_string());
                format!("the web server: {}", why.unwrap_or_else(|| "without a reason".to_owned()))
            });
        }
        Ok(front)
    }

    /// Why nothing is served any more; never ends while all is well.
    pub(super) async fn broken(&mut self) -> String {
        match self.serving.join_next().await {
            Some(ended) => ended.unwrap_or_else(|error| error.to_string()),
            None => std::future::pending().await,
        }
    }
}
