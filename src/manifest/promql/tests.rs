//! What is read of queries, and how they are narrowed. `tests/it/controller/measured.rs` asks a real Prometheus the same.

use super::{Matcher, Query, Value};

fn ours() -> [Matcher; 2] {
    [("namespace", Value::Is("shop".to_owned())), ("pod", Value::Like("web\\.a-[0-9a-z]+".to_owned()))]
        .map(|(label, value)| Matcher { label: label.to_owned(), value })
}

/// What stands in `wanted` for the matchers that are added.
const OURS: &str = r#"namespace="shop",pod=~"web\\.a-[0-9a-z]+""#;

#[track_caller]
fn narrows(query: &str, wanted: &str) {
    let read = Query::parse(query).unwrap_or_else(|why| panic!("{query}: {why}"));
    assert_eq!(read.narrowed(&ours()), wanted.replace("OURS", OURS));
    assert_eq!(read.narrowed(&[]).replace([' ', '\n'], ""), query.replace(", }", "}").replace([' ', '\n'], ""));
}

#[track_caller]
fn refuses(query: &str) -> String {
    match Query::parse(query) {
        Err(why) => why.to_string(),
        Ok(read) => panic!("{query}: {read:?}"),
    }
}

#[test]
fn every_selector_is_narrowed_and_nothing_else() {
    narrows("up", "up{OURS}");
    narrows("{job=\"a\"}", "{job=\"a\",OURS}");
    narrows("a:b:rate1m{c!=\"d\", e!~'f', }[5m]", "a:b:rate1m{c!=\"d\",e!~'f',OURS}[5m]");
    narrows(
        "sum by (pod, code) (rate(up[1m:10s] offset -1h))",
        "sum by (pod, code) (rate(up{OURS}[1m:10s] offset -1h))",
    );
    narrows("sum(up) without(pod)", "sum(up{OURS}) without(pod)");
    narrows("a / on(pod) group_left(code) b", "a{OURS} / on(pod) group_left(code) b{OURS}");
    narrows("a and ignoring (x) b or c unless d", "a{OURS} and ignoring (x) b{OURS} or c{OURS} unless d{OURS}");
    narrows("-a ^ -1e-3 > bool 0x1f + Inf", "-a{OURS} ^ -1e-3 > bool 0x1f + Inf");
    narrows("a @ 1.5e9 - a @ start()", "a{OURS} @ 1.5e9 - a{OURS} @ start()");
    narrows("histogram_quantile(0.9, sum(b) by (le))", "histogram_quantile(0.9, sum(b{OURS}) by (le))");
    narrows("label_replace(a, \"b{c\", `d}`, 'e\\'', \"\")", "label_replace(a{OURS}, \"b{c\", `d}`, 'e\\'', \"\")");
    narrows("topk(3, a) # of b{\n + time()", "topk(3, a{OURS}) # of b{\n + time()");
    narrows("{\"http.requests\", \"a.b\"=\"c\"}", "{\"http.requests\",\"a.b\"=\"c\",OURS}");
    narrows("(((a)))", "(((a{OURS})))");
    narrows("sum(a) or vector(0)", "sum(a{OURS}) or vector(0)");
}

