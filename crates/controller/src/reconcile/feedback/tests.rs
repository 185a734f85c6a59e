//! What people's pull requests come to, with a Git host in this process and a repository on this machine.

use super::super::source::Source;
use super::super::testing::{STATE, World, id, leading, manifest, moved, rollout, steady};
use super::*;
use crate::forge::host::Pass;
use crate::forge::host::testing::{REPOSITORY, Server, USER};
use crate::manifest::installation::{self, Access, PullHost};
use crate::record::store::print_state;
use serde_json::{Value, json};

/// People, their host, and a process that leads.
struct Story {
    world: World,
    source: Source,
    view: Arc<GitView>,
    kind: HostKind,
    server: Server,
    lead: Lead,
    clock: Clock,
}

impl Story {
    async fn new() -> Self {
        Self::on(HostKind::Github).await
    }

    async fn on(kind: HostKind) -> Self {
        let (world, clock) = (World::new().await, Clock::default());
        let mut source = world.source("c");
        let view = moved(&mut source, None).await;
        let (state, sets) = steady(&view, "a", 5);
        let (root, set) = (format!("rollouts/{}", id("a")), sets.keys().next().unwrap().short().to_owned());
        let files = [
            (format!("{root}/state.yaml"), print_state(&state)),
            (format!("{root}/sets/{set}/app.yaml"), manifest("a", "a:1")),
        ];
        let files = files.each_ref().map(|(path, text)| (path.as_str(), Some(text.as_str())));
        world.commit(STATE, &files).await;
        let view = moved(&mut source, None).await;
        let lead = leading(&clock).await;
        Self { world, source, view, kind, server: Server::start(kind).await, lead, clock }
    }

    /// A process that knows nothing yet.
    fn reader(&self) -> Reader {
        let token_file = self.world.dir.path().join("token");
        std::fs::write(&token_file, "token").unwrap();
        self.reader_by(Access::Token(token_file))
    }

    fn reader_by(&self, access: Access) -> Reader {
        let api = self.server.api();
        let (kind, owner, name) = (self.kind, "acme".to_owned(), "shop".to_owned());
        let site = PullHost { kind, api, owner, name, access };
        let now = || {
            let clock = self.clock.clone();
            Box::new(move || clock.now())
        };
        let pass = Pass::new(&site, now()).unwrap();
        Reader::new(Setting {
            host: Host::new(site, pass, Box::new(|_, _| {}), now()).unwrap(),
            kind,
            store: self.source.store().clone(),
            lead: self.lead.clone(),
            clock: self.clock.clone(),
            instance: "prod".parse().unwrap(),
            main: RefName::branch("main").unwrap(),
            caps: Caps::default(),
            poll: Duration::from_secs(1),
        })
    }

    /// The same, as the controller makes it.
    fn shipped(&self) -> Reader {
        let Setting { host, kind, store, lead, clock, main, .. } = self.reader().setting;
        let text = "apiVersion: tidegate.io/v1alpha1\nkind: Installation\nspec:\n  instance: prod\n  \
                    repository: {url: \"https://git.example.test/acme/shop.git\"}\n  clusters: {home: {inCluster: {}}}\n";
        let of = installation::parse(&"installation.yaml".parse().unwrap(), text.as_bytes()).unwrap();
        Reader::new(Setting::new(host, kind, &of, main, &store, &lead, &clock))
    }

    /// Commits to a branch that starts from main; its head.
    async fn branch(&self, name: &str, files: &[(&str, Option<&str>)]) -> CommitId {
        let main = self.view.tips.main.clone();
        self.world.commit_on(name, main, files).await
    }

    fn open(&self, author: u64, head: &CommitId) -> u64 {
        let number = self.server.open(author, "topic", "main", "");
        self.server.change(number, json!({"base": {"label": "acme:main", "ref": "main", "sha": "0".repeat(40)}}));
        self.push(number, head);
        number
    }

    fn push(&self, number: u64, head: &CommitId) {
        let repo = json!({"id": REPOSITORY + 1});
        self.server.change(number, json!({"head": {"label": "eve:topic", "ref": "topic", "sha": head, "repo": repo}}));
    }

    /// What was said: of commits and of pull requests, in this order, each with its text.
    fn said(&self) -> Vec<(String, String)> {
        self.server.state().comments.clone()
    }

    /// What was asked since the last time, without what it was asked of.
    fn asked(&self) -> Vec<String> {
        let asked = std::mem::take(&mut self.server.state().asked);
        asked.into_iter().map(|(what, _)| what.replace("/api/v3/repos/acme/shop", "")).collect()
    }

