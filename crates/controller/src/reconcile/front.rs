//! What a process shows of itself while it runs, numbers and health, and where it is told of a push.

use super::controller::RunError;
use crate::forge::receiver::Receiver;
use crate::manifest::installation::Installation;
use crate::report::metrics::Metrics;
use crate::report::server::{self, ServerReadiness};
use std::convert::Infallible;
use std::net::SocketAddr;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Numbers and health, and the task that serves them, if any; it ends with this value.
#[derive(Default)]
pub(super) struct Front {
    pub(super) metrics: Metrics,
    pub(super) readiness: ServerReadiness,
    /// Tells those who look of the webhooks of the Git host.
    pub(super) told: watch::Sender<()>,
    serving: JoinSet<Infallible>,
}

impl Front {
    /// Serves them at an address, if there is one, and hears webhooks there if the installation has a secret for them.
    ///
    /// # Errors
    /// When nobody can listen there.
    pub(super) async fn open(listen: Option<SocketAddr>, installation: &Installation) -> Result<Self, RunError> {
        let mut front = Self::default();
        if let Some(address) = listen {
            let listening = TcpListener::bind(address).await;
            let listener = listening.map_err(|source| RunError::Listen { address, source })?;
            // Asked for port 0, the system has chosen one.
            let at = listener.local_addr().unwrap_or(address);
            tracing::info!("metrics and health: http://{at}/metrics");
            let (metrics, readiness) = (front.metrics.clone(), front.readiness.clone());
            let secret_file = installation.repository.webhook_secret_file.clone();
            let receiver = secret_file.map(|secret_file| {
                let metrics = front.metrics.clone();
                Receiver {
                    secret_file,
                    told: front.told.clone(),
                    count: Box::new(move |heard| metrics.delivered(heard)),
                }
            });
            let receiving = receiver.map(Receiver::router).unwrap_or_default();
            front.serving.spawn(server::serve(listener, metrics, readiness, receiving));
        }
        Ok(front)
    }

    /// Why nothing is served any more; never ends while all is well.
    pub(super) async fn broken(&mut self) -> String {
        match self.serving.join_next().await {
            Some(Err(error)) => format!("the web server: {error}"),
            None => std::future::pending().await,
        }
    }
}
