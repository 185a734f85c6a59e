//! The Service, and the HTTPRoute or TraefikService, that Flagger makes from a Canary: here they are manifests in Git.

use super::{Canary, Router};
use crate::draft::{object, sparse};
use crate::fields::FieldOutcome::{self, Differs, DoneOtherwise, NotBuilt, NotNeeded};
use crate::header::matched;
use crate::input::Field;
use serde_json::{Map, Value, json};
use tidegate_controller::manifest::desired::TargetKind;
use tidegate_controller::manifest::object::Kind;

/// What the Canary says of the Service.
const OF_SERVICE: [&str; 8] =
    ["port", "portName", "targetPort", "appProtocol", "trafficDistribution", "headless", "apex", "portDiscovery"];
/// What it says of the route: which routers take it, and what is said of it with the others.
const OF_ROUTE: [(&str, &[Router], FieldOutcome, &str); 13] = [
    ("timeout", BOTH, NotBuilt, NO_ROUTE),
    ("hosts", BOTH, NotBuilt, NO_ROUTE),
    ("match", BOTH, NotBuilt, NO_ROUTE),
    ("rewrite", BOTH, NotBuilt, NO_ROUTE),
    ("headers", BOTH, NotBuilt, NO_ROUTE),
    ("backendTimeout", &[Router::Gateway], NotBuilt, NO_HTTP_ROUTE),
    ("gatewayRefs", &[Router::Gateway], NotBuilt, NO_HTTP_ROUTE),
    ("mirror", &[Router::Gateway], NotBuilt, NO_HTTP_ROUTE),
    ("gateways", &[Router::Istio], NotBuilt, GATEWAYS),
    ("delegation", &[Router::Istio], NotBuilt, "for Istio's VirtualServices alone"),
    ("trafficPolicy", &[Router::Istio], DoneOtherwise, MESH),
    ("retries", &[Router::Istio], DoneOtherwise, MESH),
    ("corsPolicy", &[Router::Istio], DoneOtherwise, MESH),
];
const BOTH: &[Router] = &[Router::Gateway, Router::Istio];
const NO_ROUTE: &str = "there is no route with this router";
const NO_HTTP_ROUTE: &str = "for HTTPRoutes alone, and this router has none";
const GATEWAYS: &str = "gateways of Istio; name one of the Gateway API in the HTTPRoute's parentRefs";
const MESH: &str = "say it in an object of your mesh, beside the rollout's; it is not tied to the two versions here";
const INGRESS: &str = "say it in the Ingress, which has to stand beside the rollout";
const INGRESS_ROUTE: &str = "say it in the IngressRoute that leads to the TraefikService";

