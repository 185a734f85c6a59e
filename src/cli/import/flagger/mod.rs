//! Flagger's Canary as a rollout.

mod checks;
mod fields;
mod objects;

use super::draft::{Draft, Gates, Imported, MOST_PHASES, Phase, Providers, go_duration, share};
use super::fields::{Fate, Notes, OBJECT, Row, told};
use super::input::{Document, Field, Input};
use super::{merge, told_of_other};
use crate::manifest::object::Kind;
use crate::manifest::scaler;
use crate::manifest::yaml::Content;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The group of its objects.
pub(super) const GROUP: &str = "flagger.app";

/// Its kinds with their fields.
pub(super) const TABLES: &[(&str, &[Row])] = &[
    ("Canary", fields::CANARY),
    ("MetricTemplate", fields::METRIC_TEMPLATE),
    ("AlertProvider", fields::ALERT_PROVIDER),
];

/// How Flagger goes, by what the analysis says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Strategy {
    /// Nothing is analysed.
    Skipped,
    /// Weights go up.
    Canary,
    /// So many intervals without users, then all.
    BlueGreen,
    /// So many intervals with some users, then all.
    AbTesting,
}

/// What splits requests here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Router {
    Gateway,
    Service,
    Replicas,
}

/// One Canary on its way.
struct Canary<'a> {
    document: &'a Document,
    input: &'a Input,
    notes: Notes,
    draft: Draft,
    strategy: Strategy,
    router: Router,
    /// The time between two looks, in seconds.
    interval: u64,
}

/// Imports what is Flagger's. `provider` is what Flagger runs with where a Canary does not say.
pub(super) fn import(input: &Input, provider: Option<&str>) -> Imported {
    let mut providers = Providers::default();
    let (mut drafts, mut fields) = (Vec::new(), Vec::new());
    let mut used = BTreeMap::new();
    let own: Vec<Document> = input.documents.iter().filter(|d| d.group() == GROUP).map(renamed).collect();
    for document in own.iter().filter(|document| document.kind == "Canary") {
        let mut canary = Canary::new(document, input, provider);
        canary.convert(&mut providers, &mut used);
        fields.extend(told(document, &[OBJECT, fields::CANARY], &canary.notes));
        drafts.push(canary.draft);
    }
    for document in own.iter().filter(|document| document.kind != "Canary") {
        let is_used = document.kind == "MetricTemplate";
        let notes = is_used.then(|| used.remove(&(document.namespace.clone(), document.name.clone()))).flatten();
        fields.extend(told_of_other(document, TABLES, notes));
    }
    merge(input, GROUP, drafts, providers, fields)
}

/// The document with the name that the analysis has today.
fn renamed(document: &Document) -> Document {
    let mut document = document.clone();
    let old = document.at("/spec/canaryAnalysis").is_there() && !document.at("/spec/analysis").is_there();
    if let (true, Content::Map(entries)) = (old, &mut document.node.content) {
        let spec = entries.iter_mut().filter(|(key, _)| key.text == "spec").map(|(_, node)| &mut node.content);
        for content in spec {
            let Content::Map(entries) = content else { continue };
            entries.retain(|(key, _)| key.text != "analysis");
            entries
                .iter_mut()
                .filter(|(key, _)| key.text == "canaryAnalysis")
                .for_each(|(key, _)| "analysis".clone_into(&mut key.text));
        }
    }
    document
}

/// What is said of templates that checks refer to, by namespace and name.
type Used = BTreeMap<(String, String), Notes>;

impl<'a> Canary<'a> {
    fn new(document: &'a Document, input: &'a Input, provider: Option<&str>) -> Self {
        let mut canary = Self {
            document,
            input,
            notes: Notes::default(),
            draft: Draft::of(document),
            strategy: Strategy::Canary,
            router: Router::Gateway,
            interval: 60,
        };
        canary.strategy = canary.strategy();
        canary.router = canary.router(provider);
        canary.interval = canary.interval();
        canary
    }

