//! Requests as people read them, and the undoing of a run's change.

use super::*;
use crate::manifest::proof::ApprovalRule;
use crate::manifest::raw::Trust;
use crate::record::fixture::{open, plan, revision, run, set, step, too_many};

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
fn a_request_whose_merge_has_to_be_signed_says_so() {
    let (instance, mut state, plan, through) = (instance(), open(), plan(), step("half"));
    let approvers = ["ana@example.org".to_owned()].into();
    let run = state.run.as_mut().unwrap();
    run.rule = Some(ApprovalRule { approvers, approvals: 1, trust: Trust::Reviews, by: By::Signatures });
    let rollout = &state.metadata;
    let request = Advance { instance: &instance, rollout, run, plan: &plan, through: &through, void: &[] };
    let message = request.message();
    let (_, how) = message.split_once("To approve with").unwrap();
    insta::assert_snapshot!(how.split_once("To deny").unwrap().0, @r"
     plain git, as an approver who did not make the version (the merge has
    to be signed):

        git fetch origin
        git switch --detach origin/tidegate/prod/decisions
        git merge --no-ff --no-edit -S origin/tidegate/prod/propose/shop/podinfo/7-07070707-half
        git push origin HEAD:refs/heads/tidegate/prod/decisions

    If there is no tidegate/prod/decisions yet:

        tidegate approve shop/podinfo
    ");
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
    let request = RevertRequest {
        instance: &instance,
        main: "main",
        rollout: &rollout,
        run: &run,
        revision: &bad,
        stable: &good,
        why,
    };
    assert_eq!(request.head().asks, Asks::Revert);
    request.message()
}

#[test]
fn x_5_the_request_to_revert() {
    insta::assert_snapshot!(revert());
}

fn deletion(question: &DeletionQuestion, before: usize, by: Option<By>) -> (String, String) {
    let (instance, rollout, run) = (instance(), rollout(), run(6));
    let request = Deletion { instance: &instance, rollout: &rollout, run: &run, question, before, by };
    let (path, text) = request.file();
    (request.message(), format!("{path}\n{text}"))
}

#[test]
fn x_3_the_request_to_let_objects_go() {
    let (message, file) = deletion(&too_many(6), 0, None);
    insta::assert_snapshot!(format!("{message}\n{file}"));
    let replaced = DeletionQuestion { successor: Some(set(7)), ..too_many(6) };
    let (message, file) = deletion(&replaced, 1, Some(By::Signatures));
    insta::assert_snapshot!("x_3_the_request_to_let_a_version_go_signed", format!("{message}\n{file}"));
}
