//! People's own pull requests on a real Git host, Gitea, and on stand-ins for GitHub and GitLab: what they are told there, and what
//! nobody notices.

use super::app::{App, GATED};
use super::hosted::open;
use super::world::World;
use crate::support::cluster::eventually;
use crate::support::git_host::GitHost;
use crate::support::origin::Origin;
use crate::support::site::Site;
use serde_json::{Value, json};
use tidegate::record::state::Rest;

/// What a person has done on the host.
struct Offer<'a> {
    host: &'a Site,
    repository: &'a str,
    pull: Value,
}

impl Offer<'_> {
    async fn open<'a>(host: &'a Site, repository: &'a str, user: &str, head: &str) -> Offer<'a> {
        let like = json!({"body": "a new version", "head": {"ref": head}});
        let pull = host.open(user, repository, &like, "main").await;
        Offer { host, repository, pull }
    }

    /// As the host has it now.
    async fn pull_now(&self) -> Value {
        self.host.pull(self.repository, &self.pull).await
    }

    /// All that tidegate's account has said there.
    async fn said(&self) -> Vec<Value> {
        let by = |comment: &Value| [&comment["user"]["login"], &comment["author"]["username"]].contains(&&json!("bot"));
        self.host.said(self.repository, &self.pull).await.into_iter().filter(by).collect()
    }

    /// The marks that a commit of it got.
    async fn marks(&self, head: &str) -> Vec<String> {
        let all = self.host.marks(self.repository, head, "tidegate/it/manifests").await;
        all.into_iter().map(|(mark, _)| mark).collect()
    }

    /// Waits until that commit is said to stand like that, and for the one comment about it.
    async fn until(&self, head: &str, mark: &str) -> Value {
        eventually(&format!("{mark} of {head}"), async || {
            let said = self.said().await;
            assert!(said.len() < 2, "said twice: {said:#?}");
            let of_head = |comment: &Value| comment["body"].as_str().unwrap().contains(head);
            let said = said.into_iter().find(of_head)?;
            let marks = self.marks(head).await;
            assert!(marks.len() < 2, "{marks:?}");
            (marks == [mark]).then_some(said)
        })
        .await
    }
}

