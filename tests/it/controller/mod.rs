//! The controller against a real API server and a real Git server.

mod world;

use std::time::Duration;
use tidegate::record::state::{Phase, Rest};
use world::World;

const PHASES: &str = "  traffic:\n    gatewayAPI: {httpRoute: web, service: web}\n    settle: 1s\n    drain: 1s\n  phases:\n  \
    - name: tenth\n    before: {approval: pullRequest}\n    expose: {weight: 10}\n    soak: 1s\n  \
    - name: half\n    expose: {weight: 50}\n    soak: 1s\n  progressDeadline: 1m\n";

fn is_steady(phase: &Phase, wanted: Rest) -> bool {
    matches!(phase, Phase::Steady { how, .. } if *how == wanted)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_version_is_promoted_step_by_step_and_never_ahead_of_git() {
    let mut world = World::new("promote", PHASES).await;
    world.start();
    world.until("first sight", |record| is_steady(&record.phase, Rest::Initialized)).await;
    world.release(2);
    world.approve("tenth").await;
    let record = world.until("promotion", |record| is_steady(&record.phase, Rest::Succeeded)).await;
    assert!(record.run.is_none());
    world.kill().await;
    let checked = world.assert_kept();
    assert_eq!(checked.highest_weight.get(), 100);
    let waiting = world.once(Duration::from_secs(60)).await;
    assert!(waiting.is_empty(), "{waiting:?}");
}
