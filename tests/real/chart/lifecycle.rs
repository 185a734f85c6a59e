//! The life of a release: installed, tested, upgraded and rolled back while a run is open, and uninstalled. The controller runs under
//! the ServiceAccount of the chart, with the arguments and the Installation of its pods.

use super::installed::{helm_in, running, standing};
use super::kubelet::Kubelet;
use super::{chart, few, with};
use crate::support::audit::Request;
use crate::support::cluster::{Bed, eventually};
use crate::support::git_server::GitServer;
use crate::support::origin::Origin;
use crate::tree::source_dir;
use kube::Client;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tidegate::manifest::ids::RolloutId;
use tidegate::record::state::{Phase, RolloutState, Run};
use tidegate::record::store;

const STATE: &str = "tidegate/life/state";
const DECISIONS: &str = "tidegate/life/decisions";
/// What the chart calls everything in the release's own namespace.
const NAME: &str = "tide--life";

struct World {
    bed: &'static Bed,
    client: Client,
    /// The namespaces of the release and of the application.
    home: String,
    shop: String,
    git: GitServer,
    origin: Origin,
}

impl World {
    /// The example of the repository on a Git host that asks for a password, and nothing in the cluster.
    async fn new() -> Self {
        let bed = Bed::shared().await;
        let (home, shop) = (bed.namespace("life-home").await, bed.namespace("life-shop").await);
        let git = GitServer::start().await;
        let origin = git.init("shop");
        git.require("tidegate", "secret");
        let world = Self { bed, client: bed.client().await, home, shop, git, origin };
        let files: Vec<(&str, String)> =
            ["tidegate.yaml", "teams/shop/podinfo/rollout.yaml", "teams/shop/podinfo/podinfo.yaml"]
                .map(|path| (path, world.example(path)))
                .into();
        world.commit(&files);
        world
    }

    /// A file of the example, in the namespace of this test, with waits that a test can afford, and a second approval.
    fn example(&self, path: &str) -> String {
        let text = std::fs::read_to_string(source_dir().join("examples-repo").join(path)).unwrap();
        text.replace("namespaces: [shop]", &format!("namespaces: [{}]", self.shop))
            .replace("namespace: shop}", &format!("namespace: {}}}", self.shop))
            .replace("10s", "1s")
            .replace("- name: half\n", "- name: half\n      before: {approval: pullRequest}\n")
    }

    fn commit(&self, files: &[(&str, String)]) {
        let files: Vec<_> = files.iter().map(|(path, text)| (*path, Some(text.as_bytes()))).collect();
        self.origin.commit("main", &files, "change");
    }

    fn values(&self) -> Value {
        let repository =
            json!({"url": self.git.url("shop"), "poll": "1s", "credentials": {"secretName": "tidegate-git"}});
        with(&few(), &json!({"instance": "life", "repository": repository, "namespaces": [self.shop]}))
    }

    async fn helm(&self, arguments: &[&str], values: Option<Value>) -> Result<String, String> {
        helm_in(self.bed, &self.home, arguments, values).await
    }

    /// The record of podinfo, once it is as wanted.
    async fn record(&self, what: &str, wanted: impl Fn(&RolloutState) -> bool) -> RolloutState {
        let id: RolloutId = format!("{}/podinfo", self.shop).parse().unwrap();
        let path = store::paths(&id).state.to_string();
        eventually(what, async || {
            let files = self.origin.files(&self.origin.tip(STATE)?);
            let record = store::parse_state(&id, files.get(&path)?).unwrap();
            wanted(&record).then_some(record)
        })
        .await
    }

    async fn approve(&self, step: &str) {
        let refs = format!("refs/heads/tidegate/life/propose/{}/podinfo", self.shop);
        let request = eventually(&format!("the request for {step}"), async || {
            let found = self.origin.git(&["for-each-ref", "--format=%(refname:lstrip=2)", &refs]);
            found.lines().find(|name| name.ends_with(step)).map(str::to_owned)
        })
        .await;
        self.origin.merge(&request, DECISIONS);
    }

    /// The objects of the application, by kind, name, uid, what was asked for last, and for pods how often they restarted.
    async fn application(&self) -> Vec<String> {
        let columns = "custom-columns=:.kind,:.metadata.name,:.metadata.uid,:.metadata.generation,\
                       :.status.containerStatuses[0].restartCount";
        let kinds = "deployments,services,configmaps,httproutes,pods";
        let found = self.bed.kubectl(&["-n", &self.shop, "get", kinds, "-o", columns, "--no-headers"], "").await;
        found.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    }

    /// What the controller has written since then, but its Lease.
    async fn writes_since(&self, mark: crate::support::audit::Mark) -> Vec<Request> {
        let user = format!("system:serviceaccount:{}:{NAME}", self.home);
        let all = self.bed.requests_since(mark).await;
        all.into_iter().filter(|r| r.user == user && r.is_write() && r.resource != "leases").collect()
    }
}

