use super::*;
use crate::manifest::desired::HeaderValue;
use crate::manifest::object::Kind;
use crate::record::posture::Split;
use crate::workload::fixtures::{name, object};
use crate::workload::routers::ObservedSplit;
use crate::workload::routers::tests::{lowered, rendered, shown};

fn proxy(routes: Value) -> Object {
    object(Kind::HttpProxy, "web", json!({"spec": {"includes": [{"name": "docs"}], "routes": routes}}))
}

fn render(plain: &Object, split: &Split) -> Value {
    rendered(&HttpProxy(&name("web")), plain, split).value()["spec"]["routes"].clone()
}

fn at(weight: u8) -> Split {
    Split { weight: weight.try_into().unwrap(), ..Split::stable() }
}

fn testers(weight: u8, all: &[(&str, HeaderValue)]) -> Split {
    let headers = all.iter().map(|(name, value)| [((*name).to_owned(), value.clone())].into());
    Split { headers: headers.collect(), ..at(weight) }
}

fn exact(value: &str) -> HeaderValue {
    HeaderValue::Exact(value.to_owned())
}

#[test]
fn t_3_a_route_for_the_header_stands_before_the_one_whose_requests_it_takes() {
    let plain = proxy(json!([
        {"conditions": [{"prefix": "/docs"}], "services": [{"name": "docs", "port": 80}]},
        {"conditions": [{"prefix": "/echo"}], "timeoutPolicy": {"response": "5s"}, "services": [{"name": "web", "port": 80}]},
    ]));
    let split = testers(0, &[("stage", exact("canary"))]);
    let own = json!({"conditions": [{"prefix": "/echo"}], "timeoutPolicy": {"response": "5s"},
        "services": [{"name": "web", "port": 80, "weight": 100}, {"name": "web-canary", "port": 80, "weight": 0}]});
    let header = json!({"conditions": [{"prefix": "/echo"}, {"header": {"name": "stage", "exact": "canary"}}],
        "timeoutPolicy": {"response": "5s"}, "services": [{"name": "web-canary", "port": 80, "weight": 1}]});
    assert_eq!(render(&plain, &split), json!([plain.value()["spec"]["routes"][0], header, own]));
    let none = proxy(json!([{"services": [{"name": "web", "port": 80}]}]));
    let pattern = testers(0, &[("stage", HeaderValue::Regex { regex: "^(a|b)$".to_owned() })]);
    let header = json!({"conditions": [{"header": {"name": "stage", "regex": "^(a|b)$"}}], "services": [{"name": "web-canary", "port": 80, "weight": 1}]});
    assert_eq!(render(&none, &pattern)[0], header);
    assert_eq!(render(&none, &pattern)[1].get("conditions"), None);
}

#[test]
fn t_21_a_second_time_is_the_first_and_what_is_written_is_read() {
    let web = name("web");
    let plain = proxy(json!([
        {"conditions": [{"prefix": "/"}, {"header": {"name": "X-Api", "exact": "2"}}, {"queryParameter": {"name": "a", "present": true}}],
         "services": [{"name": "web", "port": 80}, {"name": "audit", "port": 80, "mirror": true}]},
        {"conditions": [{"header": {"name": "x-api", "contains": "3", "ignoreCase": true}}], "services": [{"name": "web", "port": 80, "weight": 3}]},
        {"conditions": [{"prefix": "/"}], "services": [{"name": "web", "port": 80}, {"name": "old", "port": 80}]},
        {"conditions": [{"prefix": "/gone"}], "requestRedirectPolicy": {"hostname": "a.example"}},
    ]));
    for split in [testers(25, &[("stage", exact("canary")), ("x-user", exact("ana"))]), at(0), at(1), at(100)] {
        let live = rendered(&HttpProxy(&web), &plain, &split);
        let router = HttpProxy(&web);
        let form = router.as_http_route(&live).unwrap();
        assert_eq!(router.with_http_route(&live, form.route), live, "{split:?}");
        let ObservedSplit::Split(seen) = shown(&HttpProxy(&web), &live) else { panic!("{:?}", live.value()) };
        assert!(seen.same(&split), "{split:?} is seen as {seen:?}");
        let prepared = rendered(&HttpProxy(&web), &plain, &Split::stable());
        assert_eq!(lowered(&HttpProxy(&web), &live), prepared, "{split:?}");
        assert_eq!(live.at("/spec/includes"), plain.at("/spec/includes"));
    }
}

#[test]
fn no_mirror_has_the_weight_0_which_would_be_all() {
    let plain = proxy(json!([{"services": [{"name": "web", "port": 80}]}]));
    for (mirror, weight) in [(1, 1), (10, 10), (100, 100)] {
        let split = Split { mirror: u8::try_from(mirror).unwrap().try_into().unwrap(), ..at(0) };
        let copied = json!({"name": "web-canary", "port": 80, "mirror": true, "weight": weight});
        assert_eq!(render(&plain, &split)[0]["services"][2], copied);
    }
    assert!(!render(&plain, &at(10)).to_string().contains("mirror"));
    let by_hand = proxy(
        json!([{"services": [{"name": "web", "port": 80}, {"name": "web-canary", "port": 80, "mirror": true, "weight": 0}]}]),
    );
    let ObservedSplit::Split(seen) = shown(&HttpProxy(&name("web")), &by_hand) else { panic!() };
    assert_eq!((seen.mirror.get(), seen.weight.get()), (100, 0));
}

