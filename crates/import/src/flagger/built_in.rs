//! The metrics that Flagger knows by name: `request-success-rate` and `request-duration`.

use super::checks::{PROMETHEUS, Threshold};
use super::fields::{BY_PODS, UNCOUNTED, UNMET, UNSPLIT};
use super::provider::Counts;
use super::{Canary, Strategy};
use crate::draft::{Check, Providers, go_duration};
use crate::fields::Outcome;
use crate::input::Field;
use serde_json::{Map, Value, json};
use tidegate_controller::manifest::desired::TargetKind;
use tidegate_controller::manifest::measure::{self, Counted, Limits, Useless};

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BuiltIn {
    SuccessRate,
    Duration,
}

impl BuiltIn {
    /// That of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "request-success-rate" => Some(Self::SuccessRate),
            "request-duration" => Some(Self::Duration),
            _ => None,
        }
    }
}

impl Canary<'_> {
    /// The check that it is; none, and named, where nobody counts what it asks for.
    pub(super) fn built_in(&mut self, metric: &Field<'_>, which: BuiltIn, providers: &mut Providers) -> Option<Check> {
        let mut bounds = Map::new();
        if let Some(why) = self.uncounted() {
            self.notes.say(metric, Outcome::NotBuilt, why);
            return None;
        }
        let threshold = if which == BuiltIn::SuccessRate { Threshold::Min } else { Threshold::Max };
        self.bounds(metric, threshold, &mut bounds)?;
        let share = bounds.get("min").and_then(Value::as_f64).filter(|min| *min > 0.0 && *min <= 1.0);
        if let (BuiltIn::SuccessRate, Some(min)) = (which, share) {
            let text = format!("Flagger counts in percent: {min} % of the requests would be enough; write 99 for 99 %");
            self.notes.say(metric, Outcome::NotUnderstood, text);
            return None;
        }
        if let Some(useless) = useless(which, &bounds) {
            self.notes.say(metric, Outcome::NotUnderstood, format!("not a limit of its values: {}", useless.found));
            return None;
        }
        let url = self.spec("metricsServer").text().unwrap_or(PROMETHEUS).to_owned();
        let provider = providers.named("prometheus", &url, "main");
        let (key, mut says) = self.asked(metric, which, &provider);
        says.append(&mut bounds);
        let said = metric.get("interval");
        let interval = said.text().and_then(go_duration).unwrap_or(60);
        if said.text().is_some_and(|text| go_duration(text).is_none()) {
            self.notes.odd(&said, "a length of time such as 1m");
        }
        if key == Key::Proxy && interval != self.interval {
            let text = "each value is about one interval of the check, which is that of the analysis: it has to span several scrapes";
            self.notes.say(&said, Outcome::Differs, text);
        }
        if (self.counts, which) == (Counts::Proxy("nginx"), BuiltIn::Duration) {
            let text = "latency: the time that 99 % of the requests stay below. Flagger asks ingress-nginx for the mean, so look at the limit";
            self.notes.say(&metric.get("name"), Outcome::Differs, text);
        }
        Some(Check { says, interval: self.interval, samples: 1 })
    }

    /// Why nobody counts the requests to the new version alone.
    fn uncounted(&self) -> Option<&'static str> {
        match (self.draft.kind, self.counts) {
            (TargetKind::DaemonSet | TargetKind::StatefulSet, _) => Some(UNSPLIT),
            (TargetKind::Service, Counts::Application | Counts::Proxy("istio" | "linkerd")) => Some(BY_PODS),
            (_, Counts::Unknown) => Some(UNCOUNTED),
            (_, Counts::Proxy("nginx")) if self.strategy == Strategy::BlueGreen => Some(UNMET),
            (_, Counts::Proxy(_) | Counts::Application) => None,
        }
    }

    /// Who is asked what.
    fn asked(&self, metric: &Field<'_>, which: BuiltIn, provider: &str) -> (Key, Map<String, Value>) {
        let one = |key: &str, value: Value| Map::from_iter([(key.to_owned(), value)]);
        let range = metric.get("interval").text().unwrap_or("1m").to_owned();
        match (self.counts, which) {
            (Counts::Proxy(proxy), BuiltIn::SuccessRate) => {
                (Key::Proxy, one("successRate", json!({"provider": provider, "proxy": proxy})))
            }
            (Counts::Proxy(proxy), BuiltIn::Duration) => {
                (Key::Proxy, one("latency", json!({"provider": provider, "proxy": proxy})))
            }
            (Counts::Application | Counts::Unknown, which) => {
                let labels = json!({"namespace": "kubernetes_namespace", "pod": "kubernetes_pod_name"});
                let query = of_application(which, &range);
                (Key::Query, one("prometheus", json!({"provider": provider, "query": query, "labels": labels})))
            }
        }
    }
}

/// What is wrong with bounds that would take no version back, or each.
fn useless(which: BuiltIn, bounds: &Map<String, Value>) -> Option<Useless> {
    let bound = |key: &str| bounds.get(key).and_then(Value::as_f64).and_then(|value| value.try_into().ok());
    let counted = match which {
        BuiltIn::SuccessRate => Counted::Share,
        BuiltIn::Duration => Counted::Time,
    };
    measure::useless(counted, Limits { max: bound("max"), min: bound("min") }, None)
}

/// How a built-in metric is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Proxy,
    Query,
}

/// What Flagger expects of an application where no proxy counts.
fn of_application(which: BuiltIn, range: &str) -> String {
    match which {
        BuiltIn::SuccessRate => {
            let count = "http_request_duration_seconds_count";
            format!(
                "100 * (1 - (sum(rate({count}{{status=~\"5.*\"}}[{range}])) or vector(0)) / sum(rate({count}[{range}])))"
            )
        }
        BuiltIn::Duration => {
            format!(
                "1000 * histogram_quantile(0.99, sum by (le) (rate(http_request_duration_seconds_bucket[{range}])))"
            )
        }
    }
}
