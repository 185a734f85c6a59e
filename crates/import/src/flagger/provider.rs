//! Which of Flagger's providers a Canary means.

use super::texts::OWN_PODS;
use super::{Canary, Strategy};
use crate::Tool;
use crate::fields::FieldOutcome::{self, Differs, DoneOtherwise, NotBuilt, NotUnderstood};
use crate::router::{Counts, INSTEAD, PROVIDERS, Router};
use tidegate_controller::manifest::desired::TargetKind;

/// What a Canary that names no provider refers to, and whose that is.
const REFERENCES: [(&str, &str); 5] = [
    ("service/gatewayRefs", "gatewayapi"),
    ("service/gateways", "istio"),
    ("ingressRef", "nginx"),
    ("routeRef", "apisix"),
    ("upstreamRef", "gloo"),
];

/// What has to be done with what leads users past the new route.
const MOVE: &str = "move them before you delete it (docs/migrating.md)";

impl<'a> Canary<'a> {
    /// What splits requests, and who counts them. `flag` is what Flagger runs with where a Canary does not say.
    pub(super) fn provider(&mut self, flag: Option<&'a str>) -> (Router, Counts) {
        let said = self.spec("provider");
        if self.draft.kind == TargetKind::DaemonSet {
            self.notes.say(&said, DoneOtherwise, OWN_PODS);
            return (Router::Pods, Counts::Unknown);
        }
        let name_of = |text: &'a str| Some(text.split(':').next().unwrap_or(text)).filter(|name| !name.is_empty());
        let (own, flag) = (said.text().and_then(name_of), flag.and_then(name_of));
        let (guess, because) = self.guessed();
        self.unsaid = match (own, flag) {
            (Some(_), _) => None,
            (None, Some(flag)) => Some(format!("not said, so {flag}, as --provider says")),
            (None, None) => Some(format!(
                "not said, so taken as {guess}{because}: say --provider with what Flagger runs with (its flag -mesh-provider, \
                 istio if that is not set)"
            )),
        };
        let found = self.known(own.or(flag).unwrap_or(guess));
        if let (None, Some(text)) = (flag, self.unsaid.clone()) {
            // What was said of the router begins with these words.
            self.notes.say_anyway(&said, Differs, text);
        }
        found
    }

    /// Says something of the provider, named or not.
    pub(super) fn of_provider(&mut self, outcome: FieldOutcome, text: &str) {
        let text = self.unsaid.as_ref().map_or_else(|| text.to_owned(), |unsaid| format!("{unsaid}; {text}"));
        self.notes.say_anyway(&self.spec("provider"), outcome, text);
    }

    fn known(&mut self, name: &str) -> (Router, Counts) {
        let protocol = self.spec("service/appProtocol");
        let connections = name == "istio" && protocol.text().is_some_and(|p| p.eq_ignore_ascii_case("tcp"));
        if connections {
            let text = "Flagger splits connections there; no phase does, so no VirtualService is imported";
            self.of_provider(NotBuilt, text);
        }
        self.unsplit = matches!(name, "kubernetes" | "none");
        if self.unsplit && self.strategy != Strategy::Skipped {
            // Flagger goes past match and weights there.
            self.strategy = Strategy::BlueGreen;
        }
        if connections || self.unsplit {
            return (self.without_route(), Counts::Application);
        }
        let mut all = PROVIDERS.iter().filter(|(tool, ..)| *tool == Tool::Flagger);
        let Some((_, _, router, counts, why, left)) = all.find(|(_, known, ..)| *known == name) else {
            self.of_provider(NotUnderstood, "no provider that Flagger has; imported as gatewayAPI");
            return (Router::Gateway, Counts::Unknown);
        };
        if !why.is_empty() {
            let stays = format!(". Flagger's {left} stays, and leads users past that route: {MOVE}");
            let left = if left.is_empty() { "" } else { &stays };
            self.of_provider(Differs, &format!("{INSTEAD}{why}{left}"));
        }
        (*router, *counts)
    }

    /// What a Canary is taken to mean that says nothing of it, and why.
    fn guessed(&self) -> (&'static str, String) {
        let referred = REFERENCES.iter().find(|(field, _)| self.spec(field).is_there());
        let blue_green = self.strategy == Strategy::BlueGreen && !self.analysis("mirror").is_true();
        match referred {
            Some((field, name)) => (name, format!(" for its {}", field.replace('/', "."))),
            None => (if blue_green { "kubernetes" } else { "gatewayapi" }, String::new()),
        }
    }

    /// By the Service's selector, or by pods where weights are wanted of connections; a Service that is the target takes a route.
    fn without_route(&mut self) -> Router {
        if self.draft.kind == TargetKind::Service {
            let text = "imported as gatewayAPI: with a Service as the target a route splits between it and its copy";
            self.of_provider(Differs, text);
            return Router::Gateway;
        }
        if self.strategy == Strategy::Canary { Router::Replicas } else { Router::Service }
    }
}
