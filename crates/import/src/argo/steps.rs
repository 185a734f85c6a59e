//! The steps of a canary as phases.

use super::Rollout;
use super::checks::Samples;
use crate::draft::{BY_PODS, MOST_PHASES, Phase, approval, go_duration, rounded, too_many_phases};
use crate::fields::FieldOutcome::{self, Differs, DoneOtherwise, Imported, NotBuilt, NotNeeded, NotUnderstood};
use crate::header::{is_header, matched};
use crate::input::Field;
use crate::router::Router;
use serde_json::{Map, Value, json};

/// What is said of what would expose more than all.
const ALL: &str = "all requests go to the new version by then";
/// What is said of what comes before anybody is let in.
const BEFORE: &str = "nobody is let in before the first phase";

/// Where the steps have come to.
#[derive(Debug, Default)]
struct Stand {
    /// The number of the step.
    step: usize,
    /// The last weight.
    weight: u32,
    /// Whether a person has to say yes before what comes next.
    asked: bool,
    /// The step that each phase began with.
    began: Vec<usize>,
}

impl Rollout<'_> {
    /// Makes phases of the steps.
    pub(super) fn steps(&mut self) {
        let mut stand = Stand::default();
        for (n, step) in self.canary("steps").items().into_iter().enumerate() {
            stand.step = n;
            for (kind, field) in step.entries() {
                match kind {
                    "setWeight" => self.set_weight(&field, &mut stand),
                    "pause" => self.pause(&field, &mut stand),
                    "analysis" => self.stay_for(&field, &mut stand),
                    "experiment" => self.experiment(&field, &mut stand),
                    "setHeaderRoute" => self.header_route(&field, &mut stand),
                    "setMirrorRoute" => self.mirror_route(&field, &mut stand),
                    _ => {}
                }
            }
        }
        if stand.asked {
            self.draft.promotion.before.extend(approval());
        }
        if let Some(bake) = self.notes.seconds(&self.canary("scaleDownDelaySeconds")) {
            self.draft.promotion.bake = bake;
        }
        self.background(&stand);
        self.annotations();
    }

    /// Begins a phase; nothing, and named, if there are enough.
    fn begin(&mut self, mut phase: Phase, field: &Field<'_>, stand: &mut Stand) {
        // Each of ours has one weight, so it is one phase of the plan.
        if self.draft.phases.len() >= MOST_PHASES {
            return self.notes.say(field, NotBuilt, too_many_phases());
        }
        if std::mem::take(&mut stand.asked) {
            phase.before.extend(approval());
        }
        self.draft.phases.push(phase);
        stand.began.push(stand.step);
    }

    fn set_weight(&mut self, field: &Field<'_>, stand: &mut Stand) {
        let most = self.canary("trafficRouting/maxTrafficWeight").count().filter(|most| *most > 0).unwrap_or(100);
        let said = field.count().and_then(|weight| u32::try_from(u64::from(weight) * 100 / u64::from(most)).ok());
        let Some(said) = said.filter(|weight| *weight <= 100) else {
            return self.notes.odd(field, "a share from 0 to 100");
        };
        let mut weight = said;
        if self.router == Router::Replicas && said > 0 {
            // With fewer there would be no pod of the new version at all.
            weight = said.max(100_u32.div_ceil(self.replicas().saturating_add(1)));
        }
        let whole = if weight > said { "; a smaller share would be no whole pod" } else { "" };
        if weight == 0 && stand.weight == 0 {
            self.notes.say(field, NotNeeded, BEFORE);
        } else if weight < stand.weight {
            let text = "weights do not go down on the way to the promotion; tidegate abort takes all requests back";
            self.notes.say(field, NotBuilt, text);
        } else if weight == stand.weight {
            self.notes.say(field, NotNeeded, format!("the share is {weight} already{whole}"));
        } else {
            stand.weight = weight;
            if weight > said {
                self.notes.say(field, Differs, format!("a phase with weight {weight}{whole}"));
            }
            self.begin(Phase::weight(weight), field, stand);
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
            self.notes.say(&duration, Differs, text);
        }
        match (seconds, self.draft.phases.last_mut()) {
            (None, _) => self.notes.odd(&duration, "a number of seconds, or a length of time such as 10m"),
            (Some(_), None) => self.notes.say(field, NotNeeded, BEFORE),
            (Some(seconds), Some(phase)) => phase.soak = phase.soak.saturating_add(seconds),
        }
    }

    /// An analysis that is waited for: the phase stays until it is through.
    fn stay_for(&mut self, field: &Field<'_>, stand: &mut Stand) {
        let checks = self.analysis(field, Samples::AsSaid);
        if checks.is_empty() {
            return;
        }
        if self.draft.phases.is_empty() {
            if self.router == Router::Replicas {
                return self.notes.say(field, NotBuilt, BY_PODS);
            }
            self.begin(Phase::preview(), field, stand);
        }
        let needs = self.draft.needs(&checks);
        if let Some(phase) = self.draft.phases.last_mut() {
            phase.soak = phase.soak.saturating_add(needs);
            phase.judge(checks);
        }
    }

    /// An experiment before anybody is let in: the new version alone, judged by its analyses. Of any other nothing is made.
    fn experiment(&mut self, field: &Field<'_>, stand: &mut Stand) {
        if !self.draft.phases.is_empty() {
            let text = "an experiment beside phases that let users in is not built; a preview stands before them all";
            return self.notes.say(field, NotBuilt, text);
        }
        if self.router == Router::Replicas {
            return self.notes.say(field, NotBuilt, BY_PODS);
        }
        let duration = field.get("duration");
        let said = duration.count().map(u64::from).or_else(|| go_duration(duration.text()?));
        let length = if duration.is_there() {
            self.notes.wanted(&duration, said, "a number of seconds, or a length of time such as 10m").unwrap_or(0)
        } else {
            0
        };
        let (checks, lacking) = self.judged(field);
        self.begin(Phase::preview(), field, stand);
        let needs = self.draft.needs(&checks);
        if let Some(phase) = self.draft.phases.last_mut() {
            phase.soak = phase.soak.saturating_add(length).max(needs);
            phase.judge(checks);
        }
        let text = "a preview: the new version alone, which nobody is led to, for as long, with its analyses as checks; \
                    copies of stable and shares of the requests are left out";
        let lacking = if lacking.is_empty() {
            String::new()
        } else {
            format!(
                "; the templates {} are not among the files: import them together with this one",
                lacking.join(", ")
            )
        };
        self.notes.say(field, Differs, format!("{text}{lacking}"));
    }

    /// Whether requests are told apart and there are some left; what is said of a step where that is not so.
    fn of_requests(&self, stand: &Stand, without: &'static str) -> Result<(), (FieldOutcome, &'static str)> {
        match stand.weight {
            _ if !self.router.knows_requests() => Err((NotBuilt, without)),
            100 => Err((NotNeeded, ALL)),
            _ => Ok(()),
        }
    }

    fn header_route(&mut self, field: &Field<'_>, stand: &mut Stand) {
        let matches = field.get("match").items();
        if matches.is_empty() {
            let text = "what was let in by headers stays until the promotion";
            return self.notes.say(field, DoneOtherwise, text);
        }
        let without = "Argo Rollouts tells no requests apart with this router";
        if let Err((outcome, text)) = self.of_requests(stand, without) {
            return self.notes.say(field, outcome, text);
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
        let wish = field.get("name").text().unwrap_or("headers");
        self.begin(Phase::of(wish, "headers", headers), field, stand);
    }

    fn mirror_route(&mut self, field: &Field<'_>, stand: &mut Stand) {
        let some = "copies of some requests are not built";
        let text = format!("{some}: all are copied, or a share of all");
        match field.get("match").items().as_slice() {
            [] => return self.notes.say(field, DoneOtherwise, "copies stay until the promotion"),
            [one] if one.value() == json!({"path": {"prefix": "/"}}) => {}
            [_] => return self.notes.say(field, NotBuilt, text),
            [..] => return self.notes.say(field, NotBuilt, some),
        }
        let without = "Argo Rollouts sends no request twice with this router";
        if let Err((outcome, text)) = self.of_requests(stand, without) {
            return self.notes.say(field, outcome, text);
        }
        let percentage = field.get("percentage");
        let said = if percentage.is_there() { percentage.count() } else { Some(100) };
        let Some(share) = said.filter(|share| (1..=100).contains(share)) else {
            return self.notes.odd(&percentage, "a share from 1 to 100");
        };
        self.notes.say(&field.get("match"), Imported, "all requests");
        let last = self.draft.phases.iter().filter_map(|phase| phase.expose.get("mirror")?.as_u64()).max().unwrap_or(0);
        if u64::from(share) <= last {
            let text = format!("{last} percent are copied already, and copies do not go down");
            return self.notes.say(field, NotBuilt, text);
        }
        self.begin(Phase::of("mirror", "mirror", share), field, stand);
    }

    /// The analysis that goes on over all steps, or from one on.
    fn background(&mut self, stand: &Stand) {
        let field = self.canary("analysis");
        let said = field.get("startingStep");
        let starting = self.notes.wanted(&said, said.count(), "the number of a step").unwrap_or(0);
        let starting = usize::try_from(starting).unwrap_or(0);
        let last = stand.began.iter().rposition(|began| *began <= starting).unwrap_or(0);
        let longest = self.draft.phases.iter().skip(last).map(|phase| phase.soak).max().unwrap_or(0);
        let checks = self.analysis(&field, Samples::Each { longest });
        if checks.is_empty() {
            return;
        }
        let needs = self.draft.needs(&checks);
        let mut raised = false;
        for phase in self.draft.phases.iter_mut().skip(last) {
            raised |= phase.soak < needs;
            phase.soak = phase.soak.max(needs);
            phase.judge(checks.clone());
        }
        if raised {
            let text = "checks of the phases, which all stay long enough for the values that each takes";
            self.notes.say(&field.get("templates"), Differs, text);
        }
        if self.draft.phases.is_empty() {
            self.notes.say(&field, NotNeeded, "there are no phases that it could judge");
        }
    }

    /// The header and the cookie by which the canary Ingress lets users in, whatever the weight is.
    fn annotations(&mut self) {
        if self.router != Router::Nginx {
            return;
        }
        for part in ["additionalIngressAnnotations", "canaryIngressAnnotations"] {
            let entries = self.canary(&format!("trafficRouting/nginx/{part}")).entries();
            let said = |key: &str| entries.iter().find(|(name, _)| name.rsplit('/').next() == Some(key));
            let text = |key: &str| said(key).and_then(|(_, value)| value.words());
            let value = text(HEADER[1]).map(Value::from);
            let value = value.or_else(|| text(HEADER[2]).map(|regex| json!({"regex": regex})));
            // Without a value ingress-nginx asks for this one.
            let header = text(HEADER[0]).map(|name| (name, value.unwrap_or_else(|| "always".into())));
            let cookie = text(COOKIE[0]).map(|name| (name, Value::from("always")));
            for (of, users, keys) in [("headers", header, &HEADER[..]), ("cookies", cookie, &COOKIE[..])] {
                let (outcome, text) = match users.filter(|(name, value)| is_header(name, value)) {
                    None => {
                        let text = "left out; expected the name of a header or cookie, and its value";
                        (NotUnderstood, text.to_owned())
                    }
                    Some((name, value)) => self.let_in(of, json!({name: value})),
                };
                for (_, field) in keys.iter().filter_map(|key| said(key)) {
                    self.notes.say(field, outcome, text.as_str());
                }
            }
        }
    }

    /// Lets in users with the first phase that lets in anybody.
    fn let_in(&mut self, of: &str, users: Value) -> (FieldOutcome, String) {
        let phase = self.draft.phases.iter_mut().find(|phase| !phase.expose.contains_key("preview"));
        let Some(phase) = phase else {
            return (NotBuilt, "no phase lets anybody in whom it could stand beside".to_owned());
        };
        phase.expose.insert(of.to_owned(), json!([users]));
        (Imported, format!("expose.{of} of the first phase that lets users in"))
    }
}

/// The annotations that ask for a header: its name, and its value or a pattern of that.
const HEADER: [&str; 3] = ["canary-by-header", "canary-by-header-value", "canary-by-header-pattern"];
/// The one that asks for a cookie.
const COOKIE: [&str; 1] = ["canary-by-cookie"];
