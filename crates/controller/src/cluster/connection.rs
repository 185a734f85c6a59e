//! Who we are to an API server, and where it is: read from the pod's service account or from a kubeconfig.

use super::client::identity;
use crate::manifest::ids::{InvalidId, Namespace};
use bytes::Bytes;
use http::Response;
use http::header::{HeaderValue, USER_AGENT};
use http_body_util::Limited;
use kube::client::{Body, ClientBuilder};
use kube::config::{Config, InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tower::util::MapResponseLayer;
use tower::{BoxError, Service};

/// How long a connection may stay silent while an answer is awaited. API servers send a bookmark each minute on a
/// watch where nothing happens, so a silent one is dead and is opened again.
const SILENCE: Duration = Duration::from_secs(90);
/// The most that one answer may hold, a watch included (which is then opened again). A page of a list that is longer is asked for in halves;
/// one object always fits. As many lists as may run at once together hold no more than half of what the pod may.
pub(super) const RESPONSE_LIMIT: usize = 16 << 20;
/// How long a kubeconfig that has changed and cannot be used is left alone.
const AGAIN: Duration = Duration::from_secs(5);
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
    /// The kubeconfig is not there, or may not be read.
    #[error("failed to read kubeconfig {path}: {source}")]
    Unread {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The kubeconfig cannot be used. Nothing that it holds is told: a token may stand anywhere in what somebody got wrong.
    #[error("failed to read kubeconfig {path}: {found}")]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        found: &'static str,
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

impl ClusterError {
    /// Whether it may pass while the process waits: what is read from the outside was not as it should be.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unread { .. } | Self::Kubeconfig { .. } | Self::Refused { .. } | Self::Identity(_) => true,
            Self::Namespace(_) | Self::Client(_) => true,
            Self::InCluster(_) => false,
        }
    }
}

/// A way to one API server, over which requests are sent.
pub(super) struct Connection {
    client: RwLock<kube::Client>,
    /// The kubeconfig that it is made from, if any.
    file: Option<(PathBuf, Mutex<Known>)>,
}

/// A kubeconfig as it was read last.
struct Known {
    bytes: Vec<u8>,
    /// Its namespace when it was first read: the Lease and the brake are there.
    home: String,
    /// When it was tried.
    tried: Instant,
}

impl Connection {
    /// Prepares a connection; nothing is asked yet. Beside it: our own namespace.
    pub(super) async fn open(source: &ClusterSource) -> Result<(Self, Namespace), ClusterError> {
        let (config, file) = match source {
            ClusterSource::InCluster => (Config::incluster().map_err(|e| ClusterError::InCluster(Box::new(e)))?, None),
            ClusterSource::KubeconfigFile(path) => {
                let (bytes, config) = (read(path).await?, parse(path).await?);
                let known = Known { bytes, home: config.default_namespace.clone(), tried: Instant::now() };
                (config, Some((path.clone(), Mutex::new(known))))
            }
        };
        let home = config.default_namespace.parse()?;
        Ok((Self { client: RwLock::new(client(config)?), file }, home))
    }

    /// Over a service that answers like an API server.
    pub(super) fn fixed<S, B>(builder: ClientBuilder<S>) -> Self
    where
        S: Service<http::Request<Body>, Response = Response<B>> + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: http_body_util::BodyExt<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let client = builder.with_layer(&MapResponseLayer::new(bounded)).build();
        Self { client: RwLock::new(client), file: None }
    }

    /// What sends requests now.
    pub(super) fn client(&self) -> kube::Client {
        self.client.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the kubeconfig again, and if it has changed connects with what it says now. It may lead to the cluster of this
    /// `uid` alone, and to the same namespace: everything that is known is known of that one.
    pub(super) async fn renew(&self, uid: &str) {
        let Some((path, known)) = &self.file else { return };
        // Whoever else fails meanwhile does not wait for it.
        let Ok(mut known) = known.try_lock() else { return };
        let Ok(bytes) = read(path).await else { return };
        if known.bytes == bytes || known.tried.elapsed() < AGAIN {
            return;
        }
        known.tried = Instant::now();
        let parsed = parse(path).await;
        if parsed.as_ref().is_ok_and(|config| config.default_namespace != known.home) {
            let (path, home) = (path.display(), &known.home);
            tracing::error!(%path, %home, "the kubeconfig now names another namespace for the Lease and the brake: not used");
            known.bytes = bytes;
            return;
        }
        let client = match parsed.and_then(client) {
            Ok(client) => client,
            Err(error) => {
                // Told once: only another change can mend it.
                tracing::error!(%error, "the kubeconfig has changed, and cannot be used");
                known.bytes = bytes;
                return;
            }
        };
        match identity(&client).await {
            Ok(found) if found == uid => {
                tracing::info!(path = %path.display(), "the kubeconfig has changed: connected anew");
                *self.client.write().unwrap_or_else(PoisonError::into_inner) = client;
                known.bytes = bytes;
            }
            Ok(_) => {
                tracing::error!(path = %path.display(), "the kubeconfig now leads to another cluster: not used");
                known.bytes = bytes;
            }
            // Tried again after the next request that fails.
            Err(error) => tracing::warn!(%error, "the kubeconfig has changed, and its cluster does not let us in"),
        }
    }
}

/// A client for whoever is not the controller: the agent of a node asks for nothing of the whole cluster.
///
/// # Errors
/// When the source cannot be read or asks for what we refuse.
pub async fn plain_client(source: &ClusterSource) -> Result<kube::Client, ClusterError> {
    let (connection, _) = Connection::open(source).await?;
    Ok(connection.client())
}

