//! The bad ways: whatever speaks against a version takes it back by itself, and it is not started again.

use super::app::{App, GATED, hasty, ungated};
use super::served::Served;
use super::world::{DECISIONS, World, is_exposed, is_on, is_steady};
use crate::support::cluster::eventually;
use crate::support::gateway::Mode;
use tidegate::plan::report::Reason;
use tidegate::record::state::{Outcome, Phase, Rest, RolloutState};

/// Waits until a run of `web` has failed; why, in words.
async fn until_failed(world: &World) -> (RolloutState, String) {
    let failed = |record: &RolloutState| matches!(record.phase, Phase::Failed { .. });
    let record = world.until("the failure", failed).await;
    let Phase::Failed { why, .. } = record.phase.clone() else { panic!("it has failed") };
    (record, why)
}

impl World {
    /// From now on the pods of a Deployment are not ready any more.
    pub(super) async fn break_pods(&self, app: &str) {
        self.kubectl(&["annotate", "pods", "--selector", &format!("app={app}"), "testbed/fail-after=1ms"], "").await;
    }
}

/// From now on admission refuses Deployments of version 2.
async fn refuse_version_2(world: &World) {
    let rule = "!object.spec.template.spec.containers.exists(c, c.image.endsWith(':2'))";
    world.bed.refuse(&world.space, "apps", "deployments", rule, "version 2 is not signed").await;
    let forbidden = App::worker("probe", 2).text();
    eventually("the policy", async || {
        let args = ["--namespace", &world.space.name, "apply", "--dry-run=server", "-f", "-"];
        world.bed.try_kubectl(&args, &forbidden).await.err()
    })
    .await;
}

