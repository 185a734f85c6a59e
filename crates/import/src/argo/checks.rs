//! Analyses as checks.

use super::baseline::{self, Asked, LATEST, POD, STABLE};
use super::fields::PROVIDER;
use super::{GROUP, Rollout};
use crate::draft::{Check, Providers, TOO_MANY, go_duration, number, rounded};
use crate::fields::{Notes, Outcome};
use crate::input::{Document, Field};
use crate::query::rendered;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use tidegate_controller::manifest::promql::Query;

/// What is said of templates that rollouts refer to, by kind, namespace and name.
pub(super) type Used = BTreeMap<(String, String, String), Notes>;

/// Checks that were made already, by what they are made of.
pub(super) type Made = BTreeMap<(String, usize, String, Samples), String>;

/// How many values an analysis takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Samples {
    /// As many as the metric says.
    AsSaid,
    /// Some in each phase, as the analysis goes on over several, of which the longest stays so many seconds.
    Each { longest: u64 },
}

/// What is said of a query that asked by the hash of pods.
const BY_POD: &str = "the query of the check: the label pod tells the new version's series in place of the hash, and stable's where it compares \
     them, which it does while stable serves (docs/checks.md)";

/// What is said of a query that asks by the hash in a way that has no equal here.
const OTHER_HASH: &str = "it asks by the hash of pods for something else than the same of the new version, or of both";

/// The most templates that one analysis leads to.
const MOST: usize = 50;

/// The most values that may be bad: one more is as many as a check takes.
const MOST_BAD: u32 = 999;

/// What the templates of all rollouts share.
pub(super) struct Shared {
    /// Whom checks ask.
    pub providers: Providers,
    /// What is said of templates.
    pub used: Used,
}

