use super::*;
use crate::workload::routers::RouteStatus;
use serde_json::{Value, json};

fn object(kind: Kind, place: &str, rest: Value) -> Object {
    let (namespace, name) = place.split_once('/').unwrap();
    let reference = ObjectRef { kind, namespace: namespace.parse().unwrap(), name: name.parse().unwrap() };
    Object::new(reference, rest)
}

fn table(place: &str, spec: Value) -> Object {
    object(Kind::RouteTable, place, json!({"metadata": {"labels": {"apiGroup": "example"}}, "spec": spec}))
}

fn proxy(place: &str, spec: Value) -> Object {
    object(Kind::HttpProxy, place, json!({"metadata": {"generation": 1}, "spec": spec}))
}

fn root(name: &str, routes: Value) -> Object {
    object(
        named_alone(gloo::ROOT),
        &format!("gloo-system/{name}"),
        json!({"spec": {"virtualHost": {"routes": routes}}}),
    )
}

/// A tree of these objects, behind the proxy whose they are.
fn tree(objects: Vec<Object>) -> Tree {
    let contour = objects.iter().any(|one| one.reference().kind == Kind::HttpProxy);
    let home: Namespace = "gloo-system".parse().unwrap();
    let served: BTreeSet<Namespace> = ["echo", "foxtrot"].map(|name| name.parse().unwrap()).into();
    let look = |namespace: &Namespace| {
        let here = objects.iter().filter(|one| one.reference().namespace == *namespace);
        let objects = here.map(|one| (one.reference().clone(), Arc::new(one.clone()))).collect();
        Ok(Arc::new(LiveState { objects, ..LiveState::default() }))
    };
    Tree::of(if contour { SharedProxy::Contour } else { SharedProxy::Gloo }, &home, &served, &look)
}

/// What is found of a table whose plan makes no more than these.
fn found(tree: &Tree, route: &Object, made: &[&str]) -> Vec<String> {
    let of = |finding| match finding {
        Finding::Missing(why) => format!("missing: {why}"),
        Finding::Outside(why) => format!("outside: {why}"),
        Finding::Hidden(why) => format!("hidden: {why}"),
    };
    let is_made = |_: Kind, name: &str| Some(made.contains(&name));
    tree.findings(route, is_made).into_iter().map(of).collect()
}

fn to(service: &str) -> Value {
    json!({"single": {"kube": {"ref": {"name": service, "namespace": "foxtrot"}, "port": 80}}})
}

#[test]
fn t_10_what_a_route_names_is_there_or_made_by_the_same_plan() {
    let upstream = object(named_alone(gloo::UPSTREAM), "gloo-system/known", json!({}));
    let tree = tree(vec![upstream]);
    let named = |name: &str| json!({"single": {"upstream": {"name": name, "namespace": "gloo-system"}}});
    let one = |action: Value| table("foxtrot/routes", json!({"routes": [{"routeAction": action}]}));
    assert_eq!(found(&tree, &one(named("known")), &[]), Vec::<String>::new());
    assert_eq!(
        found(&tree, &one(named("gone")), &[]),
        [
            "missing: routes[0].routeAction.single of the RouteTable names the Upstream gloo-system/gone, which is not there"
        ]
    );
    assert_eq!(found(&tree, &one(to("web")), &["web"]), Vec::<String>::new());
    assert_eq!(
        found(&tree, &one(to("web")), &[]),
        ["missing: routes[0].routeAction.single of the RouteTable names the Service foxtrot/web, which is not there"]
    );
    // A namespace that nobody looks at tells nothing.
    let elsewhere = json!({"single": {"upstream": {"name": "gone", "namespace": "elsewhere"}}});
    assert_eq!(found(&tree, &one(elsewhere), &[]), Vec::<String>::new());
    let others = json!({"routes": [
        {"routeAction": {"upstreamGroup": {"name": "gone", "namespace": "gloo-system"}}},
        {"delegateAction": {"ref": {"name": "gone", "namespace": "foxtrot"}}},
        {"optionsConfigRefs": {"delegateOptions": [{"name": "gone", "namespace": "gloo-system"}]}},
    ]});
    let kinds = ["UpstreamGroup gloo-system", "RouteTable foxtrot", "RouteOption gloo-system"];
    let all = found(&tree, &table("foxtrot/routes", others), &[]);
    assert!(
        all.len() == 3 && all.iter().zip(kinds).all(|(why, kind)| why.contains(&format!("{kind}/gone"))),
        "{all:?}"
    );
}

