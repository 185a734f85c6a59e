//! Where the repository is, how to get in, and how much of it is taken.

use super::GitError;
use super::fault_injection::FaultInjection;
use super::refs::RefName;
use super::signed::CommitSigning;
use crate::manifest::ssh_url::{InvalidSshUrl, SshUrl};
use futures::future::BoxFuture;
use secrecy::SecretString;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// The address of a repository: `http(s)://…` without user, password, query or fragment, `ssh://…`, or an absolute local path.
///
/// Everything else is refused: `ext::` and its kind start programs, `ssh://-o…` injects options, `file://` hides a local
/// path (CVE-2025-21613, RUSTSEC-2024-0335).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoteUrl {
    /// A smart HTTP server.
    Http(Url),
    /// A server behind SSH.
    Ssh(SshUrl),
    /// A repository on this machine.
    Local(PathBuf),
}

/// An address that is refused. The address itself is not repeated, as it may contain a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the repository URL {0}; expected https://HOST/PATH, http://HOST/PATH, ssh://git@HOST/PATH or an absolute path"
)]
pub struct InvalidUrl(String);

impl FromStr for RemoteUrl {
    type Err = InvalidUrl;

    fn from_str(text: &str) -> Result<Self, InvalidUrl> {
        let refuse = |why: &str| Err(InvalidUrl(why.to_owned()));
        if text.chars().any(char::is_control) {
            return refuse("contains a control character");
        }
        if text.starts_with('/') {
            return Ok(Self::Local(PathBuf::from(text)));
        }
        let Some((scheme, _)) = text.split_once("://") else {
            return refuse("has no scheme that is supported");
        };
        if scheme == "ssh" {
            return text
                .parse()
                .map(Self::Ssh)
                .map_err(|why: InvalidSshUrl| InvalidUrl(format!("does not have {why}")));
        }
        if !matches!(scheme, "http" | "https") {
            let shown: String = scheme.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '+').take(20).collect();
            return refuse(&format!("starts with {shown}://, which is not supported"));
        }
        let Ok(url) = Url::parse(text) else {
            return refuse("cannot be parsed");
        };
        if !url.username().is_empty() || url.password().is_some() {
            return refuse("contains a user or password; put them into the credentials file");
        }
        if url.query().is_some() || url.fragment().is_some() {
            return refuse("contains '?' or '#'");
        }
        Ok(Self::Http(url))
    }
}

impl fmt::Display for RemoteUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(url) => f.write_str(url.as_str().trim_end_matches('/')),
            Self::Ssh(url) => write!(f, "{url}"),
            Self::Local(path) => write!(f, "{}", path.display()),
        }
    }
}

/// One remote repository as the installation describes it.
#[derive(Debug, Clone)]
pub struct RemoteConfig {
    /// Its address.
    pub url: RemoteUrl,
    /// The branch that is fetched without its past at first; all others are fetched whole.
    pub shallow: Option<RefName>,
    /// A file with `USER:PASSWORD`, a bare token, or lines of git-credentials. Read anew for every request.
    pub credentials_file: Option<PathBuf>,
    /// Who to be instead, where no file says it: what a person's credential helper answered.
    pub login: Option<Login>,
    /// Who lends one instead, for each request anew; counts more than both.
    pub lent: Option<Lent>,
    /// Certificates (PEM) that are trusted besides the system's.
    pub ca_file: Option<PathBuf>,
    /// Who we are behind SSH, and which hosts are believed. Without it no such server is asked.
    pub ssh: Option<SshIdentity>,
    /// What commits of the record are signed with, and whose are believed; all are, where there is none.
    pub signing: Option<CommitSigning>,
    /// The list of who may sign the tip of main, as `ssh-keygen` reads it. Read anew each time; none, where nobody has to.
    pub signers_file: Option<PathBuf>,
    /// The OpenPGP keys of who may sign it, armoured, likewise. With both files whoever is in either may.
    pub keyring_file: Option<PathBuf>,
    /// How long to wait.
    pub timeouts: Timeouts,
    /// How much to take.
    pub limits: RemoteLimits,
    /// What goes wrong on purpose; only with a repository on this machine.
    pub fault_injection: Option<FaultInjection>,
}

impl RemoteConfig {
    /// A repository with default timeouts and limits, without credentials.
    #[must_use]
    pub fn new(url: RemoteUrl) -> Self {
        Self {
            url,
            shallow: None,
            credentials_file: None,
            login: None,
            lent: None,
            ca_file: None,
            ssh: None,
            signing: None,
            signers_file: None,
            keyring_file: None,
            timeouts: Timeouts::default(),
            limits: RemoteLimits::default(),
            fault_injection: None,
        }
    }
}