impl Rollout<'_> {
    /// The names of the checks that an analysis is.
    pub(super) fn analysis(&mut self, field: &Field<'_>, samples: Samples, shared: &mut Shared) -> Vec<String> {
        let args = self.args(field);
        let mut names = Vec::new();
        let mut seen = BTreeSet::new();
        for reference in field.get("templates").items() {
            match self.found(&reference) {
                Some(template) => self.template(template, &args, samples, shared, &mut seen, &mut names),
                None => {
                    let name = reference.get("templateName").text().unwrap_or_default();
                    let text = format!("the template {name} is not among the files: import it together with this one");
                    self.notes.say(&reference, Outcome::NotUnderstood, text);
                }
            }
        }
        names.sort();
        names.dedup();
        names
    }

    fn found(&self, reference: &Field<'_>) -> Option<usize> {
        let name = reference.get("templateName").text()?;
        let kind = if reference.get("clusterScope").is_true() { "ClusterAnalysisTemplate" } else { "AnalysisTemplate" };
        let namespace = &self.document.namespace;
        let near = |d: &Document| kind == "ClusterAnalysisTemplate" || d.namespace == *namespace;
        self.input.documents.iter().position(|d| d.group() == GROUP && d.kind == kind && d.name == name && near(d))
    }

    /// What the rollout puts into queries.
    fn args(&mut self, field: &Field<'_>) -> BTreeMap<String, String> {
        let mut args = BTreeMap::new();
        for arg in field.get("args").items() {
            let Some(name) = arg.get("name").text() else { continue };
            let path = arg.get("valueFrom").get("fieldRef").get("fieldPath");
            let value = match (path.text(), arg.get("valueFrom").get("podTemplateHashValue").text()) {
                (Some("metadata.name"), _) => Some(self.document.name.clone()),
                (Some("metadata.namespace"), _) => Some(self.document.namespace.clone()),
                (_, Some("Latest")) => Some(LATEST.to_owned()),
                (_, Some("Stable")) => Some(STABLE.to_owned()),
                _ => arg.get("value").words(),
            };
            match value {
                Some(value) => drop(args.insert(format!("args.{name}"), value)),
                None => {
                    let text = "it is known in a cluster only; write it into the query, where the new version's pods are those of NAME-canary";
                    self.notes.say(&arg, Outcome::NotUnderstood, text);
                }
            }
        }
        args
    }

    fn template(
        &mut self,
        at: usize,
        args: &BTreeMap<String, String>,
        samples: Samples,
        shared: &mut Shared,
        seen: &mut BTreeSet<usize>,
        names: &mut Vec<String>,
    ) {
        let mut open = vec![at];
        while let Some(at) = open.pop() {
            if seen.len() >= MOST || !seen.insert(at) {
                continue;
            }
            let Some(template) = self.input.documents.get(at) else { continue };
            let mut known = BTreeMap::new();
            for arg in template.at("/spec/args").items() {
                if let (Some(name), Some(value)) = (arg.get("name").text(), arg.get("value").words()) {
                    known.insert(format!("args.{name}"), value);
                }
            }
            known.extend(args.clone());
            let key = (template.kind.clone(), template.namespace.clone(), template.name.clone());
            let mut notes = shared.used.remove(&key).unwrap_or_default();
            for (n, metric) in template.at("/spec/metrics").items().into_iter().enumerate() {
                names.extend(self.metric(
                    &Metric { at, n, field: metric, samples },
                    &known,
                    &mut notes,
                    &mut shared.providers,
                ));
            }
            for reference in template.at("/spec/templates").items() {
                match self.found(&reference) {
                    Some(next) => open.push(next),
                    None => notes.say(
                        &reference,
                        Outcome::NotUnderstood,
                        "it is not among the files: import it together with this one",
                    ),
                }
            }
            shared.used.insert(key, notes);
        }
    }

    fn metric(
        &mut self,
        Metric { at, n, field, samples }: &Metric<'_>,
        known: &BTreeMap<String, String>,
        notes: &mut Notes,
        providers: &mut Providers,
    ) -> Option<String> {
        let prometheus = field.get("provider").get("prometheus");
        if !prometheus.is_there() {
            notes.say(field, Outcome::NotBuilt, PROVIDER);
            return None;
        }
        let query = match rendered(prometheus.get("query").text().unwrap_or_default(), known) {
            Ok(query) => query,
            Err(what) => {
                notes.say(field, Outcome::NotUnderstood, format!("its query is not imported: {what}"));
                return None;
            }
        };
        let key = (format!("{at}"), *n, query.clone(), *samples);
        if let Some(name) = self.made.get(&key) {
            return Some(name.clone());
        }
        if self.draft.is_full() {
            notes.say(field, Outcome::NotBuilt, TOO_MANY);
            return None;
        }
        let Some(asked) = baseline::asked(&query) else {
            let why = Query::parse(&query).err().map_or_else(|| OTHER_HASH.to_owned(), |why| why.to_string());
            notes.say(field, Outcome::NotUnderstood, format!("its query is not imported: {why}"));
            return None;
        };
        let mut limits = bounds(field, notes)?;
        let url = address(&prometheus.get("address"), known, notes);
        let mut prometheus_says = json!({"provider": providers.named("prometheus", &url, "main"), "query": query});
        if let Asked::OfLatest(query) | Asked::Compared(query, _) = &asked {
            prometheus_says["query"] = query.as_str().into();
            prometheus_says["labels"] = json!({POD: POD});
            notes.say(&prometheus.get("query"), Outcome::Differs, BY_POD);
        }
        if let Asked::Compared(_, how) = asked {
            limits = Map::from_iter([("comparedWithStable".to_owned(), json!({how: limits}))]);
        }
        let interval = interval(&field.get("interval"), notes);
        let samples = counts(field, *samples, interval, notes, &mut limits);
        let mut says = Map::from_iter([("prometheus".to_owned(), prometheus_says)]);
        says.append(&mut limits);
        let check = Check { says, interval, samples };
        let name = self.draft.check(field.get("name").text().unwrap_or("metric"), check);
        self.made.insert(key, name.clone());
        Some(name)
    }
}

/// A metric of a template.
struct Metric<'a> {
    /// Which document.
    at: usize,
    /// Which metric there.
    n: usize,
    field: Field<'a>,
    samples: Samples,
}