#[test]
fn t_10_a_proxy_of_contour_names_services_and_proxies_of_its_namespace() {
    let tree = tree(vec![proxy("foxtrot/other", json!({}))]);
    let spec = json!({"includes": [{"name": "other"}, {"name": "far", "namespace": "echo"}], "routes": [{"services": [{"name": "web"}]}]});
    let all = found(&tree, &proxy("foxtrot/web", spec), &["other"]);
    assert_eq!(
        all,
        ["missing: routes[0].services[0] of the HTTPProxy names the Service foxtrot/web, which is not there"]
    );
}

#[test]
fn t_11_a_path_begins_with_the_prefix_of_whoever_delegates_or_takes_it_over() {
    let by_name = json!([{"matchers": [{"prefix": "/foo"}], "delegateAction": {"ref": {"name": "routes", "namespace": "foxtrot"}}}]);
    let tree = tree(vec![root("app", by_name)]);
    let one = |matchers: Value, more: Value| {
        let mut route = json!({"matchers": matchers, "routeAction": to("web")});
        more.as_object().unwrap().iter().for_each(|(key, value)| route[key] = value.clone());
        found(&tree, &table("foxtrot/routes", json!({"routes": [route]})), &["web"])
    };
    assert_eq!(
        one(json!([{"prefix": "/foo/a"}, {"exact": "/foo"}, {"regex": "/foo.*"}]), json!({})),
        Vec::<String>::new()
    );
    assert_eq!(
        one(json!([{"prefix": "/foo"}, {"prefix": "/bar"}]), json!({})),
        [
            "outside: routes[0].matchers[1] of the RouteTable asks for /bar, which does not begin with /foo, the prefix of \
          VirtualService gloo-system/app (routes[0]): write a path below it, or inheritablePathMatchers: true"
        ]
    );
    assert_eq!(one(json!([{"prefix": "/bar"}]), json!({"inheritablePathMatchers": true})), Vec::<String>::new());
    // Without matchers a route asks for all.
    assert!(one(json!([]), json!({}))[0].contains("asks for /, which does not begin with /foo"));
}

#[test]
fn t_11_contour_takes_one_exact_value_of_a_header_on_the_way() {
    let asks = |value: &str| json!({"header": {"name": "Stage", "exact": value}});
    let top = proxy(
        "gloo-system/root",
        json!({"includes": [{"name": "mid", "namespace": "echo", "conditions": [asks("canary")]}]}),
    );
    let mid = proxy(
        "echo/mid",
        json!({"includes": [{"name": "web", "namespace": "foxtrot", "conditions": [{"prefix": "/bar"}]}]}),
    );
    let tree = tree(vec![top, mid]);
    let route = |conditions: Value| proxy("foxtrot/web", json!({"routes": [{"conditions": conditions}]}));
    assert_eq!(found(&tree, &route(json!([{"prefix": "/"}])), &[]), Vec::<String>::new());
    assert_eq!(
        found(&tree, &route(json!([asks("canary")])), &[]),
        [
            "outside: routes[0] of the HTTPProxy asks for the header stage, and so does HTTPProxy gloo-system/root (includes[0]): Contour \
          takes one exact value of it; take it out of one of the two"
        ]
    );
}

#[test]
fn t_12_another_table_of_the_same_selector_takes_no_request_before() {
    let selector = json!([{"matchers": [{"prefix": "/"}], "delegateAction": {"selector": {"namespaces": ["*"], "labels": {"apiGroup": "example"}}}}]);
    let own = |matcher: Value, weight: i64| {
        table(
            "foxtrot/routes",
            json!({"weight": weight, "routes": [{"matchers": [matcher], "routeAction": to("web")}]}),
        )
    };
    let hidden = |other: Value, weight: i64, own: &Object| {
        let sibling = table("echo/routes", json!({"weight": weight, "routes": [{"matchers": [other]}]}));
        !found(&tree(vec![root("app", selector.clone()), sibling]), own, &["web"]).is_empty()
    };
    let plain = own(json!({"prefix": "/foxtrot"}), 0);
    let canary = own(json!({"prefix": "/foxtrot", "headers": [{"name": "stage", "value": "canary"}]}), 0);
    // The longer path goes first, and of equal ones nobody knows which does: also where one of them asks for a header.
    assert!(!hidden(json!({"prefix": "/"}), 0, &plain));
    assert!(hidden(json!({"prefix": "/foxtrot"}), 0, &plain) && hidden(json!({"prefix": "/foxtrot"}), 0, &canary));
    assert!(!hidden(json!({"prefix": "/foxtrot", "headers": [{"name": "x", "value": "y"}]}), 0, &plain));
    // Regular expressions go before prefixes, and exact paths before both.
    assert!(hidden(json!({"regex": "/fox.*"}), 0, &plain) && !hidden(json!({"regex": "/echo.*"}), 0, &plain));
    assert!(!hidden(json!({"exact": "/foxtrot"}), 0, &plain));
    // A lower weight goes first whatever its paths are, a higher one never.
    assert!(hidden(json!({"prefix": "/"}), -1, &plain) && !hidden(json!({"prefix": "/foxtrot"}), 1, &plain));
    // Methods narrow.
    assert!(!hidden(json!({"prefix": "/foxtrot", "methods": ["POST"]}), 0, &plain));
}

