use super::*;
use crate::manifest::object::PODS;
use crate::workload::fixtures::object;
use serde_json::json;

fn pointers(kind: Kind, rendered: Value, live: Value) -> Vec<String> {
    differs(&object(kind, "web", rendered), &object(kind, "web", live)).into_iter().map(|d| d.pointer).collect()
}

/// What a manifest says, and the same Deployment as the API server (1.34) gives it back.
fn manifest() -> Value {
    json!({
        "metadata": {"labels": {"app": "web"}, "creationTimestamp": null, "annotations": {}},
        "spec": {
            "replicas": 2,
            "paused": false,
            "minReadySeconds": 0,
            "selector": {"matchLabels": {"app": "web"}},
            "strategy": {},
            "template": {
                "metadata": {"labels": {"app": "web"}, "creationTimestamp": null},
                "spec": {
                    "hostNetwork": false,
                    "nodeSelector": {},
                    "tolerations": [],
                    "containers": [{
                        "name": "web",
                        "image": "web:1",
                        "args": ["--port", "80"],
                        "env": [{"name": "EMPTY", "value": ""}, {"name": "B", "value": "2"}],
                        "ports": [{"containerPort": 80}],
                        "resources": {"requests": {"cpu": "1000m", "memory": "0.5Gi"}, "limits": {"cpu": 2}},
                        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
                    }],
                    "volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": "1024Mi"}}],
                },
            },
        },
        "status": {},
    })
}

fn live() -> Value {
    json!({
        "metadata": {
            "labels": {"app": "web"}, "uid": "u", "resourceVersion": "12", "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z", "annotations": {"deployment.kubernetes.io/revision": "1"},
        },
        "spec": {
            "replicas": 2,
            "progressDeadlineSeconds": 600,
            "revisionHistoryLimit": 10,
            "selector": {"matchLabels": {"app": "web"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "containers": [
                        {"name": "injected", "image": "proxy:1"},
                        {
                            "name": "web",
                            "image": "web:1",
                            "imagePullPolicy": "IfNotPresent",
                            "args": ["--port", "80"],
                            "env": [{"name": "ADDED", "value": "x"}, {"name": "B", "value": "2"}, {"name": "EMPTY"}],
                            "ports": [{"containerPort": 80, "protocol": "TCP"}],
                            "resources": {"requests": {"cpu": "1", "memory": "512Mi"}, "limits": {"cpu": "2"}},
                            "terminationMessagePath": "/dev/termination-log",
                            "volumeMounts": [{"name": "token", "mountPath": "/t"}, {"name": "tmp", "mountPath": "/tmp"}],
                        },
                    ],
                    "dnsPolicy": "ClusterFirst",
                    "restartPolicy": "Always",
                    "securityContext": {},
                    "volumes": [{"name": "token"}, {"name": "tmp", "emptyDir": {"sizeLimit": "1Gi"}}],
                },
            },
        },
        "status": {"replicas": 2, "observedGeneration": 1},
    })
}

#[test]
fn c_25_what_the_api_server_gives_back_is_no_difference() {
    assert_eq!(pointers(Kind::Deployment, manifest(), live()), Vec::<String>::new());
}

