//! Approvers by team, on a real Git host, Gitea, whose organisation has the team. The same on GitHub and GitLab are scenarios.

use super::proven::{asked, released};
use super::world::{World, is_on};
use crate::support::cluster::eventually;
use crate::support::site::Site;
use tidegate::plan::report::Reason;
use tidegate::record::state::{Consumed, Rest};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_2_x_4_attack_78_80_who_is_in_a_team_approves_as_long_as_they_are_in_it() {
    by_the_team("team", &Site::gitea().await).await;
}

async fn by_the_team(name: &str, host: &Site) {
    let mut world = released(name, host, "\"@acme/SPACE\"", "bot").await;
    let name = world.space.name.clone();
    let team = format!("@acme/{name}");
    host.team(&name, &["reviewer", "owner"]).await;
    let refused = |who: &str| format!("{who} is none of the policy's approvers, and not in {team}");

    // A no of somebody else is none.
    let first = asked(host, &world, None).await;
    host.close("stranger", &name, &first).await;
    eventually("a pull request that is opened again", async || {
        let open = host.pull(&name, &first).await["state"] == "open";
        // Which calls nobody of the team.
        let told = "stranger is none of the policy's approvers, and not in \\@ acme/";
        (open && host.comments(&name, &first).await.concat().contains(told)).then_some(())
    })
    .await;
    // Nor is their yes.
    host.approve("stranger", &name, &first).await;
    host.merge(&name, &first).await;
    assert_eq!(void(&world, 1).await, format!("{}; approved by 0, needed are 1", refused("stranger")));

    // A member's yes counts; before the step is entered, they are taken off the team.
    let second = asked(host, &world, Some(&first)).await;
    world.kubectl_at_home(&["create", "configmap", "tidegate-brake", "--from-literal=all=hold"]).await;
    world.until_condition(Reason::Brake).await;
    host.approve("reviewer", &name, &second).await;
    host.merge(&name, &second).await;
    let counts = |word: &Consumed| word.void.is_none();
    let record = world.until("a word that counts", |record| record.consumed.last().is_some_and(counts)).await;
    assert_eq!(by(record.consumed.last().unwrap()), ("reviewer", Some(team.as_str())));
    assert!(!is_on(&record, "tenth"), "{:?}", record.phase);
    world.kill().await;
    host.team(&name, &["owner"]).await;
    world.kubectl_at_home(&["delete", "configmap", "tidegate-brake"]).await;
    world.start();
    assert_eq!(void(&world, 2).await, format!("{}; approved by 0, needed are 1", refused("reviewer")));

    let third = asked(host, &world, Some(&second)).await;
    host.approve("owner", &name, &third).await;
    host.merge(&name, &third).await;
    let record = world.until("a tenth", |record| is_on(record, "tenth")).await;
    assert_eq!(by(record.consumed.last().unwrap()), ("owner", Some(team.as_str())));
    world.until_steady(Rest::Succeeded).await;
    world.settled(&[]).await;
}

/// Who has approved, and as a member of which team.
fn by(word: &Consumed) -> (&str, Option<&str>) {
    let [by] = &*word.proven.as_ref().unwrap().by else { panic!("{word:?}") };
    (&by.login, by.team.as_deref())
}

/// Waits until so many words are void; why the last one is.
async fn void(world: &World, count: usize) -> String {
    let voids = |word: &&Consumed| word.void.is_some();
    let what = "a word that does not count";
    let record = world.until(what, |record| record.consumed.iter().filter(voids).count() == count).await;
    assert!(!is_on(&record, "tenth"), "{:?}", record.phase);
    record.consumed.last().unwrap().void.clone().unwrap().why
}
