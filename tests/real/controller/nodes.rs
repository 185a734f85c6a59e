//! The configuration of nodes on a real API server: with the rights and the definition that the chart brings, and the shipped agent on each node.

use super::world::{Held, World};
use crate::support::PROGRAM;
use crate::support::cluster::{Bed, eventually};
use crate::support::helm::{RBAC, Release};
use crate::support::rights::Right;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tidegate::record::state::{Phase, Rest};
use tokio::process::{Child, Command};

const NODES: [&str; 3] = ["node-0", "node-1", "node-2"];

/// What a node has is one file. A version that breaks it leaves half of that.
const DRIVER: &str = r#"#!/bin/sh
has="$(dirname "$0")/$TIDEGATE_NODE"
case $1 in
check) cat "$2/version" ;;
try) cp "$2/version" "$has" && ! grep -q breaks "$has" || { echo "the uplink is gone" >&2; exit 1; } ;;
restore) if [ -n "$2" ]; then cp "$2/version" "$has"; else rm -f "$has"; fi ;;
read) if [ -e "$has" ]; then cat "$has"; fi ;;
esac
"#;

const PHASES: &str = "  rollingUpdate: {maxUnavailable: 1}\n  progressDeadline: 2m\n  phases:\n  \
    - {name: one, before: {approval: pullRequest}, expose: {units: 1}, soak: 1s}\n";

/// The nodes, as far as they are no API objects.
struct Fabric {
    dir: PathBuf,
    _agents: Vec<Child>,
}

impl Fabric {
    /// An agent on each node.
    fn new(world: &World, kubeconfig: &Path) -> Self {
        let dir = world.bed.beside("fabric");
        let driver = dir.join("driver");
        std::fs::write(&driver, DRIVER).unwrap();
        std::fs::set_permissions(&driver, std::fs::Permissions::from_mode(0o755)).unwrap();
        let agent = |node: &&str| {
            let log = std::fs::File::create(dir.join(format!("{node}.log"))).unwrap();
            let mut command = Command::new(PROGRAM);
            command.args(["agent", "--node", node, "--namespace", &world.space.name]);
            command.arg("--driver").arg(&driver).arg("--kubeconfig").arg(kubeconfig);
            command.arg("--state").arg(dir.join(format!("{node}.state")));
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).kill_on_drop(true).spawn().unwrap()
        };
        let agents = NODES.iter().map(agent).collect();
        Self { dir, _agents: agents }
    }

    /// What is in force on each node.
    fn has(&self) -> Vec<String> {
        let has = |node: &&str| std::fs::read_to_string(self.dir.join(node)).unwrap_or_default();
        NODES.iter().map(has).collect()
    }
}

impl World {
    /// Installs what the chart makes of `nodes.enabled`, but for the agents, and waits until it is in force.
    async fn configures_nodes(&mut self) {
        let (home, served) = (self.space.home.clone(), self.space.name.clone());
        let values = json!({
            "instance": "it", "namespaces": [served], "replicas": 0, "rbac": {"lookUpSecrets": true},
            "repository": {"url": "https://git.example.test/shop.git"},
            "image": {"repository": "registry.example.test/tidegate"},
            "nodes": {"enabled": true, "namespace": served, "agent": {"driver": "/opt/fabric/driver"}},
        });
        let at = home.clone();
        let render = move || Release { name: "tide", namespace: &at }.objects(&values);
        let mut objects = tokio::task::spawn_blocking(render).await.unwrap();
        let wanted = |object: &Value| {
            let kind = object["kind"].as_str().unwrap();
            RBAC.contains(&kind) || kind == "CustomResourceDefinition" || kind == "ServiceAccount"
        };
        objects.retain(wanted);
        let text: Vec<String> = objects.iter().map(Value::to_string).collect();
        let apply = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
        self.bed.kubectl(&apply, &text.join("\n---\n")).await;
        let (_, account) = self.space.user.rsplit_once(':').unwrap();
        self.space.rights = Right::of(&objects, &json!({"kind": "ServiceAccount", "name": account, "namespace": home}));
        for (verb, kind) in [("watch", "nodes"), ("patch", "nodeconfigs.tidegate.io")] {
            let user = format!("--as={}", self.space.user);
            eventually("the rights", async || {
                let answer = self.bed.try_kubectl(&["auth", "can-i", verb, kind, "-n", &served, &user], "").await;
                answer.is_ok_and(|said| said.trim().ends_with("yes")).then_some(())
            })
            .await;
        }
    }

