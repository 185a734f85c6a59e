//! One address that questions are posted to. Secrets stand in files, which are read at each question, so that new ones count
//! at once; no error holds one.

use super::reading::Reading;
use crate::record::text::{causes, plain};
use reqwest::header::{ACCEPT, HeaderMap, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use std::path::{Path, PathBuf};
use std::time::Duration;
use url::Url;

const CONNECT: Duration = Duration::from_secs(5);

/// There is no HTTP client: this machine's certificates cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("failed to prepare an HTTP client: {}", causes(.0))]
pub struct NoClient(#[from] reqwest::Error);

/// Why there is no answer that could be read.
pub(super) enum Unread {
    /// Nobody gave one.
    Away(String),
    /// It is longer than any good answer.
    TooLong,
}

impl Unread {
    /// What that says; of an answer that is too long, this.
    pub(super) fn reading<T>(self, too_long: &str) -> Reading<T> {
        match self {
            Self::Away(why) => away(&why),
            Self::TooLong => Reading::Unusable(too_long.to_owned()),
        }
    }
}

pub(super) fn away<T>(why: &str) -> Reading<T> {
    Reading::Away(plain(why))
}

/// An address with the credentials for it, if there are any.
pub(super) struct Endpoint {
    client: Client,
    url: Url,
    credentials_file: Option<PathBuf>,
}

impl Endpoint {
    pub(super) fn new(url: Url, credentials_file: Option<PathBuf>) -> Result<Self, NoClient> {
        let client = Client::builder()
            .user_agent(concat!("tidegate/", env!("CARGO_PKG_VERSION")))
            // Credentials go nowhere else, and a login page is no answer.
            .redirect(Policy::none())
            .connect_timeout(CONNECT);
        Ok(Self { client: client.build()?, url, credentials_file })
    }

    /// What can be done where it is said that we may not ask.
    pub(super) fn hint(&self) -> String {
        match &self.credentials_file {
            Some(file) => format!("check the credentials in {}", file.display()),
            None => "no credentials file is set".to_owned(),
        }
    }

    /// Asks; the answer has at most so many bytes.
    pub(super) async fn post(
        &self,
        headers: HeaderMap,
        body: String,
        most: usize,
    ) -> Result<(StatusCode, Vec<u8>), Unread> {
        let request = self.client.post(self.url.clone()).header(ACCEPT, "application/json").headers(headers).body(body);
        let response = self.logged_in(request).await?.send().await.map_err(|error| Unread::Away(causes(&error)))?;
        let status = response.status();
        if status.is_redirection() {
            let to = response.headers().get(LOCATION).and_then(|to| to.to_str().ok()).unwrap_or("nowhere");
            let to = to.split(['?', '#']).next().unwrap_or_default();
            return Err(Unread::Away(format!("a redirect to {to}, which is not followed: is the URL right?")));
        }
        Ok((status, whole(response, most).await?))
    }

    /// With the credentials, if there are any: `USER:PASSWORD` or a token.
    async fn logged_in(&self, request: RequestBuilder) -> Result<RequestBuilder, Unread> {
        let Some(file) = &self.credentials_file else { return Ok(request) };
        let line = secret(file, "credentials").await?;
        Ok(match line.split_once(':') {
            Some((user, password)) => request.basic_auth(user, Some(password)),
            None => request.bearer_auth(line),
        })
    }
}

/// The one line of a file that holds a secret.
pub(super) async fn secret(file: &Path, what: &str) -> Result<String, Unread> {
    let wrong = |why: &str| Unread::Away(format!("the {what} file {}: {why}", file.display()));
    let text = tokio::fs::read_to_string(file).await.map_err(|error| wrong(&error.to_string()))?;
    match text.trim() {
        "" => Err(wrong("it is empty")),
        text if text.contains('\n') => Err(wrong("it has more than one line")),
        line => Ok(line.to_owned()),
    }
}

async fn whole(mut response: Response, most: usize) -> Result<Vec<u8>, Unread> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| Unread::Away(causes(&error)))? {
        body.extend_from_slice(&chunk);
        if body.len() > most {
            return Err(Unread::TooLong);
        }
    }
    Ok(body)
}
