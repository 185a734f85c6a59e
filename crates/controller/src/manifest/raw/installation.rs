//! The installation as people, or the chart, write it.

use super::NodeSelector;
use crate::manifest::duration::Span;
use crate::manifest::ids::{ClusterName, InstanceName, Namespace, ProviderName};
use crate::manifest::other::GroupKind;
use crate::sign::PublicKey;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// One controller. Secrets stand in files; this file only names them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InstallationSpec {
    /// The name of the installation: part of branch names, of the Lease and of the owner mark.
    pub instance: InstanceName,
    /// Where desired state and the record are.
    pub repository: Repository,
    /// What the record is signed with. Left out: it is not signed, and every commit of the state branch is believed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Signing")]
    pub signing: Option<Signing>,
    /// The clusters, by the name that the policy uses.
    #[schemars(extend("minProperties" = 1))]
    pub clusters: BTreeMap<ClusterName, Cluster>,
    /// Who answers the questions of checks, by the names that checks use.
    #[serde(default)]
    pub providers: BTreeMap<ProviderName, Provider>,
    /// The most that any policy may allow. Left out: whatever the policy allows.
    #[serde(default)]
    pub caps: Caps,
    /// Whether each rollout is shown as an object of Kubernetes, `rollouts.tidegate.io`.
    #[serde(default)]
    #[schemars(with = "bool")]
    pub projection: Projection,
    /// Where the process is told, and tells, beside the address of its numbers and its health.
    #[serde(default)]
    pub report: Report,
    /// The proxies that teams share, whose routes are looked at beside those of the namespaces. Left out: what others route is not seen.
    #[serde(default)]
    pub gateways: Gateways,
}

/// The proxies that teams share. Nothing of theirs is written.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Gateways {
    /// Gloo, whose VirtualServices delegate to RouteTables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Gateway")]
    pub gloo: Option<Gateway>,
    /// Contour, whose roots include HTTPProxies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Gateway")]
    pub contour: Option<Gateway>,
}

/// A proxy that teams share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Gateway {
    /// The namespace in which operations has what delegates to teams.
    pub namespace: Namespace,
}

/// Where the process is told, and tells, beside the address of its numbers and its health.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Report {
    /// The address that hears the webhooks of the Git host, such as `0.0.0.0:8081` or `[::]:8081`, and nothing else. Nobody listens
    /// there without `repository.webhookSecretFile`.
    #[serde(default = "default_webhook")]
    #[schemars(extend("pattern" = r"^(\[[0-9A-Fa-f:.]+\]|[0-9.]+):[0-9]{1,5}$"))]
    pub webhook: String,
}

fn default_webhook() -> String {
    "0.0.0.0:8081".to_owned()
}

impl Default for Report {
    fn default() -> Self {
        Self { webhook: default_webhook() }
    }
}

/// Whether each rollout is shown as an object of Kubernetes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "bool", into = "bool")]
pub enum Projection {
    /// It is.
    On,
    /// It is not, and no right is needed for it.
    #[default]
    Off,
}

impl From<bool> for Projection {
    fn from(shown: bool) -> Self {
        if shown { Self::On } else { Self::Off }
    }
}

impl From<Projection> for bool {
    fn from(projection: Projection) -> Self {
        projection == Projection::On
    }
}

/// Where desired state and the record are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Repository {
    /// `https://…` or `http://…`, without a user or password, or `ssh://git@HOST/PATH`.
    #[schemars(extend("format" = "git-url"))]
    pub url: String,
    /// The branch that people write desired state to.
    #[serde(default = "default_branch")]
    #[schemars(extend("format" = "branch"))]
    pub branch: String,
    /// How often the repository is looked at.
    #[serde(default = "default_poll")]
    pub poll: Span,
    /// The file with the credentials: `user:password` or a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("format" = "file-path"))]
    pub credentials_file: Option<String>,
    /// Who to be behind `ssh://`, and which hosts to believe. With such a URL, and no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Ssh")]
    pub ssh: Option<Ssh>,
    /// The file with the secret that the webhooks of the Git host are signed with: one line. They let the next poll come at
    /// once; left out, none are heard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("format" = "file-path"))]
    pub webhook_secret_file: Option<String>,
    /// The list of who may sign the tip of the branch that people write to, as `ssh-keygen` reads it (ALLOWED SIGNERS), and
    /// decisions, where no Git host with an API is named. Left out: nobody has to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("format" = "file-path"))]
    pub allowed_signers_file: Option<String>,
    /// The OpenPGP keys of who may sign it, as `gpg --armor --export` writes them. With a list too, whoever is in either may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("format" = "file-path"))]
    pub keyring_file: Option<String>,
    /// The Git host.
    #[serde(default)]
    pub forge: Forge,
}

fn default_branch() -> String {
    "main".to_owned()
}

fn default_poll() -> Span {
    Span::from_secs(30)
}

/// Who to be behind `ssh://`, and which hosts to believe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Ssh {
    /// The file with the private key, in any form that OpenSSH reads, without a passphrase.
    #[schemars(extend("format" = "file-path"))]
    pub key_file: String,
    /// The file with the host's keys, as `ssh-keyscan` prints them. No other key of a host is believed.
    #[schemars(extend("format" = "file-path"))]
    pub known_hosts_file: String,
}