#[test]
fn t_6_services_without_any_weight_have_even_shares_and_beside_one_with_a_weight_none() {
    let web = name("web");
    let shows = |services: Value| {
        let ObservedSplit::Split(seen) = shown(&HttpProxy(&web), &proxy(json!([{"services": services}]))) else {
            panic!()
        };
        seen.weight.get()
    };
    let entry = |name: &str| json!({"name": name, "port": 80});
    let weighing = |name: &str, weight: u8| json!({"name": name, "port": 80, "weight": weight});
    assert_eq!(shows(json!([entry("web"), entry("web-canary")])), 50);
    assert_eq!(shows(json!([weighing("web", 0), weighing("web-canary", 0)])), 50);
    assert_eq!(shows(json!([weighing("web", 5), entry("web-canary")])), 0);
    assert_eq!(shows(json!([entry("web"), weighing("web-canary", 5)])), 100);
    let even = proxy(json!([{"services": [entry("web"), entry("old")]}]));
    let wanted = json!([weighing("web", 75), weighing("web-canary", 25), weighing("old", 100)]);
    assert_eq!(render(&even, &at(25))[0]["services"], wanted);
}

#[test]
fn x_16_what_leads_to_the_candidate_otherwise_is_foreign() {
    let to = |name: &str| json!([{"name": name, "port": 80}]);
    for routes in [
        json!([{"services": to("web-canary")}]),
        json!([{"services": to("web")}, {"conditions": [{"header": {"name": "a", "exact": "b"}}], "services": to("web-canary")}]),
        json!([{"conditions": [{"header": {"name": "a", "contains": "b"}}], "services": to("web-canary")}, {"services": to("web")}]),
        json!([{"services": [{"name": "old", "port": 80, "weight": 1}, {"name": "web-canary", "port": 80, "weight": 1}]}]),
    ] {
        let live = proxy(routes);
        assert!(matches!(shown(&HttpProxy(&name("web")), &live), ObservedSplit::Foreign(_)), "{:?}", live.value());
        let back = lowered(&HttpProxy(&name("web")), &live);
        assert_eq!(shown(&HttpProxy(&name("web")), &back), ObservedSplit::Split(Split::stable()));
    }
}

/// A status of generation 2, about an object of generation 3 or 2.
fn judged(generation: i64, valid: &str, errors: Value) -> RouteStatus {
    let condition =
        json!({"type": "Valid", "status": valid, "observedGeneration": 2, "errors": errors, "message": "see Errors"});
    let value = json!({"metadata": {"generation": generation}, "status": {"conditions": [condition]}});
    status(&object(Kind::HttpProxy, "web", value))
}

#[test]
fn t_14_what_contour_says_of_the_present_generation_counts() {
    assert_eq!(judged(2, "True", json!([])), RouteStatus::Effective);
    let older = "Contour has not looked at this generation of the HTTPProxy".to_owned();
    assert_eq!(judged(3, "True", json!([])), RouteStatus::NotYet { why: older.clone() });
    assert_eq!(
        status(&object(Kind::HttpProxy, "web", json!({"metadata": {"generation": 1}}))),
        RouteStatus::NotYet { why: older }
    );
    assert!(matches!(status(&object(Kind::HttpProxy, "web", json!({}))), RouteStatus::Unknown { .. }));
    let error = |kind: &str, reason: &str| json!({"type": kind, "reason": reason, "message": "why"});
    let unresolved = error("ServiceError", "ServiceUnresolvedReference");
    assert!(matches!(judged(2, "False", json!([unresolved])), RouteStatus::NotYet { .. }));
    let own = error("RouteError", "HeaderMatchConditionsNotValid");
    let why = "Contour: RouteError/HeaderMatchConditionsNotValid: why".to_owned();
    assert_eq!(judged(2, "False", json!([unresolved, own.clone()])), RouteStatus::Refused { why: why.clone() });
    assert_eq!(judged(2, "False", json!([own, unresolved])), RouteStatus::Refused { why });
    assert!(matches!(
        judged(2, "False", json!([error("VirtualHostError", "FQDNNotSpecified")])),
        RouteStatus::Refused { .. }
    ));
    assert!(matches!(judged(2, "False", json!([])), RouteStatus::NotYet { .. }));
}

#[test]
fn t_15_what_others_did_speaks_against_no_version() {
    for (kind, reason) in [
        ("VirtualHostError", "DuplicateVhost"),
        ("Orphaned", "Orphaned"),
        ("RootNamespaceError", "RootProxyNotAllowedInNamespace"),
        ("ListenerError", "ErrorIdentifyingListener"),
        ("IncludeError", "IncludeNotFound"),
    ] {
        let said = judged(2, "False", json!([{"type": kind, "reason": reason, "message": "of another team"}]));
        assert!(matches!(said, RouteStatus::Barred { .. }), "{kind}: {said:?}");
    }
}
