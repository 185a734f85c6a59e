//! Checks whose series tidegate chooses: what is wrong with them is told with its line.

use super::routers::{INGRESS, INGRESS_ROUTE, TRAEFIK, behind};
use crate::tree::{PODINFO, PODINFO_SET, Tree, WORKER, WORKER_SET, codes};
use tidegate::cli::validate::{Colour, Output, report};
use tidegate::manifest::diagnostic::Code;

/// The example, one phase of which has this check.
fn with(path: &str, check: &str) -> Tree {
    let expose = if path == PODINFO { "expose: {weight: 50}" } else { "expose: {weight: 25}" };
    let mut tree = Tree::example();
    tree.edit(
        path,
        &format!("{expose}\n      soak: 10s"),
        &format!("{expose}\n      soak: 1h\n      checks: [errors]"),
    );
    tree.append(path, &format!("  checks:\n    errors:\n      {check}\n"));
    tree
}

fn prometheus(labels: &str, query: &str, limits: &str) -> String {
    format!("prometheus: {{provider: main, query: '{query}', labels: {labels}}}\n      {limits}")
}

const RATIO: &str = "comparedWithStable: {ratio: {max: 1.2}}";

#[test]
fn a_comparison_is_accepted_where_stable_serves() {
    for (labels, limits) in [
        ("{pod: pod}", RATIO),
        (
            "{namespace: ns, service: svc, workload: deployment}",
            "comparedWithStable: {difference: {min: -1, max: 0.1}}",
        ),
        ("{pod: pod}", "max: 0.1"),
        ("{pod: pod}", "max: 0.1\n      comparedWithStable: {ratio: {max: 2}, difference: {max: 0.1}}"),
    ] {
        let loaded = with(PODINFO, &prometheus(labels, "sum(rate(errors{namespace=\"shop\"}[1m]))", limits)).load();
        assert_eq!(codes(&loaded, "shop/podinfo"), [], "{limits}: {:#?}", loaded.errors());
    }
}

#[test]
fn c_34_each_mistake_of_a_comparison_has_its_name() {
    let wrong = [
        (prometheus("{pod: pod}", "errors{", RATIO), Code::CheckQuery),
        (prometheus("{pod: pod}", "vector(1)", RATIO), Code::CheckQuery),
        (prometheus("{pod: pod}", "errors{pod=~\"a.*\"}", RATIO), Code::CheckQuery),
        (prometheus("{namespace: ns}", "errors", RATIO), Code::CheckUseless),
        (prometheus("{namespace: pod, pod: pod}", "errors", "max: 1"), Code::CheckUseless),
        (prometheus("{pod: namespace}", "errors", "max: 1"), Code::CheckUseless),
        (prometheus("{pod: a, workload: b, version: a}", "errors", "max: 1"), Code::CheckUseless),
        (prometheus("{pod: pod}", "errors", "comparedWithStable: {ratio: {min: 2, max: 1}}"), Code::CheckUseless),
        (prometheus("{pod: pod}", "errors", "comparedWithStable: {}"), Code::Schema),
        (prometheus("{pod: pod}", "errors", "comparedWithStable: {ratio: {}}"), Code::Schema),
        (prometheus("{pod: pod}", "errors", "comparedWithStable: {max: 1.2}"), Code::UnknownField),
        (prometheus("{pod: \"a-b\"}", "errors", RATIO), Code::Schema),
        (prometheus("{pod: pod, url: a}", "errors", RATIO), Code::UnknownField),
        (prometheus("{pod: pod}", "errors", "interval: 1m"), Code::CheckUseless),
        (format!("prometheus: {{provider: main, query: errors}}\n      {RATIO}"), Code::CheckUseless),
        (format!("webhook: {{provider: main}}\n      {RATIO}"), Code::CheckUseless),
    ];
    for (check, wanted) in wrong {
        let loaded = with(PODINFO, &check).load();
        assert_eq!(codes(&loaded, "shop/podinfo"), [wanted], "{check}: {:#?}", loaded.errors());
    }
}

