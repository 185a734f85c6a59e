//! Approvals that reviews have to prove: those of a real Git host, Gitea, and those of stand-ins for GitHub and GitLab.

use super::app::{App, GATED};
use super::world::{World, is_on};
use crate::support::cluster::eventually;
use crate::support::site::Site;
use crate::support::ways::Way;
use serde_json::{Value, json};
use tidegate::plan::report::Reason;
use tidegate::record::state::Rest;

const DECISIONS: &str = "tidegate/it/decisions";

/// A rollout at rest whose steps these people approve (SPACE is the name of its namespace), and its next version, which somebody has made.
pub(super) async fn released(name: &str, host: &Site, approvers: &str, by: &str) -> World {
    released_by_rule(name, host, &format!("approvers: [{approvers}]"), by).await
}

/// The same where the policy says that of the tenant.
pub(super) async fn released_by_rule(name: &str, host: &Site, rule: &str, by: &str) -> World {
    let world = at_rest(name, host, rule).await;
    let text = App::new("web", 2).text();
    let person = format!("{by} <{by}@example.test>");
    world.origin.commit_as(&person, "main", &[("it/web.yaml", Some(text.as_bytes()))], "version 2");
    world
}

/// The same before there is a next version.
async fn at_rest(name: &str, host: &Site, rule: &str) -> World {
    let mut world = World::hosted(name, host).await;
    let rule = rule.replace("SPACE", &world.space.name);
    let policy = format!(
        "apiVersion: tidegate.io/v1alpha1\nkind: Policy\nspec:\n  tenants:\n    \
         it: {{path: it, namespaces: [{}], clusters: [home], {rule}}}\n",
        world.space.name
    );
    world.commit(&[("tidegate.yaml", &policy)]);
    world.add(GATED, &App::new("web", 1));
    world.start();
    world.until_steady(Rest::Initialized).await;
    world
}

/// Waits for an open pull request that leads to `tenth`, another one than `before`.
pub(super) async fn asked(host: &Site, world: &World, before: Option<&Value>) -> Value {
    let number = before.map_or(0, |pull| pull["number"].as_u64().unwrap());
    let is_it = |pull: &Value| pull["state"] == "open" && pull["number"].as_u64().unwrap() > number;
    eventually("a pull request", async || host.pulls(&world.space.name).await.into_iter().find(is_it)).await
}

