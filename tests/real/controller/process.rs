//! The real binary, killed, stopped and doubled (requirements ).

use super::app::App;
use super::world::{World, is_exposed, is_steady};
use crate::support::cluster::{PATIENCE, eventually};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::ListParams;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tidegate::record::state::{Phase, Rest, RolloutState};
use tokio::process::{Child, Command};

/// Every kind of step, none of them long.
pub(super) const QUICK: &str = "  traffic:\n    gatewayAPI: {httpRoute: web, service: web}\n    settle: 0s\n    drain: 0s\n  phases:\n  \
    - name: half\n    expose: {weight: 50}\n  progressDeadline: 10m\n";

/// A tenth until somebody says otherwise.
const SLOW: &str = "  traffic:\n    gatewayAPI: {httpRoute: web, service: web}\n    settle: 0s\n    drain: 0s\n  phases:\n  \
    - name: tenth\n    expose: {weight: 10}\n    soak: 1h\n  - name: half\n    expose: {weight: 50}\n    soak: 1s\n  progressDeadline: 10m\n";

/// Runs the binary against a world.
pub(super) struct Binary {
    dir: tempfile::TempDir,
}

impl Binary {
    pub(super) fn new(world: &World) -> Self {
        let binary = Self { dir: tempfile::tempdir().unwrap() };
        std::fs::write(binary.path("installation.yaml"), world.installation_text()).unwrap();
        binary
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Starts it under a name, with a fault of the test build.
    pub(super) fn start(&self, identity: &str, fault: &str, once: &[&str]) -> Child {
        let log = std::fs::File::create(self.path(&format!("{identity}.log"))).unwrap();
        Command::new(crate::support::PROGRAM)
            .args(["run", "--listen", "127.0.0.1:0", "--identity", identity])
            .arg("--config")
            .arg(self.path("installation.yaml"))
            .arg("--cache")
            .arg(self.path(&format!("cache-{identity}")))
            .args(once)
            .env("TIDEGATE_FAULT", fault)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .unwrap()
    }

    /// Runs it until nothing is left to do; says whether it ended by itself.
    async fn once(&self, fault: &str) -> Ended {
        let patience = format!("{}s", PATIENCE.as_secs());
        let status = self.start("one", fault, &["--once", "--timeout", &patience]).wait().await.unwrap();
        match status.code() {
            Some(0 | 3) => Ended::Settled,
            Some(code) => panic!("exit code {code}: {}", self.log("one")),
            None => Ended::Aborted,
        }
    }

    /// All that `doctor` says.
    pub(super) async fn doctor(&self, form: &str) -> String {
        let mut doctor = Command::new(crate::support::PROGRAM);
        doctor.args(["doctor", "-o", form, "--config"]).arg(self.path("installation.yaml"));
        let said = doctor.output().await.unwrap();
        String::from_utf8([said.stdout, said.stderr].concat()).unwrap()
    }

    /// Where it serves its numbers.
    pub(super) async fn address(&self, identity: &str) -> String {
        self.listens(identity, "metrics and health: http://", "/metrics").await
    }

    /// Where it hears webhooks.
    pub(super) async fn hears(&self, identity: &str) -> String {
        self.listens(identity, "webhooks: http://", "/webhook").await
    }

    async fn listens(&self, identity: &str, says: &str, path: &str) -> String {
        eventually("the address that it listens at", async || {
            let log = self.log(identity);
            let (_, at) = log.split_once(says)?;
            Some(at.split_once(path)?.0.to_owned())
        })
        .await
    }

    pub(super) fn log(&self, identity: &str) -> String {
        read(&self.path(&format!("{identity}.log")))
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Ended {
    Settled,
    Aborted,
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

async fn signal(child: &Child, name: &str) {
    let pid = child.id().expect("it runs").to_string();
    let status = Command::new("kill").args([name, &pid]).status().await.unwrap();
    assert!(status.success());
}

/// The Deployments that are there to stay, with the version of each.
async fn versions(world: &World) -> BTreeMap<String, u8> {
    let deployments: Api<Deployment> = world.space.api();
    let all = deployments.list(&ListParams::default()).await.unwrap();
    let version = |deployment: Deployment| {
        let pods = deployment.spec.template.spec.unwrap();
        let image = pods.containers[0].image.clone().unwrap();
        (deployment.metadata.name.unwrap(), image.rsplit_once(':').unwrap().1.parse().unwrap())
    };
    all.into_iter().filter(|deployment| deployment.metadata.deletion_timestamp.is_none()).map(version).collect()
}

fn succeeded(record: &RolloutState) -> bool {
    is_steady(record, Rest::Succeeded)
}

/// Where the record is on the way.
fn step(record: &RolloutState) -> String {
    let stop = record.phase.position().map(|stop| format!(" {}", stop.step)).unwrap_or_default();
    format!("{}{stop}", record.phase.name())
}

/// An instant of a run at which its controller dies, and what it leaves: where the record is, what part of the traffic the candidate
/// has, and which versions are there.
struct Death {
    /// How it is aborted.
    fault: &'static str,
    record: &'static str,
    weight: i64,
    live: &'static [(&'static str, u8)],
}

/// The record is ahead of the cluster; the cluster of what the record says; and all is done but its end on record.
const DEATHS: [Death; 3] = [
    Death {
        fault: "abort-after:→ half",
        record: "Progressing half",
        weight: 0,
        live: &[("web", 0), ("web-canary", 1)],
    },
    Death {
        fault: "abort-before:promote → ",
        record: "Promoting promote",
        weight: 100,
        live: &[("web", 1), ("web-canary", 1)],
    },
    Death { fault: "abort-before:retire → ", record: "Finalising retire", weight: 0, live: &[("web", 1)] },
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_11_a_process_that_is_aborted_leaves_what_another_brings_to_the_same_end() {
    let world = World::new("killed", QUICK).await;
    let binary = Binary::new(&world);
    assert_eq!(binary.once("").await, Ended::Settled);
    for (version, death) in (2..).zip(DEATHS) {
        let live = death.live.iter().map(|(name, newer)| ((*name).to_owned(), version - 1 + newer)).collect();
        let left = killed_at(&world, &binary, death.fault, version).await;
        assert_eq!(left, (death.record.to_owned(), death.weight, live), "{}", death.fault);
    }
    world.assert_kept();
    let version = 2 + u8::try_from(DEATHS.len()).unwrap();
    the_checker_of_the_promise_sees_a_build_that_records_last(&world, &binary, version).await;
}

/// Where the record is, the candidate's part of the traffic, and the versions that are there.
type Left = (String, i64, BTreeMap<String, u8>);

/// Kills the controller within a run to that version, and lets another go on; says what it had left.
async fn killed_at(world: &World, binary: &Binary, fault: &str, version: u8) -> Left {
    world.release(&App::new("web", version));
    assert_eq!(binary.once(fault).await, Ended::Aborted, "{fault}: {}", binary.log("one"));
    // Its Lease is somebody's who is dead, its cache as it was left.
    let left = (step(&world.record().unwrap()), world.weight().await, versions(world).await);
    assert_eq!(binary.once("").await, Ended::Settled, "{}", binary.log("one"));
    let record = world.record().unwrap();
    assert!(succeeded(&record) && record.run.is_none(), "{fault}: {:#?}\n{}", record.phase, binary.log("one"));
    assert_eq!(record.next_run, u32::from(version), "{fault}: nothing is begun twice");
    assert_eq!((versions(world).await, world.weight().await), ([("web".to_owned(), version)].into(), 0), "{fault}");
    left
}

async fn the_checker_of_the_promise_sees_a_build_that_records_last(world: &World, binary: &Binary, version: u8) {
    world.release(&App::new("web", version));
    assert_eq!(binary.once("record-last").await, Ended::Settled);
    let seen = std::panic::catch_unwind(AssertUnwindSafe(|| world.assert_kept()));
    assert!(seen.is_err(), "a promise that was broken passed for kept");
}

/// Two processes. Which of them leads is the Lease's to say, whenever it matters: on a machine that stands still it changes hands.
struct Two {
    binary: Binary,
    processes: [Child; 2],
}

const NAMES: [&str; 2] = ["first", "second"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attack_97_x_12_of_two_controllers_one_leads_whoever_sleeps_or_goes() {
    let mut world = World::new("two", SLOW).await;
    let binary = Binary::new(&world);
    let processes = NAMES.map(|name| binary.start(name, "", &[]));
    let mut two = Two { binary, processes };
    x_12_of_two_controllers_one_writes(&world, &two).await;
    attack_97_x_12_a_leader_paused_across_a_hand_over_raises_nothing_afterwards(&world, &two).await;
    told_to_stop_it_gives_the_lease_back(&world, &mut two).await;
    world.release(&App::new("web", 2));
    world.until("the last one took it back", |record| is_steady(record, Rest::Reverted)).await;
    two.ends(&world).await;
    world.settled(&[]).await;
}

/// Who has the Lease.
async fn holder(world: &World) -> String {
    let holder = ["get", "lease", "tidegate-it", "-o", "jsonpath={.spec.holderIdentity}"];
    world.kubectl_at_home(&holder).await
}

impl Two {
    /// Which of them leads.
    async fn leader(&self, world: &World) -> usize {
        let leads = async || {
            let holder = holder(world).await;
            NAMES.iter().position(|name| holder.contains(name))
        };
        eventually("one of them leads", leads).await
    }

    /// Stops the one that leads, in the middle of whatever it does.
    async fn pause(&self, world: &World) -> usize {
        let paused = async || {
            let leader = self.leader(world).await;
            signal(&self.processes[leader], "-STOP").await;
            // Nobody who is stopped takes the Lease: it led when it was.
            if holder(world).await.contains(NAMES[leader]) {
                return Some(leader);
            }
            signal(&self.processes[leader], "-CONT").await;
            None
        };
        eventually("the one that leads is paused", paused).await
    }

    /// Tells the one that leads to stop, and sees that the Lease is not its own any more.
    async fn ends(&mut self, world: &World) {
        let leader = self.leader(world).await;
        let (process, name) = (&mut self.processes[leader], NAMES[leader]);
        signal(process, "-TERM").await;
        let status = tokio::time::timeout(PATIENCE, process.wait()).await.unwrap().unwrap();
        assert_eq!(status.code(), Some(0), "{}", self.binary.log(name));
        let holder = holder(world).await;
        assert!(!holder.contains(name), "{holder}");
    }
}

async fn x_12_of_two_controllers_one_writes(world: &World, two: &Two) {
    world.until("first sight", |record| is_steady(record, Rest::Initialized)).await;
    let other_stands_by = async || {
        let other = NAMES[1 - two.leader(world).await];
        two.binary.log(other).contains("stands by").then_some(())
    };
    eventually("the one that does not lead stands by", other_stands_by).await;
    world.release(&App::new("web", 2));
    let record = world.until("a tenth", is_exposed).await;
    world.decide_with(record.run.unwrap().id.as_str(), "skip", ", step: tenth");
    world.until("promotion", succeeded).await;
}

async fn attack_97_x_12_a_leader_paused_across_a_hand_over_raises_nothing_afterwards(world: &World, two: &Two) {
    world.release(&App::new("web", 3));
    world.until("a tenth", is_exposed).await;
    let paused = two.pause(world).await;
    // The second leads once the Lease has run out; meanwhile main goes back.
    world.release(&App::new("web", 2));
    world.until("the second took it back", |record| is_steady(record, Rest::Reverted)).await;
    signal(&two.processes[paused], "-CONT").await;
    world.polls(10).await;
    assert_eq!(world.weight().await, 0);
    assert!(world.record().is_some_and(|now| matches!(now.phase, Phase::Steady { .. })));
}

async fn told_to_stop_it_gives_the_lease_back(world: &World, two: &mut Two) {
    let epoch = world.record().unwrap().writer.epoch;
    two.ends(world).await;
    world.release(&App::new("web", 4));
    let record = world.until("a tenth", is_exposed).await;
    assert!(record.writer.epoch > epoch, "another leads: {:?}", record.writer);
}