#[test]
fn every_change_of_a_rendered_field_is_a_difference() {
    let container = "/spec/template/spec/containers/0";
    let live_container = "/spec/template/spec/containers/1";
    let table = [
        ("/spec/replicas".to_owned(), json!(3), "/spec/replicas".to_owned()),
        ("/spec/paused".to_owned(), json!(true), "/spec/paused".to_owned()),
        ("/metadata/labels/app".to_owned(), json!("x"), "/metadata/labels/app".to_owned()),
        (format!("{live_container}/image"), json!("web:2"), format!("{container}/image")),
        (format!("{live_container}/args/1"), json!("81"), format!("{container}/args/1")),
        (format!("{live_container}/args"), json!(["--port"]), format!("{container}/args/1")),
        (format!("{live_container}/args"), json!(["--port", "80", "-v"]), format!("{container}/args/2")),
        (format!("{live_container}/env/2"), json!({"name": "EMPTY", "value": "x"}), format!("{container}/env/0/value")),
        (format!("{live_container}/env"), json!([{"name": "EMPTY"}]), format!("{container}/env/1")),
        (
            format!("{live_container}/resources/requests/cpu"),
            json!("1001m"),
            format!("{container}/resources/requests/cpu"),
        ),
        (format!("{live_container}/ports/0/protocol"), json!("UDP"), format!("{container}/ports/0")),
        (format!("{live_container}/name"), json!("other"), container.to_owned()),
        (
            "/spec/template/spec/volumes/1".to_owned(),
            json!({"name": "tmp", "hostPath": {"path": "/"}}),
            "/spec/template/spec/volumes/0/emptyDir".to_owned(),
        ),
    ];
    for (change, value, expected) in table {
        let mut changed = live();
        match changed.pointer_mut(&change) {
            Some(at) => *at = value,
            None => {
                let (parent, key) = change.rsplit_once('/').unwrap();
                changed.pointer_mut(parent).unwrap()[key] = value;
            }
        }
        assert_eq!(pointers(Kind::Deployment, manifest(), changed), [expected], "{change}");
    }
}

#[test]
fn a_difference_names_what_was_wanted_and_found() {
    let wanted = json!({"metadata": {"annotations": {"a/b~c": "1"}}, "data": {"k": ""}});
    let rendered = object(Kind::ConfigMap, "c", wanted);
    let live = object(Kind::ConfigMap, "c", json!({"metadata": {"annotations": {"a/b~c": "2"}}, "data": {}}));
    let expected = vec![
        Difference { pointer: "/metadata/annotations/a~1b~0c".into(), wanted: json!("1"), found: Some(json!("2")) },
        Difference { pointer: "/data/k".into(), wanted: json!(""), found: None },
    ];
    let mut found = differs(&rendered, &live);
    found.sort_by(|a, b| b.pointer.cmp(&a.pointer));
    assert_eq!(found, expected);
}

#[test]
fn zero_values_count_where_leaving_them_out_means_something_else() {
    let pod = |spec: Value| json!({"spec": {"template": {"spec": spec}}});
    let table = [
        (json!({"automountServiceAccountToken": false}), json!({}), 1),
        (json!({"shareProcessNamespace": false}), json!({}), 0),
        (json!({"securityContext": {"runAsUser": 0}}), json!({"securityContext": {}}), 1),
        (json!({"volumes": [{"name": "a", "emptyDir": {}}]}), json!({"volumes": [{"name": "a"}]}), 1),
        (json!({"nodeSelector": {"gpu": ""}}), json!({"nodeSelector": {}}), 1),
        (json!({"imagePullSecrets": []}), json!({"imagePullSecrets": [{"name": "x"}]}), 0),
    ];
    for (rendered, live, expected) in table {
        let found = pointers(Kind::Deployment, pod(rendered.clone()), pod(live));
        assert_eq!(found.len(), expected, "{rendered}: {found:?}");
    }
}

#[test]
fn c_25_what_the_server_allocates_for_a_service_is_no_difference() {
    let rendered = json!({"spec": {
        "clusterIP": "", "selector": {"app": "web"},
        "ports": [{"port": 443, "nodePort": 0}, {"port": 80, "targetPort": "http", "protocol": "TCP"}],
    }});
    let live = json!({"spec": {
        "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "type": "NodePort", "selector": {"app": "web"},
        "ports": [
            {"port": 80, "protocol": "TCP", "targetPort": "http", "nodePort": 30_001},
            {"port": 443, "protocol": "TCP", "targetPort": 443, "nodePort": 30_002},
        ],
    }});
    assert_eq!(pointers(Kind::Service, rendered.clone(), live.clone()), Vec::<String>::new());
    let mut hand = live;
    hand["spec"]["ports"][1]["targetPort"] = json!(8443);
    assert_eq!(pointers(Kind::Service, rendered, hand), Vec::<String>::new());
}

