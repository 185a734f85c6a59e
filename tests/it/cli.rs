//! The whole way of one version, told by the real program: a person in a clone, the controller, a cluster, a Git server
//! that wants a password.

mod signed;

use crate::support::cluster::Bed;
use crate::support::git_server::GitServer;
use crate::support::origin::Origin;
use crate::tree::source_dir;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::process::Command;

/// A person's clone and a controller of one repository.
struct Story {
    home: tempfile::TempDir,
    origin: Origin,
    server: GitServer,
}

/// What a program printed, and how it ended.
struct Said {
    out: String,
    err: String,
    code: i32,
}

impl Said {
    #[track_caller]
    fn ends(self, code: i32) -> String {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self.out
    }

    #[track_caller]
    fn json(self) -> Value {
        serde_json::from_str(&self.ends(0)).unwrap()
    }
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
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        self.spawn(command.current_dir(self.clone()).args(arguments)).await
    }

    /// The controller, until nothing moves.
    async fn controller(&self) -> Said {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        let at = |name: &str| self.home.path().join(name).display().to_string();
        let (config, cache) = (at("installation.yaml"), at("cache"));
        let arguments =
            ["run", "--config", &config, "--cache", &cache, "--once", "--timeout", "2m", "--listen", "127.0.0.1:0"];
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

/// Runs a program without a terminal, with the settings of a person who lives there.
async fn spawn(home: &Path, command: &mut Command) -> Said {
    let path = std::env::var_os("PATH").unwrap_or_default();
    command.env_clear().env("PATH", path).env("HOME", home).env("GIT_CONFIG_NOSYSTEM", "1");
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output().await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Said { out: text(output.stdout), err: text(output.stderr), code: output.status.code().unwrap() }
}

/// Runs tidegate in a directory, for somebody without settings.
async fn tidegate(dir: &Path, arguments: &[&str]) -> Said {
    spawn(dir, Command::new(env!("CARGO_BIN_EXE_tidegate")).current_dir(dir).args(arguments)).await
}

/// The example repository's rollout of podinfo, in that namespace, with short times.
fn example(namespace: &str) -> Vec<(String, String)> {
    let policy = "apiVersion: tidegate.io/v1alpha1\nkind: Policy\nspec:\n  tenants:\n    shop: {path: teams/shop, \
                  namespaces: [NAMESPACE], clusters: [home]}\n";
    let rollout = "apiVersion: tidegate.io/v1alpha1\nkind: Rollout\nmetadata: {name: podinfo, namespace: NAMESPACE}\nspec:\n  \
                   manifests: [podinfo.yaml]\n  target: {kind: Deployment, name: podinfo}\n  \
                   traffic: {gatewayAPI: {httpRoute: podinfo, service: podinfo}, settle: 0s, drain: 0s}\n  phases:\n  \
                   - name: tenth\n    before: {approval: pullRequest}\n    expose: {weight: 10}\n    soak: 1s\n  \
                   promotion: {bake: 1s}\n  onFailure: {revert: none}\n";
    vec![
        ("tidegate.yaml".to_owned(), policy.replace("NAMESPACE", namespace)),
        ("teams/shop/podinfo/rollout.yaml".to_owned(), rollout.replace("NAMESPACE", namespace)),
        ("teams/shop/podinfo/podinfo.yaml".to_owned(), manifest()),
    ]
}

/// The example repository's manifests of podinfo: they name no namespace.
fn manifest() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples-repo/teams/shop/podinfo/podinfo.yaml");
    std::fs::read_to_string(path).unwrap()
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
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    let elsewhere = story.spawn(command.current_dir(&below).arg("plan")).await.ends(0);
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    let named = story.spawn(command.current_dir("/").arg("plan").arg(&below)).await.ends(0);
    assert_eq!((&elsewhere, &named), (&plan, &plan));
    let since = "as if nothing had ever run, since http";
    assert!(plan.contains(since) && plan.contains("has no branch tidegate/<instance>/state"), "{plan}");

    // A stranger is told what is missing.
    let url = story.server.url("fleet");
    let mut stranger = Command::new(env!("CARGO_BIN_EXE_tidegate"));
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

#[tokio::test]
async fn who_cannot_be_asked_has_to_say_yes() {
    let dir = tempfile::tempdir().unwrap();
    for word in ["abort", "rollback", "delete"] {
        let said = tidegate(dir.path(), &[word, "shop/podinfo"]).await;
        assert!(said.err.lines().count() == 1 && said.err.contains("pass --yes"), "{}", said.err);
        said.ends(2);
    }
}

#[tokio::test]
async fn a_reason_that_would_be_cut_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let said = tidegate(dir.path(), &["hold", "shop/podinfo", "--reason", &"ü".repeat(1_025)]).await;
    assert!(said.err.contains("has 1025 characters; at most 1024"), "{}", said.err);
    said.ends(2);
    let said = tidegate(dir.path(), &["hold", "shop/podinfo", "--reason", &"ü".repeat(1_024)]).await;
    assert!(said.err.contains("is in no Git clone"), "{}", said.err);
    said.ends(2);
}

