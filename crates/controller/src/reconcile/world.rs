//! The outside, as one process reaches it.

use super::clock::Clock;
use super::controller::RunError;
use super::evidence::Providers;
use super::source::Branches;
use crate::analysis::http::NoClient;
use crate::analysis::prometheus::PrometheusClient;
use crate::analysis::provider::ProviderClient;
use crate::analysis::webhook::WebhookClient;
use crate::cluster::client::Cluster;
use crate::cluster::connection::ClusterSource;
use crate::forge::host::{HttpTransport, Pass};
use crate::git::{CommitSigning, RemoteConfig, SshIdentity, Store};
use crate::manifest::ids::ClusterName;
use crate::manifest::installation::{self, Installation};
use crate::sign::SigningKey;
use secrecy::zeroize::Zeroizing;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// How long a cluster that cannot be reached is left alone.
const AGAIN: Duration = Duration::from_secs(5);

/// Everything that a process works on.
pub struct Backends {
    /// The cluster.
    pub cluster: Cluster,
    /// The repository.
    pub store: Store,
    /// Who answers the questions of checks.
    pub providers: Providers,
    /// The time.
    pub clock: Clock,
    /// What lets in to the Git host, if the installation names one.
    pub pass: Option<Pass>,
    /// What brings requests to that host; the network if none.
    pub transport: Option<HttpTransport>,
}

impl Backends {
    /// Connects to what the installation names.
    ///
    /// # Errors
    /// When the Git cache cannot be opened or the cluster does not answer. The repository is not asked yet.
    pub async fn connect(installation: &Installation, cache: &Path) -> Result<Self, RunError> {
        let (_, source) = served(installation)?;
        let clock = Clock::default();
        let pass = pass(installation, &clock)?;
        Ok(Self {
            store: Store::open(cache, remote(installation, pass.as_ref())?)?,
            cluster: Cluster::connect(&source, &installation.instance).await?,
            providers: providers(installation)?,
            clock,
            pass,
            transport: None,
        })
    }

    /// The same for a process that nobody starts again: while the cluster does not answer, or its kubeconfig is not there or
    /// not right, it says so and tries again.
    ///
    /// # Errors
    /// When waiting does not help.
    pub async fn await_connection(installation: &Installation, cache: &Path) -> Result<Self, RunError> {
        let mut told = String::new();
        loop {
            match Self::connect(installation, cache).await {
                Err(RunError::Cluster(error)) if error.may_pass() => {
                    let why = error.to_string();
                    if why != told {
                        tracing::error!(why, "the cluster cannot be reached: tries again every {} s", AGAIN.as_secs());
                        told = why;
                    }
                    sleep(AGAIN).await;
                }
                connected => return connected,
            }
        }
    }
}

/// The one cluster of an installation, in which it serves some namespaces.
///
/// # Errors
/// When there is not exactly one cluster, or no namespace.
pub fn served(installation: &Installation) -> Result<(ClusterName, ClusterSource), RunError> {
    if installation.caps.namespaces().is_empty() {
        return Err(RunError::NoNamespaces);
    }
    let mut clusters = installation.clusters.iter();
    match (clusters.next(), clusters.next()) {
        (Some((name, cluster)), None) => Ok((name.clone(), source_of(cluster))),
        _ => Err(RunError::Clusters(installation.clusters.len())),
    }
}

fn source_of(cluster: &installation::ClusterConfig) -> ClusterSource {
    match cluster {
        installation::ClusterConfig::InCluster => ClusterSource::InCluster,
        installation::ClusterConfig::Kubeconfig(path) => ClusterSource::KubeconfigFile(path.clone()),
    }
}

fn providers(installation: &Installation) -> Result<Providers, RunError> {
    let all = installation.providers.iter();
    all.map(|(name, provider)| {
        let provider = match provider.clone() {
            installation::Provider::Prometheus(installation::Prometheus { url, credentials_file }) => {
                ProviderClient::Prometheus(Arc::new(PrometheusClient::new(&url, credentials_file)?))
            }
            installation::Provider::Webhook(installation::Webhook { url, credentials_file, hmac_key_file }) => {
                ProviderClient::Webhook(Arc::new(WebhookClient::new(&url, credentials_file, hmac_key_file)?))
            }
        };
        Ok((name.clone(), provider))
    })
    .collect()
}

/// What lets in to the Git host, if the installation names one. Nothing is asked yet.
///
/// # Errors
/// When there is no HTTP client.
pub fn pass(installation: &Installation, clock: &Clock) -> Result<Option<Pass>, RunError> {
    let Some(host) = &installation.repository.forge else { return Ok(None) };
    let clock = clock.clone();
    Ok(Some(Pass::new(host, Box::new(move || clock.now())).map_err(NoClient::from)?))
}

/// The repository, of which only main is fetched without its past.
///
/// # Errors
/// When its address, a branch's name or the signing key cannot be used.
pub fn remote(installation: &Installation, pass: Option<&Pass>) -> Result<RemoteConfig, RunError> {
    let repository = &installation.repository;
    let mut config = RemoteConfig::new(repository.url.as_str().parse()?);
    config.shallow = Some(Branches::new(&installation.instance, &repository.branch)?.main);
    config.credentials_file.clone_from(&repository.credentials_file);
    config.lent = pass.and_then(Pass::lent);
    config.ssh = repository
        .ssh
        .clone()
        .map(|installation::SshFiles { key_file, known_hosts_file }| SshIdentity { key_file, known_hosts_file });
    config.signers_file.clone_from(&repository.signers_file);
    config.keyring_file.clone_from(&repository.keyring_file);
    config.signing = installation.signing.as_ref().map(signing).transpose()?;
    Ok(config)
}

/// The key that the record is signed with. It is read once: another one counts from the next start on.
fn signing(asked: &installation::Signing) -> Result<CommitSigning, RunError> {
    let installation::Signing { key_file, trusted } = asked;
    let wrong = |why: String| RunError::SigningKey { file: key_file.clone(), why };
    let text = std::fs::read(key_file).map(Zeroizing::new).map_err(|error| wrong(error.to_string()))?;
    let key = SigningKey::parse(&text).map_err(|error| wrong(error.to_string()))?;
    Ok(CommitSigning::new(Arc::new(key), trusted.iter().cloned()))
}