    fn spec(&self, field: &str) -> Field<'a> {
        self.document.at(&format!("/spec/{field}"))
    }

    /// A field of the analysis.
    fn analysis(&self, field: &str) -> Field<'a> {
        self.document.at(&format!("/spec/analysis/{field}"))
    }

    /// The name of the Service that users meet.
    fn service(&self) -> String {
        let name = self.spec("service/name").text().filter(|name| !name.is_empty());
        name.map_or_else(|| self.draft.target.clone(), str::to_owned)
    }

    fn strategy(&self) -> Strategy {
        let iterations = self.analysis("iterations").count().unwrap_or(0);
        match () {
            () if self.spec("skipAnalysis").is_true() || !self.spec("analysis").is_there() => Strategy::Skipped,
            () if !self.analysis("match").items().is_empty() => Strategy::AbTesting,
            () if iterations > 0 => Strategy::BlueGreen,
            () => Strategy::Canary,
        }
    }

    fn router(&mut self, provider: Option<&str>) -> Router {
        let said = self.spec("provider");
        let by_service = |strategy| if strategy == Strategy::Canary { Router::Replicas } else { Router::Service };
        let references = ["service/gatewayRefs", "ingressRef", "routeRef", "upstreamRef", "service/gateways"];
        match said.text().or(provider).map(|text| text.split(':').next().unwrap_or(text)) {
            Some("gatewayapi") => Router::Gateway,
            Some("kubernetes" | "none") => {
                if self.strategy == Strategy::Canary {
                    let text = "Flagger moves no requests by weight there; imported as replicas: by the number of pods";
                    self.notes.say(&said, Fate::Differs, text);
                }
                by_service(self.strategy)
            }
            Some(_) => {
                self.notes.say(&said, Fate::NotBuilt, fields::ROUTER);
                Router::Gateway
            }
            None if references.iter().any(|field| self.spec(field).is_there()) => Router::Gateway,
            None if self.strategy == Strategy::BlueGreen && !self.analysis("mirror").is_true() => Router::Service,
            None => Router::Gateway,
        }
    }

    /// Flagger looks once a minute, and every 10 s at the most.
    fn interval(&mut self) -> u64 {
        let field = self.analysis("interval");
        let said = field.text().and_then(go_duration);
        if field.is_there() && said.is_none() {
            self.notes.odd(&field, "a length of time such as 1m; it is a minute");
        }
        said.unwrap_or(60).max(10)
    }

    fn convert(&mut self, providers: &mut Providers, used: &mut Used) {
        self.target();
        self.draft.suspend = self.spec("suspend").is_true();
        let deadline = self.spec("progressDeadlineSeconds");
        self.draft.progress_deadline = deadline.count().map(u64::from);
        if self.draft.progress_deadline.is_none() {
            self.notes.odd(&deadline, "a number of seconds");
        }
        self.traffic();
        self.objects();
        let checks = self.checks(providers, used);
        match self.strategy {
            Strategy::Skipped => {
                let text = "skipAnalysis promotes without it; remove that, and import again, to have phases";
                self.notes.say(&self.spec("analysis"), Fate::NotNeeded, text);
            }
            Strategy::Canary => self.weights(),
            Strategy::BlueGreen => self.blue_green(),
            Strategy::AbTesting => self.some_users(),
        }
        for phase in &mut self.draft.phases {
            phase.checks.clone_from(&checks);
        }
        if self.strategy != Strategy::Skipped {
            self.hooks(providers);
            self.gates(providers);
        }
    }

    fn target(&mut self) {
        let (kind, name) = (self.spec("targetRef/kind"), self.spec("targetRef/name"));
        self.draft.target = name.text().filter(|name| !name.is_empty()).unwrap_or(&self.document.name).to_owned();
        if kind.text() != Some("Deployment") {
            let text = "targets other than a Deployment are not built yet; the rollout names a Deployment of that name";
            self.notes.say(&kind, Fate::NotBuilt, text);
        }
        self.draft.refers.push((Kind::Deployment, self.draft.target.clone(), "the workload"));
        let scaler = self.spec("autoscalerRef/name");
        match (scaler.text(), self.spec("autoscalerRef/kind").text()) {
            (Some(name), Some(kind)) if scaler::KINDS.iter().any(|known| known.as_str() == kind) => {
                let kind = scaler::KINDS.into_iter().find(|known| known.as_str() == kind);
                self.draft.refers.extend(kind.map(|kind| (kind, name.to_owned(), "its autoscaler")));
            }
            (Some(_), _) => {
                let text = "autoscalers other than a HorizontalPodAutoscaler or a ScaledObject cannot stand among the manifests";
                self.notes.say(&self.spec("autoscalerRef"), Fate::NotBuilt, text);
            }
            (None, _) => {}
        }
    }

    fn traffic(&mut self) {
        let service = self.service();
        self.draft.traffic = match self.router {
            Router::Gateway => json!({"gatewayAPI": {"httpRoute": service, "service": service}}),
            Router::Service => json!({"service": service}),
            Router::Replicas => json!({"replicas": {"service": service}}),
        };
        self.draft.refers.push((Kind::Service, service.clone(), "the Service that users meet"));
        if self.router == Router::Gateway {
            self.draft.refers.push((Kind::HttpRoute, service, "the route whose requests are split"));
        }
    }

    /// Weights that go up, one for each interval.
    fn weights(&mut self) {
        self.unused(&["iterations"], "without match it is for blue/green, and 0 means weights");
        let (steps, list, max) =
            (self.analysis("stepWeight"), self.analysis("stepWeights"), self.analysis("maxWeight"));
        if list.is_there() {
            self.unused(&["stepWeight", "maxWeight"], "stepWeights says each weight");
            let weights = self.rising(&list);
            if !weights.is_empty() {
                self.ramp(json!({"weights": weights}));
            }
            return;
        }
        let most = percent(&max).unwrap_or(100);
        let Some(step) = percent(&steps) else {
            self.notes.odd(&steps, "a share from 1 to 100");
            self.unused(&["maxWeight"], "no step leads there");
            return;
        };
        if step > most {
            self.notes.say(&steps, Fate::Differs, "larger than maxWeight: one phase with that weight");
        }
        let room = u32::try_from(MOST_PHASES - 10).unwrap_or(1);
        let wide = step.min(most).max(most.div_ceil(room));
        let mut soak = self.interval;
        if wide > step {
            soak = soak.saturating_mul(u64::from(wide)) / u64::from(step);
            let text = format!(
                "a rollout has at most {MOST_PHASES} phases: the step is {wide}, and each takes as much longer"
            );
            self.notes.say(&steps, Fate::Differs, text);
        }
        self.ramp(json!({"ramp": {"step": wide, "max": most}}));
        for phase in &mut self.draft.phases {
            phase.soak = soak;
        }
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
                Some(_) => self.notes.say(&item, Fate::NotBuilt, format!("a rollout has at most {MOST_PHASES} phases")),
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
            self.notes.say(&weight, Fate::NotNeeded, "mirror is not on");
            return None;
        }
        if self.router != Router::Gateway {
            for field in [&mirror, &weight] {
                self.notes.say(field, Fate::NotBuilt, "without a route no request can be sent twice");
            }
            return None;
        }
        if self.strategy == Strategy::Canary {
            self.notes.say(&mirror, Fate::Differs, "copies go on beside the weights, until the promotion");
        }
        if weight.is_there() && percent(&weight).is_none() {
            self.notes.odd(&weight, "a share from 1 to 100");
        }
        Some(percent(&weight).unwrap_or(100))
    }

    /// So many intervals.
    fn iterations(&self) -> u64 {
        self.interval.saturating_mul(u64::from(self.analysis("iterations").count().unwrap_or(1).max(1)))
    }

    /// Nobody is let in, then everybody.
    fn blue_green(&mut self) {
        self.unused(&["stepWeight", "stepWeights", "maxWeight"], "with iterations there are no weights");
        let expose = match self.mirror() {
            Some(mirror) => json!({"mirror": mirror}),
            None if self.router == Router::Replicas => return,
            None => json!({"preview": "fullSize"}),
        };
        let wish = if expose.get("mirror").is_some() { "mirror" } else { "preview" };
        let expose = expose.as_object().cloned().unwrap_or_default();
        self.draft.phases.push(Phase { wish: wish.to_owned(), expose, soak: self.iterations(), ..Phase::default() });
    }

    /// Who carries these headers is let in.
    fn some_users(&mut self) {
        let text = "a share of the requests that match is not built: all of them are let in";
        for field in ["stepWeight", "stepWeights", "maxWeight"] {
            self.notes.say(&self.analysis(field), Fate::NotBuilt, text);
        }
        self.unused(&["mirror", "mirrorWeight"], "with match no request is sent twice");
        let matches = self.analysis("match");
        if self.router != Router::Gateway {
            self.notes.say(&matches, Fate::NotBuilt, "without a route requests cannot be told apart");
            return;
        }
        let headers: Vec<Value> = matches.items().iter().filter_map(|one| self.alternative(one)).collect();
        if headers.is_empty() {
            return;
        }
        let expose = Map::from_iter([("headers".to_owned(), headers.into())]);
        let soak = self.iterations();
        self.draft.phases.push(Phase { wish: "testers".to_owned(), expose, soak, ..Phase::default() });
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
            self.notes.say(one, Fate::NotBuilt, text);
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
            self.notes.say(&self.analysis(field), Fate::NotNeeded, why);
        }
    }

    /// Webhooks that hold a step: one for each.
    fn gates(&mut self, providers: &mut Providers) {
        for hook in self.analysis("webhooks").items() {
            let phases = &mut self.draft.phases;
            let mut steps: Vec<&mut Gates> = match hook.get("type").text() {
                Some("confirm-rollout") if phases.is_empty() => vec![&mut self.draft.promotion.before],
                Some("confirm-rollout") => phases.iter_mut().take(1).map(|phase| &mut phase.before).collect(),
                Some("confirm-promotion") => vec![&mut self.draft.promotion.before],
                Some(TRAFFIC_INCREASE) => {
                    let weights = phases.iter_mut().filter(|phase| phase.expose.contains_key("weight"));
                    weights.map(|phase| &mut phase.before).collect()
                }
                _ => continue,
            };
            steps.retain(|gates| !gates.contains_key("webhook"));
            if steps.is_empty() {
                let text = "one webhook stands before a step, and there is one, or there is no such step";
                self.notes.say(&hook, Fate::NotBuilt, text);
                continue;
            }
            if let Some(call) = checks::call(&hook, providers, &mut self.notes) {
                steps.into_iter().for_each(|gates| drop(gates.insert("webhook".to_owned(), call.clone())));
            }
        }
    }
}

/// The type of webhooks that stand before each weight.
const TRAFFIC_INCREASE: &str = "confirm-traffic-increase";

/// A share from 1 to 100.
fn percent(field: &Field<'_>) -> Option<u32> {
    field.count().filter(|weight| (1..=100).contains(weight))
}

/// A StringMatch of Istio as the value of a header.
pub(super) fn matched(value: &Field<'_>) -> Option<Value> {
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
pub(super) fn is_header(name: &str, value: &Value) -> bool {
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