#[test]
fn c_34_what_a_provider_that_stays_away_means_is_said_with_a_time() {
    let with_away = |away: &str| {
        let query = "prometheus: {provider: main, query: errors}\n      max: 1";
        codes(&with(PODINFO, &format!("{query}\n      onAway: {away}")).load(), "shop/podinfo")
    };
    assert_eq!(with_away("{after: 1m, then: revert}"), []);
    assert_eq!(with_away("{after: 59s, then: revert}"), [Code::CheckUseless]);
    assert_eq!(with_away("{after: 30m}"), [Code::Schema]);
    assert_eq!(with_away("{then: revert}"), [Code::Schema]);
    assert_eq!(with_away("{after: 30m, then: pass}"), [Code::Schema]);
    assert_eq!(with_away("hold"), [Code::Schema]);
}

/// Else it would go on, whatever is measured.
#[test]
fn a_soak_has_the_time_for_more_bad_samples_than_are_allowed() {
    let query = "prometheus: {provider: main, query: errors}\n      max: 1\n      interval: 20m";
    for (limit, wanted) in [(3, &[Code::CheckUseless][..]), (2, &[])] {
        let loaded = with(PODINFO, &format!("{query}\n      failureLimit: {limit}")).load();
        assert_eq!(codes(&loaded, "shop/podinfo"), wanted, "{limit}: {:#?}", loaded.errors());
    }
}

/// Where all requests reach the candidate, there is nothing to compare with.
#[test]
fn a_comparison_with_a_stable_that_serves_nobody_is_refused() {
    let mut tree = with(PODINFO, &prometheus("{pod: pod}", "errors", RATIO));
    tree.edit(
        PODINFO,
        "expose: {weight: 100}\n      soak: 10s",
        "expose: {weight: 100}\n      soak: 1h\n      checks: [errors]",
    );
    tree.edit(PODINFO, "promotion: {bake: 10s}", "promotion: {bake: 1h, checks: [errors]}");
    assert_eq!(codes(&tree.load(), "shop/podinfo"), [Code::CheckUseless; 2]);
    tree.edit(PODINFO, RATIO, "max: 1");
    assert_eq!(codes(&tree.load(), "shop/podinfo"), []);
}

/// A query says itself whose series it reads, and is read all the same.
#[test]
fn c_34_a_query_without_labels_is_read_too() {
    let check = |query: &str| format!("prometheus: {{provider: main, query: '{query}'}}\n      max: 1");
    for (query, wanted) in [
        ("sum(rate(errors{pod=~\"podinfo-canary-.+\"}[1m]))", None),
        ("errors", None),
        ("vector(1)", None),
        ("sum(rate(", Some(Code::CheckQuery)),
        ("sum(rte(errors[1m]))", None),
        ("sum(rate(errors))", Some(Code::CheckQuery)),
        ("rate(errors)", Some(Code::CheckQuery)),
        ("errors{code=~\"(\"}", Some(Code::CheckQuery)),
        ("rate(http_requests_total[1m])", Some(Code::CheckQuery)),
        ("sum by (pod) (up)", Some(Code::CheckQuery)),
    ] {
        let loaded = with(PODINFO, &check(query)).load();
        assert_eq!(codes(&loaded, "shop/podinfo"), Vec::from_iter(wanted), "{query}: {:#?}", loaded.errors());
    }
    for (labels, query, wanted) in [
        ("{pod: kubernetes_pod_name}", "sum by (kubernetes_pod_name) (errors)", Some(Code::CheckQuery)),
        ("{pod: p, version: v}", "rate(errors[1m])", Some(Code::CheckQuery)),
        ("{service: s}", "rate(errors[1m])", None),
        ("{workload: w}", "sum by (w) (errors)", None),
    ] {
        let loaded = with(PODINFO, &prometheus(labels, query, "max: 1")).load();
        assert_eq!(codes(&loaded, "shop/podinfo"), Vec::from_iter(wanted), "{query}: {:#?}", loaded.errors());
    }
}

/// Both versions are pods of the example's worker itself.
fn shared(kind: &str, check: &str) -> Tree {
    let mut tree = with(WORKER, check);
    tree.edit(WORKER, "{kind: Deployment, name: worker}", &format!("{{kind: {kind}, name: worker}}"))
        .edit(WORKER, "  traffic:\n    replicas: {service: worker}\n    settle: 2s\n    drain: 5s\n", "")
        .edit(WORKER_SET, "kind: Deployment", &format!("kind: {kind}"));
    let sized = if kind == "DaemonSet" { "" } else { "  replicas: 4\n  serviceName: worker\n" };
    tree.edit(WORKER_SET, "  replicas: 4\n", sized);
    tree
}

