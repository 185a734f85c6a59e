//! Requests that a merge queue of GitHub merges, alone and in a group: a stand-in for it, as nobody tried a live one.

use super::app::{App, GATED};
use super::proven::{asked, released, released_by_rule, void};
use super::world::{World, is_on};
use crate::support::cluster::eventually;
use crate::support::github::Github;
use crate::support::github::merges::QUEUE;
use crate::support::site::Site;
use serde_json::{Value, json};
use tidegate::record::state::{Consumed, Rest, RolloutState};

/// Lets the queue merge a group.
fn queue(site: &Site, world: &World, by: &str, group: &[&Value]) {
    let numbers: Vec<u64> = group.iter().map(|pull| pull["number"].as_u64().unwrap()).collect();
    github(site).merge_queued(by, &world.space.name, &numbers);
}

fn github(site: &Site) -> &'static Github {
    match site {
        Site::Github(host, _) => host,
        Site::Gitea(_) | Site::Gitlab(_) => panic!("another host"),
    }
}

/// Waits for the open pull request of a rollout.
async fn asked_of(site: &Site, world: &World, rollout: &str) -> Value {
    let part = format!("/{rollout}/");
    let is_it = |pull: &Value| pull["state"] == "open" && pull["head"]["ref"].as_str().unwrap().contains(&part);
    eventually(&format!("a pull request of {rollout}"), async || {
        site.pulls(&world.space.name).await.into_iter().find(is_it)
    })
    .await
}

/// By which review a word counts, and at which head of which pull request.
fn proven(word: &Consumed) -> (Value, Value, Value) {
    let proven = word.proven.as_ref().unwrap();
    (json!(proven.by[0].review), json!(proven.pull), json!(proven.head))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_2_what_a_merge_queue_merges_counts_by_the_review_of_its_head() {
    let site = Site::github().await;
    let mut world = released("queued", &site, "reviewer", "owner").await;
    let name = world.space.name.clone();

    // Alone, and nobody has reviewed it.
    let first = asked(&site, &world, None).await;
    queue(&site, &world, QUEUE.1, &[&first]);
    assert_eq!(void(&world, 1).await, "approved by 0, needed are 1");

    // Alone, with a review.
    let second = asked(&site, &world, Some(&first)).await;
    let review = site.approve("reviewer", &name, &second).await;
    queue(&site, &world, QUEUE.1, &[&second]);
    let record = world.until_steady(Rest::Succeeded).await;
    let expected = (review, second["number"].clone(), second["head"]["sha"].clone());
    assert_eq!(proven(record.consumed.last().unwrap()), expected);

    // In a group: the second one's merge is on top of the first one's, and both come with one move of the branch.
    let spec = GATED.replace("httpRoute: web, service: web", "httpRoute: api, service: api");
    world.add(&spec, &App { host: Some("api.example.test"), ..App::new("api", 1) });
    world.until_of("api", "api at rest", |record| record.run.is_none() && record.promoted.is_some()).await;
    let [web, api] =
        [App::new("web", 3), App { host: Some("api.example.test"), ..App::new("api", 2) }].map(|app| app.text());
    let files = [("it/web.yaml", Some(web.as_bytes())), ("it/api.yaml", Some(api.as_bytes()))];
    world.origin.commit_as("owner <owner@example.test>", "main", &files, "another version of both");
    let group = [asked_of(&site, &world, "web").await, asked_of(&site, &world, "api").await];
    let mut reviews = Vec::new();
    for pull in &group {
        reviews.push(site.approve("reviewer", &name, pull).await);
    }
    queue(&site, &world, QUEUE.1, &[&group[0], &group[1]]);
    for ((rollout, pull), review) in ["web", "api"].into_iter().zip(&group).zip(reviews) {
        let counted = |record: &RolloutState| {
            let pull_of = |word: &Consumed| Some(json!(word.proven.as_ref()?.pull));
            record.consumed.last().and_then(pull_of).is_some_and(|number| number == pull["number"])
        };
        let record = world.until_of(rollout, "the word", counted).await;
        let word = record.consumed.last().unwrap();
        let expected = (review, pull["number"].clone(), pull["head"]["sha"].clone());
        assert_eq!((proven(word), word.proof.as_str()), (expected, "review"), "{rollout}");
    }
    for rollout in ["web", "api"] {
        let what = format!("{rollout} at rest");
        world.until_of(rollout, &what, |record| record.run.is_none() && record.promoted.is_some()).await;
    }
    world.settled(&[]).await;
    site.is_as_described();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_2_a_merge_queue_is_nobody_where_a_merge_is_an_approval() {
    let site = Site::github().await;
    let rule = "approvers: [reviewer], trust: merges";
    let mut world = released_by_rule("queued-merges", &site, rule, "owner").await;

    let first = asked(&site, &world, None).await;
    queue(&site, &world, QUEUE.1, &[&first]);
    let why = void(&world, 1).await;
    assert_eq!(why, "github-merge-queue[bot] is no person; approved by 0, needed are 1");

    // Where GitHub says who put it into the queue, that is who merged it.
    let second = asked(&site, &world, Some(&first)).await;
    let body = second["body"].as_str().unwrap();
    assert!(body.contains("is no person"), "{body}");
    queue(&site, &world, "reviewer", &[&second]);
    let record = world.until("a tenth", |record| is_on(record, "tenth")).await;
    let word = record.consumed.last().unwrap();
    assert_eq!((word.by.as_str(), word.proven.as_ref().unwrap().by[0].review), ("reviewer", None));
    world.until_steady(Rest::Succeeded).await;
    world.settled(&[]).await;
    site.is_as_described();
}
