//! The parts of a route's rules, as the API server completes them.

use super::candidate_name;
use crate::manifest::desired::{HeaderMatch, HeaderValue};
use crate::manifest::ids::Percent;
use crate::manifest::object::{Kind, Object, items, items_mut, section};
use crate::workload::routers::Services;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Whom a reference names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Backend {
    Stable,
    Candidate,
    Other,
}

/// What a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// Neither role.
    Elsewhere,
    /// The candidate and nobody else.
    Alone,
    /// The candidate and others, but not stable.
    Mixed,
    /// Stable, and perhaps the candidate with this share of both, rounded up.
    Split {
        share: Percent,
        /// Whether one of them gets any request.
        serves: bool,
    },
}

/// The weights of a rule, none where it does not name that role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) stable: Option<u64>,
    pub(super) candidate: Option<u64>,
    pub(super) others: bool,
}

/// What stable and candidate are called in one route.
pub(super) struct Names<'a> {
    namespace: &'a str,
    stable: &'a str,
    candidate: String,
    kind: Kind,
}

impl<'a> Names<'a> {
    pub(super) fn of(route: &'a Object, services: impl Into<Services<'a>>) -> Self {
        let services = services.into();
        let namespace = route.reference().namespace.as_str();
        let candidate = candidate_name(services);
        Self { namespace, stable: services.stable.as_str(), candidate, kind: route.reference().kind }
    }

    pub(super) fn backend(&self, backend: &Value) -> Backend {
        let field = |key: &str, default| backend.get(key).and_then(Value::as_str).unwrap_or(default);
        let local = field("group", "").is_empty()
            && field("kind", "Service") == "Service"
            && field("namespace", self.namespace) == self.namespace;
        match field("name", "") {
            name if local && name == self.stable => Backend::Stable,
            name if local && name == self.candidate => Backend::Candidate,
            _ => Backend::Other,
        }
    }

    /// The matches of a rule; without any, all requests in the words of the route's kind.
    pub(super) fn matches(&self, rule: &Value) -> Vec<Value> {
        if self.kind == Kind::GrpcRoute && items(rule, "matches").next().is_none() {
            return vec![json!({})];
        }
        matches(rule)
    }

    pub(super) fn candidate_ref(&self, backend: &Value) -> Value {
        named(backend, &self.candidate)
    }

    pub(super) fn stable_ref(&self, backend: &Value) -> Value {
        named(backend, self.stable)
    }

    pub(super) fn sums(&self, rule: &Value) -> Sums {
        let mut sums = Sums { stable: None, candidate: None, others: false };
        for backend in items(rule, "backendRefs") {
            let weight = weight(backend);
            match self.backend(backend) {
                Backend::Stable => sums.stable = Some(sums.stable.unwrap_or(0) + weight),
                Backend::Candidate => sums.candidate = Some(sums.candidate.unwrap_or(0) + weight),
                Backend::Other => sums.others = true,
            }
        }
        sums
    }

    pub(super) fn rule(&self, rule: &Value) -> Rule {
        match self.sums(rule) {
            Sums { stable: None, candidate: None, .. } => Rule::Elsewhere,
            Sums { stable: None, candidate: Some(_), others: false } => Rule::Alone,
            // A share of nothing reaches nobody: so another tool leaves a route to copies of its own.
            Sums { stable: None, candidate: Some(0), others: true } => Rule::Elsewhere,
            Sums { stable: None, candidate: Some(_), others: true } => Rule::Mixed,
            Sums { stable: Some(stable), candidate, .. } => {
                let candidate = candidate.unwrap_or(0);
                let all = stable + candidate;
                let share = (candidate * 100).div_ceil(all.max(1));
                let share = u8::try_from(share).ok().and_then(|s| Percent::try_from(s).ok()).unwrap_or(Percent::ALL);
                Rule::Split { share, serves: all > 0 }
            }
        }
    }

    pub(super) fn mirrors_candidate(&self, rule: &Value) -> bool {
        filters(rule).any(|filter| self.mirrors(filter) == Some(Backend::Candidate))
    }

    /// The share of a rule's requests of which the candidate gets a copy.
    pub(super) fn copies(&self, rule: &Value) -> Percent {
        let to_candidate = filters(rule).filter(|filter| self.mirrors(filter) == Some(Backend::Candidate));
        to_candidate.map(|filter| share(&filter["requestMirror"])).max().unwrap_or_default()
    }

