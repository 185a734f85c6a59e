//! From evidence to the retreat, with 1,000 open runs and a provider that never answers: in the world in a process, which is all of
//! the controller without the way of a request, and on a real API server.

use crate::cluster::Real;
use crate::fleet::Fleet;
use crate::git::stream;
use crate::measure::{Finding, Samples};
use crate::rest::{Nature, Sim};
use crate::support::gateway::http_route;
use crate::support::origin::Origin;
use futures::future::{BoxFuture, pending, ready};
use kube::api::{Api, DynamicObject, ListParams};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tidegate::analysis::judge::Range;
use tidegate::analysis::provider::{Measures, ProviderClient};
use tidegate::analysis::reading::{self, Reading};
use tidegate::manifest::installation::Installation;
use tidegate::reconcile::controller::{self, Once, Options};
use tidegate::reconcile::evidence::Providers;
use tidegate::reconcile::world::Backends;
use tidegate::world::kube_api::resource::Resource;
use tidegate::world::kube_api::{ApiVerb, FaultVerdict, SeenRequest, What};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// Who leads.
pub(crate) const LEADER: &str = "one";
const RUNS: usize = 1_000;
const RETREATS: usize = 60;
/// Who measures: the second one never answers.
const PROVIDERS: &[&str] = &["bench", "hangs"];
pub(crate) const PATIENCE: Duration = Duration::from_secs(1_800);

/// What is measured of each rollout: nothing is wrong, but of those that are doomed.
#[derive(Default)]
pub(crate) struct Meter {
    /// When the bad news of each was given.
    doomed: Mutex<BTreeMap<String, Option<SystemTime>>>,
    /// Held from the news to the retreat.
    nature: Nature,
}

