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
    with(&Advance { instance: &instance, rollout: &state.metadata, run, plan: &plan, through: &through })
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

fn revert(conflicts: &[RepoPath]) -> String {
    let (instance, rollout, run, bad, good) = (instance(), rollout(), run(7), revision(7), revision(6));
    let why = "check error-rate: 0.2 > 0.01\nsee https://evil.example, fixes #1 @ana";
    let request = Revert {
        instance: &instance,
        main: "main",
        rollout: &rollout,
        run: &run,
        revision: &bad,
        stable: &good,
        why,
        conflicts,
    };
    assert_eq!(request.head().asks, Asks::Revert);
    request.message()
}

#[test]
fn x_5_the_request_to_revert() {
    insta::assert_snapshot!(revert(&[]));
}

#[test]
fn x_5_a_revert_that_cannot_be_done_by_itself() {
    insta::assert_snapshot!(revert(&["teams/shop/podinfo/podinfo.yaml".parse().unwrap()]));
}

fn contents(files: &[(&str, &str)]) -> Contents {
    files.iter().map(|(path, text)| (path.parse().unwrap(), Arc::from(text.as_bytes()))).collect()
}

#[test]
fn x_5_only_what_the_run_changed_is_undone() {
    let base = contents(&[
        ("same", "1"),
        ("mine", "2"),
        ("back", "2"),
        ("both", "2"),
        ("added", "2"),
        ("added-edited", "2"),
        ("gone", "2"),
        ("added-gone", "2"),
    ]);
    let theirs = contents(&[
        ("same", "1"),
        ("mine", "1"),
        ("back", "1"),
        ("both", "1"),
        ("gone", "1"),
        ("dropped", "1"),
        ("dropped-made", "1"),
        ("dropped-back", "1"),
    ]);
    let ours = contents(&[
        ("same", "3"),
        ("mine", "2"),
        ("back", "1"),
        ("both", "3"),
        ("added", "2"),
        ("added-edited", "3"),
        ("dropped-made", "3"),
        ("dropped-back", "1"),
        ("foreign", "1"),
    ]);
    let undone = revert_edits(&base, &theirs, &ours);
    let bytes = |text: &str| Arc::<[u8]>::from(text.as_bytes());
    let expected = [
        ("added", Undo::Remove),
        ("added-edited", Undo::Conflict),
        ("both", Undo::Merge { base: bytes("2"), ours: bytes("3"), theirs: bytes("1") }),
        ("dropped", Undo::Write(bytes("1"))),
        ("dropped-made", Undo::Conflict),
        ("gone", Undo::Conflict),
        ("mine", Undo::Write(bytes("1"))),
    ];
    assert_eq!(undone, expected.map(|(path, undo)| (path.parse().unwrap(), undo)).into());
}

#[test]
fn the_files_of_a_set_lie_beside_the_rollout() {
    let file = |path: &str| (path.parse().unwrap(), ("b".repeat(40).parse().unwrap(), Arc::from(*b"x")));
    let set = Set {
        id: "a".repeat(40).parse().unwrap(),
        files: [file("podinfo.yaml"), file("conf/app.yaml")].into(),
        objects: BTreeMap::new(),
        revision: revision(1),
        pods: "a".repeat(16).parse().unwrap(),
    };
    let there = on_main(&"teams/shop/podinfo/rollout.yaml".parse().unwrap(), &set).unwrap();
    let paths: Vec<&str> = there.keys().map(RepoPath::as_str).collect();
    assert_eq!(paths, ["teams/shop/podinfo/conf/app.yaml", "teams/shop/podinfo/podinfo.yaml"]);
    assert!(on_main(&"rollout.yaml".parse().unwrap(), &set).unwrap().contains_key(&"podinfo.yaml".parse().unwrap()));
}