/// Whom a metric asks.
fn address(field: &Field<'_>, known: &BTreeMap<String, String>, notes: &mut Notes) -> String {
    let said = field.text().unwrap_or("http://prometheus:9090");
    rendered(said, known).unwrap_or_else(|what| {
        notes.say(
            field,
            Outcome::Differs,
            format!("spec.providers of the Installation, where you have to write it: {what}"),
        );
        said.to_owned()
    })
}

/// The seconds between two values.
fn interval(field: &Field<'_>, notes: &mut Notes) -> u64 {
    let interval = field.text().and_then(go_duration);
    if interval.is_none() {
        notes.odd(field, "a length of time such as 1m; it is a minute");
    }
    if let Some(text) = field.text().and_then(rounded) {
        notes.say(field, Outcome::Differs, text);
    }
    interval.unwrap_or(60).max(1)
}

/// How many values a metric takes, and how many of them may be bad.
fn counts(
    metric: &Field<'_>,
    samples: Samples,
    interval: u64,
    notes: &mut Notes,
    says: &mut Map<String, Value>,
) -> u64 {
    let (count, limit) = (metric.get("count"), metric.get("failureLimit"));
    if limit.count().is_none_or(|limit| limit > MOST_BAD) {
        notes.odd(&limit, &format!("a number from 0 to {MOST_BAD}"));
    }
    let said = u64::from(count.count().unwrap_or(1).clamp(1, 1_000));
    let bad = u64::from(limit.count().filter(|limit| *limit <= MOST_BAD).unwrap_or(0));
    let (samples, bad) = match samples {
        Samples::AsSaid => (said, tolerated(said, bad, &limit, notes)),
        Samples::Each { longest } => {
            if said > 1 {
                let text =
                    "the analysis goes on over several phases: each of them takes values for as long as it stays";
                notes.say(&count, Outcome::DoneOtherwise, text);
            }
            let needed = bad + 1;
            if bad > 0 && interval.saturating_mul(needed) > longest {
                let text = format!(
                    "left out: each phase judges its own values, and none stays for {needed}, of which {bad} may be bad. The first one out \
                     of bounds takes the version back"
                );
                notes.say(&limit, Outcome::Differs, text);
                (1, 0)
            } else {
                if bad > 0 {
                    let text = "failureLimit of the check, in each phase anew, which takes one value more than that";
                    notes.say(&limit, Outcome::Differs, text);
                }
                (needed, bad)
            }
        }
    };
    if samples > 1 {
        says.insert("minSamples".to_owned(), samples.into());
    }
    if bad > 0 {
        says.insert("failureLimit".to_owned(), bad.into());
    }
    samples
}

/// How many of so many values may be bad: not all, or nothing would be judged.
fn tolerated(samples: u64, bad: u64, limit: &Field<'_>, notes: &mut Notes) -> u64 {
    if bad < samples {
        return bad;
    }
    let most = samples - 1;
    let text = if most == 0 {
        "left out: of one value none may be bad, or nothing would be judged".to_owned()
    } else {
        format!("failureLimit of the check: {most}, as nothing would be judged if all of {samples} values might be bad")
    };
    notes.say(limit, Outcome::Differs, text);
    most
}

/// The bounds that a metric's conditions are; none if they are no bounds.
fn bounds(metric: &Field<'_>, notes: &mut Notes) -> Option<Map<String, Value>> {
    let (success, failure) = (metric.get("successCondition"), metric.get("failureCondition"));
    let (field, found) = match (success.text(), failure.text()) {
        (Some(text), _) => {
            notes.say(
                &failure,
                Outcome::DoneOtherwise,
                "what is not a success is a failure here, and nothing is between them",
            );
            (&success, good(text))
        }
        (None, Some(text)) => (&failure, bad(text)),
        (None, None) => (&success, None),
    };
    let Some(Bounds { min, max, strict }) = found else {
        let text =
            "its condition is not imported: it is more than a number that result, or result[0], is compared with";
        notes.say(metric, Outcome::NotUnderstood, text);
        return None;
    };
    if strict {
        notes.say(field, Outcome::Differs, "min and max of the check: the bound itself is good here");
    }
    let bounds = [("min", min), ("max", max)].into_iter();
    Some(bounds.filter_map(|(key, bound)| Some((key.to_owned(), number(bound?)?))).collect())
}

