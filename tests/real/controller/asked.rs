//! What a Git host is asked while nothing happens.

use super::app::{App, GATED};
use super::world::World;
use crate::support::cluster::eventually;
use crate::support::gitlab::Gitlab;
use crate::support::site::Site;
use tidegate::record::state::Rest;

/// How often the controller has looked at the repository, by its own count.
async fn looks(world: &World) -> usize {
    let text = reqwest::get(world.served("metrics")).await.unwrap().text().await.unwrap();
    let counts = text.lines().filter(|line| line.starts_with("tidegate_git_requests_total{operation=\"look-up\""));
    counts.filter_map(|line| line.rsplit_once(' ')?.1.parse::<usize>().ok()).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_rest_a_host_is_asked_for_news_once_for_each_poll() {
    let site = Site::Gitlab(Gitlab::start().await);
    let mut world = World::hosted("asked", &site).await;
    world.add(GATED, &App::new("web", 1));
    world.listens();
    let name = world.space.name.clone();
    world.start();
    world.until_steady(Rest::Initialized).await;
    let tip = world.origin.tip("main").unwrap();
    eventually("the last word about main's tip", async || {
        site.statuses(&name, &tip).await.iter().any(|(mark, _)| mark == "success").then_some(())
    })
    .await;
    let Site::Gitlab(host) = &site else { panic!("it is a stand-in") };
    let known = async || host.asked().last().is_some_and(|(_, status)| *status == 304).then_some(());
    eventually("a look that finds nothing new", known).await;

    let (looked, before) = (looks(&world).await, host.asked().len());
    eventually("a few more", async || (host.asked().len() >= before + 5).then_some(())).await;
    let asked = host.asked().split_off(before);
    let list = "?state=opened&order_by=updated_at&sort=desc&target_branch=main&per_page=50&page=1";
    assert!(asked.iter().all(|(what, status)| what.ends_with(list) && *status == 304), "{asked:#?}");
    // The first may be for a look that was over when the count began.
    let looks = looks(&world).await - looked;
    assert!(asked.len() <= looks + 1, "{} calls for {looks} looks", asked.len());
    world.settled(&[]).await;
}
