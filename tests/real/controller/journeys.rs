//! The good ways: from a commit on main to the new version in the cluster, and back from it.

use super::app::{App, GATED, PROMOTION_GATE, ungated};
use super::served::Served;
use super::world::{DECISIONS, Held, STATE, World, is_steady};
use crate::support::audit::{Mark, Request};
use crate::support::cluster::{Bed, eventually};
use serde_json::json;
use std::time::Duration;
use tidegate::manifest::ids::RunId;
use tidegate::plan::report::Reason;
use tidegate::record::state::{Outcome, Phase, Rest, RolloutState};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_1_x_3_c_1_c_20_a_new_version_is_promoted_step_by_step_and_never_ahead_of_git() {
    let mut world = World::new("promote", GATED).await;
    let app = App { config: Some("hello"), ..App::new("web", 1) };
    let first = world.release(&app);
    world.start();
    let served = Served::watch(&world, "web");
    let record = world.until_steady(Rest::Initialized).await;
    assert_eq!(record.source.commit.as_str(), first);
    assert_eq!(world.traces().await, [""; 0]);
    let before = world.pods("web").await;

    // The run is asked about before anything of it is made.
    world.release(&App { version: 2, config: Some("good day"), ..app });
    let branch = world.request("tenth").await;
    assert_eq!(world.traces().await, [""; 0]);
    assert_eq!(world.pods("web").await, before);
    world.origin.merge(&branch, DECISIONS);

    let record = world.until_on("tenth").await;
    let run = record.run.as_ref().unwrap().id.clone();
    assert!(world.state_files().contains_key(&format!("runs/{run}.yaml")));
    // As of then: a second later the run may have gone on.
    let entered = world.origin.git(&["log", "-1", "--format=%H", "--grep=→ tenth (weight 10)", STATE]);
    let dashboard = world.origin.git(&["cat-file", "blob", &format!("{entered}:README.md")]);
    assert!(dashboard.contains("tenth"), "{dashboard}");
    assert_eq!(
        world.traces().await,
        ["Deployment/web-canary", "Service/web-canary", "ConfigMap/web-canary"],
        "the copies of what differs"
    );

    let record = world.until_steady(Rest::Succeeded).await;
    assert!(record.run.is_none() && record.refused.is_empty() && record.conditions.is_empty(), "{record:#?}");
    assert_eq!(record.history.last().unwrap().outcome, Outcome::Promoted);
    assert_eq!(world.traces().await, [""; 0]);
    let route = world.get("HTTPRoute", "web").await.unwrap();
    assert_eq!(route["spec"]["rules"][0]["backendRefs"].as_array().unwrap().len(), 1, "as the manifests say");
    let config = world.get("ConfigMap", "web").await.unwrap();
    assert_eq!(config["data"], json!({"greeting": "good day"}));
    let files = world.state_files();
    assert!(!files.keys().any(|path| path.starts_with("runs/")), "{:?}", files.keys());
    let promoted = record.promoted.unwrap();
    for set in [&promoted.set, &record.history.last().unwrap().from] {
        assert!(files.contains_key(&format!("sets/{}/web.yaml", set.short())), "{:?}", files.keys());
    }
    assert!(world.origin.tip(&branch).is_none(), "the request that was merged is gone");
    assert_eq!(served.fewest(), 2, "never fewer endpoints than stable has pods");
    let checked = world.settled(&[]).await;
    assert_eq!((checked.highest_weight.get(), checked.stable_pods.len()), (100, 2));
    c_20_the_old_way_stays_open_for_requests_in_flight(&world).await;
}

