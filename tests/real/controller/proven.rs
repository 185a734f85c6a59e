//! Approvals that reviews of a real Git host, Gitea, have to prove. The same on GitHub and GitLab, and what is no proof, are scenarios.

use super::app::{App, GATED};
use super::world::{World, is_on};
use crate::support::cluster::eventually;
use crate::support::site::Site;
use crate::support::ways::Way;
use serde_json::{Value, json};
use tidegate::plan::report::Reason;
use tidegate::record::state::Rest;

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
async fn x_2_x_4_attack_74_78_a_step_is_entered_on_the_review_of_somebody_else_in_a_team() {
    let host = &Site::gitea().await;
    let world = &mut released("team", host, "Reviewer, \"@acme/SPACE\"", "reviewer").await;
    let name = world.space.name.clone();
    host.team(&name, &["owner"]).await;
    let first = asked(host, world, None).await;
    host.approve("reviewer", &name, &first).await;
    host.merge_by(Way::Rebase, &name, &first).await;
    let why = void(world, 1).await;
    assert!(why.starts_with("reviewer made commit ") && why.contains("an approver must be someone else"), "{why}");

    let second = asked(host, world, Some(&first)).await;
    let body = second["body"].as_str().unwrap();
    assert!(body.contains("does not count") && body.contains("someone else"), "{body}");
    host.team(&name, &["stranger"]).await;
    host.approve("owner", &name, &second).await;
    host.merge_by(Way::Squash, &name, &second).await;
    let why = void(world, 2).await;
    let nobody = format!("owner is none of the policy's approvers, and not in @acme/{name}");
    assert_eq!(why, format!("{nobody}; approved by 0, needed are 1"));

    let third = asked(host, world, Some(&second)).await;
    host.team(&name, &["owner"]).await;
    let before = world.recorded();
    let review = host.approve("owner", &name, &third).await;
    host.merge_by(Way::RebaseMerge, &name, &third).await;
    let record = world.until_since(&before, "a tenth", |record| is_on(record, "tenth")).await;
    let word = record.consumed.last().unwrap();
    let proven = word.proven.as_ref().unwrap();
    assert_eq!(
        (word.proof.as_str(), word.by.as_str(), json!(proven.pull)),
        ("review", "owner", third["number"].clone())
    );
    assert_eq!(json!(proven.head), third["head"]["sha"]);
    let [by] = &*proven.by else { panic!("{word:?}") };
    assert_eq!((json!(by.review), by.team.as_deref()), (review, Some(format!("@acme/{name}").as_str())));
    world.until_steady(Rest::Succeeded).await;
    world.settled(&[]).await;
}
