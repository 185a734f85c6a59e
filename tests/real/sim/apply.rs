//! Field ownership as the real API server has it: stories written by hand, and generated ones.

use super::stories::{KINDS, story};
use super::twin::How::{Apply, Create, Force, Merge, Replace};
use super::twin::{Place, Write, merged};
use serde_json::{Value, json};

fn deployment(image: &str, more: Value) -> Value {
    let container = json!({"name": "app", "image": image, "ports": [{"containerPort": 8080}]});
    let mut spec = json!({
        "selector": {"matchLabels": {"app": "a"}},
        "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [container]}},
    });
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    json!({"spec": spec})
}

async fn check(kind: (&str, &str, &str), stories: &[Vec<Write>]) {
    let place = Place::new().await;
    let mut differences = Vec::new();
    for (number, story) in stories.iter().enumerate() {
        let mut twin = place.twin(kind.0, kind.1, kind.2, &format!("o{number}"));
        differences.extend(twin.run(story).await);
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[tokio::test]
async fn config_maps_are_owned_as_on_the_real_api_server() {
    let data = |pairs: Value| json!({"data": pairs});
    let stories = [
        vec![
            Write::new("a", Apply, data(json!({"k": "1", "l": "1"}))),
            Write::new("a", Apply, data(json!({"k": "1", "l": "1"}))),
            Write::new("b", Apply, data(json!({"k": "2"}))),
            Write::new("b", Apply, data(json!({"k": "1"}))),
            Write::new("b", Apply, data(json!({"k": "2", "l": "2"}))),
            Write::new("b", Force, data(json!({"k": "2", "m": "2"}))),
            Write::new("a", Apply, data(json!({"l": "1"}))),
            Write::new("a", Apply, data(json!({"k": "2"}))),
            Write::new("c", Merge, data(json!({"k": "3"}))),
            Write::new("c", Merge, data(json!({"k": "3"}))),
            Write::new("a", Apply, data(json!({"k": "4", "m": "5"}))),
            Write::new("b", Apply, json!({})),
            Write::new("a", Apply, json!({})),
            Write::new("a", Apply, json!({"data": null})),
        ],
        vec![
            Write::new(
                "a",
                Create,
                json!({"data": {"k": "1"}, "metadata": {"labels": {"x": "y"}, "finalizers": ["a/b", "c/d"]}}),
            ),
            Write::new(
                "b",
                Apply,
                json!({"metadata": {"finalizers": ["e/f", "a/b"], "labels": {"z": "1"}, "annotations": {}}}),
            ),
            Write::new("b", Apply, json!({"metadata": {"finalizers": ["e/f"], "labels": {}}})),
            Write::new("b", Apply, json!({"metadata": {"labels": {}}})),
            Write::new("a", Replace, json!({"data": {"k": "2"}, "metadata": {"finalizers": null}})),
            Write::new("a", Replace, json!({"metadata": {"managedFields": []}})),
            Write::new("d", Merge, json!({"data": {"k": "7"}})),
            Write::new("b", Apply, json!({"data": {"k": "5"}})),
            Write::new("b", Force, json!({"data": {"k": "5"}})),
        ],
        vec![
            Write::new("a", Apply, json!({"data": {"k": 5}})),
            Write::new("a", Apply, json!({"dat": {"k": "5"}})),
            Write::new("a", Apply, json!({"data": []})),
            Write::new("a", Apply, json!({"metadata": {"finalizers": ["a/b", "a/b"]}})),
            Write::new("a", Apply, json!({"metadata": {"managedFields": []}})),
            Write::new("a", Apply, json!({"kind": "Secret"})),
            Write::new("a", Apply, json!({"immutable": "yes"})),
            Write::new("a", Apply, json!({"data": {"k": true}})),
            Write::new("a", Apply, json!({"data": {"k": ["x", 1]}})),
            Write::new("a", Apply, json!({"data": {"k": {"x": 1, "a": null}}})),
            Write::new("a", Apply, json!({"metadata": {"finalizers": [{"a": 1}]}})),
            Write::new("a", Apply, json!({"metadata": {"finalizers": [null]}})),
            Write::new("a", Apply, json!({"metadata": {"finalizers": [["x"]]}})),
            Write::new("a", Apply, json!({"metadata": {"ownerReferences": ["x"]}})),
            Write::new("a", Apply, json!({"metadata": {"ownerReferences": [null]}})),
            Write::new("a", Apply, json!({"metadata": {"generation": "x"}})),
        ],
    ];
    check(("v1", "ConfigMap", "configmaps"), &stories).await;
}

#[tokio::test]
async fn entries_are_kept_as_on_the_real_api_server() {
    let data = |key: &str, value: &str| json!({"data": {key: value}});
    let many = ["m01", "m02", "m03", "m04", "m05", "m06", "m07", "m08", "m09", "m10", "m11", "m12", "m13"];
    let crowd = many.iter().map(|manager| Write::new(manager, Merge, data(manager, "1")));
    let apply = Write::new("a", Apply, data("a", "1"));
    let mut crowd: Vec<Write> = std::iter::once(apply.clone()).chain(crowd).collect();
    crowd.extend([Write::new("m05", Merge, data("m05", "2")), Write::new("b", Force, data("m01", "2"))]);
    let entry = |manager: &str, fields: Value| {
        let who = json!({"manager": manager, "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1"});
        merged(&who, &json!({"fieldsV1": fields}))
    };
    let entries = |entries: Value| json!({"metadata": {"managedFields": entries}});
    let stories = [
        crowd,
        vec![
            apply.clone(),
            Write::new("b", Merge, entries(json!([{}]))),
            Write::new("c", Merge, data("c", "1")),
            apply.clone(),
        ],
        vec![
            apply.clone(),
            Write::new("b", Merge, entries(json!([entry("x", json!({"f:data": {".": {}, "f:a": {}, "z:y": {}}}))]))),
            Write::new("b", Merge, entries(json!([entry("x", json!({"f:data": {"f": {}}}))]))),
            Write::new("b", Merge, entries(json!([entry("x", json!({"f:data": {"f:gone": {}}}))]))),
            apply.clone(),
            Write::new("a", Force, data("a", "1")),
        ],
        vec![
            Write::new("a", Create, data("a", "1")),
            Write::new("b", Replace, entries(json!([]))),
            Write::new("b", Replace, data("a", "2")),
            Write::new("b", Apply, data("a", "2")),
            Write::new("b", Apply, json!({})),
        ],
    ];
    check(("v1", "ConfigMap", "configmaps"), &stories).await;
    let hosts = |hosts: Value| json!({"spec": {"hostnames": hosts}});
    let routes = [vec![
        Write::new("a", Apply, hosts(json!(["a"]))),
        Write::new("b", Merge, entries(json!([{}]))),
        Write::new("b", Merge, hosts(json!(["b"]))),
        Write::new("a", Apply, hosts(json!(["a"]))),
    ]];
    check(("gateway.networking.k8s.io/v1", "HTTPRoute", "httproutes"), &routes).await;
}

/// A Deployment whose container has this `env`.
fn with_env(env: Value) -> Value {
    let mut object = deployment("a:1", json!({}));
    object["spec"]["template"]["spec"]["containers"][0]["env"] = env;
    object
}

#[tokio::test]
async fn deployments_are_owned_as_on_the_real_api_server() {
    let stories = [
        vec![
            Write::new("a", Apply, deployment("a:1", json!({"replicas": 2}))),
            Write::new("a", Apply, deployment("a:1", json!({"replicas": 2}))),
            Write::new("hpa", Merge, json!({"spec": {"replicas": 3}})),
            Write::new("a", Apply, deployment("a:2", json!({"replicas": 2}))),
            Write::new("a", Apply, deployment("a:2", json!({}))),
            Write::new("b", Apply, deployment("a:3", json!({"replicas": 3}))),
            Write::new("b", Force, deployment("a:3", json!({"replicas": 3, "paused": true}))),
            Write::new("a", Apply, json!({})),
            Write::status("ctl", Merge, json!({"status": {"replicas": 3, "observedGeneration": 1}})),
            Write::status("ctl", Apply, json!({"status": {"readyReplicas": 2}})),
            Write::new("ctl", Apply, json!({"status": {"readyReplicas": 3}, "metadata": {"labels": {"x": "1"}}})),
            Write::status(
                "ctl",
                Merge,
                json!({"spec": {"replicas": 9}, "metadata": {"annotations": {"r": "1"}, "labels": {"q": "1"}}}),
            ),
        ],
        vec![
            Write::new("a", Create, deployment("a", json!({"strategy": {"type": "Recreate"}}))),
            Write::new(
                "a",
                Replace,
                json!({"spec": {"minReadySeconds": 0, "paused": false, "strategy": {"type": "RollingUpdate"}}}),
            ),
            Write::new("b", Apply, with_env(json!([{"name": "A", "value": "1"}, {"name": "B", "value": ""}]))),
            Write::new("b", Force, with_env(json!([{"name": "A", "value": "1"}, {"name": "B", "value": ""}]))),
            Write::new("c", Apply, with_env(json!([{"name": "C", "value": "1"}, {"name": "A", "value": "1"}]))),
            Write::new("b", Apply, with_env(json!([{"name": "B", "value": "2"}, {"name": "D", "value": "2"}]))),
            Write::new("b", Apply, with_env(json!([{"name": "B", "value": "2"}, {"name": "B", "value": "2"}]))),
            Write::new("b", Apply, with_env(json!([{"value": "2"}]))),
            Write::new("b", Apply, deployment("a:9", json!({"selector": {"matchLabels": {"app": "other"}}}))),
            Write::new("b", Force, deployment("a:9", json!({"selector": {"matchLabels": {"app": "other"}}}))),
            Write::new("b", Force, json!({"spec": {"template": {"metadata": {"labels": {"app": "b"}}}}})),
            Write::new("b", Force, json!({"spec": {"replicas": -1}})),
        ],
    ];
    check(("apps/v1", "Deployment", "deployments"), &stories).await;
}

#[tokio::test]
async fn items_of_lists_are_owned_and_ordered_as_on_the_real_api_server() {
    let stories = [
        // Items that are there more than once.
        vec![
            Write::new(
                "a",
                Create,
                with_env(
                    json!([{"name": "A", "value": "1"}, {"name": "A", "value": "2"}, {"name": "B", "value": "1"}]),
                ),
            ),
            Write::new("b", Apply, with_env(json!([{"name": "C", "value": "1"}]))),
            Write::new("b", Force, with_env(json!([{"name": "C", "value": "1"}, {"name": "A", "value": "1"}]))),
            Write::new("a", Replace, with_env(json!([{"name": "A", "value": "3"}, {"name": "A", "value": "4"}]))),
            Write::new("c", Replace, with_env(json!([{"name": "A", "value": "3"}, {"name": "A", "value": "5"}]))),
            Write::new("c", Replace, with_env(json!([{"name": "A", "value": "3"}]))),
            Write::new("b", Apply, with_env(json!([{"name": "C", "value": "1"}]))),
        ],
        vec![
            Write::new("a", Create, with_env(json!([{"name": "A"}, {"name": "A"}, {"name": "B"}]))),
            Write::new("b", Force, with_env(json!([{"name": "A"}, {"name": "X"}]))),
        ],
        // The order of items.
        vec![
            Write::new("a", Apply, with_env(json!([{"name": "A"}, {"name": "B"}, {"name": "C"}, {"name": "D"}]))),
            Write::new(
                "b",
                Apply,
                with_env(json!([{"name": "X"}, {"name": "D"}, {"name": "Y"}, {"name": "B"}, {"name": "Z"}])),
            ),
            Write::new(
                "c",
                Apply,
                with_env(json!([{"name": "Z"}, {"name": "1"}, {"name": "X"}, {"name": "A"}, {"name": "2"}])),
            ),
            Write::new("b", Apply, with_env(json!([{"name": "Z"}, {"name": "X"}]))),
        ],
    ];
    check(("apps/v1", "Deployment", "deployments"), &stories).await;
}

#[tokio::test]
async fn what_does_not_fit_is_refused_as_on_the_real_api_server() {
    let stories = [vec![
        Write::new("a", Apply, with_env(json!({"a": 1}))),
        Write::new("a", Apply, with_env(json!([{"nam": "A"}]))),
        Write::new("a", Apply, with_env(json!([{"name": "A", "x": 1}]))),
        Write::new("a", Apply, deployment("a:1", json!({"replicas": "1"}))),
        Write::new("a", Apply, deployment("a:1", json!({"template": 7}))),
        Write::new("a", Apply, deployment("a:1", json!({"selector": {"matchLabels": {"app": 7}}}))),
        Write::new("a", Apply, deployment("", json!({}))),
        Write::new("a", Create, deployment("a:1", json!({"template": {"spec": {"containers": []}}}))),
    ]];
    check(("apps/v1", "Deployment", "deployments"), &stories).await;
}

#[tokio::test]
async fn other_kinds_are_owned_as_on_the_real_api_server() {
    let spec = |spec: Value| json!({"spec": spec});
    let service = [vec![
        Write::new("a", Apply, spec(json!({"selector": {"app": "a"}, "ports": [{"port": 80, "name": "http"}]}))),
        Write::new("a", Apply, spec(json!({"selector": {"app": "a"}, "ports": [{"port": 80, "name": "http"}]}))),
        Write::new("b", Apply, spec(json!({"selector": {"app": "b"}}))),
        Write::new(
            "b",
            Force,
            spec(json!({"selector": {"app": "b"}, "ports": [{"port": 81, "name": "x", "targetPort": "y"}]})),
        ),
        Write::new("c", Merge, spec(json!({"sessionAffinity": "ClientIP"}))),
        Write::new("b", Apply, spec(json!({"selector": {"app": "b"}}))),
        Write::status("s", Merge, json!({"status": {"loadBalancer": {}}})),
    ]];
    check(("v1", "Service", "services"), &service).await;
    let hpa = |more: Value| {
        let mut spec =
            json!({"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}, "maxReplicas": 3});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"spec": spec})
    };
    let scalers = [
        vec![
            Write::new("a", Apply, hpa(json!({}))),
            Write::new(
                "a",
                Apply,
                hpa(json!({"minReplicas": 2, "behavior": {"scaleUp": {"stabilizationWindowSeconds": 5}}})),
            ),
            Write::new("b", Merge, spec(json!({"maxReplicas": 5}))),
            Write::new("a", Apply, hpa(json!({}))),
        ],
        vec![Write::new("b", Create, hpa(json!({"behavior": {"scaleDown": {"selectPolicy": "Disabled"}}})))],
    ];
    check(("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"), &scalers).await;
    let reference = |name: &str, weight: i32| json!({"name": name, "port": 80, "weight": weight});
    let rules = |a: i32, b: i32| json!([{"backendRefs": [reference("a", a), reference("b", b)]}]);
    let routes = [
        vec![
            Write::new("a", Apply, spec(json!({"parentRefs": [{"name": "gw"}], "rules": rules(100, 0)}))),
            Write::new("a", Apply, spec(json!({"parentRefs": [{"name": "gw"}], "rules": rules(100, 0)}))),
            Write::new("a", Apply, spec(json!({"parentRefs": [{"name": "gw"}], "rules": rules(90, 10)}))),
            Write::new("b", Apply, spec(json!({"rules": rules(80, 20), "hostnames": ["x"]}))),
            Write::new("b", Force, spec(json!({"rules": rules(80, 20), "hostnames": ["x"]}))),
            Write::new("a", Apply, spec(json!({"hostnames": ["x"]}))),
            Write::status(
                "gw",
                Merge,
                json!({"status": {"parents": [{"parentRef": {"name": "gw"}, "controllerName": "x/y"}]}}),
            ),
            Write::status("gw", Apply, json!({"status": {"parents": []}, "spec": {"hostnames": []}})),
            Write::new("b", Apply, json!({"metadata": {"labels": {"a": "b"}}})),
        ],
        vec![
            Write::new("a", Create, spec(json!({"parentRefs": [{"name": "gw"}], "unknown": 1}))),
            Write::new("a", Merge, spec(json!({"hostnames": []}))),
            Write::new("b", Apply, spec(json!({"unknown": 1}))),
        ],
    ];
    check(("gateway.networking.k8s.io/v1", "HTTPRoute", "httproutes"), &routes).await;
}

/// A pod template that uses much of what has defaults.
fn rich_template() -> Value {
    let hook = json!({"httpGet": {"port": 80}});
    let container = json!({
        "name": "app", "image": "a", "env": [
            {"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "R", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
            {"name": "S", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        ],
        "envFrom": [{"configMapRef": {"name": "c"}}],
        "ports": [{"containerPort": 80, "hostIP": ""}, {"containerPort": 53, "protocol": "UDP", "name": "dns"}],
        "livenessProbe": hook, "startupProbe": {"exec": {"command": ["a"]}, "timeoutSeconds": 0},
        "readinessProbe": {"grpc": {"port": 80}}, "lifecycle": {"preStop": hook, "postStart": {"sleep": {"seconds": 1}}},
        "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}, "requests": {"cpu": "0.5", "memory": 1000000}},
        "volumeMounts": [{"name": "c", "mountPath": "/c", "readOnly": true}], "stdin": false, "workingDir": "",
    });
    let sources = json!([
        {"configMap": {"name": "c"}}, {"serviceAccountToken": {"path": "t"}},
        {"downwardAPI": {"items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]}},
    ]);
    let volumes = json!([
        {"name": "c", "configMap": {"name": "c", "items": []}}, {"name": "s", "secret": {"secretName": "s"}},
        {"name": "h", "hostPath": {"path": "/h"}}, {"name": "p", "projected": {"sources": sources}}, {"name": "e"},
    ]);
    let spread = json!([{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}]);
    let spec = json!({
        "containers": [container], "initContainers": [{"name": "init", "image": "i:1", "command": ["x"]}],
        "volumes": volumes, "topologySpreadConstraints": spread, "tolerations": [{"operator": "Exists"}],
        "securityContext": {"runAsUser": 0}, "serviceAccount": "old", "hostNetwork": false, "nodeSelector": {},
    });
    json!({"metadata": {"labels": {"app": "a"}, "annotations": {}}, "spec": spec})
}

#[tokio::test]
async fn what_has_defaults_is_stored_as_by_the_real_api_server() {
    let stories = |body: Value, patch: Value| {
        [
            vec![
                Write::new("a", Create, body.clone()),
                Write::new("b", Apply, body.clone()),
                Write::new("a", Merge, patch.clone()),
            ],
            vec![
                Write::new("b", Apply, body.clone()),
                Write::new("b", Apply, body),
                Write::new("b", Force, patch),
                Write::new("b", Apply, json!({"metadata": {"labels": {"x": "y"}}})),
            ],
        ]
    };
    let spec = |spec: Value| json!({"spec": spec});
    let selector = json!({"matchLabels": {"app": "a"}});
    let workload = || json!({"selector": selector, "template": rich_template()});
    let endpoints = json!([{"addresses": ["10.0.0.1"], "conditions": {"ready": true}}, {"addresses": ["10.0.0.2"]}]);
    let slice = json!({"addressType": "IPv4", "endpoints": endpoints, "ports": [{"port": 80}]});
    let rules = json!([{"from": [{"podSelector": {}}], "ports": [{"port": 80}]}]);
    let lease = json!({"holderIdentity": "", "leaseDurationSeconds": 5, "renewTime": "2026-01-01T00:00:00.000001Z"});
    for (kind, body, patch) in [
        (("apps/v1", "Deployment", "deployments"), spec(workload()), spec(json!({"replicas": 0}))),
        (("apps/v1", "ReplicaSet", "replicasets"), spec(workload()), spec(json!({"replicas": 0}))),
        (
            ("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets"),
            spec(json!({"selector": selector, "minAvailable": "50%"})),
            spec(json!({"minAvailable": 1})),
        ),
        (
            ("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies"),
            spec(json!({"podSelector": {}, "ingress": rules, "egress": [{}]})),
            spec(json!({"egress": null})),
        ),
        (
            ("discovery.k8s.io/v1", "EndpointSlice", "endpointslices"),
            slice,
            json!({"addressType": "IPv4", "endpoints": null, "ports": []}),
        ),
        (("coordination.k8s.io/v1", "Lease", "leases"), spec(lease), spec(json!({"leaseTransitions": 0}))),
        (
            ("v1", "ServiceAccount", "serviceaccounts"),
            json!({"secrets": [{"name": "a"}], "imagePullSecrets": [{"name": "b"}]}),
            json!({"automountServiceAccountToken": false}),
        ),
    ] {
        check(kind, &stories(body, patch)).await;
    }
}

/// How many stories of each kind are told.
///
/// `TIDEGATE_SEEDS=<n>` tells more of them than every test run can afford.
fn numbers() -> std::ops::Range<u64> {
    0..option_env!("TIDEGATE_SEEDS").and_then(|n| n.parse().ok()).unwrap_or(20)
}

#[tokio::test]
async fn made_up_stories_end_as_on_the_real_api_server() {
    let place = Place::new().await;
    let mut differences = Vec::new();
    for kind in &KINDS {
        let (version, name, plural) = kind.gvr;
        for number in numbers() {
            let mut twin = place.twin(version, name, plural, &format!("s{number}"));
            differences.extend(twin.run(&story(kind, number)).await);
        }
    }
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}
