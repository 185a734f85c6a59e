//! A Prometheus, or what speaks its query API (Thanos, Mimir, VictoriaMetrics): one range query for each question
//! (<https://prometheus.io/docs/prometheus/latest/querying/api/#range-queries>).
//!
//! It never tells what says something about the version from what does not: it only reads, and whatever fails is a
//! [`Reading`] that holds.

use super::judge::{Range, Reading};
use super::provider::Provider;
use crate::record::state::Time;
use crate::record::text::{causes, plain};
use chrono::SecondsFormat;
use futures::future::{BoxFuture, FutureExt};
use reqwest::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use url::Url;
use url::form_urlencoded::Serializer;

/// The most bytes of an answer: a question asks for 1,000 samples of one series at most.
const ANSWER: usize = 1 << 20;
const CONNECT: Duration = Duration::from_secs(5);

/// A Prometheus of the installation.
pub struct Prometheus {
    client: Client,
    /// Where range queries are asked.
    endpoint: Url,
    credentials_file: Option<PathBuf>,
}

/// There is no HTTP client: this machine's certificates cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("failed to prepare an HTTP client: {}", causes(.0))]
pub struct NoClient(#[from] reqwest::Error);

impl Prometheus {
    /// The server at `url`, which may have a path. The credentials are read at each question, so that new ones count at
    /// once: one line, `USER:PASSWORD` or a token.
    ///
    /// # Errors
    /// When there can be no client.
    pub fn new(url: &Url, credentials_file: Option<PathBuf>) -> Result<Self, NoClient> {
        let mut endpoint = url.clone();
        endpoint.set_path(&format!("{}/api/v1/query_range", url.path().trim_end_matches('/')));
        let client = Client::builder()
            .user_agent(concat!("tidegate/", env!("CARGO_PKG_VERSION")))
            // Credentials go nowhere else, and a login page is no answer.
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT);
        Ok(Self { client: client.build()?, endpoint, credentials_file })
    }

    /// With the credentials, if there are any.
    async fn logged_in(&self, request: RequestBuilder) -> Result<RequestBuilder, Reading> {
        let Some(file) = &self.credentials_file else { return Ok(request) };
        let wrong = |why: String| away(format!("the credentials file {}: {why}", file.display()));
        let text = tokio::fs::read_to_string(file).await.map_err(|error| wrong(error.to_string()))?;
        match text.trim() {
            "" => Err(wrong("it is empty".to_owned())),
            text if text.contains('\n') => Err(wrong("it has more than one line".to_owned())),
            line => Ok(match line.split_once(':') {
                Some((user, password)) => request.basic_auth(user, Some(password)),
                None => request.bearer_auth(line),
            }),
        }
    }

    fn hint(&self) -> String {
        match &self.credentials_file {
            Some(file) => format!("check the credentials in {}", file.display()),
            None => "no credentials file is set".to_owned(),
        }
    }

    async fn ask(&self, range: &Range) -> Result<Reading, Reading> {
        let moment = |at: Time| at.to_rfc3339_opts(SecondsFormat::Nanos, true);
        let body = Serializer::new(String::new())
            .append_pair("query", &range.query.query)
            .append_pair("start", &moment(range.from))
            .append_pair("end", &moment(range.until))
            .append_pair("step", &range.interval.as_secs().to_string())
            .finish();
        let request = self.client.post(self.endpoint.clone()).header(ACCEPT, "application/json");
        let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(body);
        let response = self.logged_in(request).await?.send().await.map_err(|error| away(causes(&error)))?;
        let status = response.status();
        if status.is_redirection() {
            let to = response.headers().get(LOCATION).and_then(|to| to.to_str().ok()).unwrap_or("nowhere");
            let to = to.split(['?', '#']).next().unwrap_or_default();
            return Err(away(format!("a redirect to {to}, which is not followed: is it the URL of a Prometheus?")));
        }
        let body = whole(response).await?;
        Ok(match (status, serde_json::from_slice(&body)) {
            // A part of the answer may be missing, as where a store behind Thanos is away.
            (StatusCode::OK, Ok(Answer::Success { warnings, .. })) if !warnings.is_empty() => {
                Reading::Unusable(format!("the answer has a warning: {}", plain(&warnings.join("; "))))
            }
            (StatusCode::OK, Ok(Answer::Success { data, .. })) => series(range, data),
            // Its own words for a query that it cannot parse or evaluate. Others come when they do not let us in.
            (StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY, Ok(Answer::Error { error })) => {
                Reading::Unusable(format!("the query is refused: {}", plain(&error)))
            }
            (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, _) => away(format!("HTTP {status}; {}", self.hint())),
            (_, Ok(Answer::Error { error })) => away(format!("HTTP {status}: {error}")),
            (StatusCode::OK, Err(_)) => away("what answers is no Prometheus: that is not its JSON".to_owned()),
            (_, Ok(Answer::Success { .. }) | Err(_)) => away(format!("HTTP {status}")),
        })
    }
}

