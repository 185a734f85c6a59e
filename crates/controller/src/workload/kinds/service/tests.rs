use super::*;
use crate::manifest::desired::{Router, TargetKind};
use crate::workload::fixtures::{gateway, live, name, object, pods, reference, set};
use crate::workload::layouts;
use crate::workload::readiness;
use crate::workload::routers::istio;
use crate::{manifest::desired::Plan, record::posture::Naming};
use serde_json::{Value, json};

fn service(spec: Value) -> Object {
    let annotations = json!({
        "team": "shop", "external-dns.alpha.kubernetes.io/hostname": "web.example.org",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
    });
    let metadata = json!({
        "labels": {"app": "web"}, "annotations": annotations, "uid": "u", "resourceVersion": "1",
        "ownerReferences": [{"uid": "o"}],
    });
    object(Kind::Service, "web", json!({"metadata": metadata, "spec": spec}))
}

fn to(app: &str) -> Object {
    service(json!({"selector": {"app": app}, "ports": [{"port": 80, "targetPort": 8080}]}))
}

fn alias(host: &str) -> Object {
    service(json!({"type": "ExternalName", "externalName": host, "ports": [{"port": 80}]}))
}

fn route() -> Object {
    object(Kind::HttpRoute, "web", json!({"spec": {"rules": [{"backendRefs": [{"name": "web", "port": 80}]}]}}))
}

fn plan(router: Router) -> Plan {
    let mut plan = crate::workload::fixtures::plan(Some(router));
    plan.target.kind = TargetKind::Service;
    plan
}

fn made(old: Object, new: Object) -> Result<BTreeMap<ObjectRef, Object>, LayoutError> {
    let (old, new) = (set([old, route()]), set([new, route()]));
    layouts::of_candidate(&old, &new, &plan(gateway()), &Naming::InPlace, &pods())
}

fn copy_of(spec: Value) -> Value {
    let all = made(to("blue"), service(spec)).unwrap();
    assert_eq!(all.keys().collect::<Vec<_>>(), [&reference(Kind::Service, "web-canary")]);
    all[&reference(Kind::Service, "web-canary")].at("/spec").cloned().unwrap()
}

#[test]
fn c_25_the_candidates_service_asks_for_what_the_new_version_asks_for() {
    let ports = json!([{"name": "http", "port": 80, "targetPort": 8080}]);
    let allotted = json!([{"name": "http", "port": 80, "targetPort": 8080, "nodePort": 30_080}]);
    let inside = |more: Value| {
        let mut spec = json!({"type": "ClusterIP", "selector": {"app": "green"}, "ports": ports});
        section(&mut spec, &[]).extend(more.as_object().cloned().unwrap());
        spec
    };
    let table = [
        (json!({"clusterIP": "10.0.0.9", "clusterIPs": ["10.0.0.9"]}), inside(json!({}))),
        (json!({"clusterIP": "None", "clusterIPs": ["None"]}), inside(json!({"clusterIP": "None"}))),
        (json!({"type": "NodePort", "externalTrafficPolicy": "Local"}), inside(json!({}))),
        (
            json!({
                "type": "LoadBalancer", "loadBalancerIP": "1.2.3.4", "healthCheckNodePort": 3, "externalIPs": ["1.2.3.4"],
                "allocateLoadBalancerNodePorts": false, "sessionAffinity": "ClientIP",
            }),
            inside(json!({"sessionAffinity": "ClientIP"})),
        ),
    ];
    for (more, expected) in table {
        let mut spec = json!({"selector": {"app": "green"}, "ports": allotted});
        section(&mut spec, &[]).extend(more.as_object().cloned().unwrap());
        assert_eq!(copy_of(spec), expected, "{more}");
    }
    let spec = json!({
        "type": "ExternalName", "externalName": "lb.green.example.net", "clusterIP": "", "selector": {"app": "x"},
        "ports": allotted,
    });
    let expected = json!({"type": "ExternalName", "externalName": "lb.green.example.net", "ports": ports});
    assert_eq!(copy_of(spec), expected);
}