#[test]
fn t_20_selectors_say_which_tables_hang_on_what_and_nobody_or_several_are_told() {
    let delegates = |selector: Value| {
        root("app", json!([{"matchers": [{"prefix": "/"}], "delegateAction": {"selector": selector}}]))
    };
    let own = table("foxtrot/routes", json!({"routes": []}));
    let takes = |selector: Value| tree(vec![delegates(selector)]).told(&own).is_none();
    assert!(
        takes(json!({"namespaces": ["foxtrot"], "labels": {"apiGroup": "example"}}))
            && takes(json!({"namespaces": ["*"]}))
    );
    assert!(
        !takes(json!({"labels": {"apiGroup": "example"}}))
            && !takes(json!({"namespaces": ["*"], "labels": {"apiGroup": "x"}}))
    );
    let by = |operator: &str, values: Value| {
        takes(
            json!({"namespaces": ["*"], "expressions": [{"key": "apiGroup", "operator": operator, "values": values}]}),
        )
    };
    assert!(by("In", json!(["example", "x"])) && by("Exists", json!([])) && by("NotEquals", json!(["x"])));
    assert!(!by("NotIn", json!(["example"])) && !by("DoesNotExist", json!([])) && !by("unheard of", json!([])));
    assert_eq!(
        tree(vec![]).told(&own).unwrap(),
        "nothing delegates to the RouteTable routes, so that it gets no request"
    );
    let all = json!({"namespaces": ["*"]});
    let twice = json!([{"delegateAction": {"selector": all}}, {"delegateAction": {"name": "routes", "namespace": "foxtrot", "selector": {}}}]);
    assert_eq!(
        tree(vec![root("app", twice)]).told(&own).unwrap(),
        "several delegate to the RouteTable routes: VirtualService gloo-system/app (routes[0]) and VirtualService gloo-system/app (routes[1])"
    );
}

/// The status of an object, written by hand as Gloo writes it.
fn says(mut object: Object, state: &str, reason: &str) -> Object {
    object.value_mut()["status"] = json!({"statuses": {"gloo-system": {"state": state, "reason": reason}}});
    object
}

/// What a table of foxtrot's stands as beside these, where it says that of itself.
fn stands(own: RouteStatus, others: Vec<Object>) -> RouteStatus {
    let teams = [("echo", "team-a"), ("foxtrot", "team-b")]
        .map(|(name, team)| (name.parse().unwrap(), team.parse().unwrap()))
        .into();
    let route = table("foxtrot/routes", json!({}));
    tree(others).judged(own, &SharedRoute { route: &route, named: &["routes", "web", "web-canary"], teams: &teams })
}

fn is_blocked(status: &RouteStatus, by: &str) -> bool {
    matches!(status, RouteStatus::Blocked { why, .. } if why.starts_with(by))
}

fn everybody() -> Object {
    root("app", json!([{"matchers": [{"prefix": "/"}], "delegateAction": {"selector": {"namespaces": ["*"]}}}]))
}

fn settings(replaces: bool) -> Object {
    let policy = json!({"spec": {"gloo": {"invalidConfigPolicy": {"replaceInvalidRoutes": replaces}}}});
    object(named_alone(gloo::SETTINGS), "gloo-system/default", policy)
}

