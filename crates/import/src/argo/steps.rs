//! The steps of a canary as phases.

use super::Rollout;
use super::checks::{Samples, Shared};
use super::router::Router;
use crate::draft::{MOST_PHASES, Phase, go_duration, rounded, share};
use crate::fields::Outcome;
use crate::flagger::{is_header, matched};
use crate::input::Field;
use serde_json::{Map, Value, json};

/// What is said of what would expose more than all.
const ALL: &str = "all requests go to the new version by then";

/// Where the steps have come to.
#[derive(Debug, Default)]
struct Stand {
    /// The last weight.
    weight: u32,
    /// Whether a person has to say yes before what comes next.
    asked: bool,
    /// The step that each phase began with.
    began: Vec<usize>,
}

impl Rollout<'_> {
    /// Makes phases of the steps.
    pub(super) fn steps(&mut self, shared: &mut Shared) {
        let mut stand = Stand::default();
        for (n, step) in self.canary("steps").items().into_iter().enumerate() {
            for (kind, field) in step.entries() {
                match kind {
                    "setWeight" => self.set_weight(&field, n, &mut stand),
                    "pause" => self.pause(&field, &mut stand),
                    "analysis" => self.stay_for(&field, n, &mut stand, shared),
                    "setHeaderRoute" => self.header_route(&field, n, &mut stand),
                    "setMirrorRoute" => self.mirror_route(&field, n, &mut stand),
                    _ => {}
                }
            }
        }
        if stand.asked {
            self.draft.promotion.before.insert("approval".to_owned(), "pullRequest".into());
        }
        let scale_down = self.canary("scaleDownDelaySeconds");
        if let Some(bake) = self.seconds(&scale_down) {
            self.draft.promotion.bake = bake;
        }
        self.background(&stand, shared);
        self.annotations();
    }

    /// Begins a phase; nothing, and named, if there are enough.
    fn begin(&mut self, phase: Phase, n: usize, field: &Field<'_>, stand: &mut Stand) {
        // Each of ours has one weight, so it is one phase of the plan.
        if self.draft.phases.len() >= MOST_PHASES {
            self.notes.say(field, Outcome::NotBuilt, format!("a rollout has at most {MOST_PHASES} phases"));
            return;
        }
        let mut phase = phase;
        if std::mem::take(&mut stand.asked) {
            phase.before.insert("approval".to_owned(), "pullRequest".into());
        }
        self.draft.phases.push(phase);
        stand.began.push(n);
    }

    fn set_weight(&mut self, field: &Field<'_>, n: usize, stand: &mut Stand) {
        let most = self.canary("trafficRouting/maxTrafficWeight").count().filter(|most| *most > 0).unwrap_or(100);
        let said = field.count().and_then(|weight| u32::try_from(u64::from(weight) * 100 / u64::from(most)).ok());
        let Some(said) = said.filter(|weight| *weight <= 100) else {
            return self.notes.odd(field, "a share from 0 to 100");
        };
        let mut weight = said;
        if self.router == Router::Replicas && said > 0 {
            // With fewer there would be no pod of the new version at all.
            let pods = self.replicas();
            weight = said.max(100_u32.div_ceil(pods.saturating_add(1)));
        }
        let whole = if weight > said { "; a smaller share would be no whole pod" } else { "" };
        match weight {
            0 if stand.weight == 0 => {
                self.notes.say(field, Outcome::NotNeeded, "nobody is let in before the first phase");
            }
            _ if weight < stand.weight => {
                let text = "weights do not go down on the way to the promotion; tidegate abort takes all requests back";
                self.notes.say(field, Outcome::NotBuilt, text);
            }
            _ if weight == stand.weight => {
                self.notes.say(field, Outcome::NotNeeded, format!("the share is {weight} already{whole}"));
            }
            _ => {
                stand.weight = weight;
                if weight > said {
                    self.notes.say(field, Outcome::Differs, format!("a phase with weight {weight}{whole}"));
                }
                let expose = Map::from_iter([("weight".to_owned(), weight.into())]);
                self.begin(Phase { wish: share(weight), expose, ..Phase::default() }, n, field, stand);
            }
        }
    }

    fn pause(&mut self, field: &Field<'_>, stand: &mut Stand) {
        let duration = field.get("duration");
        if !duration.is_there() {
            stand.asked = true;
            return;
        }
        let seconds = duration.count().map(u64::from).or_else(|| go_duration(duration.text()?));
        if let Some(text) = duration.text().filter(|_| duration.count().is_none()).and_then(rounded) {
            self.notes.say(&duration, Outcome::Differs, text);
        }
        match (seconds, self.draft.phases.last_mut()) {
            (None, _) => self.notes.odd(&duration, "a number of seconds, or a length of time such as 10m"),
            (Some(_), None) => self.notes.say(field, Outcome::NotNeeded, "nobody is let in before the first phase"),
            (Some(seconds), Some(phase)) => phase.soak = phase.soak.saturating_add(seconds),
        }
    }

    /// An analysis that is waited for: the phase stays until it is through.
    fn stay_for(&mut self, field: &Field<'_>, n: usize, stand: &mut Stand, shared: &mut Shared) {
        let checks = self.analysis(field, Samples::AsSaid, shared);
        if checks.is_empty() {
            return;
        }
        if self.draft.phases.is_empty() {
            if self.router == Router::Replicas {
                return self.notes.say(
                    field,
                    Outcome::NotBuilt,
                    "by pods nobody can try the new version before users meet it",
                );
            }
            let expose = Map::from_iter([("preview".to_owned(), json!("fullSize"))]);
            self.begin(Phase { wish: "preview".to_owned(), expose, ..Phase::default() }, n, field, stand);
        }
        let needs = self.draft.needs(&checks);
        if let Some(phase) = self.draft.phases.last_mut() {
            phase.soak = phase.soak.saturating_add(needs);
            phase.checks.extend(checks);
            phase.checks.sort();
            phase.checks.dedup();
        }
    }

    fn header_route(&mut self, field: &Field<'_>, n: usize, stand: &mut Stand) {
        let matches = field.get("match").items();
        if matches.is_empty() {
            let text = "what was let in by headers stays until the promotion";
            return self.notes.say(field, Outcome::DoneOtherwise, text);
        }
        if !self.router.knows_requests() {
            return self.notes.say(field, Outcome::NotBuilt, "Argo Rollouts tells no requests apart with this router");
        }
        if stand.weight == 100 {
            return self.notes.say(field, Outcome::NotNeeded, ALL);
        }
        let one = |one: &Field<'_>| {
            let (name, value) = (one.get("headerName").text()?, matched(&one.get("headerValue"))?);
            is_header(name, &value).then(|| json!({name: value}))
        };
        let mut headers: Vec<Value> = matches.iter().filter_map(one).collect();
        if headers.len() < matches.len() || headers.len() > 16 {
            return self.notes.odd(field, "at most 16 headers with exact, prefix or regex");
        }
        // Istio takes the list as alternatives, all others as conditions that must all hold.
        if self.router != Router::Istio {
            let all: Map<String, Value> = headers.iter().filter_map(Value::as_object).flat_map(Map::clone).collect();
            if all.len() < headers.len() {
                return self.notes.odd(field, "each header once");
            }
            headers = vec![all.into()];
        }
        let expose = Map::from_iter([("headers".to_owned(), headers.into())]);
        let wish = field.get("name").text().unwrap_or("headers").to_owned();
        self.begin(Phase { wish, expose, ..Phase::default() }, n, field, stand);
    }

    fn mirror_route(&mut self, field: &Field<'_>, n: usize, stand: &mut Stand) {
        let matches = field.get("match").items();
        let [one] = matches.as_slice() else {
            let text = if matches.is_empty() {
                "copies stay until the promotion"
            } else {
                "copies of some requests are not built"
            };
            let outcome = if matches.is_empty() { Outcome::DoneOtherwise } else { Outcome::NotBuilt };
            return self.notes.say(field, outcome, text);
        };
        if one.value() != json!({"path": {"prefix": "/"}}) {
            let text = "copies of some requests are not built: all are copied, or a share of all";
            return self.notes.say(field, Outcome::NotBuilt, text);
        }
        if !self.router.knows_requests() {
            return self.notes.say(field, Outcome::NotBuilt, "Argo Rollouts sends no request twice with this router");
        }
        if stand.weight == 100 {
            return self.notes.say(field, Outcome::NotNeeded, ALL);
        }
        let percentage = field.get("percentage");
        let share = if percentage.is_there() {
            percentage.count().filter(|share| (1..=100).contains(share))
        } else {
            Some(100)
        };
        let Some(share) = share else { return self.notes.odd(&percentage, "a share from 1 to 100") };
        self.notes.say(&field.get("match"), Outcome::Imported, "all requests");
        let last = self.draft.phases.iter().filter_map(|phase| phase.expose.get("mirror")?.as_u64()).max().unwrap_or(0);
        if u64::from(share) <= last {
            return self.notes.say(
                field,
                Outcome::NotBuilt,
                format!("{last} percent are copied already, and copies do not go down"),
            );
        }
        let expose = Map::from_iter([("mirror".to_owned(), share.into())]);
        self.begin(Phase { wish: "mirror".to_owned(), expose, ..Phase::default() }, n, field, stand);
    }

    /// The analysis that goes on over all steps, or from one on.
    fn background(&mut self, stand: &Stand, shared: &mut Shared) {
        let field = self.canary("analysis");
        let said = field.get("startingStep");
        if said.count().is_none() {
            self.notes.odd(&said, "the number of a step");
        }
        let starting = usize::try_from(said.count().unwrap_or(0)).unwrap_or(0);
        let last = stand.began.iter().rposition(|began| *began <= starting).unwrap_or(0);
        let judged = self.draft.phases.get(last..).unwrap_or_default();
        let longest = judged.iter().map(|phase| phase.soak).max().unwrap_or(0);
        let checks = self.analysis(&field, Samples::Each { longest }, shared);
        if checks.is_empty() {
            return;
        }
        let needs = self.draft.needs(&checks);
        let mut raised = false;
        for phase in self.draft.phases.iter_mut().skip(last) {
            raised |= phase.soak < needs;
            phase.soak = phase.soak.max(needs);
            phase.checks.extend(checks.iter().cloned());
            phase.checks.sort();
            phase.checks.dedup();
        }
        if raised {
            let text = "checks of the phases, which all stay long enough for the values that each takes";
            self.notes.say(&field.get("templates"), Outcome::Differs, text);
        }
        if self.draft.phases.is_empty() {
            self.notes.say(&field, Outcome::NotNeeded, "there are no phases that it could judge");
        }
    }

    /// The header and the cookie by which the canary Ingress lets users in, whatever the weight is.
    fn annotations(&mut self) {
        if self.router != Router::Nginx {
            return;
        }
        for part in ["additionalIngressAnnotations", "canaryIngressAnnotations"] {
            let field = self.canary(&format!("trafficRouting/nginx/{part}"));
            let entries = field.entries();
            let said = |key: &str| entries.iter().find(|(name, _)| name.rsplit('/').next() == Some(key));
            let text = |key: &str| said(key).and_then(|(_, value)| value.words());
            let value = text("canary-by-header-value").map(Value::from);
            let value = value.or_else(|| text("canary-by-header-pattern").map(|regex| json!({"regex": regex})));
            // Without a value ingress-nginx asks for this one.
            let header = text("canary-by-header").map(|name| (name, value.unwrap_or_else(|| "always".into())));
            let header = header.filter(|(name, value)| is_header(name, value));
            let cookie = text("canary-by-cookie").map(|name| (name, Value::from("always")));
            let made = [
                ("headers", header, &["canary-by-header", "canary-by-header-value", "canary-by-header-pattern"][..]),
                ("cookies", cookie.filter(|(name, value)| is_header(name, value)), &["canary-by-cookie"][..]),
            ];
            for (of, users, keys) in made {
                let (outcome, text) = match users {
                    None => (
                        Outcome::NotUnderstood,
                        "left out; expected the name of a header or cookie, and its value".to_owned(),
                    ),
                    Some((name, value)) => self.let_in(of, json!({name: value})),
                };
                for (_, field) in keys.iter().filter_map(|key| said(key)) {
                    self.notes.say(field, outcome, text.clone());
                }
            }
        }
    }

    /// Lets in users with the first phase that lets in anybody.
    fn let_in(&mut self, of: &str, users: Value) -> (Outcome, String) {
        let phase = self.draft.phases.iter_mut().find(|phase| !phase.expose.contains_key("preview"));
        let Some(phase) = phase else {
            return (Outcome::NotBuilt, "no phase lets anybody in whom it could stand beside".to_owned());
        };
        phase.expose.insert(of.to_owned(), json!([users]));
        (Outcome::Imported, format!("expose.{of} of the first phase that lets users in"))
    }
}
