//! Measurements of the world in a process: what its Deployments would be measured at.

use super::kube_api::World;
use super::kube_api::resource::Resource;
use futures::future::{BoxFuture, ready};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use tidegate_controller::analysis::judge::Range;
use tidegate_controller::analysis::provider::Measures;
use tidegate_controller::analysis::reading::{Reading, Samples};
use tidegate_controller::manifest::object::at;
use tidegate_controller::manifest::promql::Query;
use tidegate_controller::record::state::Time;

/// The share of requests that a version fails whose image's tag ends in `-errors`.
const BAD: f64 = 0.25;

/// Answers the success rate of the metrics of Istio, ingress-nginx and Traefik, and `errors{namespace="…",deployment="…"}`: the share of that Deployment's requests
/// that fail; the same of those pods of a StatefulSet or DaemonSet that have this label `tidegate.io/pods`:
/// `errors{namespace="…",workload="…",tidegate_io_pods="…"}`. Of what has no ready pod, and of what is not there, there is nothing
/// to be measured.
#[derive(Default)]
pub struct SimulatedMetrics {
    /// By Deployment, and by what [`pods`] names.
    history: Mutex<BTreeMap<String, Rates>>,
}

/// The rate from a time on; none while nothing is measured.
type Rates = BTreeMap<Time, Option<f64>>;

impl SimulatedMetrics {
    /// Takes note of the world as it is now.
    pub fn sample(&self, world: &World) {
        let Some(deployments) = Resource::of_kind("apps/v1", "Deployment") else { return };
        let mut rates = pods(world);
        for deployment in world.list(deployments, "") {
            let text = |pointer: &str| at(deployment, pointer).and_then(Value::as_str).unwrap_or_default();
            let name = format!("{}/{}", text("/metadata/namespace"), text("/metadata/name"));
            let ready = deployment["status"]["readyReplicas"].as_i64().unwrap_or(0) > 0;
            rates.insert(name, ready.then(|| failing(text("/spec/template/spec/containers/0/image"))));
        }
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        for name in history.keys().filter(|name| !rates.contains_key(*name)).cloned().collect::<Vec<_>>() {
            rates.insert(name, None);
        }
        for (name, rate) in rates {
            let known = history.entry(name).or_default();
            if known.last_key_value().is_none_or(|(_, last)| *last != rate) {
                known.insert(world.now(), rate);
            }
        }
    }

    fn answer(&self, range: &Range) -> Reading<Samples> {
        let history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((name, value)) = measured(&range.query).or_else(|| behind(&range.query, history.keys())) else {
            return Reading::Unusable(
                "the world measures errors{namespace=…, deployment=…} and nothing else".to_owned(),
            );
        };
        let Some(known) = history.get(&name) else { return Reading::Said(BTreeMap::new()) };
        let (mut at, mut samples) = (range.from, BTreeMap::new());
        while at <= range.until {
            if let Some((_, Some(rate))) = known.range(..=at).next_back() {
                samples.insert(at, value(*rate));
            }
            at += range.interval.delta();
        }
        Reading::Said(samples)
    }
}

/// The share of requests that pods of an image fail.
fn failing(image: &str) -> f64 {
    if image.ends_with("-errors") { BAD } else { 0.0 }
}

/// The rates of the pods of workloads that both versions share, by their label.
fn pods(world: &World) -> BTreeMap<String, Option<f64>> {
    let mut rates = BTreeMap::new();
    let pods = Resource::of_kind("v1", "Pod").into_iter().flat_map(|pods| world.list(pods, ""));
    for pod in pods {
        let text = |pointer: &str| at(pod, pointer).and_then(Value::as_str).unwrap_or_default();
        if !matches!(text("/metadata/ownerReferences/0/kind"), "StatefulSet" | "DaemonSet") {
            continue;
        }
        let (namespace, workload) = (text("/metadata/namespace"), text("/metadata/ownerReferences/0/name"));
        let name = format!("{namespace}/{workload}/{}", text("/metadata/labels/tidegate.io~1pods"));
        let is_ready = |said: &Value| said["type"] == "Ready" && said["status"] == "True";
        let ready = pod["status"]["conditions"].as_array().is_some_and(|all| all.iter().any(is_ready));
        let rate: &mut Option<f64> = rates.entry(name).or_default();
        *rate = rate.or_else(|| ready.then(|| failing(text("/spec/containers/0/image"))));
    }
    rates
}

/// A value as it is measured, from the share of requests that fail.
type Shown = fn(f64) -> f64;

/// The Deployment or the pods that a query is about, and what is measured of them.
fn measured(query: &str) -> Option<(String, Shown)> {
    let read = Query::parse(query).ok()?;
    let of = |metric: &str, namespace: &str, deployment: &str| {
        let selector = read.selectors().find(|selector| selector.name.as_deref() == Some(metric))?;
        Some(format!("{}/{}", selector.exact(namespace)?, selector.exact(deployment)?))
    };
    let istio = || of("istio_requests_total", "destination_workload_namespace", "destination_workload");
    let shared = || {
        let selector = read.selectors().find(|selector| selector.name.as_deref() == Some("errors"))?;
        Some(format!("{}/{}", of("errors", "namespace", "workload")?, selector.exact("tidegate_io_pods")?))
    };
    of("errors", "namespace", "deployment")
        .or_else(shared)
        .map(|name| (name, (|rate| rate) as Shown))
        .or_else(|| Some((istio()?, |rate| 100.0 * (1.0 - rate))))
}

/// The Deployment whose Service of that name is all that a query about ingress-nginx or Traefik takes: each has one of its own name.
fn behind<'a>(query: &str, known: impl Iterator<Item = &'a String>) -> Option<(String, Shown)> {
    let read = Query::parse(query).ok()?;
    let selector = read.selectors().next()?;
    let pattern = match selector.name.as_deref()? {
        "nginx_ingress_controller_requests" => selector.pattern("canary")?,
        "traefik_service_requests_total" => selector.pattern("service")?,
        _ => return None,
    };
    let name = pattern.split_once("-[").or_else(|| pattern.split_once("-("))?.0;
    let deployment = known.into_iter().find(|known| known.replace('/', "-") == name);
    Some((deployment.cloned().unwrap_or_default(), |rate| 100.0 * (1.0 - rate)))
}

impl Measures for SimulatedMetrics {
    fn read<'a>(&'a self, range: &'a Range) -> BoxFuture<'a, Reading<Samples>> {
        Box::pin(ready(self.answer(range)))
    }
}
