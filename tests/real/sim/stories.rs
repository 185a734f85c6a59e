//! Made-up writes: who writes what, how, in which order.

use super::twin::How::{Apply, Create, Force, Merge, Replace};
use super::twin::{How, Write};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proptest::strategy::{BoxedStrategy, ValueTree as _};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Map, Value, json};

/// Something to write.
type Values = BoxedStrategy<Value>;

const MANAGERS: [&str; 4] = ["a", "b", "c", "a-b"];

/// A kind: what is created first, and what is written then.
pub(super) struct Kind {
    pub(super) gvr: (&'static str, &'static str, &'static str),
    whole: fn() -> Values,
    part: fn() -> Values,
    status: Option<fn() -> Values>,
}

/// The kinds that stories are about.
pub(super) const KINDS: [Kind; 5] = [
    Kind { gvr: ("v1", "ConfigMap", "configmaps"), whole: config_map, part: config_map, status: None },
    Kind {
        gvr: ("apps/v1", "Deployment", "deployments"),
        whole: whole_deployment,
        part: deployment,
        status: Some(deployment_status),
    },
    Kind { gvr: ("v1", "Service", "services"), whole: whole_service, part: service, status: Some(service_status) },
    Kind {
        gvr: ("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"),
        whole: whole_scaler,
        part: scaler,
        status: None,
    },
    Kind {
        gvr: ("gateway.networking.k8s.io/v1", "HTTPRoute", "httproutes"),
        whole: whole_route,
        part: route,
        status: Some(route_status),
    },
];

/// The story of that number: always the same.
pub(super) fn story(kind: &Kind, number: u64) -> Vec<Write> {
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&number.to_le_bytes());
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let mut runner = TestRunner::new_with_rng(Config::default(), random);
    let first =
        (writer(vec![Create, Apply]), (kind.whole)()).prop_map(|((manager, how), body)| Write::new(manager, how, body));
    let part = (kind.part)();
    let more = (writer(vec![Apply, Apply, Apply, Force, Force, Replace]), part.clone());
    let more = more.prop_map(|((manager, how), body)| Write::new(manager, how, body));
    let patch =
        (writer(vec![Merge, Replace]), holes(part)).prop_map(|((manager, how), body)| Write::new(manager, how, body));
    let forget = Just(Write::new("d", Replace, json!({"metadata": {"managedFields": []}})));
    let mut next = prop_oneof![8 => more, 3 => patch, 1 => forget].boxed();
    if let Some(status) = kind.status {
        let status = (writer(vec![Apply, Force, Merge, Replace]), status());
        let status = status.prop_map(|((manager, how), body)| Write::status(manager, how, body));
        next = prop_oneof![6 => next, 1 => status].boxed();
    }
    let (first, rest) = (first, vec(next, 8..16)).new_tree(&mut runner).unwrap().current();
    std::iter::once(first).chain(rest).collect()
}

fn writer(hows: Vec<How>) -> impl Strategy<Value = (&'static str, How)> {
    (select(&MANAGERS[..]), select(hows))
}