/// Whatever stands in a query, it does not get out of the braces.
#[test]
fn attack_63_a_query_does_not_get_out_of_its_matchers() {
    narrows(r#"up{a="\"} or up{ns=\"other"}"#, r#"up{a="\"} or up{ns=\"other",OURS}"#);
    narrows(r#"up{a="} or up{b='"}"#, r#"up{a="} or up{b='",OURS}"#);
    narrows(r#"up{a="b"} or up{ns="other"}"#, r#"up{a="b",OURS} or up{ns="other",OURS}"#);
    narrows("up{a=`\\`} or b", "up{a=`\\`,OURS} or b{OURS}");
    narrows("up # {\nor b", "up{OURS} # {\nor b{OURS}");
}

#[test]
fn what_is_no_query_is_refused_with_its_place() {
    let wanted = "the query cannot be read from \"}\" on, at character 8: a value in quotes is wanted";
    assert_eq!(refuses("up{job=}"), wanted);
    for query in [
        "",
        "up up",
        "up{",
        "up{a=\"b\"",
        "up{a=\"b}",
        "up}",
        "up{a=\"b\"} or",
        "sum(",
        "sum()()",
        "sum by pod (up)",
        "(up",
        "up)",
        "by",
        "sum",
        "up{a}",
        "up{a==\"b\"}",
        "up{a=b}",
        "up[",
        "up[5m",
        "up[]",
        "(a,b)",
        "()",
        "up[a]",
        "up offset",
        "up offset b",
        "up @ b",
        "a,b",
        "up{a=\"b\" or c=\"d\"}",
        "up;",
        "on(up)",
        "a on(b) c",
        "a + by",
        "up{{a=\"b\"}}",
        "$up",
        "up{a='b\"}",
        "\u{0}",
    ] {
        refuses(query);
    }
    assert!(refuses(&"(".repeat(100_000)).ends_with("a query that is nested less deeply is wanted"));
    assert!(Query::parse(&format!("{}up{}", "(".repeat(60), ")".repeat(60))).is_ok());
    assert!(Query::parse(&format!("{}1", "-".repeat(100_000))).is_ok());
}

/// The first flaw of a query that can be read: what is wrong, where, and what is wanted.
fn flaw(query: &str) -> String {
    let read = Query::parse(query).unwrap_or_else(|why| panic!("{query}: {why}"));
    read.flaw().map(ToString::to_string).unwrap_or_default()
}

/// Queries that can be read and that no Prometheus takes, with what is wrong.
const FLAWED: &[(&str, &str)] = &[
    (
        "sum(rate(x))",
        "rate takes a range of values, and this is one value of each series, at character 10: a range behind the metric, such as [1m] is wanted",
    ),
    (
        "sum(x[1m])",
        "sum takes one value of each series, and this is a range of values, at character 5: a metric, or what a function such as rate(…) makes of a range is wanted",
    ),
    (
        "vector(x)",
        "vector takes one number, and this is one value of each series, at character 8: a number, or scalar(…) is wanted",
    ),
    (
        "sum(1)",
        "sum takes one value of each series, and this is one number, at character 5: a metric, or what a function such as rate(…) makes of a range is wanted",
    ),
    ("topk(x)", "topk does not take 1 argument, at character 1: 2 of them is wanted"),
    ("rate(x[1m], 2)", "rate does not take 2 arguments, at character 1: 1 of them is wanted"),
    ("round()", "round does not take 0 arguments, at character 1: 1 to 2 of them is wanted"),
    ("label_join(x, \"a\")", "label_join does not take 2 arguments, at character 1: at least 3 of them is wanted"),
    (
        "x[5m]",
        "the query yields a range of values, which is no value at one moment, at character 1: a metric, or what a function such as rate(…) makes of a range is wanted",
    ),
    (
        "\"a\"",
        "the query yields a text, which is no value at one moment, at character 1: a metric, or what a function such as rate(…) makes of a range is wanted",
    ),
    (
        "a + b[1m]",
        "nothing is counted with a range of values, at character 5: a metric, or what a function such as rate(…) makes of a range is wanted",
    ),
    (
        "-x[1m]",
        "nothing is counted with a range of values, at character 2: a metric, or what a function such as rate(…) makes of a range is wanted",
    ),
    (
        "sum(a) or 1",
        "and, or and unless are about series, and this is one number, at character 11: a metric, or vector(…) is wanted",
    ),
    ("1 < 2", "two numbers are compared, which leaves none, at character 5: bool before it is wanted"),
    (
        "rate(sum(x)[1m])",
        "a range stands behind what selects series alone, at character 12: a subquery, such as [5m:1m] is wanted",
    ),
    ("rate(x[1m][1m])", "this is a range already, at character 11: a subquery, such as [5m:1m] is wanted"),
    (
        "sum(x) offset 5m",
        "offset stands behind what selects series, or a range, at character 8: the same behind the metric is wanted",
    ),
    (
        "rate(x[5min])",
        "\"5min\" is no duration, at character 8: a number and one of ms, s, m, h, d, w and y, such as 1m is wanted",
    ),
    ("up{a=~\"(\"}", "\"(\" is no pattern: a ( is not closed, at character 7: a pattern of RE2 is wanted"),
    (
        "up{a!~\"(?=b)\"}",
        "\"(?=b)\" is no pattern: it looks ahead or back with (?…), which RE2 does not know, at character 7: a pattern of RE2 is wanted",
    ),
    (
        "up{a=~\"b\\.c\"}",
        "there is no escape \\. in a text between \", at character 7: \\\\., or the text between backticks is wanted",
    ),
];

#[test]
fn functions_and_types_are_read_too() {
    for (query, wanted) in FLAWED {
        assert_eq!(flaw(query), *wanted, "{query}");
    }
}

/// Nothing is called wrong that a Prometheus would take.
#[test]
fn what_a_prometheus_takes_has_no_flaw() {
    for query in [
        "1",
        "-1 + 2 * time()",
        "up",
        "+up > 0",
        "1 > bool 2",
        "1 + 2 > bool 3",
        "a > 1 > 0",
        "1 + a > 2",
        "scalar(a) + 1",
        "scalar(a) > bool 1",
        "sum(rate(a[1m])) / sum(rate(b[1m]))",
        "(sum(rate(a{code=~\"5..\"}[1m])) or vector(0)) / sum(rate(a[1m]))",
        "a and on (x) b or c unless d + 1",
        "a or 1 + b",
        "histogram_quantile(0.99, sum by (le) (rate(b[1m])))",
        "100 * (1 - a / b)",
        "max_over_time(rate(a[1m])[10m:1m])",
        "max_over_time((a / b)[10m:])",
        "rate(a[5m] offset 1h @ end())",
        "avg_over_time(a[1h30m])",
        "max_over_time(sum(a)[10m:1m] offset 5m)",
        "quantile_over_time(0.9, a[5m])",
        "quantile(0.9, a)",
        "topk(3, a)",
        "bottomk(1, rate(a[1m]))",
        "count_values(\"v\", a)",
        "SUM(a)",
        "label_replace(a, \"b\", \"$1\", \"c\", \"(.*)\")",
        "label_join(a, \"b\", \"-\", \"c\", \"d\")",
        "round(a)",
        "round(a, 0.1)",
        "hour()",
        "hour(a)",
        "clamp(a, 0, 1)",
        "absent(a)",
        "predict_linear(a[1h], 3600)",
        "sort_by_label(a, \"b\", \"c\")",
        "info(a)",
        "a ^ 2 ^ b atan2 c",
        "a % on (x) group_left () b",
        "up{a=~\"b\\\\.c\", d=~`e\\.f`, g!=\"(\"}",
        "up{path=~\"/users/{id}\"}",
        "{__name__=~\"a:.*\"}",
        "Inf",
        // Another make of Prometheus may know it.
        "errors(shop/web)",
        "sum(default_rollup_of_mine(a[1m]))",
    ] {
        assert_eq!(flaw(query), "", "{query}");
    }
    let unfamiliar = |query: &str| Query::parse(query).unwrap().unfamiliar().map(ToString::to_string);
    let told = |query: &str| unfamiliar(query).unwrap();
    assert_eq!(told("errors(shop/web)"), "errors is no function of PromQL, at character 1: a function is wanted");
    assert_eq!(told("sum(rte(x[1m]))"), "rte is no function of PromQL, at character 5: rate is wanted");
    assert_eq!(told("RATE(x[1m])"), "RATE is no function of PromQL, at character 1: rate is wanted");
    assert!(Query::parse("median_over_time(x[1m])").unwrap().flaw().is_none(), "VictoriaMetrics knows it");
    assert_eq!(unfamiliar("sum(rate(a[1m]))"), None);
}

#[test]
fn what_a_selector_looks_at_can_be_told() {
    let read = Query::parse("a{pod=~\"x\", 'b.c'='d'} / {\"e\"}").unwrap();
    assert_eq!(read.selectors().flat_map(super::Selector::labels).collect::<Vec<_>>(), ["pod", "b.c"]);
    let exact = |label| read.selectors().map(|selector| selector.exact(label)).collect::<Vec<_>>();
    assert_eq!((exact("pod"), exact("b.c")), (vec![None, None], vec![Some("d"), None]));
    let pattern = |label| read.selectors().map(|selector| selector.pattern(label)).collect::<Vec<_>>();
    assert_eq!((pattern("pod"), pattern("b.c")), (vec![Some("x"), None], vec![None, None]));
}

#[test]
fn what_plainly_yields_several_series_is_known() {
    let of_each = |query: &str, pod: Option<&str>, told: &[&str]| {
        Query::parse(query).unwrap().of_each(pod, told).map(str::to_owned).unwrap_or_default()
    };
    for (query, each) in [
        ("rate(requests_total[1m])", "pod"),
        ("(irate(requests_total{code=~\"5..\"}[1m] offset 1h))", "pod"),
        ("sum by (pod) (up)", "pod"),
        ("-sum by (job, instance) (rate(up[1m]))", "instance"),
        ("MAX(a / b) BY (le)", "le"),
        ("avg(up{pod=~\"web-.*\"}) by (\"pod\",)", "pod"),
    ] {
        assert_eq!(of_each(query, None, &[]), each, "{query}");
    }
    assert_eq!(of_each("sum by (kubernetes_pod_name) (up)", Some("kubernetes_pod_name"), &[]), "kubernetes_pod_name");
    assert_eq!(of_each("increase(requests_total[1m])", Some("p"), &[]), "p");
    assert_eq!(of_each("sum by (pod) (up)", None, &["workload"]), "pod");
    for (query, told) in [
        ("1", &[][..]),
        ("vector(1)", &[]),
        ("sum(rate(requests_total[1m]))", &[]),
        ("sum(sum by (pod) (up))", &[]),
        ("topk(1, up)", &[]),
        ("sum without (pod) (up)", &[]),
        ("sum by (job) (up)", &[]),
        ("sum by (pod) (up{pod=\"web-0\"})", &[]),
        ("sum by (pod) (up) > 1", &[]),
        ("sum by (workload) (up)", &["workload"]),
        ("histogram_quantile(0.9, sum by (le) (rate(b[1m])))", &[]),
        // It may be that a rule records one, or that one proxy counts for all.
        ("errors", &[]),
        ("rate(job:requests:sum[1m])", &[]),
        ("rate(sum(requests)[5m:1m])", &[]),
        ("rate(backend_requests_total{backend=\"web-canary\"}[1m])", &[]),
        ("rate(backend_requests_total[1m])", &["service"]),
    ] {
        assert_eq!(of_each(query, None, told), "", "{query}");
    }
}
