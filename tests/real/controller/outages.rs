//! Git or the cluster away, late, older than it was, or showing what cannot be meant.

use super::app::{App, GATED, ungated};
use super::world::{DECISIONS, Held, STATE, World, is_exposed, is_steady};
use crate::support::audit::Request;
use crate::support::cluster::{Bed, eventually};
use crate::support::git_server::Fault;
use tidegate::plan::report::Reason;
use tidegate::record::state::{Phase, Rest};

/// A tenth for a day.
fn long() -> String {
    ungated().replace("weight: 10}, soak: 1s", "weight: 10}, soak: 24h")
}

/// Waits until the traffic is back at stable while Git knows nothing of it, then lets `heal` bring Git back, and sees
/// that one commit says what has happened.
async fn retreats_without_git(world: &mut World, heal: impl AsyncFnOnce(&World)) {
    eventually("all traffic on stable", async || (world.weight().await == 0).then_some(())).await;
    assert!(is_exposed(&world.record().unwrap()), "Git knows nothing of it yet");
    let before = world.story().len();
    heal(world).await;
    world.until("the failure", |record| matches!(record.phase, Phase::Failed { .. })).await;
    assert_eq!(world.story()[before], "Reverting split", "{:?}", world.story());
    let revert = world.request("revert").await;
    let files = world.origin.files(&revert);
    assert_eq!(String::from_utf8_lossy(&files["it/web.yaml"]), App::new("web", 1).text());
    let checked = world.settled(&[Reason::Refused]).await;
    assert_eq!(checked.highest_weight.get(), 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_5_x_6_traffic_goes_back_while_git_is_away_and_git_learns_of_it_afterwards() {
    let mut world = World::new("away", &long()).await;
    world.start();
    world.until_steady(Rest::Initialized).await;
    world.release(&App::new("web", 2));
    world.until("a tenth", is_exposed).await;
    world.git.stop().await;
    world.break_pods("web-canary").await;
    retreats_without_git(&mut world, async |world| world.git.restart().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_5_traffic_goes_back_while_git_keeps_everybody_waiting() {
    let mut world = World::new("slow", &long()).await;
    world.start();
    world.until_steady(Rest::Initialized).await;
    world.release(&App::new("web", 2));
    world.until("a tenth", is_exposed).await;
    world.git.fault("", Fault::Slow);
    world.break_pods("web-canary").await;
    retreats_without_git(&mut world, async |world| world.git.heal()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_11_a_run_goes_on_after_the_controller_was_killed_and_nothing_is_done_twice() {
    let mut world = World::new("killed", GATED).await;
    world.start();
    world.until_steady(Rest::Initialized).await;
    world.release(&App::new("web", 2));
    world.request("tenth").await;
    world.kill().await;
    world.approve("tenth").await;
    world.start();
    world.until_on("tenth").await;
    world.kill().await;
    world.start();
    let record = world.until_steady(Rest::Succeeded).await;
    assert_eq!(record.next_run, 2);
    assert!(record.writer.epoch >= 3, "each process has an epoch of its own");
    world.settled(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_6_nothing_advances_on_answers_that_are_cut_or_older_than_the_newest() {
    let mut world = World::new("stale", GATED).await;
    world.start();
    world.until_steady(Rest::Initialized).await;
    world.git.freeze();
    world.release(&App::new("web", 2));
    let request = world.request("tenth").await;
    for fault in [Fault::Cut, Fault::Stale, Fault::Unavailable] {
        world.git.fault("", fault.clone());
        world.polls(2).await;
        // The approval is there, but nobody is told.
        world.origin.merge(&request, DECISIONS);
        let (start, tip) = (world.bed.mark().await, world.origin.tip(STATE));
        world.polls(3).await;
        let writes: Vec<Request> = world.requests_since(start).await.into_iter().filter(Request::is_write).collect();
        assert!(writes.iter().all(|r| matches!(r.resource.as_str(), "leases" | "events")), "{fault:?}: {writes:#?}");
        assert_eq!(world.origin.tip(STATE), tip, "{fault:?}");
        if fault != Fault::Unavailable {
            world.origin.git(&["update-ref", "-d", &format!("refs/heads/{DECISIONS}")]);
        }
        world.git.heal();
    }
    world.until_steady(Rest::Succeeded).await;
    world.settled(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_that_the_git_server_refuses_stops_only_its_rollout() {
    let mut world = World::new("refused", &ungated()).await;
    world.add("  progressDeadline: 90s\n", &App::worker("api", 1));
    // Refuses whatever touches the record of `web`.
    let script = "#!/bin/sh\ngit diff-tree -r --name-only --root \"$3\" | grep -q /web/ && { echo 'not this one' >&2; exit 1; }\nexit 0\n";
    world.origin.hook("update", Some(script));
    world.start();
    world.until_of("api", "first sight", |record| is_steady(record, Rest::Initialized)).await;
    world.release(&App::worker("api", 2));
    world.until_of("api", "promotion", |record| is_steady(record, Rest::Succeeded)).await;
    assert!(world.record().is_none());
    assert!(world.get("Deployment", "web").await.is_none(), "what is not recorded is not done");
    world.origin.hook("update", None);
    world.until_steady(Rest::Initialized).await;
    world.settled(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_that_the_git_server_refuses_is_told_where_the_record_cannot_tell() {
    let mut world = World::new("protected", GATED).await;
    let listen = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    world.listen = Some(listen);
    world.start();
    world.until_steady(Rest::Initialized).await;
    let gauge = |value: usize| {
        eventually("the gauge", move || async move {
            let answer = reqwest::get(format!("http://{listen}/metrics")).await.ok()?;
            let text = answer.text().await.unwrap();
            text.lines().any(|line| line == format!("tidegate_record_rejected {value}")).then_some(())
        })
    };
    gauge(0).await;
    world.release(&App::new("web", 2));
    let request = world.request("tenth").await;
    // The record that tells of it is the last that is not refused.
    world.until("what was asked", |record| record.run.as_ref().is_some_and(|run| !run.pulls.is_empty())).await;
    let script = format!("#!/bin/sh\n[ \"$1\" = refs/heads/{STATE} ] || exit 0\necho 'protected branch' >&2\nexit 1\n");
    world.origin.hook("update", Some(&script));
    let tip = world.origin.tip(STATE);
    world.origin.merge(&request, DECISIONS);
    gauge(1).await;
    let told = eventually("the Event", async || {
        let events = world.kubectl(&["get", "events", "--field-selector", "reason=RecordRejected"], "").await;
        events.contains("protected branch").then_some(events)
    })
    .await;
    assert!(told.contains("deployment/web"), "{told}");
    assert_eq!(world.origin.tip(STATE), tip);
    assert_eq!(world.weight().await, 0, "what is not recorded is not done");
    world.origin.hook("update", None);
    world.until_steady(Rest::Succeeded).await;
    gauge(0).await;
    world.settled(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_13_n_7_a_run_goes_on_after_the_api_server_was_away() {
    let mut world = World::empty(Held::Own(Box::new(Bed::own().await)), "cluster").await;
    world.add(&ungated().replace("weight: 10}, soak: 1s", "weight: 10}, soak: 20s"), &App::new("web", 1));
    world.start();
    world.until_steady(Rest::Initialized).await;
    world.release(&App::new("web", 2));
    world.until("a tenth", is_exposed).await;
    world.bed.fault(&["kill", "kube-apiserver"]).await;
    let away = tokio::time::Instant::now();
    eventually("longer than the soak", async || (away.elapsed().as_secs() > 25).then_some(())).await;
    assert!(is_exposed(&world.record().unwrap()), "no clock runs while nobody observes");
    world.bed.revive().await;
    let record = world.until_steady(Rest::Succeeded).await;
    assert!(record.refused.is_empty(), "an outage speaks against no version");
    world.settled(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_8_a_state_branch_that_is_gone_or_set_back_is_no_record_and_nothing_is_written() {
    let mut world = World::new("lost", GATED).await;
    world.start();
    world.until_steady(Rest::Initialized).await;
    let tip = world.origin.tip(STATE).unwrap();
    let name = format!("refs/heads/{STATE}");
    // Renewed every few seconds, the Lease names the newest record that was seen.
    eventually("the anchor", async || {
        let lease = world.kubectl_at_home(&["get", "lease", "tidegate-it", "-o", "yaml"]).await;
        lease.contains(&tip).then_some(())
    })
    .await;
    world.kill().await;
    world.release(&App::new("web", 2));
    for lost in [vec!["update-ref", "-d", &name], vec!["update-ref", &name, "refs/heads/main"]] {
        world.origin.git(&lost);
        world.settled(&[Reason::RecordUnreadable]).await;
    }
    // A new Lease knows of no record either; the marks in the cluster tell that there was one.
    world.origin.git(&["update-ref", "-d", &name]);
    world.kubectl_at_home(&["delete", "lease", "tidegate-it"]).await;
    world.settled(&[Reason::StateLost]).await;
    world.origin.git(&["update-ref", &name, &tip]);
    world.start();
    world.approve("tenth").await;
    world.until_steady(Rest::Succeeded).await;
    world.settled(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_8_a_main_without_the_history_that_was_acted_upon_is_not_followed() {
    let mut world = World::new("rewritten", &ungated()).await;
    world.start();
    let record = world.until_steady(Rest::Initialized).await;
    let old = world.release(&App { replicas: 3, ..App::new("web", 1) });
    world.until("the change", |record| record.source.commit.as_str() == old).await;
    let new = world.release(&App::new("web", 2));
    let tree = world.origin.git(&["rev-parse", &format!("{new}^{{tree}}")]);
    // Forced to a commit of its own that wants version 2.
    world.kill().await;
    let forced = world.origin.commit_tree("main", &tree);
    world.start();
    let shown = world.until_condition(Reason::SourceUnreadable).await;
    assert!(shown.contains("history rewritten") && shown.contains("git merge -s ours"), "{shown}");
    world.settled(&[Reason::SourceUnreadable]).await;
    let merged = world.origin.git(&["commit-tree", "-m", "meant", "-p", &forced, "-p", &old, &tree]);
    world.origin.git(&["update-ref", "refs/heads/main", &merged]);
    world.start();
    let now = world.until_steady(Rest::Succeeded).await;
    assert!(now.next_run > record.next_run);
    world.settled(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_8_a_main_that_was_set_back_is_not_followed_and_a_merge_of_an_old_branch_is() {
    let mut world = World::new("set-back", &ungated()).await;
    world.start();
    world.until_steady(Rest::Initialized).await;
    world.origin.git(&["update-ref", "refs/heads/long", "main"]);
    world.origin.grow("main", 5);
    let old = world.release(&App { replicas: 3, ..App::new("web", 1) });
    world.until("the change", |record| record.source.commit.as_str() == old).await;
    let before = world.pods("web").await;
    let tree = world.origin.git(&["rev-parse", "main^{tree}"]);
    let amended = world.origin.git(&["commit-tree", "-m", "amended", "-p", "main~1", &tree]);
    let back = |count: usize| world.origin.git(&["rev-parse", &format!("main~{count}")]);
    for forced in [back(1), back(5), amended] {
        for seen in [true, false] {
            // Each time main comes without its past, before it is forced or after.
            world.kill().await;
            world.forget_cache();
            if seen {
                world.start();
                world.polls(3).await;
            }
            world.origin.git(&["update-ref", "refs/heads/main", &forced]);
            if !seen {
                world.start();
            }
            let shown = world.until_condition(Reason::SourceUnreadable).await;
            let expected = format!("git merge -s ours {old}");
            assert!(shown.contains("history rewritten") && shown.contains(&expected), "{shown}");
            assert_eq!(world.record().unwrap().source.commit.as_str(), old);
            world.settled(&[Reason::SourceUnreadable]).await;
            world.origin.git(&["update-ref", "refs/heads/main", &old]);
            world.start();
            world.until("no complaint", |record| record.conditions.is_empty()).await;
        }
    }
    assert!(before.is_subset(&world.pods("web").await), "nothing was taken back");
    world.kill().await;
    world.forget_cache();
    world.start();
    world.polls(3).await;
    world.origin.commit("long", &[("it/web.yaml", Some(App::new("web", 2).text().as_bytes()))], "change");
    let merged = world.origin.git(&["commit-tree", "-m", "long", "-p", &old, "-p", "long", "long^{tree}"]);
    world.origin.git(&["update-ref", "refs/heads/main", &merged]);
    let record = world.until_steady(Rest::Succeeded).await;
    assert_eq!(record.source.commit.as_str(), merged);
    world.settled(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_8_f_6_an_empty_main_deletes_nothing() {
    let mut world = World::new("empty", &ungated()).await;
    world.start();
    world.until_steady(Rest::Initialized).await;
    let before = world.pods("web").await;
    world.remove(&["it/web.rollout.yaml", "it/web.yaml"]);
    let shown = world.until_condition(Reason::SourceUnreadable).await;
    assert!(shown.contains("no rollout at all"), "{shown}");
    world.settled(&[Reason::SourceUnreadable]).await;
    world.remove(&["tidegate.yaml"]);
    world.settled(&[Reason::SourceUnreadable]).await;
    let tip = world.origin.tip("main").unwrap();
    world.origin.git(&["update-ref", "-d", "refs/heads/main"]);
    world.settled(&[Reason::SourceUnreadable]).await;
    assert_eq!(world.pods("web").await, before);
    let reverted = world.origin.git(&["commit-tree", "-m", "revert", "-p", &tip, &format!("{tip}~2^{{tree}}")]);
    world.origin.git(&["update-ref", "refs/heads/main", &reverted]);
    world.start();
    world.until("no complaint", |record| record.conditions.is_empty()).await;
    world.settled(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_9_a_broken_file_stops_its_rollout_and_no_other() {
    let mut world = World::new("broken", &ungated()).await;
    let worker = |version| App::worker("api", version).text();
    world.add("  progressDeadline: 90s\n", &App::worker("api", 1));
    world.start();
    world.until_steady(Rest::Initialized).await;
    world.until_of("api", "first sight", |record| is_steady(record, Rest::Initialized)).await;
    let before = world.pods("web").await;
    let broken = App::new("web", 2).text().replace("replicas: 2", "replicas: [2");
    world.commit(&[("it/web.yaml", &broken), ("it/api.yaml", &worker(2))]);
    world.until_of("api", "promotion", |record| is_steady(record, Rest::Succeeded)).await;
    let shown = world.until_condition(Reason::Rejected).await;
    assert!(shown.contains("it/web.yaml:"), "{shown}");
    assert_eq!(world.pods("web").await, before);
    world.settled(&[Reason::Rejected]).await;
    world.start();
    world.release(&App::new("web", 2));
    let record = world.until_steady(Rest::Succeeded).await;
    assert!(record.conditions.is_empty());
    world.settled(&[]).await;
}
