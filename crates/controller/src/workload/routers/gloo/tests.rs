use super::*;
use crate::manifest::desired::HeaderValue;
use crate::manifest::object::Kind;
use crate::record::posture::Split;
use crate::workload::fixtures::{name, object};
use crate::workload::routers::ObservedSplit;
use crate::workload::routers::tests::{lowered, rendered, shown};

fn table(routes: Value) -> Object {
    object(Kind::RouteTable, "web", json!({"spec": {"weight": 10, "routes": routes}}))
}

fn kube(of: &str) -> Value {
    json!({"kube": {"ref": {"name": of, "namespace": "shop"}, "port": 80}})
}

fn multi(entries: &[(&str, u32)]) -> Value {
    let entries = entries.iter().map(|(of, weight)| json!({"destination": kube(of), "weight": weight}));
    json!({"multi": {"destinations": entries.collect::<Vec<_>>()}})
}

fn render(plain: &Object, split: &Split) -> Value {
    rendered(&RouteTable(&name("web")), plain, split).value()["spec"]["routes"].clone()
}

fn at(weight: u8) -> Split {
    Split { weight: weight.try_into().unwrap(), ..Split::stable() }
}

fn testers(weight: u8, name: &str, value: HeaderValue) -> Split {
    Split { headers: [[(name.to_owned(), value)].into()].into(), ..at(weight) }
}

fn exact(value: &str) -> HeaderValue {
    HeaderValue::Exact(value.to_owned())
}

#[test]
fn t_3_t_21_header_and_path_stand_in_one_matcher_before_the_plain_route() {
    let plain = table(json!([
        {"name": "docs", "matchers": [{"prefix": "/docs"}], "routeAction": {"single": kube("docs")}},
        {"name": "echo", "matchers": [{"prefix": "/echo"}], "options": {"timeout": "5s"}, "routeAction": {"single": kube("web")}},
    ]));
    let expected = json!([
        plain.value()["spec"]["routes"][0],
        {"matchers": [{"prefix": "/echo", "headers": [{"name": "stage", "value": "canary"}]}], "options": {"timeout": "5s"},
         "routeAction": {"single": kube("web-canary")}},
        {"name": "echo", "matchers": [{"prefix": "/echo"}], "options": {"timeout": "5s"},
         "routeAction": multi(&[("web", 100), ("web-canary", 0)])},
    ]);
    let split = testers(0, "stage", exact("canary"));
    assert_eq!(render(&plain, &split), expected);
    let live = rendered(&RouteTable(&name("web")), &plain, &split);
    let web = name("web");
    let router = RouteTable(&web);
    let form = router.as_http_route(&live).unwrap();
    assert_eq!(router.with_http_route(&live, form.route), live, "a second time is the first");
    // Without matchers all requests are meant, which a path that the table inherits overwrites.
    let all = table(json!([{"inheritablePathMatchers": true, "routeAction": {"single": kube("web")}}]));
    let pattern = testers(0, "stage", HeaderValue::Regex { regex: "^(a|b)$".to_owned() });
    let header = json!([{"prefix": "/", "headers": [{"name": "stage", "value": "^(a|b)$", "regex": true}]}]);
    assert_eq!(render(&all, &pattern)[0]["matchers"], header);
    assert_eq!(render(&all, &pattern)[0]["inheritablePathMatchers"], true);
    assert_eq!(render(&all, &pattern)[1].get("matchers"), None);
}

#[test]
fn t_5_t_6_weights_begin_with_100_to_0_are_all_written_and_one_that_is_not_there_is_0() {
    let plain = table(json!([{"matchers": [{"prefix": "/"}], "routeAction": {"single": kube("web")}}]));
    for (weight, stable) in [(0, 100), (10, 90), (50, 50), (100, 0)] {
        let written = multi(&[("web", stable), ("web-canary", u32::from(weight))]);
        assert_eq!(render(&plain, &at(weight))[0]["routeAction"], written);
    }
    let missing = table(
        json!([{"routeAction": {"multi": {"destinations": [{"destination": kube("web"), "weight": 7}, {"destination": kube("web-canary")}]}}}]),
    );
    assert_eq!(shown(&RouteTable(&name("web")), &missing), ObservedSplit::Split(Split::stable()));
    let upstream = json!({"upstream": {"name": "web", "namespace": "shop"}});
    let beside = table(json!([{"routeAction": {"multi": {"destinations": [
        {"destination": kube("web"), "weight": 3, "options": {"headerManipulation": {}}}, {"destination": upstream, "weight": 1},
    ]}}}]));
    let expected = json!([
        {"destination": kube("web"), "weight": 225, "options": {"headerManipulation": {}}},
        {"destination": kube("web-canary"), "weight": 75, "options": {"headerManipulation": {}}},
        {"destination": upstream, "weight": 100},
    ]);
    assert_eq!(render(&beside, &at(25))[0]["routeAction"]["multi"]["destinations"], expected);
}

