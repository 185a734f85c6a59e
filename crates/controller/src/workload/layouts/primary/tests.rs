use super::*;
use crate::manifest::desired::Router;
use crate::manifest::object::PODS;
use crate::record::posture::Naming;
use crate::workload::fixtures::{gateway, live, name, namespace, object, plan, pods, reference, set};
use crate::workload::overlap::{Overlap, overlap};
use crate::workload::readiness::lagging;

fn names() -> Names {
    Names { target: name("web"), service: name("web") }
}

fn deployment(image: &str) -> Object {
    let template = json!({
        "metadata": {"labels": {"app": "web", "tier": "front"}},
        "spec": {"containers": [{"name": "web", "image": image, "envFrom": [{"configMapRef": {"name": "settings"}}]}]},
    });
    let spec = json!({
        "replicas": 3, "minReadySeconds": 5, "revisionHistoryLimit": 2, "progressDeadlineSeconds": 90,
        "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": {"app": "web", "tier": "front"}}, "template": template,
    });
    let metadata = json!({
        "labels": {"app": "web", "team": "shop"}, "annotations": {"note": "x", "meta.helm.sh/release-name": "web"},
        "ownerReferences": [{"uid": "o"}],
    });
    object(Kind::Deployment, "web", json!({"metadata": metadata, "spec": spec}))
}

fn service() -> Object {
    let spec = json!({"type": "NodePort", "selector": {"app": "web"}, "ports": [{"port": 80, "nodePort": 30_000}]});
    object(Kind::Service, "web", json!({"spec": spec}))
}

fn route() -> Object {
    object(Kind::HttpRoute, "web", json!({"spec": {"rules": [{"backendRefs": [{"name": "web", "port": 80}]}]}}))
}

fn config(name: &str, value: &str) -> Object {
    object(Kind::ConfigMap, name, json!({"data": {"a": value}}))
}

fn version(tag: &str) -> Set {
    set([deployment(&format!("web:{tag}")), service(), route(), config("settings", tag), config("other", "1")])
}

fn resting(set: &Set) -> BTreeMap<ObjectRef, Arranged> {
    at_rest(set, &names(), Some(&pods())).unwrap()
}

#[test]
fn at_rest_stable_is_the_copy_and_the_target_has_no_pods() {
    let all = resting(&version("1"));
    let shown: Vec<String> = all.iter().map(|(name, arranged)| format!("{name} {:?}", arranged.role)).collect();
    let expected = [
        "ConfigMap shop/other Stable",
        "ConfigMap shop/settings Candidate",
        "ConfigMap shop/settings-primary Stable",
        "Deployment shop/web Candidate",
        "Deployment shop/web-primary Stable",
        "Service shop/web Stable",
        "Service shop/web-canary Candidate",
        "Service shop/web-primary Stable",
        "HTTPRoute shop/web Stable",
    ];
    assert_eq!(shown, expected);
    let target = &all[&reference(Kind::Deployment, "web")];
    assert_eq!(target.object.int("/spec/replicas"), Some(0));
    assert_eq!(target.plain.as_ref(), Some(&deployment("web:1")), "it may be live with its pods at first sight");
    let selector = |name: &str| all[&reference(Kind::Service, name)].object.at("/spec/selector").cloned();
    assert_eq!(selector("web"), Some(json!({"app": "web-primary"})));
    assert_eq!(selector("web-primary"), Some(json!({"app": "web-primary"})));
    assert_eq!(selector("web-canary"), Some(json!({"app": "web"})));
    assert_eq!(all[&reference(Kind::Service, "web-primary")].object.text("/spec/type"), Some("ClusterIP"));
}

#[test]
fn c_17_c_30_the_copy_has_the_targets_template_and_one_label_of_its_own() {
    let all = resting(&version("1"));
    let primary = &all[&reference(Kind::Deployment, "web-primary")].object;
    let label = json!({"app": "web-primary"});
    let metadata = json!({"name": "web-primary", "namespace": "shop", "labels": label, "annotations": {"note": "x"}});
    assert_eq!(primary.at("/metadata"), Some(&metadata));
    assert_eq!(primary.at("/spec/selector"), Some(&json!({"matchLabels": label})));
    let labels = json!({"app": "web-primary", "tier": "front", PODS: "0123456789abcdef"});
    assert_eq!(primary.at("/spec/template/metadata/labels"), Some(&labels));
    let source = deployment("web:1");
    for field in ["replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds", "strategy"] {
        assert_eq!(primary.at(&format!("/spec/{field}")), source.at(&format!("/spec/{field}")), "{field}");
    }
    let from = "/spec/template/spec/containers/0/envFrom/0/configMapRef/name";
    assert_eq!(primary.text(from), Some("settings-primary"));
    assert_eq!(all[&reference(Kind::Deployment, "web")].object.text(from), Some("settings"));
}

