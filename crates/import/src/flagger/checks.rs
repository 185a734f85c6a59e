//! Metrics and webhooks of a Canary.

use super::built_in::BuiltIn;
use super::texts::{ROLLBACK, SAME_PODS};
use super::{Canary, Strategy};
use crate::Tool;
use crate::draft::{Check, PROMETHEUS, number};
use crate::fields::FieldOutcome::{Differs, Imported, NotBuilt, NotNeeded, NotUnderstood};
use crate::input::{Document, Field};
use crate::query::{LONGEST, OTHER_PROVIDER, rendered};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use tidegate_controller::manifest::desired::{Layout, TargetKind};
use tidegate_controller::workload::layouts::SUFFIX;

impl Canary<'_> {
    /// The names of the checks that judge each phase.
    pub(super) fn checks(&mut self) -> Vec<String> {
        if self.strategy == Strategy::Skipped {
            return Vec::new();
        }
        let (mut names, mut asked) = (Vec::new(), false);
        for metric in self.analysis("metrics").items() {
            let made = self.metric(&metric);
            // Only a template says itself whom to ask.
            asked |= made.is_some() && !metric.get("templateRef").is_there();
            names.extend(made);
        }
        if !asked {
            self.notes.say(&self.spec("metricsServer"), NotNeeded, "no query that was imported asks it");
        }
        let hooks = self.webhooks().into_iter();
        for (hook, kind) in hooks.filter(|(_, kind)| ["rollout", "rollback"].contains(kind)) {
            let made = self.webhook(&hook);
            names.extend(made.clone());
            if kind == "rollback" {
                self.notes.say(&hook.get("type"), Differs, ROLLBACK);
                self.rollbacks.extend(made);
            }
        }
        names
    }

    fn metric(&mut self, metric: &Field<'_>) -> Option<String> {
        if !self.draft.has_room(metric, &mut self.notes) {
            return None;
        }
        let name = metric.get("name").text().unwrap_or("metric");
        let (reference, query) = (metric.get("templateRef"), metric.get("query"));
        let own = reference.is_there() || query.is_there();
        if let Some(which) = BuiltIn::named(name).filter(|_| !own) {
            let says = self.built_in(metric, which)?;
            return Some(self.check(name, says));
        }
        let (query, url) = if reference.is_there() {
            self.notes.say(&query, NotNeeded, "a metric with a templateRef takes the query from there");
            self.template(metric, &reference)?
        } else if query.is_there() {
            (self.query(metric, query.text().unwrap_or_default())?, self.server())
        } else {
            return self.notes.wanted(metric, None, "a query or a templateRef");
        };
        let bounds = self.bounds(metric, "max")?;
        let provider = self.shared.providers.named("prometheus", &url, "main");
        let asked = [("prometheus".to_owned(), json!({"provider": provider, "query": query}))];
        Some(self.check(name, asked.into_iter().chain(bounds).collect()))
    }

    /// Adds a check that is asked once an interval; its name.
    fn check(&mut self, wish: &str, says: Map<String, Value>) -> String {
        self.draft.check(wish, Check { says, interval: self.interval, samples: 1 })
    }

    /// Whom queries ask that are no templates.
    pub(super) fn server(&self) -> String {
        self.spec("metricsServer").text().unwrap_or(PROMETHEUS).to_owned()
    }

    /// What is good of a metric. Without a range the bound that `threshold` is, which is 0 if it is not said and the largest value.
    pub(super) fn bounds(&mut self, metric: &Field<'_>, bound: &'static str) -> Option<Map<String, Value>> {
        let (range, threshold) = (metric.get("thresholdRange"), metric.get("threshold"));
        let bounds = if range.is_there() {
            self.notes.say(&threshold, NotNeeded, "thresholdRange goes before it");
            vec![("max", range.get("max")), ("min", range.get("min"))]
        } else {
            if bound == "min" {
                self.notes.say(&threshold, Imported, "min of the check");
            }
            vec![(bound, threshold.clone())]
        };
        let mut says = Map::new();
        for (bound, field) in bounds {
            match field.number().and_then(number) {
                Some(value) => drop(says.insert(bound.to_owned(), value)),
                None => self.notes.odd(&field, "a number"),
            }
        }
        if bound == "max" && !range.is_there() && !threshold.is_there() {
            says.insert("max".to_owned(), 0.into());
        }
        let value = |bound: &str| says.get(bound).and_then(Value::as_f64);
        match (value("min"), value("max")) {
            (None, None) => self.notes.say(metric, NotUnderstood, "every value is good without a min or a max"),
            (Some(min), Some(max)) if min > max => self.notes.odd(metric, "a min that is not above max"),
            (Some(_), _) | (_, Some(_)) => return Some(says),
        }
        None
    }

    /// The query of the template that a metric refers to, and who answers it.
    fn template(&mut self, metric: &Field<'_>, reference: &Field<'_>) -> Option<(String, String)> {
        let name = reference.get("name").text().unwrap_or_default();
        let namespace = reference.get("namespace").text().unwrap_or(&self.document.namespace);
        let key = ("MetricTemplate".to_owned(), namespace.to_owned(), name.to_owned());
        let is_it = |d: &&Document| Tool::Flagger.owns(&d.api_version) && d.key() == key;
        let Some(template) = self.input.documents.iter().find(is_it) else {
            let text = format!(
                "the MetricTemplate {namespace}/{name} is not among the files: import it together with this one"
            );
            return self.notes.refuse(metric, NotUnderstood, text);
        };
        let notes = self.shared.used.entry(key).or_default();
        if !matches!(template.spec("provider/type").text(), Some("prometheus") | None) {
            notes.say(&template.at("/spec"), NotBuilt, OTHER_PROVIDER);
            return self.notes.refuse(metric, NotBuilt, OTHER_PROVIDER);
        }
        let url = template.spec("provider/address").text().unwrap_or(PROMETHEUS).to_owned();
        Some((self.query(metric, template.spec("query").text().unwrap_or_default())?, url))
    }

    /// The query with what Flagger puts into it. The target is the new version's Deployment here.
    fn query(&mut self, metric: &Field<'_>, query: &str) -> Option<String> {
        let names = |field: &str| self.spec(field).text().unwrap_or(&self.draft.target).to_owned();
        let known = [
            ("name", self.document.name.clone()),
            ("namespace", self.draft.namespace.clone()),
            ("target", self.candidate()),
            ("service", self.service()),
            ("ingress", names("ingressRef/name")),
            ("route", names("routeRef/name")),
            ("interval", metric.get("interval").text().unwrap_or("1m").to_owned()),
        ];
        let mut known: BTreeMap<String, String> = known.map(|(name, value)| (name.to_owned(), value)).into();
        for (key, value) in metric.get("templateVariables").entries() {
            known.insert(format!("variables.{key}"), value.words().unwrap_or_default());
        }
        let rendered = rendered(query, &known);
        match &rendered {
            Ok(_) if self.draft.kind == TargetKind::DaemonSet => {
                ["query", "templateRef"]
                    .iter()
                    .for_each(|field| self.notes.say(&metric.get(field), Differs, SAME_PODS));
            }
            Ok(_) => {}
            Err(what) => {
                let text = format!(
                    "its query is not imported: {what}; a query has at most {LONGEST} characters, and knows name, namespace, \
                                    target, service, ingress, route, interval and variables.NAME"
                );
                self.notes.say(metric, NotUnderstood, text);
            }
        }
        rendered.ok()
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
    pub(super) fn webhook(&mut self, hook: &Field<'_>) -> Option<String> {
        let call = self.draft.has_room(hook, &mut self.notes).then(|| self.call(hook))??;
        Some(self.check(hook.get("name").text().unwrap_or("webhook"), Map::from_iter([("webhook".to_owned(), call)])))
    }
}
