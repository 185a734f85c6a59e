//! What a check measures: whose series, and against which limits.

mod proxied;

use super::diagnostic::quoted;
use super::ids::ProviderName;
use super::promql::{InvalidQuery, Query, Selector};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;

pub use proxied::{Counted, Useless, useless};

/// What a check measures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Measure {
    /// What a query yields.
    Query(PrometheusQuery),
    /// How many requests of a hundred are answered well.
    SuccessRate(SuccessRate),
    /// How long requests take, in milliseconds.
    Latency(Latency),
}

impl Measure {
    /// Who measures.
    #[must_use]
    pub fn provider(&self) -> &ProviderName {
        match self {
            Self::Query(PrometheusQuery { provider, .. })
            | Self::SuccessRate(SuccessRate { provider, .. })
            | Self::Latency(Latency { provider, .. }) => provider,
        }
    }
}

/// The share of requests that the server did not fail, in percent, as the proxy counts them: of each interval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SuccessRate {
    /// The Prometheus, as the installation calls it.
    pub provider: ProviderName,
    /// Whose metrics it has.
    pub proxy: Proxy,
}

/// How long requests take, in milliseconds, as the proxy measures it: of each interval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Latency {
    /// The Prometheus, as the installation calls it.
    pub provider: ProviderName,
    /// Whose metrics it has.
    pub proxy: Proxy,
    /// So many requests of a hundred are at least as fast as the value.
    #[serde(default = "percentile")]
    #[schemars(range(min = 1, max = 99))]
    pub percentile: u8,
}

fn percentile() -> u8 {
    99
}

/// Who carries out the route, and counts requests by backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Proxy {
    /// Contour, with Envoy.
    Contour,
    /// Istio: as the pods' sidecars count.
    Istio,
    /// Linkerd: as the pods' sidecars count.
    Linkerd,
    /// ingress-nginx, from version 1.0.2.
    Nginx,
    /// Traefik, from version 3.
    Traefik,
}

/// A query to a Prometheus: one series.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PrometheusQuery {
    /// The provider, as the installation calls it.
    pub provider: ProviderName,
    /// PromQL that yields one series.
    #[schemars(extend("minLength" = 1, "maxLength" = 4096))]
    pub query: String,
    /// The labels that tell whose series they are. With them the query is asked of the candidate's series alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Labels")]
    pub labels: Option<Labels>,
}

/// Why a query is refused, whatever the rollout around it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found}; expected {wanted}")]
pub struct BadQuery {
    /// What is wrong.
    pub found: String,
    /// What is wanted.
    pub wanted: String,
    /// Where in the query, in bytes; none if it is about the whole.
    pub place: Option<Range<usize>>,
}

impl From<&InvalidQuery> for BadQuery {
    fn from(InvalidQuery { found, at, place, wanted }: &InvalidQuery) -> Self {
        Self { found: format!("{found}, at character {at}"), wanted: wanted.clone(), place: Some(place.clone()) }
    }
}

impl PrometheusQuery {
    /// Why it is refused: no Prometheus would take it, it is about nobody in particular, or it plainly yields several series.
    #[must_use]
    pub fn mistake(&self) -> Option<BadQuery> {
        let read = match Query::parse(&self.query) {
            Ok(read) => read,
            Err(why) => return Some(BadQuery::from(&why)),
        };
        let own = || self.labels.as_ref().and_then(|labels| labels.own(&read));
        read.flaw().map(BadQuery::from).or_else(own).or_else(|| self.several(&read))
    }

    /// A query of which each value is of several series.
    fn several(&self, read: &Query) -> Option<BadQuery> {
        let pod = self.labels.as_ref().and_then(|labels| labels.pod.as_ref()).map(LabelName::as_str);
        // Of a version there can be several pods, as of a pattern.
        let told = self.labels.iter().flat_map(|labels| [&labels.service, &labels.workload]).flatten();
        let told: Vec<&str> = told.map(LabelName::as_str).collect();
        let each = read.of_each(pod, &told)?;
        let (found, wanted) = if read.is_rate() {
            let found = format!(
                "the query yields a series for each that is counted, of each {each} one at least; a check has one value"
            );
            (found, "one series, such as sum(rate(…))".to_owned())
        } else {
            let found = format!("the query yields a series for each {each}, and a check has one value");
            (found, format!("one series, such as sum(…) without {each}"))
        };
        Some(BadQuery { found, wanted, place: None })
    }
}

