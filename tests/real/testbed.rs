//! The test bed does what the other tests rely on.

use crate::support::cluster::{Bed, Space, eventually};
use crate::support::gateway::{CONTROLLER, Mode, http_route};
use crate::support::kubeconfig::client;
use crate::support::promise_tests::the_logs_of_a_real_api_server_and_a_real_repository_merge;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Service};
use kube::api::{DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use std::time::Duration;

fn deployment(name: &str, annotations: &Value) -> Deployment {
    serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {
            "replicas": 2, "progressDeadlineSeconds": 5, "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}, "annotations": annotations},
                "spec": {"containers": [{"name": "app", "image": "registry.test/app:1"}]},
            },
        },
    }))
    .unwrap()
}

async fn create_deployment(space: &Space, name: &str, annotations: Value) {
    let api: Api<Deployment> = space.api();
    api.create(&PostParams::default(), &deployment(name, &annotations)).await.unwrap();
}

/// Waits until that many pods of a Deployment are available.
async fn available(space: &Space, name: &str, wanted: i32) {
    let api: Api<Deployment> = space.api();
    eventually(&format!("{wanted} available pods of {name}"), async || {
        let status = api.get(name).await.unwrap().status.unwrap_or_default();
        (status.observed_generation == Some(1) && status.available_replicas.unwrap_or(0) == wanted).then_some(())
    })
    .await;
}

/// Waits until a condition of a Deployment has that reason.
async fn reason(space: &Space, name: &str, wanted: &str) {
    let api: Api<Deployment> = space.api();
    eventually(&format!("{wanted} of {name}"), async || {
        let status = api.get(name).await.unwrap().status.unwrap_or_default();
        status.conditions.unwrap_or_default().iter().any(|c| c.reason.as_deref() == Some(wanted)).then_some(())
    })
    .await;
}

/// At once, in a namespace for each.
#[tokio::test]
async fn the_bed_does_what_others_rely_on() {
    let bed = Bed::shared().await;
    tokio::join!(
        pods_become_ready_fail_late_or_never_start_as_their_annotations_say(bed),
        the_gateway_takes_refuses_and_lags_as_told(bed),
        the_audit_log_counts_requests_by_user(bed),
        the_controllers_user_may_not_leave_its_namespace(bed),
        an_admission_policy_refuses_what_it_names(bed),
        the_logs_of_a_real_api_server_and_a_real_repository_merge(bed),
    );
}

/// From now on the pods of an app fail.
async fn fail(space: &Space, app: &str) {
    let pods: Api<Pod> = space.api();
    let failing = json!({"metadata": {"annotations": {"testbed/fail-after": "1ms"}}});
    for pod in pods.list(&ListParams::default().labels(&format!("app={app}"))).await.unwrap() {
        pods.patch(&pod.name_any(), &PatchParams::default(), &Patch::Merge(&failing)).await.unwrap();
    }
}

async fn pods_become_ready_fail_late_or_never_start_as_their_annotations_say(bed: &Bed) {
    let space = bed.space("pods").await;
    create_deployment(&space, "failing", json!({})).await;
    available(&space, "failing", 2).await;
    fail(&space, "failing").await;
    create_deployment(&space, "plain", json!({})).await;
    create_deployment(&space, "late", json!({"testbed/ready-after": "1s"})).await;
    create_deployment(&space, "image", json!({"testbed/behaviour": "image"})).await;
    create_deployment(&space, "stuck", json!({"testbed/behaviour": "stuck"})).await;
    available(&space, "plain", 2).await;
    available(&space, "late", 2).await;
    available(&space, "failing", 0).await;
    reason(&space, "image", "ProgressDeadlineExceeded").await;
    reason(&space, "stuck", "ProgressDeadlineExceeded").await;
}

async fn create_service(space: &Space, name: &str) {
    let service = json!({"metadata": {"name": name}, "spec": {"selector": {"app": name}, "ports": [{"port": 80}]}});
    let api: Api<Service> = space.api();
    api.create(&PostParams::default(), &serde_json::from_value(service).unwrap()).await.unwrap();
}

fn routes(space: &Space) -> Api<DynamicObject> {
    Api::namespaced_with(space.client.clone(), &space.name, &http_route())
}

