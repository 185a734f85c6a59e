//! Checks that a real Prometheus answers.

use super::app::{App, ungated};
use super::world::{Held, World, is_steady};
use crate::support::cluster::Bed;
use crate::support::prometheus::Prometheus;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;
use tidegate::manifest::promql::{Matcher, Query, Value};
use tidegate::plan::report::Reason;
use tidegate::record::state::{Phase, Rest};

/// The candidate's pods, and nobody else's.
const CHECKED: &str = "  checks:\n    errors:\n      prometheus:\n        provider: main\n        query: |-\n          \
    sum(rate(http_requests_total{OURS, code=\"500\"}[1s])) / sum(rate(http_requests_total{OURS}[1s]))\n      \
    max: 0.05\n      interval: 1s\n      minSamples: 2\n";
const OURS: &str = "namespace=\"NAMESPACE\", pod=~\"web-canary-[0-9a-z]+-[0-9a-z]{5}\"";

/// What an application that has served since `since` tells: of stable's pods half the requests fail, of the candidate's
/// so many percent, and of other applications all.
fn page(namespace: &str, since: Instant, fails: u8) -> String {
    let mut page = String::from("# TYPE http_requests_total counter\n");
    for (namespace, pod, failed) in [
        (namespace, "web-7d4b9c6f5d-x1y2z", 0.5),
        (namespace, "web-canary-6f7c8d9b4c-a1b2c", f64::from(fails) / 100.0),
        (namespace, "web-canary-old-6f7c8d9b4c-a1b2c", 1.0),
        ("elsewhere", "web-canary-6f7c8d9b4c-a1b2c", 1.0),
    ] {
        let requests = since.elapsed().as_secs_f64() * 100.0;
        for (code, share) in [("200", 1.0 - failed), ("500", failed)] {
            let labels = format!("namespace=\"{namespace}\",pod=\"{pod}\",code=\"{code}\"");
            writeln!(page, "http_requests_total{{{labels}}} {}", requests * share).unwrap();
        }
    }
    page
}

/// Requirement C-34: a version is judged by its own pods alone, and a provider that is away speaks against none.
#[tokio::test(flavor = "multi_thread")]
async fn c_34_a_prometheus_says_how_the_candidate_fares() {
    let checked = ungated().replacen("soak: 1s}", "soak: 2s, checks: [errors]}", 1) + CHECKED;
    let mut world = World::empty(Held::Shared(Bed::shared().await), "measured").await;
    let ours = OURS.replace("NAMESPACE", &world.space.name);
    world.add(&checked.replace("OURS", &ours), &App::new("web", 1));
    let (namespace, since, fails) = (world.space.name.clone(), Instant::now(), Arc::new(AtomicU8::new(0)));
    let told = Arc::clone(&fails);
    let mut prometheus = Prometheus::reading(move || page(&namespace, since, told.load(Ordering::Relaxed))).await;
    world.providers = format!("  providers: {{main: {{prometheus: {{url: \"http://{}\"}}}}}}\n", prometheus.address);
    world.start();
    world.until_steady(Rest::Initialized).await;

    // Stable fails half of its requests, and the candidate none.
    world.release(&App::new("web", 2));
    let second = world.until_steady(Rest::Succeeded).await.promoted;

    // Nobody measures: it holds, and goes on by itself.
    prometheus.stop().await;
    world.release(&App::new("web", 3));
    let why = world.until_condition(Reason::Inconclusive).await;
    assert!(why.contains("tenth: errors has no result: provider main is away: ") && why.contains("refused"), "{why}");
    prometheus.go_on().await;
    world.until("version 3", |record| is_steady(record, Rest::Succeeded) && record.promoted != second).await;

    // The candidate fails.
    fails.store(50, Ordering::Relaxed);
    world.release(&App::new("web", 4));
    let record = world.until("Failed", |record| matches!(record.phase, Phase::Failed { .. })).await;
    let Phase::Failed { why, .. } = record.phase else { panic!("it has failed") };
    assert!(why.starts_with("tenth: errors: 0.5 at ") && why.ends_with(" is above 0.05"), "{why}");
    world.settled(&[Reason::Refused]).await;
}

