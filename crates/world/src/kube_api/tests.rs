//! The world as a value: it repeats exactly, a clone is a world of its own, and garbage is collected.

use super::resource::{RESOURCES, Resource};
use super::{ApiVerb, Fault, FaultVerdict, KubeApi, What, World};
use chrono::TimeDelta;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use std::sync::Arc;

fn world() -> World {
    World::new("2026-03-01T12:00:00Z".parse().unwrap())
}

fn config_map(name: &str, more: Value) -> Value {
    let mut object = json!({"metadata": {"name": name, "namespace": "default"}});
    for (key, value) in more.as_object().unwrap() {
        object["metadata"][key] = value.clone();
    }
    object
}

fn create(world: &mut World, object: Value) -> Arc<Value> {
    world.create("v1", "ConfigMap", "test", object).unwrap()
}

fn names(world: &World) -> Vec<String> {
    let all = world.list(Resource::at("v1", "configmaps").unwrap(), "");
    all.map(|object| object["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

fn owned_by(owner: &Value, blocks: bool) -> Value {
    let metadata = &owner["metadata"];
    json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": metadata["name"], "uid": metadata["uid"],
            "blockOwnerDeletion": blocks}])
}

#[test]
fn every_resource_has_its_fields() {
    let without: Vec<_> = RESOURCES.iter().filter(|resource| resource.schema().is_none()).collect();
    assert!(without.is_empty(), "{without:?}");
}

#[test]
fn the_same_requests_make_the_same_world() {
    let story = || {
        let mut world = world();
        create(&mut world, config_map("a", json!({})));
        create(&mut world, json!({"metadata": {"generateName": "g-", "namespace": "default"}}));
        world.pass(TimeDelta::seconds(5));
        create(&mut world, json!({"metadata": {"generateName": "g-", "namespace": "default"}}));
        world
    };
    let (left, right) = (story(), story());
    assert_eq!(names(&left).len(), 3);
    for resource in RESOURCES {
        assert!(left.list(resource, "").eq(right.list(resource, "")), "{resource:?}");
    }
}

#[test]
fn a_clone_is_a_world_of_its_own_and_shares_what_is_equal() {
    let mut left = world();
    let kept = create(&mut left, config_map("kept", json!({})));
    let mut right = left.clone();
    create(&mut right, config_map("new", json!({})));
    left.delete(&kept).unwrap();
    assert_eq!((names(&left), names(&right)), (vec![], vec!["kept".to_owned(), "new".to_owned()]));
    let configs = Resource::at("v1", "configmaps").unwrap();
    assert!(Arc::ptr_eq(right.get(configs, "default", "kept").unwrap(), &kept));
}

#[test]
fn dependents_follow_their_owners() {
    let mut world = world();
    let owner = create(&mut world, config_map("owner", json!({})));
    let child = create(&mut world, config_map("child", json!({"ownerReferences": owned_by(&owner, false)})));
    create(&mut world, config_map("grandchild", json!({"ownerReferences": owned_by(&child, false)})));
    create(&mut world, config_map("other", json!({})));
    world.collect_garbage();
    assert_eq!(names(&world), ["child", "grandchild", "other", "owner"]);
    world.delete(&owner).unwrap();
    assert_eq!(names(&world), ["child", "grandchild", "other"]);
    world.collect_garbage();
    assert_eq!(names(&world), ["other"]);
    // Who comes later than its owner went is not forgotten, nor is who gets such an owner.
    create(&mut world, config_map("late", json!({"ownerReferences": owned_by(&owner, false)})));
    world.collect_garbage();
    assert_eq!(names(&world), ["other"]);
    let mut other = world.get(Resource::at("v1", "configmaps").unwrap(), "default", "other").unwrap().as_ref().clone();
    other["metadata"]["ownerReferences"] = owned_by(&owner, false);
    world.update(other, "", "test").unwrap();
    world.compact();
    world.collect_garbage();
    assert_eq!(names(&world), Vec::<String>::new());
}

#[tokio::test]
async fn an_owner_may_wait_for_its_dependents_or_leave_them() {
    for (policy, left) in [("Foreground", vec!["held"]), ("Orphan", vec!["child", "held"])] {
        let api = KubeApi::new("2026-03-01T12:00:00Z".parse().unwrap());
        api.change(|world| {
            let owner = create(world, config_map("owner", json!({})));
            create(world, config_map("child", json!({"ownerReferences": owned_by(&owner, true)})));
            let held = json!({"ownerReferences": owned_by(&owner, true), "finalizers": ["a.b/c"]});
            create(world, config_map("held", held));
        });
        let client = Client::new(api.clone(), "default");
        let body = json!({"propagationPolicy": policy}).to_string();
        let request = http::Request::delete("/api/v1/namespaces/default/configmaps/owner");
        client.send(request.body(Body::from(body.into_bytes())).unwrap()).await.unwrap();
        api.change(World::collect_garbage);
        let found = api.look(names);
        if policy == "Orphan" {
            assert_eq!(found, left);
            continue;
        }
        // The owner waits for what a finalizer holds.
        assert_eq!(found, ["held", "owner"]);
        api.change(|world| {
            let configs = Resource::at("v1", "configmaps").unwrap();
            let mut held = world.get(configs, "default", "held").unwrap().as_ref().clone();
            // What waits for dependents of its own waits for nothing here.
            held["metadata"]["finalizers"] = json!([]);
            world.update(held, "", "test").unwrap();
            world.collect_garbage();
        });
        assert_eq!(api.look(names), Vec::<String>::new());
    }
}

