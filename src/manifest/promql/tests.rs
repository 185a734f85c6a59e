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

#[test]
fn what_a_selector_looks_at_can_be_told() {
    let read = Query::parse("a{pod=~\"x\", 'b.c'='d'} / {\"e\"}").unwrap();
    assert_eq!(read.selectors().flat_map(super::Selector::labels).collect::<Vec<_>>(), ["pod", "b.c"]);
    let exact = |label| read.selectors().map(|selector| selector.exact(label)).collect::<Vec<_>>();
    assert_eq!((exact("pod"), exact("b.c")), (vec![None, None], vec![Some("d"), None]));
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
