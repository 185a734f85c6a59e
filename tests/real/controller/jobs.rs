//! Jobs before steps, made and ended by the real Kubernetes.

use super::app::{App, ungated};
use super::world::{World, is_steady};
use k8s_openapi::api::batch::v1::Job;
use kube::api::ListParams;
use std::fmt::Write;
use tidegate::plan::report::Reason;
use tidegate::record::state::{Phase, Rest, RolloutState};

/// A Job whose pods do that; its own time to live is none of its run's.
pub(super) fn job(name: &str, behaviour: &str) -> String {
    let mut text = format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: {name}}}\nspec:\n  backoffLimit: 0\n  ttlSecondsAfterFinished: 0\n  \
         template:\n    metadata: {{annotations: {{{behaviour}}}}}\n    spec:\n      restartPolicy: Never\n"
    );
    writeln!(text, "      containers: [{{name: test, image: \"example.test/tester:1\"}}]").unwrap();
    text
}

/// Requirements C-15 and C-34: a Job that succeeds opens its step, one that fails takes the run back. It is made once, knows its
/// run, and goes with it.
#[tokio::test(flavor = "multi_thread")]
async fn c_15_c_34_a_job_tries_the_candidate_out() {
    let tried = ungated().replacen("{name: tenth, ", "{name: tenth, before: {job: smoke.yaml}, ", 1);
    let mut world = World::new("tried", &(tried + "  promotion: {before: {job: load.yaml}}\n")).await;
    world.commit(&[("it/smoke.yaml", &job("smoke", "")), ("it/load.yaml", &job("load", "testbed/behaviour: stuck"))]);
    world.start();
    world.until_steady(Rest::Initialized).await;

    // The first ends well, the second runs for as long as it may.
    world.release(&App::new("web", 2));
    world.until("the last phase", |record| matches!(record.phase, Phase::WaitingPromotion { .. })).await;
    let why = world.until_condition(Reason::JobRunning).await;
    // One that is taken away before it is on record is made once more.
    let is_known = |record: &RolloutState| record.run.as_ref().is_some_and(|run| run.jobs.len() == 2);
    let run = world.until("the second Job on record", is_known).await.run.unwrap();
    assert_eq!(why, format!("promotion waits for the success of Job web-{}-promotion", run.id));
    assert!(run.jobs.values().any(|trial| trial.passed.is_some()), "{:?}", run.jobs);
    let jobs = world.space.api::<Job>();
    let found = jobs.get(&format!("web-{}-tenth", run.id)).await.unwrap();
    assert_eq!(found.status.unwrap().succeeded, Some(1));
    let pod = found.spec.unwrap().template.spec.unwrap();
    let told: Vec<_> = pod.containers[0].env.iter().flatten().map(|e| (e.name.as_str(), e.value.as_deref())).collect();
    assert!(told.contains(&("TIDEGATE_RUN", Some(run.id.as_str()))), "{told:?}");
    assert!(told.contains(&("TIDEGATE_STEP", Some("tenth"))), "{told:?}");

    // A person takes it away: it is not made again, and the run has to be given up.
    jobs.delete(&format!("web-{}-promotion", run.id), &kube::api::DeleteParams::background()).await.unwrap();
    world.until_condition(Reason::JobGone).await;
    world.commit(&[("it/load.yaml", &job("load", ""))]);
    world.decide(run.id.as_str(), "abort");
    world.until("the end of the run", |record| is_steady(record, Rest::Reverted)).await;
    world.decide(run.id.as_str(), "retry");
    world.until("promotion", |record| is_steady(record, Rest::Succeeded) && record.run.is_none()).await;

    world.commit(&[("it/smoke.yaml", &job("smoke", "testbed/behaviour: crash"))]);
    world.release(&App::new("web", 3));
    let record = world.until("Failed", |record| matches!(record.phase, Phase::Failed { .. })).await;
    let Phase::Failed { why, .. } = record.phase else { panic!("it has failed") };
    let id = record.last_run.unwrap().id;
    assert!(why.starts_with(&format!("tenth: Job web-{id}-tenth failed: BackoffLimitExceeded: ")), "{why}");
    world.settled(&[Reason::Refused]).await;
    let left: Vec<_> = jobs.list(&ListParams::default()).await.unwrap().items;
    let left: Vec<_> = left.iter().filter_map(|job| job.metadata.name.as_deref()).collect();
    assert_eq!(left, [format!("web-{id}-tenth")], "the one that failed can be looked at");
}
