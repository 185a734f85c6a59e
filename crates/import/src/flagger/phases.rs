//! How Flagger goes, as phases: weights that go up, so many intervals without users, or with some.

use super::{Canary, Router, Strategy, TRAFFIC_INCREASE, fields};
use crate::draft::{MOST_PHASES, Phase, share};
use crate::fields::Outcome;
use crate::input::Field;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use tidegate_controller::manifest::desired::TargetKind;
use tidegate_controller::record::text::count;

impl Canary<'_> {
    /// Weights that go up, one for each interval.
    pub(super) fn weights(&mut self) {
        self.unused(&["iterations"], "without match it is for blue/green, and 0 means weights");
        let (steps, list) = (self.analysis("stepWeight"), self.analysis("stepWeights"));
        let is_list = !list.items().is_empty();
        let Some(step) = percent(&steps) else {
            if is_list {
                self.unused(&["stepWeight", "maxWeight"], "stepWeights says each weight");
                let weights = self.rising(&list);
                self.ramp(json!({"weights": weights}));
            } else {
                self.unused(&["stepWeights"], "it is empty");
            }
            return;
        };
        if is_list {
            self.unused(&["maxWeight"], "the last of stepWeights is the most");
            self.unused(&["stepWeights"], "stepWeight goes before it, up to the last of them");
        } else {
            self.unused(&["stepWeights"], "it is empty");
        }
        let most = self.most();
        if step > most {
            let most = if is_list { "the last of stepWeights" } else { "maxWeight" };
            self.notes.say(&steps, Outcome::Differs, format!("larger than {most}: one phase with that weight"));
        }
        let room = u32::try_from(MOST_PHASES - 10).unwrap_or(1);
        let wide = step.min(most).max(most.div_ceil(room));
        let mut soak = self.interval;
        if wide > step {
            soak = soak.saturating_mul(u64::from(wide)) / u64::from(step);
            let text = format!(
                "a rollout has at most {MOST_PHASES} phases: the step is {wide}, and each takes as much longer"
            );
            self.notes.say(&steps, Outcome::Differs, text);
        }
        self.ramp(json!({"ramp": {"step": wide, "max": most}}));
        for phase in &mut self.draft.phases {
            phase.soak = soak;
        }
    }

    /// The weight from which it promotes, by steps of one size (`maxWeight` of its scheduler).
    fn most(&self) -> u32 {
        let list = self.analysis("stepWeights").items();
        list.last().map_or_else(|| percent(&self.analysis("maxWeight")), percent).unwrap_or(100)
    }

    /// The weights that it goes to, one for each interval. A list counts where there is no step (`nextStepWeight` of its scheduler).
    pub(super) fn steps(&self) -> Vec<u32> {
        if let Some(step) = percent(&self.analysis("stepWeight")) {
            let most = self.most();
            return (step..most).step_by(usize::try_from(step).unwrap_or(1)).chain([most]).collect();
        }
        let list = self.analysis("stepWeights").items();
        let mut last = 0;
        let rises = |weight: &u32| {
            let before = last;
            last = before.max(*weight);
            before < *weight
        };
        list.iter().filter_map(percent).filter(rises).collect()
    }

    /// The weights of a list as far as they go up.
    fn rising(&mut self, list: &Field<'_>) -> Vec<u32> {
        let (mut weights, mut last) = (Vec::new(), 0);
        for item in list.items() {
            match percent(&item).filter(|weight| *weight > last) {
                Some(weight) if weights.len() < MOST_PHASES - 2 => {
                    weights.push(weight);
                    last = weight;
                }
                Some(_) => {
                    self.notes.say(&item, Outcome::NotBuilt, format!("a rollout has at most {MOST_PHASES} phases"));
                }
                None => self.notes.odd(&item, "a share from 1 to 100, larger than the one before"),
            }
        }
        weights
    }

    /// One phase that goes up. Where a webhook stands before each weight it is a phase for each of them.
    fn ramp(&mut self, expose: Value) {
        let asked =
            self.analysis("webhooks").items().iter().any(|hook| hook.get("type").text() == Some(TRAFFIC_INCREASE));
        let weights: Vec<u64> = match (&expose["weights"], &expose["ramp"]) {
            (Value::Array(list), _) => list.iter().filter_map(Value::as_u64).collect(),
            (_, ramp) => {
                let at = |key: &str| usize::try_from(ramp[key].as_u64().unwrap_or(1).max(1)).unwrap_or(1);
                let below = (at("step")..at("max")).step_by(at("step"));
                below.chain([at("max")]).map(|weight| weight as u64).collect()
            }
        };
        let mirror = self.mirror();
        let soak = self.interval;
        let phase = |wish: String, expose: Value| Phase {
            wish,
            expose: expose.as_object().cloned().unwrap_or_default(),
            soak,
            ..Phase::default()
        };
        if let Some(mirror) = mirror {
            self.draft.phases.push(phase("mirror".to_owned(), json!({"mirror": mirror})));
        }
        match weights.as_slice() {
            [one] => self.draft.phases.push(phase(share(u32::try_from(*one).unwrap_or(100)), json!({"weight": one}))),
            each if asked => {
                let each =
                    each.iter().map(|weight| (share(u32::try_from(*weight).unwrap_or(100)), json!({"weight": weight})));
                self.draft.phases.extend(each.map(|(wish, expose)| phase(wish, expose)));
            }
            _ => self.draft.phases.push(phase("ramp".to_owned(), expose)),
        }
    }

    /// The share that is mirrored.
    fn mirror(&mut self) -> Option<u32> {
        let (mirror, weight) = (self.analysis("mirror"), self.analysis("mirrorWeight"));
        if !mirror.is_true() {
            self.notes.say(&weight, Outcome::NotNeeded, "mirror is not on");
            return None;
        }
        if self.draft.kind == TargetKind::Service {
            let text = "with a Service as the target nobody knows what a copied request would do behind it";
            self.notes.say(&mirror, Outcome::NotBuilt, text);
            self.notes.say(&weight, Outcome::NotBuilt, text);
            return None;
        }
        if !self.router.copies() {
            for field in [&mirror, &weight] {
                self.notes.say(field, Outcome::NotBuilt, "with this router no request can be sent twice");
            }
            return None;
        }
        if self.strategy == Strategy::Canary {
            self.notes.say(&mirror, Outcome::Differs, "copies go on beside the weights, until the promotion");
        }
        if weight.is_there() && percent(&weight).is_none() {
            self.notes.odd(&weight, "a share from 1 to 100");
        }
        Some(percent(&weight).unwrap_or(100))
    }

    /// How many intervals it takes that does not go by weights of all requests. Flagger itself takes ten where it is told nothing.
    fn intervals(&self) -> u64 {
        let by_weight = if self.strategy == Strategy::AbTesting { self.steps().len() } else { 0 };
        match (self.iterations(), by_weight) {
            (0, 0) => 10,
            (0, weights) => u64::try_from(weights).unwrap_or(10),
            (iterations, _) => iterations.into(),
        }
    }

    /// What it says itself; 0 means that it goes by weights.
    pub(super) fn iterations(&self) -> u32 {
        self.analysis("iterations").count().unwrap_or(0)
    }

    /// Nobody is let in, then everybody.
    pub(super) fn blue_green(&mut self) {
        let why = match (self.iterations(), self.unsplit) {
            (1.., _) => None,
            (0, true) => Some("with the provider kubernetes Flagger goes by no weights, and sets it to 10"),
            (0, false) => {
                self.notes.odd(&self.analysis("stepWeight"), "a share from 1 to 100");
                self.notes.odd(&self.analysis("stepWeights"), "shares from 1 to 100, each larger than the one before");
                Some("no step leads to a weight, and Flagger would not go on")
            }
        };
        if self.unsplit {
            self.notes.say(&self.analysis("match"), Outcome::NotNeeded, fields::UNASKED);
        }
        let expose = match self.mirror() {
            Some(mirror) => json!({"mirror": mirror}),
            None => json!({"preview": "fullSize"}),
        };
        self.nobody(&expose, why);
    }

    /// The phase of a blue/green; `why` it is one, where the Canary does not say so itself.
    fn nobody(&mut self, expose: &Value, why: Option<&str>) {
        let mut expose = expose.as_object().cloned().unwrap_or_default();
        let mut wish = if expose.contains_key("mirror") { "mirror" } else { "preview" }.to_owned();
        let all = "nobody is let in before all are";
        let (mut without, mut text) = (all, why.map(str::to_owned));
        let intervals = self.intervals();
        if matches!(self.router, Router::Pods | Router::Replicas) {
            // There is no preview by pods, and no phase at all would move them all at once.
            let first = self.steps().first().copied().unwrap_or(10);
            (expose, wish) = (Map::from_iter([("weight".to_owned(), first.into())]), share(first));
            without = "the first share alone is exposed";
            let least = format!("the pods of a DaemonSet have no preview: {first} percent of them are new");
            text = Some(text.map_or(least.clone(), |why| format!("{why}; {least}")));
        } else {
            text = text.map(|why| format!("{why}; {all}"));
        }
        self.unused(&["stepWeight", "stepWeights", "maxWeight"], without);
        if let Some(text) = text {
            self.of_iterations(&format!("{text}, for {}", count(intervals.try_into().unwrap_or(0), "interval")));
        }
        let soak = self.interval.saturating_mul(intervals);
        self.draft.phases.push(Phase { wish, expose, soak, ..Phase::default() });
    }

    /// Says what the number of intervals is taken to be.
    fn of_iterations(&mut self, text: &str) {
        let field = self.analysis("iterations");
        self.notes.say(&field, Outcome::Differs, text);
        self.notes.say_of_unsaid(&field, Outcome::Differs, text);
    }

    /// Who carries these headers is let in.
    pub(super) fn some_users(&mut self) {
        self.unused(&["mirror", "mirrorWeight"], "with match no request is sent twice");
        let Some(expose) = self.users() else {
            let preview = json!({"preview": "fullSize"});
            self.nobody(&preview, Some("nothing of match is imported"));
            self.strategy = Strategy::BlueGreen;
            return;
        };
        let (intervals, weights) = (self.intervals(), ["stepWeight", "stepWeights", "maxWeight"]);
        if self.iterations() > 0 {
            self.unused(&weights, "with iterations all requests that match are let in");
        } else {
            let why = if self.steps().is_empty() { "as nothing says how many" } else { "one for each weight" };
            self.of_iterations(&format!("the soak: {}, {why}", count(intervals.try_into().unwrap_or(0), "interval")));
            let text = "a share of the requests that match is not built: all of them are let in";
            for field in weights {
                self.notes.say(&self.analysis(field), Outcome::NotBuilt, text);
            }
        }
        let soak = self.interval.saturating_mul(intervals);
        self.draft.phases.push(Phase { wish: "testers".to_owned(), expose, soak, ..Phase::default() });
    }

    /// What the requests that match are told by; none if nothing of it can be asked for here.
    fn users(&mut self) -> Option<Map<String, Value>> {
        let matches = self.analysis("match");
        let expose = match self.router {
            Router::Gateway | Router::Istio => {
                let headers = matches.items().iter().filter_map(|one| self.alternative(one)).collect();
                Map::from_iter([("headers".to_owned(), Value::Array(headers))])
            }
            Router::Nginx => self.ingress_users(&matches),
            Router::Traefik => {
                let text =
                    "a TraefikService looks at no request, with Flagger neither; name the IngressRoute in its place";
                self.notes.say(&matches, Outcome::NotBuilt, text);
                return None;
            }
            Router::Service | Router::Replicas | Router::Pods => {
                self.notes.say(&matches, Outcome::NotBuilt, "without a route requests cannot be told apart");
                return None;
            }
        };
        expose.values().any(|list| list.as_array().is_some_and(|list| !list.is_empty())).then_some(expose)
    }

    /// Flagger asks ingress-nginx for one header and one cookie, the last of each; a cookie is a name, and its value `always`.
    fn ingress_users(&mut self, matches: &Field<'_>) -> Map<String, Value> {
        let (mut expose, mut last) = (Map::new(), BTreeMap::new());
        for one in matches.items() {
            for (name, value) in one.get("headers").entries() {
                let made = match (name, value.get("exact").text(), matched(&value)) {
                    ("cookie", Some(cookie), _) => Some(("cookies", json!([{cookie: "always"}]))),
                    (name, _, Some(value)) if name != "cookie" && is_header(name, &value) => {
                        Some(("headers", json!([{name: value}])))
                    }
                    _ => None,
                };
                let Some((key, list)) = made else {
                    self.notes.odd(&value, "a cookie's name as exact, or a header with exact or regex");
                    continue;
                };
                expose.insert(key.to_owned(), list);
                if let Some(earlier) = last.insert(key, value) {
                    let text = "Flagger asks ingress-nginx for the last header and the last cookie alone";
                    self.notes.say(&earlier, Outcome::NotNeeded, text);
                }
            }
        }
        expose
    }

    /// One alternative; none, with all that it asks for named, if a part of it cannot be asked for here: it would let in more.
    fn alternative(&mut self, one: &Field<'_>) -> Option<Value> {
        let beside: Vec<&str> =
            one.entries().iter().map(|(key, _)| *key).filter(|key| !["headers", "name"].contains(key)).collect();
        if !beside.is_empty() {
            let text = format!(
                "requests are told apart by headers alone; with {} this would let in others",
                beside.join(" and ")
            );
            self.notes.say(one, Outcome::NotBuilt, text);
            return None;
        }
        let headers: Option<Map<String, Value>> = one
            .get("headers")
            .entries()
            .into_iter()
            .map(|(name, value)| Some((name.to_owned(), matched(&value)?)))
            .collect();
        let headers = headers.filter(|headers| !headers.is_empty() && headers.iter().all(|(n, v)| is_header(n, v)));
        if headers.is_none() {
            self.notes.odd(one, "headers with exact, prefix, suffix or regex");
        }
        headers.map(Value::from)
    }

    /// Says of fields that this strategy has no use for them.
    fn unused(&mut self, fields: &[&str], why: &str) {
        for field in fields {
            self.notes.say(&self.analysis(field), Outcome::NotNeeded, why);
        }
    }
}

