//! A Prometheus, or what speaks its query API (Thanos, Mimir, VictoriaMetrics): one range query for each question
//! (<https://prometheus.io/docs/prometheus/latest/querying/api/#range-queries>).
//!
//! It never tells what says something about the version from what does not: it only reads, and whatever fails is a
//! [`Reading`] that holds.

use super::http::{Endpoint, NoClient, away};
use super::judge::Range;
use super::provider::Measures;
use super::reading::{Reading, Samples};
use crate::record::state::Time;
use crate::record::text::plain;
use chrono::SecondsFormat;
use futures::future::{BoxFuture, FutureExt};
use reqwest::StatusCode;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;
use std::path::PathBuf;
use url::Url;
use url::form_urlencoded::Serializer;

/// The most bytes of an answer: a question asks for 1,000 samples of one series at most.
const ANSWER: usize = 1 << 20;
const TOO_LONG: &str = "the answer is larger than 1 MiB: aggregate the query into one series, as by sum(…)";

/// A Prometheus of the installation.
pub struct PrometheusClient {
    /// Where range queries are asked.
    endpoint: Endpoint,
}

impl PrometheusClient {
    /// The server at `url`, which may have a path. The credentials are read at each question, so that new ones count at
    /// once: one line, `USER:PASSWORD` or a token.
    ///
    /// # Errors
    /// When there can be no client.
    pub fn new(url: &Url, credentials_file: Option<PathBuf>) -> Result<Self, NoClient> {
        let mut queries = url.clone();
        queries.set_path(&format!("{}/api/v1/query_range", url.path().trim_end_matches('/')));
        Ok(Self { endpoint: Endpoint::new(queries, credentials_file)? })
    }

    async fn ask(&self, range: &Range) -> Reading<Samples> {
        let moment = |at: Time| at.to_rfc3339_opts(SecondsFormat::Nanos, true);
        let question = Serializer::new(String::new())
            .append_pair("query", &range.query)
            .append_pair("start", &moment(range.from))
            .append_pair("end", &moment(range.until))
            .append_pair("step", &range.interval.as_secs().to_string())
            .finish();
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, form)]);
        let (status, body) = match self.endpoint.post(headers, question, ANSWER).await {
            Ok(answer) => answer,
            Err(unread) => return unread.reading(TOO_LONG),
        };
        match (status, serde_json::from_slice(&body)) {
            (StatusCode::OK, Ok(Answer::Success { data, warnings })) => match incomplete(&warnings) {
                Some(why) => Reading::Unusable(format!("the answer has a warning: {}", plain(&why))),
                None => series(range, data),
            },
            // Its own words for a query that it cannot parse or evaluate. Others come when they do not let us in.
            (StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY, Ok(Answer::Error { error })) => {
                Reading::Unusable(format!("the query is refused: {}", plain(&error)))
            }
            (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, _) => {
                away(&format!("HTTP {status}; {}", self.endpoint.hint()))
            }
            (_, Ok(Answer::Error { error })) => away(&format!("HTTP {status}: {error}")),
            (StatusCode::OK, Err(_)) => away("what answers is no Prometheus: that is not its JSON"),
            (_, Ok(Answer::Success { .. }) | Err(_)) => away(&format!("HTTP {status}")),
        }
    }
}

impl Measures for PrometheusClient {
    fn read<'a>(&'a self, range: &'a Range) -> BoxFuture<'a, Reading<Samples>> {
        self.ask(range).boxed()
    }
}

/// Why a part of the answer may be missing, as where a store behind Thanos is away. What is no more than a hint about the query, such as
/// that a metric might be no counter by its name, comes among the warnings of Prometheus before 2.54, and of Thanos.
fn incomplete(warnings: &[String]) -> Option<String> {
    let warnings: Vec<&str> =
        warnings.iter().map(String::as_str).filter(|warning| !warning.starts_with("PromQL info: ")).collect();
    (!warnings.is_empty()).then(|| warnings.join("; "))
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
fn series(range: &Range, data: Data) -> Reading<Samples> {
    let [series] = match <[Series; 1]>::try_from(data.result) {
        Ok(one) => one,
        Err(none) if none.is_empty() => return Reading::Said(BTreeMap::new()),
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
    Reading::Said(samples)
}

/// The moment of the question that is nearest.
fn moment(range: &Range, at: f64) -> Option<Time> {
    #[expect(clippy::cast_possible_truncation, reason = "a float that is too large becomes the largest number")]
    let at = Time::from_timestamp_millis((at * 1_000.0).round() as i64)?;
    let (interval, after) = (range.interval.delta(), at - range.from);
    let nth = (after + interval / 2).num_milliseconds().checked_div_euclid(interval.num_milliseconds())?;
    Some(range.from + interval.checked_mul(i32::try_from(nth).ok()?)?)
}

#[cfg(test)]
mod tests;
