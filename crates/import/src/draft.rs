//! What is made of the input: rollouts with their manifests, and what the Installation has to know.

use super::fields::{FieldOutcome, Note, Notes};
use super::input::{Document, Field};
use super::yaml::written;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use tidegate_controller::manifest::desired::{Layout, TargetKind};
use tidegate_controller::manifest::duration::Span;
use tidegate_controller::manifest::ids::StepName;
use tidegate_controller::manifest::measure::PrometheusQuery;
use tidegate_controller::manifest::object::Kind;
use tidegate_controller::record::text::plain;

/// The most checks of a phase, and so of what is imported.
const MOST_CHECKS: usize = 20;
/// The most phases of a rollout.
pub(super) const MOST_PHASES: usize = 50;
/// What is said of what would be a preview with a router that moves pods.
pub(super) const BY_PODS: &str = "by pods nobody can try the new version before users meet it";
/// Whom both tools ask if they are not told.
pub(super) const PROMETHEUS: &str = "http://prometheus:9090";

/// What is said of phases beyond.
pub(super) fn too_many_phases() -> String {
    format!("a rollout has at most {MOST_PHASES} phases")
}

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
pub struct RefusedCheck {
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
    pub refused: Vec<RefusedCheck>,
    /// Below `spec.providers` of the Installation: whom the checks ask.
    pub providers: BTreeMap<String, Value>,
    /// What became of each field of the input.
    pub fields: Vec<Note>,
}

/// Whom checks ask, by the names that they use.
#[derive(Debug, Clone, Default)]
pub(super) struct Providers(pub BTreeMap<String, Value>);

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

/// A rollout to be.
#[derive(Debug, Clone, Default)]
pub(super) struct Draft {
    /// Where it was read, for the file's first line.
    pub from: String,
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
        let Document { file, namespace, name, kind, .. } = document;
        Self {
            from: format!("{kind} {name} in {file}"),
            namespace: name_of(namespace, 63, |_| false),
            name: name_of(name, 52, |_| false),
            ..Self::default()
        }
    }

    /// Takes another name if it is one of another rollout, as two never share a file.
    pub(super) fn tell_apart(&mut self, seen: &mut BTreeSet<(String, String)>) {
        let taken = |name: &str| seen.contains(&(self.namespace.clone(), name.to_owned()));
        self.name = name_of(&self.name, 52, taken);
        seen.insert((self.namespace.clone(), self.name.clone()));
    }

    /// Whether there is room for one more check; if not, that is said of what would be one.
    pub(super) fn has_room(&self, field: &Field<'_>, notes: &mut Notes) -> bool {
        let has_room = self.checks.len() < MOST_CHECKS;
        if !has_room {
            notes.say(field, FieldOutcome::NotBuilt, "a phase has at most 20 checks");
        }
        has_room
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
        self.hooks.insert(name, sparse(json!({"webhook": call, "events": events})));
    }

    /// The time that checks need to come to a result, in seconds.
    pub(super) fn needs(&self, checks: &[String]) -> u64 {
        let needs =
            checks.iter().filter_map(|name| self.checks.get(name)).map(|c| c.interval.saturating_mul(c.samples));
        needs.max().unwrap_or(0)
    }

    /// The file of its manifests.
    pub(super) fn manifests(&self) -> String {
        format!("{}/{name}/{name}.yaml", self.namespace, name = self.name)
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
        format!("{}/{}/rollout.yaml", self.namespace, self.name)
    }

    fn spec(&self) -> Value {
        let all = json!(100);
        let alone = self.phases.iter().position(|phase| phase.expose.get("weight") == Some(&all));
        let alone = alone.unwrap_or(self.phases.len());
        // Where all requests reach the new version there is nothing to compare with.
        let compares = |name: &str| self.checks.get(name).is_some_and(|c| c.says.contains_key("comparedWithStable"));
        let of_step = self.phases.iter().map(|phase| &phase.checks).chain([&self.promotion.checks]).enumerate();
        let of_step = of_step.map(|(n, checks)| checks.iter().filter(|name| n < alone || !compares(name)).collect());
        let of_step: Vec<Vec<&String>> = of_step.collect();
        // A check that no step names would be an error.
        let named: BTreeSet<&&String> = of_step.iter().flatten().collect();
        let checks = self.checks.iter().filter(|(name, _)| named.contains(name));
        let mut names = BTreeSet::new();
        let phases = self.phases.iter().zip(&of_step).map(|(phase, checks)| phase.value(checks, &mut names));
        let Promotion { before, bake, checks: _ } = &self.promotion;
        let layout = Some(self.layout).filter(|layout| *layout == Layout::Primary);
        sparse(json!({
            "manifests": [format!("{}.yaml", self.name)],
            "target": sparse(json!({"kind": self.kind, "name": self.target, "layout": layout})),
            "traffic": self.traffic,
            "phases": phases.collect::<Vec<_>>(),
            "promotion": sparse(json!({"before": before, "bake": span(*bake), "checks": of_step.last()})),
            "checks": checks.map(|(name, check)| (name.clone(), check.value())).collect::<Map<_, _>>(),
            "hooks": self.hooks,
            "progressDeadline": self.progress_deadline.map(span),
            "suspend": self.suspend.then_some(true),
        }))
    }

    /// The queries of the rollout's file that are refused there.
    pub(super) fn refused(&self) -> Vec<RefusedCheck> {
        let spec = self.spec();
        let checks = spec["checks"].as_object().into_iter().flatten();
        let refused = checks.filter_map(|(check, says)| {
            let asked: PrometheusQuery = serde_json::from_value(says.get("prometheus")?.clone()).ok()?;
            let (file, check) = (self.path(), check.clone());
            Some(RefusedCheck { file, check, why: plain(&asked.mistake()?.to_string()) })
        });
        refused.collect()
    }
}

