//! Analyses as checks.

use super::Rollout;
use super::baseline::{self, Asked, LATEST, POD, STABLE};
use super::conditions::{Bounds, bad, good};
use crate::Tool;
use crate::draft::{Check, PROMETHEUS, number};
use crate::fields::FieldOutcome::{Differs, DoneOtherwise, NotBuilt, NotUnderstood};
use crate::fields::Notes;
use crate::input::{Document, Field};
use crate::query::{OTHER_PROVIDER, rendered};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use tidegate_controller::manifest::promql::Query;

/// Checks that were made already, by what they are made of.
pub(super) type Made = BTreeMap<(usize, usize, String, Samples), String>;

/// What is put into queries, by its name.
type Args = BTreeMap<String, String>;

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

/// What is said of an argument that only a cluster knows.
const UNKNOWN: &str =
    "it is known in a cluster only; write it into the query, where the new version's pods are those of NAME-canary";

/// The most templates that one analysis leads to.
const MOST: usize = 50;

/// The most values that may be bad: one more is as many as a check takes.
const MOST_BAD: u32 = 999;

impl Rollout<'_> {
    /// The names of the checks that an analysis is.
    pub(super) fn analysis(&mut self, field: &Field<'_>, samples: Samples) -> Vec<String> {
        let args = self.args(field);
        let (mut names, mut seen) = (BTreeSet::new(), BTreeSet::new());
        for reference in field.get("templates").items() {
            match self.found(&reference) {
                Some(template) => names.extend(self.templates(template, &args, samples, &mut seen)),
                None => self.absent(&reference),
            }
        }
        names.into_iter().collect()
    }

    /// The names of the checks that the analyses of an experiment are, and of the templates that are not among the files.
    pub(super) fn judged(&mut self, field: &Field<'_>) -> (Vec<String>, Vec<String>) {
        let (mut names, mut lacking, mut seen) = (BTreeSet::new(), Vec::new(), BTreeSet::new());
        for one in field.get("analyses").items() {
            let args = self.args(&one);
            match self.found(&one) {
                Some(template) => names.extend(self.templates(template, &args, Samples::AsSaid, &mut seen)),
                None => lacking.push(one.get("templateName").text().unwrap_or_default().to_owned()),
            }
        }
        (names.into_iter().collect(), lacking)
    }

    fn absent(&mut self, reference: &Field<'_>) {
        let name = reference.get("templateName").text().unwrap_or_default();
        let text = format!("the template {name} is not among the files: import it together with this one");
        self.notes.say(reference, NotUnderstood, text);
    }

    fn found(&self, reference: &Field<'_>) -> Option<usize> {
        let name = reference.get("templateName").text()?;
        let of_cluster = reference.get("clusterScope").is_true();
        let kind = if of_cluster { "ClusterAnalysisTemplate" } else { "AnalysisTemplate" };
        let near = |d: &Document| of_cluster || d.namespace == self.document.namespace;
        self.input
            .documents
            .iter()
            .position(|d| Tool::Argo.owns(&d.api_version) && d.kind == kind && d.name == name && near(d))
    }

    /// What the rollout puts into queries.
    fn args(&mut self, field: &Field<'_>) -> Args {
        let mut args = Args::new();
        for arg in field.get("args").items() {
            let Some(name) = arg.get("name").text() else { continue };
            let (path, hash) = (arg.at("/valueFrom/fieldRef/fieldPath"), arg.at("/valueFrom/podTemplateHashValue"));
            let value = match (path.text(), hash.text()) {
                (Some("metadata.name"), _) => Some(self.document.name.clone()),
                (Some("metadata.namespace"), _) => Some(self.document.namespace.clone()),
                (_, Some("Latest")) => Some(LATEST.to_owned()),
                (_, Some("Stable")) => Some(STABLE.to_owned()),
                _ => arg.get("value").words(),
            };
            match value {
                Some(value) => drop(args.insert(format!("args.{name}"), value)),
                None => self.notes.say(&arg, NotUnderstood, UNKNOWN),
            }
        }
        args
    }

    /// The names of the checks of a template, and of all that it leads to and was not seen yet.
    fn templates(&mut self, at: usize, args: &Args, samples: Samples, seen: &mut BTreeSet<usize>) -> Vec<String> {
        let (mut open, mut names) = (vec![at], Vec::new());
        while let Some(at) = open.pop() {
            if seen.len() >= MOST || !seen.insert(at) {
                continue;
            }
            let Some(template) = self.input.documents.get(at) else { continue };
            let of_template = template.spec("args").items();
            let of_template =
                of_template.iter().filter_map(|arg| Some((arg.get("name").text()?, arg.get("value").words()?)));
            let mut known: Args = of_template.map(|(name, value)| (format!("args.{name}"), value)).collect();
            known.extend(args.clone());
            let mut notes = self.shared.used.remove(&template.key()).unwrap_or_default();
            for (n, field) in template.spec("metrics").items().into_iter().enumerate() {
                names.extend(self.metric(&Metric { at, n, field, samples }, &known, &mut notes));
            }
            for reference in template.spec("templates").items() {
                let next = self.found(&reference);
                if next.is_none() {
                    let text = "it is not among the files: import it together with this one";
                    notes.say(&reference, NotUnderstood, text);
                }
                open.extend(next);
            }
            self.shared.used.insert(template.key(), notes);
        }
        names
    }

    fn metric(&mut self, metric: &Metric<'_>, known: &Args, notes: &mut Notes) -> Option<String> {
        let Metric { at, n, field, samples } = metric;
        let prometheus = field.at("/provider/prometheus");
        if !prometheus.is_there() {
            return notes.refuse(field, NotBuilt, OTHER_PROVIDER);
        }
        let unread = |why: String| format!("its query is not imported: {why}");
        let query = rendered(prometheus.get("query").text().unwrap_or_default(), known);
        let query = query.map_err(|why| notes.say(field, NotUnderstood, unread(why))).ok()?;
        let key = (*at, *n, query.clone(), *samples);
        if let Some(name) = self.made.get(&key) {
            return Some(name.clone());
        }
        if !self.draft.has_room(field, notes) {
            return None;
        }
        let Some(asked) = baseline::asked(&query) else {
            let why = Query::parse(&query).err().map_or_else(|| OTHER_HASH.to_owned(), |why| why.to_string());
            return notes.refuse(field, NotUnderstood, unread(why));
        };
        let mut limits = bounds(field, notes)?;
        let url = address(&prometheus.get("address"), known, notes);
        let provider = self.shared.providers.named("prometheus", &url, "main");
        let mut says = json!({"provider": provider, "query": query});
        if let Asked::OfLatest(query) | Asked::Compared(query, _) = &asked {
            says["query"] = query.as_str().into();
            says["labels"] = json!({POD: POD});
            notes.say(&prometheus.get("query"), Differs, BY_POD);
        }
        if let Asked::Compared(_, how) = asked {
            limits = Map::from_iter([("comparedWithStable".to_owned(), json!({how: limits}))]);
        }
        let interval = notes.interval(&field.get("interval"), 0);
        let samples = counts(metric, interval, notes, &mut limits);
        let says = [("prometheus".to_owned(), says)].into_iter().chain(limits).collect();
        let name = self.draft.check(field.get("name").text().unwrap_or("metric"), Check { says, interval, samples });
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
fn address(field: &Field<'_>, known: &Args, notes: &mut Notes) -> String {
    let said = field.text().unwrap_or(PROMETHEUS);
    rendered(said, known).unwrap_or_else(|what| {
        let text = format!("spec.providers of the Installation, where you have to write it: {what}");
        notes.say(field, Differs, text);
        said.to_owned()
    })
}

/// How many values a metric takes; how many it takes, and how many of them may be bad, is said of its check.
fn counts(metric: &Metric<'_>, interval: u64, notes: &mut Notes, says: &mut Map<String, Value>) -> u64 {
    let (count, limit) = (metric.field.get("count"), metric.field.get("failureLimit"));
    let bad = limit.count().filter(|limit| *limit <= MOST_BAD);
    let bad = notes.wanted(&limit, bad, &format!("a number from 0 to {MOST_BAD}"));
    let (said, bad) = (u64::from(count.count().unwrap_or(1).clamp(1, 1_000)), u64::from(bad.unwrap_or(0)));
    let (samples, bad) = match metric.samples {
        Samples::AsSaid => (said, tolerated(said, bad, &limit, notes)),
        Samples::Each { longest } => {
            if said > 1 {
                let text =
                    "the analysis goes on over several phases: each of them takes values for as long as it stays";
                notes.say(&count, DoneOtherwise, text);
            }
            of_phase(bad, interval, longest, &limit, notes)
        }
    };
    let said = [("minSamples", samples, 1), ("failureLimit", bad, 0)].into_iter();
    says.extend(said.filter(|(_, n, least)| n > least).map(|(key, n, _)| (key.to_owned(), n.into())));
    samples
}

/// How many values each phase takes, and how many of them may be bad.
fn of_phase(bad: u64, interval: u64, longest: u64, limit: &Field<'_>, notes: &mut Notes) -> (u64, u64) {
    let needed = bad + 1;
    if bad > 0 && interval.saturating_mul(needed) > longest {
        let text = format!(
            "left out: each phase judges its own values, and none stays for {needed}, of which {bad} may be bad. The first one out \
             of bounds takes the version back"
        );
        notes.say(limit, Differs, text);
        return (1, 0);
    }
    if bad > 0 {
        let text = "failureLimit of the check, in each phase anew, which takes one value more than that";
        notes.say(limit, Differs, text);
    }
    (needed, bad)
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
    notes.say(limit, Differs, text);
    most
}

/// The bounds that a metric's conditions are; none if they are no bounds.
fn bounds(metric: &Field<'_>, notes: &mut Notes) -> Option<Map<String, Value>> {
    let (success, failure) = (metric.get("successCondition"), metric.get("failureCondition"));
    let (field, found) = match success.text() {
        Some(text) => {
            let text_of_failure = "what is not a success is a failure here, and nothing is between them";
            notes.say(&failure, DoneOtherwise, text_of_failure);
            (&success, good(text))
        }
        None => (&failure, failure.text().and_then(bad)),
    };
    let Some(Bounds { min, max, strict }) = found else {
        let text =
            "its condition is not imported: it is more than a number that result, or result[0], is compared with";
        return notes.refuse(metric, NotUnderstood, text);
    };
    if strict {
        notes.say(field, Differs, "min and max of the check: the bound itself is good here");
    }
    let bounds = [("min", min), ("max", max)].into_iter();
    Some(bounds.filter_map(|(key, bound)| Some((key.to_owned(), number(bound?)?))).collect())
}
