//! Requests as people read them, and the undoing of a run's change.

use super::*;
use crate::record::fixture::{open, plan, revision, run, step};

fn instance() -> InstanceName {
    "prod".parse().unwrap()
}

fn rollout() -> RolloutId {
    "shop/podinfo".parse().unwrap()
}

fn advance(through: &str, with: impl FnOnce(&Advance<'_>) -> String) -> String {
    let (instance, state, plan, through) = (instance(), open(), plan(), step(through));
    let run = state.run.as_ref().unwrap();
    with(&Advance { instance: &instance, rollout: &state.metadata, run, plan: &plan, through: &through, void: &[] })
}

#[test]
fn the_request_to_go_on() {
    insta::assert_snapshot!(advance("half", |request| request.message()));
}

#[test]
fn the_request_to_promote() {
    insta::assert_snapshot!(advance("promotion", |request| request.message()));
}

#[test]
fn x_2_the_request_adds_one_decision_for_this_run() {
    let file = advance("half", |request| {
        let (path, text) = request.file();
        format!("{path}\n{text}")
    });
    insta::assert_snapshot!(file, @r#"
    shop/podinfo/7-07070707-half.yaml
    apiVersion: tidegate.io/v1alpha1
    kind: Decision
    metadata: {name: "podinfo", namespace: "shop"}
    spec: {run: "7-07070707", action: approve, through: "half"}
    "#);
}

fn revert() -> String {
    let (instance, rollout, run, bad, good) = (instance(), rollout(), run(7), revision(7), revision(6));
    let why = "check error-rate: 0.2 > 0.01\nsee https://evil.example, fixes #1 @ana";
    let request =
        Revert { instance: &instance, main: "main", rollout: &rollout, run: &run, revision: &bad, stable: &good, why };
    assert_eq!(request.head().asks, Asks::Revert);
    request.message()
}

#[test]
fn x_5_the_request_to_revert() {
    insta::assert_snapshot!(revert());
}