/// The names of the labels that tell the candidate's series from stable's: that of the namespace, and at least one other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Labels {
    /// The label with the namespace.
    #[serde(default = "namespace")]
    pub namespace: LabelName,
    /// The label with the name of the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "LabelName")]
    pub pod: Option<LabelName>,
    /// The label with the name of the Service. With the router `gatewayAPI` alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "LabelName")]
    pub service: Option<LabelName>,
    /// The label with the name of the Deployment, StatefulSet or DaemonSet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "LabelName")]
    pub workload: Option<LabelName>,
    /// The label with the value of the pod's label `tidegate.io/pods`. It alone tells versions of a StatefulSet or DaemonSet apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "LabelName")]
    pub version: Option<LabelName>,
}

fn namespace() -> LabelName {
    LabelName("namespace".to_owned())
}

impl Labels {
    /// Those that tell the roles apart, by their key in the file.
    pub fn telling(&self) -> impl Iterator<Item = (&'static str, &LabelName)> {
        let Self { namespace: _, pod, service, workload, version } = self;
        let all = [("pod", pod), ("service", service), ("workload", workload), ("version", version)];
        all.into_iter().filter_map(|(key, label)| Some((key, label.as_ref()?)))
    }

    /// A query that is narrowed down selects series, and leaves it to tidegate which role's.
    fn own(&self, read: &Query) -> Option<BadQuery> {
        if read.selectors().next().is_none() {
            let found = "the query selects no series, so its values are nobody's".to_owned();
            return Some(BadQuery { found, wanted: "a metric".to_owned(), place: None });
        }
        let chosen = |label: &str| read.selectors().flat_map(Selector::labels).any(|other| other == label);
        let (key, label) = self.telling().find(|(_, label)| chosen(label.as_str()))?;
        let found = format!("the query chooses {} itself", label.as_str());
        let wanted = format!("a query without {}: labels.{key} adds the candidate's, or stable's", label.as_str());
        Some(BadQuery { found, wanted, place: None })
    }
}

/// The name of a label of series.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(extend("format" = "label-name", "pattern" = "^[A-Za-z_][A-Za-z0-9_]*$", "maxLength" = 256))]
pub struct LabelName(String);

impl LabelName {
    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for LabelName {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let is_one = !name.is_empty() && name.len() <= 256 && name.chars().all(fits);
        // Prometheus 3 has others too, in quotes; there is no way to ask a Prometheus 2 for those.
        if is_one && !name.starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(Self(name));
        }
        let wanted = "1 to 256 letters, digits and _, and no digit first; copy it to such a label when it is scraped";
        Err(format!("{} is not the name of a label that every Prometheus knows: {wanted}", quoted(&name)))
    }
}

impl std::str::FromStr for LabelName {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        name.to_owned().try_into()
    }
}

/// How the candidate's values may differ from stable's at the same moments: all that is said has to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("minProperties" = 1))]
pub struct Comparison {
    /// The candidate's value divided by stable's. Where stable's is 0 or less there is no ratio, and nothing follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Limits")]
    pub ratio: Option<Limits>,
    /// The candidate's value less stable's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Limits")]
    pub difference: Option<Limits>,
}

/// The limits of what is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("minProperties" = 1))]
pub struct Limits {
    /// The largest value that is good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "f64")]
    pub max: Option<Bound>,
    /// The smallest value that is good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "f64")]
    pub min: Option<Bound>,
}

impl Limits {
    /// How a value is beyond them.
    #[must_use]
    pub fn exceeded(&self, value: f64) -> Option<String> {
        match (self.min, self.max) {
            (_, Some(max)) if value > max.get() => Some(format!("above {max}")),
            (Some(min), _) if value < min.get() => Some(format!("below {min}")),
            (_, _) => None,
        }
    }
}

/// A finite number that a sample is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "f64", into = "f64")]
#[schemars(with = "f64")]
pub struct Bound(f64);

impl Bound {
    /// Its value.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }
}

/// It is finite, so it equals itself.
impl Eq for Bound {}

impl TryFrom<f64> for Bound {
    type Error = &'static str;

    fn try_from(value: f64) -> Result<Self, &'static str> {
        value.is_finite().then_some(Self(value)).ok_or("a bound is a finite number")
    }
}

impl From<Bound> for f64 {
    fn from(bound: Bound) -> f64 {
        bound.0
    }
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}
