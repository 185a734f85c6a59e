//! What a Git host is asked while nothing happens.

use super::app::{App, GATED};
use super::world::World;
use crate::support::cluster::eventually;
use crate::support::gitlab::Gitlab;
use crate::support::site::Site;
use tidegate::record::state::Rest;
use tokio::time::Instant;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_rest_a_host_is_asked_for_news_once_for_each_poll() {
    let site = Site::Gitlab(Gitlab::start().await);
    let mut world = World::hosted("asked", &site).await;
    world.add(GATED, &App::new("web", 1));
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

    let (before, start) = (host.asked().len(), Instant::now());
    eventually("a few more", async || (host.asked().len() >= before + 5).then_some(())).await;
    let (asked, seconds) = (host.asked().split_off(before), start.elapsed().as_secs());
    let list = "?state=opened&order_by=updated_at&sort=desc&target_branch=main&per_page=50&page=1";
    assert!(asked.iter().all(|(what, status)| what.ends_with(list) && *status == 304), "{asked:#?}");
    // A poll is a second.
    assert!(asked.len() as u64 <= seconds + 1, "{} calls within {seconds} s", asked.len());
    world.settled(&[]).await;
}
