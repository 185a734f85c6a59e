//! The horizontal autoscaler: without metrics it keeps a Deployment between its bounds.

use super::{Due, MANAGER, all, count, text, write_status};
use crate::kube_api::World;
use crate::kube_api::resource::Resource;
use serde_json::{Value, json};

pub(super) fn run(world: &mut World, _: &mut Due) {
    for scaler in all(world, "autoscaling/v2", "HorizontalPodAutoscaler") {
        let target = &scaler["spec"]["scaleTargetRef"];
        let resource = Resource::of_kind(text(target, "/apiVersion"), text(target, "/kind"));
        let namespace = text(&scaler, "/metadata/namespace");
        let found = resource.and_then(|resource| world.get(resource, namespace, text(target, "/name")).cloned());
        let Some(workload) = found else { continue };
        let (least, most) = (count(&scaler["spec"]["minReplicas"], 1), count(&scaler["spec"]["maxReplicas"], 1));
        let size = count(&workload["spec"]["replicas"], 1);
        // A size of nothing turns it off.
        let wanted = if size == 0 { 0 } else { size.clamp(least, most.max(least)) };
        if wanted != size {
            let scale = json!({
                "apiVersion": workload["apiVersion"], "kind": workload["kind"],
                "metadata": {"name": workload["metadata"]["name"], "namespace": namespace},
                "spec": {"replicas": wanted},
            });
            drop(world.update(scale, "scale", MANAGER));
        }
        let mut status: Value = scaler["status"].clone();
        status["currentReplicas"] = count(&workload["status"]["replicas"], 0).into();
        status["desiredReplicas"] = wanted.into();
        write_status(world, &scaler, status, MANAGER);
    }
}