#[test]
fn t_8_the_way_back_is_the_table_of_before() {
    let web = name("web");
    let plain = table(json!([
        {"matchers": [{"exact": "/a", "caseSensitive": false, "methods": ["GET"], "headers": [{"name": "x-api", "value": "2"}]}, {"regex": "/b.*"}],
         "routeAction": {"single": kube("web")}},
        {"matchers": [{"prefix": "/c", "headers": [{"name": "x", "invertMatch": true}, {"name": "y", "value": "a", "regex": true}]}],
         "routeAction": multi(&[("web", 2), ("old", 1)])},
        {"matchers": [{"prefix": "/d"}], "delegateAction": {"ref": {"name": "docs", "namespace": "shop"}}},
        {"matchers": [{"prefix": "/e"}], "redirectAction": {"hostRedirect": "a.example"}},
    ]));
    let prepared = rendered(&RouteTable(&web), &plain, &Split::stable());
    for split in [testers(25, "stage", exact("canary")), testers(0, "stage", exact("canary")), at(1), at(100)] {
        let live = rendered(&RouteTable(&web), &plain, &split);
        let ObservedSplit::Split(seen) = shown(&RouteTable(&web), &live) else { panic!("{:?}", live.value()) };
        assert!(seen.same(&split), "{split:?} is seen as {seen:?}");
        assert_eq!(lowered(&RouteTable(&web), &live), prepared, "{split:?}");
    }
    assert_eq!(prepared.at("/spec/weight"), Some(&json!(10)));
}

#[test]
fn x_16_what_leads_to_the_candidate_otherwise_is_foreign() {
    for routes in [
        json!([{"routeAction": {"single": kube("web-canary")}}]),
        json!([{"routeAction": multi(&[("old", 1), ("web-canary", 1)])}]),
        json!([{"matchers": [{"headers": [{"name": "a", "invertMatch": true}]}], "routeAction": {"single": kube("web-canary")}},
               {"routeAction": {"single": kube("web")}}]),
    ] {
        let live = table(routes);
        assert!(matches!(shown(&RouteTable(&name("web")), &live), ObservedSplit::Foreign(_)), "{:?}", live.value());
        let back = lowered(&RouteTable(&name("web")), &live);
        assert_eq!(shown(&RouteTable(&name("web")), &back), ObservedSplit::Split(Split::stable()));
    }
}

#[test]
fn x_16_the_candidate_is_seen_behind_an_upstream_too() {
    let web = name("web");
    for upstream in ["kube-svc:shop-web-canary-80", "shop-web-canary-80"] {
        let to = |namespace| json!({"upstream": {"name": upstream, "namespace": namespace}});
        let beside = |with: &str, weight| {
            let entries =
                [json!({"destination": kube(with), "weight": 9}), json!({"destination": to("shop"), "weight": weight})];
            json!([{"routeAction": {"multi": {"destinations": entries}}}])
        };
        for routes in [
            json!([{"routeAction": {"single": to("gloo-system")}}]),
            json!([{"matchers": [{"prefix": "/new"}], "routeAction": {"single": to("shop")}}, {"routeAction": {"single": kube("web")}}]),
            beside("web", 1),
            beside("old", 1),
        ] {
            let live = table(routes);
            let ObservedSplit::Foreign(why) = shown(&RouteTable(&web), &live) else { panic!("{:#}", live.value()) };
            assert_eq!(
                why,
                format!("route 0 leads to the candidate by the upstream {upstream}, and not by its Service")
            );
            let back = lowered(&RouteTable(&web), &live);
            assert_eq!(shown(&RouteTable(&web), &back), ObservedSplit::Split(Split::stable()), "{:#}", back.value());
            assert!(!back.value().to_string().contains(upstream), "{:#}", back.value());
        }
        assert_eq!(
            lowered(&RouteTable(&web), &table(json!([{"routeAction": {"single": to("shop")}}]))).value()["spec"]["routes"],
            json!([{"routeAction": {"single": kube("web")}}])
        );
        assert_eq!(shown(&RouteTable(&web), &table(beside("old", 0))), ObservedSplit::Split(Split::stable()));
    }
    for other in ["shop-web-canary-old-80", "blog-web-canary-80", "shop-web-canary", "web-canary"] {
        let live =
            table(json!([{"routeAction": {"single": {"upstream": {"name": other, "namespace": "gloo-system"}}}}]));
        assert_eq!(shown(&RouteTable(&web), &live), ObservedSplit::Split(Split::stable()), "{other}");
    }
}

