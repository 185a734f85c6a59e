//! A Service as the target: it leads to other pods, then to another cluster's name, in steps; what it leads to is left alone.

use super::app::App;
use super::hands::applied_by_hand;
use super::world::{Held, World, is_exposed};
use crate::support::audit::Mark;
use crate::support::cluster::{Bed, eventually};
use serde_json::{Value, json};
use tidegate::manifest::desired::Router;
use tidegate::record::state::{Rest, RolloutState};

const ROLLOUT: &str = "apiVersion: tidegate.io/v1alpha1\nkind: Rollout\nmetadata: {name: web, namespace: NAMESPACE}\nspec:\n  \
    manifests: [web.yaml]\n  target: {kind: Service, name: web}\n  traffic:\n    gatewayAPI: {httpRoute: web, service: web}\n    \
    settle: 0s\n    drain: 1s\n  phases:\n  - {name: tenth, before: {approval: pullRequest}, expose: {weight: 10}, soak: 1s}\n  \
    - {name: half, before: {approval: pullRequest}, expose: {weight: 50}, soak: 1s}\n  progressDeadline: 10m\n";

/// The Service and its route.
fn manifests(spec: &str) -> String {
    let head = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: web}";
    let rules = "rules: [{backendRefs: [{name: web, port: 80}]}]";
    format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: web}}\nspec: {spec}\n---\n{head}\n\
         spec: {{parentRefs: [{{name: public}}], hostnames: [web.example.test], {rules}}}\n"
    )
}

fn to(app: &str) -> String {
    manifests(&format!("{{selector: {{app: {app}}}, ports: [{{name: http, port: 80}}]}}"))
}

fn balanced(app: &str, port: &str) -> String {
    let to = format!("selector: {{app: {app}}}, ports: [{{name: http, port: 80{port}}}]");
    manifests(&format!("{{type: LoadBalancer, externalTrafficPolicy: Local, {to}}}"))
}

fn alias(host: &str) -> String {
    manifests(&format!("{{type: ExternalName, externalName: {host}, ports: [{{name: http, port: 80}}]}}"))
}

impl World {
    async fn of_a_service(name: &str, version: &str) -> Self {
        let mut world = Self::empty(Held::Shared(Bed::shared().await), name).await;
        let id = format!("{}/web", world.space.name);
        let (http_route, service) = ("web".parse().unwrap(), "web".parse().unwrap());
        world.watch(&id, Some(Router::GatewayApi { http_route, service }));
        let rollout = ROLLOUT.replace("NAMESPACE", &world.space.name);
        world.commit(&[("it/web.rollout.yaml", &rollout), ("it/web.yaml", version)]);
        world
    }

    async fn spec_of(&self, service: &str) -> Value {
        self.get("Service", service).await.map_or(Value::Null, |service| service["spec"].clone())
    }

    /// Lets the open run go to its end; what its copy of the Service asks for, seen while a tenth of the requests go there.
    async fn through(&self) -> Value {
        self.approve("tenth").await;
        self.until("tenth", is_exposed).await;
        assert_eq!(self.weight().await, 10);
        let copy = self.spec_of("web-canary").await;
        self.approve("half").await;
        self.until_steady(Rest::Succeeded).await;
        let gone = async || self.get("Service", "web-canary").await.is_none().then_some(());
        eventually("the end of the copy", gone).await;
        copy
    }

    /// Writes of workloads, pods and autoscalers so far, by the controller.
    async fn writes_of_workloads(&self) -> Vec<String> {
        let requests = self.requests_since(Mark::START).await;
        let workloads = ["deployments", "replicasets", "pods", "horizontalpodautoscalers"];
        let writes = requests.iter().filter(|r| r.is_write() && workloads.contains(&r.resource.as_str()));
        writes.map(|r| format!("{} {}/{}", r.verb, r.resource, r.name)).collect()
    }
}