impl Measures for Meter {
    fn read<'a>(&'a self, range: &'a Range) -> BoxFuture<'a, Reading<reading::Samples>> {
        let mut doomed = self.doomed.lock().unwrap();
        let value = doomed.get_mut(&range.query).map_or(0.0, |told| {
            told.get_or_insert_with(|| {
                self.nature.hold();
                SystemTime::now()
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

/// Whoever is asked, and never answers.
struct Hangs;

impl Measures for Hangs {
    fn read<'a>(&'a self, _: &'a Range) -> BoxFuture<'a, Reading<reading::Samples>> {
        Box::pin(pending())
    }
}

/// Whether a route gives its two backends these weights.
pub(crate) fn is_split(route: &Value, weights: [u64; 2]) -> bool {
    let refs = route["rules"][0]["backendRefs"].as_array();
    refs.is_some_and(|refs| refs.iter().map(|backend| backend["weight"].as_u64()).eq(weights.map(Some)))
}

/// A controller that leads many open runs.
pub(crate) struct Led {
    stop: CancellationToken,
    running: JoinHandle<()>,
}

impl Led {
    /// Brings version 1 of each to rest, and starts a run of each. What a process works on is made anew for each.
    pub(crate) async fn start(
        fleet: &Fleet,
        origin: &Origin,
        mut installation: Installation,
        world: impl AsyncFn() -> Backends,
    ) -> Self {
        installation.repository.poll = Duration::from_secs(5);
        let options = |once| Options { once, listen: None, identity: LEADER.to_owned() };
        let once = options(Once::Yes { timeout: PATIENCE });
        controller::run_in(world().await, &installation, &once, &CancellationToken::new()).await.unwrap();
        let all = 0..fleet.count;
        let files: Vec<_> = all.map(|n| (fleet.manifests_path(n), fleet.manifests(n, 2).into_bytes())).collect();
        origin.git_with(&["fast-import", "--quiet"], &stream("main", Some("refs/heads/main^0"), &files));
        let stop = CancellationToken::new();
        let (world, told, go_on) = (world().await, stop.clone(), options(Once::No));
        let running = async move { drop(controller::run_in(world, &installation, &go_on, &told).await.unwrap()) };
        Self { stop, running: tokio::spawn(running) }
    }

    /// The same in the world in a process.
    pub(crate) async fn within(sim: &Sim, fleet: &Fleet) -> Self {
        Self::start(fleet, &sim.origin, sim.installation.clone(), async || sim.world(LEADER).await).await
    }

    /// Ends the controller.
    pub(crate) async fn end(self) {
        self.stop.cancel();
        self.running.await.unwrap();
    }
}

/// Those who measure for [`PROVIDERS`].
pub(crate) fn providers(meter: &Arc<Meter>) -> Providers {
    let hangs = ProviderClient::Prometheus(Arc::new(Hangs));
    [("bench".parse().unwrap(), ProviderClient::Prometheus(meter.clone())), ("hangs".parse().unwrap(), hangs)].into()
}

fn fleet() -> Fleet {
    Fleet { routed: RUNS, providers: PROVIDERS, ..Fleet::new("n", 20, RUNS) }
}

/// In the world in a process.
pub(crate) async fn measure() -> Vec<Finding> {
    let fleet = fleet();
    let mut sim = Sim::of(&fleet);
    let meter = Arc::new(Meter { nature: sim.nature.clone(), ..Meter::default() });
    sim.providers = providers(&meter);
    let led = Led::within(&sim, &fleet).await;
    let routes = Resource::of_kind("gateway.networking.k8s.io/v1", "HTTPRoute").unwrap();
    let open = async || {
        sim.api.look(|world| world.list(routes, "").filter(|route| is_split(&route["spec"], [90, 10])).count())
    };
    all_open(open).await;
    let written: Arc<Mutex<BTreeMap<String, SystemTime>>> = Arc::default();
    let (seen, known) = (Arc::clone(&written), Arc::clone(&meter));
    sim.api.judge(move |asked: &SeenRequest<'_>| {
        let patch = matches!(asked.what, What::Request { verb: ApiVerb::Patch, dry_run: false });
        if patch && asked.resource.plural == "httproutes" && asked.subresource.is_empty() && asked.caller == LEADER {
            let told = known.doomed.lock().unwrap().get(asked.name).copied().flatten();
            if told.is_some() {
                seen.lock().unwrap().entry(asked.name.to_owned()).or_insert_with(SystemTime::now);
                known.nature.free();
            }
        }
        FaultVerdict::Pass
    });
    let times = retreats(&fleet, &meter, async |name| written.lock().unwrap().get(name).copied()).await;
    sim.api.acquit();
    led.end().await;
    vec![
        finding("From a measurement to the retreat, 1,000 open runs, p50 (world in a process)", (&times, 0.5, 15.0)),
        finding("From a measurement to the retreat, 1,000 open runs, p99 (world in a process)", (&times, 0.99, 100.0)),
    ]
}

/// On a real API server: from the measurement to the request that takes the route back, as the audit log has it.
pub(crate) async fn measure_on_a_cluster() -> Vec<Finding> {
    let mut real = Real::new(fleet()).await;
    real.nodes(20).await;
    let meter = Arc::<Meter>::default();
    real.providers = providers(&meter);
    let world = async || real.world("retreat").await;
    let led = Led::start(&real.fleet, &real.repository.origin, real.installation.clone(), world).await;
    let routes = Api::<DynamicObject>::all_with(real.bed.client().await, &http_route());
    let open = async || {
        let all = routes.list(&ListParams::default()).await.unwrap();
        all.iter().filter(|route| is_split(&route.data["spec"], [90, 10])).count()
    };
    all_open(open).await;
    let mark = real.bed.mark().await;
    let written = async |name: &str| {
        let requests = real.bed.requests_since(mark).await;
        let of = requests.iter().find(|r| r.is_write() && r.resource == "httproutes" && r.name == name);
        of.filter(|request| request.subresource.is_empty()).map(|request| SystemTime::from(request.received))
    };
    let times = retreats(&real.fleet, &meter, written).await;
    led.end().await;
    vec![
        finding(
            "From a measurement to the retreat, 1,000 open runs, p50 (real cluster on the same 2 cores)",
            (&times, 0.5, 15.0),
        ),
        finding(
            "From a measurement to the retreat, 1,000 open runs, p99 (real cluster on the same 2 cores)",
            (&times, 0.99, 100.0),
        ),
    ]
}

fn finding(what: &'static str, (times, share, goal): (&Samples, f64, f64)) -> Finding {
    let why = "One plan of another, or what stands around the plans of a tick, is brought to its end first";
    Finding { what, ours: times.clone(), unit: "ms", reference: None, goal, share, why }
}

/// Waits until all runs are open, and what that has left to do is done.
async fn all_open(count: impl AsyncFn() -> usize) {
    let opened = async {
        while count().await < RUNS {
            sleep(Duration::from_millis(500)).await;
        }
    };
    timeout(PATIENCE, opened).await.expect("all runs stand at a tenth");
    // The questions of their checks are spread meanwhile.
    sleep(Duration::from_secs(15)).await;
}

/// Dooms some, one after the other; from the bad news of each to the time at which its route was written.
async fn retreats(fleet: &Fleet, meter: &Meter, written: impl AsyncFn(&str) -> Option<SystemTime>) -> Samples {
    let mut times = Samples::default();
    let all = async {
        for n in 0..RETREATS {
            // The next one goes bad when this one has gone back: what is measured is no queue.
            let (name, _) = fleet.place(n * RUNS / RETREATS);
            meter.doomed.lock().unwrap().insert(name.clone(), None);
            let told = async || meter.doomed.lock().unwrap()[&name];
            let told = eventually(told).await;
            times.add(eventually(async || written(&name).await).await.duration_since(told).unwrap());
        }
    };
    timeout(PATIENCE, all).await.expect("all go back");
    times
}

async fn eventually<T>(look: impl AsyncFn() -> Option<T>) -> T {
    loop {
        if let Some(found) = look().await {
            return found;
        }
        sleep(Duration::from_millis(10)).await;
    }
}