impl Canary<'_> {
    /// Says the same of several fields of the service.
    fn all(&mut self, fields: &[&str], outcome: FieldOutcome, text: &str) {
        fields.iter().for_each(|field| self.notes.say(&self.spec(&format!("service/{field}")), outcome, text));
    }

    /// Whether an object is among the input, which then says these fields.
    fn is_beside(&mut self, kind: Kind, name: &str, fields: &[&str]) -> bool {
        let is_beside = self.beside(kind, name).is_some();
        if is_beside {
            self.all(fields, NotNeeded, &format!("the {kind} {name} is among the files, and says it"));
        }
        is_beside
    }

    /// Makes what is not among the input.
    pub(super) fn objects(&mut self) {
        let name = self.service();
        if !self.is_beside(Kind::Service, &name, &OF_SERVICE) {
            let service = self.service_object(&name);
            self.draft.objects.extend(service);
        }
        for (field, routers, outcome, text) in OF_ROUTE {
            let (outcome, text) = match self.router {
                Router::Nginx => (DoneOtherwise, INGRESS),
                Router::Traefik => (DoneOtherwise, INGRESS_ROUTE),
                Router::Gateway | Router::Istio | Router::Service | Router::Replicas | Router::Pods => (outcome, text),
            };
            if !routers.contains(&self.router) {
                self.all(&[field], outcome, text);
            }
        }
        match self.router {
            Router::Gateway => self.http_route(&name),
            Router::Istio => self.mesh(&name),
            Router::Traefik if self.beside(Kind::TraefikService, &name).is_none() => {
                // It leads everything to the Service.
                let port = self.spec("service/port").count().unwrap_or(80);
                let spec = json!({"weighted": {"services": [{"name": name, "port": port}]}});
                self.draft.objects.push(object(Kind::TraefikService, self.metadata(&name), spec));
            }
            Router::Nginx | Router::Traefik | Router::Service | Router::Replicas | Router::Pods => {}
        }
    }

    fn http_route(&mut self, name: &str) {
        let fields = OF_ROUTE.map(|(field, ..)| field);
        if self.is_beside(Kind::HttpRoute, name, &fields) {
            return;
        }
        if self.spec("service/gatewayRefs").items().is_empty() {
            let text = format!("say it in the HTTPRoute {name}, which has to stand beside the rollout");
            self.all(&fields, DoneOtherwise, &text);
        } else if let Some(route) = self.route_object(name) {
            self.draft.objects.push(route);
        } else {
            let text = format!(
                "nothing of match can be said in the HTTPRoute {name}: write it, and put it beside the rollout"
            );
            self.all(&fields, NotBuilt, &text);
        }
    }

    fn mesh(&mut self, name: &str) {
        if !self.is_beside(Kind::DestinationRule, name, &["trafficPolicy"]) {
            self.draft.objects.extend(self.destination_rule(name));
        }
        if !self.is_beside(Kind::VirtualService, name, &OF_ROUTE.map(|(field, ..)| field)) {
            self.draft.objects.push(self.virtual_service(name));
        }
    }

    pub(super) fn metadata(&self, name: &str) -> Value {
        let texts = |part: &str| -> Map<String, Value> {
            let entries = self.spec(&format!("service/apex/{part}")).entries();
            entries.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value.words()?.into()))).collect()
        };
        let (labels, annotations) = (texts("labels"), texts("annotations"));
        let namespace = &self.draft.namespace;
        sparse(json!({"name": name, "namespace": namespace, "labels": labels, "annotations": annotations}))
    }

    fn service_object(&mut self, name: &str) -> Option<Value> {
        if self.draft.kind == TargetKind::Service {
            let text = format!("say it in the Service {name}: it is the target, and has to stand beside the rollout");
            self.all(&OF_SERVICE, DoneOtherwise, &text);
            return None;
        }
        let (selector, said) = (self.selector(), self.spec("service"));
        let Some(port) = said.get("port").count().filter(|port| (1..=65_535).contains(port)) else {
            self.notes.odd(&said.get("port"), "a port from 1 to 65535");
            let text = format!("say it in the Service {name}, which has to stand beside the rollout");
            self.all(&OF_SERVICE, DoneOtherwise, &text);
            return None;
        };
        let target = match said.get("targetPort").count() {
            Some(0) => json!(port),
            Some(number) => json!(number),
            None => said.get("targetPort").text().map_or(json!(port), Value::from),
        };
        let entry = json!({
            "name": said.get("portName").text().unwrap_or("http"),
            "port": port,
            "targetPort": target,
            "protocol": "TCP",
            "appProtocol": said.get("appProtocol").text(),
        });
        let mut spec = json!({"type": "ClusterIP", "selector": selector, "ports": self.ports(sparse(entry))});
        if said.get("headless").is_true() {
            spec["clusterIP"] = "None".into();
        }
        if let Some(distribution) = said.get("trafficDistribution").text() {
            spec["trafficDistribution"] = distribution.into();
        }
        Some(object(Kind::Service, self.metadata(name), spec))
    }

    /// The label by which Flagger tells pods apart: the first of three that the target selects by.
    fn selector(&mut self) -> Value {
        let Some(workload) = self.workload() else {
            let (kind, target) = (self.draft.kind.kind(), &self.draft.target);
            let text = format!(
                "spec.target.name. The {kind} is not among the files: the Service selects app: {target}, which may be wrong"
            );
            self.notes.say(&self.spec("targetRef/name"), Differs, text);
            return json!({"app": self.draft.target});
        };
        let labels = workload.spec("selector/matchLabels");
        let first = ["app", "name", "app.kubernetes.io/name"].into_iter().find(|label| labels.get(label).is_there());
        first.map_or_else(|| labels.value(), |label| json!({label: labels.get(label).words()}))
    }

    fn route_object(&mut self, name: &str) -> Option<Value> {
        let service = self.spec("service");
        let port = service.get("port").count().unwrap_or(80);
        let said = service.get("match").items();
        let mut matches: Vec<Value> = said.iter().filter_map(|one| self.route_match(one)).collect();
        if said.is_empty() {
            matches.push(json!({"path": {"type": "PathPrefix", "value": "/"}}));
        } else if matches.is_empty() {
            return None;
        }
        let text = |field: &str| service.get(field).text();
        let rule = json!({
            "matches": matches,
            "filters": filters(&service),
            "timeouts": sparse(json!({"request": text("timeout"), "backendRequest": text("backendTimeout")})),
            "backendRefs": [{"name": name, "port": port}],
        });
        let spec = json!({
            "parentRefs": service.get("gatewayRefs").value(),
            "hostnames": service.get("hosts").list(),
            "rules": [sparse(rule)],
        });
        Some(object(Kind::HttpRoute, self.metadata(name), sparse(spec)))
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
                return self.notes.refuse(one, NotBuilt, text);
            };
            made.insert(key.to_owned(), value);
        }
        Some(made.into())
    }
}

