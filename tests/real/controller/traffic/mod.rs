//! Does the traffic go there? Requests of people, through a real Envoy that Contour programs, to pods that answer.
#![expect(clippy::disallowed_methods, reason = "tests start programs and read the clock")]

mod handover;
mod load;
mod network;
mod pods;

use super::app::{App, of};
use super::world::{Held, World, is_exposed, is_on, rollout_of};
use crate::support::cluster::{Bed, eventually, proxy};
use crate::support::gateway::Mode;
use crate::support::prometheus::Prometheus;
use load::{Load, Tally, ask};
use pods::Pods;
use serde_json::Value;
use tidegate::plan::report::Reason;
use tidegate::record::state::{Phase, Rest, RolloutState};

/// Each step stays until a person has spoken. A proxy that follows late finds the pods that it still leads to for as long as `settle`
/// and `drain` say.
const STEPS: &str = "  traffic:\n    gatewayAPI: {httpRoute: web, service: web}\n    settle: 5s\n    drain: 10s\n  phases:\n  \
    - {name: testers, expose: {headers: [{x-canary: always}]}, soak: 1s}\n  \
    - {name: tenth, before: {approval: pullRequest}, expose: {weight: 10}, soak: 6s, checks: [errors, error-rate]}\n  \
    - {name: half, before: {approval: pullRequest}, expose: {weight: 50}, soak: 6s, checks: [errors, error-rate]}\n  \
    promotion: {before: {approval: pullRequest}}\n  progressDeadline: 10m\n  checks:\n    \
    errors: {successRate: {provider: main, proxy: contour}, min: 95, interval: 2s, minSamples: 2}\n    error-rate: ";

/// The check of the documents, as they have it, but about two seconds.
fn error_rate(name: &str) -> String {
    let page = include_str!("../../../../docs/checks.md");
    let block = page.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    let mut check: Value = serde_yaml::from_str::<Value>(block).unwrap()["checks"]["error-rate"].take();
    check["interval"] = "2s".into();
    check.to_string().replace("podinfo", name).replace("[1m]", "[2s]") + "\n"
}

/// How an application is rolled out.
fn spec(name: &str) -> String {
    format!("{}{}", of(name, STEPS), error_rate(name))
}

/// Whether a version's share of that many requests is what chance makes of its weight: within five standard deviations, beyond
/// which it is one time in two millions.
fn is_weighted(tally: &Tally, version: u8, percent: u32) -> bool {
    let (all, share) = (f64::from(tally.all()), f64::from(percent) / 100.0);
    (f64::from(tally.of(version)) - all * share).abs() <= 5.0 * (all * share * (1.0 - share)).sqrt()
}

/// Applications behind the proxy, with pods that answer, and a Prometheus that reads both.
struct Behind {
    world: World,
    pods: Pods,
    _prometheus: Prometheus,
}

impl Behind {
    /// Without an application.
    async fn empty(bed: &'static Bed, name: &str, pods: &Pods) -> Self {
        let mut world = World::empty(Held::Shared(bed), name).await;
        // Contour says what becomes of routes.
        bed.gateway.modes.set(&world.space.name, Mode::Off);
        let told = pods.clone();
        // All that Envoy counts takes long to tell.
        let envoy = "- job_name: envoy\n  metrics_path: /stats/prometheus\n  params: {usedonly: [\"\"], filter: [upstream_rq]}\n  \
            static_configs: [{targets: [\"127.0.0.1:19002\"]}]\n";
        let prometheus = Prometheus::reading_beside(move || told.page(), envoy).await;
        world.providers =
            format!("  providers: {{main: {{prometheus: {{url: \"http://{}\"}}}}}}\n", prometheus.address());
        Self { world, pods: pods.clone(), _prometheus: prometheus }
    }

    /// Waits until a step has had all that it needs but a person's word.
    async fn stands_on(&self, name: &str, step: &str) {
        let waits = |phase: &Phase| matches!(phase, Phase::Waiting { .. } | Phase::WaitingPromotion { .. });
        self.world.until_of(name, step, |record| is_on(record, step) && waits(&record.phase)).await;
    }
}

/// Waits until the proxy leads people to that version by that weight, as far as a few requests tell; then the share of many.
async fn share(people: &Load, version: u8, percent: u32) -> Tally {
    let follows = async || is_weighted(&people.next(300).await, version, percent).then_some(());
    eventually(&format!("a proxy that leads {percent} % to version {version}"), follows).await;
    people.next(3000).await
}

/// Waits until people reach that version.
async fn serves(host: &str, version: &str) {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let serves = async || (ask(&client, host, None).await == Ok((version.to_owned(), 200))).then_some(());
    eventually(&format!("a proxy that leads to version {version} of {host}"), serves).await;
}

/// A version of an application whose host begins with its name.
fn app<'a>(name: &'a str, host: &'a str, version: u8) -> App<'a> {
    App { parent: "name: web, namespace: projectcontour", host: Some(host), ..App::new(name, version) }
}

/// The users of one application.
struct Users {
    name: &'static str,
    host: &'static str,
    people: Load,
    testers: Load,
}

impl Users {
    async fn of(name: &'static str, host: &'static str) -> Self {
        serves(host, "1").await;
        let testers = Load::start(host, Some(("x-canary", "always")));
        Self { name, host, people: Load::start(host, None), testers }
    }
}

/// In a network of its own, with one bed and one proxy, since its addresses are fixed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_find_what_the_record_says() {
    if !network::is_inside() {
        let name = concat!(module_path!(), "::people_find_what_the_record_says");
        return network::enter(name.split_once("::").unwrap().1).await;
    }
    let bed = Bed::shared().await;
    proxy(bed).await;
    let pods = Pods::serve(bed).await;
    tokio::join!(handover::story(bed, &pods), c_20_c_22_c_34_requests_go_where_the_record_says(bed, &pods),);
}

