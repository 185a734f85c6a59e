use super::status::status as route_status;
use super::*;
use crate::manifest::desired::HeaderValue;
use crate::workload::fixtures::{name, object};
use std::collections::BTreeSet;

mod grpc;
mod properties;
mod simulated;
mod status;
mod sticky;

use simulated::{Request, candidate_share};

fn route(rules: Value) -> Object {
    object(Kind::HttpRoute, "web", json!({"spec": {"parentRefs": [{"name": "gw"}], "rules": rules}}))
}

fn rules_of(route: &Object) -> &Value {
    route.at("/spec/rules").unwrap()
}

fn web() -> ObjectName {
    name("web")
}

fn split(weight: u8, headers: &[&[(&str, &str)]]) -> Split {
    let alternative = |pairs: &&[(&str, &str)]| pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).into())).collect();
    let headers = headers.iter().map(alternative).collect();
    Split { weight: weight.try_into().unwrap(), headers, ..Split::stable() }
}

fn seen(weight: u8, headers: &[&[(&str, &str)]]) -> ObservedSplit {
    ObservedSplit::Split(split(weight, headers))
}

fn exact(name: &str, value: &str) -> Value {
    json!({"type": "Exact", "name": name, "value": value})
}

fn pattern(name: &str, value: &str) -> Value {
    json!({"type": "RegularExpression", "name": name, "value": value})
}

#[test]
fn c_22_weights_are_split_and_other_backends_keep_their_share() {
    let filters = json!([{"type": "RequestHeaderModifier"}]);
    let base = route(json!([
        {"name": "main", "backendRefs": [
            {"name": "web", "port": 80, "filters": filters},
            {"name": "old", "port": 80, "weight": 3},
            {"name": "web", "namespace": "elsewhere", "port": 80},
            {"name": "web", "kind": "ServiceImport", "group": "x", "port": 80},
        ]},
        {"backendRefs": [{"name": "docs", "port": 80}]},
        {"backendRefs": [{"name": "web", "namespace": "shop", "port": 81, "weight": 2}]},
    ]));
    let rendered = render(&base, &web(), &split(10, &[]));
    let expected = json!([
        {"name": "main", "backendRefs": [
            {"name": "web", "port": 80, "filters": filters, "weight": 90},
            {"name": "web-canary", "port": 80, "filters": filters, "weight": 10},
            {"name": "old", "port": 80, "weight": 300},
            {"name": "web", "namespace": "elsewhere", "port": 80, "weight": 100},
            {"name": "web", "kind": "ServiceImport", "group": "x", "port": 80, "weight": 100},
        ]},
        {"backendRefs": [{"name": "docs", "port": 80}]},
        {"backendRefs": [
            {"name": "web", "namespace": "shop", "port": 81, "weight": 180},
            {"name": "web-canary", "namespace": "shop", "port": 81, "weight": 20},
        ]},
    ]);
    assert_eq!(rules_of(&rendered), &expected);
    assert_eq!(rendered.at("/spec/parentRefs"), base.at("/spec/parentRefs"));
    assert_eq!(read(&rendered, &web()), seen(10, &[]));
}

#[test]
fn c_22_headers_put_a_rule_for_the_candidate_alone_before_each_rule() {
    let timeouts = json!({"request": "10s"});
    let base = route(json!([
        {"name": "main", "timeouts": timeouts, "backendRefs": [{"name": "web", "port": 80}, {"name": "old", "port": 80}]},
    ]));
    let rendered = render(&base, &web(), &split(0, &[&[("x-canary", "always")], &[("x-a", "1"), ("x-b", "2")]]));
    let root = json!({"type": "PathPrefix", "value": "/"});
    let expected = json!([
        {
            "timeouts": timeouts,
            "matches": [
                {"path": root, "headers": [exact("x-a", "1"), exact("x-b", "2")]},
                {"path": root, "headers": [exact("x-canary", "always")]},
            ],
            "backendRefs": [{"name": "web-canary", "port": 80, "weight": 1}],
        },
        {"name": "main", "timeouts": timeouts, "backendRefs": [
            {"name": "web", "port": 80, "weight": 100},
            {"name": "web-canary", "port": 80, "weight": 0},
            {"name": "old", "port": 80, "weight": 100},
        ]},
    ]);
    assert_eq!(rules_of(&rendered), &expected);
    assert_eq!(read(&rendered, &web()), seen(0, &[&[("x-canary", "always")], &[("x-a", "1"), ("x-b", "2")]]));
}