/// The chart as if it were one release older, with an image of its own.
fn previous(dir: &Path) -> PathBuf {
    let old = dir.join("tidegate");
    let copy = std::process::Command::new("cp").args(["-r"]).arg(chart()).arg(&old).status().unwrap();
    assert!(copy.success());
    let file = old.join("Chart.yaml");
    let text = std::fs::read_to_string(&file).unwrap();
    let older = |line: &str| match line.split_once(": ") {
        Some((key @ ("version" | "appVersion"), _)) => format!("{key}: 0.0.1\n"),
        Some(_) | None => format!("{line}\n"),
    };
    std::fs::write(file, text.lines().map(older).collect::<String>()).unwrap();
    old
}

#[tokio::test]
async fn x_18_a_release_lives_and_goes_and_its_rollouts_do_not_notice() {
    let world = World::new().await;
    let (old, kubelet) = (tempfile::tempdir().unwrap(), Kubelet::new(world.bed, &world.client, &world.home));
    let (before, now) = (previous(old.path()), chart());
    let values = || Some(world.values());

    // Installed: the first rollout is promoted, and what is left to do is said.
    world.helm(&["install", "tide", before.to_str().unwrap()], values()).await.unwrap();
    running(&world.client, &world.home, NAME).await;
    let (tested, pods) = kubelet.running("test", world.helm(&["test", "tide"], None)).await;
    assert!(tested.is_err() && pods[0].output.contains("tidegate-git/credentials"), "{tested:?} {}", pods[0].output);
    let secret = ["create", "secret", "generic", "tidegate-git", "--from-literal=credentials=tidegate:secret"];
    world.bed.kubectl(&[&["-n", &world.home], &secret[..]].concat(), "").await;
    let controller = kubelet.controller(NAME, "first").await;
    let steady = |record: &RolloutState| matches!(record.phase, Phase::Steady { .. });
    world.record("version 1", steady).await;
    let (tested, pods) = kubelet.running("test", world.helm(&["test", "tide"], None)).await;
    assert!(tested.is_ok() && pods.len() == 1, "{tested:?} {}", pods[0].output);

    // A run is open: nothing can be uninstalled, but upgraded and rolled back.
    let path = "teams/shop/podinfo/podinfo.yaml";
    world.commit(&[(path, world.example(path).replace("podinfo:1", "podinfo:2"))]);
    world.approve("tenth").await;
    let at_tenth = |record: &RolloutState| {
        let at = if let Phase::Waiting { at, .. } = &record.phase { at.as_ref() } else { None };
        let asked = |run: &Run| run.pulls.keys().any(|step| step.to_string() == "half");
        at.is_some_and(|stop| stop.step.to_string() == "tenth") && record.run.as_ref().is_some_and(asked)
    };
    let open = world.record("a run at a tenth that asks for half", at_tenth).await;
    let (refused, pods) = kubelet.running("uninstall", world.helm(&["uninstall", "tide"], None)).await;
    let refused = refused.unwrap_err();
    assert!(refused.contains("tide--life-uninstall") && pods.len() == 1, "{refused}");
    let said = &pods[0].output;
    assert!(pods[0].code == Some(3) && said.contains("/podinfo  Waiting  "), "{said}");
    // Helm takes the release for half gone then; a rollback to where it was mends that.
    world.helm(&["rollback", "tide", "1"], None).await.unwrap();
    let (application, mark) = (world.application().await, world.bed.mark().await);
    let steps: [(&str, &[&str], Option<Value>); 2] =
        [("upgraded", &["upgrade", "tide", now.to_str().unwrap()], values()), ("back", &["rollback", "tide"], None)];
    let mut controller = controller;
    for (pod, helm, values) in steps {
        world.helm(helm, values).await.unwrap();
        running(&world.client, &world.home, NAME).await;
        // As a node does that replaces a pod: the new one first.
        let next = kubelet.controller(NAME, pod).await;
        controller.terminate().await;
        controller = next;
        eventually("a controller that leads", async || controller.log().contains("leads").then_some(())).await;
        eventually("a look at Git", async || (world.git.take_count() > 0).then_some(())).await;
    }
    assert_eq!(world.application().await, application);
    let writes = world.writes_since(mark).await;
    assert!(writes.is_empty(), "{writes:#?}");
    let still = world.record("the same run", at_tenth).await;
    assert_eq!((still.run, still.phase), (open.run, open.phase));

    // It goes on to its end; then the release goes and takes nothing of the application along.
    world.approve("half").await;
    world.record("version 2", |record| steady(record) && record.run.is_none()).await;
    let application = world.application().await;
    assert!(application.iter().all(|object| !object.contains("canary")), "{application:#?}");
    let (gone, pods) = kubelet.running("uninstall", world.helm(&["uninstall", "tide", "--wait"], None)).await;
    assert!(gone.is_ok() && pods.len() == 1, "{gone:?}");
    assert_eq!(pods[0].output, "No run of life is open.\n");
    controller.terminate().await;
    assert_eq!(world.application().await, application);
    assert_eq!(standing(&world.client, NAME).await, BTreeSet::new());
}