/// An object with some of these fields.
fn some(fields: Vec<(&'static str, Values)>) -> Values {
    let fields: Vec<_> = fields.into_iter().map(|(name, value)| (Just(name), proptest::option::of(value))).collect();
    fields.prop_map(object).boxed()
}

/// An object with all of these fields.
fn all(fields: Vec<(&'static str, Values)>) -> Values {
    let fields: Vec<_> = fields.into_iter().map(|(name, value)| (Just(name), value.prop_map(Some))).collect();
    fields.prop_map(object).boxed()
}

fn object(fields: Vec<(&'static str, Option<Value>)>) -> Value {
    let fields = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(fields.collect::<Map<_, _>>())
}

fn one_of(values: Value) -> Values {
    select(values.as_array().unwrap().clone()).boxed()
}

/// Some of these items, in some order.
fn list(items: Vec<Values>) -> Values {
    let number = items.len();
    (items, subsequence((0..number).collect::<Vec<_>>(), 0..=number).prop_shuffle())
        .prop_map(|(items, picked)| picked.into_iter().map(|place| items[place].clone()).collect())
        .boxed()
}

/// With null where something stands.
fn holes(values: Values) -> Values {
    fn pierce(value: &mut Value, left: &mut u8) {
        let Value::Object(fields) = value else { return };
        for (_, inner) in fields.iter_mut().filter(|(name, _)| *name != "metadata") {
            *left = left.wrapping_sub(1);
            if *left == 0 {
                *inner = Value::Null;
            } else {
                pierce(inner, left);
            }
        }
    }
    (values, 1..12_u8)
        .prop_map(|(mut value, mut left)| {
            pierce(&mut value, &mut left);
            value
        })
        .boxed()
}

fn metadata() -> Values {
    let text = || one_of(json!(["1", "2", ""]));
    let owner = |uid: &str| {
        all(vec![
            ("apiVersion", one_of(json!(["v1"]))),
            ("kind", one_of(json!(["ConfigMap"]))),
            ("name", one_of(json!(["x", "y"]))),
            ("uid", one_of(json!([uid]))),
        ])
    };
    some(vec![
        ("labels", some(vec![("x", text()), ("y", text())])),
        ("annotations", some(vec![("x/y.z", text())])),
        ("finalizers", list(vec![one_of(json!(["a/b"])), one_of(json!(["c/d"])), one_of(json!(["e/f"]))])),
        ("ownerReferences", list(vec![owner("u1"), owner("u2")])),
    ])
}

fn config_map() -> Values {
    let text = || one_of(json!(["1", "2", "", "<&>"]));
    some(vec![
        ("metadata", metadata()),
        ("data", some(vec![("k", text()), ("l", text()), ("m.n", text())])),
        ("binaryData", some(vec![("b", one_of(json!(["AQ==", "Ag=="])))])),
        ("immutable", one_of(json!([false]))),
    ])
}

fn deployment_spec() -> Vec<(&'static str, Values)> {
    vec![
        ("replicas", one_of(json!([0, 1, 2]))),
        ("paused", one_of(json!([true, false]))),
        ("minReadySeconds", one_of(json!([0, 5]))),
        ("revisionHistoryLimit", one_of(json!([10, 2]))),
        (
            "strategy",
            one_of(json!([
                {}, {"type": "RollingUpdate"}, {"rollingUpdate": {"maxSurge": 1}},
                {"rollingUpdate": {"maxSurge": "30%", "maxUnavailable": 0}},
            ])),
        ),
    ]
}

fn container(name: &'static str) -> Values {
    let env = |name: &str| {
        let value = json!({"name": name});
        let from = json!({"fieldRef": {"fieldPath": "metadata.name"}});
        let values = json!([
            value, {"name": name, "value": "1"}, {"name": name, "value": ""}, {"name": name, "value": "2"},
            {"name": name, "valueFrom": from},
        ]);
        one_of(values)
    };
    let mut fields = vec![
        ("imagePullPolicy", one_of(json!(["Always", "IfNotPresent"]))),
        ("args", one_of(json!([[], ["x"], ["x", "y"]]))),
        ("env", list(vec![env("A"), env("B"), env("C")])),
        (
            "ports",
            list(vec![
                one_of(json!([
                    {"containerPort": 80}, {"containerPort": 80, "name": "h"}, {"containerPort": 80, "protocol": "TCP"},
                ])),
                one_of(json!([{"containerPort": 80, "protocol": "UDP"}, {"containerPort": 81, "hostPort": 0}])),
            ]),
        ),
        ("resources", one_of(json!([{}, {"limits": {"cpu": "1"}}, {"requests": {"memory": "1Gi"}, "limits": {}}]))),
        (
            "readinessProbe",
            one_of(json!([
                {"httpGet": {"port": 80}}, {"httpGet": {"port": "h", "path": "/r"}, "initialDelaySeconds": 0},
                {"tcpSocket": {"port": 80}, "periodSeconds": 3},
            ])),
        ),
        ("securityContext", one_of(json!([{}, {"runAsNonRoot": true}, {"capabilities": {"drop": ["ALL"]}}]))),
        (
            "volumeMounts",
            list(vec![one_of(
                json!([{"name": "v", "mountPath": "/v"}, {"name": "v", "mountPath": "/v", "readOnly": false}]),
            )]),
        ),
    ];
    fields.truncate(8);
    (some(fields), one_of(json!(["a:1", "a:2", "a", "r:5000/a", "a@sha256:0"])))
        .prop_map(move |(mut container, image)| {
            container["name"] = name.into();
            container["image"] = image;
            container
        })
        .boxed()
}

fn template() -> Values {
    let volumes = one_of(json!([
        [{"name": "v"}], [{"name": "v", "emptyDir": {}}, {"name": "c", "configMap": {"name": "x"}}],
        [{"name": "v", "emptyDir": {}}],
        [{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}],
    ]));
    let spec = all(vec![("containers", list(vec![container("app"), container("side")])), ("volumes", volumes)]);
    let more = some(vec![
        ("terminationGracePeriodSeconds", one_of(json!([30, 5]))),
        ("hostNetwork", one_of(json!([false]))),
        ("nodeSelector", one_of(json!([{}, {"a": "b"}]))),
        ("tolerations", one_of(json!([[], [{"key": "a", "operator": "Exists"}]]))),
        ("serviceAccountName", one_of(json!(["x", ""]))),
        ("imagePullSecrets", list(vec![one_of(json!([{"name": "p"}])), one_of(json!([{"name": "q"}]))])),
        ("affinity", one_of(json!([{}, {"podAntiAffinity": {}}]))),
    ]);
    let annotations = some(vec![("annotations", one_of(json!([{}, {"x": "1"}])))]);
    (spec, more, annotations)
        .prop_map(|(mut spec, more, metadata)| {
            spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!({"metadata": metadata, "spec": spec})
        })
        .boxed()
}

fn deployment() -> Values {
    let mut spec = deployment_spec();
    spec.push(("template", template()));
    some(vec![("metadata", metadata()), ("spec", some(spec))])
}

fn whole_deployment() -> Values {
    (deployment(), container("app"), template())
        .prop_map(|(mut whole, container, mut template)| {
            template["metadata"]["labels"] = json!({"app": "a"});
            template["spec"]["containers"] = json!([container]);
            whole["spec"]["template"] = template;
            whole["spec"]["selector"] = json!({"matchLabels": {"app": "a"}});
            whole
        })
        .boxed()
}

fn deployment_status() -> Values {
    let condition = |kind: &str| {
        one_of(json!([{"type": kind, "status": "True"}, {"type": kind, "status": "False", "reason": "x"}]))
    };
    some(vec![
        ("metadata", metadata()),
        (
            "status",
            some(vec![
                ("replicas", one_of(json!([0, 1]))),
                ("observedGeneration", one_of(json!([1, 2]))),
                ("conditions", list(vec![condition("Available"), condition("Progressing")])),
            ]),
        ),
        ("spec", some(deployment_spec())),
    ])
}

fn service() -> Values {
    let port = |number: u16, name: &str| {
        one_of(json!([
            {"port": number, "name": name}, {"port": number, "name": name, "protocol": "TCP"},
            {"port": number, "name": name, "targetPort": "x"}, {"port": number, "name": name, "targetPort": 0},
            {"port": number, "name": name, "appProtocol": "http"},
        ]))
    };
    let spec = some(vec![
        ("selector", some(vec![("app", one_of(json!(["a", "b"]))), ("x", one_of(json!(["y"])))])),
        ("ports", list(vec![port(80, "a"), port(81, "b"), port(82, "c")])),
        ("sessionAffinity", one_of(json!(["None", "ClientIP"]))),
        ("publishNotReadyAddresses", one_of(json!([true, false]))),
        ("externalIPs", one_of(json!([[], ["192.0.2.1"]]))),
    ]);
    some(vec![("metadata", metadata()), ("spec", spec)])
}

fn whole_service() -> Values {
    service()
        .prop_map(|mut whole| {
            whole["spec"]["ports"] = json!([{"port": 80, "name": "a"}]);
            whole
        })
        .boxed()
}

fn service_status() -> Values {
    let condition = json!({
        "type": "x/y", "status": "True", "reason": "x", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    all(vec![("status", one_of(json!([{}, {"loadBalancer": {}}, {"conditions": [condition]}])))])
}

fn scaler() -> Values {
    let metric = |name: &str| {
        let share = json!({"type": "Utilization", "averageUtilization": 50});
        one_of(json!([
            {"type": "Resource", "resource": {"name": name, "target": share}},
            {"type": "Resource", "resource": {"name": name, "target": {"type": "AverageValue", "averageValue": "1"}}},
        ]))
    };
    let policy = json!([{"type": "Pods", "value": 1, "periodSeconds": 60}]);
    let rules = || {
        one_of(json!([{}, {"selectPolicy": "Min"}, {"stabilizationWindowSeconds": 0}, {"policies": policy.clone()}]))
    };
    let spec = some(vec![
        ("minReplicas", one_of(json!([1, 2]))),
        ("maxReplicas", one_of(json!([3, 4]))),
        ("metrics", list(vec![metric("cpu"), metric("memory")])),
        ("behavior", some(vec![("scaleUp", rules()), ("scaleDown", rules())])),
    ]);
    some(vec![("metadata", metadata()), ("spec", spec)])
}

fn whole_scaler() -> Values {
    scaler()
        .prop_map(|mut whole| {
            whole["spec"]["maxReplicas"] = json!(3);
            whole["spec"]["scaleTargetRef"] = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"});
            whole
        })
        .boxed()
}

fn route() -> Values {
    let reference = |name: &str| {
        one_of(json!([
            {"name": name, "port": 80}, {"name": name, "port": 80, "weight": 0},
            {"name": name, "port": 81, "kind": "Service"},
        ]))
    };
    let rule = some(vec![
        ("backendRefs", list(vec![reference("a"), reference("b")])),
        (
            "matches",
            one_of(json!([[], [{}], [{"path": {"value": "/x"}}], [{"headers": [{"name": "x", "value": "y"}]}]])),
        ),
        ("filters", one_of(json!([[{"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "m"}}}]]))),
        ("timeouts", one_of(json!([{}, {"request": "1s"}]))),
    ]);
    let spec = some(vec![
        ("parentRefs", list(vec![one_of(json!([{"name": "g"}, {"name": "g", "sectionName": "s"}]))])),
        ("hostnames", one_of(json!([[], ["a.b"], ["a.b", "c.d"]]))),
        ("rules", vec(rule, 1..3).prop_map(Value::Array).boxed()),
    ]);
    some(vec![("metadata", metadata()), ("spec", spec)])
}

fn whole_route() -> Values {
    route()
        .prop_map(|mut whole| {
            if whole.get("spec").is_none() {
                whole["spec"] = json!({});
            }
            whole
        })
        .boxed()
}

fn route_status() -> Values {
    let parent = |name: &str| json!({"parentRef": {"name": name}, "controllerName": "x/y"});
    some(vec![
        ("metadata", metadata()),
        (
            "status",
            one_of(json!([{"parents": []}, {"parents": [parent("g")]}, {"parents": [parent("g"), parent("h")]}])),
        ),
        ("spec", one_of(json!([{}, {"hostnames": ["z"]}]))),
    ])
}