    fn writes(&self) -> Vec<String> {
        self.asked().into_iter().filter(|what| !what.starts_with("GET ")).collect()
    }
}

/// The mark and the words of a commit status.
fn status(text: &str) -> (String, String) {
    let status: Value = serde_json::from_str(text).unwrap();
    let word = |name: &str| status[name].as_str().unwrap().to_owned();
    let name = if status["name"].is_null() { "context" } else { "name" };
    assert_eq!(word(name), "tidegate/prod/manifests");
    (word("state"), word("description"))
}

mod checks;

const FILE: &str = "teams/shop/a/rollout.yaml";

#[tokio::test]
async fn a_bad_manifest_is_told_at_its_line_and_a_mend_in_the_same_comment() {
    told_and_mended(HostKind::Github, "failure").await;
    told_and_mended(HostKind::Gitlab, "failed").await;
}

async fn told_and_mended(kind: HostKind, failure: &str) {
    let (story, bad) = (Story::on(kind).await, rollout("a").replace("kind: Deployment", "kind: Deploymint"));
    let mut reader = story.reader();
    let head = story.branch("topic", &[(FILE, Some(&bad))]).await;
    let number = story.open(5, &head);
    reader.turn(&story.view).await.unwrap();
    let said = story.said();
    assert_eq!((said.len(), said[0].0.as_str(), &said[1].0), (2, head.as_str(), &number.to_string()));
    let (mark, words) = status(&said[0].1);
    assert_eq!(mark, failure);
    assert!(words.starts_with("1 finding: teams/shop/a/rollout.yaml:6:18:"), "{words}");
    let blob = if kind == HostKind::Gitlab { "-/blob" } else { "blob" };
    let page = format!("http://{}/acme/shop/{blob}/{head}/teams/shop/a/rollout.yaml", story.server.address);
    let place = format!("**[teams/shop/a/rollout.yaml:6:18](<{page}#L6>)** `Schema`: ");
    assert!(said[1].1.contains(&place), "{place} in {}", said[1].1);

    // Nothing new costs one list, by its ETag; another process finds what was said.
    story.asked();
    let spent = story.server.state().spent;
    reader.turn(&story.view).await.unwrap();
    assert_eq!((story.asked().len(), story.server.state().spent), (1, spent));
    story.reader().turn(&story.view).await.unwrap();
    assert_eq!((story.writes(), story.said().len()), (vec![], 2));

    let head = story.branch("topic", &[("teams/shop/a/app.yaml", Some(&manifest("a", "a:2")))]).await;
    story.push(number, &head);
    reader.turn(&story.view).await.unwrap();
    let said = story.said();
    assert_eq!((said.len(), said[2].0.as_str()), (3, head.as_str()), "one more status, and the same comment");
    assert_eq!(status(&said[2].1), ("success".to_owned(), "no findings; 1 rollout changed".to_owned()));
    assert!(said[1].1.contains("- **shop/a**: Run 7 brings"), "{}", said[1].1);
    assert!(said[1].1.contains("**promotion now, done once its pods are ready**"), "{}", said[1].1);

    // What is merged or closed is no longer looked at.
    story.server.change(number, json!({"state": "closed", "merged_at": "2026-01-01T00:00:00Z"}));
    let head = story.branch("topic", &[(FILE, Some(&bad))]).await;
    story.push(number, &head);
    story.asked();
    reader.turn(&story.view).await.unwrap();
    assert_eq!((story.writes(), reader.looked.len()), (vec![], 0));
}

#[tokio::test]
async fn only_what_is_new_to_main_is_a_finding_and_only_manifests_are_looked_at() {
    let mut story = Story::new().await;
    story.world.commit("main", &[("teams/shop/b/rollout.yaml", Some("kind: [Rollout"))]).await;
    story.view = moved(&mut story.source, None).await;
    let head = story.branch("topic", &[("teams/shop/a/app.yaml", Some(&manifest("a", "a:2")))]).await;
    story.open(5, &head);
    let ours = story.branch("ours", &[(FILE, None)]).await;
    let number = story.open(USER, &ours);
    story.reader().turn(&story.view).await.unwrap();
    let said = story.said();
    assert_eq!((said.len(), status(&said[0].1).0.as_str()), (2, "success"), "{said:#?}");
    // The stand-in's pages are two long.
    story.server.change(number, json!({"state": "closed"}));
    let elsewhere = story.branch("docs", &[("README.md", Some("x"))]).await;
    let number = story.open(5, &elsewhere);
    story.reader().turn(&story.view).await.unwrap();
    assert_eq!(story.said().len(), 2);

    // Where something was said, what is so now is said.
    let bad = story.branch("docs", &[(FILE, Some("kind: [Rollout"))]).await;
    story.push(number, &bad);
    let mut reader = story.reader();
    reader.turn(&story.view).await.unwrap();
    assert_eq!(story.said().len(), 4);
    story.push(number, &elsewhere);
    reader.turn(&story.view).await.unwrap();
    assert_eq!(status(&story.said()[4].1).1, "changes no manifests");
}

