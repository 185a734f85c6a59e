//! Rollouts for applications that have none yet: from their manifests, or from what is live of them.

use super::draft::{Draft, Imported, Phase, Promotion, Providers};
use super::input::{Document, Field, Input};
use super::merge;
use serde_json::{Map, Value, json};
use tidegate_controller::manifest::object::Kind;

/// How long the new version stays with some users at first, in seconds.
const SOAK: u64 = 300;

/// A rollout for each Deployment.
pub(super) fn import(input: &Input) -> Imported {
    let deployments = input.documents.iter().filter(|document| document.manifest() == Some(Kind::Deployment));
    let drafts = deployments.map(|deployment| draft(deployment, input)).collect();
    merge(input, None, drafts, Providers::default(), Vec::new())
}

fn draft(deployment: &Document, input: &Input) -> Draft {
    let mut draft = Draft { target: deployment.name.clone(), ..Draft::of(deployment) };
    draft.refers.push((Kind::Deployment, deployment.name.clone(), "the target"));
    let near = || input.documents.iter().filter(|other| other.namespace == deployment.namespace);
    let gate = || Map::from_iter([("approval".to_owned(), "pullRequest".into())]);
    draft.promotion = Promotion { before: gate(), ..Promotion::default() };
    let Some(service) = near().find(|other| other.manifest() == Some(Kind::Service) && selects(other, deployment))
    else {
        // Nothing leads to it that could be split.
        return draft;
    };
    draft.refers.push((Kind::Service, service.name.clone(), "what leads to the target"));
    let route = near().find_map(|other| Some((other, router(other, &service.name)?)));
    let phase = |wish: &str, key: &str, value: Value| Phase {
        wish: wish.to_owned(),
        expose: Map::from_iter([(key.to_owned(), value)]),
        soak: SOAK,
        ..Phase::default()
    };
    (draft.traffic, draft.phases) = match route {
        Some((route, (kind, traffic))) => {
            draft.refers.push((kind, route.name.clone(), "what splits the requests"));
            (traffic, vec![phase("tenth", "weight", 10.into()), phase("half", "weight", 50.into())])
        }
        None => (json!({"service": service.name}), vec![phase("preview", "preview", "fullSize".into())]),
    };
    draft
}

/// Whether a Service asks for the pods of a Deployment.
fn selects(service: &Document, deployment: &Document) -> bool {
    let labels = deployment.at("/spec/template/metadata/labels");
    let asked = service.at("/spec/selector").entries();
    !asked.is_empty() && asked.iter().all(|(key, value)| value.words() == labels.get(key).words())
}

/// A kind of route: how a rollout's file calls the router and the route, where its rules stand, and in each of them its backends.
type Route = (Kind, &'static str, &'static str, &'static str, &'static [&'static str]);

const ROUTES: [Route; 4] = [
    (Kind::HttpRoute, "gatewayAPI", "httpRoute", "/spec/rules", &["backendRefs"]),
    (Kind::GrpcRoute, "gatewayAPI", "grpcRoute", "/spec/rules", &["backendRefs"]),
    (Kind::VirtualService, "istio", "virtualService", "/spec/http", &["route"]),
    (Kind::Ingress, "nginx", "ingress", "/spec/rules", &["http", "paths"]),
];

/// How requests are split by a route that names the Service.
fn router(route: &Document, service: &str) -> Option<(Kind, Value)> {
    let found = route.manifest()?;
    let (kind, router, key, rules, below) = ROUTES.into_iter().find(|(kind, ..)| *kind == found)?;
    if kind == Kind::Ingress && route.at("/spec/ingressClassName").text() != Some("nginx") {
        return None;
    }
    let rules = route.at(rules).items();
    let backends = rules.iter().flat_map(|rule| below.iter().fold(rule.clone(), |at, key| at.get(key)).items());
    let named = backends.flat_map(|backend| names(&backend)).any(|name| name.text() == Some(service));
    named.then(|| (kind, json!({router: {key: route.name, "service": service}})))
}

/// Where a backend may name its Service.
fn names<'a>(backend: &Field<'a>) -> [Field<'a>; 3] {
    let service = backend.get("backend").get("service");
    [backend.get("name"), backend.get("destination").get("host"), service.get("name")]
}
