//! What splits requests in the place of Argo's routers, and what these leave.

use super::Rollout;
use crate::Tool;
use crate::fields::FieldOutcome::{Differs, Imported};
use crate::input::{Document, Field};
use crate::router::{INSTEAD, PROVIDERS, Router};
use tidegate_controller::manifest::ids::{Namespace, ObjectName};
use tidegate_controller::manifest::object::Kind;

/// The plugin that splits requests by the Gateway API.
const PLUGIN: &str = "argoproj-labs/gatewayAPI";

impl<'a> Rollout<'a> {
    pub(super) fn traffic(&mut self) {
        let routing = self.canary("trafficRouting");
        let service = self.canary("stableService").text().or_else(|| self.selecting());
        let service = service.unwrap_or(&self.draft.target).to_owned();
        self.draft.refers.push((Kind::Service, service.clone(), "the Service that users meet"));
        if !routing.is_there() {
            self.draft.traffic = self.router.traffic("", &service);
            return;
        }
        let is_said = |key: &str| routing.get(key).is_there();
        let found = PROVIDERS.iter().find(|(tool, key, ..)| *tool == Tool::Argo && is_said(key));
        let found = found.map(|&(_, key, router, _, why, _)| (key, router, why));
        let (key, router, why) = found.unwrap_or(("", Router::Gateway, ""));
        self.router = router;
        let said = routing.get(key);
        let name = match router {
            Router::Istio => self.virtual_service(&said),
            Router::Nginx => self.ingress(&said),
            Router::Traefik => said.get("weightedTraefikServiceName").text(),
            Router::Gateway | Router::Service | Router::Replicas | Router::Pods => {
                self.http_route(&routing.get("plugins").get(PLUGIN))
            }
        };
        if !why.is_empty() {
            self.notes.say(&said, Differs, format!("{INSTEAD}{why}"));
        }
        let name = name.unwrap_or(&service).to_owned();
        self.draft.traffic = router.traffic(&name, &service);
        let route = router.route().map(|(kind, _)| (kind, name, "the route whose requests are split"));
        self.draft.refers.extend(route);
    }

    /// The route that the plugin for the Gateway API names.
    fn http_route(&mut self, plugin: &Field<'a>) -> Option<&'a str> {
        let routes = plugin.get("httpRoutes").items();
        let name = plugin.get("httpRoute").text().or_else(|| routes.first()?.get("name").text());
        let (outcome, text) = if routes.len() > 1 {
            (Differs, "spec.traffic.gatewayAPI: the first of its routes; a rollout splits one")
        } else {
            (Imported, "spec.traffic.gatewayAPI")
        };
        if name.is_some() {
            self.notes.say(plugin, outcome, text);
            self.notes.say(&self.canary("trafficRouting/plugins"), outcome, text);
        }
        name
    }

    /// The VirtualService: all its routes to the Service are split.
    fn virtual_service(&mut self, istio: &Field<'a>) -> Option<&'a str> {
        let (one, all) = (istio.get("virtualService"), istio.get("virtualServices"));
        let several = all.items();
        let one = if one.is_there() { one } else { istio.clone() };
        if several.len() > 1 {
            self.notes.say(&all, Differs, "spec.traffic.istio: the first of them; a rollout splits one");
        }
        one.get("name").text().or_else(|| several.first()?.get("name").text())
    }

    /// The Ingress, beside which a run makes a canary.
    fn ingress(&mut self, nginx: &Field<'a>) -> Option<&'a str> {
        let (one, all) = (nginx.get("stableIngress"), nginx.get("stableIngresses"));
        let several = all.items();
        let first = if several.len() > 1 { ": the first of them; a rollout splits one" } else { "" };
        for (field, ingresses, which) in [(&one, std::slice::from_ref(&one), ""), (&all, several.as_slice(), first)] {
            let text = format!("{which}{}", left(self.document, ingresses));
            if !text.is_empty() {
                self.notes.say(field, Differs, format!("spec.traffic.nginx{text}"));
            }
        }
        one.text().or_else(|| several.first()?.text())
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
