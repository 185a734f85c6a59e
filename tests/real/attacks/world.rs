//! One world of the table: the binary that is shipped, the cluster in a process, and the stand-in for GitLab.

use super::api::Api;
use super::watched::{Before, library, limit};
use crate::support::app;
use crate::support::cluster::PATIENCE;
use crate::support::git_host::Hosted;
use crate::support::gitlab::Gitlab;
use crate::support::origin::Origin;
use crate::support::site::Site;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tidegate::record::state::{Consumed, Phase, RolloutState};
use tokio::process::{Child, Command};

pub(super) const STATE: &str = "tidegate/it/state";
pub(super) const DECISIONS: &str = "tidegate/it/decisions";
/// What webhooks are signed with.
pub(super) const HOOK: &str = "canary-hook-b07d9e31";
/// The repository's name on its host.
pub(super) const NAME: &str = "fleet";

pub(super) const ROLLOUT: &str = "apiVersion: tidegate.io/v1alpha1
kind: Rollout
metadata: {name: web, namespace: shop}
spec:
  manifests: [web.yaml]
  target: {kind: Deployment, name: web}
  traffic: {gatewayAPI: {httpRoute: web, service: web}, settle: 0s, drain: 0s}
  phases:
  - {name: tenth, before: {approval: pullRequest}, expose: {weight: 10}}
  progressDeadline: 10m
";

/// The manifests of a version.
pub(super) fn manifests(version: u8) -> String {
    app::manifests(&version.to_string())
}

/// A policy with more for the one tenant.
pub(super) fn policy(more: &str) -> String {
    format!(
        "apiVersion: tidegate.io/v1alpha1\nkind: Policy\nspec:\n  tenants:\n    \
         shop: {{path: shop, namespaces: [shop], clusters: [home]{more}}}\n"
    )
}

/// Runs a program to its end; what it said.
pub(super) async fn run(program: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(program);
    let said = command.args(arguments).stdin(Stdio::null()).output().await.unwrap_or_else(|why| {
        panic!("{program}: {why}. Install it, on Debian or Ubuntu: sudo apt-get install gcc openssl openssh-client util-linux")
    });
    assert!(said.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&said.stderr));
    String::from_utf8_lossy(&said.stdout).into_owned()
}

/// One world.
pub(super) struct Story {
    /// They end first.
    processes: BTreeMap<&'static str, Child>,
    pub(super) api: Api,
    pub(super) site: Site,
    pub(super) origin: Origin,
    /// What the Installation says of the repository, and beside it.
    pub(super) repository: String,
    pub(super) more: String,
    /// The program that may be started.
    pub(super) starts: String,
    /// An address beside those of the cluster and the host.
    pub(super) beside: Option<String>,
    /// Whether writes may be tried that take no effect.
    pub(super) may_try: bool,
    /// How many words did not count when somebody looked last.
    pub(super) voids: usize,
    before: Option<Before>,
    dir: tempfile::TempDir,
}

impl Story {
    /// A repository with a policy and a rollout at version 1, and nothing in the cluster. Nobody looks at it yet.
    pub(super) async fn new(tenant: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let api = Api::start(dir.path()).await;
        let gitlab = Gitlab::start().await;
        let token = dir.path().join("token");
        std::fs::copy(gitlab.token_file(), &token).unwrap();
        std::fs::write(dir.path().join("hook"), HOOK).unwrap();
        let site = Site::Gitlab(gitlab);
        let Hosted { origin, url } = site.repository(NAME).await;
        let token = token.display();
        let repository =
            format!("url: \"{url}\", poll: 1s, credentialsFile: {token}, forge: {{kind: gitlab, tokenFile: {token}}}");
        let story = Self {
            processes: BTreeMap::new(),
            api,
            site,
            origin,
            repository,
            more: String::new(),
            starts: String::new(),
            beside: None,
            may_try: false,
            voids: 0,
            before: None,
            dir,
        };
        let files = [("tidegate.yaml", policy(tenant)), ("shop/web.rollout.yaml", ROLLOUT.to_owned())];
        let files = files.into_iter().chain([("shop/web.yaml", manifests(1))]);
        story.commit("owner", &files.collect::<Vec<_>>());
        story.site.keep(NAME, DECISIONS).await;
        story
    }

