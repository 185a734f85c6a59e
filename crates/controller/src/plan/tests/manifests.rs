//! The manifests and plans of the tests.

use crate::manifest::desired::{Plan, Set};
use crate::manifest::ids::RolloutId;
use crate::manifest::object::{Kind, Object, ObjectRef};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) fn hex(text: &str, bytes: usize) -> String {
    crate::manifest::hex::hex(&Sha256::digest(text.as_bytes())[..bytes])
}

pub(super) fn id() -> RolloutId {
    "shop/podinfo".parse().expect("a rollout")
}

/// The manifests of a version: image `app:<version>`, one ConfigMap, a Service, a route.
pub(super) fn set(version: &str) -> Arc<Set> {
    set_with(version, |_| {})
}

pub(super) fn set_with(version: &str, change: impl FnOnce(&mut Vec<Value>)) -> Arc<Set> {
    let mut all = vec![
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"motd": version}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "podinfo"}, "spec": {
            "replicas": 4,
            "selector": {"matchLabels": {"app": "podinfo"}},
            "template": {"metadata": {"labels": {"app": "podinfo"}}, "spec": {
                "containers": [{"name": "app", "image": format!("app:{version}"), "envFrom": [{"configMapRef": {"name": "settings"}}]}],
            }},
        }}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "podinfo"}, "spec": {
            "selector": {"app": "podinfo"}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}],
        }}),
        json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": "podinfo"}, "spec": {
            "parentRefs": [{"name": "public"}],
            "rules": [{"backendRefs": [{"name": "podinfo", "port": 80}]}],
        }}),
    ];
    change(&mut all);
    let objects: BTreeMap<ObjectRef, Object> =
        all.into_iter().map(object).map(|o| (o.reference().clone(), o)).collect();
    let text = |keep: &dyn Fn(&Object) -> bool| {
        objects.values().filter(|o| keep(o)).map(|o| o.value().to_string()).collect::<String>()
    };
    let pods = text(&|o| matches!(o.reference().kind, Kind::Deployment | Kind::ConfigMap));
    let pods = pods.replace("\"replicas\":4,", "").replace("\"replicas\":6,", "");
    Arc::new(Set {
        id: hex(&text(&|_| true), 20).parse().expect("a set"),
        files: BTreeMap::new(),
        tracked: BTreeMap::new(),
        layers: Vec::new(),
        revision: format!("v1:sha256:{}", hex(&text(&|_| true), 32)).parse().expect("a revision"),
        pods: hex(&pods, 8).parse().expect("a digest"),
        objects,
    })
}

/// The same, as one file.
pub(super) fn filed(set: &Set) -> Arc<Set> {
    let documents: Vec<String> = set.objects.values().map(|object| object.value().to_string()).collect();
    let bytes: Arc<[u8]> = documents.join("\n---\n").into_bytes().into();
    let path = "podinfo.yaml".parse().expect("a path");
    Arc::new(Set { files: [(path, (crate::manifest::oid::blob(&bytes), bytes))].into(), ..set.clone() })
}

pub(super) fn object(value: Value) -> Object {
    let text = |p: &str| value.pointer(p).and_then(Value::as_str).expect(p);
    let kind = Kind::find(text("/apiVersion"), text("/kind")).expect("a known kind");
    let name = text("/metadata/name").parse().expect("a name");
    Object::new(ObjectRef { kind, namespace: id().namespace, name }, value)
}

pub(super) fn plan(yaml: &str) -> Plan {
    let spec = yaml.replace('\n', "\n  ");
    let text = format!("apiVersion: tidegate.io/v1alpha1\nkind: RunPlan\nspec:{spec}");
    crate::record::store::parse_plan(text.as_bytes()).expect("a plan")
}

/// The same with stable's objects in copies.
pub(super) fn primary(plan: &str) -> String {
    plan.replace("layout: inPlace", "layout: primary")
}

/// The same for a version whose objects have names of their own.
pub(super) fn versioned(plan: &str, version: &str) -> String {
    let plan = plan
        .replace("layout: inPlace", "layout: versioned")
        .replace("name: podinfo,", &format!("name: podinfo-v{version},"));
    plan.replace("service: podinfo}", &format!("service: podinfo-v{version}}}"))
}