/// The same without a word of whose series they are.
const COMPARED: &str = "  checks:\n    errors:\n      prometheus:\n        provider: main\n        labels: {pod: pod}\n        query: |-\n          \
    sum(rate(http_requests_total{code=\"500\"}[1s])) / sum(rate(http_requests_total[1s]))\n      \
    comparedWithStable: {ratio: {max: 1.2}, difference: {max: 0.2}}\n      interval: 1s\n      minSamples: 2\n";

/// Requirement C-34: beside a stable version that fails half of its requests, one that does the same is as good, and one that
/// fails more is not.
#[tokio::test(flavor = "multi_thread")]
async fn c_34_a_prometheus_says_how_the_candidate_fares_beside_stable() {
    let checked = ungated().replacen("soak: 1s}", "soak: 3s, checks: [errors]}", 1) + COMPARED;
    let mut world = World::empty(Held::Shared(Bed::shared().await), "compared").await;
    world.add(&checked, &App::new("web", 1));
    let (namespace, since, fails) = (world.space.name.clone(), Instant::now(), Arc::new(AtomicU8::new(50)));
    let told = Arc::clone(&fails);
    let prometheus = Prometheus::reading(move || page(&namespace, since, told.load(Ordering::Relaxed))).await;
    world.providers = format!("  providers: {{main: {{prometheus: {{url: \"http://{}\"}}}}}}\n", prometheus.address);
    world.start();
    world.until_steady(Rest::Initialized).await;
    world.release(&App::new("web", 2));
    world.until_steady(Rest::Succeeded).await;

    fails.store(90, Ordering::Relaxed);
    world.release(&App::new("web", 3));
    let record = world.until("Failed", |record| matches!(record.phase, Phase::Failed { .. })).await;
    let Phase::Failed { why, .. } = record.phase else { panic!("it has failed") };
    assert!(why.starts_with("tenth: errors: ") && why.contains(" stable's 0.5 by 0."), "{why}");
    assert!(why.ends_with(", which is above 0.2"), "{why}");
    world.settled(&[Reason::Refused]).await;
}

