//! The ports that Flagger discovers: here they stand in the Service, in the order of the containers.

use super::Canary;
use crate::fields::FieldOutcome::{Differs, DoneOtherwise};
use crate::input::Document;
use serde_json::{Value, json};

/// Containers of a mesh, whose ports are nobody's.
const PROXIES: [&str; 2] = ["istio-proxy", "envoy"];

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
            self.notes.say(&asked, DoneOtherwise, text);
            return ports;
        };
        // The API server takes a number and a name once.
        let mut twice = Vec::new();
        for (name, number) in found(workload, &ports[0]) {
            if ports.iter().any(|port| port["name"] == *name || port["port"] == number) {
                twice.push(format!("{name} ({number})"));
            } else {
                ports.push(json!({"name": name, "port": number, "targetPort": number, "protocol": "TCP"}));
            }
        }
        if !twice.is_empty() {
            let text = format!("the Service, but for {}: it has such a name or number already", twice.join(", "));
            self.notes.say(&asked, Differs, text);
        }
        ports
    }
}

/// The ports of a workload's containers, but for that of the Service, called as Flagger calls them. Of two with one name the later one is
/// meant.
fn found(workload: &Document, service: &Value) -> Vec<(String, u32)> {
    let mut all: Vec<(String, u32)> = Vec::new();
    for container in workload.spec("template/spec/containers").items() {
        let of = container.get("name").text().unwrap_or_default();
        let ports = container.get("ports").items().into_iter().filter(|_| !PROXIES.contains(&of));
        for (n, port) in ports.enumerate() {
            let named = port.get("name").text().filter(|name| !name.is_empty());
            let number = port.get("containerPort").count().filter(|number| (1..=65_535).contains(number));
            let Some(number) = number.filter(|number| service["targetPort"] != *number) else { continue };
            if named.is_some_and(|name| service["targetPort"] == *name) {
                continue;
            }
            let name = named.map_or_else(|| format!("tcp-{of}-{n}"), str::to_owned);
            match all.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => *known = number,
                None => all.push((name, number)),
            }
        }
    }
    all
}