#[test]
fn c_22_a_pattern_is_written_and_read_as_a_condition_of_its_own() {
    let regex = |regex: &str| HeaderValue::Regex { regex: regex.to_owned() };
    let one = |pairs: &[(&str, HeaderValue)]| pairs.iter().map(|(n, v)| ((*n).to_owned(), v.clone())).collect();
    let headers = [one(&[("cookie", regex("^a=1$")), ("x-team", "shop".into())]), one(&[("x-canary", regex("^1$"))])];
    let wanted = Split { headers: headers.into(), weight: 10_u8.try_into().unwrap(), ..Split::stable() };
    let rendered = render(&route(json!([{"backendRefs": [{"name": "web"}]}])), &web(), &wanted);
    let matches = &rules_of(&rendered)[0]["matches"];
    assert_eq!(matches[0]["headers"], json!([pattern("cookie", "^a=1$"), exact("x-team", "shop")]));
    assert_eq!(matches[1]["headers"], json!([pattern("x-canary", "^1$")]));
    assert_eq!(read(&rendered, &web()), ObservedSplit::Split(wanted.clone()));
    assert_eq!(read(&retreat(&rendered, &web()), &web()), seen_stable());
    let text = Split { headers: [one(&[("x-canary", "^1$".into())])].into(), ..wanted.clone() };
    assert!(!text.within(&wanted) && wanted.within(&wanted), "the same text, compared in another way");
}

#[test]
fn a_mirror_is_a_filter_before_everything_is_on_the_candidate() {
    let base =
        route(json!([{"filters": [{"type": "CORS"}], "backendRefs": [{"name": "web", "port": 80, "weight": 1}]}]));
    let wanted = |weight, mirror: u8| Split { mirror: mirror.try_into().unwrap(), ..split(weight, &[]) };
    let filters = |split: &Split| rules_of(&render(&base, &web(), split))[0]["filters"].clone();
    let canary = json!({"name": "web-canary", "port": 80});
    let copy = |mirror: Value| json!([{"type": "CORS"}, {"type": "RequestMirror", "requestMirror": mirror}]);
    assert_eq!(filters(&wanted(0, 10)), copy(json!({"backendRef": canary, "percent": 10})));
    assert_eq!(filters(&wanted(50, 100)), copy(json!({"backendRef": canary})));
    assert_eq!(filters(&wanted(100, 10)), json!([{"type": "CORS"}]));
    for split in [wanted(0, 10), wanted(50, 100), wanted(100, 10)] {
        let ObservedSplit::Split(seen) = read(&render(&base, &web(), &split), &web()) else { panic!("foreign") };
        assert!(seen.same(&split), "{seen:?}");
        assert_eq!(retreat(&render(&base, &web(), &split), &web()), render(&base, &web(), &Split::stable()));
    }
    assert!(!wanted(0, 20).within(&wanted(5, 10)) && wanted(0, 10).within(&wanted(5, 10)));
    let thirds = json!({"type": "RequestMirror", "requestMirror": {"backendRef": canary, "fraction": {"numerator": 1, "denominator": 3}}});
    let live = route(json!([{"backendRefs": [{"name": "web", "port": 80, "filters": [thirds]}]}]));
    assert_eq!(read(&live, &web()), ObservedSplit::Split(wanted(0, 34)));
}