#[test]
fn t_17_a_mistake_of_others_blocks_where_no_route_is_replaced_and_names_whose_it_is() {
    let mut peer = says(table("echo/echo-routes", json!({})), "Warning", "*v1.Upstream { gloo-system.gone } not found");
    peer.annotate(crate::manifest::object::OWNER, "prod/echo/echo");
    let blocked = stands(RouteStatus::Effective, vec![everybody(), peer.clone()]);
    let RouteStatus::Blocked { why, .. } = blocked else { panic!("{blocked:?}") };
    assert_eq!(
        why,
        "RouteTable echo/echo-routes (rollout echo/echo of team team-a): Gloo: Warning: *v1.Upstream { gloo-system.gone } not found; \
         Gloo replaces no routes (invalidConfigPolicy), so that the proxy keeps what it had"
    );
    let calm = |others: Vec<Object>| stands(RouteStatus::Effective, others) == RouteStatus::Effective;
    assert!(
        calm(vec![everybody(), peer.clone(), settings(true)])
            && !calm(vec![everybody(), peer.clone(), settings(false)])
    );
    // What nothing delegates to is no part of the proxy, and what is accepted blocks nobody.
    assert!(calm(vec![peer.clone()]) && calm(vec![everybody(), says(peer, "Accepted", "")]));
}

#[test]
fn t_15_what_is_said_of_a_parent_concerns_whom_it_names() {
    let peer = table("echo/echo-routes", json!({}));
    let parent = |state: &str, reason: &str| says(everybody(), state, reason);
    let by = |state: &str, reason: &str| stands(RouteStatus::Effective, vec![parent(state, reason), peer.clone()]);
    assert!(
        is_blocked(
            &by("Rejected", "on sub route table echo.echo-routes: no action"),
            "RouteTable echo/echo-routes (of nobody"
        ) || is_blocked(
            &by("Rejected", "on sub route table echo.echo-routes: no action"),
            "RouteTable echo/echo-routes (team team-a)"
        )
    );
    assert!(matches!(by("Rejected", "on sub route table foxtrot.routes: no action"), RouteStatus::Refused { .. }));
    // A warning about the route is its own to tell, and one that names nobody known holds.
    assert_eq!(by("Warning", "on sub route table foxtrot.routes: not found"), RouteStatus::Effective);
    assert!(matches!(by("Rejected", "domain conflict"), RouteStatus::Unknown { .. }));
    // Several tables of one weight are a warning of older ones, and no mistake.
    assert_eq!(by("Warning", "the following route tables have the same weight (0): …"), RouteStatus::Effective);
    // Its own warning stays its own.
    let own = RouteStatus::Barred { why: "own".to_owned() };
    assert_eq!(stands(own.clone(), vec![parent("Rejected", "domain conflict")]), own);
}

#[test]
fn t_17_a_second_root_with_the_same_host_blocks_all_that_the_first_includes() {
    let fqdn =
        |name: &str| json!({"virtualhost": {"fqdn": name}, "includes": [{"name": "web", "namespace": "foxtrot"}]});
    let first = proxy("gloo-system/root", fqdn("app.example.test"));
    let second = proxy("echo/second", json!({"virtualhost": {"fqdn": "APP.example.test"}}));
    let route = proxy("foxtrot/web", json!({"routes": []}));
    let judged = |own: RouteStatus, others: Vec<Object>| {
        let teams = BTreeMap::from([("echo".parse().unwrap(), "team-a".parse().unwrap())]);
        tree(others).judged(own, &SharedRoute { route: &route, named: &["web"], teams: &teams })
    };
    let orphaned = || RouteStatus::Barred { why: "Orphaned".to_owned() };
    assert!(is_blocked(
        &judged(orphaned(), vec![first.clone(), second.clone()]),
        "HTTPProxy echo/second (team team-a)"
    ));
    assert_eq!(judged(orphaned(), vec![first.clone()]), orphaned());
    assert_eq!(judged(RouteStatus::Effective, vec![first, second]), RouteStatus::Effective);
}

#[test]
fn t_17_a_warning_is_no_refusal_whatever_its_words_quote() {
    let quoted = "on sub route table foxtrot.routes: Gloo: Rejected: foxtrot.routes";
    let warned = says(everybody(), "Warning", quoted);
    let status = stands(RouteStatus::Effective, vec![warned, settings(true)]);
    assert_eq!(status, RouteStatus::Effective);
    let refused = stands(RouteStatus::Effective, vec![says(everybody(), "Rejected", quoted), settings(true)]);
    assert!(matches!(refused, RouteStatus::Refused { .. }), "{refused:?}");
}

#[test]
fn what_others_say_is_told_on_one_line_and_not_at_length() {
    let long = format!("a\nb\u{1b}[31m{}", "x".repeat(1 << 20));
    let RouteStatus::Blocked { why, .. } = stands(
        RouteStatus::Effective,
        vec![says(table("echo/broken", json!({})), "Rejected", &long), everybody(), settings(false)],
    ) else {
        panic!("what a peer has broken blocks");
    };
    assert!(why.contains("a b\\u{1b}[31m") && why.contains('…') && why.len() < 2_048, "{}", why.len());
}
