//! The way to one API server: who we are there, and how a request is sent.

use super::failure::Failure;
use super::request;
use crate::manifest::ids::{InstanceName, InvalidId, Namespace};
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use http::header::{HeaderValue, USER_AGENT};
use http::{Request, Response};
use http_body_util::Limited;
use kube::client::{Body, ClientBuilder};
use kube::config::{Config, InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::core::WatchEvent;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tower::util::MapResponseLayer;
use tower::{BoxError, Service};

/// How long a request may take that is no watch.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a connection may stay silent while an answer is awaited. API servers send a bookmark each minute on a
/// watch where nothing happens, so a silent one is dead and is opened again.
const SILENCE: Duration = Duration::from_secs(90);
/// The most that one answer may hold, a watch included (which is then opened again): 200 objects of a list's page
/// would have to hold 320 KiB each to reach it.
const RESPONSE_LIMIT: usize = 64 << 20;
/// The most that a kubeconfig may hold.
const KUBECONFIG_LIMIT: u64 = 1 << 20;

/// Where the connection to a cluster is described.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClusterSource {
    /// The service account of the pod that we run in.
    InCluster,
    /// The current context of this kubeconfig. It comes from the installation, never from a repository.
    KubeconfigFile(PathBuf),
}

/// Why a cluster cannot be connected to.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The kubeconfig cannot be used.
    #[error("failed to read kubeconfig {path}: {source}")]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: Box<KubeconfigError>,
    },
    /// The kubeconfig asks for something that we refuse to do.
    #[error("kubeconfig {path} {found}, which is refused: {mend}")]
    Refused {
        /// The file.
        path: PathBuf,
        /// What was found in it.
        found: &'static str,
        /// What to write instead.
        mend: &'static str,
    },
    /// There is no service account to use.
    #[error("failed to find the pod's service account: {0}; outside of a cluster, name a kubeconfigFile")]
    InCluster(#[source] Box<InClusterError>),
    /// The namespace that the connection names for us is none.
    #[error("failed to take the connection's own namespace: {0}")]
    Namespace(#[from] InvalidId),
    /// The client cannot be built from the connection's certificates and keys.
    #[error("failed to prepare the connection: {0}")]
    Client(#[source] Box<kube::Error>),
    /// The API server does not say which cluster it is.
    #[error("failed to read the uid of namespace kube-system: {0}")]
    Identity(String),
}

/// One cluster, as one instance of tidegate reaches it. Clones share the connection.
#[derive(Clone)]
pub struct Cluster {
    inner: Arc<Inner>,
}

struct Inner {
    client: kube::Client,
    uid: String,
    home: Namespace,
    instance: InstanceName,
    manager: String,
}

impl Cluster {
    /// Connects, and asks the cluster who it is.
    ///
    /// *Guarantees*: no plugin was run, the server's certificate is checked, no request is repeated behind our back.
    /// *Assumptions*: `source` comes from the installation. Proxy variables of the environment are ignored.
    ///
    /// # Errors
    /// When the source cannot be read or asks for what we refuse, or the API server does not answer.
    pub async fn connect(source: &ClusterSource, instance: &InstanceName) -> Result<Self, ClusterError> {
        let mut config = match source {
            ClusterSource::InCluster => Config::incluster().map_err(|e| ClusterError::InCluster(Box::new(e)))?,
            ClusterSource::KubeconfigFile(path) => from_file(path).await?,
        };
        // The next tick tries again; two layers of that would multiply (style guide 17).
        config.default_retry = false;
        config.read_timeout = Some(SILENCE);
        config.reset_reader_on_write = true;
        let agent = HeaderValue::from_static(concat!("tidegate/", env!("CARGO_PKG_VERSION")));
        config.headers.push((USER_AGENT, agent));
        let home = config.default_namespace.parse()?;
        let builder = ClientBuilder::try_from(config).map_err(|e| ClusterError::Client(Box::new(e)))?;
        let client = builder.with_layer(&MapResponseLayer::new(bounded)).build();
        Self::identified(client, home, instance).await
    }

    /// The same over any service that answers like an API server.
    ///
    /// # Errors
    /// When it does not say which cluster it is.
    pub async fn over<S, B>(service: S, home: Namespace, instance: &InstanceName) -> Result<Self, ClusterError>
    where
        S: Service<Request<Body>, Response = Response<B>> + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: http_body_util::BodyExt<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let builder = ClientBuilder::new(service, home.as_str());
        let client = builder.with_layer(&MapResponseLayer::new(bounded)).build();
        Self::identified(client, home, instance).await
    }

    async fn identified(client: kube::Client, home: Namespace, instance: &InstanceName) -> Result<Self, ClusterError> {
        let request = request::get("/api/v1/namespaces/kube-system", &[]);
        let found = send(&client, request, REQUEST_TIMEOUT).await.map_err(|e| ClusterError::Identity(e.to_string()))?;
        let uid = found.pointer("/metadata/uid").and_then(Value::as_str).filter(|uid| !uid.is_empty());
        let uid = uid.ok_or_else(|| ClusterError::Identity("the answer holds none".to_owned()))?.to_owned();
        let (instance, manager) = (instance.clone(), instance.in_cluster());
        Ok(Self { inner: Arc::new(Inner { client, uid, home, instance, manager }) })
    }

    /// The uid of the namespace `kube-system`: which cluster this is, whatever it is called.
    #[must_use]
    pub fn uid(&self) -> &str {
        &self.inner.uid
    }

    /// The namespace that we ourselves live in: the service account's, or that of the kubeconfig's context.
    #[must_use]
    pub fn home(&self) -> &Namespace {
        &self.inner.home
    }

    /// The instance that we are.
    #[must_use]
    pub fn instance(&self) -> &InstanceName {
        &self.inner.instance
    }

    /// The field manager of all our writes: `tidegate-<instance>`.
    #[must_use]
    pub fn manager(&self) -> &str {
        &self.inner.manager
    }

    /// Sends a request that is no watch.
    pub(super) async fn call(&self, request: Request<Vec<u8>>) -> Result<Value, Failure> {
        self.call_within(request, REQUEST_TIMEOUT).await
    }

    /// The same with another deadline.
    pub(super) async fn call_within(&self, request: Request<Vec<u8>>, limit: Duration) -> Result<Value, Failure> {
        send(&self.inner.client, request, limit).await
    }

    /// Opens a watch. Its stream ends, with or without an error, whenever the connection does.
    pub(super) async fn open(
        &self,
        request: Request<Vec<u8>>,
    ) -> Result<BoxStream<'static, Result<WatchEvent<Value>, Failure>>, Failure> {
        let opening = self.inner.client.request_events::<Value>(request);
        let stream = within(REQUEST_TIMEOUT, opening).await?;
        Ok(Box::pin(stream.map(|event| event.map_err(Failure::of))))
    }
}