/// A client of that connection, which never repeats a request behind our back.
fn client(mut config: Config) -> Result<kube::Client, ClusterError> {
    // The next tick tries again; two layers of that would multiply (style guide 17).
    config.default_retry = false;
    config.read_timeout = Some(SILENCE);
    config.reset_reader_on_write = true;
    let agent = HeaderValue::from_static(concat!("tidegate/", env!("CARGO_PKG_VERSION")));
    config.headers.push((USER_AGENT, agent));
    let builder = ClientBuilder::try_from(config).map_err(|e| ClusterError::Client(Box::new(e)))?;
    Ok(builder.with_layer(&MapResponseLayer::new(bounded)).build())
}

/// A response that breaks off where it grows beyond [`RESPONSE_LIMIT`].
pub(super) fn bounded<B>(response: Response<B>) -> Response<Limited<B>> {
    response.map(|body| Limited::new(body, RESPONSE_LIMIT))
}

/// What a kubeconfig holds now.
async fn read(path: &Path) -> Result<Vec<u8>, ClusterError> {
    let broken = |source| ClusterError::Unread { path: path.to_owned(), source };
    if tokio::fs::metadata(path).await.map_err(broken)?.len() > KUBECONFIG_LIMIT {
        return Err(ClusterError::Refused {
            path: path.to_owned(),
            found: "is larger than 1 MiB",
            mend: "give one with only the cluster and user that are needed",
        });
    }
    tokio::fs::read(path).await.map_err(broken)
}

/// What is wrong with a kubeconfig, in words that hold nothing of it.
fn wrong(error: &KubeconfigError) -> &'static str {
    match error {
        KubeconfigError::Parse(_) => "it is no kubeconfig in YAML",
        KubeconfigError::CurrentContextNotSet => "it has no current-context",
        KubeconfigError::LoadContext(_) => "its current-context is not among its contexts",
        KubeconfigError::LoadClusterOfContext(_) => "the cluster of its context is not among its clusters",
        KubeconfigError::MissingClusterUrl => "its cluster has no server",
        KubeconfigError::ParseClusterUrl(_) => "the server of its cluster is no URL",
        KubeconfigError::LoadCertificateAuthority(_) | KubeconfigError::ParseCertificates(_) => {
            "its certificate authority cannot be read"
        }
        KubeconfigError::LoadClientCertificate(_) => "its client certificate cannot be read",
        KubeconfigError::LoadClientKey(_) => "its client key cannot be read",
        KubeconfigError::ReadConfig(..) => "it cannot be read",
        KubeconfigError::KindMismatch
        | KubeconfigError::ApiVersionMismatch
        | KubeconfigError::FindPath
        | KubeconfigError::ParseProxyUrl(_) => "it cannot be used",
    }
}

/// Reads a kubeconfig, and refuses what would run programs, skip checks, or send our token elsewhere.
async fn parse(path: &Path) -> Result<Config, ClusterError> {
    let refused = |found, mend| ClusterError::Refused { path: path.to_owned(), found, mend };
    let broken = |error: KubeconfigError| ClusterError::Kubeconfig { path: path.to_owned(), found: wrong(&error) };
    let file = Kubeconfig::read_from(path).map_err(broken)?;
    if file.clusters.iter().any(|named| named.cluster.as_ref().is_some_and(|c| c.proxy_url.is_some())) {
        return Err(refused("names a proxy-url", "let the cluster be reached without a proxy"));
    }
    let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.map_err(broken)?;
    // Beside it there is nothing that its writer has not put there; elsewhere there are others' secrets.
    let beside = |file: &str| Path::new(file).parent() == path.parent() && !file.contains("..");
    if config.auth_info.token_file.as_deref().is_some_and(|file| !beside(file)) {
        return Err(refused("names a tokenFile in another directory", "put the token into the kubeconfig"));
    }
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
    use super::super::client::Cluster;
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
            (server, "tokenFile: /etc/tidegate/git/token", "names a tokenFile in another directory"),
            (server, "tokenFile: ../git/token", "names a tokenFile in another directory"),
        ];
        for (cluster, user, found) in rows {
            let text = refusal(cluster, user).await;
            assert!(text.starts_with(&format!("kubeconfig DIR/kubeconfig {found}, which is refused: ")), "{text}");
        }
    }

    #[tokio::test]
    async fn nothing_of_a_kubeconfig_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kubeconfig");
        let whole = |cluster: &str, user: &str, context: &str| {
            format!(
                "{{apiVersion: v1, kind: Config, current-context: {context}, clusters: [{{name: c, cluster: {cluster}}}], \
                 users: [{{name: u, user: {user}}}], contexts: [{{name: c, context: {{cluster: c, user: u}}}}]}}"
            )
        };
        let good = "{server: 'https://127.0.0.1:1'}";
        for text in [
            "canary.abc.def".to_owned(),
            "canary: [".to_owned(),
            whole(good, "canary", "c"),
            whole(good, "{token: [canary]}", "c"),
            whole(good, "{client-certificate-data: canary, client-key-data: canary}", "c"),
            whole("{server: 'canary canary'}", "{}", "c"),
            whole("{server: 'https://127.0.0.1:1', certificate-authority-data: canary}", "{}", "c"),
            whole(good, "{}", "canary"),
        ] {
            std::fs::write(&path, &text).unwrap();
            let source = ClusterSource::KubeconfigFile(path.clone());
            let Err(error) = Cluster::connect(&source, &"a".parse().unwrap()).await else { panic!("connected") };
            let told = format!("{error:?} {error} {:?}", std::error::Error::source(&error));
            assert!(!told.contains("canary"), "{told}");
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