/// What a route does with requests beside leading them.
fn filters(service: &Field<'_>) -> Vec<Value> {
    let rewrite = service.get("rewrite");
    let is_prefix = rewrite.get("type").text() == Some("ReplacePrefixMatch");
    let (kind, key) =
        if is_prefix { ("ReplacePrefixMatch", "replacePrefixMatch") } else { ("ReplaceFullPath", "replaceFullPath") };
    let path = rewrite.get("uri").text().map(|uri| json!({"type": kind, key: uri}));
    let rewrite = sparse(json!({"hostname": rewrite.get("authority").text(), "path": path}));
    let headers = |which: &str| {
        let said = service.get("headers").get(which);
        let named = |how: &str| -> Vec<Value> {
            let entries = said.get(how).entries().into_iter();
            entries.filter_map(|(name, value)| Some(json!({"name": name, "value": value.words()?}))).collect()
        };
        sparse(json!({"set": named("set"), "add": named("add"), "remove": said.get("remove").list()}))
    };
    let made = [
        ("URLRewrite", "urlRewrite", rewrite),
        ("RequestHeaderModifier", "requestHeaderModifier", headers("request")),
        ("ResponseHeaderModifier", "responseHeaderModifier", headers("response")),
    ];
    let made = made.into_iter().filter(|(_, _, made)| *made != json!({}));
    let made = made.map(|(kind, key, made)| json!({"type": kind, key: made}));
    let mirrors = service.get("mirror").items();
    let copied = |mirror: &Field<'_>| json!({"type": "RequestMirror", "requestMirror": mirror.value()});
    made.chain(mirrors.iter().map(copied)).collect()
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
        let made = matched(&value)?;
        let (kind, text) = match made.as_str() {
            Some(text) => ("Exact", text),
            None => ("RegularExpression", made["regex"].as_str()?),
        };
        Some(json!({"type": kind, "name": name, "value": text}))
    };
    field.entries().into_iter().map(one).collect::<Option<Vec<Value>>>().map(Value::from)
}