#[test]
fn the_candidate_has_the_names_of_the_manifests() {
    let made = candidate(&version("1"), &version("2"), &plan(Some(gateway())), &names(), &pods()).unwrap();
    let shown: Vec<String> = made.keys().map(ToString::to_string).collect();
    assert_eq!(shown, ["ConfigMap shop/settings", "Deployment shop/web", "Service shop/web-canary"]);
    let target = &made[&reference(Kind::Deployment, "web")];
    assert_eq!(target.text("/spec/template/spec/containers/0/image"), Some("web:2"));
    assert_eq!((target.at("/spec/replicas"), target.label("team")), (None, Some("shop")));
    assert_eq!(made[&reference(Kind::ConfigMap, "settings")].text("/data/a"), Some("2"));
}

#[test]
fn what_leads_to_the_copy_of_its_service_comes_with_the_candidate() {
    let web = || name("web");
    let path =
        json!({"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "web", "port": {"number": 80}}}});
    let ingress = object(Kind::Ingress, "web", json!({"spec": {"rules": [{"http": {"paths": [path]}}]}}));
    let mesh = json!({"spec": {"http": [{"route": [{"destination": {"host": "web"}}]}]}});
    let rule = json!({"spec": {"host": "web", "subsets": [{"name": "front", "labels": {"tier": "front"}}]}});
    let entries = json!([{"name": "web", "port": 80}]);
    let traefik = object(Kind::TraefikService, "web", json!({"spec": {"weighted": {"services": entries}}}));
    let mesh = vec![object(Kind::VirtualService, "web", mesh), object(Kind::DestinationRule, "web", rule.clone())];
    let table = [
        (Router::Nginx { ingress: web(), service: web() }, vec![ingress], vec!["Ingress shop/web-canary"]),
        (Router::Istio { virtual_service: web(), service: web() }, mesh, vec!["DestinationRule shop/web-canary"]),
        (Router::Traefik { traefik_service: web(), service: web() }, vec![traefik], vec![]),
    ];
    for (router, more, expected) in table {
        let with = |tag: &str| {
            let mut set = version(tag);
            set.objects.extend(more.iter().map(|object| (object.reference().clone(), object.clone())));
            set
        };
        let made = candidate(&with("1"), &with("2"), &plan(Some(router)), &names(), &pods()).unwrap();
        let known = ["ConfigMap shop/settings", "Deployment shop/web", "Service shop/web-canary"];
        let beside = made.keys().map(ToString::to_string).filter(|name| !known.contains(&name.as_str()));
        assert_eq!(beside.collect::<Vec<_>>(), expected);
        if let Some(copy) = made.get(&reference(Kind::DestinationRule, "web-canary")) {
            assert_eq!(copy.text("/spec/host"), Some("web-canary"));
            assert_eq!(
                copy.at("/spec/subsets"),
                rule.pointer("/spec/subsets"),
                "its pods have the labels of the manifests"
            );
        }
    }
}

#[test]
fn what_cannot_be_laid_out_so_is_told() {
    let with = |more: Object| {
        let mut set = version("2");
        set.objects.insert(more.reference().clone(), more);
        set
    };
    let fails = |old: &Set, new: &Set| -> String {
        let made = candidate(old, new, &plan(Some(gateway())), &names(), &pods());
        made.err().or_else(|| at_rest(new, &names(), None).err()).unwrap().to_string()
    };
    for kind in Kind::WORKLOADS {
        // Another kind may have the target's name.
        let other =
            object(*kind, if *kind == Kind::Deployment { "api" } else { "web" }, deployment("api:1").value().clone());
        let expected = format!("{} must not refer to it", other.reference());
        for found in [fails(&version("1"), &with(other.clone())), fails(&with(other), &version("2"))] {
            assert!(found.starts_with("ConfigMap settings is the target's") && found.contains(&expected), "{found}");
        }
    }
    let table = [
        (fails(&version("1"), &with(config("settings-primary", "1"))), "belongs to a copy"),
        (fails(&with(object(Kind::Service, "web-canary", json!({}))), &version("2")), "belongs to a copy"),
    ];
    for (found, expected) in table {
        assert!(found.contains(expected), "{found}");
    }
}

#[test]
fn a_service_that_is_switched_keeps_its_ports() {
    let with = |port: u16| {
        let mut set = version(&port.to_string());
        let spec = json!({"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": port}]});
        set.objects.insert(reference(Kind::Service, "web"), object(Kind::Service, "web", json!({"spec": spec})));
        set
    };
    let made = |router| candidate(&with(8080), &with(9090), &plan(Some(router)), &names(), &pods());
    let found = made(Router::Service { service: name("web") }).unwrap_err();
    assert!(matches!(found, LayoutError::PortMoves { .. }), "{found}");
    assert!(made(gateway()).is_ok());
}

