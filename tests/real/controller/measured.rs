//! Checks that a real Prometheus answers: of versions in the world in a process, by the clock on the wall.

use super::app::{App, of, ungated};
use super::world::{is_steady, rollout_of};
use crate::support::cluster::{PATIENCE, eventually};
use crate::support::prometheus::Prometheus;
use futures::{StreamExt as _, stream};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tidegate::analysis::prometheus::PrometheusClient as Measures;
use tidegate::analysis::provider::ProviderClient;
use tidegate::manifest::ids::RolloutId;
use tidegate::manifest::promql::{Matcher, Query, Value};
use tidegate::plan::report::Reason;
use tidegate::reconcile::clock::Clock;
use tidegate::reconcile::controller::{Once, Options, Waiting};
use tidegate::record::state::{Phase, Rest, RolloutState};
use tidegate::world::kube_api::{FaultVerdict, SeenRequest, What};
use tidegate::world::simulation::Simulation;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The candidate's pods, and nobody else's.
const CHECKED: &str = "  checks:\n    errors:\n      prometheus:\n        provider: main\n        query: |-\n          \
    sum(rate(http_requests_total{OURS, code=\"500\"}[2s])) / sum(rate(http_requests_total{OURS}[2s]))\n      \
    max: 0.05\n      interval: 1s\n      minSamples: 2\n";
const OURS: &str = "namespace=\"shop\", pod=~\"web-canary-[0-9a-z]+-[0-9a-z]{5}\"";
/// The same without a word of whose series they are.
const COMPARED: &str = "  checks:\n    errors:\n      prometheus:\n        provider: main\n        labels: {pod: pod}\n        query: |-\n          \
    sum(rate(http_requests_total{code=\"500\"}[2s])) / sum(rate(http_requests_total[2s]))\n      \
    comparedWithStable: {ratio: {max: 1.2}, difference: {max: 0.2}}\n      interval: 1s\n      minSamples: 2\n";

/// What applications that have served since `since` tell: of stable's pods half the requests fail, of the candidates' so many percent, and
/// of whatever else there is all.
fn page(since: Instant, fails: &[(&str, Arc<AtomicU8>)]) -> String {
    let mut page = String::from("# TYPE http_requests_total counter\n");
    for (name, fails) in fails {
        let fails = f64::from(fails.load(Ordering::Relaxed)) / 100.0;
        for (namespace, pod, failed) in [
            ("shop", "7d4b9c6f5d-x1y2z", 0.5),
            ("shop", "canary-6f7c8d9b4c-a1b2c", fails),
            ("shop", "canary-old-6f7c8d9b4c-a1b2c", 1.0),
            ("elsewhere", "canary-6f7c8d9b4c-a1b2c", 1.0),
        ] {
            let requests = since.elapsed().as_secs_f64() * 100.0;
            for (code, share) in [("200", 1.0 - failed), ("500", failed)] {
                let labels = format!("namespace=\"{namespace}\",pod=\"{name}-{pod}\",code=\"{code}\"");
                writeln!(page, "http_requests_total{{{labels}}} {}", requests * share).unwrap();
            }
        }
    }
    page
}

/// The world, with a controller in it.
struct Story {
    stage: Arc<Simulation>,
    stop: CancellationToken,
    /// What was written to the cluster so far, but for the Lease and Events.
    writes: Arc<AtomicUsize>,
    tasks: JoinSet<()>,
    _directory: tempfile::TempDir,
}

