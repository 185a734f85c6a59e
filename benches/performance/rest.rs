//! The world in a process, with many rollouts at rest: what a tick takes, and what each of them takes of memory.

use crate::fleet::Fleet;
use crate::git::stream;
use crate::heap;
use crate::leader::{Leader, is_settled, settle};
use crate::measure::{Finding, Samples, timed};
use crate::support::origin::Origin;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tidegate::cluster::client::Cluster;
use tidegate::git::{RemoteConfig, RemoteUrl, Store, create_bare};
use tidegate::manifest::installation::{self, Installation};
use tidegate::reconcile::clock::Clock;
use tidegate::reconcile::evidence::Providers;
use tidegate::reconcile::world::Backends;
use tidegate::world::kube_api::KubeApi;
use tidegate::world::workloads::Controllers;
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// Bringing them to rest takes longer than all that is measured: five minutes.
const ROLLOUTS: usize = 10_000;
const TICKS: usize = 50;

/// A world in this process.
pub(crate) struct Sim {
    pub(crate) api: KubeApi,
    pub(crate) origin: Origin,
    pub(crate) installation: Installation,
    pub(crate) providers: Providers,
    scratch: tempfile::TempDir,
    pub(crate) nature: Nature,
    playing: JoinHandle<()>,
}

/// The cluster's own controllers. Elsewhere they work on other machines: while they are held, what is measured is ours alone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Nature {
    turn: Arc<Mutex<Turn>>,
    /// When each turn began and ended.
    played: Arc<Mutex<Vec<(Instant, Instant)>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Turn {
    #[default]
    Free,
    Held,
}

impl Nature {
    /// Waits until they have ended what they do, and holds them.
    pub(crate) fn hold(&self) {
        *self.turn.lock().unwrap() = Turn::Held;
    }

    /// Lets them go on.
    pub(crate) fn free(&self) {
        *self.turn.lock().unwrap() = Turn::Free;
    }

    /// When they had done with what was written then.
    pub(crate) fn answered(&self, written: Instant) -> Instant {
        let played = self.played.lock().unwrap();
        let (_, ended) = played.iter().find(|(began, _)| *began >= written).expect("they have played since");
        *ended
    }

    /// Plays them, a few times a second: a turn looks at everything of the kinds that have changed.
    async fn play(self, api: KubeApi) {
        let (mut changes, mut controllers) = (api.changes(), Controllers::default());
        loop {
            let played = {
                let turn = self.turn.lock().unwrap();
                let now = Clock::default().now();
                if *turn == Turn::Free {
                    api.change(|world| {
                        let began = Instant::now();
                        controllers.pass(world, (now - world.now()).max(chrono::TimeDelta::zero()));
                        controllers.settle(world);
                        self.played.lock().unwrap().push((began, Instant::now()));
                    });
                    changes.mark_seen();
                }
                *turn == Turn::Free
            };
            sleep(Duration::from_millis(200)).await;
            if played {
                changes.changed().await;
            }
        }
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        self.playing.abort();
    }
}

const HOME: &str = "tidegate";

impl Sim {
    pub(crate) fn of(fleet: &Fleet) -> Self {
        let api = KubeApi::new(*Clock::default().now());
        api.change(|world| {
            let all = fleet.namespaces.iter().map(String::as_str).chain([HOME]);
            all.for_each(|namespace| world.make_namespace(namespace));
        });
        let scratch = tempfile::tempdir().unwrap();
        let repository = scratch.path().join("fleet.git");
        create_bare(&repository).unwrap();
        let origin = Origin::at(&repository);
        let files: Vec<_> = fleet.files().into_iter().map(|(path, text)| (path, text.into_bytes())).collect();
        origin.git_with(&["fast-import", "--quiet"], &stream("main", None, &files));
        let text = fleet.installation("https://bench.invalid/fleet.git", "{inCluster: {}}");
        let installation = installation::parse(&"installation.yaml".parse().unwrap(), text.as_bytes()).unwrap();
        let nature = Nature::default();
        let playing = tokio::spawn(nature.clone().play(api.clone()));
        Self { api, origin, installation, providers: Providers::new(), scratch, nature, playing }
    }

    /// What a process works on that has this name.
    pub(crate) async fn world(&self, name: &str) -> Backends {
        let directory: PathBuf = self.scratch.path().join(name);
        std::fs::create_dir_all(&directory).unwrap();
        let remote = RemoteConfig::new(RemoteUrl::Local(self.scratch.path().join("fleet.git")));
        let home = HOME.parse().unwrap();
        Backends {
            cluster: Cluster::over(self.api.caller(name), home, &self.installation.instance).await.unwrap(),
            store: Store::open(&directory, remote).unwrap(),
            providers: self.providers.clone(),
            clock: Clock::default(),
            pass: None,
            transport: None,
        }
    }
}

pub(crate) async fn measure() -> Vec<Finding> {
    let (_, small) = at_rest(ROLLOUTS / 2).await;
    let (ticks, large) = at_rest(ROLLOUTS).await;
    let mut slope = Samples::default();
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
    slope.push((large as f64 - small as f64) / (ROLLOUTS / 2) as f64 / 1_024.0);
    let tick = Finding {
        what: "A tick over 10,000 rollouts at rest (world in a process)",
        ours: ticks,
        unit: "ms",
        reference: None,
        goal: 20.0,
        share: 0.5,
        why: "Each tick goes once through what it remembers of every rollout",
    };
    let memory = Finding {
        what: "Memory for each rollout, from 5,000 to 10,000 (world in a process)",
        ours: slope,
        unit: "KiB",
        reference: None,
        goal: 2.0,
        share: 0.5,
        why: "What is kept are not ids and hashes alone: the manifests of main as files and as objects, the record, and each live \
              object of the rollout (Deployment, Pod) with its managed fields, all as trees of JSON",
    };
    vec![tick, memory]
}

/// What ticks take over so many, and what a process holds that has just started among them.
async fn at_rest(count: usize) -> (Samples, usize) {
    let fleet = Fleet::new("n", 20, count);
    let sim = Arc::new(Sim::of(&fleet));
    let ((), took) = timed(async {
        let mut leader = Leader::start(sim.world("first").await, &sim.installation, "first").await;
        settle(&mut leader.term()).await;
        leader.end().await;
    })
    .await;
    println!("  {count} rollouts at rest after {} s", took.as_secs());
    let before = heap::held();
    let mut leader = Leader::start(sim.world("first").await, &sim.installation, "second").await;
    let mut ticks = Samples::default();
    let mut term = leader.term();
    settle(&mut term).await;
    let held = heap::held().saturating_sub(before);
    for _ in 0..TICKS {
        let (next, time) = timed(term.tick()).await;
        assert!(is_settled(&term, next), "nothing is left to do");
        ticks.add(time);
    }
    drop(term);
    leader.end().await;
    (ticks, held)
}