    pub(super) fn names_stable(&self, rule: &Value) -> bool {
        items(rule, "backendRefs").any(|b| self.backend(b) == Backend::Stable)
            || filters(rule).any(|filter| self.mirrors(filter) == Some(Backend::Stable))
    }

    /// The rule without mirrors to the candidate.
    pub(super) fn unmirrored(&self, rule: &Value) -> Value {
        let mut rule = rule.clone();
        let keep = |filter: &Value| self.mirrors(filter) != Some(Backend::Candidate);
        if let Some(filters) = rule.get_mut("filters").and_then(Value::as_array_mut) {
            let before = filters.len();
            filters.retain(keep);
            if filters.is_empty() && before > 0 {
                section(&mut rule, &[]).shift_remove("filters");
            }
        }
        for backend in items_mut(&mut rule, "backendRefs") {
            if let Some(filters) = backend.get_mut("filters").and_then(Value::as_array_mut) {
                filters.retain(keep);
            }
        }
        rule
    }

    fn mirrors(&self, filter: &Value) -> Option<Backend> {
        filter.pointer("/requestMirror/backendRef").map(|backend| self.backend(backend))
    }
}

/// The share of a mirror, rounded up; all unless it says less.
fn share(mirror: &Value) -> Percent {
    let number = |pointer: &str| mirror.pointer(pointer).and_then(Value::as_u64);
    let fraction =
        number("/fraction/numerator").map(|n| (n.min(1 << 32), number("/fraction/denominator").unwrap_or(100)));
    let fraction = fraction.map(|(n, of)| (n * 100).div_ceil(of.max(1)));
    let percent = number("/percent").or(fraction).and_then(|percent| u8::try_from(percent).ok());
    percent.and_then(|percent| Percent::try_from(percent).ok()).unwrap_or(Percent::ALL)
}

pub(super) fn named(backend: &Value, name: &str) -> Value {
    let mut backend = backend.clone();
    section(&mut backend, &[]).insert("name".to_owned(), name.into());
    backend
}

fn filters(rule: &Value) -> impl Iterator<Item = &Value> {
    items(rule, "filters").chain(items(rule, "backendRefs").flat_map(|backend| items(backend, "filters")))
}

/// The weight of a reference; 1 unless given. Cut off far above what the API takes, so that sums cannot overflow.
pub(in crate::workload::routers) fn weight(backend: &Value) -> u64 {
    backend.get("weight").map_or(1, |weight| weight.as_u64().unwrap_or(0).min(1 << 40))
}

/// The matches of a rule; without any, all paths.
fn matches(rule: &Value) -> Vec<Value> {
    let given: Vec<Value> = items(rule, "matches").cloned().collect();
    if given.is_empty() { vec![json!({"path": every_path()})] } else { given }
}

fn every_path() -> Value {
    json!({"type": "PathPrefix", "value": "/"})
}

/// How a header (or query parameter) is compared, and with what.
pub(super) fn condition(entry: &Value) -> Condition {
    (text(entry, "type", "Exact"), text(entry, "value", ""))
}

fn text(value: &Value, key: &str, default: &str) -> String {
    value[key].as_str().unwrap_or(default).to_owned()
}

/// The same, as a phase asks for it.
pub(super) fn asked(value: &HeaderValue) -> Condition {
    match value {
        HeaderValue::Exact(value) => ("Exact".to_owned(), value.clone()),
        HeaderValue::Regex { regex } => ("RegularExpression".to_owned(), regex.clone()),
    }
}

/// How, and with what.
pub(super) type Condition = (String, String);

/// One match of a rule, with the API server's defaults in it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Match {
    /// Path, query parameters, and whatever else it asks for.
    rest: Value,
    /// By lower-case name.
    headers: Headers,
}

type Headers = BTreeMap<String, Condition>;

/// The matches of a rule, in comparable form.
pub(super) fn parsed(rule: &Value) -> Vec<Match> {
    let one = |given: &Value| {
        let path = given.get("path").cloned().unwrap_or_else(every_path);
        let query: BTreeMap<_, _> = items(given, "queryParams").map(|q| (text(q, "name", ""), condition(q))).collect();
        let path = [text(&path, "type", "PathPrefix"), text(&path, "value", "/")];
        // Of several entries for one header the first counts.
        let mut headers = Headers::new();
        for header in items(given, "headers") {
            headers.entry(text(header, "name", "").to_ascii_lowercase()).or_insert_with(|| condition(header));
        }
        let mut others = given.clone();
        section(&mut others, &[]).retain(|key, _| !["path", "headers", "queryParams", "own"].contains(&key.as_str()));
        Match { rest: json!([path, query, others]), headers }
    };
    matches(rule).iter().map(one).collect()
}

