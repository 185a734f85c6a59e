//! The controller as a GitHub App: on a stand-in that lets in nobody else, to its API and to Git.

use super::app::{App, GATED};
use super::hosted::{open, people_answer};
use super::process::Binary;
use super::world::World;
use crate::support::cluster::eventually;
use crate::support::github::Github;
use crate::support::github_app::CANARY;
use crate::support::site::Site;
use serde_json::{Value, json};
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_github_app_shows_each_finding_at_its_line_and_a_mend_as_a_success() {
    let site = Site::github_app().await;
    let Site::Github(host, Some(_)) = &site else { unreachable!("it was made so") };
    let mut world = World::hosted("app-checks", &site).await;
    world.add(GATED, &App::new("web", 1));
    let name = world.space.name.clone();
    world.start();
    world.until_steady(Rest::Initialized).await;

    // Two broken files.
    let main = world.origin.files(&world.origin.tip("main").unwrap());
    let rollout = String::from_utf8(main["it/web.rollout.yaml"].clone()).unwrap();
    let bad = rollout.replace("weight: 50", "weight: 500");
    let line = 1 + bad.lines().position(|line| line.contains("500")).unwrap();
    let column = 1 + bad.lines().nth(line - 1).unwrap().find("500").unwrap();
    let climbs = format!(
        "apiVersion: tidegate.io/v1alpha1\nkind: Rollout\nmetadata: {{name: two, namespace: {name}}}\n\
         spec: {{manifests: [../../../etc/passwd], target: {{kind: Deployment, name: two}}}}\n"
    );
    world.origin.git(&["update-ref", "refs/heads/topic", "refs/heads/main"]);
    host.push("reviewer", &name, "topic", ("it/web.rollout.yaml", &bad));
    host.push("reviewer", &name, "topic", ("it/two.rollout.yaml", &climbs));
    let draft = json!({"title": "a new version", "body": "", "head": "topic", "base": "main"});
    let pull = host.open("reviewer", &name, &draft);
    let broken = world.origin.tip("topic").unwrap();
    let (conclusion, annotations) = checked(host, &name, &pull, &broken).await;
    assert_eq!(conclusion, "failure");
    let at = |path: &str| annotations.iter().find(|one| one["path"] == path).unwrap();
    let (weight, path) = (at("it/web.rollout.yaml"), at("it/two.rollout.yaml"));
    assert_eq!(
        (&weight["start_line"], &weight["end_line"], &weight["start_column"]),
        (&json!(line), &json!(line), &json!(column))
    );
    assert_eq!(
        (&path["start_line"], &path["title"], &path["annotation_level"]),
        (&json!(4), &json!("PathEscape"), &json!("failure"))
    );

    // Another process says nothing again; what it says next is about the mend, in the same comment.
    world.kill().await;
    world.start();
    host.push("reviewer", &name, "topic", ("it/web.rollout.yaml", &rollout));
    host.push("reviewer", &name, "topic", ("it/web.yaml", &App::new("web", 2).text()));
    let whole = climbs.replace("../../../etc/passwd", "two.yaml");
    host.push("reviewer", &name, "topic", ("it/two.rollout.yaml", &whole));
    host.push("reviewer", &name, "topic", ("it/two.yaml", &App::worker("two", 1).text()));
    let mended = world.origin.tip("topic").unwrap();
    let (conclusion, annotations) = checked(host, &name, &pull, &mended).await;
    assert_eq!((conclusion.as_str(), annotations), ("success", vec![]));
    assert_eq!(host.checks(&name, &broken).len(), 1);
    let names = |commit: &str| -> Vec<Value> {
        host.statuses(&name, commit).into_iter().map(|status| status["context"].clone()).collect()
    };
    assert_eq!((names(&broken), names(&mended)), (vec![], vec![]), "a status beside it would have to be mended too");
    let main = world.origin.tip("main").unwrap();
    assert!(names(&main).contains(&json!("tidegate/it")) && host.checks(&name, &main).is_empty());
    site.is_as_described();
    world.settled(&[]).await;
}

/// What the one check of a commit came to, with its annotations, once the one comment on its pull request is about it.
async fn checked(host: &Github, name: &str, pull: &Value, head: &str) -> (String, Vec<Value>) {
    eventually(&format!("a word about {head}"), async || {
        let said = host.comments(name, pull["number"].as_u64().unwrap());
        assert!(said.len() < 2, "said twice: {said:#?}");
        said.first().filter(|said| said.contains(head)).map(|_| ())
    })
    .await;
    let mut runs = host.checks(name, head);
    let (run, annotations) = runs.pop().unwrap();
    assert!(runs.is_empty() && run["name"] == "tidegate/it/manifests", "{runs:#?} {run:#}");
    (run["conclusion"].as_str().unwrap().to_owned(), annotations)
}
