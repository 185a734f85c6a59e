//! The layout `primary`: what it does not go together with, and what it would show too early.

use super::Case;
use crate::manifest::canonical::referenced_config_maps;
use crate::manifest::desired::Layout;
use crate::manifest::diagnostic::{Code, Diagnostic};
use crate::manifest::object::{Kind, Object};
use crate::manifest::set::Item;
use serde_json::Value;

pub(super) fn check(case: &Case<'_>, target: &Item) -> Vec<Diagnostic> {
    if !is_primary(case) {
        return Vec::new();
    }
    let mut found = Vec::new();
    if case.spec.traffic.as_ref().is_none_or(|traffic| traffic.gateway_api.is_none()) {
        let what = "the layout primary is there for the router gatewayAPI alone";
        let expected = "traffic: {gatewayAPI: …}, or layout: inPlace";
        found.push(case.error("/spec/target/layout", Code::LayoutLimit, what, expected));
    }
    let own = configs(&target.object);
    for other in case.of_kind(Kind::Deployment).filter(|item| item.object.reference() != target.object.reference()) {
        let shared = configs(&other.object).into_iter().find(|name| own.contains(name) && is_there(case, name));
        found.extend(shared.map(|name| {
            let what = format!(
                "it reads the ConfigMap {name}, of which the candidate brings its own version before promotion"
            );
            let expected = format!("a ConfigMap of its own, beside that of {}", target.object.reference().name);
            other.error("/spec/template/spec", Code::LayoutLimit, what, expected)
        }));
    }
    found
}

/// Whether stable's objects are the copies.
pub(super) fn is_primary(case: &Case<'_>) -> bool {
    case.spec.target.layout == Layout::Primary
}

fn configs(deployment: &Object) -> Vec<String> {
    let template = deployment.at("/spec/template").unwrap_or(&Value::Null);
    referenced_config_maps(template).iter().map(ToString::to_string).collect()
}

fn is_there(case: &Case<'_>, name: &str) -> bool {
    name.parse().is_ok_and(|name| case.item(Kind::ConfigMap, &name).is_some())
}
