//! Rollouts of the world in a process, with the clock in hand.

use super::*;

const DEPLOYMENT: (&str, &str) = ("apps/v1", "Deployment");
const PAUSED: &str = "autoscaling.keda.sh/paused-replicas";

fn world() -> World {
    World::new("2026-03-01T12:00:00Z".parse().unwrap())
}

/// Creates a Deployment with a Service before it; `annotations` are its Pods'.
fn deploy(world: &mut World, replicas: i64, more: Value, annotations: Value) {
    let labels = json!({"app": "a"});
    let container = json!({"name": "c", "image": "a:1", "ports": [{"name": "http", "containerPort": 8080}]});
    let metadata = json!({"labels": labels, "annotations": annotations});
    let mut spec = json!({
        "replicas": replicas, "selector": {"matchLabels": labels},
        "template": {"metadata": metadata, "spec": {"containers": [container]}},
    });
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    let metadata = json!({"name": "a", "namespace": "default"});
    world.create("apps/v1", "Deployment", "test", json!({"metadata": metadata, "spec": spec})).unwrap();
    let spec = json!({"selector": labels, "ports": [{"name": "http", "port": 80, "targetPort": "http"}]});
    world.create("v1", "Service", "test", json!({"metadata": metadata, "spec": spec})).unwrap();
}

fn deployment(world: &World) -> Arc<Value> {
    world.get(Resource::of_kind(DEPLOYMENT.0, DEPLOYMENT.1).unwrap(), "default", "a").unwrap().clone()
}

fn change(world: &mut World, change: impl Fn(&mut Value)) {
    let mut next = deployment(world).as_ref().clone();
    change(&mut next);
    world.update(next, "", "test").unwrap();
}

/// Replicas, updated, ready, available, and why it progresses or does not.
fn shown(world: &World) -> String {
    let found = deployment(world);
    let number = |key: &str| count(&found["status"][key], 0);
    let reason = condition(&found, "Progressing").map_or("-", |c| c["reason"].as_str().unwrap());
    let available = condition(&found, "Available").map_or("-", |c| c["status"].as_str().unwrap());
    format!(
        "{} {} {} {} {available} {reason}",
        number("replicas"),
        number("updatedReplicas"),
        number("readyReplicas"),
        number("availableReplicas")
    )
}

fn sizes(world: &World) -> Vec<i64> {
    let mut sets = all(world, "apps/v1", "ReplicaSet");
    sets.sort_by_key(|set| set["metadata"]["uid"].as_str().unwrap().to_owned());
    sets.iter().map(|set| count(&set["spec"]["replicas"], -1)).collect()
}

fn ready_endpoints(world: &World) -> usize {
    let slices = all(world, "discovery.k8s.io/v1", "EndpointSlice");
    let endpoints = slices.iter().filter_map(|slice| slice["endpoints"].as_array()).flatten();
    endpoints.filter(|endpoint| endpoint["conditions"]["ready"] == true).count()
}

fn seconds(seconds: i64) -> TimeDelta {
    TimeDelta::seconds(seconds)
}

#[test]
fn a_deployment_comes_up_and_serves() {
    let mut world = world();
    deploy(&mut world, 3, json!({}), json!({"testbed/ready-after": "5s"}));
    assert_eq!(settle(&mut world), Some(world.now() + seconds(5)));
    assert_eq!((shown(&world).as_str(), ready_endpoints(&world)), ("3 3 0 0 False ReplicaSetUpdated", 0));
    pass(&mut world, seconds(5));
    assert_eq!((shown(&world).as_str(), ready_endpoints(&world)), ("3 3 3 3 True NewReplicaSetAvailable", 3));
    let slices = all(&world, "discovery.k8s.io/v1", "EndpointSlice");
    assert_eq!(slices[0]["ports"], json!([{"name": "http", "port": 8080, "protocol": "TCP"}]));
    // Nothing is left to do, ever.
    let version = world.version();
    pass(&mut world, TimeDelta::days(1));
    assert_eq!(world.version(), version);
}