#[test]
fn attack_67_what_both_versions_have_in_common_tells_neither() {
    let kinds = ["StatefulSet", "DaemonSet"];
    for (labels, limits, wanted) in [
        ("{workload: w}", RATIO, Some(Code::CheckUseless)),
        ("{pod: pod}", RATIO, Some(Code::CheckUseless)),
        ("{pod: pod, workload: w}", "max: 1", Some(Code::CheckUseless)),
        ("{service: s, version: v}", "max: 1", Some(Code::RouterLimit)),
        // Stable's pods have no such label before a run has promoted them.
        ("{version: v}", RATIO, Some(Code::CheckUseless)),
        ("{version: v}", "max: 1", None),
        ("{pod: pod, version: v}", RATIO, None),
        ("{workload: w, version: v}", RATIO, None),
    ] {
        for kind in kinds {
            let loaded = shared(kind, &prometheus(labels, "sum(errors)", limits)).load();
            let found = codes(&loaded, "shop/worker");
            assert_eq!(found, Vec::from_iter(wanted), "{kind} {labels}: {:#?}", loaded.errors());
        }
    }
    let loaded = with(PODINFO, &prometheus("{pod: pod, version: v}", "sum(errors)", RATIO)).load();
    assert_eq!(codes(&loaded, "shop/podinfo"), [], "of a Deployment it is welcome");
    let chosen = shared("StatefulSet", &prometheus("{pod: pod, version: v}", "sum(errors{v=\"1\"})", RATIO));
    assert_eq!(codes(&chosen.load(), "shop/worker"), [Code::CheckQuery]);
}

#[test]
fn mistakes_of_whose_series_are_shown_with_their_lines() {
    let shown = |tree: &Tree| report(&tree.load(), Output::Text, Colour::Never).text;
    let texts = [
        shown(&shared("StatefulSet", &prometheus("{workload: w}", "sum(errors)", RATIO))),
        shown(&shared("DaemonSet", &prometheus("{version: v}", "sum(errors)", RATIO))),
        shown(&shared("DaemonSet", &format!("prometheus: {{provider: main, query: errors}}\n      {RATIO}"))),
        shown(&shared("StatefulSet", RATE)),
        shown(&with(PODINFO, "prometheus: {provider: main, query: \"sum(rate(\"}\n      max: 1")),
        shown(&with(PODINFO, "prometheus: {provider: main, query: \"sum by (pod) (up)\"}\n      max: 1")),
    ];
    insta::assert_snapshot!(texts.join("\n"));
}

#[test]
fn mistakes_in_queries_are_shown_where_they_stand() {
    let shown = |query: &str| {
        let tree = with(PODINFO, &format!("prometheus:\n        provider: main\n        {query}\n      max: 1"));
        report(&tree.load(), Output::Text, Colour::Never).text
    };
    let texts = [
        "query: sum(rte(errors[1m]))",
        "query: 'sum(rate(errors))'",
        "query: \"errors > bool 0 or vector(errors)\"",
        "query: |-\n          sum(rate(errors{code=~\"5..\"}[1m]))\n          / sum(rate(errors{pod=~\"(a\"}[1m]))",
        // Folded or escaped the file does not have it as it is.
        "query: >-\n          sum(rate(errors[1m]))\n          / sum(rate(errors))",
        "query: \"sum(rate(errors{a=\\\"b\\\"}))\"",
        "query: sum(errors_of_mine(errors[1m]))",
    ];
    insta::assert_snapshot!(texts.map(shown).join("\n"));
}

