//! The metrics that Flagger knows by name: `request-success-rate` and `request-duration`.

use super::texts::{BY_PODS, UNCOUNTED, UNMET, UNSPLIT};
use super::{Canary, Strategy};
use crate::draft::go_duration;
use crate::fields::FieldOutcome::{Differs, NotBuilt, NotUnderstood};
use crate::input::Field;
use crate::router::Counts;
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

    /// What a check calls it where a proxy counts, which bound its threshold is, and what its values are.
    fn facts(self) -> (&'static str, &'static str, Counted) {
        match self {
            Self::SuccessRate => ("successRate", "min", Counted::Share),
            Self::Duration => ("latency", "max", Counted::Time),
        }
    }

    /// What Flagger expects of an application where no proxy counts.
    fn query(self, range: &str) -> String {
        const REQUESTS: &str = "http_request_duration_seconds";
        let count = format!("{REQUESTS}_count");
        match self {
            Self::SuccessRate => format!(
                "100 * (1 - (sum(rate({count}{{status=~\"5.*\"}}[{range}])) or vector(0)) / sum(rate({count}[{range}])))"
            ),
            Self::Duration => {
                format!("1000 * histogram_quantile(0.99, sum by (le) (rate({REQUESTS}_bucket[{range}])))")
            }
        }
    }
}

impl Canary<'_> {
    /// What the check says that it is; none, and named, where nobody counts what it asks for.
    pub(super) fn built_in(&mut self, metric: &Field<'_>, which: BuiltIn) -> Option<Map<String, Value>> {
        if let Some(why) = self.uncounted() {
            return self.notes.refuse(metric, NotBuilt, why);
        }
        let (key, bound, counted) = which.facts();
        let bounds = self.bounds(metric, bound)?;
        let share = bounds.get("min").and_then(Value::as_f64).filter(|min| *min > 0.0 && *min <= 1.0);
        if let (BuiltIn::SuccessRate, Some(min)) = (which, share) {
            let text = format!("Flagger counts in percent: {min} % of the requests would be enough; write 99 for 99 %");
            return self.notes.refuse(metric, NotUnderstood, text);
        }
        if let Some(useless) = useless(counted, &bounds) {
            return self.notes.refuse(metric, NotUnderstood, format!("not a limit of its values: {}", useless.found));
        }
        let provider = self.shared.providers.named("prometheus", &self.server(), "main");
        let said = metric.get("interval");
        let interval =
            self.notes.wanted(&said, said.text().map_or(Some(60), go_duration), "a length of time such as 1m");
        let (key, asked) = match self.counts {
            Counts::Proxy(proxy) => (key, json!({"provider": provider, "proxy": proxy})),
            Counts::Application | Counts::Unknown | Counts::Templates => {
                let query = which.query(said.text().unwrap_or("1m"));
                let labels = json!({"namespace": "kubernetes_namespace", "pod": "kubernetes_pod_name"});
                ("prometheus", json!({"provider": provider, "query": query, "labels": labels}))
            }
        };
        if matches!(self.counts, Counts::Proxy(_)) && interval.unwrap_or(60) != self.interval {
            let text = "each value is about one interval of the check, which is that of the analysis: it has to span several scrapes";
            self.notes.say(&said, Differs, text);
        }
        if (self.counts, which) == (Counts::Proxy("nginx"), BuiltIn::Duration) {
            let text = "latency: the time that 99 % of the requests stay below. Flagger asks ingress-nginx for the mean, so look at the limit";
            self.notes.say(&metric.get("name"), Differs, text);
        }
        Some([(key.to_owned(), asked)].into_iter().chain(bounds).collect())
    }

    /// Why nobody counts the requests to the new version alone.
    fn uncounted(&self) -> Option<&'static str> {
        match (self.draft.kind, self.counts) {
            (TargetKind::DaemonSet | TargetKind::StatefulSet, _) => Some(UNSPLIT),
            (TargetKind::Service, Counts::Application | Counts::Proxy("istio" | "linkerd")) => Some(BY_PODS),
            (_, Counts::Unknown | Counts::Templates) => Some(UNCOUNTED),
            (_, Counts::Proxy("nginx")) if self.strategy == Strategy::BlueGreen => Some(UNMET),
            (_, Counts::Proxy(_) | Counts::Application) => None,
        }
    }
}

/// What is wrong with bounds that would take no version back, or each.
fn useless(counted: Counted, bounds: &Map<String, Value>) -> Option<Useless> {
    let bound = |key: &str| bounds.get(key).and_then(Value::as_f64).and_then(|value| value.try_into().ok());
    measure::useless(counted, Limits { max: bound("max"), min: bound("min") }, None)
}
