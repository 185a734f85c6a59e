//! A set with more objects than answers are kept of usual ones.

use super::whole::POLICY;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tidegate::reconcile::controller::{Once, Options};
use tidegate::record::state::{Phase, Rest};
use tidegate::world::kube_api::{FaultVerdict, What};
use tidegate::world::simulation::Simulation;
use tokio_util::sync::CancellationToken;

const MANY: usize = 300;
const ROLLOUT: &str = "apiVersion: tidegate.io/v1alpha1
kind: Rollout
metadata: {name: many, namespace: shop}
spec: {manifests: [many.yaml], target: none}
";

#[tokio::test(start_paused = true)]
async fn a_set_of_many_objects_is_promoted_and_each_is_asked_about_once() {
    let directory = tempfile::tempdir().unwrap();
    let stage = Simulation::new(directory.path(), "2026-03-02T10:00:00Z".parse().unwrap()).unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    stage.api.judge(move |seen| {
        if matches!(seen.what, What::Request { dry_run: true, .. }) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        FaultVerdict::Pass
    });
    for (version, rest) in [(1, Rest::Initialized), (2, Rest::Succeeded)] {
        let mut objects = String::new();
        for n in 0..MANY {
            write!(
                objects,
                "---\n{{apiVersion: v1, kind: ConfigMap, metadata: {{name: c{n}}}, data: {{v: \"{version}\"}}}}\n"
            )
            .unwrap();
        }
        let files =
            [("tidegate.yaml", POLICY), ("shop/many.rollout.yaml", ROLLOUT), ("shop/many.yaml", objects.as_str())];
        stage.push(&files, "a version").await.unwrap();
        let once = Once::Yes { timeout: Duration::from_secs(3_600) };
        let options = Options { once, listen: None, identity: "one".to_owned() };
        let waiting = stage.controller("one", options, &CancellationToken::new()).await.unwrap();
        assert!(waiting.is_empty(), "{waiting:?}");
        let record = stage.record(&"shop/many".parse().unwrap()).await.unwrap().unwrap();
        assert!(matches!(&record.phase, Phase::Steady { how, .. } if *how == rest), "{:?}", record.phase);
        let asked = asked.swap(0, Ordering::Relaxed);
        assert!((MANY..=2 * MANY).contains(&asked), "version {version}: {asked} dry runs");
    }
}