impl Provider for Prometheus {
    fn read<'a>(&'a self, range: &'a Range) -> BoxFuture<'a, Reading> {
        async move { self.ask(range).await.unwrap_or_else(|failure| failure) }.boxed()
    }
}

/// An answer of the API.
#[derive(Deserialize)]
#[serde(tag = "status", rename_all = "lowercase")]
enum Answer {
    Success {
        data: Data,
        #[serde(default)]
        warnings: Vec<String>,
    },
    Error {
        error: String,
    },
}

#[derive(Deserialize)]
struct Data {
    result: Vec<Series>,
}

#[derive(Deserialize)]
struct Series {
    /// Seconds since 1970 and the number as a text: JSON has no NaN.
    #[serde(default)]
    values: Vec<(f64, String)>,
    #[serde(default)]
    histograms: Vec<IgnoredAny>,
}

/// The samples of the one series, at the moments that were asked for: what the server rounds is put right.
fn series(range: &Range, data: Data) -> Reading {
    let [series] = match <[Series; 1]>::try_from(data.result) {
        Ok(one) => one,
        Err(none) if none.is_empty() => return Reading::Samples(BTreeMap::new()),
        Err(several) => {
            let hint = "aggregate them into one, as by sum(…)";
            return Reading::Unusable(format!("the query yields {} series: {hint}", several.len()));
        }
    };
    if !series.histograms.is_empty() {
        return Reading::Unusable(
            "the query yields histograms: a number is wanted, as of histogram_quantile(…)".to_owned(),
        );
    }
    let mut samples = BTreeMap::new();
    for (at, value) in series.values {
        let Ok(value) = value.parse::<f64>() else {
            return Reading::Unusable(format!("{} is no number", plain(&value)));
        };
        samples.extend(moment(range, at).map(|at| (at, value)));
    }
    Reading::Samples(samples)
}

/// The moment of the question that is nearest.
fn moment(range: &Range, at: f64) -> Option<Time> {
    #[expect(clippy::cast_possible_truncation, reason = "a float that is too large becomes the largest number")]
    let at = Time::from_timestamp_millis((at * 1_000.0).round() as i64)?;
    let (interval, after) = (range.interval.delta(), at - range.from);
    let nth = (after + interval / 2).num_milliseconds().checked_div_euclid(interval.num_milliseconds())?;
    range.from.checked_add_signed(interval.checked_mul(i32::try_from(nth).ok()?)?)
}

async fn whole(mut response: Response) -> Result<Vec<u8>, Reading> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| away(causes(&error)))? {
        body.extend_from_slice(&chunk);
        if body.len() > ANSWER {
            let most = "the answer is larger than 1 MiB";
            return Err(Reading::Unusable(format!("{most}: aggregate the query into one series, as by sum(…)")));
        }
    }
    Ok(body)
}

fn away(why: String) -> Reading {
    Reading::Away(plain(&why))
}

#[cfg(test)]
mod tests;