#[test]
fn c_25_nothing_publishes_the_copy_and_nobody_claims_it() {
    let all = made(to("blue"), to("green")).unwrap();
    let expected = json!({
        "name": "web-canary", "namespace": "shop", "labels": {"app": "web"}, "annotations": {"team": "shop"},
    });
    assert_eq!(all[&reference(Kind::Service, "web-canary")].at("/metadata"), Some(&expected));
}

#[test]
fn c_25_no_workload_is_made_or_written_at_rest_or_in_a_run() {
    let workload = object(Kind::Deployment, "web", json!({"spec": {"replicas": 3, "template": {"spec": {}}}}));
    let (old, new) = (set([to("blue"), route(), workload.clone()]), set([to("green"), route(), workload.clone()]));
    let at_rest = layouts::at_rest(&new, &plan(gateway()), &Naming::InPlace, Some(&pods())).unwrap();
    let rendered: Vec<&Object> = at_rest.values().map(|arranged| &arranged.object).collect();
    assert_eq!(rendered, new.objects.values().collect::<Vec<_>>(), "what is stable is exactly what the manifests say");
    let all = layouts::of_candidate(&old, &new, &plan(gateway()), &Naming::InPlace, &pods()).unwrap();
    assert!(all.keys().all(|made| made.kind == Kind::Service), "{:?}", all.keys());
}

#[test]
fn a_copy_is_created_leading_nowhere() {
    let copy = |of: Object| leading_nowhere(copy(&of).unwrap()).at("/spec").cloned().unwrap();
    let ports = json!([{"port": 80, "targetPort": 8080}]);
    assert_eq!(copy(to("green")), json!({"ports": ports, "type": "ClusterIP"}));
    let nowhere = json!({"type": "ClusterIP", "ports": [{"port": 80}], "clusterIP": "None"});
    assert_eq!(copy(alias("green.example.net")), nowhere);
    let headless = service(json!({"selector": {"app": "green"}, "ports": [{"port": 80}], "clusterIP": "None"}));
    let nobody = json!({"type": "ClusterIP", "ports": [{"port": 80}], "clusterIP": "None", "selector": {PODS: "none"}});
    assert_eq!(copy(headless), nobody);
}

#[test]
fn what_stands_in_the_way_of_the_copy_is_told() {
    let new = service(json!({"selector": {"app": "green"}, "ports": [{"port": 81}]}));
    assert!(matches!(made(to("blue"), new), Err(LayoutError::PortMissing { .. })));
    let (old, taken) = (set([to("blue"), route()]), object(Kind::Service, "web-canary", json!({})));
    let new = set([to("green"), route(), taken]);
    let of = |new: &Set| layouts::of_candidate(&old, new, &plan(gateway()), &Naming::InPlace, &pods());
    assert!(matches!(of(&new), Err(LayoutError::NameTaken { .. })));
    assert!(matches!(of(&set([route()])), Err(LayoutError::Missing { .. })));
}

#[test]
fn c_27_a_mesh_does_with_the_copy_what_it_does_with_the_service() {
    let http = json!([{"route": [{"destination": {"host": "web"}}]}]);
    let virtual_service = object(Kind::VirtualService, "web", json!({"spec": {"http": http}}));
    let subsets = json!([{"name": "a", "labels": {"app": "blue"}}]);
    let rule = json!({"spec": {"host": "web", "trafficPolicy": {"tls": {"mode": "SIMPLE"}}, "subsets": subsets}});
    let rule = object(Kind::DestinationRule, "web", rule);
    let objects = |host: &str| set([alias(host), virtual_service.clone(), rule.clone()]);
    let (old, new) = (objects("lb.blue.example.net"), objects("lb.green.example.net"));
    let router = Router::Istio { virtual_service: name("web"), service: name("web") };
    let all = layouts::of_candidate(&old, &new, &plan(router), &Naming::InPlace, &pods()).unwrap();
    let copy = &all[&reference(Kind::DestinationRule, "web-canary")];
    assert!(istio::is_about(copy, &name("web-canary")));
    assert_eq!(copy.at("/spec/subsets"), Some(&subsets), "the pods behind it are those that they were");
    assert_eq!(all[&reference(Kind::Service, "web-canary")].text("/spec/externalName"), Some("lb.green.example.net"));
}

