//! Rollouts for applications that have none yet: from their manifests, or from what is live of them.

use super::draft::{Draft, Imported, Phase, Promotion, Providers, approval};
use super::input::{Document, Input};
use super::router::{ROUTES, Router};
use super::{Tool, merge};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tidegate_controller::manifest::object::Kind;

/// How long the new version stays with some users at first, in seconds.
const SOAK: u64 = 300;

/// A rollout for each Deployment.
pub(super) fn import(input: &Input) -> Imported {
    let deployments = input.documents.iter().filter(|document| document.manifest() == Some(Kind::Deployment));
    let mut drafts: Vec<Draft> = deployments.map(|deployment| draft(deployment, input)).collect();
    let mut seen = BTreeSet::new();
    drafts.iter_mut().for_each(|draft| draft.tell_apart(&mut seen));
    merge(input, Tool::Bare, &drafts, Providers::default(), Vec::new())
}

fn draft(deployment: &Document, input: &Input) -> Draft {
    let mut draft = Draft { target: deployment.name.clone(), ..Draft::of(deployment) };
    draft.refers.push((Kind::Deployment, deployment.name.clone(), "the target"));
    draft.promotion = Promotion { before: approval().into_iter().collect(), ..Promotion::default() };
    let near = || input.documents.iter().filter(|other| other.namespace == deployment.namespace);
    let Some(service) = near().find(|other| other.manifest() == Some(Kind::Service) && selects(other, deployment))
    else {
        // Nothing leads to it that could be split.
        return draft;
    };
    draft.refers.push((Kind::Service, service.name.clone(), "what leads to the target"));
    let route = near().find_map(|other| Some((other, router(other, &service.name)?)));
    let phase = |wish: &str, key: &str, value: Value| Phase { soak: SOAK, ..Phase::of(wish, key, value) };
    (draft.traffic, draft.phases) = match route {
        Some((route, (kind, traffic))) => {
            draft.refers.push((kind, route.name.clone(), "what splits the requests"));
            (traffic, vec![phase("tenth", "weight", 10.into()), phase("half", "weight", 50.into())])
        }
        None => (Router::Service.traffic("", &service.name), vec![phase("preview", "preview", "fullSize".into())]),
    };
    draft
}

/// Whether a Service asks for the pods of a Deployment.
fn selects(service: &Document, deployment: &Document) -> bool {
    let labels = deployment.spec("template/metadata/labels");
    let asked = service.spec("selector").entries();
    !asked.is_empty() && asked.iter().all(|(key, value)| value.words() == labels.get(key).words())
}

/// How requests are split by a route that names the Service.
fn router(route: &Document, service: &str) -> Option<(Kind, Value)> {
    let mut routes = ROUTES.into_iter().filter(|(kind, ..)| *kind != Kind::TraefikService);
    let (kind, router, key, rules, below, name) = routes.find(|(kind, ..)| Some(*kind) == route.manifest())?;
    if kind == Kind::Ingress && route.spec("ingressClassName").text() != Some("nginx") {
        return None;
    }
    let rules = route.at(rules).items();
    let mut backends = rules.iter().flat_map(|rule| rule.at(below).items());
    let named = backends.any(|backend| backend.at(name).text() == Some(service));
    named.then(|| (kind, json!({router: {key: route.name, "service": service}})))
}
