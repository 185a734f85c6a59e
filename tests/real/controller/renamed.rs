//! A repository that is renamed on a real Git host, Gitea, and another one that takes its name.

use super::app::App;
use super::process::{Binary, QUICK};
use super::world::{STATE, World};
use crate::support::audit::{Mark, Request};
use crate::support::cluster::eventually;
use crate::support::git_host::GitHost;
use crate::support::origin::Origin;
use crate::support::site::Site;
use serde_json::json;
use tidegate::plan::report::Reason;
use tidegate::record::state::Rest;

/// A controller whose Installation names the repository by its number, and the repository.
struct Story {
    host: &'static GitHost,
    world: World,
    binary: Binary,
    /// The repository on the host, by its name.
    path: String,
    number: String,
}

impl Story {
    async fn new(name: &str) -> Self {
        let host = GitHost::shared().await;
        let mut world = World::hosted(name, &Site::Gitea(host)).await;
        world.add(QUICK, &App::new("web", 1));
        let path = format!("repos/owner/{}", world.space.name);
        let number = host.want(200, "owner", "GET", &path, None).await["id"].to_string();
        let binary = Binary::new(&world);
        let pinned =
            world.installation_text().replace("forge: {kind", &format!("forge: {{repositoryId: {number}, kind"));
        std::fs::write(binary.path("installation.yaml"), pinned).unwrap();
        Self { host, world, binary, path, number }
    }

    /// Gives the repository another name; where it lies by then.
    async fn rename(&self, from: &str, to: &str) -> Origin {
        self.host.want(200, "owner", "PATCH", from, Some(json!({"name": to}))).await;
        Origin::at(&self.world.origin.path().with_file_name(format!("{to}.git")))
    }

    /// Waits until the rollout waits for that, and until Git was asked a few times more after that.
    async fn until_it_waits(&self, reason: Reason) {
        let address = self.binary.address("one").await;
        let numbers = async || reqwest::get(format!("http://{address}/metrics")).await.ok()?.text().await.ok();
        let told = format!("tidegate_waiting{{reason=\"{}\"}} 1", reason.as_str());
        eventually(&told, async || numbers().await?.lines().any(|line| line == told).then_some(())).await;
        let looks = async || {
            let numbers = numbers().await?;
            let counts =
                numbers.lines().filter(|line| line.starts_with("tidegate_git_requests_total{operation=\"look"));
            Some(counts.filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok()).sum::<u64>())
        };
        let before = looks().await.unwrap();
        eventually("more looks", async || (looks().await? >= before + 3).then_some(())).await;
    }

    /// What the controller has written to the cluster since then, but its Lease.
    async fn writes_since(&self, start: Mark) -> Vec<Request> {
        let asked = self.world.requests_since(start).await;
        asked.into_iter().filter(|request| request.is_write() && request.resource != "leases").collect()
    }

    async fn image(&self) -> String {
        let web = self.world.get("Deployment", "web").await.unwrap();
        web["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap().to_owned()
    }
}

/// All branches.
fn refs(origin: &Origin) -> String {
    origin.git(&["for-each-ref"])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attack_22_who_takes_the_name_of_the_repository_moves_nothing() {
    let story = Story::new("renamed").await;
    let Story { host, world, binary, path, number } = &story;
    let (name, elsewhere) = (&world.space.name, format!("{}-ours", world.space.name));
    let process = binary.start("one", "", &[]);
    world.until_steady(Rest::Initialized).await;
    let said = binary.doctor("table").await;
    assert!(said.contains(&format!("is number {number} there, as it should be")), "{said}");

    // The host leads from the old name to the new one. Nobody goes that way: by whom it will lead tomorrow, nobody knows.
    let ours = story.rename(path, &elsewhere).await;
    let known = ours.tip(STATE);
    ours.commit("main", &[("it/web.yaml", Some(App::new("web", 2).text().as_bytes()))], "version 2");
    let start = world.bed.mark().await;
    story.until_it_waits(Reason::GitAway).await;
    assert_eq!(ours.tip(STATE), known);

    // What takes the name has the same past, and one commit more.
    let evil = host.repository(name).await.origin;
    evil.git(&["fetch", "--quiet", ours.path().to_str().unwrap(), "+refs/heads/*:refs/heads/*"]);
    let trap = evil.commit("main", &[("it/web.yaml", Some(App::new("web", 9).text().as_bytes()))], "version 9");
    let before = refs(&evil);
    story.until_it_waits(Reason::RepositoryReplaced).await;

    // Nothing was written, nothing of it was read, and nobody there was told anything.
    let writes = story.writes_since(start).await;
    assert!(writes.is_empty(), "{writes:#?}");
    assert_eq!(story.image().await, "example.test/web:1");
    assert_eq!((refs(&evil), host.pulls(name).await), (before, Vec::new()));
    assert!(Site::Gitea(host).statuses(name, &trap).await.is_empty());
    let cache = Origin::at(&binary.path("cache-one").join("repository.git"));
    let sought = cache.git_with(&["cat-file", "--batch-check"], format!("{trap}\n").as_bytes());
    assert_eq!(String::from_utf8(sought).unwrap(), format!("{trap} missing\n"));
    let log = binary.log("one");
    let token = std::fs::read_to_string(host.token_file("bot")).unwrap();
    assert!(log.contains("another repository lies there: only retreats run") && !log.contains(token.trim()), "{log}");

    let said = binary.doctor("table").await;
    assert!(said.contains(&format!("the Installation means number {number}: another has its name")), "{said}");

    // Once ours has its name again, all goes on with what it has wanted since.
    host.want(204, "owner", "DELETE", path, None).await;
    story.rename(&format!("repos/owner/{elsewhere}"), name).await;
    world.until_steady(Rest::Succeeded).await;
    assert_eq!(story.image().await, "example.test/web:2");
    drop(process);
    world.assert_kept();
}