/// A share from 1 to 100.
fn percent(field: &Field<'_>) -> Option<u32> {
    field.count().filter(|weight| (1..=100).contains(weight))
}

/// A StringMatch of Istio as the value of a header.
pub(crate) fn matched(value: &Field<'_>) -> Option<Value> {
    let entries = value.entries();
    let [(how, value)] = entries.as_slice() else { return None };
    let text = value.text()?;
    match *how {
        "exact" => Some(json!(text)),
        "prefix" => Some(json!({"regex": format!("^{}.*$", literal(text))})),
        "suffix" => Some(json!({"regex": format!("^.*{}$", literal(text))})),
        "regex" => Some(json!({"regex": text})),
        _ => None,
    }
}

/// A pattern for exactly this text.
fn literal(text: &str) -> String {
    let special = |c: char| r"\.+*?()|[]{}^$".contains(c);
    text.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
}

/// Whether it is a header that a rollout's file may name.
pub(crate) fn is_header(name: &str, value: &Value) -> bool {
    let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+.^_`|~-".contains(c);
    let text = value.as_str().or_else(|| value["regex"].as_str()).unwrap_or_default();
    let seen = |c: char| ('!'..='~').contains(&c);
    let inside = text.chars().all(|c| seen(c) || c == ' ');
    !name.is_empty()
        && name.len() <= 256
        && name.chars().all(token)
        && inside
        && text.starts_with(seen)
        && text.ends_with(seen)
        && text.len() <= 4096
}
