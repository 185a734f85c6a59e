//! The VirtualService and the DestinationRule that Flagger makes from a Canary: here they are manifests in Git.

use super::Canary;
use crate::draft::{object, sparse};
use crate::input::Field;
use serde_json::{Value, json};
use tidegate_controller::manifest::object::Kind;

/// What the Canary says of the one route, in Istio's own words.
const OF_ROUTE: [&str; 5] = ["match", "timeout", "retries", "corsPolicy", "headers"];

impl Canary<'_> {
    /// The VirtualService, which sends everything to the Service.
    pub(super) fn virtual_service(&self, name: &str) -> Value {
        let service = self.spec("service");
        let is_delegate = service.get("delegation").is_true();
        let texts = |field: &str| -> Vec<String> {
            let items = service.get(field).items().into_iter().filter(|_| !is_delegate);
            items.filter_map(|item| item.text().map(str::to_owned)).collect()
        };
        let (mut hosts, mut gateways) = (texts("hosts"), texts("gateways"));
        if !is_delegate && !hosts.iter().any(|host| host == name || host == "*") {
            hosts.push(name.to_owned());
        }
        if !is_delegate && gateways.is_empty() {
            gateways.push("mesh".to_owned());
        }
        let mut route = service.only(&OF_ROUTE);
        let rewrite = service.get("rewrite").only(&["uri", "authority"]);
        if !rewrite.is_empty() {
            route.insert("rewrite".to_owned(), rewrite.into());
        }
        let port = self.names_port().then(|| json!({"number": service.get("port").count().unwrap_or(80)}));
        let destination = sparse(json!({"host": name, "port": port}));
        route.insert("route".to_owned(), json!([{"destination": destination}]));
        let spec = json!({"hosts": hosts, "gateways": gateways, "http": [route]});
        object(Kind::VirtualService, self.metadata(name), sparse(spec))
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
        policy.is_there().then(|| object(Kind::DestinationRule, metadata, spec))
    }
}
