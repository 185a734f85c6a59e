//! Routers of Argo Rollouts: what splits requests in their place here.

use super::Rollout;
use crate::fields::Outcome;
use crate::flagger::INSTEAD;
use crate::input::{Document, Field};
use serde_json::{Value, json};
use tidegate_controller::manifest::ids::{Namespace, ObjectName};
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
}

impl Router {
    /// Whether it tells requests apart by any headers, and can send one twice.
    pub(super) fn knows_requests(self) -> bool {
        matches!(self, Self::Gateway | Self::Istio)
    }
}

/// The plugin that splits requests by the Gateway API.
pub(super) const PLUGIN: &str = "argoproj-labs/gatewayAPI";

/// Below `trafficRouting`, what it is here, and why it is something else where it is. A router that is built is one row changed.
const ROUTERS: &[(&str, Router, Option<&str>)] = &[
    ("plugins", Router::Gateway, None),
    ("istio", Router::Istio, None),
    ("nginx", Router::Nginx, None),
    ("traefik", Router::Traefik, None),
    ("ambassador", Router::Gateway, Some("imported as gatewayAPI; Mappings of Ambassador are not built")),
    ("apisix", Router::Gateway, Some("imported as gatewayAPI, which APISIX serves beside its ApisixRoutes")),
    ("alb", Router::Gateway, Some("imported as gatewayAPI; Ingresses of AWS are not built")),
    ("appMesh", Router::Gateway, Some("imported as gatewayAPI; App Mesh is not built")),
    ("smi", Router::Gateway, Some("imported as gatewayAPI; TrafficSplits are not built")),
];

/// Each router and what it becomes, for the documents.
pub(crate) fn lines() -> Vec<[String; 3]> {
    let one = |(name, router, instead): &(&str, Router, Option<&str>)| {
        let router = match router {
            Router::Gateway => "`gatewayAPI`",
            Router::Istio => "`istio`",
            Router::Nginx => "`nginx`",
            Router::Traefik => "`traefik`",
            Router::Service | Router::Replicas => "`service`",
        };
        let instead = instead.map(|why| why.trim_start_matches(INSTEAD)).unwrap_or_default();
        [format!("`{name}`"), format!("{router}{instead}"), "those of its templates".to_owned()]
    };
    ROUTERS.iter().map(one).collect()
}

impl Rollout<'_> {
    pub(super) fn traffic(&mut self) {
        let routing = self.canary("trafficRouting");
        let service = self.canary("stableService").text().map(str::to_owned).or_else(|| self.selecting());
        let service = service.unwrap_or_else(|| self.draft.target.clone());
        self.draft.refers.push((Kind::Service, service.clone(), "the Service that users meet"));
        if !routing.is_there() {
            self.draft.traffic = json!({"replicas": {"service": service}});
            return;
        }
        let found = ROUTERS.iter().find(|(key, ..)| routing.get(key).is_there());
        let (key, router, instead) = found.copied().unwrap_or(("", Router::Gateway, None));
        self.router = router;
        let (kind, name, traffic) = match router {
            Router::Istio => self.virtual_service(&routing.get(key)),
            Router::Nginx => self.ingress(&routing.get(key)),
            Router::Traefik => {
                let name = routing.get(key).get("weightedTraefikServiceName").text().map(str::to_owned);
                (Kind::TraefikService, name, ("traefik", "traefikService"))
            }
            Router::Gateway | Router::Service | Router::Replicas => {
                self.http_route(&routing.get("plugins").get(PLUGIN))
            }
        };
        if let Some(why) = instead {
            self.notes.say(&routing.get(key), Outcome::Differs, why);
        }
        let name = name.unwrap_or_else(|| service.clone());
        self.draft.refers.push((kind, name.clone(), "the route whose requests are split"));
        let (of, route) = traffic;
        self.draft.traffic = json!({of: {route: name, "service": service}});
    }

    /// The route that the plugin for the Gateway API names.
    fn http_route(&mut self, plugin: &Field<'_>) -> Named {
        let routes = plugin.get("httpRoutes").items();
        let name = plugin.get("httpRoute").text().or_else(|| routes.first()?.get("name").text());
        if name.is_some() {
            let (outcome, text) = if routes.len() > 1 {
                (Outcome::Differs, "spec.traffic.gatewayAPI: the first of its routes; a rollout splits one")
            } else {
                (Outcome::Imported, "spec.traffic.gatewayAPI")
            };
            self.notes.say(plugin, outcome, text);
            self.notes.say(&self.canary("trafficRouting/plugins"), outcome, text);
        }
        (Kind::HttpRoute, name.map(str::to_owned), ("gatewayAPI", "httpRoute"))
    }

    /// The VirtualService: all its routes to the Service are split.
    fn virtual_service(&mut self, istio: &Field<'_>) -> Named {
        let several = istio.get("virtualServices").items();
        let one = if istio.get("virtualService").is_there() { istio.get("virtualService") } else { istio.clone() };
        let name = one.get("name").text().or_else(|| several.first()?.get("name").text());
        if several.len() > 1 {
            let text = "spec.traffic.istio: the first of them; a rollout splits one";
            self.notes.say(&istio.get("virtualServices"), Outcome::Differs, text);
        }
        (Kind::VirtualService, name.map(str::to_owned), ("istio", "virtualService"))
    }

    /// The Ingress, beside which a run makes a canary.
    fn ingress(&mut self, nginx: &Field<'_>) -> Named {
        let (one, all) = (nginx.get("stableIngress"), nginx.get("stableIngresses"));
        let several = all.items();
        let first = if several.len() > 1 { ": the first of them; a rollout splits one" } else { "" };
        for (field, ingresses, which) in [(&one, std::slice::from_ref(&one), ""), (&all, several.as_slice(), first)] {
            let note = format!("{which}{}", left(self.document, ingresses));
            if !note.is_empty() {
                self.notes.say(field, Outcome::Differs, format!("spec.traffic.nginx{note}"));
            }
        }
        let name = one.text().or_else(|| several.first()?.text());
        (Kind::Ingress, name.map(str::to_owned), ("nginx", "ingress"))
    }
}