/// Queries, and what has to become of them where `OURS` stands for what is added.
const NARROWED: &[(&str, &str)] = &[
    ("up", "up{OURS}"),
    ("{job=\"a\"}", "{job=\"a\",OURS}"),
    ("rate(a:b{c!=\"d\", e!~'f', }[5m])", "rate(a:b{c!=\"d\",e!~'f',OURS}[5m])"),
    ("sum by (pod, code) (rate(up[1h:5m] offset -1h))", "sum by (pod, code) (rate(up{OURS}[1h:5m] offset -1h))"),
    (
        "sum(up) without(pod) / on() group_left() count(b)",
        "sum(up{OURS}) without(pod) / on() group_left() count(b{OURS})",
    ),
    (
        "a and ignoring (x) b OR c unless d atan2 e",
        "a{OURS} and ignoring (x) b{OURS} OR c{OURS} unless d{OURS} atan2 e{OURS}",
    ),
    ("-a ^ -1e-3 >bool 0x1f + Inf - .5", "-a{OURS} ^ -1e-3 >bool 0x1f + Inf - .5"),
    ("a @ 1.5e9 - a @ start() offset 5m", "a{OURS} @ 1.5e9 - a{OURS} @ start() offset 5m"),
    ("label_replace(a, \"b{c\", `d}`, 'e\\'', \"\")", "label_replace(a{OURS}, \"b{c\", `d}`, 'e\\'', \"\")"),
    ("topk(3, a) # of b{\n + vector(time())", "topk(3, a{OURS}) # of b{\n + vector(time())"),
    ("up{a=\"\\\"} or up{ns=\\\"other\"}", "up{a=\"\\\"} or up{ns=\\\"other\",OURS}"),
    ("up{a=\"b\"} or up{ns=\"other\"}", "up{a=\"b\",OURS} or up{ns=\"other\",OURS}"),
    ("(sum(a) or vector(0)) / sum(b) * 100", "(sum(a{OURS}) or vector(0)) / sum(b{OURS}) * 100"),
    ("sum / by + offset", "sum{OURS} / by{OURS} + offset{OURS}"),
    ("group{a=\"b\"} and and or or offset 5m", "group{a=\"b\",OURS} and and{OURS} or or{OURS} offset 5m"),
    ("{a!=\"\"} offset -5m @ end()", "{a!=\"\",OURS} offset -5m @ end()"),
    ("up{a=~\"\\\\101(?i)*b{1000}\"}", "up{a=~\"\\\\101(?i)*b{1000}\",OURS}"),
    ("up{", ""),
    ("up up", ""),
    ("up{a=\"b}", ""),
    ("sum(", ""),
    ("up offset b", ""),
    ("sum(rate(a))", ""),
    ("sum(a[1m])", ""),
    ("topk(a)", ""),
    ("a or 1", ""),
    ("1 < 2", ""),
    ("rate(sum(a)[1m])", ""),
    ("rate(a[5min])", ""),
    ("sum(a) offset 5m", ""),
    ("up{a=~\"(\"}", ""),
    ("up{a!~\"(?!b)\"}", ""),
    ("up{a=\"b\\.c\"}", ""),
    ("by(a)", ""),
    ("sum({})", ""),
    ("{a=~\".*\", b!=\"c\"}", ""),
    ("up{__name__=\"b\"}", ""),
    ("a + bool b", ""),
    ("a and on (b) group_left c", ""),
    ("up offset 1m offset 2m", ""),
    ("up @ 1 @ 2", ""),
    ("rate(a offset 1m [5m])", ""),
    ("rate(a[0s])", ""),
    ("rate(a[1m1h])", ""),
    ("up\u{a0}", ""),
    ("up{a=~\"\\\\1\"}", ""),
    ("up{a=~\"b{1001}\"}", ""),
];

/// Requirement C-34: Prometheus itself reads a narrowed query as the one that was meant, and refuses what we refuse.
#[tokio::test(flavor = "multi_thread")]
async fn c_34_a_prometheus_reads_narrowed_queries_as_they_are_meant() {
    let prometheus = Prometheus::reading(String::new).await;
    let url = format!("http://{}/api/v1/format_query", prometheus.address);
    let formatted = async |query: &str| {
        let url = url::Url::parse_with_params(&url, [("query", query)]).unwrap();
        let answer: serde_json::Value =
            serde_json::from_slice(&reqwest::get(url).await.unwrap().bytes().await.unwrap()).unwrap();
        answer["data"].as_str().map(str::to_owned)
    };
    let [label, value] = ["pod", "web-[0-9a-z]+\\.\"}"].map(str::to_owned);
    let matcher = Matcher { label, value: Value::Like(value) };
    for (query, wanted) in NARROWED {
        let read = Query::parse(query).ok().filter(|read| read.flaw().is_none());
        let (known, narrowed) =
            (formatted(query).await, read.map(|read| read.narrowed(std::slice::from_ref(&matcher))));
        assert_eq!(known.is_some(), narrowed.is_some(), "{query}: {narrowed:?}");
        let Some(narrowed) = narrowed else { continue };
        let wanted = formatted(&wanted.replace("OURS", r#"pod=~"web-[0-9a-z]+\\.\"}""#)).await;
        assert!(wanted.is_some(), "{query}");
        assert_eq!(formatted(&narrowed).await, wanted, "{query}");
    }
    // A function that is not known here may be one of a Prometheus that is newer: it is told of, and not refused.
    let other = "sum(rte(a[1m]))";
    assert!(Query::parse(other).unwrap().unfamiliar().is_some());
    assert_eq!(formatted(other).await, None);
}
