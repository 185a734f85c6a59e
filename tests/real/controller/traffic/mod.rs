//! Does the traffic go there? Requests of people, through a real Envoy that Contour programs, to pods that answer.
#![expect(clippy::disallowed_methods, reason = "tests start programs and read the clock")]

mod handover;
mod load;
mod network;
mod pods;

use super::app::App;
use super::world::{Held, World, is_exposed, is_on, rollout_of};
use crate::support::cluster::{Bed, eventually, proxy};
use crate::support::gateway::Mode;
use crate::support::prometheus::Prometheus;
use load::{Load, Tally, ask};
use pods::Pods;
use serde_json::Value;
use tidegate::plan::report::Reason;
use tidegate::record::state::{Phase, Rest};

/// The host of the application.
const HOST: &str = "web.example.test";
/// How long a change of the route may take until requests follow it.
const SETTLE: chrono::TimeDelta = chrono::TimeDelta::seconds(5);
/// Each step stays until a person has spoken.
const STEPS: &str = "  traffic:\n    gatewayAPI: {httpRoute: web, service: web}\n    settle: 5s\n    drain: 3s\n  phases:\n  \
    - {name: testers, expose: {headers: [{x-canary: always}]}, soak: 1s}\n  \
    - {name: tenth, before: {approval: pullRequest}, expose: {weight: 10}, soak: 8s, checks: [errors, error-rate]}\n  \
    - {name: half, before: {approval: pullRequest}, expose: {weight: 50}, soak: 8s, checks: [errors, error-rate]}\n  \
    promotion: {before: {approval: pullRequest}}\n  progressDeadline: 60s\n  checks:\n    \
    errors: {successRate: {provider: main, proxy: contour}, min: 95, interval: 2s, minSamples: 2}\n    error-rate: ";

/// The check of the documents, as they have it, but about two seconds.
fn error_rate() -> String {
    let page = include_str!("../../../../docs/checks.md");
    let block = page.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    let mut check: Value = serde_yaml::from_str::<Value>(block).unwrap()["checks"]["error-rate"].take();
    check["interval"] = "2s".into();
    check.to_string().replace("podinfo", "web").replace("[1m]", "[2s]") + "\n"
}

/// Whether a version's share of that many requests is what chance makes of its weight: within five standard deviations, beyond
/// which it is one time in two millions.
fn is_weighted(tally: &Tally, version: u8, percent: u32) -> bool {
    let (all, share) = (f64::from(tally.all()), f64::from(percent) / 100.0);
    (f64::from(tally.of(version)) - all * share).abs() <= 5.0 * (all * share * (1.0 - share)).sqrt()
}

/// An application behind the proxy, with pods that answer, and a Prometheus that reads both.
struct Behind {
    world: World,
    pods: Pods,
    _prometheus: Prometheus,
}

impl Behind {
    /// Without an application.
    async fn empty(name: &str) -> Self {
        let bed = Bed::shared().await;
        proxy(bed).await;
        let mut world = World::empty(Held::Shared(bed), name).await;
        // Contour says what becomes of routes.
        bed.gateway.modes.set(&world.space.name, Mode::Off);
        let pods = Pods::serve(bed).await;
        let (told, namespace) = (pods.clone(), world.space.name.clone());
        let envoy = "- job_name: envoy\n  metrics_path: /stats/prometheus\n  static_configs: [{targets: [\"127.0.0.1:19002\"]}]\n";
        let prometheus = Prometheus::reading_beside(move || told.page(&namespace), envoy).await;
        world.providers =
            format!("  providers: {{main: {{prometheus: {{url: \"http://{}\"}}}}}}\n", prometheus.address);
        Self { world, pods, _prometheus: prometheus }
    }

    async fn start() -> Self {
        let mut behind = Self::empty("traffic").await;
        behind.world.add(&format!("{STEPS}{}", error_rate()), &app(1));
        behind.world.start();
        behind.world.until_steady(Rest::Initialized).await;
        serves("1").await;
        behind
    }

    /// Waits until a step has had all that it needs but a person's word.
    async fn stands_on(&self, step: &str) {
        let waits = |phase: &Phase| matches!(phase, Phase::Waiting { .. } | Phase::WaitingPromotion { .. });
        self.world.until(step, |record| is_on(record, step) && waits(&record.phase)).await;
    }
}

/// Waits until people reach that version.
async fn serves(version: &str) {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let serves = async || (ask(&client, HOST, None).await == Ok((version.to_owned(), 200))).then_some(());
    eventually(&format!("a proxy that leads to version {version}"), serves).await;
}