/// Who we are behind SSH, and who the server is: files that OpenSSH reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshIdentity {
    /// The private key, without a passphrase.
    pub key_file: PathBuf,
    /// The keys of hosts, as `known_hosts` has them. No other host key is believed.
    pub known_hosts_file: PathBuf,
}

/// A user and a password. The password is never shown.
#[derive(Debug, Clone)]
pub struct Login {
    /// The user.
    pub user: String,
    /// The password, or a token.
    pub password: SecretString,
}

/// Why a login is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// It is not known, or not any more.
    Unknown,
    /// It may not do what was asked. A later one may, if that was granted meanwhile.
    Lacking,
}

/// Who lends logins that end by themselves.
pub trait Lender: Send + Sync {
    /// One for a request that is made now.
    fn lend(&self) -> BoxFuture<'_, Result<Login, GitError>>;

    /// The server did not take it: it is not lent again, if another one may be taken.
    fn refused<'a>(&'a self, login: &'a Login, why: Refusal) -> BoxFuture<'a, ()>;

    /// Where to look when the server refuses one.
    fn hint(&self) -> String;
}

/// Who lends logins. Clones are the same one.
#[derive(Clone)]
pub struct Lent(pub(super) Arc<dyn Lender>);

impl Lent {
    /// By that one.
    #[must_use]
    pub fn by(lender: Arc<impl Lender + 'static>) -> Self {
        Self(lender)
    }
}

impl fmt::Debug for Lent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lent")
    }
}

/// How long to wait for a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Until the connection stands.
    pub connect: Duration,
    /// Until the next byte comes.
    pub read: Duration,
    /// Until a whole operation has ended.
    pub total: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect: Duration::from_secs(5), read: Duration::from_secs(30), total: Duration::from_secs(120) }
    }
}

/// How much of a repository is taken. What exceeds a limit is refused as a whole, a large blob alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteLimits {
    /// Refs below the prefixes that were asked for.
    pub refs: usize,
    /// Bytes of one list of refs.
    pub advertisement_bytes: u64,
    /// Bytes of one fetch, and of all blobs of one read.
    pub fetch_bytes: u64,
    /// Bytes of all manifests of one tenant.
    pub tenant_bytes: u64,
    /// Bytes of one blob; a larger one becomes [`Entry::TooLarge`](crate::manifest::files::Entry::TooLarge).
    pub blob_bytes: u64,
    /// Entries of all trees that one read visits.
    pub entries: usize,
    /// Parts of a path; more than 32 are never allowed.
    pub depth: usize,
    /// Packs that the cache may have; every look-up of an object may open them all.
    pub packs: usize,
}

impl Default for RemoteLimits {
    fn default() -> Self {
        Self {
            refs: 100_000,
            advertisement_bytes: 16 << 20, // 10⁵ refs of 160 bytes
            fetch_bytes: 256 << 20,
            tenant_bytes: 64 << 20,
            blob_bytes: 1 << 20, // about what etcd takes in one object
            entries: 100_000,
            depth: 32,
            packs: 50, // Git's own default
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attack_19_only_http_ssh_and_absolute_paths() {
        for good in [
            "https://git.example/a/b.git",
            "http://127.0.0.1:3000/x/",
            "/srv/git/repo.git",
            "ssh://git@host:2222/x.git",
        ] {
            good.parse::<RemoteUrl>().unwrap_or_else(|e| panic!("{good}: {e}"));
        }
        for bad in [
            "",
            "repo.git",
            "../repo.git",
            "ext::sh -c id",
            "fd::3",
            "file:///srv/repo.git",
            "ssh://-oProxyCommand=id/x",
            "git@host:repo.git",
            "git://host/x",
            "https://",
            "https://user@host/x",
            "https://user:canary@host/x",
            "https://:canary@host/x",
            "ssh://u:canary@host/x",
            "https://host/x?token=canary",
            "https://host/x#y",
            "/srv/a\nb",
        ] {
            let error = bad.parse::<RemoteUrl>().expect_err(bad).to_string();
            assert!(!error.contains("canary"), "{error}");
        }
        assert_eq!("https://h/a/".parse::<RemoteUrl>().unwrap().to_string(), "https://h/a");
    }
}