#[tokio::test]
async fn attack_100_what_strangers_offer_is_read_within_limits() {
    let story = Story::new().await;
    let origin = git2::Repository::open(story.world.dir.path().join("origin.git")).unwrap();
    let odb = origin.odb().unwrap();
    let main =
        origin.find_commit(git2::Oid::from_str(story.view.tips.main.as_ref().unwrap().as_str()).unwrap()).unwrap();
    let person = git2::Signature::now("Eve", "eve@example.com").unwrap();
    let commit = |tree: git2::Oid, parents: &[&git2::Commit<'_>]| -> CommitId {
        let tree = origin.find_tree(tree).unwrap();
        origin.commit(None, &person, &person, "evil", &tree, parents).unwrap().to_string().parse().unwrap()
    };
    let raw = |name: &str, mode: &str, id: git2::Oid| {
        let bytes = [format!("{mode} {name}\0").as_bytes(), id.as_bytes()].concat();
        odb.write(git2::ObjectType::Tree, &bytes).unwrap()
    };
    let blob = origin.blob(b"../../etc/passwd").unwrap();
    let linked = {
        let team = raw("rollout.yaml", "120000", blob);
        let mut root = origin.treebuilder(Some(&main.tree().unwrap())).unwrap();
        root.insert("evil", team, 0o040_000).unwrap();
        root.write().unwrap()
    };
    let huge = vec![b'#'; 2 << 20];
    let huge = story.branch("huge", &[(FILE, Some(std::str::from_utf8(&huge).unwrap()))]).await;
    let bulk = "#".repeat(1_000_000);
    let names: Vec<String> = (0..17).map(|n| format!("teams/shop/{n}/x.yaml")).collect();
    let texts: Vec<String> = (0..17).map(|n| format!("# {n}\n{bulk}")).collect();
    let many: Vec<_> = names.iter().zip(&texts).map(|(name, text)| (name.as_str(), Some(text.as_str()))).collect();
    let heads = [
        commit(raw(".git", "100644", blob), &[&main]),
        commit(raw("..", "100644", blob), &[&main]),
        commit(linked, &[&main]),
        commit(main.tree_id(), &[]),
        huge,
        story.branch("many", &many).await,
    ];
    for head in &heads {
        story.open(5, head);
    }
    // The stand-in's pages are two long.
    let mut reader = story.reader();
    for _ in 0..3 {
        reader.turn(&story.view).await.unwrap();
        let seen: Vec<u64> = reader.looked.keys().copied().collect();
        seen.iter().for_each(|number| story.server.change(*number, json!({"state": "closed"})));
    }
    let of = |head: &CommitId| {
        let all = story.said();
        all.iter().find(|(of, _)| of == head.as_str()).map(|(_, text)| status(text)).unwrap_or_default()
    };
    let told: Vec<(String, String)> = heads.iter().map(of).collect();
    assert!(told[0].1.contains("Git's own directory") && told[1].1.contains("means a directory"), "{told:#?}");
    assert_eq!(told[2].0, "success", "a link that nobody lists is a warning: {told:#?}");
    assert!(told[3].1.contains("no commit in common"), "{told:#?}");
    assert!(told[4].1.contains("rollout.yaml:1:1"), "{told:#?}");
    assert!(told[5].1.contains("what it changes, in bytes exceeds the limit"), "{told:#?}");
    // Nothing of it came where the record is read from.
    let main = story.view.tips.main.as_ref().unwrap();
    assert!(matches!(story.source.store().is_ancestor(main, &heads[0]).await, Err(GitError::Missing(_))));
}

#[tokio::test]
async fn what_main_has_changed_too_is_not_checked() {
    let mut story = Story::new().await;
    let file = "teams/shop/a/app.yaml";
    let head = story.branch("topic", &[(file, Some(&manifest("a", "a:2")))]).await;
    story.world.commit("main", &[(file, Some(&manifest("a", "a:3")))]).await;
    story.view = moved(&mut story.source, None).await;
    story.open(5, &head);
    story.reader().turn(&story.view).await.unwrap();
    let said = story.said();
    assert_eq!(status(&said[0].1).0, "pending");
    assert!(said[1].1.contains("- teams/shop/a/app.yaml\n"), "{}", said[1].1);
}

