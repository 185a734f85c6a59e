//! What cannot be fetched keeps nobody from the rest, and is tried again.

use super::*;
use crate::git::{FaultInjection, RemoteCall, RemoteFault};
use std::collections::VecDeque;
use std::sync::Mutex;

/// Which of the next fetches fail: the record's, the decisions', main's.
type Fates = Arc<Mutex<VecDeque<bool>>>;

fn failing(world: &World, fates: &Fates) -> Source {
    let next = Arc::clone(fates);
    let hook = move |call: &RemoteCall| match call {
        RemoteCall::Fetch if next.lock().unwrap().pop_front() == Some(true) => RemoteFault::Away,
        RemoteCall::Fetch | RemoteCall::LookUp | RemoteCall::Push(_) => RemoteFault::Pass,
    };
    world.source_with("c", |config| config.fault_injection = Some(FaultInjection::new(hook)))
}

fn fail(fates: &Fates, next: &[bool]) {
    *fates.lock().unwrap() = next.iter().copied().collect();
}

/// Whoever fails for the first times, Git is away.
async fn away(source: &mut Source, fates: &Fates) {
    fail(fates, &[true; 4]);
    for _ in 0..3 {
        assert!(matches!(source.look_up(None).await, Poll::Unreachable(_)));
    }
}

#[tokio::test]
async fn attack_115_a_main_that_does_not_come_is_unreadable_and_tried_again() {
    let (world, fates) = (World::new().await, Fates::default());
    let mut source = failing(&world, &fates);
    away(&mut source, &fates).await;
    let view = moved(&mut source, None).await;
    assert_eq!(view.git, Git::Fresh);
    assert!(desired(&view, "a").starts_with("unreadable: "), "{}", desired(&view, "a"));
    fail(&fates, &[true]);
    assert!(matches!(source.look_up(None).await, Poll::Unchanged), "it did not come this time either");
    // The record and the decisions are followed meanwhile.
    let record = world.commit(STATE, &[("README.md", Some("1"))]).await;
    world.commit(DECISIONS, &[("shop/a/x.yaml", Some("x"))]).await;
    fail(&fates, &[false, false, true]);
    let view = moved(&mut source, None).await;
    assert_eq!((view.tips.state.as_ref(), view.decisions.about(&id("a")).filed.len()), (Some(&record), 1));
    assert!(matches!(view.records, LoadedRecords::Read(_)));
    // Nothing that is about to be written waits for it.
    assert!(matches!(source.look_up_to_write(None).await, Poll::Unchanged));
    assert_eq!(desired(&*moved(&mut source, None).await, "a"), "wanted 12");
    assert!(matches!(source.look_up(None).await, Poll::Unchanged));
    // Another tip, another time.
    world.commit("main", &[("teams/shop/a/app.yaml", Some(&manifest("a", "a:2")))]).await;
    away(&mut source, &fates).await;
    assert!(desired(&*moved(&mut source, None).await, "a").starts_with("unreadable: "));
    assert_eq!(desired(&*moved(&mut source, None).await, "a"), "wanted 12");
}

#[tokio::test]
async fn decisions_that_do_not_come_are_unread_and_tried_again() {
    let (world, fates) = (World::new().await, Fates::default());
    let mut source = failing(&world, &fates);
    moved(&mut source, None).await;
    world.commit(DECISIONS, &[("shop/a/x.yaml", Some("x"))]).await;
    away(&mut source, &fates).await;
    let view = moved(&mut source, None).await;
    assert!(view.decisions.unreadable(&id("a")).is_some());
    assert_eq!((desired(&view, "a").as_str(), &view.git), ("wanted 12", &Git::Fresh));
    fail(&fates, &[true]);
    assert!(matches!(source.look_up(None).await, Poll::Unchanged));
    let view = moved(&mut source, None).await;
    assert_eq!((view.decisions.unreadable(&id("a")), view.decisions.about(&id("a")).filed.len()), (None, 1));
}

#[tokio::test]
async fn a_cache_that_lost_what_was_read_is_filled_again() {
    let world = World::new().await;
    let mut source = world.source("c");
    let state = world.commit(STATE, &[("README.md", Some("1"))]).await;
    moved(&mut source, None).await;
    let objects = world.dir.path().join("c/repository.git/objects");
    std::fs::remove_dir_all(&objects).unwrap();
    std::fs::create_dir_all(objects.join("pack")).unwrap();
    world.commit("main", &[("teams/shop/a/app.yaml", Some(&manifest("a", "a:2")))]).await;
    let mut looked = source.look_up(Some(&state)).await;
    for _ in 0..3 {
        if matches!(looked, Poll::Changed(_)) {
            break;
        }
        looked = source.look_up(Some(&state)).await;
    }
    let Poll::Changed(view) = looked else { panic!("{looked:?}") };
    assert_eq!(desired(&view, "a"), "wanted 12");
    assert!(matches!(view.records, LoadedRecords::Read(_)));
}