/// What a load balancer and the nodes were given: an address, a port of the nodes, and one to ask for its health.
fn given(spec: &Value) -> [Value; 3] {
    let given = [&spec["clusterIP"], &spec["ports"][0]["nodePort"], &spec["healthCheckNodePort"]].map(Value::clone);
    assert!(given[0].is_string() && given[1].is_i64() && given[2].is_i64(), "{spec}");
    given
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_25_c_26_c_27_a_service_leads_elsewhere_in_steps_and_keeps_what_it_was_given() {
    let mut world = World::of_a_service("service", &balanced("blue", "")).await;
    for app in ["blue", "green", "local"] {
        applied_by_hand(&world, &App::worker(app, 1)).await;
    }
    world.start();
    world.until_steady(Rest::Initialized).await;
    c_25_c_26_what_a_load_balancer_was_given_is_its_own_and_stays(&world).await;
    c_25_another_port_of_the_nodes_is_no_version(&world).await;
    c_27_requests_go_from_one_cluster_to_the_other_in_steps(&world).await;
    assert_eq!(world.writes_of_workloads().await, Vec::<String>::new());
    let checked = world.settled(&[]).await;
    assert_eq!(checked.most_pods, 0);
}

async fn c_25_c_26_what_a_load_balancer_was_given_is_its_own_and_stays(world: &World) {
    // What others say of the Service stays.
    let owner = world.get("Deployment", "blue").await.unwrap()["metadata"]["uid"].clone();
    let owner = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "blue", "uid": owner}]);
    let patch = json!({"metadata": {"ownerReferences": owner}}).to_string();
    world.kubectl(&["patch", "service", "web", "--type=merge", "-p", &patch], "").await;
    let before = given(&world.spec_of("web").await);

    world.commit(&[("it/web.yaml", &balanced("green", ""))]);
    let copy = world.through().await;
    assert_eq!((&copy["type"], &copy["selector"]), (&json!("ClusterIP"), &json!({"app": "green"})), "inside alone");
    assert_ne!(copy["clusterIP"], before[0]);
    for field in ["externalTrafficPolicy", "healthCheckNodePort", "allocateLoadBalancerNodePorts"] {
        assert_eq!(copy[field], Value::Null, "{copy}");
    }
    assert_eq!(copy["ports"][0]["nodePort"], Value::Null, "{copy}");
    let web = world.spec_of("web").await;
    assert_eq!((&web["type"], &web["selector"]), (&json!("LoadBalancer"), &json!({"app": "green"})));
    assert_eq!(given(&web), before);
    let web = world.get("Service", "web").await.unwrap();
    assert_eq!(web["metadata"]["ownerReferences"][0]["name"], "blue");
}

/// Main names the port that was allotted.
async fn c_25_another_port_of_the_nodes_is_no_version(world: &World) {
    let (record, before) = (world.record().unwrap(), world.spec_of("web").await);
    let port = format!(", nodePort: {}", before["ports"][0]["nodePort"]);
    let commit = world.commit(&[("it/web.yaml", &balanced("green", &port))]);
    let set = record.promoted.unwrap().set;
    let changed = |record: &RolloutState| {
        record.promoted.as_ref().is_some_and(|promoted| promoted.set != set) && record.source.commit.as_str() == commit
    };
    let after = world.until("the direct change", changed).await;
    assert_eq!(after.next_run, record.next_run, "no run was started");
    assert_eq!(given(&world.spec_of("web").await), given(&before));
}

/// From pods to a name, which is another type and so another version, and back to pods.
async fn c_27_requests_go_from_one_cluster_to_the_other_in_steps(world: &World) {
    world.commit(&[("it/web.yaml", &alias("lb.blue.example.net"))]);
    let copy = world.through().await;
    assert_eq!((&copy["type"], &copy["externalName"]), (&json!("ExternalName"), &json!("lb.blue.example.net")));
    let web = world.spec_of("web").await;
    assert_eq!((&web["externalName"], &web["selector"]), (&json!("lb.blue.example.net"), &Value::Null));

    world.commit(&[("it/web.yaml", &to("local"))]);
    assert_eq!(world.through().await["selector"], json!({"app": "local"}));
    let web = world.spec_of("web").await;
    assert_eq!((&web["selector"], &web["externalName"]), (&json!({"app": "local"}), &Value::Null));
    assert!(web["clusterIP"].is_string(), "{web}");
}
