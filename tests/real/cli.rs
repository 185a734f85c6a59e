//! The whole way of one version, told by the real program: a person in a clone, the controller, a cluster, a Git server
//! that wants a password.

mod signed;

use crate::support::PROGRAM;
use crate::support::cluster::{Bed, PATIENCE};
use crate::support::command::{Said, example, manifest, spawn};
use crate::support::git_server::GitServer;
use crate::support::origin::Origin;
use serde_json::Value;
use std::path::{Path, PathBuf};
use tokio::process::Command;

/// A person's clone and a controller of one repository.
struct Story {
    home: tempfile::TempDir,
    origin: Origin,
    server: GitServer,
}

impl Story {
    async fn new() -> Self {
        let (bed, server) = (Bed::shared().await, GitServer::start().await);
        let (home, space, origin) = (tempfile::tempdir().unwrap(), bed.space("cli").await, server.init("fleet"));
        let files = example(&space.name);
        let files: Vec<(&str, Option<&[u8]>)> =
            files.iter().map(|(path, text)| (path.as_str(), Some(text.as_bytes()))).collect();
        origin.commit("main", &files, "first");
        server.require("ana", "s3cret");
        let write = |name: &str, text: &str| std::fs::write(home.path().join(name), text).unwrap();
        write("kubeconfig", &std::fs::read_to_string(&space.kubeconfig).unwrap());
        write("password", "ana:s3cret\n");
        let at = home.path().display();
        write(
            "installation.yaml",
            &format!(
                "apiVersion: tidegate.io/v1alpha1\nkind: Installation\nspec:\n  instance: it\n  \
                 repository: {{url: \"{}\", branch: main, poll: 1s, credentialsFile: {at}/password}}\n  \
                 clusters: {{home: {{kubeconfigFile: {at}/kubeconfig}}}}\n  caps: {{namespaces: [{}]}}\n",
                server.url("fleet"),
                space.name
            ),
        );
        let story = Self { home, origin, server };
        let helper = "!f() { echo username=ana; echo password=s3cret; }; f";
        let clone =
            ["clone", "--quiet", "-c", &format!("credential.helper={helper}"), &story.server.url("fleet"), "clone"];
        story.git(story.home.path(), &clone).await;
        for (key, value) in [("user.name", "Ana"), ("user.email", "ana@example.org")] {
            story.git(&story.clone(), &["config", key, value]).await;
        }
        story
    }

    fn clone(&self) -> PathBuf {
        self.home.path().join("clone")
    }

    async fn git(&self, dir: &Path, arguments: &[&str]) {
        let said = self.spawn(Command::new("git").current_dir(dir).args(arguments)).await;
        said.ends(0);
    }

    async fn spawn(&self, command: &mut Command) -> Said {
        spawn(self.home.path(), command).await
    }

    /// The person's command, in the clone.
    async fn tidegate(&self, arguments: &[&str]) -> Said {
        let mut command = Command::new(PROGRAM);
        self.spawn(command.current_dir(self.clone()).args(arguments)).await
    }

    /// The controller, until nothing moves.
    async fn controller(&self) -> Said {
        let mut command = Command::new(PROGRAM);
        let at = |name: &str| self.home.path().join(name).display().to_string();
        let (config, cache) = (format!("--config={}", at("installation.yaml")), format!("--cache={}", at("cache")));
        let patience = format!("--timeout={}s", PATIENCE.as_secs());
        let arguments = ["run", "--once", "--listen=127.0.0.1:0", &patience, &config, &cache];
        self.spawn(command.args(arguments)).await
    }

    /// Where the rollout stands.
    async fn status(&self) -> Value {
        self.tidegate(&["status", "podinfo", "-o", "json"]).await.json()["rollouts"][0].clone()
    }

