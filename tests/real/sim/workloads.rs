//! What the controllers of the world in a process come to, beside the real ones with fake kubelets.

use crate::support::cluster::{Bed, PATIENCE, eventually};
use chrono::TimeDelta;
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use tidegate::world::kube_api::KubeApi;
use tidegate::world::workloads;

/// One of the two clusters.
struct Side {
    client: Client,
    namespace: String,
    api: Option<KubeApi>,
}

impl Side {
    fn api(&self, api_version: &str, kind: &str) -> Api<DynamicObject> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource)
    }

    async fn create(&self, object: &Value) {
        let api = self.api(object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
        api.create(&PostParams::default(), &serde_json::from_value(object.clone()).unwrap()).await.unwrap();
    }

    async fn all(&self, api_version: &str, kind: &str) -> Vec<Value> {
        let found = self.api(api_version, kind).list(&ListParams::default()).await.unwrap();
        found.items.into_iter().map(|item| serde_json::to_value(item).unwrap()).collect()
    }

    /// Lets a minute pass where time is ours.
    fn pass(&self) {
        if let Some(api) = &self.api {
            api.change(|world| workloads::pass(world, TimeDelta::minutes(1)));
        }
    }

    /// The Deployment's reason for its progress, once it has seen the newest generation.
    async fn progress(&self) -> Option<String> {
        let found = self.api("apps/v1", "Deployment").get("a").await.unwrap();
        let found = serde_json::to_value(found).unwrap();
        let conditions = found["status"]["conditions"].as_array()?;
        let seen = found["status"]["observedGeneration"] == found["metadata"]["generation"];
        let progress = conditions.iter().find(|c| c["type"] == "Progressing").filter(|_| seen)?;
        Some(progress["reason"].as_str()?.to_owned())
    }

    /// What there is by now, without what cannot be equal.
    async fn shown(&self) -> Value {
        let mut shown = Vec::new();
        for mut object in self.all("apps/v1", "Deployment").await {
            shown.push(json!({"status": object["status"].take(), "generation": object["metadata"]["generation"],
                              "annotations": object["metadata"]["annotations"]}));
        }
        let mut sets = self.all("apps/v1", "ReplicaSet").await;
        sets.sort_by_key(|set| set["metadata"]["annotations"]["deployment.kubernetes.io/revision"].to_string());
        let hashes: Vec<_> = sets.iter().map(|set| text(&set["metadata"]["labels"]["pod-template-hash"])).collect();
        for mut set in sets {
            // How many steps a ReplicaSet takes is a matter of timing.
            let seen = set["status"].as_object_mut().unwrap().shift_remove("observedGeneration");
            set["status"]["upToDate"] = (seen.as_ref() == Some(&set["metadata"]["generation"])).into();
            shown.push(json!({"name": set["metadata"]["name"], "labels": set["metadata"]["labels"],
                              "owners": set["metadata"]["ownerReferences"], "spec": set["spec"], "status": set["status"]}));
        }
        for slice in self.all("discovery.k8s.io/v1", "EndpointSlice").await {
            let endpoints = slice["endpoints"].as_array().into_iter().flatten();
            let mut endpoints: Vec<_> = endpoints.map(|e| json!([e["conditions"], e["targetRef"]["kind"]])).collect();
            endpoints.sort_by_key(Value::to_string);
            shown.push(
                json!({"ports": slice["ports"], "endpoints": endpoints, "owners": slice["metadata"]["ownerReferences"],
                              "service": slice["metadata"]["labels"]["kubernetes.io/service-name"]}),
            );
        }
        let mut pods: Vec<_> = self.all("v1", "Pod").await.iter().map(pod).collect();
        pods.sort_by_key(Value::to_string);
        shown.extend(pods);
        let mut shown = Value::from(shown);
        same(&mut shown, &hashes);
        shown
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// What tidegate reads of a Pod.
fn pod(pod: &Value) -> Value {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    let ready: Vec<_> = conditions.filter(|c| c["type"] == "Ready").map(|c| c["status"].clone()).collect();
    let containers = pod["status"]["containerStatuses"].as_array().into_iter().flatten();
    let containers: Vec<_> =
        containers.map(|c| json!([c["name"], c["image"], c["ready"], c["state"]["waiting"]["reason"]])).collect();
    json!({"labels": pod["metadata"]["labels"], "owners": pod["metadata"]["ownerReferences"], "ready": ready,
           "phase": pod["status"]["phase"], "containers": containers, "placed": pod["spec"]["nodeName"].is_string()})
}

/// Takes out uids and times, and numbers the hashes of templates.
fn same(value: &mut Value, hashes: &[String]) {
    match value {
        Value::Object(fields) => {
            for key in ["uid", "lastTransitionTime", "lastUpdateTime", "creationTimestamp"] {
                fields.shift_remove(key);
            }
            fields.values_mut().for_each(|value| same(value, hashes));
        }
        Value::Array(items) => items.iter_mut().for_each(|value| same(value, hashes)),
        Value::String(text) => {
            for (number, hash) in hashes.iter().enumerate() {
                *text = text.replace(hash, &format!("<hash {number}>"));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn objects() -> [Value; 2] {
    let labels = json!({"app": "a"});
    let container = json!({"name": "c", "image": "a:1", "ports": [{"name": "http", "containerPort": 8080}]});
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [container]}});
    let spec =
        json!({"replicas": 4, "progressDeadlineSeconds": 3, "selector": {"matchLabels": labels}, "template": template});
    let ports = json!([{"name": "http", "port": 80, "targetPort": "http"}]);
    [
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": spec}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"selector": labels, "ports": ports}}),
    ]
}

#[tokio::test]
async fn rollouts_come_to_the_same() {
    let space = Bed::shared().await.space("workloads").await;
    let api = KubeApi::new("2026-03-01T12:00:00Z".parse().unwrap());
    api.change(|world| world.make_namespace(&space.name));
    let sim = Side { client: Client::new(api.clone(), "default"), namespace: space.name.clone(), api: Some(api) };
    let real = Side { client: space.client.clone(), namespace: space.name.clone(), api: None };
    for side in [&real, &sim] {
        for object in objects() {
            side.create(&object).await;
        }
    }
    let annotated = |behaviour: Value| json!({"metadata": {"annotations": {"testbed/behaviour": behaviour}}});
    let image = json!({"spec": {"containers": [{"name": "c", "image": "a:2", "ports": [{"name": "http", "containerPort": 8080}]}]}});
    let chapters = [
        ("it comes up", json!({}), "NewReplicaSetAvailable"),
        ("another image", json!({"template": image}), "NewReplicaSetAvailable"),
        ("one that never becomes ready", json!({"template": annotated("stuck".into())}), "ProgressDeadlineExceeded"),
        ("the one before again", json!({"template": annotated(Value::Null)}), "NewReplicaSetAvailable"),
        ("one that crashes", json!({"template": annotated("crash".into())}), "ProgressDeadlineExceeded"),
        ("fewer", json!({"replicas": 2, "template": annotated(Value::Null)}), "NewReplicaSetAvailable"),
        ("none", json!({"replicas": 0}), "NewReplicaSetAvailable"),
    ];
    for (title, change, reason) in chapters {
        for side in [&real, &sim] {
            let patch = Patch::Merge(json!({"spec": change}));
            side.api("apps/v1", "Deployment").patch("a", &PatchParams::default(), &patch).await.unwrap();
            side.pass();
        }
        assert_eq!(sim.progress().await.as_deref(), Some(reason), "{title}");
        let found = sim.shown().await;
        let last = std::cell::RefCell::new(Value::Null);
        // Each of the real controllers takes its own time.
        let equal = async || {
            let shown = real.shown().await;
            let equal = shown == found;
            *last.borrow_mut() = shown;
            equal.then_some(())
        };
        let settled = tokio::time::timeout(PATIENCE / 2, eventually(title, equal)).await;
        assert!(settled.is_ok(), "{title}\nreal: {}\nsim:  {found}", last.borrow());
    }
}

/// StatefulSets with their Pods, revisions numbered by their age.
async fn shown_sets(side: &Side) -> Value {
    let mut revisions = side.all("apps/v1", "ControllerRevision").await;
    revisions.sort_by_key(|revision| revision["revision"].as_i64());
    let names: Vec<_> = revisions.iter().map(|revision| text(&revision["metadata"]["name"])).collect();
    let mut shown = Vec::new();
    for mut set in side.all("apps/v1", "StatefulSet").await {
        shown.push(
            json!({"status": set["status"].take(), "generation": set["metadata"]["generation"], "spec": set["spec"]}),
        );
    }
    let mut pods = side.all("v1", "Pod").await;
    pods.sort_by_key(|pod| text(&pod["metadata"]["name"]));
    shown.extend(pods.iter().map(|found| {
        let identity = json!([found["metadata"]["name"], found["spec"]["hostname"], found["spec"]["subdomain"]]);
        json!({"identity": identity, "pod": pod(found)})
    }));
    let mut shown = Value::from(shown);
    same(&mut shown, &names);
    shown
}

/// A pod template of that image.
fn template(tag: &str, annotations: &Value) -> Value {
    let metadata = json!({"labels": {"app": "a"}, "annotations": annotations});
    json!({"metadata": metadata, "spec": {"containers": [{"name": "c", "image": format!("a:{tag}")}]}})
}

/// What is done to a StatefulSet of three Pods: a change of its spec, and Pods that are deleted.
fn chapters() -> [(&'static str, Value, &'static [&'static str]); 10] {
    let held = |partition: u32| json!({"rollingUpdate": {"partition": partition}});
    let works = || template("2", &json!({"testbed/behaviour": null}));
    let crash = template("3", &json!({"testbed/behaviour": "crash"}));
    [
        ("it comes up", json!({}), &[]),
        ("another template, and no pod of it", json!({"template": works(), "updateStrategy": held(3)}), &[]),
        ("the highest is new", json!({"updateStrategy": held(2)}), &[]),
        ("pods come back as their number says", json!({}), &["a-0", "a-2"]),
        ("all are new", json!({"updateStrategy": held(0)}), &[]),
        ("a partition over all of one revision holds nothing", json!({"updateStrategy": held(3)}), &["a-1"]),
        ("one that crashes", json!({"template": crash, "updateStrategy": held(2)}), &[]),
        ("the one before, and it is stuck", json!({"template": works(), "updateStrategy": held(0)}), &[]),
        ("the broken one is deleted", json!({}), &["a-2"]),
        ("more, and a first number", json!({"replicas": 4, "ordinals": {"start": 1}}), &[]),
    ]
}

#[tokio::test]
async fn updates_of_stateful_sets_come_to_the_same() {
    let space = Bed::shared().await.space("stateful-sets").await;
    let api = KubeApi::new("2026-03-01T12:00:00Z".parse().unwrap());
    api.change(|world| world.make_namespace(&space.name));
    let sim = Side { client: Client::new(api.clone(), "default"), namespace: space.name.clone(), api: Some(api) };
    let real = Side { client: space.client.clone(), namespace: space.name.clone(), api: None };
    let selector = json!({"matchLabels": {"app": "a"}});
    let first = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "a"},
        "spec": {"replicas": 3, "serviceName": "a", "selector": selector, "template": template("1", &json!({}))},
    });
    for side in [&real, &sim] {
        side.create(&first).await;
        side.pass();
    }
    for (title, change, deleted) in chapters() {
        for side in [&real, &sim] {
            let patch = Patch::Merge(json!({"spec": change}));
            side.api("apps/v1", "StatefulSet").patch("a", &PatchParams::default(), &patch).await.unwrap();
            for pod in deleted {
                side.api("v1", "Pod").delete(pod, &DeleteParams::default()).await.unwrap();
            }
            side.pass();
        }
        let found = shown_sets(&sim).await;
        let last = std::cell::RefCell::new(Value::Null);
        let equal = async || {
            let shown = shown_sets(&real).await;
            let equal = shown == found;
            *last.borrow_mut() = shown;
            equal.then_some(())
        };
        let settled = tokio::time::timeout(PATIENCE / 2, eventually(title, equal)).await;
        assert!(settled.is_ok(), "{title}\nreal: {}\nsim:  {found}", last.borrow());
    }
}

/// The nodes of [`updates_of_daemon_sets_come_to_the_same`]: other tests' pods do not tolerate them.
fn node(space: &str, number: usize) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": format!("{space}-{number}"), "labels": {"daemons": space}},
        "spec": {"taints": [{"key": "daemons", "effect": "NoSchedule"}]},
    })
}

