//! Metrics and webhooks of a Canary.

use super::built_in::BuiltIn;
use super::fields::{ROLLBACK, SAME_PODS};
use super::hooks::call;
use super::{Canary, Strategy, Used};
use crate::draft::{Check, Providers, TOO_MANY, number};
use crate::fields::{Notes, Outcome};
use crate::input::{Document, Field};
use crate::query::{LONGEST, rendered};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use tidegate_controller::manifest::desired::{Layout, TargetKind};
use tidegate_controller::workload::layouts::SUFFIX;

/// Where Flagger asks if it is not told.
pub(super) const PROMETHEUS: &str = "http://prometheus:9090";

impl Canary<'_> {
    /// The names of the checks that judge each phase.
    pub(super) fn checks(&mut self, providers: &mut Providers, used: &mut Used) -> Vec<String> {
        if self.strategy == Strategy::Skipped {
            return Vec::new();
        }
        let mut names = Vec::new();
        let mut asked = false;
        for metric in self.analysis("metrics").items() {
            // Only a template says itself whom to ask.
            let inline = !metric.get("templateRef").is_there();
            if let Some(name) = self.metric(&metric, providers, used) {
                names.push(name);
                asked |= inline;
            }
        }
        if !asked {
            self.notes.say(&self.spec("metricsServer"), Outcome::NotNeeded, "no query that was imported asks it");
        }
        for hook in self.analysis("webhooks").items() {
            let kind = hook.get("type");
            if !["rollout", "rollback"].contains(&kind.text().unwrap_or("rollout")) {
                continue;
            }
            let made = self.webhook(&hook, providers);
            names.extend(made.clone());
            if kind.text() == Some("rollback") {
                self.notes.say(&kind, Outcome::Differs, ROLLBACK);
                self.rollbacks.extend(made);
            }
        }
        names
    }

    fn metric(&mut self, metric: &Field<'_>, providers: &mut Providers, used: &mut Used) -> Option<String> {
        if !self.has_room(metric) {
            return None;
        }
        let name = metric.get("name").text().unwrap_or("metric");
        let own = ["query", "templateRef"].iter().any(|field| metric.get(field).is_there());
        if let Some(which) = BuiltIn::named(name).filter(|_| !own) {
            let check = self.built_in(metric, which, providers)?;
            return Some(self.draft.check(name, check));
        }
        let (query, url) = match (metric.get("templateRef"), metric.get("query")) {
            (reference, query) if reference.is_there() => {
                let text = "a metric with a templateRef takes the query from there";
                self.notes.say(&query, Outcome::NotNeeded, text);
                self.template(metric, &reference, used)?
            }
            (_, query) if query.is_there() => {
                let url = self.spec("metricsServer").text().unwrap_or(PROMETHEUS).to_owned();
                (self.query(metric, query.text().unwrap_or_default())?, url)
            }
            (_, _) => {
                self.notes.odd(metric, "a query or a templateRef");
                return None;
            }
        };
        let mut bounds = Map::new();
        self.bounds(metric, Threshold::Max, &mut bounds)?;
        let provider = providers.named("prometheus", &url, "main");
        let mut says = Map::from_iter([("prometheus".to_owned(), json!({"provider": provider, "query": query}))]);
        says.append(&mut bounds);
        Some(self.draft.check(name, Check { says, interval: self.interval, samples: 1 }))
    }

    /// Without a range the bound is `threshold`, which is 0 if it is not said.
    pub(super) fn bounds(&mut self, metric: &Field<'_>, which: Threshold, says: &mut Map<String, Value>) -> Option<()> {
        let (range, threshold) = (metric.get("thresholdRange"), metric.get("threshold"));
        let bounds = if range.is_there() {
            self.notes.say(&threshold, Outcome::NotNeeded, "thresholdRange goes before it");
            vec![("max", range.get("max")), ("min", range.get("min"))]
        } else {
            let bound = if which == Threshold::Max { "max" } else { "min" };
            if which == Threshold::Min {
                self.notes.say(&threshold, Outcome::Imported, "min of the check");
            }
            vec![(bound, threshold.clone())]
        };
        for (bound, field) in &bounds {
            match field.number().and_then(number) {
                Some(value) => drop(says.insert((*bound).to_owned(), value)),
                None => self.notes.odd(field, "a number"),
            }
        }
        if which == Threshold::Max && !range.is_there() && !threshold.is_there() {
            says.insert("max".to_owned(), 0.into());
        }
        let value = |bound: &str| says.get(bound).and_then(Value::as_f64);
        match (value("min"), value("max")) {
            (None, None) => {
                self.notes.say(metric, Outcome::NotUnderstood, "every value is good without a min or a max");
            }
            (Some(min), Some(max)) if min > max => self.notes.odd(metric, "a min that is not above max"),
            (Some(_), _) | (_, Some(_)) => return Some(()),
        }
        None
    }

    /// The query of the template that a metric refers to, and who answers it.
    fn template(&mut self, metric: &Field<'_>, reference: &Field<'_>, used: &mut Used) -> Option<(String, String)> {
        let name = reference.get("name").text().unwrap_or_default();
        let namespace = reference.get("namespace").text().unwrap_or(&self.document.namespace);
        let is_it = |d: &&Document| {
            d.group() == super::GROUP && d.kind == "MetricTemplate" && d.name == name && d.namespace == namespace
        };
        let Some(template) = self.input.documents.iter().find(is_it) else {
            let text = format!(
                "the MetricTemplate {namespace}/{name} is not among the files: import it together with this one"
            );
            self.notes.say(metric, Outcome::NotUnderstood, text);
            return None;
        };
        let notes: &mut Notes = used.entry((namespace.to_owned(), name.to_owned())).or_default();
        let kind = template.at("/spec/provider/type");
        if !matches!(kind.text(), Some("prometheus") | None) {
            let text = "providers other than Prometheus are not built; ask them by a webhook (docs/checks.md)";
            notes.say(&template.at("/spec"), Outcome::NotBuilt, text);
            self.notes.say(metric, Outcome::NotBuilt, text);
            return None;
        }
        let url = template.at("/spec/provider/address").text().unwrap_or(PROMETHEUS).to_owned();
        let query = template.at("/spec/query").text().unwrap_or_default();
        Some((self.query(metric, query)?, url))
    }

    /// The query with what Flagger puts into it. The target is the new version's Deployment here.
    fn query(&mut self, metric: &Field<'_>, query: &str) -> Option<String> {
        let names = |field: &str| self.spec(field).text().unwrap_or(&self.draft.target).to_owned();
        let mut known = BTreeMap::from([
            ("name".to_owned(), self.document.name.clone()),
            ("namespace".to_owned(), self.draft.namespace.clone()),
            ("target".to_owned(), self.candidate()),
            ("service".to_owned(), self.service()),
            ("ingress".to_owned(), names("ingressRef/name")),
            ("route".to_owned(), names("routeRef/name")),
            ("interval".to_owned(), metric.get("interval").text().unwrap_or("1m").to_owned()),
        ]);
        for (key, value) in metric.get("templateVariables").entries() {
            known.insert(format!("variables.{key}"), value.words().unwrap_or_default());
        }
        match rendered(query, &known) {
            Ok(query) => {
                if self.draft.kind == TargetKind::DaemonSet {
                    for field in ["query", "templateRef"] {
                        self.notes.say(&metric.get(field), Outcome::Differs, SAME_PODS);
                    }
                }
                return Some(query);
            }
            Err(what) => {
                let text = format!(
                    "its query is not imported: {what}; a query has at most {LONGEST} characters, and knows name, namespace, \
                                    target, service, ingress, route, interval and variables.NAME"
                );
                self.notes.say(metric, Outcome::NotUnderstood, text);
            }
        }
        None
    }

    /// What the new version is called while it is one. Whoever rolls out a Service has written the ending into the query.
    fn candidate(&self) -> String {
        match self.draft.layout {
            Layout::InPlace if self.draft.kind == TargetKind::Deployment => format!("{}{SUFFIX}", self.draft.target),
            // A Canary is never imported to the last one.
            Layout::InPlace | Layout::Primary | Layout::Versioned => self.draft.target.clone(),
        }
    }

    /// A webhook that judges.
    pub(super) fn webhook(&mut self, hook: &Field<'_>, providers: &mut Providers) -> Option<String> {
        let call = self.has_room(hook).then(|| call(hook, providers, &mut self.notes))??;
        let says = Map::from_iter([("webhook".to_owned(), call)]);
        let name = hook.get("name").text().unwrap_or("webhook");
        Some(self.draft.check(name, Check { says, interval: self.interval, samples: 1 }))
    }

    /// Whether there is room for one more check; if not, that is said of what would be one.
    fn has_room(&mut self, field: &Field<'_>) -> bool {
        let room = !self.draft.is_full();
        if !room {
            self.notes.say(field, Outcome::NotBuilt, TOO_MANY);
        }
        room
    }
}

/// What `threshold` of a metric is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Threshold {
    Max,
    Min,
}
