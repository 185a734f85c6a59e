//! Git as a server can be: refusing, cut off, behind, away and silent. What waits for its word waits, and what takes traffic back does
//! not.

use super::app::{App, GATED};
use super::world::{DECISIONS, STATE, World, is_exposed, is_steady};
use crate::support::audit::Request;
use crate::support::cluster::eventually;
use crate::support::git_server::Fault;
use tidegate::plan::report::Reason;
use tidegate::record::state::{Phase, Rest};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_5_x_6_git_refuses_cuts_lags_fails_and_says_nothing() {
    let mut world = World::new("git", &GATED.replace("weight: 10}, soak: 1s", "weight: 10}, soak: 24h")).await;
    world.add("  progressDeadline: 10m\n", &App::worker("api", 1));
    world.listens();
    a_record_that_the_git_server_refuses_stops_only_its_rollout(&mut world).await;
    rejected(&world, 0).await;
    world.git.freeze();
    world.release(&App::new("web", 2));
    let request = world.request("tenth").await;
    // The record that tells of it is the last that is not refused.
    world.until("what was asked", |record| record.run.as_ref().is_some_and(|run| !run.pulls.is_empty())).await;
    x_6_nothing_advances_on_answers_that_are_cut_or_older_than_the_newest(&world, &request).await;
    a_record_that_the_git_server_refuses_is_told_where_the_record_cannot_tell(&world, &request).await;
    world.until("a tenth", is_exposed).await;
    rejected(&world, 0).await;
    x_5_x_6_traffic_goes_back_while_git_says_nothing_and_git_learns_of_it_afterwards(&world).await;
    let checked = world.settled(&[Reason::Refused]).await;
    assert_eq!(checked.highest_weight.get(), 10);
}

/// Waits until so many rollouts' records are refused, by the number that an alert looks at.
async fn rejected(world: &World, count: usize) {
    let numbers = world.served("metrics");
    let line = format!("tidegate_record_rejected {count}");
    eventually(&line, async || {
        let text = reqwest::get(&numbers).await.ok()?.text().await.ok()?;
        text.lines().any(|found| found == line).then_some(())
    })
    .await;
}

/// Two rollouts, and nobody lets the record of `web` in.
async fn a_record_that_the_git_server_refuses_stops_only_its_rollout(world: &mut World) {
    let script = "#!/bin/sh\ngit diff-tree -r --name-only --root \"$3\" | grep -q /web/ && { echo 'not this one' >&2; exit 1; }\nexit 0\n";
    world.origin.hook("update", Some(script));
    world.start();
    world.until_of("api", "first sight", |record| is_steady(record, Rest::Initialized)).await;
    world.release(&App::worker("api", 2));
    world.until_of("api", "promotion", |record| is_steady(record, Rest::Succeeded)).await;
    rejected(world, 1).await;
    assert!(world.record().is_none());
    assert!(world.get("Deployment", "web").await.is_none(), "what is not recorded is not done");
    world.origin.hook("update", None);
    world.until_steady(Rest::Initialized).await;
}

async fn x_6_nothing_advances_on_answers_that_are_cut_or_older_than_the_newest(world: &World, request: &str) {
    for fault in [Fault::Cut, Fault::Stale, Fault::Unavailable] {
        world.git.fault("", fault.clone());
        world.polls(2).await;
        // The approval is there, but nobody is told.
        world.origin.merge(request, DECISIONS);
        let (start, tip) = (world.bed.mark().await, world.origin.tip(STATE));
        world.polls(3).await;
        let writes: Vec<Request> = world.requests_since(start).await.into_iter().filter(Request::is_write).collect();
        assert!(writes.iter().all(|r| matches!(r.resource.as_str(), "leases" | "events")), "{fault:?}: {writes:#?}");
        assert_eq!(world.origin.tip(STATE), tip, "{fault:?}");
        world.origin.git(&["update-ref", "-d", &format!("refs/heads/{DECISIONS}")]);
        world.git.heal();
    }
}

async fn a_record_that_the_git_server_refuses_is_told_where_the_record_cannot_tell(world: &World, request: &str) {
    let script = format!("#!/bin/sh\n[ \"$1\" = refs/heads/{STATE} ] || exit 0\necho 'protected branch' >&2\nexit 1\n");
    world.origin.hook("update", Some(&script));
    let tip = world.origin.tip(STATE);
    world.origin.merge(request, DECISIONS);
    rejected(world, 1).await;
    let told = eventually("the Event", async || {
        let events = world.kubectl(&["get", "events", "--field-selector", "reason=RecordRejected"], "").await;
        events.contains("protected branch").then_some(events)
    })
    .await;
    assert!(told.contains("deployment/web"), "{told}");
    assert_eq!(world.origin.tip(STATE), tip);
    assert_eq!(world.weight().await, 0, "what is not recorded is not done");
    world.origin.hook("update", None);
}

/// The traffic is back at stable while Git knows nothing of it; once Git answers again, one commit says what has happened.
async fn x_5_x_6_traffic_goes_back_while_git_says_nothing_and_git_learns_of_it_afterwards(world: &World) {
    world.git.fault("", Fault::Slow);
    world.break_pods("web-canary").await;
    eventually("all traffic on stable", async || (world.weight().await == 0).then_some(())).await;
    assert!(is_exposed(&world.record().unwrap()), "Git knows nothing of it yet");
    let before = world.story().len();
    world.git.heal();
    world.until("the failure", |record| matches!(record.phase, Phase::Failed { .. })).await;
    assert_eq!(world.story()[before], "Reverting split", "{:?}", world.story());
    let revert = world.request("revert").await;
    let files = world.origin.files(&revert);
    assert_eq!(String::from_utf8_lossy(&files["it/web.yaml"]), App::new("web", 1).text());
}
