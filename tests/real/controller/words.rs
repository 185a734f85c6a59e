//! People's words: no, stop, go on, not now.

use super::app::{App, GATED, ungated};
use super::world::{World, is_exposed, is_steady};
use crate::support::cluster::eventually;
use tidegate::plan::report::Reason;
use tidegate::record::state::{Outcome, Rest};

/// A tenth for a day.
fn long() -> String {
    ungated().replace("weight: 10}, soak: 1s", "weight: 10}, soak: 24h")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_4_a_request_that_is_deleted_unmerged_is_a_no_until_somebody_resumes() {
    let mut world = World::new("denied", GATED).await;
    world.start();
    world.until_steady(Rest::Initialized).await;
    world.release(&App::new("web", 2));
    let request = world.request("tenth").await;
    let record =
        world.until("the request in the record", |r| r.run.as_ref().is_some_and(|r| !r.pulls.is_empty())).await;
    world.origin.git(&["update-ref", "-d", &format!("refs/heads/{request}")]);
    world.until_condition(Reason::Denied).await;
    world.settled(&[Reason::Denied]).await;
    assert!(world.origin.tip(&request).is_none(), "nothing is asked again");
    world.start();
    world.decide(record.run.unwrap().id.as_str(), "resume");
    world.approve("tenth").await;
    world.until_steady(Rest::Succeeded).await;
    world.settled(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_abort_takes_the_run_back_and_refuses_its_version() {
    let mut world = World::new("aborted", &long()).await;
    world.start();
    world.until_steady(Rest::Initialized).await;
    world.release(&App::new("web", 2));
    let record = world.until("a tenth", is_exposed).await;
    world.decide(record.run.unwrap().id.as_str(), "abort");
    let record = world.until_steady(Rest::Reverted).await;
    let [refused] = record.refused.as_slice() else { panic!("{:#?}", record.refused) };
    assert_eq!(refused.outcome, Outcome::Aborted);
    assert_eq!(world.traces().await, [""; 0]);
    let revert = world.request("revert").await;
    world.settled(&[Reason::Refused]).await;
    // Who does not want it undone on main deletes the request: it is made once.
    world.origin.git(&["update-ref", "-d", &format!("refs/heads/{revert}")]);
    world.settled(&[Reason::Refused]).await;
    assert!(world.origin.tip(&revert).is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_2_a_word_given_before_the_run_started_is_not_heard() {
    let mut world = World::new("early", &long()).await;
    world.start();
    world.until_steady(Rest::Initialized).await;
    world.decide("0", "hold");
    world.until("the word", |record| record.consumed.len() == 1).await;
    world.release(&App::new("web", 2));
    let record = world.until("a tenth", is_exposed).await;
    let run = record.run.unwrap();
    assert!(!run.held);
    world.decide(run.id.as_str(), "hold");
    world.decide_with(run.id.as_str(), "skip", ", step: tenth");
    let record = world.until("held", |record| record.run.as_ref().is_some_and(|run| run.held)).await;
    let shown = world.until_condition(Reason::Held).await;
    assert!(shown.contains(run.id.as_str()), "{shown}");
    assert!(is_steady(&record, Rest::Initialized) || record.run.is_some());
    world.settled(&[Reason::Held]).await;
    world.start();
    world.decide(run.id.as_str(), "resume");
    world.until_steady(Rest::Succeeded).await;
    world.settled(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_brake_takes_a_run_back_also_while_git_is_away() {
    let mut world = World::new("brake", &long()).await;
    world.start();
    world.until_steady(Rest::Initialized).await;
    world.release(&App::new("web", 2));
    world.until("a tenth", is_exposed).await;
    world.git.stop().await;
    world.kubectl_at_home(&["create", "configmap", "tidegate-brake", "--from-literal=all=revert"]).await;
    eventually("all traffic on stable", async || (world.weight().await == 0).then_some(())).await;
    world.git.restart().await;
    let record = world.until_steady(Rest::Reverted).await;
    assert_eq!(record.history.last().unwrap().outcome, Outcome::Aborted);
    world.kubectl_at_home(&["delete", "configmap", "tidegate-brake"]).await;
    world.settled(&[Reason::Refused]).await;
}
