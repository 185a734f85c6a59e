//! The Service, and the HTTPRoute or TraefikService, that Flagger makes from a Canary: here they are manifests in Git.

use super::{Canary, Router};
use crate::fields::Outcome;
use crate::input::Field;
use serde_json::{Map, Value, json};
use tidegate_controller::manifest::desired::TargetKind;
use tidegate_controller::manifest::object::Kind;

/// What the Canary says of the Service.
const OF_SERVICE: [&str; 8] =
    ["port", "portName", "targetPort", "appProtocol", "trafficDistribution", "headless", "apex", "portDiscovery"];
/// What it says of the route: which routers take it, and what is said of it with the others.
const OF_ROUTE: [(&str, &[Router], Outcome, &str); 13] = [
    ("timeout", BOTH, Outcome::NotBuilt, NO_ROUTE),
    ("hosts", BOTH, Outcome::NotBuilt, NO_ROUTE),
    ("match", BOTH, Outcome::NotBuilt, NO_ROUTE),
    ("rewrite", BOTH, Outcome::NotBuilt, NO_ROUTE),
    ("headers", BOTH, Outcome::NotBuilt, NO_ROUTE),
    ("backendTimeout", &[Router::Gateway], Outcome::NotBuilt, "for HTTPRoutes alone, and this router has none"),
    ("gatewayRefs", &[Router::Gateway], Outcome::NotBuilt, "for HTTPRoutes alone, and this router has none"),
    ("mirror", &[Router::Gateway], Outcome::NotBuilt, "for HTTPRoutes alone, and this router has none"),
    (
        "gateways",
        &[Router::Istio],
        Outcome::NotBuilt,
        "gateways of Istio; name one of the Gateway API in the HTTPRoute's parentRefs",
    ),
    ("delegation", &[Router::Istio], Outcome::NotBuilt, "for Istio's VirtualServices alone"),
    ("trafficPolicy", &[Router::Istio], Outcome::DoneOtherwise, MESH),
    ("retries", &[Router::Istio], Outcome::DoneOtherwise, MESH),
    ("corsPolicy", &[Router::Istio], Outcome::DoneOtherwise, MESH),
];
const BOTH: &[Router] = &[Router::Gateway, Router::Istio];
const NO_ROUTE: &str = "there is no route with this router";
const MESH: &str = "say it in an object of your mesh, beside the rollout's; it is not tied to the two versions here";
const INGRESS: &str = "say it in the Ingress, which has to stand beside the rollout";
const INGRESS_ROUTE: &str = "say it in the IngressRoute that leads to the TraefikService";