#[test]
fn a_namespace_goes_with_its_content() {
    let mut world = world();
    world.make_namespace("shop");
    let metadata = json!({"name": "a", "namespace": "shop"});
    create(&mut world, json!({"metadata": metadata}));
    let namespaces = Resource::at("v1", "namespaces").unwrap();
    let shop = world.get(namespaces, "", "shop").unwrap().clone();
    world.delete(&shop).unwrap();
    let refused = world.create("v1", "ConfigMap", "test", json!({"metadata": {"name": "b", "namespace": "shop"}}));
    assert_eq!(refused.unwrap_err().code, 403);
    world.collect_garbage();
    assert_eq!((names(&world).len(), world.get(namespaces, "", "shop")), (0, None));
}

#[test]
fn a_pod_that_runs_takes_its_time_to_end() {
    let mut world = world();
    let spec =
        json!({"nodeName": "n", "containers": [{"name": "c", "image": "i"}], "terminationGracePeriodSeconds": 7});
    let object = json!({"metadata": {"name": "p", "namespace": "default"}, "spec": spec});
    let pod = world.create("v1", "Pod", "test", object).unwrap();
    let pods = Resource::at("v1", "pods").unwrap();
    world.terminate(&pod).unwrap();
    let ending = world.get(pods, "default", "p").unwrap().clone();
    assert_eq!(ending["metadata"]["deletionTimestamp"], "2026-03-01T12:00:07Z");
    assert_eq!(ending["metadata"]["deletionGracePeriodSeconds"], 7);
    world.delete(&ending).unwrap();
    assert_eq!(world.get(pods, "default", "p"), None);
}

#[tokio::test]
async fn the_hook_sees_who_asks_what() {
    let api = KubeApi::new("2026-03-01T12:00:00Z".parse().unwrap());
    api.judge(|seen| match (seen.caller, seen.what) {
        ("other", What::Request { verb: ApiVerb::Create, dry_run: false }) => FaultVerdict::Before(Fault::Forbidden),
        _ => FaultVerdict::Pass,
    });
    let post = |caller: &str, query: &str| {
        let client = Client::new(api.caller(caller), "default");
        let request = http::Request::post(format!("/api/v1/namespaces/default/configmaps{query}"));
        let request = request.header("content-type", "application/json");
        let body = config_map("a", json!({})).to_string();
        async move { client.send(request.body(Body::from(body.into_bytes())).unwrap()).await.unwrap().status().as_u16() }
    };
    assert_eq!(post("other", "").await, 403);
    assert_eq!(post("other", "?dryRun=All").await, 201);
    assert_eq!(post("one", "").await, 201);
}

#[tokio::test]
async fn nonsense_is_refused() {
    let api = KubeApi::new("2026-03-01T12:00:00Z".parse().unwrap());
    let labels = json!({"a": "b"});
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    api.change(|world| {
        let metadata = json!({"name": "a", "namespace": "default"});
        let spec = json!({"selector": {"matchLabels": labels}, "template": template});
        world.create("apps/v1", "Deployment", "test", json!({"metadata": metadata, "spec": spec})).unwrap();
        world.create("v1", "Service", "test", json!({"metadata": metadata, "spec": {"ports": [{"port": 1}]}})).unwrap();
        create(world, config_map("a", json!({})));
    });
    let before = api.look(World::version);
    let bodies = [
        "",
        "null",
        "7",
        "[]",
        "[1]",
        "\"x\"",
        "{",
        "{\"metadata\": 1}",
        "{\"metadata\": {\"name\": 1}}",
        "{\"metadata\": {\"labels\": []}}",
        "{\"metadata\": {\"finalizers\": {}}}",
        "{\"metadata\": {\"name\": \"a\"}, \"spec\": \"x\"}",
        "{\"metadata\": {\"name\": \"a\"}, \"spec\": {\"replicas\": \"x\", \"ports\": 1, \"template\": []}, \"data\": 1}",
        "[{\"op\": \"replace\", \"path\": \"\", \"value\": 7}]",
        "[{\"op\": \"replace\", \"path\": \"/metadata\", \"value\": 7}]",
        "[{\"op\": \"add\", \"path\": \"/spec\", \"value\": []}, {\"op\": \"add\", \"path\": \"/data\", \"value\": 1}]",
    ];
    let paths = [
        "api/v1/namespaces/default/configmaps",
        "api/v1/namespaces/default/services",
        "apis/apps/v1/namespaces/default/deployments",
    ];
    let ways = [
        ("POST", "", "application/json"),
        ("PUT", "/a", "application/json"),
        ("PATCH", "/a", "application/merge-patch+json"),
        ("PATCH", "/a", "application/json-patch+json"),
        ("PATCH", "/a?fieldManager=x", "application/apply-patch+yaml"),
        ("PUT", "/a/status", "application/json"),
        ("PATCH", "/a/status", "application/merge-patch+json"),
        ("PUT", "/a/scale", "application/json"),
    ];
    let client = Client::new(api.clone(), "default");
    for (method, place, media) in ways {
        for (path, body) in paths.iter().flat_map(|path| bodies.map(|body| (path, body))) {
            let request = http::Request::builder().method(method).uri(format!("/{path}{place}"));
            let request = request.header("content-type", media).body(Body::from(body.as_bytes().to_vec())).unwrap();
            let code = client.send(request).await.unwrap().status().as_u16();
            assert!(
                (400..=500).contains(&code) || api.look(World::version) == before,
                "{method} {path}{place} {body}: {code}"
            );
        }
    }
}
