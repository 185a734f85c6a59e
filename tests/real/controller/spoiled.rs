//! Branches of our requests that somebody else writes to, on a real Git host, Gitea.

use super::app::App;
use super::proven::{asked, released, void};
use super::world::World;
use crate::support::cluster::eventually;
use crate::support::site::Site;
use tidegate::forge::branch::approval;
use tidegate::manifest::ids::RunId;
use tidegate::record::state::Rest;

const DECISIONS: &str = "tidegate/it/decisions";

/// The file by which a run would be approved as a whole, to the letter as we would ask for it.
fn all(world: &World, run: &str) -> (String, String) {
    let rollout = format!("{}/web", world.space.name).parse().unwrap();
    let (path, text) = approval(&rollout, &run.parse::<RunId>().unwrap(), &"promotion".parse().unwrap(), 0);
    (path.to_string(), text)
}

/// Main wants this version.
fn main(world: &World, version: u8) {
    let text = App::new("web", version).text();
    world.origin.commit_as("owner <owner@example.test>", "main", &[("it/web.yaml", Some(text.as_bytes()))], "version");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_2_x_3_attack_74_what_somebody_else_writes_to_a_request_is_asked_of_nobody() {
    let host = &Site::gitea().await;
    let mut world = released("spoiled", host, "reviewer", "owner").await;
    let name = world.space.name.clone();

    // Pushed between asking and merging.
    let first = asked(host, &world, None).await;
    let run = world.record().unwrap().run.unwrap().id;
    let (path, text) = all(&world, run.as_str());
    host.push("stranger", &name, first["head"]["ref"].as_str().unwrap(), (&path, &text));
    let why = void(&world, 1).await;
    assert_eq!(why, "somebody else has written to its branch: it would bring other commits too");
    let second = asked(host, &world, Some(&first)).await;
    assert_eq!((&second["head"]["ref"], &second["title"]), (&first["head"]["ref"], &first["title"]));
    assert!(second["body"].as_str().unwrap().contains(&why), "{second}");
    let range = format!("{DECISIONS}...{}", second["head"]["sha"].as_str().unwrap());
    let files = world.origin.git(&["diff", "--name-only", &range]);
    assert!(files.ends_with("-tenth.yaml") && files.lines().count() == 1, "{files}");
    let said = eventually("a note", async || host.comments(&name, &first).await.first().cloned()).await;
    assert!(said.contains("somebody else has written to its branch") && said.contains("It is asked again"), "{said}");
    assert_eq!(host.pull(&name, &first).await["state"], "closed");

    // Made beforehand, under the name that the next run with the same content will ask by.
    main(&world, 1);
    world.until("no run", |record| record.run.is_none()).await;
    world.kill().await;
    let next = run.as_str().replacen("1-", "2-", 1);
    let (branch, (path, text)) = (format!("tidegate/it/propose/{name}/web/{next}-tenth"), all(&world, &next));
    world.origin.git(&["branch", &branch, DECISIONS]);
    world.origin.commit(&branch, &[(&path, Some(text.as_bytes()))], "go on to tenth");
    main(&world, 2);
    world.start();
    let why = void(&world, 2).await;
    assert_eq!(why, format!("somebody else has written to its branch: it would change {path}"));
    let third = asked(host, &world, Some(&second)).await;
    assert_eq!(third["head"]["ref"], branch);
    let run = world.record().unwrap().run.unwrap();
    assert_eq!((run.id.as_str(), run.approved.len()), (next.as_str(), 0));
    host.approve("reviewer", &name, &third).await;
    host.merge(&name, &third).await;
    world.until_steady(Rest::Succeeded).await;
    world.settled(&[]).await;
}