impl Canary<'_> {
    /// Whether such an object is among the input.
    fn has(&self, kind: Kind, name: &str) -> bool {
        let namespace = &self.document.namespace;
        self.input.documents.iter().any(|d| d.manifest() == Some(kind) && d.name == name && d.namespace == *namespace)
    }

    /// Says the same of several fields of the service.
    fn all(&mut self, fields: &[&str], outcome: Outcome, text: &str) {
        for field in fields {
            self.notes.say(&self.spec(&format!("service/{field}")), outcome, text);
        }
    }

    /// Makes what is not among the input.
    pub(super) fn objects(&mut self) {
        let name = self.service();
        if self.has(Kind::Service, &name) {
            self.all(&OF_SERVICE, Outcome::NotNeeded, &format!("the Service {name} is among the files, and says it"));
        } else if self.draft.kind == TargetKind::Service {
            let text = format!("say it in the Service {name}: it is the target, and has to stand beside the rollout");
            self.all(&OF_SERVICE, Outcome::DoneOtherwise, &text);
        } else if let Some(service) = self.service_object(&name) {
            self.draft.objects.push(service);
        }
        for (field, routers, outcome, text) in OF_ROUTE {
            let said = self.spec(&format!("service/{field}"));
            let elsewhere = match self.router {
                Router::Nginx => Some(INGRESS),
                Router::Traefik => Some(INGRESS_ROUTE),
                Router::Gateway | Router::Istio | Router::Service | Router::Replicas | Router::Pods => None,
            };
            if let Some(text) = elsewhere {
                self.notes.say(&said, Outcome::DoneOtherwise, text);
            } else if !routers.contains(&self.router) {
                self.notes.say(&said, outcome, text);
            }
        }
        match self.router {
            Router::Gateway => self.http_route(&name),
            Router::Istio => self.mesh(&name),
            Router::Traefik if !self.has(Kind::TraefikService, &name) => {
                let service = self.traefik_service(&name);
                self.draft.objects.push(service);
            }
            Router::Nginx | Router::Traefik | Router::Service | Router::Replicas | Router::Pods => {}
        }
    }

    /// The TraefikService, which leads everything to the Service.
    fn traefik_service(&self, name: &str) -> Value {
        let port = self.spec("service/port").count().unwrap_or(80);
        let spec = json!({"weighted": {"services": [{"name": name, "port": port}]}});
        json!({"apiVersion": "traefik.io/v1alpha1", "kind": "TraefikService", "metadata": self.metadata(name), "spec": spec})
    }

    /// Says the same of all that goes into the route.
    fn all_of_route(&mut self, outcome: Outcome, text: &str) {
        for (field, ..) in OF_ROUTE {
            self.notes.say(&self.spec(&format!("service/{field}")), outcome, text);
        }
    }

    fn http_route(&mut self, name: &str) {
        if self.has(Kind::HttpRoute, name) {
            self.all_of_route(Outcome::NotNeeded, &format!("the HTTPRoute {name} is among the files, and says it"));
        } else if self.spec("service/gatewayRefs").items().is_empty() {
            let text = format!("say it in the HTTPRoute {name}, which has to stand beside the rollout");
            self.all_of_route(Outcome::DoneOtherwise, &text);
        } else if let Some(route) = self.route_object(name) {
            self.draft.objects.push(route);
        } else {
            let text = format!(
                "nothing of match can be said in the HTTPRoute {name}: write it, and put it beside the rollout"
            );
            self.all_of_route(Outcome::NotBuilt, &text);
        }
    }

    fn mesh(&mut self, name: &str) {
        if self.has(Kind::DestinationRule, name) {
            let text = format!("the DestinationRule {name} is among the files, and says it");
            self.notes.say(&self.spec("service/trafficPolicy"), Outcome::NotNeeded, text);
        } else {
            let rule = self.destination_rule(name);
            self.draft.objects.extend(rule);
        }
        if self.has(Kind::VirtualService, name) {
            self.all_of_route(
                Outcome::NotNeeded,
                &format!("the VirtualService {name} is among the files, and says it"),
            );
        } else {
            let route = self.virtual_service(name);
            self.draft.objects.push(route);
        }
    }

    pub(super) fn metadata(&self, name: &str) -> Map<String, Value> {
        let mut metadata = Map::new();
        metadata.insert("name".to_owned(), name.into());
        metadata.insert("namespace".to_owned(), self.draft.namespace.clone().into());
        for part in ["labels", "annotations"] {
            let field = self.spec(&format!("service/apex/{part}"));
            let texts =
                field.entries().into_iter().filter_map(|(key, value)| Some((key.to_owned(), value.words()?.into())));
            let texts: Map<String, Value> = texts.collect();
            if !texts.is_empty() {
                metadata.insert(part.to_owned(), texts.into());
            }
        }
        metadata
    }

    fn service_object(&mut self, name: &str) -> Option<Value> {
        let selector = self.selector();
        let said = |field: &str| self.spec(&format!("service/{field}"));
        let Some(port) = said("port").count().filter(|port| (1..=65_535).contains(port)) else {
            let port = said("port");
            self.notes.odd(&port, "a port from 1 to 65535");
            self.all(
                &OF_SERVICE,
                Outcome::DoneOtherwise,
                &format!("say it in the Service {name}, which has to stand beside the rollout"),
            );
            return None;
        };
        let target = match said("targetPort").count() {
            Some(0) => json!(port),
            Some(number) => json!(number),
            None => said("targetPort").text().map_or(json!(port), Value::from),
        };
        let mut entry = json!({"name": said("portName").text().unwrap_or("http"), "port": port, "targetPort": target, "protocol": "TCP"});
        if let Some(protocol) = said("appProtocol").text() {
            entry["appProtocol"] = protocol.into();
        }
        let mut spec = json!({"type": "ClusterIP", "selector": selector, "ports": self.ports(entry)});
        let said = |field: &str| self.spec(&format!("service/{field}"));
        if said("headless").is_true() {
            spec["clusterIP"] = "None".into();
        }
        if let Some(distribution) = said("trafficDistribution").text() {
            spec["trafficDistribution"] = distribution.into();
        }
        Some(json!({"apiVersion": "v1", "kind": "Service", "metadata": self.metadata(name), "spec": spec}))
    }

    /// The label by which Flagger tells pods apart: the first of three that the target selects by.
    fn selector(&mut self) -> Value {
        let Some(workload) = self.workload() else {
            let (kind, target) = (self.draft.kind.kind(), &self.draft.target);
            let text = format!(
                "spec.target.name. The {kind} is not among the files: the Service selects app: {target}, which may be wrong"
            );
            self.notes.say(&self.document.at("/spec/targetRef/name"), Outcome::Differs, text);
            return json!({"app": self.draft.target});
        };
        let labels = workload.at("/spec/selector/matchLabels");
        let first = ["app", "name", "app.kubernetes.io/name"].into_iter().find(|label| labels.get(label).is_there());
        match first {
            Some(label) => json!({label: labels.get(label).words()}),
            None => labels.value(),
        }
    }

    fn route_object(&mut self, name: &str) -> Option<Value> {
        let service = self.spec("service");
        let port = service.get("port").count().unwrap_or(80);
        let matches: Vec<Value> = service.get("match").items().iter().filter_map(|one| self.route_match(one)).collect();
        if matches.is_empty() && !service.get("match").items().is_empty() {
            return None;
        }
        let mut rule = Map::new();
        rule.insert(
            "matches".to_owned(),
            if matches.is_empty() { json!([{"path": {"type": "PathPrefix", "value": "/"}}]) } else { matches.into() },
        );
        let filters = self.filters(&service);
        if !filters.is_empty() {
            rule.insert("filters".to_owned(), filters.into());
        }
        let timeouts = [("request", "timeout"), ("backendRequest", "backendTimeout")];
        let timeouts =
            timeouts.iter().filter_map(|(ours, theirs)| Some(((*ours).to_owned(), service.get(theirs).text()?.into())));
        let timeouts: Map<String, Value> = timeouts.collect();
        if !timeouts.is_empty() {
            rule.insert("timeouts".to_owned(), timeouts.into());
        }
        rule.insert("backendRefs".to_owned(), json!([{"name": name, "port": port}]));
        let mut spec = Map::new();
        spec.insert("parentRefs".to_owned(), service.get("gatewayRefs").value());
        if !service.get("hosts").items().is_empty() {
            spec.insert("hostnames".to_owned(), service.get("hosts").value());
        }
        spec.insert("rules".to_owned(), json!([rule]));
        Some(
            json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": self.metadata(name), "spec": spec}),
        )
    }

    /// A match of the route; none, and named, if a part of it has no match in the Gateway API.
    fn route_match(&mut self, one: &Field<'_>) -> Option<Value> {
        let mut made = Map::new();
        for (key, field) in one.entries() {
            let made_of = match key {
                "name" => continue,
                "uri" => path(&field).map(|path| ("path", path)),
                "method" => field.get("exact").text().map(|method| ("method", method.into())),
                "headers" => named(&field).map(|headers| ("headers", headers)),
                "queryParams" => named(&field).map(|params| ("queryParams", params)),
                _ => None,
            };
            let Some((key, value)) = made_of else {
                let text = format!(
                    "the Gateway API has no match for its {key}; without that it would match more, so all of it is left out"
                );
                self.notes.say(one, Outcome::NotBuilt, text);
                return None;
            };
            made.insert(key.to_owned(), value);
        }
        Some(made.into())
    }

    fn filters(&self, service: &Field<'_>) -> Vec<Value> {
        let mut filters = Vec::new();
        let rewrite = service.get("rewrite");
        let mut made = Map::new();
        if let Some(host) = rewrite.get("authority").text() {
            made.insert("hostname".to_owned(), host.into());
        }
        if let Some(uri) = rewrite.get("uri").text() {
            let prefix = rewrite.get("type").text() == Some("ReplacePrefixMatch");
            let path = if prefix {
                json!({"type": "ReplacePrefixMatch", "replacePrefixMatch": uri})
            } else {
                json!({"type": "ReplaceFullPath", "replaceFullPath": uri})
            };
            made.insert("path".to_owned(), path);
        }
        if !made.is_empty() {
            filters.push(json!({"type": "URLRewrite", "urlRewrite": made}));
        }
        let both = [
            ("request", "RequestHeaderModifier", "requestHeaderModifier"),
            ("response", "ResponseHeaderModifier", "responseHeaderModifier"),
        ];
        for (which, kind, key) in both {
            let said = service.get("headers").get(which);
            let mut made = Map::new();
            for how in ["set", "add"] {
                let list = said.get(how).entries();
                let list =
                    list.into_iter().filter_map(|(name, value)| Some(json!({"name": name, "value": value.words()?})));
                let list: Vec<Value> = list.collect();
                if !list.is_empty() {
                    made.insert(how.to_owned(), list.into());
                }
            }
            if !said.get("remove").items().is_empty() {
                made.insert("remove".to_owned(), said.get("remove").value());
            }
            if !made.is_empty() {
                filters.push(json!({"type": kind, key: made}));
            }
        }
        let mirrors = service.get("mirror").items();
        filters.extend(mirrors.iter().map(|mirror| json!({"type": "RequestMirror", "requestMirror": mirror.value()})));
        filters
    }
}

/// A StringMatch of Istio for paths.
fn path(field: &Field<'_>) -> Option<Value> {
    let entries = field.entries();
    let [(how, value)] = entries.as_slice() else { return None };
    let kind = match *how {
        "exact" => "Exact",
        "prefix" => "PathPrefix",
        "regex" => "RegularExpression",
        _ => return None,
    };
    Some(json!({"type": kind, "value": value.text()?}))
}

/// StringMatches of Istio by name.
fn named(field: &Field<'_>) -> Option<Value> {
    let one = |(name, value): (&str, Field<'_>)| {
        let made = super::matched(&value)?;
        let (kind, text) = match made.as_str() {
            Some(text) => ("Exact", text),
            None => ("RegularExpression", made["regex"].as_str()?),
        };
        Some(json!({"type": kind, "name": name, "value": text}))
    };
    field.entries().into_iter().map(one).collect::<Option<Vec<Value>>>().map(Value::from)
}
