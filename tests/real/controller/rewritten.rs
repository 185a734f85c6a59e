//! A request whose last commit somebody replaces after it was reviewed, by a push with force: on a real Git host, Gitea. The
//! same on GitHub and GitLab are scenarios.

use super::proven::{asked, released, void};
use crate::support::cluster::eventually;
use crate::support::site::Site;
use serde_json::Value;
use tidegate::record::state::Rest;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_4_attacks_75_76_a_head_that_is_replaced_after_its_review_opens_no_gate() {
    replaced("rewritten", &Site::gitea().await).await;
}

async fn replaced(name: &str, host: &Site) {
    let mut world = released(name, host, "reviewer", "owner").await;
    let name = world.space.name.clone();
    let first = asked(host, &world, None).await;
    host.approve("reviewer", &name, &first).await;

    // The same file on the same parent: nothing but the commit tells that it is another.
    let run = world.record().unwrap().run.unwrap().id;
    let file = format!("{name}/web/{run}-tenth.yaml");
    let text = format!(
        "apiVersion: tidegate.io/v1alpha1\nkind: Decision\nmetadata: {{name: web, namespace: {name}}}\n\
         spec: {{run: \"{run}\", action: approve, through: tenth, reason: quick}}\n"
    );
    // Nobody looks until it is merged: such a head is void as soon as it is seen.
    world.kill().await;
    host.rewrite("stranger", &name, first["head"]["ref"].as_str().unwrap(), (&file, &text));
    let other = eventually("another head", async || {
        let found = host.pull(&name, &first).await;
        (found["head"]["sha"] != first["head"]["sha"]).then_some(found)
    })
    .await;
    let parent =
        |pull: &Value| world.origin.git(&["rev-parse", &format!("{}^", pull["head"]["sha"].as_str().unwrap())]);
    assert_eq!(parent(&other), parent(&first));
    host.merge(&name, &other).await;
    world.start();
    let why = void(&world, 1).await;
    let short = |pull: &Value| pull["head"]["sha"].as_str().unwrap()[..8].to_owned();
    assert!(why.contains(&format!("reviewer reviewed {}, merged was {}", short(&first), short(&other))), "{why}");

    let second = asked(host, &world, Some(&first)).await;
    host.approve("reviewer", &name, &second).await;
    host.merge(&name, &second).await;
    world.until_steady(Rest::Succeeded).await;
    world.settled(&[]).await;
}