/// Its manifests.
pub(super) fn named(version: &str) -> Arc<Set> {
    named_with(version, |_| {})
}

pub(super) fn named_with(version: &str, change: impl FnOnce(&mut Vec<Value>)) -> Arc<Set> {
    set_with(version, |all| {
        let [app, settings] = ["podinfo", "settings"].map(|name| Value::from(format!("{name}-v{version}")));
        let [config, deployment, service, route] = &mut all[..] else { panic!("four objects") };
        config["metadata"]["name"] = settings.clone();
        [&mut *deployment, &mut *service].into_iter().for_each(|object| object["metadata"]["name"] = app.clone());
        let spec = &mut deployment["spec"];
        spec["selector"]["matchLabels"]["app"] = app.clone();
        spec["template"]["metadata"]["labels"]["app"] = app.clone();
        spec["template"]["spec"]["containers"][0]["envFrom"][0]["configMapRef"]["name"] = settings;
        service["spec"]["selector"]["app"] = app.clone();
        route["spec"]["rules"][0]["backendRefs"][0]["name"] = app;
        change(all);
    })
}

/// 10 % after a decision, half, then a decision for the promotion.
pub(super) const CANARY: &str = "
target: {kind: Deployment, name: podinfo, layout: inPlace}
traffic: {router: {gatewayApi: {httpRoute: podinfo, service: podinfo}}, settle: 5s, drain: 30s}
phases:
- {name: tenth, before: {approval: pullRequest}, expose: {weight: 10}, soak: 5m}
- {name: half, expose: {weight: 50}, soak: 5m}
promotion: {before: {approval: pullRequest}, bake: 1m}
progressDeadline: 10m
";

/// Without gates and without waiting.
pub(super) const QUICK: &str = "
target: {kind: Deployment, name: podinfo, layout: inPlace}
traffic: {router: {gatewayApi: {httpRoute: podinfo, service: podinfo}}, settle: 0s, drain: 0s}
phases:
- {name: tenth, expose: {weight: 10}, soak: 1m}
- {name: half, expose: {weight: 50}, soak: 1m}
progressDeadline: 10m
";

/// Testers first.
pub(super) const HEADERS: &str = "
target: {kind: Deployment, name: podinfo, layout: inPlace}
traffic: {router: {gatewayApi: {httpRoute: podinfo, service: podinfo}}, settle: 0s, drain: 0s}
phases:
- {name: testers, expose: {headers: [{x-canary: always}]}, soak: 1m}
- {name: tenth, expose: {weight: 10}, soak: 1m}
progressDeadline: 10m
";

/// Blue and green: tried out by nobody but us, then all at once after a decision.
pub(super) const PREVIEW: &str = "
target: {kind: Deployment, name: podinfo, layout: inPlace}
traffic: {router: {gatewayApi: {httpRoute: podinfo, service: podinfo}}, settle: 0s, drain: 0s}
phases:
- {name: preview, expose: {preview: fullSize}, soak: 1m}
promotion: {before: {approval: pullRequest}, bake: 1m}
progressDeadline: 10m
";

/// A window before half.
pub(super) const WINDOWED: &str = "
target: {kind: Deployment, name: podinfo, layout: inPlace}
traffic: {router: {gatewayApi: {httpRoute: podinfo, service: podinfo}}, settle: 0s, drain: 0s}
phases:
- {name: tenth, expose: {weight: 10}, soak: 1m}
- {name: half, before: {window: night}, expose: {weight: 50}, soak: 1m}
progressDeadline: 10m
";

/// By pods.
pub(super) const REPLICAS: &str = "
target: {kind: Deployment, name: podinfo, layout: inPlace}
traffic: {router: {replicas: {service: podinfo}}, settle: 0s, drain: 30s}
phases:
- {name: fifth, expose: {weight: 20}, soak: 1m}
- {name: half, expose: {weight: 50}, soak: 1m}
promotion: {bake: 1s}
progressDeadline: 10m
";

/// Without a router.
pub(super) const PLAIN: &str = "
target: {kind: Deployment, name: podinfo, layout: inPlace}
promotion: {before: {approval: pullRequest}}
progressDeadline: 10m
";