    pub(super) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(super) fn gitlab(&self) -> &Gitlab {
        match &self.site {
            Site::Gitlab(host) => host,
            Site::Gitea(_) | Site::Github(..) => panic!("another host"),
        }
    }

    /// Starts a process of that name.
    pub(super) async fn start(&mut self, name: &'static str) {
        let (kubeconfig, _) = self.api.kubeconfig(name);
        let at = |end: &str| self.path(&format!("{name}.{end}"));
        std::fs::write(at("kubeconfig"), kubeconfig).unwrap();
        let installation = format!(
            "apiVersion: tidegate.io/v1alpha1\nkind: Installation\nspec:\n  instance: it\n  repository: {{{}}}\n  \
             clusters: {{home: {{kubeconfigFile: {}}}}}\n{}  caps: {{namespaces: [shop]}}\n  \
             report: {{webhook: \"127.0.0.1:0\"}}\n",
            self.repository,
            at("kubeconfig").display(),
            self.more
        );
        std::fs::write(at("yaml"), installation).unwrap();
        let child = Command::new(crate::support::PROGRAM)
            .args(["run", "--listen", "127.0.0.1:0", "--log-level", "trace", "--identity", name, "--config"])
            .arg(at("yaml"))
            .arg("--cache")
            .arg(at("cache"))
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("LD_PRELOAD", library().await)
            .env("WATCHED_LOG", self.path("seen"))
            // What the allocator only keeps in mind for later would count as taken.
            .env("MIMALLOC_ARENA_EAGER_COMMIT", "0")
            .current_dir(self.dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(OpenOptions::new().create(true).append(true).open(at("log")).unwrap())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        limit(child.id().unwrap()).await;
        self.processes.insert(name, child);
    }

    /// Tells a process something.
    pub(super) async fn signal(&self, name: &str, signal: &str) {
        run("kill", &[signal, &self.processes[name].id().unwrap().to_string()]).await;
    }

    /// Ends the first process without a chance to say good-bye, and starts another in its place, which knows nothing that was told before.
    pub(super) async fn restart(&mut self) {
        self.processes.remove("one").unwrap().kill().await.unwrap();
        let before = self.log_of("one").len();
        self.start("one").await;
        self.soon("who leads", async || self.log_of("one")[before..].contains("metrics and health: ").then_some(()))
            .await;
        // What it takes to begin is no part of what an input takes.
        let looks = self.looks().await;
        self.soon("looks", async || (self.looks().await >= looks + 2).then_some(())).await;
    }

    /// How often the repository was looked at.
    pub(super) async fn looks(&self) -> u64 {
        let numbers = self.get("metrics").await;
        let counts = numbers.lines().filter(|line| line.starts_with("tidegate_git_requests_total{operation=\"look"));
        counts.filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok()).sum()
    }

    /// The first process.
    pub(super) fn pid(&self) -> Option<u32> {
        self.processes.get("one").and_then(Child::id)
    }

    /// What is wrong with processes that should still run.
    pub(super) fn ended(&mut self) -> Vec<String> {
        let ended = self.processes.iter_mut().filter_map(|(name, child)| Some((name, child.try_wait().unwrap()?)));
        let mut wrong: Vec<String> = ended.map(|(name, status)| format!("{name} has ended: {status}")).collect();
        wrong.extend(self.log().contains("panicked at").then(|| "it panicked".to_owned()));
        wrong
    }

