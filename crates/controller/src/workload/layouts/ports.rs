//! The ports of a Service that leads to pods of both versions: until promotion they are as stable has them.

use super::{LayoutError, pod_labels, required};
use crate::manifest::desired::Set;
use crate::manifest::ids::ObjectName;
use crate::manifest::object::{Kind, Object, items};
use crate::workload::selector::serves;
use serde_json::Value;

/// Each port of stable's Service that the new version keeps leads to the same port of the new version's `pods` as its own does.
pub(in crate::workload) fn keeps_ports(
    [stable, candidate]: [&Set; 2],
    service: &ObjectName,
    pods: &Object,
) -> Result<(), LayoutError> {
    let Some(new) = candidate.get(Kind::Service, service) else { return Ok(()) };
    let old = ports(required(stable, Kind::Service, service)?);
    let mut kept = old.filter_map(|old| Some((old, ports(new).find(|new| is_same(old, new))?)));
    match kept.find(|(old, new)| leads_to(old, pods) != leads_to(new, pods)) {
        Some((old, new)) => Err(LayoutError::PortMoves {
            service: service.clone(),
            port: old["port"].to_string(),
            old: shown(old),
            new: shown(new),
        }),
        None => Ok(()),
    }
}

/// The same for all Services that lead to the pods of a workload, where both versions are pods of one.
pub(super) fn kept_by_all(sets: [&Set; 2], workload: &Object) -> Result<(), LayoutError> {
    let [stable, _] = sets;
    let pods = pod_labels(workload);
    let services = stable.objects.values().filter(|object| object.reference().kind == Kind::Service);
    let mut leading = services.filter(|service| serves(service.at("/spec/selector"), &pods));
    leading.try_for_each(|service| keeps_ports(sets, &service.reference().name, workload))
}

fn ports(service: &Object) -> impl Iterator<Item = &Value> {
    items(&service.value()["spec"], "ports")
}

fn protocol(port: &Value) -> &str {
    port["protocol"].as_str().unwrap_or("TCP")
}

fn is_same(one: &Value, other: &Value) -> bool {
    one["port"] == other["port"] && protocol(one) == protocol(other)
}

/// The target port as it stands there: a number, or a name; without one the Service's own.
fn target(port: &Value) -> &Value {
    port.get("targetPort").filter(|target| !target.is_null()).unwrap_or(&port["port"])
}

fn shown(port: &Value) -> String {
    let target = target(port);
    target.as_str().map_or_else(|| target.to_string(), str::to_owned)
}

/// The number of the pods' port that a Service's port leads to.
fn leads_to(port: &Value, workload: &Object) -> Option<i64> {
    let target = target(port);
    let Some(name) = target.as_str() else { return target.as_i64() };
    let pod = workload.at("/spec/template/spec")?;
    let containers = items(pod, "containers").chain(items(pod, "initContainers"));
    let mut named = containers.flat_map(|container| items(container, "ports"));
    named.find(|own| own["name"] == name && protocol(own) == protocol(port))?["containerPort"].as_i64()
}