/// Waits until the gateway's condition of the route `web` has that status and observed generation.
async fn condition(space: &Space, kind: &str, status: &str, generation: i64) {
    eventually(&format!("{kind}={status} at generation {generation}"), async || {
        let route = routes(space).get("web").await.unwrap();
        let parent = route.data["status"]["parents"].get(0)?;
        assert_eq!(parent["controllerName"], CONTROLLER);
        let found = parent["conditions"].as_array()?.iter().find(|c| c["type"] == kind)?;
        (found["status"] == status && found["observedGeneration"] == generation).then_some(())
    })
    .await;
}

async fn touch_route(space: &Space, weight: u32) {
    let manifest = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": "web"},
        "spec": {
            "parentRefs": [{"name": "gateway"}],
            "rules": [{"backendRefs": [{"name": "web", "port": 80, "weight": weight}]}],
        },
    });
    let bed = Bed::shared().await;
    bed.kubectl(&["-n", &space.name, "apply", "--server-side", "-f", "-"], &manifest.to_string()).await;
}

async fn the_gateway_takes_refuses_and_lags_as_told(bed: &Bed) {
    let space = bed.space("gateway").await;
    touch_route(&space, 1).await;
    condition(&space, "ResolvedRefs", "False", 1).await;
    create_service(&space, "web").await;
    condition(&space, "ResolvedRefs", "True", 1).await;
    condition(&space, "Accepted", "True", 1).await;

    bed.gateway.modes.set(&space.name, Mode::Refuse);
    condition(&space, "Accepted", "False", 1).await;
    bed.gateway.modes.set(&space.name, Mode::Stale);
    touch_route(&space, 2).await;
    condition(&space, "Accepted", "True", 1).await;
    bed.gateway.modes.set(&space.name, Mode::Delayed(Duration::from_secs(1)));
    let before = tokio::time::Instant::now();
    touch_route(&space, 3).await;
    condition(&space, "Accepted", "True", 3).await;
    assert!(before.elapsed() >= Duration::from_secs(1), "taken after {:?}", before.elapsed());
}

async fn the_audit_log_counts_requests_by_user(bed: &Bed) {
    let space = bed.space("audit").await;
    let tidegate = client(&space.kubeconfig).await;
    let start = bed.mark().await;
    let api: Api<Deployment> = Api::namespaced(tidegate.clone(), &space.name);
    api.list(&ListParams::default()).await.unwrap();
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    api.create(&dry_run, &deployment("web", &json!({}))).await.unwrap();
    api.create(&PostParams::default(), &deployment("web", &json!({}))).await.unwrap();
    let requests = bed.requests_since(start).await;
    let ours: Vec<_> = requests.iter().filter(|r| r.user == space.user).collect();
    assert_eq!(ours.iter().map(|r| r.verb.as_str()).collect::<Vec<_>>(), ["list", "create", "create"]);
    let writes: Vec<_> = ours.iter().filter(|r| r.is_write()).collect();
    assert_eq!(writes.len(), 1, "a dry run is no write");
    assert_eq!(writes[0].answer.as_ref().unwrap()["spec"]["replicas"], 2);
}

async fn the_controllers_user_may_not_leave_its_namespace(bed: &Bed) {
    let (space, other) = (bed.space("rights").await, bed.space("rights").await);
    let tidegate = client(&space.kubeconfig).await;
    let denied = Api::<ConfigMap>::namespaced(tidegate.clone(), &other.name).list(&ListParams::default()).await;
    assert!(matches!(denied, Err(kube::Error::Api(status)) if status.code == 403));
    Api::<ConfigMap>::namespaced(tidegate, &space.name).list(&ListParams::default()).await.unwrap();
}

async fn an_admission_policy_refuses_what_it_names(bed: &Bed) {
    let space = bed.space("admission").await;
    bed.refuse(&space, "apps", "deployments", "object.spec.replicas < 2", "at most one pod here").await;
    let api: Api<Deployment> = space.api();
    let refusal = eventually("the refusal", async || {
        let dry_run = PostParams { dry_run: true, ..PostParams::default() };
        api.create(&dry_run, &deployment("web", &json!({}))).await.err()
    })
    .await;
    assert!(refusal.to_string().contains("at most one pod here"), "{refusal}");
}
