//! Flagger's providers: what splits requests in their place here, and who counts them.

use super::fields::OWN_PODS;
use super::{Canary, Strategy};
use crate::fields::Outcome;
use tidegate_controller::manifest::desired::TargetKind;
use tidegate_controller::manifest::object::Kind;

/// What splits requests here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Router {
    Gateway,
    Istio,
    Nginx,
    Traefik,
    Service,
    Replicas,
    /// Nothing: the target's own pods are moved.
    Pods,
}

impl Router {
    /// The kind of the route that it splits, and what that is for.
    pub(super) fn route(self) -> Option<(Kind, &'static str)> {
        match self {
            Self::Gateway => Some((Kind::HttpRoute, "the route whose requests are split")),
            Self::Istio => Some((Kind::VirtualService, "the VirtualService whose requests are split")),
            Self::Nginx => Some((Kind::Ingress, "the Ingress whose requests are split")),
            Self::Traefik => Some((Kind::TraefikService, "the TraefikService whose requests are split")),
            Self::Service | Self::Replicas | Self::Pods => None,
        }
    }

    /// Whether it can send a request twice.
    pub(super) fn copies(self) -> bool {
        matches!(self, Self::Gateway | Self::Istio | Self::Traefik)
    }
}

/// Whose numbers `request-success-rate` and `request-duration` are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counts {
    /// Those of a proxy that tidegate knows.
    Proxy(&'static str),
    /// The application's own.
    Application,
    /// Nobody's that is known here.
    Unknown,
}

/// One provider of Flagger.
struct Provider {
    /// Its name, up to the colon.
    name: &'static str,
    /// What splits requests in its place.
    router: Router,
    /// Who counts them.
    counts: Counts,
    /// Why it is another router, where it is one.
    instead: Option<&'static str>,
    /// What Flagger makes to lead users, where the other router does not take it over.
    left: Option<&'static str>,
}

const fn same(name: &'static str, router: Router, counts: Counts) -> Provider {
    Provider { name, router, counts, instead: None, left: None }
}

const fn instead(name: &'static str, counts: Counts, why: &'static str, left: Option<&'static str>) -> Provider {
    Provider { name, router: Router::Gateway, counts, instead: Some(why), left }
}

/// All that Flagger has, but for `kubernetes`, with which it splits nothing. A router that is built is one row changed.
const PROVIDERS: &[Provider] = &[
    same("gatewayapi", Router::Gateway, Counts::Application),
    same("istio", Router::Istio, Counts::Proxy("istio")),
    same("nginx", Router::Nginx, Counts::Proxy("nginx")),
    same("traefik", Router::Traefik, Counts::Proxy("traefik")),
    instead(
        "contour",
        Counts::Proxy("contour"),
        "imported as gatewayAPI, which Contour serves beside its HTTPProxies",
        Some("HTTPProxy"),
    ),
    instead(
        "linkerd",
        Counts::Proxy("linkerd"),
        "imported as gatewayAPI, which Linkerd reads in place of TrafficSplits",
        SPLIT,
    ),
    instead(
        "gloo",
        Counts::Unknown,
        "imported as gatewayAPI, which Gloo serves beside its RouteTables",
        Some("RouteTable"),
    ),
    instead(
        "kuma",
        Counts::Unknown,
        "imported as gatewayAPI, which Kuma serves beside its TrafficRoutes",
        Some("TrafficRoute"),
    ),
    instead(
        "apisix",
        Counts::Unknown,
        "imported as gatewayAPI, which APISIX serves beside its ApisixRoutes",
        Some("ApisixRoute"),
    ),
    instead("skipper", Counts::Unknown, "imported as gatewayAPI; a route of Skipper is not built", Some("Ingress")),
    instead("osm", Counts::Unknown, "imported as gatewayAPI; TrafficSplits are not built", SPLIT),
    instead("smi", Counts::Unknown, "imported as gatewayAPI; TrafficSplits are not built", SPLIT),
    instead(
        "appmesh",
        Counts::Unknown,
        "imported as gatewayAPI; App Mesh is not built",
        Some("VirtualService of App Mesh"),
    ),
    instead("knative", Counts::Unknown, "imported as gatewayAPI; services of Knative are not built", None),
];