/// A table with that status, which was written at that minute; what it asks for was at minute 1.
fn judged(status: Value, minute: u8) -> RouteStatus {
    let managed = json!([
        {"manager": "tidegate", "operation": "Apply", "time": "2026-03-02T10:01:00Z", "fieldsV1": {"f:spec": {}}},
        {"manager": "gloo", "operation": "Update", "time": format!("2026-03-02T10:0{minute}:00Z"), "fieldsV1": {"f:status": {}}},
    ]);
    let live = object(Kind::RouteTable, "web", json!({"metadata": {"managedFields": managed}, "status": status}));
    super::status(&live, &["site", "web", "web-canary"])
}

fn of(state: Value, reason: &str) -> Value {
    json!({"statuses": {"gloo-system": {"state": state, "reason": reason, "reportedBy": "gloo"}}})
}

#[test]
fn t_14_gloo_is_believed_about_what_was_written_last() {
    for accepted in [json!("Accepted"), json!(1)] {
        assert_eq!(
            judged(of(accepted.clone(), ""), 0),
            RouteStatus::Effective,
            "a state that stays is not written again"
        );
        assert_eq!(judged(json!({"state": accepted}), 2), RouteStatus::Effective, "without namespaces");
    }
    for pending in [json!({}), json!({"statuses": {}}), of(json!(0), ""), of(json!("Pending"), ""), of(json!(9), "")] {
        assert!(matches!(judged(pending, 2), RouteStatus::NotYet { .. }));
    }
    for rejected in [json!("Rejected"), json!(2)] {
        let refused = RouteStatus::Refused { why: "Gloo: Rejected: bad".to_owned() };
        assert_eq!(judged(of(rejected.clone(), "bad"), 2), refused);
        assert_eq!(judged(of(rejected.clone(), "bad"), 1), refused, "it is not said a second time");
        assert!(matches!(judged(of(rejected.clone(), "bad"), 0), RouteStatus::NotYet { .. }), "older than the change");
        let mut both = of(json!("Accepted"), "");
        both["state"] = rejected;
        assert_eq!(judged(both, 2), RouteStatus::Effective, "the flat one is what an older Gloo left");
    }
}

#[test]
fn t_15_a_warning_speaks_against_no_version() {
    for warning in [json!("Warning"), json!(3)] {
        // The candidate's Service is made just before.
        for ours in [
            "*v1.Upstream { shop.kube-svc:shop-web-canary-80 } not found",
            "service shop/web-canary not found",
            "list did not find upstream shop.web.",
            "site: no route",
            "nothing of shop.site is served",
        ] {
            let made = judged(of(warning.clone(), ours), 2);
            assert!(matches!(made, RouteStatus::NotYet { .. }), "{ours}: {made:?}");
        }
        for other in [
            "route table foxtrot/routes missing",
            "*v1.Upstream { shop.kube-svc:shop-web-canary-old-80 } not found",
            "*v1.Upstream { blog.kube-svc:blog-web-canary-80 } not found",
            "service shop/web-canary-old not found",
            "service shop/old-web-canary not found",
            "service blog/web-canary not found",
            "list did not find upstream shop.web-admin",
            "list did not find upstream web.old",
            "invalid webhook, and websockets are off",
        ] {
            let said = judged(of(warning.clone(), other), 2);
            assert!(matches!(said, RouteStatus::Barred { .. }), "{other}: {said:?}");
        }
    }
}