/// A response that breaks off where it grows beyond [`RESPONSE_LIMIT`].
fn bounded<B>(response: Response<B>) -> Response<Limited<B>> {
    response.map(|body| Limited::new(body, RESPONSE_LIMIT))
}

async fn send(client: &kube::Client, request: Request<Vec<u8>>, limit: Duration) -> Result<Value, Failure> {
    let text = within(limit, client.request_text(request)).await?;
    serde_json::from_str(&text).map_err(|error| Failure::of(kube::Error::SerdeError(error)))
}

async fn within<T>(limit: Duration, asked: impl Future<Output = kube::Result<T>>) -> Result<T, Failure> {
    match tokio::time::timeout(limit, asked).await {
        Ok(answer) => answer.map_err(Failure::of),
        Err(_) => Err(Failure::Silent(format!("no answer within {} s", limit.as_secs_f32()))),
    }
}

/// Reads a kubeconfig, and refuses what would run programs, skip checks, or send our token elsewhere.
async fn from_file(path: &Path) -> Result<Config, ClusterError> {
    let refused = |found, mend| ClusterError::Refused { path: path.to_owned(), found, mend };
    let broken = |source| ClusterError::Kubeconfig { path: path.to_owned(), source: Box::new(source) };
    let size = tokio::fs::metadata(path).await.map_err(|e| broken(KubeconfigError::ReadConfig(e, path.to_owned())))?;
    if size.len() > KUBECONFIG_LIMIT {
        return Err(refused("is larger than 1 MiB", "give one with only the cluster and user that are needed"));
    }
    let file = Kubeconfig::read_from(path).map_err(broken)?;
    if file.clusters.iter().any(|named| named.cluster.as_ref().is_some_and(|c| c.proxy_url.is_some())) {
        return Err(refused("names a proxy-url", "let the cluster be reached without a proxy"));
    }
    let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.map_err(broken)?;
    if config.auth_info.exec.is_some() {
        return Err(refused("names an exec plugin for its user", "use a token, a tokenFile or a client certificate"));
    }
    if config.auth_info.auth_provider.is_some() {
        return Err(refused("names an auth-provider for its user", "use a token, a tokenFile or a client certificate"));
    }
    if config.accept_invalid_certs {
        return Err(refused("sets insecure-skip-tls-verify", "give certificate-authority-data instead"));
    }
    if config.cluster_url.scheme_str() != Some("https") {
        return Err(refused("names a server that is not https://", "give the https address of the API server"));
    }
    config.proxy_url = None;
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn refusal(cluster: &str, user: &str) -> String {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kubeconfig");
        let text = format!(
            "{{apiVersion: v1, kind: Config, current-context: c, clusters: [{{name: c, cluster: {{{cluster}}}}}], \
             users: [{{name: u, user: {{{user}}}}}], contexts: [{{name: c, context: {{cluster: c, user: u}}}}]}}"
        );
        std::fs::write(&path, text).unwrap();
        let Err(error) = Cluster::connect(&ClusterSource::KubeconfigFile(path), &"a".parse().unwrap()).await else {
            panic!("connected")
        };
        error.to_string().replace(&dir.path().display().to_string(), "DIR")
    }

    #[tokio::test]
    async fn a_kubeconfig_that_runs_programs_or_skips_checks_is_refused() {
        let server = "server: 'https://127.0.0.1:1'";
        let exec = "exec: {apiVersion: client.authentication.k8s.io/v1, command: 'touch'}";
        let insecure = format!("{server}, insecure-skip-tls-verify: true");
        let proxied = format!("{server}, proxy-url: 'http://p'");
        let rows = [
            (server, exec, "names an exec plugin for its user"),
            (server, "auth-provider: {name: gcp}", "names an auth-provider for its user"),
            (&insecure, "token: x", "sets insecure-skip-tls-verify"),
            ("server: 'http://127.0.0.1:1'", "token: x", "names a server that is not https://"),
            (&proxied, "token: x", "names a proxy-url"),
        ];
        for (cluster, user, found) in rows {
            let text = refusal(cluster, user).await;
            assert!(text.starts_with(&format!("kubeconfig DIR/kubeconfig {found}, which is refused: ")), "{text}");
        }
    }

    #[tokio::test]
    async fn an_api_server_that_does_not_answer_is_named_as_such() {
        let text = refusal("server: 'https://127.0.0.1:1'", "token: canary").await;
        assert!(text.starts_with("failed to read the uid of namespace kube-system: "), "{text}");
        assert!(text.contains("refused") && !text.contains("canary"), "{text}");
        let gone = ClusterSource::KubeconfigFile("/nowhere/kubeconfig".into());
        let Err(error) = Cluster::connect(&gone, &"a".parse().unwrap()).await else { panic!("connected") };
        assert!(error.to_string().starts_with("failed to read kubeconfig /nowhere/kubeconfig: "), "{error}");
    }
}