/// What is said of the canary that Argo has made beside each of these Ingresses. A command holds no name that no object has.
fn left(document: &Document, ingresses: &[Field<'_>]) -> String {
    let names = ingresses.iter().filter_map(Field::text).map(|name| format!("{}-{name}-canary", document.name));
    let names: Vec<String> = names.filter(|name| name.parse::<ObjectName>().is_ok()).collect();
    let namespace = &document.namespace;
    if names.is_empty() || namespace.parse::<Namespace>().is_err() {
        return String::new();
    }
    let names = names.join(" ");
    format!(
        ". Argo's canary Ingress stays, and ingress-nginx leads nobody to that of a run beside it: once the Rollout is deleted, \
         kubectl --namespace {namespace} delete ingress {names} (docs/migrating.md)"
    )
}

/// The kind of a route, its name if it is said, and how a rollout says both.
type Named = (Kind, Option<String>, (&'static str, &'static str));

/// Where routes name Services: their rules, or what is the only one, and in each a list, and in each entry the name.
const BACKENDS: [(Kind, &str, &str, &str); 3] = [
    (Kind::HttpRoute, "/spec/rules", "backendRefs", "/name"),
    (Kind::VirtualService, "/spec/http", "route", "/destination/host"),
    (Kind::TraefikService, "/spec/weighted", "services", "/name"),
];

/// A manifest without the Service of the new version, which a run makes and names itself; none if it does not name it.
pub(crate) fn without(manifest: &Value, kind: Kind, service: &str) -> Option<Value> {
    let (_, rules, backends, name) = BACKENDS.into_iter().find(|(of, ..)| *of == kind)?;
    let mut manifest = manifest.clone();
    let mut cut = false;
    let rules = manifest.pointer_mut(rules)?;
    let rules = if rules.is_object() { std::slice::from_mut(rules) } else { rules.as_array_mut()?.as_mut_slice() };
    for rule in rules {
        let Some(list) = rule.get_mut(backends).and_then(Value::as_array_mut) else { continue };
        let named = |backend: &Value| {
            backend.pointer(name).and_then(Value::as_str).is_some_and(|host| host.split('.').next() == Some(service))
        };
        if list.iter().any(named) && !list.iter().all(named) {
            list.retain(|backend| !named(backend));
            cut = true;
        }
    }
    cut.then_some(manifest)
}