/// What is good, as a range.
#[derive(Debug, Default, PartialEq)]
struct Bounds {
    min: Option<f64>,
    max: Option<f64>,
    /// Whether a bound is not good itself.
    strict: bool,
}

/// All comparisons hold of what is good.
fn good(text: &str) -> Option<Bounds> {
    all(text.split("&&").flat_map(|part| part.split(" and ")).map(comparison))
}

/// Any comparison that holds makes it bad.
fn bad(text: &str) -> Option<Bounds> {
    let parts = text.split("||").flat_map(|part| part.split(" or "));
    all(parts.map(|part| {
        let (how, number) = comparison(part)?;
        let opposite = match how {
            "<" => ">=",
            "<=" => ">",
            ">" => "<=",
            ">=" => "<",
            "!=" => "==",
            _ => return None,
        };
        Some((opposite, number))
    }))
}

fn all(parts: impl Iterator<Item = Option<(&'static str, f64)>>) -> Option<Bounds> {
    let mut bounds = Bounds::default();
    for part in parts {
        let (how, number) = part?;
        if matches!(how, ">" | ">=" | "==") {
            bounds.min = Some(bounds.min.map_or(number, |min| min.max(number)));
        }
        if matches!(how, "<" | "<=" | "==") {
            bounds.max = Some(bounds.max.map_or(number, |max| max.min(number)));
        }
        bounds.strict |= matches!(how, "<" | ">");
        if how == "!=" {
            return None;
        }
    }
    let Bounds { min, max, strict: _ } = bounds;
    let fits = number(min.unwrap_or(0.0)).is_some() && number(max.unwrap_or(0.0)).is_some();
    (fits && min.zip(max).is_none_or(|(min, max)| min <= max)).then_some(bounds)
}

/// `result[0] >= 0.95`, either way around: how the result compares with the number.
fn comparison(text: &str) -> Option<(&'static str, f64)> {
    let text = text.trim();
    // The longer ones first.
    let (how, (left, right)) =
        ["<=", ">=", "==", "!=", "<", ">"].into_iter().find_map(|how| Some((how, text.split_once(how)?)))?;
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    match (is_result(left), number(right), number(left), is_result(right)) {
        (true, Some(number), ..) => Some((how, number)),
        (_, _, Some(number), true) => {
            let turned = match how {
                "<=" => ">=",
                ">=" => "<=",
                "<" => ">",
                ">" => "<",
                other => other,
            };
            Some((turned, number))
        }
        _ => None,
    }
}

fn is_result(text: &str) -> bool {
    let text = text.trim();
    let inner = ["asFloat(", "asInt("].into_iter().find_map(|cast| text.strip_prefix(cast)?.strip_suffix(')'));
    matches!(inner.unwrap_or(text).trim(), "result" | "result[0]")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(min: Option<f64>, max: Option<f64>, strict: bool) -> Option<Bounds> {
        Some(Bounds { min, max, strict })
    }

    #[test]
    fn conditions_are_bounds_or_nothing() {
        assert_eq!(good("result[0] >= 0.95"), range(Some(0.95), None, false));
        assert_eq!(good("asFloat(result) < 5 && result >= 1"), range(Some(1.0), Some(5.0), true));
        assert_eq!(good("0.5 <= result[0] and result[0] <= 1"), range(Some(0.5), Some(1.0), false));
        assert_eq!(good("result == 1"), range(Some(1.0), Some(1.0), false));
        assert_eq!(bad("result[0] > 0.05"), range(None, Some(0.05), false));
        assert_eq!(bad("result[0] < 0.9 || result[0] >= 2"), range(Some(0.9), Some(2.0), true));
        assert_eq!(bad("result != 1"), range(Some(1.0), Some(1.0), false));
        for text in [
            "",
            "true",
            "len(result) == 0 || result[0] < 1",
            "result[0] > result[1]",
            "result < 1 && result > 2",
            "result < 1e999",
            "isNaN(result)",
        ] {
            assert_eq!(good(text), None, "{text}");
        }
        assert_eq!(bad("result == 1"), None);
    }
}