impl Match {
    /// What `narrower` asks for beyond this match; none if it lets through what this match does not.
    fn beyond(&self, narrower: &Self) -> Option<Headers> {
        let holds = self.headers.iter().all(|(name, value)| narrower.headers.get(name) == Some(value));
        let more = || narrower.headers.iter().filter(|(name, _)| !self.headers.contains_key(*name));
        (self.rest == narrower.rest && holds).then(|| more().map(|(n, v)| (n.clone(), v.clone())).collect())
    }
}

/// Whether each request of `special` is one that `base` matches too.
pub(super) fn narrows(special: &Value, base: &Value) -> bool {
    let bases = parsed(base);
    parsed(special).iter().all(|s| bases.iter().any(|b| b.beyond(s).is_some()))
}

/// A rule that names stable, with the rule for headers before it.
pub(super) struct Group {
    pub(super) bases: Vec<Match>,
    pub(super) special: Vec<Match>,
    /// Whether stable or the candidate gets requests from the rule: else it has no rule for headers.
    pub(super) serves: bool,
}

/// The header alternatives that all rules together show; `None` if some match goes to the candidate as a whole.
///
/// An alternative counts if each rule sends the candidate every request with its headers. What is left unexplained is
/// added as it stands, so that the answer is never too small.
pub(super) fn alternatives(groups: &[Group]) -> Result<Option<BTreeSet<HeaderMatch>>, String> {
    let mut candidates = BTreeSet::new();
    let mut smallest = Vec::new();
    for group in groups {
        for special in &group.special {
            let extras: Vec<Headers> = group.bases.iter().filter_map(|base| base.beyond(special)).collect();
            let Some(least) = extras.iter().min_by_key(|extra| extra.len()).cloned() else {
                return Err("a rule for the candidate alone matches requests that the rule after it does not".into());
            };
            if least.is_empty() {
                return Ok(None);
            }
            smallest.push((special, values(&least)?));
            for extra in &extras {
                candidates.insert(values(extra)?);
            }
        }
    }
    let mut kept: BTreeSet<HeaderMatch> =
        candidates.into_iter().filter(|alternative| groups.iter().all(|group| group.sends(alternative))).collect();
    for (special, least) in smallest {
        if !kept.iter().any(|alternative| special.asks_for(alternative)) {
            kept.insert(least);
        }
    }
    let all = kept.clone();
    let implied = |a: &HeaderMatch| all.iter().any(|b| b != a && b.iter().all(|(n, v)| a.get(n) == Some(v)));
    kept.retain(|alternative| !implied(alternative));
    Ok(Some(kept))
}

impl Match {
    fn asks_for(&self, alternative: &HeaderMatch) -> bool {
        alternative.iter().all(|(name, value)| self.headers.get(name) == Some(&asked(value)))
    }
}

impl Group {
    /// Whether every request of the rule that carries these headers reaches the candidate.
    fn sends(&self, alternative: &HeaderMatch) -> bool {
        let sent = |base: &Match| {
            let own = |name: &String| base.headers.get(name);
            let conflict = alternative.iter().any(|(n, v)| own(n).is_some_and(|found| *found != asked(v)));
            let mut joined = base.clone();
            joined.headers.extend(alternative.iter().map(|(name, value)| (name.clone(), asked(value))));
            conflict || self.special.iter().any(|special| special.beyond(&joined).is_some())
        };
        !self.serves || self.bases.iter().all(sent)
    }
}

fn values(headers: &Headers) -> Result<HeaderMatch, String> {
    let value = |(name, (how, value)): (&String, &Condition)| match how.as_str() {
        "Exact" => Ok((name.clone(), HeaderValue::Exact(value.clone()))),
        "RegularExpression" => Ok((name.clone(), HeaderValue::Regex { regex: value.clone() })),
        how => Err(format!("a rule for the candidate alone matches header {name} by {how}")),
    };
    headers.iter().map(value).collect()
}