/// An object without what says nothing.
pub(super) fn sparse(mut value: Value) -> Value {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::String(_) | Value::Bool(_) | Value::Number(_) => false,
    };
    value.as_object_mut().into_iter().for_each(|map| map.retain(|_, value| !is_empty(value)));
    value
}

/// An object of Kubernetes.
pub(super) fn object(kind: Kind, metadata: Value, spec: impl Into<Value>) -> Value {
    let spec: Value = spec.into();
    json!({"apiVersion": kind.api_version(), "kind": kind.as_str(), "metadata": metadata, "spec": spec})
}

impl Phase {
    /// A phase that exposes one thing.
    pub(super) fn of(wish: impl Into<String>, key: &str, value: impl Into<Value>) -> Self {
        Self { wish: wish.into(), expose: Map::from_iter([(key.to_owned(), value.into())]), ..Self::default() }
    }

    /// A phase that exposes nothing to users.
    pub(super) fn preview() -> Self {
        Self::of("preview", "preview", "fullSize")
    }

    /// A phase with a share of all requests.
    pub(super) fn weight(weight: u32) -> Self {
        Self::of(format!("weight-{weight}"), "weight", weight)
    }

    fn value(&self, checks: &[&String], names: &mut BTreeSet<String>) -> Value {
        let taken = |name: &str| names.contains(name) || StepName::RESERVED.contains(&name);
        // A ramp makes names of its own, with up to four characters more.
        let name = name_of(&self.wish, 36, taken);
        names.insert(name.clone());
        let Self { wish: _, before, expose, soak, checks: _ } = self;
        sparse(json!({"name": name, "before": before, "expose": expose, "soak": span(*soak), "checks": checks}))
    }

    /// Adds checks.
    pub(super) fn judge(&mut self, checks: impl IntoIterator<Item = String>) {
        self.checks.extend(checks);
        self.checks.sort();
        self.checks.dedup();
    }
}

/// A person's word.
pub(super) fn approval() -> [(String, Value); 1] {
    [("approval".to_owned(), "pullRequest".into())]
}

impl Check {
    fn value(&self) -> Value {
        let mut check = self.says.clone();
        check.insert("interval".to_owned(), span(self.interval));
        check.into()
    }
}

/// Seconds as a rollout's file says them; none says nothing.
fn span(seconds: u64) -> Value {
    if seconds == 0 { Value::Null } else { Span::from_secs(seconds).to_string().into() }
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