    /// A version of the nodes' one file.
    fn layers(&self, version: &str) {
        let layer = format!(
            "apiVersion: tidegate.io/v1alpha1\nkind: NodeConfigLayer\nmetadata: {{name: base}}\nspec:\n  nodeSelector: {{}}\n  \
             files: {{version: \"{version}\"}}\n"
        );
        self.commit(&[("it/layers.yaml", &layer)]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn n_1_n_3_n_22_nodes_are_configured_one_by_one_and_one_that_fails_takes_the_version_back() {
    let mut world = World::empty(Held::Own(Box::new(Bed::own().await)), "fabric").await;
    world.configures_nodes().await;
    world.caps = ", nodes: {}".to_owned();
    let namespace = world.space.name.clone();
    let policy = format!(
        "apiVersion: tidegate.io/v1alpha1\nkind: Policy\nspec:\n  tenants:\n    \
         it: {{path: it, namespaces: [{namespace}], clusters: [home], nodes: {{}}}}\n"
    );
    let rollout = format!(
        "apiVersion: tidegate.io/v1alpha1\nkind: Rollout\nmetadata: {{name: fabric, namespace: {namespace}}}\nspec:\n  \
         manifests: [layers.yaml]\n  target: {{kind: NodeConfig, name: fabric}}\n{PHASES}"
    );
    world.commit(&[("tidegate.yaml", &policy), ("it/fabric.rollout.yaml", &rollout)]);
    world.layers("1");
    let fabric = Fabric::new(&world, &world.bed.kubeconfig());
    world.start();
    world.until_steady_of("fabric", Rest::Initialized).await;
    assert_eq!(fabric.has(), ["1"; 3]);

    // The first node says that it cannot take it: nobody else is told, and it has what it had.
    world.layers("2 breaks");
    world.approve_of("fabric", "one").await;
    let (_, why) = world.until_failed_of("fabric").await;
    assert!(why.contains("node-0") && why.contains("the uplink is gone"), "{why}");
    assert_eq!(fabric.has(), ["1"; 3]);
    let told = world.kubectl(&["get", "nodeconfigs", "--output", "jsonpath={.items[*].metadata.generation}"], "").await;
    let told: Vec<&str> = told.split(' ').collect();
    assert_eq!(told.len(), 3, "a record for each node: {told:?}");
    assert_eq!(told[1..], ["1", "1"], "the others were told something: {told:?}");

    world.layers("3");
    world.approve_of("fabric", "one").await;
    let on_one = |record: &_| matches!(record, Phase::Progressing(_));
    world.until_of("fabric", "one", |record| on_one(&record.phase)).await;
    world.until_steady_of("fabric", Rest::Succeeded).await;
    assert_eq!(fabric.has(), ["3"; 3]);
    // What no node has any more, nor would go back to, goes.
    eventually("two contents are left", async || {
        let contents = world.kubectl(&["get", "configmaps", "--output", "name"], "").await;
        (contents.lines().filter(|name| name.contains("/fabric-")).count() == 2).then_some(())
    })
    .await;

    let (url, kubeconfig) = (world.git.url("it"), world.bed.kubeconfig());
    let mut status = Command::new(PROGRAM);
    status.args(["status", "fabric", "--units", "--repo", &url, "--kubeconfig"]).arg(&kubeconfig);
    let shown = String::from_utf8(status.output().await.unwrap().stdout).unwrap();
    assert!(shown.contains("3 nodes: 3 Applied") && shown.contains("node-2"), "{shown}");
    world.settled(&[]).await;
}
