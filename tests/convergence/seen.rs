//! What was seen of one rollout, and why a change of it must not have been.

use crate::check::TIDEGATE;
use crate::promise::{Event, Watched};
use crate::routes::Backend;
use crate::story::{Part, Router};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use tidegate::manifest::desired::{self, Layout};
use tidegate::manifest::ids::RolloutId;
use tidegate::manifest::object::{PODS, SEQ};
use tidegate::record::state::{Phase, RolloutState};

/// One rollout.
pub(crate) struct Seen {
    pub(crate) part: Part,
    pub(crate) id: RolloutId,
    pub(crate) watched: Watched,
    pub(crate) events: Vec<Event>,
    pub(crate) objects: BTreeMap<(&'static str, String), Arc<Value>>,
    pub(crate) blob: Option<git2::Oid>,
    /// Once it is at rest for the first time.
    pub(crate) began: bool,
    /// Whether a hand has changed what is live.
    pub(crate) touched: bool,
}

/// A change of one object.
pub(crate) struct Change {
    pub(crate) plural: &'static str,
    pub(crate) name: String,
    pub(crate) before: Option<Arc<Value>>,
    pub(crate) after: Option<Arc<Value>>,
}

impl Seen {
    pub(crate) fn new(part: &Part) -> Self {
        let name = part.shape.name;
        let service = name.parse().unwrap();
        let (stable, candidate) = (part.shape.stable().parse().unwrap(), part.shape.candidate().parse().unwrap());
        let router = match part.shape.router {
            Router::Route => desired::Router::GatewayApi { http_route: name.parse().unwrap(), service },
            Router::Mesh => desired::Router::Istio { virtual_service: name.parse().unwrap(), service },
            Router::Ingress => desired::Router::Nginx { ingress: name.parse().unwrap(), service },
            Router::Set => desired::Router::Partition,
            Router::Pods => desired::Router::Replicas { service },
            Router::Service => desired::Router::Service { service },
        };
        let id: RolloutId = format!("shop/{name}").parse().unwrap();
        let cluster = "home".parse().unwrap();
        let (rollout, user) = (id.clone(), TIDEGATE.to_owned());
        let watched = Watched { rollout, cluster, stable, candidate, router: Some(router), service: None, user };
        let (events, objects) = (Vec::new(), BTreeMap::new());
        Self { part: part.clone(), id, watched, events, objects, blob: None, began: false, touched: false }
    }

    fn get(&self, plural: &'static str, name: &str) -> Option<&Arc<Value>> {
        self.objects.get(&(plural, name.to_owned()))
    }

    fn stable(&self) -> Option<&Arc<Value>> {
        let plural = if self.part.shape.router == Router::Set { "statefulsets" } else { "deployments" };
        self.get(plural, &self.part.shape.stable())
    }

    fn candidate(&self) -> Option<&Arc<Value>> {
        self.get("deployments", &self.part.shape.candidate())
    }

    fn route(&self) -> Option<&Arc<Value>> {
        let (plural, name) = self.part.shape.router.route(self.part.shape.name)?;
        self.get(plural, &name)
    }

    /// Whether the candidate is as it is without a run: not there, or without pods. Of pods that are no copies all are of one
    /// version then.
    pub(crate) fn candidate_rests(&self) -> bool {
        if self.part.shape.router == Router::Set {
            let open =
                |set: &Arc<Value>| set["spec"]["updateStrategy"]["rollingUpdate"]["partition"].as_u64().unwrap_or(0);
            return self
                .stable()
                .is_some_and(|set| open(set) == 0 && set["status"]["readyReplicas"] == set["spec"]["replicas"]);
        }
        match (self.part.shape.layout, self.candidate()) {
            (Layout::InPlace | Layout::Versioned, candidate) => candidate.is_none(),
            (Layout::Primary, candidate) => candidate.is_some_and(|target| target["spec"]["replicas"] == 0),
        }
    }

