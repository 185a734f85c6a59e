//! What is looked at after every change of the cluster.

use crate::scenarios::live::{NAMESPACE, resource};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use tidegate::world::kube_api::World;

/// Who owns what the controller applies.
const MANAGER: &str = "tidegate-world";

#[derive(Default)]
pub(crate) struct Witness {
    /// Ready endpoints by Service: now, and the fewest since it was asked last.
    served: BTreeMap<String, [usize; 2]>,
    /// Deployments that had no pods for a while: no autoscaler wakes them, so that who does has to say a number.
    asleep: BTreeSet<String>,
    /// Numbers of pods that the controller has said although they are an autoscaler's word.
    sizes: BTreeSet<String>,
}

impl Witness {
    pub(crate) fn look(&mut self, world: &World) {
        self.count(world);
        for (name, pods) in scaled(world) {
            if pods == Some(0) {
                self.asleep.insert(name.clone());
            }
            // A copy begins with a number of its own, and gives it up.
            if !name.ends_with("-primary") && !self.asleep.contains(&name) {
                self.sizes.extend(owned(world, &name));
            }
        }
    }

    fn count(&mut self, world: &World) {
        let mut now: BTreeMap<&str, usize> = BTreeMap::new();
        for slice in world.list(resource("EndpointSlice").unwrap(), NAMESPACE) {
            let Some(service) = slice["metadata"]["labels"]["kubernetes.io/service-name"].as_str() else { continue };
            let endpoints = slice["endpoints"].as_array().into_iter().flatten();
            let ready = endpoints.filter(|endpoint| endpoint["conditions"]["ready"] != false).count();
            *now.entry(service).or_default() += ready;
        }
        for (service, [last, fewest]) in &mut self.served {
            *last = now.remove(service.as_str()).unwrap_or_default();
            *fewest = (*fewest).min(*last);
        }
        self.served.extend(now.into_iter().map(|(service, ready)| (service.to_owned(), [ready; 2])));
    }

    /// The fewest ready endpoints that a Service had since it was asked last.
    pub(crate) fn served(&mut self, service: &str) -> Result<String, String> {
        let [now, fewest] = self.served.get_mut(service).ok_or_else(|| format!("{service} never had an endpoint"))?;
        let fewest = std::mem::replace(fewest, *now);
        Ok(format!("at least {fewest} ready endpoints, {now} now\n"))
    }

    /// Numbers of pods that the controller has said although they are an autoscaler's word, and at rest those that it still says.
    pub(crate) fn sizes(&self, world: &World) -> BTreeSet<String> {
        let scaled = scaled(world).into_iter().map(|(name, _)| name).filter(|name| !self.asleep.contains(name));
        self.sizes.iter().cloned().chain(scaled.filter_map(|name| owned(world, &name))).collect()
    }
}

/// Deployments that an autoscaler scales, with their numbers of pods.
fn scaled(world: &World) -> Vec<(String, Option<u64>)> {
    let deployments = resource("Deployment").unwrap();
    let scalers = world.list(resource("HorizontalPodAutoscaler").unwrap(), NAMESPACE);
    let named = scalers.filter_map(|scaler| scaler["spec"]["scaleTargetRef"]["name"].as_str());
    let found = named.filter_map(|name| Some((name.to_owned(), world.get(deployments, NAMESPACE, name)?)));
    found.map(|(name, deployment)| (name, deployment["spec"]["replicas"].as_u64())).collect()
}

/// The number of pods of a Deployment, if it is the controller's.
fn owned(world: &World, name: &str) -> Option<String> {
    let deployment = world.get(resource("Deployment").unwrap(), NAMESPACE, name)?;
    let ours = |entry: &Value| entry["manager"] == MANAGER && !entry["fieldsV1"]["f:spec"]["f:replicas"].is_null();
    let is_ours = deployment["metadata"]["managedFields"].as_array()?.iter().any(ours);
    is_ours.then(|| format!("{} of {name}", deployment["spec"]["replicas"]))
}
