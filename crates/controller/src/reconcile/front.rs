//! What a process shows of itself while it runs, numbers and health, and where it is told of a push.

use super::controller::RunError;
use crate::forge::receiver::{self, Receiver};
use crate::manifest::installation::Installation;
use crate::report::metrics::Metrics;
use crate::report::server::{self, ServerReadiness};
use std::convert::Infallible;
use std::net::SocketAddr;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Numbers and health, and the tasks that serve them and hear webhooks, if any; they end with this value.
#[derive(Default)]
pub(super) struct Front {
    pub(super) metrics: Metrics,
    pub(super) readiness: ServerReadiness,
    /// Tells those who look of the webhooks of the Git host.
    pub(super) told: watch::Sender<()>,
    serving: JoinSet<Infallible>,
}

impl Front {
    /// Serves them at an address, if there is one, and then hears webhooks at their own, if the installation has a secret for them.
    ///
    /// # Errors
    /// When nobody can listen there.
    pub(super) async fn open(listen: Option<SocketAddr>, installation: &Installation) -> Result<Self, RunError> {
        let mut front = Self::default();
        let Some(address) = listen else { return Ok(front) };
        let (listener, at) = bind(address).await?;
        tracing::info!("metrics and health: http://{at}/metrics");
        front.serving.spawn(server::serve(listener, front.metrics.clone(), front.readiness.clone()));
        if let Some(secret_file) = installation.repository.webhook_secret_file.clone() {
            let odd = |_| RunError::WebhookAddress(installation.webhook_address.clone());
            let (listener, at) = bind(installation.webhook_address.parse().map_err(odd)?).await?;
            tracing::info!("webhooks: http://{at}{}", receiver::PATH);
            let metrics = front.metrics.clone();
            let count = Box::new(move |heard| metrics.delivered(heard));
            let receiver = Receiver { secret_file, told: front.told.clone(), count };
            front.serving.spawn(server::alone(listener, receiver.router()));
        }
        Ok(front)
    }

    /// Why nothing is served any more; never ends while all is well.
    pub(super) async fn broken(&mut self) -> String {
        match self.serving.join_next().await {
            Some(Err(error)) => format!("a web server: {error}"),
            None => std::future::pending().await,
        }
    }
}

async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), RunError> {
    let listener = TcpListener::bind(address).await.map_err(|source| RunError::Listen { address, source })?;
    // Asked for port 0, the system has chosen one.
    let at = listener.local_addr().unwrap_or(address);
    Ok((listener, at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::installation;
    use std::path::Path;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    fn told_at(address: &str, secret: Option<&Path>) -> Installation {
        let file = secret.map(|file| format!(", webhookSecretFile: {}", file.display())).unwrap_or_default();
        let text = format!(
            "apiVersion: tidegate.io/v1alpha1\nkind: Installation\nspec:\n  instance: it\n  \
             repository: {{url: \"https://git.example.test/shop.git\"{file}}}\n  clusters: {{home: {{inCluster: {{}}}}}}\n  \
             caps: {{namespaces: [shop]}}\n  report: {{webhook: \"{address}\"}}\n"
        );
        installation::parse(&"installation.yaml".parse().unwrap(), text.as_bytes()).unwrap()
    }

    fn free() -> SocketAddr {
        std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
    }

    async fn ask(at: SocketAddr, method: &str, path: &str) -> u16 {
        let mut talk = TcpStream::connect(at).await.unwrap();
        let request =
            format!("{method} {path} HTTP/1.1\r\nhost: it\r\nx-gitlab-token: a-secret\r\nconnection: close\r\n\r\n");
        talk.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        talk.read_to_string(&mut answer).await.unwrap();
        answer.split(' ').nth(1).unwrap().parse().unwrap()
    }

    #[tokio::test]
    async fn attack_73_webhooks_have_an_address_of_their_own_and_nothing_else_is_there() {
        let secret = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(secret.path(), "a-secret").unwrap();
        let [numbers, hooks] = [free(), free()];
        let front = Front::open(Some(numbers), &told_at(&hooks.to_string(), Some(secret.path()))).await.unwrap();
        assert_eq!(front.serving.len(), 2);
        for path in ["/metrics", "/healthz", "/readyz"] {
            assert_ne!(ask(numbers, "GET", path).await, 404, "{path}");
            assert_eq!(ask(hooks, "GET", path).await, 404, "{path}");
        }
        assert_eq!(ask(numbers, "POST", "/webhook").await, 404);
        assert_eq!([ask(hooks, "GET", "/webhook").await, ask(hooks, "POST", "/webhook").await], [405, 202]);
    }

    #[tokio::test]
    async fn without_a_secret_nobody_listens_for_webhooks_and_a_port_that_is_none_is_told() {
        let any = "127.0.0.1:0".parse().ok();
        assert_eq!(Front::open(any, &told_at("0.0.0.0:99999", None)).await.unwrap().serving.len(), 1);
        let Err(why) = Front::open(any, &told_at("0.0.0.0:99999", Some(Path::new("/x")))).await else { panic!() };
        assert!(why.to_string().contains("\"0.0.0.0:99999\"; write an address"), "{why}");
    }
}
