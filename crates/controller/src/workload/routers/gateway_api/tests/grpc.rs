//! What is peculiar to a GRPCRoute (Gateway API v1, "GRPCRouteRule", "GRPCRouteMatch").

use super::*;
use crate::workload::routers::RouteStatus;

fn grpc(rules: Value) -> Object {
    object(Kind::GrpcRoute, "web", json!({"spec": {"parentRefs": [{"name": "gw"}], "rules": rules}}))
}

#[test]
fn c_22_a_rule_for_all_calls_has_a_header_rule_without_a_path() {
    let base = grpc(json!([{"backendRefs": [{"name": "web", "port": 80}]}]));
    let split = split(10, &[&[("x-canary", "always")]]);
    let expected = json!([
        {"matches": [{"headers": [exact("x-canary", "always")]}], "backendRefs": [{"name": "web-canary", "port": 80, "weight": 1}]},
        {"backendRefs": [{"name": "web", "port": 80, "weight": 90}, {"name": "web-canary", "port": 80, "weight": 10}]},
    ]);
    let rendered = render(&base, &web(), &split);
    assert_eq!(*rules_of(&rendered), expected);
    assert_eq!(read(&rendered, &web()), ObservedSplit::Split(split));
}

#[test]
fn c_22_calls_keep_their_method_beside_the_headers() {
    let method = |service: &str| json!({"method": {"type": "RegularExpression", "service": service}});
    let base = grpc(json!([
        {"matches": [method("shop.Cart"), method("shop.Stock")], "backendRefs": [{"name": "web", "port": 80}]},
        {"matches": [method("docs.*")], "backendRefs": [{"name": "docs", "port": 80}]},
    ]));
    let split = Split {
        headers: [[("x-team".to_owned(), HeaderValue::Regex { regex: "^shop$".to_owned() })].into()].into(),
        ..split(0, &[])
    };
    let joined = |service: &str| {
        let mut one = method(service);
        one["headers"] = json!([pattern("x-team", "^shop$")]);
        one
    };
    let rendered = render(&base, &web(), &split);
    assert_eq!(rules_of(&rendered)[0]["matches"], json!([joined("shop.Cart"), joined("shop.Stock")]));
    assert_eq!(rules_of(&rendered)[2], rules_of(&base)[1]);
    assert_eq!(check(&base, &web(), &split), Ok(()));
    assert_eq!(*rules_of(&retreat(&rendered, &web())), *rules_of(&render(&base, &web(), &Split::stable())));
}

#[test]
fn x_15_every_parent_has_to_have_taken_it_over() {
    let parent = |name: &str, status: &str, generation: i64| {
        let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "reason": "r", "observedGeneration": generation});
        json!({
            "parentRef": {"name": name}, "controllerName": "c",
            "conditions": [condition("Accepted", status), condition("ResolvedRefs", "True")],
        })
    };
    let judged = |second: Value| {
        let mut route = grpc(json!([{"backendRefs": [{"name": "web", "port": 80}]}]));
        route.value_mut()["metadata"]["generation"] = 3.into();
        route.value_mut()["spec"]["parentRefs"] = json!([{"name": "gw"}, {"name": "mesh"}]);
        route.value_mut()["status"] = json!({"parents": [parent("gw", "True", 3), second]});
        route_status(&route)
    };
    assert_eq!(judged(parent("mesh", "True", 3)), RouteStatus::Effective);
    assert!(matches!(judged(parent("mesh", "True", 2)), RouteStatus::NotYet { .. }));
    assert!(matches!(judged(parent("mesh", "False", 3)), RouteStatus::Refused { .. }));
    assert!(matches!(judged(parent("other", "True", 3)), RouteStatus::NotYet { .. }));
}
