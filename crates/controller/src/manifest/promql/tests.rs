//! What is read of queries, and how they are narrowed. `tests/real/controller/measured.rs` asks a real Prometheus the same.

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
        "bool",
        "by(up)",
        "sum by (without) (up)",
        "up{a}",
        "up{a:b=\"c\"}",
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
        "a + group_left",
        "a + bool",
        "\u{a0}up",
        "up\u{a0}",
        "label_join(up, \"a\nb\")",
        "rate(up[5m)",
        "up[step(]",
        "up @ start",
        "a + fill() b",
        "up{{a=\"b\"}}",
        "$up",
        "up{a='b\"}",
        "\u{0}",
    ] {
        refuses(query);
    }
    assert_eq!(
        refuses("up or\u{a0}up"),
        "the query cannot be read from \"\\u{a0}\" on, at character 6: a selector, a function or a number is wanted"
    );
    assert!(refuses(&format!("up[{}", "(".repeat(100_000))).ends_with("a query that is nested less deeply is wanted"));
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
        "\"5min\" is neither a number nor a duration, at character 8: digits and units, such as 5m or 1h30m is wanted",
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

/// More of them: where, and what is wrong.
const MISTAKEN: &[(&str, usize, &str)] = &[
    ("sum({})", 5, "nothing is chosen here, so that all series there are would be taken"),
    ("{a=\"\"}", 1, "nothing is chosen here"),
    ("{a=~\".*\", b!=\"c\"}", 1, "nothing is chosen here"),
    ("{a!~\"(.+)?x\"}", 1, "nothing is chosen here"),
    ("up{__name__=\"x\"}", 4, "the name of the metric stands here twice"),
    ("up{\"x\"}", 4, "the name of the metric stands here twice"),
    ("a + bool b", 5, "bool stands behind what compares nothing"),
    ("a and bool b", 7, "bool stands behind what compares nothing"),
    ("a </ bool b", 6, "bool stands behind what compares nothing"),
    ("a and on (x) group_left b", 14, "and, or and unless take no group_left"),
    ("label_replace(a, \"b\", \"$1\", \"c\", \"(\")", 34, "\"(\" is no pattern: a ( is not closed"),
    ("up offset 1m offset 2m", 14, "offset stands here twice"),
    ("rate(up[5m] offset 1m offset 2m)", 23, "offset stands here twice"),
    ("up @ 1 @ 2", 8, "@ stands here twice"),
    ("rate(up offset 1m [5m])", 19, "a range stands behind offset or @"),
    ("rate(x[0s])", 8, "a range has to be longer than nothing"),
    ("rate(x[-5m])", 8, "a range has to be longer than nothing"),
    ("max_over_time(x[5m:0s])", 20, "a range has to be longer than nothing"),
    ("rate(x[1m1h])", 8, "\"1m1h\" is neither a number nor a duration"),
    ("rate(x[0x5m])", 8, "\"0x5m\" is neither a number nor a duration"),
    ("x > 5min", 5, "\"5min\" is neither a number nor a duration"),
    ("up{a=\"\\400\"}", 6, "there is no escape \\4 in a text between \""),
];

#[test]
fn what_no_prometheus_takes_is_told_where_it_stands() {
    for (query, at, found) in MISTAKEN {
        let read = Query::parse(query).unwrap_or_else(|why| panic!("{query}: {why}"));
        let flaw = read.flaw().unwrap_or_else(|| panic!("{query} has no flaw"));
        assert!((flaw.at, flaw.found.starts_with(found)) == (*at, true), "{query}: {flaw}");
    }
}

#[test]
fn functions_and_types_are_read_too() {
    for (query, wanted) in FLAWED {
        assert_eq!(flaw(query), *wanted, "{query}");
    }
}

/// Queries that a Prometheus takes.
const TAKEN: &[&str] = &[
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
    // Keywords are names of metrics where nothing else can stand.
    "sum",
    "group{a=\"b\"} / by",
    "and and and or or",
    "offset offset 5m",
    "start + end",
    "a + fill + b",
    "{a!=\"\"}",
    "{a!~\"\"}",
    "{__name__=~\".+\"}",
    "info(a, {b=~\".*\"})",
    "label_replace(a, \"b\", \"$1\", \"c\", \"(.*)\")",
    "a offset 1m @ end()",
    "a offset -5m",
    "a @ -1.5",
    "max_over_time(a offset 1m [5m:1m] offset 5m)",
    // Prometheus 3 alone.
    "rate(a[300]) + 5m",
    "a offset 0s",
    "a offset +5m @ 5m",
    "a </ 5 + a >/ b",
    "rate(a[5m] anchored) or a smoothed",
    "rate(a[5m * 2 + step()] offset -max_of(1m, (step() / 2)))",
    "{\"a.b\", \"c.d\"=\"e\"}",
    // Another make of Prometheus may know it.
    "errors(shop/web)",
    "sum(default_rollup_of_mine(a[1m]))",
];

/// Nothing is called wrong that a Prometheus would take.
#[test]
fn what_a_prometheus_takes_has_no_flaw() {
    for query in TAKEN {
        assert_eq!(flaw(query), "", "{query}");
    }
    let unfamiliar = |query: &str| Query::parse(query).unwrap().unfamiliar().map(ToString::to_string);
    let told = |query: &str| unfamiliar(query).unwrap();
    assert_eq!(told("errors(shop/web)"), "errors is no function of PromQL, at character 1: a function is wanted");
    assert_eq!(told("sum(rte(x[1m]))"), "rte is no function of PromQL, at character 5: rate is wanted");
    assert_eq!(told("RATE(x[1m])"), "RATE is no function of PromQL, at character 1: rate is wanted");
    assert!(Query::parse("median_over_time(x[1m])").unwrap().flaw().is_none(), "VictoriaMetrics knows it");
    assert_eq!(unfamiliar("sum(rate(a[1m]))"), None);
    assert!(
        told("a + on (b) fill_left(-1) fill_right(0) c")
            .starts_with("fill_left is an experimental feature of Prometheus, at character 12:")
    );
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
        ("rate(requests_total{pod=~\"web-0\"}[1m])", &[]),
        ("sum by (pod) (up{pod=~\"web-0\"})", &[]),
        ("rate(sum(requests)[5m:1m])", &[]),
        ("rate(backend_requests_total{backend=\"web-canary\"}[1m])", &[]),
        ("rate(backend_requests_total[1m])", &["service"]),
    ] {
        assert_eq!(of_each(query, None, told), "", "{query}");
    }
}
