//! What leads requests to the candidate's copy of a Service, beside that copy.

use super::{LayoutError, SUFFIX, copied};
use crate::manifest::desired::{Plan, Router, Set, Traffic};
use crate::manifest::ids::ObjectName;
use crate::manifest::object::{Kind, Object, items};
use crate::workload::routers;
use serde_json::Value;

/// What a router needs beside the copy of the candidate's `service`, and what a mesh does with requests to it; `relabel` makes labels
/// of the manifests' pods those of the candidate's.
///
/// # Errors
/// [`LayoutError`]: stable's route cannot lead to that copy, or something has no name for a copy.
pub(in crate::workload) fn led_to_copy(
    service: &Object,
    [stable, candidate]: [&Set; 2],
    plan: &Plan,
    relabel: impl Fn(&mut Value),
) -> Result<Vec<Object>, LayoutError> {
    let Some(Traffic { router, .. }) = &plan.traffic else { return Ok(Vec::new()) };
    let route = offers_ports(service, stable, router)?;
    let copies = plan.phases.iter().filter_map(|phase| phase.expose.mirror).max().unwrap_or_default();
    let beside = route.map(|route| routers::extra_route(router, copies, route)).transpose()?.flatten();
    let rule = destination_rule(candidate, &service.reference().name, relabel)?;
    Ok(beside.into_iter().chain(rule).collect())
}

/// Stable's route, by which requests are split until promotion: the copy must have every port that it sends to.
pub(in crate::workload) fn offers_ports<'a>(
    service: &Object,
    stable: &'a Set,
    router: &Router,
) -> Result<Option<&'a Object>, LayoutError> {
    let Some((route, of)) = router.route() else { return Ok(None) };
    let new = || LayoutError::NewRoute { route, name: of.clone() };
    let object = stable.get(route, of).ok_or_else(new)?;
    let name = &service.reference().name;
    let ports: Vec<&Value> = items(&service.value()["spec"], "ports").collect();
    let offered = |asked: &Value| ports.iter().any(|port| port["port"] == *asked || port["name"] == *asked);
    match routers::ports(router, object).into_iter().find(|port| !offered(port)) {
        Some(port) => {
            let port = port.as_str().map_or_else(|| port.to_string(), str::to_owned);
            Err(LayoutError::PortMissing { route, service: name.clone(), port })
        }
        None => Ok(Some(object)),
    }
}

/// What a mesh does with requests to the Service it does with those to its copy.
fn destination_rule(
    candidate: &Set,
    service: &ObjectName,
    relabel: impl Fn(&mut Value),
) -> Result<Option<Object>, LayoutError> {
    let rules = candidate.objects.values().filter(|object| object.reference().kind == Kind::DestinationRule);
    let mut about = rules.filter(|rule| routers::istio::is_about(rule, service));
    about.next().map(|rule| Ok(routers::istio::destination_rule(&copied(rule, SUFFIX)?, service, relabel))).transpose()
}
