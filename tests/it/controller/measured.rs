//! Checks that a real Prometheus answers.

use super::app::{App, ungated};
use super::world::{Held, World, is_steady};
use crate::support::cluster::Bed;
use crate::support::prometheus::Prometheus;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use tidegate::plan::report::Reason;
use tidegate::record::state::{Phase, Rest};

/// The candidate's pods, and nobody else's.
const CHECKED: &str = "  checks:\n    errors:\n      prometheus:\n        provider: main\n        query: |-\n          \
    sum(rate(http_requests_total{OURS, code=\"500\"}[1s])) / sum(rate(http_requests_total{OURS}[1s]))\n      \
    max: 0.05\n      interval: 1s\n      minSamples: 2\n";
const OURS: &str = "namespace=\"NAMESPACE\", pod=~\"web-canary-[0-9a-z]+-[0-9a-z]{5}\"";

/// What an application that has served since `since` tells: of stable's pods half the requests fail, of the candidate's
/// those that `fails` says, and of other applications all.
fn page(namespace: &str, since: Instant, fails: bool) -> String {
    let mut page = String::from("# TYPE http_requests_total counter\n");
    for (namespace, pod, failed) in [
        (namespace, "web-7d4b9c6f5d-x1y2z", 0.5),
        (namespace, "web-canary-6f7c8d9b4c-a1b2c", if fails { 0.5 } else { 0.0 }),
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
    let (namespace, since, fails) = (world.space.name.clone(), Instant::now(), Arc::new(AtomicBool::new(false)));
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
    fails.store(true, Ordering::Relaxed);
    world.release(&App::new("web", 4));
    let record = world.until("Failed", |record| matches!(record.phase, Phase::Failed { .. })).await;
    let Phase::Failed { why, .. } = record.phase else { panic!("it has failed") };
    assert!(why.starts_with("tenth: errors: 0.5 at ") && why.ends_with(" is above 0.05"), "{why}");
    world.settled(&[Reason::Refused]).await;
}
