//! A Service as the target: it leads somewhere, a route splits its requests, and what is behind it is other people's.

use super::pods::{ingress, labels, matches_plain, name_of_copy};
use super::{Case, Findings, SUFFIX, primary};
use crate::manifest::desired::By;
use crate::manifest::diagnostic::{Code, Diagnostic};
use crate::manifest::object::Kind;
use crate::manifest::set::Item;

pub(super) fn check(case: &Case<'_>, target: &Item, findings: &mut Findings) {
    let Findings { errors, warnings } = findings;
    if primary::is_primary(case) {
        let what = "the layout primary is there for the target Deployment alone";
        errors.push(case.error("/spec/target/layout", Code::LayoutLimit, what, "layout: inPlace"));
    }
    errors.extend(router(case));
    errors.extend(leads_somewhere(target));
    errors.extend([target].into_iter().chain(ingress(case)).flat_map(|item| name_of_copy(case, item, SUFFIX)));
    errors.extend(pods_behind(case, target));
    errors.extend(mirrors(case));
    warnings.extend(alias_behind_a_gateway(case, target));
}

/// Only what stands before both Services splits between them.
fn router(case: &Case<'_>) -> Option<Diagnostic> {
    let routers = "traffic: {gatewayAPI: …}, istio or nginx";
    let Some(traffic) = &case.spec.traffic else {
        let what = "nothing splits requests between the Service and its copy";
        let found = case.error("/spec/target", Code::TrafficMissing, what, routers);
        return Some(found.help("to change it all at once, put it among the manifests of what it leads to"));
    };
    let name = &case.spec.target.name;
    let router = super::load::router(traffic)?;
    let spelling = router.spelling();
    if router.by() != By::Route {
        let what = format!("the router {} splits the pods behind one Service, and here it is Services", spelling.name);
        return Some(case.error(&format!("/spec/traffic/{}", spelling.name), Code::RouterLimit, what, routers));
    }
    router.service().filter(|service| *service != name).map(|service| {
        let what = format!("the requests to Service {service} are split, and the target is Service {name}");
        case.error(&spelling.service, Code::TargetMissing, what, format!("service: {name}"))
    })
}

/// A Service without a selector has endpoints that somebody writes, under its name: its copy would have none.
fn leads_somewhere(target: &Item) -> Option<Diagnostic> {
    let text = |pointer: &str| target.object.text(pointer).unwrap_or_default();
    if text("/spec/type") == "ExternalName" {
        let found =
            || target.error("/spec", Code::TargetMissing, "this alias has no name to lead to", "externalName: …");
        return text("/spec/externalName").is_empty().then(found);
    }
    labels(target.object.at("/spec/selector")).is_empty().then(|| {
        let what = "this Service selects no pods, so that its copy would lead nowhere";
        target.error("/spec/selector", Code::TargetMissing, what, "a selector, or type: ExternalName")
    })
}

/// Pods that would change with the promotion were never the ones that were tried out.
fn pods_behind<'a>(case: &'a Case<'_>, target: &'a Item) -> impl Iterator<Item = Diagnostic> + 'a {
    let selector =
        target.object.at("/spec/selector").filter(|_| target.object.text("/spec/type") != Some("ExternalName"));
    let behind = case.of_kind(Kind::Deployment).filter(move |deployment| {
        matches_plain(selector, &labels(deployment.object.at("/spec/template/metadata/labels")))
    });
    behind.map(|deployment| {
        let what = "the target Service leads to these pods, which would change in no steps, after it was tried out";
        let found =
            deployment.error("/spec/template/metadata/labels", Code::Conflict, what, "no workload of the target");
        found.help("give the Deployment a rollout of its own, in another directory or with other files listed")
    })
}

/// What is behind the new Service may be a whole cluster, where a copied request would be carried out as well.
fn mirrors(case: &Case<'_>) -> impl Iterator<Item = Diagnostic> {
    let phases = case.spec.phases.iter().enumerate().filter(|(_, phase)| phase.expose.mirror.is_some());
    phases.map(|(i, _)| {
        let what = "with a Service as the target nobody knows what a copied request would do behind it";
        case.error(&format!("/spec/phases/{i}/expose/mirror"), Code::RouterLimit, what, "a weight, or headers")
    })
}

fn alias_behind_a_gateway(case: &Case<'_>, target: &Item) -> Option<Diagnostic> {
    let gateway = case.spec.traffic.as_ref()?.gateway_api.as_ref();
    (target.object.text("/spec/type") == Some("ExternalName") && gateway.is_some()).then(|| {
        let what = "many implementations of the Gateway API refuse a backend of the type ExternalName";
        let expected = "one of which you know that it takes them, or traffic: {istio: …}";
        target.error("/spec/type", Code::RouterLimit, what, expected)
    })
}
