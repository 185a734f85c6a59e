//! The layout `primary`: what it does not go together with, and what it would show too early.

use super::{Case, pods, virtual_service};
use crate::manifest::canonical::referenced_config_maps;
use crate::manifest::desired::{By, Layout};
use crate::manifest::diagnostic::{Code, Diagnostic};
use crate::manifest::object::{Kind, Object, items};
use crate::manifest::set::Item;
use serde_json::Value;

pub(super) fn check(case: &Case<'_>, target: &Item) -> Vec<Diagnostic> {
    if !is_primary(case) {
        return Vec::new();
    }
    let mut found: Vec<Diagnostic> = split_otherwise(case).into_iter().chain(subsets(case, target)).collect();
    let own = configs(&target.object);
    let workloads = Kind::WORKLOADS.iter().flat_map(|kind| case.of_kind(*kind));
    for other in workloads.filter(|item| item.object.reference() != target.object.reference()) {
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

/// A split that is not between the Services of both versions.
fn split_otherwise(case: &Case<'_>) -> Option<Diagnostic> {
    let why = match (&case.spec.traffic, case.router().map(|router| router.by())) {
        (None, _) => "nothing leads users to one version or the other here",
        (Some(_), Some(By::Pods)) => {
            "by pods one Service leads to both versions, and with the layout primary it leads to the copy alone"
        }
        // That there is no router, or more than one, is told with it.
        (Some(_), Some(By::Route | By::Selector | By::Units) | None) => return None,
    };
    let expected = "traffic: {gatewayAPI: …}, istio, nginx, traefik or service; or layout: inPlace";
    Some(case.error("/spec/target/layout", Code::LayoutLimit, why, expected))
}

/// The Service leads to the copy, whose pods have the label by another value than a subset of it would ask for.
fn subsets(case: &Case<'_>, target: &Item) -> Vec<Diagnostic> {
    let labels = pods::labels(target.object.at("/spec/selector/matchLabels"));
    let (Some(key), Some((_, service))) = (pods::telling_label(&labels), case.service()) else { return Vec::new() };
    let about = case.of_kind(Kind::DestinationRule);
    let about = about.filter(|rule| virtual_service::is(case, &rule.object.value()["spec"]["host"], service.as_str()));
    let telling = about.flat_map(|rule| {
        let subsets = items(&rule.object.value()["spec"], "subsets").enumerate();
        subsets.filter(|(_, subset)| subset["labels"].get(key).is_some()).map(move |(i, _)| (rule, i))
    });
    telling
        .map(|(rule, i)| {
            let what = format!("the pods of the copy that users meet have another value of the label {key}");
            let expected = "labels that both versions have, or no subset";
            rule.error(&format!("/spec/subsets/{i}/labels"), Code::LayoutLimit, what, expected)
        })
        .collect()
}

/// Whether stable's objects are the copies.
pub(super) fn is_primary(case: &Case<'_>) -> bool {
    case.spec.target.layout == Layout::Primary
}

fn configs(workload: &Object) -> Vec<String> {
    let template = workload.at("/spec/template").unwrap_or(&Value::Null);
    referenced_config_maps(template).iter().map(ToString::to_string).collect()
}

fn is_there(case: &Case<'_>, name: &str) -> bool {
    name.parse().is_ok_and(|name| case.item(Kind::ConfigMap, &name).is_some())
}
