//! What users reach of a candidate, read from API objects without any help of the code under test.

use super::{Watched, routes};
use serde_json::Value;
use std::collections::BTreeMap;
use tidegate::manifest::desired::{HeaderMatch, HeaderValue, Router, UnitKind};
use tidegate::manifest::ids::{ObjectName, Percent};
use tidegate::manifest::object::PODS;
use tidegate::record::posture::Split;

/// A write to one object, as the API server answered it.
#[derive(Debug, Clone)]
pub(crate) enum Write {
    /// The object as it is now.
    Is { resource: String, name: String, object: Value },
    /// Its `spec.replicas`, written through the subresource `scale`.
    Scaled { name: String, replicas: Value },
    /// It is gone.
    Gone { resource: String, name: String },
}

impl Write {
    /// Resource and name, for people.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Is { resource, name, .. } | Self::Gone { resource, name } => format!("{resource}/{name}"),
            Self::Scaled { name, .. } => format!("deployments/{name}"),
        }
    }
}

/// An object's relevant part, and who changed that last.
#[derive(Debug, Clone)]
struct Held {
    spec: Value,
    by: String,
}

/// The objects of one rollout.
#[derive(Debug, Clone, Default)]
pub(super) struct Live {
    held: BTreeMap<(Part, String), Held>,
    stable: String,
    candidate: String,
    /// Where the target is a Service: whether stable's was led where the candidate's leads. Versions may lead to the same pods from
    /// the beginning, and differ by a port.
    led: bool,
    daemons: Daemons,
}

/// What is known of a DaemonSet's pods: its controller makes them, which nobody logs.
#[derive(Debug, Clone, Default)]
struct Daemons {
    /// How many nodes have one.
    nodes: u64,
    /// The version label of its template while Kubernetes replaces pods by itself: no run is open.
    rest: Option<String>,
    /// Pods that were deleted since, and came back of another version.
    moved: u64,
}

/// The kinds that decide what users reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Deployment,
    StatefulSet,
    DaemonSet,
    Pod,
    Service,
    Route,
}

/// What users reach of the candidate.
pub(super) struct Reach {
    /// The object that decides it.
    pub(super) object: String,
    /// Who wrote that last.
    pub(super) by: String,
    /// The requests.
    pub(super) split: Split,
    /// The pods of the candidate.
    pub(super) pods: u32,
}

impl Live {
    /// Takes a write over; false if it concerns none of the rollout's objects.
    pub(super) fn take(&mut self, watched: &Watched, by: &str, write: &Write) -> bool {
        self.stable = watched.stable.as_str().to_owned();
        self.candidate = watched.candidate.as_str().to_owned();
        let (part, name, spec) = match write {
            Write::Is { resource, name, object } => match self.part(watched, resource, name) {
                Some(part) => (part, name, Some(relevant(resource, object))),
                None => return false,
            },
            Write::Gone { resource, name } => match self.part(watched, resource, name) {
                Some(part) => (part, name, None),
                None => return false,
            },
            Write::Scaled { name, replicas } => {
                let Some(held) = self.held.get(&(Part::Deployment, name.clone())) else { return false };
                let mut spec = held.spec.clone();
                spec["replicas"] = replicas.clone();
                (Part::Deployment, name, Some(spec))
            }
        };
        if let Write::Is { object, .. } = write
            && part == Part::DaemonSet
        {
            self.daemons.nodes = object["status"]["desiredNumberScheduled"].as_u64().unwrap_or(self.daemons.nodes);
            if object["spec"]["updateStrategy"]["type"] != "OnDelete" {
                self.daemons.rest = label(&object["spec"]).map(str::to_owned);
                self.daemons.moved = 0;
            }
        } else if part == Part::Pod {
            let held = self.find(Part::DaemonSet, &self.stable).map(|set| label(&set.spec).map(str::to_owned));
            let new = held.is_some_and(|label| label != self.daemons.rest);
            self.daemons.moved = if new { self.daemons.moved + 1 } else { self.daemons.moved.saturating_sub(1) };
            return true;
        }
        if part == Part::Service {
            self.see_led(watched, name, spec.as_ref());
        }
        let key = (part, name.clone());
        match spec {
            None => drop(self.held.remove(&key)),
            // Controllers write annotations and finalizers too: only a change of the spec makes someone its author.
            Some(spec) if self.held.get(&key).is_some_and(|held| held.spec == spec) => {}
            Some(spec) => drop(self.held.insert(key, Held { spec, by: by.to_owned() })),
        }
        true
    }

