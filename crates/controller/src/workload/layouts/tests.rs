use super::*;
use crate::manifest::desired::Router;
use crate::workload::fixtures::{by_pods, gateway, name, namespace, object, plan, pods, reference, set};
use serde_json::json;

mod overlaps;

fn deployment(labels: &Value) -> Object {
    let template = json!({
        "metadata": {"labels": labels},
        "spec": {
            "containers": [{
                "name": "web", "image": "web:1",
                "env": [
                    {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "a"}}},
                    {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "same", "key": "b"}}},
                ],
                "envFrom": [{"configMapRef": {"name": "settings"}}, {"secretRef": {"name": "settings"}}],
            }],
            "initContainers": [{"name": "init", "envFrom": [{"configMapRef": {"name": "fresh"}}]}],
            "ephemeralContainers": [{"name": "debug", "envFrom": [{"configMapRef": {"name": "settings"}}]}],
            "volumes": [
                {"name": "v", "configMap": {"name": "settings"}},
                {"name": "p", "projected": {"sources": [
                    {"configMap": {"name": "settings"}}, {"secret": {"name": "settings"}}, {"configMap": {"name": "elsewhere"}},
                ]}},
            ],
            "affinity": {"podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "host", "labelSelector": {"matchLabels": {"app": "web"}}},
                    {"topologyKey": "host", "labelSelector": {"matchLabels": {"app": "db"}}},
                ],
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": {
                    "topologyKey": "zone",
                    "labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]},
                }}],
            }},
            "topologySpreadConstraints": [{"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}],
        },
    });
    let spec = json!({"replicas": 3, "selector": {"matchLabels": labels}, "template": template});
    let metadata = json!({
        "labels": {"app": "web", "app.kubernetes.io/managed-by": "Helm", "helm.toolkit.fluxcd.io/name": "x"},
        "annotations": {
            "meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "shop", "team": "shop",
            "argocd.argoproj.io/tracking-id": "x", "kubectl.kubernetes.io/last-applied-configuration": "{}",
        },
        "uid": "u", "resourceVersion": "1", "finalizers": ["a/b"], "ownerReferences": [{"uid": "o"}],
    });
    object(Kind::Deployment, "web", json!({"metadata": metadata, "spec": spec, "status": {"replicas": 3}}))
}

fn service(spec: Value) -> Object {
    object(Kind::Service, "web", json!({"spec": spec}))
}

