use super::*;
use crate::workload::fixtures::{name, object};
use crate::workload::routers::ObservedSplit;
use crate::workload::routers::tests::{lowered, rendered, shown};

fn render(plain: &Object, of: &ObjectName, split: &Split) -> Object {
    rendered(&Traefik(of), plain, split)
}

fn read(live: &Object, of: &ObjectName) -> ObservedSplit {
    shown(&Traefik(of), live)
}

fn retreat(live: &Object, of: &ObjectName) -> Object {
    lowered(&Traefik(of), live)
}

fn split_services(route: &Object, candidates: &BTreeSet<ObjectName>) -> BTreeSet<ObjectName> {
    let web = name("web");
    Traefik(&web).split(route, candidates).into_iter().map(|(_, service)| service).collect()
}

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
    assert_eq!(read(&rendered, &name("web")), ObservedSplit::Split(at(25)));
    assert_eq!(retreat(&rendered, &name("web")), render(&plain, &name("web"), &Split::stable()));
    assert_eq!(Traefik(&name("web")).ports(&plain), [json!("http")]);
    assert_eq!(split_services(&rendered, &BTreeSet::new()), BTreeSet::from([name("web")]));
}

#[test]
fn x_16_a_candidate_alone_is_foreign_and_goes_back() {
    let by_hand = service(json!([entry("web-canary", 1)]));
    assert!(matches!(read(&by_hand, &name("web")), ObservedSplit::Foreign(_)));
    assert_eq!(retreat(&by_hand, &name("web")), service(json!([entry("web", 1)])));
}

/// Traefik 3, `pkg/provider/kubernetes/crd`: "no servers found" for one service, and the whole router is left out.
#[test]
fn c_22_a_candidate_that_gets_nothing_is_not_named() {
    let (web, candidates) = (name("web"), BTreeSet::from([name("web-canary")]));
    let plain = service(json!([entry("web", 3), {"name": "old", "port": 80, "weight": 0}]));
    let at_stable = render(&plain, &web, &Split::stable());
    let expected = json!([entry("web", 300), {"name": "old", "port": 80, "weight": 0}]);
    assert_eq!(at_stable.at("/spec/weighted/services"), Some(&expected));
    for split in [at(25), at(100), copies(0, 10), copies(50, 100)] {
        let rendered = render(&plain, &web, &split);
        assert_eq!(read(&rendered, &web), ObservedSplit::Split(split));
        assert_eq!(retreat(&rendered, &web), at_stable);
    }
    assert!(!render(&plain, &web, &copies(0, 10)).value().to_string().contains(r#""name":"web-canary","namespace""#));
    // Whoever looks without a record finds what it splits all the same.
    assert_eq!(split_services(&at_stable, &candidates), BTreeSet::from([web]));
    assert_eq!(split_services(&at_stable, &BTreeSet::new()), BTreeSet::new());
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

fn copies(weight: u8, mirror: u8) -> Split {
    Split { mirror: mirror.try_into().unwrap(), ..at(weight) }
}

#[test]
fn copies_are_a_share_of_stables_that_comes_by_the_copier() {
    let web = name("web");
    let plain =
        service(json!([{"name": "web", "port": 80, "passHostHeader": true}, {"name": "old", "port": 80, "weight": 3}]));
    let rendered = render(&plain, &web, &copies(50, 10));
    let of = |name: &str, weight: u64| json!({"name": name, "port": 80, "passHostHeader": true, "weight": weight});
    let expected = json!([
        of("web", 4_500), {"name": "web-canary", "kind": "TraefikService", "weight": 500}, of("web-canary", 5_000),
        {"name": "old", "port": 80, "weight": 30_000},
    ]);
    assert_eq!(rendered.at("/spec/weighted/services"), Some(&expected));
    for (weight, mirror) in [(0, 1), (33, 33), (50, 10), (0, 100), (99, 100)] {
        let split = copies(weight, mirror);
        let rendered = render(&plain, &web, &split);
        assert_eq!(read(&rendered, &web), ObservedSplit::Split(split));
        assert_eq!(retreat(&rendered, &web), render(&plain, &web, &Split::stable()));
    }
    assert_eq!(split_services(&rendered, &BTreeSet::new()), BTreeSet::from([web]));
}

/// As in Traefik's reference of TraefikService, "Mirroring".
#[test]
fn the_copier_leads_to_stable_and_copies_to_the_candidate() {
    let metadata = json!({"labels": {"team": "shop"}});
    let plain = object(
        Kind::TraefikService,
        "web",
        json!({"metadata": metadata, "spec": {"weighted": {"services": [entry("web", 3)]}}}),
    );
    let made = copier(&plain.renamed(name("web-canary")), &plain, &name("web")).unwrap();
    insta::assert_json_snapshot!(made.value());
    assert!(references(&made, &name("web")) && references(&made, &name("web-canary")));
    assert_eq!(split_services(&made, &BTreeSet::new()), BTreeSet::new());
}

#[test]
fn x_16_a_copier_without_stable_beside_it_is_seen_and_goes_back() {
    let by_hand = service(json!([{"name": "web-canary", "kind": "TraefikService", "weight": 7}]));
    assert_eq!(read(&by_hand, &name("web")), ObservedSplit::Split(copies(0, 100)));
    assert_eq!(retreat(&by_hand, &name("web")), service(json!([{"name": "web", "weight": 7}])));
}
