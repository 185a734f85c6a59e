//! What is made of the input: rollouts with their manifests, and what the Installation has to know.

use super::fields::Note;
use super::input::Document;
use super::yaml::written;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use tidegate_controller::manifest::desired::{Layout, TargetKind};
use tidegate_controller::manifest::duration::Span;
use tidegate_controller::manifest::ids::{Namespace, RolloutName, StepName};
use tidegate_controller::manifest::measure::PrometheusQuery;
use tidegate_controller::manifest::object::Kind;
use tidegate_controller::record::text::plain;

/// The most checks of a phase, and so of what is imported.
const MOST_CHECKS: usize = 20;
/// What is said of those beyond.
pub(super) const TOO_MANY: &str = "a phase has at most 20 checks";
/// The most phases of a rollout.
pub(super) const MOST_PHASES: usize = 50;

/// A file that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Made {
    /// Where it belongs: `shop/podinfo/rollout.yaml`.
    pub path: String,
    /// Its content.
    pub text: String,
}

/// An object that has to stand beside a rollout, and was not among the input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Expected {
    /// The file that it belongs to.
    pub file: String,
    /// Its kind and name.
    pub object: String,
    /// What it is for.
    pub why: String,
}

/// A query of a check that was made, and that `tidegate validate` refuses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// The rollout's file.
    pub file: String,
    /// The check.
    pub check: String,
    /// Why, and what is wanted.
    pub why: String,
}

/// All that an import yields.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Imported {
    /// The files.
    pub files: Vec<Made>,
    /// What has to stand beside them and is not there.
    pub expected: Vec<Expected>,
    /// Queries that have to be written anew.
    pub refused: Vec<Refused>,
    /// Below `spec.providers` of the Installation: whom the checks ask.
    pub providers: BTreeMap<String, Value>,
    /// What became of each field of the input.
    pub fields: Vec<Note>,
}

/// Whom checks ask, by the names that they use.
#[derive(Debug, Clone, Default)]
pub(super) struct Providers(BTreeMap<String, Value>);

impl Providers {
    /// The name of who answers at that address; one that is new is called as is wished, as far as that name is free.
    pub(super) fn named(&mut self, kind: &str, url: &str, wish: &str) -> String {
        let provider = json!({kind: {"url": url}});
        if let Some((name, _)) = self.0.iter().find(|(_, known)| **known == provider) {
            return name.clone();
        }
        let name = name_of(wish, 63, |name| self.0.contains_key(name));
        self.0.insert(name.clone(), provider);
        name
    }

    /// All of them.
    pub(super) fn all(self) -> BTreeMap<String, Value> {
        self.0
    }
}

/// What stands before a step, as a rollout's file says it.
pub(super) type Gates = Map<String, Value>;

/// A phase to be.
#[derive(Debug, Clone, Default)]
pub(super) struct Phase {
    /// What it is called, as far as that name is free.
    pub wish: String,
    /// What must be open to enter it.
    pub before: Gates,
    /// What it exposes.
    pub expose: Map<String, Value>,
    /// How long it stays, in seconds.
    pub soak: u64,
    /// What has to hold meanwhile.
    pub checks: Vec<String>,
}

/// The way from the last phase to the end.
#[derive(Debug, Clone, Default)]
pub(super) struct Promotion {
    /// What must be open to enter it.
    pub before: Gates,
    /// How long the old version stays, in seconds.
    pub bake: u64,
    /// What has to hold meanwhile.
    pub checks: Vec<String>,
}

/// A check to be.
#[derive(Debug, Clone)]
pub(super) struct Check {
    /// What the file says of it, but for its interval.
    pub says: Map<String, Value>,
    /// The seconds between two questions.
    pub interval: u64,
    /// How many answers it takes.
    pub samples: u64,
}

/// The object that a rollout was.
#[derive(Debug, Clone, Default)]
pub(super) struct Origin {
    /// Its file.
    pub file: String,
    /// The line that it begins with.
    pub line: usize,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// A rollout to be.
#[derive(Debug, Clone, Default)]
pub(super) struct Draft {
    /// Where it was read, for the file's first line.
    pub from: String,
    /// The object that it was, with its place.
    pub origin: Origin,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// What is rolled out.
    pub kind: TargetKind,
    /// Its name.
    pub target: String,
    /// How many pods run for it while a tool keeps it at none.
    pub size: Option<u32>,
    /// How many it has, where a tool says that in its place.
    pub replicas: Option<u32>,
    /// What its objects are called.
    pub layout: Layout,
    /// How requests are split.
    pub traffic: Value,
    /// The Service of the new version among the input: a run makes one itself.
    pub second: Option<String>,
    /// Its phases.
    pub phases: Vec<Phase>,
    /// Its end.
    pub promotion: Promotion,
    /// Its checks.
    pub checks: BTreeMap<String, Check>,
    /// Who is told how a run fares.
    pub hooks: BTreeMap<String, Value>,
    /// How long pods may take to become ready, in seconds; the default if it is not said.
    pub progress_deadline: Option<u64>,
    /// Whether it stands still.
    pub suspend: bool,
    /// The objects that it refers to, and what for. What is not among the input is expected beside it.
    pub refers: Vec<(Kind, String, &'static str)>,
    /// Objects that the input says in other words.
    pub objects: Vec<Value>,
}

impl Draft {
    /// A rollout of that document's name. The name and namespace of a rollout are not as free as those of objects.
    pub(super) fn of(document: &Document) -> Self {
        let Document { file, namespace, name, kind, node, .. } = document;
        let (file_text, line) = (file.to_string(), node.mark.line);
        Self {
            from: format!("{kind} {name} in {file}"),
            origin: Origin { file: file_text, line, namespace: namespace.clone(), name: name.clone() },
            namespace: namespace
                .parse()
                .map_or_else(|_| name_of(namespace, 63, |_| false), |n: Namespace| n.to_string()),
            name: name.parse().map_or_else(|_| name_of(name, 52, |_| false), |n: RolloutName| n.to_string()),
            ..Self::default()
        }
    }