/// DaemonSets with their Pods in the order of their nodes; revisions numbered by their age.
async fn shown_daemons(side: &Side) -> Value {
    let mut revisions = side.all("apps/v1", "ControllerRevision").await;
    revisions.sort_by_key(|revision| revision["revision"].as_i64());
    let hashes: Vec<_> =
        revisions.iter().map(|revision| text(&revision["metadata"]["labels"]["controller-revision-hash"])).collect();
    let mut shown = Vec::new();
    for mut set in side.all("apps/v1", "DaemonSet").await {
        shown.push(
            json!({"status": set["status"].take(), "generation": set["metadata"]["generation"], "spec": set["spec"]}),
        );
    }
    let mut pods = side.all("v1", "Pod").await;
    pods.sort_by_key(|pod| text(&pod["spec"]["nodeName"]));
    shown.extend(pods.into_iter().map(|mut found| {
        // Counted for clients from before there were revisions.
        found["metadata"]["labels"].as_object_mut().unwrap().shift_remove("pod-template-generation");
        json!({"node": found["spec"]["nodeName"], "pod": pod(&found)})
    }));
    let mut shown = Value::from(shown);
    same(&mut shown, &hashes);
    shown
}

/// What is done to a DaemonSet on three nodes: a change of its spec, the node whose pod is deleted, how many nodes there are.
fn daemon_chapters() -> [(&'static str, Value, Option<usize>, usize); 10] {
    let by_hand =
        |template: Value| json!({"template": template, "updateStrategy": {"type": "OnDelete", "rollingUpdate": null}});
    let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}});
    let of = |tag: &str, behaviour: Value| template(tag, &json!({"testbed/behaviour": behaviour}));
    [
        ("it comes up", json!({}), None, 3),
        ("another template, and no pod of it", by_hand(of("2", Value::Null)), None, 3),
        ("a pod that is deleted is new", json!({}), Some(1), 3),
        ("the one before, and nothing changes", by_hand(of("1", Value::Null)), None, 3),
        ("a node joins", json!({}), None, 4),
        ("the new one is old again", json!({}), Some(1), 4),
        ("one that crashes", by_hand(of("3", "crash".into())), Some(0), 4),
        ("the one before, and it is still there", by_hand(of("1", Value::Null)), None, 4),
        ("it is deleted", json!({}), Some(0), 4),
        ("Kubernetes replaces all", json!({"template": of("2", Value::Null), "updateStrategy": rolling}), None, 4),
    ]
}

