//! The controller as a GitHub App: on a stand-in that lets in nobody else, to its API and to Git.

use super::app::{App, GATED};
use super::hosted::{open, people_answer};
use super::process::Binary;
use super::world::World;
use crate::support::cluster::eventually;
use crate::support::github_app::CANARY;
use crate::support::site::Site;
use tidegate::record::state::Rest;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_3_x_4_people_answer_pull_requests_of_a_github_app() {
    let site = Site::github_app().await;
    people_answer("hosted-app", &site).await;
    site.is_as_described();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attack_93_neither_key_nor_token_of_an_app_is_shown_and_a_token_that_is_refused_is_renewed() {
    let site = Site::github_app().await;
    let Site::Github(host, Some(app)) = &site else { unreachable!("it was made so") };
    let mut world = World::hosted("app-canary", &site).await;
    world.add(GATED, &App::new("web", 1));
    let name = world.space.name.clone();
    let binary = Binary::new(&world);
    let mut process = binary.start("one", "", &["--log-level", "trace"]);
    world.until_steady(Rest::Initialized).await;
    assert_eq!(host.handed_out(app), 1, "one for all who ask");
    world.release(&App::new("web", 2));
    let pull = open(&site, &world, "tenth").await;

    // Taken away in the midst of it.
    host.revoke(app);
    eventually("a new token", async || (host.handed_out(app) > 1).then_some(())).await;
    site.merge(&name, &pull).await;
    world.until_steady(Rest::Succeeded).await;
    process.kill().await.unwrap();

    let log = binary.log("one");
    assert!(log.contains("TRACE") && log.contains("asks people by a pull request"), "{log}");
    let refs = world.origin.git(&["log", "--all", "--patch"]);
    let said = format!("{log}{refs}{:?}{:?}", host.pulls(&name), site.comments(&name, &pull).await);
    let key = host.key(app);
    for secret in key.lines().filter(|line| !line.starts_with('-')).chain([CANARY]) {
        assert!(!said.contains(secret), "a secret is shown: {:?}", said.split(secret).next().map(|text| text.len()));
    }
}
