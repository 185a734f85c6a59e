//! More objects than the policy lets go with one change: an approver lets them go, or keeps them, by the pull request that lists them.

use super::app::App;
use super::hosted::{open, until_labelled};
use super::world::World;
use crate::support::cluster::eventually;
use crate::support::site::Site;
use serde_json::json;
use tidegate::plan::report::Reason;
use tidegate::record::state::{Rest, Said};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_3_x_4_people_let_objects_go_by_a_pull_request() {
    let_go("let-go", &Site::gitea().await).await;
}

/// The manifests of a version that has these ConfigMaps.
fn version(version: u8, maps: &[&str]) -> String {
    let map = |name: &&str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}");
    let maps = maps.iter().map(map).collect::<Vec<_>>().join("\n---\n");
    App { more: &maps, ..App::worker("web", version) }.text()
}

/// `owner` makes that the next version.
fn release(world: &World, text: &str) {
    let person = "owner <owner@example.test>";
    world.origin.commit_as(person, "main", &[("it/web.yaml", Some(text.as_bytes()))], "another version");
}

async fn let_go(name: &str, host: &Site) {
    let mut world = World::hosted(name, host).await;
    let name = world.space.name.clone();
    let policy = format!(
        "apiVersion: tidegate.io/v1alpha1\nkind: Policy\nspec:\n  limits: {{maxDeletions: 1}}\n  tenants:\n    \
         it: {{path: it, namespaces: [{name}], clusters: [home], approvers: [reviewer, owner]}}\n"
    );
    world.commit(&[("tidegate.yaml", &policy)]);
    world.add("  progressDeadline: 90s\n", &App::worker("web", 1));
    world.commit(&[("it/web.yaml", &version(1, &["one", "two", "three", "four"]))]);
    world.start();
    world.until_steady(Rest::Initialized).await;
    release(&world, &version(2, &["three", "four"]));
    world.until_condition(Reason::TooManyDeletions).await;
    let pull = open(host, &world, "delete").await;
    until_labelled(host, &world, &pull, &["tidegate", "tidegate/delete"]).await;
    assert_eq!(pull["title"], format!("{name}/web: delete 2 objects"));
    let body = pull["body"].as_str().unwrap();
    assert!(body.contains("ConfigMap one") && body.contains("ConfigMap two") && !body.contains("three"), "{body}");

    // Whoever took them away does not let them go.
    host.approve("owner", &name, &pull).await;
    host.merge(&name, &pull).await;
    let is_void = |word: &&tidegate::record::state::Consumed| word.void.is_some();
    let record = world.until("a void word", |record| record.consumed.iter().filter(is_void).count() == 1).await;
    let why = record.consumed[0].void.clone().unwrap().why;
    assert!(why.starts_with("owner made commit ") && world.get("ConfigMap", "one").await.is_some(), "{why}");
    let again = eventually("another pull request", async || {
        let found = open(host, &world, "delete").await;
        (found["number"] != pull["number"]).then_some(found)
    })
    .await;
    let place = format!("{} has come in its place.", host.named(&again));
    eventually("a word about what has come in its place", async || {
        host.comments(&name, &pull).await.contains(&place).then_some(())
    })
    .await;

    // Merged with the review of somebody else.
    let review = host.approve("reviewer", &name, &again).await;
    host.merge(&name, &again).await;
    for map in ["one", "two"] {
        eventually("their end", async || world.get("ConfigMap", map).await.is_none().then_some(())).await;
    }
    let record = world.until("an end of the question", |record| record.deletions.is_none()).await;
    let word = record.consumed.last().unwrap();
    let proven = word.proven.as_ref().unwrap();
    assert_eq!((word.action.as_str(), word.proof.as_str(), word.by.as_str()), ("delete", "review", "reviewer"));
    assert_eq!((json!(proven.pull), json!(proven.by[0].review)), (again["number"].clone(), review));

    // Closed by an approver.
    release(&world, &version(3, &[]));
    let third = open(host, &world, "delete").await;
    host.close("reviewer", &name, &third).await;
    let denied = |record: &tidegate::record::state::RolloutState| {
        record.deletions.said.iter().any(|answer| answer.said == Said::No)
    };
    world.until("a no", denied).await;
    let said = eventually("a word about the no", async || host.comments(&name, &third).await.first().cloned()).await;
    assert!(said.starts_with("nobody is asked that any more: people have answered"), "{said}");
    world.settled(&[Reason::TooManyDeletions]).await;
    assert!(world.get("ConfigMap", "three").await.is_some() && world.get("ConfigMap", "four").await.is_some());
}
