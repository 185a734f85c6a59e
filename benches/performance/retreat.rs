//! From evidence to the retreat, with 1,000 open runs in the world in a process: all of the controller, without the way of a
//! request to a real API server.

use crate::fleet::Fleet;
use crate::git::stream;
use crate::measure::{Finding, Samples};
use crate::rest::{Nature, Sim};
use futures::future::{BoxFuture, ready};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tidegate::analysis::judge::Range;
use tidegate::analysis::provider::{Measures, Provider};
use tidegate::analysis::reading::{self, Reading};
use tidegate::reconcile::controller::{self, Once, Options};
use tidegate::sim::kube_api::resource::Resource;
use tidegate::sim::kube_api::{Seen, Verb, Verdict, What};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// Who leads.
pub(crate) const LEADER: &str = "one";
const RUNS: usize = 1_000;
const RETREATS: usize = 60;
pub(crate) const PATIENCE: Duration = Duration::from_secs(1_800);

/// What is measured of each rollout: nothing is wrong, but of those that are doomed.
#[derive(Default)]
pub(crate) struct Meter {
    /// When the bad news of each was given.
    doomed: Mutex<BTreeMap<String, Option<Instant>>>,
    /// Held from the news to the retreat.
    nature: Nature,
}

impl Measures for Meter {
    fn read<'a>(&'a self, range: &'a Range) -> BoxFuture<'a, Reading<reading::Samples>> {
        let mut doomed = self.doomed.lock().unwrap();
        let value = doomed.get_mut(&range.query).map_or(0.0, |told| {
            told.get_or_insert_with(|| {
                self.nature.hold();
                Instant::now()
            });
            1.0
        });
        let mut samples = BTreeMap::new();
        let mut at = range.from;
        while at <= range.until {
            samples.insert(at, value);
            at += range.interval.delta();
        }
        Box::pin(ready(Reading::Said(samples)))
    }
}

/// How many runs stand at a tenth.
fn at_a_tenth(sim: &Sim) -> usize {
    let routes = Resource::of_kind("gateway.networking.k8s.io/v1", "HTTPRoute").unwrap();
    let split = |route: &&Arc<serde_json::Value>| {
        route["spec"]["rules"][0]["backendRefs"].as_array().is_some_and(|refs| refs.len() == 2)
    };
    sim.api.look(|world| world.list(routes, "").filter(split).count())
}

/// Many open runs, led by a controller.
pub(crate) struct Open {
    pub(crate) sim: Sim,
    pub(crate) meter: Arc<Meter>,
    stop: CancellationToken,
    running: JoinHandle<()>,
}

impl Open {
    /// Brings version 1 of each to rest, and starts a run of each.
    pub(crate) async fn start(fleet: &Fleet) -> Self {
        let mut sim = Sim::of(fleet);
        let meter = Arc::new(Meter { nature: sim.nature.clone(), ..Meter::default() });
        sim.providers.insert("bench".parse().unwrap(), Provider::Prometheus(meter.clone()));
        sim.installation.repository.poll = Duration::from_secs(5);
        let options = |once| Options { once, listen: None, identity: LEADER.to_owned() };
        let once = options(Once::Yes { timeout: PATIENCE });
        controller::run_in(sim.world(LEADER).await, &sim.installation, &once, &CancellationToken::new()).await.unwrap();
        let all = 0..fleet.count;
        let files: Vec<_> = all.map(|n| (fleet.manifests_path(n), fleet.manifests(n, 2).into_bytes())).collect();
        sim.origin.git_with(&["fast-import", "--quiet"], &stream("main", Some("refs/heads/main^0"), &files));
        let stop = CancellationToken::new();
        let (world, installation) = (sim.world(LEADER).await, sim.installation.clone());
        let (told, go_on) = (stop.clone(), options(Once::No));
        let running = async move { drop(controller::run_in(world, &installation, &go_on, &told).await.unwrap()) };
        Self { sim, meter, stop, running: tokio::spawn(running) }
    }

    /// Ends the controller.
    pub(crate) async fn end(self) {
        self.stop.cancel();
        self.running.await.unwrap();
    }
}

pub(crate) async fn measure() -> Vec<Finding> {
    let fleet = Fleet { routed: RUNS, ..Fleet::new("n", 20, RUNS) };
    let open = Open::start(&fleet).await;
    let (sim, meter) = (&open.sim, &open.meter);
    let opened = async {
        while at_a_tenth(sim) < RUNS {
            sleep(Duration::from_millis(200)).await;
        }
    };
    timeout(PATIENCE, opened).await.expect("all runs stand at a tenth");
    // What opening them has left to do is done, and the questions of their checks are spread.
    sleep(Duration::from_secs(15)).await;
    let written = retreats(&fleet, sim, meter).await;
    let told = meter.doomed.lock().unwrap().clone();
    open.end().await;

    let mut times = Samples::default();
    for (name, at) in &*written.lock().unwrap() {
        times.add(at.duration_since(told[name].expect("it was told")));
    }
    assert_eq!(times.len(), RETREATS);
    let finding = |what, share, goal| Finding {
        what,
        ours: times.clone(),
        unit: "ms",
        reference: None,
        goal,
        share,
        why: "One plan of another, or what stands around the plans of a tick, is brought to its end first",
    };
    vec![
        finding("From a measurement to the retreat, 1,000 open runs, p50 (world in a process)", 0.5, 15.0),
        finding("The same, p99", 0.99, 100.0),
    ]
}

/// Dooms some, one after the other; when the route of each was written.
async fn retreats(fleet: &Fleet, sim: &Sim, meter: &Arc<Meter>) -> Arc<Mutex<BTreeMap<String, Instant>>> {
    let written: Arc<Mutex<BTreeMap<String, Instant>>> = Arc::default();
    let (seen, known) = (Arc::clone(&written), Arc::clone(meter));
    sim.api.judge(move |asked: &Seen<'_>| {
        let patch = matches!(asked.what, What::Request { verb: Verb::Patch, dry_run: false });
        if patch && asked.resource.plural == "httproutes" && asked.subresource.is_empty() && asked.caller == LEADER {
            let told = known.doomed.lock().unwrap().get(asked.name).copied().flatten();
            if told.is_some() {
                seen.lock().unwrap().entry(asked.name.to_owned()).or_insert_with(Instant::now);
                known.nature.free();
            }
        }
        Verdict::Pass
    });
    let all = async {
        for n in 0..RETREATS {
            // The next one goes bad when this one has gone back: what is measured is no queue.
            meter.doomed.lock().unwrap().insert(fleet.place(n * RUNS / RETREATS).0, None);
            while written.lock().unwrap().len() <= n {
                sleep(Duration::from_millis(10)).await;
            }
        }
    };
    timeout(PATIENCE, all).await.expect("all go back");
    sim.api.acquit();
    written
}
