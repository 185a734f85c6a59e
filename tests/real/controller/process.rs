//! The real binary, killed, stopped and doubled (requirements ).

use super::app::App;
use super::world::{World, is_exposed, is_steady};
use crate::support::cluster::eventually;
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::ListParams;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tidegate::record::state::{Phase, Rest, RolloutState};
use tokio::process::{Child, Command};

/// Every kind of step, none of them long.
pub(super) const QUICK: &str = "  traffic:\n    gatewayAPI: {httpRoute: web, service: web}\n    settle: 0s\n    drain: 0s\n  phases:\n  \
    - name: half\n    expose: {weight: 50}\n  progressDeadline: 1m\n";

/// Long enough at a tenth to be met there.
const SLOW: &str = "  traffic:\n    gatewayAPI: {httpRoute: web, service: web}\n    settle: 0s\n    drain: 0s\n  phases:\n  \
    - name: tenth\n    expose: {weight: 10}\n    soak: 8s\n  - name: half\n    expose: {weight: 50}\n    soak: 1s\n  progressDeadline: 1m\n";

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
        let status = self.start("one", fault, &["--once", "--timeout", "2m"]).wait().await.unwrap();
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
        eventually("the address that it listens at", async || {
            let log = self.log(identity);
            let (_, at) = log.split_once("metrics and health: http://")?;
            Some(at.split_once("/metrics")?.0.to_owned())
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

/// What a finished run leaves: the same after every way there.
async fn remains(world: &World, version: u8) -> (Vec<String>, String, i64) {
    let deployments: Api<Deployment> = world.space.api();
    let all = deployments.list(&ListParams::default()).await.unwrap().items;
    let names = all.iter().map(|d| d.metadata.name.clone().unwrap()).collect();
    let image = all[0].spec.template.spec.as_ref().unwrap().containers[0].image.clone().unwrap();
    assert!(image.ends_with(&version.to_string()), "{image}");
    (names, image, world.weight().await)
}

fn succeeded(record: &RolloutState) -> bool {
    is_steady(record, Rest::Succeeded)
}

/// Kills the controller at every side effect of a run, in turn, and lets another go on.
async fn abort_everywhere(name: &str, fault: &str) {
    let world = World::new(name, QUICK).await;
    let binary = Binary::new(&world);
    assert_eq!(binary.once("").await, Ended::Settled);
    let mut version = 1;
    for n in 1_u8.. {
        version += 1;
        world.release(&App::new("web", version));
        let ended = binary.once(&format!("{fault}:{n}")).await;
        if ended == Ended::Aborted {
            assert_eq!(binary.once("").await, Ended::Settled, "{}", binary.log("one"));
        }
        let record = world.record().unwrap();
        assert!(succeeded(&record) && record.run.is_none(), "{fault}:{n}: {:#?}\n{}", record.phase, binary.log("one"));
        let (names, _, weight) = remains(&world, version).await;
        assert_eq!((names, weight), (vec!["web".to_owned()], 0), "{fault}:{n}");
        if ended == Ended::Settled {
            assert!(n > 15, "a run has more than {n} side effects");
            break;
        }
    }
    world.assert_kept();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_11_aborted_before_any_side_effect_a_run_ends_in_the_same_world() {
    abort_everywhere("abort-before", "abort-before").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_11_aborted_after_any_side_effect_a_run_ends_in_the_same_world() {
    abort_everywhere("abort-after", "abort-after").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_checker_of_the_promise_sees_a_build_that_records_last() {
    let world = World::new("record-last", QUICK).await;
    let binary = Binary::new(&world);
    assert_eq!(binary.once("").await, Ended::Settled);
    world.assert_kept();
    world.release(&App::new("web", 2));
    assert_eq!(binary.once("record-last").await, Ended::Settled);
    let seen = std::panic::catch_unwind(AssertUnwindSafe(|| world.assert_kept()));
    assert!(seen.is_err(), "a promise that was broken passed for kept");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attack_97_x_12_a_leader_paused_across_a_hand_over_raises_nothing_afterwards() {
    let world = World::new("paused", &SLOW.replace("soak: 8s", "soak: 1h")).await;
    let binary = Binary::new(&world);
    let first = binary.start("first", "", &[]);
    world.until("first sight", |record| is_steady(record, Rest::Initialized)).await;
    world.release(&App::new("web", 2));
    world.until("a tenth", is_exposed).await;
    signal(&first, "-STOP").await;
    let second = binary.start("second", "", &[]);
    // The second leads once the Lease has run out; meanwhile main goes back.
    world.release(&App::new("web", 1));
    let record = world.until("the second took it back", |record| is_steady(record, Rest::Reverted)).await;
    signal(&first, "-CONT").await;
    world.polls(10).await;
    assert_eq!(world.weight().await, 0);
    assert!(record.writer.epoch >= 1);
    assert!(world.record().is_some_and(|now| matches!(now.phase, Phase::Steady { .. })));
    drop((first, second));
    world.assert_kept();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_12_of_two_controllers_one_writes() {
    let world = World::new("two", SLOW).await;
    let binary = Binary::new(&world);
    let controllers = [binary.start("first", "", &[]), binary.start("second", "", &[])];
    world.until("first sight", |record| is_steady(record, Rest::Initialized)).await;
    // Later the Lease may change hands, on a machine that stood still.
    let standing = |name: &str| binary.log(name).contains("stands by");
    eventually("one stands by", async || (standing("first") != standing("second")).then_some(())).await;
    world.release(&App::new("web", 2));
    world.until("promotion", succeeded).await;
    drop(controllers);
    world.assert_kept();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn told_to_stop_it_gives_the_lease_back() {
    let world = World::new("stop", QUICK).await;
    let binary = Binary::new(&world);
    let mut first = binary.start("first", "", &[]);
    world.until("first sight", |record| is_steady(record, Rest::Initialized)).await;
    signal(&first, "-TERM").await;
    let status = tokio::time::timeout(Duration::from_secs(30), first.wait()).await.unwrap().unwrap();
    assert_eq!(status.code(), Some(0), "{}", binary.log("first"));
    world.release(&App::new("web", 2));
    let second = binary.start("second", "", &[]);
    world.until("promotion", succeeded).await;
    drop(second);
    world.assert_kept();
}