/// Pushes a branch `evil` to the fork of a user; its head.
fn push_to_fork(host: &GitHost, name: &str, user: &str, change: impl FnOnce(&Origin)) -> String {
    let token = std::fs::read_to_string(host.token_file(user)).unwrap();
    let url = host.url_of(name).replace("/owner/", &format!("/{user}/"));
    let url = url.replace("://", &format!("://{user}:{}@", token.trim()));
    let dir = tempfile::tempdir().unwrap();
    let clone = Origin::at(dir.path());
    clone.git(&["init", "--quiet", "--bare"]);
    clone.git(&["fetch", "--quiet", &url, "refs/heads/main:refs/heads/evil"]);
    change(&clone);
    clone.git(&["push", "--quiet", &url, "refs/heads/evil:refs/heads/evil"]);
    clone.tip("evil").unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_are_told_on_their_own_pull_requests() {
    people_are_told("offered", &Site::gitea().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_are_told_on_their_own_merge_requests_of_gitlab() {
    people_are_told("offered-gitlab", &Site::gitlab().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_are_told_on_their_own_pull_requests_on_github() {
    let site = Site::github().await;
    people_are_told("offered-github", &site).await;
    site.is_as_described();
}

async fn people_are_told(name: &str, host: &Site) {
    let mut world = World::hosted(name, host).await;
    world.add(GATED, &App::new("web", 1));
    let name = world.space.name.clone();
    world.start();
    world.until_steady(Rest::Initialized).await;

    // A bad manifest.
    let rollout =
        String::from_utf8(world.origin.files(&world.origin.tip("main").unwrap())["it/web.rollout.yaml"].clone())
            .unwrap();
    let bad = rollout.replace("weight: 50", "weight: 500");
    world.origin.git(&["update-ref", "refs/heads/topic", "refs/heads/main"]);
    host.push("reviewer", &name, "topic", ("it/web.rollout.yaml", &bad));
    let offer = Offer::open(host, &name, "reviewer", "topic").await;
    let head = world.origin.tip("topic").unwrap();
    let first = offer.until(&head, "failure").await;
    let line = 1 + bad.lines().position(|line| line.contains("500")).unwrap();
    let body = first["body"].as_str().unwrap();
    // The stand-in for GitHub has its API where no pages are beside it.
    let link = if matches!(host, Site::Github(..)) { "**" } else { "**[" };
    assert!(body.contains(&format!("{link}it/web.rollout.yaml:{line}:")), "{body}");

    // Its mend is told in the same comment, with what is to come.
    host.push("reviewer", &name, "topic", ("it/web.rollout.yaml", &rollout));
    host.push("reviewer", &name, "topic", ("it/web.yaml", &App::new("web", 2).text()));
    let head = world.origin.tip("topic").unwrap();
    let second = offer.until(&head, "success").await;
    assert_eq!(second["id"], first["id"]);
    let body = second["body"].as_str().unwrap();
    let timeline = "**tenth after your approval, half 1s later, promotion 1s later, done about 2s later**";
    assert!(body.contains(timeline), "{body}");

    // Another process says nothing again.
    world.kill().await;
    world.start();
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    assert_eq!(offer.until(&head, "success").await["updated_at"], second["updated_at"]);

    // What is merged happens, and is not talked about any more.
    host.merge(&name, &offer.pull_now().await).await;
    host.merge(&name, &open(host, &world, "tenth").await).await;
    world.until_steady(Rest::Succeeded).await;
    assert_eq!(offer.said().await, [second]);
    world.settled(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attack_100_the_pull_request_of_a_fork_moves_nothing() {
    let host = GitHost::shared().await;
    let mut world = World::hosted("forked", &Site::Gitea(host)).await;
    world.add(GATED, &App::new("web", 1));
    let name = world.space.name.clone();
    world.start();
    world.until_steady(Rest::Initialized).await;
    let before = world.origin.tip(super::world::STATE);

    host.want(202, "stranger", "POST", &format!("repos/owner/{name}/forks"), Some(json!({}))).await;
    let evil = "apiVersion: tidegate.io/v1alpha1\nkind: Rollout\nmetadata: {name: evil, namespace: it}\n\
                spec: {manifests: [../../../etc/passwd, \"<!-- --> @everyone ![x](https://evil.example)\"], \
                target: {kind: Deployment, name: evil}}\n";
    let huge = vec![b'#'; 3 << 20];
    let head = push_to_fork(host, &name, "stranger", |fork| {
        let files = [("it/evil.rollout.yaml", Some(evil.as_bytes())), ("it/huge.rollout.yaml", Some(&*huge))];
        fork.commit("evil", &files, "evil");
        let link = fork.object("blob", b"/etc/passwd");
        let stream = format!(
            "commit refs/heads/evil\ncommitter Eve <eve@example.com> 1767300000 +0000\ndata 4\nevil\n\
             from refs/heads/evil^0\nM 120000 {link} it/web.yaml\n"
        );
        fork.git_with(&["fast-import", "--quiet"], stream.as_bytes());
    });
    let site = Site::Gitea(host);
    let offer = Offer::open(&site, &name, "stranger", "stranger:evil").await;
    let said = offer.until(&head, "failure").await;
    let body = said["body"].as_str().unwrap();
    for part in ["it/evil.rollout.yaml:4:", "PathEscape", "it/huge.rollout.yaml:1:1", "TooLarge", "SymlinkIgnored"] {
        assert!(body.contains(part), "{part} in {body}");
    }
    let rest = body.split_once('\n').unwrap().1;
    for bad in ["-->", "<!--", "@everyone", "https://"] {
        assert!(!rest.contains(bad), "{bad} in {rest}");
    }

    // Nobody else notices.
    assert_eq!(world.origin.tip(super::world::STATE), before);
    world.release(&App::new("web", 2));
    host.merge(&name, &open(&site, &world, "tenth").await).await;
    world.until_steady(Rest::Succeeded).await;
    world.settled(&[]).await;
}