    fn part(&self, watched: &Watched, resource: &str, name: &str) -> Option<Part> {
        let service = watched.router.as_ref().and_then(|r| r.service()).map(ObjectName::as_str);
        match (resource, watched.router.as_ref()) {
            ("deployments", _) if name == self.stable || name == self.candidate => Some(Part::Deployment),
            ("statefulsets", Some(Router::Units(UnitKind::StatefulSet))) if name == self.stable => {
                Some(Part::StatefulSet)
            }
            ("daemonsets", Some(Router::Units(UnitKind::DaemonSet))) if name == self.stable => Some(Part::DaemonSet),
            ("pods", Some(Router::Units(UnitKind::DaemonSet))) if name.starts_with(&format!("{}-", self.stable)) => {
                Some(Part::Pod)
            }
            ("services", Some(_)) if Some(name) == service || Some(name) == watched.copy().as_deref() => {
                Some(Part::Service)
            }
            ("httproutes", Some(Router::GatewayApi { http_route: route, .. }))
            | ("grpcroutes", Some(Router::Grpc { grpc_route: route, .. }))
                if name == route.as_str() =>
            {
                Some(Part::Route)
            }
            ("virtualservices", Some(Router::Istio { virtual_service, .. })) if name == virtual_service.as_str() => {
                Some(Part::Route)
            }
            ("ingresses", Some(Router::Nginx { ingress, .. })) if name == format!("{ingress}-canary") => {
                Some(Part::Route)
            }
            ("traefikservices", Some(Router::Traefik { traefik_service: route, .. }))
            | ("ingressroutes", Some(Router::IngressRoute { ingress_route: route, .. }))
            | ("httpproxies", Some(Router::Contour { http_proxy: route, .. }))
            | ("routetables", Some(Router::Gloo { route_table: route, .. }))
                if name == route.as_str() =>
            {
                Some(Part::Route)
            }
            _ => None,
        }
    }

    fn find(&self, part: Part, name: &str) -> Option<&Held> {
        self.held.get(&(part, name.to_owned()))
    }

    /// How many pods the candidate has.
    pub(super) fn candidate_pods(&self) -> u32 {
        let candidate = self.find(Part::Deployment, &self.candidate);
        candidate.and_then(|c| c.spec["replicas"].as_u64()).map_or(0, |n| u32::try_from(n).unwrap_or(u32::MAX))
    }

    /// The version label of the candidate's pods.
    pub(super) fn candidate_label(&self) -> Option<&str> {
        self.find(Part::Deployment, &self.candidate).and_then(|c| label(&c.spec))
    }

    /// The version label of the stable pods, and who wrote that template; none while there is no stable Deployment.
    pub(super) fn stable_label(&self) -> Option<(Option<&str>, String)> {
        self.find(Part::Deployment, &self.stable).map(|s| (label(&s.spec), s.by.clone()))
    }

    /// The spec of the stable pods.
    pub(super) fn stable_template(&self) -> Option<&Value> {
        self.find(Part::Deployment, &self.stable).map(|s| &s.spec["template"]["spec"])
    }

