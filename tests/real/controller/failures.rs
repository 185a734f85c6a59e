//! The bad ways: whatever speaks against a version takes it back by itself, and it is not started again.

use super::app::{App, ungated};
use super::served::Served;
use super::world::{World, is_exposed, is_steady};
use crate::support::cluster::eventually;
use std::collections::BTreeSet;
use tidegate::plan::report::Reason;
use tidegate::record::state::{Outcome, Rest, RolloutState};

impl World {
    /// From now on the pods of a Deployment are not ready any more.
    pub(super) async fn break_pods(&self, app: &str) {
        self.kubectl(&["annotate", "pods", "--selector", &format!("app={app}"), "testbed/fail-after=1ms"], "").await;
    }

    /// Tries, in a dry run, to make a Deployment of version 3; the complaint, if it is refused.
    async fn tries_version_3(&self) -> Option<String> {
        let args = ["--namespace", &self.space.name, "apply", "--dry-run=server", "-f", "-"];
        self.bed.try_kubectl(&args, &App::worker("probe", 3).text()).await.err()
    }

    /// From now on admission refuses Deployments of version 3.
    async fn refuse_version_3(&self) {
        let rule = "!object.spec.template.spec.containers.exists(c, c.image.endsWith(':3'))";
        self.bed.refuse(&self.space, "apps", "deployments", rule, "version 3 is not signed").await;
        let refused = async || self.tries_version_3().await?.contains("version 3 is not signed").then_some(());
        eventually("the policy", refused).await;
    }

    /// From now on admission takes all versions.
    async fn accept_all_versions(&self) {
        self.bed.accept(&self.space).await;
        eventually("no policy", async || self.tries_version_3().await.is_none().then_some(())).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_11_c_21_n_4_x_5_x_13_what_fails_goes_back_and_what_admission_refuses_is_never_made() {
    let mut world = World::new("fails", &ungated().replace("weight: 10}, soak: 1s", "weight: 10}, soak: 24h")).await;
    world.start();
    world.until_steady(Rest::Initialized).await;
    c_21_x_5_a_version_that_fails_at_a_tenth_goes_back_and_asks_to_be_undone_on_main(&mut world).await;
    world.start();
    let run = x_13_what_admission_refuses_fails_before_anything_of_it_is_made(&world).await;
    n_4_c_11_what_failed_is_not_started_again_by_a_restart_but_by_a_word_or_other_content(&mut world, &run).await;
    world.settled(&[]).await;
}

async fn c_21_x_5_a_version_that_fails_at_a_tenth_goes_back_and_asks_to_be_undone_on_main(world: &mut World) {
    let served = Served::watch(world, "web");
    let before = world.pods("web").await;
    world.release(&App::new("web", 2));
    world.until("a tenth", is_exposed).await;
    world.break_pods("web-canary").await;
    let (record, why) = world.until_failed_of("web").await;
    assert!(why.contains("tenth") && why.contains("no ready endpoint"), "{why}");
    let [refused] = record.refused.as_slice() else { panic!("{:#?}", record.refused) };
    assert_eq!(refused.outcome, Outcome::Failed);
    assert_eq!(world.pods("web").await, before, "stable was never touched");
    assert_eq!(served.fewest_from(2), 2);
    undo(world).await;
    let checked = world.assert_kept();
    assert_eq!((checked.highest_weight.get(), checked.stable_pods.len()), (10, 1));
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

/// The run of version 3, which has failed.
async fn x_13_what_admission_refuses_fails_before_anything_of_it_is_made(world: &World) -> String {
    world.refuse_version_3().await;
    let known = refused(&world.record().unwrap());
    let mark = world.bed.mark().await;
    world.release(&App::new("web", 3));
    let (record, why) = world.until_failed_of("web").await;
    assert!(why.contains("version 3 is not signed"), "{why}");
    assert_eq!((known.len(), refused(&record).len()), (1, 2), "the second and the third: {:#?}", record.refused);
    assert!(refused(&record).is_superset(&known), "{:#?}", record.refused);
    let made = world.requests_since(mark).await.into_iter();
    let made = made.filter(|r| r.is_write() && !matches!(r.resource.as_str(), "leases" | "events"));
    assert_eq!(made.map(|r| format!("{} {}/{}", r.verb, r.resource, r.name)).collect::<Vec<_>>(), [""; 0]);
    assert_eq!((world.traces().await, world.weight().await), (vec![], 0));
    record.last_run.unwrap().id.to_string()
}

/// The revisions that are not started again.
fn refused(record: &RolloutState) -> BTreeSet<String> {
    record.refused.iter().map(|refused| refused.revision.to_string()).collect()
}

async fn n_4_c_11_what_failed_is_not_started_again_by_a_restart_but_by_a_word_or_other_content(
    world: &mut World,
    run: &str,
) {
    let third = refused(&world.record().unwrap());
    world.settled(&[Reason::Refused]).await;
    // Another file of the same content changes nothing of that (N-4); it is seen all the same.
    let commit = world.commit(&[("it/web.yaml", &format!("# the same\n{}", App::new("web", 3).text()))]);
    world.settled(&[Reason::Refused]).await;
    assert_eq!(world.record().unwrap().next_run, 3, "no run was started for {commit}");
    world.accept_all_versions().await;
    world.start();
    world.decide(run, "retry");
    let record = world.until("a tenth", is_exposed).await;
    world.decide_with(record.run.unwrap().id.as_str(), "skip", ", step: tenth");
    let record = world.until_steady(Rest::Succeeded).await;
    assert_eq!((record.next_run, refused(&record).len()), (4, third.len() - 1), "{:#?}", record.refused);
    assert!(record.refused.iter().all(|one| one.revision != record.promoted.as_ref().unwrap().revision));
}
