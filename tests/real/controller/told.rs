//! A Git host that tells of a push: nobody waits for the next poll.

use super::app::{App, GATED};
use super::hosted::open;
use super::world::World;
use crate::support::cluster::eventually;
use crate::support::git_host::GitHost;
use crate::support::origin::Origin;
use crate::support::site::Site;
use serde_json::json;
use tempfile::NamedTempFile;
use tidegate::plan::report::Reason;
use tidegate::record::state::Rest;

/// A world whose host tells it of what happens, and which looks by itself once an hour.
struct Told {
    world: World,
    host: &'static GitHost,
    _secret: NamedTempFile,
}

impl Told {
    /// With an app, of which this is said.
    async fn start(name: &str, site: &Site, spec: &str) -> Self {
        let Site::Gitea(host) = site else { panic!("it is real") };
        let mut world = World::hosted(name, site).await;
        let secret = NamedTempFile::new().unwrap();
        std::fs::write(secret.path(), "a-secret-of-both").unwrap();
        world.polls_once_an_hour(secret.path());
        world.listens();
        let url = world.hook();
        let config = json!({"url": url, "content_type": "json", "secret": "a-secret-of-both"});
        let events = ["push", "pull_request"];
        let wanted =
            json!({"type": "gitea", "active": true, "events": events, "branch_filter": "main", "config": config});
        let path = format!("repos/owner/{}/hooks", world.space.name);
        host.want(201, "owner", "POST", &path, Some(wanted)).await;
        world.add(spec, &App::new("web", 1));
        world.start();
        Self { world, host, _secret: secret }
    }

    /// Pushes a file as people do it: one that is put there by hand tells nobody.
    async fn push(&self, what: &str, branch: &str, file: &str) {
        let Self { world, host, .. } = self;
        world.origin.git(&["branch", "--force", "next", "main"]);
        world.origin.commit("next", &[("it/web.yaml", Some(file.as_bytes()))], what);
        let token = std::fs::read_to_string(host.token_file("owner")).unwrap();
        let url = host.url_of(&world.space.name).replace("http://", &format!("http://owner:{}@", token.trim()));
        let (origin, refs) = (world.origin.path().to_owned(), format!("next:{branch}"));
        let push = move || Origin::at(&origin).git(&["push", "--quiet", &url, &refs]);
        tokio::task::spawn_blocking(push).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_of_a_real_host_wakes_the_poll_and_tells_of_pull_requests() {
    let site = Site::gitea().await;
    let mut told = Told::start("told-pulls", &site, GATED).await;
    told.world.until_steady(Rest::Initialized).await;
    let name = told.world.space.name.clone();

    // A push is heard without a poll; a no too, and that its branch is gone.
    told.push("version 2", "main", &App::new("web", 2).text()).await;
    let pull = open(&site, &told.world, "tenth").await;
    site.close("reviewer", &name, &pull).await;
    told.world.until_condition(Reason::Denied).await;
    let numbers = told.world.served("metrics");
    eventually("the webhook is counted", async || {
        let text = reqwest::get(&numbers).await.ok()?.text().await.ok()?;
        text.contains("tidegate_webhooks_total{outcome=\"signed\"} ").then_some(())
    })
    .await;
    // Who does not know the secret is heard by nobody.
    let hook = told.world.hook();
    let request = reqwest::Client::new().post(&hook).header("x-gitea-signature", "0".repeat(64)).body("{}");
    assert_eq!(request.send().await.unwrap().status().as_u16(), 401);

    // A person's own: what it would come to is said there.
    told.push("version 3", "topic", "kind: [").await;
    let like = json!({"body": "a new version", "head": {"ref": "topic"}});
    let pull = site.open("reviewer", &name, &like, "main").await;
    eventually("a word about it", async || {
        let said = site.said(&name, &pull).await;
        said.iter().any(|comment| comment["user"]["login"] == "bot").then_some(())
    })
    .await;
    told.world.kill().await;
}
