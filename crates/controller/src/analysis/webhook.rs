//! A webhook: one POST for each question, signed, whose answer is a verdict.
//!
//! It never tells what says something about the version from what does not: whatever fails is a [`Reading`] that holds.

use super::call::{self, Call, WebhookVerdict};
use super::http::{Endpoint, NoClient, Unread, away, secret};
use super::provider::Judges;
use super::reading::Reading;
use crate::manifest::hex::hex;
use aws_lc_rs::hmac;
use futures::future::{BoxFuture, FutureExt};
use reqwest::StatusCode;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use std::path::PathBuf;
use url::Url;

/// The most bytes of an answer.
const ANSWER: usize = 64 << 10;
/// Where the signature of a question stands.
const SIGNATURE: HeaderName = HeaderName::from_static("x-tidegate-signature");

/// A webhook of the installation.
pub struct WebhookClient {
    endpoint: Endpoint,
    key_file: Option<PathBuf>,
}

impl WebhookClient {
    /// The server that is asked at exactly `url`. Credentials (one line, `USER:PASSWORD` or a token) and key (one line)
    /// are read at each question, so that new ones count at once.
    ///
    /// # Errors
    /// When there can be no client.
    pub fn new(url: &Url, credentials_file: Option<PathBuf>, key_file: Option<PathBuf>) -> Result<Self, NoClient> {
        Ok(Self { endpoint: Endpoint::new(url.clone(), credentials_file)?, key_file })
    }

    async fn ask(&self, call: &Call) -> Result<Reading<WebhookVerdict>, Unread> {
        let question = call::body(call);
        let mut headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        if let Some(file) = &self.key_file {
            let signature = signature(&secret(file, "HMAC key").await?, &question);
            headers.insert(SIGNATURE, signature.parse().expect("hex digits are a header because they are ASCII"));
        }
        let (status, body) = self.endpoint.post(headers, question, ANSWER).await?;
        Ok(match status {
            StatusCode::OK => call::answer(call, &body),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                away(&format!("HTTP {status}; {}", self.endpoint.hint()))
            }
            // What else it says may be anybody's.
            _ => away(&format!("HTTP {status}")),
        })
    }
}

impl Judges for WebhookClient {
    fn call<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Reading<WebhookVerdict>> {
        let too_long = "the answer is larger than 64 KiB";
        async move { self.ask(call).await.unwrap_or_else(|unread| unread.reading(too_long)) }.boxed()
    }
}

/// The signature of a text: HMAC-SHA256 over its exact bytes.
fn signature(key: &str, text: &str) -> String {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes()), text.as_bytes());
    format!("sha256={}", hex(tag.as_ref()))
}

#[cfg(test)]
mod tests;
