//! Why a process cannot go on.

use crate::analysis::http::NoClient;
use crate::cluster::connection::ClusterError;
use crate::git::{GitError, InvalidUrl};
use crate::manifest::ids::InvalidId;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why a process cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The installation names more or fewer clusters than one.
    #[error("the installation names {0} clusters; this version serves exactly one")]
    Clusters(usize),
    /// The installation does not say which namespaces to watch.
    #[error("the installation's caps.namespaces is empty; list the namespaces that this controller serves")]
    NoNamespaces,
    /// The repository's address.
    #[error(transparent)]
    Url(#[from] InvalidUrl),
    /// The name of a branch.
    #[error(transparent)]
    Branch(#[from] InvalidId),
    /// The Git cache.
    #[error("failed to open the Git cache: {0}")]
    Git(#[from] GitError),
    /// The key that the record is signed with.
    #[error("cannot use the signing key {}: {why}", file.display())]
    SigningKey {
        /// Its file.
        file: PathBuf,
        /// Why.
        why: String,
    },
    /// The cluster.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// A provider of measurements.
    #[error(transparent)]
    Provider(#[from] NoClient),
    /// The address to listen at.
    #[error("failed to listen at {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The address to hear webhooks at.
    #[error(
        "report.webhook of the installation is {0:?}; write an address and a port up to 65535, such as 0.0.0.0:8081"
    )]
    WebhookAddress(String),
    /// The process cannot be told to stop.
    #[error("failed to listen for signals: {0}")]
    Signals(#[source] std::io::Error),
    /// The time of `--once` is over, and this process never led.
    #[error("never led within the time given: {0}")]
    NeverLed(String),
    /// A task ended that never should.
    #[error("a background task ended: {0}")]
    Task(String),
}
