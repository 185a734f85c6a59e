//! Webhooks without end, and connections that say nothing, to the real binary.

use super::app::App;
use super::process::{Binary, QUICK};
use super::world::World;
use crate::support::cluster::eventually;
use std::time::Instant;
use tidegate::record::state::Rest;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

const SECRET: &str = "known-to-both";
/// All of what came is dropped: what is kept of ten thousand would be 800 bytes for each.
const LITTLE: u64 = 8 << 20;

/// How much memory a process has now, in bytes.
fn memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// Sends so many, eight at a time, each of which is heard.
async fn send(hook: &str, count: usize) {
    let mut senders = JoinSet::new();
    for _ in 0..8 {
        let (hook, client) = (hook.to_owned(), reqwest::Client::builder().no_proxy().build().unwrap());
        senders.spawn(async move {
            for _ in 0..count / 8 {
                let sent = client.post(&hook).header("x-gitlab-token", SECRET).body("{\"ref\": \"refs/heads/main\"}");
                assert_eq!(sent.send().await.unwrap().status().as_u16(), 202);
            }
        });
    }
    senders.join_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attack_72_ten_thousand_webhooks_make_no_more_than_a_poll_a_second_and_take_no_memory() {
    let mut world = World::new("flooded", QUICK).await;
    let binary = Binary::new(&world);
    let secret = binary.path("secret");
    std::fs::write(&secret, SECRET).unwrap();
    let seldom = format!("poll: 1h, webhookSecretFile: {}", secret.display());
    std::fs::write(binary.path("installation.yaml"), world.installation_text().replace("poll: 1s", &seldom)).unwrap();
    let process = binary.start("one", "", &[]);
    let address = binary.address("one").await;
    let hook = format!("http://{address}/webhook");
    world.until_steady(Rest::Initialized).await;
    let polls = || {
        let lists = world.git.requests().into_iter().filter(|(asked, _)| asked.ends_with("/git-upload-pack"));
        lists.map(|(_, times)| times).sum::<usize>()
    };
    // What is taken once is taken now.
    let before = polls();
    send(&hook, 800).await;
    eventually("a poll", async || (polls() > before).then_some(())).await;

    let (pid, before) = (process.id().unwrap(), polls());
    let (held, started) = (memory(pid), Instant::now());
    send(&hook, 10_000).await;
    let (asked, seconds) = (polls() - before, usize::try_from(started.elapsed().as_secs()).unwrap());
    let now = memory(pid);
    assert!(asked <= seconds + 2, "{asked} polls within {seconds} seconds and a bit");
    assert!(now < held + LITTLE, "{held} bytes before, {now} after");

    // Whoever connects and says nothing keeps neither the kubelet nor the Git host out.
    let mut silent = Vec::new();
    for _ in 0..300 {
        silent.push(TcpStream::connect(&address).await.unwrap());
    }
    let health = reqwest::Client::builder().no_proxy().build().unwrap().get(format!("http://{address}/healthz"));
    assert_eq!(health.send().await.unwrap().text().await.unwrap(), "ok\n");
    world.release(&App::new("web", 2));
    send(&hook, 8).await;
    world.until_steady(Rest::Succeeded).await;
    drop((silent, process));
    world.settled(&[]).await;
}