/// Merging by lines takes memory for each of them, and a line may be one byte.
#[tokio::test]
async fn attack_100_a_large_file_that_main_has_changed_too_is_not_merged() {
    for (lines, mark) in [(10, "success"), (300 << 10, "pending")] {
        let mut story = Story::new().await;
        let file = "teams/shop/a/app.yaml";
        let theirs = format!("{}{}", manifest("a", "a:1"), "\n".repeat(lines));
        let head = story.branch("topic", &[(file, Some(&theirs))]).await;
        story.world.commit("main", &[(file, Some(&format!("# ours\n{}", manifest("a", "a:1"))))]).await;
        story.view = moved(&mut story.source, None).await;
        story.open(5, &head);
        story.reader().turn(&story.view).await.unwrap();
        assert_eq!(status(&story.said()[0].1).0, mark, "{:?}", story.said());
    }
}

#[tokio::test]
async fn most_of_what_the_host_allows_is_left_to_what_rollouts_need() {
    let story = Story::new().await;
    let head = story.branch("topic", &[(FILE, None)]).await;
    story.open(5, &head);
    // Of a hundred.
    story.server.state().spent = 40;
    let limited = story.shipped().turn(&story.view).await;
    assert!(matches!(limited, Err(Error::Host(HostError::Limited(1..=60)))), "{limited:?}");
    assert_eq!((story.asked().len(), story.said()), (1, vec![]));
}

#[tokio::test]
async fn no_more_than_a_hundred_things_are_said_within_an_hour() {
    let story = Story::new().await;
    let head = story.branch("topic", &[(FILE, None)]).await;
    story.open(5, &head);
    let (mut reader, now) = (story.reader(), story.clock.now());
    reader.said = vec![now; SAID];
    reader.turn(&story.view).await.unwrap();
    assert_eq!((story.said(), reader.looked.len()), (vec![], 0), "it is not forgotten");
    // The first was said an hour ago.
    reader.said[0] = now - TimeDelta::hours(1);
    reader.turn(&story.view).await.unwrap();
    assert_eq!((story.said().len(), reader.looked.len(), reader.said.len()), (2, 1, SAID));
}

#[tokio::test]
async fn a_refusal_of_the_host_stops_nothing_and_a_limit_stops_all() {
    let story = Story::new().await;
    let head = story.branch("topic", &[(FILE, None)]).await;
    story.open(5, &head);
    let fault = |at, status| {
        let (headers, body) = (Vec::new(), "{\"message\": \"no\"}".to_owned());
        story.server.state().fault = Some(crate::forge::host::testing::Fault { at, status, headers, body });
    };
    fault("statuses", 403);
    let mut reader = story.reader();
    reader.turn(&story.view).await.unwrap();
    assert_eq!((story.said().len(), reader.looked.len()), (1, 1), "the comment comes without");
    fault("comments", 429);
    let mut reader = story.reader();
    let limited = reader.turn(&story.view).await;
    let Err(Error::Host(HostError::Limited(pause @ 1..=60))) = limited else { panic!("{limited:?}") };
    assert_eq!(
        reader.backoff.after(limited.map(drop), Duration::from_secs(1), "x"),
        Duration::from_secs(pause.unsigned_abs())
    );
    assert!(!reader.backoff.is_fine());
}

#[tokio::test]
async fn one_that_cannot_be_fetched_keeps_no_other_waiting() {
    let story = Story::new().await;
    let head = story.branch("topic", &[(FILE, None)]).await;
    let all = [story.open(5, &head), story.open(5, &head)];
    let [origin, aside] = ["origin.git", "aside"].map(|name| story.world.dir.path().join(name));
    std::fs::rename(&origin, &aside).unwrap();
    let mut reader = story.reader();
    assert!(matches!(reader.turn(&story.view).await, Err(Error::Git(_))));
    let looked = |reader: &Reader| all.map(|number| reader.looked.get(&number).map(|look| look.main.is_some()));
    assert_eq!(looked(&reader), [Some(false); 2], "the second one was tried too");
    std::fs::rename(&aside, &origin).unwrap();
    assert_eq!(reader.turn(&story.view).await.unwrap(), Came::Done);
    assert_eq!(looked(&reader), [Some(true); 2]);
}
