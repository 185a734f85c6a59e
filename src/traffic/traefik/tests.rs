use super::*;
use crate::target::fixtures::{name, object};

fn service(services: Value) -> Object {
    let spec = json!({"weighted": {"services": services, "sticky": {"cookie": {"name": "theirs"}}}});
    object(Kind::TraefikService, "web", json!({"spec": spec}))
}

fn at(weight: u8) -> Split {
    Split { weight: weight.try_into().unwrap(), ..Split::stable() }
}

/// An entry with what people write beside it, as in Traefik's reference.
fn entry(of: &str, weight: u64) -> Value {
    json!({"name": of, "namespace": "shop", "port": "http", "scheme": "h2c", "passHostHeader": true, "weight": weight})
}

#[test]
fn c_22_shares_are_split_and_others_keep_theirs() {
    let nested = json!({"name": "web", "kind": "TraefikService", "weight": 2});
    let plain = service(json!([entry("web", 3), nested, {"name": "old", "port": 80}]));
    let rendered = render(&plain, &name("web"), &at(25));
    let expected = json!([
        entry("web", 225), entry("web-canary", 75),
        {"name": "web", "kind": "TraefikService", "weight": 200}, {"name": "old", "port": 80, "weight": 100},
    ]);
    assert_eq!(rendered.at("/spec/weighted/services"), Some(&expected));
    assert_eq!(rendered.at("/spec/weighted/sticky"), plain.at("/spec/weighted/sticky"));
    assert_eq!(read(&rendered, &name("web")), Seen::Split(at(25)));
    assert_eq!(retreat(&rendered, &name("web")), render(&plain, &name("web"), &Split::stable()));
    assert_eq!(ports(&plain, &name("web")).collect::<Vec<_>>(), [&json!("http")]);
    assert_eq!(split_services(&rendered), BTreeSet::from([name("web")]));
}

#[test]
fn x_16_a_candidate_alone_is_foreign_and_goes_back() {
    let by_hand = service(json!([entry("web-canary", 1)]));
    assert!(matches!(read(&by_hand, &name("web")), Seen::Foreign(_)));
    assert_eq!(retreat(&by_hand, &name("web")), service(json!([entry("web", 1)])));
}

#[test]
fn what_leads_to_a_service_is_known_wherever_it_stands() {
    let mirrored = object(
        Kind::TraefikService,
        "copies",
        json!({"spec": {"mirroring": {"name": "web", "port": 80, "mirrors": [{"name": "audit", "percent": 10}]}}}),
    );
    let led = |kind: &str| {
        let services = json!([{"name": "web", "kind": kind}]);
        let routes = json!([{"match": "Host(`web.example.org`)", "kind": "Rule", "services": services, "middlewares": [{"name": "auth"}]}]);
        object(Kind::IngressRoute, "web", json!({"spec": {"entryPoints": ["websecure"], "routes": routes}}))
    };
    for (object, of, wanted) in [
        (mirrored.clone(), "web", true),
        (mirrored.clone(), "audit", true),
        (mirrored, "other", false),
        (led("Service"), "web", true),
        (led("TraefikService"), "web", false),
        (led("Service"), "auth", false),
    ] {
        assert_eq!(references(&object, &name(of)), wanted, "{of}: {:?}", object.value());
    }
}