/// What the record is signed with, and whose signatures are believed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Signing {
    /// The file with the private key: ed25519, without a passphrase, as `ssh-keygen -t ed25519 -N ''` writes it.
    #[schemars(extend("format" = "file-path"))]
    pub key_file: String,
    /// Further public keys whose commits are believed, as `*.pub` files hold them: the one before, and those of people who
    /// may bring a record back. The installation's own is always believed.
    #[serde(default)]
    #[schemars(extend("maxItems" = 20))]
    pub trusted: Vec<PublicKey>,
}

/// The Git host.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Forge {
    /// What it can do.
    #[serde(default)]
    pub kind: ForgeKind,
    /// Where its API is, such as `https://HOST/api/v1` (Gitea), `https://HOST/api/v3` (GitHub Enterprise) or `https://HOST/api/v4`
    /// (GitLab). Left out: where the host of the repository has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("format" = "http-url"))]
    pub url: Option<String>,
    /// The file with the API token: one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("format" = "file-path"))]
    pub token_file: Option<String>,
    /// Which GitHub App to be, instead of the account of a token. Over https Git is let in by it too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "App")]
    pub app: Option<App>,
    /// The number that the host gave the repository, which no other one gets. Left out: whatever lies at its URL is followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64", extend("minimum" = 1))]
    pub repository_id: Option<u64>,
    /// Whether people are told what their own pull requests to that branch would come to, by a commit status or a check, and a comment.
    #[serde(default)]
    #[schemars(with = "bool")]
    pub feedback: Feedback,
}

/// A GitHub App that is installed where the repository is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct App {
    /// Its App ID or its client ID, in quotes.
    #[schemars(extend("pattern" = "^[A-Za-z0-9.]{1,60}$"))]
    pub id: String,
    /// The number of its installation, in quotes. Left out: that of the repository is looked up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("pattern" = "^[1-9][0-9]{0,18}$"))]
    pub installation: Option<String>,
    /// The file with its private key, as GitHub hands it out (RSA, PEM).
    #[schemars(extend("format" = "file-path"))]
    pub key_file: String,
}

/// Whether people are told what their own pull requests would come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "bool", into = "bool")]
pub enum Feedback {
    /// They are.
    #[default]
    On,
    /// They are not, and their pull requests are not read.
    Off,
}

impl From<bool> for Feedback {
    fn from(told: bool) -> Self {
        if told { Self::On } else { Self::Off }
    }
}

impl From<Feedback> for bool {
    fn from(feedback: Feedback) -> Self {
        feedback == Feedback::On
    }
}

/// What a Git host can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ForgeKind {
    /// Branches and nothing more: merging a proposed branch approves, deleting it unmerged denies.
    #[default]
    Branch,
    /// Pull requests, by the API of Gitea or Forgejo.
    Gitea,
    /// Pull requests, by the API of GitHub or GitHub Enterprise.
    Github,
    /// Merge requests, by the API of GitLab.
    Gitlab,
}

/// How a cluster is reached: by exactly one of `inCluster` and `kubeconfigFile`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Cluster {
    /// The cluster that the controller runs in, with its service account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "InCluster")]
    pub in_cluster: Option<InCluster>,
    /// A kubeconfig file, its current context. Plugins that start programs are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("format" = "file-path"))]
    pub kubeconfig_file: Option<String>,
}

/// Nothing to say about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InCluster {}

/// Who answers the questions of checks: exactly one of `prometheus` and `webhook`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    /// A Prometheus, or what speaks its query API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Prometheus")]
    pub prometheus: Option<Prometheus>,
    /// A webhook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Webhook")]
    pub webhook: Option<Webhook>,
}

/// A Prometheus.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Prometheus {
    /// `https://…` or `http://…`, without a user or password; what `/api/v1` follows.
    #[schemars(extend("format" = "http-url"))]
    pub url: String,
    /// The file with the credentials: `user:password` or a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("format" = "file-path"))]
    pub credentials_file: Option<String>,
}

/// A webhook: asked by POST, judges by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Webhook {
    /// `https://…` or `http://…`, without a user or password: exactly what is asked.
    #[schemars(extend("format" = "http-url"))]
    pub url: String,
    /// The file with the credentials: `user:password` or a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("format" = "file-path"))]
    pub credentials_file: Option<String>,
    /// The file with the key that questions are signed with: one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("format" = "file-path"))]
    pub hmac_key_file: Option<String>,
}

/// The most that any policy may allow.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Caps {
    /// The namespaces. Empty: those of the policy.
    #[serde(default)]
    pub namespaces: BTreeSet<Namespace>,
    /// The kinds of objects that a set may hold, and Job for what stands before steps: of those that tidegate has a role for by their names,
    /// of any other as GROUP/KIND. Of the first no other is written, or watched for what rollouts have; if none is named, all are. The
    /// others may be there beside the usual ones (docs/files.md), which fall away where any of the first is named.
    #[serde(default)]
    pub kinds: BTreeSet<GroupKind>,
    /// The nodes that rollouts may configure, of those that the policy lets a tenant have; `{}` for all. Left out: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "NodeSelector")]
    pub nodes: Option<NodeSelector>,
}