#[test]
fn labels_that_stand_for_two_things_are_shown_with_their_lines() {
    let shown = |tree: &Tree| report(&tree.load(), Output::Text, Colour::Never).text;
    let texts = [
        shown(&with(PODINFO, &prometheus("{namespace: pod, pod: pod}", "errors", "max: 1"))),
        shown(&with(PODINFO, &prometheus("{pod: namespace}", "errors", "max: 1"))),
        shown(&with(PODINFO, &prometheus("{pod: a, workload: a}", "errors", "max: 1"))),
        shown(&shared("StatefulSet", &prometheus("{version: v}", "sum(errors)", RATIO))),
        shown(&shared("StatefulSet", &prometheus("{namespace: ns}", "sum(errors)", "max: 1"))),
    ];
    insta::assert_snapshot!(texts.join("\n"));
}

#[test]
fn values_that_are_none_are_shown_with_what_is_wanted() {
    let shown = |check: &str| report(&with(PODINFO, check).load(), Output::Text, Colour::Never).text;
    let query = "prometheus: {provider: main, query: errors}\n      max: 1\n      ";
    let texts = [
        shown(&format!("{query}onAway: revert")),
        shown(&format!("{query}onAway: {{after: 30, then: revert}}")),
        shown(&format!("{query}onAway: {{after: '30', then: revert}}")),
        shown("prometheus: {provider: main, query: ''}\n      max: 1"),
        shown("prometheus: {provider: main, query: errors, labels: {pod: pod, version: }}\n      max: 1"),
        shown(&format!(
            "{query}interval: 1m\n  hooks: {{chat: {{webhook: {{provider: a}}, events: [ended, wentBack, ended]}}}}"
        )),
    ];
    insta::assert_snapshot!(texts.join("\n"));
}

#[test]
fn mistakes_of_comparisons_are_shown_with_their_lines() {
    let shown = |tree: &Tree| report(&tree.load(), Output::Text, Colour::Never).text;
    let mut promoted = with(PODINFO, &prometheus("{pod: pod}", "errors", RATIO));
    promoted.edit(PODINFO, "promotion: {bake: 10s}", "promotion: {bake: 1h, checks: [errors]}");
    let by_pods = with(WORKER, &prometheus("{service: service}", "errors", "max: 1"));
    let texts = [
        shown(&with(PODINFO, &prometheus("{pod: pod}", "sum(rate(errors{job=}[1m]))", RATIO))),
        shown(&with(PODINFO, &prometheus("{pod: pod}", "errors{pod=~\"podinfo-.*\"}", RATIO))),
        shown(&with(PODINFO, &format!("prometheus: {{provider: main, query: errors}}\n      {RATIO}"))),
        shown(&promoted),
        shown(&by_pods),
    ];
    insta::assert_snapshot!(texts.join("\n"));
}

const RATE: &str = "successRate: {provider: main, proxy: contour}\n      min: 99";
const LATENCY: &str = "latency: {provider: main, proxy: istio, percentile: 95}\n      max: 500\n      comparedWithStable: {ratio: {max: 1.2}}";

#[test]
fn what_proxies_count_is_measured_where_one_splits_the_requests() {
    for check in [RATE, LATENCY] {
        let loaded = with(PODINFO, check).load();
        assert_eq!(codes(&loaded, "shop/podinfo"), [], "{check}: {:#?}", loaded.errors());
        assert_eq!(codes(&with(WORKER, check).load(), "shop/worker"), [Code::RouterLimit], "{check}");
    }
    let wrong = [
        (RATE.replace("min: 99", "min: 0.99"), Code::CheckUseless),
        (RATE.replace("min: 99", "interval: 1m"), Code::CheckUseless),
        (RATE.replace("min: 99", "max: 99"), Code::CheckUseless),
        (RATE.replace("min: 99", "min: 101"), Code::CheckUseless),
        (RATE.replace("min: 99", "max: .inf"), Code::NumberRange),
        (RATE.replace("min: 99", RATIO), Code::CheckUseless),
        (RATE.replace("contour", "envoyGateway"), Code::Schema),
        (RATE.replace(", proxy: contour", ""), Code::Schema),
        (RATE.replace("contour}", "contour, url: 'https://evil.example'}"), Code::UnknownField),
        (LATENCY.replace("95", "0.95"), Code::Schema),
        (LATENCY.replace("95", "100"), Code::Schema),
        (LATENCY.replace("max: 1.2", "min: 2, max: 1.2"), Code::CheckUseless),
        (format!("{RATE}\n      webhook: {{provider: tester}}"), Code::Schema),
        (format!("{RATE}\n      latency: {{provider: main, proxy: istio}}"), Code::Schema),
    ];
    for (check, wanted) in wrong {
        let loaded = with(PODINFO, &check).load();
        assert_eq!(codes(&loaded, "shop/podinfo"), [wanted], "{check}: {:#?}", loaded.errors());
    }
}

