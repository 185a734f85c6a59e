//! Compare-and-swap: done, raced, source moved, rejected.

use super::{Bed, branch, config, draft, id, open, sync, write};
use crate::support::git_server::Fault;
use crate::support::origin::Origin;
use std::collections::BTreeMap;
use tidegate::git::{GitError, Pushed, Store};
use tidegate::manifest::ids::CommitId;

async fn change(store: &Store, parent: Option<&CommitId>, text: &str) -> CommitId {
    store.commit(draft(parent, &[("rollouts/shop/podinfo/state.yaml", write(text))])).await.unwrap()
}

fn rejected(pushed: Pushed) -> String {
    let Pushed::Rejected { why } = pushed else { panic!("{pushed:?} instead of a rejection") };
    why
}

#[tokio::test]
async fn a_branch_is_made_moved_and_deleted() {
    let bed = Bed::new().await;
    let main = bed.sync().await;
    let state = branch("tidegate/prod/state");
    let first = change(&bed.store, None, "seq: 1\n").await;
    let done = bed.store.push(&state, None, &first, None).await.unwrap();
    assert_eq!(done, Pushed::Done { others: main.clone() });
    let second = change(&bed.store, Some(&first), "seq: 2\n").await;
    let done = bed.store.push(&state, Some(&first), &second, None).await.unwrap();
    assert_eq!(done, Pushed::Done { others: main.clone() });
    assert_eq!(bed.origin.tip(state.short()), Some(second.to_string()));
    assert_eq!(bed.origin.files(state.short())["rollouts/shop/podinfo/state.yaml"], b"seq: 2\n");
    let subject = bed.origin.git(&["log", "-1", "--format=%s|%b|%an|%at", second.as_str()]);
    assert_eq!(
        subject,
        "shop/podinfo: testers → tenth (weight 10)|Tidegate-Rollout: shop/podinfo\n|tidegate|1767225600"
    );

    // What was pushed need not be fetched.
    bed.server.take_count();
    bed.sync().await;
    assert!(bed.server.requests().keys().all(|request| !request.starts_with("POST /fleet.git/git-receive-pack")));
    assert!(bed.server.take_count() <= 2, "only a look-up");

    assert_eq!(bed.store.delete_branch(&state, &first).await.unwrap(), Pushed::Raced { found: Some(second.clone()) });
    let done = bed.store.delete_branch(&state, &second).await.unwrap();
    assert_eq!(done, Pushed::Done { others: main.clone() });
    assert_eq!(bed.origin.tip(state.short()), None);
    assert_eq!(bed.store.cached_tips().await.unwrap(), main);

    let zero = "0".repeat(40);
    let moves: Vec<_> = bed.origin.stamps().into_iter().filter(|s| s.name == state.as_str()).collect();
    let ids: Vec<_> = moves.iter().map(|s| (s.old.as_str(), s.new.as_str())).collect();
    assert_eq!(ids, [(&*zero, first.as_str()), (first.as_str(), second.as_str()), (second.as_str(), &*zero)]);
    assert!(moves.is_sorted_by_key(|stamp| stamp.at), "{moves:?}");
}

#[tokio::test]
async fn a_propose_branch_grows_from_shallow_main() {
    let bed = Bed::new().await;
    let main = id(bed.origin.grow("main", 20));
    bed.sync().await;
    let revert = change(&bed.store, Some(&main), "image: v1\n").await;
    let propose = branch("tidegate/prod/propose/revert-7");
    let done = bed.store.push(&propose, None, &revert, Some((&branch("main"), &main))).await.unwrap();
    assert!(matches!(done, Pushed::Done { .. }), "{done:?}");
    assert_eq!(bed.origin.git(&["rev-list", "--count", propose.short()]), "22");
    bed.origin.git(&["fsck", "--strict"]);
}

#[tokio::test]
async fn c_23_only_one_of_two_wins() {
    let bed = Bed::new().await;
    let other = bed.other("cache2");
    let state = branch("state");
    let first = id(bed.origin.commit("state", &[("a", Some(b"1"))], "first"));
    bed.sync().await;
    sync(&other).await;
    let ours = change(&bed.store, Some(&first), "seq: ours\n").await;
    let theirs = change(&other, Some(&first), "seq: theirs\n").await;
    assert!(matches!(other.push(&state, Some(&first), &theirs, None).await.unwrap(), Pushed::Done { .. }));
    let lost = bed.store.push(&state, Some(&first), &ours, None).await.unwrap();
    assert_eq!(lost, Pushed::Raced { found: Some(theirs.clone()) });
    // What must not exist exists; what must exist does not.
    let lost = bed.store.push(&state, None, &ours, None).await.unwrap();
    assert_eq!(lost, Pushed::Raced { found: Some(theirs.clone()) });
    let lost = bed.store.push(&branch("gone"), Some(&first), &ours, None).await.unwrap();
    assert_eq!(lost, Pushed::Raced { found: None });
    assert_eq!(bed.origin.tip("state"), Some(theirs.to_string()));
}

#[tokio::test]
async fn a_race_after_the_advertisement_is_seen_by_the_server() {
    let bed = Bed::new().await;
    let first = id(bed.origin.commit("state", &[("a", Some(b"1"))], "first"));
    bed.sync().await;
    let ours = change(&bed.store, Some(&first), "seq: 2\n").await;
    bed.server.freeze();
    let theirs = bed.origin.commit("state", &[("a", Some(b"2"))], "theirs");
    bed.server.fault("git-receive-pack", Fault::Stale);
    let lost = bed.store.push(&branch("state"), Some(&first), &ours, None).await.unwrap();
    assert!(matches!(lost, Pushed::Raced { .. }), "{lost:?}");
    let lost = bed.store.delete_branch(&branch("state"), &first).await.unwrap();
    assert!(matches!(lost, Pushed::Raced { .. }), "{lost:?}");
    assert_eq!(bed.origin.tip("state"), Some(theirs));
}

