use super::*;
use crate::manifest::desired::HeaderValue;
use crate::manifest::object::Kind;
use crate::record::posture::Split;
use crate::workload::fixtures::{name, object};
use crate::workload::routers::tests::{lowered, rendered, shown};
use crate::workload::routers::{self, ObservedSplit};

fn web() -> ObjectName {
    name("web")
}

fn render(plain: &Object, of: &ObjectName, split: &Split) -> Object {
    rendered(&Istio(of), plain, split)
}

fn read(live: &Object, of: &ObjectName) -> ObservedSplit {
    shown(&Istio(of), live)
}

fn retreat(live: &Object, of: &ObjectName) -> Object {
    lowered(&Istio(of), live)
}

fn service(http: Value) -> Object {
    object(Kind::VirtualService, "web", json!({"spec": {"hosts": ["web"], "http": http}}))
}

fn http(service: &Object) -> &Value {
    service.at("/spec/http").unwrap()
}

fn split(weight: u8, mirror: u8) -> Split {
    Split { weight: weight.try_into().unwrap(), mirror: mirror.try_into().unwrap(), ..Split::stable() }
}

fn to(host: &str) -> Value {
    json!({"destination": {"host": host}})
}

fn weighted(host: &str, weight: u32) -> Value {
    json!({"destination": {"host": host}, "weight": weight})
}

#[test]
fn c_22_a_canary_of_istios_documents_comes_out() {
    // Istio, "Traffic Shifting", with a Service for each version.
    let base = service(json!([{"route": [to("web")]}]));
    let rendered = render(&base, &web(), &split(10, 0));
    assert_eq!(http(&rendered), &json!([{"route": [weighted("web", 90), weighted("web-canary", 10)]}]));
    assert_eq!(rendered.at("/spec/hosts"), base.at("/spec/hosts"));
    let one = render(&base, &web(), &split(1, 0));
    assert_eq!(http(&one), &json!([{"route": [weighted("web", 99), weighted("web-canary", 1)]}]));
    let back = retreat(&rendered, &web());
    assert_eq!(http(&back), &json!([{"route": [weighted("web", 100), weighted("web-canary", 0)]}]));
    assert_eq!(retreat(&back, &web()), back);
    assert_eq!(http(&retreat(&base, &web())), http(&base), "nothing of ours, nothing to change");
}

/// Istio takes weights up to 2^31. Whatever they are the candidate gets what the record says, or less.
#[test]
fn c_22_weights_beyond_those_of_the_gateway_api_keep_their_ratio() {
    let whole = |value: &Value| value["weight"].as_u64().unwrap();
    for own in [10_001_u32, 20_000, 777_777, 1_000_000, 1_999_999_973] {
        for other in [0_u32, 1, 20_000, 1_234_567, 2_000_000_000] {
            let base = service(json!([{"route": [weighted("web", own), weighted("other", other)]}]));
            for weight in [1_u8, 10, 33, 50, 99, 100] {
                let rendered = render(&base, &web(), &split(weight, 0));
                let [stable, candidate, rest] = [0, 1, 2].map(|i| whole(&http(&rendered)[0]["route"][i]));
                assert!(candidate * 100 <= (stable + candidate) * u64::from(weight), "{own} {other} {weight}");
                let (mine, all) = (u64::from(own), u64::from(own) + u64::from(other));
                assert!(
                    candidate * 100 * all <= (stable + candidate + rest) * mine * u64::from(weight),
                    "{rendered:?}"
                );
                assert!(read(&rendered, &web()) != ObservedSplit::Split(Split::stable()) || candidate == 0);
            }
        }
    }
    let base = service(json!([{"route": [weighted("web", 20_000), weighted("other", 20_000)]}]));
    let rendered = render(&base, &web(), &split(1, 0));
    let exact = [weighted("web", 99), weighted("web-canary", 1), weighted("other", 100)];
    assert_eq!(http(&rendered), &json!([{"route": exact}]));
    let live = service(
        json!([{"route": [weighted("web", 900_000), weighted("web-canary", 900_000), weighted("other", 1_800_000)]}]),
    );
    let back = retreat(&live, &web());
    let exact = [weighted("web", 1), weighted("web-canary", 0), weighted("other", 1)];
    assert_eq!(http(&back), &json!([{"route": exact}]));
    assert_eq!(retreat(&back, &web()), back);
}

/// What another VirtualService delegates to has neither hosts nor gateways, and gets none.
#[test]
fn a_delegate_is_split_like_any_other() {
    let delegate = |http: Value| object(Kind::VirtualService, "web", json!({"spec": {"http": http}}));
    let base = delegate(json!([{"match": [{"uri": {"prefix": "/api"}}], "route": [to("web")]}]));
    let rendered = render(&base, &web(), &split(10, 0));
    let route = |stable: u32, candidate: u32| {
        let entries = [weighted("web", stable), weighted("web-canary", candidate)];
        delegate(json!([{"match": [{"uri": {"prefix": "/api"}}], "route": entries}]))
    };
    assert_eq!(rendered, route(90, 10));
    assert_eq!(read(&rendered, &web()), ObservedSplit::Split(split(10, 0)));
    assert_eq!(retreat(&rendered, &web()), route(100, 0));
}