/// What SMI calls it.
const SPLIT: Option<&str> = Some("TrafficSplit");

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

/// What every reason begins with.
pub(crate) const INSTEAD: &str = "imported as gatewayAPI";

/// Each provider, what it becomes, and what its built-in metrics are, for the documents.
pub(crate) fn lines() -> Vec<[String; 3]> {
    let one = |Provider { name, router, counts, instead, left: _ }: &Provider| {
        let router = match router {
            Router::Gateway => "`gatewayAPI`",
            Router::Istio => "`istio`",
            Router::Nginx => "`nginx`",
            Router::Traefik => "`traefik`",
            Router::Service | Router::Replicas | Router::Pods => "`service`, a blue/green as with Flagger",
        };
        let counts = match counts {
            Counts::Proxy(proxy) => format!("`successRate` and `latency` of the proxy `{proxy}`"),
            Counts::Application => "Flagger's query of the application's `http_request_duration_seconds`".to_owned(),
            Counts::Unknown => "not imported: write a query".to_owned(),
        };
        let instead = instead.map(|why| why.trim_start_matches(INSTEAD)).unwrap_or_default();
        [format!("`{name}`"), format!("{router}{instead}; layout `primary`"), counts]
    };
    let without = same("kubernetes", Router::Service, Counts::Application);
    PROVIDERS.iter().chain([&without]).map(one).collect()
}

impl<'a> Canary<'a> {
    /// What splits requests, and who counts them. `flag` is what Flagger runs with where a Canary does not say.
    pub(super) fn provider(&mut self, flag: Option<&'a str>) -> (Router, Counts) {
        let said = self.spec("provider");
        if self.draft.kind == TargetKind::DaemonSet {
            self.notes.say(&said, Outcome::DoneOtherwise, OWN_PODS);
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
            self.notes.say(&said, Outcome::Differs, text.clone());
            self.notes.say_of_unsaid(&said, Outcome::Differs, text);
        }
        found
    }

    /// Says something of the provider, named or not.
    pub(super) fn of_provider(&mut self, outcome: Outcome, text: &str) {
        let field = self.spec("provider");
        let text = self.unsaid.as_ref().map_or_else(|| text.to_owned(), |unsaid| format!("{unsaid}; {text}"));
        self.notes.say(&field, outcome, text.clone());
        self.notes.say_of_unsaid(&field, outcome, text);
    }

    fn known(&mut self, name: &str) -> (Router, Counts) {
        let connections =
            name == "istio" && self.spec("service/appProtocol").text().is_some_and(|p| p.eq_ignore_ascii_case("tcp"));
        if connections {
            let text = "Flagger splits connections there; no phase does, so no VirtualService is imported";
            self.of_provider(Outcome::NotBuilt, text);
        }
        self.unsplit = matches!(name, "kubernetes" | "none");
        if self.unsplit && self.strategy != Strategy::Skipped {
            // Flagger goes past match and weights there.
            self.strategy = Strategy::BlueGreen;
        }
        if connections || self.unsplit {
            return (self.without_route(), Counts::Application);
        }
        let Some(Provider { router, counts, instead, left, .. }) = PROVIDERS.iter().find(|known| known.name == name)
        else {
            self.of_provider(Outcome::NotUnderstood, "no provider that Flagger has; imported as gatewayAPI");
            return (Router::Gateway, Counts::Unknown);
        };
        if let Some(why) = instead {
            let left = left.map(|kind| format!(". Flagger's {kind} stays, and leads users past that route: {MOVE}"));
            self.of_provider(Outcome::Differs, &format!("{why}{}", left.unwrap_or_default()));
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
            self.of_provider(Outcome::Differs, text);
            return Router::Gateway;
        }
        if self.strategy != Strategy::Canary {
            return Router::Service;
        }
        Router::Replicas
    }
}
