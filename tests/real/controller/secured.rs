//! A repository behind ssh, a real sshd, from a version's first step to its last.

use super::app::App;
use super::credentials;
use super::hosted::twice_gated;
use super::world::{DECISIONS, STATE, World, is_exposed};
use crate::support::audit::Request;
use crate::support::cluster::eventually;
use crate::support::sshd::Sshd;
use std::net::TcpListener;
use tidegate::record::state::Rest;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attack_94_a_run_stays_where_it_is_while_the_host_behind_ssh_shows_another_key() {
    let mut sshd = Sshd::start().await;
    let mut world = World::behind_ssh("ssh", &sshd).await;
    let listen = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    world.listen = Some(listen);
    world.add(&twice_gated(), &App::new("web", 1));
    world.start();
    world.until_steady(Rest::Initialized).await;
    world.release(&App::new("web", 2));
    world.approve("tenth").await;
    world.until("a tenth", is_exposed).await;
    let request = world.request("half").await;

    // Somebody else answers at the host's address.
    sshd.show("stranger").await;
    let listen = listen.to_string();
    credentials::until(&listen, 200, &["Git is away: ", "shows another key than", "known_hosts", "nothing was sent"])
        .await;
    let sent = (world.origin.tip(STATE), sshd.said("Accepted publickey"));
    let (mark, turned_away) = (world.bed.mark().await, sshd.said("[preauth]"));
    world.origin.merge(&request, DECISIONS);
    eventually("more looks", async || (sshd.said("[preauth]") >= turned_away + 3).then_some(())).await;
    assert_eq!((world.origin.tip(STATE), sshd.said("Accepted publickey")), sent);
    let writes: Vec<Request> = world.requests_since(mark).await.into_iter().filter(Request::is_write).collect();
    assert!(writes.iter().all(|write| matches!(write.resource.as_str(), "leases" | "events")), "{writes:#?}");
    assert_eq!(world.weight().await, 10);

    // The host has said that its key is another one now: who runs tidegate believes that one, and the same process goes on.
    std::fs::copy(sshd.file("other_hosts"), sshd.file("known_hosts")).unwrap();
    world.until_on("half").await;
    world.until_steady(Rest::Succeeded).await;
    world.settled(&[]).await;
}