#[test]
fn c_22_headers_come_first_and_keep_what_the_route_asks_for() {
    let uri = json!({"prefix": "/api"});
    let base = service(json!([
        {"name": "api", "match": [{"uri": uri, "headers": {"x-v": {"prefix": "2"}}}], "timeout": "3s", "route": [to("web.shop")]},
        {"route": [to("web.shop.svc.cluster.local")]},
    ]));
    let alternative = [
        ("x-canary".to_owned(), HeaderValue::from("always")),
        ("cookie".to_owned(), HeaderValue::Regex { regex: "^a$".to_owned() }),
    ];
    let wanted = Split { headers: [alternative.into()].into(), ..split(0, 0) };
    let rendered = render(&base, &web(), &wanted);
    let asked = json!({"x-canary": {"exact": "always"}, "cookie": {"regex": "^a$"}});
    let mut joined = asked.clone();
    joined["x-v"] = json!({"prefix": "2"});
    let routes = http(&rendered);
    assert_eq!(
        routes[0],
        json!({"match": [{"uri": uri, "headers": joined}], "timeout": "3s", "route": [to("web-canary.shop")]})
    );
    assert_eq!(routes[1]["name"], "api");
    assert_eq!(routes[2], json!({"match": [{"headers": asked}], "route": [to("web-canary.shop.svc.cluster.local")]}));
    assert_eq!(routes[3]["route"][1], weighted("web-canary.shop.svc.cluster.local", 0));
    assert_eq!(read(&rendered, &web()), ObservedSplit::Split(wanted));
    assert_eq!(retreat(&rendered, &web()), render(&base, &web(), &Split::stable()));
}

#[test]
fn copies_are_a_mirror_beside_those_that_are_there() {
    let base = service(json!([{"route": [to("web")]}]));
    let rendered = render(&base, &web(), &split(0, 10));
    assert_eq!(http(&rendered)[0]["mirror"], json!({"host": "web-canary"}));
    assert_eq!(http(&rendered)[0]["mirrorPercentage"], json!({"value": 10}));
    assert_eq!(read(&rendered, &web()), ObservedSplit::Split(split(0, 10)));
    assert_eq!(http(&render(&base, &web(), &split(0, 100)))[0].get("mirrorPercentage"), None);
    let others = json!([{"destination": {"host": "audit"}, "percentage": {"value": 0.5}}]);
    let base = service(json!([{"route": [to("web")], "mirrors": others}]));
    let rendered = render(&base, &web(), &split(0, 10));
    let expected = json!([others[0], {"destination": {"host": "web-canary"}, "percentage": {"value": 10}}]);
    assert_eq!(http(&rendered)[0]["mirrors"], expected);
    assert_eq!(http(&retreat(&rendered, &web()))[0]["mirrors"], others);
    let live =
        service(json!([{"route": [to("web")], "mirror": {"host": "web-canary"}, "mirrorPercentage": {"value": 0.1}}]));
    assert_eq!(read(&live, &web()), ObservedSplit::Split(split(0, 1)));
}

#[test]
fn what_is_not_about_the_service_stays_as_it_stands() {
    let others = [
        json!({"match": [{"uri": {"prefix": "/old"}, "headers": {"a": {}}}], "redirect": {"uri": "/new"}}),
        json!({"delegate": {"name": "sub"}}),
        json!({"route": [to("docs"), weighted("web.other", 3)], "mirror": {"host": "audit"}, "mirrorPercentage": {"value": 2.5}}),
        json!({"route": [weighted("api.example.org", 100)], "fault": {"abort": {"httpStatus": 500}}}),
    ];
    let mut all = others.to_vec();
    all.push(json!({"route": [to("web")]}));
    let base = service(all.into());
    let rendered = render(&base, &web(), &split(30, 0));
    assert_eq!(&http(&rendered).as_array().unwrap()[..4], &others);
    assert_eq!(&http(&retreat(&rendered, &web())).as_array().unwrap()[..4], &others);
    assert!(
        Istio(&name("web-canary")).references(&rendered)
            && Istio(&web()).references(&base)
            && !Istio(&name("web-canary")).references(&base)
    );
}

