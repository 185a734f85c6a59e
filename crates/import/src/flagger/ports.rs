//! The ports that Flagger discovers: here they stand in the Service, in the order of the containers.

use super::Canary;
use crate::fields::Outcome;
use crate::input::Document;
use serde_json::{Value, json};

/// Containers of a mesh, whose ports are nobody's.
const PROXIES: [&str; 2] = ["istio-proxy", "envoy"];

/// A port of a container, called as Flagger calls it.
struct Port {
    name: String,
    number: u32,
}

impl Canary<'_> {
    /// The ports of the Service: the one that the Canary says, and those of the pods where it asks for them.
    pub(super) fn ports(&mut self, said: Value) -> Vec<Value> {
        let mut ports = vec![said];
        let asked = self.spec("service/portDiscovery");
        if !asked.is_true() {
            return ports;
        }
        let Some(workload) = self.workload() else {
            let kind = self.draft.kind.kind();
            let text = format!("the {kind} is not among the files: write the ports of its pods into the Service");
            self.notes.say(&asked, Outcome::DoneOtherwise, text);
            return ports;
        };
        // The API server takes a number and a name once.
        let mut twice = Vec::new();
        for Port { name, number } in found(workload, &ports[0]) {
            if ports.iter().any(|port| port["name"] == *name || port["port"] == number) {
                twice.push(format!("{name} ({number})"));
            } else {
                ports.push(json!({"name": name, "port": number, "targetPort": number, "protocol": "TCP"}));
            }
        }
        if !twice.is_empty() {
            let text = format!("the Service, but for {}: it has such a name or number already", twice.join(", "));
            self.notes.say(&asked, Outcome::Differs, text);
        }
        ports
    }
}

/// The ports of a workload's containers, but for that of the Service. Of two with one name the later one is meant.
fn found(workload: &Document, service: &Value) -> Vec<Port> {
    let mut all: Vec<Port> = Vec::new();
    for container in workload.at("/spec/template/spec/containers").items() {
        let of = container.get("name").text().unwrap_or_default();
        if PROXIES.contains(&of) {
            continue;
        }
        for (n, port) in container.get("ports").items().iter().enumerate() {
            let named = port.get("name").text().filter(|name| !name.is_empty());
            let number = port.get("containerPort").count().filter(|number| (1..=65_535).contains(number));
            let is_service = number.is_some_and(|number| service["targetPort"] == number)
                || named.is_some_and(|name| service["targetPort"] == *name);
            let Some(number) = number.filter(|_| !is_service) else { continue };
            let name = named.map_or_else(|| format!("tcp-{of}-{n}"), str::to_owned);
            match all.iter_mut().find(|port| port.name == name) {
                Some(port) => port.number = number,
                None => all.push(Port { name, number }),
            }
        }
    }
    all
}