#[test]
fn mistakes_of_what_proxies_count_are_shown_with_their_lines() {
    let shown = |tree: &Tree| report(&tree.load(), Output::Text, Colour::Never).text;
    let texts = [
        shown(&with(WORKER, RATE)),
        shown(&with(PODINFO, &RATE.replace("min: 99", "min: 0.99"))),
        shown(&with(PODINFO, &RATE.replace("contour", "envoyGateway"))),
    ];
    insta::assert_snapshot!(texts.join("\n"));
}

/// The example behind that route, whose phase of this weight has a check of what that proxy counts.
fn counted_behind(route: &str, weight: &str, proxy: &str) -> Tree {
    let mut tree = behind(route);
    let phase = format!("{weight}\n      soak: ");
    tree.edit(PODINFO, &format!("{phase}10s"), &format!("{phase}1h\n      checks: [errors]"));
    tree.append(PODINFO, &format!("  checks:\n    errors:\n      {}\n", RATE.replace("contour", proxy)));
    tree
}

#[test]
fn behind_ingress_nginx_and_traefik_it_is_these_that_count() {
    let found = |tree: &Tree| codes(&tree.load(), "shop/podinfo");
    for (route, proxy) in [(INGRESS, "nginx"), (TRAEFIK, "traefik"), (INGRESS_ROUTE, "traefik")] {
        for weight in ["weight: 10", "{weight: 50}", "{weight: 100}"] {
            let tree = counted_behind(route, weight, proxy);
            assert_eq!(found(&tree), [], "{route}: {:#?}", tree.load().errors());
        }
        for other in ["contour", "istio", "linkerd", "nginx", "traefik"].into_iter().filter(|other| *other != proxy) {
            assert_eq!(found(&counted_behind(route, "{weight: 50}", other)), [Code::RouterLimit], "{route} {other}");
        }
        let mut compared = counted_behind(route, "{weight: 50}", proxy);
        compared.edit(PODINFO, "min: 99", "comparedWithStable: {ratio: {min: 0.99}}");
        assert_eq!(found(&compared), [], "{route}");
    }
    assert_eq!(found(&with(PODINFO, &RATE.replace("contour", "nginx"))), [Code::RouterLimit]);
}

/// Who sends a header comes by a route with one service, which Traefik counts by the route's rule.
#[test]
fn c_34_what_nobody_counts_as_the_candidates_is_refused() {
    let found = |tree: &Tree| codes(&tree.load(), "shop/podinfo");
    let mut by_header = counted_behind(INGRESS_ROUTE, "weight: 10", "traefik");
    by_header.edit(PODINFO, "        weight: 10\n", "");
    assert_eq!(found(&by_header), [Code::RouterLimit]);
    by_header.edit(PODINFO, "x-canary: always}]\n", "x-canary: always}]\n        mirror: 10\n");
    assert_eq!(found(&by_header), []);
    let mut by_header = counted_behind(INGRESS, "weight: 10", "nginx");
    assert_eq!(found(by_header.edit(PODINFO, "        weight: 10\n", "")), []);
    for (route, proxy, number, named) in [
        (INGRESS, "nginx", "{number: 80}}}}]}", "{name: web-public}}}}]}"),
        (TRAEFIK, "traefik", "services: [{name: podinfo, port: 80}", "services: [{name: podinfo, port: web-public}"),
        (
            INGRESS_ROUTE,
            "traefik",
            "services: [{name: podinfo, port: 80}",
            "services: [{name: podinfo, port: web-public}",
        ),
    ] {
        let mut tree = counted_behind(route, "{weight: 50}", proxy);
        assert_eq!(found(tree.edit(PODINFO_SET, number, named)), [Code::RouterLimit], "{route}");
        assert_eq!(found(tree.edit(PODINFO_SET, "web-public", "public")), [], "{route}");
    }
    let mut calls = counted_behind(INGRESS, "{weight: 50}", "nginx");
    calls.edit(PODINFO_SET, "proxy-body-size: 8m", "backend-protocol: GRPC");
    assert_eq!(found(&calls), [Code::RouterLimit]);
    assert_eq!(found(calls.edit(PODINFO, "successRate", "latency").edit(PODINFO, "min: 99", "max: 500")), []);
}