    /// Whether there is no room for one more check.
    pub(super) fn is_full(&self) -> bool {
        self.checks.len() >= MOST_CHECKS
    }

    /// Adds a check; its name as it is used.
    pub(super) fn check(&mut self, wish: &str, check: Check) -> String {
        let name = name_of(wish, 40, |name| self.checks.contains_key(name));
        self.checks.insert(name.clone(), check);
        name
    }

    /// Adds who is told how a run fares; of everything, or of these events.
    pub(super) fn hook(&mut self, wish: &str, call: Value, events: &[&str]) {
        let name = name_of(wish, 40, |name| self.hooks.contains_key(name));
        let mut hook = Map::from_iter([("webhook".to_owned(), call)]);
        put(&mut hook, "events", events.into());
        self.hooks.insert(name, hook.into());
    }

    /// The time that checks need to come to a result, in seconds.
    pub(super) fn needs(&self, checks: &[String]) -> u64 {
        let needs =
            checks.iter().filter_map(|name| self.checks.get(name)).map(|c| c.interval.saturating_mul(c.samples));
        needs.max().unwrap_or(0)
    }

    /// The directory of its files.
    fn directory(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// The file of its manifests.
    pub(super) fn manifests(&self) -> String {
        format!("{}/{}.yaml", self.directory(), self.name)
    }

    /// Its file.
    pub(super) fn file(&self) -> Made {
        let value = json!({
            "apiVersion": tidegate_controller::manifest::raw::ApiVersion::TEXT,
            "kind": "Rollout",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": self.spec(),
        });
        let from: String = self.from.chars().filter(|c| (' '..='~').contains(c)).take(200).collect();
        let text = format!("# {from}\n{}", written(&value));
        Made { path: self.path(), text }
    }

    /// The rollout's file.
    fn path(&self) -> String {
        format!("{}/rollout.yaml", self.directory())
    }

    fn spec(&self) -> Value {
        let mut spec = Map::new();
        spec.insert("manifests".to_owned(), json!([format!("{}.yaml", self.name)]));
        let mut target = json!({"kind": self.kind, "name": self.target});
        if self.layout == Layout::Primary {
            target["layout"] = json!(self.layout);
        }
        spec.insert("target".to_owned(), target);
        let mut names = BTreeSet::new();
        let all = json!(100);
        let alone = self.phases.iter().position(|phase| phase.expose.get("weight") == Some(&all));
        let mut phases = self.phases.clone();
        phases
            .iter_mut()
            .skip(alone.unwrap_or(usize::MAX))
            .for_each(|phase| self.leave_out_comparisons(&mut phase.checks));
        let Promotion { before, bake, mut checks } = self.promotion.clone();
        self.leave_out_comparisons(&mut checks);
        let mut promotion = Map::new();
        put(&mut promotion, "before", before.into());
        put(&mut promotion, "bake", span(bake));
        put(&mut promotion, "checks", checks.clone().into());
        // A check that no step names would be an error.
        let named: BTreeSet<&String> = phases.iter().flat_map(|phase| &phase.checks).chain(&checks).collect();
        let used = self.checks.iter().filter(|(name, _)| named.contains(name));
        let checks = used.map(|(name, check)| (name.clone(), check.value())).collect::<Map<_, _>>();
        put(&mut spec, "traffic", self.traffic.clone());
        put(&mut spec, "phases", phases.iter().map(|phase| phase.value(&mut names)).collect());
        put(&mut spec, "promotion", promotion.into());
        put(&mut spec, "checks", checks.into());
        put(&mut spec, "hooks", self.hooks.clone().into_iter().collect::<Map<_, _>>().into());
        put(&mut spec, "progressDeadline", self.progress_deadline.map_or(Value::Null, span));
        put(&mut spec, "suspend", if self.suspend { true.into() } else { Value::Null });
        spec.into()
    }

    /// The queries of the rollout's file that are refused there.
    pub(super) fn refused(&self) -> Vec<Refused> {
        let spec = self.spec();
        let checks = spec["checks"].as_object().into_iter().flatten();
        let refused = checks.filter_map(|(check, says)| {
            let asked: PrometheusQuery = serde_json::from_value(says.get("prometheus")?.clone()).ok()?;
            let (file, check) = (self.path(), check.clone());
            Some(Refused { file, check, why: plain(&asked.mistake()?.to_string()) })
        });
        refused.collect()
    }

    /// Where all requests reach the new version there is nothing to compare with.
    fn leave_out_comparisons(&self, checks: &mut Vec<String>) {
        checks.retain(|name| self.checks.get(name).is_none_or(|check| !check.says.contains_key("comparedWithStable")));
    }
}

/// Leaves out what says nothing.
fn put(map: &mut Map<String, Value>, key: &str, value: Value) {
    let empty = match &value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::String(text) => text == "0s",
        Value::Bool(_) | Value::Number(_) => false,
    };
    if !empty {
        map.insert(key.to_owned(), value);
    }
}

impl Phase {
    fn value(&self, names: &mut BTreeSet<String>) -> Value {
        let taken = |name: &str| names.contains(name) || StepName::RESERVED.contains(&name);
        // A ramp makes names of its own, with up to four characters more.
        let name = name_of(&self.wish, 36, taken);
        names.insert(name.clone());
        let mut phase = Map::new();
        phase.insert("name".to_owned(), name.into());
        put(&mut phase, "before", self.before.clone().into());
        phase.insert("expose".to_owned(), self.expose.clone().into());
        put(&mut phase, "soak", span(self.soak));
        put(&mut phase, "checks", self.checks.clone().into());
        phase.into()
    }
}

impl Check {
    fn value(&self) -> Value {
        let mut check = self.says.clone();
        check.insert("interval".to_owned(), span(self.interval));
        check.into()
    }
}

/// Seconds as a rollout's file says them.
pub(super) fn span(seconds: u64) -> Value {
    Span::from_secs(seconds).to_string().into()
}

/// A number that readers agree on: whole ones without a fraction.
pub(super) fn number(value: f64) -> Option<Value> {
    const MOST: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 {
        #[expect(clippy::cast_possible_truncation, reason = "whole, and small enough")]
        return (value.abs() <= MOST).then(|| (value as i64).into());
    }
    Some(value.into())
}

/// A name of ours that is as near to a text as the rules allow, and not taken.
pub(super) fn name_of(text: &str, longest: usize, taken: impl Fn(&str) -> bool) -> String {
    let text: String = text
        .chars()
        .take(200)
        .flat_map(char::to_lowercase)
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let cut = |text: &str, most: usize| text.chars().take(most).collect::<String>().trim_matches('-').to_owned();
    let name = cut(text.trim_matches('-'), longest);
    let name = if name.is_empty() { "unnamed".to_owned() } else { name };
    let others = (2..).map(|n: u32| {
        let ending = format!("-{n}");
        format!("{}{ending}", cut(&name, longest.saturating_sub(ending.len())))
    });
    std::iter::once(name.clone()).chain(others).find(|name| !taken(name)).unwrap_or(name)
}

/// A length of time as Go writes it (`90s`, `1h30m`, `1.5m`, `500ms`), in seconds, rounded up.
pub(super) fn go_duration(text: &str) -> Option<u64> {
    // Sums of fractions may lie a hair above a whole second.
    let seconds = (go_seconds(text)? - 1e-9).ceil().max(0.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between nothing and ten years")]
    return (seconds <= 87_600.0 * 3_600.0).then_some(seconds as u64);
}

/// What is said of a length of time that is no whole number of seconds.
pub(super) fn rounded(text: &str) -> Option<String> {
    let (exact, whole) = (go_seconds(text)?, go_duration(text)?);
    (exact.ceil() - exact > 1e-6).then(|| format!("times are whole seconds here: {}", Span::from_secs(whole)))
}

/// The same, in seconds with their fractions.
fn go_seconds(text: &str) -> Option<f64> {
    let (mut rest, mut total) = (text.trim_start_matches('+'), 0.0_f64);
    if rest == "0" {
        return Some(0.0);
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (digits, tail) = rest.split_at(end);
        let units = [("ms", 0.001), ("us", 1e-6), ("µs", 1e-6), ("ns", 1e-9), ("h", 3600.0), ("m", 60.0), ("s", 1.0)];
        let (factor, tail) = units.iter().find_map(|(unit, factor)| Some((factor, tail.strip_prefix(unit)?)))?;
        total += digits.parse::<f64>().ok()? * factor;
        rest = tail;
    }
    (!text.is_empty()).then_some(total)
}

/// A word for a share that fits a name.
pub(super) fn share(weight: u32) -> String {
    format!("weight-{weight}")
}