#[test]
fn weights_are_read_as_istio_reads_them() {
    let table = [
        (json!([{"route": [to("web")]}]), 0),
        (json!([{"route": [weighted("web", 0)]}]), 0),
        (json!([{"route": [weighted("web", 3), weighted("web-canary", 1)]}]), 25),
        (json!([{"route": [to("web"), weighted("web-canary", 1)]}]), 100),
        (json!([{"route": [weighted("web", 1), to("web-canary")]}]), 0),
        (json!([{"route": [weighted("web", 999), weighted("web-canary.shop.svc", 1)]}]), 1),
    ];
    for (routes, weight) in table {
        assert_eq!(read(&service(routes.clone()), &web()), ObservedSplit::Split(split(weight, 0)), "{routes}");
    }
    let alone = service(json!([{"route": [to("web-canary")]}]));
    assert!(matches!(read(&alone, &web()), ObservedSplit::Foreign(_)));
    assert_eq!(http(&retreat(&alone, &web())), &json!([{"route": [to("web")]}]));
}

#[test]
fn a_destination_rule_is_copied_with_its_subsets() {
    let rule = |host: &str| {
        object(
            Kind::DestinationRule,
            "web",
            json!({"spec": {"host": host, "subsets": [{"name": "v", "labels": {"app": "web"}}]}}),
        )
    };
    for (host, copied) in [("web", "web-canary"), ("web.shop.svc.cluster.local", "web-canary.shop.svc.cluster.local")] {
        assert!(is_about(&rule(host), &web()));
        let copy = destination_rule(&rule(host), &web(), |labels| labels["app"] = "web-canary".into());
        assert_eq!(copy.text("/spec/host"), Some(copied));
        assert_eq!(copy.text("/spec/subsets/0/labels/app"), Some("web-canary"));
    }
    for host in ["web.other", "api", "web.example.org", "*.shop"] {
        assert!(!is_about(&rule(host), &web()), "{host}");
    }
}

#[test]
fn x_15_without_a_status_it_stands_and_with_one_as_far_as_that_is_about_it() {
    let error = |name: &str| json!([{"level": "ERROR", "type": {"name": name, "code": "IST0106"}}]);
    let reconciled = |status: &str, generation: Value| json!([{"type": "Reconciled", "status": status, "observedGeneration": generation}]);
    let table = [
        (json!({}), "effective"),
        (json!({"observedGeneration": "2"}), "effective"),
        (json!({"observedGeneration": "1"}), "not yet"),
        (json!({"observedGeneration": 1, "validationMessages": error("SchemaValidationError")}), "not yet"),
        (json!({"observedGeneration": "2", "validationMessages": error("SchemaValidationError")}), "refused"),
        (json!({"observedGeneration": "2", "validationMessages": error("ReferencedResourceNotFound")}), "not yet"),
        (json!({"validationMessages": error("SchemaValidationError")}), "effective"),
        (json!({"conditions": reconciled("False", json!("2"))}), "not yet"),
        (json!({"conditions": reconciled("True", json!("2"))}), "effective"),
        (json!({"conditions": reconciled("False", json!("1"))}), "effective"),
    ];
    for (status, expected) in table {
        let live = object(Kind::VirtualService, "web", json!({"metadata": {"generation": 2}, "status": status}));
        let word = match super::status(&live) {
            RouteStatus::NotYet { .. } => "not yet",
            RouteStatus::Effective => "effective",
            RouteStatus::Refused { .. } => "refused",
            RouteStatus::Barred { .. } => "barred",
            RouteStatus::Blocked { .. } => "blocked",
            RouteStatus::Unknown { .. } => "unknown",
        };
        assert_eq!(word, expected, "{status}");
    }
    let none = object(Kind::VirtualService, "web", json!({"metadata": {"generation": 2}}));
    assert_eq!(status(&none), routers::RouteStatus::Effective);
}

#[test]
fn answers_to_those_whom_chance_led_there_set_the_cookie() {
    let own = json!({"response": {"add": {"x-served-by": "us"}}});
    let to = |host: &str| json!({"destination": {"host": host}, "headers": own});
    let plain = service(json!([{"route": [to("web")]}]));
    let run = crate::manifest::cookie::matching("stay", "7-9ac41f02");
    let keeping = Split { headers: [run].into(), ..split(10, 0) };
    let rendered = Istio(&web()).with_cookie(&render(&plain, &web(), &keeping), "stay=7-9ac41f02");
    let mut candidate = to("web-canary");
    candidate["weight"] = 10.into();
    candidate["headers"]["response"]["add"]["Set-Cookie"] = "stay=7-9ac41f02".into();
    assert_eq!(http(&rendered)[0]["route"], json!([to("web-canary")]));
    assert_eq!(http(&rendered)[1]["route"][0]["headers"], own);
    assert_eq!(http(&rendered)[1]["route"][1], candidate);
    assert_eq!(read(&rendered, &web()), ObservedSplit::Split(keeping));
    assert_eq!(retreat(&rendered, &web()), render(&plain, &web(), &Split::stable()));
}
