//! What a cluster goes through: controllers that stand still, an API server that is away, and one that has forgotten. On a bed of its own,
//! which is wiped at its end.

use super::app::{App, ungated};
use super::scaling::each_step_gated;
use super::world::{Held, World, is_exposed, is_on, rollout_of};
use crate::cluster::watch::is_listed_again;
use crate::support::cluster::{Bed, eventually};
use serde_json::{Value, json};
use std::time::{Instant, SystemTime};
use tidegate::plan::report::Reason;
use tidegate::record::state::{Rest, RolloutState};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_bed_of_its_own_goes_through() {
    let mut world = World::empty(Held::Own(Box::new(Bed::own().await)), "faults").await;
    world.add(&each_step_gated(), &App::new("web", 1));
    world.listens();
    world.start();
    world.until_steady(Rest::Initialized).await;
    c_33_while_the_controller_manager_stands_still_no_status_is_believed(&world).await;
    x_13_n_7_a_run_goes_on_after_the_api_server_was_away(&world).await;
    attack_55_a_forgotten_history_is_listed_again(&world.bed).await;
    world.settled(&[]).await;
    a_bed_of_its_own_survives_faults_and_is_wiped_at_its_end(world).await;
}

/// What a Deployment says of itself: how many pods are updated and ready, and whether that is about what it asks for now.
async fn says(world: &World, name: &str) -> (Value, Value, bool) {
    let deployment = world.get("Deployment", name).await.unwrap();
    let status = &deployment["status"];
    let present = status["observedGeneration"] == deployment["metadata"]["generation"];
    (status["updatedReplicas"].clone(), status["readyReplicas"].clone(), present)
}

async fn c_33_while_the_controller_manager_stands_still_no_status_is_believed(world: &World) {
    world.release(&App::new("web", 2));
    world.request("tenth").await;

    // What was made has no status at all.
    world.bed.fault(&["stop", "kube-controller-manager"]).await;
    world.approve("tenth").await;
    world.waits_for(Reason::CandidateNotReady).await;
    assert_eq!(world.weight().await, 0);
    world.bed.fault(&["cont", "kube-controller-manager"]).await;
    world.approve("half").await;
    world.request("promotion").await;

    // What was overwritten has one that says that all is well, of what it was before.
    world.bed.fault(&["stop", "kube-controller-manager"]).await;
    world.approve("promotion").await;
    world.waits_for(Reason::StableNotReady).await;
    assert_eq!(says(world, "web").await, (json!(2), json!(2), false));
    assert!(is_on(&world.record().unwrap(), "promote"));
    assert_eq!(world.weight().await, 100);
    world.bed.fault(&["cont", "kube-controller-manager"]).await;
    world.until_steady(Rest::Succeeded).await;
    assert_eq!(says(world, "web").await, (json!(2), json!(2), true));
    assert_eq!(world.assert_kept().highest_weight.get(), 100);
}

async fn x_13_n_7_a_run_goes_on_after_the_api_server_was_away(world: &World) {
    // The API server has to be away before the soak is over: a machine on which that takes longer gets a longer one.
    for (version, soak) in (3..).zip([8, 60, 600]) {
        let began = killed_in_a_soak(world, version, soak).await;
        let (killed, in_time) = (Instant::now(), began.elapsed().unwrap_or_default().as_secs() < soak);
        if in_time {
            eventually("away for longer than the soak", async || (killed.elapsed().as_secs() > soak + 1).then_some(()))
                .await;
            assert!(is_exposed(&world.record().unwrap()), "no clock runs while nobody observes");
        }
        world.bed.revive().await;
        let promoted = |record: &RolloutState| record.history.len() == usize::from(version) - 1 && record.run.is_none();
        let record = world.until(&format!("version {version}"), promoted).await;
        assert!(record.refused.is_empty(), "an outage speaks against no version");
        let live = world.get("Deployment", "web").await.unwrap();
        let image = format!("example.test/web:{version}");
        assert_eq!(live["spec"]["template"]["spec"]["containers"][0]["image"], image);
        if in_time {
            return;
        }
    }
    panic!("the API server was never away before a soak was over");
}

/// Kills the API server while a version has a tenth of the requests for so many seconds; when they began.
async fn killed_in_a_soak(world: &World, version: u8, soak: u64) -> SystemTime {
    let spec = ungated().replace("weight: 10}, soak: 1s", &format!("weight: 10}}, soak: {soak}s"));
    let (rollout, before) = (rollout_of(&world.space.name, "web", &spec), world.recorded());
    world.commit(&[("it/web.rollout.yaml", &rollout), ("it/web.yaml", &App::new("web", version).text())]);
    let record = world.until_since(&before, "a tenth", is_exposed).await;
    world.bed.fault(&["kill", "kube-apiserver"]).await;
    record.phase.position().and_then(|stop| stop.clock.exposed).unwrap().to_utc().into()
}

async fn attack_55_a_forgotten_history_is_listed_again(bed: &Bed) {
    is_listed_again(bed).await;
}

/// After all that was done to it: new pods became ready on it, or the last version would not have been promoted.
async fn a_bed_of_its_own_survives_faults_and_is_wiped_at_its_end(world: World) {
    let run = world.bed.run().to_owned();
    assert!(run.exists());
    drop(world);
    eventually("the end of the bed", async || (!run.exists()).then_some(())).await;
}