    pub(crate) fn image(&self) -> &str {
        self.stable().map_or("", |stable| {
            stable["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap_or_default()
        })
    }

    pub(crate) fn pods(&self) -> u64 {
        self.stable().map_or(0, |stable| stable["spec"]["replicas"].as_u64().unwrap_or(0))
    }

    /// The candidate's share in percent, as the route or the Service says.
    pub(crate) fn weight(&self) -> u64 {
        let name = self.part.shape.name;
        match self.part.shape.router {
            Router::Route | Router::Mesh | Router::Ingress => self.route().map_or(0, |route| self.share(route)),
            Router::Set => 0,
            Router::Pods | Router::Service => {
                let alone = self.get("services", name).is_some_and(|service| self.leads_to_candidate(service));
                if alone { 100 } else { 0 }
            }
        }
    }

    /// Whether a Service asks for the candidate's pods alone.
    fn leads_to_candidate(&self, service: &Value) -> bool {
        let selector = &service["spec"]["selector"];
        match self.part.shape.router {
            Router::Route | Router::Mesh | Router::Ingress | Router::Set => false,
            Router::Pods => selector[PODS].is_string(),
            Router::Service => selector["app"] == format!("{}-canary", self.part.shape.name),
        }
    }

    /// Whether anything leads to the candidate.
    fn names_candidate(&self) -> bool {
        let canary = format!("{}-canary", self.part.shape.name);
        let named =
            |route: &Arc<Value>| self.backends(route).iter().any(|found| found.to == canary && found.weight > 0);
        self.weight() > 0 || self.route().is_some_and(named)
    }

    fn backends(&self, route: &Value) -> Vec<Backend> {
        self.part.shape.router.backends(self.part.shape.name, route)
    }

    /// The candidate's share of the requests that no header tells apart, in percent.
    fn share(&self, route: &Value) -> u64 {
        let canary = format!("{}-canary", self.part.shape.name);
        let backends = self.backends(route);
        let plain = || backends.iter().filter(|found| !found.alone);
        let all: u64 = plain().map(|found| found.weight).sum();
        let new: u64 = plain().filter(|found| found.to == canary).map(|found| found.weight).sum();
        if all == 0 { 0 } else { (new * 100).div_ceil(all) }
    }

    /// Why a controller must not have written that.
    pub(crate) fn unfit(&self, change: &Change, record: Option<&RolloutState>) -> Option<(&'static str, String)> {
        let what = format!("{}/{}", change.plural, change.name);
        if self.began && self.part.chapters.is_empty() {
            return Some(("who is not touched is left alone", what));
        }
        let is_route = self.part.shape.router.route(self.part.shape.name) == Some((change.plural, change.name.clone()));
        let candidate = match change.plural {
            "deployments" => change.name == self.part.shape.candidate(),
            _ => change.name.ends_with("-canary"),
        };
        let Some(after) = &change.after else {
            let gone = candidate && !is_route && self.names_candidate();
            return gone.then(|| ("no weight names a set that is not there", format!("{what} was deleted")));
        };
        let before = change.before.as_ref();
        // Nothing can be asked to be absent: a create that comes late meets what is there, and makes it a candidate of no pods.
        let made = self.part.shape.layout == Layout::InPlace && candidate;
        let create = made
            && (change.plural == "services" || after["spec"]["replicas"] == 0 || is_route && self.share(after) == 0);
        if let (Some(old), Some(new)) = (before.and_then(|object| seq(object)), seq(after))
            && new < old
            && !create
        {
            return Some(("old plans die", format!("{what} was written under record {new} after {old}")));
        }
        match (change.plural, candidate) {
            _ if is_route => self.misled(before, after),
            ("deployments", false) => self.overwritten(before, after, record),
            ("services", false) => {
                let news =
                    self.leads_to_candidate(after) && !before.is_some_and(|before| self.leads_to_candidate(before));
                let ready = ready(self.candidate());
                (news && ready == 0)
                    .then(|| ("weights name ready pods only", format!("{what} asks for pods of which none is ready")))
            }
            _ => None,
        }
    }

    /// A route that sends requests where nobody answers.
    fn misled(&self, before: Option<&Arc<Value>>, after: &Arc<Value>) -> Option<(&'static str, String)> {
        let name = self.part.shape.name;
        let (was, is) = (before.map_or(0, |before| self.share(before)), self.share(after));
        let canary = format!("{name}-canary");
        let backends = self.backends(after);
        let sum: u64 = backends.iter().filter(|found| !found.alone).map(|found| found.weight).sum();
        if backends.iter().any(|found| found.to == canary) && sum != 100 {
            return Some(("weights sum to 100", format!("those of {name} sum to {sum}")));
        }
        let named = |route: &Value| self.backends(route).iter().any(|found| found.to == canary && found.weight > 0);
        let raised = is > was || (named(after) && !before.is_some_and(|before| named(before)));
        let wanted = (self.pods() * is).div_ceil(100).max(1);
        let there = ready(self.candidate());
        if raised && there < wanted && !self.touched {
            let what = format!("{name} goes from {was} to {is} with {there} of {wanted} ready");
            return Some(("weights name ready pods only", what));
        }
        let lost = is < was && ready(self.stable()) == 0 && there > 0;
        lost.then(|| ("weights name ready pods only", format!("{name} goes back to a stable that has none")))
    }

    /// A stable that is overwritten too early, or by what failed.
    fn overwritten(
        &self,
        before: Option<&Arc<Value>>,
        after: &Arc<Value>,
        record: Option<&RolloutState>,
    ) -> Option<(&'static str, String)> {
        let template = |object: &Arc<Value>| object["spec"]["template"]["spec"].clone();
        before.filter(|before| template(before) != template(after))?;
        let (name, image) = (self.part.shape.name, &after["spec"]["template"]["spec"]["containers"][0]["image"]);
        let failed = image.as_str().is_some_and(|image| image.ends_with("-errors") || image.ends_with("-crash"));
        if failed {
            return Some(("what fails is not promoted", format!("{name} becomes {image}")));
        }
        let going = record.is_some_and(|record| matches!(record.phase, Phase::Promoting(_) | Phase::Finalising(_)));
        let weight = self.weight();
        (going && weight != 100).then(|| {
            ("stable is overwritten once nothing leads to it", format!("{name} becomes {image} at weight {weight}"))
        })
    }
}

/// The record that an object was written under last.
pub(crate) fn seq(object: &Value) -> Option<u64> {
    object["metadata"]["annotations"][SEQ].as_str()?.parse().ok()
}

fn ready(deployment: Option<&Arc<Value>>) -> u64 {
    deployment.map_or(0, |deployment| deployment["status"]["readyReplicas"].as_u64().unwrap_or(0))
}
