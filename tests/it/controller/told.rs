//! A Git host that tells of a push: nobody waits for the next poll.

use super::app::{App, ungated};
use super::world::World;
use crate::support::cluster::eventually;
use crate::support::git_host::GitHost;
use crate::support::origin::Origin;
use crate::support::site::Site;
use serde_json::json;
use tidegate::record::state::Rest;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_of_a_real_host_wakes_the_poll() {
    let host = GitHost::shared().await;
    let mut world = World::hosted("told", &Site::Gitea(host)).await;
    let secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(secret.path(), "a-secret-of-both").unwrap();
    world.polls_once_an_hour(secret.path());
    let listen = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    world.listen = Some(listen);
    let (repository, hook) = (world.space.name.clone(), format!("http://{listen}/webhook"));
    let config = json!({"url": hook, "content_type": "json", "secret": "a-secret-of-both"});
    let wanted =
        json!({"type": "gitea", "active": true, "events": ["push"], "branch_filter": "main", "config": config});
    host.want(201, "owner", "POST", &format!("repos/owner/{repository}/hooks"), Some(wanted)).await;
    world.add(&ungated(), &App::new("web", 1));
    world.start();
    world.until_steady(Rest::Initialized).await;

    // A push as people make it: a file that is put there by hand tells nobody.
    world.origin.git(&["branch", "next", "main"]);
    let next = App::new("web", 2).text();
    world.origin.commit("next", &[("it/web.yaml", Some(next.as_bytes()))], "version 2");
    let (url, token) = (host.url_of(&repository), std::fs::read_to_string(host.token_file("owner")).unwrap());
    let url = url.replace("http://", &format!("http://owner:{}@", token.trim()));
    let origin = world.origin.path().to_owned();
    let push = move || Origin::at(&origin).git(&["push", "--quiet", &url, "next:main"]);
    tokio::task::spawn_blocking(push).await.unwrap();
    world.until_steady(Rest::Succeeded).await;
    eventually("the webhook is counted", async || {
        let text = reqwest::get(format!("http://{listen}/metrics")).await.ok()?.text().await.ok()?;
        text.contains("tidegate_webhooks_total{outcome=\"signed\"} 1").then_some(())
    })
    .await;
    // Who does not know the secret is heard by nobody.
    let request = reqwest::Client::new().post(&hook).header("x-gitea-signature", "0".repeat(64)).body("{}");
    assert_eq!(request.send().await.unwrap().status().as_u16(), 401);
    world.kill().await;
}