#[test]
fn header_rules_join_the_bases_matches_and_leave_out_contradictions() {
    let path = json!({"type": "Exact", "value": "/api"});
    let base = |headers: Value| {
        let one = json!({"path": path, "method": "GET", "headers": headers});
        route(json!([{"matches": [one], "backendRefs": [{"name": "web"}]}]))
    };
    let joined = |headers: Value| {
        let rendered = render(&base(headers), &web(), &split(0, &[&[("x-canary", "always")]]));
        let rules = rules_of(&rendered).as_array().unwrap().clone();
        (rules.len() == 2).then(|| rules[0]["matches"].clone())
    };
    let with = |headers: Value| Some(json!([{"path": path, "method": "GET", "headers": headers}]));
    let table = [
        (json!([]), with(json!([exact("x-canary", "always")]))),
        (json!([exact("x-a", "1")]), with(json!([exact("x-a", "1"), exact("x-canary", "always")]))),
        (json!([exact("X-Canary", "always")]), with(json!([exact("X-Canary", "always")]))),
        (json!([{"name": "x-canary", "value": "always"}]), with(json!([{"name": "x-canary", "value": "always"}]))),
        (json!([exact("X-Canary", "never")]), None),
        (json!([pattern("x-canary", "always")]), None),
    ];
    for (headers, expected) in table {
        assert_eq!(joined(headers.clone()), expected, "{headers}");
    }
}

#[test]
fn an_empty_alternative_is_nobody_and_a_rule_without_requests_gets_none() {
    let base = route(json!([{"backendRefs": [{"name": "web"}]}]));
    assert_eq!(rules_of(&render(&base, &web(), &split(0, &[&[]]))).as_array().unwrap().len(), 1);
    let off = route(json!([{"backendRefs": [{"name": "web", "weight": 0}, {"name": "old"}]}]));
    assert_eq!(rules_of(&render(&off, &web(), &split(50, &[&[("a", "1")]]))).as_array().unwrap().len(), 1);
}

#[test]
fn c_22_defaults_of_the_api_server_read_the_same() {
    let live = route(json!([
        {
            "matches": [{"path": {"type": "PathPrefix", "value": "/"}, "headers": [exact("x-canary", "always")]}],
            "backendRefs": [{"group": "", "kind": "Service", "name": "web-canary", "port": 80, "weight": 1}],
        },
        {
            "matches": [{"path": {"type": "PathPrefix", "value": "/"}}],
            "backendRefs": [
                {"group": "", "kind": "Service", "name": "web", "port": 80, "weight": 75},
                {"group": "", "kind": "Service", "name": "web-canary", "port": 80, "weight": 25},
            ],
        },
    ]));
    assert_eq!(read(&live, &web()), seen(25, &[&[("x-canary", "always")]]));
}

#[test]
fn the_highest_weight_counts_rounded_up() {
    let pair = |stable: u32, candidate: u32| json!({"backendRefs": [{"name": "web", "weight": stable}, {"name": "web-canary", "weight": candidate}]});
    let table = [
        (json!([pair(100, 0)]), 0),
        (json!([pair(999, 1)]), 1),
        (json!([pair(2, 1)]), 34),
        (json!([pair(90, 10), pair(50, 50)]), 50),
        (json!([pair(0, 7)]), 100),
        (json!([pair(0, 0)]), 0),
        (json!([{"backendRefs": [{"name": "web"}]}, pair(80, 20)]), 20),
        (json!([]), 0),
    ];
    for (rules, weight) in table {
        assert_eq!(read(&route(rules.clone()), &web()), seen(weight, &[]), "{rules}");
    }
}

