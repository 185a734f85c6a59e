//! Requests to a smart HTTP server: one client, no redirects, every byte counted, every failure sorted.

use super::ref_list::UNASKED;
use super::remote::{Lent, Login, Refusal, RemoteConfig, Timeouts};
use super::{GitError, credentials};
use crate::record::text::{causes, plain};
use bytes::Bytes;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, LOCATION, RETRY_AFTER};
use reqwest::{Certificate, Client, StatusCode};
use secrecy::ExposeSecret;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use url::Url;

/// A service of a Git server.
#[derive(Debug, Clone, Copy)]
pub(super) enum Service {
    /// Reading.
    UploadPack,
    /// Writing.
    ReceivePack,
}

impl Service {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::UploadPack => "git-upload-pack",
            Self::ReceivePack => "git-receive-pack",
        }
    }
}

/// One request.
#[derive(Debug)]
pub(super) enum Ask {
    /// What refs and capabilities a service has.
    Advertise(Service),
    /// A command to a service.
    Command(Service, Vec<u8>),
}

/// The version of the protocol that a request offers to speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    /// What libgit2 speaks.
    V0,
    /// Commands instead of one long advertisement.
    V2,
}

/// What an answer may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    /// When the operation must have ended.
    pub(super) deadline: Instant,
    /// Bytes of the answer, after decompression.
    pub(super) bytes: u64,
}

impl Budget {
    /// The same for a list of which so much is kept.
    pub(super) fn with_unasked(self) -> Self {
        Self { bytes: self.bytes.saturating_mul(UNASKED), ..self }
    }
}

/// The client of one repository.
#[derive(Debug)]
pub(super) struct Http {
    client: Client,
    url: Url,
    credentials_file: Option<PathBuf>,
    login: Option<Login>,
    lent: Option<Lent>,
    total: Duration,
}