    /// What the processes have opened, dialled and started so far.
    pub(super) fn seen(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.path("seen")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Takes note of how things are: what a row is judged by begins here.
    pub(super) fn mark(&mut self) {
        self.before = Some(Before::new(self));
    }

    /// What was noted last.
    pub(super) fn marked(&mut self) -> Before {
        self.before.take().expect("each row begins with a mark")
    }

    /// Who may be dialled.
    pub(super) fn addresses(&self) -> BTreeSet<String> {
        let host = self
            .repository
            .split_once("://")
            .and_then(|(_, rest)| rest.split_once('/'))
            .map(|(host, _)| host.to_owned());
        [Some(self.api.address.to_string()), host, self.beside.clone()].into_iter().flatten().collect()
    }

    /// What nobody may be told.
    pub(super) fn secrets(&self) -> Vec<String> {
        let token = std::fs::read_to_string(self.path("token")).unwrap_or_default().trim().to_owned();
        let kube = ["one", "two"].map(|name| self.api.kubeconfig(name).1);
        let real = std::fs::read_to_string(self.site.token_file()).unwrap().trim().to_owned();
        let key = std::fs::read_to_string(self.path("record")).unwrap_or_default();
        let key = key.lines().nth(2).map(str::to_owned);
        kube.into_iter().chain([HOOK.to_owned(), token, real]).chain(key).collect()
    }

    /// All that was said so far in logs.
    pub(super) fn log(&self) -> String {
        ["one", "two"].map(|name| self.log_of(name)).concat()
    }

    /// What one of them has said so far.
    pub(super) fn log_of(&self, name: &str) -> String {
        let bytes = std::fs::read(self.path(&format!("{name}.log"))).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// All that anybody can read of it, by where.
    pub(super) async fn outputs(&self) -> BTreeMap<&'static str, String> {
        let pulls = self.site.pulls(NAME).await;
        let mut said = Vec::new();
        for pull in &pulls {
            said.extend(self.site.said(NAME, pull).await);
        }
        let told = self.site.told(NAME, &self.origin.tip("main").unwrap()).await;
        let metrics = if self.pid().is_some() { self.get("metrics").await } else { String::new() };
        BTreeMap::from([
            ("the log", self.log()),
            ("Git", self.origin.git(&["log", "-p", "--all"])),
            ("pull requests", format!("{pulls:#?}")),
            ("comments", format!("{said:#?}")),
            ("commit statuses", format!("{told:#?}")),
            ("objects, Events and the Lease", self.api.texts()),
            ("metrics", metrics),
        ])
    }

    /// Where the first process serves its numbers.
    pub(super) async fn address(&self) -> String {
        self.listens("metrics and health: http://", "/metrics").await
    }

    /// Where it hears webhooks.
    pub(super) async fn hears(&self) -> String {
        self.listens("webhooks: http://", "/webhook").await
    }

    async fn listens(&self, says: &str, path: &str) -> String {
        self.soon("the address that it listens at", async || {
            let log = std::fs::read_to_string(self.path("one.log")).ok()?;
            let (_, at) = log.rsplit_once(says)?;
            Some(at.split_once(path)?.0.to_owned())
        })
        .await
    }

    /// What it serves at a path.
    pub(super) async fn get(&self, path: &str) -> String {
        let url = format!("http://{}/{path}", self.address().await);
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        match client.get(url).send().await {
            Ok(answer) => answer.text().await.unwrap_or_default(),
            Err(error) => error.to_string(),
        }
    }

    /// Commits files to main as somebody.
    pub(super) fn commit(&self, who: &str, files: &[(&str, String)]) -> String {
        let files: Vec<_> = files.iter().map(|(path, text)| (*path, Some(text.as_bytes()))).collect();
        self.origin.commit_as(&format!("{who} <{who}@example.test>"), "main", &files, "change")
    }

    /// Somebody lets main want that version.
    pub(super) fn release(&self, who: &str, version: u8) -> String {
        self.commit(who, &[("shop/web.yaml", manifests(version))])
    }

    /// What Git says of the rollout.
    pub(super) fn record(&self) -> Option<RolloutState> {
        self.record_in(&self.origin.tip(STATE)?)
    }

    /// What a commit says of it.
    pub(super) fn record_in(&self, commit: &str) -> Option<RolloutState> {
        let bytes = self.origin.file(commit, "rollouts/shop/web/state.yaml")?;
        tidegate::record::store::parse_state(&"shop/web".parse().unwrap(), &bytes).ok()
    }

    /// Waits until `look` returns something; panics with all that is known when it takes too long.
    pub(super) async fn soon<T, F: Future<Output = Option<T>>>(&self, what: &str, mut look: impl FnMut() -> F) -> T {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            if let Some(found) = look().await {
                return found;
            }
            if tokio::time::Instant::now() >= deadline {
                let record = self.record().map(|record| (record.phase, record.run, record.conditions, record.consumed));
                let logs = ["one", "two"].map(|name| format!("{name}: {}", tail(&self.log_of(name))));
                panic!("{what}: the record is {record:#?}\n{}", logs.join("\n"));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until it says something like that.
    pub(super) async fn until(&self, what: &str, like: impl Fn(&RolloutState) -> bool) -> RolloutState {
        self.soon(what, async || self.record().filter(|record| like(record))).await
    }

    /// Waits until users may have reached something new since the state branch had that tip: that may be over before anybody looks.
    pub(super) async fn entered(&self, start: &str) {
        self.soon("the step", async || {
            let commits = self.origin.since(STATE, start);
            commits.iter().filter_map(|commit| self.record_in(commit)).any(|record| is_exposed(&record)).then_some(())
        })
        .await;
    }

    /// The tip of the state branch.
    pub(super) fn recorded(&self) -> String {
        self.origin.tip(STATE).expect("there are records")
    }

    /// Waits until the rollout rests.
    pub(super) async fn rest(&self) -> RolloutState {
        self.until("rest", |record| matches!(record.phase, Phase::Steady { .. }) && record.run.is_none()).await
    }

    /// Waits for a reason that the rollout waits for; what is said of it.
    pub(super) async fn waits(&self, reason: &str) -> String {
        let says = |record: &RolloutState| {
            let found = record.conditions.iter().find(|condition| condition.reason == reason);
            found.map(|condition| format!("{reason}: {}", condition.message))
        };
        let record = self.until(reason, |record| says(record).is_some()).await;
        says(&record).unwrap()
    }

    /// Waits for that reason in the numbers, where nothing can be recorded; what the log says with these words.
    pub(super) async fn held(&self, reason: &str, words: &[&str]) -> String {
        let number = format!("tidegate_waiting{{reason=\"{reason}\"}} 1");
        self.soon(&number, async || self.get("metrics").await.lines().any(|line| line == number).then_some(())).await;
        self.logged(words).await
    }

    /// Waits for a line of the log with all of these words.
    pub(super) async fn logged(&self, words: &[&str]) -> String {
        let what = format!("a line with {words:?}");
        self.soon(&what, async || {
            self.log().lines().rfind(|line| words.iter().all(|word| line.contains(word))).map(str::to_owned)
        })
        .await
    }

    fn count_voids(record: &RolloutState) -> usize {
        record.consumed.iter().filter(|word| word.void.is_some()).count()
    }

    /// Waits for an open request of ours for `tenth` that was made for what main wants now.
    pub(super) async fn asked(&mut self) -> Value {
        let pull = self
            .soon("a request", async || {
                let run = self.record()?.run?;
                let head = run.pulls.values().next()?.head.to_string();
                let is_it = |pull: &Value| pull["state"] == "open" && pull["head"]["sha"] == *head;
                self.site.pulls(NAME).await.into_iter().find(is_it)
            })
            .await;
        self.voids = self.record().map_or(0, |record| Self::count_voids(&record));
        pull
    }

    /// Waits until a word more does not count, the step is not entered, and it is asked anew; why.
    pub(super) async fn void(&mut self) -> String {
        let before = self.voids;
        let record = self.until("a word that does not count", |record| Self::count_voids(record) > before).await;
        assert!(!is_exposed(&record), "{:?}", record.phase);
        let word: &Consumed = record.consumed.iter().rfind(|word| word.void.is_some()).unwrap();
        let why = word.void.as_ref().unwrap().why.clone();
        self.asked().await;
        format!("ApprovalUnproven: {why}")
    }
}

/// Whether users may reach something new.
pub(super) fn is_exposed(record: &RolloutState) -> bool {
    record.phase.position().is_some()
}

/// The last that a log says, without what is for its writers alone.
fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().filter(|line| !line.contains("TRACE") && !line.contains("DEBUG")).collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}