fn plain_service() -> Object {
    service(json!({"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "http"}]}))
}

fn route() -> Object {
    let backend = json!({"name": "web", "port": 80});
    object(Kind::HttpRoute, "web", json!({"spec": {"rules": [{"backendRefs": [backend]}]}}))
}

fn config(name: &str, value: &str) -> Object {
    object(Kind::ConfigMap, name, json!({"data": {"a": value}, "immutable": true}))
}

fn app() -> Value {
    json!({"app": "web"})
}

fn old() -> Set {
    set([deployment(&app()), plain_service(), route(), config("settings", "1"), config("same", "1")])
}

fn new() -> Set {
    set([
        deployment(&app()),
        plain_service(),
        route(),
        config("settings", "2"),
        config("same", "1"),
        config("fresh", "1"),
        config("unused", "1"),
    ])
}

fn made(stable: &Set, new: &Set, router: Option<Router>) -> Result<BTreeMap<ObjectRef, Object>, LayoutError> {
    candidate(stable, new, &plan(router), &pods())
}

fn canary(objects: &BTreeMap<ObjectRef, Object>) -> &Object {
    &objects[&reference(Kind::Deployment, "web-canary")]
}

#[test]
fn the_candidate_has_names_labels_and_configs_of_its_own() {
    let objects = made(&old(), &new(), Some(gateway())).unwrap();
    let names: Vec<_> = objects.keys().map(ToString::to_string).collect();
    let expected = [
        "ConfigMap shop/fresh-canary",
        "ConfigMap shop/settings-canary",
        "Deployment shop/web-canary",
        "Service shop/web-canary",
    ];
    assert_eq!(names, expected);
    let canary = canary(&objects);
    assert_eq!(canary.at("/spec/selector"), Some(&json!({"matchLabels": {"app": "web-canary"}})));
    assert_eq!(
        canary.at("/spec/template/metadata/labels"),
        Some(&json!({"app": "web-canary", "tidegate.io/pods": "0123456789abcdef"}))
    );
    assert_eq!(canary.at("/spec/replicas"), None);
    assert_eq!(canary.at("/status"), None);
    let anti = "/spec/template/spec/affinity/podAntiAffinity";
    let required = format!("{anti}/requiredDuringSchedulingIgnoredDuringExecution");
    assert_eq!(canary.text(&format!("{required}/0/labelSelector/matchLabels/app")), Some("web-canary"));
    assert_eq!(canary.text(&format!("{required}/1/labelSelector/matchLabels/app")), Some("db"));
    let preferred = format!("{anti}/preferredDuringSchedulingIgnoredDuringExecution/0/podAffinityTerm");
    assert_eq!(canary.text(&format!("{preferred}/labelSelector/matchExpressions/0/values/0")), Some("web-canary"));
    let spread = "/spec/template/spec/topologySpreadConstraints/0/labelSelector/matchLabels/app";
    assert_eq!(canary.text(spread), Some("web-canary"));
}

#[test]
fn every_reference_to_a_changed_config_map_is_moved_and_no_other() {
    let objects = made(&old(), &new(), Some(gateway())).unwrap();
    let pod = canary(&objects).at("/spec/template/spec").unwrap();
    let table = [
        ("/containers/0/env/0/valueFrom/configMapKeyRef/name", "settings-canary"),
        ("/containers/0/env/1/valueFrom/configMapKeyRef/name", "same"),
        ("/containers/0/envFrom/0/configMapRef/name", "settings-canary"),
        ("/containers/0/envFrom/1/secretRef/name", "settings"),
        ("/initContainers/0/envFrom/0/configMapRef/name", "fresh-canary"),
        ("/ephemeralContainers/0/envFrom/0/configMapRef/name", "settings-canary"),
        ("/volumes/0/configMap/name", "settings-canary"),
        ("/volumes/1/projected/sources/0/configMap/name", "settings-canary"),
        ("/volumes/1/projected/sources/1/secret/name", "settings"),
        ("/volumes/1/projected/sources/2/configMap/name", "elsewhere"),
    ];
    for (pointer, expected) in table {
        assert_eq!(pod.pointer(pointer).and_then(Value::as_str), Some(expected), "{pointer}");
    }
    let copy = &objects[&reference(Kind::ConfigMap, "settings-canary")];
    assert_eq!(copy.text("/data/a"), Some("2"));
    assert_eq!(copy.at("/immutable"), None);
}

#[test]
fn labels_and_annotations_of_a_config_map_make_no_copy() {
    let mut relabelled = config("settings", "1");
    relabelled.annotate("note", "new");
    relabelled.value_mut()["binaryData"] = json!({});
    let new = set([deployment(&app()), plain_service(), route(), relabelled]);
    let objects = made(&old(), &new, Some(gateway())).unwrap();
    assert!(objects.keys().all(|r| r.kind != Kind::ConfigMap));
}

#[test]
fn copies_drop_the_marks_of_other_appliers_and_what_belongs_to_one_object() {
    let objects = made(&old(), &new(), Some(gateway())).unwrap();
    let expected = json!({
        "name": "web-canary", "namespace": "shop",
        "labels": {"app": "web", "app.kubernetes.io/managed-by": "Helm"},
        "annotations": {"team": "shop"},
    });
    assert_eq!(canary(&objects).at("/metadata"), Some(&expected));
}

#[test]
fn c_25_the_services_copy_is_reachable_inside_the_cluster_alone() {
    let ports = json!([{"port": 80, "targetPort": "http", "nodePort": 30_080, "protocol": "TCP"}]);
    let selector = json!({"app": "web", "tier": "front"});
    let table = [
        ("ClusterIP", json!({"type": "ClusterIP", "clusterIP": "10.0.0.9", "clusterIPs": ["10.0.0.9"]}), json!({})),
        ("no type", json!({"clusterIP": ""}), json!({})),
        ("headless", json!({"clusterIP": "None", "clusterIPs": ["None"]}), json!({"clusterIP": "None"})),
        ("NodePort", json!({"type": "NodePort", "externalTrafficPolicy": "Local"}), json!({})),
        (
            "LoadBalancer",
            json!({
                "type": "LoadBalancer", "loadBalancerIP": "1.2.3.4", "loadBalancerClass": "x", "healthCheckNodePort": 3,
                "loadBalancerSourceRanges": ["1.0.0.0/8"], "allocateLoadBalancerNodePorts": true,
                "externalIPs": ["1.2.3.4"], "internalTrafficPolicy": "Local",
            }),
            json!({"internalTrafficPolicy": "Local"}),
        ),
    ];
    for (what, more, kept) in table {
        let mut spec = json!({"selector": selector, "ports": ports, "sessionAffinity": "ClientIP"});
        section(&mut spec, &[]).extend(more.as_object().cloned().unwrap());
        let labels = json!({"app": "web", "tier": "front"});
        let new = set([deployment(&labels), service(spec), route()]);
        let objects = made(&new, &new, Some(gateway())).unwrap();
        let mut expected = json!({
            "type": "ClusterIP", "selector": {"app": "web-canary", "tier": "front"}, "sessionAffinity": "ClientIP",
            "ports": [{"port": 80, "targetPort": "http", "protocol": "TCP"}],
        });
        section(&mut expected, &[]).extend(kept.as_object().cloned().unwrap());
        assert_eq!(objects[&reference(Kind::Service, "web-canary")].at("/spec"), Some(&expected), "{what}");
    }
    let alias = set([deployment(&app()), service(json!({"type": "ExternalName", "externalName": "x.org"})), route()]);
    assert_eq!(made(&alias, &alias, Some(gateway())), Err(LayoutError::ExternalName { service: name("web") }));
}

#[test]
fn the_services_copy_gets_the_label_if_its_selector_lacks_it() {
    let labels = json!({"app": "web", "tier": "front"});
    let new = set([
        deployment(&labels),
        service(json!({"selector": {"tier": "front"}})),
        object(Kind::HttpRoute, "web", json!({})),
    ]);
    let objects = made(&new, &new, Some(gateway())).unwrap();
    let copy = &objects[&reference(Kind::Service, "web-canary")];
    assert_eq!(copy.at("/spec/selector"), Some(&json!({"tier": "front", "app": "web-canary"})));
}

#[test]
fn c_30_the_selector_label_is_the_first_of_the_list_that_is_there() {
    let table = [
        (json!({"zone": "a", "app": "web", "name": "n"}), "app"),
        (json!({"app.kubernetes.io/name": "x", "name": "n"}), "name"),
        (json!({"app.kubernetes.io/name": "x", "a": "1"}), "app.kubernetes.io/name"),
        (json!({"zone": "a", "cell": "b"}), "cell"),
    ];
    for (labels, key) in table {
        let open = service(json!({"selector": labels, "ports": [{"port": 80}]}));
        let new = set([deployment(&labels), open, route()]);
        let objects = made(&new, &new, Some(gateway())).unwrap();
        let selected = canary(&objects).at("/spec/selector/matchLabels").unwrap().as_object().unwrap().clone();
        for (label, value) in &selected {
            let before = labels[label].as_str().unwrap();
            let expected = if label == key { format!("{before}-canary") } else { before.to_owned() };
            assert_eq!(value, &expected, "{label} of {labels}");
        }
    }
}

#[test]
fn c_30_without_a_selector_label_nothing_is_made() {
    for selector in
        [json!({}), json!({"matchLabels": {}}), json!({"matchExpressions": [{"key": "app", "operator": "Exists"}]})]
    {
        let mut target = deployment(&app());
        target.value_mut()["spec"]["selector"] = selector;
        let new = set([target, plain_service(), route()]);
        for router in [gateway(), by_pods()] {
            let expected = Err(LayoutError::NoSelectorLabel { deployment: name("web") });
            assert_eq!(made(&new, &new, Some(router)), expected);
        }
    }
}

#[test]
fn a_service_that_is_switched_asks_for_the_label_that_tells_apart() {
    let router = || Some(Router::Service { service: name("web") });
    let objects = made(&old(), &new(), router()).unwrap();
    assert_eq!(objects[&reference(Kind::Service, "web-canary")].value()["spec"]["selector"]["app"], "web-canary");
    let labels = json!({"app": "web", "tier": "front"});
    let blind = service(json!({"selector": {"tier": "front"}, "ports": [{"port": 80}]}));
    let set = set([deployment(&labels), blind]);
    let expected = LayoutError::TellsNobodyApart { service: name("web"), key: "app".to_owned() };
    assert_eq!(made(&set, &set, router()), Err(expected));
}

#[test]
fn by_pods_the_service_selects_both_and_each_deployment_its_own() {
    let objects = made(&old(), &new(), Some(by_pods())).unwrap();
    assert!(objects.keys().all(|r| r.kind != Kind::Service));
    let canary = canary(&objects);
    let labels = json!({"app": "web", "tidegate.io/pods": "0123456789abcdef"});
    assert_eq!(canary.at("/spec/template/metadata/labels"), Some(&labels));
    assert_eq!(canary.at("/spec/selector/matchLabels"), Some(&labels));
    assert_eq!(canary.at("/spec/template/spec/topologySpreadConstraints/0/labelSelector/matchLabels"), Some(&app()));
}

/// The Deployment with a port of this number, called `http`.
fn listening(labels: &Value, port: u16) -> Object {
    let mut target = deployment(labels);
    target.value_mut()["spec"]["template"]["spec"]["containers"][0]["ports"] =
        json!([{"name": "http", "containerPort": port}]);
    target
}

fn port(target: Value) -> Value {
    json!({"port": 80, "targetPort": target})
}

/// What keeps a version whose pods have port 9090 from those of a version that had 8080.
fn moves() -> [(&'static str, Value, Value, Option<&'static str>); 9] {
    [
        ("named", port(json!("http")), port(json!("http")), None),
        ("moved", port(json!(8080)), port(json!(9090)), Some("its port 80 leads to 8080 as promoted, and to 9090")),
        ("moved and named at once", port(json!(8080)), port(json!("http")), Some("8080 as promoted, and to http")),
        ("as it was", port(json!(9090)), port(json!(9090)), None),
        ("named before", port(json!(9090)), port(json!("http")), None),
        ("no longer named", port(json!("http")), port(json!(9090)), None),
        ("called otherwise", port(json!("web")), port(json!("http")), Some("web as promoted")),
        ("its own number", json!({"port": 80}), port(json!(9090)), Some("80 as promoted, and to 9090")),
        ("of another protocol", json!({"port": 80, "protocol": "UDP"}), port(json!(9090)), None),
    ]
}

#[test]
fn where_one_service_leads_to_both_versions_its_ports_lead_to_the_new_pods_as_they_do() {
    let routers = [by_pods(), Router::Service { service: name("web") }];
    for ((what, old, new, expected), router) in
        moves().into_iter().flat_map(|row| routers.clone().map(|r| (row.clone(), r)))
    {
        let [old, new] = [(8080, old), (9090, new)].map(|(listens, port)| {
            let gone = json!({"port": listens});
            set([listening(&app(), listens), service(json!({"selector": {"app": "web"}, "ports": [gone, port]}))])
        });
        let found = made(&old, &new, Some(router)).err().map(|error| error.to_string());
        let told = found.as_deref().zip(expected).is_some_and(|(found, expected)| found.contains(expected));
        assert!(told || found.is_none() && expected.is_none(), "{what}: {found:?}");
    }
    // A route leads to a Service of the new version's own.
    let [old, new] = [8080, 9090].map(|listens| {
        let own = service(json!({"selector": {"app": "web"}, "ports": [port(json!(listens))]}));
        set([listening(&app(), listens), own, route()])
    });
    assert!(made(&old, &new, Some(gateway())).is_ok());
}

#[test]
fn before_pods_of_one_workload_every_service_keeps_its_ports() {
    for kind in [TargetKind::StatefulSet, TargetKind::DaemonSet] {
        let mut plan = plan(kind.own_router());
        plan.target.kind = kind;
        let version = |listens: u16, target: Value, app: &str| {
            let workload = object(kind.kind(), "web", listening(&json!({"app": "web"}), listens).value().clone());
            let beside = json!({"spec": {"selector": {"app": app}, "ports": [port(target)]}});
            set([workload, plain_service(), object(Kind::Service, "metrics", beside)])
        };
        let fails = |old: Set, new: Set| of_candidate(&old, &new, &plan, &Naming::Shared, &pods()).err();
        let (old, new) = (json!(8080), json!(9090));
        let moved = fails(version(8080, old.clone(), "web"), version(9090, new.clone(), "web"));
        let expected = LayoutError::PortMoves {
            service: name("metrics"),
            port: "80".to_owned(),
            old: "8080".to_owned(),
            new: "9090".to_owned(),
        };
        assert_eq!(moved, Some(expected));
        let http = || json!("http");
        assert_eq!(fails(version(8080, http(), "web"), version(9090, http(), "web")), None);
        assert_eq!(fails(version(8080, old.clone(), "other"), version(9090, new, "other")), None, "{kind:?}");
        let mut gone = version(9090, old.clone(), "web");
        gone.objects.remove(&reference(Kind::Service, "metrics"));
        assert_eq!(fails(version(8080, old, "web"), gone), None, "what is taken away leads nobody");
    }
}

#[test]
fn without_a_router_there_is_no_candidate() {
    assert_eq!(made(&old(), &new(), None), Ok(BTreeMap::new()));
}

#[test]
fn what_cannot_have_a_candidate_says_why() {
    let long = "a".repeat(57);
    let with = |objects: Vec<Object>| {
        let objects: Vec<_> = objects.into_iter().collect();
        set(objects)
    };
    let account = || {
        let mut target = deployment(&app());
        target.value_mut()["spec"]["template"]["spec"]["serviceAccountName"] = "robot".into();
        vec![target, plain_service(), route(), object(Kind::ServiceAccount, "robot", json!({}))]
    };
    let mut deaf = deployment(&app());
    deaf.value_mut()["spec"]["template"]["metadata"]["labels"] = json!({"app": "web"});
    deaf.value_mut()["spec"]["selector"]["matchLabels"] = json!({"app": "web", "tier": "front"});
    let empty_label = json!({"app": ""});
    let long_label = json!({"app": long});
    let other_port = service(json!({"selector": {"app": "web"}, "ports": [{"port": 8080}]}));
    let taken = object(Kind::Service, "web-canary", json!({}));
    let cases = [
        (with(vec![plain_service(), route()]), "no Deployment web"),
        (with(vec![deployment(&app()), route()]), "no Service web"),
        (with(vec![deployment(&app()), plain_service(), route(), taken]), "belongs to a copy"),
        (with(vec![deployment(&empty_label), plain_service(), route()]), "cannot become"),
        (with(vec![deployment(&long_label), plain_service(), route()]), "cannot become"),
        (with(vec![deaf, plain_service(), route()]), "does not select the labels of its own"),
        (with(vec![deployment(&json!({"app": "other"})), plain_service(), route()]), "nothing to split"),
        (with(vec![deployment(&app()), service(json!({})), route()]), "nothing to split"),
        (with(vec![deployment(&app()), other_port, route()]), "port 80 of Service web"),
        (with(account()), "ServiceAccount robot is new"),
    ];
    for (new, text) in cases {
        let error = made(&old(), &new, Some(gateway())).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
    assert!(made(&set(account()), &set(account()), Some(gateway())).is_ok());
    let error = copies::copy_name(&reference(Kind::Service, &long), SUFFIX).unwrap_err().to_string();
    assert!(error.contains("more than 63"), "{error}");
    assert_eq!(copies::copy_name(&reference(Kind::Service, &"a".repeat(56)), SUFFIX).unwrap().as_str().len(), 63);
    let routeless = set([deployment(&app()), plain_service()]);
    let error = made(&routeless, &new(), Some(gateway())).unwrap_err().to_string();
    assert!(error.contains("HTTPRoute web is new"), "{error}");
    let moved = set([deployment(&app()), service(json!({"selector": {"app": "old"}})), route()]);
    let error = made(&moved, &new(), Some(by_pods())).unwrap_err().to_string();
    assert!(error.contains("nothing to split"), "{error}");
}

#[test]
fn at_rest_the_cluster_looks_exactly_like_the_manifests() {
    let set = old();
    let plan = plan(Some(gateway()));
    let stable = |pods: Option<&PodsDigest>| -> BTreeMap<ObjectRef, Object> {
        let all = at_rest(&set, &plan, &Naming::InPlace, pods).unwrap();
        all.into_iter().map(|(reference, arranged)| (reference, arranged.object)).collect()
    };
    assert_eq!(stable(None), set.objects);
    let labelled = stable(Some(&pods()));
    let target = &labelled[&reference(Kind::Deployment, "web")];
    assert_eq!(pod_labels(target).get(PODS), Some(&json!("0123456789abcdef")));
    assert_eq!(target.at("/spec/selector"), set.get(Kind::Deployment, &name("web")).unwrap().at("/spec/selector"));
}

#[test]
fn c_31_sizes_are_declared_else_the_autoscalers_minimum_else_one() {
    let scaler = |kind: &str, target: &str, min: Value| {
        let spec = json!({"scaleTargetRef": {"kind": kind, "name": target}, "minReplicas": min});
        object(Kind::HorizontalPodAutoscaler, "web", json!({"spec": spec}))
    };
    let sized = |replicas: Value| {
        let mut target = deployment(&app());
        target.value_mut()["spec"]["replicas"] = replicas;
        target
    };
    let table = [
        (vec![sized(json!(3))], 3),
        (vec![sized(json!(0))], 1),
        (vec![sized(json!(null))], 1),
        (vec![sized(json!(3)), scaler("Deployment", "web", json!(5))], 3),
        (vec![sized(json!(0)), scaler("Deployment", "web", json!(5))], 5),
        (vec![sized(json!(null)), scaler("Deployment", "web", json!(null))], 1),
        (vec![sized(json!(null)), scaler("Deployment", "other", json!(5))], 1),
        (vec![sized(json!(null)), scaler("StatefulSet", "web", json!(5))], 1),
        (vec![], 1),
    ];
    for (objects, expected) in table {
        assert_eq!(declared_replicas(&set(objects.clone()), &plan(None)), expected, "{objects:?}");
    }
}

#[test]
fn sizes_are_set_or_left_out() {
    assert_eq!(with_replicas(deployment(&app()), Some(0)).int("/spec/replicas"), Some(0));
    assert_eq!(with_replicas(deployment(&app()), None).at("/spec/replicas"), None);
}