#[test]
fn a_routes_rules_agree_in_length_order_and_zero_weights() {
    let rules =
        |weight: Value| json!({"spec": {"rules": [{"backendRefs": [{"name": "web", "port": 80, "weight": weight}]}]}});
    let defaulted = |weight: u8| {
        json!({"spec": {"rules": [{
            "matches": [{"path": {"type": "PathPrefix", "value": "/"}}],
            "backendRefs": [{"group": "", "kind": "Service", "name": "web", "port": 80, "weight": weight}],
        }]}})
    };
    assert!(pointers(Kind::HttpRoute, rules(json!(0)), defaulted(0)).is_empty());
    assert_eq!(pointers(Kind::HttpRoute, rules(json!(0)), defaulted(1)), ["/spec/rules/0/backendRefs/0/weight"]);
    assert_eq!(pointers(Kind::HttpRoute, rules(json!(0)), rules(json!(null))), ["/spec/rules/0/backendRefs/0/weight"]);
    let mut longer = defaulted(0);
    longer["spec"]["rules"].as_array_mut().unwrap().push(json!({}));
    assert_eq!(pointers(Kind::HttpRoute, rules(json!(0)), longer), ["/spec/rules/1"]);
    // Rules are ours as a whole: what a hand adds to one is a difference.
    let mut mirrored = defaulted(0);
    mirrored["spec"]["rules"][0]["filters"] = json!([{"type": "RequestMirror"}]);
    mirrored["spec"]["rules"][0]["backendRefs"][0]["filters"] = json!([]);
    assert_eq!(
        pointers(Kind::HttpRoute, rules(json!(0)), mirrored),
        ["/spec/rules/0/backendRefs/0/filters", "/spec/rules/0/filters"]
    );
}

#[test]
fn an_autoscalers_metrics_compare_as_quantities() {
    let metric = |value: &str| {
        json!({"spec": {"metrics": [{"type": "Pods", "pods": {
            "metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": value},
        }}]}})
    };
    assert!(pointers(Kind::HorizontalPodAutoscaler, metric("1000"), metric("1k")).is_empty());
    assert_eq!(pointers(Kind::HorizontalPodAutoscaler, metric("1000"), metric("2k")).len(), 1);
}

#[test]
fn lists_with_a_key_twice_compare_by_place() {
    let env = |names: &[&str]| {
        let env: Vec<_> = names.iter().map(|n| json!({"name": n})).collect();
        json!({"spec": {"template": {"spec": {"containers": [{"name": "web", "env": env}]}}}})
    };
    assert!(pointers(Kind::Deployment, env(&["a", "b"]), env(&["b", "a"])).is_empty());
    assert!(pointers(Kind::Deployment, env(&["a", "a"]), env(&["a", "a"])).is_empty());
    assert!(!pointers(Kind::Deployment, env(&["a", "a"]), env(&["a"])).is_empty());
}

#[test]
fn the_digest_is_about_content_not_about_marks() {
    let plain = object(Kind::ConfigMap, "c", json!({"data": {"a": "1", "b": "2"}}));
    let digest = applied_digest(&plain);
    assert!(digest.len() == 16 && digest.bytes().all(|c| c.is_ascii_hexdigit()));
    let first = marked(plain.clone(), "prod/shop/web", 7, 2);
    assert_eq!(first.annotation(OWNER), Some("prod/shop/web"));
    assert_eq!(first.annotation(APPLIED), Some(digest.as_str()));
    assert_eq!(first.annotation(SEQ), Some("7"));
    assert_eq!(first.annotation(EPOCH), Some("2"));
    let mut again = marked(first, "prod/shop/web", 8, 3);
    again.annotate(RETREATED, "7-00000000/Failed");
    assert_eq!(applied_digest(&again), digest);
    let reordered =
        object(Kind::ConfigMap, "c", json!({"data": {"b": "2", "a": "1"}, "metadata": {"annotations": {}}}));
    assert_eq!(applied_digest(&reordered), digest);
    let mut other = plain;
    other.value_mut()["data"]["a"] = "3".into();
    assert_ne!(applied_digest(&other), digest);
    let mut labelled = object(Kind::ConfigMap, "c", json!({"data": {"a": "1", "b": "2"}}));
    labelled.value_mut()["metadata"]["labels"] = json!({PODS: "x"});
    assert_ne!(applied_digest(&labelled), digest);
}
