//! What people do to our pull requests beside reading, merging and closing them, and what comes of it: the table of docs/hosts.md.

use super::app::App;
use super::proven::{asked, released};
use super::world::{World, is_on};
use crate::support::cluster::eventually;
use crate::support::site::Site;
use crate::support::ways::Way;
use serde_json::{Value, json};
use tidegate::plan::report::Reason;
use tidegate::record::state::Rest;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_3_x_4_what_people_do_to_a_pull_request_has_an_end() {
    lives("lives", &Site::gitea().await).await;
}

/// Waits until one is as wanted.
async fn until(host: &Site, name: &str, pull: &Value, what: &str, is_so: impl Fn(&Value) -> bool) {
    eventually(what, async || is_so(&host.pull(name, pull).await).then_some(())).await;
}

async fn lives(name: &str, host: &Site) {
    let mut world = released(name, host, "reviewer", "owner").await;
    let name = world.space.name.clone();
    let first = asked(host, &world, None).await;

    // Led to another branch.
    host.retarget("stranger", &name, &first, "main").await;
    until(host, &name, &first, "the base that it had", |pull| pull["base"]["ref"] == first["base"]["ref"]).await;

    // Made a draft.
    host.unfinish("stranger", &name, &first).await;
    if host.kind() == "github" {
        let told = |pull: &Value| pull["body"].as_str().unwrap().starts_with("> **This is a draft");
        until(host, &name, &first, "a word about the draft", told).await;
        host.finish("reviewer", &name, &first);
    }
    until(host, &name, &first, "the text that it had", |pull| {
        pull["title"] == first["title"] && pull["body"] == first["body"]
    })
    .await;
    assert_eq!(host.pulls(&name).await.len(), 1, "it stayed the same one");

    // Its branch deleted, which closes it, by somebody who may not say no.
    host.delete_branch("stranger", &name, &world.origin, &first).await;
    let mut last = asked(host, &world, Some(&first)).await;
    let run = world.record().unwrap().run.unwrap();
    assert!(!run.denied, "{run:?}");
    let place = format!("{} has come in its place", host.named(&last));
    eventually("a word about what has come in its place", async || {
        host.comments(&name, &first).await.iter().any(|said| said.starts_with(&place)).then_some(())
    })
    .await;

    merged(host, &mut world, &last, Way::Squash).await;
    owner(&world, 3);
    last = asked(host, &world, Some(&last)).await;

    // Closed, and its branch deleted, by an approver.
    host.close("reviewer", &name, &last).await;
    host.delete_branch("reviewer", &name, &world.origin, &last).await;
    world.until_condition(Reason::Denied).await;
    world.settled(&[Reason::Denied]).await;
}

async fn merged(host: &Site, world: &mut World, pull: &Value, way: Way) {
    let (name, before) = (world.space.name.clone(), world.recorded());
    let review = host.approve("reviewer", &name, pull).await;
    host.merge_by(way, &name, pull).await;
    let record = world.until_since(&before, "a tenth", |record| is_on(record, "tenth")).await;
    let word = record.consumed.last().unwrap();
    let proven = word.proven.as_ref().unwrap();
    assert_eq!((word.proof.as_str(), json!(proven.by[0].review)), ("review", review), "{way:?}");
    world.until_steady(Rest::Succeeded).await;
}

/// The next version, which `owner` has made.
fn owner(world: &World, version: u8) {
    let text = App::new("web", version).text();
    let person = "owner <owner@example.test>";
    world.origin.commit_as(person, "main", &[("it/web.yaml", Some(text.as_bytes()))], "another version");
}
