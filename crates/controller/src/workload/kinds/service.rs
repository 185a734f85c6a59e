//! A Service as the target: what it leads to changes, be it to other pods or to another name.
//!
//! The candidate's is a copy that leads where the new version leads. Pods, and whatever makes them, are other people's: they
//! are neither written nor counted here.

use crate::manifest::canonical::drop_allotted;
use crate::manifest::desired::{Plan, Set};
use crate::manifest::object::{Kind, Object, ObjectRef, PODS, items, section};
use crate::workload::layouts::{self, LayoutError, SUFFIX};
use crate::workload::live::LiveState;
use crate::workload::readiness::{self, Available, Readiness};
use serde_json::json;
use std::collections::BTreeMap;

/// Whether a Service is a DNS alias, which leads to a name and has no endpoints.
#[must_use]
pub fn is_alias(service: &Object) -> bool {
    service.text("/spec/type") == Some("ExternalName")
}

/// The candidate's objects: the copy of the Service, and what the router needs beside it.
///
/// # Errors
/// [`LayoutError`]: the set cannot be the candidate beside this stable set.
pub(in crate::workload) fn candidate(
    stable: &Set,
    candidate: &Set,
    plan: &Plan,
) -> Result<BTreeMap<ObjectRef, Object>, LayoutError> {
    let source = layouts::required(candidate, Kind::Service, &plan.target.name)?;
    let mut copies = vec![copy(source)?];
    copies.extend(layouts::led_to_copy(source, [stable, candidate], plan, |_| {})?);
    layouts::free(&copies, [stable, candidate])?;
    Ok(copies.into_iter().map(|copy| (copy.reference().clone(), copy)).collect())
}

/// The Service under its copy's name: an alias stays one, all others are reachable inside the cluster alone.
fn copy(service: &Object) -> Result<Object, LayoutError> {
    let mut copy = layouts::inside(service, SUFFIX)?;
    if is_alias(service) {
        let mut spec = service.at("/spec").cloned().unwrap_or_default();
        drop_allotted(&mut spec);
        section(&mut spec, &[]).retain(|field, _| ["type", "externalName", "ports"].contains(&field.as_str()));
        section(copy.value_mut(), &[]).insert("spec".to_owned(), spec);
    }
    Ok(copy)
}

/// The copy as it is created: it leads nowhere, since a late create must expose nothing. An alias cannot be without a name, so
/// it begins as a Service without an address. One that stays without asks for pods that nobody has: without a selector it would be
/// given addresses of two families, and could take none later in a cluster that has one.
#[must_use]
pub fn leading_nowhere(mut copy: Object) -> Object {
    let (alias, headless) = (is_alias(&copy), copy.text("/spec/clusterIP") == Some("None"));
    let spec = section(copy.value_mut(), &["spec"]);
    spec.shift_remove("selector");
    spec.shift_remove("externalName");
    if alias {
        spec.insert("type".to_owned(), "ClusterIP".into());
        spec.insert("clusterIP".to_owned(), "None".into());
    } else if headless {
        spec.insert("selector".to_owned(), json!({PODS: "none"}));
    }
    copy
}

/// Whether requests that come by a live Service arrive where it says: its endpoints have followed, and one of them is ready.
/// An alias is ready as soon as it is written.
#[must_use]
pub(in crate::workload) fn readiness(service: &Object, live: &LiveState) -> Readiness {
    let ObjectRef { namespace, name, kind: _ } = service.reference();
    if is_alias(service) {
        return Readiness::Ready;
    }
    let why = if let Some(pod) = readiness::lagging(live, namespace, name) {
        format!("it still leads to pod {pod}, which it does not ask for any more")
    } else if let Some(port) = lagging_port(service, live) {
        format!("its endpoints still have the port {port}, which it does not ask for any more")
    } else if readiness::ready_endpoints(live, namespace, name) == 0 {
        "it has no ready endpoint".to_owned()
    } else {
        return Readiness::Ready;
    };
    // A Service says nothing of itself: what is known is when it was written.
    Readiness::NotReady { why, available: Available::Perhaps(readiness::written(service)) }
}

/// A port that the endpoints have and that is not the one asked for under its name. What a port with a name is called in the
/// pods is not looked up.
fn lagging_port(service: &Object, live: &LiveState) -> Option<i64> {
    let ObjectRef { namespace, name, kind: _ } = service.reference();
    let asked = |named: &str| {
        let port =
            items(&service.value()["spec"], "ports").find(|port| port["name"].as_str().unwrap_or("") == named)?;
        let to = port.get("targetPort").unwrap_or(&port["port"]);
        to.as_i64()
    };
    let slices = live.objects.slices_of(name.as_str()).filter(|slice| slice.reference().namespace == *namespace);
    let mut ports = slices.flat_map(|slice| items(slice.value(), "ports"));
    ports.find_map(|port| {
        let has = port["port"].as_i64()?;
        (asked(port["name"].as_str().unwrap_or(""))? != has).then_some(has)
    })
}

#[cfg(test)]
mod tests;
