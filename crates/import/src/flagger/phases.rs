//! How Flagger goes, as phases: weights that go up, so many intervals without users, or with some.

use super::{Canary, Router, Strategy, TRAFFIC_INCREASE, kind_of, texts};
use crate::draft::{MOST_PHASES, Phase, too_many_phases};
use crate::fields::FieldOutcome::{Differs, NotBuilt, NotNeeded};
use crate::header::{is_header, matched};
use crate::input::Field;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use tidegate_controller::manifest::desired::TargetKind;
use tidegate_controller::record::text::count;

impl Canary<'_> {
    /// Weights that go up, one for each interval.
    pub(super) fn weights(&mut self) {
        self.unused(&["iterations"], "without match it is for blue/green, and 0 means weights");
        let (said, list) = (self.analysis("stepWeight"), self.analysis("stepWeights"));
        let is_list = !list.items().is_empty();
        let Some(step) = percent(&said) else {
            self.unused(&["stepWeight", "maxWeight"], "stepWeights says each weight");
            let weights = self.rising(&list);
            return self.ramp("weights", json!(weights), &weights, self.interval);
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
            self.notes.say(&said, Differs, format!("larger than {most}: one phase with that weight"));
        }
        let room = u32::try_from(MOST_PHASES - 10).unwrap_or(1);
        let wide = step.min(most).max(most.div_ceil(room));
        let mut soak = self.interval;
        if wide > step {
            soak = soak.saturating_mul(u64::from(wide)) / u64::from(step);
            let text = format!("{}: the step is {wide}, and each takes as much longer", too_many_phases());
            self.notes.say(&said, Differs, text);
        }
        self.ramp("ramp", json!({"step": wide, "max": most}), &climb(wide, most), soak);
    }

    /// The weight from which it promotes, by steps of one size (`maxWeight` of its scheduler).
    fn most(&self) -> u32 {
        let list = self.analysis("stepWeights").items();
        list.last().map_or_else(|| percent(&self.analysis("maxWeight")), percent).unwrap_or(100)
    }

    /// The weights that it goes to, one for each interval. A list counts where there is no step (`nextStepWeight` of its scheduler).
    pub(super) fn steps(&self) -> Vec<u32> {
        if let Some(step) = percent(&self.analysis("stepWeight")) {
            return climb(step, self.most());
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
        let mut weights = Vec::new();
        for item in list.items() {
            match percent(&item).filter(|weight| weights.last().is_none_or(|last| weight > last)) {
                Some(weight) if weights.len() < MOST_PHASES - 2 => weights.push(weight),
                Some(_) => self.notes.say(&item, NotBuilt, too_many_phases()),
                None => self.notes.odd(&item, "a share from 1 to 100, larger than the one before"),
            }
        }
        weights
    }

    /// One phase that goes up, by these weights. Where a webhook stands before each weight it is a phase for each of them.
    fn ramp(&mut self, key: &str, says: Value, weights: &[u32], soak: u64) {
        let asked = self.analysis("webhooks").items().iter().any(|hook| kind_of(hook) == TRAFFIC_INCREASE);
        let mut phases: Vec<Phase> =
            self.mirror().map(|share| Phase::of("mirror", "mirror", share)).into_iter().collect();
        if weights.len() == 1 || asked {
            phases.extend(weights.iter().copied().map(Phase::weight));
        } else {
            phases.push(Phase::of("ramp", key, says));
        }
        self.draft.phases.extend(phases.into_iter().map(|phase| Phase { soak, ..phase }));
    }

    /// The share that is mirrored.
    fn mirror(&mut self) -> Option<u32> {
        let (mirror, weight) = (self.analysis("mirror"), self.analysis("mirrorWeight"));
        if !mirror.is_true() {
            return self.notes.refuse(&weight, NotNeeded, "mirror is not on");
        }
        let is_service = self.draft.kind == TargetKind::Service;
        if is_service || !self.router.copies() {
            let service = "with a Service as the target nobody knows what a copied request would do behind it";
            let why = if is_service { service } else { "with this router no request can be sent twice" };
            self.notes.say(&mirror, NotBuilt, why);
            return self.notes.refuse(&weight, NotBuilt, why);
        }
        if self.strategy == Strategy::Canary {
            self.notes.say(&mirror, Differs, "copies go on beside the weights, until the promotion");
        }
        Some(self.notes.wanted(&weight, percent(&weight), "a share from 1 to 100").unwrap_or(100))
    }

    /// How many intervals it takes that does not go by weights of all requests. Flagger itself takes ten where it is told nothing.
    fn intervals(&self) -> u32 {
        let by_weight = if self.strategy == Strategy::AbTesting { self.steps().len() } else { 0 };
        match (self.iterations(), by_weight) {
            (0, 0) => 10,
            (0, weights) => u32::try_from(weights).unwrap_or(10),
            (iterations, _) => iterations,
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
            self.unused(&["match"], texts::UNASKED);
        }
        let phase = self.mirror().map_or_else(Phase::preview, |share| Phase::of("mirror", "mirror", share));
        self.nobody(phase, why);
    }

    /// The phase of a blue/green; `why` it is one, where the Canary does not say so itself.
    fn nobody(&mut self, mut phase: Phase, why: Option<&str>) {
        let all = "nobody is let in before all are";
        let (mut without, mut text) = (all, why.map(|why| format!("{why}; {all}")));
        if matches!(self.router, Router::Pods | Router::Replicas) {
            // There is no preview by pods, and no phase at all would move them all at once.
            let first = self.steps().first().copied().unwrap_or(10);
            phase = Phase::weight(first);
            without = "the first share alone is exposed";
            let why = why.map(|why| format!("{why}; ")).unwrap_or_default();
            text = Some(format!("{why}the pods of a DaemonSet have no preview: {first} percent of them are new"));
        }
        self.unused(&["stepWeight", "stepWeights", "maxWeight"], without);
        self.stays(phase, text.map(|text| format!("{text}, for ")), "");
    }

    /// Adds a phase that stays for all intervals, and says what their number is taken to be, between these words.
    fn stays(&mut self, phase: Phase, before: Option<String>, after: &str) {
        let intervals = self.intervals();
        if let Some(before) = before {
            let text = format!("{before}{}{after}", count(usize::try_from(intervals).unwrap_or(0), "interval"));
            self.notes.say_anyway(&self.analysis("iterations"), Differs, text);
        }
        let soak = self.interval.saturating_mul(intervals.into());
        self.draft.phases.push(Phase { soak, ..phase });
    }

    /// Who carries these headers is let in.
    pub(super) fn some_users(&mut self) {
        self.unused(&["mirror", "mirrorWeight"], "with match no request is sent twice");
        let Some(expose) = self.users() else {
            self.nobody(Phase::preview(), Some("nothing of match is imported"));
            self.strategy = Strategy::BlueGreen;
            return;
        };
        let testers = Phase { wish: "testers".to_owned(), expose, ..Phase::default() };
        let weights = ["stepWeight", "stepWeights", "maxWeight"];
        if self.iterations() > 0 {
            self.unused(&weights, "with iterations all requests that match are let in");
            return self.stays(testers, None, "");
        }
        let why = if self.steps().is_empty() { ", as nothing says how many" } else { ", one for each weight" };
        let text = "a share of the requests that match is not built: all of them are let in";
        weights.iter().for_each(|field| self.notes.say(&self.analysis(field), NotBuilt, text));
        self.stays(testers, Some("the soak: ".to_owned()), why);
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
                return self.notes.refuse(&matches, NotBuilt, text);
            }
            Router::Service | Router::Replicas | Router::Pods => {
                return self.notes.refuse(&matches, NotBuilt, "without a route requests cannot be told apart");
            }
        };
        expose.values().any(|list| list.as_array().is_some_and(|list| !list.is_empty())).then_some(expose)
    }

    /// Flagger asks ingress-nginx for one header and one cookie, the last of each; a cookie is a name, and its value `always`.
    fn ingress_users(&mut self, matches: &Field<'_>) -> Map<String, Value> {
        let (mut expose, mut last) = (Map::new(), BTreeMap::new());
        let headers = matches.items().into_iter().flat_map(|one| one.get("headers").entries());
        for (name, value) in headers {
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
                self.notes.say(&earlier, NotNeeded, text);
            }
        }
        expose
    }

    /// One alternative; none, with all that it asks for named, if a part of it cannot be asked for here: it would let in more.
    fn alternative(&mut self, one: &Field<'_>) -> Option<Value> {
        let keys = one.entries().into_iter().map(|(key, _)| key);
        let beside: Vec<&str> = keys.filter(|key| !["headers", "name"].contains(key)).collect();
        if !beside.is_empty() {
            let beside = beside.join(" and ");
            let text = format!("requests are told apart by headers alone; with {beside} this would let in others");
            return self.notes.refuse(one, NotBuilt, text);
        }
        let headers = one.get("headers").entries().into_iter();
        let headers = headers.map(|(name, value)| Some((name.to_owned(), matched(&value)?)));
        let headers = headers.collect::<Option<Map<String, Value>>>();
        let headers = headers.filter(|headers| !headers.is_empty() && headers.iter().all(|(n, v)| is_header(n, v)));
        self.notes.wanted(one, headers, "headers with exact, prefix, suffix or regex").map(Value::from)
    }

    /// Says of fields that this strategy has no use for them.
    fn unused(&mut self, fields: &[&str], why: &str) {
        fields.iter().for_each(|field| self.notes.say(&self.analysis(field), NotNeeded, why));
    }
}

/// From 0 up, by steps of one size.
fn climb(step: u32, most: u32) -> Vec<u32> {
    (step..most).step_by(usize::try_from(step).unwrap_or(1)).chain([most]).collect()
}

/// A share from 1 to 100.
fn percent(field: &Field<'_>) -> Option<u32> {
    field.count().filter(|weight| (1..=100).contains(weight))
}
