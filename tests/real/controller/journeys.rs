//! The good ways: from a commit on main to the new version in the cluster, and back from it.

use super::app::{App, GATED, PROMOTION_GATE, of, ungated};
use super::served::Served;
use super::world::{DECISIONS, STATE, World, is_steady};
use crate::support::audit::{Mark, Request};
use crate::support::cluster::eventually;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use tidegate::manifest::ids::RunId;
use tidegate::plan::report::Reason;
use tidegate::record::state::{Outcome, Phase, Rest, RolloutState};

/// People with a header come first, then a tenth, half, and all: a person's word stands before the first, half and all.
fn staged() -> String {
    let testers = "  - {name: testers, before: {approval: pullRequest}, expose: {headers: [{x-canary: always}]}}\n  - {name: tenth";
    let spec = ungated().replace("  - {name: tenth", testers);
    spec.replace("{name: half,", "{name: half, before: {approval: pullRequest},") + PROMOTION_GATE
}

/// Greets with `hello`; the second version with `good day`.
fn web(version: u8) -> App<'static> {
    App { config: Some(if version == 1 { "hello" } else { "good day" }), ..App::new("web", version) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_1_x_2_x_3_c_1_c_4_c_8_c_14_c_15_c_20_c_22_the_life_of_one_application() {
    let mut world = World::new("life", &staged()).await;
    world.add(&of("api", GATED), &App::new("api", 1));
    let first = world.release(&web(1));
    world.start();
    let served = Served::watch(&world, "web");
    let first = c_4_first_sight_ends_with_what_serves_promoted(&world, &first).await;
    let testers = c_15_x_2_each_approval_is_asked_for_by_itself_and_merged_on_top_of_the_others(&world).await;
    c_14_an_open_gate_goes_on_where_a_closed_one_kept_the_run(&world).await;
    x_1_x_3_c_1_c_20_a_new_version_is_promoted_step_by_step_and_never_ahead_of_git(&world, &testers).await;
    assert_eq!(served.fewest_from(2), 2, "never fewer endpoints than stable has pods");
    c_8_a_decision_goes_back_to_the_version_before_and_its_successor_is_refused(&mut world, &first, &served).await;
    a_rollout_that_leaves_main_leaves_its_objects_without_our_marks(&mut world).await;
}

/// The record of `web` at first sight.
async fn c_4_first_sight_ends_with_what_serves_promoted(world: &World, commit: &str) -> RolloutState {
    world.until_steady_of("api", Rest::Initialized).await;
    let record = world.until_steady(Rest::Initialized).await;
    assert_eq!(record.source.commit.as_str(), commit);
    let promoted = record.promoted.as_ref().unwrap();
    let serves = &record.clusters.values().next().unwrap().posture.stable.set;
    assert_eq!((serves, &promoted.run), (&promoted.set, &RunId::zero()));
    assert_eq!(promoted.commit.as_ref().map(|commit| commit.as_str()), Some(commit));
    assert_eq!(world.origin.tip("main").as_deref(), Some(commit));
    let files = world.state_files();
    assert_eq!(files[&format!("sets/{}/web.yaml", promoted.set.short())], web(1).text());
    let live = world.get("Deployment", "web").await.unwrap();
    assert_eq!(live["spec"]["template"]["spec"]["containers"][0]["image"], "example.test/web:1");
    assert_eq!(live["status"]["readyReplicas"], 2);
    assert_eq!(world.traces().await, [""; 0]);
    record
}

/// Two rollouts ask at once, before anything of their runs is made; the branch of the first request of `web`.
async fn c_15_x_2_each_approval_is_asked_for_by_itself_and_merged_on_top_of_the_others(world: &World) -> String {
    let before = [world.pods("web").await, world.pods("api").await];
    world.release(&web(2));
    world.release(&App::new("api", 2));
    // Both ask while there is no decisions branch: each request is a root of its own.
    let (web, api) = (world.request("testers").await, world.request_of("api", "tenth").await);
    assert_eq!(world.origin.tip(DECISIONS), None);
    for branch in [&web, &api] {
        assert_eq!(world.origin.git(&["rev-list", "--count", branch]), "1", "{branch} is a root");
    }
    assert_eq!(world.traces().await, [""; 0]);
    assert_eq!([world.pods("web").await, world.pods("api").await], before);
    world.origin.merge(&web, DECISIONS);
    world.origin.merge(&api, DECISIONS);
    let api = world.until_steady_of("api", Rest::Succeeded).await;
    assert_eq!(by(&api), ["Ana <ana@example.com>"], "who made the merge commit");
    web
}

/// Who said what was counted.
fn by(record: &RolloutState) -> Vec<String> {
    record.consumed.iter().map(|word| word.by.clone()).collect()
}

/// A tenth of the requests, and all of the testers', for as long as nobody has let in half of them.
async fn c_14_an_open_gate_goes_on_where_a_closed_one_kept_the_run(world: &World) {
    let half = world.request("half").await;
    let waits = |record: &RolloutState| {
        let asks = record.run.as_ref().is_some_and(|run| run.pulls.keys().any(|step| step.as_str() == "half"));
        asks && matches!(&record.phase, Phase::Waiting { at: Some(at), .. } if at.step.as_str() == "tenth")
    };
    let closed = world.until("the closed gate", waits).await;
    let run = &closed.run.as_ref().unwrap().id;
    assert!(world.state_files().contains_key(&format!("runs/{run}.yaml")));
    let entered = world.origin.git(&["log", "-1", "--format=%H", "--grep=web: .*→ tenth (weight 10,", STATE]);
    let dashboard = world.origin.git(&["cat-file", "blob", &format!("{entered}:README.md")]);
    assert!(dashboard.lines().any(|line| line.contains("web") && line.contains("tenth")), "{dashboard}");
    assert_eq!(
        world.traces().await,
        ["Deployment/web-canary", "Service/web-canary", "ConfigMap/web-canary"],
        "the copies of what differs"
    );
    c_22_testers_with_a_header_come_first_and_keep_their_way(world, 10).await;
    let before = world.get("Deployment", "web-canary").await.unwrap();
    world.polls(3).await;
    assert_eq!(world.record().unwrap(), closed, "nobody has said anything");
    let after = world.get("Deployment", "web-canary").await.unwrap();
    assert_eq!((world.weight().await, &after["metadata"]["generation"]), (10, &before["metadata"]["generation"]));
    world.origin.merge(&half, DECISIONS);
}

/// Their rule stands before that of everybody else.
async fn c_22_testers_with_a_header_come_first_and_keep_their_way(world: &World, weight: u8) {
    let route = world.get("HTTPRoute", "web").await.unwrap();
    let rules = route["spec"]["rules"].as_array().unwrap();
    assert_eq!(rules.len(), 2, "{rules:#?}");
    assert_eq!(rules[0]["matches"][0]["headers"][0]["value"], "always");
    let to = |rule: &Value| {
        let refs = rule["backendRefs"].as_array().unwrap().iter();
        refs.map(|to| (to["name"].as_str().unwrap().to_owned(), to["weight"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(to(&rules[0]).into_iter().map(|(name, _)| name).collect::<Vec<_>>(), ["web-canary"]);
    assert_eq!(to(&rules[1]), [("web".to_owned(), json!(100 - weight)), ("web-canary".to_owned(), json!(weight))]);
}

/// From half of the requests to all of them, and to what is at rest afterwards.
async fn x_1_x_3_c_1_c_20_a_new_version_is_promoted_step_by_step_and_never_ahead_of_git(world: &World, testers: &str) {
    // The approvals of the steps say nothing about the promotion.
    let promotion = world.request("promotion").await;
    let waits = |record: &RolloutState| matches!(record.phase, Phase::WaitingPromotion { .. });
    world.until("a word for the promotion", waits).await;
    c_22_testers_with_a_header_come_first_and_keep_their_way(world, 50).await;
    world.origin.merge(&promotion, DECISIONS);
    let record = world.until_steady(Rest::Succeeded).await;
    assert_eq!(by(&record), ["fast-forward (who pushed it is not in Git)"; 3], "they went in as they were");
    assert!(record.run.is_none() && record.refused.is_empty() && record.conditions.is_empty(), "{record:#?}");
    let past = record.history.last().unwrap();
    assert_eq!(past.outcome, Outcome::Promoted);
    let story = world.story();
    let waited = story.iter().rposition(|at| at == "Waiting tenth").unwrap();
    assert_eq!(story[waited + 1], "Progressing half", "{story:?}");
    let files = world.state_files();
    assert!(!files.keys().any(|path| path.starts_with("runs/")), "{:?}", files.keys());
    for set in [&record.promoted.as_ref().unwrap().set, &past.from] {
        assert!(files.contains_key(&format!("sets/{}/web.yaml", set.short())), "{:?}", files.keys());
    }

    assert_eq!(world.traces().await, [""; 0]);
    let route = world.get("HTTPRoute", "web").await.unwrap();
    let rules = route["spec"]["rules"].as_array().unwrap();
    assert_eq!((rules.len(), rules[0]["backendRefs"].as_array().unwrap().len()), (1, 1), "as the manifests say");
    let config = world.get("ConfigMap", "web").await.unwrap();
    assert_eq!(config["data"], json!({"greeting": "good day"}));
    let merged = async || [testers, &promotion].iter().all(|branch| world.origin.tip(branch).is_none()).then_some(());
    eventually("the end of the requests that were merged", merged).await;
    let checked = world.assert_kept();
    assert_eq!((checked.highest_weight.get(), checked.stable_pods.len()), (100, 2));
    c_20_the_old_way_stays_open_for_requests_in_flight(world).await;
}

/// Between "all traffic is on stable" and "the candidate goes" lies the drain.
async fn c_20_the_old_way_stays_open_for_requests_in_flight(world: &World) {
    let requests = world.requests_since(Mark::START).await;
    let writes: Vec<_> = requests.iter().filter(|r| r.is_write()).collect();
    let gone = writes.iter().find(|r| r.verb == "delete" && r.name == "web-canary" && r.resource == "deployments");
    let gone = gone.expect("the candidate was deleted").received;
    let rules = |r: &Request| r.answer.as_ref().map(|answer| answer["spec"]["rules"].to_string()).unwrap_or_default();
    let routes = writes.iter().filter(|r| r.resource == "httproutes" && r.name == "web" && r.answered < gone);
    let routes: Vec<_> = routes.collect();
    let all = routes.iter().rposition(|r| rules(r).contains("\"weight\":50")).expect("half of the requests");
    let returned = |r: &&&&Request| rules(r).contains("\"weight\":100") && rules(r).contains("\"weight\":0");
    let returned = routes[all..].iter().rfind(returned).expect("the traffic was given back before").answered;
    let drained = (gone - returned).to_std().unwrap();
    // Times are kept to the second, so that two seconds may be little more than one.
    assert!(drained > Duration::from_secs(1), "drained for {drained:?}");
}

async fn c_8_a_decision_goes_back_to_the_version_before_and_its_successor_is_refused(
    world: &mut World,
    first: &RolloutState,
    served: &Served,
) {
    let (first, second) = (first.promoted.as_ref().unwrap(), world.record().unwrap().promoted.unwrap());
    world.decide("0", "rollback");
    let record = world
        .until("the first version again", |record| {
            record.run.is_none() && record.promoted.as_ref().is_some_and(|p| p.revision == first.revision)
        })
        .await;
    let [refused] = record.refused.as_slice() else { panic!("{:#?}", record.refused) };
    assert_eq!((&refused.revision, refused.outcome), (&second.revision, Outcome::RolledBack));
    let target = world.get("Deployment", "web").await.unwrap();
    assert_eq!(target["spec"]["template"]["spec"]["containers"][0]["image"], "example.test/web:1");
    assert_eq!(served.fewest_from(2), 2);
    // Main still wants what was left; the request to undo that ends it.
    let revert = world.request("revert").await;
    world.settled(&[Reason::Refused]).await;
    world.origin.merge(&revert, "main");
    world.once().await;
    let record = world.record().unwrap();
    assert!(is_steady(&record, Rest::Succeeded) && record.conditions.is_empty(), "{record:#?}");
    assert!(world.origin.tip(&revert).is_none());
}

/// Another stays: a main without any rollout would be a mistake, and not followed.
async fn a_rollout_that_leaves_main_leaves_its_objects_without_our_marks(world: &mut World) {
    let before: BTreeSet<String> = world.pods("web").await;
    world.remove(&["it/web.rollout.yaml"]);
    world.settled(&[]).await;
    assert!(world.record().is_none() && world.state_files().is_empty());
    for kind in ["Deployment", "Service", "HTTPRoute", "ConfigMap"] {
        let annotations = world.get(kind, "web").await.unwrap()["metadata"]["annotations"].to_string();
        assert!(!annotations.contains("tidegate.io/"), "{kind}: {annotations}");
    }
    assert_eq!(world.pods("web").await, before);
}