#[test]
fn a_service_that_still_selects_the_target_is_an_overlap_but_for_the_one_that_is_switched() {
    let all = resting(&version("1"));
    let candidate: BTreeMap<ObjectRef, Object> = all
        .into_iter()
        .filter(|(_, arranged)| arranged.role == RoleName::Candidate)
        .map(|(reference, arranged)| (reference, arranged.object))
        .collect();
    let metrics = object(Kind::Service, "metrics", json!({"spec": {"selector": {"tier": "front"}}}));
    let found = overlap(
        &live([service(), metrics, deployment("web:1")]),
        &candidate,
        &plan(Some(gateway())),
        &Naming::Primary(names()),
        &namespace(),
    );
    assert_eq!(found, [Overlap::Selects(reference(Kind::Service, "metrics"))]);
}

#[test]
fn a_service_lags_while_it_leads_to_pods_that_it_does_not_ask_for() {
    let pod = |name: &str, app: &str| object(Kind::Pod, name, json!({"metadata": {"labels": {"app": app}}}));
    let slice = |pods: &[&str]| {
        let endpoint = |pod: &&str| json!({"conditions": {"ready": true}, "targetRef": {"name": pod}});
        let endpoints: Vec<Value> = pods.iter().map(endpoint).collect();
        let labels = json!({"kubernetes.io/service-name": "web"});
        object(Kind::EndpointSlice, "web-x", json!({"metadata": {"labels": labels}, "endpoints": endpoints}))
    };
    let apex = object(Kind::Service, "web", json!({"spec": {"selector": {"app": "web-primary"}}}));
    let found = |pods: &[&str]| {
        let world = [apex.clone(), pod("old", "web"), pod("new", "web-primary"), slice(pods)];
        lagging(&live(world), &namespace(), &name("web")).map(|pod| pod.to_string())
    };
    assert_eq!(found(&["new", "old"]).as_deref(), Some("old"));
    assert_eq!(found(&["new"]), None);
    assert_eq!(found(&["nobody-knows"]), None);
    assert_eq!(found(&[]), None);
}

#[test]
fn c_28_copies_of_a_service_have_its_ports_and_no_other_in_their_order() {
    let container = |name: &str, port: u16| json!({"name": name, "image": "a:1", "ports": [{"containerPort": port}]});
    let mut target = deployment("web:1");
    target.value_mut()["spec"]["template"]["spec"]["containers"] =
        json!([container("web", 8080), container("istio-proxy", 15_001), container("sidecar", 8080)]);
    let ports = json!([{"name": "metrics", "port": 9090, "targetPort": 8080}, {"name": "http", "port": 80}]);
    let apex = object(Kind::Service, "web", json!({"spec": {"selector": {"app": "web"}, "ports": ports}}));
    let set = set([target, apex, route()]);
    let copies = resting(&set);
    for name in ["web", "web-primary", "web-canary"] {
        assert_eq!(copies[&reference(Kind::Service, name)].object.at("/spec/ports"), Some(&ports), "{name}");
    }
    let made = layouts::candidate(&set, &set, &plan(Some(gateway())), &pods()).unwrap();
    assert_eq!(made[&reference(Kind::Service, "web-canary")].at("/spec/ports"), Some(&ports));
    assert_eq!(resting(&set), copies, "made again it is the same");
}
