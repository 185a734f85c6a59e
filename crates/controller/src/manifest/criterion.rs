//! What tells whether a version is good: checks, as plans keep them and as people write them.

use super::duration::Span;
use super::ids::ProviderName;
use super::measure::{Comparison, Limits, Measure};
use super::raw;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What tells whether a version is good: a question about the whole exposure of the step, so that no counter has to be kept.
///
/// A plan stores it in the shape in which people write it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "raw::Check", into = "raw::Check")]
pub struct Check {
    /// What has to hold.
    pub criterion: Criterion,
    /// The time between two samples, or two questions; the first is due that long after the step was reached.
    pub interval: Span,
    /// What it means that nothing can be told at the end of the soak.
    pub on_no_data: OnNoData,
    /// What it means that its provider is away for long; without it the step holds for as long as that lasts.
    pub on_away: Option<OnAway>,
}

/// What has to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Criterion {
    /// What a Prometheus has measured is within bounds.
    Prometheus(Box<Bounds>),
    /// A webhook says so.
    Webhook(WebhookCall),
}

/// The bounds of what is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounds {
    /// What is measured.
    pub measure: Measure,
    /// The limits of its values.
    pub limits: Limits,
    /// The limits of its values beside stable's.
    pub compared: Option<Comparison>,
    /// How many samples there must be before the version counts as good.
    pub min_samples: u32,
    /// How many samples may be out of bounds.
    pub failure_limit: u32,
}

impl Bounds {
    /// What is good, in words.
    #[must_use]
    pub fn words(&self) -> String {
        let Self { limits: Limits { max, min }, compared, .. } = self;
        let max = max.map(|max| format!("at most {max} is good"));
        let min = min.map(|min| format!("at least {min} is good"));
        let compared = compared.map(|_| "compared with stable".to_owned());
        [min, max, compared].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

impl TryFrom<raw::Check> for Check {
    type Error = &'static str;

    fn try_from(check: raw::Check) -> Result<Self, &'static str> {
        let raw::Check {
            prometheus,
            success_rate,
            latency,
            webhook,
            max,
            min,
            compared_with_stable: compared,
            interval,
            min_samples,
            failure_limit,
            on_no_data,
            on_away,
        } = check;
        let limits = Limits { max, min };
        let asked = prometheus.map(Measure::Query).into_iter();
        let mut asked = asked.chain(success_rate.map(Measure::SuccessRate)).chain(latency.map(Measure::Latency));
        let criterion = match (asked.next(), webhook) {
            _ if asked.next().is_some() => return Err("a check measures one thing"),
            (Some(measure), None) => Criterion::Prometheus(Box::new(Bounds {
                measure,
                limits,
                compared,
                min_samples: min_samples.unwrap_or(1),
                failure_limit: failure_limit.unwrap_or(0),
            })),
            (None, Some(webhook))
                if (limits, compared, min_samples, failure_limit) == (Limits::default(), None, None, None) =>
            {
                Criterion::Webhook(webhook)
            }
            (None, Some(_)) => return Err("a webhook has no bounds and no samples"),
            (Some(_), Some(_)) | (None, None) => return Err("a check either measures or asks a webhook"),
        };
        Ok(Self { criterion, interval, on_no_data, on_away })
    }
}

impl From<Check> for raw::Check {
    fn from(Check { criterion, interval, on_no_data, on_away }: Check) -> Self {
        let blank = Self {
            prometheus: None,
            success_rate: None,
            latency: None,
            webhook: None,
            max: None,
            min: None,
            compared_with_stable: None,
            interval,
            min_samples: None,
            failure_limit: None,
            on_no_data,
            on_away,
        };
        match criterion {
            Criterion::Prometheus(bounds) => {
                let Bounds { measure, limits: Limits { max, min }, compared, min_samples, failure_limit } = *bounds;
                let blank = match measure {
                    Measure::Query(query) => Self { prometheus: Some(query), ..blank },
                    Measure::SuccessRate(rate) => Self { success_rate: Some(rate), ..blank },
                    Measure::Latency(latency) => Self { latency: Some(latency), ..blank },
                };
                Self {
                    max,
                    min,
                    compared_with_stable: compared,
                    min_samples: Some(min_samples),
                    failure_limit: Some(failure_limit),
                    ..blank
                }
            }
            Criterion::Webhook(webhook) => Self { webhook: Some(webhook), ..blank },
        }
    }
}

/// A question to a webhook, which judges by itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebhookCall {
    /// The provider, as the installation calls it.
    pub provider: ProviderName,
    /// Texts that it is sent, such as the name of a test.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32, "additionalProperties" = {"type": "string", "maxLength": 1024}))]
    pub metadata: BTreeMap<String, String>,
}

/// What it means that nothing can be told at the end of the soak: too few samples, or a webhook that says `hold`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OnNoData {
    /// Nothing: the step goes on waiting.
    #[default]
    Hold,
    /// That the version is bad.
    Fail,
    /// That the version is good.
    Pass,
}

/// What it means that the provider of a check is away, or of no use, for long while the step holds for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OnAway {
    /// For how long the step holds, counted from the end of the soak at the earliest, and while somebody observes.
    pub after: Span,
    /// What comes then.
    pub then: Away,
}

/// What comes once a provider was away for too long. Nothing of it speaks against the version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Away {
    /// The run goes back. The version is not refused: `tidegate resume` starts it again.
    Revert,
}