#[test]
fn shapes_that_we_never_write_are_foreign() {
    let base = json!({"backendRefs": [{"name": "web"}]});
    let alone = |matches: Value| json!({"matches": matches, "backendRefs": [{"name": "web-canary"}]});
    let by_header = alone(json!([{"headers": [exact("a", "1")]}]));
    let by_other = alone(json!([{"headers": [{"type": "Glob", "name": "a", "value": "*"}]}]));
    let other_path = alone(json!([{"path": {"type": "PathPrefix", "value": "/x"}, "headers": [exact("a", "1")]}]));
    let mirror = json!({"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "web-canary"}}});
    let table = [
        (json!([by_header]), "rule 0 sends to the candidate alone"),
        (json!([by_header, by_header, base]), "rule 0 sends to the candidate alone"),
        (json!([base, by_header, {"backendRefs": [{"name": "docs"}]}]), "rule 1 sends to the candidate alone"),
        (json!([by_other, base]), "matches header a by Glob"),
        (json!([other_path, base]), "matches requests that the rule after it does not"),
        (json!([{"backendRefs": [{"name": "web-canary"}, {"name": "docs"}]}]), "but not to web"),
        (json!([{"filters": [mirror], "backendRefs": [{"name": "docs"}]}]), "mirrors"),
        (json!([{"backendRefs": [{"name": "docs", "filters": [mirror]}]}]), "mirrors"),
    ];
    for (rules, text) in table {
        let seen = read(&route(rules.clone()), &web());
        assert!(matches!(&seen, ObservedSplit::Foreign(why) if why.contains(text)), "{rules}: {seen:?}");
        assert_eq!(read(&retreat(&route(rules.clone()), &web()), &web()), seen_stable(), "{rules}");
    }
}

fn seen_stable() -> ObservedSplit {
    ObservedSplit::Split(Split::stable())
}

#[test]
fn a_match_sent_to_the_candidate_as_a_whole_is_weight_100() {
    let base = json!({"matches": [{"headers": [exact("a", "1")]}], "backendRefs": [{"name": "web"}]});
    let whole = json!({"matches": [{"headers": [exact("A", "1")]}], "backendRefs": [{"name": "web-canary"}]});
    assert_eq!(read(&route(json!([whole, base])), &web()), seen(100, &[]));
}

#[test]
fn an_alternative_counts_only_if_every_rule_has_it() {
    // The second rule's match has header a itself, so that {a, c} there is {c} joined; the first tells them apart.
    let base = route(json!([
        {"matches": [{"headers": [exact("a", "1")]}], "backendRefs": [{"name": "web"}]},
        {"backendRefs": [{"name": "web"}]},
    ]));
    for wanted in
        [split(0, &[&[("c", "2")]]), split(5, &[&[("a", "1"), ("c", "2")]]), split(0, &[&[("a", "2")], &[("c", "1")]])]
    {
        assert_eq!(read(&render(&base, &web(), &wanted), &web()), ObservedSplit::Split(wanted));
    }
}

#[test]
fn retreat_gives_stable_what_the_candidate_had() {
    let base = route(
        json!([{"matches": [{"method": "GET"}], "backendRefs": [{"name": "web", "weight": 3}, {"name": "old"}]}]),
    );
    let rendered = render(&base, &web(), &split(30, &[&[("x", "y")]]));
    assert_eq!(retreat(&rendered, &web()), render(&base, &web(), &Split::stable()));
    assert_eq!(retreat(&base, &web()), base);
}

#[test]
fn retreat_leaves_no_request_unanswered() {
    let live = route(json!([{"backendRefs": [{"name": "web-canary", "port": 80, "weight": 7}]}]));
    let expected = json!([{"backendRefs": [{"name": "web", "port": 80, "weight": 7}]}]);
    assert_eq!(rules_of(&retreat(&live, &web())), &expected);
}

#[test]
fn references_are_backends_and_mirrors_of_the_same_namespace() {
    let mirror = |name: &str| json!([{"type": "RequestMirror", "requestMirror": {"backendRef": {"name": name}}}]);
    let table = [
        (json!([{"backendRefs": [{"name": "web", "weight": 0}]}]), true),
        (json!([{"filters": mirror("web"), "backendRefs": [{"name": "x"}]}]), true),
        (json!([{"backendRefs": [{"name": "x", "filters": mirror("web")}]}]), true),
        (json!([{"backendRefs": [{"name": "web", "namespace": "other"}]}]), false),
        (json!([{"backendRefs": [{"name": "web-canary"}]}]), false),
        (json!([]), false),
    ];
    for (rules, expected) in table {
        assert_eq!(crate::workload::routers::references(&route(rules.clone()), &web()), expected, "{rules}");
    }
    assert!(!crate::workload::routers::references(&object(Kind::Service, "web", json!({})), &web()));
}

#[test]
fn check_names_everything_that_is_in_the_way() {
    let backends = |count: usize| (0..count).map(|n| json!({"name": format!("s{n}")})).collect::<Vec<_>>();
    let mut many = backends(15);
    many.push(json!({"name": "web"}));
    let named = |n: usize, rule: &str| vec![json!({"name": rule, "backendRefs": [{"name": "web"}]}); n];
    let matched =
        |n: usize| (0..n).map(|n| json!({"path": {"type": "Exact", "value": format!("/{n}")}})).collect::<Vec<_>>();
    let headers = |n: usize| (0..n).map(|n| exact(&format!("h{n}"), "v")).collect::<Vec<_>>();
    let web = json!([{"name": "web"}]);
    let one = |matches: Value| json!([{"matches": matches, "backendRefs": web}]);
    let canary = split(0, &[&[("x", "1")]]);
    let table = [
        (json!([{"backendRefs": [{"name": "docs"}]}]), Split::stable(), "no rule sends to Service web"),
        (
            json!([{"backendRefs": [{"name": "web"}, {"name": "web-canary"}]}]),
            Split::stable(),
            "rule 0 names the candidate",
        ),
        (json!([{"backendRefs": [{"name": "web", "weight": 10_001}]}]), Split::stable(), "takes at most 1000000"),
        (json!([{"backendRefs": many}]), Split::stable(), "17 backendRefs in one rule"),
        (json!(vec![json!({"backendRefs": web}); 9]), canary.clone(), "18 rules with"),
        (one(json!(matched(33))), split(0, &[&[("x", "1")], &[("y", "1")]]), "66 matches in one rule"),
        (json!([one(json!(matched(64)))[0], one(json!(matched(64)))[0]]), canary.clone(), "256 matches in all rules"),
        (one(json!([{"headers": headers(16)}])), canary.clone(), "17 headers in one match"),
        (json!(named(2, "same")), canary.clone(), "rule name \"same\" stands twice"),
        (one(json!([{"headers": [exact("a", "1"), exact("A", "2")]}])), canary.clone(), "header \"a\" stands twice"),
        (one(json!([{"headers": [exact("x", "1")]}])), canary.clone(), "use a header that no rule asks for"),
        (one(json!([{"headers": [exact("x", "2")]}])), canary.clone(), "use a header that no rule asks for"),
    ];
    for (rules, split, text) in table {
        let errors = check(&route(rules.clone()), &self::web(), &split).unwrap_err();
        let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
        assert!(errors.iter().any(|e| e.contains(text)), "{rules}: {errors:?}");
    }
    let base = route(json!([{"backendRefs": [{"name": "web", "weight": 10_000}]}]));
    assert_eq!(check(&base, &self::web(), &canary), Ok(()));
}

#[test]
fn the_simulated_gateway_follows_the_specification() {
    let live = route(json!([
        {"backendRefs": [{"name": "web"}]},
        {"matches": [{"headers": [exact("A", "1")]}], "backendRefs": [{"name": "web-canary"}]},
        {"matches": [{"path": {"type": "PathPrefix", "value": "/x"}}], "backendRefs": [{"name": "old"}]},
    ]));
    let share = |path: &str, headers: &[(&str, &str)]| {
        let headers: BTreeSet<_> = headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        candidate_share(&live, &Request { path: path.to_owned(), headers: headers.into_iter().collect() })
    };
    assert!((share("/", &[("a", "1")]) - 100.0).abs() < 1e-9);
    assert!(share("/", &[]) == 0.0);
    assert!(share("/x/y", &[("a", "1")]) == 0.0);
}
