//! What a run takes beyond its soaks, with 1,000 of them open in the world in a process.

use crate::fleet::Fleet;
use crate::measure::{Finding, Samples};
use crate::rest::Sim;
use crate::retreat::{LEADER, Led, Meter, PATIENCE, is_split, providers};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tidegate::world::kube_api::resource::Resource;
use tidegate::world::kube_api::{ApiVerb, FaultVerdict, SeenRequest, What};
use tokio::time::{sleep, timeout};

const RUNS: usize = 1_000;

/// The soak of a run at its tenth: all of them are over in the same minute, once every run has begun.
fn soak(n: usize) -> Duration {
    Duration::from_secs(180 + (n * 60 / RUNS) as u64)
}

fn two(n: usize) -> String {
    let soak = soak(n).as_secs();
    format!(
        "  - {{name: tenth, expose: {{weight: 10}}, soak: {soak}s, checks: [CHECKS]}}\n  \
         - {{name: half, expose: {{weight: 50}}, soak: 100h, checks: [CHECKS]}}\n"
    )
}

/// When the route of each rollout was written.
type Written = Arc<Mutex<BTreeMap<String, Vec<Instant>>>>;

pub(crate) async fn measure() -> Vec<Finding> {
    let fleet = Fleet { routed: RUNS, phases: two, ..Fleet::new("n", 20, RUNS) };
    let mut sim = Sim::of(&fleet);
    sim.providers = providers(&Arc::new(Meter::default()));
    let led = Led::within(&sim, &fleet).await;
    let written = Written::default();
    let seen = Arc::clone(&written);
    sim.api.judge(move |asked: &SeenRequest<'_>| {
        let patch = matches!(asked.what, What::Request { verb: ApiVerb::Patch, dry_run: false });
        if patch && asked.resource.plural == "httproutes" && asked.subresource.is_empty() && asked.caller == LEADER {
            seen.lock().unwrap().entry(asked.name.to_owned()).or_default().push(Instant::now());
        }
        FaultVerdict::Pass
    });
    let routes = Resource::of_kind("gateway.networking.k8s.io/v1", "HTTPRoute").unwrap();
    let through = async {
        while sim.api.look(|world| world.list(routes, "").filter(|route| is_split(&route["spec"], [50, 50])).count())
            < RUNS
        {
            sleep(Duration::from_millis(200)).await;
        }
    };
    timeout(PATIENCE, through).await.expect("all runs stand at a half");
    sim.api.acquit();
    led.end().await;

    let written = written.lock().unwrap();
    let mut times = Samples::default();
    for n in 0..RUNS {
        // The one before them made room for the weights.
        let [_, tenth, half] = written[&fleet.place(n).0][..] else { panic!("a route is written once for each phase") };
        let answered = sim.nature.answered(tenth);
        times.add(half.duration_since(answered).checked_sub(soak(n)).expect("no soak ends early"));
    }
    vec![
        finding(
            "From the gateway's answer to one phase to the write of the next, less the soak between, 1,000 open runs, 17 steps a second, \
             p50 (world in a process; the push of a record is in it)",
            (&times, 0.5),
        ),
        finding(
            "From the gateway's answer to one phase to the write of the next, less the soak between, 1,000 open runs, 17 steps a second, \
             p99 (world in a process; the push of a record is in it)",
            (&times, 0.99),
        ),
    ]
}

fn finding(what: &'static str, (times, share): (&Samples, f64)) -> Finding {
    let why = "What is due is planned in one tick with all else that is due, and its record is pushed before";
    Finding { what, ours: times.clone(), unit: "ms", reference: None, goal: 1_000.0, share, why }
}