#[tokio::test]
async fn c_24_a_push_waits_for_its_source() {
    let bed = Bed::new().await;
    let main = id(bed.origin.tip("main").unwrap());
    bed.sync().await;
    let first = change(&bed.store, None, "seq: 1\n").await;
    let moved = bed.origin.commit("main", &[("a", Some(b"1"))], "moved");
    let source = branch("main");
    let stopped = bed.store.push(&branch("state"), None, &first, Some((&source, &main))).await.unwrap();
    assert_eq!(stopped, Pushed::SourceMoved { found: Some(id(moved)) });
    bed.origin.git(&["update-ref", "-d", "refs/heads/main"]);
    let stopped = bed.store.push(&branch("state"), None, &first, Some((&source, &main))).await.unwrap();
    assert_eq!(stopped, Pushed::SourceMoved { found: None });
    assert_eq!(bed.origin.tip("state"), None);
}

#[tokio::test]
async fn refusals_are_told_from_races() {
    let bed = Bed::new().await;
    let state = branch("state");
    let first = id(bed.origin.commit("state", &[("a", Some(b"1"))], "first"));
    bed.sync().await;
    let second = change(&bed.store, Some(&first), "seq: 2\n").await;
    for (hook, words) in [("update", "please fetch first"), ("pre-receive", "frozen until\u{7} Monday")] {
        bed.origin.hook(hook, Some(&format!("#!/bin/sh\necho '{words}' >&2\nexit 1\n")));
        let why = rejected(bed.store.push(&state, Some(&first), &second, None).await.unwrap());
        assert!(why.contains("hook declined") && why.contains(&words.replace('\u{7}', "\\u{7}")), "{why}");
        bed.origin.hook(hook, None);
    }
    bed.origin.git(&["config", "receive.denyDeletes", "true"]);
    let why = rejected(bed.store.delete_branch(&state, &first).await.unwrap());
    assert!(why.contains("deletion prohibited"), "{why}");
    assert_eq!(bed.origin.tip("state"), Some(first.to_string()));
    assert!(matches!(bed.store.push(&state, Some(&first), &second, None).await.unwrap(), Pushed::Done { .. }));
}

#[tokio::test]
async fn c_23_nothing_is_forced() {
    let bed = Bed::new().await;
    let first = id(bed.origin.commit("state", &[("a", Some(b"1"))], "first"));
    bed.sync().await;
    let unrelated = change(&bed.store, None, "seq: 1\n").await;
    let why = rejected(bed.store.push(&branch("state"), Some(&first), &unrelated, None).await.unwrap());
    assert!(why.contains("does not descend"), "{why}");
    let unknown = bed.store.push(&branch("state"), Some(&first), &id("0".repeat(40)), None).await.unwrap_err();
    assert!(matches!(unknown, GitError::Missing(_)), "{unknown}");
    assert_eq!(bed.origin.tip("state"), Some(first.to_string()));
}

#[tokio::test]
async fn the_answer_is_lost_after_the_push_was_accepted() {
    let bed = Bed::new().await;
    bed.sync().await;
    let state = branch("state");
    let first = change(&bed.store, None, "seq: 1\n").await;
    bed.server.fault("POST /fleet.git/git-receive-pack", Fault::Cut);
    let error = bed.store.push(&state, None, &first, None).await.unwrap_err();
    assert!(error.is_retriable(), "{error}");
    bed.server.heal();
    let tips = bed.store.ls_refs(&["refs/heads/state"]).await.unwrap();
    assert_eq!(tips, [(state, first)].into());
}

#[tokio::test]
async fn the_same_rules_hold_on_one_machine() {
    let scratch = tempfile::tempdir().unwrap();
    let origin = Origin::init(&scratch.path().join("fleet.git"));
    let main = id(origin.commit("main", &[("a.yaml", Some(b"1\n"))], "first"));
    let store = open(&scratch.path().join("cache"), config(origin.path().to_str().unwrap()));
    sync(&store).await;
    let (state, source) = (branch("state"), branch("main"));
    let first = change(&store, None, "seq: 1\n").await;
    let others: BTreeMap<_, _> = [(source.clone(), main.clone())].into();
    let done = store.push(&state, None, &first, Some((&source, &main))).await.unwrap();
    assert_eq!(done, Pushed::Done { others: others.clone() });
    let second = change(&store, Some(&first), "seq: 2\n").await;
    assert_eq!(store.push(&state, None, &second, None).await.unwrap(), Pushed::Raced { found: Some(first.clone()) });
    let stopped = store.push(&state, Some(&first), &second, Some((&source, &first))).await.unwrap();
    assert_eq!(stopped, Pushed::SourceMoved { found: Some(main.clone()) });
    rejected(store.push(&state, Some(&first), &main, None).await.unwrap());
    let done = store.push(&state, Some(&first), &second, None).await.unwrap();
    assert_eq!(done, Pushed::Done { others: others.clone() });
    assert_eq!(origin.files("state")["rollouts/shop/podinfo/state.yaml"], b"seq: 2\n");
    origin.git(&["fsck", "--strict"]);
    assert_eq!(store.delete_branch(&state, &first).await.unwrap(), Pushed::Raced { found: Some(second.clone()) });
    assert_eq!(store.delete_branch(&state, &second).await.unwrap(), Pushed::Done { others });
    assert_eq!(origin.tip("state"), None);
}
