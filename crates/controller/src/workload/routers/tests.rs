use super::*;
use crate::workload::fixtures::{by_pods, gateway, live, name, namespace, object, pods};
use serde_json::json;

fn view<'a>(live: &'a LiveState, namespace: &'a Namespace, target: &'a ObjectName) -> RouteView<'a> {
    RouteView { live, namespace, target, baseline: 3, naming: &Naming::InPlace }
}

/// One with a split.
pub(super) fn rendered(routing: &dyn Routing, plain: &Object, split: &Split) -> Object {
    routing.render(plain, Form { split, candidate: &pods(), naming: &Naming::InPlace })
}

/// The split of a live one.
pub(super) fn shown(routing: &dyn Routing, live: &Object) -> ObservedSplit {
    routing.read(Some(live), &view(&LiveState::default(), &namespace(), &name("web")))
}

/// A live one with everything at stable.
pub(super) fn lowered(routing: &dyn Routing, live: &Object) -> Object {
    routing.lowered(live, &view(&LiveState::default(), &namespace(), &name("web")))
}

fn ten() -> Split {
    Split { weight: 10.try_into().unwrap(), ..Split::stable() }
}

fn route() -> Object {
    let rules = json!([{"backendRefs": [{"name": "web", "port": 80}]}]);
    let fields = json!({"f:spec": {"f:parentRefs": {}}, "f:metadata": {"f:annotations": {"f:note": {}}}});
    let managed = json!([{"manager": "tidegate", "operation": "Apply", "fieldsV1": fields}]);
    let metadata = json!({"annotations": {"note": "ours", "other": "theirs"}, "uid": "u", "managedFields": managed});
    object(
        Kind::HttpRoute,
        "web",
        json!({"metadata": metadata, "spec": {"parentRefs": [{"name": "gw"}], "hostnames": ["x"], "rules": rules}}),
    )
}

#[test]
fn carriers_are_what_a_paused_leader_would_write_to() {
    let names = |router| {
        let routes = routes(&router, &namespace(), &name("web"));
        routes.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(names(gateway()), ["HTTPRoute shop/web"]);
    assert_eq!(names(by_pods()), ["Service shop/web", "Deployment shop/web-canary"]);
}

#[test]
fn a_retreat_repeats_what_is_ours_and_the_field_that_is_lowered() {
    let raised = render(&gateway(), &route(), Form { split: &ten(), candidate: &pods(), naming: &Naming::InPlace });
    let state = live([raised]);
    let (namespace, target) = (namespace(), name("web"));
    let view = view(&state, &namespace, &target);
    assert_eq!(read(&gateway(), &view), ObservedSplit::Split(ten()));
    let lowered = retreat(&gateway(), &view, "tidegate");
    let expected = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
        "metadata": {"name": "web", "namespace": "shop", "annotations": {"note": "ours"}},
        "spec": {"parentRefs": [{"name": "gw"}], "rules": [{"backendRefs": [
            {"name": "web", "port": 80, "weight": 100}, {"name": "web-canary", "port": 80, "weight": 0},
        ]}]},
    });
    assert_eq!(lowered.iter().map(Object::value).collect::<Vec<_>>(), [&expected]);
    let foreign = retreat(&gateway(), &view, "someone");
    assert_eq!(foreign[0].at("/spec/parentRefs"), None);
    assert_eq!(foreign[0].at("/spec/rules"), expected.pointer("/spec/rules"));
}

#[test]
fn x_15_a_status_without_a_generation_is_no_answer_to_the_last_write() {
    let said = |kind, status| {
        let router = Router::by_route(kind, &name("web"), &name("web")).unwrap();
        let state = live([object(kind, "web", json!({"status": status}))]);
        is_numbered(&router, &view(&state, &namespace(), &name("web")))
    };
    let by = |controller: &str| json!({"parents": [{"controllerName": controller}]});
    assert!(said(Kind::HttpRoute, by("example.test/gateway")));
    assert!(!said(Kind::HttpRoute, by("linkerd.io/policy-controller")));
    assert!(said(Kind::HttpProxy, json!({})));
    assert!(said(Kind::VirtualService, json!({"observedGeneration": "2"})));
    assert!(!said(Kind::VirtualService, json!({})), "Istio says nothing unless it is told to");
    assert!(!said(Kind::RouteTable, json!({"statuses": {"gloo-system": {"state": 1}}})));
    assert!(!said(Kind::IngressRoute, json!({})));
}

#[test]
fn what_is_not_there_sends_nobody_to_the_candidate() {
    let state = LiveState::default();
    let (namespace, target) = (namespace(), name("web"));
    let view = view(&state, &namespace, &target);
    for router in [gateway(), by_pods()] {
        assert_eq!(read(&router, &view), ObservedSplit::Split(Split::stable()));
        assert_eq!(retreat(&router, &view, "tidegate"), []);
        assert!(matches!(status(&router, &view), RouteStatus::NotYet { .. }));
    }
}

#[test]
fn c_22_reachable_is_what_read_shows_later() {
    let state = LiveState::default();
    let (namespace, target) = (namespace(), name("web"));
    let view = view(&state, &namespace, &target);
    assert_eq!(reachable(&gateway(), &view, &ten()), ten());
    let quarter = Split { weight: 25.try_into().unwrap(), ..Split::stable() };
    let third = Split { weight: 33.try_into().unwrap(), ..Split::stable() };
    assert_eq!(reachable(&by_pods(), &view, &third), quarter);
}