impl Story {
    /// With that Prometheus, and a rollout `web` that is judged alone and one, `other`, that is judged beside stable.
    async fn begin(prometheus: &Prometheus) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let asked = Measures::new(&format!("http://{}", prometheus.address()).parse().unwrap(), None).unwrap();
        let answers = [("main".parse().unwrap(), ProviderClient::Prometheus(Arc::new(asked)))].into();
        let stage = Simulation::new(directory.path(), Clock::default().now()).unwrap().answered(answers);
        let stage = Arc::new(stage.polled(Duration::from_secs(1)));
        let writes: Arc<AtomicUsize> = Arc::default();
        let counted = Arc::clone(&writes);
        stage.api.judge(move |SeenRequest { resource, what, .. }| {
            let What::Request { verb, dry_run: false } = what else { return FaultVerdict::Pass };
            if verb.writes() && !matches!(resource.plural, "leases" | "events") {
                counted.fetch_add(1, Ordering::Relaxed);
            }
            FaultVerdict::Pass
        });
        let policy = "apiVersion: tidegate.io/v1alpha1\nkind: Policy\nspec: {tenants: {it: {path: it, namespaces: [shop], clusters: [home]}}}\n";
        let checked = |soak: &str, check: &str| {
            ungated().replacen("soak: 1s}", &format!("soak: {soak}, checks: [errors]}}"), 1) + check
        };
        let alone = rollout_of("shop", "web", &checked("2s", &CHECKED.replace("OURS", OURS)));
        let beside = rollout_of("shop", "other", &of("other", &checked("3s", COMPARED)));
        let [web, other] = ["web", "other"].map(|name| App::new(name, 1).text());
        let files = [
            ("tidegate.yaml", policy),
            ("it/web.rollout.yaml", &alone),
            ("it/web.yaml", &web),
            ("it/other.rollout.yaml", &beside),
            ("it/other.yaml", &other),
        ];
        stage.push(&files, "the first versions").await.unwrap();
        let mut tasks = JoinSet::new();
        let (nature, stop) = (Arc::clone(&stage), CancellationToken::new());
        tasks.spawn(async move { nature.nature().await });
        let (runs, until) = (Arc::clone(&stage), stop.clone());
        tasks.spawn(async move {
            let options = Options { once: Once::No, listen: None, identity: "one".to_owned() };
            let ended = runs.controller("one", options, &until).await;
            assert!(until.is_cancelled(), "the controller ended: {ended:?}");
        });
        Self { stage, stop, writes, tasks, _directory: directory }
    }

    async fn release(&self, name: &str, version: u8) {
        let text = App::new(name, version).text();
        self.stage.push(&[(&format!("it/{name}.yaml"), &text)], "a version").await.unwrap();
    }

    /// Waits until the record of a rollout is like that.
    async fn until(&self, name: &str, what: &str, like: impl Fn(&RolloutState) -> bool) -> RolloutState {
        let id: RolloutId = format!("shop/{name}").parse().unwrap();
        eventually(&format!("{name}: {what}"), async || {
            let record = self.stage.record(&id).await.unwrap();
            record.filter(|record| like(record))
        })
        .await
    }

    async fn steady(&self, name: &str, how: Rest) -> RolloutState {
        self.until(name, &format!("{how:?}"), |record| is_steady(record, how)).await
    }

    /// Why a version has failed, once it has.
    async fn failed(&self, name: &str) -> String {
        let record = self.until(name, "failed", |record| matches!(record.phase, Phase::Failed { .. })).await;
        let Phase::Failed { why, .. } = record.phase else { panic!("it has failed") };
        why
    }

    async fn once(&self, identity: &str) -> Waiting {
        let options = Options { once: Once::Yes { timeout: PATIENCE }, listen: None, identity: identity.to_owned() };
        self.stage.controller(identity, options, &CancellationToken::new()).await.unwrap()
    }

    /// A new process finds nothing to do, and waits on nothing but this.
    async fn settled(&mut self, waits: &[Reason]) {
        self.stop.cancel();
        let nature = self.tasks.len() - 1;
        while self.tasks.len() > nature {
            self.tasks.join_next().await.unwrap().unwrap();
        }
        self.once("second").await;
        let before = (self.writes.load(Ordering::Relaxed), self.stage.commits(None).await.unwrap().len());
        let waiting = self.once("third").await;
        let reasons: BTreeSet<Reason> = waiting.values().flatten().map(|wait| wait.reason).collect();
        assert_eq!(reasons, waits.iter().copied().collect(), "{waiting:#?}");
        let after = (self.writes.load(Ordering::Relaxed), self.stage.commits(None).await.unwrap().len());
        assert_eq!(after, before, "writes or commits although all is settled");
    }
}

/// From now on so many percent of what candidates answer are errors; waits until no measurement remembers what was before.
async fn fail(fails: &AtomicU8, percent: u8, name: &str, prometheus: &Prometheus) {
    fails.store(percent, Ordering::Relaxed);
    let ours = OURS.replace("web", name);
    let of = |code: &str| format!("sum(rate(http_requests_total{{{ours}{code}}}[2s]))");
    let query = format!("{} / {}", of(", code=\"500\""), of(""));
    eventually(&format!("{percent} % of errors of {name}"), async || {
        let answer = prometheus.answer("query", &query).await;
        let share: f64 = answer["data"]["result"][0]["value"][1].as_str()?.parse().ok()?;
        ((share - f64::from(percent) / 100.0).abs() < 1e-6).then_some(())
    })
    .await;
}