async fn c_20_c_22_c_34_requests_go_where_the_record_says(bed: &'static Bed, pods: &Pods) {
    let mut behind = Behind::empty(bed, "traffic", pods).await;
    let applications = [("shop", "shop.example.test"), ("blog", "blog.example.test")];
    for (name, host) in applications {
        behind.world.add(&spec(name), &app(name, host, 1));
    }
    behind.world.start();
    for (name, _) in applications {
        behind.world.until_steady_of(name, Rest::Initialized).await;
    }
    let [(shop, at_shop), (blog, at_blog)] = applications;
    let (shop, blog) = (Users::of(shop, at_shop).await, Users::of(blog, at_blog).await);
    good_version(&behind, &shop).await;
    for users in [&shop, &blog] {
        let failed = (users.people.tally().failed, users.testers.tally().failed);
        assert_eq!(failed, Default::default(), "requests of {} that failed", users.name);
    }
    tokio::join!(bad_version(&behind, &shop, 3, "errors"), bad_version(&behind, &blog, 3, "error-rate"));
    drop((shop, blog));
    behind.world.settled(&[Reason::Refused]).await;
    assert!(behind.pods.page().contains("code=\"500\""), "the bad version has answered");
}

/// Nobody notices: each step has its share, testers are always on the new version, and no request is lost.
async fn good_version(behind: &Behind, users: &Users) {
    let Users { name, host, people, testers } = users;
    behind.world.release(&app(name, host, 2));
    behind.stands_on(name, "testers").await;
    assert!(is_weighted(&people.next(1000).await, 2, 0), "{:?}", people.tally());
    testers.row(2, 300).await;
    let before = people.tally();
    assert_eq!(before.of(2), 0, "testers are on the new version before anybody else is: {before:?}");
    for (step, percent) in [("tenth", 10), ("half", 50)] {
        behind.world.approve_of(name, step).await;
        behind.world.until_of(name, step, |record| is_in_force(record, step)).await;
        let tally = share(people, 2, percent).await;
        assert!(is_weighted(&tally, 2, percent), "{step}: {tally:?}");
        let tally = testers.next(300).await;
        assert_eq!(tally.of(2), tally.all(), "{step}: testers are on the new version: {tally:?}");
        behind.stands_on(name, step).await;
    }
    behind.world.approve_of(name, "promotion").await;
    behind.world.until_steady_of(name, Rest::Succeeded).await;
    people.row(2, 1000).await;
}

/// Whether a rollout stands on that step, and its soak has begun.
fn is_in_force(record: &RolloutState, step: &str) -> bool {
    is_on(record, step) && record.phase.position().is_some_and(|stop| stop.clock.exposed.is_some())
}

/// From when a tenth of the people have it half of what the new version answers is an error, and one check alone looks. They meet it,
/// and then nobody: all are on the version that they had before.
async fn bad_version(behind: &Behind, users: &Users, version: u8, check: &str) {
    let (Users { name, host, people, testers }, world) = (users, &behind.world);
    let (start, before) = (world.bed.mark().await, if *name == "shop" { 2 } else { 1 });
    let spec = spec(name).replacen("checks: [errors, error-rate]", &format!("checks: [{check}]"), 1);
    let rollout = rollout_of(&world.space.name, name, &spec);
    let paths = [format!("it/{name}.rollout.yaml"), format!("it/{name}.yaml")];
    world.commit(&[(&paths[0], &rollout), (&paths[1], &app(name, host, version).text())]);
    behind.stands_on(name, "testers").await;
    world.approve_of(name, "tenth").await;
    world.until_of(name, "a tenth", is_exposed).await;
    let of_it = format!("version {version}: 500");
    assert!([people, testers].iter().all(|load| load.tally().failed.is_empty()), "before it fails");
    fail(world, name, version).await;
    let (_, why) = world.until_failed_of(name).await;
    assert!(why.starts_with(&format!("tenth: {check}: ")), "{why}");
    let requests = world.requests_since(start).await;
    let is_retreat = |answer: &Value| answer["metadata"]["annotations"]["tidegate.io/retreated"].is_string();
    let mut routes = requests.iter().filter(|r| r.resource == "httproutes" && r.name == *name);
    assert!(routes.any(|r| r.answer.as_ref().is_some_and(is_retreat)), "the route went back");
    // Sooner or later the proxy leads everybody back, and then for good: who is led to a pod that is gone meets a failure.
    for load in [people, testers] {
        load.row(before, 1000).await;
        let tally = load.next(1000).await;
        assert_eq!(tally.of(before), tally.all(), "after it went back: {tally:?}");
        assert!(tally.failed.keys().all(|who| *who == of_it), "{:?}", tally.failed);
    }
    assert!(people.tally().failed.contains_key(&of_it), "people met it");
}

/// Half of what the live pods of a version answer is an error from now on.
async fn fail(world: &World, name: &str, version: u8) {
    let pods: Value = serde_json::from_str(&world.kubectl(&["get", "pods", "-o", "json"], "").await).unwrap();
    let image = format!("example.test/{name}:{version}");
    let of_it = pods["items"].as_array().unwrap().iter().filter(|pod| pod["spec"]["containers"][0]["image"] == *image);
    let names: Vec<&str> = of_it.map(|pod| pod["metadata"]["name"].as_str().unwrap()).collect();
    assert!(!names.is_empty(), "{pods:#}");
    world.kubectl(&[&["annotate", "pods"], &*names, &["testbed/error-percent=50"]].concat(), "").await;
}