#[test]
fn a_new_template_replaces_the_old_one_within_its_bounds() {
    let mut world = world();
    deploy(&mut world, 4, json!({}), json!({"testbed/ready-after": "10s"}));
    pass(&mut world, seconds(60));
    change(&mut world, |next| next["spec"]["template"]["spec"]["containers"][0]["image"] = "a:2".into());
    let mut seen = Vec::new();
    for _ in 0..6 {
        settle(&mut world);
        assert!(sizes(&world).iter().sum::<i64>() <= 5 && ready_endpoints(&world) >= 3);
        seen.push(sizes(&world));
        pass(&mut world, seconds(5));
    }
    assert_eq!(seen.first(), Some(&vec![3, 2]));
    assert_eq!(seen.last(), Some(&vec![0, 4]));
    assert_eq!(shown(&world), "4 4 4 4 True NewReplicaSetAvailable");
    assert_eq!(deployment(&world)["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "2");
    // Back to the first template: its ReplicaSet is used again, as the newest.
    change(&mut world, |next| next["spec"]["template"]["spec"]["containers"][0]["image"] = "a:1".into());
    pass(&mut world, seconds(60));
    assert_eq!(sizes(&world), [4, 0]);
    assert_eq!(deployment(&world)["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "3");
}

#[test]
fn what_never_becomes_ready_exceeds_its_deadline() {
    for (fate, waits) in [("stuck", None), ("crash", Some("CrashLoopBackOff")), ("image", Some("ImagePullBackOff"))] {
        let mut world = world();
        deploy(&mut world, 2, json!({"progressDeadlineSeconds": 30}), json!({}));
        pass(&mut world, seconds(10));
        let image = format!("a:2-{fate}");
        change(&mut world, |next| next["spec"]["template"]["spec"]["containers"][0]["image"] = image.as_str().into());
        pass(&mut world, seconds(29));
        assert_eq!(shown(&world), "3 1 2 2 True ReplicaSetUpdated", "{fate}");
        pass(&mut world, seconds(2));
        assert_eq!(shown(&world), "3 1 2 2 True ProgressDeadlineExceeded", "{fate}");
        assert_eq!(ready_endpoints(&world), 2, "{fate}");
        let pods = all(&world, "v1", "Pod");
        let found = pods.iter().find_map(|pod| pod.pointer("/status/containerStatuses/0/state/waiting/reason"));
        assert_eq!(found.and_then(Value::as_str), waits);
    }
}

#[test]
fn pods_fail_and_a_paused_deployment_only_changes_its_size() {
    let mut world = world();
    deploy(&mut world, 2, json!({"minReadySeconds": 5}), json!({"testbed/fail-after": "20s"}));
    settle(&mut world);
    assert_eq!(shown(&world), "2 2 2 0 False ReplicaSetUpdated");
    pass(&mut world, seconds(5));
    assert_eq!(shown(&world), "2 2 2 2 True NewReplicaSetAvailable");
    pass(&mut world, seconds(15));
    assert_eq!((shown(&world).as_str(), ready_endpoints(&world)), ("2 2 0 0 False NewReplicaSetAvailable", 0));
    change(&mut world, |next| {
        next["spec"]["paused"] = true.into();
        next["spec"]["replicas"] = 3.into();
        next["spec"]["template"]["spec"]["containers"][0]["image"] = "a:2".into();
    });
    pass(&mut world, seconds(60));
    assert_eq!(sizes(&world), [3]);
}

#[test]
fn recreate_leaves_nothing_between() {
    let mut world = world();
    deploy(&mut world, 2, json!({"strategy": {"type": "Recreate"}}), json!({"testbed/ready-after": "5s"}));
    pass(&mut world, seconds(10));
    change(&mut world, |next| next["spec"]["template"]["spec"]["containers"][0]["image"] = "a:2".into());
    settle(&mut world);
    assert_eq!((sizes(&world), ready_endpoints(&world)), (vec![0, 2], 0));
    pass(&mut world, seconds(5));
    assert_eq!(shown(&world), "2 2 2 2 True NewReplicaSetAvailable");
}

#[test]
fn a_deployment_takes_all_with_it() {
    let mut world = world();
    deploy(&mut world, 2, json!({}), json!({}));
    settle(&mut world);
    let found = deployment(&world);
    world.terminate(&found).unwrap();
    settle(&mut world);
    assert_eq!((sizes(&world).len(), all(&world, "v1", "Pod").len(), ready_endpoints(&world)), (0, 0, 0));
}

#[test]
fn a_scaler_keeps_its_bounds_and_a_gateway_its_word() {
    let mut world = world();
    deploy(&mut world, 1, json!({}), json!({}));
    let metadata = json!({"name": "a", "namespace": "default"});
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"});
    let spec = json!({"minReplicas": 2, "maxReplicas": 4, "scaleTargetRef": target});
    let scaler = json!({"metadata": metadata, "spec": spec});
    world.create("autoscaling/v2", "HorizontalPodAutoscaler", "test", scaler).unwrap();
    let rules = json!([{"backendRefs": [{"name": "a", "port": 80}, {"name": "b", "port": 80}]}]);
    let route = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": metadata,
        "spec": {"parentRefs": [{"name": "g"}], "rules": rules},
    });
    let route = world.create("gateway.networking.k8s.io/v1", "HTTPRoute", "test", route).unwrap();
    settle(&mut world);
    assert_eq!(shown(&world), "2 2 2 2 True NewReplicaSetAvailable");
    let resource = Resource::of_kind("gateway.networking.k8s.io/v1", "HTTPRoute").unwrap();
    let said = |world: &World| {
        let route = world.get(resource, "default", "a").unwrap().clone();
        let conditions = route["status"]["parents"][0]["conditions"].as_array().unwrap().clone();
        conditions.iter().map(|c| (c["status"].clone(), c["observedGeneration"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(said(&world), [(json!("True"), json!(1)), (json!("False"), json!(1))]);
    let mut next = world.get(resource, "default", "a").unwrap().as_ref().clone();
    next["spec"]["rules"] = json!([{"backendRefs": [{"name": "a", "port": 80}]}]);
    world.update(next.clone(), "", "test").unwrap();
    settle(&mut world);
    assert_eq!(said(&world), [(json!("True"), json!(2)), (json!("True"), json!(2))]);
    assert_ne!(route["metadata"]["resourceVersion"], next["metadata"]["resourceVersion"]);
}

#[test]
fn a_gateway_takes_no_route_of_a_namespace_that_says_so() {
    let mut world = world();
    deploy(&mut world, 1, json!({}), json!({}));
    let metadata = json!({"name": "a", "namespace": "default"});
    let rules = json!([{"backendRefs": [{"name": "a", "port": 80}]}]);
    let route = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": metadata,
        "spec": {"parentRefs": [{"name": "g"}], "rules": rules},
    });
    world.create("gateway.networking.k8s.io/v1", "HTTPRoute", "test", route).unwrap();
    let said = |world: &mut World, word: Value| {
        let namespaces = Resource::of_kind("v1", "Namespace").unwrap();
        let mut around = world.get(namespaces, "", "default").unwrap().as_ref().clone();
        around["metadata"]["annotations"] = word;
        world.update(around, "", "test").unwrap();
        settle(world);
        let route = all(world, "gateway.networking.k8s.io/v1", "HTTPRoute").remove(0);
        let conditions = route["status"]["parents"][0]["conditions"].as_array().unwrap().clone();
        conditions.iter().map(|c| c["status"].as_str().unwrap() == "True").collect::<Vec<_>>()
    };
    assert_eq!(said(&mut world, json!({})), [true, true]);
    assert_eq!(said(&mut world, json!({"testbed/gateway": "refuse"})), [false, true]);
    assert_eq!(said(&mut world, json!({})), [true, true]);
}

#[test]
fn keda_makes_an_autoscaler_of_each_scaled_object_that_is_not_paused() {
    let mut world = world();
    deploy(&mut world, 1, json!({}), json!({}));
    let metadata = json!({"name": "a", "namespace": "default"});
    let triggers = json!([{"type": "cron", "metadata": {}}]);
    let spec =
        json!({"scaleTargetRef": {"name": "a"}, "minReplicaCount": 2, "maxReplicaCount": 6, "triggers": triggers});
    let scaled = json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": metadata, "spec": spec});
    let scaled = world.create("keda.sh/v1alpha1", "ScaledObject", "test", scaled).unwrap();
    let scalers = |world: &World| all(world, "autoscaling/v2", "HorizontalPodAutoscaler");
    settle(&mut world);
    let made = scalers(&world).remove(0);
    assert_eq!(made["metadata"]["name"], "keda-hpa-a");
    assert_eq!(made["metadata"]["ownerReferences"], owner(&scaled));
    assert_eq!((&made["spec"]["minReplicas"], &made["spec"]["maxReplicas"]), (&json!(2), &json!(6)));
    assert_eq!(shown(&world), "2 2 2 2 True NewReplicaSetAvailable");

    let change = |world: &mut World, change: &dyn Fn(&mut Value)| {
        let mut next = all(world, "keda.sh/v1alpha1", "ScaledObject").remove(0).as_ref().clone();
        change(&mut next);
        world.update(next, "", "test").unwrap();
        settle(world);
    };
    change(&mut world, &|next| next["spec"]["minReplicaCount"] = 4.into());
    assert_eq!(scalers(&world)[0]["spec"]["minReplicas"], 4);
    assert_eq!(scalers(&world)[0]["metadata"]["ownerReferences"], owner(&scaled));
    assert_eq!(shown(&world), "4 4 4 4 True NewReplicaSetAvailable");
    change(&mut world, &|next| next["metadata"]["annotations"] = json!({PAUSED: "0"}));
    assert_eq!((scalers(&world).len(), sizes(&world)), (0, vec![0]));
    change(&mut world, &|next| next["metadata"]["annotations"] = json!({}));
    assert_eq!((scalers(&world).len(), sizes(&world)), (1, vec![4]));
    let found = all(&world, "keda.sh/v1alpha1", "ScaledObject").remove(0);
    world.terminate(&found).unwrap();
    settle(&mut world);
    assert!(scalers(&world).is_empty());
}

#[test]
fn while_the_controller_manager_stands_still_nothing_that_it_does_happens() {
    let mut world = world();
    let mut controllers = Controllers::default();
    deploy(&mut world, 2, json!({}), json!({"testbed/ready-after": "5s"}));
    controllers.settle(&mut world);
    controllers.away = true;
    change(&mut world, |next| next["spec"]["template"]["spec"]["containers"][0]["image"] = "a:2".into());
    assert_eq!(controllers.pass(&mut world, seconds(3_600)), None, "who stands still is not waited for");
    // Kubelets go on: the pods have become ready, and nobody has counted them.
    assert_eq!((shown(&world).as_str(), ready_endpoints(&world)), ("2 2 0 0 False ReplicaSetUpdated", 0));
    let observed = |world: &World| deployment(world)["status"]["observedGeneration"].clone();
    assert_eq!(observed(&world), 1);
    controllers.away = false;
    controllers.pass(&mut world, seconds(60));
    assert_eq!((shown(&world).as_str(), observed(&world)), ("2 2 2 2 True NewReplicaSetAvailable", json!(2)));
}

#[test]
fn the_same_story_makes_the_same_world() {
    let story = || {
        let mut world = world();
        deploy(&mut world, 3, json!({}), json!({"testbed/ready-after": "5s"}));
        pass(&mut world, seconds(7));
        change(&mut world, |next| next["spec"]["template"]["spec"]["containers"][0]["image"] = "a:2".into());
        pass(&mut world, seconds(60));
        world
    };
    let (left, right) = (story(), story());
    for kind in ["Pod", "Service"] {
        assert_eq!(all(&left, "v1", kind), all(&right, "v1", kind));
    }
    assert_eq!(left.version(), right.version());
}

#[test]
fn a_job_ends_well_or_not_or_by_its_deadline() {
    for (image, kind, reason) in [
        ("t:1", "Complete", "CompletionsReached"),
        ("t:1-crash", "Failed", "BackoffLimitExceeded"),
        ("t:1-stuck", "Failed", "DeadlineExceeded"),
    ] {
        let mut world = world();
        let pods = json!({"restartPolicy": "Never", "containers": [{"name": "t", "image": image}]});
        let template = json!({"metadata": {"annotations": {"testbed/ends-after": "30s"}}, "spec": pods});
        let metadata = json!({"name": "a", "namespace": "default"});
        let spec = json!({"activeDeadlineSeconds": 60, "template": template});
        world.create("batch/v1", "Job", "test", json!({"metadata": metadata, "spec": spec})).unwrap();
        let job = |world: &World| all(world, "batch/v1", "Job").remove(0);
        pass(&mut world, TimeDelta::seconds(29));
        assert_eq!((count(&job(&world)["status"]["active"], 0), condition(&job(&world), kind)), (1, None), "{image}");
        pass(&mut world, TimeDelta::seconds(40));
        let ended = job(&world);
        assert_eq!(condition(&ended, kind).map(|ended| &ended["reason"]), Some(&json!(reason)), "{image}");
    }
}
