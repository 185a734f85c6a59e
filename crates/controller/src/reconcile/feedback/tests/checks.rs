//! The same where we are a GitHub App: each finding is at its line.

use super::*;
use crate::sign::testing::Registered;

impl Story {
    /// A process that is an App and knows nothing yet.
    fn app(&self) -> Reader {
        let (id, key_file) = ("123".to_owned(), self.world.dir.path().join("key.pem"));
        if self.server.state().app.is_none() {
            let there = Registered::new(&id);
            std::fs::write(&key_file, there.pkcs1()).unwrap();
            self.server.state().app = Some((there, self.clock.now().into()));
        }
        self.reader_by(Access::App(installation::App { id, installation: None, key_file }))
    }

    /// What the check of a commit came to, its summary, and the places and titles of its annotations.
    fn checked(&self, head: &CommitId) -> (String, String, Vec<String>) {
        let runs = self.server.state().checks.of(head.as_str());
        let [(run, annotations)] = runs.as_slice() else { panic!("one run: {runs:#?}") };
        assert_eq!((&run["name"], &run["status"]), (&json!("tidegate/prod/manifests"), &json!("completed")));
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let shown = annotations.iter().map(|one| {
            assert_eq!((&one["start_line"], &one["annotation_level"]), (&one["end_line"], &json!("failure")));
            assert!(!one.to_string().contains("canary"), "{one}");
            format!("{}:{}:{} {}", text(&one["path"]), one["start_line"], one["start_column"], text(&one["title"]))
        });
        (text(&run["conclusion"]), text(&run["output"]["summary"]), shown.collect())
    }
}

#[tokio::test]
async fn findings_are_at_their_lines_on_github_and_a_mend_is_a_success() {
    let story = Story::new().await;
    let mut reader = story.app();
    let secret = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: token}\nstringData: {token: canary-5f3a}\n";
    let (bad, leaky) = (rollout("a").replace("kind: Deployment", "kind: Deploymint"), manifest("b", "b:1") + secret);
    let head = story.branch("topic", &[(FILE, Some(&bad)), ("teams/shop/b/app.yaml", Some(&leaky))]).await;
    let number = story.open(5, &head);
    reader.turn(&story.view).await.unwrap();
    let (conclusion, summary, shown) = story.checked(&head);
    assert_eq!((conclusion.as_str(), shown.len()), ("failure", 2), "{shown:#?}");
    let line = manifest("b", "b:1").lines().count() + 3;
    assert_eq!(shown[0], "teams/shop/a/rollout.yaml:6:18 Schema");
    assert!(
        shown[1].starts_with(&format!("teams/shop/b/app.yaml:{line}:")) && shown[1].ends_with(" SecretData"),
        "{shown:?}"
    );
    assert!(summary.contains("**2 findings.**") && !summary.contains("canary"), "{summary}");
    let said = story.said();
    assert_eq!((said.len(), &said[0].0), (1, &number.to_string()), "a comment, and no status beside the check");

    // Another process finds both.
    story.asked();
    story.app().turn(&story.view).await.unwrap();
    let writes = story.writes();
    assert!(writes.iter().all(|what| what.contains("access_tokens")), "{writes:?}");

    let head = story.branch("topic", &[("teams/shop/a/app.yaml", Some(&manifest("a", "a:2")))]).await;
    story.push(number, &head);
    reader.turn(&story.view).await.unwrap();
    let (conclusion, summary, shown) = story.checked(&head);
    assert_eq!((conclusion.as_str(), shown.len(), story.said().len()), ("success", 0, 1));
    assert!(summary.contains("- **shop/a**: Run 7 brings"), "{summary}");
}

#[tokio::test]
async fn lines_that_the_commit_has_elsewhere_are_in_the_list_alone() {
    let mut story = Story::new().await;
    let bad = rollout("a").replace("kind: Deployment", "kind: Deploymint");
    let head =
        story.branch("topic", &[(FILE, Some(&bad)), ("teams/shop/b/rollout.yaml", Some("kind: [Rollout"))]).await;
    story.world.commit("main", &[(FILE, Some(&format!("# ours\n{}", rollout("a"))))]).await;
    story.view = moved(&mut story.source, None).await;
    story.open(5, &head);
    story.app().turn(&story.view).await.unwrap();
    let (conclusion, summary, shown) = story.checked(&head);
    assert_eq!((conclusion.as_str(), shown.len()), ("failure", 1), "{shown:#?}");
    assert!(shown[0].starts_with("teams/shop/b/rollout.yaml:1:"), "{shown:?}");
    assert!(
        summary.contains("rollout.yaml:7:18**") && summary.contains("1 of these is not shown at a line"),
        "{summary}"
    );
}

/// What main has removed since is not read again with what it came from.
#[tokio::test]
async fn attack_100_of_the_commit_only_what_has_findings_is_looked_at() {
    let mut story = Story::new().await;
    let (large, link) = ("teams/shop/b/large.yaml", "teams/shop/b/rollout.yaml");
    story.world.commit("main", &[(large, Some(&"# \n".repeat(10_000)))]).await;
    story.view = moved(&mut story.source, None).await;
    let head = story.branch("topic", &[(link, Some("kind: [Rollout"))]).await;
    story.world.commit("main", &[(large, None)]).await;
    story.view = moved(&mut story.source, None).await;
    story.open(5, &head);
    let mut reader = story.app();
    let small = story.world.source_with("small", |config| config.limits.fetch_bytes = 20_000);
    reader.setting.store = small.store().clone();
    reader.turn(&story.view).await.unwrap();
    let (conclusion, _, shown) = story.checked(&head);
    assert_eq!((conclusion.as_str(), shown.len()), ("failure", 1), "{shown:?}");
}

#[tokio::test]
async fn attack_100_many_findings_are_many_things_said() {
    let story = Story::new().await;
    let names: Vec<String> = (0..120).map(|n| format!("teams/shop/{n}/rollout.yaml")).collect();
    let many: Vec<_> = names.iter().map(|name| (name.as_str(), Some("kind: [Rollout"))).collect();
    let head = story.branch("many", &many).await;
    story.open(5, &head);
    let mut reader = story.app();
    reader.turn(&story.view).await.unwrap();
    assert_eq!((story.checked(&head).2.len(), reader.said.len()), (120, 3), "each request counts");
}