    /// What users reach of the candidate; none while nothing leads to it.
    pub(super) fn reach(&self, watched: &Watched) -> Option<Reach> {
        let router = watched.router.as_ref()?;
        let pods = self.candidate_pods();
        let service = router.service().and_then(|service| self.find(Part::Service, service.as_str()));
        let selected = service.filter(|s| pods > 0 && self.selects_candidate(&s.spec["selector"]));
        let reach = |object: String, held: &Held, split| Some(Reach { object, by: held.by.clone(), split, pods });
        let all = Split { weight: Percent::ALL, ..Split::default() };
        if let (Some(_), Some(service), Some(held)) = (router.route(), router.service(), selected) {
            return reach(format!("Service {service}, which selects the candidate's pods,"), held, all);
        }
        if let (Some(name), Some(held)) = (router.service(), service.filter(|_| self.led && self.is_of_a_service())) {
            return reach(format!("Service {name}, which leads where the candidate's does,"), held, all);
        }
        match router {
            Router::GatewayApi { http_route: route, service: name }
            | Router::Grpc { grpc_route: route, service: name } => {
                let kind = router.route().map_or("", |(kind, _)| kind.as_str());
                let held = self.find(Part::Route, route.as_str())?;
                let canary = watched.copy().unwrap_or_default();
                reach(format!("{kind} {route}"), held, route_split(&held.spec, name.as_str(), &canary))
            }
            Router::Units(UnitKind::StatefulSet) => self.reach_by_partition(),
            Router::Units(UnitKind::DaemonSet) => self.reach_by_deletion(),
            // No request reaches a node; the worlds of this checker have no rollout of them.
            Router::Units(UnitKind::Node) => None,
            Router::Istio { virtual_service, service: name } => {
                let route = self.find(Part::Route, virtual_service.as_str())?;
                let split = routes::virtual_service(&route.spec, name.as_str());
                reach(format!("VirtualService {virtual_service}"), route, split)
            }
            Router::Nginx { ingress, .. } => {
                let canary = format!("{ingress}-canary");
                let held = self.find(Part::Route, &canary)?;
                reach(format!("Ingress {canary}"), held, routes::canary_ingress(&held.spec))
            }
            Router::Traefik { traefik_service, service: name } => {
                let route = self.find(Part::Route, traefik_service.as_str())?;
                let split = routes::traefik_service(&route.spec, name.as_str());
                reach(format!("TraefikService {traefik_service}"), route, split)
            }
            Router::IngressRoute { ingress_route, service: name } => {
                let route = self.find(Part::Route, ingress_route.as_str())?;
                let split = routes::ingress_route(&route.spec, name.as_str());
                reach(format!("IngressRoute {ingress_route}"), route, split)
            }
            Router::Contour { http_proxy: route, service: name }
            | Router::Gloo { route_table: route, service: name } => {
                let held = self.find(Part::Route, route.as_str())?;
                reach(carrier(router), held, delegated(router)(&held.spec, name.as_str()))
            }
            Router::Service { service: name } => reach(format!("Service {name}"), selected?, all),
            Router::Replicas { service: name } => {
                let asks = service.filter(|s| s.spec["selector"][PODS].as_str().is_some());
                if let Some(service) = asks.filter(|s| s.spec["selector"][PODS].as_str() == self.candidate_label()) {
                    return reach(format!("Service {name}"), service, all);
                }
                let candidate = self.find(Part::Deployment, &self.candidate)?;
                let counted = if asks.is_none() { pods } else { 0 };
                let reach = reach(format!("Deployment {}", self.candidate), candidate, Split::stable());
                reach.map(|r| Reach { pods: counted, ..r })
            }
        }
    }

    /// What a StatefulSet makes of the candidate from its partition on.
    fn reach_by_partition(&self) -> Option<Reach> {
        let set = self.find(Part::StatefulSet, &self.stable)?;
        let number = |value: &Value, or: u64| u32::try_from(value.as_u64().unwrap_or(or)).unwrap_or(u32::MAX);
        let replicas = number(&set.spec["replicas"], 1);
        let partition = number(&set.spec["updateStrategy"]["rollingUpdate"]["partition"], 0);
        let open = replicas.saturating_sub(partition);
        let share = (open * 100).div_ceil(replicas.max(1));
        let weight = u8::try_from(share).ok().and_then(|w| Percent::try_from(w).ok()).unwrap_or(Percent::ALL);
        let split = Split { weight, ..Split::default() };
        Some(Reach { object: format!("StatefulSet {}", self.stable), by: set.by.clone(), split, pods: open })
    }

    /// What a DaemonSet has made of the candidate since pods were deleted.
    fn reach_by_deletion(&self) -> Option<Reach> {
        let set = self.find(Part::DaemonSet, &self.stable)?;
        let Daemons { nodes, moved, .. } = self.daemons;
        let weight = if moved == 0 { Percent::ZERO } else { share(moved, nodes.saturating_sub(moved)) };
        let (split, pods) = (Split { weight, ..Split::default() }, u32::try_from(moved).unwrap_or(u32::MAX));
        Some(Reach { object: format!("DaemonSet {}", self.stable), by: set.by.clone(), split, pods })
    }

    /// The version label of the pods that a workload of both versions makes from its partition on.
    pub(super) fn shared_label(&self) -> Option<&str> {
        self.find(Part::StatefulSet, &self.stable).and_then(|set| label(&set.spec))
    }

    /// Whether there is a Service and no Deployment: then it is what is rolled out, and no label tells its versions apart.
    pub(super) fn is_of_a_service(&self) -> bool {
        let is = |part: Part| self.held.keys().any(|(held, _)| *held == part);
        is(Part::Service) && !is(Part::Deployment)
    }

    /// Takes note of what a Service is to become.
    fn see_led(&mut self, watched: &Watched, name: &str, spec: Option<&Value>) {
        let copy = watched.copy().unwrap_or_default();
        let to = spec.and_then(leads_to);
        let before = self.find(Part::Service, name).and_then(|held| leads_to(&held.spec));
        if before != to {
            let copied = self.find(Part::Service, &copy).and_then(|held| leads_to(&held.spec));
            self.led = name != copy && to.is_some() && to == copied;
        }
    }