#[tokio::test]
async fn files_are_those_of_the_repository_that_a_directory_lies_in() {
    let home = tempfile::tempdir().unwrap();
    let (home, shown) = (home.path(), |path: &Path| path.canonicalize().unwrap().display().to_string());
    let clone = home.join("clone");
    for (path, text) in example("shop") {
        std::fs::create_dir_all(clone.join(&path).parent().unwrap()).unwrap();
        std::fs::write(clone.join(&path), text).unwrap();
    }
    let below = clone.join("teams/shop");
    // No repository, or one that is no clone of another: there is nothing that the files could be compared with.
    let said = tidegate(&below, &["plan"]).await;
    let missing = format!("error: the directory {} is in no Git clone;", shown(&clone));
    assert!(said.err.starts_with(&missing) && said.err.contains("tidegate plan --without-record"), "{}", said.err);
    said.ends(2);
    spawn(home, Command::new("git").arg("init").arg("--quiet").arg(&clone)).await.ends(0);
    let said = tidegate(&below, &["plan"]).await;
    let missing = format!("error: the clone {} has no remote \"origin\";", shown(&clone));
    assert!(said.err.starts_with(&missing) && said.err.contains("tidegate plan --without-record"), "{}", said.err);
    said.ends(2);
    let plan = tidegate(&below, &["plan", "--without-record"]).await.ends(0);
    assert!(plan.contains("shop/podinfo  first sight") && plan.contains("Compared with no record"), "{plan}");
    assert_eq!(tidegate(&below, &["validate"]).await.ends(0), tidegate(&clone, &["validate"]).await.ends(0));

    // Without a policy it is no repository of ours.
    std::fs::remove_file(clone.join("tidegate.yaml")).unwrap();
    std::fs::write(home.join("tidegate.yaml"), "that of another repository").unwrap();
    let said = tidegate(&below, &["plan", "--without-record"]).await;
    assert!(said.err.contains(&format!("there is no tidegate.yaml in {},", shown(&below))), "{}", said.err);
    said.ends(2);
    let text = tidegate(&clone, &["validate"]).await.ends(1);
    assert!(text.contains(&format!("there is no policy in {}\n", shown(&clone))), "{text}");
}

/// What `helm uninstall` asks: a record that is gone is no proof that nothing is open.
#[tokio::test]
async fn without_a_record_nothing_is_open_only_where_nothing_is_declared() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fleet.git");
    tidegate::git::create_bare(&path).unwrap();
    let origin = Origin::at(&path);
    let repo = path.display().to_string();
    let ask = async || {
        tidegate(dir.path(), &["status", "--open", "--exit-code", "--instance", "prod", "--repo", &repo]).await
    };
    // Another branch may be meant.
    assert!(ask().await.err.contains("its record is missing, and main declares rollouts, or cannot be read\n"));
    origin.commit("main", &[("README.md", Some(b"soon"))], "first");
    assert_eq!(ask().await.ends(0), "No run of prod is open.\n");
    let files = example("shop");
    let files: Vec<(&str, Option<&[u8]>)> =
        files.iter().map(|(path, text)| (path.as_str(), Some(text.as_bytes()))).collect();
    origin.commit("main", &files, "a rollout");
    let said = ask().await;
    assert!(
        said.err.contains("its record is missing, and main declares rollouts, or cannot be read\n"),
        "{}",
        said.err
    );
    assert!(said.err.contains("tidegate/prod/state"), "{}", said.err);
    said.ends(1);
    // One that cannot even be told by its name counts, too.
    let all: Vec<(&str, Option<&[u8]>)> = files.iter().map(|(path, _)| (*path, None)).collect();
    origin.commit("main", &[&all[..], &[("teams/shop/rollout.yaml", Some(b"{"))]].concat(), "broken");
    ask().await.ends(1);
}

#[tokio::test]
async fn warnings_fail_a_strict_validation_alone() {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in example("shop") {
        std::fs::create_dir_all(dir.path().join(&path).parent().unwrap()).unwrap();
        let text = if path.ends_with("podinfo.yaml") { text.replace("  replicas: 2", "  replica: 2") } else { text };
        std::fs::write(dir.path().join(path), text).unwrap();
    }
    let text = tidegate(dir.path(), &["validate"]).await.ends(0);
    assert!(text.contains("warning[UnknownField]") && text.ends_with(", 0 errors, 1 warning\n"), "{text}");
    assert_eq!(tidegate(dir.path(), &["validate", "--strict"]).await.ends(1), text);
    // Without warnings it changes nothing.
    tidegate(&source_dir(), &["validate", "--strict", "examples-repo"]).await.ends(0);
}

#[tokio::test]
async fn what_cannot_be_used_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file").display().to_string();
    std::fs::write(&file, "").unwrap();
    let gone = dir.path().join("gone").display().to_string();
    let cases: [(&[&str], &str, i32); 6] = [
        (&["status", "--repo", &file], "is a file; a repository is a directory, or a URL", 2),
        (&["status", "--repo", &format!("file://{file}")], "is a file; a repository is a directory, or a URL", 2),
        (&["status", "--repo", &gone], "there is no repository at", 1),
        (&["man", "--dir", &file], "cannot make the directory", 1),
        (&["validate", &gone], "cannot read", 2),
        (&["plan", &gone], "cannot read", 2),
    ];
    for (arguments, why, code) in cases {
        let said = tidegate(dir.path(), arguments).await;
        let name = if arguments.contains(&gone.as_str()) { &gone } else { &file };
        assert!(said.err.contains(why) && said.err.contains(name.as_str()), "{arguments:?}: {}", said.err);
        assert_eq!(said.code, code, "{arguments:?}");
    }
}
