//! The controller against a real API server and a real Git server.

mod process;
mod world;

use crate::support::cluster::eventually;
use crate::support::git_server::Fault;
use std::time::Duration;
use tidegate::record::state::{Phase, Rest, RolloutState};
use world::{World, manifests};

/// A tenth after a person's word, then half, then all.
const STEPS: &str = "  traffic:\n    gatewayAPI: {httpRoute: web, service: web}\n    settle: 1s\n    drain: 1s\n  phases:\n  \
    - name: tenth\n    before: {approval: pullRequest}\n    expose: {weight: 10}\n    soak: 1s\n  \
    - name: half\n    expose: {weight: 50}\n    soak: 1s\n  progressDeadline: 1m\n";

/// A tenth for a day.
const LONG: &str = "  traffic:\n    gatewayAPI: {httpRoute: web, service: web}\n    settle: 1s\n    drain: 1s\n  phases:\n  \
    - name: tenth\n    expose: {weight: 10}\n    soak: 24h\n  progressDeadline: 1m\n";

fn is_steady(record: &RolloutState, wanted: Rest) -> bool {
    matches!(record.phase, Phase::Steady { how, .. } if how == wanted)
}

/// On the step `tenth`, seen in force.
fn is_exposed(record: &RolloutState) -> bool {
    matches!(&record.phase, Phase::Progressing(stop) if stop.step.as_str() == "tenth" && stop.clock.exposed.is_some())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_version_is_promoted_step_by_step_and_never_ahead_of_git() {
    let mut world = World::new("promote", STEPS).await;
    world.start();
    world.until("first sight", |record| is_steady(record, Rest::Initialized)).await;
    world.release(2);
    world.approve("tenth").await;
    let record = world.until("promotion", |record| is_steady(record, Rest::Succeeded)).await;
    assert!(record.run.is_none());
    world.kill().await;
    let checked = world.assert_kept();
    assert_eq!(checked.highest_weight.get(), 100);
    let waiting = world.once(Duration::from_secs(60)).await;
    assert!(waiting.is_empty(), "{waiting:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_5_x_6_traffic_goes_back_while_git_is_away_and_git_learns_of_it_afterwards() {
    let mut world = World::new("away", LONG).await;
    world.start();
    world.until("first sight", |record| is_steady(record, Rest::Initialized)).await;
    world.commit(&[("it/web.yaml", &manifests(2, "testbed/fail-after: 6s"))]);
    world.until("a tenth", is_exposed).await;
    world.git.stop().await;
    eventually("all traffic on stable", async || (world.weight().await == 0).then_some(())).await;
    assert!(is_exposed(&world.record().unwrap()), "Git knows nothing of it yet");
    world.git.restart().await;
    let record = world.until("the failure", |record| matches!(record.phase, Phase::Failed { .. })).await;
    assert_eq!(record.refused.len(), 1);
    let branch = eventually("a request to undo it on main", async || world.request("revert")).await;
    let files = world.origin.files(&branch);
    assert_eq!(String::from_utf8_lossy(&files["it/web.yaml"]), manifests(1, ""));
    assert_eq!(world.assert_kept().highest_weight.get(), 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_11_a_run_goes_on_after_the_controller_was_killed_and_nothing_is_done_twice() {
    let mut world = World::new("killed", STEPS).await;
    world.start();
    world.until("first sight", |record| is_steady(record, Rest::Initialized)).await;
    world.release(2);
    eventually("a request", async || world.request("tenth")).await;
    world.kill().await;
    world.approve("tenth").await;
    world.start();
    world
        .until("a tenth", |record| matches!(&record.phase, Phase::Progressing(stop) if stop.step.as_str() == "tenth"))
        .await;
    world.kill().await;
    world.start();
    let record = world.until("promotion", |record| is_steady(record, Rest::Succeeded)).await;
    assert_eq!(record.next_run, 2);
    assert!(record.writer.epoch >= 3);
    world.assert_kept();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_rest_a_poll_is_one_look_up_and_nothing_is_asked_of_the_cluster_but_the_lease() {
    let mut world = World::new("rest", STEPS).await;
    world.start();
    world.until("first sight", |record| is_steady(record, Rest::Initialized)).await;
    world.polls(3).await;
    let mark = world.bed.mark().await;
    world.git.take_count();
    world.polls(5).await;
    let asked = world.git.requests();
    assert_eq!(asked.keys().collect::<Vec<_>>(), ["POST /it.git/git-upload-pack"], "{asked:?}");
    let requests = world.bed.requests_since(mark).await;
    let requests: Vec<_> = requests.iter().filter(|request| request.user == world.space.user).collect();
    let others: Vec<_> = requests.iter().filter(|request| !request.uri.contains("/leases/")).collect();
    assert!(others.is_empty(), "{others:#?}");
    world.kill().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_refuses_one_record_stops_only_that_rollout() {
    let mut world = World::new("refused", LONG).await;
    // Refuses whatever touches the record of `web`.
    let script = "#!/bin/sh\ngit diff-tree -r --name-only --root \"$3\" | grep -q /web/ && { echo 'not this one' >&2; exit 1; }\nexit 0\n";
    let second = world.second_rollout();
    world.origin.hook("update", Some(script));
    world.start();
    eventually("the record of the other", async || world.record_of(&second).map(|_| ())).await;
    assert!(world.record().is_none());
    world.origin.hook("update", None);
    world.until("first sight", |record| is_steady(record, Rest::Initialized)).await;
    world.kill().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attack_25_traffic_goes_back_while_the_git_server_keeps_us_waiting() {
    let mut world = World::new("slow", LONG).await;
    world.start();
    world.until("first sight", |record| is_steady(record, Rest::Initialized)).await;
    world.commit(&[("it/web.yaml", &manifests(2, "testbed/fail-after: 6s"))]);
    world.until("a tenth", is_exposed).await;
    world.git.fault("git-upload-pack", Fault::Slow);
    let asked = world.git.requests();
    eventually("a look-up that hangs", async || (world.git.requests() != asked).then_some(())).await;
    eventually("all traffic on stable", async || (world.weight().await == 0).then_some(())).await;
    world.kill().await;
    world.assert_kept();
}