#[test]
fn a_host_that_ingress_nginx_does_not_count_is_warned_of() {
    let warned = |tree: &Tree| tree.load().warnings.iter().map(|warning| warning.code).collect::<Vec<_>>();
    let mut tree = counted_behind(INGRESS, "{weight: 50}", "nginx");
    assert_eq!(warned(&tree), []);
    assert_eq!(warned(tree.edit(PODINFO_SET, "podinfo.example.org", "'*.example.org'")), [Code::RouterLimit]);
    assert_eq!(warned(tree.edit(PODINFO, "proxy: nginx", "proxy: traefik")), []);
}

/// Without rules an Ingress is for all hosts that no other one has.
#[test]
fn an_ingress_without_hosts_is_warned_of() {
    let warned = |tree: &Tree| tree.load().warnings.iter().map(|warning| warning.code).collect::<Vec<_>>();
    let backend = "  defaultBackend: {service: {name: podinfo, port: {number: 80}}}\n";
    let (_, rules) = INGRESS.split_once("  rules:\n").unwrap();
    let mut tree = counted_behind(INGRESS, "{weight: 50}", "nginx");
    assert_eq!(warned(tree.edit(PODINFO_SET, "  rules:\n    - host", &format!("{backend}  rules:\n    - host"))), []);
    assert_eq!(warned(tree.edit(PODINFO_SET, &format!("  rules:\n{rules}"), "")), [Code::RouterLimit]);
    assert_eq!(codes(&tree.load(), "shop/podinfo"), []);
    let text = report(&tree.load(), Output::Text, Colour::Never).text;
    assert!(text.contains("defaultBackend: {service:") && text.contains("no requests to a host"), "{text}");
}

/// A proxy sends nobody to a preview: of what reaches its Service on purpose ingress-nginx counts nothing, and the others a part.
#[test]
fn what_no_proxy_counts_of_a_preview_is_refused_or_warned_of() {
    let preview = |tree: &mut Tree| {
        let phase = "    - name: look\n      expose: {preview: fullSize}\n      soak: 1h\n      checks: [errors]\n";
        tree.edit(PODINFO, "  phases:\n", &format!("  phases:\n{phase}")).load()
    };
    let loaded = preview(&mut counted_behind(INGRESS, "{weight: 50}", "nginx"));
    assert_eq!(codes(&loaded, "shop/podinfo"), [Code::CheckUseless]);
    let text = report(&loaded, Output::Text, Colour::Never).text;
    assert!(text.contains("so ingress-nginx counts nothing there, and errors has no value\n"), "{text}");
    assert!(text.contains("rollout.yaml:16:16\n") && text.contains("labels: {pod: pod}\n"), "{text}");
    for proxy in ["contour", "istio", "linkerd", "traefik"] {
        let loaded = preview(&mut with(PODINFO, &RATE.replace("contour", proxy)));
        assert_eq!(codes(&loaded, "shop/podinfo"), [], "{proxy}");
        let [warning] = loaded.warnings.as_slice() else { panic!("{proxy}: {:#?}", loaded.warnings) };
        assert_eq!((warning.code, warning.line, warning.column), (Code::CheckUseless, 16, 16));
        assert!(warning.found.contains("unless a load test calls the candidate's Service"), "{warning}");
        let own_route = warning.expected.contains("a route of your own");
        assert_eq!(own_route, matches!(proxy, "contour" | "traefik"), "{warning}");
    }
    let pass = preview(&mut with(PODINFO, &format!("{RATE}\n      onNoData: pass")));
    assert_eq!(pass.warnings, []);
}