/// Endpoints of the Service for these pods, by their readiness, with that port; the pods too, with their label.
fn endpoints(pods: &[(&str, &str, bool)], port: i64) -> Vec<Object> {
    let metadata = json!({"labels": {"kubernetes.io/service-name": "web"}});
    let endpoint = |(pod, _, ready): &(&str, &str, bool)| json!({"addresses": ["10.0.0.1"], "conditions": {"ready": ready}, "targetRef": {"kind": "Pod", "name": pod}});
    let all: Vec<Value> = pods.iter().map(endpoint).collect();
    let ports = json!([{"name": "", "port": port}]);
    let slice = object(Kind::EndpointSlice, "web-x", json!({"metadata": metadata, "endpoints": all, "ports": ports}));
    let pod =
        |(pod, app, _): &(&str, &str, bool)| object(Kind::Pod, pod, json!({"metadata": {"labels": {"app": app}}}));
    pods.iter().map(pod).chain([slice]).collect()
}

fn why(service: &Object, pods: &[(&str, &str, bool)], port: i64) -> Option<String> {
    match readiness(service, &live(endpoints(pods, port).into_iter().chain([service.clone()]))) {
        Readiness::Ready => None,
        Readiness::NotReady { why, .. } => Some(why),
    }
}

#[test]
fn c_33_a_service_is_ready_once_its_endpoints_have_followed() {
    let green = to("green");
    assert_eq!(why(&green, &[("a", "green", true)], 8080), None);
    assert_eq!(why(&green, &[("a", "green", true), ("b", "green", false)], 8080), None);
    let lagging = why(&green, &[("a", "green", true), ("b", "blue", true)], 8080).unwrap();
    assert!(lagging.contains("still leads to pod b"), "{lagging}");
    assert_eq!(why(&green, &[("a", "green", false)], 8080).as_deref(), Some("it has no ready endpoint"));
    let lagging = why(&green, &[("a", "green", true)], 9090).unwrap();
    assert!(lagging.contains("the port 9090"), "{lagging}");
    let named = service(json!({"selector": {"app": "green"}, "ports": [{"port": 80, "targetPort": "http"}]}));
    assert_eq!(why(&named, &[("a", "green", true)], 9090), None, "what the pods call http is not known");
    assert_eq!(why(&green, &[], 8080).as_deref(), Some("it has no ready endpoint"));
}

#[test]
fn c_27_an_alias_is_ready_as_soon_as_it_is_written() {
    assert_eq!(why(&alias("green.example.net"), &[], 80), None);
    // What is left of the time when it selected pods says nothing.
    assert_eq!(why(&alias("green.example.net"), &[("a", "blue", true)], 9090), None);
    let world = live([alias("green.example.net")]);
    let count =
        |name: &str| readiness::ready_endpoints(&world, &reference(Kind::Pod, "a").namespace, &name.parse().unwrap());
    assert_eq!((count("web"), count("web-canary")), (1, 0), "one that is not there leads nowhere");
}

#[test]
fn c_33_a_pod_with_an_address_of_each_family_is_one_endpoint() {
    let slices = ["a", "b"].map(|family| {
        let metadata = json!({"labels": {"kubernetes.io/service-name": "web"}});
        let endpoint = |pod: &str| json!({"addresses": [format!("{family}::{pod}")], "targetRef": {"name": pod}});
        let endpoints = json!([endpoint("web-1"), endpoint("web-2")]);
        let name = format!("web-{family}");
        object(Kind::EndpointSlice, &name, json!({"metadata": metadata, "endpoints": endpoints}))
    });
    let namespace = reference(Kind::Service, "web").namespace;
    assert_eq!(readiness::ready_endpoints(&live(slices), &namespace, &name("web")), 2);
}

#[test]
fn nonsense_is_data() {
    for spec in [json!(null), json!("x"), json!([]), json!({"ports": "x", "selector": [], "type": 7})] {
        let odd = service(spec.clone());
        drop((copy(&odd), leading_nowhere(odd.clone()), why(&odd, &[("a", "blue", true)], 1)));
        assert!(!is_alias(&odd), "{spec}");
    }
}