impl Http {
    pub(super) fn new(url: Url, config: &RemoteConfig) -> Result<Self, GitError> {
        let Timeouts { connect, read, total } = config.timeouts;
        let mut client = Client::builder()
            // Some hosts serve a web page to clients that do not call themselves git.
            .user_agent(concat!("git/tidegate-", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(connect)
            .read_timeout(read);
        if let Some(file) = &config.ca_file {
            let wrong = |why: String| GitError::Config(format!("the CA file {}: {why}", file.display()));
            let pem = std::fs::read(file).map_err(|e| wrong(e.to_string()))?;
            let found = Certificate::from_pem_bundle(&pem).map_err(|e| wrong(causes(&e)))?;
            if found.is_empty() {
                return Err(wrong("no certificate in it".to_owned()));
            }
            client = client.tls_certs_merge(found);
        }
        let client = client.build().map_err(|e| GitError::Config(format!("the HTTP client: {}", causes(&e))))?;
        let (credentials_file, login) = (config.credentials_file.clone(), config.login.clone());
        Ok(Self { client, url, credentials_file, login, lent: config.lent.clone(), total })
    }

    /// What an operation that starts now may take.
    pub(super) fn budget(&self, bytes: u64) -> Budget {
        Budget { deadline: Instant::now() + self.total, bytes }
    }

    /// The failure of an operation that took too long.
    pub(super) fn late(&self, doing: &str) -> GitError {
        late(doing, self.total)
    }

    /// Sends one request and waits for the head of the answer.
    ///
    /// # Errors
    /// Every failure, sorted; an answer of another content type than Git's is `Protocol`.
    pub(super) async fn ask(&self, ask: Ask, version: Version, budget: Budget) -> Result<Answer, GitError> {
        let base = self.url.as_str().trim_end_matches('/');
        let (doing, request, expected) = match ask {
            Ask::Advertise(service) => {
                let url = format!("{base}/info/refs?service={}", service.name());
                let expected = format!("application/x-{}-advertisement", service.name());
                (format!("GET {url}"), self.client.get(url), expected)
            }
            Ask::Command(service, body) => {
                let url = format!("{base}/{}", service.name());
                let expected = format!("application/x-{}-result", service.name());
                let sent = format!("application/x-{}-request", service.name());
                (format!("POST {url}"), self.client.post(url).header(CONTENT_TYPE, sent).body(body), expected)
            }
        };
        let mut request = request.header(ACCEPT, &expected);
        if version == Version::V2 {
            request = request.header("git-protocol", "version=2");
        }
        let login = match timeout_at(budget.deadline, self.login()).await {
            Err(_) => return Err(late(&doing, self.total)),
            Ok(login) => login?,
        };
        if let Some(found) = &login {
            request = request.basic_auth(&found.user, Some(found.password.expose_secret()));
        }
        let response = match timeout_at(budget.deadline, request.send()).await {
            Err(_) => return Err(late(&doing, self.total)),
            Ok(Err(error)) => return Err(GitError::Away { doing, why: causes(&error) }),
            Ok(Ok(response)) => response,
        };
        if let Some(error) = self.refusal(&doing, &response) {
            let why = match (&error, response.status()) {
                (GitError::Denied { .. }, StatusCode::UNAUTHORIZED) => Some(Refusal::Unknown),
                (GitError::Denied { .. }, _) => Some(Refusal::Lacking),
                _ => None,
            };
            if let (Some(why), Some(Lent(lender)), Some(login)) = (why, &self.lent, &login) {
                lender.refused(login, why).await;
            }
            return Err(error);
        }
        let found = header(response.headers(), &CONTENT_TYPE);
        if found != expected {
            let why = format!("content type {found:?} instead of {expected}; is it the URL of a Git repository?");
            return Err(GitError::Protocol { doing, why });
        }
        Ok(Answer { doing, response, budget, left: budget.bytes, total: self.total })
    }

    /// Who to be in a request that is made now.
    async fn login(&self) -> Result<Option<Login>, GitError> {
        match (&self.lent, &self.credentials_file) {
            (Some(Lent(lender)), _) => lender.lend().await.map(Some),
            (None, Some(file)) => credentials::read(file, &self.url).await.map(Some),
            (None, None) => Ok(self.login.clone()),
        }
    }

    fn refusal(&self, doing: &str, response: &reqwest::Response) -> Option<GitError> {
        let (status, headers, doing) = (response.status(), response.headers(), doing.to_owned());
        // A rate limit of GitHub is a 403 that says when to come back.
        if status == StatusCode::FORBIDDEN && headers.contains_key(RETRY_AFTER) {
            return Some(GitError::Away { doing, why: "rate limit (403)".to_owned() });
        }
        match status.as_u16() {
            200 => None,
            401 | 403 => Some(GitError::Denied { doing, said: status.as_u16().to_string(), hint: self.hint() }),
            404 | 410 => Some(GitError::Missing(format!("the repository {}, as far as we may see,", self.url))),
            300..=399 => {
                let to = bare(&header(headers, &LOCATION));
                let why = format!("a redirect to {to}, which is not followed; put the final URL into the settings");
                Some(GitError::Protocol { doing, why })
            }
            408 | 425 | 429 | 500..=599 => Some(GitError::Away { doing, why: format!("HTTP {status}") }),
            _ => Some(GitError::Protocol { doing, why: format!("HTTP {status}") }),
        }
    }

    fn hint(&self) -> String {
        if let Some(Lent(lender)) = &self.lent {
            return lender.hint();
        }
        match (&self.credentials_file, &self.login) {
            (Some(file), _) => format!("check the credentials in {} and what they allow", file.display()),
            (None, Some(login)) => format!("check what {:?} of the credential helper may do", login.user),
            (None, None) => "no credentials file is set".to_owned(),
        }
    }
}

/// The body of an answer, within its budget.
#[derive(Debug)]
pub(super) struct Answer {
    /// The request that it answers, for error texts.
    pub(super) doing: String,
    response: reqwest::Response,
    budget: Budget,
    left: u64,
    total: Duration,
}

impl Answer {
    /// The next bytes; `None` at the end.
    ///
    /// # Errors
    /// `Away` when the answer stops before its end, `Limit` when it is too long.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, GitError> {
        let chunk = match timeout_at(self.budget.deadline, self.response.chunk()).await {
            Err(_) => return Err(late(&self.doing, self.total)),
            Ok(Err(error)) => {
                let why = format!("the answer was cut off: {}", causes(&error));
                return Err(GitError::Away { doing: self.doing.clone(), why });
            }
            Ok(Ok(chunk)) => chunk,
        };
        let len = chunk.as_ref().map_or(0, |c| c.len() as u64);
        self.left = self.left.checked_sub(len).ok_or_else(|| GitError::Limit {
            what: format!("the answer to {}", self.doing),
            limit: format!("{} bytes", self.budget.bytes),
        })?;
        Ok(chunk)
    }
}

/// The failure of an operation that had so long.
pub(super) fn late(doing: &str, total: Duration) -> GitError {
    GitError::Away { doing: doing.to_owned(), why: format!("no complete answer within {} s", total.as_secs_f32()) }
}

fn header(headers: &HeaderMap, name: &HeaderName) -> String {
    plain(headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("none"))
}

/// A foreign URL without what may be secret in it: user, password, query.
fn bare(location: &str) -> String {
    match Url::parse(location) {
        Ok(url) => format!("{}://{}{}", url.scheme(), url.host_str().unwrap_or_default(), url.path()),
        Err(_) => location.split(['?', '#', '@']).next().unwrap_or_default().to_owned(),
    }
}