fn app(version: u8) -> App<'static> {
    App { parent: "name: web, namespace: projectcontour", ..App::new("web", version) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_20_c_22_c_34_requests_go_where_the_record_says() {
    if !network::is_inside() {
        let name = concat!(module_path!(), "::c_20_c_22_c_34_requests_go_where_the_record_says");
        return network::enter(name.split_once("::").unwrap().1).await;
    }
    let mut behind = Behind::start().await;
    let (people, testers) = (Load::start(HOST, None), Load::start(HOST, Some(("x-canary", "always"))));

    good_version(&behind, &people, &testers).await;
    assert_eq!((people.tally().failed, testers.tally().failed), Default::default(), "requests that failed");

    bad_version(&behind, &people, &testers, 3, "errors").await;
    bad_version(&behind, &people, &testers, 4, "error-rate").await;
    drop((people, testers));
    behind.world.settled(&[Reason::Refused]).await;
    assert!(behind.pods.page("any").contains("code=\"500\""), "the bad version has answered");
}

/// Nobody notices: each step has its share, testers are always on the new version, and no request is lost.
async fn good_version(behind: &Behind, people: &Load, testers: &Load) {
    behind.world.release(&app(2));
    behind.stands_on("testers").await;
    assert!(is_weighted(&people.next(1000).await, 2, 0), "{:?}", people.tally());
    let tally = testers.next(300).await;
    assert_eq!(tally.of(2), tally.all(), "testers are on the new version before anybody else is: {tally:?}");
    for (step, percent) in [("tenth", 10), ("half", 50)] {
        behind.world.approve(step).await;
        behind.stands_on(step).await;
        let tally = people.next(3000).await;
        assert!(is_weighted(&tally, 2, percent), "{step}: {tally:?}");
        let tally = testers.next(300).await;
        assert_eq!(tally.of(2), tally.all(), "{step}: testers are on the new version: {tally:?}");
    }
    behind.world.approve("promotion").await;
    behind.world.until_steady(Rest::Succeeded).await;
    let tally = people.next(1000).await;
    assert_eq!(tally.of(2), tally.all(), "after the promotion: {tally:?}");
}

/// From when a tenth of the people have it half of what the new version answers is an error, and one check alone looks. They meet it,
/// and then nobody.
async fn bad_version(behind: &Behind, people: &Load, testers: &Load, version: u8, check: &str) {
    let world = &behind.world;
    let start = world.bed.mark().await;
    let both = format!("{STEPS}{}", error_rate());
    let spec = both.replacen("checks: [errors, error-rate]", &format!("checks: [{check}]"), 1);
    let rollout = rollout_of(&world.space.name, "web", &spec);
    world.commit(&[("it/web.rollout.yaml", &rollout), ("it/web.yaml", &app(version).text())]);
    behind.stands_on("testers").await;
    world.approve("tenth").await;
    world.until("a tenth", is_exposed).await;
    let of_it = format!("{version}: 500");
    assert!(people.tally().failed.keys().chain(testers.tally().failed.keys()).all(|who| !who.ends_with(&of_it)));
    fail(world, version).await;
    let record = world.until("Failed", |record| matches!(record.phase, Phase::Failed { .. })).await;
    let Phase::Failed { why, .. } = record.phase else { panic!("it has failed") };
    assert!(why.starts_with(&format!("tenth: {check}: ")), "{why}");
    let requests = world.requests_since(start).await;
    let is_retreat = |answer: &Value| answer["metadata"]["annotations"]["tidegate.io/retreated"].is_string();
    let back = requests.iter().find(|r| r.resource == "httproutes" && r.answer.as_ref().is_some_and(is_retreat));
    let back = back.expect("the route went back").answered;
    for load in [people, testers] {
        let tally = load.next(1000).await;
        assert_eq!(tally.of(2), tally.all(), "after it went back: {tally:?}");
        assert!(
            load.tally().last[&version.to_string()] - back <= SETTLE,
            "{} is more than {SETTLE} after {back}",
            load.tally().last[&version.to_string()]
        );
        let bad = ["version 3: 500", "version 4: 500"];
        assert!(load.tally().failed.keys().all(|who| bad.contains(&who.as_str())), "{:?}", load.tally().failed);
    }
    assert!(people.tally().failed.contains_key(&format!("version {of_it}")), "people met it");
}

/// Half of what the live pods of a version answer is an error from now on.
async fn fail(world: &World, version: u8) {
    let pods: Value = serde_json::from_str(&world.kubectl(&["get", "pods", "-o", "json"], "").await).unwrap();
    let image = format!("example.test/web:{version}");
    let of_it = pods["items"].as_array().unwrap().iter().filter(|pod| pod["spec"]["containers"][0]["image"] == *image);
    let names: Vec<&str> = of_it.map(|pod| pod["metadata"]["name"].as_str().unwrap()).collect();
    assert!(!names.is_empty(), "{pods:#}");
    world.kubectl(&[&["annotate", "pods"], &*names, &["testbed/error-percent=50"]].concat(), "").await;
}