/// What was found and what is wanted, at its line and column.
#[test]
fn values_of_another_kind_are_told_with_what_is_wanted() {
    let proxies = "contour or istio or linkerd or nginx or traefik";
    let query = |rest: &str| format!("prometheus: {{provider: main, query: {rest}}}\n      max: 1");
    let of_label = "errors, labels: {pod: k8s.pod.name}";
    let text = "the query yields a series for each that is counted, of each pod one at least; a check has one value";
    let sum = "one series, such as sum(rate(…))";
    for (check, place, found, expected) in [
        (query("[a]"), "32:36", "a list is no value for query", "a text"),
        (query("null"), "32:", "query has no value", "a text"),
        (query("'rate(requests_total[1m])'"), "32:43", text, sum),
        (RATE.replace("contour", "null"), "32:", "proxy has no value", proxies),
        (RATE.replace("contour", "[contour]"), "32:37", "a list is no value for proxy", proxies),
        (
            RATE.replace("99", ".inf"),
            "33:12",
            "\".inf\" is a number that JSON has no room for",
            "a finite number of 64 bits",
        ),
        (RATE.replace("99", "-.NaN"), "33:12", "\"-.NaN\" is a number that JSON", "a finite number of 64 bits"),
        (
            query(of_label),
            "32:65",
            "\"k8s.pod.name\" is not the name of a label that every",
            "1 to 256 letters, digits and _",
        ),
        (
            RATE.replace("min: 99", "max: 99"),
            "33:12",
            "at most 99 is good, so no share",
            "min: 99, or comparedWithStable",
        ),
        (RATE.replace("min: 99", "min: 101"), "33:12", "no share is as large as 101 %", "min: 99, or"),
        (RATE.replace("min: 99", RATIO), "33:41", "at most 1.2 is good, so no share", "min: 99, or"),
        (
            LATENCY.replace("max: 500", "min: 0").replace("max: 1.2", "min: 0"),
            "33:12",
            "no value is below 0",
            "max: 500, or",
        ),
    ] {
        let text = report(&with(PODINFO, &check).load(), Output::Text, Colour::Never).text;
        let told = [format!("rollout.yaml:{place}"), format!("]: {found}"), format!(" expected {expected}")];
        assert!(told.iter().all(|told| text.contains(told)), "{told:?}: {text}");
    }
}

#[test]
fn mistakes_of_what_ingress_nginx_and_traefik_count_are_shown_with_their_lines() {
    let shown = |tree: &Tree| report(&tree.load(), Output::Text, Colour::Never).text;
    let mut by_header = counted_behind(INGRESS_ROUTE, "weight: 10", "traefik");
    by_header.edit(PODINFO, "        weight: 10\n", "");
    let mut named = counted_behind(INGRESS, "{weight: 50}", "nginx");
    named.edit(PODINFO_SET, "port: {number: 80}}}}]}", "port: {name: web-public}}}}]}");
    let mut wild = counted_behind(INGRESS, "{weight: 50}", "nginx");
    wild.edit(PODINFO_SET, "host: podinfo.example.org", "host: '*.example.org'");
    let texts = [
        shown(&by_header),
        shown(&named),
        shown(&wild),
        shown(&counted_behind(TRAEFIK, "{weight: 50}", "contour")),
        shown(&with(PODINFO, &RATE.replace("contour", "nginx"))),
    ];
    insta::assert_snapshot!(texts.join("\n"));
}

#[test]
fn each_mistake_of_a_hook_has_its_name() {
    for (hook, wanted) in [
        ("{webhook: {provider: tester, metadata: {channel: shop}}}", None),
        ("{webhook: {provider: tester}, events: [wentBack, ended]}", None),
        ("{webhook: {provider: tester}, events: []}", Some(Code::Schema)),
        ("{webhook: {provider: tester}, events: [ended, ended]}", Some(Code::Schema)),
        ("{webhook: {provider: tester}, events: [paused]}", Some(Code::Schema)),
        ("{webhook: {provider: tester, url: 'https://evil.example'}}", Some(Code::UnknownField)),
        ("{events: [ended]}", Some(Code::Schema)),
    ] {
        let mut tree = Tree::example();
        let loaded = tree.append(PODINFO, &format!("  hooks: {{chat: {hook}}}\n")).load();
        assert_eq!(codes(&loaded, "shop/podinfo"), Vec::from_iter(wanted), "{hook}: {:#?}", loaded.errors());
    }
}