/// Between "all traffic is on stable" and "the candidate goes" lies the drain.
async fn c_20_the_old_way_stays_open_for_requests_in_flight(world: &World) {
    let requests = world.requests_since(Mark::START).await;
    let writes: Vec<_> = requests.iter().filter(|r| r.is_write()).collect();
    let gone = writes.iter().find(|r| r.verb == "delete" && r.name == "web-canary" && r.resource == "deployments");
    let gone = gone.expect("the candidate was deleted").received;
    let returned = |r: &&&Request| {
        let rules = r.answer.as_ref().map(|answer| answer["spec"]["rules"].to_string()).unwrap_or_default();
        r.resource == "httproutes"
            && r.answered < gone
            && rules.contains("\"weight\":100")
            && rules.contains("\"weight\":0")
    };
    let returned = writes.iter().rfind(returned).expect("the traffic was given back before").answered;
    let drained = (gone - returned).to_std().unwrap();
    // Times are kept to the second, so that two seconds may be little more than one.
    assert!(drained > Duration::from_secs(1), "drained for {drained:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_15_x_2_each_approval_is_asked_for_by_itself_and_merged_on_top_of_the_others() {
    let mut world = World::new("approvals", &format!("{GATED}{PROMOTION_GATE}")).await;
    let other = GATED.replace("web", "api");
    world.add(&other, &App::new("api", 1));
    world.start();
    for name in ["web", "api"] {
        world.until_of(name, "first sight", |record| is_steady(record, Rest::Initialized)).await;
    }
    // Both ask while there is no decisions branch: each request is a root of its own.
    world.release(&App::new("web", 2));
    world.release(&App::new("api", 2));
    let (web, api) = (world.request_of("web", "tenth").await, world.request_of("api", "tenth").await);
    world.origin.merge(&web, DECISIONS);
    world.origin.merge(&api, DECISIONS);
    let api = world.until_of("api", "promotion", |record| is_steady(record, Rest::Succeeded)).await;
    let by = |record: &RolloutState| record.consumed.iter().map(|word| word.by.clone()).collect::<Vec<_>>();
    assert_eq!(by(&api), ["Ana <ana@example.com>"], "who made the merge commit");
    // The approval of the tenth says nothing about the promotion.
    let promotion = world.request("promotion").await;
    let record = world.record().unwrap();
    assert!(matches!(record.phase, Phase::WaitingPromotion { .. }), "{:?}", record.phase);
    assert_eq!(world.weight().await, 50);
    world.origin.merge(&promotion, DECISIONS);
    let record = world.until_steady(Rest::Succeeded).await;
    assert_eq!(by(&record), ["fast-forward (who pushed it is not in Git)"; 2], "both went in as they were");
    world.settled(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_4_c_14_first_sight_ends_with_what_serves_promoted_and_an_open_gate_goes_on_where_a_closed_one_kept_the_run()
{
    let spec = GATED.replace("{name: half,", "{name: half, before: {approval: pullRequest},");
    let mut world = World::new("gate", &spec).await;
    world.start();
    let record = world.until_steady(Rest::Initialized).await;
    let promoted = record.promoted.unwrap();
    let serves = &record.clusters.values().next().unwrap().posture.stable.set;
    assert_eq!((serves, promoted.run), (&promoted.set, RunId::zero()));
    assert_eq!(promoted.commit.map(|commit| commit.to_string()), world.origin.tip("main"));
    let files = world.state_files();
    assert_eq!(files[&format!("sets/{}/web.yaml", promoted.set.short())], App::new("web", 1).text());
    let live = world.get("Deployment", "web").await.unwrap();
    assert_eq!(live["spec"]["template"]["spec"]["containers"][0]["image"], "example.test/web:1");
    assert_eq!(live["status"]["readyReplicas"], 2);

    world.release(&App::new("web", 2));
    world.approve("tenth").await;
    let half = world.request("half").await;
    let waits = |record: &RolloutState| {
        let asks = record.run.as_ref().is_some_and(|run| run.pulls.keys().any(|step| step.as_str() == "half"));
        asks && matches!(&record.phase, Phase::Waiting { at: Some(at), .. } if at.step.as_str() == "tenth")
    };
    let closed = world.until("the closed gate", waits).await;
    let before = world.get("Deployment", "web-canary").await.unwrap();
    world.polls(3).await;
    assert_eq!(world.record().unwrap(), closed, "nobody has said anything");
    let after = world.get("Deployment", "web-canary").await.unwrap();
    assert_eq!((world.weight().await, &after["metadata"]["generation"]), (10, &before["metadata"]["generation"]));
    world.origin.merge(&half, DECISIONS);
    world.until_steady(Rest::Succeeded).await;
    let story = world.story();
    let waited = story.iter().rposition(|at| at == "Waiting tenth").unwrap();
    assert_eq!(story[waited + 1], "Progressing half", "{story:?}");
    world.settled(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn testers_with_a_header_come_first_and_keep_their_way_until_promotion() {
    let spec = ungated().replace(
        "  - {name: tenth",
        "  - {name: testers, expose: {headers: [{x-canary: always}]}, before: {approval: pullRequest}}\n  - {name: tenth",
    ) + PROMOTION_GATE;
    let mut world = World::new("headers", &spec).await;
    world.start();
    world.until_steady(Rest::Initialized).await;
    world.release(&App::new("web", 2));
    world.approve("testers").await;
    world.until_on("half").await;
    let route = eventually("half of the requests", async || {
        let route = world.get("HTTPRoute", "web").await?;
        (route["spec"]["rules"][1]["backendRefs"][1]["weight"] == 50).then_some(route)
    })
    .await;
    let rules = route["spec"]["rules"].as_array().unwrap();
    assert_eq!(rules[0]["matches"][0]["headers"][0]["value"], "always");
    assert_eq!(rules[0]["backendRefs"][0]["name"], "web-canary");
    world.approve("promotion").await;
    world.until_steady(Rest::Succeeded).await;
    let route = world.get("HTTPRoute", "web").await.unwrap();
    assert_eq!(route["spec"]["rules"].as_array().unwrap().len(), 1);
    world.settled(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_mesh_the_weight_is_the_number_of_pods() {
    let spec = "  traffic: {replicas: {service: web}, settle: 0s, drain: 1s}\n  phases:\n  \
        - {name: quarter, expose: {weight: 25}, soak: 1s}\n  \
        - {name: half, before: {approval: pullRequest}, expose: {weight: 50}, soak: 1s}\n  progressDeadline: 90s\n";
    let mut world = World::new("replicas", spec).await;
    let app = App { replicas: 3, host: None, ..App::new("web", 1) };
    world.release(&app);
    world.start();
    let served = Served::watch(&world, "web");
    world.until_steady(Rest::Initialized).await;
    world.release(&App { version: 2, ..app });
    world.until_on("quarter").await;
    eventually("one pod in four", async || {
        let candidate = world.get("Deployment", "web-canary").await?;
        (candidate["spec"]["replicas"] == 1).then_some(())
    })
    .await;
    world.approve("half").await;
    let record = world.until_steady(Rest::Succeeded).await;
    assert_eq!(world.traces().await, [""; 0]);
    assert_eq!(record.history.len(), 1);
    let service = world.get("Service", "web").await.unwrap();
    assert_eq!(service["spec"]["selector"], json!({"app": "web"}));
    assert!(served.fewest() >= 3, "{} endpoints at one time", served.fewest());
    world.settled(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_5_a_change_of_the_route_alone_restarts_no_pod() {
    let mut world = World::new("route", &format!("{}{PROMOTION_GATE}", ungated())).await;
    world.start();
    world.until_steady(Rest::Initialized).await;
    // Before the first promotion pods carry no label of ours, after it they do: both stay as they are.
    for (version, host) in [(1, "b.example.test"), (2, "b.example.test"), (2, "c.example.test")] {
        let before = world.pods("web").await;
        let commit = world.release(&App { host: Some(host), ..App::new("web", version) });
        world.approve("promotion").await;
        let record =
            world.until("promotion", |r| is_steady(r, Rest::Succeeded) && r.source.commit.as_str() == commit).await;
        assert!(record.run.is_none());
        let route = world.get("HTTPRoute", "web").await.unwrap();
        assert_eq!(route["spec"]["hostnames"], json!([host]));
        let of_the_route = world.pods("web").await == before;
        assert_eq!(of_the_route, host != "b.example.test" || version == 1, "version {version} for {host}");
    }
    world.settled(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_6_another_number_of_replicas_is_applied_without_a_run() {
    let mut world = World::new("direct", GATED).await;
    world.start();
    world.until_steady(Rest::Initialized).await;
    let before = world.pods("web").await;
    let commit = world.release(&App { replicas: 3, ..App::new("web", 1) });
    world.until("the change in the record", |record| record.source.commit.as_str() == commit).await;
    let pods = eventually("three pods", async || Some(world.pods("web").await).filter(|pods| pods.len() == 3)).await;
    assert!(pods.is_superset(&before));
    let record = world.record().unwrap();
    assert!(record.run.is_none() && record.history.is_empty(), "{record:#?}");
    world.settled(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workload_that_nothing_leads_to_is_updated_after_its_gate() {
    let mut world = World::empty(Held::Shared(Bed::shared().await), "plain").await;
    let spec = "  promotion: {before: {approval: pullRequest}}\n  progressDeadline: 90s\n";
    world.add(spec, &App::worker("web", 1));
    world.start();
    world.until_steady(Rest::Initialized).await;
    for version in [2, 3] {
        let commit = world.release(&App::worker("web", version));
        world.approve("promotion").await;
        world.until("promotion", |r| is_steady(r, Rest::Succeeded) && r.source.commit.as_str() == commit).await;
        let target = world.get("Deployment", "web").await.unwrap();
        let image = format!("example.test/web:{version}");
        assert_eq!(target["spec"]["template"]["spec"]["containers"][0]["image"], image);
    }
    let checked = world.settled(&[]).await;
    assert_eq!((checked.most_pods, checked.stable_pods.len()), (0, 3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_8_a_decision_goes_back_to_the_version_before_and_its_successor_is_refused() {
    let mut world = World::new("rollback", &ungated()).await;
    world.start();
    let served = Served::watch(&world, "web");
    let first = world.until_steady(Rest::Initialized).await.promoted.unwrap();
    world.release(&App::new("web", 2));
    let second = world.until_steady(Rest::Succeeded).await;
    world.decide("0", "rollback");
    let record = world
        .until("the first version again", |record| {
            record.run.is_none() && record.promoted.as_ref().is_some_and(|p| p.revision == first.revision)
        })
        .await;
    let [refused] = record.refused.as_slice() else { panic!("{:#?}", record.refused) };
    assert_eq!(refused.revision, second.promoted.unwrap().revision);
    assert_eq!(refused.outcome, Outcome::RolledBack);
    let target = world.get("Deployment", "web").await.unwrap();
    assert_eq!(target["spec"]["template"]["spec"]["containers"][0]["image"], "example.test/web:1");
    assert_eq!(served.fewest(), 2);
    // Main still wants what was left; the request to undo that ends it.
    let revert = world.request("revert").await;
    world.settled(&[Reason::Refused]).await;
    world.origin.merge(&revert, "main");
    world.settled(&[]).await;
    assert!(world.origin.tip(&revert).is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rollout_that_leaves_main_leaves_its_objects_without_our_marks() {
    let mut world = World::new("removed", GATED).await;
    // Another stays: a main without any rollout would be a mistake, and not followed.
    world.add("  progressDeadline: 90s\n", &App::worker("api", 1));
    world.start();
    world.until_steady(Rest::Initialized).await;
    world.until_of("api", "first sight", |record| is_steady(record, Rest::Initialized)).await;
    let before = world.pods("web").await;
    world.remove(&["it/web.rollout.yaml"]);
    eventually("the end of its record", async || world.record().is_none().then_some(())).await;
    for kind in ["Deployment", "Service", "HTTPRoute"] {
        let object = world.get(kind, "web").await.unwrap();
        let said = format!("{}{}", object["metadata"]["annotations"], object["spec"]["template"]);
        assert!(!said.contains("tidegate.io/"), "{said}");
    }
    assert_eq!(world.pods("web").await, before);
    assert!(world.state_files().is_empty());
    world.settled(&[]).await;
}