    /// Merges a change of the image to main, and brings the clone there.
    async fn merge(&self, image: &str) {
        let path = "teams/shop/podinfo/podinfo.yaml";
        let text = manifest().replace("example.test/podinfo:1", image);
        std::fs::write(self.clone().join(path), &text).unwrap();
        self.origin.commit("main", &[(path, Some(text.as_bytes()))], "change");
        self.git(&self.clone(), &["fetch", "--quiet"]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_goes_its_whole_way_by_commands() {
    let story = Story::new().await;
    let kubeconfig = story.home.path().join("kubeconfig").display().to_string();

    // Before any controller: files can be judged, records cannot.
    story.tidegate(&["validate"]).await.ends(0);
    let said = story.tidegate(&["status"]).await;
    assert!(said.err.contains("has no branch tidegate/<instance>/state"), "{}", said.err);
    said.ends(1);
    let plan = story.tidegate(&["plan"]).await.ends(0);
    assert!(plan.contains("first sight"), "{plan}");

    // Wherever in the clone somebody stands, it is the same repository.
    let below = story.clone().join("teams/shop");
    let mut command = Command::new(PROGRAM);
    let elsewhere = story.spawn(command.current_dir(&below).arg("plan")).await.ends(0);
    let mut command = Command::new(PROGRAM);
    let named = story.spawn(command.current_dir("/").arg("plan").arg(&below)).await.ends(0);
    assert_eq!((&elsewhere, &named), (&plan, &plan));
    let since = "as if nothing had ever run, since http";
    assert!(plan.contains(since) && plan.contains("has no branch tidegate/<instance>/state"), "{plan}");

    // A stranger is told what is missing.
    let url = story.server.url("fleet");
    let mut stranger = Command::new(PROGRAM);
    let said = story.spawn(stranger.current_dir("/").args(["status", "--repo", &url])).await;
    assert!(said.err.contains("refuses access (401)") && !said.err.contains("s3cret"), "{}", said.err);
    said.ends(1);

    // First sight.
    story.controller().await.ends(0);
    let status = story.status().await;
    assert_eq!(status["phase"], "Steady", "{status}");
    assert!(
        story.tidegate(&["diff", "podinfo", "--kubeconfig", &kubeconfig]).await.ends(0).contains("nothing differs")
    );
    story.tidegate(&["approve", "podinfo"]).await.ends(1);

    // A new version: seen, planned, then waiting for a word.
    story.merge("example.test/podinfo:2").await;
    let diff = story.tidegate(&["diff", "podinfo"]).await.ends(1);
    assert!(diff.contains("+          image: example.test/podinfo:2"), "{diff}");
    story.tidegate(&["diff", "podinfo", "--branch", "main"]).await.ends(1);
    let plan = story.tidegate(&["plan", "--kubeconfig", &kubeconfig]).await.ends(0);
    assert!(plan.contains("a run starts") && plan.contains("writes the record"), "{plan}");
    let said = story.controller().await;
    assert!(said.out.contains("Approval"), "{}{}", said.out, said.err);
    said.ends(3);
    let why = story.tidegate(&["why", "podinfo"]).await.ends(0);
    assert!(why.contains("Approval") && why.contains("tidegate approve"), "{why}");
    story.tidegate(&["status", "--exit-code"]).await.ends(3);

    // The word, by a person whose password the credential helper knows.
    let said = story.tidegate(&["approve", "podinfo", "--reason", "looks right"]).await.ends(0);
    assert!(said.contains("may go on to tenth (weight 10)"), "{said}");
    story.controller().await.ends(0);
    let status = story.status().await;
    assert_eq!(status["phase"], "Steady", "{status}");
    let why = story.tidegate(&["why", "podinfo", "-o", "json"]).await.json();
    assert_eq!(why["history"][0]["outcome"], "Promoted", "{why}");

    // And back.
    story.tidegate(&["rollback", "podinfo", "--yes"]).await.ends(0);
    story.controller().await;
    let why = story.tidegate(&["why", "podinfo", "-o", "json"]).await.json();
    assert_eq!((&why["phase"], &why["refused"][0]["outcome"]), (&"Steady".into(), &"RolledBack".into()), "{why}");
    assert_ne!(why["promoted"], status["promoted"]);
}
