//! The VirtualService and the DestinationRule that Flagger makes from a Canary: here they are manifests in Git.

use super::Canary;
use crate::input::Field;
use serde_json::{Map, Value, json};

/// What the Canary says of the one route, in Istio's own words.
const OF_ROUTE: [&str; 5] = ["match", "timeout", "retries", "corsPolicy", "headers"];

impl Canary<'_> {
    /// The VirtualService, which sends everything to the Service.
    pub(super) fn virtual_service(&self, name: &str) -> Value {
        let service = self.spec("service");
        let mut spec = Map::new();
        if !service.get("delegation").is_true() {
            let texts = |field: &str| -> Vec<String> {
                service.get(field).items().iter().filter_map(|item| item.text().map(str::to_owned)).collect()
            };
            let (mut hosts, mut gateways) = (texts("hosts"), texts("gateways"));
            if !hosts.iter().any(|host| host == name || host == "*") {
                hosts.push(name.to_owned());
            }
            if gateways.is_empty() {
                gateways.push("mesh".to_owned());
            }
            spec.insert("hosts".to_owned(), hosts.into());
            spec.insert("gateways".to_owned(), gateways.into());
        }
        let mut route = Map::new();
        let said = OF_ROUTE.into_iter().map(|key| (key, service.get(key))).filter(|(_, field)| field.is_there());
        route.extend(said.map(|(key, field)| (key.to_owned(), field.value())));
        let rewrite = ["uri", "authority"].into_iter().map(|key| (key, service.get("rewrite").get(key)));
        let rewrite: Map<String, Value> =
            rewrite.filter(|(_, field)| field.is_there()).map(|(key, field)| (key.to_owned(), field.value())).collect();
        if !rewrite.is_empty() {
            route.insert("rewrite".to_owned(), rewrite.into());
        }
        let mut destination = json!({"host": name});
        if self.names_port() {
            destination["port"] = json!({"number": service.get("port").count().unwrap_or(80)});
        }
        route.insert("route".to_owned(), json!([{"destination": destination}]));
        spec.insert("http".to_owned(), json!([route]));
        json!({"apiVersion": ISTIO, "kind": "VirtualService", "metadata": self.metadata(name), "spec": spec})
    }

    /// Whether Flagger names the port: a Service with one port needs none, and what is live is to be as the file says.
    fn names_port(&self) -> bool {
        let service = self.spec("service");
        let gateways = service.get("gateways");
        let outside = gateways.items().first().and_then(Field::text).is_some_and(|gateway| gateway != "mesh");
        service.get("portDiscovery").is_true() && (outside || service.get("delegation").is_true())
    }

    /// What the mesh does with requests to the Service; a run has a copy for the new version's.
    pub(super) fn destination_rule(&self, name: &str) -> Option<Value> {
        let policy = self.spec("service/trafficPolicy");
        let metadata = json!({"name": name, "namespace": self.draft.namespace});
        let spec = json!({"host": name, "trafficPolicy": policy.value()});
        let rule = json!({"apiVersion": ISTIO, "kind": "DestinationRule", "metadata": metadata, "spec": spec});
        policy.is_there().then_some(rule)
    }
}

const ISTIO: &str = "networking.istio.io/v1";