    fn selects_candidate(&self, selector: &Value) -> bool {
        let Some(candidate) = self.find(Part::Deployment, &self.candidate) else { return false };
        let labels = &candidate.spec["template"]["metadata"]["labels"];
        let wanted = selector.as_object().filter(|s| !s.is_empty());
        wanted.is_some_and(|s| s.iter().all(|(key, value)| labels[key] == *value))
    }
}

/// Where a Service leads: to which pods, or to which name; none if nowhere.
fn leads_to(service: &Value) -> Option<[&Value; 2]> {
    let (selector, name) = (&service["selector"], &service["externalName"]);
    let somewhere = selector.as_object().is_some_and(|labels| !labels.is_empty()) || name.is_string();
    somewhere.then_some([selector, name])
}

/// What of an object decides it: the share of a canary Ingress stands in its annotations.
fn relevant(resource: &str, object: &Value) -> Value {
    let part = if resource == "ingresses" { &object["metadata"]["annotations"] } else { &object["spec"] };
    let mut part = part.clone();
    if let Some(annotations) = part.as_object_mut().filter(|_| resource == "ingresses") {
        annotations.retain(|key, _| key.starts_with("nginx."));
    }
    part
}

fn label(deployment: &Value) -> Option<&str> {
    deployment["template"]["metadata"]["labels"][PODS].as_str()
}

/// The object that leads requests.
fn carrier(router: &Router) -> String {
    router.route().map(|(kind, name)| format!("{kind} {name}")).unwrap_or_default()
}

/// How a route is read that operations delegate.
fn delegated(router: &Router) -> fn(&Value, &str) -> Split {
    if matches!(router, Router::Gloo { .. }) { routes::route_table } else { routes::http_proxy }
}

/// What an HTTPRoute or a GRPCRoute sends to `canary`: the largest share of any rule that names both, and the headers of rules
/// that name it alone. What cannot be read as less counts as everything.
fn route_split(spec: &Value, service: &str, canary: &str) -> Split {
    let mut split = Split::default();
    for rule in spec["rules"].as_array().into_iter().flatten() {
        let backends = rule["backendRefs"].as_array().map_or(&[][..], Vec::as_slice);
        let weight = |name: &str| -> u64 {
            let named = backends.iter().filter(|b| b["name"] == name);
            named.map(|b| b["weight"].as_u64().unwrap_or(1)).sum()
        };
        let (stable, new) = (weight(service), weight(canary));
        for filter in rule["filters"].as_array().into_iter().flatten() {
            if filter.to_string().contains(&format!("\"{canary}\"")) {
                let percent = filter["requestMirror"]["percent"].as_u64().and_then(|p| u8::try_from(p).ok());
                split.mirror =
                    split.mirror.max(percent.and_then(|p| Percent::try_from(p).ok()).unwrap_or(Percent::ALL));
            }
        }
        if new == 0 {
            continue;
        }
        let alternatives = alternatives(rule);
        match alternatives {
            Some(headers) if !backends.iter().any(|b| b["name"] == service) => split.headers.extend(headers),
            _ => split.weight = split.weight.max(share(new, stable)),
        }
    }
    split
}

/// `new` of `new + stable` in percent, rounded up.
pub(super) fn share(new: u64, stable: u64) -> Percent {
    let percent = (new * 100).div_ceil(new + stable);
    u8::try_from(percent).ok().and_then(|p| Percent::try_from(p).ok()).unwrap_or(Percent::ALL)
}

/// The headers that each match of a rule asks for; none if some match asks for none.
fn alternatives(rule: &Value) -> Option<Vec<HeaderMatch>> {
    let matches = rule["matches"].as_array().filter(|m| !m.is_empty())?;
    let headers = |m: &Value| -> Option<HeaderMatch> {
        let headers = m["headers"].as_array().filter(|h| !h.is_empty())?;
        let asked = |h: &Value| {
            let value = h["value"].as_str()?.to_owned();
            let value = match h["type"].as_str().unwrap_or("Exact") {
                "Exact" => HeaderValue::Exact(value),
                "RegularExpression" => HeaderValue::Regex { regex: value },
                _ => return None,
            };
            Some((h["name"].as_str()?.to_lowercase(), value))
        };
        let asked: HeaderMatch = headers.iter().filter_map(asked).collect();
        (!asked.is_empty()).then_some(asked)
    };
    matches.iter().map(headers).collect()
}
