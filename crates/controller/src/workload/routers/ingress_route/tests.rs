use super::*;
use crate::manifest::cookie;
use crate::manifest::desired::HeaderMatch;
use crate::manifest::object::Kind;
use crate::manifest::traefik::priority;
use crate::record::posture::Split;
use crate::workload::fixtures::{name, object};
use crate::workload::routers::ObservedSplit;
use crate::workload::routers::tests::{lowered, rendered, shown};

/// As in Traefik's reference: a path of its own beside the rest of a host, with middlewares, and a service that is another's.
fn route() -> Object {
    let routes = json!([
        {"match": "Host(`web.example.org`) && PathPrefix(`/docs`)", "kind": "Rule", "services": [{"name": "docs", "port": 80}]},
        {"match": "Host(`web.example.org`)", "kind": "Rule", "middlewares": [{"name": "auth"}],
         "services": [{"name": "web", "port": 80}, {"name": "old", "port": 80, "weight": 3}]},
        {"match": "Host(`a.example.org`) || Host(`b.example.org`)", "kind": "Rule", "priority": 7, "services": [{"name": "web", "port": 80}]},
        {"match": "PathPrefix(`/api@internal`)", "kind": "Rule", "services": [{"name": "api@internal", "kind": "TraefikService"}]},
    ]);
    object(
        Kind::IngressRoute,
        "web",
        json!({"spec": {"entryPoints": ["websecure"], "routes": routes, "tls": {"secretName": "web"}}}),
    )
}

fn render(plain: &Object, of: &ObjectName, split: &Split) -> Object {
    rendered(&IngressRoute(of), plain, split)
}

fn read(live: &Object, of: &ObjectName) -> ObservedSplit {
    shown(&IngressRoute(of), live)
}

fn retreat(live: &Object, of: &ObjectName) -> Object {
    lowered(&IngressRoute(of), live)
}

fn split_services(route: &Object, candidates: &BTreeSet<ObjectName>) -> BTreeSet<ObjectName> {
    let web = name("web");
    IngressRoute(&web).split(route, candidates).into_iter().map(|(_, service)| service).collect()
}

fn split(weight: u8, headers: &[HeaderMatch]) -> Split {
    Split { weight: weight.try_into().unwrap(), headers: headers.iter().cloned().collect(), ..Split::stable() }
}

fn one(pairs: &[(&str, &str)]) -> HeaderMatch {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect()
}

#[test]
fn c_22_whoever_sends_the_headers_has_a_route_before_that_of_the_others() {
    let testers = split(10, &[one(&[("x-canary", "always")]), one(&[("x-team", "shop"), ("x-user", "ana")])]);
    let rendered = render(&route(), &name("web"), &testers);
    insta::assert_json_snapshot!(rendered.value()["spec"]);
    assert_eq!(read(&rendered, &name("web")), ObservedSplit::Split(testers));
    let back = retreat(&rendered, &name("web"));
    assert_eq!(back, render(&route(), &name("web"), &Split::stable()));
    assert_eq!(retreat(&back, &name("web")), back);
}

#[test]
fn a_cookie_is_a_pattern_of_a_header() {
    let holders = split(0, &[cookie::matching("canary", "always")]);
    let rendered = render(&route(), &name("web"), &holders);
    let rule = rendered.text("/spec/routes/1/match").unwrap();
    assert_eq!(rule, "(Host(`web.example.org`)) && HeaderRegexp(`cookie`, `^(.*; *)?canary=always( *;.*)?$`)");
    assert_eq!(read(&rendered, &name("web")), ObservedSplit::Split(holders));
}

#[test]
fn a_route_for_headers_goes_before_that_of_the_others_and_before_no_other() {
    let rendered = render(&route(), &name("web"), &split(0, &[one(&[("x-canary", "always")])]));
    let routes: Vec<(i64, bool)> = items(&rendered.value()["spec"], "routes")
        .map(|route| {
            (priority(route), !traefik::split_in(&rendered, items(route, "services"), &BTreeSet::new()).is_empty())
        })
        .collect();
    assert_eq!(routes, [(46, false), (24, true), (23, false), (8, true), (7, false), (27, false)]);
}

/// A route of the user's own may ask for a header of the next one's requests, in the words in which we write that.
#[test]
fn c_22_a_rule_of_the_users_own_is_none_of_ours() {
    let both = "Host(`a.example.org`) || Host(`b.example.org`)";
    let led = |rule: &str, to: &str| json!({"match": rule, "kind": "Rule", "services": [{"name": to, "port": 80}]});
    let own = format!("({both}) && Header(`x-api`, `2`)");
    for first in ["web", "docs"] {
        let routes = json!([led(&own, first), led(both, "web")]);
        let plain = object(Kind::IngressRoute, "web", json!({"spec": {"routes": routes}}));
        for testers in [split(0, &[]), split(10, &[]), split(10, &[one(&[("x-canary", "always")])])] {
            let rendered = render(&plain, &name("web"), &testers);
            assert_eq!(read(&rendered, &name("web")), ObservedSplit::Split(testers), "{first}: {:#}", rendered.value());
            let back = retreat(&rendered, &name("web"));
            assert_eq!(back, render(&plain, &name("web"), &Split::stable()), "{first}");
        }
    }
}

#[test]
fn x_16_what_a_hand_writes_otherwise_is_foreign_and_goes_back() {
    let rendered = render(&route(), &name("web"), &split(0, &[one(&[("x-canary", "always")])]));
    for rule in [
        "Host(`web.example.org`)",
        "(Host(`web.example.org`)) && Header(`x-canary`, `always`) || Path(`/`)",
        "HostRegexp(`.*`)",
    ] {
        let mut live = rendered.clone();
        live.value_mut()["spec"]["routes"][1]["match"] = rule.into();
        let seen = read(&live, &name("web"));
        assert!(!matches!(&seen, ObservedSplit::Split(split) if split.is_stable()), "{rule}: {seen:?}");
        let back = retreat(&live, &name("web"));
        assert_eq!(read(&back, &name("web")), ObservedSplit::Split(Split::stable()), "{rule}");
        assert_eq!(retreat(&back, &name("web")), back, "{rule}: a second time changes something");
    }
}

/// The route for headers has lost the one that it stood before: its requests would be nobody's without it.
#[test]
fn a_route_that_is_left_alone_goes_back_to_stable_with_its_rule() {
    let mut live = render(&route(), &name("web"), &split(0, &[one(&[("x-canary", "always")])]));
    live.value_mut()["spec"]["routes"][2]["services"] = json!([{"name": "docs", "port": 80}]);
    assert!(matches!(read(&live, &name("web")), ObservedSplit::Foreign(_)));
    let back = retreat(&live, &name("web"));
    let of = |route: &Object| ["match", "priority"].map(|field| route.value()["spec"]["routes"][1][field].clone());
    assert_eq!(of(&back), of(&live));
    assert_eq!(read(&back, &name("web")), ObservedSplit::Split(Split::stable()));
    assert_eq!(retreat(&back, &name("web")), back);
}

#[test]
fn the_services_that_are_split_are_known() {
    let rendered = render(&route(), &name("web"), &split(10, &[]));
    let candidates = BTreeSet::from([name("web-canary")]);
    assert_eq!(split_services(&rendered, &BTreeSet::new()), BTreeSet::from([name("web")]));
    assert_eq!(split_services(&route(), &BTreeSet::new()), BTreeSet::new());
    assert_eq!(split_services(&route(), &candidates), BTreeSet::from([name("web")]));
}
