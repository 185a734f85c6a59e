//! A stranger's pull request from a fork on a real Git host, Gitea: what is told there, and what nobody notices. What people are told on
//! those of a branch are scenarios.

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