/// Waits until the last word is void; why.
pub(super) async fn void(world: &World, count: usize) -> String {
    let voids = |record: &tidegate::record::state::RolloutState| {
        record.consumed.iter().filter(|word| word.void.is_some()).count()
    };
    let record = world.until("a word that does not count", |record| voids(record) == count).await;
    let told = world.until_condition(Reason::ApprovalUnproven).await;
    let why = record.consumed.last().unwrap().void.clone().unwrap().why;
    assert!(told.contains(&why), "{told}");
    assert!(!is_on(&record, "tenth"), "{:?}", record.phase);
    why
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_2_attack_74_a_step_is_entered_on_the_review_of_somebody_else() {
    by_somebody_else("proven", &Site::gitea().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_2_attack_74_so_it_is_on_gitlab() {
    by_somebody_else("proven-gitlab", &Site::gitlab().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_2_attack_74_so_it_is_on_github() {
    let site = Site::github().await;
    by_somebody_else("proven-github", &site).await;
    site.is_as_described();
}

async fn by_somebody_else(name: &str, host: &Site) {
    let mut world = released(name, host, "reviewer, Owner", "reviewer").await;
    let name = world.space.name.clone();
    let first = asked(host, &world, None).await;
    host.approve("reviewer", &name, &first).await;
    host.merge(&name, &first).await;
    let why = void(&world, 1).await;
    assert!(why.starts_with("reviewer made commit ") && why.contains("an approver must be someone else"), "{why}");

    let second = asked(host, &world, Some(&first)).await;
    let body = second["body"].as_str().unwrap();
    assert!(body.contains("does not count") && body.contains("someone else"), "{body}");
    let review = host.approve("owner", &name, &second).await;
    host.merge(&name, &second).await;
    let record = world.until("a tenth", |record| is_on(record, "tenth")).await;
    let word = record.consumed.last().unwrap();
    let proven = word.proven.as_ref().unwrap();
    assert_eq!(
        (word.proof.as_str(), word.by.as_str(), json!(proven.pull)),
        ("review", "owner", second["number"].clone())
    );
    assert_eq!((json!(proven.by[0].review), json!(proven.head)), (review, second["head"]["sha"].clone()));
    world.until_steady(Rest::Succeeded).await;
    world.settled(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_2_attack_74_who_made_what_was_squashed_made_the_version() {
    squashed("squashed", &Site::gitea().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_2_attack_74_so_did_they_on_gitlab() {
    squashed("squashed-gitlab", &Site::gitlab().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_2_attack_74_so_did_they_on_github() {
    let site = Site::github().await;
    squashed("squashed-github", &site).await;
    site.is_as_described();
}

async fn squashed(name: &str, host: &Site) {
    let world = at_rest(name, host, "approvers: [owner]").await;
    let name = world.space.name.clone();
    world.origin.git(&["update-ref", "refs/heads/topic", "refs/heads/main"]);
    host.push("owner", &name, "topic", ("it/web.yaml", &App::new("web", 2).text()));
    let like = json!({"body": "a new version", "head": {"ref": "topic"}});
    let topic = host.open("stranger", &name, &like, "main").await;
    host.merge_by(Way::Squash, &name, &topic).await;
    let told = world.origin.git(&["show", "-s", "--format=%ae %ce", "main"]);
    assert!(!told.contains("owner"), "main tells of others alone: {told}");

    let pull = asked(host, &world, None).await;
    host.approve("owner", &name, &pull).await;
    host.merge(&name, &pull).await;
    let why = void(&world, 1).await;
    assert!(why.contains("owner made commit ") && why.contains("an approver must be someone else"), "{why}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_4_attacks_75_to_82_what_is_no_review_of_an_approver_opens_no_gate() {
    by_nobody("unproven", &Site::gitea().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_4_attacks_75_to_82_so_it_is_on_gitlab() {
    by_nobody("unproven-gitlab", &Site::gitlab().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_4_attacks_75_to_82_so_it_is_on_github() {
    let site = Site::github().await;
    by_nobody("unproven-github", &site).await;
    site.is_as_described();
}

async fn by_nobody(name: &str, host: &Site) {
    let mut world = released(name, host, "reviewer", "owner").await;
    let name = world.space.name.clone();

    // Closed by somebody who may not say no.
    let first = asked(host, &world, None).await;
    host.close("stranger", &name, &first).await;
    eventually("a pull request that is opened again", async || {
        let said = host.comments(&name, &first).await.concat();
        let open = host.pull(&name, &first).await["state"] == "open";
        (open && said.contains("stranger is none of the policy's approvers")).then_some(())
    })
    .await;
    let run = world.record().unwrap().run.unwrap();
    assert!(!run.denied, "{run:?}");

    // Another head than was reviewed. What is seen on its branch is void before anybody can merge it, so nobody looks meanwhile.
    host.approve("reviewer", &name, &first).await;
    world.kill().await;
    let file = format!("{name}/web/{}-tenth.yaml", run.id);
    let decision = |reason: &str| {
        format!(
            "apiVersion: tidegate.io/v1alpha1\nkind: Decision\nmetadata: {{name: web, namespace: {name}}}\n\
             spec: {{run: \"{}\", action: approve, through: promotion, reason: {reason}}}\n",
            run.id
        )
    };
    let quick = decision("quick").replace("promotion", "tenth");
    host.push("stranger", &name, first["head"]["ref"].as_str().unwrap(), (&file, &quick));
    let pushed = eventually("another head", async || {
        let found = host.pull(&name, &first).await;
        (found["head"]["sha"] != first["head"]["sha"]).then_some(found)
    })
    .await;
    host.merge(&name, &pushed).await;
    world.start();
    let why = void(&world, 1).await;
    let short = |pull: &Value| pull["head"]["sha"].as_str().unwrap()[..8].to_owned();
    let other = format!("reviewer reviewed {}, merged was {}", short(&first), short(&pushed));
    assert!(why.contains(&other), "{why}");

    // By somebody whom the policy does not name.
    let second = asked(host, &world, Some(&first)).await;
    host.approve("stranger", &name, &second).await;
    host.merge(&name, &second).await;
    let why = void(&world, 2).await;
    assert_eq!(why, "stranger is none of the policy's approvers; approved by 0, needed are 1");

    // Past all pull requests.
    let third = asked(host, &world, Some(&second)).await;
    host.push("reviewer", &name, DECISIONS, (&file, &decision("now").replace("promotion", "tenth")));
    let why = void(&world, 3).await;
    assert_eq!(why, "it was pushed to the branch, not merged by a pull request");

    let fourth = asked(host, &world, Some(&third)).await;
    host.approve("reviewer", &name, &fourth).await;
    host.merge(&name, &fourth).await;
    world.until_steady(Rest::Succeeded).await;
    world.settled(&[]).await;
}