#[tokio::test]
async fn updates_of_daemon_sets_come_to_the_same() {
    let space = Bed::shared().await.space("daemon-sets").await;
    let api = KubeApi::new("2026-03-01T12:00:00Z".parse().unwrap());
    api.change(|world| world.make_namespace(&space.name));
    let sim = Side { client: Client::new(api.clone(), "default"), namespace: space.name.clone(), api: Some(api) };
    let real = Side { client: space.client.clone(), namespace: space.name.clone(), api: None };
    let mut pods = template("1", &json!({}));
    pods["spec"]["nodeSelector"] = json!({"daemons": space.name});
    pods["spec"]["tolerations"] = json!([{"key": "daemons", "operator": "Exists"}]);
    let first = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "a"},
        "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": pods},
    });
    let mut nodes = 0;
    for side in [&real, &sim] {
        side.create(&first).await;
    }
    for (title, change, deleted, wanted) in daemon_chapters() {
        let change = json!({"spec": change});
        for side in [&real, &sim] {
            for number in nodes..wanted {
                let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Node"));
                let node = serde_json::from_value(node(&space.name, number)).unwrap();
                let all: Api<DynamicObject> = Api::all_with(side.client.clone(), &resource);
                all.create(&PostParams::default(), &node).await.unwrap();
            }
            let sets = side.api("apps/v1", "DaemonSet");
            let set = sets.patch("a", &PatchParams::default(), &Patch::Merge(&change)).await.unwrap();
            side.pass();
            // What its controller has not seen yet it makes pods of no template of.
            let seen = async || {
                let found = sets.get("a").await.unwrap();
                (found.data["status"]["observedGeneration"].as_i64() >= set.metadata.generation).then_some(())
            };
            eventually(title, seen).await;
            let on = deleted.map(|number| format!("{}-{number}", space.name));
            for pod in side.all("v1", "Pod").await.iter().filter(|pod| Some(text(&pod["spec"]["nodeName"])) == on) {
                side.api("v1", "Pod").delete(&text(&pod["metadata"]["name"]), &DeleteParams::default()).await.unwrap();
            }
            side.pass();
        }
        nodes = wanted;
        let found = shown_daemons(&sim).await;
        let last = std::cell::RefCell::new(Value::Null);
        let equal = async || {
            let shown = shown_daemons(&real).await;
            let equal = shown == found;
            *last.borrow_mut() = shown;
            equal.then_some(())
        };
        let settled = tokio::time::timeout(PATIENCE / 2, eventually(title, equal)).await;
        assert!(settled.is_ok(), "{title}\nreal: {}\nsim:  {found}", last.borrow());
    }
    let all: Api<k8s_openapi::api::core::v1::Node> = Api::all(real.client.clone());
    for number in 0..nodes {
        all.delete(&format!("{}-{number}", space.name), &DeleteParams::default()).await.unwrap();
    }
}