/// Main is put right by merging the request that undoes the change, and all is as it was before.
async fn undo(world: &mut World) {
    world.settled(&[Reason::Refused]).await;
    let revert = world.request("revert").await;
    world.origin.merge(&revert, "main");
    world.settled(&[]).await;
    let record = world.record().unwrap();
    assert!(is_steady(&record, Rest::Reverted), "{:?}", record.phase);
    assert_eq!(record.history.len(), 1);
    assert!(world.origin.tip(&revert).is_none(), "a request that is merged is gone");
    assert_eq!(world.traces().await, [""; 0]);
    assert_eq!(world.weight().await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_21_x_5_a_version_that_fails_at_a_tenth_goes_back_and_asks_to_be_undone_on_main() {
    let mut world = World::new("fails", &ungated().replace("weight: 10}, soak: 1s", "weight: 10}, soak: 1h")).await;
    world.start();
    let served = Served::watch(&world, "web");
    world.until_steady(Rest::Initialized).await;
    let before = world.pods("web").await;
    world.release(&App::new("web", 2));
    world.until("a tenth", is_exposed).await;
    world.break_pods("web-canary").await;
    let (record, why) = until_failed(&world).await;
    assert!(why.contains("tenth") && why.contains("no ready endpoint"), "{why}");
    let [refused] = record.refused.as_slice() else { panic!("{:#?}", record.refused) };
    assert_eq!(refused.outcome, Outcome::Failed);
    assert_eq!(world.pods("web").await, before, "stable was never touched");
    assert_eq!(served.fewest(), 2);
    undo(&mut world).await;
    let checked = world.assert_kept();
    assert_eq!((checked.highest_weight.get(), checked.stable_pods.len()), (10, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_21_a_candidate_that_is_not_ready_by_the_deadline_is_never_exposed() {
    let mut world = World::new("stuck", &hasty(&ungated(), 10)).await;
    world.start();
    world.until_steady(Rest::Initialized).await;
    world.release(&App { pods: "testbed/behaviour: crash", ..App::new("web", 2) });
    let (_, why) = until_failed(&world).await;
    assert!(why.contains("not ready after 10s") && why.contains("CrashLoopBackOff"), "{why}");
    undo(&mut world).await;
    assert_eq!(world.assert_kept().highest_weight.get(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_image_that_cannot_be_pulled_is_named_in_the_record() {
    let mut world = World::new("image", &hasty(&ungated(), 10)).await;
    world.start();
    world.until_steady(Rest::Initialized).await;
    world.release(&App { pods: "testbed/behaviour: image", ..App::new("web", 2) });
    let (_, why) = until_failed(&world).await;
    assert!(why.contains("ImagePullBackOff"), "{why}");
    assert!(world.readme().contains("ImagePullBackOff"), "{}", world.readme());
    undo(&mut world).await;
    assert_eq!(world.assert_kept().highest_weight.get(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_13_what_admission_refuses_fails_before_anything_of_it_is_made() {
    let mut world = World::new("admission", &ungated()).await;
    world.start();
    world.until_steady(Rest::Initialized).await;
    refuse_version_2(&world).await;
    world.release(&App::new("web", 2));
    let (record, why) = until_failed(&world).await;
    assert!(why.contains("version 2 is not signed"), "{why}");
    assert_eq!(record.refused.len(), 1);
    undo(&mut world).await;
    let checked = world.assert_kept();
    assert_eq!((checked.most_pods, checked.highest_weight.get()), (0, 0));
    world.bed.accept(&world.space).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_21_a_route_that_the_gateway_refuses_goes_back() {
    let mut world = World::new("refuses", GATED).await;
    world.start();
    world.until_steady(Rest::Initialized).await;
    world.release(&App::new("web", 2));
    let request = world.request("tenth").await;
    world.bed.gateway.modes.set(&world.space.name, Mode::Refuse);
    world.origin.merge(&request, DECISIONS);
    // The gateway may still do what it took last: the candidate stays until it takes the way back.
    let record = world.until("return", |r| matches!(r.phase, Phase::Reverting { .. }) && is_on(r, "return")).await;
    assert!(record.refused.is_empty());
    world.polls(3).await;
    assert!(world.get("Deployment", "web-canary").await.is_some());
    world.bed.gateway.modes.set(&world.space.name, Mode::On);
    let (_, why) = until_failed(&world).await;
    assert!(why.contains("route was refused"), "{why}");
    undo(&mut world).await;
    assert!(world.assert_kept().highest_weight.get() <= 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_10_a_third_version_takes_the_second_back_before_it_starts() {
    let mut world = World::new("third", &GATED.replace("weight: 10}, soak: 1s", "weight: 10}, soak: 1h")).await;
    world.start();
    world.until_steady(Rest::Initialized).await;
    world.release(&App::new("web", 2));
    world.approve("tenth").await;
    world.until("a tenth", is_exposed).await;
    let spec = GATED.replace("weight: 10}, soak: 1s", "weight: 10}, soak: 2s");
    world.add(&spec, &App::new("web", 3));
    // The approval of the second version says nothing about the third.
    let request = world.request("tenth").await;
    let record = world.record().unwrap();
    assert_eq!(record.history.last().unwrap().outcome, Outcome::Superseded);
    assert!(record.refused.is_empty(), "nothing was wrong with it");
    assert_eq!(world.traces().await, [""; 0]);
    world.origin.merge(&request, DECISIONS);
    let record = world.until_steady(Rest::Succeeded).await;
    let outcomes: Vec<_> = record.history.iter().map(|past| past.outcome).collect();
    assert_eq!(outcomes, [Outcome::Superseded, Outcome::Promoted]);
    let checked = world.settled(&[]).await;
    assert_eq!(checked.stable_pods.len(), 2, "the second was never stable");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_9_main_back_at_the_promoted_version_cancels_the_run() {
    let mut world = World::new("back", &ungated().replace("weight: 10}, soak: 1s", "weight: 10}, soak: 1h")).await;
    world.start();
    world.until_steady(Rest::Initialized).await;
    let before = world.pods("web").await;
    world.release(&App::new("web", 2));
    world.until("a tenth", is_exposed).await;
    world.release(&App::new("web", 1));
    let record = world.until_steady(Rest::Reverted).await;
    assert_eq!(record.history.last().unwrap().outcome, Outcome::Reverted);
    assert!(record.refused.is_empty());
    assert_eq!(world.pods("web").await, before);
    assert_eq!(world.traces().await, [""; 0]);
    world.settled(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_5_what_cannot_be_undone_on_main_by_itself_is_told_until_people_have_undone_it() {
    let spec = ungated().replace("weight: 10}, soak: 1s", "weight: 10}, soak: 1h");
    let mut world = World::new("entangled", &spec).await;
    world.start();
    world.until_steady(Rest::Initialized).await;
    world.release(&App::new("web", 2));
    let run = world.until("a tenth", is_exposed).await.run.unwrap().id;
    // The same version, but the line that the run changed is another by now.
    let reviewed = App::new("web", 2).text().replace(":2\"}]}", ":2\"}]} # reviewed");
    assert!(reviewed.contains("# reviewed"));
    world.commit(&[("it/web.yaml", &reviewed)]);
    world.decide(run.as_str(), "abort");
    let told = world.until_condition(Reason::RevertConflict).await;
    assert!(told.contains(run.as_str()) && told.ends_with(": it/web.yaml"), "{told}");
    world.settled(&[Reason::Refused, Reason::RevertConflict]).await;
    world.release(&App::new("web", 1));
    world.settled(&[]).await;
    assert_eq!(world.record().unwrap().conditions, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn n_4_c_11_what_failed_is_not_started_again_by_a_restart_but_by_a_word_or_other_content() {
    let mut world = World::new("known-bad", &ungated()).await;
    world.start();
    world.until_steady(Rest::Initialized).await;
    refuse_version_2(&world).await;
    world.release(&App::new("web", 2));
    let (record, _) = until_failed(&world).await;
    let run = record.last_run.unwrap().id;
    world.settled(&[Reason::Refused]).await;
    // Another file of the same content changes nothing of that (N-4); it is seen all the same.
    let commit = world.commit(&[("it/web.yaml", &format!("# the same\n{}", App::new("web", 2).text()))]);
    world.settled(&[Reason::Refused]).await;
    assert_eq!(world.record().unwrap().next_run, 2, "no run was started for {commit}");
    world.bed.accept(&world.space).await;
    eventually("no policy", async || {
        let args = ["--namespace", &world.space.name, "apply", "--dry-run=server", "-f", "-"];
        world.bed.try_kubectl(&args, &App::worker("probe", 2).text()).await.ok()
    })
    .await;
    world.start();
    world.decide(run.as_str(), "retry");
    let record = world.until_steady(Rest::Succeeded).await;
    assert!(record.refused.is_empty());
    assert_eq!(record.next_run, 3);
    world.settled(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn n_18_former_content_is_rolled_out_again_step_by_step() {
    let mut world = World::new("aba", &ungated()).await;
    world.start();
    let first = world.until_steady(Rest::Initialized).await.promoted.unwrap();
    for (version, runs) in [(2, 1), (1, 2)] {
        world.release(&App::new("web", version));
        world.until("promotion", |r| is_steady(r, Rest::Succeeded) && r.history.len() == runs).await;
    }
    let record = world.record().unwrap();
    let promoted = record.promoted.unwrap();
    assert_eq!((&promoted.revision, &promoted.pods), (&first.revision, &first.pods));
    assert!(record.history.iter().all(|past| past.outcome == Outcome::Promoted));
    world.settled(&[]).await;
}