/// Requirement C-34: a version is judged by its own pods alone, and a provider that is away speaks against none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_prometheus_says_of_versions() {
    let (since, alone, beside) = (Instant::now(), Arc::new(AtomicU8::new(0)), Arc::new(AtomicU8::new(50)));
    let told = [("web", Arc::clone(&alone)), ("other", Arc::clone(&beside))];
    let mut prometheus = Prometheus::reading(move || page(since, &told)).await;
    let mut story = Story::begin(&prometheus).await;
    c_34_a_prometheus_says_how_the_candidate_fares_beside_stable(&story, &beside, &prometheus).await;
    c_34_a_prometheus_says_how_the_candidate_fares(&story, &alone, &mut prometheus).await;
    story.settled(&[Reason::Refused]).await;
}

async fn c_34_a_prometheus_says_how_the_candidate_fares(story: &Story, fails: &AtomicU8, prometheus: &mut Prometheus) {
    story.steady("web", Rest::Initialized).await;

    // Stable fails half of its requests, and the candidate none.
    story.release("web", 2).await;
    let second = story.steady("web", Rest::Succeeded).await.promoted;

    // Nobody measures: it holds, and goes on by itself.
    prometheus.stop().await;
    story.release("web", 3).await;
    let inconclusive = |record: &RolloutState| {
        let found = record.conditions.iter().find(|one| one.reason == Reason::Inconclusive.as_str());
        found.map(|one| one.message.clone())
    };
    let record = story.until("web", "inconclusive", |record| inconclusive(record).is_some()).await;
    let why = inconclusive(&record).unwrap();
    assert!(why.contains("tenth: errors has no result: provider main is away: ") && why.contains("refused"), "{why}");
    prometheus.go_on().await;
    story.until("web", "version 3", |record| is_steady(record, Rest::Succeeded) && record.promoted != second).await;

    // The candidate fails.
    fail(fails, 50, "web", prometheus).await;
    story.release("web", 4).await;
    let why = story.failed("web").await;
    assert!(why.starts_with("tenth: errors: 0.5 at ") && why.ends_with(" is above 0.05"), "{why}");
}

/// Beside a stable version that fails half of its requests, one that does the same is as good, and one that fails more is not.
async fn c_34_a_prometheus_says_how_the_candidate_fares_beside_stable(
    story: &Story,
    fails: &AtomicU8,
    prometheus: &Prometheus,
) {
    story.steady("other", Rest::Initialized).await;
    story.release("other", 2).await;
    story.steady("other", Rest::Succeeded).await;

    fail(fails, 90, "other", prometheus).await;
    story.release("other", 3).await;
    let why = story.failed("other").await;
    assert!(why.starts_with("tenth: errors: ") && why.contains(" stable's 0.5 by 0."), "{why}");
    assert!(why.ends_with(", which is above 0.2"), "{why}");
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
    let formatted =
        async |query: &str| prometheus.answer("format_query", query).await["data"].as_str().map(str::to_owned);
    let [label, value] = ["pod", "web-[0-9a-z]+\\.\"}"].map(str::to_owned);
    let matcher = Matcher { label, value: Value::Like(value) };
    let checked = stream::iter(NARROWED).map(async |(query, wanted)| {
        let read = Query::parse(query).ok().filter(|read| read.flaw().is_none());
        let (known, narrowed) =
            (formatted(query).await, read.map(|read| read.narrowed(std::slice::from_ref(&matcher))));
        assert_eq!(known.is_some(), narrowed.is_some(), "{query}: {narrowed:?}");
        let Some(narrowed) = narrowed else { return };
        let wanted = formatted(&wanted.replace("OURS", r#"pod=~"web-[0-9a-z]+\\.\"}""#)).await;
        assert!(wanted.is_some(), "{query}");
        assert_eq!(formatted(&narrowed).await, wanted, "{query}");
    });
    checked.buffer_unordered(8).collect::<()>().await;
    // A function that is not known here may be one of a Prometheus that is newer: it is told of, and not refused.
    let other = "sum(rte(a[1m]))";
    assert!(Query::parse(other).unwrap().unfamiliar().is_some());
    assert_eq!(formatted(other).await, None);
}
